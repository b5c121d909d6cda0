/* SPDX-License-Identifier: ISC */
/*
 * GET /feeds/NAME.atom, .rss, .json: entries as a feed (api/feed_out.h), also with a token in the
 * path, for readers that cannot send a header.
 *
 * Readers ask often, and mostly nothing is new. So the ETag is made of the ids and revisions of the
 * entries, which are read without their contents if the request has a condition. Last-Modified is
 * the time of the newest change. It is left out while that is recent, because a further entry may
 * still be stored with a time in the same second.
 */
#include "api/feed_out.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/url.h"
#include "http/server/http.h"

#define LIMIT 100
#define LIMIT_MAX 1000
#define FEED_BYTES ((size_t)8 << 20) /* further entries are left out */
#define FRESH_MS FW_MINUTE_MS
#define ETAG_MAX 40

struct feed_request {
	struct request *r;
	enum fw_feed_out_format format;
	struct fw_arena arena;
	struct fw_feed_out_found found;
	struct fw_feed_out_head head;
	struct fw_view_work work;
	struct fw_feed_out *out; /* NULL: only the ETag is wanted */
	struct fw_hasher hash;
	int64_t last_ms; /* the newest change; 0: no entry */
	int64_t unindexed_n;
};

/* Split "News.atom". False: there is no such extension. */
static bool feed_name_split(struct fw_str path, struct fw_str *name, enum fw_feed_out_format *format)
{
	for (int i = 0; i < FW_FEED_OUT_N; i++) {
		struct fw_str end = fw_str(fw_feed_out_extension((enum fw_feed_out_format)i));

		if (path.len <= end.len || !fw_str_ends(path, end) || path.p[path.len - end.len - 1] != '.')
			continue;
		*name = fw_str_sub(path, 0, path.len - end.len - 1);
		*format = (enum fw_feed_out_format)i;
		return true;
	}
	return false;
}

bool http_feed_out_may(const struct request *r, struct fw_str bound)
{
	enum fw_feed_out_format format;
	struct fw_arena a;
	struct fw_str name, own;
	bool may;

	if (!feed_name_split(r->rest, &name, &format))
		return true; /* it gets a 404 */
	fw_arena_init(&a, 0);
	own = fw_token_feed_name(bound, &a);
	may = own.len && fw_feed_out_name_allows(own, name);
	fw_arena_finish(&a);
	return may;
}

/* ---- the head -------------------------------------------------------------------------------- */

static bool host_is_plain(struct fw_str host)
{
	for (size_t i = 0; i < host.len; i++) {
		if (!fw_is_alnum((unsigned char)host.p[i]) && !strchr(".-_:[]", host.p[i]))
			return false;
	}
	return host.len > 0;
}

/* The URL below which the client reached this server: websub_url, else as it says. */
static void feed_base_add(const struct request *r, struct fw_buf *b)
{
	struct fw_str host = r->tokenless_head.host;

	if (r->thread->h->config->websub_url || !host_is_plain(host))
		fw_feed_out_base(r->thread->h->config, b);
	else
		fw_buf_addf(b, "%s://%.*s/", r->thread->h->tls.key ? "https" : "http", FW_STR_ARG(host));
	if (!b->len) /* listen is a Unix socket */
		fw_buf_adds(b, "http://localhost/");
}

static struct fw_str feed_take(struct feed_request *f, struct fw_buf *b)
{
	struct fw_str s = b->rc ? FW_STR_NONE : fw_arena_str(&f->arena, fw_buf_str(b));

	f->arena.failed |= b->rc != 0;
	fw_buf_finish(b);
	return s;
}

/* The URL of this feed as the client wrote it: its token is in it, because readers go there. */
static struct fw_str feed_self_url(struct feed_request *f, struct fw_str name)
{
	struct fw_buf b = FW_BUF_INIT(0);

	feed_base_add(f->r, &b);
	if (f->r->token[0])
		fw_buf_addf(&b, "t/%s/", f->r->token);
	fw_feed_out_path(&b, name, f->format);
	if (http_param(f->r, "limit").p)
		fw_buf_addf(&b, "?limit=%zu", f->found.q.limit);
	return feed_take(f, &b);
}

