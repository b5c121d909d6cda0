/* SPDX-License-Identifier: ISC */
/*
 * Requests from hubs and from impostors: verifications of intent, signatures, forms, leases, for
 * callbacks in a store in memory. The first byte selects the kind, the rest is the request. Nothing
 * is echoed or changed that was not requested, and a callback's record stays readable after any
 * request. WSB-05, WSB-08 to WSB-11.
 */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "engine/websub/websub.h"
#include "engine/websub/websub_requests.h"
#include "fuzz.h"

#define NOW INT64_C(1800000000000)
#define TOKEN FW_STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
#define TOPIC FW_STR("https://a.example/feed?a=1")
#define SECRET FW_STR("geheim")

static struct fw_store *store;
static struct fw_err err;

/* A callback in one of its states; its feed exists, and the leader has no message. */
static struct callback callback(enum callback_state state, bool cloud)
{
	struct callback cb = {.token = TOKEN,
		.feed_id = 1,
		.state = state,
		.cloud = cloud,
		.hub = FW_STR("https://hub.example/"),
		.topic = TOPIC,
		.secret = cloud ? FW_STR_NONE : SECRET,
		.lease_requested_ms = 10 * FW_DAY_MS};
	struct fw_feed_new n = {.url = FW_STR("https://a.example/feed")};

	if (!store) {
		FUZZ_CHECK(!fw_store_open(
			&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &store, &err));
		FUZZ_CHECK(!fw_store_subscribe(store, &n, 1, &err));
	}
	FUZZ_CHECK(!websub_record_remove(store, "ask/0000000000000000001/look", &err));
	FUZZ_CHECK(!websub_record_callback_put(store, &cb, NOW, &err));
	return cb;
}

/* True if the leader was told to check it. */
static bool is_told(void)
{
	struct fw_arena a;
	struct fw_record r;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_record_get(store, WEBSUB_RECORD_KIND, FW_STR("ask/0000000000000000001/look"), &a, &r, &err);
	FUZZ_CHECK(rc == 0 || rc == FW_ENOTFOUND);
	fw_arena_finish(&a);
	return rc == 0;
}

/* ---- intent ---------------------------------------------------------------------------------- */

enum { MODE, TOPIC_ARG, CHALLENGE, LEASE, REASON, URL, CLOUD_CHALLENGE, ARGUMENT_N };

/* The stored state fits the response. */
static void check_intent(const struct callback *was, const struct fw_websub_intent *in, struct fw_str answer)
{
	bool wanted = was->state == CALLBACK_REQUESTED || was->state == CALLBACK_ACTIVE;
	struct callback now;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	FUZZ_CHECK(!websub_record_callback_get(store, TOKEN, &a, &now, &err));
	FUZZ_CHECK(now.feed_id == 1 && now.cloud == was->cloud && fw_str_eq(now.topic, TOPIC) &&
		fw_str_eq(now.hub, was->hub));
	FUZZ_CHECK(fw_str_eq(now.secret, was->secret) && now.lease_requested_ms == was->lease_requested_ms);
	FUZZ_CHECK(is_told() == (answer.p != NULL));
	if (!answer.p) {
		FUZZ_CHECK(now.state == was->state && !now.decided_ms && !now.lease_ms);
	} else if (was->cloud) {
		FUZZ_CHECK(wanted && now.state == CALLBACK_ACTIVE && fw_str_eq(in->url, TOPIC) &&
			fw_str_eq(answer, in->cloud_challenge));
	} else {
		FUZZ_CHECK(fw_str_eq(in->topic, TOPIC) && now.decided_ms == NOW);
		FUZZ_CHECK(now.state != CALLBACK_ACTIVE ||
			(wanted && now.lease_ms >= SUB_LEASE_MIN_MS && now.lease_ms <= SUB_LEASE_MAX_MS));
		FUZZ_CHECK(now.state == was->state || now.state == CALLBACK_ACTIVE ||
			now.state == (wanted ? CALLBACK_DENIED : CALLBACK_UNSUBSCRIBED));
		FUZZ_CHECK(!answer.len || fw_str_eq(answer, in->challenge));
	}
	FUZZ_CHECK(answer.len <= FW_WEBSUB_CHALLENGE_MAX);
	fw_arena_finish(&a);
}

static void intent(struct fw_str query, enum callback_state state, bool cloud)
{
	static const char *const NAME[ARGUMENT_N] = {
		"hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds", "hub.reason", "url", "challenge"};
	struct callback was = callback(state, cloud);
	struct fw_str got[ARGUMENT_N] = {FW_STR_NONE}, answer;
	struct fw_websub_intent in;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (int i = 0; i < ARGUMENT_N; i++) {
		if (!form_get(query, NAME[i], &a, &got[i]))
			got[i] = FW_STR_NONE;
	}
	in = (struct fw_websub_intent){TOKEN, got[MODE], got[TOPIC_ARG], got[CHALLENGE], got[LEASE], got[REASON],
		got[URL], got[CLOUD_CHALLENGE]};
	FUZZ_CHECK(!fw_websub_intent(store, &in, NOW, &answer, &err));
	check_intent(&was, &in, answer);
	in.token = fw_str_sub(query, 0, SUB_TOKEN_LEN); /* a token that was never created */
	if (!fw_str_ieq(in.token, TOKEN)) {
		FUZZ_CHECK(!fw_websub_intent(store, &in, NOW, &answer, &err));
		FUZZ_CHECK(!answer.p);
	}
	fw_arena_finish(&a);
}

