/* SPDX-License-Identifier: ISC */
/* The page: what only the operator's accounts see: runs with their picture, and orders. */
#include "api/order.h"
#include "base/clock.h"
#include "http/web/web.h"
#include "picture/timeline.h"

#define ADMIN_RUNS 20                     /* listed */
#define ADMIN_BARS 20000                  /* in one picture */
#define ADMIN_LAST_MS (10 * FW_MINUTE_MS) /* of a run that goes on */

/* ---- runs ------------------------------------------------------------------------------------ */

struct admin_runs {
	struct {
		int64_t id, elapsed_us, feeds;
	} run[ADMIN_RUNS]; /* a ring: the newest ones */
	size_t n;
};

static int admin_run_add(void *ctx, int64_t run_id, const struct fw_run_forecast *kept)
{
	struct admin_runs *runs = ctx;
	size_t at = runs->n++ % ADMIN_RUNS;

	runs->run[at].id = run_id;
	runs->run[at].elapsed_us = kept->elapsed_us;
	runs->run[at].feeds = kept->feeds;
	return 0;
}

static int admin_newest_run(void *ctx, const struct fw_visit *v)
{
	*(int64_t *)ctx = v->run_id;
	return v->run_id != 0;
}

static void admin_run_row(struct web *w, int64_t id, int64_t elapsed_us, int64_t feeds)
{
	char text[FW_RFC3339_MAX];

	web_put(w, "<tr><td><a href=\"./runs?run=%d\">", id);
	web_whole_time_put(w, id);
	web_put(w, "</a></td><td>%s</td><td>%n</td></tr>\n", fw_duration_text(text, elapsed_us / 1000), feeds);
}

static int admin_runs_put(struct web *w)
{
	struct admin_runs runs = {.n = 0};
	int rc = fw_run_list(w->r->store, admin_run_add, &runs, &w->err);

	if (rc || !runs.n)
		return rc == FW_EUNSUP ? 0 : rc;
	web_put(w,
		"<h2>Finished runs</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">"
		"<table class=\"list\"><thead><tr><th>Started</th><th>Took</th><th>Feeds "
		"due</th></tr></thead>"
		"<tbody>\n");
	for (size_t i = runs.n; i > 0 && runs.n - i < ADMIN_RUNS; i--)
		admin_run_row(w, runs.run[(i - 1) % ADMIN_RUNS].id, runs.run[(i - 1) % ADMIN_RUNS].elapsed_us,
			runs.run[(i - 1) % ADMIN_RUNS].feeds);
	web_put(w, "</tbody></table></div>\n");
	return 0;
}

/* The run that is asked for, else the newest; 0: there is none. */
static int admin_run_id(struct web *w, int64_t *id)
{
	struct fw_visit_query newest = {.limit = 10000};
	int rc;

	*id = web_number(w, "run");
	rc = *id ? 0 : fw_store_visit_list(w->r->store, &newest, admin_newest_run, id, &w->err);
	return FW_MIN(rc, 0);
}

enum MHD_Result web_runs(struct web *w)
{
	int64_t id;
	int rc = web_feeds_read(w, 0);

