/* SPDX-License-Identifier: ISC */
/* What a person can do about a feed that fails: the words of `why`, `show` and the page. */
#ifndef FW_API_FEED_REMEDY_H
#define FW_API_FEED_REMEDY_H

#include "feedwheel/store.h"

bool fw_feed_is_failing(const struct fw_feed *f);
/*
 * One or more sentences; "": it does not fail. If its last visit found a page that names a feed
 * (fw_named_feed()), subscribing to that one is the better remedy.
 */
const char *fw_feed_remedy(const struct fw_feed *f);

#endif
