/* SPDX-License-Identifier: ISC */
/*
 * The feed that a page names: a visit that finds a page instead of a feed ends its error with the
 * feeds that the page names. Writer and reader of that text are in engine/run/visit.c.
 */
#ifndef FW_API_NAMED_FEED_H
#define FW_API_NAMED_FEED_H

#include "feedwheel/store.h"

/* The first feed that the last visit found named; absent: none. Points into f->error. */
struct fw_str fw_named_feed(const struct fw_feed *f);

#endif
