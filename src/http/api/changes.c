/* SPDX-License-Identifier: ISC */
/*
 * GET /v1/changes: the log of changes, page by page; GET /v1/entries/ID/revisions: the versions of
 * an entry. GET /v1/stream has the changes as they happen.
 *
 * With wait, an empty page waits for a change. Such a request keeps its slot of the pool, but no
 * thread: it reads the store again now and then. The more requests wait, the less often each of
 * them reads. Above WAITING_MAX none waits: the client gets an empty page, and comes again.
 */
#include "api/change.h"
#include "api/view.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server/http.h"

#define LIMIT 100
#define LIMIT_MAX 1000
#define WAIT_MAX_MS (60 * FW_SECOND_MS)
#define WAITING_MAX (POOL_JOBS_MAX / 4)
#define WAITING_STEP 8 /* so many more requests, and each reads POOL_RETRY_MS later */
#define REVISIONS_BYTES ((size_t)64 << 20)
#define FULL_BYTES ((size_t)1 << 20) /* a page ends with the change that reaches this size */

struct change_response {
	struct list_page p;
	struct fw_change_query q;
	struct change_filter filter;
	unsigned flags;
	int64_t wait_ms;
};

/* ---- waiting --------------------------------------------------------------------------------- */

static bool change_wait_begin(struct request *r, int64_t wait_ms)
{
	struct http *h = r->thread->h;

	if (!wait_ms || r->head || !http_may_wait(h))
		return false;
	if (atomic_fetch_add(&h->change_wait_n, 1) >= WAITING_MAX) {
		atomic_fetch_sub(&h->change_wait_n, 1);
		return false;
	}
	r->change_wait.until_ms = fw_mono_ms() + wait_ms;
	return true;
}

void http_change_wait_end(struct request *r)
{
	if (r->change_wait.until_ms)
		atomic_fetch_sub(&r->thread->h->change_wait_n, 1);
	r->change_wait = (struct change_wait){0};
}

/* Nothing to show: run again later? Then it goes on where q is. */
static bool change_wait_more(struct request *r, const struct fw_change_query *q, int64_t wait_ms)
{
	int64_t now_ms = fw_mono_ms(), n;

	if (r->change_wait.until_ms ? now_ms >= r->change_wait.until_ms : !change_wait_begin(r, wait_ms))
		return false;
	r->change_wait.after_id = q->after_id;
	r->change_wait.base_id = q->base_id;
	n = atomic_load(&r->thread->h->change_wait_n);
	r->change_wait.next_ms = FW_MIN(now_ms + POOL_RETRY_MS * (1 + n / WAITING_STEP), r->change_wait.until_ms);
	return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

static int change_list_add(void *ctx, const struct fw_change *c)
{
	struct change_response *l = ctx;
	struct fw_err err;

	if (fw_change_json(&l->p.j, NULL, c, l->flags, &err)) /* it was written without its content */
		fw_warn("%s", err.text);
	l->p.n++;
	return l->p.out.len >= FULL_BYTES;
}

static bool change_page_wait(struct change_response *l, enum MHD_Result *ok)
{
	struct fw_str wait = http_param(l->p.r, "wait");

	if (!wait.p ||
		(fw_duration_parse(wait, FW_SECOND_MS, &l->wait_ms) && l->wait_ms >= 0 && l->wait_ms <= WAIT_MAX_MS))
		return true;
	*ok = http_param_wrong(l->p.r, "wait", "a time of up to 60s, such as 30s or 500ms");
	return false;
}

static bool change_page_params(struct change_response *l, enum MHD_Result *ok)
{
	struct request *r = l->p.r;
	struct fw_str after = http_param(r, "after");
	int64_t limit = LIMIT;

	if (after.p && !fw_change_place_read(after, &l->q)) {
		*ok = http_param_wrong(r, "after", "0, the id of a change, or next of an earlier response");
		return false;
	}
	if (!http_change_filter(r, &l->filter, ok) || !http_param_int(r, "limit", 1, LIMIT_MAX, &limit, ok) ||
		!http_param_content(r, &l->flags, ok) || !change_page_wait(l, ok))
		return false;
	if (l->filter.feed_n == 1) /* by its index */
		l->q.feed_id = l->filter.feed_id[0];
	l->q.feed_ids = l->filter.feed_id;
	l->q.feed_n = l->filter.feed_n;
	l->q.folder = l->filter.folder;
	if (r->change_wait.until_ms) {
		l->q.after_id = r->change_wait.after_id;
		l->q.base_id = r->change_wait.base_id;
	}
	l->q.limit = (size_t)limit;
	l->q.content = l->flags != 0;
	return true;
}

static enum MHD_Result change_page_drop(struct change_response *l, enum MHD_Result ok)
{
	fw_buf_finish(&l->p.out);
	fw_arena_finish(&l->p.arena);
	return ok;
}

static enum MHD_Result change_page_behind(struct change_response *l)
{
	struct request *r = l->p.r;
	enum MHD_Result ok = http_problem_number(r, MHD_HTTP_GONE, "changes_pruned", "first", l->q.first_id,
		"changes after this place were pruned (changes_retention_ms): read all entries anew from "
		"after=0, or go on with the first change left");

	return change_page_drop(l, ok);
}

static enum MHD_Result change_page_read(struct change_response *l)
{
	char place[FW_CHANGE_PLACE_MAX];
	struct request *r = l->p.r;
	struct fw_err err = {0};
	int rc;

	fw_json_object(&l->p.j, NULL);
	fw_json_array(&l->p.j, "changes");
	rc = fw_store_change_list(r->store, &l->q, change_list_add, l, &err);
	if (rc == FW_EGONE)
		return change_page_behind(l);
	fw_json_end(&l->p.j);
	fw_change_place_next(&l->q, place);
	fw_json_cstr(&l->p.j, "next", place);
	fw_json_bool(&l->p.j, "more", l->q.next_id < l->q.head_id);
	fw_json_end(&l->p.j);
	r->retry = !rc && !l->p.n && change_wait_more(r, &l->q, l->wait_ms);
	return r->retry ? change_page_drop(l, MHD_YES) : list_page_send(&l->p, "application/json", rc, &err);
}

enum MHD_Result http_change_list(struct request *r)
{
	struct change_response l = {.filter.kinds = ~0u};
	enum MHD_Result ok;

	if (r->change_wait.until_ms && fw_mono_ms() < r->change_wait.next_ms) {
		r->retry = true;
		return MHD_YES;
	}
	list_page_begin(&l.p, r);
	return change_page_params(&l, &ok) ? change_page_read(&l) : change_page_drop(&l, ok);
}

/* ---- versions -------------------------------------------------------------------------------- */

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
