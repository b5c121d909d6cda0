/* SPDX-License-Identifier: ISC */
/*
 * `feedwheel doctor`: checks what a run needs, one thing after another: configuration, store,
 * inbox, access tokens, hubs, orders, quotas, certificates, name servers, system limits, sandbox,
 * clock.
 * It changes nothing and sends nothing to other machines, except to the store.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timex.h>
#endif

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/sandbox/sandbox.h"
#include "engine/settings.h"
#include "api/clock_watch.h"
#include "api/order.h"
#include "api/quota.h"
#include "api/token.h"
#include "api/websub.h"

/* Memory per transfer with small bodies: buffers, TLS state, parsed documents. */
#define TRANSFER_BYTES ((int64_t)256 << 10)
#define CLOCK_TRIES 5
#define ORDER_FAILING_MS FW_HOUR_MS
/* a worker takes rows of the inbox twice a second, and waits for its store for longer */
#define INBOX_TAKEN_MS (3 * FW_SECOND_MS)
#define INBOX_LOOK_MS 100
#define WORKER_SEEN_MS (30 * FW_SECOND_MS)
#define YEAR_MS (366 * FW_DAY_MS)
#define FAR_MS (100 * YEAR_MS)
/* 2026-01-01: a correct clock shows no earlier time */
#define RELEASED_MS (INT64_C(1767225600) * 1000)

struct doctor_run {
	const struct fw_config *c;
	fw_doctor_cb *cb;
	void *ctx;
	int worst;
};

