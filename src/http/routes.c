/* SPDX-License-Identifier: ISC */
/*
 * The table of routes: path, method, scope, parameters and body. openapi.json describes the same
 * routes; a test compares both.
 */
#include "http/readers/fever/fever.h"
#include "http/readers/greader/greader.h"
#include "http/readers/miniflux/miniflux.h"
#include "http/web/web.h"

#define PUSH_MAX ((size_t)1 << 20)
#define FEEDS_MAX ((size_t)1 << 20)
#define FEED_MAX ((size_t)1 << 16)
#define ORDER_MAX ((size_t)1 << 16)
#define ENTRIES_MAX ((size_t)8 << 20)
#define ID "{id}"
#define TOKEN "{token}"
#define NAME "{name}"
#define FEED "{feed}"
#define STREAM "{stream}"

/*
 * The Google Reader API, at the root and below aliases: where FreshRSS has it, and where Miniflux
 * would. Reading takes parameters from a form too where a client sends one; a form of 10,000 items
 * has 600 KB.
 */
#define FORM_MAX ((size_t)2 << 20)
#define LOGIN_MAX ((size_t)1 << 14)
#define READER_GET(name, handler) \
	"GET", "/reader/" name, http_greader, .reader = handler, .scope = SCOPE_ACCOUNT, .pool = true
#define READER_FORM .body_max = FORM_MAX, .scope = SCOPE_ACCOUNT, .pool = true
#define READER_POST(name, handler, again) \
	"POST", "/reader/" name, http_greader, .reader = handler, READER_FORM, .repeat = again

/* Fever: some clients add "/" to the URL that a user typed, some do not. */
#define FEVER_FORM .body_max = (size_t)1 << 16, .scope = SCOPE_FEVER, .pool = true
#define FEVER_GET(path) "GET", path, http_fever, .reader = fever_api, .scope = SCOPE_FEVER, .pool = true
#define FEVER_POST(path) "POST", path, http_fever, .reader = fever_api, FEVER_FORM, .repeat = true

/* Miniflux' API, where its clients look for it below the address that they are given. */
#define MINIFLUX "/miniflux"
#define MINIFLUX_POOL .scope = SCOPE_BASIC, .pool = true
#define MINIFLUX_ROUTE(method, name, handler, body, again) \
	method, MINIFLUX "/v1/" name, http_miniflux, .reader = handler, .body_max = body, MINIFLUX_POOL, .repeat = again
#define MINIFLUX_GET(name, handler) MINIFLUX_ROUTE("GET", name, handler, 0, true)
#define MINIFLUX_PUT(name, handler, again) MINIFLUX_ROUTE("PUT", name, handler, FORM_MAX, again)
#define MINIFLUX_POST(name, handler) MINIFLUX_ROUTE("POST", name, handler, FORM_MAX, false)
#define MINIFLUX_DELETE(name, handler) MINIFLUX_ROUTE("DELETE", name, handler, 0, true)

/* The page. Reading has no side effects; what changes something is a form. */
#define WEB_GET(path, handler) "GET", path, http_web, .web = handler, .scope = SCOPE_WEB, .pool = true
#define WEB_POST(path, handler, again) \
	"POST", path, http_web, .web = handler, .body_max = FORM_MAX, .scope = SCOPE_WEB, .pool = true, .repeat = again

static const struct scope_rule SCOPE_RULE[] = {
	[SCOPE_PATH] = {http_websub_may, http_websub_refuse},
	[SCOPE_LOGIN] = {http_greader_may, http_greader_refuse},
	[SCOPE_ACCOUNT] = {http_greader_may, http_greader_refuse},
	[SCOPE_FEVER] = {http_greader_may, http_greader_refuse},
	[SCOPE_BASIC] = {http_miniflux_may, http_miniflux_refuse},
	[SCOPE_WEB] = {http_web_may, http_web_refuse},
};

const struct scope_rule *http_scope_rule(enum scope scope)
{
	return &SCOPE_RULE[scope];
}

