/* SPDX-License-Identifier: ISC */
/* The page: entries become read, unread and starred. */
#include "base/clock.h"
#include "http/web/web.h"

#define STATE_IDS_MAX 10000

/* The numbers in the parameters id. False: responded. */
static bool state_ids_read(struct web *w, int64_t **ids, size_t *n, enum MHD_Result *ok)
{
	size_t at = 0, all = http_form_count(&w->form, "id");
	struct fw_str text;

	*n = 0;
	*ids = all && all <= STATE_IDS_MAX ? fw_arena_calloc(&w->arena, all, sizeof(**ids)) : NULL;
	while (*ids && (text = http_form_next(&w->form, "id", &at)).p) {
		if (!fw_str_int(text, &(*ids)[*n]) || (*ids)[(*n)++] <= 0)
			*ids = NULL;
	}
	if (!*ids)
		*ok = web_fail(
			w, MHD_HTTP_BAD_REQUEST, "Invalid id: expected 1 to %d numbers of entries.", STATE_IDS_MAX);
	return *ids;
}

/* The script needs no answer; a form returns to its page. */
static enum MHD_Result state_done(struct web *w, int rc, enum web_notice what)
{
	if (rc)
		return web_store_failed(w, rc);
	return web_is_part(w) ? web_send(w, MHD_HTTP_OK) : web_done(w, what, "");
}

static bool state_flag(const struct web *w, const char *name)
{
	return !fw_str_eq(http_form_get(&w->form, name), FW_STR("0"));
}

enum MHD_Result web_read(struct web *w)
{
	struct fw_entry_edit edit = {.read = state_flag(w, "read")};
	enum MHD_Result ok;
	int64_t *ids;
	size_t n;

	if (!state_ids_read(w, &ids, &n, &ok))
		return ok;
	return state_done(w, fw_account_edit(w->r->store, w->account.id, ids, n, &edit, w->now_ms, &w->err),
		edit.read ? WEB_NOTICE_READ : WEB_NOTICE_UNREAD);
}

static int state_starred(void *ctx, const struct fw_stream_entry *e)
{
	*(bool *)ctx = e->starred;
	return 0;
}

/* With star=0 or 1, else the star of one entry is turned over: a page without script does so. */
enum MHD_Result web_star(struct web *w)
{
	static const int64_t STAR[] = {FW_LABEL_STARRED};
	struct fw_entry_edit edit = {.read = -1};
	bool starred = !state_flag(w, "star");
	enum MHD_Result ok;
	int64_t *ids;
	size_t n;
	int rc = 0;

	if (!state_ids_read(w, &ids, &n, &ok))
		return ok;
	if (!http_form_get(&w->form, "star").p)
		rc = fw_account_entries_get(
			w->r->store, w->account.id, ids, 1, false, state_starred, &starred, &w->err);
	if (starred)
		edit.remove = STAR, edit.remove_n = 1;
	else
		edit.add = STAR, edit.add_n = 1;
	rc = rc ? rc : fw_account_edit(w->r->store, w->account.id, ids, n, &edit, w->now_ms, &w->err);
	return state_done(w, rc, WEB_NOTICE_STAR);
}

/* Only what the page could show: upto is the newest entry when it was made. */
enum MHD_Result web_mark_all(struct web *w)
{
	struct fw_stream s;
	int64_t upto = web_number(w, "upto");
	int rc;

	if (!upto)
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "Invalid upto: expected the number of an entry.");
	/* what cannot be read must not stand for all */
	if ((http_form_get(&w->form, "feed").p && !w->view.feed_id) ||
		(http_form_get(&w->form, "folder").p && !w->view.folder.p) ||
		(http_form_get(&w->form, "label").p && !w->view.label.p))
		return web_fail(w, MHD_HTTP_BAD_REQUEST, "Invalid feed, folder or label.");
	rc = web_view_stream(w, &s);
	return state_done(w, rc ? rc : fw_account_mark_read(w->r->store, &s, 0, upto, &w->err), WEB_NOTICE_READ);
}
