/* SPDX-License-Identifier: ISC */
/*
 * One cache entry per name: a lookup in progress, with its waiters, or a result with its expiry.
 * The list is in order of lookup: a full cache drops its oldest entries, but none in progress.
 *
 * c-ares reports which of its sockets want which events; each gets a uv_poll_t. One timer follows
 * ares_timeout().
 */
#include <ares.h>
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "base/url.h"
#include "fetch/resolve.h"

#define CACHE_MAX 20000
#define TTL_MIN_MS (30 * 1000)
#define TTL_MAX_MS (60 * 60 * 1000)
#define NONE_MS (60 * 1000)
#define FAIL_MS (10 * 1000)
#define LOCAL_MS 1000
#define CONF_CHECK_MS 2000
#define QUERY_MS 2500 /* first try; c-ares doubles it for the next */
#define QUERY_TRIES 3
#define ADDR_MAX 8

struct fw_resolve_entry {
	struct fw_resolver *r;
	enum fw_resolve_state state;  /* FW_RESOLVE_WAIT: lookup in progress */
	uint64_t lookup_ms, until_ms; /* on the loop's clock */
	char *addrs;
	bool delivering; /* its waiters are being called back: must not be freed */
	struct fw_resolve_wait *wait;
	struct fw_resolve_entry *prev, *next;
	size_t host_len;
	char host[];
};

/* one socket of c-ares */
struct resolver_watch {
	uv_poll_t poll;
	struct fw_resolver *r;
	ares_socket_t fd;
	struct resolver_watch *next;
};

struct fw_resolver {
	uv_loop_t *loop;
	ares_channel ares;
	uv_timer_t timer;
	struct resolver_watch *watch;
	struct fw_map by_host;
	struct fw_resolve_entry *oldest, *newest;
	size_t entry_n;
	size_t handle_n; /* open handles of the loop */
	bool v6_first;   /* there is a route to the IPv6 internet */
	char *conf;      /* path of resolv.conf */
	struct stat conf_was;
	uint64_t checked_ms; /* last check of that file */
	bool is_configured;  /* the servers come from the configuration; conf is ignored */
	bool renewing;       /* lookups are being cancelled, to be sent to other servers */
	bool in_resolve;     /* inside fw_resolve(): callbacks must not run */
	bool undelivered;    /* results came during fw_resolve(): the timer delivers them */
	void (*closed)(void *ctx);
	void *ctx;
};

/* ---- c-ares on the loop ---------------------------------------------------------------------- */

static void resolver_free(struct fw_resolver *r)
{
	if (r)
		free(r->conf);
	free(r);
}

static void resolver_handle_closed(struct fw_resolver *r)
{
	assert(r->handle_n);
	if (--r->handle_n > 0 || !r->closed)
		return;
	r->closed(r->ctx);
	resolver_free(r);
}

static void resolver_timer_closed(uv_handle_t *h)
{
	resolver_handle_closed(h->data);
}

static void resolver_watch_closed(uv_handle_t *h)
{
	struct resolver_watch *w = h->data;
	struct fw_resolver *r = w->r;

	free(w);
	resolver_handle_closed(r);
}

static void resolver_on_timer(uv_timer_t *t);

/* c-ares has done some work: set the timer for its next deadline. */
static void resolver_timer_set(struct fw_resolver *r)
{
	struct timeval tv, *got = ares_timeout(r->ares, NULL, &tv);
	uint64_t ms;

	if (r->undelivered) {
		uv_timer_start(&r->timer, resolver_on_timer, 0, 0);
		return;
	}
	if (!got) {
		uv_timer_stop(&r->timer);
		return;
	}
	ms = (uint64_t)got->tv_sec * 1000 + (uint64_t)got->tv_usec / 1000 + 1;
	uv_update_time(r->loop);
	uv_timer_start(&r->timer, resolver_on_timer, ms, 0);
}

static void entry_deliver(struct fw_resolve_entry *e);

static void results_deliver(struct fw_resolver *r)
{
	struct fw_resolve_entry *e = r->oldest;

	r->undelivered = false;
	while (e) {
		if (e->wait && e->state != FW_RESOLVE_WAIT) {
			entry_deliver(e);
			e = r->oldest; /* the list may have changed */
		} else {
			e = e->next;
		}
	}
}

