/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/run/parser_thread.h"
#include "engine/rows.h"

/* ---- which feed to charge -------------------------------------------------------------------- */

static const int CRASH_SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
static struct sigaction old_action[FW_N(CRASH_SIGNALS)];
static struct worker_shared *crash_shared;
static _Thread_local volatile int64_t reading_here;

static _Atomic int64_t *reading_place(struct worker_shared *shared, const struct visit *v)
{
	return v->large ? &shared->reading_large_id : &shared->reading_feed_id;
}

void reading_begin(struct worker_shared *shared, const struct visit *v)
{
	reading_here = v->feed.id;
	atomic_store(reading_place(shared, v), v->feed.id);
#ifdef FW_TEST_HOOKS
	{
		const char *part = getenv("FEEDWHEEL_TEST_CRASH"), *file = getenv("FEEDWHEEL_TEST_STALL");

		while (v->large && file && access(file, F_OK) == 0)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		if (part && fw_str_find(v->feed.url, fw_str(part)))
			abort();
	}
#endif
}

void reading_end(struct worker_shared *shared, const struct visit *v)
{
	reading_here = 0;
	atomic_store(reading_place(shared, v), 0);
}

/*
 * Runs on the thread that crashed. The old handler is restored, so the thread crashes again when
 * this returns.
 */
static void parser_thread_on_crash(int number, siginfo_t *info, void *context)
{
	int64_t id = reading_here;

	(void)context;
	atomic_store(&crash_shared->crashed_reading_id, id ? id : READING_NOTHING);
	for (size_t i = 0; i < FW_N(CRASH_SIGNALS); i++) {
		if (CRASH_SIGNALS[i] == number)
			(void)sigaction(number, &old_action[i], NULL);
	}
	/* sent by a process, or not repeated: raise it again */
	if (info->si_code <= 0 || number == SIGSYS)
		(void)raise(number);
}

int reading_catch_crashes(struct worker_shared *shared, struct fw_err *err)
{
	struct sigaction a = {.sa_sigaction = parser_thread_on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	crash_shared = shared;
	for (size_t i = 0; i < FW_N(CRASH_SIGNALS); i++) {
		if (sigaction(CRASH_SIGNALS[i], &a, &old_action[i]))
			return fw_err_set(
				err, FW_EIO, "signal %d cannot be handled: %s", CRASH_SIGNALS[i], strerror(errno));
	}
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * Runs on the parser thread. The loop changes nothing that it reads meanwhile; the visit is its
 * own.
 */
static void parser_thread_on_work(uv_work_t *work)
{
	struct parser_thread *r = work->data;
	struct visit *v = r->first;
	size_t need;

	reading_begin(r->shared, v);
	if (v->fetch.coded)
		fw_fetch_decode(&v->fetch);
	need = rows_memory_limit(v->fetch.body.len, r->rules->parse_memory);
	r->need = need > r->room ? need : 0;
	if (!r->need)
		visit_read(v, r->rules, fw_config_now_ms(r->config));
	reading_end(r->shared, v);
}

static struct visit *parser_thread_take(struct parser_thread *r, struct visit **at)
{
	struct visit *v = *at;

	assert(v && r->n);
	*at = v->next;
	if (!*at)
		r->end = at;
	v->next = NULL;
	r->n--;
	return v;
}

/* The visit no longer waits in coded form. */
static void parser_thread_uncount_coded(struct parser_thread *r, const struct visit *v)
{
	if (!v->fetch.coded)
		return;
	assert(r->coded_bytes >= v->fetch.body.len);
	r->coded_bytes -= v->fetch.body.len;
	fw_fetcher_set_undecoded(r->fetcher, r->coded_bytes);
}

static void parser_thread_on_worked(uv_work_t *work, int status);

/*
 * Start the first visit in the queue if there is room. If nothing else is held, it may use any
 * amount.
 */
static void parser_thread_next(struct parser_thread *r)
{
	size_t all = r->rules->parse_memory,
	       room = !r->held_bytes ? SIZE_MAX :
		r->held_bytes < all  ? all - r->held_bytes :
				       0;

	if (r->busy || r->closed || !r->first || r->need > room)
		return;
	r->room = room;
	r->busy = true;
	r->since_ms = fw_mono_ms();
	parser_thread_uncount_coded(r, r->first);
	if (uv_queue_work(r->loop, &r->work, parser_thread_on_work, parser_thread_on_worked))
		abort(); /* fails only without a callback */
}

static void parser_thread_on_worked(uv_work_t *work, int status)
{
	struct parser_thread *r = work->data;

	(void)status; /* never cancelled */
	assert(r->busy && r->first);
	r->busy = false;
	r->since_ms = 0;
	if (r->closed)
		return;
	if (!r->need)
		r->done(parser_thread_take(r, &r->first));
	parser_thread_next(r);
}

void parser_thread_init(struct parser_thread *r)
{
	r->end = &r->first;
	r->work.data = r;
}

void parser_thread_push(struct parser_thread *r, struct visit *v)
{
	v->large = true;
	v->next = NULL;
	*r->end = v;
	r->end = &v->next;
	r->n++;
	r->coded_bytes += v->fetch.body.len;
	fw_fetcher_set_undecoded(r->fetcher, r->coded_bytes);
	parser_thread_next(r);
}

void parser_thread_hold(struct parser_thread *r, const struct visit *v)
{
	r->held_bytes += v->held_bytes;
}

void parser_thread_release(struct parser_thread *r, const struct visit *v)
{
	assert(r->held_bytes >= v->held_bytes);
	r->held_bytes -= v->held_bytes;
	parser_thread_next(r);
}

struct visit *parser_thread_take_back(struct parser_thread *r)
{
	struct visit **at = r->busy ? &r->first->next : &r->first;

	if (!r->first || !*at)
		return NULL;
	if (!r->busy)
		r->need = 0;
	parser_thread_uncount_coded(r, *at);
	return parser_thread_take(r, at);
}

void parser_thread_close(struct parser_thread *r)
{
	r->closed = true;
}
