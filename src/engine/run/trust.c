/* SPDX-License-Identifier: ISC */
/*
 * When was a new entry published? By its date, unless the date precedes the last document, which
 * did not hold the entry; then it is taken to be in the middle of the time since that document. A
 * single new entry was published no earlier than Last-Modified says, whatever its date: many
 * entries are dated when writing starts. An entry published within an hour of the last 304 may just
 * have missed it.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/rows.h"
#include "engine/run/trust.h"
#include "api/trust.h"
#include "sched/rhythm.h"

#define ON_ITS_WAY_MS FW_HOUR_MS

/* The entry's date, else the middle of the time since the last document. */
static int64_t entry_came_ms(const struct fw_entry_row *e, int64_t since_ms, int64_t now_ms)
{
	if (e->published_ms != FW_NO_DATE && e->published_ms > since_ms)
		return e->published_ms;
	if (e->updated_ms != FW_NO_DATE && e->updated_ms > since_ms)
		return e->updated_ms;
	return since_ms + (now_ms - since_ms) / 2;
}

/* state: the result of rows_compare() for each row. */
static enum fw_trust_found trust_classify(const struct visit *v, const unsigned char *state, int64_t now_ms)
{
	const struct fw_feed *was = v->was;
	int64_t first_ms = INT64_MAX, changed_ms;
	size_t n = 0;

	for (size_t i = 0; i < v->outcome.entry_n; i++) {
		if (state[i] != ROW_NEW)
			continue;
		n++;
		first_ms = FW_MIN(first_ms, entry_came_ms(&v->outcome.entries[i], was->validators_ms, now_ms));
	}
	if (!n)
		return FW_TRUST_UNCHANGED;
	if (n == 1 && v->fetch.h_last_modified.p && fw_http_date_parse(v->fetch.h_last_modified, now_ms, &changed_ms))
		first_ms = FW_MAX(first_ms, changed_ms);
	/* last_ok_ms after validators_ms: that visit was a 304 */
	return was->last_ok_ms > was->validators_ms && first_ms <= was->last_ok_ms - ON_ITS_WAY_MS ? FW_TRUST_DENIED :
												     FW_TRUST_UNCLEAR;
}

static int feed_trust_level(const struct fw_feed *feed)
{
	struct fw_rhythm r;

	fw_rhythm_read(feed->rhythm, &r);
	return r.trust;
}

void trust_check_document(struct fw_store *st, struct visit *v, int64_t now_ms)
{
	enum fw_trust_found found = FW_TRUST_UNCLEAR;
	const struct fw_outcome *o = &v->outcome;
	unsigned char *state;
	struct fw_err err;

	if (!v->compare_304)
		return;
	v->compare_304 = false;
	state = calloc(o->entry_n + 1, 1);
	if (state && !rows_compare(st, v->feed.id, o->entries, o->entry_n, state, &err))
		found = trust_classify(v, state, now_ms);
	free(state);
	if (found == FW_TRUST_DENIED && feed_trust_level(&v->feed) >= 0) /* log it once, not each day */
		fw_info("feed %lld: wrong 304 (not modified): there were new entries; its server's 304s are believed "
			"for at most a day",
			(long long)v->feed.id);
	visit_note_304_check(v, found, now_ms);
}

bool fw_trust_of(const struct fw_feed *feed, int64_t now_ms, struct fw_trust *out)
{
	struct fw_rhythm r;

	fw_rhythm_read(feed->rhythm, &r);
	*out = (struct fw_trust){.level = r.trust,
		.checked_ms = r.checked * FW_MINUTE_MS,
		.denied_ms = r.denied * FW_MINUTE_MS,
		.until_ms = fw_trust_until(&r, feed->validators_ms, feed->last_new_ms, now_ms)};
	return feed->validators_ms != 0;
}
