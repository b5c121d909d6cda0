#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-plan: how close a run comes to the lower bound of any order, through real sockets.

The feeds are those of an earlier crawler: 1,597 feeds, whose response times are log-normal (sigma 1)
around a median; 2 % are silent until the timeout, which is 25 medians. All times are divided by SCALE
(from 400 ms and 10 s), so that a table takes minutes.

A run's bound is the largest of: the total time of its visits divided by the slots; its longest visit;
the total time of the visits to one host divided by host_concurrency. It uses the times that the same run
measured, so other load on the machine affects both.

Each of our figures is the median of RUNS runs; the other policies are shown beside it, once. Exit
status 1: a row is short (table.py).

  RUNS=3 SCALE=4 FEEDS=1597 ONLY=words  (ONLY: known first random hosts varied late simulate)
"""
import collections
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from harness import BUILD, SOON, Origin, Feedwheel, samples  # noqa: E402  pylint: disable=wrong-import-position
from table import (  # noqa: E402  pylint: disable=wrong-import-position
    all_due, benchmark, die, head, median, ratio_row, row, scratch, selection, short, size)

RUNS = size("RUNS", 3, 1)
SCALE = size("SCALE", 4.0, 20.0)
FEEDS = size("FEEDS", 1597, 60)
LATE_S = size("LATE_S", 80, 6)
WORK = scratch(BUILD, "bench-plan")
SIMULATE = os.path.join(BUILD, "tools", "simulate")
CORPUS = os.path.join(ROOT, "..", "shared", "corpus", "open")
MEDIAN_MS, TIMEOUT_MS = 400 / SCALE, 10000 / SCALE
POLICIES = ("fifo", "shortest", "longest", "host-path", "batch-unordered", "batch-sorted")
CONF = SOON + (
    "first_byte_timeout_ms = %dms\ntotal_timeout_ms = %dms\nhost_concurrency = 2\n"
    "straggler_timeout_ms = %dms\nconnect_timeout_ms = %dms\n") % (TIMEOUT_MS, 2 * TIMEOUT_MS, 2000 / SCALE, TIMEOUT_MS)


def seconds(v):
    return "%.2f s" % v


# ---- the feeds -----------------------------------------------------------------------------------

def latencies(seed):
    r = random.Random(seed)
    return [max(1, int(MEDIAN_MS * math.exp(r.gauss(0, 1)))) for _ in range(FEEDS)]


def silent(seed):
    """The feeds that are silent: 2 %."""
    return random.Random(seed).sample(range(FEEDS), FEEDS // 50)


def zipf_hosts(n=200):
    """A host, of n, for each feed: the k-th has a share of 1/k."""
    r = random.Random(7)
    return r.choices(range(n), [1 / (k + 1) for k in range(n)], k=FEEDS)


class World:
    """An origin that can be restarted on its port with other latencies, and the URLs of its feeds."""

    def __init__(self, name, hosts=None):
        self.base = os.path.join(WORK, name)
        shutil.rmtree(self.base, ignore_errors=True)
        os.makedirs(self.base)
        self.docs = samples(self.base, "--copies", "1", "--entries", "3")
        self.origin, self.port, self.hosts = None, 0, hosts

    def serve(self, ms, hang=()):
        if self.origin:
            self.origin.stop()
        path = os.path.join(self.base, "ms")
        with open(path, "w", encoding="ascii") as f:
            f.writelines("%d\n" % v for v in ms)
        self.origin = Origin(self.base, self.docs, "--feeds", str(FEEDS), "--latency", path, "--port", str(self.port),
                             plans=["%d hang=start" % i for i in hang], log=False)
        self.port = self.origin.port

    def urls(self):
        if not self.hosts:
            return self.origin.urls
        return ["http://127.1.0.%d:%d/feed/%d" % (h + 1, self.port, i) for i, h in enumerate(self.hosts)]

    def stop(self):
        if self.origin:
            self.origin.stop()


class Copies:
    """Copies of one store, each for one run."""

    def __init__(self, world, conf=""):
        self.world, self.conf, self.n = world, CONF + conf, 0
        self.first = Feedwheel(world.base, self.conf, "first.db")
        with open(os.path.join(world.base, "list"), "w", encoding="ascii") as f:
            f.write("\n".join(world.urls()) + "\n")
        self.first.run("import", os.path.join(world.base, "list"))

    def learn(self, slots):
        """One run, so that all durations are known; afterwards all feeds are due again."""
        run(self.first, slots)
        failed = [u for (u,) in self.first.sql("SELECT url FROM feeds WHERE error IS NOT NULL")]
        if failed:
            self.first.run("set", "--due", *failed)
        all_due(self.first, FEEDS)

    def copy(self):
        self.n += 1
        fw = Feedwheel(self.world.base, self.conf, "copy%d.db" % self.n)
        for f in os.listdir(self.world.base):
            if f.startswith("copy") and f.endswith((".db", ".db-wal", ".db-shm", ".db-checkpoint")):
                os.unlink(os.path.join(self.world.base, f))
        self.first.sql("VACUUM INTO ?", fw.path, write=True)
        return fw


# ---- a run and its bound -------------------------------------------------------------------------

Ran = collections.namedtuple("Ran", "wall bound summary")


def run(fw, slots, *arguments, workers=1):
    """slots: of all workers together."""
    start = time.monotonic()
    command = fw.command("run", "--once", "--json", "--quiet", "--workers", str(workers),
                         "--concurrency", str(slots // workers), *arguments)
    p = subprocess.run(command, env=fw.environment, capture_output=True, text=True, check=False)
    wall = time.monotonic() - start
    if p.returncode not in (0, 1):
        die("bench-plan: run --once %s: exit %d: %s", " ".join(arguments), p.returncode, p.stderr[-500:])
    summary = json.loads(p.stdout)
    if summary["feeds"] != FEEDS:
        die("bench-plan: run --once %s visited %d of %d feeds", " ".join(arguments), summary["feeds"], FEEDS)
    took, chain = [], collections.Counter()
    for url, us in fw.sql("SELECT f.url, v.total_us FROM visits v JOIN feeds f ON f.id = v.feed_id"
                          " WHERE v.run_id = ?", summary["run"]):
        took.append(us)
        chain[url.split("/")[2]] += us
    return Ran(wall, max(sum(took) / slots, max(took), max(chain.values()) / 2) / 1e6, summary)


def orders():
    """True if the binary has the setting `order`."""
    r = subprocess.run([os.path.join(BUILD, "feedwheel"), "help", "settings"],
                       capture_output=True, text=True, check=False)
    return " order " in r.stdout or "\n  order" in r.stdout


def measure(copies, slots, name, most, policies=POLICIES, workers=1):
    """Our order, RUNS times, compared with the bound of the same run; then each policy once."""
    ran = [run(copies.copy(), slots, workers=workers) for _ in range(RUNS)]
    mid = sorted(ran, key=lambda r: r.wall / r.bound)[len(ran) // 2]
    ratio_row("%s, %d slots: run against its bound" % (name, slots),
              seconds(mid.wall), seconds(mid.bound), mid.wall / mid.bound, most)
    for p in policies if orders() else ():
        one = run(copies.copy(), slots, "--order", p)
        row("  %s" % p, seconds(one.wall), seconds(one.bound), "%.3f" % (one.wall / one.bound), "", None)
    return ran


# ---- the cases -----------------------------------------------------------------------------------

def known():
    w = World("known")
    w.serve(latencies(1), silent(2))
    c = Copies(w)
    c.learn(64)
    measure(c, 16, "durations known", 1.03, ("fifo",))
    measure(c, 64, "durations known", 1.03)
    measure(c, 64, "durations known, four workers", 1.10, (), workers=4)
    w.stop()


def first():
    w = World("first")
    w.serve(latencies(1), silent(2))
    c = Copies(w)
    measure(c, 16, "first run, nothing known", 1.10, ())
    measure(c, 64, "first run, nothing known", 1.10, ("fifo",))
    w.stop()


def at_random():
    w = World("random")
    w.serve(latencies(1))
    c = Copies(w)
    c.learn(64)
    w.serve(latencies(1), silent(3))
    measure(c, 16, "2 % timeouts at random", 1.10, ("fifo",))
    measure(c, 64, "2 % timeouts at random", 1.10)
    w.stop()


def hosts():
    w = World("hosts", zipf_hosts())
    w.serve(latencies(1), silent(2))
    c = Copies(w)
    c.learn(64)
    measure(c, 16, "200 hosts, 2 at once each", 1.05, ("fifo",))
    measure(c, 64, "200 hosts, 2 at once each", 1.05)
    w.stop()


def varied():
    """The forecast from earlier runs, when durations have changed by up to 30 % since."""
    w = World("varied")
    ms, r = latencies(1), random.Random(5)
    w.serve(ms, silent(2))
    c = Copies(w)
    c.learn(64)
    w.serve([max(1, int(v * r.uniform(0.7, 1.3))) for v in ms], silent(2))
    for slots in (16, 64):
        ran = [run(c.copy(), slots) for _ in range(RUNS)]
        if "forecast_ms" not in ran[0].summary:
            row("forecast against measured, %d slots" % slots, "", "", "", "0.10", "this binary has no forecast")
            continue
        off = [abs(x.summary["forecast_ms"] / 1000 / x.wall - 1) for x in ran]
        mid = ran[off.index(sorted(off)[len(off) // 2])]
        ratio_row("forecast against measured, 30 %% variation, %d slots: error" % slots,
                  seconds(mid.summary["forecast_ms"] / 1000), seconds(mid.wall), median(off), 0.10)
    w.stop()


def late():
    """Continuous polling for a minute: the lateness of fast feeds, with slow feeds beside them and without."""
    slow_ms, n, p95 = LATE_S * 125, min(1000, 12 * LATE_S), {}
    for name in ("without", "with"):
        w = World("late-" + name)
        r = random.Random(9)
        ms = [int(min(1000, 100 * math.exp(r.gauss(0, 0.5)))) for _ in range(n)]
        slow = set(r.sample(range(n), n // 20)) if name == "with" else ()
        path = os.path.join(w.base, "ms")
        with open(path, "w", encoding="ascii") as f:
            f.writelines("%d\n" % (slow_ms if i in slow else v) for i, v in enumerate(ms))
        w.origin = Origin(w.base, w.docs, "--feeds", str(n), "--latency", path, log=False)
        fw = Feedwheel(
            w.base,
            "first_byte_timeout_ms = 20s\ntotal_timeout_ms = 30s\ninterval_min_ms = %dms\ninterval_ms = %dms\n"
            "interval_max_ms = %dms\nconcurrency = 16\n" % (LATE_S * 312, LATE_S * 500, LATE_S * 500))
        fw.run("import", w.origin.url_file)
        p = fw.start("run", "--quiet")
        time.sleep(LATE_S * 0.75) # all durations are known, and due times are spread
        since = int(time.time() * 1000)
        time.sleep(LATE_S)
        p.terminate()
        p.wait()
        visits = fw.sql("SELECT f.url, v.lateness_ms FROM visits v JOIN feeds f ON f.id = v.feed_id"
                        " WHERE v.at_ms >= ? AND v.at_ms < ?", since, since + LATE_S * 940)
        values = sorted(v for u, v in visits if int(u.rsplit("/", 1)[1]) not in slow)
        p95[name] = values[len(values) * 95 // 100]
        w.stop()
    ratio_row("p95 lateness of fast feeds, 5 %% take %g s, 16 slots" % (slow_ms / 1000),
              "%d ms" % p95["with"], "%d ms" % p95["without"], p95["with"] / max(p95["without"], 1), 1.2)


def simulate():
    if not os.path.exists(SIMULATE):
        row("simulator", "", "", "", "", "build/tools/simulate is not built")
        return
    sys.stdout.flush()
    tiny = "TINY" in os.environ
    more = ["--feeds", "1000", "--days", "7"] if tiny else ["--trace", CORPUS] if os.path.isdir(CORPUS) else []
    code = subprocess.run([SIMULATE, "--bench", *more], check=False).returncode
    if code > 1:
        die("bench-plan: simulate: exit %d", code)
    if code:
        short.append("simulator")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    cases = {"known": known, "first": first, "random": at_random, "hosts": hosts, "varied": varied, "late": late,
             "simulate": simulate}
    only = selection("ONLY", cases)
    head("%d feeds, median %d ms, timeout %d ms; policies once, ours the median of %d" %
         (FEEDS, MEDIAN_MS, TIMEOUT_MS, RUNS))
    for name in only:
        cases[name]()
    shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    benchmark(main)
