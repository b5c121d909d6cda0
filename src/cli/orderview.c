/* SPDX-License-Identifier: ISC */
/* order list, show, test, dead: orders for people and scripts. */
#include "cli/orders.h"
#include "base/url.h"

#define TEST_SPAN_MS (7 * FW_DAY_MS)
#define TEST_LIMIT 5
#define DEAD_LIMIT 20

/* ---- list ------------------------------------------------------------------------------------ */

static const struct cli_column ORDER_COLUMN[] = {
	{"NAME"},
	{"STATE"},
	{"ACTION", .flex = true},
	{"PENDING", .right = true},
	{"DEAD", .right = true, .spare = 4},
	{"DELIVERED", .right = true, .spare = 3},
	{"FAILING", .spare = 2},
	{"QUERY", .flex = true, .spare = 1},
};

static const char *order_state(const struct fw_order *o, const char **style)
{
	*style = o->broken                  ? CLI_RED :
		o->state == FW_ORDER_ACTIVE ? CLI_GREEN :
		o->state == FW_ORDER_ENDED  ? CLI_RED :
					      CLI_YELLOW;
	return o->broken ? "broken" : fw_order_state_name(o->state);
}

/* "drop", "tag podcast", or the destination without its password. */
static void order_action(const struct fw_order *o, struct fw_buf *out)
{
	if (o->broken)
		fw_buf_adds(out, "none");
	else if (o->action == FW_ORDER_DELIVER)
		fw_url_show(out, o->to);
	else if (o->action == FW_ORDER_TAG)
		fw_buf_addf(out, "tag %.*s", FW_STR_ARG(o->tag));
	else
		fw_buf_adds(out, fw_order_action_name(o->action));
}

static void order_cell_number(struct cli_list *l, const char *style, const struct fw_order *o, int64_t n)
{
	char text[FW_RFC3339_MAX];
	bool delivers = !o->broken && o->action == FW_ORDER_DELIVER;

	cli_table_cell(&l->table, n ? style : NULL, delivers ? fw_str(cli_number(text, n)) : FW_STR("-"));
}

static void order_row(struct cli_list *l, const struct fw_order_status *s)
{
	const struct fw_order *o = &s->order;
	int64_t failing_ms = s->delivery.failing_since_ms;
	struct fw_buf action = FW_BUF_INIT(0);
	char text[FW_RFC3339_MAX];
	const char *style, *state = order_state(o, &style);

	order_action(o, &action);
	cli_table_cell(&l->table, CLI_BOLD, o->name);
	cli_table_cell(&l->table, style, fw_str(state));
	cli_table_cell(&l->table, NULL, fw_buf_str(&action));
	order_cell_number(l, NULL, o, s->pending_n);
	order_cell_number(l, CLI_RED, o, s->dead_n);
	order_cell_number(l, NULL, o, s->delivery.delivered_n);
	cli_table_cell(&l->table, failing_ms ? CLI_RED : NULL,
		failing_ms ? fw_str(cli_ago(l->c, text, failing_ms)) : FW_STR("-"));
	cli_table_cell(&l->table, CLI_DIM, o->query);
	fw_buf_finish(&action);
}

struct order_listing {
	struct cli_list l; /* first */
	int64_t unattended_n, oldest_ms;
};

/* What the store cannot tell: why nobody delivers. */
static void order_note_unattended(struct cli *c, int64_t n, int64_t oldest_ms)
{
	char count[FW_RFC3339_MAX], when[2 * FW_RFC3339_MAX];

	if (n)
		cli_note(c,
			"%s, the oldest since %s, and no process delivers (is a 'feedwheel run' or 'feedwheel serve' "
			"running? Does its log say that the store is unavailable?)",
			cli_count(count, n, "entry waits", "entries wait"), cli_when(c, when, oldest_ms));
}

