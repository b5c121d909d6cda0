/* SPDX-License-Identifier: ISC */
/* Runs a fuzz target on the files of the given folders: inputs that fuzzing found stay tested. */
#include <dirent.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"

#define MAX_BYTES ((size_t)1 << 20)

static int replay(const char *path)
{
	unsigned char *data = malloc(MAX_BYTES), *exact;
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || !data) {
		perror(path);
		return 1;
	}
	n = fread(data, 1, MAX_BYTES, f);
	fclose(f);
	exact = realloc(data, n + !n); /* so that ASan detects a read beyond it */
	if (!exact)
		return 1;
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0, n = 0;

	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;
		char path[2000];

		while (d && (e = readdir(d)) != NULL) {
			if (e->d_name[0] == '.')
				continue;
			if (!fw_snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name))
				continue;
			failed += replay(path);
			n++;
		}
		if (d)
			closedir(d);
	}
	printf("%d inputs\n", n);
	return failed || n == 0;
}
