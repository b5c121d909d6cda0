/* SPDX-License-Identifier: ISC */
/*
 * Names: looked up once, cached for their time, never a way around the guard; and how many of them
 * may use one address at once.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "dns_stub.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "stub.h"
#include "../../suite.h"

static uv_loop_t loop;
static struct stub stub;
static struct dns_stub dns;
static struct fw_guard guard;
static struct fw_fetch_config config;
static struct fw_fetcher *fetcher;
static char servers[40];
static int done_n;

static struct dns_line script[] = {
	{"feeds.example", "127.0.0.1", 300, 0},
	{"rebind.example", "198.51.99.7", 0, 1},
	{"rebind.example", "127.0.0.1", 0, 0},
	{"inside.example", "10.0.0.1", 300, 0},
	{"mapped.example", "::ffff:127.0.0.1", 300, 0},
	{"v6.example", "::1", 300, 0},
	{"broken.example", "!", 0, 0},
	{"silent.example", "", 0, 0},
	{"empty.example", "?", 0, 0},
	{"gone.example", NULL, 0, 0},
	{"xn--bcher-kva.example", "127.0.0.1", 300, 0},
	{"one.example", "127.0.0.1", 300, 0},
	{"two.example", "127.0.0.1", 300, 0},
	{"three.example", "::ffff:127.0.0.1", 300, 0},
	{"gone.example.corp.example", "127.0.0.1", 300, 0},
	{"intranet.corp.example", "127.0.0.1", 300, 0},
	{NULL, NULL, 0, 0},
};

static struct stub_conn *held[STUB_REQUESTS]; /* they wait for their response */
static size_t held_n;
static char elsewhere[60];

static void answer(struct stub_conn *c, const char *path, const char *request)
{
	(void)request;
	if (strcmp(path, "/to-rebind") == 0)
		stub_answer(c, 302, "Location: //rebind.example/x\r\n", "", 0);
	else if (strcmp(path, "/elsewhere") == 0)
		stub_answer(c, 302, elsewhere, "", 0);
	else if (strncmp(path, "/hold", 5) == 0)
		held[held_n++] = c;
	else
		stub_answer(c, 200, "", "<rss/>", 6);
}

static void setup(void)
{
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	stub_open(&stub, &loop, "127.0.0.1", answer, NULL);
	dns_open(&dns, &loop, script);
	ck_assert_int_eq(fw_guard_init(&guard, "127.0.0.0/8", NULL), 0);
	fw_fetch_config_default(&config);
	config.guard = &guard;
	fw_snprintf(servers, sizeof(servers), "127.0.0.1:%d", dns.port);
	config.dns_servers = servers;
	fetcher = NULL;
	done_n = 0;
	held_n = 0;
}

static void teardown(void)
{
	fw_fetcher_destroy(fetcher);
	stub_close(&stub);
	dns_close(&dns);
	while (uv_run(&loop, UV_RUN_DEFAULT))
		;
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	stub_free(&stub);
}

static void done(struct fw_fetch *f)
{
	(void)f;
	done_n++;
	uv_stop(&loop);
}

static struct fw_fetch get(const char *host)
{
	static char url[300];
	struct fw_fetch f = {.done = done};
	struct fw_err err;
	int before = done_n;

	if (!fetcher)
		ck_assert_msg(fw_fetcher_create(&loop, &config, &fetcher, &err) == 0, "%s", err.text);
	fw_snprintf(url, sizeof(url), "http://%s:%d/", host, stub.port);
	f.url = fw_str(url);
	ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
	ck_assert_int_eq(done_n, before);
	while (done_n == before)
		uv_run(&loop, UV_RUN_DEFAULT);
	return f;
}

