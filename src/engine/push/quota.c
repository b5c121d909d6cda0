/* SPDX-License-Identifier: ISC */
/*
 * A feed's quota: at most feed_daily_entries_max new entries and feed_daily_bytes_max bytes of new
 * and changed entries a day. Without it, a feed's publisher could write as fast as our disk accepts
 * it.
 *
 * - Small documents are not counted: those within the feed's share of both limits for the time
 *   since its last visit (at least a minute, at most a day). All small documents of a day together
 *   stay below the limit. So ordinary feeds cost nothing, and a feed stores at most twice the limit
 *   a day. A hub's push has no share, because the hub chooses its time.
 * - Every other document is counted in a record of kind "quota": the key is the feed's id, the
 *   value "SINCE NEW BYTES WAITING". The day starts with the first counted document. The record is
 *   read before the commit and written after it. If a hub's push comes between, the later write
 *   wins, and at most one document is not counted.
 * - For a document that may exceed a limit, the feed's keys are read, to separate new and changed
 *   entries from known ones. The newest of these are stored until the limit is reached. The rest is
 *   left out and counted as waiting.
 * - The store reports how many entries are new or changed, but not which. Below half of
 *   feed_daily_bytes_max each of them counts as the largest entry of its document. Above half the
 *   keys are read and the bytes are exact. So a feed below half of the limit is never limited.
 *
 * A caller that leaves entries out must have the document fetched again (visit_drop_validators()).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/quota.h"
#include "engine/rows.h"

#define KIND FW_STR("quota")
#define KEY_MAX 24
#define ROW_BYTES 64 /* overhead of an entry besides its texts: numbers, keys, index entries */

/* ---- the record ---------------------------------------------------------- */

static void quota_key_write(char out[KEY_MAX], int64_t feed_id)
{
	(void)fw_snprintf(out, KEY_MAX, "%019lld", (long long)feed_id);
}

/* False: the day of the record is over, or its value is invalid. */
static bool quota_record_parse(const struct fw_record *r, int64_t now_ms, struct fw_quota *q)
{
	struct fw_str rest = r->value;
	int64_t *const to[] = {&q->since_ms, &q->new_n, &q->bytes, &q->deferred_n};

	*q = (struct fw_quota){.until_ms = r->until_ms};
	for (size_t i = 0; i < FW_N(to); i++) {
		if (!fw_str_int(fw_str_split(rest, ' ', &rest), to[i]) || *to[i] < 0)
			return false;
	}
	return fw_str_int(r->key, &q->feed_id) && q->feed_id > 0 && q->until_ms > now_ms;
}

int fw_quota_get(struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_quota *out, struct fw_err *err)
{
	char key[KEY_MAX];
	struct fw_record r;
	struct fw_arena a;
	int rc;

	quota_key_write(key, feed_id);
	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, KIND, fw_str(key), &a, &r, err);
	if (!rc && !quota_record_parse(&r, now_ms, out))
		rc = fw_err_set(err, FW_ENOTFOUND, "no quota is recorded for feed %lld", (long long)feed_id);
	fw_arena_finish(&a);
	return rc;
}

struct quota_list {
	int64_t now_ms;
	fw_quota_cb *cb;
	void *ctx;
};

static int quota_list_one(void *ctx, const struct fw_record *r)
{
	struct quota_list *w = ctx;
	struct fw_quota q;

	return quota_record_parse(r, w->now_ms, &q) ? w->cb(w->ctx, &q) : 0;
}

int fw_quota_list(struct fw_store *st, int64_t now_ms, fw_quota_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_record_query q = {.kind = KIND};
	struct quota_list w = {now_ms, cb, ctx};

	return fw_store_record_list(st, &q, quota_list_one, &w, err);
}

static int64_t quota_limit(int64_t max)
{
	return max ? max : INT64_MAX;
}

bool fw_quota_is_used_up(const struct fw_config *c, const struct fw_quota *q)
{
	return q->new_n >= quota_limit(c->feed_daily_entries_max) || q->bytes >= quota_limit(c->feed_daily_bytes_max);
}

/* ---- size of a document -------------------------------------------------- */

static int64_t quota_row_bytes(const struct fw_entry_row *e)
{
	return (int64_t)(ROW_BYTES + e->guid.len + e->url.len + e->title.len + e->author.len + e->summary.len +
		e->content.len + e->content_base.len + e->extra.len);
}

static bool quota_is_within_share(int64_t n, int64_t max, int64_t elapsed_ms)
{
	return !max || (double)n * (double)FW_DAY_MS <= (double)max * (double)elapsed_ms;
}

static bool quota_document_is_small(
	const struct quota *q, const struct fw_config *c, const struct fw_feed *was, size_t n, int64_t now_ms)
{
	int64_t ms = was->last_visit_ms ? now_ms - was->last_visit_ms : FW_DAY_MS;

	ms = FW_MIN(FW_MAX(ms, FW_MINUTE_MS), FW_DAY_MS);
	return quota_is_within_share((int64_t)n, c->feed_daily_entries_max, ms) &&
		quota_is_within_share(q->bytes, c->feed_daily_bytes_max, ms);
}

