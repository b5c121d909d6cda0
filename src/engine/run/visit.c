/* SPDX-License-Identifier: ISC */
/*
 * A visit from the response to the outcome: visit_read() and visit_conclude(), top to bottom.
 *
 * In: a claimed feed (all that is known of it) and a completed fetch. Out: an outcome for the
 * store's commit. Nothing here blocks or touches the store. The clock is read only to measure the
 * parse time. Every string of the outcome lives in the visit's arena, the body or the claim.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/named_feed.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/rows.h"
#include "engine/run/visit.h"
#include "parse/discover.h"
#include "parse/feed/podcast.h"
#include "parse/html/link_header.h"
#include "parse/parse.h"
#include "sched/rhythm.h"
#include "sched/trust.h"

#define ADOPT_AFTER_MS FW_DAY_MS /* POL-09 */
#define ADOPT_SIGHTINGS 3
#define NAMED_SIGHTINGS 2
#define COOLDOWN_MS (30 * FW_SECOND_MS) /* cooldown of a throttled host that names no time */
#define ARENA_KEEP ((size_t)4096)       /* small, because there may be thousands of visits */
#define BODY_KEEP ((size_t)4096)

/* Is a check of this server's 304s due? */
static bool visit_wants_304_check(const struct fw_feed *feed, int64_t now_ms)
{
	struct fw_rhythm known;

	/* the usual case: skips the parse of the rhythm */
	if (!feed->validators_ms || (feed->validators_ms <= now_ms && now_ms - feed->validators_ms < FW_DAY_MS))
		return false;
	fw_rhythm_read(feed->rhythm, &known);
	return now_ms >= fw_trust_until(&known, feed->validators_ms, feed->last_new_ms, now_ms);
}

void visit_prepare(struct visit *v, int64_t now_ms)
{
	const struct fw_feed *feed = v->was;
	struct fw_fetch *f = &v->fetch;

	f->url = feed->url;
	f->username = feed->username;
	f->password = feed->password;
	v->checks_304 = visit_wants_304_check(feed, now_ms);
	if (!v->checks_304) {
		f->validator_url = feed->validator_url;
		f->etag = feed->etag;
		f->last_modified = feed->last_modified;
	}
	v->feed = *feed;
	v->outcome = (struct fw_outcome){.feed_id = feed->id, .feed = &v->feed};
}

/* ---- reading the document -------------------------------------------------------------------- */

/* Complete a limit error with the setting's name, which the library does not know. */
static void error_name_limit(struct fw_err *err, const struct fw_arena *a, size_t len, const struct visit_rules *r)
{
	struct fw_err library = *err;

	if (a->full)
		(void)rows_memory_exceeded(len, r->parse_memory, err);
	else
		fw_err_set(err, FW_ELIMIT, "%s (to raise the limit, set max_body_bytes)", library.text);
}

void visit_parse(const struct fw_fetch *f, const struct visit_rules *r, int64_t now_ms, struct fw_arena *a,
	struct visit_reading *out)
{
	struct fw_str body = fw_buf_str(&f->body);
	struct fw_parse_options o = {
		.url = f->final_url,
		.content_type = f->h_content_type,
		.content_location = f->h_content_location,
		.limits = r->limits,
		.now_ms = now_ms,
	};
	int64_t begin = fw_mono_us();
	int rc;

	out->doc = NULL;
	out->feeds = NULL;
	out->hub = out->self = FW_STR_NONE;
	a->max_bytes = fw_size(a->used_bytes, 1, rows_memory_limit(body.len, r->parse_memory));
	rc = fw_parse_into(a, body, &o, &out->doc, &out->err);
	out->parse_us = fw_mono_us() - begin;
	if (rc == FW_ELIMIT)
		error_name_limit(&out->err, a, body.len, r);
	out->kind = !rc          ? FW_VISIT_OK :
		rc == FW_EFORMAT ? FW_VISIT_FORMAT :
		rc == FW_ELIMIT  ? FW_VISIT_LIMIT :
				   FW_VISIT_LOCAL;
	if (out->kind == FW_VISIT_LIMIT || out->kind == FW_VISIT_LOCAL)
		fw_arena_reset(a, ARENA_KEEP);
	if (out->kind != FW_VISIT_FORMAT)
		return;
	if (fw_find_feeds(a, f->h_link, body, f->h_content_type, f->final_url, &out->feeds, NULL))
		out->feeds = NULL;
	if (fw_find_hub(a, f->h_link, body, f->h_content_type, f->final_url, &out->hub, &out->self, NULL))
		out->hub = FW_STR_NONE;
	if (a->full) /* links of a page are optional */
		a->failed = a->full = false;
}

