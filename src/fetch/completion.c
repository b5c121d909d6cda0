/* SPDX-License-Identifier: ISC */
/*
 * Completion: every visit ends in fw_fetch_end(), once. While the fetcher is held, a visit that has
 * ended is queued (completed), its body coded as transferred, until the reader has room.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"

/* capacity that an idle buffer keeps: idle buffers are many, used ones few */
#define KEEP_BYTES (4 * 1024)

static struct fw_str strings_put(char **at, struct fw_str s)
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
static void strings_copy(struct fw_fetch_priv *p)
{
	struct fw_fetch *f = p->f;
	bool good = f->kind == FW_VISIT_OK || f->kind == FW_VISIT_NOT_MODIFIED;
	struct fw_str final = fw_buf_str(&p->url[p->n]);
	struct fw_str permanent = good && p->permanent_n ? fw_buf_str(&p->url[p->permanent_n]) : FW_STR_NONE;
	struct fw_str coding = f->coded ? fw_fetch_response_header(&p->response, FW_H_CONTENT_ENCODING) : FW_STR_NONE;
	struct fw_str *slot[FW_H_LOCATION + 1] = {&f->h_etag, &f->h_last_modified, &f->h_content_type,
		&f->h_cache_control, &f->h_expires, &f->h_date, &f->h_age, &f->h_retry_after, &f->h_link,
		&f->h_content_location, &f->h_location};
	size_t n = final.len + permanent.len + coding.len + 3;
	char *at;

	for (int i = 0; i <= FW_H_LOCATION; i++)
		n += fw_fetch_response_header(&p->response, (enum fw_header)i).len + 1;
	f->text = at = malloc(n);
	if (!at) {
		f->kind = FW_VISIT_NONE;
		fw_fetch_no_memory(f);
		return;
	}
	f->final_url = strings_put(&at, final);
	f->permanent_url = strings_put(&at, permanent);
	f->h_content_encoding = strings_put(&at, coding);
	for (int i = 0; i <= FW_H_LOCATION; i++)
		*slot[i] = strings_put(&at, fw_fetch_response_header(&p->response, (enum fw_header)i));
}

/* Decode an error response's body, for a person to read. Failures do not matter. */
static void error_body_decode(struct fw_fetch_priv *p)
{
	struct fw_decode_limits limits = {FW_ERROR_BODY_MAX, p->fr->c.max_compression_ratio};
	struct fw_err err = {0};

	if (p->f->keep_error_body &&
		fw_decode(p->fr->decoder, fw_fetch_response_header(&p->response, FW_H_CONTENT_ENCODING),
			&p->response.body, &p->f->body, &limits, &err))
		fw_buf_reset(&p->f->body);
}

/* rc and err: the result of decoding. */
static void body_decoded(struct fw_fetch *f, int rc, const struct fw_err *err)
{
	if (rc == FW_ELIMIT) {
		f->kind = FW_VISIT_NONE; /* a body over a limit counts as that, whatever cut it */
		fw_fetch_set_outcome(f, FW_VISIT_LIMIT, "%s", err->text);
	} else if (rc == FW_ENOMEM) {
		fw_fetch_no_memory(f);
	} else if (rc) {
		fw_fetch_set_outcome(f, FW_VISIT_PROTOCOL, "%s", err->text);
	}
	f->body_partial = f->kind != FW_VISIT_NONE && f->body.len > 0;
}

static void body_decode(struct fw_fetch_priv *p)
{
	struct fw_str codings = fw_fetch_response_header(&p->response, FW_H_CONTENT_ENCODING);
	size_t eager = p->fr->c.eager_bytes;
	struct fw_buf *wire = &p->response.body;
	struct fw_fetch *f = p->f;
	struct fw_err err = {0};
	int rc;

	if (f->kind == FW_VISIT_LIMIT || f->kind == FW_VISIT_LOCAL)
		return;
	if (f->http_status / 100 != 2) {
		error_body_decode(p);
		return;
	}
	f->limits = (struct fw_decode_limits){p->fr->c.max_body_bytes, p->fr->c.max_compression_ratio};
	if (!eager) {
		body_decoded(f, fw_decode(p->fr->decoder, codings, wire, &f->body, &f->limits, &err), &err);
	} else if (fw_decode_small(p->fr->decoder, codings, wire, &f->body, eager, &f->limits, &rc, &err)) {
		body_decoded(f, rc, &err);
	} else {
		fw_buf_finish(&f->body);
		f->body = *wire;
		*wire = FW_BUF_INIT(0);
		f->coded = true;
	}
}

