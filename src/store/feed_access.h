/* SPDX-License-Identifier: ISC */
/*
 * May this account have this feed? Accounts share feeds by their address, in which a login is not:
 * so whoever wants a feed that has one must know it, or could read what it protects. Subscribing,
 * imports and merges ask here, within the transaction that stores their answer.
 */
#ifndef FW_STORE_FEED_ACCESS_H
#define FW_STORE_FEED_ACCESS_H

#include "base/err.h"
#include "base/str.h"

/* The record of a feed that an account added: its kind, and its key, the feed's number. */
#define STORE_ACCOUNT_FEED FW_STR("account_feed")
struct account_feed_key {
	char text[24];
};
struct fw_str account_feed_key(struct account_feed_key *k, int64_t feed_id);

struct feed_login {
	struct fw_str username, password; /* both empty: none */
};
bool feed_login_is(const struct feed_login *l);
/* Both have none, or the same name and password. Feeds are merged only then. */
bool feed_login_same(const struct feed_login *a, const struct feed_login *b);

/* FW_EINVAL; the message names both feeds. */
int store_logins_differ(const char *store, int64_t from_id, int64_t into_id, struct fw_err *err);

/* What is known when an account wants a feed that is stored. */
struct feed_claim {
	struct feed_login given, known; /* by the account; of the feed */
	bool own;                       /* the account subscribes it */
	bool by_account;                /* an account added it: it is not the operator's */
	bool empty;                     /* it was never read, and has no entry */
	bool shut;                      /* its server answered 401 */
	int64_t others_n;               /* other accounts that subscribe it */
};
enum feed_access {
	FEED_ACCESS_AS_IT_IS,
	FEED_ACCESS_LOGIN, /* with the given login, which becomes the feed's */
	FEED_ACCESS_ANEW,  /* the same, and the other subscriptions end: without a login they read nothing */
	FEED_ACCESS_REFUSED,
};
/*
 * A login is replaced by the next one that its only subscriber gives; not by one of somebody who
 * comes when all have left, because what it protected is still stored. It is never dropped. *why:
 * static words, if it is refused.
 */
enum feed_access feed_access_decide(const struct feed_claim *c, const char **why);

#endif
