/* SPDX-License-Identifier: ISC */
/*
 * The write-ahead log's files: damage costs the damaged record alone and is said truly, no file of
 * another life is lost, and what may be lost in a power failure is what wal_sync_ms allows.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/wal.h"
#include "engine/push/wal_reader.h"
#include "../../suite.h"

#define RECORDS 40
#define HEAD sizeof(struct fw_wal_head)
#define HEAD_OLD 16
#define PADDED(n) (((n) + 7) & ~(size_t)7)

/* ---- what the linker replaces ---------------------------------------------------------------- */

static uint64_t hashed_bytes;

uint64_t __real_fw_hash64_seed(const void *p, size_t n, uint64_t seed);
uint64_t __wrap_fw_hash64_seed(const void *p, size_t n, uint64_t seed);
uint64_t __wrap_fw_hash64_seed(const void *p, size_t n, uint64_t seed)
{
	hashed_bytes += n;
	return __real_fw_hash64_seed(p, n, seed);
}

static char logged[20000]; /* "LEVEL text\n" of each line; errors are level 0 */

void __wrap_fw_log(enum fw_log_level level, const char *fmt, ...);
FW_PRINTF(2, 3) void __wrap_fw_log(enum fw_log_level level, const char *fmt, ...)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t len = strlen(logged);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	(void)fw_snprintf(logged + len, sizeof(logged) - len, "%d %s\n", (int)level, b.p);
	fw_buf_finish(&b);
}

static off_t bad_from, bad_to; /* bytes that the disk cannot read */

ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at)
{
	if (at >= bad_from && at < bad_to) {
		errno = EIO;
		return -1;
	}
	if (bad_to && at < bad_from)
		n = FW_MIN(n, (size_t)(bad_from - at));
	return __real_pread64(fd, p, n, at);
}

/* The name where the compiler knows the size of the buffer. */
ssize_t __wrap___pread64_chk(int fd, void *p, size_t n, off_t at, size_t cap);
ssize_t __wrap___pread64_chk(int fd, void *p, size_t n, off_t at, size_t cap)
{
	ck_assert_uint_le(n, cap);
	return __wrap_pread64(fd, p, n, at);
}

/* failing, sync_fails: the errno of fsync(), unlink() and rename(); of fdatasync(); 0: none */
static _Atomic int synced_folders, failing, sync_fails;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	struct stat st;

	synced_folders += !fstat(fd, &st) && S_ISDIR(st.st_mode);
	errno = failing;
	return failing ? -1 : __real_fsync(fd);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	errno = sync_fails;
	return sync_fails ? -1 : __real_fdatasync(fd);
}

static int rival = -1;         /* descriptor of a reader that is faster than the next flock() */
static const char *rival_path; /* NULL: there is none */
static bool rival_removes;

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
	const char *path = rival_path;

	rival_path = NULL;
	if (path) {
		rival = open(path, O_RDWR);
		ck_assert(rival >= 0 && __real_flock(rival, LOCK_EX | LOCK_NB) == 0);
		if (rival_removes) {
			ck_assert(unlink(path) == 0);
			close(rival);
		}
	}
	return __real_flock(fd, how);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	errno = failing;
	return failing ? -1 : __real_unlink(path);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	errno = failing;
	return failing ? -1 : __real_rename(from, to);
}

/* ---- images of files ------------------------------------------------------------------------- */

struct image {
	struct fw_buf b;
	size_t at[RECORDS + 1]; /* of each record; the last is the end */
	bool old;
};

static size_t payload_bytes(size_t i)
{
	return 4 + i * 37 % 300; /* all paddings */
}

static size_t payload(size_t i, unsigned char out[FW_WAL_RECORD_MAX])
{
	uint32_t number = (uint32_t)i;
	size_t n = payload_bytes(i);

	memcpy(out, &number, sizeof(number));
	for (size_t k = sizeof(number); k < n; k++)
		out[k] = (unsigned char)(i * 31 + k * 7);
	return n;
}

static void add_old(struct fw_buf *b, const void *p, size_t len)
{
	uint32_t head[2] = {(uint32_t)len, 0x31737766};
	uint64_t sum = fw_hash64_seed(p, len, len), none = 0;

	fw_buf_add(b, head, sizeof(head));
	fw_buf_add(b, &sum, sizeof(sum));
	fw_buf_add(b, p, len);
	fw_buf_add(b, &none, PADDED(len) - len);
}

static void image_make(struct image *m, bool old)
{
	unsigned char p[FW_WAL_RECORD_MAX];

	*m = (struct image){.old = old};
	for (size_t i = 0; i < RECORDS; i++) {
		size_t n = payload(i, p);

		m->at[i] = m->b.len;
		(old ? add_old : fw_wal_record_add)(&m->b, p, n);
	}
	m->at[RECORDS] = m->b.len;
	if (!old)
		ck_assert_uint_eq(fw_wal_record_complete(m->b.p, m->b.len, 0, 0), RECORDS);
}

static void flip(struct image *m, size_t byte, unsigned bit)
{
	m->b.p[byte] = (char)(m->b.p[byte] ^ (1 << bit));
}

