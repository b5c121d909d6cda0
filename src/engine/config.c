/* SPDX-License-Identifier: ISC */
/*
 * Settings. One table (SETTING) holds each name, type, range, default and sentence; the configuration file, the command
 * line, the manual's test, `feedwheel help settings` and the shell completions all read it, so a new setting is one row here,
 * one member of struct fw_config and one paragraph in feedwheel.conf(5).
 *
 * Where a value comes from, the later one winning: the row's default, the configuration file, FEEDWHEEL_STORE, the command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/near.h"
#include "base/str.h"
#include "engine/config_text.h"
#include "engine/websub/websub_wish.h"
#include "base/banned.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define URL_MAX ((size_t)4096)
#define DAYS(n) (FW_DAY_MS * (n))
#define MIB(n) ((int64_t)(n) << 20)
#define NO_RANGE 0, 0, NULL
#define AT(member) offsetof(struct fw_config, member)

/* Which commands use a setting: "run", and "add+check" where it counts with --check only. */
#define ANY NULL /* each that reads the configuration */
#define RUN "run"
#define SERVE "run serve"
#define FETCH "run serve fetch add+check"
#define WRITE "add import remove set pause resume events push run serve token websub fetch-now stop"
#define STORE WRITE " export list show why timeline entries read fetch plan status copy"

