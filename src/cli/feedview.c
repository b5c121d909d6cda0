/* SPDX-License-Identifier: ISC */
/* Feeds and documents as text, never with passwords. api/view.h has them as JSON. */
#include <stdlib.h>

#include "cli/cli.h"
#include "api/feed_remedy.h"
#include "api/named_feed.h"
#include "api/quota.h"
#include "api/websub.h"

struct fw_str cli_feed_title(const struct fw_feed *f)
{
	return f->user_title.len ? f->user_title : f->title.len ? f->title : f->url;
}

void cli_added_json(struct fw_json *j, const struct fw_feed_new *f)
{
	fw_json_object(j, NULL);
	fw_json_int(j, "id", f->id);
	fw_json_str(j, "url", f->url);
	fw_json_bool(j, "existed", f->existed);
	fw_json_end(j);
}

/* The used part of the quota; the limits only if it is used up or entries are deferred. */
bool cli_quota_text(struct cli *c, int64_t feed_id, struct fw_buf *out)
{
	char n[FW_RFC3339_MAX], bytes[FW_RFC3339_MAX], waiting[FW_RFC3339_MAX], stamp[FW_RFC3339_MAX];
	struct fw_quota q;

	if (fw_quota_get(c->store, feed_id, c->now_ms, &q, NULL))
		return false;
	fw_buf_addf(out, "%s and %s since %s", cli_count(n, q.new_n, "new entry", "new entries"),
		cli_bytes(bytes, (uint64_t)q.bytes), cli_stamp(stamp, q.since_ms));
	if (q.deferred_n || fw_quota_is_used_up(c->config, &q))
		fw_buf_addf(out, ": used up until %s (feed_daily_entries_max, feed_daily_bytes_max)",
			cli_stamp(stamp, q.until_ms));
	if (q.deferred_n)
		fw_buf_addf(out, "; deferred: %s", cli_count(waiting, q.deferred_n, "entry", "entries"));
	return true;
}

void cli_quota_json(struct cli *c, struct fw_json *j, int64_t feed_id)
{
	struct fw_quota q;

	if (fw_quota_get(c->store, feed_id, c->now_ms, &q, NULL))
		return;
	fw_json_object(j, "quota");
	fw_json_time(j, "since", q.since_ms);
	fw_json_time(j, "until", q.until_ms);
	fw_json_int(j, "new", q.new_n);
	fw_json_int(j, "bytes", q.bytes);
	fw_json_int(j, "deferred", q.deferred_n);
	fw_json_end(j);
}

bool cli_feed_is_polled(const struct fw_feed *f)
{
	return f->status == FW_FEED_ACTIVE || (f->status == FW_FEED_GONE && f->due_at_ms > 0);
}

const char *cli_feed_state(const struct fw_feed *f, const char **style)
{
	*style = f->status == FW_FEED_PAUSED ? CLI_YELLOW :
		f->status != FW_FEED_ACTIVE  ? CLI_RED :
		f->fail_n                    ? CLI_RED :
		f->last_visit_ms             ? CLI_GREEN :
					       CLI_CYAN;
	return fw_feed_state(f);
}

struct fw_str cli_feed_error(const struct fw_feed *f)
{
	return f->error.len ? f->error : fw_str(fw_visit_kind_name(f->last_kind));
}

void cli_offer_feeds(struct cli *c, const struct fw_err *why, const struct fw_link *feeds)
{
	struct fw_buf title = FW_BUF_INIT(400);
	bool any = feeds != NULL;

	if (strstr(why->text, "(OPML)"))
		(void)cli_fail(c, CLI_SOME, "to subscribe to the feeds of an OPML list, run 'feedwheel import FILE'");
	if (feeds)
		(void)cli_fail(c, CLI_SOME, "the page advertises %s:", feeds->next ? "these feeds" : "this feed");
	for (; feeds; feeds = feeds->next) {
		fw_buf_reset(&title);
		cli_fit(&title, &c->term, feeds->title, 60);
		(void)cli_fail(c, CLI_SOME, "  %.*s%s%s", FW_STR_ARG(feeds->href), title.len ? "  " : "",
			title.p ? title.p : "");
	}
	if (any)
		(void)cli_fail(c, CLI_SOME, "to subscribe, run 'feedwheel add URL'");
	fw_buf_finish(&title);
}

void cli_server_text(struct cli *c, struct fw_str words)
{
	struct fw_buf b = FW_BUF_INIT(0);

	cli_fit(&b, &c->term, words, 400);
	if (words.len && b.len)
		(void)cli_fail(c, CLI_SOME, "response of the server: %s", b.p);
	fw_buf_finish(&b);
}

/* Quote s as one word for a shell. */
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

bool cli_remedy_is_command(const struct fw_feed *f)
{
	return f->fail_n && fw_named_feed(f).p;
}

const char *cli_feed_remedy(struct cli *c, const struct fw_feed *f)
{
	struct fw_str url = fw_named_feed(f);
	struct fw_buf b = FW_BUF_INIT(0);
	const char *text;

	if (!cli_remedy_is_command(f))
		return fw_feed_remedy(f);
	fw_buf_adds(&b, "feedwheel add ");
	shell_word(&b, url);
	fw_buf_addf(&b, " && feedwheel remove %lld", (long long)f->id);
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

const char *cli_websub_text(struct cli *c, const struct fw_websub *w)
{
	char stamp[FW_RFC3339_MAX], ago[FW_RFC3339_MAX], n[FW_RFC3339_MAX];
	const char *more = w->distrust_ms > c->now_ms ?
		"; it missed entries, so the feed is polled as usual for a while" :
		"";
	char *words;

	if (w->state == FW_WEBSUB_ACTIVE)
		words = fw_arena_printf(&c->arena, "active until %s, sent %s%s%s%s", cli_stamp(stamp, w->until_ms),
			cli_number(n, w->delivered_n), more, w->why.len ? "; " : "",
			w->why.len ? fw_arena_dup(&c->arena, w->why.p, w->why.len) : "");
	else
		words = fw_arena_printf(&c->arena, "%s%s%.*s; next try %s", fw_websub_state_name(w->state),
			w->why.len ? ": " : "", FW_STR_ARG(w->why),
			w->held                         ? "when it is switched on" :
				w->next_ms <= c->now_ms ? "soon" :
							  cli_ago(c, ago, w->next_ms));
	return words ? words : "";
}
