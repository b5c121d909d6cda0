/* SPDX-License-Identifier: ISC */
/*
 * Entries from a publisher's push, of any bytes, into a store in memory. The first byte selects the
 * form: items of JSON Feed, one a line, or a document; and whether a truncated document is refused.
 * A refusal has a message, and stores nothing. Accepted entries are all counted, the store has as
 * many as were new, and a second push finds them all known (PAR-01, REL-02, REL-03).
 */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/utf8.h"
#include "feedwheel/deliver.h"
#include "fuzz.h"

enum { LINES = 1, LENIENT = 2, TYPED = 4 };

static struct fw_store *store_new(void)
{
	struct fw_feed_new n = {.url = FW_STR("https://example.org/a/feed")};
	struct fw_store *st;

	FUZZ_CHECK(!fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, NULL));
	FUZZ_CHECK(!fw_store_subscribe(st, &n, 1, NULL));
	return st;
}

static struct fw_store_stats stats(struct fw_store *st)
{
	struct fw_store_stats s;

	FUZZ_CHECK(!fw_store_stats(st, &s, NULL));
	return s;
}

static int deliver(
	struct fw_store *st, const struct fw_config *c, struct fw_str body, unsigned how, struct fw_delivery_result *d)
{
	struct fw_delivery_input in = {.feed_id = 1, .body = body, .strict = !(how & LENIENT)};
	int64_t before = stats(st).entry_n;
	struct fw_err err = {.rc = 0};
	int rc;

	if (how & LINES)
		in.content_type = FW_STR("application/x-ndjson");
	else if (how & TYPED)
		in.content_type = FW_STR("application/feed+json; charset=utf-8");
	rc = fw_deliver(st, c, &in, 0, d, &err);
	FUZZ_CHECK(rc == 0 || rc == FW_EINVAL || rc == FW_EFORMAT || rc == FW_ELIMIT);
	if (rc) {
		FUZZ_CHECK(err.text[0] && stats(st).entry_n == before);
	} else {
		FUZZ_CHECK(d->visit.new_n + d->visit.changed_n + d->known_n + d->repeat_n == d->entry_n);
		FUZZ_CHECK(d->visit.item_n == d->entry_n && d->entry_n <= (size_t)c->max_entries);
		FUZZ_CHECK(stats(st).entry_n == before + (int64_t)d->visit.new_n);
	}
	return rc;
}

static int entry_good(void *ctx, const struct fw_entry_row *e)
{
	const struct fw_str all[] = {
		e->guid, e->url, e->title, e->author, e->summary, e->content, e->content_base, e->extra};

	for (size_t i = 0; i < FW_N(all); i++)
		FUZZ_CHECK(fw_utf8_valid(all[i].p, all[i].len) == all[i].len);
	++*(int64_t *)ctx;
	return 0;
}

static void all_known(struct fw_store *st, const struct fw_config *c, struct fw_str body, unsigned how)
{
	struct fw_delivery_result d;

	FUZZ_CHECK(!deliver(st, c, body, how, &d));
	FUZZ_CHECK(d.visit.new_n == 0 && d.visit.changed_n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fw_config *config;
	struct fw_str body = {(const char *)data + 1, size - 1};
	struct fw_entry_query every = {.oldest_first = true, .content = true};
	struct fw_delivery_result d;
	struct fw_store *st;
	int64_t n = 0;

	if (!size)
		return 0;
	if (!config) {
		FUZZ_CHECK(!fw_config_create(&config, NULL));
		FUZZ_CHECK(!fw_config_set(config, "max_entries", "40", "fuzz", NULL));
	}
	st = store_new();
	if (!deliver(st, config, body, data[0], &d)) {
		FUZZ_CHECK(!fw_store_entry_list(st, &every, entry_good, &n, NULL));
		FUZZ_CHECK(n == (int64_t)d.visit.new_n && d.visit.changed_n == 0);
		all_known(st, config, body, data[0]);
		FUZZ_CHECK(stats(st).entry_n == n);
	}
	fw_store_close(st);
	return 0;
}