/* The number of the record that this is; its bytes are what was written. */
static size_t record_number(struct fw_str record)
{
	unsigned char want[FW_WAL_RECORD_MAX];
	uint32_t i;

	ck_assert_uint_ge(record.len, sizeof(i));
	ck_assert_uint_eq((uintptr_t)record.p % 8, 0);
	memcpy(&i, record.p, sizeof(i));
	ck_assert_uint_lt(i, RECORDS);
	ck_assert_uint_eq(payload(i, want), record.len);
	ck_assert(memcmp(record.p, want, record.len) == 0);
	return i;
}

struct found {
	bool record[RECORDS];
	size_t record_n, gap_n, gap_bytes, unfinished_bytes;
	struct fw_wal_gap first, last;
	uint64_t missed_n; /* what the gaps say */
	bool at_least;
};

static bool add_gap(struct found *f, const struct fw_wal_gap *gap)
{
	if (!gap->bytes)
		return false;
	if (!f->gap_n++)
		f->first = *gap;
	f->last = *gap;
	f->gap_bytes += gap->bytes;
	f->missed_n += gap->record_n;
	f->at_least |= gap->at_least;
	return true;
}

/* Walks a file of n bytes. Its parts are the whole file, and the gaps say what is missing. */
static struct found walk(const char *p, size_t n)
{
	struct found f = {0};
	struct fw_wal_walk w;
	struct fw_wal_gap gap;
	struct fw_str record;
	size_t head, sum = 0, before = 0;

	fw_wal_walk_begin(&w, p, n);
	head = w.old ? HEAD_OLD : HEAD;
	while (fw_wal_walk_next(&w, &record, &gap)) {
		size_t i = record_number(record);

		ck_assert(!f.record_n || i > before);
		if (add_gap(&f, &gap))
			ck_assert_uint_eq(gap.at, sum);
		sum += gap.bytes;
		ck_assert_ptr_eq(record.p, p + sum + head);
		sum += head + PADDED(record.len);
		f.record[i] = true;
		f.record_n++;
		before = i;
	}
	add_gap(&f, &gap);
	f.unfinished_bytes = w.unfinished_bytes;
	ck_assert_uint_eq(sum + gap.bytes + w.unfinished_bytes, n);
	ck_assert(!fw_wal_walk_next(&w, &record, &gap) && !gap.bytes); /* and so it stays */
	return f;
}

/* ---- the format ------------------------------------------------------------------------------ */

START_TEST(undamaged)
{
	struct image m;
	struct found f;

	image_make(&m, _i);
	f = walk(m.b.p, m.b.len);
	ck_assert_uint_eq(f.record_n, RECORDS);
	ck_assert(!f.gap_n && !f.unfinished_bytes);
	f = walk("", 0);
	ck_assert(!f.record_n && !f.gap_n && !f.unfinished_bytes);
	fw_buf_finish(&m.b);
}
END_TEST

/* Each bit of the first, a middle and the last record: head, bytes and padding. */
START_TEST(each_flip_costs_its_record_alone)
{
	static const size_t VICTIM[] = {0, RECORDS / 2, RECORDS - 1};
	struct image m;

	image_make(&m, _i);
	for (size_t v = 0; v < FW_N(VICTIM); v++) {
		size_t i = VICTIM[v], head = m.old ? HEAD_OLD : HEAD, padding = m.at[i] + head + payload_bytes(i);

		for (size_t bit = m.at[i] * 8; bit < m.at[i + 1] * 8; bit++) {
			struct found f;

			flip(&m, bit / 8, bit % 8);
			f = walk(m.b.p, m.b.len);
			flip(&m, bit / 8, bit % 8);
			ck_assert_uint_eq(f.unfinished_bytes, 0);
			if (bit / 8 >= padding) {
				ck_assert(f.record_n == RECORDS && !f.gap_n);
				continue;
			}
			ck_assert_msg(f.record_n == RECORDS - 1 && !f.record[i], "bit %zu of record %zu: %zu records",
				bit - m.at[i] * 8, i, f.record_n);
			ck_assert(f.gap_n == 1 && f.first.at == m.at[i] && f.gap_bytes == m.at[i + 1] - m.at[i]);
			ck_assert_uint_eq(f.missed_n, 1);
			/* there may have been more in old files, and if the last head is lost */
			ck_assert_int_eq(f.at_least, m.old || (i == RECORDS - 1 && bit / 8 < m.at[i] + HEAD));
		}
	}
	fw_buf_finish(&m.b);
}
END_TEST

static uint64_t dice_state;

static size_t dice(size_t n)
{
	dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(dice_state >> 33) % n;
}

static size_t record_of(const struct image *m, size_t byte)
{
	size_t i = 0;

	while (m->at[i + 1] <= byte)
		i++;
	return i;
}

