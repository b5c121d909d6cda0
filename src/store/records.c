/* SPDX-License-Identifier: ISC */
/*
 * The front, part 3: records; control messages and heartbeats, which are stored as records; events.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/driver.h"
#include "store/inbox.h"

/*
 * Prefix of the front's own kinds. Callers cannot use it, and it sorts after all kinds that they
 * can. Records with it are not listed, and not copied with a store.
 */
#define OWN "~"
#define CONTROL FW_STR(STORE_CONTROL_KIND)
#define PAUSED FW_STR(STORE_PAUSED_KIND) /* the last PAUSE or RESUME: outlives its message */
#define WORKER FW_STR(OWN "worker")
#define WORKER_KEPT_MS FW_DAY_MS
#define CONTROL_TRIES 100
#define HEARTBEAT_N 8 /* numbers in a heartbeat of 0.1.0; later ones follow */

/* ---- records --------------------------------------------------------------------------------- */

static bool record_kind_is_valid(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit(s.p[i]) && s.p[i] != '_' && (s.p[i] < 'a' || s.p[i] > 'z'))
			return false;
	}
	return s.len && s.len <= FW_RECORD_KIND_MAX;
}

/* What is wrong with this name; NULL: nothing. */
static const char *record_name_error(struct fw_str kind, struct fw_str key)
{
	if (!record_kind_is_valid(kind))
		return "record: invalid kind: 1 to 32 characters a-z, 0-9 or _";
	return !key.len || key.len > FW_RECORD_KEY_MAX ? "record: invalid key: 1 to 255 bytes" : NULL;
}

/* What is wrong with this record; NULL: nothing. */
static const char *record_error(const struct fw_record *r)
{
	if (r->value.len > FW_RECORD_VALUE_MAX)
		return "record: value too long: at most 65,535 bytes";
	if (r->until_ms != FW_NO_DATE && r->until_ms <= r->at_ms)
		return "record: until_ms is not after at_ms";
	return record_name_error(r->kind, r->key);
}

int fw_store_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct store *to = store_of(st);
	const char *wrong = record_error(r);
	struct fw_record whole = *r;
	bool drop;

	was = was ? was : &drop;
	*was = false;
	if (wrong)
		return store_invalid(to, wrong, err);
	whole.value = r->value.p ? r->value : FW_STR("");
	return to->driver->record_put(to, &whole, if_absent, false, was, STORE_ERR(err));
}

struct record_found {
	struct fw_arena *a;
	struct fw_record *out;
};

static int record_found(void *ctx, const struct fw_record *r)
{
	struct record_found *f = ctx;

	*f->out = *r;
	return fw_store_record_dup(f->a, f->out) ? 0 : FW_ENOMEM;
}

