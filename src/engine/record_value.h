/* SPDX-License-Identifier: ISC */
/*
 * Values of records: a struct as a JSON object, by a table of its members. Members that are 0,
 * false or empty are left out; members that are unknown are ignored.
 */
#ifndef FW_ENGINE_RECORD_VALUE_H
#define FW_ENGINE_RECORD_VALUE_H

#include "base/arena.h"
#include "base/buf.h"

enum record_member_type {
	RECORD_NUMBER, /* int64_t */
	RECORD_COUNT,  /* uint32_t */
	RECORD_FLAG,   /* bool */
	RECORD_TEXT,   /* struct fw_str */
	RECORD_CHARS,  /* char[cap] */
	RECORD_STATE,  /* an enum of unsigned, by its name */
};

struct record_member {
	const char *name; /* NULL: the end of a table */
	enum record_member_type type;
	size_t offset;
	const char *const *states; /* of RECORD_STATE; NULL-terminated */
	size_t cap;                /* of RECORD_CHARS */
};

void record_value_write(struct fw_buf *b, const struct record_member *m, const void *from);
/* Texts go into the arena. False: not an object, or an unknown state. */
bool record_value_parse(struct fw_str value, const struct record_member *m, struct fw_arena *a, void *to);

#endif
