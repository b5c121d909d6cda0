/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: login, and whose token a request has.
 *
 * Each login makes a token of its own, because clients on several machines log in under one name
 * and none may end the session of another. Many clients log in at each start. So the tokens of
 * logins are limited, for each client program and in all, and the least recently used one goes.
 *
 * Checking a password is slow on purpose. One is checked at a time; other logins wait outside the
 * pool, and a limited number of them. Wrong passwords and wrong tokens are counted for the client's
 * network. While it is throttled, no login is tried, but valid tokens keep working: they cannot be
 * guessed.
 */
#include "base/clock.h"
#include "base/log.h"
#include "api/token.h"
#include "http/readers/greader/greader.h"

#define ARENA_BYTES ((size_t)1 << 20)
#define SOURCE_MAX 20 /* bytes of a client's name in its token's name */
#define CHALLENGE "GoogleLogin realm=\"feedwheel\""
#define LOGIN_PREFIX "login-"
#define LOGINS_OF_SOURCE_MAX 16
#define LOGINS_MAX 64
#define LOGIN_RANDOM 8 /* hexadecimal digits */
#define T_DIGITS 32

/* ---- before the body ------------------------------------------------------------------------- */

/* The token in "GoogleLogin auth=TOKEN"; absent: another or none. */
static struct fw_str login_presented(struct request *r)
{
	struct fw_str rest,
		header = fw_str_trim(
			fw_str(MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION)));

	if (!fw_str_ieq(fw_str_split(header, ' ', &rest), FW_STR("GoogleLogin")))
		return FW_STR_NONE;
	rest = fw_str_trim(rest);
	return fw_str_istarts(rest, FW_STR("auth=")) ? fw_str_sub(rest, 5, rest.len) : FW_STR_NONE;
}

enum auth_verdict http_greader_may(struct request *r)
{
	if (http_account_is_foreign(r))
		return AUTH_ORIGIN;
	if (r->route->scope == SCOPE_LOGIN)
		return http_auth_is_limited(r) ? AUTH_LIMITED : AUTH_OK;
	/* a token may be in a form too: T */
	return login_presented(r).p || r->route->body_max || r->route->scope == SCOPE_FEVER ? AUTH_OK : AUTH_MISSING;
}

static enum MHD_Result login_refuse(struct request *r, const char *words)
{
	r->challenge = CHALLENGE;
	return http_problem(r, MHD_HTTP_UNAUTHORIZED, "unauthenticated", "%s", words);
}

enum MHD_Result http_greader_refuse(struct request *r)
{
	return http_auth_refuse_account(
		r, CHALLENGE, "login required: the header 'Authorization: GoogleLogin auth=...'");
}

/* ---- tokens of requests ---------------------------------------------------------------------- */

/*
 * The token T of edits. It protects cookies, which this API does not use, so it depends on the
 * login's token alone: it stays valid after a restart and on each of several servers.
 */
static void login_edit_token(struct fw_str token, char out[2 * FW_TOKEN_HASH_BYTES + 1])
{
	unsigned char hash[FW_TOKEN_HASH_BYTES] = {0};
	char text[FW_ACCOUNT_TOKEN_MAX + 8];

	(void)fw_snprintf(text, sizeof(text), "T %.*s", FW_STR_ARG(token));
	if (!fw_token_hash(fw_str(text), hash)) /* no memory: a token that fits nothing */
		hash[0] = 0;
	fw_hex_write(out, hash, T_DIGITS / 2);
}

/* Clients send the token for edits, the token of the login, "x" or nothing. */
static bool login_edit_token_fits(const struct reader *rd)
{
	struct fw_str t = fw_str_trim(http_form_get(&rd->form, "T"));
	char want[2 * FW_TOKEN_HASH_BYTES + 1];

	login_edit_token(rd->token, want);
	return !t.len || fw_str_eq(t, FW_STR("x")) || fw_str_eq(t, rd->token) || fw_str_eq(t, fw_str(want));
}

