/* SPDX-License-Identifier: ISC */
/* A single fetch that can be ended early: src/engine/run/oneshot.c. */
#ifndef FW_API_FETCH_URL_H
#define FW_API_FETCH_URL_H

#include "feedwheel/engine.h"

#define FETCH_LOOK_MS 100 /* between two questions whether it ends */

/* Whether the fetch ends now; asked on the caller's thread. */
struct fetch_stop {
	bool (*is)(void *ctx);
	void *ctx;
};
/* As fw_fetch_url(). stop NULL: never. FW_EGONE: it was ended early; *err has no words then. */
FW_MUST_CHECK int fw_fetch_url_until(const struct fw_config *c, struct fw_str url, struct fw_str username,
	struct fw_str password, const struct fetch_stop *stop, struct fw_response *out, struct fw_err *err);

#endif
