/* SPDX-License-Identifier: ISC */
/*
 * Who is subscribed, and what the owner sets.
 *
 * Subscribing and unsubscribing go one at a time (PG_LOCK_MEMBERS), in bulk: they count the feeds of hosts, and a host that gets its
 * second feed becomes crowded: from then on its loans are counted.
 *
 * To take a feed off the wheel one must find it: it is lent, in a place, or parked, and may be moved on by a claim or a commit at any
 * moment. Each look takes the lock that ends such a movement, in the usual order; after one that found nothing it is looked again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "store/postgres.h"

#define LOOKS 100 /* for a feed that moves on while one looks */

/* ---- hosts come and go --------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct pg_join *x = a, *y = b;
	int d = memcmp(x->name.p, y->name.p, FW_MIN(x->name.len, y->name.len));

	return d ? d : x->name.len < y->name.len ? -1 : x->name.len > y->name.len;
}

size_t pg_joins_merge(struct pg_join *j, size_t n)
{
	size_t m = 0;

	if (n)
		qsort(j, n, sizeof(*j), by_name);
	for (size_t i = 0; i < n; i++) {
		if (m && by_name(&j[m - 1], &j[i]) == 0)
			j[m - 1].n += j[i].n;
		else
			j[m++] = j[i];
	}
	return m;
}

struct pg_join *pg_join_find(struct pg_join *j, size_t n, struct fw_str name)
{
	struct pg_join key = {.name = name};

	return bsearch(&key, j, n, sizeof(key), by_name);
}

struct crowding { /* a host that gets its second feed */
	int64_t host_id, busy_n, turn_n;
};

static int by_id(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct first { /* the first feed of such a host */
	int64_t feed_id, host_id;
};

static struct crowding *crowding_of(struct crowding *c, size_t n, int64_t host_id)
{
	return bsearch(&host_id, c, n, sizeof(*c), by_id); /* the id comes first in it */
}

/* The loans of first feeds are counted from now on. */
static void loans_count(struct pg *p, struct pg_loans *loans, const struct first *first, size_t first_n, struct crowding *c, size_t n)
{
	for (size_t i = 0; i < loans->n; i++) {
		struct pg_loan *l = &loans->at[i];

		for (size_t bit = 0; bit < l->n; bit++) {
			const struct first *f = bsearch(&l->feed[bit], first, first_n, sizeof(*first), by_id);

			if (!f || l->host[bit] || !(l->open >> bit & 1))
				continue;
			l->host[bit] = f->host_id;
			crowding_of(c, n, f->host_id)->busy_n++;
		}
		pg_int(p, l->id);
		pg_ints(p, l->host, l->n);
		pg_send(p, PG_LOAN_HOSTS, "UPDATE loans SET host_id = $2::int8[] WHERE id = $1::int8");
	}
}

/* Second feeds have come to these hosts: the first ones' loans and turns are counted from now on. Sorted by host. */
static int hosts_crowd(struct pg *p, struct crowding *c, size_t n, struct fw_err *err)
{
	struct pg_loans loans = {NULL, 0};
	struct first *first = NULL;
	size_t first_n;
	int rc;

	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, c[i].host_id);
	pg_send(p, PG_CROWD, "UPDATE feeds SET crowd_id = host_id WHERE host_id = ANY ($1::int8[]) AND crowd_id = 0 RETURNING id, host_id");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	first_n = (size_t)PQntuples(p->res[p->res_n - 1]);
	first = calloc(first_n + 1, sizeof(*first));
	if (!first)
		return pg_no_memory(p, err);
	for (size_t i = 0; i < first_n; i++)
		first[i] = (struct first){pg_get_int(p->res[p->res_n - 1], (int)i, 0), pg_get_int(p->res[p->res_n - 1], (int)i, 1)};
	qsort(first, first_n, sizeof(*first), by_id);
	for (int round = 0; round < 2; round++) {
		pg_array(p, PG_INT8, first_n);
		for (size_t i = 0; i < first_n; i++)
			pg_item_int(p, first[i].feed_id);
		if (round == 0)
			pg_send(p, PG_LOANS_OF_FEEDS, "SELECT " PG_LOAN_COLUMNS " FROM loans WHERE feed_id && $1::int8[] ORDER BY id FOR UPDATE");
		else
			pg_send(p, PG_MOVED_OF, "SELECT feed_id FROM places WHERE due_at_ms IS NOT NULL AND feed_id = ANY ($1::int8[]) FOR UPDATE");
	}
	rc = pg_run(p, err);
	rc = rc ? rc : pg_loans_read(p, p->res[0], &loans, err);
	for (int i = 0; !rc && i < PQntuples(p->res[1]); i++) {
		int64_t feed_id = pg_get_int(p->res[1], i, 0);
		const struct first *f = bsearch(&feed_id, first, first_n, sizeof(*first), by_id);

		crowding_of(c, n, f->host_id)->turn_n++;
	}
	if (!rc)
		loans_count(p, &loans, first, first_n, c, n);
	for (size_t i = 0; !rc && i < n; i++) {
		if (!c[i].busy_n && !c[i].turn_n)
			continue;
		pg_int(p, c[i].host_id);
		pg_int(p, c[i].busy_n);
		pg_int(p, c[i].turn_n);
		pg_send(p, PG_HOST_COUNT, "UPDATE hosts SET busy_n = busy_n + $2::int8, turn_n = turn_n + $3::int8 WHERE id = $1::int8");
	}
	pg_loans_finish(&loans);
	free(first);
	return rc;
}

