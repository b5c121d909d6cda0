/* SPDX-License-Identifier: ISC */
/*
 * Access tokens in a store. The record's key is the name. The value is text, "push,read
 * 1790000000000 HEX": the scopes, the expiry (-: never), and the SHA-256 of the token; " feed=12
 * property=news" or " out=folder%2FNews" follows if the token is bound. The time of its last use is
 * a separate record of kind "token_used", so that its writer cannot interfere with the removal of
 * the token.
 *
 * A token is 32 random bytes, so guessing it is hopeless, and a deliberately slow hash would only
 * slow down the server: a fast one-way hash is enough.
 */
#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "base/url.h"
#include "feedwheel/ingest.h"
#include "api/token.h"

#define KIND FW_STR("token")
#define KIND_USED FW_STR("token_used")
#define RANDOM_BYTES 32
#define USE_EXPIRY_MS (3650 * FW_DAY_MS)

static const struct {
	const char *name;
	unsigned bit;
} SCOPE[] = {
	{"push", FW_SCOPE_PUSH},
	{"read", FW_SCOPE_READ},
	{"admin", FW_SCOPE_ADMIN},
	{"feed", FW_SCOPE_FEED},
};

static unsigned scope_bit(struct fw_str word)
{
	for (size_t i = 0; i < FW_N(SCOPE); i++) {
		if (fw_str_eq(word, fw_str(SCOPE[i].name)))
			return SCOPE[i].bit;
	}
	return 0;
}

int fw_token_scopes_parse(struct fw_str words, unsigned *out, struct fw_err *err)
{
	struct fw_str rest = words;

	*out = 0;
	while (rest.p) {
		struct fw_str word = fw_str_trim(fw_str_split(rest, ',', &rest));
		unsigned bit = scope_bit(word);

		if (!bit)
			return fw_err_set(err, FW_EINVAL,
				"unknown scope '%.*s': the scopes are push, read and admin, separated by commas, or "
				"feed:NAME alone",
				FW_STR_ARG(fw_str_sub(word, 0, 40)));
		*out |= bit;
	}
	return *out ?
		0 :
		fw_err_set(err, FW_EINVAL, "no scope: name push, read or admin, separated by commas, or feed:NAME");
}

void fw_token_scopes_show(unsigned scopes, char out[FW_TOKEN_SCOPES_MAX])
{
	size_t at = 0;

	out[0] = 0;
	for (size_t i = 0; i < FW_N(SCOPE); i++) {
		if (!(scopes & SCOPE[i].bit))
			continue;
		(void)fw_snprintf(out + at, FW_TOKEN_SCOPES_MAX - at, "%s%s", at ? "," : "", SCOPE[i].name);
		at = strlen(out);
		assert(at < FW_TOKEN_SCOPES_MAX - 1); /* all of them fit */
	}
}

/* ---- bindings ------------------------------------------------------------ */

bool fw_token_bound_next(struct fw_str *rest, struct fw_token_bound *out, bool *wrong)
{
	struct fw_str value, kind, word;
	bool good;

	*out = (struct fw_token_bound){0};
	if (wrong)
		*wrong = false;
	if (!rest->p)
		return false;
	word = fw_str_split(*rest, ' ', rest);
	kind = fw_str_split(word, '=', &value);
	if (fw_str_eq(kind, FW_STR("feed"))) {
		good = value.p && fw_str_int(value, &out->feed_id) && out->feed_id > 0;
	} else if (fw_str_eq(kind, FW_STR("out"))) {
		out->out = value;
		good = value.len > 0;
	} else {
		out->property = value;
		good = fw_str_eq(kind, FW_STR("property")) && value.len;
	}
	if (!good && wrong)
		*wrong = true;
	return good;
}

static bool token_property_is_valid(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
			return false;
	}
	return s.len && s.len <= FW_PROPERTY_MAX;
}

