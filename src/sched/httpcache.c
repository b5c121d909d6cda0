/* SPDX-License-Identifier: ISC */
/*
 * HTTP's caching hints as durations: freshness (RFC 9111 section 4.2) and Retry-After (RFC 9110
 * section 10.2.3). There is no heuristic freshness (POL-06): a document without hints has none.
 * Seconds beyond 2^31 count as 2^31 (RFC 9111 section 1.2.2).
 */
#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"

#define MAX_SECONDS (INT64_C(1) << 31)

/* delta-seconds: digits only, or in quotes, which senders should not use. */
static bool parse_delta_seconds(struct fw_str s, int64_t *out)
{
	int64_t v = 0;

	s = fw_str_trim(s);
	if (s.len > 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
		s = fw_str_sub(s, 1, s.len - 1);
	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit((unsigned char)s.p[i]))
			return false;
		v = FW_MIN(v * 10 + (s.p[i] - '0'), MAX_SECONDS);
	}
	*out = v;
	return true;
}

/*
 * max-age of a Cache-Control value, in seconds; the first one counts, and an invalid one is 0 (RFC
 * 9111 section 4.2.1). *no_cache: the server wants each request to be revalidated. Returns whether
 * there was a max-age.
 */
static bool parse_max_age(struct fw_str rest, int64_t *out, bool *no_cache)
{
	bool found = false;

	*no_cache = false;
	while (rest.p) {
		struct fw_str value, name = fw_str_split(fw_str_split(rest, ',', &rest), '=', &value);

		name = fw_str_trim(name);
		if (fw_str_ieq(name, FW_STR("no-cache")) || fw_str_ieq(name, FW_STR("no-store")))
			*no_cache = true;
		if (!found && fw_str_ieq(name, FW_STR("max-age"))) {
			found = true;
			if (!value.p || !parse_delta_seconds(value, out))
				*out = 0;
		}
	}
	return found;
}

int64_t fw_fresh_ms(
	struct fw_str cache_control, struct fw_str age, struct fw_str expires, struct fw_str date, int64_t now_ms)
{
	int64_t fresh = 0, aged = 0, until, from;
	bool no_cache, found = parse_max_age(cache_control, &fresh, &no_cache);

	if (no_cache || (!found && !expires.p))
		return FW_NO_NUMBER;
	/* an invalid date, as "0", has expired already (RFC 9111 section 5.3) */
	if (!found && fw_http_date_parse(expires, now_ms, &until)) {
		if (!date.p || !fw_http_date_parse(date, now_ms, &from))
			from = now_ms;
		fresh = FW_MIN(until > from ? (until - from) / 1000 : 0, MAX_SECONDS);
	}
	if (age.p && !parse_delta_seconds(age, &aged))
		aged = 0;
	return FW_MAX(fresh - aged, 0) * 1000;
}

int64_t fw_retry_after_ms(struct fw_str retry_after, int64_t now_ms)
{
	int64_t v;

	if (!retry_after.p)
		return FW_NO_NUMBER;
	if (parse_delta_seconds(retry_after, &v))
		return v * 1000;
	if (!fw_http_date_parse(retry_after, now_ms, &v))
		return FW_NO_NUMBER;
	if (v < now_ms - FW_DAY_MS) /* no clock is wrong by a day */
		return v - now_ms;
	return FW_MIN(FW_MAX(v - now_ms, 0), MAX_SECONDS * 1000); /* a date in the past means now */
}
