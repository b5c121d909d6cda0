/* SPDX-License-Identifier: ISC */
/* The names of feeds that go out, and where clients find them. */
#include <unistd.h>

#include "api/feed_out.h"
#include "api/order.h"
#include "api/token.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/url.h"
#include "engine/out/feed_item.h"
#include "feedwheel/engine.h"

#define HOST_MAX 256

static const struct fw_str NAME_PREFIX[] = {
	[FW_FEED_OUT_FOLDER] = {"folder/", 7},
	[FW_FEED_OUT_QUERY] = {"query/", 6},
	[FW_FEED_OUT_ORDER] = {"order/", 6},
	[FW_FEED_OUT_FEED] = {"feed/", 5},
};
#define ALL FW_STR("all")

struct fw_feed_out_name fw_feed_out_name_parse(struct fw_str name)
{
	if (fw_str_eq(name, ALL))
		return (struct fw_feed_out_name){FW_FEED_OUT_ALL, FW_STR("")};
	for (size_t i = 0; i < FW_N(NAME_PREFIX); i++) {
		if (fw_str_starts(name, NAME_PREFIX[i]))
			return (struct fw_feed_out_name){
				(enum fw_feed_out_kind)i, fw_str_sub(name, NAME_PREFIX[i].len, name.len)};
	}
	return (struct fw_feed_out_name){FW_FEED_OUT_BARE, name};
}

void fw_feed_out_name_write(struct fw_buf *out, const struct fw_feed_out_name *name)
{
	fw_buf_addstr(out, name->kind == FW_FEED_OUT_ALL ? ALL : NAME_PREFIX[name->kind]);
	fw_buf_addstr(out, name->text);
}

bool fw_feed_out_name_allows(struct fw_str own, struct fw_str name)
{
	struct fw_feed_out_name have = fw_feed_out_name_parse(own), want = fw_feed_out_name_parse(name);

	if (want.kind == FW_FEED_OUT_BARE)
		return (have.kind == FW_FEED_OUT_FOLDER || have.kind == FW_FEED_OUT_QUERY) &&
			fw_str_eq(have.text, want.text);
	return have.kind == want.kind && fw_str_eq(have.text, want.text);
}

/* ---- looking up ------------------------------------------------------------------------------ */

static int found_one(void *ctx, const struct fw_feed *f)
{
	(void)f;
	*(bool *)ctx = true;
	return 1;
}

/* Is a feed in this folder, or below it? Returns 0 or an error. */
static int folder_exists(struct fw_store *st, struct fw_str folder, bool *found, struct fw_err *err)
{
	struct fw_feed_query q = {.status = -1, .folder = folder, .limit = 1};
	int rc = folder.len ? fw_store_feed_list(st, &q, found_one, found, err) : 0;

	return rc < 0 ? rc : 0;
}

static int find_folder(
	struct fw_store *st, struct fw_str folder, bool must, struct fw_feed_out_found *out, struct fw_err *err)
{
	bool found = false;
	int rc;

	while (folder.len && folder.p[0] == '/')
		folder = fw_str_sub(folder, 1, folder.len);
	while (folder.len && folder.p[folder.len - 1] == '/')
		folder.len--;
	rc = folder_exists(st, folder, &found, err);
	if (rc || (!found && !must))
		return rc;
	if (!found)
		return fw_err_set(err, FW_ENOTFOUND,
			"no feed is in the folder '%.*s' (to list folders: feedwheel folders)",
			FW_STR_ARG(fw_str_sub(folder, 0, 100)));
	out->name = (struct fw_feed_out_name){FW_FEED_OUT_FOLDER, folder};
	out->title = out->q.folder = folder;
	return 0;
}

static int find_query(struct fw_str query, struct fw_feed_out_found *out, struct fw_err *err)
{
	int rc = fw_order_check_query(query, err);

	out->name.kind = FW_FEED_OUT_QUERY;
	out->title = out->q.search = query;
	return rc;
}

static int find_order(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_feed_out_found *out, struct fw_err *err)
{
	struct fw_order o;
	int rc = fw_order_get(st, name, a, &o, err);

	if (rc)
		return rc;
	out->title = o.name;
	out->description = out->q.search = o.query;
	return 0;
}

