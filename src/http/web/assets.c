/* SPDX-License-Identifier: ISC */
/*
 * The page's style and script, embedded when feedwheel is built. Their addresses contain a hash of
 * their text, so a browser keeps them until they change.
 */
#include "base/hash.h"
#include "http/web/web.h"

uint64_t web_static_hash(const char *text)
{
	return fw_hash64(text, strlen(text));
}

static enum MHD_Result static_send(struct request *r, const char *type, const char *text)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(
		strlen(text), (char *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

	if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
		MHD_add_response_header(m, "X-Content-Type-Options", "nosniff") &&
		MHD_add_response_header(m, "Cross-Origin-Resource-Policy", "same-origin") &&
		MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "public, max-age=31536000, immutable"))
		return http_respond(r, MHD_HTTP_OK, m);
	if (m)
		MHD_destroy_response(m);
	return MHD_NO;
}

enum MHD_Result http_web_script(struct request *r)
{
	return static_send(r, "text/javascript; charset=UTF-8", web_script_text);
}

enum MHD_Result http_web_style(struct request *r)
{
	return static_send(r, "text/css; charset=UTF-8", web_style_text);
}
