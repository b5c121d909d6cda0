/* SPDX-License-Identifier: ISC */
/*
 * Data goes to stdout, messages to stderr. stdout is buffered here and not by stdio, to keep the
 * errno of the first failed write: a closed pipe ends the command silently, a full disk with an
 * error.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/cli.h"

#define OUT_BYTES ((size_t)64 << 10)
#define TABLE_ROWS 256

void cli_flush(struct cli *c)
{
	if (!c->out_errno)
		c->out_errno = c->out.rc ? ENOMEM : fw_write_all(STDOUT_FILENO, c->out.p, c->out.len);
	fw_buf_reset(&c->out);
}

void cli_out_bytes(struct cli *c, const void *p, size_t n)
{
	if (c->out_errno)
		return;
	fw_buf_add(&c->out, p, n);
	if (c->out.len >= OUT_BYTES || c->out.rc)
		cli_flush(c);
}

void cli_out(struct cli *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&c->out, fmt, ap);
	va_end(ap);
	cli_out_bytes(c, "", 0);
}

void cli_out_safe(struct cli *c, struct fw_str s)
{
	cli_fit(&c->out, &c->term, s, 0);
	cli_out_bytes(c, "", 0);
}

void cli_out_lines(struct cli *c, struct fw_str lines, size_t hang)
{
	while (lines.len) {
		cli_wrap(&c->out, fw_str_split(lines, '\n', &lines), c->term.out_tty ? (size_t)c->term.width : 0, hang);
		cli_out_bytes(c, "\n", 1);
	}
}

void cli_out_wrap(struct cli *c, size_t hang)
{
	struct fw_buf text = c->out;

	c->out = FW_BUF_INIT(0);
	c->out.rc = text.rc;
	cli_out_lines(c, fw_buf_str(&text), hang);
	cli_flush(c);
	fw_buf_finish(&text);
}

void cli_out_json(struct cli *c, const char *p, size_t n)
{
	size_t from = 0, len;

	for (size_t i = 0; i < n; i += len) {
		uint32_t cp = (unsigned char)p[i];

		len = 1;
		if (cp < 0x7f)
			continue;
		cp = fw_utf8_get(p + i, n - i, &len);
		if (!fw_utf8_is_unsafe(cp) && !cli_ascii(&c->term))
			continue;
		cli_out_bytes(c, p + from, i - from);
		from = i + len;
		if (cp > 0xffff)
			cli_out(c, "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10), 0xdc00 + (cp & 0x3ff));
		else
			cli_out(c, "\\u%04x", cp);
	}
	cli_out_bytes(c, p + from, n - from);
}

/* ---- stderr ---------------------------------------------------------------------------------- */

static FW_PRINTF(3, 0) void message_print(struct cli *c, const char *style, const char *fmt, va_list ap)
{
	struct fw_buf text = FW_BUF_INIT(16 << 10), whole = FW_BUF_INIT(64 << 10), line = FW_BUF_INIT(0);

	cli_flush(c);
	fw_buf_vaddf(&text, fmt, ap);
	cli_paint(&whole, c->term.err_colour, style, FW_STR("feedwheel:"));
	fw_buf_addc(&whole, ' ');
	cli_escape(&whole, c->term.err_tty && !c->term.utf8, fw_buf_str(&text));
	cli_wrap(&line, fw_buf_str(&whole), c->term.err_tty ? (size_t)c->term.width : 0, 2);
	fw_buf_addc(&line, '\n');
	/* a failed write to stderr cannot be reported */
	(void)fw_write_all(STDERR_FILENO, line.p, line.len);
	fw_buf_finish(&text);
	fw_buf_finish(&whole);
	fw_buf_finish(&line);
}

void cli_note(struct cli *c, const char *fmt, ...)
{
	va_list ap;

	if (c->quiet)
		return;
	va_start(ap, fmt);
	message_print(c, CLI_BOLD, fmt, ap);
	va_end(ap);
}

int cli_fail(struct cli *c, int exit_code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message_print(c, CLI_RED, fmt, ap);
	va_end(ap);
	return exit_code;
}