static const struct fw_setting SETTING[] = {
	{"store", FW_TYPE_STRING, "", NO_RANGE,
		"Where feeds, entries and events are kept: sqlite:PATH, postgres://, mysql://, redis:// (feedwheel-store(7)). "
		"Unset: sqlite:$XDG_DATA_HOME/feedwheel/feedwheel.db.", AT(store), ANY},
	{"store_file", FW_TYPE_STRING, "", NO_RANGE,
		"A file whose first line is the store's URL, for one with a password; nobody else may read it. Of store and store_file the last counts.",
		AT(store_file), STORE},
	{"workers", FW_TYPE_INT, "0", 0, 1024, NULL, "Worker processes; 0: one for every two processors.", AT(workers), "run plan"},
	{"concurrency", FW_TYPE_INT, "250", 1, 20000, NULL, "Transfers in flight in each worker.", AT(concurrency), "run plan"},
	{"lease_ms", FW_TYPE_DURATION, "15s", 3 * FW_SECOND_MS, 10 * FW_MINUTE_MS, NULL,
		"When a worker is dead or cut off from the store for this long, other workers take over its feeds.", AT(lease_ms), RUN},
	{"drain_timeout_ms", FW_TYPE_DURATION, "30s", 0, FW_HOUR_MS, NULL,
		"How long a graceful stop waits for transfers in flight.", AT(drain_timeout_ms), SERVE},
	{"host_max", FW_TYPE_INT, "2", 1, 1000, NULL, "Feeds of one host fetched at the same time, over all workers.",
		AT(host_max), "run serve plan timeline"},
	{"host_gap_ms", FW_TYPE_DURATION, "1s", 0, FW_HOUR_MS, NULL, "Pause between two requests to one host.", AT(host_gap_ms), "run serve plan timeline"},
	{"address_max", FW_TYPE_INT, "0", 0, 20000, NULL,
		"Transfers of one worker at the same time to one address (IPv4, or an IPv6 /64), whatever hosts are there; 0: no limit.", AT(address_max), SERVE},
	{"host_key", FW_TYPE_STRING, "domain", 0, 0, "domain host address",
		"What counts as one host: domain, a name, or a hoster whose customers have names of their own; host, every name; address, what the name "
		"leads to. The same on all machines.", AT(host_key), "run add+check"},
	{"hosters", FW_TYPE_STRING, "", NO_RANGE, "Domains whose names are one host each, besides those that are known: \"example.com blogs.example.org\".",
		AT(hosters), "run add+check"},
	{"order", FW_TYPE_STRING, "host-path", 0, 0, "fifo shortest longest host-path batch-unordered batch-sorted",
		"The order of a 'run --once': host-path, the host with the most work left first; longest, the longest feed first; shortest; "
		"fifo, by due time; batch-unordered and batch-sorted wait after each batch until all of it has ended.", AT(order), "run+once plan"},
	{"order_batch", FW_TYPE_INT, "0", 0, 1000000, NULL, "Feeds in a batch of the batch orders; 0: as many as there are transfers in flight.",
		AT(order_batch), "run+once plan"},
	{"patience_ms", FW_TYPE_DURATION, "2s", 0, FW_HOUR_MS, NULL,
		"At the end of a long 'run --once', a feed that is silent for this long and much longer than ever before is left for later; 0: never.",
		AT(patience_ms), "run+once"},
	{"slow_ms", FW_TYPE_DURATION, "3s", 1, FW_HOUR_MS, NULL, "A feed that is expected to take longer is slow.", AT(slow_ms), RUN},
	{"slow_share", FW_TYPE_INT, "50", 1, 100, NULL, "Slow feeds hold at most this percentage of a worker's transfers; not in a 'run --once'.",
		AT(slow_share), RUN},
	{"backlog_ms", FW_TYPE_DURATION, "5m", 0, DAYS(30), NULL,
		"When more feeds than can be fetched at once are late by this, a 'run' begins with those that are late by most of their own intervals; "
		"0: by due time.", AT(backlog_ms), "run why"},
	{"batch_visits", FW_TYPE_INT, "500", 1, 100000, NULL, "Visits are committed together, at the latest after this many.",
		AT(batch_visits), RUN},
	{"batch_bytes", FW_TYPE_SIZE, "1MiB", 4096, MIB(1024), NULL, "Visits are committed together, at the latest after this many bytes of entries.", AT(batch_bytes), "run copy"},
	{"batch_ms", FW_TYPE_DURATION, "500ms", 1, FW_MINUTE_MS, NULL, "Visits are committed together, at the latest after this time.", AT(batch_ms), RUN},
	{"interval_min_ms", FW_TYPE_DURATION, "15m", FW_SECOND_MS, DAYS(30), NULL, "A feed is never asked more often than this.",
		AT(interval_min_ms), "run add+check"},
	{"interval_ms", FW_TYPE_DURATION, "1h", FW_SECOND_MS, DAYS(30), NULL,
		"How often a feed is asked while nothing is known of its rhythm.", AT(interval_ms), "run add+check"},
	{"interval_max_ms", FW_TYPE_DURATION, "1d", FW_SECOND_MS, DAYS(365), NULL,
		"A feed is asked at least this often, whatever its rhythm (Retry-After and errors may put it off longer).",
		AT(interval_max_ms), "run add+check"},
	{"websub_poll_ms", FW_TYPE_DURATION, "1d", FW_MINUTE_MS, DAYS(30), NULL,
		"How often a feed is asked that a WebSub hub delivers, to see whether the hub missed something.", AT(websub_poll_ms), RUN},
	{"connect_timeout_ms", FW_TYPE_DURATION, "10s", 100, 10 * FW_MINUTE_MS, NULL,
		"Longest wait for a connection, name look-up and TLS included.", AT(connect_timeout_ms), FETCH},
	{"first_byte_timeout_ms", FW_TYPE_DURATION, "15s", 100, 10 * FW_MINUTE_MS, NULL,
		"Longest wait for the first byte of the answer once connected.", AT(first_byte_timeout_ms), FETCH},
	{"total_timeout_ms", FW_TYPE_DURATION, "60s", 100, FW_HOUR_MS, NULL, "Longest visit, all redirects together.",
		AT(total_timeout_ms), FETCH},
	{"low_speed_bytes", FW_TYPE_SIZE, "100", 1, MIB(1), NULL, "A transfer slower than this (bytes a second) over low_speed_ms is given up.",
		AT(low_speed_bytes), FETCH},
	{"low_speed_ms", FW_TYPE_DURATION, "20s", FW_SECOND_MS, FW_HOUR_MS, NULL, "A transfer slower than low_speed_bytes over this time is given up.",
		AT(low_speed_ms), FETCH},
	{"offline_wait_ms", FW_TYPE_DURATION, "30s", 0, FW_HOUR_MS, NULL,
		"How long a host that cannot be reached waits for others, before it is its feed's failure and not our own network's; 0: never.",
		AT(offline_wait_ms), RUN},
	{"max_body_bytes", FW_TYPE_SIZE, "16MiB", 1024, MIB(1024), NULL, "Largest document, decoded and on the wire.",
		AT(max_body_bytes), FETCH " push parse"},
	{"max_buffered_bytes", FW_TYPE_SIZE, "8MiB", 65536, MIB(65536), NULL,
		"Documents on their way in, as they come over the wire, in each worker; past it all transfers but one wait.",
		AT(max_buffered_bytes), RUN},
	{"parse_memory_bytes", FW_TYPE_SIZE, "64MiB", MIB(1), MIB(65536), NULL,
		"Memory that documents over 256 KiB take in each worker while they are read and stored, besides their own bytes. One "
		"gets 8 times its size and 8 MiB, and this at most; what is pushed gets all of this.", AT(parse_memory_bytes), FETCH " push"},
	{"max_ratio", FW_TYPE_INT, "200", 2, 100000, NULL,
		"Highest compression ratio beyond the first MiB; more is taken for a decompression bomb.", AT(max_ratio), FETCH},
	{"max_header_bytes", FW_TYPE_SIZE, "100k", 1024, MIB(1), NULL, "Largest set of response headers.", AT(max_header_bytes), FETCH},
	{"max_redirects", FW_TYPE_INT, "5", 0, 20, NULL, "Redirects followed in one visit.", AT(max_redirects), FETCH},
	{"max_entries", FW_TYPE_INT, "10000", 1, 1000000, NULL, "Entries read from one document.", AT(max_entries), FETCH " push parse"},
	{"feed_entries_max", FW_TYPE_INT, "10000", 0, 1000000000, NULL,
		"New entries of a feed in a day; past it the newest are taken, and the rest later. 0: no limit.", AT(feed_entries_max), "run serve show why"},
	{"feed_bytes_max", FW_TYPE_SIZE, "100MiB", 0, MIB(1 << 20), NULL,
		"Bytes of new and changed entries of a feed in a day; what comes on top is taken later. 0: no limit.", AT(feed_bytes_max), "run serve show why"},
	{"allow_networks", FW_TYPE_STRING, "", NO_RANGE,
		"Private networks that may be fetched from all the same, such as 127.0.0.0/8, [fd00::]/8, 10.1.2.3:8080.",
		AT(allow_networks), FETCH},
	{"deny_networks", FW_TYPE_STRING, "", NO_RANGE,
		"Networks that nothing is fetched from, such as public ones of your own; written like allow_networks, and stronger.", AT(deny_networks), FETCH},
	{"dns_servers", FW_TYPE_STRING, "", NO_RANGE, "Name servers, separated by commas. Unset: the system's.", AT(dns_servers), FETCH},
	{"ca_file", FW_TYPE_STRING, "", NO_RANGE, "Certificate bundle. Unset: the system's.", AT(ca_file), FETCH},
	{"proxy", FW_TYPE_STRING, "", NO_RANGE,
		"HTTP proxy, such as http://10.0.0.1:3128; it is trusted to filter addresses. The environment is never read.",
		AT(proxy), FETCH},
	{"user_agent", FW_TYPE_STRING, "", NO_RANGE, "User-Agent. Unset: feedwheel/VERSION (+contact_url).", AT(user_agent), FETCH},
	{"contact_url", FW_TYPE_STRING, "", NO_RANGE,
		"A page about your crawler, named in the User-Agent, so that site owners know whom to ask.", AT(contact_url), FETCH},
	{"http2", FW_TYPE_BOOL, "yes", NO_RANGE, "Use HTTP/2 where the server offers it.", AT(http2), FETCH},
	{"relaxed", FW_TYPE_BOOL, "no", NO_RANGE,
		"Commit without waiting for the disk: faster, but a power failure may lose the last commits.", AT(relaxed), WRITE},
	{"cache_bytes", FW_TYPE_SIZE, "6MiB", 0, MIB(65536), NULL, "Store's page cache in each process; 0: the driver's default.",
		AT(cache_bytes), STORE},
	{"disk_free_min_bytes", FW_TYPE_SIZE, "64MiB", 0, MIB(1 << 30), NULL,
		"With less room than this on the disk of an SQLite store, entries wait and nothing is fetched; 0: whatever there is.",
		AT(disk_free_min_bytes), "run serve push status"},
	{"keep_visits_ms", FW_TYPE_DURATION, "30d", 0, DAYS(36500), NULL, "Visits older than this are forgotten; 0: never.",
		AT(keep_visits_ms), RUN},
	{"keep_entries_ms", FW_TYPE_DURATION, "0", 0, DAYS(36500), NULL,
		"Entries that were neither new nor changed for this long are forgotten; 0: never.", AT(keep_entries_ms), RUN},
	{"keep_events_ms", FW_TYPE_DURATION, "0", 0, DAYS(36500), NULL, "Pushed events older than this are forgotten, and those set aside; 0: never.",
		AT(keep_events_ms), SERVE},
	{"listen", FW_TYPE_STRING, "", NO_RANGE, "Where the HTTP server listens: ADDRESS:PORT, such as 127.0.0.1:8080, or unix:PATH. Unset: nowhere.",
		AT(listen), SERVE},
	{"serve_threads", FW_TYPE_INT, "0", 0, 1024, NULL, "Threads of the HTTP server; 0: one for every processor.", AT(serve_threads), SERVE},
	{"serve_readers", FW_TYPE_INT, "2", 1, 64, NULL,
		"Threads of the HTTP server that ask the store, each with a connection of its own.", AT(serve_readers), SERVE},
	{"trusted_proxies", FW_TYPE_STRING, "", NO_RANGE,
		"Proxies in front of the HTTP server, such as 127.0.0.1, 10.0.0.0/8, unix: their X-Forwarded-For says who asks.",
		AT(trusted_proxies), SERVE},
	{"tls_cert", FW_TYPE_STRING, "", NO_RANGE, "File of the HTTP server's certificate and those above it (PEM); with tls_key it speaks HTTPS.",
		AT(tls_cert), SERVE},
	{"tls_key", FW_TYPE_STRING, "", NO_RANGE, "File of the certificate's private key (PEM, without a pass phrase).", AT(tls_key), SERVE},
	{"access_log", FW_TYPE_STRING, "", NO_RANGE, "A line for each request: a file, or - for the standard output. Unset: none.", AT(access_log), SERVE},
	{"serve_connections", FW_TYPE_INT, "10000", 1, 1000000, NULL, "Open connections; when nearly so many are, idle ones are closed early.",
		AT(serve_connections), SERVE},
	{"serve_connections_per_address", FW_TYPE_INT, "0", 0, 1000000, NULL,
		"Of these, from one IPv4 address or IPv6 /64; proxies and this machine may have all. 0: a quarter.", AT(serve_connections_per_address), SERVE},
	{"serve_header_ms", FW_TYPE_DURATION, "10s", 10, FW_HOUR_MS, NULL, "Time for a new connection's first request line and headers.",
		AT(serve_header_ms), SERVE},
	{"serve_body_ms", FW_TYPE_DURATION, "60s", 10, FW_HOUR_MS, NULL, "Time for a request's body.", AT(serve_body_ms), SERVE},
	{"serve_body_rate", FW_TYPE_INT, "500", 0, MIB(1024), NULL, "Least bytes a second of a body, after its first 5 s; 0: any.",
		AT(serve_body_rate), SERVE},
	{"serve_send_ms", FW_TYPE_DURATION, "60s", 10, FW_HOUR_MS, NULL, "Time for who asked to take the answer; of a stream, each piece of it.",
		AT(serve_send_ms), SERVE},
	{"serve_idle_ms", FW_TYPE_DURATION, "60s", 10, FW_DAY_MS, NULL, "A connection that is kept alive waits so long for its next request.",
		AT(serve_idle_ms), SERVE},
	{"serve_memory_bytes", FW_TYPE_SIZE, "256MiB", 65536, MIB(1 << 20), NULL,
		"Bodies of requests in hand, all together, and as much again for the entries read from them; what comes on top is answered 503.",
		AT(serve_memory_bytes), SERVE},
	{"body_max_bytes", FW_TYPE_SIZE, "1MiB", 1024, MIB(1024), NULL, "Largest body of pushed events, unpacked.", AT(body_max_bytes), SERVE},
	{"push_properties", FW_TYPE_STRING, "", NO_RANGE, "Names that a pushed event's property may have, separated by commas. Unset: any.",
		AT(push_properties), SERVE},
	{"push_section_min", FW_TYPE_INT, "1", INT64_MIN, INT64_MAX, NULL, "Least section of a pushed event.", AT(push_section_min), SERVE},
	{"push_id_min", FW_TYPE_INT, "1", INT64_MIN, INT64_MAX, NULL, "Least id of a pushed event.", AT(push_id_min), SERVE},
	{"serve_beat_ms", FW_TYPE_DURATION, "15s", 100, FW_HOUR_MS, NULL,
		"Readers of the stream get a sign of life when there was nothing new for this long.", AT(serve_beat_ms), SERVE},
	{"wrong_tokens_max", FW_TYPE_INT, "30", 0, 1000000, NULL,
		"So many wrong tokens from a network (/24, /64) are judged within wrong_tokens_ms, more are answered 429. 0: all.", AT(wrong_tokens_max), SERVE},
	{"wrong_tokens_ms", FW_TYPE_DURATION, "1m", 100, FW_DAY_MS, NULL, "The time in which wrong tokens are counted.", AT(wrong_tokens_ms), SERVE},
	{"serve_cors_origin", FW_TYPE_STRING, "", NO_RANGE,
		"Pages of this origin may ask the HTTP server from a browser: https://example.org, or * for all. Unset: none.", AT(serve_cors_origin), SERVE},
	{"serve_names", FW_TYPE_STRING, "", NO_RANGE,
		"Names, besides localhost and loopback addresses, that a request without a token may have in Host, such as feeds.lan. Unset: none.",
		AT(serve_names), SERVE},
	{"websub_url", FW_TYPE_STRING, "", NO_RANGE,
		"Where hubs reach this server, such as https://example.org/: feeds that have a hub are subscribed there, and asked rarely. "
		"Unset: none is.", AT(websub_url), "run serve websub"},
	{"websub_lease_ms", FW_TYPE_DURATION, "10d", FW_SECOND_MS, DAYS(90), NULL, "How long hubs are asked to go on; they are asked again before.",
		AT(websub_lease_ms), SERVE},
	{"websub_look_ms", FW_TYPE_DURATION, "30s", 10, FW_DAY_MS, NULL,
		"Pause between two looks over all feeds for hubs that came, moved or went.", AT(websub_look_ms), SERVE},
	{"websub_pushes_max", FW_TYPE_INT, "300", 0, 1000000, NULL,
		"So many documents of a feed a hub may send at once, and within websub_pushes_ms; more are answered 429. 0: all are taken.",
		AT(websub_pushes_max), SERVE},
	{"websub_pushes_ms", FW_TYPE_DURATION, "1h", 100, FW_DAY_MS, NULL, "The time in which a hub may send websub_pushes_max documents of a feed.",
		AT(websub_pushes_ms), SERVE},
	{"websub_plain_secret", FW_TYPE_BOOL, "no", NO_RANGE,
		"Tell a secret to hubs over http too, who then sign what they send. Otherwise what such a hub sends only has the feed asked.",
		AT(websub_plain_secret), SERVE},
	{"ring_bytes", FW_TYPE_SIZE, "32MiB", 65536, MIB(1 << 20), NULL,
		"Pushes that wait for the store: memory set aside at the start; when it is full, pushes are answered 503.", AT(ring_bytes), SERVE},
	{"flush_ms", FW_TYPE_DURATION, "5s", 1, FW_HOUR_MS, NULL, "What was accepted is stored at the latest after this time.", AT(flush_ms), SERVE},
	{"flush_durable_ms", FW_TYPE_DURATION, "5ms", 0, FW_MINUTE_MS, NULL,
		"A push that wants to know that it is stored waits for others at most this long.", AT(flush_durable_ms), SERVE},
	{"flush_rows", FW_TYPE_INT, "5000", 1, 100000, NULL, "Pushed rows are stored together, at the latest after this many, twice as many when they come fast. 1: no queue, each by itself before the answer.", AT(flush_rows), SERVE},
	{"spill_dir", FW_TYPE_STRING, "", NO_RANGE,
		"A folder for what was accepted and is not stored yet, so that it outlives kill -9. Unset: it is in memory only.", AT(spill_dir), SERVE},
	{"spill_sync_ms", FW_TYPE_DURATION, "100ms", 0, FW_MINUTE_MS, NULL,
		"How much of what was accepted a power failure may take; 0: each push is on the disk before it is answered.", AT(spill_sync_ms), SERVE},
	{"machine_id", FW_TYPE_INT, "0", 0, 1023, NULL,
		"Part of the numbers of pushed rows: must differ between processes that push into one store.", AT(machine_id), SERVE},
	{"sandbox", FW_TYPE_STRING, "auto", 0, 0, "auto require off",
		"What each process gives up before it reads a byte from outside: auto, all that this system can take from it; require, all, or it does not "
		"start; off, nothing.", AT(sandbox), SERVE},
	{"log_level", FW_TYPE_STRING, "info", 0, 0, "error warn info debug", "What is logged: error, warn, info or debug.",
		AT(log_level), ANY},
	{"log_json", FW_TYPE_BOOL, "no", NO_RANGE, "Log JSON, one object a line.", AT(log_json), ANY},
};

