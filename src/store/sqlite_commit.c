/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, in one transaction for the whole batch.
 *
 * An outcome counts when the lease it names is still there; else it is stale and writes nothing. What every visit costs: one
 * narrow row put into `line`, and a share of what is written once a commit: the leases deleted, visits, places. The wide row in
 * `feeds` is written only for the groups an outcome names; entries are sqlite_entries.c's business.
 */
#include "base/clock.h"
#include "store/sqlite.h"

struct visitor { /* what is known of the feed that comes back */
	int64_t host_id;       /* of the lease; 0: the only feed of its host */
	bool counted;          /* the loan is in the host's budget */
	int64_t status, last_visit_id, last_new_ms;
	int64_t due_at_ms;     /* as it stands; known when the lease was looked at */
	int64_t now_ms;
};

/* Take the lease back; *found false: stale. */
static int visitor_take(struct sqlite *s, const struct fw_outcome *o, struct visitor *v, bool *found, struct fw_err *err)
{
	struct sq_loan *l;
	sqlite3_stmt *q;
	int rc = sq_loan_take(s, o->fence, o->feed_id, &l, err);

	*found = l != NULL;
	if (rc)
		return rc;
	if (l) {
		*v = (struct visitor){.host_id = l->host_id, .counted = l->host_id != 0, .status = FW_FEED_ACTIVE,
			.last_visit_id = l->last_visit_id, .last_new_ms = l->last_new_ms};
		return 0;
	}
	q = sq_ask(s, SQ_VISITOR, "SELECT host_id, status, last_visit_id, last_new_ms, due_at_ms FROM leases WHERE fence = ? AND"
		" feed_id = ?", err, "ii", o->fence, o->feed_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	*found = rc > 0;
	if (rc <= 0)
		return rc;
	v->host_id = sq_lease_host(sqlite3_column_int64(q, 0), &v->counted);
	v->status = sqlite3_column_int64(q, 1);
	v->last_visit_id = sqlite3_column_int64(q, 2);
	v->last_new_ms = sqlite3_column_int64(q, 3);
	v->due_at_ms = sqlite3_column_int64(q, 4);
	sqlite3_reset(q);
	s->slow = true;
	rc = sq_lease_touch(s, o->fence, err);
	return rc ? rc : sq_lease_end(s, o->fence, err);
}

/* The feed moves to another host. Its loan is given back to the old one; nothing is counted at the new one. */
static int host_move(struct sqlite *s, const struct fw_outcome *o, struct visitor *v, int64_t old_host, struct fw_err *err)
{
	int64_t new_host = 0;
	bool crowded = false;
	int rc = v->host_id ? sq_host_return(s, v->host_id, true, o, v->now_ms, err) : 0;

	rc = rc ? rc : sq_host_join(s, o->feed, &new_host, &crowded, err);
	rc = rc ? rc : sq_do(s, SQ_SET_HOST, "UPDATE feeds SET host_id = ? WHERE id = ?", err, "ii", new_host, o->feed_id);
	rc = rc ? rc : sq_host_leave(s, old_host, err);
	v->host_id = crowded ? new_host : 0;
	v->counted = false;
	return rc;
}

/* The host that its address or its key says now. */
static int host_put(struct sqlite *s, const struct fw_outcome *o, struct visitor *v, struct fw_err *err)
{
	int64_t old_host;
	char name[256];
	bool same;
	sqlite3_stmt *q = sq_ask(s, SQ_FEED_HOST, "SELECT h.id, h.name FROM feeds f JOIN hosts h ON h.id = f.host_id WHERE f.id = ?", err, "i",
		o->feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc <= 0)
		return rc;
	old_host = sqlite3_column_int64(q, 0);
	same = fw_store_feed_host(o->feed, name, sizeof(name)) && fw_str_eq(sq_text(q, 1), fw_str(name));
	sqlite3_reset(q);
	return same ? 0 : host_move(s, o, v, old_host, err);
}

/* A new address: refused with FW_EINVAL in o->rc when another feed has it. */
static int url_put(struct sqlite *s, struct fw_outcome *o, struct visitor *v, struct fw_err *err)
{
	char name[256];
	sqlite3_stmt *q = sq_ask(s, SQ_URL_TAKEN, "SELECT id FROM feeds WHERE url = ?", err, "s", o->feed->url);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc < 0)
		return rc;
	if (rc > 0) {
		o->rc = sqlite3_column_int64(q, 0) == o->feed_id ? 0 : FW_EINVAL;
		sqlite3_reset(q);
		return 0;
	}
	if (!fw_store_host(o->feed->url, name, sizeof(name))) {
		o->rc = FW_EINVAL;
		return 0;
	}
	rc = sq_do(s, SQ_SET_URL, "UPDATE feeds SET url = ? WHERE id = ?", err, "si", o->feed->url, o->feed_id);
	return rc ? rc : host_put(s, o, v, err);
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
	if (!rc && (o->groups & FW_GROUP_HOST))
		rc = sq_do(s, SQ_SET_HOST_KEY, "UPDATE feeds SET host_key = ? WHERE id = ?", err, "si", f->host_key, o->feed_id);
	return rc;
}

