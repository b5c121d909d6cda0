/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/websub/websub_records.h"

/* retention after the last due time, in case there is no leader */
#define RECORD_EXPIRY_MS (100 * FW_DAY_MS)
#define MESSAGE_EXPIRY_MS (10 * FW_DAY_MS)

/* ---- keys ---------------------------------------------------------------- */

struct websub_record_key websub_record_key(const char *what, int64_t feed_id, const char *word)
{
	struct websub_record_key k;

	(void)fw_snprintf(
		k.text, sizeof(k.text), "%s/%019lld%s%s", what, (long long)feed_id, word ? "/" : "", word ? word : "");
	return k;
}

bool websub_record_key_read(struct fw_str key, const char *what, int64_t *feed_id, struct fw_str *word)
{
	struct fw_str rest, first = fw_str_split(key, '/', &rest), number = fw_str_split(rest, '/', &rest);

	if (word)
		*word = rest;
	return fw_str_eq(first, fw_str(what)) && fw_str_int(number, feed_id) && *feed_id > 0;
}

static struct websub_record_key callback_key(struct fw_str token)
{
	struct websub_record_key k;

	(void)fw_snprintf(k.text, sizeof(k.text), "cb/%.*s", FW_STR_ARG(token));
	return k;
}

/* ---- values -------------------------------------------------------------- */

static const char *const SUB_STATE[] = {"requested", "active", "off", NULL};
static const char *const CALLBACK_STATE[] = {"requested", "active", "denied", "leaving", "left", NULL};

#define AT(member) offsetof(struct sub, member)
static const struct record_member SUB_MEMBERS[] = {
	{"feed", RECORD_NUMBER, AT(feed_id)},
	{"state", RECORD_STATE, AT(state), SUB_STATE},
	{"hub", RECORD_TEXT, AT(hub)},
	{"topic", RECORD_TEXT, AT(topic)},
	{"token", RECORD_TEXT, AT(token)},
	{"base", RECORD_TEXT, AT(base)},
	{"renewal", RECORD_TEXT, AT(renewal)},
	{"next_ms", RECORD_NUMBER, AT(next_ms)},
	{"asked_ms", RECORD_NUMBER, AT(requested_ms)},
	{"since_ms", RECORD_NUMBER, AT(since_ms)},
	{"verified_ms", RECORD_NUMBER, AT(verified_ms)},
	{"until_ms", RECORD_NUMBER, AT(until_ms)},
	{"left_ms", RECORD_NUMBER, AT(retry_after_ms)},
	{"distrust_ms", RECORD_NUMBER, AT(distrust_ms)},
	{"failed", RECORD_COUNT, AT(fail_n)},
	{"missed", RECORD_COUNT, AT(missed_n)},
	{"nth_hub", RECORD_COUNT, AT(hub_i)},
	{"cloud", RECORD_FLAG, AT(cloud)},
	{"held", RECORD_FLAG, AT(held)},
	{"sent", RECORD_FLAG, AT(accepted)},
	{"why", RECORD_CHARS, AT(why), .cap = sizeof(((struct sub *)NULL)->why)},
	{NULL},
};
#undef AT
#define AT(member) offsetof(struct callback, member)
static const struct record_member CALLBACK_MEMBERS[] = {
	{"feed", RECORD_NUMBER, AT(feed_id)},
	{"state", RECORD_STATE, AT(state), CALLBACK_STATE},
	{"cloud", RECORD_FLAG, AT(cloud)},
	{"hub", RECORD_TEXT, AT(hub)},
	{"topic", RECORD_TEXT, AT(topic)},
	{"secret", RECORD_TEXT, AT(secret)},
	{"lease_asked_ms", RECORD_NUMBER, AT(lease_requested_ms)},
	{"lease_ms", RECORD_NUMBER, AT(lease_ms)},
	{"said_ms", RECORD_NUMBER, AT(decided_ms)},
	{"why", RECORD_TEXT, AT(why)},
	{"tries", RECORD_COUNT, AT(try_n)},
	{"next_ms", RECORD_NUMBER, AT(next_ms)},
	{NULL},
};
#undef AT
#define AT(member) offsetof(struct counts, member)
static const struct record_member COUNTS_MEMBERS[] = {
	{"delivered", RECORD_NUMBER, AT(delivered_n)},
	{"new", RECORD_NUMBER, AT(new_n)},
	{"ignored", RECORD_NUMBER, AT(ignored_n)},
	{"last_ms", RECORD_NUMBER, AT(last_ms)},
	{NULL},
};
#undef AT
#define AT(member) offsetof(struct missed, member)
static const struct record_member MISSED_MEMBERS[] = {
	{"polled_ms", RECORD_NUMBER, AT(polled_ms)},
	{"before_ms", RECORD_NUMBER, AT(before_ms)},
	{"new", RECORD_NUMBER, AT(new_n)},
	{NULL},
};
#undef AT

