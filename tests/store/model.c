/* SPDX-License-Identifier: ISC */
/*
 * A random walk over the contract of src/store/driver.h, compared with a model of it. Workers join,
 * share, leave, die and return. Feeds are visited, pushed to, requested, paused, moved, merged and
 * removed while they are in flight. After each step the due feeds, the owners and the stored rows
 * are those of the model. FW_WALK_SEED repeats a walk, FW_WALK_STEPS sets its length, FW_LONG walks
 * for some minutes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "drv.h"
#include "store/driver.h"

enum { WORKERS = 3, FEEDS = 300, HOSTS = 12, KEYS = 24, BATCH = 12, NOBODY = -1 };

struct mfeed {
	int64_t id, due, last_visit;
	bool news;        /* something has changed since */
	int64_t last_new; /* the feed was read, and this was its time */
	int host, path;   /* the numbers in its URL */
	enum fw_feed_status status;
	uint32_t crash_n;
	bool is;
	int visits;
	uint64_t hash[KEYS]; /* of its entries; 0: none */
};

/* a feed as a worker has read it */
struct flight {
	int feed;
	int64_t host_id, was_due;
};

struct mworker {
	struct store_lease *l;
	int64_t id; /* of its lease, alive or dead; 0: it never had one */
	bool lives, over, idle;
	struct flight flight[BATCH];
	int flight_n;
};

enum risen { STOOD, MAY_RISE, ROSE };
struct mshard {
	int owner;
	int64_t quiet_from, quiet_to;
	int64_t version;
	enum risen risen;
};

static struct mfeed feed[FEEDS];
static int feed_n, path_n;
static struct mworker worker[WORKERS];
static struct mshard shard[STORE_SHARDS];
static struct {
	int64_t next, cooldown, learned_delay;
	bool is;
} host[HOSTS];
static int64_t last_lease, clock_ms;
static uint64_t dice;
static char words[120];

#define WALK(cond, ...) ck_assert_msg(cond, "after %s: " __VA_ARGS__)

static uint64_t roll(uint64_t n)
{
	dice = fw_hash64(&dice, sizeof(dice)) + 1;
	return dice % n;
}

static int64_t host_id(int h)
{
	char name[40];

	ck_assert(fw_snprintf(name, sizeof(name), "h%d.example", h));
	return store_host_id(fw_str(name));
}

static int shard_of(const struct mfeed *f)
{
	return store_host_shard(host_id(f->host));
}

static void url_of(char *out, size_t cap, int h, int path)
{
	ck_assert(fw_snprintf(out, cap, "https://h%d.example/%d", h, path));
}

static struct mfeed *some_feed(void)
{
	for (int i = 0; i < 50; i++) {
		struct mfeed *f = &feed[roll((uint64_t)feed_n)];

		if (f->is)
			return f;
	}
	return NULL;
}

