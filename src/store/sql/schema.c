/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/sql/schema.h"

#define N " BIGINT NOT NULL"
#define N0 " BIGINT NOT NULL DEFAULT 0"
#define MAGIC "1717990193" /* the value that identifies our database: the number `feedwheel` */

/*
 * Other programs may well have tables with these names. If there is no `meta` with our MAGIC,
 * the tables belong to another program.
 */
static const char *const TABLES[] = {
	"CREATE TABLE meta (name {name} PRIMARY KEY, value" N ") {table}",
	"INSERT INTO meta (name, value) VALUES ('feedwheel', " MAGIC
	"), ('schema', 5), ('lease_id', 0), ('feed_id', 0), ('entry_id', 0), ('indexed_entry_id', 0), ('changes', 0),"
	" ('changes_pruned_id', 0), ('account_id', 0), ('icon_id', 0), ('event_clashes', 0)",
	"CREATE TABLE workers (id {pk}, name {name} NOT NULL, lease_ms" N ", until_ms" N ", idle" N ") {table}",
	"CREATE TABLE shards (shard {pk}, worker BIGINT, version" N ", quiet_since_ms" N ") {table}",
	"INSERT INTO shards (shard, worker, version, quiet_since_ms) WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT "
	"i + 1 FROM c WHERE i < 1023) SELECT i, NULL, 0, 0 FROM c",
	"CREATE TABLE schedule (position {pk}, due_at_ms" N ", host_id" N ", status" N0 ", last_kind" N0
	", http_status" N0 ", fail_n" N0 ", crash_n" N0 ", last_visit_ms" N0 ", last_ok_ms" N0 ", last_new_ms" N0
	", expect_us" N0 ", expect_dev_us" N0 ", expect_parts" N0 ", last_visit_id" N0 ", why {text}, entry_total_n" N0
	") {filled}",
	/* rate limit state that must survive the shard's owner */
	"CREATE TABLE hosts (shard" N ", host_id" N ", next_ok_ms" N ", cooldown_until_ms" N ", learned_delay_ms" N
	", PRIMARY KEY (shard, host_id)) {clustered}",
	"CREATE TABLE feeds (id {pk}, position" N ", url_hash {key16} NOT NULL UNIQUE, url {text} NOT "
	"NULL, host_key {text},"
	" created_ms" N ", interval_ms" N0 ", push_until_ms" N0 ", validators_ms" N0 ", body_hash" N0
	", redirect_since_ms" N0 ", redirect_n" N0 ", format" N0
	", user_title {text}, folder {text}, username {text}, password {text}, title {text}, home_page_url {text}, "
	"description {text}, language {text}, icon {text},"
	" hub {text}, topic {text}, extra {json}, rhythm {text}, validator_url {text}, etag {bytes}, last_modified "
	"{bytes}, redirect_url {text}, error {text}) {table}",
	"CREATE TABLE entry_keys (feed_id" N ", entry_key {key16} NOT NULL, hash" N ", entry_id" N
	", PRIMARY KEY (feed_id, entry_key)) {clustered}",
	"CREATE TABLE entries (id {pk}, feed_id" N ", entry_key {key16} NOT NULL, date_ms" N ", seen_ms" N
	", changed_ms" N ", revision" N ", published_ms BIGINT, updated_ms BIGINT, content_type" N
	", guid {text}, url {text}, title {text}, author {text}, content_base {text}, summary {long},"
	" extra {json}, content {long}) {table}",
	"CREATE INDEX entries_date ON entries (date_ms)",
	"CREATE INDEX entries_feed ON entries (feed_id, date_ms)",
	"CREATE TABLE visits (id {pk}, previous_id" N ", feed_id" N ", run_id" N ", at_ms" N ", kind" N
	", http_status" N ", redirects" N ", slot" N ", lateness_ms" N ", dns_us" N ", connect_us" N ", tls_us" N
	", first_byte_us" N ", total_us" N ", parse_us" N ", wire_bytes" N ", body_bytes" N ", item_n" N ", new_n" N
	", changed_n" N ", queue_us" N ", store_us" N ", error {text}) {table}",
	"CREATE TABLE row_counts (id {id}, entry_n" N ", visit_n" N ") {table}",
	"CREATE TABLE incoming (id {pk}, property {name} NOT NULL, property_section" N ", property_id" N
	", remote_ip {name} NOT NULL, stamp" N ") {table}",
	"CREATE TABLE dead_letters (id {pk}, event {text} NOT NULL, reason {text} NOT NULL, at_ms" N ") {table}",
	"CREATE TABLE records (kind {name} NOT NULL, record_key {namebytes} NOT NULL, value {bytes} NOT NULL, at_ms" N
	", until_ms BIGINT, PRIMARY KEY (kind, record_key)) {clustered}",
	"CREATE INDEX records_until ON records (until_ms)",
};

