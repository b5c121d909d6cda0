/* SPDX-License-Identifier: ISC */
/* Pushed events, in order of id. An event and its text are one allocation. */
#include <stdlib.h>

#include "store/memory.h"

/* Where the first with this id or a higher one is; new ones come last, nearly always. */
static size_t index_of(const struct list *l, int64_t id, int64_t (*id_of)(const void *))
{
	size_t lo = 0, hi = l->n;

	if (hi && id_of(l->at[hi - 1]) < id)
		return hi;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (id_of(l->at[mid]) < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int64_t event_id(const void *e)
{
	return ((const struct fw_event *)e)->id;
}

static int64_t dead_id(const void *e)
{
	return ((const struct fw_dead_event *)e)->id;
}

static struct fw_str text_put(char **to, struct fw_str s)
{
	char *at = *to;

	if (s.len)
		memcpy(at, s.p, s.len);
	*to += s.len;
	return (struct fw_str){at, s.len};
}

static struct fw_event *event_copy(const struct fw_event *e)
{
	struct fw_event *copy = malloc(sizeof(*copy) + e->property.len + e->remote_ip.len);
	char *text = (char *)(copy + 1);

	if (!copy)
		return NULL;
	*copy = *e;
	copy->property = text_put(&text, e->property);
	copy->remote_ip = text_put(&text, e->remote_ip);
	return copy;
}

static void insert(struct list *l, size_t at, void *item)
{
	memmove(&l->at[at + 1], &l->at[at], (l->n - at) * sizeof(*l->at));
	l->at[at] = item;
	l->n++;
}

int mem_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct fw_event **copy = calloc(n, sizeof(*copy));
	bool failed = !copy || mem_list_room(&m->events, n);

	for (size_t i = 0; i < n && !failed; i++) {
		copy[i] = event_copy(&event[i]);
		failed = !copy[i];
	}
	for (size_t i = 0; i < n && copy; i++) {
		size_t at = index_of(&m->events, event[i].id, event_id);

		if (failed || (at < m->events.n && event_id(m->events.at[at]) == event[i].id))
			free(copy[i]);
		else
			insert(&m->events, at, copy[i]);
	}
	free(copy);
	return failed ? mem_no_memory(err) : 0;
}

int mem_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct list *l = &m->dead_events;
	size_t at = index_of(l, event->id, dead_id);
	struct fw_dead_event *copy;
	char *text;

	copy = malloc(sizeof(*copy) + event->row.len + event->reason.len);
	if (!copy || mem_list_room(l, 1)) {
		free(copy);
		return mem_no_memory(err);
	}
	*copy = *event;
	text = (char *)(copy + 1);
	copy->row = text_put(&text, event->row);
	copy->reason = text_put(&text, event->reason);
	if (at < l->n && dead_id(l->at[at]) == event->id) {
		free(l->at[at]);
		l->at[at] = copy;
	} else {
		insert(l, at, copy);
	}
	return 0;
}

int mem_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	const struct list *l = &mem_of(st)->events;
	size_t from = after_id == INT64_MAX ? l->n : index_of(l, after_id + 1, event_id);
	int rc = 0;

	(void)err;
	for (size_t i = from; i < l->n && !rc && (!limit || i < from + limit); i++)
		rc = cb(ctx, l->at[i]);
	return rc;
}

int mem_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	const struct list *l = &mem_of(st)->dead_events;
	size_t from = after_id == INT64_MAX ? l->n : index_of(l, after_id + 1, dead_id);
	int rc = 0;

	(void)err;
	for (size_t i = from; i < l->n && !rc && (!limit || i < from + limit); i++)
		rc = cb(ctx, l->at[i]);
	return rc;
}

int mem_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct list *l = &mem_of(st)->dead_events;

	(void)err;
	for (size_t i = 0; i < n; i++) {
		size_t at = index_of(l, event[i].id, dead_id);

		if (at == l->n || dead_id(l->at[at]) != event[i].id)
			continue;
		free(l->at[at]);
		memmove(&l->at[at], &l->at[at + 1], (--l->n - at) * sizeof(*l->at));
	}
	return 0;
}

static int64_t event_stamp(const void *e)
{
	return ((const struct fw_event *)e)->stamp_ms;
}

static int64_t dead_at(const void *e)
{
	return ((const struct fw_dead_event *)e)->at_ms;
}

/* Of the first FW_EVENT_STEP those that are older; how many went. */
static int64_t step(struct list *l, int64_t before_ms, int64_t (*time_of)(const void *))
{
	size_t n = FW_MIN(l->n, (size_t)FW_EVENT_STEP), kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (time_of(l->at[i]) < before_ms)
			free(l->at[i]);
		else
			l->at[kept++] = l->at[i];
	}
	if (n)
		memmove(&l->at[kept], &l->at[n], (l->n - n) * sizeof(*l->at));
	l->n -= n - kept;
	return (int64_t)(n - kept);
}

int mem_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct memory *m = mem_of(st);

	(void)err;
	*n = step(&m->events, before_ms, event_stamp) + step(&m->dead_events, before_ms, dead_at);
	return 0;
}

void mem_events_free(struct memory *m)
{
	for (size_t i = 0; i < m->events.n; i++)
		free(m->events.at[i]);
	for (size_t i = 0; i < m->dead_events.n; i++)
		free(m->dead_events.at[i]);
	free(m->events.at);
	free(m->dead_events.at);
}
