/* SPDX-License-Identifier: ISC */
/*
 * The ids of events, on each driver: no two ranges have one in common, whatever the clocks say, and
 * an event is never taken for another one that has its id.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ids.h"
#include "drv.h"

#define err drv_err
#define TIMES (FW_IDS_NUMBERS + 50)
#define PROCESSES 6
#define EACH 20

static struct fw_id_range reserve(struct fw_store *st, int64_t first)
{
	struct fw_id_range r = {.first = first};

	OK(fw_store_event_ids(st, &r, &err));
	ck_assert(r.number >= 0 && r.number < FW_IDS_NUMBERS && r.first >= first && r.first > 0);
	ck_assert_int_eq(r.last - r.first, FW_IDS_RANGE - 1);
	ck_assert_int_le(r.last, FW_IDS_SERIAL_MAX);
	return r;
}

static void are_disjoint(const struct fw_id_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			ck_assert(r[i].number != r[k].number || r[i].last < r[k].first || r[i].first > r[k].last);
	}
}

START_TEST(ranges_never_overlap) /* also when there are more of them than numbers */
{
	struct fw_store *st = fresh(_i);
	struct fw_id_range *r = calloc(TIMES, sizeof(*r));
	int64_t clock = fw_ids_serial_at(drv_clock(store_of(st)));

	ck_assert_ptr_nonnull(r);
	for (size_t i = 0; i < TIMES; i++)
		r[i] = reserve(st, 1);
	are_disjoint(r, TIMES);
	for (int64_t i = 0; i < FW_IDS_NUMBERS; i++)
		ck_assert_int_eq(r[i].number, FW_IDS_NUMBERS - 1 - i);
	ck_assert_int_ge(r[0].first, clock);
	ck_assert_int_lt(r[FW_IDS_NUMBERS - 1].first, clock + FW_IDS_RANGE);
	ck_assert_int_eq(r[FW_IDS_NUMBERS].first, r[0].last + 1);
	free(r);
	fw_store_close(st);
}
END_TEST

START_TEST(a_new_life_starts_above_the_last_one) /* with any clock, and all of the last range used */
{
	char url[300];
	struct fw_id_range r[3];
	struct fw_store *st;

	(void)fw_str_copy(url, sizeof(url), fw_str(drv_url(_i)));
	for (size_t i = 0; i < FW_N(r); i++) {
		st = store_open(url, FW_STORE_CREATE);
		r[i] = reserve(st, i ? r[i - 1].last + 1 : 1);
		if (i)
			ck_assert_int_gt(r[i].first, r[i - 1].last);
		if (strcmp(under_test[_i].name, "memory") == 0) {
			fw_store_close(st);
			return;
		}
		fw_store_close(st);
	}
}
END_TEST

static void reserve_in_child(const char *url, int to)
{
	struct fw_store_config c = {.url = url};
	struct fw_id_range r[EACH] = {{0}};
	struct fw_store *st;

	if (fw_store_open(&c, &st, &err))
		_exit(1);
	for (size_t i = 0; i < EACH; i++) {
		if (fw_store_event_ids(st, &r[i], &err))
			_exit(2);
	}
	fw_store_close(st);
	_exit(write(to, r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 3);
}

START_TEST(many_processes_reserve_at_once)
{
	char url[300];
	struct fw_id_range r[PROCESSES * EACH];
	int from[2], status;

	if (!under_test[_i].shared)
		return;
	(void)fw_str_copy(url, sizeof(url), fw_str(drv_url(_i)));
	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(pipe(from), 0);
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (!pid)
			reserve_in_child(url, from[1]);
	}
	for (int i = 0; i < PROCESSES; i++) {
		ck_assert_int_eq(read(from[0], &r[i * EACH], sizeof(r[0]) * EACH), (ssize_t)sizeof(r[0]) * EACH);
		ck_assert(wait(&status) > 0);
		ck_assert_int_eq(status, 0);
	}
	close(from[0]);
	close(from[1]);
	are_disjoint(r, FW_N(r));
}
END_TEST

