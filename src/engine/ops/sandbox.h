/* SPDX-License-Identifier: ISC */
/* The parts of the cage; api/sandbox.h is its door. */
#ifndef FW_ENGINE_SANDBOX_H
#define FW_ENGINE_SANDBOX_H

#include "base/arena.h"
#include "api/sandbox.h"

#ifdef FW_TEST_HOOKS
void fw_sandbox_trial(void); /* sandbox_trial.c */
#endif

bool fw_sandbox_is(const struct fw_config *c, const char *word); /* the setting */
/* A layer could not be had, e tells why, 0: it could. Logged, and 0; with sandbox = require FW_EINVAL. */
FW_MUST_CHECK int fw_sandbox_failed(const struct fw_config *c, enum fw_sandbox_layer layer, int e, struct fw_err *err);

/* ---- sandbox_calls.c: seccomp -------------------------------------------- */

const char *fw_calls_library(void);  /* with its version; NULL: not in this build */
bool fw_calls_here(void);            /* this build and this kernel can */
/* no_connect: connect() is limited too, so that what leads around it is refused. 0 or a negative errno. */
FW_MUST_CHECK int fw_calls_refuse(enum fw_sandbox_who who, bool no_connect);

/* ---- sandbox_land.c: Landlock -------------------------------------------- */

enum fw_land_right {
	FW_LAND_READ = 1 << 0,   /* of a folder: all below it */
	FW_LAND_WRITE = 1 << 1,
	FW_LAND_MAKE = 1 << 2,   /* files in this folder: make and remove */
};

#define FW_LAND_ABI_PORTS 4
int fw_land_abi(void);               /* 0: this kernel has none */

struct fw_land { /* rules that are being gathered; after the first failure there are no more */
	int fd, rc;                  /* rc: 0 or a negative errno */
	uint64_t files;              /* what is limited */
	bool ports;
};
/* no_connect: TCP only to the ports that are allowed. */
void fw_land_begin(struct fw_land *l, bool no_connect, bool no_abstract);
/* What is not there, or may not be looked at, is passed over. */
void fw_land_path(struct fw_land *l, const char *path, unsigned rights);
void fw_land_port(struct fw_land *l, unsigned port);
/* From now on; no new privileges must be asked for before. Ends what was begun, in any case. Returns rc. */
FW_MUST_CHECK int fw_land_enter(struct fw_land *l);

#endif
