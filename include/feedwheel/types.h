/* SPDX-License-Identifier: ISC */
/*
 * Types that every feedwheel header shares: export macros, error codes, the borrowed string.
 *
 * A function that can fail returns an int: 0 or a negative FW_E*. It also fills a struct fw_err of
 * the caller with a text for people. Each code exists because some caller handles it differently.
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
	FW_EINVAL = -1,     /* wrong argument or configuration: fix the caller */
	FW_EFORMAT = -2,    /* not a feed, or not the requested format: poll less often */
	FW_ENET = -3,       /* network or remote server failed: back off */
	FW_EGONE = -4,      /* gone for good: stop polling */
	FW_EAGAIN = -5,     /* busy or full: retry later */
	FW_ELIMIT = -6,     /* over a configured limit: drop */
	FW_ENOMEM = -7,     /* no memory */
	FW_EIO = -8,        /* local storage or system failed: not the feed's fault */
	FW_EUNSUP = -9,     /* not supported by this build or driver */
	FW_ENOTFOUND = -10, /* no such feed, entry, file */
	FW_EBLOCKED = -11,  /* the address guard refused the destination */
	FW_EVERSION = -12,  /* the store is newer than this program: upgrade the program */
	FW_ESTALE = -13,    /* the lease is gone: nothing was written */
	FW_EUNUSABLE = -14, /* the store is damaged, or not ours to use: a person must mend it */
	FW_ECLASH = -15,    /* an id belongs to another row: nothing was written */
};

/* An error with its text for people. Usually on the caller's stack; functions accept NULL. */
struct fw_err {
	int rc;
	char text[300];
};

/* Borrowed bytes, not NUL-terminated. p NULL: absent. len 0 with p set: empty. */
struct fw_str {
	const char *p;
	size_t len;
};

/*
 * Set err's code and text; returns rc. The text is cut to its size, NUL-terminated and valid UTF-8,
 * with '?' for control characters. err may be NULL.
 */
FW_API FW_PRINTF(3, 4) int fw_err_set(struct fw_err *err, int rc, const char *fmt, ...);

/* The stable name of a code: "net", "format" ...; "ok" for 0, "unknown" for other values. */
FW_API const char *fw_err_name(int rc);
/*
 * "0.2.0" of a release; "0.2.0+g1234abcd" of what came after it, with the commit; "0.2.0+dev" if
 * that is not known.
 */
FW_API const char *fw_version(void);

struct fw_arena;

#ifdef __cplusplus
}
#endif
#endif
