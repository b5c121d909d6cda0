/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: streams. The order is that of storing; so a continuation is an entry's
 * number, and finds the same place while others are stored.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "http/readers/greader/greader.h"

#define N_DEFAULT 20
#define STREAMS_MAX 100
#define NOT_FEEDS_MAX 1000
#define TARGETS_MAX 1000 /* parameters it, and xt */
#define SECONDS_MAX INT64_C(1000000000000)
#define CHUNK 250 /* items that are read from the store at once */

/* ---- which stream ---------------------------------------------------------------------------- */

int greader_feed_id(struct reader *rd, const struct greader_stream *stream, int64_t *id)
{
	struct fw_str url, user, pass;
	struct fw_feed f;
	int rc;

	*id = stream->feed_id;
	if (*id)
		return 0;
	rc = fw_url_clean(&rd->p.arena, stream->url, &url, &user, &pass, &rd->err);
	rc = rc ? rc : fw_store_feed_find(rd->r->store, 0, url, &rd->p.arena, &f, &rd->err);
	if (!rc)
		*id = f.id;
	return rc == FW_EINVAL || rc == FW_ENOTFOUND ? 0 : rc;
}

/* Read once for a request: it may name many folders, and an account have many feeds. */
int greader_folder_find(struct reader *rd, struct fw_str name, bool *found)
{
	struct reader_feeds *f = rd->folders ? rd->folders : fw_arena_calloc(&rd->p.arena, 1, sizeof(*f));
	int rc = f ? 0 : fw_no_memory(&rd->err);

	*found = false;
	if (!rc && !rd->folders)
		rc = reader_feeds_read(rd, 0, true, f);
	if (rc)
		return rc;
	rd->folders = f;
	for (size_t i = 0; i < f->n && !*found; i++)
		*found = fw_str_eq(f->feed[i].folder, name);
	return 0;
}

static int stream_cannot(struct reader *rd)
{
	return FW_ERR(&rd->err, FW_EINVAL, "this combination of streams in s, it and xt is not supported");
}

/* label_id may be used once: as what entries have, or as what they have not. */
static int stream_label_add(struct reader *rd, struct greader_query *q, int64_t label_id, bool has)
{
	if (q->s.labelled || q->s.not_labelled)
		return q->s.label_id == label_id && q->s.labelled == has ? 0 : stream_cannot(rd);
	q->s.labelled = has;
	q->s.not_labelled = !has;
	q->s.label_id = label_id;
	return 0;
}

static void stream_read_add(struct greader_query *q, enum fw_read_filter read)
{
	q->nothing = q->nothing || (q->s.read != FW_READ_ANY && q->s.read != read);
	q->s.read = read;
}

static int stream_feed_add(struct reader *rd, const struct greader_stream *stream, struct greader_query *q)
{
	int64_t id;
	int rc = greader_feed_id(rd, stream, &id);

	if (rc)
		return rc;
	q->nothing = q->nothing || !id || (q->s.feed_id && q->s.feed_id != id);
	q->s.feed_id = id;
	return 0;
}

static int stream_named_add(struct reader *rd, const struct greader_stream *stream, struct greader_query *q)
{
	int64_t label_id;
	bool folder;
	int rc = greader_folder_find(rd, stream->name, &folder);

	if (rc)
		return rc;
	if (folder && q->s.folder.p)
		return stream_cannot(rd);
	if (folder) {
		q->s.folder = stream->name;
		q->s.folder_only = true; /* readers show News and News/Tech beside each other */
		return 0;
	}
	rc = fw_account_label(rd->r->store, rd->account.id, stream->name, false, &label_id, &rd->err);
	q->nothing = q->nothing || rc == FW_ENOTFOUND;
	return rc == FW_ENOTFOUND ? 0 : rc ? rc : stream_label_add(rd, q, label_id, true);
}