/* Several flips, or a run of other bytes: no record is lost but those that they touch. FW_SEED. */
START_TEST(random_damage)
{
	const char *seed = getenv("FW_SEED");
	struct image m, x;

	image_make(&m, _i);
	dice_state = seed ? (uint64_t)atoll(seed) : 1;
	x = m;
	x.b.p = malloc(m.b.len);
	for (int round = 0; round < 20000 / (SLOW_BUILD ? 10 : 1); round++) {
		bool touched[RECORDS] = {0};
		size_t lost = 0;
		struct found f;

		memcpy(x.b.p, m.b.p, m.b.len);
		for (size_t k = 1 + dice(6); k; k--) {
			size_t at = dice(m.b.len), n = dice(4) ? (size_t)1 : FW_MIN(dice(500), m.b.len - at);

			for (size_t c = 0; c < n; c++) {
				x.b.p[at + c] = n == 1 ? (char)(x.b.p[at] ^ (1 << dice(8))) : (char)dice(256);
				touched[record_of(&m, at + c)] = true;
			}
		}
		f = walk(x.b.p, x.b.len);
		for (size_t i = 0; i < RECORDS; i++) {
			ck_assert_msg(f.record[i] || touched[i], "round %d: record %zu", round, i);
			lost += !f.record[i];
		}
		ck_assert(f.at_least ? f.missed_n <= lost : f.missed_n == lost);
		ck_assert_int_eq(lost > 0, f.gap_n > 0 || f.unfinished_bytes > 0);
	}
	free(x.b.p);
	fw_buf_finish(&m.b);
}
END_TEST

/* kill -9 during a write: what was there before stays, and the rest is no damage. */
START_TEST(cut_at_each_byte_of_the_last_two)
{
	struct image m;

	image_make(&m, _i);
	for (size_t n = m.at[RECORDS - 2]; n < m.b.len; n++) {
		size_t whole = n < m.at[RECORDS - 1] ? RECORDS - 2 : RECORDS - 1, rest = n - m.at[whole];
		struct found f = walk(m.b.p, n);

		ck_assert_uint_eq(f.record_n, whole);
		ck_assert_uint_eq(f.gap_bytes + f.unfinished_bytes, rest);
		if (!m.old)
			ck_assert_uint_eq(f.unfinished_bytes, rest);
		else if (rest >= HEAD_OLD) /* may be unfinished, or have a damaged length */
			ck_assert(f.gap_bytes && f.at_least);
	}
	for (size_t n = 1; n < m.at[1]; n++) { /* the first write of a file */
		struct found f = walk(m.b.p, n);

		ck_assert(!f.record_n && f.gap_bytes + f.unfinished_bytes == n);
		ck_assert(f.unfinished_bytes == n || (m.old && n >= HEAD_OLD));
	}
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(two_damaged)
{
	struct image m;
	struct found f;

	for (size_t second = 6; second < 9; second++) {
		image_make(&m, false);
		flip(&m, m.at[5], 3); /* a length */
		flip(&m, m.at[second] + HEAD, 0);
		f = walk(m.b.p, m.b.len);
		ck_assert_uint_eq(f.record_n, RECORDS - 2);
		ck_assert(!f.record[5] && !f.record[second]);
		ck_assert(f.gap_n == (second == 6 ? 1 : 2) && f.missed_n == 2 && !f.at_least);
		fw_buf_finish(&m.b);
	}
	image_make(&m, false);
	flip(&m, m.at[5] + HEAD, 0);
	f = walk(m.b.p, m.b.len - 1); /* one damaged, and the last unfinished */
	ck_assert(f.record_n == RECORDS - 2 && f.missed_n == 1 && !f.at_least);
	ck_assert_uint_eq(f.unfinished_bytes, m.b.len - 1 - m.at[RECORDS - 1]);
	flip(&m, m.at[RECORDS - 2], 0);
	f = walk(m.b.p, m.b.len - 1); /* the same beside each other */
	ck_assert(f.record_n == RECORDS - 3 && f.missed_n == 2 && !f.at_least);
	ck_assert_uint_eq(f.unfinished_bytes, m.b.len - 1 - m.at[RECORDS - 1]);
	fw_buf_finish(&m.b);
}
END_TEST

/* What a power failure may leave. */
START_TEST(zeros)
{
	static const size_t TAIL[] = {8, 16, 24, 100, 4096};
	struct image m;
	struct found f;
	char *none = calloc(1, 1 << 20);

	for (size_t t = 0; t < FW_N(TAIL); t++) {
		image_make(&m, _i);
		fw_buf_add(&m.b, none, TAIL[t]);
		f = walk(m.b.p, m.b.len);
		ck_assert_uint_eq(f.record_n, RECORDS);
		ck_assert(f.gap_n == 1 && f.first.at == m.at[RECORDS] && f.at_least);
		ck_assert_uint_eq(f.gap_bytes, TAIL[t]);
		fw_buf_finish(&m.b);
	}
	for (size_t n = 8; n <= 1 << 20; n = n * 3 + 1) {
		f = walk(none, n);
		ck_assert(!f.record_n && f.gap_n == 1 && f.gap_bytes == n && f.at_least);
	}
	image_make(&m, _i);
	memset(m.b.p + m.at[10] + 30, 0, m.at[20] + 5 - (m.at[10] + 30)); /* a hole */
	f = walk(m.b.p, m.b.len);
	ck_assert_uint_eq(f.record_n, RECORDS - 11);
	ck_assert(f.gap_n == 1 && f.first.at == m.at[10] && f.gap_bytes == m.at[21] - m.at[10]);
	ck_assert(m.old ? f.at_least : f.missed_n == 11 && !f.at_least);
	fw_buf_finish(&m.b);
	image_make(&m, _i);
	memset(m.b.p + m.at[30] + 30, 0, m.b.len - m.at[30] - 30); /* the last ones */
	f = walk(m.b.p, m.b.len);
	ck_assert(f.record_n == 30 && f.gap_bytes == m.b.len - m.at[30] && f.at_least && !f.unfinished_bytes);
	fw_buf_finish(&m.b);
	free(none);
}
END_TEST

START_TEST(foreign)
{
	static const char TEXT[] = "#!/bin/sh\n# not a log, though its name says so: fws1 fws2 fws2fws2\nexit 0\n";
	struct found f = walk(TEXT, sizeof(TEXT) - 1);
	unsigned char noise[5000];

	ck_assert(!f.record_n && f.gap_n == 1 && f.first.at == 0 && f.at_least);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)dice(256);
		f = walk((char *)noise, sizeof(noise));
		ck_assert(!f.record_n && f.gap_n == 1 && f.gap_bytes == sizeof(noise));
	}
}
END_TEST

