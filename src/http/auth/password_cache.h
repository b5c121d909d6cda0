/* SPDX-License-Identifier: ISC */
/*
 * Passwords that were right, for PASSWORD_CACHE_MS: clients with HTTP Basic send theirs with each
 * request, and checking one is slow on purpose. The cache has an HMAC of name and password with a
 * key of this process, never the password. An entry is good for one state of the account only: mark
 * changes with the password (struct fw_account). Of a fixed size; any thread; time is an argument.
 */
#ifndef FW_HTTP_AUTH_PASSWORD_CACHE_H
#define FW_HTTP_AUTH_PASSWORD_CACHE_H

#include "base/clock.h"
#include "base/str.h"

#define PASSWORD_CACHE_MS (5 * FW_MINUTE_MS)
#define PASSWORD_CACHE_N 1024

struct password_cache;

struct password_cache *password_cache_create(void); /* NULL: no memory, or no randomness */
void password_cache_destroy(struct password_cache *c);
/* Was this password right for the account's state `mark`? now_ms is monotonic. */
FW_MUST_CHECK bool password_cache_has(
	struct password_cache *c, struct fw_str name, struct fw_str password, uint64_t mark, int64_t now_ms);
void password_cache_add(
	struct password_cache *c, struct fw_str name, struct fw_str password, uint64_t mark, int64_t now_ms);

#endif
