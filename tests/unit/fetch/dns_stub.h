/* SPDX-License-Identifier: ISC */
/*
 * A name server on the test's loop. It answers A queries from a script: one line of the script per
 * query, the last line from then on.
 */
#ifndef FW_TEST_DNS_STUB_H
#define FW_TEST_DNS_STUB_H

#include <stdbool.h>
#include <uv.h>

struct dns_line {
	const char *name;    /* lower case */
	const char *address; /* "192.0.2.1" (or IPv6, for AAAA); NULL: no such name; "": no response; "!": SERVFAIL */
	uint32_t ttl_s;
	uint32_t times; /* how often this line is used before the next line of the same name; 0: always */
};

struct dns_stub {
	uv_udp_t udp;
	int port;
	struct dns_line *line; /* ends with name NULL */
	uint32_t query_n;      /* for A */
};

/* False: this address and port are not available. */
bool dns_open_at(struct dns_stub *d, uv_loop_t *loop, struct dns_line *line, const char *ip, int port);
void dns_open(struct dns_stub *d, uv_loop_t *loop, struct dns_line *line);
void dns_close(struct dns_stub *d);

#endif
