/* SPDX-License-Identifier: ISC */
/* The field tables: columns of the stored structs. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "store/fields.h"

_Static_assert(sizeof(enum fw_visit_kind) == 4 && sizeof(enum fw_feed_status) == 4 && sizeof(enum fw_format) == 4 &&
		sizeof(enum fw_text_type) == 4 && sizeof(int) == 4,
	"FW_FIELD_SMALL is read as 32 bits");

/* clang-format off */
#define FEED(member, type, group) {#member, FW_FIELD_##type, group, offsetof(struct fw_feed, member)}
/* clang-format on */

const struct fw_field fw_schedule_fields[] = {
	FEED(due_at_ms, INT, 0),
	FEED(status, SMALL, 0),
	FEED(last_kind, SMALL, 0),
	FEED(http_status, SMALL, 0),
	FEED(fail_n, COUNT, 0),
	FEED(crash_n, COUNT, 0),
	FEED(last_visit_ms, INT, 0),
	FEED(last_ok_ms, INT, 0),
	FEED(last_new_ms, INT, 0),
	FEED(expect_us, INT, 0),
	FEED(expect_dev_us, INT, 0),
	FEED(expect_parts, INT, 0),
	FEED(why, TEXT, 0),
};
const size_t fw_schedule_field_n = FW_N(fw_schedule_fields);

const struct fw_field fw_feed_fields[] = {
	FEED(url, TEXT, FW_GROUP_URL),
	FEED(title, TEXT, FW_GROUP_META),
	FEED(home_page_url, TEXT, FW_GROUP_META),
	FEED(description, TEXT, FW_GROUP_META),
	FEED(language, TEXT, FW_GROUP_META),
	FEED(icon, TEXT, FW_GROUP_META),
	FEED(format, SMALL, FW_GROUP_META),
	FEED(hub, TEXT, FW_GROUP_META),
	FEED(topic, TEXT, FW_GROUP_META),
	FEED(extra, TEXT, FW_GROUP_META),
	FEED(rhythm, TEXT, FW_GROUP_RHYTHM),
	FEED(validator_url, TEXT, FW_GROUP_VALIDATORS),
	FEED(etag, BYTES, FW_GROUP_VALIDATORS),
	FEED(last_modified, BYTES, FW_GROUP_VALIDATORS),
	FEED(validators_ms, INT, FW_GROUP_VALIDATORS),
	FEED(body_hash, INT, FW_GROUP_VALIDATORS),
	FEED(redirect_url, TEXT, FW_GROUP_REDIRECT),
	FEED(redirect_since_ms, INT, FW_GROUP_REDIRECT),
	FEED(redirect_n, COUNT, FW_GROUP_REDIRECT),
	FEED(host_key, TEXT, FW_GROUP_HOST),
	FEED(error, TEXT, FW_GROUP_ERROR),
	FEED(user_title, TEXT, 0),
	FEED(folder, TEXT, 0),
	FEED(username, TEXT, 0),
	FEED(password, TEXT, 0),
	FEED(interval_ms, INT, 0),
	FEED(created_ms, INT, 0),
	FEED(push_until_ms, INT, 0),
};
const size_t fw_feed_field_n = FW_N(fw_feed_fields);

/* clang-format off */
#define ENTRY(member, type) {#member, FW_FIELD_##type, 0, offsetof(struct fw_entry_row, member)}
/* clang-format on */

const struct fw_field fw_entry_fields[] = {
	ENTRY(seen_ms, INT),
	ENTRY(changed_ms, INT),
	ENTRY(revision, COUNT),
	ENTRY(published_ms, DATE),
	ENTRY(updated_ms, DATE),
	ENTRY(content_type, SMALL),
	ENTRY(guid, TEXT),
	ENTRY(url, TEXT),
	ENTRY(title, TEXT),
	ENTRY(author, TEXT),
	ENTRY(content_base, TEXT),
	ENTRY(summary, TEXT),
	ENTRY(extra, TEXT),
	ENTRY(content, TEXT),
};
const size_t fw_entry_field_n = FW_N(fw_entry_fields);

/* clang-format off */
#define VISIT(member, type) {#member, FW_FIELD_##type, 0, offsetof(struct fw_visit, member)}
/* clang-format on */

const struct fw_field fw_visit_fields[] = {
	VISIT(feed_id, INT),
	VISIT(run_id, INT),
	VISIT(at_ms, INT),
	VISIT(kind, SMALL),
	VISIT(http_status, SMALL),
	VISIT(redirects, COUNT),
	VISIT(slot, SMALL),
	VISIT(lateness_ms, COUNT),
	VISIT(dns_us, INT),
	VISIT(connect_us, INT),
	VISIT(tls_us, INT),
	VISIT(first_byte_us, INT),
	VISIT(total_us, INT),
	VISIT(parse_us, INT),
	VISIT(wire_bytes, INT),
	VISIT(body_bytes, INT),
	VISIT(item_n, COUNT),
	VISIT(new_n, COUNT),
	VISIT(changed_n, COUNT),
	VISIT(queue_us, INT),
	VISIT(store_us, INT),
	VISIT(error, TEXT),
};
const size_t fw_visit_field_n = FW_N(fw_visit_fields);

int64_t fw_field_int(const struct fw_field *f, const void *of)
{
	const char *at = (const char *)of + f->offset;
	int64_t wide;
	uint32_t bits;

	assert(!fw_field_is_text(f));
	if (f->type == FW_FIELD_INT || f->type == FW_FIELD_DATE) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&bits, at, sizeof(bits));
	return f->type == FW_FIELD_COUNT ? (int64_t)bits : (int32_t)bits;
}

void fw_field_int_set(const struct fw_field *f, void *of, int64_t value)
{
	char *at = (char *)of + f->offset;
	uint32_t bits = (uint32_t)value;

	assert(!fw_field_is_text(f));
	if (f->type == FW_FIELD_INT || f->type == FW_FIELD_DATE)
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &bits, sizeof(bits));
}

struct fw_str fw_field_str(const struct fw_field *f, const void *of)
{
	struct fw_str s;

	assert(fw_field_is_text(f));
	memcpy(&s, (const char *)of + f->offset, sizeof(s));
	return s;
}

void fw_field_str_set(const struct fw_field *f, void *of, struct fw_str value)
{
	assert(fw_field_is_text(f));
	memcpy((char *)of + f->offset, &value, sizeof(value));
}