static void resolver_on_timer(uv_timer_t *t)
{
	struct fw_resolver *r = t->data;

	if (r->undelivered)
		results_deliver(r);
	ares_process_fd(r->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	resolver_timer_set(r);
}

static void resolver_on_socket(uv_poll_t *p, int status, int events)
{
	struct resolver_watch *w = p->data;
	struct fw_resolver *r = w->r;
	ares_socket_t fd = w->fd;
	bool both = status < 0;

	/* frees w if c-ares closes the socket */
	ares_process_fd(r->ares, both || events & UV_READABLE ? fd : ARES_SOCKET_BAD,
		both || events & UV_WRITABLE ? fd : ARES_SOCKET_BAD);
	resolver_timer_set(r);
}

static void socket_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct fw_resolver *r = ctx;
	struct resolver_watch **at = &r->watch, *w;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	w = *at;
	if (!readable && !writable) {
		if (w) {
			*at = w->next;
			uv_close((uv_handle_t *)&w->poll, resolver_watch_closed);
		}
		return;
	}
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w || uv_poll_init(r->loop, &w->poll, fd)) {
			free(w); /* the query will time out */
			return;
		}
		w->poll.data = w;
		w->r = r;
		w->fd = fd;
		w->next = r->watch;
		r->watch = w;
		r->handle_n++;
	}
	uv_poll_start(&w->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0), resolver_on_socket);
}

/* Is there a route to the IPv6 internet? Connecting a datagram socket sends nothing. */
static bool has_ipv6_route(void)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool yes;

	if (fd < 0)
		return false;
	sa.sin6_addr.s6_addr[0] = 0x26; /* 2600:: */
	yes = connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0;
	close(fd);
	return yes;
}

static int ares_rc; /* result of the library's only initialisation */
static pthread_once_t ares_once = PTHREAD_ONCE_INIT;

static void ares_init_once(void)
{
	ares_rc = ares_library_init(ARES_LIB_INIT_ALL);
}

static int ares_channel_open(struct fw_resolver *r, ares_channel *out)
{
	static char LOOKUPS[] = "b"; /* name servers only: hosts_file_lookup() reads the hosts file */
	struct ares_options o = {.flags = ARES_FLAG_STAYOPEN,
		.timeout = QUERY_MS,
		.tries = QUERY_TRIES,
		.lookups = LOOKUPS,
		.sock_state_cb = socket_state,
		.sock_state_cb_data = r,
		.resolvconf_path = r->conf};

	return ares_init_options(out, &o,
		ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB |
			ARES_OPT_RESOLVCONF);
}

/* Has the file changed since the last call? */
static bool conf_changed(struct fw_resolver *r)
{
	struct stat now, *was = &r->conf_was;
	bool same;

	if (stat(r->conf, &now))
		return false; /* being replaced: it will reappear */
	same = now.st_ino == was->st_ino && now.st_size == was->st_size && now.st_mtim.tv_sec == was->st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
	*was = now;
	return !same;
}

/* c-ares takes a port modulo 65536. */
static bool servers_have_ports(const char *servers)
{
	struct fw_str rest = fw_str(servers), address;
	bool ok = true;
	int port;

	while (ok && rest.p)
		ok = fw_port_split(fw_str_trim(fw_str_split(rest, ',', &rest)), &address, &port);
	return ok;
}

