/* SPDX-License-Identifier: ISC */
/* Subscriptions of an account: what the page and the readers' APIs share. */
#ifndef FW_HTTP_SUBSCRIPTIONS_H
#define FW_HTTP_SUBSCRIPTIONS_H

#include "api/account.h"

struct fw_buf;

/* The account's title, else the feed's, else its address. s->feed is set. */
struct fw_str subscription_title(const struct fw_subscription *s);

struct subscriptions {
	struct fw_store *store;
	int64_t account_id, now_ms;
	struct fw_arena *arena;
	struct fw_err *err;
};
/*
 * Subscribe to the feeds of an OPML file: n of them, without the refused, whose addresses are
 * invalid. FW_EFORMAT: it is no OPML file.
 */
FW_MUST_CHECK int subscriptions_import(const struct subscriptions *s, struct fw_str opml, size_t *n, size_t *refused_n);
/* Append all of them as OPML. */
FW_MUST_CHECK int subscriptions_export(const struct subscriptions *s, struct fw_buf *out);

#endif
