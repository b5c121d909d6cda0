/* SPDX-License-Identifier: ISC */
/*
 * The oracle: the events of our tokenizer and of expat as one text each, for comparison. The unit
 * test and the fuzzer use it. Header only: both are single files.
 */
#ifndef FW_TEST_TRACE_H
#define FW_TEST_TRACE_H

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "parse/xml/xml.h"

#define SEP '\x01' /* invalid in XML */

struct trace {
	struct fw_buf out;
	bool in_text, in_doctype; /* our tokenizer skips the contents of the DTD */
	bool whole;               /* text is requested in one piece */
	unsigned problems, depth, depth_max;
};

static void trace_break(struct trace *t)
{
	if (t->in_text)
		fw_buf_adds(&t->out, "\x02\n");
	t->in_text = false;
}

static void trace_text(struct trace *t, const char *p, size_t n)
{
	if (n == 0)
		return;
	if (!t->in_text)
		fw_buf_adds(&t->out, "T ");
	t->in_text = true;
	fw_buf_add(&t->out, p, n);
}

static void trace_name(struct trace *t, const struct fw_xml_name *n)
{
	if (n->uri.p) {
		fw_buf_addstr(&t->out, n->uri);
		fw_buf_addc(&t->out, SEP);
	}
	fw_buf_addstr(&t->out, n->local);
}

static int our_start(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	struct trace *t = ctx;

	trace_break(t);
	if (++t->depth > t->depth_max)
		t->depth_max = t->depth;
	fw_buf_adds(&t->out, "S ");
	trace_name(t, name);
	for (size_t i = 0; i < n; i++) {
		fw_buf_adds(&t->out, "\n  ");
		trace_name(t, &a[i].name);
		fw_buf_adds(&t->out, "=");
		fw_buf_addstr(&t->out, a[i].value);
		fw_buf_adds(&t->out, "\x02");
	}
	fw_buf_adds(&t->out, "\n");
	return 0;
}

static int our_end(void *ctx, const struct fw_xml_name *name)
{
	struct trace *t = ctx;

	trace_break(t);
	t->depth--;
	fw_buf_adds(&t->out, "E ");
	trace_name(t, name);
	fw_buf_adds(&t->out, "\n");
	return 0;
}

static int our_text(void *ctx, struct fw_str text, bool cdata)
{
	(void)cdata;
	trace_text(ctx, text.p, text.len);
	return 0;
}

static int our_comment(void *ctx, struct fw_str text)
{
	struct trace *t = ctx;

	trace_break(t);
	fw_buf_adds(&t->out, "C ");
	fw_buf_addstr(&t->out, text);
	fw_buf_adds(&t->out, "\x02\n");
	return 0;
}

static int our_pi(void *ctx, struct fw_str target, struct fw_str data)
{
	struct trace *t = ctx;

	trace_break(t);
	fw_buf_adds(&t->out, "P ");
	fw_buf_addstr(&t->out, target);
	fw_buf_adds(&t->out, " ");
	fw_buf_addstr(&t->out, data);
	fw_buf_adds(&t->out, "\x02\n");
	return 0;
}

static void our_problem(void *ctx, size_t offset, const char *what, const char *repair)
{
	struct trace *t = ctx;

	(void)offset, (void)what, (void)repair;
	t->problems++;
}

static const struct fw_xml_handler OUR = {our_start, our_end, our_text, our_comment, our_pi, our_problem};

static void XMLCALL their_start(void *ctx, const XML_Char *name, const XML_Char **atts)
{
	struct trace *t = ctx;

	trace_break(t);
	fw_buf_adds(&t->out, "S ");
	fw_buf_adds(&t->out, name);
	for (; *atts; atts += 2) {
		fw_buf_adds(&t->out, "\n  ");
		fw_buf_adds(&t->out, atts[0]);
		fw_buf_adds(&t->out, "=");
		fw_buf_adds(&t->out, atts[1]);
		fw_buf_adds(&t->out, "\x02");
	}
	fw_buf_adds(&t->out, "\n");
}

static void XMLCALL their_end(void *ctx, const XML_Char *name)
{
	struct trace *t = ctx;

	trace_break(t);
	fw_buf_adds(&t->out, "E ");
	fw_buf_adds(&t->out, name);
	fw_buf_adds(&t->out, "\n");
}

static void XMLCALL their_text(void *ctx, const XML_Char *p, int n)
{
	trace_text(ctx, p, (size_t)n);
}

static void XMLCALL their_comment(void *ctx, const XML_Char *text)
{
	struct trace *t = ctx;

	if (!t->in_doctype)
		our_comment(t, fw_str(text));
}

static void XMLCALL their_pi(void *ctx, const XML_Char *target, const XML_Char *data)
{
	struct trace *t = ctx;

	if (!t->in_doctype)
		our_pi(ctx, fw_str(target), fw_str(data));
}

static void XMLCALL their_doctype(
	void *ctx, const XML_Char *name, const XML_Char *sys, const XML_Char *pub, int internal)
{
	struct trace *t = ctx;

	(void)name, (void)sys, (void)pub, (void)internal;
	t->in_doctype = true;
}

static void XMLCALL their_doctype_end(void *ctx)
{
	struct trace *t = ctx;

	t->in_doctype = false;
}

/* 0: accepted; otherwise expat's error code. The input is UTF-8, whatever its declaration. */
static int trace_expat(struct trace *t, const char *p, size_t n)
{
	XML_Parser x = XML_ParserCreateNS("UTF-8", SEP);
	int rc = 0;

	XML_SetUserData(x, t);
	XML_SetElementHandler(x, their_start, their_end);
	XML_SetCharacterDataHandler(x, their_text);
	XML_SetCommentHandler(x, their_comment);
	XML_SetProcessingInstructionHandler(x, their_pi);
	XML_SetDoctypeDeclHandler(x, their_doctype, their_doctype_end);
	if (XML_Parse(x, p, (int)n, 1) != XML_STATUS_OK)
		rc = (int)XML_GetErrorCode(x);
	XML_ParserFree(x);
	trace_break(t);
	return rc;
}

/*
 * True: well-formed. *skipped: references that only a DTD could define; expat has no event for
 * them, our tokenizer has.
 */
static bool trace_ours(struct trace *t, const char *p, size_t n, const struct fw_limits *limits, uint32_t *skipped)
{
	struct fw_arena a;
	struct fw_xml x = {.arena = &a, .handler = &OUR, .ctx = t, .whole_text = t->whole};
	struct fw_err err;
	int rc;

	if (limits)
		x.limits = *limits;
	fw_arena_init(&a, 0);
	rc = fw_xml_parse(&x, p, n, &err);
	trace_break(t);
	*skipped = x.skipped;
	fw_arena_finish(&a);
	if (rc)
		abort();
	return !x.malformed;
}

/* True if text that is requested in one piece is the same. */
static inline bool trace_same_whole(const struct trace *ours, const char *p, size_t n, const struct fw_limits *limits)
{
	struct trace whole = {.whole = true};
	uint32_t skipped;
	bool same;

	(void)trace_ours(&whole, p, n, limits, &skipped);
	same = whole.problems == ours->problems && fw_str_eq(fw_buf_str(&whole.out), fw_buf_str(&ours->out));
	fw_buf_finish(&whole.out);
	return same;
}

#endif
