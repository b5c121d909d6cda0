/* SPDX-License-Identifier: ISC */
/* The path of an order's file: its time in UTC. */
#include "base/clock.h"
#include "base/str.h"
#include "engine/orders/runner.h"

/* Writes what %letter stands for; false: nothing. */
static bool path_part(char *out, size_t cap, char letter, const struct fw_civil *t)
{
	switch (letter) {
	case 'Y':
		return fw_snprintf(out, cap, "%04d", t->year);
	case 'm':
		return fw_snprintf(out, cap, "%02d", t->month);
	case 'd':
		return fw_snprintf(out, cap, "%02d", t->day);
	case 'H':
		return fw_snprintf(out, cap, "%02d", t->hour);
	case 'M':
		return fw_snprintf(out, cap, "%02d", t->minute);
	case '%':
		return fw_snprintf(out, cap, "%%");
	default:
		return false;
	}
}

bool order_path(char *out, size_t cap, struct fw_str path, int64_t at_ms)
{
	struct fw_civil t;
	size_t n = 0;

	fw_civil_from_ms(at_ms, &t);
	for (size_t i = 0; i < path.len; i++) {
		bool percent = path.p[i] == '%';

		if (n + 1 >= cap || (percent && i + 1 == path.len))
			return false;
		if (!percent) {
			out[n++] = path.p[i];
			continue;
		}
		if (!path_part(out + n, cap - n, path.p[++i], &t))
			return false;
		n += strlen(out + n);
	}
	out[n] = 0;
	return true;
}
