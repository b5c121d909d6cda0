/* SPDX-License-Identifier: ISC */
/*
 * The front of the storage room: finds the driver by the URL's scheme, checks arguments, answers for slots a driver left
 * NULL, counts calls. Callers never touch the slots; drivers never see a NULL err or a batch of nothing.
 */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/adapter.h"
#include "store/drivers.h"
#include "store/dsn.h"

#define PRUNE_MS 100

/* The driver where FW_HAVE_NAME is 1, NULL where it is 0. A name that the build does not define does not compile. */
#define BUILT_IN_0(driver) NULL
#define BUILT_IN_1(driver) &(driver)
#define BUILT_IN_(have, driver) BUILT_IN_##have(driver)
#define BUILT_IN(have, driver) BUILT_IN_(have, driver)

/*
 * Every driver there is. Of a driver that a build may go without also its name, which is the meson option's, its library and
 * its schemes.
 */
static const struct known {
	const struct fw_store_driver *driver; /* NULL: not in this build */
	const char *name, *library, *schemes[4];
} known[] = {
#ifdef FW_STORE_NEXT /* -Dc_args=-DFW_STORE_NEXT: the new drivers, as far as they go */
	{&adapter_sqlite},
	{&adapter_memory},
#else
	{&fw_store_sqlite},
	{&fw_store_memory},
#endif
	{BUILT_IN(FW_HAVE_REDIS, fw_store_redis), "redis", "hiredis", {FW_STORE_REDIS_SCHEMES}},
#ifdef FW_STORE_NEXT
	{BUILT_IN(FW_HAVE_POSTGRES, adapter_postgres), "postgres", "libpq", {FW_STORE_POSTGRES_SCHEMES}},
#else
	{BUILT_IN(FW_HAVE_POSTGRES, fw_store_postgres), "postgres", "libpq", {FW_STORE_POSTGRES_SCHEMES}},
#endif
	{BUILT_IN(FW_HAVE_MYSQL, fw_store_mysql), "mysql", "libmariadb", {FW_STORE_MYSQL_SCHEMES}},
};

/* ---- names -------------------------------------------------------------------------------------------------------- */

const char *fw_visit_kind_name(enum fw_visit_kind kind)
{
	static const char *const names[] = {
		[FW_VISIT_NONE] = "none", [FW_VISIT_OK] = "ok", [FW_VISIT_SAME] = "same",
		[FW_VISIT_NOT_MODIFIED] = "not_modified", [FW_VISIT_HTTP] = "http", [FW_VISIT_DNS] = "dns",
		[FW_VISIT_CONNECT] = "connect", [FW_VISIT_TLS] = "tls", [FW_VISIT_TIMEOUT] = "timeout",
		[FW_VISIT_PROTOCOL] = "protocol", [FW_VISIT_FORMAT] = "format", [FW_VISIT_LIMIT] = "limit",
		[FW_VISIT_BLOCKED] = "blocked", [FW_VISIT_REDIRECT] = "redirect", [FW_VISIT_CRASH] = "crash",
		[FW_VISIT_GONE] = "gone", [FW_VISIT_LOCAL] = "local",
		[FW_VISIT_PUSHED] = "pushed",
	};

	_Static_assert(FW_N(names) == FW_VISIT_KIND_N, "a kind has no name");
	return (unsigned)kind < FW_N(names) ? names[kind] : "unknown";
}

const char *fw_feed_status_name(enum fw_feed_status status)
{
	switch (status) {
	case FW_FEED_ACTIVE: return "active";
	case FW_FEED_PAUSED: return "paused";
	case FW_FEED_GONE: return "gone";
	case FW_FEED_QUARANTINED: return "quarantined";
	}
	return "unknown";
}

/* ---- what drivers share --------------------------------------------------------------------------------------------- */

struct fw_str fw_store_url_rest(const char *url)
{
	const char *colon = strchr(url, ':');
	struct fw_str rest = fw_str(colon ? colon + 1 : url);

	if (fw_str_starts(rest, FW_STR("///")))
		rest = fw_str_sub(rest, 2, rest.len);
	return rest;
}

static bool is_word_byte(int c)
{
	return fw_is_alnum(c) || (unsigned char)c >= 0x80;
}

static bool has_word(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (is_word_byte(s.p[i]))
			return true;
	}
	return false;
}

