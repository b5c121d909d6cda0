/* SPDX-License-Identifier: ISC */
/*
 * The members of the structs that a store keeps, as tables: a driver loops over these instead of
 * listing columns by hand. Names are those of the columns (or hash fields) on every engine, as
 * feedwheel-store(7) documents them.
 */
#ifndef FW_STORE_FIELDS_H
#define FW_STORE_FIELDS_H

#include "feedwheel/store.h"

enum fw_field_type {
	FW_FIELD_INT,   /* a number of 64 bits; unsigned ones keep their bits */
	FW_FIELD_SMALL, /* a number of 32 bits, signed or an enum */
	FW_FIELD_COUNT, /* a number of 32 bits, unsigned: wants 64 bits in a signed column */
	FW_FIELD_DATE,  /* Unix milliseconds; FW_NO_DATE is NULL */
	FW_FIELD_TEXT,  /* valid UTF-8; absent is NULL */
	FW_FIELD_BYTES, /* any bytes; absent is NULL */
};

struct fw_field {
	const char *name;
	enum fw_field_type type;
	unsigned group;  /* struct fw_feed: the FW_GROUP_* that writes it; 0 otherwise */
	size_t offset;
};

/* A table ends where its `_n` says; order is that of the columns. */
extern const struct fw_field fw_schedule_fields[]; /* struct fw_feed: what every visit writes, and last_new_ms */
extern const size_t fw_schedule_field_n;
extern const struct fw_field fw_feed_fields[];  /* struct fw_feed: the rest, from url to created_ms; without id */
extern const size_t fw_feed_field_n;
extern const struct fw_field fw_entry_fields[]; /* struct fw_entry_row: without id, feed_id, key and hash; content is last */
extern const size_t fw_entry_field_n;
extern const struct fw_field fw_visit_fields[]; /* struct fw_visit: with feed_id */
extern const size_t fw_visit_field_n;

static inline bool fw_field_is_text(const struct fw_field *f)
{
	return f->type == FW_FIELD_TEXT || f->type == FW_FIELD_BYTES;
}

/* Of a number or date. FW_NO_DATE stays what it is. */
int64_t fw_field_int(const struct fw_field *f, const void *of);
void fw_field_int_set(const struct fw_field *f, void *of, int64_t value);
/* Of text or bytes. */
struct fw_str fw_field_str(const struct fw_field *f, const void *of);
void fw_field_str_set(const struct fw_field *f, void *of, struct fw_str value);

#endif
