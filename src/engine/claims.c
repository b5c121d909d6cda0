/* SPDX-License-Identifier: ISC */
/*
 * The store thread's way out: work is claimed ahead of the loop, in portions, by due time; on a --once along its course (course.h), and
 * so in a run that is behind: what is most worth a visit first; and, beside all these, what a person asked for.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/settings.h"
#include "engine/storer.h"

#define FIRST_MS 100 /* between tries to get a feed that a person asked for */
#define CLAIM_MAX 500
#define WINDOW 200000            /* feeds on one course */
#define WORTH_AHEAD_MS 500       /* a longer gap between two feeds of a host is longer than it takes to be lent the next */
#define HOLD_MIN_MS INT64_C(100) /* one that was put off is asked for again after its host's gap, at the least this */
#define ASKS_MAX 20              /* claims in a row that bring nothing */
#define LOOK_MS (10 * FW_SECOND_MS) /* between two lists of a backlog, at the least */
#define LOOK_SHARE 20            /* of the store's time all workers' lists of it take no more than one part in so many */
#define IDLE_LOOK_MS FW_SECOND_MS /* between two looks for what is due next, at the least */
#define IDLE_LOOK_SHARE 50       /* of the store's time they take no more than one part in so many */
#define FAR_MS (100 * 366 * FW_DAY_MS)
#define CREW_MS (15 * FW_SECOND_MS) /* who gave no sign of life for so long works on no backlog */
#define ONCE_PATIENCE_MS (60 * FW_SECOND_MS) /* a --once does not wait longer than this for hosts that want a pause */

bool claims_due(const struct storer *s, int64_t mono_ms)
{
	size_t want = atomic_load(&s->l->want);

	if (!s->st || !s->beat_at_ms || s->full_since_ms || s->l->o->shared->paused || s->once_over ||
	    atomic_load(&s->l->stopping) || s->retry.at_ms > mono_ms)
		return false;
	/* in portions, but a few free slots do not wait for many */
	return want && mono_ms >= s->next_claim_ms && (want >= s->l->slots / 4 || mono_ms - s->claimed_at_ms >= STORER_PORTION_MS);
}

/* In which order the loop begins them: on a course by their place there, else as they were lent, or by due time; of a backlog as lent,
   behind what was due before it was claimed. */
static int64_t rank_of(struct storer *s, const struct fw_lease *lease, const struct fw_plan_item *stop, int64_t now_ms)
{
	if (!s->l->o->once)
		return stop ? now_ms : lease->feed.due_at_ms;
	return stop ? stop->rank : s->rank++;
}

/* stop: of each, NULL: they were not on the course. */
static void lend(struct storer *s, struct lease_batch *b, struct fw_lease *lease, struct fw_plan_item **stop, struct lent *lent, size_t n,
	int64_t now_ms, int64_t lease_ms, bool extra)
{
	b->left = n;
	s->alive += n;
	s->idle_look_ms = 0;
	atomic_store(&s->l->o->shared->next_due_ms, 0);
	if (extra)
		s->extra += n;
	else
		atomic_fetch_sub(&s->l->want, n);
	for (size_t i = 0; i < n; i++) {
		lent[i] = (struct lent){.lease = &lease[i], .batch = b, .until_ms = now_ms + lease_ms, .extra = extra, .stop = stop ? stop[i] : NULL,
			.asked_for = lease[i].feed.due_at_ms <= FW_DUE_FIRST, .item.rank = rank_of(s, &lease[i], stop ? stop[i] : NULL, now_ms)};
		if (!fw_ring_put(&s->l->leases, &lent[i]))
			abort(); /* the ring holds as many as can be asked for */
	}
	uv_async_send(&s->l->to_loop);
}

/* The next claim is made when the wall clock shows wake_ms, but soon enough to see what others add. */
static void claim_again(struct storer *s, int64_t wake_ms, int64_t now_ms, int64_t least_ms)
{
	s->next_claim_ms = fw_mono_ms() + (wake_ms == FW_NO_DATE ? STORER_IDLE_MS : FW_MIN(FW_MAX(wake_ms - now_ms, least_ms), STORER_IDLE_MS));
}

/* Nobody has anything in hand, so what is left waits for the clock alone. */
static bool nothing_lent(struct storer *s)
{
	struct fw_store_stats stats;
	struct fw_err err;

	return fw_store_stats(s->st, 0, &stats, &err) == 0 && stats.lent_n == 0;
}

