/* SPDX-License-Identifier: ISC */
/*
 * How long a server's 304 (not modified) is trusted.
 *
 * Some servers send 304 for hours after the document has changed, or for ever. So a 304 is trusted
 * for a limited time after the last response with a document. Then one request is unconditional (a
 * check), and its result is stored with the feed's rhythm as a level:
 *
 *   level 0        nothing is known: one day
 *   level 1 to 4   this many checks in a row found the document unchanged: 1, 2, 4, 8 times the
 *                  feed's own gap between entries, at least one day and at most 30 days
 *   level < 0      a check found an entry that a 304 had denied: one day, until 7 checks have found
 *                  nothing
 *
 * So no server gets more than one unconditional request a day.
 */
#ifndef FW_SCHED_TRUST_H
#define FW_SCHED_TRUST_H

#include "sched/due.h"
#include "sched/rhythm.h"

#define FW_TRUST_MAX 4
#define FW_TRUST_MIN (-7)

enum fw_trust_found {
	FW_TRUST_UNCLEAR,   /* the check failed, or the document changed too late for a 304 to have denied it */
	FW_TRUST_UNCHANGED, /* the document was unchanged, as the 304s said */
	FW_TRUST_DENIED,    /* the document had changed */
};

/*
 * From this time on the next request is unconditional. whole_ms: when the last document came, with
 * the validators; last_new_ms: the feed's last new entry. Times after now_ms come from a clock that
 * was set back; they are ignored.
 */
int64_t fw_trust_until(const struct fw_rhythm *r, int64_t whole_ms, int64_t last_new_ms, int64_t now_ms);
/* Record a check in the rhythm; out and the result as in fw_rhythm_learn(). */
size_t fw_trust_record(struct fw_str old, enum fw_trust_found found, int64_t now_ms, char out[FW_RHYTHM_MAX]);

#endif
