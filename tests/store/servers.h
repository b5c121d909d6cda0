/* SPDX-License-Identifier: ISC */
/*
 * Private database servers for tests: each in a folder of its own, on a socket there or on a free
 * port of the loopback, run by the test program and ended with it, however that ends.
 * server_<engine>.c has one of these.
 */
#ifndef TEST_STORE_SERVERS_H
#define TEST_STORE_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

struct server {
	const char *engine;  /* as in under_test */
	const char *package; /* of Debian, that brings the server */
	bool (*installed)(void);
	/*
	 * Start it with its data in a new folder inside this one and wait until it answers; words
	 * on stderr and exit when it does not.
	 */
	void (*start)(const char *folder);
	/*
	 * The URL of an empty store by that name ([a-z0-9_], made here if the engine wants that);
	 * the same name is the same store.
	 */
	void (*url)(char *out, size_t cap, const char *name);
	void (*kill9)(void); /* all its processes, at once */
	void (*again)(void); /* after kill9: the same data at the same address; waits until it answers */
	void (*stop)(void);  /* and its processes are gone; harmless when it does not run */
};

/*
 * Set before a start: as in production instead of as quick as it can be. What is committed is on
 * the disk (Redis: within a second), the cache has 1 GB.
 */
extern bool server_durable;

/* An argument more for the MariaDB server ("--version=..."), from the next start on; NULL: none. */
extern const char *server_maria_argument;

extern const struct server server_postgres;
extern const struct server server_mysql;

/*
 * New data of a server: make() makes it in this folder, and ends the program when it cannot. With
 * FW_SERVER_DATA, a folder of the test run's own, that happens once for each name; the others get a
 * copy, for a third of the time.
 */
void server_data(const char *name, const char *data, void (*make)(void));
/* The last that a server wrote into the file "log" in its folder, on stderr: the folder is about to go. */
void server_log_show(const char *home);
/* The server of an engine, NULL: it needs none. */
const struct server *server_of(const char *engine);

#endif
