/* SPDX-License-Identifier: ISC */
/*
 * changes: what happened to entries, in order: new, changed, gone. --follow goes on with what
 * happens next, until it is interrupted.
 */
#include "api/change.h"
#include "cli/cli.h"

#define WAIT_MS FW_SECOND_MS /* changes that the store does not announce are found after this */
#define FEED_COLUMNS 24

struct changes {
	struct cli *c;
	struct cli_list list;
	struct fw_change_query q;
	bool raw;
	size_t limit; /* 0: no limit */
	int rc;       /* a failure here, already reported */
};

static void change_print_words(struct cli *c, const char *style, struct fw_str text, size_t columns)
{
	struct fw_buf b = FW_BUF_INIT(0);

	for (size_t w = cli_fit(&b, &c->term, text, columns); w < columns; w++)
		fw_buf_addc(&b, ' ');
	cli_paint(&c->out, c->term.out_colour, style, fw_buf_str(&b));
	fw_buf_finish(&b);
}

/* One line: number, time, what, the feed, and the title or which entry is gone. */
static void change_print(struct changes *k, const struct fw_change *ch)
{
	static const char *const STYLE[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
	const struct fw_entry_row *e = ch->entry;
	struct cli *c = k->c;
	char text[FW_RFC3339_MAX];

	cli_out(c, "%8lld  %s  ", (long long)ch->id, cli_stamp(text, ch->at_ms));
	change_print_words(c, STYLE[ch->kind], fw_str(fw_change_kind_name(ch->kind)), 7);
	cli_out(c, "  ");
	if (!e) {
		cli_out(c, "entry %lld of feed %lld\n", (long long)ch->entry_id, (long long)ch->feed_id);
		return;
	}
	change_print_words(c, CLI_CYAN, e->feed_title.len ? e->feed_title : e->feed_url, FEED_COLUMNS);
	cli_out(c, "  ");
	cli_out_safe(c, cli_entry_title(c, e));
	if (ch->kind == FW_CHANGE_CHANGED)
		cli_out(c, " (entry %lld, version %u)", (long long)ch->entry_id, ch->revision);
	cli_out(c, "\n");
}

static void change_print_json(struct changes *k, const struct fw_change *ch)
{
	unsigned flags = (k->q.content ? FW_VIEW_CONTENT : 0) | (k->raw ? FW_VIEW_RAW : 0);
	struct fw_err err = {0};

	if (fw_change_json(cli_list_item(&k->list), NULL, ch, flags, &err))
		k->rc = cli_fail(k->c, CLI_SOME, "%s", err.text);
	cli_list_item_end(&k->list);
}

static int changes_add(void *ctx, const struct fw_change *ch)
{
	struct changes *k = ctx;

	k->list.n++;
	if (k->list.as_json)
		change_print_json(k, ch);
	else
		change_print(k, ch);
	cli_out_bytes(k->c, "", 0);
	return cli_out_failed(k->c) || k->rc;
}

/*
 * With JSON the list says where to go on, as /v1/changes does: the number of its last change need
 * not be the place.
 */
static void changes_begin(struct changes *k)
{
	if (!cli_as_json(k->c) || cli_as_lines(k->c)) {
		cli_list_begin(&k->list, k->c, NULL, 0);
		return;
	}
	k->list = (struct cli_list){.c = k->c, .as_json = true};
	fw_json_array(cli_json_object_begin(&k->list.json, k->c), "changes");
}

static void change_place_json(const struct changes *k, struct fw_json *j, const char *place)
{
	fw_json_cstr(j, "next", place);
	fw_json_bool(j, "more", k->q.next_id < k->q.head_id);
}

/* place NULL: reading failed. */
static void changes_finish(struct changes *k, const char *place)
{
	struct cli_list *l = &k->list;

	if (l->as_lines && place) {
		fw_json_object(cli_list_item(l), NULL);
		change_place_json(k, &l->json.j, place);
		fw_json_end(&l->json.j);
		cli_list_item_end(l);
	} else if (l->as_json && !l->as_lines) {
		fw_json_end(&l->json.j);
		if (place)
			change_place_json(k, &l->json.j, place);
		cli_json_object_end(&l->json, k->c);
	}
}

/* All changes up to the last one. *place: where to go on. */
static int changes_read_all(struct changes *k, char place[FW_CHANGE_PLACE_MAX])
{
	struct fw_err err = {0};
	int rc;

	k->q.limit = k->limit ? k->limit - k->list.n : 0;
	rc = fw_store_change_list(k->c->store, &k->q, changes_add, k, &err);
	fw_change_place_next(&k->q, place);
	if (rc == FW_EGONE)
		return cli_fail(k->c, CLI_SOME,
			"changes up to %lld were pruned (changes_retention_ms): read all entries anew with --after 0, "
			"or go on with the first change left: --after %lld",
			(long long)k->q.first_id - 1, (long long)k->q.first_id - 1);
	return rc < 0 ? cli_store_failed(k->c, &err) : k->rc;
}

static bool changes_end(const struct changes *k)
{
	return cli_out_failed(k->c) || (k->limit && k->list.n >= k->limit);
}

/* Until the limit, or until a signal ends the program. */
static int changes_follow(struct changes *k, char place[FW_CHANGE_PLACE_MAX])
{
	struct cli *c = k->c;
	struct fw_err err = {0};
	bool changed;
	int rc = 0;

	while (!rc && !changes_end(k)) {
		cli_flush(c);
		if (fw_store_wait(c->store, -1, WAIT_MS, &changed, &err) < 0)
			return cli_store_failed(c, &err);
		rc = changes_read_all(k, place);
	}
	return rc;
}

/* Where the log ends now. */
static int changes_find_end(struct changes *k)
{
	struct fw_change_query q = {.after_id = INT64_MAX - 1, .base_id = INT64_MAX - 1};
	struct fw_err err = {0};
	int rc = fw_store_change_list(k->c->store, &q, changes_add, k, &err);

	k->q.after_id = q.head_id;
	return rc < 0 ? cli_store_failed(k->c, &err) : 0;
}

static int changes_options(struct changes *k)
{
	const char *after = cli_value(k->c, "after"), *feed = cli_value(k->c, "feed");
	struct cli *c = k->c;
	struct fw_feed f = {0};
	int64_t limit = 0;
	int rc;

	if (after && !fw_change_place_read(fw_str(after), &k->q))
		return cli_usage(c, "--after must be a number that 'changes' has printed, not '%.60s'", after);
	if (!cli_value_int(c, "limit", 1, &limit))
		return CLI_USAGE;
	if (cli_flag(c, "follow") && cli_flag(c, "json"))
		return cli_usage(c, "--follow and --json exclude each other: --jsonl prints each change as it comes");
	k->limit = (size_t)limit;
	rc = cli_store(c, FW_STORE_READ);
	if (!rc && feed)
		rc = cli_feed(c, feed, false, &f);
	k->q.feed_id = f.id;
	k->q.folder = fw_str(cli_value(c, "folder"));
	return rc || after || !cli_flag(c, "follow") ? rc : changes_find_end(k);
}

static int changes_run(struct cli *c)
{
	struct changes k = {.c = c, .raw = cli_flag(c, "raw")};
	char place[FW_CHANGE_PLACE_MAX] = "0";
	int rc;

	k.q.content = cli_flag(c, "content") || k.raw;
	rc = changes_options(&k);
	if (rc)
		return rc;
	changes_begin(&k);
	rc = changes_read_all(&k, place);
	if (!rc && cli_flag(c, "follow"))
		rc = changes_follow(&k, place);
	changes_finish(&k, rc ? NULL : place);
	if (!rc && !k.list.as_json && !c->out_errno)
		cli_note(c, "%s(to go on: --after %s)", k.list.n ? "" : "no changes ", place);
	return rc;
}

static const struct cli_option CHANGES_OPTION[] = {
	{"after", "N", "go on after the change with this number (default: the first; with --follow: the last)"},
	{"follow", NULL, "wait for more changes, until interrupted"},
	{"feed", "FEED", "only this feed: its number, its URL, or a part of its URL or title"},
	{"folder", "FOLDER", "only feeds in this folder, and its subfolders"},
	{"limit", "N", "at most N"},
	{"content", NULL, "with JSON: include the content as sanitized HTML"},
	{"raw", NULL, "with JSON: include the content, not sanitized"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_changes_command = {
	.name = "changes",
	.args = "",
	.summary = "list what happened to entries: new, changed, gone",
	.about = "Changes have rising numbers; each is listed once, in order. An entry's own number is that of its\n"
		 "'new'. What 'changed' was is shown by 'read ENTRY --revisions'.\n"
		 "With JSON, 'next' is the number for --after that goes on from there.\n",
	.examples = "  feedwheel changes --after 4711\n  feedwheel changes --follow --jsonl | while read -r change; do "
		    "...\n",
	.option = CHANGES_OPTION,
	.run = changes_run,
};
