/* SPDX-License-Identifier: ISC */
/*
 * `feedwheel doctor`: checks what a run needs, one thing after another: configuration, store,
 * access tokens, hubs, quotas, certificates, name servers, system limits, sandbox, clock. It
 * changes nothing and sends nothing to other machines, except to the store.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timex.h>
#endif

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/ops/sandbox.h"
#include "engine/settings.h"
#include "api/quota.h"
#include "api/token.h"
#include "api/websub.h"
#include "base/banned.h"

/*
 * As in slots_allowed() of worker.c: two files per transfer, and some for the store, the loop and
 * name lookups.
 */
#define FILES_BESIDES 64
/* Memory per transfer with small bodies: buffers, TLS state, parsed documents. */
#define TRANSFER_BYTES ((int64_t)256 << 10)
#define CLOCK_TRIES 5
#define YEAR_MS (366 * FW_DAY_MS)
#define FAR_MS (100 * YEAR_MS)
#define SKEW_MS (2 * FW_SECOND_MS)
/* 2026-01-01: a correct clock shows no earlier time */
#define RELEASED_MS (INT64_C(1767225600) * 1000)

struct doctor {
	const struct fw_config *c;
	fw_doctor_cb *cb;
	void *ctx;
	int worst;
};

/* Reports a finding. remedy is used unless the level is FINE. */
FW_PRINTF(5, 6) static void say(struct doctor *d, const char *name, int level, const char *remedy, const char *fmt, ...)
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

static void configuration(struct doctor *d)
{
	const struct fw_config *c = d->c;
	struct fw_net net;
	struct fw_err err = {0};
	struct stat st;
	char shown[400];

	if (fw_config_check(c, &err) || fw_settings_net(c, 1, &net, &err)) {
		say(d, "configuration", FW_DOCTOR_BROKEN, "change that setting ('feedwheel help settings' lists all)", "%s", err.text);
		return;
	}
	say(d, "configuration", FW_DOCTOR_FINE, "", "%s", c->file ? c->file : "no file (~/.config/feedwheel.conf, /etc/feedwheel.conf): all defaults");
	fw_store_url_show(c->store, shown, sizeof(shown));
	if (c->file && !c->store_file && strstr(shown, "***") && stat(c->file, &st) == 0 && (st.st_mode & 077))
		say(d, "configuration", FW_DOCTOR_NOTE, "chmod 600 it", "%s contains the store's password, and other users can read it", c->file);
	if (!c->contact_url && !c->user_agent)
		say(d, "contact", FW_DOCTOR_NOTE, "set contact_url to a page about your crawler",
			"the User-Agent names no contact for site owners");
	if (c->allow_networks)
		say(d, "guard", FW_DOCTOR_NOTE, "keep allow_networks as narrow as possible", "feeds can connect to %s", c->allow_networks);
	else
		say(d, "guard", FW_DOCTOR_FINE, "", "feeds cannot connect to private networks");
	if (c->deny_networks)
		say(d, "guard", FW_DOCTOR_FINE, "", "feeds cannot connect to %s (deny_networks)", c->deny_networks);
}

/* ---- store --------------------------------------------------------------- */

static void store_finding(void *ctx, const char *finding)
{
	say(ctx, "store", FW_DOCTOR_BROKEN, "stop all runs, back up the store, and restore a good copy", "%s", finding);
}

static const char *store_remedy(const struct doctor *d, int rc)
{
	if (fw_store_is_remote(d->c->store) && (rc == FW_EIO || rc == FW_EAGAIN))
		return "check that its server runs and can be reached from here; 'feedwheel run' waits for it";
	switch (rc) {
	case FW_ENOTFOUND: return "'feedwheel add URL' or 'feedwheel import FILE' creates it";
	case FW_EVERSION: return "upgrade feedwheel, or migrate an older store with 'feedwheel run'";
	case FW_EAGAIN: return "another process holds it: wait, or find the process with lsof";
	case FW_EINVAL:
	case FW_EUNSUP: return "correct --store, FEEDWHEEL_STORE or store in the configuration; sqlite:PATH always works";
	default: return "check the path, its permissions, and the free space on its disk";
	}
}

