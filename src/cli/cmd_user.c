/* SPDX-License-Identifier: ISC */
/*
 * user: the accounts of readers, and the tokens of their clients. A password is typed twice on a
 * terminal, or is the first line of the input.
 */
#include <errno.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "api/account.h"
#include "base/suggest.h"
#include "cli/cli.h"

#define PASSWORD_CAP (FW_ACCOUNT_PASSWORD_MAX + 2) /* and a line end, and NUL */

static int user_command_failed(struct cli *c, const struct fw_err *err)
{
	switch (err->rc) {
	case FW_EINVAL:
		return cli_fail(c, CLI_USAGE, "%s", err->text);
	case FW_ELIMIT:
		return cli_fail(c, CLI_SOME, "%s", err->text);
	case FW_ENOTFOUND:
		return cli_fail(c, CLI_SOME, "%s ('feedwheel user list' lists all)", err->text);
	default:
		return cli_store_failed(c, err);
	}
}

/* ---- the account that a word names ----------------------------------------------------------- */

struct user_offer {
	struct fw_suggest suggest;
	struct cli *c;
};

static int user_offer_one(void *ctx, const struct fw_account *a)
{
	struct user_offer *n = ctx;
	const char *name = fw_arena_dup(&n->c->arena, a->name.p, a->name.len);

	if (name)
		fw_suggest_offer(&n->suggest, name);
	return 0;
}

int cli_account(struct cli *c, const char *name, struct fw_account *out)
{
	struct user_offer offer = {{.word = fw_str(name)}, c};
	struct fw_err err = {0};

	if (!fw_account_get(c->store, fw_str(name), &c->arena, out, &err))
		return 0;
	if (err.rc == FW_ENOTFOUND && !fw_account_list(c->store, user_offer_one, &offer, NULL) && offer.suggest.best)
		return cli_fail(c, CLI_SOME, "account '%.64s': no account has this name (did you mean '%s'?)", name,
			offer.suggest.best);
	return user_command_failed(c, &err);
}

int cli_account_import(struct cli *c, const char *name, struct fw_feed_new *feed, size_t n)
{
	struct fw_account a;
	struct fw_err err = {0};
	size_t added;
	int rc = cli_account(c, name, &a);

	if (rc)
		return rc;
	rc = fw_account_import(c->store, a.id, feed, n, c->now_ms, &added, &err);
	return !rc ? 0 : rc == FW_EINVAL ? cli_fail(c, CLI_USAGE, "%s", err.text) : cli_store_failed(c, &err);
}

int cli_fail_login(struct cli *c, const char *where, struct fw_str url)
{
	return cli_fail(c, CLI_SOME,
		"%s: %.*s: the store has it with another login, or without one: put its NAME:PASSWORD@ before the"
		" host, or none",
		where, FW_STR_ARG(url));
}

/* Open the store, and find the account of the first argument. */
static int user_open(struct cli *c, unsigned flags, struct fw_account *out)
{
	int rc = cli_store(c, flags);

	return rc ? rc : cli_account(c, c->arg[1], out);
}

/* ---- passwords ------------------------------------------------------------------------------- */

