/* SPDX-License-Identifier: ISC */
/*
 * The server's state: for load balancers (/healthz, /readyz), for people (/v1/ring), for Prometheus
 * (/metrics).
 */
#include "api/sender.h"
#include "api/store_link.h"
#include "base/json.h"
#include "base/offset_clock.h"
#include "http/metrics/prom.h"
#include "http/server/http.h"

#define READY_FILL 0.9 /* fill of the fullest ring above which /readyz fails, so that pushes go to another server */

enum MHD_Result http_healthz(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);

	fw_buf_adds(&out, "{\"status\":\"alive\"}");
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

enum MHD_Result http_readyz(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_ingest_stats s;

	fw_ingest_stats(r->thread->h->ingest, &s);
	if (s.unavailable || !auth_store_is_up(r->thread->h->auth))
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "store_unavailable",
			"the store is unavailable; pushed rows wait for it");
	if ((double)s.fill_max_bytes > READY_FILL * (double)(s.ring_bytes / s.producers))
		return http_problem(
			r, MHD_HTTP_SERVICE_UNAVAILABLE, "ring_full", "a ring of pushed rows is nearly full");
	fw_buf_adds(&out, "{\"status\":\"ready\"}");
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

enum MHD_Result http_ring(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_ingest_stats s;
	struct fw_json j;

	fw_ingest_stats(r->thread->h->ingest, &s);
	fw_json_init(&j, &out, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "rings", (int64_t)s.producers);
	fw_json_int(&j, "ring_bytes", (int64_t)s.ring_bytes);
	fw_json_int(&j, "fill_bytes", (int64_t)s.fill_bytes);
	fw_json_int(&j, "fill_max_bytes", (int64_t)s.fill_max_bytes);
	fw_json_int(&j, "oldest_ms", s.oldest_ms);
	fw_json_int(&j, "accepted", (int64_t)s.put_n);
	fw_json_int(&j, "stored", (int64_t)s.stored_n);
	fw_json_int(&j, "dead_letters", (int64_t)s.dead_letter_n);
	fw_json_int(&j, "ring_full", (int64_t)s.full_n);
	fw_json_bool(&j, "store_unavailable", s.unavailable);
	fw_json_bool(&j, "wal_replayed", s.replayed);
	fw_json_end(&j);
	return http_send(r, MHD_HTTP_OK, "application/json", &out);
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static void metrics_flush(struct fw_buf *b, const struct fw_ingest_stats *s)
{
	int64_t bound_us[FW_FLUSH_BUCKETS];

	for (size_t i = 0; i < FW_FLUSH_BUCKETS; i++)
		bound_us[i] = fw_flush_bucket_us[i];
	metric_histogram(b, "flush_seconds", "Duration of a statement that stores pushed rows.", s->bucket, bound_us,
		FW_FLUSH_BUCKETS, s->flush_us);
}

static void metrics_connections(struct fw_buf *b, const struct http *h)
{
	static const struct {
		enum conn_phase phase;
		const char *name;
	} TIMEOUTS[] = {{CONN_HEAD, "head"}, {CONN_BODY, "body"}, {CONN_SEND, "send"}, {CONN_IDLE, "idle"}};

	metric(b, "http_connections", "gauge", "Open connections.", (double)conns_open_n(h->conns));
	metric(b, "changes_waiting", "gauge", "Requests of /v1/changes that wait for a change (wait=).",
		(double)atomic_load_explicit(&h->change_wait_n, memory_order_relaxed));
	metric_head(b, "http_aborted_total", "counter",
		"Connections closed by a timeout, by phase: head, body, send or idle.");
	for (size_t i = 0; i < FW_N(TIMEOUTS); i++)
		metric_sample(b, "http_aborted_total", (double)conns_timeout_n(h->conns, TIMEOUTS[i].phase),
			"in=\"%s\"", TIMEOUTS[i].name);
	metric(b, "http_connections_refused_total", "counter",
		"Connections refused by the limit per address (serve_connections_per_address_max).",
		(double)http_accept_refused_n(h->accept));
	metric(b, "access_log_dropped_total", "counter", "Lines of the access log that were dropped.",
		(double)http_log_dropped_n(h->log));
}

static void metrics_readers(struct fw_buf *b, const struct http *h)
{
	static const char *const API[READER_N] = {[READER_GREADER] = "greader",
		[READER_MINIFLUX] = "miniflux",
		[READER_FEVER] = "fever",
		[READER_PAGE] = "page"};

	metric_head(b, "reader_requests_total", "counter",
		"Requests of readers, by API: greader, miniflux, fever, page. Without logins.");
	for (size_t i = 0; i < READER_N; i++)
		metric_sample(b, "reader_requests_total", (double)atomic_load(&h->reader_n[i]), "api=\"%s\"", API[i]);
	metric(b, "logins_total", "counter",
		"Passwords of accounts that were right. One that Miniflux' API remembers is not checked, "
		"so not counted.",
		(double)atomic_load(&h->login_n));
	metric(b, "login_failures_total", "counter", "Names or passwords of accounts that were wrong.",
		(double)atomic_load(&h->login_wrong_n));
}

enum MHD_Result http_metrics(struct request *r)
{
	struct http *h = r->thread->h;
	struct fw_buf b = FW_BUF_INIT(0);
	uint64_t requests = 0, refused = 0;
	struct fw_ingest_stats s;

	fw_ingest_stats(h->ingest, &s);
	for (size_t i = 0; i < h->thread_n; i++) {
		requests += atomic_load(&h->thread[i].request_n);
		refused += atomic_load(&h->thread[i].refused_n);
	}
	metric(&b, "http_requests_total", "counter", "Requests.", (double)requests);
	metric(&b, "http_refused_total", "counter", "Requests with a response of 4xx or 5xx.", (double)refused);
	metrics_connections(&b, h);
	metric(&b, "auth_failures_total", "counter", "Requests with an unknown or expired token.",
		(double)auth_failure_n(h->auth));
	metric(&b, "auth_rate_limited_total", "counter",
		"Requests with a token that the rate limiter refused with 429.", (double)auth_limited_n(h->auth));
	metrics_readers(&b, h);
	metric(&b, "push_rows_total", "counter", "Pushed rows that were accepted.", (double)s.put_n);
	metric(&b, "push_stored_rows_total", "counter", "Pushed rows that were committed to the store.",
		(double)s.stored_n);
	metric(&b, "push_clashes_total", "counter",
		"Pushed rows that had the id of another row, and were stored with a new one.", (double)s.clash_n);
	metric(&b, "push_dead_letters_total", "counter",
		"Pushed rows that the store refused; they are kept as dead letters.", (double)s.dead_letter_n);
	metric(&b, "push_ring_full_total", "counter",
		"Pushes refused with 503 because the ring or the write-ahead log was full.", (double)s.full_n);
	metric(&b, "push_oldest_seconds", "gauge", "Age of the oldest pushed row that is not stored yet.",
		(double)s.oldest_ms / 1000);
	metric(&b, "ring_bytes", "gauge", "Memory of all rings.", (double)s.ring_bytes);
	metric(&b, "ring_fill_bytes", "gauge", "Memory in use in all rings.", (double)s.fill_bytes);
	metric(&b, "ring_fill_max_bytes", "gauge", "Memory in use in the fullest ring.", (double)s.fill_max_bytes);
	metric(&b, "flush_retries_total", "counter", "Retries after the store failed to take pushed rows.",
		(double)s.retry_n);
	metric(&b, "store_unavailable", "gauge",
		"1: the last attempt to store pushed rows found the store unavailable.", s.unavailable);
	metric(&b, "flush_cpu_seconds_total", "counter",
		"CPU time of this process in statements that store pushed rows.", (double)s.flush_cpu_us / 1e6);
	metrics_flush(&b, &s);
	metric(&b, "push_entries_bytes", "gauge",
		"Memory of pushed entries that are being parsed or wait for the store (limit: serve_memory_bytes).",
		(double)atomic_load(&h->entries_bytes));
	metric(&b, "deliveries_total", "counter", "Pushed documents that were stored.",
		(double)atomic_load(&h->delivery_n));
	metric(&b, "delivered_new_entries_total", "counter", "New entries in pushed documents.",
		(double)atomic_load(&h->delivered_new_n));
	metric(&b, "delivered_changed_entries_total", "counter", "Changed entries in pushed documents.",
		(double)atomic_load(&h->delivered_changed_n));
	http_websub_metrics(&b, h);
	metric(&b, "orders_leads", "gauge", "1: this process delivers the matches of orders.",
		h->sender && fw_sender_leads(h->sender));
	metric(&b, "clock_ahead_seconds", "gauge", "How far this machine's clock is ahead of the store's.",
		(double)fw_offset_clock_ahead_ms(h->config->store_clock) / 1000);
	metric(&b, "store_links_down", "gauge", "Connections of this process to the store that are lost, and wait.",
		(double)store_links_down_n());
	http_engine_metrics(&b, h->meter);
	http_store_metrics(&b, h);
	return http_send(r, MHD_HTTP_OK, "text/plain; version=0.0.4", &b);
}
