/* SPDX-License-Identifier: ISC */
/*
 * The store thread takes what other programs put into the store (store/inbox.h): at each wake-up,
 * and every POLL_MS, because not every engine announces such rows.
 *
 * In one step rows of control come first, then commits, then rows of feeds_to_fetch, then claims. A
 * batch of addresses takes about BATCH_MS, whatever the store, and each step takes at most one. So
 * a hundred thousand addresses delay neither a commit nor a heartbeat for longer than that.
 *
 * Paused: both are taken. Else no row could resume; and a pause holds off requests, not
 * subscriptions: `feedwheel add` works during one too.
 * Full disk: rows of control are taken, since they need next to no room; addresses wait.
 * Draining: nothing is taken; it is left for other workers and for the next run.
 *
 * At its start a worker takes the rows of control that wait. They are as old messages are: a stop
 * or a reload was for the workers of that time, a pause holds. A run --once takes the addresses
 * too, before its due set is read.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "engine/run/store_thread.h"
#include "store/inbox.h"
#include "api/account.h"

#define POLL_MS 250
#define WARN_MS FW_MINUTE_MS /* between two warnings of an error that is none of the store's */
#define BATCH_MS 50
#define BATCH_MIN 50
#define BATCH_MAX 1000
#define BATCH_FIRST 200

/* ---- rows ------------------------------------------------------------------------------------ */

static int inbox_url_read(
	struct fw_arena *a, const struct store_inbox_feed *row, struct fw_feed_new *f, struct fw_err *err)
{
	struct fw_err why = {0};
	int rc;

	if (!fw_str_trim(row->url).len)
		return fw_err_set(err, FW_EINVAL, "url: missing: put an address, such as https://example.org/feed.xml");
	rc = fw_url_clean(a, row->url, &f->url, &f->username, &f->password, &why);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc ? fw_err_set(err, FW_EINVAL, "url: %s", why.text) : 0;
}

static int inbox_interval_read(const struct store_inbox_feed *row, struct fw_feed_new *f, struct fw_err *err)
{
	f->interval_ms = row->interval_ms;
	if (row->interval_ms < 0)
		return fw_err_set(err, FW_EINVAL, "interval_ms: %" PRId64 " is negative: put a number of ms, or 0",
			row->interval_ms);
	if (row->interval.len && !fw_duration_parse(row->interval, FW_SECOND_MS, &f->interval_ms))
		return fw_err_set(err, FW_EINVAL,
			"interval: '%.*s' is not a duration: put one such as 90s, 15m, 2h or 1d",
			FW_STR_ARG(fw_str_sub(row->interval, 0, 60)));
	return 0;
}

static int inbox_text_read(
	struct fw_arena *a, const char *name, struct fw_str text, struct fw_str *out, struct fw_err *err)
{
	if (!fw_utf8_fits(text, FW_LABEL_NAME_MAX))
		return fw_err_set(err, FW_EINVAL,
			"%s: longer than %d bytes, or with control characters, or not UTF-8: put a shorter text", name,
			FW_LABEL_NAME_MAX);
	*out = fw_arena_str(a, text);
	return text.len && !out->p ? fw_no_memory(err) : 0;
}

