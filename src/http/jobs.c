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
 * POOL_RETRY_MS for pushes, because on SQLite a step holds the write lock.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "api/clock_watch.h"
#include "api/retention.h"
#include "api/meter.h"
#include "api/view.h"
#include "http/server/http.h"

#define SAMPLE_MS (10 * FW_SECOND_MS)
#define RETENTION_MS FW_MINUTE_MS
#define RETENTION_MORE_MS FW_SECOND_MS
#define INDEX_MS (2 * FW_SECOND_MS) /* between two checks whether there is something to index */

struct server_jobs {
	const struct fw_config *config;
	struct pool *pool;
	bool clock_wrong; /* fw_clock_watch() */
	bool prunes;
	struct pool_job sample, retention, index;
	_Atomic bool sampling, pruning, indexing;     /* the job is queued or running */
	_Atomic int64_t retention_at_ms, index_at_ms; /* monotonic */
	pthread_mutex_t lock;                         /* guards the members below */
	struct fw_store_stats stats;
	struct order_samples *orders; /* NULL: none yet */
	int64_t in_flight;            /* on all machines */
	int64_t stats_ms;             /* monotonic; 0: none yet */
};

/* clang-format off */
#define MAINTENANCE_OF(job, member) \
	((struct server_jobs *)(void *)((char *)(job) - offsetof(struct server_jobs, member)))
/* clang-format on */

/* Queue a job, unless it is queued or running already, or no slot is free. */
static void maintenance_queue(struct server_jobs *m, struct pool_job *j, _Atomic bool *busy)
{
	if (atomic_exchange(busy, true))
		return;
	if (pool_take_slot(m->pool))
		pool_put(m->pool, j);
	else
		atomic_store(busy, false);
}

static int sample_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct server_jobs *m = MAINTENANCE_OF(j, sample);
	struct fw_store_stats s;
	struct order_samples *orders = NULL, *was;
	int64_t in_flight;
	int rc = st ? fw_store_stats(st, &s, err) : err->rc;

	if (!rc && m->prunes) /* else a worker does */
		fw_clock_watch(&m->clock_wrong, fw_store_ahead_ms(st));
	rc = rc ? rc : fw_in_flight(st, fw_config_now_ms(m->config), &in_flight, err);
	/* only this job changes the last samples */
	rc = rc ? rc : order_samples_read(st, m->orders, &orders, err);
	if (!rc) {
		pthread_mutex_lock(&m->lock);
		was = m->orders;
		m->orders = orders;
		m->stats = s;
		m->in_flight = in_flight;
		m->stats_ms = fw_mono_ms();
		pthread_mutex_unlock(&m->lock);
		free(was);
	}
	return rc;
}

static void sample_done(struct pool_job *j)
{
	atomic_store(&MAINTENANCE_OF(j, sample)->sampling, false);
}

bool http_sample(struct http *h, struct fw_store_stats *out, int64_t *in_flight, int64_t *age_ms)
{
	struct server_jobs *m = h->maintenance;
	int64_t now_ms = fw_mono_ms();

	pthread_mutex_lock(&m->lock);
	*out = m->stats;
	*in_flight = m->in_flight;
	*age_ms = m->stats_ms ? now_ms - m->stats_ms : INT64_MAX;
	pthread_mutex_unlock(&m->lock);
	if (*age_ms >= SAMPLE_MS)
		maintenance_queue(m, &m->sample, &m->sampling);
	return *age_ms != INT64_MAX;
}

void http_order_metrics(struct fw_buf *b, struct http *h)
{
	struct server_jobs *m = h->maintenance;

	pthread_mutex_lock(&m->lock);
	if (m->orders)
		order_samples_metrics(b, m->orders, fw_config_now_ms(m->config));
	pthread_mutex_unlock(&m->lock);
}

static int retention_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct server_jobs *m = MAINTENANCE_OF(j, retention);
	bool more = false;
	int rc = st ? fw_retention_run_pushed(st, m->config, fw_config_now_ms(m->config), &more, err) : err->rc;

	atomic_store(&m->retention_at_ms, fw_mono_ms() + (more ? RETENTION_MORE_MS : RETENTION_MS));
	return rc;
}

static void retention_done(struct pool_job *j)
{
	atomic_store(&MAINTENANCE_OF(j, retention)->pruning, false);
}

/* One step; POOL_LATER while there is more to index. */
static int index_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct server_jobs *m = MAINTENANCE_OF(j, index);
	bool more = false;
	int rc = st ? fw_search_index_step(st, fw_config_now_ms(m->config), &more, err) : err->rc;

	if (!rc && more)
		return POOL_LATER;
	atomic_store(&m->index_at_ms, fw_mono_ms() + INDEX_MS);
	return rc;
}

static void index_done(struct pool_job *j)
{
	atomic_store(&MAINTENANCE_OF(j, index)->indexing, false);
}

void http_maintenance_run(struct http *h)
{
	struct server_jobs *m = h->maintenance;
	int64_t now_ms = fw_mono_ms();

	if (now_ms >= atomic_load(&m->index_at_ms))
		maintenance_queue(m, &m->index, &m->indexing);
	if (m->prunes && now_ms >= atomic_load(&m->retention_at_ms))
		maintenance_queue(m, &m->retention, &m->pruning);
}

int http_maintenance_create(struct http *h)
{
	struct server_jobs *m = calloc(1, sizeof(*m));
	struct fw_meter_sum s;

	if (!m)
		return FW_ENOMEM;
	fw_meter_read(h->meter, &s);
	m->config = h->config;
	m->pool = h->pool;
	m->prunes = !s.workers;
	m->sample = (struct pool_job){.run = sample_run, .done = sample_done};
	m->retention = (struct pool_job){.run = retention_run, .done = retention_done};
	m->index = (struct pool_job){.run = index_run, .done = index_done};
	pthread_mutex_init(&m->lock, NULL);
	h->maintenance = m;
	return 0;
}

void http_maintenance_free(struct http *h)
{
	if (!h->maintenance)
		return;
	pthread_mutex_destroy(&h->maintenance->lock);
	free(h->maintenance->orders);
	free(h->maintenance);
	h->maintenance = NULL;
}
