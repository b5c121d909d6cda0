/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/http.h"
#include "base/banned.h"

#define OPEN_AGAIN_MS FW_SECOND_MS

struct desk {
	const struct fw_config *config;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct desk_job *first, **end;
	struct desk_job *later, **later_end; /* jobs to run again, in order of at_ms */
	bool closing;
	_Atomic size_t jobs;
	size_t thread_n;
	pthread_t thread[];
};

struct clerk { /* one thread of the pool */
	struct desk *d;
	struct fw_store *st;
	struct fw_err err;    /* why st is NULL */
	int64_t again_ms;     /* monotonic: when to try to open the store again */
};

static void clerk_open(struct clerk *k)
{
	if (k->st || fw_mono_ms() < k->again_ms)
		return;
	if (fw_config_store(k->d->config, FW_STORE_CREATE, &k->st, &k->err))
		k->again_ms = fw_mono_ms() + OPEN_AGAIN_MS;
}

static void clerk_close(struct clerk *k)
{
	fw_store_close(k->st);
	k->st = NULL;
}

static void append(struct desk_job ***end, struct desk_job *j)
{
	j->next = NULL;
	**end = j;
	*end = &j->next;
}

static void come_again(struct desk *d, struct desk_job *j)
{
	j->at_ms = fw_mono_ms() + DESK_LATER_MS;
	pthread_mutex_lock(&d->lock);
	append(&d->later_end, j);
	pthread_cond_signal(&d->more); /* one thread has to wait with a timeout now */
	pthread_mutex_unlock(&d->lock);
}

/* Locked. Move jobs whose time has come to the queue; all of them when the pool is closing. */
static void later_take(struct desk *d)
{
	while (d->later && (d->closing || d->later->at_ms <= fw_mono_ms())) {
		struct desk_job *j = d->later;

		d->later = j->next;
		if (!d->later)
			d->later_end = &d->later;
		append(&d->end, j);
	}
}

/* Locked; unlocks while it waits until there may be a job. */
static void rest(struct desk *d)
{
	struct timespec until;

	if (!d->later) {
		pthread_cond_wait(&d->more, &d->lock);
		return;
	}
	until = fw_timespec(d->later->at_ms);
	(void)pthread_cond_timedwait(&d->more, &d->lock, &until);
}

static void over(struct desk *d, struct desk_job *j)
{
	j->done(j); /* may free j */
	atomic_fetch_sub(&d->jobs, 1);
}

static void turn_away(struct desk *d, struct desk_job *j)
{
	static const struct fw_err STOPPING = {.rc = FW_EGONE, .text = "the server is stopping"};

	(void)j->run(j, NULL, &STOPPING);
	over(d, j);
}

static void work(struct clerk *k, struct desk_job *j)
{
	int rc;

	clerk_open(k);
	rc = j->run(j, k->st, &k->err);
	if (rc == FW_EIO && k->st) {
		clerk_close(k);
		clerk_open(k);
		if (j->repeat)
			rc = j->run(j, k->st, &k->err);
	}
	if (rc == FW_EAGAIN)
		come_again(k->d, j);
	else
		over(k->d, j);
}

static void *clerk_run(void *ctx)
{
	struct clerk k = {.d = ctx};
	struct desk *d = k.d;
	struct desk_job *j;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		bool closing;

		for (later_take(d); !d->first && !d->closing; later_take(d))
			rest(d);
		j = d->first;
		if (!j)
			break;
		d->first = j->next;
		if (!d->first)
			d->end = &d->first;
		closing = d->closing;
		if (d->later) /* another thread waits for their time */
			pthread_cond_signal(&d->more);
		pthread_mutex_unlock(&d->lock);
		if (closing)
			turn_away(d, j);
		else
			work(&k, j);
		pthread_mutex_lock(&d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	clerk_close(&k);
	return NULL;
}

int desk_open(const struct fw_config *c, struct desk **out, struct fw_err *err)
{
	size_t n = (size_t)c->serve_readers;
	struct desk *d = calloc(1, sizeof(*d) + n * sizeof(d->thread[0]));
	pthread_condattr_t by;
	int rc = 0;

	*out = NULL;
	if (!d)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	d->config = c;
	d->end = &d->first;
	d->later_end = &d->later;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&by);
	pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
	pthread_cond_init(&d->more, &by);
	pthread_condattr_destroy(&by);
	for (; d->thread_n < n && !rc; d->thread_n += !rc)
		rc = pthread_create(&d->thread[d->thread_n], NULL, clerk_run, d);
	if (rc) {
		fw_err_set(err, FW_EIO, "serve_readers = %zu: cannot start a thread: %s", n, strerror(rc));
		desk_destroy(d);
		return FW_EIO;
	}
	*out = d;
	return 0;
}

void desk_close(struct desk *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->closing = true;
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < d->thread_n; i++)
		pthread_join(d->thread[i], NULL);
	d->thread_n = 0;
}

void desk_destroy(struct desk *d)
{
	if (!d)
		return;
	desk_close(d);
	pthread_cond_destroy(&d->more);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

bool desk_seat(struct desk *d)
{
	if (atomic_fetch_add(&d->jobs, 1) < DESK_JOBS_MAX)
		return true;
	atomic_fetch_sub(&d->jobs, 1);
	return false;
}

void desk_put(struct desk *d, struct desk_job *j)
{
	bool closing;

	pthread_mutex_lock(&d->lock);
	closing = d->closing;
	if (!closing)
		append(&d->end, j);
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	if (closing)
		turn_away(d, j);
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request *request_of(struct desk_job *j)
{
	return (struct request *)((char *)j - offsetof(struct request, job));
}

static int request_run(struct desk_job *j, struct fw_store *st, const struct fw_err *err)
{
	struct request *r = request_of(j);

	if (r->answer) /* of the run before, in which the store failed */
		MHD_destroy_response(r->answer);
	r->answer = NULL;
	r->again = r->store_broken = false;
	r->store = st;
	if (st)
		(void)r->route->run(r); /* if it fails, r->answer stays NULL and the connection is closed */
	else if (err->rc == FW_EGONE)
		(void)http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable", "%s", err->text);
	else
		(void)http_store_failed(r, FW_EIO, err);
	r->store = NULL;
	return r->store_broken ? FW_EIO : r->again ? FW_EAGAIN : 0;
}

static void request_done(struct desk_job *j)
{
	struct request *r = request_of(j);

	r->state = REQUEST_DESK_DONE;
	lane_resume(r->lane->thread, r->conn);
}

enum MHD_Result http_desk_ask(struct request *r)
{
	struct desk *d = r->lane->h->desk;

	if (!desk_seat(d))
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", "the limit of %d requests that wait for the store is reached", DESK_JOBS_MAX);
	r->job = (struct desk_job){.run = request_run, .done = request_done, 
		.repeat = r->route->repeat || fw_str_eq(fw_str(r->route->method), FW_STR("GET"))};
	r->state = REQUEST_DESK;
	atomic_fetch_add(&r->lane->h->suspended_n, 1);
	MHD_suspend_connection(r->conn);
	desk_put(d, &r->job);
	return MHD_YES;
}

enum MHD_Result http_desk_resumed(struct request *r)
{
	struct MHD_Response *m = r->answer;

	atomic_fetch_sub(&r->lane->h->suspended_n, 1);
	r->state = REQUEST_ANSWERED;
	r->answer = NULL;
	return m ? http_queue(r, r->answer_status, m) : MHD_NO;
}