int fw_resolver_create(
	uv_loop_t *loop, const char *servers, const char *conf, struct fw_resolver **out, struct fw_err *err)
{
	struct fw_resolver *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	pthread_once(&ares_once, ares_init_once);
	if (r)
		r->conf = fw_str_dup(fw_str(conf ? conf : "/etc/resolv.conf"));
	if (!r || !r->conf || ares_rc == ARES_ENOMEM) {
		resolver_free(r);
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	r->loop = loop;
	r->is_configured = servers && *servers;
	(void)conf_changed(r);
	rc = ares_channel_open(r, &r->ares);
	if (rc != ARES_SUCCESS) {
		resolver_free(r);
		return fw_err_set(
			err, FW_EIO, "cannot start the name resolver: %s (see /etc/resolv.conf)", ares_strerror(rc));
	}
	if (r->is_configured &&
		(!servers_have_ports(servers) || ares_set_servers_ports_csv(r->ares, servers) != ARES_SUCCESS)) {
		ares_destroy(r->ares);
		resolver_free(r);
		return fw_err_set(err, FW_EINVAL,
			"dns_servers: '%s' is not a list of addresses: write 192.0.2.53,[2001:db8::53]:5353", servers);
	}
	uv_timer_init(loop, &r->timer);
	r->timer.data = r;
	r->handle_n = 1;
	r->v6_first = has_ipv6_route();
	fw_map_init(&r->by_host, (uint64_t)(uintptr_t)r);
	*out = r;
	return 0;
}

static void resolve_entry_free(struct fw_resolve_entry *e);

void fw_resolver_destroy(struct fw_resolver *r, void (*closed)(void *ctx), void *ctx)
{
	r->closed = closed;
	r->ctx = ctx;
	r->handle_n++;         /* until this function ends */
	ares_destroy(r->ares); /* completes lookups with ARES_EDESTRUCTION and closes the sockets */
	for (struct fw_resolve_entry *e = r->oldest, *next; e; e = next) {
		next = e->next;
		resolve_entry_free(e);
	}
	fw_map_finish(&r->by_host);
	uv_close((uv_handle_t *)&r->timer, resolver_timer_closed);
	r->handle_n--;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void resolve_entry_unlink(struct fw_resolve_entry *e)
{
	struct fw_resolver *r = e->r;

	*(e->prev ? &e->prev->next : &r->oldest) = e->next;
	*(e->next ? &e->next->prev : &r->newest) = e->prev;
	e->prev = e->next = NULL;
}

static void resolve_entry_link(struct fw_resolve_entry *e)
{
	struct fw_resolver *r = e->r;

	e->prev = r->newest;
	*(r->newest ? &r->newest->next : &r->oldest) = e;
	r->newest = e;
}

static void resolve_entry_free(struct fw_resolve_entry *e)
{
	assert(!e->wait && !e->delivering);
	resolve_entry_unlink(e);
	fw_map_del(&e->r->by_host, (struct fw_str){e->host, e->host_len});
	e->r->entry_n--;
	free(e->addrs);
	free(e);
}

/* Create an entry in the list and the map; NULL: out of memory. */
static struct fw_resolve_entry *resolve_entry_create(struct fw_resolver *r, struct fw_str host)
{
	struct fw_resolve_entry *e = calloc(1, sizeof(*e) + host.len + 1);
	int rc = 0;

	if (!e)
		return NULL;
	for (struct fw_resolve_entry *old = r->oldest, *next; r->entry_n >= CACHE_MAX && old; old = next) {
		next = old->next;
		if (old->state != FW_RESOLVE_WAIT && !old->wait && !old->delivering)
			resolve_entry_free(old);
	}
	e->r = r;
	e->lookup_ms = uv_now(r->loop);
	e->host_len = host.len;
	memcpy(e->host, host.p, host.len + 1);
	fw_map_put(&r->by_host, (struct fw_str){e->host, e->host_len}, e, &rc);
	if (rc) {
		free(e);
		return NULL;
	}
	resolve_entry_link(e);
	r->entry_n++;
	return e;
}

static void addr_add(struct fw_buf *b, int family, const void *addr)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(family, addr, text, sizeof(text));
	fw_buf_addf(b, family == AF_INET ? "%s%s" : "%s[%s]", b->len ? "," : "", text);
}

static const void *addr_of(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return &((const struct sockaddr_in *)sa)->sin_addr;
	return &((const struct sockaddr_in6 *)sa)->sin6_addr;
}

/* The order in which the address families are tried. */
static void family_order(const struct fw_resolver *r, int family[2])
{
	family[0] = r->v6_first ? AF_INET6 : AF_INET;
	family[1] = r->v6_first ? AF_INET : AF_INET6;
}

/* The result as text: one family after the other, each with half of the places. */
static char *addrs_text(const struct fw_resolver *r, const struct ares_addrinfo *ai, int *ttl_s)
{
	int family[2];
	struct fw_buf b = FW_BUF_INIT(0);

	*ttl_s = INT32_MAX;
	family_order(r, family);
	for (int i = 0; i < 2; i++) {
		int n = 0;

		for (const struct ares_addrinfo_node *a = ai->nodes; a && n < ADDR_MAX / 2; a = a->ai_next) {
			if (a->ai_family != family[i])
				continue;
			addr_add(&b, family[i], addr_of(a->ai_addr));
			*ttl_s = FW_MIN(*ttl_s, a->ai_ttl);
			n++;
		}
	}
	if (b.rc) {
		fw_buf_finish(&b);
		return NULL;
	}
	return fw_buf_take(&b, NULL);
}

static enum fw_resolve_state resolve_state_of(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return FW_RESOLVE_OK;
	case ARES_ENODATA:
	case ARES_ENOTFOUND:
	case ARES_EBADNAME:
		return FW_RESOLVE_NONE;
	case ARES_ETIMEOUT:
		return FW_RESOLVE_TIMEOUT;
	case ARES_ENOMEM:
	case ARES_ECANCELLED:
	case ARES_EDESTRUCTION:
		return FW_RESOLVE_LOCAL;
	default:
		return FW_RESOLVE_FAIL;
	}
}

