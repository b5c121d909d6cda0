/* SPDX-License-Identifier: ISC */
/*
 * Prints the feeds that an HTML page names.
 *
 *   cc feeds.c $(pkg-config --cflags --libs feedwheel) -o feeds
 *   ./feeds https://example.org/ < page.html
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <feedwheel.h>

#define PAGE_MAX (1 << 20)

int main(int argc, char **argv)
{
	struct fw_str url = {NULL, 0}, no_header = {NULL, 0};
	struct fw_link *links;
	const struct fw_link *l;
	struct fw_err err;
	char *page;
	size_t len;

	if (argc != 2) {
		fprintf(stderr, "usage: feeds URL < PAGE\n");
		return 2;
	}
	url.p = argv[1];
	url.len = strlen(argv[1]);
	page = malloc(PAGE_MAX);
	if (!page)
		return 2;
	len = fread(page, 1, PAGE_MAX, stdin);
	if (fw_discover(page, len, url, no_header, &links, &err)) {
		fprintf(stderr, "%s\n", err.text);
		free(page);
		return 1;
	}
	free(page);
	for (l = links; l; l = l->next)
		printf("%.*s  %.*s\n", (int)l->href.len, l->href.p, (int)l->title.len, l->title.p ? l->title.p : "");
	free(links); /* one block */
	return 0;
}