static const struct { const char *name; int shift; } UNIT[] = {
	{"", 0}, {"b", 0}, {"k", 10}, {"kb", 10}, {"kib", 10}, {"m", 20}, {"mb", 20}, {"mib", 20}, {"g", 30}, {"gb", 30},
	{"gib", 30},
};

const struct fw_setting *fw_config_settings(size_t *n)
{
	*n = FW_N(SETTING);
	return SETTING;
}

const struct fw_setting *fw_config_find(const char *name)
{
	for (size_t i = 0; i < FW_N(SETTING); i++) {
		if (fw_edit_distance(fw_str(name), fw_str(SETTING[i].name)) == 0)
			return &SETTING[i];
	}
	return NULL;
}

/* ---- values ----------------------------------------------------------------------------------------------------------- */

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

static bool one_of(const char *choices, struct fw_str word)
{
	struct fw_str rest = fw_str(choices);

	while (rest.p) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), word))
			return word.len > 0;
	}
	return false;
}

/* A number as it would be written in the file, with the largest unit that leaves it whole. */
static void number_text(struct fw_buf *b, enum fw_setting_type type, int64_t v)
{
	static const struct { enum fw_setting_type type; int64_t n; const char *name; } PART[] = {
		{FW_TYPE_DURATION, FW_DAY_MS, "d"}, {FW_TYPE_DURATION, FW_HOUR_MS, "h"}, {FW_TYPE_DURATION, FW_MINUTE_MS, "m"},
		{FW_TYPE_DURATION, FW_SECOND_MS, "s"}, {FW_TYPE_DURATION, 1, "ms"},
		{FW_TYPE_SIZE, INT64_C(1) << 30, "GiB"}, {FW_TYPE_SIZE, INT64_C(1) << 20, "MiB"}, {FW_TYPE_SIZE, 1024, "KiB"},
	};

	for (size_t i = 0; v && i < FW_N(PART); i++) {
		if (PART[i].type == type && v % PART[i].n == 0) {
			fw_buf_addf(b, "%lld%s", (long long)(v / PART[i].n), PART[i].name);
			return;
		}
	}
	fw_buf_addf(b, "%lld", (long long)v);
}

