/* SPDX-License-Identifier: ISC */
/*
 * A visit from its start to its end: prepare the URL, look the name up, ask, judge the answer, perhaps go where it points, and at
 * the end decode and hand over. The states of a visit in flight:
 *
 *	late        it failed before it began; the loop tells (done is never called from within start)
 *	waiting     wait.entry is set: for the addresses of its host
 *	in line     seat waits: for a place at its address (crowd.c). It holds no socket and no handle of libcurl's. Whose turn it is hears of it
 *	            from the loop, not from within the end of another
 *	in_multi    libcurl has it
 *
 * Everything that ends a visit goes through visit_end(), once.
 */
#include <errno.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <signal.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <ares.h>
#include <brotli/decode.h>
#include <idn2.h>
#include <libdeflate.h>

#include "base/cidr.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/url.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

#define TICK_MS 100
#define IN_THE_WAY_US 2000000
#define BUFFERED_BYTES (32 << 20)
#define KEEP_BYTES (4 * 1024)  /* of a buffer that waits for its next use: there are many, and few are in use at once */

static void on_late(uv_idle_t *h);

static const char ACCEPT[] = "Accept: application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
	"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1";
static const char ACCEPT_ENCODING[] = "Accept-Encoding: gzip, deflate, br, zstd";

void fw_fetch_config_default(struct fw_fetch_config *c)
{
	*c = (struct fw_fetch_config){
		.user_agent = "feedwheel/" FW_VERSION,
		.max_in_flight = 100,
		.max_redirects = 5,
		.connect_timeout_ms = 10 * FW_SECOND_MS,
		.first_byte_timeout_ms = 15 * FW_SECOND_MS,
		.total_timeout_ms = 60 * FW_SECOND_MS,
		.low_speed_bytes = 100,
		.low_speed_ms = 20 * FW_SECOND_MS,
		.max_body_bytes = 16 << 20,
		.max_ratio = 200,
		.max_buffered_bytes = BUFFERED_BYTES,
		.max_header_bytes = 100 * 1024,
		.max_header_n = 200,
		.http2 = true,
	};
}

/* ---- the end of a visit ----------------------------------------------------------------------------------------------------- */

static int code_of(enum fw_visit_kind kind)
{
	switch (kind) {
	case FW_VISIT_OK:
	case FW_VISIT_NOT_MODIFIED:
		return 0;
	case FW_VISIT_GONE:
		return FW_EGONE;
	case FW_VISIT_LIMIT:
		return FW_ELIMIT;
	case FW_VISIT_BLOCKED:
		return FW_EBLOCKED;
	case FW_VISIT_LOCAL:
		return FW_EIO;
	default:
		return FW_ENET;
	}
}

/* The first verdict stands. */
FW_PRINTF(3, 4) static void verdict(struct fw_fetch *f, enum fw_visit_kind kind, const char *fmt, ...)
{
	va_list ap;
	struct fw_buf b = FW_BUF_INIT(0);

	if (f->kind != FW_VISIT_NONE)
		return;
	f->kind = kind;
	va_start(ap, fmt);
	fw_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fw_err_set(&f->err, code_of(kind), "%s", b.p ? b.p : "out of memory");
	fw_buf_finish(&b);
}

static void out_of_memory(struct fw_fetch *f)
{
	verdict(f, FW_VISIT_LOCAL, "out of memory");
	f->err.rc = FW_ENOMEM;
}

static struct fw_str keep(char **at, struct fw_str s)
{
	char *d = *at;

	if (!s.p)
		return s;
	if (s.len)
		memcpy(d, s.p, s.len);
	d[s.len] = '\0';
	*at += s.len + 1;
	return (struct fw_str){d, s.len};
}

/* Copy what the answer's strings point to into memory that lives as long as the fetch. */
static void keep_strings(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	bool good = f->kind == FW_VISIT_OK || f->kind == FW_VISIT_NOT_MODIFIED;
	struct fw_str final = fw_buf_str(&v->url[v->n]);
	struct fw_str permanent = good && v->permanent_n ? fw_buf_str(&v->url[v->permanent_n]) : FW_STR_NONE;
	struct fw_str *slot[FW_H_LOCATION] = {&f->h_etag, &f->h_last_modified, &f->h_content_type, &f->h_cache_control, &f->h_expires,
		&f->h_date, &f->h_age, &f->h_retry_after, &f->h_link, &f->h_content_location};
	size_t n = final.len + permanent.len + 2;
	char *at;

	for (int i = 0; i < FW_H_LOCATION; i++)
		n += fw_reply_header(&v->reply, (enum fw_header)i).len + 1;
	f->text = at = malloc(n);
	if (!at) {
		f->kind = FW_VISIT_NONE;
		out_of_memory(f);
		return;
	}
	f->final_url = keep(&at, final);
	f->permanent_url = keep(&at, permanent);
	for (int i = 0; i < FW_H_LOCATION; i++)
		*slot[i] = keep(&at, fw_reply_header(&v->reply, (enum fw_header)i));
}