static struct fw_event event(int64_t id)
{
	return (struct fw_event){.id = id,
		.property = FW_STR("news"),
		.section = 1,
		.item = 2,
		.remote_ip = FW_STR("192.0.2.1"),
		.stamp_ms = NOW};
}

/* Rows of older programs, and of another store that was copied here. */
START_TEST(ranges_avoid_ids_that_are_stored)
{
	struct fw_store *st = fresh(_i);
	int64_t clock = fw_ids_serial_at(drv_clock(store_of(st)) + FW_MINUTE_MS), second = clock + FW_IDS_RANGE;
	struct fw_event e[3] = {event(clock * FW_IDS_NUMBERS + 5), event((clock + 9) * FW_IDS_NUMBERS),
		event(fw_ids_serial_at(INT64_MAX) * FW_IDS_NUMBERS) /* harms nobody */};
	struct fw_dead_letter d = {.id = second * FW_IDS_NUMBERS, .row = FW_STR("{}"), .reason = FW_STR("r")};
	struct fw_id_range r;

	OK(fw_store_event_put(st, e, 3, &err));
	r = reserve(st, 1);
	ck_assert_int_gt(r.first, clock + 9);
	ck_assert_int_lt(r.first, clock + 9 + 4096); /* Redis knows the millisecond */
	OK(fw_store_dead_letter_put(st, &d, &err));
	r = reserve(st, 1);
	ck_assert_int_gt(r.first, second);
	ck_assert_int_lt(r.first, second + 4096);
	fw_store_close(st);
}
END_TEST

START_TEST(no_ids_are_left)
{
	struct fw_store *st = fresh(_i);
	struct fw_id_range r = {.first = FW_IDS_SERIAL_MAX - 9, .clash_n = 1};

	FAILS(fw_store_event_ids(st, &r, &err), FW_ELIMIT);
	ck_assert_int_eq(stats(st).clash_n, 0);
	(void)reserve(st, 1); /* and nothing was reserved */
	fw_store_close(st);
}
END_TEST

static int count_one(void *ctx, const struct fw_event *e)
{
	(void)e;
	++*(int64_t *)ctx;
	return 0;
}

static int64_t event_count(struct fw_store *st)
{
	int64_t n = 0;

	OK(fw_store_event_list(st, 0, 0, count_one, &n, &err));
	return n;
}

/* Each member makes another event of it. None of the others is stored, and they can be later. */
START_TEST(another_event_with_the_same_id)
{
	struct fw_store *st = fresh(_i);
	struct fw_event first = event(7 << 20), e[3] = {event(1 << 20), first, event(9 << 20)};
	struct fw_event other[5] = {first, first, first, first, first};

	other[0].property = FW_STR("news "); /* some servers take texts with a blank more for equal */
	other[1].section = 2;
	other[2].item = INT64_MAX;
	other[3].remote_ip = FW_STR("");
	other[4].stamp_ms++;
	OK(fw_store_event_put(st, &first, 1, &err));
	for (size_t i = 0; i < FW_N(other); i++) {
		e[1] = other[i];
		e[0].clashes = e[1].clashes = e[2].clashes = i % 2;
		FAILS(fw_store_event_put(st, e, 3, &err), FW_ECLASH);
		ck_assert(!e[0].clashes && e[1].clashes && !e[2].clashes);
		ck_assert_int_eq(event_count(st), 1);
	}
	e[1].id = 8 << 20;
	OK(fw_store_event_put(st, e, 3, &err));
	ck_assert_int_eq(event_count(st), 4);
	fw_store_close(st);
}
END_TEST

