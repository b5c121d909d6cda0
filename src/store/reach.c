/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/url.h"
#include "store/driver.h"
#include "store/dsn.h"
#include "store/reach.h"

/* What the client libraries read even if the URL does not name it. */
static const struct reach_server {
	const char *schemes[4];
	unsigned port;
	const char *host_env, *port_env;
	const char *file_env[8]; /* variables that name files */
	const char *home[3];     /* below $HOME */
	const char *else_env[3]; /* if one is set, a file names the server */
	bool cluster;            /* a cluster: its nodes announce ports */
} REACH_SERVERS[] = {
	{{FW_STORE_POSTGRES_SCHEMES}, 5432, "PGHOST", "PGPORT",
		{"PGPASSFILE", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL", "PGSSLCRLDIR"},
		{".pgpass", ".postgresql"}, {"PGSERVICE", "PGSERVICEFILE"}, false},
	{{FW_STORE_MYSQL_SCHEMES}, 3306, NULL, "MYSQL_TCP_PORT", {NULL}, {NULL}, {NULL}, false},
	{{FW_STORE_REDIS_SCHEMES}, 6379, NULL, NULL, {NULL}, {NULL}, {NULL}, true},
};

static const struct reach_server *reach_server_find(struct fw_str scheme)
{
	for (size_t i = 0; i < FW_N(REACH_SERVERS); i++) {
		for (const char *const *s = REACH_SERVERS[i].schemes; *s; s++) {
			if (fw_str_eq(scheme, fw_str(*s)))
				return &REACH_SERVERS[i];
		}
	}
	return NULL;
}

static void reach_file_add(struct fw_store_reach *r, const char *path)
{
	if (path && *path && r->file_n < FW_N(r->file))
		r->file[r->file_n++] = path;
}

static void reach_port_add(struct fw_store_reach *r, int port)
{
	assert(port > 0 && port < 65536);
	if (r->port_n < FW_N(r->port))
		r->port[r->port_n++] = (unsigned)port;
	else
		r->any_port = true;
}

/*
 * Add the ports of a list separated by commas; an empty one is the default. The driver refuses bad
 * ones.
 */
static void reach_ports_add(struct fw_store_reach *r, const struct reach_server *k, struct fw_str list)
{
	int v;

	while (list.p) {
		struct fw_str one = fw_str_trim(fw_str_split(list, ',', &list));

		if (!one.len || fw_port_parse(one, &v))
			reach_port_add(r, one.len ? v : (int)k->port);
	}
}

/* Hosts are names, addresses or socket folders, separated by commas. */
static void reach_hosts_add(struct fw_store_reach *r, struct fw_arena *a, struct fw_str list)
{
	unsigned char address[16];

	while (list.p) {
		struct fw_str one = fw_arena_str(a, fw_str_trim(fw_str_split(list, ',', &list)));

		r->no_file |= fw_str_starts(one, FW_STR("@"));
		if (one.len && one.p[0] != '/' && one.p[0] != '@' && inet_pton(AF_INET, one.p, address) != 1 &&
			inet_pton(AF_INET6, one.p, address) != 1)
			r->by_name = true;
	}
}

/* SQLite creates its journals beside the file itself, not beside a link to it. */
static void reach_file_store(struct fw_arena *a, const char *path, struct fw_store_reach *r)
{
	char real[PATH_MAX];
	const char *at = realpath(path, real) ? real : path, *slash = strrchr(at, '/');

	r->itself = fw_arena_dup(a, at, strlen(at));
	r->folder = !slash ? "." : fw_arena_dup(a, at, slash == at ? 1 : (size_t)(slash - at));
}

static void reach_server_store(
	struct fw_arena *a, const struct reach_server *k, const struct fw_dsn *d, struct fw_store_reach *r)
{
	const char *home = getenv("HOME");
	struct stat st;

	if (fw_str_eq(d->scheme, FW_STR("redis+unix")) && d->path.p)
		r->itself = fw_arena_printf(a, "/%s", d->path.p);
	r->any_port = k->cluster || fw_dsn_option(d, "service").p || fw_dsn_option(d, "servicefile").p;
	reach_hosts_add(r, a, d->host);
	reach_hosts_add(r, a, fw_dsn_option(d, "host"));
	if (k->host_env && getenv(k->host_env))
		reach_hosts_add(r, a, fw_str(getenv(k->host_env)));
	if (d->port)
		reach_port_add(r, d->port);
	reach_ports_add(r, k, fw_dsn_option(d, "port"));
	if (!r->port_n && k->port_env && getenv(k->port_env))
		reach_ports_add(r, k, fw_str(getenv(k->port_env)));
	if (!r->port_n)
		reach_port_add(r, k->port);
	/* an option whose value is an existing file or folder: the driver reads it */
	for (size_t i = 0; i < d->option_n; i++) {
		if (stat(d->option[i].value.p, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
			reach_file_add(r, d->option[i].value.p);
	}
	for (size_t i = 0; k->file_env[i]; i++)
		reach_file_add(r, getenv(k->file_env[i]));
	for (size_t i = 0; k->home[i] && home; i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		fw_buf_addf(&b, "%s/%s", home, k->home[i]);
		reach_file_add(r, b.rc ? NULL : fw_arena_dup(a, b.p, b.len));
		fw_buf_finish(&b);
	}
	for (size_t i = 0; k->else_env[i]; i++)
		r->any_port |= getenv(k->else_env[i]) != NULL;
	if (!d->user.len)
		reach_file_add(r, "/etc/passwd"); /* the default user name is that of the process */
}

void fw_store_reach(struct fw_arena *a, const char *url, struct fw_store_reach *out)
{
	struct fw_str rest, scheme = fw_str_split(fw_str(url), ':', &rest);
	const struct reach_server *k = reach_server_find(scheme);
	struct fw_dsn d;

	*out = (struct fw_store_reach){0};
	if (fw_str_eq(scheme, FW_STR("sqlite")))
		reach_file_store(a, fw_store_url_rest(url).p, out);
	else if (k && !fw_dsn_split(a, FW_DSN_STORE, url, &d, NULL))
		reach_server_store(a, k, &d, out);
}
