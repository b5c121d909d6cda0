/* SPDX-License-Identifier: ISC */
/*
 * Structs as values of hashes.
 *
 * Members are lines "name=length:bytes". People can read them with redis-cli, a value may contain
 * any byte, and unset members take no memory. Names come from store/fields.h. Rows that every visit
 * writes are shorter: numbers, each followed by a space.
 */
#include <assert.h>
#include <string.h>

#include "store/redis/redis.h"

#define STATE_TAIL ((size_t)38) /* " new last" at the end of a schedule row */
#define SHARD_DIGITS 4

#define MEMBERS(bit, ...)                              \
	{                                              \
		fw_feed_fields, &fw_feed_field_n, bit, \
		{                                      \
			__VA_ARGS__, NULL              \
		}                                      \
	}

const struct rs_group rs_group[RS_GROUP_N] = {
	[RS_OWNER_SETTINGS] = {0, MEMBERS(0, NULL)},
	[RS_ERROR_GROUP] = {FW_GROUP_ERROR, MEMBERS(FW_GROUP_ERROR, NULL)},
	[RS_VALIDATORS] = {FW_GROUP_VALIDATORS, MEMBERS(FW_GROUP_VALIDATORS, NULL)},
	[RS_META_GROUP] = {FW_GROUP_META, MEMBERS(FW_GROUP_META, NULL)},
	[RS_RHYTHM] = {FW_GROUP_RHYTHM, MEMBERS(FW_GROUP_RHYTHM, NULL)},
	[RS_REDIRECT] = {FW_GROUP_REDIRECT, MEMBERS(FW_GROUP_REDIRECT, NULL)},
};
static const struct rs_members entry_row = {
	fw_entry_fields, &fw_entry_field_n, 0, {"seen_ms", "changed_ms", "revision", NULL}};

static bool group_has_member(const struct rs_members *m, const struct fw_field *f)
{
	if (f->group != m->group)
		return false;
	for (size_t i = 0; i < FW_N(m->skip) && m->skip[i]; i++) {
		if (strcmp(m->skip[i], f->name) == 0)
			return false;
	}
	return true;
}

/* Write a number in front of `end`. Returns its start. */
static char *int_write_before(int64_t value, char *end)
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

struct fw_str rs_int_text(int64_t value, char text[24])
{
	char *p = int_write_before(value, text + 24);

	return (struct fw_str){p, (size_t)(text + 24 - p)};
}

static void int_add(struct fw_buf *out, int64_t value)
{
	char text[24], *end = text + sizeof(text), *p = int_write_before(value, end);

	fw_buf_add(out, p, (size_t)(end - p));
}

static void member_pack(struct fw_buf *out, const char *name, struct fw_str bytes)
{
	fw_buf_adds(out, name);
	fw_buf_addc(out, '=');
	int_add(out, (int64_t)bytes.len);
	fw_buf_addc(out, ':');
	fw_buf_addstr(out, bytes);
	fw_buf_addc(out, '\n');
}

/*
 * Append "name=length:bytes\n" for each member that is set: texts that are not absent, numbers that
 * are not 0.
 */
static void pack_members(struct fw_buf *out, const struct rs_members *m, const void *of)
{
	for (size_t i = 0; i < *m->n; i++) {
		const struct fw_field *f = &m->field[i];
		char text[24], *end = text + sizeof(text), *p;
		int64_t n;

		if (!group_has_member(m, f))
			continue;
		if (fw_field_is_text(f)) {
			struct fw_str s = fw_field_str(f, of);

			if (s.p)
				member_pack(out, f->name, s);
			continue;
		}
		n = fw_field_int(f, of);
		if (n == (f->type == FW_FIELD_DATE ? FW_NO_DATE : 0))
			continue;
		p = int_write_before(n, end);
		member_pack(out, f->name, (struct fw_str){p, (size_t)(end - p)});
	}
}

/* The next member of a value. False at the end, or if the value is malformed. */
static bool member_next(struct fw_str *rest, struct fw_str *name, struct fw_str *bytes)
{
	struct fw_str rest_text, length;
	size_t len = 0;

	if (!rest->len)
		return false;
	*name = fw_str_split(*rest, '=', &rest_text);
	if (!rest_text.p)
		return false;
	length = fw_str_split(rest_text, ':', &rest_text);
	if (!rest_text.p || !length.len || length.len > 12)
		return false;
	for (size_t i = 0; i < length.len; i++) {
		if (!fw_is_digit(length.p[i]))
			return false;
		len = len * 10 + (size_t)(length.p[i] - '0');
	}
	if (len >= rest_text.len)
		return false;
	*bytes = (struct fw_str){rest_text.p, len};
	*rest = fw_str_sub(rest_text, len + 1, rest_text.len);
	return true;
}

