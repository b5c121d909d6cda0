/* SPDX-License-Identifier: ISC */
/*
 * The queue of a server thread: connections are opened in the order in which they were accepted,
 * and it has a bound. The first one of each burst holds the thread up until the burst is queued.
 */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "http/server/server_thread.h"
#include "../../suite.h"

#define QUEUE 64
#define BURSTS 3

static sem_t opened, go_on;
static int order[BURSTS * (QUEUE + 1)];
static size_t order_n; /* belongs to the thread until the last sem_wait(&opened) */

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *conn, const char *url, const char *method,
	const char *version, const char *data, size_t *len, void **at)
{
	(void)ctx, (void)conn, (void)url, (void)method, (void)version, (void)data, (void)len, (void)at;
	return MHD_NO;
}

static void on_connection(void *ctx, struct MHD_Connection *conn, void **at, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	(void)ctx, (void)at;
	if (what != MHD_CONNECTION_NOTIFY_STARTED)
		return;
	order[order_n++] = ntohs(((const struct sockaddr_in *)(const void *)i->client_addr)->sin_port);
	sem_post(&opened);
	if (order_n % (QUEUE + 1) == 1)
		sem_wait(&go_on);
}

/* The client's end. */
static int accepted(struct server_thread *l, int port)
{
	struct sockaddr_storage from = {0};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int pair[2];

	memcpy(&from, &in, sizeof(in));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert(server_thread_has_room(l));
	server_thread_add(l, pair[0], &from, sizeof(in));
	return pair[1];
}

START_TEST(first_come_first_served)
{
	int client[BURSTS * (QUEUE + 1)], n = 0;
	struct server_thread *l;
	struct MHD_Daemon *daemon;
	struct fw_err err;

	order_n = 0;
	sem_init(&opened, 0, 0);
	sem_init(&go_on, 0, 0);
	daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
		on_request, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL, MHD_OPTION_END);
	ck_assert_ptr_nonnull(daemon);
	ck_assert_int_eq(server_thread_open(daemon, &l, &err), 0);
	for (int burst = 0; burst < BURSTS; burst++) {
		client[n] = accepted(l, 1 + n), n++;
		sem_wait(&opened);
		for (int i = 0; i < QUEUE; i++)
			client[n] = accepted(l, 1 + n), n++;
		ck_assert(!server_thread_has_room(l));
		sem_post(&go_on);
		for (int i = 0; i < QUEUE; i++)
			sem_wait(&opened);
	}
	server_thread_close(l);
	ck_assert_uint_eq(order_n, (size_t)n);
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(order[i], 1 + i);
		close(client[i]);
	}
	sem_destroy(&opened);
	sem_destroy(&go_on);
}
END_TEST

START_TEST(closed_with_a_queue) /* those that wait are closed too */
{
	int client[1 + QUEUE];
	struct server_thread *l;
	struct fw_err err;
	char byte;

	order_n = 0;
	sem_init(&opened, 0, 0);
	sem_init(&go_on, 0, 1);
	ck_assert_int_eq(
		server_thread_open(MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET,
					   0, NULL, NULL, on_request, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
					   NULL, MHD_OPTION_END),
			&l, &err),
		0);
	for (int i = 0; i < QUEUE; i++)
		client[i] = accepted(l, 1 + i);
	server_thread_close(l);
	for (int i = 0; i < QUEUE; i++) {
		ck_assert_int_eq(recv(client[i], &byte, 1, 0), 0);
		close(client[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http server_thread");
	TCase *t = tcase_create("its queue");

	tcase_add_test(t, first_come_first_served);
	tcase_add_test(t, closed_with_a_queue);
	suite_add_tcase(s, t);
	return run_suite(s);
}
