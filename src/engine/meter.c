/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/meter.h"

/* One file without a name, as this process has it. */
struct meter_part {
	void *p; /* NULL: not mapped here */
	int fd;  /* -1: none */
};

/* Written by the master. */
struct meter_board {
	int64_t started_ms;
	pid_t master;
	struct fw_meter_usage usage;
	struct {
		_Atomic pid_t pid; /* 0: not running */
		_Atomic uint64_t restarts;
	} child[];
};

struct fw_meter {
	size_t workers, slot_n;
	size_t own_bytes;
	struct meter_part board, child[];
};

#define MS(n) (INT64_C(1000) * (n))
#define S(n) (INT64_C(1000000) * (n))
#define REST INT64_MAX

static const struct {
	size_t n;
	int64_t us[FW_METER_BUCKETS];
} METER_BOUNDS[FW_TIMING_N] = {
	[FW_TIMING_LATENESS] = {11,
		{MS(100), S(1), S(5), S(15), S(60), S(300), S(900), S(3600), S(21600), S(86400), REST}},
	[FW_TIMING_FETCH] = {14,
		{MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), MS(500), S(1), MS(2500), S(5), S(10), S(30), S(60),
			REST}},
	[FW_TIMING_PARSE] = {12, {100, 250, 500, MS(1), MS(2), MS(5), MS(10), MS(25), MS(50), MS(100), MS(500), REST}},
	[FW_TIMING_CLAIM] = {12,
		{500, MS(1), MS(2), MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), S(1), S(5), REST}},
	[FW_TIMING_COMMIT] = {12,
		{500, MS(1), MS(2), MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), S(1), S(5), REST}},
};

const int64_t *fw_meter_bounds(enum fw_timing t, size_t *n)
{
	assert((size_t)t < FW_N(METER_BOUNDS));
	*n = METER_BOUNDS[t].n;
	return METER_BOUNDS[t].us;
}

/* ---- create and destroy -------------------------------------------------- */

static size_t meter_board_bytes(const struct fw_meter *m)
{
	return sizeof(struct meter_board) + m->slot_n * sizeof(((struct meter_board *)0)->child[0]);
}

/* What a child has: its slot, then its own. */
static size_t meter_child_bytes(const struct fw_meter *m)
{
	return sizeof(struct fw_meter_slot) + m->own_bytes;
}

static struct meter_board *meter_board(const struct fw_meter *m)
{
	assert(m->board.p);
	return m->board.p;
}

/*
 * A file without a name whose size is final: a child that made it shorter would end all who map it.
 */
static int part_file_create(size_t bytes)
{
#ifdef MFD_ALLOW_SEALING
	int fd = memfd_create("feedwheel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 &&
		(ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))) {
		close(fd);
		fd = -1;
	}
	return fd;
#else
	(void)bytes;
	return -1;
#endif
}

/* Map it; without a descriptor new memory, for children that are forked. */
static bool part_map(struct meter_part *part, size_t bytes, int rights)
{
	void *p = mmap(part->p, bytes, rights,
		MAP_SHARED | (part->fd < 0 ? MAP_ANONYMOUS : 0) | (part->p ? MAP_FIXED : 0), part->fd, 0);

	part->p = p == MAP_FAILED ? part->p : p;
	return p != MAP_FAILED;
}

static void part_close(struct meter_part *part)
{
	if (part->fd >= 0)
		close(part->fd);
	part->fd = -1;
}

static void part_drop(struct meter_part *part, size_t bytes)
{
	part_close(part);
	if (part->p)
		munmap(part->p, bytes);
	part->p = NULL;
}

static struct fw_meter *meter_alloc(size_t workers, size_t slot_n, size_t own_bytes)
{
	struct fw_meter *m = calloc(1, sizeof(*m) + slot_n * sizeof(m->child[0]));

