/* SPDX-License-Identifier: ISC */
/*
 * Who holds what. A row of `loans` is a claim, or a thousand feeds of a larger one: its body lists them as JSON,
 * [feed, host, last visit, last new entry] each (a negative host: the loan is in no budget), and lent has a character for each of them, 1 while it is out and 0
 * afterwards. A fence is the row's number and the feed's place in it. So lending is one row for all, and an end is one
 * character.
 *
 * Whoever ends a loan or changes something about a lent feed (a commit, a release, somebody who finds it run out, its
 * owner) locks the row first; what was read of it then stays true to the end of the transaction, and nobody needs a
 * lock on each feed. A commit need not look at its feeds at all: what it has to know was read when they were lent. Who
 * changes that meanwhile sets `touched`.
 */
#include <stdlib.h>

#include "store/maria.h"

#define LOAN_MAX 1000   /* feeds in one row */
#define LOANS_WITH 16   /* rows that name one feed; it is out in one of them */

#define COLUMNS "SELECT id, until_ms, touched, lent, body FROM loans "

/* ---- reading ---------------------------------------------------------------------------------------------------------------- */

void mr_loans_finish(struct mr_loans *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i].at);
	free(l->at);
	*l = (struct mr_loans){0};
}

/* The next number of a list, and what stands behind it. */
static int64_t number(const char **at, const char *end)
{
	int64_t v = 0;
	bool negative;

	while (*at < end && !fw_is_digit((unsigned char)**at) && **at != '-')
		++*at;
	negative = *at < end && **at == '-';
	for (*at += negative; *at < end && fw_is_digit((unsigned char)**at); ++*at)
		v = v * 10 + (**at - '0');
	return negative ? -v : v;
}

static bool loan_read(struct mr_loan *l, const struct mr_res *r)
{
	struct fw_str lent = mr_str(r, 3), body = mr_str(r, 4);
	const char *at = body.p, *end = body.p + body.len;

	*l = (struct mr_loan){.id = mr_int(r, 0), .until_ms = mr_int(r, 1), .touched = mr_int(r, 2), .n = lent.len};
	l->at = calloc(l->n + 1, sizeof(*l->at));
	if (!l->at)
		return false;
	for (size_t i = 0; i < l->n; i++) {
		struct mr_lent *f = &l->at[i];

		f->feed_id = number(&at, end);
		f->host_id = number(&at, end);
		f->uncounted = f->host_id < 0;
		f->host_id = f->uncounted ? -f->host_id : f->host_id;
		f->visit_id = number(&at, end);
		f->new_ms = number(&at, end);
		f->out = lent.p[i] == '1';
	}
	return true;
}

/* Rows of the SELECT that was appended to the script. */
static int loans_answer(struct maria *m, struct mr_loans *out, struct fw_err *err)
{
	size_t cap = 0;
	struct mr_res r;
	int rc = mr_answer(m, &r, err);

	*out = (struct mr_loans){0};
	while (!rc && mr_row(&r)) {
		if (out->n == cap) {
			struct mr_loan *grown = reallocarray(out->at, cap = cap ? cap * 2 : 8, sizeof(*grown));

			if (!grown) {
				rc = mr_no_memory(m, err);
				break;
			}
			out->at = grown;
		}
		if (!loan_read(&out->at[out->n++], &r))
			rc = mr_no_memory(m, err);
	}
	mr_done(&r);
	if (rc)
		mr_loans_finish(out);
	return rc;
}

int mr_loans_lock(struct maria *m, const int64_t *fence, size_t n, struct mr_loans *out, struct fw_err *err)
{
	int64_t *id = calloc(n + 1, sizeof(*id));
	size_t kept = 0;
	int rc;

	*out = (struct mr_loans){0};
	if (!id)
		return mr_no_memory(m, err);
	for (size_t i = 0; i < n; i++)
		id[i] = fence[i] >> MR_FENCE_BITS;
	if (n)
		qsort(id, n, sizeof(*id), mr_by_number);
	for (size_t i = 0; i < n; i++) {
		if (!kept || id[kept - 1] != id[i])
			id[kept++] = id[i];
	}
	mr_put(m, COLUMNS "FORCE INDEX (PRIMARY) WHERE ", "");
	mr_in(m, "id", id, kept);
	fw_buf_adds(&m->sql, " ORDER BY id FOR UPDATE");
	rc = loans_answer(m, out, err);
	free(id);
	return rc;
}

int mr_loans_expired(struct maria *m, int64_t now_ms, size_t max, struct mr_loans *out, struct fw_err *err)
{
	mr_put(m, COLUMNS "FORCE INDEX (loans_until) WHERE until_ms <= ? ORDER BY until_ms LIMIT ? FOR UPDATE SKIP LOCKED", "ii", now_ms,
		MR_INT(max));
	return loans_answer(m, out, err);
}

int mr_loans_of(struct maria *m, const char *worker, size_t max, struct mr_loans *out, struct fw_err *err)
{
	mr_put(m, COLUMNS "FORCE INDEX (loans_worker) WHERE worker = ? ORDER BY id LIMIT ? FOR UPDATE", "si", fw_str(worker), MR_INT(max));
	return loans_answer(m, out, err);
}

