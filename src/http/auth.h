/* SPDX-License-Identifier: ISC */
/*
 * Who may do what: access tokens in memory, and the rule.
 *
 * As long as there is no token, programs on this machine need none: tokenless.h says which requests are theirs,
 * fw_tokenless() in which settings. With the first token, whatever its scope, everybody needs one, this machine too; also
 * when it has run out, for what was closed does not open by itself.
 *
 * From a network that sent too many wrong tokens (guesses.h), a token is let in only if it is at home there: it was right there before.
 * All others are told to wait, right or wrong, so that nobody learns which of the two theirs was.
 */
#ifndef FW_HTTP_AUTH_H
#define FW_HTTP_AUTH_H

#include "base/clock.h"
#include "feedwheel/engine.h"
#include "api/token.h"

struct auth; /* of a server: a thread looks for tokens in the store every AUTH_LOOK_MS, and what it found last holds meanwhile */
#define AUTH_LOOK_MS FW_SECOND_MS
#define AUTH_HOMES 8

struct auth_token {
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	unsigned scopes;
	int64_t until_ms;
	bool broken;
	char name[FW_TOKEN_NAME_MAX + 1];
	char *bound;                 /* fw_token.bound, or NULL */
	_Atomic int64_t used_ms;     /* when it last opened something, to a minute; 0: not since this server was started */
	_Atomic uint64_t home[AUTH_HOMES]; /* networks where it did so last; 0: none */
	_Atomic unsigned home_n;
	int64_t noted_ms;            /* what the store has of that; the thread's */
};
#define AUTH_USED_MS FW_MINUTE_MS

/* All tokens as they were at one time; but for their last use never changed, and freed with the last who holds it. */
struct auth_tokens {
	_Atomic size_t holder_n;
	size_t n;
	struct auth_token at[];
};

/* A server thread's: what it holds of them. Zeros at first. */
struct auth_view {
	struct auth_tokens *tokens;  /* NULL: the store has not told yet */
	uint64_t turn;
};

enum auth_verdict {
	AUTH_MAY,
	AUTH_UNKNOWN,                /* nobody knows which tokens there are */
	AUTH_TOKENLESS,              /* there are no tokens, and this may not go without one: enum tokenless */
	AUTH_MISSING,                /* a token is needed, and none was given */
	AUTH_WRONG,                  /* it is no token, or not any more */
	AUTH_OTHER,                  /* it is one, for other scopes */
	AUTH_WAIT,                   /* whatever it is, too many wrong ones came from there */
	AUTH_BODY,                   /* it may, but a page of another site could have sent a body of this type */
	AUTH_BOUND,                  /* it is bound to other feeds or properties */
};

/* By what a request was let in. */
struct auth_pass {
	unsigned scope;              /* one FW_SCOPE_* */
	bool token;                  /* by this one; else because nobody needs one here */
	unsigned char hash[FW_TOKEN_HASH_BYTES];
	uint64_t turn;               /* of the tokens that were looked at */
	int64_t until_ms;            /* it holds until then, if these tokens do; FW_NO_DATE: for ever */
	const char *bound;           /* of the token: good as long as these tokens are held */
};

/* With the tokens of the store of c, when that answers soon. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int auth_open(const struct fw_config *c, struct auth **out, struct fw_err *err);
void auth_close(struct auth *a); /* NULL is fine; no view is used any more */
/* The newest tokens into the view; costs nothing when it has them. */
struct auth_tokens *auth_look(struct auth *a, struct auth_view *v);
void auth_view_finish(struct auth_view *v);
bool auth_reached(const struct auth *a);      /* the store answered at the last look */
uint64_t auth_wrong_n(const struct auth *a); /* wrong tokens that were judged */
uint64_t auth_wait_n(const struct auth *a);  /* requests that were told to wait */

/*
 * What stands behind "Authorization:": a token, of "Bearer TOKEN", or as the password of "Basic ..." (any user), for programs that know
 * only that; absent: neither. It may lie in the buffer.
 */
#define AUTH_PRESENTED_MAX 200
struct fw_str auth_presented(struct fw_str header, char buffer[AUTH_PRESENTED_MAX]);
struct auth_question {
	unsigned scope;              /* one FW_SCOPE_* */
	struct fw_str presented;
	uint64_t network;            /* it comes from there */
	bool wait;                   /* too many wrong ones came from there */
};
/*
 * Is this token good for this scope, when there are tokens? Looks at all of them, in the same time whether and wherever it is found:
 * AUTH_MAY (and *pass but for its turn), AUTH_MISSING, AUTH_WRONG, AUTH_OTHER or AUTH_WAIT.
 */
enum auth_verdict auth_judge(struct auth_tokens *t, const struct auth_question *q, int64_t now_ms, struct auth_pass *pass);
/* Does a pass still hold? Its time is what the tokens say now. */
bool auth_holds(const struct auth_tokens *t, struct auth_pass *pass, int64_t now_ms);

#endif
