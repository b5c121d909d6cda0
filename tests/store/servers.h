/* SPDX-License-Identifier: ISC */
/*
 * Private database servers for tests. Each has a folder of its own and listens on a socket there or
 * on a free loopback port. The test program starts it, and it ends with the program, however that
 * ends. server_<engine>.c defines one of these.
 */
#ifndef TEST_STORE_SERVERS_H
#define TEST_STORE_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

struct server {
	const char *engine;  /* as in under_test */
	const char *package; /* the Debian package that has the server */
	bool (*installed)(void);
	/*
	 * Starts the server with its data in a new folder inside this one and waits until it
	 * answers. If it does not, prints a message and exits.
	 */
	void (*start)(const char *folder);
	/*
	 * The URL of an empty store of that name ([a-z0-9_]), created here if the engine needs
	 * that. The same name is the same store.
	 */
	void (*url)(char *out, size_t cap, const char *name);
	void (*kill9)(void); /* all its processes, at once */
	void (*again)(void); /* after kill9: the same data at the same address; waits until the server answers */
	void (*stop)(void);  /* waits until its processes are gone; harmless when it does not run */
};

/*
 * Set it before a start: settings as in production instead of the fastest ones. Commits are on the
 * disk (Redis: within a second), the cache has 1 GB.
 */
extern bool server_durable;

/*
 * One more argument for the MariaDB server ("--version=..."), from the next start on; NULL: none.
 */
extern const char *server_maria_argument;

extern const struct server server_postgres;
extern const struct server server_mysql;

/*
 * New data of a server: make() creates it in this folder, and ends the program when it cannot. With
 * FW_SERVER_DATA, a folder of the test run, that happens once for each name; later servers get a
 * copy, in a third of the time.
 */
void server_data(const char *name, const char *data, void (*make)(void));
/*
 * Prints the end of the file "log" in the server's folder on stderr, before the folder is removed.
 */
void server_log_show(const char *home);
/* The server of an engine; NULL: it needs none. */
const struct server *server_of(const char *engine);

#endif
