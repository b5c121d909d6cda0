/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, in one transaction for the whole batch.
 *
 * Rows are locked in the order of loans, feeds, hosts. An outcome counts when the loan it names is still out; else it
 * is stale and writes nothing. What every visit costs: one narrow row of `wheel` overwritten, a short row put into
 * `queue`, a row appended to `visits`, and a character in its row of `loans`; each of these is one statement for the
 * batch, and all travel in one packet with the COMMIT.
 *
 * A connection that breaks within COMMIT leaves open whether it happened. So the wheel keeps the fence under which it
 * was written last: an outcome whose fence that is has been stored already. It is told as stored, with the figures of
 * its visit, when it comes over another connection than the one that lent the feed; over the same one it is simply a
 * second time, and stale.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "store/maria.h"

#define CHUNK 250                   /* visits in one statement */
#define CHUNK_BYTES ((size_t)200000) /* and the words in them */

struct visitor { /* what is known of the feed that comes back */
	bool found, stored;    /* it is lent so; it was stored already */
	int64_t lease_host_id; /* budget to be returned; 0: none */
	int64_t host_id;       /* for its place in the queue; 0: the only feed of its host */
	int64_t status, last_visit_id, last_new_ms;
	int64_t due_at_ms;     /* the outcome's; of pushed entries: as it stands */
	bool adopted;          /* it has moved to host_id */
};

struct commit {
	struct fw_commit *batch;
	struct fw_outcome *outcome;
	size_t n;
	int64_t now_ms;
	struct visitor *visitor; /* by outcome */
	struct mr_loans loans;   /* in which they are */
	struct fw_outcome **order; /* by feed */
	int64_t *scratch;
	int64_t run_id;          /* the last run that was noted before */
};

static struct visitor *visitor_of(const struct commit *c, const struct fw_outcome *o)
{
	return &c->visitor[o - c->outcome];
}

/* ---- who comes back --------------------------------------------------------------------------------------------------------- */

static int by_feed(const void *a, const void *b)
{
	const struct fw_outcome *x = *(struct fw_outcome *const *)a, *y = *(struct fw_outcome *const *)b;

	if (x->feed_id != y->feed_id)
		return x->feed_id < y->feed_id ? -1 : 1;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

/*
 * Wheels of outcomes that are not lent so: were they stored already? And, when somebody touched what is lent, of the
 * others too. They need no lock: who writes the wheel of a lent feed locks its loan first.
 */
static int wheels_read(struct maria *m, struct commit *c, bool touched, struct fw_err *err)
{
	size_t n = 0, at = 0;
	struct mr_res r;
	int rc;

	for (size_t i = 0; i < c->n; i++) {
		if (touched || !visitor_of(c, c->order[i])->found)
			c->scratch[n++] = c->order[i]->feed_id;
	}
	if (!n)
		return 0;
	mr_put(m, "SELECT feed_id, status, last_visit_id, last_new_ms, last_fence, due_at_ms FROM wheel FORCE INDEX (PRIMARY) WHERE ", "");
	mr_in(m, "feed_id", c->scratch, n);
	fw_buf_adds(&m->sql, " ORDER BY feed_id");
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		int64_t feed_id = mr_int(&r, 0);

		for (; at < c->n && c->order[at]->feed_id <= feed_id; at++) {
			const struct fw_outcome *o = c->order[at];
			struct visitor *v = visitor_of(c, o);

			if (o->feed_id != feed_id || (v->found && !touched))
				continue;
			v->status = mr_int(&r, 1);
			v->last_visit_id = mr_int(&r, 2);
			v->last_new_ms = mr_int(&r, 3);
			if (o->visit.kind == FW_VISIT_PUSHED) /* who moved it meanwhile has touched the loan */
				v->due_at_ms = mr_int(&r, 5);
			v->stored = !v->found && mr_int(&r, 4) == o->fence && (!m->first_fence || o->fence < m->first_fence);
		}
	}
	return rc;
}