int cli_usage(struct cli *c, const char *fmt, ...)
{
	struct fw_buf text = FW_BUF_INIT(16 << 10);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (c->command)
		(void)cli_fail(c, CLI_USAGE, "%s: %s (see 'feedwheel help %s')", c->command->name, text.p ? text.p : "",
			c->command->name);
	else
		(void)cli_fail(c, CLI_USAGE, "%s (see 'feedwheel help')", text.p ? text.p : "");
	fw_buf_finish(&text);
	return CLI_USAGE;
}

int cli_store_failed(struct cli *c, const struct fw_err *err)
{
	return cli_fail(c, err->rc == FW_EINVAL || err->rc == FW_EUNSUP ? CLI_CONFIG : CLI_STORE, "%s", err->text);
}

/* ---- numbers and times ----------------------------------------------------------------------- */

char *cli_number(char dst[FW_RFC3339_MAX], int64_t n)
{
	return fw_count_text(dst, n);
}

char *cli_count(char dst[FW_RFC3339_MAX], int64_t n, const char *one, const char *many)
{
	char number[FW_COUNT_MAX];

	(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s %s", fw_count_text(number, n), n == 1 ? one : many);
	return dst;
}

char *cli_bytes(char dst[FW_RFC3339_MAX], uint64_t n)
{
	static const char *const UNIT[] = {"KiB", "MiB", "GiB", "TiB"};
	double v = (double)n / 1024;
	size_t i = 0;

	if (n < 1024) {
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%u byte%s", (unsigned)n, n == 1 ? "" : "s");
		return dst;
	}
	while (v >= 1024 && i + 1 < FW_N(UNIT)) {
		v /= 1024;
		i++;
	}
	(void)fw_snprintf(dst, FW_RFC3339_MAX, v < 10 ? "%.1f %s" : "%.0f %s", v, UNIT[i]);
	return dst;
}

char *cli_stamp(char dst[FW_RFC3339_MAX], int64_t at_ms)
{
	time_t t = (time_t)(at_ms / 1000);
	struct tm tm;

	if (at_ms == FW_NO_TIME || !localtime_r(&t, &tm))
		fw_str_copy(dst, FW_RFC3339_MAX, FW_STR("-"));
	else
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%04d-%02d-%02d %02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
			tm.tm_mday, tm.tm_hour, tm.tm_min);
	return dst;
}

char *cli_ago(const struct cli *c, char dst[FW_RFC3339_MAX], int64_t at_ms)
{
	char d[FW_RFC3339_MAX];
	int64_t ms = at_ms - c->now_ms;

	if (at_ms == 0 || at_ms == FW_NO_TIME)
		fw_str_copy(dst, FW_RFC3339_MAX, FW_STR("never"));
	else if (ms > 30 * FW_DAY_MS || ms < -30 * FW_DAY_MS)
		cli_stamp(dst, at_ms);
	else if (ms > -FW_SECOND_MS && ms < FW_SECOND_MS)
		fw_str_copy(dst, FW_RFC3339_MAX, FW_STR("now"));
	else if (ms > 0)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "in %s", fw_duration_text(d, ms));
	else
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s ago", fw_duration_text(d, -ms));
	return dst;
}

char *cli_when(const struct cli *c, char dst[2 * FW_RFC3339_MAX], int64_t at_ms)
{
	char stamp[FW_RFC3339_MAX], ago[FW_RFC3339_MAX];

	cli_stamp(stamp, at_ms);
	cli_ago(c, ago, at_ms);
	if (strcmp(stamp, ago) == 0)
		(void)fw_str_copy(dst, 2 * FW_RFC3339_MAX, fw_str(stamp));
	else
		(void)fw_snprintf(dst, 2 * FW_RFC3339_MAX, "%s (%s)", stamp, ago);
	return dst;
}

void cli_label(struct cli *c, const char *name)
{
	cli_out(c, "  %-*s ", CLI_LABEL_COLUMNS - 3, name);
}

