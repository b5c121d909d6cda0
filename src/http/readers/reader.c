/* SPDX-License-Identifier: ISC */
/* A reader's request: entrance, parameters, responses. */
#include "http/readers/reader.h"

/* ---- responses ------------------------------------------------------------------------------- */

enum MHD_Result reader_text(struct reader *rd, unsigned status, const char *text)
{
	struct fw_buf out = FW_BUF_INIT(0);

	fw_buf_adds(&out, text);
	return http_send(rd->r, status, "text/plain; charset=UTF-8", &out);
}

bool reader_has_room(struct reader *rd)
{
	struct request *r = rd->r;

	if (rd->p.n &&
		(rd->p.out.len >= READER_BYTES ||
			!http_entries_reserve(r->thread->h, &r->reserved_bytes, rd->p.out.len)))
		return false;
	rd->p.n++;
	return true;
}

/*
 * Without an ETag: liferea remembers one, and takes a 304 for a failure, after which it updates no
 * feed.
 */
enum MHD_Result reader_json_status(struct reader *rd, unsigned status, int rc)
{
	struct MHD_Response *m;

	if (rc)
		return http_store_failed(rd->r, rc, &rd->err);
	m = http_response(rd->r, status, "application/json; charset=UTF-8", &rd->p.out);
	if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-store"))
		return http_respond(rd->r, status, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result reader_json(struct reader *rd, int rc)
{
	return reader_json_status(rd, MHD_HTTP_OK, rc);
}

enum MHD_Result reader_wrong(struct reader *rd, const char *name, const char *expected)
{
	struct fw_str got = http_form_get(&rd->form, name);

	if (!got.p)
		return http_problem(
			rd->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "missing parameter: %s (%s)", name, expected);
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "invalid %s '%.*s' (expected %s)", name,
		(int)FW_MIN(got.len, (size_t)60), got.p, expected);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static enum MHD_Result reader_query_add(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	http_form_add(ctx, fw_str(name), value ? fw_str(value) : FW_STR(""));
	return MHD_YES;
}

bool reader_form_read(struct reader *rd, struct fw_str body, enum MHD_Result *ok)
{
	int rc = http_form_read(&rd->p.arena, body, HTTP_PARAMS_MAX, &rd->form);

	if (rc) {
		*ok = rc == FW_ELIMIT ? http_problem(rd->r, MHD_HTTP_CONTENT_TOO_LARGE, "too_large",
						"the request has more than %d parameters", FORM_FIELDS_MAX) :
					http_store_failed(rd->r, rc, &rd->err);
		return false;
	}
	(void)MHD_get_connection_values(rd->r->conn, MHD_GET_ARGUMENT_KIND, reader_query_add, &rd->form);
	return true;
}

enum MHD_Result reader_serve(
	struct request *r, enum reader_api api, bool (*enter)(struct reader *rd, enum MHD_Result *ok))
{
	struct reader rd = {.r = r};
	enum MHD_Result ok = MHD_NO;

	atomic_fetch_add_explicit(&r->thread->h->reader_n[api], 1, memory_order_relaxed);
	list_page_begin(&rd.p, r);
	rd.p.arena.max_bytes = READER_ARENA_BYTES;
	if (enter(&rd, &ok))
		ok = r->route->reader(&rd);
	fw_buf_finish(&rd.p.out);
	fw_arena_finish(&rd.p.arena);
	return ok;
}
