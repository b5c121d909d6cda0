/* SPDX-License-Identifier: ISC */
/*
 * The front: the interface for callers (feedwheel/store.h). It finds the driver by the URL's
 * scheme, checks arguments, and adds what is the same on every engine; a driver never gets err NULL
 * or an empty batch. This file: the list of drivers, URLs, the store as a whole. Then feeds.c and
 * records.c.
 */
#include <assert.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/driver.h"
#include "store/dsn.h"
#include "store/reach.h"
#include "store/stream.h"

/* ---- drivers --------------------------------------------------------------------------------- */

/*
 * A driver and a comma if FW_HAVE_NAME is 1, nothing if it is 0. An undefined name does not
 * compile.
 */
#define BUILT_IN_0(driver)
#define BUILT_IN_1(driver) &(driver),
#define BUILT_IN_(have, driver) BUILT_IN_##have(driver)
#define BUILT_IN(have, driver) BUILT_IN_(have, driver)

const struct store_driver *const store_drivers[] = {
	&store_sqlite,
	&store_memory,
	BUILT_IN(FW_HAVE_POSTGRES, store_postgres) BUILT_IN(FW_HAVE_MYSQL, store_mysql)
		BUILT_IN(FW_HAVE_REDIS, store_redis) NULL,
};

/* The optional drivers: the name of the meson option, the library, the schemes. */
static const struct optional_drivers {
	const char *name, *library, *schemes[4];
} optional_drivers[] = {
	{"postgres", "libpq", {FW_STORE_POSTGRES_SCHEMES}},
	{"mysql", "libmariadb", {FW_STORE_MYSQL_SCHEMES}},
	{"redis", "hiredis", {FW_STORE_REDIS_SCHEMES}},
};

static bool schemes_have(const char *const *schemes, struct fw_str scheme)
{
	for (; *schemes; schemes++) {
		if (fw_str_eq(scheme, fw_str(*schemes)))
			return true;
	}
	return false;
}

static const struct store_driver *driver_by_scheme(struct fw_str scheme)
{
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		if (schemes_have((*d)->schemes, scheme))
			return *d;
	}
	return NULL;
}

void fw_store_preload(const char *url)
{
	struct fw_str rest;
	const struct store_driver *d = url ? driver_by_scheme(fw_str_split(fw_str(url), ':', &rest)) : NULL;

	if (d && d->preload)
		d->preload();
}

static bool driver_is_built_in(const char *name)
{
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		if (strcmp((*d)->name, name) == 0)
			return true;
	}
	return false;
}

const char *fw_store_driver_at(size_t i)
{
	return i < FW_N(store_drivers) - 1 ? store_drivers[i]->name : NULL;
}

const char *fw_store_absent_at(size_t i)
{
	for (size_t k = 0; k < FW_N(optional_drivers); k++) {
		if (!driver_is_built_in(optional_drivers[k].name) && i-- == 0)
			return optional_drivers[k].name;
	}
	return NULL;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

bool fw_store_is_file(const char *word)
{
	static const char *const END[] = {".db", ".sqlite", ".sqlite3"};
	struct fw_str s = fw_str(word);

	for (size_t i = 0; i < FW_N(END) && !fw_str_find(s, FW_STR(":")); i++) {
		if (fw_str_ends(s, fw_str(END[i])))
			return true;
	}
	return false;
}

bool fw_store_is_remote(const char *url)
{
	struct fw_str rest, scheme = fw_str_split(fw_str(url), ':', &rest);

	return !fw_str_eq(scheme, FW_STR("sqlite")) && !fw_str_eq(scheme, FW_STR("memory"));
}

void fw_store_url_show(const char *url, char *out, size_t cap)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_dsn_show(&b, url);
	(void)fw_str_copy(out, cap, b.rc ? FW_STR("?") : fw_buf_str(&b));
	fw_buf_finish(&b);
}

/* Report a scheme that no driver of this build has. */
static int scheme_refuse(const char *url, struct fw_str scheme, struct fw_err *err)
{
	char text[120];
	size_t at = 0;

	for (size_t i = 0; i < FW_N(optional_drivers); i++) {
		if (!schemes_have(optional_drivers[i].schemes, scheme))
			continue;
		fw_store_url_show(url, text, sizeof(text));
		return FW_ERR(err, FW_EUNSUP,
			"store \"%s\": this build has no %s driver"
			" (to have it, install %s and build with -D%s=enabled)",
			text, optional_drivers[i].name, optional_drivers[i].library, optional_drivers[i].name);
	}
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		for (const char *const *s = (*d)->schemes; *s; s++) {
			if (fw_snprintf(text + at, sizeof(text) - at, "%s%s:", at ? ", " : "", *s))
				at += strlen(text + at);
		}
	}
	/* the scheme only: a password may follow */
	return FW_ERR(
		err, FW_EINVAL, "store \"%.*s:...\": unknown scheme: this build knows %s", FW_STR_ARG(scheme), text);
}

/* ---- streams --------------------------------------------------------------------------------- */

