/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, in one transaction for the whole batch.
 *
 * An outcome counts when the lease it names is still there; else it is stale and writes nothing. What every visit costs: the
 * lease deleted, one narrow row of `wheel` overwritten, one short key put back into `queue`, one row appended to `visits`.
 * The wide row in `feeds` is written only for the groups an outcome names; entries are sqlite_entries.c's business.
 */
#include "base/clock.h"
#include "base/url.h"
#include "store/sqlite.h"

struct visitor { /* what is known of the feed that comes back */
	int64_t host_id;       /* of the lease; 0: the only feed of its host */
	bool counted;          /* the loan is in the host's budget */
	int64_t status, last_visit_id, last_new_ms;
};

/* The lease and the wheel row together; *found false: stale. */
static int visitor_take(struct sqlite *s, const struct fw_outcome *o, struct visitor *v, bool *found, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_VISITOR, "SELECT l.host_id, w.status, w.last_visit_id, w.last_new_ms FROM leases l"
		" CROSS JOIN wheel w ON w.feed_id = l.feed_id WHERE l.fence = ? AND l.feed_id = ?", err, "ii", o->fence, o->feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*found = rc > 0;
	if (rc <= 0)
		return rc;
	v->host_id = sqlite3_column_int64(q, 0);
	v->counted = v->host_id != 0;
	v->status = sqlite3_column_int64(q, 1);
	v->last_visit_id = sqlite3_column_int64(q, 2);
	v->last_new_ms = sqlite3_column_int64(q, 3);
	sqlite3_reset(q);
	return sq_lease_end(s, o->fence, err);
}

int sq_run_put(struct sqlite *s, int64_t run_id, int64_t visit_id, struct fw_err *err)
{
	if (run_id == s->run_id)
		return 0;
	s->run_id = run_id;
	return sq_do(s, SQ_RUN_PUT, "INSERT OR IGNORE INTO runs (run_id, first_visit_id) VALUES (?, ?)", err, "ii", run_id, visit_id);
}

static int visit_put(struct sqlite *s, const struct fw_outcome *o, const struct visitor *v, int64_t *id, struct fw_err *err)
{
	const struct fw_visit *t = &o->visit;
	int rc = sq_do(s, SQ_VISIT_PUT, "INSERT INTO visits (feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot,"
		" lateness_ms, dns_us, connect_us, tls_us, first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n,"
		" changed_n, error) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", err, "iiiiiiiiiiiiiiiiiiiis",
		o->feed_id, v->last_visit_id, t->run_id, t->at_ms, SQ_INT(t->kind), SQ_INT(t->http_status), SQ_INT(t->hops),
		SQ_INT(t->slot), SQ_INT(t->lateness_ms), t->dns_us, t->connect_us, t->tls_us, t->first_byte_us, t->total_us,
		t->parse_us, SQ_INT(t->wire_bytes), SQ_INT(t->body_bytes), SQ_INT(t->item_n), SQ_INT(t->new_n), SQ_INT(t->changed_n),
		t->error);

	*id = sqlite3_last_insert_rowid(s->db);
	s->visit_d++;
	return rc ? rc : sq_run_put(s, t->run_id, *id, err);
}

static int wheel_put(struct sqlite *s, const struct fw_outcome *o, const struct visitor *v, int64_t visit_id, struct fw_err *err)
{
	const struct fw_feed *f = o->feed;

	return sq_do(s, SQ_WHEEL_VISIT, "UPDATE wheel SET due_at_ms = ?, status = ?, last_kind = ?, http_status = ?, fail_n = ?,"
		" crash_n = ?, last_visit_ms = ?, last_ok_ms = ?, last_new_ms = ?, last_visit_id = ?, expect_us = ?,"
		" expect_dev_us = ?, why = ? WHERE feed_id = ?", err, "iiiiiiiiiiiisi", f->due_at_ms, v->status, SQ_INT(f->last_kind),
		SQ_INT(f->http_status), SQ_INT(f->fail_n), SQ_INT(f->crash_n), f->last_visit_ms, f->last_ok_ms, v->last_new_ms, visit_id,
		f->expect_us, f->expect_dev_us, f->why, o->feed_id);
}

/* The feed moves to the host of its new address. Its loan is given back to the old one; nothing is counted at the new one. */
static int host_move(struct sqlite *s, const struct fw_outcome *o, struct visitor *v, int64_t old_host, struct fw_err *err)
{
	int64_t new_host = 0;
	bool crowded = false;
	int rc = v->host_id ? sq_host_return(s, v->host_id, true, 0, err) : 0;

	rc = rc ? rc : sq_host_join(s, o->feed->url, &new_host, &crowded, err);
	rc = rc ? rc : sq_do(s, SQ_SET_HOST, "UPDATE feeds SET host_id = ? WHERE id = ?", err, "ii", new_host, o->feed_id);
	rc = rc ? rc : sq_host_leave(s, old_host, err);
	v->host_id = crowded ? new_host : 0;
	v->counted = false;
	return rc;
}

