/* SPDX-License-Identifier: ISC */
/*
 * Settings. The table SETTINGS holds each setting's name, type, range, default and text. The
 * configuration file, the command line, `feedwheel help settings`, the sample configuration, the
 * shell completions and the test of the manual all read it. A new setting needs one row here, one
 * member of struct fw_config and one paragraph in feedwheel.conf(5).
 *
 * Precedence, lowest first: the row's default, the configuration file, FEEDWHEEL_STORE, the command
 * line.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "base/str.h"
#include "engine/config_text.h"
#include "engine/websub/websub_requests.h"
#include "base/banned.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define URL_MAX ((size_t)4096)
#define DAYS(n) (FW_DAY_MS * (n))
#define MIB(n) ((int64_t)(n) << 20)
#define NO_RANGE 0, 0, NULL
#define AT(member) offsetof(struct fw_config, member)

/* Which commands use a setting. "add+check": only `add --check` uses it. */
#define ANY NULL /* every command that reads the configuration */
#define RUN "run"
#define SERVE "run serve"
#define FETCH "run serve fetch add+check"
#define WRITE "add import remove set pause resume events push run serve token websub fetch-now stop"
#define STORE WRITE " export list show why timeline entries read fetch plan status copy"

static const struct fw_setting SETTINGS[] = {
	{"store", FW_TYPE_STRING, "", NO_RANGE,
		"Where feeds, entries and events are stored: sqlite:PATH, postgres://, mysql://, "
		"redis:// (feedwheel-store(7)). Unset: sqlite:$XDG_DATA_HOME/feedwheel/feedwheel.db.",
		AT(store), ANY},
	{"store_file", FW_TYPE_STRING, "", NO_RANGE,
		"File whose first line is the store's URL, for a URL with a password; other users "
		"must not be able to read it. The later of store and store_file wins.",
		AT(store_file), STORE},
	{"workers", FW_TYPE_INT, "0", 0, 1024, NULL, "Worker processes; 0: one for every two processors.", AT(workers),
		"run plan"},
	{"concurrency", FW_TYPE_INT, "250", 1, 20000, NULL, "Maximum transfers in flight in each worker.",
		AT(concurrency), "run plan"},
	{"lease_ms", FW_TYPE_DURATION, "15s", 3 * FW_SECOND_MS, 10 * FW_MINUTE_MS, NULL,
		"Other workers take over the hosts of a worker that has been dead or cut off from "
		"the store for this long.",
		AT(lease_ms), RUN},
	{"drain_timeout_ms", FW_TYPE_DURATION, "30s", 0, FW_HOUR_MS, NULL,
		"How long a graceful stop waits for transfers in flight.", AT(drain_timeout_ms), SERVE},
	{"host_concurrency", FW_TYPE_INT, "2", 1, 1000, NULL,
		"Maximum concurrent fetches from one host, over all workers.", AT(host_concurrency),
		"run serve plan timeline"},
	{"host_gap_ms", FW_TYPE_DURATION, "1s", 0, FW_HOUR_MS, NULL, "Minimum delay between two requests to one host.",
		AT(host_gap_ms), "run serve plan timeline"},
	{"address_concurrency", FW_TYPE_INT, "0", 0, 20000, NULL,
		"Maximum concurrent transfers of one worker to one address (IPv4, or an IPv6 /64), "
		"over all hosts there; 0: no limit.",
		AT(address_concurrency), SERVE},
	{"host_key", FW_TYPE_STRING, "domain", 0, 0, "domain host address",
		"What counts as one host: domain, the host name, or a hosting service with all its "
		"customers' names; host, every name; address, the IP address. Set the same on all machines.",
		AT(host_key), "run add+check"},
	{"hosting_domains", FW_TYPE_STRING, "", NO_RANGE,
		"Further hosting domains, each of which counts as one host with all names below "
		"it: \"example.com blogs.example.org\".",
		AT(hosting_domains), "run add+check"},
	{"order", FW_TYPE_STRING, "host-path", 0, 0, "fifo shortest longest host-path batch-unordered batch-sorted",
		"Fetch order of 'run --once': host-path, the host with the most work left first; "
		"longest, the longest feed first; shortest; fifo, by due time; batch-unordered and "
		"batch-sorted finish each batch before the next.",
		AT(order), "run+once plan"},
	{"order_batch", FW_TYPE_INT, "0", 0, 1000000, NULL,
		"Feeds per batch in the batch orders; 0: as many as there are transfers in flight.", AT(order_batch),
		"run+once plan"},
	{"straggler_timeout_ms", FW_TYPE_DURATION, "2s", 0, FW_HOUR_MS, NULL,
		"At the end of a long 'run --once', feeds silent for this long, and for much "
		"longer than ever before, are deferred; 0: never.",
		AT(straggler_timeout_ms), "run+once"},
	{"slow_ms", FW_TYPE_DURATION, "3s", 1, FW_HOUR_MS, NULL,
		"Feeds that are expected to take longer than this are slow.", AT(slow_ms), RUN},
	{"slow_percent_max", FW_TYPE_INT, "50", 1, 100, NULL,
		"Maximum percentage of a worker's transfers that slow feeds may hold; ignored by 'run --once'.",
		AT(slow_percent_max), RUN},
	{"backlog_ms", FW_TYPE_DURATION, "5m", 0, DAYS(30), NULL,
		"When more feeds than can be fetched at once are late by this, 'run' starts with "
		"the feeds that are latest relative to their own interval; 0: always by due time.",
		AT(backlog_ms), "run why"},
	{"batch_visits", FW_TYPE_INT, "500", 1, 100000, NULL, "Visits are committed in batches of at most this many.",
		AT(batch_visits), RUN},
	{"batch_bytes", FW_TYPE_SIZE, "1MiB", 4096, MIB(1024), NULL,
		"Visits are committed in batches of at most this many bytes of entries.", AT(batch_bytes), "run copy"},
	{"batch_ms", FW_TYPE_DURATION, "500ms", 1, FW_MINUTE_MS, NULL,
		"Visits are committed in batches, at the latest after this time.", AT(batch_ms), RUN},
	{"interval_min_ms", FW_TYPE_DURATION, "15m", FW_SECOND_MS, DAYS(30), NULL,
		"Minimum time between two polls of a feed.", AT(interval_min_ms), "run add+check"},
	{"interval_ms", FW_TYPE_DURATION, "1h", FW_SECOND_MS, DAYS(30), NULL,
		"Poll interval of a feed whose rhythm is not known yet.", AT(interval_ms), "run add+check"},
	{"interval_max_ms", FW_TYPE_DURATION, "1d", FW_SECOND_MS, DAYS(365), NULL,
		"Maximum time between two polls of a feed (Retry-After and errors may delay it further).",
		AT(interval_max_ms), "run add+check"},
	{"websub_poll_ms", FW_TYPE_DURATION, "1d", FW_MINUTE_MS, DAYS(30), NULL,
		"Poll interval of a feed that a WebSub hub delivers, to find what the hub missed.", AT(websub_poll_ms),
		RUN},
	{"connect_timeout_ms", FW_TYPE_DURATION, "10s", 100, 10 * FW_MINUTE_MS, NULL,
		"Timeout for a connection, including name lookup and TLS.", AT(connect_timeout_ms), FETCH},
	{"first_byte_timeout_ms", FW_TYPE_DURATION, "15s", 100, 10 * FW_MINUTE_MS, NULL,
		"Timeout for the first byte of the response, once connected.", AT(first_byte_timeout_ms), FETCH},
	{"total_timeout_ms", FW_TYPE_DURATION, "60s", 100, FW_HOUR_MS, NULL,
		"Timeout for a whole visit, including redirects.", AT(total_timeout_ms), FETCH},
	{"low_speed_bytes", FW_TYPE_SIZE, "100", 1, MIB(1), NULL,
		"A transfer slower than this, in bytes per second, over low_speed_ms is aborted.", AT(low_speed_bytes),
		FETCH},
	{"low_speed_ms", FW_TYPE_DURATION, "20s", FW_SECOND_MS, FW_HOUR_MS, NULL,
		"A transfer slower than low_speed_bytes over this time is aborted.", AT(low_speed_ms), FETCH},
	{"offline_wait_ms", FW_TYPE_DURATION, "30s", 0, FW_HOUR_MS, NULL,
		"When a host cannot be reached, how long to wait for responses from other hosts "
		"before the failure counts against its feed, not our own network; 0: do not wait.",
		AT(offline_wait_ms), RUN},
	{"max_body_bytes", FW_TYPE_SIZE, "16MiB", 1024, MIB(1024), NULL,
		"Maximum size of a document, on the wire and decoded.", AT(max_body_bytes), FETCH " push parse"},
	{"max_buffered_bytes", FW_TYPE_SIZE, "8MiB", 65536, MIB(65536), NULL,
		"Memory in each worker for documents in transfer, as received; when it is full, "
		"all transfers but one pause.",
		AT(max_buffered_bytes), RUN},
	{"parse_memory_bytes", FW_TYPE_SIZE, "64MiB", MIB(1), MIB(65536), NULL,
		"Memory in each worker for parsing and storing documents over 256 KiB, besides "
		"their own bytes; one document gets 8 times its size plus 8 MiB, at most this, and "
		"a push gets all of it.",
		AT(parse_memory_bytes), FETCH " push"},
	{"max_compression_ratio", FW_TYPE_INT, "200", 2, 100000, NULL,
		"Maximum compression ratio after the first MiB; anything above is refused as a decompression bomb.",
		AT(max_compression_ratio), FETCH},
	{"max_header_bytes", FW_TYPE_SIZE, "100k", 1024, MIB(1), NULL, "Maximum total size of the response headers.",
		AT(max_header_bytes), FETCH},
	{"max_redirects", FW_TYPE_INT, "5", 0, 20, NULL, "Maximum redirects in one visit.", AT(max_redirects), FETCH},
	{"max_entries", FW_TYPE_INT, "10000", 1, 1000000, NULL, "Maximum entries read from one document.",
		AT(max_entries), FETCH " push parse"},
	{"feed_daily_entries_max", FW_TYPE_INT, "10000", 0, 1000000000, NULL,
		"Maximum new entries of a feed per day; the newest are stored, the rest on later days. 0: no limit.",
		AT(feed_daily_entries_max), "run serve show why"},
	{"feed_daily_bytes_max", FW_TYPE_SIZE, "100MiB", 0, MIB(1 << 20), NULL,
		"Maximum bytes of new and changed entries of a feed per day; the rest is stored on "
		"later days. 0: no limit.",
		AT(feed_daily_bytes_max), "run serve show why"},
	{"allow_networks", FW_TYPE_STRING, "", NO_RANGE,
		"Private networks that feeds may be fetched from, such as 127.0.0.0/8, [fd00::]/8, 10.1.2.3:8080.",
		AT(allow_networks), FETCH},
	{"deny_networks", FW_TYPE_STRING, "", NO_RANGE,
		"Networks that nothing is fetched from, such as your own public ones; same format "
		"as allow_networks, and takes precedence.",
		AT(deny_networks), FETCH},
	{"dns_servers", FW_TYPE_STRING, "", NO_RANGE, "DNS servers, separated by commas. Unset: the system's.",
		AT(dns_servers), FETCH},
	{"ca_file", FW_TYPE_STRING, "", NO_RANGE, "File of CA certificates (PEM). Unset: the system's.", AT(ca_file),
		FETCH},
	{"proxy", FW_TYPE_STRING, "", NO_RANGE,
		"HTTP proxy, such as http://10.0.0.1:3128; it is trusted to filter addresses. "
		"Proxy environment variables are ignored.",
		AT(proxy), FETCH},
	{"user_agent", FW_TYPE_STRING, "", NO_RANGE, "User-Agent of requests. Unset: feedwheel/VERSION (+contact_url).",
		AT(user_agent), FETCH},
	{"contact_url", FW_TYPE_STRING, "", NO_RANGE,
		"A page about your crawler, named in the User-Agent, so that site owners can reach you.",
		AT(contact_url), FETCH},
	{"http2", FW_TYPE_BOOL, "yes", NO_RANGE, "Use HTTP/2 where the server offers it.", AT(http2), FETCH},
	{"async_commit", FW_TYPE_BOOL, "no", NO_RANGE,
		"Commit without waiting for the disk: faster, but a power failure may lose the last commits.",
		AT(async_commit), WRITE},
	{"page_cache_bytes", FW_TYPE_SIZE, "6MiB", 0, MIB(65536), NULL,
		"The store's page cache in each process; 0: the driver's default.", AT(page_cache_bytes), STORE},
	{"disk_free_min_bytes", FW_TYPE_SIZE, "64MiB", 0, MIB(1 << 30), NULL,
		"Minimum free space on the disk of an SQLite store; below it fetching stops and "
		"entries wait. 0: no minimum.",
		AT(disk_free_min_bytes), "run serve push status"},
	{"visits_retention_ms", FW_TYPE_DURATION, "30d", 0, DAYS(36500), NULL,
		"Visits older than this are deleted; 0: never.", AT(visits_retention_ms), RUN},
	{"entries_retention_ms", FW_TYPE_DURATION, "0", 0, DAYS(36500), NULL,
		"Entries that were neither new nor changed for this long are deleted; 0: never.",
		AT(entries_retention_ms), RUN},
	{"events_retention_ms", FW_TYPE_DURATION, "0", 0, DAYS(36500), NULL,
		"Pushed events and dead letters older than this are deleted; 0: never.", AT(events_retention_ms),
		SERVE},
	{"listen", FW_TYPE_STRING, "", NO_RANGE,
		"Address of the HTTP server: ADDRESS:PORT, such as 127.0.0.1:8080, or unix:PATH. Unset: none.",
		AT(listen), SERVE},
	{"serve_threads", FW_TYPE_INT, "0", 0, 1024, NULL, "Threads of the HTTP server; 0: one for every processor.",
		AT(serve_threads), SERVE},
	{"serve_pool_threads", FW_TYPE_INT, "2", 1, 64, NULL,
		"Threads of the HTTP server that query the store, each with its own connection.",
		AT(serve_pool_threads), SERVE},
	{"trusted_proxies", FW_TYPE_STRING, "", NO_RANGE,
		"Proxies in front of the HTTP server, such as 127.0.0.1, 10.0.0.0/8, unix: their "
		"X-Forwarded-For gives the client's address.",
		AT(trusted_proxies), SERVE},
	{"tls_cert", FW_TYPE_STRING, "", NO_RANGE,
		"File of the HTTP server's certificate and its chain (PEM); with tls_key the server speaks HTTPS.",
		AT(tls_cert), SERVE},
	{"tls_key", FW_TYPE_STRING, "", NO_RANGE, "File of the certificate's private key (PEM, without a pass phrase).",
		AT(tls_key), SERVE},
	{"access_log", FW_TYPE_STRING, "", NO_RANGE,
		"Access log, one line for each request: a file, or - for standard output. Unset: none.", AT(access_log),
		SERVE},
	{"serve_connections_max", FW_TYPE_INT, "10000", 1, 1000000, NULL,
		"Maximum open connections; near this limit idle ones are closed early.", AT(serve_connections_max),
		SERVE},
	{"serve_connections_per_address_max", FW_TYPE_INT, "0", 0, 1000000, NULL,
		"Maximum connections from one IPv4 address or IPv6 /64; trusted proxies and this "
		"machine are exempt. 0: a quarter of serve_connections_max.",
		AT(serve_connections_per_address_max), SERVE},
	{"serve_header_timeout_ms", FW_TYPE_DURATION, "10s", 10, FW_HOUR_MS, NULL,
		"Timeout for a new connection's first request line and headers.", AT(serve_header_timeout_ms), SERVE},
	{"serve_body_timeout_ms", FW_TYPE_DURATION, "60s", 10, FW_HOUR_MS, NULL, "Timeout for a request's body.",
		AT(serve_body_timeout_ms), SERVE},
	{"serve_body_rate_min", FW_TYPE_INT, "500", 0, MIB(1024), NULL,
		"Minimum upload rate of a request body after its first 5 s, in bytes per second; 0: no minimum.",
		AT(serve_body_rate_min), SERVE},
	{"serve_send_timeout_ms", FW_TYPE_DURATION, "60s", 10, FW_HOUR_MS, NULL,
		"Timeout for a client to read the response, or each chunk of a stream.", AT(serve_send_timeout_ms),
		SERVE},
	{"serve_idle_timeout_ms", FW_TYPE_DURATION, "60s", 10, FW_DAY_MS, NULL,
		"Timeout of a keep-alive connection that waits for its next request.", AT(serve_idle_timeout_ms),
		SERVE},
	{"serve_memory_bytes", FW_TYPE_SIZE, "256MiB", 65536, MIB(1 << 20), NULL,
		"Memory for the bodies of current requests, and as much again for the entries "
		"parsed from them; requests beyond it get 503.",
		AT(serve_memory_bytes), SERVE},
	{"push_body_max_bytes", FW_TYPE_SIZE, "1MiB", 1024, MIB(1024), NULL,
		"Maximum size of a body of pushed events, decompressed.", AT(push_body_max_bytes), SERVE},
	{"push_properties", FW_TYPE_STRING, "", NO_RANGE,
		"Allowed values of a pushed event's property, separated by commas. Unset: any.", AT(push_properties),
		SERVE},
	{"push_section_min", FW_TYPE_INT, "1", INT64_MIN, INT64_MAX, NULL, "Minimum section of a pushed event.",
		AT(push_section_min), SERVE},
	{"push_id_min", FW_TYPE_INT, "1", INT64_MIN, INT64_MAX, NULL, "Minimum id of a pushed event.", AT(push_id_min),
		SERVE},
	{"serve_heartbeat_ms", FW_TYPE_DURATION, "15s", 100, FW_HOUR_MS, NULL,
		"Time without news after which clients of the stream get a heartbeat.", AT(serve_heartbeat_ms), SERVE},
	{"auth_failures_max", FW_TYPE_INT, "30", 0, 1000000, NULL,
		"Maximum wrong tokens from one network (/24, /64) within auth_failures_ms; further "
		"requests get 429. 0: no limit.",
		AT(auth_failures_max), SERVE},
	{"auth_failures_ms", FW_TYPE_DURATION, "1m", 100, FW_DAY_MS, NULL,
		"Period over which wrong tokens are counted.", AT(auth_failures_ms), SERVE},
	{"serve_cors_origin", FW_TYPE_STRING, "", NO_RANGE,
		"Origin whose pages may use the HTTP server from a browser (CORS): "
		"https://example.org, or * for all. Unset: none.",
		AT(serve_cors_origin), SERVE},
	{"serve_host_names", FW_TYPE_STRING, "", NO_RANGE,
		"Host names that a request without a token may use in its Host header, besides "
		"localhost and loopback addresses, such as feeds.lan. Unset: none.",
		AT(serve_host_names), SERVE},
	{"websub_url", FW_TYPE_STRING, "", NO_RANGE,
		"Public URL of this server, where hubs deliver, such as https://example.org/; "
		"feeds that have a hub are then subscribed there, and polled rarely. Unset: no subscriptions.",
		AT(websub_url), "run serve websub"},
	{"websub_lease_ms", FW_TYPE_DURATION, "10d", FW_SECOND_MS, DAYS(90), NULL,
		"Lease requested from hubs; it is renewed before it ends.", AT(websub_lease_ms), SERVE},
	{"websub_scan_ms", FW_TYPE_DURATION, "30s", 10, FW_DAY_MS, NULL,
		"Time between two scans of all feeds for hubs that are new, moved or gone.", AT(websub_scan_ms), SERVE},
	{"websub_pushes_max", FW_TYPE_INT, "300", 0, 1000000, NULL,
		"Maximum documents of one feed that a hub may send at once, and within "
		"websub_pushes_ms; further ones get 429. 0: no limit.",
		AT(websub_pushes_max), SERVE},
	{"websub_pushes_ms", FW_TYPE_DURATION, "1h", 100, FW_DAY_MS, NULL,
		"Period in which a hub may send websub_pushes_max documents of one feed.", AT(websub_pushes_ms), SERVE},
	{"websub_plain_secret", FW_TYPE_BOOL, "no", NO_RANGE,
		"Share a signing secret with hubs over plain HTTP too; otherwise a delivery of "
		"such a hub only triggers a poll of the feed.",
		AT(websub_plain_secret), SERVE},
	{"ring_bytes", FW_TYPE_SIZE, "32MiB", 65536, MIB(1 << 20), NULL,
		"Memory for pushes that wait for the store, allocated at the start; when it is full, pushes get 503.",
		AT(ring_bytes), SERVE},
	{"flush_ms", FW_TYPE_DURATION, "5s", 1, FW_HOUR_MS, NULL, "Maximum time until an accepted push is stored.",
		AT(flush_ms), SERVE},
	{"flush_durable_ms", FW_TYPE_DURATION, "5ms", 0, FW_MINUTE_MS, NULL,
		"Maximum time that a durable push waits for others, to be stored with them.", AT(flush_durable_ms),
		SERVE},
	{"flush_rows", FW_TYPE_INT, "5000", 1, 100000, NULL,
		"Pushed rows are stored in batches of at most this many, or twice this under load; "
		"1: no queue, each row is stored before the response.",
		AT(flush_rows), SERVE},
	{"wal_dir", FW_TYPE_STRING, "", NO_RANGE,
		"Folder of the write-ahead log for pushes that are accepted but not stored yet, so "
		"that they survive kill -9. Unset: memory only.",
		AT(wal_dir), SERVE},
	{"wal_sync_ms", FW_TYPE_DURATION, "100ms", 0, FW_MINUTE_MS, NULL,
		"Maximum time until accepted pushes are on the disk, safe from a power failure; 0: "
		"before the response.",
		AT(wal_sync_ms), SERVE},
	{"machine_id", FW_TYPE_INT, "0", 0, 1023, NULL,
		"Part of the ids of pushed rows: must differ between processes that push into one store.",
		AT(machine_id), SERVE},
	{"sandbox", FW_TYPE_STRING, "auto", 0, 0, "auto require off",
		"What each process gives up before it reads a byte from outside: auto, all that "
		"this system supports; require, all, or it does not start; off, nothing.",
		AT(sandbox), SERVE},
	{"log_level", FW_TYPE_STRING, "info", 0, 0, "error warn info debug",
		"What is logged: error, warn, info or debug.", AT(log_level), ANY},
	{"log_json", FW_TYPE_BOOL, "no", NO_RANGE, "Log JSON, one object per line.", AT(log_json), ANY},
};