int mr_loans_read(struct maria *m, int64_t feed_id, struct mr_loans *out, struct fw_err *err)
{
	mr_put(m, COLUMNS, "");
	if (feed_id)
		fw_buf_addf(&m->sql, "WHERE body LIKE '%%[%lld,%%'", (long long)feed_id);
	return loans_answer(m, out, err);
}

static struct mr_lent *lent_of(struct mr_loan *l, int64_t feed_id)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->at[i].feed_id == feed_id && l->at[i].out)
			return &l->at[i];
	}
	return NULL;
}

int mr_loans_with(struct maria *m, int64_t feed_id, struct mr_loans *out, struct mr_loan **loan, struct mr_lent **lent, struct fw_err *err)
{
	int64_t fence[LOANS_WITH];
	size_t n = 0;
	int rc = mr_loans_read(m, feed_id, out, err); /* without a lock: it may be none of them */

	*loan = NULL;
	*lent = NULL;
	for (size_t i = 0; i < out->n && !rc; i++) {
		if (lent_of(&out->at[i], feed_id) && n < LOANS_WITH)
			fence[n++] = out->at[i].id << MR_FENCE_BITS;
	}
	mr_loans_finish(out);
	rc = rc || !n ? rc : mr_loans_lock(m, fence, n, out, err);
	for (size_t i = 0; i < out->n && !rc && !*lent; i++) {
		*loan = &out->at[i];
		*lent = lent_of(*loan, feed_id);
	}
	return rc;
}

struct mr_lent *mr_lent_find(struct mr_loans *l, int64_t fence, int64_t feed_id, bool *touched)
{
	size_t lo = 0, hi = l->n, at = (size_t)fence & (((size_t)1 << MR_FENCE_BITS) - 1);
	int64_t id = fence >> MR_FENCE_BITS;
	struct mr_lent *found;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->at[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n || l->at[lo].id != id || at >= l->at[lo].n)
		return NULL;
	*touched |= l->at[lo].touched;
	found = &l->at[lo].at[at];
	return found->out && !found->ends && found->feed_id == feed_id ? found : NULL;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------------- */

static void body_add(struct maria *m, const struct mr_lent *at, size_t n)
{
	fw_buf_adds(&m->sql, "'[");
	for (size_t i = 0; i < n; i++) {
		fw_buf_adds(&m->sql, i ? ",[" : "[");
		mr_value_int(m, at[i].feed_id);
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, at[i].uncounted ? -at[i].host_id : at[i].host_id);
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, at[i].visit_id);
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, at[i].new_ms);
		fw_buf_addc(&m->sql, ']');
	}
	fw_buf_adds(&m->sql, "]'");
}

static void lent_add(struct maria *m, const struct mr_lent *at, size_t n)
{
	fw_buf_addc(&m->sql, '\'');
	for (size_t i = 0; i < n; i++)
		fw_buf_addc(&m->sql, at[i].out && !at[i].ends ? '1' : '0');
	fw_buf_addc(&m->sql, '\'');
}

void mr_loans_put(struct maria *m, const char *worker, int64_t until_ms, const struct mr_lent *lent, size_t n)
{
	struct mr_rows rows = {"INSERT INTO loans (until_ms, worker, lent, body) VALUES ", .whole = true};

	for (size_t i = 0; i < n; i += LOAN_MAX) {
		size_t part = FW_MIN(n - i, (size_t)LOAN_MAX);

		mr_rows_next(m, &rows);
		mr_value_int(m, until_ms);
		fw_buf_addc(&m->sql, ',');
		mr_value_bytes(m, fw_str(worker));
		fw_buf_addc(&m->sql, ',');
		lent_add(m, lent + i, part);
		fw_buf_addc(&m->sql, ',');
		body_add(m, lent + i, part);
		fw_buf_addc(&m->sql, ')');
	}
}

int64_t mr_loans_fence(const struct maria *m, int64_t first_id, size_t i)
{
	return ((first_id + (int64_t)(i / LOAN_MAX) * m->step) << MR_FENCE_BITS) + (int64_t)(i % LOAN_MAX);
}

void mr_loans_write(struct maria *m, const struct mr_loans *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct mr_loan *o = &l->at[i];
		size_t out = 0, ends = 0;

		for (size_t k = 0; k < o->n; k++) {
			out += o->at[k].out && !o->at[k].ends;
			ends += o->at[k].ends;
		}
		if (!out) {
			mr_put(m, "DELETE FROM loans WHERE id = ?", "i", o->id);
			continue;
		}
		if (!ends && !o->rewrite)
			continue;
		mr_put(m, "UPDATE loans SET lent = ", "");
		lent_add(m, o->at, o->n);
		if (o->rewrite) {
			fw_buf_adds(&m->sql, ", touched = 1, body = ");
			body_add(m, o->at, o->n);
		}
		fw_buf_addf(&m->sql, " WHERE id = %lld", (long long)o->id);
	}
}