static void names_pass(struct pg *p, const struct pg_join *j, size_t n)
{
	pg_array(p, PG_TEXT, n);
	for (size_t i = 0; i < n; i++)
		pg_item_text(p, j[i].name);
}

int pg_hosts_join(struct pg *p, struct pg_join *j, size_t n, struct fw_err *err)
{
	struct crowding *c = calloc(n + 1, sizeof(*c));
	size_t crowding_n = 0;
	int rc;

	if (!c)
		return pg_no_memory(p, err);
	names_pass(p, j, n);
	pg_send(p, PG_HOST_NEW, "INSERT INTO hosts (name, feed_n) SELECT name, 0 FROM unnest($1::text[]) name ON CONFLICT (name) DO NOTHING");
	names_pass(p, j, n);
	pg_send(p, PG_HOST_JOIN, "SELECT id, name, feed_n FROM hosts WHERE name = ANY ($1::text[]) ORDER BY id FOR UPDATE");
	rc = pg_run(p, err);
	for (int i = 0; !rc && i < PQntuples(p->res[p->res_n - 1]); i++) {
		const PGresult *r = p->res[p->res_n - 1];
		struct pg_join *found = pg_join_find(j, n, pg_get_str(r, i, 1));
		int64_t feed_n = pg_get_int(r, i, 2);

		if (!found)
			continue;
		found->id = pg_get_int(r, i, 0);
		found->crowded = feed_n + found->n > 1;
		if (feed_n && found->crowded)
			c[crowding_n++] = (struct crowding){.host_id = found->id};
	}
	if (!rc) {
		pg_array(p, PG_INT8, n);
		for (size_t i = 0; i < n; i++)
			pg_item_int(p, j[i].id);
		pg_array(p, PG_INT8, n);
		for (size_t i = 0; i < n; i++)
			pg_item_int(p, j[i].n);
		pg_send(p, PG_HOSTS_MORE, "UPDATE hosts h SET feed_n = feed_n + u.n FROM unnest($1::int8[], $2::int8[]) u (id, n)"
			" WHERE h.id = u.id");
		if (crowding_n)
			rc = hosts_crowd(p, c, crowding_n, err); /* in order of id, as they were read */
	}
	free(c);
	return rc;
}

void pg_host_leave(struct pg *p, int64_t host_id)
{
	pg_int(p, host_id);
	pg_send(p, PG_HOST_LEAVE, "UPDATE hosts SET feed_n = feed_n - 1 WHERE id = $1::int8");
	pg_int(p, host_id);
	pg_send(p, PG_HOST_DROP, "DELETE FROM hosts WHERE id = $1::int8 AND feed_n <= 0");
}