int greader_stream_add(struct reader *rd, const struct greader_stream *stream, struct greader_query *q)
{
	switch (stream->kind) {
	case GREADER_ALL:
		break;
	case GREADER_READ:
		stream_read_add(q, FW_READ_READ);
		break;
	case GREADER_UNREAD:
		stream_read_add(q, FW_READ_UNREAD);
		break;
	case GREADER_STARRED:
		return stream_label_add(rd, q, FW_LABEL_STARRED, true);
	case GREADER_OTHER:
		q->nothing = true;
		break;
	case GREADER_NAMED:
		return stream_named_add(rd, stream, q);
	case GREADER_FEED:
		return stream_feed_add(rd, stream, q);
	}
	return 0;
}

/* ---- xt: without these entries --------------------------------------------------------------- */

static int stream_feed_exclude(struct reader *rd, const struct greader_stream *stream, struct greader_query *q)
{
	int64_t id;
	int rc = greader_feed_id(rd, stream, &id);

	if (rc || !id)
		return rc;
	if (q->not_feed_n == NOT_FEEDS_MAX)
		return FW_ERR(&rd->err, FW_EINVAL, "more than %d feeds in xt", NOT_FEEDS_MAX);
	if (!q->not_feed)
		q->not_feed = fw_arena_calloc(&rd->p.arena, NOT_FEEDS_MAX, sizeof(*q->not_feed));
	if (!q->not_feed)
		return fw_no_memory(&rd->err);
	q->not_feed[q->not_feed_n++] = id;
	return 0;
}

static int stream_exclude(struct reader *rd, const struct greader_stream *stream, struct greader_query *q)
{
	int64_t label_id;
	bool folder;
	int rc;

	switch (stream->kind) {
	case GREADER_ALL:
		q->nothing = true;
		break;
	case GREADER_READ:
		stream_read_add(q, FW_READ_UNREAD);
		break;
	case GREADER_UNREAD:
		stream_read_add(q, FW_READ_READ);
		break;
	case GREADER_STARRED:
		return stream_label_add(rd, q, FW_LABEL_STARRED, false);
	case GREADER_OTHER:
		break;
	case GREADER_NAMED:
		rc = greader_folder_find(rd, stream->name, &folder);
		if (!rc && folder)
			return stream_cannot(rd);
		rc = rc ? rc : fw_account_label(rd->r->store, rd->account.id, stream->name, false, &label_id, &rd->err);
		return rc == FW_ENOTFOUND ? 0 : rc ? rc : stream_label_add(rd, q, label_id, false);
	case GREADER_FEED:
		return stream_feed_exclude(rd, stream, q);
	}
	return 0;
}

static bool stream_excludes_feed(const struct greader_query *q, int64_t feed_id)
{
	for (size_t i = 0; i < q->not_feed_n; i++) {
		if (q->not_feed[i] == feed_id)
			return true;
	}
	return false;
}

/* ---- the parameters of a stream -------------------------------------------------------------- */

#define EXPECTED_STREAM "user/-/state/com.google/..., user/-/label/NAME or feed/ID"

/* False: responded. */
static bool stream_failed(struct reader *rd, int rc, enum MHD_Result *ok)
{
	if (!rc)
		return true;
	*ok = http_store_failed(rd->r, rc, &rd->err);
	return false;
}

static bool stream_targets_read(struct reader *rd, const char *name,
	int (*add)(struct reader *, const struct greader_stream *, struct greader_query *), struct greader_query *q,
	enum MHD_Result *ok)
{
	struct greader_stream stream;
	struct fw_str text;
	size_t at = 0;

	if (http_form_count(&rd->form, name) > TARGETS_MAX) {
		*ok = reader_wrong(rd, name, "at most 1000 streams");
		return false;
	}
	while ((text = http_form_next(&rd->form, name, &at)).p) {
		if (!text.len)
			continue;
		if (!greader_stream_read(text, &stream)) {
			*ok = reader_wrong(rd, name, EXPECTED_STREAM);
			return false;
		}
		if (!stream_failed(rd, add(rd, &stream, q), ok))
			return false;
	}
	return true;
}

/* Whole seconds, or with a fraction, as clients send that divide milliseconds; it is dropped. */
static bool stream_time_read(struct reader *rd, const char *name, int64_t *out_ms, enum MHD_Result *ok)
{
	struct fw_str fraction, whole = fw_str_split(http_form_get(&rd->form, name), '.', &fraction);
	int64_t s = 0, f = 0;

	if (!http_number_read(whole, SECONDS_MAX, &s) || !http_number_read(fraction, SECONDS_MAX, &f)) {
		*ok = reader_wrong(rd, name, "a time in seconds");
		return false;
	}
	*out_ms = s * FW_SECOND_MS;
	return true;
}

