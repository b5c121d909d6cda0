/* SPDX-License-Identifier: ISC */
/*
 * The fetcher: creation and destruction, deferred work on the loop, and what doctor prints about
 * the libraries.
 */
#include <assert.h>
#include <openssl/x509_vfy.h>
#include <signal.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <ares.h>
#include <brotli/decode.h>
#include <idn2.h>
#include <libdeflate.h>

#include "base/clock.h"
#include "base/str.h"
#include "fetch/internal.h"

#define BUFFERED_BYTES (32 << 20)

static const char ACCEPT[] =
	"Accept: application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
	"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1";
static const char ACCEPT_ENCODING[] = "Accept-Encoding: gzip, deflate, br, zstd";

void fw_fetch_config_default(struct fw_fetch_config *c)
{
	*c = (struct fw_fetch_config){
		.max_in_flight = 100,
		.max_redirects = 5,
		.connect_timeout_ms = 10 * FW_SECOND_MS,
		.first_byte_timeout_ms = 15 * FW_SECOND_MS,
		.total_timeout_ms = 60 * FW_SECOND_MS,
		.low_speed_bytes = 100,
		.low_speed_ms = 20 * FW_SECOND_MS,
		.max_body_bytes = 16 << 20,
		.max_compression_ratio = 200,
		.max_buffered_bytes = BUFFERED_BYTES,
		.max_header_bytes = 100 * 1024,
		.max_header_n = 200,
		.http2 = true,
	};
}

uint32_t fw_fetcher_in_flight(const struct fw_fetcher *fr)
{
	return fr->in_flight_n;
}

static void fetch_privs_free(struct fw_fetcher *fr)
{
	while (fr->idle) {
		struct fw_fetch_priv *p = fr->idle;

		fr->idle = p->next;
		fw_transfer_free(p);
		for (size_t i = 0; i < FW_N(p->url); i++)
			fw_buf_finish(&p->url[i]);
		fw_buf_finish(&p->addrs);
		fw_buf_finish(&p->wire_url.wire);
		free(p);
	}
}

static void fetcher_free(struct fw_fetcher *fr)
{
	fw_decoder_destroy(fr->decoder);
	fw_sessions_destroy(fr->sessions);
	fw_limiter_destroy(fr->limiter);
	free((char *)(uintptr_t)fr->c.user_agent);
	free((char *)(uintptr_t)fr->c.ca_file);
	free((char *)(uintptr_t)fr->c.proxy);
	free(fr->fixed[0].data);
	free(fr->fixed[1].data);
	fw_buf_finish(&fr->proxy.wire);
	free(fr);
}

void fw_handle_closed(struct fw_fetcher *fr)
{
	assert(fr->handle_n);
	if (--fr->handle_n == 0 && fr->closing)
		fetcher_free(fr);
}

static void fetcher_handle_closed(uv_handle_t *h)
{
	fw_handle_closed(h->data);
}

static void resolver_closed(void *ctx)
{
	fw_handle_closed(ctx);
}

static void fetcher_close(struct fw_fetcher *fr)
{
	assert(!fr->in_flight && !fr->completed);
	fetch_privs_free(fr);
	fw_transfer_close(fr);
	uv_close((uv_handle_t *)&fr->curl_timer, fetcher_handle_closed);
	uv_close((uv_handle_t *)&fr->tick, fetcher_handle_closed);
	uv_close((uv_handle_t *)&fr->deferred_work, fetcher_handle_closed);
	fw_resolver_destroy(fr->resolver, resolver_closed, fr);
}

/* Work that must not run inside the call that caused it. */
static void on_deferred(uv_idle_t *h)
{
	struct fw_fetcher *fr = h->data;
	struct fw_fetch_priv *p;

	uv_idle_stop(h);
	if (fr->closing) {
		fetcher_close(fr);
		return;
	}
	if (fr->resume) {
		fr->resume = false;
		fw_transfer_resume(fr);
	}
	fw_slots_resume(fr);
	p = fr->in_flight;
	while (p) {
		if (p->start_failed) {
			p->start_failed = false;
			fw_fetch_end(p);
			p = fr->in_flight;
		} else {
			p = p->next;
		}
	}
}

void fw_deferred_soon(struct fw_fetcher *fr)
{
	uv_idle_start(&fr->deferred_work, on_deferred);
}

void fw_resume_soon(struct fw_fetcher *fr)
{
	fr->resume = true;
	fw_deferred_soon(fr);
}

/* The last done() may call this from deep within libcurl or c-ares: close from the loop. */
void fw_fetcher_destroy(struct fw_fetcher *fr)
{
	if (!fr || fr->closing)
		return;
	fr->closing = true;
	fw_deferred_soon(fr);
}

static char *config_str_copy(const char *s, bool *failed)
{
	char *d = s ? fw_str_dup(fw_str(s)) : NULL;

	*failed = *failed || (s && !d);
	return d;
}

