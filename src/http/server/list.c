/* SPDX-License-Identifier: ISC */
/*
 * Query parameters, and lists page by page. A page is limited by rows and by bytes, and names the
 * URL of the next one. A request whose If-None-Match has the page's ETag gets a 304.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/url.h"
#include "api/view.h"
#include "http/server/http.h"

#define ARENA_BYTES ((size_t)8 << 20)
#define ETAG_MAX 40

struct fw_str http_param(struct request *r, const char *name)
{
	return fw_str(MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name));
}

enum MHD_Result http_param_wrong(struct request *r, const char *name, const char *fmt, ...)
{
	struct fw_buf words = FW_BUF_INIT(500);
	struct fw_str got = http_param(r, name);
	enum MHD_Result ok;
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&words, fmt, ap);
	va_end(ap);
	ok = http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "invalid %s '%.*s' (expected %.*s)", name,
		(int)FW_MIN(got.len, (size_t)60), got.p, FW_STR_ARG(fw_buf_str(&words)));
	fw_buf_finish(&words);
	return ok;
}

bool http_param_int(struct request *r, const char *name, int64_t min, int64_t max, int64_t *out, enum MHD_Result *ok)
{
	struct fw_str s = http_param(r, name);
	int64_t v;

	if (!s.p)
		return true;
	if (!fw_str_int(s, &v) || v < min || v > max) {
		*ok = http_param_wrong(r, name, "a number from %lld to %lld", (long long)min, (long long)max);
		return false;
	}
	*out = v;
	return true;
}

bool http_param_word(struct request *r, const char *name, const char *words, int *which, enum MHD_Result *ok)
{
	struct fw_str s = http_param(r, name), rest = fw_str(words);

	for (int i = 0; s.p && rest.p; i++) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), s)) {
			*which = i;
			return true;
		}
	}
	if (!s.p)
		return true;
	*ok = http_param_wrong(r, name, "one of: %s", words);
	return false;
}

bool http_param_content(struct request *r, unsigned *flags, enum MHD_Result *ok)
{
	static const unsigned FLAGS[] = {FW_VIEW_CONTENT, 0, FW_VIEW_CONTENT | FW_VIEW_RAW};
	int which = -1;

	if (!http_param_word(r, "content", "yes no raw", &which, ok))
		return false;
	assert(which < (int)FW_N(FLAGS));
	if (which >= 0)
		*flags = FLAGS[which];
	return true;
}

bool http_param_cursor(struct request *r, char kind, int64_t *number, size_t n, bool *there, enum MHD_Result *ok)
{
	struct fw_str s = http_param(r, "cursor"), rest = fw_str_sub(s, 1, s.len);
	bool good = s.len && s.p[0] == kind;

	*there = s.p != NULL;
	for (size_t i = 0; good && i < n; i++)
		good = rest.p && fw_str_int(fw_str_split(rest, '.', &rest), &number[i]);
	if (!s.p || (good && !rest.p))
		return true;
	*ok = http_param_wrong(r, "cursor", "the cursor of an earlier response to the same query");
	return false;
}

enum MHD_Result http_openapi(struct request *r)
{
	struct list_page p;

	list_page_begin(&p, r);
	fw_buf_adds(&p.out, http_openapi_text);
	return list_page_send(&p, "application/json", 0, NULL);
}

/* ---- pages ----------------------------------------------------------------------------------- */

void list_page_begin(struct list_page *p, struct request *r)
{
	*p = (struct list_page){.r = r, .out = FW_BUF_INIT(0)};
	fw_arena_init(&p->arena, ARENA_BYTES);
	fw_json_init(&p->j, &p->out, false);
}

bool list_page_has_room(struct list_page *p)
{
	p->more = p->n >= p->limit || p->out.len >= PAGE_BYTES;
	p->n += !p->more;
	return !p->more;
}

void list_page_set_cursor(struct list_page *p, const char *fmt, ...)
{
	struct fw_buf b = FW_BUF_INIT(sizeof(p->cursor) - 1);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fw_str_copy(p->cursor, sizeof(p->cursor), fw_buf_str(&b));
	fw_buf_finish(&b);
}

/* The path of the request: that of its route, with the name in it. */
static void page_path_add(struct fw_buf *b, const struct request *r)
{
	struct fw_str rest, before = fw_str_split(fw_str(r->route->path), '{', &rest);

	fw_buf_addstr(b, before);
	if (!rest.p)
		return;
	(void)fw_str_split(rest, '}', &rest);
	fw_buf_addf(b, "%s%.*s", r->name, FW_STR_ARG(rest));
}

