/* SPDX-License-Identifier: ISC */
/*
 * Logging: one event, one line on stderr, as "2026-11-21T12:30:00.123Z info worker 2: text" or as a
 * JSON object. Bytes below 0x20, DEL, C1, U+2028, U+2029 and bidi controls in the text are escaped
 * (LOG-01). Writing never blocks for long and never fails the caller: lost lines are counted
 * (LOG-03). Any thread.
 */
#ifndef FW_BASE_LOG_H
#define FW_BASE_LOG_H

#include "feedwheel/types.h"
#include "base/buf.h"

enum fw_log_level { FW_LOG_ERROR, FW_LOG_WARN, FW_LOG_INFO, FW_LOG_DEBUG };

/* "error", "warn", "info" or "debug"; info for anything else and for NULL. */
enum fw_log_level fw_log_level_of(const char *name);
/* process: "feedwheel" (a command, or the master), "worker 3", "serve"; copied */
void fw_log_setup(enum fw_log_level level, bool json, const char *process);
void fw_log_level_set(enum fw_log_level level);
bool fw_log_on(enum fw_log_level level);
FW_PRINTF(2, 3) void fw_log(enum fw_log_level level, const char *fmt, ...);
uint64_t fw_log_lost(void);
/*
 * Log how many lines were lost since the last such report, once that can be written. Cheap when
 * none were.
 */
void fw_log_report_lost(void);
/*
 * Append s with controls escaped as \n, \xNN or \u{NNNN}. For all untrusted text in a terminal or a
 * log.
 */
void fw_log_escape(struct fw_buf *b, struct fw_str s);

#define fw_error(...) fw_log(FW_LOG_ERROR, __VA_ARGS__)
#define fw_warn(...) fw_log(FW_LOG_WARN, __VA_ARGS__)
#define fw_info(...) fw_log(FW_LOG_INFO, __VA_ARGS__)
#define fw_debug(...)                                      \
	do {                                               \
		if (fw_log_on(FW_LOG_DEBUG))               \
			fw_log(FW_LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