static const struct {
	const char *name;
	int shift;
} UNIT[] = {
	{"", 0},
	{"b", 0},
	{"k", 10},
	{"kb", 10},
	{"kib", 10},
	{"m", 20},
	{"mb", 20},
	{"mib", 20},
	{"g", 30},
	{"gb", 30},
	{"gib", 30},
};

const struct fw_setting *fw_config_settings(size_t *n)
{
	*n = FW_N(SETTINGS);
	return SETTINGS;
}

const struct fw_setting *fw_config_find(const char *name)
{
	for (size_t i = 0; i < FW_N(SETTINGS); i++) {
		if (fw_edit_distance(fw_str(name), fw_str(SETTINGS[i].name)) == 0)
			return &SETTINGS[i];
	}
	return NULL;
}

/* ---- values -------------------------------------------------------------- */

static bool size_parse(struct fw_str s, int64_t *out)
{
	size_t n = 0;
	int64_t v;

	while (n < s.len && fw_is_digit((unsigned char)s.p[n]))
		n++;
	if (n == 0 || !fw_str_int(fw_str_sub(s, 0, n), &v))
		return false;
	s = fw_str_trim(fw_str_sub(s, n, s.len));
	for (size_t i = 0; i < FW_N(UNIT); i++) {
		if (fw_str_ieq(s, fw_str(UNIT[i].name)))
			return !__builtin_mul_overflow(v, INT64_C(1) << UNIT[i].shift, out);
	}
	return false;
}

