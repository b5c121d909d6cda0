/* SPDX-License-Identifier: ISC */
/* Finds the new address of a podcast that has moved. */
#ifndef FW_PARSE_FEED_PODCAST_H
#define FW_PARSE_FEED_PODCAST_H

#include "feedwheel/document.h"

/* itunes:new-feed-url; absent too if it is no http(s) address. */
struct fw_str fw_new_feed_url(const struct fw_document *doc);

#endif
