/* SPDX-License-Identifier: ISC */
#include "engine/callback_url.h"

#include "base/err.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"

#define HUB_URL_MAX 2048 /* bytes: it is stored in three places */

bool hub_url_is_valid(struct fw_str url)
{
	char host[256];

	return url.len <= HUB_URL_MAX && fw_is_http(url) && fw_url_host(url, host, sizeof(host)) &&
		fw_url_port(url) > 0;
}

int callback_base(const char *url, struct fw_buf *out, struct fw_err *err)
{
	struct fw_str s = fw_str(url);
	struct fw_url u;

	fw_url_split(s, &u);
	if (!hub_url_is_valid(s) || fw_utf8_valid(s.p, s.len) != s.len || u.query.p || u.fragment.p || u.userinfo.p)
		return fw_err_set(err, FW_EINVAL,
			"websub_url = %.100s: not a base URL for callbacks: write https://example.org/, in UTF-8, "
			"without ? and #",
			url);
	fw_buf_addstr(out, s);
	if (!fw_str_ends(s, FW_STR("/")))
		fw_buf_addc(out, '/');
	fw_buf_adds(out, "websub/");
	return out->rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
}
