/* SPDX-License-Identifier: ISC */
/*
 * May a request do without a token? And may its body have this Content-Type? Pure.
 *
 * A connection from this machine is not enough, because a browser on this machine sends requests
 * for any web page: across origins, by a form, or to the page's own host name when that resolves to
 * 127.0.0.1 (DNS rebinding). So
 *  - Host must be a name of this machine;
 *  - the request must not come from a page of another origin (Origin, Sec-Fetch-Site);
 *  - it must not come through a proxy, behind which all clients seem to be on this machine.
 *
 * A page may send a form or text across origins without a preflight. So a JSON body must have a
 * JSON Content-Type. This holds with a token too, because a browser may add one by itself (Basic).
 */
#ifndef FW_HTTP_AUTH_TOKENLESS_H
#define FW_HTTP_AUTH_TOKENLESS_H

#include "api/token.h"

/*
 * The relevant parts of a request's head. A string is absent when there is no such header, and ""
 * when there are two.
 */
struct tokenless_head {
	bool local; /* the peer is a loopback address or a Unix socket */
	bool tls;
	bool forwarded;                         /* has a header that proxies add */
	bool fetched;                           /* has a header Sec-Fetch-*, which browsers add */
	struct fw_str host, origin, site, type; /* Host, Origin, Sec-Fetch-Site, Content-Type */
};

/* Add one header. */
void tokenless_header(struct tokenless_head *h, struct fw_str name, struct fw_str value);

enum tokenless {
	TOKENLESS_MAY,
	TOKENLESS_CLOSED,    /* all requests need a token: fw_tokenless_why() */
	TOKENLESS_REMOTE,    /* from another machine, or from an unknown address */
	TOKENLESS_FORWARDED, /* through a proxy */
	TOKENLESS_HOST,      /* Host is missing, or not a name of this machine */
	TOKENLESS_ORIGIN,    /* from a page of another origin */
};
/*
 * server: the rule for all requests, by the settings; names: the setting serve_host_names, or NULL.
 */
enum tokenless tokenless_check(enum fw_tokenless server, const char *names, const struct tokenless_head *h);

/* Does a page of another origin send this request? */
bool tokenless_is_foreign(const struct tokenless_head *h);

enum tokenless_body {
	BODY_ANY,   /* the route checks the type */
	BODY_FEED,  /* the route checks it, but a browser must send one */
	BODY_JSON,  /* application/json */
	BODY_LINES, /* application/json or application/x-ndjson */
};
/*
 * Is this Content-Type allowed? A missing one, and a form's, which curl sends by default, count as
 * the right type unless a browser sends the request.
 */
bool tokenless_body_fits(enum tokenless_body want, const struct tokenless_head *h);

#endif
