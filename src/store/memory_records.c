/* SPDX-License-Identifier: ISC */
/* Records, in order of kind and key. Each and its bytes are one allocation. */
#include <stdlib.h>

#include "store/memory.h"

static int compare(struct fw_str a, struct fw_str b)
{
	size_t n = FW_MIN(a.len, b.len);
	int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.len > b.len) - (a.len < b.len);
}

/* Where the first is that stands at this place or behind it; *there: it is the one. */
static size_t find(const struct list *l, struct fw_str kind, struct fw_str key, bool *there)
{
	size_t lo = 0, hi = l->n;

	*there = false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct fw_record *r = l->at[mid];
		int d = compare(r->kind, kind);

		d = d ? d : compare(r->key, key);
		*there |= !d;
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct fw_str bytes_put(char **to, struct fw_str s)
{
	char *at = *to;

	if (s.len)
		memcpy(at, s.p, s.len);
	*to += s.len;
	return (struct fw_str){at, s.len};
}

static struct fw_record *record_copy(const struct fw_record *r)
{
	struct fw_record *copy = malloc(sizeof(*copy) + r->kind.len + r->key.len + r->value.len);
	char *at = (char *)(copy + 1);

	if (!copy)
		return NULL;
	*copy = *r;
	copy->kind = bytes_put(&at, r->kind);
	copy->key = bytes_put(&at, r->key);
	copy->value = bytes_put(&at, r->value);
	return copy;
}

static bool is_over(const struct fw_record *r, int64_t now_ms)
{
	return r->until_ms != FW_NO_DATE && r->until_ms <= now_ms;
}

int mem_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct list *l = &mem_of(st)->records;
	struct fw_record *copy;
	bool there;
	size_t i = find(l, r->kind, r->key, &there);

	*was = if_absent && there && !is_over(l->at[i], r->at_ms);
	if (*was)
		return 0;
	copy = record_copy(r);
	if (!copy || mem_list_room(l, 1)) {
		free(copy);
		return mem_no_memory(err);
	}
	if (there) {
		free(l->at[i]);
	} else {
		memmove(&l->at[i + 1], &l->at[i], (l->n - i) * sizeof(*l->at));
		l->n++;
	}
	l->at[i] = copy;
	return 0;
}

int mem_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	const struct list *l = &mem_of(st)->records;
	bool there;
	size_t i = find(l, kind, key, &there);

	if (!there)
		return fw_store_record_missing("memory store", kind, err);
	*out = *(const struct fw_record *)l->at[i];
	return fw_store_record_dup(a, out) ? 0 : mem_no_memory(err);
}

int mem_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	const struct list *l = &mem_of(st)->records;
	bool there;
	size_t from = find(l, q->after_kind, q->after_key, &there);
	int rc = 0;

	(void)err;
	from += there;
	for (size_t i = from; i < l->n && !rc && (!q->limit || i < from + q->limit); i++) {
		const struct fw_record *r = l->at[i];

		if (q->kind.p && !fw_str_eq(r->kind, q->kind))
			break;
		rc = cb(ctx, r);
	}
	return rc;
}

int mem_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct list *l = &mem_of(st)->records;
	bool there;
	size_t i = find(l, kind, key, &there);

	if (!there || (value.p && !fw_str_eq(((const struct fw_record *)l->at[i])->value, value)))
		return fw_store_record_missing("memory store", kind, err);
	free(l->at[i]);
	mem_list_cut(l, i);
	return 0;
}

int mem_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct list *l = &mem_of(st)->records;
	size_t kept = 0;

	(void)err;
	for (size_t i = 0; i < l->n; i++) {
		struct fw_record *r = l->at[i];

		if (*n < FW_RECORD_STEP && is_over(r, now_ms)) {
			free(r);
			++*n;
		} else {
			l->at[kept++] = r;
		}
	}
	l->n = kept;
	return 0;
}

void mem_records_free(struct memory *m)
{
	for (size_t i = 0; i < m->records.n; i++)
		free(m->records.at[i]);
	free(m->records.at);
}