static bool quota_fits(const struct quota *q, const struct fw_config *c, size_t n)
{
	return q->before.new_n + (int64_t)n <= quota_limit(c->feed_daily_entries_max) &&
		q->before.bytes + q->bytes <= quota_limit(c->feed_daily_bytes_max) / 2;
}

/* ---- which entries ------------------------------------------------------- */

enum { ROW_DEFERRED = ROW_KNOWN + 1 };

struct quota_rows {
	struct fw_entry_row *row; /* the newest last (rows.h) */
	size_t n;
	unsigned char *state; /* enum row_state, or ROW_DEFERRED */
};

/*
 * The entry that crosses the limit is stored: otherwise an entry larger than the limit would wait
 * forever.
 */
static void quota_select(struct quota_rows *r, struct quota *q, const struct fw_config *c)
{
	int64_t new_n = q->before.new_n, bytes = q->before.bytes;

	for (size_t i = r->n; i-- > 0;) {
		unsigned char *state = &r->state[i];

		if (*state == ROW_KNOWN)
			continue;
		if (bytes >= quota_limit(c->feed_daily_bytes_max) ||
			(*state == ROW_NEW && new_n >= quota_limit(c->feed_daily_entries_max))) {
			*state = ROW_DEFERRED;
			q->deferred_n++;
			continue;
		}
		new_n += *state == ROW_NEW;
		bytes += quota_row_bytes(&r->row[i]);
	}
	q->exact = true;
	q->bytes = bytes - q->before.bytes;
}

static int quota_compare_and_select(struct quota *q, struct fw_store *st, const struct fw_config *c,
	struct fw_entry_row *row, struct fw_outcome *o, struct fw_err *err)
{
	struct quota_rows r = {.row = row, .n = o->entry_n, .state = calloc(o->entry_n, 1)};
	size_t n = 0;
	int rc;

	if (r.state)
		rc = rows_compare(st, o->feed_id, row, r.n, r.state, err);
	else
		rc = FW_ERR(err, FW_ENOMEM, "out of memory for %zu entries", r.n);
	if (!rc)
		quota_select(&r, q, c);
	for (size_t i = 0; i < r.n && !rc; i++) {
		if (r.state[i] != ROW_DEFERRED)
			row[n++] = row[i];
	}
	assert(n <= r.n);
	o->entry_n = rc ? o->entry_n : n;
	free(r.state);
	return rc;
}

/* ---- before and after the commit ----------------------------------------- */

int quota_apply(struct quota *q, struct fw_store *st, const struct fw_config *c, const struct fw_feed *was,
	bool is_visit, struct fw_entry_row *row, struct fw_outcome *o, int64_t now_ms, struct fw_err *err)
{
	struct quota new = {.applied = true, .counts = true};
	int rc;

	if (q->applied || !o->entry_n || (!c->feed_daily_entries_max && !c->feed_daily_bytes_max))
		return 0;
	assert(row == o->entries);
	for (size_t i = 0; i < o->entry_n; i++) {
		int64_t bytes = quota_row_bytes(&row[i]);

		new.bytes += bytes;
		new.largest_bytes = FW_MAX(new.largest_bytes, bytes);
	}
	if (is_visit && quota_document_is_small(&new, c, was, o->entry_n, now_ms)) {
		q->applied = true;
		return 0;
	}
	rc = fw_quota_get(st, o->feed_id, now_ms, &new.before, err);
	if (rc == FW_ENOTFOUND) {
		new.before = (struct fw_quota){
			.feed_id = o->feed_id, .since_ms = now_ms, .until_ms = now_ms + FW_DAY_MS};
		rc = 0;
	}
	if (!rc && !quota_fits(&new, c, o->entry_n))
		rc = quota_compare_and_select(&new, st, c, row, o, err);
	if (!rc)
		*q = new;
	return rc;
}

void quota_count(const struct quota *q, struct fw_store *st, const struct fw_outcome *o, int64_t now_ms)
{
	int64_t stored_n = (int64_t)o->visit.new_n + o->visit.changed_n;
	int64_t bytes = !stored_n ? 0 : q->exact ? q->bytes : FW_MIN(q->bytes, stored_n * q->largest_bytes);
	struct fw_record r = {.kind = KIND, .at_ms = now_ms, .until_ms = q->before.until_ms};
	char key[KEY_MAX], value[100];
	struct fw_err err;

	if (!q->counts || o->rc == FW_ENOTFOUND || (!stored_n && q->deferred_n == q->before.deferred_n))
		return;
	quota_key_write(key, o->feed_id);
	(void)fw_snprintf(value, sizeof(value), "%lld %lld %lld %lld", (long long)q->before.since_ms,
		(long long)(q->before.new_n + o->visit.new_n), (long long)(q->before.bytes + bytes),
		(long long)q->deferred_n);
	r.key = fw_str(key);
	r.value = fw_str(value);
	if (fw_store_record_put(st, &r, false, NULL, &err))
		fw_warn("feed %lld: the entries are stored, but not counted in its quota: %s", (long long)o->feed_id,
			err.text);
}
