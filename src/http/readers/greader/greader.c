/* SPDX-License-Identifier: ISC */
/* The Google Reader API: the entrance of its routes. */
#include "http/readers/greader/greader.h"

enum MHD_Result greader_ok(struct reader *rd)
{
	return reader_text(rd, MHD_HTTP_OK, "OK");
}

static bool greader_enter(struct reader *rd, enum MHD_Result *ok)
{
	/* an OPML file is no form */
	struct fw_str body = rd->r->route->reader == greader_import ? FW_STR("") : fw_buf_str(&rd->r->body);

	return reader_form_read(rd, body, ok) && greader_authorize(rd, ok) &&
		http_account_may(rd->r, rd->account.id, ok);
}

enum MHD_Result http_greader(struct request *r)
{
	return reader_serve(r, READER_GREADER, greader_enter);
}
