/* SPDX-License-Identifier: ISC */
/*
 * The table of settings: each setting's name, type, range, default, text, member of struct
 * fw_config and commands. The configuration file, the command line, `feedwheel help settings`, the
 * sample configuration, the shell completions and the test of the manual all read it, through
 * fw_config_settings() and fw_config_find(). config.c reads and writes the values.
 *
 * A new setting needs one row here, one member of struct fw_config and one paragraph in
 * feedwheel.conf(5). Rows that belong together stand together: `help settings` keeps their order.
 */
#include "base/clock.h"
#include "base/str.h"
#include "base/suggest.h"
#include "feedwheel/engine.h"

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
	{"retract_entries", FW_TYPE_BOOL, "yes", NO_RANGE,
		"Remove the entries that their feed takes back (at:deleted-entry, RFC 6721).", AT(retract_entries),
		FETCH " push"},
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
	{"changes_retention_ms", FW_TYPE_DURATION, "7d", 0, DAYS(36500), NULL,
		"Changes older than this are deleted from the log of changes; 0: never.", AT(changes_retention_ms),
		SERVE},
	{"delivery_timeout_ms", FW_TYPE_DURATION, "3d", 0, DAYS(3650), NULL,
		"An order's entries that wait for longer than this when an attempt to deliver them fails become dead "
		"letters; 0: never.",
		AT(delivery_timeout_ms), "run serve"},
	{"revisions_max", FW_TYPE_INT, "5", 0, 1000, NULL, "Earlier versions kept of an entry that changes; 0: none.",
		AT(revisions_max), "run serve push fetch add+check"},
	{"revision_max_bytes", FW_TYPE_SIZE, "256KiB", 0, MIB(1024), NULL,
		"An earlier version that is larger is kept without its content; 0: no limit.", AT(revision_max_bytes),
		"run serve push fetch add+check"},
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
	{"account_feeds_max", FW_TYPE_INT, "10000", 0, 1000000, NULL,
		"Maximum feeds that an account may subscribe. 0: no limit.", AT(account_feeds_max), "import run serve"},
	{"serve_cors_origin", FW_TYPE_STRING, "", NO_RANGE,
		"Origin whose pages may use the HTTP server from a browser (CORS): "
		"https://example.org, or * for all. Unset: none.",
		AT(serve_cors_origin), SERVE},
	{"serve_host_names", FW_TYPE_STRING, "", NO_RANGE,
		"Host names that a request without a token may use in its Host header, besides "
		"localhost and loopback addresses, such as feeds.lan. Unset: none.",
		AT(serve_host_names), SERVE},
	{"serve_discovery", FW_TYPE_BOOL, "yes", NO_RANGE,
		"The HTTP server fetches for its accounts: an address that a reader adds, to show its feed at once, "
		"and feeds' icons. With no the workers find the feed, there are no icons, and the sandbox lets the "
		"server connect to its store only.",
		AT(serve_discovery), SERVE},
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
	{"feeds_hub_url", FW_TYPE_STRING, "", NO_RANGE,
		"WebSub hub that the feeds under /feeds/ name, such as https://hub.example.org/; tell "
		"it yourself when they change. Unset: none.",
		AT(feeds_hub_url), SERVE},
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
	{"order_commands", FW_TYPE_STRING, "local", 0, 0, "none local http",
		"Orders that run programs or write files (command:, file:): none, there are none; local, 'feedwheel "
		"order' adds and changes them; http, tokens with the scope admin do too.",
		AT(order_commands), "run serve order"},
	{"order_programs", FW_TYPE_STRING, "", NO_RANGE,
		"What orders may run, separated by commas: a program with its words, or a folder of programs that "
		"take none (it ends with a slash). Unset: nothing.",
		AT(order_programs), "run serve order"},
	{"order_files", FW_TYPE_STRING, "", NO_RANGE,
		"What orders may append to, separated by commas: a file, or a folder (it ends with a slash). Unset: "
		"nothing.",
		AT(order_files), "run serve order"},
	{"sandbox", FW_TYPE_STRING, "auto", 0, 0, "auto require off",
		"What each process gives up before it reads a byte from outside: auto, all that "
		"this system supports; require, all, or it does not start; off, nothing.",
		AT(sandbox), SERVE},
	{"log_level", FW_TYPE_STRING, "info", 0, 0, "error warn info debug",
		"What is logged: error, warn, info or debug.", AT(log_level), ANY},
	{"log_json", FW_TYPE_BOOL, "no", NO_RANGE, "Log JSON, one object per line.", AT(log_json), ANY},
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
