/* SPDX-License-Identifier: ISC */
/* version: print the versions of feedwheel and its libraries, and which stores are built in. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "http/serve.h"

/*
 * Split a line such as "libcurl/7.88.1 OpenSSL/3.0.19 ..., c-ares 1.18.1, ..." into array elements.
 */
static void libraries_json(struct fw_json *j, struct fw_str line)
{
	while (line.len) {
		const char *end = fw_str_find(line, FW_STR(", "));
		struct fw_str one = fw_str_sub(line, 0, end ? (size_t)(end - line.p) : line.len);

		fw_json_str(j, NULL, one);
		line = fw_str_sub(line, one.len + (end ? 2 : 0), line.len);
	}
}

/* text: a line with the libraries, then lines for other parts that start with a label. */
static void version_json(struct cli *c, struct fw_str text, const char *server)
{
	const char *name;
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_cstr(&w.j, "version", fw_version());
	fw_json_array(&w.j, "libraries");
	libraries_json(&w.j, fw_str_split(text, '\n', &text));
	while (text.p) {
		struct fw_str line = fw_str_split(text, '\n', &text), library,
			      label = fw_str_split(line, ' ', &library);

		if ((fw_str_eq(label, FW_STR("seccomp:")) || fw_str_eq(label, FW_STR("amqp:"))) &&
			!fw_str_eq(library, FW_STR("not built in")))
			fw_json_str(&w.j, NULL, library);
	}
	fw_json_cstr(&w.j, NULL, server);
	fw_json_end(&w.j);
	fw_json_array(&w.j, "stores");
	for (size_t i = 0; (name = fw_store_driver_at(i)); i++)
		fw_json_cstr(&w.j, NULL, name);
	fw_json_end(&w.j);
	fw_json_array(&w.j, "stores_absent");
	for (size_t i = 0; (name = fw_store_absent_at(i)); i++)
		fw_json_cstr(&w.j, NULL, name);
	fw_json_end(&w.j);
	fw_json_bool(&w.j, "server", server != NULL);
	cli_json_object_end(&w, c);
}

static int version_run(struct cli *c)
{
	const char *server = fw_serve_library();
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return cli_fail(c, CLI_SOME, "%s", strerror(errno));
	fw_library_versions(f);
	if (fclose(f) == 0 && cli_flag(c, "json"))
		version_json(c, fw_str(text), server);
	else if (text)
		cli_out(c, "feedwheel %s\n%sserver: %s\n", fw_version(), text, server ? server : "not built in");
	free(text);
	return CLI_OK;
}

static const struct cli_option VERSION_OPTION[] = {
	{"json", NULL, "print a JSON object"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_version = {
	.name = "version",
	.args = "",
	.summary = "show the versions of feedwheel and its libraries",
	.examples = "  feedwheel version\n",
	.option = VERSION_OPTION,
	.flags = CLI_NO_CONFIG,
	.run = version_run,
};