	if (!m)
		return NULL;
	*m = (struct fw_meter){.workers = workers, .slot_n = slot_n, .own_bytes = own_bytes, .board.fd = -1};
	for (size_t i = 0; i < slot_n; i++)
		m->child[i].fd = -1;
	return m;
}

struct fw_meter *fw_meter_create(size_t workers, bool server, size_t own_bytes)
{
	struct fw_meter *m = meter_alloc(workers, workers + server, own_bytes);
	bool fine;

	if (!m)
		return NULL;
	m->board.fd = part_file_create(meter_board_bytes(m));
	fine = part_map(&m->board, meter_board_bytes(m), PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < m->slot_n && fine; i++) {
		m->child[i].fd = part_file_create(meter_child_bytes(m));
		fine = part_map(&m->child[i], meter_child_bytes(m), PROT_READ | PROT_WRITE);
	}
	if (!fine) {
		int e = errno;

		fw_meter_destroy(m);
		errno = e;
		return NULL;
	}
	meter_board(m)->started_ms = fw_now_ms(); /* wall clock: for people */
	meter_board(m)->master = getpid();
	return m;
}

void fw_meter_destroy(struct fw_meter *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->slot_n; i++)
		part_drop(&m->child[i], meter_child_bytes(m));
	part_drop(&m->board, meter_board_bytes(m));
	free(m);
}

struct fw_meter_slot *fw_meter_slot(struct fw_meter *m, size_t i)
{
	assert(i < m->slot_n && m->child[i].p);
	return m->child[i].p;
}

void *fw_meter_own(struct fw_meter *m, size_t i)
{
	return fw_meter_slot(m, i) + 1;
}

/* ---- what a child gets --------------------------------------------------- */

/*
 * The same file, for reading: it cannot be mapped for writing. Returns a descriptor or a negative
 * errno.
 */