/* ---- subscribing ------------------------------------------------------------------------------------------------------------ */

struct subscribing {
	struct fw_feed_new *feed;
	size_t n;
	size_t *fresh, fresh_n;  /* indices of those that are new, each URL once */
	int64_t *wheel_at, *feed_at; /* of fresh ones: where their rows lie */
	size_t *same_as;         /* of those that stand twice in one call: index + 1 of the first */
	struct pg_join *join;    /* of fresh ones; sorted, each once */
	size_t join_n;
	struct fw_arena a;
};

/* Which of them are new: not among the answers, and the first with that URL. */
static int fresh_pick(struct pg *p, struct subscribing *s, const PGresult *known, struct fw_err *err)
{
	struct fw_map seen;
	int rc = 0;

	s->fresh_n = 0;
	for (size_t i = 0; i < s->n; i++) {
		s->feed[i].existed = false;
		s->same_as[i] = 0;
	}
	for (int k = 0; k < PQntuples(known); k++) {
		struct fw_feed_new *f = &s->feed[pg_get_int(known, k, 0) - 1];

		f->existed = true;
		f->id = pg_get_int(known, k, 1);
	}
	fw_map_init(&seen, 0);
	for (size_t i = 0; i < s->n && !rc; i++) {
		size_t *first = s->feed[i].existed ? NULL : fw_map_get(&seen, s->feed[i].url);

		if (first) {
			s->same_as[i] = *first + 1;
		} else if (!s->feed[i].existed) {
			s->fresh[s->fresh_n] = i;
			fw_map_put(&seen, s->feed[i].url, &s->fresh[s->fresh_n++], &rc);
		}
	}
	fw_map_finish(&seen);
	return rc ? pg_no_memory(p, err) : 0;
}

/* The hosts of the fresh ones. */
static int joins_make(struct pg *p, struct subscribing *s, struct fw_err *err)
{
	for (size_t i = 0; i < s->fresh_n; i++) {
		char name[256];

		if (!fw_store_host(s->feed[s->fresh[i]].url, name, sizeof(name)))
			name[0] = '\0';
		s->join[i] = (struct pg_join){.name = fw_arena_str(&s->a, fw_str(name)), .n = 1};
	}
	if (s->a.failed)
		return pg_no_memory(p, err);
	s->join_n = pg_joins_merge(s->join, s->fresh_n);
	return 0;
}

static const struct pg_join *join_of(const struct subscribing *s, size_t fresh)
{
	char name[256];

	if (!fw_store_host(s->feed[s->fresh[fresh]].url, name, sizeof(name)))
		name[0] = '\0';
	return pg_join_find(s->join, s->join_n, fw_str(name));
}

static void text_column(struct pg *p, const struct subscribing *s, size_t offset)
{
	pg_array(p, PG_TEXT, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++) {
		struct fw_str v;

		memcpy(&v, (const char *)&s->feed[s->fresh[i]] + offset, sizeof(v));
		pg_item_text(p, v);
	}
}

static int feeds_put(struct pg *p, struct subscribing *s, int64_t now_ms, struct fw_err *err)
{
	int rc;

	pg_int(p, now_ms);
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, join_of(s, i)->id);
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, join_of(s, i)->crowded ? join_of(s, i)->id : 0);
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, s->feed[s->fresh[i]].interval_ms);
	text_column(p, s, offsetof(struct fw_feed_new, url));
	text_column(p, s, offsetof(struct fw_feed_new, home_page_url));
	text_column(p, s, offsetof(struct fw_feed_new, user_title));
	text_column(p, s, offsetof(struct fw_feed_new, folder));
	text_column(p, s, offsetof(struct fw_feed_new, username));
	text_column(p, s, offsetof(struct fw_feed_new, password));
	pg_send(p, PG_FEEDS_NEW, "INSERT INTO feeds (created_ms, host_id, crowd_id, interval_ms, url, home_page_url, user_title, folder,"
		" username, password) SELECT $1::int8, * FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::text[], $6::text[],"
		" $7::text[], $8::text[], $9::text[], $10::text[]) RETURNING id, ctid");
	rc = pg_run(p, err);
	for (size_t i = 0; !rc && i < s->fresh_n; i++) {
		s->feed[s->fresh[i]].id = pg_get_int(p->res[p->res_n - 1], (int)i, 0);
		s->feed_at[i] = pg_get_int(p->res[p->res_n - 1], (int)i, 1);
	}
	return rc;
}

