/* SPDX-License-Identifier: ISC */
/*
 * The cases of tests/cases: each NAME.expect.json belongs to one document and lists what its JSON
 * must contain.
 *
 *   { "about": "the rule it shows", "document": "NAME.xml",
 *     "content_type": ..., "url": ..., "content_location": ..., "raw": true, "now_ms": ...,
 *     "limits": {"max_entries": 3, ...},
 *     "error": "words of the error",
 *     "feeds": ["https://...", ...],
 *     "expect": { "items[0].title": "text", "items#": 2, "icon": null } }
 *
 * The second line has the options. "error" is for a document that is not a feed, "feeds" for the
 * feeds that an HTML page names. A path consists of members and [indexes]; "#" at its end is the
 * number of members; null means absent. Without "raw" HTML is sanitised. Prints TAP. Usage:
 * test_cases DIRECTORY [NAME...]
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/document.h"

static int failed;

static bool slurp(const char *dir, const char *name, struct fw_buf *out)
{
	struct fw_buf path;
	char chunk[65536];
	size_t n;
	FILE *f;

	fw_buf_init(out, 0);
	fw_buf_init(&path, 0);
	fw_buf_addf(&path, "%s/%s", dir, name);
	f = path.p ? fopen(path.p, "rb") : NULL;
	fw_buf_finish(&path);
	if (!f)
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		fw_buf_add(out, chunk, n);
	fclose(f);
	return !out->rc;
}

/* The value at a path, borrowed; NULL: there is none. *count: the path ended with "#". */
static const json_t *at_path(const json_t *v, const char *path, bool *count)
{
	char key[100];

	*count = false;
	while (v && *path) {
		size_t n = strcspn(path, ".[#");

		if (*path == '#') {
			*count = true;
			return v;
		}
		if (*path == '[') {
			v = json_array_get(v, strtoul(path + 1, NULL, 10));
			path = strchr(path, ']');
			if (!path)
				return NULL;
			path++;
			continue;
		}
		if (*path == '.') {
			path++;
			continue;
		}
		if (!fw_str_copy(key, sizeof(key), (struct fw_str){path, n}))
			return NULL;
		v = json_object_get(v, key);
		path += n;
	}
	return v;
}

static bool same(const json_t *got, const json_t *want)
{
	if (json_is_number(got) && json_is_number(want))
		return json_number_value(got) == json_number_value(want);
	return json_equal(got, want);
}

static bool holds(const json_t *doc, const char *path, const json_t *want)
{
	bool count;
	const json_t *got = at_path(doc, path, &count);
	char *g, *w;
	bool ok;

	if (count)
		ok = json_is_integer(want) &&
			(json_int_t)(json_is_object(got) ? json_object_size(got) : json_array_size(got)) ==
				json_integer_value(want);
	else
		ok = json_is_null(want) ? !got : got && same(got, want);
	if (ok)
		return true;
	g = got ? json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	w = json_dumps(want, JSON_ENCODE_ANY | JSON_COMPACT);
	printf("#   %s: want %s, got %.300s\n", path, w ? w : "?", g ? g : "nothing");
	free(g);
	free(w);
	return false;
}

static struct fw_parse_options options_of(const json_t *c)
{
	const json_t *l = json_object_get(c, "limits");
	struct fw_parse_options o = {
		.url = fw_str(json_string_value(json_object_get(c, "url"))),
		.content_type = fw_str(json_string_value(json_object_get(c, "content_type"))),
		.content_location = fw_str(json_string_value(json_object_get(c, "content_location"))),
	};

	o.now_ms = (int64_t)json_integer_value(json_object_get(c, "now_ms"));
	o.limits.max_entries = (uint32_t)json_integer_value(json_object_get(l, "max_entries"));
	o.limits.max_bytes = (size_t)json_integer_value(json_object_get(l, "max_bytes"));
	o.limits.max_memory = (size_t)json_integer_value(json_object_get(l, "max_memory"));
	o.limits.max_depth = (uint32_t)json_integer_value(json_object_get(l, "max_depth"));
	return o;
}