/* The same for all forms of a name, with any token. */
static struct fw_str feed_own_id(struct feed_request *f)
{
	struct fw_buf b = FW_BUF_INIT(0), name = FW_BUF_INIT(0);

	feed_base_add(f->r, &b);
	fw_feed_out_name_write(&name, &f->found.name);
	fw_feed_out_path(&b, fw_buf_str(&name), FW_FEED_OUT_ATOM);
	f->arena.failed |= name.rc != 0;
	fw_buf_finish(&name);
	return feed_take(f, &b);
}

static void feed_head_fill(struct feed_request *f, struct fw_str name)
{
	f->head = (struct fw_feed_out_head){.title = f->found.title,
		.home_url = f->found.home_url,
		.description = f->found.description,
		.language = f->found.language,
		.icon = f->found.icon,
		.hub_url = fw_str(f->r->thread->h->config->feeds_hub_url)};
	f->head.self_url = feed_self_url(f, name);
	f->head.id = feed_own_id(f);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void feed_hash_number(struct feed_request *f, int64_t n)
{
	fw_hasher_add(&f->hash, (struct fw_str){(const char *)&n, sizeof(n)});
}

static int feed_entry(void *ctx, const struct fw_entry_row *e)
{
	struct feed_request *f = ctx;

	feed_hash_number(f, e->id);
	feed_hash_number(f, e->revision);
	feed_hash_number(f, e->changed_ms);
	fw_hasher_add(&f->hash, e->feed_title);
	fw_hasher_add(&f->hash, e->feed_url);
	f->last_ms = FW_MAX(f->last_ms, e->changed_ms);
	if (!f->out || fw_feed_out_bytes(f->out) >= FEED_BYTES)
		return 0;
	return fw_feed_out_add(f->out, e, NULL);
}

/* Read the entries, and make the ETag; with f->out write them too. Returns 0 or an error. */
static int feed_entries(struct feed_request *f, char etag[ETAG_MAX], struct fw_err *err)
{
	struct fw_entry_query q = f->found.q;
	const struct fw_feed_out_head *h = &f->head;
	const struct fw_str part[] = {fw_str(fw_version()), fw_str(fw_feed_out_extension(f->format)), h->title, h->id,
		h->self_url, h->home_url, h->hub_url, h->description, h->language, h->icon};
	int rc;

	fw_hasher_init(&f->hash);
	for (size_t i = 0; i < FW_N(part); i++)
		fw_hasher_add(&f->hash, part[i]);
	f->last_ms = 0;
	q.content = f->out != NULL;
	q.unindexed_n = &f->unindexed_n;
	rc = fw_store_entry_list(f->r->store, &q, feed_entry, f, err);
	(void)fw_snprintf(etag, ETAG_MAX, "\"%016llx\"", (unsigned long long)fw_hasher_end64(&f->hash));
	return rc == FW_ENOMEM ? fw_err_set(err, rc, "out of memory") : rc;
}

/* ---- the response ---------------------------------------------------------------------------- */

static bool feed_is_fresh(const struct feed_request *f)
{
	return http_now_ms(f->r) - f->last_ms < FRESH_MS;
}

static const char *feed_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

static bool feed_has_condition(const struct request *r)
{
	return feed_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH) || feed_header(r, MHD_HTTP_HEADER_IF_MODIFIED_SINCE);
}

/* RFC 9110 section 13.2.2: If-Modified-Since counts only without If-None-Match. */
static bool feed_is_unmodified(const struct feed_request *f, const char *etag)
{
	struct fw_str since = fw_str(feed_header(f->r, MHD_HTTP_HEADER_IF_MODIFIED_SINCE));
	int64_t since_ms;

	if (feed_header(f->r, MHD_HTTP_HEADER_IF_NONE_MATCH))
		return http_etag_matches(f->r, fw_str(etag));
	return f->last_ms && !feed_is_fresh(f) && fw_http_date_parse(since, http_now_ms(f->r), &since_ms) &&
		f->last_ms / 1000 <= since_ms / 1000;
}

