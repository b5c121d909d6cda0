/* SPDX-License-Identifier: ISC */
/*
 * The files, ports and name look-ups that a process needs to open a store, also repeatedly. For the
 * sandbox (engine/sandbox/sandbox.c).
 */
#ifndef FW_STORE_REACH_H
#define FW_STORE_REACH_H

#include "base/arena.h"
#include "feedwheel/types.h"

#define FW_REACH_FILES 48
#define FW_REACH_PORTS 16

struct fw_store_reach {
	const char *folder;               /* files are created, changed and removed here; NULL: none */
	const char *itself;               /* its file, or its socket; NULL: a server, or unknown */
	const char *file[FW_REACH_FILES]; /* read: keys, passwords, or folders of these; may not exist */
	size_t file_n;
	unsigned port[FW_REACH_PORTS]; /* TCP ports of its servers */
	size_t port_n;
	bool any_port; /* ports come from the servers, or from files that are not read here */
	bool by_name;  /* the server has a host name: DNS is needed */
	bool no_file;  /* an abstract Unix socket: its name starts with '@' */
};

/* Opens nothing. An invalid URL needs nothing: the driver refuses it later, with an error. */
void fw_store_reach(struct fw_arena *a, const char *url, struct fw_store_reach *out);
/* Loads the libraries that the client of this store loads late. An invalid URL needs none. */
void fw_store_preload(const char *url);

#endif
