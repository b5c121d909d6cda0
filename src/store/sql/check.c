/* SPDX-License-Identifier: ISC */
/* The deep check: inconsistencies between tables, the same on all engines. */
#include "store/sql/core.h"

#define ABSENT(table, condition) "NOT EXISTS (SELECT 1 FROM " table " WHERE " condition ")"
#define NUMBER(name) "(SELECT value FROM meta WHERE name = '" name "')"
/* A row if the two values contradict each other. */
#define PAIR(one, other, wrong) \
	"SELECT x.one, x.other FROM (SELECT " one " AS one, " other " AS other) x WHERE x.one " wrong " x.other"

_Static_assert(STORE_SHARDS == 1024 && SQL_POSITION_BITS == 53, "the statements have the numbers");
static const struct sql_check CHECKS[] = {
	{"schedule", "feed %lld: not in the schedule",
		"SELECT f.id, 0 FROM feeds f WHERE " ABSENT("schedule s", "s.position = f.position")},
	{"schedule", "schedule: no feed at position %lld",
		"SELECT s.position, 0 FROM schedule s WHERE " ABSENT(
			"feeds f", "f.id = s.position & 9007199254740991 AND f.position = s.position")},
	{"schedule", "feed %lld: in shard %lld, which is not the shard of its host",
		"SELECT s.position & 9007199254740991,"
		" s.position >> 53 FROM schedule s WHERE s.position >> 53 <> (s.host_id & 1023)"},
	{"schedule", "host %lld: in shard %lld, which is not its shard",
		"SELECT host_id, shard FROM hosts WHERE shard <> (host_id & 1023)"},
	{"schedule", "shard %lld: worker %lld has no lease",
		"SELECT s.shard, s.worker FROM shards s"
		" WHERE s.worker IS NOT NULL AND " ABSENT("workers w", "w.id = s.worker")},
	{"schedule", "shards: %lld of 1024", "SELECT count(*), 0 FROM shards HAVING count(*) <> 1024"},
	{"entries", "entry %lld: feed %lld does not exist",
		"SELECT e.id, e.feed_id FROM entries e WHERE " ABSENT("feeds f", "f.id = e.feed_id")},
	{"entries", "entry %lld of feed %lld: no row in entry_keys",
		"SELECT e.id, e.feed_id FROM entries e WHERE " ABSENT(
			"entry_keys k", "k.feed_id = e.feed_id AND k.entry_key = e.entry_key AND k.entry_id = e.id")},
	{"entries", "feed %lld: a key names entry %lld, which does not exist",
		"SELECT k.feed_id, k.entry_id"
		" FROM entry_keys k WHERE k.entry_id <> 0 AND " ABSENT("entries e", "e.id = k.entry_id")},
	{"entries", "entry_keys: feed %lld does not exist",
		"SELECT DISTINCT k.feed_id, 0 FROM entry_keys k WHERE " ABSENT("feeds f", "f.id = k.feed_id")},
	{"visits", "feed %lld: its last visit, %lld, belongs to another feed",
		"SELECT f.id, v.id FROM feeds f JOIN"
		" schedule s ON s.position = f.position JOIN visits v ON v.id = s.last_visit_id WHERE v.feed_id <> "
		"f.id"},
	{"visits", "visit %lld: the previous visit, %lld, belongs to another feed",
		"SELECT v.id, p.id FROM visits v JOIN visits p ON p.id = v.previous_id WHERE v.feed_id <> p.feed_id"},
	{"meta", "row_counts: counts %lld entries, there are %lld",
		PAIR("(SELECT {sum entry_n} FROM row_counts)", "(SELECT count(*) FROM entries)", "<>")},
	{"meta", "row_counts: counts %lld visits, there are %lld",
		PAIR("(SELECT {sum visit_n} FROM row_counts)", "(SELECT count(*) FROM visits)", "<>")},
	{"meta", "meta: entry_id is %lld, but entry %lld exists",
		PAIR(NUMBER("entry_id"), "(SELECT max(id) FROM entries)", "<")},
	{"meta", "meta: feed_id is %lld, but feed %lld exists",
		PAIR(NUMBER("feed_id"), "(SELECT max(id) FROM feeds)", "<")},
	{"meta", "meta: lease_id is %lld, but lease %lld exists",
		PAIR(NUMBER("lease_id"), "(SELECT max(id) FROM workers)", "<")},
	{"search", "search index: indexed up to entry %lld, but the last entry is %lld",
		PAIR(NUMBER("indexed_entry_id"), NUMBER("entry_id"), ">")},
};

/* Checks of the log of changes, which an older schema lacks. */
static const struct sql_check LOG_CHECKS[] = {
	{"meta", "meta: entry_id is %lld, but change %lld exists",
		PAIR(NUMBER("entry_id"), "(SELECT max(id) FROM changes)", "<")},
	{"entries", "revision %lld of entry %lld: the entry does not exist",
		"SELECT r.revision, r.entry_id FROM revisions r WHERE " ABSENT("entries e", "e.id = r.entry_id")},
	{"entries", "revision %lld of entry %lld: not an earlier version",
		"SELECT r.revision, r.entry_id FROM revisions r JOIN entries e ON e.id = r.entry_id"
		" WHERE r.revision >= e.revision"},
};