/* What an answer says that is no document, as far as it can be read: a help, and nothing hangs on it. */
static void decode_words(struct fw_fetch_priv *v)
{
	struct fw_decode_limits limits = {FW_WORDS_MAX, v->fr->c.max_ratio};
	struct fw_err err = {0};

	if (v->f->keep_words && fw_decode(v->fr->decoder, fw_reply_header(&v->reply, FW_H_CONTENT_ENCODING), &v->reply.body, &v->f->body, &limits, &err))
		fw_buf_reset(&v->f->body);
}

static void decode(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_decode_limits limits = {v->fr->c.max_body_bytes, v->fr->c.max_ratio};
	struct fw_err err = {0};
	int rc;

	if (f->kind == FW_VISIT_LIMIT || f->kind == FW_VISIT_LOCAL)
		return;
	if (f->http_status / 100 != 2) {
		decode_words(v);
		return;
	}
	rc = fw_decode(v->fr->decoder, fw_reply_header(&v->reply, FW_H_CONTENT_ENCODING), &v->reply.body, &f->body, &limits, &err);
	if (rc == FW_ELIMIT) {
		f->kind = FW_VISIT_NONE; /* whatever cut it: it was too much before */
		verdict(f, FW_VISIT_LIMIT, "%s", err.text);
	} else if (rc == FW_ENOMEM) {
		out_of_memory(f);
	} else if (rc) {
		verdict(f, FW_VISIT_PROTOCOL, "%s", err.text);
	}
	f->body_partial = f->kind != FW_VISIT_NONE && f->body.len > 0;
}

/* Out of the list it is in: flying or landed. */
static void list_out(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	*(v->prev ? &v->prev->next : v->landed ? &fr->landed : &fr->flying) = v->next;
	if (v->next)
		v->next->prev = v->prev;
	else if (v->landed)
		fr->landed_last = v->prev;
	v->prev = v->next = NULL;
}

/* What has ended waits, coded as it came, until its reader has room. */
static void land(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	list_out(v);
	v->landed = true;
	v->prev = fr->landed_last;
	*(v->prev ? &v->prev->next : &fr->landed) = v;
	fr->landed_last = v;
}

/* What a buffer that waits for its next use may keep. */
static void shrink(struct fw_buf *b)
{
	if (b->cap > KEEP_BYTES)
		fw_buf_finish(b);
}

static void fly_out(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	list_out(v);
	v->landed = false;
	fr->flying_n--;
	shrink(&v->addrs);
	shrink(&v->reply.body);
	shrink(&v->reply.text);
	for (size_t i = 0; i < FW_N(v->url); i++)
		shrink(&v->url[i]);
	v->f = NULL;
	v->next = fr->idle;
	fr->idle = v;
	fr->idle_n++;
	if (fr->flying_n == 0)
		uv_timer_stop(&fr->tick);
}

/* Its turn has come, or it gives up. What it waited is no part of the visit: it says nothing of the server. */
static void line_over(struct fw_fetch_priv *v)
{
	int64_t waited_us = v->seat_us ? fw_mono_us() - v->seat_us : 0;

	v->seat_us = 0;
	v->start_us += waited_us;
	v->f->visit.queue_us += waited_us;
	v->f->visit.at_ms += waited_us / 1000;
}

/* Tell those whose turn it is, when the loop comes round. */
static void call_soon(struct fw_fetcher *fr)
{
	if (fw_crowd_calls(fr->crowd))
		uv_idle_start(&fr->late, on_late);
}

static void leave(struct fw_fetch_priv *v)
{
	if (!v->fr->crowd)
		return;
	line_over(v);
	fw_crowd_leave(v->fr->crowd, &v->seat);
	call_soon(v->fr);
}

static void visit_end(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_visit *visit = &f->visit;

	if (!v->landed) {
		fw_resolve_cancel(&v->wait);
		fw_transfer_stop(v);
		leave(v);
		visit->total_us = fw_mono_us() - v->start_us;
		if (v->fr->held && v->reply.body.len && f->kind != FW_VISIT_LOCAL) {
			land(v);
			return;
		}
	}
	f->http_status = v->reply.headers_done ? v->reply.status : 0;
	decode(v);
	if (f->kind == FW_VISIT_NONE)
		f->kind = FW_VISIT_OK;
	keep_strings(v);
	f->hops = v->n;
	visit->hops = v->n;
	visit->kind = f->kind;
	visit->http_status = f->http_status;
	visit->wire_bytes = v->wire_bytes;
	visit->body_bytes = f->body.len;
	visit->error = f->err.rc ? fw_str(f->err.text) : FW_STR_NONE;
	f->priv = NULL;
	fly_out(v);
	f->done(f);
}

