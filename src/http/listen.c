/* SPDX-License-Identifier: ISC */
/* The listening socket, by the setting listen: a TCP address or a Unix socket. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "base/url.h"
#include "http/serve.h"

/*
 * TCP keep-alive: a client that vanished without a FIN is detected after QUIET_S + PROBES * PROBE_S
 * = 120 s, or UNACKED_MS.
 */
#define QUIET_S 60
#define PROBE_S 15
#define PROBES 4
#define UNACKED_MS 120000

/*
 * Accepted sockets inherit these options. Errors are ignored: the timeouts of conns.h end such
 * connections too.
 */
static void keepalive_set(int fd)
{
	static const struct {
		int level, name, value;
	} SET[] = {{SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, QUIET_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S}, {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS}};

	for (size_t i = 0; i < FW_N(SET); i++)
		(void)setsockopt(fd, SET[i].level, SET[i].name, &SET[i].value, sizeof(SET[i].value));
}

/* Remove path if it is a socket. A wrong path in the configuration must not delete a file. */
static void socket_remove(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
}

static int listen_error(struct fw_str where, int e, struct fw_err *err)
{
	const char *remedy = "";

	switch (e) {
	case EADDRINUSE:
		remedy = ": another server listens there (stop it, or choose another address; to find it: ss -lptx)";
		break;
	case EADDRNOTAVAIL:
		remedy = ": this machine has no such address (to list its addresses: ip address)";
		break;
	case EACCES:
		remedy = fw_str_starts(where, FW_STR("unix:")) ?
			": this user may not write to the folder" :
			": only root may use ports below 1024 (choose another port, behind a proxy)";
		break;
	case ENOENT:
		remedy = ": the folder does not exist (create it)";
		break;
	default:
		break;
	}
	return fw_err_set(err, FW_EINVAL, "listen = %.*s: %s%s", FW_STR_ARG(where), strerror(e), remedy);
}

/*
 * The server's group may connect, such as a proxy, whatever the umask is. The folder's mode can
 * restrict that further.
 */
#define SOCKET_MODE 0660

static int listen_unix(struct fw_str where, struct fw_err *err)
{
	struct fw_str path = fw_str_sub(where, 5, where.len);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat st;
	int fd;

	if (path.len >= sizeof(a.sun_path))
		return fw_err_set(err, FW_EINVAL, "listen = unix:%.*s: the path is longer than %zu bytes",
			FW_STR_ARG(path), sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path.p, path.len);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED)
		socket_remove(a.sun_path); /* left behind by a dead server */
	if (fd >= 0)
		close(fd);
	if (!lstat(a.sun_path, &st) && !S_ISSOCK(st.st_mode))
		return fw_err_set(err, FW_EINVAL,
			"listen = unix:%.*s: a file that is not a socket exists there (choose another path,"
			" or remove the file)",
			FW_STR_ARG(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || chmod(a.sun_path, SOCKET_MODE) ||
		listen(fd, SOMAXCONN)) {
		listen_error(where, errno, err);
		if (fd >= 0)
			close(fd);
		return FW_EINVAL;
	}
	return fd;
}

/* Port 0: any free one. */
static int listen_port_check(struct fw_str where, struct fw_str port, struct fw_err *err)
{
	int number;

	if (fw_port_parse(port, &number) || fw_str_eq(port, FW_STR("0")))
		return 0;
	return fw_err_set(err, FW_EINVAL, "listen = %.*s: '%.*s' is not a port: 1 to 65535, such as 127.0.0.1:8080",
		FW_STR_ARG(where), FW_STR_ARG(port));
}

static int listen_inet(struct fw_str where, struct fw_err *err)
{
	struct fw_str address, number;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list = NULL;
	char host[256], port[16];
	int fd = -1, rc, one = 1;

	if (!fw_host_port_split(where, &address, &number))
		return fw_err_set(err, FW_EINVAL,
			"listen = %.*s: no port (write ADDRESS:PORT or unix:PATH, such as 127.0.0.1:8080)",
			FW_STR_ARG(where));
	if (listen_port_check(where, number, err))
		return FW_EINVAL;
	fw_str_copy(port, sizeof(port), number);
	fw_str_copy(host, sizeof(host), address);
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
	if (rc)
		return fw_err_set(err, FW_EINVAL,
			"listen = %.*s: %s: write an address of this machine, such as 127.0.0.1:8080",
			FW_STR_ARG(where), gai_strerror(rc));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, SOMAXCONN)) {
		listen_error(where, errno, err);
		if (fd >= 0)
			close(fd);
		fd = FW_EINVAL;
	}
	if (fd >= 0)
		keepalive_set(fd);
	freeaddrinfo(list);
	return fd;
}

int fw_serve_listen(const struct fw_config *c, int *fd, struct fw_err *err)
{
	struct fw_str s = fw_str(c->listen ? c->listen : "");

	if (!s.len)
		return fw_err_set(err, FW_EINVAL, "listen is not set (set it, such as --listen 127.0.0.1:8080)");
	*fd = fw_str_starts(s, FW_STR("unix:")) ? listen_unix(s, err) : listen_inet(s, err);
	return *fd < 0 ? *fd : 0;
}

void fw_serve_unlisten(const struct fw_config *c, int fd)
{
	struct fw_str s = fw_str(c->listen);

	if (fw_str_starts(s, FW_STR("unix:")))
		socket_remove(c->listen + 5);
	close(fd);
}
