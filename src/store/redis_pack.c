/* SPDX-License-Identifier: ISC */
/*
 * Structs as values of a hash.
 *
 * Members are lines "name=length:bytes", so that people can read them with redis-cli, any byte may be in them, and those that are not
 * there cost nothing; names come from store/fields.h. What every visit writes is shorter: numbers between spaces in a fixed order
 * (feedwheel-store(7) has it).
 */
#include "store/redis.h"

#define FEED_MEMBERS(group) {fw_feed_fields, &fw_feed_field_n, group, {NULL}}

const struct rd_members rd_feed_own = {fw_feed_fields, &fw_feed_field_n, 0, {"url", "created_ms", NULL}};
const struct rd_members rd_feed_group[5] = {
	FEED_MEMBERS(FW_GROUP_ERROR), FEED_MEMBERS(FW_GROUP_VALIDATORS), FEED_MEMBERS(FW_GROUP_META), FEED_MEMBERS(FW_GROUP_RHYTHM),
	FEED_MEMBERS(FW_GROUP_REDIRECT),
};
const struct rd_members rd_entry_row = {fw_entry_fields, &fw_entry_field_n, 0, {"seen_ms", "changed_ms", "revision", NULL}};
const struct rd_members rd_beat = {fw_beat_fields, &fw_beat_field_n, 0, {"at_ms", NULL}};

static bool is_member(const struct rd_members *m, const struct fw_field *f)
{
	if (f->group != m->group)
		return false;
	for (size_t i = 0; i < FW_N(m->skip) && m->skip[i]; i++) {
		if (strcmp(m->skip[i], f->name) == 0)
			return false;
	}
	return true;
}

/* Write a number before `end`; where it begins. */
static char *digits(int64_t value, char *end)
{
	uint64_t n = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char *p = end;

	do {
		*--p = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	if (value < 0)
		*--p = '-';
	return p;
}

void rd_number_add(struct fw_buf *out, int64_t value)
{
	char text[24], *end = text + sizeof(text), *p = digits(value, end);

	fw_buf_add(out, p, (size_t)(end - p));
}

static void pack_one(struct fw_buf *out, const char *name, struct fw_str bytes)
{
	fw_buf_adds(out, name);
	fw_buf_addc(out, '=');
	rd_number_add(out, (int64_t)bytes.len);
	fw_buf_addc(out, ':');
	fw_buf_addstr(out, bytes);
	fw_buf_addc(out, '\n');
}

void rd_pack(struct fw_buf *out, const struct rd_members *m, const void *of)
{
	for (size_t i = 0; i < *m->n; i++) {
		const struct fw_field *f = &m->field[i];
		char text[24], *end = text + sizeof(text), *p;
		int64_t n;

		if (!is_member(m, f))
			continue;
		if (fw_field_is_text(f)) {
			struct fw_str s = fw_field_str(f, of);

			if (s.p)
				pack_one(out, f->name, s);
			continue;
		}
		n = fw_field_int(f, of);
		if (n == (f->type == FW_FIELD_DATE ? FW_NO_DATE : 0))
			continue;
		p = digits(n, end);
		pack_one(out, f->name, (struct fw_str){p, (size_t)(end - p)});
	}
}

/* The next member of a value; false at the end, or where it is none. */
static bool part_next(struct fw_str *rest, struct fw_str *name, struct fw_str *bytes)
{
	struct fw_str behind, digits;
	size_t len = 0;

	if (!rest->len)
		return false;
	*name = fw_str_split(*rest, '=', &behind);
	if (!behind.p)
		return false;
	digits = fw_str_split(behind, ':', &behind);
	if (!behind.p || !digits.len || digits.len > 12)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		if (!fw_is_digit(digits.p[i]))
			return false;
		len = len * 10 + (size_t)(digits.p[i] - '0');
	}
	if (len >= behind.len)
		return false;
	*bytes = (struct fw_str){behind.p, len};
	*rest = fw_str_sub(behind, len + 1, behind.len);
	return true;
}

struct fw_str rd_part(struct fw_str value, const char *want)
{
	struct fw_str name, bytes;

	while (part_next(&value, &name, &bytes)) {
		if (fw_str_eq(name, fw_str(want)))
			return bytes;
	}
	return FW_STR_NONE;
}

void rd_unpack(struct fw_str value, const struct rd_members *m, void *of)
{
	struct fw_str name, bytes;
	size_t at = 0;

	while (part_next(&value, &name, &bytes)) {
		const struct fw_field *f = NULL;
		int64_t n;

		for (size_t i = 0; i < *m->n && !f; i++) { /* they come in the table's order, mostly */
			const struct fw_field *one = &m->field[(at + i) % *m->n];

			if (strlen(one->name) == name.len && memcmp(one->name, name.p, name.len) == 0)
				f = one;
		}
		if (!f)
			continue;
		at = (size_t)(f - m->field) + 1;
		if (fw_field_is_text(f)) {
			((char *)bytes.p)[bytes.len] = '\0'; /* the reply is ours, and a line end stood there */
			fw_field_str_set(f, of, bytes);
		} else if (fw_str_int(bytes, &n)) {
			fw_field_int_set(f, of, n);
		}
	}
}

