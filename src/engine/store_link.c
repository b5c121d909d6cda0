/* SPDX-License-Identifier: ISC */
#include "api/store_link.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#define WARN_AGAIN_MS (10 * FW_MINUTE_MS)
#define WARN_CHANGED_MS (10 * FW_SECOND_MS) /* of another text */
#define OWNERS_MAX 16                       /* different `who` of a process */

static _Atomic unsigned links_generation;
static _Atomic size_t links_down_n;
static _Atomic unsigned links_recovered_n; /* outages of links that are over */

void store_links_renew(void)
{
	atomic_fetch_add(&links_generation, 1);
}

size_t store_links_down_n(void)
{
	return atomic_load(&links_down_n);
}

/* ---- the log --------------------------------------------------------------------------------- */

/* What was logged of all links with one `who`. */
struct link_log {
	const char *who;
	size_t down_n;
	int64_t since_ms, warned_ms;
	char text[sizeof(((struct fw_err *)NULL)->text)];
};

static pthread_mutex_t link_log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct link_log link_logs[OWNERS_MAX];

/* Locked. */
static struct link_log *link_log_of(const char *who)
{
	for (size_t i = 0; i < OWNERS_MAX; i++) {
		if (!link_logs[i].who)
			link_logs[i].who = who;
		if (strcmp(link_logs[i].who, who) == 0)
			return &link_logs[i];
	}
	abort(); /* a new kind of owner: raise OWNERS_MAX */
}

static void link_log_down(struct store_link *l, bool begins, int64_t mono_ms)
{
	struct link_log *g;
	bool warns;

	pthread_mutex_lock(&link_log_lock);
	g = link_log_of(l->who);
	if (begins && !g->down_n++) {
		g->since_ms = mono_ms;
		g->warned_ms = 0;
	}
	warns = !g->warned_ms || mono_ms - g->warned_ms >= WARN_AGAIN_MS ||
		(mono_ms - g->warned_ms >= WARN_CHANGED_MS && strcmp(g->text, l->err.text) != 0);
	if (warns) {
		g->warned_ms = mono_ms;
		(void)fw_str_copy(g->text, sizeof(g->text), fw_str(l->err.text));
	}
	pthread_mutex_unlock(&link_log_lock);
	if (warns && fw_err_is_permanent(l->err.rc))
		fw_error(
			"%s: the store is unusable: %s; waiting does not mend this; %s", l->who, l->err.text, l->waits);
	else if (warns)
		fw_warn("%s: the store is unavailable: %s; %s", l->who, l->err.text, l->waits);
	else
		fw_debug("%s: the store is unavailable: %s; next try in %lld ms", l->who, l->err.text,
			(long long)store_link_wait_ms(l));
}

/* The outage is over, or (closed) nobody waits for its end any more. */
static void link_log_up(const struct store_link *l, bool closed, int64_t mono_ms)
{
	char text[FW_RFC3339_MAX];
	struct link_log *g;
	bool over;
	int64_t took_ms;

	pthread_mutex_lock(&link_log_lock);
	g = link_log_of(l->who);
	assert(g->down_n);
	over = --g->down_n == 0;
	took_ms = mono_ms - g->since_ms;
	pthread_mutex_unlock(&link_log_lock);
	if (over && !closed)
		fw_info("%s: the store answers again, after %s", l->who, fw_duration_text(text, took_ms));
}

/* ---- outages --------------------------------------------------------------------------------- */

/* The next pause begins. */
static void link_back_off(struct store_link *l, int rc, int64_t mono_ms)
{
	l->backoff_ms = fw_err_is_permanent(rc) ? STORE_LINK_BACKOFF_MAX_MS :
		l->backoff_ms                   ? FW_MIN(2 * l->backoff_ms, STORE_LINK_BACKOFF_MAX_MS) :
						  STORE_LINK_BACKOFF_MIN_MS;
	l->at_ms = mono_ms + l->backoff_ms / 2 + (int64_t)(fw_mono_us() % (l->backoff_ms / 2 + 1));
}

static void link_drop(struct store_link *l)
{
	if (!l->st)
		return;
	if (l->lost)
		l->lost(l->ctx);
	fw_store_close(l->st);
	l->st = NULL;
}

/* One more refusal: is it as good as a broken connection? */
static bool link_is_refused(struct store_link *l, int64_t mono_ms)
{
	l->refused_at_ms = mono_ms;
	if (!l->refused_n++)
		l->refused_since_ms = mono_ms;
	if (l->refused_n < STORE_LINK_REFUSED_MAX && mono_ms - l->refused_since_ms < STORE_LINK_REFUSED_MS)
		return false;
	l->refused_n = 0;
	return true;
}

