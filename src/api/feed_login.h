/* SPDX-License-Identifier: ISC */
#ifndef FW_API_FEED_LOGIN_H
#define FW_API_FEED_LOGIN_H

#include "feedwheel/store.h"

/*
 * Before *f is subscribed: a feed that is stored keeps the login that it has, so one that is given
 * for it would be dropped. FW_EINVAL: *f gives another one than the feed has; the message is put
 * after the feed's address. Cost: one look-up if *f has a login.
 */
FW_MUST_CHECK int fw_feed_login_check(struct fw_store *st, const struct fw_feed_new *f, struct fw_err *err);

#endif