static struct fw_str member_find(struct fw_str value, const char *want)
{
	struct fw_str name, bytes;

	while (member_next(&value, &name, &bytes)) {
		if (fw_str_eq(name, fw_str(want)))
			return bytes;
	}
	return FW_STR_NONE;
}

void rs_unpack(struct fw_str value, const struct rs_members *m, void *of)
{
	struct fw_str name, bytes;
	size_t at = 0;

	while (member_next(&value, &name, &bytes)) {
		const struct fw_field *f = NULL;
		int64_t n;

		/* members usually come in the order of the table */
		for (size_t i = 0; i < *m->n && !f; i++) {
			const struct fw_field *one = &m->field[(at + i) % *m->n];

			if (strlen(one->name) == name.len && memcmp(one->name, name.p, name.len) == 0)
				f = one;
		}
		if (!f)
			continue;
		at = (size_t)(f - m->field) + 1;
		if (fw_field_is_text(f)) {
			/* overwrites the line end; the arena owns the reply */
			((char *)bytes.p)[bytes.len] = '\0';
			fw_field_str_set(f, of, bytes);
		} else if (fw_str_int(bytes, &n)) {
			fw_field_int_set(f, of, n);
		}
	}
}

/* ---- numbers in a row ------------------------------------------------------------------------ */

static void int_add_space(struct fw_buf *out, int64_t n)
{
	int_add(out, n);
	fw_buf_addc(out, ' ');
}

static void ints_add(struct fw_buf *out, const int64_t *n, size_t count)
{
	for (size_t i = 0; i < count; i++)
		int_add_space(out, n[i]);
}

/* Numbers, each followed by a space. *rest is the text behind them. */
static bool ints_parse(struct fw_str *rest, int64_t *n, size_t count)
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
	assert(p <= end);
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return true;
}

void rs_int_pad(struct fw_buf *out, int64_t n, size_t width)
{
	char text[24], *end = text + sizeof(text), *p = int_write_before(n, end), *room;
	size_t len = (size_t)(end - p), minus = n < 0;

	width = FW_MAX(width, len);
	room = fw_buf_room(out, width);
	if (!room)
		return;
	memset(room, '0', width);
	memcpy(room + width - (len - minus), p + minus, len - minus);
	if (minus)
		*room = '-';
	out->len += width;
	out->p[out->len] = '\0';
}

static void int_add_padded(struct fw_buf *out, int64_t n, size_t width)
{
	rs_int_pad(out, n, width);
	fw_buf_addc(out, ' ');
}

/*
 * A schedule row. First host status due visit fail_n crash_n, padded; then last_kind http_status
 * last_ok_ms expect_us expect_dev_us expect_parts, and a line end and the reasons; at the end
 * last_new_ms and the id of the last visit, padded.
 */
void rs_schedule_row_pack(struct fw_buf *out, const struct fw_feed *f, const struct rs_schedule_row *s)
{
	const int64_t rest[] = {
		f->last_kind, f->http_status, f->last_ok_ms, f->expect_us, f->expect_dev_us, f->expect_parts};

	int_add_padded(out, s->host_id, 20);
	int_add_padded(out, f->status, 1);
	int_add_padded(out, f->due_at_ms, 20);
	int_add_padded(out, f->last_visit_ms, 20);
	int_add_padded(out, f->fail_n, 10);
	int_add_padded(out, f->crash_n, 10);
	ints_add(out, rest, FW_N(rest));
	if (f->why.p) {
		fw_buf_addc(out, '\n');
		fw_buf_addstr(out, f->why);
	}
	fw_buf_addc(out, ' ');
	int_add_padded(out, f->last_new_ms, 20);
	rs_int_pad(out, s->last_visit_id, 16);
}

bool rs_schedule_row_unpack(struct fw_str row, struct fw_feed *f, struct rs_schedule_row *s)
{
	struct fw_str rest = row, tail;
	int64_t n[12], k[1];

	if (!ints_parse(&rest, n, FW_N(n)) || rest.len < STATE_TAIL)
		return false;
	tail = fw_str_sub(rest, rest.len - STATE_TAIL + 1, rest.len);
	if (!ints_parse(&tail, k, 1) || !fw_str_int(tail, &s->last_visit_id))
		return false;
	rest.len -= STATE_TAIL;
	((char *)rest.p)[rest.len] = '\0'; /* overwrites the space; the arena owns the reply */
	f->last_new_ms = k[0];
	s->host_id = n[0];
	f->status = (enum fw_feed_status)n[1];
	f->due_at_ms = n[2];
	f->last_visit_ms = n[3];
	f->fail_n = (uint32_t)n[4];
	f->crash_n = (uint32_t)n[5];
	f->last_kind = (enum fw_visit_kind)n[6];
	f->http_status = (int)n[7];
	f->last_ok_ms = n[8];
	f->expect_us = n[9];
	f->expect_dev_us = n[10];
	f->expect_parts = n[11];
	if (rest.len)
		f->why = fw_str_sub(rest, 1, rest.len);
	return true;
}

