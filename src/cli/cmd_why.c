/* SPDX-License-Identifier: ISC */
/* why FEED: print when the feed is polled next, and why then. */
#include "base/clock.h"
#include "base/str.h"
#include "base/url.h"
#include "cli/cli.h"
#include "api/host_cooldown.h"
#include "api/redirect_adoption.h"
#include "api/trust.h"
#include "api/websub.h"

static const char *why_not_polled(const struct fw_feed *f)
{
	switch (f->status) {
	case FW_FEED_PAUSED:
		return "it is paused (to poll it again, run 'feedwheel resume')";
	case FW_FEED_GONE:
		return "it is gone (410 or expired; to poll it now, run 'feedwheel resume')";
	case FW_FEED_QUARANTINED:
		return "it is quarantined because its visits crashed a worker (to try again, run 'feedwheel resume')";
	default:
		return NULL;
	}
}

/* ---- redirects ------------------------------------------------------------------------------- */

static int why_redirect_print(void *ctx, const struct fw_adoption *m)
{
	struct cli *c = ctx;
	char stamp[FW_RFC3339_MAX];

	cli_out(c, "  %s ", m->merged ? "merged with" : "permanently redirected from");
	cli_out_safe(c, m->from);
	cli_out(c, m->merged ? ", which redirected to it, since %s\n" : ", since %s\n", cli_stamp(stamp, m->at_ms));
	return 0;
}

static int why_redirect_json(void *ctx, const struct fw_adoption *m)
{
	struct fw_json *j = ctx;

	fw_json_object(j, NULL);
	fw_json_str(j, "from", m->from);
	fw_json_time(j, "at", m->at_ms);
	fw_json_bool(j, "merged", m->merged);
	fw_json_end(j);
	return 0;
}

/*
 * Find the feed that the argument names. If no feed has that URL, find the feed that was redirected
 * from it.
 */
static int why_find_feed(struct cli *c, struct fw_feed *f)
{
	struct fw_str url, user, pass;
	struct fw_adoption m;
	struct fw_err err = {0};

	if (fw_url_clean(&c->arena, fw_str(c->arg[0]), &url, &user, &pass, NULL) ||
		fw_store_feed_find(c->store, 0, url, &c->arena, f, &err) != FW_ENOTFOUND ||
		fw_adoption_find(c->store, url, &c->arena, &m, &err) ||
		fw_store_feed_find(c->store, m.feed_id, FW_STR_NONE, &c->arena, f, &err))
		return cli_feed(c, c->arg[0], false, f);
	return 0;
}

static int why_count_redirects(void *ctx, const struct fw_visit *v)
{
	uint32_t *n = ctx;

	*n = v->redirects;
	return 0;
}

/* Another feed has the address, and does not take this one up. */
static bool why_not_merged(struct cli *c, const struct fw_feed *f)
{
	struct fw_feed into;
	struct fw_err err = {0};
	const char *refused = fw_store_feed_find(c->store, 0, f->redirect_url, &c->arena, &into, &err) ?
		NULL :
		fw_adoption_refused(f, &into);

	if (refused)
		cli_out(c, ": not merged with feed %lld there, which %s\n", (long long)into.id, refused);
	return refused;
}

/* Print what redirects mean for the feed. A temporary redirect changes nothing. */
static void why_redirects(struct cli *c, const struct fw_feed *f)
{
	struct fw_visit_query last = {.feed_id = f->id, .limit = 1};
	char stamp[FW_RFC3339_MAX], n[FW_RFC3339_MAX];
	struct fw_err err = {0};
	uint32_t redirects = 0;

	if (!f->redirect_url.len) {
		if (!fw_store_visit_list(c->store, &last, why_count_redirects, &redirects, &err) && redirects)
			cli_out(c, "  its last visit was redirected temporarily (%s): its URL stays\n",
				cli_count(n, redirects, "redirect", "redirects"));
		return;
	}
	if (fw_feed_redirect_is_named(f)) {
		cli_out(c,
			"  its document has had another self link since %s: ", cli_stamp(stamp, f->redirect_since_ms));
		cli_out_safe(c, f->redirect_url);
		cli_out(c,
			"\n    only a permanent redirect changes its URL (to subscribe to the other one, run "
			"'feedwheel add')\n");
		return;
	}
	cli_out(c, "  redirected permanently to ");
	cli_out_safe(c, f->redirect_url);
	if (f->redirect_n && why_not_merged(c, f))
		return;
	if (f->redirect_n)
		cli_out(c, " since %s (%s): after a day that becomes its URL\n", cli_stamp(stamp, f->redirect_since_ms),
			cli_count(n, f->redirect_n, "visit", "visits"));
	else
		cli_out(c,
			", where no entry of this feed was found: its URL stays (to subscribe to the other one, run "
			"'feedwheel add')\n");
}