int fw_store_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a,
	struct fw_record *out, struct fw_err *err)
{
	struct store *to = store_of(st);
	const char *wrong = record_name_error(kind, key);
	struct record_found f = {a, out};
	struct store_record_query q = {.q.kind = kind, .key = key};
	int rc = wrong ? store_invalid(to, wrong, err) :
			 to->driver->record_list(to, &q, record_found, &f, STORE_ERR(err));

	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

struct record_shown {
	fw_record_cb *cb;
	void *ctx;
	bool end;
};

/* The front's own kinds come last: end there. */
static int record_show(void *ctx, const struct fw_record *r)
{
	struct record_shown *s = ctx;

	s->end = fw_str_starts(r->kind, FW_STR(OWN));
	return s->end ? 1 : s->cb(s->ctx, r);
}

int fw_store_record_list(
	struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct store_record_query whole = {.q = *q};
	struct record_shown s = {cb, ctx, false};
	int rc;

	if (q->kind.p && !record_kind_is_valid(q->kind))
		return store_invalid(to, record_name_error(q->kind, FW_STR("x")), err);
	if (q->kind.p)
		whole.q.after_kind = q->kind;
	if (!whole.q.after_key.p)
		whole.q.after_key = FW_STR("");
	if (!whole.q.after_kind.p)
		whole.q.after_kind = FW_STR("");
	rc = to->driver->record_list(to, &whole, record_show, &s, STORE_ERR(err));
	return s.end ? 0 : rc;
}

int fw_store_record_remove(
	struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct store *to = store_of(st);
	const char *wrong = record_name_error(kind, key);

	return wrong ? store_invalid(to, wrong, err) : to->driver->record_remove(to, kind, key, value, STORE_ERR(err));
}

/* ---- control messages ------------------------------------------------------------------------ */

static int control_paused_put(struct store *to, const struct fw_record *message, struct fw_err *err)
{
	struct fw_record r = {.kind = PAUSED,
		.key = FW_STR("all"),
		.value = message->value,
		.at_ms = message->at_ms,
		.until_ms = FW_NO_DATE};
	bool was;

	return to->driver->record_put(to, &r, false, false, &was, err);
}

static int control_row(void *ctx, const struct fw_record *r)
{
	struct fw_control *c = ctx;
	struct fw_str worker;
	int64_t kind;

	if (!fw_str_int(r->key, &c->id) || !fw_str_int(fw_str_split(r->value, ' ', &worker), &kind) ||
		!fw_str_copy(c->worker, sizeof(c->worker), worker))
		return 0;
	c->kind = (enum fw_control_kind)kind;
	c->created_ms = r->at_ms;
	return 0;
}

/* The first message after an id; limit 0: the newest. c->id stays if there is none. */
static int control_read(struct store *to, int64_t after_id, size_t limit, struct fw_control *c, struct fw_err *err)
{
	struct store_record_query q = {.q = {.kind = CONTROL, .after_kind = CONTROL, .limit = limit}};
	char key[24];

	(void)fw_snprintf(key, sizeof(key), "%020lld", (long long)after_id);
	q.q.after_key = fw_str(key);
	return to->driver->record_list(to, &q, control_row, c, err);
}

/*
 * A message's id is its key: the store's time in us, or above the newest message, because a worker
 * reads only what is above its last one. Anew if another process was first.
 */
static int control_message_put(struct store *to, const struct fw_record *message, struct fw_err *err)
{
	struct fw_record r = *message;
	struct fw_control newest = {.id = 0};
	bool taken = true;
	char key[24];
	int rc = 0;

	for (int i = 0; !rc && taken && i < CONTROL_TRIES; i++) {
		rc = control_read(to, 0, 0, &newest, err);
		(void)fw_snprintf(key, sizeof(key), "%020lld", (long long)FW_MAX(r.at_ms * 1000, newest.id + 1));
		r.key = fw_str(key);
		rc = rc ? rc : to->driver->record_put(to, &r, true, true, &taken, err);
	}
	return rc || !taken ? rc : fw_err_set(err, FW_EAGAIN, "others keep sending control messages: try again");
}

int fw_store_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct fw_record r = {.kind = CONTROL, .at_ms = now_ms};
	char value[24];
	int rc;

	if (kind <= FW_CONTROL_NONE || kind > FW_CONTROL_RELOAD)
		return store_invalid(to, "control_put: unknown kind of message", err);
	err = STORE_ERR(err);
	rc = now_ms ? 0 : to->driver->clock(to, &r.at_ms, err);
	(void)fw_snprintf(value, sizeof(value), "%d", (int)kind);
	r.value = fw_str(value);
	r.until_ms = r.at_ms + STORE_CONTROL_KEPT_MS;
	if (!rc && (kind == FW_CONTROL_PAUSE || kind == FW_CONTROL_RESUME))
		rc = control_paused_put(to, &r, err);
	return rc ? rc : control_message_put(to, &r, err);
}

static int control_paused_row(void *ctx, const struct fw_record *r)
{
	int64_t kind;

	*(bool *)ctx = fw_str_int(r->value, &kind) && kind == FW_CONTROL_PAUSE;
	return 0;
}

