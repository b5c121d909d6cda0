/* SPDX-License-Identifier: ISC */
#include "engine/orders/webhook.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

#define PREFIX FW_STR("whsec_")
#define KEY_MIN 16 /* the standard recommends 24, and has an example of 18 */
#define KEY_MAX 64

/* The bytes of a secret; 0: it is invalid. */
static size_t secret_key(struct fw_str secret, unsigned char key[KEY_MAX + 3])
{
	struct fw_str text = fw_str_starts(secret, PREFIX) ? fw_str_sub(secret, PREFIX.len, secret.len) : FW_STR_NONE;
	size_t pad = 0;
	int n;

	if (!text.len || text.len % 4 || text.len / 4 * 3 > KEY_MAX + 2)
		return 0;
	while (pad < 2 && text.p[text.len - 1 - pad] == '=')
		pad++;
	n = EVP_DecodeBlock(key, (const unsigned char *)text.p, (int)text.len);
	if (n < (int)(KEY_MIN + pad) || n > (int)(KEY_MAX + pad))
		return 0;
	return (size_t)n - pad;
}

bool webhook_secret_is_valid(struct fw_str secret)
{
	unsigned char key[KEY_MAX + 3];
	bool valid = secret_key(secret, key) > 0;

	explicit_bzero(key, sizeof(key));
	return valid;
}

static int signature_add(struct fw_buf *out, struct fw_str secret, struct fw_str text, struct fw_err *err)
{
	unsigned char key[KEY_MAX + 3], mac[EVP_MAX_MD_SIZE], base64[EVP_MAX_MD_SIZE / 3 * 4 + 8];
	size_t key_len = secret_key(secret, key);
	unsigned mac_len = 0;
	const unsigned char *made = key_len ?
		HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text.p, text.len, mac, &mac_len) :
		NULL;

	explicit_bzero(key, sizeof(key));
	if (!key_len)
		return fw_err_set(err, FW_EINVAL, "the secret is invalid: 'whsec_' and the base64 of 16 to 64 bytes");
	if (!made)
		return fw_no_memory(err);
	EVP_EncodeBlock(base64, mac, (int)mac_len);
	fw_buf_addf(out, "v1,%s", (const char *)base64);
	return 0;
}

int webhook_headers(const struct fw_order *o, const char *id, int64_t now_ms, struct fw_str body, struct fw_buf *out,
	struct fw_err *err)
{
	struct fw_buf text = FW_BUF_INIT(0);
	long long now_s = now_ms / 1000;
	int rc = 0;

	fw_buf_addf(&text, "%s.%lld.", id, now_s);
	fw_buf_addstr(&text, body);
	fw_buf_addf(out, "webhook-id: %s%cwebhook-timestamp: %lld%cwebhook-signature: ", id, 0, now_s, 0);
	for (size_t i = 0; !rc && i < FW_ORDER_SECRETS && o->secret[i].len; i++) {
		if (i)
			fw_buf_addc(out, ' ');
		rc = signature_add(out, o->secret[i], fw_buf_str(&text), err);
	}
	fw_buf_addc(out, '\0');
	if (!rc && (text.rc || out->rc))
		rc = fw_no_memory(err);
	fw_buf_finish(&text);
	return rc;
}
