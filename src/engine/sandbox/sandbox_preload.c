/* SPDX-License-Identifier: ISC */
/*
 * Loads the libraries that others load late, because a child of the sandbox maps no code any more:
 * tables of character sets, modules of name services, what the configuration of OpenSSL names,
 * plugins of the store's client. What is not loaded here is refused later, as if it were not
 * installed: plugins of Kerberos, for example.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "base/str.h"
#include "engine/sandbox/sandbox.h"
#include "fetch/fetch.h"
#include "parse/parse.h"
#include "store/reach.h"

#define LINE_MAX_BYTES 1024

static void preload_library(const char *name)
{
	(void)dlopen(name, RTLD_NOW | RTLD_LOCAL); /* NULL: it is not installed, or built in; it stays open */
}

/* "hosts: files mdns4_minimal [NOTFOUND=return] dns": each word but the first names a module. */
static void preload_name_services_line(struct fw_str line)
{
	struct fw_str rest;

	(void)fw_str_split(line, ':', &rest);
	while (rest.p) {
		struct fw_str word = fw_str_trim(fw_str_split(rest, ' ', &rest));
		char library[80];

		if (!word.len || word.p[0] == '[' || memchr(word.p, '/', word.len))
			continue;
		if (fw_snprintf(library, sizeof(library), "libnss_%.*s.so.2", FW_STR_ARG(word)))
			preload_library(library);
	}
}

static void preload_name_services(void)
{
	FILE *f = fopen("/etc/nsswitch.conf", "re");
	char line[LINE_MAX_BYTES];

	while (f && fgets(line, sizeof(line), f)) {
		for (char *p = line; *p; p++)
			*p = (char)(*p == '\t' || *p == '\n' ? ' ' : *p == '#' ? 0 : *p);
		preload_name_services_line(fw_str(line));
	}
	if (f)
		fclose(f);
}

void fw_sandbox_preload(const struct fw_config *c)
{
	int e = errno;

	preload_library("libgcc_s.so.1"); /* by the C library, when a thread ends early */
	fw_parse_preload();
	preload_name_services();
	fw_fetch_preload();
	fw_store_preload(c->store);
	errno = e;
}
