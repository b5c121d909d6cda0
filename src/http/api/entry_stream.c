/* SPDX-License-Identifier: ISC */
/*
 * GET /v1/stream: Server-Sent Events (WHATWG HTML, section 9.2). Each change is an event, with the
 * change's id as the event's id: "entry" for a new entry, and, for a reader that wants them,
 * "changed" and "gone".
 *
 * Ids rise in the order of storing, and a change is shown only when no lower id can follow
 * (store.h). So a reader that reconnects with the last id it saw misses nothing and gets nothing
 * twice, whichever process died.
 *
 * Old changes are pruned, entries are not. A reader that wants changes and has missed some gets the
 * event "behind", and goes on with the first change that is left.
 *
 *	store --(watcher: one thread, one connection)--> window of the newest events --> readers
 *	store --(blocking thread pool)-----------------------> a reader that is behind the window
 *
 * The window holds all events with ids above `base` up to `head`. It is bounded, and so is the
 * buffer of each reader. libmicrohttpd calls reader_read() when the socket can take bytes. A reader
 * that has got the whole window is suspended until the watcher has an event for it, or a heartbeat
 * is due.
 *
 * Backpressure: a slow reader falls behind the window, and the pool then reads its events from the
 * store, up to OUT_BYTES at a time. At most CATCHUP_MAX readers use the pool at once, in turn, so
 * that requests find free slots too. A reader that takes no bytes for serve_send_timeout_ms is
 * closed.
 *
 * Without readers the watcher does not read the store. It ends a reader's stream when the reader's
 * token is removed or expires.
 *
 * Locking: one lock; struct stream and struct stream_reader say what it guards. Connections are
 * resumed
 * without the lock, because a resumed reader may be freed at once.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "api/change.h"
#include "api/view.h"
#include "http/api/entry_stream.h"
#include "http/server/http.h"

#define READERS_MAX ((size_t)10000)
#define READERS_SHARE(places) ((places) / 4 * 3) /* of serve_connections_max */
#define WINDOW_N 1024
#define WINDOW_BYTES ((size_t)4 << 20)
#define CATCHUP_MAX 32                /* readers that use the pool at once */
#define ROWS 500                      /* entries in one query */
#define FRESH_BYTES ((size_t)1 << 20) /* a batch of events ends with the event that reaches this size */
#define TEXT_BYTES 16384 /* limit of a summary, and of the other members together; the parser limits the rest */
#define OUT_BYTES ((size_t)32 << 10) /* a reader's buffer is full with the event that reaches this size */
#define TICK_MS FW_SECOND_MS
#define RETRY_MS 2000 /* after which a client shall reconnect */
#define BLOCK_BYTES 4096

struct stream_event {
	int64_t id, feed_id;
	enum fw_change_kind kind;
	size_t len, folder_len;
	char text[]; /* of the event, and the feed's folder; a feed of a "gone" has none */
};

enum reader_state {
	READER_AWAKE,   /* libmicrohttpd calls reader_read() */
	READER_IDLE,    /* suspended: it has all events */
	READER_IN_POOL, /* suspended: the pool reads older events from the store */
};

struct stream_reader {
	struct stream *s;
	struct server_thread *server_thread;
	struct MHD_Connection *conn;
	struct conn *time; /* its timeouts */
	/* guarded by the lock; in READER_IN_POOL out and last_id belong to the pool */
	enum reader_state state;
	bool begun;  /* the first lines were written */
	bool ended;  /* it is not authorized any more */
	bool queued; /* it waits for its turn to use the pool */
	struct stream_reader *queue_next;
	bool catchup_failed; /* the pool failed: do not ask it again at once */
	int64_t last_id;     /* the id up to which it has all events; -1: start with the next new one */
	struct change_filter filter;
	char *folder;          /* filter.folder, or NULL */
	int64_t base_id;       /* of a first read, as in fw_change_query */
	struct auth_pass pass; /* the watcher's */
	int64_t heartbeat_ms;  /* monotonic: when a heartbeat is due */
	struct fw_buf out;
	size_t sent; /* bytes of out that were sent */
	struct pool_job job;
	int64_t job_until_id;              /* the id up to which the job reads */
	struct stream_reader *prev, *next; /* list of all readers */
	struct stream_reader *wake;        /* list of readers to resume */
};

