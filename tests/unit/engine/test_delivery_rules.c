/* SPDX-License-Identifier: ISC */
/* The rules of a delivery, with a clock of its own. */
#include <check.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/orders/delivery_rules.h"
#include "../../suite.h"

#define NOW INT64_C(1790000000000)

static const struct delivery_result ACCEPTED = {.accepted = true, .status = 204};
static const struct delivery_result FAILED = {.status = 500, .error = FW_STR("answered 500")};

static struct fw_order_delivery formed(void)
{
	struct fw_order_delivery d = {.order_id = 7};

	delivery_form(&d, (const int64_t[]){3, 8, 9}, 3, NOW);
	return d;
}

START_TEST(a_batch_has_its_ids_and_a_number)
{
	struct fw_order_delivery d = formed();

	ck_assert(d.id_n == 3 && d.id[0] == 3 && d.id[2] == 9 && d.batch_n == 1 && d.since_ms == NOW);
	ck_assert(delivery_due_ms(&d, 0) == 0 && !d.fail_n && !d.woken_ms);
}
END_TEST

START_TEST(a_repeated_message_has_the_same_id_and_another_batch_has_another)
{
	char first[DELIVERY_MESSAGE_ID_MAX], again[DELIVERY_MESSAGE_ID_MAX], other[DELIVERY_MESSAGE_ID_MAX];
	struct fw_order_delivery d = formed();

	delivery_message_id(&d, first);
	delivery_conclude(&d, &FAILED, 3, NOW + 1, 0);
	delivery_message_id(&d, again);
	ck_assert_str_eq(first, again);
	delivery_conclude(&d, &ACCEPTED, 3, NOW + 2, 0);
	delivery_form(&d, (const int64_t[]){3, 8, 9}, 3, NOW); /* replayed at once */
	delivery_message_id(&d, other);
	ck_assert_str_ne(first, other);
	ck_assert_uint_lt(strlen(other), DELIVERY_MESSAGE_ID_MAX - 1);
}
END_TEST

START_TEST(an_accepted_batch_is_over)
{
	struct fw_order_delivery d = formed();

	delivery_conclude(&d, &FAILED, 3, NOW + 10, 0);
	delivery_conclude(&d, &ACCEPTED, 2, NOW + 20, 0); /* one of three was deleted */
	ck_assert(!d.id_n && !d.fail_n && !d.failing_since_ms && !d.next_ms && !d.error.len);
	ck_assert(d.delivered_n == 2 && d.retried_n == 1 && d.delivered_ms == NOW + 20 && d.status == 204);
	ck_assert_int_eq(delivery_due_ms(&d, 0), 0);
}
END_TEST

START_TEST(a_failed_batch_waits_for_longer_each_time)
{
	struct fw_order_delivery d = formed();
	int64_t now_ms = NOW, pause_ms = 0;

	for (int i = 0; i < 40; i++) {
		delivery_conclude(&d, &FAILED, 3, now_ms, 0); /* 0: no jitter */
		ck_assert_int_ge(d.next_ms - now_ms, pause_ms);
		pause_ms = d.next_ms - now_ms;
		now_ms = d.next_ms;
	}
	ck_assert_int_eq(delivery_backoff_ms(1, 0), 5000);
	ck_assert_int_eq(delivery_backoff_ms(2, 0), 10000);
	ck_assert_int_eq(pause_ms, 6 * FW_HOUR_MS);
	ck_assert(d.id_n == 3 && d.fail_n == 40 && d.retried_n == 40 && d.failing_since_ms == NOW);
	ck_assert(d.status == 500 && fw_str_eq(d.error, FAILED.error));
	for (uint64_t rnd = 1; rnd; rnd <<= 1) {
		ck_assert_int_ge(delivery_backoff_ms(3, rnd - 1), 15000);
		ck_assert_int_le(delivery_backoff_ms(3, rnd - 1), 20000);
	}
	ck_assert_int_eq(delivery_backoff_ms(UINT32_MAX, 0), 6 * FW_HOUR_MS);
}
END_TEST

START_TEST(a_receiver_may_say_when_but_not_never)
{
	struct fw_order_delivery d = formed();
	struct delivery_result r = {.status = 429, .error = FW_STR("answered 429"), .retry_ms = 77000};

	delivery_conclude(&d, &r, 3, NOW, 0);
	ck_assert_int_eq(d.next_ms, NOW + 77000);
	r.retry_ms = 365 * FW_DAY_MS;
	delivery_conclude(&d, &r, 3, NOW, 0);
	ck_assert_int_eq(d.next_ms, NOW + FW_DAY_MS);
}
END_TEST

START_TEST(an_order_that_is_woken_is_due_until_an_attempt_begins)
{
	struct fw_order_delivery d = formed();

	delivery_begin(&d, 0);
	delivery_conclude(&d, &FAILED, 3, NOW, 0);
	ck_assert_int_eq(delivery_due_ms(&d, 0), NOW + 5000);
	ck_assert_int_eq(delivery_due_ms(&d, NOW - 1), 0); /* during the attempt */
	delivery_begin(&d, NOW - 1);
	delivery_conclude(&d, &FAILED, 3, NOW + 2, 0);
	ck_assert_int_eq(delivery_due_ms(&d, NOW - 1), NOW + 2 + 10000);
}
END_TEST

START_TEST(a_receiver_that_ends_the_order_ends_the_batch)
{
	struct fw_order_delivery d = formed();
	struct delivery_result r = {.ended = true, .status = 410, .error = FW_STR("answered 410")};

	delivery_conclude(&d, &r, 3, NOW, 0);
	ck_assert(!d.id_n && d.failing_since_ms == NOW && d.status == 410 && !d.delivered_n);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine delivery rules");
	TCase *t = tcase_create("all");
	const TTest *const every[] = {a_batch_has_its_ids_and_a_number,
		a_repeated_message_has_the_same_id_and_another_batch_has_another, an_accepted_batch_is_over,
		a_failed_batch_waits_for_longer_each_time, a_receiver_may_say_when_but_not_never,
		an_order_that_is_woken_is_due_until_an_attempt_begins, a_receiver_that_ends_the_order_ends_the_batch};

	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
