/* SPDX-License-Identifier: ISC */
/* Subscribing by a site's address, and by an OPML file. */
#include "base/err.h"
#include "http/readers/add.h"
#include "http/readers/address.h"

/*
 * Open an address, which address_close() follows in any case. False: responded. *why: the address
 * is invalid.
 */
static bool add_open(struct reader *rd, struct fw_str text, struct address *q, const char **why, enum MHD_Result *ok)
{
	*q = (struct address){.r = rd->r, .arena = &rd->p.arena, .err = &rd->err};
	*why = NULL;
	switch (address_open(q, text, false)) {
	case ADDRESS_READY:
		return true;
	case ADDRESS_INVALID:
		*why = rd->err.text;
		return true;
	case ADDRESS_LATER:
		*ok = MHD_YES;
		return false;
	case ADDRESS_BUSY:
		*ok = http_problem(rd->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", ADDRESS_BUSY_TEXT);
		return false;
	case ADDRESS_FAILED:
		break;
	}
	*ok = http_store_failed(rd->r, q->rc, &rd->err);
	return false;
}

/* Words that outlive the response. */
static const char *add_why(struct reader *rd, const struct address *q)
{
	rd->err = q->answer.err;
	return rd->err.text;
}

static int add_followed(struct reader *rd, struct address *q, struct fw_feed_new *f, const char **why)
{
	int rc = address_follow(q);

	if (!rc && q->fetched && !q->answer.doc)
		*why = add_why(rd, q);
	else if (!rc)
		rc = address_subscribe(q, rd->account.id, f, http_now_ms(rd->r));
	return rc;
}

bool reader_address_add(
	struct reader *rd, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = add_open(rd, text, &q, why, ok);
	int rc = 0;

	if (good && !*why)
		rc = add_followed(rd, &q, f, why);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return good && !rc;
}

static struct reader_found add_found(struct reader *rd, struct fw_str url, struct fw_str title)
{
	return (struct reader_found){
		.url = fw_arena_str(&rd->p.arena, url), .title = fw_arena_str(&rd->p.arena, title.len ? title : url)};
}

static int add_found_list(struct reader *rd, const struct address *q, struct reader_found **found, size_t *n)
{
	const struct fw_link *l;
	size_t max = 1;

	for (l = q->answer.feeds; l; l = l->next)
		max++;
	*found = fw_arena_calloc(&rd->p.arena, max, sizeof(**found));
	if (!*found)
		return fw_no_memory(&rd->err);
	if (!q->fetched) {
		(*found)[(*n)++] = add_found(rd, q->url, FW_STR_NONE);
	} else if (q->answer.doc) {
		(*found)[*n] = add_found(rd, q->url, q->answer.doc->title);
		(*found)[(*n)++].format = q->answer.doc->format;
	} else {
		for (l = q->answer.feeds; l; l = l->next)
			(*found)[(*n)++] = add_found(rd, l->href, l->title);
	}
	return rd->p.arena.failed ? fw_no_memory(&rd->err) : 0;
}

bool reader_address_look(struct reader *rd, struct fw_str text, struct reader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = add_open(rd, text, &q, why, ok);
	int rc = 0;

	*n = 0;
	if (good && !*why)
		rc = add_found_list(rd, &q, found, n);
	if (good && !rc && !*n && !*why)
		*why = add_why(rd, &q);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return good && !rc;
}

struct subscriptions reader_subscriptions(struct reader *rd)
{
	return (struct subscriptions){.store = rd->r->store,
		.account_id = rd->account.id,
		.now_ms = http_now_ms(rd->r),
		.arena = &rd->p.arena,
		.err = &rd->err};
}

bool reader_opml_add(struct reader *rd, size_t *n, size_t *refused_n, enum MHD_Result *ok)
{
	const struct subscriptions all = reader_subscriptions(rd);
	struct subscriptions_imported done;
	int rc = subscriptions_import(&all, fw_buf_str(&rd->r->body), &done);

	*n = done.added_n + done.had_n;
	*refused_n = done.refused_n;
	if (rc == FW_EFORMAT)
		*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", rd->err.text);
	else if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return !rc;
}
