/* SPDX-License-Identifier: ISC */
/* Miniflux' API: the parameters that say which entries, and in which order. Pure. */
#ifndef FW_HTTP_MINIFLUX_FILTER_H
#define FW_HTTP_MINIFLUX_FILTER_H

#include "api/account.h"
#include "http/form.h"

#define MINIFLUX_LIMIT 100 /* unless the client says another; 0: all */

enum miniflux_order {
	MINIFLUX_BY_ID,
	MINIFLUX_BY_DATE,
	MINIFLUX_BY_STATUS, /* unread, then read; by id */
	MINIFLUX_BY_CATEGORY_TITLE,
	MINIFLUX_BY_CATEGORY_ID,
};

struct miniflux_filter {
	struct fw_stream s; /* all but account_id, feed_id and folder */
	enum miniflux_order order;
	int64_t feed_id, category_id; /* 0: any */
	int64_t changed_after_ms;     /* 0: any time */
	bool nothing;                 /* no entry has such a status */
};

/* False: *name is the wrong parameter, *expected what it takes. */
FW_MUST_CHECK bool miniflux_filter_read(
	const struct http_form *f, struct miniflux_filter *out, const char **name, const char **expected);

#endif
