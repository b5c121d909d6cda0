/* SPDX-License-Identifier: ISC */
/*
 * Checks for `feedwheel doctor`: what the server needs on this machine. They change nothing and
 * open no socket.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "http/serve.h"
#include "http/server/http.h"

#define SOON_DAYS 14 /* ACME clients renew 30 days before the end, so this one failed to */

/* Days until the certificate in this file expires; false: it cannot be read. */
static bool days_left(const char *path, int *days)
{
	FILE *f = fopen(path, "re");
	X509 *x = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
	int seconds;
	bool read = x && ASN1_TIME_diff(days, &seconds, NULL, X509_get0_notAfter(x)) == 1;

	if (read && seconds < 0)
		--*days; /* expired an hour ago: -1, not 0 */
	X509_free(x);
	if (f)
		fclose(f);
	return read;
}

static int check_tls(const struct fw_config *c, fw_doctor_cb *cb, void *ctx)
{
	struct http_tls t = {0};
	struct fw_err err = {0};
	char found[500];
	int level = FW_DOCTOR_FINE, days = 0, rc;

	if (!c->tls_cert && !c->tls_key)
		return FW_DOCTOR_FINE;
	rc = http_tls_read(c, &t, &err);
	http_tls_free(&t);
	assert(rc || c->tls_cert); /* http_tls_read() fails unless both are set */
	if (!rc && !days_left(c->tls_cert, &days))
		rc = fw_err_set(&err, FW_EINVAL, "tls_cert = %s: the certificate has no end of validity", c->tls_cert);
	if (rc) {
		cb(ctx, "tls", FW_DOCTOR_BROKEN, err.text,
			"correct tls_cert and tls_key, without which the server does not start");
		return FW_DOCTOR_BROKEN;
	}
	if (days <= SOON_DAYS)
		level = days < 0 ? FW_DOCTOR_BROKEN : FW_DOCTOR_NOTE;
	(void)fw_snprintf(found, sizeof(found),
		days < 0 ? "tls_cert = %s expired %d days ago" : "tls_cert = %s is valid for %d days", c->tls_cert,
		days < 0 ? -days : days);
	cb(ctx, "tls", level, found, level == FW_DOCTOR_FINE ? "" : "renew it, then send SIGHUP to the server");
	return level;
}

/* May this user write path, or create it? 0 or an errno. */
static int path_write_error(const char *path, int mode)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (access(path, mode) == 0)
		return 0;
	if (errno != ENOENT)
		return errno;
	fw_str_copy(
		folder, sizeof(folder), slash ? (struct fw_str){path, FW_MAX((size_t)(slash - path), 1)} : FW_STR("."));
	return access(folder, W_OK | X_OK) ? errno : 0;
}

static int check_path(const char *setting, const char *path, int mode, fw_doctor_cb *cb, void *ctx)
{
	char found[500];
	int e = path_write_error(path, mode);

	(void)fw_snprintf(
		found, sizeof(found), "%s = %s%s%s", setting, path, e ? ": " : "", e ? strerror(e) : " can be written");
	cb(ctx, setting, e ? FW_DOCTOR_BROKEN : FW_DOCTOR_FINE, found,
		e ? "create its folder, writable by the user that the server runs as (run doctor as that user)" : "");
	return e ? FW_DOCTOR_BROKEN : FW_DOCTOR_FINE;
}

/* Files that a replay kept, because it skipped records of them. */
static size_t wal_damaged_n(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		n += strstr(e->d_name, ".wal.damaged") != NULL;
	if (d)
		closedir(d);
	return n;
}

static int check_wal(const char *folder, fw_doctor_cb *cb, void *ctx)
{
	int level = check_path("wal_dir", folder, R_OK | W_OK | X_OK, cb, ctx);
	size_t n = level == FW_DOCTOR_FINE ? wal_damaged_n(folder) : 0;
	char found[500];

	if (!n)
		return level;
	(void)fw_snprintf(found, sizeof(found), "wal_dir = %s has %zu damaged file%s: rows of %s were skipped", folder,
		n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
	cb(ctx, "wal_dir", FW_DOCTOR_NOTE, found,
		"the server's log says how many rows, and where; check the disk, then remove NAME.wal.damaged");
	return FW_DOCTOR_NOTE;
}

int fw_serve_check(const struct fw_config *c, fw_doctor_cb *cb, void *ctx)
{
	int worst = check_tls(c, cb, ctx);

	if (c->access_log && strcmp(c->access_log, "-") != 0)
		worst = FW_MAX(worst, check_path("access_log", c->access_log, W_OK, cb, ctx));
	if (c->wal_dir)
		worst = FW_MAX(worst, check_wal(c->wal_dir, cb, ctx));
	return worst;
}
