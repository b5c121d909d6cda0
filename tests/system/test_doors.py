#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Rows that other programs put into the store beside running workers, on each engine, by its own client."""
import contextlib
import os
import re
import shutil
import signal
import time

from doors import doors_of, ends, wait_for_workers, workers
from harness import (
    SOON, Skip, case, each_engine, engines, equal, holds, let_pass, origin, run, samples, wait_for, workers_of)

# A row is taken and its feed started within a second: tests/unit/engine/test_worker.c. A busy machine may
# take longer; without the door the feed would never start.
WITHIN_S = 15.0
RARE = "interval_min_ms = 1h\ninterval_ms = 1h\n"
MANY = 100000 if "FW_LONG" in os.environ else 20000


@contextlib.contextmanager
def running(w, *arguments, n=1, workers_n=1):
    """n runs, which end gracefully if they have not."""
    masters = [w.start("run", *arguments) for _ in range(n)]
    try:
        wait_for_workers(w, n * workers_n)
        yield masters
    finally:
        for m in masters:
            if m.poll() is None:
                m.send_signal(signal.SIGQUIT)
        for m in masters:
            m.wait(timeout=60)


def requested(o):
    """The path of each request so far."""
    return [r["target"] for r in o.requests()]


def started(o):
    """The number of requests so far, with those in flight."""
    return sum(h["requests"] for h in o.stats(hosts=True)["hosts"].values())


def path(url):
    return "/" + url.split("/", 3)[3]


def feeds(w):
    return {f["url"]: f for f in w.json("list")}


@each_engine("addresses are subscribed and fetched at once, whichever worker owns their host; one that is known is "
             "fetched again", also=["sqlite"])
def comes_in(base, engine):
    with origin(base, samples(base), "--feeds", "20", "--hosts", "20", plans=["* grow=1,start=10,window=40"]) as o, \
            doors_of(base, engine, RARE) as (w, doors), running(w, n=2):
        took = []
        for u in o.urls[:12]:
            start = time.monotonic()
            doors.put([u])
            wait_for("the request", lambda u=u: path(u) in requested(o))
            took.append(time.monotonic() - start)
        print("# seconds: " + ", ".join("%.2f" % t for t in took))
        holds(sorted(took)[6] < WITHIN_S, "took %s" % took)
        doors.put(o.urls[12:14], folder="a/b/", title="It's \"new\"",
                  **({"interval": "2h"} if engine == "redis" else {"interval_ms": 7200000}))
        doors.put(o.urls[:1], title="not this", folder="not that")
        wait_for("all to be fetched", lambda: len(requested(o)) == 15)
        wait_for("the visits", lambda: w.json("status")["visits"] == 15)
        got = feeds(w)
        equal(len(got), 14)
        for u in o.urls[12:14]:
            equal((got[u]["title"], got[u]["folder"], got[u]["interval_ms"]), ("It's \"new\"", "a/b", 7200000), u)
        holds(got[o.urls[0]]["title"] != "not this" and not got[o.urls[0]].get("folder"), got[o.urls[0]])
        equal(sorted(requested(o)), sorted([path(u) for u in o.urls[:14]] + [path(o.urls[0])]), "requests")
        equal((doors.waiting(), doors.refused()), (0, []))


@each_engine("what is no address is refused, with the reason; doctor, status and the metrics count such rows",
             also=["sqlite"])
def refused(base, engine):
    with origin(base, samples(base), "--feeds", "1") as o, doors_of(base, engine, RARE) as (w, doors):
        doors.put(["no address", "ftp://example.org/", o.urls[0]])
        status = w.json("status")
        equal((status["inbox"], status["inbox_refused"]), (3, 0))
        holds("3 rows of other programs wait" in w.run("status").stdout, "status")
        found = w.run("doctor", code=None).stdout
        holds(re.search(r"inbox.*3 rows of control and feeds_to_fetch wait, and no worker runs", found), found)
        with running(w):
            doors.taken()
            wait_for("the request", lambda: len(requested(o)) == 1)
            doors.put(["http://"], folder="x" * 201)
            doors.put([o.urls[0]], folder="x" * 201)
            doors.taken()
        rows = doors.refused()
        equal([u for u, _ in rows], ["no address", "ftp://example.org/", "http://", o.urls[0]])
        for (_, reason), words in zip(rows, ["url: .* is not a URL: write https", "url: .* is not http or https",
                                             "url: the URL has no host", "folder: longer than 200 bytes"]):
            holds(re.match(words, reason), reason)
        equal(w.json("status")["inbox_refused"], 4)
        found = w.run("doctor", code=None).stdout
        holds(re.search(r"refused.*4 rows of feeds_to_fetch were refused", found), found)
        holds("feeds_to_fetch_refused" in found, "the remedy")
        equal(len(feeds(w)), 1)


