/* SPDX-License-Identifier: ISC */
/* Does an entry match a query? What terms need of it is made when the first one needs it. */
#include <jansson.h>
#include <stdlib.h>

#include "base/url.h"
#include "query/query_scratch.h"
#include "query/words.h"

struct query_scratch *query_scratch_create(void)
{
	return calloc(1, sizeof(struct query_scratch));
}

void query_scratch_destroy(struct query_scratch *s)
{
	if (!s)
		return;
	entry_words_finish(&s->words);
	fw_buf_finish(&s->author);
	fw_buf_finish(&s->tags);
	fw_buf_finish(&s->folded);
	fw_buf_finish(&s->lang_buf);
	free(s);
}

void query_scratch_set(struct query_scratch *s, const struct query_subject *subject)
{
	s->subject = subject;
	s->ready = 0;
	s->failed = false;
}

bool query_scratch_failed(const struct query_scratch *s)
{
	return s->failed || (s->ready & SCRATCH_WORDS && s->words.failed);
}

/* ---- what is made of an entry ---------------------------------------------------------------- */

/* Is this part made already? If not, it is from now on. */
static bool scratch_has(struct query_scratch *s, unsigned part)
{
	bool has = s->ready & part;

	s->ready |= part;
	return has;
}

struct entry_words *scratch_words(struct query_scratch *s)
{
	if (!scratch_has(s, SCRATCH_WORDS))
		entry_words_set(&s->words, s->subject->entry);
	return &s->words;
}

/* Append the words of a text to a list of texts that starts with "\n". */
static void scratch_line_add(struct query_scratch *s, struct fw_buf *out, struct fw_str text)
{
	struct query_token token;
	struct fw_str rest;

	fw_buf_reset(&s->folded);
	query_words_title(&s->folded, text);
	rest = fw_buf_str(&s->folded);
	while (query_token_next(&rest, &token)) {
		fw_buf_add(out, token.text, token.len);
		fw_buf_addc(out, ' ');
	}
	if (out->len && out->p[out->len - 1] != '\n')
		fw_buf_addc(out, '\n');
	s->failed |= s->folded.rc || out->rc;
}

struct fw_str scratch_author(struct query_scratch *s)
{
	if (!scratch_has(s, SCRATCH_AUTHOR)) {
		fw_buf_reset(&s->author);
		fw_buf_addc(&s->author, '\n');
		scratch_line_add(s, &s->author, s->subject->entry->author);
	}
	return fw_buf_str(&s->author);
}

static struct fw_str scratch_json_str(const json_t *value)
{
	return json_is_string(value) ? (struct fw_str){json_string_value(value), json_string_length(value)} :
				       FW_STR_NONE;
}

static unsigned scratch_attachments(const json_t *list)
{
	static const struct {
		struct fw_str type;
		enum query_has has;
	} kind[] = {
		{{"audio/", 6}, QUERY_HAS_AUDIO}, {{"video/", 6}, QUERY_HAS_VIDEO}, {{"image/", 6}, QUERY_HAS_IMAGE}};
	unsigned has = json_array_size(list) ? 1u << QUERY_HAS_ATTACHMENT : 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		struct fw_str type = scratch_json_str(json_object_get(json_array_get(list, i), "mime_type"));

		for (size_t k = 0; k < FW_N(kind); k++)
			has |= fw_str_istarts(type, kind[k].type) ? 1u << kind[k].has : 0;
	}
	return has;
}

static void scratch_extra_read(struct query_scratch *s, const json_t *extra)
{
	const json_t *tags = json_object_get(extra, "tags");

	for (size_t i = 0; i < json_array_size(tags); i++)
		scratch_line_add(s, &s->tags, scratch_json_str(json_array_get(tags, i)));
	s->attachments = scratch_attachments(json_object_get(extra, "attachments"));
	fw_buf_addstr(&s->lang_buf, scratch_json_str(json_object_get(extra, "language")));
	s->failed |= s->lang_buf.rc != 0;
}

/* The members of the entry's JSON. What is not JSON has no members. */
static void scratch_extra(struct query_scratch *s)
{
	struct fw_str text = s->subject->entry->extra;
	json_error_t error;
	json_t *extra;

	if (scratch_has(s, SCRATCH_EXTRA))
		return;
	fw_buf_reset(&s->tags);
	fw_buf_addc(&s->tags, '\n');
	fw_buf_reset(&s->lang_buf);
	s->attachments = 0;
	if (text.len) {
		extra = json_loadb(text.p, text.len, JSON_ALLOW_NUL, &error);
		if (extra)
			scratch_extra_read(s, extra);
		else if (json_error_code(&error) == json_error_out_of_memory)
			s->failed = true;
		json_decref(extra);
	}
	s->lang = fw_str_trim(s->lang_buf.len ? fw_buf_str(&s->lang_buf) : s->subject->feed_language);
}

struct fw_str scratch_tags(struct query_scratch *s)
{
	scratch_extra(s);
	return fw_buf_str(&s->tags);
}

struct fw_str scratch_lang(struct query_scratch *s)
{
	scratch_extra(s);
	return s->lang;
}

struct fw_str scratch_host(struct query_scratch *s)
{
	if (!scratch_has(s, SCRATCH_HOST) && !fw_url_host(s->subject->entry->url, s->host, sizeof(s->host)))
		s->host[0] = '\0';
	return fw_str(s->host);
}

/* ---- terms ----------------------------------------------------------------------------------- */

