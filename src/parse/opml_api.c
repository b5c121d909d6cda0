/* SPDX-License-Identifier: ISC */
#include "parse/parse.h"

int fw_opml_read(const void *bytes, size_t len, fw_opml_cb *cb, fw_opml_problem_cb *problem, void *ctx, struct fw_err *err)
{
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_opml_parse(&a, (struct fw_str){bytes, len}, cb, problem, ctx, err);
	fw_arena_finish(&a);
	return rc;
}
