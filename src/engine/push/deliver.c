/* SPDX-License-Identifier: ISC */
/*
 * A delivery: the body of a push becomes entries of a feed.
 *
 * The document and its rows live in the delivery's arena; their strings point into the body.
 * Storing needs no lease. It writes the entries and a visit. The feed's schedule, health,
 * validators and rhythm stay, because a push says nothing about the feed's server. A paused feed
 * accepts entries too: its owner paused the requests. Only fields of the feed that are still empty
 * (title and the like) are taken from the document.
 *
 * The quota (quota.c) limits a hub's document. Such documents are stored one at a time in a
 * process, so that each sees the count of the ones before. Pushes of the owner's own programs have
 * no quota.
 *
 * The outcome is built once. After FW_EAGAIN or FW_EIO the same outcome is sent again, over any
 * connection: the time of its visit tells the store whether it has it already. The counts are then
 * those of the last attempt.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/orders/orders.h"
#include "engine/push/quota.h"
#include "api/store_link.h"
#include "engine/rows.h"
#include "engine/settings.h"
#include "feedwheel/deliver.h"
#include "parse/parse.h"

#define RETRY_MS 100

struct fw_delivery {
	struct fw_arena arena; /* the document and the rows */
	struct fw_arena found; /* the feed, as last read */
	struct fw_document *doc;
	struct fw_entry_row *row;
	size_t row_n, repeat_n;
	struct fw_entry_key *retracted;
	size_t retracted_n;
	struct fw_feed was;
	struct fw_feed feed; /* the feed to write */
	struct fw_visit visit;
	struct fw_outcome outcome;
	bool is_made; /* the outcome is built; it does not change any more */
	/* the settings of the quota for a hub's document; else NULL */
	const struct fw_config *limits;
	struct quota quota;
};

static pthread_mutex_t delivery_quota_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- reading ------------------------------------------------------------- */

enum delivery_type { BODY_ANY, BODY_LINES, BODY_UNKNOWN };

/*
 * The type that the client declares. Format and dialect come from the body, which is more reliable.
 */
static enum delivery_type delivery_type_of(struct fw_str content_type)
{
	static const struct {
		const char *name;
		enum delivery_type type;
	} KNOWN[] = {
		{"application/feed+json", BODY_ANY},
		{"application/json", BODY_ANY},
		{"application/atom+xml", BODY_ANY},
		{"application/rss+xml", BODY_ANY},
		{"application/rdf+xml", BODY_ANY},
		{"application/xml", BODY_ANY},
		{"text/xml", BODY_ANY},
		{"application/x-ndjson", BODY_LINES},
		{"application/ndjson", BODY_LINES},
		{"application/jsonl", BODY_LINES},
	};
	struct fw_str rest, name = fw_str_trim(fw_str_split(content_type, ';', &rest));

	if (!name.len)
		return BODY_ANY;
	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		if (fw_str_ieq(name, fw_str(KNOWN[i].name)))
			return KNOWN[i].type;
	}
	return BODY_UNKNOWN;
}

/* True if s ends with the end tag of a feed's root element. Comments and white space may follow. */
static bool ends_with_root(struct fw_str s)
{
	static const char *const ROOT[] = {"feed", "rss", "RDF", "Channel", "CHANNEL"};
	struct fw_str name;
	size_t at;

	for (s = fw_str_trim(s); fw_str_ends(s, FW_STR("-->")); s = fw_str_trim(fw_str_sub(s, 0, at))) {
		for (at = s.len - 3; at && !fw_str_starts(fw_str_sub(s, at, s.len), FW_STR("<!--")); at--)
			;
	}
	if (!fw_str_ends(s, FW_STR(">")))
		return false;
	for (at = s.len; at && s.p[at - 1] != '<'; at--)
		;
	name = fw_str_trim(fw_str_sub(s, at, s.len - 1));
	if (!at || !fw_str_starts(name, FW_STR("/")))
		return false;
	for (size_t i = 0; i < FW_N(ROOT); i++) {
		if (fw_str_ends(name, fw_str(ROOT[i])))
			return true;
	}
	return false;
}

static bool document_is_json(const struct fw_document *d)
{
	return d->format == FW_JSON1 || d->format == FW_JSON11;
}

/* Refuses documents whose repairs may have lost entries; other repairs are accepted. */
static int delivery_check_repairs(const struct fw_document *d, struct fw_str body, struct fw_err *err)
{
	const struct fw_problem *p = d->problems, *last = p;

	if (!d->malformed || (!document_is_json(d) && ends_with_root(body)))
		return 0;
	if (document_is_json(d))
		return d->broken_line ? fw_err_set(err, FW_EINVAL, "line %u, column %u: broken JSON", d->broken_line,
						d->broken_column) :
					0;
	for (; p; p = p->next)
		last = p;
	return fw_err_set(err, FW_EINVAL, "line %u, column %u: the document ends before its root element is closed",
		last ? last->line : 0, last ? last->column : 0);
}

