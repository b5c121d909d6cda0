/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/clock.h"
#include "base/utf8.h"

static struct {
	_Atomic int level;
	bool json;
	char process[32];
	_Atomic uint_fast64_t lost, reported;
} log_state = {.level = FW_LOG_INFO};

static const char *const LEVEL_NAME[] = {"error", "warn", "info", "debug"};

enum fw_log_level fw_log_level_of(const char *name)
{
	for (size_t i = 0; name && i < FW_N(LEVEL_NAME); i++) {
		if (fw_str_eq(fw_str(name), fw_str(LEVEL_NAME[i])))
			return (enum fw_log_level)i;
	}
	return FW_LOG_INFO;
}

void fw_log_setup(enum fw_log_level level, bool json, const char *process)
{
	atomic_store(&log_state.level, (int)level);
	log_state.json = json;
	fw_str_copy(log_state.process, sizeof(log_state.process), fw_str(process));
}

void fw_log_level_set(enum fw_log_level level)
{
	atomic_store(&log_state.level, (int)level);
}

bool fw_log_on(enum fw_log_level level)
{
	return (int)level <= atomic_load_explicit(&log_state.level, memory_order_relaxed);
}

uint64_t fw_log_lost(void)
{
	return atomic_load(&log_state.lost);
}

void fw_log_report_lost(void)
{
	uint64_t lost = fw_log_lost(), before = atomic_load(&log_state.reported);

	if (lost == before)
		return;
	fw_log(FW_LOG_ERROR, "%llu log lines could not be written", (unsigned long long)(lost - before));
	if (fw_log_lost() == lost) /* this line was written */
		atomic_store(&log_state.reported, lost);
}

void fw_log_escape(struct fw_buf *b, struct fw_str s)
{
	size_t n;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

		if (cp == '\n')
			fw_buf_adds(b, "\\n");
		else if (cp == 0xfffd && n == 1)
			fw_buf_addf(b, "\\x%02x", (unsigned char)s.p[i]);
		else if (cp < 0x80 && fw_utf8_is_unsafe(cp))
			fw_buf_addf(b, "\\x%02x", (unsigned)cp);
		else if (fw_utf8_is_unsafe(cp))
			fw_buf_addf(b, "\\u{%04x}", (unsigned)cp);
		else
			fw_buf_add(b, s.p + i, n);
	}
}

void fw_log(enum fw_log_level level, const char *fmt, ...)
{
	struct fw_buf line = FW_BUF_INIT(64 * 1024);
	char text[8 * 1024];
	char when[FW_RFC3339_MAX];
	int saved = errno;
	va_list ap;
	ssize_t n;

	if (!fw_log_on(level))
		return;
	va_start(ap, fmt);
	/* text that is too long is cut */
	if (vsnprintf(text, sizeof(text), fmt, ap) >= (int)sizeof(text))
		text[fw_utf8_cut(text, sizeof(text) - 1, sizeof(text) - 5)] = '\0';
	va_end(ap);
	fw_rfc3339(when, fw_now_ms()); /* wall clock: a log is of this machine */
	if (log_state.json) {
		struct fw_json j;

		fw_json_init(&j, &line, false);
		fw_json_object(&j, NULL);
		fw_json_cstr(&j, "time", when);
		fw_json_cstr(&j, "level", LEVEL_NAME[level]);
		fw_json_cstr(&j, "process", log_state.process);
		fw_json_cstr(&j, "text", text);
		fw_json_end(&j);
		fw_buf_addc(&line, '\n');
	} else {
		fw_buf_addf(&line, "%s %s %s: ", when, LEVEL_NAME[level],
			log_state.process[0] ? log_state.process : "feedwheel");
		fw_log_escape(&line, fw_str(text));
		fw_buf_addc(&line, '\n');
	}
	/* a single write, so that lines of several processes do not mix */
	do {
		n = line.rc ? -1 : write(STDERR_FILENO, line.p, line.len);
	} while (n < 0 && errno == EINTR && !line.rc);
	if (n < 0 || (size_t)n != line.len)
		atomic_fetch_add(&log_state.lost, 1);
	fw_buf_finish(&line);
	errno = saved;
}
