/* SPDX-License-Identifier: ISC */
/*
 * Access tokens: who may do what over HTTP. A token is random and shown once, when it is made; the store keeps its hash, as a record of
 * kind "token" (feedwheel-store(7)).
 */
#ifndef FW_API_TOKEN_H
#define FW_API_TOKEN_H

#include "feedwheel/store.h"

struct fw_buf;

enum { FW_SCOPE_PUSH = 1, FW_SCOPE_READ = 2, FW_SCOPE_ADMIN = 4, FW_SCOPE_ALL = 7 };

#define FW_TOKEN_NAME_MAX 64
#define FW_TOKEN_TEXT_MAX 48   /* "fwt_", 43 letters, NUL */
#define FW_TOKEN_SCOPES_MAX 20 /* "push,read,admin", NUL */
#define FW_TOKEN_HASH_BYTES 32
#define FW_TOKENS_MAX 1000

struct fw_token {
	struct fw_str name;
	unsigned scopes;             /* FW_SCOPE_* */
	int64_t at_ms;               /* when it was made */
	int64_t until_ms;            /* from then on it is refused; FW_NO_DATE: never */
	int64_t used_ms;             /* when it last opened something, to some minutes; 0: never. With fw_token_list(..., true) only */
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	struct fw_str bound;         /* what it may push, and nothing else: fw_token_bound_next(); absent: all */
	bool broken;                 /* what the store holds cannot be read: it opens nothing, and counts for all scopes */
};

/* "push,read" into bits. Errors: FW_EINVAL names the word and those that there are. */
FW_MUST_CHECK int fw_token_scopes(struct fw_str words, unsigned *out, struct fw_err *err);
void fw_token_scopes_show(unsigned scopes, char out[FW_TOKEN_SCOPES_MAX]);
/*
 * One by one what a token is bound to: a feed, into which it may push entries, or a property, which its events may have. *rest: at first
 * fw_token.bound. False: that was all, or *wrong (which may be NULL): it cannot be read.
 */
struct fw_token_bound {
	int64_t feed_id;             /* 0: none */
	struct fw_str property;      /* absent: none */
};
#define FW_TOKEN_BOUND_MAX 4000 /* bytes */
FW_MUST_CHECK bool fw_token_bound_next(struct fw_str *rest, struct fw_token_bound *out, bool *wrong);
/* Bind it to one more. Errors: FW_EINVAL a property that no token can be bound to; FW_ELIMIT; FW_ENOMEM. */
FW_MUST_CHECK int fw_token_bind(struct fw_buf *bound, const struct fw_token_bound *to, struct fw_err *err);
/* May it, being bound to that? Absent: it may. */
bool fw_token_may_feed(struct fw_str bound, int64_t feed_id);
bool fw_token_may_property(struct fw_str bound, struct fw_str property);
bool fw_token_may_events(struct fw_str bound); /* some property's */
/*
 * Make a token, and put it into text. It stays when it has run out, until it is removed, so that what needed a token goes on needing one.
 * bound: to be read by fw_token_bound_next(), with the scope push only; absent: to nothing.
 * Errors: FW_EINVAL name, scopes, binding or time are wrong, or the name is taken; FW_ELIMIT there are FW_TOKENS_MAX; those of the store.
 */
FW_MUST_CHECK int fw_token_add(struct fw_store *st, struct fw_str name, unsigned scopes, struct fw_str bound, int64_t now_ms,
	int64_t until_ms, char text[FW_TOKEN_TEXT_MAX], struct fw_err *err);
FW_MUST_CHECK int fw_token_remove(struct fw_store *st, struct fw_str name, struct fw_err *err); /* FW_ENOTFOUND: none has that name */
typedef int fw_token_cb(void *ctx, const struct fw_token *t);
/* By name; used: fill used_ms too. As fw_store_record_list: anything but 0 stops it and is returned. */
FW_MUST_CHECK int fw_token_list(struct fw_store *st, bool used, fw_token_cb *cb, void *ctx, struct fw_err *err);
/* Note that it was used. */
FW_MUST_CHECK int fw_token_used(struct fw_store *st, struct fw_str name, int64_t used_ms, struct fw_err *err);
/* SHA-256 of a token's text. False: out of memory. */
FW_MUST_CHECK bool fw_token_hash(struct fw_str text, unsigned char out[FW_TOKEN_HASH_BYTES]);

/*
 * Does this server take requests without a token? With FW_TOKENLESS_OPEN it does, from programs on its own machine; each of
 * the others closes all scopes to everybody who has no token. Settings that say that clients from elsewhere are expected close
 * too: behind a proxy or a published port every client seems to be on this machine.
 */
struct fw_config;
enum fw_tokenless {
	FW_TOKENLESS_OPEN,
	FW_TOKENLESS_TOKENS,         /* there is a token, of whatever scope, good or not */
	FW_TOKENLESS_LISTEN,         /* listen is neither a loopback address nor a unix socket */
	FW_TOKENLESS_PROXIES,        /* trusted_proxies is set */
	FW_TOKENLESS_WEBSUB,         /* websub_url is set */
};
enum fw_tokenless fw_tokenless(const struct fw_config *c, bool tokens);
/* Why it is closed, to stand behind "for"; "" for FW_TOKENLESS_OPEN. */
const char *fw_tokenless_why(enum fw_tokenless t);
/* Who may do what without a token, in a sentence: for the server's log and for doctor. */
#define FW_TOKENLESS_WORDS_MAX 300
void fw_tokenless_words(enum fw_tokenless t, char out[FW_TOKENLESS_WORDS_MAX]);
/* listen: is it a loopback address, or a unix socket? NULL: nothing listens, true. */
bool fw_listens_locally(const char *listen);

#endif