/* ---- judging a request that ended -------------------------------------------------------------------------------------------- */

static bool our_errno(long e)
{
	return e == EMFILE || e == ENFILE || e == ENOMEM || e == ENOBUFS || e == EADDRNOTAVAIL;
}

static void judge_tls(struct fw_fetch_priv *v, CURLcode rc)
{
	long verify = 0;

	curl_easy_getinfo(v->easy, CURLINFO_SSL_VERIFYRESULT, &verify);
	if (verify != X509_V_OK && verify != X509_V_ERR_UNSPECIFIED)
		verdict(v->f, FW_VISIT_TLS, "the server's certificate is not good: %s", X509_verify_cert_error_string(verify));
	else if (rc == CURLE_PEER_FAILED_VERIFICATION) /* libcurl's own check of the name */
		verdict(v->f, FW_VISIT_TLS, "the server's certificate is for another host name");
	else
		verdict(v->f, FW_VISIT_TLS, "TLS did not come about: %s", curl_easy_strerror(rc));
}

static void verdict_busy(struct fw_fetch_priv *v)
{
	verdict(v->f, FW_VISIT_LOCAL, "its address was busy for %lld ms, which left too little of total_timeout (raise address_max)",
		(long long)(v->f->visit.queue_us / 1000));
}

static void judge_timeout(struct fw_fetch_priv *v)
{
	const struct fw_fetch_config *c = &v->fr->c;
	int64_t now_us = fw_mono_us();
	bool early = now_us < v->deadline_us; /* by our clock: libcurl's may be a moment ahead */

	if (v->paused)
		verdict(v->f, FW_VISIT_LOCAL, "it had to wait too long for others with large bodies (lower concurrency)");
	else if (early && !v->ready_us)
		verdict(v->f, FW_VISIT_TIMEOUT, "no connection within %lld ms (connect_timeout)", (long long)c->connect_timeout_ms);
	else if (early && c->low_speed_bytes && now_us - v->ready_us >= c->low_speed_ms * 1000)
		verdict(v->f, FW_VISIT_TIMEOUT, "less than %lld bytes/s over %lld ms (low_speed)", (long long)c->low_speed_bytes,
			(long long)c->low_speed_ms);
	else if (v->f->visit.queue_us)
		verdict_busy(v);
	else
		verdict(v->f, FW_VISIT_TIMEOUT, "not finished within %lld ms (total_timeout)", (long long)c->total_timeout_ms);
}

static void judge_connect(struct fw_fetch_priv *v)
{
	long e = 0;

	curl_easy_getinfo(v->easy, CURLINFO_OS_ERRNO, &e);
	if (v->socket_errno)
		e = v->socket_errno;
	if (v->refused)
		verdict(v->f, FW_VISIT_BLOCKED, "its address is not to be connected to: %s (allow_networks can allow it)", v->refused);
	else if (our_errno(e))
		verdict(v->f, FW_VISIT_LOCAL, "no socket: %s (raise the limit of open files, or lower concurrency)", strerror((int)e));
	else
		verdict(v->f, FW_VISIT_CONNECT, "no connection to the server: %s", e ? strerror((int)e) : "refused");
}

/* Why did the transfer break? The words are ours: none of libcurl's that could hold bytes of the answer. */
static void judge_failure(struct fw_fetch_priv *v, CURLcode rc)
{
	switch (rc) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_ABORTED_BY_CALLBACK:
		judge_connect(v);
		break;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		verdict(v->f, FW_VISIT_DNS, "the host name has no address");
		break;
	case CURLE_OPERATION_TIMEDOUT:
		judge_timeout(v);
		break;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		judge_tls(v, rc);
		break;
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_INITFAILED:
		verdict(v->f, FW_VISIT_LOCAL, "the trust store cannot be read: see ca_file, or install ca-certificates");
		break;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		/* libcurl says the same of a header line past its own 100 kB; once an answer has begun, that is it */
		if (v->reply.header_bytes)
			verdict(v->f, FW_VISIT_LIMIT, "a header line is longer than 100 kB");
		else
			out_of_memory(v->f);
		break;
	case CURLE_PARTIAL_FILE:
		verdict(v->f, FW_VISIT_PROTOCOL, "the answer was cut short");
		break;
	case CURLE_GOT_NOTHING:
		verdict(v->f, FW_VISIT_PROTOCOL, "the server closed the connection without an answer");
		break;
	default:
		verdict(v->f, FW_VISIT_PROTOCOL, "the answer broke off or is not HTTP: %s", curl_easy_strerror(rc));
	}
}