bool fw_store_word_next(struct fw_str *rest, struct fw_store_word *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p;

	do {
		const char *from;
		bool phrase;

		while (p < end && *p != '"' && !is_word_byte(*p))
			p++;
		if (p >= end)
			return false;
		phrase = *p == '"';
		from = p += phrase;
		while (p < end && (phrase ? *p != '"' : is_word_byte(*p)))
			p++;
		out->text = (struct fw_str){from, (size_t)(p - from)};
		p += phrase && p < end;
		out->prefix = p < end && *p == '*';
		p += out->prefix;
	} while (!has_word(out->text)); /* a phrase without a word in it is passed over */
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return true;
}

bool fw_store_feed_dup(struct fw_arena *a, struct fw_feed *f)
{
	struct fw_str *const s[] = {
		&f->url, &f->why, &f->error, &f->validator_url, &f->etag, &f->last_modified, &f->title, &f->home_page_url,
		&f->description, &f->language, &f->icon, &f->hub, &f->topic, &f->extra, &f->rhythm, &f->redirect_url,
		&f->user_title, &f->folder, &f->username, &f->password, &f->host_key,
	};

	for (size_t i = 0; i < FW_N(s); i++)
		*s[i] = fw_arena_str(a, *s[i]);
	return !a->failed;
}

bool fw_store_record_dup(struct fw_arena *a, struct fw_record *r)
{
	r->kind = fw_arena_str(a, r->kind);
	r->key = fw_arena_str(a, r->key);
	r->value = fw_arena_str(a, r->value);
	return !a->failed;
}

int fw_store_record_missing(const char *name, struct fw_str kind, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no such record of kind %.*s", name, FW_STR_ARG(kind));
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

const struct fw_store_driver *fw_store_driver_at(size_t i)
{
	for (size_t k = 0; k < FW_N(known); k++) {
		if (known[k].driver && i-- == 0)
			return known[k].driver;
	}
	return NULL;
}

const char *fw_store_absent_at(size_t i)
{
	for (size_t k = 0; k < FW_N(known); k++) {
		if (!known[k].driver && i-- == 0)
			return known[k].name;
	}
	return NULL;
}

static const char *const *schemes_of(const struct known *k)
{
	return k->driver ? k->driver->schemes : k->schemes;
}

int fw_store_server_known(const char *store, const char *version, struct fw_err *err)
{
	static const struct { const char *sign, *name, *why; } LIKE[] = {
		{"TiDB", "TiDB", "it reads SKIP LOCKED and locks nothing"},
		{"Vitess", "Vitess", "over several shards a claim is not one transaction"},
		{"CockroachDB", "CockroachDB", "its locks and notifications are not PostgreSQL's"},
		{"-YB-", "YugabyteDB", "its locks and notifications are not PostgreSQL's"},
		{"Citus", "PostgreSQL with Citus", "over several shards a claim is not one transaction"},
	};

	for (size_t i = 0; i < FW_N(LIKE); i++) {
		if (strstr(version, LIKE[i].sign))
			return fw_err_set(err, FW_EINVAL, "%s: the server is %s (%.80s): %s, so feeds could be claimed twice; use PostgreSQL, MariaDB"
				" or MySQL itself", store, LIKE[i].name, version, LIKE[i].why);
	}
	return 0;
}

static const struct known *known_for(struct fw_str scheme)
{
	for (size_t i = 0; i < FW_N(known); i++) {
		for (const char *const *s = schemes_of(&known[i]); *s; s++) {
			if (fw_str_eq(scheme, fw_str(*s)))
				return &known[i];
		}
	}
	return NULL;
}

static int url_error(struct fw_str url, struct fw_err *err)
{
	char schemes[100] = "";
	struct fw_str rest;
	size_t at = 0;

	for (size_t i = 0; i < FW_N(known); i++) {
		for (const char *const *s = schemes_of(&known[i]); known[i].driver && *s; s++) {
			if (fw_snprintf(schemes + at, sizeof(schemes) - at, "%s%s:", at ? ", " : "", *s))
				at += strlen(schemes + at);
		}
	}
	if (!fw_str_find(url, FW_STR(":")))
		return fw_err_set(err, FW_EINVAL, "store \"%.*s\": no scheme: write sqlite:%.*s", FW_STR_ARG(url), FW_STR_ARG(url));
	/* the scheme only: a password may follow */
	return fw_err_set(err, FW_EINVAL, "store \"%.*s:...\": unknown scheme: this build knows %s",
		FW_STR_ARG(fw_str_split(url, ':', &rest)), schemes);
}

static int absent_error(const struct known *k, const char *url, struct fw_err *err)
{
	char shown[120];

	fw_store_url_show(url, shown, sizeof(shown));
	return fw_err_set(err, FW_EUNSUP, "store \"%s\": this build has no %s driver (to have it, install %s and build with -D%s=enabled)",
		shown, k->name, k->library, k->name);
}

bool fw_store_is_file(const char *word)
{
	static const char *const END[] = {".db", ".sqlite", ".sqlite3"};
	struct fw_str s = fw_str(word);

	for (size_t i = 0; i < FW_N(END) && !fw_str_find(s, FW_STR(":")); i++) {
		if (fw_str_ends(s, fw_str(END[i])))
			return true;
	}
	return false;
}

int fw_store_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct fw_store_config c = *cfg;
	struct fw_buf whole = FW_BUF_INIT(0);
	const struct known *k;
	struct fw_str rest, scheme;
	struct fw_err spare;
	int rc;

	*out = NULL;
	err = err ? err : &spare;
	if (!c.url || !*c.url)
		return fw_err_set(err, FW_EINVAL, "no store given: write for example sqlite:/path/feeds.db");
	if (fw_store_is_file(c.url)) {
		fw_buf_addf(&whole, "sqlite:%s", c.url);
		c.url = whole.p;
		if (!c.url)
			return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	scheme = fw_str_split(fw_str(c.url), ':', &rest);
	k = rest.p ? known_for(scheme) : NULL;
	if (!k) {
		rc = url_error(fw_str(c.url), err);
	} else if (!k->driver) {
		rc = absent_error(k, c.url, err);
	} else {
		if (c.busy_timeout_ms <= 0)
			c.busy_timeout_ms = FW_STORE_BUSY_MS;
		rc = k->driver->open(&c, out, err);
		if (!rc)
			(*out)->driver = k->driver;
	}
	fw_buf_finish(&whole);
	return rc;
}

void fw_store_close(struct fw_store *st)
{
	if (st)
		st->driver->close(st);
}

bool fw_store_clock_note(int64_t *ahead_ms, int64_t server_ms, int64_t asked_ms)
{
	int64_t took = fw_mono_ms() - asked_ms;

	if (took > FW_CLOCK_SLACK_MS)
		return false;
	*ahead_ms = server_ms - asked_ms - took / 2;
	return true;
}

int fw_store_clock_late(const char *name, struct fw_err *err)
{
	return fw_err_set(err, FW_EAGAIN, "%s: its clock cannot be read: each of %d answers took longer than %d ms; look at its load and at"
		" the network", name, FW_CLOCK_TRIES, FW_CLOCK_SLACK_MS);
}

bool fw_store_is_remote(const char *url)
{
	struct fw_str rest, scheme = fw_str_split(fw_str(url), ':', &rest);

	return !fw_str_eq(scheme, FW_STR("sqlite")) && !fw_str_eq(scheme, FW_STR("memory"));
}

void fw_store_url_show(const char *url, char *out, size_t cap)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_dsn_show(&b, url);
	(void)fw_str_copy(out, cap, b.rc ? FW_STR("?") : fw_buf_str(&b));
	fw_buf_finish(&b);
}

