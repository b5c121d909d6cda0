/* SPDX-License-Identifier: ISC */
/*
 * What people look at: feeds, visits, figures, control messages, workers.
 *
 * Lists first ask for the numbers of what they show, then for the rows, some hundred at a time. So a slow reader keeps no query open,
 * and a million feeds take eight megabytes.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/maria.h"

#define ROWS 250 /* asked for at once */

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

void mr_feed_columns(struct maria *m)
{
	fw_buf_adds(&m->sql, "f.id");
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		fw_buf_addf(&m->sql, ",w.%s", fw_wheel_fields[i].name);
	for (size_t i = 0; i < fw_feed_field_n; i++)
		fw_buf_addf(&m->sql, ",f.%s", fw_feed_fields[i].name);
}

unsigned mr_feed_read(const struct mr_res *r, unsigned col, struct fw_feed *f)
{
	*f = (struct fw_feed){.id = mr_int(r, col++)};
	for (size_t i = 0; i < fw_wheel_field_n; i++)
		mr_field_read(r, col++, &fw_wheel_fields[i], f);
	for (size_t i = 0; i < fw_feed_field_n; i++)
		mr_field_read(r, col++, &fw_feed_fields[i], f);
	return col;
}

void mr_names(struct maria *m, const struct fw_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&m->sql, ",%s", f[i].name);
}

void mr_values(struct maria *m, const struct fw_field *f, size_t n, const void *of)
{
	for (size_t i = 0; i < n; i++) {
		fw_buf_addc(&m->sql, ',');
		mr_value_field(m, &f[i], of);
	}
}

int mr_ids_add(struct maria *m, struct mr_ids *ids, int64_t id, struct fw_err *err)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? ids->cap * 2 : 256;
		int64_t *grown = reallocarray(ids->at, cap, sizeof(*grown));

		if (!grown)
			return mr_no_memory(m, err);
		ids->at = grown;
		ids->cap = cap;
	}
	ids->at[ids->n++] = id;
	return 0;
}

int mr_by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void mr_ids_once(struct mr_ids *ids)
{
	size_t kept = 0;

	if (ids->n)
		qsort(ids->at, ids->n, sizeof(*ids->at), mr_by_number);
	for (size_t i = 0; i < ids->n; i++) {
		if (!kept || ids->at[kept - 1] != ids->at[i])
			ids->at[kept++] = ids->at[i];
	}
	ids->n = kept;
}

int mr_ids_read(struct maria *m, struct mr_ids *ids, struct fw_err *err)
{
	struct mr_res r;
	int rc = mr_stream(m, &r, err);

	while (!rc && mr_row(&r))
		rc = mr_ids_add(m, ids, mr_int(&r, 0), err);
	mr_done(&r); /* takes the rest off the line */
	return !rc && mysql_errno(m->db) ? mr_error(m, "listing", err) : rc;
}

/* ---- feeds ---------------------------------------------------------------------------------------------------------------- */

/* Who has what, while feeds are shown. */
struct out {
	int64_t feed_id, until_ms, fence;
};

struct outs {
	struct out *at; /* by feed */
	size_t n;
};

