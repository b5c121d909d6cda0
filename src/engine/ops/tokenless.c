/* SPDX-License-Identifier: ISC */
/*
 * The settings that make a server refuse all requests without a token. Used by the server and
 * doctor. Pure.
 */
#include "base/cidr.h"
#include "base/str.h"
#include "base/url.h"
#include "feedwheel/engine.h"
#include "api/token.h"

bool fw_listen_is_local(const char *listen)
{
	struct fw_str s = fw_str(listen), host, port;
	unsigned char a[16];

	if (!s.len || fw_str_starts(s, FW_STR("unix:")))
		return true;
	return fw_host_port_split(s, &host, &port) &&
		(fw_str_ieq(host, FW_STR("localhost")) || (fw_ip_parse(host, a) && fw_ip_is_loopback(a)));
}

enum fw_tokenless fw_tokenless(const struct fw_config *c, bool tokens)
{
	if (tokens)
		return FW_TOKENLESS_TOKENS;
	if (!fw_listen_is_local(c->listen))
		return FW_TOKENLESS_LISTEN;
	if (c->trusted_proxies)
		return FW_TOKENLESS_PROXIES;
	return c->websub_url ? FW_TOKENLESS_WEBSUB : FW_TOKENLESS_OPEN;
}

const char *fw_tokenless_why(enum fw_tokenless t)
{
	switch (t) {
	case FW_TOKENLESS_OPEN:
		break;
	case FW_TOKENLESS_TOKENS:
		return "there is a token";
	case FW_TOKENLESS_LISTEN:
		return "listen is neither a loopback address nor a unix socket";
	case FW_TOKENLESS_PROXIES:
		return "trusted_proxies is set";
	case FW_TOKENLESS_WEBSUB:
		return "websub_url is set";
	}
	return "";
}

void fw_tokenless_text(enum fw_tokenless t, char out[FW_TOKENLESS_TEXT_MAX])
{
	static const char OPEN[] = "requests without a token are accepted from programs on this machine, over loopback"
				   " or a unix socket, but not from pages of web sites; the first token ends that";
	static const char CLOSED[] = "requests without a token are refused: ";

	(void)fw_snprintf(
		out, FW_TOKENLESS_TEXT_MAX, "%s%s", t == FW_TOKENLESS_OPEN ? OPEN : CLOSED, fw_tokenless_why(t));
}
