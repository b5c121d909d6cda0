/* SPDX-License-Identifier: ISC */
/*
 * What was learned of a feed, as a value, and what follows from it. Stored as text:
 * "v2 ttl=60 sy=1440 sh=ff sd=41 tr=-7,29384000,29384000 from=29184756 at=29384756 w=.3aIBQ g=61,1440,60". Form v1 had neither from nor w;
 * tr came later, and who does not know a word skips it.
 */
#ifndef FW_SCHED_RHYTHM_H
#define FW_SCHED_RHYTHM_H

#include "feedwheel/types.h"

#define FW_RHYTHM_MAX 600
#define FW_RHYTHM_EVENTS 48
#define FW_RHYTHM_HOURS 168 /* of a week that begins on Thursday, 00:00 UTC, as 1970 did */
#define FW_RHYTHM_GAPS 28   /* classes of silence */

struct fw_rhythm {
	int64_t ttl_minutes, update_period_minutes; /* or FW_NO_NUMBER */
	uint32_t skip_hours;
	uint8_t skip_days;
	int trust;                        /* in its server's 304: a level (trust.h) */
	int64_t checked, denied;          /* minutes: when that was last checked, and found wrong; 0: never */
	size_t n;                         /* publications known, newest first; */
	int64_t event[FW_RHYTHM_EVENTS];  /* minutes since 1970; what came within ten minutes counts as one */
	int64_t from;                     /* minute since which publications are counted by the hour of the week; 0: none are */
	uint16_t hour[FW_RHYTHM_HOURS];   /* how many, in eighths; an eighth is forgotten at the end of each week */
};

/* The same, ready to be asked. Time is weighed by the hour of the week, so that a feed publishes evenly in it. */
struct fw_rhythm_model {
	int64_t last;                       /* minute of the last publication; 0: nothing is known */
	double week[FW_RHYTHM_HOURS + 1];   /* weighed hours from the week's beginning to each hour; a whole week has 168 */
	double gap_n[FW_RHYTHM_GAPS];       /* publications after a silence of each class, */
	double gap_hours[FW_RHYTHM_GAPS];   /* weighed hours that silences spent in it */
	size_t tail;                        /* the class that hardly any gap reached; */
	double n, hours;                    /* what is in the classes before */
};

struct fw_rhythm_guess {
	int64_t interval_ms; /* how long to wait; 0: nothing is known */
	int64_t gap_ms;      /* between publications */
	int64_t silence_ms;  /* since the last one */
	bool burst;          /* it is publishing right now */
	bool quiet;          /* at this hour it hardly ever does */
};

/* Never fails: what cannot be read is as if nothing had been learned. */
void fw_rhythm_read(struct fw_str text, struct fw_rhythm *out);
/* As text, with a NUL; its length, 0: there is nothing to say. The oldest gaps are left out when it would be longer than FW_RHYTHM_MAX. */
size_t fw_rhythm_write(const struct fw_rhythm *r, char out[FW_RHYTHM_MAX]);
/* Learn dates (Unix ms, any order, with those of former documents or without); true: there was something new in them. */
bool fw_rhythm_see(struct fw_rhythm *r, const int64_t *dates, size_t n, int64_t now_ms);

void fw_rhythm_model(const struct fw_rhythm *r, struct fw_rhythm_model *out);
/*
 * How long to wait until `target` publications are to be expected (chance of one: 1 - e^-target), at most max_ms. It is the target of
 * a feed with one publication a day; busier ones have a greater one, slower ones a smaller.
 */
void fw_rhythm_guess(const struct fw_rhythm_model *m, int64_t now_ms, double target, int64_t max_ms, struct fw_rhythm_guess *out);
/* Publications to be expected from one time to another, when none is known since the last; 0 where nothing is known. */
double fw_rhythm_expected(const struct fw_rhythm_model *m, int64_t from_ms, int64_t to_ms);

#endif
