/* SPDX-License-Identifier: ISC */
/*
 * events: list pushed events, oldest first; list the dead letters, events that the store refused
 * (--dead-letters); retry those (--retry).
 *
 * A store lists events from a number upwards. To find the last N of a long table,
 * events_find_last() counts the events since a second ago, then since 8 s, 64 s and so on: event
 * numbers contain the time.
 */
#include "base/err.h"
#include "base/ids.h"
#include "cli/cli.h"
#include "feedwheel/ingest.h"

#define LAST 20 /* default limit of the table */
#define RETRY_ROWS 500

struct events {
	struct cli *c;
	struct cli_list list;
	struct fw_arena arena; /* of one row */
	bool dead, counting;
	int64_t after_id;
	size_t limit; /* 0: all */
	size_t n, skip;
};

static const struct cli_column EVENT[] = {
	{"PUSHED"},
	{"PROPERTY", .flex = true, .most = 60},
	{"SECTION", .right = true, .spare = 2},
	{"ITEM", .right = true},
	{"FROM", .spare = 1},
	{"ID", .right = true, .spare = 3},
};
static const struct cli_column DEAD[] = {
	{"REFUSED"},
	{"ID", .right = true, .spare = 1},
	{"REASON", .flex = true, .most = 90},
	{"ROW", .flex = true},
};

/* ---- showing --------------------------------------------------------------------------------- */

static void events_cell_number(struct events *e, int64_t v)
{
	char text[FW_RFC3339_MAX];

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)v);
	cli_table_cell(&e->list.table, NULL, fw_str(text));
}

/* property, section and id are those of POST /v1/events. */
static void event_json(struct fw_json *j, const char *key, const struct fw_event *v)
{
	fw_json_object(j, key);
	fw_json_int(j, "event", v->id);
	fw_json_time(j, "at", v->stamp_ms);
	fw_json_str(j, "property", v->property);
	fw_json_int(j, "section", v->section);
	fw_json_int(j, "id", v->item);
	if (v->remote_ip.len)
		fw_json_str(j, "remote_ip", v->remote_ip);
	fw_json_end(j);
}

static void event_cells(struct events *e, const struct fw_event *v)
{
	char when[FW_RFC3339_MAX];

	cli_table_cell(&e->list.table, NULL, fw_str(cli_stamp(when, v->stamp_ms)));
	cli_table_cell(&e->list.table, CLI_BOLD, v->property);
	events_cell_number(e, v->section);
	events_cell_number(e, v->item);
	cli_table_cell(&e->list.table, NULL, v->remote_ip.len ? v->remote_ip : FW_STR("-"));
	events_cell_number(e, v->id);
}

/* "row" is an object; if the row is not ours it is a string. */
static void dead_letter_json(struct events *e, const struct fw_dead_letter *v)
{
	struct fw_json *j = cli_list_item(&e->list);
	struct fw_event row;
	struct fw_err err;

	fw_json_object(j, NULL);
	fw_json_int(j, "event", v->id);
	fw_json_time(j, "since", v->at_ms);
	fw_json_str(j, "reason", v->reason);
	if (fw_event_row_parse(v->row, &e->arena, &row, &err))
		fw_json_str(j, "row", v->row);
	else
		event_json(j, "row", &row);
	fw_json_end(j);
	cli_list_item_end(&e->list);
	fw_arena_reset(&e->arena, v->row.len);
}

static void dead_letter_cells(struct events *e, const struct fw_dead_letter *v)
{
	char when[FW_RFC3339_MAX];

	cli_table_cell(&e->list.table, NULL, fw_str(cli_stamp(when, v->at_ms)));
	events_cell_number(e, v->id);
	cli_table_cell(&e->list.table, CLI_RED, v->reason);
	cli_table_cell(&e->list.table, CLI_DIM, v->row);
}

/* Count the next event. Is it shown? */
static bool events_count_one(struct events *e)
{
	if (!e->counting && e->skip) {
		e->skip--;
		return false;
	}
	e->n++;
	return !e->counting;
}

static int events_row(void *ctx, const struct fw_event *v)
{
	struct events *e = ctx;

	if (!events_count_one(e))
		return 0;
	if (e->list.as_json) {
		event_json(cli_list_item(&e->list), NULL, v);
		cli_list_item_end(&e->list);
	} else {
		event_cells(e, v);
	}
	return cli_out_failed(e->c);
}

