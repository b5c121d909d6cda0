/* SPDX-License-Identifier: ISC */
/*
 * All commands, in the order of the help. A new command needs its file, a line here, a line in
 * meson.build and a paragraph in feedwheel(1).
 */
#include "cli/cli.h"

extern const struct cli_command cli_add, cli_import, cli_export, cli_remove, cli_set_command, cli_pause, cli_resume,
	cli_list, cli_folders, cli_show, cli_why, cli_timeline, cli_entries, cli_changes_command, cli_read_command,
	cli_events, cli_fetch, cli_fetch_now, cli_parse, cli_push, cli_copy, cli_run, cli_plan, cli_serve, cli_stop,
	cli_status, cli_order, cli_token, cli_user, cli_websub, cli_doctor, cli_version, cli_help;

const struct cli_command *const cli_commands[] = {&cli_add, &cli_import, &cli_export, &cli_remove, &cli_set_command,
	&cli_pause, &cli_resume, &cli_list, &cli_folders, &cli_show, &cli_why, &cli_timeline, &cli_entries,
	&cli_changes_command, &cli_read_command, &cli_events, &cli_fetch, &cli_parse, &cli_push, &cli_run, &cli_plan,
	&cli_serve, &cli_order, &cli_token, &cli_user, &cli_websub, &cli_fetch_now, &cli_stop, &cli_status, &cli_doctor,
	&cli_copy, &cli_version, &cli_help, NULL};
