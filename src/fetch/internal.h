/* SPDX-License-Identifier: ISC */
/*
 * What the files of the fetch room share. A request flows: fetch.c -> resolve.c -> slots.c ->
 * transfer.c -> response.c -> completion.c.
 *
 *	fetch.c       a visit: start, redirects, cancel
 *	redirect.c    URLs and redirects: which URL may be requested next (pure)
 *	resolve.c     name lookups and their cache
 *	limiter.c     the limiter: slots at each address, and who waits for one (pure)
 *	slots.c       a visit's slot at an address
 *	transfer.c    one request of libcurl; libcurl on the loop
 *	guard.c       which addresses may be connected to (pure)
 *	session.c     cache of TLS sessions
 *	response.c    header lines and body bytes as they arrive, limited and counted
 *	decode.c      content codings
 *	classify.c    the kind and text of an outcome
 *	limits.c      time limits that libcurl does not check
 *	completion.c  completion of a visit
 *	fetcher.c     the fetcher, and its deferred work on the loop
 *
 * All but decode.c run on the loop's thread.
 */
#ifndef FW_FETCH_INTERNAL_H
#define FW_FETCH_INTERNAL_H

#include <curl/curl.h>

#include "base/buf.h"
#include "fetch/limiter.h"
#include "fetch/decode.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "fetch/session.h"

#define FW_HOST_MAX 256
#define FW_REDIRECTS_MAX 20
#define FW_SEEN_ORIGINS 4096 /* a power of two */
#define FW_PROGRESS_BYTES ((size_t)64 << 10)
#define FW_ERROR_BODY_MAX ((size_t)16 << 10) /* kept of an error response's body */

/* ---- redirect.c ------------------------------------------------------------------------------ */

/* A URL prepared for the wire. */
struct fw_wire_url {
	struct fw_buf wire;     /* for libcurl: ASCII, host as A-label, no userinfo, no fragment */
	char host[FW_HOST_MAX]; /* lower case, without brackets and final dot */
	int port;
	bool https, literal; /* literal: the host is an IP address */
};

/*
 * Errors: FW_EINVAL, FW_EBLOCKED (scheme), FW_ELIMIT (length), FW_ENOMEM; the text holds no byte of
 * url.
 */
FW_MUST_CHECK int fw_wire_url_prepare(struct fw_wire_url *h, struct fw_str url, struct fw_err *err);
bool fw_wire_url_same_origin(const struct fw_wire_url *a, const struct fw_wire_url *b);
bool fw_redirect_status(int status); /* a redirect that is followed */
bool fw_redirect_permanent(int status);
bool fw_redirect_repeats(int status); /* the redirect repeats a POST (RFC 9110 section 15.4) */
/*
 * Append the URL that location means at base to out, without fragment and userinfo. Errors:
 * FW_EINVAL, FW_ENOMEM.
 */
FW_MUST_CHECK int fw_redirect_target(struct fw_str base, struct fw_str location, struct fw_buf *out);
/* Valid as a header's value: not empty, no controls but tab (NET-18). */
bool fw_header_value_ok(struct fw_str v);

/* ---- response.c ------------------------------------------------------------------------------ */

enum fw_header {
	FW_H_ETAG,
	FW_H_LAST_MODIFIED,
	FW_H_CONTENT_TYPE,
	FW_H_CACHE_CONTROL,
	FW_H_EXPIRES,
	FW_H_DATE,
	FW_H_AGE,
	FW_H_RETRY_AFTER,
	FW_H_LINK,
	FW_H_CONTENT_LOCATION,
	FW_H_LOCATION,
	FW_H_CONTENT_ENCODING,
	FW_H_CONTENT_LENGTH,
	FW_H_N
};

/* One response while it arrives. */
struct fw_fetch_response {
	int status;
	size_t header_bytes; /* of all header blocks of this request */
	uint32_t header_n;
	struct fw_buf text; /* the values, one after the other */
	struct {
		uint32_t at, len;
		bool is;
	} value[FW_H_N];
	int last; /* enum fw_header of the last line, for obs-fold; -1: none */
	bool headers_done;
	struct fw_buf body;     /* still coded */
	uint64_t skipped_bytes; /* bytes of a body that is not needed */
	/* why a callback stopped the transfer: FW_ELIMIT, FW_ENOMEM, or 0 */
	int limit;
	const char *limit_text;
	size_t error_body_max; /* bytes to keep of an error response's body */
	bool enough;           /* stopped: the rest of an error response is not needed */
};

