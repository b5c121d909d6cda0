/* SPDX-License-Identifier: ISC */
/*
 * The ids of the Google Reader API: those of items in three forms, and those of streams. Pure.
 */
#ifndef FW_HTTP_READERS_GREADER_ID_H
#define FW_HTTP_READERS_GREADER_ID_H

#include "base/str.h"

#define GREADER_ITEM "tag:google.com,2005:reader/item/"
#define GREADER_ITEM_MAX (sizeof(GREADER_ITEM) + 16)
#define GREADER_STATE "user/-/state/com.google/"
#define GREADER_LABEL "user/-/label/"

/*
 * An item's id: 1 to 16 hexadecimal digits behind the prefix, 16 of them without it, or a signed
 * decimal number. 16 digits without a prefix are hexadecimal, as clients pad only those.
 */
FW_MUST_CHECK bool greader_item_read(struct fw_str s, int64_t *id);
/* The long form. */
void greader_item_write(char out[GREADER_ITEM_MAX], int64_t id);

enum greader_kind {
	GREADER_ALL, /* reading-list */
	GREADER_READ,
	GREADER_UNREAD, /* kept-unread */
	GREADER_STARRED,
	GREADER_OTHER, /* a state that nothing here has: broadcast, like, tracking-kept-unread ... */
	GREADER_NAMED, /* a folder, or a label of entries */
	GREADER_FEED,
};

struct greader_stream {
	enum greader_kind kind;
	struct fw_str name; /* of a label; UTF-8 without control characters */
	int64_t feed_id;    /* 0: by url */
	struct fw_str url;
};
/* "user/-/state/...", "user/-/label/NAME", "feed/NUMBER", "feed/URL"; "-" may be any user. */
FW_MUST_CHECK bool greader_stream_read(struct fw_str s, struct greader_stream *out);

#endif
