#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Several machines on one store: each worker handles messages before all other work."""
import contextlib
import os
import re
import signal
import time
from datetime import datetime

from http_server import kill_group
from growing import SHORT_LEASE, at_rest
from harness import (
    SOON, Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, sanitized, server, wait_for)

# A worker handles a message within a second. A busy machine may take longer; without messages a
# worker would take much longer than this.
WITHIN_S = 15.0
CONF = "interval_min_ms = 1h\ninterval_ms = 1h\nworkers = 2\nfirst_byte_timeout_ms = 30s\ntotal_timeout_ms = 1m\n"


@contextlib.contextmanager
def feedwheel(base, engine, conf):
    """A feedwheel on a store of this engine."""
    with contextlib.ExitStack() as stack:
        url = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        yield Feedwheel(base, conf, store=url)


@contextlib.contextmanager
def machines(w, n, *arguments):
    """n `run`s on one store, as if on n machines; stopped at the end."""
    masters = [w.start("run", *arguments) for _ in range(n)]
    try:
        wait_for("all workers", lambda: len(w.json("status")["workers"]) == 2 * n)
        yield masters
    finally:
        for master in masters:
            if master.poll() is None:
                master.send_signal(signal.SIGTERM)
        for master in masters:
            master.wait(timeout=60)


def requests_to(o, url):
    """The number of requests to a feed so far, those in flight included."""
    return o.stats(hosts=True)["hosts"].get(url.split("/")[2].split(":")[0], {"requests": 0})["requests"]


def requests_to_all(o):
    return sum(h["requests"] for h in o.stats(hosts=True)["hosts"].values())


