/* SPDX-License-Identifier: ISC */
/* The live line of `run` and `copy`; see progress.c. */
#ifndef FW_CLI_PROGRESS_H
#define FW_CLI_PROGRESS_H

#include "cli/cli.h"

enum { PROGRESS_SAMPLES = 20 };

struct cli_progress {
	struct cli *c;
	bool tty;   /* redraw in place */
	bool lines; /* no terminal, but lines were asked for */
	bool drawn;
	size_t bar_cells; /* 0: not drawn yet */
	int64_t next_line_ms;
	struct { int64_t ms; uint64_t done; } sample[PROGRESS_SAMPLES]; /* a ring */
	size_t at, n;
};

void cli_progress_init(struct cli_progress *p, struct cli *c, bool lines);
void cli_progress_show(void *ctx, const struct fw_run_stats *s); /* for fw_run_options.progress */
/* The line's text for this many columns, without control of the cursor. */
void cli_progress_line(struct cli_progress *p, const struct fw_run_stats *s, size_t columns, struct fw_buf *line);
/* Any line: in place on a terminal (it must fit there); else now and then, when lines were asked for. */
void cli_progress_draw(struct cli_progress *p, const struct fw_buf *line, int64_t elapsed_ms);
void cli_progress_end(struct cli_progress *p); /* wipe the line */

#endif
