/* SPDX-License-Identifier: ISC */
/* show FEED: print all data of one feed and its last visits. */
#include "cli/cli.h"
#include "api/feed_remedy.h"
#include "api/websub.h"

struct visits {
	struct cli *c;
	struct cli_table *table;
	struct fw_json *j;
};

static void show_time(struct cli *c, const char *name, int64_t at_ms, struct fw_str more)
{
	char text[2 * FW_RFC3339_MAX];

	if (at_ms == 0)
		return;
	cli_label(c, name);
	cli_out(c, "%s%s", cli_when(c, text, at_ms), more.len ? ": " : "");
	cli_out_safe(c, more);
	cli_out(c, "\n");
}

/* The state of the subscription at the feed's hub. */
static void show_hub(struct cli *c, const struct fw_feed *f)
{
	struct fw_websub w;

	if (fw_websub_get(c->store, f->id, &c->arena, &w, NULL))
		return;
	if (!f->hub.len)
		cli_line(c, "cloud", w.hub);
	cli_line(c, "push", fw_str(cli_websub_text(c, &w)));
}

/* The used part of the daily quota; nothing for small feeds. */
static void show_quota(struct cli *c, const struct fw_feed *f)
{
	struct fw_buf words = FW_BUF_INIT(0);

	if (cli_quota_text(c, f->id, &words))
		cli_line(c, "quota", fw_buf_str(&words));
	fw_buf_finish(&words);
}

static void show_feed(struct cli *c, const struct fw_feed *f)
{
	const char *style, *state = cli_feed_state(f, &style);
	char n[FW_RFC3339_MAX];
	struct fw_buf title = FW_BUF_INIT(0);

	cli_fit(&title, &c->term, cli_feed_title(f), 0);
	cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_buf_str(&title));
	cli_out(c, "\n");
	cli_label(c, "state");
	cli_paint(&c->out, c->term.out_colour, style, fw_str(state));
	cli_out(c, "\n");
	cli_line(c, "url", f->url);
	cli_line(c, "home page", f->home_page_url);
	cli_line(c, "about", f->description);
	cli_line(c, "folder", f->folder);
	if (f->format != FW_FORMAT_NONE)
		cli_line(c, "format", fw_str(fw_format_name(f->format)));
	cli_line(c, "language", f->language);
	cli_line(c, "entries", fw_str(cli_number(n, f->entry_n)));
	show_time(c, "subscribed", f->created_ms, FW_STR_NONE);
	show_time(c, "visited", f->last_visit_ms,
		f->last_visit_ms ? fw_str(fw_visit_kind_name(f->last_kind)) : FW_STR_NONE);
	show_time(c, "last ok", f->last_ok_ms, FW_STR_NONE);
	show_time(c, "last new", f->last_new_ms, FW_STR_NONE);
	if (cli_feed_is_polled(f))
		show_time(c, "due", f->due_at_ms <= FW_DUE_FIRST ? c->now_ms : f->due_at_ms, f->why);
	if (f->interval_ms)
		cli_line(c, "interval", fw_str(fw_duration_text(n, f->interval_ms)));
	if (fw_feed_is_failing(f)) {
		cli_line(c, "failures", fw_str(cli_number(n, f->fail_n)));
		cli_line(c, "error", cli_feed_error(f));
		cli_out_wrap(c, CLI_LABEL_COLUMNS);
		cli_line(c, "remedy", fw_str(cli_feed_remedy(c, f)));
		if (!cli_remedy_is_command(f))
			cli_out_wrap(c, CLI_LABEL_COLUMNS);
		cli_flush(c);
	}
	cli_line(c, fw_feed_redirect_is_named(f) ? "self link" : "moving to", f->redirect_url);
	cli_line(c, "etag", f->etag);
	cli_line(c, "modified", f->last_modified);
	cli_line(c, "hub", f->hub);
	show_hub(c, f);
	show_quota(c, f);
	if (f->username.len)
		cli_line(c, "login", FW_STR("name and password are stored"));
	fw_buf_finish(&title);
}

