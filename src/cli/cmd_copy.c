/* SPDX-License-Identifier: ISC */
/* copy FROM TO: copy a whole store into an empty one of any engine, then compare the two. */
#include "cli/progress.h"

#define SHOWN_MAX 20 /* differences printed one by one; the rest is counted */

struct copy_command {
	struct cli *c;
	struct cli_progress progress;
	size_t shown;
};

static void copy_difference(void *ctx, const char *words)
{
	struct copy_command *k = ctx;

	cli_progress_end(&k->progress);
	if (k->shown++ < SHOWN_MAX)
		(void)cli_fail(k->c, CLI_SOME, "%s", words);
}

/* Show the progress. Rows of an earlier copy count as done. */
static void copy_show_progress(void *ctx, const struct fw_copy_stats *s)
{
	struct copy_command *k = ctx;
	const struct {
		const char *words;
		int64_t done, total;
	} PHASE[] = {
		[FW_COPY_UPDATE] = {"feed numbers checked for changes", s->verified, 0},
		[FW_COPY_FEEDS] = {"feeds", s->feed_before + s->feeds, s->feed_total},
		[FW_COPY_ENTRIES] = {"entries", s->entry_before + s->entries, s->entry_total},
		[FW_COPY_KEYS] = {"keys of deleted entries", s->keys, 0},
		[FW_COPY_VISITS] = {"visits", s->visit_before + s->visits, s->visit_total},
		[FW_COPY_EVENTS] = {"pushed events", s->events + s->dead_letters, 0},
		[FW_COPY_RECORDS] = {"records", s->records, 0},
		[FW_COPY_VERIFY] = {"feed numbers compared", s->verified, 0},
	};
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX], bytes[FW_RFC3339_MAX];
	struct fw_buf line = FW_BUF_INIT(0);

	if (s->phase == FW_COPY_DONE)
		return;
	fw_buf_addf(&line, "%s%s%s %s  %s copied", cli_number(a, PHASE[s->phase].done),
		PHASE[s->phase].total ? "/" : "", PHASE[s->phase].total ? cli_number(b, PHASE[s->phase].total) : "",
		PHASE[s->phase].words, cli_bytes(bytes, s->bytes));
	if (k->progress.tty)
		line.len = FW_MIN(line.len, (size_t)k->c->term.width - 1);
	cli_progress_draw(&k->progress, &line, s->elapsed_ms);
	fw_buf_finish(&line);
}

/* Open one of the two stores; an error names it. */
static int copy_open_store(struct cli *c, const char *url, unsigned flags, struct fw_store **out)
{
	struct fw_store_config sc = {
		.url = url, .flags = flags, .page_cache_bytes = (size_t)c->config->page_cache_bytes};
	struct fw_err err = {0};

	return fw_store_open(&sc, out, &err) ? cli_store_failed(c, &err) : 0;
}

/*
 * Warn if workers run on the source: what they store from now on is not copied, and feeds they
 * visit will differ.
 */
static int copy_warn_workers(struct cli *c, struct fw_store *from)
{
	struct fw_control newest;
	struct fw_err err = {0};
	size_t n;
	int rc = cli_workers(c, from, &n);

	if (rc)
		return rc;
	if (fw_store_control_get(from, -1, &newest, &err))
		return cli_store_failed(c, &err);
	if (n && !newest.paused)
		cli_note(c,
			"%zu worker%s running on the source: rows stored from now on are not copied (to prevent this, "
			"run 'feedwheel pause --all' or 'feedwheel stop' first)",
			n, n == 1 ? " is" : "s are");
	return 0;
}

static void copy_json(struct cli *c, const struct fw_copy_stats *s)
{
	const struct {
		const char *name;
		int64_t v;
	} MEMBER[] = {
		{"feeds", s->feeds},
		{"entries", s->entries},
		{"keys", s->keys},
		{"visits", s->visits},
		{"events", s->events},
		{"dead_letters", s->dead_letters},
		{"records", s->records},
		{"feeds_before", s->feed_before},
		{"entries_before", s->entry_before},
		{"visits_before", s->visit_before},
		{"updated", s->updated},
		{"removed", s->removed},
		{"bytes", (int64_t)s->bytes},
		{"differing", s->differing},
		{"elapsed_ms", s->elapsed_ms},
	};
	struct cli_json out;

	cli_json_begin(&out, true);
	fw_json_object(&out.j, NULL);
	for (size_t i = 0; i < FW_N(MEMBER); i++)
		fw_json_int(&out.j, MEMBER[i].name, MEMBER[i].v);
	fw_json_bool(&out.j, "source_changed", s->source_changed);
	fw_json_end(&out.j);
	cli_json_end(&out, c);
}