/* A client pushes what looks like a record, and the head of its row is damaged. */
START_TEST(pushed_bytes_are_no_record)
{
	struct fw_buf inner = FW_BUF_INIT(0), outer = FW_BUF_INIT(0);
	unsigned char p[FW_WAL_RECORD_MAX];
	struct fw_wal_walk w;
	struct fw_wal_gap gap;
	struct fw_str record;

	(_i ? add_old : fw_wal_record_add)(&inner, p, payload(1, p));
	if (!_i)
		fw_wal_record_complete(inner.p, inner.len, 0, 0);
	fw_wal_record_add(&outer, inner.p, inner.len);
	fw_wal_record_add(&outer, p, payload(2, p));
	fw_wal_record_complete(outer.p, outer.len, 0, 0);
	outer.p[1] ^= 1;
	fw_wal_walk_begin(&w, outer.p, outer.len);
	ck_assert(fw_wal_walk_next(&w, &record, &gap));
	ck_assert_uint_eq(record_number(record), 2);
	ck_assert(gap.bytes == HEAD + inner.len && gap.record_n == 1 && !gap.at_least);
	fw_buf_finish(&inner);
	fw_buf_finish(&outer);
}
END_TEST

/* The worst files: a head wherever there may be one, as long as a record can be. */
START_TEST(linear)
{
	size_t n = (size_t)1 << 20, at = 0;
	uint32_t head_old[2] = {FW_WAL_RECORD_MAX, 0x31737766};
	struct fw_wal_head h = {FW_WAL_RECORD_MAX, 0x32737766, 0, 0, 0};
	char *p = calloc(1, n);
	struct found f;

	for (at = 0; at + 8 <= n; at += 8)
		memcpy(p + at, head_old, 8);
	hashed_bytes = 0;
	f = walk(p, n);
	ck_assert(!f.record_n && f.gap_bytes + f.unfinished_bytes == n);
	ck_assert_uint_le(hashed_bytes, n / 8 * FW_WAL_RECORD_MAX);
	for (at = 0; at + HEAD <= n; at += HEAD) {
		memcpy(p + at, &h, HEAD);
		fw_wal_record_complete(p + at, HEAD, at, (uint32_t)at);
	}
	hashed_bytes = 0;
	f = walk(p, n);
	ck_assert(!f.record_n && f.gap_bytes + f.unfinished_bytes == n);
	ck_assert_uint_le(hashed_bytes, 4 * n);
	free(p);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[64];
static struct fw_err err;

static void setup(void)
{
	(void)fw_snprintf(folder, sizeof(folder), "/tmp/fw-wal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	logged[0] = '\0';
}

static const char *in_folder(const char *name)
{
	static char path[4][400];
	static unsigned turn;

	turn = (turn + 1) % 4;
	ck_assert(fw_snprintf(path[turn], sizeof(path[0]), "%s/%s", folder, name));
	return path[turn];
}

/* The names of the folder's files, each followed by a space, in order. */
static const char *files(void)
{
	static char names[2000];
	struct dirent **e;
	int n = scandir(folder, &e, NULL, alphasort);

	names[0] = '\0';
	for (int i = 0; i < n; i++) {
		size_t len = strlen(names);

		if (e[i]->d_name[0] != '.')
			(void)fw_snprintf(names + len, sizeof(names) - len, "%s ", e[i]->d_name);
		free(e[i]);
	}
	free(n >= 0 ? (void *)e : NULL);
	return names;
}

static void teardown(void)
{
	char names[2000], *rest = names, *name;

	failing = 0;
	bad_from = bad_to = 0;
	fw_str_copy(names, sizeof(names), fw_str(files()));
	while ((name = strtok_r(rest, " ", &rest)))
		(void)remove(in_folder(name));
	rmdir(folder);
}

static void file_write(const char *name, const void *p, size_t n)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fw_write_all(fd, p, n), 0);
	close(fd);
}

static size_t file_bytes(const char *name)
{
	struct stat st;

	return stat(in_folder(name), &st) ? SIZE_MAX : (size_t)st.st_size;
}

/* Reads all files as a start does. The number of records, or of those that refuse() leaves. */
static size_t replay(bool refuses_each_second)
{
	struct fw_wal_reader *r;
	struct fw_str record;
	size_t n = 0;

	logged[0] = '\0';
	ck_assert_int_eq(fw_wal_reader_open(folder, &r, &err), 0);
	ck_assert(!fw_wal_reader_read(r, &record)); /* no file is open */
	while (fw_wal_reader_next(r)) {
		while (fw_wal_reader_read(r, &record)) {
			if (record_number(record) % 2 && refuses_each_second)
				fw_wal_reader_refuse(r);
			else
				n++;
		}
		ck_assert(!fw_wal_reader_read(r, &record));
	}
	fw_wal_reader_close(r);
	return n;
}

