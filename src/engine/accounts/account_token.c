/* SPDX-License-Identifier: ISC */
/*
 * Tokens of an account: 256 random bits as letters and digits, because clients of the Google Reader
 * API send them without escapes. The store keeps 16 bytes of the SHA-256. A Fever client sends
 * md5("name:secret"), so that text is what is hashed.
 */
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/accounts/accounts.h"

#define TOKEN_CHARS 43 /* of 62: 256 bits */
_Static_assert(TOKEN_CHARS < FW_ACCOUNT_TOKEN_MAX, "a token and NUL");

static bool account_token_make(char text[FW_ACCOUNT_TOKEN_MAX])
{
	static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	const unsigned fair = 256 - 256 % (sizeof(ALPHABET) - 1); /* above, some letters would be likelier */
	unsigned char b[64];
	size_t n = 0;

	while (n < TOKEN_CHARS) {
		if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
			return false;
		for (size_t i = 0; i < sizeof(b) && n < TOKEN_CHARS; i++) {
			if (b[i] < fair)
				text[n++] = ALPHABET[b[i] % (sizeof(ALPHABET) - 1)];
		}
	}
	text[n] = '\0';
	OPENSSL_cleanse(b, sizeof(b));
	return true;
}

static bool account_token_hash(struct fw_str text, unsigned char out[16])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!EVP_Digest(text.p ? text.p : "", text.len, hash, &n, EVP_sha256(), NULL) || n < 16)
		return false;
	memcpy(out, hash, 16);
	return true;
}

/* What a Fever client makes of name and secret: 32 lower hexadecimal digits. */
static bool account_fever_key(struct fw_str name, const char *secret, char out[33])
{
	static const char HEX[] = "0123456789abcdef";
	struct fw_buf b = FW_BUF_INIT(0);
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	bool good;

	fw_buf_addstr(&b, name);
	fw_buf_addc(&b, ':');
	fw_buf_adds(&b, secret);
	good = !b.rc && EVP_Digest(b.p, b.len, md, &n, EVP_md5(), NULL) && n == 16;
	for (size_t i = 0; good && i < 16; i++) {
		out[2 * i] = HEX[md[i] >> 4];
		out[2 * i + 1] = HEX[md[i] & 15];
	}
	out[32] = '\0';
	if (b.p)
		OPENSSL_cleanse(b.p, b.len);
	fw_buf_finish(&b);
	return good;
}

/* ---- add, remove, list ----------------------------------------------------------------------- */

struct account_by_id {
	int64_t id;
	char name[FW_ACCOUNT_NAME_MAX + 1];
};

static int account_by_id_one(void *ctx, const struct store_account *a)
{
	struct account_by_id *w = ctx;

	if (a->a.id != w->id)
		return 0;
	(void)fw_str_copy(w->name, sizeof(w->name), a->a.name);
	return 1;
}

static int account_token_hash_make(
	struct store *to, const struct store_accounts *d, struct store_token *t, const char *text, struct fw_err *err)
{
	struct account_by_id who = {.id = t->account_id};
	char key[33];
	bool good = true;
	int rc = 0;

	if (t->t.kind != FW_ACCOUNT_TOKEN_FEVER)
		return account_token_hash(fw_str(text), t->hash) ? 0 : fw_no_memory(err);
	rc = d->list(to, FW_STR_NONE, account_by_id_one, &who, err);
	if (rc != 1)
		return rc ? rc : store_account_missing(d ? to->driver->name : "", err);
	good = account_fever_key(fw_str(who.name), text, key) && account_token_hash(fw_str(key), t->hash);
	OPENSSL_cleanse(key, sizeof(key));
	return good ? 0 : FW_ERR(err, FW_EUNSUP, "cannot make a key for Fever: this system has no MD5");
}

int fw_account_token_add(struct fw_store *st, int64_t account_id, struct fw_str name, enum fw_account_token_kind kind,
	int64_t now_ms, int64_t until_ms, char text[FW_ACCOUNT_TOKEN_MAX], struct fw_err *err)
{
	struct store_token t = {.account_id = account_id,
		.t = {.name = name, .kind = kind, .created_ms = now_ms, .until_ms = until_ms}};
	struct store *to = store_of(st);
	const struct store_accounts *d;
	int rc;

	err = STORE_ERR(err);
	d = store_accounts(to, err);
	if (!d)
		return FW_EINVAL;
	rc = account_name_check(name, err);
	if (rc)
		return rc;
	if (!account_token_make(text))
		return FW_ERR(err, FW_EIO, "cannot create a token: no randomness");
	rc = account_token_hash_make(to, d, &t, text, err);
	rc = rc ? rc : d->token_put(to, &t, now_ms, err);
	if (rc)
		OPENSSL_cleanse(text, FW_ACCOUNT_TOKEN_MAX);
	return rc;
}

int fw_account_token_remove(struct fw_store *st, int64_t account_id, enum fw_account_token_kind kind,
	struct fw_str name, struct fw_err *err)
{
	const struct store_accounts *d = store_accounts(store_of(st), STORE_ERR(err));

	return d ? d->token_remove(store_of(st), account_id, kind, name, STORE_ERR(err)) : FW_EINVAL;
}

int fw_account_token_list(
	struct fw_store *st, int64_t account_id, fw_account_token_cb *cb, void *ctx, struct fw_err *err)
{
	const struct store_accounts *d = store_accounts(store_of(st), STORE_ERR(err));

	return d ? d->token_list(store_of(st), account_id, cb, ctx, STORE_ERR(err)) : FW_EINVAL;
}

/* ---- find ------------------------------------------------------------------------------------ */

struct account_token_owner {
	struct fw_arena *a;
	struct fw_account *out;
	bool found;
};

static int account_token_owner_one(void *ctx, const struct store_account *a)
{
	struct account_token_owner *w = ctx;

	*w->out = a->a;
	w->out->name = fw_arena_str(w->a, a->a.name);
	w->found = true;
	return w->out->name.p ? 0 : FW_ENOMEM;
}

int fw_account_token_find(struct fw_store *st, struct fw_str text, enum fw_account_token_kind kind, int64_t now_ms,
	struct fw_arena *a, struct fw_account *out, struct fw_err *err)
{
	struct account_token_owner w = {.a = a, .out = out};
	struct store_token t = {0};
	struct store *to = store_of(st);
	const struct store_accounts *d;
	int rc;

	err = STORE_ERR(err);
	d = store_accounts(to, err);
	if (!d)
		return FW_EINVAL;
	if (!account_token_hash(text, t.hash))
		return fw_no_memory(err);
	rc = d->token_find(to, &t, account_token_owner_one, &w, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (t.t.kind == FW_ACCOUNT_TOKEN_LOGIN)
		t.t.kind = FW_ACCOUNT_TOKEN_CLIENT;
	if (!w.found || t.t.kind != kind || (t.t.until_ms != FW_NO_DATE && t.t.until_ms <= now_ms))
		return FW_ERR(err, FW_ENOTFOUND, "no such token, or it has expired");
	out->token_name = fw_arena_str(a, fw_str(t.found_name));
	if (!out->token_name.p)
		return fw_no_memory(err);
	/* a store that cannot be written to now does not keep clients out */
	if (now_ms - t.t.used_ms >= ACCOUNT_USE_STEP_MS)
		(void)d->token_use(to, &t, now_ms, &(struct fw_err){0});
	return 0;
}