const char *fw_store_name(const struct fw_store *st)
{
	return st->driver->name;
}

/* ---- one front function per slot ---------------------------------------------------------------------------------------- */

/* Count a call; its result passes through. */
static int counted(struct fw_store *st, int rc)
{
	st->call_n++;
	st->error_n += rc != 0;
	return rc;
}

static int missing(struct fw_store *st, const char *what, struct fw_err *err)
{
	return counted(st, fw_err_set(err, FW_EUNSUP, "%s: this store has no %s", st->driver->name, what));
}

static int wrong(struct fw_store *st, const char *what, struct fw_err *err)
{
	return counted(st, fw_err_set(err, FW_EINVAL, "%s: %s", st->driver->name, what));
}

int fw_store_ping(struct fw_store *st, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->ping(st, err ? err : &spare));
}

int fw_store_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->check)
		return missing(st, "check", err);
	return counted(st, st->driver->check(st, cb, ctx, err ? err : &spare));
}

int fw_store_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct fw_claim_ask q = *ask;
	struct fw_err spare;

	*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	if (q.lease_ms <= 0 || q.host_gap_ms < 0)
		return wrong(st, "claim: lease_ms must be above 0 and host_gap_ms not below", err);
	if (q.expect_max_us < 0 || (q.id_n && !q.ids))
		return wrong(st, "claim: expect_max_us must not be below 0, and id_n counts the numbers in ids", err);
	if (q.ids && !q.id_n) /* none of none */
		return 0;
	if (!q.worker || !*q.worker)
		return wrong(st, "claim: the worker needs a name", err);
	return counted(st, st->driver->claim(st, &q, a, out, got, err ? err : &spare));
}

