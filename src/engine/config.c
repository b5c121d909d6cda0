/* SPDX-License-Identifier: ISC */
/*
 * A configuration: the value of each setting in config_table.c, read from a default, a file or a
 * text, checked, and written as text. No setting is named here, except those with rules of their
 * own.
 *
 * Precedence, lowest first: the row's default, the configuration file, FEEDWHEEL_STORE, the command
 * line.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/offset_clock.h"
#include "base/suggest.h"
#include "base/url.h"
#include "base/str.h"
#include "engine/callback_url.h"
#include "engine/config_text.h"
#include "engine/runner_rules.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define URL_MAX ((size_t)4096)

/* ---- values -------------------------------------------------------------- */

static const struct {
	const char *name;
	int shift;
} UNIT[] = {
	{"", 0},
	{"b", 0},
	{"k", 10},
	{"kb", 10},
	{"kib", 10},
	{"m", 20},
	{"mb", 20},
	{"mib", 20},
	{"g", 30},
	{"gb", 30},
	{"gib", 30},
};

static bool size_parse(struct fw_str s, int64_t *out)
{
	size_t n = 0;
	int64_t v;

	while (n < s.len && fw_is_digit((unsigned char)s.p[n]))
		n++;
	if (n == 0 || !fw_str_int(fw_str_sub(s, 0, n), &v))
		return false;
	s = fw_str_trim(fw_str_sub(s, n, s.len));
	for (size_t i = 0; i < FW_N(UNIT); i++) {
		if (fw_str_ieq(s, fw_str(UNIT[i].name)))
			return !__builtin_mul_overflow(v, INT64_C(1) << UNIT[i].shift, out);
	}
	return false;
}

static bool bool_parse(struct fw_str s, bool *out)
{
	static const char *const WORD[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < FW_N(WORD); i++) {
		if (fw_str_ieq(s, fw_str(WORD[i]))) {
			*out = i & 1;
			return true;
		}
	}
	return false;
}

static bool choice_is_valid(const char *choices, struct fw_str word)
{
	struct fw_str rest = fw_str(choices);

	while (rest.p) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), word))
			return word.len > 0;
	}
	return false;
}

/* A number in the form of the file, in the largest unit that divides it. */
static void setting_number_text(struct fw_buf *b, enum fw_setting_type type, int64_t v)
{
	static const struct {
		enum fw_setting_type type;
		int64_t n;
		const char *name;
	} PART[] = {
		{FW_TYPE_DURATION, FW_DAY_MS, "d"},
		{FW_TYPE_DURATION, FW_HOUR_MS, "h"},
		{FW_TYPE_DURATION, FW_MINUTE_MS, "m"},
		{FW_TYPE_DURATION, FW_SECOND_MS, "s"},
		{FW_TYPE_DURATION, 1, "ms"},
		{FW_TYPE_SIZE, INT64_C(1) << 30, "GiB"},
		{FW_TYPE_SIZE, INT64_C(1) << 20, "MiB"},
		{FW_TYPE_SIZE, 1024, "KiB"},
	};

	for (size_t i = 0; v && i < FW_N(PART); i++) {
		if (PART[i].type == type && v % PART[i].n == 0) {
			fw_buf_addf(b, "%lld%s", (long long)(v / PART[i].n), PART[i].name);
			return;
		}
	}
	fw_buf_addf(b, "%lld", (long long)v);
}