static const struct route ROUTE[] = {
	{"POST", "/v1/events", http_push_events, "ack", .body_max = PUSH_MAX, .body = BODY_LINES, .scope = SCOPE_PUSH},
	{"POST", "/twirp/stats.StatsService/Push", http_push_events, .body_max = PUSH_MAX, .body = BODY_LINES,
		.scope = SCOPE_PUSH},
	{"GET", "/v1/feeds", http_feed_list, "status folder q cursor limit", .scope = SCOPE_READ, .pool = true},
	{"POST", "/v1/feeds", http_feed_add, "", .body_max = FEEDS_MAX, .body = BODY_JSON, .scope = SCOPE_ADMIN,
		.pool = true},
	{"GET", "/v1/feeds/{id}", http_feed_get, "visits", .scope = SCOPE_READ, .pool = true},
	{"PATCH", "/v1/feeds/{id}", http_feed_change, "", .body_max = FEED_MAX, .body = BODY_JSON, .scope = SCOPE_ADMIN,
		.pool = true},
	{"DELETE", "/v1/feeds/{id}", http_feed_remove, "", .scope = SCOPE_ADMIN, .pool = true},
	{"GET", "/v1/folders", http_folder_list, "", .scope = SCOPE_READ, .pool = true},
	{"GET", "/v1/entries", http_entry_list,
		"feed folder since until q by snippet order cursor limit content format", .scope = SCOPE_READ,
		.pool = true},
	{"GET", "/v1/entries/{id}", http_entry_get, "content", .scope = SCOPE_READ, .pool = true},
	{"GET", "/v1/entries/{id}/revisions", http_revision_list, "content", .scope = SCOPE_READ, .pool = true},
	{"GET", "/v1/changes", http_change_list, "after feed folder wait limit content", .scope = SCOPE_READ,
		.pool = true},
	{"POST", "/v1/feeds/{id}/entries", http_entries_push, "", .body_max = ENTRIES_MAX, .body = BODY_FEED,
		.scope = SCOPE_PUSH, .pool = true, .repeat = true},
	{"GET", "/v1/orders", http_order_list, "", .scope = SCOPE_ADMIN, .pool = true},
	{"POST", "/v1/orders", http_order_add, "", .body_max = ORDER_MAX, .body = BODY_JSON, .scope = SCOPE_ADMIN,
		.pool = true},
	{"POST", "/v1/orders/test", http_order_test, "", .body_max = ORDER_MAX, .body = BODY_JSON, .scope = SCOPE_ADMIN,
		.pool = true},
	{"GET", "/v1/orders/{name}", http_order_get, "", .scope = SCOPE_ADMIN, .pool = true},
	{"PATCH", "/v1/orders/{name}", http_order_change, "", .body_max = ORDER_MAX, .body = BODY_JSON,
		.scope = SCOPE_ADMIN, .pool = true},
	{"DELETE", "/v1/orders/{name}", http_order_remove, "", .scope = SCOPE_ADMIN, .pool = true},
	{"POST", "/v1/orders/{name}/replay", http_order_replay, "", .body_max = ORDER_MAX, .body = BODY_JSON,
		.scope = SCOPE_ADMIN, .pool = true},
	{"GET", "/v1/orders/{name}/dead", http_order_dead, "cursor limit", .scope = SCOPE_ADMIN, .pool = true},
	{"POST", "/v1/orders/{name}/retry", http_order_retry, "", .scope = SCOPE_ADMIN, .pool = true},
	{"POST", "/v1/orders/{name}/rotate", http_order_rotate, "", .scope = SCOPE_ADMIN, .pool = true},
	{"GET", "/feeds/{feed}", http_feed_out, "limit", .scope = SCOPE_FEED, .pool = true},
	{"GET", "/t/{token}/feeds/{feed}", http_feed_out, "limit", .scope = SCOPE_FEED, .pool = true},
	{"GET", "/websub/{token}", http_websub_intent, .scope = SCOPE_PATH, .pool = true},
	{"POST", "/websub/{token}", http_websub_push, .body_max = ENTRIES_MAX, .scope = SCOPE_PATH, .pool = true,
		.raw = true, .repeat = true},
	{"POST", "/accounts/ClientLogin", http_greader_login, .body_max = LOGIN_MAX, .scope = SCOPE_LOGIN,
		.pool = true},
	{READER_GET("api/0/token", greader_token)},
	{READER_GET("api/0/user-info", greader_user_info)},
	{READER_GET("api/0/status", greader_status)},
	{READER_GET("ping", greader_ping)},
	{READER_GET("api/0/subscription/list", greader_subscription_list)},
	{READER_POST("api/0/subscription/edit", greader_subscription_edit, false)},
	{READER_POST("api/0/subscription/quickadd", greader_quickadd, false)},
	{READER_GET("api/0/subscription/export", greader_export)},
	{READER_POST("api/0/subscription/import", greader_import, false)},
	{READER_GET("api/0/tag/list", greader_tag_list)},
	{READER_POST("api/0/rename-tag", greader_rename_tag, false)},
	{READER_POST("api/0/disable-tag", greader_disable_tag, false)},
	{READER_GET("api/0/unread-count", greader_unread_count)},
	{READER_GET("api/0/stream/items/ids", greader_ids)},
	{READER_POST("api/0/stream/items/ids", greader_ids, true)},
	{READER_GET("api/0/stream/items/contents", greader_items)},
	{READER_POST("api/0/stream/items/contents", greader_items, true)},
	{READER_GET("api/0/stream/contents", greader_contents)},
	{READER_GET("api/0/stream/contents/{stream}", greader_contents)},
	{READER_GET("atom/{stream}", greader_atom)},
	{READER_POST("api/0/edit-tag", greader_edit_tag, true)},
	{READER_POST("api/0/mark-all-as-read", greader_mark_all, true)},
	{READER_GET("api/0/preference/list", greader_preferences)},
	{READER_GET("api/0/preference/stream/list", greader_stream_preferences)},
	{READER_POST("api/0/preference/set", greader_preference_set, true)},
	{READER_POST("api/0/preference/stream/set", greader_preference_set, true)},
	{READER_GET("api/0/friend/list", greader_friends)},
	{FEVER_GET("/fever/")},
	{FEVER_POST("/fever/")},
	{FEVER_GET("/fever")},
	{FEVER_POST("/fever")},
	{MINIFLUX_GET("me", miniflux_me)},
	{MINIFLUX_GET("version", miniflux_version)},
	{MINIFLUX_GET("users", miniflux_users)},
	{MINIFLUX_GET("users/{stream}", miniflux_user)},
	{MINIFLUX_PUT("users/{id}/mark-all-as-read", miniflux_user_read, true)},
	{MINIFLUX_GET("integrations/status", miniflux_integrations)},
	{MINIFLUX_GET("api-keys", miniflux_keys)},
	{MINIFLUX_POST("api-keys", miniflux_keys)},
	{MINIFLUX_DELETE("api-keys/{id}", miniflux_keys)},
	{MINIFLUX_GET("categories", miniflux_category_list)},
	{MINIFLUX_POST("categories", miniflux_category_add)},
	{MINIFLUX_PUT("categories/{id}", miniflux_category_set, true)},
	{MINIFLUX_DELETE("categories/{id}", miniflux_category_remove)},
	{MINIFLUX_GET("categories/{id}/feeds", miniflux_category_feeds)},
	{MINIFLUX_GET("categories/{id}/entries", miniflux_category_entries)},
	{MINIFLUX_GET("categories/{id}/entries/{id}", miniflux_category_entry)},
	{MINIFLUX_PUT("categories/{id}/mark-all-as-read", miniflux_category_read, true)},
	{MINIFLUX_PUT("categories/{id}/refresh", miniflux_category_refresh, true)},
	{MINIFLUX_GET("feeds", miniflux_feed_list)},
	{MINIFLUX_POST("feeds", miniflux_feed_add)},
	{MINIFLUX_GET("feeds/counters", miniflux_counters)},
	{MINIFLUX_PUT("feeds/refresh", miniflux_refresh, true)},
	{MINIFLUX_GET("feeds/{id}", miniflux_feed_get)},
	{MINIFLUX_PUT("feeds/{id}", miniflux_feed_set, true)},
	{MINIFLUX_DELETE("feeds/{id}", miniflux_feed_remove)},
	{MINIFLUX_GET("feeds/{id}/icon", miniflux_feed_icon)},
	{MINIFLUX_PUT("feeds/{id}/refresh", miniflux_feed_refresh, true)},
	{MINIFLUX_PUT("feeds/{id}/mark-all-as-read", miniflux_feed_read, true)},
	{MINIFLUX_GET("feeds/{id}/entries", miniflux_feed_entries)},
	{MINIFLUX_GET("feeds/{id}/entries/{id}", miniflux_feed_entry)},
	{MINIFLUX_GET("icons/{id}", miniflux_icon)},
	{MINIFLUX_GET("entries", miniflux_entry_list)},
	{MINIFLUX_GET("entries/ids", miniflux_entry_ids)},
	{MINIFLUX_PUT("entries", miniflux_entries_set, true)},
	{MINIFLUX_GET("entries/{id}", miniflux_entry_get)},
	{MINIFLUX_PUT("entries/{id}/bookmark", miniflux_star, false)},
	{MINIFLUX_PUT("entries/{id}/star", miniflux_star, false)},
	{MINIFLUX_POST("entries/{id}/save", miniflux_save)},
	{MINIFLUX_GET("entries/{id}/fetch-content", miniflux_content)},
	{MINIFLUX_PUT("flush-history", miniflux_flush, true)},
	{MINIFLUX_DELETE("flush-history", miniflux_flush)},
	{MINIFLUX_POST("discover", miniflux_discover)},
	{MINIFLUX_GET("export", greader_export)},
	{MINIFLUX_POST("import", miniflux_import)},
	{"GET", MINIFLUX "/healthcheck", http_miniflux_health, .scope = SCOPE_OPEN},
	{"GET", MINIFLUX "/version", http_miniflux_version, .scope = SCOPE_OPEN},
	{WEB_GET("/", web_river)},
	{WEB_GET("/entry", web_entry)},
	{WEB_GET("/icon", web_icon)},
	{WEB_GET("/login", web_login_again)},
	{"POST", "/login", http_web, .web = web_login, .body_max = LOGIN_MAX, .scope = SCOPE_WEB, .pool = true},
	{WEB_POST("/logout", web_logout, false)},
	{WEB_POST("/read", web_read, true)},
	{WEB_POST("/star", web_star, false)},
	{WEB_POST("/label", web_label, true)},
	{WEB_POST("/all", web_mark_all, true)},
	{WEB_GET("/add", web_add)},
	{WEB_POST("/preview", web_preview, false)},
	{WEB_POST("/subscribe", web_subscribe, false)},
	{WEB_POST("/collected", web_collected, true)},
	{WEB_GET("/feeds", web_feeds)},
	{WEB_POST("/subscription", web_subscription, true)},
	{WEB_POST("/unsubscribe", web_unsubscribe, false)},
	{WEB_POST("/folder", web_folder, false)},
	{WEB_POST("/instead", web_instead, false)},
	{"POST", "/poll", http_web, .web = web_poll, .body_max = LOGIN_MAX, .scope = SCOPE_WEB, .web_admin = true,
		.pool = true},
	{WEB_GET("/account", web_account)},
	{WEB_POST("/password", web_password, false)},
	{WEB_POST("/revoke", web_revoke, false)},
	{WEB_POST("/token", web_token, false)},
	{WEB_GET("/export", web_export)},
	{WEB_POST("/import", web_import, false)},
	{"GET", "/runs", http_web, .web = web_runs, .scope = SCOPE_WEB, .web_admin = true, .pool = true},
	{"GET", "/picture", http_web, .web = web_picture, .scope = SCOPE_WEB, .web_admin = true, .pool = true},
	{"GET", "/orders", http_web, .web = web_orders, .scope = SCOPE_WEB, .web_admin = true, .pool = true},
	{"GET", "/reader.js", http_web_script, .scope = SCOPE_WEB},
	{"GET", "/reader.css", http_web_style, .scope = SCOPE_WEB},
	{"GET", "/v1/stream", http_stream, "since feed folder types", .scope = SCOPE_READ},
	{"GET", "/v1/timings", http_timings, "status cursor limit", .scope = SCOPE_READ, .pool = true},
	{"GET", "/v1/ring", http_ring, .scope = SCOPE_READ},
	{"GET", "/openapi.json", http_openapi, "", .scope = SCOPE_OPEN},
	{"GET", "/healthz", http_healthz, .scope = SCOPE_OPEN},
	{"GET", "/readyz", http_readyz, .scope = SCOPE_OPEN},
	{"GET", "/metrics", http_metrics, .scope = SCOPE_READ},
};

