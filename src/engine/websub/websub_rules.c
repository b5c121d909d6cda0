/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/websub/websub_rules.h"

#define BACKOFF_MS FW_HOUR_MS
#define BACKOFF_MAX_MS (7 * FW_DAY_MS)
#define RENEWAL_BACKOFF_MS FW_HOUR_MS
/* WSB-07: a long lease is renewed at least this long before its end */
#define LATEST_MS FW_HOUR_MS
#define DISTRUST_MAX_MS (30 * FW_DAY_MS)
#define FORGIVEN_MS (30 * FW_DAY_MS)
/* for a lease of 0, none, or no number: about the minimum that hubs keep */
#define LEASE_UNSAID_MS FW_DAY_MS
#define HUB_PAUSE_MS (10 * FW_MINUTE_MS)
#define HUB_PAUSE_MAX_MS (6 * FW_HOUR_MS)
#define NEVER_MS (30 * FW_DAY_MS) /* interval for subscriptions that are switched off by hand */

/* A random time in [x, x + width). */
static int64_t random_spread(int64_t x, int64_t width, uint64_t rnd)
{
	return x + (width > 0 ? (int64_t)(rnd % (uint64_t)width) : 0);
}

static void sub_set_why(struct sub *s, struct fw_str words)
{
	(void)fw_str_copy(s->why, sizeof(s->why), words);
}

void sub_off(struct sub *s)
{
	s->state = FW_WEBSUB_OFF;
	s->accepted = false;
	s->since_ms = s->until_ms = 0;
}

void sub_schedule(struct sub *s, int64_t at_ms)
{
	s->next_ms = s->state == FW_WEBSUB_ACTIVE ? FW_MIN(at_ms, s->until_ms) : at_ms;
}

/* ---- the desired subscription -------------------------------------------- */

static bool desired_find_hub(const struct sub_desired *w, struct fw_str hub, uint32_t *at)
{
	for (uint32_t i = 0; i < w->hub_n; i++) {
		if (fw_str_eq(w->hub[i], hub)) {
			*at = i;
			return true;
		}
	}
	return false;
}

static void sub_request_at(struct sub *s, const struct sub_desired *w, int64_t next_ms)
{
	assert(s->hub_i < w->hub_n);
	s->state = FW_WEBSUB_REQUESTED;
	s->accepted = false;
	s->hub = w->hub[s->hub_i];
	s->next_ms = next_ms;
}

enum sub_change sub_reconcile(struct sub *s, const struct sub_desired *w, int64_t now_ms)
{
	bool known = s->feed_id != 0;
	uint32_t i = 0;

	if (!w->hub_n)
		return known && !s->held ? SUB_GONE : SUB_SAME;
	if (known &&
		(s->held ||
			(fw_str_eq(s->topic, w->topic) && fw_str_eq(s->base, w->base) && s->cloud == w->cloud &&
				desired_find_hub(w, s->hub, &i)))) {
		s->hub_i = i;
		return SUB_SAME;
	}
	*s = (struct sub){.feed_id = w->feed_id,
		.cloud = w->cloud,
		.topic = w->topic,
		.base = w->base,
		.token = s->token,
		.renewal = s->renewal,
		.missed_n = s->missed_n,
		.distrust_ms = s->distrust_ms};
	sub_request_at(s, w, now_ms);
	return SUB_NEW;
}

void sub_callback_invalid(struct sub *s, int64_t now_ms)
{
	if (s->held)
		return;
	sub_off(s);
	s->next_ms = now_ms;
	sub_set_why(s, FW_STR("its callback has the signature of another key: a new request is due"));
}

/* ---- requests ------------------------------------------------------------ */

/* The request failed: schedules the next hub, or after the last one another round later. */
static void sub_failed(struct sub *s, const struct sub_desired *w, int64_t least_ms, int64_t now_ms, uint64_t rnd)
{
	int64_t pause_ms;

	sub_off(s);
	if (least_ms > 0)
		s->retry_after_ms = FW_MAX(FW_MIN(s->retry_after_ms, now_ms + BACKOFF_MAX_MS), now_ms + least_ms);
	if (s->hub_i + 1 < w->hub_n) {
		s->hub_i++;
		s->next_ms = now_ms;
	} else {
		s->hub_i = 0;
		s->fail_n++;
		pause_ms = FW_MIN(BACKOFF_MS << FW_MIN(s->fail_n - 1, 10u), BACKOFF_MAX_MS);
		/* the longest Retry-After of the round */
		pause_ms = FW_MAX(pause_ms, FW_MIN(s->retry_after_ms - now_ms, BACKOFF_MAX_MS));
		s->next_ms = now_ms + random_spread(pause_ms, pause_ms / 4, rnd);
	}
	s->hub = w->hub_n ? w->hub[s->hub_i] : s->hub;
}