static int order_list_print(void *ctx, const struct fw_order_status *s)
{
	struct order_listing *k = ctx;
	struct cli_list *l = &k->l;

	l->n++;
	if (s->unattended) {
		k->unattended_n += s->pending_n;
		k->oldest_ms = k->oldest_ms ? FW_MIN(k->oldest_ms, s->oldest_ms) : s->oldest_ms;
	}
	if (l->as_json) {
		fw_order_json(cli_list_item(l), NULL, s);
		cli_list_item_end(l);
	} else {
		order_row(l, s);
	}
	return cli_out_failed(l->c);
}

int order_command_list(struct cli *c)
{
	struct order_listing k = {.unattended_n = 0};
	struct fw_err err = {0};
	int rc;

	if (c->arg_n != 1)
		return cli_usage(c, "'order list' takes no arguments");
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	cli_list_begin(&k.l, c, ORDER_COLUMN, FW_N(ORDER_COLUMN));
	rc = fw_order_status_list(c->store, order_list_print, &k, &err);
	cli_list_end(&k.l);
	if (rc < 0)
		return cli_store_failed(c, &err);
	order_note_unattended(c, k.unattended_n, k.oldest_ms);
	if (!k.l.n && !k.l.as_json)
		cli_note(c, "no orders (to add one, run 'feedwheel order add NAME QUERY --to URL')");
	return CLI_OK;
}

/* ---- show ------------------------------------------------------------------------------------ */

static void order_show_time(struct cli *c, const char *name, int64_t at_ms)
{
	char text[2 * FW_RFC3339_MAX];

	if (at_ms)
		cli_line(c, name, fw_str(cli_when(c, text, at_ms)));
}

static void order_show_number(struct cli *c, const char *name, int64_t n)
{
	char text[FW_RFC3339_MAX];

	cli_line(c, name, fw_str(cli_number(text, n)));
}

static void order_show_delivery(struct cli *c, const struct fw_order_status *s)
{
	const struct fw_order_delivery *d = &s->delivery;

	order_show_number(c, "pending", s->pending_n);
	order_show_time(c, "oldest", s->oldest_ms);
	order_show_number(c, "delivered", d->delivered_n);
	order_show_time(c, "last", d->delivered_ms);
	order_show_number(c, "retried", d->retried_n);
	order_show_number(c, "dead", s->dead_n);
	if (!d->failing_since_ms)
		return;
	order_show_time(c, "failing", d->failing_since_ms);
	cli_line(c, "error", d->error);
	order_show_time(c, "next", d->next_ms);
}

static void order_show_text(struct cli *c, const struct fw_order_status *s, bool secrets)
{
	const struct fw_order *o = &s->order;
	struct fw_buf action = FW_BUF_INIT(0);
	const char *style, *state = order_state(o, &style);

	order_action(o, &action);
	cli_line(c, "name", o->name);
	cli_line(c, "state", fw_str(state));
	cli_line(c, "query", o->query);
	cli_line(c, !o->broken && o->action == FW_ORDER_DELIVER ? "to" : "action", fw_buf_str(&action));
	cli_line(c, "entries", o->changes ? FW_STR("new, and new versions") : FW_STR("new"));
	order_show_time(c, "created", o->created_ms);
	if (!o->broken && o->action == FW_ORDER_DELIVER)
		order_show_delivery(c, s);
	for (size_t i = 0; secrets && i < FW_ORDER_SECRETS; i++)
		cli_line(c, i ? "and before" : "secret", o->secret[i]);
	fw_buf_finish(&action);
}

int order_command_show(struct cli *c)
{
	bool secrets = cli_flag(c, "with-secret");
	struct fw_err err = {0};
	struct fw_order_status s;
	struct fw_str name;
	int rc = order_argument(c, &name);

	rc = rc ? rc : cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	if (fw_order_status_get(c->store, name, &c->arena, &s, &err))
		return order_failed(c, FW_STR_NONE, &err);
	if (cli_as_json(c))
		order_print_json(c, &s, secrets ? s.order.secret[0] : FW_STR_NONE);
	else
		order_show_text(c, &s, secrets);
	order_note_unattended(c, s.unattended ? s.pending_n : 0, s.oldest_ms);
	if (s.order.broken)
		cli_note(c, "its record is invalid: remove the order, and add it again");
	return CLI_OK;
}

