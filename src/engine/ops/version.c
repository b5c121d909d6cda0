/* SPDX-License-Identifier: ISC */
#include "base/buf.h"
#include "base/str.h"
#include "engine/sandbox/sandbox.h"
#include "engine/orders/exchange.h"
#include "fetch/fetch.h"
#include "feedwheel/engine.h"

void fw_library_versions(FILE *out)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const char *name;

	fw_fetch_versions(&b);
	if (!fw_str_ends(fw_buf_str(&b), FW_STR("\n")))
		fw_buf_addc(&b, '\n');
	fputs(b.p ? b.p : "", out);
	fputs("stores:", out);
	for (size_t i = 0; (name = fw_store_driver_at(i)); i++)
		fprintf(out, " %s", name);
	for (size_t i = 0; (name = fw_store_absent_at(i)); i++)
		fprintf(out, "%s %s", i ? "" : "\nstores not built in:", name);
	name = fw_seccomp_library();
	fprintf(out, "\nseccomp: %s\n", name ? name : "not built in");
	name = exchange_library();
	fprintf(out, "amqp: %s\n", name ? name : "not built in");
	fw_buf_finish(&b);
}
