/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "engine/push/wal_format.h"

#define STEP ((size_t)8) /* all records start at multiples of it */
#define PADDED(len) (((size_t)(len) + STEP - 1) & ~(STEP - 1))
#define MAGIC 0x32737766u     /* "fws2" */
#define MAGIC_OLD 0x31737766u /* "fws1" */
#define MAGIC_END (offsetof(struct fw_wal_head, magic) + sizeof(uint32_t))
#define HEAD sizeof(struct fw_wal_head)
#define HEAD_OLD offsetof(struct fw_wal_head, number)

_Static_assert(HEAD == 24 && HEAD_OLD == 16, "the format on the disk");

static uint32_t head_check(const struct fw_wal_head *h, size_t at)
{
	return (uint32_t)fw_hash64_seed(h, offsetof(struct fw_wal_head, check), at);
}

/* ---- writing ------------------------------------------------------------- */

void fw_wal_record_add(struct fw_buf *b, const void *p, size_t len)
{
	struct fw_wal_head h = {(uint32_t)len, MAGIC, fw_hash64_seed(p, len, len), 0, 0};
	uint64_t none = 0;

	assert(len <= FW_WAL_RECORD_MAX);
	fw_buf_add(b, &h, sizeof(h));
	fw_buf_add(b, p, len);
	fw_buf_add(b, &none, PADDED(len) - len);
}

uint32_t fw_wal_record_complete(void *p, size_t bytes, size_t at, uint32_t number)
{
	for (size_t done = 0; done < bytes;) {
		struct fw_wal_head *h = (struct fw_wal_head *)(void *)((char *)p + done);

		h->number = number++;
		h->check = head_check(h, at + done);
		done += HEAD + PADDED(h->bytes);
	}
	return number;
}

/* ---- the walk ------------------------------------------------------------ */

enum wal_place {
	PLACE_OTHER, /* no head that is right */
	PLACE_RECORD,
	PLACE_SPOILED,   /* a head that is right, and damaged bytes */
	PLACE_UNFINISHED /* the beginning of a record, as far as the file goes */
};

static bool head_is_right(const struct fw_wal_head *h, size_t at)
{
	return h->magic == MAGIC && h->bytes <= FW_WAL_RECORD_MAX && h->check == head_check(h, at);
}

static size_t head_bytes(const struct fw_wal_walk *w)
{
	return w->old ? HEAD_OLD : HEAD;
}

/* Reads what there is of a head. */
static struct fw_wal_head walk_head(const struct fw_wal_walk *w)
{
	struct fw_wal_head h = {0};

	memcpy(&h, w->p + w->at, FW_MIN(w->bytes - w->at, head_bytes(w)));
	return h;
}

static size_t walk_record_bytes(const struct fw_wal_walk *w, const struct fw_wal_head *h)
{
	return head_bytes(w) + PADDED(h->bytes);
}

static bool walk_sum_holds(const struct fw_wal_walk *w, const struct fw_wal_head *h)
{
	return fw_hash64_seed(w->p + w->at + head_bytes(w), h->bytes, h->bytes) == h->sum;
}

static enum wal_place walk_look_old(const struct fw_wal_walk *w, const struct fw_wal_head *h)
{
	size_t left = w->bytes - w->at;

	if (h->magic != MAGIC_OLD)
		return PLACE_OTHER;
	if (left < HEAD_OLD)
		return PLACE_UNFINISHED;
	/* a length that reaches too far may be damaged: nothing says that it is unfinished */
	return h->bytes <= FW_WAL_RECORD_MAX && walk_record_bytes(w, h) <= left && walk_sum_holds(w, h) ? PLACE_RECORD :
													  PLACE_OTHER;
}

static enum wal_place walk_look(const struct fw_wal_walk *w, const struct fw_wal_head *h)
{
	size_t left = w->bytes - w->at;

	if (left < MAGIC_END)
		return PLACE_UNFINISHED;
	if (w->old)
		return walk_look_old(w, h);
	if (left < HEAD)
		return h->magic == MAGIC ? PLACE_UNFINISHED : PLACE_OTHER;
	if (!head_is_right(h, w->at))
		return PLACE_OTHER;
	if (walk_record_bytes(w, h) > left)
		return PLACE_UNFINISHED;
	return walk_sum_holds(w, h) ? PLACE_RECORD : PLACE_SPOILED;
}

/*
 * Old is a whole file, or nothing of it: in a file of one format, bytes of the other may be a
 * client's.
 */
static bool walk_is_old(const unsigned char *p, size_t bytes)
{
	struct fw_wal_head h = {0};

	if (bytes)
		memcpy(&h, p, FW_MIN(bytes, HEAD));
	if (h.magic == MAGIC)
		return false;
	for (size_t at = 0; at + HEAD <= bytes; at += STEP) {
		memcpy(&h, p + at, HEAD);
		if (head_is_right(&h, at))
			return false;
	}
	return true;
}

void fw_wal_walk_begin(struct fw_wal_walk *w, const void *p, size_t bytes)
{
	*w = (struct fw_wal_walk){.p = p, .bytes = bytes, .old = walk_is_old(p, bytes)};
}

/* The numbers show how many records are missing; heads of the old format have none. */
static struct fw_wal_gap gap_make(size_t from, size_t to, uint32_t record_n, bool at_least)
{
	struct fw_wal_gap gap = {from, to - from, record_n, at_least};

	if (gap.bytes && (!record_n || record_n > gap.bytes / HEAD_OLD)) {
		gap.record_n = 1;
		gap.at_least = true;
	}
	return gap;
}

/* What a walk has passed since the last record. */
struct wal_passed {
	size_t known_at; /* the record that would begin here has the number `known` */
	uint32_t known;
	size_t unfinished_at; /* the end of the file: none */
};

static void walk_pass(struct fw_wal_walk *w, struct wal_passed *p, const struct fw_wal_head *h, enum wal_place place)
{
	size_t left = w->bytes - w->at;

	/* less than a magic number: unfinished right behind a record, else damaged */
	if (left < MAGIC_END && w->at != p->known_at)
		place = PLACE_OTHER;
	if (place == PLACE_UNFINISHED && p->unfinished_at == w->bytes) {
		p->unfinished_at = w->at;
		if (!w->old && left >= HEAD) {
			p->known_at = w->at;
			p->known = h->number;
		}
	}
	w->at += place == PLACE_SPOILED ? walk_record_bytes(w, h) : FW_MIN(STEP, left);
	if (place == PLACE_SPOILED)
		*p = (struct wal_passed){w->at, h->number + 1, w->bytes};
}

bool fw_wal_walk_next(struct fw_wal_walk *w, struct fw_str *record, struct fw_wal_gap *gap)
{
	size_t from = w->at;
	struct wal_passed p = {from, w->number, w->bytes};

	while (w->at < w->bytes) {
		struct fw_wal_head h = walk_head(w);
		enum wal_place place = walk_look(w, &h);

		if (place == PLACE_RECORD) {
			*gap = gap_make(from, w->at, h.number - w->number, false);
			*record = (struct fw_str){(const char *)w->p + w->at + head_bytes(w), h.bytes};
			w->at += walk_record_bytes(w, &h);
			w->number = h.number + 1;
			return true;
		}
		walk_pass(w, &p, &h, place);
	}
	w->unfinished_bytes = w->bytes - p.unfinished_at;
	*gap = gap_make(from, p.unfinished_at, p.known - w->number + (p.unfinished_at > p.known_at),
		p.unfinished_at > p.known_at);
	return false;
}