/* ---- test ------------------------------------------------------------------------------------ */

static const struct cli_column ENTRY_COLUMN[] = {
	{"ENTRY", .right = true},
	{"STORED"},
	{"FEED", .flex = true, .most = 40, .spare = 1},
	{"TITLE", .flex = true},
};

static void entry_cells(struct cli_table *t, const struct fw_entry_row *e)
{
	char text[FW_RFC3339_MAX];

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)e->id);
	cli_table_cell(t, CLI_DIM, fw_str(text));
	cli_table_cell(t, NULL, fw_str(cli_stamp(text, e->seen_ms)));
	cli_table_cell(t, CLI_CYAN, e->feed_title.len ? e->feed_title : e->feed_url);
	cli_table_cell(t, CLI_BOLD, e->title.len ? e->title : e->url);
}

struct order_test_view {
	struct cli *c;
	struct cli_table table;
	struct cli_json json;
	size_t limit; /* 0: all */
	int64_t n;
	bool as_json;
};

static int test_entry(void *ctx, const struct fw_entry_row *e)
{
	struct order_test_view *t = ctx;
	struct fw_err err;

	t->n++;
	if (t->limit && t->n > (int64_t)t->limit)
		return cli_out_failed(t->c);
	if (!t->as_json)
		entry_cells(&t->table, e);
	else if (fw_entry_json(&t->json.j, e, 0, &err))
		cli_note(t->c, "%s", err.text);
	return cli_out_failed(t->c);
}

/* The query of the order that the argument names, else the argument. 0 or an exit code. */
static int test_query(struct cli *c, struct fw_str *query)
{
	struct fw_err err = {0}, why = {0};
	struct fw_order o = {.id = 0};
	int rc = fw_order_get(c->store, fw_str(c->arg[1]), &c->arena, &o, &err);

	*query = rc ? fw_str(c->arg[1]) : o.query;
	if (rc && rc != FW_ENOTFOUND)
		return cli_store_failed(c, &err);
	return fw_order_check_query(*query, &why) ? order_failed(c, *query, &why) : 0;
}

static int test_print(struct order_test_view *t, const struct fw_entry_query *q, struct fw_err *err)
{
	struct cli *c = t->c;
	char n[FW_RFC3339_MAX], at[FW_RFC3339_MAX];
	int rc;

	if (t->as_json) {
		cli_json_object_begin(&t->json, c);
		fw_json_str(&t->json.j, "query", q->search);
		fw_json_time(&t->json.j, "since", q->since_ms);
		fw_json_array(&t->json.j, "items");
	} else {
		cli_table_init(&t->table, c, ENTRY_COLUMN, FW_N(ENTRY_COLUMN));
	}
	rc = fw_store_entry_list(c->store, q, test_entry, t, err);
	if (t->as_json) {
		fw_json_end(&t->json.j);
		fw_json_int(&t->json.j, "matches", t->n);
		fw_incomplete_json(&t->json.j, *q->unindexed_n);
		if (rc < 0)
			fw_buf_finish(&t->json.buf);
		else
			cli_json_object_end(&t->json, c);
		return rc;
	}
	cli_table_end(&t->table);
	if (rc >= 0)
		cli_out(c, "%s since %s\n", cli_count(n, t->n, "entry matches", "entries match"),
			cli_stamp(at, q->since_ms));
	return rc;
}

