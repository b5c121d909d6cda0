/* SPDX-License-Identifier: ISC */
/*
 * The page: labels of entries. One that has the name of a folder is not in the column, as in the
 * Google Reader API, where both are one stream: the folder.
 */
#include "base/err.h"
#include "http/web/web.h"

static int label_keep(void *ctx, const struct fw_label *label)
{
	struct web *w = ctx;
	struct fw_arena *a = &w->arena;

	if (w->labels.n == w->labels.cap) {
		size_t cap = w->labels.cap ? 2 * w->labels.cap : 16, size = sizeof(*label);

		w->labels.label = fw_arena_grow(a, w->labels.label, w->labels.cap * size, cap * size);
		w->labels.cap = cap;
		if (!w->labels.label)
			return FW_ENOMEM;
	}
	w->labels.label[w->labels.n] = *label;
	w->labels.label[w->labels.n++].name = fw_arena_str(a, label->name);
	return a->failed ? FW_ENOMEM : 0;
}

int web_labels_read(struct web *w)
{
	if (w->labels.read)
		return 0;
	w->labels.read = true;
	return fw_account_label_list(w->r->store, w->account.id, label_keep, w, &w->err);
}

static bool label_is_folder(const struct web *w, struct fw_str name)
{
	size_t i = 0;

	while (i < w->feeds.n && !fw_str_eq(w->feeds.feed[i].folder, name))
		i++;
	return i < w->feeds.n;
}

/* ---- the column ------------------------------------------------------------------------------ */

/* Only labels that entries have: others are what is left of some, or Miniflux' empty categories. */
static bool label_is_listed(const struct web *w, const struct fw_label *label)
{
	return label->entry_n && !label_is_folder(w, label->name);
}

static void label_place_put(struct web *w, const struct fw_label *label)
{
	const struct web_view to = {.kind = WEB_ALL, .label = label->name};

	web_put(w, "<li class=\"has\"><a href=\"./");
	web_view_put(w, &to);
	if (w->view.label.p && fw_str_eq(w->view.label, label->name))
		web_put(w, "\" aria-current=\"page");
	web_put(w, "\"><svg><use href=\"#i-tag\"/></svg><span class=\"name\" dir=\"auto\">%t</span></a></li>\n",
		label->name);
}

void web_labels_put(struct web *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->labels.n; i++) {
		if (!label_is_listed(w, &w->labels.label[i]))
			continue;
		if (!n++)
			web_put(w, "<ul class=\"tags\" aria-label=\"Labels\">\n");
		label_place_put(w, &w->labels.label[i]);
	}
	if (!n)
		return;
	web_put(w, "</ul>\n<datalist id=\"label-names\">");
	for (size_t i = 0; i < w->labels.n; i++) {
		if (label_is_listed(w, &w->labels.label[i]))
			web_put(w, "<option value=\"%t\">", w->labels.label[i].name);
	}
	web_put(w, "</datalist>\n");
}

/* ---- an entry -------------------------------------------------------------------------------- */

static void label_one_put(struct web *w, int64_t entry_id, struct fw_str name)
{
	const struct web_view to = {.kind = WEB_ALL, .label = name};

	web_put(w, "<span class=\"label\"><a href=\"./");
	web_view_put(w, &to);
	web_put(w,
		"\" dir=\"auto\">%t</a><button form=\"state\" formaction=\"label?id=%d&amp;next=entry%%3Fid%%3D%d\" "
		"name=\"remove\" value=\"%t\" aria-label=\"Remove the label %t\"><svg><use href=\"#i-close\"/></svg>"
		"</button></span>\n",
		name, entry_id, entry_id, name, name);
}

void web_entry_labels_put(struct web *w, const struct fw_stream_entry *se)
{
	char next[40];

	(void)fw_snprintf(next, sizeof(next), "entry?id=%lld", (long long)se->entry->id);
	web_put(w, "<div class=\"labels\">\n");
	for (size_t i = 0; i < w->labels.n; i++) {
		for (size_t k = 0; k < se->label_n; k++) {
			if (se->label_id[k] == w->labels.label[i].id)
				label_one_put(w, se->entry->id, w->labels.label[i].name);
		}
	}
	web_put(w,
		"<details><summary class=\"button\"><svg><use href=\"#i-tag\"/></svg> Label</summary>\n"
		"<form class=\"with-button\" method=\"post\" action=\"label\">");
	web_form_fields(w, next);
	web_put(w,
		"<input type=\"hidden\" name=\"id\" value=\"%d\"><input name=\"add\" required maxlength=\"%d\" "
		"list=\"label-names\" autocomplete=\"off\" placeholder=\"Label\" aria-label=\"Label\">"
		"<button>Add</button></form></details></div>\n",
		se->entry->id, (int64_t)FW_LABEL_NAME_MAX);
}

static int label_entry_put(void *ctx, const struct fw_stream_entry *se)
{
	web_entry_labels_put(ctx, se);
	return 0;
}

static int label_entry_found(void *ctx, const struct fw_stream_entry *se)
{
	*(bool *)ctx = se->entry->id;
	return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Of one entry that the account may see: add a label, which is made if need be, or remove one. */
static int label_edit(struct web *w, int64_t entry_id, struct fw_str name, bool add)
{
	struct fw_entry_edit edit = {.read = -1};
	bool found = false;
	int64_t id;
	int rc = fw_account_entries_get(
		w->r->store, w->account.id, &entry_id, entry_id != 0, false, label_entry_found, &found, &w->err);

	if (!rc && !found)
		return FW_ERR(&w->err, FW_ENOTFOUND, "There is no such entry.");
	rc = rc ? rc : fw_account_label(w->r->store, w->account.id, name, add, &id, &w->err);
	if (add)
		edit.add = &id, edit.add_n = 1;
	else
		edit.remove = &id, edit.remove_n = 1;
	return rc ? rc : fw_account_edit(w->r->store, w->account.id, &entry_id, 1, &edit, w->now_ms, &w->err);
}

enum MHD_Result web_label(struct web *w)
{
	bool add = !http_form_get(&w->form, "remove").p;
	int64_t entry_id = web_number(w, "id");
	struct fw_str name;
	int rc = web_feeds_read(w, 0);

	if (!web_text(w, add ? "add" : "remove", FW_LABEL_NAME_MAX, &name) || !name.len)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "The name of the label is missing or too long.");
	if (!rc && add && label_is_folder(w, name))
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "A folder has this name: a label needs another.");
	rc = rc ? rc : label_edit(w, entry_id, name, add);
	if (rc || !web_is_part(w))
		return rc ? web_store_failed(w, rc) : web_done(w, WEB_NOTICE_LABEL, "");
	rc = web_labels_read(w);
	rc = rc ? rc :
		  fw_account_entries_get(w->r->store, w->account.id, &entry_id, 1, false, label_entry_put, w, &w->err);
	return rc ? web_store_failed(w, rc) : web_send(w, MHD_HTTP_OK);
}
