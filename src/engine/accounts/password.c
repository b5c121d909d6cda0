/* SPDX-License-Identifier: ISC */
/*
 * Passwords: Argon2id with the parameters that OWASP recommends for servers, stored in its usual
 * text form, which names them. So they may change later, and old passwords still verify.
 */
#include <argon2.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/accounts/accounts.h"

#define MEMORY_KIB (19 * 1024)
#define PASSES 2
#define LANES 1
#define SALT_BYTES 16
#define HASH_BYTES 32

int account_password_hash(struct fw_str password, char out[ACCOUNT_PASSWORD_HASH_MAX], struct fw_err *err)
{
	unsigned char salt[SALT_BYTES];
	int rc;

	if (password.len < FW_ACCOUNT_PASSWORD_MIN || password.len > FW_ACCOUNT_PASSWORD_MAX)
		return fw_err_set(err, FW_EINVAL, "the password has %zu bytes: take %d to %d", password.len,
			FW_ACCOUNT_PASSWORD_MIN, FW_ACCOUNT_PASSWORD_MAX);
	if (getrandom(salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return FW_ERR(err, FW_EIO, "cannot hash a password: no randomness");
	rc = argon2id_hash_encoded(PASSES, MEMORY_KIB, LANES, password.p, password.len, salt, sizeof(salt), HASH_BYTES,
		out, ACCOUNT_PASSWORD_HASH_MAX);
	return rc == ARGON2_OK ? 0 : FW_ERR(err, FW_ENOMEM, "cannot hash a password: %s", argon2_error_message(rc));
}

bool account_password_is(struct fw_str password, struct fw_str hash)
{
	static const char SALT[] = "nobody's password"; /* SALT_BYTES and more */
	char text[ACCOUNT_PASSWORD_HASH_MAX];
	unsigned char spare[HASH_BYTES];

	if (hash.p && fw_str_copy(text, sizeof(text), hash))
		return argon2id_verify(text, password.p ? password.p : "", password.len) == ARGON2_OK;
	(void)argon2id_hash_raw(PASSES, MEMORY_KIB, LANES, password.p ? password.p : "", password.len, SALT, SALT_BYTES,
		spare, sizeof(spare));
	OPENSSL_cleanse(spare, sizeof(spare));
	return false;
}
