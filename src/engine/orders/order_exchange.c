/* SPDX-License-Identifier: ISC */
#include "engine/orders/order_exchange.h"

#include "base/err.h"
#include "base/str.h"
#include "engine/orders/exchange.h"
#include "store/dsn.h"

#define PORT 5672
#define WORD_MAX 255 /* bytes of a short string of AMQP */

static struct fw_str exchange_word(struct fw_str given, const char *fallback)
{
	return given.len ? given : fw_str(fallback);
}

static int exchange_check(const struct order_exchange *e, struct fw_err *err)
{
	if (!e->host.len)
		return FW_ERR(err, FW_EINVAL, "amqp: needs a host: amqp://HOST/VHOST?exchange=NAME");
	if (!e->exchange.len && !e->routing_key.len)
		return FW_ERR(err, FW_EINVAL,
			"amqp: needs an exchange, or a queue: amqp://HOST/VHOST?exchange=NAME&routing_key=KEY, or "
			"?routing_key=QUEUE");
	if (e->vhost.len > WORD_MAX || e->exchange.len > WORD_MAX || e->routing_key.len > WORD_MAX)
		return FW_ERR(err, FW_EINVAL, "amqp: a vhost, an exchange and a routing key have up to %d bytes each",
			WORD_MAX);
	return 0;
}

int order_exchange_read(struct fw_arena *a, struct fw_str to, struct order_exchange *out, struct fw_err *err)
{
	static const char *const OPTION[] = {"exchange", "routing_key", NULL};
	const char *url = fw_arena_dup(a, to.p, to.len);
	struct fw_dsn d;
	int rc;

	*out = (struct order_exchange){.port = PORT};
	if (!exchange_library())
		return FW_ERR(err, FW_EINVAL,
			"this build has no AMQP (to have it, install librabbitmq and build with -Damqp=enabled)");
	/* librabbitmq opens the sockets of its TLS by itself: their addresses are not checked */
	if (fw_str_istarts(to, FW_STR("amqps:")))
		return FW_ERR(err, FW_EINVAL,
			"amqps: is not supported: use amqp:// to a TLS proxy on this machine, such as stunnel");
	rc = url ? fw_dsn_split(a, "amqp", url, &d, err) : fw_no_memory(err);
	rc = rc ? rc : fw_dsn_only(&d, OPTION, err);
	if (rc)
		return rc;
	out->user = exchange_word(d.user, "guest"); /* as all clients do */
	out->password = d.user.p ? exchange_word(d.password, "") : fw_str("guest");
	out->host = exchange_word(d.host, "");
	out->vhost = exchange_word(d.path, "/");
	out->exchange = exchange_word(fw_dsn_option(&d, "exchange"), "");
	out->routing_key = exchange_word(fw_dsn_option(&d, "routing_key"), "");
	out->port = d.port ? d.port : out->port;
	return exchange_check(out, err);
}
