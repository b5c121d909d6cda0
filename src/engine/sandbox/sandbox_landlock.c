/* SPDX-License-Identifier: ISC */
/*
 * Landlock: since Linux 5.13 a process can give up access to all files except those it names. The
 * interface is declared here, because system headers are often older than the kernel. Rights that
 * only newer kernels can limit are limited there, and unlimited on older ones.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/sandbox/sandbox.h"

#ifdef __linux__
/* The same on all architectures except alpha, whose headers define them. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define landlock(call, ...) syscall(SYS_landlock_##call, __VA_ARGS__)
#else /* no Landlock */
#define O_PATH 0
#define landlock(call, ...) (errno = ENOSYS, -1L)
#endif

#define QUERY_ABI 1u /* flag of create_ruleset */
enum { RULE_PATH = 1, RULE_PORT = 2 };

#define BIT(n) (UINT64_C(1) << (n))
enum {
	WRITE_FILE = 1,
	READ_FILE = 2,
	READ_DIR = 3,
	REMOVE_FILE = 5,
	MAKE_REG = 8,
	REFER = 13,
	TRUNCATE = 14,
	IOCTL_DEV = 15
};
/* the rights that a rule for a regular file may have */
#define OF_FILES (BIT(WRITE_FILE) | BIT(READ_FILE) | BIT(TRUNCATE))
#define BIND_TCP BIT(0)
#define CONNECT_TCP BIT(1)
#define ABSTRACT_UNIX BIT(0)
#define SIGNALS BIT(1)

struct ruleset {
	uint64_t files, ports, scoped;
};

struct path_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

struct port_rule {
	uint64_t allowed, port;
};

int fw_landlock_abi(void)
{
	long abi = landlock(create_ruleset, NULL, (size_t)0, QUERY_ABI);

#ifdef FW_TEST_HOOKS
	if (getenv("FEEDWHEEL_TEST_LANDLOCK_ABI")) /* an older kernel */
		abi = FW_MIN(abi, (long)(getenv("FEEDWHEEL_TEST_LANDLOCK_ABI")[0] - '0'));
#endif
	return abi > 0 ? (int)abi : 0;
}

/* All file rights of this version. */
static uint64_t landlock_file_rights(int abi)
{
	return BIT(REFER) - 1 + (abi >= 2 ? BIT(REFER) : 0) + (abi >= 3 ? BIT(TRUNCATE) : 0) +
		(abi >= 5 ? BIT(IOCTL_DEV) : 0);
}

void fw_landlock_begin(struct fw_landlock *l, bool no_connect, bool no_abstract)
{
	int abi = fw_landlock_abi();
	struct ruleset r = {.files = landlock_file_rights(abi)};

	if (abi >= FW_LANDLOCK_ABI_PORTS)
		r.ports = BIND_TCP | (no_connect ? CONNECT_TCP : 0);
	if (abi >= 6)
		r.scoped = SIGNALS | (no_abstract ? ABSTRACT_UNIX : 0);
	/* a kernel accepts a longer structure if the members it does not know are 0 */
	*l = (struct fw_landlock){
		.fd = (int)landlock(create_ruleset, &r, sizeof(r), 0u), .files = r.files, .ports = r.ports != 0};
	l->rc = l->fd < 0 ? -errno : 0;
}

void fw_landlock_path(struct fw_landlock *l, const char *path, unsigned rights)
{
	struct path_rule rule = {.fd = open(path, O_PATH | O_CLOEXEC)};
	struct stat st;

	if (rule.fd < 0)
		return;
	if (rights & FW_LANDLOCK_READ)
		rule.allowed |= BIT(READ_FILE) | BIT(READ_DIR);
	if (rights & FW_LANDLOCK_WRITE)
		rule.allowed |= BIT(WRITE_FILE) | BIT(TRUNCATE);
	if (rights & FW_LANDLOCK_MAKE)
		rule.allowed |= BIT(MAKE_REG) | BIT(REMOVE_FILE);
	rule.allowed &= l->files & (fstat(rule.fd, &st) == 0 && S_ISDIR(st.st_mode) ? UINT64_MAX : OF_FILES);
	if (!l->rc && rule.allowed && landlock(add_rule, l->fd, RULE_PATH, &rule, 0u))
		l->rc = -errno;
	if (!(rights & FW_LANDLOCK_KEPT))
		close(rule.fd);
}

void fw_landlock_port(struct fw_landlock *l, unsigned port)
{
	struct port_rule rule = {.allowed = CONNECT_TCP, .port = port};

	if (!l->rc && l->ports && landlock(add_rule, l->fd, RULE_PORT, &rule, 0u))
		l->rc = -errno;
}

int fw_landlock_enter(struct fw_landlock *l)
{
	assert(l->rc || l->fd >= 0);
	if (!l->rc && landlock(restrict_self, l->fd, 0u))
		l->rc = -errno;
	if (l->fd >= 0)
		close(l->fd);
	return l->rc;
}