int fw_store_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_lend_got *got, struct fw_err *err)
{
	struct fw_err spare;
	int rc;

	err = err ? err : &spare;
	*got = (struct fw_lend_got){.status = FW_FEED_ACTIVE};
	*out = (struct fw_lease){.feed = {.id = ask->feed_id}};
	if (!st->driver->lend)
		return missing(st, "loan of one feed", err);
	if (ask->lease_ms <= 0 || !ask->worker || !*ask->worker)
		return wrong(st, "lend: lease_ms must be above 0, and the worker needs a name", err);
	if (ask->feed_id <= 0)
		return counted(st, fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", st->driver->name, (long long)ask->feed_id));
	rc = counted(st, st->driver->lend(st, ask, got, err));
	if (rc || !got->fence)
		return rc;
	out->fence = got->fence;
	out->until_ms = got->until_ms;
	rc = counted(st, st->driver->feed_find(st, ask->feed_id, FW_STR_NONE, a, &out->feed, err));
	if (rc) { /* it is ours, and nobody knows it: back with it */
		out->feed = (struct fw_feed){.id = ask->feed_id};
		if (fw_store_release(st, out, 1, NULL))
			st->stale_n++; /* it will run out */
		*got = (struct fw_lend_got){.status = FW_FEED_ACTIVE};
	}
	out->feed.fence = out->fence;
	return rc;
}

int fw_store_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct fw_err spare;
	int rc;

	for (size_t i = 0; i < batch->n; i++)
		batch->outcome[i].rc = 0;
	if (batch->n == 0 && !batch->beat)
		return counted(st, 0);
	rc = counted(st, st->driver->commit(st, batch, err ? err : &spare));
	for (size_t i = 0; !rc && i < batch->n; i++)
		st->stale_n += batch->outcome[i].rc == FW_ESTALE;
	return rc;
}

int fw_store_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, n ? st->driver->release(st, lease, n, err ? err : &spare) : 0);
}

int fw_store_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct fw_err spare;

	if (!worker || !*worker)
		return wrong(st, "bury: the worker needs a name", err);
	return counted(st, st->driver->bury(st, worker, crashed_feed_id, now_ms, err ? err : &spare));
}

/* Without a wait slot: look every 50 ms, then less and less often, once a second at last. */
static int wait_by_looking(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	int64_t start = fw_mono_ms(), step = 50;

	for (;;) {
		int64_t left = timeout_ms - (fw_mono_ms() - start);
		struct pollfd p = {.fd = wake_fd, .events = POLLIN};
		int rc = st->driver->changed ? st->driver->changed(st, changed, err) : 0;

		if (rc || *changed || left <= 0)
			return rc;
		if (poll(&p, 1, (int)FW_MIN(step, left)) > 0)
			return 0;
		step = FW_MIN(step * 5 / 4, 1000);
	}
}

int fw_store_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct fw_err spare;

	*changed = false;
	err = err ? err : &spare;
	if (st->driver->wait)
		return counted(st, st->driver->wait(st, wake_fd, timeout_ms, changed, err));
	return counted(st, wait_by_looking(st, wake_fd, timeout_ms, changed, err));
}

int fw_store_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct fw_err spare;
	char host[256];

	for (size_t i = 0; i < n; i++) {
		if (!fw_url_host(feed[i].url, host, sizeof(host)))
			return counted(st, fw_err_set(err, FW_EINVAL, "\"%.*s\": not a feed address: it names no host",
				FW_STR_ARG(fw_str_sub(feed[i].url, 0, 200))));
	}
	return counted(st, n ? st->driver->subscribe(st, feed, n, err ? err : &spare) : 0);
}

int fw_store_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->unsubscribe(st, feed_id, err ? err : &spare));
}

int fw_store_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->feed_find(st, id, url, a, out, err ? err : &spare));
}

int fw_store_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (q->by_due && q->after_id)
		return wrong(st, "feed_list: a cursor needs the order by id", err);
	return counted(st, st->driver->feed_list(st, q, cb, ctx, err ? err : &spare));
}

int fw_store_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->feed_set(st, feed, what, err ? err : &spare));
}