struct stream {
	const struct fw_config *config;
	struct pool *pool;
	struct auth *auth;
	_Atomic int64_t *suspended_n;
	pthread_t thread;
	int wake_fd;
	/* guarded by the lock */
	pthread_mutex_t lock;
	pthread_cond_t some; /* there is a reader, or the stream is closing */
	bool closing, running;
	bool ready; /* base and head are known */
	int64_t base, head;
	struct stream_event *window[WINDOW_N];
	size_t first, n, bytes;
	struct stream_reader *readers;
	size_t reader_n;
	struct stream_reader *queue, **queue_end; /* readers that wait for their turn to use the pool */
	size_t catchup_n;                         /* readers that use the pool */
	/* only for the watcher */
	struct store_link link;
	struct fw_store *st; /* the link's, during a step */
	struct auth_view tokens;
	struct stream_event *fresh[ROWS];
	size_t fresh_n, fresh_bytes;
};

/* ---- the window: with the lock --------------------------------------------------------------- */

static struct stream_event *window_at(const struct stream *s, size_t i)
{
	return s->window[(s->first + i) % WINDOW_N];
}

static void window_drop(struct stream *s)
{
	struct stream_event *e = window_at(s, 0);

	s->base = e->id;
	s->bytes -= e->len;
	s->first = (s->first + 1) % WINDOW_N;
	s->n--;
	free(e);
}

static void window_add(struct stream *s, struct stream_event *e)
{
	while (s->n && (s->n == WINDOW_N || s->bytes + e->len > WINDOW_BYTES))
		window_drop(s);
	s->window[(s->first + s->n) % WINDOW_N] = e;
	s->n++;
	s->bytes += e->len;
	s->head = e->id;
}

/* Index of the first event in the window with a higher id. */
static size_t window_find(const struct stream *s, int64_t id)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (window_at(s, mid)->id > id)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool reader_wants_event(const struct stream_reader *d, const struct stream_event *e)
{
	return change_filter_wants(&d->filter, e->kind, e->feed_id, (struct fw_str){e->text + e->len, e->folder_len});
}

/* Does the log of changes have what it wants? Entries alone are listed without it. */
static bool reader_reads_log(const struct stream_reader *d)
{
	return d->filter.kinds != 1u << FW_CHANGE_NEW;
}

/* ---- readers --------------------------------------------------------------------------------- */

/*
 * With the lock: put a suspended reader on the list. The caller passes the list to readers_resume()
 * after unlocking.
 */
static void reader_wake(struct stream_reader *d, struct stream_reader **list)
{
	d->state = READER_AWAKE;
	d->wake = *list;
	*list = d;
}

static void readers_resume(struct stream *s, struct stream_reader *list)
{
	while (list) {
		struct stream_reader *d = list;

		list = d->wake;
		atomic_fetch_sub(s->suspended_n, 1);
		server_thread_resume(d->server_thread, d->conn);
	}
}

/* With the lock: suspend its connection. */
static ssize_t reader_sleep(struct stream_reader *d, enum reader_state state)
{
	d->state = state;
	atomic_fetch_add(d->s->suspended_n, 1);
	MHD_suspend_connection(d->conn);
	return 0;
}

/*
 * Write an entry. Each reader may buffer a copy, so long members are cut or left out; GET
 * /v1/entries/ID has them all.
 */
static void stream_entry_write(struct fw_json *j, const struct fw_entry_row *row)
{
	struct fw_entry_row e = *row;
	struct fw_err err;

	e.summary.len = fw_utf8_cut(e.summary.p, e.summary.len, TEXT_BYTES);
	if (e.extra.len > TEXT_BYTES)
		e.extra = FW_STR_NONE;
	if (fw_entry_json(j, &e, 0, &err))
		fw_warn("%s", err.text);
}

