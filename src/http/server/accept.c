/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cidr.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "http/server/accept.h"
#include "http/server/http.h"

#define FULL_MS 10           /* with all connections in use: time between two checks for a free one */
#define SHORT_MS 100         /* pause after EMFILE and ENOMEM */
#define BATCH 64             /* connections accepted between two checks for a stop */
#define LOST_MS FW_SECOND_MS /* a connection that is not open this long after the hand-over was closed at once */

#define SLOTS 16384  /* slots of addresses, found by a seeded hash; two addresses in one slot are rare and harmless */
#define SLOT_PARTS 4 /* by default an address may have 1/SLOT_PARTS of all connections */
#define SLOT_LOST_MS FW_MINUTE_MS /* as LOST_MS, for the counts of one address */
#define WARN_MS FW_MINUTE_MS      /* minimum time between two warnings */

/* The slot of an IPv4 address or an IPv6 /64. Slot 0 is for all addresses without a limit. */
struct accept_slot {
	int64_t handed_ms; /* these four as in http_accept */
	uint32_t handed_n;
	_Atomic uint32_t opened_n, closed_n;
};

struct http_accept {
	const struct http_thread *server_thread;
	size_t server_thread_n, next; /* next: the server thread that gets the next connection */
	const struct conns *conns;
	struct http_accept_rules rules;
	size_t slot_max;
	uint64_t seed;
	_Atomic uint64_t refused_n;
	int64_t warned_ms; /* time of the last warning; INT64_MIN: none */
	int fd, stop_fd;
	pthread_t thread;
	uint64_t handed_n;         /* connections handed to server threads */
	_Atomic uint64_t opened_n; /* of these: opened */
	int64_t handed_ms;         /* time of the last hand-over */
	struct accept_slot slot[SLOTS];
};

/* ---- the limit per address ------------------------------------------------------------------- */

/* 127.0.0.1, ::1 and trusted proxies have no limit. */
static bool accept_is_unlimited(const struct http_accept *a, const unsigned char ip[16])
{
	static const unsigned char LOCAL[2][16] = {{[15] = 1}, {[10] = 0xff, 0xff, 127, 0, 0, 1}};

	return memcmp(ip, LOCAL[0], sizeof(LOCAL[0])) == 0 || memcmp(ip, LOCAL[1], sizeof(LOCAL[1])) == 0 ||
		http_proxies_have(a->rules.proxies, ip);
}

static size_t accept_slot_of(const struct http_accept *a, const struct sockaddr *from)
{
	unsigned char ip[16];

	if (!from || !fw_ip_of(from, ip, NULL) || accept_is_unlimited(a, ip))
		return 0;
	return 1 + (size_t)(fw_hash64_seed(ip, fw_ip_is4(ip) ? 16 : 8, a->seed) % (SLOTS - 1));
}

/* Is the address at its limit? Connections that were handed over and are not open yet count too. */
static bool accept_slot_is_full(struct http_accept *a, size_t slot)
{
	struct accept_slot *s = &a->slot[slot];
	/* closed_n is read first, so that it never exceeds opened_n */
	uint32_t closed = atomic_load(&s->closed_n), opened = atomic_load(&s->opened_n);

	if ((int32_t)(s->handed_n - opened) < 0 || fw_mono_ms() - s->handed_ms > SLOT_LOST_MS)
		s->handed_n = opened;
	return slot && s->handed_n - closed >= a->slot_max;
}

size_t http_accept_opened(struct http_accept *a, const struct sockaddr *from)
{
	size_t slot = accept_slot_of(a, from);

	atomic_fetch_add_explicit(&a->opened_n, 1, memory_order_relaxed);
	atomic_fetch_add(&a->slot[slot].opened_n, 1);
	return slot;
}

void http_accept_closed(struct http_accept *a, size_t slot)
{
	atomic_fetch_add(&a->slot[slot].closed_n, 1);
}

/*
 * Send a 429 and close. The client's bytes are unread, so the close may reset the connection before
 * it reads the response.
 */
