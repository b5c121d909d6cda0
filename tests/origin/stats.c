/* SPDX-License-Identifier: ISC */
/*
 * The data that tests check politeness with: one JSON line per request (with --log), and totals per
 * host. A line is written when the response has ended; "t" is when the whole request had arrived,
 * in ms since 1970. Requests to the origin itself ("/_stats" etc.) are in neither, so that polling
 * a number does not change it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "origin.h"

struct host {
	uint32_t in_flight, in_flight_max, conns, conns_max;
	uint64_t requests, conns_total;
	int64_t last_came_us, gap_min_us; /* between two requests; -1: fewer than two requests */
};

static struct {
	struct host *host; /* host_n + 1: the last is for addresses that are not ours */
	uint64_t requests, conns, bytes, heads, violations, not_modified, ended_badly;
	uint64_t status[6];
	uint32_t in_flight, in_flight_max, conns_now, conns_max;
	int log_fd;
	struct fw_buf log;
} st = {.log_fd = -1};

void stats_init(const char *log_file)
{
	st.host = calloc(origin.host_n + 1, sizeof(*st.host));
	if (!st.host)
		die("out of memory");
	for (size_t i = 0; i <= origin.host_n; i++)
		st.host[i].gap_min_us = -1;
	if (!log_file)
		return;
	st.log_fd = open(log_file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (st.log_fd < 0)
		die("--log %s: %s", log_file, strerror(errno));
	origin.log_on = true;
}

void stats_conn(uint32_t host, int delta)
{
	struct host *h = &st.host[host];

	h->conns += (uint32_t)delta;
	st.conns_now += (uint32_t)delta;
	if (delta < 0)
		return;
	st.conns++;
	h->conns_total++;
	h->conns_max = FW_MAX(h->conns_max, h->conns);
	st.conns_max = FW_MAX(st.conns_max, st.conns_now);
}

static bool is_counted(const struct request *r)
{
	return !fw_str_starts(r->target, FW_STR("/_"));
}

void stats_start(const struct request *r)
{
	struct host *h = &st.host[r->host];

	if (!is_counted(r))
		return;
	if (h->requests++) {
		int64_t gap = llabs(r->came_us - h->last_came_us);

		if (h->gap_min_us < 0 || gap < h->gap_min_us)
			h->gap_min_us = gap;
	}
	h->last_came_us = r->came_us;
	h->in_flight++;
	h->in_flight_max = FW_MAX(h->in_flight_max, h->in_flight);
	st.in_flight++;
	st.in_flight_max = FW_MAX(st.in_flight_max, st.in_flight);
	st.requests++;
	st.heads += fw_str_eq(r->method, FW_STR("HEAD"));
}

void stats_flush(void)
{
	size_t at = 0;

	while (st.log_fd >= 0 && at < st.log.len) {
		ssize_t n = write(st.log_fd, st.log.p + at, st.log.len - at);

		if (n < 0 && errno != EINTR)
			die("--log: %s", strerror(errno));
		at += n > 0 ? (size_t)n : 0;
	}
	fw_buf_reset(&st.log);
}

static void log_headers(struct fw_json *j, struct fw_str lines)
{
	struct fw_str rest = lines;

	fw_json_array(j, "headers");
	while (rest.p && rest.len) {
		struct fw_str value, line = fw_str_split(rest, '\n', &rest), name = fw_str_split(line, ':', &value);

		if (!value.p)
			continue;
		fw_json_array(j, NULL);
		fw_json_str(j, NULL, name);
		fw_json_str(j, NULL, fw_str_trim(value));
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void log_request(const struct request *r)
{
	char host[INET_ADDRSTRLEN] = "other";
	struct fw_json j;

	if (r->host < origin.host_n)
		origin_host(host, r->host);
	fw_json_init(&j, &st.log, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "t", r->wall_ms);
	fw_json_int(&j, "came_us", r->came_us);
	fw_json_int(&j, "start_us", r->start_us);
	fw_json_int(&j, "end_us", fw_mono_us());
	fw_json_int(&j, "conn", (int64_t)r->conn);
	fw_json_int(&j, "serial", r->serial);
	fw_json_cstr(&j, "host", host);
	fw_json_int(&j, "feed", r->feed);
	fw_json_str(&j, "method", r->method);
	fw_json_str(&j, "target", r->target);
	fw_json_str(&j, "version", r->version);
	log_headers(&j, r->headers);
	fw_json_int(&j, "status", r->status);
	fw_json_int(&j, "bytes", (int64_t)r->bytes);
	fw_json_cstr(&j, "end", r->end);
	fw_json_cstr(&j, "violation", r->violation);
	fw_json_end(&j);
	fw_buf_addc(&st.log, '\n');
	if (st.log.len > 60000)
		stats_flush();
}

void stats_end(const struct request *r)
{
	if (!is_counted(r))
		return;
	st.host[r->host].in_flight--;
	st.in_flight--;
	st.bytes += r->bytes;
	st.status[r->status / 100 < 6 ? r->status / 100 : 0]++;
	st.not_modified += r->status == 304;
	st.violations += r->violation != NULL;
	st.ended_badly += strcmp(r->end, "ok") != 0;
	if (origin.log_on)
		log_request(r);
}

void stats_json(struct fw_buf *out, bool hosts)
{
	uint32_t in_flight_max = 0, conns_max = 0;
	int64_t gap_min = -1;
	struct fw_json j;

	for (size_t i = 0; i <= origin.host_n; i++) {
		const struct host *h = &st.host[i];

		in_flight_max = FW_MAX(in_flight_max, h->in_flight_max);
		conns_max = FW_MAX(conns_max, h->conns_max);
		if (h->gap_min_us >= 0 && (gap_min < 0 || h->gap_min_us < gap_min))
			gap_min = h->gap_min_us;
	}
	fw_json_init(&j, out, true);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "requests", (int64_t)st.requests);
	fw_json_int(&j, "connections", (int64_t)st.conns);
	fw_json_int(&j, "bytes", (int64_t)st.bytes);
	fw_json_int(&j, "status_2xx", (int64_t)st.status[2]);
	fw_json_int(&j, "status_3xx", (int64_t)st.status[3]);
	fw_json_int(&j, "status_304", (int64_t)st.not_modified);
	fw_json_int(&j, "status_4xx", (int64_t)st.status[4]);
	fw_json_int(&j, "status_5xx", (int64_t)st.status[5]);
	fw_json_int(&j, "ended_badly", (int64_t)st.ended_badly);
	fw_json_int(&j, "head", (int64_t)st.heads);
	fw_json_int(&j, "violations", (int64_t)st.violations);
	fw_json_int(&j, "in_flight", st.in_flight);
	fw_json_int(&j, "in_flight_max", st.in_flight_max);
	fw_json_int(&j, "connections_max", st.conns_max);
	fw_json_int(&j, "host_in_flight_max", in_flight_max);
	fw_json_int(&j, "host_connections_max", conns_max);
	fw_json_int(&j, "host_gap_min_us", gap_min);
	if (hosts) {
		fw_json_object(&j, "hosts");
		for (size_t i = 0; i < origin.host_n; i++) {
			const struct host *h = &st.host[i];
			char name[INET_ADDRSTRLEN];

			if (!h->requests)
				continue;
			origin_host(name, i);
			fw_json_object(&j, name);
			fw_json_int(&j, "requests", (int64_t)h->requests);
			fw_json_int(&j, "connections", (int64_t)h->conns_total);
			fw_json_int(&j, "in_flight", h->in_flight);
			fw_json_int(&j, "in_flight_max", h->in_flight_max);
			fw_json_int(&j, "gap_min_us", h->gap_min_us);
			fw_json_end(&j);
		}
		fw_json_end(&j);
	}
	fw_json_end(&j);
	fw_buf_addc(out, '\n');
}