static enum MHD_Result login_refuse_edit_token(struct reader *rd)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct MHD_Response *m;

	fw_buf_adds(&out, "Error=BadToken\n");
	m = http_response(rd->r, MHD_HTTP_UNAUTHORIZED, "text/plain; charset=UTF-8", &out);
	if (m && MHD_add_response_header(m, "X-Reader-Google-Bad-Token", "true"))
		return http_respond(rd->r, MHD_HTTP_UNAUTHORIZED, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

bool greader_authorize(struct reader *rd, enum MHD_Result *ok)
{
	struct request *r = rd->r;
	int rc = FW_ENOTFOUND;

	rd->token = login_presented(r);
	if (!rd->token.p && r->route->body_max)
		rd->token = fw_str_trim(http_form_get(&rd->form, "T"));
	if (!rd->token.len) {
		r->verdict = AUTH_MISSING;
		*ok = http_greader_refuse(r);
		return false;
	}
	if (rd->token.len < FW_ACCOUNT_TOKEN_MAX)
		rc = fw_account_token_find(r->store, rd->token, FW_ACCOUNT_TOKEN_CLIENT, http_now_ms(rd->r),
			&rd->p.arena, &rd->account, &rd->err);
	if (rc == FW_ENOTFOUND) {
		http_auth_count_wrong(r);
		r->verdict = AUTH_LIMITED;
		*ok = http_auth_is_limited(r) ? http_greader_refuse(r) :
						login_refuse(r, "the token is unknown, or was revoked");
		return false;
	}
	if (rc) {
		*ok = http_store_failed(r, rc, &rd->err);
		return false;
	}
	if (login_edit_token_fits(rd))
		return true;
	*ok = login_refuse_edit_token(rd);
	return false;
}

/* ---- login ----------------------------------------------------------------------------------- */

/* The name of this client's tokens, without the random part: "login-newsboat0.000000-". */
static void login_group(const struct http_form *form, char out[sizeof(LOGIN_PREFIX) + SOURCE_MAX + 1])
{
	struct fw_str source = http_form_get(form, "source");
	size_t n = sizeof(LOGIN_PREFIX) - 1;

	memcpy(out, LOGIN_PREFIX, n);
	for (size_t i = 0; i < source.len && n < sizeof(LOGIN_PREFIX) - 1 + SOURCE_MAX; i++) {
		if (fw_is_alnum((unsigned char)source.p[i]) || source.p[i] == '.')
			out[n++] = source.p[i];
	}
	out[n++] = '-';
	out[n] = 0;
}

struct login_old {
	struct fw_str group;
	struct {
		size_t n;
		int64_t used_ms; /* of the least recently used one */
		char name[FW_ACCOUNT_NAME_MAX + 1];
	} ours, all; /* of this program, and of all */
};

static int login_old_add(void *ctx, const struct fw_account_token *t)
{
	struct login_old *o = ctx;
	int64_t used_ms = FW_MAX(t->used_ms, t->created_ms);

	if (t->kind != FW_ACCOUNT_TOKEN_LOGIN)
		return 0;
	if (!o->all.n++ || used_ms < o->all.used_ms) {
		o->all.used_ms = used_ms;
		(void)fw_str_copy(o->all.name, sizeof(o->all.name), t->name);
	}
	if (fw_str_starts(t->name, o->group) && t->name.len == o->group.len + LOGIN_RANDOM &&
		(!o->ours.n++ || used_ms < o->ours.used_ms)) {
		o->ours.used_ms = used_ms;
		(void)fw_str_copy(o->ours.name, sizeof(o->ours.name), t->name);
	}
	return 0;
}

static int login_token_add(struct request *r, const struct http_form *form, int64_t account_id,
	char text[FW_ACCOUNT_TOKEN_MAX], struct fw_err *err)
{
	char group[sizeof(LOGIN_PREFIX) + SOURCE_MAX + 1], name[sizeof(group) + LOGIN_RANDOM];
	struct login_old old = {.ours = {.n = 0}};
	int rc;

	login_group(form, group);
	old.group = fw_str(group);
	rc = fw_account_token_list(r->store, account_id, login_old_add, &old, err);
	if (!rc && old.ours.n >= LOGINS_OF_SOURCE_MAX)
		rc = fw_account_token_remove(r->store, account_id, FW_ACCOUNT_TOKEN_LOGIN, fw_str(old.ours.name), err);
	else if (!rc && old.all.n >= LOGINS_MAX)
		rc = fw_account_token_remove(r->store, account_id, FW_ACCOUNT_TOKEN_LOGIN, fw_str(old.all.name), err);
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	(void)fw_snprintf(name, sizeof(name), "%s%08x", group, (unsigned)http_id_random());
	return fw_account_token_add(
		r->store, account_id, fw_str(name), FW_ACCOUNT_TOKEN_LOGIN, http_now_ms(r), FW_NO_DATE, text, err);
}

static enum MHD_Result login_send(struct request *r, const struct http_form *form, const char *token)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_json j;

	if (!fw_str_eq(http_form_get(form, "output"), FW_STR("json"))) {
		fw_buf_addf(&out, "SID=%s\nLSID=null\nAuth=%s\n", token, token);
		return http_send(r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
	}
	fw_json_init(&j, &out, false);
	fw_json_object(&j, NULL);
	fw_json_cstr(&j, "SID", token);
	fw_json_cstr(&j, "LSID", "null");
	fw_json_cstr(&j, "Auth", token);
	fw_json_end(&j);
	return http_send(r, MHD_HTTP_OK, "application/json; charset=UTF-8", &out);
}

static enum MHD_Result login_wrong(struct request *r)
{
	struct fw_buf out = FW_BUF_INIT(0);

	fw_buf_adds(&out, "Error=BadAuthentication\n");
	return http_send(r, MHD_HTTP_UNAUTHORIZED, "text/plain; charset=UTF-8", &out);
}

/* With the gate taken. */
static enum MHD_Result login_check(struct request *r, const struct http_form *form)
{
	char text[FW_ACCOUNT_TOKEN_MAX] = "";
	struct fw_err err = {0};
	int64_t id;
	int rc;

	rc = http_auth_login(r, http_form_get(form, "Email"), http_form_get(form, "Passwd"), &id, &err);
	if (rc == FW_ELIMIT)
		return http_greader_refuse(r);
	if (rc == FW_ENOTFOUND)
		return login_wrong(r);
	rc = rc ? rc : login_token_add(r, form, id, text, &err);
	return rc ? http_store_failed(r, rc, &err) : login_send(r, form, text);
}

enum MHD_Result http_greader_login(struct request *r)
{
	struct http_gate *gate = &r->thread->h->logins;
	enum MHD_Result ok;
	struct fw_arena a;
	struct http_form form;
	int rc;

	switch (http_gate_enter(gate, r)) {
	case GATE_LATER:
		return MHD_YES;
	case GATE_FULL:
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", "too many logins wait to be checked");
	case GATE_TAKEN:
		break;
	}
	fw_arena_init(&a, ARENA_BYTES);
	rc = http_form_read(&a, fw_buf_str(&r->body), 0, &form);
	ok = rc ? http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid", "the login has too many parameters") :
		  login_check(r, &form);
	fw_arena_finish(&a);
	http_gate_leave(gate);
	return ok;
}

/* ---- with a token ---------------------------------------------------------------------------- */

enum MHD_Result greader_token(struct reader *rd)
{
	char text[2 * FW_TOKEN_HASH_BYTES + 1];

	login_edit_token(rd->token, text);
	return reader_text(rd, MHD_HTTP_OK, text);
}

enum MHD_Result greader_user_info(struct reader *rd)
{
	struct fw_json *j = &rd->p.j;
	char id[24];

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)rd->account.id);
	fw_json_object(j, NULL);
	fw_json_cstr(j, "userId", id);
	fw_json_str(j, "userName", rd->account.name);
	fw_json_cstr(j, "userProfileId", id);
	fw_json_str(j, "userEmail", rd->account.name);
	fw_json_bool(j, "isBloggerUser", false);
	fw_json_int(j, "signupTimeSec", rd->account.created_ms / FW_SECOND_MS);
	fw_json_bool(j, "isMultiLoginEnabled", false);
	fw_json_end(j);
	return reader_json(rd, 0);
}
