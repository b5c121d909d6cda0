/* SPDX-License-Identifier: ISC */
/* Filters attribute values of the elements that sanitising keeps. */
#ifndef FW_PARSE_HTML_VALUE_H
#define FW_PARSE_HTML_VALUE_H

#include "base/arena.h"

/*
 * A URL that is safe to show, absolute if base allows. Links: http, https, mailto, tel (a number,
 * not a code) and magnet. Media: http, https and, with data_images, a data: URL of a safe image
 * type of at most 64 KiB (WEB-03). url is decoded. Absent: refused.
 */
struct fw_str fw_html_url(struct fw_arena *a, struct fw_str base, struct fw_str url, bool media, bool data_images);
/* Is it a valid media URL, for any base? */
bool fw_html_is_media(struct fw_str url, bool data_images);
/* Decode %XX. Borrowed if there is no '%'; absent if the result is not UTF-8. */
struct fw_str fw_html_percent_decode(struct fw_arena *a, struct fw_str s);
/* A srcset without the candidates that are not valid media URLs. Absent if none is left. */
struct fw_str fw_html_srcset(struct fw_arena *a, struct fw_str base, struct fw_str srcset);
/* A style with only harmless properties and plain values. Absent if none is left. */
struct fw_str fw_html_style(struct fw_arena *a, struct fw_str style);

#endif
