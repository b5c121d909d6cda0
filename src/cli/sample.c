/* SPDX-License-Identifier: ISC */
/*
 * help --sample-config: print a configuration file from the table of settings. Every setting is in
 * a comment with its text and default.
 */
#include "cli/cli.h"

#define COLUMNS 94 /* of text after "# " */

/* Headings, and examples for settings whose default is empty. */
static const struct {
	const char *name, *heading, *example;
} MORE[] = {
	{"store", "Store and processes", "postgres:///feedwheel?host=/run/postgresql"},
	{"store_file", NULL, "/etc/feedwheel.store"},
	{"host_concurrency", "Limits per host, and the order of fetches", NULL},
	{"hosting_domains", NULL, "example.com blogs.example.org"},
	{"batch_visits", "Commits", NULL},
	{"interval_min_ms", "When feeds are polled", NULL},
	{"connect_timeout_ms", "Limits of one visit", NULL},
	{"allow_networks", "Network", "10.0.0.0/8, [fd00::]/8"},
	{"deny_networks", NULL, "198.51.100.0/24, [2001:db8::]/32"},
	{"dns_servers", NULL, "192.0.2.53, 192.0.2.54"},
	{"ca_file", NULL, "/etc/ssl/certs/ca-certificates.crt"},
	{"proxy", NULL, "http://10.0.0.1:3128"},
	{"user_agent", NULL, "\"example-reader/1.0 (+https://example.org/about-our-crawler)\""},
	{"contact_url", NULL, "https://example.org/about-our-crawler"},
	{"async_commit", "Disk and retention", NULL},
	{"listen", "HTTP server. Without tokens it serves programs on this machine only (feedwheel help token).",
		"unix:/run/feedwheel/http.sock"},
	{"trusted_proxies", NULL, "unix, 127.0.0.1, 10.0.0.0/8"},
	{"tls_cert", NULL, "/etc/ssl/feeds.example.org.pem"},
	{"tls_key", NULL, "/etc/ssl/private/feeds.example.org.key"},
	{"access_log", NULL, "/var/log/feedwheel/access.log"},
	{"push_properties", NULL, "news, blog"},
	{"serve_cors_origin", NULL, "https://example.org"},
	{"serve_host_names", NULL, "feeds.lan"},
	{"websub_url", "WebSub: hubs push new entries", "https://feeds.example.org/"},
	{"feeds_hub_url", NULL, "https://hub.example.org/"},
	{"ring_bytes", "Buffering of pushes", NULL},
	{"wal_dir", NULL, "/var/lib/feedwheel/wal"},
	{"order_commands", "Sandbox, and what may leave it", NULL},
	{"order_programs", NULL, "/usr/local/bin/fw-notify, /usr/bin/logger -t feeds, /usr/local/lib/feeds/"},
	{"order_files", NULL, "/var/spool/fw/"},
	{"log_level", "Log", NULL},
};

static const char *const HEAD =
	"# SPDX-License-Identifier: ISC\n"
	"# /etc/feedwheel.conf: settings of feedwheel. feedwheel.conf(5) explains each setting.\n"
	"#\n"
	"# A line is \"name = value\". Each line below shows a default, or an example (\"e.g.\") where the default\n"
	"# is empty. Remove the \"#\" in front of a name to change the setting, then run:\n"
	"# systemctl reload feedwheel\n"
	"#\n"
	"# All users of this machine read this file. ~/.config/feedwheel.conf replaces it for its user.\n"
	"# Make the file private before you write a password into it: chgrp feedwheel, chmod 640.\n"
	"#\n"
	"# If store is not set, each user has a store of their own. The service's store is\n"
	"# /var/lib/feedwheel/.local/share/feedwheel/feedwheel.db\n";

static void sample_comment(struct cli *c, const char *text)
{
	struct fw_buf lines = FW_BUF_INIT(0);
	struct fw_str rest;

	cli_wrap(&lines, fw_str(text), COLUMNS, 0);
	rest = fw_buf_str(&lines);
	while (rest.p) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);

		cli_out(c, "# %.*s\n", FW_STR_ARG(line));
	}
	fw_buf_finish(&lines);
}

void cli_sample(struct cli *c)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	cli_out(c, "%s", HEAD);
	for (size_t i = 0; i < n; i++) {
		const char *heading = NULL, *example = NULL;

		for (size_t k = 0; k < FW_N(MORE); k++) {
			if (strcmp(MORE[k].name, s[i].name) == 0) {
				heading = MORE[k].heading;
				example = MORE[k].example;
			}
		}
		if (heading)
			cli_out(c, "\n# ---- %s\n", heading);
		cli_out(c, "\n");
		sample_comment(c, s[i].text);
		if (!s[i].initial[0] && example)
			cli_out(c, "# e.g.\n");
		cli_out(c, "#%s = %s\n", s[i].name, s[i].initial[0] || !example ? s[i].initial : example);
	}
}
