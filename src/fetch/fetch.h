/* SPDX-License-Identifier: ISC */
/*
 * Fetches documents over HTTP: thousands of transfers in flight on one libuv loop. Each has its
 * limits; redirects are followed here, not by libcurl; the response's codings are undone; and the
 * guard checks every address before it is connected to. This is the only room that knows libcurl.
 *
 * The caller owns a struct fw_fetch: it fills in the request, and gets the response in the same
 * struct when done() is called. Nothing blocks: names are looked up by c-ares on the loop. One
 * fetcher belongs to one loop and its thread; only fw_fetch_decode() may run elsewhere.
 */
#ifndef FW_FETCH_FETCH_H
#define FW_FETCH_FETCH_H

#include <uv.h>

#include "base/buf.h"
#include "feedwheel/store.h"
#include "fetch/decode.h"
#include "fetch/guard.h"

/* The beginning of the error of a wrong certificate; the other errors of FW_VISIT_TLS have none. */
#define FW_FETCH_CERTIFICATE "invalid server certificate"

struct fw_fetch_config {
	const char *user_agent; /* "feedwheel/0.1 (+https://...)" */
	/* borrowed for the fetcher's life; NULL: only the public internet is allowed */
	const struct fw_guard *guard;
	const struct fw_offset_clock *clock; /* of visits; NULL: this machine's */
	uint32_t max_in_flight;              /* number of slots; sizes the connection cache */
	/*
	 * [0: no limit] concurrent transfers at one address; others wait for a slot. Not used
	 * behind a proxy
	 */
	uint32_t address_concurrency;
	uint32_t max_redirects; /* [5] */
	/* [10,000] for the name lookup, and again for TCP and TLS together */
	int64_t connect_timeout_ms;
	int64_t first_byte_timeout_ms; /* [15,000] from the connection to the first byte */
	/*
	 * [60,000] per visit with all redirects; waiting for a slot at an address takes at most
	 * half of it
	 */
	int64_t total_timeout_ms;
	/* fails below this many bytes/s over this time [100, 20,000] */
	int64_t low_speed_bytes, low_speed_ms;
	/* limit of the body, both decoded and as transferred [16 MiB] */
	size_t max_body_bytes;
	/* a body that decodes to more than this is handed over coded [0: none is] */
	size_t eager_bytes;
	uint32_t max_compression_ratio; /* limit of decoded/transferred, beyond the first MiB [200] */
	/*
	 * limit of all undecoded bodies together [32 MiB]; above it all transfers but one pause. 0:
	 * the default
	 */
	size_t max_buffered_bytes;
	size_t max_header_bytes; /* [100 KiB] */
	uint32_t max_header_n;   /* [200] */
	const char *dns_servers; /* "127.0.0.1:5353,..."; NULL: the system's */
	const char *ca_file;     /* NULL: the system's bundle */
	const char *proxy;       /* NULL: none; the environment is never read */
	bool http2;              /* [true] */
};

void fw_fetch_config_default(struct fw_fetch_config *c);

#define FW_FETCH_HEADERS_MAX 4

struct fw_fetcher;
struct fw_fetch;
/*
 * The fetch has ended, successfully or not. Called from the loop, never from within
 * fw_fetch_start(). The callback may start and cancel other fetches.
 */
typedef void fw_fetch_done_cb(struct fw_fetch *f);

/*
 * A request is connected and about to be sent. False: it must not be sent; the fetch ends with
 * deferred set. The callback must not start or end fetches.
 */
typedef bool fw_fetch_send_cb(struct fw_fetch *f);
/* The request was sent, at the latest now. The callback must not start or end fetches. */
typedef void fw_fetch_sent_cb(struct fw_fetch *f);
/*
 * A further request, to this URL, is needed: after a redirect, or because the server closed a kept
 * connection as the former one was sent. True: it waits until fw_fetch_continue(f), and no timeout
 * counts meanwhile. False: it begins now. The callback must not start or end fetches.
 */
typedef bool fw_fetch_further_cb(struct fw_fetch *f, struct fw_str url);

struct fw_fetch {
	/* request: owned by the caller, borrowed until done */
	struct fw_str url;
	struct fw_str validator_url, etag, last_modified; /* sent only to exactly this URL */
	struct fw_str username, password;                 /* sent only to url's origin */
	/* keep the body of an error response too, for a person to read */
	bool keep_error_body;
	/*
	 * if present: POST this body. Redirects 307 and 308 repeat it, other redirects are the
	 * response. A redirect from https to http fails, because the body may hold a secret
	 */
	struct fw_str post;
	const char *post_type; /* NULL: application/x-www-form-urlencoded */
	/* more header lines, "Name: value", each with its NUL; at most FW_FETCH_HEADERS_MAX */
	struct fw_str post_headers;
	bool no_redirects; /* a redirect is the response */
	fw_fetch_done_cb *done;
	fw_fetch_send_cb *send; /* NULL: each request may be sent */
	fw_fetch_sent_cb *sent;
	fw_fetch_further_cb *further; /* NULL: no request waits */
	void *ctx;

