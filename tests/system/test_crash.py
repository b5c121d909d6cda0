#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""kill -9 of a worker, of the master, of all at once, SIGSTOP and SIGTERM, in the middle of a run
over growing feeds; then exact accounting: every entry a feed ever showed is stored, none twice,
none changed.

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

from growing import CONF, FEEDS, LONG_LEASE, PATIENT, SHORT_LEASE, asked_each, at_rest, drained
from harness import BUILD, Feedwheel, case, equal, holds, let_pass, origin, run, samples, wait_for, workers_of

LOST = "this worker's lease is lost"
ROUNDS = int(os.environ.get("FW_CRASH_ROUNDS", "6"))


@contextlib.contextmanager
def growing(base, latency="lognormal:200:0.8", conf=""):
    """Growing feeds and a feedwheel that has subscribed to them; the accounts are checked at the end."""
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", latency,
                plans=["* grow=1,start=10,window=40"]) as o:
        w = Feedwheel(base, CONF + conf)
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


def host_of(url):
    return url.split("/")[2].split(":")[0]


def all_asked_again(o):
    before = asked_each(o)
    wait_for("all to be asked", lambda: all(n > b for n, b in zip(asked_each(o), before)))


def work(o):
    """Wait until feeds are asked, from now on."""
    n = o.stats()["requests"]
    wait_for("requests", lambda: o.stats()["requests"] > n)


def feeds_of(w, pid):
    """Those in the shards that this worker has leased."""
    return [u for (u,) in w.sql("SELECT url FROM feeds JOIN shards ON shard = position >> 53 & 1023 JOIN workers ON "
                                "worker = workers.id"
                                " WHERE workers.name LIKE ?", "%%/%d/%%" % pid)]


def in_flight(o, w, pid):
    """How many requests of this worker are being answered."""
    hosts = o.stats(hosts=True)["hosts"]
    return sum(hosts.get(host_of(u), {"in_flight": 0})["in_flight"] for u in feeds_of(w, pid))


def stopped_with_work(o, w, p, least=1):
    """SIGSTOP a worker of which so many requests are being answered, not in the middle of a
    transaction; its process id."""
    def busiest():
        return max((in_flight(o, w, pid), pid) for pid in workers_of(p))
    while True:
        wait_for("one to have work", lambda: busiest()[0] >= least)
        pid = busiest()[1]
        os.kill(pid, signal.SIGSTOP)
        if in_flight(o, w, pid) >= least and not w.is_locked():
            return pid
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
        if w.one("SELECT count(*) FROM schedule WHERE last_kind = 0") == 0:
            break
        let_pass(1.2, "the retry delay of what failed in the load")
    # one that failed during the load would wait longer
    w.run("set", "--due", *(u for (u,) in w.sql("SELECT url FROM feeds")))
    stats = w.run_once(*PATIENT, "--concurrency", str(FEEDS))
    equal((stats["feeds"], stats["failed"]), (FEEDS, 0), "the last run visits all")


def accounted(o, w):
    """No entry lost, none twice, none changed."""
    hosts = o.stats(hosts=True)["hosts"]
    equal(len(hosts), FEEDS, "feeds asked")
    wrong = []
    for i, url in enumerate(o.urls):
        asked = hosts[host_of(url)]["requests"]
        want = ["feed-%d-entry-%d" % (i, k) for k in range(1, 10 + asked)]
        have = [g for (g,) in w.sql("SELECT guid FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ? "
                                    "ORDER BY CAST(substr(guid, instr(guid, 'entry-') + 6) AS INTEGER)", url)]
        if have != want:
            wrong.append("feed %d after %d requests: %d entries, lost %s, extra %s" % (
                i, asked, len(have), sorted(set(want) - set(have))[:5], sorted(set(have) - set(want))[:5]))
    equal(wrong, [], "accounting")
    equal(w.one("SELECT max(revision) FROM entries"), 1, "revisions")
    equal(w.leased(), {}, "leases")
    equal(w.sql("PRAGMA integrity_check"), [("ok",)])
    equal(o.stats()["violations"], 0, "validators")
    print("# %d entries of %d requests" %
          (w.one("SELECT count(*) FROM entries"),
           sum(h["requests"] for h in hosts.values())))


@case("kill -9 of a worker, again and again: it is replaced, its feeds are asked again at once, nothing is lost or "
      "doubled") # invariants 1-3
def kill_worker(base):
    rng = random.Random(1)
    with growing(base, conf=LONG_LEASE) as (o, w):
        for k in range(ROUNDS):
            if k % 4 == 0: # a new master, for it pauses longer after each death
                p = run_with_two(w)
            work(o)
            let_pass(rng.uniform(0, 0.9), "a kill at any moment")
            victim = rng.choice(workers_of(p))
            os.kill(victim, signal.SIGKILL)
            another_in_place_of(p, victim)
            all_asked_again(o)
            if k % 4 == 3 or k == ROUNDS - 1:
                drained(w, p)
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0"), 0, "healthy feeds are not blamed")


