/* SPDX-License-Identifier: ISC */
/* What a tree of a query needs, and the names in the language. */
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

static unsigned has_reads(int64_t has)
{
	switch ((enum query_has)has) {
	case QUERY_HAS_AUTHOR:
	case QUERY_HAS_LINK:
	case QUERY_HAS_N:
		return 0;
	case QUERY_HAS_CONTENT:
		return QUERY_READS_BODY;
	case QUERY_HAS_AUDIO:
	case QUERY_HAS_VIDEO:
	case QUERY_HAS_IMAGE:
	case QUERY_HAS_ATTACHMENT:
	case QUERY_HAS_TAG:
		break;
	}
	return QUERY_READS_EXTRA;
}

unsigned query_reads(const struct query_node *q)
{
	unsigned reads = 0;

	if (!q)
		return 0;
	switch (q->op) {
	case QUERY_AND:
	case QUERY_OR:
	case QUERY_NOT:
		for (const struct query_node *c = q->child; c; c = c->next)
			reads |= query_reads(c);
		return reads;
	case QUERY_WORDS:
		return QUERY_READS_BODY;
	case QUERY_TAG:
		return QUERY_READS_EXTRA;
	case QUERY_LANG:
		return QUERY_READS_EXTRA | QUERY_READS_FEED;
	case QUERY_FEED:
		return q->number ? 0 : QUERY_READS_FEED;
	case QUERY_FOLDER:
		return QUERY_READS_FEED;
	case QUERY_HAS:
		return has_reads(q->number);
	case QUERY_TITLE:
	case QUERY_AUTHOR:
	case QUERY_URL:
	case QUERY_SITE:
	case QUERY_SINCE:
	case QUERY_UNTIL:
		break;
	}
	return 0;
}
