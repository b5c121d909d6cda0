/* SPDX-License-Identifier: ISC */
/*
 * Completion: every visit ends in fw_visit_end(), once. While the fetcher is held, a visit that has
 * ended is queued (landed), its body coded as transferred, until the reader has room.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"

#include "base/banned.h" /* last */

/* capacity that an idle buffer keeps: idle buffers are many, used ones few */
#define KEEP_BYTES (4 * 1024)

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

/* Copy the response's strings into memory that lives as long as the fetch. */
static void keep_strings(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	bool good = f->kind == FW_VISIT_OK || f->kind == FW_VISIT_NOT_MODIFIED;
	struct fw_str final = fw_buf_str(&v->url[v->n]);
	struct fw_str permanent = good && v->permanent_n ? fw_buf_str(&v->url[v->permanent_n]) : FW_STR_NONE;
	struct fw_str coding = f->coded ? fw_reply_header(&v->reply, FW_H_CONTENT_ENCODING) : FW_STR_NONE;
	struct fw_str *slot[FW_H_LOCATION] = {&f->h_etag, &f->h_last_modified, &f->h_content_type, &f->h_cache_control, &f->h_expires,
		&f->h_date, &f->h_age, &f->h_retry_after, &f->h_link, &f->h_content_location};
	size_t n = final.len + permanent.len + coding.len + 3;
	char *at;

	for (int i = 0; i < FW_H_LOCATION; i++)
		n += fw_reply_header(&v->reply, (enum fw_header)i).len + 1;
	f->text = at = malloc(n);
	if (!at) {
		f->kind = FW_VISIT_NONE;
		fw_visit_no_memory(f);
		return;
	}
	f->final_url = keep(&at, final);
	f->permanent_url = keep(&at, permanent);
	f->h_content_encoding = keep(&at, coding);
	for (int i = 0; i < FW_H_LOCATION; i++)
		*slot[i] = keep(&at, fw_reply_header(&v->reply, (enum fw_header)i));
}

/* Decode an error response's body, for a person to read. Failures do not matter. */
static void decode_words(struct fw_fetch_priv *v)
{
	struct fw_decode_limits limits = {FW_WORDS_MAX, v->fr->c.max_ratio};
	struct fw_err err = {0};

	if (v->f->keep_words && fw_decode(v->fr->decoder, fw_reply_header(&v->reply, FW_H_CONTENT_ENCODING), &v->reply.body, &v->f->body, &limits, &err))
		fw_buf_reset(&v->f->body);
}

/* rc and err: the result of decoding. */
static void decoded(struct fw_fetch *f, int rc, const struct fw_err *err)
{
	if (rc == FW_ELIMIT) {
		f->kind = FW_VISIT_NONE; /* a body over a limit counts as that, whatever cut it */
		fw_visit_verdict(f, FW_VISIT_LIMIT, "%s", err->text);
	} else if (rc == FW_ENOMEM) {
		fw_visit_no_memory(f);
	} else if (rc) {
		fw_visit_verdict(f, FW_VISIT_PROTOCOL, "%s", err->text);
	}
	f->body_partial = f->kind != FW_VISIT_NONE && f->body.len > 0;
}

static void decode(struct fw_fetch_priv *v)
{
	struct fw_str codings = fw_reply_header(&v->reply, FW_H_CONTENT_ENCODING);
	size_t eager = v->fr->c.eager_bytes;
	struct fw_buf *wire = &v->reply.body;
	struct fw_fetch *f = v->f;
	struct fw_err err = {0};
	int rc;

	if (f->kind == FW_VISIT_LIMIT || f->kind == FW_VISIT_LOCAL)
		return;
	if (f->http_status / 100 != 2) {
		decode_words(v);
		return;
	}
	f->limits = (struct fw_decode_limits){v->fr->c.max_body_bytes, v->fr->c.max_ratio};
	if (!eager) {
		decoded(f, fw_decode(v->fr->decoder, codings, wire, &f->body, &f->limits, &err), &err);
	} else if (fw_decode_small(v->fr->decoder, codings, wire, &f->body, eager, &f->limits, &rc, &err)) {
		decoded(f, rc, &err);
	} else {
		fw_buf_finish(&f->body);
		f->body = *wire;
		*wire = FW_BUF_INIT(0);
		f->coded = true;
	}
}

static void note_end(struct fw_fetch *f)
{
	f->visit.kind = f->kind;
	f->visit.body_bytes = f->body.len;
	f->visit.error = f->err.rc ? fw_str(f->err.text) : FW_STR_NONE;
}

void fw_fetch_decode(struct fw_fetch *f)
{
	struct fw_buf wire = f->body;
	struct fw_decoder *d;
	struct fw_err err = {0};
	int rc = fw_decoder_create(&d);

	f->coded = false;
	f->body = FW_BUF_INIT(0);
	if (f->kind == FW_VISIT_OK)
		f->kind = FW_VISIT_NONE; /* not classified yet */
	rc = rc ? rc : fw_decode(d, f->h_content_encoding, &wire, &f->body, &f->limits, &err);
	decoded(f, rc, &err);
	if (f->kind == FW_VISIT_NONE)
		f->kind = FW_VISIT_OK;
	note_end(f);
	fw_decoder_destroy(d);
	fw_buf_finish(&wire);
}

void fw_fetcher_waiting(struct fw_fetcher *fr, size_t bytes)
{
	assert(fr->buffered >= fr->waiting);
	fr->buffered = fr->buffered - fr->waiting + bytes;
	fr->waiting = bytes;
	if (fr->paused_n && (!fr->ahead || fr->buffered < fr->c.max_buffered_bytes / 2))
		fw_resume_soon(fr);
}

/* Remove from its list, flying or landed. */
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

/* Queue a visit that has ended until its reader has room. */
static void land(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	list_out(v);
	v->landed = true;
	v->prev = fr->landed_last;
	*(v->prev ? &v->prev->next : &fr->landed) = v;
	fr->landed_last = v;
}

/* Free an idle buffer's memory if it is large. */
static void shrink(struct fw_buf *b)
{
	if (b->cap > KEEP_BYTES)
		fw_buf_finish(b);
}

static void fly_out(struct fw_fetch_priv *v)
{
	struct fw_fetcher *fr = v->fr;

	assert(fr->flying_n);
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

void fw_visit_end(struct fw_fetch_priv *v)
{
	struct fw_fetch *f = v->f;
	struct fw_visit *visit = &f->visit;

	assert(f->priv == v);
	if (!v->landed) {
		fw_resolve_cancel(&v->wait);
		fw_transfer_stop(v);
		fw_seat_leave(v);
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
	visit->redirects = v->n;
	visit->http_status = f->http_status;
	visit->wire_bytes = v->wire_bytes;
	note_end(f);
	f->priv = NULL;
	fly_out(v);
	f->done(f);
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
	while (!fr->held && fr->landed) /* done() may hold the fetcher again */
		fw_visit_end(fr->landed);
}
