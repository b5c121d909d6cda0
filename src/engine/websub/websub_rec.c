/* SPDX-License-Identifier: ISC */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/websub/websub_rec.h"
#include "base/banned.h"

#define KEEP_MS (100 * FW_DAY_MS)   /* behind the last time anything was to be done: then it is forgotten, should nobody lead */
#define ASK_KEEP_MS (10 * FW_DAY_MS)

/* ---- keys ------------------------------------------------------------------------------------------------------------------------------ */

void rec_key(char out[REC_KEY_MAX], const char *what, int64_t feed_id, const char *word)
{
	(void)fw_snprintf(out, REC_KEY_MAX, "%s/%019lld%s%s", what, (long long)feed_id, word ? "/" : "", word ? word : "");
}

bool rec_key_read(struct fw_str key, const char *what, int64_t *feed_id, struct fw_str *word)
{
	struct fw_str rest, first = fw_str_split(key, '/', &rest), number = fw_str_split(rest, '/', &rest);

	if (word)
		*word = rest;
	return fw_str_eq(first, fw_str(what)) && fw_str_int(number, feed_id) && *feed_id > 0;
}

static void callback_key(char out[REC_KEY_MAX], struct fw_str token)
{
	(void)fw_snprintf(out, REC_KEY_MAX, "cb/%.*s", FW_STR_ARG(token));
}

/* ---- values ---------------------------------------------------------------------------------------------------------------------------- */

static int put(struct fw_store *st, const char *key, struct fw_buf *value, int64_t now_ms, int64_t until_ms, struct fw_err *err)
{
	struct fw_record r = {.kind = REC_KIND, .key = fw_str(key), .value = fw_buf_str(value), .at_ms = now_ms, .until_ms = until_ms};
	int rc = value->rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : fw_store_record_put(st, &r, false, NULL, err);

	fw_buf_finish(value);
	return rc;
}

static int get(struct fw_store *st, const char *key, struct fw_arena *a, struct fw_record *r, struct fw_err *err)
{
	return fw_store_record_get(st, REC_KIND, fw_str(key), a, r, err);
}

