/* SPDX-License-Identifier: ISC */
/*
 * Miniflux' API: the entrance of its routes, whose account a request is for, and the routes that
 * are about the account.
 *
 * A right password is remembered for some minutes (password_cache.h). While a network is throttled
 * for wrong ones, no password from there is looked at, right or wrong, remembered or not; tokens
 * keep working, because they cannot be guessed.
 */
#include <jansson.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "http/auth/basic.h"
#include "http/auth/password_cache.h"
#include "http/readers/add.h"
#include "http/readers/miniflux/miniflux.h"

#define TOKEN_HEADER "X-Auth-Token"
#define NEVER "0001-01-01T00:00:00Z"

/* ---- before the body ------------------------------------------------------------------------- */

static struct fw_str miniflux_header(struct request *r, const char *name)
{
	return fw_str_trim(fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name)));
}

enum auth_verdict http_miniflux_may(struct request *r)
{
	struct fw_str name, password;
	char buffer[BASIC_MAX];

	if (http_account_is_foreign(r))
		return AUTH_ORIGIN;
	if (miniflux_header(r, TOKEN_HEADER).len)
		return AUTH_OK;
	if (!basic_read(miniflux_header(r, MHD_HTTP_HEADER_AUTHORIZATION), buffer, &name, &password))
		return AUTH_MISSING;
	return http_auth_is_limited(r) ? AUTH_LIMITED : AUTH_OK;
}

enum MHD_Result http_miniflux_refuse(struct request *r)
{
	return http_auth_refuse_account(r, "Basic realm=\"feedwheel\", charset=\"UTF-8\"",
		"access unauthorized: an account's name and password (Basic), or its token in " TOKEN_HEADER);
}

/* ---- whose request --------------------------------------------------------------------------- */

static bool miniflux_refused(struct reader *rd, enum auth_verdict v, enum MHD_Result *ok)
{
	rd->r->verdict = v;
	*ok = http_miniflux_refuse(rd->r);
	return false;
}

static bool miniflux_wrong(struct reader *rd, enum MHD_Result *ok)
{
	return miniflux_refused(rd, http_auth_is_limited(rd->r) ? AUTH_LIMITED : AUTH_WRONG, ok);
}

static bool miniflux_token_check(struct reader *rd, struct fw_str token, enum MHD_Result *ok)
{
	int rc = token.len < FW_ACCOUNT_TOKEN_MAX ? fw_account_token_find(rd->r->store, token, FW_ACCOUNT_TOKEN_CLIENT,
							    http_now_ms(rd->r), &rd->p.arena, &rd->account, &rd->err) :
						    FW_ENOTFOUND;

	if (rc == FW_ENOTFOUND) {
		http_auth_count_wrong(rd->r);
		return miniflux_wrong(rd, ok);
	}
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return !rc;
}

/* Set rd->account, if the password is remembered as right. FW_ENOTFOUND: it is not. */
static int miniflux_password_known(struct reader *rd, struct fw_str name, struct fw_str password)
{
	int rc = fw_account_get(rd->r->store, name, &rd->p.arena, &rd->account, &rd->err);

	if (rc)
		return rc;
	return password_cache_has(
		       rd->r->thread->h->passwords, name, password, rd->account.password_mark, fw_mono_ms()) ?
		0 :
		FW_ENOTFOUND;
}

/*
 * With the gate taken: others may have checked the same password meanwhile. If it changes between
 * the two calls, the mark is of the old one, and nothing is remembered for the new one.
 */
static int miniflux_password_check(struct reader *rd, struct fw_str name, struct fw_str password)
{
	int64_t id;
	int rc = miniflux_password_known(rd, name, password);

	if (rc != FW_ENOTFOUND)
		return rc;
	rc = http_auth_login(rd->r, name, password, &id, &rd->err);
	if (rc)
		return rc;
	if (id != rd->account.id) /* removed and added again meanwhile */
		return FW_ENOTFOUND;
	password_cache_add(rd->r->thread->h->passwords, name, password, rd->account.password_mark, fw_mono_ms());
	return 0;
}