static int events_dead_letter(void *ctx, const struct fw_dead_letter *v)
{
	struct events *e = ctx;

	if (!events_count_one(e))
		return 0;
	if (e->list.as_json)
		dead_letter_json(e, v);
	else
		dead_letter_cells(e, v);
	return cli_out_failed(e->c);
}

static int events_list(struct events *e, size_t limit, struct fw_err *err)
{
	struct fw_store *st = e->c->store;

	e->n = 0;
	return e->dead ? fw_store_dead_letter_list(st, e->after_id, limit, events_dead_letter, e, err) :
			 fw_store_event_list(st, e->after_id, limit, events_row, e, err);
}

/* Find a start with at least the last e->limit events behind it; e->skip: how many too many. */
static int events_find_last(struct events *e, struct fw_err *err)
{
	int rc = 0;

	e->counting = true;
	for (int64_t span_ms = FW_SECOND_MS; !rc && e->n < e->limit; span_ms *= 8) {
		e->after_id = fw_ids_first(e->c->now_ms - span_ms) - 1;
		rc = events_list(e, e->limit, err);
		if (e->after_id < 0)
			break;
	}
	rc = rc ? rc : events_list(e, 0, err);
	e->skip = e->n > e->limit ? e->n - e->limit : 0;
	e->counting = false;
	return rc;
}

static int events_show(struct events *e)
{
	struct cli *c = e->c;
	struct fw_err err = {0};
	int rc = 0;

	fw_arena_init(&e->arena, 0);
	if (e->limit && !cli_value(c, "since") && !cli_value(c, "after"))
		rc = events_find_last(e, &err);
	if (!rc) {
		cli_list_begin(&e->list, c, e->dead ? DEAD : EVENT, e->dead ? FW_N(DEAD) : FW_N(EVENT));
		rc = events_list(e, e->limit ? e->limit + e->skip : 0, &err);
		cli_list_end(&e->list);
	}
	fw_arena_finish(&e->arena);
	if (rc < 0)
		return cli_store_failed(c, &err);
	if (!e->n && !e->list.as_json)
		cli_note(c, e->dead ? "no dead letters" : "no events%s",
			e->after_id > 0 ? " match" : " yet ('feedwheel serve' accepts pushed events)");
	return CLI_OK;
}

/* ---- retry ----------------------------------------------------------------------------------- */

struct events_retry {
	struct fw_arena arena;
	struct fw_dead_letter dead[RETRY_ROWS];
	struct fw_event event[RETRY_ROWS];
	size_t n;
	int64_t last_id, stored_n, refused_n;
	struct fw_ids ids; /* for events whose id another one has */
	uint64_t clash_n;
};

/* Collect a dead letter. A row that cannot be parsed is counted as refused and stays. */
static int retry_collect(void *ctx, const struct fw_dead_letter *v)
{
	struct events_retry *r = ctx;
	struct fw_err err;
	int rc = fw_event_row_parse(v->row, &r->arena, &r->event[r->n], &err);

	r->last_id = v->id;
	r->refused_n += rc == FW_EFORMAT;
	if (rc)
		return rc == FW_EFORMAT ? 0 : rc;
	r->dead[r->n] = *v;
	r->dead[r->n].row = fw_arena_str(&r->arena, v->row);
	r->dead[r->n].reason = fw_arena_str(&r->arena, v->reason);
	r->event[r->n].id = v->id;
	r->n++;
	return r->arena.failed ? FW_ENOMEM : 0;
}

/* Refused again: store the new reason. */
static int retry_refused(
	struct events_retry *r, struct fw_store *st, const struct fw_dead_letter *dead, struct fw_err *err)
{
	struct fw_err why = *err;
	struct fw_dead_letter again = *dead;

	r->refused_n++;
	again.reason = fw_str(why.text);
	return fw_str_eq(again.reason, dead->reason) ? 0 : fw_store_dead_letter_put(st, &again, err);
}

/*
 * Store the events, then delete their dead letters. If killed in between, both exist; the next
 * retry deletes the dead letters.
 */
