/* SPDX-License-Identifier: ISC */
/* Errors in queries: the reason, and the query with a caret below the place. */
#include "base/utf8.h"
#include "cli/cli.h"

#define SHOWN_MAX 200 /* bytes of a query that are shown */

/* The place that "at 7: ..." names, in characters from 1, and the words behind it; 0: none. */
static int64_t query_error_place(struct fw_str text, struct fw_str *reason)
{
	struct fw_str number = fw_str_split(text, ':', reason);
	int64_t at = 0;

	if (!fw_str_starts(number, FW_STR("at ")) || !fw_str_int(fw_str_sub(number, 3, number.len), &at))
		return 0;
	*reason = fw_str_trim(*reason);
	return at;
}

/* The width of the first n characters, in columns. */
static size_t query_error_column(struct fw_str query, int64_t n)
{
	size_t at = 0, len;

	for (; n > 0 && at < query.len; n--, at += len)
		(void)fw_utf8_get(query.p + at, query.len - at, &len);
	return fw_utf8_width(query.p, at);
}

int cli_query_wrong(struct cli *c, const char *what, struct fw_str query, const struct fw_err *err)
{
	struct fw_str text = fw_str(err->text), reason;
	int64_t at;

	if (fw_str_starts(text, FW_STR("query, ")))
		text = fw_str_sub(text, strlen("query, "), text.len);
	at = query_error_place(text, &reason);
	if (!at)
		return cli_usage(c, "%s: %.*s", what, FW_STR_ARG(text));
	(void)cli_fail(c, CLI_USAGE, "%s: %s: %.*s", c->command->name, what, FW_STR_ARG(reason));
	if (query.len <= SHOWN_MAX && !fw_str_find(query, FW_STR("\n"))) {
		cli_note(c, "  %.*s", FW_STR_ARG(query));
		cli_note(c, "  %*s^", (int)query_error_column(query, at - 1), "");
	}
	return CLI_USAGE;
}
