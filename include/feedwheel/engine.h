/* SPDX-License-Identifier: ISC */
/*
 * The engine's public face: settings, runs, one-shot fetches.
 */
#ifndef FEEDWHEEL_ENGINE_H
#define FEEDWHEEL_ENGINE_H

#include <stdio.h>

#include "feedwheel/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings: one table; configuration file, command line, manual and doctor read it --------------------------------- */

enum fw_setting_type { FW_TYPE_STRING, FW_TYPE_INT, FW_TYPE_BOOL, FW_TYPE_DURATION /* ms */, FW_TYPE_SIZE /* bytes */ };

struct fw_setting {
	const char *name;    /* "connect_timeout_ms" */
	enum fw_setting_type type;
	const char *initial; /* as it would be written in the file */
	int64_t min, max;    /* numbers only */
	const char *choices; /* STRING only: the words allowed, "error warn info debug"; NULL: any text */
	const char *text;    /* one sentence for the manual */
	size_t offset;       /* in struct fw_config */
	const char *commands; /* that use it, and so take it as an option: "run add+check": add with --check. NULL: each that reads settings */
};

/* A text that is empty or was never set is NULL. */
struct fw_config {
	char *store_file;                  /* where store was read from, or NULL */
	char *store;                       /* NULL only when it was not set and there is no HOME to derive it from */
	int64_t workers, concurrency;      /* processes, 0: by processors; transfers in flight in each */
	int64_t lease_ms, drain_timeout_ms;
	int64_t host_max, host_gap_ms, address_max;
	char *host_key, *hosters;
	char *order;                       /* of a --once */
	int64_t order_batch, patience_ms, slow_ms, slow_share, backlog_ms;
	int64_t batch_visits, batch_bytes, batch_ms; /* a commit is due when one of them is reached */
	int64_t interval_min_ms, interval_ms, interval_max_ms, websub_poll_ms;
	int64_t connect_timeout_ms, first_byte_timeout_ms, total_timeout_ms, low_speed_bytes, low_speed_ms;
	int64_t offline_wait_ms;
	int64_t max_body_bytes, max_buffered_bytes, parse_memory_bytes, max_ratio, max_header_bytes, max_redirects, max_entries;
	int64_t feed_entries_max, feed_bytes_max; /* of one feed, a day; 0: no limit */
	char *allow_networks, *deny_networks, *dns_servers, *ca_file, *proxy, *user_agent, *contact_url;
	bool http2;
	bool relaxed;                      /* store: see fw_store_config */
	int64_t cache_bytes, disk_free_min_bytes;
	int64_t keep_visits_ms, keep_entries_ms, keep_events_ms; /* 0: for ever */
	char *listen, *trusted_proxies, *access_log, *tls_cert, *tls_key;
	int64_t serve_connections, serve_connections_per_address, serve_header_ms, serve_body_ms, serve_body_rate, serve_send_ms, serve_idle_ms;
	int64_t serve_memory_bytes, body_max_bytes;
	char *push_properties;
	int64_t push_section_min, push_id_min;
	int64_t serve_threads, serve_readers, serve_beat_ms, wrong_tokens_max, wrong_tokens_ms;
	char *serve_cors_origin, *serve_names;
	char *websub_url;
	int64_t websub_lease_ms, websub_look_ms, websub_pushes_max, websub_pushes_ms;
	bool websub_plain_secret;
	int64_t ring_bytes, flush_ms, flush_durable_ms, flush_rows, spill_sync_ms, machine_id;
	char *spill_dir;
	char *sandbox;
	char *log_level;
	bool log_json;
	char *file;                        /* the file it was read from, or NULL */
};

FW_API const struct fw_setting *fw_config_settings(size_t *n);
/* By name, "-" and "_" being the same; NULL when there is none. */
FW_API const struct fw_setting *fw_config_find(const char *name);
/* Defaults. Errors: FW_ENOMEM. */
FW_API FW_MUST_CHECK int fw_config_create(struct fw_config **out, struct fw_err *err);
FW_API void fw_config_destroy(struct fw_config *c);
/*
 * "name = value" lines, # comments. path NULL: $XDG_CONFIG_HOME/feedwheel.conf, then /etc/feedwheel.conf, and none is fine.
 * Errors: FW_EINVAL with file:line, the name, the value and what is allowed ("did you mean"); FW_ENOTFOUND when a path was given.
 */
FW_API FW_MUST_CHECK int fw_config_load(struct fw_config *c, const char *path, struct fw_err *err);
/* where: "command line", "FEEDWHEEL_STORE": for the words. Durations: 90, 250ms, 15m, 2h, 1d; sizes: 65536, 64k, 16MiB. */
FW_API FW_MUST_CHECK int fw_config_set(struct fw_config *c, const char *name, const char *value, const char *where,
	struct fw_err *err);
