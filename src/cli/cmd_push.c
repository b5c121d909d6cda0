/* SPDX-License-Identifier: ISC */
/* push: store the entries of a file in a feed, like POST /v1/feeds/{id}/entries. */
#include "base/err.h"
#include "cli/cli.h"
#include "feedwheel/deliver.h"

/* waits this long while the feed moves to another host, or the store is locked */
#define PATIENCE_MS (30 * FW_SECOND_MS)

/* The content type: the option, else by the file's name. */
static struct fw_str push_content_type(struct cli *c, const char *path)
{
	struct fw_str type = fw_str(cli_value(c, "content-type")), name = fw_str(path);

	if (type.len)
		return type;
	return fw_str_ends(name, FW_STR(".ndjson")) || fw_str_ends(name, FW_STR(".jsonl")) ?
		FW_STR("application/x-ndjson") :
		FW_STR_NONE;
}

static int push_failed(struct cli *c, const char *path, const struct fw_err *err)
{
	if (err->rc == FW_EIO || fw_err_is_permanent(err->rc))
		return cli_store_failed(c, err);
	return cli_fail(c, CLI_SOME, "%s: %s%s", strcmp(path, "-") ? path : "standard input", err->text,
		err->rc == FW_ELIMIT && strstr(err->text, "max_bytes") ? " (to raise it, give --max-body-bytes SIZE)" :
									 "");
}

/* Like the response of POST /v1/feeds/{id}/entries, without the repairs. */
static void push_json(struct cli *c, int64_t feed_id, const struct fw_delivery_result *d)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_int(&w.j, "feed", feed_id);
	fw_json_int(&w.j, "entries", (int64_t)d->entry_n);
	fw_json_int(&w.j, "new", d->visit.new_n);
	fw_json_int(&w.j, "changed", d->visit.changed_n);
	fw_json_int(&w.j, "known", (int64_t)d->known_n);
	fw_json_int(&w.j, "repeated", (int64_t)d->repeat_n);
	fw_visit_json(&w.j, "visit", &d->visit);
	cli_json_object_end(&w, c);
}

static void push_summary(struct cli *c, int64_t feed_id, const struct fw_delivery_result *d)
{
	char all[FW_RFC3339_MAX], new[FW_RFC3339_MAX], changed[FW_RFC3339_MAX], known[FW_RFC3339_MAX];

	if (cli_flag(c, "json"))
		push_json(c, feed_id, d);
	else
		cli_out(c, "%s: %s, %s changed, %s known\n", cli_count(all, (int64_t)d->entry_n, "entry", "entries"),
			cli_count(new, d->visit.new_n, "new", "new"), cli_number(changed, d->visit.changed_n),
			cli_number(known, (int64_t)(d->known_n + d->repeat_n)));
	if (!d->entry_n)
		cli_note(c, "the document has no entries");
}

static int push_run(struct cli *c)
{
	const char *path = c->arg[1],
		   *limit = fw_arena_printf(&c->arena,
			   "the limit max_body_bytes of %lld bytes (to raise it, give --max-body-bytes SIZE)",
			   (long long)c->config->max_body_bytes);
	struct fw_delivery_input in = {.content_type = push_content_type(c, path), .strict = true};
	struct fw_delivery_result got;
	struct fw_buf text = {0};
	struct fw_feed feed;
	struct fw_err err = {0};
	int rc = cli_store(c, 0);

	rc = rc ? rc : cli_feed(c, c->arg[0], false, &feed);
	rc = rc ? rc : cli_read(c, path, (size_t)c->config->max_body_bytes, limit ? limit : "max_body_bytes", &text);
	if (rc)
		goto out;
	in.feed_id = feed.id;
	in.body = fw_buf_str(&text);
	if (fw_deliver(c->store, c->config, &in, PATIENCE_MS, &got, &err))
		rc = push_failed(c, path, &err);
	else
		push_summary(c, feed.id, &got);
out:
	fw_buf_finish(&text);
	return rc;
}

static const struct cli_option PUSH_OPTION[] = {
	{"content-type", "TYPE", "the type, if the file's name does not show it: application/x-ndjson"},
	{"json", NULL, "print a JSON object: how many entries are new, changed, known"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_push = {
	.name = "push",
	.args = "FEED FILE",
	.summary = "store entries from a file in a feed, as if they had been fetched",
	.about = CLI_FEED_TEXT "FILE is JSON Feed, Atom or RSS, or one JSON Feed item per line (.ndjson, .jsonl); - is "
			       "standard input. Entries that the feed\n"
			       "already has are not stored again. The feed's schedule does not change. Over HTTP: POST "
			       "/v1/feeds/ID/entries, see 'man feedwheel'.\n",
	.examples = "  feedwheel push 12 archive.xml\n  generate | feedwheel push --content-type application/x-ndjson "
		    "example.org -\n",
	.option = PUSH_OPTION,
	.min_args = 2,
	.max_args = 2,
	.run = push_run,
};
