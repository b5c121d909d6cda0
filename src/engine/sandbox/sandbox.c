/* SPDX-License-Identifier: ISC */
/*
 * The layers of each process, and the files it may open. The list was compiled from the whole test
 * suite with every store, and from what libraries open late: name lookup, certificates, character
 * sets, plugins of database clients. World-readable system folders are allowed as a whole, but
 * /etc, which also holds secrets, file by file.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/sandbox/sandbox.h"
#include "fetch/fetch.h"
#include "store/reach.h"

#define DNS_PORT 53 /* over TCP, for long responses */

/* read repeatedly: when the file is replaced, the process must be restarted */
#define WATCHED (1u << 8)
#define LINKED (1u << 9) /* often a symbolic link into a folder whose files are replaced */
#define KEPT FW_LANDLOCK_KEPT
#define READ FW_LANDLOCK_READ
#define FOLDER (FW_LANDLOCK_READ | FW_LANDLOCK_WRITE | FW_LANDLOCK_MAKE)

static const struct {
	const char *path;
	unsigned how;
} SYSTEM[] = {
	{"/usr/lib", READ},
	{"/usr/lib32", READ},
	{"/usr/lib64", READ},
	{"/usr/libx32", READ},
	{"/usr/share", READ},
	{"/usr/local/lib", READ},
	{"/usr/local/share", READ},
	{"/lib", READ},
	{"/lib32", READ},
	{"/lib64", READ},
	{"/nix/store", READ},
	{"/gnu/store", READ},
	{"/etc/ld.so.cache", READ},
	{"/etc/localtime", READ},
	{"/etc/resolv.conf", READ | WATCHED | LINKED},
	{"/etc/hosts", READ | WATCHED | LINKED},
	{"/etc/nsswitch.conf", READ | WATCHED | LINKED},
	{"/etc/host.conf", READ},
	{"/etc/gai.conf", READ},
	{"/etc/services", READ},
	{"/etc/protocols", READ},
	{"/etc/ssl/certs", READ},
	{"/etc/ssl/cert.pem", READ},
	{"/etc/ssl/openssl.cnf", READ},
	{"/etc/ca-certificates", READ},
	{"/etc/pki/tls/certs", READ},
	{"/etc/pki/tls/openssl.cnf", READ},
	{"/etc/pki/ca-trust", READ},
	{"/etc/crypto-policies", READ},
	{"/etc/gnutls", READ},
	{"/etc/pkcs11", READ},
	{"/etc/krb5.conf", READ},
	{"/etc/krb5.conf.d", READ},
	{"/etc/gss", READ},
	{"/proc/self", READ | KEPT},
	{"/proc/meminfo", READ | KEPT},
	{"/proc/cpuinfo", READ | KEPT},
	{"/proc/stat", READ | KEPT},
	{"/proc/sys/crypto", READ | KEPT},
	{"/proc/sys/kernel", READ | KEPT},
	{"/proc/sys/vm", READ | KEPT},
	{"/sys/devices/system", READ},
	{"/sys/fs/cgroup", READ},
	{"/sys/kernel/mm", READ},
	{"/dev/urandom", READ},
	{"/dev/random", READ},
	{"/dev/null", READ | FW_LANDLOCK_WRITE},
};

static const char *const ENVIRONMENT[] = {"OPENSSL_CONF", "SSL_CERT_FILE", "SSL_CERT_DIR", "GCONV_PATH"};

#define NOT_HERE "this system does not support it"
static const struct {
	const char *name, *why; /* why: the reason and the remedy if it is missing */
} LAYER[FW_SANDBOX_LAYER_N] = {
	{"no new privileges", NOT_HERE},
	{"no memory dumps", NOT_HERE},
	{"files", "this kernel has no Landlock: use Linux 5.13 or newer, with landlock in lsm="},
	{"TCP ports", "this kernel's Landlock does not support ports: use Linux 6.7 or newer"},
	{"system calls",
		FW_HAVE_SECCOMP ? "this kernel has no seccomp: build it with CONFIG_SECCOMP_FILTER" :
				  "this build has no libseccomp: install it and build with -Dseccomp=enabled"},
	{"memory layout", "there is no /proc, which a program needs to find its own file"},
};

