/* SPDX-License-Identifier: ISC */
/*
 * How long a run would take, and in which order it would go, by what is stored of each feed: the plan of `run --once` without the
 * run. Times in microseconds.
 */
#ifndef FW_API_FORETELL_H
#define FW_API_FORETELL_H

#include "feedwheel/engine.h"

struct fw_foretell_rules {
	const char *order;    /* one of fw_foretell_order() */
	uint32_t slots, host_max;
	int64_t host_gap_us;
	uint32_t batch;       /* of the batch orders; 0: slots */
};
/* As the settings have them: slots of all workers. */
void fw_foretell_rules(const struct fw_config *c, struct fw_foretell_rules *out);
/* The i-th order's name, or NULL. */
const char *fw_foretell_order(size_t i);

struct fw_foretold {
	int64_t total_us, sum_us;
	int64_t bound_us;     /* the largest of these three: no order is faster */
	int64_t slots_us, longest_us, host_us;
	int64_t host_feed_id; /* a feed of the host with the longest chain, and how many it has; 0: none */
	size_t host_n;
	int64_t longest_feed_id;
};

struct fw_foretold_feed {
	int64_t feed_id;
	int64_t at_us, expect_us, dev_us;
	uint32_t slot;
	bool known;           /* of its own visits; else it is its host's average, or all feeds' */
};

struct fw_foretell;
/* What is due by then. The caller frees. Errors: the store's; FW_EUNSUP: it cannot list what is due; FW_ENOMEM. */
FW_MUST_CHECK int fw_foretell_read(struct fw_store *st, int64_t due_before_ms, struct fw_foretell **out, struct fw_err *err);
void fw_foretell_free(struct fw_foretell *f);
size_t fw_foretell_count(const struct fw_foretell *f, size_t *known);
/* Cost O(n log n). FW_EINVAL: no such order, or no slots; FW_ENOMEM. */
FW_MUST_CHECK int fw_foretell_make(struct fw_foretell *f, const struct fw_foretell_rules *r, struct fw_foretold *out, struct fw_err *err);
/* The i-th to begin in what was made last; i < count. */
void fw_foretell_feed(const struct fw_foretell *f, size_t i, struct fw_foretold_feed *out);

/* A feed's expected duration by phase: name look-up, connection, TLS, waiting, body; all 0: unknown. */
#define FW_FORETELL_PHASES 5
void fw_foretell_phases(const struct fw_feed *feed, int64_t part_us[FW_FORETELL_PHASES]);

#endif