/* A new entry is the event "entry" with its item; others have the change, with the item in it. */
static void stream_event_write(struct fw_buf *b, const struct fw_change *c)
{
	bool is_new = c->kind == FW_CHANGE_NEW;
	struct fw_json j;

	assert(!is_new || c->entry); /* it is told by its row: one that is gone is not told as new */
	fw_buf_addf(
		b, "id: %lld\nevent: %s\ndata: ", (long long)c->id, is_new ? "entry" : fw_change_kind_name(c->kind));
	fw_json_init(&j, b, false);
	if (is_new) {
		stream_entry_write(&j, c->entry);
	} else {
		fw_change_json_begin(&j, NULL, c);
		if (c->entry) {
			fw_json_key(&j, "item");
			stream_entry_write(&j, c->entry);
		}
		fw_json_end(&j);
	}
	fw_buf_adds(b, "\n\n");
}

static int catchup_change(void *ctx, const struct fw_change *c)
{
	struct stream_reader *d = ctx;

	if (change_filter_wants(&d->filter, c->kind, c->feed_id, c->entry ? c->entry->feed_folder : FW_STR_NONE))
		stream_event_write(&d->out, c);
	d->last_id = c->id;
	return d->out.len >= OUT_BYTES;
}

static int catchup_entry(void *ctx, const struct fw_entry_row *e)
{
	const struct fw_change c = {
		.id = e->id, .kind = FW_CHANGE_NEW, .entry_id = e->id, .feed_id = e->feed_id, .entry = e};

	return catchup_change(ctx, &c);
}

/* The reader wants new entries only. */
static int catchup_entries(struct stream_reader *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_entry_query q = {.feed_id = d->filter.feed_n == 1 ? d->filter.feed_id[0] : 0,
		.folder = d->filter.folder,
		.after_id = d->last_id,
		.before_id = d->job_until_id + 1,
		.oldest_first = true,
		.limit = ROWS};
	int64_t before = d->last_id;
	int rc = fw_store_entry_list(st, &q, catchup_entry, d, err);

	if (rc == 0 && d->last_id == before)
		d->last_id = d->job_until_id;
	return rc;
}

/* A reader that is behind is told where it can go on, and goes on there. */
static void catchup_behind(struct stream_reader *d, int64_t first_id)
{
	d->last_id = first_id - 1;
	fw_buf_addf(&d->out, "id: %lld\nevent: behind\ndata: {\"first\":%lld}\n\n", (long long)d->last_id,
		(long long)first_id);
}

static int catchup_log(struct stream_reader *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_change_query q = {.feed_id = d->filter.feed_n == 1 ? d->filter.feed_id[0] : 0,
		.after_id = d->last_id,
		.base_id = d->base_id,
		.limit = ROWS};
	int rc = fw_store_change_list(st, &q, catchup_change, d, err);

	if (rc == FW_EGONE) {
		catchup_behind(d, q.first_id);
		return 0;
	}
	if (!d->last_id && !d->base_id)
		d->base_id = q.head_id;
	d->last_id = rc < 0 ? d->last_id : FW_MAX(d->last_id, FW_MIN(q.next_id, d->job_until_id));
	return rc;
}

/*
 * In the pool: read a reader's events up to the start of the window. No event can be added in that
 * range any more.
 */
static int catchup_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct stream_reader *d = (struct stream_reader *)((char *)j - offsetof(struct stream_reader, job));
	int rc = FW_EIO;

	if (st)
		rc = reader_reads_log(d) ? catchup_log(d, st, err) : catchup_entries(d, st, err);
	d->catchup_failed = rc < 0;
	return rc == FW_EAGAIN ? POOL_LATER : FW_MIN(rc, 0);
}

/* With the lock. */
static void reader_queue_remove(struct stream *s, struct stream_reader *d)
{
	struct stream_reader **at = &s->queue;

	while (*at && *at != d)
		at = &(*at)->queue_next;
	*at = d->queue_next;
	if (!*at)
		s->queue_end = at;
	d->queued = false;
}