/* The loans of the whole batch, locked. Of two outcomes of one loan the first counts. */
static int visitors_read(struct maria *m, struct commit *c, struct fw_err *err)
{
	bool touched = false;
	int rc;

	for (size_t i = 0; i < c->n; i++)
		c->scratch[i] = c->order[i]->fence;
	mr_loans_finish(&c->loans);
	rc = mr_loans_lock(m, c->scratch, c->n, &c->loans, err);
	for (size_t i = 0; i < c->n && !rc; i++) {
		const struct fw_outcome *o = c->order[i];
		struct visitor *v = visitor_of(c, o);
		struct mr_lent *lent = mr_lent_find(&c->loans, o->fence, o->feed_id, &touched);

		*v = (struct visitor){.adopted = v->adopted, .host_id = v->host_id, .found = lent != NULL,
			.due_at_ms = o->feed->due_at_ms};
		if (!lent)
			continue;
		lent->ends = true;
		v->status = FW_FEED_ACTIVE; /* else it would not have been lent */
		v->lease_host_id = mr_lent_budget(lent);
		v->host_id = v->adopted ? v->host_id : lent->host_id;
		v->last_visit_id = lent->visit_id;
		v->last_new_ms = lent->new_ms;
	}
	return rc ? rc : wheels_read(m, c, touched, err);
}

/* Outcomes that were stored by a commit nobody heard the end of: their figures. */
static int stored_read(struct maria *m, struct commit *c, struct fw_err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct mr_res r;
		int rc;

		if (!c->visitor[i].stored)
			continue;
		rc = mr_ask(m, &r, err, "SELECT new_n, changed_n FROM visits WHERE id = ?", "i", c->visitor[i].last_visit_id);
		if (rc)
			return rc;
		if (mr_row(&r)) {
			c->outcome[i].visit.new_n = (uint32_t)mr_int(&r, 0);
			c->outcome[i].visit.changed_n = (uint32_t)mr_int(&r, 1);
		}
		mr_done(&r);
	}
	return 0;
}

/* ---- a new address ------------------------------------------------------------------------------------------------------------ */

/* The feed moves to another host: its loan is given back to the old one, nothing is counted at the new one. */
static int host_move(struct maria *m, const struct fw_outcome *o, struct visitor *v, int64_t old_host, struct fw_err *err)
{
	struct mr_join join = {.url = o->feed->url, .key = o->feed->host_key};
	int rc = mr_hosts_join(m, &join, 1, err);

	if (rc)
		return rc;
	mr_put(m, "UPDATE feeds SET host_id = ? WHERE id = ?", "ii", join.host_id, o->feed_id);
	mr_host_leave(m, old_host);
	v->host_id = join.crowded ? join.host_id : 0;
	v->adopted = true;
	return 0;
}

/* The host that its address or its key says now. */
static int host_put(struct maria *m, const struct fw_outcome *o, struct visitor *v, struct fw_err *err)
{
	int64_t old_host = 0;
	bool same = true;
	struct mr_res r;
	char name[256];
	int rc = mr_ask(m, &r, err, "SELECT h.id, h.name FROM feeds f JOIN hosts h ON h.id = f.host_id WHERE f.id = ?", "i", o->feed_id);

	if (rc)
		return rc;
	if (mr_row(&r)) {
		old_host = mr_int(&r, 0);
		same = !fw_store_feed_host(o->feed, name, sizeof(name)) || fw_str_eq(mr_str(&r, 1), fw_str(name));
	}
	mr_done(&r);
	return same ? 0 : host_move(m, o, v, old_host, err);
}

/* Refused with FW_EINVAL in o->rc when another feed has it. */
static int url_put(struct maria *m, struct fw_outcome *o, struct visitor *v, struct fw_err *err)
{
	struct fw_hash128 hash = fw_hash128(o->feed->url.p, o->feed->url.len);
	struct fw_str key = {(const char *)hash.b, sizeof(hash.b)};
	int64_t taken;
	char name[256];
	int rc = mr_number(m, 0, &taken, err, "SELECT id FROM feeds WHERE url_hash = ?", "b", key);

	if (rc)
		return rc;
	if (taken || !fw_store_host(o->feed->url, name, sizeof(name))) {
		o->rc = taken == o->feed_id ? 0 : FW_EINVAL;
		return 0;
	}
	mr_put(m, "UPDATE feeds SET url = ?, url_hash = ? WHERE id = ?", "sbi", o->feed->url, key, o->feed_id);
	return host_put(m, o, v, err);
}

