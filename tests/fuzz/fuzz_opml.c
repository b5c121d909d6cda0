/* SPDX-License-Identifier: ISC */
/*
 * Subscription lists: any bytes give an error with a message, or outlines with a URL, in order, in
 * valid UTF-8. For a well-formed list the outlines are those that expat finds. The callback's
 * result ends the parse.
 */
#include <expat.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "feedwheel/document.h"
#include "fuzz.h"

struct seen {
	size_t n, stop_at; /* 0: never */
	uint32_t line, problem_n;
};

static int on_outline(void *ctx, const struct fw_opml_outline *o)
{
	const struct fw_str all[] = {o->url, o->title, o->home_page_url, o->folder, o->type};
	struct seen *s = ctx;

	FUZZ_CHECK(o->url.len && o->line >= s->line);
	FUZZ_CHECK(o->folder.len < 1300);
	for (size_t i = 0; i < FW_N(all); i++)
		FUZZ_CHECK(fw_utf8_valid(all[i].p, all[i].len) == all[i].len);
	s->line = o->line;
	return ++s->n == s->stop_at ? 42 : 0;
}

static void on_problem(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair)
{
	struct seen *s = ctx;

	FUZZ_CHECK(line && column && what && what[0] && repair);
	s->problem_n++;
}

/* ---- expat's count --------------------------------------------------------------------------- */

static void XMLCALL their_start(void *ctx, const XML_Char *name, const XML_Char **atts)
{
	const char *colon = strrchr(name, ':');

	for (; fw_str_ieq(fw_str(colon ? colon + 1 : name), FW_STR("outline")) && *atts; atts += 2) {
		colon = strrchr(atts[0], ':');
		if (fw_str_ieq(fw_str(colon ? colon + 1 : atts[0]), FW_STR("xmlUrl"))) {
			*(size_t *)ctx += fw_str_trim(fw_str(atts[1])).len > 0; /* the first one counts */
			return;
		}
	}
}

/* False: expat refuses it, or reads it differently. */
static bool their_count(struct fw_str in, size_t *n)
{
	XML_Parser x = XML_ParserCreate("UTF-8");
	bool ok;

	FUZZ_CHECK(x);
	*n = 0;
	XML_SetUserData(x, n);
	XML_SetStartElementHandler(x, their_start);
	ok = XML_Parse(x, in.p, (int)in.len, 1) == XML_STATUS_OK;
	XML_ParserFree(x);
	return ok && !fw_str_find(in, FW_STR("<!DOCTYPE")) && !fw_str_find(in, FW_STR("encoding"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str in = {(const char *)data, size};
	struct seen seen = {.n = 0}, stopped = {.stop_at = 1 + size % 3};
	struct fw_err err = {.rc = 0};
	size_t want;
	int rc = fw_opml_read(in.p, in.len, on_outline, on_problem, &seen, &err);

	FUZZ_CHECK(rc == 0 || (rc == FW_EFORMAT && seen.n == 0 && err.text[0]) || (rc == FW_ELIMIT && err.text[0]));
	if (rc == 0 && fw_utf8_valid(in.p, in.len) == in.len && their_count(in, &want))
		FUZZ_CHECK(seen.n == want && seen.problem_n <= 1000);
	rc = fw_opml_read(in.p, in.len, on_outline, NULL, &stopped, &err);
	FUZZ_CHECK((rc == 42) == (seen.n >= stopped.stop_at) && stopped.n == (rc == 42 ? stopped.stop_at : seen.n));
	return 0;
}