/* With the lock: wake the readers whose turn it is. They call catchup_begin() again. */
static void reader_queue_wake(struct stream *s, struct stream_reader **list)
{
	for (size_t n = s->catchup_n; s->queue && n < CATCHUP_MAX; n++) {
		struct stream_reader *d = s->queue;

		reader_queue_remove(s, d);
		if (d->state == READER_IDLE)
			reader_wake(d, list);
	}
}

static void catchup_done(struct pool_job *j)
{
	struct stream_reader *d = (struct stream_reader *)((char *)j - offsetof(struct stream_reader, job)),
			     *list = NULL;
	struct stream *s = d->s;

	pthread_mutex_lock(&s->lock);
	s->catchup_n--;
	reader_wake(d, &list);
	reader_queue_wake(s, &list);
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
}

/* With the lock: copy a reader's events from the window into its buffer. */
static void reader_fill(struct stream *s, struct stream_reader *d)
{
	size_t i = window_find(s, d->last_id);

	for (; i < s->n && d->out.len < OUT_BYTES; i++) {
		const struct stream_event *e = window_at(s, i);

		if (reader_wants_event(d, e))
			fw_buf_add(&d->out, e->text, e->len);
		d->last_id = e->id;
	}
}

static void reader_begin(struct stream *s, struct stream_reader *d)
{
	d->begun = true;
	d->last_id = d->last_id < 0 ? s->head : d->last_id;
	fw_buf_addf(&d->out, "retry: %d\nid: %lld\n\n", RETRY_MS, (long long)d->last_id);
}

/* With the lock: give a reader's job to the pool. False: it is queued for its turn. */
static bool catchup_begin(struct stream *s, struct stream_reader *d)
{
	if (s->catchup_n >= CATCHUP_MAX || !pool_take_slot(s->pool)) {
		if (!d->queued) {
			d->queued = true;
			d->queue_next = NULL;
			*s->queue_end = d;
			s->queue_end = &d->queue_next;
		}
		return false;
	}
	if (d->queued)
		reader_queue_remove(s, d);
	s->catchup_n++;
	d->job = (struct pool_job){.run = catchup_run, .done = catchup_done};
	d->job_until_id = s->base;
	(void)reader_sleep(d, READER_IN_POOL);
	pool_put(s->pool, &d->job);
	return true;
}

/* With the lock: fill the empty buffer (returns 1), or suspend the reader (0). */
static ssize_t reader_more(struct stream *s, struct stream_reader *d)
{
	bool may_help = !d->catchup_failed;

	d->catchup_failed = false;
	if (!s->ready)
		return reader_sleep(d, READER_IDLE);
	if (!d->begun)
		reader_begin(s, d);
	else if (d->last_id >= s->base)
		reader_fill(s, d);
	else if (may_help && catchup_begin(s, d))
		return 0;
	if (!d->out.len && fw_mono_ms() >= d->heartbeat_ms)
		fw_buf_adds(&d->out, ":\n\n");
	return d->out.len ? 1 : reader_sleep(d, READER_IDLE);
}

static ssize_t reader_read(void *ctx, uint64_t pos, char *to, size_t max)
{
	struct stream_reader *d = ctx;
	struct stream *s = d->s;
	ssize_t n = 1;

	(void)pos;
	pthread_mutex_lock(&s->lock);
	if (d->ended) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (d->out.rc) {
		n = MHD_CONTENT_READER_END_WITH_ERROR; /* no memory; a client that reconnects loses nothing */
	} else if (d->sent == d->out.len) {
		fw_buf_finish(&d->out);
		fw_buf_init(&d->out, 0);
		d->sent = 0;
		n = s->closing ? MHD_CONTENT_READER_END_OF_STREAM : reader_more(s, d);
	}
	if (n > 0) {
		n = (ssize_t)FW_MIN(max, d->out.len - d->sent);
		memcpy(to, d->out.p + d->sent, (size_t)n);
		d->sent += (size_t)n;
		d->heartbeat_ms = fw_mono_ms() + s->config->serve_heartbeat_ms;
	}
	pthread_mutex_unlock(&s->lock);
	(void)conn_enter(d->time, n > 0 ? CONN_SEND : CONN_WORK); /* a suspended reader has no timeout */
	return n;
}

