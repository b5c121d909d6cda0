/* SPDX-License-Identifier: ISC */
#include "engine/lead.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define KEY FW_STR("leader")
#define LEASE_MS FW_MINUTE_MS
#define MARGIN_MS (10 * FW_SECOND_MS) /* a leader stops this long before its lease ends */

void lead_init(struct lead *l, struct fw_str kind)
{
	*l = (struct lead){.kind = kind};
	fw_worker_name(l->name, sizeof(l->name), -1);
}

bool lead_is_safe(const struct lead *l)
{
	return fw_mono_ms() < l->safe_until_ms;
}

void lead_drop(struct lead *l)
{
	l->safe_until_ms = 0;
}

/* *ours: we hold the lead. The record of a dead process is removed. */
static int lead_read(struct lead *l, struct fw_store *st, bool *ours, int64_t *was_until_ms, struct fw_err *err)
{
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, l->kind, KEY, &a, &r, err);
	*ours = !rc && fw_str_eq(r.value, fw_str(l->name));
	*was_until_ms = rc ? 0 : r.until_ms;
	if (!rc && !*ours && r.value.len < FW_WORKER_NAME_MAX &&
		fw_worker_is_dead(fw_arena_dup(&a, r.value.p, r.value.len)))
		rc = fw_store_record_remove(st, l->kind, KEY, r.value, err);
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int lead_take(struct lead *l, struct fw_store *st, bool *mine, int64_t *was_until_ms, struct fw_err *err)
{
	int64_t now_ms = fw_store_now_ms(st), mono_ms = fw_mono_ms(), until_ms;
	struct fw_record r = {
		.kind = l->kind, .key = KEY, .value = fw_str(l->name), .at_ms = now_ms, .until_ms = now_ms + LEASE_MS};
	bool ours, was = false;
	int rc = lead_read(l, st, &ours, &until_ms, err);

	*mine = false;
	if (was_until_ms)
		*was_until_ms = until_ms;
	if (!rc)
		rc = fw_store_record_put(st, &r, !ours, &was, err);
	if (rc)
		return rc;
	*mine = ours || !was;
	l->safe_until_ms = *mine ? mono_ms + LEASE_MS - MARGIN_MS : 0;
	return 0;
}

int lead_exists(struct fw_store *st, struct fw_str kind, bool *exists, struct fw_err *err)
{
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(st, kind, KEY, &a, &r, err);
	*exists = !rc && r.until_ms > fw_store_now_ms(st);
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

void lead_leave(struct lead *l, struct fw_store *st)
{
	if (l->safe_until_ms && st && fw_store_record_remove(st, l->kind, KEY, fw_str(l->name), NULL))
		fw_debug("%.*s: the record 'leader' was not removed and will expire", FW_STR_ARG(l->kind));
	lead_drop(l);
}
