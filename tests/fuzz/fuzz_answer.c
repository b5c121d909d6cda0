/* SPDX-License-Identifier: ISC */
/*
 * A server's response: header lines up to an empty one, then a body in any coding that the headers
 * claim, and its Location as the next URL. The limits hold, no kept value has a control character,
 * and the next request is for http or https in plain ASCII.
 */
#include "base/str.h"
#include "fetch/internal.h"
#include "fuzz.h"

enum { MAX_BYTES = 1 << 20, MAX_RATIO = 50 };

static void body(struct fw_fetch_response *r)
{
	static const struct fw_decode_limits limits = {MAX_BYTES, MAX_RATIO};
	struct fw_decoder *d;
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err;
	int rc;

	FUZZ_CHECK(fw_decoder_create(&d) == 0);
	rc = fw_decode(d, fw_fetch_response_header(r, FW_H_CONTENT_ENCODING), &r->body, &out, &limits, &err);
	FUZZ_CHECK(rc == 0 || rc == FW_EFORMAT || rc == FW_ELIMIT);
	FUZZ_CHECK(out.len <= MAX_BYTES && (rc != FW_ELIMIT || out.len == 0));
	fw_decoder_destroy(d);
	fw_buf_finish(&out);
}

static void next_redirect(struct fw_str location)
{
	struct fw_buf to = FW_BUF_INIT(0);
	struct fw_wire_url h = {.port = 0};
	struct fw_err err;

	if (!fw_redirect_target(FW_STR("https://feeds.example/a/b?c"), location, &to) &&
		!fw_wire_url_prepare(&h, fw_buf_str(&to), &err)) {
		FUZZ_CHECK(fw_str_starts(fw_buf_str(&h.wire), h.https ? FW_STR("https://") : FW_STR("http://")));
		FUZZ_CHECK(h.port > 0 && h.port < 65536 && h.host[0]);
		for (size_t i = 0; i < h.wire.len; i++)
			FUZZ_CHECK(h.wire.p[i] > ' ' && h.wire.p[i] < 0x7f);
	}
	fw_buf_finish(&to);
	fw_buf_finish(&h.wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str rest = {(const char *)data, size};
	struct fw_fetch_config c;
	struct fw_fetch_response r = {.last = -1};

	fw_fetch_config_default(&c);
	c.max_body_bytes = MAX_BYTES;
	while (rest.p && !r.headers_done) {
		struct fw_str line = fw_str_split(rest, '\n', &rest);

		if (!fw_fetch_response_line(&r, &c, (struct fw_str){line.p, line.len + (rest.p != NULL)}))
			break;
	}
	FUZZ_CHECK(r.header_bytes <= c.max_header_bytes + size && r.header_n <= c.max_header_n + 1);
	for (int i = 0; i < FW_H_N; i++)
		FUZZ_CHECK(!r.value[i].is || fw_header_value_ok(fw_fetch_response_header(&r, (enum fw_header)i)));
	if (r.headers_done && rest.p && fw_fetch_response_body(&r, &c, rest.p, rest.len))
		body(&r);
	if (r.value[FW_H_LOCATION].is)
		next_redirect(fw_fetch_response_header(&r, FW_H_LOCATION));
	fw_fetch_response_finish(&r);
	return 0;
}