static int out_order(const void *a, const void *b)
{
	const struct out *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* feed_id 0: all. */
static int outs_read(struct maria *m, int64_t feed_id, struct outs *out, struct fw_err *err)
{
	struct mr_loans loans;
	size_t cap = 0;
	int rc = mr_loans_read(m, feed_id, &loans, err);

	for (size_t i = 0; i < loans.n; i++)
		cap += loans.at[i].n;
	*out = (struct outs){.at = calloc(cap + 1, sizeof(*out->at))};
	if (!rc && !out->at)
		rc = mr_no_memory(m, err);
	for (size_t i = 0; i < loans.n && !rc; i++) {
		const struct mr_loan *l = &loans.at[i];

		for (size_t k = 0; k < l->n; k++) {
			if (l->at[k].out)
				out->at[out->n++] = (struct out){l->at[k].feed_id, l->until_ms, (l->id << MR_FENCE_BITS) + (int64_t)k};
		}
	}
	if (!rc)
		qsort(out->at, out->n, sizeof(*out->at), out_order);
	mr_loans_finish(&loans);
	return rc;
}

static void feed_view(struct maria *m)
{
	fw_buf_adds(&m->sql, "SELECT ");
	mr_feed_columns(m);
	fw_buf_adds(&m->sql, ",(SELECT count(*) FROM entry_keys k WHERE k.feed_id = f.id AND k.entry_id > 0)"
		" FROM feeds f JOIN wheel w ON w.feed_id = f.id WHERE ");
}

static void feed_view_read(const struct mr_res *r, const struct outs *outs, struct fw_feed *f)
{
	unsigned col = mr_feed_read(r, 0, f);
	struct out key = {.feed_id = f->id};
	const struct out *o = outs->n ? bsearch(&key, outs->at, outs->n, sizeof(key), out_order) : NULL;

	f->entry_n = mr_int(r, col);
	f->lease_until_ms = o ? o->until_ms : 0;
	f->fence = o ? o->fence : 0;
}

int mr_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct fw_hash128 hash = fw_hash128(url.p, url.len);
	struct outs outs = {0};
	struct mr_res r;
	int rc;

	feed_view(m);
	if (id) {
		fw_buf_addf(&m->sql, "f.id = %lld", (long long)id);
	} else {
		fw_buf_adds(&m->sql, "f.url_hash = ");
		mr_value_bytes(m, (struct fw_str){(const char *)hash.b, sizeof(hash.b)});
	}
	rc = mr_answer(m, &r, err);
	if (rc)
		return rc;
	if (!mr_row(&r))
		return id ? fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", m->name, (long long)id) :
			fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", m->name, FW_STR_ARG(url));
	rc = outs_read(m, mr_int(&r, 0), &outs, err);
	if (!rc) {
		feed_view_read(&r, &outs, out);
		rc = fw_store_feed_dup(a, out) ? 0 : mr_no_memory(m, err);
	}
	mr_done(&r);
	free(outs.at);
	return rc;
}

static void feed_where(struct maria *m, const struct fw_feed_query *q)
{
	fw_buf_addf(&m->sql, "SELECT f.id FROM feeds f JOIN wheel w ON w.feed_id = f.id WHERE f.id > %lld", (long long)q->after_id);
	if (q->status >= 0)
		fw_buf_addf(&m->sql, " AND w.status = %d", q->status);
	if (q->failing)
		fw_buf_adds(&m->sql, " AND w.fail_n > 0");
	if (q->folder.p) {
		fw_buf_adds(&m->sql, " AND CAST(coalesce(f.folder, '') AS BINARY) = CAST("); /* else 'x' is 'x ' */
		mr_value_text(m, q->folder);
		fw_buf_adds(&m->sql, " AS BINARY)");
	}
	if (q->match.p) { /* ASCII is folded, as everywhere */
		static const char *const columns[] = {"f.url", "f.title", "f.user_title"};

		for (size_t i = 0; i < FW_N(columns); i++) {
			fw_buf_addf(&m->sql, "%sinstr(lower(coalesce(%s, '')), lower(", i ? " OR " : " AND (", columns[i]);
			mr_value_text(m, q->match);
			fw_buf_adds(&m->sql, "))");
		}
		fw_buf_addc(&m->sql, ')');
	}
	fw_buf_adds(&m->sql, q->by_due ? " ORDER BY w.due_at_ms, f.id" : " ORDER BY f.id");
	if (q->limit)
		fw_buf_addf(&m->sql, " LIMIT %zu", q->limit);
}

void mr_in_order(struct maria *m, const char *column, const int64_t *id, size_t n)
{
	mr_in(m, column, id, n);
	fw_buf_addf(&m->sql, " ORDER BY FIELD(%s", column);
	for (size_t i = 0; i < n; i++) {
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, id[i]);
	}
	fw_buf_addc(&m->sql, ')');
}

