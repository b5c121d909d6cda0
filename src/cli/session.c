/* SPDX-License-Identifier: ISC */
/*
 * What commands work with: the configuration, the store, the feed that an argument names, a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/url.h"
#include "cli/cli.h"

#define READ_BYTES ((size_t)64 << 10)

/* ---- configuration --------------------------------------------------------------------------- */

static void log_setup(const struct cli *c)
{
	fw_log_setup(fw_log_level_of(c->config->log_level), c->config->log_json, "feedwheel");
}

int cli_config_read(const struct cli *c, struct fw_config **out, struct fw_err *err)
{
	const char *store = getenv("FEEDWHEEL_STORE");
	struct fw_config *made;
	int rc = fw_config_create(&made, err);

	if (rc)
		return rc;
	rc = fw_config_load(made, c->config_path, err);
	if (!rc && store && store[0])
		rc = fw_config_set(made, "store", store, "FEEDWHEEL_STORE", err);
	for (size_t i = 0; !rc && i < c->set_n; i++)
		rc = fw_config_set(made, c->set[i].setting->name, c->set[i].value, "command line", err);
	if (!rc && c->verbose)
		rc = fw_config_set(made, "log_level", "debug", "--verbose", err);
	if (!rc)
		rc = fw_config_check(made, err);
	if (rc)
		fw_config_destroy(made);
	else
		*out = made;
	return rc;
}

int cli_config(struct cli *c)
{
	struct fw_err err = {0};

	if (cli_config_read(c, &c->config, &err))
		return cli_fail(c, CLI_CONFIG, "%s", err.text);
	log_setup(c);
	return 0;
}

/* ---- store ----------------------------------------------------------------------------------- */

int cli_store_folder(struct cli *c, struct fw_err *err)
{
	struct fw_config *plain;
	char *path, *slash;
	int rc = fw_config_create(&plain, err);

	if (rc)
		return rc;
	if (!plain->store || !c->config->store || strcmp(plain->store, c->config->store) != 0) {
		fw_config_destroy(plain);
		return 0;
	}
	path = plain->store + strlen("sqlite:");
	for (slash = strchr(path + 1, '/'); !rc && slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			rc = fw_err_set(err, FW_EIO,
				"%s: cannot create the directory: %s (to use another store, give --store sqlite:PATH)",
				path, strerror(errno));
		*slash = '/';
	}
	fw_config_destroy(plain);
	return rc;
}

int cli_store_try(struct cli *c, unsigned flags, struct fw_err *err)
{
	int rc = flags & FW_STORE_CREATE ? cli_store_folder(c, err) : 0;

	rc = rc ? rc : fw_config_store(c->config, flags, &c->store, err);
	if (!rc)
		c->now_ms = fw_store_now_ms(c->store);
	return rc;
}

int cli_store(struct cli *c, unsigned flags)
{
	struct fw_err err = {0};

	return cli_store_try(c, flags, &err) ? cli_store_failed(c, &err) : 0;
}

void cli_store_show(const struct cli *c, struct fw_buf *out)
{
	char url[400];

	fw_store_url_show(c->config->store, url, sizeof(url));
	fw_buf_adds(out, url);
}

static int worker_count(void *ctx, const struct fw_heartbeat *b)
{
	*(size_t *)ctx += !fw_worker_is_dead(b->worker);
	return 0;
}

