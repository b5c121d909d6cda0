/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: what its files share. docs/greader.md describes it for its clients.
 *
 * Every route but the login has one entrance, http_greader(). It reads the request's parameters,
 * from its query and its body alike, and finds whose token it has.
 */
#ifndef FW_HTTP_READERS_GREADER_GREADER_H
#define FW_HTTP_READERS_GREADER_GREADER_H

#include "http/readers/feeds.h"
#include "http/readers/greader/id.h"
#include "http/readers/reader.h"

#define GREADER_CONTENTS_MAX 1000 /* items of one page of contents */

enum MHD_Result greader_ok(struct reader *rd); /* "OK", without a line end, as clients compare */

/* ---- login.c --------------------------------------------------------------------------------- */

/* After the body: set rd->account and rd->token. False: responded. */
FW_MUST_CHECK bool greader_authorize(struct reader *rd, enum MHD_Result *ok);
enum MHD_Result greader_token(struct reader *rd);
enum MHD_Result greader_user_info(struct reader *rd);

/* ---- list.c ---------------------------------------------------------------------------------- */

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

/* ---- item.c ---------------------------------------------------------------------------------- */

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

enum MHD_Result greader_subscription_edit(struct reader *rd);
enum MHD_Result greader_quickadd(struct reader *rd);
enum MHD_Result greader_export(struct reader *rd);
enum MHD_Result greader_import(struct reader *rd);

#endif
