/* SPDX-License-Identifier: ISC */
/*
 * Pushed events, on each driver: each is stored once, a batch whole or not at all, listed in order
 * of their ids.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/ids.h"
#include "common.h"

#define MANY 2500 /* more than a page of any driver's lists */

struct seen {
	size_t n;
	int64_t last_id;
	uint64_t sum; /* the sum of the sections; may wrap */
	int stop_at;  /* 0: never */
	struct fw_event last;
	char property[300], ip[64];
};

static int see(void *ctx, const struct fw_event *e)
{
	struct seen *s = ctx;

	ck_assert_int_gt(e->id, s->last_id);
	s->last_id = e->id;
	s->n++;
	s->sum += (uint64_t)e->section;
	s->last = *e;
	fw_str_copy(s->property, sizeof(s->property), e->property);
	fw_str_copy(s->ip, sizeof(s->ip), e->remote_ip);
	return s->stop_at && (int)s->n >= s->stop_at ? 7 : 0;
}

static struct fw_event event(struct fw_ids *ids, int64_t section)
{
	return (struct fw_event){.id = fw_ids_take(ids, 1, NOW),
		.property = FW_STR("news"),
		.section = section,
		.item = 3,
		.remote_ip = FW_STR("127.0.0.1"),
		.stamp_ms = NOW};
}

START_TEST(stored_once) /* a batch that is sent again changes nothing */
{
	struct fw_store *st = fresh(_i);
	struct fw_event e[5];
	struct seen s = {0};
	struct fw_ids ids;
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 5, 1, FW_IDS_SERIAL_MAX);
	for (size_t i = 0; i < 5; i++)
		e[i] = event(&ids, (int64_t)i + 1);
	e[4].property = FW_STR("\xc3\xa9t\xc3\xa9 'quoted' \"twice\" \\ %s \t and a space");
	e[4].remote_ip = FW_STR("2001:db8::1");
	e[4].section = INT64_C(9007199254740993); /* a double cannot represent it */
	e[4].item = INT64_MAX;
	OK(fw_store_event_put(st, e, 0, &err));
	OK(fw_store_event_put(st, e, 3, &err));
	OK(fw_store_event_put(st, e, 3, &err));
	OK(fw_store_event_put(st, e + 2, 3, &err)); /* one of them exists */
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 5);
	ck_assert_int_eq(s.last.id, e[4].id);
	ck_assert_str_eq(s.property, e[4].property.p);
	ck_assert_str_eq(s.ip, "2001:db8::1");
	ck_assert_int_eq(s.last.section, INT64_C(9007199254740993));
	ck_assert_int_eq(s.last.item, INT64_MAX);
	ck_assert_int_eq(s.last.stamp_ms, NOW);
	fw_store_close(st);
}
END_TEST

START_TEST(many_of_which_some_are_there) /* a batch large enough for the store's bulk loader, if it has one */
{
	struct fw_store *st = fresh(_i);
	struct fw_event e[300];
	struct seen s = {0};
	struct fw_ids ids;
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 5, 1, FW_IDS_SERIAL_MAX);
	for (size_t i = 0; i < FW_N(e); i++)
		e[i] = event(&ids, (int64_t)i - 150);
	e[7].property = (struct fw_str){"a\0b", 3};
	e[8].property = (struct fw_str){"\xff\xfe\xc3", 3};
	e[9].remote_ip = FW_STR("");
	e[10].property = (struct fw_str){(char[255]){0}, 255};
	e[299].property = FW_STR("\xc3\xa9t\xc3\xa9 'quoted' \"twice\" \\ %s \t and a space");
	e[299].section = INT64_MIN;
	e[299].item = INT64_C(9007199254740993); /* a double cannot represent it */
	e[299].remote_ip = FW_STR("2001:db8::1");
	OK(fw_store_event_put(st, e, 200, &err));
	OK(fw_store_event_put(st, e, 200, &err));
	OK(fw_store_event_put(st, e + 100, 200, &err));
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 300);
	ck_assert_int_eq(s.last.id, e[299].id);
	ck_assert_str_eq(s.property, e[299].property.p);
	ck_assert_str_eq(s.ip, "2001:db8::1");
	ck_assert_int_eq(s.last.section, INT64_MIN);
	ck_assert_int_eq(s.last.item, INT64_C(9007199254740993));
	fw_store_close(st);
}
END_TEST

