#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""SIGKILL of a worker, of the master, of all processes at once, SIGSTOP and SIGTERM, during a run
over growing feeds. Afterwards each entry that a feed ever showed is stored once and unchanged.

Each request to a growing feed adds one entry. A document shows the newest 40, so the next response
repeats what a crash lost. After a last quiet run feed i must have exactly the entries
1 .. 10 + requests - 1. FW_CRASH_ROUNDS=100 kills a hundred times (default 6).
"""
import contextlib
import os
import random
import signal
import sqlite3
import time

from growing import CONF, FEEDS, LONG_LEASE, PATIENT, SHORT_LEASE, requests_of_each, at_rest, drained
from harness import BUILD, Feedwheel, case, equal, holds, let_pass, origin, run, samples, wait_for, workers_of

LOST = "this worker's lease is lost"
ROUNDS = int(os.environ.get("FW_CRASH_ROUNDS", "6"))


@contextlib.contextmanager
def growing(base, latency="lognormal:200:0.8", conf=""):
    """Growing feeds and a Feedwheel that has subscribed to them; the entries are checked at the end."""
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", latency,
                plans=["* grow=1,start=10,window=40"]) as o:
        w = Feedwheel(base, CONF + conf)
        w.run("import", o.url_file)
        yield o, w
        visit_all(w)
        check_entries(o, w)


def run_with_two(w):
    p = w.start("run")
    wait_for("two workers", lambda: len(workers_of(p)) == 2)
    return p


def replaced(p, victim):
    wait_for("the replacement of worker %d" % victim, lambda: victim not in workers_of(p) and len(workers_of(p)) == 2)


def host_of(url):
    return url.split("/")[2].split(":")[0]


def all_requested_again(o):
    before = requests_of_each(o)
    wait_for("requests to all feeds", lambda: all(n > b for n, b in zip(requests_of_each(o), before)))


def next_request(o):
    n = o.stats()["requests"]
    wait_for("requests", lambda: o.stats()["requests"] > n)


def feeds_of(w, pid):
    """The feeds in the shards that this worker has leased."""
    return [u for (u,) in w.sql(
        "SELECT url FROM feeds JOIN shards ON shard = position >> 53 & 1023 JOIN workers ON worker = workers.id"
        " WHERE workers.name LIKE ?", "%%/%d/%%" % pid)]


def in_flight(o, w, pid):
    """The number of this worker's requests in flight."""
    hosts = o.stats(hosts=True)["hosts"]
    return sum(hosts.get(host_of(u), {"in_flight": 0})["in_flight"] for u in feeds_of(w, pid))


def stopped_with_work(o, w, p, least=1):
    """SIGSTOP the worker with the most requests in flight, at least this many, outside of a
    transaction; its process id."""
    def busiest():
        return max((in_flight(o, w, pid), pid) for pid in workers_of(p))
    while True:
        wait_for("a worker with %d requests in flight" % least, lambda: busiest()[0] >= least)
        pid = busiest()[1]
        os.kill(pid, signal.SIGSTOP)
        if in_flight(o, w, pid) >= least and not w.is_locked():
            return pid
        os.kill(pid, signal.SIGCONT)


def open_files(p):
    fds = "/proc/%d/fd" % p.pid
    files = []
    for fd in os.listdir(fds):
        with contextlib.suppress(OSError): # closed meanwhile
            files.append(os.readlink(os.path.join(fds, fd)))
    return files


def ended(pids):
    wait_for("the end of all processes", lambda: not any(os.path.exists("/proc/%d" % x) for x in pids))


def visit_all(w):
    """Run until all feeds have been fetched after the last crash."""
    for _ in range(30):
        equal(w.run_once(*PATIENT, "--concurrency", str(FEEDS))["failed"], 0, "failures in a quiet run")
        if w.one("SELECT count(*) FROM schedule WHERE last_kind = 0") == 0:
            break
        let_pass(1.2, "the retry delay of failed visits")
    # a feed that failed several times would wait longer
    w.run("set", "--due", *(u for (u,) in w.sql("SELECT url FROM feeds")))
    stats = w.run_once(*PATIENT, "--concurrency", str(FEEDS))
    equal((stats["feeds"], stats["failed"]), (FEEDS, 0), "the last run visits all")


