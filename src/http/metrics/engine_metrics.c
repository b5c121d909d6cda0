/* SPDX-License-Identifier: ISC */
/* Metrics of the whole run (api/meter.h): visits, processes, workers; and of its store. */
#include "api/meter.h"
#include "http/metrics/prom.h"
#include "http/server/http.h"

static const struct {
	const char *name, *help;
} COUNT[FW_COUNT_N] = {
	[FW_COUNT_ITEMS] = {"items_total", "Items in the documents that were parsed."},
	[FW_COUNT_NEW_ENTRIES] = {"entries_new_total", "Entries stored for the first time."},
	[FW_COUNT_CHANGED_ENTRIES] = {"entries_changed_total", "Entries stored again because they had changed."},
	[FW_COUNT_DEFERRED_ENTRIES] = {"entries_deferred_total",
		"Entries deferred to a later day by feed_daily_entries_max and feed_daily_bytes_max; counted again at "
		"each visit."},
	[FW_COUNT_WIRE_BYTES] = {"fetch_received_bytes_total", "Bytes of response bodies, as received."},
	[FW_COUNT_BODY_BYTES] = {"fetch_decoded_bytes_total", "Bytes of response bodies, decompressed."},
	[FW_COUNT_REDIRECTS] = {"fetch_redirects_total", "Redirects followed."},
	[FW_COUNT_STALE] = {"leases_lost_total", "Visits that were discarded because their worker had lost its lease."},
	[FW_COUNT_MOVED] = {"pages_replaced_total", "Visits of an HTML page that was replaced by the feed it names."},
	[FW_COUNT_ADOPTED] = {"feeds_moved_total",
		"Feeds whose URL was replaced by the target of a permanent redirect."},
	[FW_COUNT_MERGED] = {"feeds_merged_total", "Feeds merged into another feed that has the URL they redirect to."},
	[FW_COUNT_CLAIMS] = {"claims_total", "Feeds claimed by workers."},
	[FW_COUNT_RELEASED] = {"claims_released_total", "Claimed feeds that were released without a visit."},
	[FW_COUNT_DEFERRED] = {"claims_deferred_total",
		"Times that a due feed was deferred by the limits of its host or address."},
	[FW_COUNT_OUTAGES] = {"store_outages_total", "Times that the store became unavailable for a worker."},
	[FW_COUNT_RETRIES] = {"store_retries_total", "Retries of a worker after the store failed."},
	[FW_COUNT_INBOX] = {"inbox_taken_total",
		"Rows of feeds_to_fetch and control that workers took, also those that were refused."},
};

static const struct {
	const char *name, *help;
} TIMING[FW_TIMING_N] = {
	[FW_TIMING_LATENESS] = {"visit_lateness_seconds", "Delay between the due time and the start of a visit."},
	[FW_TIMING_FETCH] = {"fetch_duration_seconds",
		"Duration of a fetch, from the request to the last byte, with redirects."},
	[FW_TIMING_PARSE] = {"parse_duration_seconds", "Duration of parsing a document."},
	[FW_TIMING_CLAIM] = {"store_claim_duration_seconds",
		"Duration of claiming due feeds, which reads them from the store."},
	[FW_TIMING_COMMIT] = {"store_commit_duration_seconds", "Duration of a commit of a batch of visits."},
};

static void metrics_visits(struct fw_buf *b, const struct fw_meter_sum *s)
{
	metric_head(b, "visits_total", "counter", "Visits that were stored, by result.");
	for (size_t i = FW_VISIT_NONE + 1; i < FW_VISIT_PUSHED; i++) /* which is no visit */
		metric_sample(b, "visits_total", (double)s->visits[i], "kind=\"%s\"",
			fw_visit_kind_name((enum fw_visit_kind)i));
	metric_head(
		b, "fetch_responses_total", "counter", "Responses of servers to fetches, by class of the HTTP status.");
	for (size_t i = 1; i < FW_METER_CLASSES; i++)
		metric_sample(b, "fetch_responses_total", (double)s->responses[i], "status=\"%zuxx\"", i);
	metric_sample(b, "fetch_responses_total", (double)s->responses[0], "status=\"other\"");
}