	/* response. kind: OK for any 2xx with its body; NOT_MODIFIED; else the kind of failure */
	enum fw_visit_kind kind;
	struct fw_err err; /* our own text, never with bytes of the response (NET-16) */
	int http_status;
	struct fw_buf body; /* decoded; only of 2xx, unless keep_error_body */
	/* body is still coded, as transferred: call fw_fetch_decode() */
	bool coded;
	struct fw_str final_url; /* URL of the response; owned by the fetch */
	/* target of an unbroken chain of 301/308 from url; absent: none */
	struct fw_str permanent_url;
	uint32_t hops;
	/* headers of the last response, byte for byte; absent when not sent; owned by the fetch */
	struct fw_str h_etag, h_last_modified, h_content_type, h_cache_control, h_expires, h_date, h_age, h_retry_after,
		h_link, h_content_location, h_location, h_content_encoding;
	/*
	 * timings, bytes, hops, status, kind and at_ms are filled in. queue_us: the time spent
	 * waiting for slots and for fw_fetch_continue(); no other timing includes it
	 */
	struct fw_visit visit;
	/* kinds DNS and CONNECT: actively refused (no such name, or nothing listens on the port) */
	bool refused;
	bool resolved;             /* url's host has an address (not known behind a proxy) */
	unsigned char address[16]; /* the lowest address, as a key of fw_limiter_key() */
	/* it ended without addresses: age of the name lookup whose result it got */
	int64_t name_age_ms;
	/* kind LOCAL: deferred, because the address had no slot in time or send() refused */
	bool deferred;
	bool body_partial;              /* the body is truncated; kind tells why */
	struct fw_decode_limits limits; /* limits for fw_fetch_decode() */

	struct fw_fetch_priv *priv; /* set while in flight */
	char *text;                 /* memory of the strings above */
};

/*
 * config's strings are copied. If SIGPIPE has its default disposition, it is set to be ignored.
 * Errors: FW_EINVAL: dns_servers, proxy or user_agent; FW_EIO; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_fetcher_create(
	uv_loop_t *loop, const struct fw_fetch_config *c, struct fw_fetcher **out, struct fw_err *err);
/*
 * Destroy a fetcher whose fetches have all ended; the last done() may call this. Its loop handles
 * close when the loop runs next: run the loop until they are gone. NULL is allowed.
 */
void fw_fetcher_destroy(struct fw_fetcher *fr);
/*
 * Start a fetch. All of f but the request must be zeroed. Fails only for want of memory
 * (FW_ENOMEM); an invalid URL is reported through done().
 */
FW_MUST_CHECK int fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *err);
/* Begin the further request that waits. done() is not called before this returns. */
void fw_fetch_continue(struct fw_fetch *f);
/*
 * End the fetch now: done() is called with kind LOCAL before this returns. No effect on one that
 * has ended.
 */
void fw_fetch_cancel(struct fw_fetch *f);
/*
 * End the fetch now if its host has not responded yet: done() is called with kind TIMEOUT before
 * this returns. False: the response has begun, or the fetch has ended.
 */
bool fw_fetch_abandon(struct fw_fetch *f);
/* Would fw_fetch_abandon() end it? Not while it waits for a slot or for fw_fetch_continue(). */
bool fw_fetch_is_silent(const struct fw_fetch *f);
/*
 * Backpressure. While on, fetches that have ended wait in order, with their bodies coded as
 * transferred, so that a slow reader holds little memory; done() is not called. Turning it off
 * delivers them before this returns, unless a done() turns it on again. Cancelling works meanwhile.
 */
void fw_fetcher_hold(struct fw_fetcher *fr, bool on);
/*
 * Decode the body of a fetch that ended with `coded` set; sets body, kind, err and visit. Any
 * thread.
 */
void fw_fetch_decode(struct fw_fetch *f);
/*
 * Bodies that were handed over coded and are not decoded yet take this many bytes in all. They
 * count against max_buffered_bytes, so transfers pause meanwhile.
 */
void fw_fetcher_set_undecoded(struct fw_fetcher *fr, size_t bytes);
/* Free the response and zero the whole struct; a small body buffer is kept for reuse. */
void fw_fetch_reset(struct fw_fetch *f);
/* The same, and free the body buffer too. */
void fw_fetch_finish(struct fw_fetch *f);
uint32_t fw_fetcher_in_flight(const struct fw_fetcher *fr);

/* Versions of the libraries in use, for doctor and --version. */
void fw_fetch_versions(struct fw_buf *out);
/* Load what libcurl and its TLS library load late, for a process that may load no code later. */
void fw_fetch_preload(void);
/* Default certificate bundle; NULL: libcurl has none. */
const char *fw_fetch_ca_file(void);
/* Load the trust store as a fetcher would. *n: the number of certificates; *path: the bundle. */
FW_MUST_CHECK int fw_fetch_check_tls(const struct fw_fetch_config *c, size_t *n, const char **path, struct fw_err *err);

#endif
