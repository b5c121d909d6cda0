/* SPDX-License-Identifier: ISC */
/*
 * The host whose limits apply to a feed, and its id: the same for all drivers.
 *
 * Rate limits protect a server, and a host name mostly names one. But blog and podcast hosting
 * services give each customer a host name and serve thousands of them from one place: all of these
 * count as one host. The public suffix list would not do: it separates customers (blogspot.com is
 * on it), and one domain of a shop often has many servers.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/url.h"
#include "store/driver.h"

/* Hosting services that give customers subdomains and serve all their feeds from one place. */
static const char *const shared_domains[] = {"bandcamp.com", "bearblog.dev", "blogs.com", "blogspot.com",
	"buzzsprout.com", "canalblog.com", "captivate.fm", "dreamwidth.org", "eklablog.com", "exblog.jp", "fc2.com",
	"feedburner.com", "fireside.fm", "ghost.io", "github.io", "gitlab.io", "hashnode.dev", "hatenablog.com",
	"hatenablog.jp", "hatenadiary.jp", "hypotheses.org", "itch.io", "libsyn.com", "livedoor.blog",
	"livejournal.com", "medium.com", "micro.blog", "neocities.org", "netlify.app", "over-blog.com", "pages.dev",
	"podbean.com", "podigee.io", "podomatic.com", "readthedocs.io", "seesaa.net", "skyrock.com", "sourceforge.io",
	"spreaker.com", "squarespace.com", "substack.com", "transistor.fm", "tumblr.com", "typepad.com", "vercel.app",
	"weebly.com", "wixsite.com", "wordpress.com", "write.as"};

/* The last n labels of a host name, or all of it. */
static struct fw_str host_last_labels(struct fw_str host, int n)
{
	size_t at = host.len;

	assert(n > 0);
	for (; n > 0 && at > 0; n--) {
		at--;
		while (at > 0 && host.p[at] != '.')
			at--;
	}
	return at ? fw_str_sub(host, at + 1, host.len) : host;
}

static const char *host_shared_domain(struct fw_str host)
{
	struct fw_str two = host_last_labels(host, 2);

	/* one service under many country domains: blogspot.de, blogspot.co.uk */
	if (fw_str_starts(two, FW_STR("blogspot.")) || fw_str_starts(host_last_labels(host, 3), FW_STR("blogspot.")))
		return "blogspot.com";
	for (size_t i = 0; i < FW_N(shared_domains); i++) {
		if (fw_str_eq(two, fw_str(shared_domains[i])))
			return shared_domains[i];
	}
	return NULL;
}

bool fw_store_host(struct fw_str url, char *out, size_t cap)
{
	const char *service;

	if (!fw_url_host(url, out, cap))
		return false;
	service = host_shared_domain(fw_str(out));
	return !service || fw_snprintf(out, cap, "%s", service);
}

bool fw_store_feed_host(const struct fw_feed *feed, char *out, size_t cap)
{
	if (feed->host_key.len)
		return fw_snprintf(out, cap, "%.*s", FW_STR_ARG(feed->host_key));
	return fw_store_host(feed->url, out, cap);
}

int64_t store_host_id(struct fw_str host)
{
	return (int64_t)(fw_hash64(host.p, host.len) >> 1 | STORE_SHARDS);
}

int64_t store_feed_host_id(const struct fw_feed *feed)
{
	char host[300];

	/* a url without a host counts as a host of its own */
	return store_host_id(fw_store_feed_host(feed, host, sizeof(host)) ? fw_str(host) : feed->url);
}
