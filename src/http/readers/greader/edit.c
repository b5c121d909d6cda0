/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: read, starred and labels of entries; renaming and removing folders and
 * labels.
 */
#include "base/clock.h"
#include "base/utf8.h"
#include "http/readers/greader/greader.h"

#define LABELS_MAX 100 /* tags of one edit */
#define EXPECTED_TAG "user/-/state/com.google/..., or user/-/label/NAME"

/* ---- edit-tag -------------------------------------------------------------------------------- */

struct edit {
	struct fw_entry_edit e;
	int64_t add[LABELS_MAX], remove[LABELS_MAX];
};

static int edit_label(struct reader *rd, struct edit *edit, struct fw_str name, bool add)
{
	size_t *n = add ? &edit->e.add_n : &edit->e.remove_n;
	int64_t *to = add ? edit->add : edit->remove;
	int rc = 0;

	if (name.p) /* else it is starred */
		rc = fw_account_label(rd->r->store, rd->account.id, name, add, &to[*n], &rd->err);
	else
		to[*n] = FW_LABEL_STARRED;
	if (!rc)
		++*n;
	return rc == FW_ENOTFOUND ? 0 : rc; /* no entry has a label that does not exist */
}

static int edit_tag_add(struct reader *rd, struct edit *edit, const struct greader_stream *tag, bool add)
{
	switch (tag->kind) {
	case GREADER_READ:
		edit->e.read = add;
		break;
	case GREADER_UNREAD: /* removing kept-unread changes nothing, because clients do that with each read=1 */
		if (add)
			edit->e.read = 0;
		break;
	case GREADER_STARRED:
		return edit_label(rd, edit, FW_STR_NONE, add);
	case GREADER_NAMED:
		return edit_label(rd, edit, tag->name, add);
	case GREADER_ALL:
	case GREADER_OTHER: /* broadcast, like, tracking-kept-unread: accepted, without effect */
	case GREADER_FEED:
		break;
	}
	return 0;
}

/* The tags in the parameters a (add) or r. False: responded. */
static bool edit_tags_read(struct reader *rd, const char *name, bool add, struct edit *edit, enum MHD_Result *ok)
{
	struct greader_stream tag;
	struct fw_str text;
	size_t at = 0;
	int rc = 0;

	if (http_form_count(&rd->form, name) > LABELS_MAX) { /* before the first new label is made */
		*ok = reader_wrong(rd, name, "at most 100 tags");
		return false;
	}
	while (!rc && (text = http_form_next(&rd->form, name, &at)).p) {
		if (!text.len)
			continue;
		if (!greader_stream_read(text, &tag) || tag.kind == GREADER_FEED) {
			*ok = reader_wrong(rd, name, EXPECTED_TAG);
			return false;
		}
		rc = edit_tag_add(rd, edit, &tag, add);
	}
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return !rc;
}

enum MHD_Result greader_edit_tag(struct reader *rd)
{
	struct edit edit = {.e = {.read = -1}};
	enum MHD_Result ok;
	int64_t *ids;
	size_t n;
	int rc = 0;

	if (!greader_item_ids(rd, &ids, &n, &ok) || !edit_tags_read(rd, "r", false, &edit, &ok) ||
		!edit_tags_read(rd, "a", true, &edit, &ok))
		return ok;
	edit.e.add = edit.add;
	edit.e.remove = edit.remove;
	if (edit.e.read >= 0 || edit.e.add_n || edit.e.remove_n)
		rc = fw_account_edit(rd->r->store, rd->account.id, ids, n, &edit.e, http_now_ms(rd->r), &rd->err);
	return rc ? http_store_failed(rd->r, rc, &rd->err) : greader_ok(rd);
}

/* ---- mark-all-as-read ------------------------------------------------------------------------ */

/*
 * The first millisecond that is not marked, of a time in microseconds. Some clients send seconds,
 * milliseconds or nanoseconds; the number's size tells which.
 */
static int64_t edit_until_ms(int64_t ts)
{
	if (!ts)
		return 0;
	if (ts >= INT64_C(100000000000000000))
		return ts / 1000000 + 1;
	if (ts >= INT64_C(100000000000000))
		return ts / 1000 + 1;
	return ts >= INT64_C(100000000000) ? ts + 1 : (ts + 1) * FW_SECOND_MS;
}

