/* SPDX-License-Identifier: ISC */
/*
 * The public interface of the engine: settings, runs, single fetches, copies of stores, checks.
 *
 * Everything takes its settings from a struct fw_config. fw_run() forks workers: each claims due
 * feeds from the store, fetches and parses them, and commits the outcomes. fw_fetch_url() fetches
 * one URL without a store. fw_copy() copies one store into another. fw_doctor() checks a
 * configuration.
 *
 * Functions with a struct fw_err return 0 or an FW_E* code, and then describe the error in *err. A
 * struct fw_config has no lock: no thread may change it while another one reads it.
 */
#ifndef FEEDWHEEL_ENGINE_H
#define FEEDWHEEL_ENGINE_H

#include <stdio.h>

#include "feedwheel/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings: one table, read by the configuration file, command line, manual and doctor ---- */

enum fw_setting_type { FW_TYPE_STRING, FW_TYPE_INT, FW_TYPE_BOOL, FW_TYPE_DURATION /* ms */, FW_TYPE_SIZE /* bytes */ };

struct fw_setting {
	const char *name; /* "connect_timeout_ms" */
	enum fw_setting_type type;
	const char *initial; /* the default, in the form of the configuration file */
	int64_t min, max;    /* numbers only */
	/* STRING only: the allowed words, "error warn info debug"; NULL: any text */
	const char *choices;
	const char *text; /* one sentence, shown by `feedwheel help settings` */
	size_t offset;    /* offset of the member in struct fw_config */
	/*
	 * Commands that use the setting, and so take it as an option. "run add+check": run, and add
	 * with --check. NULL: every command that reads settings.
	 */
	const char *commands;
};

/*
 * The values of all settings; feedwheel.conf(5) describes each. An empty or unset string is NULL.
 */
struct fw_config {
	char *store_file; /* the file that store was read from, or NULL */
	/* NULL: not set, and no HOME to derive the default from */
	char *store;
	/* processes, 0: by the number of processors; transfers in flight in each */
	int64_t workers, concurrency;
	int64_t lease_ms, drain_timeout_ms;
	int64_t host_concurrency, host_gap_ms, address_concurrency;
	char *host_key, *hosting_domains;
	char *order; /* fetch order of `run --once` */
	int64_t order_batch, straggler_timeout_ms, slow_ms, slow_percent_max, backlog_ms;
	/* a commit is due when it reaches one of these limits */
	int64_t batch_visits, batch_bytes, batch_ms;
	int64_t interval_min_ms, interval_ms, interval_max_ms, websub_poll_ms;
	int64_t connect_timeout_ms, first_byte_timeout_ms, total_timeout_ms, low_speed_bytes, low_speed_ms;
	int64_t offline_wait_ms;
	int64_t max_body_bytes, max_buffered_bytes, parse_memory_bytes, max_compression_ratio, max_header_bytes,
		max_redirects, max_entries;
	bool retract_entries;                                 /* tombstones remove entries */
	int64_t feed_daily_entries_max, feed_daily_bytes_max; /* limits of one feed per day; 0: no limit */
	char *allow_networks, *deny_networks, *dns_servers, *ca_file, *proxy, *user_agent, *contact_url;
	bool http2;
	bool async_commit; /* see fw_store_config */
	int64_t page_cache_bytes, disk_free_min_bytes;
	int64_t visits_retention_ms, entries_retention_ms, events_retention_ms; /* retention; 0: keep forever */
	int64_t changes_retention_ms;
	int64_t delivery_timeout_ms;               /* of orders; 0: none */
	int64_t revisions_max, revision_max_bytes; /* see fw_store_config */
	char *listen, *trusted_proxies, *access_log, *tls_cert, *tls_key;
	int64_t serve_connections_max, serve_connections_per_address_max, serve_header_timeout_ms,
		serve_body_timeout_ms, serve_body_rate_min, serve_send_timeout_ms, serve_idle_timeout_ms;
	int64_t serve_memory_bytes, push_body_max_bytes;
	char *push_properties;
	int64_t push_section_min, push_id_min;
	int64_t serve_threads, serve_pool_threads, serve_heartbeat_ms, auth_failures_max, auth_failures_ms;
	int64_t account_feeds_max; /* see fw_store_config */
	char *serve_cors_origin, *serve_host_names;
	bool serve_discovery;
	char *websub_url;
	int64_t websub_lease_ms, websub_scan_ms, websub_pushes_max, websub_pushes_ms;
	bool websub_plain_secret;
	char *feeds_hub_url;
	int64_t ring_bytes, flush_ms, flush_durable_ms, flush_rows, wal_sync_ms;
	char *wal_dir;
	char *order_commands, *order_programs, *order_files;
	char *sandbox;
	char *log_level;
	bool log_json;
	char *file; /* the configuration file that was read, or NULL */
	/* not a setting: the store's time, measured by each connection of this process */
	struct fw_offset_clock *store_clock;
};

