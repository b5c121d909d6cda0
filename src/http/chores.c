/* SPDX-License-Identifier: ISC */
/*
 * Maintenance: jobs that the server runs in the blocking thread pool by itself.
 *  - sample: count the store's feeds and entries for /metrics, which responds at once with the last
 *    counts;
 *  - retention: delete old pushed rows, if no worker does;
 *  - index: add stored entries to the search index.
 *
 * The index job also runs beside workers, which index only when they are idle; the store lets one
 * process at a time do it. A step takes tens of milliseconds. Between two steps there are
 * DESK_LATER_MS for pushes, because on SQLite a step holds the write lock.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "api/retention.h"
#include "api/meter.h"
#include "api/view.h"
#include "http/http.h"
#include "base/banned.h"

#define SAMPLE_MS (10 * FW_SECOND_MS)
#define KEEP_MS FW_MINUTE_MS
#define KEEP_MORE_MS FW_SECOND_MS
#define INDEX_MS (2 * FW_SECOND_MS) /* between two checks whether there is something to index */

struct chores {
	const struct fw_config *config;
	struct desk *desk;
	bool keeps;
	struct desk_job sample, keep, index;
	_Atomic bool sampling, keeping, indexing; /* the job is queued or running */
	_Atomic int64_t keep_at_ms, index_at_ms;  /* monotonic */
	pthread_mutex_t lock;           /* guards the members below */
	struct fw_store_stats stats;
	int64_t in_flight;              /* on all machines */
	int64_t stats_ms;               /* monotonic; 0: none yet */
};

/* clang-format off */
#define CHORES_OF(job, member) ((struct chores *)(void *)((char *)(job) - offsetof(struct chores, member)))
/* clang-format on */

/* Queue a job, unless it is queued or running already, or no slot is free. */
static void begin(struct chores *c, struct desk_job *j, _Atomic bool *busy)
{
	if (atomic_exchange(busy, true))
		return;
	if (desk_seat(c->desk))
		desk_put(c->desk, j);
	else
		atomic_store(busy, false);
}

static int sample_run(struct desk_job *j, struct fw_store *st, const struct fw_err *err)
{
	struct chores *c = CHORES_OF(j, sample);
	struct fw_store_stats s;
	int64_t in_flight;
	int rc = st ? fw_store_stats(st, &s, NULL) : err->rc; /* an outage is logged elsewhere */

	rc = rc ? rc : fw_in_flight(st, fw_now_ms(), &in_flight, NULL);
	if (!rc) {
		pthread_mutex_lock(&c->lock);
		c->stats = s;
		c->in_flight = in_flight;
		c->stats_ms = fw_mono_ms();
		pthread_mutex_unlock(&c->lock);
	}
	return rc == FW_EIO ? rc : 0;
}

static void sample_done(struct desk_job *j)
{
	atomic_store(&CHORES_OF(j, sample)->sampling, false);
}

bool http_sample(struct http *h, struct fw_store_stats *out, int64_t *in_flight, int64_t *age_ms)
{
	struct chores *c = h->chores;
	int64_t now_ms = fw_mono_ms();

	pthread_mutex_lock(&c->lock);
	*out = c->stats;
	*in_flight = c->in_flight;
	*age_ms = c->stats_ms ? now_ms - c->stats_ms : INT64_MAX;
	pthread_mutex_unlock(&c->lock);
	if (*age_ms >= SAMPLE_MS)
		begin(c, &c->sample, &c->sampling);
	return *age_ms != INT64_MAX;
}

static int keep_run(struct desk_job *j, struct fw_store *st, const struct fw_err *err)
{
	struct chores *c = CHORES_OF(j, keep);
	bool more = false;
	int rc = st ? fw_retention_run_pushed(st, c->config, fw_now_ms(), &more) : err->rc;

	atomic_store(&c->keep_at_ms, fw_mono_ms() + (more ? KEEP_MORE_MS : KEEP_MS));
	return rc == FW_EIO ? rc : 0;
}

static void keep_done(struct desk_job *j)
{
	atomic_store(&CHORES_OF(j, keep)->keeping, false);
}

/* One step; FW_EAGAIN while there is more to index. */
static int index_run(struct desk_job *j, struct fw_store *st, const struct fw_err *no_store)
{
	struct chores *c = CHORES_OF(j, index);
	bool more = false;
	int rc = st ? fw_search_index_step(st, fw_now_ms(), &more) : no_store->rc;

	if (!rc && more)
		return FW_EAGAIN;
	atomic_store(&c->index_at_ms, fw_mono_ms() + INDEX_MS);
	return rc == FW_EIO ? rc : 0;
}

static void index_done(struct desk_job *j)
{
	atomic_store(&CHORES_OF(j, index)->indexing, false);
}

void http_chores(struct http *h)
{
	struct chores *c = h->chores;
	int64_t now_ms = fw_mono_ms();

	if (now_ms >= atomic_load(&c->index_at_ms))
		begin(c, &c->index, &c->indexing);
	if (c->keeps && now_ms >= atomic_load(&c->keep_at_ms))
		begin(c, &c->keep, &c->keeping);
}

int http_chores_make(struct http *h)
{
	struct chores *c = calloc(1, sizeof(*c));
	struct fw_meter_sum s;

	if (!c)
		return FW_ENOMEM;
	fw_meter_read(h->meter, &s);
	c->config = h->config;
	c->desk = h->desk;
	c->keeps = !s.workers;
	c->sample = (struct desk_job){.run = sample_run, .done = sample_done};
	c->keep = (struct desk_job){.run = keep_run, .done = keep_done};
	c->index = (struct desk_job){.run = index_run, .done = index_done};
	pthread_mutex_init(&c->lock, NULL);
	h->chores = c;
	return 0;
}

void http_chores_free(struct http *h)
{
	if (!h->chores)
		return;
	pthread_mutex_destroy(&h->chores->lock);
	free(h->chores);
	h->chores = NULL;
}