/* Once, at its end: what no order could have been faster than. */
static void measured(struct storer *s)
{
	struct worker_shared *sh = s->l->o->shared;
	struct fw_arena mem;
	struct fw_feed feed;

	if (!s->bounds)
		return;
	sh->measured = *fw_plan_bounds_get(s->bounds);
	fw_arena_init(&mem, 0);
	if (sh->measured.host_us && !fw_store_feed_find(s->st, sh->measured.host_item, FW_STR_NONE, &mem, &feed, NULL))
		(void)fw_store_host(feed.url, sh->measured_host, sizeof(sh->measured_host));
	fw_arena_finish(&mem);
}

/* Once: is anything of the start left, here or with another worker? */
static void once_check(struct storer *s, int64_t now_ms)
{
	int64_t n, wake_ms;
	struct fw_err err;
	int rc = fw_store_pending(s->st, s->l->o->due_before_ms, &n, &wake_ms, &err);

	if (rc) {
		storer_outage(s, "looking for feeds that are left", rc, &err);
		return;
	}
	fw_debug("%lld feeds of this run are left", (long long)n);
	if (n && wake_ms > now_ms + ONCE_PATIENCE_MS && nothing_lent(s)) {
		fw_info("%lld feeds are left for a later run: their hosts asked for a pause", (long long)n);
		n = 0;
	}
	if (n == 0) {
		s->once_over = true;
		s->once_over_ms = fw_mono_ms();
		measured(s);
	} else {
		/* put off for their host's sake, or lent to another worker: the end of its lease is the latest it can take */
		claim_again(s, wake_ms, now_ms, 20);
	}
}

/* How many of a host are lent ahead on a course. */
static uint32_t course_ahead(const struct fw_config *c)
{
	return 4 * (uint32_t)c->host_max + 2;
}

/* How many of a host are lent ahead, so that it need not wait for a commit between two feeds. */
static uint32_t ahead(const struct storer *s)
{
	const struct fw_config *c = s->l->config;

	if (s->l->o->once)
		return s->course && !s->course_over ? course_ahead(c) : 0;
	return c->host_gap_ms < WORTH_AHEAD_MS ? (uint32_t)c->host_max : 0;
}

static struct fw_claim_ask ask_for(const struct storer *s, size_t max, int64_t due_before_ms)
{
	const struct fw_config *c = s->l->config;

	return (struct fw_claim_ask){.worker = s->l->o->shared->name, .lease_ms = c->lease_ms, .max = max, .due_before_ms = due_before_ms,
		.host_max = (uint32_t)c->host_max, .host_gap_ms = c->host_gap_ms, .host_ahead = ahead(s),
		.expect_max_us = !s->l->o->once && atomic_load(&s->l->slow_full) ? c->slow_ms * 1000 : 0};
}

/* Claim and lend to the loop what was lent. With ids: of the course. */
static int claim_some(struct storer *s, const struct fw_claim_ask *ask, bool extra, int64_t now_ms, struct fw_claim_got *got)
{
	struct lease_batch *b = calloc(1, sizeof(*b));
	struct fw_plan_item **stop = NULL;
	struct fw_lease *lease = NULL;
	struct lent *lent = NULL;
	int64_t start_us = fw_mono_us();
	struct fw_err err;
	int rc = FW_ENOMEM;

	*got = (struct fw_claim_got){.n = 0};
	if (b) {
		fw_arena_init(&b->arena, 0);
		lease = fw_arena_calloc(&b->arena, ask->max, sizeof(*lease));
		lent = fw_arena_mul(&b->arena, ask->max, sizeof(*lent), 0);
		stop = ask->ids ? fw_arena_mul(&b->arena, ask->max, sizeof(*stop), 0) : NULL;
		rc = lease && lent && (stop || !ask->ids) ? fw_store_claim(s->st, ask, &b->arena, lease, got, &err) : FW_ENOMEM;
	}
	if (ask->ids && !rc) /* put off though nothing of ours is lent: that is for the clock or for others, and the ordinary claim waits for these */
		course_got(s->course, lease, got->n, got->deferred_n > 0 && (got->n || s->alive), fw_mono_us(),
			FW_MIN(FW_MAX(s->l->config->host_gap_ms, HOLD_MIN_MS), STORER_IDLE_MS) * 1000, stop);
	else if (ask->ids)
		course_unasked(s->course);
	if (!rc && got->n) {
		s->last_due_ms = lease[got->n - 1].feed.due_at_ms;
		lend(s, b, lease, stop, lent, got->n, now_ms, ask->lease_ms, extra);
		b = NULL;
	}
	if (b)
		fw_arena_finish(&b->arena);
	free(b);
	if (!rc) {
		storer_outage_over(s);
		meter_time(s->l->o->meter, FW_TIMING_CLAIM, fw_mono_us() - start_us);
		meter_count(s->l->o->meter, FW_COUNT_LEASES, got->n);
		meter_count(s->l->o->meter, FW_COUNT_DEFERRED, got->deferred_n);
		return 0;
	}
	if (rc == FW_ENOMEM)
		fw_err_set(&err, rc, "out of memory");
	storer_outage(s, "claiming feeds", rc, &err);
	return rc;
}

