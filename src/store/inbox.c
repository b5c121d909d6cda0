/* SPDX-License-Identifier: ISC */
/* The rows of the inbox as other programs write them. */
#include <jansson.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "store/inbox.h"

/* ---- lists of Redis -------------------------------------------------------------------------- */

/* The members that are texts; NULL ends the list. */
struct inbox_member {
	const char *name;
	struct fw_str *text;
};

static int inbox_member_set(
	const struct inbox_member *m, const char *name, const json_t *value, struct fw_arena *a, struct fw_err *err)
{
	for (; m->name; m++) {
		if (strcmp(m->name, name) != 0)
			continue;
		if (json_is_null(value))
			return 0;
		if (!json_is_string(value))
			return fw_err_set(err, FW_EINVAL, "member \"%s\": not a text", name);
		*m->text = fw_arena_str(a, (struct fw_str){json_string_value(value), json_string_length(value)});
		return m->text->p ? 0 : fw_no_memory(err);
	}
	return fw_err_set(err, FW_EINVAL, "unknown member \"%.40s\"", name);
}

static int inbox_object_parse(struct fw_str text, struct fw_arena *a, const struct inbox_member *m, struct fw_err *err)
{
	json_error_t wrong;
	json_t *root = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &wrong), *value;
	const char *name;
	int rc = 0;

	if (!root)
		return fw_err_set(err, FW_EINVAL, "not a JSON object: %s (byte %d)", wrong.text, wrong.position);
	json_object_foreach(root, name, value)
	{
		rc = inbox_member_set(m, name, value, a, err);
		if (rc)
			break;
	}
	json_decref(root);
	return rc;
}

int store_inbox_feed_parse(struct fw_str text, struct fw_arena *a, struct store_inbox_feed *out, struct fw_err *err)
{
	const struct inbox_member MEMBER[] = {{"url", &out->url}, {"folder", &out->folder}, {"title", &out->title},
		{"interval", &out->interval}, {NULL, NULL}};

	*out = (struct store_inbox_feed){0};
	if (fw_str_starts(text, FW_STR("{")))
		return inbox_object_parse(text, a, MEMBER, err);
	out->url = fw_arena_str(a, text);
	return out->url.p ? 0 : fw_no_memory(err);
}

int store_inbox_control_parse(
	struct fw_str text, struct fw_arena *a, struct store_inbox_control *out, struct fw_err *err)
{
	const struct inbox_member MEMBER[] = {{"command", &out->command}, {"worker", &out->worker}, {NULL, NULL}};

	*out = (struct store_inbox_control){0};
	if (fw_str_starts(text, FW_STR("{")))
		return inbox_object_parse(text, a, MEMBER, err);
	out->command = fw_arena_str(a, fw_str_split(text, ' ', &out->worker));
	out->worker = fw_arena_str(a, out->worker);
	return out->command.p ? 0 : fw_no_memory(err);
}

struct fw_str store_inbox_inactive(struct fw_arena *a, enum fw_feed_status status)
{
	return fw_str(fw_arena_printf(
		a, "the feed is %s (to poll it again, run 'feedwheel resume')", fw_feed_status_name(status)));
}

/* ---- control messages ------------------------------------------------------------------------ */

int store_inbox_control_value(
	const struct store_inbox_control *row, char value[STORE_CONTROL_VALUE_MAX], bool *pauses, struct fw_err *err)
{
	static const struct {
		const char *name;
		enum fw_control_kind kind;
	} COMMAND[] = {{"stop", FW_CONTROL_STOP}, {"pause", FW_CONTROL_PAUSE}, {"resume", FW_CONTROL_RESUME},
		{"reload", FW_CONTROL_RELOAD}};

	for (size_t i = 0; i < FW_N(COMMAND); i++) {
		bool all = !row->worker.len;

		if (!fw_str_eq(row->command, fw_str(COMMAND[i].name)))
			continue;
		*pauses = all && (COMMAND[i].kind == FW_CONTROL_PAUSE || COMMAND[i].kind == FW_CONTROL_RESUME);
		if (row->worker.len > FW_RECORD_KEY_MAX)
			return fw_err_set(err, FW_EINVAL, "the name of a worker is longer than 255 bytes");
		(void)fw_snprintf(value, STORE_CONTROL_VALUE_MAX, "%d%s%.*s", (int)COMMAND[i].kind, all ? "" : " ",
			FW_STR_ARG(row->worker));
		return 0;
	}
	return fw_err_set(err, FW_EINVAL, "\"%.*s\": not stop, pause, resume or reload",
		FW_STR_ARG(fw_str_sub(row->command, 0, 40)));
}
