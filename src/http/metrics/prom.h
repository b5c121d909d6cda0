/* SPDX-License-Identifier: ISC */
/*
 * Write Prometheus' text format, version 0.0.4. All names get the prefix "feedwheel_". Units are
 * seconds and bytes; counters end in _total. Write a metric's head, then all its samples, then the
 * next metric.
 */
#ifndef FW_HTTP_METRICS_PROM_H
#define FW_HTTP_METRICS_PROM_H

#include "base/buf.h"

/* A metric of one sample. */
void metric(struct fw_buf *b, const char *name, const char *type, const char *help, double v);
void metric_head(struct fw_buf *b, const char *name, const char *type, const char *help);
/*
 * labels: key="value",... of the program itself. They are not escaped, so nothing from outside may
 * be in them.
 */
FW_PRINTF(4, 5) void metric_sample(struct fw_buf *b, const char *name, double v, const char *labels, ...);
/*
 * bucket[i]: observations <= bound_us[i] and above bound_us[i - 1]; the last bucket has no bound.
 * sum_us: of all of them.
 */
void metric_histogram(struct fw_buf *b, const char *name, const char *help, const uint64_t *bucket,
	const int64_t *bound_us, size_t n, uint64_t sum_us);

#endif
