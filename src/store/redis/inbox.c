/* SPDX-License-Identifier: ISC */
/*
 * The inbox: lists that other programs fill with RPUSH.
 *
 *	control, feeds_to_fetch                   rows that wait, the oldest first
 *	control_refused, feeds_to_fetch_refused   rows that were refused: JSON objects
 *
 * Before these names stands "PREFIX:", and on a cluster "{PREFIX/0}:", so that they are on the node
 * of the store.
 *
 * A taker reads the first rows, makes feeds and messages of them, and has them taken by one call of
 * the library (script/inbox.lua): if the lists still begin with exactly these rows, it stores what
 * they became and removes them. Otherwise another taker was faster, and this one reads again. So a
 * taker that dies has done all or nothing, and a row goes to one taker.
 *
 * A key that is no list hinders only its own rows, and no worker: the call fails with FW_EINVAL
 * when all others are taken.
 */
#include "base/clock.h"
#include "base/json.h"
#include "store/inbox.h"
#include "store/redis/redis.h"

#define TRIES 20
#define ROUNDS 50
#define CONTROL_STEP 500 /* rows of control that one call takes */
#define FEED_STEP 1000   /* the same of feeds_to_fetch */
#define DUE_DIGITS 20
#define DOING "taking rows of other programs"

enum { DOOR_CONTROL, DOOR_FEEDS, DOOR_CONTROL_REFUSED, DOOR_FEEDS_REFUSED, DOOR_N };
static const char *const door_name[DOOR_N] = {"control", "feeds_to_fetch", "control_refused", "feeds_to_fetch_refused"};

/* A row of either list. */
struct redis_inbox_row {
	struct fw_str raw;
	struct store_inbox_feed as; /* of feeds_to_fetch: as it was written */
	bool is_parsed;
	struct fw_str refused; /* the reason; absent: it is taken */
	struct fw_feed feed;
	char value[STORE_CONTROL_VALUE_MAX]; /* of control: the message */
	bool pauses;
};

struct redis_inbox {
	struct rs *r;
	struct store_inbox *in;
	struct fw_arena a; /* of one round */
	struct redis_inbox_row *control, *feed;
	size_t control_n, feed_n;
	int64_t now_ms, waiting_n; /* waiting_n: rows of feeds_to_fetch when they were read */
	const char *wrong;         /* the first key that is no list; NULL: none */
	bool skips[2];             /* DOOR_CONTROL, DOOR_FEEDS: it cannot be taken */
};

static void door_add(struct rs *r, int door)
{
	struct fw_buf *b = rs_word(r);

	fw_buf_addstr(b, r->door);
	fw_buf_adds(b, door_name[door]);
	rs_word_end(r);
}

static bool reply_is_wrong_type(const struct rs_reply *reply)
{
	return reply && reply->type == RS_ERROR && fw_str_starts(reply->text, FW_STR("WRONGTYPE"));
}

