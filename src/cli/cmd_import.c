/* SPDX-License-Identifier: ISC */
/*
 * import FILE: subscribe to the feeds of an OPML file or a list of URLs, in one transaction.
 * Invalid lines are reported and skipped. Nothing is fetched.
 */
#include <assert.h>
#include <stdlib.h>

#include "api/feed_login.h"
#include "api/account.h"
#include "base/err.h"
#include "base/url.h"
#include "cli/cli.h"

#define IMPORT_MAX_BYTES ((size_t)256 << 20)
#define SHOWN_MAX 50 /* problems printed; the rest is counted */
#define BATCH 25000  /* feeds in memory at once, unless they are for an account */
#define ARENA_KEEP ((size_t)256 << 10)

/*
 * The file is read up to four times, so that its feeds need not be in memory: to report what is
 * wrong, and, if it has logins, which of them are not the store's; to store the others, and for
 * --json to print them.
 */
enum import_step { IMPORT_CHECK, IMPORT_LOGINS, IMPORT_STORE, IMPORT_PRINT };

/* What the store said of a feed: its id, and whether it existed. */
struct import_result {
	int64_t id;
	bool existed;
};

struct import {
	struct cli *c;
	const char *name; /* of the file, for messages */
	struct fw_str text;
	enum import_step step;
	struct fw_arena arena; /* of feed[] */
	struct fw_feed_new *feed;
	size_t feed_n, cap;
	size_t n, existed, refused, repaired, shown;
	size_t login_n;       /* feeds of the file with a login */
	bool dropped;         /* the store has another login */
	struct fw_str folder; /* --folder: the parent of all folders */
	const char *user;     /* --user: of the account; NULL: none */
	bool cut;             /* a part of the file was left out */
	/* IMPORT_STORE */
	const struct fw_subscribing *to;
	struct fw_err *err;
	struct fw_buf results; /* struct import_result, of each feed; for --json */
	bool keep_results;
	/* IMPORT_PRINT */
	struct cli_json *json;
	size_t printed;
};

static void import_refuse(struct import *im, uint32_t line, const char *words)
{
	im->refused++;
	if (im->shown++ < SHOWN_MAX)
		(void)cli_fail(im->c, CLI_SOME, "%s:%u: %s", im->name, line, words);
}

static int import_grow(struct import *im)
{
	size_t cap = im->cap ? im->cap * 2 : 1024;
	struct fw_feed_new *grown;

	if (im->feed_n < im->cap)
		return 0;
	grown = reallocarray(im->feed, cap, sizeof(*grown));
	if (!grown)
		return FW_ENOMEM;
	im->feed = grown;
	im->cap = cap;
	return 0;
}

/* Store the feeds that are in memory, and empty it. */
static int import_put(struct import *im)
{
	int rc = im->feed_n ? fw_store_subscribe_put(im->to, im->feed, im->feed_n, im->err) : 0;

	for (size_t i = 0; !rc && i < im->feed_n; i++) {
		const struct import_result r = {im->feed[i].id, im->feed[i].existed};

		im->existed += r.existed;
		if (im->keep_results)
			fw_buf_add(&im->results, &r, sizeof(r));
	}
	im->feed_n = 0;
	fw_arena_reset(&im->arena, ARENA_KEEP);
	return rc ? rc : im->results.rc ? fw_no_memory(im->err) : 0;
}

static void import_print(struct import *im, struct fw_feed_new *f)
{
	cli_added_json(&im->json->j, f);
	cli_json_flush(im->json, im->c);
}

static void import_print_next(struct import *im, struct fw_feed_new *f)
{
	const struct import_result *r = (const struct import_result *)(const void *)im->results.p;

	assert(im->printed < im->n);
	f->id = r[im->printed].id;
	f->existed = r[im->printed++].existed;
	import_print(im, f);
}

static struct fw_str import_folder(struct import *im, struct fw_str folder)
{
	char *both;