static void token_bind_out(struct fw_buf *bound, struct fw_str name)
{
	fw_buf_adds(bound, "out=");
	fw_url_escape(bound, name);
}

int fw_token_bind(struct fw_buf *bound, const struct fw_token_bound *to, struct fw_err *err)
{
	if (!to->feed_id && !to->out.len && !token_property_is_valid(to->property))
		return fw_err_set(err, FW_EINVAL,
			"a token cannot be bound to the property '%.*s': a property has 1 to %d bytes without spaces",
			FW_STR_ARG(fw_str_sub(to->property, 0, 60)), FW_PROPERTY_MAX);
	if (bound->len)
		fw_buf_addc(bound, ' ');
	if (to->feed_id)
		fw_buf_addf(bound, "feed=%lld", (long long)to->feed_id);
	else if (to->out.len)
		token_bind_out(bound, to->out);
	else
		fw_buf_addf(bound, "property=%.*s", FW_STR_ARG(to->property));
	if (bound->rc)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	return bound->len <= FW_TOKEN_BOUND_MAX ? 0 :
						  fw_err_set(err, FW_ELIMIT,
							  "a token cannot be bound to more than %d bytes of feeds and"
							  " properties: make several tokens",
							  FW_TOKEN_BOUND_MAX);
}

bool fw_token_allows_feed(struct fw_str bound, int64_t feed_id)
{
	struct fw_token_bound to;
	bool may = !bound.p;

	while (!may && fw_token_bound_next(&bound, &to, NULL))
		may = to.feed_id && to.feed_id == feed_id;
	return may;
}

bool fw_token_allows_property(struct fw_str bound, struct fw_str property)
{
	struct fw_token_bound to;
	bool may = !bound.p;

	while (!may && fw_token_bound_next(&bound, &to, NULL))
		may = to.property.p && fw_str_eq(to.property, property);
	return may;
}

bool fw_token_allows_events(struct fw_str bound)
{
	struct fw_token_bound to;
	bool may = !bound.p;

	while (!may && fw_token_bound_next(&bound, &to, NULL))
		may = to.property.p;
	return may;
}

struct fw_str fw_token_feed_name(struct fw_str bound, struct fw_arena *a)
{
	struct fw_token_bound to;
	struct fw_str name;

	while (fw_token_bound_next(&bound, &to, NULL)) {
		if (to.out.p)
			return fw_url_decode(a, to.out, &name) ? name : FW_STR_NONE;
	}
	return FW_STR_NONE;
}

/* Is all of it valid, and of the sort that goes with these scopes? */
static bool token_bound_fits(struct fw_str bound, unsigned scopes)
{
	struct fw_token_bound to;
	bool wrong = false;
	size_t n = 0;

	for (; fw_token_bound_next(&bound, &to, &wrong); n++) {
		if (scopes != (to.out.p ? FW_SCOPE_FEED : FW_SCOPE_PUSH))
			return false;
	}
	return !wrong && (!(scopes & FW_SCOPE_FEED) || n == 1);
}

/* ---- hashes -------------------------------------------------------------- */

static EVP_MD *sha256; /* fetched once: that takes as long as a digest */

static void sha256_find(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

bool fw_token_hash(struct fw_str text, unsigned char out[FW_TOKEN_HASH_BYTES])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sha256_find);
	return sha256 && EVP_Digest(text.p ? text.p : "", text.len, out, NULL, sha256, NULL) == 1;
}

static bool token_make(char text[FW_TOKEN_TEXT_MAX])
{
	unsigned char random[RANDOM_BYTES], base64[RANDOM_BYTES / 3 * 4 + 4 + 1];

	if (getentropy(random, sizeof(random)))
		return false;
	EVP_EncodeBlock(base64, random, sizeof(random));
	for (unsigned char *p = base64; *p; p++)
		/* base64url without padding */
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? 0 : *p;
	return fw_snprintf(text, FW_TOKEN_TEXT_MAX, "fwt_%s", (const char *)base64);
}