const char *fw_sandbox_layer_name(enum fw_sandbox_layer layer)
{
	assert(layer && (unsigned)ffs((int)layer) <= FW_SANDBOX_LAYER_N);
	return LAYER[ffs((int)layer) - 1].name;
}

const char *fw_sandbox_missing_why(enum fw_sandbox_layer layer)
{
	return FW_SANDBOX ? LAYER[ffs((int)layer) - 1].why :
			    "this build has no sandbox: it needs Linux, and no sanitizer";
}

static bool role_serves(enum fw_sandbox_role who)
{
	return who == FW_SANDBOX_SERVER || who == FW_SANDBOX_SENDER_SERVER;
}

bool fw_sandbox_is(const struct fw_config *c, const char *word)
{
	return c->sandbox && strcmp(c->sandbox, word) == 0;
}

static bool layer_is_supported(enum fw_sandbox_layer layer)
{
#ifdef FW_TEST_HOOKS
	const char *missing = getenv("FEEDWHEEL_TEST_NO_LAYER");

	if (missing && strcmp(missing, fw_sandbox_layer_name(layer)) == 0)
		return false;
#endif
#if FW_SANDBOX
	switch (layer) {
	case FW_SANDBOX_PRIVILEGES:
	case FW_SANDBOX_MEMORY:
		return true;
	case FW_SANDBOX_FILES:
		return fw_landlock_abi() > 0;
	case FW_SANDBOX_PORTS:
		return fw_landlock_abi() >= FW_LANDLOCK_ABI_PORTS;
	case FW_SANDBOX_CALLS:
		return fw_seccomp_is_supported();
	case FW_SANDBOX_LAYOUT:
		return access("/proc/self/exe", X_OK) == 0;
	}
#endif
	(void)layer;
	return false;
}

void fw_sandbox_layers(const struct fw_config *c, enum fw_sandbox_role who, unsigned *available, unsigned *missing)
{
	*available = *missing = 0;
	for (unsigned i = 0; i < FW_SANDBOX_LAYER_N && !fw_sandbox_is(c, "off"); i++) {
		enum fw_sandbox_layer layer = (enum fw_sandbox_layer)(1u << i);

		/*
		 * the master creates sockets and folders, and reads the configuration again; only
		 * its children get a new memory layout
		 */
		if (who == FW_SANDBOX_MASTER && layer & (FW_SANDBOX_FILES | FW_SANDBOX_PORTS | FW_SANDBOX_LAYOUT))
			continue;
		*(layer_is_supported(layer) ? available : missing) |= layer;
	}
}

int fw_sandbox_check(const struct fw_config *c, unsigned who, struct fw_err *err)
{
	for (unsigned w = 0; w < FW_SANDBOX_ROLE_N && fw_sandbox_is(c, "require"); w++) {
		unsigned available, missing = 0;

		if (who & 1u << w)
			fw_sandbox_layers(c, (enum fw_sandbox_role)w, &available, &missing);
		if (missing) {
			enum fw_sandbox_layer layer = (enum fw_sandbox_layer)(missing & ~(missing - 1));

			return fw_err_set(err, FW_EINVAL,
				"sandbox = require: '%s' is missing: %s; or set sandbox = auto",
				fw_sandbox_layer_name(layer), fw_sandbox_missing_why(layer));
		}
	}
	return 0;
}

/* ---- files --------------------------------------------------------------- */

typedef void path_cb(void *ctx, const char *path, unsigned how);

/*
 * The target of the link may be replaced at every change: allow its folder, unless that is directly
 * below the root. Otherwise allow the file itself.
 */
static void paths_add_link(const char *path, unsigned how, path_cb *cb, void *ctx)
{
	char real[PATH_MAX], *slash;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real) &&
		(slash = strrchr(real + 1, '/')) != NULL) {
		*slash = 0;
		if (strchr(real + 1, '/')) {
			cb(ctx, real, how);
			return;
		}
	}
	cb(ctx, path, how);
}

