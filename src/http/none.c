/* SPDX-License-Identifier: ISC */
/* serve.h in a build without libmicrohttpd: every call that can fail does. */
#include "base/str.h"
#include "http/serve.h"

#define REMEDY "install libmicrohttpd and build with -Dserver=enabled"

static int none_refuse(const struct fw_config *c, struct fw_err *err)
{
	const char *where = c->listen ? c->listen : "";

	return fw_err_set(err, FW_EUNSUP, "%s%.150s: this build has no HTTP server (to have it, " REMEDY ")",
		c->listen ? "listen = " : "serve", where);
}

const char *fw_serve_library(void)
{
	return NULL;
}

int fw_serve_listen(const struct fw_config *c, int *fd, struct fw_err *err)
{
	(void)fd;
	return none_refuse(c, err);
}

void fw_serve_unlisten(const struct fw_config *c, int fd)
{
	(void)c;
	(void)fd;
}

int fw_serve(const struct fw_config *c, struct fw_meter *meter, int fd, int parent_fd, struct fw_err *err)
{
	(void)meter;
	(void)fd;
	(void)parent_fd;
	return none_refuse(c, err);
}

int fw_serve_check(const struct fw_config *c, fw_doctor_cb *cb, void *ctx)
{
	char found[300];

	if (!c->listen)
		return FW_DOCTOR_FINE;
	(void)fw_snprintf(found, sizeof(found), "listen = %.150s: this build has no HTTP server", c->listen);
	cb(ctx, "listen", FW_DOCTOR_BROKEN, found, "remove it from the configuration, or " REMEDY);
	return FW_DOCTOR_BROKEN;
}