	if (!im->folder.len || !folder.len)
		return im->folder.len ? im->folder : fw_arena_str(&im->arena, folder);
	both = fw_arena_printf(&im->arena, "%.*s/%.*s", FW_STR_ARG(im->folder), FW_STR_ARG(folder));
	return fw_str(both);
}

/* Keep a feed that is to be stored. */
static int import_keep(struct import *im, struct fw_feed_new *f, const struct fw_opml_outline *o)
{
	struct fw_arena *a = &im->arena;

	if (import_grow(im))
		return FW_ENOMEM;
	/* a title equal to the URL is no title: export writes it because OPML requires one */
	if (!fw_str_eq(o->title, o->url))
		f->user_title = fw_arena_str(a, fw_str_trim(o->title));
	f->home_page_url = fw_arena_str(a, o->home_page_url);
	f->folder = import_folder(im, o->folder);
	im->feed[im->feed_n++] = *f;
	return a->failed ? FW_ENOMEM : !im->user && im->feed_n == BATCH ? import_put(im) : 0;
}

/* The feed is subscribed already, and keeps its login: say that the file's is not used. */
static int import_check_login(struct import *im, const struct fw_feed_new *f, uint32_t line)
{
	struct fw_err err = {0};
	int rc = fw_feed_login_check(im->c->store, f, &err);

	if (rc != FW_EINVAL)
		return rc;
	im->dropped = true;
	if (im->shown++ < SHOWN_MAX)
		(void)cli_fail(im->c, CLI_SOME, "%s:%u: %.*s: %s", im->name, line, FW_STR_ARG(f->url), err.text);
	return 0;
}

static int import_feed(struct import *im, const struct fw_opml_outline *o)
{
	struct fw_feed_new f = {0};
	struct fw_err err = {0};
	int rc = fw_url_clean(&im->arena, o->url, &f.url, &f.username, &f.password, &err);

	if (rc == FW_EINVAL && im->step == IMPORT_CHECK)
		import_refuse(im, o->line, err.text);
	if (rc)
		return rc == FW_EINVAL ? 0 : FW_ENOMEM;
	if (im->step == IMPORT_STORE)
		return import_keep(im, &f, o);
	if (im->step == IMPORT_PRINT && cli_out_failed(im->c))
		return FW_EIO; /* said by the caller of the command */
	if (im->step == IMPORT_PRINT)
		import_print_next(im, &f);
	if (im->step == IMPORT_LOGINS)
		rc = import_check_login(im, &f, o->line);
	if (im->step == IMPORT_CHECK) {
		im->n++;
		im->login_n += f.username.len || f.password.len;
	}
	fw_arena_reset(&im->arena, ARENA_KEEP);
	return rc;
}

static int import_outline(void *ctx, const struct fw_opml_outline *o)
{
	/* Liferea's search folders are outlines with xmlUrl="vfolder" */
	return fw_str_ieq(o->type, FW_STR("vfolder")) ? 0 : import_feed(ctx, o);
}

/* A repair loses nothing: print a note, not an error. */
static void import_problem(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair)
{
	struct import *im = ctx;

	if (im->step != IMPORT_CHECK)
		return;
	im->repaired++;
	if (im->shown++ < SHOWN_MAX)
		cli_note(im->c, "%s:%u:%u: %s (%s)", im->name, line, column, what, repair);
}

/* The title after a URL. newsboat's urls file has "~Title" and then tags. */
static struct fw_str import_list_title(struct fw_str rest)
{
	struct fw_str tags;

	rest = fw_str_trim(rest);
	if (fw_str_starts(rest, FW_STR("\"~")))
		return fw_str_split(fw_str_sub(rest, 2, rest.len), '"', &tags);
	return rest;
}

static int import_list(struct import *im, struct fw_str text)
{
	struct fw_opml_outline o = {0};
	int rc = 0;

	while (!rc && text.p) {
		struct fw_str line = fw_str_split(text, '\n', &text), rest;

		o.line++;
		for (size_t i = 0; i < line.len; i++) {
			if (line.p[i] == '#' && (i == 0 || fw_is_space((unsigned char)line.p[i - 1])))
				line.len = i;
		}
		line = fw_str_trim(line);
		if (!line.len)
			continue;
		o.url = fw_str_split(line, ' ', &rest);
		if (memchr(line.p, '\t', line.len))
			o.url = fw_str_split(line, '\t', &rest);
		o.title = import_list_title(rest);
		rc = import_feed(im, &o);
	}
	return rc;
}

