/* SPDX-License-Identifier: ISC */
#include <jansson.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/ingest.h"
#include "base/banned.h"

void fw_event_row(const struct fw_event *e, struct fw_buf *out)
{
	struct fw_json j;

	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "id", e->id);
	fw_json_str(&j, "property", e->property);
	fw_json_int(&j, "property_section", e->section);
	fw_json_int(&j, "property_id", e->item);
	fw_json_str(&j, "remote_ip", e->remote_ip);
	fw_json_int(&j, "stamp", e->stamp_ms);
	fw_json_end(&j);
}

static bool int_of(const json_t *o, const char *name, int64_t *out)
{
	const json_t *v = json_object_get(o, name);

	*out = json_integer_value(v);
	return json_is_integer(v);
}

static bool str_of(const json_t *o, const char *name, struct fw_arena *a, struct fw_str *out)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_string(v))
		return false;
	*out = fw_arena_str(a, (struct fw_str){json_string_value(v), json_string_length(v)});
	return true;
}

int fw_event_of_row(struct fw_str row, struct fw_arena *a, struct fw_event *out, struct fw_err *err)
{
	json_error_t why = {.text = ""};
	json_t *o = json_loadb(row.p, row.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
	bool ok = int_of(o, "id", &out->id) && int_of(o, "property_section", &out->section) && int_of(o, "property_id", &out->item) &&
		int_of(o, "stamp", &out->stamp_ms) && str_of(o, "property", a, &out->property) && str_of(o, "remote_ip", a, &out->remote_ip);

	json_decref(o);
	if (a->failed)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!o)
		return fw_err_set(err, FW_EFORMAT, "no JSON: %s", why.text);
	return ok ? 0 : fw_err_set(err, FW_EFORMAT, "no row of table incoming: a member is missing or of another type");
}
