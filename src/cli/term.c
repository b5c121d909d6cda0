/* SPDX-License-Identifier: ISC */
/*
 * The terminal's capabilities: colours (NO_COLOR, TERM=dumb), width, encoding. Escaping, wrapping
 * and cutting text for it.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/cli.h"

static bool env_is_set(const char *name)
{
	const char *v = getenv(name);

	return v && v[0];
}

static bool locale_is_utf8(void)
{
	static const char *const VAR[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < FW_N(VAR); i++) {
		struct fw_str v = fw_str(getenv(VAR[i]));

		if (v.len)
			return fw_str_ifind(v, FW_STR("utf-8")) || fw_str_ifind(v, FW_STR("utf8"));
	}
	return false;
}

void cli_term_init(struct cli_term *t, const char *colour)
{
	const char *term = getenv("TERM");
	bool able = !env_is_set("NO_COLOR") && term && term[0] && strcmp(term, "dumb") != 0;
	bool always = colour && strcmp(colour, "always") == 0, never = colour && strcmp(colour, "never") == 0;
	struct winsize ws;
	int64_t columns;

	t->out_tty = isatty(STDOUT_FILENO);
	t->err_tty = isatty(STDERR_FILENO);
	t->out_colour = always || (!never && able && t->out_tty);
	t->err_colour = always || (!never && able && t->err_tty);
	t->utf8 = locale_is_utf8();
	t->width = 80;
	if (fw_str_int(fw_str(getenv("COLUMNS")), &columns) && columns >= 20 && columns <= 1000)
		t->width = (int)columns;
	else if (ioctl(t->out_tty ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
		t->width = ws.ws_col;
}

void cli_paint(struct fw_buf *b, bool colour, const char *style, struct fw_str text)
{
	if (colour && style)
		fw_buf_addf(b, "\033[%sm", style);
	fw_buf_addstr(b, text);
	if (colour && style)
		fw_buf_adds(b, "\033[0m");
}

void cli_escape(struct fw_buf *b, bool ascii, struct fw_str s)
{
	size_t from = b->len, to = from, n;

	fw_log_escape(b, s);
	if (!ascii || b->rc)
		return;
	for (size_t i = from; i < b->len; i += n) {
		(void)fw_utf8_get(b->p + i, b->len - i, &n);
		if (n == 1)
			b->p[to++] = b->p[i];
		else if (fw_utf8_width(b->p + i, n)) /* width 0: combines with the character before */
			b->p[to++] = '?';
	}
	if (b->p)
		b->p[to] = '\0';
	b->len = to;
}

static size_t shown_width(struct fw_str s)
{
	size_t width = 0, from = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] != '\033')
			continue;
		width += fw_utf8_width(s.p + from, i - from);
		while (i < s.len && s.p[i] != 'm')
			i++;
		from = i + 1;
	}
	return width + (from < s.len ? fw_utf8_width(s.p + from, s.len - from) : 0);
}

void cli_wrap(struct fw_buf *out, struct fw_str line, size_t columns, size_t hang)
{
	size_t column = 0, i = 0;

	hang = FW_MIN(hang, columns / 2);
	while (i < line.len) {
		size_t from = i, gap, width;

		while (i < line.len && line.p[i] == ' ')
			i++;
		gap = i - from;
		from = i;
		if (from == line.len)
			break;
		while (i < line.len && line.p[i] != ' ' && (i == from || line.p[i - 1] != '|'))
			i++;
		width = shown_width(fw_str_sub(line, from, i));
		if (columns && column > hang && column + gap + width > columns) {
			fw_buf_addc(out, '\n');
			gap = hang;
			column = 0;
		}
		column += gap + width;
		while (gap--)
			fw_buf_addc(out, ' ');
		fw_buf_addstr(out, fw_str_sub(line, from, i));
	}
}

/* Append s with each run of white space as one space and controls escaped. */
static void term_flatten(struct fw_buf *b, bool ascii, struct fw_str s)
{
	size_t from = 0;

	s = fw_str_trim(s);
	for (size_t i = 0; i <= s.len; i++) {
		if (i < s.len && !fw_is_space((unsigned char)s.p[i]))
			continue;
		cli_escape(b, ascii, fw_str_sub(s, from, i));
		while (i < s.len && fw_is_space((unsigned char)s.p[i]))
			i++;
		from = i;
		if (i < s.len)
			fw_buf_addc(b, ' ');
	}
}

size_t cli_fit(struct fw_buf *b, const struct cli_term *t, struct fw_str s, size_t columns)
{
	struct fw_buf flat = FW_BUF_INIT(0);
	size_t width, at = 0, n, w, dots = t->utf8 ? 1 : 3;
	struct fw_str all;

	if (!s.p)
		s = FW_STR("");
	term_flatten(&flat, cli_ascii(t), s);
	all = fw_buf_str(&flat);
	width = fw_utf8_width(all.p, all.len);
	if (columns == 0 || width <= columns) {
		fw_buf_addstr(b, all);
	} else {
		width = 0;
		while (at < all.len) {
			(void)fw_utf8_get(all.p + at, all.len - at, &n);
			w = fw_utf8_width(all.p + at, n);
			if (width + w + dots > columns)
				break;
			width += w;
			at += n;
		}
		fw_buf_add(b, all.p, at);
		fw_buf_add(b, t->utf8 ? "\xe2\x80\xa6" : "...", t->utf8 ? 3 : 3);
		width += dots;
	}
	fw_buf_finish(&flat);
	return width;
}