int mr_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct outs outs = {0};
	struct mr_ids ids = {0};
	int rc;

	feed_where(m, q);
	rc = mr_ids_read(m, &ids, err);
	rc = rc ? rc : outs_read(m, 0, &outs, err);
	for (size_t i = 0; i < ids.n && !rc; i += ROWS) {
		struct mr_res r;

		feed_view(m);
		mr_in_order(m, "f.id", ids.at + i, FW_MIN(ids.n - i, (size_t)ROWS));
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			struct fw_feed f;

			feed_view_read(&r, &outs, &f);
			rc = cb(ctx, &f);
		}
		mr_done(&r);
	}
	free(outs.at);
	free(ids.at);
	return rc;
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------- */

static void visit_columns(struct maria *m)
{
	fw_buf_adds(&m->sql, "SELECT v.id, f.url");
	for (size_t i = 0; i < fw_visit_field_n; i++)
		fw_buf_addf(&m->sql, ",v.%s", fw_visit_fields[i].name);
}

static int visits_show(struct maria *m, const struct mr_ids *ids, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < ids->n && !rc; i += ROWS) {
		struct mr_res r;

		visit_columns(m);
		fw_buf_adds(&m->sql, " FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE ");
		mr_in_order(m, "v.id", ids->at + i, FW_MIN(ids->n - i, (size_t)ROWS));
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			struct fw_visit v = {.id = mr_int(&r, 0)};

			v.feed_url = mr_str(&r, 1);
			for (size_t f = 0; f < fw_visit_field_n; f++)
				mr_field_read(&r, 2 + (unsigned)f, &fw_visit_fields[f], &v);
			rc = cb(ctx, &v);
		}
		mr_done(&r);
	}
	return rc;
}

int mr_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	int64_t head = 0, first = 0;
	struct mr_ids ids = {0};
	int rc;

	if (q->feed_id)
		rc = mr_number(m, 0, &head, err, "SELECT last_visit_id FROM wheel WHERE feed_id = ?", "i", q->feed_id);
	else
		rc = q->run_id ? mr_number(m, 0, &first, err, "SELECT first_visit_id FROM runs WHERE run_id = ?", "i", q->run_id) : 0;
	if (rc)
		return rc;
	if (q->feed_id)
		mr_put(m, MR_CHAIN "SELECT v.id FROM chain c JOIN visits v ON v.id = c.id WHERE 1", "i", head);
	else
		mr_put(m, "SELECT v.id FROM visits v WHERE v.id >= ?", "i", first);
	if (q->run_id)
		fw_buf_addf(&m->sql, " AND v.run_id = %lld", (long long)q->run_id);
	if (q->since_ms)
		fw_buf_addf(&m->sql, " AND v.at_ms >= %lld", (long long)q->since_ms);
	if (q->oldest_first)
		fw_buf_addf(&m->sql, " AND v.id > %lld", (long long)q->after_id);
	fw_buf_adds(&m->sql, q->oldest_first ? " ORDER BY v.id" : " ORDER BY v.id DESC");
	if (q->limit)
		fw_buf_addf(&m->sql, " LIMIT %zu", q->limit);
	rc = mr_ids_read(m, &ids, err);
	rc = rc ? rc : visits_show(m, &ids, cb, ctx, err);
	free(ids.at);
	return rc;
}

/* ---- figures, messages, workers ---------------------------------------------------------------------------------------------- */

