#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The order of work: what a --once begins first, what it foretells and keeps; the slow ones' share;
limits of hosts, for what is claimed ahead."""
import collections
import json
import os
import sqlite3
import time

from harness import Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for

HOUR = 3600000
TIGHT = "concurrency = 4\nworkers = 1\n"


def learned(feedwheel, urls, *arguments):
    """One run, after which all durations are known and everything is due again."""
    stats = feedwheel.run_once(*arguments)
    holds("forecast_ms" not in stats, "nothing is known, so nothing is forecast: %s" % stats)
    feedwheel.run("set", "--due", *urls)


def expected(w):
    """Milliseconds of each feed, as they are learned."""
    return {f["feed"] - 1: f["expected_ms"] for f in w.json("plan", "--all")["plan"]}


def in_order(o, since):
    return [r["feed"] for r in o.requests()][since:]


@case("run --once begins with what takes longest; each order is what it says; the summary compares with what was "
      "forecast")
def orders(base):
    slow = (5, 11, 17)
    with origin(base, samples(base), "--feeds", "20", "--latency", "fixed:20",
                plans=["%d latency=%d" % (f, 200 + 50 * f) for f in slow]) as o:
        w = Feedwheel(base, TIGHT)
        w.run("import", o.url_file)
        learned(w, o.urls)
        for order, where in (("host-path", lambda at: max(at) <= 3), ("longest", lambda at: max(at) <= 3),
                             ("shortest", lambda at: min(at) >= 14), ("batch-sorted", lambda at: min(at) >= 14)):
            takes = expected(w)
            holds(all(takes[f] >= 200 + 50 * f for f in slow), "learned: %s" % takes)
            longest = sorted(takes, key=takes.get)[-3:] # the slow ones, but on a machine that stood still for a while
            since = len(o.requests())
            stats = w.run_once("--order", order)
            equal((stats["feeds"], stats["failed"], stats["order"], stats["slots"]), (20, 0, order, 4))
            got = in_order(o, since)
            equal(len(got), 20, "requests of %s" % order)
            holds(where([got.index(f) for f in longest]), "%s: %s of %s" % (order, got, takes))
            holds(stats["forecast_known"] == 20 and stats["forecast_ms"] >= 800, "forecast: %s" % stats)
            holds(stats["took_ms"] >= stats["bound_ms"] >= stats["bound_longest_ms"] >= 1000, "measured: %s" % stats)
            kept = json.loads(
                w.one(
                    "SELECT value FROM records WHERE kind = 'run' AND CAST(record_key AS TEXT) = ?", str(
                        stats["run"])))
            equal((kept["slots"], kept["policy"], kept["feeds"], kept["workers"], "batch" in kept,
                  kept["total_us"] // 1000), (4, order, 20, 1, order.startswith("batch"), stats["took_ms"]))
            w.run("set", "--due", *o.urls)
        said = w.run("run", "--once").stdout
        holds("forecast" in said and "lower bound for any order" in said, said)
        equal(w.one("SELECT count(*) FROM visits WHERE queue_us > 0 AND store_us > 0")
              > 0, True, "visits say how long they waited")


@case("a batch order is a barrier: nothing begins before the batch in front of it has ended")
def batches(base):
    with origin(base, samples(base), "--feeds", "12", "--latency", "fixed:30", plans=["%4=1 latency=400"]) as o:
        w = Feedwheel(base, TIGHT)
        w.run("import", o.url_file)
        w.run_once("--order", "batch-unordered", "--order-batch", "3")
        log = o.requests()
        equal(len(log), 12)
        for i in range(3, 12):
            before = log[:i // 3 * 3]
            holds(log[i]["start_us"] >= max(r["end_us"]
                  for r in before) - 1000, "request %d began before its batch" % i)


@each_engine(
    "crowded hosts: the busiest first, never above a host's limits though many are claimed ahead, none forgotten; two "
    "workers",
    also=["sqlite"])
def crowded(base, engine):
    if engine == "sqlite":
        crowd(base, None)
    else:
        with server(engine, base) as s:
            crowd(base, s.url())


def crowd(base, store):
    with origin(base, samples(base), "--feeds", "60", "--latency", "fixed:40") as o:
        # half of all feeds at one host
        urls = [o.url("/feed/%d" % f, "127.1.0.%d" % (1 if f % 2 else 2 + f % 7)) for f in range(60)]
        w = Feedwheel(base, "concurrency = 16\nhost_concurrency = 2\n", store=store)
        w.run("import", "-", stdin="\n".join(urls) + "\n")
        for workers in ("1", "2"):
            since = len(o.requests())
            stats = w.run_once("--workers", workers)
            equal((stats["feeds"], stats["failed"]), (60, 0))
            log = o.requests()[since:]
            equal(max(collections.Counter(r["feed"] for r in log).values()), 1, "each once")
            holds(o.stats()["host_in_flight_max"] <= 2, "in flight at one host")
            if store is None and workers == "1":
                begun = w.sql(
                    "SELECT f.url, min(v.id) FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE slot < 2 GROUP BY "
                    "slot")
                equal(["//127.1.0.1:" in url for url, _ in begun], [True, True], "the host with the most goes first")
                equal((stats["bound_host"], stats["bound_host_feeds"]), ("127.1.0.1", 30))
            w.run("set", "--due", *urls)


@case("a gap is kept between what was claimed ahead") # invariant 6
def gaps(base):
    with origin(base, samples(base), "--feeds", "8", "--hosts", "1") as o:
        w = Feedwheel(base, "host_gap_ms = 150ms\nhost_concurrency = 4\n")
        w.run("import", o.url_file)
        for _ in range(2):
            equal(w.run_once()["failed"], 0)
            w.run("set", "--due", *o.urls)
        equal(len(o.requests()), 16)
        # what is sent later than it is begun moves the next one too
        begun = [r[0] for r in w.sql("SELECT at_ms FROM visits ORDER BY at_ms")]
        gaps = [b - a for a, b in zip(begun, begun[1:])]
        holds(min(gaps) >= 149, "gaps %s" % gaps)
        at = sorted(r["came_us"] // 1000 for r in o.requests()) # a busy machine hands them over now late, now on time
        holds(all(run[-1] - run[0] >= 7 * 150 - 100 for run in (at[:8], at[8:])), "at the server %s" % at)


@case("a host that says 429 is not asked again, and what was claimed of it waits") # POL-07
def cooled(base):
    with origin(base, samples(base), "--feeds", "40", "--hosts", "2", "--latency", "fixed:60",
                plans=["%2=0 after=1,429,retry-after=3600"]) as o:
        w = Feedwheel(base, "host_concurrency = 2\nconcurrency = 32\n")
        w.run("import", o.url_file)
        w.run_once()
        w.run("set", "--due", *o.urls)
        since = len(o.requests())
        stats = w.run_once(timeout=60)
        asked = collections.Counter(r["host"] for r in o.requests()[since:])
        equal(asked["127.1.0.2"], 20, "the healthy host")
        holds(1 <= asked["127.1.0.1"] <= 2, "requests to the tired host: %d" % asked["127.1.0.1"])
        holds(stats["deferred"] > 0 or stats["feeds"] < 40, "the others are left: %s" % stats)
        equal(w.leased(), {}, "leases that stayed behind")
        start = time.monotonic()
        equal((w.run_once()["feeds"], len(o.requests()) - since), (0, sum(asked.values())))
        print("# a run with nothing but that host's feeds left: %.1f s" % (time.monotonic() - start))


@case("slow feeds hold their share of the slots and no more; the others pass them")
def slow_percent_max(base):
    with origin(base, samples(base), "--feeds", "30", "--latency", "fixed:20", plans=["0-9 latency=1500"]) as o:
        w = Feedwheel(base, "concurrency = 4\nworkers = 1\nslow_ms = 500ms\nslow_percent_max = 50\n")
        w.run("import", o.url_file)
        learned(w, o.urls, "--concurrency", "20")
        since = len(o.requests())
        p = w.start("run", "--quiet")
        wait_for("each has its turn", lambda: len({r["feed"] for r in o.requests()[since:]}) == 30, 60)
        p.terminate()
        equal(p.wait(timeout=60), 0)
        slow = [r for r in o.requests()[since:] if r["feed"] < 10]
        at_once = max(sum(1 for r in slow if r["start_us"] <= s["start_us"] < r["end_us"]) for s in slow)
        holds(at_once <= 2, "%d slow ones at once on 4 slots" % at_once)


@case("a feed of which nothing is known is slow when its host is")
def slow_hosts(base):
    with origin(base, samples(base), "--feeds", "18", "--latency", "fixed:900") as o:
        urls = [o.url("/feed/%d" % f, "127.1.0.%d" % (1 + f % 6)) for f in range(18)]
        w = Feedwheel(base, "concurrency = 8\nworkers = 1\nslow_ms = 500ms\nslow_percent_max = 25\n")
        w.run("import", "-", stdin="\n".join(urls[:12]) + "\n")
        equal(w.run_once("--concurrency", "20")["failed"], 0)
        w.run("import", "-", stdin="\n".join(urls[12:]) + "\n")
        p = w.start("run")
        try:
            wait_for("all are visited", lambda: len(o.requests()) >= 18)
        finally:
            p.terminate()
            equal(p.wait(timeout=60), 0)
        fresh = o.requests()[12:]
        equal(sorted(r["feed"] for r in fresh), list(range(12, 18)))
        at_once = max(sum(1 for r in fresh if r["start_us"] <= s["start_us"] < r["end_us"]) for s in fresh)
        holds(at_once <= 2, "%d at once at slow hosts on 8 slots" % at_once)


def long_away(base, o, urls, quick):
    """A store in which all of these are late: the quick ones, asked each quarter, by hours, the
    others, asked once a day, by days."""
    w = Feedwheel(os.path.join(base, "source"), TIGHT)
    w.run("import", "-", stdin="\n".join(urls) + "\n")
    equal(w.run_once("--concurrency", "20", "--host-concurrency", "1")["failed"], 0)
    now = int(time.time() * 1000)
    db = sqlite3.connect(w.path)
    for url in urls:
        (place,) = db.execute("SELECT position FROM feeds WHERE url = ?", (url,)).fetchone()
        last, interval = (now - 3 * HOUR, HOUR // 4) if url in quick else (now - 72 * HOUR, 24 * HOUR)
        equal(
            db.execute(
                "UPDATE schedule SET last_visit_ms = ?, due_at_ms = ? WHERE position = ?",
                (last, last + interval, place)).rowcount, 1)
    db.commit()
    db.close()
    return w


@each_engine(
    "after downtime: what is late by most of its intervals first, new feeds between, all in the end, no host above "
    "its limit",
    also=["sqlite"])
def backlog(base, engine):
    if engine == "sqlite":
        worked_off(base, None, 1)
    else:
        with server(engine, base) as s:
            worked_off(base, s.url(), 1)


@case("two workers share a backlog: each feed once, all in the end, no host above its limit")
def backlog_shared(base):
    worked_off(base, None, 2)


def worked_off(base, store, workers):
    with origin(base, samples(base), "--feeds", "90", "--latency", "fixed:20") as o:
        # every third at one host; the last ten are new
        urls = [o.url("/feed/%d" % f, "127.1.%d.1" % (0 if f % 3 == 0 else f)) for f in range(90)]
        old, new, quick = urls[:80], urls[80:], {urls[f] for f in range(0, 80, 4)}
        os.mkdir(os.path.join(base, "source"))
        source = long_away(base, o, old, quick)
        w = Feedwheel(base, "concurrency = 3\nworkers = %d\nhost_concurrency = 1\nbacklog_ms = 10m\n" %
                      workers, store=store)
        w.run("copy", "sqlite:" + source.path, w.store)
        holds("late by 11 of its intervals" in w.run("why", urls[4]).stdout, "why tells its turn")
        equal(int(w.json("why", urls[1])["late_intervals"]), 2)
        w.run("import", "-", stdin="\n".join(new) + "\n")
        since = len(o.requests())
        p = w.start("run")
        try:
            wait_for("all were asked for", lambda: len(o.requests()) - since >= 90, 60)
            let_pass(0.3, "what the worker would send beyond these")
        finally:
            p.terminate()
            equal(p.wait(timeout=60), 0)
        got = [r["feed"] for r in o.requests()[since:]]
        equal(sorted(got), list(range(90)), "each once")
        crowd = [r for r in o.requests()[since:] if r["host"] == "127.1.0.1"]
        holds(all(a["end_us"] <= b["start_us"] for a, b in zip(crowd, crowd[1:])), "one at a time at one host")
        place = {f: at for at, f in enumerate(got)}
        if workers > 1: # each begins with his own part, and when he does: the order is that of each, not of both
            return
        # at the crowded host one goes after the other, whatever it is worth
        firsts = sorted(place[f] for f in range(80, 90) if f % 3)
        quick = sorted(place[f] for f in range(0, 80, 4) if f % 3)
        slow = sorted(place[f] for f in range(80) if f % 4 and f % 3)
        holds(firsts[-1] < 30 and firsts[2] < 14, "new ones have every second place: %s" % firsts)
        holds(quick[-1] < slow[4], "the quick ones at %s, the others at %s" % (quick, slow))


@case("silence for once does not hold up the end of a long run: given up, not charged, asked with full patience next "
      "time")
def patience(base):
    with origin(base, samples(base), "--feeds", "30", "--latency", "fixed:100",
                plans=["3 after=2,first=3,hang=start"]) as o:
        w = Feedwheel(base, "concurrency = 2\nworkers = 1\nstraggler_timeout_ms = 200ms\n")
        w.run("import", o.url_file)
        for _ in range(2):
            equal(w.run_once()["failed"], 0)
            w.run("set", "--due", *o.urls)
        stats = w.run_once("--order", "fifo", "--first-byte-timeout-ms", "30s", "--total-timeout-ms", "40s")
        equal(stats["feeds"], 30)
        # more than one, if the origin stands still just then
        said = dict(w.sql("SELECT url, error FROM feeds WHERE error <> ''"))
        holds(o.urls[3] in said and len(said) == stats["failed"] and all(
            "straggler_timeout_ms" in e for e in said.values()), "%s: %s" % (stats, said))
        equal(w.json("list", "--failing"), [], "nobody is charged")
        equal(w.one("SELECT max(total_us) < 30000000 FROM visits"), 1, "it did not get its whole time")


run()