enum MHD_Result greader_mark_all(struct reader *rd)
{
	struct greader_query q = {.s = {.account_id = rd->account.id}};
	struct greader_stream stream;
	int64_t ts = 0;
	int rc;

	if (!greader_stream_read(http_form_get(&rd->form, "s"), &stream))
		return reader_wrong(rd, "s", EXPECTED_TAG ", or feed/ID");
	if (!http_form_number(&rd->form, "ts", INT64_MAX, &ts))
		return reader_wrong(rd, "ts", "a time in microseconds");
	rc = greader_stream_add(rd, &stream, &q);
	if (!rc && stream.kind == GREADER_FEED && q.nothing)
		return http_problem(rd->r, MHD_HTTP_NOT_FOUND, "not_found", "there is no such feed");
	if (!rc && !q.nothing && q.s.read != FW_READ_READ) /* what is read is read */
		rc = fw_account_mark_read(rd->r->store, &q.s, edit_until_ms(ts), 0, &rd->err);
	return rc ? http_store_failed(rd->r, rc, &rd->err) : greader_ok(rd);
}

/* ---- folders and labels ---------------------------------------------------------------------- */

/* The folder or label in the parameters s or t. False: responded. */
static bool edit_named_read(struct reader *rd, struct greader_stream *out, enum MHD_Result *ok)
{
	struct fw_str text = http_form_get(&rd->form, "s");

	if (!text.p)
		text = http_form_get(&rd->form, "t");
	if (greader_stream_read(text, out) && out->kind == GREADER_NAMED)
		return true;
	/* a name alone, as some clients send it in t */
	if (text.len && !fw_str_starts(text, FW_STR("user/")) && fw_utf8_fits(text, FW_LABEL_NAME_MAX)) {
		*out = (struct greader_stream){.kind = GREADER_NAMED, .name = text};
		return true;
	}
	*ok = reader_wrong(rd, "s", "user/-/label/NAME");
	return false;
}

struct edit_looking {
	struct fw_str name;
	int64_t entry_n;
};

static int edit_label_look(void *ctx, const struct fw_label *label)
{
	struct edit_looking *l = ctx;

	if (fw_str_eq(label->name, l->name))
		l->entry_n = label->entry_n;
	return 0;
}

/*
 * A folder has become a part of another one; both may have labels, as categories of Miniflux. The
 * first one's goes, unless entries have it.
 */
static int edit_label_drop(struct reader *rd, struct fw_str name)
{
	struct edit_looking l = {.name = name};
	int rc = fw_account_label_list(rd->r->store, rd->account.id, edit_label_look, &l, &rd->err);

	return rc || l.entry_n ? rc : fw_account_label_rename(rd->r->store, rd->account.id, name, FW_STR(""), &rd->err);
}

/* to "": removed. */
static enum MHD_Result edit_named_rename(struct reader *rd, struct fw_str from, struct fw_str to)
{
	bool folder;
	int rc = greader_folder_find(rd, from, &folder), label_rc;

	if (!rc && folder)
		rc = fw_account_folder_rename(rd->r->store, rd->account.id, from, to, true, &rd->err);
	if (rc)
		return http_store_failed(rd->r, rc, &rd->err);
	label_rc = fw_account_label_rename(rd->r->store, rd->account.id, from, to, &rd->err);
	if (folder && label_rc == FW_EINVAL) /* the name is taken */
		label_rc = edit_label_drop(rd, from);
	if (label_rc && !(folder && label_rc == FW_ENOTFOUND))
		return http_store_failed(rd->r, label_rc, &rd->err);
	return greader_ok(rd);
}

enum MHD_Result greader_rename_tag(struct reader *rd)
{
	struct greader_stream from, to;
	enum MHD_Result ok;

	if (!edit_named_read(rd, &from, &ok))
		return ok;
	if (!greader_stream_read(http_form_get(&rd->form, "dest"), &to) || to.kind != GREADER_NAMED)
		return reader_wrong(rd, "dest", "user/-/label/NAME");
	return edit_named_rename(rd, from.name, to.name);
}

enum MHD_Result greader_disable_tag(struct reader *rd)
{
	struct greader_stream tag;
	enum MHD_Result ok;

	return edit_named_read(rd, &tag, &ok) ? edit_named_rename(rd, tag.name, FW_STR("")) : ok;
}