void fw_fetch_response_reset(struct fw_fetch_response *r);
void fw_fetch_response_finish(struct fw_fetch_response *r);
struct fw_str fw_fetch_response_header(const struct fw_fetch_response *r, enum fw_header h);
/* Takes one header line with its line end. False: stop the transfer. */
bool fw_fetch_response_line(struct fw_fetch_response *r, const struct fw_fetch_config *c, struct fw_str line);
bool fw_fetch_response_body(struct fw_fetch_response *r, const struct fw_fetch_config *c, const char *p, size_t n);

/* ---- transfer.c ------------------------------------------------------------------------------ */

/* One visit in flight; pooled with its easy handle. */
struct fw_fetch_priv {
	struct fw_fetcher *fr;
	struct fw_fetch *f;
	struct fw_fetch_priv *prev, *next; /* list in flight, or free list (next only) */

	/* the visit. start_us: moved later by waits, so that no timing includes them */
	int64_t start_us;
	int64_t deadline_us;                /* total_timeout */
	struct fw_wire_url first, wire_url; /* first.wire stays empty */
	/* the URLs requested so far; url[n] is the current one */
	struct fw_buf url[FW_REDIRECTS_MAX + 2];
	uint32_t n;
	uint32_t permanent_n; /* redirects in the unbroken chain of 301/308 */
	bool chain;           /* the chain is unbroken */
	bool was_sent;        /* a request was sent */
	bool is_fresh;        /* the next request gets a new connection */
	bool sent_validators;
	bool posted;         /* the handle's last request was a POST */
	bool start_failed;   /* failed inside fw_fetch_start(): the loop reports it */
	bool completed;      /* ended but not decoded: in the fetcher's completed list */
	uint64_t wire_bytes; /* of the former requests */
	struct fw_resolve_wait wait;
	struct fw_limiter_slot slot; /* slot at the current address */
	int64_t slot_wait_us;        /* waiting for the slot since then; 0: not waiting */
	int64_t slot_waited_us;      /* the time that waits for slots took */
	int64_t further_wait_us;     /* waiting for fw_fetch_continue() since then; 0: not waiting */
	/* while waiting: the name's addresses; empty when the host is an address */
	struct fw_buf addrs;

	/* the request */
	struct fw_fetch_response response;
	/* times: begun, name known, given to libcurl, connected (0: not yet) */
	int64_t begin_us, dns_us, request_us, ready_us;
	bool is_sent, is_repeat; /* it was sent; libcurl wanted to send it again, and was stopped */
	bool is_telling;         /* in the fetcher's list `telling` */
	struct fw_fetch_priv *telling_next;
	const char *refused; /* why the guard refused */
	int refused_port;
	bool send_refused; /* the send callback refused */
	int socket_errno;  /* errno of a failed socket() */
	bool in_multi;
	bool paused;           /* until less is buffered */
	size_t buffered;       /* bytes of its body counted in fr->buffered */
	size_t progress_bytes; /* buffered at the last progress of FW_PROGRESS_BYTES bytes */
	int64_t progress_us;   /* time of that progress */
	CURL *easy;
	/* this handle's own DNS cache; holds only what request_names() puts in */
	CURLSH *names;
	struct curl_slist resolve[2];
	struct curl_slist header[4 + FW_FETCH_HEADERS_MAX]; /* validators, authorization, type, post_headers */
	char forget[FW_HOST_MAX + 16];                      /* "-host:port" that removes the last name */
	struct fw_buf resolve_text, header_text;
};

struct fw_fetcher {
	uv_loop_t *loop;
	struct fw_fetch_config c; /* its strings are owned */
	struct fw_guard no_guard;
	struct fw_decoder *decoder;
	struct fw_resolver *resolver;
	struct fw_sessions *sessions;
	struct fw_limiter *limiter; /* NULL: no limit */
	CURLM *multi;
	struct curl_slist fixed[2]; /* header lines of every request */
	uv_timer_t curl_timer, tick;
	uv_idle_t deferred_work;
	struct fw_fetch_priv *in_flight, *idle;
	struct fw_fetch_priv *telling;                    /* requests sent in this call of libcurl; sent() is due */
	struct fw_fetch_priv *completed, *completed_last; /* ended while the fetcher was held, in order */
	bool holding;
	uint32_t in_flight_n, idle_n;
	struct fw_transfer_watch *spare_watch;
	struct fw_wire_url proxy; /* host and port of the proxy */
	struct {
		uint64_t origin;
		int64_t at_us;
	} seen[FW_SEEN_ORIGINS]; /* origins requested lately */
	size_t buffered, buffered_peak;
	size_t undecoded; /* part of buffered: handed over, not decoded yet */
	/* the one transfer that never pauses, so that one always makes progress */
	struct fw_fetch_priv *exempt;
	uint32_t paused_n;
	bool resume;     /* on_deferred() must call fw_transfer_resume() */
	int64_t kept_us; /* kept_n counts new connections since then */
	uint32_t kept_n;
	size_t handle_n;
	bool closing;
};

