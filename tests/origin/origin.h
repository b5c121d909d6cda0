/* SPDX-License-Identifier: ISC */
/*
 * The test origin: a web server that misbehaves on purpose. For loopback only; never install it.
 *
 *   docs.c   documents, their codings (created once), generated growing feeds, bombs
 *   plan.c   which feed misbehaves and how: words -> struct plan
 *   answer.c request + plan -> the bytes of a response and what happens after them
 *   serve.c  connections: one process, epoll, responses written from prepared memory
 *   stats.c  request log, counts per host, the gap between requests
 *   main.c   options, feed URLs, signals
 *
 * Virtual feed i has document i mod n on host i mod H. Host h has the address 127.(1+..).x.y, so
 * each host is reachable on Linux without any set-up. The manual is `origin --help`.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <netinet/in.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"

/* ---- docs.c ---------------------------------------------------------------------------------- */

/* one body in one coding and framing, ready to send */
struct coded {
	struct coded *next;
	char *spec; /* "gzip", "br+gzip", "gzip|chunked", "" */
	struct fw_str body;
};

struct doc {
	const char *name;
	const char *type; /* media type, guessed from name and bytes */
	struct fw_str body;
	uint64_t hash;
	struct coded *coded;
};

struct docs {
	struct doc *doc;
	size_t n;
};

/* Each regular file of dir, by name. Exits with a message if there is none. */
void docs_load(struct docs *d, const char *dir);
/*
 * The body in the given coding ("" identity, "gzip", "deflate", "raw-deflate", "br", "zstd", joined
 * by '+'), optionally framed as chunks; created at its first use. NULL: unknown coding.
 */
const struct fw_str *doc_coded(struct doc *d, const char *coding, bool chunked);
bool doc_encode(struct fw_str in, const char *coding, struct fw_buf *out);
void doc_chunk(struct fw_str in, struct fw_buf *out);
/* A feed that has grown to `entries` entries and shows the newest `window` of them. */
void doc_grown(struct fw_buf *out, size_t feed, int64_t entries, int64_t window);
/* The repeated part of an endless gzip stream (1 MiB of spaces, deflated, no final block). */
struct fw_str doc_bomb_block(void);

/* ---- plan.c ---------------------------------------------------------------------------------- */

enum where { NOWHERE, BEFORE_HEADERS, MID_HEADERS, MID_BODY };
enum source { FROM_DOC, FROM_HTML, FROM_BARE_HTML, FROM_JUNK, FROM_EMPTY, FROM_GROWTH };
enum validators { V_BOTH, V_ETAG, V_LM, V_NONE, V_WEAK, V_ODD, V_FRESH };
enum net { NET_OK, NET_NOACCEPT, NET_REFUSE, NET_NXDOMAIN };

struct plan {
	const char *text; /* as written */
	/* applies only to the first N requests, or only to those after the Nth. first -1: to all */
	int64_t first, after;
	int status;           /* 0: 200 or 304 */
	char *redirect;       /* the target, see plan.c; status has the code */
	char *headers;        /* whole lines, each with CRLF */
	char *type, *charset; /* NULL: guessed; type "" none */
	char *coding;         /* forced; NULL: gzip if the client accepts it */
	char *claim;          /* the Content-Encoding header, whatever the body is */
	bool chunked, until_close, close, cookie, ignore_validators, always_304, stale_304, http10;
	enum validators validators;
	enum source source;
	enum where reset, hang, shut;
	enum net net;
	int cut_percent;             /* sends only this part of the coded body, with matching lengths; 0: all */
	int64_t missing;             /* Content-Length is this many bytes too large */
	int64_t drip_bps;            /* bytes per second; 0: full speed */
	int64_t latency_ms;          /* -1: by --latency */
	int64_t bomb_mb;             /* MiB of spaces, compressed; -1: endless gzip */
	int64_t header_kb, header_n; /* one header of this size; this many headers */
	bool endless, endless_headers;
	bool has_expires;
	int64_t expires_s; /* from now */
	int64_t grow_requests, grow_ms, grow_start, window;
};

/* the feeds that a plan applies to */
struct rule {
	int64_t from, to;  /* inclusive */
	int64_t mod, rest; /* mod 0: all of from..to */
	struct plan *plan;
};

struct rules {
	struct rule *rule;
	size_t n;
};

/* Words -> plan, kept until the end; NULL with why[] set. */
struct plan *plan_parse(struct fw_str words, char *why, size_t why_cap);
/* "SELECTOR WORDS"; selectors: 7, 10-19, %5, %5=2, *. Exits with a message that names `where`. */
void rules_add(struct rules *r, struct fw_str line, const char *where);
void rules_load(struct rules *r, const char *file);
struct plan *rules_find(const struct rules *r, size_t feed);
extern const char plan_help[];

/* ---- origin (main.c) ------------------------------------------------------------------------- */

struct feed {
	struct plan *plan; /* or NULL */
	uint32_t requests; /* for /feed/I and /with/.../feed/I together */
	int32_t latency_ms;
};

struct origin {
	struct docs docs;
	struct rules rules;
	struct feed *feed;
	size_t feed_n, host_n;
	uint16_t port, refuse_port;
	uint64_t seed;
	int64_t start_ms; /* monotonic */
	bool keep_alive, tls;
	bool log_on;
	const char *cert, *key;
};

extern struct origin origin;

void origin_host(char dst[INET_ADDRSTRLEN], size_t host);
/* The URL of feed i for clients, with scheme and port. */
void origin_url(struct fw_buf *out, size_t feed);
FW_NORETURN FW_PRINTF(1, 2) void die(const char *fmt, ...);

/* one request, for the log */
struct request {
	uint64_t conn;
	uint32_t serial; /* within its connection, from 1 */
	int64_t start_us, wall_ms;
	int64_t came_us; /* when the kernel received it, accurate to some ms; start_us: when the origin read it */
	uint32_t host;   /* index; host_n: an address that is not one of ours */
	int64_t feed;    /* or -1 */
	struct fw_str method, target, version, headers; /* headers: raw lines */
	int status;
	uint64_t bytes;
	const char *end;       /* "ok", "reset", "cut", "gone" (client left), "hang" */
	const char *violation; /* or NULL */
};

/* ---- answer.c -------------------------------------------------------------------------------- */

enum after { KEEP, CLOSE, RESET, HANG };

/*
 * Head, then body, then `repeats` times repeat (-1: endless); after `limit` bytes `after` happens.
 */
struct answer {
	struct fw_buf head, own; /* own: a body created for this response */
	struct fw_str body, repeat;
	int64_t repeats;
	uint64_t limit;
	enum after after;
	int64_t latency_ms, drip_bps;
};

/*
 * r: method, target, version, headers and host are set; fills feed, status, violation. The buffers
 * are reused from one response to the next.
 */
void answer(struct request *r, struct answer *a);
/* Creates what would take long while requests are served. */
void answer_prepare(const struct plan *p);
struct fw_str header_get(struct fw_str lines, struct fw_str name);

/* ---- serve.c --------------------------------------------------------------------------------- */

/* Listens (port 0: any) and sets origin.port; then serves until SIGTERM or SIGINT. */
void serve_listen(uint16_t port);
void serve(void);

/* ---- stats.c --------------------------------------------------------------------------------- */

void stats_init(const char *log_file);
void stats_conn(uint32_t host, int delta);
void stats_start(const struct request *r);
void stats_end(const struct request *r);
void stats_json(struct fw_buf *out, bool hosts);
void stats_flush(void);

#endif
