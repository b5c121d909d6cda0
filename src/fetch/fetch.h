/* SPDX-License-Identifier: ISC */
/*
 * The only room that knows libcurl: thousands of transfers in flight on one libuv loop, each with its limits, its redirects
 * followed by hand, its answer decoded, and every address it connects to judged by the guard.
 *
 * Never blocks: name look-ups run on c-ares. One fetcher belongs to one loop and thread.
 */
#ifndef FW_FETCH_FETCH_H
#define FW_FETCH_FETCH_H

#include <uv.h>

#include "base/buf.h"
#include "feedwheel/store.h"
#include "fetch/decode.h"
#include "fetch/guard.h"

struct fw_fetch_config {
	const char *user_agent;      /* "feedwheel/0.1 (+https://...)" */
	const struct fw_guard *guard; /* borrowed for the fetcher's life; NULL: nothing is allowed beyond the public internet */
	uint32_t max_in_flight;      /* slots; sizes the connection cache */
	uint32_t address_max;        /* [0: no limit] transfers at one address at the same time; the others wait, not behind a proxy */
	uint32_t max_redirects;      /* [5] */
	int64_t connect_timeout_ms;  /* [10,000] name look-up, and again TCP and TLS together */
	int64_t first_byte_timeout_ms; /* [15,000] from the connection on */
	int64_t total_timeout_ms;    /* [60,000] per visit, all hops together; a wait for a place at an address takes at most half of it */
	int64_t low_speed_bytes, low_speed_ms; /* less than this many bytes/s over this time fails [100, 20,000] */
	size_t max_body_bytes;       /* decoded and on the wire [16 MiB] */
	size_t eager_bytes;          /* a body that decodes to more, or may, is handed over coded [0: none is] */
	uint32_t max_ratio;          /* decoded/wire beyond the first MiB [200] */
	size_t max_buffered_bytes;   /* of all transfers together, coded [32 MiB]; past it they wait, but for one. 0: the default */
	size_t max_header_bytes;     /* [100 KiB] */
	uint32_t max_header_n;       /* [200] */
	const char *dns_servers;     /* "127.0.0.1:5353,..."; NULL: the system's */
	const char *ca_file;         /* NULL: the system's bundle */
	const char *proxy;           /* NULL: none; the environment is never read */
	bool http2;                  /* [true] */
};

void fw_fetch_config_default(struct fw_fetch_config *c);

struct fw_fetcher;
struct fw_fetch;
/* The fetch has ended, well or not; called from the loop, never from within fw_fetch_start. It may start and cancel others. */
typedef void fw_fetch_done_cb(struct fw_fetch *f);

/*
 * A request to url's host is connected and about to be sent: the first, or one that a redirect there wants. False: it must not be sent, and the
 * fetch ends with put_off set. The callback starts and ends nothing.
 */
typedef bool fw_fetch_send_cb(struct fw_fetch *f);

struct fw_fetch {
	/* request: the caller's, borrowed until done */
	struct fw_str url;
	struct fw_str validator_url, etag, last_modified; /* sent only to exactly this URL */
	struct fw_str username, password;                 /* sent only to url's origin */
	bool keep_words;                                  /* a person waits: what an answer that is no document says is kept in body too */
	struct fw_str form;          /* present: not asked for but told this, an application/x-www-form-urlencoded POST. Redirects 307 and 308
	                                repeat it, others are its answer; from https to http it does not go on: it may hold a secret */
	fw_fetch_done_cb *done;
	fw_fetch_send_cb *send;      /* NULL: each request may be sent */
	void *ctx;