static bool bool_parse(struct fw_str s, bool *out)
{
	static const char *const WORD[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < FW_N(WORD); i++) {
		if (fw_str_ieq(s, fw_str(WORD[i]))) {
			*out = i & 1;
			return true;
		}
	}
	return false;
}

static bool choice_is_valid(const char *choices, struct fw_str word)
{
	struct fw_str rest = fw_str(choices);

	while (rest.p) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), word))
			return word.len > 0;
	}
	return false;
}

/* A number in the form of the file, in the largest unit that divides it. */
static void setting_number_text(struct fw_buf *b, enum fw_setting_type type, int64_t v)
{
	static const struct {
		enum fw_setting_type type;
		int64_t n;
		const char *name;
	} PART[] = {
		{FW_TYPE_DURATION, FW_DAY_MS, "d"},
		{FW_TYPE_DURATION, FW_HOUR_MS, "h"},
		{FW_TYPE_DURATION, FW_MINUTE_MS, "m"},
		{FW_TYPE_DURATION, FW_SECOND_MS, "s"},
		{FW_TYPE_DURATION, 1, "ms"},
		{FW_TYPE_SIZE, INT64_C(1) << 30, "GiB"},
		{FW_TYPE_SIZE, INT64_C(1) << 20, "MiB"},
		{FW_TYPE_SIZE, 1024, "KiB"},
	};

	for (size_t i = 0; v && i < FW_N(PART); i++) {
		if (PART[i].type == type && v % PART[i].n == 0) {
			fw_buf_addf(b, "%lld%s", (long long)(v / PART[i].n), PART[i].name);
			return;
		}
	}
	fw_buf_addf(b, "%lld", (long long)v);
}

