/* SPDX-License-Identifier: ISC */
/*
 * Upkeep, and forgetting what is old, a few at a time.
 *
 * A call of prune goes on for a tenth of a second and notes what is left; upkeep does that, step by step. Nobody waits longer for the write
 * lock than one transaction takes, and the caller is back at its claims soon, when ten million visits are to go. What a connection
 * has noted and is closed with is found again by the next one's prune.
 */
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite.h"

#define CALL_MS 100
#define CALL_STEPS 4 /* at least, however slow the machine is: what is little goes at once */

#define PAUSE_US 6000 /* who waits for the lock looks every 1 to 5 ms (busy() in sqlite.c): leave it free for that long */

/* One transaction, or a look at some rows; *n: how many went. */
static int step(struct sqlite *s, int64_t *n, struct fw_err *err)
{
	struct sq_prune *p = &s->prune;
	bool more;
	int rc;

	*n = 0;
	if (p->visits_before_ms) {
		rc = sq_visits_prune(s, p->visits_before_ms, n, &more, err);
		if (!rc && !more)
			p->visits_before_ms = 0;
		return rc;
	}
	rc = sq_entries_prune(s, p->entries_before_ms, &p->after_id, n, err);
	if (!rc && p->after_id < 0)
		p->entries_before_ms = 0;
	return rc;
}

static bool left(const struct sqlite *s)
{
	return s->prune.visits_before_ms || s->prune.entries_before_ms;
}

int sq_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t until = fw_mono_ms() + CALL_MS, done;
	int rc = 0;

	if (s->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", s->path);
	if (visits_before_ms)
		s->prune.visits_before_ms = visits_before_ms;
	if (entries_before_ms && !s->prune.entries_before_ms)
		s->prune.after_id = 0; /* else an earlier walk goes on */
	if (entries_before_ms)
		s->prune.entries_before_ms = entries_before_ms;
	for (int i = 0; !rc && left(s) && (i < CALL_STEPS || fw_mono_ms() < until); i++) {
		if (i)
			usleep(PAUSE_US);
		rc = step(s, &done, err);
		*n += done;
	}
	return rc;
}

int sq_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t done;
	int rc = sq_index_upkeep(s, more, err);

	(void)now_ms;
	if (*more || left(s))
		usleep(PAUSE_US);
	if (rc || *more || !left(s))
		return rc;
	rc = step(s, &done, err);
	*more = !rc && left(s);
	return rc;
}