static int copy_summary(struct copy_command *k, const struct fw_copy_stats *s)
{
	struct cli *c = k->c;
	char f[FW_RFC3339_MAX], e[FW_RFC3339_MAX], g[FW_RFC3339_MAX], v[FW_RFC3339_MAX], t[FW_RFC3339_MAX];

	if (cli_flag(c, "json"))
		copy_json(c, s);
	else
		cli_out(c, "copied %s, %s, %s of deleted entries and %s in %s\n",
			cli_count(f, s->feeds, "feed", "feeds"), cli_count(e, s->entries, "entry", "entries"),
			cli_count(g, s->keys, "key", "keys"), cli_count(v, s->visits, "visit", "visits"),
			fw_duration_text(t, s->elapsed_ms));
	if ((s->events || s->dead_letters) && !cli_flag(c, "json"))
		cli_out(c, "and %s, %s dead letters\n", cli_count(f, s->events, "pushed event", "pushed events"),
			cli_number(e, s->dead_letters));
	if (s->records && !cli_flag(c, "json"))
		cli_out(c, "and %s (access tokens and the like)\n", cli_count(f, s->records, "record", "records"));
	if ((s->updated || s->removed) && !cli_flag(c, "json"))
		cli_out(c, "in the existing copy %s changed and %s no longer at the source\n",
			cli_count(f, s->updated, "feed", "feeds"), cli_count(e, s->removed, "feed", "feeds"));
	if (k->shown > SHOWN_MAX)
		(void)cli_fail(c, CLI_SOME, "and %zu more differences", k->shown - SHOWN_MAX);
	if (s->differing)
		return cli_fail(c, CLI_SOME,
			s->source_changed ?
				"the stores differ because the source changed during the copy; the target stays paused"
				" (stop the source's workers, then run 'feedwheel copy --continue')" :
				"the stores differ; the target stays paused (run 'feedwheel copy --continue', or copy "
				"into an empty store)");
	if (!cli_flag(c, "json"))
		cli_out(c,
			"both stores are equal; not copied: leases, cooldowns of hosts, heartbeats, messages to "
			"workers, icons, the search index (rebuilt)\n");
	return CLI_OK;
}

static int copy_stores(struct cli *c, struct fw_store *from, struct fw_store *to)
{
	struct copy_command k = {.c = c};
	struct fw_copy_options o = {.resume = cli_flag(c, "continue"),
		.batch_bytes = (size_t)c->config->batch_bytes,
		.progress = copy_show_progress,
		.differs = copy_difference,
		.ctx = &k};
	struct fw_copy_stats s;
	struct fw_err err = {0};
	int rc = copy_warn_workers(c, from);

	if (rc)
		return rc;
	cli_progress_init(&k.progress, c, cli_flag(c, "progress"));
	rc = fw_copy(from, to, &o, &s, &err);
	cli_progress_end(&k.progress);
	if (rc == FW_EINVAL)
		return cli_fail(c, CLI_USAGE, "%s", err.text);
	if (rc)
		return cli_fail(c, CLI_STORE,
			"%s (rows copied so far are kept; to continue, run 'feedwheel copy --continue')", err.text);
	return copy_summary(&k, &s);
}

static int copy_run(struct cli *c)
{
	struct fw_store *from = NULL, *to = NULL;
	int rc;

	if (strcmp(c->arg[0], c->arg[1]) == 0)
		return cli_usage(c, "FROM and TO are the same store");
	rc = copy_open_store(c, c->arg[0], FW_STORE_READ, &from);
	rc = rc ? rc : copy_open_store(c, c->arg[1], FW_STORE_CREATE, &to);
	rc = rc ? rc : copy_stores(c, from, to);
	fw_store_close(from);
	fw_store_close(to);
	return rc;
}

static const struct cli_option COPY_OPTION[] = {
	{"continue", NULL, "continue an interrupted copy, or bring an older copy up to date"},
	{"progress", NULL, "print a progress line every few seconds if stderr is not a terminal"},
	{"json", NULL, "print the summary as JSON"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_copy = {
	.name = "copy",
	.args = "FROM TO",
	.summary = "copy a whole store into an empty one and compare the two",
	.about = "Copies feeds with their settings and state, entries, keys of deleted entries, visits and pushed "
		 "events, all with their\n"
		 "numbers, and records such as access tokens. TO must be empty. Workers on TO stay paused until both "
		 "stores are equal.\n"
		 "Either stop the workers on FROM first; or copy while they run, then stop them and copy again with "
		 "--continue, which brings\n"
		 "TO up to date. --continue also resumes an interrupted copy. Exit status 1: the stores differ at the "
		 "end.\n",
	.examples = "  feedwheel copy sqlite:/srv/feeds.db postgres://feedwheel@db.example.org/feeds\n"
		    "  feedwheel copy --continue sqlite:/srv/feeds.db postgres://feedwheel@db.example.org/feeds\n",
	.option = COPY_OPTION,
	.min_args = 2,
	.max_args = 2,
	.run = copy_run,
};
