/* SPDX-License-Identifier: ISC */
/* A configuration as text, passed to another process of the same binary. */
#ifndef FW_ENGINE_CONFIG_TEXT_H
#define FW_ENGINE_CONFIG_TEXT_H

#include "base/buf.h"
#include "feedwheel/engine.h"

/*
 * Writes every value, including the store's URL with its password, but not the files that they came
 * from (store_file, file). Errors: b->rc.
 */
void config_write(const struct fw_config *c, struct fw_buf *b);
/* Errors: FW_EINVAL not written by config_write() of this binary; FW_ENOMEM. */
FW_MUST_CHECK int config_read(struct fw_str text, struct fw_config **out, struct fw_err *err);

#endif