/* Checks of accounts. Unread entries are counted anew. */
static const struct sql_check ACCOUNT_CHECKS[] = {
	{"accounts", "account %lld: subscribes feed %lld, which does not exist",
		"SELECT s.account_id, s.feed_id FROM subscriptions s WHERE " ABSENT("feeds f", "f.id = s.feed_id")},
	{"accounts", "account %lld does not exist, but subscribes feed %lld",
		"SELECT s.account_id, s.feed_id FROM subscriptions s WHERE " ABSENT(
			"accounts a", "a.id = s.account_id")},
	{"accounts", "account %lld: the count of unread entries of feed %lld is wrong",
		"SELECT s.account_id, s.feed_id FROM subscriptions s JOIN feeds f ON f.id = s.feed_id JOIN schedule t"
		" ON t.position = f.position WHERE t.entry_total_n - s.read_n <> (SELECT count(*) FROM entries e WHERE"
		" e.feed_id = s.feed_id AND e.id > s.mark_id) + (SELECT {sum CASE WHEN x.entry_id <= s.mark_id THEN 1"
		" ELSE -1 END} FROM read_exceptions x WHERE x.account_id = s.account_id AND x.feed_id = s.feed_id)"},
	{"accounts", "account %lld: has a read state of entry %lld, which does not exist or is not subscribed",
		"SELECT x.account_id, x.entry_id FROM read_exceptions x WHERE " ABSENT(
			"entries e", "e.id = x.entry_id AND e.feed_id = x.feed_id") " OR " ABSENT("subscriptions s",
			"s.account_id = x.account_id AND s.feed_id = x.feed_id")},
	{"accounts", "account %lld: has a label on entry %lld, which does not exist",
		"SELECT l.account_id, l.entry_id FROM entry_labels l WHERE " ABSENT(
			"entries e", "e.id = l.entry_id AND e.feed_id = l.feed_id")},
	{"accounts", "account %lld: has no label %lld, but entries with it",
		"SELECT DISTINCT l.account_id, l.label_id FROM entry_labels l WHERE l.label_id <> 0 AND " ABSENT(
			"labels b", "b.account_id = l.account_id AND b.id = l.label_id")},
	{"meta", "meta: account_id is %lld, but account %lld exists",
		PAIR(NUMBER("account_id"), "(SELECT max(id) FROM accounts)", "<")},
};

struct sql_findings {
	fw_inspect_cb *cb;
	void *ctx;
	const char *name, *words;
};

/* Report a finding. words: %lld for the two values. */
static void check_finding(const struct sql_findings *f, const char *words, int64_t one, int64_t other)
{
	const int64_t number[2] = {one, other};
	struct fw_buf b = FW_BUF_INIT(0);
	size_t at = 0;

	for (const char *p = words; *p; p++) {
		if (at < FW_N(number) && strncmp(p, "%lld", 4) == 0)
			fw_buf_addf(&b, "%lld", (long long)number[at++]), p += 3;
		else
			fw_buf_addc(&b, *p);
	}
	fw_buf_addc(&b, '\0');
	f->cb(f->ctx, f->name, 2, b.rc ? words : b.p, "restore a backup, or copy the feeds to a new store");
	fw_buf_finish(&b);
}

static int check_row(void *ctx, const struct sql_row *row)
{
	const struct sql_findings *f = ctx;

	check_finding(f, f->words, sql_int(row, 0), sql_int(row, 1));
	return 0;
}

/* Check that host_id belongs to the feed's host. Columns: id, host_id, url, host_key. */
static int check_host_row(void *ctx, const struct sql_row *row)
{
	const struct fw_feed feed = {.id = sql_int(row, 0), .url = sql_str(row, 2), .host_key = sql_str(row, 3)};

	if (sql_int(row, 1) != store_feed_host_id(&feed))
		check_finding(ctx, "feed %lld: host_id %lld is not the id of its host", feed.id, sql_int(row, 1));
	return 0;
}

static int checks_run(struct sql *s, struct sql_findings *f, const struct sql_check *c, size_t n, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		f->name = c[i].name;
		f->words = c[i].words;
		rc = sql_query(s, c[i].text, SQL_NONE, check_row, f, err);
	}
	return rc;
}

int sql_check(
	struct sql *s, const char *begin, const struct sql_check *own, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql_findings f = {.cb = cb, .ctx = ctx};
	int rc = s->dialect->script(s, begin, err);

	rc = rc ? rc : checks_run(s, &f, CHECKS, FW_N(CHECKS), err);
	rc = rc || s->schema < SQL_SCHEMA_LOG ? rc : checks_run(s, &f, LOG_CHECKS, FW_N(LOG_CHECKS), err);
	rc = rc || s->schema < SQL_SCHEMA_ACCOUNTS ? rc : checks_run(s, &f, ACCOUNT_CHECKS, FW_N(ACCOUNT_CHECKS), err);
	rc = rc || !own ? rc : checks_run(s, &f, own, 1, err);
	f.name = "schedule";
	rc = rc ? rc :
		  sql_query(s,
			  "SELECT f.id, s.host_id, f.url, f.host_key FROM feeds f JOIN schedule s"
			  " ON s.position = f.position",
			  SQL_NONE, check_host_row, &f, err);
	s->dialect->rollback(s); /* nothing was written */
	return rc;
}
