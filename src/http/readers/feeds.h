/* SPDX-License-Identifier: ISC */
/* The subscriptions of an account in memory: for entries, which name their feeds. */
#ifndef FW_HTTP_READERS_FEEDS_H
#define FW_HTTP_READERS_FEEDS_H

#include "http/readers/reader.h"

/* Where a feed's icon is fetched: icons.h. url absent: nowhere. */
struct icon_address {
	struct fw_str url, spare; /* spare: where else, if there is no picture at url */
	bool second;              /* url was the spare one */
};
struct reader_feed {
	int64_t id, unread_n, newest_ms;
	struct fw_str title, folder, url, home, icon, error;
	struct icon_address icon_at; /* http_icons_read() */
	int64_t icon_id;             /* the same; 0: there is none */
	int64_t visit_ms, due_ms;    /* of its last visit, 0: never; and of the next */
	uint32_t fail_n;
	int http_status;
	enum fw_feed_status status;
};
struct reader_feeds {
	struct reader_feed *feed; /* by id */
	size_t n, cap;
};
/* All subscriptions, or feed_id alone. brief: only folders and counts. Strings are in the arena. */
FW_MUST_CHECK int reader_feeds_read(struct reader *rd, int64_t feed_id, bool brief, struct reader_feeds *out);
/* NULL: it is not subscribed. */
const struct reader_feed *reader_feed_find(const struct reader_feeds *f, int64_t id);

#endif
