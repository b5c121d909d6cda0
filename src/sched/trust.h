/* SPDX-License-Identifier: ISC */
/*
 * How far a server's 304 (not modified) is believed.
 *
 * Some servers answer 304 for hours after the document has changed, or for ever. So a 304 is believed until some time after the last
 * response with a document; the next request is unconditional (a check), and what it shows is remembered with the feed's rhythm:
 *
 *   level 0          nothing is known: a day
 *   level 1, 2 ...   so many checks in a row found the document unchanged: one, two, four, eight of the feed's own gaps, a day at least
 *                    and 30 days at most
 *   level < 0        a check found an entry that a 304 had denied: a day, until as many checks have found nothing
 *
 * So no server gets more than one unconditional request a day.
 */
#ifndef FW_SCHED_TRUST_H
#define FW_SCHED_TRUST_H

#include "sched/due.h"
#include "sched/rhythm.h"

#define FW_TRUST_MAX 4
#define FW_TRUST_LIED (-7)

enum fw_trust_found {
	FW_TRUST_UNCLEAR,   /* the check failed, or the document changed too late for a 304 to have denied it */
	FW_TRUST_UNCHANGED, /* the document was as the 304s said */
	FW_TRUST_DENIED,    /* it was not */
};

/*
 * From when on the next request is unconditional. whole_ms: when the validators came, with the last document; last_new_ms: the feed's.
 * What lies ahead of now_ms is the mark of a clock that was put back, and is not looked at.
 */
int64_t fw_trust_until(const struct fw_rhythm *r, int64_t whole_ms, int64_t last_new_ms, int64_t now_ms);
/* Note down a check; as fw_rhythm_learn(). */
size_t fw_trust_note(struct fw_str old, enum fw_trust_found found, int64_t now_ms, char out[FW_RHYTHM_MAX]);

#endif