int cli_workers(struct cli *c, struct fw_store *st, size_t *n)
{
	struct fw_err err = {0};

	*n = 0;
	return fw_store_heartbeat_list(st, c->now_ms - CLI_WORKER_MS, worker_count, n, &err) ?
		cli_store_failed(c, &err) :
		0;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

struct candidates {
	struct fw_arena *arena;
	int64_t id[6];
	struct fw_str url[6];
	size_t n;
};

static int feed_candidate(void *ctx, const struct fw_feed *f)
{
	struct candidates *k = ctx;

	k->id[k->n] = f->id;
	k->url[k->n] = fw_arena_str(k->arena, f->url);
	return ++k->n == FW_N(k->id);
}

static int feed_ambiguous(struct cli *c, const char *word, const struct candidates *k)
{
	(void)cli_fail(c, CLI_SOME,
		"%s: several feeds have this in their URL or title; give the number of one:", cli_url_show(c, word));
	for (size_t i = 0; i < k->n && i < 5; i++)
		(void)cli_fail(c, CLI_SOME, "  %lld %.*s", (long long)k->id[i], FW_STR_ARG(k->url[i]));
	return CLI_SOME;
}

bool cli_is_number(const char *word, int64_t *id)
{
	const char *digits = word[0] == '#' ? word + 1 : word;

	if (!digits[0] || digits[strspn(digits, "0123456789")])
		return false;
	if (!fw_str_int(fw_str(digits), id))
		*id = INT64_MAX;
	return true;
}

static int feed_no_number(struct cli *c, const char *digits, bool exact)
{
	digits += digits[0] == '#';
	if (exact)
		return cli_fail(c, CLI_SOME, "no feed has the number %.40s ('feedwheel list' lists all)", digits);
	return cli_fail(c, CLI_SOME,
		"no feed has the number %.40s ('feedwheel list' lists all; to name a part of a URL, write '/%.40s')",
		digits, digits);
}

int cli_feed(struct cli *c, const char *word, bool exact, struct fw_feed *feed)
{
	struct fw_str url = FW_STR_NONE, user, pass;
	struct candidates k = {.arena = &c->arena};
	struct fw_feed_query q = {.status = -1, .match = fw_str(word), .limit = FW_N(k.id)};
	struct fw_err err = {0};
	int64_t id = 0;
	bool number = cli_is_number(word, &id);
	int rc = FW_ENOTFOUND;

	if (number ? id > 0 : fw_url_clean(&c->arena, fw_str(word), &url, &user, &pass, NULL) == 0)
		rc = fw_store_feed_find(c->store, id, url, &c->arena, feed, &err);
	if (rc == FW_ENOTFOUND && number)
		return feed_no_number(c, word, exact);
	if (rc == FW_ENOTFOUND && !exact) {
		rc = fw_store_feed_list(c->store, &q, feed_candidate, &k, &err);
		if (rc >= 0 && k.n > 1)
			return feed_ambiguous(c, word, &k);
		if (rc >= 0)
			rc = k.n ? fw_store_feed_find(c->store, k.id[0], FW_STR_NONE, &c->arena, feed, &err) :
				   FW_ENOTFOUND;
	}
	if (rc == FW_ENOTFOUND)
		return cli_fail(c, CLI_SOME,
			"%s: no such feed ('feedwheel list' lists all; to subscribe, run 'feedwheel add URL')",
			cli_url_show(c, word));
	return rc ? cli_store_failed(c, &err) : 0;
}

int cli_feeds(struct cli *c, bool exact, struct fw_feed **feed)
{
	int rc;

	*feed = fw_arena_calloc(&c->arena, (size_t)c->arg_n, sizeof(**feed));
	if (!*feed)
		return cli_fail(c, CLI_SOME, "out of memory");
	rc = cli_store(c, 0);
	for (int i = 0; !rc && i < c->arg_n; i++)
		rc = cli_feed(c, c->arg[i], exact, &(*feed)[i]);
	return rc;
}

const char *cli_url_show(struct cli *c, const char *url)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const char *text;

	fw_url_show(&b, fw_str(url));
	text = fw_arena_dup(&c->arena, b.p ? b.p : "", b.len);
	fw_buf_finish(&b);
	return text ? text : "";
}

/* ---- files ----------------------------------------------------------------------------------- */

static int session_feed_found(void *ctx, const struct fw_feed *f)
{
	(void)f;
	*(bool *)ctx = true;
	return 1;
}

bool cli_folder_missing(struct cli *c, const char *folder)
{
	const struct fw_feed_query q = {.status = -1, .folder = fw_str(folder), .limit = 1};
	struct fw_err err;
	bool found = false;

	if (!folder || !*folder || fw_store_feed_list(c->store, &q, session_feed_found, &found, &err) < 0 || found)
		return false;
	cli_note(c, "no feed is in folder '%.200s' ('feedwheel folders' lists the folders)", folder);
	return true;
}

int cli_read(struct cli *c, const char *path, size_t max_bytes, const char *limit, struct fw_buf *out)
{
	bool in = strcmp(path, "-") == 0;
	int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	ssize_t n = 1;

	*out = FW_BUF_INIT(max_bytes + READ_BYTES);
	if (fd < 0)
		return cli_fail(c, CLI_USAGE, "%s: %s: name a file that exists, or - for standard input", path,
			strerror(errno));
	while (n > 0) {
		char *to = fw_buf_room(out, READ_BYTES);

		if (!to) {
			rc = cli_fail(c, CLI_SOME, "%s: %s%s", in ? "standard input" : path,
				out->rc == FW_ELIMIT ? "larger than " : "out of memory",
				out->rc == FW_ELIMIT ? limit : "");
			break;
		}
		n = read(fd, to, READ_BYTES);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n < 0)
			rc = cli_fail(c, CLI_USAGE, "%s: %s%s", in ? "standard input" : path, strerror(errno),
				errno == EISDIR ? ": name a file in it" : "");
		else
			out->len += (size_t)n;
	}
	if (!in)
		close(fd);
	return rc;
}
