/* SPDX-License-Identifier: ISC */
/* folders: the folders of the subscriptions in the order of a tree, with counts. */
#include "api/folder.h"
#include "cli/cli.h"

#define NEW_MS (7 * FW_DAY_MS)

static const struct cli_column FOLDERS_COLUMN[] = {
	{"FOLDER", .flex = true, .most = 60},
	{"FEEDS", .right = true},
	{"FAILING", .right = true},
	{"NEW IN 7 DAYS", .right = true, .spare = 1},
};

static void folders_row(struct cli_list *l, const struct fw_folder *f)
{
	char text[FW_RFC3339_MAX];

	cli_table_cell(&l->table, f->path.len ? CLI_BOLD : CLI_DIM, f->path.len ? f->path : FW_STR("(no folder)"));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(text, f->feed_n)));
	cli_table_cell(&l->table, f->failing_n ? CLI_RED : NULL, fw_str(cli_number(text, f->failing_n)));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(text, f->new_n)));
}

static int folders_run(struct cli *c)
{
	struct fw_folders folders;
	struct fw_err err = {0};
	struct cli_list l;
	int rc = cli_store(c, FW_STORE_READ);

	if (rc)
		return rc;
	if (fw_folders_read(c->store, &c->arena, c->now_ms - NEW_MS, &folders, &err))
		return cli_store_failed(c, &err);
	cli_list_begin(&l, c, FOLDERS_COLUMN, FW_N(FOLDERS_COLUMN));
	for (size_t i = 0; i < folders.n && !cli_out_failed(c); i++, l.n++) {
		if (l.as_json) {
			fw_folder_json(cli_list_item(&l), NULL, &folders.folder[i]);
			cli_list_item_end(&l);
		} else {
			folders_row(&l, &folders.folder[i]);
		}
	}
	cli_list_end(&l);
	if (!folders.n && !l.as_json)
		cli_note(c, "no feeds (to subscribe, run 'feedwheel add URL')");
	return CLI_OK;
}

static const struct cli_option FOLDERS_OPTION[] = {
	CLI_LIST_OPTIONS,
	{NULL, NULL, NULL},
};

const struct cli_command cli_folders = {
	.name = "folders",
	.args = "",
	.summary = "list the folders of the subscriptions",
	.about = "Counts of a folder include its subfolders.\n",
	.examples = "  feedwheel folders\n  feedwheel folders --json | jq '.[].folder'\n",
	.option = FOLDERS_OPTION,
	.run = folders_run,
};