/* All but the stream itself. limit_max: of n. False: responded. */
static bool stream_options_read(struct reader *rd, struct greader_query *q, int64_t limit_max, enum MHD_Result *ok)
{
	struct fw_str order = http_form_get(&rd->form, "r");
	int64_t n = N_DEFAULT, c = 0;

	q->s.account_id = rd->account.id;
	q->s.oldest_first = fw_str_eq(order, FW_STR("o"));
	if (fw_str_eq(http_form_get(&rd->form, "n"), FW_STR("-1"))) {
		n = limit_max; /* without a limit, in many interfaces */
	} else if (!http_form_number(&rd->form, "n", limit_max, &n)) {
		*ok = reader_wrong(rd, "n", "a number");
		return false;
	}
	if (!http_form_number(&rd->form, "c", INT64_MAX, &c)) {
		*ok = reader_wrong(rd, "c", "the continuation of an earlier response");
		return false;
	}
	rd->p.limit = (size_t)(n ? n : N_DEFAULT);
	if (q->s.oldest_first)
		q->s.after_id = c;
	else
		q->s.before_id = c;
	return stream_time_read(rd, "ot", &q->s.since_ms, ok) && stream_time_read(rd, "nt", &q->s.until_ms, ok) &&
		stream_targets_read(rd, "it", greader_stream_add, q, ok) &&
		stream_targets_read(rd, "xt", stream_exclude, q, ok);
}

/* The stream of this id with the options in q. False: responded. */
static bool stream_query_make(struct reader *rd, struct fw_str id, struct greader_query *q, enum MHD_Result *ok)
{
	struct greader_stream stream;

	q->id = id;
	if (!greader_stream_read(id, &stream)) {
		*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter",
			"invalid stream '%.*s' (expected " EXPECTED_STREAM ")", (int)FW_MIN(id.len, (size_t)60),
			id.p ? id.p : "");
		return false;
	}
	if (!stream_failed(rd, greader_stream_add(rd, &stream, q), ok))
		return false;
	/* with excluded feeds it is not known how many entries have to be seen */
	q->s.limit = q->not_feed_n ? 0 : rd->p.limit + 1;
	return true;
}

/* The stream in the path, or in the parameter s. */
static struct fw_str stream_id(struct reader *rd)
{
	struct fw_str id = rd->r->rest.p ? rd->r->rest : http_form_get(&rd->form, "s");

	return id.p ? id : FW_STR(GREADER_STATE "reading-list");
}

/* ---- stream/items/ids ------------------------------------------------------------------------ */

struct stream_ids {
	const struct greader_query *q;
	int64_t *id;
	size_t n, from, limit; /* from: where this stream's begin; limit: of this stream */
};

static int stream_ids_add(void *ctx, const struct fw_stream_entry *e)
{
	struct stream_ids *l = ctx;

	if (stream_excludes_feed(l->q, e->entry->feed_id))
		return 0;
	l->id[l->n++] = e->entry->id;
	return l->n - l->from == l->limit;
}

static int stream_newest(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return FW_ORDER(*b, *a);
}

static int stream_oldest(const void *x, const void *y)
{
	return stream_newest(y, x);
}

/* Several streams as one: in order, each entry once. */
static void stream_ids_merge(struct stream_ids *l, bool oldest_first)
{
	size_t n = 0;

	qsort(l->id, l->n, sizeof(*l->id), oldest_first ? stream_oldest : stream_newest);
	for (size_t i = 0; i < l->n; i++) {
		if (!n || l->id[n - 1] != l->id[i])
			l->id[n++] = l->id[i];
	}
	l->n = n;
}

static void stream_continuation(struct reader *rd, bool more, int64_t id)
{
	char text[24];

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)id);
	if (more)
		fw_json_cstr(&rd->p.j, "continuation", text);
}