static int setting_refuse(const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	struct fw_buf allowed = FW_BUF_INIT(200);
	int rc;

	assert(s->type != FW_TYPE_STRING || s->choices); /* any other string is allowed */
	if (s->type == FW_TYPE_BOOL) {
		fw_buf_adds(&allowed, "yes or no");
	} else if (s->choices) {
		fw_buf_addf(&allowed, "one of: %s", s->choices);
	} else {
		setting_number_text(&allowed, s->type, s->min);
		fw_buf_adds(&allowed, " to ");
		setting_number_text(&allowed, s->type, s->max);
		if (s->type == FW_TYPE_DURATION)
			fw_buf_adds(&allowed, " (a number of ms, or 250ms, 30s, 15m, 2h, 1d)");
		if (s->type == FW_TYPE_SIZE)
			fw_buf_adds(&allowed, " (a number of bytes, or 64k, 16MiB)");
	}
	rc = fw_err_set(err, FW_EINVAL, "%s: %s = '%.*s' is not allowed: %s", where, s->name,
		FW_STR_ARG(fw_str_sub(value, 0, 60)), allowed.p ? allowed.p : "");
	fw_buf_finish(&allowed);
	return rc;
}

static int setting_unknown(const char *name, const char *where, struct fw_err *err)
{
	struct fw_suggest suggest = {.word = fw_str(name)};

	for (size_t i = 0; i < FW_N(SETTINGS); i++)
		fw_suggest_offer(&suggest, SETTINGS[i].name);
	if (suggest.best)
		return fw_err_set(
			err, FW_EINVAL, "%s: unknown setting '%.60s': did you mean '%s'?", where, name, suggest.best);
	return fw_err_set(err, FW_EINVAL, "%s: unknown setting '%.60s': see 'feedwheel help settings'", where, name);
}

