/* SPDX-License-Identifier: ISC */
/*
 * Classify: the kind and the text of a visit's outcome. The texts are our own and never contain
 * bytes of the response (NET-16).
 */
#include <errno.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "base/clock.h"
#include "fetch/internal.h"

static int visit_kind_code(enum fw_visit_kind kind)
{
	switch (kind) {
	case FW_VISIT_OK:
	case FW_VISIT_NOT_MODIFIED:
		return 0;
	case FW_VISIT_GONE:
		return FW_EGONE;
	case FW_VISIT_LIMIT:
		return FW_ELIMIT;
	case FW_VISIT_BLOCKED:
		return FW_EBLOCKED;
	case FW_VISIT_LOCAL:
		return FW_EIO;
	default:
		return FW_ENET;
	}
}

void fw_fetch_set_outcome(struct fw_fetch *f, enum fw_visit_kind kind, const char *fmt, ...)
{
	va_list ap;
	struct fw_buf b = FW_BUF_INIT(0);

	if (f->kind != FW_VISIT_NONE)
		return;
	f->kind = kind;
	va_start(ap, fmt);
	fw_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fw_err_set(&f->err, visit_kind_code(kind), "%s", b.p ? b.p : "out of memory");
	fw_buf_finish(&b);
}

void fw_fetch_no_memory(struct fw_fetch *f)
{
	fw_fetch_set_outcome(f, FW_VISIT_LOCAL, "out of memory");
	f->err.rc = FW_ENOMEM;
}

static bool errno_is_local(long e)
{
	return e == EMFILE || e == ENFILE || e == ENOMEM || e == ENOBUFS || e == EADDRNOTAVAIL;
}

static void classify_tls(struct fw_fetch_priv *p, CURLcode rc)
{
	long verify = 0;

	curl_easy_getinfo(p->easy, CURLINFO_SSL_VERIFYRESULT, &verify);
	if (verify != X509_V_OK && verify != X509_V_ERR_UNSPECIFIED)
		fw_fetch_set_outcome(
			p->f, FW_VISIT_TLS, FW_FETCH_CERTIFICATE ": %s", X509_verify_cert_error_string(verify));
	else if (rc == CURLE_PEER_FAILED_VERIFICATION) /* libcurl's own check of the host name */
		fw_fetch_set_outcome(p->f, FW_VISIT_TLS, FW_FETCH_CERTIFICATE ": issued for another host name");
	else
		fw_fetch_set_outcome(p->f, FW_VISIT_TLS, "TLS handshake failed: %s", curl_easy_strerror(rc));
}

void fw_classify_no_slot(struct fw_fetch_priv *p)
{
	fw_fetch_set_outcome(p->f, FW_VISIT_LOCAL,
		"no free slot at the address for %lld ms, which left too little of total_timeout (raise "
		"address_concurrency)",
		(long long)(p->slot_waited_us / 1000));
}

static void classify_timeout(struct fw_fetch_priv *p)
{
	const struct fw_fetch_config *c = &p->fr->c;
	int64_t now_us = fw_mono_us();
	bool early = now_us < p->deadline_us; /* by our clock; libcurl's may be slightly ahead */

	if (p->paused)
		fw_fetch_set_outcome(p->f, FW_VISIT_LOCAL,
			"paused too long, while other large bodies filled the buffer (lower concurrency)");
	else if (early && !p->ready_us)
		fw_fetch_set_outcome(p->f, FW_VISIT_TIMEOUT, "not connected within %lld ms (connect_timeout)",
			(long long)c->connect_timeout_ms);
	else if (early && c->low_speed_bytes && now_us - p->ready_us >= c->low_speed_ms * 1000)
		fw_fetch_set_outcome(p->f, FW_VISIT_TIMEOUT, "less than %lld bytes/s over %lld ms (low_speed)",
			(long long)c->low_speed_bytes, (long long)c->low_speed_ms);
	else if (p->slot_waited_us)
		fw_classify_no_slot(p);
	else
		fw_fetch_set_outcome(p->f, FW_VISIT_TIMEOUT, "not finished within %lld ms (total_timeout)",
			(long long)c->total_timeout_ms);
}

/*
 * The text holds no address: a redirect may have named it, or a DNS server of a network that the
 * reader must not see into.
 */
void fw_classify_refused(struct fw_fetch_priv *p, const char *why, int port)
{
	if (strcmp(why, FW_GUARD_DENIED) == 0)
		fw_fetch_set_outcome(p->f, FW_VISIT_BLOCKED, "fetch refused: the address is in deny_networks");
	else if (strcmp(why, FW_GUARD_PORT) == 0 && p->fr->c.proxy && !p->wire_url.literal)
		fw_fetch_set_outcome(
			p->f, FW_VISIT_BLOCKED, "fetch refused: port %d of a host name, behind a proxy", port);
	else if (strcmp(why, FW_GUARD_PORT) == 0)
		fw_fetch_set_outcome(p->f, FW_VISIT_BLOCKED,
			"fetch refused: port %d (to permit it, add the address with this port to allow_networks: "
			"ADDRESS:%d)",
			port, port);
	else if (!fw_guard_port_ok(port))
		fw_fetch_set_outcome(p->f, FW_VISIT_BLOCKED,
			"fetch refused: %s address, port %d (to permit it, add the address with this port to "
			"allow_networks: ADDRESS:%d)",
			why, port, port);
	else
		fw_fetch_set_outcome(
			p->f, FW_VISIT_BLOCKED, "fetch refused: %s address (to permit it, set allow_networks)", why);
}

