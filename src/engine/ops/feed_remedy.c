/* SPDX-License-Identifier: ISC */
#include "api/feed_remedy.h"
#include "base/str.h"
#include "fetch/fetch.h"

/* was_read: the address had a feed before. */
static const char *remedy_of_status(int http_status, bool was_read)
{
	switch (http_status) {
	case 401:
	case 407:
		return "The site wants a name and a password. Subscribe again with them in the address: "
		       "https://NAME:PASSWORD@HOST/...";
	case 403:
	case 451:
		return "The site refuses this server. It may help to open the site in a browser and look for another "
		       "address of the feed.";
	case 404:
	case 410:
		return was_read ?
			"There is no feed at this address any more. Look on the site for its new one, or unsubscribe." :
			"There is no feed at this address. Check how it is written, or look on the site.";
	case 429:
		return "The site gets too many requests. It is polled less often now; nothing needs to be done.";
	default:
		return http_status >= 500 ?
			"The site has trouble. It is tried again; this usually passes by itself." :
			"The site answers with something other than a feed. Look at it in a browser.";
	}
}

bool fw_feed_is_failing(const struct fw_feed *f)
{
	return f->fail_n || f->status == FW_FEED_GONE || f->status == FW_FEED_QUARANTINED;
}

const char *fw_feed_remedy(const struct fw_feed *f)
{
	if (!fw_feed_is_failing(f))
		return "";
	if (f->status == FW_FEED_GONE)
		return "The site says that the feed has ended. Unsubscribe, or look for its new address.";
	switch (f->last_kind) {
	case FW_VISIT_HTTP:
	case FW_VISIT_GONE:
		return remedy_of_status(f->http_status, f->last_ok_ms != 0);
	case FW_VISIT_DNS:
		return "The site's name is not known. If that stays so, the site has moved or ended.";
	case FW_VISIT_CONNECT:
	case FW_VISIT_TIMEOUT:
	case FW_VISIT_PROTOCOL:
		return "The site does not answer. It is tried again; this usually passes by itself.";
	case FW_VISIT_TLS:
		return fw_str_starts(f->error, FW_STR(FW_FETCH_CERTIFICATE)) ?
			"The site's certificate is not valid. Only its owner can change that." :
			"The site speaks no HTTPS that works here. Subscribe to its address with http:// instead.";
	case FW_VISIT_FORMAT:
		return "What is at this address is not a feed. Look on the site for the feed's address.";
	case FW_VISIT_LIMIT:
		return "The feed is larger than the operator's limits allow.";
	case FW_VISIT_BLOCKED:
		return "The address is in a private network. The operator can allow it in the configuration file, "
		       "such as: allow_networks = 10.1.2.3";
	case FW_VISIT_REDIRECT:
		return "The site sends its readers in circles. Look in a browser where the address leads.";
	case FW_VISIT_CRASH:
		return "Its document broke the program that reads it. The operator can try again: feedwheel resume.";
	default:
		return "It is tried again; nothing needs to be done.";
	}
}
