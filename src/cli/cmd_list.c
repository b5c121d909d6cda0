/* SPDX-License-Identifier: ISC */
/* list: list the subscriptions, as a table or as JSON. */
#include "cli/cli.h"

struct list {
	struct cli_list out;
	bool failing;
	bool folders; /* a feed of the list has a folder */
	bool stacked; /* failing, and the terminal is too narrow for reason and URL on one line */
};

static const struct cli_column PLAIN[] = {
	{"FEED", .right = true},
	{"STATE"},
	{"VISITED", .spare = 1},
	{"DUE", .spare = 2},
	{"ENTRIES", .right = true, .spare = 3},
	{"TITLE", .flex = true, .most = 40},
	{"URL", .flex = true},
};
/* the same with folders */
static const struct cli_column FOLDERS[] = {
	{"FEED", .right = true},
	{"STATE"},
	{"VISITED", .spare = 1},
	{"DUE", .spare = 2},
	{"ENTRIES", .right = true, .spare = 3},
	{"FOLDER", .most = 30, .spare = 4},
	{"TITLE", .flex = true, .most = 40},
	{"URL", .flex = true},
};
static const struct cli_column FAILING[] = {
	{"FEED", .right = true},
	{"STATE"},
	{"FAILURES", .right = true, .spare = 1},
	{"DUE", .spare = 2},
	{"REASON", .flex = true, .most = 90},
	{"URL", .flex = true},
};

static void list_cell(struct list *l, const char *style, const char *text)
{
	cli_table_cell(&l->out.table, style, fw_str(text));
}

static const char *list_due(const struct cli *c, const struct fw_feed *f, char text[FW_RFC3339_MAX])
{
	if (!cli_feed_is_polled(f))
		return "-";
	return f->due_at_ms <= c->now_ms ? "now" : cli_ago(c, text, f->due_at_ms);
}

static void list_row(struct list *l, const struct fw_feed *f)
{
	char id[FW_RFC3339_MAX], text[FW_RFC3339_MAX];
	const char *style, *state = cli_feed_state(f, &style);
	bool has_title = f->user_title.len || f->title.len;

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)f->id);
	list_cell(l, CLI_DIM, id);
	list_cell(l, style, state);
	if (l->failing) {
		list_cell(l, NULL, cli_number(text, f->fail_n));
		list_cell(l, NULL, list_due(l->out.c, f, text));
		cli_table_cell(&l->out.table, NULL, cli_feed_error(f));
	} else {
		list_cell(l, NULL, cli_ago(l->out.c, text, f->last_visit_ms));
		list_cell(l, NULL, list_due(l->out.c, f, text));
		list_cell(l, NULL, cli_number(text, f->entry_n));
		if (l->folders)
			cli_table_cell(&l->out.table, NULL, f->folder.len ? f->folder : FW_STR("-"));
		cli_table_cell(&l->out.table, CLI_BOLD, has_title ? cli_feed_title(f) : FW_STR("-"));
	}
	cli_table_cell(&l->out.table, CLI_DIM, f->url);
}

#define STACKED_COLUMNS 120

#define REASON_COLUMN 16

/* Two lines: the whole reason, below it the URL. Neither is cut. */
static void list_failing(struct list *l, const struct fw_feed *f)
{
	struct cli *c = l->out.c;
	const char *style, *state = cli_feed_state(f, &style);
	char id[FW_RFC3339_MAX], text[FW_RFC3339_MAX];
	struct fw_buf b = FW_BUF_INIT(0);

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)f->id);
	fw_buf_addf(&b, "%5s  ", id);
	cli_paint(&b, c->term.out_colour, style, fw_str(state));
	fw_buf_addf(&b, "%*s", (int)FW_MAX(9 - (int)strlen(state), 2), "");
	cli_fit(&b, &c->term, cli_feed_error(f), 0);
	fw_buf_addf(&b, "\n%*s", REASON_COLUMN, "");
	cli_fit(&b, &c->term, f->url, 0);
	if (f->fail_n > 1)
		fw_buf_addf(&b, "  %s", cli_count(text, f->fail_n, "failure", "failures"));
	if (cli_feed_is_polled(f))
		fw_buf_addf(&b, "  due %s", list_due(c, f, text));
	cli_out_lines(c, fw_buf_str(&b), REASON_COLUMN);
	fw_buf_finish(&b);
}