/* The subscription is still active: schedules another attempt before the lease ends. */
static void sub_renewal_failed(struct sub *s, int64_t least_ms, int64_t now_ms)
{
	int64_t pause_ms = FW_MIN((s->until_ms - now_ms) / 3, RENEWAL_BACKOFF_MS);

	s->accepted = false;
	sub_schedule(s, now_ms + FW_MAX(FW_MAX(pause_ms, FW_SECOND_MS), least_ms));
}

bool sub_check_timeout(struct sub *s, const struct sub_desired *w, int64_t now_ms, uint64_t rnd)
{
	bool silent = s->accepted, over = s->state == FW_WEBSUB_ACTIVE && now_ms >= s->until_ms;

	s->accepted = false;
	if (over) {
		sub_set_why(s, FW_STR("the lease has expired"));
		sub_off(s);
	} else if (silent && s->state == FW_WEBSUB_REQUESTED) {
		sub_set_why(s, FW_STR("the hub accepted the request, and never verified it"));
		sub_failed(s, w, 0, now_ms, rnd);
	} else if (silent && s->state == FW_WEBSUB_ACTIVE) {
		sub_set_why(s, FW_STR("the hub accepted the renewal, and has not verified it"));
		sub_renewal_failed(s, 0, now_ms);
	}
	return silent;
}

bool sub_due(struct sub *s, const struct sub_desired *w, int64_t now_ms, uint64_t rnd, bool *fresh)
{
	*fresh = false;
	if (s->held || !w->hub_n) {
		s->next_ms = now_ms + NEVER_MS;
		return false;
	}
	if (sub_check_timeout(s, w, now_ms, rnd) && s->next_ms > now_ms)
		return false;
	if (s->state == FW_WEBSUB_ACTIVE)
		return true;
	*fresh = s->state == FW_WEBSUB_OFF;
	sub_request_at(s, w, s->next_ms);
	return true;
}

int64_t sub_request_gap_ms(int64_t lease_ms)
{
	return FW_MIN(SUB_REQUEST_GAP_MS, lease_ms / 4);
}

int64_t sub_hub_cooldown_ms(uint32_t fail_n)
{
	return fail_n < SUB_HUB_FAILS ? 0 :
					FW_MIN(HUB_PAUSE_MS << FW_MIN(fail_n - SUB_HUB_FAILS, 10u), HUB_PAUSE_MAX_MS);
}

bool sub_rate_take(struct sub *s, int64_t *rate_ms, int64_t gap_ms, int64_t now_ms)
{
	int64_t all_ms = SUB_REQUEST_BURST * gap_ms, wait_ms;

	assert(gap_ms >= 0);
	/* clamped, in case the clock was set back */
	*rate_ms = FW_MAX(FW_MIN(*rate_ms, now_ms + all_ms), now_ms);
	wait_ms = *rate_ms + gap_ms - all_ms - now_ms;
	if (wait_ms <= 0) {
		*rate_ms += gap_ms;
		return true;
	}
	sub_schedule(s, now_ms + wait_ms);
	if (s->state != FW_WEBSUB_ACTIVE)
		s->state = FW_WEBSUB_OFF;
	sub_set_why(s, FW_STR("rate limited: the feed or its hub caused too many requests, the next one has to wait"));
	return false;
}

