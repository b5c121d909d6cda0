#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Machines whose clocks are wrong, on stores with a server, whose clock is right: times that are
stored, or compared with stored ones, are the store's. An SQLite store has the clock of its only
machine, so it has no case here."""
import contextlib
import json
import os
from datetime import datetime, timezone

from clocks import environment
from harness import SOON, Feedwheel, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for
from http_server import http_server, metric

FEEDS = 12
SKEWS = "-25h", "-2h", "+10m", "+10y"
DAY_S = 86400
ELSEWHERE = ("mysql",) # its clock is read as PostgreSQL's is


@contextlib.contextmanager
def wrong(base, engine, conf=""):
    """Feeds on hosts of their own; a Feedwheel with the right clock; one of any other for its store."""
    with server(engine, base) as s, origin(base, samples(base), "--feeds", str(FEEDS),
                                           plans=["* grow=1,start=10,window=40"]) as o:
        def on(offset, n):
            w = Feedwheel(base, "sandbox = off\nworkers = 1\n" + conf, "wrong%d.db" % n, s.url("t%d" % n))
            w.environment.update(environment(offset))
            w.log_file += str(n)
            right = Feedwheel(base, conf, "right%d.db" % n, w.store)
            right.run("import", o.url_file)
            return w, right
        yield o, on


def seconds_from_now(text):
    return (datetime.fromisoformat(text.replace("Z", "+00:00")) - datetime.now(timezone.utc)).total_seconds()


def stopped(p):
    p.terminate()
    equal(p.wait(60), 0, "exit code")


@each_engine("a worker fetches each feed as often whatever its clock shows, and its due times are the store's",
             leave_out=ELSEWHERE)
def once_each(base, engine):
    with wrong(base, engine) as (o, on):
        for n, offset in enumerate(SKEWS):
            w, right = on(offset, n)
            before = o.stats()["requests"]
            p = w.start("run")
            wait_for("a visit of each feed", lambda right=right: right.json("status")["visits"] >= FEEDS, 60)
            let_pass(3, "feeds that are due again would be fetched each second")
            equal(o.stats()["requests"] - before, FEEDS, "requests of a machine at " + offset)
            stopped(p)
            for f in right.json("list"):
                due, seen = seconds_from_now(f["due"]), -seconds_from_now(f["last_visit"])
                holds(600 < due < 2 * DAY_S, "%s: due in %d s" % (offset, due))
                holds(-2 < seen < 120, "%s: visited %d s ago" % (offset, seen))
            equal(w.log().count("this machine's clock is"), 1, "lines about the clock: " + w.log())


def never_too_soon(o):
    """No feed was requested again before its interval was over: 1 s at least (SOON)."""
    last = {}
    for r in o.requests():
        gap_s = (r["start_us"] - last.get(r["feed"], r["start_us"] - 10**9)) / 10**6
        holds(gap_s > 0.9, "%.2f s after the last request for the feed" % gap_s)
        last[r["feed"]] = r["start_us"]


@each_engine("two machines whose clocks are 20 minutes apart share the feeds, none of which is fetched too often",
             leave_out=ELSEWHERE)
def apart(base, engine):
    with wrong(base, engine, SOON + "lease_ms = 3s\n") as (o, on):
        one, right = on("+10m", 0)
        other = Feedwheel(base, "sandbox = off\nworkers = 1\n" + SOON, "other.db", one.store)
        other.environment.update(environment("-10m"))
        other.log_file += "other"
        machines = [w.start("run") for w in (one, other)]
        wait_for("both", lambda: len(right.json("status")["workers"]) == 2)
        before = o.stats()["requests"]
        wait_for("four rounds", lambda: o.stats()["requests"] >= before + 4 * FEEDS, 60)
        for p in machines:
            stopped(p)
        never_too_soon(o)


@each_engine("a clock that is set while a worker runs changes nothing", leave_out=ELSEWHERE)
def set_meanwhile(base, engine):
    file = os.path.join(base, "offset")
    with wrong(base, engine, SOON) as (o, on):
        def sets(offset):
            with open(file + ".new", "w", encoding="ascii") as f:
                f.write(offset)
            os.rename(file + ".new", file)
        sets("+0")
        w, _ = on(file, 0)
        p = w.start("run")
        for offset in "+0", "-2h", "+40d", "-1m", "+0":
            sets(offset)
            before = o.stats()["requests"]
            wait_for("a visit of each feed, and another one", lambda before=before:
                     o.stats()["requests"] >= before + 2 * FEEDS, 60)
        stopped(p)
        never_too_soon(o)


@each_engine("retention of a machine that is 40 days ahead removes nothing that is fresh", leave_out=ELSEWHERE)
def nothing_early(base, engine):
    keep = "".join("%s_retention_ms = %s\n" % k for k in (
        ("events", "30d"), ("entries", "30d"), ("visits", "30d"), ("changes", "7d")))
    with wrong(base, engine, keep) as (_, on):
        w, right = on("+40d", 0)
        right.run_once()
        with http_server(os.path.join(base, "serve"), store=w.store, conf="sandbox = off\n" + keep,
                         environment=environment("+40d")) as d:
            equal(d.push([{"property": "news", "section": 1, "id": i} for i in range(1, 51)])[0], 200)
            have = [len(right.run(c, "--jsonl").stdout.splitlines()) for c in ("events", "entries", "changes")]
            holds(have[0] == 50 and have[1] >= 10 * FEEDS, "rows: %s" % have)
            w.run("set", "--due", "1")
            w.run("run", "--once")
            d.stop()
        left = [len(right.run(c, "--jsonl").stdout.splitlines()) for c in ("events", "entries", "changes")]
        equal(left[0], 50, "events")
        holds(left[1] >= have[1] and left[2] >= have[2], "rows: %s, then %s" % (have, left))


@each_engine("a token ends by the store's clock, and relative times of a command start from it", leave_out=ELSEWHERE)
def tokens(base, engine):
    with wrong(base, engine) as (_, on):
        w, right = on("-2d", 0)
        token = w.run("token", "add", "short", "--scope", "read", "--days", "1").stdout.strip()
        [t] = right.json("token", "list")
        holds(0.9 * DAY_S < seconds_from_now(t["until"]) < 1.1 * DAY_S, t)
        # one that has just ended
        until = datetime.fromtimestamp(datetime.now().timestamp() + 2, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        old = right.run("token", "add", "old", "--scope", "read", "--until", until).stdout.strip()
        wait_for("the end of the token", lambda: seconds_from_now(until) < 0)
        with http_server(os.path.join(base, "serve"), store=w.store, conf="sandbox = off\n",
                         environment=environment("-2d")) as d:
            def status(t):
                return d.request("GET", "/v1/feeds", headers={"Authorization": "Bearer " + t})[0]
            wait_for("the tokens", lambda: status(token) == 200)
            equal(status(old), 401, "a token that has ended")
        right.run_once()
        [a, b] = [x.run("entries", "--since", "1h", "--jsonl").stdout for x in (w, right)]
        equal(a, b, "entries of the last hour")
        w.run("set", "--due", "1")
        [f] = [f for f in right.json("list") if f["id"] == 1]
        holds(abs(seconds_from_now(f["due"])) < 60, f)


@each_engine("status, doctor, a metric and one line of the log show how wrong a machine's clock is",
             leave_out=ELSEWHERE)
def shown(base, engine):
    with wrong(base, engine) as (_, on):
        w, right = on("-2h", 0)
        holds("this machine's clock is 2 h behind the store's" in w.run("status").stdout, w.run("status").stdout)
        equal(round(w.json("status")["clock_ahead_ms"] / 60000), -120)
        holds("clock" not in right.run("status").stdout, right.run("status").stdout)
        checks = json.loads(w.run("doctor", "--json", code=None).stdout)["checks"]
        found = [f for f in checks if f["check"] == "store clock"]
        holds("2 h" in found[0]["found"], found)
        with http_server(os.path.join(base, "serve"), store=w.store, conf="sandbox = off\n",
                         environment=environment("-2h")) as d:
            wait_for("the server's store", lambda: d.request("GET", "/metrics")[0] == 200)
            wait_for("the metric", lambda: abs(metric(d, "clock_ahead_seconds") + 7200) < 5)
            wait_for("the line", lambda: "this machine's clock is 2 h behind the store's" in d.feedwheel.log())


run()