/* ---- records ------------------------------------------------------------- */

static void token_value_write(struct fw_buf *b, const struct fw_token *t)
{
	char scopes[FW_TOKEN_SCOPES_MAX], hash[2 * FW_TOKEN_HASH_BYTES + 1];

	assert(t->scopes && !(t->scopes & ~(unsigned)FW_SCOPE_ALL));
	fw_token_scopes_show(t->scopes, scopes);
	fw_hex_write(hash, t->hash, sizeof(t->hash));
	if (t->until_ms == FW_NO_DATE)
		fw_buf_addf(b, "%s - %s", scopes, hash);
	else
		fw_buf_addf(b, "%s %lld %s", scopes, (long long)t->until_ms, hash);
	if (t->bound.p)
		fw_buf_addf(b, " %.*s", FW_STR_ARG(t->bound));
}

static void token_value_parse(struct fw_str value, struct fw_token *t)
{
	struct fw_str rest, scopes = fw_str_split(value, ' ', &rest), until = fw_str_split(rest, ' ', &rest),
			    hash = fw_str_split(rest, ' ', &rest);

	t->until_ms = FW_NO_DATE;
	t->bound = rest;
	t->broken = fw_token_scopes_parse(scopes, &t->scopes, NULL) || !fw_hex_read(hash, t->hash, sizeof(t->hash)) ||
		!token_bound_fits(t->bound, t->scopes) ||
		(!fw_str_eq(until, FW_STR("-")) && !fw_str_int(until, &t->until_ms));
	if (t->broken)
		t->scopes = FW_SCOPE_ALL;
}

static bool token_name_is_valid(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_alnum((unsigned char)s.p[i]) && !strchr("_.-@", s.p[i]))
			return false;
	}
	return s.len && s.len <= FW_TOKEN_NAME_MAX && s.p[0] != '-';
}

static int token_name_refuse(struct fw_str name, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL,
		"token '%.*s': a name is 1 to %d letters, digits and _.-@, and does not start with -",
		FW_STR_ARG(fw_str_sub(name, 0, FW_TOKEN_NAME_MAX)), FW_TOKEN_NAME_MAX);
}

/* Removes the time of last use of a token that is gone. */
static int token_use_remove(struct fw_store *st, struct fw_str name, struct fw_err *err)
{
	int rc = fw_store_record_remove(st, KIND_USED, name, FW_STR_NONE, err);

	return rc == FW_ENOTFOUND ? 0 : rc;
}

static int token_count_record(void *ctx, const struct fw_record *r)
{
	(void)r;
	++*(size_t *)ctx;
	return 0;
}

int fw_token_add(struct fw_store *st, struct fw_str name, unsigned scopes, struct fw_str bound, int64_t now_ms,
	int64_t until_ms, char text[FW_TOKEN_TEXT_MAX], struct fw_err *err)
{
	struct fw_token t = {.name = name, .scopes = scopes, .until_ms = until_ms, .bound = bound};
	struct fw_buf value = FW_BUF_INIT(0);
	size_t n = 0;
	bool was = false;
	int rc;

	if (!token_name_is_valid(name))
		return token_name_refuse(name, err);
	if (scopes & FW_SCOPE_FEED && !token_bound_fits(bound, scopes))
		return fw_err_set(err, FW_EINVAL,
			"token '%.*s': the scope feed needs the name of the feed, and is alone: feed:NAME",
			FW_STR_ARG(name));
	if (!token_bound_fits(bound, scopes))
		return fw_err_set(err, FW_EINVAL,
			"token '%.*s': binding it to feeds or properties needs the scope push alone", FW_STR_ARG(name));
	if (until_ms != FW_NO_DATE && until_ms <= now_ms)
		return fw_err_set(
			err, FW_EINVAL, "token '%.*s': the expiry is in the past: give a later time", FW_STR_ARG(name));
	rc = fw_store_record_list(st, &(struct fw_record_query){.kind = KIND}, token_count_record, &n, err);
	if (rc)
		return rc;
	if (n >= FW_TOKENS_MAX)
		return fw_err_set(
			err, FW_ELIMIT, "the limit of %d tokens is reached: remove some first", FW_TOKENS_MAX);
	if (!token_make(text) || !fw_token_hash(fw_str(text), t.hash))
		return fw_err_set(err, FW_ENOMEM, "cannot create a token: no randomness, or out of memory");
	token_value_write(&value, &t);
	rc = value.rc ? fw_err_set(err, FW_ENOMEM, "out of memory") :
			fw_store_record_put(st,
				&(struct fw_record){.kind = KIND,
					.key = name,
					.value = fw_buf_str(&value),
					.at_ms = now_ms,
					.until_ms = FW_NO_DATE},
				true, &was, err);
	fw_buf_finish(&value);
	if (!rc && was)
		rc = fw_err_set(err, FW_EINVAL,
			"token '%.*s': the name is taken: choose another one, or remove that token first",
			FW_STR_ARG(name));
	/* of a token that was removed while a server used it */
	rc = rc ? rc : token_use_remove(st, name, err);
	if (rc)
		OPENSSL_cleanse(text, FW_TOKEN_TEXT_MAX);
	return rc;
}

