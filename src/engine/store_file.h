/* SPDX-License-Identifier: ISC */
/* A store's URL from a file of its own, so that its password stands in no command line and in no configuration that others read. */
#ifndef FW_ENGINE_STORE_FILE_H
#define FW_ENGINE_STORE_FILE_H

#include "feedwheel/types.h"

/* Its first line; free() it. Errors: FW_EINVAL (it cannot be read, is empty, or others may read it), FW_ENOMEM. */
FW_MUST_CHECK int store_file_read(const char *path, char **url, struct fw_err *err);

#endif
