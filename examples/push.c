/* SPDX-License-Identifier: ISC */
/*
 * Stores a feed's entries, and usage events, with the library: as `feedwheel push` and `POST
 * /v1/events` do.
 *
 *   cc push.c $(pkg-config --cflags --libs feedwheel) -o push
 *   ./push sqlite:/tmp/feeds.db https://example.org/feed.xml feed.xml
 */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <feedwheel.h>

#define EVENTS 1000
#define PRODUCERS 1 /* one for each thread that pushes */
#define PATIENCE_MS 10000

static struct fw_str str(const char *s)
{
	return (struct fw_str){s, strlen(s)};
}

/*
 * Stores the file's entries in the feed, and subscribes to it if needed. Twice: known entries are
 * not stored again.
 */
static int deliver(
	struct fw_store *st, const struct fw_config *c, const char *url, const char *path, struct fw_err *err)
{
	static char bytes[1 << 20];
	struct fw_feed_new feed = {.url = str(url)};
	struct fw_delivery_input in = {.strict = true};
	struct fw_delivery_result did;
	FILE *f = fopen(path, "rb");
	int rc;

	if (!f) {
		snprintf(err->text, sizeof(err->text), "%s: cannot be read", path);
		return FW_ENOTFOUND;
	}
	in.body = (struct fw_str){bytes, fread(bytes, 1, sizeof(bytes), f)};
	fclose(f);
	rc = fw_store_subscribe(st, &feed, 1, err);
	in.feed_id = feed.id;
	for (int i = 0; i < 2 && !rc; i++) {
		rc = fw_deliver(st, c, &in, PATIENCE_MS, &did, err);
		if (!rc)
			printf("%zu entries: %zu new, %zu known\n", did.entry_n, (size_t)did.visit.new_n, did.known_n);
	}
	return rc;
}

/* Called by the flusher's thread. */
struct waiter {
	struct fw_commit_wait wait; /* the first member */
	sem_t over;
	int rc;
};

static void committed(struct fw_commit_wait *wait, int rc, const char *why)
{
	struct waiter *w = (struct waiter *)wait;

	w->rc = rc;
	if (rc)
		fprintf(stderr, "not stored: %s\n", why);
	sem_post(&w->over);
}

/*
 * Events through a ring of fixed memory. If it is full the result is FW_EAGAIN; the call never
 * waits. All events of a draft are accepted, or none.
 */
static int ingest(const struct fw_config *c, struct fw_err *err)
{
	struct waiter w = {.wait.done = committed};
	struct fw_event event = {.property = str("news"), .section = 1};
	struct fw_ingest *in;
	struct fw_ingest_stats s;
	struct fw_producer *producer;
	int rc = fw_ingest_open(c, PRODUCERS, &in, err);

	if (rc)
		return rc;
	sem_init(&w.over, 0, 0);
	producer = fw_ingest_producer(in, 0);
	rc = fw_ingest_begin(producer, &w.wait); /* with NULL instead, the call returns when the events are accepted */
	for (event.item = 1; event.item <= EVENTS && !rc; event.item++)
		rc = fw_ingest_put(producer, &event);
	rc = rc ? rc : fw_ingest_publish(producer, err);
	if (!rc) {
		sem_wait(&w.over);
		rc = w.rc;
	}
	fw_ingest_stop(in, PATIENCE_MS);
	fw_ingest_stats(in, &s);
	printf("%llu events stored\n", (unsigned long long)s.stored_n);
	fw_ingest_destroy(in);
	sem_destroy(&w.over);
	return rc;
}

int main(int argc, char **argv)
{
	struct fw_store_config where = {.flags = FW_STORE_CREATE};
	struct fw_config *c = NULL;
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc;

	if (argc != 4) {
		fprintf(stderr, "usage: push STORE FEED-URL FILE\n");
		return 2;
	}
	rc = fw_config_create(&c, &err);
	rc = rc ? rc : fw_config_set(c, "store", argv[1], "command line", &err);
	where.url = argv[1];
	rc = rc ? rc : fw_store_open(&where, &st, &err);
	rc = rc ? rc : deliver(st, c, argv[2], argv[3], &err);
	rc = rc ? rc : ingest(c, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	fw_store_close(st);
	fw_config_destroy(c);
	return rc != 0;
}
