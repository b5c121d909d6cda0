/* SPDX-License-Identifier: ISC */
/* Pushed events, from a body to rows: one object, an array of them, or one after another (NDJSON), or these mixed. Pure. */
#ifndef FW_HTTP_EVENTS_H
#define FW_HTTP_EVENTS_H

#include <jansson.h>

#include "feedwheel/engine.h"
#include "feedwheel/store.h"

struct event_rules {           /* push_... in the settings */
	struct fw_str properties;  /* names, separated by commas; absent: any */
	int64_t section_min, id_min;
};

void event_rules_init(struct event_rules *rules, const struct fw_config *c);

struct event_sink {
	int (*put)(void *ctx, const struct fw_event *e); /* not 0: that was the last one */
	int (*again)(void *ctx);                         /* all that was put is void, it begins anew; at most once */
	void *ctx;
};

struct event_wrong {
	size_t n;                  /* FW_EINVAL: of this event, from 1 */
	char words[200];           /* ... what */
	json_error_t json;         /* FW_EFORMAT: where it ceases to be JSON */
};

/*
 * in e: what all events have in common; out: nothing. *n: events that were put.
 * Errors: FW_EFORMAT no JSON, FW_EINVAL an event is not as it must be; those of the sink. What was put before is for the caller to forget.
 */
FW_MUST_CHECK int events_read(const struct event_rules *rules, struct fw_str body, struct fw_event *e, const struct event_sink *to, size_t *n,
	struct event_wrong *wrong);

#endif
