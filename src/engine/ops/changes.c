/* SPDX-License-Identifier: ISC */
/* Places in the log of changes, and the JSON of changes and of an entry's versions. */
#include <assert.h>

#include "api/change.h"
#include "api/view.h"
#include "base/arena.h"
#include "base/diff.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "parse/html/text.h"
#include "store/driver.h"

/* ---- places ---------------------------------------------------------------------------------- */

bool fw_change_place_read(struct fw_str text, struct fw_change_query *q)
{
	struct fw_str base, after = fw_str_split(text, '.', &base);

	q->base_id = 0;
	return fw_str_int(after, &q->after_id) && q->after_id >= 0 &&
		(!base.p || (fw_str_int(base, &q->base_id) && q->base_id >= 0));
}

void fw_change_place_next(struct fw_change_query *q, char out[FW_CHANGE_PLACE_MAX])
{
	q->base_id = q->after_id || q->base_id ? q->base_id : q->head_id;
	q->after_id = q->next_id;
	if (q->base_id <= q->after_id)
		q->base_id = 0; /* the first read is over */
	if (q->base_id)
		(void)fw_snprintf(out, FW_CHANGE_PLACE_MAX, "%lld.%lld", (long long)q->after_id, (long long)q->base_id);
	else
		(void)fw_snprintf(out, FW_CHANGE_PLACE_MAX, "%lld", (long long)q->after_id);
}

void fw_change_json_begin(struct fw_json *j, const char *key, const struct fw_change *c)
{
	fw_json_object(j, key);
	fw_json_int(j, "id", c->id);
	fw_json_cstr(j, "type", fw_change_kind_name(c->kind));
	fw_json_int(j, "entry", c->entry_id);
	fw_json_int(j, "feed", c->feed_id);
	if (c->revision)
		fw_json_int(j, "revision", c->revision);
	fw_json_time(j, "at", c->at_ms);
}

int fw_change_json(struct fw_json *j, const char *key, const struct fw_change *c, unsigned flags, struct fw_err *err)
{
	int rc = 0;

	fw_change_json_begin(j, key, c);
	if (c->entry) {
		fw_json_key(j, "item");
		rc = fw_entry_json(j, c->entry, flags, err);
	}
	fw_json_end(j);
	return rc;
}

/* ---- versions -------------------------------------------------------------------------------- */

struct version_listing {
	struct fw_arena *a;
	struct fw_version *first; /* the newest; each is put before the last, as they come oldest first */
	size_t n, cap;
};

static int version_add(struct version_listing *l, const struct fw_entry_row *row, bool cut)
{
	struct fw_version *v, *more;

	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 8;
		more = fw_arena_calloc(l->a, l->cap, sizeof(*more));
		if (!more)
			return FW_ENOMEM;
		for (size_t i = 0; i < l->n; i++)
			more[i] = l->first[i];
		l->first = more;
	}
	v = &l->first[l->n++];
	v->cut = cut;
	v->row = *row;
	if (!fw_store_entry_dup(l->a, &v->row))
		return FW_ENOMEM;
	v->text = v->row.content.len ? v->row.content : v->row.summary;
	if (v->row.content.len ? v->row.content_type == FW_TEXT_HTML : fw_html_has_markup(v->text))
		v->text = fw_html_text(l->a, v->text);
	return l->a->failed ? FW_ENOMEM : 0;
}

static int version_on_revision(void *ctx, const struct fw_entry_row *row, bool cut)
{
	return version_add(ctx, row, cut);
}

static int version_on_entry(void *ctx, const struct fw_entry_row *row)
{
	return version_add(ctx, row, false);
}

int fw_version_list(struct fw_store *st, int64_t entry_id, struct fw_arena *a, struct fw_version **out, size_t *n,
	struct fw_err *err)
{
	struct fw_entry_query now = {.after_id = entry_id - 1, .before_id = entry_id + 1, .content = true};
	struct version_listing l = {.a = a};
	int rc = fw_store_revision_list(st, entry_id, version_on_revision, &l, err);
	size_t earlier_n = l.n;

	rc = rc ? rc : fw_store_entry_list(st, &now, version_on_entry, &l, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (l.n == earlier_n)
		return fw_err_set(err, FW_ENOTFOUND, "no entry has the number %lld", (long long)entry_id);
	for (size_t i = 0; i < earlier_n; i++) { /* a revision has no columns of its feed */
		l.first[i].row.feed_title = l.first[earlier_n].row.feed_title;
		l.first[i].row.feed_url = l.first[earlier_n].row.feed_url;
		l.first[i].row.feed_folder = l.first[earlier_n].row.feed_folder;
	}
	for (size_t i = 0, k = l.n - 1; i < k; i++, k--) {
		struct fw_version v = l.first[i];

		l.first[i] = l.first[k];
		l.first[k] = v;
	}
	*out = l.first;
	*n = l.n;
	return 0;
}

static void version_json_run(void *ctx, enum fw_diff_op op, struct fw_str text)
{
	static const char *const OP[] = {"same", "removed", "added"};
	struct fw_json *j = ctx;

	assert((size_t)op < FW_N(OP));
	fw_json_object(j, NULL);
	fw_json_cstr(j, "op", OP[op]);
	fw_json_str(j, "text", text);
	fw_json_end(j);
}

static int version_json_diff(struct fw_json *j, const struct fw_version *before, const struct fw_version *after)
{
	int rc;

	fw_json_object(j, "difference");
	fw_json_array(j, "title");
	rc = fw_text_diff(before->row.title, after->row.title, version_json_run, j);
	fw_json_end(j);
	if (!before->cut && !after->cut) {
		fw_json_array(j, "text");
		rc = rc ? rc : fw_text_diff(before->text, after->text, version_json_run, j);
		fw_json_end(j);
	}
	fw_json_end(j);
	return rc;
}

int fw_version_json(struct fw_json *j, const char *key, const struct fw_version *v, const struct fw_version *before,
	unsigned flags, struct fw_err *err)
{
	int rc;

	fw_json_object(j, key);
	fw_json_int(j, "revision", v->row.revision);
	fw_json_time(j, "at", v->row.changed_ms);
	if (v->cut)
		fw_json_bool(j, "cut", true);
	fw_json_key(j, "item");
	rc = fw_entry_json(j, &v->row, flags, err);
	if (!rc && before && version_json_diff(j, before, v))
		rc = fw_no_memory(err);
	fw_json_end(j);
	return rc;
}
