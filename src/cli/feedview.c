/* SPDX-License-Identifier: ISC */
/* A feed, a visit and a document, as people and scripts see them. Passwords are never among it. */
#include <stdlib.h>

#include "cli/cli.h"
#include "base/banned.h"

struct fw_str cli_feed_title(const struct fw_feed *f)
{
	return f->user_title.len ? f->user_title : f->title.len ? f->title : f->url;
}

const char *cli_feed_state(const struct fw_feed *f, const char **style)
{
	*style = CLI_YELLOW;
	if (f->status == FW_FEED_PAUSED)
		return "paused";
	*style = CLI_RED;
	if (f->status != FW_FEED_ACTIVE)
		return fw_feed_status_name(f->status);
	if (f->fail_n)
		return "failing";
	*style = f->last_visit_ms ? CLI_GREEN : CLI_CYAN;
	return f->last_visit_ms ? "ok" : "new";
}

struct fw_str cli_feed_error(const struct fw_feed *f)
{
	return f->error.len ? f->error : fw_str(fw_visit_kind_name(f->last_kind));
}

/* Times of a feed use 0 for never. */
static void time_member(struct fw_json *j, const char *key, int64_t at_ms)
{
	if (at_ms != 0)
		fw_json_time(j, key, at_ms);
}

static void str_member(struct fw_json *j, const char *key, struct fw_str s)
{
	if (s.len)
		fw_json_str(j, key, s);
}

void cli_feed_json(struct fw_json *j, const char *key, const struct fw_feed *f)
{
	const char *style;

	fw_json_object(j, key);
	fw_json_int(j, "id", f->id);
	fw_json_str(j, "url", f->url);
	str_member(j, "title", f->user_title.len ? f->user_title : f->title);
	str_member(j, "document_title", f->title);
	str_member(j, "folder", f->folder);
	str_member(j, "home_page_url", f->home_page_url);
	str_member(j, "description", f->description);
	str_member(j, "language", f->language);
	str_member(j, "icon", f->icon);
	if (f->format != FW_FORMAT_NONE)
		fw_json_cstr(j, "format", fw_format_name(f->format));
	fw_json_cstr(j, "status", fw_feed_status_name(f->status));
	fw_json_cstr(j, "state", cli_feed_state(f, &style));
	fw_json_int(j, "entries", f->entry_n);
	time_member(j, "created", f->created_ms);
	time_member(j, "due", f->due_at_ms);
	str_member(j, "why", f->why);
	if (f->interval_ms)
		fw_json_int(j, "interval_ms", f->interval_ms);
	time_member(j, "last_visit", f->last_visit_ms);
	time_member(j, "last_ok", f->last_ok_ms);
	time_member(j, "last_new", f->last_new_ms);
	if (f->last_visit_ms)
		fw_json_cstr(j, "last_result", fw_visit_kind_name(f->last_kind));
	if (f->http_status)
		fw_json_int(j, "http_status", f->http_status);
	fw_json_int(j, "failures", f->fail_n);
	if (f->fail_n || f->status != FW_FEED_ACTIVE)
		str_member(j, "error", f->error);
	if (f->crash_n)
		fw_json_int(j, "crashes", f->crash_n);
	str_member(j, "etag", f->etag);
	str_member(j, "last_modified", f->last_modified);
	str_member(j, "redirect_url", f->redirect_url);
	str_member(j, "hub", f->hub);
	fw_json_bool(j, "auth", f->username.len > 0);
	if (f->lease_until_ms)
		fw_json_time(j, "lent_until", f->lease_until_ms);
	fw_json_end(j);
}

void cli_visit_json(struct fw_json *j, const char *key, const struct fw_visit *v)
{
	const struct { const char *name; int64_t us; } PHASE[] = {
		{"dns_us", v->dns_us}, {"connect_us", v->connect_us}, {"tls_us", v->tls_us},
		{"first_byte_us", v->first_byte_us}, {"total_us", v->total_us}, {"parse_us", v->parse_us},
	};

	fw_json_object(j, key);
	fw_json_time(j, "at", v->at_ms);
	fw_json_cstr(j, "result", fw_visit_kind_name(v->kind));
	if (v->http_status)
		fw_json_int(j, "http_status", v->http_status);
	str_member(j, "error", v->error);
	fw_json_int(j, "redirects", v->hops);
	for (size_t i = 0; i < FW_N(PHASE); i++)
		fw_json_int(j, PHASE[i].name, PHASE[i].us);
	fw_json_int(j, "wire_bytes", (int64_t)v->wire_bytes);
	fw_json_int(j, "body_bytes", (int64_t)v->body_bytes);
	fw_json_int(j, "items", v->item_n);
	fw_json_int(j, "new", v->new_n);
	fw_json_int(j, "changed", v->changed_n);
	fw_json_end(j);
}

void cli_offer_feeds(struct cli *c, const struct fw_err *why, const struct fw_link *feeds)
{
	struct fw_buf title = FW_BUF_INIT(400);
	bool any = feeds != NULL;

	if (strstr(why->text, "(OPML)"))
		(void)cli_fail(c, CLI_SOME, "'feedwheel import FILE' subscribes to what such a list holds");
	if (feeds)
		(void)cli_fail(c, CLI_SOME, "it names %s:", feeds->next ? "these feeds" : "this feed");
	for (; feeds; feeds = feeds->next) {
		fw_buf_reset(&title);
		cli_fit(&title, &c->term, feeds->title, 60);
		(void)cli_fail(c, CLI_SOME, "  %.*s%s%s", FW_STR_ARG(feeds->href), title.len ? "  " : "",
			title.p ? title.p : "");
	}
	if (any)
		(void)cli_fail(c, CLI_SOME, "'feedwheel add URL' subscribes");
	fw_buf_finish(&title);
}

/* For a shell: whatever stands in an address, it is one word and no command. */
static void shell_word(struct fw_buf *out, struct fw_str s)
{
	fw_buf_addc(out, '\'');
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '\'')
			fw_buf_adds(out, "'\\''");
		else
			fw_buf_addc(out, s.p[i]);
	}
	fw_buf_addc(out, '\'');
}

const char *cli_feed_remedy(struct cli *c, const struct fw_feed *f)
{
	static const char NAMES[] = "subscribe to "; /* the engine's words, at the end of an error */
	const char *at = f->last_kind == FW_VISIT_FORMAT ? fw_str_find(f->error, fw_str(NAMES)) : NULL, *end, *text;
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str url;

	if (!at || !f->fail_n)
		return "";
	url = fw_str_sub(f->error, (size_t)(at - f->error.p) + strlen(NAMES), f->error.len);
	end = fw_str_find(url, FW_STR(", "));
	url.len = end ? (size_t)(end - url.p) : url.len;
	fw_buf_adds(&b, "feedwheel add ");
	shell_word(&b, url);
	fw_buf_addf(&b, " && feedwheel remove '#%lld'", (long long)f->id);
	text = fw_arena_dup(&c->arena, b.p ? b.p : "", b.len);
	fw_buf_finish(&b);
	return text ? text : "";
}

int cli_document_print(struct cli *c, const struct fw_document *doc)
{
	struct fw_err err = {0};
	char *json = NULL;
	size_t len = 0;
	int rc = fw_document_json(doc, FW_PRINT_PRETTY | (cli_flag(c, "raw") ? FW_PRINT_RAW : 0), &json, &len, &err);

	if (rc)
		return cli_fail(c, CLI_SOME, "%s", err.text);
	cli_out_json(c, json, len);
	if (!len || json[len - 1] != '\n')
		cli_out(c, "\n");
	free(json);
	return CLI_OK;
}