/* It may tell a feed of this very batch that its host has become crowded: then all are looked at again. */
static int urls_put(struct maria *m, struct commit *c, struct fw_err *err)
{
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < c->n && !rc; i++) {
		if (!c->visitor[i].found || !(c->outcome[i].groups & (FW_GROUP_URL | FW_GROUP_HOST)))
			continue;
		if (c->outcome[i].groups & FW_GROUP_URL)
			rc = url_put(m, &c->outcome[i], &c->visitor[i], err);
		else
			rc = host_put(m, &c->outcome[i], &c->visitor[i], err);
		any = true;
	}
	for (size_t i = 0; i < c->n && !rc; i++) { /* and one that came first to its new host may have got company there */
		if (c->visitor[i].adopted && !c->visitor[i].host_id)
			rc = mr_number(m, 0, &c->visitor[i].host_id, err, "SELECT h.id FROM feeds f JOIN hosts h ON h.id = f.host_id"
				" WHERE f.id = ? AND h.feed_n > 1", "i", c->outcome[i].feed_id);
	}
	return rc || !any ? rc : visitors_read(m, c, err);
}

/* ---- what is written of each ---------------------------------------------------------------------------------------------------- */

/* Columns that hold nothing in any row of a statement are left to their default: the server's parser is what costs most here. */
struct columns {
	const struct fw_field *at[32];
	size_t n;
};

static bool is_nothing(const struct fw_field *f, const void *of)
{
	return fw_field_is_text(f) ? !fw_field_str(f, of).p : fw_field_int(f, of) == 0;
}

static void columns_find(struct columns *c, const struct fw_field *f, size_t n, const void *row, size_t size, size_t row_n)
{
	c->n = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < row_n && is_nothing(&f[i], (const char *)row + k * size))
			k++;
		if (k < row_n)
			c->at[c->n++] = &f[i];
	}
}

static void columns_name(struct maria *m, const struct columns *c)
{
	for (size_t i = 0; i < c->n; i++)
		mr_names(m, c->at[i], 1);
}

static void columns_put(struct maria *m, const struct columns *c, const void *of)
{
	for (size_t i = 0; i < c->n; i++)
		mr_values(m, c->at[i], 1, of);
}

/* What becomes of a feed: the outcome's, but what the owner set meanwhile stays. */
static struct fw_feed feed_next(const struct fw_outcome *o, struct visitor *v, int64_t now)
{
	struct fw_feed f = *o->feed;

	if (v->status == FW_FEED_ACTIVE)
		v->status = o->feed->status;
	f.status = (enum fw_feed_status)v->status;
	f.last_new_ms = o->visit.new_n ? now : v->last_new_ms;
	f.due_at_ms = v->due_at_ms;
	return f;
}

void mr_run_put(struct maria *m, int64_t run_id, int64_t visit_id)
{
	if (run_id == m->run_id)
		return;
	m->run_id = run_id;
	/* of several workers the one with the earliest visit counts */
	mr_put(m, visit_id < 0 ? "INSERT INTO runs (run_id, first_visit_id) VALUES (?, LAST_INSERT_ID() - 1 - ?) ON DUPLICATE KEY UPDATE"
		" first_visit_id = least(first_visit_id, VALUES(first_visit_id))" :
		"INSERT INTO runs (run_id, first_visit_id) VALUES (?, ?) ON DUPLICATE KEY UPDATE"
		" first_visit_id = least(first_visit_id, VALUES(first_visit_id))", "ii", run_id, visit_id);
}

/* Visits of outcomes that were found. They get their numbers in a row. */
static void visits_write(struct maria *m, struct fw_outcome *const *outcome, size_t n, struct commit *c)
{
	struct fw_visit visit[CHUNK];
	struct columns columns;

	assert(n > 0 && n <= CHUNK);
	for (size_t i = 0; i < n; i++) {
		visit[i] = outcome[i]->visit;
		visit[i].feed_id = outcome[i]->feed_id;
	}
	columns_find(&columns, fw_visit_fields, fw_visit_field_n, visit, sizeof(*visit), n);
	mr_put(m, "INSERT INTO visits (previous_id", "");
	columns_name(m, &columns);
	fw_buf_adds(&m->sql, ") VALUES ");
	for (size_t i = 0; i < n; i++) {
		fw_buf_adds(&m->sql, i ? ",(" : "(");
		mr_value_int(m, visitor_of(c, outcome[i])->last_visit_id);
		columns_put(m, &columns, &visit[i]);
		fw_buf_addc(&m->sql, ')');
	}
	m->visit_d += (int64_t)n;
}