static void reader_free(void *ctx)
{
	struct stream_reader *d = ctx;
	struct stream *s = d->s;

	pthread_mutex_lock(&s->lock);
	if (d->prev)
		d->prev->next = d->next;
	else
		s->readers = d->next;
	if (d->next)
		d->next->prev = d->prev;
	if (d->queued)
		reader_queue_remove(s, d);
	s->reader_n--;
	pthread_mutex_unlock(&s->lock);
	fw_buf_finish(&d->out);
	free(d->folder);
	free(d);
}

/* Its filters are set; from now on the watcher knows it. */
static void reader_add(struct stream *s, struct request *r, struct stream_reader *d)
{
	d->s = s;
	d->server_thread = r->thread->loop;
	d->conn = r->conn;
	d->time = r->c;
	d->pass = r->pass;
	pthread_mutex_lock(&s->lock);
	d->next = s->readers;
	if (d->next)
		d->next->prev = d;
	s->readers = d;
	s->reader_n++;
	pthread_cond_signal(&s->some);
	pthread_mutex_unlock(&s->lock);
}

/* The last id that the client has: Last-Event-ID, else since; -1: neither. */
static bool since_read(struct request *r, int64_t *at, enum MHD_Result *ok)
{
	struct fw_str last = fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Last-Event-ID"));

	*at = -1;
	if (!http_param_int(r, "since", 0, INT64_MAX, at, ok))
		return false;
	if (last.len && (!fw_str_int(last, at) || *at < 0)) {
		*ok = http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_header",
			"invalid Last-Event-ID (expected the id of an event)");
		return false;
	}
	return true;
}

/* False: responded, or out of memory. */
static bool reader_params(struct request *r, struct stream_reader *d, enum MHD_Result *ok)
{
	*ok = MHD_NO;
	d->filter.kinds = 1u << FW_CHANGE_NEW;
	if (!since_read(r, &d->last_id, ok) || !http_change_filter(r, &d->filter, ok))
		return false;
	if (!d->filter.folder.len)
		return true;
	d->folder = fw_str_dup(d->filter.folder); /* the reader outlives the request */
	d->filter.folder = fw_str(d->folder);
	return d->folder != NULL;
}

static size_t stream_readers(struct stream *s)
{
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->reader_n;
	pthread_mutex_unlock(&s->lock);
	return n;
}

enum MHD_Result http_stream(struct request *r)
{
	struct stream *s = r->thread->h->stream;
	struct MHD_Response *m;
	enum MHD_Result ok;
	struct stream_reader *d;
	size_t most = FW_MIN(READERS_MAX, FW_MAX(READERS_SHARE(conns_max(r->thread->h->conns)), 1));

	if (stream_readers(s) >= most)
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
			"the limit of %zu readers of the stream is reached", most);
	d = calloc(1, sizeof(*d));
	if (!d)
		return MHD_NO;
	if (!reader_params(r, d, &ok)) {
		free(d->folder);
		free(d);
		return ok;
	}
	reader_add(s, r, d);
	m = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, reader_read, d, reader_free);
	if (!m) {
		reader_free(d);
		return MHD_NO;
	}
	if (!MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream") ||
		!MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ||
		!MHD_add_response_header(m, "X-Accel-Buffering", "no")) {
		MHD_destroy_response(m);
		return MHD_NO;
	}
	r->endless = true;
	return http_respond(r, MHD_HTTP_OK, m);
}

/* ---- the watcher ----------------------------------------------------------------------------- */

