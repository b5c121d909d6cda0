/* SPDX-License-Identifier: ISC */
#include "store/feed_access.h"

struct fw_str account_feed_key(struct account_feed_key *k, int64_t feed_id)
{
	(void)fw_snprintf(k->text, sizeof(k->text), "%lld", (long long)feed_id);
	return fw_str(k->text);
}

bool feed_login_is(const struct feed_login *l)
{
	return l->username.len || l->password.len;
}

bool feed_login_same(const struct feed_login *a, const struct feed_login *b)
{
	return fw_str_eq(a->username, b->username) && fw_str_eq(a->password, b->password);
}

int store_logins_differ(const char *store, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"%s: feed %lld is not merged into feed %lld: they have different logins, and whoever reads one may"
		" not know the other's",
		store, (long long)from_id, (long long)into_id);
}

static const char *feed_access_why(const struct feed_claim *c)
{
	if (feed_login_is(&c->known))
		return "it is subscribed here with another login, and accounts share a feed only with the same login:"
		       " https://NAME:PASSWORD@HOST/...";
	return c->by_account ? "it is subscribed here without a login: subscribe to it without one; if it needs one,"
			       " try again when its first visit has shown that" :
			       "the operator added it without a login, which no account changes: subscribe to it"
			       " without one, or ask the operator";
}

enum feed_access feed_access_decide(const struct feed_claim *c, const char **why)
{
	bool given = feed_login_is(&c->given), known = feed_login_is(&c->known);

	*why = NULL;
	if (feed_login_same(&c->given, &c->known) || (!given && c->own))
		return FEED_ACCESS_AS_IT_IS;
	if (given && c->by_account && !c->others_n && (c->own || !known))
		return FEED_ACCESS_LOGIN;
	if (given && c->by_account && !known && c->empty && c->shut)
		return FEED_ACCESS_ANEW;
	*why = feed_access_why(c);
	return FEED_ACCESS_REFUSED;
}
