/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "feedwheel/serve.h"
#include "base/banned.h"

static int version_run(struct cli *c)
{
	const char *server = fw_serve_library();
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return cli_fail(c, CLI_SOME, "%s", strerror(errno));
	fw_library_versions(f);
	if (fclose(f) == 0)
		cli_out(c, "feedwheel %s\n%sserver: %s\n", fw_version(), text, server ? server : "not built in");
	free(text);
	return CLI_OK;
}

const struct cli_command cli_version = {
	.name = "version", .args = "", .summary = "versions of feedwheel and the libraries in use",
	.examples = "  feedwheel version\n", .flags = CLI_NO_CONFIG, .run = version_run,
};