/*
 * An owner's push may use all of parse_memory_bytes, whatever its size. A hub's document gets the
 * memory of a fetched one.
 */
static size_t delivery_memory_max(const struct fw_config *c, const struct fw_delivery_input *in)
{
	return in->is_hub ? rows_memory_limit(in->body.len, (size_t)c->parse_memory_bytes) :
			    (size_t)c->parse_memory_bytes;
}

/* Names the limit and its setting, which the parser does not know. */
static int delivery_name_limit(
	const struct fw_delivery *d, const struct fw_config *c, const struct fw_delivery_input *in, struct fw_err *err)
{
	struct fw_err library = *err;

	if (in->is_hub && (d->arena.full || d->doc))
		return rows_memory_exceeded(in->body.len, (size_t)c->parse_memory_bytes, err);
	if (d->arena.full || d->doc)
		return fw_err_set(err, FW_ELIMIT,
			"the entries of %zu bytes need more than %lld bytes of memory: send them in"
			" parts, or raise parse_memory_bytes",
			in->body.len, (long long)c->parse_memory_bytes);
	if (strstr(library.text, "max_bytes"))
		return fw_err_set(err, FW_ELIMIT, "%s (raise max_body_bytes)", library.text);
	return FW_ELIMIT;
}

static int delivery_read(struct fw_delivery *d, const struct fw_config *c, const struct fw_delivery_input *in,
	struct fw_str base, struct fw_err *err)
{
	struct fw_parse_options o = {.url = base, .content_type = in->content_type, .now_ms = fw_config_now_ms(c)};
	enum delivery_type type = delivery_type_of(in->content_type);
	int64_t begin = fw_mono_us();
	int rc;

	if (type == BODY_UNKNOWN && in->any_type)
		o.content_type = FW_STR_NONE;
	else if (type == BODY_UNKNOWN)
		return fw_err_set(err, FW_EUNSUP,
			"%.*s: unsupported content type: send application/feed+json, application/atom+xml,"
			" application/rss+xml or application/x-ndjson",
			FW_STR_ARG(fw_str_sub(in->content_type, 0, 80)));
	if (!fw_str_trim(in->body).len)
		return fw_err_set(err, FW_EINVAL, "the body is empty");
	o.limits = fw_settings_limits(c);
	rc = (type == BODY_LINES ? fw_parse_ndjson : fw_parse_into)(&d->arena, in->body, &o, &d->doc, err);
	d->visit.parse_us = fw_mono_us() - begin;
	d->visit.wire_bytes = d->visit.body_bytes = in->body.len;
	/* the message for a line names it already */
	if (rc == FW_ELIMIT && !strstr(err->text, "parse_memory_bytes"))
		return delivery_name_limit(d, c, in, err);
	if (!rc && in->strict && d->doc->ended_early)
		return delivery_name_limit(d, c, in, err);
	rc = rc || !in->strict ? rc : delivery_check_repairs(d->doc, in->body, err);
	if (rc)
		return rc;
	d->visit.item_n = (uint32_t)d->doc->entry_n;
	if (in->strict && d->doc->dropped_n && d->doc->entry_n >= (size_t)c->max_entries)
		return fw_err_set(err, FW_ELIMIT,
			"more than max_entries = %lld entries: send them in parts, or raise it",
			(long long)c->max_entries);
	d->row = rows_from_document(&d->arena, in->feed_id, d->doc, false, &d->row_n);
	d->repeat_n = d->doc->entry_n - d->row_n;
	if (c->retract_entries)
		d->retracted = rows_retracted(&d->arena, in->feed_id, d->doc, d->row, &d->row_n, &d->retracted_n);
	if (d->arena.full)
		return delivery_name_limit(d, c, in, err);
	return d->arena.failed ?
		fw_err_set(err, FW_ENOMEM, "out of memory for the entries of a document of %zu bytes", in->body.len) :
		0;
}

static int delivery_find_feed(struct fw_delivery *d, struct fw_store *st, struct fw_err *err)
{
	int64_t id = d->visit.feed_id;

	if (id <= 0)
		return fw_err_set(err, FW_ENOTFOUND, "no feed has the number %lld", (long long)id);
	fw_arena_reset(&d->found, 0);
	return fw_store_feed_find(st, id, FW_STR_NONE, &d->found, &d->was, err);
}

int fw_delivery_open(struct fw_store *st, const struct fw_config *c, const struct fw_delivery_input *in,
	struct fw_delivery **out, struct fw_err *err)
{
	struct fw_delivery *d = calloc(1, sizeof(*d));
	struct fw_feed *was;
	int rc;