def prompt(took):
    """The median is below the limit: a single request may coincide with a stall of the machine."""
    print("# seconds: " + ", ".join("%.2f" % t for t in took))
    holds(sorted(took)[len(took) // 2] < WITHIN_S, "took %s" % took)


def fetched_now(w, urls):
    """Request each feed and wait for its visit, which comes promptly. Returns the outputs."""
    took, outputs = [], []
    for url in urls:
        start = time.monotonic()
        outputs.append(w.run("fetch-now", "--again", "--wait", url).stdout)
        took.append(time.monotonic() - start)
    prompt(took)
    return outputs


@each_engine("fetch-now: an idle worker fetches the feed once, within a second, and --wait prints the result",
             also=["sqlite"])
def idle(base, engine):
    with origin(base, samples(base), "--feeds", "20", plans=["* grow=1,start=10,window=40", "7 404"]) as o, \
            feedwheel(base, engine, CONF) as w:
        w.run("import", o.url_file)
        w.run_once()
        with machines(w, 2):
            let_pass(1.2, "the workers become idle")
            outputs = fetched_now(w, o.urls[:5])
            for url, output in zip(o.urls, outputs):
                holds(output.startswith("ok  " + url) and "1 new entry" in output and output.count("\n") == 1, outputs)
            failed = w.run("fetch-now", "--again", "--wait", o.urls[7], code=1).stdout
            holds("404" in failed, "a failure is printed, exit 1")
            w.run("fetch-now", "--again", *o.urls[10:15])
            wait_for("five more requests", lambda: all(requests_to(o, u) == 2 for u in o.urls[10:15]))
        equal([requests_to(o, u) for u in o.urls], [2] * 5 + [1, 1, 2, 1, 1] + [2] * 5 + [1] * 5, "requests")


@each_engine("an idle run prints when the next feed is due, again after a visit; with an empty store it prints "
             "'nothing to fetch'", also=["sqlite"])
def idle_line(base, engine):
    with origin(base, samples(base), "--feeds", "2", plans=["* grow=1,start=10,window=40"]) as o, \
            feedwheel(base, engine, CONF + "interval_max_ms = 1h\n") as w:
        p = w.start("run", "--progress")

        def last():
            lines = re.findall(r"^feedwheel: [0-9,]+ feeds .*", w.log(), re.M)
            return lines[-1] if lines else ""

        def minutes():
            """Until the next feed is due, by the line and by the store."""
            line = re.search(r"  next in (?:(\d+) h)? ?(?:(\d+) min)?", last())
            due = min(datetime.fromisoformat(f["due"]).timestamp() for f in w.json("list"))
            return int(line[1] or 0) * 60 + int(line[2] or 0) if line else None, (due - time.time()) / 60

        def agree():
            line, due = minutes()
            return line is not None and abs(line - due) < 2
        wait_for("the line 'nothing to fetch'", lambda: last().endswith("  nothing to fetch"), 60)
        w.run("add", *o.urls[:2])
        wait_for("visits of both feeds", lambda: last().startswith("feedwheel: 2 feeds"), 60)
        wait_for("the next due time in the line", agree, 60)
        holds(minutes()[1] > 30, "about an hour")
        w.run("set", "2", "--interval", "20m")
        wait_for("the line after a changed interval", lambda: agree() and minutes()[1] < 25, 60)
        holds("in flight" not in last(), last())
        p.terminate()
        equal(p.wait(timeout=60), 0)
        second = w.start("run")
        wait_for("the line at the start", lambda: re.search(
            r"nothing is due; the next feed is due in (1\d|20) min", w.log()), 60)
        second.terminate()
        second.wait(timeout=60)


@each_engine("fetch-now: one of the busy workers fetches the feed at once, before the due feeds", also=["sqlite"])
def busy(base, engine):
    with origin(base, samples(base), "--feeds", "600", plans=["* latency=3000", "0-4 latency=0"]) as o, \
            feedwheel(base, engine, CONF + "concurrency = 8\n") as w:
        w.run("add", *o.urls[:5])
        w.run_once() # not due for an hour
        w.run("import", o.url_file)
        with machines(w, 2):
            wait_for("all transfers to be in flight", lambda: o.stats()["in_flight"] == 32)
            fetched_now(w, o.urls[:5])
            holds(w.json("status")["due"] > 50, "feeds are still due")
            w.run("stop", "--all")
        equal([requests_to(o, u) for u in o.urls[:5]], [2] * 5, "requests")


@case("sqlite: fetch-now: a feed that waits for a busy worker is fetched at once, and once")
def queued(base):
    # no transfer ends before 10 s
    with origin(base, samples(base), "--feeds", "100", plans=["* latency=10000"]) as o:
        w = Feedwheel(base, CONF + "concurrency = 4\nlog_level = debug\ndrain_timeout_ms = 100ms\n")
        w.run("import", o.url_file)
        with machines(w, 1):
            wait_for("all transfers to be in flight", lambda: o.stats()["in_flight"] == 8)
            by_due_time = [u for (u,) in w.sql(
                "SELECT url FROM feeds JOIN schedule USING (position) ORDER BY due_at_ms, id")]
            in_flight = [u for u in by_due_time if requests_to(o, u)]
            waiting = [u for u in by_due_time if not requests_to(o, u)]
            now = waiting[0], waiting[-1] # the first is claimed, the last is not
            for u in now:
                w.run("fetch-now", "--again", u)
                wait_for("the request", lambda u=u: requests_to(o, u))
            w.run("fetch-now", "--again", in_flight[0])
            let_pass(1, "a feed in flight is not requested a second time")
            equal(requests_to(o, in_flight[0]), 1)
            w.run("stop", "--all")
        equal([requests_to(o, u) for u in now], [1, 1], "requests")
        times = {o.urls[r["feed"]]: (r["start_us"], r["end_us"]) for r in o.requests()}
        holds(max(times[u][0] for u in now) < min(times[u][1] for u in in_flight), "requested while all were in flight")
        equal(w.leased(), {}, "leases")


@each_engine("fetch-now: without a worker, or for a paused feed, it prints why nothing is fetched", also=["sqlite"])
def nothing_fetched(base, engine):
    with origin(base, samples(base), "--feeds", "2") as o, \
            feedwheel(base, engine, CONF) as w:
        w.run("import", o.url_file)
        holds("no worker is running" in w.run("fetch-now", "--again", o.urls[0]).stderr, "no worker")
        w.run("fetch-now", "--again", "--wait", o.urls[0], code=1)
        holds("before all others" in w.run("why", o.urls[0]).stdout, "why prints it")
        w.run("pause", o.urls[1])
        holds("'feedwheel resume'" in w.run("fetch-now", "--again", o.urls[1], code=1).stderr, "the feed is paused")
        w.run("pause", "--all")
        holds("all workers are paused" in w.run("fetch-now", "--again", o.urls[0]).stderr, "all workers are paused")
        holds("paused" in w.run("run", "--once", code=1).stderr, "run --once prints it")
        w.run("resume", "--all")
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"]), (1, 0), "the next run fetches it")
        if engine == "sqlite":
            equal(w.one("SELECT lateness_ms FROM visits"), 0, "lateness does not count from 1970")


@each_engine("pause --all, resume --all and stop --all reach every machine, those that start later too; feeds keep "
             "their states", also=["sqlite"])
def everywhere(base, engine):
    with origin(base, samples(base), "--feeds", "300", "--latency", "fixed:100") as o, \
            feedwheel(base, engine, SOON + "workers = 2\nconcurrency = 8\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2) as first:
            wait_for("requests", lambda: requests_to_all(o) > 100)
            output = w.run("pause", "--all").stdout
            holds("sent to 4 workers" in output, output)
            wait_for("all to pause", lambda: w.log().count(": paused") == 4)
            wait_for("the claimed feeds", lambda: at_rest(lambda: requests_to_all(o)))
            before = requests_to_all(o)
            with another_machine(w, first):
                let_pass(1.5, "no request may come during the pause")
                equal(requests_to_all(o), before, "requests during the pause")
                holds(w.json("status")["all_paused"] and "resume --all" in w.run("status").stdout, "status shows it")
                equal(w.json("status")["paused"], 0, "paused feeds")
                w.run("resume", "--all")
                wait_for("requests after the pause", lambda: requests_to_all(o) > before + 300)
                wait_for("all to resume", lambda: w.log().count(": resumed") == 6)
                holds("sent to 6 workers" in w.run("stop", "--all").stdout, "stop")
                for p in first:
                    equal(p.wait(timeout=60), 0, w.last_log())
        equal(w.leased(), {}, "leases")
        # one worker of each machine reads the message; its master ends the others
        holds(w.log().count("stop requested") >= 3, "machines that stopped")
        equal(w.log().count(": paused"), 4, "workers that paused")
        equal(w.log().count(": resumed"), 6, "workers that resumed")
        holds("exclude each other" in w.run("pause", "--all", o.urls[0], code=2).stderr, "usage")
        holds("missing argument: FEED" in w.run("pause", code=2).stderr, "usage")


@each_engine("a search over an incomplete index prints 'not indexed yet', and finds all entries when a worker has "
             "completed the index", also=["sqlite"])
def unindexed(base, engine):
    docs = os.path.join(base, "docs")
    words = 1000 if engine == "sqlite" and not sanitized() else 300 # the others take longer
    os.mkdir(docs)
    with open(os.path.join(docs, "long.xml"), "w", encoding="ascii") as f: # more than the end of a --once indexes
        f.write("<rss><channel><title>t</title>")
        for i in range(1500):
            f.write("<item><guid>%d</guid><title>needle %d</title><description>%s</description></item>" % (
                i, i, " ".join("word%d" % (i * 7919 + k * 104729 & 0xffff) for k in range(words))))
        f.write("</channel></rss>")
    with origin(base, docs, "--feeds", "3") as o, feedwheel(base, engine, CONF + "max_body_bytes = 64M\n") as w:
        w.run("import", o.url_file)
        w.run_once()

        def search():
            r = w.run("entries", "--search", "needle", "--limit", "10000", "--jsonl")
            return len(r.stdout.splitlines()), r.stderr
        unindexed = w.json("status")["unindexed_entries"]
        found, message = search()
        print("# %d entries are not indexed when a --once ends; %d of 4500 found" % (unindexed, found))
        equal(("not indexed yet" in message, found < 4500), (unindexed > 0, unindexed > 0), message)
        with machines(w, 1):
            wait_for("the index", lambda: w.json("status")["unindexed_entries"] == 0, 180)
        found, message = search() # a store without an index says that, whenever it is searched
        equal((found, "not indexed yet" in message, bool(message)), (4500, False, engine == "redis"))


@each_engine("a --once ends beside a run that always has due feeds; all feeds that were due at its start are fetched",
             also=["sqlite"])
def once_beside(base, engine):
    with origin(base, samples(base), "--feeds", "200", "--latency", "fixed:500") as o, \
            feedwheel(base, engine, SOON + "workers = 2\nconcurrency = 4\n") as w:
        w.run("import", o.url_file)
        with machines(w, 1):
            wait_for("requests", lambda: requests_to_all(o) > 20)
            stats = w.run_once("--concurrency", "8")
            equal([u for u in o.urls if not requests_to(o, u)], [], "feeds without a request")
            holds(w.json("status")["due"] > 0, "feeds are still due")
        holds(stats["feeds"] > 0 and not stats["failed"], "visits of the --once: %s" % stats)


@each_engine("when a machine dies, the others fetch its feeds as soon as its lease has ended", also=["sqlite"])
def dies(base, engine):
    with origin(base, samples(base), "--feeds", "60", "--latency", "fixed:200") as o, \
            feedwheel(base, engine, SOON + SHORT_LEASE + "workers = 2\nconcurrency = 8\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2) as (first, _):
            wait_for("requests", lambda: requests_to_all(o) > 120)
            wait_for("all workers to have shards", lambda: len([n for n in w.leased().values() if n]) == 4)
            kill_group(first)
            before = {u: requests_to(o, u) for u in o.urls}
            start = time.monotonic()
            wait_for("all to be fetched again", lambda: all(
                requests_to(o, u) > n for u, n in before.items()))
            print("# %.1f s" % (time.monotonic() - start))
        equal(w.leased(), {}, "leases")
        equal(w.json("status")["failing"], 0, "failing feeds")


@contextlib.contextmanager
def another_machine(w, first):
    p = w.start("run")
    wait_for("the other workers", lambda: len(w.json("status")["workers"]) == 2 * len(first) + 2)
    yield
    equal(p.wait(timeout=60), 0, w.last_log())


@each_engine("busy workers too handle a message within a second, before entries and feeds", also=["sqlite"])
def messages(base, engine):
    with origin(base, samples(base), "--feeds", "400", "--latency", "fixed:20",
                plans=["* grow=1,start=40,window=40"]) as o, \
            feedwheel(base, engine, SOON + "workers = 2\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2):
            wait_for("many requests", lambda: requests_to_all(o) > 500)
            if engine == "sqlite":
                w.message(99) # unknown: it is skipped
            took = []
            for k in range(3):
                for command, words in (("pause", ": paused"), ("resume", ": resumed")):
                    start = time.monotonic()
                    w.run(command, "--all")
                    wait_for("all workers to handle it",
                             lambda n=4 * (k + 1), words=words: w.log().count(words) == n)
                    took.append(time.monotonic() - start)
            prompt(took)
        equal((w.log().count(": paused"), w.log().count(": resumed")), (12, 12), "once for each worker")


run()