static int setting_refuse(const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	struct fw_buf allowed = FW_BUF_INIT(200);
	int rc;

	assert(s->type != FW_TYPE_STRING || s->choices); /* any other string is allowed */
	if (s->type == FW_TYPE_BOOL) {
		fw_buf_adds(&allowed, "yes or no");
	} else if (s->choices) {
		fw_buf_addf(&allowed, "one of: %s", s->choices);
	} else {
		setting_number_text(&allowed, s->type, s->min);
		fw_buf_adds(&allowed, " to ");
		setting_number_text(&allowed, s->type, s->max);
		if (s->type == FW_TYPE_DURATION)
			fw_buf_adds(&allowed, " (a number of ms, or 250ms, 30s, 15m, 2h, 1d)");
		if (s->type == FW_TYPE_SIZE)
			fw_buf_adds(&allowed, " (a number of bytes, or 64k, 16MiB)");
	}
	rc = fw_err_set(err, FW_EINVAL, "%s: %s = '%.*s' is not allowed: %s", where, s->name,
		FW_STR_ARG(fw_str_sub(value, 0, 60)), allowed.p ? allowed.p : "");
	fw_buf_finish(&allowed);
	return rc;
}

/* Settings of older versions, and what to do instead. */
static const struct {
	const char *name, *instead;
} SETTINGS_GONE[] = {
	{"machine_id", "the store now gives each server ids that no other has: remove it"},
};

static int setting_unknown(const char *name, const char *where, struct fw_err *err)
{
	struct fw_suggest suggest = {.word = fw_str(name)};
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (size_t i = 0; i < FW_N(SETTINGS_GONE); i++) {
		if (fw_edit_distance(fw_str(name), fw_str(SETTINGS_GONE[i].name)) == 0)
			return fw_err_set(err, FW_EINVAL, "%s: there is no %s any more: %s", where,
				SETTINGS_GONE[i].name, SETTINGS_GONE[i].instead);
	}
	for (size_t i = 0; i < n; i++)
		fw_suggest_offer(&suggest, s[i].name);
	if (suggest.best)
		return fw_err_set(
			err, FW_EINVAL, "%s: unknown setting '%.60s': did you mean '%s'?", where, name, suggest.best);
	return fw_err_set(err, FW_EINVAL, "%s: unknown setting '%.60s': see 'feedwheel help settings'", where, name);
}

/*
 * ---- store_file: keeps a password out of the command line and the shared configuration file ----
 */

/*
 * Only the owner may read the file. A file of root may be readable by its group, as that of a
 * service is. libpq applies the same rules to keys and password files.
 */
static int store_file_check(const char *path, const struct stat *st, struct fw_err *err)
{
	if (!S_ISREG(st->st_mode))
		return fw_err_set(err, FW_EINVAL, "store_file: %s is not a regular file", path);
	if (st->st_mode & (st->st_uid == 0 ? 037 : 077))
		return fw_err_set(err, FW_EINVAL,
			"store_file: %s: other users may read it (mode %04o), and it may hold a password (chmod 600 "
			"it)",
			path, (unsigned)st->st_mode & 07777);
	return 0;
}

/*
 * The file's first line, malloc'd. Errors: FW_EINVAL unreadable, empty, or readable by others;
 * FW_ENOMEM.
 */
