/* SPDX-License-Identifier: ISC */
/*
 * Helpers of drivers and the front: names, copies into arenas, server checks. Contracts: driver.h.
 */
#include <string.h>

#include "api/account.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/driver.h"
#include "store/fields.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *fw_visit_kind_name(enum fw_visit_kind kind)
{
	static const char *const names[] = {
		[FW_VISIT_NONE] = "none",
		[FW_VISIT_OK] = "ok",
		[FW_VISIT_SAME] = "same",
		[FW_VISIT_NOT_MODIFIED] = "not_modified",
		[FW_VISIT_HTTP] = "http",
		[FW_VISIT_DNS] = "dns",
		[FW_VISIT_CONNECT] = "connect",
		[FW_VISIT_TLS] = "tls",
		[FW_VISIT_TIMEOUT] = "timeout",
		[FW_VISIT_PROTOCOL] = "protocol",
		[FW_VISIT_FORMAT] = "format",
		[FW_VISIT_LIMIT] = "limit",
		[FW_VISIT_BLOCKED] = "blocked",
		[FW_VISIT_REDIRECT] = "redirect",
		[FW_VISIT_CRASH] = "crash",
		[FW_VISIT_GONE] = "gone",
		[FW_VISIT_LOCAL] = "local",
		[FW_VISIT_PUSHED] = "pushed",
	};

	_Static_assert(FW_N(names) == FW_VISIT_KIND_N, "a kind has no name");
	return (unsigned)kind < FW_N(names) ? names[kind] : "unknown";
}

const char *fw_feed_status_name(enum fw_feed_status status)
{
	switch (status) {
	case FW_FEED_ACTIVE:
		return "active";
	case FW_FEED_PAUSED:
		return "paused";
	case FW_FEED_GONE:
		return "gone";
	case FW_FEED_QUARANTINED:
		return "quarantined";
	}
	return "unknown";
}

/* ---- orders ---------------------------------------------------------------------------------- */

int store_match(const struct store *st, struct fw_arena *a, const struct fw_outcome *o, const struct fw_entry_row *e,
	bool is_new, struct store_matched *out, struct fw_err *err)
{
	const struct fw_matcher *m = st->matcher;
	struct fw_match_result found = {.drop = false};
	struct fw_entry_row *row;
	int64_t *order_id;
	int rc = m ? m->match(m->ctx, o, e, is_new, &found) : 0;

	*out = (struct store_matched){.e = e, .drop = found.drop && is_new};
	if (rc)
		return fw_err_set(
			err, rc, "feed %lld: matching the orders: %s", (long long)o->feed_id, fw_err_name(rc));
	if (out->drop)
		return 0;
	if (found.extra.p) {
		row = fw_arena_alloc(a, sizeof(*row));
		if (!row)
			return fw_no_memory(err);
		*row = *e;
		row->extra = fw_arena_str(a, found.extra);
		out->e = row;
	}
	if (found.n) {
		order_id = fw_arena_mul(a, found.n, sizeof(*order_id), 0);
		if (!order_id)
			return fw_no_memory(err);
		memcpy(order_id, found.order_id, found.n * sizeof(*order_id));
		out->order_id = order_id;
		out->n = found.n;
	}
	return a->failed ? fw_no_memory(err) : 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void texts_dup(struct fw_arena *a, const struct fw_field *field, size_t n, void *of)
{
	for (size_t i = 0; i < n; i++) {
		if (fw_field_is_text(&field[i]))
			fw_field_str_set(&field[i], of, fw_arena_str(a, fw_field_str(&field[i], of)));
	}
}

bool fw_store_feed_dup(struct fw_arena *a, struct fw_feed *f)
{
	f->why = fw_arena_str(a, f->why); /* the only text among the schedule's fields */
	texts_dup(a, fw_feed_fields, fw_feed_field_n, f);
	return !a->failed;
}

bool fw_store_entry_dup(struct fw_arena *a, struct fw_entry_row *e)
{
	texts_dup(a, fw_entry_fields, fw_entry_field_n, e);
	e->feed_title = fw_arena_str(a, e->feed_title);
	e->feed_url = fw_arena_str(a, e->feed_url);
	e->feed_folder = fw_arena_str(a, e->feed_folder);
	return !a->failed;
}

struct fw_feed store_feed_of_new(const struct fw_feed_new *f)
{
	return (struct fw_feed){.url = f->url,
		.user_title = f->user_title,
		.folder = f->folder,
		.home_page_url = f->home_page_url,
		.username = f->username,
		.password = f->password,
		.interval_ms = f->interval_ms,
		.due_at_ms = f->due_at_ms};
}

bool fw_store_record_dup(struct fw_arena *a, struct fw_record *r)
{
	r->kind = fw_arena_str(a, r->kind);
	r->key = fw_arena_str(a, r->key);
	r->value = fw_arena_str(a, r->value);
	return !a->failed;
}

int store_event_clash(const char *name, size_t n, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ECLASH, "%s: %zu rows have ids that belong to other rows: give them new ids", name, n);
}

