/* SPDX-License-Identifier: ISC */
#include "http/readers/miniflux/filter.h"
#include "base/clock.h"

#define SECONDS_MAX INT64_C(1000000000000)

struct filter {
	const struct http_form *form;
	const char *name, *expected; /* of the wrong parameter */
};

static bool filter_number(struct filter *f, const char *name, int64_t max, int64_t *out)
{
	f->name = name;
	f->expected = "a number, 0 or more";
	return http_form_number(f->form, name, max, out);
}

/* A time in seconds; 0: none. *out_ms stays then. */
static bool filter_time(struct filter *f, const char *name, int64_t *out_ms)
{
	int64_t s = 0;

	if (!filter_number(f, name, SECONDS_MAX, &s)) {
		f->expected = "a time in seconds since 1970";
		return false;
	}
	if (s)
		*out_ms = s * FW_SECOND_MS;
	return true;
}

/* One of words (separated by spaces). *which: its index, untouched when absent. */
static bool filter_word(struct filter *f, const char *name, const char *words, int *which)
{
	struct fw_str s = http_form_get(f->form, name), rest = fw_str(words);

	f->name = name;
	f->expected = words;
	for (int i = 0; s.len && rest.p; i++) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), s)) {
			*which = i;
			return true;
		}
	}
	return !s.len;
}

static bool filter_status(struct filter *f, struct miniflux_filter *out)
{
	bool has[3] = {false}; /* unread, read, removed */
	struct fw_str text;
	size_t at = 0;

	f->name = "status";
	f->expected = "unread, read or removed";
	while ((text = http_form_next(f->form, "status", &at)).p) {
		if (fw_str_eq(text, FW_STR("unread")))
			has[0] = true;
		else if (fw_str_eq(text, FW_STR("read")))
			has[1] = true;
		else if (fw_str_eq(text, FW_STR("removed")))
			has[2] = true;
		else if (text.len)
			return false;
	}
	if (has[0] != has[1])
		out->s.read = has[0] ? FW_READ_UNREAD : FW_READ_READ;
	out->nothing = has[2] && !has[0] && !has[1];
	return true;
}

int miniflux_bool(struct fw_str s)
{
	static const char *const WORD[] = {
		"0", "1", "f", "t", "F", "T", "false", "true", "FALSE", "TRUE", "False", "True"};

	for (int i = 0; i < (int)FW_N(WORD); i++) {
		if (fw_str_eq(s, fw_str(WORD[i])))
			return i % 2;
	}
	return -1;
}

static void filter_starred(struct filter *f, struct miniflux_filter *out)
{
	int starred = miniflux_bool(http_form_get(f->form, "starred"));

	out->s.label_id = FW_LABEL_STARRED;
	out->s.labelled = starred == 1;
	out->s.not_labelled = starred == 0;
}

static bool filter_times(struct filter *f, struct miniflux_filter *out)
{
	int64_t until_ms = 0, since_ms = 0;
	struct fw_stream *s = &out->s;

	if (!filter_time(f, "before", &until_ms) || !filter_time(f, "published_before", &until_ms) ||
		!filter_time(f, "after", &since_ms) || !filter_time(f, "published_after", &since_ms) ||
		!filter_time(f, "changed_before", &s->until_ms) ||
		!filter_time(f, "changed_after", &out->changed_after_ms))
		return false;
	s->published_until_ms = until_ms;
	s->published_since_ms = since_ms ? since_ms + 1 : 0; /* after, not at */
	return true;
}

static bool filter_order(struct filter *f, struct miniflux_filter *out)
{
	static const struct {
		enum miniflux_order order;
		enum fw_stream_sort sort;
	} ORDER[] = {{.order = MINIFLUX_BY_DATE}, {.order = MINIFLUX_BY_ID}, {.order = MINIFLUX_BY_ID},
		{.order = MINIFLUX_BY_STATUS}, {.order = MINIFLUX_BY_CATEGORY_TITLE},
		{.order = MINIFLUX_BY_CATEGORY_ID}, {MINIFLUX_BY_SORT, FW_SORT_CHANGED},
		{MINIFLUX_BY_SORT, FW_SORT_TITLE}, {MINIFLUX_BY_SORT, FW_SORT_AUTHOR}};
	const char *words = "published_at id created_at status category_title category_id changed_at title author";
	int order = 0, down = 0;

	if (!filter_word(f, "order", words, &order) || !filter_word(f, "direction", "asc desc", &down))
		return false;
	out->order = ORDER[order].order;
	out->s.sort = ORDER[order].sort;
	out->s.by_date = out->order == MINIFLUX_BY_DATE;
	out->s.oldest_first = !down;
	return true;
}

static bool filter_page(struct filter *f, struct miniflux_filter *out)
{
	int64_t limit = MINIFLUX_LIMIT, offset = 0;

	if (!filter_number(f, "limit", INT32_MAX, &limit) || !filter_number(f, "offset", INT32_MAX, &offset))
		return false;
	out->s.limit = (size_t)limit;
	out->s.offset = (size_t)offset;
	return true;
}

/* Entries have no index of tags; without the filter a client would get all entries. */
static bool filter_tags(struct filter *f)
{
	struct fw_str text;
	size_t at = 0;

	f->name = "tags";
	f->expected = "none: use search=tag:NAME";
	while ((text = http_form_next(f->form, "tags", &at)).p) {
		if (text.len)
			return false;
	}
	return true;
}

bool miniflux_filter_read(
	const struct http_form *form, struct miniflux_filter *out, const char **name, const char **expected)
{
	struct filter f = {.form = form};
	struct fw_str search = http_form_get(form, "search");
	bool good;

	*out = (struct miniflux_filter){.nothing = false};
	if (fw_str_trim(search).len)
		out->s.search = search;
	filter_starred(&f, out);
	good = filter_status(&f, out) && filter_times(&f, out) && filter_order(&f, out) && filter_page(&f, out) &&
		filter_number(&f, "before_entry_id", INT64_MAX, &out->s.before_id) &&
		filter_number(&f, "after_entry_id", INT64_MAX, &out->s.after_id) &&
		filter_number(&f, "feed_id", INT64_MAX, &out->feed_id) &&
		filter_number(&f, "category_id", INT64_MAX, &out->category_id) && filter_tags(&f);
	*name = f.name;
	*expected = f.expected;
	return good;
}
