/* SPDX-License-Identifier: ISC */
/*
 * What orders may do on this machine. The store says what an order wants, and a worker may write to
 * the store; the authority is the configuration, which no worker writes: settings order_programs
 * and order_files, lists with commas. The master gives them to the runner, which looks at each job.
 *
 *	/usr/bin/logger -t feeds	this program with these words, and no others
 *	/usr/local/lib/feeds/		each program in this folder, without words
 *
 *	/var/spool/all.ndjson		this file
 *	/var/spool/feeds/		each file in this folder and below; no link leads out of it
 */
#ifndef FW_ENGINE_RUNNER_RULES_H
#define FW_ENGINE_RUNNER_RULES_H

#include "base/str.h"
#include "feedwheel/engine.h"

struct runner_rules {
	const char *programs, *files; /* the settings; NULL: none */
};

/* Those of these settings: none of either with order_commands = none. */
struct runner_rules runner_rules_of(const struct fw_config *c);
bool runner_rules_any(const struct runner_rules *r);
bool runner_rules_equal(const struct runner_rules *a, const struct runner_rules *b);

/* command: the program and its words, separated by spaces. */
bool runner_may_run(const struct runner_rules *r, struct fw_str command);
/*
 * *trusted_n: how many bytes of the path the configuration names, at least up to the last slash
 * before the file; no link is followed after them.
 */
bool runner_may_write(const struct runner_rules *r, struct fw_str path, size_t *trusted_n);

/*
 * Check a list. programs: it is order_programs. FW_EINVAL names the entry and the remedy.
 */
FW_MUST_CHECK int runner_list_check(const char *list, bool programs, struct fw_err *err);

#endif
