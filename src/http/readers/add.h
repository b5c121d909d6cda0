/* SPDX-License-Identifier: ISC */
/* Subscribing by an address or by a file, for all APIs. */
#ifndef FW_HTTP_READERS_ADD_H
#define FW_HTTP_READERS_ADD_H

#include "http/readers/reader.h"
#include "http/readers/subscriptions.h"

/*
 * Subscribe to the feed at an address, or, with serve_discovery, to the one that the site there
 * names; with title, folder and login of *f. f->id is out; id 0: there is no feed, and
 * *why says so. False: responded.
 */
FW_MUST_CHECK bool reader_address_add(
	struct reader *rd, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok);
/*
 * The feeds that an address has: its own, or those that its page names; in the arena. n 0: none,
 * and *why says so. Without serve_discovery: the address. False: responded.
 */
struct reader_found {
	struct fw_str url, title;
	enum fw_format format; /* FW_FORMAT_NONE: unknown */
};
FW_MUST_CHECK bool reader_address_look(struct reader *rd, struct fw_str text, struct reader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok);
/* The account, for functions of subscriptions.h. */
struct subscriptions reader_subscriptions(struct reader *rd);
/* Subscribe to the feeds of the OPML file in the body. False: responded. */
FW_MUST_CHECK bool reader_opml_add(struct reader *rd, size_t *n, size_t *refused_n, enum MHD_Result *ok);

#endif