def check_entries(o, w):
    """No entry is lost, stored twice or changed."""
    hosts = o.stats(hosts=True)["hosts"]
    equal(len(hosts), FEEDS, "hosts with requests")
    wrong = []
    for i, url in enumerate(o.urls):
        n = hosts[host_of(url)]["requests"]
        want = ["feed-%d-entry-%d" % (i, k) for k in range(1, 10 + n)]
        have = [g for (g,) in w.sql(
            "SELECT guid FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?"
            " ORDER BY CAST(substr(guid, instr(guid, 'entry-') + 6) AS INTEGER)", url)]
        if have != want:
            wrong.append("feed %d after %d requests: %d entries, lost %s, extra %s" % (
                i, n, len(have), sorted(set(want) - set(have))[:5], sorted(set(have) - set(want))[:5]))
    equal(wrong, [], "entries")
    equal(w.one("SELECT max(revision) FROM entries"), 1, "revisions")
    equal(w.leased(), {}, "leases")
    equal(w.sql("PRAGMA integrity_check"), [("ok",)])
    equal(o.stats()["violations"], 0, "validators")
    requests = sum(h["requests"] for h in hosts.values())
    print("# %d entries of %d requests" % (w.one("SELECT count(*) FROM entries"), requests))


# invariants 1-3
@case("a worker killed repeatedly is replaced, its feeds are polled again at once, no entry is lost or stored twice")
def kill_worker(base):
    rng = random.Random(1)
    with growing(base, conf=LONG_LEASE) as (o, w):
        for k in range(ROUNDS):
            if k % 4 == 0: # a new master, because the delay before a restart grows
                p = run_with_two(w)
            next_request(o)
            let_pass(rng.uniform(0, 0.9), "a kill at any moment")
            victim = rng.choice(workers_of(p))
            os.kill(victim, signal.SIGKILL)
            replaced(p, victim)
            all_requested_again(o)
            if k % 4 == 3 or k == ROUNDS - 1:
                drained(w, p)
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0"), 0, "feeds in quarantine")


@case("a worker that is told to stop until it is gone has stopped: it has not crashed")
def told_again(base):
    w = Feedwheel(base, CONF)
    p = run_with_two(w)
    for n in range(1, 5):
        victim = workers_of(p)[-1]
        with contextlib.suppress(ProcessLookupError):
            while True:
                os.kill(victim, signal.SIGTERM)
        replaced(p, victim)
        said = w.log()
        holds("was killed" not in said and said.count("was stopped from outside: it is replaced") == n, said)
    drained(w, p)


@case("when a new worker is killed before it has ended its predecessor's lease, the next worker ends it")
def kill_newborn(base):
    with growing(base, "fixed:1500", LONG_LEASE) as (o, w):
        for _ in range(3):
            p = run_with_two(w)
            old = workers_of(p)
            os.kill(stopped_with_work(o, w, p), signal.SIGKILL)
            newborn = set()
            while not newborn: # without a pause, to kill it before it has opened the store
                newborn = set(workers_of(p)) - set(old)
            os.kill(min(newborn), signal.SIGKILL)
            replaced(p, min(newborn))
            wait_for("the lease of the second worker", lambda: workers_of(p)[1] in w.leased())
            all_requested_again(o)
            drained(w, p)
            equal(w.leased(), {}, "leases")