static int refuse(const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	struct fw_buf allowed = FW_BUF_INIT(200);
	int rc;

	if (s->type == FW_TYPE_BOOL) {
		fw_buf_adds(&allowed, "yes or no");
	} else if (s->choices) {
		fw_buf_addf(&allowed, "one of: %s", s->choices);
	} else {
		number_text(&allowed, s->type, s->min);
		fw_buf_adds(&allowed, " to ");
		number_text(&allowed, s->type, s->max);
		if (s->type == FW_TYPE_DURATION)
			fw_buf_adds(&allowed, " (a number of ms, or 250ms, 30s, 15m, 2h, 1d)");
		if (s->type == FW_TYPE_SIZE)
			fw_buf_adds(&allowed, " (a number of bytes, or 64k, 16MiB)");
	}
	rc = fw_err_set(err, FW_EINVAL, "%s: %s = '%.*s' is not allowed: %s", where, s->name, FW_STR_ARG(fw_str_sub(value, 0, 60)),
		allowed.p ? allowed.p : "");
	fw_buf_finish(&allowed);
	return rc;
}

static int unknown(const char *name, const char *where, struct fw_err *err)
{
	struct fw_near near = {.word = fw_str(name)};

	for (size_t i = 0; i < FW_N(SETTING); i++)
		fw_near_offer(&near, SETTING[i].name);
	if (near.best)
		return fw_err_set(err, FW_EINVAL, "%s: unknown setting '%.60s': did you mean '%s'?", where, name, near.best);
	return fw_err_set(err, FW_EINVAL, "%s: unknown setting '%.60s': see 'feedwheel help settings'", where, name);
}