/* ---- documents ------------------------------------------------------------------------------- */

static enum fw_websub_verdict push_verdict(struct fw_str signature, struct fw_str body)
{
	enum fw_websub_verdict v;
	int64_t feed_id;

	FUZZ_CHECK(!fw_websub_classify(store, TOKEN, signature, body, NOW, &feed_id, &v, &err));
	FUZZ_CHECK(feed_id == 1);
	return v;
}

/* "sha256=..." of the body, by an independent implementation. */
static void sign(const char *name, struct fw_str body, struct fw_buf *out)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	FUZZ_CHECK(HMAC(EVP_get_digestbyname(name), SECRET.p, (int)SECRET.len,
		(const unsigned char *)(body.len ? body.p : ""), body.len, sum, &n));
	fw_buf_addf(out, "%s=", name);
	for (unsigned i = 0; i < n; i++)
		fw_buf_addf(out, "%02x", sum[i]);
}

/* A line with the header, and the body after it. */
static void document(struct fw_str data, enum callback_state state)
{
	static const char *const METHOD[] = {"sha1", "sha256", "sha384", "sha512"};
	struct fw_str body, header = fw_str_split(data, '\n', &body);
	bool wanted = state == CALLBACK_REQUESTED || state == CALLBACK_ACTIVE, signs = false;
	struct callback cb = callback(state, false);
	enum fw_websub_verdict v;

	body = body.p ? body : FW_STR("");
	for (size_t i = 0; i < FW_N(METHOD); i++) {
		struct fw_buf good = FW_BUF_INIT(0);
		struct fw_str hex;

		sign(METHOD[i], body, &good);
		FUZZ_CHECK(push_verdict(fw_buf_str(&good), body) == (wanted ? FW_WEBSUB_ACCEPT : FW_WEBSUB_GONE));
		(void)fw_str_split(fw_buf_str(&good), '=', &hex);
		signs |= fw_str_ifind(header, hex) != NULL;
		good.p[good.len - 1] ^= 1; /* a digit becomes another digit or a character that is none */
		FUZZ_CHECK(!signature_is_valid(fw_buf_str(&good), cb.secret, body));
		fw_buf_finish(&good);
	}
	v = push_verdict(header, body);
	FUZZ_CHECK(wanted ? v == FW_WEBSUB_ACCEPT || v == FW_WEBSUB_IGNORE : v == FW_WEBSUB_GONE);
	FUZZ_CHECK(v != FW_WEBSUB_ACCEPT || signs);
	FUZZ_CHECK(push_verdict(FW_STR_NONE, body) == (wanted ? FW_WEBSUB_UNSIGNED : FW_WEBSUB_GONE));
}

/* rssCloud's pings: a form that is read, and written again, is read as the same. */
static void ping(struct fw_str form, enum callback_state state)
{
	struct fw_buf again = FW_BUF_INIT(0);
	struct fw_str url = FW_STR_NONE, back;
	enum fw_websub_verdict v;
	struct fw_arena a;
	bool is;

	fw_arena_init(&a, 0);
	is = form_get(form, "url", &a, &url);
	callback(state, true);
	v = push_verdict(FW_STR_NONE, form);
	FUZZ_CHECK((v == FW_WEBSUB_HINT) == (state == CALLBACK_ACTIVE && is && fw_str_eq(url, TOPIC)));
	FUZZ_CHECK(v != FW_WEBSUB_ACCEPT && url.len <= form.len);
	form_add(&again, "other", form);
	form_add(&again, "url", url);
	FUZZ_CHECK(form_get(fw_buf_str(&again), "url", &a, &back) && fw_str_eq(back, url));
	FUZZ_CHECK(form_get(fw_buf_str(&again), "other", &a, &back) && fw_str_eq(back, form));
	(void)cloud_is_refused(form);
	fw_buf_finish(&again);
	fw_arena_finish(&a);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void lease(struct fw_str text)
{
	static const int64_t ASKED[] = {FW_SECOND_MS, FW_HOUR_MS, 10 * FW_DAY_MS, SUB_LEASE_MAX_MS};

	for (size_t i = 0; i < FW_N(ASKED); i++) {
		struct sub s = {.feed_id = 1, .state = FW_WEBSUB_REQUESTED};
		char why[80];
		int64_t ms = sub_lease_ms(text, ASKED[i], why);

		FUZZ_CHECK(memchr(why, '\0', sizeof(why)));
		FUZZ_CHECK(ms >= FW_MIN(SUB_LEASE_MIN_MS, ASKED[i]) && ms <= SUB_LEASE_MAX_MS);
		sub_verified(&s, NOW, ms, fw_hash64(text.p, text.len));
		FUZZ_CHECK(s.next_ms > NOW && s.next_ms < s.until_ms && s.until_ms == NOW + ms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str rest = {(const char *)data + 1, size - 1};
	enum callback_state state;

	if (!size)
		return 0;
	state = (enum callback_state)(data[0] / 8 % (CALLBACK_UNSUBSCRIBED + 1));
	switch (data[0] % 8) {
	case 0:
	case 1:
	case 2:
		intent(rest, state, false);
		break;
	case 3:
		intent(rest, state, true);
		break;
	case 4:
	case 5:
		document(rest, state);
		break;
	case 6:
		ping(rest, state);
		break;
	default:
		lease(rest);
		break;
	}
	return 0;
}
