/* SPDX-License-Identifier: ISC */
/*
 * Records of finished `run --once` runs: number of slots, fetch order, forecast and measured times.
 * Kind "run", key the run's id, value JSON.
 */
#include <jansson.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/engine.h"

#define KEPT_MS (30 * FW_DAY_MS)
#define KEY_MAX 24

static void run_record_key(int64_t run_id, char key[KEY_MAX])
{
	(void)fw_snprintf(key, KEY_MAX, "%lld", (long long)run_id);
}

/* Runs that begin in the same ms put the same record: the store gives it to one of them. */
int fw_run_begin(struct fw_store *st, int64_t *run_id, struct fw_err *err)
{
	int64_t now_ms = fw_store_now_ms(st);
	struct fw_record r = {.kind = FW_STR("run_begin"), .at_ms = now_ms, .until_ms = now_ms + FW_MINUTE_MS};
	char key[KEY_MAX];
	bool was;
	int rc;

	*run_id = now_ms - 1;
	do {
		run_record_key(++*run_id, key);
		r.key = fw_str(key);
		rc = fw_store_record_put(st, &r, true, &was, err);
	} while (!rc && was);
	return rc;
}

int fw_run_put(struct fw_store *st, const struct fw_run_stats *s, struct fw_err *err)
{
	const struct fw_run_forecast *c = &s->forecast;
	struct fw_buf b = FW_BUF_INIT(FW_RECORD_VALUE_MAX);
	int64_t now_ms = fw_store_now_ms(st);
	struct fw_record r = {.kind = FW_STR("run"), .at_ms = now_ms, .until_ms = now_ms + KEPT_MS};
	struct fw_json j;
	char key[KEY_MAX];
	int rc;

	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "started_ms", s->run_id);
	fw_json_int(&j, "slots", c->slots);
	fw_json_int(&j, "workers", s->workers);
	fw_json_str(&j, "policy", fw_str(c->order ? c->order : ""));
	fw_json_int(&j, "feeds", (int64_t)s->done);
	fw_json_int(&j, "forecast_us", c->predicted_us);
	fw_json_int(&j, "total_us", c->took_us);
	fw_json_int(&j, "sum_us", c->sum_us);
	fw_json_int(&j, "bound_us", c->bound_us);
	fw_json_int(&j, "elapsed_us", s->elapsed_ms * 1000);
	if (c->batch)
		fw_json_int(&j, "batch", c->batch);
	fw_json_end(&j);
	run_record_key(s->run_id, key);
	r.key = fw_str(key);
	r.value = fw_buf_str(&b);
	rc = b.rc ? fw_err_set(err, b.rc, "out of memory") : fw_store_record_put(st, &r, false, NULL, err);
	fw_buf_finish(&b);
	return rc;
}

static int64_t json_member_int(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

static int run_record_parse(
	const struct fw_record *r, struct fw_arena *a, struct fw_run_forecast *out, struct fw_err *err)
{
	json_t *o = json_loadb(r->value.p, r->value.len, 0, NULL);

	*out = (struct fw_run_forecast){.slots = 0};
	if (!json_is_object(o)) {
		json_decref(o);
		return fw_err_set(err, FW_EFORMAT, "record \"run\" %.*s is not valid", FW_STR_ARG(r->key));
	}
	out->order = fw_arena_printf(a, "%s",
		json_is_string(json_object_get(o, "policy")) ? json_string_value(json_object_get(o, "policy")) : "");
	out->slots = json_member_int(o, "slots");
	out->batch = json_member_int(o, "batch");
	out->feeds = json_member_int(o, "feeds");
	out->predicted_us = json_member_int(o, "forecast_us");
	out->took_us = json_member_int(o, "total_us");
	out->sum_us = json_member_int(o, "sum_us");
	out->bound_us = json_member_int(o, "bound_us");
	out->elapsed_us = json_member_int(o, "elapsed_us");
	json_decref(o);
	return out->order ? 0 : fw_err_set(err, FW_ENOMEM, "out of memory");
}

int fw_run_get(struct fw_store *st, int64_t run_id, struct fw_arena *a, struct fw_run_forecast *out, struct fw_err *err)
{
	struct fw_record r;
	char key[KEY_MAX];
	int rc;

	*out = (struct fw_run_forecast){.slots = 0};
	run_record_key(run_id, key);
	rc = fw_store_record_get(st, FW_STR("run"), fw_str(key), a, &r, err);
	return rc ? rc : run_record_parse(&r, a, out, err);
}

struct run_record_walk {
	struct fw_arena arena;
	fw_run_cb *cb;
	void *ctx;
	struct fw_err *err;
};

static int run_record_on_record(void *ctx, const struct fw_record *r)
{
	struct run_record_walk *w = ctx;
	struct fw_run_forecast kept;
	int64_t id;
	int rc = fw_str_int(r->key, &id) ? run_record_parse(r, &w->arena, &kept, w->err) : FW_EFORMAT;

	if (!rc)
		rc = w->cb(w->ctx, id, &kept);
	fw_arena_reset(&w->arena, 0);
	return rc == FW_EFORMAT ? 0 : rc;
}

int fw_run_list(struct fw_store *st, fw_run_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_record_query q = {.kind = FW_STR("run")};
	struct run_record_walk w = {.cb = cb, .ctx = ctx, .err = err};
	int rc;

	fw_arena_init(&w.arena, 0);
	rc = fw_store_record_list(st, &q, run_record_on_record, &w, err);
	fw_arena_finish(&w.arena);
	return rc;
}