static void judge_status(struct fw_fetch_priv *v)
{
	int status = v->reply.status;

	if (status / 100 == 2)
		return;
	if (status == 304 && v->sent_validators)
		v->f->kind = FW_VISIT_NOT_MODIFIED;
	else if (status == 304)
		verdict(v->f, FW_VISIT_PROTOCOL, "the server says 304 (not modified) although nothing was known of the document");
	else if (status == 410)
		verdict(v->f, FW_VISIT_GONE, "the server says 410: gone for good");
	else if (status < 300 || status > 999)
		verdict(v->f, FW_VISIT_PROTOCOL, "the answer has no status that HTTP knows");
	else
		verdict(v->f, FW_VISIT_HTTP, "the server says %d", status);
}

/* ---- hops ----------------------------------------------------------------------------------------------------------------------- */

static int transfer(struct fw_fetch_priv *v, const char *addrs)
{
	if (!fw_transfer_start(v, addrs))
		return 0;
	out_of_memory(v->f);
	return FW_ENOMEM;
}

/* Take a place at the address that will be tried first. One that cannot be read is none, and not connected to either. */
static int seat_take(struct fw_fetch_priv *v, const char *addrs)
{
	struct fw_str rest, first = fw_str_split(fw_str(addrs ? addrs : v->hop.host), ',', &rest);
	unsigned char address[16];
	int rc;

	if (first.len && first.p[0] == '[')
		first = fw_str_sub(first, 1, first.len - 1);
	if (!fw_ip_parse(first, address))
		return 0;
	rc = fw_crowd_enter(v->fr->crowd, address, &v->seat);
	call_soon(v->fr);
	if (rc || !fw_crowd_waits(&v->seat))
		return rc;
	v->seat_us = fw_mono_us();
	fw_buf_reset(&v->addrs);
	if (addrs)
		fw_buf_adds(&v->addrs, addrs);
	return v->addrs.rc;
}

static int ask(struct fw_fetch_priv *v, const char *addrs)
{
	v->dns_us = addrs ? fw_mono_us() : 0;
	v->f->visit.dns_us = addrs ? FW_MAX(v->dns_us - v->start_us, 1) : 0;
	if (v->fr->crowd && seat_take(v, addrs)) {
		leave(v);
		out_of_memory(v->f);
		return FW_ENOMEM;
	}
	return fw_crowd_waits(&v->seat) ? 0 : transfer(v, addrs);
}

/* Those whose turn it is. */
static void seats_call(struct fw_fetcher *fr)
{
	struct fw_crowd_seat *s;

	while (fr->crowd && (s = fw_crowd_next(fr->crowd)) != NULL) {
		struct fw_fetch_priv *v = (struct fw_fetch_priv *)(void *)((char *)s - offsetof(struct fw_fetch_priv, seat));

		line_over(v);
		if (transfer(v, v->addrs.len ? v->addrs.p : NULL))
			visit_end(v);
	}
}

static void judge_name(struct fw_fetch_priv *v, enum fw_resolve_state state)
{
	switch (state) {
	case FW_RESOLVE_NONE:
		verdict(v->f, FW_VISIT_DNS, "the host name does not exist or has no address");
		break;
	case FW_RESOLVE_TIMEOUT:
		verdict(v->f, FW_VISIT_DNS, "the name servers do not answer");
		break;
	case FW_RESOLVE_LOCAL:
		verdict(v->f, FW_VISIT_LOCAL, "the host name could not be looked up: out of memory or files");
		break;
	default:
		verdict(v->f, FW_VISIT_DNS, "the name servers fail to answer for the host name");
	}
}

static void on_name(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs)
{
	struct fw_fetch_priv *v = (struct fw_fetch_priv *)(void *)((char *)w - offsetof(struct fw_fetch_priv, wait));

	if (state != FW_RESOLVE_OK)
		judge_name(v, state);
	if (state != FW_RESOLVE_OK || ask(v, addrs))
		visit_end(v);
}

static void judge_url(struct fw_fetch_priv *v, const struct fw_err *err)
{
	enum fw_visit_kind kind = FW_VISIT_PROTOCOL;

	if (err->rc == FW_ENOMEM)
		kind = FW_VISIT_LOCAL;
	else if (v->n > 0)
		kind = FW_VISIT_REDIRECT;
	else if (err->rc == FW_EBLOCKED)
		kind = FW_VISIT_BLOCKED;
	else if (err->rc == FW_ELIMIT)
		kind = FW_VISIT_LIMIT;
	verdict(v->f, kind, v->n > 0 ? "redirected astray: %s" : "%s", err->text);
	if (err->rc == FW_EINVAL && v->n == 0)
		v->f->err.rc = FW_EINVAL;
}

