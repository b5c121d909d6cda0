/* SPDX-License-Identifier: ISC */
/* Subscriptions of an account: what the page and the readers' APIs share. */
#ifndef FW_HTTP_READERS_SUBSCRIPTIONS_H
#define FW_HTTP_READERS_SUBSCRIPTIONS_H

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
/* What became of an OPML file. */
#define SUBSCRIPTIONS_TOLD_MAX 100
struct subscriptions_imported {
	size_t added_n, had_n, refused_n;
	struct {
		uint32_t line;          /* of the file */
		struct fw_str words;    /* in the arena */
	} told[SUBSCRIPTIONS_TOLD_MAX]; /* the first ones that were refused */
	size_t told_n;
};
/*
 * Subscribe to the feeds of an OPML file. Refused are addresses that are invalid, and feeds that
 * the store has with another login. FW_EFORMAT: it is not an OPML file.
 */
FW_MUST_CHECK int subscriptions_import(
	const struct subscriptions *s, struct fw_str opml, struct subscriptions_imported *out);
/* Append all of them as OPML. */
FW_MUST_CHECK int subscriptions_export(const struct subscriptions *s, struct fw_buf *out);

#endif
