/* SPDX-License-Identifier: ISC */
/*
 * The address guard: which addresses we may connect to (NET-02 ... NET-08, NET-14). Pure; judged on the socket address, so no name,
 * redirect or spelling gets around it.
 */
#ifndef FW_FETCH_GUARD_H
#define FW_FETCH_GUARD_H

#include "base/cidr.h"

#define FW_GUARD_LIST_MAX 64
#define FW_GUARD_DENIED "deny_networks" /* it names the address: what no allow list opens */
#define FW_GUARD_PORT "port"            /* the address would do */

struct fw_guard_net {
	struct fw_cidr net;
	int port;               /* 0: any */
};

struct fw_guard_list {
	struct fw_guard_net net[FW_GUARD_LIST_MAX];
	size_t n;
};

struct fw_guard {
	struct fw_guard_list allow, deny;
};

/* "127.0.0.0/8, [fd00::]/8, 10.1.2.3:8080"; FW_EINVAL names the item. "*" is refused. NULL or "": nothing is allowed. */
FW_MUST_CHECK int fw_guard_init(struct fw_guard *g, const char *allow_networks, struct fw_err *err);
/* The same for networks that are shut, public ones too; an item with a port shuts just that one. It beats the allow list. */
FW_MUST_CHECK int fw_guard_deny(struct fw_guard *g, const char *deny_networks, struct fw_err *err);
/*
 * NULL when this address and port may be connected to, else why not: "loopback", "private network" ..., FW_GUARD_PORT, FW_GUARD_DENIED.
 * An item of the allow list opens its addresses on the usual ports, or with a port of its own on that one, whichever it is.
 * Metadata services (169.254.169.254, fd00:ec2::254 and such) are open only when named alone (/32, /128).
 */
const char *fw_guard_refuses(const struct fw_guard *g, const struct sockaddr *sa);
/* 80, 443, 1024-65535 less the WHATWG bad ports. */
bool fw_guard_port_ok(int port);

#endif
