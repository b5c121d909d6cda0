#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""feedwheel copy: equal rows, copies that are killed at any moment and continued, updates of a
copy, refusals.

FW_COPY_ROUNDS=200 kills 200 copies (default 12).
"""
import contextlib
import json
import os
import random
import signal
import sqlite3

from http_server import free_port
from harness import SOON, Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for

ROUNDS = int(os.environ.get("FW_COPY_ROUNDS", "12"))
FEEDS = 40
CONF = SOON + "visits_retention_ms = 1h\n"
TABLES = {
    "feeds":
        "id, url, title, home_page_url, description, language, icon, format, hub, topic, extra, rhythm, validator_url,"
        " etag, last_modified, validators_ms, body_hash, redirect_url, redirect_since_ms, redirect_n, error,"
        " user_title, folder, username, password, interval_ms, created_ms",
    "schedule": # without entry_total_n, which each store begins anew
        "position, due_at_ms, host_id, status, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms,"
        " last_new_ms, expect_us, expect_dev_us, expect_parts, last_visit_id, why",
    "entries": "*",
    "entry_keys": "*",
    "visits": "*",
    "incoming": "*",
    "dead_letters": "*",
}
EVENTS, DEAD_LETTERS = 1500, 30
FILLED = [] # the store of filled() and the feeds' URLs, after its first call


def pushed(w):
    """Store events, seven a millisecond, and dead letters."""
    w.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp)"
        " SELECT (90000000000 + i / 7 << 22) + i %% 7 * 1024, 'p' || i, 1, i,"
        " CASE i %% 2 WHEN 0 THEN '' ELSE '2001:db8::1' END, 1794067200000 + i / 7 FROM n" % EVENTS, write=True)
    w.sql(
        "INSERT INTO dead_letters (id, event, reason, at_ms)"
        " SELECT id + 512, '{\"property\":\"it''s\\u0000\"}', 'because', stamp + 5 FROM incoming"
        " LIMIT %d" % DEAD_LETTERS, write=True)


def filled(base):
    """A store after three runs over growing feeds, with keys of deleted entries and with users'
    settings; made once."""
    w = Feedwheel(base, CONF)
    if FILLED:
        with open(w.path, "wb") as f:
            f.write(FILLED[0])
        return w, FILLED[1]
    with origin(base, samples(base), "--feeds", str(FEEDS), "--port", str(free_port()),
                plans=["* grow=1,start=10,window=12"]) as o:
        w.run("import", o.url_file, "--folder", "news")
        w.run_once()
        w.sql("UPDATE entries SET changed_ms = changed_ms - 7200000, seen_ms = seen_ms - 7200000", write=True)
        for age in "0", "1h": # the last run deletes the entries of the first one
            w.run("set", "--due", *o.urls)
            w.run_once("--entries-retention-ms", age)
        w.run("set", "--title", "mine", "--interval", "90m", "#3")
        w.run("pause", "#4")
        urls = list(o.urls)
    pushed(w)
    holds(w.one("SELECT count(*) FROM entry_keys WHERE entry_id = 0") > FEEDS, "keys of deleted entries")
    holds(w.one("SELECT count(*) FROM entries") > FEEDS, "entries")
    w.sql("PRAGMA wal_checkpoint(TRUNCATE)", write=True)
    with open(w.path, "rb") as f:
        FILLED.extend([f.read(), urls])
    return w, urls


def target(base, name="to.db"):
    return Feedwheel(base, CONF, name)


def copy(w, to, *arguments, **options):
    return w.run("copy", *arguments, "sqlite:" + w.path, "sqlite:" + to.path, **options)


def same(w, to):
    for table, columns in TABLES.items():
        order = "ORDER BY 1, 2" if table == "entry_keys" else "ORDER BY 1"
        query = "SELECT %s FROM %s %s" % (columns, table, order)
        equal(to.sql(query), w.sql(query), table)
    holds("broken" not in to.run("doctor").stdout, "doctor finds no error")


@case("a copy has the same rows as its source, and a run on it continues as on the source")
def whole(base):
    w, urls = filled(base)
    to = target(base)
    output = copy(w, to).stdout
    holds("both stores are equal" in output and "1,500 pushed events, 30 dead letters" in output, output)
    same(w, to)
    holds(copy(w, to, code=2).stderr.count("not empty") == 1, "a second copy is refused")
    again = json.loads(copy(w, to, "--continue", "--json").stdout)
    equal([again[x] for x in ("feeds", "entries", "visits", "events", "dead_letters", "differing")], [0] * 6)
    equal(again["feeds_before"], FEEDS)
    same(w, to)
    port = urls[0].split(":")[2].split("/")[0]
    with origin(base, samples(base), "--feeds", str(FEEDS), "--port", port, plans=["* grow=1,start=10,window=12"]):
        to.run("set", "--due", *("#%d" % i for i in range(1, FEEDS + 1)))
        # the new origin serves entries from number 1 again; those deleted in the store have a key
        stats = to.run_once()
        equal((stats["failed"], stats["new_entries"]), (0, 0), "no known entry is stored again")
        holds(stats["feeds"] >= FEEDS - 1, "visits")


def rows(to):
    """The number of feeds, entries and visits in a target so far."""
    try:
        if to.store.startswith("sqlite:"):
            counts = ("(SELECT count(*) FROM %s)" % table for table in ("feeds", "entries", "visits"))
            return to.one("SELECT " + " + ".join(counts))
        s = to.run("status", "--json", code=None)
        return sum(json.loads(s.stdout)[x] for x in ("feeds", "entries", "visits")) if s.returncode == 0 else 0
    except sqlite3.OperationalError: # no file, no tables
        return 0


def killed_midway(w, one, to):
    """Start a copy, let it run in short steps, and kill it as soon as the target has a row. False:
    it ended before."""
    p = w.start("copy", "--batch-bytes", "4k", one, to.store)
    while True:
        let_pass(0.003, "a step of the copy")
        p.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if p.poll() is not None:
            equal(p.returncode, 0, w.last_log())
            return False
        if rows(to):
            p.kill()
            p.wait()
            return True
        p.send_signal(signal.SIGCONT)


def killed_and_continued(w, rng, one, targets, longest_s, most):
    """Copy into the first of these empty targets in which it can be killed midway, then continue
    and kill it at random until it completes, with `most` kills at most. Returns the target and the
    number of kills."""
    to = next(t for t in targets if killed_midway(w, one, t))
    kills = 1
    while True:
        p = w.start("copy", "--batch-bytes", "4k", "--continue", one, to.store)
        if kills < most:
            let_pass(rng.uniform(0.005, longest_s), "a kill at any moment")
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
                kills += 1
        if p.wait() == 0:
            return to, kills
        equal(p.returncode, -signal.SIGKILL, w.last_log())


def targets_named(base, name, n=20):
    return (target(base, "%s%d.db" % (name, i)) for i in range(n))


@case("a copy that is killed repeatedly and continued has the same rows as its source")
def killed(base):
    w, _ = filled(base)
    rng = random.Random(5)
    kills = rounds = 0
    while kills < ROUNDS:
        rounds += 1
        to, n = killed_and_continued(w, rng, w.store, targets_named(base, "to%d-" % rounds), 0.08, ROUNDS - kills)
        kills += n
        same(w, to)
    print("# %d copies, %d of them killed" % (rounds + kills, kills))


@each_engine("copies from SQLite and back to SQLite, killed and continued, have the same rows")
def there_and_back(base, engine):
    w, _ = filled(base)
    rng = random.Random(6)
    with server(engine, base) as s:
        stores = (Feedwheel(base, CONF, "there", store=s.url("there%d" % i)) for i in range(20))
        there, kills = killed_and_continued(w, rng, w.store, stores, 0.15, ROUNDS // 2)
        back, kills_back = killed_and_continued(w, rng, there.store, targets_named(base, "back"), 0.1, ROUNDS // 2)
    same(w, back)
    print("# %d kills from SQLite, %d back" % (kills, kills_back))


@case("workers on an incomplete copy are paused")
def incomplete(base):
    w, _ = filled(base)
    visits = w.one("SELECT count(*) FROM visits") # the last rows that are copied: without all of them it is incomplete
    to = next(t for t in targets_named(base, "to")
              if killed_midway(w, w.store, t) and t.one("SELECT count(*) FROM visits") < visits)
    visits_there = to.one("SELECT count(*) FROM visits")
    holds("paused" in to.run("run", "--once", code=1).stderr, "a run prints that workers are paused")
    equal(to.one("SELECT count(*) FROM visits"), visits_there, "visits")
    copy(w, to, "--continue")
    same(w, to)


@case("two copies, each without the other's hosts, continue as two stores")
def split(base):
    with origin(base, samples(base), "--feeds", str(FEEDS), plans=["* grow=1,start=10,window=40"]) as o:
        w = Feedwheel(base, CONF)
        w.run("import", o.url_file)
        w.run_once()
        parts = [target(base, "part%d.db" % i) for i in range(2)]
        for i, part in enumerate(parts):
            copy(w, part)
            part.run("remove", *(u for k, u in enumerate(o.urls) if k % 2 != i))
            part.run("set", "--due", *(u for k, u in enumerate(o.urls) if k % 2 == i))
            stats = part.run_once()
            equal((stats["feeds"], stats["failed"], stats["new_entries"]),
                  (FEEDS // 2, 0, FEEDS // 2), "one more entry each")
            holds("broken" not in part.run("doctor").stdout, "doctor finds no error")
        both = sorted(sum((p.sql("SELECT feed_id, guid FROM entries") for p in parts), []))
    equal(len(both), 11 * FEEDS, "entries")
    equal(len(set(both)), len(both), "no entry is in both")
    equal([e for e in w.sql("SELECT feed_id, guid FROM entries") if e not in both], [], "lost entries")


@case("copy refuses a source or target that it cannot use, and to continue in a store that is no copy")
def refused(base):
    w, _ = filled(base)
    to = target(base)
    holds("are the same store" in copy(w, w, code=2).stderr, "a copy into itself")
    missing = w.run("copy", "sqlite:" + base + "/none.db", "sqlite:" + to.path, code=3).stderr
    holds("no such file" in missing.lower(), "a missing source")
    holds("scheme" in w.run("copy", "feeds", "sqlite:" + to.path, code=4).stderr, "a source without a scheme")
    used = target_in_use(base)
    holds("not empty" in copy(w, used, code=2).stderr, "a target in use")
    message = copy(w, used, "--continue", code=2).stderr
    holds("written to the target" in message, message)
    other = target(base, "other.db")
    other.run("add", "https://other.example/")
    r = copy(w, other, "--continue", code=None)
    holds(r.returncode != 0, "another store's feeds: " + r.stderr)


def target_in_use(base):
    """A store with the entries of a run."""
    used = Feedwheel(base, CONF, "used.db")
    with origin(os.path.join(base, "o"), samples(base), "--feeds", "2") as o:
        used.run("import", o.url_file)
        used.run_once()
    return used


@contextlib.contextmanager
def live(base):
    """A store that was copied while a run committed to it, and that copy; the run has ended."""
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:100",
                plans=["* grow=1,start=10,window=40"]) as o:
        w = Feedwheel(base, SOON)
        w.run("import", o.url_file)
        p = w.start("run")
        wait_for("a worker", lambda: w.one("SELECT count(*) FROM workers"))
        to = target(base)
        message = copy(w, to, code=None).stderr
        holds("1 worker is running on the source" in message, message)
        p.send_signal(signal.SIGTERM)
        p.wait()
        w.run("set", "--due", *o.urls) # so that the source surely changes after the copy
        w.run_once()
        yield o, w, to


@case("copy warns of workers on the source; the copy has the entries from before its start, each with its feed")
def warned(base):
    with live(base) as (_, w, to):
        orphans = "SELECT count(*) FROM entries WHERE feed_id NOT IN (SELECT id FROM feeds)"
        equal(to.one(orphans), 0, "entries without a feed")
        last = to.one("SELECT max(id) FROM entries")
        equal(to.sql("SELECT id, feed_id, guid FROM entries ORDER BY id"),
              w.sql("SELECT id, feed_id, guid FROM entries WHERE id <= ? ORDER BY id", last), "entries")


@case("a copy made beside workers is equal to the source after copy --continue, and a run on it continues")
def updated(base):
    with live(base) as (o, w, to):
        output = copy(w, to, "--continue").stdout
        holds("both stores are equal" in output and "feeds changed" in output, output)
        same(w, to)
        to.run("set", "--due", *o.urls)
        equal(to.run_once()["failed"], 0, "failures of a run on the copy")
        equal(to.one("SELECT count(*) FROM entries WHERE revision <> 1"), 0, "changed entries")
        equal(to.sql("SELECT guid FROM entries GROUP BY feed_id, guid HAVING count(*) > 1"), [], "double entries")
        holds("written to the target" in copy(w, to, "--continue", code=2).stderr, "the target is no longer a copy")


@case("a copy that is killed repeatedly during its update and continued has the same rows as its source")
def killed_during_update(base):
    rng = random.Random(7)
    with live(base) as (o, w, to):
        kills = renewed = 0
        while kills < ROUNDS // 2:
            w.run("set", "--due", *rng.sample(o.urls, FEEDS // 2)) # their rows change
            p = w.start("copy", "--batch-bytes", "4k", "--continue", w.store, to.store)
            let_pass(rng.uniform(0.005, 0.08), "a kill at any moment")
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
            kills += p.wait() == -signal.SIGKILL
        renewed = json.loads(copy(w, to, "--continue", "--json").stdout)["updated"]
        same(w, to)
    print("# %d kills, then %d feeds were updated" % (kills, renewed))


@case("copy --continue finds each difference between the stores, and repairs those that it can")
def tampered(base):
    w, _ = filled(base)
    to = target(base)
    copy(w, to)
    for change in ("UPDATE entry_keys SET hash = 1 WHERE feed_id = 7",
                   "UPDATE feeds SET user_title = 'x' WHERE id = 9"):
        to.sql(change, write=True)
        equal(json.loads(copy(w, to, "--continue", "--json").stdout)["updated"], 1, change)
        same(w, to)
    to.sql("DELETE FROM incoming WHERE property_id % 3 = 0", write=True)
    to.sql("DELETE FROM dead_letters WHERE id > (SELECT min(id) FROM dead_letters)", write=True)
    again = json.loads(copy(w, to, "--continue", "--json").stdout)
    equal((again["events"], again["dead_letters"], again["differing"]), (EVENTS // 3, DEAD_LETTERS - 1, 0), "copied")
    same(w, to)
    to.sql("INSERT INTO incoming VALUES (1 << 60, 'its own', 1, 1, '', 1)", write=True)
    copy(w, to, "--continue") # an event of the target alone is no difference
    equal(to.one("SELECT count(*) FROM incoming"), EVENTS + 1)
    for change, words in (
        ("UPDATE incoming SET property_section = 2 WHERE property = 'p700'", "different at the target"),
        ("UPDATE dead_letters SET reason = 'x' WHERE id = (SELECT max(id) FROM dead_letters)", "dead letter"),
        ("UPDATE entry_keys SET hash = 1 WHERE feed_id = 7 AND entry_id = 0", "but different ones"),
        ("INSERT INTO entry_keys VALUES (8, randomblob(16), 3, 0)", "feed 8:"),
        ("INSERT INTO row_counts (entry_n, visit_n) VALUES (0, -1)", "visits at the source"),
    ):
        to.sql(change, write=True)
        message = copy(w, to, "--continue", code=1).stderr
        holds("the stores differ" in message and words in message, message)


run()
