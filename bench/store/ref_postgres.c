/* SPDX-License-Identifier: ISC */
/*
 * A job queue on PostgreSQL in the usual form: a transaction takes the row that has been due
 * longest, skips rows that others have locked, keeps it locked during the job, sets its new time
 * and commits. With libpq and prepared statements.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "store/dsn.h"

static PGresult *answer(PGconn *db, PGresult *r)
{
	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		die("%s", PQerrorMessage(db));
	return r;
}

static void db_do(PGconn *db, const char *sql)
{
	PQclear(answer(db, PQexec(db, sql)));
}

static PGconn *db_open(const char *url)
{
	struct fw_dsn d;
	struct fw_arena a;
	struct fw_err err;
	PGconn *db;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	db = PQconnectdbParams((const char *[]){"host", "user", "dbname", NULL},
		(const char *[]){fw_dsn_option(&d, "host").p, d.user.p, d.path.p, NULL}, 0);
	if (PQstatus(db) != CONNECTION_OK)
		die("%s", PQerrorMessage(db));
	fw_arena_finish(&a);
	db_do(db, "SET client_min_messages = warning");
	return db;
}

static void prepare(PGconn *db, const char *name, const char *sql)
{
	PQclear(answer(db, PQprepare(db, name, sql, 0, NULL)));
}

static void ref_fill(const char *url, int64_t feeds)
{
	PGconn *db = db_open(url);
	char sql[400];

	db_do(db,
		"DROP TABLE IF EXISTS public.classic; CREATE TABLE public.classic (id int8 PRIMARY"
		" KEY, url text NOT NULL, due int8 NOT NULL,"
		" visited int8 NOT NULL DEFAULT 0, status int4 NOT NULL DEFAULT 0)");
	if (!fw_snprintf(sql, sizeof(sql),
		    "INSERT INTO public.classic SELECT i, 'https://www.host-' || i || '.example/feed/' || i || '.xml',"
		    " hashint8(i)::int8 & 1073741823 FROM generate_series(1, %lld) i",
		    (long long)feeds))
		die("too many feeds");
	db_do(db, sql);
	db_do(db, "CREATE INDEX ON public.classic (due)");
	db_do(db, "VACUUM ANALYZE"); /* our tables too: as if they had been filled long ago */
	db_do(db, "CHECKPOINT");
	PQfinish(db);
}

struct classic {
	const char *url;
	int job_ms;
};

static void claim_work(struct crew *c, int worker, const void *ctx)
{
	const struct classic *w = ctx;
	PGconn *db = db_open(w->url);

	(void)worker;
	prepare(db, "take",
		"SELECT id, url FROM public.classic WHERE due <= 1073741824 ORDER BY due LIMIT 1 FOR"
		" UPDATE SKIP LOCKED");
	prepare(db, "done",
		"UPDATE public.classic SET due = 2000000000 + $1::int8 % 1000000, visited = 1, status"
		" = 304 WHERE id = $1::int8");
	crew_begin(c);
	while (crew_on(c)) {
		const char *id;
		PGresult *r;

		db_do(db, "BEGIN");
		r = answer(db, PQexecPrepared(db, "take", 0, NULL, NULL, NULL, 0));
		if (PQntuples(r) != 1)
			die("the reference's queue is empty: --feeds is too small");
		if (w->job_ms)
			usleep((useconds_t)w->job_ms * 1000);
		id = PQgetvalue(r, 0, 0);
		PQclear(answer(db, PQexecPrepared(db, "done", 1, &id, NULL, NULL, 0)));
		PQclear(r);
		db_do(db, "COMMIT");
		crew_done(c, 1);
	}
	PQfinish(db);
}

static struct work ref_claim(const char *url, int workers, double seconds, int job_ms)
{
	struct classic w = {url, job_ms};

	return crew_run(workers, seconds, 0, claim_work, &w);
}

static double ref_entries(const char *url, int64_t n, size_t bytes)
{
	PGconn *db = db_open(url);
	struct fw_entry_row e;
	struct fw_arena a;
	double start;

	db_do(db,
		"DROP TABLE IF EXISTS public.classic_entries; CREATE TABLE public.classic_entries (id"
		" bigserial PRIMARY KEY,"
		" feed int8 NOT NULL, key bytea NOT NULL, guid text, url text, title text, author"
		" text, published int8, content text,"
		" UNIQUE (feed, key))");
	prepare(db, "in",
		"INSERT INTO public.classic_entries (feed, key, guid, url, title, author, published, content)"
		" VALUES ($1::text::int8, $2, $3, $4, $5, $6, $7::text::int8, $8) ON CONFLICT (feed, key) DO NOTHING");
	fw_arena_init(&a, 0);
	start = now_s();
	for (int64_t i = 0; i < n; i++) {
		const char *v[8];
		int len[8], binary[8] = {0, 1};

		make_entry(&e, i / 25, i, bytes, &a);
		v[0] = fw_arena_printf(&a, "%lld", (long long)(i / 25));
		v[1] = (const char *)e.key;
		v[2] = v[3] = e.guid.p;
		v[4] = fw_arena_str(&a, e.title).p;
		v[5] = e.author.p;
		v[6] = fw_arena_printf(&a, "%lld", (long long)e.published_ms);
		v[7] = fw_arena_str(&a, e.content).p;
		len[1] = sizeof(e.key);
		PQclear(answer(db, PQexecPrepared(db, "in", 8, v, len, binary, 0)));
		fw_arena_reset(&a, 1 << 16);
	}
	start = (double)n / (now_s() - start);
	db_do(db, "DROP TABLE public.classic_entries");
	fw_arena_finish(&a);
	PQfinish(db);
	return start;
}

