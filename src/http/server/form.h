/* SPDX-License-Identifier: ISC */
/*
 * Forms: application/x-www-form-urlencoded (URL Standard, section 5.1), in one pass and within a
 * limit. Pure. The Content-Type of a request does not matter here, because clients send forms with
 * others.
 */
#ifndef FW_HTTP_SERVER_FORM_H
#define FW_HTTP_SERVER_FORM_H

#include "base/arena.h"
#include "base/str.h"

#define FORM_FIELDS_MAX 50000 /* an edit of 10,000 entries has as many */

struct http_form_field {
	struct fw_str name, value; /* decoded; bytes, not always UTF-8 */
};

struct http_form {
	struct http_form_field *field; /* in the order of the text */
	size_t n, cap;
};

/*
 * Make room for all fields of text and for `more` others, and read the text. Strings are in the
 * arena. Errors: FW_ELIMIT more than FORM_FIELDS_MAX fields; FW_ENOMEM.
 */
FW_MUST_CHECK int http_form_read(struct fw_arena *a, struct fw_str text, size_t more, struct http_form *out);
/*
 * The same for multipart/form-data (RFC 7578); type: the Content-Type, with the boundary. Values
 * are parts of text.
 * FW_EFORMAT: it has no boundary, or the text does not end with it.
 */
FW_MUST_CHECK int http_form_read_parts(
	struct fw_arena *a, struct fw_str type, struct fw_str text, size_t more, struct http_form *out);
/* Add a field, if there is room. */
void http_form_add(struct http_form *f, struct fw_str name, struct fw_str value);
/* The first value of this name; absent: none. */
struct fw_str http_form_get(const struct http_form *f, const char *name);
/* A number, digits only. Absent or empty: *out stays. More than max is max. False: it is wrong. */
FW_MUST_CHECK bool http_number_read(struct fw_str s, int64_t max, int64_t *out);
/* The same of the first value of this name. */
FW_MUST_CHECK bool http_form_number(const struct http_form *f, const char *name, int64_t max, int64_t *out);
/*
 * The next value of this name. *at is 0 at first. Absent: there are no more.
 */
struct fw_str http_form_next(const struct http_form *f, const char *name, size_t *at);
size_t http_form_count(const struct http_form *f, const char *name);

#endif
