/* SPDX-License-Identifier: ISC */
/* Feeds over HTTP: what `feedwheel list`, `show`, `add`, `remove` know and do. */
#include "base/arena.h"
#include "base/json.h"
#include "feedwheel/view.h"
#include "http/http.h"
#include "base/banned.h"

#define VISITS 10
#define VISITS_MAX 1000
#define FEED_MAX_BYTES ((size_t)8 << 20)

static int visit_take(void *ctx, const struct fw_visit *v)
{
	fw_visit_json(ctx, NULL, v);
	return 0;
}

enum MHD_Result http_feed_get(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_visit_query q = {.feed_id = r->id};
	int64_t visits = VISITS;
	struct fw_feed f = {0};
	struct fw_err err = {0};
	struct fw_arena a;
	struct fw_json j;
	enum MHD_Result ok;
	int rc;

	if (!http_param_int(r, "visits", 1, VISITS_MAX, &visits, &ok))
		return ok;
	q.limit = (size_t)visits;
	fw_arena_init(&a, FEED_MAX_BYTES);
	fw_json_init(&j, &out, false);
	rc = fw_store_feed_find(r->store, r->id, FW_STR_NONE, &a, &f, &err);
	if (!rc) {
		fw_json_object(&j, NULL);
		fw_feed_json(&j, "feed", &f);
		fw_json_array(&j, "visits");
		rc = fw_store_visit_list(r->store, &q, visit_take, &j, &err);
		fw_json_end(&j);
		fw_json_end(&j);
	}
	ok = rc ? http_store_failed(r, rc, &err) : http_send(r, MHD_HTTP_OK, "application/json", &out);
	if (rc)
		fw_buf_finish(&out);
	fw_arena_finish(&a);
	return ok;
}