@each_engine("control: pause, resume and stop reach all workers, or the one that is named; the others go on",
             also=["sqlite"])
def steered(base, engine):
    with origin(base, samples(base), "--feeds", "40", "--hosts", "40") as o, \
            doors_of(base, engine, SOON + "workers = 3\nlog_level = info\n") as (w, doors):
        w.run("import", o.url_file)
        with running(w, workers_n=3) as [master]:
            names = workers(w)
            wait_for("requests", lambda: len(requested(o)) >= 40)
            doors.control("pause " + names[1])
            wait_for("one to pause", lambda: w.log().count(": paused") == 1)
            doors.control("pause")
            wait_for("all to pause", lambda: w.log().count(": paused") == 3)
            holds(w.json("status")["all_paused"], "status")
            doors.put([o.url("/nobody-has-this", "127.9.9.9")])
            doors.taken()
            doors.control("resume", "resume nobody")
            wait_for("all to resume", lambda: w.log().count(": resumed") == 3)
            wait_for("the address", lambda: "/nobody-has-this" in requested(o))
            first = [n for n in names if n.split("/")[2] == "0"][0]
            doors.control("stop " + first)
            wait_for("it to retire", lambda: "was stopped by a control message; 2 others go on" in w.log())
            wait_for("the others", lambda: len(workers(w)) == 2 and first not in workers(w))
            equal(len(workers_of(master)), 2)
            had = len(requested(o))
            wait_for("further requests", lambda: len(requested(o)) > had + 80)
            doors.control("stop")
            ends(master)
        equal(w.json("status")["workers"], [])


@each_engine("control: reload, each message once; QUIT to the master drains; after the last worker by name the "
             "run ends", also=["sqlite"])
def reloaded(base, engine):
    with origin(base, samples(base), "--feeds", "6", "--hosts", "6", "--latency", "fixed:1500") as o, \
            doors_of(base, engine, RARE + "workers = 3\nlog_level = info\n") as (w, doors):
        def reloads():
            return w.log().count("configuration read again")
        def results():
            return {f.get("last_result") for f in w.json("list")} # None: of a feed that was not visited
        with running(w, workers_n=3) as [master]:
            old = workers(w)
            doors.put(o.urls)
            wait_for("requests", lambda: o.stats()["in_flight"] > 0)
            doors.control("reload") # which each worker sees in its own time, while it drains
            wait_for("successors", lambda: len(workers(w)) == 3 and not set(workers(w)) & set(old))
            doors.taken()
            equal(reloads(), 1)
            doors.control(*["reload"] * 3)
            doors.taken()
            wait_for("a reload", lambda: reloads() > 1)
            wait_for("all to be fetched", lambda: results() == {"ok"})
            w.run("set", "--due", *o.urls)
            wait_for("requests", lambda: o.stats()["in_flight"] > 0)
            master.send_signal(signal.SIGQUIT)
            ends(master)
            # One that is taken after the reload has begun makes one more: what it is for may have changed since.
            after = reloads()
            holds(2 <= after <= 4, "four messages made %d reloads" % after)
            drained = results()
            holds("not_modified" in drained and drained <= {"ok", "not_modified"}, "drained: %s" % drained)
        with running(w, workers_n=3) as [master]:
            doors.control(*["stop " + name for name in workers(w)])
            ends(master)
            equal(reloads(), after, "of messages that were obeyed")


@each_engine("ten thousand messages, entries and addresses wait: messages are obeyed first, then entries are stored",
             also=["sqlite"])
