/* SPDX-License-Identifier: ISC */
/* parse FILE: parse one document and print it as JSON Feed 1.1. */
#include <stdlib.h>

#include "cli/cli.h"

static int parse_run(struct cli *c)
{
	struct fw_parse_options o = {
		.url = fw_str(cli_value(c, "url")),
		.content_type = fw_str(cli_value(c, "content-type")),
		.now_ms = c->now_ms,
		.limits = {.max_bytes = (size_t)c->config->max_body_bytes,
			.max_entries = (uint32_t)c->config->max_entries},
	};
	const char *limit = fw_arena_printf(&c->arena,
		"the limit max_body_bytes of %lld bytes (to raise it, give --max-body-bytes SIZE)",
		(long long)c->config->max_body_bytes);
	struct fw_buf text;
	struct fw_document *doc = NULL;
	struct fw_link *feeds = NULL;
	struct fw_err err = {0};
	int rc = cli_read(c, c->arg[0], o.limits.max_bytes, limit ? limit : "max_body_bytes", &text);

	if (rc) {
		fw_buf_finish(&text);
		return rc;
	}
	rc = fw_parse(text.p ? text.p : "", text.len, &o, &doc, &err);
	if (!rc) {
		rc = cli_document_print(c, doc);
	} else {
		rc = cli_fail(c, CLI_SOME, "%s: %s%s", strcmp(c->arg[0], "-") ? c->arg[0] : "standard input", err.text,
			err.rc == FW_ELIMIT && strstr(err.text, "max_bytes") ?
				" (to raise it, give --max-body-bytes SIZE)" :
				"");
		if (err.rc == FW_EFORMAT && text.len &&
			!fw_discover(text.p, text.len, o.url, o.content_type, &feeds, NULL))
			cli_offer_feeds(c, &err, feeds);
		free(feeds);
	}
	fw_document_free(doc);
	fw_buf_finish(&text);
	return rc;
}

static const struct cli_option PARSE_OPTION[] = {
	{"content-type", "VALUE", "the document's Content-Type header"},
	{"url", "URL", "the document's URL, the base of relative URLs"},
	{"raw", NULL, "do not sanitize HTML"},
	{"json", NULL, "no effect: the output is always JSON"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_parse = {
	.name = "parse",
	.args = "FILE",
	.summary = "parse a feed document and print it as JSON Feed 1.1",
	.about = "- is standard input. Data without a JSON Feed member is in _feedwheel; so are the repairs "
		 "(problems).\n"
		 "Exit status 0: parsed, perhaps with repairs; 1: not a feed; 2: the file cannot be read.\n",
	.examples = "  feedwheel parse feed.xml\n  curl -s https://example.org/feed | feedwheel parse --url "
		    "https://example.org/feed -\n",
	.option = PARSE_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = parse_run,
};
