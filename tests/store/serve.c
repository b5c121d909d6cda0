/* SPDX-License-Identifier: ISC */
/*
 * A private database server for tests that are not C programs: serve ENGINE FOLDER [durable].
 *
 * It starts the server and prints "ready". Commands are lines on standard input: "url NAME" prints
 * the URL of the store of that name, "kill9" kills all processes of the server, "again" starts it
 * again with the same data. The response to each is one line. The server ends at the end of the
 * input.
 *
 * Without arguments it prints the engines of this build that have a server. Without FOLDER it only
 * checks whether the engine's server is installed. durable: see servers.h. Exit status 77: the
 * server is not installed; the package that has it is printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "common.h"

static bool obey(const struct server *server, const char *line)
{
	char url[400];

	if (strncmp(line, "url ", 4) == 0) {
		server->url(url, sizeof(url), line + 4);
		puts(url);
	} else if (strcmp(line, "kill9") == 0) {
		server->kill9();
		puts("killed");
	} else if (strcmp(line, "again") == 0) {
		server->again();
		puts("ready");
	} else {
		return false;
	}
	return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
	const struct server *server = argc >= 2 && argc <= 4 ? server_of(argv[1]) : NULL;
	char line[200];
	int rc = EXIT_SUCCESS;

	if (argc == 1) {
		for (int i = 0; i < under_test_n; i++) {
			if (under_test[i].server && built_in(under_test[i].name))
				puts(under_test[i].name);
		}
		return EXIT_SUCCESS;
	}
	server_durable = argc == 4 && strcmp(argv[3], "durable") == 0;
	if (!server || (argc == 4 && !server_durable)) {
		fprintf(stderr, "usage: serve [ENGINE [FOLDER [durable]]] (ENGINE: one that has a server)\n");
		return EXIT_FAILURE;
	}
	if (!server->installed()) {
		puts(server->package);
		return 77;
	}
	if (argc == 2)
		return EXIT_SUCCESS;
	signal(SIGINT, SIG_IGN); /* the test program handles ^C, and then closes our input */
	server->start(argv[2]);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!obey(server, line)) {
			fprintf(stderr, "serve: unknown command: %s (the commands are url NAME, kill9, again)\n", line);
			rc = EXIT_FAILURE;
			break;
		}
	}
	server->stop();
	return rc;
}