static int store_file_read(const char *path, char **url, struct fw_err *err)
{
	/* O_NONBLOCK: opening a FIFO without a writer would block */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[URL_MAX + 1];
	struct fw_str line, rest;
	struct stat st = {0};
	ssize_t len = 0;
	int rc = 0;

	*url = NULL;
	if (fd < 0 || fstat(fd, &st))
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	rc = rc ? rc : store_file_check(path, &st, err);
	/* a regular file is read in one call */
	if (!rc && (len = read(fd, text, sizeof(text))) < 0)
		rc = fw_err_set(err, FW_EINVAL, "store_file: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	line = fw_str_trim(fw_str_split((struct fw_str){text, (size_t)len}, '\n', &rest));
	if (!line.len)
		rc = fw_err_set(
			err, FW_EINVAL, "store_file: %s: the first line is empty (write the store's URL there)", path);
	else if (line.len >= URL_MAX || memchr(line.p, 0, line.len))
		rc = fw_err_set(err, FW_EINVAL,
			"store_file: %s: the first line is not a URL (at most %zu bytes, without NUL)", path,
			URL_MAX - 1);
	else if (!(*url = fw_str_dup(line)))
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* ---- setting ------------------------------------------------------------- */

/* "feeds.db" means sqlite:feeds.db. */
static int store_add_scheme(struct fw_config *c, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (!c->store || !fw_store_is_file(c->store))
		return 0;
	fw_buf_addf(&b, "sqlite:%s", c->store);
	free(c->store);
	c->store = fw_buf_take(&b, NULL);
	return c->store ? 0 : fw_err_set(err, FW_ENOMEM, "out of memory");
}

/* The later of store and store_file sets the store. */
static int store_setting_apply(struct fw_config *c, const struct fw_setting *s, struct fw_err *err)
{
	char *url;
	int rc;

	if (s->offset == offsetof(struct fw_config, store)) {
		free(c->store_file);
		c->store_file = NULL;
		return store_add_scheme(c, err);
	}
	if (s->offset != offsetof(struct fw_config, store_file) || !c->store_file)
		return 0;
	rc = store_file_read(c->store_file, &url, err);
	if (rc)
		return rc;
	free(c->store);
	c->store = url;
	return store_add_scheme(c, err);
}

static int setting_set(
	struct fw_config *c, const struct fw_setting *s, struct fw_str value, const char *where, struct fw_err *err)
{
	void *at = (char *)c + s->offset;
	int64_t v = 0;
	bool ok;

	assert(s->offset < sizeof(*c));
	switch (s->type) {
	case FW_TYPE_BOOL:
		return bool_parse(value, at) ? 0 : setting_refuse(s, value, where, err);
	case FW_TYPE_STRING: {
		char *text = NULL;

		if (s->choices && !choice_is_valid(s->choices, value))
			return setting_refuse(s, value, where, err);
		if (value.len) {
			text = fw_str_dup(value);
			if (!text)
				return fw_err_set(err, FW_ENOMEM, "out of memory");
		}
		free(*(char **)at);
		*(char **)at = text;
		return store_setting_apply(c, s, err);
	}
	case FW_TYPE_DURATION:
		ok = fw_duration_parse(value, 1, &v);
		break;
	case FW_TYPE_SIZE:
		ok = size_parse(value, &v);
		break;
	default:
		ok = fw_str_int(value, &v);
		break;
	}
	if (!ok || v < s->min || v > s->max)
		return setting_refuse(s, value, where, err);
	*(int64_t *)at = v;
	return 0;
}

int fw_config_set(struct fw_config *c, const char *name, const char *value, const char *where, struct fw_err *err)
{
	const struct fw_setting *s = fw_config_find(name);

	return s ? setting_set(c, s, fw_str_trim(fw_str(value)), where, err) : setting_unknown(name, where, err);
}

char *fw_config_get(const struct fw_config *c, const char *name)
{
	const struct fw_setting *s = fw_config_find(name);
	const void *at = s ? (const char *)c + s->offset : NULL;
	struct fw_buf b = FW_BUF_INIT(0);

	if (!s)
		return NULL;
	if (s->type == FW_TYPE_STRING)
		return fw_str_dup(fw_str(*(char *const *)at ? *(char *const *)at : ""));
	if (s->type == FW_TYPE_BOOL)
		fw_buf_adds(&b, *(const bool *)at ? "yes" : "no");
	else
		setting_number_text(&b, s->type, *(const int64_t *)at);
	return fw_buf_take(&b, NULL);
}

/* ---- a whole configuration ----------------------------------------------- */

/*
 * "$VAR/tail", else "$HOME/fallback/tail". NULL: no home, or out of memory. A relative $VAR is
 * ignored (XDG).
 */
static char *config_xdg_path(const char *prefix, const char *var, const char *fallback, const char *tail)
{
	const char *dir = getenv(var), *home = getenv("HOME");
	struct fw_buf b = FW_BUF_INIT(0);

	if (dir && dir[0] == '/')
		fw_buf_addf(&b, "%s%s/%s", prefix, dir, tail);
	else if (home && home[0] == '/')
		fw_buf_addf(&b, "%s%s/%s/%s", prefix, home, fallback, tail);
	return fw_buf_take(&b, NULL);
}

int fw_config_create(struct fw_config **out, struct fw_err *err)
{
	struct fw_config *c = calloc(1, sizeof(*c));
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);
	int rc = 0;

	*out = NULL;
	if (!c)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	c->store_clock = calloc(1, sizeof(*c->store_clock));
	if (!c->store_clock)
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < n; i++)
		rc = setting_set(c, &s[i], fw_str(s[i].initial), "default", err);
	if (rc) {
		fw_config_destroy(c);
		return rc;
	}
	c->store = config_xdg_path("sqlite:", "XDG_DATA_HOME", ".local/share", "feedwheel/feedwheel.db");
	*out = c;
	return 0;
}

