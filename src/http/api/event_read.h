/* SPDX-License-Identifier: ISC */
/*
 * A fast parser for pushed events of the usual shape. Other shapes, valid or not, are left to the
 * JSON parser.
 *
 * The usual shape: objects with exactly the members property, section and id, in any order; one
 * object, several in a row, or an array of them. property is printable ASCII without escapes; the
 * numbers are integers from 0 to 10^18 - 1.
 */
#ifndef FW_HTTP_API_EVENT_READ_H
#define FW_HTTP_API_EVENT_READ_H

#include "feedwheel/store.h"

struct event_reader {
	const char *p, *end;  /* what is left */
	bool in_array, after; /* inside an array; after its first member */
};

enum { EVENT_NONE, EVENT_ONE, EVENT_UNUSUAL };

/*
 * Read the next event: sets property (which points into the body), section and item. EVENT_NONE:
 * the end. EVENT_UNUSUAL: another shape; the events read so far are void, read the whole body as
 * JSON.
 */
int event_next(struct event_reader *r, struct fw_event *e);

#endif
