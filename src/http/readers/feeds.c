/* SPDX-License-Identifier: ISC */
/* The subscriptions of an account in memory. */
#include "http/readers/feeds.h"
#include "http/readers/icons.h"
#include "http/readers/subscriptions.h"

struct feeds_reading {
	struct reader_feeds *out;
	struct fw_arena *a;
};

static int feeds_add(void *ctx, const struct fw_subscription *s)
{
	struct feeds_reading *l = ctx;
	struct reader_feeds *f = l->out;

	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;

		f->feed = fw_arena_grow(l->a, f->feed, f->cap * sizeof(*f->feed), cap * sizeof(*f->feed));
		f->cap = cap;
		if (!f->feed)
			return FW_ENOMEM;
	}
	f->feed[f->n] = (struct reader_feed){.id = s->feed_id,
		.unread_n = s->unread_n,
		.newest_ms = s->newest_ms,
		.folder = fw_arena_str(l->a, s->folder)};
	if (s->feed) {
		f->feed[f->n].title = fw_arena_str(l->a, subscription_title(s));
		f->feed[f->n].url = fw_arena_str(l->a, s->feed->url);
		f->feed[f->n].home = fw_arena_str(l->a, s->feed->home_page_url);
		f->feed[f->n].icon = http_icon_named(l->a, s->feed);
		f->feed[f->n].error = fw_arena_str(l->a, s->feed->error);
		f->feed[f->n].visit_ms = s->feed->last_visit_ms;
		f->feed[f->n].due_ms = s->feed->due_at_ms;
		f->feed[f->n].http_status = s->feed->http_status;
		f->feed[f->n].fail_n = s->feed->fail_n;
		f->feed[f->n].status = s->feed->status;
	}
	f->n++;
	return l->a->failed ? FW_ENOMEM : 0;
}

int reader_feeds_read(struct reader *rd, int64_t feed_id, bool brief, struct reader_feeds *out)
{
	struct feeds_reading l = {out, &rd->p.arena};
	int rc;

	*out = (struct reader_feeds){.n = 0};
	rc = fw_account_subscription_list(rd->r->store, rd->account.id, feed_id, brief, feeds_add, &l, &rd->err);
	return rc == FW_ENOTFOUND ? 0 : rc; /* of a feed that is not subscribed */
}

const struct reader_feed *reader_feed_find(const struct reader_feeds *f, int64_t id)
{
	size_t from = 0, to = f->n;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (f->feed[at].id == id)
			return &f->feed[at];
		if (f->feed[at].id < id)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}
