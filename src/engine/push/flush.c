/* SPDX-License-Identifier: ISC */
/*
 * Ingest: the producers' rings, and the flusher thread that stores their rows in bulk.
 *
 * A record in a ring is a row, or a waiting caller (fw_commit_wait), which precedes the rows of its
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
 * A row gets its id when it is accepted, from the range that the flusher has reserved (base/ids.h).
 * Without one, that is before the store has answered for the first time, or after a very long
 * outage, the row has id 0 and gets its id when it is stored. Only a row of the write-ahead log
 * needs its id at once, so that a replay stores it once: then the log takes none.
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
#include <semaphore.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/byte_ring.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "api/store_link.h"
#include "engine/push/event_ids.h"
#include "engine/push/wal.h"
#include "engine/push/wal_reader.h"
#include "feedwheel/ingest.h"

#define IP_TEXT_MAX INET6_ADDRSTRLEN
#define START_WAIT_MS (3 * FW_SECOND_MS)

enum { AWAKE, IDLE /* any row wakes it */, COLLECTING /* a waiting caller or many rows wake it */ };
enum { RECORD_ROW, RECORD_WAIT };

/* a record of a ring */
struct ring_row {
	uint8_t kind, ip_len;
	uint16_t property_len;
	uint32_t rows; /* RECORD_WAIT: number of rows after it that belong to it */
	int64_t id;    /* 0: the flusher gives it one; of RECORD_WAIT always 0 */
	int64_t section, item, stamp_ms;
	struct fw_commit_wait *wait; /* RECORD_WAIT */
	unsigned char ip[16];
	char property[];
};

_Static_assert(sizeof(struct ring_row) + FW_PROPERTY_MAX <= FW_WAL_RECORD_MAX, "a row is a record");

struct fw_producer {
	struct fw_byte_ring ring;
	struct fw_ingest *in;
	/* written by the producer */
	_Alignas(FW_CACHE_LINE) _Atomic bool busy; /* from begin to publish or forget */
	uint32_t draft_n;
	struct ring_row *draft_wait; /* NULL: no caller waits */
	int64_t draft_ms;
	_Atomic uint64_t put_n, full_n;
	/* written by the flusher */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t collected_n;
	struct fw_commit_wait *wait; /* the caller whose rows are being collected */
	uint32_t wait_left;
};

struct batch_row {
	struct fw_commit_wait *wait; /* NULL: no caller waits */
	char ip[IP_TEXT_MAX];
};

struct fw_ingest {
	const struct fw_config *config;
	struct fw_ids ids;
	pthread_t thread;
	int wake_fd;
	_Alignas(FW_CACHE_LINE) _Atomic int asleep;
	_Atomic bool closing;
	_Atomic int64_t close_by_ms; /* monotonic */
	/* counters, written by the flusher */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t stored_n, dead_letter_n, flush_n, retry_n, flush_us,
		flush_cpu_us, bucket[FW_FLUSH_BUCKETS];
	_Atomic int64_t oldest_ms; /* Unix time; 0: no row waits */
	_Atomic uint64_t clash_n;
	_Atomic bool unavailable, replayed;
	sem_t tried; /* posted after the first attempt to reserve ids */
	/* private to the flusher */
	struct store_link link;
	struct fw_store *st; /* the link's, while a batch is stored */
	struct fw_wal *wal;  /* NULL: none */
	/* reads the files of earlier processes; NULL: all are read */
	struct fw_wal_reader *reader;
	bool replaying;         /* the batch comes from the reader */
	bool abandoned;         /* rows released now are not stored */
	struct fw_event *event; /* the batch, in the form of the store */
	struct batch_row *row;  /* per row: the caller and the IP address text */
	/* rows in the batch; the first `done` of them are committed or dead letters */
	size_t n, done;
	size_t due_n, cap; /* rows that make a batch due; maximum rows of a batch */
	/* publishes with a waiting caller; those that the last batch answered */
	size_t waiting, answered;
	uint64_t lost_n;  /* rows that were abandoned */
	int64_t *head_id; /* id of each ring's next record; INT64_MAX: none */
	/* monotonic: start of the batch; when the first waiting caller was seen */
	int64_t since_ms, waiting_since_ms;
	int64_t reserve_at_ms; /* monotonic: the next range of ids */
	size_t producer_n;
	struct fw_producer producer[];
};