/* rs_run() of n commands, of which some may find a key of another type. */
static int doors_run(struct rs *r, size_t n, const char *doing, struct fw_err *err)
{
	int rc = rs_run(r, doing, err);
	bool wrong = false;

	for (size_t i = 0; rc == FW_EINVAL && i < n; i++) {
		wrong |= reply_is_wrong_type(r->reply[i]);
		if (!r->reply[i] || (r->reply[i]->type == RS_ERROR && !reply_is_wrong_type(r->reply[i])))
			return rc;
	}
	return wrong ? 0 : rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int inbox_rows_copy(struct redis_inbox *w, const struct rs_reply *from, struct redis_inbox_row **out, size_t *n)
{
	*n = from->type == RS_ARRAY ? from->n : 0;
	*out = fw_arena_calloc(&w->a, *n + 1, sizeof(**out));
	for (size_t i = 0; *out && i < *n; i++) {
		(*out)[i].raw = fw_arena_str(&w->a, rs_elem(from, i)->text);
		if (!(*out)[i].raw.p)
			return FW_ENOMEM;
	}
	return *out ? 0 : FW_ENOMEM;
}

static int inbox_read(struct redis_inbox *w, struct fw_err *err)
{
	static const int READ[] = {DOOR_CONTROL, DOOR_FEEDS, DOOR_FEEDS};
	const int64_t last[] = {CONTROL_STEP - 1, (int64_t)FW_MIN(w->in->limit, (size_t)FEED_STEP) - 1};
	struct rs *r = w->r;
	int rc;

	fw_arena_reset(&r->arena, RS_ARENA_KEEP);
	fw_arena_reset(&w->a, RS_ARENA_KEEP);
	rs_command(r, "TIME");
	rs_expect(r, RS_TIME);
	for (size_t i = 0; i < FW_N(READ); i++) {
		rs_command(r, i < 2 ? "LRANGE" : "LLEN");
		rs_expect_n(r, i < 2 ? "(t)<" : "i", i < 2 ? (size_t)(last[i] + 1) : 0);
		door_add(r, READ[i]);
		if (i < 2) {
			rs_addi(r, last[i] < 0 ? 1 : 0); /* 1 to 0: none */
			rs_addi(r, FW_MAX(last[i], INT64_C(0)));
		}
	}
	rc = doors_run(r, 1 + FW_N(READ), DOING, err);
	if (rc)
		return rc;
	w->now_ms = rs_time_ms(r->reply[0]);
	for (int door = DOOR_CONTROL; door <= DOOR_FEEDS; door++) {
		if (reply_is_wrong_type(r->reply[1 + door])) {
			w->skips[door] = true;
			w->wrong = w->wrong ? w->wrong : door_name[door];
		}
	}
	w->waiting_n = r->reply[3]->type == RS_INT && !w->skips[DOOR_FEEDS] ? r->reply[3]->integer : 0;
	rc = inbox_rows_copy(w, r->reply[1], &w->control, &w->control_n);
	rc = rc ? rc : inbox_rows_copy(w, r->reply[2], &w->feed, &w->feed_n);
	/* the rest of control comes first */
	w->feed_n = w->control_n == CONTROL_STEP || w->skips[DOOR_FEEDS] ? 0 : w->feed_n;
	w->control_n = w->skips[DOOR_CONTROL] ? 0 : w->control_n;
	return rc ? rs_no_memory(r, err) : 0;
}

/* ---- what becomes of the rows ---------------------------------------------------------------- */

/* Takes the rc of the row, and its reason. */
static int inbox_row_decide(
	struct redis_inbox *w, struct redis_inbox_row *row, int rc, const struct fw_err *why, struct fw_err *err)
{
	if (rc && rc != FW_EINVAL) {
		*err = *why;
		return rc;
	}
	row->refused = rc ? fw_arena_str(&w->a, fw_str(why->text)) : FW_STR_NONE;
	return rc && !row->refused.p ? rs_no_memory(w->r, err) : 0;
}

static int inbox_control_ask(struct redis_inbox *w, struct redis_inbox_row *row, struct fw_err *err)
{
	struct store_inbox_control control;
	struct fw_err why = {0};
	int rc = store_inbox_control_parse(fw_str_trim(row->raw), &w->a, &control, &why);

	rc = rc ? rc : store_inbox_control_value(&control, row->value, &row->pauses, &why);
	return inbox_row_decide(w, row, rc, &why, err);
}

static int inbox_feed_ask(struct redis_inbox *w, struct redis_inbox_row *row, struct fw_err *err)
{
	struct fw_feed_new made = {.id = 0};
	struct fw_err why = {0};
	int rc = store_inbox_feed_parse(fw_str_trim(row->raw), &w->a, &row->as, &why);

	row->is_parsed = !rc;
	rc = rc ? rc : RS_CALLBACK(w->r, w->in->feed(w->in->ctx, &row->as, &made, &why));
	made.due_at_ms = FW_DUE_FIRST;
	row->feed = store_feed_of_new(&made);
	row->feed.created_ms = w->now_ms;
	return inbox_row_decide(w, row, rc, &why, err);
}

static int inbox_ask(struct redis_inbox *w, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->control_n; i++)
		rc = inbox_control_ask(w, &w->control[i], err);
	for (size_t i = 0; !rc && i < w->feed_n; i++)
		rc = inbox_feed_ask(w, &w->feed[i], err);
	return rc;
}