static int fresh_add(void *ctx, const struct fw_change *c)
{
	struct fw_str folder = c->entry ? c->entry->feed_folder : FW_STR_NONE;
	struct stream *s = ctx;
	struct fw_buf b = FW_BUF_INIT(0);
	struct stream_event *one;

	stream_event_write(&b, c);
	one = b.rc ? NULL : malloc(sizeof(*one) + b.len + folder.len);
	if (one) {
		*one = (struct stream_event){
			.id = c->id, .feed_id = c->feed_id, .kind = c->kind, .len = b.len, .folder_len = folder.len};
		memcpy(one->text, b.p, b.len);
		if (folder.len)
			memcpy(one->text + b.len, folder.p, folder.len);
		s->fresh[s->fresh_n++] = one;
		s->fresh_bytes += one->len;
	}
	fw_buf_finish(&b);
	return one ? s->fresh_bytes >= FRESH_BYTES : FW_ENOMEM;
}

/* With the lock: is there an event for this reader, among the fresh ones or before them? */
static bool reader_has_news(const struct stream *s, const struct stream_reader *d)
{
	if (!d->begun || d->last_id < s->head)
		return true;
	for (size_t i = 0; i < s->fresh_n; i++) {
		if (reader_wants_event(d, s->fresh[i]))
			return true;
	}
	return false;
}

/*
 * Wake the readers that the fresh events are for, then move the events into the window. In this
 * order, because the window frees events that it has no room for.
 */
static void fresh_publish(struct stream *s)
{
	struct stream_reader *list = NULL;

	pthread_mutex_lock(&s->lock);
	for (struct stream_reader *d = s->readers; d && s->fresh_n; d = d->next) {
		if (d->state != READER_IDLE || d->queued)
			continue;
		if (reader_has_news(s, d))
			reader_wake(d, &list);
		else
			d->last_id = FW_MAX(d->last_id, s->fresh[s->fresh_n - 1]->id);
	}
	for (size_t i = 0; i < s->fresh_n; i++)
		window_add(s, s->fresh[i]);
	s->fresh_n = s->fresh_bytes = 0;
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
}

static int stream_read_new(struct stream *s, struct fw_err *err)
{
	struct fw_change_query q = {.limit = ROWS};
	bool full = true;
	int rc = 0;

	while (full && rc >= 0) {
		q.after_id = q.base_id = s->head; /* only this thread writes it */
		rc = fw_store_change_list(s->st, &q, fresh_add, s, err);
		if (rc == FW_ENOMEM)
			fw_err_set(err, rc, "out of memory");
		full = rc > 0 || s->fresh_n == ROWS;
		fresh_publish(s); /* after an error too: the events before it are complete and in order */
	}
	return FW_MIN(rc, 0);
}