static void classify_connect(struct fw_fetch_priv *p)
{
	long e = 0;

	curl_easy_getinfo(p->easy, CURLINFO_OS_ERRNO, &e);
	if (p->socket_errno)
		e = p->socket_errno;
	p->f->deferred = p->send_refused;
	if (p->send_refused)
		fw_fetch_set_outcome(p->f, FW_VISIT_LOCAL, "the host must not be requested now");
	else if (p->refused)
		fw_classify_refused(p, p->refused, p->refused_port);
	else if (errno_is_local(e))
		fw_fetch_set_outcome(p->f, FW_VISIT_LOCAL,
			"cannot open a socket: %s (raise the limit of open files, or lower concurrency)",
			strerror((int)e));
	else
		fw_fetch_set_outcome(p->f, FW_VISIT_CONNECT, "connection failed: %s", e ? strerror((int)e) : "refused");
	p->f->refused = e == ECONNREFUSED || e == ECONNRESET;
}

void fw_classify_failure(struct fw_fetch_priv *p, CURLcode rc)
{
	switch (rc) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_ABORTED_BY_CALLBACK:
		classify_connect(p);
		break;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		fw_fetch_set_outcome(p->f, FW_VISIT_DNS, "the host name has no address");
		break;
	case CURLE_OPERATION_TIMEDOUT:
		classify_timeout(p);
		break;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		classify_tls(p, rc);
		break;
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_INITFAILED:
		fw_fetch_set_outcome(p->f, FW_VISIT_LOCAL,
			"cannot read the trust store (check ca_file, or install ca-certificates)");
		break;
#if FW_HAVE_CURLE_TOO_LARGE
	case CURLE_TOO_LARGE:
#endif
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		/*
		 * before 8.6 libcurl reports its own limit of 100 kB for a header line with this
		 * code
		 */
		if (p->response.header_bytes)
			fw_fetch_set_outcome(p->f, FW_VISIT_LIMIT, "a header line is longer than 100 kB");
		else
			fw_fetch_no_memory(p->f);
		break;
	case CURLE_PARTIAL_FILE:
		fw_fetch_set_outcome(p->f, FW_VISIT_PROTOCOL, "the response was cut short");
		break;
	case CURLE_GOT_NOTHING:
		fw_fetch_set_outcome(p->f, FW_VISIT_PROTOCOL, "the server closed the connection without a response");
		break;
	default:
		fw_fetch_set_outcome(
			p->f, FW_VISIT_PROTOCOL, "the response broke off or is not HTTP: %s", curl_easy_strerror(rc));
	}
}

void fw_classify_status(struct fw_fetch_priv *p)
{
	int status = p->response.status;

	if (status / 100 == 2)
		return;
	if (status == 304 && p->sent_validators)
		p->f->kind = FW_VISIT_NOT_MODIFIED;
	else if (status == 304)
		fw_fetch_set_outcome(
			p->f, FW_VISIT_PROTOCOL, "HTTP 304 (not modified) in response to an unconditional request");
	else if (status == 410)
		fw_fetch_set_outcome(p->f, FW_VISIT_GONE, "HTTP 410 (gone for good)");
	else if (status < 300 || status > 999)
		fw_fetch_set_outcome(p->f, FW_VISIT_PROTOCOL, "the response has an invalid HTTP status");
	else
		fw_fetch_set_outcome(p->f, FW_VISIT_HTTP, "HTTP %d", status);
}

void fw_classify_name(struct fw_fetch_priv *p, enum fw_resolve_state state)
{
	switch (state) {
	case FW_RESOLVE_NONE:
		fw_fetch_set_outcome(p->f, FW_VISIT_DNS, "the host name does not exist or has no address");
		p->f->refused = true;
		break;
	case FW_RESOLVE_TIMEOUT:
		fw_fetch_set_outcome(p->f, FW_VISIT_DNS, "the name servers do not respond");
		break;
	case FW_RESOLVE_LOCAL:
		fw_fetch_set_outcome(
			p->f, FW_VISIT_LOCAL, "cannot look up the host name: out of memory or file descriptors");
		break;
	default:
		fw_fetch_set_outcome(p->f, FW_VISIT_DNS, "the name servers failed to resolve the host name");
	}
}

void fw_classify_url(struct fw_fetch_priv *p, const struct fw_err *err)
{
	enum fw_visit_kind kind = FW_VISIT_PROTOCOL;

	if (err->rc == FW_ENOMEM)
		kind = FW_VISIT_LOCAL;
	else if (p->n > 0)
		kind = FW_VISIT_REDIRECT;
	else if (err->rc == FW_EBLOCKED)
		kind = FW_VISIT_BLOCKED;
	else if (err->rc == FW_ELIMIT)
		kind = FW_VISIT_LIMIT;
	fw_fetch_set_outcome(p->f, kind, p->n > 0 ? "redirect failed: %s" : "%s", err->text);
	if (err->rc == FW_EINVAL && p->n == 0)
		p->f->err.rc = FW_EINVAL;
}
