/* SPDX-License-Identifier: ISC */
/*
 * add URL...: subscribe to all URLs, or to none if one is invalid. Only --check fetches anything.
 */
#include <unistd.h>

#include "api/feed_login.h"
#include "base/url.h"
#include "cli/cli.h"

/*
 * Replace a page by the first feed that it advertises, its default (HTML standard, 4.6.7.1). The
 * login is kept for the same origin only.
 */
static bool add_use_advertised(struct cli *c, struct fw_feed_new *f, const struct fw_link *feeds)
{
	struct fw_str url, user, pass;
	struct fw_err err = {0};

	if (!feeds || fw_url_clean(&c->arena, feeds->href, &url, &user, &pass, &err))
		return false;
	cli_note(c, "%.*s: the URL is an HTML page; subscribing to the %sfeed it advertises instead",
		FW_STR_ARG(f->url), feeds->next ? "first " : "");
	for (feeds = feeds->next; feeds; feeds = feeds->next)
		cli_note(c, "the page also advertises %.*s", FW_STR_ARG(feeds->href));
	if (!fw_url_same_origin(f->url, url))
		f->username = f->password = FW_STR_NONE;
	f->url = url;
	return true;
}

/*
 * Fetch f's URL. 0 if it is a feed or, with follow, a page that advertises one, which then replaces
 * f.
 */
static int add_fetch(struct cli *c, struct fw_feed_new *f, bool follow, struct fw_response *a)
{
	struct fw_err err = {0};

	if (fw_fetch_url(c->config, f->url, f->username, f->password, a, &err))
		return cli_fail(c, CLI_SOME, "%.*s: %s", FW_STR_ARG(f->url), err.text);
	if (a->doc) {
		f->home_page_url = a->doc->home_page_url;
		return CLI_OK;
	}
	if (follow && add_use_advertised(c, f, a->feeds)) {
		fw_response_free(a);
		return add_fetch(c, f, false, a);
	}
	(void)cli_fail(c, CLI_SOME, "%.*s: not subscribed: %s", FW_STR_ARG(f->url), a->err.text);
	cli_server_text(c, a->words);
	cli_offer_feeds(c, &a->err, a->feeds);
	return CLI_SOME;
}

/* Store the fetched document as the feed's first visit, so that the feed is not fetched again. */
static int add_store_visit(struct cli *c, const struct fw_feed_new *f, struct fw_response *a)
{
	struct fw_err err = {0};

	if (!a->doc || f->existed || !fw_response_store(c->store, c->config, a, f->id, &err))
		return CLI_OK;
	return cli_fail(c, CLI_SOME, "%.*s: subscribed, but the fetched entries could not be stored: %s",
		FW_STR_ARG(f->url), err.text);
}

static int add_parse_args(struct cli *c, struct fw_feed_new *feed)
{
	const char *title = cli_value(c, "title"), *folder = cli_value(c, "folder");
	int64_t interval_ms = 0;
	struct fw_err err = {0};
	int rc = CLI_OK;

	if (cli_value(c, "user") && cli_value(c, "interval"))
		return cli_usage(
			c, "--user and --interval exclude each other: the interval is of the feed, for all accounts");
	if (title && c->arg_n > 1)
		return cli_usage(c, "--title needs exactly one URL, not %d", c->arg_n);
	if (!cli_value_interval(c, &interval_ms))
		return CLI_USAGE;
	for (int i = 0; i < c->arg_n; i++) {
		struct fw_feed_new *f = &feed[i];

		f->user_title = fw_str(title);
		f->folder = fw_str(folder);
		f->interval_ms = interval_ms;
		if (!fw_url_clean(&c->arena, fw_str(c->arg[i]), &f->url, &f->username, &f->password, &err))
			continue;
		if (access(c->arg[i], F_OK) == 0 || fw_str_starts(fw_str(c->arg[i]), FW_STR("./")))
			rc = cli_usage(c,
				"'%.200s' is a file, not a URL: a list of feeds is for 'feedwheel import', a feed for"
				" 'feedwheel parse' or 'feedwheel push'",
				c->arg[i]);
		else
			rc = cli_usage(c, "%s: %s", *c->arg[i] ? cli_url_show(c, c->arg[i]) : "''", err.text);
	}
	return rc;
}

static int add_store(struct cli *c, struct fw_feed_new *feed, size_t n)
{
	const char *user = cli_value(c, "user");
	struct fw_err err = {0};

	if (user)
		return cli_account_import(c, user, feed, n);
	return fw_store_subscribe(c->store, feed, n, &err) ? cli_store_failed(c, &err) : 0;
}