/* ---- numbers in a row ------------------------------------------------------------------------------------------------------ */

void rd_number(struct fw_buf *out, int64_t n)
{
	rd_number_add(out, n);
	fw_buf_addc(out, ' ');
}

static void numbers_add(struct fw_buf *out, const int64_t *n, size_t count)
{
	for (size_t i = 0; i < count; i++)
		rd_number(out, n[i]);
}

/* Numbers, each with a space behind; *rest is what follows. */
static bool numbers_get(struct fw_str *rest, int64_t *n, size_t count)
{
	const char *p = rest->p, *end = rest->p + rest->len;

	for (size_t i = 0; i < count; i++) {
		bool minus = p < end && *p == '-';
		uint64_t v = 0;

		p += minus;
		if (p == end || !fw_is_digit(*p))
			return false;
		for (; p < end && fw_is_digit(*p); p++)
			v = v * 10 + (uint64_t)(*p - '0');
		if (p == end || *p != ' ')
			return false;
		p++;
		n[i] = (int64_t)(minus ? 0 - v : v);
	}
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return true;
}

/* Words up to the next space. */
static struct fw_str word_get(struct fw_str *rest)
{
	return fw_str_split(*rest, ' ', rest);
}

void rd_state_pack(struct fw_buf *out, int64_t fence, const struct fw_feed *f)
{
	int64_t n[] = {fence, f->due_at_ms, (int64_t)f->last_kind, f->http_status, f->fail_n, f->crash_n, f->last_visit_ms, f->last_ok_ms,
		f->expect_us, f->expect_dev_us};

	numbers_add(out, n, FW_N(n));
	rd_number_add(out, f->expect_parts);
	fw_buf_addc(out, '\n');
	if (f->why.p)
		pack_one(out, "why", f->why);
}

static const struct rd_members why = {fw_wheel_fields, &fw_wheel_field_n, 0, {NULL}};

/* The numbers at the end of a feed's line: expect_dev_us and expect_parts; where schema 3 wrote it, the first only. */
static bool line_end_get(struct fw_str line, int64_t n[2])
{
	struct fw_str parts, dev = fw_str_split(line, ' ', &parts);

	n[1] = 0;
	return fw_str_int(dev, &n[0]) && (!parts.p || fw_str_int(parts, &n[1]));
}

bool rd_state_unpack(struct fw_str value, struct rd_loan *loan, struct fw_feed *f)
{
	struct fw_str members, line = fw_str_split(value, '\n', &members), place = word_get(&line), rest, name, bytes;
	int64_t n[11], last[2];
	bool good;

	good = line.p && members.p && numbers_get(&line, n, FW_N(n)) && line_end_get(line, last);
	if (!good)
		return false;
	rest = members; /* the reasons come first, when there are any */
	if (!fw_str_starts(rest, FW_STR("why=")) || !part_next(&rest, &name, &bytes))
		rest = members;
	*loan = (struct rd_loan){.feed_id = loan->feed_id, .fence = loan->fence, .until_ms = loan->until_ms, .epoch = loan->epoch,
		.status = loan->status, .host = loan->host, .place = place, .own = rest, .last_new_ms = n[0], .groups = (unsigned)n[1],
		.fail_n = (uint32_t)n[6]};
	if (!f)
		return true;
	f->last_new_ms = n[0];
	f->fence = n[2];
	f->due_at_ms = n[3];
	f->last_kind = (enum fw_visit_kind)n[4];
	f->http_status = (int)n[5];
	f->fail_n = (uint32_t)n[6];
	f->crash_n = (uint32_t)n[7];
	f->last_visit_ms = n[8];
	f->last_ok_ms = n[9];
	f->expect_us = n[10];
	f->expect_dev_us = last[0];
	f->expect_parts = last[1];
	return true;
}

/* What its host is, where that is not what its address says. */
static struct fw_str host_key_of(struct fw_str own, struct fw_str url)
{
	struct fw_str name = rd_part(own, "host");
	char host[256];

	return fw_store_host(url, host, sizeof(host)) && fw_str_eq(name, fw_str(host)) ? FW_STR_NONE : name;
}

bool rd_value_unpack(struct fw_str value, struct rd_loan *loan, struct fw_feed *f)
{
	struct fw_str members;

	if (!rd_state_unpack(value, loan, f))
		return false;
	if (!f)
		return true;
	(void)fw_str_split(value, '\n', &members);
	if (loan->own.p != members.p)
		rd_unpack(fw_str_sub(members, 0, (size_t)(loan->own.p - members.p)), &why, f);
	rd_unpack(loan->own, &rd_feed_own, f);
	f->host_key = host_key_of(loan->own, rd_part(loan->own, "url"));
	return true;
}

/* Words of an error: "=" and then without line ends, for each visit is a line. */
static void words_add(struct fw_buf *out, struct fw_str text)
{
	if (!text.p)
		return;
	fw_buf_addc(out, '=');
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] == '\n' || text.p[i] == '\\')
			fw_buf_addc(out, '\\');
		fw_buf_addc(out, text.p[i] == '\n' ? 'n' : text.p[i]);
	}
}

