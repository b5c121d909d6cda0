/* SPDX-License-Identifier: ISC */
/*
 * read ENTRY: print one entry, first its properties, then its text; or, with --revisions, its
 * versions and what each changed. Through a pager on a terminal.
 */
#include "base/diff.h"
#include "api/change.h"
#include "base/diff.h"
#include "cli/cli.h"

struct reading {
	struct cli *c;
	struct cli_pager pager;
	bool raw, found;
	int rc;
};

static void read_print_time(struct cli *c, const char *name, int64_t at_ms)
{
	char text[2 * FW_RFC3339_MAX];

	if (!fw_date_known(at_ms))
		return;
	cli_label(c, name);
	cli_out(c, "%s\n", cli_when(c, text, at_ms));
}

static void authors_print(struct cli *c, const struct fw_person *p)
{
	const char *between = "";

	if (!p)
		return;
	cli_label(c, p->next ? "authors" : "author");
	for (; p; p = p->next) {
		cli_out(c, "%s", between);
		cli_out_safe(c, p->name.len ? p->name : p->email.len ? p->email : p->url);
		between = ", ";
	}
	cli_out(c, "\n");
}

static void tags_print(struct cli *c, const struct fw_category *t)
{
	const char *between = "";

	if (!t)
		return;
	cli_label(c, "tags");
	for (; t; t = t->next) {
		cli_out(c, "%s", between);
		cli_out_safe(c, t->label.len ? t->label : t->term);
		between = ", ";
	}
	cli_out(c, "\n");
}

static void attachment_print(struct cli *c, const struct fw_attachment *a)
{
	char text[FW_RFC3339_MAX];
	bool more = a->mime_type.len || a->size_bytes != FW_NO_NUMBER || a->duration_ms != FW_NO_NUMBER;

	cli_label(c, "attachment");
	cli_out_safe(c, a->url);
	cli_out(c, more ? " (" : "");
	cli_out_safe(c, a->mime_type);
	if (a->size_bytes != FW_NO_NUMBER)
		cli_out(c, "%s%s", a->mime_type.len ? ", " : "",
			cli_bytes(text, (uint64_t)FW_MAX(a->size_bytes, INT64_C(0))));
	if (a->duration_ms != FW_NO_NUMBER)
		cli_out(c, "%s%s", a->mime_type.len || a->size_bytes != FW_NO_NUMBER ? ", " : "",
			fw_duration_text(text, a->duration_ms));
	cli_out(c, more ? ")\n" : "\n");
}

/* 0; CLI_SOME: the entry's JSON could not be read, so members are missing. */
static int head_print(struct cli *c, const struct fw_entry_row *r)
{
	struct fw_document *doc = cli_entry_document(c, r);
	const struct fw_entry *e = doc ? doc->entries : NULL;
	struct fw_buf title = FW_BUF_INIT(0);

	cli_fit(&title, &c->term, cli_entry_title(c, r), r->title.len ? 0 : (size_t)c->term.width);
	cli_paint(&c->out, c->term.out_colour, CLI_BOLD, fw_buf_str(&title));
	fw_buf_finish(&title);
	cli_out(c, "\n\n");
	cli_label(c, "feed");
	cli_out_safe(c, r->feed_title.len ? r->feed_title : r->feed_url);
	cli_out(c, " (feed %lld)\n", (long long)r->feed_id);
	if (e && e->authors)
		authors_print(c, e->authors);
	else
		cli_line(c, "author", r->author);
	read_print_time(c, "published", r->published_ms);
	if (r->updated_ms != r->published_ms)
		read_print_time(c, "updated", r->updated_ms);
	read_print_time(c, "stored", r->seen_ms);
	if (r->changed_ms != r->seen_ms)
		read_print_time(c, "changed", r->changed_ms);
	if (e)
		tags_print(c, e->categories);
	cli_line(c, "link", r->url);
	if (!r->url.len)
		cli_line(c, "id", r->guid);
	if (e && !fw_str_eq(e->external_url, r->url))
		cli_line(c, "about", e->external_url);
	for (const struct fw_attachment *a = e ? e->attachments : NULL; a; a = a->next)
		attachment_print(c, a);
	fw_document_free(doc);
	cli_out_wrap(c, CLI_LABEL_COLUMNS);
	return e ? 0 : CLI_SOME;
}

