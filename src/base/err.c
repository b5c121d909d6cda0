/* SPDX-License-Identifier: ISC */
#include <stdarg.h>
#include <stdio.h>

#include "feedwheel/types.h"

int fw_err_set(struct fw_err *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->rc = rc;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* what is quoted may come from outside: no controls reach a terminal or a log from here */
	for (char *p = err->text; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
	return rc;
}

const char *fw_err_name(int rc)
{
	switch (rc) {
	case FW_OK: return "ok";
	case FW_EINVAL: return "invalid";
	case FW_EFORMAT: return "format";
	case FW_ENET: return "net";
	case FW_EGONE: return "gone";
	case FW_EAGAIN: return "busy";
	case FW_ELIMIT: return "limit";
	case FW_ENOMEM: return "memory";
	case FW_EIO: return "io";
	case FW_EUNSUP: return "unsupported";
	case FW_ENOTFOUND: return "not_found";
	case FW_EBLOCKED: return "blocked";
	case FW_EVERSION: return "version";
	case FW_ESTALE: return "stale";
	default: return "unknown";
	}
}