/* A piece of work, a ping or an opening failed. */
static void link_fail(struct store_link *l, int rc, const struct fw_err *err)
{
	bool refused = l->st && (rc == FW_EAGAIN || rc == FW_ENOMEM), begins = !l->down_since_ms;
	int64_t mono_ms = fw_mono_ms();
	bool persists = !refused || link_is_refused(l, mono_ms);
	bool closes = l->st && persists && (!refused || fw_store_is_remote(l->config->store));

	l->answers = false;
	l->recovered_n = atomic_load(&links_recovered_n);
	l->err = *err;
	l->err.rc = rc;
	if (closes) {
		store_links_renew();
		link_drop(l);
	}
	if (!begins || !closes || refused || fw_err_is_permanent(rc)) /* else at once */
		link_back_off(l, rc, mono_ms);
	if (begins && !persists) {
		fw_debug("%s: %s; next try in %lld ms", l->who, err->text, (long long)store_link_wait_ms(l));
		return;
	}
	if (begins) {
		l->down_since_ms = mono_ms;
		atomic_fetch_add(&links_down_n, 1);
	}
	link_log_down(l, begins, mono_ms);
}

static void link_recover(struct store_link *l, bool closed)
{
	if (l->down_since_ms) {
		l->down_since_ms = 0;
		atomic_fetch_sub(&links_down_n, 1);
		if (!closed)
			atomic_fetch_add(&links_recovered_n, 1);
		link_log_up(l, closed, fw_mono_ms());
	}
	l->backoff_ms = l->at_ms = 0;
	/* writes may be refused while others succeed: on a full disk heartbeats do */
	if (fw_mono_ms() - l->refused_at_ms >= STORE_LINK_REFUSED_MS)
		l->refused_n = 0;
}

/* False: it failed, and the link knows. */
static bool link_ping(struct store_link *l)
{
	unsigned generation = atomic_load(&links_generation);
	struct fw_err err;
	int rc = fw_store_ping(l->st, &err);

	if (rc) {
		link_fail(l, fw_err_is_of_store(rc) ? rc : FW_EIO, &err);
		return false;
	}
	l->generation = generation;
	l->answers = true;
	l->pinged_ms = fw_mono_ms();
	return true;
}

static void link_open(struct store_link *l)
{
	unsigned generation = atomic_load(&links_generation);
	struct fw_err err = {0};
	int rc = fw_config_store(l->config, FW_STORE_CREATE, &l->st, &err);

	if (rc)
		l->st = NULL;
	if (!rc && l->opened)
		rc = l->opened(l->ctx, l->st, &err);
	if (rc) {
		fw_store_close(l->st);
		l->st = NULL;
		link_fail(l, rc, &err);
		return;
	}
	l->generation = generation;
	l->answers = true;
	l->pinged_ms = fw_mono_ms(); /* an opening pings */
}

struct fw_store *store_link_get(struct store_link *l, struct fw_err *err)
{
	bool stale = l->generation != atomic_load(&links_generation) ||
		fw_mono_ms() - l->pinged_ms >= STORE_LINK_PING_MS;

	assert(l->config && l->who && l->waits);
	if (l->st && stale)
		(void)link_ping(l);
	if (!l->st && !store_link_wait_ms(l))
		link_open(l);
	if (!l->st)
		*err = l->err;
	return l->st;
}

bool store_link_after(struct store_link *l, int rc, const struct fw_err *err)
{
	if (fw_err_is_of_store(rc))
		link_fail(l, rc, err);
	else if (!rc && l->st && (!l->down_since_ms || l->answers || link_ping(l)))
		link_recover(l, false);
	return l->down_since_ms != 0;
}

bool store_link_after_round(struct store_link *l, int rc, const struct fw_err *err)
{
	return store_link_after(l, rc && !fw_err_is_of_store(rc) ? FW_EIO : rc, err);
}

bool store_link_is_unusable(const struct store_link *l)
{
	return l->down_since_ms && fw_err_is_permanent(l->err.rc);
}

int64_t store_link_idle_ms(const struct store_link *l)
{
	if (l->down_since_ms)
		return store_link_wait_ms(l);
	return l->st ? FW_MAX(l->pinged_ms + STORE_LINK_PING_MS - fw_mono_ms(), INT64_C(0)) : -1;
}

void store_link_idle(struct store_link *l)
{
	struct fw_err err;

	if (!store_link_idle_ms(l) && store_link_get(l, &err))
		(void)store_link_after(l, 0, NULL);
}

int64_t store_link_wait_ms(const struct store_link *l)
{
	if (l->recovered_n != atomic_load(&links_recovered_n)) /* the store is back, as another link found */
		return 0;
	return FW_MAX(l->at_ms - fw_mono_ms(), INT64_C(0));
}

void store_link_try_now(struct store_link *l)
{
	l->at_ms = 0;
}

void store_link_close(struct store_link *l)
{
	link_drop(l);
	link_recover(l, true);
}