/*
 * ---- store_file: keeps a password out of the command line and the shared configuration file ----
 */

/*
 * Only the owner may read the file. A file of root may be readable by its group, as that of a
 * service is. libpq applies the same rules to keys and password files.
 */
static int store_file_check(const char *path, const struct stat *st, struct fw_err *err)
{
	if (!S_ISREG(st->st_mode))
		return fw_err_set(err, FW_EINVAL, "store_file: %s is not a regular file", path);
	if (st->st_mode & (st->st_uid == 0 ? 037 : 077))
		return fw_err_set(err, FW_EINVAL,
			"store_file: %s: other users may read it (mode %04o), and it may hold a password (chmod 600 "
			"it)",
			path, (unsigned)st->st_mode & 07777);
	return 0;
}

/*
 * The file's first line, malloc'd. Errors: FW_EINVAL unreadable, empty, or readable by others;
 * FW_ENOMEM.
 */
static int store_file_read(const char *path, char **url, struct fw_err *err)
{
	/* O_NONBLOCK: opening a FIFO without a writer would block */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[URL_MAX + 1];
	struct fw_str line, rest;
	struct stat st = {0};
	ssize_t len = 0;
	int rc = 0;

	*url = NULL;
	if (fd < 0 || fstat(fd, &st))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	rc = rc ? rc : store_file_check(path, &st, err);
	/* a regular file is read in one call */
	if (!rc && (len = read(fd, text, sizeof(text))) < 0)
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	line = fw_str_trim(fw_str_split((struct fw_str){text, (size_t)len}, '\n', &rest));
	if (!line.len)
		rc = fw_err_set(
			err, FW_EINVAL, "store_file: %s: the first line is empty (write the store's URL there)", path);
	else if (line.len >= URL_MAX || memchr(line.p, 0, line.len))
		rc = fw_err_set(err, FW_EINVAL,
			"store_file: %s: the first line is not a URL (at most %zu bytes, without NUL)", path,
			URL_MAX - 1);
	else if (!(*url = fw_str_dup(line)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* ---- setting ------------------------------------------------------------- */

/* "feeds.db" means sqlite:feeds.db. */
static int store_add_scheme(struct fw_config *c, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (!c->store || !fw_store_is_file(c->store))
		return 0;
	fw_buf_addf(&b, "sqlite:%s", c->store);
	free(c->store);
	c->store = fw_buf_take(&b, NULL);
	return c->store ? 0 : fw_err_set(err, FW_ENOMEM, "out of memory");
}

/* The later of store and store_file sets the store. */
static int store_setting_apply(struct fw_config *c, const struct fw_setting *s, struct fw_err *err)
{
	char *url;
	int rc;

	if (s->offset == offsetof(struct fw_config, store)) {
		free(c->store_file);
		c->store_file = NULL;
		return store_add_scheme(c, err);
	}
	if (s->offset != offsetof(struct fw_config, store_file) || !c->store_file)
		return 0;
	rc = store_file_read(c->store_file, &url, err);
	if (rc)
		return rc;
	free(c->store);
	c->store = url;
	return store_add_scheme(c, err);
}

static int setting_set(
	struct fw_config *c, const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	void *at = (char *)c + s->offset;
	int64_t v = 0;
	bool ok;

	assert(s->offset < sizeof(*c));
	switch (s->type) {
	case FW_TYPE_BOOL:
		return bool_parse(value, at) ? 0 : setting_refuse(s, value, where, err);
	case FW_TYPE_STRING: {
		char *text = NULL;

		if (s->choices && !choice_is_valid(s->choices, value))
			return setting_refuse(s, value, where, err);
		if (value.len) {
			text = fw_str_dup(value);
			if (!text)
				return fw_err_set(err, FW_ENOMEM, "out of memory");
		}
		free(*(char **)at);
		*(char **)at = text;
		return store_setting_apply(c, s, err);
	}
	case FW_TYPE_DURATION:
		ok = fw_duration_parse(value, 1, &v);
		break;
	case FW_TYPE_SIZE:
		ok = size_parse(value, &v);
		break;
	default:
		ok = fw_str_int(value, &v);
		break;
	}
	if (!ok || v < s->min || v > s->max)
		return setting_refuse(s, value, where, err);
	*(int64_t *)at = v;
	return 0;
}

int fw_config_set(struct fw_config *c, const char *name, const char *value, const char *where, struct fw_err *err)
{
	const struct fw_setting *s = fw_config_find(name);

	return s ? setting_set(c, s, fw_str_trim(fw_str(value)), where, err) : setting_unknown(name, where, err);
}

char *fw_config_get(const struct fw_config *c, const char *name)
{
	const struct fw_setting *s = fw_config_find(name);
	const void *at = s ? (const char *)c + s->offset : NULL;
	struct fw_buf b = FW_BUF_INIT(0);

	if (!s)
		return NULL;
	if (s->type == FW_TYPE_STRING)
		return fw_str_dup(fw_str(*(char *const *)at ? *(char *const *)at : ""));
	if (s->type == FW_TYPE_BOOL)
		fw_buf_adds(&b, *(const bool *)at ? "yes" : "no");
	else
		setting_number_text(&b, s->type, *(const int64_t *)at);
	return fw_buf_take(&b, NULL);
}

/* ---- a whole configuration ----------------------------------------------- */

/*
 * "$VAR/tail", else "$HOME/fallback/tail". NULL: no home, or out of memory. A relative $VAR is
 * ignored (XDG).
 */
static char *config_xdg_path(const char *prefix, const char *var, const char *fallback, const char *tail)
{
	const char *dir = getenv(var), *home = getenv("HOME");
	struct fw_buf b = FW_BUF_INIT(0);

	if (dir && dir[0] == '/')
		fw_buf_addf(&b, "%s%s/%s", prefix, dir, tail);
	else if (home && home[0] == '/')
		fw_buf_addf(&b, "%s%s/%s/%s", prefix, home, fallback, tail);
	return fw_buf_take(&b, NULL);
}

int fw_config_create(struct fw_config **out, struct fw_err *err)
{
	struct fw_config *c = calloc(1, sizeof(*c));
	int rc = 0;

	*out = NULL;
	if (!c)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < FW_N(SETTINGS); i++)
		rc = setting_set(c, &SETTINGS[i], fw_str(SETTINGS[i].initial), "default", err);
	if (rc) {
		fw_config_destroy(c);
		return rc;
	}
	c->store = config_xdg_path("sqlite:", "XDG_DATA_HOME", ".local/share", "feedwheel/feedwheel.db");
	*out = c;
	return 0;
}

void fw_config_destroy(struct fw_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < FW_N(SETTINGS); i++) {
		if (SETTINGS[i].type == FW_TYPE_STRING)
			free(*(char **)((char *)c + SETTINGS[i].offset));
	}
	free(c->file);
	free(c);
}

/* ---- to another process -------------------------------------------------- */

/*
 * store_file is not passed on: the other process may be unable to read it, and store has its
 * content.
 */
static bool setting_is_passed(const struct fw_setting *s)
{
	return s->offset != offsetof(struct fw_config, store_file);
}

void config_write(const struct fw_config *c, struct fw_buf *b)
{
	for (size_t i = 0; i < FW_N(SETTINGS); i++) {
		char *value = setting_is_passed(&SETTINGS[i]) ? fw_config_get(c, SETTINGS[i].name) :
								fw_str_dup(FW_STR(""));

		if (value)
			fw_buf_add(b, value, strlen(value) + 1);
		else
			b->rc = FW_ENOMEM;
		free(value);
	}
}

int config_read(struct fw_str text, struct fw_config **out, struct fw_err *err)
{
	struct fw_config *c;
	int rc = fw_config_create(&c, err);

	*out = NULL;
	if (rc)
		return rc;
	for (size_t i = 0; i < FW_N(SETTINGS) && !rc; i++) {
		const char *end = text.len ? memchr(text.p, 0, text.len) : NULL;

		if (!end)
			rc = fw_err_set(err, FW_EINVAL, "the configuration ends before setting %s", SETTINGS[i].name);
		else if (setting_is_passed(&SETTINGS[i]))
			rc = setting_set(c, &SETTINGS[i], fw_str(text.p), "handed", err);
		if (end)
			text = fw_str_sub(text, (size_t)(end - text.p) + 1, text.len);
	}
	if (rc)
		fw_config_destroy(c);
	else
		*out = c;
	return rc;
}

/* ---- a file -------------------------------------------------------------- */

/* A comment starts with a # at the start of the line or after white space. */
static struct fw_str comment_strip(struct fw_str s, bool at_start)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '#' && (i ? fw_is_space((unsigned char)s.p[i - 1]) : at_start))
			s.len = i;
	}
	return fw_str_trim(s);
}

