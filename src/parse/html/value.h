/* SPDX-License-Identifier: ISC */
/* What may stand in an attribute that survives sanitising. */
#ifndef FW_PARSE_HTML_VALUE_H
#define FW_PARSE_HTML_VALUE_H

#include "base/arena.h"

/*
 * A URL that may be shown, absolute where base allows: links are http, https, mailto, tel (a number, no code) and magnet; media is
 * http, https and, if asked for, a data: URL of a safe image type and at most 64 KiB (WEB-03). url is decoded. Absent when it is
 * refused.
 */
struct fw_str fw_html_url(struct fw_arena *a, struct fw_str base, struct fw_str url, bool media, bool data_images);
/* Does it give an address for media, whatever the base? */
bool fw_html_is_media(struct fw_str url, bool data_images);
/* "%41" is "A"; borrowed when there is no '%'; absent when it is not UTF-8 afterwards. */
struct fw_str fw_html_percent_decode(struct fw_arena *a, struct fw_str s);
/* A srcset whose candidates are all such media; those that are not are left out. Absent when none is left. */
struct fw_str fw_html_srcset(struct fw_arena *a, struct fw_str base, struct fw_str srcset);
/* A style of which only harmless properties with plain values are left. Absent when none is left. */
struct fw_str fw_html_style(struct fw_arena *a, struct fw_str style);

#endif
