/* SPDX-License-Identifier: ISC */
/*
 * Certificate and key. libmicrohttpd takes them as PEM text, and its messages about errors are
 * poor; so OpenSSL checks them first. They are read at the start of the server. SIGHUP starts a new
 * server, which reads renewed ones.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "http/server/http.h"

#define PEM_MAX ((size_t)1 << 20)

static int read_pem(const char *setting, const char *path, char **out, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(PEM_MAX);
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return fw_err_set(err, FW_EINVAL, "%s = %s: %s", setting, path, strerror(errno));
	rc = fw_buf_read(&b, f);
	if (rc == FW_EIO)
		rc = fw_err_set(err, FW_EINVAL, "%s = %s: %s", setting, path, strerror(errno));
	else if (rc)
		rc = fw_err_set(err, FW_EINVAL, "%s = %s: not a PEM file (larger than 1 MiB)", setting, path);
	fclose(f);
	if (!rc && !b.len)
		rc = fw_err_set(err, FW_EINVAL, "%s = %s: the file is empty", setting, path);
	if (rc)
		fw_buf_finish(&b);
	else
		*out = fw_buf_take(&b, NULL);
	return rc;
}

/* Without this callback OpenSSL asks the terminal. */
static int no_pass_phrase(char *to, int size, int writing, void *ctx)
{
	(void)to;
	(void)size;
	(void)writing;
	(void)ctx;
	return -1;
}

static const char *openssl_reason(void)
{
	const char *words = ERR_reason_error_string(ERR_peek_last_error());

	return words ? words : "unknown";
}

static int tls_check(const struct fw_config *c, struct fw_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int rc = 0;

	ERR_clear_error();
	if (!ctx)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	SSL_CTX_set_default_passwd_cb(ctx, no_pass_phrase);
	if (SSL_CTX_use_certificate_chain_file(ctx, c->tls_cert) != 1)
		rc = fw_err_set(err, FW_EINVAL,
			"tls_cert = %s: %s (expected PEM: the certificate first, then its issuers)", c->tls_cert,
			openssl_reason());
	else if (SSL_CTX_use_PrivateKey_file(ctx, c->tls_key, SSL_FILETYPE_PEM) != 1)
		rc = fw_err_set(err, FW_EINVAL,
			"tls_key = %s: %s (expected PEM: the private key of tls_cert, without a pass phrase)",
			c->tls_key, openssl_reason());
	else if (SSL_CTX_check_private_key(ctx) != 1)
		rc = fw_err_set(err, FW_EINVAL, "tls_key = %s: not the key of the certificate in tls_cert = %s: %s",
			c->tls_key, c->tls_cert, openssl_reason());
	SSL_CTX_free(ctx);
	ERR_clear_error();
	return rc;
}

int http_tls_read(const struct fw_config *c, struct http_tls *out, struct fw_err *err)
{
	int rc;

	if (!c->tls_cert && !c->tls_key)
		return 0;
	if (!c->tls_cert || !c->tls_key)
		return fw_err_set(err, FW_EINVAL, "%s is not set (set both tls_cert and tls_key, or neither)",
			c->tls_cert ? "tls_key" : "tls_cert");
	if (MHD_is_feature_supported(MHD_FEATURE_TLS) == MHD_NO)
		return fw_err_set(err, FW_EINVAL,
			"tls_cert: this libmicrohttpd was built without TLS (put a proxy in front, or install one with "
			"GnuTLS)");
	rc = read_pem("tls_cert", c->tls_cert, &out->cert, err);
	if (!rc)
		rc = read_pem("tls_key", c->tls_key, &out->key, err);
	return rc ? rc : tls_check(c, err);
}

void http_tls_free(struct http_tls *t)
{
	if (t->key)
		OPENSSL_cleanse(t->key, strlen(t->key));
	free(t->key);
	free(t->cert);
}