START_TEST(name_is_looked_up_once)
{
	for (int i = 0; i < 4; i++) {
		struct fw_fetch f = get(i % 2 ? "feeds.example" : "Feeds.EXAMPLE.");

		ck_assert_msg(f.kind == FW_VISIT_OK, "%s", f.err.text);
		ck_assert_int_gt(f.visit.dns_us, 0);
		ck_assert_ptr_nonnull(strstr(stub.request[i], "\r\nHost: feeds.example:"));
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(dns.query_n, 1);
	ck_assert_uint_eq(stub.conn_n, 2);
}
END_TEST

START_TEST(many_share_one_lookup)
{
	static struct fw_fetch f[50];
	static char url[60];
	struct fw_fetch first = get("127.0.0.1");

	fw_fetch_finish(&first);
	fw_snprintf(url, sizeof(url), "http://feeds.example:%d/", stub.port);
	for (size_t i = 0; i < FW_N(f); i++) {
		f[i] = (struct fw_fetch){.url = fw_str(url), .done = done};
		ck_assert_int_eq(fw_fetch_start(fetcher, &f[i], NULL), 0);
	}
	fw_fetch_cancel(&f[7]); /* one of the waiting fetches may be cancelled */
	fw_fetch_cancel(&f[49]);
	fw_fetch_cancel(&f[0]);
	while (fw_fetcher_in_flight(fetcher))
		uv_run(&loop, UV_RUN_ONCE);
	for (size_t i = 0; i < FW_N(f); i++) {
		ck_assert_int_eq(f[i].kind, i == 0 || i == 7 || i == 49 ? FW_VISIT_LOCAL : FW_VISIT_OK);
		fw_fetch_finish(&f[i]);
	}
	ck_assert_uint_eq(dns.query_n, 1);
}
END_TEST

START_TEST(names_that_fail)
{
	static const struct {
		const char *host;
		uint32_t queries;
	} T[] = {{"gone.example", 1}, {"empty.example", 1}, {"unknown.example", 1}};

	for (size_t i = 0; i < FW_N(T); i++) {
		uint32_t before = dns.query_n;

		for (int k = 0; k < 3; k++) { /* cached: failures too */
			struct fw_fetch f = get(T[i].host);

			ck_assert_msg(f.kind == FW_VISIT_DNS && f.err.rc == FW_ENET, "%s: %d %s", T[i].host, f.kind,
				f.err.text);
			fw_fetch_finish(&f);
		}
		ck_assert_uint_eq(dns.query_n - before, T[i].queries);
	}
	ck_assert_uint_eq(stub.conn_n, 0);
}
END_TEST

START_TEST(servers_that_fail)
{
	struct fw_fetch f = get("broken.example");

	ck_assert_int_eq(f.kind, FW_VISIT_DNS);
	fw_fetch_finish(&f);
	fw_fetcher_destroy(fetcher);
	fetcher = NULL;
	config.connect_timeout_ms = 300;
	f = get("silent.example");
	ck_assert_int_eq(f.kind, FW_VISIT_DNS);
	ck_assert_ptr_nonnull(strstr(f.err.text, "connect_timeout"));
	ck_assert_int_lt(f.visit.total_us, 30000000); /* half of total_timeout_ms */
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(international_names)
{
	static const char *const T[] = {"b\xc3\xbc"
					"cher.example",
		"B\xc3\x9c"
		"CHER.EXAMPLE",
		"bu\xcc\x88"
		"cher.example",
		"xn--bcher-kva.example"};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(T[i]);

		ck_assert_msg(f.kind == FW_VISIT_OK, "%s: %s", T[i], f.err.text);
		ck_assert_ptr_nonnull(strstr(stub.request[i], "\r\nHost: xn--bcher-kva.example:"));
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(dns.query_n, 1);
}
END_TEST

/*
 * A name with a dot is looked up as it is, whatever the machine's search list. In a Kubernetes pod
 * (ndots:5) each feed would cost several more queries, and a wildcard in the list would answer for
 * hosts that are gone.
 */
START_TEST(search_lists_are_for_bare_names)
{
	struct fw_fetch f;

	setenv("LOCALDOMAIN", "corp.example", 1);
	setenv("RES_OPTIONS", "ndots:5", 1);
	f = get("feeds.example");
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	ck_assert_uint_eq(dns.query_n, 1);
	fw_fetch_finish(&f);
	f = get("gone.example"); /* gone.example.corp.example has an address */
	ck_assert_int_eq(f.kind, FW_VISIT_DNS);
	ck_assert_uint_eq(dns.query_n, 2);
	fw_fetch_finish(&f);
	f = get("intranet"); /* intranet.corp.example */
	ck_assert_int_eq(f.kind, FW_VISIT_OK);
	fw_fetch_finish(&f);
	unsetenv("LOCALDOMAIN");
	unsetenv("RES_OPTIONS");
}
END_TEST

static void resolver_gone(void *gone)
{
	*(bool *)gone = true;
}

/*
 * Destroys it, and runs the loop until it has released everything: c-ares decides how many turns
 * that takes.
 */
static void resolver_end(struct fw_resolver *r)
{
	bool gone = false;

	fw_resolver_destroy(r, resolver_gone, &gone);
	while (!gone)
		uv_run(&loop, UV_RUN_ONCE);
}

/* A line of this machine's hosts file, but not one for localhost. */
static bool hosts_line(char address[100], char name[100])
{
	FILE *f = fopen("/etc/hosts", "re");
	char line[300];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = line[0] != '#' && sscanf(line, "%99s %99s", address, name) == 2 && !strstr(name, "localhost") &&
			!strchr(name, '#');
	if (f)
		fclose(f);
	return found;
}

START_TEST(hosts_file_comes_first)
{
	char address[100], name[100], want[110];
	struct fw_resolver *r;
	struct fw_resolve_wait w = {0};
	const char *addrs;

	if (!hosts_line(address, name))
		return; /* the file has none */
	ck_assert_int_eq(fw_resolver_create(&loop, servers, NULL, &r, NULL), 0);
	fw_snprintf(want, sizeof(want), strchr(address, ':') ? "[%s]" : "%s", address);
	ck_assert_int_eq(fw_resolve(r, name, &w, &addrs), FW_RESOLVE_OK);
	ck_assert_msg(strstr(addrs, want) != NULL, "%s is not in %s", want, addrs);
	ck_assert_int_eq(fw_resolve(r, name, &w, &addrs), FW_RESOLVE_OK);
	ck_assert_uint_eq(dns.query_n, 0);
	resolver_end(r);
}
END_TEST

static void conf_write(const char *path, const char *server)
{
	char fresh[100];
	FILE *f;

	fw_snprintf(fresh, sizeof(fresh), "%s.new", path);
	f = fopen(fresh, "we");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "nameserver %s\n", server);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(rename(fresh, path), 0);
}

static void told_of(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs)
{
	(void)w;
	ck_assert_int_eq(state, FW_RESOLVE_OK);
	ck_assert_str_eq(addrs, "127.0.0.1");
	done_n++;
}

START_TEST(servers_change) /* a long run outlives its network: waiting lookups are sent to the new server too */
{
	char path[] = "/tmp/fw-resolv-XXXXXX";
	int fd = mkstemp(path);
	static struct dns_stub deaf, other; /* closed by the loop after this function returns */
	struct dns_line silence[] = {{"feeds.example", "", 0, 0}, {NULL, NULL, 0, 0}};
	struct fw_resolver *r;
	struct fw_resolve_wait a = {.cb = told_of}, b = {.cb = told_of};
	const char *addrs;
	uint64_t until;

	ck_assert_int_ge(fd, 0);
	close(fd);
	/* resolv.conf cannot name a port */
	if (!dns_open_at(&deaf, &loop, silence, "127.0.53.1", 53)) {
		unlink(path);
		return;
	}
	ck_assert(dns_open_at(&other, &loop, script, "127.0.53.2", 53));
	conf_write(path, "127.0.53.1");
	ck_assert_int_eq(fw_resolver_create(&loop, NULL, path, &r, NULL), 0);
	ck_assert_int_eq(fw_resolve(r, "feeds.example", &a, &addrs), FW_RESOLVE_WAIT);
	while (!deaf.query_n)
		uv_run(&loop, UV_RUN_ONCE);
	conf_write(path, "127.0.53.2");
	until = uv_now(&loop) + 2100;
	while (uv_now(&loop) < until)
		uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(fw_resolve(r, "xn--bcher-kva.example", &b, &addrs), FW_RESOLVE_WAIT);
	while (done_n < 2)
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(other.query_n, 2);
	resolver_end(r);
	dns_close(&deaf);
	dns_close(&other);
	unlink(path);
}
END_TEST

START_TEST(guarded_names) /* NET-02: the address is checked, not the name */
{
	static const char *const T[] = {"feeds.example", "inside.example", "mapped.example", "v6.example", "localhost"};

	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = get(T[i]);

		ck_assert_msg(f.kind == FW_VISIT_BLOCKED, "%s: %d %s", T[i], f.kind, f.err.text);
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(stub.conn_n, 0);
}
END_TEST

START_TEST(localhost_is_here) /* RFC 6761 section 6.3: also without a hosts file */
{
	struct fw_fetch f = get("localhost");

	ck_assert_msg(f.kind == FW_VISIT_OK, "%d %s", f.kind, f.err.text);
	ck_assert_uint_eq(dns.query_n, 0);
	fw_fetch_finish(&f);
}
END_TEST

START_TEST(rebinding) /* NET-15: first a public address, then ours */
{
	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0);
	config.connect_timeout_ms = 200;
	for (int i = 0; i < 3; i++) {
		struct fw_fetch f = get("rebind.example");

		/*
		 * the first response is a public address without a server; the next ones are
		 * refused
		 */
		ck_assert_int_ne(f.kind, FW_VISIT_OK);
		fw_fetch_finish(&f);
		fw_fetcher_destroy(fetcher); /* the next fetcher has an empty cache and gets the second response */
		fetcher = NULL;
	}
	ck_assert_uint_ge(dns.query_n, 3);
	ck_assert_uint_eq(stub.conn_n, 0); /* no connection to 127.0.0.1 */
}
END_TEST

