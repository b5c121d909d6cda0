/* SPDX-License-Identifier: ISC */
/* Parse pushed events: JSON objects, arrays of objects, one a line (NDJSON), or a mixture. Pure. */
#ifndef FW_HTTP_API_EVENT_RULES_H
#define FW_HTTP_API_EVENT_RULES_H

#include <jansson.h>

#include "feedwheel/engine.h"
#include "feedwheel/store.h"

/* push_... in the settings */
struct event_rules {
	struct fw_str properties; /* allowed names, separated by commas; absent: all */
	int64_t section_min, id_min;
};

struct event_rules *event_rules_create(const struct fw_config *c); /* free() it. NULL: no memory */

struct event_sink {
	int (*put)(void *ctx, const struct fw_event *e); /* takes one event; not 0: stop with this error */
	int (*restart)(void *ctx);                       /* discard all events so far; called at most once */
	void *ctx;
};

struct event_wrong {
	size_t n;          /* FW_EINVAL: number of the event, from 1 */
	char words[200];   /* FW_EINVAL: what is wrong with it */
	json_error_t json; /* FW_EFORMAT: where the JSON is invalid */
};

/*
 * Parse body and put its events. e: the members that all events share (address, time); its other
 * members are overwritten. *n: events that were put. Errors: FW_EFORMAT invalid JSON; FW_EINVAL
 * invalid event; those of the sink. After an error the caller discards the events that were put.
 */
FW_MUST_CHECK int events_read(const struct event_rules *rules, struct fw_str body, struct fw_event *e,
	const struct event_sink *to, size_t *n, struct event_wrong *wrong);

#endif
