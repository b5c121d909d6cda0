/* SPDX-License-Identifier: ISC */
/*
 * Tables of the members of the stored structs. A driver loops over a table instead of listing
 * columns by hand. Names are those of the columns (or hash fields) on every engine, as in
 * feedwheel-store(7).
 */
#ifndef FW_STORE_FIELDS_H
#define FW_STORE_FIELDS_H

#include "feedwheel/store.h"

enum fw_field_type {
	FW_FIELD_INT,   /* 64-bit number; unsigned ones keep their bits */
	FW_FIELD_SMALL, /* 32-bit number, signed or an enum */
	FW_FIELD_COUNT, /* 32-bit number, unsigned: a signed column needs 64 bits */
	FW_FIELD_DATE,  /* Unix milliseconds; FW_NO_DATE is NULL */
	FW_FIELD_TEXT,  /* valid UTF-8; absent is NULL */
	FW_FIELD_BYTES, /* any bytes; absent is NULL */
};

struct fw_field {
	const char *name;
	enum fw_field_type type;
	unsigned group; /* of a member of struct fw_feed: its FW_GROUP_*; 0: none */
	size_t offset;
};

/* In the order of the columns. Lengths are in the `_n` variables. */
extern const struct fw_field fw_schedule_fields[]; /* struct fw_feed: the schedule group, and last_new_ms */
extern const size_t fw_schedule_field_n;
extern const struct fw_field fw_feed_fields[]; /* struct fw_feed: the other members, without id */
extern const size_t fw_feed_field_n;
extern const struct fw_field fw_entry_fields[]; /* struct fw_entry_row, without id, feed_id, key, hash */
extern const size_t fw_entry_field_n;
extern const struct fw_field fw_visit_fields[]; /* struct fw_visit, with feed_id */
extern const size_t fw_visit_field_n;

static inline bool fw_field_is_text(const struct fw_field *f)
{
	return f->type == FW_FIELD_TEXT || f->type == FW_FIELD_BYTES;
}

/* Get and set a number or date. FW_NO_DATE is passed through. */
int64_t fw_field_int(const struct fw_field *f, const void *of);
void fw_field_int_set(const struct fw_field *f, void *of, int64_t value);
/* Get and set text or bytes, borrowed. */
struct fw_str fw_field_str(const struct fw_field *f, const void *of);
void fw_field_str_set(const struct fw_field *f, void *of, struct fw_str value);

#endif
