/* SPDX-License-Identifier: ISC */
/* A place for each HMAC, by its first bytes; the newest that wants the place has it. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "http/auth/password_cache.h"

#define KEY_BYTES 32
#define HMAC_BYTES 32 /* SHA-256 */

struct password_place {
	unsigned char hmac[HMAC_BYTES];
	uint64_t mark;
	int64_t until_ms; /* 0: empty */
};

struct password_cache {
	unsigned char key[KEY_BYTES];
	pthread_mutex_t lock;
	struct password_place place[PASSWORD_CACHE_N];
};

struct password_cache *password_cache_create(void)
{
	struct password_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (getrandom(c->key, sizeof(c->key), 0) != (ssize_t)sizeof(c->key)) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void password_cache_destroy(struct password_cache *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	OPENSSL_cleanse(c, sizeof(*c));
	free(c);
}

/* False: no memory. The NUL parts name and password: no account's name has one. */
static bool password_hmac(
	const struct password_cache *c, struct fw_str name, struct fw_str password, unsigned char out[HMAC_BYTES])
{
	struct fw_buf b = FW_BUF_INIT(0);
	unsigned n = 0;
	bool good;

	fw_buf_addstr(&b, name);
	fw_buf_addc(&b, 0);
	fw_buf_addstr(&b, password);
	good = !b.rc && HMAC(EVP_sha256(), c->key, KEY_BYTES, (const unsigned char *)b.p, b.len, out, &n) &&
		n == HMAC_BYTES;
	if (b.p)
		OPENSSL_cleanse(b.p, b.len);
	fw_buf_finish(&b);
	return good;
}

static struct password_place *password_place(struct password_cache *c, const unsigned char hmac[HMAC_BYTES])
{
	return &c->place[(hmac[0] | (unsigned)hmac[1] << 8) % PASSWORD_CACHE_N];
}

bool password_cache_has(
	struct password_cache *c, struct fw_str name, struct fw_str password, uint64_t mark, int64_t now_ms)
{
	unsigned char hmac[HMAC_BYTES];
	const struct password_place *p;
	bool has;

	if (!password_hmac(c, name, password, hmac))
		return false;
	pthread_mutex_lock(&c->lock);
	p = password_place(c, hmac);
	has = p->until_ms > now_ms && p->mark == mark && CRYPTO_memcmp(p->hmac, hmac, sizeof(hmac)) == 0;
	pthread_mutex_unlock(&c->lock);
	return has;
}

void password_cache_add(
	struct password_cache *c, struct fw_str name, struct fw_str password, uint64_t mark, int64_t now_ms)
{
	unsigned char hmac[HMAC_BYTES];
	struct password_place *p;

	if (!password_hmac(c, name, password, hmac))
		return;
	pthread_mutex_lock(&c->lock);
	p = password_place(c, hmac);
	memcpy(p->hmac, hmac, sizeof(hmac));
	p->mark = mark;
	p->until_ms = now_ms + PASSWORD_CACHE_MS;
	pthread_mutex_unlock(&c->lock);
}