FW_API const struct fw_setting *fw_config_settings(size_t *n);
/* Finds a setting by name; "-" and "_" are equal. NULL: no such setting. */
FW_API const struct fw_setting *fw_config_find(const char *name);
/* Creates a configuration with all defaults. Errors: FW_ENOMEM. */
FW_API FW_MUST_CHECK int fw_config_create(struct fw_config **out, struct fw_err *err);
FW_API void fw_config_destroy(struct fw_config *c);
/*
 * Loads a configuration file into c. path NULL: $XDG_CONFIG_HOME/feedwheel.conf, else
 * /etc/feedwheel.conf, else nothing. Each line is "name = value", or a comment after #.
 * Errors: FW_EINVAL, with file:line, the name, the value and the allowed values ("did you mean");
 * FW_ENOTFOUND the given path cannot be opened.
 */
FW_API FW_MUST_CHECK int fw_config_load(struct fw_config *c, const char *path, struct fw_err *err);
/*
 * Sets one setting. where ("command line", "FEEDWHEEL_STORE") names the source in messages.
 * Durations: 90, 250ms, 15m, 2h, 1d. Sizes: 65536, 64k, 16MiB.
 * Errors: FW_EINVAL unknown, or not allowed; FW_ENOMEM.
 */
FW_API FW_MUST_CHECK int fw_config_set(
	struct fw_config *c, const char *name, const char *value, const char *where, struct fw_err *err);
/* The value in the form of the file, malloc'd. NULL: unknown name, or out of memory. */
FW_API char *fw_config_get(const struct fw_config *c, const char *name);
/* Checks rules over several settings (min <= normal <= max ...). Errors: FW_EINVAL. */
FW_API FW_MUST_CHECK int fw_config_check(const struct fw_config *c, struct fw_err *err);
/*
 * The time of the configured store, for threads without a connection: fw_store_now_ms(). Before the
 * store has answered for the first time, this machine's. Not exported.
 */
int64_t fw_config_now_ms(const struct fw_config *c);
/* Opens the configured store. flags: FW_STORE_*. Errors: those of fw_store_open(). Not exported. */
FW_MUST_CHECK int fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *err);
/*
 * Checks the free space for entries (disk_free_min_bytes) on the disk of an SQLite store. Database
 * servers check their own disks. Errors: FW_EAGAIN too little; err names the file, the free space
 * and the setting. Not exported.
 */
FW_MUST_CHECK int fw_config_check_disk(const struct fw_config *c, struct fw_err *err);

/* ---- running ------------------------------------------------------------- */

/*
 * A `run --once` compared with its forecast and with the best possible order. Times in us; 0:
 * unknown.
 */
struct fw_run_forecast {
	const char *order; /* name of the fetch order, see fw_config.order */
	/* concurrent transfers of all workers; feeds per batch of the batch orders, else 0 */
	int64_t slots, batch;
	/* feeds due at the start; those of known duration. known 0: no forecast */
	int64_t feeds, known;
	int64_t predicted_us;
	int64_t took_us; /* from the start to the end of the last visit */
	int64_t sum_us;  /* sum of all visits, measured */
	/* lower bound for any order: the largest of the next three */
	int64_t bound_us;
	/* sum / slots; the longest visit; the longest sequence of visits to one host */
	int64_t slots_us, longest_us, host_us;
	int64_t host_n; /* number of visits to that host */
	char host[256]; /* name of that host; "": unknown */
	/* duration of the whole run, as in the summary; set by fw_run_get() only */
	int64_t elapsed_us;
};

struct fw_run_stats {
	int64_t total; /* once: feeds due at the start; else 0 */
	uint64_t done, ok, not_modified, failed, stale, new_entries, changed_entries, wire_bytes, body_bytes;
	uint64_t commits, restarts, deferred;
	uint32_t in_flight, workers;
	/*
	 * Continuous runs with nothing in flight: when the next feed is due. FW_NO_DATE: no feed
	 * is. 0: unknown.
	 */
	int64_t next_due_ms;
	int64_t elapsed_ms;
	int64_t cpu_ms, max_rss_bytes; /* sums over the workers */
	int64_t run_id;
	struct fw_run_forecast forecast; /* once: set at the end */
};