static int read_print_text(void *ctx, const struct fw_entry_row *r)
{
	struct reading *k = ctx;

	k->found = true;
	if (!cli_flag(k->c, "no-pager"))
		cli_pager_open(&k->pager, k->c);
	k->rc = head_print(k->c, r);
	if (r->content.len || r->summary.len) {
		cli_out(k->c, "\n");
		k->rc = FW_MAX(k->rc, cli_entry_content(k->c, r, k->raw, 0));
	}
	return 0;
}

static int read_print_json(void *ctx, const struct fw_entry_row *r)
{
	struct reading *k = ctx;
	struct cli_json w;
	struct fw_err err = {0};

	k->found = true;
	cli_json_begin(&w, true);
	if (fw_entry_json(&w.j, r, FW_VIEW_CONTENT | (k->raw ? FW_VIEW_RAW : 0), &err))
		k->rc = cli_fail(k->c, CLI_SOME, "%s", err.text);
	cli_json_end(&w, k->c);
	return 0;
}

/* ---- versions -------------------------------------------------------------------------------- */

#define AROUND 12 /* words that are shown before and behind a difference */

/* The length of the first n words of s, or with back of the last n. */
static size_t words_len(struct fw_str s, int n, bool back)
{
	size_t len = 0;
	bool in = false;

	for (; len < s.len; len++) {
		bool space = fw_is_space((unsigned char)s.p[back ? s.len - 1 - len : len]);

		if (in && space && --n == 0)
			break;
		in = !space;
	}
	return len;
}

/* "a [-b-]{+c+}", as git shows words: also without colours it is clear what was removed. */
static void version_print_run(void *ctx, enum fw_diff_op op, struct fw_str text)
{
	static const struct {
		const char *style, *before, *behind;
	} LOOK[] = {{"", "", ""}, {CLI_RED, "[-", "-]"}, {CLI_GREEN, "{+", "+}"}};
	struct cli *c = ctx;
	struct fw_str words = fw_str_trim(text);
	size_t head = words_len(words, AROUND, false), tail = words_len(words, AROUND, true);
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_adds(&b, LOOK[op].before);
	if (op == FW_DIFF_SAME && head + tail < words.len) {
		cli_fit(&b, &c->term, fw_str_sub(words, 0, head), 0);
		fw_buf_adds(&b, " ... ");
		words = fw_str_sub(words, words.len - tail, words.len);
	}
	cli_fit(&b, &c->term, words, 0);
	fw_buf_adds(&b, LOOK[op].behind);
	cli_paint(&c->out, c->term.out_colour, LOOK[op].style, fw_buf_str(&b));
	if (words.p + words.len < text.p + text.len)
		cli_out(c, " ");
	fw_buf_finish(&b);
}

/* What the version changed; the oldest one that is kept as it is. */
static int version_print(struct cli *c, const struct fw_version *v, const struct fw_version *before)
{
	char text[2 * FW_RFC3339_MAX];
	int rc;

	cli_out(c, "version %u, %s%s\n", v->row.revision, cli_when(c, text, v->row.changed_ms),
		before ? "" : " (no earlier one is kept)");
	if (!before) {
		cli_out_safe(c, v->row.title);
		cli_out(c, "\n");
		cli_out_safe(c, v->text);
		cli_out(c, "\n");
		return 0;
	}
	rc = fw_text_diff(before->row.title, v->row.title, version_print_run, c);
	cli_out(c, "\n");
	if (v->cut || before->cut)
		cli_out(c, "(the text of version %u was too long to be kept: revision_max_bytes)\n",
			before->cut ? before->row.revision : v->row.revision);
	else
		rc = rc ? rc : fw_text_diff(before->text, v->text, version_print_run, c);
	cli_out(c, "\n");
	return rc ? cli_fail(c, CLI_STORE, "out of memory") : 0;
}