static int stream_driver(const char *url, const struct store_driver **out, struct fw_err *err)
{
	struct fw_str rest, scheme = fw_str_split(fw_str(url), ':', &rest);

	*out = driver_by_scheme(scheme);
	if (!*out)
		return scheme_refuse(url, scheme, err);
	return (*out)->stream_append ? 0 : FW_ERR(err, FW_EINVAL, "%s has no streams", (*out)->name);
}

int store_stream_append(const struct redis_destination *s, struct fw_err *err)
{
	const struct store_driver *d;
	int rc = stream_driver(s->url, &d, err);

	return rc ? rc : d->stream_append(s, err);
}

int store_stream_check(const char *url, struct fw_err *err)
{
	const struct store_driver *d;

	return stream_driver(url, &d, err);
}

/* ---- the store as a whole -------------------------------------------------------------------- */

static int store_open_url(struct fw_store_config *c, struct store **out, struct fw_err *err)
{
	struct fw_str rest, scheme = fw_str_split(fw_str(c->url), ':', &rest);
	const struct store_driver *d = driver_by_scheme(scheme);

	if (!rest.p)
		return FW_ERR(err, FW_EINVAL, "store \"%s\": no scheme: write sqlite:%s", c->url, c->url);
	return d ? d->open(c, out, err) : scheme_refuse(c->url, scheme, err);
}

static int store_measure_first(struct store *st, struct fw_offset_clock *clock, struct fw_err *err)
{
	int64_t now_ms;
	int rc;

	st->clock = clock;
	rc = fw_store_clock((struct fw_store *)st, &now_ms, err);
	if (rc)
		st->driver->close(st);
	return rc;
}

int fw_store_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct fw_store_config c = *cfg;
	struct fw_buf file = FW_BUF_INIT(0);
	struct store *st = NULL;
	int rc;

	*out = NULL;
	err = STORE_ERR(err);
	if (!c.url || !*c.url)
		return FW_ERR(err, FW_EINVAL, "no store given (for example, sqlite:/path/feeds.db)");
	if (c.busy_timeout_ms <= 0)
		c.busy_timeout_ms = FW_STORE_BUSY_MS;
	if (fw_store_is_file(c.url)) {
		fw_buf_addf(&file, "sqlite:%s", c.url);
		c.url = file.p;
	}
	rc = file.rc ? fw_no_memory(err) : store_open_url(&c, &st, err);
	fw_buf_finish(&file);
	assert(rc || (st && st->driver)); /* a driver that succeeds gives a store */
	rc = rc ? rc : store_measure_first(st, c.clock, err);
	*out = rc ? NULL : (struct fw_store *)st;
	return rc;
}

void fw_store_close(struct fw_store *st)
{
	struct store *to = store_of(st);

	if (!to)
		return;
	fw_store_set_matcher(st, NULL);
	to->driver->close(to);
}

const char *fw_store_name(const struct fw_store *st)
{
	return ((const struct store *)st)->driver->name;
}

bool fw_store_has_index(const struct fw_store *st)
{
	return !((const struct store *)st)->driver->no_index;
}

static struct fw_offset_clock *store_offset_clock(const struct fw_store *st)
{
	struct store *to = store_of((struct fw_store *)(uintptr_t)st);

	return to->clock ? to->clock : &to->own_clock;
}

int fw_store_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	int64_t asked_ms = fw_mono_ms();
	int rc = STORE_CALL(st, clock, now_ms, STORE_ERR(err));

	if (!rc)
		fw_offset_clock_measure(store_offset_clock(st), *now_ms, asked_ms);
	return rc;
}

int64_t fw_store_now_ms(const struct fw_store *st)
{
	return fw_offset_clock_ms(store_offset_clock(st));
}

int64_t fw_store_ahead_ms(const struct fw_store *st)
{
	return fw_offset_clock_ahead_ms(store_offset_clock(st));
}

int fw_store_ping(struct fw_store *st, struct fw_err *err)
{
	int64_t now_ms;

	return fw_store_clock(st, &now_ms, err);
}

struct check_findings {
	void (*cb)(void *ctx, const char *finding);
	void *ctx;
};

static void finding_add(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	const struct check_findings *f = ctx;

	(void)name;
	(void)remedy;
	if (level == 2)
		f->cb(f->ctx, found);
}

int fw_store_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct check_findings f = {cb, ctx};

	return STORE_CALL(st, inspect, true, finding_add, &f, STORE_ERR(err));
}

int fw_store_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	return STORE_CALL(st, inspect, false, cb, ctx, STORE_ERR(err));
}

int fw_store_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	*changed = false;
	return STORE_CALL(st, wait, wake_fd, timeout_ms, changed, STORE_ERR(err));
}

int fw_store_stats(struct fw_store *st, struct fw_store_stats *out, struct fw_err *err)
{
	*out = (struct fw_store_stats){.next_due_ms = FW_NO_DATE, .size_bytes = -1};
	return STORE_CALL(st, stats, out, STORE_ERR(err));
}

int fw_store_prune(struct fw_store *st, struct fw_prune *p, struct fw_err *err)
{
	p->more = false;
	return STORE_CALL(st, prune, p, STORE_ERR(err));
}