FW_PRINTF(1, 2) static void check_logged(const char *fmt, ...)
{
	struct fw_buf want = FW_BUF_INIT(0);
	va_list ap;

	va_start(ap, fmt);
	fw_buf_vaddf(&want, fmt, ap);
	va_end(ap);
	ck_assert_msg(strstr(logged, want.p) != NULL, "not logged: %s\nbut: %s", want.p, logged);
	fw_buf_finish(&want);
}

/* 20 bytes of the first, a middle and the last record, each bit: rows, files and words are true. */
START_TEST(each_flip_is_said_truly)
{
	static const size_t VICTIM[] = {0, RECORDS / 2 - 1, RECORDS - 1};
	size_t i = VICTIM[_i], bytes;
	struct image m;

	image_make(&m, false);
	bytes = m.at[i + 1] - m.at[i];
	for (size_t k = 0; k < 20; k++) {
		/* 12 in the head, 7 in the rest, and the last, which is padding */
		size_t byte = k < 12 ? k * 2 : k < 19 ? HEAD + (k - 12) * (payload_bytes(i) - 1) / 6 : bytes - 1;
		bool padding = byte >= HEAD + payload_bytes(i);

		for (unsigned bit = 0; bit < 8; bit++) {
			flip(&m, m.at[i] + byte, bit);
			file_write("1-0.wal", m.b.p, m.b.len);
			flip(&m, m.at[i] + byte, bit);
			ck_assert_uint_eq(replay(false), padding ? RECORDS : RECORDS - 1);
			ck_assert_str_eq(files(), padding ? "" : "1-0.wal.damaged ");
			if (padding) {
				ck_assert_str_eq(logged, "");
				continue;
			}
			check_logged("0 wal_dir: %s: damaged at byte %zu: skipped %zu bytes, %s1 record\n",
				in_folder("1-0.wal"), m.at[i], bytes,
				i == RECORDS - 1 && byte < HEAD ? "at least " : "");
			check_logged(
				"stored %d records, skipped %s1 (%zu bytes, in 1 places); the file is kept as %s\n",
				RECORDS - 1, i == RECORDS - 1 && byte < HEAD ? "at least " : "", bytes,
				in_folder("1-0.wal.damaged"));
			ck_assert_uint_eq(file_bytes("1-0.wal.damaged"), m.b.len);
			unlink(in_folder("1-0.wal.damaged"));
		}
	}
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(unfinished_write_is_no_damage)
{
	struct image m;

	image_make(&m, false);
	file_write("1-0.wal", m.b.p, m.b.len - 5);
	ck_assert_uint_eq(replay(false), RECORDS - 1);
	ck_assert_str_eq(files(), "");
	ck_assert(logged[0] == '2' && !strchr(strchr(logged, '\n'), '0')); /* one line, at info */
	check_logged("1-0.wal: the last %zu bytes are a write that did not end", m.b.len - 5 - m.at[RECORDS - 1]);
	fw_buf_finish(&m.b);
	image_make(&m, true); /* an old one may have been damaged */
	file_write("1-0.wal", m.b.p, m.b.len - 5);
	ck_assert_uint_eq(replay(false), RECORDS - 1);
	ck_assert_str_eq(files(), "1-0.wal.damaged ");
	file_write("2-0.wal", m.b.p, m.b.len);
	ck_assert_uint_eq(replay(false), RECORDS);
	ck_assert_str_eq(files(), "1-0.wal.damaged ");
	ck_assert_str_eq(logged, "");
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(refused_records_are_kept)
{
	struct image m;

	image_make(&m, false);
	file_write("1-0.wal", m.b.p, m.b.len);
	ck_assert_uint_eq(replay(true), RECORDS / 2);
	ck_assert_str_eq(files(), "1-0.wal.damaged ");
	check_logged(
		"not a row of this version at byte %zu: skipped %zu bytes, 1 record\n", m.at[1], m.at[2] - m.at[1]);
	check_logged("stored %d records, skipped %d (", RECORDS / 2, RECORDS / 2);
	check_logged("in %d places", RECORDS / 2);
	fw_buf_finish(&m.b);
}
END_TEST

/* A file of much damage does not fill the log. */
START_TEST(many_gaps_are_few_lines)
{
	struct image m;
	size_t lines = 0;

	image_make(&m, false);
	for (size_t i = 0; i < RECORDS; i += 2)
		flip(&m, m.at[i], 0);
	file_write("1-0.wal", m.b.p, m.b.len);
	ck_assert_uint_eq(replay(false), RECORDS / 2);
	for (const char *p = logged; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, 11);
	check_logged("skipped %d (", RECORDS / 2);
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(damaged_file_replaces_none)
{
	struct image m;

	image_make(&m, false);
	flip(&m, m.at[3] + HEAD, 1);
	file_write("1-0.wal.damaged", "mine", 4);
	file_write("1-0.wal.damaged-2", "mine", 4);
	file_write("1-0.wal", m.b.p, m.b.len);
	ck_assert_uint_eq(replay(false), RECORDS - 1);
	ck_assert_str_eq(files(), "1-0.wal.damaged 1-0.wal.damaged-2 1-0.wal.damaged-3 ");
	ck_assert(file_bytes("1-0.wal.damaged") == 4 && file_bytes("1-0.wal.damaged-2") == 4);
	ck_assert_uint_eq(file_bytes("1-0.wal.damaged-3"), m.b.len);
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(blocks_that_the_disk_cannot_read)
{
	struct image m;
	size_t lost = 0;

	image_make(&m, false);
	ck_assert_uint_gt(m.b.len, 5000);
	file_write("1-0.wal", m.b.p, m.b.len);
	bad_from = 1000;
	bad_to = 4096;
	for (size_t i = 0; i < RECORDS; i++)
		lost += m.at[i + 1] > 1000 && m.at[i] < 4096;
	ck_assert_uint_eq(replay(false), RECORDS - lost);
	check_logged(
		"0 wal_dir: %s: the disk cannot read 3096 bytes at byte 1000 (check the disk)\n", in_folder("1-0.wal"));
	check_logged("skipped %zu (", lost);
	ck_assert_str_eq(files(), "1-0.wal.damaged ");
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(what_is_no_file_stays)
{
	struct image m;
	int fd;

	image_make(&m, false);
	ck_assert_int_eq(mkdir(in_folder("a.wal"), 0700), 0);
	ck_assert_int_eq(mkfifo(in_folder("b.wal"), 0600), 0);
	ck_assert_int_eq(symlink("/etc/passwd", in_folder("c.wal")), 0);
	file_write("d.wal", m.b.p, m.b.len);
	file_write("e.wal", m.b.p, m.b.len); /* a live process has it */
	file_write("f.waltz", m.b.p, m.b.len);
	fd = open(in_folder("e.wal"), O_RDWR);
	ck_assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
	ck_assert_uint_eq(replay(false), RECORDS);
	ck_assert_str_eq(files(), "a.wal b.wal c.wal e.wal f.waltz ");
	check_logged("0 wal_dir: cannot read %s: Is a directory", in_folder("a.wal"));
	check_logged("0 wal_dir: cannot read %s: Invalid argument", in_folder("b.wal"));
	check_logged("0 wal_dir: cannot read %s: Too many levels", in_folder("c.wal"));
	ck_assert_ptr_null(strstr(logged, "e.wal"));
	close(fd);
	ck_assert_uint_eq(replay(false), RECORDS);
	fw_buf_finish(&m.b);
}
END_TEST

/* Removal and renaming fail: the rows are safe, the next start has the file again. */
START_TEST(file_that_cannot_be_removed)
{
	struct image m;

	image_make(&m, false);
	file_write("1-0.wal", m.b.p, m.b.len);
	failing = EROFS;
	ck_assert_uint_eq(replay(false), RECORDS);
	check_logged("1 wal_dir: cannot remove %s, whose rows are all stored: Read-only", in_folder("1-0.wal"));
	flip(&m, m.at[3], 1);
	file_write("1-0.wal", m.b.p, m.b.len);
	ck_assert_uint_eq(replay(false), RECORDS - 1);
	check_logged("0 wal_dir: cannot rename the damaged file %s: Read-only", in_folder("1-0.wal"));
	failing = 0;
	ck_assert_uint_eq(replay(false), RECORDS - 1);
	ck_assert_uint_eq(file_bytes("1-0.wal"), SIZE_MAX);
	fw_buf_finish(&m.b);
}
END_TEST

START_TEST(folder_that_is_not_there)
{
	struct fw_wal_reader *r;
	struct fw_wal *s;
	struct fw_str record;

	ck_assert_int_eq(fw_wal_reader_open(in_folder("none"), &r, &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "wal_dir = ") && strstr(err.text, "No such file"), "%s", err.text);
	ck_assert_ptr_null(r);
	ck_assert_int_eq(fw_wal_open("/proc/none/wal", 0, 1, &s, &err), FW_EINVAL);
	ck_assert_ptr_null(s);
	ck_assert_int_eq(fw_wal_reader_open(folder, &r, &err), 0);
	rmdir(folder);
	ck_assert(!fw_wal_reader_next(r) && !fw_wal_reader_read(r, &record));
	fw_wal_reader_close(r);
	mkdir(folder, 0700);
}
END_TEST

/* ---- writing --------------------------------------------------------------------------------- */

static struct fw_wal *wal_open(int64_t sync_ms)
{
	struct fw_wal *s;

	ck_assert_msg(fw_wal_open(folder, sync_ms, 1, &s, &err) == 0, "%s", err.text);
	return s;
}

/* Adds the records [from, to) with one write. */
static int wal_put(struct fw_wal *s, size_t from, size_t to)
{
	unsigned char p[FW_WAL_RECORD_MAX];

	for (size_t i = from; i < to; i++)
		fw_wal_add(s, 0, p, payload(i, p));
	return fw_wal_write(s, 0, to, &err);
}

static const char *own(unsigned number, const char *tail)
{
	static char name[2][80];
	static unsigned turn;

	turn ^= 1;
	ck_assert(fw_snprintf(name[turn], sizeof(name[0]), "%d-%u.wal%s", (int)getpid(), number, tail));
	return name[turn];
}

/* The names that would come next exist: files of an earlier process with this pid, or a copy. */
START_TEST(new_file_replaces_none)
{
	struct image m;
	struct fw_wal *s;

	image_make(&m, false);
	file_write(own(0, ""), m.b.p, m.b.len);
	file_write(own(1, ""), m.b.p, 0);
	ck_assert_int_eq(mkdir(in_folder(own(2, "")), 0700), 0);
	s = wal_open(_i * 1000);
	ck_assert_int_eq(wal_put(s, 0, 3), 0);
	ck_assert_uint_eq(file_bytes(own(0, "")), m.b.len);
	ck_assert_uint_eq(file_bytes(own(1, "")), 0);
	ck_assert_uint_eq(file_bytes(own(3, "")), m.at[3]);
	ck_assert_uint_eq(replay(false), RECORDS); /* not ours: we live */
	ck_assert_uint_eq(file_bytes(own(0, "")), SIZE_MAX);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 3);
	fw_buf_finish(&m.b);
}
END_TEST

/* A reader locks the new file before its process does, and removes it as an empty one. */
START_TEST(reader_is_faster)
{
	struct fw_wal *s = wal_open(0);

	rival_path = in_folder(own(0, ""));
	rival_removes = _i;
	ck_assert_int_eq(wal_put(s, 0, 3), 0);
	ck_assert_uint_eq(file_bytes(own(0, "")), _i ? SIZE_MAX : 0);
	ck_assert_uint_ne(file_bytes(own(1, "")), SIZE_MAX);
	if (!_i)
		close(rival);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 3);
	ck_assert_str_eq(files(), "");
}
END_TEST

/* The file of several writes is that of one. */
START_TEST(records_are_numbered_over_writes)
{
	struct fw_wal *s = wal_open(0);
	struct image m;
	char *p;
	int fd;

	image_make(&m, false);
	ck_assert_int_eq(wal_put(s, 0, 2), 0);
	ck_assert_int_eq(wal_put(s, 2, 3), 0);
	ck_assert_int_eq(wal_put(s, 3, 9), 0);
	p = malloc(m.at[9]);
	fd = open(in_folder(own(0, "")), O_RDONLY);
	ck_assert(fd >= 0 && file_bytes(own(0, "")) == m.at[9]);
	ck_assert_int_eq(read(fd, p, m.at[9]), (ssize_t)m.at[9]);
	ck_assert(memcmp(p, m.b.p, m.at[9]) == 0);
	close(fd);
	free(p);
	fw_wal_close(s);
	fw_buf_finish(&m.b);
}
END_TEST

/* Two logs of one process; a draft that is discarded; several files in a row. */
START_TEST(written_is_read)
{
	struct fw_wal *a = wal_open(0), *b = wal_open(0);
	unsigned char p[FW_WAL_RECORD_MAX];

	ck_assert_int_eq(wal_put(a, 0, 10), 0);
	ck_assert_int_eq(wal_put(b, 0, 4), 0);
	fw_wal_add(a, 0, p, payload(10, p));
	fw_wal_discard(a, 0);
	ck_assert_int_eq(wal_put(a, 10, 15), 0);
	ck_assert_uint_eq(replay(false), 0);
	fw_wal_stored(b, 0, 3);
	fw_wal_close(a);
	fw_wal_close(b);
	ck_assert_uint_eq(replay(false), 15 + 4);
	ck_assert_str_eq(logged, "");
	a = wal_open(0);
	ck_assert_int_eq(wal_put(a, 0, 3), 0);
	fw_wal_stored(a, 0, 3);
	fw_wal_close(a);
	ck_assert_str_eq(files(), "");
}
END_TEST

/* The disk takes half a record: the write is refused, and leaves no trace. */
START_TEST(short_write)
{
	struct rlimit was, limit;
	struct fw_wal *s = wal_open(_i * 1000);
	struct image m;

	image_make(&m, false);
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = m.at[6] + 11;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	ck_assert_int_eq(wal_put(s, 0, 5), 0);
	ck_assert_int_eq(wal_put(s, 5, 9), FW_EIO);
	ck_assert_msg(strstr(err.text, "wal_dir: ") && strstr(err.text, "(free some space there)"), "%s", err.text);
	ck_assert_uint_eq(file_bytes(own(0, "")), m.at[5]);
	setrlimit(RLIMIT_FSIZE, &was);
	ck_assert_int_eq(wal_put(s, 5, 8), 0);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 8);
	ck_assert_str_eq(logged, "");
	fw_buf_finish(&m.b);
}
END_TEST

/* A file whose first write failed has no number that is used twice. */
START_TEST(refused_write_has_no_numbers)
{
	struct fw_wal *s = wal_open(0);

	ck_assert_int_eq(wal_put(s, 0, 2), 0);
	sync_fails = EIO;
	ck_assert_int_eq(wal_put(s, 2, 4), FW_EIO);
	ck_assert_msg(strstr(err.text, "(check the folder and its disk)"), "%s", err.text);
	sync_fails = 0;
	ck_assert_int_eq(wal_put(s, 2, 5), 0);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 5);
	ck_assert_str_eq(logged, "");
}
END_TEST

/* wal_sync_ms = 0: no push is answered before the file's name is on the disk. */
START_TEST(folder_is_synced_before_the_first_answer)
{
	struct fw_wal *s = wal_open(0);

	synced_folders = 0;
	failing = EIO;
	ck_assert_int_eq(wal_put(s, 0, 1), FW_EIO);
	ck_assert_msg(strstr(err.text, "Input/output error (check the folder and its disk)"), "%s", err.text);
	failing = 0;
	ck_assert_int_eq(synced_folders, 1);
	ck_assert_int_eq(wal_put(s, 0, 1), 0);
	ck_assert_int_eq(synced_folders, 2);
	ck_assert_int_eq(wal_put(s, 1, 2), 0);
	ck_assert_int_eq(synced_folders, 2);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 2);
}
END_TEST