	/* answer */
	enum fw_visit_kind kind;     /* OK for any 2xx with a body kept; NOT_MODIFIED; else what failed */
	struct fw_err err;           /* words, never with bytes of the answer (NET-16) */
	int http_status;
	struct fw_buf body;          /* decoded; but for keep_words only of 2xx */
	bool coded;                  /* ... as it came over the wire: fw_fetch_decode() is still to be called */
	struct fw_str final_url;     /* of the answer; owned by the fetch */
	struct fw_str permanent_url; /* where an unbroken chain of 301/308 from url leads; absent: none */
	uint32_t hops;
	/* headers of the last answer, byte for byte, absent when not sent; owned by the fetch */
	struct fw_str h_etag, h_last_modified, h_content_type, h_cache_control, h_expires, h_date, h_age, h_retry_after, h_link,
		h_content_location, h_content_encoding;
	struct fw_visit visit;       /* timings, bytes, hops, status, kind, at_ms filled in; queue_us: it waited so long for a place at its
	                                address, which counts in no other timing */
	bool refused;                /* kinds DNS and CONNECT: somebody out there said no: there is no such name, nobody listens at that port */
	bool resolved;               /* url's host has an address, not a proxy's: */
	unsigned char address[16];   /* the lowest of them, as fw_crowd_key() says */
	int64_t name_age_ms;         /* it ended without addresses: how long before it the lookup began that it waited for or was told of */
	bool put_off;                /* LOCAL, for its address was too busy for too long, or it must not be sent */
	bool body_partial;           /* the body was cut (transfer broke behind the headers): kind says how */
	struct fw_decode_limits limits; /* of the body */

	struct fw_fetch_priv *priv;  /* the fetcher's, while in flight */
	char *text;                  /* what the strings above point into */
};

/*
 * Errors: FW_EINVAL dns_servers, FW_EIO, FW_ENOMEM. config's strings are copied. The process should ignore SIGPIPE: when its
 * disposition is the default, this sets it to be ignored.
 */
FW_MUST_CHECK int fw_fetcher_create(uv_loop_t *loop, const struct fw_fetch_config *c, struct fw_fetcher **out,
	struct fw_err *err);
/*
 * All fetches must have ended; their last done() may call this. Closes its loop handles when the loop runs next: run it until they
 * are gone. NULL is fine.
 */
void fw_fetcher_destroy(struct fw_fetcher *fr);
/* f zeroed but for the request. Errors only for our own faults (FW_ENOMEM); bad URLs come through done. */
FW_MUST_CHECK int fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *err);
/* End it now: done is called with kind LOCAL before this returns. Nothing happens when it has ended. */
void fw_fetch_cancel(struct fw_fetch *f);
/*
 * End it now when its host has not said anything yet: done is called with kind TIMEOUT before this returns. False: its answer has begun, or it
 * has ended.
 */
bool fw_fetch_give_up(struct fw_fetch *f);
bool fw_fetch_is_silent(const struct fw_fetch *f); /* would that end it? Not while it waits for a place at its address */
/*
 * While on, a fetch that has ended is not decoded and its done callback not called: it waits, coded as it came and in order, so that a
 * reader who is behind holds little memory. Turned off, those that waited are delivered before this returns, unless a done callback
 * turns it on again. Cancelling works meanwhile.
 */
void fw_fetcher_hold(struct fw_fetcher *fr, bool on);
/* Of one that has ended with coded set, on any thread: body, kind, err and visit become what they would have been. */
void fw_fetch_decode(struct fw_fetch *f);
/*
 * Coded bodies that have been handed over take so many bytes in all, until they are decoded: they count as if they were on their way in,
 * so that transfers wait while they take max_buffered_bytes.
 */
void fw_fetcher_waiting(struct fw_fetcher *fr, size_t bytes);
/* Free what the answer holds; memory of the body buffer is kept for reuse when it is small. The request part is zeroed too. */
void fw_fetch_reset(struct fw_fetch *f);
/* The same, and the body's memory is freed. */
void fw_fetch_finish(struct fw_fetch *f);
uint32_t fw_fetcher_in_flight(const struct fw_fetcher *fr);
/* Bytes of coded bodies held now and at most so far: never more than max_buffered_bytes + max_body_bytes. */
void fw_fetcher_buffered(const struct fw_fetcher *fr, size_t *now, size_t *peak);

/* Versions of the libraries in use, for doctor and --version. */
void fw_fetch_versions(struct fw_buf *out);
/* The bundle of certificates when none is set; NULL: libcurl knows none. */
const char *fw_fetch_ca_file(void);
/* Load the trust store as a fetcher would; *n is how many certificates. */
FW_MUST_CHECK int fw_fetch_check_tls(const struct fw_fetch_config *c, size_t *n, const char **path, struct fw_err *err);

#endif
