/* SPDX-License-Identifier: ISC */
/* remove FEED...: unsubscribe and delete the feeds' entries. */
#include "cli/cli.h"

static void remove_print(struct cli_list *l, const struct fw_feed *f)
{
	char n[FW_RFC3339_MAX];

	if (l->as_json) {
		struct fw_json *j = cli_list_item(l);

		fw_json_object(j, NULL);
		fw_json_int(j, "id", f->id);
		fw_json_str(j, "url", f->url);
		fw_json_int(j, "entries", f->entry_n);
		fw_json_end(j);
		cli_list_item_end(l);
		return;
	}
	cli_out(l->c, "removed ");
	cli_out_safe(l->c, f->url);
	cli_out(l->c, " and its %s\n", cli_count(n, f->entry_n, "entry", "entries"));
}

static int remove_run(struct cli *c)
{
	struct fw_feed *feed;
	struct fw_err err = {0};
	struct cli_list l;
	int rc = cli_feeds(c, true, &feed);

	if (rc)
		return rc;
	cli_list_begin(&l, c, NULL, 0);
	for (int i = 0; i < c->arg_n; i++) {
		rc = fw_store_unsubscribe(c->store, feed[i].id, &err);
		if (rc == FW_ENOTFOUND) /* named twice, or removed by another process meanwhile */
			continue;
		if (rc)
			break;
		remove_print(&l, &feed[i]);
	}
	cli_list_end(&l);
	return rc && rc != FW_ENOTFOUND ? cli_store_failed(c, &err) : CLI_OK;
}

static const struct cli_option REMOVE_OPTION[] = {
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_remove = {
	.name = "remove",
	.args = "FEED...",
	.summary = "unsubscribe from feeds and delete their entries",
	.about = "FEED is a feed's number (12) or its whole URL. To stop polling but keep the entries: 'feedwheel "
		 "pause'.\n",
	.examples = "  feedwheel remove https://example.org/feed.xml\n  feedwheel remove 12\n",
	.option = REMOVE_OPTION,
	.min_args = 1,
	.max_args = -1,
	.flags = CLI_EXACT_FEED,
	.run = remove_run,
};