static json_t *document_json(const struct fw_document *doc, unsigned flags)
{
	struct fw_err err;
	json_t *v = NULL;
	char *text;
	size_t len;

	if (!fw_document_json(doc, flags, &text, &len, &err)) {
		v = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
		free(text);
	}
	return v;
}

/* The URLs of the feeds that a page names, in order. */
static bool feeds_found(const json_t *c, struct fw_str bytes)
{
	struct fw_parse_options o = options_of(c);
	json_t *got = json_array();
	struct fw_link *links = NULL;
	const struct fw_link *l;
	struct fw_err err = {.rc = 0};
	char *text;
	bool ok;

	if (fw_discover(bytes.p, bytes.len, o.url, o.content_type, &links, &err)) {
		printf("#   discovery: %s\n", err.text);
		json_decref(got);
		return false;
	}
	for (l = links; l; l = l->next)
		json_array_append_new(got, json_stringn(l->href.p, l->href.len));
	free(links);
	ok = json_equal(got, json_object_get(c, "feeds"));
	text = ok ? NULL : json_dumps(got, JSON_COMPACT);
	if (text)
		printf("#   feeds: %s\n", text);
	free(text);
	json_decref(got);
	return ok;
}

static bool run(const json_t *c, struct fw_str bytes)
{
	const char *error = json_string_value(json_object_get(c, "error")), *path;
	unsigned flags = json_is_true(json_object_get(c, "raw")) ? FW_PRINT_RAW : 0;
	struct fw_parse_options o = options_of(c);
	struct fw_document *doc;
	struct fw_err err = {.rc = 0};
	json_t *out, *want;
	bool ok = true;

	if (fw_parse(bytes.p, bytes.len, &o, &doc, &err)) {
		ok = error && strstr(err.text, error);
		if (!ok)
			printf("#   error: %s\n", err.text);
		return ok;
	}
	out = document_json(doc, flags);
	fw_document_free(doc);
	if (!out || error) {
		printf("#   %s\n", error ? "an error was expected" : "the output is no JSON");
		json_decref(out);
		return false;
	}
	json_object_foreach(json_object_get(c, "expect"), path, want) ok &= holds(out, path, want);
	json_decref(out);
	return ok;
}

static void one_case(int n, const char *dir, const char *name)
{
	struct fw_buf text, doc;
	json_t *c = NULL;
	bool ok = false;

	fw_buf_init(&doc, 0);
	if (slurp(dir, name, &text))
		c = json_loadb(fw_buf_str(&text).p, text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!c || !json_object_get(c, "about") || !json_object_get(c, "document") ||
		!(json_object_size(json_object_get(c, "expect")) || json_object_get(c, "error") ||
			json_object_get(c, "feeds")))
		printf("#   %s is no case: JSON with about, document, and expect, error or feeds\n", name);
	else if (!slurp(dir, json_string_value(json_object_get(c, "document")), &doc))
		printf("#   the document is missing\n");
	else
		ok = json_object_get(c, "feeds") ? feeds_found(c, fw_buf_str(&doc)) : run(c, fw_buf_str(&doc));
	failed += !ok;
	printf("%sok %d - %.*s: %s\n", ok ? "" : "not ", n, (int)(strlen(name) - strlen(".expect.json")), name,
		c && json_object_get(c, "about") ? json_string_value(json_object_get(c, "about")) : "");
	json_decref(c);
	fw_buf_finish(&text);
	fw_buf_finish(&doc);
}

static int is_case(const struct dirent *d)
{
	return fw_str_ends(fw_str(d->d_name), FW_STR(".expect.json"));
}

int main(int argc, char **argv)
{
	struct dirent **list;
	int n, i;

	if (argc != 2) {
		fprintf(stderr, "usage: test_cases DIRECTORY\n");
		return 2;
	}
	n = scandir(argv[1], &list, is_case, alphasort);
	if (n <= 0) {
		fprintf(stderr, "test_cases: no cases in %s\n", argv[1]);
		return 2;
	}
	printf("# %d cases\n1..%d\n", n, n);
	for (i = 0; i < n; i++) {
		one_case(i + 1, argv[1], list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return failed != 0;
}
