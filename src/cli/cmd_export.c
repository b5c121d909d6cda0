/* SPDX-License-Identifier: ISC */
/*
 * export: print all subscriptions as OPML 2.0, folders as nested outlines. `import` reads the
 * result. --user: those of an account.
 */
#include <stdlib.h>

#include "api/account.h"
#include "api/opml.h"
#include "cli/cli.h"

struct export
{
	struct cli *c;
	struct fw_opml_item *item;
	size_t n, cap;
};

static int export_feed(void *ctx, const struct fw_feed *f)
{
	struct export *e = ctx;
	struct fw_arena *a = &e->c->arena;

	if (e->n == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 1024;
		struct fw_opml_item *grown = reallocarray(e->item, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		e->item = grown;
		e->cap = cap;
	}
	e->item[e->n] = (struct fw_opml_item){fw_arena_str(a, f->folder), fw_arena_str(a, cli_feed_title(f)),
		fw_arena_str(a, f->url), fw_arena_str(a, f->home_page_url), e->n};
	e->n++;
	return a->failed ? FW_ENOMEM : 0;
}

static void export_opml(struct cli *c, struct fw_opml_item *item, size_t n)
{
	struct fw_opml_writer w;

	fw_opml_sort(item, n);
	fw_opml_begin(&w, &c->out, c->now_ms);
	for (size_t i = 0; i < n && !cli_out_failed(c); i++) {
		fw_opml_add(&w, &item[i]);
		cli_out(c, "%s", ""); /* writes when there is enough */
	}
	fw_opml_end(&w);
}

/* An empty list is more often a misspelt folder than what the user wants to keep. */
static int export_empty(struct cli *c)
{
	const char *folder = cli_value(c, "folder");

	if (folder)
		return cli_fail(c, CLI_SOME,
			"no feed is in folder '%.200s': nothing was exported ('feedwheel folders' lists the folders)",
			folder);
	return cli_fail(c, CLI_SOME, "no feeds: nothing was exported (to subscribe, run 'feedwheel add URL')");
}

/* The user's choices, as POST /v1/feeds accepts them. */
static int export_feed_json(void *ctx, const struct fw_feed *f)
{
	struct cli_list *l = ctx;
	struct fw_json *j = cli_list_item(l);

	l->n++;
	fw_json_object(j, NULL);
	fw_json_str(j, "url", f->url);
	if (f->user_title.len)
		fw_json_str(j, "title", f->user_title);
	if (f->folder.len)
		fw_json_str(j, "folder", f->folder);
	if (f->interval_ms)
		fw_json_int(j, "interval_ms", f->interval_ms);
	fw_json_end(j);
	cli_list_item_end(l);
	return cli_out_failed(l->c);
}

/* Where the feeds come from: the store, or an account. */
struct export_source {
	struct fw_str folder; /* absent: all */
	const char *user;     /* NULL: the store */
	struct fw_account account;
	fw_feed_cb *cb;
	void *ctx;
};

/* A subscription as the feed that it is to the account. */
static int export_subscription(void *ctx, const struct fw_subscription *s)
{
	const struct export_source *from = ctx;
	struct fw_feed f = {.id = s->feed_id,
		.url = s->feed->url,
		.title = s->feed->title,
		.home_page_url = s->feed->home_page_url,
		.user_title = s->title,
		.folder = s->folder};

	return from->folder.p && !fw_path_is_within(s->folder, fw_path_trim(from->folder)) ? 0 :
											     from->cb(from->ctx, &f);
}

static int export_walk(struct cli *c, const struct export_source *from, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	const struct fw_feed_query q = {.status = -1, .folder = from->folder};
	struct export_source to = *from;

	to.cb = cb;
	to.ctx = ctx;
	return from->user ?
		fw_account_subscription_list(c->store, from->account.id, 0, false, export_subscription, &to, err) :
		fw_store_feed_list(c->store, &q, cb, ctx, err);
}

static int export_json(struct cli *c, const struct export_source *from)
{
	struct fw_err err = {0};
	struct cli_list l;
	int rc;

	cli_list_begin(&l, c, NULL, 0);
	rc = export_walk(c, from, export_feed_json, &l, &err);
	cli_list_end(&l);
	if (rc < 0)
		return cli_store_failed(c, &err);
	return l.n ? CLI_OK : export_empty(c);
}

static int export_run(struct cli *c)
{
	struct export_source from = {.folder = fw_str(cli_value(c, "folder")), .user = cli_value(c, "user")};
	struct export e = {.c = c};
	struct fw_err err = {0};
	int rc = cli_store(c, FW_STORE_READ);

	rc = rc || !from.user ? rc : cli_account(c, from.user, &from.account);
	if (rc)
		return rc;
	if (cli_as_json(c))
		return export_json(c, &from);
	rc = export_walk(c, &from, export_feed, &e, &err);
	if (rc) {
		rc = rc == FW_ENOMEM ? cli_fail(c, CLI_SOME, "out of memory") : cli_store_failed(c, &err);
	} else if (!e.n) {
		rc = export_empty(c);
	} else {
		export_opml(c, e.item, e.n);
	}
	free(e.item);
	return rc;
}

static const struct cli_option EXPORT_OPTION[] = {
	{"folder", "FOLDER", "only this folder and its subfolders"},
	{"user", "USER", "the subscriptions of this account"},
	{"json", NULL, "print a JSON array of objects for POST /v1/feeds instead"},
	{"jsonl", NULL, "print the same, one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_export = {
	.name = "export",
	.args = "",
	.summary = "print all subscriptions as OPML 2.0",
	.about = "Folders become nested outlines. Passwords are left out.\n",
	.examples = "  feedwheel export > subscriptions.opml\n  feedwheel export --folder News > news.opml\n",
	.option = EXPORT_OPTION,
	.run = export_run,
};
