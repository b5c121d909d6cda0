/* SPDX-License-Identifier: ISC */
/*
 * Wrong tokens, counted by the network they come from (an IPv4 /24, an IPv6 /64): from where so many came within a time, no more are
 * judged until that time is over. The table has a fixed size, whoever comes from wherever. Any thread; time comes in as an argument.
 */
#ifndef FW_HTTP_GUESSES_H
#define FW_HTTP_GUESSES_H

#include "feedwheel/types.h"

#define GUESSES_WAYS 4
#define GUESSES_SETS 1024

struct guesses;

/* max wrong ones within_ms; 0: as many as they like. NULL: no memory. */
struct guesses *guesses_create(int64_t max, int64_t within_ms);
void guesses_destroy(struct guesses *g);
/* The network of an address in binary: 4 or 16 bytes, or none (a unix socket); never 0. */
uint64_t guesses_network(struct fw_str address);
/* For how long nothing from there is judged; 0: it is. Costs nothing while there is no such network. */
int64_t guesses_wait_ms(struct guesses *g, uint64_t network, int64_t now_ms);
/* One more. True: it was the last that is judged for now. */
bool guesses_wrong(struct guesses *g, uint64_t network, int64_t now_ms);

#endif