const char *fw_websub_state_name(enum fw_websub_state s)
{
	return (unsigned)s < FW_WEBSUB_STATE_N ? SUB_STATE[s] : "unknown";
}

/* ---- records ------------------------------------------------------------- */

static int websub_record_put(
	struct fw_store *st, const char *key, struct fw_str value, int64_t now_ms, int64_t until_ms, struct fw_err *err)
{
	struct fw_record r = {
		.kind = WEBSUB_RECORD_KIND, .key = fw_str(key), .value = value, .at_ms = now_ms, .until_ms = until_ms};

	return fw_store_record_put(st, &r, false, NULL, err);
}

static int websub_record_put_members(struct fw_store *st, const char *key, const struct record_member *m,
	const void *from, int64_t now_ms, int64_t until_ms, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int rc;

	record_value_write(&b, m, from);
	rc = b.rc ? fw_no_memory(err) : websub_record_put(st, key, fw_buf_str(&b), now_ms, until_ms, err);
	fw_buf_finish(&b);
	return rc;
}

static int websub_record_get(
	struct fw_store *st, const char *key, struct fw_arena *a, struct fw_record *r, struct fw_err *err)
{
	return fw_store_record_get(st, WEBSUB_RECORD_KIND, fw_str(key), a, r, err);
}

