#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The fetch plan: the order of a --once, its forecast and its record; the share of slow feeds; the
limits of hosts for claims in flight."""
import collections
import json
import os
import sqlite3
import time

from harness import Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for

HOUR = 3600000
TIGHT = "concurrency = 4\nworkers = 1\n"


def learned(feedwheel, urls, *arguments):
    """Run once: then all durations are known. All feeds are due again."""
    stats = feedwheel.run_once(*arguments)
    holds("forecast_ms" not in stats, "without timings there is no forecast: %s" % stats)
    feedwheel.run("set", "--due", *urls)


def expected(w):
    """The learned duration of each feed, in ms."""
    return {f["feed"] - 1: f["expected_ms"] for f in w.json("plan", "--all")["plan"]}


def in_order(o, since):
    return [r["feed"] for r in o.requests()][since:]


@case("run --once starts the longest first; each order is kept; the summary compares the run with its forecast")
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
            longest = sorted(takes, key=takes.get)[-3:] # the slow feeds, unless the machine paused
            since = len(o.requests())
            stats = w.run_once("--order", order)
            equal((stats["feeds"], stats["failed"], stats["order"], stats["slots"]), (20, 0, order, 4))
            got = in_order(o, since)
            equal(len(got), 20, "requests of %s" % order)
            holds(where([got.index(f) for f in longest]), "%s: %s of %s" % (order, got, takes))
            holds(stats["forecast_known"] == 20 and stats["forecast_ms"] >= 800, "forecast: %s" % stats)
            holds(stats["took_ms"] >= stats["bound_ms"] >= stats["bound_longest_ms"] >= 1000, "measured: %s" % stats)
            query = "SELECT value FROM records WHERE kind = 'run' AND CAST(record_key AS TEXT) = ?"
            kept = json.loads(w.one(query, str(stats["run"])))
            equal((kept["slots"], kept["policy"], kept["feeds"], kept["workers"]), (4, order, 20, 1))
            equal(("batch" in kept, kept["total_us"] // 1000), (order.startswith("batch"), stats["took_ms"]))
            w.run("set", "--due", *o.urls)
        output = w.run("run", "--once").stdout
        holds("forecast" in output and "lower bound for any order" in output, output)
        holds(w.one("SELECT count(*) FROM visits WHERE queue_us > 0 AND store_us > 0") > 0, "visits have waiting times")


@case("a batch order is a barrier: no fetch starts before the batch in front of it has ended")
def batches(base):
    with origin(base, samples(base), "--feeds", "12", "--latency", "fixed:30", plans=["%4=1 latency=400"]) as o:
        w = Feedwheel(base, TIGHT)
        w.run("import", o.url_file)
        w.run_once("--order", "batch-unordered", "--order-batch", "3")
        log = o.requests()
        equal(len(log), 12)
        for i in range(3, 12):
            before = log[:i // 3 * 3]
            holds(
                log[i]["start_us"] >= max(r["end_us"] for r in before) - 1000,
                "request %d started before its batch" % i)


@each_engine(
    "run --once starts with the host of most feeds; limits per host hold with one and two workers; no feed is "
    "left", also=["sqlite"])
def crowded(base, engine):
    if engine == "sqlite":
        crowded_hosts(base, None)
    else:
        with server(engine, base) as s:
            crowded_hosts(base, s.url())


def crowded_hosts(base, store):
    with origin(base, samples(base), "--feeds", "60", "--latency", "fixed:40") as o:
        # half of the feeds are at one host
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
                first = w.sql(
                    "SELECT f.url, min(v.id) FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE slot < 2"
                    " GROUP BY slot")
                equal(["//127.1.0.1:" in url for url, _ in first], [True, True], "the host of most feeds is first")
                equal((stats["bound_host"], stats["bound_host_feeds"]), ("127.1.0.1", 30))
            w.run("set", "--due", *urls)


@case("the gap of a host is kept between claims in flight") # invariant 6
def gaps(base):
    with origin(base, samples(base), "--feeds", "8", "--hosts", "1") as o:
        w = Feedwheel(base, "host_gap_ms = 150ms\nhost_concurrency = 4\n")
        w.run("import", o.url_file)
        for _ in range(2):
            equal(w.run_once()["failed"], 0)
            w.run("set", "--due", *o.urls)
        equal(len(o.requests()), 16)
        started = [r[0] for r in w.sql("SELECT at_ms FROM visits ORDER BY at_ms")]
        gaps = [b - a for a, b in zip(started, started[1:])]
        holds(min(gaps) >= 149, "gaps %s" % gaps)
        at = sorted(r["came_us"] // 1000 for r in o.requests()) # a busy machine delays some of them
        holds(all(run[-1] - run[0] >= 7 * 150 - 100 for run in (at[:8], at[8:])), "at the server %s" % at)


@case("a host that returns 429 gets no further request, and its claims are deferred") # POL-07
def cooldown(base):
    with origin(base, samples(base), "--feeds", "40", "--hosts", "2", "--latency", "fixed:60",
                plans=["%2=0 after=1,429,retry-after=3600"]) as o:
        w = Feedwheel(base, "host_concurrency = 2\nconcurrency = 32\n")
        w.run("import", o.url_file)
        w.run_once()
        w.run("set", "--due", *o.urls)
        since = len(o.requests())
        stats = w.run_once(timeout=60)
        requests = collections.Counter(r["host"] for r in o.requests()[since:])
        equal(requests["127.1.0.2"], 20, "the healthy host")
        holds(1 <= requests["127.1.0.1"] <= 2, "requests to the throttled host: %d" % requests["127.1.0.1"])
        holds(stats["deferred"] > 0 or stats["feeds"] < 40, "the other feeds are deferred: %s" % stats)
        equal(w.leased(), {}, "leases")
        start = time.monotonic()
        equal((w.run_once()["feeds"], len(o.requests()) - since), (0, sum(requests.values())))
        print("# a run with feeds of that host only: %.1f s" % (time.monotonic() - start))


@case("slow feeds use their share of the slots at most; the others pass them")
def slow_percent_max(base):
    with origin(base, samples(base), "--feeds", "30", "--latency", "fixed:20", plans=["0-9 latency=1500"]) as o:
        w = Feedwheel(base, "concurrency = 4\nworkers = 1\nslow_ms = 500ms\nslow_percent_max = 50\n")
        w.run("import", o.url_file)
        learned(w, o.urls, "--concurrency", "20")
        since = len(o.requests())
        p = w.start("run", "--quiet")
        wait_for("a request for each feed", lambda: len({r["feed"] for r in o.requests()[since:]}) == 30, 60)
        p.terminate()
        equal(p.wait(timeout=60), 0)
        slow = [r for r in o.requests()[since:] if r["feed"] < 10]
        at_once = max(sum(1 for r in slow if r["start_us"] <= s["start_us"] < r["end_us"]) for s in slow)
        holds(at_once <= 2, "%d slow feeds at once on 4 slots" % at_once)


@case("a feed without timings is slow if its host is")
def slow_hosts(base):
    with origin(base, samples(base), "--feeds", "18", "--latency", "fixed:900") as o:
        urls = [o.url("/feed/%d" % f, "127.1.0.%d" % (1 + f % 6)) for f in range(18)]
        w = Feedwheel(base, "concurrency = 8\nworkers = 1\nslow_ms = 500ms\nslow_percent_max = 25\n")
        w.run("import", "-", stdin="\n".join(urls[:12]) + "\n")
        equal(w.run_once("--concurrency", "20")["failed"], 0)
        w.run("import", "-", stdin="\n".join(urls[12:]) + "\n")
        p = w.start("run")
        try:
            wait_for("a request for each feed", lambda: len(o.requests()) >= 18)
        finally:
            p.terminate()
            equal(p.wait(timeout=60), 0)
        fresh = o.requests()[12:]
        equal(sorted(r["feed"] for r in fresh), list(range(12, 18)))
        at_once = max(sum(1 for r in fresh if r["start_us"] <= s["start_us"] < r["end_us"]) for s in fresh)
        holds(at_once <= 2, "%d at once at slow hosts on 8 slots" % at_once)


def late_feeds(base, o, urls, quick):
    """A store in which all feeds are late: the quick ones, polled every 15 minutes, by 3 hours, the
    others, polled once a day, by 3 days."""
    w = Feedwheel(os.path.join(base, "source"), TIGHT)
    w.run("import", "-", stdin="\n".join(urls) + "\n")
    equal(w.run_once("--concurrency", "20", "--host-concurrency", "1")["failed"], 0)
    now = int(time.time() * 1000)
    db = sqlite3.connect(w.path)
    for url in urls:
        (place,) = db.execute("SELECT position FROM feeds WHERE url = ?", (url,)).fetchone()
        last, interval = (now - 3 * HOUR, HOUR // 4) if url in quick else (now - 72 * HOUR, 24 * HOUR)
        changed = db.execute("UPDATE schedule SET last_visit_ms = ?, due_at_ms = ? WHERE position = ?",
                             (last, last + interval, place))
        equal(changed.rowcount, 1)
    db.commit()
    db.close()
    return w


@each_engine(
    "after downtime the feeds late by most of their intervals go first, new ones between them; host limits hold",
    also=["sqlite"])
def backlog(base, engine):
    if engine == "sqlite":
        check_backlog(base, None, 1)
    else:
        with server(engine, base) as s:
            check_backlog(base, s.url(), 1)


@case("two workers share a backlog: each feed once, all in the end, host limits hold")
def backlog_shared(base):
    check_backlog(base, None, 2)


def check_backlog(base, store, workers):
    with origin(base, samples(base), "--feeds", "90", "--latency", "fixed:20") as o:
        # every third feed is at one host; the last ten are new
        urls = [o.url("/feed/%d" % f, "127.1.%d.1" % (0 if f % 3 == 0 else f)) for f in range(90)]
        old, new, quick = urls[:80], urls[80:], {urls[f] for f in range(0, 80, 4)}
        os.mkdir(os.path.join(base, "source"))
        source = late_feeds(base, o, old, quick)
        conf = "concurrency = 3\nworkers = %d\nhost_concurrency = 1\nbacklog_ms = 10m\n" % workers
        w = Feedwheel(base, conf, store=store)
        w.run("copy", "sqlite:" + source.path, w.store)
        holds("late by 11 of its intervals" in w.run("why", urls[4]).stdout, "why reports how late it is")
        equal(int(w.json("why", urls[1])["late_intervals"]), 2)
        w.run("import", "-", stdin="\n".join(new) + "\n")
        since = len(o.requests())
        p = w.start("run")
        try:
            wait_for("a request for each feed", lambda: len(o.requests()) - since >= 90, 60)
            let_pass(0.3, "a worker could send more requests")
        finally:
            p.terminate()
            equal(p.wait(timeout=60), 0)
        got = [r["feed"] for r in o.requests()[since:]]
        equal(sorted(got), list(range(90)), "each once")
        shared = [r for r in o.requests()[since:] if r["host"] == "127.1.0.1"]
        holds(all(a["end_us"] <= b["start_us"] for a, b in zip(shared, shared[1:])), "one at a time at one host")
        place = {f: at for at, f in enumerate(got)}
        if workers > 1: # each worker has an order of its own
            return
        # feeds of the crowded host are left out: they wait for each other
        firsts = sorted(place[f] for f in range(80, 90) if f % 3)
        quick = sorted(place[f] for f in range(0, 80, 4) if f % 3)
        slow = sorted(place[f] for f in range(80) if f % 4 and f % 3)
        holds(firsts[-1] < 30 and firsts[2] < 14, "new feeds have every second place: %s" % firsts)
        holds(quick[-1] < slow[4], "quick feeds at %s, the others at %s" % (quick, slow))


@case("a feed that is silent once is abandoned at the end of a long run: no failure, full timeouts next time")
def straggler(base):
    with origin(base, samples(base), "--feeds", "30", "--latency", "fixed:100",
                plans=["3 after=2,first=3,hang=start"]) as o:
        w = Feedwheel(base, "concurrency = 2\nworkers = 1\nstraggler_timeout_ms = 200ms\n")
        w.run("import", o.url_file)
        for _ in range(2):
            equal(w.run_once()["failed"], 0)
            w.run("set", "--due", *o.urls)
        stats = w.run_once("--order", "fifo", "--first-byte-timeout-ms", "30s", "--total-timeout-ms", "40s")
        equal(stats["feeds"], 30)
        # more than one feed, if the origin pauses at this moment
        errors = dict(w.sql("SELECT url, error FROM feeds WHERE error <> ''"))
        holds(o.urls[3] in errors and len(errors) == stats["failed"], "%s: %s" % (stats, errors))
        holds(all("straggler_timeout_ms" in e for e in errors.values()), errors)
        equal(w.json("list", "--failing"), [], "failing feeds")
        equal(w.one("SELECT max(total_us) < 30000000 FROM visits"), 1, "it is abandoned before its timeout")


run()
