/* SPDX-License-Identifier: ISC */
/*
 * The sender of orders: a thread that delivers the matches of orders (feedwheel-orders(7)). Of all
 * processes with a sender on a store, one at a time (the leader) sends.
 */
#ifndef FW_API_SENDER_H
#define FW_API_SENDER_H

#include "feedwheel/engine.h"

struct fw_sender;

struct fw_sender_options {
	const struct fw_config *config;
	/* from the sender's thread: fw_sender_is_idle() has become true; NULL: not wanted */
	void (*idle)(void *ctx);
	void *ctx;
};

/* Start the thread. Errors: FW_EINVAL names the setting; FW_EIO: no thread; FW_ENOMEM. */
FW_MUST_CHECK int fw_sender_open(const struct fw_sender_options *o, struct fw_sender **out, struct fw_err *err);
/*
 * Any thread: send what is due now, then become idle: when nothing is due, or another process
 * sends, or the store is unavailable, or after a minute.
 */
void fw_sender_finish(struct fw_sender *s);
bool fw_sender_is_idle(const struct fw_sender *s);
/*
 * Start nothing more. Attempts in flight have some seconds; those that have not ended are repeated.
 */
void fw_sender_stop(struct fw_sender *s);
/* Stop, wait for the thread, and free. NULL is allowed. */
void fw_sender_close(struct fw_sender *s);
/* Does this process send? */
bool fw_sender_leads(const struct fw_sender *s);

#endif