/* between check and connection there is no second lookup: a TTL of 0 is cached for a short while */
START_TEST(answers_are_pinned)
{
	struct fw_fetch f;

	ck_assert_int_eq(fw_guard_init(&guard, NULL, NULL), 0);
	config.connect_timeout_ms = 2000;
	script[1].times = 1;
	for (int i = 0; i < 3; i++) {
		f = get("rebind.example");
		ck_assert_int_ne(f.kind, FW_VISIT_OK);
		ck_assert_int_ne(f.kind, FW_VISIT_DNS);
		fw_fetch_finish(&f);
	}
	ck_assert_uint_eq(dns.query_n, 1);
	ck_assert_uint_eq(stub.conn_n, 0);
}
END_TEST

/* ---- many names at one address --------------------------------------------------------------- */

static struct fw_fetch many[12];
static int order[FW_N(many)]; /* in the order of their ends */

static void many_done(struct fw_fetch *f)
{
	order[done_n++] = (int)(f - many);
}

static void ask(size_t i, const char *host, const char *path)
{
	static char url[FW_N(many)][60];

	fw_snprintf(url[i], sizeof(url[i]), "http://%s:%d%s", host, stub.port, path);
	many[i] = (struct fw_fetch){.url = fw_str(url[i]), .done = many_done};
	ck_assert_int_eq(fw_fetch_start(fetcher, &many[i], NULL), 0);
}

