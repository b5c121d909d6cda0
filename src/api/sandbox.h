/* SPDX-License-Identifier: ISC */
/*
 * The cage around each process of a run: what it does not need is taken from it before it reads a byte from outside, so that a hole in
 * a parser is worth little. Setting: sandbox. Without privileges, and for good: what a process has given up it never gets back.
 */
#ifndef FW_API_SANDBOX_H
#define FW_API_SANDBOX_H

#include "feedwheel/engine.h"

enum fw_sandbox_who { FW_SANDBOX_MASTER, FW_SANDBOX_WORKER, FW_SANDBOX_SERVER, FW_SANDBOX_WHO_N };

enum fw_sandbox_layer {
	FW_SANDBOX_PRIVILEGES = 1 << 0, /* no new ones, by set-user-ID programs for example */
	FW_SANDBOX_MEMORY = 1 << 1,     /* others of this user cannot read it; no core is written */
	FW_SANDBOX_FILES = 1 << 2,      /* only those that it needs (Landlock) */
	FW_SANDBOX_PORTS = 1 << 3,      /* TCP: none to listen at; the server's also none to connect to, but the store's (Landlock) */
	FW_SANDBOX_CALLS = 1 << 4,      /* no system calls that it never needs (seccomp) */
	FW_SANDBOX_LAYOUT = 1 << 5,     /* a memory layout of its own: its program is started anew (fw_run_options.anew) */
};
#define FW_SANDBOX_LAYER_N 6

/* "no new privileges" ... */
const char *fw_sandbox_layer_name(enum fw_sandbox_layer layer);
/* Layers for this process by these settings: those that it gets here, and those that this system or this build has not. 0 and 0: sandbox = off. */
void fw_sandbox_layers(const struct fw_config *c, enum fw_sandbox_who who, unsigned *have, unsigned *lack);
/* Why that layer is missing here, and what would bring it. */
const char *fw_sandbox_why(enum fw_sandbox_layer layer);
/* sandbox = require, and one of them lacks a layer: FW_EINVAL, before anything is started. who: bits 1 << FW_SANDBOX_*. */
FW_MUST_CHECK int fw_sandbox_check(const struct fw_config *c, unsigned who, struct fw_err *err);
/*
 * The calling process, which has one thread yet, goes in. With sandbox = auto what fails here is logged, and the rest holds.
 * Errors: FW_EINVAL with sandbox = require; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_sandbox_enter(const struct fw_config *c, enum fw_sandbox_who who, struct fw_err *err);

/* Makes what that process is going to write, where it still may make it in any folder. Before the mark, which notes what is there. */
void fw_sandbox_make(const struct fw_config *c, enum fw_sandbox_who who);

/*
 * Which files stand at the places that are allowed: a file that was replaced since (resolv.conf, a bundle of certificates) is another one,
 * which a process that is inside may not open. Whoever is outside finds out by comparing, and starts it anew.
 */
#define FW_SANDBOX_MARKS 96
struct fw_sandbox_mark {
	size_t n;
	uint64_t file[FW_SANDBOX_MARKS]; /* 0: none */
};
void fw_sandbox_mark(const struct fw_config *c, enum fw_sandbox_who who, struct fw_sandbox_mark *out);
/* now differs from was; a file that is just not there does not count. */
bool fw_sandbox_moved(const struct fw_sandbox_mark *was, const struct fw_sandbox_mark *now);

#endif
