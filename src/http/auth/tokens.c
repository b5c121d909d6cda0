/* SPDX-License-Identifier: ISC */
/*
 * Access tokens in memory. Server threads check tokens at every request, so each holds a reference
 * to a snapshot of them. An atomic number says whether there is a newer one; only then a
 * lock is taken. A service publishes a new snapshot when the store's list has changed.
 *
 * A presented token is hashed, and the hash is compared with all stored ones, each in constant
 * time. So the time reveals nothing about the stored tokens.
 *
 * Each token remembers the last networks where it was used. While such a network is throttled, that
 * token still works.
 */
#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/auth/limiter.h"
#include "http/auth/tokens.h"

#define FIRST_READ_MS (3 * FW_SECOND_MS) /* how long auth_open() waits for the store */

struct auth {
	const struct fw_config *config;
	enum fw_tokenless closed; /* the setting by which all requests need a token; FW_TOKENLESS_OPEN: none */
	struct service *service;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool read_once;
	struct auth_tokens *current; /* the newest snapshot, under the lock; NULL: not read yet */
	_Atomic uint64_t version;    /* its number */
	struct auth_limiter *limiter;
	_Atomic uint64_t failure_n, limited_n;
	_Atomic bool reached;
	_Atomic int64_t warned_ms; /* monotonic time of the last warning about a network */
	int logged;                /* the enum fw_tokenless that was logged last, -1: none; the service's */
};

/* ---- tokens in memory ------------------------------------------------------------------------ */

static void auth_tokens_free(struct auth_tokens *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->at[i].bound);
	free(t);
}

static void auth_tokens_unref(struct auth_tokens *t)
{
	if (t && atomic_fetch_sub(&t->ref_n, 1) == 1)
		auth_tokens_free(t);
}

struct auth_reading {
	struct auth_tokens *t;
	size_t cap;
};

static int auth_tokens_add(void *ctx, const struct fw_token *token)
{
	struct auth_reading *r = ctx;
	struct auth_tokens *t = r->t;

	if (t->n == r->cap) {
		r->cap *= 2;
		t = realloc(t, sizeof(*t) + r->cap * sizeof(t->at[0]));
		if (!t)
			return FW_ENOMEM;
		r->t = t;
	}
	memset(&t->at[t->n], 0, sizeof(t->at[0]));
	t->at[t->n].scopes = token->scopes;
	t->at[t->n].until_ms = token->until_ms;
	t->at[t->n].broken = token->broken;
	(void)fw_str_copy(t->at[t->n].name, sizeof(t->at[0].name), token->name);
	memcpy(t->at[t->n].hash, token->hash, sizeof(token->hash));
	if (token->bound.p) {
		t->at[t->n].bound = strndup(token->bound.p, token->bound.len);
		if (!t->at[t->n].bound)
			return FW_ENOMEM;
	}
	t->n++;
	return 0;
}

static bool auth_bound_equal(const struct auth_token *a, const struct auth_token *b)
{
	return !a->bound == !b->bound && (!a->bound || strcmp(a->bound, b->bound) == 0);
}

static bool auth_tokens_equal(const struct auth_tokens *a, const struct auth_tokens *b)
{
	if (!a || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (memcmp(a->at[i].hash, b->at[i].hash, sizeof(a->at[i].hash)) || a->at[i].scopes != b->at[i].scopes ||
			a->at[i].until_ms != b->at[i].until_ms || a->at[i].broken != b->at[i].broken ||
			!auth_bound_equal(&a->at[i], &b->at[i]))
			return false;
	}
	return true;
}

struct auth_tokens *auth_view_update(struct auth *a, struct auth_view *v)
{
	struct auth_tokens *was = v->tokens;

	if (atomic_load_explicit(&a->version, memory_order_acquire) == v->version)
		return v->tokens;
	pthread_mutex_lock(&a->lock);
	v->tokens = a->current;
	v->version = atomic_load(&a->version);
	if (v->tokens)
		atomic_fetch_add(&v->tokens->ref_n, 1);
	pthread_mutex_unlock(&a->lock);
	auth_tokens_unref(was);
	return v->tokens;
}

