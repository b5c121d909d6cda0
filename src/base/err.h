/* SPDX-License-Identifier: ISC */
/* Errors whose code is visibly not 0: compilers and analyzers do not look into fw_err_set(). */
#ifndef FW_BASE_ERR_H
#define FW_BASE_ERR_H

#include <assert.h>

#include "feedwheel/types.h"

/*
 * FW_ERR: fw_err_set() with a constant code. FW_ERR_CODE: the code that a failed call has set in
 * err.
 */
#define FW_ERR(err, code, ...) ((void)fw_err_set(err, code, __VA_ARGS__), (code))
#define FW_ERR_CODE(err) (assert((err)->rc), (err)->rc)

static inline int fw_no_memory(struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "out of memory");
}

#endif
