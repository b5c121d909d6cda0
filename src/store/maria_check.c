/* SPDX-License-Identifier: ISC */
/* What `doctor` asks: settings of the server that hurt, and rows that contradict each other. */
#include "store/maria.h"

/* Each visit is some KB there; when it is full, the server stops to write pages out. The two servers name it differently. */
static int log_inspect(struct maria *m, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	int64_t bytes = 0;
	char text[60];
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SHOW GLOBAL VARIABLES WHERE variable_name IN ('innodb_log_file_size', 'innodb_redo_log_capacity')", "");

	while (!rc && mr_row(&r))
		bytes = FW_MAX(bytes, mr_int(&r, 1));
	if (rc)
		return rc;
	(void)fw_snprintf(text, sizeof(text), "redo log of %lld bytes", (long long)bytes);
	if (bytes >= (int64_t)256 << 20)
		cb(ctx, "log", 0, text, "");
	else
		cb(ctx, "log", 1, text, "fine for some ten thousand feeds; for more set innodb_log_file_size (MySQL: innodb_redo_log_capacity) to 512M");
	return 0;
}

int mr_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	char text[200];
	int64_t flush;
	int rc = mr_ask(m, &r, err, "SELECT version(), @@innodb_flush_log_at_trx_commit, @@max_allowed_packet, @@innodb_buffer_pool_size", "");

	if (rc || !mr_row(&r))
		return rc;
	cb(ctx, "server", 0, r.row[0], "");
	flush = mr_int(&r, 1);
	(void)fw_snprintf(text, sizeof(text), "innodb_flush_log_at_trx_commit=%lld", (long long)flush);
	if (flush == 1)
		cb(ctx, "durability", 0, text, "");
	else
		cb(ctx, "durability", 1, text, "a crash of the machine takes the last second; set it to 1 in the server's configuration");
	(void)fw_snprintf(text, sizeof(text), "max_allowed_packet=%lld", (long long)mr_int(&r, 2));
	if (mr_int(&r, 2) >= (int64_t)16 << 20)
		cb(ctx, "packet", 0, text, "");
	else
		cb(ctx, "packet", 1, text, "documents larger than a quarter of it may be refused; set it to 64M in the server's configuration");
	(void)fw_snprintf(text, sizeof(text), "innodb_buffer_pool_size=%lld", (long long)mr_int(&r, 3));
	if (mr_int(&r, 3) >= (int64_t)512 << 20)
		cb(ctx, "memory", 0, text, "");
	else
		cb(ctx, "memory", 1, text, "fine for some ten thousand feeds; for more give it half of the server's memory");
	mr_done(&r);
	return log_inspect(m, cb, ctx, err);
}

/* Each of these lists what should not be; column 0 is a sentence. */
#define IN_LINE "(SELECT feed_id FROM queue UNION ALL SELECT feed_id FROM parked UNION ALL SELECT j.feed_id FROM " MR_OUT ")"
static const char *const checks[] = {
	"SELECT concat('feed ', w.feed_id, ': active, but neither waiting nor lent') FROM wheel w LEFT JOIN " IN_LINE " x"
	" ON x.feed_id = w.feed_id WHERE w.status = 0 AND x.feed_id IS NULL",
	"SELECT concat('feed ', feed_id, ': in line ', count(*), ' times') FROM " IN_LINE " x GROUP BY feed_id HAVING count(*) > 1",
	"SELECT concat('feed ', x.feed_id, ': waiting, but not active') FROM (SELECT feed_id FROM queue UNION ALL"
	" SELECT feed_id FROM parked) x JOIN wheel w ON w.feed_id = x.feed_id WHERE status <> 0",
	"SELECT concat('feed ', f.id, ': not on the wheel') FROM feeds f LEFT JOIN wheel w ON w.feed_id = f.id WHERE w.feed_id IS NULL",
	"SELECT concat('wheel: no feed ', w.feed_id) FROM wheel w LEFT JOIN feeds f ON f.id = w.feed_id WHERE f.id IS NULL",
	"SELECT concat('claim ', id, ': nothing of it is lent') FROM loans WHERE locate('1', lent) = 0",
	"SELECT concat('claim ', id, ': lists ', json_length(body), ' feeds, and ', length(lent), ' of them as lent or not') FROM loans"
	" WHERE json_length(body) <> length(lent)",
	"SELECT concat('feed ', q.feed_id, ': waits for another time than it is due') FROM queue q JOIN wheel w ON w.feed_id = q.feed_id"
	" WHERE coalesce(q.due_at_ms, wake_at_ms) <> w.due_at_ms",
	"SELECT concat('feed ', q.feed_id, ': put off, but not noted') FROM queue q LEFT JOIN moved v ON v.feed_id = q.feed_id"
	" AND v.wake_at_ms = q.wake_at_ms WHERE q.due_at_ms IS NOT NULL AND v.feed_id IS NULL",
	"SELECT concat('feed ', v.feed_id, ': noted as put off, but it is not') FROM moved v LEFT JOIN queue q ON q.feed_id = v.feed_id"
	" AND q.wake_at_ms = v.wake_at_ms AND q.due_at_ms = v.due_at_ms WHERE q.feed_id IS NULL",
	"SELECT concat('entry ', e.id, ': no feed ', e.feed_id) FROM entries e LEFT JOIN feeds f ON f.id = e.feed_id WHERE f.id IS NULL",
	"SELECT concat('feed ', e.feed_id, ': has ', e.n, ' entries and keys of ', coalesce(k.n, 0)) FROM"
	" (SELECT feed_id, count(*) AS n FROM entries GROUP BY feed_id) e LEFT JOIN (SELECT feed_id, count(*) AS n FROM entry_keys"
	" WHERE entry_id > 0 GROUP BY feed_id) k ON k.feed_id = e.feed_id WHERE coalesce(k.n, 0) <> e.n",
	"SELECT concat('meta: counts ', value, ' entries') FROM meta WHERE name = 'entry_n' AND value <> (SELECT count(*) FROM entries)",
	"SELECT concat('meta: counts ', value, ' visits') FROM meta WHERE name = 'visit_n' AND value <> (SELECT count(*) FROM visits)",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' feeds, counts ', h.feed_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM feeds GROUP BY host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.feed_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' lent, counts ', h.busy_n) FROM hosts h LEFT JOIN"
	" (SELECT j.host_id, count(*) AS n FROM " MR_OUT " GROUP BY j.host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.busy_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' parked, counts ', h.parked_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM parked GROUP BY host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.parked_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' turns, counts ', h.turn_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM queue WHERE due_at_ms IS NOT NULL AND host_id > 0 GROUP BY host_id) x ON x.host_id = h.id"
	" WHERE coalesce(x.n, 0) <> h.turn_n",
	"SELECT concat('host ', name, ': feeds wait, and none has its turn') FROM hosts WHERE parked_n > 0 AND busy_n + turn_n = 0",
};

int mr_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct fw_err spare;
	int rc;

	/* one view of it all */
	mr_put(m, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "");
	mr_put(m, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "");
	rc = mr_flush(m, err);
	for (size_t i = 0; i < FW_N(checks) && !rc; i++) {
		struct mr_res r;

		rc = mr_ask(m, &r, err, checks[i], "");
		while (!rc && mr_row(&r)) /* a sentence ends with a NUL, as all that the client library hands out */
			cb(ctx, r.row[0] ? r.row[0] : "");
	}
	mr_put(m, "ROLLBACK", "");
	return rc ? (mr_flush(m, &spare), rc) : mr_flush(m, err);
}