static void entry_deliver(struct fw_resolve_entry *e)
{
	e->delivering = true;
	while (e->wait) {
		struct fw_resolve_wait *w = e->wait;

		fw_resolve_cancel(w);
		w->cb(w, e->state, e->addrs);
	}
	e->delivering = false;
}

static void on_lookup_done(void *ctx, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct fw_resolve_entry *e = ctx;
	struct fw_resolver *r = e->r;
	int64_t ms = FAIL_MS;
	int ttl_s;

	(void)timeouts;
	if (status == ARES_ECANCELLED && r->renewing)
		return; /* the lookup stays in progress */
	e->state = resolve_state_of(status);
	if (e->state == FW_RESOLVE_OK && !(ai && ai->nodes))
		e->state = FW_RESOLVE_NONE;
	if (e->state == FW_RESOLVE_OK) {
		e->addrs = addrs_text(r, ai, &ttl_s);
		if (!e->addrs)
			e->state = FW_RESOLVE_LOCAL;
		ms = FW_MAX(FW_MIN((int64_t)ttl_s * 1000, TTL_MAX_MS), TTL_MIN_MS);
	} else if (e->state == FW_RESOLVE_NONE) {
		ms = NONE_MS;
	} else if (e->state == FW_RESOLVE_LOCAL) {
		ms = LOCAL_MS;
	}
	ares_freeaddrinfo(ai);
	e->until_ms = uv_now(r->loop) + (uint64_t)ms;
	if (!r->in_resolve)
		entry_deliver(e);
	else if (e->wait)
		r->undelivered = true;
}

/* Look in the hosts file. True: it has the name, and the entry has its result. */
static bool hosts_file_lookup(struct fw_resolve_entry *e)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int family[2];

	family_order(e->r, family);
	for (int i = 0; i < 2; i++) {
		struct hostent *h = NULL;

		if (ares_gethostbyname_file(e->r->ares, e->host, family[i], &h) != ARES_SUCCESS)
			continue;
		for (int n = 0; h->h_addr_list[n] && n < ADDR_MAX / 2; n++)
			addr_add(&b, family[i], h->h_addr_list[n]);
		ares_free_hostent(h);
	}
	if (!b.len || b.rc) {
		fw_buf_finish(&b);
		return false;
	}
	e->addrs = fw_buf_take(&b, NULL);
	e->state = FW_RESOLVE_OK;
	e->until_ms = uv_now(e->r->loop) + TTL_MIN_MS;
	return true;
}

/*
 * A name with a dot is looked up as it is. The search list of resolv.conf applies only to names
 * without. Otherwise every dead host would cost extra queries, in a Kubernetes pod (ndots:5) every
 * host would, and a wildcard in the list would match unrelated hosts.
 */
