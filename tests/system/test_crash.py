#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""kill -9 of a worker, of the master, of all at once, SIGSTOP and SIGTERM, in the middle of a run over growing feeds; then exact
accounting: every entry a feed ever showed is stored, none twice, none changed.

Each request to a growing feed adds one entry; a document shows the newest 40, so answers lost in a crash are made
good by the next one. After a last quiet run feed i must have exactly the entries 1 .. 10 + requests - 1.
FW_CRASH_ROUNDS=100 kills a hundred times (default 6).
"""
import contextlib
import os
import random
import signal
import sqlite3
import time

from growing import CONF, FEEDS, PATIENT, SHORT_LEASE, drained
from harness import BUILD, Wheel, case, equal, holds, origin, run, samples, wait_for, workers_of

ROUNDS = int(os.environ.get("FW_CRASH_ROUNDS", "6"))


@contextlib.contextmanager
def growing(base, latency="lognormal:200:0.8", conf=""):
    """Growing feeds and a wheel that has subscribed to them; the accounts are checked at the end."""
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", latency,
                plans=["* grow=1,start=10,window=40"]) as o:
        w = Wheel(base, CONF + conf)
        w.run("import", o.url_file)
        yield o, w
        settle(w)
        accounted(o, w)


def run_with_two(w):
    p = w.start("run")
    wait_for("two workers", lambda: len(workers_of(p)) == 2)
    return p


def another_in_place_of(p, victim):
    wait_for("another worker", lambda: victim not in workers_of(p) and len(workers_of(p)) == 2)


def work(o):
    """Wait until feeds are asked, from now on."""
    n = o.stats()["requests"]
    wait_for("requests", lambda: o.stats()["requests"] > n)


def held(w, pid):
    """How many feeds are lent to this worker."""
    return w.one("SELECT count(*) FROM leases JOIN claims ON fence BETWEEN first_fence AND last_fence"
                 " JOIN workers USING (worker) WHERE pid = ?", pid)


def stopped_with_work(w, pid, least=1):
    """SIGSTOP a worker while so many feeds are lent to it, and not in the middle of a transaction; how many they are."""
    while True:
        wait_for("it to have work", lambda: held(w, pid) >= least)
        os.kill(pid, signal.SIGSTOP)
        n = held(w, pid)
        if n >= least and not w.is_locked():
            return n
        os.kill(pid, signal.SIGCONT)


def open_files(p):
    fds = "/proc/%d/fd" % p.pid
    files = []
    for fd in os.listdir(fds):
        with contextlib.suppress(OSError): # closed since
            files.append(os.readlink(os.path.join(fds, fd)))
    return files


def gone(pids):
    wait_for("their end", lambda: not any(os.path.exists("/proc/%d" % x) for x in pids))


def settle(w):
    """Runs until everything has been fetched after the last crash."""
    for _ in range(30):
        equal(w.run_once(*PATIENT, "--concurrency", str(FEEDS))["failed"], 0, "failures in a quiet run")
        if not w.one("SELECT count(*) FROM leases"):
            if w.one("SELECT count(*) FROM wheel WHERE last_kind = 0") == 0:
                break
        time.sleep(1.2)
    w.run("set", "--due", *(u for (u,) in w.sql("SELECT url FROM feeds"))) # one that failed during the load would wait longer
    stats = w.run_once(*PATIENT, "--concurrency", str(FEEDS))
    equal((stats["feeds"], stats["failed"]), (FEEDS, 0), "the last run visits all")


def accounted(o, w):
    """No entry lost, none twice, none changed."""
    hosts = o.stats(hosts=True)["hosts"]
    equal(len(hosts), FEEDS, "feeds asked")
    wrong = []
    for i, url in enumerate(o.urls):
        asked = hosts[url.split("/")[2].split(":")[0]]["requests"]
        want = ["feed-%d-entry-%d" % (i, k) for k in range(1, 10 + asked)]
        have = [g for (g,) in w.sql("SELECT guid FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ? "
                                    "ORDER BY CAST(substr(guid, instr(guid, 'entry-') + 6) AS INTEGER)", url)]
        if have != want:
            wrong.append("feed %d after %d requests: %d entries, lost %s, extra %s" % (
                i, asked, len(have), sorted(set(want) - set(have))[:5], sorted(set(have) - set(want))[:5]))
    equal(wrong, [], "accounting")
    equal(w.one("SELECT max(revision) FROM entries"), 1, "revisions")
    equal(w.one("SELECT count(*) FROM leases"), 0, "leases still out")
    equal(w.one("SELECT coalesce(sum(busy_n), 0) FROM hosts"), 0, "hosts still busy")
    equal(w.sql("PRAGMA integrity_check"), [("ok",)])
    equal(o.stats()["violations"], 0, "validators")
    print("# %d entries of %d requests" % (w.one("SELECT count(*) FROM entries"), sum(h["requests"] for h in hosts.values())))


@case("kill -9 of a worker, again and again: it is replaced, nothing is lost or doubled") # invariants 1-3
def kill_worker(base):
    rng = random.Random(1)
    with growing(base) as (o, w):
        for k in range(ROUNDS):
            if k % 4 == 0: # a new master, for it pauses longer after each death
                p = run_with_two(w)
            work(o)
            time.sleep(rng.uniform(0, 0.9))
            victim = rng.choice(workers_of(p))
            os.kill(victim, signal.SIGKILL)
            another_in_place_of(p, victim)
            if k % 4 == 3 or k == ROUNDS - 1:
                drained(w, p)
        equal(w.one("SELECT count(*) FROM wheel WHERE status <> 0"), 0, "healthy feeds are not blamed")


@case("a worker killed before it could give back what its predecessor held: the next one does")
def kill_newborn(base):
    left = 0
    with growing(base, "fixed:1500") as (_, w):
        for _ in range(3):
            p = run_with_two(w)
            old = workers_of(p)
            stopped_with_work(w, old[0])
            os.kill(old[0], signal.SIGKILL)
            newborn = set()
            while not newborn: # no pause: it is to be caught before it has opened the store
                newborn = set(workers_of(p)) - set(old)
            os.kill(min(newborn), signal.SIGKILL)
            another_in_place_of(p, min(newborn))
            wait_for("it to begin", lambda: w.one("SELECT count(*) FROM workers WHERE pid = ?", workers_of(p)[1]))
            drained(w, p)
            left += w.one("SELECT count(*) FROM leases")
        equal(left, 0, "leases nobody gave back")


@case("kill -9 of the master: the workers end by themselves, the next run goes on")
def kill_master(base):
    rng = random.Random(2)
    with growing(base) as (o, w):
        for _ in range(max(1, ROUNDS // 2)):
            p = run_with_two(w)
            orphans = workers_of(p)
            work(o)
            time.sleep(rng.uniform(0, 1.2))
            p.kill()
            p.wait(timeout=60)
            gone(orphans)


@case("kill -9 of master and workers at once: the next run does not wait for their leases, and blames no feed")
def kill_all(base):
    rng = random.Random(3)
    left = 0
    with growing(base) as (o, w):
        for _ in range(max(2, ROUNDS // 2)):
            p = run_with_two(w)
            work(o)
            time.sleep(rng.uniform(0, 1.2))
            wait_for("requests in flight", lambda: o.stats()["in_flight"])
            all_of = [p.pid] + workers_of(p)
            p.send_signal(signal.SIGSTOP)
            for pid in reversed(all_of):
                os.kill(pid, signal.SIGKILL)
            p.wait(timeout=60)
            gone(all_of)
            left += w.one("SELECT count(*) FROM leases")
            w.run_once() # has less patience than their leases
            equal(w.one("SELECT count(*) FROM leases"), 0, "leases of the dead")
        holds(left, "there were leases to give back")
        equal(w.one("SELECT count(*) FROM wheel WHERE status <> 0 OR crash_n <> 0"), 0, "feeds blamed")


@case("a worker stopped for longer than its leases wakes up and writes nothing stale")
def stopped_worker(base):
    with growing(base, conf=SHORT_LEASE) as (_, w):
        p = run_with_two(w)
        sleeper = workers_of(p)[0]
        stopped_with_work(w, sleeper)
        wait_for("the other to have it", lambda: not held(w, sleeper))
        os.kill(sleeper, signal.SIGCONT)
        wait_for("work of its own", lambda: held(w, sleeper))
        drained(w, p)


@case("what it had not begun to fetch is left to those who have it now") # POL-05: not asked twice
def late_start(base):
    slots = 4
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:1000") as o:
        w = Wheel(base, SHORT_LEASE + "workers = 2\nconcurrency = %d\n" % slots)
        w.run("import", o.url_file)
        p = run_with_two(w)
        wait_for("requests", lambda: o.stats()["requests"] > 2 * slots)
        sleeper = workers_of(p)[0]
        stopped_with_work(w, sleeper, 2 * slots + 1)
        wait_for("the others", lambda: w.one("SELECT count(*) FROM wheel WHERE last_kind = 0") == 0, 30)
        sent = len(o.requests())
        os.kill(sleeper, signal.SIGCONT)
        wait_for("it to see that", lambda: "its lease ran out" in w.words())
        time.sleep(1) # in which it would begin the others
        drained(w, p)
        late = len(o.requests()) - sent
        holds(late <= slots, "%d requests after it woke: more than had begun, and were on their way" % late)
        begun = w.words().count("its lease ran out")
        n = len(o.requests()) # one to each feed, and those that came too late; what had begun and was not yet sent may have timed out
        holds(FEEDS < n <= FEEDS + begun, "%d requests, %d visits too late" % (n, begun))


def test_binary(w):
    """The binary whose master loses patience with a silent worker after 8 s."""
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")


@case("a worker that shows no sign of life is killed and replaced")
def hung_worker(base):
    with growing(base) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        sleeper = workers_of(p)[0]
        stopped_with_work(w, sleeper)
        another_in_place_of(p, sleeper)
        drained(w, p)
        holds("no sign of life" in w.words(), "said so")


@case("all stopped together, as by ^Z: nobody is taken for dead afterwards")
def all_stopped(base):
    with growing(base) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        work(o)
        before = workers_of(p)
        os.killpg(p.pid, signal.SIGSTOP)
        time.sleep(9)
        os.kill(p.pid, signal.SIGCONT)
        time.sleep(0.5) # it has looked at them
        os.killpg(p.pid, signal.SIGCONT)
        work(o)
        equal(workers_of(p), before, "workers")
        drained(w, p)


@case("^C, which reaches master and workers alike, drains as well")
def interrupt(base):
    with growing(base, "fixed:2000", "concurrency = 10\n") as (o, w):
        p = run_with_two(w)
        wait_for("requests in flight", lambda: o.stats()["in_flight"] >= 10)
        os.killpg(p.pid, signal.SIGINT)
        equal(p.wait(timeout=60), 0, w.last_words())
        equal([r["end"] for r in o.requests() if r["end"] != "ok"], [], "transfers cut")
        equal(w.one("SELECT count(*) FROM leases"), 0, "leases")


@case("a --once whose workers are told to leave by others than the master goes on to its end")
def once_goes_on(base):
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:1000") as o:
        w = Wheel(base, CONF + "concurrency = 3\n")
        w.run("import", o.url_file)
        p = w.start("run", "--once")
        wait_for("requests", lambda: o.stats()["requests"] > 2)
        before = workers_of(p)
        p.send_signal(signal.SIGHUP)
        wait_for("other workers", lambda: len(workers_of(p)) == 2 and not set(before) & set(workers_of(p)))
        work(o)
        os.kill(workers_of(p)[0], signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_words())
        equal(w.one("SELECT count(*) FROM wheel WHERE last_kind = 0"), 0, "feeds never visited")


@case("SIGTERM drains: what is in flight is finished and stored, leases go back, exit 0") # invariant 7
def drain(base):
    with growing(base, "fixed:3000", "concurrency = 10\n") as (o, w): # 9 s for all of them
        p = w.start("run")
        wait_for("requests in flight", lambda: o.stats()["in_flight"] >= 10)
        drained(w, p)
        equal(w.one("SELECT count(*) FROM leases"), 0, "leases")
        log = [r for r in o.requests() if r["feed"] >= 0]
        equal([r["end"] for r in log if r["end"] != "ok"], [], "transfers cut")
        equal(w.one("SELECT count(*) FROM visits"), len(log), "each visit made is stored")
        holds(len(log) < FEEDS, "not everything was fetched first")


@case("a second signal leaves at once; the next run need not wait for the leases, nothing is lost")
def hurry(base):
    with growing(base, "fixed:8000", "log_level = debug\n") as (o, w):
        p = w.start("run")
        wait_for("requests", lambda: o.stats()["requests"] > 5)
        p.send_signal(signal.SIGTERM) # it would wait for the answers, 8 s
        wait_for("it to be heard", lambda: "workers drain" in w.words())
        time.sleep(0.7) # sooner would be one burst
        p.send_signal(signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_words())
        holds(w.one("SELECT count(*) FROM leases"), "leases were left behind")


@case("SIGTERM while a worker stands still: it is killed when drain_timeout_ms are over, at once when told twice; the other drains")
def drain_stopped(base):
    with growing(base, "fixed:500", "drain_timeout_ms = 1s\n") as (_, w):
        for twice in (False, True):
            p = run_with_two(w)
            sleeper = workers_of(p)[0]
            stopped_with_work(w, sleeper)
            begun = time.monotonic()
            p.send_signal(signal.SIGTERM)
            if twice:
                time.sleep(0.7) # sooner would be one burst
                p.send_signal(signal.SIGTERM)
            equal(p.wait(timeout=60), 0, w.last_words())
            print("# it took %.1f s" % (time.monotonic() - begun))
            holds("worker %d does not answer" % sleeper in w.words(), w.words())
            holds("no sign of life" not in w.words(), w.words())


@case("SIGTERM while the server stands still: it is killed when drain_timeout_ms are over, and what it may have lost is said")
def drain_stopped_server(base):
    w = Wheel(base, CONF + "drain_timeout_ms = 1s\nlisten = 127.0.0.1:0\n")
    p = w.start("run")
    wait_for("a server", lambda: len(workers_of(p)) == 3 and "listening" in w.words())
    server = workers_of(p)[-1]
    os.kill(server, signal.SIGSTOP)
    p.send_signal(signal.SIGTERM)
    equal(p.wait(timeout=60), 3, w.last_words())
    holds("server %d does not answer" % server in w.words() and "accepted in memory is lost" in w.words(), w.words())


@case("feedwheel stop drains from outside")
def stop_command(base):
    with growing(base) as (o, w):
        p = w.start("run")
        wait_for("requests", lambda: o.stats()["requests"] > FEEDS)
        w.run("stop")
        p.wait(timeout=60)
        equal(p.returncode, 0)


@case("a message in the store reloads the configuration: the workers drain and others start")
def reload_message(base):
    with growing(base) as (o, w):
        p = run_with_two(w)
        before = workers_of(p)
        wait_for("requests", lambda: o.stats()["requests"] > 10)
        w.sql("INSERT INTO controls (kind, created_ms) VALUES (4, 0)", write=True)
        wait_for("other workers", lambda: len(workers_of(p)) == 2 and not set(before) & set(workers_of(p)))
        holds("read again" in w.words(), "said so")
        drained(w, p)


@case("SIGHUP while the store is not yet open kills nobody: it is heard when the workers are there")
def reload_early(base):
    with growing(base, "fixed:100") as (o, w):
        lock = sqlite3.connect(w.path, isolation_level=None)
        lock.execute("PRAGMA locking_mode = EXCLUSIVE")
        lock.execute("BEGIN EXCLUSIVE")
        p = w.start("run")
        wait_for("it to wait for the store", lambda: w.path in open_files(p))
        p.send_signal(signal.SIGHUP)
        lock.execute("ROLLBACK")
        lock.close()
        wait_for("it to be heard", lambda: "SIGHUP: configuration read again" in w.words())
        wait_for("requests", lambda: o.stats()["requests"])
        drained(w, p)


@case("a pause holds for those too who come after a worker's death, until a message resumes")
def paused(base):
    with growing(base, "fixed:100") as (o, w):
        p = run_with_two(w)
        wait_for("all to be asked", lambda: len(o.requests()) > FEEDS)
        w.sql("INSERT INTO controls (kind, created_ms) VALUES (2, 0)", write=True)
        wait_for("the pause", lambda: w.words().count("paused") == 2)
        victim = workers_of(p)[0]
        os.kill(victim, signal.SIGKILL)
        another_in_place_of(p, victim)
        wait_for("its sign of life", lambda: w.one("SELECT count(*) FROM workers WHERE pid = ?", workers_of(p)[1]))
        wait_for("feeds to be due", lambda: w.json("status")["due"] > FEEDS // 2)
        wait_for("all to be given back", lambda: w.json("status")["lent"] == 0)
        asked = len(o.requests())
        time.sleep(1.5)
        equal(len(o.requests()), asked, "requests during a pause")
        w.sql("INSERT INTO controls (kind, created_ms) VALUES (3, 0)", write=True)
        wait_for("all to be asked again", lambda: len(o.requests()) > asked + FEEDS // 2)
        drained(w, p)


@case("feedwheel stop is obeyed for a worker too that is dead at the moment")
def stop_all(base):
    with growing(base) as (o, w):
        p = run_with_two(w)
        for _ in range(6): # each time it is left for dead twice as long: for 3.2 s in the end
            victim = workers_of(p)[1]
            os.kill(victim, signal.SIGKILL)
            another_in_place_of(p, victim)
        victim = workers_of(p)[1]
        os.kill(victim, signal.SIGKILL)
        wait_for("it to be gone", lambda: victim not in workers_of(p))
        w.run("stop")
        equal(p.wait(timeout=60), 0, w.last_words())


@case("a document that kills its reader twice is set aside and shown; all others are collected")
def poison(base):
    with origin(base, samples(base), "--feeds", "30") as o:
        w = Wheel(base, CONF)
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
        holds("set aside" in w.run("why", o.urls[13]).stdout, "why says so")
        del w.environment["FEEDWHEEL_TEST_CRASH"]
        w.run("resume", o.urls[13])
        w.run_once()
        equal(w.one("SELECT count(*) FROM wheel WHERE status <> 0"), 0, "nothing is set aside any more")
        holds(w.one("SELECT count(*) FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?", o.urls[13]) > 0,
              "once the reader is mended, the feed is read")


run()
