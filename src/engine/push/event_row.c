/* SPDX-License-Identifier: ISC */
#include <jansson.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "feedwheel/ingest.h"

void fw_event_row_write(const struct fw_event *e, struct fw_buf *out)
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

int fw_event_row_parse(struct fw_str row, struct fw_arena *a, struct fw_event *out, struct fw_err *err)
{
	json_error_t why = {.text = ""};
	json_t *o = json_loadb(row.p, row.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
	json_int_t id = 0, section = 0, item = 0, stamp = 0;
	struct fw_str property = FW_STR_NONE, ip = FW_STR_NONE;
	bool ok = o &&
		!json_unpack(o, "{s:I, s:I, s:I, s:I, s:s%, s:s%}", "id", &id, "property_section", &section,
			"property_id", &item, "stamp", &stamp, "property", &property.p, &property.len, "remote_ip",
			&ip.p, &ip.len);

	*out = (struct fw_event){.id = id,
		.property = fw_arena_str(a, property),
		.section = section,
		.item = item,
		.remote_ip = fw_arena_str(a, ip),
		.stamp_ms = stamp};
	json_decref(o);
	if (a->failed)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!o)
		return fw_err_set(err, FW_EFORMAT, "not valid JSON: %s", why.text);
	return ok ?
		0 :
		fw_err_set(err, FW_EFORMAT, "not a row of table incoming: a member is missing or has the wrong type");
}