static void limit(uint32_t n)
{
	struct fw_err err;

	config.address_concurrency = n;
	ck_assert_msg(fw_fetcher_create(&loop, &config, &fetcher, &err) == 0, "%s", err.text);
}

static void until_held(size_t n)
{
	while (held_n < n)
		uv_run(&loop, UV_RUN_ONCE);
}

static void until_done(int n)
{
	while (done_n < n)
		uv_run(&loop, UV_RUN_ONCE);
}

static void release(size_t i)
{
	stub_answer(held[i], 200, "", "<rss/>", 6);
}

static void many_finish(size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_fetch_finish(&many[i]);
}

START_TEST(few_at_an_address)
{
	static const char *const HOST[] = {"one.example", "127.0.0.1", "two.example", "three.example"};

	limit(3);
	for (size_t i = 0; i < FW_N(many); i++)
		ask(i, HOST[i % FW_N(HOST)], "/hold");
	for (size_t i = 0; i < FW_N(many); i++) {
		until_held(FW_MIN(i + 3, FW_N(many)));
		for (int k = 0; k < 10; k++) /* any further requests would arrive now */
			uv_run(&loop, UV_RUN_NOWAIT);
		ck_assert_uint_eq(held_n, FW_MIN(i + 3, FW_N(many)));
		ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), FW_N(many) - i);
		release(i);
		until_done((int)i + 1);
	}
	for (size_t i = 0; i < FW_N(many); i++) {
		ck_assert_msg(many[i].kind == FW_VISIT_OK, "%zu: %s", i, many[i].err.text);
		ck_assert_int_ge(many[i].visit.queue_us, 0);
		ck_assert_int_ge(many[i].visit.connect_us, many[i].visit.dns_us);
		ck_assert_int_ge(many[i].visit.total_us, many[i].visit.first_byte_us);
	}
	many_finish(FW_N(many));
}
END_TEST

