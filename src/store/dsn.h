/* SPDX-License-Identifier: ISC */
/*
 * Parse URLs of servers: scheme://user:password@host:port/path?option=value&... For drivers, and
 * for destinations of orders.
 */
#ifndef FW_STORE_DSN_H
#define FW_STORE_DSN_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/types.h"

#define FW_DSN_OPTIONS 32
#define FW_DSN_STORE "store URL"
#define FW_DSN_SHOW_MAX 300 /* bytes */

struct fw_dsn {
	const char *what; /* for errors */
	/* Percent-decoded; absent: p NULL. path has no leading slash. */
	struct fw_str scheme, user, password, host, path;
	int port; /* 0: the engine's default */
	size_t option_n;
	struct {
		struct fw_str name, value;
	} option[FW_DSN_OPTIONS];
};

/*
 * Split a URL. what: what it is, for errors; borrowed. Strings are NUL-terminated copies in the
 * arena. FW_EINVAL, with the position: a bad port, a bad percent escape, an option without a name
 * or repeated, more than FW_DSN_OPTIONS; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_dsn_split(
	struct fw_arena *a, const char *what, const char *url, struct fw_dsn *out, struct fw_err *err);
/* An option's value; absent if the URL lacks it. */
struct fw_str fw_dsn_option(const struct fw_dsn *d, const char *name);
/* FW_EINVAL if an option is not in known (NULL-ended); the error lists the known ones. */
FW_MUST_CHECK int fw_dsn_only(const struct fw_dsn *d, const char *const *known, struct fw_err *err);
/* An option as a number from min to max; fallback if the URL lacks it. */
FW_MUST_CHECK int fw_dsn_number(const struct fw_dsn *d, const char *name, int64_t min, int64_t max, int64_t fallback,
	int64_t *out, struct fw_err *err);
/*
 * Append the URL for people and logs: passwords as "***", in options too; cut to FW_DSN_SHOW_MAX
 * bytes.
 */
void fw_dsn_show(struct fw_buf *out, const char *url);

#endif