static void accept_refuse(struct http_accept *a, int fd, const struct sockaddr *from)
{
	int64_t now_ms = fw_mono_ms();
	char text[INET6_ADDRSTRLEN] = "";
	unsigned char ip[16];

	atomic_fetch_add_explicit(&a->refused_n, 1, memory_order_relaxed);
	if (a->rules.plain)
		conn_send_problem(fd, MHD_HTTP_TOO_MANY_REQUESTS, "too_many_connections", "Retry-After: 1\r\n",
			"your address has too many connections (serve_connections_per_address_max)");
	close(fd);
	if (a->warned_ms != INT64_MIN && now_ms - a->warned_ms < WARN_MS)
		return;
	a->warned_ms = now_ms;
	if (fw_ip_of(from, ip, NULL))
		(void)inet_ntop(fw_ip_is4(ip) ? AF_INET : AF_INET6, fw_ip_is4(ip) ? ip + 12 : ip, text, sizeof(text));
	fw_warn("connections refused: %s has %zu open, the limit of one address (to permit more, raise "
		"serve_connections_per_address_max; a proxy belongs in trusted_proxies)",
		text, a->slot_max);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Connections that were handed over and are not open yet. */
static size_t accept_pending_n(struct http_accept *a)
{
	uint64_t opened = atomic_load_explicit(&a->opened_n, memory_order_relaxed);

	if (a->handed_n > opened && fw_mono_ms() - a->handed_ms > LOST_MS)
		a->handed_n = opened;
	return a->handed_n > opened ? (size_t)(a->handed_n - opened) : 0;
}

/* Round robin over the server threads whose queues have room. NULL: all queues are full. */
static struct server_thread *accept_next_thread(const struct http_accept *a)
{
	for (size_t i = 0; i < a->server_thread_n; i++) {
		struct server_thread *l = a->server_thread[(a->next + i) % a->server_thread_n].loop;

		if (server_thread_has_room(l))
			return l;
	}
	return NULL;
}

/* Accept one. False: none is pending, or none can be accepted for *wait_ms (if not 0). */
static bool accept_one(struct http_accept *a, int *wait_ms)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct server_thread *server_thread = accept_next_thread(a);
	size_t slot;
	int fd;

	*wait_ms = 0;
	if (!server_thread || conns_open_n(a->conns) + accept_pending_n(a) >= conns_max(a->conns)) {
		*wait_ms = FULL_MS;
		return false;
	}
	fd = accept4(a->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			fw_debug("accept: %s", strerror(errno));
			*wait_ms = SHORT_MS;
		}
		return errno == ECONNABORTED || errno == EINTR; /* try the next one */
	}
	slot = accept_slot_of(a, (struct sockaddr *)&from);
	if (accept_slot_is_full(a, slot)) {
		accept_refuse(a, fd, (struct sockaddr *)&from);
		return true;
	}
	a->handed_n++;
	a->slot[slot].handed_n++;
	a->handed_ms = a->slot[slot].handed_ms = fw_mono_ms();
	a->next = (a->next + 1) % a->server_thread_n;
	server_thread_add(server_thread, fd, &from, len);
	return true;
}

static void *accept_run(void *ctx)
{
	struct http_accept *a = ctx;
	struct pollfd p[2] = {{.fd = a->stop_fd, .events = POLLIN}, {.events = POLLIN}};
	int wait_ms = 0;

	for (;;) {
		p[1].fd = wait_ms ? -1 : a->fd;
		if (poll(p, 2, wait_ms ? wait_ms : -1) < 0 && errno != EINTR)
			fw_error("cannot accept connections: poll: %s", strerror(errno));
		if (p[0].revents)
			return NULL;
		for (int i = 0; i < BATCH && accept_one(a, &wait_ms); i++)
			;
	}
}

int http_accept_open(const struct http_thread *server_thread, size_t server_thread_n, int fd, const struct conns *conns,
	const struct http_accept_rules *rules, struct http_accept **out, struct fw_err *err)
{
	struct http_accept *a = calloc(1, sizeof(*a));
	int64_t slot_max = rules->config->serve_connections_per_address_max;
	int rc, flags = fcntl(fd, F_GETFL);

	*out = NULL;
	if (!a)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	a->server_thread = server_thread;
	a->server_thread_n = server_thread_n;
	a->conns = conns;
	a->rules = *rules;
	a->fd = fd;
	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	a->warned_ms = INT64_MIN;
	a->slot_max = slot_max > 0 ? (size_t)slot_max : FW_MAX(conns_max(conns) / SLOT_PARTS, (size_t)1);
	if (getrandom(&a->seed, sizeof(a->seed), 0) != sizeof(a->seed))
		a->seed = (uintptr_t)a;
	*out = a;
	rc = a->stop_fd < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ?
		errno :
		pthread_create(&a->thread, NULL, accept_run, a);
	if (!rc)
		return 0;
	*out = NULL;
	http_accept_destroy(a);
	return fw_err_set(err, FW_EIO, "cannot start the thread that accepts connections: %s", strerror(rc));
}

uint64_t http_accept_refused_n(const struct http_accept *a)
{
	return atomic_load_explicit(&a->refused_n, memory_order_relaxed);
}

void http_accept_stop(struct http_accept *a)
{
	if (eventfd_write(a->stop_fd, 1))
		abort(); /* the counter cannot overflow */
	pthread_join(a->thread, NULL);
}

void http_accept_destroy(struct http_accept *a)
{
	if (a && a->stop_fd >= 0)
		close(a->stop_fd);
	free(a);
}
