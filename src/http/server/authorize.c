/* SPDX-License-Identifier: ISC */
/* What the tokens say about a request, and the responses to refused ones. */
#include "base/clock.h"
#include "api/account.h"
#include "http/auth/limiter.h"
#include "http/server/http.h"

bool http_account_is_foreign(struct request *r)
{
	const struct tokenless_head *head = http_tokenless_head(r);
	const char *cors = r->thread->h->config->serve_cors_origin;

	if (cors && fw_str_eq(head->origin, fw_str(cors)))
		return false;
	return tokenless_is_foreign(head);
}

static enum tokenless auth_tokenless(struct request *r)
{
	const struct http *h = r->thread->h;

	return tokenless_check(auth_closed(h->auth), h->config->serve_host_names, http_tokenless_head(r));
}

/* The token of a request; absent: none. */
static struct fw_str auth_token_of(const struct request *r, char buffer[AUTH_PRESENTED_MAX])
{
	const char *header;

	if (r->token[0])
		return fw_str(r->token);
	header = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	return header ? auth_presented(fw_str(header), buffer) : FW_STR_NONE;
}

/* A browser sends what it knows by Basic of itself, for any page that asks. */
static bool auth_is_by_itself(const struct request *r)
{
	const char *header = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	struct fw_str rest;

	return !r->token[0] && header &&
		fw_str_ieq(fw_str_split(fw_str_trim(fw_str(header)), ' ', &rest), FW_STR("Basic"));
}

/* The scopes of which a token needs one. */
static unsigned auth_scopes(const struct request *r)
{
	if (r->route->scope != SCOPE_FEED)
		return 1u << (r->route->scope - SCOPE_PUSH);
	return r->token[0] ? FW_SCOPE_FEED : FW_SCOPE_FEED | FW_SCOPE_READ;
}

static enum auth_verdict auth_check_request(struct request *r, unsigned scope)
{
	struct auth *a = r->thread->h->auth;
	struct auth_tokens *t = auth_view_update(a, &r->thread->auth);
	struct auth_request q = {.scope = scope};
	char buffer[AUTH_PRESENTED_MAX];
	int64_t now_ms, wait_ms;
	enum auth_verdict v;

	r->pass = (struct auth_pass){.scope = scope, .version = r->thread->auth.version, .until_ms = FW_NO_DATE};
	if (!t && r->token[0])
		return AUTH_NOT_READY;
	if ((!t || !t->n) && !r->token[0]) {
		r->tokenless = auth_tokenless(r);
		if (t)
			return r->tokenless == TOKENLESS_MAY ? AUTH_OK : AUTH_TOKENLESS;
		/*
		 * a store that is away must not stop pushes from this machine: the ring is there
		 * for that
		 */
		return scope == FW_SCOPE_PUSH && r->tokenless == TOKENLESS_MAY ? AUTH_OK : AUTH_NOT_READY;
	}
	q.presented = auth_token_of(r, buffer);
	if (!q.presented.p)
		return AUTH_MISSING;
	now_ms = fw_mono_ms();
	q.network = auth_limiter_network(http_client_address(r));
	wait_ms = auth_throttled_ms(a, q.network, now_ms);
	q.limited = wait_ms > 0;
	v = auth_check_token(t, &q, http_now_ms(r), &r->pass);
	if (v == AUTH_OK && auth_is_by_itself(r) && http_account_is_foreign(r))
		v = AUTH_ORIGIN;
	r->pass.version = r->thread->auth.version;
	if (v == AUTH_WRONG)
		auth_count_wrong(a, q.network, http_client_address(r), now_ms);
	if (v != AUTH_LIMITED)
		return v;
	auth_count_limited(a);
	r->retry_after_s = (wait_ms + FW_SECOND_MS - 1) / FW_SECOND_MS;
	return v;
}

bool http_auth_is_limited(struct request *r)
{
	struct auth *a = r->thread->h->auth;
	int64_t wait_ms = auth_throttled_ms(a, auth_limiter_network(http_client_address(r)), fw_mono_ms());

	if (!wait_ms)
		return false;
	auth_count_limited(a);
	r->retry_after_s = (wait_ms + FW_SECOND_MS - 1) / FW_SECOND_MS;
	return true;
}