struct fw_meter;

/*
 * The body of the server process. It runs until SIGTERM, or end of file on parent_fd. Returns 0;
 * FW_EIO: accepted rows are not stored; other errors: the server could not start or go on. meter:
 * the counters of all processes.
 */
typedef int fw_serve_body(
	void *ctx, const struct fw_config *c, struct fw_meter *meter, int parent_fd, struct fw_err *err);

struct fw_run_options {
	bool once;
	/* Called in the master a few times per second, and once at the end. NULL: never. */
	void (*progress)(void *ctx, const struct fw_run_stats *s);
	/*
	 * Called on SIGHUP to read the configuration again; the engine owns *out. NULL: SIGHUP is
	 * ignored with a warning.
	 */
	int (*reload)(void *ctx, struct fw_config **out, struct fw_err *err);
	/* body of a server process beside the workers, supervised like them; NULL: none */
	fw_serve_body *serve;
	bool serve_only; /* no workers */
	/* report the state to a service manager, if there is one: sd_notify(3) */
	bool notify;
	/*
	 * Arguments that start this program again as a child, with a memory layout of its own: at
	 * most 8, NULL-terminated. fw_run() appends two: the role ("worker-0", "server") and the
	 * argument for fw_run_child(). Descriptors without FD_CLOEXEC stay open. NULL: children are
	 * forks.
	 */
	const char *const *exec_args;
	int64_t run_id; /* of fw_run_begin(); 0: this machine's time, since the store is unavailable */
	void *ctx;
};

/*
 * Runs the schedule until a stop is requested (SIGTERM, SIGINT, SIGQUIT, a control message), or,
 * with o->once, fetches the feeds that are due and returns.
 *
 * Forks workers. They and the process of o->serve drop the privileges that fw_config.sandbox names;
 * a serve body that needs other files than feedwheel's server wants "off". The calling process
 * drops nothing. It must be single-threaded. During the call fw_run() handles the signals above,
 * SIGHUP and SIGCHLD. Errors: FW_EIO the store cannot be reached; FW_EINVAL configuration.
 */
FW_API FW_MUST_CHECK int fw_run(
	const struct fw_config *c, const struct fw_run_options *o, struct fw_run_stats *out, struct fw_err *err);

/*
 * Reports to the service manager (fw_run_options.notify) that the store is being opened. A
 * migration to a new schema may take longer than a normal start, up to an hour.
 */
void fw_run_notify_opening(void);

/*
 * Runs a child that fw_run() started as a new program, from start to end; main() returns its
 * result. handed: the last argument. serve and ctx: as fw_run_options.serve, of this process.
 * Errors are logged.
 */
FW_API int fw_run_child(const char *handed, fw_serve_body *serve, void *ctx);

/*
 * Takes the id of a new run: the store's time, or the first ms after it that no other run of the
 * fleet has. Errors: those of the store.
 */
FW_MUST_CHECK int fw_run_begin(struct fw_store *st, int64_t *run_id, struct fw_err *err);

/*
 * Stores the course of a `run --once` for `timeline`: record "run", under its number, for 30 days
 * (feedwheel-store(7)).
 */
FW_MUST_CHECK int fw_run_put(struct fw_store *st, const struct fw_run_stats *s, struct fw_err *err);
/*
 * Reads it back: order, slots, batch, feeds, the first four times, and elapsed_us. Strings in the
 * arena. Errors: FW_ENOTFOUND, FW_EFORMAT, FW_ENOMEM, those of the store.
 */
FW_MUST_CHECK int fw_run_get(
	struct fw_store *st, int64_t run_id, struct fw_arena *a, struct fw_run_forecast *out, struct fw_err *err);
/*
 * Calls cb for every stored run, oldest first; unreadable records are skipped. A callback's result
 * other than 0 stops the list and is returned.
 */
typedef int fw_run_cb(void *ctx, int64_t run_id, const struct fw_run_forecast *stored);
FW_MUST_CHECK int fw_run_list(struct fw_store *st, fw_run_cb *cb, void *ctx, struct fw_err *err);

