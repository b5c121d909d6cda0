/* SPDX-License-Identifier: ISC */
/* The Google Reader API: the entrance of its routes, parameters, responses. */
#include "base/url.h"
#include "base/utf8.h"
#include "http/readers/greader/greader.h"
#include "base/banned.h"

/* ---- responses ------------------------------------------------------------------------------- */

enum MHD_Result greader_text(struct greader *g, unsigned status, const char *text)
{
	struct fw_buf out = FW_BUF_INIT(0);

	fw_buf_adds(&out, text);
	return http_send(g->r, status, "text/plain; charset=UTF-8", &out);
}

enum MHD_Result greader_ok(struct greader *g)
{
	return greader_text(g, MHD_HTTP_OK, "OK");
}

/*
 * Without an ETag: liferea remembers one, and takes a 304 for a failure, after which it updates no
 * feed.
 */
enum MHD_Result greader_json_status(struct greader *g, unsigned status, int rc)
{
	struct MHD_Response *m;

	if (rc)
		return http_store_failed(g->r, rc, &g->err);
	m = http_response(g->r, status, "application/json; charset=UTF-8", &g->p.out);
	if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-store"))
		return http_respond(g->r, status, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result greader_json(struct greader *g, int rc)
{
	return greader_json_status(g, MHD_HTTP_OK, rc);
}

enum MHD_Result greader_wrong(struct greader *g, const char *name, const char *expected)
{
	struct fw_str got = http_form_get(&g->form, name);

	if (!got.p)
		return http_problem(
			g->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "missing parameter: %s (%s)", name, expected);
	return http_problem(g->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "invalid %s '%.*s' (expected %s)", name,
		(int)FW_MIN(got.len, (size_t)60), got.p, expected);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static enum MHD_Result greader_query_add(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	http_form_add(ctx, fw_str(name), value ? fw_str(value) : FW_STR(""));
	return MHD_YES;
}

bool greader_form_read(struct greader *g, struct fw_str body, enum MHD_Result *ok)
{
	int rc = http_form_read(&g->p.arena, body, HTTP_PARAMS_MAX, &g->form);

	if (rc) {
		*ok = rc == FW_ELIMIT ? http_problem(g->r, MHD_HTTP_CONTENT_TOO_LARGE, "too_large",
						"the request has more than %d parameters", FORM_FIELDS_MAX) :
					http_store_failed(g->r, rc, &g->err);
		return false;
	}
	(void)MHD_get_connection_values(g->r->conn, MHD_GET_ARGUMENT_KIND, greader_query_add, &g->form);
	return true;
}

enum MHD_Result http_greader(struct request *r)
{
	/* an OPML file is no form */
	struct fw_str body = r->route->greader == greader_import ? FW_STR("") : fw_buf_str(&r->body);
	struct greader g = {.r = r};
	enum MHD_Result ok = MHD_NO;

	atomic_fetch_add_explicit(
		&r->thread->h->reader_n[r->route->scope == SCOPE_FEVER ? READER_FEVER : READER_GREADER], 1,
		memory_order_relaxed);
	list_page_begin(&g.p, r);
	g.p.arena.max_bytes = GREADER_ARENA_BYTES;
	if (greader_form_read(&g, body, &ok) && greader_authorize(&g, &ok) && http_account_may(r, g.account.id, &ok))
		ok = r->route->greader(&g);
	fw_buf_finish(&g.p.out);
	fw_arena_finish(&g.p.arena);
	return ok;
}