/* The value as it would be written in the file. malloc'd; NULL for an unknown name or out of memory. */
FW_API char *fw_config_get(const struct fw_config *c, const char *name);
/* Checks that need more than one setting (min <= normal <= max ...). */
FW_API FW_MUST_CHECK int fw_config_check(const struct fw_config *c, struct fw_err *err);
/* The store that is set, for the parts of this program; flags: FW_STORE_*. Errors: those of fw_store_open. */
FW_MUST_CHECK int fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *err);
/* Is there room for entries (disk_free_min_bytes)? Asks the disk of a store that is a file here; others know by themselves.
   FW_EAGAIN: too little; err names the file, what is free, and the setting. */
FW_MUST_CHECK int fw_config_room(const struct fw_config *c, struct fw_err *err);

/* ---- running ------------------------------------------------------------------------------------------------------------- */

/* A --once against what was foretold, and against what no order could have beaten. Times in us; 0: not known. */
struct fw_run_course {
	const char *order;             /* its name, see fw_config.order */
	int64_t slots, batch;          /* transfers at once in all workers; of the batch orders, else 0 */
	int64_t feeds, known;          /* due when it began; those of known duration: without any nothing is foretold */
	int64_t predicted_us;
	int64_t took_us;               /* till the last visit was over */
	int64_t sum_us;                /* all visits together, as measured */
	int64_t bound_us;              /* the largest of the next three: no order is faster */
	int64_t slots_us, longest_us, host_us; /* sum / slots; the longest visit; the longest chain at a host */
	int64_t host_n;                /* of that host: its visits, */
	char host[256];                /* and its name; "": not known */
	int64_t elapsed_us;            /* the whole run, from its start to its end: what the summary says; fw_run_recall() only */
};

struct fw_run_stats {
	int64_t total;                 /* feeds due at the start (once), or 0 */
	uint64_t done, ok, not_modified, failed, stale, new_entries, changed_entries, wire_bytes, body_bytes;
	uint64_t commits, restarts, deferred;
	uint32_t in_flight, workers;
	int64_t next_due_ms;           /* not once, nothing in flight: when the next feed is due; FW_NO_DATE: none is; 0: not known */
	int64_t elapsed_ms;
	int64_t cpu_ms, max_rss_bytes; /* of the workers */
	int64_t run_id;
	struct fw_run_course course;   /* once, at its end */
};

struct fw_meter;

/*
 * The body of a server's process. It ends by SIGTERM, or when parent_fd is at its end of file: 0; FW_EIO: not all it had
 * accepted is stored; others: it could not be done. meter: what all processes count.
 */
typedef int fw_serve_body(void *ctx, const struct fw_config *c, struct fw_meter *meter, int parent_fd,
	struct fw_err *err);

struct fw_run_options {
	bool once;
	/* Called in the master a few times a second, and once at the end; NULL: never. */
	void (*progress)(void *ctx, const struct fw_run_stats *s);
	/* SIGHUP: read the configuration again; *out is the engine's then. NULL: SIGHUP is ignored with a warning. */
	int (*reload)(void *ctx, struct fw_config **out, struct fw_err *err);
	fw_serve_body *serve;          /* of one process more, beside the workers, watched and started again as they are; NULL: none */
	bool serve_only;               /* no workers */
	bool notify;                   /* tell a service manager how it goes, if there is one: sd_notify(3) */
	/*
	 * How this program is started for a child, with a memory layout of its own: its arguments, at most 8, NULL behind them. Two are added,
	 * who it is ("worker-0", "server") and what fw_run_child() takes. Descriptors without FD_CLOEXEC stay open. NULL: a child is a fork.
	 */
	const char *const *anew;
	void *ctx;
};

/*
 * Run the wheel until told to stop (SIGTERM, SIGINT, SIGQUIT, a control message), or once over what is due.
 * Forks workers, which give up what fw_config.sandbox says, as the process of o->serve does: a body that needs other files than feedwheel's
 * server wants "off". The calling process must be single-threaded; it gives up nothing. The signals above, SIGHUP and SIGCHLD belong to it meanwhile.
 * Errors: FW_EIO the store cannot be reached, FW_EINVAL configuration.
 */
FW_API FW_MUST_CHECK int fw_run(const struct fw_config *c, const struct fw_run_options *o, struct fw_run_stats *out,
	struct fw_err *err);

/*
 * Tells the service manager of fw_run_options.notify that the store is opened first: to bring it to a new schema may take longer than a start
 * usually does, up to an hour.
 */
void fw_run_opening(void);

/*
 * The whole life of a child, in this program when fw_run() started it anew: for main() to return. handed: the last argument; serve and ctx:
 * as fw_run_options.serve, of this process. What is wrong is logged.
 */
FW_API int fw_run_child(const char *handed, fw_serve_body *serve, void *ctx);