/* ---- the course ------------------------------------------------------------------------------------------------------------------------ */

/* What is foretold, for the end of the run to be compared with; by the first of the workers, all of whom see the same. */
static void foretell(struct storer *s, size_t n)
{
	const struct course_forecast *f = course_forecast(s->course);
	struct worker_shared *sh = s->l->o->shared;
	int64_t total = FW_MAX(atomic_load(&sh->total), (int64_t)n);

	if (s->l->o->index || sh->foretold.feeds || !f->known)
		return;
	sh->foretold.known = (int64_t)f->known;
	sh->foretold.feeds = (int64_t)n;
	sh->foretold.total_us = (int64_t)((double)f->total.total_us * (double)total / (double)n);
	fw_debug("%zu feeds, %zu of them of known duration: expected to take %lld ms", n, f->known, (long long)(sh->foretold.total_us / 1000));
}

/* Without a course (the driver has no list, or it fails, or there is nothing to order by) claims go by due time. */
void claims_begin(struct storer *s)
{
	const struct worker_options *o = s->l->o;
	struct course_rules r = {.ahead = course_ahead(s->l->config), .index = (uint32_t)o->index, .workers = (uint32_t)o->workers};
	struct due_rows due = {.row = NULL};
	struct fw_err err;
	int rc;

	fw_settings_plan(s->l->config, s->l->slots * (uint32_t)o->workers, &r.plan);
	course_destroy(s->course);
	s->course = NULL;
	s->course_more = false;
	rc = fw_store_due_list(s->st, o->due_before_ms, WINDOW, due_rows_add, &due, &err);
	if (!rc && due.ordered) {
		rc = course_create(&r, due.row, due.n, &s->course);
		if (rc)
			fw_err_set(&err, rc, "out of memory");
	}
	if (rc && rc != FW_EUNSUP)
		fw_warn("putting what is due in order: %s; it is fetched by due time", err.text);
	if (s->course) {
		s->course_over = false;
		s->course_more = due.n >= WINDOW;
		s->rank = (int64_t)due.n;
		foretell(s, due.n);
	}
	free(due.row);
}

/*
 * Ask for those that come next on the course. What somebody else has is passed over, so it may take a few claims. True: it has nothing
 * more for now.
 */
static bool claim_course(struct storer *s, int64_t now_ms)
{
	int64_t id[CLAIM_MAX], next_us = 0, now_us = fw_mono_us();
	struct fw_claim_got got = {.n = 0};
	bool dry = false;

	s->claimed_at_ms = fw_mono_ms();
	for (int i = 0; i < ASKS_MAX && !got.n; i++) {
		struct fw_claim_ask ask = ask_for(s, FW_MIN(atomic_load(&s->l->want), (size_t)CLAIM_MAX), s->l->o->due_before_ms);

		ask.ids = id;
		ask.id_n = course_ask(s->course, now_us, ask.max, id, &next_us);
		dry = ask.id_n < ask.max;
		if (!ask.id_n || claim_some(s, &ask, false, now_ms, &got))
			break;
	}
	if (!got.n && !s->retry.at_ms && next_us)
		s->next_claim_ms = fw_mono_ms() + (next_us == INT64_MAX ? STORER_IDLE_MS : FW_MIN((next_us - now_us) / 1000 + 1, STORER_IDLE_MS));
	s->course_over = course_is_over(s->course);
	if (s->course_over)
		s->next_claim_ms = 0;
	return dry || !got.n;
}