int fw_store_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (q->oldest_first && q->behind_id)
		return wrong(st, "entry_list: 'behind' is for newest first; oldest first has after_id", err);
	if (q->unindexed_n)
		*q->unindexed_n = 0;
	return counted(st, st->driver->entry_list(st, q, cb, ctx, err ? err : &spare));
}

int fw_store_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (q->oldest_first ? q->feed_id != 0 : q->after_id != 0)
		return wrong(st, "visit_list: oldest first is for all feeds, and a cursor for oldest first", err);
	return counted(st, st->driver->visit_list(st, q, cb, ctx, err ? err : &spare));
}

int fw_store_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct fw_err spare;

	*out = (struct fw_store_stats){.next_due_ms = FW_NO_DATE, .size_bytes = -1};
	return counted(st, st->driver->stats(st, now_ms, out, err ? err : &spare));
}

int fw_store_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct fw_err spare;

	*n = 0;
	*wake_ms = FW_NO_DATE;
	return counted(st, st->driver->pending(st, due_before_ms, n, wake_ms, err ? err : &spare));
}

int fw_store_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct fw_err spare;

	if (kind <= FW_CONTROL_NONE || kind > FW_CONTROL_FETCH_LENT)
		return wrong(st, "control_put: no such message", err);
	return counted(st, st->driver->control_put(st, kind, now_ms, err ? err : &spare));
}

int fw_store_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct fw_err spare;

	*out = (struct fw_control){.kind = FW_CONTROL_NONE};
	return counted(st, st->driver->control_take(st, after_id, out, err ? err : &spare));
}

int fw_store_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->beat_list(st, since_ms, cb, ctx, err ? err : &spare));
}

int fw_store_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err)
{
	struct fw_err spare;

	*more = false;
	return counted(st, st->driver->upkeep ? st->driver->upkeep(st, now_ms, more, err ? err : &spare) : 0);
}

int fw_store_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err)
{
	struct fw_err spare;

	*n = 0;
	if (!st->driver->prune)
		return missing(st, "prune", err);
	return counted(st, st->driver->prune(st, visits_before_ms, entries_before_ms, n, err ? err : &spare));
}

int fw_store_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	struct fw_err spare;
	char host[256];

	if (!st->driver->load)
		return missing(st, "load", err);
	for (size_t i = 0; i < rows->feed_n; i++) {
		if (rows->feed[i].id <= 0 || !fw_url_host(rows->feed[i].url, host, sizeof(host)))
			return counted(st, fw_err_set(err, FW_EINVAL, "%s: load: feed %lld has no number above 0, or its URL no host",
				st->driver->name, (long long)rows->feed[i].id));
	}
	for (size_t i = 0; i < rows->entry_n; i++) {
		if (rows->entry[i].id <= 0)
			return wrong(st, "load: an entry has no number above 0", err);
	}
	for (size_t i = 0; i < rows->visit_n; i++) {
		if (rows->visit[i].id <= 0 || (i && rows->visit[i].id <= rows->visit[i - 1].id))
			return wrong(st, "load: visits come in order of their numbers, which are above 0", err);
	}
	if (!rows->feed_n && !rows->entry_n && !rows->key_n && !rows->visit_n)
		return counted(st, 0);
	return counted(st, st->driver->load(st, rows, err ? err : &spare));
}

int fw_store_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->key_list)
		return missing(st, "list of keys", err);
	return counted(st, st->driver->key_list(st, first_feed_id, last_feed_id, cb, ctx, err ? err : &spare));
}

int fw_store_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->event_put)
		return missing(st, "event_put", err);
	return counted(st, n ? st->driver->event_put(st, event, n, err ? err : &spare) : 0);
}

int fw_store_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->event_bury)
		return missing(st, "event_bury", err);
	return counted(st, st->driver->event_bury(st, event, err ? err : &spare));
}

int fw_store_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->event_list)
		return missing(st, "event_list", err);
	return counted(st, st->driver->event_list(st, after_id, limit, cb, ctx, err ? err : &spare));
}

int fw_store_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->event_dead_list)
		return missing(st, "event_dead_list", err);
	return counted(st, st->driver->event_dead_list(st, after_id, limit, cb, ctx, err ? err : &spare));
}

/* A slot that goes in steps, again and again for PRUNE_MS. */
static int pruned(struct fw_store *st, int (*slot)(struct fw_store *, int64_t, int64_t *, struct fw_err *), int64_t at_ms, int64_t step_n,
	int64_t *n, bool *more, struct fw_err *err)
{
	int64_t until_ms = fw_mono_ms() + PRUNE_MS, step;
	struct fw_err spare;
	int rc;

	do {
		step = 0;
		rc = counted(st, slot(st, at_ms, &step, err ? err : &spare));
		*n += step;
		*more = !rc && step >= step_n;
	} while (*more && fw_mono_ms() < until_ms);
	return rc;
}