/* ---- a store's URL from a file of its own, so that its password stands in no command line and in no configuration that others read -------- */

/*
 * The owner's alone. Root may share one with a group, as with a service's, for who can become root needs no file. (libpq has the same
 * rules for keys and passwords.)
 */
static int store_file_check(const char *path, const struct stat *st, struct fw_err *err)
{
	if (!S_ISREG(st->st_mode))
		return fw_err_set(err, FW_EINVAL, "store_file: %s is no plain file", path);
	if (st->st_mode & (st->st_uid == 0 ? 037 : 077))
		return fw_err_set(err, FW_EINVAL, "store_file: %s: others may open it (mode %04o), and it may hold a password: chmod 600 it", path,
			(unsigned)st->st_mode & 07777);
	return 0;
}

/* Its first line; free() it. Errors: FW_EINVAL (it cannot be read, is empty, or others may read it), FW_ENOMEM. */
static int store_file_read(const char *path, char **url, struct fw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that nobody writes to would be waited for */
	char text[URL_MAX + 1];
	struct fw_str line, rest;
	struct stat st = {0};
	ssize_t len = 0;
	int rc = 0;

	*url = NULL;
	if (fd < 0 || fstat(fd, &st))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	rc = rc ? rc : store_file_check(path, &st, err);
	if (!rc && (len = read(fd, text, sizeof(text))) < 0) /* a plain file gives all at once */
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	line = fw_str_trim(fw_str_split((struct fw_str){text, (size_t)len}, '\n', &rest));
	if (!line.len)
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: its first line is empty: write the store's URL there", path);
	else if (line.len >= URL_MAX || memchr(line.p, 0, line.len))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: its first line is no URL (%zu bytes at most, and no NUL)", path, URL_MAX - 1);
	else if (!(*url = fw_str_dup(line)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* ---- setting ---------------------------------------------------------------------------------------------------------- */

/* "feeds.db" means sqlite:feeds.db. */
static int store_whole(struct fw_config *c, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (!c->store || !fw_store_is_file(c->store))
		return 0;
	fw_buf_addf(&b, "sqlite:%s", c->store);
	free(c->store);
	c->store = fw_buf_take(&b, NULL);
	return c->store ? 0 : fw_err_set(err, FW_ENOMEM, "out of memory");
}

/* Of store and store_file the one that was set last names the store. */
static int store_said(struct fw_config *c, const struct fw_setting *s, struct fw_err *err)
{
	char *url;
	int rc;

	if (s->offset == offsetof(struct fw_config, store)) {
		free(c->store_file);
		c->store_file = NULL;
		return store_whole(c, err);
	}
	if (s->offset != offsetof(struct fw_config, store_file) || !c->store_file)
		return 0;
	rc = store_file_read(c->store_file, &url, err);
	if (rc)
		return rc;
	free(c->store);
	c->store = url;
	return store_whole(c, err);
}

static int set(struct fw_config *c, const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	void *at = (char *)c + s->offset;
	int64_t v = 0;
	bool ok;

	switch (s->type) {
	case FW_TYPE_BOOL:
		return bool_parse(value, at) ? 0 : refuse(s, value, where, err);
	case FW_TYPE_STRING: {
		char *text = NULL;

		if (s->choices && !one_of(s->choices, value))
			return refuse(s, value, where, err);
		if (value.len) {
			text = fw_str_dup(value);
			if (!text)
				return fw_err_set(err, FW_ENOMEM, "out of memory");
		}
		free(*(char **)at);
		*(char **)at = text;
		return store_said(c, s, err);
	}
	case FW_TYPE_DURATION: ok = fw_duration_parse(value, 1, &v); break;
	case FW_TYPE_SIZE: ok = size_parse(value, &v); break;
	default: ok = fw_str_int(value, &v); break;
	}
	if (!ok || v < s->min || v > s->max)
		return refuse(s, value, where, err);
	*(int64_t *)at = v;
	return 0;
}

int fw_config_set(struct fw_config *c, const char *name, const char *value, const char *where, struct fw_err *err)
{
	const struct fw_setting *s = fw_config_find(name);

	return s ? set(c, s, fw_str_trim(fw_str(value)), where, err) : unknown(name, where, err);
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
		number_text(&b, s->type, *(const int64_t *)at);
	return fw_buf_take(&b, NULL);
}

/* ---- a whole configuration ------------------------------------------------------------------------------------------------ */

/* $VAR/tail, or $HOME/fallback/tail; NULL without a home or out of memory. XDG: a relative VAR does not count. */
static char *xdg_path(const char *prefix, const char *var, const char *fallback, const char *tail)
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
	for (size_t i = 0; !rc && i < FW_N(SETTING); i++)
		rc = set(c, &SETTING[i], fw_str(SETTING[i].initial), "default", err);
	if (rc) {
		fw_config_destroy(c);
		return rc;
	}
	c->store = xdg_path("sqlite:", "XDG_DATA_HOME", ".local/share", "feedwheel/feedwheel.db");
	*out = c;
	return 0;
}

void fw_config_destroy(struct fw_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < FW_N(SETTING); i++) {
		if (SETTING[i].type == FW_TYPE_STRING)
			free(*(char **)((char *)c + SETTING[i].offset));
	}
	free(c->file);
	free(c);
}

/* ---- to another process --------------------------------------------------------------------------------------------------- */

/* store_file would be read again, and may be out of reach by then: what stood in it is the store. */
static bool is_handed(const struct fw_setting *s)
{
	return s->offset != offsetof(struct fw_config, store_file);
}

void config_write(const struct fw_config *c, struct fw_buf *b)
{
	for (size_t i = 0; i < FW_N(SETTING); i++) {
		char *value = is_handed(&SETTING[i]) ? fw_config_get(c, SETTING[i].name) : fw_str_dup(FW_STR(""));

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
	for (size_t i = 0; i < FW_N(SETTING) && !rc; i++) {
		const char *end = text.len ? memchr(text.p, 0, text.len) : NULL;

		if (!end)
			rc = fw_err_set(err, FW_EINVAL, "a configuration that ends before %s", SETTING[i].name);
		else if (is_handed(&SETTING[i]))
			rc = set(c, &SETTING[i], fw_str(text.p), "handed", err);
		if (end)
			text = fw_str_sub(text, (size_t)(end - text.p) + 1, text.len);
	}
	if (rc)
		fw_config_destroy(c);
	else
		*out = c;
	return rc;
}

/* ---- a file ---------------------------------------------------------------------------------------------------------------- */

/* A comment begins with a # behind white space, or at the line's start. */
static struct fw_str without_comment(struct fw_str s, bool at_start)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '#' && (i ? fw_is_space((unsigned char)s.p[i - 1]) : at_start))
			s.len = i;
	}
	return fw_str_trim(s);
}

