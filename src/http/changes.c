/* SPDX-License-Identifier: ISC */
/*
 * GET /v1/changes: the log of changes, page by page; GET /v1/entries/ID/revisions: the versions of
 * an entry. GET /v1/stream has the changes as they happen.
 */
#include "api/change.h"
#include "api/view.h"
#include "base/log.h"
#include "http/http.h"
#include "base/banned.h"

#define LIMIT 100
#define LIMIT_MAX 1000
#define REVISIONS_BYTES ((size_t)64 << 20)
#define FULL_BYTES ((size_t)1 << 20) /* a page ends with the change that reaches this size */

struct change_page {
	struct list_page p;
	struct fw_change_query q;
	unsigned flags;
};

static int change_list_add(void *ctx, const struct fw_change *c)
{
	struct change_page *l = ctx;
	struct fw_err err;

	if (fw_change_json(&l->p.j, NULL, c, l->flags, &err)) /* it was written without its content */
		fw_warn("%s", err.text);
	return l->p.out.len >= FULL_BYTES;
}

static bool change_page_params(struct change_page *l, enum MHD_Result *ok)
{
	struct request *r = l->p.r;
	struct fw_str after = http_param(r, "after");
	int64_t limit = LIMIT;

	if (after.p && !fw_change_place_read(after, &l->q)) {
		*ok = http_param_wrong(r, "after", "0, the id of a change, or next of an earlier response");
		return false;
	}
	if (!http_param_int(r, "feed", 1, INT64_MAX, &l->q.feed_id, ok) ||
		!http_param_int(r, "limit", 1, LIMIT_MAX, &limit, ok) || !http_param_content(r, &l->flags, ok))
		return false;
	l->q.limit = (size_t)limit;
	l->q.content = l->flags != 0;
	return true;
}

enum MHD_Result http_change_list(struct request *r)
{
	struct change_page l = {.flags = 0};
	char place[FW_CHANGE_PLACE_MAX];
	struct fw_err err = {0};
	enum MHD_Result ok;
	int rc;

	list_page_begin(&l.p, r);
	if (!change_page_params(&l, &ok)) {
		fw_arena_finish(&l.p.arena);
		return ok;
	}
	fw_json_object(&l.p.j, NULL);
	fw_json_array(&l.p.j, "changes");
	rc = fw_store_change_list(r->store, &l.q, change_list_add, &l, &err);
	if (rc == FW_EGONE) {
		fw_buf_finish(&l.p.out);
		fw_arena_finish(&l.p.arena);
		return http_problem_number(r, MHD_HTTP_GONE, "changes_pruned", "first", l.q.first_id,
			"changes after this place were pruned (changes_retention_ms): read all entries anew from "
			"after=0, or go on with the first change left");
	}
	fw_json_end(&l.p.j);
	fw_change_place_next(&l.q, place);
	fw_json_cstr(&l.p.j, "next", place);
	fw_json_bool(&l.p.j, "more", l.q.next_id < l.q.head_id);
	fw_json_end(&l.p.j);
	return list_page_send(&l.p, "application/json", rc, &err);
}

enum MHD_Result http_revision_list(struct request *r)
{
	unsigned flags = FW_VIEW_CONTENT;
	struct fw_version *v = NULL;
	struct fw_err err = {0};
	struct list_page p;
	enum MHD_Result ok;
	size_t n = 0;
	int rc;

	if (!http_param_content(r, &flags, &ok))
		return ok;
	list_page_begin(&p, r);
	p.arena.max_bytes = REVISIONS_BYTES;
	rc = fw_version_list(r->store, r->id, &p.arena, &v, &n, &err);
	fw_json_object(&p.j, NULL);
	fw_json_array(&p.j, "revisions");
	for (size_t i = 0; !rc && i < n; i++) {
		if (fw_version_json(&p.j, NULL, &v[i], i + 1 < n ? &v[i + 1] : NULL, flags, &err))
			fw_warn("%s", err.text);
	}
	fw_json_end(&p.j);
	fw_json_end(&p.j);
	return list_page_send(&p, "application/json", rc, &err);
}
