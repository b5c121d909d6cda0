/* SPDX-License-Identifier: ISC */
/* remove URL...: unsubscribe; the feed's entries go too. */
#include "cli/cli.h"
#include "base/banned.h"

static int remove_run(struct cli *c)
{
	struct fw_feed *feed = fw_arena_calloc(&c->arena, (size_t)c->arg_n, sizeof(*feed));
	struct fw_err err = {0};
	char n[FW_RFC3339_MAX];
	int rc;

	if (!feed)
		return cli_fail(c, CLI_SOME, "out of memory");
	rc = cli_store(c, 0);
	/* all are looked up before the first is removed */
	for (int i = 0; !rc && i < c->arg_n; i++)
		rc = cli_feed(c, c->arg[i], true, &feed[i]);
	if (rc)
		return rc;
	for (int i = 0; i < c->arg_n; i++) {
		rc = fw_store_unsubscribe(c->store, feed[i].id, &err);
		if (rc == FW_ENOTFOUND) /* named twice, or somebody else was faster: it is gone all the same */
			continue;
		if (rc)
			return cli_store_failed(c, &err);
		cli_out(c, "removed ");
		cli_out_safe(c, feed[i].url);
		cli_out(c, " and its %s\n", cli_count(n, feed[i].entry_n, "entry", "entries"));
	}
	return CLI_OK;
}

const struct cli_command cli_remove = {
	.name = "remove", .args = "URL...", .summary = "unsubscribe from feeds and forget their entries",
	.about = "A feed is named by its whole URL or its number (#12). To stop asking without forgetting: 'feedwheel pause'.\n",
	.examples = "  feedwheel remove https://example.org/feed.xml\n  feedwheel remove '#12'\n",
	.min_args = 1, .max_args = -1, .run = remove_run,
};