static int64_t due_of(const struct fw_feed_new *f, int64_t now_ms)
{
	return f->due_at_ms ? f->due_at_ms : now_ms;
}

static void tids(struct pg *p, const int64_t *at, size_t n)
{
	pg_array(p, PG_TID, n);
	for (size_t i = 0; i < n; i++)
		pg_item_tid(p, at[i]);
}

/* Feeds with their due times: the first two parameters of both statements. */
static void fresh_due(struct pg *p, const struct subscribing *s, int64_t now_ms)
{
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, s->feed[s->fresh[i]].id);
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, due_of(&s->feed[s->fresh[i]], now_ms));
}

/* The last is queued. */
static int wheel_put(struct pg *p, const struct subscribing *s, int64_t now_ms, struct fw_err *err)
{
	int rc;

	fresh_due(p, s, now_ms);
	pg_send(p, PG_WHEEL_NEW, "INSERT INTO wheel (feed_id, due_at_ms) SELECT * FROM unnest($1::int8[], $2::int8[]) RETURNING ctid");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < s->fresh_n; i++)
		s->wheel_at[i] = pg_get_int(p->res[0], (int)i, 0);
	fresh_due(p, s, now_ms);
	pg_array(p, PG_INT8, s->fresh_n);
	for (size_t i = 0; i < s->fresh_n; i++)
		pg_item_int(p, pg_place_id(p, due_of(&s->feed[s->fresh[i]], now_ms)));
	tids(p, s->wheel_at, s->fresh_n);
	tids(p, s->feed_at, s->fresh_n);
	pg_send(p, PG_PLACES_NEW, "INSERT INTO places (feed_id, wake_at_ms, id, wheel_at, feed_at)"
		" SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::tid[], $5::tid[])");
	return 0;
}

static int subscribe_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct subscribing *s = ctx;
	int64_t now_ms = pg_now_ms(p);
	int rc;

	pg_begin(p);
	pg_lock(p, PG_LOCK_MEMBERS);
	pg_array(p, PG_TEXT, s->n);
	for (size_t i = 0; i < s->n; i++)
		pg_item_text(p, s->feed[i].url);
	pg_send(p, PG_URLS_KNOWN, "SELECT u.i, f.id FROM unnest($1::text[]) WITH ORDINALITY u (url, i) JOIN feeds f"
		" ON md5(f.url) = md5(u.url) AND f.url = u.url");
	rc = pg_run(p, err);
	rc = rc ? rc : fresh_pick(p, s, p->res[p->res_n - 1], err);
	rc = rc ? rc : joins_make(p, s, err);
	if (!rc && s->fresh_n) {
		rc = pg_hosts_join(p, s->join, s->join_n, err);
		rc = rc ? rc : feeds_put(p, s, now_ms, err);
		rc = rc ? rc : wheel_put(p, s, now_ms, err);
		if (!rc)
			pg_notify(p);
	}
	rc = rc ? rc : pg_commit_run(p, err);
	for (size_t i = 0; i < s->n && !rc; i++) {
		if (s->same_as[i]) {
			s->feed[i].id = s->feed[s->same_as[i] - 1].id;
			s->feed[i].existed = true;
		}
	}
	return rc;
}