static bool miniflux_basic_check(struct reader *rd, enum MHD_Result *ok)
{
	struct http_gate *gate = &rd->r->thread->h->logins;
	struct fw_str name, password;
	char buffer[BASIC_MAX];
	int rc;

	if (!basic_read(miniflux_header(rd->r, MHD_HTTP_HEADER_AUTHORIZATION), buffer, &name, &password))
		return miniflux_refused(rd, AUTH_MISSING, ok);
	rc = miniflux_password_known(rd, name, password);
	if (rc == FW_ENOTFOUND) {
		switch (http_gate_enter(gate, rd->r)) {
		case GATE_LATER:
			*ok = MHD_YES;
			return false;
		case GATE_FULL:
			*ok = http_problem(
				rd->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", "too many logins wait to be checked");
			return false;
		case GATE_TAKEN:
			break;
		}
		rc = miniflux_password_check(rd, name, password);
		http_gate_leave(gate);
	}
	if (rc == FW_ELIMIT)
		return miniflux_refused(rd, AUTH_LIMITED, ok);
	if (rc == FW_ENOTFOUND)
		return miniflux_wrong(rd, ok);
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return !rc;
}

static bool miniflux_authorize(struct reader *rd, enum MHD_Result *ok)
{
	struct fw_str token = miniflux_header(rd->r, TOKEN_HEADER);

	return token.len ? miniflux_token_check(rd, token, ok) : miniflux_basic_check(rd, ok);
}

static bool miniflux_enter(struct reader *rd, enum MHD_Result *ok)
{
	return miniflux_authorize(rd, ok) && http_account_may(rd->r, rd->account.id, ok) &&
		reader_form_read(rd, FW_STR(""), ok);
}

enum MHD_Result http_miniflux(struct request *r)
{
	return reader_serve(r, READER_MINIFLUX, miniflux_enter);
}

/* ---- bodies and responses -------------------------------------------------------------------- */

enum MHD_Result miniflux_done(struct reader *rd, int rc)
{
	struct fw_buf none = FW_BUF_INIT(0);

	return rc ? http_store_failed(rd->r, rc, &rd->err) :
		    http_send(rd->r, MHD_HTTP_NO_CONTENT, "application/json", &none);
}

enum MHD_Result miniflux_missing(struct reader *rd, const char *what)
{
	return http_problem(rd->r, MHD_HTTP_NOT_FOUND, "not_found", "the account has no such %s", what);
}

json_t *miniflux_body(struct reader *rd, enum MHD_Result *ok)
{
	json_t *o = http_json_body(rd->r, ok);

	if (!o || json_is_object(o))
		return o;
	json_decref(o);
	*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "the request body must be a JSON object");
	return NULL;
}

bool miniflux_text(
	struct reader *rd, const json_t *o, const char *name, size_t max, struct fw_str *out, enum MHD_Result *ok)
{
	const json_t *v = json_object_get(o, name);

	*out = FW_STR_NONE;
	if (!v || json_is_null(v))
		return true;
	*out = fw_str_trim((struct fw_str){json_string_value(v), json_string_length(v)});
	if (json_is_string(v) && fw_utf8_fits(*out, max))
		return true;
	*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "%s: must be text of at most %zu bytes", name, max);
	return false;
}

void miniflux_time(struct fw_json *j, const char *key, int64_t at_ms)
{
	if (at_ms)
		fw_json_time(j, key, at_ms);
	else
		fw_json_cstr(j, key, NEVER);
}

/* ---- the account ----------------------------------------------------------------------------- */

/* Settings that feedwheel does not have are as Miniflux has them at first. */
enum MHD_Result miniflux_me(struct reader *rd)
{
	static const char *const EMPTY[] = {"stylesheet", "custom_js", "external_font_hosts", "google_id",
		"openid_connect_id", "block_filter_entry_rules", "keep_filter_entry_rules"};
	static const char *const TEXT[][2] = {{"theme", "system_serif"}, {"language", "en_US"}, {"timezone", "UTC"},
		{"entry_sorting_direction", "asc"}, {"entry_sorting_order", "published_at"}, {"gesture_nav", "tap"},
		{"display_mode", "standalone"}, {"default_home_page", "unread"},
		{"categories_sorting_order", "unread_count"}};
	struct fw_json *j = &rd->p.j;

	fw_json_object(j, NULL);
	fw_json_int(j, "id", rd->account.id);
	fw_json_str(j, "username", rd->account.name);
	fw_json_bool(j, "is_admin", rd->account.admin);
	for (size_t i = 0; i < FW_N(TEXT); i++)
		fw_json_cstr(j, TEXT[i][0], TEXT[i][1]);
	for (size_t i = 0; i < FW_N(EMPTY); i++)
		fw_json_cstr(j, EMPTY[i], "");
	fw_json_int(j, "entries_per_page", MINIFLUX_LIMIT);
	fw_json_int(j, "default_reading_speed", MINIFLUX_WORDS_PER_MINUTE);
	fw_json_int(j, "cjk_reading_speed", 500);
	fw_json_double(j, "media_playback_rate", 1);
	fw_json_bool(j, "keyboard_shortcuts", true);
	fw_json_bool(j, "show_reading_time", true);
	fw_json_bool(j, "entry_swipe", true);
	fw_json_bool(j, "mark_read_on_view", true);
	fw_json_bool(j, "mark_read_on_media_player_completion", false);
	if (rd->account.used_ms)
		fw_json_time(j, "last_login_at", rd->account.used_ms);
	else
		fw_json_null(j, "last_login_at");
	fw_json_end(j);
	return reader_json(rd, 0);
}

