/* SPDX-License-Identifier: ISC */
/*
 * Files of the write-ahead log. An odd first byte: the rest is a file. Else the rest describes one:
 * its records, and then damage to it. Parts of a walk are the whole file; each record has the sum
 * that its head says; no record is lost but those that the damage touches.
 */
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "engine/push/wal_format.h"
#include "fuzz.h"

#define RECORDS_MAX 40
#define HEAD_OLD offsetof(struct fw_wal_head, number)

struct file {
	struct fw_buf b;
	size_t end[RECORDS_MAX], record_n;
	bool touched[RECORDS_MAX], found[RECORDS_MAX];
};

/* The record is as its head says. */
static void check_sum(const struct fw_wal_walk *w, struct fw_str record)
{
	size_t head_bytes = w->old ? HEAD_OLD : sizeof(struct fw_wal_head);
	struct fw_wal_head h = {0};

	memcpy(&h, record.p - head_bytes, head_bytes);
	FUZZ_CHECK(h.bytes == record.len && record.len <= FW_WAL_RECORD_MAX);
	FUZZ_CHECK(h.sum == fw_hash64_seed(record.p, record.len, record.len));
	FUZZ_CHECK((uintptr_t)record.p % 8 == 0);
}

static void note_record(struct file *f, size_t end)
{
	for (size_t i = 0; f && i < f->record_n; i++)
		f->found[i] |= f->end[i] == end;
}

/* f NULL: a file of any bytes. */
static void check_walk(const char *p, size_t n, struct file *f)
{
	struct fw_wal_walk w;
	struct fw_wal_gap gap;
	struct fw_str record;
	size_t at = 0;

	fw_wal_walk_begin(&w, p, n);
	while (fw_wal_walk_next(&w, &record, &gap)) {
		FUZZ_CHECK(!gap.bytes || (gap.at == at && gap.record_n));
		FUZZ_CHECK(w.at > at + gap.bytes && w.at <= n);
		FUZZ_CHECK(record.p > p + at && record.p + record.len <= p + w.at);
		check_sum(&w, record);
		at = w.at;
		note_record(f, at);
	}
	FUZZ_CHECK(!gap.bytes || (gap.at == at && gap.record_n));
	FUZZ_CHECK(at + gap.bytes + w.unfinished_bytes == n);
}

/* Two bytes each: the length of a record, and what it is filled with. */
static void make_records(struct file *f, const uint8_t *data, size_t n)
{
	char record[FW_WAL_RECORD_MAX];

	f->record_n = FW_MIN((size_t)RECORDS_MAX, n / 2);
	for (size_t i = 0; i < f->record_n; i++) {
		memset(record, data[2 * i + 1], sizeof(record));
		fw_wal_record_add(&f->b, record, data[2 * i] * 4);
		f->end[i] = f->b.len;
	}
	fw_wal_record_complete(f->b.p, f->b.len, 0, 0);
}

/* Four bytes each: the place, how many bytes, and what they are xored with. */
static void damage(struct file *f, const uint8_t *data, size_t n)
{
	for (; n >= 4; data += 4, n -= 4) {
		size_t at = (data[0] | (size_t)data[1] << 8) % f->b.len, to = FW_MIN(at + data[2] + 1, f->b.len);

		for (size_t c = at; c < to && data[3]; c++) {
			f->b.p[c] = (char)(f->b.p[c] ^ data[3]);
			for (size_t i = 0; i < f->record_n; i++)
				f->touched[i] |= c < f->end[i] && (!i || c >= f->end[i - 1]);
		}
	}
}

static void check_described(const uint8_t *data, size_t n)
{
	size_t records = FW_MIN(n, (size_t)data[0] % RECORDS_MAX * 2);
	struct file f = {.b = FW_BUF_INIT(0)};

	make_records(&f, data + 1, FW_MIN(records, n - 1));
	if (f.b.len && records < n - 1)
		damage(&f, data + 1 + records, n - 1 - records);
	if (f.b.len)
		check_walk(f.b.p, f.b.len, &f);
	for (size_t i = 0; i < f.record_n; i++)
		FUZZ_CHECK(f.found[i] || f.touched[i]);
	fw_buf_finish(&f.b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *file;

	if (size < 2)
		return 0;
	if (!(data[0] & 1)) {
		check_described(data + 1, size - 1);
		return 0;
	}
	file = malloc(size - 1); /* aligned */
	if (!file)
		abort();
	memcpy(file, data + 1, size - 1);
	check_walk(file, size - 1, NULL);
	free(file);
	return 0;
}