/* ---- a backlog ------------------------------------------------------------------------------------------------------------------------- */

/* Those who work on this store, run by run; of ours we know how many there are. */
struct crew {
	int64_t run_id;
	uint32_t n, before;
};

static int crew_count(void *ctx, const struct fw_beat *b)
{
	struct crew *c = ctx;

	if (b->run_id == c->run_id || !b->slots || fw_worker_is_dead(b->worker))
		return 0;
	c->n++;
	c->before += b->run_id < c->run_id;
	return 0;
}

/*
 * What is due, the most worth first, if more of it than all workers could begin at once is late. Each worker makes his own course, and
 * begins with another part; by the signs of life they agree on whose is whose, but for a few seconds, and one that was lent already is
 * passed over.
 */
static int backlog_list(struct storer *s, struct course **out, struct crew *crew, struct fw_err *err)
{
	const struct worker_options *o = s->l->o;
	struct course_rules r = {.by_value = true, .ahead = ahead(s), .plan.host_max = (uint32_t)s->l->config->host_max};
	struct due_rows due = {.row = NULL};
	size_t late = 0, at_once;
	int rc = fw_store_clock(s->st, &r.now_ms, err);

	rc = rc ? rc : fw_store_beat_list(s->st, r.now_ms - CREW_MS, crew_count, crew, err);
	rc = rc ? rc : fw_store_due_list(s->st, r.now_ms, WINDOW, due_rows_add, &due, err);
	r.index = crew->before + (uint32_t)o->index;
	r.workers = crew->n + (uint32_t)o->workers;
	at_once = (size_t)s->l->slots * r.workers;
	for (size_t i = 0; i < due.n && !rc; i++)
		late += due.row[i].due_at_ms < r.now_ms - s->l->config->backlog_ms;
	if (!rc && late > at_once) {
		rc = course_create(&r, due.row, due.n, out);
		if (rc)
			fw_err_set(err, rc, "out of memory");
	}
	if (!rc && *out && course_ready(*out) <= at_once) { /* many, but of few hosts: any order does */
		course_destroy(*out);
		*out = NULL;
	}
	if (!rc && *out && !s->backlog)
		fw_info("%zu feeds are due, %zu of them late: what is most worth a visit comes first", due.n, late);
	free(due.row);
	return rc;
}

/* Put it in order, or in order again. */
static void backlog_look(struct storer *s)
{
	struct crew crew = {.run_id = s->l->o->run_id};
	int64_t began_ms = fw_mono_ms(), took_ms;
	struct course *c = NULL;
	struct fw_err err;
	int rc;

	s->behind = false;
	rc = backlog_list(s, &c, &crew, &err);
	if (rc && rc != FW_EUNSUP)
		fw_warn("putting what is late in order: %s; it is fetched by due time", err.text);
	took_ms = fw_mono_ms() - began_ms;
	s->look_at_ms = fw_mono_ms() + (rc ? FW_MINUTE_MS : FW_MAX(LOOK_MS, LOOK_SHARE * took_ms * (int64_t)(crew.n + (uint32_t)s->l->o->workers)));
	if (!rc && s->backlog && !c)
		fw_info("the backlog is worked off");
	s->backlog = c != NULL;
	s->course_over = !c;
	if (c) {
		course_follow(c, s->course);
		s->course = c;
	}
}

/* ---- claims ---------------------------------------------------------------------------------------------------------------------------- */

static bool look_due(const struct storer *s, int64_t mono_ms)
{
	return !s->l->o->once && s->l->config->backlog_ms && (s->behind || s->backlog) && mono_ms >= s->look_at_ms;
}

/* Nothing was claimed, and all that was is stored: when is the next feed due? For people who watch: a claim's hint may be too early. */
static void idle_look(struct storer *s, int64_t now_ms)
{
	int64_t began_ms = fw_mono_ms(), n, wake_ms;
	struct fw_err err;

	if (s->l->o->once || s->l->o->index || s->alive || began_ms < s->idle_look_ms)
		return;
	if (fw_store_pending(s->st, now_ms + FAR_MS, &n, &wake_ms, &err))
		return; /* the next claim fails too, and tells */
	atomic_store(&s->l->o->shared->next_due_ms, n && wake_ms == FW_NO_DATE ? 0 : wake_ms);
	s->idle_look_ms = fw_mono_ms() + FW_MAX(IDLE_LOOK_MS, IDLE_LOOK_SHARE * (fw_mono_ms() - began_ms));
}

