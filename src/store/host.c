/* SPDX-License-Identifier: ISC */
/*
 * Whose budget a feed uses, and how a host's pace is learned: the same for all drivers.
 *
 * Politeness is owed to a server, and a server is mostly what a host's name names. Blog and podcast hosters give each customer a
 * name of his own, though, and serve thousands from one place: all of these are one. A general list of registrable domains
 * would not do: it is there to keep customers apart (blogspot.com stands in it), and shops of one domain are often many servers.
 */
#include "base/hash.h"
#include "base/str.h"
#include "base/url.h"
#include "store/host.h"
#include "base/banned.h"

#define EXPECT_SHARE 8 /* of a new duration in what is expected, as one of so many */

/* Hosters whose customers have names under theirs and whose feeds come from one place. */
static const char *const services[] = {
	"bandcamp.com", "bearblog.dev", "blogs.com", "blogspot.com", "buzzsprout.com", "canalblog.com", "captivate.fm", "dreamwidth.org",
	"eklablog.com", "exblog.jp", "fc2.com", "feedburner.com", "fireside.fm", "ghost.io", "github.io", "gitlab.io", "hashnode.dev",
	"hatenablog.com", "hatenablog.jp", "hatenadiary.jp", "hypotheses.org", "itch.io", "libsyn.com", "livedoor.blog", "livejournal.com",
	"medium.com", "micro.blog", "neocities.org", "netlify.app", "over-blog.com", "pages.dev", "podbean.com", "podigee.io", "podomatic.com",
	"readthedocs.io", "seesaa.net", "skyrock.com", "sourceforge.io", "spreaker.com", "squarespace.com", "substack.com", "transistor.fm",
	"tumblr.com", "typepad.com", "vercel.app", "weebly.com", "wixsite.com", "wordpress.com", "write.as",
};

/* What stands behind the last dot but n, or all. */
static struct fw_str last_labels(struct fw_str host, int n)
{
	size_t at = host.len;

	for (; n > 0 && at > 0; n--) {
		at--;
		while (at > 0 && host.p[at] != '.')
			at--;
	}
	return at ? fw_str_sub(host, at + 1, host.len) : host;
}

static const char *service_of(struct fw_str host)
{
	struct fw_str two = last_labels(host, 2);

	/* one and the same under many countries' names: blogspot.de, blogspot.co.uk */
	if (fw_str_starts(two, FW_STR("blogspot.")) || fw_str_starts(last_labels(host, 3), FW_STR("blogspot.")))
		return "blogspot.com";
	for (size_t i = 0; i < FW_N(services); i++) {
		if (fw_str_eq(two, fw_str(services[i])))
			return services[i];
	}
	return NULL;
}

bool fw_store_host(struct fw_str url, char *out, size_t cap)
{
	const char *service;

	if (!fw_url_host(url, out, cap))
		return false;
	service = service_of(fw_str(out));
	return !service || fw_snprintf(out, cap, "%s", service);
}

bool fw_store_feed_host(const struct fw_feed *feed, char *out, size_t cap)
{
	if (feed->host_key.len)
		return fw_snprintf(out, cap, "%.*s", FW_STR_ARG(feed->host_key));
	return fw_store_host(feed->url, out, cap);
}

int64_t fw_budget_holder(const char *worker)
{
	uint64_t hash = fw_hash64(worker, strlen(worker));

	return hash ? (int64_t)hash : 1;
}

int64_t fw_budget_gap(const struct fw_budget *b, const struct fw_claim_ask *ask)
{
	return FW_MAX(b->pace_ms, ask->host_gap_ms);
}

/* How many more than host_max he may have. */
static int64_t ahead_of(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me)
{
	return b->busy_n == 0 || b->holder == me ? ask->host_ahead : 0;
}

bool fw_budget_full(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me)
{
	return ask->host_max && b->busy_n >= (int64_t)ask->host_max + ahead_of(b, ask, me);
}

int64_t fw_budget_from(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me)
{
	/* only he who has some knows when the last request was sent, and waits for as long as it takes */
	int64_t gaps = b->busy_n && b->holder == me ? ask->host_ahead : 0;

	return FW_MAX(b->cool_until_ms, b->next_ok_ms - gaps * fw_budget_gap(b, ask));
}

bool fw_budget_may(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me, int64_t now_ms)
{
	return !fw_budget_full(b, ask, me) && fw_budget_from(b, ask, me) <= now_ms;
}

void fw_budget_lend(struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me, int64_t now_ms)
{
	b->holder = b->busy_n == 0 || b->holder == me ? me : 0;
	b->busy_n++;
	b->next_ok_ms = FW_MAX(b->next_ok_ms, now_ms) + fw_budget_gap(b, ask);
}

void fw_budget_cool(struct fw_budget *b, int64_t until_ms)
{
	b->cool_until_ms = FW_MAX(b->cool_until_ms, until_ms);
	b->next_ok_ms = FW_MAX(b->next_ok_ms, until_ms);
}

void fw_budget_tell(struct fw_budget *b, const struct fw_outcome *o, int64_t now_ms)
{
	if (o->host_wait_ms > 0)
		b->next_ok_ms = FW_MAX(b->next_ok_ms, now_ms + o->host_wait_ms);
	fw_budget_cool(b, o->host_cooldown_ms);
}

void fw_budget_return(struct fw_budget *b, const struct fw_outcome *o, int64_t now_ms)
{
	if (b->busy_n)
		b->busy_n--;
	if (!b->busy_n)
		b->holder = 0;
	if (!o)
		return;
	b->pace_ms = fw_store_pace(b->pace_ms, o->host_mood);
	if (o->feed->expect_us > 0 && o->visit.total_us > 0)
		b->expect_us += b->expect_us ? (o->visit.total_us - b->expect_us) / EXPECT_SHARE : o->visit.total_us;
	fw_budget_tell(b, o, now_ms);
}