static struct fw_str import_skip_bom(struct fw_str text)
{
	return fw_str_starts(text, FW_STR("\xef\xbb\xbf")) ? fw_str_sub(text, 3, text.len) : text;
}

static bool import_is_markup(struct fw_str text)
{
	text = fw_str_trim(import_skip_bom(text));
	/* the OPML reader also decodes UTF-16 with a byte order mark */
	return text.len >= 2 && (text.p[0] == '<' || (unsigned char)text.p[0] >= 0xfe || text.p[0] == 0);
}

static int import_read(struct import *im, enum import_step step, struct fw_err *err)
{
	int rc;

	im->step = step;
	if (!import_is_markup(im->text))
		return import_list(im, import_skip_bom(im->text));
	rc = fw_opml_read(im->text.p, im->text.len, import_outline, import_problem, im, err);
	if (rc != FW_ELIMIT)
		return rc;
	if (!im->cut) /* once: what was read is imported */
		(void)cli_fail(im->c, CLI_SOME, "%s: %s", im->name, err->text);
	im->cut = true;
	return 0;
}

/* A list of URLs has no NUL; each line of a program would be one more wrong address. */
static bool import_is_binary(struct fw_str text)
{
	return !import_is_markup(text) && text.len && memchr(text.p, 0, text.len);
}

static int import_check(struct import *im)
{
	struct fw_err err = {0};
	int rc;

	if (import_is_binary(im->text))
		return cli_fail(im->c, CLI_SOME,
			"%s: neither OPML nor text: it has NUL bytes; give an OPML file, or text with one URL per line",
			im->name);
	rc = import_read(im, IMPORT_CHECK, &err);
	if (rc == FW_ENOMEM)
		return cli_fail(im->c, CLI_SOME, "%s: out of memory; nothing was imported", im->name);
	if (rc)
		return cli_fail(im->c, CLI_SOME, "%s: %s; nothing was imported", im->name, err.text);
	if (!im->n && !im->refused)
		return cli_fail(im->c, CLI_SOME,
			"%s: no feeds found (an OPML file needs outlines with xmlUrl, a list needs one URL per line)",
			im->name);
	return 0;
}

static int import_json(struct import *im)
{
	struct cli_json w;
	struct fw_err err = {0};
	int rc = 0;

	(void)cli_json_object_begin(&w, im->c);
	fw_json_int(&w.j, "added", (int64_t)(im->n - im->existed));
	fw_json_int(&w.j, "existed", (int64_t)im->existed);
	fw_json_int(&w.j, "refused", (int64_t)im->refused);
	fw_json_int(&w.j, "repaired", (int64_t)im->repaired);
	fw_json_array(&w.j, "feeds");
	im->json = &w;
	if (im->user)
		for (size_t i = 0; i < im->feed_n && !cli_out_failed(im->c); i++)
			import_print(im, &im->feed[i]);
	else if (im->n)
		rc = import_read(im, IMPORT_PRINT, &err);
	fw_json_end(&w.j);
	cli_json_object_end(&w, im->c);
	return rc == FW_ENOMEM ? cli_fail(im->c, CLI_SOME, "%s: out of memory", im->name) : 0;
}

/* Those that the store has with another login than the file. */
static void import_leave_out(struct import *im)
{
	size_t n = 0;

	for (size_t i = 0; i < im->feed_n; i++) {
		if (im->feed[i].id) {
			im->existed += im->feed[i].existed;
			im->feed[n++] = im->feed[i];
			continue;
		}
		im->refused++;
		if (im->shown++ < SHOWN_MAX)
			(void)cli_fail_login(im->c, im->name, im->feed[i].url);
	}
	im->n = im->feed_n = n;
}

