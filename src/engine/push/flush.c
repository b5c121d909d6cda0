/* SPDX-License-Identifier: ISC */
/*
 * Ingest: the producers' rings, and the flusher thread that stores their rows in bulk.
 *
 * A record in a ring is a row, or a waiting caller (fw_push_wait), which precedes the rows of its
 * publish. The flusher collects rows of all rings into one batch, lowest id first; their texts stay
 * in the rings. It commits the batch when one of these holds:
 *
 * - the batch has flush_rows rows, or is flush_ms old;
 * - a caller has waited for flush_durable_ms;
 * - as many callers wait as the last batch answered. Clients that push in a loop have then all sent
 *   their next push.
 *
 * A batch holds at most twice flush_rows: a commit has a fixed cost, so under load larger batches
 * are cheaper. Ring space is released only after its rows are committed or are dead letters.
 *
 * Wake-ups are rare while the flusher sleeps: for the first row after a pause, for a waiting
 * caller, and when a ring holds its share of a batch. No wake-up is lost: a producer publishes,
 * clears busy, then reads asleep; the flusher sets asleep, reads every busy, then looks for rows
 * again. All of these are seq_cst, so at least one side sees the other.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/byte_ring.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/retry.h"
#include "engine/push/spill.h"
#include "feedwheel/ingest.h"
#include "base/banned.h"

#define IP_TEXT_MAX INET6_ADDRSTRLEN

enum { AWAKE, IDLE /* any row wakes it */, COLLECTING /* a waiting caller or many rows wake it */ };
enum { RECORD_ROW, RECORD_WAIT };

struct row { /* a record of a ring */
	uint8_t kind, ip_len;
	uint16_t property_len;
	uint32_t rows;             /* RECORD_WAIT: number of rows after it that belong to it */
	int64_t id;                /* RECORD_WAIT: 0 */
	int64_t section, item, stamp_ms;
	struct fw_push_wait *wait; /* RECORD_WAIT */
	unsigned char ip[16];
	char property[];
};

struct fw_lane_in {
	struct fw_byte_ring ring;
	struct fw_ingest *in;
	/* written by the producer */
	_Alignas(FW_CACHE_LINE) _Atomic bool busy; /* from begin to publish or forget */
	uint32_t draft_n;
	struct row *draft_wait;      /* NULL: no caller waits */
	int64_t draft_ms;
	_Atomic uint64_t put_n, full_n;
	/* written by the flusher */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t taken_n;
	struct fw_push_wait *wait; /* the caller whose rows are being collected */
	uint32_t wait_left;
};

struct batch_row {
	struct fw_push_wait *wait; /* NULL: no caller waits */
	char ip[IP_TEXT_MAX];
};

struct fw_ingest {
	const struct fw_config *config;
	struct fw_ids ids;
	pthread_t thread;
	int wake_fd;
	_Alignas(FW_CACHE_LINE) _Atomic int asleep;
	_Atomic bool closing;
	_Atomic int64_t close_by_ms;  /* monotonic */
	/* counters, written by the flusher */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t stored_n, dead_n, flush_n, retry_n, flush_us, flush_cpu_us, bucket[FW_FLUSH_BUCKETS];
	_Atomic int64_t oldest_ms;    /* Unix time; 0: no row waits */
	_Atomic bool away, replayed;
	/* private to the flusher */
	struct fw_store *st;
	struct fw_spill *spill;       /* NULL: none */
	/* reads the files of earlier processes; NULL: all are read */
	struct fw_spill_reader *reader;
	bool replaying;               /* the batch comes from the reader */
	bool given_up;                /* rows released now are not stored */
	struct fw_event *event;       /* the batch, in the form of the store */
	struct batch_row *row;        /* per row: the caller and the IP address text */
	/* rows in the batch; the first `done` of them are committed or dead letters */
	size_t n, done;
	size_t due_n, cap;            /* rows that make a batch due; maximum rows of a batch */
	/* publishes with a waiting caller; those that the last batch answered */
	size_t waiting, answered;
	uint64_t left;                /* rows that were abandoned */
	int64_t *head_id;             /* id of each ring's next record; INT64_MAX: none */
	/* monotonic: start of the batch; when the first waiting caller was seen */
	int64_t since_ms, waiting_since_ms;
	struct retry retry;                 /* backoff during an outage */
	size_t lane_n;
	struct fw_lane_in lane[];
};