FW_MUST_CHECK int fw_transfer_open(struct fw_fetcher *fr, struct fw_err *err);
void fw_transfer_close(struct fw_fetcher *fr);
/*
 * Give p's request to libcurl. addrs: the name's addresses; NULL when the host is an address.
 * Errors: FW_ENOMEM.
 */
FW_MUST_CHECK int fw_transfer_start(struct fw_fetch_priv *p, const char *addrs);
/* Take the request back from libcurl, finished or not; notes timings and sizes in p->f->visit. */
void fw_transfer_stop(struct fw_fetch_priv *p);
void fw_transfer_free(struct fw_fetch_priv *p);
/* Resume paused transfers. Not from within a callback of libcurl. */
void fw_transfer_resume(struct fw_fetcher *fr);
void fw_handle_closed(struct fw_fetcher *fr);

/* ---- fetch.c --------------------------------------------------------------------------------- */

/* The wait for fw_fetch_continue() is over, if there was one. */
void fw_further_end_wait(struct fw_fetch_priv *p);
/* A request has ended with libcurl's result rc. */
void fw_fetch_responded(struct fw_fetch_priv *p, CURLcode rc);

/* ---- completion.c ---------------------------------------------------------------------------- */

/*
 * End a visit: decode, free the slot, call done(). While the fetcher is held, only queue it in
 * `completed`. done() may start and end other fetches.
 */
void fw_fetch_end(struct fw_fetch_priv *p);

/* ---- classify.c ------------------------------------------------------------------------------ */

/* Set kind and text, unless they are set already. */
FW_PRINTF(3, 4) void fw_fetch_set_outcome(struct fw_fetch *f, enum fw_visit_kind kind, const char *fmt, ...);
void fw_fetch_no_memory(struct fw_fetch *f);
void fw_classify_url(struct fw_fetch_priv *p, const struct fw_err *err);
void fw_classify_name(struct fw_fetch_priv *p, enum fw_resolve_state state);
/* refused by the guard, with its reason */
void fw_classify_refused(struct fw_fetch_priv *p, const char *why, int port);
void fw_classify_no_slot(struct fw_fetch_priv *p);              /* no slot at the address in time */
void fw_classify_failure(struct fw_fetch_priv *p, CURLcode rc); /* the transfer failed */
void fw_classify_status(struct fw_fetch_priv *p);

/* ---- slots.c --------------------------------------------------------------------------------- */

/*
 * Take a slot at the first of addrs, or wait for one: see fw_limiter_is_waiting(&p->slot). Errors:
 * FW_ENOMEM.
 */
FW_MUST_CHECK int fw_slot_acquire(struct fw_fetch_priv *p, const char *addrs);
/*
 * A wait of ours is over. Its time is moved out of the visit's timings: it tells nothing about the
 * server.
 */
void fw_fetch_exclude(struct fw_fetch_priv *p, int64_t waited_us);
/* The wait for a slot is over, if there was one. */
void fw_slot_end_wait(struct fw_fetch_priv *p);
void fw_slot_release(struct fw_fetch_priv *p);
/* Start the requests of visits that have got a slot. */
void fw_slots_resume(struct fw_fetcher *fr);

/* ---- limits.c -------------------------------------------------------------------------------- */

void fw_limits_tick(uv_timer_t *t);

/* ---- fetcher.c ------------------------------------------------------------------------------- */

/*
 * Let the loop run on_deferred() soon: for visits that failed at their start, and visits that got a
 * slot.
 */
void fw_deferred_soon(struct fw_fetcher *fr);
/* The same, and call fw_transfer_resume() then. */
void fw_resume_soon(struct fw_fetcher *fr);

#endif
