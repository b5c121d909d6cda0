/* SPDX-License-Identifier: ISC */
#include "query/query.h"

static const char *const FIELD[] = {[QUERY_TITLE] = "title",
	[QUERY_AUTHOR] = "author",
	[QUERY_TAG] = "tag",
	[QUERY_URL] = "url",
	[QUERY_SITE] = "site",
	[QUERY_FEED] = "feed",
	[QUERY_FOLDER] = "folder",
	[QUERY_LANG] = "lang",
	[QUERY_SINCE] = "since",
	[QUERY_UNTIL] = "until",
	[QUERY_HAS] = "has"};
static const char *const HAS[QUERY_HAS_N] = {
	"audio", "video", "image", "attachment", "author", "tag", "link", "content"};

const char *query_has_name(enum query_has has)
{
	return HAS[has];
}

const char *query_field_name(enum query_op op)
{
	return FIELD[op];
}
