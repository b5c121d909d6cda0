/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: what its files share. docs/greader.md describes it for its clients.
 *
 * Every route but the login has one entrance, http_greader(), and so has Fever's (fever.h). It
 * reads the request's parameters, from its query and its body alike, and finds whose token it has;
 * then it calls the route's handler. A handler sees the store only through the functions of
 * api/account.h, with the id of that account: so it reaches nothing of others.
 *
 * Handlers run in a pool thread. Each writes a response of at most READER_BYTES.
 */
#ifndef FW_HTTP_READERS_GREADER_GREADER_H
#define FW_HTTP_READERS_GREADER_GREADER_H

#include "api/account.h"
#include "api/view.h"
#include "http/readers/greader/id.h"
#include "http/server/form.h"
#include "http/server/http.h"

#define READER_BYTES ((size_t)64 << 20) /* a response ends at this size */
#define READER_ARENA_BYTES ((size_t)128 << 20)
#define GREADER_IDS_MAX 50000     /* ids of one response */
#define GREADER_CONTENTS_MAX 1000 /* items of one page of contents */

struct reader_feeds;

/* A request of an account. miniflux.h has the same. */
struct reader {
	struct request *r;
	struct fw_account account;
	struct fw_str token; /* that the request was authorized by */
	struct http_form form;
	struct list_page p;           /* the response, and the arena of the request */
	struct reader_feeds *folders; /* of greader_folder_find(); NULL: not read yet */
	struct fw_err err;
};

/* Responses. Each may be the last call of a handler. */
enum MHD_Result greader_ok(struct reader *rd); /* "OK", without a line end, as clients compare */
enum MHD_Result reader_text(struct reader *rd, unsigned status, const char *text);
enum MHD_Result reader_json(struct reader *rd, int rc); /* 200 and rd->p, or the error of the store */
enum MHD_Result reader_json_status(struct reader *rd, unsigned status, int rc);
/* 400: this parameter is missing or wrong. */
enum MHD_Result reader_wrong(struct reader *rd, const char *name, const char *expected);
/* Set rd->form: the query's parameters, and those of a body that is a form. False: responded. */
FW_MUST_CHECK bool reader_form_read(struct reader *rd, struct fw_str body, enum MHD_Result *ok);

/* ---- login.c --------------------------------------------------------------------------------- */

/* After the body: set rd->account and rd->token. False: responded. */
FW_MUST_CHECK bool greader_authorize(struct reader *rd, enum MHD_Result *ok);
enum MHD_Result greader_token(struct reader *rd);
enum MHD_Result greader_user_info(struct reader *rd);

/* ---- list.c ---------------------------------------------------------------------------------- */

/* Where a feed's icon is fetched: icons.h. url absent: nowhere. */
struct icon_address {
	struct fw_str url, spare; /* spare: where else, if there is no picture at url */
	bool second;              /* url was the spare one */
};
/* A subscription in memory: for items, which name their feeds. */
struct reader_feed {
	int64_t id, unread_n, newest_ms;
	struct fw_str title, folder, url, home, icon, error;
	struct icon_address icon_at; /* http_icons_read() */
	int64_t icon_id;             /* the same; 0: there is none */
	int64_t visit_ms, due_ms;    /* of its last visit, 0: never; and of the next */
	uint32_t fail_n;
	int http_status;
	enum fw_feed_status status;
};
struct reader_feeds {
	struct reader_feed *feed; /* by id */
	size_t n, cap;
};
/* All subscriptions, or feed_id alone. brief: only folders and counts. Strings are in the arena. */
FW_MUST_CHECK int reader_feeds_read(struct reader *rd, int64_t feed_id, bool brief, struct reader_feeds *out);
/* NULL: it is not subscribed. */
const struct reader_feed *reader_feed_find(const struct reader_feeds *f, int64_t id);
enum MHD_Result greader_subscription_list(struct reader *rd);
enum MHD_Result greader_tag_list(struct reader *rd);
enum MHD_Result greader_unread_count(struct reader *rd);
enum MHD_Result greader_preferences(struct reader *rd);
enum MHD_Result greader_stream_preferences(struct reader *rd);
enum MHD_Result greader_preference_set(struct reader *rd);
enum MHD_Result greader_friends(struct reader *rd);
enum MHD_Result greader_status(struct reader *rd);
enum MHD_Result greader_ping(struct reader *rd);

