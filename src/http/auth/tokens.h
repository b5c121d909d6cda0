/* SPDX-License-Identifier: ISC */
/*
 * Authorization: the access tokens in memory, and what they say about a presented one.
 *
 * While the store has no token, programs on this machine need none. tokenless.h says which requests
 * are theirs, fw_tokenless() with which settings. Once a token exists, of any scope, every client
 * needs one. An expired token counts too, so that access does not open by itself.
 *
 * The auth rate limiter (limiter.h) throttles networks that sent too many wrong tokens. From
 * such a network only a token that was used there before is accepted. All other requests with a
 * token get a 429, whether the token is right or wrong, so that guessing reveals nothing.
 *
 * Threads: a service (api/service.h) reads the tokens from the store every AUTH_READ_MS; the server
 * threads share the result by reference count.
 */
#ifndef FW_HTTP_AUTH_TOKENS_H
#define FW_HTTP_AUTH_TOKENS_H

#include "base/clock.h"
#include "feedwheel/engine.h"
#include "api/token.h"
#include "http/auth/basic.h"

struct auth;
#define AUTH_READ_MS FW_SECOND_MS
#define AUTH_NETWORKS 8

struct auth_token {
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	unsigned scopes;
	int64_t until_ms;
	bool broken;
	char name[FW_TOKEN_NAME_MAX + 1];
	char *bound;             /* fw_token.bound, or NULL */
	_Atomic int64_t used_ms; /* Unix time of its last use, to AUTH_USED_MS; 0: not since the start */
	_Atomic uint64_t network[AUTH_NETWORKS]; /* the last networks where it was right; 0: none */
	_Atomic unsigned network_n;              /* counts writes to home */
	int64_t stored_used_ms;                  /* used_ms as it is in the store; only for the auth thread */
};
#define AUTH_USED_MS FW_MINUTE_MS

/* A snapshot of all tokens. Only their last use changes. Freed with the last reference. */
struct auth_tokens {
	_Atomic size_t ref_n;
	size_t n;
	struct auth_token at[];
};

/* A thread's reference to a snapshot. Zeros at first. */
struct auth_view {
	struct auth_tokens *tokens; /* NULL: not read from the store yet */
	uint64_t version;           /* the snapshot's number */
};

enum auth_verdict {
	AUTH_OK,
	AUTH_NOT_READY, /* the tokens could not be read yet */
	AUTH_TOKENLESS, /* no token exists, and this request needs one: enum tokenless */
	AUTH_MISSING,   /* a token is needed, and the request has none */
	AUTH_WRONG,     /* unknown or expired token */
	AUTH_SCOPE,     /* the token has other scopes */
	AUTH_LIMITED,   /* the client's network is throttled */
	AUTH_BODY,      /* authorized, but a page of another site could have sent a body of this type */
	AUTH_BOUND,     /* the token is bound to other feeds or properties */
	AUTH_ORIGIN,    /* a page of another site sends it: to an account's route, or with a token by Basic */
};

/* How a request was authorized. */
struct auth_pass {
	unsigned scope; /* FW_SCOPE_*, of which the token has one */
	bool token;     /* by the token with this hash; false: without a token */
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	uint64_t version;  /* number of the snapshot that was used */
	int64_t until_ms;  /* when the token expires; FW_NO_DATE: never */
	const char *bound; /* the token's; valid as long as the snapshot */
};

/* Waits up to 3 s for the first read of the tokens. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int auth_open(const struct fw_config *c, struct auth **out, struct fw_err *err);
void auth_close(struct auth *a); /* after the last use of a view. NULL is fine */
/*
 * Update the view to the newest snapshot. Without a newer one it costs one atomic read. NULL: not
 * read yet.
 */
struct auth_tokens *auth_view_update(struct auth *a, struct auth_view *v);
void auth_view_finish(struct auth_view *v);
bool auth_store_is_up(const struct auth *a);   /* the last read of the store succeeded */
uint64_t auth_failure_n(const struct auth *a); /* wrong tokens */
uint64_t auth_limited_n(const struct auth *a); /* requests refused by the rate limiter */

/*
 * The token in an Authorization header: "Bearer TOKEN", or the password of "Basic ..." (any user
 * name). Absent: neither. The result points into header or buffer.
 */
#define AUTH_PRESENTED_MAX BASIC_MAX
struct fw_str auth_presented(struct fw_str header, char buffer[AUTH_PRESENTED_MAX]);
struct auth_request {
	unsigned scope; /* FW_SCOPE_*: one of them is needed */
	struct fw_str presented;
	uint64_t network; /* the client's */
	bool limited;     /* that network is throttled */
};
/*
 * Check a token for a scope. Compares it with all tokens, in a time that does not depend on the
 * match. AUTH_OK (sets *pass without turn), AUTH_MISSING, AUTH_WRONG, AUTH_SCOPE or AUTH_LIMITED.
 */
enum auth_verdict auth_check_token(
	struct auth_tokens *t, const struct auth_request *q, int64_t now_ms, struct auth_pass *pass);
/* The setting by which all requests need a token; FW_TOKENLESS_OPEN: none. */
enum fw_tokenless auth_closed(const struct auth *a);
/* Any thread: how long the network stays throttled; 0: it is not. */
int64_t auth_throttled_ms(struct auth *a, uint64_t network, int64_t now_ms);
void auth_count_limited(struct auth *a); /* a request was refused for that */
/*
 * Any thread: a wrong token or password came. Warns when the network is throttled by it; address:
 * for that line.
 */
void auth_count_wrong(struct auth *a, uint64_t network, struct fw_str address, int64_t now_ms);
/* Is a pass still valid with these tokens? Updates its until_ms. */
bool auth_pass_is_valid(const struct auth_tokens *t, struct auth_pass *pass, int64_t now_ms);

#endif
