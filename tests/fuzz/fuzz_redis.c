/* SPDX-License-Identifier: ISC */
/*
 * Replies of a Redis server, through the driver: the first byte names a call of a slot, the second
 * what the handshake says, and the rest is what the server sends, whatever it is asked.
 */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../store/redis_calls.h"
#include "fuzz.h"
#include "store/redis/redis.h"

#define OPEN_MAX 64 /* connections that the server keeps; a call makes 2 */
#define RAW 1       /* the second byte: no handshake but that in the input */
#define NO_CLUSTER "-ERR This instance has cluster support disabled\r\n"
#define STORE "*3\r\n$1\r\n2\r\n$1\r\n1\r\n$-1\r\n:0\r\n"

static char folder[] = "/tmp/fuzz_redis_XXXXXX", path[100], url[140];
static int listener;
static struct fw_str input; /* of this run; set before the driver connects */
static int handshake, connected_n;

static void leave(void)
{
	unlink(path);
	rmdir(folder);
}

/* The client may have heard enough. */
static void say(int fd, struct fw_str s)
{
	(void)!send(fd, s.p, s.len, MSG_NOSIGNAL);
}

static void say_handshake(int fd)
{
	say(fd, FW_STR("+PONG\r\n"));
	if (connected_n++) /* it listens to messages */
		return;
	say(fd, FW_STR("$9\r\nfeedwheel\r\n" NO_CLUSTER STORE));
}

/* It reads nothing: what a call sends fits into the socket. */
static void *server_run(void *arg)
{
	int fd[OPEN_MAX] = {0};

	for (size_t i = 0;; i++) {
		int *at = &fd[i % OPEN_MAX];

		if (*at)
			close(*at);
		*at = accept(listener, NULL, NULL);
		FUZZ_CHECK(*at >= 0);
		if (!(handshake & RAW))
			say_handshake(*at);
		say(*at, input);
		shutdown(*at, SHUT_WR);
	}
	return arg;
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void server_start(void)
{
	pthread_t thread;

	FUZZ_CHECK(mkdtemp(folder) && fw_snprintf(path, sizeof(path), "%s/s", folder));
	FUZZ_CHECK(fw_snprintf(url, sizeof(url), "redis+unix://%s?stream_max=0&timeout_ms=2000&reply_max_mb=4", path));
	FUZZ_CHECK(fw_str_copy(address.sun_path, sizeof(address.sun_path), fw_str(path)));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	FUZZ_CHECK(listen(listener, OPEN_MAX) == 0);
	FUZZ_CHECK(pthread_create(&thread, NULL, server_run, NULL) == 0);
	atexit(leave);
}

/* One more connection is answered: so all before it were, and the input is read no more. */
static void server_settle(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char drop[4096];

	FUZZ_CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	while (read(fd, drop, sizeof(drop)) > 0)
		;
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_store_config config = {.url = url, .revisions_max = 3};
	struct fw_err err = {0};
	struct store *st;
	int rc;

	if (size < 2 || size > 65536)
		return 0;
	if (!listener)
		server_start();
	input = (struct fw_str){(const char *)data + 2, size - 2};
	handshake = data[1];
	connected_n = 0;
	rc = store_redis.open(&config, &st, &err);
	if (!rc) {
		rc = redis_calls[data[0] % FW_N(redis_calls)].run(st, &err);
		st->driver->close(st);
	}
	FUZZ_CHECK(!rc || (err.rc == rc && err.text[0]));
	server_settle();
	return 0;
}
