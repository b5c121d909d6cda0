/* SPDX-License-Identifier: ISC */
/*
 * Fetches and parses one URL at once, on an event loop of its own. Stores nothing, except
 * fw_response_store().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/fetch_url.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "engine/orders/orders.h"
#include "engine/run/visit.h"
#include "engine/settings.h"
#include "parse/html/text.h"
#include "store/driver.h"

#define WORDS_MAX 400 /* bytes of an error page's text that are kept */

struct oneshot {
	uv_loop_t loop;
	struct fw_net net;
	struct fw_fetcher *fetcher;
	struct fw_fetch fetch;
	struct fw_arena arena;
	bool looped, stopped;
	const struct fetch_stop *stop; /* NULL: none */
	uv_timer_t look;
};

static void oneshot_on_look(uv_timer_t *t)
{
	struct oneshot *s = t->data;

	s->stopped = s->stop->is(s->stop->ctx);
	if (s->stopped)
		fw_fetch_cancel(&s->fetch);
}

static void oneshot_on_done(struct fw_fetch *f)
{
	struct oneshot *s = f->ctx;

	if (s->stop)
		uv_close((uv_handle_t *)&s->look, NULL);
	fw_fetcher_destroy(s->fetcher); /* the loop ends when its handles are closed */
	s->fetcher = NULL;
}

static void oneshot_read_body(struct oneshot *s, const struct fw_config *c, struct fw_response *out)
{
	struct visit_rules rules;
	struct visit_reading got;

	visit_rules_of(c, &rules);
	visit_parse(&s->fetch, &rules, fw_config_now_ms(c), &s->arena, &got);
	s->arena.max_bytes = 0;
	out->visit.parse_us = got.parse_us;
	out->kind = got.kind;
	out->doc = got.doc;
	out->feeds = got.feeds;
	if (got.kind != FW_VISIT_OK)
		out->err = got.err;
}

/* The beginning of a page's text without tags; whole UTF-8 characters. */
static struct fw_str oneshot_words(struct oneshot *s, struct fw_str body)
{
	struct fw_str text = fw_str_trim(fw_html_text(&s->arena, body));
	size_t n = FW_MIN(text.len, (size_t)WORDS_MAX);

	while (n < text.len && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	return fw_str_sub(text, 0, n);
}

/* The fetch asks whether it ends. The timer ends with the fetch. */
static void oneshot_watch(struct oneshot *s, const struct fetch_stop *stop)
{
	if (!stop || uv_timer_init(&s->loop, &s->look))
		return;
	s->stop = stop;
	s->look.data = s;
	(void)uv_timer_start(&s->look, oneshot_on_look, FETCH_LOOK_MS, FETCH_LOOK_MS);
}

int fw_fetch_url(const struct fw_config *c, struct fw_str url, struct fw_str username, struct fw_str password,
	struct fw_response *out, struct fw_err *err)
{
	return fw_fetch_url_until(c, url, username, password, NULL, out, err);
}

int fw_fetch_url_until(const struct fw_config *c, struct fw_str url, struct fw_str username, struct fw_str password,
	const struct fetch_stop *stop, struct fw_response *out, struct fw_err *err)
{
	struct oneshot *s = calloc(1, sizeof(*s));
	int rc;

	*out = (struct fw_response){0};
	if (!s)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	out->priv = s;
	fw_arena_init(&s->arena, 0);
	rc = fw_settings_net(c, 1, &s->net, err);
	if (!rc && uv_loop_init(&s->loop))
		rc = fw_err_set(err, FW_EIO, "event loop not created: %s", strerror(errno));
	s->looped = !rc;
	if (!rc)
		rc = fw_fetcher_create(&s->loop, &s->net.fetch, &s->fetcher, err);
	if (rc)
		goto out;
	s->fetch = (struct fw_fetch){.url = url,
		.username = username,
		.password = password,
		.keep_error_body = true,
		.done = oneshot_on_done,
		.ctx = s};
	oneshot_watch(s, stop);
	rc = fw_fetch_start(s->fetcher, &s->fetch, err);
	if (rc) {
		oneshot_on_done(&s->fetch);
		uv_run(&s->loop, UV_RUN_DEFAULT);
		goto out;
	}
	uv_run(&s->loop, UV_RUN_DEFAULT);
	if (s->stopped) {
		rc = FW_EGONE;
		goto out;
	}
	out->visit = s->fetch.visit;
	out->kind = s->fetch.kind;
	out->err = s->fetch.err;
	out->final_url = s->fetch.final_url;
	out->content_type = s->fetch.h_content_type;
	out->body = fw_buf_str(&s->fetch.body);
	if (out->kind == FW_VISIT_OK)
		oneshot_read_body(s, c, out);
	else if (out->body.len && out->kind != FW_VISIT_NOT_MODIFIED)
		out->words = oneshot_words(s, out->body);
	out->visit.kind = out->kind;
out:
	if (rc)
		fw_response_free(out);
	return rc;
}

int fw_response_store(
	struct fw_store *st, const struct fw_config *c, struct fw_response *a, int64_t feed_id, struct fw_err *err)
{
	struct oneshot *s = a->priv;
	struct visit v = {.slot = -1};
	struct visit_rules rules;
	struct fw_feed was;
	int64_t now_ms = fw_store_now_ms(st);
	int rc;

	if (!a->doc)
		return fw_err_set(err, FW_EINVAL, "the response holds no document");
	rc = fw_store_feed_find(st, feed_id, FW_STR_NONE, &s->arena, &was, err);
	if (rc || was.last_visit_ms) /* already visited */
		return rc;
	v.was = &was;
	visit_prepare(&v, now_ms);
	v.fetch = s->fetch;
	visit_rules_of(c, &rules);
	visit_finish(&v, &rules, now_ms, fw_hash64_seed(&feed_id, sizeof(feed_id), (uint64_t)fw_mono_us()));
	v.outcome.host_id = store_feed_host_id(&was);
	v.outcome.was_due_ms = was.due_at_ms;
	rc = orders_use(st, err);
	rc = rc ? rc : fw_store_push(st, &v.outcome, 1, err);
	fw_arena_finish(&v.arena);
	return rc;
}

void fw_response_free(struct fw_response *a)
{
	struct oneshot *s = a->priv;

	if (s) {
		fw_fetch_finish(&s->fetch);
		fw_arena_finish(&s->arena);
		if (s->looped)
			uv_loop_close(&s->loop);
		free(s);
	}
	*a = (struct fw_response){0};
}