/* s begins with a quote. What is within goes to out: in double quotes \" and \\ are " and \; in single ones all is as it is. */
static int unquote(struct fw_str s, const char *name, const char *where, struct fw_buf *out, struct fw_err *err)
{
	char quote = s.p[0];
	size_t i = 1;
	struct fw_str behind;

	for (; i < s.len && s.p[i] != quote; i++) {
		if (s.p[i] == '\\' && quote == '"' && i + 1 < s.len && (s.p[i + 1] == '"' || s.p[i + 1] == '\\'))
			i++;
		fw_buf_addc(out, s.p[i]);
	}
	if (i >= s.len)
		return fw_err_set(err, FW_EINVAL, "%s: %s: the %c that its value begins with is not closed", where, name, quote);
	behind = without_comment(fw_str_sub(s, i + 1, s.len), false);
	if (behind.len)
		return fw_err_set(err, FW_EINVAL, "%s: %s: '%.*s' stands behind the closing %c%s", where, name, FW_STR_ARG(fw_str_sub(behind, 0, 60)),
			quote, quote == '"' ? " (within the quotes it is written \\\")" : "");
	return out->rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
}

/* "name = value", "# comment", "name = value # comment" (white space before the #), blank. Quotes around a value are not part of it. */
static int line_read(struct fw_config *c, struct fw_str line, const char *where, struct fw_err *err)
{
	const struct fw_setting *s;
	struct fw_buf plain = FW_BUF_INIT(0);
	struct fw_str all, name, value;
	char word[80];
	int rc = 0;

	if (line.len && memchr(line.p, 0, line.len))
		return fw_err_set(err, FW_EINVAL, "%s: a NUL byte: this is no text file", where);
	all = fw_str_split(line, '=', &value);
	name = without_comment(all, true);
	if (name.len < fw_str_trim(all).len) /* the = is in a comment */
		value = FW_STR_NONE;
	if (!name.len && !value.p)
		return 0;
	if (!value.p)
		return fw_err_set(err, FW_EINVAL, "%s: '%.*s' is not of the form: name = value", where,
			FW_STR_ARG(fw_str_sub(name, 0, 60)));
	fw_str_copy(word, sizeof(word), name);
	s = fw_config_find(word);
	if (!s)
		return unknown(word, where, err);
	all = fw_str_trim(value);
	if (all.len && (all.p[0] == '"' || all.p[0] == '\'')) {
		rc = unquote(all, s->name, where, &plain, err);
		value = plain.len ? fw_buf_str(&plain) : FW_STR("");
	} else {
		value = without_comment(value, false);
	}
	rc = rc ? rc : set(c, s, value, where, err);
	fw_buf_finish(&plain);
	return rc;
}

