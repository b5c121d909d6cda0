/* SPDX-License-Identifier: ISC */
/*
 * What other programs write: rows of the inbox wake the workers, and v_feeds takes an UPDATE of
 * some columns, and refuses all else. Each change does what its command does: `feedwheel set`,
 * `pause`, `resume` or `fetch-now`.
 *
 * The functions name the schema of their table, because the search_path is the client's. The one
 * that writes has the rights of the store's owner, so that a role needs only those on the view.
 */
#include "store/postgres/postgres.h"

#define CHANNEL "'feedwheel_' || left(TG_TABLE_SCHEMA, 50)"
#define RESUMED "(NEW.status IS DISTINCT FROM OLD.status AND NEW.status = 'active')"

const char *const postgres_doors[] = {
	"CREATE FUNCTION wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
	" PERFORM pg_notify(" CHANNEL ", ''); RETURN NULL; END $$",
	"CREATE TRIGGER wake_workers AFTER INSERT ON feeds_to_fetch FOR EACH STATEMENT EXECUTE FUNCTION wake_workers()",
	"CREATE TRIGGER wake_workers AFTER INSERT ON control FOR EACH STATEMENT EXECUTE FUNCTION wake_workers()",
	/* clang-format off */
	"CREATE FUNCTION v_feeds_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
	" SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$"
	" DECLARE columns text; due int8; is_now int8; there int8; feed record; BEGIN"
	" IF TG_OP = 'INSERT' THEN RAISE EXCEPTION 'v_feeds takes no INSERT: add a feed by INSERT INTO"
	" feeds_to_fetch (url, folder)' USING ERRCODE = 'feature_not_supported'; END IF;"
	" IF TG_OP = 'DELETE' THEN RAISE EXCEPTION 'v_feeds takes no DELETE: remove a feed with `feedwheel remove`'"
	" USING ERRCODE = 'feature_not_supported'; END IF;"
	" SELECT string_agg('v_feeds.' || o.key, ', ' ORDER BY o.key) INTO columns FROM jsonb_each(to_jsonb(OLD)) o"
	" JOIN jsonb_each(to_jsonb(NEW)) n ON n.key = o.key WHERE n.value IS DISTINCT FROM o.value"
	" AND o.key NOT IN ('title', 'folder', 'interval_ms', 'status', 'due_at');"
	" IF columns IS NOT NULL THEN RAISE EXCEPTION '% cannot be written: an UPDATE may set title, folder,"
	" interval_ms, status and due_at', columns USING ERRCODE = 'feature_not_supported'; END IF;"
	" IF NEW.status IS DISTINCT FROM OLD.status AND coalesce(NEW.status, '') NOT IN ('active', 'paused') THEN"
	" RAISE EXCEPTION 'v_feeds.status: write active or paused' USING ERRCODE = 'invalid_parameter_value'; END IF;"
	" IF NEW.interval_ms < 0 THEN RAISE EXCEPTION 'v_feeds.interval_ms: write milliseconds, or 0 to adapt to the"
	" feed' USING ERRCODE = 'invalid_parameter_value'; END IF;"
	" IF NEW.due_at IS DISTINCT FROM OLD.due_at THEN"
	"  IF coalesce(NEW.due_at, 'now') = 'now' THEN due := 1; ELSE"
	"   BEGIN"
	"    IF NEW.due_at ~ '^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]' THEN"
	"     due := greatest(1, (extract(epoch FROM NEW.due_at::timestamptz) * 1000)::int8); END IF;"
	"   EXCEPTION WHEN data_exception THEN NULL; END;"
	"   IF due IS NULL THEN RAISE EXCEPTION 'v_feeds.due_at: write a time such as 2026-11-28T10:00:00Z, or now'"
	"   USING ERRCODE = 'invalid_parameter_value'; END IF;"
	"  END IF;"
	" END IF;"
	/* a commit locks schedule before feeds; the feed may move to another host meanwhile */
	" LOOP"
	"  EXECUTE format('SELECT position, due_at_ms, last_visit_ms, fail_n FROM %1$I.schedule WHERE position ="
	"  (SELECT position FROM %1$I.feeds WHERE id = $1) FOR UPDATE', TG_TABLE_SCHEMA) INTO feed USING OLD.id;"
	"  EXIT WHEN feed.position IS NOT NULL;"
	"  EXECUTE format('SELECT id FROM %I.feeds WHERE id = $1', TG_TABLE_SCHEMA) INTO there USING OLD.id;"
	"  IF there IS NULL THEN RETURN NULL; END IF;"
	" END LOOP;"
	" EXECUTE format('UPDATE %I.feeds SET user_title = CASE WHEN $2 THEN $3 ELSE user_title END,"
	" folder = CASE WHEN $4 THEN $5 ELSE folder END, interval_ms = CASE WHEN $6 THEN $7 ELSE interval_ms END"
	" WHERE id = $1', TG_TABLE_SCHEMA) USING OLD.id, NEW.title IS DISTINCT FROM OLD.title, NEW.title,"
	" NEW.folder IS DISTINCT FROM OLD.folder, NEW.folder, NEW.interval_ms IS DISTINCT FROM OLD.interval_ms,"
	" coalesce(NEW.interval_ms, 0);"
	" is_now := {now};"
	" IF due IS NULL AND " RESUMED " THEN due := is_now;"
	" ELSIF due IS NULL AND NEW.interval_ms IS DISTINCT FROM OLD.interval_ms AND NEW.interval_ms > 0"
	"  AND feed.fail_n = 0 THEN"
	"  due := least(feed.due_at_ms, greatest(feed.last_visit_ms + NEW.interval_ms, is_now));"
	" END IF;"
	" IF due IS NULL AND NEW.status IS NOT DISTINCT FROM OLD.status THEN RETURN NEW; END IF;"
	" EXECUTE format('UPDATE %I.schedule SET due_at_ms = coalesce($2, due_at_ms), status = CASE WHEN $3 THEN 0"
	" WHEN $4 THEN 1 ELSE status END, crash_n = CASE WHEN $3 THEN 0 ELSE crash_n END WHERE position = $1',"
	" TG_TABLE_SCHEMA) USING feed.position, due, " RESUMED ", NEW.status IS DISTINCT FROM OLD.status;"
	" EXECUTE format('UPDATE %I.shards SET version = version + 1 WHERE shard = $1', TG_TABLE_SCHEMA)"
	" USING feed.position >> 53;"
	" EXECUTE format('UPDATE %I.meta SET value = value + 1 WHERE name = ''changes''', TG_TABLE_SCHEMA);"
	" PERFORM pg_notify(" CHANNEL ", ''); RETURN NEW; END $$",
	/* clang-format on */
	"REVOKE ALL ON FUNCTION v_feeds_write() FROM PUBLIC",
	"CREATE TRIGGER v_feeds_write INSTEAD OF INSERT OR UPDATE OR DELETE ON v_feeds FOR EACH ROW"
	" EXECUTE FUNCTION v_feeds_write()",
	NULL,
};
