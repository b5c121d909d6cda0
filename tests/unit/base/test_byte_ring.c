/* SPDX-License-Identifier: ISC */
/*
 * The ring of records, compared with a plain model. It runs every sequence of DEPTH steps from
 * every relevant position: each kind of record crosses, touches and just misses the end of the
 * memory, with the indices near zero and about to wrap.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_ring.h"
#include "base/str.h"
#include "../../suite.h"

#define BYTES 4096
#define DEPTH 6

/*
 * What the ring should hold: records, oldest first, each with its end; the first `read` of them
 * were read.
 */
struct model {
	struct {
		size_t len, end;
		unsigned char tag;
	} record[64];
	size_t n, read, drafted; /* drafted records follow the n published ones */
	size_t head, tail;       /* head: the end of the last record; tail: the end of the last published one */
	unsigned char tag;
};

static const size_t LEN[] = {0, 1, 8, 1000, BYTES / 2 - 8};

enum { PUBLISH = FW_N(LEN), FORGET, NEXT, RELEASE, STEPS };

static void copy(struct fw_byte_ring *to, const struct fw_byte_ring *from)
{
	unsigned char *mem = to->mem;

	memcpy(mem, from->mem, BYTES);
	memcpy(to, from, sizeof(*to));
	to->mem = mem;
}

static void draft(struct fw_byte_ring *r, struct model *m, size_t len)
{
	size_t total = m->n + m->drafted, from = total ? m->record[total - 1].end : m->tail,
	       room = 8 + (len + 7) / 8 * 8;
	void *at = fw_byte_ring_draft(r, len);

	if (from / BYTES != (from + room - 1) / BYTES)
		from = (from / BYTES + 1) * BYTES; /* it must be in one piece */
	if (from + room - m->head > BYTES) {
		ck_assert_ptr_null(at);
		return;
	}
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq((uintptr_t)at % 8, 0);
	m->record[total].len = len;
	m->record[total].end = from + room;
	m->record[total].tag = ++m->tag;
	m->drafted++;
	memset(at, m->tag, len);
}

static void next(struct fw_byte_ring *r, struct model *m)
{
	size_t len = 99, seen = 99;
	const unsigned char *ahead = fw_byte_ring_peek(r, &seen), *at = fw_byte_ring_next(r, &len);

	ck_assert_ptr_eq(at, ahead);
	ck_assert_uint_eq(len, seen);
	if (m->read == m->n) {
		ck_assert_ptr_null(at);
		return;
	}
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq(len, m->record[m->read].len);
	for (size_t i = 0; i < len; i++) {
		if (at[i] != m->record[m->read].tag)
			ck_abort_msg("record %zu has byte %zu of another", m->read, i);
	}
	m->read++;
}

static void step(struct fw_byte_ring *r, struct model *m, int what)
{
	switch (what) {
	case PUBLISH:
		fw_byte_ring_publish(r);
		m->n += m->drafted;
		m->drafted = 0;
		if (m->n)
			m->tail = m->record[m->n - 1].end;
		break;
	case FORGET:
		fw_byte_ring_drop(r);
		m->drafted = 0;
		break;
	case NEXT:
		next(r, m);
		break;
	case RELEASE:
		fw_byte_ring_release(r);
		if (m->read)
			m->head = m->record[m->read - 1].end;
		memmove(m->record, m->record + m->read, (m->n + m->drafted - m->read) * sizeof(m->record[0]));
		m->n -= m->read;
		m->read = 0;
		break;
	default:
		draft(r, m, LEN[what]);
		break;
	}
	ck_assert_uint_le(fw_byte_ring_fill(r), BYTES);
	ck_assert_uint_eq(fw_byte_ring_fill(r), m->tail - m->head);
}

/* Reads everything; it must be what went in. */
static void drain(struct fw_byte_ring *r, struct model *m)
{
	step(r, m, PUBLISH);
	while (m->read < m->n)
		next(r, m);
	next(r, m);
	step(r, m, RELEASE);
	ck_assert_uint_eq(fw_byte_ring_fill(r), 0);
}

static void all_sequences(struct fw_byte_ring *level, const struct model *m, int depth)
{
	for (int what = 0; what < STEPS; what++) {
		struct model after = *m;

		copy(&level[1], &level[0]);
		step(&level[1], &after, what);
		if (depth > 1)
			all_sequences(level + 1, &after, depth - 1);
		else
			drain(&level[1], &after);
	}
}

/* from: the start value of both indices */
static void explore(size_t from, int depth)
{
	struct fw_byte_ring level[DEPTH + 1];
	struct model m = {.head = from, .tail = from};

	for (int i = 0; i <= depth; i++)
		ck_assert_int_eq(fw_byte_ring_init(&level[i], BYTES), 0);
	level[0].draft = level[0].head_seen = level[0].next = level[0].tail_seen = from;
	atomic_store(&level[0].tail, from);
	atomic_store(&level[0].head, from);
	all_sequences(level, &m, depth);
	for (int i = 0; i <= depth; i++)
		fw_byte_ring_finish(&level[i]);
}

START_TEST(every_sequence_from_where_it_wraps)
{
	/*
	 * at the start; a record of 8 touches the end, crosses it by its header, by its last byte;
	 * half is left; the indices wrap
	 */
	static const size_t FROM[] = {0, BYTES - 16, BYTES - 8, BYTES - 24, BYTES / 2, BYTES / 2 + 8, SIZE_MAX - 15,
		SIZE_MAX - BYTES / 2 - 7};

	explore(FROM[_i], 4);
}
END_TEST

START_TEST(longer_sequences_at_the_end)
{
	explore(BYTES - 16, DEPTH - 1);
}
END_TEST

START_TEST(every_position)
{
	for (size_t from = 0; from < BYTES; from += 8)
		explore(from, 2);
}
END_TEST

START_TEST(full_and_free_again)
{
	struct fw_byte_ring r;
	size_t n = 0, len, before;

	ck_assert_int_eq(fw_byte_ring_init(&r, 100), FW_EINVAL);
	ck_assert_int_eq(fw_byte_ring_init(&r, 10000), 0);
	ck_assert_uint_eq(fw_byte_ring_bytes(&r), 8192); /* rounded down: the configured size is the limit */
	while (fw_byte_ring_draft(&r, 56))
		n++;
	ck_assert_uint_eq(n, 8192 / 64);
	fw_byte_ring_publish(&r);
	ck_assert_uint_eq(fw_byte_ring_fill(&r), 8192);
	/* read but not released: its room is still taken */
	ck_assert_ptr_nonnull(fw_byte_ring_next(&r, &len));
	ck_assert_ptr_null(fw_byte_ring_draft(&r, 56));
	before = fw_byte_ring_fill(&r);
	fw_byte_ring_release(&r);
	ck_assert_uint_eq(before - fw_byte_ring_fill(&r), 64);
	ck_assert_ptr_null(fw_byte_ring_draft(&r, 57));
	ck_assert_ptr_nonnull(fw_byte_ring_draft(&r, 56));
	fw_byte_ring_finish(&r);
	fw_byte_ring_finish(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base byte_ring");
	TCase *tc = tcase_create("byte ring");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, every_sequence_from_where_it_wraps, 0, 8);
	tcase_add_test(tc, longer_sequences_at_the_end);
	tcase_add_test(tc, every_position);
	tcase_add_test(tc, full_and_free_again);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