static int file_load(struct fw_config *c, const char *path, FILE *f, struct fw_err *err)
{
	struct fw_buf text = FW_BUF_INIT(FILE_MAX_BYTES);
	struct fw_str rest;
	char where[300];
	int rc = fw_buf_read(&text, f);

	if (rc == FW_EIO)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", path, strerror(errno));
	else if (rc)
		rc = fw_err_set(err, rc, "%s: too large for a configuration file (1 MiB)", path);
	rest = fw_buf_str(&text);
	for (unsigned n = 1; !rc && rest.p; n++) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);

		(void)fw_snprintf(where, sizeof(where), "%s:%u", path, n);
		rc = line_read(c, line, where, err);
	}
	fw_buf_finish(&text);
	return rc;
}

/* The first of the usual places that is there; NULL: none. */
static FILE *usual_open(char **path)
{
	FILE *f = NULL;

	*path = xdg_path("", "XDG_CONFIG_HOME", ".config", "feedwheel.conf");
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
		f = usual_open(&name);
	}
	if (!name)
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	else if (!f && path)
		rc = fw_err_set(err, FW_ENOTFOUND, "%s: %s", path, strerror(errno));
	else if (!f && errno != ENOENT && errno != ENOTDIR)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", name, strerror(errno));
	else if (f)
		rc = file_load(c, name, f, err);
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