/* The same back, in its place; it ends where the line does, and a NUL stands there. */
static struct fw_str words_get(struct fw_str rest)
{
	char *p = (char *)rest.p + 1; /* the reply is ours */
	size_t n = 0;

	if (!rest.len || *rest.p != '=')
		return FW_STR_NONE;
	for (size_t i = 1; i < rest.len; i++) {
		char c = rest.p[i];

		if (c == '\\' && i + 1 < rest.len)
			c = rest.p[++i] == 'n' ? '\n' : rest.p[i];
		p[n++] = c;
	}
	p[n] = '\0';
	return (struct fw_str){p, n};
}

void rd_visit_pack(struct fw_buf *out, const struct fw_visit *v)
{
	int64_t n[] = {v->run_id, v->at_ms, (int64_t)v->kind, v->http_status, v->hops, v->slot, v->lateness_ms, v->dns_us, v->connect_us,
		v->tls_us, v->first_byte_us, v->total_us, v->parse_us, (int64_t)v->wire_bytes, (int64_t)v->body_bytes, v->item_n, v->queue_us,
		v->store_us};

	numbers_add(out, n, FW_N(n));
	words_add(out, v->error);
}

bool rd_visit_unpack(struct fw_str line, struct fw_visit *v)
{
	struct fw_str feed = word_get(&line);
	int64_t n[19], more[2] = {0, 0}, feed_id;

	(void)word_get(&line); /* the batch of its visit before */
	if (!feed.len || !fw_str_int(feed, &feed_id) || !line.p || !numbers_get(&line, n, FW_N(n)))
		return false;
	if (line.len && *line.p != '=' && !numbers_get(&line, more, FW_N(more))) /* schema 3 has left lines without these */
		return false;
	*v = (struct fw_visit){.feed_id = feed_id, .new_n = (uint32_t)n[1], .changed_n = (uint32_t)n[2], .run_id = n[3], .at_ms = n[4],
		.kind = (enum fw_visit_kind)n[5], .http_status = (int)n[6], .hops = (uint32_t)n[7], .slot = (int32_t)n[8],
		.lateness_ms = (uint32_t)n[9], .dns_us = n[10], .connect_us = n[11], .tls_us = n[12], .first_byte_us = n[13],
		.total_us = n[14], .queue_us = more[0], .parse_us = n[15], .store_us = more[1], .wire_bytes = (uint64_t)n[16],
		.body_bytes = (uint64_t)n[17], .item_n = (uint32_t)n[18], .error = words_get(line)};
	return true;
}

static struct fw_str hash_write(uint64_t hash, char text[16])
{
	for (int i = 15; i >= 0; i--, hash >>= 4)
		text[i] = "0123456789abcdef"[hash & 15];
	return (struct fw_str){text, 16};
}

void rd_entry_pack(struct fw_buf *out, int64_t feed_id, int64_t seen_ms, int64_t changed_ms, uint32_t revision,
	const struct fw_entry_row *e)
{
	char hash[16];

	numbers_add(out, (int64_t[]){feed_id, seen_ms, changed_ms, revision}, 4);
	pack_one(out, "key", (struct fw_str){(const char *)e->key, sizeof(e->key)});
	pack_one(out, "hash", hash_write(e->hash, hash));
	rd_pack(out, &rd_entry_row, e);
}

static uint64_t hash_read(struct fw_str text)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < text.len; i++)
		hash = hash << 4 | (uint64_t)FW_MAX(fw_hexval(text.p[i]), 0);
	return hash;
}

bool rd_entry_unpack(struct fw_str row, struct fw_entry_row *e)
{
	struct fw_str rest = row, key;
	int64_t n[4];

	*e = (struct fw_entry_row){.published_ms = FW_NO_DATE, .updated_ms = FW_NO_DATE};
	if (!numbers_get(&rest, n, FW_N(n)))
		return false;
	e->feed_id = n[0];
	e->seen_ms = n[1];
	e->changed_ms = n[2];
	e->revision = (uint32_t)n[3];
	key = rd_part(rest, "key");
	memcpy(e->key, key.p ? key.p : "", FW_MIN(key.len, sizeof(e->key)));
	e->hash = hash_read(rd_part(rest, "hash"));
	rd_unpack(rest, &rd_entry_row, e);
	return true;
}

void rd_known_pack(struct fw_buf *out, const struct rd_known *k)
{
	char hash[16];

	fw_buf_addstr(out, hash_write(k->hash, hash));
	fw_buf_addc(out, ' ');
	rd_number_add(out, k->id);
	if (k->id) {
		fw_buf_addc(out, ' ');
		rd_number_add(out, k->date_ms);
	}
}

bool rd_known_read(struct fw_str value, struct rd_known *k)
{
	struct fw_str id, date;

	*k = (struct rd_known){.hash = hash_read(fw_str_split(value, ' ', &id))};
	if (!id.p || !fw_str_int(fw_str_split(id, ' ', &date), &k->id))
		return false;
	return !k->id || (date.p && fw_str_int(date, &k->date_ms));
}
