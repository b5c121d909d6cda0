/* SPDX-License-Identifier: ISC */
/* The route of each path, and the rules that each row of the table keeps. */
#include <check.h>
#include <limits.h>
#include <stdlib.h>

#include "http/http.h"
#include "../../suite.h"

static enum http_match find(
	const char *method, const char *path, int64_t *id, char allow[HTTP_ALLOW_MAX], const char *leads_to)
{
	const struct route *r = NULL;
	enum http_match m = http_route_find(path, method, &r, id, allow);

	if (m == HTTP_MATCH)
		ck_assert_str_eq(r->path, leads_to);
	return m;
}

START_TEST(numbers)
{
	static const struct {
		const char *path;
		int64_t id;
	} GOOD[] = {
		{"/v1/feeds/1", 1},
		{"/v1/feeds/4711", 4711},
		{"/v1/feeds/9223372036854775807", INT64_MAX},
	};
	static const char *const BAD[] = {
		"/v1/feeds/",
		"/v1/feeds/0",
		"/v1/feeds/01",
		"/v1/feeds/-1",
		"/v1/feeds/+1",
		"/v1/feeds/1x",
		"/v1/feeds/x",
		"/v1/feeds/1/",
		"/v1/feeds/ 1",
		"/v1/feeds/9223372036854775808",
		"/v1/feeds/99999999999999999999999999",
		"/v1/feeds/{id}",
		"/v1/feeds/1/2",
		"v1/feeds/1",
		"",
		"/",
	};
	char allow[HTTP_ALLOW_MAX];
	int64_t id;

	for (size_t i = 0; i < FW_N(GOOD); i++) {
		ck_assert_int_eq(find("GET", GOOD[i].path, &id, allow, "/v1/feeds/{id}"), HTTP_MATCH);
		ck_assert_int_eq(id, GOOD[i].id);
	}
	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_int_eq(find("GET", BAD[i], &id, allow, "nowhere"), HTTP_NO_PATH);
}
END_TEST

START_TEST(methods)
{
	char allow[HTTP_ALLOW_MAX];
	int64_t id;

	ck_assert_int_eq(find("HEAD", "/healthz", &id, allow, "/healthz"), HTTP_MATCH);
	ck_assert_int_eq(id, 0);
	ck_assert_int_eq(find("POST", "/healthz", &id, allow, ""), HTTP_NO_METHOD);
	ck_assert_str_eq(allow, "GET, HEAD");
	ck_assert_int_eq(find("GET", "/v1/events", &id, allow, ""), HTTP_NO_METHOD);
	ck_assert_str_eq(allow, "POST");
	ck_assert_int_eq(find("get", "/healthz", &id, allow, ""), HTTP_NO_METHOD);
}
END_TEST

/* Outside of openapi.json: other projects' APIs, which their own documents describe. */
static bool is_of_accounts(const struct route *r)
{
	return http_scope_is_reader(r->scope);
}

/* Readers find theirs below two paths, and nothing else is there. */
START_TEST(alias)
{
	char allow[HTTP_ALLOW_MAX];
	const struct route *r;
	int64_t id;

	for (int i = 0; i < 2; i++) {
		const char *base = i ? "/api/greader.php" : "";
		char path[100];

		ck_assert(fw_snprintf(path, sizeof(path), "%s/accounts/ClientLogin", base));
		ck_assert_int_eq(http_route_find(path, "POST", &r, &id, allow), HTTP_MATCH);
		ck_assert_int_eq(r->scope, SCOPE_LOGIN);
		ck_assert_int_eq(http_route_find(path, "GET", &r, &id, allow), HTTP_NO_METHOD);
		ck_assert(fw_snprintf(path, sizeof(path), "%s/reader/atom/feed/http://a.example/?x=/", base));
		ck_assert_int_eq(http_route_find(path, "GET", &r, &id, allow), HTTP_MATCH);
		ck_assert_str_eq(r->path, "/reader/atom/{stream}");
	}
	ck_assert_int_eq(find("GET", "/api/greader.php/v1/feeds", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/api/greader.php/healthz", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/api/greader.phpx/reader/ping", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/api/greader.php", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/reader/atom/", &id, allow, ""), HTTP_NO_PATH);
}
END_TEST