static int more_than(const char *a, int64_t a_ms, const char *b, int64_t b_ms, struct fw_err *err)
{
	char x[FW_RFC3339_MAX], y[FW_RFC3339_MAX];

	return fw_err_set(err, FW_EINVAL, "%s (%s) is more than %s (%s): lower the one or raise the other", a,
		fw_duration_text(x, a_ms), b, fw_duration_text(y, b_ms));
}

/* Names alone: what a browser sends in Host is compared with them, without its port. */
static int names_check(const char *names, struct fw_err *err)
{
	struct fw_str rest = fw_str(names);

	while (rest.p) {
		struct fw_str name = fw_str_trim(fw_str_split(rest, ',', &rest));

		for (size_t i = 0; i < name.len; i++) {
			if (!fw_is_alnum((unsigned char)name.p[i]) && !strchr("-._", name.p[i]))
				return fw_err_set(err, FW_EINVAL, "serve_names: '%.*s' is no name: write feeds.lan, without http:// and"
					" without a port, several with commas between", FW_STR_ARG(fw_str_sub(name, 0, 80)));
		}
	}
	return 0;
}

int fw_config_check(const struct fw_config *c, struct fw_err *err)
{
	if (!c->store)
		return fw_err_set(err, FW_EINVAL, "no store: set HOME, or name one (--store sqlite:PATH, FEEDWHEEL_STORE)");
	if (c->interval_min_ms > c->interval_ms)
		return more_than("interval_min_ms", c->interval_min_ms, "interval_ms", c->interval_ms, err);
	if (c->interval_ms > c->interval_max_ms)
		return more_than("interval_ms", c->interval_ms, "interval_max_ms", c->interval_max_ms, err);
	if (c->connect_timeout_ms > c->total_timeout_ms)
		return more_than("connect_timeout_ms", c->connect_timeout_ms, "total_timeout_ms", c->total_timeout_ms, err);
	if (names_check(c->serve_names, err))
		return FW_EINVAL;
	if (c->websub_url) {
		struct fw_buf base = FW_BUF_INIT(0);
		int rc = wish_base(c->websub_url, &base, err);

		fw_buf_finish(&base);
		return rc;
	}
	return 0;
}