/* ---- streams.c ------------------------------------------------------------------------------- */

/* Which entries; nothing: none, whatever the rest says. */
struct greader_query {
	struct fw_stream s;
	struct fw_str id; /* the stream's, as the client wrote it */
	bool nothing;
	int64_t *not_feed;
	size_t not_feed_n;
};
/*
 * A stream's entries. A label's name is a folder's if the account has such a folder, else one of
 * entries. Errors: those of the store; FW_EINVAL the parts cannot be combined.
 */
FW_MUST_CHECK int greader_stream_add(struct reader *rd, const struct greader_stream *stream, struct greader_query *q);
/* The number of a stream's feed. 0: there is no such feed. */
FW_MUST_CHECK int greader_feed_id(struct reader *rd, const struct greader_stream *stream, int64_t *id);
/* The numbers in the parameters i, of which there may be none. False: responded. */
FW_MUST_CHECK bool greader_item_ids(struct reader *rd, int64_t **ids, size_t *n, enum MHD_Result *ok);
/* Is there such a folder? */
FW_MUST_CHECK int greader_folder_find(struct reader *rd, struct fw_str name, bool *found);
enum MHD_Result greader_ids(struct reader *rd);
enum MHD_Result greader_contents(struct reader *rd);
enum MHD_Result greader_items(struct reader *rd);
enum MHD_Result greader_atom(struct reader *rd);

/*
 * May one more item be written into rd->p? A response ends at a size, and when other requests use
 * the memory. Its first item always fits.
 */
FW_MUST_CHECK bool reader_has_room(struct reader *rd);

/* ---- item.c ---------------------------------------------------------------------------------- */

/* Set html: the sanitised content, else the summary. */
void reader_html(struct reader *rd, const struct fw_entry_row *e, struct fw_buf *html);

struct greader_writer {
	struct reader *rd;
	struct reader_feeds feeds;
	struct fw_label *label; /* the account's */
	size_t label_n, label_cap;
	struct fw_buf html; /* of the item that is being written */
	bool atom;
};
/* Read what items name: feeds (or feed_id alone) and labels. */
FW_MUST_CHECK int greader_writer_begin(struct greader_writer *w, int64_t feed_id);
/* An entry's date, in seconds: published, else updated, else stored. */
int64_t reader_published_s(const struct fw_entry_row *e);
/* Write an entry into rd->p, as JSON or Atom. */
void greader_item_add(struct greader_writer *w, const struct fw_stream_entry *e);
/* The head of an Atom document, and its end. */
void greader_atom_begin(struct greader_writer *w, struct fw_str id, struct fw_str title);
/* next_id: the continuation; 0: none */
void greader_atom_end(struct greader_writer *w, int64_t updated_ms, int64_t next_id);

/* ---- edit.c ---------------------------------------------------------------------------------- */

enum MHD_Result greader_edit_tag(struct reader *rd);
enum MHD_Result greader_mark_all(struct reader *rd);
enum MHD_Result greader_rename_tag(struct reader *rd);
enum MHD_Result greader_disable_tag(struct reader *rd);

/* ---- subscribe.c ----------------------------------------------------------------------------- */

/*
 * Subscribe to the feed at an address, or, with serve_discovery, to the one that the site there
 * names; with title, folder and login of *f. f->id is out; id 0: there is no feed, and
 * *why says so. False: responded.
 */
FW_MUST_CHECK bool reader_address_add(
	struct reader *rd, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok);
/*
 * The feeds that an address has: its own, or those that its page names; in the arena. n 0: none,
 * and *why says so. Without serve_discovery: the address. False: responded.
 */
struct reader_found {
	struct fw_str url, title;
	enum fw_format format; /* FW_FORMAT_NONE: unknown */
};
FW_MUST_CHECK bool reader_address_look(struct reader *rd, struct fw_str text, struct reader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok);
/* Subscribe to the feeds of the OPML file in the body. False: responded. */
FW_MUST_CHECK bool reader_opml_add(struct reader *rd, size_t *n, size_t *refused_n, enum MHD_Result *ok);
enum MHD_Result greader_subscription_edit(struct reader *rd);
enum MHD_Result greader_quickadd(struct reader *rd);
enum MHD_Result greader_export(struct reader *rd);
enum MHD_Result greader_import(struct reader *rd);

#endif