/* The document names exactly the routes of Fever, or the others of accounts, in its rows. */
static void readers_are_described(const char *name, bool fever)
{
	char path[PATH_MAX];
	struct fw_buf doc = FW_BUF_INIT(0);
	const struct route *r;
	size_t n, want = 0, got = 0;
	FILE *f;

	ck_assert(fw_snprintf(path, sizeof(path), "%s/docs/%s", getenv("FW_SOURCE_ROOT"), name));
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fw_buf_read(&doc, f), 0);
	fclose(f);
	r = http_routes(&n);
	for (size_t i = 0; i < n; i++) {
		char row[200];

		if (!is_of_accounts(&r[i]) || (r[i].scope == SCOPE_FEVER) != fever)
			continue;
		want++;
		ck_assert(fw_snprintf(row, sizeof(row), "\n| `%s %s` |", r[i].method, r[i].path));
		ck_assert_msg(strstr(doc.p, row) != NULL, "not described:%s", row);
	}
	for (const char *at = doc.p; (at = strstr(at, "\n| `")) != NULL; at++)
		got += strncmp(at, "\n| `GET /", 9) == 0 || strncmp(at, "\n| `POST /", 10) == 0;
	ck_assert_uint_eq(got, want);
	fw_buf_finish(&doc);
}

START_TEST(readers_described)
{
	readers_are_described("greader.md", false);
	readers_are_described("fever.md", true);
}
END_TEST

