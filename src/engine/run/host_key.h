/* SPDX-License-Identifier: ISC */
/* The host whose limits a feed shares, by the settings host_key and hosting_domains. Pure. */
#ifndef FW_ENGINE_HOST_KEY_H
#define FW_ENGINE_HOST_KEY_H

#include "feedwheel/types.h"

enum host_policy {
	HOST_DOMAIN,  /* the name; for known and configured hosting domains, that domain */
	HOST_NAME,    /* the name, always */
	HOST_ADDRESS, /* its IP address */
};

struct host_rules {
	enum host_policy policy;
	const char *hosting_domains; /* hosting domains, separated by spaces or commas; NULL: none */
};

#define HOST_KEY_MAX 256
/*
 * The host_key of a feed with this URL; "" if fw_store_host() gives the same. address: 16 bytes in
 * the form of fw_limiter_key(), or NULL: unknown. False: cannot be decided; the feed keeps its
 * host.
 */
FW_MUST_CHECK bool host_key(
	const struct host_rules *r, struct fw_str url, const unsigned char *address, char out[HOST_KEY_MAX]);
/* Do two URLs share a host? By HOST_ADDRESS: have they the same name? */
bool host_is_same(const struct host_rules *r, struct fw_str a, struct fw_str b);

#endif
