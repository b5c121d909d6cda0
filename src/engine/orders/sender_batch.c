/* SPDX-License-Identifier: ISC */
/* Which entries a message has, and its text. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/order.h"
#include "api/view.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/orders/sender.h"

/* While a message is made. */
struct delivery_batch {
	struct sender_attempt *a;
	struct fw_order_delivery *d;
	struct fw_match row[FW_ORDER_BATCH_MAX]; /* those of the batch that still wait */
	size_t row_n;
	int64_t gone[FW_ORDER_BATCH_MAX]; /* of them: their entries were deleted */
	size_t gone_n;
	bool is_new;
	char separator; /* between entries */
	/* of the current row */
	const struct fw_match *match;
	bool found;
	struct fw_err *err;
};

int sender_delivery_put(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	return fw_order_delivery_put(service_store(s->service), &o->delivery->d, fw_config_now_ms(s->config), err);
}

int sender_delivery_read(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	struct sender_delivery *v;
	struct fw_arena a;
	int rc;

	if (o->delivery)
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return fw_no_memory(err);
	fw_arena_init(&a, 0);
	rc = fw_order_delivery_get(service_store(s->service), o->id, &a, &v->d, err);
	(void)fw_str_copy(v->error, sizeof(v->error), rc ? FW_STR("") : v->d.error);
	v->d.error = *v->error ? fw_str(v->error) : FW_STR_NONE;
	fw_arena_finish(&a);
	if (rc)
		free(v);
	else
		o->delivery = v;
	return rc;
}