START_TEST(first_come_first_served)
{
	limit(1);
	for (size_t i = 0; i < FW_N(many); i++)
		ask(i, "127.0.0.1", "/x");
	until_done(FW_N(many));
	for (size_t i = 0; i < FW_N(many); i++)
		ck_assert_int_eq(order[i], (int)i);
	ck_assert_int_eq(many[0].visit.queue_us, 0);
	for (size_t i = 1; i < FW_N(many); i++)
		ck_assert_int_gt(many[i].visit.queue_us, 0); /* the last was queued for longer than the first */
	many_finish(FW_N(many));
}
END_TEST

START_TEST(redirects_give_places_back)
{
	struct stub other;

	limit(1);
	stub_open(&other, &loop, "127.0.0.2", answer, NULL);
	fw_snprintf(elsewhere, sizeof(elsewhere), "Location: http://127.0.0.2:%d/hold\r\n", other.port);
	ask(0, "one.example", "/elsewhere");
	until_held(1);
	ask(1, "two.example", "/x"); /* its first address is free again */
	until_done(1);
	ck_assert_int_eq(order[0], 1);
	ask(2, "two.example", "/elsewhere"); /* its second is not */
	ask(3, "two.example", "/x");
	until_done(2);
	ck_assert_int_eq(order[1], 3);
	ck_assert_uint_eq(held_n, 1);
	release(0);
	until_held(2);
	release(1);
	until_done(4);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_msg(many[i].kind == FW_VISIT_OK, "%zu: %s", i, many[i].err.text);
		ck_assert_uint_eq(many[i].hops, i == 0 || i == 2);
	}
	many_finish(4);
	stub_close(&other);
	uv_run(&loop, UV_RUN_NOWAIT);
	stub_free(&other);
}
END_TEST

START_TEST(leaving_the_line)
{
	limit(1);
	for (size_t i = 0; i < 5; i++)
		ask(i, i % 2 ? "one.example" : "127.0.0.1", "/hold");
	until_held(1);
	/* no request was sent to its host yet */
	ck_assert(!fw_fetch_is_silent(&many[2]) && !fw_fetch_abandon(&many[2]));
	ck_assert(fw_fetch_is_silent(&many[0]));
	fw_fetch_cancel(&many[2]);
	ck_assert_int_eq(done_n, 1);
	ck_assert_int_eq(many[2].kind, FW_VISIT_LOCAL);
	ck_assert_uint_eq(stub.conn_n, 1);
	fw_fetch_cancel(&many[0]); /* its slot goes to the next, which is cancelled before its callback */
	fw_fetch_cancel(&many[4]);
	until_held(2);
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), 2);
	fw_fetch_cancel(&many[1]); /* all of them, as at the end of a drain */
	fw_fetch_cancel(&many[3]);
	ck_assert_int_eq(done_n, 5);
	ck_assert_uint_eq(fw_fetcher_in_flight(fetcher), 0);
	many_finish(5);
}
END_TEST