int pg_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct subscribing s = {.feed = feed, .n = n};
	int rc;

	fw_arena_init(&s.a, 0);
	s.fresh = calloc(n + 1, sizeof(*s.fresh));
	s.same_as = calloc(n + 1, sizeof(*s.same_as));
	s.join = calloc(n + 1, sizeof(*s.join));
	s.wheel_at = calloc(n + 1, sizeof(*s.wheel_at));
	s.feed_at = calloc(n + 1, sizeof(*s.feed_at));
	rc = s.fresh && s.same_as && s.join && s.wheel_at && s.feed_at ? pg_txn(pg_of(st), subscribe_in, &s, err) : pg_no_memory(pg_of(st), err);
	free(s.fresh);
	free(s.same_as);
	free(s.join);
	free(s.wheel_at);
	free(s.feed_at);
	fw_arena_finish(&s.a);
	return rc;
}

/* ---- one feed ------------------------------------------------------------------------------------------------------------------ */

static int loan_of(struct pg *p, struct pg_standing *f, struct fw_err *err)
{
	int rc;

	pg_loans_finish(&f->loans);
	f->loan = NULL;
	pg_ints(p, &f->id, 1);
	pg_send(p, PG_LOANS_OF_FEEDS, "SELECT " PG_LOAN_COLUMNS " FROM loans WHERE feed_id && $1::int8[] ORDER BY id FOR UPDATE");
	rc = pg_run(p, err);
	rc = rc ? rc : pg_loans_read(p, p->res[p->res_n - 1], &f->loans, err);
	for (size_t i = 0; !rc && i < f->loans.n; i++) {
		for (size_t bit = 0; bit < f->loans.at[i].n; bit++) {
			if (f->loans.at[i].feed[bit] == f->id && (f->loans.at[i].open >> bit & 1)) {
				f->loan = &f->loans.at[i];
				f->bit = bit;
			}
		}
	}
	return rc;
}

static int standing_get(struct pg *p, struct pg_standing *f, struct fw_err *err)
{
	const PGresult *r;
	int rc = loan_of(p, f, err);

	if (rc)
		return rc;
	pg_int(p, f->id);
	pg_send(p, PG_STANDING, "SELECT f.host_id, f.crowd_id, w.status, w.due_at_ms, w.last_visit_id,"
		" h.cool_until_ms FROM feeds f JOIN wheel w ON w.feed_id = f.id JOIN hosts h ON h.id = f.host_id WHERE f.id = $1::int8");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	r = p->res[0];
	if (!PQntuples(r))
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", p->name, (long long)f->id);
	f->host_id = pg_get_int(r, 0, 0);
	f->crowd_id = pg_get_int(r, 0, 1);
	f->status = pg_get_int(r, 0, 2);
	f->due_ms = pg_get_int(r, 0, 3);
	f->last_visit_id = pg_get_int(r, 0, 4);
	f->cool_until_ms = pg_get_int(r, 0, 5);
	return 0;
}

/* Out of the queue or the parking place; *found false: it is in neither. */
static int off_look(struct pg *p, struct pg_standing *f, bool *found, struct fw_err *err)
{
	bool turn;
	int rc;

	pg_int(p, f->id);
	pg_int(p, pg_place_last(f->due_ms) & ~((INT64_C(1) << PG_NUMBER_BITS) - 1));
	pg_int(p, pg_place_last(f->due_ms));
	pg_send(p, PG_PLACE_DROP, "DELETE FROM places WHERE feed_id = $1::int8 AND id >= $2::int8 AND id <= $3::int8 RETURNING due_at_ms");
	pg_int(p, f->id);
	pg_send(p, PG_PLACE_DROP_MOVED, "DELETE FROM places WHERE feed_id = $1::int8 AND due_at_ms IS NOT NULL");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	turn = strcmp(PQcmdTuples(p->res[1]), "0") != 0 || (PQntuples(p->res[0]) && !pg_is_null(p->res[0], 0, 0));
	*found = turn || PQntuples(p->res[0]);
	if (!f->crowd_id || (*found && !turn))
		return 0;
	pg_hosts_lock(p, &f->crowd_id, 1);
	if (turn) { /* it had the turn: give it on */
		pg_int(p, f->crowd_id);
		pg_int(p, 0);
		pg_int(p, -1);
		pg_send(p, PG_HOST_COUNT, "UPDATE hosts SET busy_n = busy_n + $2::int8, turn_n = turn_n + $3::int8 WHERE id = $1::int8");
		pg_turns(p, &f->crowd_id, 1);
		return pg_run(p, err);
	}
	pg_int(p, f->crowd_id);
	pg_int(p, f->due_ms);
	pg_int(p, f->id);
	pg_send(p, PG_PARKED_DROP, "WITH d AS (DELETE FROM parked WHERE host_id = $1::int8 AND due_at_ms = $2::int8 AND feed_id = $3::int8"
		" RETURNING host_id) UPDATE hosts SET parked_n = parked_n - 1 FROM d WHERE id = d.host_id");
	rc = pg_run(p, err);
	*found = !rc && strcmp(PQcmdTuples(p->res[1]), "0") != 0;
	return rc;
}