/* Keep what a --once was like, for `timeline`: record "run", by its number, for 30 days (feedwheel-store(7)). */
FW_MUST_CHECK int fw_run_keep(struct fw_store *st, const struct fw_run_stats *s, struct fw_err *err);
/* What was kept of it: order, slots, batch, feeds, the first four times, and elapsed_us. FW_ENOTFOUND: nothing; FW_EFORMAT, FW_ENOMEM. */
FW_MUST_CHECK int fw_run_recall(struct fw_store *st, int64_t run_id, struct fw_arena *a, struct fw_run_course *out, struct fw_err *err);
/* The same of all that are kept, oldest first; those that nobody can read are left out. Anything but 0 stops the walk and is returned. */
typedef int fw_run_cb(void *ctx, int64_t run_id, const struct fw_run_course *kept);
FW_MUST_CHECK int fw_run_list(struct fw_store *st, fw_run_cb *cb, void *ctx, struct fw_err *err);

/*
 * By its name in a store's signs of life: is that worker dead for certain? Only those of this boot and this pid namespace can be told
 * to be; all others, and names of any other form, are not.
 */
FW_API bool fw_worker_is_dead(const char *name);

/* ---- one shot -------------------------------------------------------------------------------------------------------------- */

struct fw_answer {
	struct fw_visit visit;
	enum fw_visit_kind kind;
	struct fw_str final_url, content_type, body;
	struct fw_document *doc;       /* when the body is a feed */
	struct fw_link *feeds;         /* when it is HTML: the feeds it names, also from the Link header */
	struct fw_err err;             /* why there is no doc */
	struct fw_str words;           /* the server refused: what it says to that, as text, perhaps cut; absent: nothing */
	void *priv;
};

/* Fetch one URL now, with all limits and the guard, and read it. Stores nothing. Errors: our own faults; the rest is in the answer. */
FW_API FW_MUST_CHECK int fw_fetch_url(const struct fw_config *c, struct fw_str url, struct fw_str username,
	struct fw_str password, struct fw_answer *out, struct fw_err *err);
FW_API void fw_answer_free(struct fw_answer *a);
/*
 * The answer holds a document: store it as the first visit of this feed, which was just subscribed with the address that was asked, so that
 * the address is not asked a second time. Of a feed that a worker has visited meanwhile at most its entries are stored. Errors: the store's.
 */
FW_API FW_MUST_CHECK int fw_answer_keep(struct fw_store *st, const struct fw_config *c, struct fw_answer *a, int64_t feed_id,
	struct fw_err *err);

/* ---- copies ---------------------------------------------------------------------------------------------------------------- */

enum fw_copy_phase { FW_COPY_RENEW, FW_COPY_FEEDS, FW_COPY_ENTRIES, FW_COPY_KEYS, FW_COPY_VISITS, FW_COPY_EVENTS, FW_COPY_RECORDS, FW_COPY_VERIFY, FW_COPY_DONE };

struct fw_copy_stats {
	enum fw_copy_phase phase;
	int64_t feed_total, entry_total, visit_total;    /* at the source when it began */
	int64_t feed_before, entry_before, visit_before; /* at the target then */
	int64_t feeds, entries, keys, visits;            /* written by this one; keys: of entries that retention took */
	int64_t events, dead_events;                     /* pushed ones; those set aside */
	int64_t records;                                 /* put there, or taken away because the source has them not */
	int64_t renewed, removed;                        /* feeds of an older copy: of these, as they are now; gone at the source */
	int64_t verified;                                /* feeds compared, by their numbers */
	int64_t differing;                               /* of what was compared */
	uint64_t bytes;
	int64_t elapsed_ms;
	bool moved_on;                                   /* workers have stored at the source meanwhile */
};

struct fw_copy_options {
	bool resume;              /* the target may hold a copy that was interrupted, or an older one: it becomes what the source is */
	size_t batch_bytes;       /* in one transaction, about */
	void (*progress)(void *ctx, const struct fw_copy_stats *s); /* after each batch; NULL: never */
	void (*differs)(void *ctx, const char *words);              /* one line for each difference; NULL: only counted */
	void *ctx;
};

/*
 * Copy all of a store into an empty one of any engine and compare them; the target's workers are paused until that is done. Not
 * copied: leases, pauses of hosts, heartbeats, messages, the search index (built anew). Memory is
 * bounded by batch_bytes, the largest entry and the visits of a feed. 0 also when out->differing is not.
 * Errors: FW_EINVAL the target is not empty (or no copy of the source, or was worked on since); those of the stores.
 */
FW_API FW_MUST_CHECK int fw_copy(struct fw_store *from, struct fw_store *to, const struct fw_copy_options *o,
	struct fw_copy_stats *out, struct fw_err *err);

enum { FW_DOCTOR_FINE, FW_DOCTOR_NOTE, FW_DOCTOR_BROKEN };
/* One line for `doctor`: name, FW_DOCTOR_*, what was found, the remedy ("" when fine). fw_doctor returns the worst. */
typedef void fw_doctor_cb(void *ctx, const char *name, int level, const char *found, const char *remedy);
FW_API int fw_doctor(const struct fw_config *c, fw_doctor_cb *cb, void *ctx);

FW_API const char *fw_version(void);
FW_API void fw_library_versions(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