static int part_open_again(const struct meter_part *part, int flags)
{
	char path[40];
	int fd;

	(void)fw_snprintf(path, sizeof(path), "/proc/self/fd/%d", part->fd);
	fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

int fw_meter_hand_over(const struct fw_meter *m, size_t i, int fd[FW_METER_FDS])
{
	int n = 0;

	fd[n++] = m->child[i].fd;
	if (m->child[i].fd < 0 || fcntl(m->child[i].fd, F_SETFD, 0))
		return -errno;
	for (size_t k = 0; i == m->workers && k <= m->workers; k++) { /* the board, and the workers */
		fd[n] = part_open_again(k ? &m->child[k - 1] : &m->board, O_RDONLY);
		if (fd[n++] < 0)
			return fd[n - 1];
	}
	return n;
}

struct fw_meter *fw_meter_open(size_t workers, size_t slot_n, size_t own_bytes, size_t i, const int *fd, size_t fd_n)
{
	struct fw_meter *m = meter_alloc(workers, slot_n, own_bytes);
	bool fine = m && i < slot_n && fd_n >= 1;

	for (size_t k = 0; k < fd_n && fine; k++) {
		struct meter_part *part = !k ? &m->child[i] : k == 1 ? &m->board : &m->child[k - 2];

		part->fd = fd[k];
		fine = part_map(
			part, k == 1 ? meter_board_bytes(m) : meter_child_bytes(m), PROT_READ | (k ? 0 : PROT_WRITE));
		part_close(part); /* which could be opened again, for writing */
	}
	if (!fine)
		fw_meter_destroy(m);
	return fine ? m : NULL;
}

static void part_narrow(struct meter_part *part, size_t bytes, bool reads)
{
	int fd = reads && part->fd >= 0 ? part_open_again(part, O_RDONLY | O_CLOEXEC) : -1;

	part_close(part);
	part->fd = fd;
	if (reads && (fd < 0 || !part_map(part, bytes, PROT_READ)))
		(void)mprotect(part->p, bytes, PROT_READ);
	if (reads)
		part_close(part);
	else
		part_drop(part, bytes);
}

void fw_meter_narrow(struct fw_meter *m, size_t i)
{
	for (size_t k = 0; k < m->slot_n; k++) {
		if (k == i)
			part_close(&m->child[k]);
		else
			part_narrow(&m->child[k], meter_child_bytes(m), i == m->workers);
	}
	part_narrow(&m->board, meter_board_bytes(m), i == m->workers);
}

/* ---- counting ------------------------------------------------------------ */

void meter_time(struct fw_meter_slot *s, enum fw_timing what, int64_t us)
{
	size_t b = 0;

	us = FW_MAX(us, 0);
	while (us > METER_BOUNDS[what].us[b])
		b++;
	assert(b < METER_BOUNDS[what].n); /* the last bound is REST */
	meter_add(&s->timing[what].sum_us, (uint64_t)us);
	meter_add(&s->timing[what].bucket[b], 1);
}

void meter_visit(struct fw_meter_slot *s, const struct fw_visit *v, bool is_requested)
{
	int status_class = v->http_status / 100;
	_Atomic uint64_t *visits = &s->visits[(size_t)v->kind < FW_VISIT_KIND_N ? v->kind : FW_VISIT_NONE];

	if (v->http_status)
		meter_add(&s->responses[status_class > 0 && status_class < FW_METER_CLASSES ? status_class : 0], 1);
	meter_count(s, FW_COUNT_ITEMS, v->item_n);
	meter_count(s, FW_COUNT_NEW_ENTRIES, v->new_n);
	meter_count(s, FW_COUNT_CHANGED_ENTRIES, v->changed_n);
	meter_count(s, FW_COUNT_WIRE_BYTES, v->wire_bytes);
	meter_count(s, FW_COUNT_BODY_BYTES, v->body_bytes);
	meter_count(s, FW_COUNT_REDIRECTS, v->redirects);
	if (!is_requested)
		meter_time(s, FW_TIMING_LATENESS, v->lateness_ms * INT64_C(1000));
	if (v->total_us > 0)
		meter_time(s, FW_TIMING_FETCH, v->total_us);
	if (v->parse_us > 0)
		meter_time(s, FW_TIMING_PARSE, v->parse_us);
	/* last: a reader that sees this visit sees its other counts */
	atomic_store_explicit(visits, atomic_load_explicit(visits, memory_order_relaxed) + 1, memory_order_release);
}

/* ---- reading ------------------------------------------------------------- */

static void meter_sum(uint64_t *out, const _Atomic uint64_t *in, size_t n, memory_order order)
{
	for (size_t i = 0; i < n; i++)
		out[i] += atomic_load_explicit(&in[i], order);
}

static void meter_slot_read(const struct fw_meter_slot *s, struct fw_meter_sum *out)
{
	/* first, see meter_visit() */
	meter_sum(out->visits, s->visits, FW_VISIT_KIND_N, memory_order_acquire);
	meter_sum(out->responses, s->responses, FW_METER_CLASSES, memory_order_relaxed);
	meter_sum(out->count, s->count, FW_COUNT_N, memory_order_relaxed);
	meter_sum(&out->unavailable, &s->unavailable, 1, memory_order_relaxed);
	meter_sum(&out->disk_low, &s->disk_low, 1, memory_order_relaxed);
	meter_sum(&out->in_flight, &s->in_flight, 1, memory_order_relaxed);
	meter_sum(&out->slots, &s->slots, 1, memory_order_relaxed);
	meter_sum(&out->offline, &s->offline, 1, memory_order_relaxed);
	for (size_t i = 0; i < FW_TIMING_N; i++) {
		meter_sum(out->timing[i].bucket, s->timing[i].bucket, FW_METER_BUCKETS, memory_order_relaxed);
		meter_sum(&out->timing[i].sum_us, &s->timing[i].sum_us, 1, memory_order_relaxed);
	}
}

void fw_meter_read(const struct fw_meter *m, struct fw_meter_sum *out)
{
	const struct meter_board *board = meter_board(m);

	*out = (struct fw_meter_sum){.workers = (uint32_t)m->workers, .started_ms = board->started_ms};
	for (size_t i = 0; i < m->workers; i++) {
		meter_slot_read(m->child[i].p, out);
		out->worker_restarts += atomic_load_explicit(&board->child[i].restarts, memory_order_relaxed);
		out->alive += atomic_load(&board->child[i].pid) != 0;
	}
	if (m->slot_n > m->workers)
		out->server_restarts = atomic_load(&board->child[m->workers].restarts);
}

/* ---- processes ----------------------------------------------------------- */

void meter_child_prepare(struct fw_meter *m, size_t i)
{
	struct fw_meter_slot *s = fw_meter_slot(m, i);

	atomic_store(&s->heartbeat_mono_ms, 0);
	atomic_store(&s->usage.rss_bytes, -1);
	atomic_store(&s->usage.cpu_ms, -1);
}

void meter_child_start(struct fw_meter *m, size_t i, pid_t pid)
{
	assert(i < m->slot_n);
	atomic_store(&meter_board(m)->child[i].pid, pid);
}

void meter_child_restart(struct fw_meter *m, size_t i)
{
	assert(i < m->slot_n);
	meter_add(&meter_board(m)->child[i].restarts, 1);
}

void meter_child_end(struct fw_meter *m, size_t i)
{
	struct fw_meter_slot *s = fw_meter_slot(m, i);

	meter_child_start(m, i, 0);
	atomic_store(&s->in_flight, 0);
	atomic_store(&s->offline, 0);
	atomic_store(&s->unavailable, 0);
	atomic_store(&s->disk_low, 0);
}

void meter_usage_update(struct fw_meter_usage *out)
{
	long long pages = -1, size = sysconf(_SC_PAGESIZE);
	struct rusage used;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*s %lld", &pages) != 1)
		pages = -1;
	if (f)
		fclose(f);
	getrusage(RUSAGE_SELF, &used);
	atomic_store_explicit(&out->rss_bytes, pages < 0 ? -1 : pages * size, memory_order_relaxed);
	atomic_store_explicit(&out->cpu_ms,
		((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
			(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000,
		memory_order_relaxed);
}

void fw_meter_master_usage(struct fw_meter *m)
{
	meter_usage_update(&meter_board(m)->usage);
}

void fw_meter_heartbeat(struct fw_meter *m)
{
	if (m->slot_n > m->workers)
		atomic_store(&fw_meter_slot(m, m->workers)->heartbeat_mono_ms, fw_mono_ms());
}

static void meter_process_read(const struct fw_meter_usage *usage, struct fw_meter_process *p)
{
	struct fw_meter_usage self;

	if (p->pid == getpid()) { /* a process reads its own values directly */
		meter_usage_update(&self);
		usage = &self;
	}
	p->rss_bytes = atomic_load_explicit(&usage->rss_bytes, memory_order_relaxed);
	p->cpu_ms = atomic_load_explicit(&usage->cpu_ms, memory_order_relaxed);
}

size_t fw_meter_process_n(const struct fw_meter *m)
{
	return 1 + m->slot_n;
}

bool fw_meter_process(const struct fw_meter *m, size_t i, struct fw_meter_process *out)
{
	const struct meter_board *board = meter_board(m);
	const struct fw_meter_slot *slot = i && i <= m->slot_n ? m->child[i - 1].p : NULL;

	*out = (struct fw_meter_process){.what = !i ? "master" :
			i <= m->workers             ? "worker" :
						      "server",
		.index = i && i <= m->workers ? (int)i - 1 : 0,
		.pid = !i    ? board->master :
			slot ? atomic_load(&board->child[i - 1].pid) :
			       0};
	if (out->pid)
		meter_process_read(slot ? &slot->usage : &board->usage, out);
	return out->pid != 0;
}
