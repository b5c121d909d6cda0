/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "api/store_link.h"
#include "http/server/http.h"

#define POOL_LAST_N 64
#define POOL_PASSED_MAX 8

/* one thread of the pool */
struct pool_thread {
	struct pool *pool;
	pthread_t id;
	struct pool_job *job; /* it runs; NULL: none */
	struct store_link link;
};

struct pool {
	const struct fw_config *config;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct pool_job *first;   /* the queue, by turn; of equal turns, as they came */
	struct pool_job *delayed; /* jobs to run again, in order of at_ms */
	uint64_t turn;            /* of the account that was served last */
	unsigned passed_n;        /* jobs of nobody that were served since */
	struct pool_last {
		int64_t account_id;
		uint64_t turn;
	} last[POOL_LAST_N]; /* served lately; at account_id modulo POOL_LAST_N */
	bool closing;
	_Atomic size_t jobs;
	size_t account_max; /* threads that an account has at most, without those that fetch for it */
	size_t thread_n;
	struct pool_thread thread[];
};

/* ---- turns: all locked ----------------------------------------------------------------------- */

static void job_queue(struct pool *pool, struct pool_job *j)
{
	struct pool_job **at = &pool->first;

	while (*at && (*at)->turn <= j->turn)
		at = &(*at)->next;
	j->next = *at;
	*at = j;
}

/* What the pool has of an account, without j. */
struct pool_share {
	size_t running, waiting;
	uint64_t turn; /* its next one */
};

static struct pool_last *pool_last_of(struct pool *pool, int64_t account_id)
{
	return &pool->last[(uint64_t)account_id % POOL_LAST_N];
}

/* The job is served now. */
static void pool_serve(struct pool *pool, const struct pool_job *j)
{
	if (j->account_id) {
		pool->turn = FW_MAX(pool->turn, j->turn);
		*pool_last_of(pool, j->account_id) = (struct pool_last){j->account_id, j->turn};
		pool->passed_n = 0;
	} else if (++pool->passed_n > POOL_PASSED_MAX && pool->first) {
		pool->turn = FW_MAX(pool->turn, pool->first->turn); /* what comes now comes behind it */
		pool->passed_n = 0;
	}
}

static struct pool_share pool_share_of(struct pool *pool, int64_t account_id, const struct pool_job *j)
{
	const struct pool_last *last = pool_last_of(pool, account_id);
	struct pool_share s = {.turn = pool->turn};

	if (last->account_id == account_id)
		s.turn = FW_MAX(s.turn, last->turn + 1);
	for (size_t i = 0; i < pool->thread_n; i++) {
		const struct pool_job *is = pool->thread[i].job;

		s.running += is && is != j && is->account_id == account_id && !is->fetches;
	}
	for (const struct pool_job *is = pool->first; is; is = is->next) {
		if (is->account_id != account_id)
			continue;
		s.waiting++;
		s.turn = FW_MAX(s.turn, is->turn + 1);
	}
	return s;
}

/* Does the account leave a thread to others? */
static bool pool_account_may(struct pool *pool, const struct pool_job *j)
{
	return !j->account_id || pool->closing || pool_share_of(pool, j->account_id, j).running < pool->account_max;
}

/* Take the first job that may run now; NULL: none. */
static struct pool_job *pool_next(struct pool *pool)
{
	for (struct pool_job **at = &pool->first; *at; at = &(*at)->next) {
		struct pool_job *j = *at;

		if (!pool_account_may(pool, j))
			continue;
		*at = j->next;
		pool_serve(pool, j);
		return j;
	}
	return NULL;
}

/* Move jobs whose time has come to the queue; all of them when the pool is closing. */
static void pool_take_delayed(struct pool *pool)
{
	while (pool->delayed && (pool->closing || pool->delayed->at_ms <= fw_mono_ms())) {
		struct pool_job *j = pool->delayed;

		pool->delayed = j->next;
		j->at_ms = 0;
		job_queue(pool, j);
	}
}

enum pool_turn pool_job_is_of(struct pool *pool, struct pool_job *j, int64_t account_id)
{
	enum pool_turn turn = POOL_NOW;
	struct pool_share share;