	*out = NULL;
	if (!d)
		return fw_no_memory(err);
	was = &d->was;
	d->limits = in->is_hub ? c : NULL;
	fw_arena_init(&d->arena, delivery_memory_max(c, in));
	fw_arena_init(&d->found, 0);
	d->visit = (struct fw_visit){.feed_id = in->feed_id,
		.kind = FW_VISIT_PUSHED,
		.slot = -1,
		.at_ms = in->at_ms ? in->at_ms : fw_config_now_ms(c)};
	rc = fw_config_check_disk(c, err);
	rc = rc ? rc : delivery_find_feed(d, st, err);
	/*
	 * relative URLs resolve against the final URL of the last fetch, as in a fetched document
	 */
	rc = rc ? rc :
		  delivery_read(d, c, in,
			  fw_arena_str(&d->arena, was->validator_url.len ? was->validator_url : was->url), err);
	if (rc)
		fw_delivery_close(d);
	else
		*out = d;
	return rc;
}

const struct fw_document *fw_delivery_document(const struct fw_delivery *d)
{
	return d->doc;
}

size_t fw_delivery_estimate(const struct fw_config *c, size_t body_bytes)
{
	return rows_memory_limit(body_bytes, (size_t)c->parse_memory_bytes);
}

size_t fw_delivery_bytes(const struct fw_delivery *d)
{
	return d->arena.used_bytes + d->found.used_bytes;
}

/* ---- storing ------------------------------------------------------------- */

static int delivery_make_outcome(struct fw_delivery *d, struct fw_store *st, struct fw_err *err)
{
	struct fw_outcome *o = &d->outcome;
	int rc = delivery_find_feed(d, st, err);

	assert(!d->is_made && d->doc);
	if (rc)
		return rc;
	if (!fw_feed_takes_entries(d->was.status))
		return fw_err_set(err, FW_EGONE, "feed %lld is %s: 'feedwheel resume' makes it accept entries again",
			(long long)d->was.id, fw_feed_status_name(d->was.status));
	d->feed = d->was;
	*o = (struct fw_outcome){.feed_id = d->was.id,
		.feed = &d->feed,
		.groups = rows_feed_meta(&d->feed, d->doc, true) ? FW_GROUP_META : 0,
		.visit = d->visit,
		.entries = d->row,
		.entry_n = d->row_n,
		.retracted = d->retracted,
		.retracted_n = d->retracted_n};
	rc = d->limits ? quota_apply(&d->quota, st, d->limits, &d->was, false, d->row, o, fw_store_now_ms(st), err) : 0;
	d->is_made = !rc;
	return rc;
}

static int delivery_push(struct fw_delivery *d, struct fw_store *st, struct fw_err *err)
{
	int rc = d->is_made ? 0 : delivery_make_outcome(d, st, err);

	rc = rc ? rc : orders_use(st, err);
	rc = rc ? rc : fw_store_push(st, &d->outcome, 1, err);
	if (rc || !d->outcome.rc)
		return rc;
	return fw_err_set(
		err, d->outcome.rc, "feed %lld was removed meanwhile, so nothing was stored", (long long)d->was.id);
}

static int delivery_push_in_quota(struct fw_delivery *d, struct fw_store *st, struct fw_err *err)
{
	int rc;

	pthread_mutex_lock(&delivery_quota_lock);
	rc = delivery_push(d, st, err);
	if (!rc)
		quota_count(&d->quota, st, &d->outcome, fw_store_now_ms(st));
	pthread_mutex_unlock(&delivery_quota_lock);
	return rc;
}

int fw_delivery_store(struct fw_delivery *d, struct fw_store *st, struct fw_delivery_result *out, struct fw_err *err)
{
	const struct fw_visit *v = &d->outcome.visit;
	int rc;

	assert(d->doc && d->row_n <= d->doc->entry_n);
	*out = (struct fw_delivery_result){.entry_n = d->doc->entry_n, .repeat_n = d->repeat_n};
	rc = d->limits ? delivery_push_in_quota(d, st, err) : delivery_push(d, st, err);
	out->visit = d->visit;
	if (rc)
		return rc;
	out->visit = *v;
	out->deferred_n = (size_t)d->quota.deferred_n;
	out->known_n = out->entry_n - out->repeat_n - out->deferred_n - v->new_n - v->changed_n;
	return 0;
}

void fw_delivery_close(struct fw_delivery *d)
{
	if (!d)
		return;
	fw_arena_finish(&d->arena);
	fw_arena_finish(&d->found);
	free(d);
}

int fw_deliver(struct fw_store *st, const struct fw_config *c, const struct fw_delivery_input *in,
	int64_t straggler_timeout_ms, struct fw_delivery_result *out, struct fw_err *err)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
	int64_t until_ms = fw_mono_ms() + straggler_timeout_ms;
	struct fw_delivery *d;
	int rc = fw_delivery_open(st, c, in, &d, err);

	*out = (struct fw_delivery_result){0};
	if (rc)
		return rc;
	while ((rc = fw_delivery_store(d, st, out, err)) == FW_EAGAIN && fw_mono_ms() < until_ms)
		nanosleep(&pause, NULL);
	fw_delivery_close(d);
	return rc;
}
