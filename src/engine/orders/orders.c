/* SPDX-License-Identifier: ISC */
/*
 * The orders as a process uses them: a set for all connections that have seen the same version of
 * the orders, and for each connection what it needs to ask the set.
 *
 * An order takes effect at once: a commit that finds another version of the orders in the store has
 * them loaded first (struct fw_matcher).
 *
 * Tags first: an entry with a new tag is matched once more, so an order may look for a tag that
 * another one adds. Tags of that second look do not count: orders cannot feed each other for ever.
 */
#include <assert.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/order.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/orders/orders.h"
#include "query/match.h"

/* ---- sets ------------------------------------------------------------------------------------ */

struct set_order {
	int64_t id;
	enum fw_order_action action;
	bool changes;
	struct fw_str tag;
};

struct order_set {
	struct fw_orders_version version;
	size_t refs;
	struct order_set *next;
	struct fw_arena a;
	struct set_order *order;
	size_t n, cap;
	pthread_mutex_t running; /* a set runs for one thread at a time */
	struct match_set *match; /* NULL: there are no orders */
};

/* All sets of this process, by version. The lock guards the list and the counts of users. */
static struct {
	pthread_mutex_t lock;
	struct order_set *first;
} sets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void order_set_destroy(struct order_set *s)
{
	match_set_destroy(s->match);
	fw_arena_finish(&s->a);
	pthread_mutex_destroy(&s->running);
	free(s->order);
	free(s);
}

static void order_set_release(struct order_set *s)
{
	struct order_set **at = &sets.first;
	bool last;

	if (!s)
		return;
	pthread_mutex_lock(&sets.lock);
	last = --s->refs == 0;
	while (last && *at != s)
		at = &(*at)->next;
	if (last)
		*at = s->next;
	pthread_mutex_unlock(&sets.lock);
	if (last)
		order_set_destroy(s);
}

static bool order_set_grow(struct order_set *s)
{
	size_t cap = s->cap ? 2 * s->cap : 16;
	struct set_order *more = s->n < s->cap ? s->order : reallocarray(s->order, cap, sizeof(*more));

	if (!more)
		return false;
	s->cap = s->n < s->cap ? s->cap : cap;
	s->order = more;
	return true;
}

struct order_loading {
	struct order_set *set;
	int64_t now_ms;
	struct fw_err *err;
};

/* A paused order collects matches, but neither drops nor tags. */
static bool order_is_idle(const struct fw_order *o)
{
	return o->state == FW_ORDER_ENDED || (o->state == FW_ORDER_PAUSED && o->action != FW_ORDER_DELIVER);
}

/*
 * An order that is broken matches nothing. The log names it at each change of the orders, and
 * `doctor` does.
 */
static int order_load(void *ctx, const struct fw_order *o)
{
	const struct order_loading *l = ctx;
	struct order_set *s = l->set;
	struct query_node *query = NULL;
	struct fw_err why = {.text = "its record is invalid"};
	struct fw_arena a;
	int rc;

	if (!o->broken && order_is_idle(o))
		return 0;
	fw_arena_init(&a, 0);
	rc = o->broken ? FW_EINVAL : query_parse(&a, o->query, l->now_ms, &query, &why);
	if (!rc && !query)
		rc = fw_err_set(&why, FW_EINVAL, "its query is empty");
	if (rc == FW_EINVAL) {
		fw_warn("order %.*s matches nothing: %s ('feedwheel doctor' has the remedy)", FW_STR_ARG(o->name),
			why.text);
		rc = 0;
	} else if (!rc && !order_set_grow(s)) {
		rc = fw_no_memory(l->err);
	} else if (!rc) {
		s->order[s->n] = (struct set_order){
			.id = o->id, .action = o->action, .changes = o->changes, .tag = fw_arena_str(&s->a, o->tag)};
		rc = s->a.failed ? fw_no_memory(l->err) : match_set_add(s->match, s->n, query, l->err);
		s->n += !rc;
	}
	fw_arena_finish(&a);
	return rc;
}