/* Find where the window begins: the number below which no change can follow. */
static int stream_find_head(struct stream *s, struct fw_err *err)
{
	struct fw_change_query q = {.after_id = INT64_MAX - 1, .base_id = INT64_MAX - 1, .limit = 1};
	struct stream_reader *list = NULL;
	int rc = fw_store_change_list(s->st, &q, fresh_add, s, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	while (s->n)
		window_drop(s);
	s->base = s->head = q.head_id;
	s->ready = true;
	for (struct stream_reader *d = s->readers; d; d = d->next) {
		if (d->state == READER_IDLE)
			reader_wake(d, &list);
	}
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
	return 0;
}

/* Wake suspended readers that need a heartbeat, or can use the pool again. */
static void readers_heartbeat(struct stream *s)
{
	struct stream_reader *list = NULL;
	int64_t now = fw_mono_ms();

	pthread_mutex_lock(&s->lock);
	for (struct stream_reader *d = s->readers; d && s->ready; d = d->next) {
		if (d->state == READER_IDLE &&
			(now >= d->heartbeat_ms || (d->last_id < s->base && !d->queued) || !d->begun))
			reader_wake(d, &list);
	}
	reader_queue_wake(s, &list);
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
}

/*
 * End the streams whose tokens are not valid any more. Checked when the tokens have changed, and
 * when a token expires.
 */
static void readers_check_tokens(struct stream *s)
{
	const struct auth_tokens *t = auth_view_update(s->auth, &s->tokens);
	struct stream_reader *list = NULL;
	int64_t now_ms = fw_config_now_ms(s->config);

	pthread_mutex_lock(&s->lock);
	for (struct stream_reader *d = s->readers; d && t; d = d->next) {
		bool expired = d->pass.until_ms != FW_NO_DATE && d->pass.until_ms <= now_ms;

		/* higher: it was authorized after auth_view_update() */
		if (d->ended || (d->pass.version >= s->tokens.version && !expired))
			continue;
		d->pass.version = FW_MAX(d->pass.version, s->tokens.version);
		d->ended = !auth_pass_is_valid(t, &d->pass, now_ms);
		if (d->ended && d->state == READER_IDLE)
			reader_wake(d, &list);
	}
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
}

/* Wait for a reader. False: the stream is closing. */
static bool wait_for_readers(struct stream *s)
{
	bool go;

	pthread_mutex_lock(&s->lock);
	if (!s->reader_n)
		s->ready = false; /* entries stored from now on are not seen: stream_find_head() has to run again */
	if (!s->reader_n && store_link_is_down(&s->link))
		store_link_close(&s->link); /* nobody waits for its end */
	while (!s->reader_n && !s->closing)
		pthread_cond_wait(&s->some, &s->lock);
	go = !s->closing;
	pthread_mutex_unlock(&s->lock);
	return go;
}

static int stream_watch(struct stream *s, struct fw_err *err)
{
	bool changed;
	int rc = 0;

	if (!s->ready) /* only this thread sets it */
		rc = stream_find_head(s, err);
	if (!rc)
		rc = stream_read_new(s, err);
	readers_heartbeat(s);
	return rc ? rc :
		    fw_store_wait(s->st, s->wake_fd, FW_MIN(TICK_MS, s->config->serve_heartbeat_ms), &changed, err);
}

static void *stream_run(void *ctx)
{
	struct stream *s = ctx;
	struct pollfd p = {.fd = s->wake_fd, .events = POLLIN};

	while (wait_for_readers(s)) {
		struct fw_err err = {0};

		int rc = FW_EIO;

		readers_check_tokens(s);
		s->st = store_link_get(&s->link, &err);
		if (s->st) {
			rc = stream_watch(s, &err);
			(void)store_link_after_round(&s->link, rc, &err);
		} else {
			readers_heartbeat(s);
		}
		if (rc)
			(void)poll(&p, 1, (int)FW_MIN(TICK_MS, store_link_wait_ms(&s->link)));
	}
	store_link_close(&s->link);
	auth_view_finish(&s->tokens);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int stream_open(const struct fw_config *c, struct pool *pool, struct auth *auth, _Atomic int64_t *suspended_n,
	struct stream **out, struct fw_err *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	s->config = c;
	s->link = (struct store_link){.config = c, .who = "stream", .waits = "readers wait"};
	s->pool = pool;
	s->auth = auth;
	s->suspended_n = suspended_n;
	s->queue_end = &s->queue;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->some, NULL);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->wake_fd < 0 ? errno : pthread_create(&s->thread, NULL, stream_run, s);
	if (rc) {
		fw_err_set(err, FW_EIO, "cannot start the thread of the stream: %s", strerror(rc));
		stream_destroy(s);
		return FW_EIO;
	}
	s->running = true;
	*out = s;
	return 0;
}

void stream_close(struct stream *s)
{
	static const uint64_t one = 1;
	struct stream_reader *list = NULL;

	if (!s || !s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->some);
	pthread_mutex_unlock(&s->lock);
	while (write(s->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(s->thread, NULL);
	s->running = false;
	pthread_mutex_lock(&s->lock);
	for (struct stream_reader *d = s->readers; d; d = d->next) {
		if (d->state == READER_IDLE)
			reader_wake(d, &list);
	}
	pthread_mutex_unlock(&s->lock);
	readers_resume(s, list);
}

void stream_destroy(struct stream *s)
{
	if (!s)
		return;
	stream_close(s);
	while (s->n)
		window_drop(s);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_cond_destroy(&s->some);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
