/* SPDX-License-Identifier: ISC */
/*
 * One end tag is removed from a document, and the same entries must be read. Of entries at most 5
 * in 1,000 may be lost if the tag was before the first entry; otherwise none, and one in 1,000 may
 * have another id.
 *
 * Before the first entry each end tag is tried. After its start the first, a middle one and the
 * last of each name are tried: all of them would mean thousands of parses of a large document.
 * --all tries all.
 *
 * Prints TAP, and what was tried and lost. Usage: test_end_tags [--all] FOLDER...; a missing folder
 * is skipped.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "parse/parse.h"

#define PLACES_MAX 200000

struct place {
	size_t at, len;
	struct fw_str name;
	bool tried;
};

struct ids {
	uint64_t *hash; /* sorted */
	size_t n;
};

/* One of the two halves of a document. */
struct figures {
	size_t documents, tags, entries, lost, losing, renamed;
};

static struct place place[PLACES_MAX];
static size_t place_n, first_entry; /* offset */
static bool all;

static bool slurp(const char *folder, const char *name, struct fw_buf *out)
{
	char path[4096], chunk[65536];
	size_t n;
	FILE *f;

	fw_buf_init(out, 0);
	if (!fw_snprintf(path, sizeof(path), "%s/%s", folder, name) || !(f = fopen(path, "rb")))
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		fw_buf_add(out, chunk, n);
	fclose(f);
	return !out->rc && out->len;
}

/* ---- end tags, found without a parser -------------------------------------------------------- */

static bool name_char(char c)
{
	return fw_is_alnum((unsigned char)c) || c == ':' || c == '_' || c == '-' || c == '.' || (c & 0x80);
}

static size_t name_len(struct fw_str s)
{
	size_t n = 0;

	while (n < s.len && name_char(s.p[n]))
		n++;
	return n;
}

static size_t skip_to(struct fw_str s, size_t at, struct fw_str end)
{
	const char *p = fw_str_find(fw_str_sub(s, at, s.len), end);

	return p ? (size_t)(p - s.p) + end.len : s.len;
}

static bool is_entry(struct fw_str name)
{
	struct fw_str rest, local = fw_str_split(name, ':', &rest);

	local = rest.p ? rest : local;
	return fw_str_ieq(local, FW_STR("item")) || fw_str_ieq(local, FW_STR("entry"));
}

static void places_find(struct fw_str s)
{
	place_n = 0;
	first_entry = s.len;
	for (size_t i = 0; i < s.len && place_n < PLACES_MAX;) {
		struct fw_str rest = fw_str_sub(s, i, s.len), name;

		if (s.p[i] != '<') {
			i++;
		} else if (fw_str_starts(rest, FW_STR("<!--"))) {
			i = skip_to(s, i, FW_STR("-->"));
		} else if (fw_str_starts(rest, FW_STR("<![CDATA["))) {
			i = skip_to(s, i, FW_STR("]]>"));
		} else if (fw_str_starts(rest, FW_STR("</"))) {
			name = fw_str_sub(rest, 2, rest.len);
			name.len = name_len(name);
			place[place_n] = (struct place){.at = i, .len = skip_to(s, i, FW_STR(">")) - i, .name = name};
			i += 2 + name.len;
			place_n += name.len > 0;
		} else {
			name = fw_str_sub(rest, 1, rest.len);
			name.len = name_len(name);
			if (first_entry == s.len && is_entry(name))
				first_entry = i;
			i += 1 + name.len;
		}
	}
}

/*
 * Of each name after first_entry: the first, a middle one and the last. Names with the same slot
 * count as one.
 */
static void choose(void)
{
	static size_t total[4096], seen[4096];
	size_t i, slot;

	memset(total, 0, sizeof(total));
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < place_n; i++) {
		place[i].tried = all || place[i].at < first_entry;
		total[fw_hash64(place[i].name.p, place[i].name.len) % FW_N(total)] += !place[i].tried;
	}
	for (i = 0; i < place_n; i++) {
		if (place[i].tried)
			continue;
		slot = fw_hash64(place[i].name.p, place[i].name.len) % FW_N(total);
		place[i].tried = !seen[slot] || seen[slot] == total[slot] / 2 || seen[slot] == total[slot] - 1;
		seen[slot]++;
	}
}

/* ---- documents ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The number of entries and their ids; false if it is not a feed. */
static bool read_ids(struct fw_arena *a, struct fw_str s, struct ids *out)
{
	struct fw_document *doc;
	struct fw_entry *e;

	out->n = 0;
	if (fw_parse_into(a, s, NULL, &doc, NULL))
		return false;
	out->hash = fw_arena_mul(a, doc->entry_n + 1, sizeof(*out->hash), 0);
	if (!out->hash)
		abort();
	for (e = doc->entries; e; e = e->next)
		out->hash[out->n++] = fw_hash64(e->id.p, e->id.len);
	qsort(out->hash, out->n, sizeof(*out->hash), by_value);
	return true;
}

