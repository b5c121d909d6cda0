/* SPDX-License-Identifier: ISC */
/* Whose budget a feed uses, as host_key and hosters say. Pure. */
#ifndef FW_ENGINE_HOST_KEY_H
#define FW_ENGINE_HOST_KEY_H

#include "feedwheel/types.h"

enum host_policy {
	HOST_DOMAIN,  /* the name; for hosters, the known ones and the owner's, the hoster */
	HOST_NAME,    /* the name, always */
	HOST_ADDRESS, /* the address it is at */
};

struct host_rules {
	enum host_policy policy;
	const char *hosters; /* names, between spaces or commas; NULL: none */
};

#define HOST_KEY_MAX 256
/*
 * The host_key of a feed of this url, "" where fw_store_host() says the same. address: 16 bytes as fw_crowd_key() has them, or NULL: not
 * known. False: not to be said, the feed stays where it is.
 */
FW_MUST_CHECK bool host_key(const struct host_rules *r, struct fw_str url, const unsigned char *address, char out[HOST_KEY_MAX]);

#endif
