/* SPDX-License-Identifier: ISC */
/*
 * Responses. serve.c gets all misbehaviour below HTTP as three values: how many bytes to send
 * (limit), how fast (drip_bps), and what to do then (after).
 *
 * Validators: a feed's version is a number. It is the number of entries for growing feeds, the
 * request count with validators=fresh, else 0. ETag and Last-Modified are computed from feed,
 * document and version. So the origin can check, without a memory and even after a restart, whether
 * a value that it receives is byte for byte one that it can have sent. If it is not, or if the two
 * belong to different versions, the request is logged with a "violation".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin.h"

#define EPOCH_MS INT64_C(1767225600000) /* 2026-01-01; Last-Modified counts from this time */
#define VALUE_MAX 160

/* one request until its response is complete */
struct visit {
	struct request *r;
	struct answer *a;
	const struct plan *plan;
	struct doc *doc;
	int64_t version;
	bool plain;                          /* /doc/...: not a feed, so without counts and rules */
	char etag[VALUE_MAX], lm[VALUE_MAX]; /* "": none */
};

static const struct plan no_plan = {.first = -1, .latency_ms = -1, .text = ""};

/* ---- request --------------------------------------------------------------------------------- */

struct fw_str header_get(struct fw_str lines, struct fw_str name)
{
	struct fw_str rest = lines, v;

	while (rest.p && rest.len) {
		struct fw_str line = fw_str_split(rest, '\n', &rest), k = fw_str_split(line, ':', &v);

		if (v.p && fw_str_ieq(k, name))
			return fw_str_trim(v);
	}
	return FW_STR_NONE;
}

static bool accepts(const struct request *r, struct fw_str coding)
{
	struct fw_str v = header_get(r->headers, FW_STR("Accept-Encoding"));

	return v.p && fw_str_ifind(v, coding);
}

/* ---- validators ------------------------------------------------------------------------------ */

static void validators_at(const struct visit *v, int64_t version, char etag[VALUE_MAX], char lm[VALUE_MAX])
{
	enum validators how = v->plan->validators;
	long long feed = (long long)v->r->feed, id = (long long)(v->doc->hash & 0xffffffffff);
	int64_t days = (int64_t)(v->doc->hash % 300);
	char date[FW_RFC3339_MAX];

	etag[0] = lm[0] = '\0';
	/*
	 * legal forms as real servers send them: no quotes, spaces, a high byte; a date in another
	 * form
	 */
	if (how == V_ODD) {
		(void)fw_snprintf(etag, VALUE_MAX, "W/x \xe9-%llx;%lld -v%lld", id, feed, (long long)version);
		(void)fw_snprintf(lm, VALUE_MAX, "2026-01-01 00:00:%02lld +0000 (%lld)", (long long)version % 60, feed);
		return;
	}
	if (how != V_NONE && how != V_LM)
		(void)fw_snprintf(etag, VALUE_MAX, "%s\"%llx-f%lld-v%lld\"", how == V_WEAK ? "W/" : "", id, feed,
			(long long)version);
	if (how != V_NONE && how != V_ETAG)
		(void)fw_snprintf(
			lm, VALUE_MAX, "%s", fw_http_date(date, EPOCH_MS + days * FW_DAY_MS + version * FW_SECOND_MS));
}

/* The version that this value belongs to; -1: none. */
static int64_t version_of(const struct visit *v, struct fw_str value, bool is_etag)
{
	char etag[VALUE_MAX], lm[VALUE_MAX];

	for (int64_t k = v->version; k >= 0 && k > v->version - 100000; k--) {
		validators_at(v, k, etag, lm);
		if (fw_str_eq(value, fw_str(is_etag ? etag : lm)))
			return k;
	}
	return -1;
}

