/* SPDX-License-Identifier: ISC */
/* The JSON of a feed, a visit and an entry, and a cache of sanitised contents. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "base/xml.h"
#include "api/view.h"
#include "feedwheel/engine.h"

#define HEARTBEAT_AGE_MAX_MS (15 * FW_SECOND_MS)
/* shorter contents are sanitised as fast as they are found */
#define CACHE_FROM_BYTES ((size_t)16 << 10)
#define VIEW_SLOTS 1024

const char *fw_feed_state(const struct fw_feed *f)
{
	if (f->status != FW_FEED_ACTIVE)
		return fw_feed_status_name(f->status);
	return f->fail_n ? "failing" : f->last_visit_ms ? "ok" : "new";
}

/* Times of a feed: 0 is never. */
static void time_member(struct fw_json *j, const char *key, int64_t at_ms)
{
	if (at_ms != 0)
		fw_json_time(j, key, at_ms);
}

static void str_member(struct fw_json *j, const char *key, struct fw_str s)
{
	if (s.len)
		fw_json_str(j, key, s);
}

void fw_feed_json(struct fw_json *j, const char *key, const struct fw_feed *f)
{
	fw_json_object(j, key);
	fw_json_int(j, "id", f->id);
	fw_json_str(j, "url", f->url);
	str_member(j, "title", f->user_title.len ? f->user_title : f->title);
	str_member(j, "document_title", f->title);
	str_member(j, "folder", f->folder);
	str_member(j, "home_page_url", f->home_page_url);
	str_member(j, "description", f->description);
	str_member(j, "language", f->language);
	str_member(j, "icon", f->icon);
	if (f->format != FW_FORMAT_NONE)
		fw_json_cstr(j, "format", fw_format_name(f->format));
	fw_json_cstr(j, "status", fw_feed_status_name(f->status));
	fw_json_cstr(j, "state", fw_feed_state(f));
	fw_json_int(j, "entries", f->entry_n);
	time_member(j, "created", f->created_ms);
	time_member(j, "due", f->due_at_ms);
	str_member(j, "why", f->why);
	if (f->interval_ms)
		fw_json_int(j, "interval_ms", f->interval_ms);
	time_member(j, "last_visit", f->last_visit_ms);
	time_member(j, "last_ok", f->last_ok_ms);
	time_member(j, "last_new", f->last_new_ms);
	if (f->last_visit_ms)
		fw_json_cstr(j, "last_result", fw_visit_kind_name(f->last_kind));
	if (f->http_status)
		fw_json_int(j, "http_status", f->http_status);
	fw_json_int(j, "failures", f->fail_n);
	if (f->fail_n || f->status != FW_FEED_ACTIVE)
		str_member(j, "error", f->error);
	if (f->crash_n)
		fw_json_int(j, "crashes", f->crash_n);
	str_member(j, "etag", f->etag);
	str_member(j, "last_modified", f->last_modified);
	if (!fw_feed_redirect_is_named(f))
		str_member(j, "redirect_url", f->redirect_url);
	str_member(j, "hub", f->hub);
	time_member(j, "push_until", f->push_until_ms);
	fw_json_bool(j, "auth", f->username.len > 0);
	fw_json_end(j);
}

static int in_flight_add(void *ctx, const struct fw_heartbeat *b)
{
	*(int64_t *)ctx += fw_worker_is_dead(b->worker) ? 0 : b->in_flight;
	return 0;
}

int fw_in_flight(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	*n = 0;
	return fw_store_heartbeat_list(st, now_ms - HEARTBEAT_AGE_MAX_MS, in_flight_add, n, err);
}

void fw_visit_json(struct fw_json *j, const char *key, const struct fw_visit *v)
{
	const struct {
		const char *name;
		int64_t us;
	} PHASE[] = {
		{"dns_us", v->dns_us},
		{"connect_us", v->connect_us},
		{"tls_us", v->tls_us},
		{"first_byte_us", v->first_byte_us},
		{"total_us", v->total_us},
		{"parse_us", v->parse_us},
	};

	fw_json_object(j, key);
	fw_json_time(j, "at", v->at_ms);
	fw_json_cstr(j, "result", fw_visit_kind_name(v->kind));
	if (v->http_status)
		fw_json_int(j, "http_status", v->http_status);
	str_member(j, "error", v->error);
	fw_json_int(j, "redirects", v->redirects);
	for (size_t i = 0; i < FW_N(PHASE); i++)
		fw_json_int(j, PHASE[i].name, PHASE[i].us);
	fw_json_int(j, "wire_bytes", (int64_t)v->wire_bytes);
	fw_json_int(j, "body_bytes", (int64_t)v->body_bytes);
	fw_json_int(j, "items", v->item_n);
	fw_json_int(j, "new", v->new_n);
	fw_json_int(j, "changed", v->changed_n);
	fw_json_end(j);
}

/* ---- the cache of sanitised contents ------------------------------------- */