const struct route *http_routes(size_t *n)
{
	*n = FW_N(ROUTE);
	return ROUTE;
}

/* The length of the number above 0 at the start of s; 0: there is none, or it is too large. */
static size_t path_number_len(const char *s, int64_t *out)
{
	size_t n = 0;

	while (fw_is_digit((unsigned char)s[n]))
		n++;
	return n && s[0] != '0' && fw_str_int((struct fw_str){s, n}, out) ? n : 0;
}

static size_t path_token_len(const char *s)
{
	size_t n = 0;

	while (fw_is_alnum((unsigned char)s[n]) || (s[n] && strchr("_-", s[n])))
		n++;
	return n <= HTTP_TOKEN_MAX ? n : 0;
}

/* The length of an order's name at the start of s; 0: there is none. */
static size_t path_name_len(const char *s)
{
	size_t n = 0;

	while (fw_is_alnum((unsigned char)s[n]) || (s[n] && strchr("._-", s[n])))
		n++;
	return n <= HTTP_TOKEN_MAX ? n : 0;
}

/* Is a word of a pattern, at its end, the rest of the path? */
static bool path_rest(const char *word)
{
	return strcmp(word, FEED) == 0 || strcmp(word, STREAM) == 0;
}

static bool path_matches(const char *pattern, const char *path, int64_t *id)
{
	int64_t below_id;

	*id = 0;
	while (*pattern) {
		size_t n;

		if (*pattern != ID[0]) { /* first, because it is the usual case */
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		if (fw_str_starts(fw_str(pattern), FW_STR(TOKEN))) {
			n = path_token_len(path);
			pattern += sizeof(TOKEN) - 1;
		} else if (fw_str_starts(fw_str(pattern), FW_STR(NAME))) {
			n = path_name_len(path);
			pattern += sizeof(NAME) - 1;
		} else if (path_rest(pattern)) {
			n = strlen(path);
			pattern += strlen(pattern);
		} else {
			n = path_number_len(path, *id ? &below_id : id);
			pattern += sizeof(ID) - 1;
		}
		if (!n)
			return false;
		path += n;
	}
	return !*path;
}

static void allow_add(char allow[HTTP_ALLOW_MAX], const char *method)
{
	size_t len = strlen(allow);

	(void)fw_snprintf(allow + len, HTTP_ALLOW_MAX - len, "%s%s", len ? ", " : "", method);
	if (strcmp(method, "GET") == 0)
		allow_add(allow, "HEAD");
}

/* Is it below the alias too? */
static bool route_is_reader(const struct route *r)
{
	return r->scope == SCOPE_LOGIN || r->scope == SCOPE_ACCOUNT;
}

/* The path below an alias; path itself, if it is not there. */
static const char *path_without_alias(const char *path)
{
	static const char *const ALIAS[] = {"/api/greader.php", MINIFLUX};

	for (size_t i = 0; i < FW_N(ALIAS); i++) {
		size_t n = strlen(ALIAS[i]);

		if (strncmp(path, ALIAS[i], n) == 0 && path[n] == '/')
			return path + n;
	}
	return path;
}

enum http_match http_route_find(
	const char *path, const char *method, const struct route **route, int64_t *id, char allow[HTTP_ALLOW_MAX])
{
	const char *below = path_without_alias(path);

	allow[0] = 0;
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	for (size_t i = 0; i < FW_N(ROUTE); i++) {
		if (!path_matches(ROUTE[i].path, route_is_reader(&ROUTE[i]) ? below : path, id))
			continue;
		if (strcmp(method, ROUTE[i].method) == 0) {
			*route = &ROUTE[i];
			allow[0] = 0;
			return HTTP_MATCH;
		}
		allow_add(allow, ROUTE[i].method);
	}
	return allow[0] ? HTTP_NO_METHOD : HTTP_NO_PATH;
}

/* ---- query parameters ------------------------------------------------------------------------ */

static bool params_have(const char *words, struct fw_str word)
{
	struct fw_str rest = fw_str(words);

	while (rest.p) {
		if (fw_str_eq(fw_str_split(rest, ' ', &rest), word))
			return true;
	}
	return false;
}

static enum MHD_Result param_check(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct request *r = ctx;

	(void)kind;
	(void)value;
	if (params_have(r->route->params, fw_str(key)))
		return MHD_YES;
	(void)http_problem(r, MHD_HTTP_BAD_REQUEST, "unknown_parameter", "unknown parameter: %.60s (%s %s takes %s)",
		key, r->route->method, r->route->path, r->route->params[0] ? r->route->params : "none");
	return MHD_NO;
}

/* Stands there another word than the number of a route? Which one. */
static struct fw_str path_wrong_number(const char *path)
{
	struct fw_str rest;

	for (size_t i = 0; i < FW_N(ROUTE); i++) {
		const char *id = strstr(ROUTE[i].path, ID);
		size_t n = id ? (size_t)(id - ROUTE[i].path) : 0;

		if (n && strncmp(ROUTE[i].path, "/v1/", 4) == 0 && strncmp(ROUTE[i].path, path, n) == 0)
			return fw_str_split(fw_str(path + n), '/', &rest);
	}
	return FW_STR_NONE;
}

/* Twirp has one error, bad_route, for a wrong path and a wrong method. */
static enum MHD_Result no_route(struct request *r, const char *path)
{
	const char *accept = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	struct fw_str word = path_wrong_number(path);
	int64_t id;

	if (r->twirp)
		return http_problem(r, MHD_HTTP_NOT_FOUND, "bad_route",
			"unknown path or method (only POST /twirp/stats.StatsService/Push exists)");
	if (word.len && path_number_len(word.p, &id) != word.len)
		return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found",
			"'%.*s' in the path is not a number from 1 (see GET /openapi.json)",
			FW_STR_ARG(fw_str_sub(word, 0, 60)));
	if (accept && strstr(accept, "text/html") && !r->miniflux && strncmp(path, "/v1/", 4) != 0)
		return http_web_unknown(r, path); /* a person, with a browser */
	return http_problem(r, MHD_HTTP_NOT_FOUND, "not_found", "unknown path (see GET /openapi.json)");
}