@case("a worker killed before it could end its predecessor's lease: the next one does")
def kill_newborn(base):
    with growing(base, "fixed:1500", LONG_LEASE) as (o, w):
        for _ in range(3):
            p = run_with_two(w)
            old = workers_of(p)
            os.kill(stopped_with_work(o, w, p), signal.SIGKILL)
            newborn = set()
            while not newborn: # no pause: it is to be caught before it has opened the store
                newborn = set(workers_of(p)) - set(old)
            os.kill(min(newborn), signal.SIGKILL)
            another_in_place_of(p, min(newborn))
            wait_for("it to begin", lambda: workers_of(p)[1] in w.leased())
            all_asked_again(o)
            drained(w, p)
            equal(w.leased(), {}, "leases")


@case("kill -9 of the master: the workers end by themselves, the next run goes on")
def kill_master(base):
    rng = random.Random(2)
    with growing(base) as (o, w):
        for _ in range(max(1, ROUNDS // 2)):
            p = run_with_two(w)
            orphans = workers_of(p)
            work(o)
            let_pass(rng.uniform(0, 1.2), "a kill at any moment")
            p.kill()
            p.wait(timeout=60)
            gone(orphans)


@case("kill -9 of master and workers at once: the next run does not wait for their leases, and blames no feed")
def kill_all(base):
    rng = random.Random(3)
    with growing(base, conf=LONG_LEASE) as (o, w):
        for _ in range(max(2, ROUNDS // 2)):
            p = run_with_two(w)
            work(o)
            let_pass(rng.uniform(0, 1.2), "a kill at any moment")
            wait_for("requests in flight", lambda: o.stats()["in_flight"])
            all_of = [p.pid] + workers_of(p)
            p.send_signal(signal.SIGSTOP)
            for pid in reversed(all_of):
                os.kill(pid, signal.SIGKILL)
            p.wait(timeout=60)
            gone(all_of)
            holds(w.leased(), "the dead have leases")
            w.run_once()
            equal(w.leased(), {}, "leases")
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0 OR crash_n <> 0"), 0, "feeds blamed")


@case("a worker stopped for longer than its lease wakes up and writes nothing stale, and begins anew")
def stopped_worker(base):
    with growing(base, conf=SHORT_LEASE) as (o, w):
        p = run_with_two(w)
        sleeper = stopped_with_work(o, w, p)
        wait_for("the other to have it", lambda: sleeper not in w.leased())
        all_asked_again(o)
        os.kill(sleeper, signal.SIGCONT)
        wait_for("it to see that", lambda: LOST in w.words())
        wait_for("shards of its own", lambda: w.leased().get(sleeper))
        drained(w, p)


@case("what it had not begun to fetch is left to those who have it now") # POL-05: not asked twice
def late_start(base):
    slots = 4
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:1000") as o:
        w = Feedwheel(base, SHORT_LEASE + "workers = 2\nbatch_ms = 50ms\nconcurrency = %d\n" % slots)
        w.run("import", o.url_file)
        p = run_with_two(w)
        wait_for("requests", lambda: o.stats()["requests"] > 2 * slots)
        sleeper = stopped_with_work(o, w, p, slots)
        wait_for("the others", lambda: w.one("SELECT count(*) FROM schedule WHERE last_kind = 0") == 0, 30)
        sent = len(o.requests())
        os.kill(sleeper, signal.SIGCONT)
        wait_for("it to see that", lambda: LOST in w.words())
        wait_for("it to begin anew", lambda: w.leased().get(sleeper))
        drained(w, p)
        equal(len(o.requests()), sent, "requests, after it woke none")
        # one to each feed, and a second where the first was not stored: it was under way, or had just ended
        holds(FEEDS + slots <= sent <= FEEDS + 2 * slots, "%d requests" % sent)


def test_binary(w):
    """The binary whose master loses patience with a silent worker after 8 s."""
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")


@case("a worker that shows no sign of life is killed and replaced")
def hung_worker(base):
    with growing(base, conf=LONG_LEASE) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        sleeper = stopped_with_work(o, w, p)
        another_in_place_of(p, sleeper)
        all_asked_again(o)
        drained(w, p)
        holds("no heartbeat" in w.words(), "said so")


@case("all stopped together, as by ^Z: nobody is taken for dead afterwards")
def all_stopped(base):
    with growing(base) as (o, w):
        test_binary(w)
        p = run_with_two(w)
        work(o)
        before = workers_of(p)
        os.killpg(p.pid, signal.SIGSTOP)
        let_pass(9, "longer than the master waits for a heartbeat")
        os.kill(p.pid, signal.SIGCONT)
        let_pass(0.5, "the master's look at its children")
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
        equal(w.leased(), {}, "leases")


@case("a --once whose workers are told to leave by others than the master goes on to its end")
def once_goes_on(base):
    with origin(base, samples(base), "--feeds", str(FEEDS), "--latency", "fixed:1000") as o:
        w = Feedwheel(base, CONF + "concurrency = 3\n")
        w.run("import", o.url_file)
        p = w.start("run", "--once")
        wait_for("requests", lambda: o.stats()["requests"] > 2)
        before = workers_of(p)
        p.send_signal(signal.SIGHUP)
        wait_for("other workers", lambda: len(workers_of(p)) == 2 and not set(before) & set(workers_of(p)))
        work(o)
        os.kill(workers_of(p)[0], signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_words())
        equal(w.one("SELECT count(*) FROM schedule WHERE last_kind = 0"), 0, "feeds never visited")


@case("SIGTERM drains: what is in flight is finished and stored, the leases end, exit 0") # invariant 7
def drain(base):
    with growing(base, "fixed:3000", "concurrency = 10\n") as (o, w): # 9 s for all of them
        p = w.start("run")
        wait_for("requests in flight", lambda: o.stats()["in_flight"] >= 10)
        drained(w, p)
        equal(w.leased(), {}, "leases")
        log = [r for r in o.requests() if r["feed"] >= 0]
        equal([r["end"] for r in log if r["end"] != "ok"], [], "transfers cut")
        equal(w.one("SELECT count(*) FROM visits"), len(log), "each visit made is stored")
        holds(len(log) < FEEDS, "not everything was fetched first")


@case("a second signal leaves at once; the next run need not wait for the leases, nothing is lost")
def hurry(base):
    with growing(base, "fixed:8000", LONG_LEASE + "log_level = debug\n") as (o, w):
        p = w.start("run")
        wait_for("requests", lambda: o.stats()["requests"] > 5)
        p.send_signal(signal.SIGTERM) # it would wait for the answers, 8 s
        wait_for("it to be heard", lambda: "workers drain" in w.words())
        let_pass(0.7, "signals within this count as one")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(timeout=60), 0, w.last_words())
        holds(w.leased(), "leases were left behind")


@case("SIGTERM while a worker stands still: it is killed when drain_timeout_ms are over, at once when told twice; the "
      "other drains")
def drain_stopped(base):
    with growing(base, "fixed:500", "drain_timeout_ms = 1s\n") as (o, w):
        for twice in (False, True):
            p = run_with_two(w)
            sleeper = stopped_with_work(o, w, p)
            begun = time.monotonic()
            p.send_signal(signal.SIGTERM)
            if twice:
                let_pass(0.7, "signals within this count as one")
                p.send_signal(signal.SIGTERM)
            equal(p.wait(timeout=60), 0, w.last_words())
            print("# it took %.1f s" % (time.monotonic() - begun))
            holds("worker %d killed: it does not respond" % sleeper in w.words(), w.words())
            holds("no heartbeat" not in w.words(), w.words())


@case("SIGTERM while the server stands still: it is killed when drain_timeout_ms are over, and what it may have lost "
      "is said")
def drain_stopped_server(base):
    w = Feedwheel(base, CONF + "drain_timeout_ms = 1s\nlisten = 127.0.0.1:0\n")
    p = w.start("run")
    wait_for("a server", lambda: len(workers_of(p)) == 3 and "listening" in w.words())
    server = workers_of(p)[-1]
    os.kill(server, signal.SIGSTOP)
    p.send_signal(signal.SIGTERM)
    equal(p.wait(timeout=60), 3, w.last_words())
    holds("server %d killed: it does not respond" % server in w.words()
          and "accepted in memory are lost" in w.words(), w.words())


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
        w.message(4)
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
        w.run("pause", "--all")
        wait_for("the pause", lambda: w.words().count("paused") == 2)
        victim = workers_of(p)[0]
        os.kill(victim, signal.SIGKILL)
        another_in_place_of(p, victim)
        wait_for("its lease", lambda: workers_of(p)[1] in w.leased())
        wait_for("feeds to be due", lambda: w.json("status")["due"] > FEEDS // 2)
        wait_for("what was claimed", lambda: at_rest(lambda: o.stats()["requests"]))
        asked = len(o.requests())
        w.run("resume", "--all")
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
        holds("quarantined" in w.run("why", o.urls[13]).stdout, "why says so")
        del w.environment["FEEDWHEEL_TEST_CRASH"]
        w.run("resume", o.urls[13])
        w.run_once()
        equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0"), 0, "nothing is set aside any more")
        holds(w.one("SELECT count(*) FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?",
              o.urls[13]) > 0, "once the reader is mended, the feed is read")


run()