START_TEST(unknown_address)
{
	struct fw_store *st = fresh(_i);
	struct fw_event e;
	struct seen s = {0};
	struct fw_ids ids;
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	e = event(&ids, 1);
	e.remote_ip = FW_STR("");
	OK(fw_store_event_put(st, &e, 1, &err));
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 1);
	ck_assert_str_eq(s.ip, "");
	fw_store_close(st);
}
END_TEST

START_TEST(many_by_pages)
{
	struct fw_store *st = fresh(_i);
	struct fw_event *e = calloc(MANY, sizeof(*e));
	struct seen s = {0};
	struct fw_ids ids;
	struct fw_err err = {0};
	int64_t middle;

	ck_assert_ptr_nonnull(e);
	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	for (size_t i = 0; i < MANY; i++) /* nearly all in one millisecond */
		e[i] = event(&ids, 1);
	OK(fw_store_event_put(st, e, MANY, &err));
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, MANY);
	middle = e[MANY / 2].id;
	s = (struct seen){.last_id = middle};
	OK(fw_store_event_list(st, middle, 10, see, &s, &err));
	ck_assert_uint_eq(s.n, 10);
	ck_assert_int_eq(s.last.id, e[MANY / 2 + 10].id);
	s = (struct seen){.last_id = middle};
	OK(fw_store_event_list(st, middle, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, MANY - MANY / 2 - 1);
	s = (struct seen){.stop_at = 3};
	IS(fw_store_event_list(st, 0, 0, see, &s, &err), 7);
	ck_assert_uint_eq(s.n, 3);
	s = (struct seen){.last_id = INT64_MAX};
	OK(fw_store_event_list(st, INT64_MAX, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 0);
	free(e);
	fw_store_close(st);
}
END_TEST

struct dead {
	size_t n;
	char row[200], reason[200];
	int64_t id, at_ms;
};

static int dead_letter_add(void *ctx, const struct fw_dead_letter *e)
{
	struct dead *d = ctx;

	d->n++;
	d->id = e->id;
	d->at_ms = e->at_ms;
	fw_str_copy(d->row, sizeof(d->row), e->row);
	fw_str_copy(d->reason, sizeof(d->reason), e->reason);
	return 0;
}

START_TEST(dead_letters)
{
	struct fw_store *st = fresh(_i);
	struct fw_ids ids;
	struct fw_dead_letter e = {.row = FW_STR("{\"property\":\"a\\u0000b \\\" '\"}"),
		.reason = FW_STR("a constraint; it's said"),
		.at_ms = NOW + 7};
	struct dead d = {0};
	struct seen s = {0};
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	e.id = fw_ids_take(&ids, 1, NOW);
	OK(fw_store_dead_letter_put(st, &e, &err));
	OK(fw_store_dead_letter_put(st, &e, &err));
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_add, &d, &err));
	ck_assert_uint_eq(d.n, 1);
	ck_assert_int_eq(d.id, e.id);
	ck_assert_int_eq(d.at_ms, NOW + 7);
	ck_assert_str_eq(d.row, e.row.p);
	ck_assert_str_eq(d.reason, e.reason.p);
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 0);
	fw_store_close(st);
}
END_TEST

START_TEST(a_second_reason_replaces_the_first) /* among others of its millisecond: the last reason counts */
{
	struct fw_store *st = fresh(_i);
	struct fw_dead_letter e = {.row = FW_STR("{\"a\":1}"), .at_ms = NOW};
	struct dead d = {0};
	struct fw_ids ids;
	struct fw_err err = {0};
	int64_t first;

	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	first = fw_ids_take(&ids, 9, NOW);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 9; i++) {
			e.id = first + (round ? i * 4 % 9 : i);
			e.reason = round ? FW_STR("another") : FW_STR("the first");
			e.at_ms = NOW + 20 * round + (e.id - first);
			OK(fw_store_dead_letter_put(st, &e, &err));
		}
	}
	for (int i = 0; i < 9; i++) {
		d = (struct dead){0};
		OK(fw_store_dead_letter_list(st, first + i - 1, 1, dead_letter_add, &d, &err));
		ck_assert_int_eq(d.id, first + i);
		ck_assert_int_eq(d.at_ms, NOW + 20 + i);
		ck_assert_str_eq(d.reason, "another");
		ck_assert_str_eq(d.row, "{\"a\":1}");
	}
	d = (struct dead){0};
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_add, &d, &err));
	ck_assert_uint_eq(d.n, 9);
	fw_store_close(st);
}
END_TEST