#define NAMES_FEEDS "; it names feeds: subscribe to "
#define NEXT_FEED ", "

struct fw_str fw_named_feed(const struct fw_feed *f)
{
	const char *at = f->last_kind == FW_VISIT_FORMAT ? fw_str_find(f->error, FW_STR(NAMES_FEEDS)) : NULL, *end;
	struct fw_str url;

	if (!at)
		return FW_STR_NONE;
	url = fw_str_sub(f->error, (size_t)(at - f->error.p) + strlen(NAMES_FEEDS), f->error.len);
	end = fw_str_find(url, FW_STR(NEXT_FEED));
	return end ? fw_str_sub(url, 0, (size_t)(end - url.p)) : url;
}

/* Extend the error: "not a feed but an HTML page; it names feeds: subscribe to URL, URL". */
static void error_name_feeds(const struct fw_link *found, struct fw_err *why)
{
	struct fw_buf text = FW_BUF_INIT(sizeof(why->text));
	int n = 0;

	fw_buf_adds(&text, why->text);
	for (; found && n < 3; found = found->next) {
		/* skip a URL that would be truncated */
		if (text.len + found->href.len + 40 > sizeof(why->text))
			continue;
		fw_buf_adds(&text, n++ ? NEXT_FEED : NAMES_FEEDS);
		fw_buf_addstr(&text, found->href);
	}
	if (n && !text.rc)
		fw_err_set(why, FW_EFORMAT, "%s", text.p);
	fw_buf_finish(&text);
}

/*
 * Is the document damaged before its first entry, though the feed had entries? Then it is not an
 * empty feed.
 */
static bool document_lost_all(const struct visit *v, const struct fw_document *d, struct fw_err *why)
{
	const struct fw_problem *first = d->problems;

	if (!d->malformed || d->entry_n || !v->was->last_new_ms)
		return false;
	if (first && first->line)
		fw_err_set(why, FW_EFORMAT,
			"malformed document: no entry could be read, although the feed had entries: %s (line %u, "
			"column %u)",
			first->what, (unsigned)first->line, (unsigned)first->column);
	else
		fw_err_set(
			why, FW_EFORMAT, "malformed document: no entry could be read, although the feed had entries");
	return true;
}

/* Kind OK: detect an unchanged body by its hash, else parse it. */
static void visit_read_document(struct visit *v, const struct visit_rules *r, int64_t now_ms)
{
	struct fw_fetch *f = &v->fetch;
	struct visit_reading got;

	v->body_hash = fw_hash64(f->body.p, f->body.len);
	if (v->was->body_hash && v->body_hash == v->was->body_hash) {
		f->kind = FW_VISIT_SAME;
		return;
	}
	visit_parse(f, r, now_ms, &v->arena, &got);
	f->visit.parse_us = got.parse_us;
	if (got.kind == FW_VISIT_OK && document_lost_all(v, got.doc, &got.err)) {
		got.kind = FW_VISIT_FORMAT;
		got.doc = NULL;
	}
	v->doc = got.doc;
	f->kind = got.kind;
	if (got.kind == FW_VISIT_OK)
		return;
	f->err = got.err;
	v->named = got.feeds ? got.feeds->href : FW_STR_NONE;
	v->page_hub = got.hub;
	v->page_self = got.self;
	error_name_feeds(got.feeds, &f->err);
}

