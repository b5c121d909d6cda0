/* SPDX-License-Identifier: ISC */
/* fetch URL: one shot with all limits and the address guard; JSON Feed 1.1 on stdout, nothing stored. */
#include "base/url.h"
#include "cli/cli.h"
#include "base/banned.h"

static void timings_print(struct cli *c, const struct fw_answer *a)
{
	const struct fw_visit *v = &a->visit;
	char wire[FW_RFC3339_MAX], body[FW_RFC3339_MAX], hops[FW_RFC3339_MAX];

	cli_note(c, "%s, status %d, %s, %s (%s decoded); ms: dns %.1f, connect %.1f, tls %.1f, first byte %.1f, "
		"total %.1f", fw_visit_kind_name(a->kind), v->http_status, cli_count(hops, v->hops, "redirect", "redirects"), cli_bytes(wire, v->wire_bytes),
		cli_bytes(body, v->body_bytes), (double)v->dns_us / 1e3, (double)v->connect_us / 1e3, (double)v->tls_us / 1e3,
		(double)v->first_byte_us / 1e3, (double)v->total_us / 1e3);
}

static int answer_print(struct cli *c, const struct fw_answer *a, struct fw_str url)
{
	if (!a->doc) {
		(void)cli_fail(c, CLI_SOME, "%.*s: %s", FW_STR_ARG(url), a->err.text);
		cli_server_words(c, a->words);
		cli_offer_feeds(c, &a->err, a->feeds);
		return CLI_SOME;
	}
	return cli_document_print(c, a->doc);
}

/*
 * A feed that is subscribed is asked whole only when that is meant: its own visits ask whether it has changed (FRB 071). A store that cannot
 * be opened has no say in it.
 */
static bool subscribed(struct cli *c, struct fw_str url)
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
	struct fw_answer a = {0};
	struct fw_err err = {0};
	int rc;

	if (fw_url_clean(&c->arena, fw_str(c->arg[0]), &url, &user, &pass, &err))
		return cli_usage(c, "%s: %s", cli_shown(c, c->arg[0]), err.text);
	if (!cli_flag(c, "whole") && subscribed(c, url))
		return cli_fail(c, CLI_SOME, "%.*s: it is subscribed, so 'feedwheel fetch-now' asks whether it has changed; --whole fetches all of it "
			"all the same", FW_STR_ARG(url));
	rc = fw_fetch_url(c->config, url, user, pass, &a, &err);
	if (rc)
		return cli_fail(c, rc == FW_EINVAL ? CLI_CONFIG : CLI_SOME, "%.*s: %s", FW_STR_ARG(url), err.text);
	if (cli_flag(c, "timings"))
		timings_print(c, &a);
	rc = answer_print(c, &a, url);
	fw_answer_free(&a);
	return rc;
}

static const struct cli_option OPTION[] = {
	{"raw", NULL, "leave HTML as it is in the document"},
	{"whole", NULL, "also a feed that is subscribed, which its server may not like"},
	{"timings", NULL, "say on stderr what took how long"},
	{"json", NULL, "the same: it is JSON anyway"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_fetch = {
	.name = "fetch", .args = "URL", .summary = "fetch one feed now and print it as JSON Feed 1.1; stores nothing",
	.about = "Exit 0 when a feed was read, 1 when not: the reason is on stderr, and for a web page the feeds it names.\n",
	.examples = "  feedwheel fetch https://example.org/feed.xml\n  feedwheel fetch --timings example.org\n"
		"  feedwheel fetch --allow-networks 127.0.0.0/8 http://localhost:8080/feed\n",
	.option = OPTION, .min_args = 1, .max_args = 1, .run = fetch_run,
};
