/* SPDX-License-Identifier: ISC */
/* The limiter per address: who holds a slot and who waits, in order, and no waiter is forgotten. */
#include <check.h>
#include <stdlib.h>

#include "base/cidr.h"
#include "base/str.h"
#include "fetch/limiter.h"
#include "../../suite.h"

static struct fw_limiter *limiter;
static struct fw_limiter_slot slot[8];

static void setup(void)
{
	ck_assert_int_eq(fw_limiter_create(2, &limiter), 0);
	memset(slot, 0, sizeof(slot));
}

static void teardown(void)
{
	for (size_t i = 0; i < FW_N(slot); i++)
		fw_limiter_release(limiter, &slot[i]);
	ck_assert_ptr_null(fw_limiter_next(limiter));
	ck_assert_uint_eq(fw_limiter_addresses(limiter), 0);
	fw_limiter_destroy(limiter);
}

static enum fw_limiter_state enter(size_t i, const char *address)
{
	unsigned char a[16];

	ck_assert(fw_ip_parse(fw_str(address), a));
	ck_assert_int_eq(fw_limiter_acquire(limiter, a, &slot[i]), 0);
	return slot[i].state;
}

START_TEST(in_order)
{
	for (size_t i = 0; i < 6; i++)
		ck_assert_int_eq(enter(i, "192.0.2.1"), i < 2 ? FW_LIMITER_HELD : FW_LIMITER_WAITING);
	ck_assert_int_eq(enter(6, "192.0.2.2"), FW_LIMITER_HELD); /* another address has its own limit */
	ck_assert_uint_eq(fw_limiter_addresses(limiter), 2);
	ck_assert(!fw_limiter_has_next(limiter));
	fw_limiter_release(limiter, &slot[1]);
	ck_assert(fw_limiter_has_next(limiter));
	ck_assert_int_eq(slot[2].state, FW_LIMITER_GRANTED);
	/* the free slot belongs to the waiter that was called */
	ck_assert_int_eq(enter(7, "192.0.2.1"), FW_LIMITER_WAITING);
	fw_limiter_release(limiter, &slot[0]);
	ck_assert_ptr_eq(fw_limiter_next(limiter), &slot[2]);
	ck_assert_ptr_eq(fw_limiter_next(limiter), &slot[3]);
	ck_assert_ptr_null(fw_limiter_next(limiter));
	ck_assert_int_eq(slot[3].state, FW_LIMITER_HELD);
	ck_assert_int_eq(slot[4].state, FW_LIMITER_WAITING);
}
END_TEST

START_TEST(leaving_while_waiting)
{
	for (size_t i = 0; i < 6; i++)
		enter(i, "192.0.2.1");
	fw_limiter_release(limiter, &slot[3]); /* in the middle of the queue */
	fw_limiter_release(limiter, &slot[3]);
	fw_limiter_release(limiter, &slot[0]);
	ck_assert(fw_limiter_is_waiting(&slot[2]));
	fw_limiter_release(
		limiter, &slot[2]); /* called, and cancelled before its callback: the next one gets the slot */
	ck_assert_ptr_eq(fw_limiter_next(limiter), &slot[4]);
	ck_assert(!fw_limiter_is_waiting(&slot[4]));
	ck_assert_ptr_null(fw_limiter_next(limiter));
	fw_limiter_release(limiter, &slot[5]); /* the last in the queue */
	fw_limiter_release(limiter, &slot[1]);
	ck_assert_ptr_null(fw_limiter_next(limiter));
	fw_limiter_release(limiter, &slot[4]);
	ck_assert_uint_eq(fw_limiter_addresses(limiter), 0);
	ck_assert_int_eq(enter(0, "192.0.2.1"), FW_LIMITER_HELD);
}
END_TEST

START_TEST(moving)
{
	for (size_t i = 0; i < 3; i++)
		enter(i, "192.0.2.1");
	ck_assert_int_eq(enter(0, "192.0.2.1"), FW_LIMITER_HELD); /* a holder keeps its slot, however many wait */
	ck_assert(!fw_limiter_has_next(limiter));
	ck_assert_int_eq(enter(0, "192.0.2.2"), FW_LIMITER_HELD);
	ck_assert_ptr_eq(fw_limiter_next(limiter), &slot[2]);
	ck_assert_int_eq(enter(0, "192.0.2.1"), FW_LIMITER_WAITING); /* a holder that returns is the last */
	ck_assert_uint_eq(fw_limiter_addresses(limiter), 1);
	/* and one that changes its address does not wait any more */
	ck_assert_int_eq(enter(0, "192.0.2.3"), FW_LIMITER_HELD);
	fw_limiter_release(limiter, &slot[1]);
	ck_assert(!fw_limiter_has_next(limiter));
}
END_TEST

START_TEST(addresses_that_share_a_limit)
{
	static const struct {
		const char *a, *b;
		bool same;
	} T[] = {
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"64:ff9b::192.0.2.1", "192.0.2.1", true},
		{"64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false}, /* NAT64 */
		{"::1", "127.0.0.1", false},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		enter(0, T[i].a);
		enter(1, T[i].b);
		ck_assert_msg(fw_limiter_addresses(limiter) == (T[i].same ? 1 : 2), "%s and %s", T[i].a, T[i].b);
	}
}
END_TEST

START_TEST(any_sequence) /* in any sequence: never more than two, and the queue moves on whenever there is a slot */
{
	static const char *const AT[] = {"192.0.2.1", "192.0.2.2", "2001:db8::1"};
	size_t where[FW_N(slot)] = {0};
	uint32_t rnd = 1;

	for (int step = 0; step < 20000; step++) {
		size_t i = (rnd = rnd * 1664525 + 1013904223) >> 29, k = (rnd >> 20) % 4;

		if (k < FW_N(AT)) {
			enter(i, AT[k]);
			where[i] = k;
		} else if (step % 2) {
			fw_limiter_release(limiter, &slot[i]);
		} else {
			fw_limiter_next(limiter);
		}
		for (k = 0; k < FW_N(AT); k++) {
			int in = 0, waits = 0;

			for (i = 0; i < FW_N(slot); i++) {
				bool here = slot[i].state != FW_LIMITER_IDLE && where[i] == k;

				waits += here && slot[i].state == FW_LIMITER_WAITING;
				in += here && slot[i].state != FW_LIMITER_WAITING;
			}
			ck_assert_int_le(in, 2);
			ck_assert(!waits || in == 2);
		}
	}
}
END_TEST

int main(void)
{
	const TTest *const T[] = {in_order, leaving_while_waiting, moving, addresses_that_share_a_limit, any_sequence};
	Suite *s = suite_create("unit fetch limiter");
	TCase *t = tcase_create("limiter");

	tcase_add_checked_fixture(t, setup, teardown);
	for (size_t i = 0; i < FW_N(T); i++)
		tcase_add_test(t, T[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
