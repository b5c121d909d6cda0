/* SPDX-License-Identifier: ISC */
#include <assert.h>

#include "base/log.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "store/dsn.h"

static int percent_decode(struct fw_arena *a, struct fw_str in, const char *what, const char *part, struct fw_str *out,
	struct fw_err *err)
{
	char *p, *to;

	*out = FW_STR_NONE;
	if (!in.p)
		return 0;
	p = to = fw_arena_dup(a, in.p, in.len);
	if (!p)
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory", what);
	for (size_t i = 0; i < in.len; i++) {
		int hi, lo;

		if (in.p[i] != '%') {
			*to++ = in.p[i];
			continue;
		}
		hi = i + 2 < in.len ? fw_hexval(in.p[i + 1]) : -1;
		lo = i + 2 < in.len ? fw_hexval(in.p[i + 2]) : -1;
		if (hi < 0 || lo < 0 || hi + lo == 0)
			return fw_err_set(err, FW_EINVAL,
				"%s: %s: invalid percent escape (for a percent sign, write %%25)", what, part);
		*to++ = (char)(hi * 16 + lo);
		i += 2;
	}
	*to = '\0';
	*out = (struct fw_str){p, (size_t)(to - p)};
	return 0;
}

static int dsn_options_split(struct fw_arena *a, struct fw_str query, struct fw_dsn *d, struct fw_err *err)
{
	int rc = 0;

	while (query.p && !rc) {
		struct fw_str value, item = fw_str_split(query, '&', &query), name = fw_str_split(item, '=', &value);

		if (!item.len)
			continue;
		if (!name.len || !value.p)
			return fw_err_set(
				err, FW_EINVAL, "%s: option \"%.*s\": write name=value", d->what, FW_STR_ARG(name));
		if (d->option_n == FW_DSN_OPTIONS)
			return fw_err_set(err, FW_EINVAL, "%s: more than %d options", d->what, FW_DSN_OPTIONS);
		rc = percent_decode(a, name, d->what, "options", &name, err);
		rc = rc ? rc : percent_decode(a, value, d->what, "options", &value, err);
		if (!rc && fw_dsn_option(d, name.p).p)
			return fw_err_set(err, FW_EINVAL, "%s: option \"%s\" is repeated", d->what, name.p);
		d->option[d->option_n].name = name;
		d->option[d->option_n++].value = value;
	}
	return rc;
}

int fw_dsn_split(struct fw_arena *a, const char *what, const char *url, struct fw_dsn *d, struct fw_err *err)
{
	struct fw_str password, user;
	struct fw_url u;
	int rc;

	*d = (struct fw_dsn){.what = what};
	fw_url_split(fw_str(url), &u);
	user = u.userinfo.p ? fw_str_split(u.userinfo, ':', &password) : FW_STR_NONE;
	if (u.port.len && !fw_port_parse(u.port, &d->port))
		return fw_err_set(err, FW_EINVAL, /* not shown: it may be part of a password */
			"%s: invalid port: 1 to 65535 (in a password, write / ? # @ as %%2F %%3F %%23 %%40)", what);
	rc = percent_decode(a, u.scheme, what, "scheme", &d->scheme, err);
	rc = rc ? rc : percent_decode(a, user, what, "user name", &d->user, err);
	rc = rc ? rc : percent_decode(a, u.userinfo.p ? password : FW_STR_NONE, what, "password", &d->password, err);
	rc = rc ? rc : percent_decode(a, u.host.len ? u.host : FW_STR_NONE, what, "host", &d->host, err);
	rc = rc ? rc :
		  percent_decode(a, u.has_authority && u.path.len ? fw_str_sub(u.path, 1, u.path.len) : u.path, what,
			  "path", &d->path, err);
	return rc ? rc : dsn_options_split(a, u.query, d, err);
}

struct fw_str fw_dsn_option(const struct fw_dsn *d, const char *name)
{
	for (size_t i = 0; i < d->option_n; i++) {
		if (fw_str_eq(d->option[i].name, fw_str(name)))
			return d->option[i].value;
	}
	return FW_STR_NONE;
}

int fw_dsn_only(const struct fw_dsn *d, const char *const *known, struct fw_err *err)
{
	char list[200] = "";
	size_t at = 0;

	for (const char *const *k = known; *k; k++) {
		if (fw_snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "", *k))
			at += strlen(list + at);
	}
	for (size_t i = 0; i < d->option_n; i++) {
		const char *const *k = known;

		while (*k && !fw_str_eq(d->option[i].name, fw_str(*k)))
			k++;
		if (!*k)
			return fw_err_set(err, FW_EINVAL, "%s: unknown option \"%.*s\": known are %s", d->what,
				FW_STR_ARG(d->option[i].name), list);
	}
	return 0;
}

int fw_dsn_number(const struct fw_dsn *d, const char *name, int64_t min, int64_t max, int64_t fallback, int64_t *out,
	struct fw_err *err)
{
	struct fw_str value = fw_dsn_option(d, name);

	*out = fallback;
	if (!value.p || (fw_str_int(value, out) && *out >= min && *out <= max))
		return 0;
	return fw_err_set(err, FW_EINVAL, "%s: %s=%.*s: not a number from %lld to %lld", d->what, name,
		FW_STR_ARG(value), (long long)min, (long long)max);
}

/* Append the URL from `from` to `upto`, then the stars of a password. */
static const char *dsn_show_until(struct fw_buf *out, const char *from, const char *upto)
{
	assert(upto >= from);
	fw_log_escape(out, (struct fw_str){from, (size_t)(upto - from)});
	fw_buf_adds(out, "***");
	return upto;
}

/*
 * The password of an authority, also of a malformed one: from the first colon after "://" to the
 * last '@'. Absent if only options contain an '@'.
 */
static struct fw_str dsn_password_find(struct fw_str url)
{
	const char *from = fw_str_find(url, FW_STR("://")), *to = NULL, *query, *end = url.p + url.len;

	if (!from)
		return FW_STR_NONE;
	from += 3;
	query = memchr(from, '?', (size_t)(end - from));
	from = memchr(from, ':', (size_t)((query ? query : end) - from));
	for (const char *p = from; p && p < end; p++) {
		if (*p == '@' && (!query || p < query || !to || to > query))
			to = p;
	}
	return to ? (struct fw_str){from + 1, (size_t)(to - from - 1)} : FW_STR_NONE;
}

void fw_dsn_show(struct fw_buf *out, const char *url)
{
	struct fw_str password = dsn_password_find(fw_str(url)), rest;
	const char *from = url, *end = url + strlen(url);
	size_t start = out->len;

	if (password.p)
		from = dsn_show_until(out, from, password.p) + password.len;
	fw_str_split((struct fw_str){from, (size_t)(end - from)}, '?', &rest);
	while (rest.p) {
		struct fw_str value, name = fw_str_split(fw_str_split(rest, '&', &rest), '=', &value);

		if (value.p && fw_str_ifind(name, FW_STR("pass")))
			from = dsn_show_until(out, from, value.p) + value.len;
	}
	fw_log_escape(out, (struct fw_str){from, (size_t)(end - from)});
	if (out->len - start > FW_DSN_SHOW_MAX) {
		out->len = start + fw_utf8_cut(out->p + start, out->len - start, FW_DSN_SHOW_MAX - 3);
		fw_buf_adds(out, "...");
	}
}
