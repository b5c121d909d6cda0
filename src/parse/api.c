/* SPDX-License-Identifier: ISC */
/*
 * The public functions for HTML and subscription lists. Memory comes from malloc, one block per
 * result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "parse/discover.h"
#include "parse/html/sanitize.h"
#include "parse/parse.h"

int fw_sanitize(struct fw_str html, struct fw_str base, unsigned flags, char **out, size_t *len, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int rc = fw_html_sanitize(html, base, flags, &b, err);

	*out = NULL;
	*len = 0;
	if (!rc && !b.p) /* an empty result is a string too */
		fw_buf_adds(&b, "");
	if (!rc && b.rc)
		rc = fw_err_set(err, b.rc, "out of memory");
	if (!rc)
		*out = fw_buf_take(&b, len);
	fw_buf_finish(&b);
	return rc;
}

static struct fw_str buf_to_string(char **at, struct fw_str s)
{
	struct fw_str out = {*at, s.len};

	if (!s.p)
		return FW_STR_NONE;
	memcpy(*at, s.p, s.len);
	*at += s.len;
	return out;
}

/* Copy the list and all its strings into one block, which one free() releases. */
static int link_list_pack(const struct fw_link *list, struct fw_link **out)
{
	size_t n = 0, bytes = 0;
	struct fw_link *to;
	char *at;

	for (const struct fw_link *l = list; l; l = l->next) {
		n++;
		bytes += l->rel.len + l->type.len + l->href.len + l->title.len + l->hreflang.len;
	}
	*out = to = n ? malloc(n * sizeof(*to) + bytes) : NULL;
	if (!to)
		return n ? FW_ENOMEM : 0;
	at = (char *)(to + n);
	for (const struct fw_link *l = list; l; l = l->next, to++) {
		*to = (struct fw_link){.rel = buf_to_string(&at, l->rel),
			.type = buf_to_string(&at, l->type),
			.href = buf_to_string(&at, l->href),
			.title = buf_to_string(&at, l->title),
			.hreflang = buf_to_string(&at, l->hreflang),
			.length = l->length,
			.next = l->next ? to + 1 : NULL};
	}
	return 0;
}

int fw_discover(const void *html, size_t len, struct fw_str url, struct fw_str content_type, struct fw_link **links,
	struct fw_err *err)
{
	struct fw_link *found = NULL;
	struct fw_arena a;
	int rc;

	*links = NULL;
	fw_arena_init(&a, 0);
	rc = fw_find_feeds(&a, FW_STR_NONE, (struct fw_str){html, len}, content_type, url, &found, err);
	if (!rc && link_list_pack(found, links))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	fw_arena_finish(&a);
	return rc;
}

int fw_discover_header(struct fw_str link_header, struct fw_str url, struct fw_link **links, struct fw_err *err)
{
	struct fw_arena a;
	int rc;

	*links = NULL;
	fw_arena_init(&a, 0);
	rc = link_list_pack(fw_link_feeds(&a, link_header, url), links);
	rc = rc || a.failed ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
	fw_arena_finish(&a);
	return rc;
}

int fw_opml_read(
	const void *bytes, size_t len, fw_opml_cb *cb, fw_opml_problem_cb *problem, void *ctx, struct fw_err *err)
{
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_opml_parse(&a, (struct fw_str){bytes, len}, cb, problem, ctx, err);
	fw_arena_finish(&a);
	return rc;
}