static void metrics_processes(struct fw_buf *b, const struct fw_meter *m)
{
	struct fw_meter_process p;

	metric_head(b, "process_resident_memory_bytes", "gauge",
		"Resident memory of a process; absent in the first second after its start.");
	for (size_t i = 0; i < fw_meter_process_n(m); i++) {
		if (fw_meter_process(m, i, &p) && p.rss_bytes >= 0)
			metric_sample(b, "process_resident_memory_bytes", (double)p.rss_bytes,
				"process=\"%s\",index=\"%d\"", p.what, p.index);
	}
	metric_head(b, "process_cpu_seconds_total", "counter", "CPU time of a process.");
	for (size_t i = 0; i < fw_meter_process_n(m); i++) {
		if (fw_meter_process(m, i, &p) && p.cpu_ms >= 0)
			metric_sample(b, "process_cpu_seconds_total", (double)p.cpu_ms / 1000,
				"process=\"%s\",index=\"%d\"", p.what, p.index);
	}
}

void http_engine_metrics(struct fw_buf *b, const struct fw_meter *m)
{
	struct fw_meter_sum s;

	fw_meter_read(m, &s);
	metric_head(b, "build_info", "gauge", "Always 1; the label is the version.");
	metric_sample(b, "build_info", 1, "version=\"%s\"", fw_version());
	metric(b, "start_time_seconds", "gauge", "Start time of the master, Unix time.", (double)s.started_ms / 1000);
	metrics_processes(b, m);
	metric(b, "server_restarts_total", "counter", "Servers started in place of a dead one.",
		(double)s.server_restarts);
	metric(b, "workers", "gauge", "Configured workers.", s.workers);
	if (!s.workers)
		return;
	metric(b, "workers_alive", "gauge", "Workers that are running.", s.alive);
	metric(b, "worker_restarts_total", "counter", "Workers started in place of a dead one.",
		(double)s.worker_restarts);
	metric(b, "workers_store_unavailable", "gauge", "Workers whose last request to the store failed.",
		(double)s.unavailable);
	metric(b, "workers_disk_low", "gauge",
		"Workers that wait for free space on the store's disk (disk_free_min_bytes).", (double)s.disk_low);
	metric(b, "workers_offline", "gauge", "Workers without connectivity: no host responds.", (double)s.offline);
	metric(b, "fetch_in_flight", "gauge", "Transfers in flight.", (double)s.in_flight);
	metric(b, "fetch_slots", "gauge", "Limit of transfers in flight.", (double)s.slots);
	metrics_visits(b, &s);
	for (size_t i = 0; i < FW_COUNT_N; i++)
		metric(b, COUNT[i].name, "counter", COUNT[i].help, (double)s.count[i]);
	for (size_t i = 0; i < FW_TIMING_N; i++) {
		size_t n;
		const int64_t *bound = fw_meter_bounds((enum fw_timing)i, &n);

		metric_histogram(b, TIMING[i].name, TIMING[i].help, s.timing[i].bucket, bound, n, s.timing[i].sum_us);
	}
}

void http_store_metrics(struct fw_buf *b, struct http *h)
{
	struct fw_store_stats s;
	int64_t in_flight, age_ms;

	if (!http_sample(h, &s, &in_flight, &age_ms))
		return;
	metric_head(b, "feeds", "gauge", "Feeds by status.");
	metric_sample(b, "feeds", (double)s.active_n, "status=\"active\"");
	metric_sample(b, "feeds", (double)s.paused_n, "status=\"paused\"");
	metric_sample(b, "feeds", (double)s.gone_n, "status=\"gone\"");
	metric_sample(b, "feeds", (double)s.quarantined_n, "status=\"quarantined\"");
	metric(b, "feeds_due", "gauge", "Active feeds that are due.", (double)s.due_n);
	metric(b, "feeds_in_flight", "gauge", "Transfers in flight on all machines, by their workers' last heartbeats.",
		(double)in_flight);
	metric(b, "feeds_failing", "gauge", "Feeds whose last visit failed.", (double)s.failing_n);
	metric(b, "entries", "gauge", "Entries in the store.", (double)s.entry_n);
	metric(b, "entries_unindexed", "gauge", "Entries that are not in the search index yet.", (double)s.unindexed_n);
	metric(b, "inbox_rows", "gauge", "Rows of feeds_to_fetch and control that wait for a worker.",
		(double)s.inbox_n);
	metric(b, "inbox_refused_rows", "gauge", "Rows of feeds_to_fetch that were refused, and kept with the reason.",
		(double)s.inbox_refused_n);
	if (s.size_bytes >= 0)
		metric(b, "store_size_bytes", "gauge", "Size of the store.", (double)s.size_bytes);
	http_order_metrics(b, h);
	metric(b, "store_sample_age_seconds", "gauge", "Age of the counts of feeds and entries.",
		(double)age_ms / 1000);
}