START_TEST(feeds)
{
	static const char *const GOOD[] = {"/feeds/x", "/feeds/News.atom", "/feeds/News/Tech.atom",
		"/feeds/folder/a b.rss", "/feeds/title:CVE OR \"remote code\".atom", "/feeds/{feed}"};
	static const char *const BAD[] = {"/feeds", "/feeds/", "/feedsx", "/t/", "/t/x", "/t/x/feeds", "/t/x/feeds/",
		"/t//feeds/x", "/t/a b/feeds/x", "/t/x/y/feeds/x", "/t/x/v1/entries",
		"/t/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/feeds/x"};
	char allow[HTTP_ALLOW_MAX];
	int64_t id;

	for (size_t i = 0; i < FW_N(GOOD); i++)
		ck_assert_int_eq(find("GET", GOOD[i], &id, allow, "/feeds/{feed}"), HTTP_MATCH);
	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_int_eq(find("GET", BAD[i], &id, allow, "nowhere"), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/t/fwt_a-Z_9/feeds/a/b.rss", &id, allow, "/t/{token}/feeds/{feed}"), HTTP_MATCH);
	ck_assert_int_eq(find("POST", "/feeds/x", &id, allow, ""), HTTP_NO_METHOD);
	ck_assert_str_eq(allow, "GET, HEAD");
}
END_TEST

/* Each route is found by its own path, whatever the order of the table. */
START_TEST(table)
{
	size_t n;
	const struct route *r = http_routes(&n), *found;
	char allow[HTTP_ALLOW_MAX], path[100];
	int64_t id;

	for (size_t i = 0; i < n; i++) {
		const char *at = strchr(r[i].path, '{'), *end = at ? strchr(at, '}') + 1 : "";
		bool id_in = strstr(r[i].path, "{id}") != NULL, token = strstr(r[i].path, "{token}") != NULL;
		bool account = is_of_accounts(&r[i]);
		int front = at ? (int)(at - r[i].path) : (int)strlen(r[i].path);

		ck_assert(fw_snprintf(path, sizeof(path), "%.*s%s%s", front, r[i].path,
			id_in         ? "7" :
				token ? "aZ9" :
				at    ? "a.Z_9-" :
					"",
			end));
		ck_assert_int_eq(http_route_find(path, r[i].method, &found, &id, allow), HTTP_MATCH);
		ck_assert_ptr_eq(found, &r[i]);
		ck_assert_int_eq(id, id_in ? 7 : 0);
		ck_assert_ptr_nonnull(r[i].run);
		/*
		 * a request that changes something is never open to all; a request with a body has
		 * a limit; what an account may do is behind one entrance
		 */
		ck_assert(r[i].scope != SCOPE_OPEN || strcmp(r[i].method, "GET") == 0);
		/* a secret opens no other path */
		ck_assert(r[i].scope == SCOPE_PATH ? token : r[i].scope == SCOPE_FEED || !token);
		ck_assert(r[i].body_max == 0 || strcmp(r[i].method, "GET") != 0);
		ck_assert((r[i].scope == SCOPE_ACCOUNT || r[i].scope == SCOPE_FEVER) == (r[i].run == http_greader));
		ck_assert((r[i].run == http_greader) == (r[i].greader != NULL));
		/* and a page of another site cannot send it (accounts: http_greader_may()) */
		ck_assert((r[i].body == BODY_ANY) == (r[i].body_max == 0 || r[i].scope == SCOPE_PATH || account));
	}
}
END_TEST

static const json_t *operation(const json_t *paths, const struct route *r)
{
	char method[16];
	size_t n = strlen(r->method);

	ck_assert_uint_lt(n, sizeof(method));
	for (size_t i = 0; i <= n; i++)
		method[i] = (char)fw_lower(r->method[i]);
	return json_object_get(json_object_get(paths, r->path), method);
}

/* The names of the query parameters, in the table's order. */
static void params_of(const json_t *op, struct fw_buf *query, bool *id)
{
	const json_t *p;
	size_t i;

	*id = false;
	json_array_foreach(json_object_get(op, "parameters"), i, p)
	{
		const char *in = json_string_value(json_object_get(p, "in")),
			   *name = json_string_value(json_object_get(p, "name"));

		*id = *id || (strcmp(in, "path") == 0 && strcmp(name, "id") == 0);
		if (strcmp(in, "query") == 0)
			fw_buf_addf(query, "%s%s", query->len ? " " : "", name);
	}
}

/*
 * The description names exactly the existing paths and methods, with their parameters, bodies and
 * scopes.
 */
START_TEST(described)
{
	static const char *const SCOPE[] = {"open", "push", "read", "admin", "feed", "path"};
	json_error_t je;
	json_t *doc = json_loads(http_openapi_text, JSON_REJECT_DUPLICATES, &je),
	       *paths = json_object_get(doc, "paths"), *path;
	const struct route *r;
	size_t n, operations = 0, readers = 0;
	const char *name;

	ck_assert_msg(doc != NULL, "line %d: %s", je.line, je.text);
	r = http_routes(&n);
	for (size_t i = 0; i < n; i++) {
		const json_t *op = operation(paths, &r[i]);
		struct fw_buf query = FW_BUF_INIT(0);
		bool id;

		if (is_of_accounts(&r[i])) { /* readers_described */
			ck_assert(op == NULL);
			readers++;
			continue;
		}

		ck_assert_msg(op != NULL, "%s %s is not described", r[i].method, r[i].path);
		params_of(op, &query, &id);
		ck_assert_msg(strcmp(query.p ? query.p : "", r[i].params ? r[i].params : "") == 0, "%s %s: parameters",
			r[i].method, r[i].path);
		ck_assert_msg(id == (strstr(r[i].path, "{id}") != NULL), "%s: id", r[i].path);
		ck_assert_str_eq(json_string_value(json_object_get(op, "x-scope")), SCOPE[r[i].scope]);
		ck_assert_msg((json_object_get(op, "requestBody") != NULL) == (r[i].body_max > 0), "%s %s: body",
			r[i].method, r[i].path);
		fw_buf_finish(&query);
	}
	json_object_foreach(paths, name, path) operations += json_object_size(path);
	ck_assert_uint_eq(operations + readers, n);
	json_decref(doc);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http routes");
	TCase *t = tcase_create("routes");

	tcase_add_test(t, numbers);
	tcase_add_test(t, methods);
	tcase_add_test(t, feeds);
	tcase_add_test(t, table);
	tcase_add_test(t, described);
	tcase_add_test(t, alias);
	tcase_add_test(t, readers_described);
	suite_add_tcase(s, t);
	return run_suite(s);
}