void http_auth_count_wrong(struct request *r)
{
	struct fw_str address = http_client_address(r);

	auth_count_wrong(r->thread->h->auth, auth_limiter_network(address), address, fw_mono_ms());
}

int http_auth_login(struct request *r, struct fw_str name, struct fw_str password, int64_t *id, struct fw_err *err)
{
	int rc;

	if (http_auth_is_limited(r)) {
		r->verdict = AUTH_LIMITED;
		return FW_ELIMIT;
	}
	rc = fw_account_login(r->store, name, password, id, err);
	atomic_fetch_add_explicit(&r->thread->h->login_n, !rc, memory_order_relaxed);
	if (rc == FW_ENOTFOUND) {
		http_auth_count_wrong(r);
		atomic_fetch_add_explicit(&r->thread->h->login_wrong_n, 1, memory_order_relaxed);
	}
	return rc;
}

/* Why a request needs a token where others need none. */
static const char *tokenless_refusal(enum tokenless t)
{
	switch (t) {
	case TOKENLESS_REMOTE:
		return "the client is not on this machine";
	case TOKENLESS_FORWARDED:
		return "the request came through a proxy (X-Forwarded-For, Forwarded, Via or the like)";
	case TOKENLESS_ORIGIN:
		return "the request came from a page of another site (Origin, Sec-Fetch-Site)";
	case TOKENLESS_MAY:
	case TOKENLESS_HOST:
	case TOKENLESS_CLOSED:
		break;
	}
	return "the tokens have changed";
}

/* 403 with the reason and the remedy. A token is always one. */
static enum MHD_Result auth_refuse_tokenless(struct request *r, const char *scope)
{
	struct fw_str host = fw_str_sub(r->tokenless_head.host, 0, 80);

	if (r->tokenless == TOKENLESS_HOST)
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"token required: Host is '%.*s', not a loopback address,"
			" localhost or one of serve_host_names (to make a token: feedwheel token add NAME --scope %s)",
			FW_STR_ARG(host), scope);
	if (r->tokenless == TOKENLESS_CLOSED)
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"token required: %s (to make a token: feedwheel token add NAME --scope %s)",
			fw_tokenless_why(auth_closed(r->thread->h->auth)), scope);
	return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
		"token required: %s (to make a token: feedwheel token add NAME --scope %s)",
		tokenless_refusal(r->tokenless), scope);
}

static enum MHD_Result auth_refuse_body(struct request *r)
{
	static const char *const TAKES[] = {
		[BODY_ANY] = "",
		[BODY_FEED] =
			"application/feed+json, application/atom+xml, application/rss+xml or application/x-ndjson",
		[BODY_JSON] = "application/json",
		[BODY_LINES] = "application/json or application/x-ndjson",
	};
	const char *type = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);

	return http_problem(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, r->twirp ? "invalid_argument" : "unsupported_type",
		"unsupported Content-Type '%.80s' (supported: %s)", type ? type : "", TAKES[r->route->body]);
}

/* A bound token works for these routes only. */
static bool auth_bound_allows(const struct request *r)
{
	if (r->route->run == http_feed_out)
		return http_feed_out_may(r, fw_str(r->bound));
	if (r->route->run == http_entries_push)
		return fw_token_allows_feed(fw_str(r->bound), r->id);
	return r->route->run == http_push_events && fw_token_allows_events(fw_str(r->bound));
}

static enum MHD_Result auth_refuse_bound(struct request *r)
{
	if (r->route->run == http_feed_out)
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"the token is for another feed (to list them: feedwheel token list)");
	if (r->route->run == http_entries_push)
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"push to feed %lld refused: the token is bound to others"
			" (to list them: feedwheel token list)",
			(long long)r->id);
	return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
		"push of events refused: the token is bound to feeds (to list them: feedwheel token list)");
}

enum MHD_Result http_auth_refuse(struct request *r)
{
	static const char *const CHALLENGE[] = {
		/* RFC 6750 section 3; RFC 7617 */
		[AUTH_MISSING] = "Bearer realm=\"feedwheel\", Basic realm=\"feedwheel\"",
		[AUTH_WRONG] = "Bearer realm=\"feedwheel\", error=\"invalid_token\", Basic realm=\"feedwheel\"",
		[AUTH_SCOPE] = "Bearer realm=\"feedwheel\", error=\"insufficient_scope\"",
		[AUTH_BOUND] = "Bearer realm=\"feedwheel\", error=\"insufficient_scope\"",
	};
	char scope[FW_TOKEN_SCOPES_MAX];