	if (j->account_id == account_id) /* it has had its turn */
		return POOL_NOW;
	pthread_mutex_lock(&pool->lock);
	share = pool_share_of(pool, account_id, j);
	j->turn = share.turn;
	j->account_id = account_id;
	if (share.running + share.waiting >= POOL_ACCOUNT_MAX)
		turn = POOL_TOO_MANY;
	else if (!pool_account_may(pool, j) || share.waiting || (pool->first && pool->first->turn < j->turn))
		turn = POOL_NOT_YET;
	else
		pool_serve(pool, j);
	j->waits = turn == POOL_NOT_YET;
	pthread_mutex_unlock(&pool->lock);
	return turn;
}

void pool_job_fetches(struct pool *pool, struct pool_job *j, bool on)
{
	pthread_mutex_lock(&pool->lock);
	j->fetches = on;
	pthread_cond_signal(&pool->more); /* a job of the account may run now */
	pthread_mutex_unlock(&pool->lock);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The job, which runs no longer, runs again: when it is its turn, or later. */
static void pool_put_back(struct pool *pool, struct pool_job *j)
{
	struct pool_job **at = &pool->delayed;

	j->at_ms = j->at_ms ? j->at_ms : fw_mono_ms() + POOL_RETRY_MS;
	pthread_mutex_lock(&pool->lock);
	while (*at && (*at)->at_ms <= j->at_ms)
		at = &(*at)->next;
	if (j->waits) {
		j->at_ms = 0;
		job_queue(pool, j);
	} else {
		j->next = *at;
		*at = j;
	}
	j->waits = false;
	pthread_cond_signal(&pool->more); /* one thread has to wait with a timeout now */
	pthread_mutex_unlock(&pool->lock);
}

/* Locked; unlocks while it waits until there may be a job, or until the idle link wants to ping. */
static void pool_wait(struct pool_thread *t)
{
	int64_t idle_ms = store_link_idle_ms(&t->link), at_ms = idle_ms < 0 ? INT64_MAX : fw_mono_ms() + idle_ms;
	struct pool *pool = t->pool;
	struct timespec until;

	if (pool->delayed)
		at_ms = FW_MIN(at_ms, pool->delayed->at_ms);
	if (at_ms == INT64_MAX) {
		pthread_cond_wait(&pool->more, &pool->lock);
		return;
	}
	until = fw_timespec(at_ms);
	if (!pthread_cond_timedwait(&pool->more, &pool->lock, &until))
		return;
	pthread_mutex_unlock(&pool->lock);
	store_link_idle(&t->link);
	pthread_mutex_lock(&pool->lock);
}

static void job_finish(struct pool *pool, struct pool_job *j)
{
	j->done(j); /* may free j */
	atomic_fetch_sub(&pool->jobs, 1);
}

static void job_refuse(struct pool_thread *t, struct pool_job *j)
{
	struct fw_err stopping = {.rc = FW_EGONE, .text = POOL_STOPPING};

	(void)j->run(j, NULL, &stopping);
	pthread_mutex_lock(&t->pool->lock);
	t->job = NULL;
	pthread_mutex_unlock(&t->pool->lock);
	job_finish(t->pool, j);
}

/* *failed: the store was closed for its error. */
static int job_run_once(struct pool_thread *t, struct pool_job *j, bool *failed)
{
	struct fw_err err = {0};
	struct fw_store *st = store_link_get(&t->link, &err);
	int rc = j->run(j, st, &err);

	if (st)
		(void)store_link_after(&t->link, FW_MIN(rc, 0), &err);
	*failed = st && !t->link.st;
	return rc;
}

static void job_run(struct pool_thread *t, struct pool_job *j)
{
	bool failed;
	int rc = job_run_once(t, j, &failed);

	if (failed && j->repeat)
		rc = job_run_once(t, j, &failed);
	pthread_mutex_lock(&t->pool->lock);
	t->job = NULL;
	if (t->pool->first) /* it may have waited for this account's thread */
		pthread_cond_signal(&t->pool->more);
	pthread_mutex_unlock(&t->pool->lock);
	if (rc == POOL_LATER)
		pool_put_back(t->pool, j);
	else
		job_finish(t->pool, j);
}

static void *pool_thread_run(void *ctx)
{
	struct pool_thread *t = ctx;
	struct pool *pool = t->pool;
	struct pool_job *j;

	t->link = (struct store_link){.config = pool->config, .who = "requests", .waits = "they are answered 503"};
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		bool closing;

		for (pool_take_delayed(pool); !(j = pool_next(pool)) && !pool->closing; pool_take_delayed(pool))
			pool_wait(t);
		if (!j)
			break;
		t->job = j;
		closing = pool->closing;
		if (pool->delayed) /* another thread waits for their time */
			pthread_cond_signal(&pool->more);
		pthread_mutex_unlock(&pool->lock);
		if (closing)
			job_refuse(t, j);
		else
			job_run(t, j);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	store_link_close(&t->link);
	return NULL;
}

int pool_open(const struct fw_config *c, struct pool **out, struct fw_err *err)
{
	/* more for addresses that are fetched, which takes seconds: address.c */
	size_t n = (size_t)c->serve_pool_threads + (c->serve_discovery ? DISCOVERIES_MAX : 0);
	struct pool *pool = calloc(1, sizeof(*pool) + n * sizeof(pool->thread[0]));
	int rc = 0;

	*out = NULL;
	if (!pool)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	pool->config = c;
	pool->account_max = (size_t)FW_MAX(c->serve_pool_threads, INT64_C(2)) - 1;
	pthread_mutex_init(&pool->lock, NULL);
	fw_mono_cond_init(&pool->more);
	pthread_mutex_lock(&pool->lock); /* a thread that runs reads thread_n */
	for (; pool->thread_n < n && !rc; pool->thread_n += !rc) {
		struct pool_thread *t = &pool->thread[pool->thread_n];

		t->pool = pool;
		rc = pthread_create(&t->id, NULL, pool_thread_run, t);
	}
	pthread_mutex_unlock(&pool->lock);
	if (rc) {
		fw_err_set(err, FW_EIO, "serve_pool_threads = %zu: cannot start a thread: %s", n, strerror(rc));
		pool_destroy(pool);
		return FW_EIO;
	}
	*out = pool;
	return 0;
}

bool pool_is_closing(void *ctx)
{
	struct pool *pool = ctx;
	bool closing;

	pthread_mutex_lock(&pool->lock);
	closing = pool->closing;
	pthread_mutex_unlock(&pool->lock);
	return closing;
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->more);
	pthread_mutex_unlock(&pool->lock);
	for (size_t i = 0; i < pool->thread_n; i++)
		pthread_join(pool->thread[i].id, NULL);
	pool->thread_n = 0;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	pool_close(pool);
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

bool pool_take_slot(struct pool *pool)
{
	if (atomic_fetch_add(&pool->jobs, 1) < POOL_JOBS_MAX)
		return true;
	atomic_fetch_sub(&pool->jobs, 1);
	return false;
}

void pool_put(struct pool *pool, struct pool_job *j)
{
	bool closing;

	pthread_mutex_lock(&pool->lock);
	closing = pool->closing;
	j->turn = pool->turn;
	j->account_id = 0;
	j->waits = false;
	if (!closing)
		job_queue(pool, j);
	pthread_cond_signal(&pool->more);
	pthread_mutex_unlock(&pool->lock);
	if (closing)
		job_refuse(&(struct pool_thread){.pool = pool}, j);
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request *job_request(struct pool_job *j)
{
	return (struct request *)((char *)j - offsetof(struct request, job));
}

/*
 * A client that closed its side may still read: only work that takes long is cut off for it. What
 * changes something is carried out, whoever has left.
 */
static bool job_client_left(void *ctx, int64_t now_ms)
{
	struct request *r = ctx;
	struct pollfd p = {.fd = r->c->fd, .events = POLLRDHUP};

	return now_ms - (r->limit.until_ms - STORE_READ_MS) >= STORE_LEFT_MS && poll(&p, 1, 0) == 1 &&
		p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void job_limit_set(struct request *r)
{
	bool reads = fw_str_eq(fw_str(r->route->method), FW_STR("GET"));

	r->limit = (struct fw_work_limit){.until_ms = fw_mono_ms() + (reads ? STORE_READ_MS : STORE_WRITE_MS),
		.left = reads ? job_client_left : NULL,
		.ctx = r};
}

/* Does its response wait? It runs once more then. */
static bool request_is_held(struct request *r)
{
	int64_t took_ms = fw_mono_ms() - r->pool_from_ms;

	r->held = r->limit.searched;
	if (r->held)
		r->job.at_ms = r->pool_from_ms + (took_ms / SEARCH_SLICE_MS + 1) * SEARCH_SLICE_MS;
	return r->held;
}

bool http_account_may(struct request *r, int64_t account_id, enum MHD_Result *ok)
{
	enum pool_turn turn = pool_job_is_of(r->thread->h->pool, &r->job, account_id);

	r->retry = turn == POOL_NOT_YET;
	*ok = MHD_YES;
	if (turn == POOL_TOO_MANY)
		*ok = http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
			"the account has %d requests that wait for the store: send fewer at once", POOL_ACCOUNT_MAX);
	return turn == POOL_NOW;
}

static int job_request_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct request *r = job_request(j);

	if (r->held)
		return 0;
	if (r->response) /* of the run before, in which the store failed */
		MHD_destroy_response(r->response);
	r->response = NULL;
	r->retry = false;
	r->store_rc = 0;
	r->store_err = err;
	r->store = st;
	job_limit_set(r);
	if (st) {
		fw_store_limit(st, &r->limit);
		(void)r->route->run(r); /* if it fails, r->response stays NULL and the connection is closed */
		fw_store_limit(st, NULL);
	} else {
		(void)http_store_failed(r, err->rc == FW_EGONE ? FW_EGONE : FW_EIO, err);
	}
	r->store = NULL;
	r->store_err = NULL;
	return r->store_rc ? r->store_rc : r->retry || request_is_held(r) ? POOL_LATER : 0;
}

static void job_request_done(struct pool_job *j)
{
	struct request *r = job_request(j);

	r->state = REQUEST_POOL_DONE;
	server_thread_resume(r->thread->loop, r->conn);
}

enum MHD_Result http_pool_run(struct request *r)
{
	struct pool *pool = r->thread->h->pool;

	if (!pool_take_slot(pool))
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
			"the limit of %d requests that wait for the store is reached", POOL_JOBS_MAX);
	r->job = (struct pool_job){.run = job_request_run,
		.done = job_request_done,
		.repeat = r->route->repeat || fw_str_eq(fw_str(r->route->method), FW_STR("GET"))};
	r->state = REQUEST_IN_POOL;
	r->pool_from_ms = fw_mono_ms();
	r->held = false;
	atomic_fetch_add(&r->thread->h->suspended_n, 1);
	MHD_suspend_connection(r->conn);
	pool_put(pool, &r->job);
	return MHD_YES;
}

enum MHD_Result http_pool_resumed(struct request *r)
{
	struct MHD_Response *m = r->response;

	atomic_fetch_sub(&r->thread->h->suspended_n, 1);
	r->state = REQUEST_RESPONDED;
	r->response = NULL;
	return m ? http_queue(r, r->response_status, m) : MHD_NO;
}

/* ---- gates ----------------------------------------------------------------------------------- */

void http_gate_forget(struct request *r)
{
	if (r->waits)
		atomic_fetch_sub(&r->waits->waiting, 1);
	r->waits = NULL;
}

enum http_gate_state http_gate_enter(struct http_gate *g, struct request *r)
{
	if (!atomic_exchange(&g->taken, true)) {
		http_gate_forget(r);
		return GATE_TAKEN;
	}
	if (!r->waits) {
		if (atomic_fetch_add(&g->waiting, 1) >= GATE_WAITING_MAX) {
			atomic_fetch_sub(&g->waiting, 1);
			return GATE_FULL;
		}
		r->waits = g;
	}
	r->retry = true;
	return GATE_LATER;
}

void http_gate_leave(struct http_gate *g)
{
	atomic_store(&g->taken, false);
}