static int find_feed(
	struct fw_store *st, struct fw_str id, struct fw_arena *a, struct fw_feed_out_found *out, struct fw_err *err)
{
	struct fw_feed f;
	int64_t number;
	int rc;

	if (!fw_str_int(id, &number) || number <= 0)
		return fw_err_set(err, FW_EINVAL, "'feed/%.*s': a feed is named by its number",
			FW_STR_ARG(fw_str_sub(id, 0, 60)));
	rc = fw_store_feed_find(st, number, FW_STR_NONE, a, &f, err);
	if (rc == FW_ENOTFOUND)
		return fw_err_set(err, rc, "no feed has the number %lld", (long long)number);
	if (rc)
		return rc;
	out->q.feed_id = f.id;
	out->title = f.user_title.len ? f.user_title : f.title.len ? f.title : f.url;
	out->home_url = feed_url(a, f.url, f.home_page_url);
	out->icon = feed_url(a, f.url, f.icon);
	out->description = f.description;
	out->language = f.language;
	return a->failed ? fw_no_memory(err) : 0;
}

int fw_feed_out_find(struct fw_store *st, const struct fw_feed_out_name *name, struct fw_arena *a,
	struct fw_feed_out_found *out, struct fw_err *err)
{
	int rc;

	*out = (struct fw_feed_out_found){.name = *name, .title = FW_STR(FEED_GENERATOR)};
	if (!fw_str_trim(name->text).len && name->kind != FW_FEED_OUT_ALL)
		return fw_err_set(err, FW_EINVAL, "the name of the feed is empty: write a folder or a query");
	switch (name->kind) {
	case FW_FEED_OUT_FOLDER:
		return find_folder(st, name->text, true, out, err);
	case FW_FEED_OUT_QUERY:
		return find_query(name->text, out, err);
	case FW_FEED_OUT_ORDER:
		return find_order(st, name->text, a, out, err);
	case FW_FEED_OUT_FEED:
		return find_feed(st, name->text, a, out, err);
	case FW_FEED_OUT_BARE:
		rc = find_folder(st, name->text, false, out, err);
		return rc || out->name.kind == FW_FEED_OUT_FOLDER ? rc : find_query(name->text, out, err);
	case FW_FEED_OUT_ALL:
		break;
	}
	return 0;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* A server that listens on all addresses is reached by the machine's name. */
static void base_of_listen(const struct fw_config *c, struct fw_buf *out)
{
	static const struct fw_str EVERYWHERE[] = {{"0.0.0.0:", 8}, {"[::]:", 5}, {"*:", 2}, {":", 1}};
	struct fw_str listen = fw_str(c->listen);
	char name[HOST_MAX] = "localhost";

	if (!listen.len || fw_str_starts(listen, FW_STR("unix:")))
		return;
	fw_buf_adds(out, c->tls_cert ? "https://" : "http://");
	for (size_t i = 0; i < FW_N(EVERYWHERE); i++) {
		if (!fw_str_starts(listen, EVERYWHERE[i]))
			continue;
		(void)gethostname(name, sizeof(name) - 1);
		fw_buf_adds(out, name);
		listen = fw_str_sub(listen, EVERYWHERE[i].len - 1, listen.len);
		break;
	}
	fw_buf_addstr(out, listen);
	fw_buf_addc(out, '/');
}

void fw_feed_out_base(const struct fw_config *c, struct fw_buf *out)
{
	struct fw_str base = fw_str(c->websub_url);

	if (!base.len) {
		base_of_listen(c, out);
		return;
	}
	fw_buf_addstr(out, base);
	if (!fw_str_ends(base, FW_STR("/")))
		fw_buf_addc(out, '/');
}

/* A path may contain more characters than a query: what names of folders and queries have. */
static void path_escape(struct fw_buf *out, struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (strchr("/:!*()'", s.p[i]) && s.p[i])
			fw_buf_addc(out, s.p[i]);
		else
			fw_url_escape(out, fw_str_sub(s, i, i + 1));
	}
}

void fw_feed_out_path(struct fw_buf *out, struct fw_str name, enum fw_feed_out_format format)
{
	fw_buf_adds(out, "feeds/");
	path_escape(out, name);
	fw_buf_addf(out, ".%s", fw_feed_out_extension(format));
}