/* Of many rows, with texts that a store may change: the same again is no other event. */
START_TEST(the_same_events_again)
{
	struct fw_store *st = fresh(_i);
	struct fw_event *e = calloc(12000, sizeof(*e));

	ck_assert_ptr_nonnull(e);
	for (int64_t i = 0; i < 12000; i++) {
		e[i] = event((i + 1) << 20);
		e[i].section = i - 6000;
	}
	e[1].property = (struct fw_str){"a\0b", 3};
	e[2].property = (struct fw_str){"\xff\xfe\xc3", 3};
	e[3].property = FW_STR("\xc3\xa9t\xc3\xa9 'quoted' \"twice\" \\ %s \t \xf0\x9f\x98\x80 ");
	e[4].remote_ip = FW_STR_NONE;
	e[5].section = INT64_MIN;
	e[6].item = INT64_C(9007199254740993);
	e[7].property = (struct fw_str){(char[255]){0}, 255};
	OK(fw_store_event_put(st, e, 11000, &err));
	OK(fw_store_event_put(st, e, 12000, &err));
	ck_assert_int_eq(event_count(st), 12000);
	e[11999].item = 3;
	e[10].item = 3;
	FAILS(fw_store_event_put(st, e, 12000, &err), FW_ECLASH);
	for (size_t i = 0; i < 12000; i++)
		ck_assert(e[i].clashes == (i == 10 || i == 11999));
	free(e);
	fw_store_close(st);
}
END_TEST

static int dead_letter_note(void *ctx, const struct fw_dead_letter *d)
{
	struct fw_buf *b = ctx;

	fw_buf_addf(b, "%lld %.*s %.*s;", (long long)d->id, FW_STR_ARG(d->row), FW_STR_ARG(d->reason));
	return 0;
}

START_TEST(another_dead_letter_with_the_same_id)
{
	struct fw_store *st = fresh(_i);
	struct fw_dead_letter d = {.id = 1 << 20, .row = FW_STR("{\"a\":1}"), .reason = FW_STR("why"), .at_ms = NOW},
			      other = d;
	struct fw_buf all = FW_BUF_INIT(0);
	struct fw_event e = event(5 << 20);

	OK(fw_store_dead_letter_put(st, &d, &err));
	other.row = FW_STR("{\"a\":1} ");
	other.reason = FW_STR("never");
	FAILS(fw_store_dead_letter_put(st, &other, &err), FW_ECLASH);
	ck_assert(other.clashes);
	FAILS(store_of(st)->driver->event_put(store_of(st), &e, 1, &other, 1, &err), FW_ECLASH);
	ck_assert(other.clashes && !e.clashes);
	ck_assert_int_eq(event_count(st), 0);
	d.reason = FW_STR("again");
	OK(fw_store_dead_letter_put(st, &d, &err));
	other.id++;
	OK(fw_store_dead_letter_put(st, &other, &err));
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_note, &all, &err));
	ck_assert(fw_str_eq(fw_buf_str(&all), FW_STR("1048576 {\"a\":1} again;1048577 {\"a\":1}  never;")));
	fw_buf_finish(&all);
	fw_store_close(st);
}
END_TEST

START_TEST(clashes_are_counted)
{
	struct fw_store *st = fresh(_i);
	struct fw_id_range r = {.first = 1, .clash_n = 3};

	ck_assert_int_eq(stats(st).clash_n, 0);
	OK(fw_store_event_ids(st, &r, &err));
	r = (struct fw_id_range){.first = 1, .clash_n = 4};
	OK(fw_store_event_ids(st, &r, &err));
	(void)reserve(st, 1);
	ck_assert_int_eq(stats(st).clash_n, 7);
	fw_store_close(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, 120);
	const TTest *const every[] = {ranges_never_overlap, a_new_life_starts_above_the_last_one,
		many_processes_reserve_at_once, ranges_avoid_ids_that_are_stored, no_ids_are_left,
		another_event_with_the_same_id, the_same_events_again, another_dead_letter_with_the_same_id,
		clashes_are_counted};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store event_ids", t);
}