static void store_inspected(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	say(ctx, name, level, remedy, "%s", found);
}

/*
 * The skew between the store's clock and ours. Leases and due times use the store's clock;
 * displayed times and the workers' timers use this machine's. The fastest of several responses
 * counts.
 */
static int store_clock(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	int64_t best_us = INT64_MAX, skew_ms = 0;
	int rc = 0;

	for (int i = 0; i < CLOCK_TRIES && !rc; i++) {
		int64_t start_us = fw_mono_us(), start_ms = fw_now_ms(), there_ms, took_us;

		rc = fw_store_clock(st, &there_ms, err);
		took_us = fw_mono_us() - start_us;
		if (!rc && took_us < best_us) {
			best_us = took_us;
			skew_ms = there_ms - start_ms - took_us / 2000;
		}
	}
	if (rc)
		return rc;
	if (skew_ms > SKEW_MS || skew_ms < -SKEW_MS)
		say(d, "store clock", FW_DOCTOR_NOTE, "run a time service on both machines (systemd-timesyncd, chrony)",
			"%lld ms %s ours: displayed times are wrong, and live workers may look dead",
			(long long)(skew_ms < 0 ? -skew_ms : skew_ms), skew_ms < 0 ? "behind" : "ahead of");
	else if (fw_store_is_remote(d->c->store))
		say(d, "store clock", FW_DOCTOR_FINE, "", "%lld ms from ours; responds in %.2f ms", (long long)skew_ms, (double)best_us / 1000);
	return 0;
}

/* The database server and its settings, its clock, and whether all work is paused. */
static int store_setting(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_control newest;
	int rc = fw_store_inspect(st, store_inspected, d, err);

	rc = rc ? rc : store_clock(d, st, err);
	rc = rc ? rc : fw_store_control_take(st, -1, &newest, err);
	if (!rc && newest.paused)
		say(d, "paused", FW_DOCTOR_NOTE, "'feedwheel resume --all' resumes it", "all work on this store is paused");
	return rc;
}

/* ---- the HTTP server ----------------------------------------------------- */

struct tokens {
	int64_t n, over_n, broken_n, now_ms;
	unsigned wanted, good; /* scopes that need a token; scopes with a valid token */
};

static int token_count(void *ctx, const struct fw_token *t)
{
	struct tokens *k = ctx;
	bool over = t->until_ms != FW_NO_DATE && t->until_ms <= k->now_ms;

	k->n++;
	k->over_n += over;
	k->broken_n += t->broken;
	k->wanted |= t->scopes;
	k->good |= over || t->broken ? 0 : t->scopes;
	return 0;
}

/* Access with and without tokens, and TLS. */
static int door(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	struct tokens k = {.now_ms = fw_now_ms()};
	bool far = !fw_listens_locally(d->c->listen);
	char scopes[FW_TOKEN_SCOPES_MAX], words[FW_TOKENLESS_WORDS_MAX];
	int rc = fw_token_list(st, false, token_count, &k, err);
	enum fw_tokenless t = fw_tokenless(d->c, k.n > 0);
	bool nobody = d->c->listen && !k.n && t != FW_TOKENLESS_OPEN;

	if (rc)
		return rc;
	fw_tokenless_words(t, words);
	say(d, "tokenless", nobody ? FW_DOCTOR_NOTE : FW_DOCTOR_FINE, "'feedwheel token add NAME --scope push,read,admin' creates one", "%s", words);
	fw_token_scopes_show(k.wanted & ~k.good, scopes);
	if (k.broken_n)
		say(d, "tokens", FW_DOCTOR_NOTE, "'feedwheel token list' names them: remove them", "%lld tokens are unreadable: clients"
			" without another token are locked out", (long long)k.broken_n);
	else if (*scopes)
		say(d, "tokens", FW_DOCTOR_NOTE, "'feedwheel token list' names them: add others, or remove them", "all for %s have expired: no client has access", scopes);
	else if (k.n)
		say(d, "tokens", FW_DOCTOR_FINE, "", "%lld, %lld of which have expired", (long long)k.n, (long long)k.over_n);
	if (far && k.n && !d->c->tls_cert)
		say(d, "tls", FW_DOCTOR_NOTE, "set tls_cert and tls_key, or listen at 127.0.0.1 behind a proxy that speaks HTTPS",
			"the server listens at %s without TLS: tokens can be read in transit", d->c->listen);
	return 0;
}

