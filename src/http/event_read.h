/* SPDX-License-Identifier: ISC */
/*
 * A short way past the JSON reader for pushed events in their usual shape: objects of exactly the members property, section and id, in any
 * order, one, several behind each other, or in an array. property is printable ASCII without escapes, the numbers are whole, not negative
 * and below 10^18. It says nothing about other shapes: they may be right or wrong.
 */
#ifndef FW_HTTP_EVENT_READ_H
#define FW_HTTP_EVENT_READ_H

#include "feedwheel/store.h"

struct event_reader {
	const char *p, *end;  /* what is left */
	bool in_array, after; /* ... of an array; after its first member */
};

enum { EVENT_NONE, EVENT_ONE, EVENT_UNUSUAL };

/*
 * The next event: property (bytes of the body), section and item are set. EVENT_NONE: that was all. EVENT_UNUSUAL: another shape begins
 * somewhere, and what was read so far says nothing either.
 */
int event_next(struct event_reader *r, struct fw_event *e);

#endif
