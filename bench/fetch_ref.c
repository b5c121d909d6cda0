/* SPDX-License-Identifier: ISC */
/*
 * The reference: bare libcurl, multi_socket with epoll, one thread, fetching only. Its rate is the
 * upper bound for a fetcher on libcurl: it ignores what it receives.
 *
 *   fetch_ref FILE [IN_FLIGHT] [--raw] [--twice] [--keep] [--ca FILE]
 *
 * FILE has one URL per line. --raw: bodies are not decompressed. --twice: a second pass with the
 * validators of the first. --keep: connections and names are cached. With each feed on a host of
 * its own that only costs time (libcurl walks the cache at each end of a transfer: 300 us with 300
 * connections), so the reference does not do it by default.
 */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/epoll.h>

#include "fetch_common.h"

struct slot {
	CURL *easy;
	size_t at;
	struct curl_slist *headers;
};

static struct bench_list list;
static size_t next, failed, running;
static unsigned long long bytes;
static bool raw, keep, conditional;
static const char *ca;
static CURLM *multi;
static int epoll_fd;
static long timeout_ms = -1;

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
	(void)p;
	(void)ctx;
	bytes += size * n;
	return size * n;
}

static void learn(char **where, const char *p, size_t n, size_t name)
{
	while (n > name && (p[n - 1] == '\n' || p[n - 1] == '\r'))
		n--;
	while (name < n && p[name] == ' ')
		name++;
	free(*where);
	*where = bench_copy(p + name, n - name);
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct slot *s = ctx;

	n *= size;
	if (n > 5 && strncasecmp(p, "ETag:", 5) == 0)
		learn(&list.etag[s->at], p, n, 5);
	else if (n > 14 && strncasecmp(p, "Last-Modified:", 14) == 0)
		learn(&list.last_modified[s->at], p, n, 14);
	return n;
}

static void add_header(struct slot *s, const char *name, const char *value)
{
	char line[1000];

	snprintf(line, sizeof(line), "%s: %s", name, value);
	s->headers = curl_slist_append(s->headers, line);
}

static bool start(struct slot *s)
{
	if (next == list.n)
		return false;
	s->at = next++;
	curl_slist_free_all(s->headers);
	s->headers = NULL;
	curl_easy_reset(s->easy);
	curl_easy_setopt(s->easy, CURLOPT_URL, list.url[s->at]);
	curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
	curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(s->easy, CURLOPT_PROXY, "");
	curl_easy_setopt(s->easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, 60000L);
	curl_easy_setopt(s->easy, CURLOPT_CAPATH, NULL);
	if (!keep) {
		curl_easy_setopt(s->easy, CURLOPT_FORBID_REUSE, 1L);
		curl_easy_setopt(s->easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
	}
	if (ca)
		curl_easy_setopt(s->easy, CURLOPT_CAINFO, ca);
	if (!conditional) {
		curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, on_header);
		curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
	}
	if (raw)
		add_header(s, "Accept-Encoding", "gzip");
	else
		curl_easy_setopt(s->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	if (conditional && list.etag[s->at])
		add_header(s, "If-None-Match", list.etag[s->at]);
	if (conditional && list.last_modified[s->at])
		add_header(s, "If-Modified-Since", list.last_modified[s->at]);
	curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
	curl_multi_add_handle(multi, s->easy);
	running++;
	return true;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
	struct epoll_event e = {
		.data.fd = fd, .events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u)};

	(void)easy;
	(void)ctx;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	epoll_ctl(epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
	if (!known)
		curl_multi_assign(multi, fd, &list);
	return 0;
}

static int on_timeout(CURLM *m, long ms, void *ctx)
{
	(void)m;
	(void)ctx;
	timeout_ms = ms;
	return 0;
}

static void harvest(void)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left))) {
		CURL *easy = m->easy_handle;
		struct slot *s = NULL;
		long status = 0;

		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&s);
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		failed += m->data.result != CURLE_OK || (status / 100 != 2 && status != 304);
		curl_multi_remove_handle(multi, easy);
		running--;
		start(s);
	}
}

static void pass(const char *name, struct slot *slot, size_t n)
{
	struct bench_watch from = bench_now();
	int still;

	next = failed = running = 0;
	bytes = 0;
	for (size_t i = 0; i < n && start(&slot[i]); i++)
		;
	while (running) {
		struct epoll_event e[256];
		int got = epoll_wait(epoll_fd, e, 256,
			timeout_ms > 0 && timeout_ms < 1000 ? (int)timeout_ms :
				timeout_ms == 0             ? 0 :
							      1000);

		if (got < 0 && errno != EINTR)
			abort();
		for (int i = 0; i < got; i++) {
			int what = (e[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
				(e[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(e[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);

			curl_multi_socket_action(multi, e[i].data.fd, what, &still);
		}
		if (got <= 0 || timeout_ms == 0)
			curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &still);
		harvest();
	}
	bench_report(name, list.n, failed, bytes, from);
}

int main(int argc, char **argv)
{
	size_t n = 300;
	struct slot *slot;
	bool twice = false;

	if (argc < 2) {
		fputs("usage: fetch_ref FILE [IN_FLIGHT] [--raw] [--twice] [--keep] [--ca FILE]\n", stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--raw") == 0)
			raw = true;
		else if (strcmp(argv[i], "--keep") == 0)
			keep = true;
		else if (strcmp(argv[i], "--twice") == 0)
			twice = true;
		else if (strcmp(argv[i], "--ca") == 0 && i + 1 < argc)
			ca = argv[++i];
		else
			n = strtoul(argv[i], NULL, 10);
	}
	signal(SIGPIPE, SIG_IGN);
	bench_list_read(&list, argv[1]);
	curl_global_init(CURL_GLOBAL_ALL);
	multi = curl_multi_init();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	slot = calloc(n ? n : 1, sizeof(*slot));
	if (!multi || epoll_fd < 0 || !slot || !n)
		abort();
	for (size_t i = 0; i < n; i++)
		slot[i].easy = curl_easy_init();
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)n);
	pass("libcurl", slot, n);
	if (twice) {
		conditional = true;
		pass("libcurl again", slot, n);
	}
	for (size_t i = 0; i < n; i++) {
		curl_easy_cleanup(slot[i].easy);
		curl_slist_free_all(slot[i].headers);
	}
	curl_multi_cleanup(multi);
	free(slot);
	bench_list_free(&list);
	return failed ? 1 : 0;
}
