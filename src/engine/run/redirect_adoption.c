/* SPDX-License-Identifier: ISC */
/*
 * Redirect adoption. Each adopted address is a record of kind "moved". Its key is the old address,
 * its value "adopted ID URL" or "merged ID URL".
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/redirect_adoption.h"
#include "api/redirect_adoption.h"
#include "store/driver.h"
#include "store/feed_access.h"

#define KIND FW_STR("redirect")
#define KEPT_MS (365 * FW_DAY_MS)
#define FOUND 1 /* stops a listing */
/* entries of the document that are compared: enough to recognise a feed */
#define COMPARED ((size_t)100)

/* ---- is it the same feed? -------------------------------------------------------------------- */

struct entry_match {
	const struct fw_outcome *o;
	bool any;
};

static int entry_on_key(void *ctx, const struct fw_entry_key *k)
{
	struct entry_match *c = ctx;

	c->any = true;
	for (size_t i = 0; i < FW_MIN(c->o->entry_n, COMPARED); i++) {
		if (memcmp(c->o->entries[i].key, k->key, sizeof(k->key)) == 0)
			return FOUND;
	}
	return 0;
}

void adoption_check(struct fw_store *st, struct visit *v)
{
	struct entry_match c = {.o = &v->outcome};
	struct fw_err err;
	int rc;

	if (!v->new_target)
		return;
	v->new_target = false;
	rc = v->outcome.entry_n ? fw_store_key_list(st, v->feed.id, v->feed.id, entry_on_key, &c, &err) : FW_ENOTFOUND;
	if (rc < 0) { /* nothing to compare, or the store is unavailable */
		v->feed.redirect_url = FW_STR_NONE;
		v->feed.redirect_n = 0;
		v->feed.redirect_since_ms = 0;
	} else if (rc != FOUND && c.any) {
		v->feed.redirect_n = 0;
		fw_info("feed %lld: permanent redirect to '%.*s' not adopted: the document there has none of its "
			"entries",
			(long long)v->feed.id, FW_STR_ARG(v->feed.redirect_url));
	}
}

/* ---- records --------------------------------------------------------------------------------- */

static void adoption_record(struct fw_store *st, struct fw_str from, struct fw_str to, int64_t feed_id, const char *how)
{
	struct fw_record r = {.kind = KIND, .key = from, .at_ms = fw_store_now_ms(st)};
	struct fw_buf b = FW_BUF_INIT(FW_RECORD_VALUE_MAX);
	struct fw_err err = {.text = "out of memory"};

	fw_buf_addf(&b, "%s %lld ", how, (long long)feed_id);
	fw_buf_addstr(&b, to);
	r.value = fw_buf_str(&b);
	r.until_ms = r.at_ms + KEPT_MS;
	/* an address too long for a key is only logged */
	if (b.rc || (from.len <= FW_RECORD_KEY_MAX && fw_store_record_put(st, &r, false, NULL, &err)))
		fw_warn("'%.*s': redirect adoption not recorded: %s", FW_STR_ARG(from), err.text);
	fw_buf_finish(&b);
}

static bool adoption_parse(const struct fw_record *r, struct fw_adoption *m)
{
	struct fw_str rest, how = fw_str_split(r->value, ' ', &rest), id = fw_str_split(rest, ' ', &rest);

	*m = (struct fw_adoption){
		.from = r->key, .to = rest, .at_ms = r->at_ms, .merged = fw_str_eq(how, FW_STR("merged"))};
	return fw_str_int(id, &m->feed_id) && rest.len;
}

int fw_adoption_find(
	struct fw_store *st, struct fw_str from, struct fw_arena *a, struct fw_adoption *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = from.len && from.len <= FW_RECORD_KEY_MAX ? fw_store_record_get(st, KIND, from, a, &r, err) :
							     FW_ENOTFOUND;

	*out = (struct fw_adoption){0};
	if (!rc && !adoption_parse(&r, out))
		rc = FW_ENOTFOUND;
	return rc == FW_ENOTFOUND ? fw_err_set(err, rc, "no feed has left this address") : rc;
}

struct adoption_walk {
	int64_t feed_id;
	fw_adoption_cb *cb;
	void *ctx;
};

static int adoption_on_record(void *ctx, const struct fw_record *r)
{
	struct adoption_walk *w = ctx;
	struct fw_adoption m;

	return adoption_parse(r, &m) && m.feed_id == w->feed_id ? w->cb(w->ctx, &m) : 0;
}