void fw_config_destroy(struct fw_config *c)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	if (!c)
		return;
	for (size_t i = 0; i < n; i++) {
		if (s[i].type == FW_TYPE_STRING)
			free(*(char **)((char *)c + s[i].offset));
	}
	free(c->file);
	free(c->store_clock);
	free(c);
}

int64_t fw_config_now_ms(const struct fw_config *c)
{
	return fw_offset_clock_ms(c->store_clock);
}

/* ---- to another process -------------------------------------------------- */

/*
 * store_file is not passed on: the other process may be unable to read it, and store has its
 * content.
 */
static bool setting_is_passed(const struct fw_setting *s)
{
	return s->offset != offsetof(struct fw_config, store_file);
}

void config_write(const struct fw_config *c, struct fw_buf *b)
{
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);

	for (size_t i = 0; i < n; i++) {
		char *value = setting_is_passed(&s[i]) ? fw_config_get(c, s[i].name) : fw_str_dup(FW_STR(""));

		if (value)
			fw_buf_add(b, value, strlen(value) + 1);
		else
			b->rc = FW_ENOMEM;
		free(value);
	}
}

int config_read(struct fw_str text, struct fw_config **out, struct fw_err *err)
{
	struct fw_config *c;
	size_t n;
	const struct fw_setting *s = fw_config_settings(&n);
	int rc = fw_config_create(&c, err);

	*out = NULL;
	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		const char *end = text.len ? memchr(text.p, 0, text.len) : NULL;

		if (!end)
			rc = fw_err_set(err, FW_EINVAL, "the configuration ends before setting %s", s[i].name);
		else if (setting_is_passed(&s[i]))
			rc = setting_set(c, &s[i], fw_str(text.p), "handed", err);
		if (end)
			text = fw_str_sub(text, (size_t)(end - text.p) + 1, text.len);
	}
	if (rc)
		fw_config_destroy(c);
	else
		*out = c;
	return rc;
}

/* ---- a file -------------------------------------------------------------- */

/* A comment starts with a # at the start of the line or after white space. */
static struct fw_str comment_strip(struct fw_str s, bool at_start)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '#' && (i ? fw_is_space((unsigned char)s.p[i - 1]) : at_start))
			s.len = i;
	}
	return fw_str_trim(s);
}

/*
 * Appends the text between the quotes that s starts with to out. In double quotes \" and \\ stand
 * for " and \. Single quotes have no escapes.
 */
static int value_unquote(struct fw_str s, const char *name, const char *where, struct fw_buf *out, struct fw_err *err)
{
	char quote = s.p[0];
	size_t i = 1;
	struct fw_str behind;

	assert(s.len && (quote == '"' || quote == '\''));
	for (; i < s.len && s.p[i] != quote; i++) {
		if (s.p[i] == '\\' && quote == '"' && i + 1 < s.len && (s.p[i + 1] == '"' || s.p[i + 1] == '\\'))
			i++;
		fw_buf_addc(out, s.p[i]);
	}
	if (i >= s.len)
		return fw_err_set(
			err, FW_EINVAL, "%s: %s: the opening %c of the value is not closed", where, name, quote);
	behind = comment_strip(fw_str_sub(s, i + 1, s.len), false);
	if (behind.len)
		return fw_err_set(err, FW_EINVAL, "%s: %s: '%.*s' follows the closing %c%s", where, name,
			FW_STR_ARG(fw_str_sub(behind, 0, 60)), quote,
			quote == '"' ? " (inside the quotes write \\\")" : "");
	return out->rc ? fw_err_set(err, FW_ENOMEM, "out of memory") : 0;
}