int rec_remove(struct fw_store *st, const char *key, struct fw_err *err)
{
	int rc = fw_store_record_remove(st, REC_KIND, fw_str(key), FW_STR_NONE, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

static json_t *object(struct fw_str value)
{
	json_t *o = json_loadb(value.p ? value.p : "", value.len, JSON_ALLOW_NUL, NULL); /* a hub's reason may have one */

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

static int64_t number(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

static bool flag(const json_t *o, const char *name)
{
	return json_is_true(json_object_get(o, name));
}

static struct fw_str text(const json_t *o, const char *name, struct fw_arena *a)
{
	const json_t *v = json_object_get(o, name);

	return json_is_string(v) ? fw_arena_str(a, (struct fw_str){json_string_value(v), json_string_length(v)}) : FW_STR_NONE;
}

static void time_out(struct fw_json *j, const char *name, int64_t at_ms)
{
	if (at_ms)
		fw_json_int(j, name, at_ms);
}

/* ---- feed/N ---------------------------------------------------------------------------------------------------------------------------- */

int rec_sub_put(struct fw_store *st, const struct sub *s, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[REC_KEY_MAX];
	struct fw_json j;

	rec_key(key, "feed", s->feed_id, NULL);
	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "feed", s->feed_id);
	fw_json_cstr(&j, "state", fw_websub_state_name(s->state));
	fw_json_str(&j, "hub", s->hub);
	fw_json_str(&j, "topic", s->topic);
	fw_json_str(&j, "token", s->token);
	fw_json_str(&j, "base", s->base);
	if (s->renewal.len)
		fw_json_str(&j, "renewal", s->renewal);
	fw_json_int(&j, "next_ms", s->next_ms);
	time_out(&j, "asked_ms", s->asked_ms);
	time_out(&j, "since_ms", s->since_ms);
	time_out(&j, "verified_ms", s->verified_ms);
	time_out(&j, "until_ms", s->until_ms);
	time_out(&j, "left_ms", s->left_ms);
	time_out(&j, "distrust_ms", s->distrust_ms);
	time_out(&j, "failed", s->fail_n);
	time_out(&j, "missed", s->missed_n);
	time_out(&j, "nth_hub", s->hub_i);
	if (s->cloud)
		fw_json_bool(&j, "cloud", true);
	if (s->held)
		fw_json_bool(&j, "held", true);
	if (s->sent)
		fw_json_bool(&j, "sent", true);
	fw_json_cstr(&j, "why", s->why);
	fw_json_end(&j);
	return put(st, key, &b, now_ms, s->held ? FW_NO_DATE : FW_MAX(s->next_ms, s->until_ms) + KEEP_MS, err);
}

bool rec_sub_read(struct fw_str value, struct fw_arena *a, struct sub *out)
{
	json_t *o = object(value);
	struct fw_str state = text(o, "state", a);

	*out = (struct sub){.feed_id = number(o, "feed"), .state = FW_WEBSUB_STATE_N, .cloud = flag(o, "cloud"), .held = flag(o, "held"),
		.sent = flag(o, "sent"), .hub = text(o, "hub", a), .topic = text(o, "topic", a), .token = text(o, "token", a),
		.base = text(o, "base", a), .renewal = text(o, "renewal", a), .next_ms = number(o, "next_ms"), .asked_ms = number(o, "asked_ms"),
		.since_ms = number(o, "since_ms"), .verified_ms = number(o, "verified_ms"), .until_ms = number(o, "until_ms"),
		.left_ms = number(o, "left_ms"), .distrust_ms = number(o, "distrust_ms"), .fail_n = (uint32_t)number(o, "failed"),
		.missed_n = (uint32_t)number(o, "missed"), .hub_i = (uint32_t)number(o, "nth_hub")};
	for (int i = 0; i < FW_WEBSUB_STATE_N; i++) {
		if (fw_str_eq(state, fw_str(fw_websub_state_name((enum fw_websub_state)i))))
			out->state = (enum fw_websub_state)i;
	}
	(void)fw_str_copy(out->why, sizeof(out->why), text(o, "why", a));
	json_decref(o);
	return out->feed_id > 0 && out->state != FW_WEBSUB_STATE_N;
}

int rec_sub_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct sub *out, struct fw_err *err)
{
	char key[REC_KEY_MAX];
	struct fw_record r;
	int rc;

	*out = (struct sub){0};
	rec_key(key, "feed", feed_id, NULL);
	rc = get(st, key, a, &r, err);
	if (!rc && !rec_sub_read(r.value, a, out))
		rc = FW_ENOTFOUND;
	if (rc)
		*out = (struct sub){0};
	return rc;
}

/* ---- cb/TOKEN -------------------------------------------------------------------------------------------------------------------------- */

static const char *const CALLBACK_STATE[] = {"asked", "active", "denied", "leaving", "left"};

int rec_callback_put(struct fw_store *st, const struct callback *c, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[REC_KEY_MAX];
	struct fw_json j;

	callback_key(key, c->token);
	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "feed", c->feed_id);
	fw_json_cstr(&j, "state", CALLBACK_STATE[c->state]);
	if (c->cloud)
		fw_json_bool(&j, "cloud", true);
	fw_json_str(&j, "hub", c->hub);
	fw_json_str(&j, "topic", c->topic);
	fw_json_str(&j, "secret", c->secret);
	time_out(&j, "lease_asked_ms", c->lease_asked_ms);
	time_out(&j, "lease_ms", c->lease_ms);
	time_out(&j, "said_ms", c->said_ms);
	fw_json_str(&j, "why", c->why);
	time_out(&j, "tries", c->try_n);
	time_out(&j, "next_ms", c->next_ms);
	fw_json_end(&j);
	return put(st, key, &b, now_ms, now_ms + FW_MAX(c->lease_ms, c->lease_asked_ms) + KEEP_MS, err);
}

bool rec_callback_read(struct fw_str value, struct fw_arena *a, struct callback *out)
{
	json_t *o = object(value);
	struct fw_str state = text(o, "state", a);
	bool known = false;

	*out = (struct callback){.feed_id = number(o, "feed"), .cloud = flag(o, "cloud"), .hub = text(o, "hub", a), .topic = text(o, "topic", a),
		.secret = text(o, "secret", a), .lease_asked_ms = number(o, "lease_asked_ms"), .lease_ms = number(o, "lease_ms"),
		.said_ms = number(o, "said_ms"), .why = text(o, "why", a), .try_n = (uint32_t)number(o, "tries"), .next_ms = number(o, "next_ms")};
	for (size_t i = 0; i < FW_N(CALLBACK_STATE); i++) {
		if (!fw_str_eq(state, fw_str(CALLBACK_STATE[i])))
			continue;
		out->state = (enum callback_state)i;
		known = true;
	}
	json_decref(o);
	return known && out->feed_id > 0;
}

int rec_callback_get(struct fw_store *st, struct fw_str token, struct fw_arena *a, struct callback *out, struct fw_err *err)
{
	char key[REC_KEY_MAX];
	struct fw_record r;
	int rc;

	*out = (struct callback){0};
	if (token.len != SUB_TOKEN_LEN)
		return fw_err_set(err, FW_ENOTFOUND, "no such callback");
	callback_key(key, token);
	rc = get(st, key, a, &r, err);
	if (!rc && !rec_callback_read(r.value, a, out))
		rc = fw_err_set(err, FW_ENOTFOUND, "a callback that cannot be read");
	out->token = token;
	return rc;
}

int rec_callback_remove(struct fw_store *st, struct fw_str token, struct fw_err *err)
{
	char key[REC_KEY_MAX];

	callback_key(key, token);
	return rec_remove(st, key, err);
}

/* ---- base ------------------------------------------------------------------------------------------------------------------------------ */

int rec_base_get(struct fw_store *st, struct fw_arena *a, struct fw_str *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = get(st, "base", a, &r, err);

	*out = rc ? FW_STR_NONE : r.value;
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int rec_base_put(struct fw_store *st, struct fw_str base, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_addstr(&b, base);
	return put(st, "base", &b, now_ms, FW_NO_DATE, err);
}

/* ---- key ------------------------------------------------------------------------------------------------------------------------------- */

int rec_mac_key(struct fw_store *st, unsigned char out[SUB_KEY_LEN], struct fw_err *err)
{
	struct fw_record mine = {.kind = REC_KIND, .key = FW_STR("key"), .at_ms = fw_now_ms(), .until_ms = FW_NO_DATE}, r;
	unsigned char fresh[SUB_KEY_LEN];
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = get(st, "key", &a, &r, err);
	if (!rc && r.value.len != SUB_KEY_LEN) { /* somebody else's hand */
		rc = fw_store_record_remove(st, REC_KIND, mine.key, r.value, err);
		rc = rc ? rc : FW_ENOTFOUND;
	}
	if (rc == FW_ENOTFOUND) {
		mine.value = (struct fw_str){(const char *)fresh, sizeof(fresh)};
		rc = getentropy(fresh, sizeof(fresh)) ? fw_err_set(err, FW_EIO, "no randomness for the key of callbacks") :
			fw_store_record_put(st, &mine, true, NULL, err);
		rc = rc ? rc : get(st, "key", &a, &r, err); /* another may have been faster */
	}
	if (!rc && r.value.len != SUB_KEY_LEN)
		rc = fw_err_set(err, FW_EIO, "the key of callbacks has %zu bytes", r.value.len);
	if (!rc)
		memcpy(out, r.value.p, SUB_KEY_LEN);
	fw_arena_finish(&a);
	return rc;
}

/* ---- n/N ------------------------------------------------------------------------------------------------------------------------------- */

int rec_counts_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct counts *out, struct fw_err *err)
{
	char key[REC_KEY_MAX];
	struct fw_record r;
	json_t *o;
	int rc;

	*out = (struct counts){.feed_id = feed_id};
	rec_key(key, "n", feed_id, NULL);
	rc = get(st, key, a, &r, err);
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	o = object(r.value);
	out->delivered_n = number(o, "delivered");
	out->new_n = number(o, "new");
	out->ignored_n = number(o, "ignored");
	out->last_ms = number(o, "last_ms");
	json_decref(o);
	return 0;
}

int rec_counts_add(struct fw_store *st, const struct counts *more, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[REC_KEY_MAX];
	struct counts now;
	struct fw_arena a;
	struct fw_json j;
	int rc;

	fw_arena_init(&a, 0);
	rc = rec_counts_get(st, more->feed_id, &a, &now, err);
	fw_arena_finish(&a);
	if (rc)
		return rc;
	rec_key(key, "n", more->feed_id, NULL);
	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "delivered", now.delivered_n + more->delivered_n);
	fw_json_int(&j, "new", now.new_n + more->new_n);
	fw_json_int(&j, "ignored", now.ignored_n + more->ignored_n);
	fw_json_int(&j, "last_ms", FW_MAX(now.last_ms, more->last_ms));
	fw_json_end(&j);
	return put(st, key, &b, now_ms, now_ms + KEEP_MS, err);
}