/* Read the order as it is now. *sends: it delivers, now. */
static int batch_read_order(struct sender_attempt *a, bool *sends, struct fw_err *err)
{
	struct sender_order *o = a->order;
	struct fw_err why;
	int rc = fw_order_get(service_store(a->s->service), fw_str(o->name), &a->arena, &a->o, err);

	*sends = false;
	if (rc && rc != FW_ENOTFOUND)
		return rc;
	if (rc || a->o.id != o->id || a->o.broken || a->o.state != FW_ORDER_ACTIVE) {
		o->pending_n = 0; /* until the next look, which sees the change */
		return 0;
	}
	rc = sender_delivery_read(a->s, o, err);
	if (rc)
		return rc;
	o->due_ms = delivery_due_ms(&o->delivery->d, a->o.woken_ms);
	*sends = o->due_ms <= fw_config_now_ms(a->s->config);
	if (!*sends)
		return 0;
	delivery_begin(&o->delivery->d, a->o.woken_ms);
	if (fw_order_check_to(a->o.to, &a->channel, &why)) {
		a->channel = FW_ORDER_CHANNEL_N; /* of another version or build: the attempt fails */
		(void)fw_snprintf(a->error, sizeof(a->error), "%s", why.text);
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int batch_take_row(void *ctx, const struct fw_match *m)
{
	struct delivery_batch *b = ctx;
	const struct fw_order_delivery *d = b->d;
	size_t i = 0;

	if (!b->is_new && m->change_id > d->id[d->id_n - 1])
		return 1;
	while (!b->is_new && i < d->id_n && d->id[i] < m->change_id)
		i++;
	if (b->is_new || d->id[i] == m->change_id)
		b->row[b->row_n++] = *m;
	return b->row_n == FW_ORDER_BATCH_MAX;
}

/* What still waits of the batch that was sent before; or else the first rows of the next batch. */
static int batch_rows(struct delivery_batch *b, struct fw_err *err)
{
	struct fw_store *st = service_store(b->a->s->service);
	struct fw_match_query q = {.order_id = b->d->order_id, .limit = FW_ORDER_BATCH_MAX};
	int rc = 0;

	if (b->d->id_n) {
		q = (struct fw_match_query){.order_id = b->d->order_id, .after_change_id = b->d->id[0] - 1};
		rc = fw_store_match_list(st, &q, batch_take_row, b, err);
		if (rc < 0 || b->row_n)
			return FW_MIN(rc, 0);
		/* accepted, but the end of that was not stored */
		b->d->delivered_n += b->d->id_n;
		delivery_end_batch(b->d);
		q = (struct fw_match_query){.order_id = b->d->order_id, .limit = FW_ORDER_BATCH_MAX};
	}
	b->is_new = true;
	rc = fw_store_match_list(st, &q, batch_take_row, b, err);
	return FW_MIN(rc, 0);
}

/* ---- text ------------------------------------------------------------------------------------ */

static int batch_write_entry(void *ctx, const struct fw_entry_row *e)
{
	struct delivery_batch *b = ctx;
	const struct fw_match *m = b->match;
	struct fw_buf *out = &b->a->body;
	struct fw_json j;
	int rc;

	b->found = true;
	if (b->a->n)
		fw_buf_addc(out, b->separator);
	fw_json_init(&j, out, false);
	fw_json_object(&j, NULL);
	fw_json_int(&j, "id", m->change_id);
	fw_json_cstr(&j, "type", m->changed ? "changed" : "new");
	fw_json_object(&j, "feed");
	fw_json_int(&j, "id", e->feed_id);
	fw_json_str(&j, "url", e->feed_url);
	fw_json_str(&j, "title", e->feed_title);
	fw_json_end(&j);
	fw_json_key(&j, "entry");
	/* content that cannot be sanitised is left out */
	rc = fw_entry_json(&j, e, FW_VIEW_CONTENT, b->err);
	fw_json_end(&j);
	return rc == FW_ENOMEM || out->rc ? FW_ENOMEM : 0;
}

/* One entry. *fits: it is in the message, or it was deleted. */
static int batch_write_row(struct delivery_batch *b, const struct fw_match *m, bool *fits, struct fw_err *err)
{
	struct fw_entry_query q = {
		.after_id = m->entry_id - 1, .before_id = m->entry_id + 1, .limit = 1, .content = true};
	struct sender_attempt *a = b->a;
	size_t was = a->body.len;
	int rc;

	b->match = m;
	b->found = false;
	*fits = true;
	rc = fw_store_entry_list(service_store(a->s->service), &q, batch_write_entry, b, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (!b->found) {
		b->gone[b->gone_n++] = m->change_id;
	} else if (b->is_new && a->n && a->body.len > FW_ORDER_BATCH_BYTES) {
		a->body.len = was;
		*fits = false;
	} else {
		a->match[a->n++] = *m;
	}
	return 0;
}

static void batch_write_head(struct sender_attempt *a, int64_t at_ms)
{
	char time[FW_RFC3339_MAX];

	fw_buf_addf(&a->body, "{\"type\":\"feedwheel.entries\",\"timestamp\":\"%s\",\"order\":\"%.*s\",\"data\":[",
		fw_rfc3339(time, at_ms), FW_STR_ARG(a->o.name));
}

static int batch_write(struct delivery_batch *b, int64_t at_ms, struct fw_err *err)
{
	struct sender_attempt *a = b->a;
	bool is_lines = a->channel != FW_ORDER_WEBHOOK && a->channel != FW_ORDER_COMMAND, fits = true;
	int rc = 0;

	b->separator = is_lines ? '\n' : ',';
	if (!is_lines)
		batch_write_head(a, at_ms);
	for (size_t i = 0; !rc && fits && i < b->row_n; i++)
		rc = batch_write_row(b, &b->row[i], &fits, err);
	fw_buf_adds(&a->body, is_lines ? "\n" : "]}");
	return !rc && a->body.rc ? fw_no_memory(err) : rc;
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* Store which entries the message has, before it is sent. */
static int batch_store(struct delivery_batch *b, int64_t at_ms, struct fw_err *err)
{
	struct sender_attempt *a = b->a;
	struct sender_order *o = a->order;
	int64_t id[FW_ORDER_BATCH_MAX];
	int rc = fw_store_match_remove(service_store(a->s->service), o->id, false, b->gone, b->gone_n, err);

	if (rc)
		return rc;
	o->pending_n = b->row_n ? o->pending_n - (int64_t)b->gone_n : 0;
	b->d->gone_n += (int64_t)b->gone_n;
	for (size_t i = 0; i < a->n; i++)
		id[i] = a->match[i].change_id;
	if (!a->n)
		delivery_end_batch(b->d);
	else if (b->is_new)
		delivery_form(b->d, id, a->n, at_ms);
	return b->gone_n || (a->n && b->is_new) ? sender_delivery_put(a->s, o, err) : 0;
}

int sender_batch_make(struct sender_attempt *a, struct fw_err *err)
{
	struct delivery_batch *b = calloc(1, sizeof(*b));
	int64_t at_ms = fw_config_now_ms(a->s->config);
	bool sends;
	int rc = b ? batch_read_order(a, &sends, err) : fw_no_memory(err);

	a->n = 0;
	if (!rc && sends) {
		b->a = a;
		b->err = err;
		b->d = &a->order->delivery->d;
		rc = batch_rows(b, err);
		at_ms = b->is_new ? at_ms : b->d->since_ms;
		rc = rc ? rc : batch_write(b, at_ms, err);
		rc = rc ? rc : batch_store(b, at_ms, err);
		if (!rc && a->n)
			delivery_message_id(b->d, a->message_id);
	}
	free(b);
	return rc;
}
