/* SPDX-License-Identifier: ISC */
/*
 * A table with one place per hash of the server's name. A new session replaces the old one in its
 * place, and the full name is compared before a session is offered. OpenSSL reports new sessions by
 * a callback. libcurl leaves no callback for offering one, so that is done when the handshake
 * starts.
 */
#include <openssl/ssl.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "base/str.h"
#include "fetch/session.h"

#define SESSION_SLOTS 1024
#define DER_MAX (8 * 1024) /* sessions with larger certificates are not kept */

struct session_slot {
	char *name;
	unsigned char *der;
	size_t n;
	int64_t until_s; /* Unix time */
};

struct fw_sessions {
	struct session_slot slot[SESSION_SLOTS];
};

/* of one connection; lives as long as its SSL_CTX */
struct session_hook {
	struct fw_sessions *sessions;
	bool offered;
	char name[];
};

static int hook_index = -1;

static void hook_free(void *parent, void *p, CRYPTO_EX_DATA *ad, int index, long n, void *arg)
{
	(void)parent;
	(void)ad;
	(void)index;
	(void)n;
	(void)arg;
	free(p);
}

static void session_slot_clear(struct session_slot *p)
{
	free(p->name);
	free(p->der);
	*p = (struct session_slot){.name = NULL};
}

static struct session_slot *session_slot_of(struct session_hook *h)
{
	return &h->sessions->slot[fw_hash64(h->name, strlen(h->name)) % SESSION_SLOTS];
}

/*
 * The server issued a session, during the handshake or later. Returns 0: OpenSSL keeps its
 * reference.
 */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct session_hook *h = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), hook_index);
	struct session_slot *p = session_slot_of(h), fresh = {.name = NULL};
	unsigned char *at;
	int n = i2d_SSL_SESSION(session, NULL);

	if (n <= 0 || n > DER_MAX || !SSL_SESSION_is_resumable(session))
		return 0;
	fresh.der = at = malloc((size_t)n);
	fresh.name = fw_str_dup(fw_str(h->name));
	if (!fresh.der || !fresh.name) {
		session_slot_clear(&fresh);
		return 0;
	}
	i2d_SSL_SESSION(session, &at);
	fresh.n = (size_t)n;
	/* lifetime starts now */
	/* wall clock: OpenSSL counts with it */
	fresh.until_s = (int64_t)time(NULL) + SSL_SESSION_get_timeout(session);
	session_slot_clear(p);
	*p = fresh;
	return 0;
}

/* The handshake starts: offer the cached session for this server, once. */
static void on_handshake_info(const SSL *ssl, int where, int ret)
{
	struct session_hook *h = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), hook_index);
	const unsigned char *at;
	SSL_SESSION *session;
	struct session_slot *p;

	(void)ret;
	if (!(where & SSL_CB_HANDSHAKE_START) || h->offered)
		return;
	h->offered = true;
	p = session_slot_of(h);
	if (!p->name || strcmp(p->name, h->name) != 0)
		return;
	at = p->der;
	/* wall clock: as until_s */
	session = p->until_s > (int64_t)time(NULL) ? d2i_SSL_SESSION(NULL, &at, (long)p->n) : NULL;
	if (session)
		(void)SSL_set_session((SSL *)(uintptr_t)ssl, session);
	SSL_SESSION_free(session);
	session_slot_clear(p);
}

int fw_sessions_create(struct fw_sessions **out)
{
	if (hook_index < 0)
		hook_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, hook_free);
	*out = hook_index < 0 ? NULL : calloc(1, sizeof(**out));
	return *out ? 0 : FW_ENOMEM;
}

void fw_sessions_destroy(struct fw_sessions *s)
{
	for (size_t i = 0; s && i < SESSION_SLOTS; i++)
		session_slot_clear(&s->slot[i]);
	free(s);
}

int fw_sessions_hook(struct fw_sessions *s, void *ssl_ctx, const char *host, int port)
{
	size_t n = strlen(host) + 8;
	struct session_hook *h = calloc(1, sizeof(*h) + n);

	if (!h)
		return FW_ENOMEM;
	h->sessions = s;
	fw_snprintf(h->name, n, "%s:%d", host, port);
	if (!SSL_CTX_set_ex_data(ssl_ctx, hook_index, h)) {
		free(h);
		return FW_ENOMEM;
	}
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
	/*
	 * A close without close_notify ends a body, as in browsers; with a Content-Length,
	 * truncation is still noticed.
	 */
	SSL_CTX_set_options(ssl_ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
	SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ssl_ctx, on_new_session);
	SSL_CTX_set_info_callback(ssl_ctx, on_handshake_info);
	return 0;
}
