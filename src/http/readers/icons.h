/* SPDX-License-Identifier: ISC */
/*
 * Icons of feeds, for all readers' APIs and the page. The store has what was fetched; what it lacks
 * or has for long is queued (api/icon.h), and there when the client comes again. An icon is
 * nobody's: callers look only for icons of feeds that the account subscribes.
 */
#ifndef FW_HTTP_READERS_ICONS_H
#define FW_HTTP_READERS_ICONS_H

#include "http/readers/feeds.h"

/*
 * The address that a feed names: its favicon, else its icon, which may be larger; in the arena.
 * Absent: none that can be fetched.
 */
struct fw_str http_icon_named(struct fw_arena *a, const struct fw_feed *f);
/*
 * Where to fetch a feed's icon: the address that it names, and if there is none, or it has no
 * picture, /favicon.ico of its site; in the arena. Absent: nowhere, or out of memory.
 */
struct icon_address http_icon_address(struct fw_arena *a, struct fw_str named, struct fw_str home, struct fw_str url);
/* Set icon_at and icon_id of feeds that were not read brief. */
FW_MUST_CHECK int http_icons_read(struct reader *rd, const struct reader_feeds *f);
/* The icon with its bytes, in the arena. out->type absent: there is none. */
FW_MUST_CHECK int http_icon_get(
	struct request *r, struct fw_arena *a, const struct icon_address *at, struct fw_icon *out, struct fw_err *err);
/* Set out to "image/png;base64,...". */
void http_icon_data(struct fw_buf *out, const struct fw_icon *icon);

#endif
