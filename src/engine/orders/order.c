/* SPDX-License-Identifier: ISC */
/*
 * Orders as records: "order", with the order's name as key, written by its owner; "delivery", with
 * the order's id as key, written by the sender. So no process overwrites what another one has
 * found.
 */
#include <assert.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include "api/order.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/url.h"
#include "engine/orders/order_exchange.h"
#include "engine/orders/order_stream.h"
#include "engine/orders/orders.h"
#include "engine/orders/runner.h"
#include "engine/runner_rules.h"
#include "engine/orders/webhook.h"
#include "engine/records.h"
#include "query/query.h"

/* An order's id is random, so that two that are added at once differ; doubles hold it exactly. */
#define ID_BITS 52
#define KIND FW_STR(FW_RECORD_ORDER)
#define KIND_DELIVERY FW_STR("delivery")
#define SECRET_PREFIX "whsec_"
#define SECRET_BYTES 24
#define TAG_MAX 200

/* ---- values ---------------------------------------------------------------------------------- */

static const char *const ACTION[] = {"deliver", "drop", "tag", NULL};
static const char *const STATE[] = {"active", "paused", "ended", NULL};

const char *fw_order_action_name(enum fw_order_action action)
{
	return ACTION[action];
}

const char *fw_order_state_name(enum fw_order_state state)
{
	return STATE[state];
}

#define AT(member) offsetof(struct fw_order, member)
static const struct record_member ORDER[] = {
	{"id", RECORD_NUMBER, AT(id)},
	{"query", RECORD_TEXT, AT(query)},
	{"action", RECORD_STATE, AT(action), ACTION},
	{"state", RECORD_STATE, AT(state), STATE},
	{"to", RECORD_TEXT, AT(to)},
	{"tag", RECORD_TEXT, AT(tag)},
	{"changes", RECORD_FLAG, AT(changes)},
	{"secret", RECORD_TEXT, AT(secret[0])},
	{"secret_before", RECORD_TEXT, AT(secret[1])},
	{"created_ms", RECORD_NUMBER, AT(created_ms)},
	{"woken_ms", RECORD_NUMBER, AT(woken_ms)},
	{NULL},
};
#undef AT
/* A delivery's record: its ids are one text, "11 12 15". */
struct delivery_value {
	struct fw_order_delivery d;
	struct fw_str ids;
};
#define AT(member) (offsetof(struct delivery_value, d) + offsetof(struct fw_order_delivery, member))
static const struct record_member DELIVERY[] = {
	{"batch", RECORD_NUMBER, AT(batch_n)},
	{"ids", RECORD_TEXT, offsetof(struct delivery_value, ids)},
	{"failed", RECORD_COUNT, AT(fail_n)},
	{"since_ms", RECORD_NUMBER, AT(since_ms)},
	{"woken_ms", RECORD_NUMBER, AT(woken_ms)},
	{"next_ms", RECORD_NUMBER, AT(next_ms)},
	{"failing_since_ms", RECORD_NUMBER, AT(failing_since_ms)},
	{"status", RECORD_NUMBER, AT(status)},
	{"error", RECORD_TEXT, AT(error)},
	{"delivered", RECORD_NUMBER, AT(delivered_n)},
	{"retried", RECORD_NUMBER, AT(retried_n)},
	{"dead", RECORD_NUMBER, AT(dead_n)},
	{"gone", RECORD_NUMBER, AT(gone_n)},
	{"delivered_ms", RECORD_NUMBER, AT(delivered_ms)},
	{NULL},
};
#undef AT

/* ---- checks ---------------------------------------------------------------------------------- */

static bool order_name_is_valid(struct fw_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (!fw_is_alnum((unsigned char)name.p[i]) && !strchr("._-", name.p[i]))
			return false;
	}
	return name.len && name.len <= FW_ORDER_NAME_MAX;
}

/*
 * Lower case, and no sign first: it is a part of paths, and an argument of commands. Older ones
 * stay as they are.
 */
static bool order_name_may_be_new(struct fw_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (!fw_is_digit(c) && !(c >= 'a' && c <= 'z') && !(i && strchr("._-", c)))
			return false;
	}
	return order_name_is_valid(name);
}

/* The part of a destination behind "scheme:"; absent: it has another scheme. */
static struct fw_str to_rest(struct fw_str to, struct fw_str scheme)
{
	bool has = fw_str_istarts(to, scheme) && to.len > scheme.len && to.p[scheme.len] == ':';