int mr_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int64_t now;
	int rc = mr_now(m, now_ms, &now, err);

	rc = rc ? rc : mr_ask(m, &r, err, "SELECT count(*), sum(status = 0), sum(status = 1), sum(status = 2), sum(status = 3),"
		" sum(fail_n > 0) FROM wheel", "");
	if (!rc && mr_row(&r)) {
		out->feed_n = mr_int(&r, 0);
		out->active_n = mr_int(&r, 1);
		out->paused_n = mr_int(&r, 2);
		out->gone_n = mr_int(&r, 3);
		out->quarantined_n = mr_int(&r, 4);
		out->failing_n = mr_int(&r, 5);
		mr_done(&r);
	}
	rc = rc ? rc : mr_ask(m, &r, err, "SELECT (SELECT count(*) FROM queue WHERE wake_at_ms <= ?)"
		" + (SELECT count(*) FROM moved WHERE wake_at_ms > ? AND due_at_ms <= ?) + (SELECT count(*) FROM parked WHERE due_at_ms <= ?),"
		" (SELECT coalesce(sum(length(lent) - length(replace(lent, '1', ''))), 0) FROM loans), (SELECT coalesce(due_at_ms, wake_at_ms) FROM queue ORDER BY wake_at_ms LIMIT 1),"
		" (SELECT min(due_at_ms) FROM moved), (SELECT min(due_at_ms) FROM parked)", "iiii", now, now, now, now);
	if (!rc && mr_row(&r)) {
		out->due_n = mr_int(&r, 0);
		out->lent_n = mr_int(&r, 1);
		for (unsigned i = 2; i < 5; i++) {
			int64_t due = mr_date(&r, i);

			if (due != FW_NO_DATE && (out->next_due_ms == FW_NO_DATE || due < out->next_due_ms))
				out->next_due_ms = due;
		}
		mr_done(&r);
	}
	rc = rc ? rc : mr_ask(m, &r, err, "SELECT coalesce(sum(entry_n), 0), coalesce(sum(visit_n), 0),"
		" " MR_UNINDEXED_N ","
		" (SELECT max(id) FROM feeds), (SELECT max(id) FROM entries), (SELECT max(id) FROM visits), (SELECT sum(data_length + index_length) FROM information_schema.tables"
		" WHERE table_schema = database()) FROM counters", "");
	if (!rc && mr_row(&r)) {
		out->entry_n = mr_int(&r, 0);
		out->visit_n = mr_int(&r, 1);
		out->unindexed_n = mr_int(&r, 2);
		out->last_feed_id = mr_int(&r, 3);
		out->last_entry_id = mr_int(&r, 4);
		out->last_visit_id = mr_int(&r, 5);
		out->size_bytes = mr_int(&r, 6);
		mr_done(&r);
	}
	out->schema = MR_SCHEMA;
	return rc;
}

struct control {
	enum fw_control_kind kind;
	int64_t now_ms;
};

static int control_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct control *c = arg;
	int rc = mr_change(m, err); /* first: it lets one through at a time, so that messages come in the order of their numbers */

	mr_put(m, "INSERT INTO controls (kind, created_ms) VALUES (?, ?)", "ii", MR_INT(c->kind), c->now_ms);
	return rc;
}

int mr_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct control c = {kind, 0};
	int rc = mr_now(mr_of(st), now_ms, &c.now_ms, err);

	return rc ? rc : mr_transact(mr_of(st), control_in, &c, err);
}

int mr_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	if (after_id < 0)
		rc = mr_ask(m, &r, err, "SELECT max(id), 0, 0, (SELECT kind FROM controls WHERE kind IN (?, ?) ORDER BY id DESC LIMIT 1) = ?"
			" FROM controls", "iii", MR_INT(FW_CONTROL_PAUSE), MR_INT(FW_CONTROL_RESUME), MR_INT(FW_CONTROL_PAUSE));
	else
		rc = mr_ask(m, &r, err, "SELECT id, kind, created_ms, 0 FROM controls WHERE id > ? ORDER BY id LIMIT 1", "i", after_id);
	if (!rc && mr_row(&r))
		*out = (struct fw_control){mr_int(&r, 0), (enum fw_control_kind)mr_int(&r, 1), mr_int(&r, 2), mr_int(&r, 3)};
	if (!rc)
		mr_done(&r);
	return rc;
}

int mr_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	fw_buf_adds(&m->sql, "SELECT worker");
	mr_names(m, fw_beat_fields, fw_beat_field_n);
	fw_buf_addf(&m->sql, " FROM workers WHERE at_ms >= %lld ORDER BY worker", (long long)since_ms);
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_beat b = {.worker = r.row[0]};

		for (size_t i = 0; i < fw_beat_field_n; i++)
			mr_field_read(&r, 1 + (unsigned)i, &fw_beat_fields[i], &b);
		rc = cb(ctx, &b);
	}
	mr_done(&r);
	return rc;
}