void cli_line(struct cli *c, const char *name, struct fw_str value)
{
	if (!value.len)
		return;
	cli_label(c, name);
	cli_out_safe(c, value);
	cli_out(c, "\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

void cli_table_init(struct cli_table *t, struct cli *c, const struct cli_column *column, size_t n)
{
	*t = (struct cli_table){.c = c, .column = column, .column_n = n, .cap = TABLE_ROWS * n};
	fw_arena_init(&t->arena, 0);
	t->cell = calloc(t->cap, sizeof(*t->cell));
	for (size_t i = 0; i < n; i++)
		t->width[i] = strlen(column[i].head);
}

#define FLEX_LEAST 12 /* minimum width of a flexible column */

static bool column_is_shown(const struct cli_table *t, size_t i)
{
	return !t->column[i].spare || t->column[i].spare > t->spared;
}

/* The width of the inflexible columns and all gaps; *flex_n: the number of flexible columns. */
static size_t table_fixed_width(const struct cli_table *t, const size_t width[], size_t *flex_n)
{
	size_t fixed = 0;

	*flex_n = 0;
	for (size_t i = 0; i < t->column_n; i++) {
		if (!column_is_shown(t, i))
			continue;
		fixed += fixed || *flex_n ? 2 : 0;
		fixed += t->column[i].flex ? 0 : width[i];
		*flex_n += t->column[i].flex;
	}
	return fixed;
}

/*
 * Divide `have` equally among the flexible columns; a column that needs less leaves the rest to the
 * others.
 */
static void table_flex_share(const struct cli_table *t, size_t width[], size_t have, size_t flex_n)
{
	bool settled[CLI_COLUMN_MAX] = {false}, again = true;

	while (again && flex_n) {
		size_t each = have / flex_n;

		again = false;
		for (size_t i = 0; i < t->column_n; i++) {
			if (!t->column[i].flex || settled[i] || width[i] > each)
				continue;
			settled[i] = again = true;
			have -= width[i];
			flex_n--;
		}
	}
	for (size_t i = 0; i < t->column_n; i++) {
		if (t->column[i].flex && !settled[i])
			width[i] = FW_MAX(have / flex_n, (size_t)5);
	}
}

/*
 * Compute the widths for these rows. If the terminal is too narrow, drop columns (decided once per
 * table), then shrink flexible ones.
 */
static void table_widths_fit(struct cli_table *t, size_t width[])
{
	size_t have = (size_t)t->c->term.width, fixed, flex_n, flex = 0;

	for (size_t i = 0; i < t->column_n; i++) {
		width[i] = t->width[i];
		if (!t->c->term.out_tty && t->column[i].most)
			width[i] = FW_MIN(width[i], t->column[i].most);
		flex += t->column[i].flex ? width[i] : 0;
	}
	if (!t->c->term.out_tty)
		return;
	fixed = table_fixed_width(t, width, &flex_n);
	while (!t->headed && t->spared < CLI_COLUMN_MAX && fixed + FW_MIN(flex, flex_n * FLEX_LEAST) > have) {
		t->spared++;
		fixed = table_fixed_width(t, width, &flex_n);
	}
	if (flex_n && fixed + flex > have)
		table_flex_share(t, width, have > fixed ? have - fixed : 0, flex_n);
}

static void table_pad(struct fw_buf *b, size_t n)
{
	while (n--)
		fw_buf_addc(b, ' ');
}

static bool row_has_more(const struct cli_table *t, const struct cli_cell *cell, size_t i)
{
	while (++i < t->column_n) {
		if (cell[i].text.len && column_is_shown(t, i))
			return true;
	}
	return false;
}

static void table_row_print(const struct cli_table *t, const struct cli_cell *cell, const size_t width[])
{
	struct cli *c = t->c;
	struct fw_buf text = FW_BUF_INIT(0);

	for (size_t i = 0; i < t->column_n; i++) {
		size_t w, gap;

		if (!column_is_shown(t, i))
			continue;
		fw_buf_reset(&text);
		w = cli_fit(&text, &c->term, cell[i].text, c->term.out_tty || t->column[i].most ? width[i] : 0);
		gap = width[i] > w ? width[i] - w : 0;
		if (t->column[i].right)
			table_pad(&c->out, gap);
		cli_paint(&c->out, c->term.out_colour, cell[i].style, fw_buf_str(&text));
		if (row_has_more(t, cell, i))
			table_pad(&c->out, (t->column[i].right ? 0 : gap) + 2);
	}
	cli_out_bytes(c, "\n", 1);
	fw_buf_finish(&text);
}

static void table_rows_print(struct cli_table *t)
{
	struct cli_cell head[CLI_COLUMN_MAX];
	size_t width[CLI_COLUMN_MAX];

	if (!t->cell_n)
		return;
	table_widths_fit(t, width);
	for (size_t i = 0; !t->headed && i < t->column_n; i++)
		head[i] = (struct cli_cell){fw_str(t->column[i].head), CLI_BOLD};
	if (!t->headed)
		table_row_print(t, head, width);
	t->headed = true;
	for (size_t i = 0; i + t->column_n <= t->cell_n && !cli_out_failed(t->c); i += t->column_n)
		table_row_print(t, t->cell + i, width);
	t->cell_n = 0;
	fw_arena_reset(&t->arena, 0);
}

void cli_table_cell(struct cli_table *t, const char *style, struct fw_str text)
{
	struct fw_buf flat = FW_BUF_INIT(0);
	size_t i = t->cell_n % t->column_n, w;

	if (!t->cell) {
		t->c->out_errno = ENOMEM;
		return;
	}
	if (t->cell_n == t->cap)
		table_rows_print(t);
	w = cli_fit(&flat, &t->c->term, text, 0);
	t->width[i] = FW_MAX(t->width[i], w);
	t->cell[t->cell_n].text = fw_arena_str(&t->arena, fw_buf_str(&flat));
	t->cell[t->cell_n++].style = style;
	fw_buf_finish(&flat);
}

void cli_table_end(struct cli_table *t)
{
	table_rows_print(t);
	fw_arena_finish(&t->arena);
	free(t->cell);
	t->cell = NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void cli_json_begin(struct cli_json *w, bool pretty)
{
	w->buf = FW_BUF_INIT(0);
	fw_json_init(&w->j, &w->buf, pretty);
}

void cli_json_flush(struct cli_json *w, struct cli *c)
{
	if (w->buf.rc && !c->out_errno)
		c->out_errno = ENOMEM;
	if (w->buf.len)
		cli_out_json(c, w->buf.p, w->buf.len);
	fw_buf_reset(&w->buf);
}

void cli_json_end(struct cli_json *w, struct cli *c)
{
	if (!w->j.pretty) /* a pretty writer has ended the line */
		fw_buf_addc(&w->buf, '\n');
	cli_json_flush(w, c);
	fw_buf_finish(&w->buf);
}

struct fw_json *cli_json_object_begin(struct cli_json *w, const struct cli *c)
{
	cli_json_begin(w, !cli_as_lines(c));
	fw_json_object(&w->j, NULL);
	return &w->j;
}

void cli_json_object_end(struct cli_json *w, struct cli *c)
{
	fw_json_end(&w->j);
	cli_json_end(w, c);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void cli_list_begin(struct cli_list *l, struct cli *c, const struct cli_column *column, size_t n)
{
	*l = (struct cli_list){.c = c, .as_json = cli_as_json(c), .as_lines = cli_as_lines(c)};
	if (!l->as_json && column) {
		cli_table_init(&l->table, c, column, n);
	} else if (l->as_json && !l->as_lines) {
		cli_json_begin(&l->json, true);
		fw_json_array(&l->json.j, NULL);
	}
}

struct fw_json *cli_list_item(struct cli_list *l)
{
	if (l->as_lines)
		cli_json_begin(&l->json, false);
	return &l->json.j;
}

void cli_list_item_end(struct cli_list *l)
{
	if (l->as_lines)
		cli_json_end(&l->json, l->c);
	else
		cli_json_flush(&l->json, l->c);
}

void cli_list_end(struct cli_list *l)
{
	if (!l->as_json && l->table.c) {
		cli_table_end(&l->table);
	} else if (l->as_json && !l->as_lines) {
		fw_json_end(&l->json.j);
		cli_json_end(&l->json, l->c);
	}
}
