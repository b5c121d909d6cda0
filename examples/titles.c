/* SPDX-License-Identifier: ISC */
/*
 * Prints date, title and URL of each entry of a feed: the smallest use of libfeedwheel.
 *
 *   cc titles.c $(pkg-config --cflags --libs feedwheel) -o titles
 *   ./titles feed.xml
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <feedwheel.h>

static char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *bytes = NULL, *more;
	size_t cap = 0, n;

	*len = 0;
	if (!f)
		return NULL;
	do {
		if (*len == cap) {
			cap = cap ? 2 * cap : 65536;
			more = realloc(bytes, cap);
			if (!more) {
				free(bytes);
				bytes = NULL;
				break;
			}
			bytes = more;
		}
		n = fread(bytes + *len, 1, cap - *len, f);
		*len += n;
	} while (n > 0);
	fclose(f);
	return bytes;
}

static void print_entry(const struct fw_entry *e)
{
	int64_t at_ms = e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms;
	time_t at = (time_t)(at_ms / 1000);
	char day[20] = "----------";
	struct tm tm;

	if (at_ms != FW_NO_DATE && gmtime_r(&at, &tm))
		strftime(day, sizeof(day), "%Y-%m-%d", &tm);
	/* strings have no final NUL, and p is NULL if the string is absent */
	printf("%s  %.*s", day, (int)e->title.len, e->title.p ? e->title.p : "");
	if (e->url.p)
		printf("  <%.*s>", (int)e->url.len, e->url.p);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct fw_document *doc;
	const struct fw_entry *e;
	struct fw_err err;
	char *bytes;
	size_t len;

	if (argc != 2) {
		fprintf(stderr, "usage: titles FILE\n");
		return 2;
	}
	bytes = read_file(argv[1], &len);
	if (!bytes) {
		perror(argv[1]);
		return 2;
	}
	if (fw_parse(bytes, len, NULL, &doc, &err)) {
		fprintf(stderr, "%s: %s\n", argv[1], err.text);
		free(bytes);
		return 1;
	}
	free(bytes); /* the document has its own copy */
	for (e = doc->entries; e; e = e->next)
		print_entry(e);
	fw_document_free(doc);
	return 0;
}