/* Behind a proxy no socket of ours tells where the request goes: judge what the URL itself says. */
static bool proxy_refuses(struct fw_fetch_priv *v)
{
	const struct fw_hop *h = &v->hop;
	char port[8];
	struct addrinfo hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *ai = NULL;
	const char *why = NULL;

	if (!h->literal)
		return !fw_guard_port_ok(h->port);
	fw_snprintf(port, sizeof(port), "%d", h->port);
	if (getaddrinfo(h->host, port, &hint, &ai) == 0)
		why = fw_guard_refuses(v->fr->c.guard, ai->ai_addr);
	if (ai)
		freeaddrinfo(ai);
	return why != NULL;
}

/* Ask url[n]. FW_E*: it failed, the verdict is spoken, and the visit is to be ended. */
static int hop_begin(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_err err = {0};
	enum fw_resolve_state state;
	const struct fw_hop *to = &v->hop;
	const char *addrs = NULL;
	int rc;

	fw_reply_reset(&v->reply);
	v->hop_us = fw_mono_us();
	rc = fw_hop_prepare(&v->hop, fw_buf_str(&v->url[v->n]), &err);
	if (rc) {
		judge_url(v, &err);
		return rc;
	}
	if (v->n == 0) {
		v->first = v->hop;
		v->first.wire = FW_BUF_INIT(0);
	}
	if (v->fr->c.proxy) {
		if (proxy_refuses(v)) {
			verdict(f, FW_VISIT_BLOCKED, "its address or port is not to be connected to (allow_networks can allow it)");
			return FW_EBLOCKED;
		}
		to = &v->fr->proxy;
	}
	if (to->literal)
		return ask(v, NULL);
	state = fw_resolve(v->fr->resolver, to->host, &v->wait, &addrs);
	if (state == FW_RESOLVE_WAIT)
		return 0;
	if (state == FW_RESOLVE_OK)
		return ask(v, addrs);
	judge_name(v, state);
	return FW_ENET;
}

/* Where the answer points to becomes url[n + 1]. True: the hop is on its way; false: the visit is to be ended. */
static bool redirect(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_str location = fw_reply_header(&v->reply, FW_H_LOCATION);
	bool was_https = v->hop.https;
	struct fw_buf *to;
	int rc;

	if (!location.p)
		return false;
	if (v->n >= v->fr->c.max_redirects) {
		verdict(f, FW_VISIT_REDIRECT, "more than %u redirects", v->fr->c.max_redirects);
		return false;
	}
	to = &v->url[v->n + 1];
	fw_buf_reset(to);
	rc = fw_hop_target(fw_buf_str(&v->url[v->n]), location, to);
	if (rc) {
		if (rc == FW_ENOMEM)
			out_of_memory(f);
		verdict(f, FW_VISIT_REDIRECT, "redirected to something that is no URL");
		return false;
	}
	for (uint32_t i = 0; i <= v->n; i++) {
		if (fw_str_eq(fw_buf_str(&v->url[i]), fw_buf_str(to))) {
			verdict(f, FW_VISIT_REDIRECT, "redirected in a circle");
			return false;
		}
	}
	v->n++;
	v->chain = v->chain && fw_redirect_permanent(v->reply.status);
	if (v->chain)
		v->permanent_n = v->n;
	if ((f->username.p || f->form.p) && was_https && fw_str_istarts(fw_buf_str(to), FW_STR("http:"))) {
		verdict(f, FW_VISIT_REDIRECT, "redirected from https to http, and %s", f->form.p ? "what it is told may be secret" :
			"the feed has a password");
		return false;
	}
	return hop_begin(v) == 0;
}

void fw_visit_answered(struct fw_fetch_priv *v, CURLcode rc)
{
	struct fw_reply *r = &v->reply;
	bool told = r->headers_done && r->status / 100 != 2; /* all that counts has come, however the rest ended */

	if (r->limit == FW_ENOMEM)
		out_of_memory(v->f);
	else if (r->limit)
		verdict(v->f, FW_VISIT_LIMIT, "%s", r->limit_words);
	else if (rc != CURLE_OK && !told)
		judge_failure(v, rc);
	fw_transfer_stop(v);
	if (v->f->kind == FW_VISIT_NONE && (v->f->form.p ? fw_redirect_repeats(r->status) : fw_redirect_status(r->status)) && redirect(v))
		return;
	if (v->f->kind == FW_VISIT_NONE)
		judge_status(v);
	visit_end(v);
}