	rc = rc ? rc : admin_run_id(w, &id);
	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Runs"));
	web_bar_put(w, "Runs");
	if (!id)
		web_put(w, "<p>No run is stored yet.</p>\n");
	else
		web_put(w,
			"<p class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Picture of the run\">"
			"<a href=\"./picture?run=%d\"><img class=\"picture\" src=\"./picture?run=%d\" "
			"alt=\"Each row is a connection, each bar a fetch\" width=\"1400\" height=\"700\"></a></p>\n"
			"<p class=\"soft\">Each row is a connection that was used, each bar a fetch: name lookup, "
			"connection, TLS, waiting, body, parsing. Of a run that goes on, the last ten minutes are "
			"shown. For a picture with zoom: feedwheel timeline -o run.html</p>\n",
			id, id);
	rc = admin_runs_put(w);
	if (rc)
		return web_store_failed(w, rc);
	web_put(w, "</div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}

/* ---- the picture ----------------------------------------------------------------------------- */

static int admin_visit_add(void *ctx, const struct fw_visit *v)
{
	struct timeline *t = ctx;

	if (v->kind == FW_VISIT_PUSHED || v->kind == FW_VISIT_CRASH) /* not fetches */
		return 0;
	return t->n == ADMIN_BARS ? 1 : timeline_add(t, v);
}

/* A run that is over has a record; of another its last minutes are drawn. */
static int admin_timeline_read(struct web *w, struct timeline *t)
{
	struct fw_visit_query q = {.run_id = t->run_id};
	struct fw_run_forecast kept;
	int rc = fw_run_get(w->r->store, t->run_id, &w->arena, &kept, &w->err);

	if (rc && rc != FW_ENOTFOUND && rc != FW_EUNSUP)
		return rc;
	t->endless = rc != 0;
	if (rc)
		q.since_ms = w->now_ms - ADMIN_LAST_MS;
	else
		timeline_take_forecast(t, &kept);
	t->host_concurrency = (uint32_t)w->r->thread->h->config->host_concurrency;
	t->host_gap_us = w->r->thread->h->config->host_gap_ms * 1000;
	rc = fw_store_visit_list(w->r->store, &q, admin_visit_add, t, &w->err);
	return FW_MIN(rc, 0);
}

enum MHD_Result web_picture(struct web *w)
{
	enum MHD_Result ok;
	struct timeline t;
	int64_t id;
	int rc = admin_run_id(w, &id);

	timeline_init(&t);
	t.run_id = id;
	rc = rc ? rc : admin_timeline_read(w, &t);
	if (!rc && t.n)
		rc = timeline_analyze(&t);
	if (rc)
		ok = web_store_failed(w, rc);
	else if (!t.n)
		ok = web_fail(
			w, MHD_HTTP_NOT_FOUND, "No fetch of this run is stored, or none of its last ten minutes.");
	else {
		timeline_svg(&t, &w->out);
		ok = web_send_as(w, MHD_HTTP_OK, "image/svg+xml");
	}
	timeline_finish(&t);
	return ok;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static int admin_order_put(void *ctx, const struct fw_order_status *s)
{
	const struct fw_order *o = &s->order;
	struct web *w = ctx;

	web_put(w, "<li><div class=\"head\"><b>%t</b><span class=\"soft\">%s, %s</span></div>\n<p>%t</p>\n", o->name,
		fw_order_action_name(o->action), fw_order_state_name(o->state), o->query);
	if (o->action == FW_ORDER_TAG)
		web_put(w, "<p class=\"soft\">Tag: %t</p>", o->tag);
	if (o->action == FW_ORDER_DELIVER) {
		struct fw_order_delivery d = s->delivery;

		web_put(w, "<p class=\"soft\">%n delivered, %n waiting, %n failed for good</p>", d.delivered_n,
			s->pending_n, s->dead_n);
		if (d.failing_since_ms) {
			char text[FW_RFC3339_MAX];

			web_put(w, "<p class=\"trouble\">It has failed for %s: %t</p>",
				fw_duration_text(text, FW_MAX(w->now_ms - d.failing_since_ms, INT64_C(0))), d.error);
		}
	}
	web_put(w, "</li>\n");
	return 0;
}

enum MHD_Result web_orders(struct web *w)
{
	int rc = web_feeds_read(w, 0);
	size_t before;

	if (rc)
		return web_store_failed(w, rc);
	web_frame_begin(w, FW_STR("Orders"));
	web_bar_put(w, "Orders");
	web_put(w,
		"<p class=\"soft\">Standing searches, whose matches are delivered, dropped or tagged as they are "
		"stored. "
		"To make one: feedwheel order add</p>\n<ul class=\"cards\">\n");
	before = w->out.len;
	rc = fw_order_status_list(w->r->store, admin_order_put, w, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	if (w->out.len == before)
		web_put(w, "<li>There are no orders.</li>\n");
	web_put(w, "</ul></div>\n");
	web_frame_end(w);
	return web_send(w, MHD_HTTP_OK);
}
