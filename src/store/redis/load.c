/* SPDX-License-Identifier: ISC */
/* Loading: new subscriptions, and rows copied from another store. */
#include "store/redis/redis.h"

struct redis_load {
	struct rs *r;
	int64_t now_ms;
};

/* other ("": none): a counter that is raised with it. */
static int last_id_raise(struct rs *r, const char *name, int64_t last, const char *other, struct fw_err *err)
{
	if (!last)
		return 0;
	rs_call(r, RS_WRITE, "raise");
	rs_adds(r, name);
	rs_addi(r, last);
	rs_adds(r, other);
	return rs_run(r, "reserving ids", err);
}

/* ---- feeds ----------------------------------------------------------------------------------- */

static void load_feed_add(const struct redis_load *w, const struct fw_feed *feed)
{
	struct fw_feed f = *feed;

	f.due_at_ms = f.id || f.due_at_ms ? f.due_at_ms : w->now_ms;
	f.created_ms = f.id || f.created_ms ? f.created_ms : w->now_ms;
	rs_addi(w->r, f.id);
	rs_add(w->r, f.url);
	rs_schedule_row_pack(rs_word(w->r), &f, &(struct rs_schedule_row){.host_id = store_feed_host_id(feed)});
	rs_word_end(w->r);
	rs_feed_row_pack(rs_word(w->r), FW_STR_NONE, ~0u, &f);
	rs_word_end(w->r);
}

static int load_feeds(const struct redis_load *w, const struct store_load *l, struct fw_err *err)
{
	const struct fw_feed *feed = l->rows.feed;
	size_t n = l->rows.feed_n, nth;
	struct rs *r = w->r;
	const struct rs_reply *made;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (feed[i].id < 0 || feed[i].id > STORE_ID_MAX || (!feed[i].id && !l->made))
			return fw_err_set(err, FW_EINVAL, "%s: feed %lld (%.*s): the number of a feed is out of range",
				r->target.name, (long long)feed[i].id, FW_STR_ARG(fw_str_sub(feed[i].url, 0, 100)));
	}
	rs_call(r, RS_WRITE, "create");
	rs_expect_n(r, "[(ii)=]|[ii]", n);
	rs_addi(r, (int64_t)n);
	for (size_t i = 0; i < n; i++)
		load_feed_add(w, &feed[i]);
	rc = rs_run(r, "storing feeds", err);
	made = rc ? NULL : rs_elem(r->reply[0], 0);
	if (!rc && made->type != RS_ARRAY) {
		nth = (size_t)rs_int(made);
		return nth >= n ?
			rs_malformed(r, "storing feeds", err) :
			fw_err_set(err, FW_EINVAL,
				"%s: feed %lld (%.*s) differs from the stored feed %lld: copy into an empty "
				"store",
				r->target.name, (long long)feed[nth].id, FW_STR_ARG(fw_str_sub(feed[nth].url, 0, 100)),
				(long long)rs_int(rs_elem(r->reply[0], 1)));
	}
	for (size_t i = 0; !rc && l->made && i < n; i++)
		l->made[i] = (struct store_feed_new){rs_int(rs_elem(made, 2 * i)), !rs_int(rs_elem(made, 2 * i + 1))};
	return rc;
}

/* ---- entries, keys, visits ------------------------------------------------------------------- */

static void load_key_add(struct rs *r, int64_t feed_id, const unsigned char key[16], const struct rs_key_value *k)
{
	rs_call(r, RS_WRITE, "load_entry");
	rs_addi(r, feed_id);
	rs_add(r, (struct fw_str){(const char *)key, 16});
	rs_key_value_pack(rs_word(r), k);
	rs_word_end(r);
}

static void load_entry_add(struct rs *r, const struct fw_entry_row *e)
{
	struct rs_key_value known = {e->hash, e->id, fw_store_entry_date(e, e->seen_ms)};

	load_key_add(r, e->feed_id, e->key, &known);
	rs_entry_pack(rs_word(r), e);
	rs_word_end(r);
}

/* What is stored already stays, and so does the first of two rows with one id or key. */
static int load_entries(struct rs *r, const struct fw_entry_row *e, size_t n, struct fw_err *err)
{
	int64_t last = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		last = FW_MAX(last, e[i].id);
	rc = last_id_raise(r, "entry_id", last, "", err);
	for (size_t i = 0; !rc && i < n; i++)
		load_entry_add(r, &e[i]);
	return rc ? rc : rs_run(r, "storing entries", err);
}

static int load_keys(struct rs *r, const struct fw_entry_key *key, size_t n, struct fw_err *err)
{
	for (size_t i = 0; i < n; i++)
		load_key_add(r, key[i].feed_id, key[i].key, &(struct rs_key_value){.hash = key[i].hash});
	return rs_run(r, "storing keys", err);
}

static int load_visits(struct rs *r, const struct fw_visit *v, size_t n, struct fw_err *err)
{
	int64_t last = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		last = FW_MAX(last, v[i].id);
	rc = last_id_raise(r, "visit_id", last, "", err);
	for (size_t i = 0; !rc && i < n; i++) {
		rs_call(r, RS_WRITE, "load_visit");
		rs_addi(r, v[i].feed_id);
		rs_addi(r, v[i].id);
		rs_visit_pack(rs_word(r), &v[i], 0);
		rs_word_end(r);
	}
	return rc ? rc : rs_run(r, "storing visits", err);
}

static int redis_load_part(void *to, const struct store_load *l, struct fw_err *err)
{
	struct redis_load *w = to;
	struct rs *r = w->r;
	int rc = rs_slot_start(r, true, err);

	if (!rc && l->rows.feed_n)
		rc = load_feeds(w, l, err);
	if (!rc && l->rows.entry_n)
		rc = load_entries(r, l->rows.entry, l->rows.entry_n, err);
	if (!rc && l->rows.key_n)
		rc = load_keys(r, l->rows.key, l->rows.key_n, err);
	/* the log of changes starts above this number, unless the store has used it */
	if (!rc)
		rc = last_id_raise(r, "entry_id", l->rows.change_id, "changes_pruned_id", err);
	return !rc && l->rows.visit_n ? load_visits(r, l->rows.visit, l->rows.visit_n, err) : rc;
}

int rs_load(struct store *st, const struct store_load *l, struct fw_err *err)
{
	struct redis_load w = {.r = rs_of(st)};
	int rc = rs_clock(st, &w.now_ms, err);

	return rc ? rc : l->each ? l->each(l->ctx, redis_load_part, &w, err) : redis_load_part(&w, l, err);
}
