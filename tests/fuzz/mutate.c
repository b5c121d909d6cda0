/* SPDX-License-Identifier: ISC */
/*
 * Mutations that keep pieces whole: the input is split where markup starts and ends, or at words,
 * and pieces are removed, copied, swapped, repeated or changed. Every third mutation; the others
 * are libFuzzer's, with its dictionary.
 */
#include <string.h>

#include "fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

#define MAX_CUTS 4096

struct pieces {
	size_t cut[MAX_CUTS + 1]; /* the starts of pieces; the last: the end */
	size_t n;
};

static uint32_t next_random(uint32_t *seed, size_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % (uint32_t)below;
}

static bool is_word(int c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c >= 0x80;
}

static bool cut_between(int before, int after, bool markup)
{
	if (!markup)
		return is_word(before) != is_word(after) || before == '\n';
	return memchr("<{[", after, 3) || memchr(">}],", before, 4);
}

static void cut_up(struct pieces *ps, const uint8_t *data, size_t size, bool markup)
{
	ps->n = 0;
	for (size_t i = 0; i < size && ps->n < MAX_CUTS; i++) {
		if (i == 0 || cut_between(data[i - 1], data[i], markup))
			ps->cut[ps->n++] = i;
	}
	ps->cut[ps->n] = size;
}

/* Inserts data[from..to) again before `at`, as far as there is room. */
static size_t insert(uint8_t *data, size_t size, size_t max, size_t from, size_t to, size_t at)
{
	size_t n = to - from;
	uint8_t *copy;

	if (n > max - size || !(copy = malloc(n + 1)))
		return size;
	memcpy(copy, data + from, n);
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, copy, n);
	free(copy);
	return size + n;
}

static size_t erase(uint8_t *data, size_t size, size_t from, size_t to)
{
	memmove(data + from, data + to, size - to);
	return size - (to - from);
}

/* Changes one piece with libFuzzer's own mutations, and no other. */
static size_t change(uint8_t *data, size_t size, size_t max, size_t from, size_t to)
{
	size_t room = to - from + 64, n;
	uint8_t *copy = malloc(room);

	if (!copy)
		return size;
	memcpy(copy, data + from, to - from);
	n = LLVMFuzzerMutate(copy, to - from, room);
	if (size - (to - from) + n <= max) {
		memmove(data + from + n, data + to, size - to);
		memcpy(data + from, copy, n);
		size = size - (to - from) + n;
	}
	free(copy);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static struct pieces ps; /* libFuzzer calls from one thread */
	uint32_t r = seed | 1;
	size_t a, b, at, from, to;

	if (size > max || next_random(&r, 3))
		return LLVMFuzzerMutate(data, size, max);
	cut_up(&ps, data, size, next_random(&r, 2));
	if (ps.n < 2)
		return LLVMFuzzerMutate(data, size, max);
	a = next_random(&r, ps.n);
	b = a + 1 + next_random(&r, next_random(&r, 4) ? 1 + (ps.n - a - 1) % 4 : ps.n - a);
	b = b > ps.n ? ps.n : b;
	at = ps.cut[next_random(&r, ps.n + 1)];
	from = ps.cut[a];
	to = ps.cut[b];
	switch (next_random(&r, 5)) {
	case 0:
		return erase(data, size, from, to);
	case 1:
		return insert(data, size, max, from, to, at);
	case 2: /* move */
		if (at > from && at < to)
			return erase(data, size, from, to);
		b = insert(data, size, max, from, to, at);
		if (b == size)
			return size;
		from += at <= from ? to - from : 0;
		return erase(data, b, from, from + (b - size));
	case 3: /* repeat */
		for (a = 1 + next_random(&r, 40); a > 0; a--)
			size = insert(data, size, max, from, to, to);
		return size;
	default:
		return change(data, size, max, from, to);
	}
}
