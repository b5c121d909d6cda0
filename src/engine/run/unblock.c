/* SPDX-License-Identifier: ISC */
/*
 * What the settings were is a record of kind "setting", its key the setting's name, its value the setting; none: it was empty. It is
 * written when the feeds are due: a crash between makes them due twice rather than never.
 *
 * Which setting blocked a feed its error tells: it names the one that can permit it (fetch/judge.c).
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/unblock.h"
#include "base/banned.h"

#define KIND FW_STR("setting")
#define PAGE_N 500

struct page {
	struct fw_str setting; /* what the error has to name */
	int64_t last_id;
	size_t n, seen_n;
	int64_t id[PAGE_N];
};

static int page_take(void *ctx, const struct fw_feed *f)
{
	struct page *p = ctx;

	p->last_id = f->id;
	p->seen_n++;
	if (f->last_kind == FW_VISIT_BLOCKED && fw_str_find(f->error, p->setting))
		p->id[p->n++] = f->id;
	return 0;
}

static int make_due(struct fw_store *st, struct fw_str setting, int64_t now_ms, size_t *n, struct fw_err *err)
{
	struct page p = {.setting = setting};
	int rc;

	do {
		struct fw_feed_query q = {.status = FW_FEED_ACTIVE, .failing = true, .after_id = p.last_id, .limit = PAGE_N};

		p.n = p.seen_n = 0;
		rc = fw_store_feed_list(st, &q, page_take, &p, err);
		for (size_t i = 0; !rc && i < p.n; i++) {
			struct fw_feed to = {.id = p.id[i], .due_at_ms = now_ms};

			rc = fw_store_feed_set(st, &to, FW_SET_DUE, err);
			if (rc == FW_ENOTFOUND) /* removed meanwhile */
				rc = 0;
			else if (!rc)
				++*n;
		}
	} while (!rc && p.seen_n == PAGE_N);
	return rc;
}

static bool lists(struct fw_str list, struct fw_str item)
{
	while (list.p) {
		if (fw_str_eq(fw_str_trim(fw_str_split(list, ',', &list)), item))
			return true;
	}
	return false;
}

/* Does one list name a network that the other does not? */
static bool has_more(struct fw_str list, struct fw_str other)
{
	while (list.p) {
		struct fw_str item = fw_str_trim(fw_str_split(list, ',', &list));

		if (item.len && !lists(other, item))
			return true;
	}
	return false;
}

/* more_permits: a network more in it opens, rather than shuts. */
static int look_at(struct fw_store *st, struct fw_str setting, const char *now, bool more_permits, int64_t now_ms, size_t *n, struct fw_err *err)
{
	struct fw_str is = now ? fw_str(now) : FW_STR("");
	struct fw_record was, keep = {.kind = KIND, .key = setting, .value = is, .at_ms = now_ms, .until_ms = FW_NO_DATE};
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, KIND, setting, &a, &was, err);
	if (rc == FW_ENOTFOUND) {
		was.value = FW_STR("");
		rc = 0;
	}
	if (rc || fw_str_eq(was.value, is))
		goto out;
	if (more_permits ? has_more(is, was.value) : has_more(was.value, is))
		rc = make_due(st, setting, now_ms, n, err);
	if (!rc)
		rc = fw_store_record_put(st, &keep, false, NULL, err);
out:
	fw_arena_finish(&a);
	return rc;
}

int unblock_feeds(struct fw_store *st, const struct fw_config *c, int64_t now_ms, size_t *n, struct fw_err *err)
{
	int rc;

	*n = 0;
	rc = look_at(st, FW_STR("allow_networks"), c->allow_networks, true, now_ms, n, err);
	return rc ? rc : look_at(st, FW_STR("deny_networks"), c->deny_networks, false, now_ms, n, err);
}
