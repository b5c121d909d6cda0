/* SPDX-License-Identifier: ISC */
/*
 * Fetches icons of feeds for a server (serve_discovery), in a thread that starts with the first
 * one: one request at a time, at least a second (or host_gap_ms) between two to one host, with the
 * limits and the address guard of all fetches. What it fetched, or that it could not, is in the
 * store (api/account.h).
 */
#ifndef FW_API_ICON_H
#define FW_API_ICON_H

#include "api/account.h"
#include "feedwheel/engine.h"

#define FW_ICONS_WAITING_MAX 256

struct fw_icons;

/* *out NULL: this server fetches nothing. Errors: FW_EINVAL names the setting; FW_ENOMEM. */
FW_MUST_CHECK int fw_icons_open(const struct fw_config *c, struct fw_icons **out, struct fw_err *err);
/*
 * Any thread: fetch this address soon, unless it waits already, or the store's icon is fresh by
 * then. Of more than FW_ICONS_WAITING_MAX the rest is left out: clients come again. NULL is
 * allowed.
 */
void fw_icons_want(struct fw_icons *w, struct fw_str url);
/* Cancel what is in flight, and wait for the thread. Later wishes are ignored. NULL is allowed. */
void fw_icons_stop(struct fw_icons *w);
void fw_icons_close(struct fw_icons *w); /* stops too. NULL is allowed */

#endif