/*
 * Appends the text between the quotes that s starts with to out. In double quotes \" and \\ stand
 * for " and \. Single quotes have no escapes.
 */
static int value_unquote(struct fw_str s, const char *name, const char *where, struct fw_buf *out, struct fw_err *err)
{
	char quote = s.p[0];
	size_t i = 1;
	struct fw_str behind;

	assert(s.len && (quote == '"' || quote == '\''));
	for (; i < s.len && s.p[i] != quote; i++) {
		if (s.p[i] == '\\' && quote == '"' && i + 1 < s.len && (s.p[i + 1] == '"' || s.p[i + 1] == '\\'))
			i++;
		fw_buf_addc(out, s.p[i]);
	}
	if (i >= s.len)
		return fw_err_set(
			err, FW_EINVAL, "%s: %s: the opening %c of the value is not closed", where, name, quote);
	behind = comment_strip(fw_str_sub(s, i + 1, s.len), false);
	if (behind.len)
		return fw_err_set(err, FW_EINVAL, "%s: %s: '%.*s' follows the closing %c%s", where, name,
			FW_STR_ARG(fw_str_sub(behind, 0, 60)), quote,
			quote == '"' ? " (inside the quotes write \\\")" : "");
	return out->rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
}

/*
 * Reads one line: blank, "# comment", or "name = value", with an optional " # comment" after it.
 * Quotes around a value are removed.
 */