static void on_time(uv_timer_t *t)
{
	release(0);
	uv_close((uv_handle_t *)t, NULL);
}

static void release_after(uv_timer_t *timer, uint64_t ms)
{
	uv_timer_init(&loop, timer);
	uv_timer_start(timer, on_time, ms, 0);
}

START_TEST(a_line_too_long) /* deferred, not failed; and the wait does not count as the server's time */
{
	uv_timer_t timer;

	config.total_timeout_ms = 12000;
	limit(1);
	for (size_t i = 0; i < 3; i++)
		ask(i, "127.0.0.1", "/hold");
	until_held(1);
	release_after(&timer, 1000);
	/*
	 * the first is answered; the second has too little time left for its turn; the third gets
	 * no turn
	 */
	until_done(3);
	ck_assert_msg(many[0].kind == FW_VISIT_OK, "%s", many[0].err.text);
	for (size_t i = 1; i < 3; i++) {
		ck_assert_msg(many[i].kind == FW_VISIT_LOCAL && strstr(many[i].err.text, "address_concurrency"), "%s",
			many[i].err.text);
		ck_assert(many[i].deferred == (i == 2)); /* the second had sent its request */
		ck_assert_int_ge(many[i].visit.queue_us, 900000);
	}
	ck_assert_int_lt(many[2].visit.total_us, many[2].visit.queue_us);
	many_finish(3);
}
END_TEST

START_TEST(clocks_begin_with_the_turn) /* it waits for longer than a connection or a response may take */
{
	uv_timer_t timer;

	config.connect_timeout_ms = 6000;
	limit(1);
	ask(0, "one.example", "/hold");
	until_held(1);
	ask(1, "one.example", "/x");
	release_after(&timer, 6500);
	until_done(2);
	ck_assert_msg(many[0].kind == FW_VISIT_OK && many[1].kind == FW_VISIT_OK, "%s; %s", many[0].err.text,
		many[1].err.text);
	ck_assert_int_gt(many[1].visit.queue_us, 6000000);
	many_finish(2);
}
END_TEST

START_TEST(failures_give_places_back)
{
	static const char *const T[] = {"inside.example", "gone.example", "10.0.0.1"};

	config.address_concurrency = 1;
	for (size_t i = 0; i < 3 * FW_N(T); i++) {
		struct fw_fetch f = get(T[i % FW_N(T)]);

		ck_assert(f.kind == FW_VISIT_BLOCKED || f.kind == FW_VISIT_DNS);
		ck_assert_int_eq(f.visit.queue_us, 0);
		fw_fetch_finish(&f);
	}
}
END_TEST

START_TEST(a_proxy_has_no_limit) /* all use the proxy's address; theirs are not known */
{
	char proxy[40];

	fw_snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", stub.port);
	config.proxy = proxy;
	limit(1);
	for (size_t i = 0; i < 3; i++)
		ask(i, "one.example", "/x");
	until_done(3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(many[i].visit.queue_us, 0);
	many_finish(3);
}
END_TEST

/* ---- the resolver alone ---------------------------------------------------------------------- */

static void destroying_done(struct fw_fetch *f)
{
	(void)f;
	done_n++;
	fw_fetcher_destroy(fetcher);
	fetcher = NULL;
}

START_TEST(last_done_destroys) /* from within c-ares, libcurl, the tick, and later */
{
	static const char *const T[] = {
		"http://gone.example/", "http://feeds.example:1/", "http://silent.example/", "ftp://x"};

	config.connect_timeout_ms = 200;
	config.address_concurrency = 1;
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_fetch f = {.url = fw_str(T[i]), .done = destroying_done};
		struct fw_err err;

		ck_assert_int_eq(fw_fetcher_create(&loop, &config, &fetcher, &err), 0);
		ck_assert_int_eq(fw_fetch_start(fetcher, &f, NULL), 0);
		while (fetcher)
			uv_run(&loop, UV_RUN_ONCE);
		ck_assert_int_ne(f.kind, FW_VISIT_OK);
		fw_fetch_finish(&f);
	}
	ck_assert_int_eq(done_n, 4);
}
END_TEST

