/* SPDX-License-Identifier: ISC */
/*
 * Prints documents as JSON Feed, without the rest of the program. The runner of tests/cases and of
 * other cases uses it.
 *
 *   parse_dump [--content-type VALUE] [--url URL] [--content-location URL] [--raw] FILE
 *   parse_dump --lines FILE...    the JSON of each on a line, or "! " and the error
 *   parse_dump --bench N FILE...  MB/s of CPU time, the best of N rounds over all files
 *
 * Exit status 0: a document was read; 1: it is not a feed ("! " and the error); 2: usage error or
 * unreadable file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "parse/parse.h"

static bool slurp(const char *path, struct fw_buf *out)
{
	FILE *f = !strcmp(path, "-") ? stdin : fopen(path, "rb");
	char chunk[65536];
	size_t n;

	fw_buf_init(out, 0);
	if (!f) {
		perror(path);
		return false;
	}
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		fw_buf_add(out, chunk, n);
	if (f != stdin)
		fclose(f);
	return !out->rc;
}

static int dump(const char *path, const struct fw_parse_options *o, unsigned flags)
{
	struct fw_document *doc = NULL;
	char *json = NULL;
	struct fw_err err;
	struct fw_buf b;
	size_t len = 0;
	int rc;

	if (!slurp(path, &b))
		return 2;
	rc = fw_parse(b.p ? b.p : "", b.len, o, &doc, &err);
	if (!rc)
		rc = fw_document_json(doc, flags, &json, &len, &err);
	if (rc)
		printf("! %s\n", err.text);
	else
		fwrite(json, 1, len, stdout);
	free(json);
	fw_document_free(doc);
	fw_buf_finish(&b);
	return rc ? 1 : 0;
}

static int lines(char **path, int n)
{
	for (int i = 0; i < n; i++) {
		int rc = dump(path[i], NULL, 0);

		if (rc == 2) /* the JSON ends its own line */
			return rc;
	}
	return 0;
}

static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static int bench(int rounds, char **path, int n)
{
	struct fw_buf *b = calloc((size_t)n, sizeof(*b));
	struct fw_document *doc;
	struct fw_arena a;
	size_t bytes = 0, used = 0, entries = 0;
	int64_t best = INT64_MAX, at;
	int i, r;

	for (i = 0; i < n; i++) {
		if (!slurp(path[i], &b[i]))
			return 2;
		bytes += b[i].len;
	}
	fw_arena_init(&a, 0);
	for (i = 0; i < n; i++) { /* in memory: each in an arena of its own */
		if (!fw_parse_into(&a, fw_buf_str(&b[i]), NULL, &doc, NULL))
			entries += doc->entry_n;
		used += a.used_bytes;
		fw_arena_finish(&a);
	}
	for (r = 0; r < rounds; r++) {
		at = cpu_us();
		for (i = 0; i < n; i++) {
			if (fw_parse_into(&a, fw_buf_str(&b[i]), NULL, &doc, NULL))
				doc = NULL;
			fw_arena_reset(&a, 1 << 20);
		}
		at = cpu_us() - at;
		best = FW_MIN(best, at);
	}
	fw_arena_finish(&a);
	printf("%d documents, %zu bytes, %zu entries: %.1f MB/s, %.2f bytes of memory a byte\n", n, bytes, entries,
		(double)bytes / (double)best, (double)used / (double)bytes);
	for (i = 0; i < n; i++)
		fw_buf_finish(&b[i]);
	free(b);
	return 0;
}

int main(int argc, char **argv)
{
	struct fw_parse_options o = {0};
	unsigned flags = FW_PRINT_PRETTY;
	int i;

	if (argc > 2 && !strcmp(argv[1], "--lines"))
		return lines(argv + 2, argc - 2);
	if (argc > 3 && !strcmp(argv[1], "--bench"))
		return bench((int)strtol(argv[2], NULL, 10), argv + 3, argc - 3);
	const char *file = NULL;
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--raw"))
			flags |= FW_PRINT_RAW;
		else if (!strcmp(argv[i], "--content-type") && i + 1 < argc)
			o.content_type = fw_str(argv[++i]);
		else if (!strcmp(argv[i], "--url") && i + 1 < argc)
			o.url = fw_str(argv[++i]);
		else if (!strcmp(argv[i], "--content-location") && i + 1 < argc)
			o.content_location = fw_str(argv[++i]);
		else if (!file)
			file = argv[i];
		else
			return 2;
	}
	return file ? dump(file, &o, flags) : 2;
}