	return has ? fw_str_sub(to, scheme.len + 1, to.len) : FW_STR_NONE;
}

static int to_check_path(struct fw_str path, const char *scheme, const char *what, struct fw_err *err)
{
	if (!fw_str_starts(path, FW_STR("/")))
		return fw_err_set(err, FW_EINVAL, "%s: needs %s with an absolute path, such as %s:/usr/local/bin/x",
			scheme, what, scheme);
	return 0;
}

static int to_check_webhook(struct fw_str to, struct fw_err *err)
{
	struct fw_str url, user, pass;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_url_clean(&a, to, &url, &user, &pass, err);
	fw_arena_finish(&a);
	return rc;
}

static int to_check_command(struct fw_str command, struct fw_err *err)
{
	size_t n = 0;

	for (struct fw_str rest = command; rest.p;)
		n += fw_str_split(rest, ' ', &rest).len > 0;
	if (n > RUNNER_WORDS_MAX)
		return fw_err_set(
			err, FW_EINVAL, "command: has over %d words: put them into a script", RUNNER_WORDS_MAX);
	return to_check_path(command, "command", "a program", err);
}

static int to_check_file(struct fw_str path, struct fw_err *err)
{
	char unused[2 * FW_URL_MAX];

	if (!order_path(unused, sizeof(unused), path, 0))
		return fw_err_set(
			err, FW_EINVAL, "file: knows %%Y %%m %%d %%H %%M (the time in UTC) and %%%%, and no other %%");
	return to_check_path(path, "file", "a file", err);
}

/* Write the destination as a rule that allows it, as people write it. */
static void to_rule(struct fw_buf *b, struct fw_str to, bool program)
{
	const char *percent = program ? NULL : memchr(to.p, '%', to.len);

	while (percent && *percent != '/') /* the folder of what the time names */
		percent--;
	fw_log_escape(b, percent ? fw_str_sub(to, 0, (size_t)(percent - to.p) + 1) : to);
}

/* Is a program or a file of this machine in the configuration? */
static int to_check_rules(const struct fw_config *c, struct fw_str to, bool program, struct fw_err *err)
{
	struct runner_rules rules = runner_rules_of(c);
	const char *list = program ? c->order_programs : c->order_files;
	struct fw_buf rule = FW_BUF_INIT(0);
	char path[2 * FW_URL_MAX];
	size_t unused;

	if (program ? runner_may_run(&rules, to) :
		      order_path(path, sizeof(path), to, 0) && runner_may_write(&rules, fw_str(path), &unused))
		return 0;
	to_rule(&rule, to, program);
	if (memchr(to.p, ',', to.len))
		fw_err_set(err, FW_EINVAL, "not allowed, and with a comma it cannot be: %s",
			program ? "put the command into a script, and name that in order_programs" :
				  "name its folder in order_files");
	else if (list)
		fw_err_set(err, FW_EINVAL,
			"not allowed by the configuration: append ', %.*s' to the line %s, and reload",
			FW_STR_ARG(fw_buf_str(&rule)), program ? "order_programs" : "order_files");
	else
		fw_err_set(err, FW_EINVAL, "not allowed by the configuration: add the line '%s = %.*s', and reload",
			program ? "order_programs" : "order_files", FW_STR_ARG(fw_buf_str(&rule)));
	fw_buf_finish(&rule);
	return FW_EINVAL;
}

int fw_order_check_commands(const struct fw_config *c, struct fw_str to, bool over_http, struct fw_err *err)
{
	struct fw_str command = to_rest(to, FW_STR("command")), file = to_rest(to, FW_STR("file"));
	enum fw_order_channel channel;

	if (!command.p && !file.p)
		return 0;
	if (strcmp(c->order_commands, "none") == 0)
		return fw_err_set(err, FW_EINVAL,
			"order_commands = none: orders run no commands and write no files (feedwheel.conf(5))");
	if (over_http && strcmp(c->order_commands, "http") != 0)
		return fw_err_set(err, FW_EINVAL,
			"orders with a command or a file are added and changed by 'feedwheel order' on the server's "
			"machine; over HTTP only with order_commands = http");
	if (fw_order_check_to(to, &channel, err))
		return FW_EINVAL;
	return to_check_rules(c, command.p ? command : file, command.p, err);
}