void rs_group_pack(struct fw_buf *out, int group, const struct fw_feed *f)
{
	assert(group >= 0 && group < RS_GROUP_N);
	if (group != RS_ADDRESS) {
		pack_members(out, &rs_group[group].members, f);
		return;
	}
	fw_buf_addstr(out, f->url);
	fw_buf_addc(out, '\n');
	fw_buf_addstr(out, f->host_key);
	fw_buf_addc(out, '\n');
}

struct fw_str rs_feed_row_group(struct fw_str row, int group)
{
	struct fw_str bytes, lengths = fw_str_split(row, '\n', &bytes);

	(void)fw_str_split(lengths, ' ', &lengths);
	for (int g = 0; bytes.p && lengths.p && g < RS_GROUP_N; g++) {
		int64_t n;

		if (!fw_str_int(fw_str_split(lengths, ' ', &lengths), &n) || n < 0 || (size_t)n > bytes.len)
			break;
		if (g == group)
			return fw_str_sub(bytes, 0, (size_t)n);
		bytes = fw_str_sub(bytes, (size_t)n, bytes.len);
	}
	return FW_STR_NONE;
}

void rs_feed_row_pack(struct fw_buf *out, struct fw_str row, unsigned change, const struct fw_feed *f)
{
	struct fw_buf all = FW_BUF_INIT(0);

	if (change & 1u << RS_ADDRESS)
		rs_int_pad(out, store_host_shard(store_feed_host_id(f)), SHARD_DIGITS);
	else
		fw_buf_addstr(out, fw_str_sub(row, 0, SHARD_DIGITS));
	for (int g = 0; g < RS_GROUP_N; g++) {
		size_t from = all.len;

		if (change & 1u << g)
			rs_group_pack(&all, g, f);
		else
			fw_buf_addstr(&all, rs_feed_row_group(row, g));
		fw_buf_addf(out, " %zu", all.len - from);
	}
	fw_buf_addc(out, '\n');
	fw_buf_addstr(out, fw_buf_str(&all));
	out->rc = out->rc ? out->rc : all.rc;
	fw_buf_finish(&all);
}

int rs_feed_row_shard(struct fw_str row)
{
	int shard = 0;

	for (size_t i = 0; i < SHARD_DIGITS && i < row.len && fw_is_digit(row.p[i]); i++)
		shard = shard * 10 + (row.p[i] - '0');
	return shard & (STORE_SHARDS - 1);
}

struct fw_str rs_address_url(struct fw_str address)
{
	struct fw_str host;

	return fw_str_split(address, '\n', &host);
}

void rs_feed_row_unpack(struct fw_str row, struct fw_feed *f)
{
	struct fw_str address = rs_feed_row_group(row, RS_ADDRESS), host, rest;

	f->url = fw_str_split(address, '\n', &host);
	host = fw_str_split(host, '\n', &rest);
	if (!rest.p)
		return;
	/* overwrites the line ends; the arena owns the reply */
	((char *)f->url.p)[f->url.len] = ((char *)host.p)[host.len] = '\0';
	if (host.len)
		f->host_key = host;
	/* all groups at once: names of members are unique across groups */
	rs_unpack((struct fw_str){rest.p, (size_t)(row.p + row.len - rest.p)}, &rs_group[RS_OWNER_SETTINGS].members, f);
}

/* Append text as one line, because a visit is one line of its chunk: "\\n" for a line end. */
static void line_add(struct fw_buf *out, struct fw_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] == '\n' || text.p[i] == '\\')
			fw_buf_addc(out, '\\');
		fw_buf_addc(out, text.p[i] == '\n' ? 'n' : text.p[i]);
	}
}

/* The text of such a line, in its place; the arena owns the reply. */
static struct fw_str line_unpack(struct fw_str line)
{
	char *to = (char *)line.p;
	size_t len = 0;

	for (size_t i = 0; i < line.len; i++) {
		bool escaped = line.p[i] == '\\' && i + 1 < line.len;

		i += escaped;
		to[len++] = escaped && line.p[i] == 'n' ? '\n' : line.p[i];
	}
	return len ? (struct fw_str){to, len} : FW_STR_NONE;
}

