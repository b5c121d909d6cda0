/* SPDX-License-Identifier: ISC */
/* HTTP Basic (RFC 7617): a name and a password in an Authorization header. Pure. */
#ifndef FW_HTTP_AUTH_BASIC_H
#define FW_HTTP_AUTH_BASIC_H

#include "base/str.h"

#define BASIC_MAX 1536 /* bytes of "name:password" that are read */

/*
 * Read the header into buffer, where the results point to. False: it is not Basic, not base64, has
 * no colon, or is too long.
 */
FW_MUST_CHECK bool basic_read(
	struct fw_str header, char buffer[BASIC_MAX], struct fw_str *name, struct fw_str *password);

#endif
