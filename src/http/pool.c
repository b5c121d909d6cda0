/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "api/store_link.h"
#include "http/http.h"
#include "base/banned.h"

struct pool {
	const struct fw_config *config;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct pool_job *first, **end;
	struct pool_job *delayed, **delayed_end; /* jobs to run again, in order of at_ms */
	bool closing;
	_Atomic size_t jobs;
	int64_t *busy; /* the account that each thread works for; 0: none */
	size_t busy_n; /* threads in all */
	size_t thread_n;
	pthread_t thread[];
};

/* one thread of the pool */
struct pool_thread {
	struct pool *pool;
	struct store_link link;
};

static void job_append(struct pool_job ***end, struct pool_job *j)
{
	j->next = NULL;
	**end = j;
	*end = &j->next;
}

static void pool_delay(struct pool *pool, struct pool_job *j)
{
	j->at_ms = fw_mono_ms() + POOL_RETRY_MS;
	pthread_mutex_lock(&pool->lock);
	job_append(&pool->delayed_end, j);
	pthread_cond_signal(&pool->more); /* one thread has to wait with a timeout now */
	pthread_mutex_unlock(&pool->lock);
}

/* Locked. Move jobs whose time has come to the queue; all of them when the pool is closing. */
static void pool_take_delayed(struct pool *pool)
{
	while (pool->delayed && (pool->closing || pool->delayed->at_ms <= fw_mono_ms())) {
		struct pool_job *j = pool->delayed;

		pool->delayed = j->next;
		if (!pool->delayed)
			pool->delayed_end = &pool->delayed;
		job_append(&pool->end, j);
	}
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

static void job_refuse(struct pool *pool, struct pool_job *j)
{
	struct fw_err stopping = {.rc = FW_EGONE, .text = "the server is stopping"};

	(void)j->run(j, NULL, &stopping);
	job_finish(pool, j);
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
	if (rc == POOL_LATER)
		pool_delay(t->pool, j);
	else
		job_finish(t->pool, j);
}

static void *pool_thread_run(void *ctx)
{
	struct pool *pool = ctx;
	struct pool_thread t = {
		.pool = pool, .link = {.config = pool->config, .who = "requests", .waits = "they are answered 503"}};
	struct pool_job *j;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		bool closing;

		for (pool_take_delayed(pool); !pool->first && !pool->closing; pool_take_delayed(pool))
			pool_wait(&t);
		j = pool->first;
		if (!j)
			break;
		pool->first = j->next;
		if (!pool->first)
			pool->end = &pool->first;
		closing = pool->closing;
		if (pool->delayed) /* another thread waits for their time */
			pthread_cond_signal(&pool->more);
		pthread_mutex_unlock(&pool->lock);
		if (closing)
			job_refuse(pool, j);
		else
			job_run(&t, j);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	store_link_close(&t.link);
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
	pool->busy = calloc(n, sizeof(*pool->busy));
	if (!pool->busy) {
		free(pool);
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	pool->busy_n = n;
	pool->config = c;
	pool->end = &pool->first;
	pool->delayed_end = &pool->delayed;
	pthread_mutex_init(&pool->lock, NULL);
	fw_mono_cond_init(&pool->more);
	for (; pool->thread_n < n && !rc; pool->thread_n += !rc)
		rc = pthread_create(&pool->thread[pool->thread_n], NULL, pool_thread_run, pool);
	if (rc) {
		fw_err_set(err, FW_EIO, "serve_pool_threads = %zu: cannot start a thread: %s", n, strerror(rc));
		pool_destroy(pool);
		return FW_EIO;
	}
	*out = pool;
	return 0;
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
		pthread_join(pool->thread[i], NULL);
	pool->thread_n = 0;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	pool_close(pool);
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->lock);
	free(pool->busy);
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
	if (!closing)
		job_append(&pool->end, j);
	pthread_cond_signal(&pool->more);
	pthread_mutex_unlock(&pool->lock);
	if (closing)
		job_refuse(pool, j);
}

/* ---- requests -------------------------------------------------------------------------------- */

bool pool_account_enter(struct request *r, int64_t account_id)
{
	struct pool *pool = r->thread->h->pool;
	size_t n = 0, spare = 0, most = FW_MAX(pool->busy_n, (size_t)2) - 1;

	assert(account_id && !r->account_id);
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < pool->busy_n; i++) {
		n += pool->busy[i] == account_id;
		spare = pool->busy[i] ? spare : i;
	}
	if (n < most) {
		assert(!pool->busy[spare]); /* each thread runs one request */
		pool->busy[spare] = account_id;
		r->account_id = account_id;
	}
	pthread_mutex_unlock(&pool->lock);
	r->job.account_id = n < most ? 0 : account_id;
	r->retry = n >= most;
	return n < most;
}

/* Locked. The first job that waits for a thread of this account need not wait longer. */
static void pool_account_wake(struct pool *pool, int64_t account_id)
{
	struct pool_job **at = &pool->delayed, *j;

	while (*at && (*at)->account_id != account_id)
		at = &(*at)->next;
	j = *at;
	if (!j)
		return;
	*at = j->next;
	if (pool->delayed_end == &j->next)
		pool->delayed_end = at;
	job_append(&pool->end, j);
	pthread_cond_signal(&pool->more);
}

static void pool_account_leave(struct request *r)
{
	struct pool *pool = r->thread->h->pool;
	size_t i = 0;

	if (!r->account_id)
		return;
	pthread_mutex_lock(&pool->lock);
	while (pool->busy[i] != r->account_id)
		i++;
	pool->busy[i] = 0;
	pool_account_wake(pool, r->account_id);
	pthread_mutex_unlock(&pool->lock);
	r->account_id = 0;
}

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

static int job_request_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct request *r = job_request(j);

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
		pool_account_leave(r);
	} else if (err->rc == FW_EGONE)
		(void)http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", err->text);
	else
		(void)http_store_failed(r, FW_EIO, err);
	r->store = NULL;
	r->store_err = NULL;
	return r->store_rc ? r->store_rc : r->retry ? POOL_LATER : 0;
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