static enum MHD_Result stream_ids_send(struct reader *rd, const struct stream_ids *l)
{
	struct fw_json *j = &rd->p.j;
	size_t n = FW_MIN(l->n, rd->p.limit);

	fw_json_object(j, NULL);
	fw_json_array(j, "itemRefs");
	for (size_t i = 0; i < n; i++) {
		char text[24];

		(void)fw_snprintf(text, sizeof(text), "%lld", (long long)l->id[i]);
		fw_json_object(j, NULL);
		fw_json_cstr(j, "id", text);
		fw_json_end(j);
	}
	fw_json_end(j);
	stream_continuation(rd, l->n > n, n ? l->id[n - 1] : 0);
	fw_json_end(j);
	return reader_json(rd, 0);
}

enum MHD_Result greader_ids(struct reader *rd)
{
	struct greader_query options = {.nothing = false}, q;
	size_t at = 0, streams = FW_MAX(http_form_count(&rd->form, "s"), (size_t)1);
	struct stream_ids l = {.q = &q};
	struct fw_str id;
	enum MHD_Result ok;
	int rc = 0;

	if (streams > STREAMS_MAX)
		return http_problem(
			rd->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "more than %d streams in s", STREAMS_MAX);
	if (!stream_options_read(rd, &options, READER_IDS_MAX, &ok))
		return ok;
	l.limit = rd->p.limit + 1;
	/* each stream is merged at once, so two of them are the most that there are */
	l.id = fw_arena_calloc(&rd->p.arena, 2 * l.limit, sizeof(*l.id));
	if (!l.id)
		return http_store_failed(rd->r, fw_no_memory(&rd->err), &rd->err);
	id = http_form_next(&rd->form, "s", &at);
	for (id = id.p ? id : stream_id(rd); !rc && id.p; id = http_form_next(&rd->form, "s", &at)) {
		q = options;
		if (!stream_query_make(rd, id, &q, &ok))
			return ok;
		l.from = l.n;
		rc = q.nothing ? 0 : fw_account_ids(rd->r->store, &q.s, stream_ids_add, &l, &rd->err);
		rc = rc > 0 ? 0 : rc;
		if (streams > 1)
			stream_ids_merge(&l, q.s.oldest_first);
		l.n = FW_MIN(l.n, l.limit);
	}
	return rc ? http_store_failed(rd->r, rc, &rd->err) : stream_ids_send(rd, &l);
}

/* ---- contents -------------------------------------------------------------------------------- */

struct greader_page {
	struct greader_writer w;
	const struct greader_query *q;
	int64_t last_id;
};

static int stream_page_add(void *ctx, const struct fw_stream_entry *e)
{
	struct greader_page *s = ctx;
	struct reader *rd = s->w.rd;

	if (stream_excludes_feed(s->q, e->entry->feed_id))
		return 0;
	rd->p.more = rd->p.n >= rd->p.limit || (rd->p.n && rd->p.out.len >= PAGE_BYTES) || !reader_has_room(rd);
	if (rd->p.more)
		return 1;
	greader_item_add(&s->w, e);
	s->last_id = e->entry->id;
	rd->p.last_ms = FW_MAX(rd->p.last_ms, e->entry->changed_ms);
	return 0;
}

static struct fw_str stream_title(const struct greader_page *s)
{
	const struct reader_feed *f = reader_feed_find(&s->w.feeds, s->q->s.feed_id);
	struct fw_str id = s->q->id;

	for (size_t i = id.len; !f && i > 0; i--) {
		if (id.p[i - 1] == '/')
			return fw_str_sub(id, i, id.len);
	}
	return f ? f->title : id;
}

static int stream_page_read(struct reader *rd, struct greader_page *s)
{
	int rc = greader_writer_begin(&s->w, s->q->s.feed_id);

	if (rc)
		return rc;
	if (s->w.atom)
		greader_atom_begin(&s->w, s->q->id, stream_title(s));
	else {
		fw_json_object(&rd->p.j, NULL);
		fw_json_str(&rd->p.j, "id", s->q->id);
		fw_json_str(&rd->p.j, "title", stream_title(s));
		fw_json_array(&rd->p.j, "items");
	}
	rc = s->q->nothing ? 0 : fw_account_entries(rd->r->store, &s->q->s, stream_page_add, s, &rd->err);
	fw_buf_finish(&s->w.html);
	return rc < 0 ? rc : 0;
}