/* ---- 304 ------------------------------------------------------------------------------------- */

static void why_trust(struct cli *c, const struct fw_feed *f)
{
	char stamp[FW_RFC3339_MAX], until[FW_RFC3339_MAX], n[FW_RFC3339_MAX];
	struct fw_trust t;

	if (!fw_trust_of(f, c->now_ms, &t))
		return;
	if (t.level < 0)
		cli_out(c,
			"  304 (not modified) is not trusted: on %s the server sent it although there were new entries",
			cli_stamp(stamp, t.denied_ms));
	else if (t.level > 0)
		cli_out(c, "  304 (not modified) is trusted: the last %s found the document unchanged",
			cli_count(n, t.level, "check", "checks"));
	else
		cli_out(c, "  304 (not modified) was not checked yet");
	cli_out(c, "; after %s it is checked by an unconditional request\n", cli_stamp(until, t.until_ms));
}

static void why_trust_json(struct fw_json *j, const struct cli *c, const struct fw_feed *f)
{
	struct fw_trust t;

	if (!fw_trust_of(f, c->now_ms, &t))
		return;
	fw_json_object(j, "not_modified");
	fw_json_int(j, "trust", t.level);
	fw_json_time(j, "check_after", t.until_ms);
	if (t.checked_ms)
		fw_json_time(j, "checked", t.checked_ms);
	if (t.denied_ms)
		fw_json_time(j, "contradicted", t.denied_ms);
	fw_json_end(j);
}

/* ---- a backlog ------------------------------------------------------------------------------- */

/*
 * Is the feed so late that a run orders it by lateness (backlog_ms)? *intervals: its lateness in
 * its own intervals; -1: never visited.
 */
static bool why_is_late(const struct cli *c, const struct fw_feed *f, double *intervals)
{
	int64_t late_ms = c->now_ms - f->due_at_ms, backlog_ms = c->config->backlog_ms;

	*intervals = f->last_visit_ms ? fw_due_priority(c->now_ms, f->due_at_ms, f->last_visit_ms) : -1;
	return !why_not_polled(f) && f->due_at_ms > FW_DUE_FIRST && backlog_ms && late_ms > backlog_ms;
}

static void why_late(struct cli *c, const struct fw_feed *f)
{
	double intervals;

	if (!why_is_late(c, f, &intervals))
		return;
	if (intervals < 0)
		cli_out(c, "  never visited; while a run has a backlog, every second fetch is of a feed like this\n");
	else
		cli_out(c,
			"  late by %.*f of its intervals; a run with a backlog starts with the feeds that are late by "
			"the most intervals\n",
			intervals < 10, intervals);
}

/* Print the host whose limits apply, if it is not the URL's host. */
static void why_host(struct cli *c, const struct fw_feed *f)
{
	char host[256], name[256];

	if (!fw_url_host(f->url, name, sizeof(name)) || !fw_store_feed_host(f, host, sizeof(host)) ||
		strcmp(host, name) == 0)
		return;
	cli_out(c, "  host_concurrency and host_gap_ms apply to all feeds of ");
	cli_out_safe(c, fw_str(host));
	cli_out(c, " together\n");
}

/* No request goes to the host before this time, also not for 'fetch-now'. 0: at any time. */
static int64_t why_cooldown_ms(struct cli *c, const struct fw_feed *f)
{
	int64_t until_ms;

	return why_not_polled(f) || fw_feed_cooldown(c->store, f, &until_ms, NULL) ? 0 : until_ms;
}

static void why_cooldown(struct cli *c, const struct fw_feed *f)
{
	int64_t until_ms = why_cooldown_ms(c, f);
	char host[256], stamp[FW_RFC3339_MAX], ago[FW_RFC3339_MAX];

	if (!until_ms || !fw_store_feed_host(f, host, sizeof(host)))
		return;
	cli_out(c, "  not before %s (%s): ", cli_stamp(stamp, until_ms), cli_ago(c, ago, until_ms));
	cli_out_safe(c, fw_str(host));
	cli_out(c, " has refused requests until then (429, 503 or Retry-After), also for 'fetch-now'\n");
}

