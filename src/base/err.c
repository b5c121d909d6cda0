/* SPDX-License-Identifier: ISC */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * A quoted text may come from outside, and may be cut within a character: replace all but plain
 * text by '?'.
 */
static void err_text_sanitize(char *s)
{
	size_t len = strlen(s), n;

	for (size_t i = 0; i < len; i += n) {
		uint32_t cp = fw_utf8_get(s + i, len - i, &n);

		if (fw_utf8_is_unsafe(cp) || (cp == 0xfffd && n == 1))
			memset(s + i, '?', n);
	}
}

int fw_err_set(struct fw_err *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->rc = rc;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err_text_sanitize(err->text);
	return rc;
}

const char *fw_err_name(int rc)
{
	switch (rc) {
	case FW_OK:
		return "ok";
	case FW_EINVAL:
		return "invalid";
	case FW_EFORMAT:
		return "format";
	case FW_ENET:
		return "net";
	case FW_EGONE:
		return "gone";
	case FW_EAGAIN:
		return "busy";
	case FW_ELIMIT:
		return "limit";
	case FW_ENOMEM:
		return "memory";
	case FW_EIO:
		return "io";
	case FW_EUNSUP:
		return "unsupported";
	case FW_ENOTFOUND:
		return "not_found";
	case FW_EBLOCKED:
		return "blocked";
	case FW_EVERSION:
		return "version";
	case FW_ESTALE:
		return "stale";
	case FW_EUNUSABLE:
		return "unusable";
	case FW_ECLASH:
		return "clash";
	default:
		return "unknown";
	}
}