static void raise_to(int s, enum risen how)
{
	shard[s].risen = FW_MAX(shard[s].risen, how);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void lease_ends(struct store *st, struct mworker *w, int64_t from_ms)
{
	for (int s = 0; s < STORE_SHARDS; s++) {
		if (shard[s].owner != (int)(w - worker))
			continue;
		shard[s].owner = NOBODY;
		shard[s].quiet_from = from_ms;
		shard[s].quiet_to = drv_clock(st);
	}
	w->lives = false;
}

/* What a heartbeat returned beside the shards. */
static void heartbeat_check(struct mworker *w, size_t living, size_t idle_n, size_t had, size_t free_n, bool joined)
{
	const struct store_lease *l = w->l;
	size_t part = (STORE_SHARDS + living - 1) / living, share = l->idle ? (free_n + idle_n) / (idle_n + 1) : 0;
	size_t takes = l->full ? 0 : FW_MAX(share, part > had ? part - had : 0);
	int me = (int)(w - worker);

	WALK(l->living == living && l->idle_n == idle_n, "%u live, %u are idle, not %zu and %zu", words, l->living,
		l->idle_n, living, idle_n);
	WALK(l->shard_n == had + FW_MIN(takes, free_n), "it had %zu, %zu were free, and it has %zu", words, had, free_n,
		l->shard_n);
	WALK(joined ? l->id > last_lease : l->id == w->id, "lease %lld after %lld", words, (long long)l->id,
		(long long)last_lease);
	for (size_t i = 0; i < l->shard_n; i++) {
		struct mshard *s = &shard[l->shard[i].shard];
		int64_t quiet = l->shard[i].quiet_since_ms, version = l->shard[i].version;

		WALK(s->owner == me || s->owner == NOBODY, "shard %d is another's", words, l->shard[i].shard);
		had -= s->owner == me;
		s->owner = me;
		WALK(quiet >= s->quiet_from && quiet <= s->quiet_to, "shard %d: quiet since %lld, not %lld", words,
			l->shard[i].shard, (long long)quiet, (long long)s->quiet_from);
		s->quiet_from = s->quiet_to = quiet;
		WALK(version >= s->version + (s->risen == ROSE) && (s->risen != STOOD || version == s->version),
			"shard %d: version %lld after %lld", words, l->shard[i].shard, (long long)version,
			(long long)s->version);
		s->version = version;
		s->risen = STOOD;
	}
	WALK(had == 0, "it lost %zu shards", words, had);
}

static void heartbeat_step(struct store *st)
{
	struct mworker *w = &worker[roll(WORKERS)];
	int64_t from_ms = drv_clock(st);
	size_t living = 1, idle_n = 0, had = 0, free_n = 0;
	bool joins = !w->lives && (!w->id || roll(2));
	int rc;

	w->l->id = joins ? 0 : w->id;
	w->l->lease_ms = roll(4) ? LONG_MS : -1000;
	w->l->idle = roll(3) == 0;
	w->l->full = !w->l->idle && roll(5) == 0;
	rc = st->driver->heartbeat(st, w == worker ? "w/1" : w == worker + 1 ? "w/10" : "w/2", w->l, &drv_err);
	WALK(rc == (joins || w->lives ? 0 : FW_ESTALE), "%d %s", words, rc, drv_err.text);
	if (rc)
		return;
	for (int i = 0; i < WORKERS; i++) {
		struct mworker *o = &worker[i];

		if (o == w || !o->lives)
			continue;
		if (o->over) {
			lease_ends(st, o, from_ms);
			continue;
		}
		living++;
		idle_n += o->idle;
	}
	for (int s = 0; s < STORE_SHARDS; s++) {
		had += shard[s].owner == (int)(w - worker);
		free_n += shard[s].owner == NOBODY;
	}
	heartbeat_check(w, living, idle_n, had, free_n, joins);
	if (joins) {
		w->flight_n = 0;
		last_lease = w->l->id;
	}
	w->id = w->l->id;
	w->lives = true;
	w->over = w->l->lease_ms < 0;
	w->idle = w->l->idle;
}

static bool flies(const struct mworker *w, int s)
{
	for (int i = 0; i < w->flight_n; i++) {
		if (store_host_shard(w->flight[i].host_id) == s)
			return true;
	}
	return false;
}

static void gives(struct store *st)
{
	static struct store_shard give[STORE_SHARDS];
	struct mworker *w = &worker[roll(WORKERS)];
	struct store_release g = {.lease_id = w->id, .shard = give, .leave = roll(5) == 0};
	int64_t from_ms = drv_clock(st), quiet = roll(2) ? 0 : from_ms - (int64_t)roll(1000);
	uint64_t part = 1 + roll(4);

	if (!w->id)
		return;
	for (int s = 0; s < STORE_SHARDS; s++) { /* some of them belong to others, and stay there */
		bool own = shard[s].owner == (int)(w - worker);

		if (roll(4) >= part || flies(w, s) || (!own && roll(10)))
			continue;
		give[g.n++] = (struct store_shard){.shard = s, .quiet_since_ms = quiet};
		if (!w->lives || !own)
			continue;
		shard[s].owner = NOBODY;
		shard[s].quiet_from = shard[s].quiet_to = quiet;
	}
	DONE(st->driver->release(st, &g, &drv_err));
	if (g.leave && w->lives)
		lease_ends(st, w, from_ms);
}

static void reaps(struct store *st)
{
	struct mfeed *f = roll(2) ? some_feed() : NULL;
	int64_t from_ms = drv_clock(st);

	drv_reap(st, "w/1", f ? f->id : 0);
	if (worker[0].lives)
		lease_ends(st, &worker[0], from_ms);
	if (!f)
		return;
	raise_to(shard_of(f), ++f->crash_n >= FW_STORE_CRASH_MAX && f->status == FW_FEED_ACTIVE ? ROSE : MAY_RISE);
	if (f->status == FW_FEED_ACTIVE && f->crash_n >= FW_STORE_CRASH_MAX)
		f->status = FW_FEED_QUARANTINED;
}

/* ---- visits ---------------------------------------------------------------------------------- */

/* Starts visits of some feeds that are due in its shards. */
static void takes(struct store *st)
{
	struct mworker *w = &worker[roll(WORKERS)];

	for (int i = 0; i < feed_n && w->lives && w->flight_n < BATCH; i++) {
		const struct mfeed *f = &feed[i];
		bool has = false;

		for (int k = 0; k < w->flight_n; k++)
			has = has || w->flight[k].feed == i;
		if (has || !f->is || f->status != FW_FEED_ACTIVE || shard[shard_of(f)].owner != (int)(w - worker) ||
			roll(3))
			continue;
		w->flight[w->flight_n++] = (struct flight){i, host_id(f->host), f->due};
	}
	(void)st;
}

/* Up to three entries; of two with one key the first counts. */
static size_t some_entries(struct fw_entry_row *e)
{
	size_t n = roll(4);

	for (size_t i = 0; i < n; i++)
		e[i] = entry((int)roll(KEYS), 1 + (int)roll(2), "t", "text");
	return n;
}

static void entries_stored(struct mfeed *f, const struct fw_outcome *o)
{
	uint32_t new_n = 0, changed_n = 0;
	bool seen[KEYS] = {false};

	for (size_t i = 0; i < o->entry_n; i++) {
		int key;

		memcpy(&key, o->entries[i].key, sizeof(key));
		if (seen[key])
			continue;
		seen[key] = true;
		new_n += !f->hash[key];
		changed_n += f->hash[key] && f->hash[key] != o->entries[i].hash;
		f->hash[key] = o->entries[i].hash;
	}
	f->news = f->news || new_n;
	WALK(o->visit.new_n == new_n && o->visit.changed_n == changed_n, "feed %lld: %u new, %u changed, not %u and %u",
		words, (long long)f->id, o->visit.new_n, o->visit.changed_n, new_n, changed_n);
}

static bool url_taken(const struct mfeed *but, int h, int path)
{
	for (int i = 0; i < feed_n; i++) {
		if (&feed[i] != but && feed[i].is && feed[i].host == h && feed[i].path == path)
			return true;
	}
	return false;
}

static struct {
	struct fw_outcome o[BATCH];
	struct fw_feed state[BATCH];
	struct fw_entry_row e[BATCH][4];
	int to_host[BATCH], to_path[BATCH];
	char url[BATCH][60];
} batch;

static void outcome_make(int i, const struct flight *at)
{
	const struct mfeed *f = &feed[at->feed];
	struct fw_feed *s = &batch.state[i];

	batch.to_host[i] = f->host;
	batch.to_path[i] = f->path;
	url_of(batch.url[i], sizeof(batch.url[i]), f->host, f->path);
	*s = (struct fw_feed){.id = f->id,
		.url = fw_str(batch.url[i]),
		.due_at_ms = (int64_t)roll(100000),
		.last_visit_ms = ++clock_ms,
		.status = roll(8) ? FW_FEED_ACTIVE : FW_FEED_GONE,
		.why = FW_STR("why"),
		.crash_n = roll(3) ? 0 : f->crash_n};
	batch.o[i] = (struct fw_outcome){.feed_id = f->id,
		.host_id = at->host_id,
		.was_due_ms = at->was_due,
		.feed = s,
		.visit = {.at_ms = clock_ms, .kind = FW_VISIT_OK, .slot = -1},
		.entries = batch.e[i],
		.entry_n = some_entries(batch.e[i])};
}

/* At most one of a batch has_new_url: with two the order would count. */
static void outcome_gets_new_url(int i)
{
	const struct mfeed *to = roll(2) ? some_feed() : NULL;

	batch.to_host[i] = to ? to->host : (int)roll(HOSTS);
	batch.to_path[i] = to ? to->path : batch.to_path[i];
	url_of(batch.url[i], sizeof(batch.url[i]), batch.to_host[i], batch.to_path[i]);
	batch.state[i].url = fw_str(batch.url[i]);
	batch.o[i].groups = FW_GROUP_URL;
}

static void outcome_stored(struct mfeed *f, int i)
{
	const struct fw_outcome *o = &batch.o[i];
	bool has_new_url = o->groups & FW_GROUP_URL,
	     taken = has_new_url && url_taken(f, batch.to_host[i], batch.to_path[i]);

	WALK(o->rc ==
			(!f->is               ? FW_ENOTFOUND :
					taken ? FW_EINVAL :
						0),
		"feed %lld: %d", words, (long long)o->feed_id, o->rc);
	if (!f->is)
		return;
	f->due = f->due == o->was_due_ms ? o->feed->due_at_ms : f->due;
	f->status = f->status == FW_FEED_ACTIVE ? o->feed->status : f->status;
	f->crash_n = o->feed->crash_n;
	f->last_visit = o->feed->last_visit_ms;
	f->visits++;
	entries_stored(f, o);
	if (!has_new_url || taken || batch.to_host[i] == f->host) {
		f->path = has_new_url && !taken ? batch.to_path[i] : f->path;
		return;
	}
	raise_to(shard_of(f), ROSE);
	f->host = batch.to_host[i];
	f->path = batch.to_path[i];
	raise_to(shard_of(f), ROSE);
}

static void hosts_stored(const struct store_host *h, int at)
{
	if (h->others) {
		host[at].next = FW_MAX(host[at].is ? host[at].next : h->next_ok_ms, h->next_ok_ms);
		host[at].cooldown = FW_MAX(
			host[at].is ? host[at].cooldown : h->cooldown_until_ms, h->cooldown_until_ms);
		host[at].learned_delay = host[at].is ? host[at].learned_delay : h->learned_delay_ms;
		raise_to(store_host_shard(h->id), MAY_RISE);
	} else {
		host[at].next = h->next_ok_ms;
		host[at].cooldown = h->cooldown_until_ms;
		host[at].learned_delay = h->learned_delay_ms;
	}
	host[at].is = true;
}

static void commits(struct store *st)
{
	struct mworker *w = &worker[roll(WORKERS)];
	int at_host = (int)roll(HOSTS), n = 0, took[BATCH], rc;
	struct store_host h = {.id = host_id(at_host),
		.next_ok_ms = (int64_t)roll(1000),
		.cooldown_until_ms = (int64_t)roll(1000),
		.learned_delay_ms = (int64_t)roll(1000)};
	struct store_commit c = {.lease_id = w->id, .outcome = batch.o, .host = &h, .host_n = roll(2)};
	bool again = roll(4) == 0;

	if (!w->id)
		return;
	for (int i = 0; i < w->flight_n; i++) {
		if (roll(3) == 0)
			continue;
		took[n] = w->flight[i].feed;
		outcome_make(n++, &w->flight[i]);
		w->flight[i--] = w->flight[--w->flight_n];
	}
	if (n && roll(3) == 0)
		outcome_gets_new_url((int)roll((uint64_t)n));
	h.others = shard[store_host_shard(h.id)].owner != (int)(w - worker);
	c.n = (size_t)n;
	rc = st->driver->commit(st, &c, &drv_err);
	WALK(rc == (w->lives ? 0 : FW_ESTALE), "%d %s", words, rc, drv_err.text);
	if (rc)
		return;
	for (int i = 0; i < n; i++)
		outcome_stored(&feed[took[i]], i);
	if (c.host_n)
		hosts_stored(&h, at_host);
	for (int i = 0; i < n; i++) /* a feed that moved is not where its outcome claims */
		again = again && !(batch.o[i].groups & FW_GROUP_URL);
	if (!again)
		return;
	rc = st->driver->commit(st, &c, &drv_err);
	WALK(rc == 0, "once more: %d %s", words, rc, drv_err.text);
	for (int i = 0; i < n; i++)
		WALK(batch.o[i].rc == (feed[took[i]].is ? 0 : FW_ENOTFOUND), "once more, feed %lld: %d", words,
			(long long)batch.o[i].feed_id, batch.o[i].rc);
	if (c.host_n)
		hosts_stored(&h, at_host);
}

static void pushes(struct store *st)
{
	int n = 1 + (int)roll(4), of[4];
	struct fw_outcome again[4];

	for (int i = 0; i < n; i++) {
		bool twice = false;

		of[i] = (int)roll((uint64_t)feed_n);
		for (int k = 0; k < i; k++)
			twice = twice || of[k] == of[i];
		if (twice) {
			n = i;
			break;
		}
		batch.o[i] = drv_push(feed[of[i]].id, &batch.state[i], batch.e[i], some_entries(batch.e[i]));
		batch.state[i] = (struct fw_feed){.due_at_ms = 3, .status = FW_FEED_GONE, .last_visit_ms = 4};
	}
	memcpy(again, batch.o, sizeof(again));
	DONE(drv_commit(st, 0, batch.o, (size_t)n));
	if (roll(3) == 0)
		DONE(drv_commit(st, 0, again, (size_t)n));
	for (int i = 0; i < n; i++) {
		struct mfeed *f = &feed[of[i]];

		WALK(batch.o[i].rc == (f->is ? 0 : FW_ENOTFOUND), "feed %lld: %d", words, (long long)f->id,
			batch.o[i].rc);
		if (!f->is)
			continue;
		f->visits++;
		entries_stored(f, &batch.o[i]);
	}
}

/* ---- other clients --------------------------------------------------------------------------- */

static void loads(struct store *st)
{
	struct fw_feed f[2];
	struct store_feed_new made[2] = {{0}};
	const struct mfeed *old = feed_n && roll(3) == 0 ? some_feed() : NULL;
	struct mfeed *m = &feed[feed_n];
	char url[2][60];

	if (feed_n == FEEDS)
		return;
	*m = (struct mfeed){.is = true, .host = (int)roll(HOSTS), .path = path_n++, .due = 1 + (int64_t)roll(100000)};
	url_of(url[0], sizeof(url[0]), m->host, m->path);
	url_of(url[1], sizeof(url[1]), old ? old->host : m->host, old ? old->path : m->path);
	f[0] = (struct fw_feed){.url = fw_str(url[0]), .due_at_ms = m->due};
	f[1] = (struct fw_feed){.url = fw_str(url[1]), .due_at_ms = 77};
	DONE(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = 2}, .made = made}, &drv_err));
	m->id = made[0].id;
	WALK(!made[0].existed && made[1].existed && made[1].id == (old ? old->id : m->id), "%lld and %lld", words,
		(long long)made[0].id, (long long)made[1].id);
	WALK(!feed_n || m->id > feed[feed_n - 1].id, "number %lld again", words, (long long)m->id);
	feed_n++;
	raise_to(shard_of(m), ROSE);
	if (old)
		raise_to(shard_of(old), MAY_RISE);
}

