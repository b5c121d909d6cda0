/* SPDX-License-Identifier: ISC */
/*
 * Capabilities: what root may do beyond its own files and processes, and what a service manager
 * gave a process. A child needs none of them.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/capability.h>
#include <sys/prctl.h>
#endif

#include "base/str.h"
#include "engine/sandbox/sandbox.h"

#ifdef __linux__

#define CAPABILITIES_MAX 64 /* bits of the kernel's sets */

/* By these root uses files of another user, and gives it its own: SQLite does with a journal. */
static const unsigned OF_FILES = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;

int fw_caps_drop(bool keep_files)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, set))
		return -errno;
	/* needs CAP_SETPCAP; who lacks it gains nothing: it starts no program */
	for (int i = 0; i < CAPABILITIES_MAX && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* EINVAL: before Linux 4.3 */
	set[0].permitted &= keep_files ? OF_FILES : 0;
	set[0].effective = set[0].permitted;
	set[1].permitted = set[1].effective = set[0].inheritable = set[1].inheritable = 0;
	return syscall(SYS_capset, &head, set) ? -errno : 0;
}

#else

int fw_caps_drop(bool keep_files)
{
	(void)keep_files;
	return -ENOSYS;
}

#endif