static int inbox_refuse_status(
	struct redis_inbox *w, struct redis_inbox_row *row, enum fw_feed_status status, struct fw_err *err)
{
	row->refused = store_inbox_inactive(&w->a, status);
	return row->refused.p ? 0 : rs_no_memory(w->r, err);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* The JSON of a refused row: the row, or its members if it was an object; empty if it is taken. */
static void inbox_refused_add(struct redis_inbox *w, const struct redis_inbox_row *row, bool is_feed)
{
	struct fw_buf *b = rs_word(w->r);
	struct fw_json j;

	if (row->refused.p) {
		fw_json_init(&j, b, false);
		fw_json_object(&j, NULL);
		if (is_feed && row->is_parsed) {
			fw_json_str(&j, "url", row->as.url);
			fw_json_str(&j, "folder", row->as.folder);
			fw_json_str(&j, "title", row->as.title);
			fw_json_str(&j, "interval", row->as.interval);
		} else {
			fw_json_str(&j, "row", row->raw);
		}
		fw_json_str(&j, "reason", row->refused);
		fw_json_int(&j, "at_ms", w->now_ms);
		fw_json_end(&j);
	}
	rs_word_end(w->r);
}

static void inbox_feed_add(struct redis_inbox *w, const struct redis_inbox_row *row)
{
	struct rs *r = w->r;

	rs_add(r, row->raw);
	inbox_refused_add(w, row, true);
	if (row->refused.p) {
		for (int i = 0; i < 3; i++)
			rs_adds(r, "");
		return;
	}
	rs_add(r, row->feed.url);
	rs_feed_row_pack(rs_word(r), FW_STR_NONE, ~0u, &row->feed);
	rs_word_end(r);
	rs_schedule_row_pack(
		rs_word(r), &row->feed, &(struct rs_schedule_row){.host_id = store_feed_host_id(&row->feed)});
	rs_word_end(r);
}

/* The key that cannot be used: its rows are left alone from here on. */
static void inbox_door_is_wrong(struct redis_inbox *w, struct fw_str key)
{
	for (int door = 0; door < DOOR_N; door++) {
		struct fw_str name = fw_str(door_name[door]);

		if (!fw_str_starts(key, w->r->door) || !fw_str_eq(fw_str_sub(key, w->r->door.len, key.len), name))
			continue;
		w->wrong = w->wrong ? w->wrong : name.p;
		w->skips[door % 2] = true;
	}
}

/* {nth status ...}: these feeds cannot be made due. */
static int inbox_unfit_refuse(struct redis_inbox *w, const struct rs_reply *unfit, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 2 <= unfit->n; i += 2) {
		size_t nth = (size_t)rs_int(rs_elem(unfit, i));

		if (nth >= w->feed_n)
			return rs_malformed(w->r, DOING, err);
		rc = inbox_refuse_status(w, &w->feed[nth], (enum fw_feed_status)rs_int(rs_elem(unfit, i + 1)), err);
	}
	return rc;
}

static void inbox_take_request(struct redis_inbox *w)
{
	struct rs *r = w->r;

	rs_call(r, RS_WRITE, "inbox_take");
	rs_expect(r, "[i]|[ii]|[it]|[i(ii)]");
	rs_add(r, r->door);
	rs_addi(r, STORE_CONTROL_KEPT_MS);
	rs_int_pad(rs_word(r), FW_DUE_FIRST, DUE_DIGITS);
	rs_word_end(r);
	rs_addi(r, (int64_t)w->control_n);
	for (size_t i = 0; i < w->control_n; i++) {
		rs_add(r, w->control[i].raw);
		inbox_refused_add(w, &w->control[i], false);
		rs_adds(r, w->control[i].value);
		rs_addi(r, w->control[i].pauses);
	}
	rs_addi(r, (int64_t)w->feed_n);
	for (size_t i = 0; i < w->feed_n; i++)
		inbox_feed_add(w, &w->feed[i]);
}

/*
 * One call for all rows. *taken: otherwise nothing was done, because another taker has some of the
 * rows, or a list cannot be used.
 */
