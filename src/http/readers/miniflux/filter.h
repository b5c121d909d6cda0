/* SPDX-License-Identifier: ISC */
/* Miniflux' API: the parameters that say which entries, and in which order. Pure. */
#ifndef FW_HTTP_READERS_MINIFLUX_FILTER_H
#define FW_HTTP_READERS_MINIFLUX_FILTER_H

#include "api/account.h"
#include "http/server/form.h"

#define MINIFLUX_LIMIT 100     /* unless the client says another; 0: all */
#define MINIFLUX_IDS_MAX 10000 /* of a list of numbers alone */

enum miniflux_order {
	MINIFLUX_BY_ID,
	MINIFLUX_BY_DATE,
	MINIFLUX_BY_SORT,   /* fw_stream.sort */
	MINIFLUX_BY_STATUS, /* unread, then read; by id */
	MINIFLUX_BY_CATEGORY_TITLE,
	MINIFLUX_BY_CATEGORY_ID,
};

struct miniflux_filter {
	struct fw_stream s; /* all but account_id, feed_id and folder; search is as it was typed */
	enum miniflux_order order;
	int64_t feed_id, category_id; /* 0: any */
	int64_t changed_after_ms;     /* 0: any time */
	bool nothing;                 /* no entry has such a status */
};

/* 1 or 0, by the words that Miniflux takes; -1: none of them, which it ignores. */
int miniflux_bool(struct fw_str s);
/* False: *name is the wrong parameter, *expected what it takes. */
FW_MUST_CHECK bool miniflux_filter_read(
	const struct http_form *f, struct miniflux_filter *out, const char **name, const char **expected);

#endif