/* True for "not modified". Sets r->violation if the validators received are wrong. */
static bool not_modified(const struct visit *v)
{
	struct fw_str inm = header_get(v->r->headers, FW_STR("If-None-Match"));
	struct fw_str ims = header_get(v->r->headers, FW_STR("If-Modified-Since"));
	int64_t by_etag = inm.p ? version_of(v, inm, true) : -1, by_lm = ims.p ? version_of(v, ims, false) : -1;

	if (inm.p && by_etag < 0)
		v->r->violation = "If-None-Match was never given";
	else if (ims.p && by_lm < 0)
		v->r->violation = "If-Modified-Since was never given";
	else if (inm.p && ims.p && by_etag != by_lm && v->plan->validators != V_FRESH)
		v->r->violation = "If-None-Match and If-Modified-Since are of different answers";
	else if ((inm.p && !ims.p && v->lm[0]) || (ims.p && !inm.p && v->etag[0]))
		v->r->violation = "only one of the two validators came back";
	if (v->plan->validators == V_FRESH)
		return false;
	return inm.p ? by_etag == v->version : ims.p && by_lm == v->version;
}

static bool is_conditional(const struct visit *v)
{
	return header_get(v->r->headers, FW_STR("If-None-Match")).p ||
		header_get(v->r->headers, FW_STR("If-Modified-Since")).p;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static struct doc *bomb_doc(int64_t mb) /* created once for each size */
{
	static struct doc known[16];
	size_t i = 0, len = (size_t)mb << 20;
	char *p;

	while (i < FW_N(known) && known[i].name && known[i].body.len != len)
		i++;
	if (i == FW_N(known))
		die("too many sizes of bombs: the limit is %zu", FW_N(known));
	if (!known[i].name) {
		p = malloc(len);
		if (!p)
			die("out of memory: a bomb of %lld MiB", (long long)mb);
		memset(p, ' ', len);
		known[i] = (struct doc){.name = "bomb", .type = "application/rss+xml", .body = {p, len}};
	}
	return &known[i];
}

void answer_prepare(const struct plan *p)
{
	if (p->bomb_mb > 0)
		(void)doc_coded(bomb_doc(p->bomb_mb), p->coding ? p->coding : "gzip", p->chunked);
}

static void html_page(const struct visit *v, struct fw_buf *out)
{
	fw_buf_adds(out, "<!DOCTYPE html>\n<html><head><title>A page, not a feed</title>\n");
	if (v->plan->source == FROM_HTML)
		fw_buf_addf(out, "<link rel=\"alternate\" type=\"%s\" title=\"The feed\" href=\"/doc/%zu\">\n",
			v->doc->type, (size_t)(v->doc - origin.docs.doc));
	fw_buf_adds(out, "</head><body><p>Welcome.</p></body></html>\n");
}

static void junk(struct fw_buf *out, int64_t feed)
{
	for (int64_t i = 0; i < 512; i++) {
		int64_t k[2] = {feed, i};
		uint64_t x = fw_hash64_seed(k, sizeof(k), origin.seed);

		fw_buf_add(out, &x, sizeof(x));
	}
}

/* Creates v->a->body for bodies that are not prepared: plain bytes, coded, then cut. */
static void own_body(struct visit *v, const char *coding, struct fw_buf *plain)
{
	struct answer *a = v->a;

	fw_buf_reset(&a->own);
	if (!doc_encode(fw_buf_str(plain), coding, &a->own))
		die("plan \"%s\": unknown coding %s", v->plan->text, coding);
	fw_buf_finish(plain);
	a->body = fw_buf_str(&a->own);
}

static void endless_body(struct answer *a, bool chunked)
{
	static struct fw_buf start[2], more[2];

	if (!start[0].len) {
		struct fw_buf items = FW_BUF_INIT(0);

		fw_buf_adds(&start[0], "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Endless</title>");
		fw_buf_addf(&start[1], "%zx\r\n%s\r\n", start[0].len, start[0].p);
		for (int i = 0; i < 64; i++)
			fw_buf_adds(&items,
				"<item><title>More</title><description>and more and more</description></item>\n");
		fw_buf_addstr(&more[0], fw_buf_str(&items));
		fw_buf_addf(&more[1], "%zx\r\n%s\r\n", items.len, items.p);
		fw_buf_finish(&items);
	}
	a->body = fw_buf_str(&start[chunked]);
	a->repeat = fw_buf_str(&more[chunked]);
	a->repeats = -1;
}

static void endless_bomb(struct answer *a)
{
	a->body = (struct fw_str){"\x1f\x8b\x08\0\0\0\0\0\2\xff", 10};
	a->repeat = doc_bomb_block();
	a->repeats = -1;
}

/* Fills a->body; returns the coding used ("" for none). */
static const char *body_of(struct visit *v)
{
	const struct plan *p = v->plan;
	const char *coding = p->coding ? p->coding : accepts(v->r, FW_STR("gzip")) ? "gzip" : "";
	struct fw_buf plain = FW_BUF_INIT(0);
	const struct fw_str *ready = NULL;
	bool own_frame = p->chunked && p->cut_percent;
	struct doc *d = p->bomb_mb > 0 ? bomb_doc(p->bomb_mb) : v->doc;

	if (p->endless) {
		endless_body(v->a, !p->until_close);
		return "";
	}
	if (p->bomb_mb < 0) {
		endless_bomb(v->a);
		return "gzip";
	}
	if (p->source == FROM_EMPTY)
		return "";
	if (p->source == FROM_DOC) {
		ready = doc_coded(d, coding, p->chunked && !own_frame);
		if (!ready)
			die("plan \"%s\": unknown coding %s", p->text, coding);
		v->a->body = *ready;
	} else {
		if (p->source == FROM_GROWTH)
			doc_grown(&plain, (size_t)v->r->feed, v->version, p->window);
		else if (p->source == FROM_JUNK)
			junk(&plain, v->r->feed);
		else
			html_page(v, &plain);
		own_body(v, coding, &plain);
		own_frame = p->chunked;
	}
	if (p->cut_percent)
		v->a->body.len = v->a->body.len * (size_t)p->cut_percent / 100;
	if (own_frame) {
		doc_chunk(v->a->body, &plain);
		fw_buf_reset(&v->a->own);
		fw_buf_addstr(&v->a->own, fw_buf_str(&plain));
		fw_buf_finish(&plain);
		v->a->body = fw_buf_str(&v->a->own);
	}
	return coding;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {{200, "OK"}, {204, "No Content"}, {301, "Moved Permanently"}, {302, "Found"}, {303, "See Other"},
		{304, "Not Modified"}, {307, "Temporary Redirect"}, {308, "Permanent Redirect"}, {400, "Bad Request"},
		{401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
		{410, "Gone"}, {429, "Too Many Requests"}, {500, "Internal Server Error"},
		{503, "Service Unavailable"}};

	for (size_t i = 0; i < FW_N(known); i++)
		if (known[i].status == status)
			return known[i].text;
	return "Whatever";
}

static const char *date_now(void)
{
	static char date[FW_RFC3339_MAX];
	static int64_t second = -1;
	int64_t now = fw_now_ms() / 1000;

	if (now != second) {
		fw_http_date(date, now * 1000);
		second = now;
	}
	return date;
}

static void head_start(struct visit *v, int status)
{
	struct fw_buf *h = &v->a->head;

	v->r->status = status;
	fw_buf_reset(h);
	fw_buf_addf(h, "HTTP/1.%d %d %s\r\nDate: %s\r\nServer: test-origin\r\n", !v->plan->http10, status,
		reason(status), date_now());
	if (v->plan->headers)
		fw_buf_adds(h, v->plan->headers);
	if (v->plan->cookie)
		fw_buf_addf(h, "Set-Cookie: visit=%lld; Path=/; Max-Age=86400\r\n", (long long)v->r->feed);
	if (v->plan->has_expires) {
		char date[FW_RFC3339_MAX];

		fw_buf_addf(h, "Expires: %s\r\n",
			fw_http_date(date, fw_now_ms() / 1000 * 1000 + v->plan->expires_s * 1000));
	}
	for (int64_t i = 0; i < v->plan->header_n; i++)
		fw_buf_addf(h, "X-Filler-%lld: nothing\r\n", (long long)i);
	if (v->plan->header_kb) {
		fw_buf_adds(h, "X-Long: ");
		for (int64_t i = 0; i < v->plan->header_kb * 16; i++)
			fw_buf_adds(h, "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-+");
		fw_buf_adds(h, "\r\n");
	}
}

static void head_end(struct visit *v)
{
	fw_buf_adds(&v->a->head,
		v->a->after == CLOSE    ? "Connection: close\r\n\r\n" :
			v->plan->http10 ? "Connection: keep-alive\r\n\r\n" :
					  "\r\n");
}

static void short_page(struct visit *v, int status, const char *extra)
{
	struct answer *a = v->a;

	head_start(v, status);
	fw_buf_adds(&a->head, extra);
	fw_buf_reset(&a->own);
	if (status != 204)
		fw_buf_addf(&a->own,
			"<!DOCTYPE html>\n<html><head><title>%d %s</title></head><body><h1>%s</h1></body></html>\n",
			status, reason(status), reason(status));
	a->body = fw_buf_str(&a->own);
	if (status != 204)
		fw_buf_addf(&a->head, "Content-Type: text/html\r\nContent-Length: %zu\r\n", a->body.len);
	head_end(v);
}

static void content_type(const struct visit *v)
{
	const struct plan *p = v->plan;
	bool page = p->source == FROM_HTML || p->source == FROM_BARE_HTML;
	const char *type = p->type       ? p->type :
		page                     ? "text/html" :
		p->source == FROM_GROWTH ? "application/rss+xml" :
					   v->doc->type;

	if (type[0])
		fw_buf_addf(&v->a->head, "Content-Type: %s%s%s\r\n", type, p->charset ? "; charset=" : "",
			p->charset ? p->charset : "");
}

static void content_encoding(const struct visit *v, const char *coding)
{
	struct fw_str rest = fw_str(coding);
	struct fw_buf *h = &v->a->head;

	if (v->plan->claim) {
		fw_buf_addf(h, "Content-Encoding: %s\r\n", v->plan->claim);
		return;
	}
	if (!coding[0] || fw_str_eq(rest, FW_STR("identity")))
		return;
	fw_buf_adds(h, "Content-Encoding: ");
	while (rest.p) {
		struct fw_str one = fw_str_split(rest, '+', &rest);

		fw_buf_addstr(h, fw_str_eq(one, FW_STR("raw-deflate")) ? FW_STR("deflate") : one);
		fw_buf_adds(h, rest.p ? ", " : "\r\n");
	}
}

static void full_answer(struct visit *v)
{
	struct answer *a = v->a;
	const char *coding = body_of(v);
	bool endless = a->repeats < 0, framed = endless ? v->plan->endless && !v->plan->until_close : v->plan->chunked;

	if (v->plan->until_close || (endless && !framed))
		a->after = CLOSE;
	head_start(v, v->plan->status ? v->plan->status : 200);
	content_type(v);
	if (v->etag[0])
		fw_buf_addf(&a->head, "ETag: %s\r\n", v->etag);
	if (v->lm[0])
		fw_buf_addf(&a->head, "Last-Modified: %s\r\n", v->lm);
	content_encoding(v, coding);
	fw_buf_adds(&a->head, "Vary: Accept-Encoding\r\n");
	if (framed)
		fw_buf_adds(&a->head, "Transfer-Encoding: chunked\r\n");
	else if (!endless && !v->plan->until_close)
		fw_buf_addf(&a->head, "Content-Length: %zu\r\n", a->body.len + (size_t)v->plan->missing);
	if (v->plan->missing)
		a->after = CLOSE;
	head_end(v);
}

static void redirect(struct visit *v)
{
	struct fw_str t = fw_str(v->plan->redirect);
	struct fw_buf b = FW_BUF_INIT(0), line = FW_BUF_INIT(0);
	const char *seen = memmem(v->r->target.p, v->r->target.len, "hop=", 4);
	int64_t j;

	if (fw_str_starts(t, FW_STR("feed/")) && fw_str_int(fw_str_sub(t, 5, t.len), &j) && j >= 0 &&
		(size_t)j < origin.feed_n)
		origin_url(&b, (size_t)j);
	else if (fw_str_eq(t, FW_STR("next")))
		origin_url(&b, (size_t)(v->r->feed + 1) % origin.feed_n);
	else if (fw_str_eq(t, FW_STR("loop")))
		fw_buf_addf(&b, "/feed/%lld%s", (long long)v->r->feed, seen ? "" : "?hop=1");
	else if (fw_str_eq(t, FW_STR("endless"))) {
		if (!seen ||
			!fw_str_int(
				fw_str_sub(v->r->target, (size_t)(seen - v->r->target.p) + 4, v->r->target.len), &j))
			j = 0;
		fw_buf_addf(&b, "/feed/%lld?hop=%lld", (long long)v->r->feed, (long long)j + 1);
	} else {
		fw_buf_addstr(&b, t);
	}
	fw_buf_addf(&line, "Location: %s\r\n", b.p ? b.p : "");
	short_page(v, v->plan->status, line.p);
	fw_buf_finish(&b);
	fw_buf_finish(&line);
}

static void endless_headers(struct visit *v)
{
	head_start(v, 200);
	v->a->repeat = FW_STR("X-More: abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n");
	v->a->repeats = -1;
}

/* ---- the steps of a request ------------------------------------------------------------------ */

static void text_page(struct visit *v, const char *type, struct fw_buf *body)
{
	struct answer *a = v->a;
	struct fw_buf swap = a->own;

	head_start(v, 200);
	a->own = *body;
	*body = swap;
	fw_buf_finish(body);
	a->body = fw_buf_str(&a->own);
	fw_buf_addf(&a->head, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, a->body.len);
	head_end(v);
}

static struct doc *doc_named(struct fw_str name)
{
	int64_t k;

	if (fw_str_int(name, &k))
		return k >= 0 && (size_t)k < origin.docs.n ? &origin.docs.doc[k] : NULL;
	for (size_t i = 0; i < origin.docs.n; i++)
		if (fw_str_eq(name, fw_str(origin.docs.doc[i].name)))
			return &origin.docs.doc[i];
	return NULL;
}

static const struct plan *plan_in_path(struct fw_str words)
{
	static struct fw_map known; /* plans from request paths, kept until the end */
	struct plan *p;
	char why[300];
	int rc;

	if (!known.slot)
		fw_map_init(&known, 1);
	p = fw_map_get(&known, words);
	if (!p && (p = plan_parse(words, why, sizeof(why))))
		(void)fw_map_put(&known, fw_str(p->text), p, &rc);
	return p;
}

/* Finds document and plan; false: already answered, or 404. */
static bool route(struct visit *v)
{
	struct fw_str query, path = fw_str_split(v->r->target, '?', &query), rest = fw_str_sub(path, 1, path.len), word;
	const struct plan *with = NULL;
	struct fw_buf b = FW_BUF_INIT(0);
	int64_t i;

	word = fw_str_split(rest, '/', &rest);
	if (fw_str_eq(word, FW_STR("_stats"))) {
		stats_flush();
		stats_json(&b, query.p != NULL);
		text_page(v, "application/json", &b);
		return false;
	}
	if (fw_str_eq(word, FW_STR("_urls"))) {
		for (size_t k = 0; k < origin.feed_n; k++) {
			origin_url(&b, k);
			fw_buf_addc(&b, '\n');
		}
		text_page(v, "text/plain", &b);
		return false;
	}
	if (fw_str_eq(word, FW_STR("with")) && rest.p) {
		with = plan_in_path(fw_str_split(rest, '/', &rest));
		if (!with || !rest.p)
			return short_page(v, 400, ""), false;
		word = fw_str_split(rest, '/', &rest);
	}
	if (with)
		v->plan = with;
	if (fw_str_eq(word, FW_STR("doc")) && rest.p && (v->doc = doc_named(rest)))
		return v->plain = true;
	if (!fw_str_eq(word, FW_STR("feed")) || !fw_str_int(rest, &i) || i < 0 || (size_t)i >= origin.feed_n)
		return short_page(v, 404, ""), false;
	v->r->feed = i;
	v->doc = &origin.docs.doc[(size_t)i % origin.docs.n];
	v->a->latency_ms = origin.feed[i].latency_ms;
	origin.feed[i].requests++;
	if (!with)
		v->plan = origin.feed[i].plan;
	return true;
}

/* The plan may apply to some requests only; growth and validators need the request count. */
static void settle(struct visit *v)
{
	int64_t nth = origin.feed[v->r->feed].requests;
	const struct plan *p = v->plan;

	if (!p || (p->first >= 0 && nth > p->first) || nth <= p->after)
		p = &no_plan;
	v->plan = p;
	if (p->source == FROM_GROWTH)
		v->version = p->grow_start +
			(p->grow_ms ? (fw_mono_ms() - origin.start_ms) / p->grow_ms : (nth - 1) / p->grow_requests);
	else if (p->validators == V_FRESH)
		v->version = nth;
	if (p->latency_ms >= 0)
		v->a->latency_ms = p->latency_ms;
}

static void trouble(const struct visit *v)
{
	const struct plan *p = v->plan;
	enum where w = p->reset ? p->reset : p->shut ? p->shut : p->hang;
	struct answer *a = v->a;

	a->drip_bps = p->drip_bps;
	if (!w)
		return;
	a->after = p->reset ? RESET : p->shut ? CLOSE : HANG;
	a->limit = w == BEFORE_HEADERS ? 0 : w == MID_HEADERS ? a->head.len / 2 : a->head.len + a->body.len / 2;
}

void answer(struct request *r, struct answer *a)
{
	struct visit v = {.r = r, .a = a, .plan = &no_plan};
	struct fw_str c = header_get(r->headers, FW_STR("Connection"));
	bool old = fw_str_eq(r->version, FW_STR("HTTP/1.0"));

	a->body = a->repeat = FW_STR("");
	a->repeats = 0;
	a->limit = UINT64_MAX;
	a->latency_ms = a->drip_bps = 0;
	a->after = !origin.keep_alive || old || (c.p && fw_str_ifind(c, FW_STR("close"))) ? CLOSE : KEEP;
	r->feed = -1;
	r->violation = NULL;
	if (!fw_str_eq(r->method, FW_STR("GET")) && !fw_str_eq(r->method, FW_STR("HEAD"))) {
		a->after = CLOSE;
		short_page(&v, 405, "Allow: GET, HEAD\r\n");
	} else if (route(&v)) {
		bool same;

		if (!v.plain)
			settle(&v);
		if (v.plan->close)
			a->after = CLOSE;
		validators_at(&v, v.version, v.etag, v.lm);
		same = not_modified(&v);
		if (v.plan->redirect) {
			redirect(&v);
		} else if (v.plan->status && v.plan->status != 200) {
			short_page(&v, v.plan->status, "");
		} else if (v.plan->endless_headers) {
			endless_headers(&v);
		} else if (v.plan->stale_304 && is_conditional(&v)) { /* it has no other version */
			head_start(&v, 304);
			head_end(&v);
		} else if (v.plan->always_304 || (same && !v.plan->ignore_validators)) {
			head_start(&v, 304);
			if (v.etag[0])
				fw_buf_addf(&a->head, "ETag: %s\r\n", v.etag);
			if (v.lm[0])
				fw_buf_addf(&a->head, "Last-Modified: %s\r\n", v.lm);
			head_end(&v);
		} else {
			full_answer(&v);
		}
		trouble(&v);
	}
	if (fw_str_eq(r->method, FW_STR("HEAD")))
		a->limit = FW_MIN(a->limit, a->head.len);
}