static int config_line_read(struct fw_config *c, struct fw_str line, const char *where, struct fw_err *err)
{
	const struct fw_setting *s;
	struct fw_buf plain = FW_BUF_INIT(0);
	struct fw_str all, name, value;
	char word[80];
	int rc = 0;

	if (line.len && memchr(line.p, 0, line.len))
		return fw_err_set(err, FW_EINVAL, "%s: a NUL byte: not a text file", where);
	all = fw_str_split(line, '=', &value);
	name = comment_strip(all, true);
	if (name.len < fw_str_trim(all).len) /* the = belongs to a comment */
		value = FW_STR_NONE;
	if (!name.len && !value.p)
		return 0;
	if (!value.p)
		return fw_err_set(err, FW_EINVAL, "%s: '%.*s' does not have the form: name = value", where,
			FW_STR_ARG(fw_str_sub(name, 0, 60)));
	fw_str_copy(word, sizeof(word), name);
	s = fw_config_find(word);
	if (!s)
		return setting_unknown(word, where, err);
	all = fw_str_trim(value);
	if (all.len && (all.p[0] == '"' || all.p[0] == '\'')) {
		rc = value_unquote(all, s->name, where, &plain, err);
		value = plain.len ? fw_buf_str(&plain) : FW_STR("");
	} else {
		value = comment_strip(value, false);
	}
	rc = rc ? rc : setting_set(c, s, value, where, err);
	fw_buf_finish(&plain);
	return rc;
}

