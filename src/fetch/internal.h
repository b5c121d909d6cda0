/* SPDX-License-Identifier: ISC */
/*
 * What the files of the fetch room share.
 *
 *	fetch.c     a visit: start, hops
 *	landing.c   its end    judge.c  what it is said to have come to    limits.c  when it has had its time
 *	fetcher.c   the fetcher, and what it owes when the loop comes round
 *	hop.c       URLs and redirects: what may be asked next (pure)
 *	answer.c    header lines and body bytes as they arrive, counted
 *	transfer.c  one request of libcurl, and libcurl on the loop
 *	seats.c     a visit's place at an address, and its wait for one
 *	crowd.c     who is at which address, and who waits for a place there (pure)
 *	resolve.c   names    guard.c  addresses    decode.c  codings    session.c  TLS sessions
 */
#ifndef FW_FETCH_INTERNAL_H
#define FW_FETCH_INTERNAL_H

#include <curl/curl.h>

#include "base/buf.h"
#include "fetch/crowd.h"
#include "fetch/decode.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "fetch/session.h"

#define FW_HOST_MAX 256
#define FW_HOPS_MAX 20
#define FW_SEEN 4096 /* a power of two */
#define FW_STRIDE ((size_t)64 << 10)
#define FW_WORDS_MAX ((size_t)16 << 10) /* of an answer that is no document */

/* ---- hop.c ---------------------------------------------------------------------------------------------------------- */

/* A URL made ready for the wire. */
struct fw_hop {
	struct fw_buf wire;     /* what libcurl gets: ASCII, host in its A-label form, no userinfo, no fragment */
	char host[FW_HOST_MAX]; /* lower case, no brackets, no final dot */
	int port;
	bool https, literal;    /* literal: the host is an address */
};

/* 0, or FW_EINVAL / FW_EBLOCKED (scheme) / FW_ELIMIT (length) with words that name no byte of url's. */
FW_MUST_CHECK int fw_hop_prepare(struct fw_hop *h, struct fw_str url, struct fw_err *err);
bool fw_hop_same_origin(const struct fw_hop *a, const struct fw_hop *b);
bool fw_redirect_status(int status);  /* one that is followed */
bool fw_redirect_permanent(int status);
bool fw_redirect_repeats(int status); /* what is told is told again there (RFC 9110, 15.4) */
/* The URL that location means at base, without fragment, added to out. Errors: FW_EINVAL, FW_ENOMEM. */
FW_MUST_CHECK int fw_hop_target(struct fw_str base, struct fw_str location, struct fw_buf *out);
/* May this be a header's value? No controls but tab (NET-18), not empty. */
bool fw_header_value_ok(struct fw_str v);

/* ---- answer.c -------------------------------------------------------------------------------------------------------- */

enum fw_header {
	FW_H_ETAG, FW_H_LAST_MODIFIED, FW_H_CONTENT_TYPE, FW_H_CACHE_CONTROL, FW_H_EXPIRES, FW_H_DATE, FW_H_AGE, FW_H_RETRY_AFTER,
	FW_H_LINK, FW_H_CONTENT_LOCATION, FW_H_LOCATION, FW_H_CONTENT_ENCODING, FW_H_CONTENT_LENGTH,
	FW_H_N
};

/* One answer while it arrives. */
struct fw_reply {
	int status;
	size_t header_bytes;       /* of all header blocks of this request */
	uint32_t header_n;
	struct fw_buf text;        /* the values, one behind the other */
	struct { uint32_t at, len; bool is; } value[FW_H_N];
	int last;                  /* enum fw_header of the last line, for folded ones; -1 */
	bool headers_done;
	struct fw_buf body;        /* as coded */
	uint64_t skipped_bytes;    /* of a body nobody needs */
	int limit;                 /* 0 or FW_ELIMIT, FW_ENOMEM: why a callback stopped the transfer */
	const char *limit_words;
	size_t words_max;          /* bytes of a body that is no document, to be kept */
	bool enough;               /* stopped: the rest of an error page is not wanted */
};

void fw_reply_reset(struct fw_reply *r);
void fw_reply_finish(struct fw_reply *r);
struct fw_str fw_reply_header(const struct fw_reply *r, enum fw_header h);
/* One line with its line end. False: stop the transfer. */
bool fw_reply_line(struct fw_reply *r, const struct fw_fetch_config *c, struct fw_str line);
bool fw_reply_body(struct fw_reply *r, const struct fw_fetch_config *c, const char *p, size_t n);

/* ---- transfer.c ------------------------------------------------------------------------------------------------------- */

/* One visit in flight; pooled with its easy handle. */
struct fw_fetch_priv {
	struct fw_fetcher *fr;
	struct fw_fetch *f;
	struct fw_fetch_priv *prev, *next; /* in flight, or the free list (next only) */

	/* the visit */
	int64_t start_us;                  /* later by what it waited for places: timings count from here */
	int64_t deadline_us;               /* total_timeout */
	struct fw_hop first, hop;          /* first.wire stays empty */
	struct fw_buf url[FW_HOPS_MAX + 2]; /* that were asked, in order; [n] is asked now */
	uint32_t n;
	uint32_t permanent_n;              /* hops of the unbroken chain so far */
	bool chain;                        /* it is unbroken */
	bool sent_validators;
	bool posted;                       /* the handle's last request was a POST */
	bool late;                         /* failed inside start: the loop will say so */
	bool landed;                       /* ended, but not decoded yet: in the fetcher's landed list */
	uint64_t wire_bytes;               /* of the hops before */
	struct fw_resolve_wait wait;
	struct fw_crowd_seat seat;         /* at the address that is asked now */
	int64_t seat_us;                   /* it waits for that since then; 0: it does not */
	struct fw_buf addrs;               /* meanwhile: of the name; empty when the host is an address */

