/* SPDX-License-Identifier: ISC */
/* From what is known of a feed to the subscription it should have. Pure. */
#ifndef FW_ENGINE_WEBSUB_WISH_H
#define FW_ENGINE_WEBSUB_WISH_H

#include "base/arena.h"
#include "engine/websub/websub_law.h"

/*
 * Setting websub_url made into what a callback's address begins with: "https://example.org/websub/". Errors: FW_EINVAL names the setting.
 */
FW_MUST_CHECK int wish_base(const char *url, struct fw_buf *out, struct fw_err *err);
/* Hubs of an active feed: its own, those its document lists besides, or its cloud. base: as above. Texts are the feed's, or in the arena. */
void wish_of_feed(const struct fw_feed *f, struct fw_str base, struct fw_arena *a, struct sub_wish *out);
uint64_t wish_hash(const struct sub_wish *w); /* never 0 */

/* The forms that hubs are sent. secret may be absent. */
void wish_subscribe_form(const struct sub *s, bool subscribe, struct fw_str token, struct fw_str secret, int64_t lease_ms, struct fw_buf *out);
void wish_cloud_form(const struct sub *s, struct fw_str token, struct fw_buf *out);
/* Does the cloud's answer, which is XML or JSON, say no? */
bool wish_cloud_refused(struct fw_str answer);

#endif