/* The transfer broke off in the body: keep the entries that arrived; the visit still fails. */
static void visit_read_partial(struct visit *v, const struct visit_rules *r, int64_t now_ms)
{
	struct visit_reading got;

	if (!v->fetch.body_partial || !v->fetch.body.len)
		return;
	visit_parse(&v->fetch, r, now_ms, &v->arena, &got);
	v->doc = got.doc;
	v->fetch.visit.parse_us = got.parse_us;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void visit_rows(struct visit *v, const struct visit_rules *r)
{
	struct fw_outcome *o = &v->outcome;

	o->visit.item_n = (uint32_t)v->doc->entry_n;
	/* room for the rows of a document that fills the ceiling */
	v->arena.max_bytes += v->arena.max_bytes / 4;
	/* the next visit stores the last entry of a document that broke off */
	v->row = rows_from_document(&v->arena, v->feed.id, v->doc, v->fetch.body_partial, &o->entry_n);
	o->entries = v->row;
	/* a part of a document may lack the newer entry that overrules a retraction */
	if (r->retract && !v->fetch.body_partial)
		o->retracted = rows_retracted(&v->arena, v->feed.id, v->doc, v->row, &o->entry_n, &o->retracted_n);
}

/*
 * Memory ran out: half a document must not pass for a whole one. Its validators are not kept, so
 * the server sends it again.
 */
static void visit_drop(struct visit *v, const struct visit_rules *r)
{
	struct fw_fetch *f = &v->fetch;
	bool full = v->arena.full;

	v->doc = NULL;
	v->named = v->page_hub = v->page_self = FW_STR_NONE;
	v->outcome.entries = NULL;
	v->outcome.entry_n = v->outcome.retracted_n = 0;
	v->outcome.visit.item_n = 0;
	fw_arena_reset(&v->arena, ARENA_KEEP);
	f->kind = full ? FW_VISIT_LIMIT : FW_VISIT_LOCAL;
	if (full)
		(void)rows_memory_exceeded(f->body.len, r->parse_memory, &f->err);
	else
		fw_err_set(&f->err, FW_ENOMEM, "out of memory for the entries of a document of %zu bytes", f->body.len);
}

void visit_read(struct visit *v, const struct visit_rules *r, int64_t now_ms)
{
	struct fw_fetch *f = &v->fetch;

	if (v->our_network) {
		struct fw_err what = f->err;

		f->kind = FW_VISIT_LOCAL;
		fw_err_set(&f->err, FW_EIO, "our own network seems to be down: %s", what.text);
	}
	if (f->coded)
		fw_fetch_decode(f);
	if (f->kind == FW_VISIT_OK)
		visit_read_document(v, r, now_ms);
	else
		visit_read_partial(v, r, now_ms);
	if (v->doc)
		visit_rows(v, r);
	if (v->arena.failed)
		visit_drop(v, r);
	v->arena.max_bytes = 0;
	/* nothing borrows from the body */
	if (!v->doc && f->kind != FW_VISIT_FORMAT && f->body.cap > BODY_KEEP)
		fw_buf_finish(&f->body);
}

/* ---- the feed's new state -------------------------------------------------------------------- */

static bool str_update(struct fw_str *dst, struct fw_str src)
{
	if (fw_str_eq(*dst, src))
		return false;
	*dst = src;
	return true;
}

/*
 * Hub and topic: from the Link header, else from the document (WebSub section 4). The default topic
 * is the document's own address.
 */
static bool state_hub(struct visit *v)
{
	const struct fw_fetch *f = &v->fetch;
	struct fw_link *hub = fw_link_header(&v->arena, f->h_link, f->final_url, FW_STR("hub"));
	const struct fw_link *self = fw_link_header(&v->arena, f->h_link, f->final_url, FW_STR("self"));
	struct fw_str topic = self && fw_url_is_web(self->href) ? self->href :
		fw_url_is_web(v->doc->feed_url)                 ? v->doc->feed_url :
								  f->final_url;
	bool changed;

	if (hub)
		v->doc->hubs = hub; /* all hubs: unsuitable ones are skipped later */
	hub = v->doc->hubs;
	changed = str_update(&v->feed.hub, hub ? hub->href : FW_STR_NONE);
	return str_update(&v->feed.topic, v->feed.hub.len ? topic : FW_STR_NONE) || changed;
}

static void state_meta(struct visit *v)
{
	const struct fw_document *d = v->doc;
	struct fw_feed *s = &v->feed;
	bool changed = s->format != d->format;

	s->format = d->format;
	changed |= rows_feed_meta(s, d, false);
	changed |= state_hub(v);
	changed |= str_update(&s->extra, rows_feed_extra(&v->arena, d));
	if (changed)
		v->outcome.groups |= FW_GROUP_META;
	if (d->expired)
		s->status = FW_FEED_GONE;
}

/* All validators change together, byte for byte as sent with this body (FRB 001-014). */
static void state_validators(struct visit *v, int64_t now_ms)
{
	struct fw_fetch *f = &v->fetch;
	struct fw_feed *s = &v->feed;

	s->validator_url = f->final_url;
	s->etag = f->h_etag;
	s->last_modified = f->h_last_modified;
	s->validators_ms = f->h_etag.p || f->h_last_modified.p ? now_ms : 0;
	s->body_hash = v->body_hash;
	v->outcome.groups |= FW_GROUP_VALIDATORS;
}

/*
 * The document arrived whole but could not be read. Drop the validators of the document before it:
 * a server that gives both documents the same ones would reply 304, and the fault would go
 * unnoticed.
 */
static void state_unread(struct visit *v)
{
	const struct fw_feed *s = &v->feed;

	if (s->etag.p || s->last_modified.p || s->body_hash)
		visit_drop_validators(v);
}

static bool url_same_host(struct fw_str a, struct fw_str b)
{
	char one[HOST_KEY_MAX], other[HOST_KEY_MAX];

	return fw_url_host(a, one, sizeof(one)) && fw_url_host(b, other, sizeof(other)) && strcmp(one, other) == 0;
}

/*
 * The address that the document names as its own, if it differs from the feed's address and from
 * the fetched one. rel=self counts only on another host: on the same host it is mostly another
 * spelling, or one page of several.
 */
static struct fw_str document_named_url(struct visit *v)
{
	const struct fw_document *d = v->doc;
	struct fw_str named = fw_new_feed_url(d), url, user, pass;

	if (!named.len)
		named = d->feed_url;
	if (!fw_url_is_web(named) || fw_url_clean(&v->arena, named, &url, &user, &pass, NULL) || user.len ||
		fw_str_eq(url, v->feed.url) || fw_str_eq(url, v->fetch.final_url))
		return FW_STR_NONE;
	if (d->format != FW_JSON1 && d->format != FW_JSON11 && !fw_new_feed_url(d).len &&
		url_same_host(url, v->feed.url))
		return FW_STR_NONE;
	return url;
}

/*
 * No redirect: count whether the document names another address. An unchanged document names the
 * same one as before.
 */
static void state_named(struct visit *v, int64_t now_ms)
{
	struct fw_feed *s = &v->feed;
	struct fw_str to;

	if (v->fetch.kind != FW_VISIT_OK && fw_feed_redirect_is_named(s))
		return;
	to = v->fetch.kind == FW_VISIT_OK ? document_named_url(v) : FW_STR_NONE;
	if (fw_str_eq(to, s->redirect_url) && (!s->redirect_n || s->redirect_n >= FW_REDIRECT_NAMED + NAMED_SIGHTINGS))
		return; /* no address, a rejected one, or counted often enough */
	v->outcome.groups |= FW_GROUP_REDIRECT;
	if (fw_feed_redirect_is_named(s) && fw_str_eq(to, s->redirect_url)) {
		s->redirect_n++;
		return;
	}
	s->redirect_url = to;
	s->redirect_n = to.len ? FW_REDIRECT_NAMED + 1 : 0;
	s->redirect_since_ms = to.len ? now_ms : 0;
}

/* Count a permanent redirect, or forget one that is gone. visit.h says when it is adopted. */
static void state_redirect(struct visit *v, int64_t now_ms)
{
	struct fw_str to = v->fetch.permanent_url;
	struct fw_feed *s = &v->feed;
	bool named = fw_feed_redirect_is_named(s);

	if (!to.len) {
		state_named(v, now_ms);
		return;
	}
	/* rejected: it leads to something else */
	if (fw_str_eq(to, s->redirect_url) && !s->redirect_n)
		return;
	v->outcome.groups |= FW_GROUP_REDIRECT;
	if (str_update(&s->redirect_url, to)) {
		s->redirect_n = 0;
		s->redirect_since_ms = now_ms;
	} else if (named) {
		s->redirect_n -= FW_REDIRECT_NAMED;
	}
	if (!s->redirect_n++ || named) { /* the first redirected visit */
		v->new_target = v->fetch.kind == FW_VISIT_OK && s->last_ok_ms;
		return;
	}
	/* the login must not reach another origin */
	if (fw_feed_has_login(s) && !fw_url_same_origin(s->url, to))
		return;
	if (s->redirect_n >= ADOPT_SIGHTINGS && now_ms - s->redirect_since_ms >= ADOPT_AFTER_MS) {
		s->url = to;
		s->redirect_url = FW_STR_NONE;
		s->redirect_n = 0;
		v->outcome.groups |= FW_GROUP_URL;
	}
}

static void visit_set_rhythm(struct visit *v, struct fw_str text)
{
	if (!text.len || fw_str_eq(v->feed.rhythm, text))
		return;
	v->feed.rhythm = fw_arena_str(&v->arena, text);
	v->outcome.groups |= FW_GROUP_RHYTHM;
}

void visit_note_304_check(struct visit *v, enum fw_trust_found found, int64_t now_ms)
{
	char text[FW_RHYTHM_MAX];
	size_t len = fw_trust_record(v->feed.rhythm, found, now_ms, text);

	visit_set_rhythm(v, (struct fw_str){text, len});
}

/*
 * Result of a check. A server that replies 304 to a request without validators sends 304 to
 * anything.
 */
static void state_trust(struct visit *v, int64_t now_ms)
{
	const struct fw_fetch *f = &v->fetch;
	bool denied = f->kind == FW_VISIT_PROTOCOL && f->http_status == 304;

	if (!v->checks_304 || f->kind == FW_VISIT_LOCAL)
		return;
	visit_note_304_check(v,
		f->kind == FW_VISIT_SAME ? FW_TRUST_UNCHANGED :
			denied           ? FW_TRUST_DENIED :
					   FW_TRUST_UNCLEAR,
		now_ms);
	v->compare_304 = f->kind == FW_VISIT_OK;
}

static void state_rhythm(struct visit *v, const struct fw_due_facts *facts, int64_t now_ms)
{
	char text[FW_RHYTHM_MAX];
	int64_t *dates = fw_arena_mul(&v->arena, v->doc->entry_n + 1, sizeof(*dates), 0);
	size_t n = 0, len;

	for (const struct fw_entry *e = v->doc->entries; e && dates; e = e->next) {
		int64_t at = e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms;

		if (at != FW_NO_DATE)
			dates[n++] = at;
	}
	len = fw_rhythm_learn(v->feed.rhythm, dates, n, facts, now_ms, text);
	visit_set_rhythm(v, (struct fw_str){text, len});
}

/*
 * First visit of a subscription that is an HTML page: switch to the first feed that the page names,
 * its default (HTML standard, 4.6.7.1). Not if a login would reach another origin, nor if the
 * address was a feed or a page before.
 */
static void state_page(struct visit *v)
{
	const struct fw_feed *was = v->was;
	struct fw_str url, user, pass;

	if (v->fetch.kind != FW_VISIT_FORMAT || !v->named.len || was->last_ok_ms || was->last_kind == FW_VISIT_FORMAT ||
		fw_url_clean(&v->arena, v->named, &url, &user, &pass, NULL) || user.len || fw_str_eq(url, was->url) ||
		(fw_feed_has_login(was) && !fw_url_same_origin(was->url, url)))
		return;
	v->page_replaced = true;
	v->feed.url = url;
	v->feed.fail_n = 0;
	v->feed.error = FW_STR_NONE;
	v->outcome.groups |= FW_GROUP_URL;
	fw_err_set(
		&v->fetch.err, FW_EFORMAT, "an HTML page; replaced by the feed that it names: %.*s", FW_STR_ARG(url));
	v->outcome.visit.error = fw_arena_str(&v->arena, fw_str(v->fetch.err.text));
}

/* Set the host whose limits apply from now on. */
static void visit_learn_host_key(struct visit *v, const struct visit_rules *r)
{
	const struct fw_fetch *f = &v->fetch;
	char key[HOST_KEY_MAX];

	if (!host_key(&r->host, v->feed.url, f->resolved ? f->address : NULL, key) ||
		fw_str_eq(v->feed.host_key, fw_str(key)))
		return;
	v->feed.host_key = key[0] ? fw_arena_str(&v->arena, fw_str(key)) : FW_STR_NONE;
}

/* Set the host, except on a visit that changes the feed's address: the next visit does. */
static void state_host(struct visit *v, const struct visit_rules *r)
{
	if (v->outcome.groups & FW_GROUP_URL) {
		v->feed.host_key = v->was->host_key;
		return;
	}
	visit_learn_host_key(v, r);
	if (!v->arena.failed && !fw_str_eq(v->feed.host_key, v->was->host_key))
		v->outcome.groups |= FW_GROUP_HOST;
}

/* Learn the duration, in all and by phase. */
static void state_expect(struct fw_feed *s, const struct fw_visit *took)
{
	int64_t part_us[FW_PHASE_N];

	_Static_assert((int)FW_VISIT_PHASES == (int)FW_PHASE_N, "the schedule's phases are the visit's");
	fw_visit_phases(took, part_us);
	fw_expect_update(&s->expect_us, &s->expect_dev_us, took->total_us);
	fw_expect_parts_update(&s->expect_parts, part_us);
}

/*
 * A page that is not a feed and names none may have a hub that pushes one. A feed keeps its hub,
 * because the page may be a passing fault.
 */
static void state_page_hub(struct visit *v)
{
	bool changed;

	if (v->fetch.kind != FW_VISIT_FORMAT || v->page_replaced || !v->page_hub.len || v->was->last_ok_ms)
		return;
	changed = str_update(&v->feed.hub, v->page_hub);
	changed |= str_update(&v->feed.topic, v->page_self.len ? v->page_self : v->fetch.final_url);
	if (changed)
		v->outcome.groups |= FW_GROUP_META;
}

static void state_health(struct visit *v, int64_t now_ms)
{
	struct fw_fetch *f = &v->fetch;
	struct fw_feed *s = &v->feed;

	/*
	 * never equal to the previous visit's time: the store would treat this visit as already
	 * stored
	 */
	s->last_visit_ms = now_ms + (now_ms == v->was->last_visit_ms);
	s->last_kind = f->kind;
	s->http_status = f->http_status;
	s->crash_n = 0;
	if (fw_visit_succeeded(f->kind)) {
		s->last_ok_ms = now_ms;
		s->fail_n = 0;
		if (s->error.len)
			v->outcome.groups |= FW_GROUP_ERROR;
		s->error = FW_STR_NONE;
	} else {
		if (f->kind != FW_VISIT_LOCAL && !v->abandoned)
			s->fail_n++;
		s->error = fw_arena_str(&v->arena, fw_str(f->err.text));
		v->outcome.groups |= FW_GROUP_ERROR;
		v->outcome.visit.error = s->error;
	}
	if (f->kind == FW_VISIT_GONE)
		s->status = FW_FEED_GONE;
	if (f->kind != FW_VISIT_LOCAL && f->kind != FW_VISIT_BLOCKED && !v->abandoned && f->visit.total_us > 0)
		state_expect(s, &f->visit);
}

/* ---- when next ------------------------------------------------------------------------------- */

/* How long the feed has been gone, or without new entries since it announced its end. */
static int64_t visit_ended_ago_ms(const struct visit *v, int64_t now_ms)
{
	int64_t alive_ms = v->fetch.kind == FW_VISIT_GONE ? v->feed.last_ok_ms : v->feed.last_new_ms;

	alive_ms = alive_ms > 0 ? alive_ms : v->feed.created_ms;
	return alive_ms > 0 ? now_ms - alive_ms : 0;
}

static void visit_due_facts(struct visit *v, int64_t now_ms, struct fw_due_facts *out)
{
	const struct fw_fetch *f = &v->fetch;
	const struct fw_document *d = v->doc;

	*out = (struct fw_due_facts){
		.kind = f->kind,
		.http_status = f->http_status,
		.fail_n = v->feed.fail_n,
		.retry_after_ms = fw_retry_after_ms(f->h_retry_after, now_ms),
		.fresh_ms = fw_fresh_ms(f->h_cache_control, f->h_age, f->h_expires, f->h_date, now_ms),
		.ttl_minutes = d ? d->ttl_minutes : FW_NO_NUMBER,
		.update_period_minutes = d ? d->update_period_minutes : FW_NO_NUMBER,
		.skip_hours = d ? d->skip_hours : 0,
		.skip_days = d ? d->skip_days : 0,
		.rhythm = v->feed.rhythm,
		.last_new_ms = v->feed.last_new_ms,
		.whole_ms = v->feed.validators_ms,
		.interval_ms = v->feed.interval_ms,
		.expired = v->feed.status == FW_FEED_GONE,
		.ended_ms = visit_ended_ago_ms(v, now_ms),
		.pushed = v->feed.push_until_ms > now_ms,
		.offline_ms = v->our_network ? v->offline_ms : 0,
	};
}

static void visit_schedule(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd)
{
	struct fw_due_facts facts;
	struct fw_due due;

	visit_due_facts(v, now_ms, &facts);
	if (v->doc && v->fetch.kind == FW_VISIT_OK) {
		state_rhythm(v, &facts, now_ms);
		facts.rhythm = v->feed.rhythm;
	}
	fw_due(&facts, &r->due, now_ms, rnd, &due);
	v->feed.due_at_ms = due.at_ms;
	v->feed.why = fw_arena_str(&v->arena, fw_str(due.why));
}

/*
 * Does the name that responded stand for the feed's whole host? Not if several names share the
 * host, nor if a redirect led to another host.
 */
static bool visit_is_whole_host(const struct visit *v)
{
	char name[HOST_KEY_MAX], own[HOST_KEY_MAX], key[HOST_KEY_MAX];

	return fw_url_host(v->fetch.final_url, name, sizeof(name)) && fw_url_host(v->feed.url, own, sizeof(own)) &&
		fw_store_feed_host(&v->feed, key, sizeof(key)) && strcmp(name, own) == 0 && strcmp(name, key) == 0;
}

/*
 * Learn the host's backoff: after 429 or 503 its feeds are polled less often, and not before the
 * time that Retry-After names. A host that several names share is not throttled by one of them
 * (name_cooldown.h).
 */
void visit_learn_host(struct visit *v, const struct visit_rules *r, int64_t now_ms)
{
	int64_t pause_ms = fw_retry_after_ms(v->fetch.h_retry_after, now_ms);
	int status = v->fetch.http_status;

	visit_learn_host_key(v, r); /* also for the first response of a new feed */
	if (status == 429 || status == 503) {
		pause_ms = pause_ms > 0 ? FW_MIN(pause_ms, r->due.retry_after_max_ms) : COOLDOWN_MS;
		if (!visit_is_whole_host(v)) {
			v->name_cooldown_ms = pause_ms;
			return;
		}
		v->host_health = FW_HOST_THROTTLED;
		v->cooldown_until_ms = now_ms + pause_ms;
	} else if (status / 100 == 2 || status == 304) {
		v->host_health = FW_HOST_HEALTHY;
	}
}

void visit_conclude(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd)
{
	struct fw_fetch *f = &v->fetch;
	int64_t due_was = v->was->due_at_ms;
	uint32_t item_n = v->outcome.visit.item_n;

	assert(v->outcome.feed == &v->feed && v->outcome.feed_id == v->feed.id); /* visit_prepare() */
	v->outcome.visit = f->visit;
	v->outcome.visit.item_n = item_n;
	v->outcome.visit.feed_id = v->feed.id;
	v->outcome.visit.run_id = r->run_id;
	v->outcome.visit.slot = v->slot;
	if (v->doc && f->kind == FW_VISIT_OK)
		state_meta(v);
	if (f->kind == FW_VISIT_OK || f->kind == FW_VISIT_SAME)
		state_validators(v, now_ms);
	else if ((f->kind == FW_VISIT_FORMAT || f->kind == FW_VISIT_LIMIT) && f->http_status == 200)
		state_unread(v);
	if (fw_visit_succeeded(f->kind))
		state_redirect(v, now_ms);
	state_health(v, now_ms);
	state_trust(v, now_ms);
	visit_schedule(v, r, now_ms, rnd);
	state_page(v);
	state_page_hub(v);
	state_host(v, r);
	if (v->page_replaced) {
		v->feed.due_at_ms = due_was > 0 ? due_was : now_ms;
		v->feed.why = FW_STR("replaced by the feed that the page names: at once");
	}
	v->outcome.visit.kind = f->kind;
	v->outcome.visit.http_status = f->http_status;
	if (due_was > FW_DUE_FIRST && f->visit.at_ms > due_was)
		v->outcome.visit.lateness_ms = (uint32_t)FW_MIN(f->visit.at_ms - due_was, (int64_t)UINT32_MAX);
	v->held_bytes = f->body.cap + v->arena.used_bytes;
	v->end = VISIT_COMMIT;
}

void visit_finish(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd)
{
	visit_read(v, r, now_ms);
	visit_conclude(v, r, now_ms, rnd);
}

void visit_settle_verdict(struct visit *v, const struct fw_connectivity *w, int64_t mono_ms)
{
	v->our_network = w->down;
	v->offline_ms = w->down ? FW_MAX(mono_ms - w->since_ms, 1) : 0;
	v->verdict_deferred = fw_connectivity_is_doubtful(w, v->began_ms);
}

bool visit_learn_network(struct visit *v, struct fw_connectivity *w, int64_t mono_ms)
{
	const struct fw_fetch *f = &v->fetch;
	int64_t asked_ago_ms = f->visit.at_ms - v->was->last_visit_ms, began_ms;
	struct fw_connectivity_visit seen;
	char host[256];
	bool was = w->down;

	began_ms = mono_ms - f->visit.total_us / 1000;
	/* an older name lookup shows the network as it was then */
	v->began_ms = began_ms - f->name_age_ms;
	v->ended_ms = mono_ms;
	if (v->abandoned || !fw_store_host(f->final_url.len ? f->final_url : f->url, host, sizeof(host)))
		return false;
	seen = (struct fw_connectivity_visit){
		.host = fw_hash64(host, strlen(host)),
		.sign = fw_connectivity_sign(f->kind, f->visit.connect_us > 0, f->refused),
		.failing = v->was->fail_n > 0,
		.polled_ms = asked_ago_ms > 0 ? began_ms - asked_ago_ms : INT64_MIN,
		.begin_ms = v->began_ms,
		.now_ms = mono_ms,
	};
	v->our_network = fw_connectivity_count(w, &seen);
	v->offline_ms = !v->our_network ? 0 : w->down ? FW_MAX(mono_ms - w->since_ms, 1) : 1;
	v->verdict_deferred = !v->our_network && seen.sign >= FW_CONNECTIVITY_REFUSED &&
		fw_connectivity_is_doubtful(w, v->began_ms);
	return w->down != was;
}

void visit_drop_validators(struct visit *v)
{
	struct fw_feed *s = &v->feed;

	s->etag = s->last_modified = FW_STR_NONE;
	s->validators_ms = 0;
	s->body_hash = 0;
	v->outcome.groups |= FW_GROUP_VALIDATORS;
}

void visit_reset(struct visit *v)
{
	struct fw_arena arena = v->arena;
	struct fw_fetch fetch;
	void *worker = v->worker;

	fw_fetch_reset(&v->fetch);
	fetch = v->fetch;
	if (fetch.body.cap > BODY_KEEP)
		fw_buf_finish(&fetch.body);
	fw_arena_reset(&arena, ARENA_KEEP);
	*v = (struct visit){
		.arena = arena, .fetch = {.body = fetch.body, .priv = fetch.priv}, .worker = worker, .slot = -1};
}