static void visit_note_outcome(struct fw_fetch *f)
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
	body_decoded(f, rc, &err);
	if (f->kind == FW_VISIT_NONE)
		f->kind = FW_VISIT_OK;
	visit_note_outcome(f);
	fw_decoder_destroy(d);
	fw_buf_finish(&wire);
}

void fw_fetcher_set_undecoded(struct fw_fetcher *fr, size_t bytes)
{
	assert(fr->buffered >= fr->undecoded);
	fr->buffered = fr->buffered - fr->undecoded + bytes;
	fr->undecoded = bytes;
	if (fr->paused_n && (!fr->exempt || fr->buffered < fr->c.max_buffered_bytes / 2))
		fw_resume_soon(fr);
}

/* Remove from its list, flying or completed. */
static void fetch_priv_unlink(struct fw_fetch_priv *p)
{
	struct fw_fetcher *fr = p->fr;

	*(p->prev ? &p->prev->next : p->completed ? &fr->completed : &fr->in_flight) = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else if (p->completed)
		fr->completed_last = p->prev;
	p->prev = p->next = NULL;
}

/* Queue a visit that has ended until its reader has room. */
static void completed_put(struct fw_fetch_priv *p)
{
	struct fw_fetcher *fr = p->fr;

	fetch_priv_unlink(p);
	p->completed = true;
	p->prev = fr->completed_last;
	*(p->prev ? &p->prev->next : &fr->completed) = p;
	fr->completed_last = p;
}

/* Free an idle buffer's memory if it is large. */
static void buf_shrink(struct fw_buf *b)
{
	if (b->cap > KEEP_BYTES)
		fw_buf_finish(b);
}

static void fetch_priv_recycle(struct fw_fetch_priv *p)
{
	struct fw_fetcher *fr = p->fr;

	assert(fr->in_flight_n);
	fetch_priv_unlink(p);
	p->completed = false;
	fr->in_flight_n--;
	buf_shrink(&p->addrs);
	buf_shrink(&p->response.body);
	buf_shrink(&p->response.text);
	for (size_t i = 0; i < FW_N(p->url); i++)
		buf_shrink(&p->url[i]);
	p->f = NULL;
	p->next = fr->idle;
	fr->idle = p;
	fr->idle_n++;
	if (fr->in_flight_n == 0)
		uv_timer_stop(&fr->tick);
}

void fw_fetch_end(struct fw_fetch_priv *p)
{
	struct fw_fetch *f = p->f;
	struct fw_visit *visit = &f->visit;

	assert(f->priv == p);
	if (!p->completed) {
		fw_resolve_cancel(&p->wait);
		fw_transfer_stop(p);
		fw_further_end_wait(p);
		fw_slot_release(p);
		visit->total_us = fw_mono_us() - p->start_us;
		if (p->fr->holding && p->response.body.len && f->kind != FW_VISIT_LOCAL) {
			completed_put(p);
			return;
		}
	}
	f->http_status = p->response.headers_done ? p->response.status : 0;
	body_decode(p);
	if (f->kind == FW_VISIT_NONE)
		f->kind = FW_VISIT_OK;
	strings_copy(p);
	f->hops = p->n;
	visit->redirects = p->n;
	visit->http_status = f->http_status;
	visit->wire_bytes = p->wire_bytes;
	visit_note_outcome(f);
	f->priv = NULL;
	fetch_priv_recycle(p);
	f->done(f);
}

void fw_fetch_reset(struct fw_fetch *f)
{
	struct fw_buf body = f->body;

	free(f->text);
	buf_shrink(&body);
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
	fr->holding = on;
	while (!fr->holding && fr->completed) /* done() may hold the fetcher again */
		fw_fetch_end(fr->completed);
}