static int inbox_take(struct redis_inbox *w, size_t *new_n, bool *taken, struct fw_err *err)
{
	bool again = true;
	int rc = 0;

	*taken = false;
	for (int i = 0; !rc && again && i < TRIES; i++) {
		const struct rs_reply *answer;
		int64_t result;

		inbox_take_request(w);
		rc = rs_run(w->r, DOING, err);
		if (rc)
			return rc;
		answer = w->r->reply[0];
		result = rs_int(rs_elem(answer, 0));
		again = result == -2;
		if (again)
			rc = inbox_unfit_refuse(w, rs_elem(answer, 1), err);
		else if (result == -1)
			inbox_door_is_wrong(w, rs_elem(answer, 1)->text);
		*taken = result == 1;
		*new_n = *taken ? (size_t)rs_int(rs_elem(answer, 1)) : 0;
	}
	return rc;
}

/* ---- the slot -------------------------------------------------------------------------------- */

/* Take what is waiting now, once. *taken: otherwise read again. */
static int inbox_try(struct redis_inbox *w, bool *taken, struct fw_err *err)
{
	size_t new_n = 0;
	int rc = inbox_read(w, err);

	rc = rc ? rc : inbox_ask(w, err);
	*taken = !w->control_n && !w->feed_n;
	if (rc || *taken)
		return rc;
	rc = inbox_take(w, &new_n, taken, err);
	if (rc || !*taken)
		return rc;
	w->in->control_n += w->control_n;
	w->in->feed_n += w->feed_n;
	w->in->new_n += new_n;
	for (size_t i = 0; i < w->control_n; i++)
		w->in->refused_n += w->control[i].refused.p != NULL;
	for (size_t i = 0; i < w->feed_n; i++)
		w->in->refused_n += w->feed[i].refused.p != NULL;
	return 0;
}

int rs_inbox(struct store *st, struct store_inbox *in, struct fw_err *err)
{
	struct redis_inbox w = {.r = rs_of(st), .in = in};
	bool taken = false, control_waits = true;
	int rc = rs_slot_start(w.r, true, err);

	in->control_n = in->feed_n = in->new_n = in->refused_n = 0;
	fw_arena_init(&w.a, 0);
	for (int round = 0; !rc && control_waits && round < ROUNDS; round++) {
		taken = false;
		for (int i = 0; !rc && !taken && i < TRIES; i++)
			rc = inbox_try(&w, &taken, err);
		control_waits = w.control_n == CONTROL_STEP || !taken;
		in->more = control_waits || w.waiting_n > (int64_t)w.feed_n;
	}
	fw_arena_finish(&w.a);
	if (rc || !w.wrong || in->control_n || in->feed_n)
		return rc;
	return fw_err_set(err, FW_EINVAL,
		"%s: key %.*s%s is no list, so rows of other programs are not taken: rename or delete it "
		"('redis-cli DEL %.*s%s')",
		w.r->target.name, FW_STR_ARG(w.r->door), w.wrong, FW_STR_ARG(w.r->door), w.wrong);
}

int rs_inbox_count(struct rs *r, int64_t *waiting_n, int64_t *refused_n, struct fw_err *err)
{
	int rc;

	*waiting_n = *refused_n = 0;
	for (int door = 0; door < DOOR_N; door++) {
		rs_command(r, "LLEN");
		rs_expect(r, "i");
		door_add(r, door);
	}
	rc = doors_run(r, DOOR_N, "counting", err);
	for (int door = 0; !rc && door < DOOR_N; door++)
		*(door < DOOR_CONTROL_REFUSED ? waiting_n : refused_n) += rs_int(r->reply[door]);
	return rc;
}

int rs_inbox_inspect(struct rs *r, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	int rc;

	for (int door = 0; door < DOOR_N; door++) {
		rs_command(r, "TYPE");
		rs_expect(r, "t");
		door_add(r, door);
	}
	rc = rs_run(r, "checking", err);
	for (int door = 0; !rc && door < DOOR_N; door++) {
		struct fw_str type = r->reply[door]->text;
		char text[200], remedy[200];

		if (fw_str_eq(type, FW_STR("list")) || fw_str_eq(type, FW_STR("none")))
			continue;
		(void)fw_snprintf(text, sizeof(text), "key %.*s%s is no list, so rows of other programs are not taken",
			FW_STR_ARG(r->door), door_name[door]);
		(void)fw_snprintf(remedy, sizeof(remedy), "rename or delete it: 'redis-cli DEL %.*s%s'",
			FW_STR_ARG(r->door), door_name[door]);
		cb(ctx, "inbox", 2, text, remedy);
	}
	return rc;
}