	/* the request */
	struct fw_reply reply;
	int64_t hop_us, dns_us, ask_us, ready_us; /* begun; name known; given to libcurl; connected (0: not yet) */
	const char *refused;               /* by the guard: why */
	int refused_port;
	bool unwanted;                     /* its send callback said no */
	int socket_errno;                  /* of a socket that could not be opened */
	bool in_multi;
	bool paused;                       /* until less is buffered */
	size_t held;                       /* bytes of its body that count in buffered */
	size_t mark;                       /* held when it last had come on by FW_STRIDE bytes, */
	int64_t mark_us;                   /* and when that was */
	CURL *easy;
	CURLSH *names;                     /* this handle's own name cache: holds what we put there and no more */
	struct curl_slist resolve[2], header[3];
	char forget[FW_HOST_MAX + 16];     /* "-host:port" of the last name */
	struct fw_buf resolve_text, header_text;
};

struct fw_fetcher {
	uv_loop_t *loop;
	struct fw_fetch_config c;          /* strings owned */
	struct fw_guard no_guard;
	struct fw_decoder *decoder;
	struct fw_resolver *resolver;
	struct fw_sessions *sessions;
	struct fw_crowd *crowd;            /* NULL: no limit */
	CURLM *multi;
	struct curl_slist fixed[2];        /* the header lines of every request */
	uv_timer_t curl_timer, tick;
	uv_idle_t late;
	struct fw_fetch_priv *flying, *idle;
	struct fw_fetch_priv *landed, *landed_last; /* ended while held: delivered in order */
	bool held;
	uint32_t flying_n, idle_n;
	struct fw_watch *spare_watch;
	struct fw_hop proxy;               /* host and port of the proxy */
	struct { uint64_t origin; int64_t at_us; } seen[FW_SEEN]; /* origins asked lately */
	size_t buffered, buffered_peak;
	size_t waiting;                    /* of these: handed over, and not decoded yet */
	struct fw_fetch_priv *ahead;       /* the one that need not wait: so that there is always one that gets done */
	uint32_t paused_n;
	bool resume;                       /* the idle handle has that to do */
	int64_t kept_us;                   /* begin of the time in which kept_n new connections were kept */
	uint32_t kept_n;
	size_t handle_n;
	bool closing;
};

FW_MUST_CHECK int fw_transfer_open(struct fw_fetcher *fr, struct fw_err *err);
void fw_transfer_close(struct fw_fetcher *fr);
/* Give p's hop to libcurl; addrs NULL when the host is an address. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_transfer_start(struct fw_fetch_priv *p, const char *addrs);
/* Take it away from libcurl, finished or not; timings and sizes are noted in p->f->visit. */
void fw_transfer_stop(struct fw_fetch_priv *p);
void fw_transfer_free(struct fw_fetch_priv *p);
/* Let those go on that were paused. Not from within libcurl. */
void fw_transfer_resume(struct fw_fetcher *fr);
void fw_handle_closed(struct fw_fetcher *fr);

/* ---- fetch.c ------------------------------------------------------------------------------------------------------------ */

/* A request has ended: libcurl says rc. */
void fw_visit_answered(struct fw_fetch_priv *p, CURLcode rc);

/* ---- landing.c ---------------------------------------------------------------------------------------------------------- */

/* Decode, hand over, free the slot; or land. done() may start and end others. */
void fw_visit_end(struct fw_fetch_priv *p);

/* ---- judge.c ------------------------------------------------------------------------------------------------------------ */

/* The first verdict stands. */
FW_PRINTF(3, 4) void fw_visit_verdict(struct fw_fetch *f, enum fw_visit_kind kind, const char *fmt, ...);
void fw_visit_no_memory(struct fw_fetch *f);
void fw_judge_url(struct fw_fetch_priv *p, const struct fw_err *err);
void fw_judge_name(struct fw_fetch_priv *p, enum fw_resolve_state state);
void fw_judge_refused(struct fw_fetch_priv *p, const char *why, int port); /* by the guard */
void fw_judge_busy(struct fw_fetch_priv *p);                /* its address was */
void fw_judge_failure(struct fw_fetch_priv *p, CURLcode rc); /* why did the transfer break? */
void fw_judge_status(struct fw_fetch_priv *p);

/* ---- seats.c ------------------------------------------------------------------------------------------------------------ */

/* Take a place at the address that will be tried first; p->seat tells whether it waits for it. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_seat_take(struct fw_fetch_priv *p, const char *addrs);
/* Its turn has come, or it gives up. What it waited is no part of the visit: it says nothing of the server. */
void fw_seat_waited(struct fw_fetch_priv *p);
void fw_seat_leave(struct fw_fetch_priv *p);
/* Those whose turn it is ask. */
void fw_seats_call(struct fw_fetcher *fr);

/* ---- limits.c ----------------------------------------------------------------------------------------------------------- */

void fw_limits_tick(uv_timer_t *t);

/* ---- fetcher.c ---------------------------------------------------------------------------------------------------------- */

/* The loop shall come by soon: for what has failed at its start, for those who were called. */
void fw_late_soon(struct fw_fetcher *fr);
/* The same, and call fw_transfer_resume. */
void fw_resume_soon(struct fw_fetcher *fr);

#endif
