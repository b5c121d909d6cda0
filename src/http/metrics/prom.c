/* SPDX-License-Identifier: ISC */
#include "http/metrics/prom.h"

void metric_head(struct fw_buf *b, const char *name, const char *type, const char *help)
{
	fw_buf_addf(b, "# HELP feedwheel_%s %s\n# TYPE feedwheel_%s %s\n", name, help, name, type);
}

void metric(struct fw_buf *b, const char *name, const char *type, const char *help, double v)
{
	metric_head(b, name, type, help);
	fw_buf_addf(b, "feedwheel_%s %.17g\n", name, v);
}

void metric_sample(struct fw_buf *b, const char *name, double v, const char *labels, ...)
{
	va_list ap;

	fw_buf_addf(b, "feedwheel_%s{", name);
	va_start(ap, labels);
	fw_buf_vaddf(b, labels, ap);
	va_end(ap);
	fw_buf_addf(b, "} %.17g\n", v);
}

void metric_histogram(struct fw_buf *b, const char *name, const char *help, const uint64_t *bucket,
	const int64_t *bound_us, size_t n, uint64_t sum_us)
{
	uint64_t sum = 0;

	metric_head(b, name, "histogram", help);
	for (size_t i = 0; i < n; i++) {
		sum += bucket[i];
		if (i + 1 < n)
			fw_buf_addf(b, "feedwheel_%s_bucket{le=\"%.12g\"} %llu\n", name, (double)bound_us[i] / 1e6,
				(unsigned long long)sum);
	}
	fw_buf_addf(b, "feedwheel_%s_bucket{le=\"+Inf\"} %llu\nfeedwheel_%s_sum %.6f\nfeedwheel_%s_count %llu\n", name,
		(unsigned long long)sum, name, (double)sum_us / 1e6, name, (unsigned long long)sum);
}
