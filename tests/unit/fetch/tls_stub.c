/* SPDX-License-Identifier: ISC */
#include <check.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls_stub.h"

static void extension(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	ck_assert_ptr_nonnull(e);
	X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
}

static X509 *certificate(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, int flags)
{
	X509 *c = X509_new();

	X509_set_version(c, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(c), issuer ? 2 : 1);
	X509_gmtime_adj(X509_getm_notBefore(c), -7200);
	X509_gmtime_adj(X509_getm_notAfter(c), flags & TLS_STUB_EXPIRED && issuer ? -3600 : 7200);
	X509_set_pubkey(c, key);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(c), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(c, X509_get_subject_name(issuer ? issuer : c));
	if (issuer)
		extension(c, NID_subject_alt_name, "IP:127.0.0.1,DNS:feeds.example");
	else
		extension(c, NID_basic_constraints, "critical,CA:TRUE");
	ck_assert_int_gt(X509_sign(c, issuer_key, EVP_sha256()), 0);
	return c;
}

static int select_alpn(
	SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in, unsigned n, void *ctx)
{
	struct tls_stub *t = ctx;

	(void)ssl;
	for (unsigned i = 0; i < n && i + in[i] < n; i += 1u + in[i]) {
		if (in[i] == 2 && memcmp(in + i + 1, "h2", 2) == 0)
			t->offered_h2 = true;
		if (in[i] == 2 && t->h2) {
			*out = in + i + 1;
			*out_n = 2;
			break;
		}
		if (in[i] == 8 && memcmp(in + i + 1, "http/1.1", 8) == 0) {
			*out = in + i + 1;
			*out_n = 8;
		}
	}
	return *out ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

struct job {
	struct tls_stub *stub;
	int fd;
};

/* One request. False: the connection is to be closed, *rude: without close_notify. */
static bool serve(SSL *ssl, bool *rude)
{
	char in[4096], out[600], path[200] = "";
	static const char BODY[] = "<rss/>";
	int n = 0, port = 0;

	while (n < (int)sizeof(in) - 1) {
		int got = SSL_read(ssl, in + n, (int)sizeof(in) - 1 - n);

		if (got <= 0)
			return false;
		n += got;
		in[n] = '\0';
		if (strstr(in, "\r\n\r\n"))
			break;
	}
	sscanf(in, "%*s %199s", path);
	*rude = strcmp(path, "/close") == 0;
	if (*rude)
		snprintf(out, sizeof(out), "HTTP/1.1 200 OK\r\n\r\n%s", BODY);
	else if (sscanf(path, "/to-http?%d", &port) == 1)
		snprintf(out, sizeof(out),
			"HTTP/1.1 %s\r\nLocation: http://127.0.0.1:%d/feed\r\nContent-Length: 0\r\n\r\n",
			strncmp(in, "POST ", 5) ? "302 Found" : "307 Go On", port);
	else
		snprintf(out, sizeof(out), "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n%s",
			strcmp(path, "/last") == 0 ? "Connection: close\r\n" : "", sizeof(BODY) - 1, BODY);
	SSL_write(ssl, out, (int)strlen(out));
	return !*rude && strcmp(path, "/last") != 0;
}

static void *talk(void *arg)
{
	struct job *j = arg;
	struct tls_stub *t = j->stub;
	SSL *ssl = SSL_new(t->ctx);
	bool rude = false;

	SSL_set_fd(ssl, j->fd);
	if (t->h2) {
		if (SSL_accept(ssl) == 1)
			h2_talk(ssl);
	} else if (SSL_accept(ssl) == 1) {
		t->resumed_n += SSL_session_reused(ssl);
		do {
			t->request_n++;
		} while (serve(ssl, &rude));
		t->request_n--;
		if (rude)
			t->request_n++;
		else
			SSL_shutdown(ssl);
	}
	ERR_clear_error();
	SSL_free(ssl);
	close(j->fd);
	free(j);
	t->busy_n--;
	return NULL;
}

static void *listen_on(void *arg)
{
	struct tls_stub *t = arg;
	int fd;

	while ((fd = accept(t->fd, NULL, NULL)) >= 0) {
		struct job *j = malloc(sizeof(*j));
		pthread_t id;

		ck_assert_ptr_nonnull(j);
		*j = (struct job){t, fd};
		t->conn_n++;
		t->busy_n++;
		ck_assert_int_eq(pthread_create(&id, NULL, talk, j), 0);
		pthread_detach(id);
	}
	return NULL;
}

void tls_open(struct tls_stub *t, int flags)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
	X509 *ca = certificate("feedwheel test authority", ca_key, NULL, ca_key, flags);
	X509 *cert = certificate("feeds.example", key, ca, ca_key, flags);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
	socklen_t n = sizeof(sa);
	BIO *bio = BIO_new(BIO_s_mem());
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char *p;
	long len;

	memset(t, 0, sizeof(*t));
	t->ctx = ctx;
	t->h2 = flags & TLS_STUB_H2;
	ck_assert_int_eq(SSL_CTX_use_certificate(ctx, cert), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, key), 1);
	SSL_CTX_set_alpn_select_cb(ctx, select_alpn, t);
	ck_assert_int_eq(PEM_write_bio_X509(bio, ca), 1);
	len = BIO_get_mem_data(bio, &p);
	t->ca_pem = strndup(p, (size_t)len);
	BIO_free(bio);
	X509_free(ca);
	X509_free(cert);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(key);
	t->fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(t->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(t->fd, 512), 0);
	ck_assert_int_eq(getsockname(t->fd, (struct sockaddr *)&sa, &n), 0);
	t->port = ntohs(sa.sin_port);
	ck_assert_int_eq(pthread_create(&t->thread, NULL, listen_on, t), 0);
}

void tls_close(struct tls_stub *t)
{
	shutdown(t->fd, SHUT_RDWR);
	pthread_join(t->thread, NULL);
	close(t->fd);
	while (t->busy_n) /* the fetcher has closed its side: they end */
		usleep(1000);
	SSL_CTX_free(t->ctx);
	free(t->ca_pem);
}
