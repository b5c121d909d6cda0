/* SPDX-License-Identifier: ISC */
/*
 * Access tokens: the scopes of HTTP clients. A token is random, and shown once, when it is created.
 * The store keeps its hash, in a record of kind "token" (feedwheel-store(7)).
 */
#ifndef FW_API_TOKEN_H
#define FW_API_TOKEN_H

#include "feedwheel/store.h"

struct fw_arena;
struct fw_buf;

/* FW_SCOPE_FEED: to read one feed that goes out (api/feed_out.h); alone, and bound to its name */
enum { FW_SCOPE_PUSH = 1, FW_SCOPE_READ = 2, FW_SCOPE_ADMIN = 4, FW_SCOPE_FEED = 8, FW_SCOPE_ALL = 15 };

#define FW_TOKEN_NAME_MAX 64
#define FW_TOKEN_TEXT_MAX 48   /* "fwt_", 43 letters, NUL */
#define FW_TOKEN_SCOPES_MAX 24 /* "push,read,admin,feed", NUL */
#define FW_TOKEN_HASH_BYTES 32
#define FW_TOKENS_MAX 1000

struct fw_token {
	struct fw_str name;
	unsigned scopes;  /* FW_SCOPE_* */
	int64_t at_ms;    /* time of creation */
	int64_t until_ms; /* expiry; FW_NO_DATE: never */
	/* last use, within some minutes; 0: never. Only with fw_token_list(..., true) */
	int64_t used_ms;
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	/* what it may push or read: fw_token_bound_next(); absent: all */
	struct fw_str bound;
	/* its record is invalid: it grants nothing, and counts for all scopes */
	bool broken;
};

/*
 * Parses "push,read" into bits. Errors: FW_EINVAL names the unknown word and the known ones. "feed"
 * is known here without the name, which is in the binding.
 */
FW_MUST_CHECK int fw_token_scopes_parse(struct fw_str words, unsigned *out, struct fw_err *err);
void fw_token_scopes_show(unsigned scopes, char out[FW_TOKEN_SCOPES_MAX]);
/*
 * Iterates over the binding of a token: feeds that it may push entries to, or properties that its
 * events may have; or the feed that it may read. *rest: fw_token.bound at first. False: the end, or
 * invalid (*wrong, which may be NULL).
 */
struct fw_token_bound {
	int64_t feed_id;        /* 0: none */
	struct fw_str property; /* absent: none */
	/* name of a feed that goes out, with %XX; absent: none. fw_token_feed_name() decodes it */
	struct fw_str out;
};
#define FW_TOKEN_BOUND_MAX 4000 /* bytes */
FW_MUST_CHECK bool fw_token_bound_next(struct fw_str *rest, struct fw_token_bound *out, bool *wrong);
/*
 * Adds one to a binding; `out` is not escaped yet. Errors: FW_EINVAL a property that cannot be
 * bound; FW_ELIMIT; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_token_bind(struct fw_buf *bound, const struct fw_token_bound *to, struct fw_err *err);
/* Does the binding allow this? An absent binding allows everything. */
bool fw_token_allows_feed(struct fw_str bound, int64_t feed_id);
bool fw_token_allows_property(struct fw_str bound, struct fw_str property);
bool fw_token_allows_events(struct fw_str bound); /* events of any property */
/* The full name ("folder/News") of the feed that a token may read; absent: none, or no memory. */
struct fw_str fw_token_feed_name(struct fw_str bound, struct fw_arena *a);
/*
 * Creates a token, and writes it to text. It stays after its expiry until it is removed, so that
 * whatever needed a token still needs one. bound: for fw_token_bound_next(), only with the scope
 * push, or feed, which needs one; absent: not bound.
 * Errors: FW_EINVAL invalid name, scopes, binding or time, or the name is taken; FW_ELIMIT there
 * are FW_TOKENS_MAX; those of the store.
 */
FW_MUST_CHECK int fw_token_add(struct fw_store *st, struct fw_str name, unsigned scopes, struct fw_str bound,
	int64_t now_ms, int64_t until_ms, char text[FW_TOKEN_TEXT_MAX], struct fw_err *err);
/* FW_ENOTFOUND: no such token */
FW_MUST_CHECK int fw_token_remove(struct fw_store *st, struct fw_str name, struct fw_err *err);
typedef int fw_token_cb(void *ctx, const struct fw_token *t);
/*
 * Lists tokens by name; used: with used_ms. A callback's result other than 0 stops it and is
 * returned.
 */
FW_MUST_CHECK int fw_token_list(struct fw_store *st, bool used, fw_token_cb *cb, void *ctx, struct fw_err *err);
/* Records its last use. */
FW_MUST_CHECK int fw_token_note_use(struct fw_store *st, struct fw_str name, int64_t used_ms, struct fw_err *err);
/* SHA-256 of a token. False: out of memory. */
FW_MUST_CHECK bool fw_token_hash(struct fw_str text, unsigned char out[FW_TOKEN_HASH_BYTES]);

/*
 * Does this server accept requests without a token? Only with FW_TOKENLESS_OPEN, and only from
 * programs on its own machine. Each other value closes all scopes to clients without a token.
 * Settings that imply remote clients do so too: behind a proxy or a published port every client
 * seems to be local.
 */
struct fw_config;
enum fw_tokenless {
	FW_TOKENLESS_OPEN,
	FW_TOKENLESS_TOKENS,  /* a token exists, of any scope, valid or not */
	FW_TOKENLESS_LISTEN,  /* listen is neither a loopback address nor a unix socket */
	FW_TOKENLESS_PROXIES, /* trusted_proxies is set */
	FW_TOKENLESS_WEBSUB,  /* websub_url is set */
};
enum fw_tokenless fw_tokenless(const struct fw_config *c, bool tokens);
/* The reason, to follow "refused: " or "for "; "" for FW_TOKENLESS_OPEN. */
const char *fw_tokenless_why(enum fw_tokenless t);
/* Which requests are accepted without a token, in a sentence: for the server's log and doctor. */
#define FW_TOKENLESS_TEXT_MAX 300
void fw_tokenless_text(enum fw_tokenless t, char out[FW_TOKENLESS_TEXT_MAX]);
/* True if listen is a loopback address or a unix socket, or NULL. */
bool fw_listen_is_local(const char *listen);

#endif
