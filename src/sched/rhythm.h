/* SPDX-License-Identifier: ISC */
/*
 * A feed's rhythm: what is learned from its publication dates, as a value, and the model and
 * guesses that follow from it. Pure. It is stored as one line of text:
 *
 *	v2 ttl=60 sy=1440 sh=ff sd=41 tr=-7,29384000,29384000 from=29184756 at=29384756 w=.3aIBQ
 *	g=61,1440,60
 *
 * Form v1 had neither from nor w. tr came later: readers skip unknown words.
 */
#ifndef FW_SCHED_RHYTHM_H
#define FW_SCHED_RHYTHM_H

#include "feedwheel/types.h"

#define FW_RHYTHM_MAX 600
#define FW_RHYTHM_EVENTS 48
#define FW_RHYTHM_HOURS 168 /* hours of a week that starts on Thursday 00:00 UTC, as 1970 did */
#define FW_RHYTHM_GAPS 28   /* classes of silence, by length */

struct fw_rhythm {
	int64_t ttl_minutes, update_period_minutes; /* or FW_NO_NUMBER */
	uint32_t skip_hours;
	uint8_t skip_days;
	int trust; /* level of trust in the server's 304 (trust.h) */
	/* minutes since 1970: last check of a 304, and last check that found it wrong; 0: never */
	int64_t checked, denied;
	size_t n; /* publications in event[], newest first */
	/* minutes since 1970; publications within ten minutes count as one */
	int64_t event[FW_RHYTHM_EVENTS];
	/* minute since which hour[] counts publications; 0: it counts none */
	int64_t from;
	/* publications in each hour of the week, in eighths; an eighth is forgotten each week */
	uint16_t hour[FW_RHYTHM_HOURS];
};

/*
 * The rhythm prepared for guesses. Its hours are weighted by the hour of the week, so that a feed
 * publishes evenly in weighted time.
 */
struct fw_rhythm_model {
	int64_t last; /* minute of the last publication; 0: nothing is known */
	/* weighted hours from the start of the week to each hour; the whole week has 168 */
	double week[FW_RHYTHM_HOURS + 1];
	double gap_n[FW_RHYTHM_GAPS];     /* gaps that ended in each class */
	double gap_hours[FW_RHYTHM_GAPS]; /* weighted hours that gaps spent in each class */
	size_t tail;                      /* the first class that hardly any gap reached */
	double n, hours;                  /* sums over the classes before tail */
};

struct fw_rhythm_guess {
	int64_t interval_ms; /* how long to wait; 0: nothing is known */
	int64_t gap_ms;      /* mean time between publications */
	int64_t silence_ms;  /* since the last one */
	bool burst;          /* the feed is publishing right now */
	bool quiet;          /* the feed rarely publishes at this hour */
};

/* Never fails: unreadable text gives an empty rhythm. */
void fw_rhythm_read(struct fw_str text, struct fw_rhythm *out);
/*
 * Write as text with a NUL; returns its length, 0 when there is nothing to store. The oldest gaps
 * are left out if the text would be longer than FW_RHYTHM_MAX.
 */
size_t fw_rhythm_write(const struct fw_rhythm *r, char out[FW_RHYTHM_MAX]);
/*
 * Learn publication dates: Unix ms, any order, known ones may be among them. True: some were new.
 */
bool fw_rhythm_add(struct fw_rhythm *r, const int64_t *dates, size_t n, int64_t now_ms);

void fw_rhythm_model(const struct fw_rhythm *r, struct fw_rhythm_model *out);
/*
 * How long to wait until `target` publications are expected, at most max_ms. (The chance of at
 * least one is 1 - e^-target.) target is for a feed with one publication a day; busier feeds get a
 * greater one, slower feeds a smaller one.
 */
void fw_rhythm_guess(
	const struct fw_rhythm_model *m, int64_t now_ms, double target, int64_t max_ms, struct fw_rhythm_guess *out);
/*
 * Publications expected between two times, if none is known since the last; 0 when nothing is
 * known.
 */
double fw_rhythm_expected(const struct fw_rhythm_model *m, int64_t from_ms, int64_t to_ms);

#endif