/* The files of the server. */
static void paths_add_server(const struct fw_config *c, path_cb *cb, void *ctx)
{
	if (c->wal_dir)
		cb(ctx, c->wal_dir, FOLDER | WATCHED);
	if (c->access_log && strcmp(c->access_log, "-") != 0)
		cb(ctx, c->access_log, FW_LANDLOCK_WRITE);
	if (c->tls_cert)
		cb(ctx, c->tls_cert, READ);
	if (c->tls_key)
		cb(ctx, c->tls_key, READ);
}

static void paths_add_all(
	const struct fw_config *c, enum fw_sandbox_role who, const struct fw_store_reach *r, path_cb *cb, void *ctx)
{
	const char *bundle = c->ca_file ? c->ca_file : fw_fetch_ca_file();

	for (size_t i = 0; i < FW_N(SYSTEM); i++) {
		if (SYSTEM[i].how & LINKED)
			paths_add_link(SYSTEM[i].path, SYSTEM[i].how, cb, ctx);
		else
			cb(ctx, SYSTEM[i].path, SYSTEM[i].how);
	}
	for (size_t i = 0; i < FW_N(ENVIRONMENT); i++) {
		if (getenv(ENVIRONMENT[i]))
			cb(ctx, getenv(ENVIRONMENT[i]), READ);
	}
	if (bundle)
		paths_add_link(bundle, c->ca_file ? READ | WATCHED : READ, cb, ctx);
	if (r->folder)
		cb(ctx, r->folder, FOLDER | WATCHED);
	for (size_t i = 0; i < r->file_n; i++)
		cb(ctx, r->file[i], READ | WATCHED);
	if (role_serves(who))
		paths_add_server(c, cb, ctx);
}

/* Errors are ignored: opening the file or folder later reports them. */
void fw_sandbox_create_files(const struct fw_config *c, enum fw_sandbox_role who)
{
	int fd;

	if (!role_serves(who))
		return;
	if (c->wal_dir)
		(void)fw_folder_create(c->wal_dir);
	if (!c->access_log || strcmp(c->access_log, "-") == 0)
		return;
	fd = open(c->access_log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd >= 0)
		close(fd);
}

static uint64_t file_identity(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : ((uint64_t)st.st_dev << 48 ^ (uint64_t)st.st_ino) | UINT64_C(1) << 63;
}

static void mark_add(void *ctx, const char *path, unsigned how)
{
	struct fw_sandbox_mark *m = ctx;

	if (how & WATCHED && m->n < FW_N(m->file))
		m->file[m->n++] = file_identity(path);
}

void fw_sandbox_mark(const struct fw_config *c, enum fw_sandbox_role who, struct fw_sandbox_mark *out)
{
	struct fw_store_reach reach;
	unsigned available, missing;
	struct fw_arena a;

	out->n = 0;
	fw_sandbox_layers(c, who, &available, &missing);
	if (!(available & FW_SANDBOX_FILES))
		return;
	fw_arena_init(&a, 0);
	fw_store_reach(&a, c->store, &reach);
	paths_add_all(c, who, &reach, mark_add, out);
	fw_arena_finish(&a);
}

bool fw_sandbox_is_stale(const struct fw_sandbox_mark *was, const struct fw_sandbox_mark *now)
{
	for (size_t i = 0; i < was->n && was->n == now->n; i++) {
		if (now->file[i] && now->file[i] != was->file[i])
			return true;
	}
	return false;
}

/* ---- entering ------------------------------------------------------------ */

static void landlock_add_path(void *ctx, const char *path, unsigned how)
{
	fw_landlock_path(ctx, path, how & (READ | FOLDER | KEPT));
}

/*
 * Outgoing TCP can be limited only for a server that fetches and sends nothing, and a store with
 * known ports.
 */
static bool connect_is_limited(const struct fw_config *c, enum fw_sandbox_role who, const struct fw_store_reach *r)
{
	return who == FW_SANDBOX_SERVER && !c->websub_url && !c->serve_discovery && !r->any_port;
}