void auth_view_finish(struct auth_view *v)
{
	auth_tokens_unref(v->tokens);
	*v = (struct auth_view){0};
}

/* ---- the service ----------------------------------------------------------------------------- */

static int auth_tokens_read(struct fw_store *st, struct auth_tokens **out, struct fw_err *err)
{
	struct auth_reading r = {.cap = 8};
	int rc;

	*out = NULL;
	r.t = calloc(1, sizeof(*r.t) + r.cap * sizeof(r.t->at[0]));
	if (!r.t)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	rc = fw_token_list(st, false, auth_tokens_add, &r, err);
	if (rc == FW_ENOMEM)
		rc = fw_err_set(err, rc, "out of memory");
	if (rc) {
		auth_tokens_free(r.t);
		return rc;
	}
	atomic_init(&r.t->ref_n, 1);
	*out = r.t;
	return 0;
}

/* Copy the times and networks of use from one snapshot to the next. */
static void auth_uses_copy(const struct auth_tokens *was, struct auth_tokens *t)
{
	for (size_t i = 0; was && i < was->n; i++) {
		for (size_t k = 0; k < t->n; k++) {
			if (memcmp(was->at[i].hash, t->at[k].hash, sizeof(t->at[k].hash)))
				continue;
			atomic_store(&t->at[k].used_ms, atomic_load(&was->at[i].used_ms));
			for (size_t h = 0; h < AUTH_NETWORKS; h++)
				atomic_store(&t->at[k].network[h], atomic_load(&was->at[i].network[h]));
			atomic_store(&t->at[k].network_n, atomic_load(&was->at[i].network_n));
			t->at[k].stored_used_ms = was->at[i].stored_used_ms;
		}
	}
}

/* Write the times of use to the store. */
static int auth_uses_store(struct auth *a, struct fw_store *st, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; a->current && i < a->current->n && !rc; i++) {
		struct auth_token *t = &a->current->at[i];
		int64_t used_ms = atomic_load(&t->used_ms);

		if (used_ms == t->stored_used_ms)
			continue;
		rc = fw_token_note_use(st, fw_str(t->name), used_ms, err);
		if (!rc) /* else it is tried again after the next read */
			t->stored_used_ms = used_ms;
	}
	return rc;
}

/* Publish a snapshot if it differs. Takes t over. */
static void auth_tokens_publish(struct auth *a, struct auth_tokens *t)
{
	struct auth_tokens *was = t;

	if (!auth_tokens_equal(a->current, t)) { /* only this thread writes a->current */
		auth_uses_copy(a->current, t);
		pthread_mutex_lock(&a->lock);
		was = a->current;
		a->current = t;
		atomic_fetch_add(&a->version, 1);
		pthread_mutex_unlock(&a->lock);
	}
	auth_tokens_unref(was);
}

/*
 * Log who may do what without a token: at the start, with the first token, and after the last one
 * is removed.
 */
static void auth_tokenless_log(struct auth *a)
{
	enum fw_tokenless t = fw_tokenless(a->config, a->current->n > 0);
	char words[FW_TOKENLESS_TEXT_MAX];

	if (a->logged == (int)t)
		return;
	a->logged = (int)t;
	fw_tokenless_text(t, words);
	fw_info("%s", words);
}

/* auth_open() may end. */
static void auth_tell_read(struct auth *a)
{
	pthread_mutex_lock(&a->lock);
	a->read_once = true;
	pthread_cond_broadcast(&a->change);
	pthread_mutex_unlock(&a->lock);
}

