/* SPDX-License-Identifier: ISC */
/* What HTTP headers say about time: RFC 9111 section 4.2 (freshness), RFC 9110 section 10.2.3 (Retry-After). */
#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"

#define DELTA_MAX INT64_C(2147483648) /* RFC 9111 section 1.2.2: larger ones count as this */

/* A run of digits; more than fit count as DELTA_MAX. False: not a number. */
static bool delta_seconds(struct fw_str s, int64_t *out)
{
	int64_t v = 0;

	s = fw_str_trim(s);
	if (s.len >= 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
		s = fw_str_sub(s, 1, s.len - 1);
	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit((unsigned char)s.p[i]))
			return false;
		if (v < DELTA_MAX)
			v = v * 10 + (s.p[i] - '0');
	}
	*out = FW_MIN(v, DELTA_MAX);
	return true;
}

int64_t fw_retry_after_ms(struct fw_str s, int64_t now_ms)
{
	int64_t v;

	if (!s.p)
		return FW_NO_NUMBER;
	if (delta_seconds(s, &v))
		return v * FW_SECOND_MS;
	if (fw_http_date_parse(s, now_ms, &v))
		return FW_MAX(v - now_ms, 0); /* a time that has passed: now is fine by it */
	return FW_NO_NUMBER;
}

/* The value of one directive; absent: not there. Present without a value: empty. */
static struct fw_str directive(struct fw_str list, struct fw_str name)
{
	while (list.p) {
		struct fw_str value, item = fw_str_split(list, ',', &list);
		struct fw_str key = fw_str_trim(fw_str_split(item, '=', &value));

		if (fw_str_ieq(key, name))
			return value.p ? value : FW_STR("");
	}
	return FW_STR_NONE;
}

int64_t fw_fresh_ms(struct fw_str cache_control, struct fw_str age, struct fw_str expires, struct fw_str date, int64_t now_ms)
{
	struct fw_str max_age = directive(cache_control, FW_STR("max-age"));
	int64_t life, at, from, old = 0;

	if (directive(cache_control, FW_STR("no-store")).p || directive(cache_control, FW_STR("no-cache")).p)
		return FW_NO_NUMBER; /* nothing is fresh, but nothing is asked for either: other rules decide */
	if (max_age.p && delta_seconds(max_age, &life)) {
		if (age.p && !delta_seconds(age, &old))
			old = 0;
		return FW_MAX(life - old, 0) * FW_SECOND_MS;
	}
	if (!expires.p || !fw_http_date_parse(expires, now_ms, &at))
		return FW_NO_NUMBER; /* "0" and its like: expired already */
	if (!date.p || !fw_http_date_parse(date, now_ms, &from))
		from = now_ms;
	return FW_MIN(FW_MAX(at - from, 0), DELTA_MAX * FW_SECOND_MS);
}