static int order_set_load(
	struct fw_store *st, const struct fw_orders_version *version, struct order_set **out, struct fw_err *err)
{
	struct order_set *s = calloc(1, sizeof(*s));
	struct order_loading l = {s, fw_store_now_ms(st), err};
	int rc;

	if (!s)
		return fw_no_memory(err);
	fw_arena_init(&s->a, 0);
	pthread_mutex_init(&s->running, NULL);
	s->version = *version;
	s->refs = 1;
	s->match = match_set_create();
	rc = s->match ? fw_order_list(st, order_load, &l, err) : fw_no_memory(err);
	rc = rc ? rc : match_set_finish(s->match, err);
	if (rc) {
		order_set_destroy(s);
		return rc;
	}
	pthread_mutex_lock(&sets.lock);
	s->next = sets.first;
	sets.first = s;
	pthread_mutex_unlock(&sets.lock);
	*out = s;
	return 0;
}

/*
 * The set of this version: one that another connection has loaded, or a new one. Two connections
 * may load the same version at once; then there are two sets for a while.
 */
static int order_set_get(
	struct fw_store *st, const struct fw_orders_version *version, struct order_set **out, struct fw_err *err)
{
	pthread_mutex_lock(&sets.lock);
	for (*out = sets.first; *out && !orders_version_eq(&(*out)->version, version);)
		*out = (*out)->next;
	if (*out)
		(*out)->refs++;
	pthread_mutex_unlock(&sets.lock);
	return *out ? 0 : order_set_load(st, version, out, err);
}

/* ---- matching -------------------------------------------------------------------------------- */

struct order_matcher {
	struct fw_matcher matcher;
	struct fw_store *st;
	struct order_set *set; /* NULL: not loaded yet */
	struct query_scratch *scratch;
	/* of the current entry */
	const struct fw_outcome *outcome;
	bool is_new, drop;
	int rc;
	struct fw_buf ids, tags, extra; /* tags: struct fw_str of the set */
};

static struct order_matcher *matcher_of(const struct fw_matcher *m)
{
	return m ? m->ctx : NULL;
}

static int matcher_on_match(void *ctx, uint64_t number)
{
	struct order_matcher *m = ctx;
	const struct set_order *o = &m->set->order[number];

	assert(number < m->set->n);
	switch (o->action) {
	case FW_ORDER_DROP:
		m->drop |= m->is_new;
		break;
	case FW_ORDER_TAG:
		fw_buf_add(&m->tags, &o->tag, sizeof(o->tag));
		break;
	case FW_ORDER_DELIVER:
		if (m->is_new || o->changes)
			fw_buf_add(&m->ids, &o->id, sizeof(o->id));
		break;
	}
	return m->ids.rc | m->tags.rc;
}

static int matcher_look(struct order_matcher *m, const struct fw_entry_row *e)
{
	const struct fw_feed *f = m->outcome->feed;
	struct query_subject subject = {.entry = e, .feed_id = m->outcome->feed_id, .now_ms = fw_store_now_ms(m->st)};
	int rc;

	if (f) {
		subject.feed_url = f->url;
		subject.feed_title = f->user_title.len ? f->user_title : f->title;
		subject.feed_folder = f->folder;
		subject.feed_language = f->language;
	}
	m->drop = false;
	fw_buf_reset(&m->ids);
	fw_buf_reset(&m->tags);
	query_scratch_set(m->scratch, &subject);
	pthread_mutex_lock(&m->set->running);
	rc = match_set_run(m->set->match, m->scratch, matcher_on_match, m);
	pthread_mutex_unlock(&m->set->running);
	return rc ? FW_ENOMEM : 0;
}