int order_command_test(struct cli *c)
{
	struct order_test_view t = {.c = c, .as_json = cli_as_json(c)};
	struct fw_entry_query q = {.limit = 0};
	struct fw_err err = {0};
	int64_t limit = 0, unindexed_n = 0;
	int rc;

	if (c->arg_n != 2)
		return cli_usage(c, "missing argument: the name of an order, or a query in quotes");
	if (!cli_value_time(c, "since", &q.since_ms) || !cli_value_int(c, "limit", 1, &limit))
		return CLI_USAGE;
	rc = cli_store(c, FW_STORE_READ);
	rc = rc ? rc : test_query(c, &q.search);
	if (rc)
		return rc;
	q.since_ms = c->now_ms - TEST_SPAN_MS;
	if (!cli_value_time(c, "since", &q.since_ms))
		return CLI_USAGE;
	t.limit = limit ? (size_t)limit : t.as_json ? 0 : TEST_LIMIT;
	q.unindexed_n = &unindexed_n;
	rc = test_print(&t, &q, &err);
	if (rc < 0)
		return rc == FW_EINVAL ? cli_query_wrong(c, "query", q.search, &err) : cli_store_failed(c, &err);
	order_note_incomplete(c, unindexed_n);
	return CLI_OK;
}

/* ---- dead letters ---------------------------------------------------------------------------- */

struct order_dead {
	struct cli_list list;
	struct fw_arena a;
	struct fw_match *match;
	size_t n, cap;
};

/* The list is read first, because a callback must not use the store. */
static int dead_add(void *ctx, const struct fw_match *m)
{
	struct order_dead *d = ctx;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 64;
		struct fw_match *more = fw_arena_calloc(&d->a, cap, sizeof(*more));

		if (!more)
			return FW_ENOMEM;
		if (d->n)
			memcpy(more, d->match, d->n * sizeof(*more));
		d->match = more;
		d->cap = cap;
	}
	d->match[d->n++] = *m;
	return 0;
}

static int dead_entry(void *ctx, const struct fw_entry_row *e)
{
	struct order_dead *d = ctx;

	d->list.n++;
	entry_cells(&d->list.table, e);
	return cli_out_failed(d->list.c);
}

/* One row; its entry may be gone. */
static int dead_row(struct order_dead *d, const struct fw_match *m, struct fw_err *err)
{
	struct fw_entry_query q = cli_entry_query(m->entry_id);
	size_t before = d->list.n;
	int rc = fw_store_entry_list(d->list.c->store, &q, dead_entry, d, err);

	if (!rc && d->list.n == before)
		entry_cells(&d->list.table,
			&(struct fw_entry_row){
				.id = m->entry_id, .seen_ms = m->at_ms, .title = FW_STR("(deleted meanwhile)")});
	return rc;
}

static int dead_print(struct order_dead *d, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < d->n; i++) {
		if (d->list.as_json) {
			fw_match_json(cli_list_item(&d->list), NULL, &d->match[i]);
			cli_list_item_end(&d->list);
			rc = cli_out_failed(d->list.c);
		} else {
			rc = dead_row(d, &d->match[i], err);
		}
	}
	return rc;
}

int order_command_dead(struct cli *c)
{
	struct order_dead d = {.n = 0};
	struct fw_match_query q = {.dead = true};
	struct fw_err err = {.text = "out of memory"};
	struct fw_order o = {.id = 0};
	int64_t limit = 0;
	struct fw_str name;
	int rc = order_argument(c, &name);

	if (rc || !cli_value_int(c, "limit", 1, &limit))
		return CLI_USAGE;
	rc = cli_store(c, FW_STORE_READ);
	if (rc)
		return rc;
	if (fw_order_get(c->store, name, &c->arena, &o, &err))
		return order_failed(c, FW_STR_NONE, &err);
	q.order_id = o.id;
	q.limit = limit ? (size_t)limit : cli_as_json(c) ? 0 : DEAD_LIMIT;
	fw_arena_init(&d.a, 0);
	rc = fw_store_match_list(c->store, &q, dead_add, &d, &err);
	cli_list_begin(&d.list, c, ENTRY_COLUMN, FW_N(ENTRY_COLUMN));
	rc = rc ? rc : dead_print(&d, &err);
	cli_list_end(&d.list);
	fw_arena_finish(&d.a);
	if (rc < 0)
		return cli_store_failed(c, &err);
	if (!d.n && !cli_as_json(c))
		cli_note(c, "no dead letters");
	return CLI_OK;
}