/* The daily quota and deferred entries. */
static void why_quota(struct cli *c, const struct fw_feed *f)
{
	struct fw_buf words = FW_BUF_INIT(0);

	if (cli_quota_text(c, f->id, &words)) {
		cli_out(c, "  quota: ");
		cli_out_safe(c, fw_buf_str(&words));
		cli_out(c, "\n");
	}
	fw_buf_finish(&words);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int why_json(struct cli *c, const struct fw_feed *f)
{
	struct cli_json w;
	struct fw_err err = {0};
	double intervals;
	int64_t cooldown_ms;
	char host[256];
	int rc;

	cli_json_begin(&w, true);
	fw_json_object(&w.j, NULL);
	fw_json_int(&w.j, "id", f->id);
	fw_json_str(&w.j, "url", f->url);
	fw_json_cstr(&w.j, "status", fw_feed_status_name(f->status));
	fw_json_time(&w.j, "due", f->due_at_ms);
	fw_json_str(&w.j, "why", f->why);
	if (why_is_late(c, f, &intervals) && intervals >= 0)
		fw_json_double(&w.j, "late_intervals", intervals);
	cli_quota_json(c, &w.j, f->id);
	fw_json_int(&w.j, "failures", f->fail_n);
	if (fw_store_feed_host(f, host, sizeof(host)))
		fw_json_cstr(&w.j, "host", host);
	cooldown_ms = why_cooldown_ms(c, f);
	if (cooldown_ms)
		fw_json_time(&w.j, "host_cooldown", cooldown_ms);
	why_trust_json(&w.j, c, f);
	if (f->redirect_url.len)
		fw_json_str(&w.j, fw_feed_redirect_is_named(f) ? "self_url" : "redirect_url", f->redirect_url);
	fw_json_array(&w.j, "redirects");
	rc = fw_adoption_list(c->store, f->id, why_redirect_json, &w.j, &err);
	fw_json_end(&w.j);
	fw_json_end(&w.j);
	cli_json_end(&w, c);
	return rc ? cli_store_failed(c, &err) : CLI_OK;
}

/* The state of the subscription at the feed's hub. */
static void why_hub(struct cli *c, const struct fw_feed *f)
{
	struct fw_websub hub;

	if (fw_websub_get(c->store, f->id, &c->arena, &hub, NULL))
		return;
	cli_out(c, "  hub ");
	cli_out_safe(c, hub.hub);
	cli_out(c, ": ");
	cli_out_safe(c, fw_str(cli_websub_text(c, &hub)));
	cli_out(c, "\n");
}

#define HANG 4

static int why_text(struct cli *c, const struct fw_feed *f)
{
	char stamp[FW_RFC3339_MAX], ago[FW_RFC3339_MAX];
	struct fw_err err = {0};
	const char *remedy;

	cli_out_safe(c, f->url);
	if (why_not_polled(f))
		cli_out(c, "\n  %s\n", why_not_polled(f));
	if (f->status == FW_FEED_GONE)
		cli_out(c, "  polled once more %s (%s)\n", cli_ago(c, ago, f->due_at_ms),
			cli_stamp(stamp, f->due_at_ms));
	else if (why_not_polled(f))
		return CLI_OK;
	else if (f->due_at_ms <= FW_DUE_FIRST)
		cli_out(c, "\n  due now, before all others, because of 'fetch-now'\n");
	else if (f->due_at_ms <= c->now_ms)
		cli_out(c, "\n  due now (since %s)\n", cli_stamp(stamp, f->due_at_ms));
	else
		cli_out(c, "\n  due %s (%s)\n", cli_ago(c, ago, f->due_at_ms), cli_stamp(stamp, f->due_at_ms));
	why_cooldown(c, f);
	why_late(c, f);
	cli_out(c, "  because: ");
	cli_out_safe(c, f->why.len ? f->why : FW_STR("it is new and not visited yet"));
	cli_out(c, "\n");
	why_host(c, f);
	why_trust(c, f);
	why_redirects(c, f);
	why_hub(c, f);
	why_quota(c, f);
	if (fw_adoption_list(c->store, f->id, why_redirect_print, c, &err))
		return cli_store_failed(c, &err);
	if (f->fail_n) {
		cli_out(c, f->fail_n == 1 ? "  failed once: " : "  failed %u times in a row, last error: ", f->fail_n);
		cli_out_safe(c, cli_feed_error(f));
		cli_out(c, "\n");
		cli_out_wrap(c, HANG);
		remedy = cli_feed_remedy(c, f);
		if (*remedy) {
			cli_out(c, "  remedy: ");
			cli_out_safe(c, fw_str(remedy));
			cli_out(c, "\n");
			if (!cli_remedy_is_command(f))
				cli_out_wrap(c, HANG);
			cli_flush(c);
		}
	}
	return CLI_OK;
}

static int why_run(struct cli *c)
{
	struct fw_feed f = {0};
	int rc = cli_store(c, FW_STORE_READ);

	if (!rc)
		rc = why_find_feed(c, &f);
	if (rc)
		return rc;
	if (cli_flag(c, "json"))
		return why_json(c, &f);
	rc = why_text(c, &f);
	cli_out_wrap(c, HANG);
	return rc;
}

static const struct cli_option WHY_OPTION[] = {
	{"json", NULL, "print a JSON object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_why = {
	.name = "why",
	.args = "FEED",
	.summary = "explain when a feed is polled next",
	.about = CLI_FEED_TEXT,
	.examples = "  feedwheel why https://example.org/feed.xml\n",
	.option = WHY_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = why_run,
};
