/* SPDX-License-Identifier: ISC */
/*
 * Shell completions. The shells' scripts pass the words of a command line; the candidates come from
 * the tables of commands, options and settings, and from the store (feeds, folders, orders). There
 * are no error messages, and a slow store is abandoned.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/account.h"
#include "base/map.h"
#include "api/order.h"
#include "cli/cli.h"

#define TIMEOUT_S 2 /* alarm() then ends the process, so that an unreachable store does not block the shell */
#define FEEDS_MAX 500
#define FOLDERS_MAX 500

struct line {
	struct cli *c;
	const struct cli_command *command; /* or NULL */
	struct fw_str cur;                 /* the word to complete */
	/* its part before the value, "--order=": output before each candidate */
	struct fw_str before;
	size_t arg_n;       /* arguments of the command before cur */
	struct fw_map seen; /* folders already printed */
};

static void complete_candidate(struct line *l, struct fw_str word, struct fw_str meaning)
{
	if (!word.len || !fw_str_starts(word, l->cur))
		return;
	cli_out_bytes(l->c, l->before.len ? l->before.p : "", l->before.len);
	cli_out_safe(l->c, word);
	cli_out(l->c, "\t");
	cli_out_safe(l->c, meaning);
	cli_out(l->c, "\n");
}

static void complete_option(struct cli *c, const struct cli_option *o)
{
	cli_out(c, "--%s\t%s%s%s\n", o->name, o->arg ? o->arg : "", o->arg ? ": " : "", o->text);
}

