/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/err.h"
#include "engine/runner_rules.h"

struct runner_rules runner_rules_of(const struct fw_config *c)
{
	if (strcmp(c->order_commands, "none") == 0)
		return (struct runner_rules){NULL, NULL};
	return (struct runner_rules){c->order_programs, c->order_files};
}

bool runner_rules_any(const struct runner_rules *r)
{
	return r->programs || r->files;
}

static bool rule_list_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

bool runner_rules_equal(const struct runner_rules *a, const struct runner_rules *b)
{
	return rule_list_equal(a->programs, b->programs) && rule_list_equal(a->files, b->files);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Absolute, without empty parts, "." and "..", and without controls; a folder ends with a slash. */
static bool path_is_plain(struct fw_str path)
{
	struct fw_str rest;

	if (!fw_str_starts(path, FW_STR("/")))
		return false;
	for (size_t i = 0; i < path.len; i++) {
		if ((unsigned char)path.p[i] < ' ' || path.p[i] == 0x7f)
			return false;
	}
	rest = fw_str_sub(path, 1, path.len);
	while (rest.p) {
		struct fw_str part = fw_str_split(rest, '/', &rest);

		if ((!part.len && rest.p) || fw_str_eq(part, FW_STR(".")) || fw_str_eq(part, FW_STR("..")))
			return false;
	}
	return true;
}

static bool path_is_folder(struct fw_str path)
{
	return fw_str_ends(path, FW_STR("/"));
}

/* The next word of a command; absent: no more. */
static struct fw_str word_next(struct fw_str *rest)
{
	struct fw_str word = FW_STR_NONE;

	while (rest->p && !word.len)
		word = fw_str_split(*rest, ' ', rest);
	return word.len ? word : FW_STR_NONE;
}

/* ---- what is allowed ------------------------------------------------------------------------- */

static bool rule_allows_command(struct fw_str rule, struct fw_str command)
{
	struct fw_str program = word_next(&command), path = word_next(&rule);

	if (path_is_folder(path) && fw_str_starts(program, path))
		return !word_next(&command).p && program.len > path.len &&
			!memchr(program.p + path.len, '/', program.len - path.len);
	while (path.p && program.p && fw_str_eq(path, program)) {
		path = word_next(&rule);
		program = word_next(&command);
	}
	return !path.p && !program.p;
}

bool runner_may_run(const struct runner_rules *r, struct fw_str command)
{
	struct fw_str rest = fw_str(r->programs), words = command;

	if (!path_is_plain(word_next(&words)))
		return false;
	while (rest.p) {
		if (rule_allows_command(fw_str_trim(fw_str_split(rest, ',', &rest)), command))
			return true;
	}
	return false;
}

bool runner_may_write(const struct runner_rules *r, struct fw_str path, size_t *trusted_n)
{
	struct fw_str rest = fw_str(r->files);

	if (!path_is_plain(path) || path_is_folder(path))
		return false;
	while (rest.p) {
		struct fw_str rule = fw_str_trim(fw_str_split(rest, ',', &rest));

		*trusted_n = rule.len;
		if (path_is_folder(rule) && fw_str_starts(path, rule))
			return true;
		if (!fw_str_eq(path, rule))
			continue;
		while (path.p[*trusted_n - 1] != '/')
			--*trusted_n;
		return true;
	}
	return false;
}

int runner_list_check(const char *list, bool programs, struct fw_err *err)
{
	const char *name = programs ? "order_programs" : "order_files";
	struct fw_str rest = fw_str(list);

	while (rest.p) {
		struct fw_str rule = fw_str_trim(fw_str_split(rest, ',', &rest)), words = rule,
			      path = programs ? word_next(&words) : rule;

		if (!path_is_plain(path))
			return fw_err_set(err, FW_EINVAL,
				"%s: '%.*s' is not an absolute path without '.' and '..': write %s, and separate "
				"them by commas",
				name, FW_STR_ARG(fw_str_sub(rule, 0, 80)),
				programs ? "/usr/local/bin/x, or a folder as /usr/local/lib/x/" :
					   "/var/spool/x, or a folder as /var/spool/x/");
		if (programs && path_is_folder(path) && word_next(&words).p)
			return fw_err_set(err, FW_EINVAL,
				"%s: '%.*s' is a folder with words: name each program that takes words", name,
				FW_STR_ARG(fw_str_sub(rule, 0, 80)));
	}
	return 0;
}