/* And their wheels, which name these visits. A row is written whole, so what is left out is nothing afterwards too. */
static void wheels_write(struct maria *m, struct fw_outcome *const *outcome, size_t n, struct commit *c)
{
	struct fw_feed feed[CHUNK];
	struct columns columns;

	assert(n > 0 && n <= CHUNK);
	for (size_t i = 0; i < n; i++)
		feed[i] = feed_next(outcome[i], visitor_of(c, outcome[i]), c->now_ms);
	columns_find(&columns, fw_wheel_fields, fw_wheel_field_n, feed, sizeof(*feed), n);
	mr_put(m, "REPLACE INTO wheel (feed_id", "");
	columns_name(m, &columns);
	fw_buf_adds(&m->sql, ",last_visit_id,last_fence) VALUES ");
	for (size_t i = 0; i < n; i++) {
		fw_buf_adds(&m->sql, i ? ",(" : "(");
		mr_value_int(m, outcome[i]->feed_id);
		columns_put(m, &columns, &feed[i]);
		fw_buf_addf(&m->sql, ",LAST_INSERT_ID()+%lld,%lld)", (long long)((int64_t)i * m->step), (long long)outcome[i]->fence);
	}
}

static int visits_put(struct maria *m, struct commit *c, struct fw_err *err)
{
	struct fw_outcome *some[CHUNK];
	int rc = 0;

	for (size_t i = 0; i < c->n && !rc;) {
		size_t n = 0, bytes = 0;

		for (; i < c->n && n < CHUNK && bytes < CHUNK_BYTES; i++) {
			if (!visitor_of(c, c->order[i])->found)
				continue;
			bytes += c->order[i]->visit.error.len + c->order[i]->feed->why.len;
			some[n++] = c->order[i];
		}
		if (!n)
			continue;
		visits_write(m, some, n, c);
		wheels_write(m, some, n, c);
		for (size_t k = 0; k < n; k++)
			mr_run_put(m, some[k]->visit.run_id, -1 - (int64_t)k * m->step);
		rc = i < c->n ? mr_flush(m, err) : 0; /* the next ones have numbers of their own */
	}
	return rc;
}

static void groups_put(struct maria *m, const struct fw_outcome *o)
{
	bool any = false;

	for (size_t i = 0; i < fw_feed_field_n; i++) {
		const struct fw_field *f = &fw_feed_fields[i];

		if (!(f->group & o->groups & ~(unsigned)FW_GROUP_URL))
			continue;
		if (!any)
			mr_put(m, "UPDATE feeds SET ", "");
		fw_buf_addf(&m->sql, "%s%s=", any ? "," : "", f->name);
		mr_value_field(m, f, o->feed);
		any = true;
	}
	if (any)
		fw_buf_addf(&m->sql, " WHERE id=%lld", (long long)o->feed_id);
}

/* The only feed of its host waits by itself; the host's row tells those that join it meanwhile. Few outcomes bring a cooldown. */
static void cooldown_put(struct maria *m, const struct fw_outcome *o)
{
	mr_put(m, "UPDATE hosts SET next_ok_ms = greatest(next_ok_ms, ?), cool_until_ms = greatest(cool_until_ms, ?)"
		" WHERE id = (SELECT host_id FROM feeds WHERE id = ?)", "iii", o->host_cooldown_ms, o->host_cooldown_ms, o->feed_id);
}

/* Back into line, and budgets back to the hosts. */
static int line_put(struct maria *m, struct commit *c, struct fw_err *err)
{
	struct mr_line l;
	int64_t *host = calloc(c->n * 2 + 1, sizeof(*host));
	size_t n = 0;
	int rc = host ? 0 : mr_no_memory(m, err);

	mr_line_init(&l, c->now_ms);
	for (size_t i = 0; i < c->n && !rc; i++) {
		const struct visitor *v = &c->visitor[i];

		if (!v->found)
			continue;
		host[n++] = v->lease_host_id;
		host[n++] = c->outcome[i].host_cooldown_ms || v->adopted ? v->host_id : 0;
	}
	rc = rc ? rc : mr_line_hosts(m, &l, host, n, 1, false, err);
	for (size_t i = 0; i < c->n && !rc; i++) { /* as they came: what is learned of a host depends on the order */
		const struct fw_outcome *o = &c->outcome[i];
		const struct visitor *v = &c->visitor[i];
		struct fw_outcome told = *o;

		if (!v->found)
			continue;
		told.host_cooldown_ms = v->adopted ? 0 : o->host_cooldown_ms; /* else it is the new host that wants to be left alone */
		mr_line_return(&l, v->lease_host_id, &told);
		if (v->adopted)
			mr_line_tell(&l, v->host_id, o);
		if (!v->host_id && o->host_cooldown_ms)
			cooldown_put(m, o);
		if (v->status == FW_FEED_ACTIVE)
			mr_line_on(&l, o->feed_id, v->due_at_ms, v->host_id, o->host_cooldown_ms);
	}
	rc = rc ? rc : mr_line_write(m, &l, err);
	mr_line_finish(&l);
	free(host);
	return rc;
}