static void lookup_send(struct fw_resolve_entry *e)
{
	static const struct ares_addrinfo_hints HINTS = {
		.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	bool dotted = memchr(e->host, '.', e->host_len) != NULL;
	char name[256]; /* a name has at most 253 bytes */

	(void)fw_snprintf(name, sizeof(name), dotted ? "%s." : "%s", e->host);
	e->r->in_resolve = true;
	ares_getaddrinfo(e->r->ares, name, NULL, &HINTS, on_lookup_done, e);
	e->r->in_resolve = false;
	resolver_timer_set(e->r);
}

static int servers_copy(ares_channel to, ares_channel from)
{
#if FW_HAVE_ARES_SERVERS_CSV
	char *servers = ares_get_servers_csv(from);
	int rc = servers ? ares_set_servers_ports_csv(to, servers) : ARES_ENOMEM;

	ares_free_string(servers);
#else
	struct ares_addr_port_node *servers = NULL;
	int rc = ares_get_servers_ports(from, &servers);

	if (rc == ARES_SUCCESS)
		rc = ares_set_servers_ports(to, servers);
	ares_free_data(servers);
#endif
	return rc;
}

/*
 * The machine changed its network, or DHCP its servers: from now on the servers in resolv.conf are
 * asked, also for lookups in progress. c-ares 1.18 never rereads the file, and would keep the old
 * servers.
 */
static void servers_renew(struct fw_resolver *r)
{
	ares_channel fresh;

	if (r->is_configured || uv_now(r->loop) - r->checked_ms < CONF_CHECK_MS)
		return;
	r->checked_ms = uv_now(r->loop);
	if (!conf_changed(r) || ares_channel_open(r, &fresh) != ARES_SUCCESS)
		return;
	r->in_resolve = r->renewing = true;
	ares_cancel(r->ares);
	r->in_resolve = r->renewing = false;
	r->v6_first = has_ipv6_route();
	if (servers_copy(r->ares, fresh) != ARES_SUCCESS)
		r->conf_was = (struct stat){0}; /* out of memory: retry next time */
	for (struct fw_resolve_entry *e = r->oldest; e; e = e->next) {
		if (e->state == FW_RESOLVE_WAIT)
			lookup_send(e);
	}
	ares_destroy(fresh);
}

/* RFC 6761 section 6.3: always this machine, whatever a hosts file or a name server returns. */
static bool is_localhost(struct fw_str host)
{
	return fw_str_eq(host, FW_STR("localhost")) || fw_str_ends(host, FW_STR(".localhost"));
}

enum fw_resolve_state fw_resolve(struct fw_resolver *r, const char *host, struct fw_resolve_wait *w, const char **addrs)
{
	const struct fw_str name = {host, strlen(host)};
	struct fw_resolve_entry *e = fw_map_get(&r->by_host, name);

	*addrs = NULL;
	w->entry = NULL;
	w->age_ms = 0;
	if (is_localhost(name)) {
		*addrs = r->v6_first ? "[::1],127.0.0.1" : "127.0.0.1,[::1]";
		return FW_RESOLVE_OK;
	}
	if (e && e->state != FW_RESOLVE_WAIT && !e->delivering && !e->wait && e->until_ms <= uv_now(r->loop)) {
		resolve_entry_free(e);
		e = NULL;
	}
	if (e) {
		w->age_ms = uv_now(r->loop) - e->lookup_ms;
	} else {
		servers_renew(r);
		e = resolve_entry_create(r, name);
		if (!e)
			return FW_RESOLVE_LOCAL;
		if (!hosts_file_lookup(e))
			lookup_send(e);
	}
	if (e->state != FW_RESOLVE_WAIT) {
		*addrs = e->addrs;
		return e->state;
	}
	w->entry = e;
	w->prev = NULL;
	w->next = e->wait;
	if (e->wait)
		e->wait->prev = w;
	e->wait = w;
	return FW_RESOLVE_WAIT;
}

void fw_resolve_cancel(struct fw_resolve_wait *w)
{
	if (!w->entry)
		return;
	*(w->prev ? &w->prev->next : &w->entry->wait) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->entry = NULL;
	w->prev = w->next = NULL;
}