/* Reports a finding. remedy is used unless the level is FINE. */
FW_PRINTF(5, 6)
static void doctor_report(struct doctor_run *d, const char *name, int level, const char *remedy, const char *fmt, ...)
{
	char found[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	d->worst = FW_MAX(d->worst, level);
	d->cb(d->ctx, name, level, found, level == FW_DOCTOR_FINE ? "" : remedy);
}

/* ---- configuration ------------------------------------------------------- */

static void doctor_configuration(struct doctor_run *d)
{
	const struct fw_config *c = d->c;
	struct fw_net net;
	struct fw_err err = {0};
	struct stat st;
	char shown[400];

	if (fw_config_check(c, &err) || fw_settings_net(c, 1, &net, &err)) {
		doctor_report(d, "configuration", FW_DOCTOR_BROKEN,
			"change that setting ('feedwheel help settings' lists all)", "%s", err.text);
		return;
	}
	doctor_report(d, "configuration", FW_DOCTOR_FINE, "", "%s",
		c->file ? c->file : "no file (~/.config/feedwheel.conf, /etc/feedwheel.conf): all defaults");
	fw_store_url_show(c->store, shown, sizeof(shown));
	if (c->file && !c->store_file && strstr(shown, "***") && stat(c->file, &st) == 0 && (st.st_mode & 077))
		doctor_report(d, "configuration", FW_DOCTOR_NOTE, "chmod 600 it",
			"%s contains the store's password, and other users can read it", c->file);
	if (!c->contact_url && !c->user_agent)
		doctor_report(d, "contact", FW_DOCTOR_NOTE, "set contact_url to a page about your crawler",
			"the User-Agent names no contact for site owners");
	if (c->allow_networks)
		doctor_report(d, "guard", FW_DOCTOR_NOTE, "keep allow_networks as narrow as possible",
			"feeds can connect to %s", c->allow_networks);
	else
		doctor_report(d, "guard", FW_DOCTOR_FINE, "", "feeds cannot connect to private networks");
	if (c->deny_networks)
		doctor_report(
			d, "guard", FW_DOCTOR_FINE, "", "feeds cannot connect to %s (deny_networks)", c->deny_networks);
}

/* ---- store --------------------------------------------------------------- */

static void doctor_store_finding(void *ctx, const char *finding)
{
	doctor_report(ctx, "store", FW_DOCTOR_BROKEN, "stop all runs, back up the store, and restore a good copy", "%s",
		finding);
}

static const char *doctor_store_remedy(const struct doctor_run *d, int rc)
{
	if (fw_store_is_remote(d->c->store) && (rc == FW_EIO || rc == FW_EAGAIN))
		return "check that its server runs and can be reached from here; 'feedwheel run' waits for it";
	switch (rc) {
	case FW_ENOTFOUND:
		return "'feedwheel add URL' or 'feedwheel import FILE' creates it";
	case FW_EUNUSABLE:
		return "mend what this line says; 'feedwheel run' does not wait for it";
	case FW_EVERSION:
		return "upgrade feedwheel, or migrate an older store with 'feedwheel run'";
	case FW_EAGAIN:
		return "another process holds it: wait, or find the process with lsof";
	case FW_EINVAL:
	case FW_EUNSUP:
		return "correct --store, FEEDWHEEL_STORE or store in the configuration; sqlite:PATH always works";
	default:
		return "check the path, its permissions, and the free space on its disk";
	}
}

static void doctor_store_inspected(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	doctor_report(ctx, name, level, remedy, "%s", found);
}

/*
 * The skew between the store's clock and ours. All that is stored follows the store's clock, so
 * only what others see of this machine is wrong: its log, certificates' dates, Date headers. The
 * fastest of several responses counts.
 */
static int doctor_store_clock(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	int64_t best_us = INT64_MAX, skew_ms = 0;
	char text[FW_CLOCK_TEXT_MAX];
	int rc = 0;

	for (int i = 0; i < CLOCK_TRIES && !rc; i++) {
		int64_t start_us = fw_mono_us(), there_ms, took_us;
		int64_t start_ms = fw_now_ms(); /* wall clock: it is checked */

		rc = fw_store_clock(st, &there_ms, err);
		took_us = fw_mono_us() - start_us;
		if (!rc && took_us < best_us) {
			best_us = took_us;
			skew_ms = there_ms - start_ms - took_us / 2000;
		}
	}
	if (rc)
		return rc;
	if (fw_clock_is_wrong(skew_ms))
		doctor_report(d, "store clock", FW_DOCTOR_NOTE,
			"run a time service on both machines (systemd-timesyncd, chrony)",
			"this machine's is %s, which all times follow; only log, TLS and Date headers are wrong",
			fw_clock_text(text, -skew_ms));
	else if (fw_store_is_remote(d->c->store))
		doctor_report(d, "store clock", FW_DOCTOR_FINE, "", "%lld ms from ours; responds in %.2f ms",
			(long long)skew_ms, (double)best_us / 1000);
	return 0;
}

/* The database server and its settings, its clock, and whether all work is paused. */
static int doctor_store_state(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_control newest;
	int rc = fw_store_inspect(st, doctor_store_inspected, d, err);

	rc = rc ? rc : doctor_store_clock(d, st, err);
	rc = rc ? rc : fw_store_control_get(st, -1, &newest, err);
	if (!rc && newest.paused)
		doctor_report(d, "paused", FW_DOCTOR_NOTE, "'feedwheel resume --all' resumes it",
			"all work on this store is paused");
	return rc;
}

/* ---- the HTTP server ----------------------------------------------------- */

struct doctor_tokens {
	int64_t n, over_n, broken_n, now_ms;
	unsigned wanted, good; /* scopes that need a token; scopes with a valid token */
};

static int doctor_count_token(void *ctx, const struct fw_token *t)
{
	struct doctor_tokens *k = ctx;
	bool over = t->until_ms != FW_NO_DATE && t->until_ms <= k->now_ms;

	k->n++;
	k->over_n += over;
	k->broken_n += t->broken;
	k->wanted |= t->scopes;
	k->good |= over || t->broken ? 0 : t->scopes;
	return 0;
}

/* Access with and without tokens, and TLS. */
static int doctor_server(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct doctor_tokens k = {.now_ms = fw_store_now_ms(st)};
	bool far = !fw_listen_is_local(d->c->listen);
	char scopes[FW_TOKEN_SCOPES_MAX], words[FW_TOKENLESS_TEXT_MAX];
	int rc = fw_token_list(st, false, doctor_count_token, &k, err);
	enum fw_tokenless t = fw_tokenless(d->c, k.n > 0);
	bool nobody = d->c->listen && !k.n && t != FW_TOKENLESS_OPEN;

	if (rc)
		return rc;
	fw_tokenless_text(t, words);
	doctor_report(d, "tokenless", nobody ? FW_DOCTOR_NOTE : FW_DOCTOR_FINE,
		"'feedwheel token add NAME --scope push,read,admin' creates one", "%s", words);
	fw_token_scopes_show(k.wanted & ~k.good, scopes);
	if (k.broken_n)
		doctor_report(d, "tokens", FW_DOCTOR_NOTE, "'feedwheel token list' names them: remove them",
			"%s unreadable: clients without another token are locked out",
			FW_COUNT_OF(k.broken_n, "token is", "tokens are"));
	else if (*scopes)
		doctor_report(d, "tokens", FW_DOCTOR_NOTE,
			"'feedwheel token list' names them: add others, or remove them",
			"all for %s have expired: no client has access", scopes);
	else if (k.n)
		doctor_report(d, "tokens", FW_DOCTOR_FINE, "", "%lld, %lld of which have expired", (long long)k.n,
			(long long)k.over_n);
	if (far && k.n && !d->c->tls_cert)
		doctor_report(d, "tls", FW_DOCTOR_NOTE,
			"set tls_cert and tls_key, or listen at 127.0.0.1 behind a proxy that speaks HTTPS",
			"the server listens at %s without TLS: tokens can be read in transit", d->c->listen);
	return 0;
}

/* WebSub: a leader exists, and all servers have the same callback URL. */
static int doctor_hubs(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_websub_leader home;
	struct fw_arena a;
	int rc;

	if (!d->c->websub_url)
		return 0;
	fw_arena_init(&a, 0);
	rc = fw_websub_leader(st, d->c, &a, &home, err);
	if (rc)
		;
	else if (home.differs)
		doctor_report(d, "hubs", FW_DOCTOR_NOTE,
			"set the same websub_url on all servers of this store; otherwise a new leader subscribes all "
			"feeds again",
			"websub_url = %s, but the server that sends requests to hubs has %.*s", d->c->websub_url,
			FW_STR_ARG(home.base));
	else if (!home.exists)
		doctor_report(d, "hubs", FW_DOCTOR_NOTE,
			"start 'feedwheel serve', or 'run --listen', with websub_url set",
			"no server sends requests to hubs: all feeds are polled");
	else
		doctor_report(d, "hubs", FW_DOCTOR_FINE, "", "callbacks start with %.*s", FW_STR_ARG(home.base));
	fw_arena_finish(&a);
	return rc;
}

struct doctor_deferred {
	const struct fw_config *c;
	int64_t feeds, entries, first_id;
};

static int doctor_count_deferred(void *ctx, const struct fw_quota *q)
{
	struct doctor_deferred *w = ctx;

	if ((q->deferred_n || fw_quota_is_used_up(w->c, q)) && !w->feeds++)
		w->first_id = q->feed_id;
	w->entries += q->deferred_n;
	return 0;
}

/* Feeds that have reached their daily limits. */
static int doctor_quotas(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct doctor_deferred w = {.c = d->c};
	int rc = fw_quota_list(st, fw_store_now_ms(st), doctor_count_deferred, &w, err);

	if (!rc && w.feeds)
		doctor_report(d, "quotas", FW_DOCTOR_NOTE,
			"'feedwheel show' has details: remove such feeds, or raise feed_daily_entries_max and "
			"feed_daily_bytes_max",
			"%s reached the daily limit, number %lld among them; deferred entries: %lld",
			FW_COUNT_OF(w.feeds, "feed has", "feeds have"), (long long)w.first_id, (long long)w.entries);
	return rc;
}

struct doctor_orders {
	int64_t n, dead_n;
	int64_t broken_n, failing_n, dead_order_n, unattended_n, oldest_ms;
	char broken[FW_ORDER_NAME_MAX + 1], failing[FW_ORDER_NAME_MAX + 1], dead[FW_ORDER_NAME_MAX + 1]; /* the first */
	char why[200], error[200];
	int64_t now_ms;
};

static void doctor_order_name(char name[FW_ORDER_NAME_MAX + 1], int64_t *n, const struct fw_order *o)
{
	if (!(*n)++)
		(void)fw_str_copy(name, FW_ORDER_NAME_MAX + 1, o->name);
}

static int doctor_count_order(void *ctx, const struct fw_order_status *s)
{
	struct doctor_orders *k = ctx;
	struct fw_err err = {.text = "its record is invalid"};
	int64_t failing_ms = s->delivery.failing_since_ms;

	k->n++;
	k->dead_n += s->dead_n;
	if (s->order.broken || fw_order_check_query(s->order.query, &err)) {
		if (!k->broken_n)
			(void)fw_str_copy(k->why, sizeof(k->why), fw_str(err.text));
		doctor_order_name(k->broken, &k->broken_n, &s->order);
	}
	if (failing_ms && k->now_ms - failing_ms >= ORDER_FAILING_MS && s->order.state == FW_ORDER_ACTIVE) {
		if (!k->failing_n)
			(void)fw_str_copy(k->error, sizeof(k->error), s->delivery.error);
		doctor_order_name(k->failing, &k->failing_n, &s->order);
	}
	if (s->unattended) {
		k->unattended_n += s->pending_n;
		k->oldest_ms = k->oldest_ms ? FW_MIN(k->oldest_ms, s->oldest_ms) : s->oldest_ms;
	}
	if (s->dead_n)
		doctor_order_name(k->dead, &k->dead_order_n, &s->order);
	return 0;
}

/* Orders: none is broken, a process delivers, all receivers accept, no dead letters. */
static int doctor_orders(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct doctor_orders k = {.now_ms = fw_store_now_ms(st)};
	char since[FW_RFC3339_MAX];
	int rc = fw_order_status_list(st, doctor_count_order, &k, err);

	if (rc || !k.n)
		return rc;
	if (k.broken_n)
		doctor_report(d, "orders", FW_DOCTOR_NOTE,
			"'feedwheel order set NAME --query ...' corrects a query; else remove it and add it again",
			"%s nothing, %s among them: %s", FW_COUNT_OF(k.broken_n, "order matches", "orders match"),
			k.broken, k.why);
	if (k.unattended_n)
		doctor_report(d, "orders", FW_DOCTOR_NOTE,
			"start 'feedwheel run' or 'serve'; if one runs, its log says whether it reaches the store",
			"%s, the oldest since %s, and no process delivers",
			FW_COUNT_OF(k.unattended_n, "entry waits", "entries wait"), fw_rfc3339(since, k.oldest_ms));
	if (k.failing_n)
		doctor_report(d, "orders", FW_DOCTOR_NOTE,
			"'feedwheel order show NAME' has details: repair the receiver, or pause or remove the order",
			"%lld receivers have failed for an hour or more, that of %s among them: %s",
			(long long)k.failing_n, k.failing, k.error);
	if (k.dead_n)
		doctor_report(d, "orders", FW_DOCTOR_NOTE,
			"'feedwheel order dead NAME' lists them, 'feedwheel order retry NAME' delivers them again",
			"%s of %s, %s among them", FW_COUNT_OF(k.dead_n, "dead letter", "dead letters"),
			FW_COUNT_OF(k.dead_order_n, "order", "orders"), k.dead);
	if (!k.broken_n && !k.unattended_n && !k.failing_n && !k.dead_n)
		doctor_report(d, "orders", FW_DOCTOR_FINE, "", "%lld", (long long)k.n);
	return 0;
}

struct doctor_far {
	int64_t after_ms, n, first_id;
};

static int doctor_on_far_due(void *ctx, const struct fw_due_row *row)
{
	struct doctor_far *f = ctx;

	if (row->due_at_ms > f->after_ms && !f->n++)
		f->first_id = row->feed_id;
	return 0;
}

/* No rule, setting or server delays a visit by more than a year. */
static int doctor_due_times(struct doctor_run *d, struct fw_store *st, struct fw_err *err)
{
	struct doctor_far f = {.after_ms = fw_store_now_ms(st) + YEAR_MS};
	int rc = fw_store_due_list(st, f.after_ms + FAR_MS, 0, doctor_on_far_due, &f, err);

	if (!rc && f.n)
		doctor_report(d, "due times", FW_DOCTOR_NOTE,
			"'feedwheel list --by-due' shows them last; 'feedwheel set --due' polls them now",
			"%s due in more than a year, number %lld among them: a clock was years ahead",
			FW_COUNT_OF(f.n, "feed is", "feeds are"), (long long)f.first_id);
	return rc == FW_EUNSUP ? 0 : rc;
}

static void doctor_clashes(struct doctor_run *d, int64_t n)
{
	if (n)
		doctor_report(d, "event ids", FW_DOCTOR_NOTE,
			"nothing is lost; end servers of older versions, which make ids from their clocks",
			"%lld of the pushed events had the id of another one, and were stored with a new one",
			(long long)n);
}

static int doctor_count_worker(void *ctx, const struct fw_heartbeat *b)
{
	*(int64_t *)ctx += !fw_worker_is_dead(b->worker);
	return 0;
}

/* Wait until fewer rows wait, or workers have had the time to take some. */
static int doctor_inbox_falls(struct fw_store *st, int64_t had_n, bool *falls, struct fw_err *err)
{
	const struct timespec pause = fw_timespec(INBOX_LOOK_MS);
	int64_t start_ms = fw_mono_ms();
	struct fw_store_stats s;
	int rc;

	do {
		nanosleep(&pause, NULL);
		rc = fw_store_stats(st, &s, err);
		*falls = !rc && s.inbox_n < had_n;
	} while (!rc && !*falls && fw_mono_ms() - start_ms < INBOX_TAKEN_MS);
	return rc;
}

static int doctor_inbox_waiting(struct doctor_run *d, struct fw_store *st, int64_t n, struct fw_err *err)
{
	const char *rows = FW_COUNT_OF(
		n, "row of control and feeds_to_fetch waits", "rows of control and feeds_to_fetch wait");
	int64_t worker_n = 0;
	bool falls = false;
	int rc = fw_store_heartbeat_list(st, fw_store_now_ms(st) - WORKER_SEEN_MS, doctor_count_worker, &worker_n, err);

	if (!rc && worker_n)
		rc = doctor_inbox_falls(st, n, &falls, err);
	if (rc)
		return rc;
	if (!worker_n)
		doctor_report(d, "inbox", FW_DOCTOR_NOTE, "'feedwheel run' takes them", "%s, and no worker runs", rows);
	else if (!falls)
		doctor_report(d, "inbox", FW_DOCTOR_NOTE,
			"their logs say why; workers of an older version take none: restart them",
			"%s, and none of %s takes them", rows, FW_COUNT_OF(worker_n, "worker", "workers"));
	else
		doctor_report(d, "inbox", FW_DOCTOR_FINE, "", "%s; workers take them", rows);
	return 0;
}

/* Rows that other programs put in. */
static int doctor_inbox(struct doctor_run *d, struct fw_store *st, const struct fw_store_stats *s, struct fw_err *err)
{
	bool redis = strcmp(fw_store_name(st), "redis") == 0;

	if (s->inbox_refused_n)
		doctor_report(d, "refused", FW_DOCTOR_NOTE,
			redis ? "'LRANGE PREFIX:feeds_to_fetch_refused 0 -1' has the reasons, DEL clears it" :
				"'SELECT * FROM feeds_to_fetch_refused' has the reasons, DELETE clears it",
			"%s refused",
			FW_COUNT_OF(s->inbox_refused_n, "row of feeds_to_fetch was", "rows of feeds_to_fetch were"));
	return s->inbox_n ? doctor_inbox_waiting(d, st, s->inbox_n, err) : 0;
}

typedef int doctor_check(struct doctor_run *d, struct fw_store *st, struct fw_err *err);

static void doctor_store(struct doctor_run *d)
{
	static doctor_check *const CHECK[] = {
		doctor_store_state, doctor_server, doctor_hubs, doctor_orders, doctor_due_times, doctor_quotas};
	struct fw_store_stats s;
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_config_store(d->c, FW_STORE_READ, &st, &err);

	if (rc == FW_ENOTFOUND) {
		doctor_report(d, "store", FW_DOCTOR_NOTE, doctor_store_remedy(d, rc), "%s", err.text);
		return;
	}
	if (!rc)
		rc = fw_store_stats(st, &s, &err);
	if (!rc) {
		doctor_report(d, "store", FW_DOCTOR_FINE, "", "%s, schema %lld, %s, %s", fw_store_name(st),
			(long long)s.schema, FW_COUNT_OF((int64_t)s.feed_n, "feed", "feeds"),
			FW_COUNT_OF((int64_t)s.entry_n, "entry", "entries"));
		doctor_clashes(d, s.clash_n);
		rc = doctor_inbox(d, st, &s, &err);
		for (size_t i = 0; i < FW_N(CHECK) && !rc; i++)
			rc = CHECK[i](d, st, &err);
		rc = rc ? rc : fw_store_check(st, doctor_store_finding, d, &err);
		if (rc == FW_EUNSUP)
			rc = 0;
	}
	if (rc)
		doctor_report(d, "store", FW_DOCTOR_BROKEN, doctor_store_remedy(d, rc), "%s", err.text);
	if (!rc && fw_config_check_disk(d->c, &err))
		doctor_report(d, "room", FW_DOCTOR_BROKEN,
			"free some space, or lower disk_free_min_bytes: until then nothing is fetched", "%s", err.text);
	if (!rc && s.quarantined_n)
		doctor_report(d, "quarantine", FW_DOCTOR_NOTE,
			"'feedwheel list --status quarantined', then 'feedwheel resume'",
			"%s quarantined because visits of them killed a worker",
			FW_COUNT_OF((int64_t)s.quarantined_n, "feed is", "feeds are"));
	fw_store_close(st);
}

/* ---- network ------------------------------------------------------------- */

static void doctor_tls(struct doctor_run *d)
{
	struct fw_net net;
	struct fw_err err = {0};
	const char *path = NULL;
	size_t n = 0;

	if (fw_settings_net(d->c, 1, &net, &err))
		return; /* reported by doctor_configuration() */
	if (fw_fetch_check_tls(&net.fetch, &n, &path, &err))
		doctor_report(d, "certificates", FW_DOCTOR_BROKEN,
			"install ca-certificates, or set ca_file to a CA bundle", "%s", err.text);
	else
		doctor_report(d, "certificates", FW_DOCTOR_FINE, "", "%zu trusted roots from %s", n,
			path ? path : "the system");
}

static void doctor_name_servers(struct doctor_run *d)
{
	FILE *f;
	char line[300];
	int n = 0;

	if (d->c->dns_servers) {
		doctor_report(d, "name servers", FW_DOCTOR_FINE, "", "%s", d->c->dns_servers);
		return;
	}
	f = fopen("/etc/resolv.conf", "re");
	while (f && fgets(line, sizeof(line), f))
		n += fw_str_starts(fw_str_trim(fw_str(line)), FW_STR("nameserver"));
	if (f)
		fclose(f);
	if (n)
		doctor_report(d, "name servers", FW_DOCTOR_FINE, "", "%d in /etc/resolv.conf", n);
	else
		doctor_report(d, "name servers", FW_DOCTOR_NOTE, "set dns_servers, or a nameserver in /etc/resolv.conf",
			"/etc/resolv.conf names none: only this machine's own is queried");
}

/* ---- the system ---------------------------------------------------------- */

static void doctor_files(struct doctor_run *d)
{
	int64_t need = fw_settings_files(d->c->concurrency);
	char remedy[120];
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r)) {
		doctor_report(d, "open files", FW_DOCTOR_NOTE, "", "cannot read the limit: %s", strerror(errno));
		return;
	}
	(void)fw_snprintf(remedy, sizeof(remedy), "ulimit -Hn %lld (LimitNOFILE= in the unit), or lower concurrency",
		(long long)need);
	/* workers raise the soft limit to the hard one */
	if (r.rlim_max != RLIM_INFINITY && (int64_t)r.rlim_max < need)
		doctor_report(d, "open files", FW_DOCTOR_NOTE, remedy,
			"a worker with %lld transfers needs %lld and may have %llu", (long long)d->c->concurrency,
			(long long)need, (unsigned long long)r.rlim_max);
	else
		doctor_report(d, "open files", FW_DOCTOR_FINE, "", "a worker needs %lld and may have %llu",
			(long long)need, (unsigned long long)r.rlim_max);
}