static int layer_enter_landlock(
	const struct fw_config *c, enum fw_sandbox_role who, const struct fw_store_reach *reach, bool no_connect)
{
	struct fw_landlock land;

	fw_landlock_begin(&land, no_connect, !reach->no_file);
	paths_add_all(c, who, reach, landlock_add_path, &land);
	for (size_t i = 0; i < reach->port_n && no_connect; i++)
		fw_landlock_port(&land, reach->port[i]);
	if (no_connect && reach->by_name)
		fw_landlock_port(&land, DNS_PORT);
	return fw_landlock_enter(&land);
}

/* Is this a file that only its owner, another user, may use as this process needs it? */
static bool file_is_foreign(const char *path, unsigned how)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid != geteuid() && (how & FW_LANDLOCK_WRITE || !(st.st_mode & S_IROTH)) &&
		!S_ISCHR(st.st_mode);
}

static void foreign_add(void *ctx, const char *path, unsigned how)
{
	*(bool *)ctx |= file_is_foreign(path, how);
}

/* Returns 0 or a negative errno. */
static int layer_enter_privileges(
	const struct fw_config *c, enum fw_sandbox_role who, const struct fw_store_reach *reach)
{
	bool foreign = reach->itself && file_is_foreign(reach->itself, FW_LANDLOCK_WRITE);

#ifdef __linux__
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
#endif
	if (who == FW_SANDBOX_MASTER)
		return 0;
	paths_add_all(c, who, reach, foreign_add, &foreign);
	return fw_caps_drop(foreign);
}

/* Applies a layer. Returns 0 or a negative errno. */
static int layer_enter(const struct fw_config *c, enum fw_sandbox_role who, enum fw_sandbox_layer layer,
	const struct fw_store_reach *reach)
{
	static const struct rlimit none = {0, 0};
	bool no_connect = connect_is_limited(c, who, reach) && layer_is_supported(FW_SANDBOX_PORTS);

	switch (layer) {
	case FW_SANDBOX_PRIVILEGES:
		return layer_enter_privileges(c, who, reach);
#ifdef __linux__
	case FW_SANDBOX_MEMORY:
		return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none) ? -errno : 0;
#endif
	case FW_SANDBOX_FILES:
		return layer_enter_landlock(c, who, reach, no_connect);
	case FW_SANDBOX_CALLS:
		if (who != FW_SANDBOX_MASTER)
			fw_sandbox_preload(c);
		return fw_seccomp_apply(who, no_connect);
	default:
		return 0; /* ports: together with the files; layout: by child.c, earlier */
	}
}

int fw_sandbox_failed(const struct fw_config *c, enum fw_sandbox_layer layer, int e, struct fw_err *err)
{
	if (e && fw_sandbox_is(c, "require"))
		return fw_err_set(err, FW_EINVAL, "sandbox = require: '%s' failed: %s; or set sandbox = auto",
			fw_sandbox_layer_name(layer), strerror(e));
	if (e)
		fw_warn("sandbox: '%s' failed: %s", fw_sandbox_layer_name(layer), strerror(e));
	return 0;
}

int fw_sandbox_enter(const struct fw_config *c, enum fw_sandbox_role who, struct fw_err *err)
{
	struct fw_store_reach reach;
	unsigned available, missing;
	struct fw_arena a;
	int rc = fw_sandbox_check(c, 1u << who, err);

	fw_sandbox_layers(c, who, &available, &missing);
	if (rc || !available)
		return rc;
	fw_arena_init(&a, 0);
	fw_store_reach(&a, c->store, &reach);
	for (unsigned i = 0; i < FW_SANDBOX_LAYER_N && !rc; i++) {
		enum fw_sandbox_layer layer = (enum fw_sandbox_layer)(1u << i);
		int e = available & layer ? layer_enter(c, who, layer, &reach) : 0;

		rc = fw_sandbox_failed(c, layer, -e, err);
	}
	fw_arena_finish(&a);
	return rc;
}