/* Print the options that the command accepts (NULL: the common options and all settings). */
static void complete_options(struct line *l, const struct cli_command *k)
{
	const struct cli_option *const LIST[] = {k ? k->option : NULL, cli_global_options};
	struct fw_buf word = FW_BUF_INIT(200);
	struct fw_str needed;
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (size_t i = 0; i < FW_N(LIST); i++) {
		for (const struct cli_option *o = LIST[i]; o && o->name; o++) {
			fw_buf_reset(&word);
			fw_buf_addf(&word, "--%s", o->name);
			if (fw_str_starts(fw_buf_str(&word), l->cur))
				complete_option(l->c, o);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (cli_option_find(cli_global_options, fw_str(s[i].name)) ||
			(k && !cli_uses_setting(k, &s[i], &needed)))
			continue;
		fw_buf_reset(&word);
		cli_dashed(&word, s[i].name);
		complete_candidate(l, fw_buf_str(&word), fw_str(s[i].text));
	}
	fw_buf_finish(&word);
}

static void complete_commands(struct line *l)
{
	for (const struct cli_command *const *at = cli_commands; *at; at++)
		complete_candidate(l, fw_str((*at)->name), fw_str((*at)->summary));
}

void cli_complete_words(struct cli *c, const char *command)
{
	struct line l = {.c = c, .cur = FW_STR(""), .before = FW_STR("")};
	const struct cli_command *k = command ? cli_command_find(command) : NULL;

	if (!k)
		complete_commands(&l);
	complete_options(&l, k);
}

/* ---- from the store -------------------------------------------------------------------------- */

/*
 * Open the store that the command line, the environment or the configuration names. False on any
 * error.
 */
static bool complete_open_store(struct cli *c)
{
	struct fw_err err;

	alarm(TIMEOUT_S);
	return !cli_config_read(c, &c->config, &err) && !cli_store_try(c, FW_STORE_READ, &err);
}

/*
 * Offer the feed's number if it matches the word, and its URL; without https:// if the command
 * accepts a part of a URL.
 */
static int complete_feed(void *ctx, const struct fw_feed *f)
{
	struct line *l = ctx;
	char number[FW_RFC3339_MAX];
	struct fw_str https = FW_STR("https://"), title = cli_feed_title(f);

	(void)fw_snprintf(number, sizeof(number), "%lld", (long long)f->id);
	if (l->cur.len)
		complete_candidate(l, fw_str(number), title);
	if (!(l->command->flags & CLI_EXACT_FEED) && fw_str_starts(f->url, https) &&
		!fw_str_starts(l->cur, FW_STR("http")))
		complete_candidate(l, fw_str_sub(f->url, https.len, f->url.len), title);
	else
		complete_candidate(l, f->url, title);
	return cli_out_failed(l->c);
}

static void complete_feeds(struct line *l)
{
	struct fw_feed_query q = {.status = -1, .limit = FEEDS_MAX};
	int64_t id;
	struct fw_err err;

	if (!complete_open_store(l->c))
		return;
	/* let the store filter, except for a number, which is not part of a URL */
	if (!cli_is_number(l->cur.p, &id))
		q.match = l->cur;
	else
		q.limit = 0;
	if (fw_store_feed_list(l->c->store, &q, complete_feed, l, &err))
		return; /* the candidates so far are enough */
}

static int complete_folder(void *ctx, const struct fw_feed *f)
{
	struct line *l = ctx;
	struct fw_str folder;
	int rc = 0;

	if (!f->folder.len || l->seen.n >= FOLDERS_MAX || fw_map_get(&l->seen, f->folder))
		return 0;
	folder = fw_arena_str(&l->c->arena, f->folder);
	(void)fw_map_put(&l->seen, folder, l, &rc);
	if (!rc)
		complete_candidate(l, folder, FW_STR(""));
	return rc;
}

static void complete_folders(struct line *l)
{
	struct fw_feed_query q = {.status = -1};
	struct fw_err err;
	int rc;

	if (!complete_open_store(l->c))
		return;
	fw_map_init(&l->seen, 0);
	rc = fw_store_feed_list(l->c->store, &q, complete_folder, l, &err);
	fw_map_finish(&l->seen);
	if (rc)
		return; /* the candidates so far are enough */
}

static int complete_order(void *ctx, const struct fw_order *o)
{
	struct line *l = ctx;

	complete_candidate(l, o->name, o->query);
	return cli_out_failed(l->c);
}

static int complete_user(void *ctx, const struct fw_account *a)
{
	struct line *l = ctx;

	complete_candidate(l, a->name, FW_STR(""));
	return cli_out_failed(l->c);
}

static void complete_users(struct line *l)
{
	if (complete_open_store(l->c) && fw_account_list(l->c->store, complete_user, l, NULL))
		return; /* the candidates so far are enough */
}

static void complete_orders(struct line *l)
{
	struct fw_err err;

	if (complete_open_store(l->c) && fw_order_list(l->c->store, complete_order, l, &err))
		return; /* the candidates so far are enough */
}

/* ---- values and arguments -------------------------------------------------------------------- */

static void complete_word_list(struct line *l, const char *list, char sep)
{
	struct fw_str rest = fw_str(list);

	while (rest.p)
		complete_candidate(l, fw_str_split(rest, sep, &rest), FW_STR(""));
}

static void complete_files(struct line *l)
{
	cli_out(l->c, ":files\n");
}

/* Print the candidates for a placeholder of the help texts: "FEED", "list|on|off". */
static void complete_placeholder(struct line *l, struct fw_str kind)
{
	while (kind.p) {
		struct fw_str one = fw_str_trim(fw_str_split(kind, '|', &kind));

		if (fw_str_eq(one, FW_STR("FEED")))
			complete_feeds(l);
		else if (fw_str_eq(one, FW_STR("FOLDER")))
			complete_folders(l);
		else if (fw_str_eq(one, FW_STR("ORDER")))
			complete_orders(l);
		else if (fw_str_eq(one, FW_STR("USER")))
			complete_users(l);
		else if (fw_str_eq(one, FW_STR("FILE")))
			complete_files(l);
		else if (fw_str_eq(one, FW_STR("COMMAND")))
			complete_commands(l);
		else if (one.len && one.p[0] >= 'a' && one.p[0] <= 'z')
			complete_candidate(l, one, FW_STR(""));
	}
}

static void complete_argument(struct line *l)
{
	struct fw_str rest = fw_str(l->command->args);

	for (size_t i = 0; rest.len; i++) {
		struct fw_str kind = fw_str_split(rest, ' ', &rest);
		bool many = fw_str_ends(kind, FW_STR("..."));

		while (rest.p && fw_str_ends(kind, FW_STR("|")))
			kind.len += 1 + fw_str_split(rest, ' ', &rest).len;
		if (i < l->arg_n && !many)
			continue;
		if (many)
			kind.len -= 3;
		else if (kind.p[0] == '[')
			kind = fw_str_sub(kind, 1, kind.len - 1);
		complete_placeholder(l, kind);
		break;
	}
}

static bool is_path(const char *name)
{
	static const char *const PATH[] = {"store_file", "ca_file", "tls_cert", "tls_key", "access_log", "wal_dir"};

	for (size_t i = 0; i < FW_N(PATH); i++) {
		if (strcmp(name, PATH[i]) == 0)
			return true;
	}
	return false;
}

static const struct cli_option *complete_find_option(const struct line *l, struct fw_str name)
{
	const struct cli_option *o = cli_option_find(l->command ? l->command->option : NULL, name);

	return o ? o : cli_option_find(cli_global_options, name);
}

static const struct fw_setting *complete_find_setting(struct fw_str name)
{
	char word[80];

	fw_str_copy(word, sizeof(word), name);
	return fw_config_find(word);
}

static bool complete_takes_value(const struct line *l, struct fw_str name)
{
	const struct cli_option *o = complete_find_option(l, name);
	const struct fw_setting *s = o ? NULL : complete_find_setting(name);

	return o ? o->arg != NULL : s && s->type != FW_TYPE_BOOL;
}

static void complete_value(struct line *l, struct fw_str name)
{
	const struct cli_option *o = complete_find_option(l, name);
	const struct fw_setting *s = o ? NULL : complete_find_setting(name);

	if (o && o->values)
		complete_word_list(l, o->values, ' ');
	else if (o)
		complete_placeholder(l, fw_str(o->arg));
	else if (s && s->choices)
		complete_word_list(l, s->choices, ' ');
	else if (s && s->type == FW_TYPE_BOOL)
		complete_word_list(l, "yes no", ' ');
	else if (s && is_path(s->name))
		complete_files(l);
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Apply an option that selects the store. */
static void complete_apply_option(struct cli *c, struct fw_str name, const char *text)
{
	if (fw_str_eq(name, FW_STR("config")))
		c->config_path = text;
	else if (fw_str_eq(name, FW_STR("store")) || fw_str_eq(name, FW_STR("store-file")))
		c->set[c->set_n++] = (struct cli_set){complete_find_setting(name), text};
}

static void complete_plain(struct line *l, const char *word)
{
	if (l->command)
		l->arg_n++;
	else
		l->command = cli_command_find(word);
}

void cli_complete_line(struct cli *c)
{
	struct line l = {.c = c, .cur = fw_str(c->arg_n ? c->arg[c->arg_n - 1] : ""), .before = FW_STR("")};
	bool options = true;
	struct fw_str pending = FW_STR_NONE, behind;

	for (int i = 0; i + 1 < c->arg_n; i++) {
		struct fw_str word = fw_str(c->arg[i]);

		if (pending.len) {
			complete_apply_option(c, pending, word.p);
			pending = FW_STR_NONE;
		} else if (options && fw_str_eq(word, FW_STR("--"))) {
			options = false;
		} else if (options && fw_str_starts(word, FW_STR("--"))) {
			struct fw_str name = fw_str_split(fw_str_sub(word, 2, word.len), '=', &behind);

			if (behind.p)
				complete_apply_option(c, name, behind.p);
			else if (complete_takes_value(&l, name))
				pending = name;
		} else if (options && word.len > 1 && word.p[0] == '-') {
			pending = fw_str_eq(word, FW_STR("-o")) ? FW_STR("output") : FW_STR_NONE;
		} else {
			complete_plain(&l, word.p);
		}
	}
	if (pending.len) {
		complete_value(&l, pending);
	} else if (options && fw_str_starts(l.cur, FW_STR("--")) && memchr(l.cur.p, '=', l.cur.len)) {
		struct fw_str name = fw_str_split(fw_str_sub(l.cur, 2, l.cur.len), '=', &behind);

		l.before = fw_str_sub(l.cur, 0, l.cur.len - behind.len);
		l.cur = behind;
		complete_value(&l, name);
	} else if (options && l.cur.len && l.cur.p[0] == '-') {
		complete_options(&l, l.command);
	} else if (!l.command) {
		complete_commands(&l);
	} else {
		complete_argument(&l);
	}
}