/*
 * Reads one line: blank, "# comment", or "name = value", with an optional " # comment" after it.
 * Quotes around a value are removed.
 */
static int config_line_read(struct fw_config *c, struct fw_str line, const char *where, struct fw_err *err)
{
	const struct fw_setting *s;
	struct fw_buf plain = FW_BUF_INIT(0);
	struct fw_str all, name, value;
	char word[80];
	int rc = 0;

	if (line.len && memchr(line.p, 0, line.len))
		return fw_err_set(err, FW_EINVAL, "%s: a NUL byte: not a text file", where);
	all = fw_str_split(line, '=', &value);
	name = comment_strip(all, true);
	if (name.len < fw_str_trim(all).len) /* the = belongs to a comment */
		value = FW_STR_NONE;
	if (!name.len && !value.p)
		return 0;
	if (!value.p)
		return fw_err_set(err, FW_EINVAL, "%s: '%.*s' does not have the form: name = value", where,
			FW_STR_ARG(fw_str_sub(name, 0, 60)));
	fw_str_copy(word, sizeof(word), name);
	s = fw_config_find(word);
	if (!s)
		return setting_unknown(word, where, err);
	all = fw_str_trim(value);
	if (all.len && (all.p[0] == '"' || all.p[0] == '\'')) {
		rc = value_unquote(all, s->name, where, &plain, err);
		value = plain.len ? fw_buf_str(&plain) : FW_STR("");
	} else {
		value = comment_strip(value, false);
	}
	rc = rc ? rc : setting_set(c, s, value, where, err);
	fw_buf_finish(&plain);
	return rc;
}

static int config_file_load(struct fw_config *c, const char *path, FILE *f, struct fw_err *err)
{
	struct fw_buf text = FW_BUF_INIT(FILE_MAX_BYTES);
	struct fw_str rest;
	char where[300];
	int rc = fw_buf_read(&text, f);

	if (rc == FW_EIO)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", path, strerror(errno));
	else if (rc)
		rc = fw_err_set(err, rc, "%s: the configuration file is larger than 1 MiB", path);
	rest = fw_buf_str(&text);
	for (unsigned n = 1; !rc && rest.p; n++) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);

		(void)fw_snprintf(where, sizeof(where), "%s:%u", path, n);
		rc = config_line_read(c, line, where, err);
	}
	fw_buf_finish(&text);
	return rc;
}

/* Opens the first default file that exists. NULL: none does. */
static FILE *config_default_open(char **path)
{
	FILE *f = NULL;

	*path = config_xdg_path("", "XDG_CONFIG_HOME", ".config", "feedwheel.conf");
	if (*path)
		f = fopen(*path, "re");
	if (!f && (!*path || errno == ENOENT || errno == ENOTDIR)) {
		free(*path);
		*path = fw_str_dup(FW_STR("/etc/feedwheel.conf"));
		f = *path ? fopen(*path, "re") : NULL;
	}
	return f;
}

int fw_config_load(struct fw_config *c, const char *path, struct fw_err *err)
{
	char *name = NULL;
	FILE *f;
	int rc = 0;

	if (path) {
		f = fopen(path, "re");
		name = fw_str_dup(fw_str(path));
	} else {
		f = config_default_open(&name);
	}
	if (!name)
		rc = fw_err_set(err, FW_ENOMEM, "out of memory");
	else if (!f && path)
		rc = fw_err_set(err, FW_ENOTFOUND, "%s: %s", path, strerror(errno));
	else if (!f && errno != ENOENT && errno != ENOTDIR)
		rc = fw_err_set(err, FW_EINVAL, "%s: %s", name, strerror(errno));
	else if (f)
		rc = config_file_load(c, name, f, err);
	if (f && !rc) {
		free(c->file);
		c->file = name;
		name = NULL;
	}
	if (f)
		fclose(f);
	free(name);
	return rc;
}

