/* SPDX-License-Identifier: ISC */
/*
 * Records (feedwheel/store.h): their values, and walks over them. A value is a struct as a JSON
 * object, by a table of its members. Members that are 0, false or empty are left out; members that
 * are unknown are ignored.
 */
#ifndef FW_ENGINE_RECORDS_H
#define FW_ENGINE_RECORDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/store.h"

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

/*
 * The records of a kind whose keys start with prefix ("": all), in order, read some hundred at a
 * time, so that the callback may use the store. key and value live until it returns; a is emptied
 * from time to time. Another result than 0 stops the walk and is returned.
 */
typedef int record_walk_cb(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err);
FW_MUST_CHECK int record_walk(struct fw_store *st, struct fw_str kind, struct fw_str prefix, record_walk_cb *cb,
	void *ctx, struct fw_err *err);

#endif
