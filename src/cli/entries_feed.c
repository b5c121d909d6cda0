/* SPDX-License-Identifier: ISC */
/* entries --format: the entries as a feed, by the writer that GET /feeds/ uses. */
#include "api/feed_out.h"
#include "cli/cli.h"

#define LIMIT 100

static int entries_feed_add(void *ctx, const struct fw_entry_row *e)
{
	return fw_feed_out_add(ctx, e, NULL);
}

/* --format. False: an error message was printed. */
static bool entries_feed_format(struct cli *c, enum fw_feed_out_format *out)
{
	static const char *const NAME[FW_FEED_OUT_N] = {"atom", "rss", "json-feed"};
	const char *word = cli_value(c, "format");

	for (int i = 0; i < FW_FEED_OUT_N; i++) {
		if (strcmp(word, NAME[i]) == 0) {
			*out = (enum fw_feed_out_format)i;
			return true;
		}
	}
	(void)cli_usage(c, "--format must be atom, rss or json-feed, not '%.60s'", word);
	return false;
}

/* The name under /feeds/ that selects the same entries, if there is one: part of the feed's id. */
static void entries_feed_name(const struct fw_entry_query *q, struct fw_buf *name)
{
	if (q->feed_id)
		fw_buf_addf(name, "feed/%lld", (long long)q->feed_id);
	else if (q->folder.len && !q->search.len)
		fw_buf_addf(name, "folder/%.*s", FW_STR_ARG(q->folder));
	else if (q->search.len)
		fw_buf_addf(name, "query/%.*s", FW_STR_ARG(q->search));
	else
		fw_buf_adds(name, "all");
}

/* The head: as of the feed of that name, with an id of this machine's server. */
static int entries_feed_head(struct cli *c, const struct fw_entry_query *q, struct fw_arena *a,
	struct fw_feed_out_head *head, struct fw_err *err)
{
	struct fw_buf name = FW_BUF_INIT(0), id = FW_BUF_INIT(0);
	struct fw_feed_out_found found;
	struct fw_feed_out_name parsed;
	struct fw_str text;
	int rc;

	entries_feed_name(q, &name);
	text = fw_arena_str(a, fw_buf_str(&name));
	parsed = fw_feed_out_name_parse(text);
	rc = fw_feed_out_find(c->store, &parsed, a, &found, err);
	fw_feed_out_base(c->config, &id);
	if (!id.len)
		fw_buf_adds(&id, "http://localhost/");
	fw_feed_out_path(&id, text, FW_FEED_OUT_ATOM);
	*head = (struct fw_feed_out_head){.id = fw_arena_str(a, fw_buf_str(&id)),
		.title = found.title,
		.home_url = found.home_url,
		.description = found.description,
		.language = found.language,
		.icon = found.icon};
	if (!rc && (a->failed || name.rc || id.rc))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_buf_finish(&name);
	fw_buf_finish(&id);
	return rc;
}

int cli_entries_feed(struct cli *c, struct fw_entry_query *q)
{
	struct fw_view_work work = {.cache = NULL};
	struct fw_buf out = FW_BUF_INIT(0);
	enum fw_feed_out_format format;
	struct fw_feed_out_head head;
	struct fw_feed_out *f;
	struct fw_err err = {0};
	bool missing;
	int rc;

	if (cli_flag(c, "json") || cli_flag(c, "jsonl") || cli_flag(c, "raw"))
		return cli_usage(c, "--format excludes --json, --jsonl and --raw");
	if (!entries_feed_format(c, &format))
		return CLI_USAGE;
	f = fw_feed_out_create(format, &work);
	if (!f)
		return cli_fail(c, CLI_SOME, "out of memory");
	q->content = true;
	q->limit = q->limit ? q->limit : LIMIT;
	rc = entries_feed_head(c, q, &c->arena, &head, &err);
	rc = rc ? rc : fw_store_entry_list(c->store, q, entries_feed_add, f, &err);
	rc = rc ? rc : fw_feed_out_end(f, &head, &out, &err);
	missing = !rc && cli_flag(c, "id") && !fw_feed_out_bytes(f);
	if (!rc && !missing)
		cli_out_bytes(c, out.p, out.len);
	fw_feed_out_destroy(f);
	fw_buf_finish(&out);
	if (missing)
		return cli_entry_missing(c, q->after_id + 1);
	if (rc == FW_EINVAL)
		return cli_query_wrong(c, "--search", q->search, &err);
	if (rc == FW_ENOTFOUND)
		return cli_fail(c, CLI_SOME, "%s", err.text);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}