void sub_responded(
	struct sub *s, const struct sub_desired *w, const char *why, int64_t retry_ms, int64_t now_ms, uint64_t rnd)
{
	retry_ms = FW_MAX(FW_MIN(retry_ms, BACKOFF_MAX_MS), (int64_t)0);
	if (s->state == FW_WEBSUB_ACTIVE && s->requested_ms && s->verified_ms >= s->requested_ms)
		return; /* the verification came before the response, and takes precedence */
	if (why) {
		sub_set_why(s, fw_str(why));
		if (s->state == FW_WEBSUB_ACTIVE && now_ms < s->until_ms)
			sub_renewal_failed(s, retry_ms, now_ms);
		else
			sub_failed(s, w, retry_ms, now_ms, rnd);
		return;
	}
	s->accepted = true;
	sub_schedule(s, now_ms + SUB_SILENCE_MS);
	if (s->state != FW_WEBSUB_ACTIVE)
		sub_set_why(s, FW_STR("the hub accepted the request, its verification is awaited"));
}

void sub_verified(struct sub *s, int64_t verified_ms, int64_t lease_ms, uint64_t rnd)
{
	int64_t from = lease_ms / 3 * 2, to = lease_ms > 3 * LATEST_MS ? lease_ms - LATEST_MS : lease_ms / 12 * 11;

	if (s->cloud) {
		lease_ms = SUB_CLOUD_LEASE_MS;
		from = SUB_CLOUD_RENEW_MS / 12 * 11;
		to = SUB_CLOUD_RENEW_MS;
	}
	s->state = FW_WEBSUB_ACTIVE;
	s->accepted = false;
	s->fail_n = 0;
	s->since_ms = s->since_ms ? s->since_ms : verified_ms;
	s->verified_ms = verified_ms;
	s->until_ms = verified_ms + lease_ms;
	s->next_ms = verified_ms + random_spread(from, to - from, rnd);
	sub_set_why(s, FW_STR(""));
}

int64_t sub_overlap_ms(int64_t lease_ms)
{
	/* it is unsubscribed long before the next renewal */
	return FW_MIN(SUB_GRACE_MS, lease_ms / 8);
}

void sub_denied(struct sub *s, const struct sub_desired *w, struct fw_str reason, int64_t now_ms, uint64_t rnd)
{
	sub_failed(s, w, SUB_DENIED_MS, now_ms, rnd);
	if (reason.len)
		(void)fw_snprintf(
			s->why, sizeof(s->why), "the hub refused: %.*s", FW_STR_ARG(fw_str_sub(reason, 0, 120)));
	else
		sub_set_why(s, FW_STR("the hub refused, without a reason"));
}

/* ---- trust --------------------------------------------------------------- */

bool sub_missed(struct sub *s, int64_t polled_ms, int64_t before_ms, int64_t pushed_ms, int64_t now_ms)
{
	if (s->state != FW_WEBSUB_ACTIVE || s->cloud || before_ms < s->since_ms || pushed_ms >= polled_ms)
		return false;
	if (s->distrust_ms && now_ms - s->distrust_ms > FORGIVEN_MS)
		s->missed_n = 0;
	s->missed_n++;
	s->distrust_ms = now_ms + FW_MIN(FW_DAY_MS << FW_MIN(s->missed_n - 1, 10u), DISTRUST_MAX_MS);
	sub_set_why(s, FW_STR("a poll found entries that the hub had not sent: polled as usual for a while"));
	return true;
}

int64_t sub_push_until(const struct sub *s, int64_t now_ms)
{
	bool good = s->state == FW_WEBSUB_ACTIVE && !s->cloud && !s->held && s->until_ms > now_ms &&
		s->distrust_ms <= now_ms;

	return good ? s->until_ms : 0;
}

int64_t sub_lease_ms(struct fw_str seconds, int64_t requested_ms, char why[80])
{
	int64_t s = 0, least_ms = FW_MIN(SUB_LEASE_MIN_MS, requested_ms);
	bool number = fw_str_int(seconds, &s);

	why[0] = '\0';
	for (size_t i = 0; i < seconds.len && !number; i++) {
		if (!fw_is_digit((unsigned char)seconds.p[i]))
			break;
		if (i == seconds.len - 1)
			s = INT64_MAX / 1000; /* only digits: a number of more than 64 bits */
	}
	if (s <= 0) {
		(void)fw_snprintf(why, 80, "the hub stated no lease: taken as %s",
			requested_ms < LEASE_UNSAID_MS ? "the requested lease" : "a day");
		return FW_MIN(requested_ms, LEASE_UNSAID_MS);
	}
	s = FW_MIN(s, INT64_MAX / 1000) * 1000;
	if (s > SUB_LEASE_MAX_MS) {
		(void)fw_snprintf(why, 80, "the hub stated a lease of more than 90 d: taken as 90 d");
		return SUB_LEASE_MAX_MS;
	}
	if (s < least_ms)
		(void)fw_snprintf(why, 80, "the hub stated a lease of %lld s: taken as %lld s", (long long)(s / 1000),
			(long long)(least_ms / 1000));
	return FW_MAX(s, least_ms);
}