static int auth_refresh(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct auth *a = ctx;
	struct auth_tokens *t = NULL;
	int rc = st ? auth_tokens_read(st, &t, err) : 0;

	if (t) {
		auth_tokens_publish(a, t);
		auth_tokenless_log(a);
		service_set_waits(a->service, "the known ones stay valid");
	}
	rc = rc || !st ? rc : auth_uses_store(a, st, err);
	if (st || !service_store(a->service)) /* otherwise it was busy */
		atomic_store(&a->reached, st && (!rc || rc == FW_EAGAIN));
	auth_tell_read(a);
	return rc;
}

static void auth_closing(void *ctx)
{
	struct auth *a = ctx;
	struct fw_store *st = service_store(a->service);
	struct fw_err err;

	if (st && auth_uses_store(a, st, &err))
		fw_debug("the last uses of tokens are not stored: %s", err.text);
}

static void auth_free(struct auth *a)
{
	service_close(a->service);
	auth_tokens_unref(a->current);
	pthread_cond_destroy(&a->change);
	pthread_mutex_destroy(&a->lock);
	auth_limiter_destroy(a->limiter);
	free(a);
}

static int auth_service_open(struct auth *a, struct fw_err *err)
{
	static const struct service_task TASK = {AUTH_READ_MS, TASK_OFFLINE, auth_refresh};
	int rc = service_open(&(struct service_options){.config = a->config,
				      .who = "access tokens",
				      .waits = "only pushes from this machine are accepted",
				      .task = &TASK,
				      .task_n = 1,
				      .closing = auth_closing,
				      .ctx = a},
		&a->service, err);

	return rc ? rc : service_start(a->service, err);
}

static void auth_wait_read(struct auth *a)
{
	struct timespec until = fw_timespec(fw_mono_ms() + FIRST_READ_MS);

	pthread_mutex_lock(&a->lock);
	while (!a->read_once && pthread_cond_timedwait(&a->change, &a->lock, &until) == 0)
		;
	pthread_mutex_unlock(&a->lock);
}

int auth_open(const struct fw_config *c, struct auth **out, struct fw_err *err)
{
	struct auth *a = calloc(1, sizeof(*a));
	int rc;

	*out = NULL;
	if (!a)
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	a->config = c;
	a->closed = fw_tokenless(c, false);
	atomic_init(&a->warned_ms, INT64_MIN);
	a->logged = -1;
	a->limiter = auth_limiter_create(c->auth_failures_max, c->auth_failures_ms);
	if (!a->limiter) {
		free(a);
		return fw_err_set(err, FW_ENOMEM, "out of memory");
	}
	pthread_mutex_init(&a->lock, NULL);
	fw_mono_cond_init(&a->change);
	rc = auth_service_open(a, err);
	if (rc) {
		auth_free(a);
		return rc;
	}
	auth_wait_read(a);
	*out = a;
	return 0;
}

void auth_close(struct auth *a)
{
	if (a)
		auth_free(a);
}

bool auth_store_is_up(const struct auth *a)
{
	return atomic_load_explicit(&a->reached, memory_order_relaxed);
}

uint64_t auth_failure_n(const struct auth *a)
{
	return atomic_load_explicit(&a->failure_n, memory_order_relaxed);
}

uint64_t auth_limited_n(const struct auth *a)
{
	return atomic_load_explicit(&a->limited_n, memory_order_relaxed);
}

/* ---- presented tokens ------------------------------------------------------------------------ */

struct fw_str auth_presented(struct fw_str header, char buffer[AUTH_PRESENTED_MAX])
{
	struct fw_str name, password, rest, scheme = fw_str_split(fw_str_trim(header), ' ', &rest);

	rest = fw_str_trim(rest);
	if (fw_str_ieq(scheme, FW_STR("Bearer")))
		return rest.len && rest.len <= AUTH_PRESENTED_MAX ? rest : FW_STR_NONE;
	return basic_read(header, buffer, &name, &password) ? password : FW_STR_NONE;
}

static bool token_knows_network(struct auth_token *t, uint64_t network)
{
	for (size_t i = 0; i < AUTH_NETWORKS; i++) {
		if (atomic_load_explicit(&t->network[i], memory_order_relaxed) == network)
			return true;
	}
	return false;
}