/* WebSub: a leader exists, and all servers have the same callback URL. */
static int hubs(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_websub_home home;
	struct fw_arena a;
	int rc;

	if (!d->c->websub_url)
		return 0;
	fw_arena_init(&a, 0);
	rc = fw_websub_home(st, d->c, &a, &home, err);
	if (rc)
		;
	else if (home.differs)
		say(d, "hubs", FW_DOCTOR_NOTE, "set the same websub_url on all servers of this store; otherwise a new leader subscribes all feeds again",
			"websub_url = %s, but the server that sends requests to hubs has %.*s", d->c->websub_url, FW_STR_ARG(home.base));
	else if (!home.led)
		say(d, "hubs", FW_DOCTOR_NOTE, "start 'feedwheel serve', or 'run --listen', with websub_url set", "no server sends requests to hubs: all feeds are polled");
	else
		say(d, "hubs", FW_DOCTOR_FINE, "", "callbacks start with %.*s", FW_STR_ARG(home.base));
	fw_arena_finish(&a);
	return rc;
}

struct waiting {
	const struct fw_config *c;
	int64_t feeds, entries, first_id;
};

static int waiting_count(void *ctx, const struct fw_quota *q)
{
	struct waiting *w = ctx;

	if ((q->waiting_n || fw_quota_is_used_up(w->c, q)) && !w->feeds++)
		w->first_id = q->feed_id;
	w->entries += q->waiting_n;
	return 0;
}

/* Feeds that have reached their daily limits. */
static int quotas(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	struct waiting w = {.c = d->c};
	int rc = fw_quota_list(st, fw_now_ms(), waiting_count, &w, err);

	if (!rc && w.feeds)
		say(d, "quotas", FW_DOCTOR_NOTE, "'feedwheel show' has details: remove such feeds, or raise feed_entries_max and feed_bytes_max",
			"%lld feeds have reached their daily limit, number %lld among them; deferred entries: %lld", (long long)w.feeds,
			(long long)w.first_id, (long long)w.entries);
	return rc;
}

struct far {
	int64_t after_ms, n, first_id;
};

static int far_due(void *ctx, const struct fw_due_row *row)
{
	struct far *f = ctx;

	if (row->due_at_ms > f->after_ms && !f->n++)
		f->first_id = row->feed_id;
	return 0;
}

/* No rule, setting or server delays a visit by more than a year. */
static int due_times(struct doctor *d, struct fw_store *st, struct fw_err *err)
{
	struct far f = {.after_ms = fw_now_ms() + YEAR_MS};
	int rc = fw_store_due_list(st, f.after_ms + FAR_MS, 0, far_due, &f, err);

	if (!rc && f.n)
		say(d, "due times", FW_DOCTOR_NOTE, "'feedwheel list --by-due' shows them last; 'feedwheel set --due' polls them now",
			"%lld feeds are due in more than a year, number %lld among them: a clock was years ahead", (long long)f.n, (long long)f.first_id);
	return rc == FW_EUNSUP ? 0 : rc;
}

typedef int doctor_check(struct doctor *d, struct fw_store *st, struct fw_err *err);

