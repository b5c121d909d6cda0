/* SPDX-License-Identifier: ISC */
/* doctor: check everything that a run needs; print each problem with its remedy. */
#include "cli/cli.h"
#include "http/serve.h"

struct doctor {
	struct cli *c;
	struct cli_json json;
	bool as_json;
	int worst;
};

static void doctor_print(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	static const char *const WORD[] = {"ok", "note", "broken"}, *const STYLE[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
	struct doctor *d = ctx;
	struct cli *c = d->c;

	d->worst = FW_MAX(d->worst, level);
	if (d->as_json) {
		fw_json_object(&d->json.j, NULL);
		fw_json_cstr(&d->json.j, "check", name);
		fw_json_cstr(&d->json.j, "result", WORD[level]);
		fw_json_cstr(&d->json.j, "found", found);
		fw_json_cstr(&d->json.j, "remedy", remedy[0] ? remedy : NULL);
		fw_json_end(&d->json.j);
		return;
	}
	cli_paint(&c->out, c->term.out_colour, STYLE[level], fw_str(WORD[level]));
	cli_out(c, "%*s%-13s ", (int)(8 - strlen(WORD[level])), "", name);
	cli_out_safe(c, fw_str(found));
	cli_out(c, "\n");
	if (remedy[0]) {
		cli_out(c, "%22s", "-> ");
		cli_out_safe(c, fw_str(remedy));
		cli_out(c, "\n");
	}
	cli_out_wrap(c, 22);
}

static int doctor_run(struct cli *c)
{
	struct doctor d = {.c = c, .as_json = cli_flag(c, "json")};
	struct fw_err err = {0};
	int rc, level;

	if (d.as_json) {
		cli_json_begin(&d.json, true);
		fw_json_object(&d.json.j, NULL);
		fw_json_array(&d.json.j, "checks");
	}
	/* an invalid configuration is a finding too */
	rc = cli_config_read(c, &c->config, &err);
	if (rc) {
		doctor_print(&d, "configuration", 2, err.text,
			"correct that line ('feedwheel help settings' lists all settings)");
		level = 2;
	} else {
		level = fw_doctor(c->config, doctor_print, &d);
		level = FW_MAX(level, fw_serve_check(c->config, doctor_print, &d));
	}
	if (d.as_json) {
		fw_json_end(&d.json.j);
		fw_json_bool(&d.json.j, "ok", level < 2);
		fw_json_end(&d.json.j);
		cli_json_end(&d.json, c);
	}
	return rc ? CLI_CONFIG : level >= 2 ? CLI_SOME : CLI_OK;
}

static const struct cli_option DOCTOR_OPTION[] = {
	{"json", NULL, "print a JSON object with an array of checks"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_doctor = {
	.name = "doctor",
	.args = "",
	.summary = "check configuration, store, certificates and limits; name remedies",
	.about = "Exit status 0: ready to run, perhaps with notes; 1: something is broken; 4: the configuration is "
		 "invalid.\n",
	.examples = "  feedwheel doctor\n",
	.option = DOCTOR_OPTION,
	.flags = CLI_NO_CONFIG | CLI_ALL_SETTINGS,
	.run = doctor_run,
};
