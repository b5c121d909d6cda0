/* SPDX-License-Identifier: ISC */
/* Entries as text. api/view.h has them as JSON. */
#include <stdlib.h>

#include "base/url.h"
#include "base/utf8.h"
#include "cli/cli.h"

#define BEGINNING_BYTES ((size_t)4096) /* of content, enough to make a title */
#define READ_COLUMNS 100               /* wider lines are hard to read */

static struct fw_str entry_base_url(const struct fw_entry_row *r)
{
	return r->content_base.len ? r->content_base : r->url;
}

static bool entry_is_html(const struct fw_entry_row *r)
{
	return r->content.len && r->content_type != FW_TEXT_PLAIN;
}

/*
 * The start of the content as text; alternative texts of pictures only if there is no other text.
 * Not escaped for a terminal.
 */
static struct fw_str entry_text_start(struct cli *c, const struct fw_entry_row *r)
{
	static const struct cli_term PLAIN = {.utf8 = true};
	struct fw_str text = fw_str_sub(
		r->content, 0, fw_utf8_cut(r->content.p ? r->content.p : "", r->content.len, BEGINNING_BYTES));
	struct fw_buf b = FW_BUF_INIT(0);
	char *safe = NULL;
	size_t len = 0;

	if (!entry_is_html(r))
		return fw_str_trim(text);
	if (!fw_sanitize(text, entry_base_url(r), 0, &safe, &len, NULL))
		cli_page_line(&b, &PLAIN, (struct fw_str){safe, len}, false);
	if (safe && !b.len)
		cli_page_line(&b, &PLAIN, (struct fw_str){safe, len}, true);
	text = fw_arena_str(&c->arena, fw_buf_str(&b));
	free(safe);
	fw_buf_finish(&b);
	return text;
}

struct fw_str cli_entry_title(struct cli *c, const struct fw_entry_row *r)
{
	struct fw_str title = fw_str_trim(r->title);

	title = title.len ? title : fw_str_trim(r->summary);
	title = title.len ? title : entry_text_start(c, r);
	return title.len ? title : FW_STR("(no title, no text)");
}

struct fw_document *cli_entry_document(struct cli *c, const struct fw_entry_row *r)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_document *doc = NULL;
	struct fw_err err = {0};
	struct fw_json j;
	int rc;

	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_cstr(&j, "version", "https://jsonfeed.org/version/1.1");
	fw_json_array(&j, "items");
	rc = fw_entry_json(&j, r, 0, &err);
	fw_json_end(&j);
	fw_json_end(&j);
	rc = rc ? rc : b.rc ? fw_err_set(&err, b.rc, "out of memory") : fw_parse(b.p, b.len, NULL, &doc, &err);
	if (rc || !doc || !doc->entries) {
		(void)cli_fail(c, CLI_SOME, "entry %lld: cannot read its stored authors, tags and attachments: %s",
			(long long)r->id, rc ? err.text : "not an object");
		fw_document_free(doc);
		doc = NULL;
	}
	fw_buf_finish(&b);
	return doc;
}

struct fw_str cli_entry_link(struct cli *c, const struct fw_entry_row *r)
{
	struct fw_document *doc;
	struct fw_str url = FW_STR_NONE;

	if (r->url.len)
		return r->url;
	if (fw_is_http(r->guid))
		return r->guid;
	if (!fw_str_find(r->extra.p ? r->extra : FW_STR(""), FW_STR("\"attachments\"")))
		return url;
	doc = cli_entry_document(c, r);
	if (doc && doc->entries->attachments)
		url = fw_arena_str(&c->arena, doc->entries->attachments->url);
	fw_document_free(doc);
	return url;
}

int64_t cli_entry_date(const struct fw_entry_row *r)
{
	int64_t at_ms = fw_date_known(r->published_ms) ? r->published_ms :
		fw_date_known(r->updated_ms)           ? r->updated_ms :
							 r->seen_ms;

	return FW_MIN(at_ms, r->seen_ms);
}

int cli_entry_content(struct cli *c, const struct fw_entry_row *r, bool raw, size_t indent)
{
	size_t columns = FW_MIN((size_t)c->term.width, (size_t)READ_COLUMNS), len = 0;
	struct fw_str text = r->content.len ? r->content : r->summary;
	struct fw_err err = {0};
	char *safe = NULL;
	int rc = 0;

	if (raw) {
		cli_out_safe(c, text);
		cli_out(c, "\n");
	} else if (!entry_is_html(r)) {
		cli_page_text(&c->out, &c->term, text, columns, indent);
	} else if (!fw_sanitize(text, entry_base_url(r), 0, &safe, &len, &err)) {
		cli_page_html(&c->out, &c->term, (struct fw_str){safe, len}, columns, indent);
	} else {
		rc = cli_fail(c, CLI_SOME, "entry %lld: %s", (long long)r->id, err.text);
	}
	free(safe);
	return rc;
}

struct fw_entry_query cli_entry_query(int64_t id)
{
	return (struct fw_entry_query){.after_id = id - 1,
		.before_id = id < INT64_MAX ? id + 1 : 0,
		.oldest_first = true,
		.limit = 1,
		.content = true};
}

int cli_entry_missing(struct cli *c, int64_t id)
{
	return cli_fail(
		c, CLI_SOME, "no entry has the number %lld ('feedwheel entries' lists the newest)", (long long)id);
}
