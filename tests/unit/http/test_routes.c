/* SPDX-License-Identifier: ISC */
/* The route of each path, and the rules that each row of the table keeps. */
#include <check.h>
#include <limits.h>
#include <stdlib.h>

#include "http/readers/greader/greader.h"
#include "http/server/http.h"
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

/* Outside of openapi.json: other projects' APIs, which documents of their own describe. */
static bool is_miniflux(const struct route *r)
{
	return fw_str_starts(fw_str(r->path), FW_STR("/miniflux/"));
}

static bool is_greader(const struct route *r)
{
	return r->scope == SCOPE_LOGIN || r->scope == SCOPE_ACCOUNT;
}

static bool is_fever(const struct route *r)
{
	return r->scope == SCOPE_FEVER;
}

/* The page's, which no document describes. */
static bool is_of_the_page(const struct route *r)
{
	return r->scope == SCOPE_WEB;
}

/* Readers find theirs below three paths, and nothing else is there. */
START_TEST(alias)
{
	char allow[HTTP_ALLOW_MAX];
	const struct route *r;
	int64_t id;

	for (int i = 0; i < 3; i++) {
		static const char *const BASE[] = {"", "/api/greader.php", "/miniflux"};
		const char *base = BASE[i];
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
	ck_assert_int_eq(find("GET", "/miniflux/healthz", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/miniflux/v1/timings", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/api/greader.php/miniflux/v1/me", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/v1/me", &id, allow, ""), HTTP_NO_PATH);
}
END_TEST

/* The document names exactly these routes, at the starts of rows. */
static void describes(const char *name, bool (*is)(const struct route *))
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

		if (!is(&r[i]))
			continue;
		want++;
		ck_assert(fw_snprintf(row, sizeof(row), "\n| `%s %s` |", r[i].method, r[i].path));
		ck_assert_msg(strstr(doc.p, row) != NULL, "not described:%s", row);
	}
	for (const char *at = doc.p; (at = strstr(at, "\n| `")) != NULL; at++)
		got += at[4] >= 'A' && at[4] <= 'Z' && fw_str_find(fw_str_sub(fw_str(at), 4, 12), FW_STR(" /"));
	ck_assert_uint_eq(got, want);
	fw_buf_finish(&doc);
}

START_TEST(readers_described)
{
	describes("greader.md", is_greader);
	describes("fever.md", is_fever);
	describes("miniflux.md", is_miniflux);
}
END_TEST

/* A second number is the last; the first is the route's. */
START_TEST(two_numbers)
{
	char allow[HTTP_ALLOW_MAX];
	int64_t id;

	ck_assert_int_eq(
		find("GET", "/miniflux/v1/feeds/3/entries/4711", &id, allow, "/miniflux/v1/feeds/{id}/entries/{id}"),
		HTTP_MATCH);
	ck_assert_int_eq(id, 3);
	ck_assert_int_eq(find("GET", "/miniflux/v1/feeds/3/entries/", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/miniflux/v1/feeds/3/entries/0", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/miniflux/v1/feeds/3/entries/x", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/miniflux/v1/feeds/0/entries/1", &id, allow, ""), HTTP_NO_PATH);
	ck_assert_int_eq(find("GET", "/miniflux/v1/feeds/3/entries/4/5", &id, allow, ""), HTTP_NO_PATH);
}
END_TEST

START_TEST(feeds)
{
	static const char *const GOOD[] = {"/feeds/x", "/feeds/News.atom", "/feeds/News/Tech.atom",
		"/feeds/folder/a b.rss", "/feeds/title:CVE OR \"remote code\".atom", "/feeds/{feed}"};
	static const char *const BAD[] = {"/feeds/", "/feedsx", "/t/", "/t/x", "/t/x/feeds", "/t/x/feeds/",
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

/* A path of the route. */
static void path_of(const struct route *r, char *path, size_t cap)
{
	static const char *const WORD[][2] = {{"{id}", "7"}, {"{token}", "aZ9"}, {"{", "a.Z_9-"}};
	struct fw_buf b = FW_BUF_INIT(0);
	const char *at = r->path;

	while (*at) {
		size_t i = 0;

		if (*at != '{') {
			fw_buf_addc(&b, *at++);
			continue;
		}
		while (!fw_str_starts(fw_str(at), fw_str(WORD[i][0])))
			i++;
		fw_buf_adds(&b, WORD[i][1]);
		at = strchr(at, '}') + 1;
	}
	ck_assert(fw_str_copy(path, cap, fw_buf_str(&b)));
	fw_buf_finish(&b);
}

/* Each route is found by its own path, whatever the order of the table. */
START_TEST(table)
{
	size_t n;
	const struct route *r = http_routes(&n), *found;
	char allow[HTTP_ALLOW_MAX], path[100];
	int64_t id;

	for (size_t i = 0; i < n; i++) {
		bool id_in = strstr(r[i].path, "{id}") != NULL, token = strstr(r[i].path, "{token}") != NULL;
		bool page = is_of_the_page(&r[i]);
		bool reader = r[i].scope == SCOPE_ACCOUNT || r[i].scope == SCOPE_FEVER || r[i].scope == SCOPE_BASIC;

		path_of(&r[i], path, sizeof(path));
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
		ck_assert((r[i].scope == SCOPE_ACCOUNT) == (r[i].run == http_greader));
		ck_assert((r[i].scope == SCOPE_FEVER) == (r[i].run == http_fever));
		ck_assert((r[i].scope == SCOPE_BASIC) == (r[i].run == http_miniflux));
		ck_assert(reader == (r[i].reader != NULL));
		ck_assert((r[i].run == http_web) == (r[i].web != NULL));
		ck_assert(page == (r[i].run == http_web || r[i].run == http_web_script || r[i].run == http_web_style));
		/* whose forms have a secret: what changes something has a body */
		ck_assert(!page || (r[i].body_max != 0) == (strcmp(r[i].method, "POST") == 0));
		/* no page of another site can send it: http_account_is_foreign(), http_web_may() */
		ck_assert((r[i].body == BODY_ANY) ==
			(r[i].body_max == 0 || r[i].scope == SCOPE_PATH || r[i].scope == SCOPE_LOGIN || reader ||
				page));
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

/* It names what is refused before the route's function sees a request; the rest is its default. */
static void refusals_are_described(const struct route *r, const json_t *op)
{
	bool token = r->scope != SCOPE_OPEN && r->scope != SCOPE_PATH;
	const struct {
		const char *status;
		bool may;
	} REFUSAL[] = {
		{"400", true},
		{"401", token},
		{"403", token},
		{"404", strchr(r->path, '{') != NULL}, /* of a path without the number or the secret */
		{"413", r->body_max > 0},
		{"415", r->body_max > 0},
		{"429", token},
		{"503", r->scope != SCOPE_OPEN},
		{"default", true},
	};

	for (size_t i = 0; i < FW_N(REFUSAL); i++) {
		const json_t *answer = json_object_get(json_object_get(op, "responses"), REFUSAL[i].status);

		ck_assert_msg(answer || !REFUSAL[i].may, "%s %s: %s", r->method, r->path, REFUSAL[i].status);
	}
	ck_assert_msg(json_object_get(op, "security") != NULL, "%s %s: security", r->method, r->path);
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
	size_t n, operations = 0, outside = 0;
	const char *name;

	ck_assert_msg(doc != NULL, "line %d: %s", je.line, je.text);
	r = http_routes(&n);
	for (size_t i = 0; i < n; i++) {
		const json_t *op = operation(paths, &r[i]);
		struct fw_buf query = FW_BUF_INIT(0);
		bool id;

		if (is_greader(&r[i]) || is_fever(&r[i]) || is_miniflux(&r[i]) || is_of_the_page(&r[i])) {
			/* readers_described, but for the page */
			ck_assert(op == NULL);
			outside++;
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
		refusals_are_described(&r[i], op);
		fw_buf_finish(&query);
	}
	json_object_foreach(paths, name, path) operations += json_object_size(path);
	ck_assert_uint_eq(operations + outside, n);
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
	tcase_add_test(t, two_numbers);
	suite_add_tcase(s, t);
	return run_suite(s);
}
