/* SPDX-License-Identifier: ISC */
/*
 * What every feedwheel header shares: the export marks, the error codes, and the borrowed string.
 *
 * Errors are an int, 0 or a negative FW_E*, plus words for a person in a struct fw_err that the
 * caller keeps on its stack. A code exists because some caller acts differently on it.
 */
#ifndef FEEDWHEEL_TYPES_H
#define FEEDWHEEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define FW_API __attribute__((visibility("default")))
#define FW_MUST_CHECK __attribute__((warn_unused_result))
#define FW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define FW_UNUSED __attribute__((unused))
#define FW_NORETURN __attribute__((noreturn))
#else
#define FW_API
#define FW_MUST_CHECK
#define FW_PRINTF(f, a)
#define FW_UNUSED
#define FW_NORETURN
#endif

enum fw_code {
	FW_OK = 0,
	FW_EINVAL = -1,   /* fix the caller, the argument or the configuration */
	FW_EFORMAT = -2,  /* not a feed (or not the format asked for): slow down */
	FW_ENET = -3,     /* their side or the road: back off */
	FW_EGONE = -4,    /* stop asking */
	FW_EAGAIN = -5,   /* busy or full: later */
	FW_ELIMIT = -6,   /* past a configured limit: drop */
	FW_ENOMEM = -7,   /* no memory */
	FW_EIO = -8,      /* our own storage or system broke: the feed is not to blame */
	FW_EUNSUP = -9,   /* not in this build or not by this driver */
	FW_ENOTFOUND = -10, /* no such feed, entry, file */
	FW_EBLOCKED = -11,  /* the address guard refused the destination */
	FW_EVERSION = -12,  /* the store is newer than this program: upgrade the program */
	FW_ESTALE = -13,    /* the lease is over: nothing was written */
};

/* Words for a person; lives on the caller's stack. NULL means "spare me the words". */
struct fw_err {
	int rc;
	char text[300];
};

/* Borrowed bytes, not NUL-terminated. p == NULL means absent; len 0 with p set means empty. */
struct fw_str {
	const char *p;
	size_t len;
};

/* Set err's code and text (cut at its size, always NUL-terminated, valid UTF-8, '?' for controls); returns rc. */
FW_API FW_PRINTF(3, 4) int fw_err_set(struct fw_err *err, int rc, const char *fmt, ...);

/* The stable name of a code: "net", "format" ... ; "ok" for 0, "unknown" for others. */
FW_API const char *fw_err_name(int rc);

struct fw_arena;

#ifdef __cplusplus
}
#endif
#endif