int fw_store_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	*n = 0;
	*more = false;
	if (!st->driver->event_prune)
		return missing(st, "event_prune", err);
	return pruned(st, st->driver->event_prune, before_ms, FW_EVENT_STEP, n, more, err);
}

int fw_store_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->event_unbury)
		return missing(st, "event_unbury", err);
	return counted(st, n ? st->driver->event_unbury(st, event, n, err ? err : &spare) : 0);
}

static bool is_kind(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit(s.p[i]) && s.p[i] != '_' && (s.p[i] < 'a' || s.p[i] > 'z'))
			return false;
	}
	return s.len && s.len <= FW_RECORD_KIND_MAX;
}

/* NULL: a record may have this name. */
static const char *record_wrong(struct fw_str kind, struct fw_str key)
{
	if (!is_kind(kind))
		return "record: a kind is 1 to 32 letters a-z, digits or _";
	if (!key.len || key.len > FW_RECORD_KEY_MAX)
		return "record: a key has 1 to 255 bytes";
	return NULL;
}

int fw_store_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	const char *why = record_wrong(r->kind, r->key);
	struct fw_record whole = *r;
	struct fw_err spare;
	bool drop;

	was = was ? was : &drop;
	*was = false;
	if (!st->driver->record_put)
		return missing(st, "record_put", err);
	if (!why && r->value.len > FW_RECORD_VALUE_MAX)
		why = "record: a value has at most 65,535 bytes";
	if (!why && r->until_ms != FW_NO_DATE && r->until_ms <= r->at_ms)
		why = "record: it has run out before it is put";
	if (why)
		return wrong(st, why, err);
	whole.value = r->value.p ? r->value : FW_STR("");
	return counted(st, st->driver->record_put(st, &whole, if_absent, was, err ? err : &spare));
}

int fw_store_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	const char *why = record_wrong(kind, key);
	struct fw_err spare;

	if (!st->driver->record_get)
		return missing(st, "record_get", err);
	return why ? wrong(st, why, err) : counted(st, st->driver->record_get(st, kind, key, a, out, err ? err : &spare));
}

int fw_store_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_record_query whole = *q;
	struct fw_err spare;

	if (!st->driver->record_list)
		return missing(st, "record_list", err);
	if (q->kind.p && !is_kind(q->kind))
		return wrong(st, record_wrong(q->kind, FW_STR("x")), err);
	if (q->kind.p)
		whole.after_kind = q->kind;
	if (!whole.after_key.p)
		whole.after_key = FW_STR("");
	if (!whole.after_kind.p)
		whole.after_kind = FW_STR("");
	return counted(st, st->driver->record_list(st, &whole, cb, ctx, err ? err : &spare));
}

int fw_store_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	const char *why = record_wrong(kind, key);
	struct fw_err spare;

	if (!st->driver->record_remove)
		return missing(st, "record_remove", err);
	return why ? wrong(st, why, err) : counted(st, st->driver->record_remove(st, kind, key, value, err ? err : &spare));
}

int fw_store_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, bool *more, struct fw_err *err)
{
	*n = 0;
	*more = false;
	if (!st->driver->record_prune)
		return missing(st, "record_prune", err);
	return pruned(st, st->driver->record_prune, now_ms, FW_RECORD_STEP, n, more, err);
}

int fw_store_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->due_list)
		return missing(st, "due_list", err);
	return counted(st, st->driver->due_list(st, due_before_ms, limit, cb, ctx, err ? err : &spare));
}

int fw_store_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct fw_err spare;

	if (!st->driver->feed_merge)
		return missing(st, "feed_merge", err);
	if (from_id == into_id)
		return wrong(st, "feed_merge: a feed is one with itself already", err);
	return counted(st, st->driver->feed_merge(st, from_id, into_id, err ? err : &spare));
}

int fw_store_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	struct fw_err spare;

	*now_ms = fw_now_ms();
	return counted(st, st->driver->clock ? st->driver->clock(st, now_ms, err ? err : &spare) : 0);
}

int fw_store_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_err spare;

	return counted(st, st->driver->inspect ? st->driver->inspect(st, cb, ctx, err ? err : &spare) : 0);
}