START_TEST(pruned)
{
	struct fw_store *st = fresh(_i);
	struct fw_event e[4];
	struct fw_dead_letter d = {.row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = NOW};
	struct fw_prune p = {.now_ms = NOW, .events_before_ms = NOW + 2000};
	struct dead dead = {0};
	struct seen s = {0};
	struct fw_ids ids;
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	for (int64_t i = 0; i < 4; i++) {
		e[i] = event(&ids, i + 1);
		e[i].id = fw_ids_take(&ids, 1, NOW + i * 1000);
		e[i].stamp_ms = NOW + i * 1000;
	}
	fw_ids_init(&ids);
	fw_ids_range(&ids, 1, 1, FW_IDS_SERIAL_MAX);
	d.id = fw_ids_take(&ids, 1, NOW);
	OK(fw_store_event_put(st, e, 4, &err));
	OK(fw_store_dead_letter_put(st, &d, &err));
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.event_n, 3);
	ck_assert(!p.more);
	OK(fw_store_event_list(st, 0, 0, see, &s, &err));
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(s.sum, 3 + 4);
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_add, &dead, &err));
	ck_assert_uint_eq(dead.n, 0);
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.event_n, 3);
	ck_assert(!p.more);
	fw_store_close(st);
}
END_TEST

static int dead_letter_keep(void *ctx, const struct fw_dead_letter *e)
{
	struct fw_dead_letter *to = ctx;
	static char row[3][100], reason[3][100];
	static size_t i;

	i = (i + 1) % 3;
	fw_str_copy(row[i], sizeof(row[i]), e->row);
	fw_str_copy(reason[i], sizeof(reason[i]), e->reason);
	while (to->id)
		to++;
	*to = *e;
	to->row = fw_str(row[i]);
	to->reason = fw_str(reason[i]);
	return 0;
}

START_TEST(taken_back) /* each listed dead letter can be removed, and no other is */
{
	struct fw_store *st = fresh(_i);
	struct fw_dead_letter in[3], out[4] = {{.id = 0}};
	struct dead dead = {0};
	struct fw_ids ids;
	struct fw_err err = {0};

	fw_ids_init(&ids);
	fw_ids_range(&ids, 0, 1, FW_IDS_SERIAL_MAX);
	for (size_t i = 0; i < 3; i++) { /* of one millisecond */
		in[i] = (struct fw_dead_letter){.id = fw_ids_take(&ids, 1, NOW),
			.row = FW_STR("{\"a\":\"'\\u0000\"}"),
			.reason = FW_STR("it's so\tbad"),
			.at_ms = NOW + (int64_t)i};
		OK(fw_store_dead_letter_put(st, &in[i], &err));
	}
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_keep, out, &err));
	ck_assert_int_eq(out[2].id, in[2].id);
	OK(fw_store_dead_letter_remove(st, out, 0, &err));
	out[1] = out[2];
	OK(fw_store_dead_letter_remove(st, out, 2, &err));
	OK(fw_store_dead_letter_remove(st, out, 2, &err)); /* they are gone: nothing happens */
	OK(fw_store_dead_letter_list(st, 0, 0, dead_letter_add, &dead, &err));
	ck_assert_uint_eq(dead.n, 1);
	ck_assert_int_eq(dead.id, in[1].id);
	fw_store_close(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, 60);
	const TTest *const every[] = {stored_once, many_of_which_some_are_there, unknown_address, many_by_pages,
		dead_letters, a_second_reason_replaces_the_first, pruned, taken_back};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store events", t);
}