static enum MHD_Result miniflux_forbidden(struct reader *rd, const char *words)
{
	return http_problem(rd->r, MHD_HTTP_FORBIDDEN, "permission_denied", "%s", words);
}

enum MHD_Result miniflux_users(struct reader *rd)
{
	return miniflux_forbidden(rd, "accounts are managed with `feedwheel user`; your own is at v1/me");
}

/* Its own account, by number or name. Whether others exist is nobody's business. */
enum MHD_Result miniflux_user(struct reader *rd)
{
	struct fw_str who = rd->r->rest;
	int64_t id;

	if (fw_str_eq(who, FW_STR("integrations/status")))
		return miniflux_integrations(rd);
	if (fw_str_eq(who, rd->account.name) || (fw_str_int(who, &id) && id == rd->account.id))
		return miniflux_me(rd);
	return miniflux_users(rd);
}

enum MHD_Result miniflux_user_read(struct reader *rd)
{
	const struct fw_stream s = {.account_id = rd->account.id};

	return rd->r->id == rd->account.id ? miniflux_done(rd, fw_account_mark_read(rd->r->store, &s, 0, 0, &rd->err)) :
					     miniflux_users(rd);
}

enum MHD_Result miniflux_keys(struct reader *rd)
{
	return miniflux_forbidden(rd, "tokens are made and removed with `feedwheel user token`");
}

enum MHD_Result miniflux_integrations(struct reader *rd)
{
	fw_json_object(&rd->p.j, NULL);
	fw_json_bool(&rd->p.j, "has_integrations", false);
	fw_json_end(&rd->p.j);
	return reader_json(rd, 0);
}

/* Entries are all accounts': retention removes them. */
enum MHD_Result miniflux_flush(struct reader *rd)
{
	struct fw_buf none = FW_BUF_INIT(0);

	return http_send(rd->r, MHD_HTTP_ACCEPTED, "application/json", &none);
}

enum MHD_Result miniflux_import(struct reader *rd)
{
	struct fw_buf words = FW_BUF_INIT(0);
	size_t n, refused_n;
	enum MHD_Result ok = MHD_NO;

	if (!reader_opml_add(rd, &n, &refused_n, &ok))
		return ok;
	fw_buf_addf(&words, "%s imported", FW_COUNT_OF((int64_t)n, "feed", "feeds"));
	if (refused_n)
		fw_buf_addf(&words, " (%s refused: invalid, or with another login)",
			FW_COUNT_OF((int64_t)refused_n, "address was", "addresses were"));
	fw_json_object(&rd->p.j, NULL);
	fw_json_str(&rd->p.j, "message", fw_buf_str(&words));
	fw_json_end(&rd->p.j);
	fw_buf_finish(&words);
	return reader_json_status(rd, MHD_HTTP_CREATED, 0);
}

/* ---- the server ------------------------------------------------------------------------------ */

/* The version of the API; the members about the build are texts, because clients show them. */
enum MHD_Result miniflux_version(struct reader *rd)
{
	struct fw_json *j = &rd->p.j;
	struct utsname system = {.machine = "unknown"};
	char commit[100];

	(void)uname(&system);
	(void)fw_snprintf(commit, sizeof(commit), "feedwheel %s", fw_version());
	fw_json_object(j, NULL);
	fw_json_cstr(j, "version", MINIFLUX_VERSION);
	fw_json_str(j, "commit", fw_str(commit));
	fw_json_cstr(j, "build_date", "unknown");
	fw_json_cstr(j, "go_version", "none");
	fw_json_cstr(j, "compiler", "C " __VERSION__);
	fw_json_cstr(j, "arch", system.machine);
	fw_json_cstr(j, "os", "linux");
	fw_json_end(j);
	return reader_json(rd, 0);
}

static enum MHD_Result miniflux_word(struct request *r, const char *word)
{
	struct fw_buf out = FW_BUF_INIT(0);

	fw_buf_adds(&out, word);
	return http_send(r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
}

enum MHD_Result http_miniflux_health(struct request *r)
{
	return miniflux_word(r, "OK");
}

enum MHD_Result http_miniflux_version(struct request *r)
{
	return miniflux_word(r, MINIFLUX_VERSION);
}