/*
 * Do the words, each followed by a space, stand in the lines? A word stands behind a space or a
 * line end. whole: they are a whole line; with prefix: its start.
 */
static bool lines_contain(struct fw_str lines, struct fw_str words, bool prefix, bool whole)
{
	const char *at;

	words.len -= prefix; /* without the last space */
	while ((at = fw_str_find(lines, words))) {
		const char *end = at + words.len; /* a "\n" is the last byte of the lines */

		if ((at[-1] == '\n' || (at[-1] == ' ' && !whole)) && (!whole || prefix || *end == '\n'))
			return true;
		lines = (struct fw_str){at + 1, (size_t)(lines.p + lines.len - at) - 1};
	}
	return false;
}

/* Is text the name, or does it end with "." and the name? */
static bool host_is_within(struct fw_str host, struct fw_str name)
{
	struct fw_str end = fw_str_sub(host, host.len - FW_MIN(name.len, host.len), host.len);

	return name.len && fw_str_ieq(end, name) && (host.len == name.len || host.p[host.len - name.len - 1] == '.');
}

static bool lang_is_within(struct fw_str lang, struct fw_str wanted)
{
	return fw_str_istarts(lang, wanted) &&
		(lang.len == wanted.len || lang.p[wanted.len] == '-' || lang.p[wanted.len] == '_');
}

/*
 * Does it show at a glance that none of these texts has the words? Only so for ASCII, which folding
 * leaves as it is but for case, and without the escapes of JSON.
 */
static bool text_lacks(struct fw_str text, struct fw_str words)
{
	struct fw_str rest, word = fw_str_split(words, ' ', &rest);

	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.p[i] >= 0x80 || text.p[i] == '\\')
			return false;
	}
	return !text.len || !fw_str_ifind(text, word);
}

static bool eval_lang_matches(const struct query_node *q, struct query_scratch *s)
{
	const struct query_subject *subject = s->subject;

	if (text_lacks(subject->entry->extra, q->text) && text_lacks(subject->feed_language, q->text))
		return false;
	return lang_is_within(scratch_lang(s), q->text);
}

static bool eval_feed_matches(const struct query_node *term, const struct query_subject *subject)
{
	if (term->number)
		return term->number == subject->feed_id;
	return fw_str_ifind(subject->feed_url, term->text) || fw_str_ifind(subject->feed_title, term->text);
}

bool query_has_matches(enum query_has has, struct query_scratch *s)
{
	switch (has) {
	case QUERY_HAS_AUTHOR:
		return s->subject->entry->author.len > 0;
	case QUERY_HAS_LINK:
		return s->subject->entry->url.len > 0;
	case QUERY_HAS_CONTENT:
		return s->subject->entry->content.len > 0;
	case QUERY_HAS_TAG:
		return !text_lacks(s->subject->entry->extra, FW_STR("tags")) && scratch_tags(s).len > 1;
	case QUERY_HAS_AUDIO:
	case QUERY_HAS_VIDEO:
	case QUERY_HAS_IMAGE:
	case QUERY_HAS_ATTACHMENT:
	case QUERY_HAS_N:
		break;
	}
	if (text_lacks(s->subject->entry->extra, FW_STR("attachments")))
		return false;
	scratch_extra(s);
	return s->attachments & (1u << has);
}

bool query_term_matches(const struct query_node *q, struct query_scratch *s)
{
	const struct query_subject *subject = s->subject;
	int64_t seen_ms = subject->entry->seen_ms ? subject->entry->seen_ms : subject->now_ms;

	switch (q->op) {
	case QUERY_WORDS:
		return entry_words_contain(scratch_words(s), q->text, q->prefix, false);
	case QUERY_TITLE:
		return entry_words_contain(scratch_words(s), q->text, q->prefix, true);
	case QUERY_AUTHOR:
		return !text_lacks(subject->entry->author, q->text) &&
			lines_contain(scratch_author(s), q->text, q->prefix, false);
	case QUERY_TAG:
		return !text_lacks(subject->entry->extra, q->text) &&
			lines_contain(scratch_tags(s), q->text, q->prefix, true);
	case QUERY_URL:
		return fw_str_ifind(subject->entry->url, q->text) != NULL;
	case QUERY_SITE:
		return host_is_within(scratch_host(s), q->text);
	case QUERY_FEED:
		return eval_feed_matches(q, subject);
	case QUERY_FOLDER:
		return fw_path_is_within(subject->feed_folder, q->text);
	case QUERY_LANG:
		return eval_lang_matches(q, s);
	case QUERY_SINCE:
		return seen_ms >= q->at_ms;
	case QUERY_UNTIL:
		return seen_ms < q->at_ms;
	case QUERY_HAS:
		return query_has_matches((enum query_has)q->number, s);
	case QUERY_AND:
	case QUERY_OR:
	case QUERY_NOT:
		break;
	}
	return query_matches(q, s);
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Does one child match, or with all: each of them? */
static bool children_match(const struct query_node *q, struct query_scratch *s, bool all)
{
	for (const struct query_node *c = q->child; c; c = c->next) {
		if (query_matches(c, s) != all)
			return !all;
	}
	return all;
}

bool query_matches(const struct query_node *q, struct query_scratch *s)
{
	if (!q)
		return true;
	if (q->op == QUERY_NOT)
		return !query_matches(q->child, s);
	if (q->op == QUERY_AND || q->op == QUERY_OR)
		return children_match(q, s, q->op == QUERY_AND);
	return query_term_matches(q, s);
}
