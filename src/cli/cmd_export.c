/* SPDX-License-Identifier: ISC */
/*
 * export: print all subscriptions as OPML 2.0, folders as nested outlines. `import` reads the
 * result.
 */
#include <stdlib.h>

#include "base/xml.h"
#include "cli/cli.h"
#include "base/banned.h"

struct item {
	struct fw_str folder, title, url, home;
	size_t at; /* the order of subscription */
};

struct export
{
	struct cli *c;
	struct item *item;
	size_t n, cap;
};

static int export_feed(void *ctx, const struct fw_feed *f)
{
	struct export *e = ctx;
	struct fw_arena *a = &e->c->arena;

	if (e->n == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 1024;
		struct item *grown = reallocarray(e->item, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		e->item = grown;
		e->cap = cap;
	}
	e->item[e->n] = (struct item){fw_arena_str(a, f->folder), fw_arena_str(a, cli_feed_title(f)),
		fw_arena_str(a, f->url), fw_arena_str(a, f->home_page_url), e->n};
	e->n++;
	return a->failed ? FW_ENOMEM : 0;
}

static int by_folder(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	size_t n = FW_MIN(a->folder.len, b->folder.len);
	int d = n ? memcmp(a->folder.p, b->folder.p, n) : 0;

	if (!d && a->folder.len != b->folder.len)
		d = a->folder.len < b->folder.len ? -1 : 1;
	return d ? d : a->at < b->at ? -1 : 1;
}

static void export_attribute(struct cli *c, const char *name, struct fw_str value)
{
	cli_out(c, " %s=\"", name);
	fw_xml_escape(&c->out, value, FW_XML_KEEP);
	cli_out(c, "\"");
}

static void export_indent(struct cli *c, size_t depth)
{
	cli_out(c, "%*s", (int)(4 + 2 * FW_MIN(depth, (size_t)20)), "");
}

static struct fw_str export_folder_part(struct fw_str folder, size_t i)
{
	struct fw_str rest = folder, one = FW_STR_NONE;

	for (size_t k = 0; k <= i && rest.p; k++)
		one = fw_str_split(rest, '/', &rest);
	return one;
}

static size_t export_folder_depth(struct fw_str folder)
{
	size_t n = folder.len ? 1 : 0;

	for (size_t i = 0; i < folder.len; i++)
		n += folder.p[i] == '/';
	return n;
}

/* Close and open outlines to get from folder `from` to folder `to`. */
static void export_change_folder(struct cli *c, struct fw_str from, struct fw_str to)
{
	size_t same = 0, have = export_folder_depth(from), want = export_folder_depth(to);

	while (same < have && same < want && fw_str_eq(export_folder_part(from, same), export_folder_part(to, same)))
		same++;
	while (have > same) {
		export_indent(c, --have);
		cli_out(c, "</outline>\n");
	}
	for (; same < want; same++) {
		export_indent(c, same);
		cli_out(c, "<outline");
		export_attribute(c, "text", export_folder_part(to, same));
		cli_out(c, ">\n");
	}
}

static void export_opml(struct cli *c, const struct item *item, size_t n)
{
	struct fw_str folder = FW_STR("");
	char when[FW_RFC3339_MAX];

	cli_out(c,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n  <head>\n"
		"    <title>feedwheel subscriptions</title>\n    <dateCreated>%s</dateCreated>\n  </head>\n  <body>\n",
		fw_http_date(when, c->now_ms));
	for (size_t i = 0; i < n && !cli_out_failed(c); i++) {
		export_change_folder(c, folder, item[i].folder);
		folder = item[i].folder;
		export_indent(c, export_folder_depth(folder));
		cli_out(c, "<outline type=\"rss\"");
		export_attribute(c, "text", item[i].title);
		export_attribute(c, "xmlUrl", item[i].url);
		if (item[i].home.len)
			export_attribute(c, "htmlUrl", item[i].home);
		cli_out(c, "/>\n");
	}
	export_change_folder(c, folder, FW_STR(""));
	cli_out(c, "  </body>\n</opml>\n");
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

static int export_json(struct cli *c, const struct fw_feed_query *q)
{
	struct fw_err err = {0};
	struct cli_list l;
	int rc;

	cli_list_begin(&l, c, NULL, 0);
	rc = fw_store_feed_list(c->store, q, export_feed_json, &l, &err);
	cli_list_end(&l);
	if (rc < 0)
		return cli_store_failed(c, &err);
	return l.n ? CLI_OK : export_empty(c);
}

static int export_run(struct cli *c)
{
	struct fw_feed_query q = {.status = -1};
	const char *folder = cli_value(c, "folder");
	struct export e = {.c = c};
	struct fw_err err = {0};
	int rc = cli_store(c, FW_STORE_READ);

	if (rc)
		return rc;
	q.folder = fw_str(folder);
	if (cli_as_json(c))
		return export_json(c, &q);
	rc = fw_store_feed_list(c->store, &q, export_feed, &e, &err);
	if (rc) {
		rc = rc == FW_ENOMEM ? cli_fail(c, CLI_SOME, "out of memory") : cli_store_failed(c, &err);
	} else if (!e.n) {
		rc = export_empty(c);
	} else {
		qsort(e.item, e.n, sizeof(*e.item), by_folder);
		export_opml(c, e.item, e.n);
	}
	free(e.item);
	return rc;
}

static const struct cli_option EXPORT_OPTION[] = {
	{"folder", "FOLDER", "only this folder and its subfolders"},
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