static double ref_scan(const char *url, int64_t n)
{
	struct fw_arena a;
	struct fw_dsn d;
	struct fw_err err;
	PGconn *db = db_open(url);
	double start;
	PGresult *r;
	int k;

	fw_arena_init(&a, 0);
	if (fw_dsn_split(&a, FW_DSN_STORE, url, &d, &err))
		die_of("the server's URL", &err);
	db_do(db, fw_arena_printf(&a, "SET search_path = %s", fw_dsn_option(&d, "schema").p));
	db_do(db, "VACUUM ANALYZE"); /* as if it had been filled long ago */
	start = now_s();
	db_do(db, "BEGIN; DECLARE all_entries CURSOR FOR " SHORT_COLUMNS);
	do {
		r = answer(db, PQexec(db, "FETCH 10000 FROM all_entries"));
		k = PQntuples(r);
		n -= k;
		PQclear(r);
	} while (k);
	if (n)
		die("%s: %lld entries are missing", url, (long long)n);
	start = now_s() - start;
	PQfinish(db);
	fw_arena_finish(&a);
	return start;
}

/* ---- rows of PostgreSQL alone ---------------------------------------------------------------- */

static double figure(PGconn *db, const char *sql)
{
	PGresult *r = answer(db, PQexec(db, sql));
	double v;

	if (PQntuples(r) != 1 || !fw_str_double(fw_str(PQgetvalue(r, 0, 0)), &v))
		die("%s: the result is not a number", sql);
	PQclear(r);
	return v;
}

static double log_bytes(const char *url)
{
	PGconn *db = db_open(url);
	double v = figure(db, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')");

	PQfinish(db);
	return v;
}

#define TABLES \
	"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = 'bench'"

/*
 * Tables with their indexes that use a byte a feed or more. before: an earlier result (NULL: none),
 * which is freed.
 */
static PGresult *sizes(PGconn *db, int64_t feeds)
{
	char sql[400];

	if (!fw_snprintf(sql, sizeof(sql),
		    "SELECT relname, pg_table_size(c.oid), pg_indexes_size(c.oid) " TABLES
		    " AND pg_total_relation_size(c.oid) >= %lld ORDER BY 2 DESC",
		    (long long)feeds))
		die("too many feeds");
	return answer(db, PQexec(db, sql));
}

static void sizes_rows(PGconn *db, const struct schedule *w)
{
	static const char *const part[] = {"table", "indexes of"};
	PGresult *r = sizes(db, w->feeds);

	for (int i = 0; i < PQntuples(r); i++) {
		/* these grow until they are pruned */
		bool visits = fw_str_starts(fw_str(PQgetvalue(r, i, 0)), FW_STR("visit"));

		for (int k = 0; k < 2; k++) {
			char name[100];
			double bytes;

			if (!fw_str_double(fw_str(PQgetvalue(r, i, 1 + k)), &bytes) ||
				!fw_snprintf(name, sizeof(name), "  %s %s, a %s", part[k], PQgetvalue(r, i, 0),
					visits ? "visit" : "feed"))
				die("a table's size cannot be read");
			row(name, bytes / (double)(visits ? w->visits : w->feeds), "bytes");
		}
	}
	PQclear(r);
}

static void hot_row(PGconn *db)
{
	double hot;

	PQclear(answer(db, PQexec(db, "SELECT pg_stat_clear_snapshot()")));
	hot = figure(db,
		"SELECT 100.0 * n_tup_hot_upd / greatest(n_tup_upd, 1) FROM pg_stat_user_tables WHERE"
		" schemaname = 'bench' AND"
		" relname = 'schedule'");
	row("updates of a feed's schedule that were HOT", hot, "%");
}

/* Another client leaves a transaction open in a session of its own. */
static void *foreign_begin(const char *url)
{
	PGconn *idle = db_open(url);

	db_do(idle, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current(), count(*) FROM bench.numbers");
	return idle;
}

static void foreign_end(void *connection)
{
	PQfinish(connection);
}

static void schedule_more(const struct engine *e, struct schedule *w)
{
	PGconn *db = db_open(w->url);

	(void)e;
	hot_row(db);
	row("tables after as many visits", (double)w->visits, "");
	sizes_rows(db, w);
	PQfinish(db);
}

const struct engine engine_postgres = {
	.name = "postgres",
	.workers = 4,
	.claim_goal = 12,
	.entry_goal = 9,
	.classic = "one row a transaction, SELECT ... FOR UPDATE SKIP LOCKED",
	.holds = true,
	.ref_fill = ref_fill,
	.ref_claim = ref_claim,
	.ref_entries = ref_entries,
	.ref_scan = ref_scan,
	.large = true,
	.log_bytes = log_bytes,
	.foreign_begin = foreign_begin,
	.foreign_end = foreign_end,
	.schedule_more = schedule_more,
};