/* The log of changes: since schema 2. */
static const char *const LOG_TABLES[] = {
	"CREATE TABLE changes (id {pk}, entry_id" N ", feed_id" N ", kind" N ", revision" N ", at_ms" N ") {table}",
	"CREATE TABLE revisions (entry_id" N ", revision" N ", omitted" N ", seen_ms" N ", changed_ms" N
	", published_ms BIGINT, updated_ms BIGINT, content_type" N ", guid {text}, url {text}, title {text},"
	" author {text}, content_base {text}, summary {long}, extra {json}, content {long},"
	" PRIMARY KEY (entry_id, revision)) {table}",
	"CREATE TABLE matches (order_id" N ", dead" N ", change_id" N ", entry_id" N ", feed_id" N ", at_ms" N
	", changed" N ", PRIMARY KEY (order_id, dead, change_id)) {clustered}",
};
/* The last statement makes it schema 2: what was begun before is skipped or rolled back. */
static const char *const LOG_UPGRADE[] = {
	"INSERT INTO meta (name, value) VALUES ('changes_pruned_id', 0)",
	"UPDATE meta SET value = 2 WHERE name = 'schema'",
};

/* Accounts: since schema 3. */
static const char *const ACCOUNT_TABLES[] = {
	"CREATE TABLE accounts (id {pk}, name {name} NOT NULL UNIQUE, password {text} NOT NULL, admin" N
	", created_ms" N ", used_ms" N ", label_id" N ") {table}",
	"CREATE TABLE account_tokens (token_hash {key16} NOT NULL PRIMARY KEY, account_id" N ", kind" N
	", name {name} NOT NULL, created_ms" N ", used_ms" N ", until_ms BIGINT) {table}",
	"CREATE INDEX account_tokens_account ON account_tokens (account_id)",
	"CREATE TABLE subscriptions (account_id" N ", feed_id" N ", mark_id" N ", read_n" N ", added_ms" N
	", title {text}, folder {text}, PRIMARY KEY (account_id, feed_id)) {filled}",
	"CREATE INDEX subscriptions_feed ON subscriptions (feed_id)",
	"CREATE TABLE read_exceptions (account_id" N ", feed_id" N ", entry_id" N
	", PRIMARY KEY (account_id, feed_id, entry_id)) {clustered}",
	"CREATE TABLE labels (account_id" N ", id" N ", name {name} NOT NULL, PRIMARY KEY (account_id, id)) {table}",
	"CREATE TABLE entry_labels (account_id" N ", label_id" N ", entry_id" N ", feed_id" N ", at_ms" N
	", PRIMARY KEY (account_id, label_id, entry_id)) {clustered}",
	"CREATE INDEX entry_labels_entry ON entry_labels (entry_id)",
	"CREATE TABLE icons (id {pk}, url_hash {key16} NOT NULL UNIQUE, tried_ms" N ", failed" N
	", url {text} NOT NULL, media_type {text}, content {bytes}) {table}",
	"CREATE INDEX icons_tried ON icons (tried_ms)",
};
static const char *const ACCOUNT_UPGRADE[] = {
	("ALTER TABLE schedule ADD COLUMN entry_total_n" N0),
	"INSERT INTO meta (name, value) VALUES ('account_id', 0), ('icon_id', 0)",
	"UPDATE meta SET value = 3 WHERE name = 'schema'",
};

/* Ranges of ids for events: since schema 4. */
static const char *const EVENT_ID_TABLES[] = {
	"CREATE TABLE event_ids (number {pk}, high" N ") {table}",
	"INSERT INTO event_ids (number, high) WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < "
	"1023) SELECT i, 0 FROM c",
};
static const char *const EVENT_ID_UPGRADE[] = {
	"INSERT INTO meta (name, value) VALUES ('event_clashes', 0)",
	"UPDATE meta SET value = 4 WHERE name = 'schema'",
};