/* ---- brake/N ---------------------------------------------------------------------------------------------------------------------------- */

int rec_brake_get(struct fw_store *st, int64_t feed_id, int64_t *brake_ms, struct fw_err *err)
{
	char key[REC_KEY_MAX];
	struct fw_record r;
	struct fw_arena a;
	int rc;

	*brake_ms = 0;
	rec_key(key, "brake", feed_id, NULL);
	fw_arena_init(&a, 0);
	rc = get(st, key, &a, &r, err);
	if (!rc && !fw_str_int(r.value, brake_ms))
		*brake_ms = 0;
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int rec_brake_put(struct fw_store *st, int64_t feed_id, int64_t brake_ms, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[REC_KEY_MAX];

	rec_key(key, "brake", feed_id, NULL);
	fw_buf_addf(&b, "%lld", (long long)brake_ms);
	return put(st, key, &b, now_ms, FW_MAX(brake_ms, now_ms + 1), err);
}

/* ---- ask/N/WORD ------------------------------------------------------------------------------------------------------------------------- */

int rec_ask(struct fw_store *st, int64_t feed_id, const char *word, const struct missed *m, int64_t now_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	char key[REC_KEY_MAX];
	struct fw_json j;

	rec_key(key, "ask", feed_id, word);
	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	if (m) {
		fw_json_int(&j, "polled_ms", m->polled_ms);
		fw_json_int(&j, "before_ms", m->before_ms);
		fw_json_int(&j, "new", m->new_n);
	}
	fw_json_end(&j);
	return put(st, key, &b, now_ms, now_ms + ASK_KEEP_MS, err);
}

bool rec_missed_read(struct fw_str value, struct missed *out)
{
	json_t *o = object(value);

	*out = (struct missed){number(o, "polled_ms"), number(o, "before_ms"), number(o, "new")};
	json_decref(o);
	return out->polled_ms > 0;
}
