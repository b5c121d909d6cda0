/* SPDX-License-Identifier: ISC */
/* The location of an entry or feed: GeoRSS, GML, W3C geo, ICBM. */
#ifndef FW_PARSE_FEED_GEO_H
#define FW_PARSE_FEED_GEO_H

#include "parse/feed/frame.h"

void fw_geo_start(struct fw_start_event *w);
void fw_geo_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);

#endif