int websub_record_remove(struct fw_store *st, const char *key, struct fw_err *err)
{
	int rc = fw_store_record_remove(st, WEBSUB_RECORD_KIND, fw_str(key), FW_STR_NONE, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

int websub_record_feed_remove(struct fw_store *st, const char *what, int64_t feed_id, struct fw_err *err)
{
	return websub_record_remove(st, websub_record_key(what, feed_id, NULL).text, err);
}

int websub_record_list(struct fw_store *st, const char *prefix, record_walk_cb *cb, void *ctx, struct fw_err *err)
{
	return record_walk(st, WEBSUB_RECORD_KIND, fw_str(prefix), cb, ctx, err);
}

/* ---- feed/N -------------------------------------------------------------- */

int websub_record_sub_put(struct fw_store *st, const struct sub *s, int64_t now_ms, struct fw_err *err)
{
	int64_t until_ms = s->held ? FW_NO_DATE : FW_MAX(s->next_ms, s->until_ms) + RECORD_EXPIRY_MS;

	return websub_record_put_members(
		st, websub_record_key("feed", s->feed_id, NULL).text, SUB_MEMBERS, s, now_ms, until_ms, err);
}

bool websub_record_sub_read(struct fw_str value, struct fw_arena *a, struct sub *out)
{
	return record_value_parse(value, SUB_MEMBERS, a, out) && out->feed_id > 0;
}

int websub_record_sub_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct sub *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = websub_record_get(st, websub_record_key("feed", feed_id, NULL).text, a, &r, err);

	if (!rc && !websub_record_sub_read(r.value, a, out))
		rc = FW_ENOTFOUND;
	if (rc)
		*out = (struct sub){0};
	return rc;
}

/* ---- cb/TOKEN ------------------------------------------------------------ */

int websub_record_callback_put(struct fw_store *st, const struct callback *c, int64_t now_ms, struct fw_err *err)
{
	int64_t until_ms = now_ms + FW_MAX(c->lease_ms, c->lease_requested_ms) + RECORD_EXPIRY_MS;

	return websub_record_put_members(st, callback_key(c->token).text, CALLBACK_MEMBERS, c, now_ms, until_ms, err);
}

bool websub_record_callback_read(struct fw_str value, struct fw_arena *a, struct callback *out)
{
	return record_value_parse(value, CALLBACK_MEMBERS, a, out) && out->feed_id > 0;
}

int websub_record_callback_get(
	struct fw_store *st, struct fw_str token, struct fw_arena *a, struct callback *out, struct fw_err *err)
{
	struct fw_record r;
	int rc;

	*out = (struct callback){.token = token};
	if (token.len != SUB_TOKEN_LEN)
		return fw_err_set(err, FW_ENOTFOUND, "no such callback");
	rc = websub_record_get(st, callback_key(token).text, a, &r, err);
	if (!rc && !websub_record_callback_read(r.value, a, out))
		rc = fw_err_set(err, FW_ENOTFOUND, "the record of the callback is invalid");
	return rc;
}

int websub_record_callback_remove(struct fw_store *st, struct fw_str token, struct fw_err *err)
{
	return websub_record_remove(st, callback_key(token).text, err);
}

/* ---- base ---------------------------------------------------------------- */

int websub_record_base_get(struct fw_store *st, struct fw_arena *a, struct fw_str *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = websub_record_get(st, "base", a, &r, err);

	*out = rc ? FW_STR_NONE : r.value;
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int websub_record_base_put(struct fw_store *st, struct fw_str base, int64_t now_ms, struct fw_err *err)
{
	return websub_record_put(st, "base", base, now_ms, FW_NO_DATE, err);
}

/* ---- key ----------------------------------------------------------------- */

int websub_record_mac_key(struct fw_store *st, unsigned char out[SUB_KEY_LEN], struct fw_err *err)
{
	struct fw_record mine = {.kind = WEBSUB_RECORD_KIND,
				 .key = FW_STR("key"),
				 .at_ms = fw_store_now_ms(st),
				 .until_ms = FW_NO_DATE},
			 r;
	unsigned char fresh[SUB_KEY_LEN];
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = websub_record_get(st, "key", &a, &r, err);
	if (!rc && r.value.len != SUB_KEY_LEN) { /* not written by feedwheel */
		rc = fw_store_record_remove(st, WEBSUB_RECORD_KIND, mine.key, r.value, err);
		rc = rc ? rc : FW_ENOTFOUND;
	}
	if (rc == FW_ENOTFOUND) {
		mine.value = (struct fw_str){(const char *)fresh, sizeof(fresh)};
		rc = getentropy(fresh, sizeof(fresh)) ?
			fw_err_set(err, FW_EIO, "cannot create the key of callbacks: no randomness") :
			fw_store_record_put(st, &mine, true, NULL, err);
		/* another process may have been first */
		rc = rc ? rc : websub_record_get(st, "key", &a, &r, err);
	}
	if (!rc && r.value.len != SUB_KEY_LEN)
		rc = fw_err_set(err, FW_EIO, "the key of callbacks has %zu bytes", r.value.len);
	if (!rc)
		memcpy(out, r.value.p, SUB_KEY_LEN);
	fw_arena_finish(&a);
	return rc;
}

/* ---- n/N ----------------------------------------------------------------- */

int websub_record_counts_get(
	struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct counts *out, struct fw_err *err)
{
	struct fw_record r;
	int rc = websub_record_get(st, websub_record_key("n", feed_id, NULL).text, a, &r, err);

	*out = (struct counts){.feed_id = feed_id};
	if (!rc)
		(void)record_value_parse(r.value, COUNTS_MEMBERS, a, out);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int websub_record_counts_add(struct fw_store *st, const struct counts *more, int64_t now_ms, struct fw_err *err)
{
	struct counts now;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = websub_record_counts_get(st, more->feed_id, &a, &now, err);
	fw_arena_finish(&a);
	if (rc)
		return rc;
	counts_add(&now, more);
	return websub_record_put_members(st, websub_record_key("n", more->feed_id, NULL).text, COUNTS_MEMBERS, &now,
		now_ms, now_ms + RECORD_EXPIRY_MS, err);
}

/* ---- brake/N ------------------------------------------------------------- */

/* The record's expiry is the value. */
int websub_record_rate_get(struct fw_store *st, int64_t feed_id, int64_t *rate_ms, struct fw_err *err)
{
	struct fw_record r;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = websub_record_get(st, websub_record_key("brake", feed_id, NULL).text, &a, &r, err);
	*rate_ms = rc ? 0 : r.until_ms;
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}

int websub_record_rate_put(struct fw_store *st, int64_t feed_id, int64_t rate_ms, int64_t now_ms, struct fw_err *err)
{
	return websub_record_put(st, websub_record_key("brake", feed_id, NULL).text, FW_STR(""), now_ms,
		FW_MAX(rate_ms, now_ms + 1), err);
}

/* ---- ask/N/WORD ---------------------------------------------------------- */

int websub_record_message_put(struct fw_store *st, int64_t feed_id, const char *word, const struct missed *m,
	int64_t now_ms, struct fw_err *err)
{
	static const struct missed none;

	return websub_record_put_members(st, websub_record_key("ask", feed_id, word).text, MISSED_MEMBERS,
		m ? m : &none, now_ms, now_ms + MESSAGE_EXPIRY_MS, err);
}

bool websub_record_missed_read(struct fw_str value, struct missed *out)
{
	return record_value_parse(value, MISSED_MEMBERS, NULL, out) && out->polled_ms > 0;
}