static void store(struct doctor *d)
{
	static doctor_check *const LOOK[] = {store_setting, door, hubs, due_times, quotas};
	struct fw_store_stats s;
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_config_store(d->c, FW_STORE_READ, &st, &err);

	if (rc == FW_ENOTFOUND) {
		say(d, "store", FW_DOCTOR_NOTE, store_remedy(d, rc), "%s", err.text);
		return;
	}
	if (!rc)
		rc = fw_store_ping(st, &err);
	if (!rc)
		rc = fw_store_stats(st, &s, &err);
	if (!rc) {
		say(d, "store", FW_DOCTOR_FINE, "", "%s, schema %lld, %lld feeds, %lld entries", fw_store_name(st), (long long)s.schema,
			(long long)s.feed_n, (long long)s.entry_n);
		for (size_t i = 0; i < FW_N(LOOK) && !rc; i++)
			rc = LOOK[i](d, st, &err);
		rc = rc ? rc : fw_store_check(st, store_finding, d, &err);
		if (rc == FW_EUNSUP)
			rc = 0;
	}
	if (rc)
		say(d, "store", FW_DOCTOR_BROKEN, store_remedy(d, rc), "%s", err.text);
	if (!rc && fw_config_room(d->c, &err))
		say(d, "room", FW_DOCTOR_BROKEN, "free some space, or lower disk_free_min_bytes: until then nothing is fetched", "%s", err.text);
	if (!rc && s.quarantined_n)
		say(d, "quarantine", FW_DOCTOR_NOTE, "'feedwheel list --status quarantined', then 'feedwheel resume'",
			"%lld feeds are quarantined because their visits killed a worker", (long long)s.quarantined_n);
	fw_store_close(st);
}

/* ---- network ------------------------------------------------------------- */

static void tls(struct doctor *d)
{
	struct fw_net net;
	struct fw_err err = {0};
	const char *path = NULL;
	size_t n = 0;

	if (fw_settings_net(d->c, 1, &net, &err))
		return; /* reported by configuration() */
	if (fw_fetch_check_tls(&net.fetch, &n, &path, &err))
		say(d, "certificates", FW_DOCTOR_BROKEN, "install ca-certificates, or set ca_file to a CA bundle", "%s", err.text);
	else
		say(d, "certificates", FW_DOCTOR_FINE, "", "%zu trusted roots from %s", n, path ? path : "the system");
}

static void name_servers(struct doctor *d)
{
	FILE *f;
	char line[300];
	int n = 0;

	if (d->c->dns_servers) {
		say(d, "name servers", FW_DOCTOR_FINE, "", "%s", d->c->dns_servers);
		return;
	}
	f = fopen("/etc/resolv.conf", "re");
	while (f && fgets(line, sizeof(line), f))
		n += fw_str_starts(fw_str_trim(fw_str(line)), FW_STR("nameserver"));
	if (f)
		fclose(f);
	if (n)
		say(d, "name servers", FW_DOCTOR_FINE, "", "%d in /etc/resolv.conf", n);
	else
		say(d, "name servers", FW_DOCTOR_NOTE, "set dns_servers, or a nameserver in /etc/resolv.conf",
			"/etc/resolv.conf names none: only this machine's own is queried");
}

/* ---- the system ---------------------------------------------------------- */

static void files(struct doctor *d)
{
	int64_t need = d->c->concurrency * 2 + FILES_BESIDES;
	char remedy[120];
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r)) {
		say(d, "open files", FW_DOCTOR_NOTE, "", "cannot read the limit: %s", strerror(errno));
		return;
	}
	(void)fw_snprintf(remedy, sizeof(remedy), "ulimit -Hn %lld (LimitNOFILE= in the unit), or lower concurrency",
		(long long)need);
	/* workers raise the soft limit to the hard one */
	if (r.rlim_max != RLIM_INFINITY && (int64_t)r.rlim_max < need)
		say(d, "open files", FW_DOCTOR_NOTE, remedy, "a worker with %lld transfers needs %lld and may have %llu",
			(long long)d->c->concurrency, (long long)need, (unsigned long long)r.rlim_max);
	else
		say(d, "open files", FW_DOCTOR_FINE, "", "a worker needs %lld and may have %llu", (long long)need,
			(unsigned long long)r.rlim_max);
}