/*
 * True if the worker of this name, from its heartbeat in the store, is certainly dead. It can be
 * certain only for workers of this boot and this pid namespace; false for all others and for names
 * of any other form.
 */
FW_API bool fw_worker_is_dead(const char *name);

/* ---- single fetches ------------------------------------------------------ */

struct fw_response {
	struct fw_visit visit;
	enum fw_visit_kind kind;
	struct fw_str final_url, content_type, body;
	struct fw_document *doc; /* the parsed feed, if the body is one; else NULL */
	/* HTML only: the feeds that the page and its Link header name */
	struct fw_link *feeds;
	struct fw_err err; /* why doc is NULL */
	/* the text of an error response, perhaps truncated; absent: none */
	struct fw_str words;
	void *priv;
};

/*
 * Fetches and parses one URL, with all limits and the address guard. Stores nothing. Errors: only
 * our own faults; a failure of the network or the server is in out->visit and out->err.
 */
FW_API FW_MUST_CHECK int fw_fetch_url(const struct fw_config *c, struct fw_str url, struct fw_str username,
	struct fw_str password, struct fw_response *out, struct fw_err *err);
FW_API void fw_response_free(struct fw_response *a);
/*
 * Stores the document of a as the first visit of the feed feed_id, which was just subscribed with
 * the fetched URL, so that the URL is not fetched a second time. If a worker has visited the feed
 * meanwhile, at most the entries are stored. Errors: those of the store.
 */
FW_API FW_MUST_CHECK int fw_response_store(
	struct fw_store *st, const struct fw_config *c, struct fw_response *a, int64_t feed_id, struct fw_err *err);

/* ---- copies -------------------------------------------------------------- */

enum fw_copy_phase {
	FW_COPY_UPDATE,
	FW_COPY_FEEDS,
	FW_COPY_ENTRIES,
	FW_COPY_KEYS,
	FW_COPY_VISITS,
	FW_COPY_EVENTS,
	FW_COPY_RECORDS,
	FW_COPY_VERIFY,
	FW_COPY_DONE
};

struct fw_copy_stats {
	enum fw_copy_phase phase;
	int64_t feed_total, entry_total, visit_total;    /* in the source at the start */
	int64_t feed_before, entry_before, visit_before; /* in the target at the start */
	/* written by this copy; keys: of entries that retention has deleted */
	int64_t feeds, entries, keys, visits;
	int64_t events, dead_letters; /* pushed events; dead letters */
	/* records written, or deleted because the source does not have them */
	int64_t records;
	/* feeds of an older copy: updated; deleted because they are gone from the source */
	int64_t updated, removed;
	int64_t verified;  /* feeds compared, in order of their ids */
	int64_t differing; /* differences found */
	uint64_t bytes;
	int64_t elapsed_ms;
	/* workers wrote to the source during the copy */
	bool source_changed;
};

struct fw_copy_options {
	/* the target may hold an interrupted or older copy; it is brought up to date */
	bool resume;
	size_t batch_bytes; /* approximate size of one transaction */
	/* called after each batch; NULL: never */
	void (*progress)(void *ctx, const struct fw_copy_stats *s);
	/* called with one line per difference; NULL: differences are only counted */
	void (*differs)(void *ctx, const char *words);
	void *ctx;
};

/*
 * Copies a store into an empty one of any engine and compares them. The target's workers are paused
 * until that is done. Not copied: leases, pauses of hosts, heartbeats, messages, icons, and the
 * search index, which is rebuilt. Memory is bounded by batch_bytes, the largest entry and the
 * visits of one feed. Returns 0 also if out->differing is not 0. Errors: FW_EINVAL the target is
 * not empty (or not a copy of the source, or changed since); those of the stores.
 */
FW_API FW_MUST_CHECK int fw_copy(struct fw_store *from, struct fw_store *to, const struct fw_copy_options *o,
	struct fw_copy_stats *out, struct fw_err *err);

enum { FW_DOCTOR_FINE, FW_DOCTOR_NOTE, FW_DOCTOR_BROKEN };
/*
 * One finding of `doctor`: name, FW_DOCTOR_*, the finding, the remedy ("" if fine). fw_doctor()
 * returns the worst level.
 */
typedef void fw_doctor_cb(void *ctx, const char *name, int level, const char *found, const char *remedy);
FW_API int fw_doctor(const struct fw_config *c, fw_doctor_cb *cb, void *ctx);

FW_API void fw_library_versions(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
