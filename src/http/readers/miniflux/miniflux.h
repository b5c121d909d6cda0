/* SPDX-License-Identifier: ISC */
/*
 * Miniflux' API: what its files share. docs/miniflux.md describes it for its clients.
 *
 * Every route has one entrance, http_miniflux(). It finds the account by its name and password, or
 * by one of its tokens, and calls the route's handler with that account in a struct reader. So, as
 * for the Google Reader API (greader.h), a handler reaches nothing of others.
 */
#ifndef FW_HTTP_READERS_MINIFLUX_MINIFLUX_H
#define FW_HTTP_READERS_MINIFLUX_MINIFLUX_H

#include "http/readers/feeds.h"
#include "http/readers/miniflux/filter.h"

/* Its version: clients look there for what a server can do. */
#define MINIFLUX_VERSION "2.3.2"
#define MINIFLUX_WORDS_PER_MINUTE 265

/* 204, or the error of the store */
enum MHD_Result miniflux_done(struct reader *rd, int rc);
/* 404: there is no such thing, or it is not the account's. */
enum MHD_Result miniflux_missing(struct reader *rd, const char *what);
/* The object in the body. NULL: responded. The caller frees it. */
json_t *miniflux_body(struct reader *rd, enum MHD_Result *ok);
/*
 * A member that is text for the store; absent or null: FW_STR_NONE. It is trimmed, and points into
 * o. False: responded.
 */
FW_MUST_CHECK bool miniflux_text(
	struct reader *rd, const json_t *o, const char *name, size_t max, struct fw_str *out, enum MHD_Result *ok);
/* at_ms 0 is written as 0001-01-01T00:00:00Z, which means "never" to Miniflux' clients. */
void miniflux_time(struct fw_json *j, const char *key, int64_t at_ms);

enum MHD_Result miniflux_me(struct reader *rd);
enum MHD_Result miniflux_version(struct reader *rd);
enum MHD_Result miniflux_users(struct reader *rd);
enum MHD_Result miniflux_user(struct reader *rd);
enum MHD_Result miniflux_user_read(struct reader *rd);
enum MHD_Result miniflux_integrations(struct reader *rd);
enum MHD_Result miniflux_keys(struct reader *rd);
enum MHD_Result miniflux_flush(struct reader *rd);
enum MHD_Result miniflux_import(struct reader *rd);

/* ---- category.c ------------------------------------------------------------------------------ */

/*
 * A category is a folder, alone, without the folders below it; MINIFLUX_ALL is that of feeds in no
 * folder. Its number is that of the account's label with the folder's name, plus 1: the store keeps
 * numbers and names of labels, the Google Reader API renames both together, and a label without
 * entries is an empty category.
 */
#define MINIFLUX_ALL 1

struct miniflux_category {
	int64_t id;
	struct fw_str folder; /* "": MINIFLUX_ALL */
	int64_t feed_n, unread_n;
	bool hidden; /* no folder, but a label that entries have: it is none yet */
};
/* The account's feeds and categories, in the arena. */
struct miniflux_lists {
	struct reader_feeds feeds;
	struct miniflux_category *category; /* MINIFLUX_ALL, then by name */
	size_t n, cap;
};
/* feed_id not 0: only that feed. brief: without what reader_feeds_read() leaves out then. */
FW_MUST_CHECK int miniflux_lists_read(struct reader *rd, int64_t feed_id, bool brief, struct miniflux_lists *out);
/* NULL: there is none. */
const struct miniflux_category *miniflux_category_find(const struct miniflux_lists *l, int64_t id);
/* The category of a folder that feeds are in. */
const struct miniflux_category *miniflux_category_of(const struct miniflux_lists *l, struct fw_str folder);
void miniflux_category_json(struct reader *rd, const char *key, const struct miniflux_category *c, bool counts);
/* The category that the path names; reads the lists. NULL: an error response was sent. */
const struct miniflux_category *miniflux_category_path(
	struct reader *rd, bool brief, struct miniflux_lists *l, enum MHD_Result *ok);
enum MHD_Result miniflux_category_list(struct reader *rd);
enum MHD_Result miniflux_category_add(struct reader *rd);
enum MHD_Result miniflux_category_set(struct reader *rd);
enum MHD_Result miniflux_category_remove(struct reader *rd);
enum MHD_Result miniflux_category_read(struct reader *rd);

/* ---- feed.c ---------------------------------------------------------------------------------- */

void miniflux_feed_json(
	struct reader *rd, const char *key, const struct reader_feed *f, const struct miniflux_lists *l);
/* The feed that the path names, read alone. NULL: an error response was sent. */
const struct reader_feed *miniflux_feed_path(
	struct reader *rd, bool brief, struct miniflux_lists *l, enum MHD_Result *ok);
enum MHD_Result miniflux_feed_list(struct reader *rd);
enum MHD_Result miniflux_category_feeds(struct reader *rd);
enum MHD_Result miniflux_feed_add(struct reader *rd);
enum MHD_Result miniflux_feed_get(struct reader *rd);
enum MHD_Result miniflux_feed_set(struct reader *rd);
enum MHD_Result miniflux_feed_remove(struct reader *rd);
enum MHD_Result miniflux_feed_read(struct reader *rd);
enum MHD_Result miniflux_counters(struct reader *rd);
enum MHD_Result miniflux_refresh(struct reader *rd);
enum MHD_Result miniflux_feed_refresh(struct reader *rd);
enum MHD_Result miniflux_category_refresh(struct reader *rd);
enum MHD_Result miniflux_feed_icon(struct reader *rd);
enum MHD_Result miniflux_icon(struct reader *rd);
enum MHD_Result miniflux_discover(struct reader *rd);

/* ---- entry.c --------------------------------------------------------------------------------- */

enum MHD_Result miniflux_entry_list(struct reader *rd);
enum MHD_Result miniflux_entry_ids(struct reader *rd);
enum MHD_Result miniflux_feed_entries(struct reader *rd);
enum MHD_Result miniflux_category_entries(struct reader *rd);
enum MHD_Result miniflux_entry_get(struct reader *rd);
enum MHD_Result miniflux_feed_entry(struct reader *rd);
enum MHD_Result miniflux_category_entry(struct reader *rd);
enum MHD_Result miniflux_entries_set(struct reader *rd);
enum MHD_Result miniflux_star(struct reader *rd);
enum MHD_Result miniflux_save(struct reader *rd);
enum MHD_Result miniflux_content(struct reader *rd);

#endif
