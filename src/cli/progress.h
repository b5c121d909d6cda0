/* SPDX-License-Identifier: ISC */
/*
 * The progress line of `run` and `copy`: init, show or draw again and again, end. See progress.c.
 * One thread.
 */
#ifndef FW_CLI_PROGRESS_H
#define FW_CLI_PROGRESS_H

#include "cli/cli.h"

enum { PROGRESS_SAMPLES = 20 };

struct cli_progress {
	struct cli *c;
	bool tty;   /* redraw in place */
	bool lines; /* stderr is not a terminal, but --progress was given */
	bool drawn;
	size_t bar_cells; /* 0: not drawn yet */
	int64_t next_line_ms;
	struct {
		int64_t ms;
		uint64_t done;
	} sample[PROGRESS_SAMPLES]; /* a ring */
	size_t at, n;
};

void cli_progress_init(struct cli_progress *p, struct cli *c, bool lines);
void cli_progress_show(void *ctx, const struct fw_run_stats *s); /* for fw_run_options.progress */
/* Append the line's text for this many columns, without cursor control. */
void cli_progress_line(struct cli_progress *p, const struct fw_run_stats *s, size_t columns, struct fw_buf *line);
/* Draw any line: in place on a terminal, where it must fit; else, with lines, every few seconds. */
void cli_progress_draw(struct cli_progress *p, const struct fw_buf *line, int64_t elapsed_ms);
void cli_progress_end(struct cli_progress *p); /* clear the line */

#endif