static int versions_print(struct reading *k, const struct fw_version *v, size_t n)
{
	struct cli *c = k->c;

	if (!cli_flag(c, "no-pager"))
		cli_pager_open(&k->pager, c);
	for (size_t i = 0; !k->rc && i < n; i++) {
		cli_out(c, i ? "\n" : "");
		k->rc = version_print(c, &v[i], i + 1 < n ? &v[i + 1] : NULL);
	}
	cli_out_wrap(c, 0);
	return FW_MAX(k->rc, cli_pager_close(&k->pager, c));
}

static int versions_print_json(struct reading *k, const struct fw_version *v, size_t n)
{
	unsigned flags = FW_VIEW_CONTENT | (k->raw ? FW_VIEW_RAW : 0);
	struct fw_err err = {0};
	struct cli_json w;

	cli_json_begin(&w, true);
	fw_json_array(&w.j, NULL);
	for (size_t i = 0; !k->rc && i < n; i++) {
		if (fw_version_json(&w.j, NULL, &v[i], i + 1 < n ? &v[i + 1] : NULL, flags, &err))
			k->rc = cli_fail(k->c, CLI_SOME, "%s", err.text);
	}
	fw_json_end(&w.j);
	cli_json_end(&w, k->c);
	return k->rc;
}

static int read_versions(struct reading *k, int64_t id)
{
	struct fw_err err = {0};
	struct fw_version *v;
	size_t n;
	int rc = fw_version_list(k->c->store, id, &k->c->arena, &v, &n, &err);

	if (rc == FW_ENOTFOUND)
		return cli_entry_missing(k->c, id);
	if (rc)
		return cli_store_failed(k->c, &err);
	return cli_flag(k->c, "json") ? versions_print_json(k, v, n) : versions_print(k, v, n);
}

static int read_run(struct cli *c)
{
	struct reading k = {.c = c, .raw = cli_flag(c, "raw")};
	struct fw_entry_query q;
	struct fw_err err = {0};
	int64_t id;
	int rc;

	if (!cli_is_number(c->arg[0], &id))
		return cli_usage(c, "ENTRY must be a number that 'feedwheel entries' prints, not '%.60s'", c->arg[0]);
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	if (cli_flag(c, "revisions"))
		return read_versions(&k, id);
	q = cli_entry_query(id);
	rc = fw_store_entry_list(c->store, &q, cli_flag(c, "json") ? read_print_json : read_print_text, &k, &err);
	k.rc = FW_MAX(k.rc, cli_pager_close(&k.pager, c));
	if (rc < 0)
		return cli_store_failed(c, &err);
	return k.found ? k.rc : cli_entry_missing(c, id);
}

static const struct cli_option READ_OPTION[] = {
	{"revisions", NULL, "show its versions, the newest first, and what each changed: [-removed-]{+added+}"},
	{"raw", NULL, "do not sanitize the content"},
	{"json", NULL, "print a JSON Feed 1.1 item with its content"},
	{"no-pager", NULL, "do not use a pager"},
	{NULL, NULL, NULL},
};

const struct cli_command cli_read_command = {
	.name = "read",
	.args = "ENTRY",
	.summary = "show one entry with its text",
	.about = "ENTRY is a number that 'entries' prints. On a terminal the entry is shown by the pager in PAGER, "
		 "else by less or more.\n",
	.examples = "  feedwheel read 4711\n  feedwheel read 4711 --json | jq -r .content_html\n"
		    "  feedwheel read 4711 --revisions\n",
	.option = READ_OPTION,
	.min_args = 1,
	.max_args = 1,
	.run = read_run,
};
