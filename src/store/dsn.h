/* SPDX-License-Identifier: ISC */
/* Store URLs of servers: scheme://user:password@host:port/path?option=value&... For drivers. */
#ifndef FW_STORE_DSN_H
#define FW_STORE_DSN_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/types.h"

#define FW_DSN_OPTIONS 32
#define FW_DSN_SHOW_MAX 300 /* bytes */

struct fw_dsn {
	struct fw_str scheme, user, password, host, path; /* percent signs decoded; absent: p NULL; path without its first slash */
	int port;                                         /* 0: the engine's */
	size_t option_n;
	struct {
		struct fw_str name, value;
	} option[FW_DSN_OPTIONS];
};

/*
 * Split; strings are NUL-terminated copies in the arena (absent ones are not there at all). Errors:
 * FW_EINVAL with the place: a bad port, a bad percent sign, an option without a name or twice, more
 * than FW_DSN_OPTIONS; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_dsn_split(struct fw_arena *a, const char *url, struct fw_dsn *out, struct fw_err *err);
/* An option's value, absent when it is not there. */
struct fw_str fw_dsn_option(const struct fw_dsn *d, const char *name);
/* Every option must be one of these (NULL-ended), or FW_EINVAL names it and them. */
FW_MUST_CHECK int fw_dsn_only(const struct fw_dsn *d, const char *const *known, struct fw_err *err);
/* An option as a number within limits, or fallback when it is not there. */
FW_MUST_CHECK int fw_dsn_number(const struct fw_dsn *d, const char *name, int64_t min, int64_t max, int64_t fallback,
	int64_t *out, struct fw_err *err);
/* For people and logs: the URL with "***" for every password, also among the options; at most FW_DSN_SHOW_MAX bytes. */
void fw_dsn_show(struct fw_buf *out, const char *url);

#endif
