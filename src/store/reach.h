/* SPDX-License-Identifier: ISC */
/*
 * What a process has to be able to reach so that it can open a store, again and again: for the
 * sandbox (engine/sandbox.c).
 */
#ifndef FW_STORE_REACH_H
#define FW_STORE_REACH_H

#include "base/arena.h"
#include "feedwheel/types.h"

#define FW_REACH_FILES 48
#define FW_REACH_PORTS 16

struct fw_store_reach {
	const char *folder;               /* where files are made, changed and removed; NULL: none */
	const char *file[FW_REACH_FILES]; /* read: certificates, keys, passwords; also folders of such; not all need be there */
	size_t file_n;
	unsigned port[FW_REACH_PORTS];    /* TCP, of its servers */
	size_t port_n;
	bool any_port;                    /* only the servers know their ports, or files that are not read here */
	bool by_name;                     /* of a server, so name servers are asked */
	bool no_file;                     /* a socket that stands in no file system: a name that begins with '@' */
};

/* Nothing is opened. A URL that is wrong reaches nothing: the driver refuses it, with words. */
void fw_store_reach(struct fw_arena *a, const char *url, struct fw_store_reach *out);

#endif