/* By the same rules as `feedwheel add`. ctx: the arena. */
static int inbox_feed_read(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *f, struct fw_err *err)
{
	int rc;

	*f = (struct fw_feed_new){0};
	rc = inbox_url_read(ctx, row, f, err);
	rc = rc ? rc : inbox_text_read(ctx, "folder", fw_path_trim(row->folder), &f->folder, err);
	rc = rc ? rc : inbox_text_read(ctx, "title", fw_str_trim(row->title), &f->user_title, err);
	return rc ? rc : inbox_interval_read(row, f, err);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Take once. limit 0: rows of control only. *n: how many rows were taken. */
static int inbox_take_some(struct store_thread *s, size_t limit, size_t *n, struct fw_err *err)
{
	struct fw_arena a;
	struct store_inbox in = {.limit = limit, .feed = inbox_feed_read, .ctx = &a};
	struct store *st = store_of(s->st);
	int rc;

	s->inbox_more = false;
	*n = 0;
	fw_arena_init(&a, 0);
	rc = st->driver->inbox(st, &in, err);
	fw_arena_finish(&a);
	if (rc)
		return rc;
	s->inbox_more = in.more;
	*n = in.control_n + in.feed_n;
	meter_count(s->ch->o->meter, FW_COUNT_INBOX, *n);
	if (in.control_n)
		s->control_at_ms = 0;
	if (in.feed_n) {
		fw_debug("%zu addresses taken from feeds_to_fetch, %zu of them new", in.feed_n, in.new_n);
		s->changed = true; /* some may be ours */
		s->step_at_ms = 0;
		s->next_due_at_ms = 0;
	}
	if (in.refused_n) /* the reasons hold addresses, and these passwords */
		fw_warn("%s refused (feeds_to_fetch_refused has them, with the reasons)",
			FW_COUNT_OF((int64_t)in.refused_n, "row of feeds_to_fetch was", "rows of feeds_to_fetch were"));
	return 0;
}

/* An error that is none of the store's stops no worker. */
static int inbox_errors_of_store(struct store_thread *s, int rc, const struct fw_err *err)
{
	if (!rc || fw_err_is_of_store(rc))
		return rc;
	if (fw_mono_ms() < s->inbox_warn_ms)
		return 0;
	fw_warn("rows of other programs are not taken: %s", err->text);
	s->inbox_warn_ms = fw_mono_ms() + WARN_MS;
	return 0;
}

static bool inbox_may_take(const struct store_thread *s)
{
	return s->st && !store_link_wait_ms(&s->link) && !s->once_over && !atomic_load(&s->ch->stopping);
}

bool inbox_is_due(const struct store_thread *s)
{
	return s->inbox_more && inbox_may_take(s) && !s->ch->o->once && !s->full_since_ms && !s->control_more;
}

void inbox_take_control(struct store_thread *s, int64_t mono_ms)
{
	struct fw_err err;
	size_t n;
	int rc;

	if (!inbox_may_take(s) || (!inbox_is_due(s) && mono_ms < s->inbox_at_ms))
		return;
	s->inbox_at_ms = mono_ms + POLL_MS;
	rc = inbox_errors_of_store(s, inbox_take_some(s, 0, &n, &err), &err);
	if (rc)
		store_outage(s, rc, &err);
}

/* The next batch takes about BATCH_MS. */
static void inbox_batch_adapt(struct store_thread *s, int64_t took_ms)
{
	if (took_ms > 2 * BATCH_MS)
		s->inbox_batch = FW_MAX(s->inbox_batch / 2, (size_t)BATCH_MIN);
	else if (took_ms < BATCH_MS)
		s->inbox_batch = FW_MIN(s->inbox_batch * 5 / 4, (size_t)BATCH_MAX);
}

void inbox_take_feeds(struct store_thread *s, int64_t mono_ms)
{
	int64_t start_ms = fw_mono_ms();
	struct fw_err err;
	size_t n;
	int rc;

	if (!inbox_is_due(s) || commits_due(s, mono_ms))
		return;
	rc = inbox_errors_of_store(s, inbox_take_some(s, s->inbox_batch, &n, &err), &err);
	if (rc)
		store_outage(s, rc, &err);
	else
		inbox_batch_adapt(s, fw_mono_ms() - start_ms);
}

int inbox_take_all(struct store_thread *s, bool feeds, struct fw_err *err)
{
	size_t n;
	int rc;

	s->inbox_batch = BATCH_FIRST;
	do
		rc = inbox_errors_of_store(s, inbox_take_some(s, feeds ? BATCH_MAX : 0, &n, err), err);
	while (!rc && s->inbox_more && n);
	return rc;
}