/* From the start, also when the store repeats the transaction. */
static int import_put_all(void *ctx, const struct fw_subscribing *to, struct fw_err *err)
{
	struct import *im = ctx;
	int rc;

	im->to = to;
	im->err = err;
	im->feed_n = im->existed = 0;
	fw_buf_reset(&im->results);
	rc = import_read(im, IMPORT_STORE, err);
	rc = rc ? rc : import_put(im);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int import_for_user(struct import *im)
{
	struct cli *c = im->c;
	struct fw_err err = {0};
	int rc;

	if (import_read(im, IMPORT_STORE, &err))
		return cli_fail(c, CLI_SOME, "%s: out of memory; nothing was imported", im->name);
	rc = cli_account_import(c, im->user, im->feed, im->feed_n);
	if (!rc)
		import_leave_out(im);
	return rc;
}

static int import_store(struct import *im)
{
	struct cli *c = im->c;
	char x[FW_RFC3339_MAX], y[FW_RFC3339_MAX], z[FW_RFC3339_MAX];
	struct fw_err err = {0};
	int rc = im->n ? cli_store(c, im->user ? 0 : FW_STORE_CREATE) : 0;

	if (!rc && im->login_n && !im->user && import_read(im, IMPORT_LOGINS, &err))
		return cli_fail(c, CLI_SOME, "%s: its logins could not be compared; nothing was imported", im->name);
	if (!rc && im->n && im->user)
		rc = import_for_user(im);
	else if (!rc && im->n && fw_store_subscribe_each(c->store, import_put_all, im, &err))
		rc = cli_store_failed(c, &err);
	if (rc)
		return rc;
	if (im->shown > SHOWN_MAX)
		(void)cli_fail(c, CLI_SOME, "%s: and %zu more problems", im->name, im->shown - SHOWN_MAX);
	if (cli_flag(c, "json"))
		rc = import_json(im);
	else
		cli_out(c, "%s: %s added, %s already subscribed, %s refused\n", im->name,
			cli_number(x, (int64_t)(im->n - im->existed)), cli_number(y, (int64_t)im->existed),
			cli_number(z, (int64_t)im->refused));
	return rc ? rc : im->refused || im->dropped || im->cut ? CLI_SOME : CLI_OK;
}

static int import_run(struct cli *c)
{
	struct import im = {.c = c,
		.name = strcmp(c->arg[0], "-") ? c->arg[0] : "standard input",
		.folder = fw_str(cli_value(c, "folder")),
		.user = cli_value(c, "user"),
		.keep_results = cli_flag(c, "json"),
		.results = FW_BUF_INIT(0)};
	struct fw_buf text;
	int rc = cli_read(c, c->arg[0], IMPORT_MAX_BYTES, "256 MiB", &text);

	fw_arena_init(&im.arena, 0);
	im.text = fw_buf_str(&text);
	if (!rc)
		rc = import_check(&im);
	if (!rc)
		rc = import_store(&im);
	free(im.feed);
	fw_arena_finish(&im.arena);
	fw_buf_finish(&im.results);
	fw_buf_finish(&text);
	return rc;
}

static const struct cli_option IMPORT_OPTION[] = {
	{"folder", "FOLDER", "put all feeds and folders into this folder"},
	{"user", "USER", "subscribe them for this account"},
	{"json", NULL, "print a JSON object: counts and feeds"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_import = {
	.name = "import",
	.args = "FILE",
	.summary = "subscribe to the feeds of an OPML file or a list of URLs",
	.about = "FILE is OPML 2.0 with folders, or text with one URL per line, optionally followed by a title, and # "
		 "comments.\n"
		 "- is standard input. Invalid lines are reported and skipped (exit status 1); all others are "
		 "subscribed in one\n"
		 "transaction. Nothing is fetched yet.\n",
	.examples = "  feedwheel import subscriptions.opml\n  cut -f1 feeds.tsv | feedwheel import -\n"
		    "  newsboat -e | feedwheel import -\n",
	.option = IMPORT_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = import_run,
};
