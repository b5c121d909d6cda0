/* SPDX-License-Identifier: ISC */
/*
 * Prometheus' text format, version 0.0.4. Names go out with "feedwheel_" before them; units are seconds and bytes, counters end in _total.
 * A metric is its head, then its samples, then the next one.
 */
#ifndef FW_HTTP_PROM_H
#define FW_HTTP_PROM_H

#include "base/buf.h"

/* A metric of one sample. */
void metric(struct fw_buf *b, const char *name, const char *type, const char *help, double v);
void metric_head(struct fw_buf *b, const char *name, const char *type, const char *help);
/* labels: {key="value",...} without the braces; the caller's words, nothing from outside. */
FW_PRINTF(4, 5) void metric_sample(struct fw_buf *b, const char *name, double v, const char *labels, ...);
/* bucket[i]: observations <= bound_us[i] and above the one before; the last has no bound. */
void metric_histogram(struct fw_buf *b, const char *name, const char *help, const uint64_t *bucket, const int64_t *bound_us, size_t n,
	uint64_t sum_us);

#endif