def in_order(base, engine):
    docs = os.path.join(base, "docs")
    os.mkdir(docs)
    for i in range(20):
        with open(os.path.join(docs, "%02d.xml" % i), "w", encoding="ascii") as f:
            f.write("<rss version='2.0'><channel><title>T</title>%s</channel></rss>" % "".join(
                "<item><guid>%d-%d</guid><title>t</title></item>" % (i, k) for k in range(500)))
    conf = RARE + "batch_ms = 12s\nbatch_visits = 1000\nbatch_bytes = 256MiB\nlease_ms = 3m\nlog_level = info\n"
    with origin(base, docs, "--feeds", "21", "--hosts", "21", plans=["20 latency=28000"]) as o, \
            doors_of(base, engine, conf) as (w, doors):
        w.run("add", o.urls[20])
        with running(w) as [master]:
            [worker] = workers_of(master)
            wait_for("the slow request, during which a batch grows", lambda: o.stats()["in_flight"] == 1)
            w.run("import", o.url_file)
            wait_for("all documents but the slow one", lambda: started(o) == 21 and o.stats()["in_flight"] == 1)
            wait_for("the documents to be read", lambda: rests(worker))
            os.kill(worker, signal.SIGSTOP)
            while engine == "sqlite" and w.is_locked(): # it was stopped in a transaction
                os.kill(worker, signal.SIGCONT)
                let_pass(0.05, "the end of the transaction")
                os.kill(worker, signal.SIGSTOP)
            equal(w.json("status")["entries"], 0, "nothing is stored yet")
            watched = watch_order(doors)
            doors.control(*["pause", "resume"] * 5000, "pause")
            doors.put([o.url("/new/%d" % i, "127.8.%d.%d" % (i % 200, 1 + i // 200)) for i in range(10000)])
            let_pass(12, "the batch of documents is due")
            os.kill(worker, signal.SIGCONT)
            doors.taken()
            wait_for("all of it", lambda: w.json("status")["feeds"] == 10021 and w.json("status")["entries"] >= 10000)
            equal([t for t in requested(o) if t.startswith("/new")], [], "requests after a pause")
            if watched:
                [first] = doors.run("SELECT min(entries) FROM order_seen;")
                holds(int(first) >= 10000, "entries at the first address: " + first)
            doors.control("resume")
            wait_for("requests", lambda: any(t.startswith("/new") for t in requested(o)))


def rests(pid):
    """Does the process use less than a tenth of a processor?"""
    def ticks():
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return int(f.read().rpartition(")")[2].split()[11])
    before = ticks()
    let_pass(0.5, "the time of a process is counted in hundredths of a second")
    return ticks() - before <= 5


def watch_order(doors):
    """Count the entries at each new feed, by a trigger."""
    doors_sql = {
        "sqlite": "CREATE TABLE order_seen (entries INTEGER);\nCREATE TRIGGER order_see AFTER INSERT ON feeds"
                  " WHEN NOT EXISTS (SELECT 1 FROM order_seen)"
                  " BEGIN INSERT INTO order_seen SELECT count(*) FROM entries; END;",
        "mysql": "CREATE TABLE order_seen (entries BIGINT);\nCREATE TRIGGER order_see AFTER INSERT ON feeds"
                 " FOR EACH ROW INSERT INTO order_seen SELECT (SELECT count(*) FROM entries) FROM meta"
                 " WHERE name = 'changes' AND NOT EXISTS (SELECT 1 FROM order_seen);",
        "postgres": "CREATE TABLE order_seen (entries bigint);\nCREATE FUNCTION order_see() RETURNS trigger LANGUAGE"
                    " plpgsql AS $$ BEGIN INSERT INTO order_seen SELECT count(*) FROM entries; RETURN NULL; END $$;\n"
                    "CREATE TRIGGER order_see AFTER INSERT ON feeds FOR EACH STATEMENT EXECUTE FUNCTION order_see();"}
    if doors.engine not in doors_sql:
        return False
    doors.run(doors_sql[doors.engine])
    return True


@each_engine("many addresses at once: heartbeats and commits go on, and each is subscribed once", also=["sqlite"])
def many(base, engine):
    with origin(base, samples(base), "--feeds", "8", "--hosts", "8") as o, \
            doors_of(base, engine, SOON + "workers = 2\nhost_gap_ms = 1s\nconcurrency = 20\n") as (w, doors):
        w.run("import", o.url_file)
        with running(w, workers_n=2):
            wait_for("visits", lambda: w.json("status")["visits"] >= 8)
            doors.put([o.url("/x?%d" % i, "127.2.0.%d" % (1 + i % 4)) for i in range(MANY)])
            oldest, visits = 0.0, []
            while doors.waiting():
                status = w.json("status")
                now = time.time()
                oldest = max([oldest, *(now - seconds(x["seen"]) for x in status["workers"])])
                equal(len(status["workers"]), 2, "workers with a heartbeat")
                visits.append(status["visits"])
            print("# %s: the oldest heartbeat %.1f s; visits %s" % (engine, oldest, visits))
            had = w.json("status")["visits"]
            wait_for("visits", lambda: w.json("status")["visits"] > had)
        equal(w.log().count("lost"), 0, "leases lost")
        status = w.json("status")
        equal((status["feeds"], status["inbox"], status["inbox_refused"]), (MANY + 8, 0, 0))
        equal(len({f["url"] for f in w.json("list")}), MANY + 8)


def seconds(stamp):
    return time.mktime(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone


def each_worker(master, number):
    """Send a signal to each worker; how many there were."""
    n = 0
    for pid in workers_of(master):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            n += 1
    return n


@each_engine("workers are killed while they take addresses: none is lost, subscribed twice or fetched twice",
             also=["sqlite"])
def killed(base, engine):
    n = 3000
    with origin(base, samples(base), "--feeds", str(n), "--hosts", "300") as o, \
            doors_of(base, engine, RARE + "workers = 2\n") as (w, doors):
        w.run("pause", "--all")
        with running(w, workers_n=2) as [master]:
            kills = 0
            for part in range(6):
                if engine != "sqlite": # there a stopped worker may hold the file's lock
                    each_worker(master, signal.SIGSTOP)
                doors.put(o.urls[part::6])
                each_worker(master, signal.SIGCONT)
                let_pass(0.01 * part, "a kill at any moment")
                kills += each_worker(master, signal.SIGKILL)
                doors.taken()
            print("# %d kills" % kills)
            holds(kills >= 6, "kills")
            equal(w.json("status")["feeds"], n)
            equal(requested(o), [], "requests during a pause")
            doors.control("resume")
            wait_for("all to be fetched", lambda: w.json("status")["visits"] == n, 120)
        equal(sorted(requested(o)), sorted(path(u) for u in o.urls), "requests")
        equal(doors.refused(), [])


@each_engine("run --once fetches the addresses that wait, with those that are due", also=["sqlite"])
def once(base, engine):
    with origin(base, samples(base), "--feeds", "60", "--hosts", "20") as o, \
            doors_of(base, engine, RARE + "workers = 2\n") as (w, doors):
        w.run("add", *o.urls[:10])
        doors.put(o.urls[5:])
        doors.control("stop") # for workers that have ended by now
        stats = w.run_once()
        # one that was fetched before its row is taken is fetched again: its row may be younger
        twice = [path(u) for u in o.urls[5:10]]
        again = [p for p in twice if requested(o).count(p) == 2]
        equal((stats["feeds"], stats["failed"]), (60 + len(again), 0))
        equal(sorted(requested(o)), sorted([path(u) for u in o.urls] + again), "requests")
        equal(doors.waiting(), 0)


def follows(base, engine, *language):
    """The recipe beside a running worker: its last command prints an entry of the feed."""
    with origin(base, samples(base), "--feeds", "1", plans=["* grow=1,start=10,window=40"]) as o, \
            doors_of(base, engine, RARE + "log_level = info\n") as (w, doors):
        with running(w):
            doors.put(o.urls, folder="News")
            wait_for("the visit", lambda: w.json("status")["entries"] >= 10)
            title = w.json("entries", "--limit", "1")["items"][0]["title"]
            output = doors.recipe(o.urls[0], *language)
            holds((title if engine != "redis" else "feed") in output, output)
            doors.taken()
            wait_for("the second visit", lambda: len(requested(o)) >= 2)
            wait_for("the end of the pause", lambda: not w.json("status")["all_paused"])
            [feed] = w.json("list")
            if engine != "redis":
                equal((feed["title"], feed["folder"]), ("Mine", "News"))
        equal(doors.refused(), [])


@each_engine("recipe of the manual: the database's own client puts an address in, pauses and resumes, changes a feed, "
             "reads what is new", also=["sqlite"])
def recipes(base, engine):
    follows(base, engine)


@case("redis: recipe of the manual in Python", needs="redis")
def recipe_in_python(base):
    follows_in(base, "python3")


@case("redis: recipe of the manual in Ruby", needs="redis")
def recipe_in_ruby(base):
    follows_in(base, "ruby")


def follows_in(base, language):
    if not shutil.which(language) or "redis" not in engines():
        raise Skip("%s or Redis is not installed" % language)
    follows(base, "redis", language)


@case("a host that refused requests is left alone until the time it named, whatever is done: a new feed on it, set "
      "--due, pause and resume, fetch-now, an address in feeds_to_fetch, a new run")
def cooldown(base):
    with origin(base, samples(base), "--feeds", "2", "--hosts", "1", plans=["0 429,retry-after=600"]) as o, \
            doors_of(base, "sqlite", RARE) as (w, doors):
        w.run("add", o.urls[0])
        with running(w):
            wait_for("the visit", lambda: w.json("status")["visits"] == 1)
            why = w.run("why", o.urls[0]).stdout
            holds(re.search(r"not before .*has refused requests until then", why), why)
            holds(w.json("why", o.urls[0])["host_cooldown"] > w.json("show", o.urls[0])["feed"]["last_visit"], "JSON")
            for step in (["add", o.urls[1]], ["set", o.urls[0], "--due"], ["pause", o.urls[0]], ["resume", o.urls[0]],
                         ["fetch-now", "--again", o.urls[0], o.urls[1]]):
                w.run(*step)
                let_pass(1, "no request")
            doors.put(o.urls)
            doors.taken()
            let_pass(1, "no request")
        with running(w):
            let_pass(3, "no request")
            equal(len(requested(o)), 1, "requests")
            why = w.run("why", o.urls[1]).stdout
            holds("before all others" in why and "not before" in why, why)
        w.run_once()
        equal(len(requested(o)), 1, "requests")


run()
