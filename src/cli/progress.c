/* SPDX-License-Identifier: ISC */
/*
 * The progress line of `run` and `copy`: done, rate, ETA. On a terminal one line is redrawn in
 * place, with as many parts as fit its width. Elsewhere, with --progress, a line is printed every
 * few seconds. The rate is that of the last five seconds.
 */
#include <unistd.h>

#include "base/utf8.h"
#include "cli/progress.h"

#define LINE_EVERY_MS (5 * FW_SECOND_MS)
#define LINE_FIRST_MS 500
#define SAMPLE_MS 250

static void progress_sample(struct cli_progress *p, const struct fw_run_stats *s)
{
	size_t last = (p->at + PROGRESS_SAMPLES - 1) % PROGRESS_SAMPLES;

	if (p->n && s->elapsed_ms - p->sample[last].ms < SAMPLE_MS)
		return;
	p->sample[p->at].ms = s->elapsed_ms;
	p->sample[p->at].done = s->done;
	p->at = (p->at + 1) % PROGRESS_SAMPLES;
	if (p->n < PROGRESS_SAMPLES)
		p->n++;
}

/* Feeds per second over the samples (about five seconds). */
static double progress_rate(const struct cli_progress *p, const struct fw_run_stats *s)
{
	size_t oldest = (p->at + PROGRESS_SAMPLES - p->n) % PROGRESS_SAMPLES;
	int64_t ms = p->n ? s->elapsed_ms - p->sample[oldest].ms : s->elapsed_ms;
	uint64_t from = p->n ? p->sample[oldest].done : 0;

	if (ms < SAMPLE_MS) {
		ms = s->elapsed_ms;
		from = 0;
	}
	return ms > 0 ? (double)(s->done - from) * 1000 / (double)ms : 0;
}

static void progress_bar(struct fw_buf *b, const struct cli_term *t, double part, size_t cells)
{
	size_t full = (size_t)(part * (double)cells); /* rounded down: a full bar means done */

	fw_buf_addc(b, '[');
	for (size_t i = 0; i < cells; i++)
		fw_buf_adds(b, i < full ? t->utf8 ? "\xe2\x94\x81" : "#" : t->utf8 ? "\xe2\x94\x80" : "-");
	fw_buf_adds(b, "] ");
}

/* Append a part of the line if it fits the *left columns. */
static void progress_part(struct fw_buf *line, const char *style, bool colour, size_t *left, const char *text)
{
	size_t w = fw_utf8_width(text, strlen(text));

	if (w + 2 > *left)
		return;
	*left -= w + 2;
	if (line->len)
		fw_buf_adds(line, "  ");
	cli_paint(line, colour, style, fw_str(text));
}

/* Whole seconds, rounded up, to avoid flicker. */
static void progress_eta(char *dst, size_t cap, double seconds)
{
	char text[FW_RFC3339_MAX];
	int64_t whole = seconds < 1e9 ? (int64_t)seconds + 1 : (int64_t)1e9;

	if (whole < 60)
		(void)fw_snprintf(dst, cap, "ETA %d s", (int)whole);
	else
		(void)fw_snprintf(dst, cap, "ETA %s", fw_duration_text(text, whole * FW_SECOND_MS));
}