	if (http_scope_rule(r->route->scope)->refuse)
		return http_scope_rule(r->route->scope)->refuse(r);
	/* of two scopes the more usual one */
	fw_token_scopes_show(r->route->scope == SCOPE_FEED && !r->token[0] ? FW_SCOPE_READ : auth_scopes(r), scope);
	r->challenge = (size_t)r->verdict < FW_N(CHALLENGE) ? CHALLENGE[r->verdict] : NULL;
	switch (r->verdict) {
	case AUTH_OK:
		break;
	case AUTH_NOT_READY:
		return http_problem(r, MHD_HTTP_SERVICE_UNAVAILABLE, "unavailable",
			"the store is unavailable, so access tokens cannot be checked");
	case AUTH_TOKENLESS:
		return auth_refuse_tokenless(r, scope);
	case AUTH_BODY:
		return auth_refuse_body(r);
	case AUTH_MISSING:
		return http_problem(r, MHD_HTTP_UNAUTHORIZED, "unauthenticated",
			"token required: scope %s, in the header 'Authorization: Bearer fwt_...'", scope);
	case AUTH_WRONG:
		return http_problem(r, MHD_HTTP_UNAUTHORIZED, "unauthenticated", "the token is unknown or expired");
	case AUTH_SCOPE:
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied", "the token lacks the scope %s", scope);
	case AUTH_BOUND:
		return auth_refuse_bound(r);
	case AUTH_ORIGIN:
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"the request came from a page of another site (Origin, Sec-Fetch-Site): allow it by"
			" serve_cors_origin, or send the token as Bearer");
	case AUTH_LIMITED:
		return http_problem(r, MHD_HTTP_TOO_MANY_REQUESTS,
			r->twirp ? "resource_exhausted" : "auth_rate_limited",
			"throttled: too many wrong tokens came from your network (retry in %lld s)",
			(long long)r->retry_after_s);
	}
	return http_problem(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "internal",
		"request refused without a reason (please report this bug)");
}

enum MHD_Result http_auth_refuse_account(struct request *r, const char *challenge, const char *words)
{
	switch (r->verdict) {
	case AUTH_ORIGIN:
		return http_problem(r, MHD_HTTP_FORBIDDEN, "permission_denied",
			"the request came from a page of another site (Origin, Sec-Fetch-Site)");
	case AUTH_LIMITED:
		return http_problem(r, MHD_HTTP_TOO_MANY_REQUESTS, "auth_rate_limited",
			"throttled: too many wrong passwords or tokens came from your network (retry in %lld s)",
			(long long)r->retry_after_s);
	default:
		r->challenge = challenge;
		return http_problem(r, MHD_HTTP_UNAUTHORIZED, "unauthenticated", "%s", words);
	}
}

/*
 * A refused body is read to its end first, because most clients read no response while they send.
 * With Expect it is not.
 */
enum MHD_Result http_auth(struct request *r)
{
	if (r->route->scope == SCOPE_OPEN)
		return MHD_YES;
	if (http_scope_rule(r->route->scope)->check)
		r->verdict = http_scope_rule(r->route->scope)->check(r);
	else
		r->verdict = auth_check_request(r, auth_scopes(r));
	/* a copy, because the snapshot may be freed before the body is complete */
	if (r->verdict == AUTH_OK && r->pass.bound) {
		r->bound = strdup(r->pass.bound);
		r->pass.bound = NULL;
		if (!r->bound)
			return MHD_NO;
		r->verdict = auth_bound_allows(r) ? AUTH_OK : AUTH_BOUND;
	}
	if (r->verdict == AUTH_OK && !tokenless_body_fits(r->route->body, &r->tokenless_head))
		r->verdict = AUTH_BODY;
	if (r->verdict == AUTH_OK)
		return MHD_YES;
	if (r->expects)
		return http_auth_refuse(r);
	r->state = REQUEST_REFUSED;
	return MHD_YES;
}