struct next_param {
	struct fw_buf *b;
	struct fw_str name;
};

/* Append the parameter if it has this name. It may be repeated. */
static enum MHD_Result next_param_add(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct next_param *n = ctx;

	(void)kind;
	if (!value || !fw_str_eq(fw_str(key), n->name))
		return MHD_YES;
	fw_buf_addf(n->b, "%s=", key);
	fw_url_escape(n->b, fw_str(value));
	fw_buf_addc(n->b, '&');
	return MHD_YES;
}

const char *list_page_next(struct list_page *p)
{
	struct fw_str rest = fw_str(p->r->route->params);
	struct fw_buf b = FW_BUF_INIT(0);
	const char *text;

	if (!p->more || !p->cursor[0])
		return NULL;
	page_path_add(&b, p->r);
	fw_buf_addc(&b, '?');
	while (rest.p) {
		struct next_param n = {&b, fw_str_split(rest, ' ', &rest)};

		if (!fw_str_eq(n.name, FW_STR("cursor")))
			(void)MHD_get_connection_values(p->r->conn, MHD_GET_ARGUMENT_KIND, next_param_add, &n);
	}
	fw_buf_addf(&b, "cursor=%s", p->cursor);
	text = b.rc ? NULL : fw_arena_dup(&p->arena, b.p, b.len);
	if (!text)
		p->out.rc = FW_ENOMEM;
	fw_buf_finish(&b);
	return text;
}

bool http_etag_matches(struct request *r, struct fw_str etag)
{
	struct fw_str rest = fw_str(
		MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH));

	while (rest.p) {
		struct fw_str one = fw_str_trim(fw_str_split(rest, ',', &rest));

		if (fw_str_starts(one, FW_STR("W/")))
			one = fw_str_sub(one, 2, one.len);
		if (fw_str_eq(one, etag) || fw_str_eq(one, FW_STR("*")))
			return true;
	}
	return false;
}

static bool list_page_headers_add(struct MHD_Response *m, const struct list_page *p, const char *etag, const char *next)
{
	struct fw_buf link = FW_BUF_INIT(0);
	char date[FW_RFC3339_MAX], n[24];
	bool ok = MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, etag) &&
		MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache") &&
		MHD_add_response_header(m, MHD_HTTP_HEADER_VARY, "Accept");

	if (p->last_ms)
		ok = ok && MHD_add_response_header(m, MHD_HTTP_HEADER_LAST_MODIFIED, fw_http_date(date, p->last_ms));
	if (next) {
		fw_buf_addf(&link, "<%s>; rel=\"next\"", next);
		ok = ok && !link.rc && MHD_add_response_header(m, MHD_HTTP_HEADER_LINK, link.p);
	}
	if (p->cursor[0])
		ok = ok && MHD_add_response_header(m, "Feedwheel-Cursor", p->cursor);
	if (p->unindexed_n) {
		(void)fw_snprintf(n, sizeof(n), "%lld", (long long)p->unindexed_n);
		ok = ok && MHD_add_response_header(m, "Feedwheel-Unindexed", n);
	}
	if (p->note)
		ok = ok && MHD_add_response_header(m, "Feedwheel-Note", p->note);
	fw_buf_finish(&link);
	return ok;
}

enum MHD_Result list_page_send(struct list_page *p, const char *type, int rc, const struct fw_err *err)
{
	const char *next = rc < 0 ? NULL : list_page_next(p);
	struct MHD_Response *m = NULL;
	unsigned status = MHD_HTTP_OK;
	enum MHD_Result ok = MHD_NO;
	char etag[ETAG_MAX];

	if (rc < 0) {
		ok = http_store_failed(p->r, rc, err);
		goto out;
	}
	(void)fw_snprintf(etag, sizeof(etag), "\"%016llx-%zx\"",
		(unsigned long long)fw_hash64(p->out.p ? p->out.p : "", p->out.len), p->out.len);
	if (!p->out.rc && http_etag_matches(p->r, fw_str(etag))) {
		status = MHD_HTTP_NOT_MODIFIED;
		fw_buf_reset(&p->out);
	}
	m = http_response(p->r, status, type, &p->out);
	if (m && list_page_headers_add(m, p, etag, next))
		ok = http_respond(p->r, status, m);
	else if (m)
		MHD_destroy_response(m);
out:
	fw_buf_finish(&p->out);
	fw_arena_finish(&p->arena);
	return ok;
}