static bool stream_page_query(struct reader *rd, struct greader_query *q, enum MHD_Result *ok)
{
	if (!stream_options_read(rd, q, GREADER_CONTENTS_MAX, ok) || !stream_query_make(rd, stream_id(rd), q, ok))
		return false;
	q->s.content = true;
	return true;
}

enum MHD_Result greader_contents(struct reader *rd)
{
	struct greader_query q = {.nothing = false};
	struct greader_page s = {.w = {.rd = rd}, .q = &q};
	enum MHD_Result ok;
	int rc;

	if (!stream_page_query(rd, &q, &ok))
		return ok;
	rc = stream_page_read(rd, &s);
	fw_json_end(&rd->p.j);
	fw_json_int(&rd->p.j, "updated", rd->p.last_ms / FW_SECOND_MS);
	stream_continuation(rd, rd->p.more, s.last_id);
	fw_json_end(&rd->p.j);
	return reader_json(rd, rc);
}

enum MHD_Result greader_atom(struct reader *rd)
{
	struct greader_query q = {.nothing = false};
	struct greader_page s = {.w = {.rd = rd, .atom = true}, .q = &q};
	enum MHD_Result ok;
	int rc;

	if (!stream_page_query(rd, &q, &ok))
		return ok;
	rc = stream_page_read(rd, &s);
	greader_atom_end(&s.w, rd->p.last_ms, rd->p.more ? s.last_id : 0);
	ok = list_page_send(&rd->p, "application/atom+xml; charset=UTF-8", rc, &rd->err);
	list_page_begin(&rd->p, rd->r);
	return ok;
}

/* ---- stream/items/contents ------------------------------------------------------------------- */

/* The ids in i. False: responded. */
bool greader_item_ids(struct reader *rd, int64_t **ids, size_t *n, enum MHD_Result *ok)
{
	struct fw_str text;
	size_t at = 0;

	*n = 0;
	*ids = fw_arena_calloc(&rd->p.arena, http_form_count(&rd->form, "i"), sizeof(**ids));
	if (!*ids)
		return stream_failed(rd, fw_no_memory(&rd->err), ok);
	while ((text = http_form_next(&rd->form, "i", &at)).p) {
		if (greader_item_read(text, &(*ids)[(*n)++]))
			continue;
		*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter",
			"invalid i '%.*s' (expected an item's id: " GREADER_ITEM
			"HEX, 16 hexadecimal digits, or a number)",
			(int)FW_MIN(text.len, (size_t)60), text.p);
		return false;
	}
	return true;
}

static int stream_item_add(void *ctx, const struct fw_stream_entry *e)
{
	struct greader_page *s = ctx;

	if (!reader_has_room(s->w.rd))
		return 1;
	greader_item_add(&s->w, e);
	return 0;
}

/*
 * There is no continuation for items by their ids. Those for which there is no room are left out;
 * clients request again what they lack.
 */
enum MHD_Result greader_items(struct reader *rd)
{
	struct greader_page s = {.w = {.rd = rd}};
	struct fw_json *j = &rd->p.j;
	enum MHD_Result ok;
	int64_t *ids;
	size_t n;
	int rc;

	if (!greader_item_ids(rd, &ids, &n, &ok))
		return ok;
	if (!n)
		return reader_wrong(rd, "i", "an item's id");
	rc = greader_writer_begin(&s.w, 0);
	fw_json_object(j, NULL);
	fw_json_cstr(j, "id", GREADER_STATE "reading-list");
	fw_json_array(j, "items");
	for (size_t i = 0; i < n && !rc; i += CHUNK)
		rc = fw_account_entries_get(rd->r->store, rd->account.id, ids + i, FW_MIN(n - i, (size_t)CHUNK), true,
			stream_item_add, &s, &rd->err);
	fw_json_end(j);
	fw_json_end(j);
	fw_buf_finish(&s.w.html);
	return reader_json(rd, FW_MIN(rc, 0));
}
