/* SPDX-License-Identifier: ISC */
/*
 * May this request go without a token? A browser on the server's own machine sends what a page of any web site has it
 * send: across origins, by a form, or to the page's own origin, when its name leads to 127.0.0.1 all of a sudden (DNS
 * rebinding). So it is not enough that a request comes from this machine. Host has to be a name of the machine, and the
 * request may come neither from a page of another origin (Origin, Sec-Fetch-Site) nor by a proxy, behind which all clients
 * seem to be on this machine.
 *
 * Without asking first, a page may send a form or text across origins: so a body that is read as JSON has to be declared as
 * JSON. This holds with a token too, for a browser may add one by itself (Basic). Pure.
 */
#ifndef FW_HTTP_TOKENLESS_H
#define FW_HTTP_TOKENLESS_H

#include "api/token.h"

/* The head of a request, as far as it matters here. Absent: there is no such header. "": there are two, neither counts. */
struct tokenless_head {
	bool local;                  /* the connection's other end is a loopback address or a unix socket */
	bool tls;
	bool forwarded;              /* a header that proxies add */
	bool fetched;                /* a header Sec-Fetch-*: a browser sends it */
	struct fw_str host, origin, site, type; /* Host, Origin, Sec-Fetch-Site, Content-Type */
};

/* One header more. */
void tokenless_header(struct tokenless_head *h, struct fw_str name, struct fw_str value);

enum tokenless {
	TOKENLESS_MAY,
	TOKENLESS_CLOSED,            /* nobody may: fw_tokenless_why() */
	TOKENLESS_REMOTE,            /* it comes from another machine, or nobody knows from where */
	TOKENLESS_FORWARDED,         /* it comes by a proxy */
	TOKENLESS_HOST,              /* Host is none, or not one of ours */
	TOKENLESS_ORIGIN,            /* it comes from a page of another origin */
};
/* server: what holds for all requests; names: the setting serve_names, or NULL. */
enum tokenless tokenless_judge(enum fw_tokenless server, const char *names, const struct tokenless_head *h);

enum body_type {
	BODY_ANY,                    /* the route looks itself */
	BODY_FEED,                   /* the same, but from a browser it needs a type */
	BODY_JSON,                   /* application/json */
	BODY_LINES,                  /* the same, or application/x-ndjson */
};
/*
 * May a body of this type stand behind this head? No Content-Type, or a form's, which curl sends by itself, is taken for what
 * is wanted when no browser sends it.
 */
bool tokenless_body_fits(enum body_type want, const struct tokenless_head *h);

#endif
