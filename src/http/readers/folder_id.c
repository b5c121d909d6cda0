/* SPDX-License-Identifier: ISC */
#include "base/hash.h"
#include "http/readers/folder_id.h"

int64_t http_folder_id(struct fw_str name)
{
	if (!name.len)
		return FOLDER_ID_NONE;
	return FOLDER_ID_NONE + 1 + (int64_t)(fw_hash64(name.p, name.len) % (INT32_MAX - FOLDER_ID_NONE));
}