/*
 * A direct-mapped cache: an entry's id selects its slot, and another entry with the same slot
 * replaces it. The total size is limited to max_bytes. The key contains a hash of the content, so
 * an element never becomes stale.
 */
struct view_slot {
	int64_t id; /* 0: empty */
	uint64_t hash;
	char *text;
	size_t len;
};

struct fw_view_cache {
	pthread_mutex_t lock;
	size_t max_bytes, bytes;
	size_t hand; /* the next slot to evict when the cache is full */
	struct view_slot slot[VIEW_SLOTS];
};

struct fw_view_cache *fw_view_cache_create(size_t max_bytes)
{
	struct fw_view_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->max_bytes = max_bytes;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void view_slot_clear(struct fw_view_cache *c, struct view_slot *p)
{
	assert(c->bytes >= p->len);
	c->bytes -= p->len;
	free(p->text);
	*p = (struct view_slot){0};
}

void fw_view_cache_destroy(struct fw_view_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < VIEW_SLOTS; i++)
		view_slot_clear(c, &c->slot[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Appends the cached text for this entry and hash. False: not cached. */
static bool view_cache_get(struct fw_view_cache *c, int64_t id, uint64_t hash, struct fw_buf *out)
{
	const struct view_slot *p = &c->slot[(uint64_t)id % VIEW_SLOTS];
	bool found;

	pthread_mutex_lock(&c->lock);
	found = p->id == id && p->hash == hash;
	if (found)
		fw_buf_add(out, p->text, p->len);
	pthread_mutex_unlock(&c->lock);
	return found;
}

/* Stores text, or frees it. Takes ownership of text (malloc). */
static void view_cache_put(struct fw_view_cache *c, int64_t id, uint64_t hash, char *text, size_t len)
{
	struct view_slot *p = &c->slot[(uint64_t)id % VIEW_SLOTS];

	if (id <= 0 || len > c->max_bytes / 4) {
		free(text);
		return;
	}
	pthread_mutex_lock(&c->lock);
	view_slot_clear(c, p);
	while (c->bytes + len > c->max_bytes)
		view_slot_clear(c, &c->slot[c->hand++ % VIEW_SLOTS]);
	*p = (struct view_slot){id, hash, text, len};
	c->bytes += len;
	assert(c->bytes <= c->max_bytes);
	pthread_mutex_unlock(&c->lock);
}

/* ---- entries ------------------------------------------------------------- */

/* True if key ("authors") is a member of the top-level object. */
static bool json_has_member(struct fw_str object, struct fw_str key)
{
	int depth = 0;

	for (size_t i = 0; i < object.len; i++) {
		size_t from = i + 1;

		if (object.p[i] == '{' || object.p[i] == '[')
			depth++;
		if (object.p[i] == '}' || object.p[i] == ']')
			depth--;
		if (object.p[i] != '"')
			continue;
		for (i++; i < object.len && object.p[i] != '"'; i++)
			i += object.p[i] == '\\';
		if (depth == 1 && fw_str_eq(fw_str_sub(object, from, i), key) && i + 1 < object.len &&
			object.p[i + 1] == ':')
			return true;
	}
	return false;
}

/* Copies the members inside {...} into the object that is being written. */
static void json_splice(struct fw_json *j, struct fw_str object)
{
	struct fw_str inner;

	object = fw_str_trim(object);
	if (object.len < 2 || object.p[0] != '{' || object.p[object.len - 1] != '}')
		return;
	inner = fw_str_trim(fw_str_sub(object, 1, object.len - 1));
	if (!inner.len)
		return;
	if (j->need_comma)
		fw_buf_addc(j->out, ',');
	fw_buf_addstr(j->out, inner);
	j->need_comma = true;
}

void fw_incomplete_json(struct fw_json *j, int64_t unindexed_n)
{
	if (!unindexed_n)
		return;
	fw_json_bool(j, "incomplete", true);
	fw_json_int(j, "unindexed_entries", unindexed_n);
}

/*
 * A hash of everything that the sanitised text depends on, except the sanitiser, which is constant
 * in a process.
 */
static uint64_t entry_content_hash(const struct fw_entry_row *r, struct fw_str base)
{
	return fw_hash64_seed(
		r->content.p, r->content.len, fw_hash64_seed(base.p ? base.p : "", base.len, r->revision));
}

/* Appends the sanitised content of an entry whose content is HTML. */
static int entry_html_add(
	const struct fw_entry_row *r, struct fw_view_work *work, struct fw_buf *out, struct fw_err *err)
{
	struct fw_str base = r->content_base.len ? r->content_base : r->url;
	bool is_cacheable = work->cache && r->content.len >= CACHE_FROM_BYTES;
	struct fw_err why;
	uint64_t hash = 0;
	char *safe = NULL;
	size_t len = 0;
	int64_t begin;
	int rc;

	if (is_cacheable) {
		hash = entry_content_hash(r, base);
		if (view_cache_get(work->cache, r->id, hash, out))
			return 0;
	}
	begin = fw_thread_cpu_us();
	rc = fw_sanitize(r->content, base, 0, &safe, &len, &why);
	work->bytes += r->content.len;
	work->cpu_us += fw_thread_cpu_us() - begin;
	if (rc)
		return fw_err_set(err, rc, "entry %lld: %s", (long long)r->id, why.text);
	fw_buf_add(out, safe, len);
	if (is_cacheable)
		view_cache_put(work->cache, r->id, hash, safe, len);
	else
		free(safe);
	return 0;
}

static int entry_content_member(
	struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_view_work *work, struct fw_err *err)
{
	struct fw_buf html = FW_BUF_INIT(0);
	int rc;

	if (!r->content.p)
		return 0;
	if (r->content_type == FW_TEXT_PLAIN || flags & FW_VIEW_RAW) {
		fw_json_str(j, r->content_type == FW_TEXT_PLAIN ? "content_text" : "content_html", r->content);
		return 0;
	}
	rc = entry_html_add(r, work, &html, err);
	if (html.rc)
		j->out->rc = html.rc;
	else if (!rc)
		fw_json_str(j, "content_html", fw_buf_str(&html));
	fw_buf_finish(&html);
	return rc;
}

/* Plain text as HTML: its lines stay lines. */
static void text_as_html_add(struct fw_buf *out, struct fw_str text)
{
	while (text.p) {
		fw_xml_escape(out, fw_str_split(text, '\n', &text), FW_XML_TEXT);
		if (text.p)
			fw_buf_adds(out, "<br>\n");
	}
}

int fw_entry_html(const struct fw_entry_row *r, struct fw_view_work *work, struct fw_buf *out, struct fw_err *err)
{
	if (!r->content.p || r->content_type == FW_TEXT_NONE)
		return 0;
	if (r->content_type != FW_TEXT_PLAIN)
		return entry_html_add(r, work, out, err);
	text_as_html_add(out, r->content);
	return 0;
}

/* HTML: the text escaped, each match in <mark>. */
static void snippet_member(struct fw_json *j, struct fw_str snippet)
{
	struct fw_buf b = FW_BUF_INIT(0);

	for (size_t i = 0; i < snippet.len; i++) {
		switch (snippet.p[i]) {
		case FW_MARK_BEGIN:
			fw_buf_adds(&b, "<mark>");
			break;
		case FW_MARK_END:
			fw_buf_adds(&b, "</mark>");
			break;
		case '&':
			fw_buf_adds(&b, "&amp;");
			break;
		case '<':
			fw_buf_adds(&b, "&lt;");
			break;
		case '>':
			fw_buf_adds(&b, "&gt;");
			break;
		default:
			fw_buf_addc(&b, snippet.p[i]);
		}
	}
	if (snippet.p)
		fw_json_str(j, "snippet", fw_buf_str(&b));
	j->out->rc = j->out->rc ? j->out->rc : b.rc;
	fw_buf_finish(&b);
}

int fw_entry_json(struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_err *err)
{
	struct fw_view_work work = {.cache = NULL};

	return fw_entry_json_work(j, r, flags, &work, err);
}

int fw_entry_json_work(
	struct fw_json *j, const struct fw_entry_row *r, unsigned flags, struct fw_view_work *work, struct fw_err *err)
{
	char id[FW_RFC3339_MAX];
	int rc = 0;

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)r->id);
	fw_json_object(j, NULL);
	fw_json_str(j, "id", r->guid.len ? r->guid : r->url.len ? r->url : fw_str(id));
	str_member(j, "url", r->url);
	str_member(j, "title", r->title);
	str_member(j, "summary", r->summary);
	if (flags & FW_VIEW_CONTENT)
		rc = entry_content_member(j, r, flags, work, err);
	if (fw_date_known(r->published_ms))
		fw_json_time(j, "date_published", r->published_ms);
	if (fw_date_known(r->updated_ms))
		fw_json_time(j, "date_modified", r->updated_ms);
	if (r->author.len && !json_has_member(r->extra, FW_STR("authors"))) {
		fw_json_array(j, "authors");
		fw_json_object(j, NULL);
		fw_json_str(j, "name", r->author);
		fw_json_end(j);
		fw_json_end(j);
	}
	json_splice(j, r->extra);
	fw_json_object(j, "_store");
	fw_json_int(j, "entry", r->id);
	fw_json_int(j, "feed", r->feed_id);
	fw_json_str(j, "feed_url", r->feed_url);
	fw_json_str(j, "feed_title", r->feed_title);
	fw_json_time(j, "seen", r->seen_ms);
	if (r->changed_ms != r->seen_ms)
		fw_json_time(j, "changed", r->changed_ms);
	fw_json_int(j, "revision", r->revision);
	snippet_member(j, r->snippet);
	fw_json_end(j);
	fw_json_end(j);
	return rc;
}