/* Members of a that are not in b. */
static size_t missing(const struct ids *a, const struct ids *b)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < a->n; i++) {
		while (k < b->n && b->hash[k] < a->hash[i])
			k++;
		if (k < b->n && b->hash[k] == a->hash[i])
			k++;
		else
			n++;
	}
	return n;
}

static void try_one(
	struct fw_str s, const struct place *p, const struct ids *whole, struct figures *f, const char *name)
{
	struct fw_arena a;
	struct fw_buf b;
	struct ids now;
	size_t lost, renamed;

	fw_arena_init(&a, 0);
	fw_buf_init(&b, 0);
	fw_buf_addstr(&b, fw_str_sub(s, 0, p->at));
	fw_buf_addstr(&b, fw_str_sub(s, p->at + p->len, s.len));
	if (b.rc)
		abort();
	if (!read_ids(&a, fw_buf_str(&b), &now))
		now.n = 0;
	lost = whole->n > now.n ? whole->n - now.n : 0;
	renamed = missing(whole, &now);
	f->tags++;
	f->entries += whole->n;
	f->lost += lost;
	f->losing += lost > 0;
	f->renamed += renamed > lost ? renamed - lost : 0;
	if (lost)
		printf("# %s: </%.*s> at %zu: %zu of %zu entries\n", name, FW_STR_ARG(p->name), p->at, now.n, whole->n);
	fw_buf_finish(&b);
	fw_arena_finish(&a);
}

static void document_try(const char *folder, const char *name, struct figures f[2])
{
	struct ids whole;
	struct fw_arena a;
	struct fw_buf b;
	bool half[2] = {false, false};

	if (!slurp(folder, name, &b)) {
		fw_buf_finish(&b);
		return;
	}
	fw_arena_init(&a, 0);
	if (read_ids(&a, fw_buf_str(&b), &whole) && whole.n) {
		places_find(fw_buf_str(&b));
		choose();
		for (size_t i = 0; i < place_n && first_entry < b.len; i++) {
			bool inside = place[i].at > first_entry;

			if (!place[i].tried)
				continue;
			half[inside] = true;
			try_one(fw_buf_str(&b), &place[i], &whole, &f[inside], name);
		}
	}
	f[0].documents += half[0];
	f[1].documents += half[1];
	fw_arena_finish(&a);
	fw_buf_finish(&b);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void figures_print(const char *where, const struct figures *f)
{
	printf("# %-26s %4zu documents, %6zu end tags, %8zu entries: lost %zu (%.3f %%) by %zu tags,"
	       " %zu with another id (%.3f %%)\n",
		where, f->documents, f->tags, f->entries, f->lost,
		f->entries ? 100.0 * (double)f->lost / (double)f->entries : 0, f->losing, f->renamed,
		f->entries ? 100.0 * (double)f->renamed / (double)f->entries : 0);
}

/* False: too much was lost. */
static bool folder_try(const char *folder, int test)
{
	struct figures f[2] = {{0}, {0}};
	bool before, inside;
	struct dirent **list;
	int n = scandir(folder, &list, shown, by_name);

	if (n < 0) {
		printf("ok %d - %s # SKIP no such folder\nok %d - %s # SKIP no such folder\n", test, folder, test + 1,
			folder);
		return true;
	}
	for (int i = 0; i < n; i++) {
		document_try(folder, list[i]->d_name, f);
		free(list[i]);
	}
	free(list);
	figures_print("before the first entry:", &f[0]);
	figures_print("from the first entry on:", &f[1]);
	before = f[0].tags && f[0].lost * 200 <= f[0].entries;
	inside = f[1].tags && !f[1].lost && f[1].renamed * 1000 <= f[1].entries;
	printf("%sok %d - an end tag before the first entry of %s loses at most 0.5 %%\n", before ? "" : "not ", test,
		folder);
	printf("%sok %d - an end tag behind it loses none, and they keep their ids\n", inside ? "" : "not ", test + 1);
	return before && inside;
}

int main(int argc, char **argv)
{
	bool good = true;
	int from = 1;

	if (argc > 1 && !strcmp(argv[1], "--all")) {
		all = true;
		from++;
	}
	if (argc <= from) {
		fprintf(stderr, "usage: test_end_tags [--all] FOLDER...\n");
		return 2;
	}
	printf("1..%d\n", (argc - from) * 2);
	for (int i = from; i < argc; i++)
		good = folder_try(argv[i], (i - from) * 2 + 1) && good;
	return !good;
}