static bool tags_contain(const json_t *tags, struct fw_str tag)
{
	const json_t *v;
	size_t i;

	json_array_foreach(tags, i, v)
	{
		if (json_is_string(v) && fw_str_eq((struct fw_str){json_string_value(v), json_string_length(v)}, tag))
			return true;
	}
	return false;
}

static int extra_on_dump(const char *text, size_t n, void *ctx)
{
	struct fw_buf *b = ctx;

	fw_buf_add(b, text, n);
	return b->rc ? -1 : 0;
}

/* Write extra with the tags of the orders into m->extra. */
static int matcher_tag(struct order_matcher *m, struct fw_str extra)
{
	json_t *o = extra.len ? json_loadb(extra.p, extra.len, JSON_ALLOW_NUL, NULL) : NULL, *tags;
	const struct fw_str *tag = (const struct fw_str *)(const void *)m->tags.p;
	int rc = 0;

	o = o ? o : json_object();
	tags = json_object_get(o, "tags");
	if (!json_is_array(tags)) {
		tags = json_array();
		rc = json_object_set_new(o, "tags", tags);
	}
	for (size_t i = 0; !rc && i < m->tags.len / sizeof(*tag); i++) {
		if (!tags_contain(tags, tag[i]))
			rc = json_array_append_new(tags, json_stringn(tag[i].p, tag[i].len));
	}
	fw_buf_reset(&m->extra);
	rc = rc ? rc : json_dump_callback(o, extra_on_dump, &m->extra, JSON_COMPACT);
	json_decref(o);
	return rc ? FW_ENOMEM : 0;
}

static int orders_match(
	void *ctx, const struct fw_outcome *o, const struct fw_entry_row *e, bool is_new, struct fw_match_result *out)
{
	struct order_matcher *m = ctx;
	struct fw_entry_row tagged = *e;
	int rc;

	*out = (struct fw_match_result){.drop = false};
	assert(m->set);
	if (!m->set->n)
		return 0;
	m->outcome = o;
	m->is_new = is_new;
	rc = matcher_look(m, e);
	if (!rc && m->tags.len && !m->drop) {
		rc = matcher_tag(m, e->extra);
		tagged.extra = out->extra = fw_buf_str(&m->extra);
		rc = rc ? rc : matcher_look(m, &tagged);
	}
	out->drop = m->drop;
	out->order_id = (const int64_t *)(const void *)m->ids.p;
	out->n = m->drop ? 0 : m->ids.len / sizeof(*out->order_id);
	return rc;
}

static void orders_matcher_close(void *ctx)
{
	struct order_matcher *m = ctx;

	order_set_release(m->set);
	query_scratch_destroy(m->scratch);
	fw_buf_finish(&m->ids);
	fw_buf_finish(&m->tags);
	fw_buf_finish(&m->extra);
	free(m);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Take the set of the store's version of the orders. */
static int orders_reload(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct order_matcher *m = ctx;
	struct fw_orders_version version;
	struct order_set *set = NULL;
	int rc = fw_store_orders_version(st, &version, err);

	rc = rc ? rc : order_set_get(st, &version, &set, err);
	if (rc)
		return rc;
	order_set_release(m->set);
	m->set = set;
	m->matcher.version = version;
	return 0;
}

static struct order_matcher *orders_attach(struct fw_store *st)
{
	struct order_matcher *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->scratch = query_scratch_create();
	if (!m->scratch) {
		free(m);
		return NULL;
	}
	m->st = st;
	m->matcher = (struct fw_matcher){
		.match = orders_match, .reload = orders_reload, .close = orders_matcher_close, .ctx = m};
	m->ids = m->tags = m->extra = FW_BUF_INIT(0);
	fw_store_set_matcher(st, &m->matcher);
	return m;
}

int orders_use(struct fw_store *st, struct fw_err *err)
{
	struct order_matcher *m = matcher_of(fw_store_matcher(st));

	m = m ? m : orders_attach(st);
	if (!m)
		return fw_no_memory(err);
	return m->set ? 0 : orders_reload(m, st, err);
}
