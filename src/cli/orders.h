/* SPDX-License-Identifier: ISC */
/* order: what cmd_order.c and orderview.c share. */
#ifndef FW_CLI_ORDERS_H
#define FW_CLI_ORDERS_H

#include "cli/cli.h"
#include "api/order.h"

/* Print the error of a call. query: the one of the order, or absent. An exit code. */
int order_failed(struct cli *c, struct fw_str query, const struct fw_err *err);
/* The argument behind the command's word. 0 or an exit code. */
FW_MUST_CHECK int order_argument(struct cli *c, struct fw_str *name);
/* Say that the index is not complete, so the result is not. */
void order_note_incomplete(struct cli *c, int64_t unindexed_n);
/* Member "order", and "secret" if it is present. */
void order_print_json(struct cli *c, const struct fw_order_status *s, struct fw_str secret);

/* ---- orderview.c: what shows orders ---------------------------------------------------------- */

int order_command_list(struct cli *c);
int order_command_show(struct cli *c);
int order_command_test(struct cli *c);
int order_command_dead(struct cli *c);

#endif