int fw_adoption_list(struct fw_store *st, int64_t feed_id, fw_adoption_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_record_query q = {.kind = KIND};
	struct adoption_walk w = {feed_id, cb, ctx};

	return fw_store_record_list(st, &q, adoption_on_record, &w, err);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Copy the person's settings of the feed that is removed, where the other one has none. */
static int feed_copy_settings(
	struct fw_store *st, const struct fw_feed *from, const struct fw_feed *into, struct fw_err *err)
{
	struct fw_feed to = {.id = into->id,
		.user_title = from->user_title,
		.folder = from->folder,
		.interval_ms = from->interval_ms,
		.status = FW_FEED_ACTIVE,
		.due_at_ms = from->due_at_ms};
	unsigned what = 0;

	if (from->user_title.len && !into->user_title.len)
		what |= FW_SET_TITLE;
	if (from->folder.len && !into->folder.len)
		what |= FW_SET_FOLDER;
	if (from->interval_ms && !into->interval_ms)
		what |= FW_SET_INTERVAL;
	if (into->status == FW_FEED_GONE) /* this visit has just shown that it is not gone */
		what |= FW_SET_STATUS | FW_SET_DUE;
	return what ? fw_store_feed_set(st, &to, what, err) : 0;
}

/* A feed that the operator added stays the operator's: accounts that leave do not pause it. */
static int feed_pass_owner(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct account_feed_key k;
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, STORE_ACCOUNT_FEED, account_feed_key(&k, from_id), &a, &r, err);
	fw_arena_finish(&a);
	if (rc == FW_ENOTFOUND)
		rc = fw_store_record_remove(st, STORE_ACCOUNT_FEED, account_feed_key(&k, into_id), FW_STR_NONE, err);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

const char *fw_adoption_refused(const struct fw_feed *from, const struct fw_feed *into)
{
	const struct feed_login a = {from->username, from->password}, b = {into->username, into->password};

	if (into->status == FW_FEED_PAUSED)
		return "is paused";
	if (into->status == FW_FEED_QUARANTINED)
		return "is quarantined";
	return feed_login_same(&a, &b) ? NULL : "has another login, or only one of them has one";
}

static void adoption_merge(struct fw_store *st, const struct visit *v, struct fw_meter_slot *m)
{
	const struct fw_feed *from = v->was;
	const char *refused = NULL;
	struct fw_feed into;
	struct fw_arena a;
	struct fw_err err;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_feed_find(st, 0, v->feed.url, &a, &into, &err);
	if (!rc)
		refused = fw_adoption_refused(from, &into);
	if (refused) {
		fw_info("feed %lld: not merged: it moved to '%.*s', which is feed %lld, which %s", (long long)from->id,
			FW_STR_ARG(into.url), (long long)into.id, refused);
		goto out;
	}
	if (!rc)
		rc = feed_copy_settings(st, from, &into, &err);
	if (!rc)
		rc = feed_pass_owner(st, from->id, into.id, &err);
	if (!rc)
		rc = store_of(st)->driver->feed_adopt(store_of(st), from->id, into.id, &err);
	if (rc) {
		fw_warn("feed %lld: not merged yet: it moved to '%.*s', which is subscribed already: %s",
			(long long)from->id, FW_STR_ARG(v->feed.url), err.text);
		goto out;
	}
	fw_info("feed %lld: merged: '%.*s' moved to '%.*s', which is feed %lld", (long long)from->id,
		FW_STR_ARG(from->url), FW_STR_ARG(into.url), (long long)into.id);
	adoption_record(st, from->url, into.url, into.id, "merged");
	meter_count(m, FW_COUNT_MERGED, 1);
out:
	fw_arena_finish(&a);
}

void adoption_finish(struct fw_store *st, const struct visit *v, struct fw_meter_slot *m)
{
	const struct fw_feed *was = v->was;

	/* the switch from a page to its feed is not an adoption */
	if (!(v->outcome.groups & FW_GROUP_URL) || v->page_replaced || fw_str_eq(was->url, v->feed.url))
		return;
	if (v->outcome.rc == FW_EINVAL) {
		adoption_merge(st, v, m);
	} else if (!v->outcome.rc) {
		fw_info("feed %lld: permanent redirect adopted: '%.*s' moved to '%.*s'", (long long)was->id,
			FW_STR_ARG(was->url), FW_STR_ARG(v->feed.url));
		adoption_record(st, was->url, v->feed.url, was->id, "adopted");
		meter_count(m, FW_COUNT_ADOPTED, 1);
	}
}
