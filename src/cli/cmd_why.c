/* SPDX-License-Identifier: ISC */
/* why URL: when the feed is asked next, and for which reasons. */
#include "cli/cli.h"
#include "base/banned.h"

static const char *not_asked(const struct fw_feed *f)
{
	switch (f->status) {
	case FW_FEED_PAUSED: return "it is paused: 'feedwheel resume' asks it again";
	case FW_FEED_GONE: return "it has ended (410 or expired) and is not asked: 'feedwheel resume' asks it again";
	case FW_FEED_QUARANTINED: return "its visits killed a worker, so it is set aside: 'feedwheel resume' tries again";
	default: return NULL;
	}
}

static int why_json(struct cli *c, const struct fw_feed *f)
{
	struct cli_json w;

	cli_json_begin(&w, true);
	fw_json_object(&w.j, NULL);
	fw_json_int(&w.j, "id", f->id);
	fw_json_str(&w.j, "url", f->url);
	fw_json_cstr(&w.j, "status", fw_feed_status_name(f->status));
	fw_json_time(&w.j, "due", f->due_at_ms);
	fw_json_str(&w.j, "why", f->why);
	fw_json_int(&w.j, "failures", f->fail_n);
	fw_json_end(&w.j);
	cli_json_end(&w, c);
	return CLI_OK;
}

static int why_run(struct cli *c)
{
	char stamp[FW_RFC3339_MAX], ago[FW_RFC3339_MAX];
	const char *remedy;
	struct fw_feed f = {0};
	int rc = cli_store(c, FW_STORE_READ);

	if (!rc)
		rc = cli_feed(c, c->arg[0], false, &f);
	if (rc)
		return rc;
	if (cli_flag(c, "json"))
		return why_json(c, &f);
	cli_out_safe(c, f.url);
	if (not_asked(&f)) {
		cli_out(c, "\n  %s\n", not_asked(&f));
		return CLI_OK;
	}
	if (f.due_at_ms <= FW_DUE_FIRST)
		cli_out(c, "\n  due now, before all others: somebody asked for it\n");
	else if (f.due_at_ms <= c->now_ms)
		cli_out(c, "\n  due now (since %s)\n", cli_stamp(stamp, f.due_at_ms));
	else
		cli_out(c, "\n  due %s (%s)\n", cli_ago(c, ago, f.due_at_ms), cli_stamp(stamp, f.due_at_ms));
	cli_out(c, "  because: ");
	cli_out_safe(c, f.why.len ? f.why : FW_STR("it is new and was never visited"));
	cli_out(c, "\n");
	if (f.fail_n) {
		cli_out(c, f.fail_n == 1 ? "  failed once: " : "  failed %u times in a row, lastly: ", f.fail_n);
		cli_out_safe(c, cli_feed_error(&f));
		cli_out(c, "\n");
		remedy = cli_feed_remedy(c, &f);
		if (*remedy) {
			cli_out(c, "  remedy: ");
			cli_out_safe(c, fw_str(remedy));
			cli_out(c, "\n");
		}
	}
	return CLI_OK;
}

static const struct cli_option OPTION[] = {
	{"json", NULL, "an object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_why = {
	.name = "why", .args = "URL", .summary = "say when a feed is asked next, and why then",
	.examples = "  feedwheel why https://example.org/feed.xml\n",
	.option = OPTION, .min_args = 1, .max_args = 1, .run = why_run,
};