static int retry_put(struct events_retry *r, struct fw_store *st, size_t from, size_t n, struct fw_err *err)
{
	int rc = fw_event_ids_put(st, &r->ids, &r->event[from], n, &r->clash_n, err);

	if (!rc) {
		rc = fw_store_dead_letter_remove(st, &r->dead[from], n, err);
		r->stored_n += rc ? 0 : (int64_t)n;
		return rc;
	}
	if (fw_err_is_of_store(rc))
		return rc;
	if (n == 1)
		return retry_refused(r, st, &r->dead[from], err);
	rc = retry_put(r, st, from, n / 2, err);
	return rc ? rc : retry_put(r, st, from + n / 2, n - n / 2, err);
}

static int events_retry(struct cli *c)
{
	struct events_retry *r = fw_arena_zalloc(&c->arena, sizeof(*r));
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX];
	struct fw_err err = {.text = "out of memory"};
	struct cli_json w;
	int64_t from_id;
	int rc;

	if (!r)
		return cli_fail(c, CLI_SOME, "out of memory");
	fw_arena_init(&r->arena, 0);
	fw_ids_init(&r->ids);
	do {
		from_id = r->last_id;
		r->n = 0;
		rc = fw_store_dead_letter_list(c->store, from_id, RETRY_ROWS, retry_collect, r, &err);
		rc = rc || !r->n ? rc : retry_put(r, c->store, 0, r->n, &err);
		fw_arena_reset(&r->arena, 0);
	} while (!rc && r->last_id > from_id);
	fw_arena_finish(&r->arena);
	if (cli_as_json(c)) {
		cli_json_object_begin(&w, c);
		fw_json_int(&w.j, "stored", r->stored_n);
		fw_json_int(&w.j, "refused", r->refused_n);
		cli_json_object_end(&w, c);
	} else if (r->stored_n || rc || !r->refused_n) {
		cli_out(c, "%s stored\n", cli_count(a, r->stored_n, "event is", "events are"));
	}
	if (rc)
		return cli_store_failed(c, &err);
	return r->refused_n ? cli_fail(c, CLI_SOME, "%s refused again ('feedwheel events --dead-letters' lists them)",
				      cli_count(b, r->refused_n, "event was", "events were")) :
			      CLI_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int events_run(struct cli *c)
{
	struct events e = {.c = c, .dead = cli_flag(c, "dead-letters")};
	const char *since = cli_value(c, "since");
	int64_t limit = 0, since_ms = 0;
	int rc;

	if (cli_flag(c, "retry") && (e.dead || since || cli_value(c, "after") || cli_value(c, "limit")))
		return cli_usage(c, "--retry stores all dead letters: it can only be combined with --json");
	if (since && cli_value(c, "after"))
		return cli_usage(c, "--since and --after exclude each other");
	if (!cli_value_time(c, "since", &since_ms))
		return CLI_USAGE;
	if (!cli_value_int(c, "limit", 1, &limit) || !cli_value_int(c, "after", 0, &e.after_id))
		return CLI_USAGE;
	e.limit = limit ? (size_t)limit : cli_as_json(c) || since || cli_value(c, "after") ? 0 : LAST;
	rc = cli_store(c, cli_flag(c, "retry") ? 0 : FW_STORE_READ);
	if (rc)
		return rc;
	if (!cli_value_time(c, "since", &since_ms))
		return CLI_USAGE;
	if (since)
		e.after_id = FW_MAX(fw_ids_first(since_ms) - 1, 0);
	return cli_flag(c, "retry") ? events_retry(c) : events_show(&e);
}

static const struct cli_option EVENTS_OPTION[] = {
	{"dead-letters", NULL, "list the dead letters: events that the store refused, with the reason"},
	{"since", "TIME", "only events pushed since TIME: 2h, 3d, today, yesterday, 2026-11-01, RFC 3339"},
	{"after", "ID", "only events with a higher number (a cursor)"},
	{"limit", "N", "at most N: the last N; with --since or --after the first N"},
	CLI_LIST_OPTIONS,
	{"retry", NULL, "try again to store the dead letters"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_events = {
	.name = "events",
	.args = "",
	.summary = "list pushed events; list or retry dead letters",
	.about = "Oldest first. The last 20; with --json, --jsonl, --since or --after all.\n"
		 "--retry deletes the dead letters that could be stored. Exit status 1: some were refused again.\n",
	.examples = "  feedwheel events --since 10m\n  feedwheel events --dead-letters\n  feedwheel events --retry\n"
		    "  feedwheel events --jsonl --since 1d | jq -s 'group_by(.property) | map({(.[0].property): "
		    "length}) | add'\n",
	.option = EVENTS_OPTION,
	.run = events_run,
};