START_TEST(folder_is_synced_by_the_thread)
{
	struct fw_wal *s = wal_open(1);

	synced_folders = 0;
	ck_assert_int_eq(wal_put(s, 0, 1), 0);
	while (!synced_folders)
		usleep(1000);
	fw_wal_close(s);
	ck_assert_int_eq(synced_folders, 1);
	s = wal_open(3600 * 1000);
	ck_assert_int_eq(wal_put(s, 0, 1), 0);
	failing = EIO;
	fw_wal_close(s); /* as the end does */
	failing = 0;
	ck_assert_int_eq(synced_folders, 2);
	check_logged("1 wal_dir: accepted rows may be lost in a power failure, sync failed: Input/output error");
}
END_TEST

/* The setting's folder itself. */
START_TEST(new_folder_is_synced_into_its_parent)
{
	struct fw_wal *s;
	char path[100];

	ck_assert(fw_snprintf(path, sizeof(path), "%s/wal/", folder));
	synced_folders = 0;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(fw_wal_open(path, 0, 1, &s, &err), 0);
		ck_assert_int_eq(synced_folders, 1); /* when it is new */
		fw_wal_close(s);
	}
	rmdir(path);
	failing = EIO;
	ck_assert_int_eq(fw_wal_open(path, 0, 1, &s, &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "Input/output error"), "%s", err.text);
}
END_TEST