static int control_is_paused(struct store *to, bool *paused, struct fw_err *err)
{
	struct store_record_query q = {.q.kind = PAUSED, .key = FW_STR("all")};
	int rc = to->driver->record_list(to, &q, control_paused_row, paused, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

int fw_store_control_get(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct store *to = store_of(st);
	int rc;

	*out = (struct fw_control){.kind = FW_CONTROL_NONE};
	err = STORE_ERR(err);
	rc = control_read(to, FW_MAX(after_id, INT64_C(0)), after_id < 0 ? 0 : 1, out, err);
	if (rc || after_id >= 0)
		return rc;
	out->kind = FW_CONTROL_NONE;
	return control_is_paused(to, &out->paused, err);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

int fw_store_heartbeat_put(struct fw_store *st, const struct fw_heartbeat *b, int64_t now_ms, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_record r = {
		.kind = WORKER, .key = fw_str(b->worker), .at_ms = now_ms, .until_ms = now_ms + WORKER_KEPT_MS};
	bool was;
	int rc;

	if (!r.key.len || r.key.len > FW_RECORD_KEY_MAX)
		return store_invalid(to, "heartbeat_put: invalid worker name: 1 to 255 bytes", err);
	fw_buf_addf(&text, "%lld %lld %lld %lld %lld %lld %lld %lld %lld", (long long)b->pid, (long long)b->started_ms,
		(long long)b->run_id, (long long)b->visits, (long long)b->new_entries, (long long)b->failures,
		(long long)b->in_flight, (long long)b->slots, (long long)b->clock_ahead_ms);
	r.value = fw_buf_str(&text);
	rc = text.rc ? fw_no_memory(err) : to->driver->record_put(to, &r, false, false, &was, STORE_ERR(err));
	fw_buf_finish(&text);
	return rc;
}

struct heartbeats {
	int64_t since_ms;
	fw_heartbeat_cb *cb;
	void *ctx;
};

static int heartbeat_row(void *ctx, const struct fw_record *r)
{
	const struct heartbeats *b = ctx;
	int64_t v[9] = {0};
	struct fw_str rest = r->value;
	char name[FW_RECORD_KEY_MAX + 1];
	struct fw_heartbeat heartbeat;

	if (r->at_ms < b->since_ms || !fw_str_copy(name, sizeof(name), r->key))
		return 0;
	for (size_t i = 0; i < FW_N(v) && (i < HEARTBEAT_N || rest.p); i++) {
		if (!fw_str_int(fw_str_split(rest, ' ', &rest), &v[i]))
			return 0;
	}
	heartbeat = (struct fw_heartbeat){.worker = name,
		.pid = v[0],
		.started_ms = v[1],
		.run_id = v[2],
		.visits = (uint64_t)v[3],
		.new_entries = (uint64_t)v[4],
		.failures = (uint64_t)v[5],
		.in_flight = (uint32_t)v[6],
		.slots = (uint32_t)v[7],
		.clock_ahead_ms = v[8],
		.at_ms = r->at_ms};
	return b->cb(b->ctx, &heartbeat);
}

int fw_store_heartbeat_list(struct fw_store *st, int64_t since_ms, fw_heartbeat_cb *cb, void *ctx, struct fw_err *err)
{
	struct heartbeats b = {since_ms, cb, ctx};
	struct store_record_query q = {.q = {.kind = WORKER, .after_kind = WORKER, .after_key = FW_STR("")}};

	return STORE_CALL(st, record_list, &q, heartbeat_row, &b, STORE_ERR(err));
}

/* ---- events ---------------------------------------------------------------------------------- */

int fw_store_event_ids(struct fw_store *st, struct fw_id_range *range, struct fw_err *err)
{
	assert(range->first >= 0 && range->clash_n >= 0);
	return STORE_CALL(st, event_ids, range, STORE_ERR(err));
}

int fw_store_event_put(struct fw_store *st, struct fw_event *event, size_t n, struct fw_err *err)
{
	return n ? STORE_CALL(st, event_put, event, n, NULL, 0, STORE_ERR(err)) : 0;
}

int fw_store_dead_letter_put(struct fw_store *st, struct fw_dead_letter *event, struct fw_err *err)
{
	return STORE_CALL(st, event_put, NULL, 0, event, 1, STORE_ERR(err));
}

int fw_store_event_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct store_event_query q = {.after_id = after_id, .limit = limit, .event = cb, .ctx = ctx};

	return STORE_CALL(st, event_list, &q, STORE_ERR(err));
}

int fw_store_dead_letter_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_dead_letter_cb *cb, void *ctx, struct fw_err *err)
{
	struct store_event_query q = {.after_id = after_id, .limit = limit, .dead = cb, .ctx = ctx};

	return STORE_CALL(st, event_list, &q, STORE_ERR(err));
}

int fw_store_dead_letter_remove(struct fw_store *st, const struct fw_dead_letter *event, size_t n, struct fw_err *err)
{
	int64_t *id = calloc(n + 1, sizeof(*id));
	int rc = id ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < n; i++)
		id[i] = event[i].id;
	rc = rc ? rc : STORE_CALL(st, event_remove, id, n, STORE_ERR(err));
	free(id);
	return rc;
}