static void beat_put(struct maria *m, const struct fw_beat *b, int64_t now)
{
	struct fw_beat t = *b;

	t.at_ms = now;
	mr_put(m, "REPLACE INTO workers (worker", "");
	mr_names(m, fw_beat_fields, fw_beat_field_n);
	fw_buf_adds(&m->sql, ") VALUES (");
	mr_value_bytes(m, fw_str(b->worker));
	mr_values(m, fw_beat_fields, fw_beat_field_n, &t);
	fw_buf_addc(&m->sql, ')');
}

static int entries_put(struct maria *m, struct commit *c, struct fw_err *err)
{
	struct fw_outcome **which = calloc(c->n + 1, sizeof(struct fw_outcome *));
	size_t n = 0;
	int rc = which ? 0 : mr_no_memory(m, err);

	for (size_t i = 0; i < c->n && !rc; i++) {
		if (visitor_of(c, c->order[i])->found && c->order[i]->entry_n)
			which[n++] = c->order[i];
	}
	rc = rc || !n ? rc : mr_entries_put(m, which, n, c->now_ms, err);
	free(which);
	return rc;
}

/* ---- all together ------------------------------------------------------------------------------------------------------------------ */

static int outcomes_put(struct maria *m, struct commit *c, struct fw_err *err)
{
	int rc;

	memset(c->visitor, 0, c->n * sizeof(*c->visitor));
	m->run_id = c->run_id;
	rc = visitors_read(m, c, err);
	for (size_t i = 0; i < c->n && !rc; i++) {
		struct fw_outcome *o = &c->outcome[i];

		o->rc = c->visitor[i].found || c->visitor[i].stored ? 0 : FW_ESTALE;
		o->visit.new_n = o->visit.changed_n = 0;
	}
	rc = rc ? rc : stored_read(m, c, err);
	rc = rc ? rc : urls_put(m, c, err);
	if (!rc)
		mr_loans_write(m, &c->loans);
	rc = rc ? rc : entries_put(m, c, err);
	rc = rc ? rc : visits_put(m, c, err);
	for (size_t i = 0; i < c->n && !rc; i++) {
		if (c->visitor[i].found && c->outcome[i].groups)
			groups_put(m, &c->outcome[i]);
	}
	return rc ? rc : line_put(m, c, err);
}

static int commit_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct commit *c = arg;
	int rc = c->n ? outcomes_put(m, c, err) : 0;

	if (!rc && c->batch->beat)
		beat_put(m, c->batch->beat, c->now_ms);
	return rc;
}

int mr_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct commit c = {.batch = batch, .outcome = batch->outcome, .n = batch->n,
		.visitor = calloc(batch->n + 1, sizeof(*c.visitor)), .order = calloc(batch->n + 1, sizeof(struct fw_outcome *)),
		.scratch = calloc(batch->n + 1, sizeof(*c.scratch)), .run_id = m->run_id};
	int rc = c.visitor && c.order && c.scratch ? mr_now(m, batch->now_ms, &c.now_ms, err) : mr_no_memory(m, err);

	if (!rc) {
		for (size_t i = 0; i < c.n; i++)
			c.order[i] = &c.outcome[i];
		qsort(c.order, c.n, sizeof(struct fw_outcome *), by_feed);
		rc = mr_transact(m, commit_in, &c, err);
	}
	if (rc)
		m->run_id = 0; /* whether the run was noted is unknown */
	mr_loans_finish(&c.loans);
	free(c.visitor);
	free(c.order);
	free(c.scratch);
	return rc;
}
