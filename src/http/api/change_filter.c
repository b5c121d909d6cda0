/* SPDX-License-Identifier: ISC */
/*
 * Which changes a client of /v1/changes or /v1/stream wants: the parameters feed, folder and types.
 */
#include "http/server/http.h"

struct feed_reading {
	struct change_filter *f;
	bool wrong;
};

static enum MHD_Result change_filter_feed(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct feed_reading *p = ctx;
	struct change_filter *f = p->f;

	(void)kind;
	if (strcmp(key, "feed") != 0 || f->feed_n == FW_N(f->feed_id)) /* more parameters are refused (head.c) */
		return MHD_YES;
	p->wrong = !fw_str_int(fw_str(value), &f->feed_id[f->feed_n]) || f->feed_id[f->feed_n] < 1;
	f->feed_n += !p->wrong;
	return p->wrong ? MHD_NO : MHD_YES;
}

/* types: a list of kinds. False: responded. */
static bool change_filter_types(struct request *r, struct change_filter *f, enum MHD_Result *ok)
{
	struct fw_str rest = http_param(r, "types");

	if (!rest.p)
		return true;
	f->kinds = 0;
	while (rest.p) {
		struct fw_str word = fw_str_split(rest, ',', &rest);
		unsigned bit = 0;

		for (enum fw_change_kind k = FW_CHANGE_NEW; k <= FW_CHANGE_GONE; k++)
			bit |= fw_str_eq(word, fw_str(fw_change_kind_name(k))) ? 1u << k : 0;
		f->kinds |= bit;
		if (!bit) {
			*ok = http_param_wrong(
				r, "types", "one or several of new, changed and gone, separated by commas");
			return false;
		}
	}
	return true;
}

bool http_change_filter(struct request *r, struct change_filter *f, enum MHD_Result *ok)
{
	struct feed_reading feeds = {.f = f};

	f->folder = fw_path_trim(http_param(r, "folder"));
	MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, change_filter_feed, &feeds);
	if (feeds.wrong) {
		*ok = http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_parameter",
			"invalid feed (expected a feed's id, a number from 1)");
		return false;
	}
	return change_filter_types(r, f, ok);
}

bool change_filter_wants(const struct change_filter *f, enum fw_change_kind kind, int64_t feed_id, struct fw_str folder)
{
	bool wants = !f->feed_n;

	for (size_t i = 0; i < f->feed_n && !wants; i++)
		wants = f->feed_id[i] == feed_id;
	return wants && f->kinds & 1u << kind &&
		(!f->folder.len || kind == FW_CHANGE_GONE || fw_path_is_within(folder, f->folder));
}
