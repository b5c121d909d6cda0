/* SPDX-License-Identifier: ISC */
/*
 * Reads subscription lists: OPML 1.0, 1.1, 2.0, and what programs export under that name.
 *
 * An outline with an xmlUrl (any case) is a subscription; one without is a folder of the outlines
 * in it. Damage loses only the outline that contains it. The first MAX_PROBLEMS repairs are
 * reported with their position.
 */
#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/parse.h"
#include "parse/xml/xml.h"

#define MAX_PROBLEMS 1000
#define DEPTH_MAX 256
#define NAME_MAX_BYTES ((size_t)200)
#define FOLDER_MAX_BYTES ((size_t)1000)

struct opml_level {
	struct fw_str name; /* of the folder; empty: not a folder */
	bool outline;
};

struct opml_reader {
	struct fw_arena *arena;
	struct fw_xml xml;
	struct fw_str text;
	fw_opml_cb *cb;
	fw_opml_problem_cb *problem;
	void *ctx;
	struct opml_level *stack;
	size_t depth, cap;
	struct fw_str folder; /* of the current stack; absent: not yet built */
	size_t problems;
	struct fw_xml_place place;
	/* positions of the last problem and of an earlier one */
	struct fw_xml_place problem_at, problem_before;
	bool is_opml;
};

static void opml_report(void *ctx, size_t offset, const char *what, const char *repair)
{
	struct opml_reader *r = ctx;
	uint32_t line, column;

	if (!r->problem || r->problems++ >= MAX_PROBLEMS)
		return;
	/* the tokenizer reports problems inside a tag before the tag itself */
	if (offset < r->problem_at.offset)
		r->problem_at = r->problem_before;
	else
		r->problem_before = r->problem_at;
	fw_xml_place_move(&r->problem_at, r->text.p, r->text.len, offset, &line, &column);
	r->problem(r->ctx, line, column, what, repair);
}

static struct fw_str opml_attribute(const struct fw_xml_attr *a, size_t n, struct fw_str name)
{
	for (size_t i = 0; i < n; i++) {
		if (fw_str_ieq(a[i].name.local, name))
			return fw_str_trim(a[i].value);
	}
	return FW_STR_NONE;
}

static struct fw_str opml_first_of(struct fw_str a, struct fw_str b)
{
	return a.len ? a : b;
}

/* Join the names of the enclosing folders with '/'. */
static int opml_folder_make(struct opml_reader *r)
{
	size_t n = 0;
	char *p;

	for (size_t i = 0; i < r->depth; i++)
		n += r->stack[i].name.len + 1;
	n = FW_MIN(n, FOLDER_MAX_BYTES + NAME_MAX_BYTES + 1);
	p = fw_arena_alloc(r->arena, n + 1);
	if (!p)
		return FW_ENOMEM;
	r->folder = (struct fw_str){p, 0};
	for (size_t i = 0; i < r->depth && r->folder.len < FOLDER_MAX_BYTES; i++) {
		struct fw_str name = r->stack[i].name;

		if (!name.len)
			continue;
		if (r->folder.len)
			p[r->folder.len++] = '/';
		memcpy(p + r->folder.len, name.p, name.len);
		r->folder.len += name.len;
	}
	return 0;
}

static int opml_push(struct opml_reader *r, struct opml_level level)
{
	if (r->depth == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 16;
		void *p = fw_arena_grow(r->arena, r->stack, r->cap * sizeof(*r->stack), cap * sizeof(*r->stack));

		if (!p)
			return FW_ENOMEM;
		r->stack = p;
		r->cap = cap;
	}
	r->stack[r->depth++] = level;
	if (level.name.len)
		r->folder = FW_STR_NONE;
	return 0;
}

static int opml_start(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	struct opml_reader *r = ctx;
	struct fw_opml_outline o = {0};
	struct opml_level level = {.outline = fw_str_ieq(name->local, FW_STR("outline"))};
	uint32_t column;
	int rc;

	if (fw_str_ieq(name->local, FW_STR("opml")))
		r->is_opml = true;
	if (!level.outline)
		return opml_push(r, level);
	o.url = opml_attribute(a, n, FW_STR("xmlUrl"));
	o.type = opml_attribute(a, n, FW_STR("type"));
	o.title = opml_first_of(opml_attribute(a, n, FW_STR("title")), opml_attribute(a, n, FW_STR("text")));
	if (!o.url.len) {
		if (o.url.p || fw_str_ieq(o.type, FW_STR("rss")) || fw_str_ieq(o.type, FW_STR("atom")))
			opml_report(r, r->xml.offset, "a subscription without an address", "left out");
		level.name = opml_first_of(opml_attribute(a, n, FW_STR("text")), o.title);
		level.name.len = fw_utf8_cut(level.name.p, level.name.len, NAME_MAX_BYTES);
		return opml_push(r, level);
	}
	r->is_opml = true;
	o.home_page_url = opml_attribute(a, n, FW_STR("htmlUrl"));
	if (!r->folder.p) {
		rc = opml_folder_make(r);
		if (rc)
			return rc;
	}
	o.folder = r->folder;
	fw_xml_place_move(&r->place, r->text.p, r->text.len, r->xml.offset, &o.line, &column);
	rc = r->cb(r->ctx, &o);
	return rc ? rc : opml_push(r, level);
}

static int opml_end(void *ctx, const struct fw_xml_name *name)
{
	struct opml_reader *r = ctx;

	(void)name;
	if (r->stack[--r->depth].name.len)
		r->folder = FW_STR_NONE;
	return 0;
}

int fw_opml_parse(struct fw_arena *a, struct fw_str bytes, fw_opml_cb *cb, fw_opml_problem_cb *problem, void *ctx,
	struct fw_err *err)
{
	static const struct fw_xml_handler handler = {.start = opml_start, .end = opml_end, .problem = opml_report};
	struct opml_reader r = {.arena = a, .cb = cb, .problem = problem, .ctx = ctx};
	struct fw_charset_result charset;
	int rc = fw_charset_decode(a, bytes, FW_STR_NONE, &charset, err);

	if (rc)
		return rc;
	r.text = charset.text;
	if (charset.wrong)
		opml_report(&r, charset.offset, charset.problem, charset.repair);
	r.xml = (struct fw_xml){.arena = a, .handler = &handler, .ctx = &r, .limits.max_depth = DEPTH_MAX};
	rc = fw_xml_parse(&r.xml, r.text.p, r.text.len, err);
	if (rc == FW_ENOMEM)
		return fw_err_set(err, FW_ENOMEM, "out of memory reading the subscription list");
	if (rc)
		return rc;
	if (r.xml.flattened)
		return fw_err_set(err, FW_ELIMIT,
			"the list is cut: outlines are nested deeper than %d levels, and what is in those is left out",
			DEPTH_MAX);
	if (!r.is_opml)
		return fw_err_set(
			err, FW_EFORMAT, "not a subscription list: it has neither <opml> nor an outline with xmlUrl");
	return 0;
}
