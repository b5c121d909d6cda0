/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "engine/websub/websub_requests.h"

/* ---- the desired subscription -------------------------------------------- */

/*
 * Percent-encodes a URL that is not UTF-8 (Latin-1 in a header), as a request would. Records are
 * JSON, which would change its bytes: then every scan would find a new URL to subscribe to.
 */
static struct fw_str url_to_utf8(struct fw_str url, struct fw_arena *a)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (fw_utf8_valid(url.p, url.len) == url.len)
		return url;
	for (size_t i = 0; i < url.len; i++) {
		unsigned char c = (unsigned char)url.p[i];

		if (c < 0x80)
			fw_buf_addc(&b, (char)c);
		else
			fw_buf_addf(&b, "%%%02X", c);
	}
	url = b.rc ? FW_STR_NONE : fw_arena_str(a, fw_buf_str(&b));
	fw_buf_finish(&b);
	return url;
}

static void desired_add_hub(struct sub_desired *w, struct fw_str url, struct fw_arena *a)
{
	url = url_to_utf8(url, a);
	assert(w->hub_n <= SUB_HUBS_MAX);
	for (uint32_t i = 0; i < w->hub_n; i++) {
		if (fw_str_eq(w->hub[i], url))
			return;
	}
	if (w->hub_n < SUB_HUBS_MAX && hub_url_is_valid(url))
		w->hub[w->hub_n++] = url;
}

static struct fw_str extra_member(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_string(v) ? (struct fw_str){json_string_value(v), json_string_length(v)} : FW_STR_NONE;
}

static void desired_add_hubs(const json_t *extra, struct fw_arena *a, struct sub_desired *w)
{
	const json_t *hub;
	size_t i;

	json_array_foreach(json_object_get(extra, "hubs"), i, hub)
	{
		struct fw_str type = extra_member(hub, "type");

		if (!type.len || fw_str_ieq(type, FW_STR("WebSub")) || fw_str_ieq(type, FW_STR("PubSubHubbub")))
			desired_add_hub(w, fw_arena_str(a, extra_member(hub, "url")), a);
	}
}

/*
 * <cloud domain="rpc.example" port="80" path="/pleaseNotify" protocol="http-post"/>. Only clouds
 * with an HTTP form interface are supported.
 */
static void desired_add_cloud(const json_t *extra, const struct fw_feed *f, struct fw_arena *a, struct sub_desired *w)
{
	const json_t *o = json_object_get(json_object_get(extra, "_feedwheel"), "cloud");
	struct fw_str domain = extra_member(o, "domain"), path = extra_member(o, "path"),
		      protocol = extra_member(o, "protocol");
	bool secure = fw_str_ieq(protocol, FW_STR("https-post"));
	int64_t number = json_integer_value(json_object_get(o, "port"));

	if (!domain.len || number < 1 || number > 65535 || (!secure && !fw_str_ieq(protocol, FW_STR("http-post"))))
		return;
	w->cloud = true;
	w->topic = url_to_utf8(f->url, a);
	desired_add_hub(w,
		fw_str(fw_arena_printf(a, "%s://%.*s:%lld%s%.*s", secure || number == 443 ? "https" : "http",
			FW_STR_ARG(domain), (long long)number, fw_str_starts(path, FW_STR("/")) ? "" : "/",
			FW_STR_ARG(path.p ? path : FW_STR("")))),
		a);
}

void sub_desired_of_feed(const struct fw_feed *f, struct fw_str base, struct fw_arena *a, struct sub_desired *w)
{
	json_t *extra = NULL;

	*w = (struct sub_desired){.feed_id = f->id,
		.topic = f->topic.len        ? f->topic :
			f->validator_url.len ? f->validator_url :
					       f->url,
		.base = base};
	if (f->status != FW_FEED_ACTIVE)
		return;
	w->topic = url_to_utf8(w->topic, a);
	if (f->hub.len)
		desired_add_hub(w, f->hub, a);
	if (fw_str_find(f->extra, FW_STR("\"hubs\"")) || (!w->hub_n && fw_str_find(f->extra, FW_STR("\"cloud\""))))
		extra = json_loadb(f->extra.p, f->extra.len, 0, NULL);
	if (extra)
		desired_add_hubs(extra, a, w);
	if (!hub_url_is_valid(w->topic))
		w->hub_n = 0;
	if (extra && !w->hub_n)
		desired_add_cloud(extra, f, a, w);
	json_decref(extra);
}

uint64_t sub_desired_hash(const struct sub_desired *w)
{
	struct fw_hasher h;

	fw_hasher_init(&h);
	for (uint32_t i = 0; i < w->hub_n; i++)
		fw_hasher_add(&h, w->hub[i]);
	fw_hasher_add(&h, w->cloud ? FW_STR("cloud") : FW_STR("hub"));
	fw_hasher_add(&h, w->topic);
	fw_hasher_add(&h, w->base);
	return fw_hasher_end64(&h) | 1;
}

/* ---- forms --------------------------------------------------------------- */

void subscribe_form_write(const struct sub *s, bool subscribe, struct fw_str token, struct fw_str secret,
	int64_t lease_ms, struct fw_buf *out)
{
	form_add(out, "hub.callback", s->base);
	fw_url_escape(out, token);
	form_add(out, "hub.mode", subscribe ? FW_STR("subscribe") : FW_STR("unsubscribe"));
	form_add(out, "hub.topic", s->topic);
	if (subscribe)
		form_int(out, "hub.lease_seconds", FW_MAX(lease_ms / 1000, (int64_t)1));
	if (subscribe && secret.len)
		form_add(out, "hub.secret", secret);
}

void cloud_form_write(const struct sub *s, struct fw_str token, struct fw_buf *out)
{
	char host[256] = "";
	struct fw_url u;

	fw_url_split(s->base, &u);
	(void)fw_url_host(s->base, host, sizeof(host));
	form_add(out, "notifyProcedure", FW_STR(""));
	form_add(out, "protocol",
		fw_str_istarts(s->base, FW_STR("https:")) ? FW_STR("https-post") : FW_STR("http-post"));
	form_add(out, "domain", fw_str(host));
	form_int(out, "port", fw_url_port(s->base));
	form_add(out, "path", u.path);
	fw_url_escape(out, token);
	form_add(out, "url1", s->topic);
}

bool cloud_is_refused(struct fw_str answer)
{
	const char *p = fw_str_ifind(answer, FW_STR("success"));
	struct fw_str digits = p ? fw_str_sub(answer, (size_t)(p - answer.p), (size_t)(p - answer.p) + 20) :
				   FW_STR_NONE;

	return digits.p && fw_str_ifind(digits, FW_STR("false"));
}