static const struct cli_column SHOW_COLUMN[] = {
	{"VISIT"},
	{"RESULT"},
	{"STATUS", .right = true, .spare = 3},
	{"TOOK", .right = true, .spare = 2},
	{"BYTES", .right = true, .spare = 1},
	{"ITEMS", .right = true, .spare = 4},
	{"NEW", .right = true, .spare = 5},
	{"ERROR", .flex = true},
};

static int show_visit(void *ctx, const struct fw_visit *v)
{
	struct visits *s = ctx;
	char text[FW_RFC3339_MAX];
	bool good = fw_visit_succeeded(v->kind) || v->kind == FW_VISIT_PUSHED;

	if (s->j) {
		fw_visit_json(s->j, NULL, v);
		return cli_out_failed(s->c);
	}
	cli_table_cell(s->table, NULL, fw_str(cli_stamp(text, v->at_ms)));
	cli_table_cell(s->table, good ? CLI_GREEN : CLI_RED, fw_str(fw_visit_kind_name(v->kind)));
	cli_table_cell(s->table, NULL, v->http_status ? fw_str(cli_number(text, v->http_status)) : FW_STR("-"));
	cli_table_cell(s->table, NULL, fw_str(fw_duration_text(text, v->total_us / 1000)));
	cli_table_cell(s->table, NULL, fw_str(cli_bytes(text, v->wire_bytes)));
	cli_table_cell(s->table, NULL, fw_str(cli_number(text, v->item_n)));
	cli_table_cell(s->table, NULL, fw_str(cli_number(text, v->new_n)));
	cli_table_cell(s->table, NULL, v->error);
	return cli_out_failed(s->c);
}

static int show_text(struct cli *c, const struct fw_feed *f, const struct fw_visit_query *q)
{
	struct cli_table table;
	struct visits s = {.c = c, .table = &table};
	struct fw_err err = {0};
	int rc;

	show_feed(c, f);
	cli_out_wrap(c, CLI_LABEL_COLUMNS);
	cli_out(c, "\n");
	cli_table_init(&table, c, SHOW_COLUMN, FW_N(SHOW_COLUMN));
	rc = fw_store_visit_list(c->store, q, show_visit, &s, &err);
	cli_table_end(&table);
	return rc < 0 ? cli_store_failed(c, &err) : CLI_OK;
}

static int show_json(struct cli *c, const struct fw_feed *f, const struct fw_visit_query *q)
{
	struct cli_json w;
	struct visits s = {.c = c, .j = &w.j};
	struct fw_err err = {0};
	int rc;

	cli_json_begin(&w, true);
	fw_json_object(&w.j, NULL);
	fw_feed_json(&w.j, "feed", f);
	cli_quota_json(c, &w.j, f->id);
	fw_json_array(&w.j, "visits");
	rc = fw_store_visit_list(c->store, q, show_visit, &s, &err);
	fw_json_end(&w.j);
	fw_json_end(&w.j);
	cli_json_end(&w, c);
	return rc < 0 ? cli_store_failed(c, &err) : CLI_OK;
}

static int show_run(struct cli *c)
{
	struct fw_visit_query q = {.limit = 10};
	struct fw_feed f = {0};
	int64_t limit = 10;
	int rc;

	if (!cli_value_int(c, "visits", 1, &limit))
		return CLI_USAGE;
	rc = cli_store(c, FW_STORE_READ);
	if (!rc)
		rc = cli_feed(c, c->arg[0], false, &f);
	if (rc)
		return rc;
	q.feed_id = f.id;
	q.limit = (size_t)limit;
	return cli_flag(c, "json") ? show_json(c, &f, &q) : show_text(c, &f, &q);
}

static const struct cli_option SHOW_OPTION[] = {
	{"visits", "N", "show the last N visits (default 10)"},
	{"json", NULL, "print a JSON object: feed, visits, and quota for large feeds"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_show = {
	.name = "show",
	.args = "FEED",
	.summary = "show one feed and its last visits",
	.about = CLI_FEED_TEXT,
	.examples = "  feedwheel show example.org\n  feedwheel show 12 --json\n",
	.option = SHOW_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = show_run,
};
