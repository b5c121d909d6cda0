/* SPDX-License-Identifier: ISC */
/* A configuration on its way to another process of the same binary. */
#ifndef FW_ENGINE_CONFIG_TEXT_H
#define FW_ENGINE_CONFIG_TEXT_H

#include "base/buf.h"
#include "feedwheel/engine.h"

/* Every value, the store's URL with its password; but not where it stood (store_file, file). b->rc tells of a failure. */
void config_write(const struct fw_config *c, struct fw_buf *b);
/* Errors: FW_EINVAL it is not what was written; FW_ENOMEM. */
FW_MUST_CHECK int config_read(struct fw_str text, struct fw_config **out, struct fw_err *err);

#endif