/* The inbox, and views of workers: since schema 5. */
static const char *const INBOX_TABLES[] = {
	"CREATE TABLE feeds_to_fetch (id {serial}, url {text} NOT NULL, folder {text}, title {text},"
	/* SQLite would take any text for a number */
	" interval_ms BIGINT CHECK (interval_ms + 0 = interval_ms AND interval_ms >= 0)) {table}",
	"CREATE TABLE feeds_to_fetch_refused (id {pk}, url {text} NOT NULL, folder {text}, title {text},"
	" interval_ms BIGINT, reason {text} NOT NULL, at_ms" N ") {table}",
	"CREATE TABLE control (id {serial}, command {name} NOT NULL"
	" CHECK (command IN ('stop', 'pause', 'resume', 'reload')),"
	" worker {name} CHECK ({octets worker} <= 255)) {table}",
	"CREATE VIEW v_workers AS SELECT w.name, w.pid, {iso w.started_ms} AS started_at, {iso w.at_ms} AS"
	" heartbeat_at, w.visits, w.new_entries, w.failures, w.in_flight, w.slots, w.clock_ahead_ms FROM (SELECT"
	" {utf8 r.record_key} AS name, {nth r.value|0} AS pid, {nth r.value|1} AS started_ms, r.at_ms, {nth"
	" r.value|3} AS visits, {nth r.value|4} AS new_entries, {nth r.value|5} AS failures, {nth r.value|6} AS"
	" in_flight, {nth r.value|7} AS slots, coalesce({nth r.value|8}, 0) AS clock_ahead_ms FROM records r"
	" WHERE r.kind = '~worker') w",
	"CREATE VIEW v_owners AS SELECT f.id AS feed_id, {shown f.url} AS url, {shown w.name} AS worker FROM feeds f"
	" JOIN shards h ON h.shard = {shard f.position} LEFT JOIN workers w ON w.id = h.worker",
};
static const char *const INBOX_UPGRADE[] = {
	"UPDATE meta SET value = 5 WHERE name = 'schema'",
};

/*
 * Views for people: names for enums, ISO times, titles for ids. Columns are only ever added.
 */
const char sql_v_feeds[] =
	"CREATE VIEW v_feeds AS SELECT f.id, {shown f.url} AS url, coalesce(nullif(f.user_title, ''), f.title) AS"
	" title, {shown f.folder} AS folder, {status s.status} AS status, {iso s.due_at_ms} AS due_at, {shown"
	" s.why} AS why, {kind s.last_kind} AS last_visit, nullif(s.http_status, 0) AS http_status, {iso"
	" nullif(s.last_visit_ms, 0)} AS last_visit_at, {iso nullif(s.last_ok_ms, 0)} AS last_ok_at, {iso"
	" nullif(s.last_new_ms, 0)} AS last_new_at, {count s.fail_n} AS fail_n, {shown f.error} AS error, {count"
	" f.interval_ms} AS interval_ms, {ms s.expect_us} AS expect_ms, {shown f.home_page_url} AS home_page_url,"
	" {shown f.description} AS description, {shown f.language} AS language, {shown f.icon} AS icon, {shown"
	" f.hub} AS hub, {shown f.redirect_url} AS redirect_url, {iso f.created_ms} AS created_at, {jsonb"
	" f.extra} AS extra FROM feeds f JOIN schedule s ON s.position = f.position";
static const char *const VIEWS[] = {
	sql_v_feeds,
	"CREATE VIEW v_entries AS SELECT e.id, e.feed_id, coalesce(nullif(f.user_title, ''), f.title) AS feed_title, "
	"f.url AS feed_url, f.folder, e.title, e.url, e.author,"
	" {tags e.extra} AS tags, {iso e.date_ms} AS date, {iso e.published_ms} AS published_at, {iso e.updated_ms} AS "
	"updated_at, {iso e.seen_ms} AS seen_at,"
	" {iso e.changed_ms} AS changed_at, e.revision, e.guid, e.summary, e.content, {jsonb e.extra} AS extra"
	" FROM entries e JOIN feeds f ON f.id = e.feed_id",
	"CREATE VIEW v_visits AS SELECT v.id, v.feed_id, v.previous_id, coalesce(nullif(f.user_title, ''), f.title) AS "
	"feed_title, f.url AS feed_url, f.folder, {iso v.at_ms} AS at, {kind v.kind} AS "
	"kind, nullif(v.http_status, 0) AS http_status, v.error,"
	" {ms v.total_us} AS total_ms, {ms v.dns_us} AS dns_ms, {ms v.connect_us} AS connect_ms, {ms v.tls_us} "
	"AS tls_ms, {ms v.first_byte_us} AS first_byte_ms,"
	" v.lateness_ms, v.redirects, v.wire_bytes, v.body_bytes, v.item_n, v.new_n, v.changed_n, v.run_id"
	" FROM visits v JOIN feeds f ON f.id = v.feed_id",
};