static void doctor_memory(struct doctor_run *d)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	int64_t have = pages > 0 && size > 0 ? pages * size >> 20 : 0;
	/* documents in transfer, one large document decoded, and its parsed form */
	int64_t large = d->c->max_buffered_bytes + d->c->max_body_bytes + d->c->parse_memory_bytes;
	int64_t each = (d->c->concurrency * TRANSFER_BYTES + d->c->page_cache_bytes + large) >> 20;
	int64_t all = each * FW_MAX(d->c->workers, INT64_C(1));

	doctor_report(d, "memory", have && all > have / 2 ? FW_DOCTOR_NOTE : FW_DOCTOR_FINE,
		"lower workers, concurrency, parse_memory_bytes or page_cache_bytes",
		"workers may use %lld MiB of this machine's %lld MiB", (long long)all, (long long)have);
}

static void doctor_layers(struct fw_buf *b, unsigned layers)
{
	for (unsigned i = 0; i < FW_SANDBOX_LAYER_N; i++) {
		if (layers & 1u << i)
			fw_buf_addf(b, "%s%s", layers & ((1u << i) - 1) ? ", " : "",
				fw_sandbox_layer_name((enum fw_sandbox_layer)(1u << i)));
	}
}

/* The sandbox layers of each process on this system. */
static void doctor_sandbox(struct doctor_run *d)
{
	static const char *const WHO[] = {[FW_SANDBOX_MASTER] = "the master",
		[FW_SANDBOX_WORKER] = "workers",
		[FW_SANDBOX_SERVER] = "the server"};
	bool required = fw_sandbox_is(d->c, "require");

	if (fw_sandbox_is(d->c, "off")) {
		doctor_report(d, "sandbox", FW_DOCTOR_NOTE, "sandbox = auto",
			"off: a vulnerability in any process exposes everything its user can access");
		return;
	}
	for (unsigned i = 0; i < FW_SANDBOX_ROLE_N; i++) {
		struct fw_buf b = FW_BUF_INIT(600);
		unsigned have, lack;

		if (i == FW_SANDBOX_SENDER_SERVER) /* as the server */
			continue;
		fw_sandbox_layers(d->c, (enum fw_sandbox_role)i, &have, &lack);
		fw_buf_addf(&b, "%s: %s", WHO[i], have ? "" : "nothing");
		doctor_layers(&b, have);
		fw_buf_adds(&b, lack ? "; missing: " : "");
		doctor_layers(&b, lack);
		doctor_report(d, "sandbox",
			!lack            ? FW_DOCTOR_FINE :
				required ? FW_DOCTOR_BROKEN :
					   FW_DOCTOR_NOTE,
			lack ? fw_sandbox_missing_why((enum fw_sandbox_layer)(lack & ~(lack - 1))) : "", "%s",
			b.p ? b.p : "");
		fw_buf_finish(&b);
	}
}

