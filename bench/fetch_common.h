/* SPDX-License-Identifier: ISC */
/* Shared by the two fetch benchmarks: the list of URLs, the stopwatch, the last line. */
#ifndef FW_BENCH_FETCH_COMMON_H
#define FW_BENCH_FETCH_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct bench_list {
	char **url, **etag, **last_modified; /* from the first pass */
	size_t n;
};

struct bench_watch {
	double wall_s, cpu_s;
};

static inline char *bench_copy(const char *p, size_t n)
{
	char *d = malloc(n + 1);

	if (!d)
		abort();
	memcpy(d, p, n);
	d[n] = '\0';
	return d;
}

static inline void bench_list_read(struct bench_list *l, const char *file)
{
	FILE *f = fopen(file, "r");
	size_t cap = 0;
	char line[8200];

	memset(l, 0, sizeof(*l));
	if (!f) {
		perror(file);
		exit(2);
	}
	while (fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "\r\n");

		if (n == 0)
			continue;
		if (l->n == cap) {
			cap = cap ? cap * 2 : 1024;
			l->url = realloc(l->url, cap * sizeof(*l->url));
			if (!l->url)
				abort();
		}
		l->url[l->n++] = bench_copy(line, n);
	}
	fclose(f);
	l->etag = calloc(l->n + 1, sizeof(*l->etag));
	l->last_modified = calloc(l->n + 1, sizeof(*l->last_modified));
	if (!l->etag || !l->last_modified)
		abort();
}

static inline void bench_list_free(struct bench_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->url[i]);
		free(l->etag[i]);
		free(l->last_modified[i]);
	}
	free(l->url);
	free(l->etag);
	free(l->last_modified);
}

static inline struct bench_watch bench_now(void)
{
	struct rusage u;
	struct timespec t;

	getrusage(RUSAGE_SELF, &u);
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct bench_watch){(double)t.tv_sec + (double)t.tv_nsec / 1e9,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6};
}

static inline void bench_report(
	const char *who, size_t n, size_t failed, unsigned long long bytes, struct bench_watch from)
{
	struct bench_watch to = bench_now();
	struct rusage u;
	double wall = to.wall_s - from.wall_s, cpu = to.cpu_s - from.cpu_s;

	getrusage(RUSAGE_SELF, &u);
	printf("%s: %zu feeds, %zu failed, %.1f MB decoded, %.3f s wall, %.3f s CPU, %.0f feeds/s,"
	       " %.1f us CPU each, %ld KB at most\n",
		who, n, failed, (double)bytes / 1e6, wall, cpu, (double)n / wall, cpu * 1e6 / (double)n, u.ru_maxrss);
}

#endif