int pg_take_off(struct pg *p, struct pg_standing *f, bool *found, struct fw_err *err)
{
	int rc = 0;

	*found = false;
	for (int i = 0; i < LOOKS && !rc; i++) {
		rc = standing_get(p, f, err);
		if (!rc && !f->loan)
			rc = off_look(p, f, found, err);
		if (rc || *found || f->loan || f->status != FW_FEED_ACTIVE)
			break;
		usleep(2000);
	}
	return rc; /* still nowhere: somebody took it out by hand, and nothing is to be done */
}

struct lending {
	const struct fw_lend_ask *ask;
	struct fw_lend_got *got;
	int64_t now_ms;
};

/* Whose loan stands in the way, until when. */
static int lent_look(struct pg *p, const struct pg_standing *f, struct fw_lend_got *got, struct fw_err *err)
{
	int rc;

	pg_int(p, f->loan->id);
	pg_send(p, PG_LEND_UNTIL, "SELECT until_ms, worker FROM loans WHERE id = $1::int8");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	got->until_ms = pg_get_int(p->res[0], 0, 0);
	(void)fw_str_copy(got->worker, sizeof(got->worker), pg_get_str(p->res[0], 0, 1));
	return 0;
}

/* A loan of its own, in nobody's budget. Like a claim it does not wait for the disk. */
static int lend_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct lending *l = ctx;
	struct pg_standing f = {.id = l->ask->feed_id};
	struct pg_lent lent = {0};
	int64_t until = l->now_ms + l->ask->lease_ms, id;
	bool found = false;
	int rc;

	*l->got = (struct fw_lend_got){.status = FW_FEED_ACTIVE};
	pg_begin_quick(p);
	rc = pg_take_off(p, &f, &found, err);
	if (rc)
		goto out;
	l->got->status = (enum fw_feed_status)f.status;
	if (f.loan)
		rc = lent_look(p, &f, l->got, err);
	else if (f.status == FW_FEED_ACTIVE && !found) /* no end of its moves, or taken out by hand */
		rc = fw_err_set(err, FW_EAGAIN, "%s: feed %lld stands nowhere: try again; `feedwheel doctor` finds out more", p->name,
			(long long)f.id);
	if (rc)
		goto out;
	if (f.loan || !fw_feed_takes_entries(l->got->status)) {
		rc = pg_commit_run(p, err);
		goto out;
	}
	lent.visit_id = f.last_visit_id;
	pg_loan_put(p, l->ask->worker, until, &f.id, &lent, 1);
	rc = pg_run(p, err);
	if (rc)
		goto out;
	id = pg_get_int(p->res[p->res_n - 1], 0, 0);
	rc = pg_commit_run(p, err);
	if (rc)
		goto out;
	l->got->fence = pg_fence(id, 0);
	l->got->until_ms = until;
	if (!p->first_loan)
		p->first_loan = id;
	p->none_until_ms = FW_MIN(p->none_until_ms, until - 1);
out:
	pg_loans_finish(&f.loans);
	return rc;
}

