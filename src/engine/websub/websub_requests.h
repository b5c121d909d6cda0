/* SPDX-License-Identifier: ISC */
/*
 * The desired subscription of a feed, from its stored state, and the requests that subscribe it.
 * Pure.
 */
#ifndef FW_ENGINE_WEBSUB_REQUESTS_H
#define FW_ENGINE_WEBSUB_REQUESTS_H

#include "base/arena.h"
#include "engine/callback_url.h"
#include "engine/websub/websub_rules.h"

/*
 * Derives the desired subscription. Hubs of an active feed: its own, others that its document
 * lists, or else its cloud. base: from callback_base(). Strings are the feed's, or in the arena.
 */
void sub_desired_of_feed(const struct fw_feed *f, struct fw_str base, struct fw_arena *a, struct sub_desired *out);
uint64_t sub_desired_hash(const struct sub_desired *w); /* never 0 */

/* The bodies of requests to hubs. secret may be absent. */
void subscribe_form_write(const struct sub *s, bool subscribe, struct fw_str token, struct fw_str secret,
	int64_t lease_ms, struct fw_buf *out);
void cloud_form_write(const struct sub *s, struct fw_str token, struct fw_buf *out);
/* True if the cloud's response, XML or JSON, reports a failure. */
bool cloud_is_refused(struct fw_str answer);

#endif
