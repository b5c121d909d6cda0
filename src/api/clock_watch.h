/* SPDX-License-Identifier: ISC */
/*
 * This machine's clock, compared with the store's. feedwheel follows the store's, so a wrong clock
 * harms only what others see of this machine: its log, TLS, headers Date. People are told once.
 */
#ifndef FW_API_CLOCK_WATCH_H
#define FW_API_CLOCK_WATCH_H

#include "feedwheel/types.h"

#define FW_CLOCK_TEXT_MAX 64

/* ahead_ms: as fw_store_ahead_ms() says. True: by more than 5 s. */
bool fw_clock_is_wrong(int64_t ahead_ms);
/*
 * "2 h behind the store's", "5 min ahead of the store's": the nearest minute from 10 min on, the
 * nearest second below, because ahead_ms is an estimate. Returns dst.
 */
char *fw_clock_text(char dst[FW_CLOCK_TEXT_MAX], int64_t ahead_ms);
/* Log that the clock is wrong, once, and once when it is right again. *wrong: false at first. */
void fw_clock_watch(bool *wrong, int64_t ahead_ms);

#endif
