/* SPDX-License-Identifier: ISC */
/*
 * A reader: a request of an account, through one of the APIs below this room. Each API has one
 * entrance, which finds whose request it is and then calls the route's handler. A handler sees the
 * store only through the functions of api/account.h, with the id of that account: so it reaches
 * nothing of others.
 *
 * Handlers run in a pool thread. Each writes a response of at most READER_BYTES.
 */
#ifndef FW_HTTP_READERS_READER_H
#define FW_HTTP_READERS_READER_H

#include "api/account.h"
#include "http/server/form.h"
#include "http/server/http.h"

#define READER_BYTES ((size_t)64 << 20) /* a response ends at this size */
#define READER_ARENA_BYTES ((size_t)128 << 20)
#define READER_IDS_MAX 50000 /* ids of one response, or one edit */

struct reader_feeds;

/* A request of a reader: Google Reader, Miniflux or Fever. */
struct reader {
	struct request *r;
	struct fw_account account;
	struct fw_str token; /* that the request was authorized by */
	struct http_form form;
	struct list_page p;           /* the response, and the arena of the request */
	struct reader_feeds *folders; /* of the Google Reader API; NULL: not read yet */
	struct fw_err err;
};

/*
 * The entrance of an API: begin, and call the route's handler if `enter` finds that it may, which
 * sets rd->account and rd->form; then end. `enter` returns false: responded.
 */
enum MHD_Result reader_serve(
	struct request *r, enum reader_api api, bool (*enter)(struct reader *rd, enum MHD_Result *ok));

/* Responses. Each may be the last call of a handler. */
enum MHD_Result reader_text(struct reader *rd, unsigned status, const char *text);
enum MHD_Result reader_json(struct reader *rd, int rc); /* 200 and rd->p, or the error of the store */
enum MHD_Result reader_json_status(struct reader *rd, unsigned status, int rc);
/* 400: this parameter is missing or wrong. */
enum MHD_Result reader_wrong(struct reader *rd, const char *name, const char *expected);
/* Set rd->form: the query's parameters, and those of a body that is a form. False: responded. */
FW_MUST_CHECK bool reader_form_read(struct reader *rd, struct fw_str body, enum MHD_Result *ok);

/*
 * May one more item be written into rd->p? A response ends at a size, and when other requests use
 * the memory. Its first item always fits.
 */
FW_MUST_CHECK bool reader_has_room(struct reader *rd);

#endif
