#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Several machines on one store: what is told to them all reaches each of them, before all other work."""
import contextlib
import os
import re
import signal
import time
from datetime import datetime

from http_server import kill_group
from growing import at_rest
from harness import (
    SOON, Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, sanitized, server, wait_for)

# the promise is one second; a machine that does other things besides may take longer, who does not
# listen much longer
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
    """So many `run`s on one store, as if on so many machines; stopped at the end."""
    p = [w.start("run", *arguments) for _ in range(n)]
    try:
        wait_for("all workers", lambda: len(w.json("status")["workers"]) == 2 * n)
        yield p
    finally:
        for x in p:
            if x.poll() is None:
                x.send_signal(signal.SIGTERM)
        for x in p:
            x.wait(timeout=60)


def asked(o, url):
    """How often a feed was asked for so far, answers under way included."""
    return o.stats(hosts=True)["hosts"].get(url.split("/")[2].split(":")[0], {"requests": 0})["requests"]


def all_asked(o):
    return sum(h["requests"] for h in o.stats(hosts=True)["hosts"].values())


def prompt(took):
    """Most were; one or the other may have met a machine that stood still."""
    print("# seconds: " + ", ".join("%.2f" % t for t in took))
    holds(sorted(took)[len(took) // 2] < WITHIN_S, "took %s" % took)


def fetched_now(w, urls):
    """Ask for each and wait for it: soon, but for what else this machine does just then. What was said."""
    took, said = [], []
    for url in urls:
        start = time.monotonic()
        said.append(w.run("fetch-now", "--again", "--wait", url).stdout)
        took.append(time.monotonic() - start)
    prompt(took)
    return said


@each_engine("fetch-now: idle workers fetch it once, within a second, and --wait tells the result", also=["sqlite"])
def idle(base, engine):
    with origin(base, samples(base), "--feeds", "20", plans=["* grow=1,start=10,window=40", "7 404"]) as o, \
            feedwheel(base, engine, CONF) as w:
        w.run("import", o.url_file)
        w.run_once()
        with machines(w, 2):
            let_pass(1.2, "workers fall asleep")
            said = fetched_now(w, o.urls[:5])
            holds(all(s.startswith("ok  " + u) and "1 new entry" in s and s.count("\n") == 1 for u, s in zip(o.urls,
                    said)), said)
            holds("404" in w.run("fetch-now", "--again", "--wait",
                  o.urls[7], code=1).stdout, "a failure is told, exit 1")
            w.run("fetch-now", "--again", *o.urls[10:15])
            wait_for("five more", lambda: all(asked(o, u) == 2 for u in o.urls[10:15]))
        equal([asked(o, u) for u in o.urls], [2] * 5 + [1, 1, 2, 1, 1] + [2] * 5 + [1] * 5, "each asked for once")


@each_engine("an idle run says when the next feed is due, and again after a visit; an empty store has nothing to fetch",
             also=["sqlite"])
def idle_line(base, engine):
    with origin(base, samples(base), "--feeds", "2", plans=["* grow=1,start=10,window=40"]) as o, feedwheel(base,
            engine, CONF + "interval_max_ms = 1h\n") as w:
        p = w.start("run", "--progress")

        def last():
            lines = re.findall(r"^feedwheel: [0-9,]+ feeds .*", w.words(), re.M)
            return lines[-1] if lines else ""

        def minutes():
            """Until the next feed, by the line and by the store."""
            said = re.search(r"  next in (?:(\d+) h)? ?(?:(\d+) min)?", last())
            due = min(datetime.fromisoformat(f["due"]).timestamp() for f in w.json("list"))
            return int(said[1] or 0) * 60 + int(said[2] or 0) if said else None, (due - time.time()) / 60

        def agree():
            said, due = minutes()
            return said is not None and abs(said - due) < 2
        wait_for("nothing to fetch", lambda: last().endswith("  nothing to fetch"), 60)
        w.run("add", *o.urls[:2])
        wait_for("both visited", lambda: last().startswith("feedwheel: 2 feeds"), 60)
        wait_for("the time of the next", agree, 60)
        holds(minutes()[1] > 30, "an hour or so")
        w.run("set", "2", "--interval", "20m")
        wait_for("it follows a change", lambda: agree() and minutes()[1] < 25, 60)
        holds("in flight" not in last(), last())
        p.terminate()
        equal(p.wait(timeout=60), 0)
        again = w.start("run")
        wait_for("the start says it too", lambda: re.search(
            r"nothing is due; the next feed is due in (1\d|20) min", w.words()), 60)
        again.terminate()
        again.wait(timeout=60)


@each_engine("fetch-now: busy workers fetch it at once, before a loaded feedwheel, one of them", also=["sqlite"])
def busy(base, engine):
    with origin(base, samples(base), "--feeds", "600", plans=["* latency=3000", "0-4 latency=0"]) as o, \
            feedwheel(base, engine, CONF + "concurrency = 8\n") as w:
        w.run("add", *o.urls[:5])
        w.run_once() # not due for an hour
        w.run("import", o.url_file)
        with machines(w, 2):
            wait_for("every slot to be taken", lambda: o.stats()["in_flight"] == 32)
            fetched_now(w, o.urls[:5])
            holds(w.json("status")["due"] > 50, "the feedwheel was loaded all the while")
            w.run("stop", "--all")
        equal([asked(o, u) for u in o.urls[:5]], [2] * 5, "each asked for once")


@case("sqlite: fetch-now: one that waits at a busy worker for its slot is fetched at once, and once")
def queued(base):
    # that long nobody else gets a slot
    with origin(base, samples(base), "--feeds", "100", plans=["* latency=10000"]) as o:
        w = Feedwheel(base, CONF + "concurrency = 4\nlog_level = debug\n")
        w.run("import", o.url_file)
        with machines(w, 1):
            wait_for("every slot to be taken", lambda: o.stats()["in_flight"] == 8)
            lined_up = [u for (u,) in w.sql(
                "SELECT url FROM feeds JOIN schedule USING (position) ORDER BY due_at_ms, id")]
            flying = [u for u in lined_up if asked(o, u)]
            waiting = [u for u in lined_up if not asked(o, u)]
            now = waiting[0], waiting[-1] # one is claimed, the other is not
            for u in now:
                w.run("fetch-now", "--again", u)
                wait_for("the request", lambda u=u: asked(o, u))
            w.run("fetch-now", "--again", flying[0]) # under way: not a second time meanwhile
            let_pass(1, "no second request may come meanwhile")
            equal(asked(o, flying[0]), 1)
            w.run("stop", "--all")
        equal([asked(o, u) for u in now], [1, 1], "asked once")
        times = {o.urls[r["feed"]]: (r["start_us"], r["end_us"]) for r in o.requests()}
        holds(max(times[u][0] for u in now) < min(times[u][1] for u in flying), "it waited for a slot")
        equal(w.leased(), {}, "leases")


@each_engine("fetch-now: words where nobody can do it", also=["sqlite"])
def nobody(base, engine):
    with origin(base, samples(base), "--feeds", "2") as o, \
            feedwheel(base, engine, CONF) as w:
        w.run("import", o.url_file)
        holds("no worker is running" in w.run("fetch-now", "--again", o.urls[0]).stderr, "no worker")
        w.run("fetch-now", "--again", "--wait", o.urls[0], code=1)
        holds("before all others" in w.run("why", o.urls[0]).stdout, "why says so")
        w.run("pause", o.urls[1])
        holds("'feedwheel resume'" in w.run("fetch-now", "--again", o.urls[1], code=1).stderr, "paused by its owner")
        w.run("pause", "--all")
        holds("all workers are paused" in w.run("fetch-now", "--again", o.urls[0]).stderr, "all paused")
        holds("paused" in w.run("run", "--once", code=1).stderr, "run --once says so")
        w.run("resume", "--all")
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"]), (1, 0), "and it is fetched later")
        if engine == "sqlite":
            equal(w.one("SELECT lateness_ms FROM visits"), 0, "nobody counts from 1970")


@each_engine(
    "pause --all, resume --all, stop --all: on every machine, also those that come later; feeds keep their states",
    also=["sqlite"])
def everywhere(base, engine):
    with origin(base, samples(base), "--feeds", "300", "--latency", "fixed:100") as o, \
            feedwheel(base, engine, SOON + "workers = 2\nconcurrency = 8\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2) as first:
            wait_for("work", lambda: all_asked(o) > 100)
            told = w.run("pause", "--all").stdout
            holds("sent to 4 workers" in told, told)
            wait_for("all to pause", lambda: w.words().count(": paused") == 4)
            wait_for("what they had claimed", lambda: at_rest(lambda: all_asked(o)))
            before = all_asked(o)
            with machines_more(w, first):
                let_pass(1.5, "no request may come meanwhile")
                equal(all_asked(o), before, "requests during the pause")
                holds(w.json("status")["all_paused"] and "resume --all" in w.run("status").stdout, "status shows it")
                equal(w.json("status")["paused"], 0, "feeds that are paused")
                w.run("resume", "--all")
                wait_for("work again", lambda: all_asked(o) > before + 300)
                holds("sent to 6 workers" in w.run("stop", "--all").stdout, "stop")
                for p in first:
                    equal(p.wait(timeout=60), 0, w.last_words())
        equal(w.leased(), {}, "leases")
        holds(w.words().count("stop requested") >= 3, "one worker of each machine heard it, and its master told the "
                                                      "others")
        equal(w.words().count(": paused"), 4, "workers that paused")
        equal(w.words().count(": resumed"), 6, "workers that resumed")
        holds("exclude each other" in w.run("pause", "--all", o.urls[0], code=2).stderr, "usage")
        holds("missing argument: FEED" in w.run("pause", code=2).stderr, "usage")


@each_engine("a search that does not see all entries yet says so, and sees them as soon as a worker has gone on",
             also=["sqlite"])
def unindexed(base, engine):
    docs = os.path.join(base, "docs")
    words = 1000 if engine == "sqlite" and not sanitized() else 300 # the others take longer
    os.mkdir(docs)
    with open(os.path.join(docs, "long.xml"), "w", encoding="ascii") as f: # too much for the end of a --once
        f.write("<rss><channel><title>t</title>")
        for i in range(1500):
            f.write("<item><guid>%d</guid><title>needle %d</title><description>%s</description></item>" % (
                i, i, " ".join("word%d" % (i * 7919 + k * 104729 & 0xffff) for k in range(words))))
        f.write("</channel></rss>")
    with origin(base, docs, "--feeds", "3") as o, feedwheel(base, engine, CONF + "max_body_bytes = 64M\n") as w:
        w.run("import", o.url_file)
        w.run_once()
        def look():
            r = w.run("entries", "--search", "needle", "--limit", "10000", "--jsonl")
            return len(r.stdout.splitlines()), r.stderr
        behind = w.json("status")["unindexed_entries"]
        found, said = look()
        print("# %d entries are left when a --once ends; %d of 4500 found" % (behind, found))
        equal(("not indexed yet" in said, found < 4500), (behind > 0, behind > 0), said)
        with machines(w, 1):
            wait_for("the index", lambda: w.json("status")["unindexed_entries"] == 0, 180)
        equal(look(), (4500, ""))


@each_engine("a --once ends beside a run that is never out of work, and what was due when it began is fetched",
             also=["sqlite"])
def once_beside(base, engine):
    with origin(base, samples(base), "--feeds", "200", "--latency", "fixed:500") as o, feedwheel(base, engine,
            SOON + "workers = 2\nconcurrency = 4\n") as w:
        w.run("import", o.url_file)
        with machines(w, 1):
            wait_for("work", lambda: all_asked(o) > 20)
            stats = w.run_once("--concurrency", "8")
            equal([u for u in o.urls if not asked(o, u)], [], "never asked")
            holds(w.json("status")["due"] > 0, "the run has more to do")
        holds(stats["feeds"] > 0 and not stats["failed"], "it helped: %s" % stats)


@each_engine("a machine that dies: the others fetch its feeds when its lease is over, and nothing tells them but that",
             also=["sqlite"])
def dies(base, engine):
    with origin(base, samples(base), "--feeds", "60", "--latency", "fixed:200") as o, feedwheel(base, engine,
            SOON + "workers = 2\nconcurrency = 8\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2) as (one, _):
            wait_for("work", lambda: all_asked(o) > 120)
            wait_for("all to have shards", lambda: len([n for n in w.leased().values() if n]) == 4)
            kill_group(one)
            before = {u: asked(o, u) for u in o.urls}
            start = time.monotonic()
            wait_for("all to be fetched again", lambda: all(
                asked(o, u) > n for u, n in before.items()), 20) # lease_ms = 15s
            print("# %.1f s" % (time.monotonic() - start))
        equal(w.leased(), {}, "leases")
        equal(w.json("status")["failing"], 0, "feeds blamed")


@contextlib.contextmanager
def machines_more(w, first):
    p = w.start("run")
    wait_for("the other workers", lambda: len(w.json("status")["workers"]) == 2 * len(first) + 2)
    yield
    equal(p.wait(timeout=60), 0, w.last_words())


@each_engine("messages are heard before entries and feeds: by busy workers too, within a second", also=["sqlite"])
def heard(base, engine):
    with origin(base, samples(base), "--feeds", "400", "--latency", "fixed:20",
                plans=["* grow=1,start=40,window=40"]) as o, \
            feedwheel(base, engine, SOON + "workers = 2\n") as w:
        w.run("import", o.url_file)
        with machines(w, 2):
            wait_for("much to do", lambda: all_asked(o) > 500)
            if engine == "sqlite":
                w.message(99) # nobody knows it, and it is passed over
            took = []
            for k in range(3):
                for command, words in (("pause", ": paused"), ("resume", ": resumed")):
                    start = time.monotonic()
                    w.run(command, "--all")
                    wait_for("all to hear it", lambda n=4 * (k + 1), words=words: w.words().count(words) == n)
                    took.append(time.monotonic() - start)
            prompt(took)
        equal((w.words().count(": paused"), w.words().count(": resumed")), (12, 12), "once each")


run()
