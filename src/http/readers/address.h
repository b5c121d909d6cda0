/* SPDX-License-Identifier: ISC */
/*
 * Subscribing by an address that a person types, of a feed or of a site: what the page and the
 * readers' APIs share.
 *
 * With serve_discovery an address that the store does not know is fetched, to see whether it is a
 * feed or a page that names one. That has the limits and the address guard of all fetches, less
 * time, and one request of this server does it at once; others wait outside the pool. Without it an
 * address is taken for a feed's, and the workers fetch it.
 */
#ifndef FW_HTTP_READERS_ADDRESS_H
#define FW_HTTP_READERS_ADDRESS_H

#include "http/server/http.h"

struct address {
	struct request *r;
	struct fw_arena *arena;
	struct fw_err *err;
	struct fw_str url, user, pass; /* as it was typed; after address_follow() those of the feed */
	bool fetched;
	struct fw_response answer; /* if fetched: of url */
	struct fw_response page;   /* if it was followed: the page that names url */
	int64_t until_ms;          /* monotonic: when both must be there */
	int rc;
};

enum address_state {
	ADDRESS_READY,
	ADDRESS_INVALID, /* it is no address, and err says why */
	ADDRESS_LATER,   /* return from the route without a response; it runs again */
	ADDRESS_BUSY,    /* too many wait: ADDRESS_BUSY_TEXT */
	ADDRESS_FAILED,  /* rc, and err says why */
};
#define ADDRESS_BUSY_TEXT "too many addresses wait to be fetched"

/*
 * Read an address, and fetch it, unless the store knows it or there is no serve_discovery; always:
 * fetch it in any case. r, arena and err are set. address_close() follows in any case.
 */
enum address_state address_open(struct address *q, struct fw_str typed, bool always);
void address_close(struct address *q);
/* Fetch the first feed that the page names, if what was fetched is a page that does. */
FW_MUST_CHECK int address_follow(struct address *q);
/*
 * Subscribe to url, with title and folder of *f, and its login, if it has one. f->id is out. A
 * document that was fetched is the first visit; without one a worker will visit the feed.
 */
FW_MUST_CHECK int address_subscribe(struct address *q, int64_t account_id, struct fw_feed_new *f, int64_t now_ms);

#endif