/*
 * A broken TLS connection raises SIGPIPE unless libcurl guards each call; ignoring it once is
 * cheaper.
 */
static void ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

static int proxy_prepare(struct fw_fetcher *fr, struct fw_err *err)
{
	struct fw_err why = {0};
	int rc;

	if (!fr->c.proxy)
		return 0;
	rc = fw_wire_url_prepare(&fr->proxy, fw_str(fr->c.proxy), &why);
	if (rc)
		return fw_err_set(err, FW_EINVAL, "proxy: %s: write http://host:port", why.text);
	return 0;
}

int fw_fetcher_create(uv_loop_t *loop, const struct fw_fetch_config *c, struct fw_fetcher **out, struct fw_err *err)
{
	struct fw_fetcher *fr = calloc(1, sizeof(*fr));
	bool failed = false;
	char agent[80];
	int rc;

	*out = NULL;
	if (!fr)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	fr->loop = loop;
	fr->c = *c;
	(void)fw_snprintf(agent, sizeof(agent), "feedwheel/%s", fw_version());
	fr->c.user_agent = config_str_copy(c->user_agent ? c->user_agent : agent, &failed);
	fr->c.ca_file = config_str_copy(
		c->ca_file && *c->ca_file ? c->ca_file : curl_version_info(CURLVERSION_NOW)->cainfo, &failed);
	fr->c.proxy = config_str_copy(c->proxy && *c->proxy ? c->proxy : NULL, &failed);
	fr->c.guard = c->guard ? c->guard : &fr->no_guard;
	fr->c.max_buffered_bytes = c->max_buffered_bytes ? c->max_buffered_bytes : BUFFERED_BYTES;
	fr->c.max_redirects = FW_MIN(c->max_redirects, (uint32_t)FW_REDIRECTS_MAX);
	fr->fixed[0] = (struct curl_slist){config_str_copy(ACCEPT, &failed), &fr->fixed[1]};
	fr->fixed[1] = (struct curl_slist){config_str_copy(ACCEPT_ENCODING, &failed), NULL};
	ignore_sigpipe();
	rc = failed ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
	if (!rc && !fw_header_value_ok(fw_str(fr->c.user_agent)))
		rc = fw_err_set(err, FW_EINVAL, "user_agent: empty, or contains control characters");
	if (!rc)
		rc = proxy_prepare(fr, err);
	if (!rc && (fw_decoder_create(&fr->decoder) || fw_sessions_create(&fr->sessions)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc && c->address_concurrency && !fr->c.proxy && fw_limiter_create(c->address_concurrency, &fr->limiter))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!rc)
		rc = fw_transfer_open(fr, err);
	if (!rc)
		rc = fw_resolver_create(loop, c->dns_servers, NULL, &fr->resolver, err);
	if (rc) {
		fw_transfer_close(fr);
		fetcher_free(fr);
		return rc;
	}
	/*
	 * nothing fails from here on, so the loop never has handles of a fetcher that does not
	 * exist
	 */
	uv_timer_init(loop, &fr->curl_timer);
	uv_timer_init(loop, &fr->tick);
	uv_idle_init(loop, &fr->deferred_work);
	fr->curl_timer.data = fr->tick.data = fr->deferred_work.data = fr;
	fr->handle_n = 4; /* these three and the resolver's */
	*out = fr;
	return 0;
}

/* ---- for doctor ------------------------------------------------------------------------------ */

void fw_fetch_versions(struct fw_buf *out)
{
	uint32_t br = BrotliDecoderVersion();

	fw_buf_addf(out, "%s, c-ares %s, libuv %s, libdeflate %s, zlib %s, brotli %u.%u.%u, zstd %s, libidn2 %s\n",
		curl_version(), ares_version(NULL), uv_version_string(), LIBDEFLATE_VERSION_STRING, zlibVersion(),
		br >> 24, br >> 12 & 0xfff, br & 0xfff, ZSTD_versionString(), idn2_check_version(NULL));
}

const char *fw_fetch_ca_file(void)
{
	return curl_version_info(CURLVERSION_NOW)->cainfo;
}

int fw_fetch_check_tls(const struct fw_fetch_config *c, size_t *n, const char **path, struct fw_err *err)
{
	X509_STORE *store = X509_STORE_new();
	int rc = 0;

	*n = 0;
	*path = c->ca_file && *c->ca_file ? c->ca_file : curl_version_info(CURLVERSION_NOW)->cainfo;
	if (!store)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	if (!*path)
		rc = fw_err_set(err, FW_EIO, "libcurl has no default certificate bundle: set ca_file");
	else if (!X509_STORE_load_file(store, *path))
		rc = fw_err_set(err, FW_EIO,
			"'%s' contains no readable certificates: install ca-certificates, or set ca_file", *path);
	else
		*n = (size_t)sk_X509_OBJECT_num(X509_STORE_get0_objects(store));
	X509_STORE_free(store);
	return rc;
}