/* Somebody removes the files of a running server, then the folder. */
START_TEST(removed_file_takes_no_more_rows)
{
	struct fw_wal *s = wal_open(_i);

	ck_assert_int_eq(wal_put(s, 0, 3), 0);
	ck_assert_int_eq(__real_unlink(in_folder(own(0, ""))), 0);
	/* with a thread, once it has seen it */
	for (size_t i = 3; file_bytes(own(1, "")) == SIZE_MAX; i += _i == 0 || i + 1 < RECORDS) {
		ck_assert_int_eq(wal_put(s, i, i + 1), 0);
		ck_assert(_i || i == 3);
		usleep(1000 * (unsigned)_i);
	}
	check_logged("1 wal_dir: somebody has removed %s: rows of it that are not stored are in memory only",
		in_folder(own(0, "")));
	ck_assert_int_eq(__real_unlink(in_folder(own(1, ""))), 0);
	rmdir(folder);
	while (wal_put(s, RECORDS - 1, RECORDS) == 0)
		usleep(1000);
	ck_assert_msg(strstr(err.text, "No such file or directory (check the folder and its disk)"), "%s", err.text);
	ck_assert_int_eq(mkdir(folder, 0700), 0); /* and it is back */
	ck_assert_int_eq(wal_put(s, RECORDS - 1, RECORDS), 0);
	fw_wal_close(s);
	ck_assert_uint_eq(replay(false), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine wal");
	TCase *t = tcase_create("format"), *f = tcase_create("files");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, undamaged, 0, 2); /* 1: the old format */
	tcase_add_loop_test(t, each_flip_costs_its_record_alone, 0, 2);
	tcase_add_loop_test(t, random_damage, 0, 2);
	tcase_add_loop_test(t, cut_at_each_byte_of_the_last_two, 0, 2);
	tcase_add_test(t, two_damaged);
	tcase_add_loop_test(t, zeros, 0, 2);
	tcase_add_test(t, foreign);
	tcase_add_loop_test(t, pushed_bytes_are_no_record, 0, 2);
	tcase_add_test(t, linear);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, setup, teardown);
	tcase_set_timeout(f, 120);
	tcase_add_loop_test(f, each_flip_is_said_truly, 0, 3);
	tcase_add_test(f, unfinished_write_is_no_damage);
	tcase_add_test(f, refused_records_are_kept);
	tcase_add_test(f, many_gaps_are_few_lines);
	tcase_add_test(f, damaged_file_replaces_none);
	tcase_add_test(f, blocks_that_the_disk_cannot_read);
	tcase_add_test(f, what_is_no_file_stays);
	tcase_add_test(f, file_that_cannot_be_removed);
	tcase_add_test(f, folder_that_is_not_there);
	tcase_add_loop_test(f, new_file_replaces_none, 0, 2); /* 0: wal_sync_ms = 0; else a thread */
	tcase_add_loop_test(f, reader_is_faster, 0, 2);
	tcase_add_test(f, records_are_numbered_over_writes);
	tcase_add_test(f, written_is_read);
	tcase_add_loop_test(f, short_write, 0, 2);
	tcase_add_test(f, refused_write_has_no_numbers);
	tcase_add_test(f, folder_is_synced_before_the_first_answer);
	tcase_add_test(f, folder_is_synced_by_the_thread);
	tcase_add_test(f, new_folder_is_synced_into_its_parent);
	tcase_add_loop_test(f, removed_file_takes_no_more_rows, 0, 2);
	suite_add_tcase(s, f);
	return run_suite(s);
}