const uint32_t fw_flush_bucket_us[FW_FLUSH_BUCKETS] = {
	500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, UINT32_MAX};

/* ---- producers ----------------------------------------------------------- */

static void flusher_wake(struct fw_ingest *in)
{
	static const uint64_t one = 1;

	while (write(in->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static size_t producer_index(const struct fw_producer *l)
{
	assert(l >= l->in->producer && l < l->in->producer + l->in->producer_n);
	return (size_t)(l - l->in->producer);
}

void fw_ingest_discard(struct fw_producer *l)
{
	fw_byte_ring_drop(&l->ring);
	if (l->in->wal)
		fw_wal_discard(l->in->wal, producer_index(l));
	l->draft_n = 0;
	atomic_store_explicit(&l->busy, false, memory_order_release);
}

static int draft_refuse_full(struct fw_producer *l)
{
	fw_ingest_discard(l);
	atomic_fetch_add_explicit(&l->full_n, 1, memory_order_relaxed);
	return FW_EAGAIN;
}

static int draft_refuse_unnumbered(struct fw_producer *l)
{
	fw_ingest_discard(l);
	return FW_ESTALE;
}

int fw_ingest_begin(struct fw_producer *l, struct fw_commit_wait *wait)
{
	struct ring_row *w;

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
	l->draft_ms = fw_config_now_ms(l->in->config);
	if (!wait)
		return 0;
	w = fw_byte_ring_draft(&l->ring, sizeof(*w));
	if (!w)
		return draft_refuse_full(l);
	*w = (struct ring_row){.kind = RECORD_WAIT, .wait = wait};
	l->draft_wait = w;
	return 0;
}

int fw_ingest_put(struct fw_producer *l, const struct fw_event *e)
{
	bool logged = l->in->wal && !l->draft_wait;
	struct ring_row *r;

	if (e->property.len > FW_PROPERTY_MAX || (e->remote_ip.len && e->remote_ip.len != 4 && e->remote_ip.len != 16))
		return FW_EINVAL;
	r = fw_byte_ring_draft(&l->ring, sizeof(*r) + e->property.len);
	if (!r)
		return draft_refuse_full(l);
	*r = (struct ring_row){.kind = RECORD_ROW,
		.ip_len = (uint8_t)e->remote_ip.len,
		.property_len = (uint16_t)e->property.len,
		.id = fw_ids_take(&l->in->ids, 1, l->draft_ms),
		.section = e->section,
		.item = e->item,
		.stamp_ms = e->stamp_ms};
	if (e->remote_ip.len)
		memcpy(r->ip, e->remote_ip.p, e->remote_ip.len);
	if (e->property.len)
		memcpy(r->property, e->property.p, e->property.len);
	if (logged && !r->id)
		return draft_refuse_unnumbered(l);
	if (logged)
		fw_wal_add(l->in->wal, producer_index(l), r, sizeof(*r) + e->property.len);
	l->draft_n++;
	return 0;
}

int fw_ingest_publish(struct fw_producer *l, struct fw_err *err)
{
	struct fw_ingest *in = l->in;
	bool waits = l->draft_wait != NULL;
	uint64_t put_n = atomic_load_explicit(&l->put_n, memory_order_relaxed) + l->draft_n;
	int asleep;

	if (waits) {
		l->draft_wait->rows = l->draft_n;
	} else if (in->wal) {
		int rc = fw_wal_write(in->wal, producer_index(l), put_n, err);

		if (rc) {
			(void)draft_refuse_full(l);
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
		put_n - atomic_load_explicit(&l->collected_n, memory_order_relaxed) >= in->due_n / in->producer_n) {
		if (atomic_exchange_explicit(&in->asleep, AWAKE, memory_order_relaxed) != AWAKE)
			flusher_wake(in);
	}
	return 0;
}

/* ---- the batch ----------------------------------------------------------- */

static void commit_wait_finish(struct fw_ingest *in, struct fw_commit_wait *w)
{
	in->answered++;
	w->done(w, w->rc, w->why);
}

static void commit_wait_start(struct fw_ingest *in, struct fw_producer *l, const struct ring_row *r, int64_t mono_ms)
{
	struct fw_commit_wait *w = r->wait;

	assert(w && !l->wait); /* the rows of the one before are all read */
	w->left = r->rows;
	w->rc = 0;
	w->why[0] = 0;
	if (!r->rows) { /* no rows: nothing to wait for */
		commit_wait_finish(in, w);
		return;
	}
	l->wait = w;
	l->wait_left = r->rows;
	if (!in->waiting++)
		in->waiting_since_ms = mono_ms;
}

/* Formats an IPv4 address. inet_ntop() would cost as much as the rest of batch_add_row(). */
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
static void batch_add_row(struct fw_ingest *in, struct fw_producer *l, const struct ring_row *r)
{
	struct fw_event *e = &in->event[in->n];
	char *ip = in->row[in->n].ip;
	size_t ip_len = 0;

	assert(in->n < in->cap);
	if (r->ip_len == 4)
		ip_len = ip4_text(r->ip, ip);
	else if (r->ip_len && inet_ntop(AF_INET6, r->ip, ip, IP_TEXT_MAX))
		ip_len = strlen(ip);
	*e = (struct fw_event){.id = r->id,
		.property = {r->property, r->property_len},
		.section = r->section,
		.item = r->item,
		.remote_ip = {ip, ip_len},
		.stamp_ms = r->stamp_ms};
	in->row[in->n].wait = l ? l->wait : NULL;
	if (l && l->wait && --l->wait_left == 0)
		l->wait = NULL;
	in->n++;
}

static void head_update(struct fw_ingest *in, size_t producer)
{
	size_t len;
	const struct ring_row *r = fw_byte_ring_peek(&in->producer[producer].ring, &len);

	in->head_id[producer] = r ? r->id : INT64_MAX;
}

/* Takes rows from one ring up to this id, until the ring is empty or the batch is full. */
static void batch_take_producer(struct fw_ingest *in, size_t producer, int64_t upto, int64_t mono_ms)
{
	struct fw_producer *l = &in->producer[producer];
	size_t before = in->n, len;

	do {
		const struct ring_row *r = fw_byte_ring_next(&l->ring, &len);

		assert(r && r->id <= upto);
		if (r->kind == RECORD_WAIT)
			commit_wait_start(in, l, r, mono_ms);
		else
			batch_add_row(in, l, r);
		head_update(in, producer);
	} while (in->n < in->cap && in->head_id[producer] <= upto && in->head_id[producer] != INT64_MAX);
	if (in->n > before)
		atomic_fetch_add_explicit(&l->collected_n, in->n - before, memory_order_relaxed);
}

/* Merges all rings in order of the ids: ascending keys cost a B-tree the least work and space. */
static void batch_take_producers(struct fw_ingest *in, int64_t mono_ms)
{
	for (size_t i = 0; i < in->producer_n; i++)
		head_update(in, i);
	while (in->n < in->cap) {
		int64_t lowest = INT64_MAX, second = INT64_MAX;
		size_t producer = 0;

		for (size_t i = 0; i < in->producer_n; i++) {
			if (in->head_id[i] < lowest) {
				second = lowest;
				lowest = in->head_id[i];
				producer = i;
			} else if (in->head_id[i] < second) {
				second = in->head_id[i];
			}
		}
		if (lowest == INT64_MAX)
			return;
		batch_take_producer(in, producer, second, mono_ms);
	}
}

static void batch_collect(struct fw_ingest *in, int64_t mono_ms)
{
	size_t before = in->n;

	assert(!in->done && !in->replaying);
	batch_take_producers(in, mono_ms);
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
static void batch_finish(struct fw_ingest *in)
{
	assert(in->done == in->n || in->abandoned);
	in->answered = 0;
	for (size_t i = 0; i < in->producer_n && !in->replaying; i++) {
		fw_byte_ring_release(&in->producer[i].ring);
		if (in->wal && !in->abandoned)
			fw_wal_stored(
				in->wal, i, atomic_load_explicit(&in->producer[i].collected_n, memory_order_relaxed));
	}
	in->replaying = false;
	for (size_t i = 0; i < in->n; i++) {
		struct fw_commit_wait *w = in->row[i].wait;

		assert(!w || w->left);
		if (w && --w->left == 0) {
			in->waiting--;
			commit_wait_finish(in, w);
		}
	}
	in->n = in->done = 0;
	in->waiting_since_ms = fw_mono_ms(); /* for callers with more rows in the next batch */
	atomic_store_explicit(&in->oldest_ms, 0, memory_order_relaxed);
}

static bool batch_is_due(const struct fw_ingest *in, int64_t mono_ms)
{
	if (!in->n)
		return false;
	return in->done || in->replaying || in->n >= in->due_n || mono_ms - in->since_ms >= in->config->flush_ms ||
		atomic_load(&in->closing) ||
		(in->waiting &&
			(in->waiting >= in->answered ||
				mono_ms - in->waiting_since_ms >= in->config->flush_durable_ms));
}

/* ---- replay -------------------------------------------------------------- */

static void replay_finish(struct fw_ingest *in)
{
	fw_wal_reader_close(in->reader);
	in->reader = NULL;
}

/* Fills the batch with rows of the open file. */
static void replay_file(struct fw_ingest *in)
{
	struct fw_str record;

	while (in->n < in->cap && fw_wal_reader_read(in->reader, &record)) {
		const struct ring_row *r = (const struct ring_row *)(const void *)record.p;

		if (record.len >= sizeof(*r) && r->kind == RECORD_ROW && record.len == sizeof(*r) + r->property_len)
			batch_add_row(in, NULL, r);
		else
			fw_wal_reader_refuse(in->reader);
	}
}

/* Collects the next batch from the files of earlier processes. The store skips rows that it has. */
static void replay_next_batch(struct fw_ingest *in)
{
	replay_file(in);
	while (!in->n) {
		if (!fw_wal_reader_next(in->reader)) {
			replay_finish(in);
			atomic_store(&in->replayed, true);
			return;
		}
		replay_file(in);
	}
	in->replaying = true;
}

/* ---- the store ----------------------------------------------------------- */

static void flusher_failed(struct fw_ingest *in)
{
	atomic_store(&in->unavailable, true);
	atomic_fetch_add(&in->retry_n, 1);
}

/* After work with the store. What was not foreseen may pass too. */
static void flusher_used(struct fw_ingest *in, int rc, const struct fw_err *err)
{
	if (store_link_after(&in->link, rc && !fw_err_is_of_store(rc) ? FW_EAGAIN : rc, err) || rc)
		flusher_failed(in);
	else
		atomic_store(&in->unavailable, false);
}

static bool flusher_ids_are_due(const struct fw_ingest *in, int64_t mono_ms)
{
	return mono_ms >= in->reserve_at_ms || fw_ids_left(&in->ids) < FW_IDS_SPARE;
}

/* Reserves a range of ids for the rows that are accepted from now on. */
static void flusher_ids_reserve(struct fw_ingest *in)
{
	struct fw_err err = {0};
	int rc;

	in->st = store_link_get(&in->link, &err);
	rc = in->st ? event_ids_reserve(in->st, &in->ids, 0, &err) : err.rc;
	if (in->st)
		flusher_used(in, rc, &err);
	else
		flusher_failed(in);
	in->reserve_at_ms = rc ? in->reserve_at_ms : fw_mono_ms() + FW_IDS_RENEW_MS;
	sem_post(&in->tried);
}

/* Gives an id to each row of the batch that has none. False: the range is used up. */
static bool batch_number(struct fw_ingest *in)
{
	for (size_t i = in->done; i < in->n; i++) {
		if (!in->event[i].id)
			in->event[i].id = fw_ids_take(&in->ids, 1, fw_config_now_ms(in->config));
		if (!in->event[i].id)
			return false;
	}
	return true;
}

/* Stores a row that the store refuses as a dead letter, with the reason. */
static int dead_letter_put(struct fw_ingest *in, size_t i, const struct fw_err *why, struct fw_err *err)
{
	struct fw_commit_wait *w = in->row[i].wait;
	struct fw_buf json = FW_BUF_INIT(0);
	struct fw_dead_letter dead = {
		.id = in->event[i].id, .reason = fw_str(why->text), .at_ms = fw_config_now_ms(in->config)};
	uint64_t clash_n = 0;
	int rc;

	fw_event_row_write(&in->event[i], &json);
	dead.row = fw_buf_str(&json);
	rc = json.rc ? fw_err_set(err, json.rc, "out of memory") :
		       event_ids_put_dead(in->st, &in->ids, &dead, &clash_n, err);
	atomic_fetch_add(&in->clash_n, clash_n);
	if (!rc)
		fw_warn("a row was refused and is a dead letter now: %s", why->text);
	else if (!fw_err_is_of_store(rc)) /* the log is the only copy left */
		fw_error("a row was refused (%s), and so was its dead letter (%s): %.*s", why->text, err->text,
			FW_STR_ARG(fw_buf_str(&json)));
	fw_buf_finish(&json);
	if (fw_err_is_of_store(rc))
		return rc;
	atomic_fetch_add(&in->dead_letter_n, 1);
	if (w) {
		w->rc = FW_EINVAL;
		fw_str_copy(w->why, sizeof(w->why), fw_str(why->text));
	}
	return 0;
}

static void flush_count(struct fw_ingest *in, size_t n, int64_t us)
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
static int batch_store_rows(struct fw_ingest *in, size_t n, struct fw_err *err)
{
	int64_t start_us = fw_mono_us(), cpu_us = fw_thread_cpu_us();
	uint64_t clash_n = 0;
	int rc = fw_event_ids_put(in->st, &in->ids, &in->event[in->done], n, &clash_n, err);
	struct fw_err why;

	assert(n && in->done + n <= in->n);
	atomic_fetch_add(&in->clash_n, clash_n);
	atomic_fetch_add(&in->flush_cpu_us, (uint64_t)(fw_thread_cpu_us() - cpu_us));

	if (!rc) {
		flush_count(in, n, fw_mono_us() - start_us);
		in->done += n;
		return 0;
	}
	if (fw_err_is_of_store(rc))
		return rc;
	if (n > 1) {
		rc = batch_store_rows(in, n / 2, err);
		return rc ? rc : batch_store_rows(in, n - n / 2, err);
	}
	why = *err;
	rc = dead_letter_put(in, in->done, &why, err);
	in->done += rc == 0;
	return rc;
}

static void batch_flush(struct fw_ingest *in)
{
	struct fw_err err = {0};
	int rc;

	in->st = store_link_get(&in->link, &err);
	if (!in->st) {
		flusher_failed(in);
		return;
	}
	if (!batch_number(in))
		return; /* flusher_ids_are_due() */
	rc = batch_store_rows(in, in->n - in->done, &err);
	if (!rc)
		batch_finish(in);
	flusher_used(in, rc, &err);
}

/* ---- the thread ---------------------------------------------------------- */

static void flusher_sleep(struct fw_ingest *in, int64_t ms)
{
	struct pollfd p = {.fd = in->wake_fd, .events = POLLIN};
	uint64_t drop;

	if (poll(&p, 1, (int)FW_MIN(ms, FW_HOUR_MS)) > 0 && read(in->wake_fd, &drop, sizeof(drop)) < 0)
		fw_debug("wake-up: %s", strerror(errno));
}

/* Time until the batch, or the next range of ids, is due, in ms. */
static int64_t flusher_due_in_ms(const struct fw_ingest *in, int64_t mono_ms)
{
	int64_t until = in->reserve_at_ms;

	if (in->n)
		until = FW_MIN(until, in->since_ms + in->config->flush_ms);
	if (in->waiting)
		until = FW_MIN(until, in->waiting_since_ms + in->config->flush_durable_ms);
	return FW_MAX(until - mono_ms, 0);
}

/*
 * True if no producer is between begin and publish. There is no early exit: reading every flag
 * orders the caller after everything that was published before.
 */
static bool producers_are_idle(const struct fw_ingest *in)
{
	size_t busy = 0;

	for (size_t i = 0; i < in->producer_n; i++)
		busy += atomic_load(&in->producer[i].busy);
	return !busy;
}

/* Until something is due, or the idle link wants to ping. */
static int64_t flusher_wait_ms(struct fw_ingest *in)
{
	int64_t due_ms = flusher_due_in_ms(in, fw_mono_ms()), idle_ms;

	if (in->n)
		return due_ms;
	store_link_idle(&in->link);
	idle_ms = store_link_idle_ms(&in->link);
	return idle_ms < 0 ? due_ms : FW_MIN(due_ms, FW_MAX(idle_ms, INT64_C(1)));
}

static void flusher_sleep_until_due(struct fw_ingest *in)
{
	size_t before = in->n;

	atomic_store(&in->asleep, in->n ? COLLECTING : IDLE);
	(void)producers_are_idle(in);
	batch_collect(in, fw_mono_ms());
	if (in->n == before && !atomic_load(&in->closing))
		flusher_sleep(in, flusher_wait_ms(in));
	atomic_store_explicit(&in->asleep, AWAKE, memory_order_relaxed);
}

/* The store did not recover in time: answers the callers, and counts the rows that are lost. */
static void batch_abandon(struct fw_ingest *in)
{
	if (!in->n)
		batch_collect(in, fw_mono_ms());
	while (in->n || !producers_are_idle(in)) {
		for (size_t i = in->done; i < in->n && !in->replaying; i++)
			/* the others are in the write-ahead log */
			in->lost_n += !in->wal || in->row[i].wait;
		for (size_t i = in->done; i < in->n; i++) {
			struct fw_commit_wait *w = in->row[i].wait;

			if (w && w->rc == 0) {
				w->rc = FW_EAGAIN;
				fw_str_copy(w->why, sizeof(w->why),
					FW_STR("the server is stopping, and its store does not respond"));
			}
		}
		in->abandoned = true;
		batch_finish(in);
		batch_collect(in, fw_mono_ms());
	}
	replay_finish(in);
}

static void *flusher_main(void *arg)
{
	struct fw_ingest *in = arg;

	for (;;) {
		int64_t mono_ms = fw_mono_ms();
		bool closing = atomic_load(&in->closing), closed = closing && producers_are_idle(in);

		if (closing && store_link_is_down(&in->link) && mono_ms >= atomic_load(&in->close_by_ms)) {
			batch_abandon(in);
			break;
		}
		if (closing && in->reader && !in->replaying)
			replay_finish(in); /* the next start replays the rest */
		if (in->reader && !in->n)
			replay_next_batch(in);
		/* a partly stored or replayed batch is finished before new rows are added */
		if (!in->done && !in->replaying)
			batch_collect(in, mono_ms);
		if (closed && !in->n)
			break;
		if (store_link_wait_ms(&in->link))
			flusher_sleep(in, store_link_wait_ms(&in->link));
		else if (flusher_ids_are_due(in, mono_ms))
			flusher_ids_reserve(in);
		else if (batch_is_due(in, mono_ms))
			batch_flush(in);
		else if (closing)
			sched_yield(); /* a producer is still publishing */
		else
			flusher_sleep_until_due(in);
	}
	store_link_close(&in->link);
	return NULL;
}

/* ---- create and destroy -------------------------------------------------- */

void fw_ingest_destroy(struct fw_ingest *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->producer_n; i++)
		fw_byte_ring_finish(&in->producer[i].ring);
	if (in->wake_fd >= 0)
		close(in->wake_fd);
	fw_wal_close(in->wal);
	fw_wal_reader_close(in->reader);
	free(in->event);
	free(in->row);
	free(in->head_id);
	sem_destroy(&in->tried);
	free(in);
}

static int producers_init(struct fw_ingest *in, struct fw_err *err)
{
	size_t bytes = (size_t)in->config->ring_bytes / in->producer_n;

	for (size_t i = 0; i < in->producer_n; i++) {
		int rc = fw_byte_ring_init(&in->producer[i].ring, bytes);

		in->producer[i].in = in;
		if (rc == FW_EINVAL)
			return fw_err_set(err, rc,
				"ring_bytes = %lld is too small for %zu rings: each needs at least 4 KiB",
				(long long)in->config->ring_bytes, in->producer_n);
		if (rc)
			return fw_err_set(err, rc, "out of memory for rings of %lld bytes (lower ring_bytes)",
				(long long)in->config->ring_bytes);
	}
	return 0;
}

/* What is pushed right after the start finds ids for the write-ahead log, if the store answers. */
static void ingest_wait_for_ids(struct fw_ingest *in)
{
	struct timespec until = fw_timespec(fw_mono_ms() + START_WAIT_MS);

	while (sem_clockwait(&in->tried, CLOCK_MONOTONIC, &until) && errno == EINTR)
		;
}

int fw_ingest_open(const struct fw_config *c, size_t producers, struct fw_ingest **out, struct fw_err *err)
{
	struct fw_ingest *in;
	void *mem = NULL;
	int rc;

	*out = NULL;
	if (posix_memalign(&mem, FW_CACHE_LINE, sizeof(*in) + producers * sizeof(in->producer[0])))
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	memset(mem, 0, sizeof(*in) + producers * sizeof(in->producer[0]));
	in = mem;
	in->config = c;
	in->link = (struct store_link){.config = c, .who = "pushes", .waits = "the rows wait"};
	in->producer_n = producers;
	in->due_n = (size_t)c->flush_rows;
	in->cap = in->due_n > 1 ? 2 * in->due_n : 1;
	in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fw_ids_init(&in->ids);
	(void)sem_init(&in->tried, 0, 0);
	atomic_store(&in->unavailable, true); /* until it has given ids */
	in->event = calloc(in->cap, sizeof(*in->event));
	in->row = calloc(in->cap, sizeof(*in->row));
	in->head_id = calloc(producers, sizeof(*in->head_id));
	rc = producers_init(in, err);
	if (!rc && (!in->event || !in->row || !in->head_id))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory for batches of %zu rows (lower flush_rows)", in->cap);
	if (!rc && in->wake_fd < 0)
		rc = fw_err_set(err, FW_EIO, "cannot create the flusher's eventfd: %s", strerror(errno));
	if (!rc && c->wal_dir)
		rc = fw_wal_open(c->wal_dir, c->wal_sync_ms, producers, &in->wal, err);
	if (!rc && c->wal_dir)
		rc = fw_wal_reader_open(c->wal_dir, &in->reader, err);
	if (!rc && pthread_create(&in->thread, NULL, flusher_main, in))
		rc = fw_err_set(err, FW_EIO, "cannot start the flusher thread (see ulimit -u)");
	if (rc)
		fw_ingest_destroy(in);
	else
		*out = in;
	if (!rc && in->wal)
		ingest_wait_for_ids(in);
	return rc;
}

uint64_t fw_ingest_stop(struct fw_ingest *in, int64_t straggler_timeout_ms)
{
	atomic_store(&in->close_by_ms, fw_mono_ms() + straggler_timeout_ms);
	atomic_store(&in->closing, true);
	flusher_wake(in);
	pthread_join(in->thread, NULL);
	return in->lost_n;
}

struct fw_producer *fw_ingest_producer(struct fw_ingest *in, size_t i)
{
	return &in->producer[i];
}

void fw_ingest_stats(struct fw_ingest *in, struct fw_ingest_stats *out)
{
	int64_t oldest_ms = atomic_load(&in->oldest_ms);

	*out = (struct fw_ingest_stats){.stored_n = atomic_load(&in->stored_n),
		.dead_letter_n = atomic_load(&in->dead_letter_n),
		.flush_n = atomic_load(&in->flush_n),
		.retry_n = atomic_load(&in->retry_n),
		.clash_n = atomic_load(&in->clash_n),
		.flush_us = atomic_load(&in->flush_us),
		.flush_cpu_us = atomic_load(&in->flush_cpu_us),
		.producers = in->producer_n,
		.oldest_ms = oldest_ms ? FW_MAX(fw_config_now_ms(in->config) - oldest_ms, 0) : 0,
		.unavailable = atomic_load(&in->unavailable),
		.replayed = !in->wal || atomic_load(&in->replayed)};
	for (size_t i = 0; i < FW_N(out->bucket); i++)
		out->bucket[i] = atomic_load(&in->bucket[i]);
	for (size_t i = 0; i < in->producer_n; i++) {
		const struct fw_producer *l = &in->producer[i];
		size_t fill = fw_byte_ring_fill(&l->ring);

		out->put_n += atomic_load(&l->put_n);
		out->full_n += atomic_load(&l->full_n);
		out->fill_bytes += fill;
		out->ring_bytes += fw_byte_ring_bytes(&l->ring);
		out->fill_max_bytes = FW_MAX(out->fill_max_bytes, fill);
	}
}