static int config_file_load(struct fw_config *c, const char *path, FILE *f, struct fw_err *err)
{
	struct fw_buf text = FW_BUF_INIT(FILE_MAX_BYTES);
	struct fw_str rest;
	char where[300];
	int rc = fw_buf_read(&text, f);

	if (rc == FW_EIO)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", path, strerror(errno));
	else if (rc)
		rc = fw_err_set(err, rc, "%s: the configuration file is larger than 1 MiB", path);
	rest = fw_buf_str(&text);
	for (unsigned n = 1; !rc && rest.p; n++) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);

		(void)fw_snprintf(where, sizeof(where), "%s:%u", path, n);
		rc = config_line_read(c, line, where, err);
	}
	fw_buf_finish(&text);
	return rc;
}

/* Opens the first default file that exists. NULL: none does. */
static FILE *config_default_open(char **path)
{
	FILE *f = NULL;

	*path = config_xdg_path("", "XDG_CONFIG_HOME", ".config", "feedwheel.conf");
	if (*path)
		f = fopen(*path, "re");
	if (!f && (!*path || errno == ENOENT || errno == ENOTDIR)) {
		free(*path);
		*path = fw_str_dup(FW_STR("/etc/feedwheel.conf"));
		f = *path ? fopen(*path, "re") : NULL;
	}
	return f;
}

int fw_config_load(struct fw_config *c, const char *path, struct fw_err *err)
{
	char *name = NULL;
	FILE *f;
	int rc = 0;

	if (path) {
		f = fopen(path, "re");
		name = fw_str_dup(fw_str(path));
	} else {
		f = config_default_open(&name);
	}
	if (!name)
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	else if (!f && path)
		rc = fw_err_set(err, FW_ENOTFOUND, "%s: %s", path, strerror(errno));
	else if (!f && errno != ENOENT && errno != ENOTDIR)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", name, strerror(errno));
	else if (f)
		rc = config_file_load(c, name, f, err);
	if (f && !rc) {
		free(c->file);
		c->file = name;
		name = NULL;
	}
	if (f)
		fclose(f);
	free(name);
	return rc;
}

static int settings_conflict(const char *a, int64_t a_ms, const char *b, int64_t b_ms, struct fw_err *err)
{
	char x[FW_RFC3339_MAX], y[FW_RFC3339_MAX];

	assert(a_ms > b_ms);
	return fw_err_set(err, FW_EINVAL, "%s (%s) is larger than %s (%s): lower the first or raise the second", a,
		fw_duration_text(x, a_ms), b, fw_duration_text(y, b_ms));
}

/* Host names only: they are compared with the Host header without its port. */
static int host_names_check(const char *names, struct fw_err *err)
{
	struct fw_str rest = fw_str(names);

	while (rest.p) {
		struct fw_str name = fw_str_trim(fw_str_split(rest, ',', &rest));

		for (size_t i = 0; i < name.len; i++) {
			if (!fw_is_alnum((unsigned char)name.p[i]) && !strchr("-._", name.p[i]))
				return fw_err_set(err, FW_EINVAL,
					"serve_host_names: '%.*s' is not a host name: write feeds.lan, without"
					" http:// and without a port, and separate names by commas",
					FW_STR_ARG(fw_str_sub(name, 0, 80)));
		}
	}
	return 0;
}

int fw_config_check(const struct fw_config *c, struct fw_err *err)
{
	if (!c->store)
		return fw_err_set(
			err, FW_EINVAL, "no store: set HOME, store, or FEEDWHEEL_STORE (--store sqlite:PATH)");
	if (c->interval_min_ms > c->interval_ms)
		return settings_conflict("interval_min_ms", c->interval_min_ms, "interval_ms", c->interval_ms, err);
	if (c->interval_ms > c->interval_max_ms)
		return settings_conflict("interval_ms", c->interval_ms, "interval_max_ms", c->interval_max_ms, err);
	if (c->connect_timeout_ms > c->total_timeout_ms)
		return settings_conflict(
			"connect_timeout_ms", c->connect_timeout_ms, "total_timeout_ms", c->total_timeout_ms, err);
	if (host_names_check(c->serve_host_names, err))
		return FW_EINVAL;
	if (c->websub_url) {
		struct fw_buf base = FW_BUF_INIT(0);
		int rc = callback_base(c->websub_url, &base, err);

		fw_buf_finish(&base);
		return rc;
	}
	return 0;
}