/*
 * Copy what stands for {token} or {name}, behind the same text as in the pattern; {feed} or
 * {stream}, which is the last, stays where it is.
 */
static void path_words_copy(struct request *r, const char *path)
{
	const char *pattern = r->route->path, *token = strstr(pattern, TOKEN), *name = strstr(pattern, NAME);
	const char *rest;

	if (route_is_reader(r->route))
		path = path_without_alias(path);
	if (token) {
		path += token - pattern;
		(void)fw_str_copy(r->token, sizeof(r->token), (struct fw_str){path, path_token_len(path)});
		path += strlen(r->token);
		pattern = token + sizeof(TOKEN) - 1;
	} else if (name) {
		path += name - pattern;
		(void)fw_str_copy(r->name, sizeof(r->name), (struct fw_str){path, path_name_len(path)});
	}
	rest = strrchr(pattern, '{');
	if (rest && path_rest(rest))
		r->rest = fw_str(path + (rest - pattern));
	if (rest && strcmp(rest, ID) == 0 && strstr(pattern, ID) != rest)
		(void)path_number_len(strrchr(path, '/') + 1, &r->below_id);
}

void http_form_of_errors(struct request *r, const char *path)
{
	r->twirp = fw_str_starts(fw_str(path), FW_STR("/twirp/"));
	r->miniflux = fw_str_starts(fw_str(path), FW_STR(MINIFLUX "/v1/"));
}