static enum fw_resolve_state told_state;
static char told[200];

static void tell(struct fw_resolve_wait *w, enum fw_resolve_state state, const char *addrs)
{
	(void)w;
	told_state = state;
	fw_snprintf(told, sizeof(told), "%s", addrs ? addrs : "");
	uv_stop(&loop);
}

/* A caller that joins a lookup, or gets a cached result, gets its age. */
START_TEST(lookups_have_an_age)
{
	struct fw_resolve_wait first = {.cb = tell}, second = {.cb = tell};
	struct fw_resolver *r;
	const char *addrs;
	uint64_t begun;

	ck_assert_int_eq(fw_resolver_create(&loop, servers, NULL, &r, NULL), 0);
	begun = uv_now(&loop);
	ck_assert_int_eq(fw_resolve(r, "silent.example", &first, &addrs), FW_RESOLVE_WAIT);
	ck_assert_uint_eq(first.age_ms, 0);
	while (uv_now(&loop) < begun + 20)
		uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(fw_resolve(r, "silent.example", &second, &addrs), FW_RESOLVE_WAIT);
	ck_assert_uint_ge(second.age_ms, 20);
	fw_resolve_cancel(&first);
	fw_resolve_cancel(&second);
	ck_assert_int_eq(fw_resolve(r, "gone.example", &first, &addrs), FW_RESOLVE_WAIT);
	for (told_state = FW_RESOLVE_WAIT; told_state == FW_RESOLVE_WAIT;)
		uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(told_state, FW_RESOLVE_NONE);
	begun = uv_now(&loop);
	while (uv_now(&loop) < begun + 20)
		uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(fw_resolve(r, "gone.example", &first, &addrs), FW_RESOLVE_NONE);
	ck_assert_uint_ge(first.age_ms, 20);
	resolver_end(r);
}
END_TEST

START_TEST(cache_is_bounded)
{
	struct fw_resolve_wait w = {.cb = tell};
	struct fw_resolver *r;
	const char *addrs;
	char host[40];

	ck_assert_int_eq(fw_resolver_create(&loop, servers, NULL, &r, NULL), 0);
	for (int i = 0; i < 20500; i++) {
		fw_snprintf(host, sizeof(host), "h%d.unknown.example", i);
		ck_assert_int_eq(fw_resolve(r, host, &w, &addrs), FW_RESOLVE_WAIT);
		uv_run(&loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(told_state, FW_RESOLVE_NONE);
	}
	ck_assert_int_eq(fw_resolve(r, host, &w, &addrs), FW_RESOLVE_NONE); /* the newest is still cached */
	ck_assert_int_eq(fw_resolve(r, "h0.unknown.example", &w, &addrs), FW_RESOLVE_WAIT); /* the oldest is not */
	fw_resolve_cancel(&w);
	ck_assert_int_eq(fw_resolve(r, "feeds.example", &w, &addrs), FW_RESOLVE_WAIT);
	while (told_state != FW_RESOLVE_OK)
		uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_str_eq(told, "127.0.0.1");
	ck_assert_int_eq(fw_resolve(r, "feeds.example", &w, &addrs), FW_RESOLVE_OK);
	ck_assert_str_eq(addrs, "127.0.0.1");
	resolver_end(r);
}
END_TEST

int main(void)
{
	const TTest *const T[] = {name_is_looked_up_once, many_share_one_lookup, names_that_fail, servers_that_fail,
		international_names, search_lists_are_for_bare_names, hosts_file_comes_first, servers_change,
		guarded_names, localhost_is_here, rebinding, answers_are_pinned, few_at_an_address,
		first_come_first_served, redirects_give_places_back, leaving_the_line, a_line_too_long,
		clocks_begin_with_the_turn, failures_give_places_back, a_proxy_has_no_limit, last_done_destroys,
		lookups_have_an_age, cache_is_bounded};
	Suite *s = suite_create("unit fetch names");
	TCase *t = tcase_create("names");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(T); i++)
		tcase_add_test(t, T[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