static int list_feed(void *ctx, const struct fw_feed *f)
{
	struct list *l = ctx;

	l->out.n++;
	if (l->out.as_json) {
		fw_feed_json(cli_list_item(&l->out), NULL, f);
		cli_list_item_end(&l->out);
	} else if (l->stacked) {
		list_failing(l, f);
	} else {
		list_row(l, f);
	}
	return cli_out_failed(l->out.c);
}

static int list_folder_seen(void *ctx, const struct fw_feed *f)
{
	bool *seen = ctx;

	*seen = f->folder.len > 0;
	return *seen;
}

/* The columns; *rc: the result of looking for a folder. */
static void list_begin(struct list *l, struct cli *c, const struct fw_feed_query *q, int *rc, struct fw_err *err)
{
	if (!l->failing && !cli_flag(c, "json") && !cli_flag(c, "jsonl"))
		*rc = fw_store_feed_list(c->store, q, list_folder_seen, &l->folders, err);
	if (l->failing)
		cli_list_begin(&l->out, c, FAILING, FW_N(FAILING));
	else if (l->folders)
		cli_list_begin(&l->out, c, FOLDERS, FW_N(FOLDERS));
	else
		cli_list_begin(&l->out, c, PLAIN, FW_N(PLAIN));
}

static int list_status(struct cli *c, int *status)
{
	const char *text = cli_value(c, "status");

	*status = -1;
	for (int i = FW_FEED_ACTIVE; text && i <= FW_FEED_QUARANTINED; i++) {
		if (strcmp(text, fw_feed_status_name((enum fw_feed_status)i)) == 0)
			*status = i;
	}
	return text && *status < 0 ?
		cli_usage(c, "--status must be active, paused, gone or quarantined, not '%.60s'", text) :
		0;
}

static int list_run(struct cli *c)
{
	struct list l = {.failing = cli_flag(c, "failing")};
	struct fw_feed_query q = {.failing = l.failing, .by_due = cli_flag(c, "by-due")};
	struct fw_err err = {0};
	int64_t limit = 0;
	int rc;

	q.folder = fw_str(cli_value(c, "folder"));
	q.match = fw_str(cli_value(c, "match"));
	if (list_status(c, &q.status) || !cli_value_int(c, "limit", 1, &limit))
		return CLI_USAGE;
	q.limit = (size_t)limit;
	l.stacked = l.failing && c->term.out_tty && c->term.width < STACKED_COLUMNS;
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	list_begin(&l, c, &q, &rc, &err);
	rc = rc < 0 ? rc : fw_store_feed_list(c->store, &q, list_feed, &l, &err);
	cli_list_end(&l.out);
	if (rc < 0)
		return cli_store_failed(c, &err);
	if (!l.out.n && !l.out.as_json && !cli_folder_missing(c, cli_value(c, "folder")))
		cli_note(c, "%s",
			l.failing                            ? "no feed is failing" :
				q.match.len || q.status >= 0 ? "no feed matches ('feedwheel list' lists all)" :
							       "no feeds (to subscribe, run 'feedwheel add URL')");
	return CLI_OK;
}

static const struct cli_option LIST_OPTION[] = {
	{"folder", "FOLDER", "only this folder and its subfolders"},
	{"match", "TEXT", "only feeds with TEXT in their URL or title"},
	{"status", "STATUS", "only feeds that are active, paused, gone or quarantined",
		"active paused gone quarantined"},
	{"failing", NULL, "only feeds whose last visit failed, with the reason"},
	{"by-due", NULL, "sort by due time instead of age"},
	{"limit", "N", "at most N"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_list = {
	.name = "list",
	.args = "",
	.summary = "list subscriptions",
	.examples = "  feedwheel list --failing\n  feedwheel list --folder news --json | jq '.[].url'\n",
	.option = LIST_OPTION,
	.run = list_run,
};