void cli_progress_line(struct cli_progress *p, const struct fw_run_stats *s, size_t columns, struct fw_buf *line)
{
	const struct cli_term *t = &p->c->term;
	char a[FW_RFC3339_MAX], b[FW_RFC3339_MAX], text[120];
	double per_s = progress_rate(p, s);
	size_t left = columns;
	bool to_go = s->total > 0 && (uint64_t)s->total > s->done;
	int64_t next_ms = s->next_due_ms > 0 ? s->next_due_ms - fw_now_ms() /* wall clock: as next_due_ms */ : 0;

	if (s->total > 0)
		(void)fw_snprintf(text, sizeof(text), "%s/%s", cli_number(a, (int64_t)s->done),
			cli_count(b, s->total, "feed", "feeds"));
	else
		(void)fw_snprintf(text, sizeof(text), "%s", cli_count(a, (int64_t)s->done, "feed", "feeds"));
	progress_part(line, CLI_BOLD, t->err_colour, &left, text);
	(void)fw_snprintf(text, sizeof(text), per_s < 10 ? "%.1f/s" : "%.0f/s", per_s);
	progress_part(line, NULL, false, &left, text);
	(void)fw_snprintf(text, sizeof(text), "%s new", cli_number(a, (int64_t)s->new_entries));
	progress_part(line, CLI_GREEN, t->err_colour, &left, text);
	(void)fw_snprintf(text, sizeof(text), "%s failed", cli_number(a, (int64_t)s->failed));
	progress_part(line, s->failed ? CLI_RED : NULL, t->err_colour, &left, text);
	if (to_go && per_s > 0) {
		progress_eta(text, sizeof(text), (double)((uint64_t)s->total - s->done) / per_s);
		progress_part(line, NULL, false, &left, text);
	}
	if (!s->in_flight && s->next_due_ms == FW_NO_DATE)
		(void)fw_snprintf(text, sizeof(text), "nothing to fetch");
	else if (!s->in_flight && next_ms > 0) /* rounded up: not 0 s before it is due */
		(void)fw_snprintf(text, sizeof(text), "next in %s",
			fw_duration_text(a, (next_ms + FW_SECOND_MS - 1) / FW_SECOND_MS * FW_SECOND_MS));
	else
		(void)fw_snprintf(text, sizeof(text), "%s in flight", cli_number(a, s->in_flight));
	progress_part(line, CLI_DIM, t->err_colour, &left, text);
	if (p->tty && s->total > 0 && left > 10) {
		struct fw_buf both = FW_BUF_INIT(0);

		/* the bar may only shrink, or it would move with each number's width */
		p->bar_cells = FW_MIN(p->bar_cells ? p->bar_cells : 30, left - 4);
		progress_bar(&both, t, FW_MIN((double)s->done / (double)s->total, 1.0), p->bar_cells);
		fw_buf_addstr(&both, fw_buf_str(line));
		fw_buf_reset(line);
		fw_buf_addstr(line, fw_buf_str(&both));
		fw_buf_finish(&both);
	}
}

void cli_progress_init(struct cli_progress *p, struct cli *c, bool lines)
{
	*p = (struct cli_progress){.c = c,
		.tty = c->term.err_tty && !c->quiet,
		.lines = lines && !c->term.err_tty,
		.next_line_ms = LINE_FIRST_MS};
}

static void progress_write(const struct fw_buf *b)
{
	/* a failed write to stderr cannot be reported; the next line replaces this one */
	if (b->len && write(STDERR_FILENO, b->p, b->len) < 0)
		return;
}

void cli_progress_draw(struct cli_progress *p, const struct fw_buf *line, int64_t elapsed_ms)
{
	struct fw_buf out = FW_BUF_INIT(0);

	if (p->tty) {
		/*
		 * leave the cursor at the left, so that a log line starts there and not after the
		 * bar
		 */
		fw_buf_adds(&out, "\r");
		fw_buf_addstr(&out, fw_buf_str(line));
		/* clear the rest of the old line after drawing, to avoid flicker */
		fw_buf_adds(&out, "\033[K\r");
		progress_write(&out);
		p->drawn = true;
	} else if (p->lines && elapsed_ms >= p->next_line_ms) {
		cli_note(p->c, "%s", line->p ? line->p : "");
		p->next_line_ms = elapsed_ms + LINE_EVERY_MS;
	}
	fw_buf_finish(&out);
}

void cli_progress_show(void *ctx, const struct fw_run_stats *s)
{
	struct cli_progress *p = ctx;
	struct fw_buf line = FW_BUF_INIT(0);

	progress_sample(p, s);
	if (p->tty || p->lines) {
		cli_progress_line(p, s, p->tty ? (size_t)p->c->term.width - 1 : 200, &line);
		cli_progress_draw(p, &line, s->elapsed_ms);
	}
	fw_buf_finish(&line);
}

void cli_progress_end(struct cli_progress *p)
{
	struct fw_buf out = FW_BUF_INIT(0);

	if (p->drawn)
		fw_buf_adds(&out, "\r\033[K");
	progress_write(&out);
	fw_buf_finish(&out);
	p->drawn = false;
}
