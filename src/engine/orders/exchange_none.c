/* SPDX-License-Identifier: ISC */
/* In place of exchange.c, in a build without librabbitmq. */
#include "base/err.h"
#include "engine/orders/exchange.h"

int exchange_publish(const struct exchange_batch *b, struct fw_err *err)
{
	(void)b;
	return FW_ERR(err, FW_EUNSUP, "this build has no AMQP");
}

const char *exchange_library(void)
{
	return NULL;
}