/* What a known feed keeps, though the command names another value. */
static void add_note_kept(struct cli *c, const struct fw_feed_new *f)
{
	static const char *const OPTION[] = {"title", "folder", "interval"};
	bool given = false;

	for (size_t i = 0; i < FW_N(OPTION); i++)
		given |= cli_value(c, OPTION[i]) != NULL;
	if (given && cli_value(c, "user"))
		cli_note(c, "the feed keeps its title and folder: the page's list of feeds changes them");
	else if (given)
		cli_note(c,
			"feed %lld keeps its title, folder and interval (to change them, run 'feedwheel set %lld' with"
			" the same options)",
			(long long)f->id, (long long)f->id);
}

/* Before the first one is subscribed: no login may be dropped. */
static int add_check_logins(struct cli *c, const struct fw_feed_new *feed, size_t n)
{
	struct fw_err err = {0};
	int rc = CLI_OK;

	for (size_t i = 0; i < n; i++) {
		int found = fw_feed_login_check(c->store, &feed[i], &err);

		if (found && found != FW_EINVAL)
			return cli_store_failed(c, &err);
		if (found)
			rc = cli_fail(c, CLI_USAGE, "%.*s: %s", FW_STR_ARG(feed[i].url), err.text);
	}
	return rc;
}

static int add_subscribe(struct cli *c, struct fw_feed_new *feed, struct fw_response *answer, size_t n)
{
	size_t added = 0;
	struct cli_list l;
	int rc = add_store(c, feed, n);

	if (rc)
		return rc;
	cli_list_begin(&l, c, NULL, 0);
	for (size_t i = 0; i < n; i++) {
		if (!feed[i].id) {
			rc = cli_fail_login(c, "not subscribed", feed[i].url);
			continue;
		}
		if (l.as_json) {
			cli_added_json(cli_list_item(&l), &feed[i]);
			cli_list_item_end(&l);
		} else {
			cli_out(c, "%lld ", (long long)feed[i].id);
			cli_out_safe(c, feed[i].url);
			cli_out(c, "%s\n", feed[i].existed ? " (already subscribed)" : "");
		}
		added += !feed[i].existed;
		if (feed[i].existed)
			add_note_kept(c, &feed[i]);
		rc = FW_MAX(rc, add_store_visit(c, &feed[i], &answer[i]));
	}
	cli_list_end(&l);
	if (added)
		cli_note(c, "%zu added (to fetch once, run 'feedwheel run --once'; to keep fetching, 'feedwheel run')",
			added);
	return rc;
}

static int add_run(struct cli *c)
{
	size_t n = (size_t)c->arg_n;
	struct fw_feed_new *feed = fw_arena_calloc(&c->arena, n, sizeof(*feed));
	struct fw_response *answer = fw_arena_calloc(&c->arena, n, sizeof(*answer));
	int rc;

	if (!feed || !answer)
		return cli_fail(c, CLI_SOME, "out of memory");
	rc = add_parse_args(c, feed);
	for (size_t i = 0; !rc && cli_flag(c, "check") && i < n; i++)
		rc = add_fetch(c, &feed[i], true, &answer[i]);
	rc = rc ? rc : cli_store(c, FW_STORE_CREATE);
	if (!rc && !cli_value(c, "user")) /* an account's are compared when they are subscribed */
		rc = add_check_logins(c, feed, n);
	rc = rc ? rc : add_subscribe(c, feed, answer, n);
	for (size_t i = 0; i < n; i++)
		fw_response_free(&answer[i]);
	return rc;
}

static const struct cli_option ADD_OPTION[] = {
	{"folder", "FOLDER", "add to this folder; a/b is folder b in folder a"},
	{"title", "TEXT", "show the feed under this title"},
	{"interval", "TIME", "poll every TIME (30m, 6h) instead of adapting to the feed"},
	{"user", "USER", "subscribe them for this account"},
	{"check", NULL, "fetch first; subscribe only to feeds, and for a page to the feed it advertises"},
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_add = {
	.name = "add",
	.args = "URL...",
	.summary = "subscribe to feeds",
	.about = "Nothing is fetched yet; 'run' does that. URL may be a web page: its first visit finds the feed that "
		 "the page advertises\n"
		 "and subscribes to that feed instead. A URL without a scheme gets https://. A name and password in "
		 "the URL\n"
		 "(https://me:secret@example.org/feed) are stored separately and never shown.\n",
	.examples = "  feedwheel add https://example.org/feed.xml\n"
		    "  feedwheel add example.org               a page: 'run' finds its feed\n"
		    "  feedwheel add --folder news/world https://example.org/a.xml https://example.net/b.xml\n"
		    "  feedwheel add --check example.org       finds it now, or does not subscribe\n"
		    "  feedwheel add --user alice example.org  alice reads it on the page\n",
	.option = ADD_OPTION,
	.min_args = 1,
	.max_args = -1,
	.run = add_run,
};
