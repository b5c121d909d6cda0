/* SPDX-License-Identifier: ISC */
/*
 * HTML: sanitising is idempotent, and what comes out holds nothing but elements of the allow list, no comment, no handler, no
 * active URL (WEB-01 ... WEB-03), as gumbo reads it; text, discovery and Link headers take any bytes.
 */
#include <gumbo.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/html.h"
#include "parse/html_token.h"

static const char BASE[] = "http://example.org/dir/page";

static void check_attribute(const GumboAttribute *a)
{
	static const char *const NEVER[] = {"id", "name", "srcdoc", "formaction", "action", "ping", "background"};
	static const char *const URL[] = {"href", "src", "poster", "cite"};
	struct fw_str name = fw_str(a->name), value = fw_str_trim(fw_str(a->value));

	FUZZ_CHECK(!fw_str_istarts(name, FW_STR("on")));
	for (size_t i = 0; i < FW_N(NEVER); i++)
		FUZZ_CHECK(!fw_str_ieq(name, fw_str(NEVER[i])));
	for (size_t i = 0; i < FW_N(URL); i++)
		FUZZ_CHECK(!fw_str_ieq(name, fw_str(URL[i])) || fw_str_istarts(value, FW_STR("http:")) ||
			fw_str_istarts(value, FW_STR("https:")) || fw_str_istarts(value, FW_STR("mailto:")));
}

static void check_node(const GumboNode *node, unsigned depth)
{
	FUZZ_CHECK(node->type != GUMBO_NODE_COMMENT && depth < 600);
	if (node->type != GUMBO_NODE_ELEMENT)
		return;
	FUZZ_CHECK(depth == 0 || fw_el_flags(fw_el_find(fw_str(gumbo_normalized_tagname(node->v.element.tag)))) & FW_EL_KEEP);
	for (unsigned i = 0; i < node->v.element.attributes.length; i++)
		check_attribute(node->v.element.attributes.data[i]);
	for (unsigned i = 0; i < node->v.element.children.length; i++)
		check_node(node->v.element.children.data[i], depth + 1);
}

/* The oracle: the tree that a browser would build of the output. */
static void check_safe(struct fw_str html)
{
	GumboOptions options = kGumboDefaultOptions;
	GumboOutput *tree;

	options.fragment_context = GUMBO_TAG_DIV;
	tree = gumbo_parse_with_options(&options, html.p, html.len);
	check_node(tree->root, 0);
	gumbo_destroy_output(&options, tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str in = {(const char *)data, size}, base = FW_STR(BASE), text;
	struct fw_buf once = FW_BUF_INIT(0), twice = FW_BUF_INIT(0);
	struct fw_link *links;
	struct fw_arena a;

	FUZZ_CHECK(fw_html_sanitize(in, base, 0, &once, NULL) == 0);
	FUZZ_CHECK(fw_html_sanitize(fw_buf_str(&once), base, 0, &twice, NULL) == 0);
	FUZZ_CHECK(fw_str_eq(fw_buf_str(&once), fw_buf_str(&twice)));
	FUZZ_CHECK(fw_utf8_valid(fw_buf_str(&once).p, once.len) == once.len);
	check_safe(fw_buf_str(&once));
	fw_arena_init(&a, 0);
	text = fw_html_text(&a, in);
	FUZZ_CHECK(text.len <= in.len * 2 + 2);
	(void)fw_html_has_markup(in);
	FUZZ_CHECK(fw_html_discover(&a, in, base, &links, NULL) == 0);
	for (; links; links = links->next)
		FUZZ_CHECK(fw_str_istarts(links->href, FW_STR("http")));
	for (links = fw_link_header(&a, in, base, FW_STR_NONE); links; links = links->next)
		FUZZ_CHECK(links->href.p != NULL);
	fw_arena_finish(&a);
	fw_buf_finish(&once);
	fw_buf_finish(&twice);
	return 0;
}
