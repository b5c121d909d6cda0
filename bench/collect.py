#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-collect: the whole job against its yardsticks, in one table.

Every feed is on another loopback host; the test origin serves real documents when ../shared/corpus/open is there,
else generated ones of the same size. Each figure is the median of RUNS rounds; ours and the yardstick take turns, so
that a noisy machine harms both. The last word of a row is ok, short, or skipped with its reason; the exit code is 1 when
a row is short.

  RUNS=3 FEEDS=10000 ONLY=words  (ONLY: part of a row's group: curl, 304, node, rss, many, tls, import, start, store)
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from harness import BUILD, SOON, SOON_S, Origin, Wheel, certificate  # noqa: E402  pylint: disable=wrong-import-position

RUNS = int(os.environ.get("RUNS", "3"))
FEEDS = int(os.environ.get("FEEDS", "10000"))
WORK = os.path.join(BUILD, "bench-collect")
CORPUS = os.path.join(ROOT, "..", "shared", "corpus", "open")
REF = os.path.join(BUILD, "bench", "fetch_ref")
short = []


def row(name, ours, reference, ratio, goal, fine):
    """fine: True, False, None where there is no goal, or the reason why it was skipped."""
    word = "skipped: " + fine if isinstance(fine, str) else "-" if fine is None else "ok" if fine else "short"
    print("%-50s %13s %13s %8s %8s  %s" % (name, ours, reference, ratio, goal, word), flush=True)
    if fine is False:
        short.append(name)


def seconds(v):
    return "%.2f s" % v


def median(values):
    return statistics.median(values)


def measure(command, **more):
    """Run a command; wall seconds, CPU seconds of it and its children, peak RSS of the largest in KiB, output."""
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    out = p.stdout.read()
    p.stdout.close()
    _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - start, use.ru_utime + use.ru_stime, use.ru_maxrss, out, p.returncode


def documents():
    """A directory of documents of about 61 KB and 25 entries on average, and its name for people."""
    docs = os.path.join(WORK, "docs")
    os.makedirs(docs)
    if not os.path.isdir(CORPUS):
        subprocess.run([os.path.join(ROOT, "tools", "make-samples.py"), docs, "--copies", "8", "--entries", "25",
                        "--bytes", "61000", "--now", "1795266000"], check=True)
        return docs, "generated documents"
    for name in os.listdir(CORPUS):
        if os.path.getsize(os.path.join(CORPUS, name)) >= 6000: # the shorter ones are mostly cut-down test data
            os.symlink(os.path.join(CORPUS, name), os.path.join(docs, name))
    return docs, "real documents"


def fresh(name, conf=""):
    base = os.path.join(WORK, name)
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    return Wheel(base, conf)


def collect(wheel, *arguments):
    """One `run --once`: wall seconds, CPU seconds, the summary."""
    wall, cpu, _, out, code = measure(wheel.command("run", "--once", "--json", "--quiet", *arguments), env=wheel.environment)
    if code not in (0, 1):
        sys.exit("bench-collect: feedwheel run --once: exit %d" % code)
    return wall, cpu, json.loads(out)


# A minute between the passes, for the full-text index to follow in the background as it does in daily use.
PAUSE = "interval_min_ms = 1s\ninterval_ms = 60s\ninterval_max_ms = 60s\n"


def pause(wheel, since):
    """Keep the wheel running, with nothing due, while the index is completed and then merged; then wait until everything is
    due again. Seconds until the index was complete, or None when there was not enough time."""
    p, took = wheel.start("run", "--quiet"), None
    start = time.monotonic()
    while time.monotonic() - since < 35: # the first fall due again at 54 s after their visit, which began before since
        time.sleep(0.2)
        if took is None and wheel.one(
                "SELECT value >= (SELECT coalesce(max(id), 0) FROM entries) FROM meta WHERE name = 'indexed_entry_id'"):
            took = time.monotonic() - start
    p.terminate()
    p.wait()
    time.sleep(max(0, since + 68 - time.monotonic())) # jitter is a tenth
    return took


# ---- the rows -----------------------------------------------------------------------------------------------

def unchanged_pass(wheel):
    wall, _, second = collect(wheel)
    if second["unchanged"] + second["failed"] != second["feeds"] or second["feeds"] != FEEDS:
        sys.exit("bench-collect: the second pass was not all 304: %s" % second)
    return wall, second


def whole_job(o, same):
    """Against curl (bodies) and bare libcurl (304)."""
    config = os.path.join(WORK, "curl.cfg")
    with open(config, "w", encoding="ascii") as f:
        f.writelines('url = %s\noutput = /dev/null\n' % u for u in o.urls)
    curl, ours, again, bare, index, failed = [], [], [], [], [], 0
    for _ in range(RUNS):
        curl.append(measure(["curl", "--no-progress-meter", "--parallel", "--parallel-max", "300", "--compressed", "-K", config])[0])
        wheel = fresh("whole", PAUSE)
        wheel.run("import", o.url_file)
        wall, _, first = collect(wheel)
        ours.append(wall)
        failed = first["failed"]
        index.append(pause(wheel, time.monotonic()))
        wall, second = unchanged_pass(wheel)
        again.append(wall)
        if os.path.exists(REF):
            bare.append(measure([REF, same.url_file, "300"])[0])
    pause(wheel, time.monotonic())
    held = wheel.hold_wal()
    unchanged_pass(wheel)
    wal_bytes = wheel.wal_size() / FEEDS
    held.close()
    first_entries = wheel.one("SELECT count(*) FROM entries")
    print("# %d feeds (%d of them hold no feed), %d entries, %.0f MiB decoded, store of %.0f MiB" % (
        first["feeds"], failed, first_entries, first["body_bytes"] / 1048576, os.path.getsize(wheel.path) / 1048576))
    ratio = median(b / a for a, b in zip(curl, ours))
    row("whole job: wall, against curl --parallel", seconds(median(ours)), seconds(median(curl)), "%.2f" % ratio, "<=2.0",
        ratio <= 2.0)
    if bare:
        ratio = median(bare) / median(again)
        row("second pass, all 304: feeds/s, bare libcurl", "%.0f" % (FEEDS / median(again)), "%.0f" % (FEEDS / median(bare)),
            "%.2f" % ratio, ">=0.6", ratio >= 0.6)
    else:
        row("second pass, all 304: feeds/s, bare libcurl", "%.0f" % (FEEDS / median(again)), "-", "-", ">=0.6",
            "bench/fetch_ref is not built")
    row("full-text index complete, after the whole job", seconds(median(index)) if None not in index else "> 35 s", "-", "-", "-",
        True)
    row("commits per 1,000 visits (304)", "%.1f" % (second["commits"] * 1000 / FEEDS), "-", "-", "-", True)
    row("bytes of WAL per visit (304)", "%.0f" % wal_bytes, "-", "-", "-", True)
    return median(ours)


def node(o, ours_wall):
    home = os.path.join(BUILD, "bench-node")
    names = ("whole job: feeds/s, Node + feedsmith", "peak memory of a process, Node + feedsmith")

    def skipped(why):
        for n in names:
            row(n, "-", "-", "-", "-", why)

    if not shutil.which("npm") or not shutil.which("node"):
        return skipped("node and npm are not here")
    os.makedirs(home, exist_ok=True)
    for f in ("package.json", "collect.mjs"):
        shutil.copy(os.path.join(ROOT, "bench", "node", f), home)
    if not os.path.isdir(os.path.join(home, "node_modules", "feedsmith")) and subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=home, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return skipped("npm install failed")
    walls, rss = [], []
    for _ in range(min(RUNS, 2)): # it takes long and varies little
        db = os.path.join(WORK, "node.db")
        for f in (db, db + "-journal"):
            if os.path.exists(f):
                os.remove(f)
        wall, _, kib, _, code = measure(["node", "collect.mjs", o.url_file, db], cwd=home)
        if code:
            return skipped("its run failed")
        walls.append(wall)
        rss.append(kib / 1024)
    if ours_wall is None:
        wheel = fresh("whole", SOON)
        wheel.run("import", o.url_file)
        ours_wall = collect(wheel)[0]
    wheel = fresh("memory", SOON)
    wheel.run("import", o.url_file)
    mine = collect(wheel)[2]["max_rss_bytes"] / 1048576
    ratio = median(walls) / ours_wall
    row(names[0], "%.0f" % (FEEDS / ours_wall), "%.0f" % (FEEDS / median(walls)), "%.1f" % ratio, ">=5", ratio >= 5)
    ratio = mine / median(rss)
    row(names[1], "%.0f MiB" % mine, "%.0f MiB" % median(rss), "%.3f" % ratio, "<=0.1", ratio <= 0.1)
    return None


def watch(p, until=None):
    """The peak RSS in KiB of the workers of a run, which is told to stop after so many seconds, if any."""
    peak, start = 0, time.monotonic()
    while p.poll() is None:
        try:
            with open("/proc/%d/task/%d/children" % (p.pid, p.pid), encoding="ascii") as f:
                children = f.read().split()
            for c in children:
                with open("/proc/%s/status" % c, encoding="ascii") as f:
                    peak = max(peak, *(int(l.split()[1]) for l in f if l.startswith("VmHWM")))
        except (OSError, TypeError):
            pass # it has just ended
        if until and time.monotonic() - start > until:
            p.terminate()
            until = None
        time.sleep(0.05)
    return peak


def resident(docs):
    """RSS of the worker at 500 transfers in flight."""
    wheel = fresh("rss")
    o = Origin(wheel.base, docs, "--feeds", "2000", "--latency", "fixed:1500")
    wheel.run("import", o.url_file)
    peak = watch(wheel.start("run", "--once", "--quiet", "--workers", "1", "--concurrency", "500"))
    in_flight = o.stats()["in_flight_max"]
    o.stop()
    row("RSS of a worker, %d transfers in flight" % in_flight, "%.1f MiB" % (peak / 1024), "64 MiB", "%.2f" % (peak / 65536),
        "<1", 0 < peak < 65536 and in_flight >= 490)


def many(docs):
    """RSS of a worker does not depend on how many feeds the store holds: ten seconds of work with few and with many."""
    peak = {}
    for n in (10000, 1000000):
        wheel = fresh("many")
        o = Origin(wheel.base, docs, "--feeds", str(n), "--latency", "fixed:300", log=False)
        wheel.run("import", o.url_file, timeout=300)
        peak[n] = watch(wheel.start("run", "--quiet", "--workers", "1", "--concurrency", "100"), until=10)
        o.stop()
        if wheel.json("status")["visits"] < 1000:
            sys.exit("bench-collect: with %d feeds in the store hardly any was visited" % n)
    ratio = peak[1000000] / peak[10000]
    row("RSS of a worker, 1,000,000 feeds against 10,000", "%.1f MiB" % (peak[1000000] / 1024), "%.1f MiB" % (peak[10000] / 1024),
        "%.2f" % ratio, "<=1.2", ratio <= 1.2)


def tls(docs):
    """CPU of a new verified connection: the same feeds over TLS and without; the difference, per feed."""
    n, hosts, costs, bare = 500, 50, [], []
    wheel = fresh("tls")
    base = wheel.base
    ca, cert, key = certificate(base, ["127.1.0.%d" % (1 + h) for h in range(hosts)])
    arguments = (docs, "--feeds", str(n), "--hosts", str(hosts), "--no-keep-alive", "--plan", "* empty,validators=none")
    plain = Origin(base, *arguments)
    secure = Origin(os.path.join(base, "secure"), *arguments, "--tls", cert, key)
    for k in range(RUNS):
        cpu = []
        for urls in (plain.url_file, secure.url_file):
            w = fresh("tls-%d" % k, "host_max = 1000\nca_file = %s\n" % ca)
            w.run("import", urls)
            cpu.append(collect(w, "--workers", "1")[1])
        costs.append((cpu[1] - cpu[0]) * 1000 / n)
        if os.path.exists(REF):
            cpu = [measure([REF, urls, "300", "--ca", ca])[1] for urls in (plain.url_file, secure.url_file)]
            bare.append((cpu[1] - cpu[0]) * 1000 / n)
        kinds = dict(w.sql("SELECT kind, count(*) FROM visits GROUP BY kind"))
        if w.one("SELECT count(*) FROM visits WHERE tls_us > 0") != n:
            sys.exit("bench-collect: not every TLS connection was made: %s" % kinds)
    plain.stop()
    secure.stop()
    reference = median(bare) if bare else None
    row("CPU of a new verified TLS connection, bare libcurl", "%.2f ms" % median(costs),
        "%.2f ms" % reference if bare else "-", "%.2f" % (median(costs) / reference) if bare else "-", "<1.2 ms",
        median(costs) < 1.2)


def importing(o):
    times = []
    for _ in range(RUNS):
        wheel = fresh("import")
        times.append(measure(wheel.command("import", o.url_file), env=wheel.environment)[0])
        if wheel.one("SELECT count(*) FROM feeds") != FEEDS:
            sys.exit("bench-collect: import did not subscribe all feeds")
    row("import of %d feeds" % FEEDS, seconds(median(times)), "2 s", "%.2f" % (median(times) / 2), "<1", median(times) < 2)


def cold_start(docs):
    """From exec to the arrival of the first request; both clocks are CLOCK_MONOTONIC."""
    times = []
    wheel = fresh("start", SOON)
    o = Origin(wheel.base, docs, "--feeds", "1")
    wheel.run("import", o.url_file)
    for _ in range(RUNS * 3):
        start = time.monotonic_ns() // 1000
        collect(wheel)
        times.append((o.requests()[-1]["start_us"] - start) / 1000)
        time.sleep(SOON_S)
    o.stop()
    row("cold start to first request", "%.1f ms" % median(times), "50 ms", "%.2f" % (median(times) / 50), "<1",
        median(times) < 50)


def store_rows():
    """Claims from 10 k to 1 M feeds: bench_store has rows of its own."""
    bench = os.path.join(BUILD, "bench", "bench_store")
    if not os.path.exists(bench):
        row("claim of 500 at 10 k and 1 M feeds", "-", "-", "-", "<20 ms", "bench/bench_store is not built")
        return
    print("# of the store alone (bench-store has more):", flush=True)
    if subprocess.run([bench, "--store", "sqlite", "--only", "wheel"], check=False).returncode:
        short.append("store")


def main():
    only = os.environ.get("ONLY", "curl 304 node rss many tls import start store").split()
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    docs, kind = documents()
    o = Origin(WORK, docs, "--feeds", str(FEEDS), log=False)
    same = Origin(os.path.join(WORK, "same"), docs, "--feeds", str(FEEDS), "--plan", "* always-304", log=False)
    print("# %d feeds on as many hosts, %s, median of %d, load at the start %.1f" % (FEEDS, kind, RUNS, os.getloadavg()[0]))
    print("%-50s %13s %13s %8s %8s" % ("# name", "ours", "reference", "ratio", "goal"))
    try:
        if "import" in only:
            importing(o)
        if "start" in only:
            cold_start(docs)
        wall = whole_job(o, same) if "curl" in only or "304" in only else None
        if "node" in only:
            node(o, wall)
        if "rss" in only:
            resident(docs)
        if "many" in only:
            many(docs)
        if "tls" in only:
            tls(docs)
        if "store" in only:
            store_rows()
    finally:
        o.stop()
        same.stop()
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
