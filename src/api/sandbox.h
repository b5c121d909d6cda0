/* SPDX-License-Identifier: ISC */
/*
 * The sandbox of each process of a run. A process gives up what it does not need before it reads a
 * byte from outside, so that a vulnerability in a parser gains little. Setting: sandbox. It needs
 * no privileges, and is irreversible.
 */
#ifndef FW_API_SANDBOX_H
#define FW_API_SANDBOX_H

#include "feedwheel/engine.h"

enum fw_sandbox_role {
	FW_SANDBOX_MASTER,
	FW_SANDBOX_WORKER,
	FW_SANDBOX_SERVER,        /* beside workers */
	FW_SANDBOX_SENDER_SERVER, /* without workers: it delivers orders too */
	FW_SANDBOX_ROLE_N
};

enum fw_sandbox_layer {
	FW_SANDBOX_PRIVILEGES = 1 << 0, /* no new privileges, for example by set-user-ID programs */
	/* other processes of the user cannot read its memory; no core dumps */
	FW_SANDBOX_MEMORY = 1 << 1,
	FW_SANDBOX_FILES = 1 << 2, /* only the files that it needs (Landlock) */
	/*
	 * TCP: no listening; a server beside workers may connect only to the store's ports
	 * (Landlock)
	 */
	FW_SANDBOX_PORTS = 1 << 3,
	FW_SANDBOX_CALLS = 1 << 4, /* unneeded system calls are refused (seccomp) */
	/* its own memory layout: the child is a new program (fw_run_options.exec_args) */
	FW_SANDBOX_LAYOUT = 1 << 5,
};
#define FW_SANDBOX_LAYER_N 6

/* "no new privileges" ... */
const char *fw_sandbox_layer_name(enum fw_sandbox_layer layer);
/*
 * The layers of this process by these settings: available ones, and those that this system or build
 * lacks. Both are 0 with sandbox = off.
 */
void fw_sandbox_layers(const struct fw_config *c, enum fw_sandbox_role who, unsigned *available, unsigned *missing);
/* Why the layer is missing, and the remedy. */
const char *fw_sandbox_missing_why(enum fw_sandbox_layer layer);
/*
 * Checks, before anything is started, that no layer is missing with sandbox = require. who: bits 1
 * << FW_SANDBOX_*. Errors: FW_EINVAL.
 */
FW_MUST_CHECK int fw_sandbox_check(const struct fw_config *c, unsigned who, struct fw_err *err);
/*
 * Applies the sandbox to the calling process, which must be single-threaded. With sandbox = auto a
 * failed layer is logged, and the others apply.
 * Errors: FW_EINVAL with sandbox = require; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_sandbox_enter(const struct fw_config *c, enum fw_sandbox_role who, struct fw_err *err);

/*
 * Creates the files and folders that the process will write. Call it outside of the sandbox, before
 * fw_sandbox_mark(), which records the existing files.
 */
void fw_sandbox_create_files(const struct fw_config *c, enum fw_sandbox_role who);

/*
 * The identities of the allowed files. A file that is replaced later (resolv.conf, a CA bundle) is
 * another one, which the process may not open. A process outside compares the marks, and restarts
 * it.
 */
#define FW_SANDBOX_MARKS 96
struct fw_sandbox_mark {
	size_t n;
	uint64_t file[FW_SANDBOX_MARKS]; /* 0: no file */
};
void fw_sandbox_mark(const struct fw_config *c, enum fw_sandbox_role who, struct fw_sandbox_mark *out);
/* True if a file was replaced; a file that is missing now does not count. */
bool fw_sandbox_is_stale(const struct fw_sandbox_mark *was, const struct fw_sandbox_mark *now);

#endif