/* ---- the clock -------------------------------------------------------------------------------------------------------------------- */

/*
 * Others wait for room and this one holds much of it, or is the one they let go ahead, and hardly comes on: a few servers that send
 * much and then drip would else stop all the others (LIM-06).
 */
static bool in_the_way(const struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetcher *fr = v->fr;

	if (!fr->paused_n || v->paused || !v->held || now_us - v->mark_us < IN_THE_WAY_US)
		return false;
	return v == fr->ahead || v->held >= fr->c.max_buffered_bytes / 32;
}

/* Who waits is still to have at least half of total_timeout for itself. */
static bool line_too_long(struct fw_fetch_priv *v, int64_t now_us)
{
	int64_t waited_us = v->f->visit.queue_us + now_us - v->seat_us;

	if (waited_us < v->fr->c.total_timeout_ms * 1000 / 2 && now_us < v->deadline_us)
		return false;
	line_over(v);
	verdict_busy(v);
	return true;
}

/* Limits that libcurl does not watch. True: the visit has had its time, the verdict is spoken. */
static bool overdue(struct fw_fetch_priv *v, int64_t now_us)
{
	const struct fw_fetch_config *c = &v->fr->c;

	if (v->late)
		return false;
	if (fw_crowd_waits(&v->seat))
		return line_too_long(v, now_us);
	if (!v->in_multi) {
		if (now_us - v->hop_us < c->connect_timeout_ms * 1000 && now_us < v->deadline_us)
			return false;
		if (v->f->visit.queue_us && now_us - v->hop_us < c->connect_timeout_ms * 1000)
			verdict_busy(v);
		else
			verdict(v->f, FW_VISIT_DNS, "the host name was not looked up within %lld ms (connect_timeout)",
				(long long)c->connect_timeout_ms);
		return true;
	}
	if (in_the_way(v, now_us)) {
		verdict(v->f, FW_VISIT_TIMEOUT, "less than %zu KiB in %d s while others waited for room", FW_STRIDE >> 10,
			IN_THE_WAY_US / 1000000);
		return true;
	}
	if (!v->ready_us || v->reply.header_bytes || now_us - v->ready_us < c->first_byte_timeout_ms * 1000)
		return false;
	verdict(v->f, FW_VISIT_TIMEOUT, "no answer within %lld ms of the connection (first_byte_timeout)",
		(long long)c->first_byte_timeout_ms);
	return true;
}

static void on_tick(uv_timer_t *t)
{
	struct fw_fetcher *fr = t->data;
	int64_t now_us = fw_mono_us();
	struct fw_fetch_priv *v = fr->flying;

	while (v) {
		if (overdue(v, now_us)) {
			visit_end(v);
			v = fr->flying; /* done() may have changed the list */
		} else {
			v = v->next;
		}
	}
}

static void fetcher_close(struct fw_fetcher *fr);

/* What must not happen where it was asked for. */
static void on_late(uv_idle_t *h)
{
	struct fw_fetcher *fr = h->data;
	struct fw_fetch_priv *v;

	uv_idle_stop(h);
	if (fr->closing) {
		fetcher_close(fr);
		return;
	}
	if (fr->resume) {
		fr->resume = false;
		fw_transfer_resume(fr);
	}
	seats_call(fr);
	v = fr->flying;
	while (v) {
		if (v->late) {
			v->late = false;
			visit_end(v);
			v = fr->flying;
		} else {
			v = v->next;
		}
	}
}

void fw_resume_soon(struct fw_fetcher *fr)
{
	fr->resume = true;
	uv_idle_start(&fr->late, on_late);
}

void fw_fetcher_buffered(const struct fw_fetcher *fr, size_t *now, size_t *peak)
{
	*now = fr->buffered;
	*peak = fr->buffered_peak;
}

/* ---- what callers call -------------------------------------------------------------------------------------------------------------- */

static struct fw_fetch_priv *take_slot(struct fw_fetcher *fr)
{
	struct fw_fetch_priv *v = fr->idle;

	if (v) {
		fr->idle = v->next;
		fr->idle_n--;
	} else {
		v = calloc(1, sizeof(*v));
		if (!v)
			return NULL;
		v->fr = fr;
		v->wait.cb = on_name;
	}
	return v;
}

int fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *err)
{
	struct fw_fetch_priv *v = take_slot(fr);

	if (!v)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_buf_reset(&v->url[0]);
	fw_buf_addstr(&v->url[0], f->url);
	if (v->url[0].rc || !fw_buf_room(&v->url[0], 1)) {
		v->next = fr->idle;
		fr->idle = v;
		fr->idle_n++;
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	v->f = f;
	v->n = v->permanent_n = 0;
	v->chain = true;
	v->wire_bytes = 0;
	v->start_us = fw_mono_us();
	v->deadline_us = v->start_us + fr->c.total_timeout_ms * 1000;
	f->priv = v;
	f->kind = FW_VISIT_NONE;
	f->visit.at_ms = fw_now_ms();
	f->visit.slot = -1;
	v->prev = NULL;
	v->next = fr->flying;
	if (fr->flying)
		fr->flying->prev = v;
	fr->flying = v;
	if (fr->flying_n++ == 0)
		uv_timer_start(&fr->tick, on_tick, TICK_MS, TICK_MS);
	v->late = hop_begin(v) != 0;
	if (v->late)
		uv_idle_start(&fr->late, on_late);
	return 0;
}

void fw_fetch_cancel(struct fw_fetch *f)
{
	struct fw_fetch_priv *v = f->priv;

	if (!v)
		return;
	v->late = false;
	f->kind = FW_VISIT_NONE;
	verdict(f, FW_VISIT_LOCAL, "the fetch was cancelled");
	visit_end(v);
}

bool fw_fetch_is_silent(const struct fw_fetch *f)
{
	const struct fw_fetch_priv *v = f->priv;

	return v && !v->late && !fw_crowd_waits(&v->seat) && f->kind == FW_VISIT_NONE && !v->reply.header_bytes;
}

bool fw_fetch_give_up(struct fw_fetch *f)
{
	if (!fw_fetch_is_silent(f))
		return false;
	verdict(f, FW_VISIT_TIMEOUT, "silent for %lld ms, longer than ever (patience): asked again with full patience",
		(long long)((fw_mono_us() - f->priv->start_us) / 1000));
	visit_end(f->priv);
	return true;
}

void fw_fetch_reset(struct fw_fetch *f)
{
	struct fw_buf body = f->body;

	free(f->text);
	shrink(&body);
	fw_buf_reset(&body);
	*f = (struct fw_fetch){.body = body};
}

void fw_fetch_finish(struct fw_fetch *f)
{
	fw_fetch_reset(f);
	fw_buf_finish(&f->body);
}

void fw_fetcher_hold(struct fw_fetcher *fr, bool on)
{
	fr->held = on;
	while (!fr->held && fr->landed) /* done() may hold again */
		visit_end(fr->landed);
}

uint32_t fw_fetcher_in_flight(const struct fw_fetcher *fr)
{
	return fr->flying_n;
}

/* ---- the fetcher ----------------------------------------------------------------------------------------------------------------------- */

static void slots_free(struct fw_fetcher *fr)
{
	while (fr->idle) {
		struct fw_fetch_priv *v = fr->idle;

		fr->idle = v->next;
		fw_transfer_free(v);
		for (size_t i = 0; i < FW_N(v->url); i++)
			fw_buf_finish(&v->url[i]);
		fw_buf_finish(&v->addrs);
		fw_buf_finish(&v->hop.wire);
		free(v);
	}
}

static void fetcher_free(struct fw_fetcher *fr)
{
	fw_decoder_destroy(fr->decoder);
	fw_sessions_destroy(fr->sessions);
	fw_crowd_destroy(fr->crowd);
	free((char *)(uintptr_t)fr->c.user_agent);
	free((char *)(uintptr_t)fr->c.ca_file);
	free((char *)(uintptr_t)fr->c.proxy);
	free(fr->fixed[0].data);
	free(fr->fixed[1].data);
	fw_buf_finish(&fr->proxy.wire);
	free(fr);
}

void fw_handle_closed(struct fw_fetcher *fr)
{
	if (--fr->handle_n == 0 && fr->closing)
		fetcher_free(fr);
}

static void handle_closed(uv_handle_t *h)
{
	fw_handle_closed(h->data);
}

static void resolver_closed(void *ctx)
{
	fw_handle_closed(ctx);
}

static void fetcher_close(struct fw_fetcher *fr)
{
	slots_free(fr);
	fw_transfer_close(fr);
	uv_close((uv_handle_t *)&fr->curl_timer, handle_closed);
	uv_close((uv_handle_t *)&fr->tick, handle_closed);
	uv_close((uv_handle_t *)&fr->late, handle_closed);
	fw_resolver_destroy(fr->resolver, resolver_closed, fr);
}

/* The last done() may have called us, from deep within libcurl's or c-ares' work: close when the loop is back. */
void fw_fetcher_destroy(struct fw_fetcher *fr)
{
	if (!fr || fr->closing)
		return;
	fr->closing = true;
	uv_idle_start(&fr->late, on_late);
}

static char *copy(const char *s, bool *failed)
{
	char *d = s ? fw_str_dup(fw_str(s)) : NULL;

	*failed = *failed || (s && !d);
	return d;
}

/* libcurl answers a broken TLS connection with SIGPIPE unless it is told to guard each call: ignoring it once is cheaper. */
static void ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

static int proxy_prepare(struct fw_fetcher *fr, struct fw_err *err)
{
	struct fw_err why = {0};
	int rc;

	if (!fr->c.proxy)
		return 0;
	rc = fw_hop_prepare(&fr->proxy, fw_str(fr->c.proxy), &why);
	if (rc)
		return fw_err_set(err, FW_EINVAL, "proxy: %s: write http://host:port", why.text);
	return 0;
}

int fw_fetcher_create(uv_loop_t *loop, const struct fw_fetch_config *c, struct fw_fetcher **out, struct fw_err *err)
{
	struct fw_fetcher *fr = calloc(1, sizeof(*fr));
	bool failed = false;
	int rc;

	*out = NULL;
	if (!fr)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fr->loop = loop;
	fr->c = *c;
	fr->c.user_agent = copy(c->user_agent ? c->user_agent : "feedwheel/" FW_VERSION, &failed);
	fr->c.ca_file = copy(c->ca_file && *c->ca_file ? c->ca_file : curl_version_info(CURLVERSION_NOW)->cainfo, &failed);
	fr->c.proxy = copy(c->proxy && *c->proxy ? c->proxy : NULL, &failed);
	fr->c.guard = c->guard ? c->guard : &fr->no_guard;
	fr->c.max_buffered_bytes = c->max_buffered_bytes ? c->max_buffered_bytes : BUFFERED_BYTES;
	fr->c.max_redirects = FW_MIN(c->max_redirects, (uint32_t)FW_HOPS_MAX);
	fr->fixed[0] = (struct curl_slist){copy(ACCEPT, &failed), &fr->fixed[1]};
	fr->fixed[1] = (struct curl_slist){copy(ACCEPT_ENCODING, &failed), NULL};
	ignore_sigpipe();
	rc = failed ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
	if (!rc && !fw_header_value_ok(fw_str(fr->c.user_agent)))
		rc = fw_err_set(err, FW_EINVAL, "user_agent: it is empty or holds control characters");
	if (!rc)
		rc = proxy_prepare(fr, err);
	if (!rc && (fw_decoder_create(&fr->decoder) || fw_sessions_create(&fr->sessions)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc && c->address_max && !fr->c.proxy && fw_crowd_create(c->address_max, &fr->crowd))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = fw_transfer_open(fr, err);
	if (!rc)
		rc = fw_resolver_create(loop, c->dns_servers, NULL, &fr->resolver, err);
	if (rc) {
		fw_transfer_close(fr);
		fetcher_free(fr);
		return rc;
	}
	/* nothing can fail from here on: the loop has handles only of fetchers that exist */
	uv_timer_init(loop, &fr->curl_timer);
	uv_timer_init(loop, &fr->tick);
	uv_idle_init(loop, &fr->late);
	fr->curl_timer.data = fr->tick.data = fr->late.data = fr;
	fr->handle_n = 4; /* these and the resolver's */
	*out = fr;
	return 0;
}

/* ---- for doctor -------------------------------------------------------------------------------------------------------------------------- */

void fw_fetch_versions(struct fw_buf *out)
{
	uint32_t br = BrotliDecoderVersion();

	fw_buf_addf(out, "%s, c-ares %s, libuv %s, libdeflate %s, zlib %s, brotli %u.%u.%u, zstd %s, libidn2 %s\n", curl_version(),
		ares_version(NULL), uv_version_string(), LIBDEFLATE_VERSION_STRING, zlibVersion(), br >> 24, br >> 12 & 0xfff, br & 0xfff,
		ZSTD_versionString(), idn2_check_version(NULL));
}

int fw_fetch_check_tls(const struct fw_fetch_config *c, size_t *n, const char **path, struct fw_err *err)
{
	X509_STORE *store = X509_STORE_new();
	int rc = 0;

	*n = 0;
	*path = c->ca_file && *c->ca_file ? c->ca_file : curl_version_info(CURLVERSION_NOW)->cainfo;
	if (!store)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!*path)
		rc = fw_err_set(err, FW_EIO, "libcurl names no bundle of certificates: set ca_file");
	else if (!X509_STORE_load_file(store, *path))
		rc = fw_err_set(err, FW_EIO, "'%s' holds no certificates that can be read: install ca-certificates, or set ca_file", *path);
	else
		*n = (size_t)sk_X509_OBJECT_num(X509_STORE_get0_objects(store));
	X509_STORE_free(store);
	return rc;
}