int pg_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	struct lending l = {ask, got, ask->now_ms ? ask->now_ms : pg_now_ms(p)};
	int rc = pg_fences_move(p, err);

	rc = rc ? rc : pg_txn(p, lend_in, &l, err);
	if (rc || got->fence || !got->until_ms || got->until_ms > l.now_ms)
		return rc;
	rc = pg_take_back(p, l.now_ms, err); /* it has run out */
	return rc ? rc : pg_txn(p, lend_in, &l, err);
}

struct setting {
	const struct fw_feed *feed;
	unsigned what;
};

/* The only feed of its host is put off here, as by a commit. */
void pg_place_put(struct pg *p, const struct pg_standing *f, int64_t due_ms)
{
	int64_t wake_ms = f->crowd_id ? due_ms : FW_MAX(due_ms, f->cool_until_ms);

	pg_int(p, pg_place_id(p, wake_ms));
	pg_int(p, wake_ms);
	pg_int(p, f->id);
	pg_int(p, due_ms);
	pg_send(p, PG_PLACE_PUT, "INSERT INTO places (id, wake_at_ms, feed_id, due_at_ms) VALUES ($1::int8, $2::int8, $3::int8,"
		" nullif($4::int8, $2::int8))");
}

/* A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on. */
static int move(struct pg *p, const struct setting *s, struct pg_standing *f, struct fw_err *err)
{
	int64_t status, due_ms;
	bool found;
	int rc = pg_take_off(p, f, &found, err);

	if (rc)
		return rc;
	status = s->what & FW_SET_STATUS ? (int64_t)s->feed->status : f->status;
	due_ms = s->what & FW_SET_DUE ? s->feed->due_at_ms : f->due_ms;
	pg_int(p, f->id);
	pg_int(p, status);
	pg_int(p, due_ms);
	pg_send(p, PG_WHEEL_STATUS, "UPDATE wheel SET status = $2::int8, due_at_ms = $3::int8 WHERE feed_id = $1::int8");
	if (!f->loan && status == FW_FEED_ACTIVE) {
		pg_place_put(p, f, due_ms);
		pg_notify(p);
	}
	return 0;
}

static int feed_set_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const struct setting *s = ctx;
	struct pg_standing f = {.id = s->feed->id};
	int rc;

	pg_begin(p);
	rc = s->what & (FW_SET_STATUS | FW_SET_DUE) ? move(p, s, &f, err) : standing_get(p, &f, err);
	if (!rc) {
		pg_int(p, f.id);
		pg_int(p, s->what);
		pg_text(p, s->feed->user_title);
		pg_text(p, s->feed->folder);
		pg_int(p, s->feed->interval_ms);
		pg_text(p, s->feed->username);
		pg_text(p, s->feed->password);
		pg_int(p, (int64_t)s->feed->crash_n);
		pg_int(p, s->feed->push_until_ms);
		pg_send(p, PG_SET_OWNER, "WITH w AS (UPDATE wheel SET crash_n = $8::int8 WHERE feed_id = $1::int8 AND $2::int8 & 64 <> 0)"
			" UPDATE feeds SET user_title = CASE WHEN $2::int8 & 2 <> 0 THEN $3::text ELSE user_title END,"
			" folder = CASE WHEN $2::int8 & 4 <> 0 THEN $4::text ELSE folder END,"
			" interval_ms = CASE WHEN $2::int8 & 8 <> 0 THEN $5::int8 ELSE interval_ms END,"
			" username = CASE WHEN $2::int8 & 32 <> 0 THEN $6::text ELSE username END,"
			" password = CASE WHEN $2::int8 & 32 <> 0 THEN $7::text ELSE password END,"
			" push_until_ms = CASE WHEN $2::int8 & 128 <> 0 THEN $9::int8 ELSE push_until_ms END WHERE id = $1::int8");
		rc = pg_commit_run(p, err);
	}
	pg_loans_finish(&f.loans);
	return rc;
}

int pg_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct setting s = {feed, what};

	return pg_txn(pg_of(st), feed_set_in, &s, err);
}