/* By due time: what is on no course, or has come since that was made. */
static void claim_line(struct storer *s, int64_t now_ms)
{
	bool once = s->l->o->once;
	struct fw_claim_ask ask = ask_for(s, FW_MIN(atomic_load(&s->l->want), (size_t)CLAIM_MAX), once ? s->l->o->due_before_ms : 0);
	struct fw_claim_got got;

	s->claimed_at_ms = fw_mono_ms();
	if (claim_some(s, &ask, false, now_ms, &got))
		return;
	/* fewer than asked: the wheel is empty until next_ms; full, and all of them late: there is a backlog */
	if (got.n < ask.max)
		claim_again(s, got.next_ms, now_ms, 0);
	else if (s->last_due_ms > FW_DUE_FIRST && now_ms - s->last_due_ms > s->l->config->backlog_ms)
		s->behind = true;
	atomic_store_explicit(&s->l->tail, once && !got.n && !got.deferred_n, memory_order_relaxed);
	if (!got.n && once && !s->alive)
		once_check(s, now_ms);
	else if (!got.n)
		idle_look(s, now_ms);
}

void claims_make(struct storer *s, int64_t now_ms)
{
	int64_t course_ms;

	if (s->course_over && s->course_more && !s->alive)
		claims_begin(s);
	if (look_due(s, fw_mono_ms()))
		backlog_look(s);
	if (s->course && s->course_over && !s->l->o->once && course_is_idle(s->course)) {
		course_destroy(s->course);
		s->course = NULL;
	}
	if (s->course && !s->course_over) {
		bool dry = claim_course(s, now_ms);

		if (s->l->o->once || !dry || s->retry.at_ms)
			return;
		course_ms = s->next_claim_ms;
		claim_line(s, now_ms);
		s->next_claim_ms = FW_MIN(s->next_claim_ms, course_ms);
		return;
	}
	if (s->course_over && s->course_more) { /* the next one is made when nobody is on this one any more; a commit comes before */
		s->next_claim_ms = fw_mono_ms() + STORER_IDLE_MS;
		return;
	}
	claim_line(s, now_ms);
}

/* ---- feeds that a person asked for ------------------------------------------------------------------------------------------------- */

bool claims_first_due(const struct storer *s, int64_t mono_ms)
{
	return s->first_until_ms && mono_ms >= s->first_at_ms && s->st && s->beat_at_ms && !s->full_since_ms &&
		!s->l->o->shared->paused && !s->once_over && !atomic_load(&s->l->stopping) && s->retry.at_ms <= mono_ms;
}

/*
 * Get them without being asked by the loop, which may have all it can take. One that waits for its host's pause is tried again.
 * One that is lent is under way, or comes back within two seconds from a worker that had not begun it, and may by then have
 * claimed others in its place.
 */
void claims_first(struct storer *s, int64_t now_ms, int64_t mono_ms)
{
	struct fw_claim_ask ask = ask_for(s, SPARE_SLOTS - FW_MIN(s->extra, (size_t)SPARE_SLOTS), FW_DUE_FIRST);
	struct fw_claim_got got = {.n = 0};
	int64_t n, wake_ms;
	struct fw_err err;
	int rc;

	s->first_at_ms = mono_ms + FIRST_MS;
	ask.host_ahead += SPARE_SLOTS; /* others of its host that are here already have to let it pass, not the other way round */
	if (s->extra < SPARE_SLOTS && claim_some(s, &ask, true, now_ms, &got))
		return;
	rc = fw_store_pending(s->st, FW_DUE_FIRST, &n, &wake_ms, &err);
	if (rc) {
		storer_outage(s, "looking for feeds that were asked for", rc, &err);
		return;
	}
	if (n == 0 || mono_ms >= s->first_until_ms ||
	    (!got.n && wake_ms > now_ms + FW_SECOND_MS && mono_ms >= s->first_back_ms))
		s->first_until_ms = 0;
}