static int to_check_redis(struct fw_str to, struct fw_err *err)
{
	struct order_stream stream;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = order_stream_read(&a, to, &stream, err);
	fw_arena_finish(&a);
	return rc;
}

static int to_check_exchange(struct fw_str to, struct fw_err *err)
{
	struct order_exchange exchange;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = order_exchange_read(&a, to, &exchange, err);
	fw_arena_finish(&a);
	return rc;
}

/* "redis:STREAM" is on the store's own server. */
static int to_check_store(struct fw_store *st, const struct fw_order *o, struct fw_err *err)
{
	if (!to_rest(o->to, FW_STR("redis")).p || fw_str_find(o->to, FW_STR("://")) ||
		strcmp(fw_store_name(st), "redis") == 0)
		return 0;
	return fw_err_set(err, FW_EINVAL,
		"redis:STREAM is a stream of the store's own server, but this store is on %s: write "
		"redis://HOST:PORT/DB?stream=STREAM",
		fw_store_name(st));
}

int fw_order_check_to(struct fw_str to, enum fw_order_channel *out, struct fw_err *err)
{
	struct fw_str rest;

	if (fw_url_has_control(to) || to.len > FW_URL_MAX)
		return fw_err_set(
			err, FW_EINVAL, "the destination has a control character or over %d bytes", FW_URL_MAX);
	if (fw_is_http(to)) {
		*out = FW_ORDER_WEBHOOK;
		return to_check_webhook(to, err);
	}
	if ((rest = to_rest(to, FW_STR("command"))).p) {
		*out = FW_ORDER_COMMAND;
		return to_check_command(rest, err);
	}
	if ((rest = to_rest(to, FW_STR("file"))).p) {
		*out = FW_ORDER_FILE;
		return to_check_file(rest, err);
	}
	if (to_rest(to, FW_STR("redis")).p || to_rest(to, FW_STR("rediss")).p) {
		*out = FW_ORDER_REDIS;
		return to_check_redis(to, err);
	}
	if (to_rest(to, FW_STR("amqp")).p || to_rest(to, FW_STR("amqps")).p) {
		*out = FW_ORDER_AMQP;
		return to_check_exchange(to, err);
	}
	return fw_err_set(err, FW_EINVAL,
		"unknown destination '%.*s': it is one of https://HOST/..., command:/PROGRAM, file:/PATH, redis:STREAM,"
		" amqp://HOST/...",
		FW_STR_ARG(fw_str_sub(to, 0, 60)));
}

int fw_order_check_query(struct fw_str query, struct fw_err *err)
{
	struct query_node *q;
	struct fw_err why;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = query_parse(&a, query, fw_now_ms() /* wall clock: the words are only checked */, &q, &why);
	fw_arena_finish(&a);
	if (rc)
		return fw_err_set(err, rc, "query, %s", why.text);
	return q ? 0 : fw_err_set(err, FW_EINVAL, "the query is empty: it would match every entry");
}

static bool order_needs_secret(const struct fw_order *o)
{
	return o->action == FW_ORDER_DELIVER && fw_is_http(o->to);
}

static int order_check_secret(const struct fw_order *o, struct fw_err *err)
{
	if (o->secret[0].len && !order_needs_secret(o))
		return fw_err_set(
			err, FW_EINVAL, "a secret signs webhooks: the order needs a destination https://HOST/...");
	if (o->secret[0].len && !webhook_secret_is_valid(o->secret[0]))
		return fw_err_set(err, FW_EINVAL, "invalid secret: it is 'whsec_' and the base64 of 16 to 64 bytes");
	return 0;
}

static int order_check(const struct fw_order *o, struct fw_err *err)
{
	enum fw_order_channel channel;

	if (!order_name_is_valid(o->name))
		return fw_err_set(err, FW_EINVAL,
			"invalid name '%.*s': an order's name has 1 to %d letters, digits, '.', '_' or '-'",
			FW_STR_ARG(fw_str_sub(o->name, 0, 80)), FW_ORDER_NAME_MAX);
	if (o->action == FW_ORDER_TAG && (!fw_str_trim(o->tag).len || o->tag.len > TAG_MAX))
		return fw_err_set(err, FW_EINVAL, "a tag has 1 to %d bytes", TAG_MAX);
	if (o->action == FW_ORDER_DELIVER) {
		int rc = o->to.len ? fw_order_check_to(o->to, &channel, err) :
				     fw_err_set(err, FW_EINVAL,
					     "no destination, and neither a tag nor drop: the order has no effect");

		if (rc)
			return rc;
	}
	if (order_check_secret(o, err))
		return FW_EINVAL;
	return fw_order_check_query(o->query, err);
}

