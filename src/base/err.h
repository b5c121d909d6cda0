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

/*
 * Does waiting not mend it? The store is damaged, refuses this program, or is newer than it. Who
 * runs for long says it once and ends, or goes on with what needs no store; it does not retry as in
 * an outage.
 */
static inline bool fw_err_is_permanent(int rc)
{
	return rc == FW_EUNUSABLE || rc == FW_EVERSION;
}

/* May the same request succeed later? */
static inline bool fw_err_is_transient(int rc)
{
	return rc == FW_EAGAIN || rc == FW_EIO || rc == FW_ENOMEM;
}

/* Is it the store's fault, and not that of what was to be stored? Then the row is kept. */
static inline bool fw_err_is_of_store(int rc)
{
	return fw_err_is_transient(rc) || fw_err_is_permanent(rc);
}

static inline int fw_no_memory(struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "out of memory");
}

#endif