void rs_visit_pack(struct fw_buf *out, const struct fw_visit *v, int64_t before_id)
{
	int64_t n[] = {v->feed_id, before_id, v->new_n, v->changed_n, v->run_id, v->at_ms, (int64_t)v->kind,
		v->http_status, v->redirects, v->slot, v->lateness_ms, v->dns_us, v->connect_us, v->tls_us,
		v->first_byte_us, v->total_us, v->parse_us, (int64_t)v->wire_bytes, (int64_t)v->body_bytes, v->item_n,
		v->queue_us, v->store_us};

	int_add_padded(out, v->id, 16);
	ints_add(out, n, FW_N(n));
	line_add(out, v->error);
}

bool rs_visit_unpack(struct fw_str row, struct fw_visit *v)
{
	int64_t all[23], *n = all + 1;

	if (!ints_parse(&row, all, FW_N(all)))
		return false;
	*v = (struct fw_visit){.id = all[0],
		.feed_id = n[0],
		.new_n = (uint32_t)n[2],
		.changed_n = (uint32_t)n[3],
		.run_id = n[4],
		.at_ms = n[5],
		.kind = (enum fw_visit_kind)n[6],
		.http_status = (int)n[7],
		.redirects = (uint32_t)n[8],
		.slot = (int32_t)n[9],
		.lateness_ms = (uint32_t)n[10],
		.dns_us = n[11],
		.connect_us = n[12],
		.tls_us = n[13],
		.first_byte_us = n[14],
		.total_us = n[15],
		.parse_us = n[16],
		.wire_bytes = (uint64_t)n[17],
		.body_bytes = (uint64_t)n[18],
		.item_n = (uint32_t)n[19],
		.queue_us = n[20],
		.store_us = n[21],
		.error = line_unpack(row)};
	return true;
}

static struct fw_str hash_format(uint64_t hash, char text[16])
{
	for (int i = 15; i >= 0; i--, hash >>= 4)
		text[i] = "0123456789abcdef"[hash & 15];
	return (struct fw_str){text, 16};
}

void rs_entry_pack(struct fw_buf *out, const struct fw_entry_row *e)
{
	const int64_t front[] = {e->feed_id, e->seen_ms, e->changed_ms, e->revision};
	char hash[16];

	ints_add(out, front, FW_N(front));
	member_pack(out, "key", (struct fw_str){(const char *)e->key, sizeof(e->key)});
	member_pack(out, "hash", hash_format(e->hash, hash));
	pack_members(out, &entry_row, e);
}

static uint64_t hash_parse(struct fw_str text)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < text.len; i++)
		hash = hash << 4 | (uint64_t)FW_MAX(fw_hexval(text.p[i]), 0);
	return hash;
}

bool rs_entry_unpack(struct fw_str row, struct fw_entry_row *e)
{
	struct fw_str rest = row, key;
	int64_t n[4];

	*e = (struct fw_entry_row){.published_ms = FW_NO_DATE, .updated_ms = FW_NO_DATE};
	if (!ints_parse(&rest, n, FW_N(n)))
		return false;
	e->feed_id = n[0];
	e->seen_ms = n[1];
	e->changed_ms = n[2];
	e->revision = (uint32_t)n[3];
	key = member_find(rest, "key");
	memcpy(e->key, key.p ? key.p : "", FW_MIN(key.len, sizeof(e->key)));
	e->hash = hash_parse(member_find(rest, "hash"));
	rs_unpack(rest, &entry_row, e);
	return true;
}

void rs_key_value_pack(struct fw_buf *out, const struct rs_key_value *k)
{
	char hash[16];

	fw_buf_addstr(out, hash_format(k->hash, hash));
	fw_buf_addc(out, ' ');
	int_add(out, k->id);
	if (!k->id)
		return;
	fw_buf_addc(out, ' ');
	int_add(out, k->date_ms);
}

bool rs_key_value_unpack(struct fw_str value, struct rs_key_value *k)
{
	struct fw_str id, date;

	*k = (struct rs_key_value){.hash = hash_parse(fw_str_split(value, ' ', &id))};
	if (!id.p || !fw_str_int(fw_str_split(id, ' ', &date), &k->id))
		return false;
	return !k->id || (date.p && fw_str_int(date, &k->date_ms));
}

void rs_host_pack(struct fw_buf *out, const struct store_host *h)
{
	fw_buf_addf(out, "%lld %lld %lld", (long long)h->next_ok_ms, (long long)h->cooldown_until_ms,
		(long long)h->learned_delay_ms);
}

bool rs_host_unpack(struct fw_str row, struct store_host *h)
{
	struct fw_str cooldown, delay;
	struct fw_str ok = fw_str_split(row, ' ', &cooldown);

	cooldown = fw_str_split(cooldown, ' ', &delay);
	return fw_str_int(ok, &h->next_ok_ms) && fw_str_int(cooldown, &h->cooldown_until_ms) &&
		fw_str_int(delay, &h->learned_delay_ms);
}