/* The feed back on the wheel, with what the visit made of it. */
static int wheel_put(struct sqlite *s, const struct fw_outcome *o, const struct visitor *v, int64_t visit_id, struct fw_err *err)
{
	struct fw_feed f = *o->feed;

	f.id = o->feed_id;
	f.last_new_ms = v->last_new_ms;
	if (o->visit.kind == FW_VISIT_PUSHED) /* such loans are always looked at */
		f.due_at_ms = v->due_at_ms;
	return sq_wheel_put(s, &f, v->status, v->host_id, o->host_cooldown_ms, visit_id, err);
}

static int outcome_put(struct sqlite *s, struct fw_outcome *o, int64_t now, struct fw_err *err)
{
	struct visitor v;
	int64_t visit_id;
	bool found;
	int rc = visitor_take(s, o, &v, &found, err);

	o->rc = 0;
	o->visit.new_n = o->visit.changed_n = 0;
	if (rc)
		return rc;
	if (!found) {
		o->rc = FW_ESTALE;
		return 0;
	}
	v.now_ms = now;
	if (v.status == FW_FEED_ACTIVE)
		v.status = o->feed->status; /* what the owner set meanwhile stays */
	if (o->entry_n)
		rc = sq_entries_put(s, o->feed_id, o->entries, o->entry_n, now, &o->visit, err);
	if (o->visit.new_n)
		v.last_new_ms = now;
	rc = rc ? rc : sq_visit_add(s, o->feed_id, &o->visit, v.last_visit_id, &visit_id, err);
	if (!rc && o->groups)
		rc = groups_put(s, o, err);
	if (!rc && (o->groups & FW_GROUP_URL))
		rc = url_put(s, o, &v, err);
	else if (!rc && (o->groups & FW_GROUP_HOST))
		rc = host_put(s, o, &v, err);
	if (!rc && v.host_id && (v.counted || o->host_cooldown_ms || o->host_wait_ms))
		rc = sq_host_return(s, v.host_id, v.counted, o, now, err);
	else if (!rc && o->host_cooldown_ms) /* should another feed come to its host before that */
		rc = sq_do(s, SQ_HOST_COOL, "UPDATE hosts SET next_ok_ms = max(next_ok_ms, ?1), cool_until_ms = max(cool_until_ms, ?1)"
			" WHERE id = (SELECT host_id FROM feeds WHERE id = ?2)", err, "ii", o->host_cooldown_ms, o->feed_id);
	return rc ? rc : wheel_put(s, o, &v, visit_id, err);
}

static int beat_put(struct sqlite *s, const struct fw_beat *b, int64_t now, struct fw_err *err)
{
	return sq_do(s, SQ_BEAT_PUT, "INSERT OR REPLACE INTO workers (worker, pid, started_ms, run_id, visits, new_entries, failures,"
		" in_flight, slots, at_ms) VALUES (?,?,?,?,?,?,?,?,?,?)", err, "siiiiiiiii", fw_str(b->worker), b->pid, b->started_ms,
		b->run_id, SQ_INT(b->visits), SQ_INT(b->new_entries), SQ_INT(b->failures), SQ_INT(b->in_flight), SQ_INT(b->slots), now);
}

static int commit_in(struct sqlite *s, struct fw_commit *batch, struct fw_err *err)
{
	int64_t now = batch->now_ms ? batch->now_ms : fw_now_ms();
	struct sq_range tidied = {0, 0};
	int rc = 0;

	for (size_t i = 0; i < batch->n && !rc; i++)
		rc = outcome_put(s, &batch->outcome[i], now, err);
	rc = rc ? rc : sq_loans_end(s, err);
	for (size_t i = 0; i < batch->n && s->slow && !rc; i++) { /* claims whose last lease came back */
		if (batch->outcome[i].rc != FW_ESTALE)
			rc = sq_claim_tidy(s, batch->outcome[i].fence, &tidied, err);
	}
	return !rc && batch->beat ? beat_put(s, batch->beat, now, err) : rc;
}

int sq_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = FW_ESTALE;

	for (int i = 0; i < 2 && rc == FW_ESTALE; i++) { /* again when leases are not as they are remembered: nothing is, then */
		rc = sq_begin(s, err);
		if (rc)
			return rc;
		rc = sq_end(s, commit_in(s, batch, err), err);
		if (rc)
			s->run_id = 0; /* whether the run was noted is unknown */
	}
	return rc;
}