static enum MHD_Result feed_respond(struct feed_request *f, unsigned status, const char *etag, struct fw_buf *body)
{
	struct MHD_Response *m = http_response(f->r, status, fw_feed_out_type(f->format), body);
	char date[FW_RFC3339_MAX], n[24];
	bool ok;

	if (!m)
		return MHD_NO;
	ok = MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, etag) &&
		MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
	if (f->last_ms && !feed_is_fresh(f))
		ok = ok && MHD_add_response_header(m, MHD_HTTP_HEADER_LAST_MODIFIED, fw_http_date(date, f->last_ms));
	if (f->unindexed_n) {
		(void)fw_snprintf(n, sizeof(n), "%lld", (long long)f->unindexed_n);
		ok = ok && MHD_add_response_header(m, "Feedwheel-Unindexed", n);
	}
	if (ok)
		return http_respond(f->r, status, m);
	MHD_destroy_response(m);
	return MHD_NO;
}

static enum MHD_Result feed_failed(struct request *r, int rc, const struct fw_err *err)
{
	if (rc == FW_ENOTFOUND)
		return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found", "%s", err->text);
	if (rc == FW_EINVAL) /* with the place in the query */
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "%s", err->text);
	return http_store_failed(r, rc, err);
}

/* The name is looked up: 304, or the document. */
static enum MHD_Result feed_send(struct feed_request *f)
{
	struct fw_buf body = FW_BUF_INIT(0);
	struct fw_err err = {0};
	char etag[ETAG_MAX];
	int rc = 0;

	if (feed_has_condition(f->r)) {
		rc = feed_entries(f, etag, &err);
		if (!rc && feed_is_unmodified(f, etag))
			return feed_respond(f, MHD_HTTP_NOT_MODIFIED, etag, &body);
	}
	f->out = rc ? NULL : fw_feed_out_create(f->format, &f->work);
	if (!rc && !f->out)
		rc = fw_err_set(&err, FW_ENOMEM, "out of memory");
	rc = rc ? rc : feed_entries(f, etag, &err);
	rc = rc ? rc : fw_feed_out_end(f->out, &f->head, &body, &err);
	fw_feed_out_destroy(f->out);
	if (!rc)
		return feed_respond(f, MHD_HTTP_OK, etag, &body);
	fw_buf_finish(&body);
	return feed_failed(f->r, rc, &err);
}

/* A token is for what its name meant when it was made: a folder does not become a query. */
static struct fw_feed_out_name feed_name_meant(struct feed_request *f, struct fw_str name)
{
	struct fw_str own = fw_token_feed_name(fw_str(f->r->bound), &f->arena);

	return fw_feed_out_name_parse(own.len ? own : name);
}

enum MHD_Result http_feed_out(struct request *r)
{
	struct feed_request f = {.r = r, .work = {.cache = r->thread->h->views}};
	struct fw_feed_out_name meant;
	struct fw_err err = {0};
	int64_t limit = LIMIT;
	struct fw_str name;
	enum MHD_Result ok;
	int rc;

	if (!feed_name_split(r->rest, &name, &f.format))
		return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found",
			"unknown path: the name of a feed ends with .atom, .rss or .json");
	if (!http_param_int(r, "limit", 1, LIMIT_MAX, &limit, &ok))
		return ok;
	fw_arena_init(&f.arena, 0);
	meant = feed_name_meant(&f, name);
	rc = f.arena.failed ? fw_err_set(&err, FW_ENOMEM, "out of memory") :
			      fw_feed_out_find(r->store, &meant, &f.arena, &f.found, &err);
	f.found.q.limit = (size_t)limit;
	if (!rc) {
		feed_head_fill(&f, name);
		rc = f.arena.failed ? fw_err_set(&err, FW_ENOMEM, "out of memory") : 0;
	}
	ok = rc ? feed_failed(r, rc, &err) : feed_send(&f);
	fw_arena_finish(&f.arena);
	return ok;
}