/* ---- the protocol's texts ------------------------------------------------ */

void form_add(struct fw_buf *b, const char *name, struct fw_str value)
{
	if (b->len)
		fw_buf_addc(b, '&');
	fw_buf_adds(b, name);
	fw_buf_addc(b, '=');
	fw_url_escape(b, value);
}

void form_int(struct fw_buf *b, const char *name, int64_t value)
{
	char text[24];

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)value);
	form_add(b, name, fw_str(text));
}

bool form_get(struct fw_str form, const char *name, struct fw_arena *a, struct fw_str *out)
{
	struct fw_str rest = form;

	while (rest.p) {
		struct fw_str value, key = fw_str_split(fw_str_split(rest, '&', &rest), '=', &value);
		char *plain;

		if (!fw_str_eq(key, fw_str(name)))
			continue;
		plain = fw_arena_dup(a, value.p, value.len);
		for (size_t i = 0; plain && i < value.len; i++)
			plain[i] = plain[i] == '+' ? ' ' : plain[i];
		return plain && fw_url_decode(a, (struct fw_str){plain, value.len}, out);
	}
	return false;
}

bool signature_is_valid(struct fw_str header, struct fw_str secret, struct fw_str body)
{
	static const char *const METHOD[] = {"sha1", "sha256", "sha384", "sha512"};
	struct fw_str hex, method = fw_str_trim(fw_str_split(header, '=', &hex));
	unsigned char want[EVP_MAX_MD_SIZE], got[EVP_MAX_MD_SIZE];
	const EVP_MD *md = NULL;
	unsigned n = 0;

	hex = fw_str_trim(hex.p ? hex : FW_STR(""));
	for (size_t i = 0; i < FW_N(METHOD); i++) {
		if (fw_str_ieq(method, fw_str(METHOD[i])))
			md = EVP_get_digestbyname(METHOD[i]);
	}
	if (!md || !secret.len || secret.len > INT32_MAX)
		return false;
	return HMAC(md, secret.p, (int)secret.len, (const unsigned char *)(body.len ? body.p : ""), body.len, want,
		       &n) &&
		fw_hex_read(hex, got, n) && CRYPTO_memcmp(want, got, n) == 0;
}

/* ---- callbacks ----------------------------------------------------------- */

#define RANDOM_LEN (SUB_TOKEN_LEN / 2) /* random digits; as many digits of the MAC follow */

static bool random_hex(char *out, size_t digits)
{
	unsigned char bytes[32];

	if (getentropy(bytes, digits / 2))
		return false;
	fw_hex_write(out, bytes, digits / 2);
	return true;
}

static bool callback_sign(
	const unsigned char key[SUB_KEY_LEN], const char *id, char out[SUB_TOKEN_LEN - RANDOM_LEN + 1])
{
	unsigned char mac[EVP_MAX_MD_SIZE];

	if (!HMAC(EVP_sha256(), key, SUB_KEY_LEN, (const unsigned char *)id, RANDOM_LEN, mac, NULL))
		return false;
	fw_hex_write(out, mac, (SUB_TOKEN_LEN - RANDOM_LEN) / 2);
	return true;
}

bool callback_make(const unsigned char key[SUB_KEY_LEN], char out[SUB_TOKEN_LEN + 1])
{
	return random_hex(out, RANDOM_LEN) && callback_sign(key, out, out + RANDOM_LEN);
}

bool callback_is_ours(const unsigned char key[SUB_KEY_LEN], struct fw_str token)
{
	char want[SUB_TOKEN_LEN - RANDOM_LEN + 1];

	return token.len == SUB_TOKEN_LEN && callback_sign(key, token.p, want) &&
		CRYPTO_memcmp(want, token.p + RANDOM_LEN, SUB_TOKEN_LEN - RANDOM_LEN) == 0;
}

bool secret_make(char out[SUB_SECRET_LEN + 1])
{
	return random_hex(out, SUB_SECRET_LEN);
}