/*
 * Only what {feed} and {stream} stand for may have a slash as "%2f": elsewhere a proxy, which looks
 * at the path as it is written, would see another one than we do.
 */
static bool path_slashes_fit(const struct request *r, const char *path, const char *method)
{
	size_t at = r->c->target.slash_at;
	const struct route *route;
	char allow[HTTP_ALLOW_MAX];
	const char *rest, *p;
	int64_t id;

	if (at == SIZE_MAX)
		return true;
	if (http_route_find(path, method, &route, &id, allow) != HTTP_MATCH)
		return false;
	rest = strrchr(route->path, '{');
	if (!rest || !path_rest(rest))
		return false;
	p = route_is_reader(route) ? path_without_alias(path) : path;
	for (const char *word = route->path; word < rest; word++) /* no other word has a slash */
		p = *word == '/' ? strchr(p, '/') + 1 : p;
	return at >= (size_t)(p - path);
}

enum MHD_Result http_route(struct request *r, const char *path, const char *method)
{
	http_form_of_errors(r, path);
	if (!path_slashes_fit(r, path, method))
		return http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_path",
			"the path has \"%%2f\", which stands for no '/' there: write '/'");
	switch (http_route_find(path, method, &r->route, &r->id, r->allow)) {
	case HTTP_MATCH:
		path_words_copy(r, path);
		if (r->route->params)
			(void)MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, param_check, r);
		return MHD_YES;
	case HTTP_NO_METHOD:
		if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0) {
			allow_add(r->allow, MHD_HTTP_METHOD_OPTIONS);
			return http_options(r);
		}
		if (r->twirp)
			return no_route(r, path);
		return http_problem(r, MHD_HTTP_METHOD_NOT_ALLOWED, "method_not_allowed",
			"method not allowed (allowed: %s)", r->allow);
	case HTTP_NO_PATH:
		break;
	}
	return no_route(r, path);
}
