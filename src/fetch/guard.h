/* SPDX-License-Identifier: ISC */
/*
 * The address guard: which addresses may be connected to (NET-02 to NET-08, NET-14). It checks the
 * socket address itself, so no name, redirect or spelling gets around it. Pure.
 */
#ifndef FW_FETCH_GUARD_H
#define FW_FETCH_GUARD_H

#include "base/cidr.h"

#define FW_GUARD_LIST_MAX 64
/* the reason when deny_networks lists the address; no allow list opens it */
#define FW_GUARD_DENIED "deny_networks"
#define FW_GUARD_PORT "port" /* the reason when only the port is refused */

struct fw_guard_net {
	struct fw_cidr net;
	int port; /* 0: any */
};

struct fw_guard_list {
	struct fw_guard_net net[FW_GUARD_LIST_MAX];
	size_t n;
};

struct fw_guard {
	struct fw_guard_list allow, deny;
};

/*
 * Read allow_networks: "127.0.0.0/8, [fd00::]/8, 10.1.2.3:8080". NULL or "": nothing beyond the
 * public internet. Errors: FW_EINVAL names the invalid item; "*" is one.
 */
FW_MUST_CHECK int fw_guard_init(struct fw_guard *g, const char *allow_networks, struct fw_err *err);
/*
 * Read deny_networks: the same for networks that are refused, public ones too. An item with a port
 * refuses only that port. It overrides the allow list.
 */
FW_MUST_CHECK int fw_guard_deny(struct fw_guard *g, const char *deny_networks, struct fw_err *err);
/*
 * NULL when this address and port may be connected to; else the reason: "loopback", "private
 * network" ..., FW_GUARD_PORT, FW_GUARD_DENIED. An item of the allow list permits its addresses on
 * the usual ports; an item with a port permits exactly that port. Metadata services
 * (169.254.169.254, fd00:ec2::254 and such) are permitted only when listed individually (/32,
 * /128).
 */
const char *fw_guard_refuses(const struct fw_guard *g, const struct sockaddr *sa);
/*
 * The usual ports: 80, 443 and 1024 to 65535, without the bad ports of the WHATWG fetch standard.
 */
bool fw_guard_port_ok(int port);

#endif