/* Read a line without its end; false: the input ended, or the line is too long. */
static bool user_line_read(int fd, char line[PASSWORD_CAP])
{
	size_t n = 0;

	while (n < PASSWORD_CAP - 1) {
		ssize_t got = read(fd, line + n, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || (got == 0 && n == 0))
			return false;
		if (got == 0 || line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

/* Without echo; the terminal is as before afterwards. */
static bool user_terminal_ask(struct cli *c, const char *text, char line[PASSWORD_CAP])
{
	struct termios was, now;
	bool quiet = tcgetattr(STDIN_FILENO, &was) == 0, good;

	fprintf(stderr, "%s", text);
	fflush(stderr);
	now = was;
	now.c_lflag &= ~(tcflag_t)ECHO;
	if (quiet)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
	good = user_line_read(STDIN_FILENO, line);
	if (quiet)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
	fputc('\n', stderr);
	(void)c;
	return good;
}

static int user_password_read(struct cli *c, char line[PASSWORD_CAP])
{
	char again[PASSWORD_CAP];
	int rc = 0;

	if (!isatty(STDIN_FILENO))
		return user_line_read(STDIN_FILENO, line) ?
			0 :
			cli_usage(c, "no password: give it as the first line of the input, at most %d bytes",
				FW_ACCOUNT_PASSWORD_MAX);
	if (!user_terminal_ask(c, "password: ", line) || !user_terminal_ask(c, "again: ", again))
		rc = cli_usage(c, "no password was typed");
	else if (strcmp(line, again) != 0)
		rc = cli_usage(c, "the two passwords differ: nothing was changed");
	explicit_bzero(again, sizeof(again));
	return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* {"name": "alice", "client": "phone", "token": "..."}; NULL members are left out. */
static void user_json_one(struct cli *c, const char *name, const char *client, const char *token)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_cstr(&w.j, "name", name);
	fw_json_cstr(&w.j, "client", client);
	fw_json_cstr(&w.j, "token", token);
	cli_json_object_end(&w, c);
}

static int user_done(struct cli *c, const char *text)
{
	if (cli_as_json(c))
		user_json_one(c, c->arg[1], NULL, NULL);
	else
		cli_out(c, "%s %s\n", text, c->arg[1]);
	return CLI_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

static int user_added_json(struct cli *c, const struct fw_account_all *all)
{
	struct cli_json w;

	cli_json_object_begin(&w, c);
	fw_json_cstr(&w.j, "name", c->arg[1]);
	fw_json_int(&w.j, "feeds", (int64_t)all->added_n);
	cli_json_object_end(&w, c);
	return CLI_OK;
}

/* How feeds come into an account that has none. */
static void user_note_no_feeds(struct cli *c, bool store_has_some)
{
	const char *name = c->arg[1];

	cli_note(c,
		"%s has no feeds yet: they come in on the page, with a reader, and with 'feedwheel add --user %s URL'"
		" or 'feedwheel import --user %s FILE'",
		name, name, name);
	if (store_has_some)
		cli_note(c,
			"for all feeds that this store collects, run 'feedwheel export | feedwheel import --user %s -'"
			" (or add accounts with --all-feeds)",
			name);
}

static void user_note_all_feeds(struct cli *c, const struct fw_account_all *all)
{
	char n[FW_RFC3339_MAX];

	if (all->added_n)
		cli_note(c, "%s has %s of this store now", c->arg[1],
			cli_count(n, (int64_t)all->added_n, "feed", "feeds"));
	else
		cli_note(c, "this store collects no feeds yet (to subscribe, run 'feedwheel add --user %s URL')",
			c->arg[1]);
	if (all->login_n)
		cli_note(c, "%s with a login: only who knows it may subscribe, by the address with NAME:PASSWORD@",
			cli_count(n, (int64_t)all->login_n, "feed is left out", "feeds are left out"));
}

static int user_admin_read(struct cli *c, bool *out)
{
	const char *value = cli_value(c, "admin");

	*out = value && strcmp(value, "yes") == 0;
	return !value || *out || strcmp(value, "no") == 0 ?
		0 :
		cli_usage(c, "--admin must be yes or no, not '%.60s'", value);
}

static int user_command_add(struct cli *c)
{
	bool all_feeds = cli_flag(c, "all-feeds"), admin;
	struct fw_account_all all = {0};
	char password[PASSWORD_CAP];
	struct fw_err err = {0};
	int64_t id;
	int rc = user_admin_read(c, &admin);

	rc = rc ? rc : cli_store(c, FW_STORE_CREATE);
	rc = rc ? rc : user_password_read(c, password);
	if (!rc && fw_account_add(c->store, fw_str(c->arg[1]), fw_str(password), admin, c->now_ms, &id, &err))
		rc = user_command_failed(c, &err);
	explicit_bzero(password, sizeof(password));
	if (!rc && fw_account_subscribe_all(c->store, id, all_feeds ? 0 : 1, !all_feeds, c->now_ms, &all, &err))
		rc = user_command_failed(c, &err);
	if (rc)
		return rc;
	rc = all_feeds && cli_as_json(c) ? user_added_json(c, &all) : user_done(c, "added");
	if (all_feeds)
		user_note_all_feeds(c, &all);
	else
		user_note_no_feeds(c, all.added_n > 0);
	return rc;
}

static int user_command_passwd(struct cli *c)
{
	char password[PASSWORD_CAP];
	struct fw_err err = {0};
	struct fw_account a;
	int rc = user_open(c, 0, &a);

	rc = rc ? rc : user_password_read(c, password);
	if (!rc && fw_account_set_password(c->store, a.name, fw_str(password), &err))
		rc = user_command_failed(c, &err);
	explicit_bzero(password, sizeof(password));
	if (rc)
		return rc;
	cli_note(c, "tokens stay valid; to revoke one, run 'feedwheel user revoke %s CLIENT'", c->arg[1]);
	return user_done(c, "changed the password of");
}

static int user_command_set(struct cli *c)
{
	struct fw_err err = {0};
	struct fw_account a;
	bool admin = false;
	int rc = cli_value(c, "admin") ? user_admin_read(c, &admin) :
					 cli_usage(c, "nothing to set: give --admin yes or --admin no");

	rc = rc ? rc : user_open(c, 0, &a);
	if (!rc && fw_account_set_admin(c->store, a.name, admin, &err))
		rc = user_command_failed(c, &err);
	return rc ? rc : user_done(c, "changed");
}

static int user_command_remove(struct cli *c)
{
	struct fw_err err = {0};
	struct fw_account a;
	int rc = user_open(c, 0, &a);

	if (!rc && fw_account_remove(c->store, a.name, &err))
		rc = user_command_failed(c, &err);
	return rc ? rc : user_done(c, "removed");
}

static int user_command_token(struct cli *c)
{
	enum fw_account_token_kind kind = cli_flag(c, "fever") ? FW_ACCOUNT_TOKEN_FEVER : FW_ACCOUNT_TOKEN_CLIENT;
	char text[FW_ACCOUNT_TOKEN_MAX];
	struct fw_err err = {0};
	struct fw_account a;
	int rc = user_open(c, 0, &a);

	if (!rc && fw_account_token_add(c->store, a.id, fw_str(c->arg[2]), kind, c->now_ms, FW_NO_DATE, text, &err))
		rc = user_command_failed(c, &err);
	if (rc)
		return rc;
	if (cli_as_json(c))
		user_json_one(c, c->arg[1], c->arg[2], text);
	else
		cli_out(c, "%s\n", text);
	cli_note(c, "the token is shown only once%s",
		kind == FW_ACCOUNT_TOKEN_FEVER ? "; type it as the password in the Fever client" : "");
	explicit_bzero(text, sizeof(text));
	return CLI_OK;
}

static int user_command_revoke(struct cli *c)
{
	struct fw_err err = {0};
	struct fw_account a;
	int rc = user_open(c, 0, &a);

	if (!rc && fw_account_token_remove(c->store, a.id, FW_ACCOUNT_TOKEN_KIND_N, fw_str(c->arg[2]), &err))
		return err.rc == FW_ENOTFOUND ?
			cli_fail(c, CLI_SOME, "%s ('feedwheel user tokens %s' lists all)", err.text, c->arg[1]) :
			user_command_failed(c, &err);
	if (rc)
		return rc;
	if (cli_as_json(c))
		user_json_one(c, c->arg[1], c->arg[2], NULL);
	else
		cli_out(c, "revoked %s of %s\n", c->arg[2], c->arg[1]);
	return CLI_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const struct cli_column USER_COLUMN[] = {{"NAME"}, {"ADMIN", .spare = 3}, {"FEEDS"}, {"TOKENS", .spare = 2},
	{"CREATED", .spare = 2}, {"USED", .spare = 1}};
static const struct cli_column USER_TOKEN_COLUMN[] = {
	{"NAME"}, {"KIND"}, {"CREATED", .spare = 2}, {"USED", .spare = 1}, {"UNTIL"}};

static void user_json(struct cli_list *l, const struct fw_account *a)
{
	struct fw_json *j = cli_list_item(l);

	fw_json_object(j, NULL);
	fw_json_str(j, "name", a->name);
	fw_json_bool(j, "admin", a->admin);
	fw_json_int(j, "feeds", (int64_t)a->subscription_n);
	fw_json_int(j, "tokens", (int64_t)a->token_n);
	fw_json_time(j, "created", a->created_ms);
	if (a->used_ms)
		fw_json_time(j, "used", a->used_ms);
	fw_json_end(j);
	cli_list_item_end(l);
}

static int user_list_print(void *ctx, const struct fw_account *a)
{
	char made[FW_RFC3339_MAX], used[FW_RFC3339_MAX], n[FW_RFC3339_MAX];
	struct cli_list *l = ctx;

	l->n++;
	if (l->as_json) {
		user_json(l, a);
		return cli_out_failed(l->c);
	}
	cli_table_cell(&l->table, CLI_BOLD, a->name);
	cli_table_cell(&l->table, NULL, a->admin ? FW_STR("admin") : FW_STR("-"));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(n, (int64_t)a->subscription_n)));
	cli_table_cell(&l->table, NULL, fw_str(cli_number(n, (int64_t)a->token_n)));
	cli_table_cell(&l->table, CLI_DIM, fw_str(cli_stamp(made, a->created_ms)));
	cli_table_cell(&l->table, NULL, fw_str(cli_ago(l->c, used, a->used_ms)));
	return cli_out_failed(l->c);
}

static int user_command_list(struct cli *c)
{
	struct cli_list l;
	struct fw_err err = {0};
	int rc = cli_store(c, FW_STORE_READ);

	if (rc)
		return rc;
	cli_list_begin(&l, c, USER_COLUMN, FW_N(USER_COLUMN));
	rc = fw_account_list(c->store, user_list_print, &l, &err);
	cli_list_end(&l);
	if (rc < 0)
		return user_command_failed(c, &err);
	if (!l.n && !l.as_json)
		cli_note(c, "no accounts (to add one, run 'feedwheel user add NAME')");
	return CLI_OK;
}

static const char *user_token_kind(enum fw_account_token_kind kind)
{
	static const char *const NAME[FW_ACCOUNT_TOKEN_KIND_N] = {[FW_ACCOUNT_TOKEN_CLIENT] = "client",
		[FW_ACCOUNT_TOKEN_SESSION] = "session",
		[FW_ACCOUNT_TOKEN_FEVER] = "fever",
		[FW_ACCOUNT_TOKEN_LOGIN] = "login"};

	return kind >= 0 && kind < FW_ACCOUNT_TOKEN_KIND_N ? NAME[kind] : "unknown";
}

static int user_token_print(void *ctx, const struct fw_account_token *t)
{
	char made[FW_RFC3339_MAX], used[FW_RFC3339_MAX], until[FW_RFC3339_MAX];
	struct cli_list *l = ctx;
	struct fw_json *j;

	l->n++;
	if (!l->as_json) {
		cli_table_cell(&l->table, CLI_BOLD, t->name);
		cli_table_cell(&l->table, NULL, fw_str(user_token_kind(t->kind)));
		cli_table_cell(&l->table, CLI_DIM, fw_str(cli_stamp(made, t->created_ms)));
		cli_table_cell(&l->table, NULL, fw_str(cli_ago(l->c, used, t->used_ms)));
		cli_table_cell(&l->table, NULL,
			t->until_ms == FW_NO_DATE ? FW_STR("forever") : fw_str(cli_stamp(until, t->until_ms)));
		return cli_out_failed(l->c);
	}
	j = cli_list_item(l);
	fw_json_object(j, NULL);
	fw_json_str(j, "name", t->name);
	fw_json_cstr(j, "kind", user_token_kind(t->kind));
	fw_json_time(j, "created", t->created_ms);
	if (t->used_ms)
		fw_json_time(j, "used", t->used_ms);
	if (t->until_ms != FW_NO_DATE)
		fw_json_time(j, "until", t->until_ms);
	fw_json_end(j);
	cli_list_item_end(l);
	return cli_out_failed(l->c);
}

static int user_command_tokens(struct cli *c)
{
	struct cli_list l;
	struct fw_err err = {0};
	struct fw_account a;
	int rc = user_open(c, FW_STORE_READ, &a);

	if (rc)
		return rc;
	cli_list_begin(&l, c, USER_TOKEN_COLUMN, FW_N(USER_TOKEN_COLUMN));
	rc = fw_account_token_list(c->store, a.id, user_token_print, &l, &err);
	cli_list_end(&l);
	if (rc < 0)
		return user_command_failed(c, &err);
	if (!l.n && !l.as_json)
		cli_note(c, "no tokens (to make one, run 'feedwheel user token %s CLIENT')", c->arg[1]);
	return CLI_OK;
}

static int user_run(struct cli *c)
{
	static const struct {
		const char *word, *args;
		int n;
		int (*run)(struct cli *c);
	} WHAT[] = {{"add", " NAME", 2, user_command_add}, {"list", "", 1, user_command_list},
		{"passwd", " NAME", 2, user_command_passwd}, {"remove", " NAME", 2, user_command_remove},
		{"set", " NAME --admin yes|no", 2, user_command_set}, {"token", " NAME CLIENT", 3, user_command_token},
		{"tokens", " NAME", 2, user_command_tokens}, {"revoke", " NAME CLIENT", 3, user_command_revoke}};
	struct fw_suggest offer = {.word = fw_str(c->arg[0])};

	for (size_t i = 0; i < FW_N(WHAT); i++) {
		if (strcmp(c->arg[0], WHAT[i].word) == 0)
			return c->arg_n == WHAT[i].n ?
				WHAT[i].run(c) :
				cli_usage(c, "the arguments are: 'feedwheel user %s%s'", WHAT[i].word, WHAT[i].args);
		fw_suggest_offer(&offer, WHAT[i].word);
	}
	return offer.best ?
		cli_usage(c, "'user %.60s' does not exist: did you mean 'user %s'?", c->arg[0], offer.best) :
		cli_usage(c,
			"the argument must be add, list, passwd, remove, set, token, tokens or revoke, not '%.60s'",
			c->arg[0]);
}

static const struct cli_option USER_OPTION[] = {
	{"admin", "yes|no", "add, set: the account may use the operator's routes too; no value: yes", "yes no"},
	{"all-feeds", NULL, "add: subscribe the account to all feeds that the store collects"},
	{"fever", NULL, "token: for a Fever client, which types it as its password"},
	{"json", NULL, "print a JSON object; list, tokens: an array of objects"},
	{"jsonl", NULL, "print one JSON object per line"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_user = {
	.name = "user",
	.args = "add|list|passwd|remove|set|token|tokens|revoke [USER] [CLIENT]",
	.summary = "manage the accounts of readers",
	.about = "Accounts share feeds and entries; each has subscriptions, read entries, stars and labels of its own. "
		 "They need an SQL store.\n"
		 "'add' and 'passwd' read the password from the terminal, or from the first line of the input. 'token' "
		 "prints a new token\n"
		 "for a client, once. Without accounts nothing changes.\n"
		 "A new account has no feeds: they come in with --all-feeds, on the page, with a reader, and with "
		 "'add --user' and\n"
		 "'import --user'.\n",
	.examples = "  feedwheel user add alice --all-feeds\n  feedwheel user token alice phone\n"
		    "  feedwheel user revoke alice phone\n  feedwheel user set alice --admin yes\n",
	.option = USER_OPTION,
	.min_args = 1,
	.max_args = 3,
	.run = user_run,
};