static void doctor_clock(struct doctor_run *d)
{
	char text[FW_RFC3339_MAX];
	int64_t now_ms = fw_now_ms(); /* wall clock: it is checked */

	fw_rfc3339(text, now_ms / 1000 * 1000);
	if (now_ms < RELEASED_MS) {
		doctor_report(d, "clock", FW_DOCTOR_BROKEN, "set the clock (systemd-timesyncd, chrony)",
			"it shows %s, which is in the past", text);
		return;
	}
#ifdef __linux__
	struct timex t = {0};

	if (adjtimex(&t) == TIME_ERROR) {
		doctor_report(d, "clock", FW_DOCTOR_NOTE, "run a time service (systemd-timesyncd, chrony)",
			"%s, and the clock is not synchronised", text);
		return;
	}
#endif
	doctor_report(d, "clock", FW_DOCTOR_FINE, "", "%s", text);
}

int fw_doctor(const struct fw_config *c, fw_doctor_cb *cb, void *ctx)
{
	struct doctor_run d = {.c = c, .cb = cb, .ctx = ctx};

	doctor_configuration(&d);
	if (c->store)
		doctor_store(&d);
	doctor_tls(&d);
	doctor_name_servers(&d);
	doctor_files(&d);
	doctor_memory(&d);
	doctor_sandbox(&d);
	doctor_clock(&d);
	return d.worst;
}