/* Remember when and where the token was used. Most requests write neither. */
static void token_note_use(struct auth_token *t, uint64_t network, int64_t now_ms)
{
	if (now_ms - atomic_load_explicit(&t->used_ms, memory_order_relaxed) >= AUTH_USED_MS)
		atomic_store_explicit(&t->used_ms, now_ms, memory_order_relaxed);
	if (!token_knows_network(t, network))
		atomic_store_explicit(
			&t->network[atomic_fetch_add(&t->network_n, 1) % AUTH_NETWORKS], network, memory_order_relaxed);
}

static bool token_is_expired(int64_t until_ms, int64_t now_ms)
{
	return until_ms != FW_NO_DATE && until_ms <= now_ms;
}

enum auth_verdict auth_check_token(
	struct auth_tokens *t, const struct auth_request *q, int64_t now_ms, struct auth_pass *pass)
{
	struct auth_token *found = NULL;

	*pass = (struct auth_pass){.scope = q->scope, .token = true};
	if (!q->presented.p)
		return AUTH_MISSING;
	if (!fw_token_hash(q->presented, pass->hash))
		return AUTH_WRONG;
	for (size_t i = 0; i < t->n; i++) {
		struct auth_token *k = &t->at[i];

		if (CRYPTO_memcmp(pass->hash, k->hash, sizeof(pass->hash)) == 0 && !k->broken)
			found = k;
	}
	if (q->limited && (!found || !token_knows_network(found, q->network)))
		return AUTH_LIMITED;
	if (!found || token_is_expired(found->until_ms, now_ms))
		return AUTH_WRONG;
	if (!(found->scopes & q->scope))
		return AUTH_SCOPE;
	token_note_use(found, q->network, now_ms);
	pass->until_ms = found->until_ms;
	pass->bound = found->bound;
	return AUTH_OK;
}

bool auth_pass_is_valid(const struct auth_tokens *t, struct auth_pass *pass, int64_t now_ms)
{
	if (!pass->token)
		return !t->n;
	for (size_t i = 0; i < t->n; i++) {
		const struct auth_token *k = &t->at[i];

		if (memcmp(pass->hash, k->hash, sizeof(pass->hash)) || k->broken || !(k->scopes & pass->scope))
			continue;
		pass->until_ms = k->until_ms;
		return !token_is_expired(k->until_ms, now_ms);
	}
	return false;
}

void auth_count_wrong(struct auth *a, uint64_t network, struct fw_str address, int64_t now_ms)
{
	int64_t warned_ms = atomic_load(&a->warned_ms);
	char text[INET6_ADDRSTRLEN] = "a Unix socket";

	atomic_fetch_add_explicit(&a->failure_n, 1, memory_order_relaxed);
	if (!auth_limiter_fail(a->limiter, network, now_ms))
		return;
	if ((warned_ms != INT64_MIN && now_ms - warned_ms < FW_SECOND_MS) ||
		!atomic_compare_exchange_strong(&a->warned_ms, &warned_ms, now_ms))
		return; /* at most one line a second */
	if (address.len && !inet_ntop(address.len == 4 ? AF_INET : AF_INET6, address.p, text, sizeof(text)))
		text[0] = 0;
	fw_warn("requests throttled with 429: %lld wrong tokens from the network of %s (auth_failures_max, "
		"auth_failures_ms)",
		(long long)a->config->auth_failures_max, text);
}

int64_t auth_throttled_ms(struct auth *a, uint64_t network, int64_t now_ms)
{
	return auth_limiter_wait_ms(a->limiter, network, now_ms);
}

void auth_count_limited(struct auth *a)
{
	atomic_fetch_add_explicit(&a->limited_n, 1, memory_order_relaxed);
}

enum fw_tokenless auth_closed(const struct auth *a)
{
	return a->closed;
}