int store_event_ids_over(const char *name, struct fw_err *err)
{
	return fw_err_set(err, FW_ELIMIT,
		"%s: events have ids up to the year 2093, so none is left above them (delete those of the future)",
		name);
}

int fw_store_record_missing(const char *name, struct fw_str kind, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no such record of kind %.*s", name, FW_STR_ARG(kind));
}

int store_invalid(const struct store *st, const char *why, struct fw_err *err)
{
	return FW_ERR(err, FW_EINVAL, "%s: %s", st->driver->name, why);
}

/* ---- limits of work -------------------------------------------------------------------------- */

#define LIMIT_LOOK_MS 20 /* between two looks whether somebody has left */

void fw_store_limit(struct fw_store *st, struct fw_work_limit *l)
{
	store_of(st)->limit = l;
}

bool store_is_over(struct store *st)
{
	struct fw_work_limit *l = st->limit;
	int64_t now_ms;

	if (!l || l->over)
		return l != NULL;
	now_ms = fw_mono_ms();
	l->over = now_ms >= l->until_ms;
	if (!l->over && l->left && now_ms - l->looked_ms >= LIMIT_LOOK_MS) {
		l->looked_ms = now_ms;
		l->over = l->left(l->ctx, now_ms);
	}
	return l->over;
}

int store_over(const char *name, struct fw_err *err)
{
	return fw_err_set(err, FW_EAGAIN, "%s: the request's time for the store is over: ask for less", name);
}

/* ---- servers --------------------------------------------------------------------------------- */

struct fw_str fw_store_url_rest(const char *url)
{
	const char *colon = strchr(url, ':');
	struct fw_str rest = fw_str(colon ? colon + 1 : url);

	if (fw_str_starts(rest, FW_STR("///")))
		rest = fw_str_sub(rest, 2, rest.len);
	return rest;
}

int fw_store_server_check(const char *store, const char *version, struct fw_err *err)
{
	static const struct {
		const char *sign, *name, *why;
	} LIKE[] = {
		{"TiDB", "TiDB", "SKIP LOCKED does not lock there"},
		{"Vitess", "Vitess", "over several shards a claim is not one transaction"},
		{"CockroachDB", "CockroachDB", "its locks and notifications are not PostgreSQL's"},
		{"-YB-", "YugabyteDB", "its locks and notifications are not PostgreSQL's"},
		{"Citus", "PostgreSQL with Citus", "over several shards a claim is not one transaction"},
	};

	for (size_t i = 0; i < FW_N(LIKE); i++) {
		if (strstr(version, LIKE[i].sign))
			return fw_err_set(err, FW_EINVAL,
				"%s: the server is %s (%.80s): %s, so feeds could be"
				" claimed twice (use PostgreSQL, MariaDB or MySQL)",
				store, LIKE[i].name, version, LIKE[i].why);
	}
	return 0;
}

void fw_store_lower(struct fw_buf *out, struct fw_str text)
{
	for (size_t i = 0; i < text.len; i++)
		fw_buf_addc(out, (char)fw_lower((unsigned char)text.p[i]));
}

bool fw_store_contains(struct fw_str text, struct fw_str low)
{
	for (size_t at = 0; low.len <= text.len && at <= text.len - low.len; at++) {
		size_t i = 0;

		while (i < low.len && fw_lower((unsigned char)text.p[at + i]) == (unsigned char)low.p[i])
			i++;
		if (i == low.len)
			return true;
	}
	return false;
}
