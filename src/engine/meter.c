/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/run/child.h"
#include "engine/meter.h"
#include "base/banned.h"

struct fw_meter {
	size_t workers, slot_n;
	size_t bytes; /* of this mapping */
	int fd;       /* the master's descriptor; -1: none */
	int64_t started_ms;
	pid_t master;
	struct fw_meter_usage master_usage;
	struct fw_meter_slot slot[];
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

struct fw_meter *fw_meter_create(size_t workers, bool server)
{
	size_t slot_n = workers + server, bytes = sizeof(struct fw_meter) + slot_n * sizeof(struct fw_meter_slot);
	int fd;
	struct fw_meter *m = child_memory(bytes, &fd);

	if (!m)
		return NULL;
	m->fd = fd;
	m->workers = workers;
	m->slot_n = slot_n;
	m->bytes = bytes;
	m->started_ms = fw_now_ms(); /* wall clock: for people */
	m->master = getpid();
	return m;
}

void fw_meter_destroy(struct fw_meter *m)
{
	if (!m)
		return;
	if (m->fd >= 0)
		close(m->fd);
	munmap(m, m->bytes);
}

int fw_meter_fd(const struct fw_meter *m)
{
	return m->fd;
}

struct fw_meter *fw_meter_open(int fd)
{
	struct stat st;
	struct fw_meter *m = fstat(fd, &st) ? MAP_FAILED :
					      mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	return m == MAP_FAILED ? NULL : m;
}

struct fw_meter_slot *fw_meter_slot(struct fw_meter *m, size_t i)
{
	assert(i < m->slot_n);
	return &m->slot[i];
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
	meter_sum(&out->worker_restarts, &s->restarts, 1, memory_order_relaxed);
	for (size_t i = 0; i < FW_TIMING_N; i++) {
		meter_sum(out->timing[i].bucket, s->timing[i].bucket, FW_METER_BUCKETS, memory_order_relaxed);
		meter_sum(&out->timing[i].sum_us, &s->timing[i].sum_us, 1, memory_order_relaxed);
	}
	out->alive += atomic_load(&s->pid) != 0;
}

void fw_meter_read(const struct fw_meter *m, struct fw_meter_sum *out)
{
	*out = (struct fw_meter_sum){.workers = (uint32_t)m->workers, .started_ms = m->started_ms};
	for (size_t i = 0; i < m->workers; i++)
		meter_slot_read(&m->slot[i], out);
	if (m->slot_n > m->workers)
		out->server_restarts = atomic_load(&m->slot[m->workers].restarts);
}

/* ---- processes ----------------------------------------------------------- */

void meter_slot_reset(struct fw_meter_slot *s)
{
	atomic_store(&s->heartbeat_mono_ms, 0);
	atomic_store(&s->usage.rss_bytes, -1);
	atomic_store(&s->usage.cpu_ms, -1);
}

void meter_slot_clear(struct fw_meter_slot *s)
{
	atomic_store(&s->pid, 0);
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
	meter_usage_update(&m->master_usage);
}

void fw_meter_heartbeat(struct fw_meter *m)
{
	if (m->slot_n > m->workers)
		atomic_store(&m->slot[m->workers].heartbeat_mono_ms, fw_mono_ms());
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
	const struct fw_meter_usage *usage = i == 0 || i > m->slot_n ? &m->master_usage : &m->slot[i - 1].usage;

	if (i == 0)
		*out = (struct fw_meter_process){.what = "master", .pid = m->master};
	else if (i <= m->workers)
		*out = (struct fw_meter_process){
			.what = "worker", .index = (int)i - 1, .pid = atomic_load(&m->slot[i - 1].pid)};
	else
		*out = (struct fw_meter_process){
			.what = "server", .pid = i <= m->slot_n ? atomic_load(&m->slot[i - 1].pid) : 0};
	if (out->pid)
		meter_process_read(usage, out);
	return out->pid != 0;
}
