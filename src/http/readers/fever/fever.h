/* SPDX-License-Identifier: ISC */
/*
 * The Fever API, one route with everything in its parameters. docs/fever.md describes it for its
 * clients. Its entrance is http_fever().
 *
 * A Fever key is the MD5 of "name:secret". So the secret is none that a person chose, but a token
 * of its own (FW_ACCOUNT_TOKEN_FEVER); an account without one has no Fever API.
 */
#ifndef FW_HTTP_READERS_FEVER_FEVER_H
#define FW_HTTP_READERS_FEVER_FEVER_H

#include "http/server/form.h"
#include "http/server/http.h"

struct reader;

#define FEVER_PAGE 50 /* items of one response, as the API says */
#define FEVER_IDS_MAX 10000
#define FEVER_KEY_LEN 32

/* ---- parse.c: pure --------------------------------------------------------------------------- */

/* A key: 32 hexadecimal digits, made lower case. */
FW_MUST_CHECK bool fever_key_read(struct fw_str s, char out[FEVER_KEY_LEN + 1]);
/*
 * Numbers between commas; empty ones are skipped. Of more than max the first are taken. False: one
 * is no number.
 */
FW_MUST_CHECK bool fever_ids_read(struct fw_str s, int64_t *out, size_t max, size_t *n);

enum fever_what { FEVER_NOTHING, FEVER_ITEM, FEVER_FEED, FEVER_GROUP };
enum fever_as { FEVER_READ, FEVER_UNREAD, FEVER_SAVED, FEVER_UNSAVED };
struct fever_mark {
	enum fever_what what; /* FEVER_NOTHING: the request marks nothing */
	enum fever_as as;     /* of feeds and groups only FEVER_READ */
	struct fw_str id;     /* of items a list, else a number */
	int64_t before_ms;    /* 0: any time */
};
/* NULL, or the name of the parameter that is missing or wrong. */
const char *fever_mark_read(const struct http_form *f, struct fever_mark *out);

/* ---- fever.c --------------------------------------------------------------------------------- */

enum MHD_Result fever_api(struct reader *rd);

#endif