@case("when the master is killed, its workers exit, and the next run continues")
def kill_master(base):
    rng = random.Random(2)
    with growing(base) as (o, w):
        for _ in range(max(1, ROUNDS // 2)):
            p = run_with_two(w)
            orphans = workers_of(p)
            next_request(o)
            let_pass(rng.uniform(0, 1.2), "a kill at any moment")
            p.kill()
            p.wait(timeout=60)
            ended(orphans)


@case("when master and workers are killed at once, the next run does not wait for their leases and quarantines no feed")
def kill_all(base):
    rng = random.Random(3)
    with growing(base, conf=LONG_LEASE) as (o, w):
        for _ in range(max(2, ROUNDS // 2)):
            p = run_with_two(w)
            next_request(o)
            let_pass(rng.uniform(0, 1.2), "a kill at any moment")
            wait_for("requests in flight", lambda: o.stats()["in_flight"])
            all_of = [p.pid] + workers_of(p)
            p.send_signal(signal.SIGSTOP)
            for pid in reversed(all_of):
                os.kill(pid, signal.SIGKILL)
            p.wait(timeout=60)
            ended(all_of)
            holds(w.leased(), "leases of killed workers")
            w.run_once()
            equal(w.leased(), {}, "leases")
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0 OR crash_n <> 0"), 0,
              "feeds with crashes or in quarantine")


@case("a worker stopped for longer than its lease commits nothing afterwards, and takes a new lease")
def stopped_worker(base):
    with growing(base, conf=SHORT_LEASE) as (o, w):
        p = run_with_two(w)
        sleeper = stopped_with_work(o, w, p)
        wait_for("the end of its lease", lambda: sleeper not in w.leased())
        all_requested_again(o)
        os.kill(sleeper, signal.SIGCONT)
        wait_for("the message about the lost lease", lambda: LOST in w.log())
        wait_for("its new shards", lambda: w.leased().get(sleeper))
        drained(w, p)


# POL-05: not polled twice
@case("a worker that has lost its lease does not start the claimed fetches that were still waiting")
def late_start(base):
    slots, feeds = 4, 32 # few: the master kills the stopped worker after a minute
    with origin(base, samples(base), "--feeds", str(feeds), "--latency", "fixed:1000") as o:
        w = Feedwheel(base, SHORT_LEASE + "workers = 2\nbatch_ms = 50ms\nconcurrency = %d\n" % slots)
        w.run("import", o.url_file)
        p = run_with_two(w)
        wait_for("requests", lambda: o.stats()["requests"] > 2 * slots)
        sleeper = stopped_with_work(o, w, p, slots)
        wait_for("a visit of each feed", lambda: w.one("SELECT count(*) FROM schedule WHERE last_kind = 0") == 0, 30)
        sent = len(o.requests())
        os.kill(sleeper, signal.SIGCONT)
        wait_for("the message about the lost lease", lambda: LOST in w.log())
        wait_for("its new shards", lambda: w.leased().get(sleeper))
        drained(w, p)
        equal(len(o.requests()), sent, "requests, none after it continued")
        # one to each feed, and a second where the first was not committed: it was in flight, or had just ended
        holds(feeds + slots <= sent <= feeds + 2 * slots, "%d requests" % sent)


def test_binary(w):
    """The binary whose master kills a worker after 8 s without a heartbeat."""
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")


@case("a worker without a heartbeat is killed and replaced")
def hung_worker(base):
    with growing(base, conf=LONG_LEASE) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        sleeper = stopped_with_work(o, w, p)
        replaced(p, sleeper)
        all_requested_again(o)
        drained(w, p)
        holds("no heartbeat" in w.log(), "the message")


@case("after all processes were stopped together, as by ^Z, the master kills no worker")
def all_stopped(base):
    with growing(base) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        next_request(o)
        before = workers_of(p)
        os.killpg(p.pid, signal.SIGSTOP)
        let_pass(9, "longer than the master waits for a heartbeat")
        os.kill(p.pid, signal.SIGCONT)
        let_pass(0.5, "the master checks the heartbeats")
        os.killpg(p.pid, signal.SIGCONT)
        next_request(o)
        equal(workers_of(p), before, "workers")
        drained(w, p)


@case("^C, a SIGINT to master and workers, drains")
def interrupt(base):
    with growing(base, "fixed:1000", "concurrency = 10\n") as (o, w):
        p = run_with_two(w)
        wait_for("requests in flight", lambda: o.stats()["in_flight"] >= 10)
        os.killpg(p.pid, signal.SIGINT)
        equal(p.wait(timeout=60), 0, w.last_log())
        equal([r["end"] for r in o.requests() if r["end"] != "ok"], [], "cancelled transfers")
        equal(w.leased(), {}, "leases")


@case("run --once completes although a reload or a SIGTERM ends its workers")
def once_goes_on(base):
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:1000") as o:
        w = Feedwheel(base, CONF + "concurrency = 3\n")
        w.run("import", o.url_file)
        p = w.start("run", "--once")
        wait_for("requests", lambda: o.stats()["requests"] > 2)
        before = workers_of(p)
        p.send_signal(signal.SIGHUP)
        wait_for("other workers", lambda: len(workers_of(p)) == 2 and not set(before) & set(workers_of(p)))
        next_request(o)
        os.kill(workers_of(p)[0], signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_log())
        equal(w.one("SELECT count(*) FROM schedule WHERE last_kind = 0"), 0, "feeds without a visit")


@case("SIGTERM drains: transfers in flight complete and are committed, the leases end, exit 0") # invariant 7
def drain(base):
    with growing(base, "fixed:1500", "concurrency = 10\n") as (o, w): # 4.5 s for all feeds
        p = w.start("run")
        wait_for("requests in flight", lambda: o.stats()["in_flight"] >= 10)
        drained(w, p)
        equal(w.leased(), {}, "leases")
        log = [r for r in o.requests() if r["feed"] >= 0]
        equal([r["end"] for r in log if r["end"] != "ok"], [], "cancelled transfers")
        equal(w.one("SELECT count(*) FROM visits"), len(log), "a visit for each request")
        holds(len(log) < FEEDS, "some feeds were still waiting")


@case("a second SIGTERM ends the run at once; the next run does not wait for the leases, no entry is lost")
def hurry(base):
    with growing(base, "fixed:5000", LONG_LEASE + "log_level = debug\n") as (o, w):
        p = w.start("run")
        wait_for("requests", lambda: o.stats()["requests"] > 5)
        p.send_signal(signal.SIGTERM) # the drain would wait 5 s for the responses
        wait_for("the drain", lambda: "workers drain" in w.log())
        let_pass(0.7, "signals within this count as one")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_log())
        holds(w.leased(), "leases remain")


@case("a stopped worker is killed after drain_timeout_ms, or at a second SIGTERM; the other worker drains")
def drain_stopped(base):
    with growing(base, "fixed:500", "drain_timeout_ms = 1s\n") as (o, w):
        for twice in (False, True):
            p = run_with_two(w)
            sleeper = stopped_with_work(o, w, p)
            start = time.monotonic()
            p.send_signal(signal.SIGTERM)
            if twice:
                let_pass(0.7, "signals within this count as one")
                p.send_signal(signal.SIGTERM)
            equal(p.wait(timeout=60), 0, w.last_log())
            print("# it took %.1f s" % (time.monotonic() - start))
            holds("worker %d killed: it does not respond" % sleeper in w.log(), w.log())
            holds("no heartbeat" not in w.log(), w.log())


@case("a stopped server is killed after drain_timeout_ms, with a message about lost events")
def drain_stopped_server(base):
    w = Feedwheel(base, CONF + "drain_timeout_ms = 1s\nlisten = 127.0.0.1:0\n")
    p = w.start("run")
    wait_for("the server", lambda: len(workers_of(p)) == 3 and "listening" in w.log())
    server = workers_of(p)[-1]
    os.kill(server, signal.SIGSTOP)
    p.send_signal(signal.SIGTERM)
    equal(p.wait(timeout=60), 3, w.last_log())
    holds("server %d killed: it does not respond" % server in w.log()
          and "accepted in memory are lost" in w.log(), w.log())


@case("feedwheel stop drains the run")
def stop_command(base):
    with growing(base) as (o, w):
        p = w.start("run")
        wait_for("requests", lambda: o.stats()["requests"] > FEEDS)
        w.run("stop")
        p.wait(timeout=60)
        equal(p.returncode, 0)


@case("a reload message in the store makes the master read the configuration and replace the workers")
def reload_message(base):
    with growing(base) as (o, w):
        p = run_with_two(w)
        before = workers_of(p)
        wait_for("requests", lambda: o.stats()["requests"] > 10)
        w.message(4)
        wait_for("new workers", lambda: len(workers_of(p)) == 2 and not set(before) & set(workers_of(p)))
        holds("read again" in w.log(), "the message")
        drained(w, p)


@case("SIGHUP before the store is open ends no process; the reload follows when the workers run")
def reload_early(base):
    with growing(base, "fixed:100") as (o, w):
        lock = sqlite3.connect(w.path, isolation_level=None)
        lock.execute("PRAGMA locking_mode = EXCLUSIVE")
        lock.execute("BEGIN EXCLUSIVE")
        p = w.start("run")
        wait_for("the master to wait for the store", lambda: w.path in open_files(p))
        p.send_signal(signal.SIGHUP)
        lock.execute("ROLLBACK")
        lock.close()
        wait_for("the reload", lambda: "SIGHUP: configuration read again" in w.log())
        wait_for("requests", lambda: o.stats()["requests"])
        drained(w, p)


@case("pause --all also holds for the worker that replaces a killed one, until resume --all")
def paused(base):
    with growing(base, "fixed:100") as (o, w):
        p = run_with_two(w)
        wait_for("requests to all feeds", lambda: len(o.requests()) > FEEDS)
        w.run("pause", "--all")
        wait_for("the pause", lambda: w.log().count("paused") == 2)
        victim = workers_of(p)[0]
        os.kill(victim, signal.SIGKILL)
        replaced(p, victim)
        wait_for("the lease of the new worker", lambda: workers_of(p)[1] in w.leased())
        wait_for("due feeds", lambda: w.json("status")["due"] > FEEDS // 2)
        wait_for("the claimed feeds", lambda: at_rest(lambda: o.stats()["requests"]))
        n = len(o.requests())
        w.run("resume", "--all")
        wait_for("requests after the pause", lambda: len(o.requests()) > n + FEEDS // 2)
        drained(w, p)


@case("feedwheel stop ends a run whose killed worker is about to be restarted")
def stop_all(base):
    with growing(base) as (o, w):
        p = run_with_two(w)
        for _ in range(6): # the delay before a restart doubles each time, up to 3.2 s
            victim = workers_of(p)[1]
            os.kill(victim, signal.SIGKILL)
            replaced(p, victim)
        victim = workers_of(p)[1]
        os.kill(victim, signal.SIGKILL)
        wait_for("the end of the worker", lambda: victim not in workers_of(p))
        w.run("stop")
        equal(p.wait(timeout=60), 0, w.last_log())


@case("a feed whose document crashes two workers is quarantined and listed; all others are collected")
def poison(base):
    with origin(base, samples(base), "--feeds", "30") as o:
        w = Feedwheel(base, CONF)
        test_binary(w)
        w.environment["FEEDWHEEL_TEST_CRASH"] = "/feed/13"
        w.run("import", o.url_file)
        stats = w.run_once()
        states = {f["url"]: f for f in w.json("list")}
        bad = states.pop(o.urls[13])
        equal((bad["status"], bad.get("crashes"), bad["entries"]), ("quarantined", 2, 0))
        equal({f["last_result"] for f in states.values()}, {"ok"})
        equal(stats["restarts"] >= 1, True, "restarts")
        holds(o.urls[13] in w.run("list", "--status", "quarantined").stdout, "it is listed")
        holds("quarantined" in w.run("why", o.urls[13]).stdout, "why prints it")
        del w.environment["FEEDWHEEL_TEST_CRASH"]
        w.run("resume", o.urls[13])
        w.run_once()
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0"), 0, "feeds in quarantine")
        entries = "SELECT count(*) FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?"
        holds(w.one(entries, o.urls[13]) > 0, "without the crash the feed is collected")


run()
