/* SPDX-License-Identifier: ISC */
/*
 * fetch URL: fetch one document with all limits and the address guard; print it as JSON Feed 1.1;
 * store nothing.
 */
#include "base/url.h"
#include "cli/cli.h"

static void fetch_print_timings(struct cli *c, const struct fw_response *a)
{
	const struct fw_visit *v = &a->visit;
	char wire[FW_RFC3339_MAX], body[FW_RFC3339_MAX], redirects[FW_RFC3339_MAX];

	cli_note(c,
		"%s, status %d, %s, %s (%s decoded); ms: dns %.1f, connect %.1f, tls %.1f, first byte %.1f, "
		"total %.1f",
		fw_visit_kind_name(a->kind), v->http_status,
		cli_count(redirects, v->redirects, "redirect", "redirects"), cli_bytes(wire, v->wire_bytes),
		cli_bytes(body, v->body_bytes), (double)v->dns_us / 1e3, (double)v->connect_us / 1e3,
		(double)v->tls_us / 1e3, (double)v->first_byte_us / 1e3, (double)v->total_us / 1e3);
}

static int fetch_print_document(struct cli *c, const struct fw_response *a, struct fw_str url)
{
	if (!a->doc) {
		(void)cli_fail(c, CLI_SOME, "%.*s: %s", FW_STR_ARG(url), a->err.text);
		cli_server_text(c, a->words);
		cli_offer_feeds(c, &a->err, a->feeds);
		return CLI_SOME;
	}
	return cli_document_print(c, a->doc);
}

/*
 * Is the URL subscribed, with a validator (ETag, Last-Modified)? Then an unconditional fetch needs
 * --whole: the feed's visits send conditional requests (FRB 071). A store that cannot be opened
 * does not prevent the fetch.
 */
static bool fetch_is_subscribed(struct cli *c, struct fw_str url)
{
	struct fw_store *st = NULL;
	struct fw_feed f;
	struct fw_err err = {0};
	bool is;

	if (fw_config_store(c->config, FW_STORE_READ, &st, &err))
		return false;
	is = !fw_store_feed_find(st, 0, url, &c->arena, &f, &err) && f.etag.len + f.last_modified.len;
	fw_store_close(st);
	return is;
}

static int fetch_run(struct cli *c)
{
	struct fw_str url, user, pass;
	struct fw_response a = {0};
	struct fw_err err = {0};
	int rc;

	if (fw_url_clean(&c->arena, fw_str(c->arg[0]), &url, &user, &pass, &err))
		return cli_usage(c, "%s: %s", cli_url_show(c, c->arg[0]), err.text);
	if (!cli_flag(c, "whole") && fetch_is_subscribed(c, url))
		return cli_fail(c, CLI_SOME,
			"%.*s: the feed is subscribed (to poll it, run 'feedwheel fetch-now'; to fetch all of it here, "
			"give --whole)",
			FW_STR_ARG(url));
	rc = fw_fetch_url(c->config, url, user, pass, &a, &err);
	if (rc)
		return cli_fail(c, rc == FW_EINVAL ? CLI_CONFIG : CLI_SOME, "%.*s: %s", FW_STR_ARG(url), err.text);
	if (cli_flag(c, "timings"))
		fetch_print_timings(c, &a);
	rc = fetch_print_document(c, &a, url);
	fw_response_free(&a);
	return rc;
}

static const struct cli_option FETCH_OPTION[] = {
	{"raw", NULL, "do not sanitize HTML"},
	{"whole", NULL, "fetch also a subscribed feed, without a conditional request"},
	{"timings", NULL, "print timings on stderr"},
	{"json", NULL, "no effect: the output is always JSON"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_fetch = {
	.name = "fetch",
	.args = "URL",
	.summary = "fetch one feed and print it as JSON Feed 1.1; store nothing",
	.about = "Exit status 0: it is a feed; 1: it is not. stderr then has the reason and, for a web page, the feeds "
		 "it advertises.\n",
	.examples = "  feedwheel fetch https://example.org/feed.xml\n  feedwheel fetch --timings example.org\n"
		    "  feedwheel fetch --allow-networks 127.0.0.0/8 http://localhost:8080/feed\n",
	.option = FETCH_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = fetch_run,
};