const uint32_t fw_flush_bucket_us[FW_FLUSH_BUCKETS] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
	UINT32_MAX};

/* ---- producers ----------------------------------------------------------- */

static void wake(struct fw_ingest *in)
{
	static const uint64_t one = 1;

	while (write(in->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static size_t lane_index(const struct fw_lane_in *l)
{
	assert(l >= l->in->lane && l < l->in->lane + l->in->lane_n);
	return (size_t)(l - l->in->lane);
}

void fw_ingest_forget(struct fw_lane_in *l)
{
	fw_byte_ring_forget(&l->ring);
	if (l->in->spill)
		fw_spill_forget(l->in->spill, lane_index(l));
	l->draft_n = 0;
	atomic_store_explicit(&l->busy, false, memory_order_release);
}

static int full(struct fw_lane_in *l)
{
	fw_ingest_forget(l);
	atomic_fetch_add_explicit(&l->full_n, 1, memory_order_relaxed);
	return FW_EAGAIN;
}

int fw_ingest_begin(struct fw_lane_in *l, struct fw_push_wait *wait)
{
	struct row *w;

	/*
	 * Set busy, then read closing. The flusher sets closing, then reads busy: at least one side
	 * sees the other.
	 */
	atomic_store(&l->busy, true);
	if (atomic_load(&l->in->closing)) {
		atomic_store(&l->busy, false);
		return FW_EGONE;
	}
	l->draft_n = 0;
	l->draft_wait = NULL;
	l->draft_ms = fw_now_ms();
	if (!wait)
		return 0;
	w = fw_byte_ring_draft(&l->ring, sizeof(*w));
	if (!w)
		return full(l);
	*w = (struct row){.kind = RECORD_WAIT, .wait = wait};
	l->draft_wait = w;
	return 0;
}

int fw_ingest_put(struct fw_lane_in *l, const struct fw_event *e)
{
	struct row *r;

	if (e->property.len > FW_PROPERTY_MAX || (e->remote_ip.len && e->remote_ip.len != 4 && e->remote_ip.len != 16))
		return FW_EINVAL;
	r = fw_byte_ring_draft(&l->ring, sizeof(*r) + e->property.len);
	if (!r)
		return full(l);
	*r = (struct row){.kind = RECORD_ROW, .ip_len = (uint8_t)e->remote_ip.len, .property_len = (uint16_t)e->property.len,
		.id = fw_ids_take(&l->in->ids, 1, l->draft_ms), .section = e->section, .item = e->item, .stamp_ms = e->stamp_ms};
	if (e->remote_ip.len)
		memcpy(r->ip, e->remote_ip.p, e->remote_ip.len);
	if (e->property.len)
		memcpy(r->property, e->property.p, e->property.len);
	if (l->in->spill && !l->draft_wait)
		fw_spill_add(l->in->spill, lane_index(l), r, sizeof(*r) + e->property.len);
	l->draft_n++;
	return 0;
}

int fw_ingest_publish(struct fw_lane_in *l, struct fw_err *err)
{
	struct fw_ingest *in = l->in;
	bool waits = l->draft_wait != NULL;
	uint64_t put_n = atomic_load_explicit(&l->put_n, memory_order_relaxed) + l->draft_n;
	int asleep;

	if (waits) {
		l->draft_wait->rows = l->draft_n;
	} else if (in->spill) {
		int rc = fw_spill_write(in->spill, lane_index(l), put_n, err);

		if (rc) {
			(void)full(l);
			return rc;
		}
	}
	fw_byte_ring_publish(&l->ring);
	atomic_store_explicit(&l->put_n, put_n, memory_order_relaxed);
	l->draft_n = 0;
	l->draft_wait = NULL;
	atomic_store(&l->busy, false);
	asleep = atomic_load(&in->asleep);
	if (asleep == AWAKE)
		return 0;
	if (asleep == IDLE || waits ||
	    put_n - atomic_load_explicit(&l->taken_n, memory_order_relaxed) >= in->due_n / in->lane_n) {
		if (atomic_exchange_explicit(&in->asleep, AWAKE, memory_order_relaxed) != AWAKE)
			wake(in);
	}
	return 0;
}

/* ---- the batch ----------------------------------------------------------- */

static void wait_over(struct fw_ingest *in, struct fw_push_wait *w)
{
	in->answered++;
	w->done(w, w->rc, w->why);
}

static void wait_begin(struct fw_ingest *in, struct fw_lane_in *l, const struct row *r, int64_t mono_ms)
{
	struct fw_push_wait *w = r->wait;

	assert(w && !l->wait); /* the rows of the one before are all read */
	w->left = r->rows;
	w->rc = 0;
	w->why[0] = 0;
	if (!r->rows) { /* no rows: nothing to wait for */
		wait_over(in, w);
		return;
	}
	l->wait = w;
	l->wait_left = r->rows;
	if (!in->waiting++)
		in->waiting_since_ms = mono_ms;
}

/* Formats an IPv4 address. inet_ntop() would cost as much as the rest of row_take(). */
static size_t ip4_text(const unsigned char ip[4], char *to)
{
	char *p = to;

	for (size_t i = 0; i < 4; i++) {
		if (i)
			*p++ = '.';
		if (ip[i] >= 100)
			*p++ = (char)('0' + ip[i] / 100);
		if (ip[i] >= 10)
			*p++ = (char)('0' + ip[i] / 10 % 10);
		*p++ = (char)('0' + ip[i] % 10);
	}
	return (size_t)(p - to);
}

/* Adds a row to the batch. l is NULL for a row of an earlier process. */
static void row_take(struct fw_ingest *in, struct fw_lane_in *l, const struct row *r)
{
	struct fw_event *e = &in->event[in->n];
	char *ip = in->row[in->n].ip;
	size_t ip_len = 0;

	assert(in->n < in->cap);
	if (r->ip_len == 4)
		ip_len = ip4_text(r->ip, ip);
	else if (r->ip_len && inet_ntop(AF_INET6, r->ip, ip, IP_TEXT_MAX))
		ip_len = strlen(ip);
	*e = (struct fw_event){.id = r->id, .property = {r->property, r->property_len}, .section = r->section, .item = r->item,
		.remote_ip = {ip, ip_len}, .stamp_ms = r->stamp_ms};
	in->row[in->n].wait = l ? l->wait : NULL;
	if (l && l->wait && --l->wait_left == 0)
		l->wait = NULL;
	in->n++;
}

static void head_look(struct fw_ingest *in, size_t lane)
{
	size_t len;
	const struct row *r = fw_byte_ring_peek(&in->lane[lane].ring, &len);

	in->head_id[lane] = r ? r->id : INT64_MAX;
}

/* Takes rows from one ring up to this id, until the ring is empty or the batch is full. */
static void lane_take(struct fw_ingest *in, size_t lane, int64_t upto, int64_t mono_ms)
{
	struct fw_lane_in *l = &in->lane[lane];
	size_t before = in->n, len;

	do {
		const struct row *r = fw_byte_ring_next(&l->ring, &len);

		assert(r && r->id <= upto);
		if (r->kind == RECORD_WAIT)
			wait_begin(in, l, r, mono_ms);
		else
			row_take(in, l, r);
		head_look(in, lane);
	} while (in->n < in->cap && in->head_id[lane] <= upto && in->head_id[lane] != INT64_MAX);
	if (in->n > before)
		atomic_fetch_add_explicit(&l->taken_n, in->n - before, memory_order_relaxed);
}

/* Merges all rings in order of the ids: ascending keys cost a B-tree the least work and space. */
static void lanes_take(struct fw_ingest *in, int64_t mono_ms)
{
	for (size_t i = 0; i < in->lane_n; i++)
		head_look(in, i);
	while (in->n < in->cap) {
		int64_t lowest = INT64_MAX, second = INT64_MAX;
		size_t lane = 0;

		for (size_t i = 0; i < in->lane_n; i++) {
			if (in->head_id[i] < lowest) {
				second = lowest;
				lowest = in->head_id[i];
				lane = i;
			} else if (in->head_id[i] < second) {
				second = in->head_id[i];
			}
		}
		if (lowest == INT64_MAX)
			return;
		lane_take(in, lane, second, mono_ms);
	}
}

static void collect(struct fw_ingest *in, int64_t mono_ms)
{
	size_t before = in->n;

	assert(!in->done && !in->replaying);
	lanes_take(in, mono_ms);
	if (!before && in->n) {
		int64_t oldest_ms = in->event[0].stamp_ms;

		for (size_t i = 1; i < in->n; i++)
			oldest_ms = FW_MIN(oldest_ms, in->event[i].stamp_ms);
		atomic_store_explicit(&in->oldest_ms, oldest_ms, memory_order_relaxed);
		in->since_ms = mono_ms;
	}
}

/*
 * The batch is committed or in dead letters: answers the callers whose last row it had, and
 * releases the rings' space.
 */
static void batch_over(struct fw_ingest *in)
{
	assert(in->done == in->n || in->given_up);
	in->answered = 0;
	for (size_t i = 0; i < in->lane_n && !in->replaying; i++) {
		fw_byte_ring_release(&in->lane[i].ring);
		if (in->spill && !in->given_up)
			fw_spill_stored(in->spill, i, atomic_load_explicit(&in->lane[i].taken_n, memory_order_relaxed));
	}
	in->replaying = false;
	for (size_t i = 0; i < in->n; i++) {
		struct fw_push_wait *w = in->row[i].wait;

		assert(!w || w->left);
		if (w && --w->left == 0) {
			in->waiting--;
			wait_over(in, w);
		}
	}
	in->n = in->done = 0;
	in->waiting_since_ms = fw_mono_ms(); /* for callers with more rows in the next batch */
	atomic_store_explicit(&in->oldest_ms, 0, memory_order_relaxed);
}

static bool batch_due(const struct fw_ingest *in, int64_t mono_ms)
{
	if (!in->n)
		return false;
	return in->done || in->replaying || in->n >= in->due_n || mono_ms - in->since_ms >= in->config->flush_ms || atomic_load(&in->closing) ||
		(in->waiting && (in->waiting >= in->answered || mono_ms - in->waiting_since_ms >= in->config->flush_durable_ms));
}

/* ---- replay -------------------------------------------------------------- */

static void replay_end(struct fw_ingest *in)
{
	fw_spill_reader_close(in->reader);
	in->reader = NULL;
}

/* Fills the batch with rows of the open file. */
static void replay_file(struct fw_ingest *in)
{
	struct fw_str record;

	while (in->n < in->cap && fw_spill_read(in->reader, &record)) {
		const struct row *r = (const struct row *)(const void *)record.p;

		if (record.len >= sizeof(*r) && r->kind == RECORD_ROW && record.len == sizeof(*r) + r->property_len)
			row_take(in, NULL, r);
		else
			fw_error("spill_dir: skipped a record of %zu bytes that is not a row of this version", record.len);
	}
}

/* Collects the next batch from the files of earlier processes. The store skips rows that it has. */
static void replay(struct fw_ingest *in)
{
	replay_file(in);
	while (!in->n) {
		if (!fw_spill_reader_next(in->reader)) {
			replay_end(in);
			atomic_store(&in->replayed, true);
			return;
		}
		replay_file(in);
	}
	in->replaying = true;
}

/* ---- the store ----------------------------------------------------------- */

static void ask_later(struct fw_ingest *in, const char *doing, const struct fw_err *err)
{
	int64_t wait = retry_later(&in->retry);

	atomic_store(&in->away, true);
	atomic_fetch_add(&in->retry_n, 1);
	fw_warn("%s: %s; the rows wait, next attempt in %d ms", doing, err->text, (int)wait);
}

static void outage_over(struct fw_ingest *in)
{
	if (in->retry.pause_ms)
		fw_info("the store accepts rows again");
	in->retry = (struct retry){0};
	atomic_store(&in->away, false);
}

static bool store_ready(struct fw_ingest *in)
{
	struct fw_err err;

	if (in->st)
		return true;
	if (!fw_config_store(in->config, FW_STORE_CREATE, &in->st, &err))
		return true;
	in->st = NULL;
	ask_later(in, "opening the store", &err);
	return false;
}

/* Stores a row that the store refuses as a dead letter, with the reason. */
static int set_aside(struct fw_ingest *in, size_t i, const struct fw_err *why, struct fw_err *err)
{
	struct fw_push_wait *w = in->row[i].wait;
	struct fw_buf json = FW_BUF_INIT(0);
	struct fw_dead_event dead = {.id = in->event[i].id, .reason = fw_str(why->text), .at_ms = fw_now_ms()};
	int rc;

	fw_event_row(&in->event[i], &json);
	dead.row = fw_buf_str(&json);
	rc = json.rc ? fw_err_set(err, json.rc, "out of memory") : fw_store_event_bury(in->st, &dead, err);
	if (!rc)
		fw_warn("a row was refused and is a dead letter now: %s", why->text);
	else if (!retry_is_passing(rc)) /* the log is the only copy left */
		fw_error("a row was refused (%s), and so was its dead letter (%s): %.*s", why->text, err->text, FW_STR_ARG(fw_buf_str(&json)));
	fw_buf_finish(&json);
	if (retry_is_passing(rc))
		return rc;
	atomic_fetch_add(&in->dead_n, 1);
	if (w) {
		w->rc = FW_EINVAL;
		fw_str_copy(w->why, sizeof(w->why), fw_str(why->text));
	}
	return 0;
}

static void flushed(struct fw_ingest *in, size_t n, int64_t us)
{
	size_t b = 0;

	while (us > (int64_t)fw_flush_bucket_us[b])
		b++;
	atomic_fetch_add(&in->bucket[b], 1);
	atomic_fetch_add(&in->flush_us, (uint64_t)us);
	atomic_fetch_add(&in->flush_n, 1);
	atomic_fetch_add(&in->stored_n, n);
}

/*
 * Stores rows [done, done + n). On a refusal it halves the range to isolate the refused rows.
 * Advances done over the rows that are handled.
 */
static int store_rows(struct fw_ingest *in, size_t n, struct fw_err *err)
{
	int64_t start_us = fw_mono_us(), cpu_us = fw_thread_cpu_us();
	int rc = fw_store_event_put(in->st, &in->event[in->done], n, err);
	struct fw_err why;

	assert(n && in->done + n <= in->n);
	atomic_fetch_add(&in->flush_cpu_us, (uint64_t)(fw_thread_cpu_us() - cpu_us));

	if (!rc) {
		flushed(in, n, fw_mono_us() - start_us);
		in->done += n;
		return 0;
	}
	if (retry_is_passing(rc))
		return rc;
	if (n > 1) {
		rc = store_rows(in, n / 2, err);
		return rc ? rc : store_rows(in, n - n / 2, err);
	}
	why = *err;
	rc = set_aside(in, in->done, &why, err);
	in->done += rc == 0;
	return rc;
}

static void flush(struct fw_ingest *in)
{
	struct fw_err err;
	int rc;

	if (!store_ready(in))
		return;
	rc = store_rows(in, in->n - in->done, &err);
	if (!rc) {
		outage_over(in);
		batch_over(in);
		return;
	}
	ask_later(in, "storing rows", &err);
	if (retry_reopens(&in->retry, rc, in->config)) {
		fw_store_close(in->st);
		in->st = NULL;
	}
}

/* ---- the thread ---------------------------------------------------------- */

static void doze(struct fw_ingest *in, int64_t ms)
{
	struct pollfd p = {.fd = in->wake_fd, .events = POLLIN};
	uint64_t drop;

	if (poll(&p, 1, ms < 0 ? -1 : (int)FW_MIN(ms, FW_HOUR_MS)) > 0 && read(in->wake_fd, &drop, sizeof(drop)) < 0)
		fw_debug("wake-up: %s", strerror(errno));
}

/* Time until the batch is due, in ms; -1: no batch. */
static int64_t quiet_ms(const struct fw_ingest *in, int64_t mono_ms)
{
	int64_t until;

	if (!in->n)
		return -1;
	until = in->since_ms + in->config->flush_ms;
	if (in->waiting)
		until = FW_MIN(until, in->waiting_since_ms + in->config->flush_durable_ms);
	return FW_MAX(until - mono_ms, 0);
}

/*
 * True if no producer is between begin and publish. There is no early exit: reading every flag
 * orders the caller after everything that was published before.
 */
static bool all_quiet(const struct fw_ingest *in)
{
	size_t busy = 0;

	for (size_t i = 0; i < in->lane_n; i++)
		busy += atomic_load(&in->lane[i].busy);
	return !busy;
}

static void sleep_until_due(struct fw_ingest *in)
{
	size_t before = in->n;

	atomic_store(&in->asleep, in->n ? COLLECTING : IDLE);
	(void)all_quiet(in);
	collect(in, fw_mono_ms());
	if (in->n == before && !atomic_load(&in->closing))
		doze(in, quiet_ms(in, fw_mono_ms()));
	atomic_store_explicit(&in->asleep, AWAKE, memory_order_relaxed);
}

/* The store did not recover in time: answers the callers, and counts the rows that are lost. */
static void give_up(struct fw_ingest *in)
{
	while (in->n || !all_quiet(in)) {
		for (size_t i = in->done; i < in->n && !in->replaying; i++)
			/* the others are in the write-ahead log */
			in->left += !in->spill || in->row[i].wait;
		for (size_t i = in->done; i < in->n; i++) {
			struct fw_push_wait *w = in->row[i].wait;

			if (w && w->rc == 0) {
				w->rc = FW_EAGAIN;
				fw_str_copy(w->why, sizeof(w->why), FW_STR("the server is stopping, and its store does not respond"));
			}
		}
		in->given_up = true;
		batch_over(in);
		collect(in, fw_mono_ms());
	}
	replay_end(in);
}

static void *flusher_main(void *arg)
{
	struct fw_ingest *in = arg;

	for (;;) {
		int64_t mono_ms = fw_mono_ms();
		bool closing = atomic_load(&in->closing), closed = closing && all_quiet(in);

		if (closing && in->retry.pause_ms && mono_ms >= atomic_load(&in->close_by_ms)) {
			give_up(in);
			break;
		}
		if (closing && in->reader && !in->replaying)
			replay_end(in); /* the next start replays the rest */
		if (in->reader && !in->n)
			replay(in);
		/* a partly stored or replayed batch is finished before new rows are added */
		if (!in->done && !in->replaying)
			collect(in, mono_ms);
		if (closed && !in->n)
			break;
		if (in->retry.at_ms > mono_ms)
			doze(in, in->retry.at_ms - mono_ms);
		else if (batch_due(in, mono_ms))
			flush(in);
		else if (closing)
			sched_yield(); /* a producer is still publishing */
		else
			sleep_until_due(in);
	}
	fw_store_close(in->st);
	in->st = NULL;
	return NULL;
}

/* ---- create and destroy -------------------------------------------------- */

void fw_ingest_destroy(struct fw_ingest *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->lane_n; i++)
		fw_byte_ring_finish(&in->lane[i].ring);
	if (in->wake_fd >= 0)
		close(in->wake_fd);
	fw_spill_close(in->spill);
	fw_spill_reader_close(in->reader);
	free(in->event);
	free(in->row);
	free(in->head_id);
	free(in);
}

static int lanes_init(struct fw_ingest *in, struct fw_err *err)
{
	size_t bytes = (size_t)in->config->ring_bytes / in->lane_n;

	for (size_t i = 0; i < in->lane_n; i++) {
		int rc = fw_byte_ring_init(&in->lane[i].ring, bytes);

		in->lane[i].in = in;
		if (rc == FW_EINVAL)
			return fw_err_set(err, rc, "ring_bytes = %lld is too small for %zu rings: each needs at least 4 KiB",
				(long long)in->config->ring_bytes, in->lane_n);
		if (rc)
			return fw_err_set(err, rc, "out of memory for rings of %lld bytes (lower ring_bytes)", (long long)in->config->ring_bytes);
	}
	return 0;
}

int fw_ingest_open(const struct fw_config *c, size_t lanes, struct fw_ingest **out, struct fw_err *err)
{
	struct fw_ingest *in;
	void *mem = NULL;
	int rc;

	*out = NULL;
	if (posix_memalign(&mem, FW_CACHE_LINE, sizeof(*in) + lanes * sizeof(in->lane[0])))
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	memset(mem, 0, sizeof(*in) + lanes * sizeof(in->lane[0]));
	in = mem;
	in->config = c;
	in->lane_n = lanes;
	in->due_n = (size_t)c->flush_rows;
	in->cap = in->due_n > 1 ? 2 * in->due_n : 1;
	in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fw_ids_init(&in->ids, c->machine_id);
	in->event = calloc(in->cap, sizeof(*in->event));
	in->row = calloc(in->cap, sizeof(*in->row));
	in->head_id = calloc(lanes, sizeof(*in->head_id));
	rc = lanes_init(in, err);
	if (!rc && (!in->event || !in->row || !in->head_id))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory for batches of %zu rows (lower flush_rows)", in->cap);
	if (!rc && in->wake_fd < 0)
		rc = fw_err_set(err, FW_EIO, "cannot create the flusher's eventfd: %s", strerror(errno));
	if (!rc && c->spill_dir)
		rc = fw_spill_open(c->spill_dir, c->spill_sync_ms, lanes, &in->spill, err);
	if (!rc && c->spill_dir)
		rc = fw_spill_reader_open(c->spill_dir, &in->reader, err);
	if (!rc && pthread_create(&in->thread, NULL, flusher_main, in))
		rc = fw_err_set(err, FW_EIO, "cannot start the flusher thread (see ulimit -u)");
	if (rc)
		fw_ingest_destroy(in);
	else
		*out = in;
	return rc;
}

uint64_t fw_ingest_stop(struct fw_ingest *in, int64_t patience_ms)
{
	atomic_store(&in->close_by_ms, fw_mono_ms() + patience_ms);
	atomic_store(&in->closing, true);
	wake(in);
	pthread_join(in->thread, NULL);
	return in->left;
}

struct fw_lane_in *fw_ingest_lane(struct fw_ingest *in, size_t i)
{
	return &in->lane[i];
}

void fw_ingest_stats(struct fw_ingest *in, struct fw_ingest_stats *out)
{
	int64_t oldest_ms = atomic_load(&in->oldest_ms);

	*out = (struct fw_ingest_stats){.stored_n = atomic_load(&in->stored_n), .dead_n = atomic_load(&in->dead_n),
		.flush_n = atomic_load(&in->flush_n), .retry_n = atomic_load(&in->retry_n), .flush_us = atomic_load(&in->flush_us),
		.flush_cpu_us = atomic_load(&in->flush_cpu_us), .lanes = in->lane_n, .oldest_ms = oldest_ms ? FW_MAX(fw_now_ms() - oldest_ms, 0) : 0, .away = atomic_load(&in->away),
		.replayed = !in->spill || atomic_load(&in->replayed)};
	for (size_t i = 0; i < FW_N(out->bucket); i++)
		out->bucket[i] = atomic_load(&in->bucket[i]);
	for (size_t i = 0; i < in->lane_n; i++) {
		const struct fw_lane_in *l = &in->lane[i];
		size_t fill = fw_byte_ring_fill(&l->ring);

		out->put_n += atomic_load(&l->put_n);
		out->full_n += atomic_load(&l->full_n);
		out->fill_bytes += fill;
		out->ring_bytes += fw_byte_ring_bytes(&l->ring);
		out->fullest_bytes = FW_MAX(out->fullest_bytes, fill);
	}
}
