/* SPDX-License-Identifier: ISC */
/* The parts of the sandbox inside the engine; api/sandbox.h is its interface. */
#ifndef FW_ENGINE_SANDBOX_H
#define FW_ENGINE_SANDBOX_H

#include "base/arena.h"
#include "api/sandbox.h"

/* true if setting sandbox has this value */
bool fw_sandbox_is(const struct fw_config *c, const char *word);
/*
 * Reports the result e of applying a layer: an errno value, or 0. A failure is logged and returns
 * 0; with sandbox = require it returns FW_EINVAL.
 */
FW_MUST_CHECK int fw_sandbox_failed(const struct fw_config *c, enum fw_sandbox_layer layer, int e, struct fw_err *err);

/* sandbox_preload.c: loads the libraries that this child would load late. */
void fw_sandbox_preload(const struct fw_config *c);

/*
 * sandbox_caps.c: gives up all capabilities of this process; keep_files: but those by which root
 * uses files of other users. Returns 0 or a negative errno.
 */
FW_MUST_CHECK int fw_caps_drop(bool keep_files);

/* ---- sandbox_seccomp.c: seccomp -------------------------------------------- */

const char *fw_seccomp_library(void); /* name and version; NULL: not in this build */
bool fw_seccomp_is_supported(void);   /* supported by this build and this kernel */
/*
 * Installs the filter. no_connect: connect() is limited by Landlock, so calls that bypass it are
 * refused too. Returns 0 or a negative errno.
 */
FW_MUST_CHECK int fw_seccomp_apply(enum fw_sandbox_role who, bool no_connect);

/* ---- sandbox_landlock.c: Landlock -------------------------------------------- */

enum fw_landlock_right {
	FW_LANDLOCK_READ = 1 << 0, /* a folder: everything below it */
	FW_LANDLOCK_WRITE = 1 << 1,
	FW_LANDLOCK_MAKE = 1 << 2, /* create and remove files in this folder */
	/*
	 * keep a descriptor of it: /proc forgets its files when memory is short, and a rule is for
	 * the one that was there
	 */
	FW_LANDLOCK_KEPT = 1 << 3,
};

#define FW_LANDLOCK_ABI_PORTS 4
int fw_landlock_abi(void); /* 0: this kernel has no Landlock */

/* a ruleset under construction; after the first failure rules are ignored */
struct fw_landlock {
	int fd, rc;     /* rc: 0 or a negative errno */
	uint64_t files; /* the rights that are limited */
	bool ports;
};
/*
 * Starts a ruleset. no_connect: TCP connections only to the allowed ports. no_abstract: no
 * connections to abstract unix sockets of other processes.
 */
void fw_landlock_begin(struct fw_landlock *l, bool no_connect, bool no_abstract);
/* Allows a path. A path that is missing or inaccessible is skipped. */
void fw_landlock_path(struct fw_landlock *l, const char *path, unsigned rights);
void fw_landlock_port(struct fw_landlock *l, unsigned port);
/*
 * Applies the ruleset to this process and closes it, also after a failure. The process must have
 * set no_new_privs before. Returns rc.
 */
FW_MUST_CHECK int fw_landlock_enter(struct fw_landlock *l);

#endif