/* ---- secrets --------------------------------------------------------------------------------- */

static int secret_make(struct fw_arena *a, struct fw_str *out, struct fw_err *err)
{
	unsigned char random[SECRET_BYTES];
	char text[FW_ORDER_SECRET_MAX] = SECRET_PREFIX;

	if (getentropy(random, sizeof(random)))
		return fw_err_set(err, FW_EIO, "no random bytes for a secret");
	EVP_EncodeBlock((unsigned char *)text + strlen(text), random, sizeof(random));
	*out = fw_arena_str(a, fw_str(text));
	return a->failed ? fw_no_memory(err) : 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static void order_read(struct fw_str name, struct fw_str value, struct fw_arena *a, struct fw_order *out)
{
	*out = (struct fw_order){.broken = false};
	out->broken = !record_value_parse(value, ORDER, a, out) || out->id <= 0;
	out->name = name;
}

static int order_write(struct fw_store *st, const struct fw_order *o, bool is_new, bool *was, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int rc;

	record_value_write(&b, ORDER, o);
	rc = b.rc ? fw_no_memory(err) :
		    fw_store_record_put(st,
			    &(struct fw_record){.kind = KIND,
				    .key = o->name,
				    .value = fw_buf_str(&b),
				    .at_ms = fw_store_now_ms(st),
				    .until_ms = FW_NO_DATE},
			    is_new, was, err);
	fw_buf_finish(&b);
	return rc;
}

int fw_order_add(struct fw_store *st, struct fw_arena *a, struct fw_order *o, int64_t now_ms, struct fw_err *err)
{
	uint64_t random = 0;
	bool was = false;
	int rc;

	if (!order_name_may_be_new(o->name))
		return fw_err_set(err, FW_EINVAL,
			"invalid name '%.*s': an order's name has 1 to %d lower-case letters, digits, '.', '_' or '-',"
			" and begins with a letter or a digit",
			FW_STR_ARG(fw_str_sub(o->name, 0, 80)), FW_ORDER_NAME_MAX);
	o->created_ms = now_ms;
	rc = getentropy(&random, sizeof(random)) ? fw_err_set(err, FW_EIO, "no random bytes") : order_check(o, err);
	rc = rc ? rc : to_check_store(st, o, err);
	o->id = (int64_t)(random >> (64 - ID_BITS)) + 1;
	if (!rc && !o->secret[0].len && order_needs_secret(o))
		rc = secret_make(a, &o->secret[0], err);
	rc = rc ? rc : order_write(st, o, true, &was, err);
	if (!rc && was)
		return fw_err_set(err, FW_EINVAL,
			"an order '%.*s' exists already: remove it first, or choose another name", FW_STR_ARG(o->name));
	return rc;
}

struct order_suggest {
	struct fw_suggest s;
	struct fw_arena a;
};

static int order_suggest_add(void *ctx, const struct fw_order *o)
{
	struct order_suggest *g = ctx;
	struct fw_str name = fw_arena_str(&g->a, o->name);
	const char *text = name.p ? fw_arena_dup(&g->a, name.p, name.len) : NULL;

	if (text)
		fw_suggest_offer(&g->s, text);
	return 0;
}

static int order_missing(struct fw_store *st, struct fw_str name, struct fw_err *err)
{
	struct order_suggest g = {.s = {.word = name}};
	struct fw_err spare;

	fw_arena_init(&g.a, 0);
	if (fw_order_list(st, order_suggest_add, &g, &spare))
		g.s.best = NULL;
	(void)fw_err_set(err, FW_ENOTFOUND, "no order '%.*s'%s%s%s", FW_STR_ARG(fw_str_sub(name, 0, 80)),
		g.s.best ? " (did you mean '" : "", g.s.best ? g.s.best : "", g.s.best ? "'?)" : "");
	fw_arena_finish(&g.a);
	return FW_ENOTFOUND;
}

int fw_order_get(struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = order_name_is_valid(name) ? fw_store_record_get(st, KIND, name, a, &r, err) : FW_ENOTFOUND;

	if (rc == FW_ENOTFOUND)
		return order_missing(st, name, err);
	if (rc)
		return rc;
	order_read(r.key, r.value, a, out);
	return a->failed ? fw_no_memory(err) : 0;
}

struct order_walk {
	fw_order_cb *cb;
	void *ctx;
};

static int order_walk_add(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err)
{
	const struct order_walk *w = ctx;
	struct fw_order o;

	order_read(key, value, a, &o);
	return a->failed ? fw_no_memory(err) : w->cb(w->ctx, &o);
}

int fw_order_list(struct fw_store *st, fw_order_cb *cb, void *ctx, struct fw_err *err)
{
	return record_walk(st, KIND, FW_STR(""), order_walk_add, &(struct order_walk){cb, ctx}, err);
}

int fw_order_put(struct fw_store *st, const struct fw_order *o, struct fw_err *err)
{
	int rc = order_check(o, err);

	assert(o->id > 0);
	rc = rc ? rc : to_check_store(st, o, err);
	return rc ? rc : order_write(st, o, false, NULL, err);
}

static void order_set_members(struct fw_order *o, const struct fw_order_change *change, int64_t now_ms)
{
	if (change->query.p)
		o->query = change->query;
	if (change->to.p)
		o->to = change->to;
	if (change->changes >= 0)
		o->changes = change->changes != 0;
	if (change->state >= 0)
		o->state = (enum fw_order_state)change->state;
	if (change->to.p || change->state == FW_ORDER_ACTIVE)
		o->woken_ms = now_ms;
	if (!order_needs_secret(o))
		o->secret[0] = o->secret[1] = FW_STR_NONE;
}

int fw_order_apply(struct fw_store *st, struct fw_str name, struct fw_order_change *change, struct fw_arena *a,
	struct fw_order *out, struct fw_err *err)
{
	int rc = fw_order_get(st, name, a, out, err);

	change->made_secret = false;
	if (rc)
		return rc;
	if (out->broken)
		return fw_err_set(err, FW_EINVAL, "the record of order '%.*s' is invalid: remove it, and add it again",
			FW_STR_ARG(name));
	if (change->to.p && out->action != FW_ORDER_DELIVER)
		return fw_err_set(err, FW_EINVAL, "order '%.*s' delivers nothing: to change that, add another one",
			FW_STR_ARG(name));
	order_set_members(out, change, fw_store_now_ms(st));
	if (order_needs_secret(out) && !out->secret[0].len) {
		rc = secret_make(a, &out->secret[0], err);
		change->made_secret = true;
	}
	return rc ? rc : fw_order_put(st, out, err);
}

int fw_order_rotate(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order *out, struct fw_err *err)
{
	int rc = fw_order_get(st, name, a, out, err);

	if (rc)
		return rc;
	if (!order_needs_secret(out))
		return fw_err_set(err, FW_EINVAL, "order '%.*s' sends no webhooks: it has no secret", FW_STR_ARG(name));
	out->secret[1] = out->secret[0];
	rc = secret_make(a, &out->secret[0], err);
	return rc ? rc : fw_order_put(st, out, err);
}

/* ---- deliveries ------------------------------------------------------------------------------ */

static bool delivery_ids_read(struct fw_str text, struct fw_order_delivery *d)
{
	for (d->id_n = 0; text.len; d->id_n++) {
		if (d->id_n == FW_ORDER_BATCH_MAX || !fw_str_int(fw_str_split(text, ' ', &text), &d->id[d->id_n]) ||
			d->id[d->id_n] <= (d->id_n ? d->id[d->id_n - 1] : 0))
			return false;
	}
	return true;
}

static void delivery_value_write(const struct fw_order_delivery *d, struct fw_buf *b)
{
	struct delivery_value v = {.d = *d};
	struct fw_buf ids = FW_BUF_INIT(0);

	for (size_t i = 0; i < d->id_n; i++)
		fw_buf_addf(&ids, i ? " %lld" : "%lld", (long long)d->id[i]);
	v.ids = fw_buf_str(&ids);
	record_value_write(b, DELIVERY, &v);
	b->rc = b->rc ? b->rc : ids.rc;
	fw_buf_finish(&ids);
}

static struct fw_str delivery_key(int64_t order_id, char text[24])
{
	(void)fw_snprintf(text, 24, "%lld", (long long)order_id);
	return fw_str(text);
}

int fw_order_delivery_get(
	struct fw_store *st, int64_t order_id, struct fw_arena *a, struct fw_order_delivery *out, struct fw_err *err)
{
	struct delivery_value v = {.ids = FW_STR_NONE};
	char key[24];
	struct fw_record r;
	int rc = fw_store_record_get(st, KIND_DELIVERY, delivery_key(order_id, key), a, &r, err);

	*out = (struct fw_order_delivery){.order_id = order_id};
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	if (record_value_parse(r.value, DELIVERY, a, &v) && delivery_ids_read(v.ids, &v.d)) {
		*out = v.d;
		out->order_id = order_id;
	}
	return a->failed ? fw_no_memory(err) : 0;
}

int fw_order_delivery_put(struct fw_store *st, const struct fw_order_delivery *d, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[24];
	int rc;

	delivery_value_write(d, &b);
	rc = b.rc ? fw_no_memory(err) :
		    fw_store_record_put(st,
			    &(struct fw_record){.kind = KIND_DELIVERY,
				    .key = delivery_key(d->order_id, key),
				    .value = fw_buf_str(&b),
				    .at_ms = now_ms,
				    .until_ms = FW_NO_DATE},
			    false, NULL, err);
	fw_buf_finish(&b);
	return rc;
}

int fw_order_delivery_remove(struct fw_store *st, int64_t order_id, struct fw_err *err)
{
	char key[24];
	int rc = fw_store_record_remove(st, KIND_DELIVERY, delivery_key(order_id, key), FW_STR_NONE, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

int fw_order_remove(struct fw_store *st, struct fw_str name, struct fw_err *err)
{
	struct fw_order o = {.id = 0};
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_order_get(st, name, &a, &o, err);
	rc = rc ? rc : fw_store_record_remove(st, KIND, name, FW_STR_NONE, err);
	if (!rc && o.id > 0) {
		rc = fw_store_match_remove(st, o.id, false, NULL, 0, err);
		rc = rc ? rc : fw_store_match_remove(st, o.id, true, NULL, 0, err);
		rc = rc ? rc : fw_order_delivery_remove(st, o.id, err);
	}
	fw_arena_finish(&a);
	return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void order_to_json(struct fw_json *j, struct fw_str to)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_url_show(&b, to);
	fw_json_str(j, "to", fw_buf_str(&b));
	fw_buf_finish(&b);
}

static void delivery_json(struct fw_json *j, const struct fw_order_status *s)
{
	const struct fw_order_delivery *d = &s->delivery;

	fw_json_object(j, "delivery");
	fw_json_int(j, "pending_n", s->pending_n);
	fw_json_int(j, "dead_n", s->dead_n);
	fw_json_int(j, "delivered_n", d->delivered_n);
	fw_json_int(j, "retried_n", d->retried_n);
	fw_json_time(j, "delivered_at", d->delivered_ms ? d->delivered_ms : FW_NO_DATE);
	fw_json_time(j, "unattended_since", s->unattended ? s->oldest_ms : FW_NO_DATE);
	if (d->failing_since_ms) {
		fw_json_time(j, "failing_since", d->failing_since_ms);
		fw_json_time(j, "next_at", d->next_ms);
		fw_json_int(j, "status", d->status);
		fw_json_str(j, "error", d->error);
	}
	fw_json_end(j);
}

void fw_order_json(struct fw_json *j, const char *key, const struct fw_order_status *s)
{
	const struct fw_order *o = &s->order;

	fw_json_object(j, key);
	fw_json_str(j, "name", o->name);
	fw_json_str(j, "query", o->query);
	fw_json_cstr(j, "action", ACTION[o->action]);
	fw_json_cstr(j, "state", o->broken ? "broken" : STATE[o->state]);
	if (o->action == FW_ORDER_DELIVER)
		order_to_json(j, o->to);
	if (o->action == FW_ORDER_TAG)
		fw_json_str(j, "tag", o->tag);
	fw_json_bool(j, "changes", o->changes);
	fw_json_time(j, "created_at", o->created_ms);
	if (o->action == FW_ORDER_DELIVER)
		delivery_json(j, s);
	fw_json_end(j);
}