int fw_token_remove(struct fw_store *st, struct fw_str name, struct fw_err *err)
{
	int rc = token_name_is_valid(name) ? fw_store_record_remove(st, KIND, name, FW_STR_NONE, err) :
					     token_name_refuse(name, err);

	if (rc == FW_ENOTFOUND)
		return fw_err_set(err, rc, "token '%.*s': no token has this name", FW_STR_ARG(name));
	return rc ? rc : token_use_remove(st, name, err);
}

int fw_token_note_use(struct fw_store *st, struct fw_str name, int64_t used_ms, struct fw_err *err)
{
	return fw_store_record_put(st,
		&(struct fw_record){
			.kind = KIND_USED, .key = name, .at_ms = used_ms, .until_ms = used_ms + USE_EXPIRY_MS},
		false, NULL, err);
}

struct token_list {
	fw_token_cb *cb;
	void *ctx;
	struct fw_arena arena;
	struct fw_map used; /* time of last use, by name */
};

static int token_use_add(void *ctx, const struct fw_record *r)
{
	struct token_list *l = ctx;
	struct fw_str name = fw_arena_str(&l->arena, r->key);
	int64_t *at_ms = fw_arena_alloc(&l->arena, sizeof(*at_ms));
	int rc = FW_ENOMEM;

	if (name.p && at_ms) {
		*at_ms = r->at_ms;
		(void)fw_map_put(&l->used, name, at_ms, &rc);
	}
	return rc;
}

static int token_list_one(void *ctx, const struct fw_record *r)
{
	const struct token_list *l = ctx;
	const int64_t *used_ms = fw_map_get(&l->used, r->key);
	struct fw_token t = {.name = r->key, .at_ms = r->at_ms, .used_ms = used_ms ? *used_ms : 0};

	token_value_parse(r->value, &t);
	return l->cb(l->ctx, &t);
}

int fw_token_list(struct fw_store *st, bool used, fw_token_cb *cb, void *ctx, struct fw_err *err)
{
	struct token_list l = {.cb = cb, .ctx = ctx};
	int rc = 0;

	fw_arena_init(&l.arena, 0);
	fw_map_init(&l.used, 0);
	if (used)
		rc = fw_store_record_list(st, &(struct fw_record_query){.kind = KIND_USED}, token_use_add, &l, err);
	if (rc == FW_ENOMEM)
		fw_err_set(err, rc, "out of memory");
	rc = rc ? rc : fw_store_record_list(st, &(struct fw_record_query){.kind = KIND}, token_list_one, &l, err);
	fw_map_finish(&l.used);
	fw_arena_finish(&l.arena);
	return rc;
}
