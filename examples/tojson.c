/* SPDX-License-Identifier: ISC */
/*
 * Prints the feed on standard input as JSON Feed, with sanitised HTML and without tracking pixels.
 *
 *   cc tojson.c $(pkg-config --cflags --libs feedwheel) -o tojson
 *   ./tojson < feed.xml
 */
#include <stdio.h>
#include <stdlib.h>

#include <feedwheel.h>

#define FEED_MAX (16 << 20)

int main(void)
{
	struct fw_document *doc;
	struct fw_err err;
	char *bytes = malloc(FEED_MAX), *json;
	size_t len;
	int rc;

	if (!bytes)
		return 2;
	len = fread(bytes, 1, FEED_MAX, stdin);
	rc = fw_parse(bytes, len, NULL, &doc, &err);
	free(bytes);
	if (!rc) {
		rc = fw_document_json(doc, FW_PRINT_PRETTY | FW_PRINT_NO_PIXELS, &json, &len, &err);
		fw_document_free(doc);
	}
	if (rc) {
		fprintf(stderr, "%s (%s)\n", err.text, fw_err_name(rc));
		return 1;
	}
	fwrite(json, 1, len, stdout);
	free(json);
	return 0;
}