int sql_schema_version(struct sql *s, bool ours, int64_t *version, struct fw_err *err)
{
	int rc = ours ? sql_query_int(s,
				"SELECT value FROM meta WHERE name = 'schema' AND EXISTS (SELECT 1 FROM"
				" meta WHERE name = 'feedwheel' AND value = " MAGIC ")",
				SQL_NONE, 0, version, err) :
			0;

	if (!ours)
		*version = 0;
	if (rc || !ours || (*version > 0 && *version <= SQL_SCHEMA))
		return rc;
	if (*version == 0)
		return fw_err_set(err, FW_EINVAL,
			"%s: a database of another program, or of feedwheel before its first release: name another one",
			s->name);
	return fw_err_set(err, FW_EVERSION, "%s: schema %lld is newer than this program (schema %d): upgrade feedwheel",
		s->name, (long long)*version, SQL_SCHEMA);
}

static int schema_scripts_run(struct sql *s, const char *const *text, size_t n, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n && text[i]; i++) {
		char *sql = sql_render(s->dialect, &(struct sql_text){text[i], NULL}, &(struct sql_form){.mark = '?'});

		rc = sql ? s->dialect->script(s, sql, err) : fw_no_memory(err);
		free(sql);
	}
	return rc;
}

int sql_schema_create(struct sql *s, const char *const *search, const char *const *doors, struct fw_err *err)
{
	int rc = schema_scripts_run(s, TABLES, FW_N(TABLES), err);

	rc = rc ? rc : schema_scripts_run(s, LOG_TABLES, FW_N(LOG_TABLES), err);
	rc = rc ? rc : schema_scripts_run(s, ACCOUNT_TABLES, FW_N(ACCOUNT_TABLES), err);
	rc = rc ? rc : schema_scripts_run(s, EVENT_ID_TABLES, FW_N(EVENT_ID_TABLES), err);
	rc = rc ? rc : schema_scripts_run(s, INBOX_TABLES, FW_N(INBOX_TABLES), err);
	rc = rc ? rc : schema_scripts_run(s, VIEWS, FW_N(VIEWS), err);
	rc = rc ? rc : schema_scripts_run(s, doors, SIZE_MAX, err);
	return rc ? rc : schema_scripts_run(s, search, SIZE_MAX, err);
}

static int schema_log_add(struct sql *s, const char *const *search, struct fw_err *err)
{
	int rc = schema_scripts_run(s, LOG_TABLES, FW_N(LOG_TABLES), err);

	if (!rc && search)
		rc = schema_scripts_run(s, search, SIZE_MAX, err);
	return rc ? rc : schema_scripts_run(s, LOG_UPGRADE, FW_N(LOG_UPGRADE), err);
}

static int schema_accounts_add(struct sql *s, struct fw_err *err)
{
	int rc = schema_scripts_run(s, ACCOUNT_TABLES, FW_N(ACCOUNT_TABLES), err);

	return rc ? rc : schema_scripts_run(s, ACCOUNT_UPGRADE, FW_N(ACCOUNT_UPGRADE), err);
}

static int schema_event_ids_add(struct sql *s, struct fw_err *err)
{
	int rc = schema_scripts_run(s, EVENT_ID_TABLES, FW_N(EVENT_ID_TABLES), err);

	return rc ? rc : schema_scripts_run(s, EVENT_ID_UPGRADE, FW_N(EVENT_ID_UPGRADE), err);
}

int sql_schema_upgrade(struct sql *s, const char *const *search, const char *const *doors, struct fw_err *err)
{
	int rc = s->schema < SQL_SCHEMA_LOG ? schema_log_add(s, search, err) : 0;

	rc = rc || s->schema >= SQL_SCHEMA_ACCOUNTS ? rc : schema_accounts_add(s, err);
	rc = rc || s->schema >= SQL_SCHEMA_EVENT_IDS ? rc : schema_event_ids_add(s, err);
	rc = rc ? rc : schema_scripts_run(s, INBOX_TABLES, FW_N(INBOX_TABLES), err);
	rc = rc ? rc : schema_scripts_run(s, doors, SIZE_MAX, err);
	return rc ? rc : schema_scripts_run(s, INBOX_UPGRADE, FW_N(INBOX_UPGRADE), err);
}
