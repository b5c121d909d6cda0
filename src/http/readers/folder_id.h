/* SPDX-License-Identifier: ISC */
/*
 * Folders as numbers, for APIs that know them so: groups of Fever, categories of Miniflux. Pure.
 *
 * A folder is only a name, so its number is made of the name: it is the same after a restart, on
 * each of several servers, and in each API. A folder that is renamed is another one. Two folders of
 * an account have the same number with a chance of 1 in 2 billion; to such clients they are one.
 */
#ifndef FW_HTTP_READERS_FOLDER_ID_H
#define FW_HTTP_READERS_FOLDER_ID_H

#include "base/str.h"

#define FOLDER_ID_NONE 1 /* of what is in no folder: name "" */

/* FOLDER_ID_NONE for "", else from 2 to 2^31 - 1, because some clients use 32 bits. */
int64_t http_folder_id(struct fw_str name);

#endif