static int settings_conflict(const char *a, int64_t a_ms, const char *b, int64_t b_ms, struct fw_err *err)
{
	char x[FW_RFC3339_MAX], y[FW_RFC3339_MAX];

	assert(a_ms > b_ms);
	return fw_err_set(err, FW_EINVAL, "%s (%s) is larger than %s (%s): lower the first or raise the second", a,
		fw_duration_text(x, a_ms), b, fw_duration_text(y, b_ms));
}

/* Host names only: they are compared with the Host header without its port. */
static int host_names_check(const char *names, struct fw_err *err)
{
	struct fw_str rest = fw_str(names);

	while (rest.p) {
		struct fw_str name = fw_str_trim(fw_str_split(rest, ',', &rest));

		for (size_t i = 0; i < name.len; i++) {
			if (!fw_is_alnum((unsigned char)name.p[i]) && !strchr("-._", name.p[i]))
				return fw_err_set(err, FW_EINVAL,
					"serve_host_names: '%.*s' is not a host name: write feeds.lan, without"
					" http:// and without a port, and separate names by commas",
					FW_STR_ARG(fw_str_sub(name, 0, 80)));
		}
	}
	return 0;
}

/* Browsers compare the text: it is what they send as Origin. */
static int cors_origin_check(const char *text, struct fw_err *err)
{
	struct fw_buf origin = FW_BUF_INIT(0);
	bool good = strcmp(text, "*") == 0 ||
		(!fw_url_origin(fw_str(text), &origin) && fw_str_eq(fw_str(text), fw_buf_str(&origin)));

	fw_buf_finish(&origin);
	return good ? 0 :
		      fw_err_set(err, FW_EINVAL,
			      "serve_cors_origin = %.100s: not an origin: write it like https://example.org or"
			      " https://example.org:8443, without a path",
			      text);
}

static int hub_url_check(const char *text, struct fw_err *err)
{
	struct fw_str url = fw_str(text);

	if (fw_is_http(url) && !fw_url_has_control(url) && fw_url_port(url) > 0)
		return 0;
	return fw_err_set(err, FW_EINVAL,
		"feeds_hub_url = %.100s: not the URL of a hub: write it like https://hub.example.org/", text);
}

int fw_config_check(const struct fw_config *c, struct fw_err *err)
{
	if (!c->store)
		return fw_err_set(
			err, FW_EINVAL, "no store: set HOME, store, or FEEDWHEEL_STORE (--store sqlite:PATH)");
	if (c->interval_min_ms > c->interval_ms)
		return settings_conflict("interval_min_ms", c->interval_min_ms, "interval_ms", c->interval_ms, err);
	if (c->interval_ms > c->interval_max_ms)
		return settings_conflict("interval_ms", c->interval_ms, "interval_max_ms", c->interval_max_ms, err);
	if (c->connect_timeout_ms > c->total_timeout_ms)
		return settings_conflict(
			"connect_timeout_ms", c->connect_timeout_ms, "total_timeout_ms", c->total_timeout_ms, err);
	if (host_names_check(c->serve_host_names, err) || runner_list_check(c->order_programs, true, err) ||
		runner_list_check(c->order_files, false, err))
		return FW_EINVAL;
	if (c->serve_cors_origin && cors_origin_check(c->serve_cors_origin, err))
		return FW_EINVAL;
	if (c->feeds_hub_url && hub_url_check(c->feeds_hub_url, err))
		return FW_EINVAL;
	if (c->websub_url) {
		struct fw_buf base = FW_BUF_INIT(0);
		int rc = callback_base(c->websub_url, &base, err);

		fw_buf_finish(&base);
		return rc;
	}
	return 0;
}