static void memory(struct doctor *d)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	int64_t have = pages > 0 && size > 0 ? pages * size >> 20 : 0;
	/* documents in transfer, one large document decoded, and its parsed form */
	int64_t large = d->c->max_buffered_bytes + d->c->max_body_bytes + d->c->parse_memory_bytes;
	int64_t each = (d->c->concurrency * TRANSFER_BYTES + d->c->cache_bytes + large) >> 20;
	int64_t all = each * FW_MAX(d->c->workers, INT64_C(1));

	say(d, "memory", have && all > have / 2 ? FW_DOCTOR_NOTE : FW_DOCTOR_FINE, "lower workers, concurrency, parse_memory_bytes or cache_bytes",
		"workers may use %lld MiB of this machine's %lld MiB", (long long)all, (long long)have);
}

static void layers_show(struct fw_buf *b, unsigned layers)
{
	for (unsigned i = 0; i < FW_SANDBOX_LAYER_N; i++) {
		if (layers & 1u << i)
			fw_buf_addf(b, "%s%s", layers & ((1u << i) - 1) ? ", " : "", fw_sandbox_layer_name((enum fw_sandbox_layer)(1u << i)));
	}
}

/* The sandbox layers of each process on this system. */
static void sandbox(struct doctor *d)
{
	static const char *const WHO[] = {[FW_SANDBOX_MASTER] = "the master", [FW_SANDBOX_WORKER] = "workers", [FW_SANDBOX_SERVER] = "the server"};
	bool required = fw_sandbox_is(d->c, "require");

	if (fw_sandbox_is(d->c, "off")) {
		say(d, "sandbox", FW_DOCTOR_NOTE, "sandbox = auto", "off: a vulnerability in any process exposes everything its user can access");
		return;
	}
	for (unsigned i = 0; i < FW_SANDBOX_WHO_N; i++) {
		struct fw_buf b = FW_BUF_INIT(600);
		unsigned have, lack;

		fw_sandbox_layers(d->c, (enum fw_sandbox_who)i, &have, &lack);
		fw_buf_addf(&b, "%s: %s", WHO[i], have ? "" : "nothing");
		layers_show(&b, have);
		fw_buf_adds(&b, lack ? "; missing: " : "");
		layers_show(&b, lack);
		say(d, "sandbox", !lack ? FW_DOCTOR_FINE : required ? FW_DOCTOR_BROKEN : FW_DOCTOR_NOTE,
			lack ? fw_sandbox_why((enum fw_sandbox_layer)(lack & ~(lack - 1))) : "", "%s", b.p ? b.p : "");
		fw_buf_finish(&b);
	}
}

static void time_of_day(struct doctor *d)
{
	char text[FW_RFC3339_MAX];
	int64_t now_ms = fw_now_ms();

	fw_rfc3339(text, now_ms / 1000 * 1000);
	if (now_ms < RELEASED_MS) {
		say(d, "clock", FW_DOCTOR_BROKEN, "set the clock (systemd-timesyncd, chrony)", "it shows %s, which is in the past", text);
		return;
	}
#ifdef __linux__
	struct timex t = {0};

	if (adjtimex(&t) == TIME_ERROR) {
		say(d, "clock", FW_DOCTOR_NOTE, "run a time service (systemd-timesyncd, chrony)", "%s, and the clock is not synchronised", text);
		return;
	}
#endif
	say(d, "clock", FW_DOCTOR_FINE, "", "%s", text);
}

int fw_doctor(const struct fw_config *c, fw_doctor_cb *cb, void *ctx)
{
	struct doctor d = {.c = c, .cb = cb, .ctx = ctx};

	configuration(&d);
	if (c->store)
		store(&d);
	tls(&d);
	name_servers(&d);
	files(&d);
	memory(&d);
	sandbox(&d);
	time_of_day(&d);
	return d.worst;
}
