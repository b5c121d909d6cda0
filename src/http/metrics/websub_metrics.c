/* SPDX-License-Identifier: ISC */
/* The metrics of hubs. */
#include "http/metrics/prom.h"
#include "http/server/http.h"

void http_websub_metrics(struct fw_buf *b, struct http *h)
{
	static const char *const VERDICT[FW_WEBSUB_VERDICT_N] = {
		"taken", "hint", "wrong_signature", "unsigned", "gone"};
	struct fw_websub_stats s;

	fw_websub_stats(&s);
	metric(b, "websub_leads", "gauge", "1: this process sends subscription requests to hubs.", s.leads);
	metric(b, "websub_subscriptions", "gauge",
		"Feeds with a hub that a subscription was requested from; only in the process that sends the requests.",
		(double)s.known_n);
	metric(b, "websub_active", "gauge", "Of these, subscriptions that the hub has verified.", (double)s.active_n);
	metric(b, "websub_requests_total", "counter", "Subscription requests to hubs.", (double)s.requests_n);
	metric(b, "websub_refused_total", "counter", "Of these, requests without a 2xx response.", (double)s.refused_n);
	metric(b, "websub_verified_total", "counter", "Verifications by hubs.", (double)s.verified_n);
	metric(b, "websub_denied_total", "counter", "Subscriptions denied by hubs.", (double)s.denied_n);
	metric(b, "websub_missed_total", "counter", "Polls that found entries which the hub had not sent.",
		(double)s.missed_n);
	metric(b, "websub_unknown_total", "counter",
		"Requests to unknown callbacks, refused without a read of the store.", (double)s.unknown_n);
	metric(b, "websub_lookups_total", "counter", "Requests to other callbacks, looked up in the store.",
		(double)s.lookups_n);
	metric(b, "websub_refused_pushes_total", "counter",
		"Documents from hubs refused with 429: by the rate limit, or by the feed's daily limits.",
		(double)atomic_load(&h->push_limited_n));
	metric_head(b, "websub_pushes_total", "counter", "Documents from hubs, by outcome.");
	for (int i = 0; i < FW_WEBSUB_VERDICT_N; i++)
		metric_sample(b, "websub_pushes_total", (double)s.verdict[i], "verdict=\"%s\"", VERDICT[i]);
}
