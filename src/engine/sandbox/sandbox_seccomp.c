/* SPDX-License-Identifier: ISC */
/*
 * System calls that no process of a run needs, refused by the kernel (seccomp). It is a deny list,
 * not an allow list: six client libraries in many versions choose their own calls, and a missing
 * entry in an allow list would be an outage.
 *
 * The result is EPERM: a library that only tries a call (io_uring, for example) goes on without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#if FW_HAVE_SECCOMP
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <seccomp.h>
#endif

#include "base/str.h"
#include "engine/sandbox/sandbox.h"

#if FW_HAVE_SECCOMP

#define MASTER (1u << FW_SANDBOX_MASTER)
#define CHILD (1u << FW_SANDBOX_WORKER | 1u << FW_SANDBOX_SERVER | 1u << FW_SANDBOX_SENDER_SERVER)
#define ALL (MASTER | CHILD)
#define TYPE_MASK 0xfu   /* of a socket's type; flags are above */
#define IOPRIO_PROCESS 1 /* IOPRIO_WHO_PROCESS of the kernel */

/* By name: a call that libseccomp or this architecture does not know is skipped. */
static const struct {
	unsigned who;
	const char *names[32]; /* NULL-terminated */
} REFUSED[] = {
	/* starting programs: only the master does, to start its own program as a child */
	{CHILD, {"execve", "execveat"}},
	{ALL, {"uselib"}},
	/* other processes: memory, descriptors, tracing */
	{ALL,
		{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
			"pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "migrate_pages", "move_pages"}},
	/* common attack surface of the kernel */
	{ALL,
		{"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd", "perf_event_open",
			"add_key", "request_key", "keyctl", "fanotify_init", "lookup_dcookie", "nfsservctl", "_sysctl",
			"modify_ldt", "vm86", "vm86old", "personality", "remap_file_pages"}},
	/* namespaces and mounts */
	{ALL,
		{"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree",
			"open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
			"open_by_handle_at"}},
	/* system administration */
	{ALL,
		{"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
			"swapoff", "syslog", "acct", "iopl", "ioperm", "quotactl", "quotactl_fd", "vhangup",
			"sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_settime64",
			"clock_adjtime", "clock_adjtime64", "adjtimex", "stime"}},
	/*
	 * identity; Landlock does not cover owners and modes, and device nodes only where it exists
	 */
	{ALL,
		{"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid",
			"setfsgid", "setuid32", "setgid32", "setreuid32", "setregid32", "setresuid32", "setresgid32",
			"setgroups32", "setfsuid32", "setfsgid32", "mknod", "mknodat"}},
	{CHILD, {"capset"}}, /* the master's children drop theirs */
	{CHILD,
		{"chmod", "fchmodat", "fchmodat2", "chown", "chown32", "lchown", "lchown32", "fchownat", "setxattr",
			"lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr",
			"removexattrat", "utime", "utimes", "futimesat", "utimensat", "utimensat_time64"}},
	/* System V and POSIX shared memory and messages */
	{ALL,
		{"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "semtimedop_time64",
			"msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"}},
	/* a child stays a single process, so killing it ends all of it */
	{CHILD, {"fork", "vfork", "tkill"}},
	/* a socket that listens gets a port without bind(); the master opens those of the server */
	{CHILD, {"listen"}},
};

struct deny_list {
	scmp_filter_ctx ctx;
	int rc; /* the first failure, a negative errno */
};

static void call_refuse(struct deny_list *l, int error, const char *name, unsigned n, const struct scmp_arg_cmp *arg)
{
	int nr = seccomp_syscall_resolve_name(name), rc;

	if (nr == __NR_SCMP_ERROR || l->rc)
		return;
	rc = seccomp_rule_add_array(l->ctx, SCMP_ACT_ERRNO(error), nr, n, arg);
	/* errors for calls that this architecture multiplexes */
	if (rc && rc != -EDOM && rc != -EEXIST && !(rc == -EINVAL && n && nr < 0))
		l->rc = rc;
}

static void call_refuse_when(struct deny_list *l, int error, const char *name, struct scmp_arg_cmp arg)
{
	call_refuse(l, error, name, 1, &arg);
}

/*
 * The flags of clone3() are in memory, which a filter cannot read. ENOSYS makes the C library fall
 * back to clone(), whose flags are its first argument, or its second on s390.
 */
static void refuse_clones(struct deny_list *l, enum fw_sandbox_role who)
{
	static const unsigned NEW[] = {
		CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};
#ifdef __s390__
	const unsigned at = 1;
#else
	const unsigned at = 0;
#endif

	call_refuse(l, ENOSYS, "clone3", 0, NULL);
	for (size_t i = 0; i < FW_N(NEW); i++)
		call_refuse_when(l, EPERM, "clone", SCMP_CMP(at, SCMP_CMP_MASKED_EQ, NEW[i], NEW[i]));
	if (who != FW_SANDBOX_MASTER)
		call_refuse_when(l, EPERM, "clone", SCMP_CMP(at, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

/* No memory becomes executable any more: what libraries load late is loaded (sandbox_preload.c). */
static void refuse_code(struct deny_list *l)
{
	static const char *const MAP[] = {
		"mmap2",
/* there its argument is a structure */
#if !defined(__i386__) && !defined(__s390__) && !defined(__s390x__)
		"mmap",
#endif
	};

	for (size_t i = 0; i < FW_N(MAP); i++)
		call_refuse_when(l, EPERM, MAP[i], SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	call_refuse_when(l, EPERM, "mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	call_refuse_when(l, EPERM, "pkey_mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
}

/* Allowed sockets: unix, IPv4, IPv6, and routing netlink. */
static void refuse_sockets(struct deny_list *l)
{
	for (unsigned family = 0; family <= AF_NETLINK; family++) {
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			call_refuse_when(l, EAFNOSUPPORT, "socket", SCMP_A0(SCMP_CMP_EQ, family));
	}
	call_refuse_when(l, EAFNOSUPPORT, "socket", SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	call_refuse(l, EAFNOSUPPORT, "socket", 2,
		(struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE)});
	/* protocols that Landlock's TCP rules do not cover */
	call_refuse_when(l, EPROTONOSUPPORT, "socket", SCMP_A2(SCMP_CMP_EQ, IPPROTO_SCTP));
	call_refuse_when(l, EPROTONOSUPPORT, "socket", SCMP_A2(SCMP_CMP_GT, UINT8_MAX)); /* multipath TCP and SMC */
}

/* In a child: no packets of its own making. Routing netlink has raw sockets only. */
static void refuse_raw_sockets(struct deny_list *l)
{
	static const unsigned ALLOWED = 1u << SOCK_STREAM | 1u << SOCK_DGRAM | 1u << SOCK_SEQPACKET;

	for (unsigned type = 0; type <= TYPE_MASK; type++) {
		if (!(ALLOWED & 1u << type))
			call_refuse(l, ESOCKTNOSUPPORT, "socket", 2,
				(struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_NE, AF_NETLINK),
					SCMP_A1(SCMP_CMP_MASKED_EQ, TYPE_MASK, type)});
	}
}

/* The kernel signals the owner of a descriptor, which may be any process of the same user. */
static void refuse_owners(struct deny_list *l)
{
	static const unsigned FCNTL[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG}, IOCTL[] = {FIOSETOWN, SIOCSPGRP};

	/* the kernel reads the lower half of the argument */
	for (size_t i = 0; i < FW_N(FCNTL); i++) {
		call_refuse_when(l, EPERM, "fcntl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, FCNTL[i]));
		call_refuse_when(l, EPERM, "fcntl64", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, FCNTL[i]));
	}
	for (size_t i = 0; i < FW_N(IOCTL); i++)
		call_refuse_when(l, EPERM, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, IOCTL[i]));
}

/* Priorities and processors of others: 0 is the caller. */
static void refuse_scheduling(struct deny_list *l)
{
	static const char *const OF_PROCESS[] = {
		"sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"};

	for (size_t i = 0; i < FW_N(OF_PROCESS); i++)
		call_refuse_when(l, EPERM, OF_PROCESS[i], SCMP_A0(SCMP_CMP_NE, 0));
	call_refuse_when(l, EPERM, "setpriority", SCMP_A0(SCMP_CMP_NE, PRIO_PROCESS));
	call_refuse_when(l, EPERM, "setpriority", SCMP_A1(SCMP_CMP_NE, 0));
	call_refuse_when(l, EPERM, "ioprio_set", SCMP_A0(SCMP_CMP_NE, IOPRIO_PROCESS));
	call_refuse_when(l, EPERM, "ioprio_set", SCMP_A1(SCMP_CMP_NE, 0));
}

/* TCP Fast Open connects in a send call. */
static void refuse_fast_open(struct deny_list *l)
{
	call_refuse_when(l, EPERM, "sendto", SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN));
	call_refuse_when(l, EPERM, "sendmsg", SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN));
	call_refuse_when(l, EPERM, "sendmmsg", SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN));
}

static void refuse_all(struct deny_list *l, enum fw_sandbox_role who, bool no_connect)
{
	static const unsigned TYPES[] = {TIOCSTI, 0x541c /* TIOCLINUX */};

	for (size_t i = 0; i < FW_N(REFUSED); i++) {
		for (const char *const *name = REFUSED[i].names; *name && REFUSED[i].who & 1u << who; name++)
			call_refuse(l, EPERM, *name, 0, NULL);
	}
	refuse_clones(l, who);
	refuse_sockets(l);
	for (size_t i = 0; i < FW_N(TYPES); i++) /* ioctls that insert input into the terminal */
		call_refuse_when(l, EPERM, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TYPES[i]));
	call_refuse_when(l, EPERM, "prlimit64", SCMP_A0(SCMP_CMP_NE, 0)); /* limits of another process */
	if (who == FW_SANDBOX_MASTER)
		/* children inherit the filter, and their dynamic loader needs the calls below */
		return;
	refuse_code(l);
	/* SQLite gives a journal the mode of its file, which runs as nobody else */
	call_refuse_when(l, EPERM, "fchmod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_ISUID, S_ISUID));
	call_refuse_when(l, EPERM, "fchmod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_ISGID, S_ISGID));
	refuse_raw_sockets(l);
	refuse_owners(l);
	refuse_scheduling(l);
	/* signal 0 only tests for existence */
	call_refuse_when(l, EPERM, "kill", SCMP_A1(SCMP_CMP_NE, 0));
	call_refuse_when(l, EPERM, "tgkill", SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
	if (no_connect)
		refuse_fast_open(l);
}

const char *fw_seccomp_library(void)
{
	static char text[40];
	const struct scmp_version *v = seccomp_version();

	(void)fw_snprintf(text, sizeof(text), "libseccomp %u.%u.%u", v->major, v->minor, v->micro);
	return text;
}

bool fw_seccomp_is_supported(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

int fw_seccomp_apply(enum fw_sandbox_role who, bool no_connect)
{
	struct deny_list l = {.ctx = seccomp_init(SCMP_ACT_ALLOW)};

	if (!l.ctx)
		return -ENOMEM;
	/* a binary tree; an older libseccomp builds a list */
	(void)seccomp_attr_set(l.ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	refuse_all(&l, who, no_connect);
	if (!l.rc)
		l.rc = seccomp_load(l.ctx);
	seccomp_release(l.ctx);
	return l.rc;
}

#else

const char *fw_seccomp_library(void)
{
	return NULL;
}

bool fw_seccomp_is_supported(void)
{
	return false;
}

int fw_seccomp_apply(enum fw_sandbox_role who, bool no_connect)
{
	(void)who;
	(void)no_connect;
	return -ENOSYS;
}

#endif