static void sets(struct store *st)
{
	const struct mworker *w = &worker[roll(WORKERS)];
	/* prefers a feed in flight */
	struct mfeed *f = &feed[w->flight_n && roll(2) ? (uint64_t)w->flight[0].feed : roll((uint64_t)feed_n)];
	struct fw_feed set = {.id = f->id, .status = roll(2) ? FW_FEED_ACTIVE : FW_FEED_PAUSED};
	unsigned what = roll(2) ? FW_SET_STATUS : FW_SET_DUE;
	int rc;

	set.due_at_ms = roll(3) ? (int64_t)roll(100000) : FW_DUE_FIRST;
	what |= roll(3) ? 0 : FW_SET_CRASH;
	rc = st->driver->feed_set(st, &set, what, &drv_err);
	WALK(rc == (f->is ? 0 : FW_ENOTFOUND), "%d %s", words, rc, drv_err.text);
	if (!f->is)
		return;
	if (what & FW_SET_STATUS)
		f->status = set.status;
	else
		f->due = set.due_at_ms;
	f->crash_n = what & FW_SET_CRASH ? 0 : f->crash_n;
	raise_to(shard_of(f), ROSE);
}

static void drops(struct store *st)
{
	struct mfeed *f = some_feed(), *into = roll(2) ? some_feed() : NULL;

	if (!f || f == into || feed_n < 20)
		return;
	DONE(st->driver->feed_drop(st, f->id, into ? into->id : 0, &drv_err));
	raise_to(shard_of(f), ROSE);
	f->is = false;
	if (!into)
		return;
	raise_to(shard_of(into), MAY_RISE);
	for (int k = 0; k < KEYS; k++)
		into->hash[k] = into->hash[k] ? into->hash[k] : f->hash[k];
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void due_compare(struct store *st)
{
	int64_t until = roll(2) ? INT64_MAX : (int64_t)roll(100000);
	int one = roll(2) ? store_host_shard(host_id((int)roll(HOSTS))) : -1;
	const struct drv_due *d = drv_due(st, one, until);
	size_t n = 0, host_n = 0;

	for (int i = 0; i < feed_n; i++) {
		const struct mfeed *f = &feed[i];
		const struct store_due *row = NULL;

		if (!f->is || f->status != FW_FEED_ACTIVE || f->due > until || (one >= 0 && shard_of(f) != one))
			continue;
		n++;
		for (size_t k = 0; k < d->n; k++)
			row = d->due[k].feed_id == f->id ? &d->due[k] : row;
		WALK(row, "feed %lld is not due", words, (long long)f->id);
		WALK(row->due_at_ms == f->due && row->host_id == host_id(f->host) && row->shard == shard_of(f) &&
				row->last_visit_ms == f->last_visit,
			"feed %lld: due %lld, not %lld; visited %lld, not %lld", words, (long long)f->id,
			(long long)row->due_at_ms, (long long)f->due, (long long)row->last_visit_ms,
			(long long)f->last_visit);
	}
	WALK(d->n == n, "%zu are due, not %zu", words, d->n, n);
	for (int h = 0; h < HOSTS; h++) {
		const struct store_host *row = NULL;

		if (!host[h].is || (one >= 0 && store_host_shard(host_id(h)) != one))
			continue;
		host_n++;
		for (size_t k = 0; k < d->host_n; k++)
			row = d->host[k].id == host_id(h) ? &d->host[k] : row;
		WALK(row && row->next_ok_ms == host[h].next && row->cooldown_until_ms == host[h].cooldown &&
				row->learned_delay_ms == host[h].learned_delay,
			"host %d: another row, or none", words, h);
	}
	WALK(d->host_n == host_n, "%zu hosts, not %zu", words, d->host_n, host_n);
}

static void feed_compare(struct store *st)
{
	struct mfeed *f = &feed[roll((uint64_t)feed_n)];
	const struct fw_feed *got;
	char url[60];
	int entries = 0;

	WALK(drv_is(st, f->id) == f->is, "feed %lld is there or not, against what it should", words, (long long)f->id);
	for (int k = 0; k < KEYS; k++)
		entries += f->is && f->hash[k];
	WALK(drv_visits(st, f->id) == (f->is ? f->visits : 0), "feed %lld: not %d visits", words, (long long)f->id,
		f->visits);
	WALK(drv_entries(st, f->id) == entries, "feed %lld: not %d entries", words, (long long)f->id, entries);
	if (!f->is)
		return;
	got = drv_find(st, f->id);
	url_of(url, sizeof(url), f->host, f->path);
	WALK(fw_str_eq(got->url, fw_str(url)) && got->status == f->status && got->due_at_ms == f->due &&
			got->crash_n == f->crash_n && got->last_visit_ms == f->last_visit && got->entry_n == entries,
		"feed %lld: %.*s status %d due %lld crashed %u entries %lld", words, (long long)f->id,
		FW_STR_ARG(got->url), got->status, (long long)got->due_at_ms, got->crash_n, (long long)got->entry_n);
	WALK(f->news ? got->last_new_ms >= f->last_new && got->last_new_ms : got->last_new_ms == f->last_new,
		"feed %lld: new at %lld, then at %lld", words, (long long)f->id, (long long)f->last_new,
		(long long)got->last_new_ms);
	f->last_new = got->last_new_ms;
	f->news = false;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static const struct {
	const char *words;
	void (*go)(struct store *st);
	unsigned often;
} steps[] = {
	{"a heartbeat", heartbeat_step, 6},
	{"giving back", gives, 2},
	{"a reaping", reaps, 1},
	{"a claim", takes, 4},
	{"a commit", commits, 6},
	{"a push", pushes, 2},
	{"a load", loads, 2},
	{"a change by the owner", sets, 3},
	{"a removal", drops, 1},
};

static void step(struct store *st, uint64_t seed, int64_t number)
{
	size_t k = 0;
	uint64_t at = 0;

	for (size_t i = 0; i < FW_N(steps); i++)
		at += steps[i].often;
	for (at = roll(at); at >= steps[k].often; k++)
		at -= steps[k].often;
	ck_assert(fw_snprintf(words, sizeof(words), "step %lld of walk %llu, %s", (long long)number,
		(unsigned long long)seed, steps[k].words));
	steps[k].go(st);
	if (roll(2))
		due_compare(st);
	feed_compare(st);
	if (number % 20 == 0)
		drv_clean(st);
}

static void walk_begin(struct store *st, uint64_t seed)
{
	dice = seed;
	feed_n = path_n = 0;
	last_lease = 0;
	clock_ms = NOW;
	memset(host, 0, sizeof(host));
	for (int s = 0; s < STORE_SHARDS; s++)
		shard[s] = (struct mshard){.owner = NOBODY, .risen = MAY_RISE};
	for (int i = 0; i < WORKERS; i++) {
		struct store_lease *l = worker[i].l ? worker[i].l : calloc(1, sizeof(*l));

		ck_assert_ptr_nonnull(l);
		worker[i] = (struct mworker){.l = l};
	}
	(void)fw_snprintf(words, sizeof(words), "the beginning of walk %llu", (unsigned long long)seed);
	for (int i = 0; i < 25; i++)
		loads(st);
}

/* Over two connections, where possible: what one has cached the other has changed. */
static void walk(int i, uint64_t seed, int64_t step_n)
{
	const char *url = drv_url(i);
	struct store *st = drv_open(i, url, FW_STORE_CREATE);
	struct store *other = under_test[i].shared ? drv_open(i, url, 0) : st;

	walk_begin(st, seed);
	for (int64_t n = 0; n < step_n; n++)
		step(roll(2) ? st : other, seed, n);
	(void)fw_snprintf(words, sizeof(words), "walk %llu", (unsigned long long)seed);
	for (int n = 0; n < 40; n++) {
		due_compare(st);
		feed_compare(other);
	}
	if (other != st)
		other->driver->close(other);
	drv_end(st);
}

static int64_t env_number(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	if (text)
		ck_assert(fw_str_int(fw_str(text), &otherwise));
	return otherwise;
}

START_TEST(store_and_model_agree)
{
	int64_t seed = env_number("FW_WALK_SEED", 0), long_run = env_number("FW_LONG", 0);

	for (int64_t i = seed ? seed : 1; i <= (seed ? seed : long_run ? 200 : 5); i++)
		walk(_i, (uint64_t)i, env_number("FW_WALK_STEPS", long_run ? 400 : 200));
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, getenv("FW_LONG") ? 3600 : 120);
	const TTest *const every[] = {store_and_model_agree};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store model", t);
}