/* A new address: refused with FW_EINVAL in o->rc when another feed has it. */
static int url_put(struct sqlite *s, struct fw_outcome *o, struct visitor *v, struct fw_err *err)
{
	int64_t old_host;
	char name[256];
	bool same;
	sqlite3_stmt *q = sq_ask(s, SQ_URL_TAKEN, "SELECT id FROM feeds WHERE url = ?", err, "s", o->feed->url);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	if (rc > 0) {
		o->rc = sqlite3_column_int64(q, 0) == o->feed_id ? 0 : FW_EINVAL;
		sqlite3_reset(q);
		return 0;
	}
	if (!fw_url_host(o->feed->url, name, sizeof(name))) {
		o->rc = FW_EINVAL;
		return 0;
	}
	q = sq_ask(s, SQ_FEED_HOST, "SELECT h.id, h.name FROM feeds f JOIN hosts h ON h.id = f.host_id WHERE f.id = ?", err, "i",
		o->feed_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	old_host = sqlite3_column_int64(q, 0);
	same = fw_str_eq(sq_text(q, 1), fw_str(name));
	sqlite3_reset(q);
	rc = sq_do(s, SQ_SET_URL, "UPDATE feeds SET url = ? WHERE id = ?", err, "si", o->feed->url, o->feed_id);
	return rc || same ? rc : host_move(s, o, v, old_host, err);
}

static int groups_put(struct sqlite *s, const struct fw_outcome *o, struct fw_err *err)
{
	const struct fw_feed *f = o->feed;
	int rc = 0;

	if (o->groups & FW_GROUP_ERROR)
		rc = sq_do(s, SQ_SET_ERROR, "UPDATE feeds SET error = ? WHERE id = ?", err, "si", f->error, o->feed_id);
	if (!rc && (o->groups & FW_GROUP_VALIDATORS))
		rc = sq_do(s, SQ_SET_VALIDATORS, "UPDATE feeds SET validator_url = ?, etag = ?, last_modified = ?, validators_ms = ?,"
			" body_hash = ? WHERE id = ?", err, "sbbiii", f->validator_url, f->etag, f->last_modified, f->validators_ms,
			SQ_INT(f->body_hash), o->feed_id);
	if (!rc && (o->groups & FW_GROUP_META))
		rc = sq_do(s, SQ_SET_META, "UPDATE feeds SET title = ?, home_page_url = ?, description = ?, language = ?, icon = ?,"
			" format = ?, hub = ?, topic = ?, extra = ? WHERE id = ?", err, "sssssisssi", f->title, f->home_page_url,
			f->description, f->language, f->icon, SQ_INT(f->format), f->hub, f->topic, f->extra, o->feed_id);
	if (!rc && (o->groups & FW_GROUP_RHYTHM))
		rc = sq_do(s, SQ_SET_RHYTHM, "UPDATE feeds SET rhythm = ? WHERE id = ?", err, "si", f->rhythm, o->feed_id);
	if (!rc && (o->groups & FW_GROUP_REDIRECT))
		rc = sq_do(s, SQ_SET_REDIRECT, "UPDATE feeds SET redirect_url = ?, redirect_since_ms = ?, redirect_n = ? WHERE id = ?",
			err, "siii", f->redirect_url, f->redirect_since_ms, SQ_INT(f->redirect_n), o->feed_id);
	return rc;
}

static int outcome_put(struct sqlite *s, struct fw_outcome *o, int64_t now, struct fw_err *err)
{
	struct visitor v;
	int64_t visit_id, cooldown = o->host_cooldown_ms;
	bool found;
	int rc = visitor_take(s, o, &v, &found, err);

	o->visit.new_n = o->visit.changed_n = 0;
	if (rc)
		return rc;
	if (!found) {
		o->rc = FW_ESTALE;
		return 0;
	}
	if (v.status == FW_FEED_ACTIVE)
		v.status = o->feed->status; /* what the owner set meanwhile stays */
	if (o->entry_n)
		rc = sq_entries_put(s, o->feed_id, o->entries, o->entry_n, now, &o->visit, err);
	if (o->visit.new_n)
		v.last_new_ms = now;
	rc = rc ? rc : visit_put(s, o, &v, &visit_id, err);
	rc = rc ? rc : wheel_put(s, o, &v, visit_id, err);
	if (!rc && o->groups)
		rc = groups_put(s, o, err);
	if (!rc && (o->groups & FW_GROUP_URL))
		rc = url_put(s, o, &v, err);
	if (!rc && v.host_id && (v.counted || cooldown))
		rc = sq_host_return(s, v.host_id, v.counted, cooldown, err);
	if (!rc && v.status == FW_FEED_ACTIVE)
		rc = sq_wheel_on(s, o->feed_id, o->feed->due_at_ms, v.host_id, cooldown, err);
	return rc;
}

static int beat_put(struct sqlite *s, const struct fw_beat *b, int64_t now, struct fw_err *err)
{
	return sq_do(s, SQ_BEAT_PUT, "INSERT OR REPLACE INTO workers (worker, pid, started_ms, run_id, visits, new_entries, failures,"
		" in_flight, slots, at_ms) VALUES (?,?,?,?,?,?,?,?,?,?)", err, "siiiiiiiii", fw_str(b->worker), b->pid, b->started_ms,
		b->run_id, SQ_INT(b->visits), SQ_INT(b->new_entries), SQ_INT(b->failures), SQ_INT(b->in_flight), SQ_INT(b->slots), now);
}

int sq_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t now = batch->now_ms ? batch->now_ms : fw_now_ms();
	struct sq_range tidied = {0, 0};
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < batch->n && !rc; i++)
		rc = outcome_put(s, &batch->outcome[i], now, err);
	for (size_t i = 0; i < batch->n && !rc; i++) { /* claims whose last lease came back */
		if (batch->outcome[i].rc != FW_ESTALE)
			rc = sq_claim_tidy(s, batch->outcome[i].fence, &tidied, err);
	}
	if (!rc && batch->beat)
		rc = beat_put(s, batch->beat, now, err);
	rc = sq_end(s, rc, err);
	if (rc)
		s->run_id = 0; /* whether the run was noted is unknown */
	return rc;
}
