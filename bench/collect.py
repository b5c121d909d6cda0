#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-collect: the whole job compared with its references, in one table.

Each feed is on a loopback host of its own. The test origin serves real documents if
../shared/corpus/open exists, else generated ones of the same size. Each figure is the median of
RUNS rounds. Ours and the reference alternate, so that other load on the machine affects both.
Exit status 1: a row is short (table.py).

  RUNS=3 FEEDS=10000 MANY=1000000 ONLY=words  (ONLY: job node rss many tls import start store)
"""
import json
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from harness import BUILD, SOON, Origin, Feedwheel, certificate  # noqa: E402  pylint: disable=wrong-import-position
from table import (  # noqa: E402  pylint: disable=wrong-import-position
    all_due, benchmark, die, head, median, ratio_row, row, scratch, selection, short, size)

RUNS = size("RUNS", 3, 1)
FEEDS = size("FEEDS", 10000, 40)
MANY = size("MANY", 1000000, 2000)
TURN_S = size("TURN_S", 60, 2) # until a feed is due again
SLOTS = size("SLOTS", 500, 20)
WORK = scratch(BUILD, "bench-collect")
CORPUS = os.path.join(ROOT, "..", "shared", "corpus", "open")
REF = os.path.join(BUILD, "bench", "fetch_ref")


def seconds(v):
    return "%.2f s" % v


def measure(command, **more):
    """Runs a command: its wall seconds, CPU seconds (with its children), the largest peak RSS in KiB, output."""
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    out = p.stdout.read()
    p.stdout.close()
    _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - start, use.ru_utime + use.ru_stime, use.ru_maxrss, out, p.returncode


def documents():
    """A folder of documents with about 61 KB and 25 entries on average, and its name in the table."""
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
    return Feedwheel(base, conf)


def collect(fw, *arguments):
    """One `run --once`: wall seconds, CPU seconds, its summary."""
    wall, cpu, _, out, code = measure(
        fw.command("run", "--once", "--json", "--quiet", *arguments),
        env=fw.environment)
    if code not in (0, 1):
        die("bench-collect: feedwheel run --once: exit %d", code)
    return wall, cpu, json.loads(out)


# A minute between the passes: the full-text index is completed in the background, as in daily use.
PAUSE = "interval_min_ms = 1s\ninterval_ms = %ds\ninterval_max_ms = %ds\n" % (TURN_S, TURN_S)


def pause(fw, since):
    """Runs with nothing due while the index is completed and merged, then waits until all feeds are due
    again. Returns the seconds until the index was complete; None: there was not enough time."""
    p, took = fw.start("run", "--quiet"), None
    start = time.monotonic()
    # the first feeds are due again nine tenths of TURN_S after their visit, which was before `since`
    while time.monotonic() - since < TURN_S * 0.6:
        time.sleep(0.2)
        if took is None and fw.one("SELECT value >= (SELECT coalesce(max(id), 0) FROM entries)"
                                      " FROM meta WHERE name = 'indexed_entry_id'"):
            took = time.monotonic() - start
    p.terminate()
    p.wait()
    time.sleep(max(0, since + TURN_S * 1.13 - time.monotonic())) # jitter is a tenth
    all_due(fw, FEEDS)
    return took


# ---- the rows ------------------------------------------------------------------------------------

def unchanged_pass(fw):
    wall, _, second = collect(fw)
    if second["unchanged"] + second["failed"] != second["feeds"] or second["feeds"] != FEEDS:
        die("bench-collect: the second pass was not all 304: %s", second)
    return wall, second


def whole_job(o, same):
    """Compared with curl (bodies) and bare libcurl (304)."""
    config = os.path.join(WORK, "curl.cfg")
    with open(config, "w", encoding="ascii") as f:
        f.writelines('url = %s\noutput = /dev/null\n' % u for u in o.urls)
    curl, ours, again, bare, index, failed = [], [], [], [], [], 0
    for _ in range(RUNS):
        command = ["curl", "--no-progress-meter", "--parallel", "--parallel-max", "300", "--compressed", "-K", config]
        curl.append(measure(command)[0])
        fw = fresh("whole", PAUSE)
        fw.run("import", o.url_file)
        wall, _, first = collect(fw)
        ours.append(wall)
        failed = first["failed"]
        index.append(pause(fw, time.monotonic()))
        wall, second = unchanged_pass(fw)
        again.append(wall)
        if os.path.exists(REF):
            bare.append(measure([REF, same.url_file, "300"])[0])
    pause(fw, time.monotonic())
    held = fw.hold_wal()
    unchanged_pass(fw)
    wal_bytes = fw.wal_size() / FEEDS
    held.close()
    first_entries = fw.one("SELECT count(*) FROM entries")
    print("# %d feeds (%d of the documents are not feeds), %d entries, %.0f MiB decoded, store of %.0f MiB" % (
        first["feeds"], failed, first_entries, first["body_bytes"] / 1048576, os.path.getsize(fw.path) / 1048576))
    ratio = median(b / a for a, b in zip(curl, ours))
    ratio_row("whole job: wall, against curl --parallel", seconds(median(ours)), seconds(median(curl)), ratio, most=2.0)
    if bare:
        ratio = median(bare) / median(again)
        ratio_row("second pass, all 304: feeds/s, bare libcurl",
                  "%.0f" % (FEEDS / median(again)), "%.0f" % (FEEDS / median(bare)), ratio, least=0.6)
    else:
        row("second pass, all 304: feeds/s, bare libcurl", "%.0f" % (FEEDS / median(again)), "-", "-", ">=0.6",
            "bench/fetch_ref is not built")
    complete = seconds(median(index)) if None not in index else "> %.0f s" % (TURN_S * 0.6)
    row("full-text index complete, after the whole job", complete, "-", "-", "-", None)
    row("commits per 1,000 visits (304)", "%.1f" % (second["commits"] * 1000 / FEEDS), "-", "-", "-", None)
    row("bytes of WAL per visit (304)", "%.0f" % wal_bytes, "-", "-", "-", None)
    return median(ours)


def node(o, ours_wall):
    home = os.path.join(BUILD, "bench-node")
    names = ("whole job: feeds/s, Node + feedsmith", "peak memory of a process, Node + feedsmith")

    def skipped(why):
        for n in names:
            row(n, "-", "-", "-", "-", why)

    if not shutil.which("npm") or not shutil.which("node"):
        return skipped("node and npm are not installed")
    os.makedirs(home, exist_ok=True)
    for f in ("package.json", "collect.mjs"):
        shutil.copy(os.path.join(ROOT, "bench", "node", f), home)
    if not os.path.isdir(os.path.join(home, "node_modules", "feedsmith")):
        r = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "--fetch-retries=1", "--fetch-timeout=20000"],
            cwd=home, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if r.returncode:
            return skipped("npm install failed")
    walls, rss = [], []
    for _ in range(min(RUNS, 2)): # it is slow and varies little
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
        fw = fresh("whole", SOON)
        fw.run("import", o.url_file)
        ours_wall = collect(fw)[0]
    fw = fresh("memory", SOON)
    fw.run("import", o.url_file)
    mine = collect(fw)[2]["max_rss_bytes"] / 1048576
    ratio = median(walls) / ours_wall
    ratio_row(names[0], "%.0f" % (FEEDS / ours_wall), "%.0f" % (FEEDS / median(walls)), ratio, least=5)
    ratio = mine / median(rss)
    ratio_row(names[1], "%.0f MiB" % mine, "%.0f MiB" % median(rss), ratio, most=0.1)
    return None


def watch(p, until=None, enough=lambda: True):
    """The peak RSS in KiB of a run's workers. `until`: the run is stopped after this many seconds and once
    enough() is true, or after ten times as many."""
    peak, start = 0, time.monotonic()
    while p.poll() is None:
        try:
            with open("/proc/%d/task/%d/children" % (p.pid, p.pid), encoding="ascii") as f:
                children = f.read().split()
            for c in children:
                with open("/proc/%s/status" % c, encoding="ascii") as f:
                    peak = max(peak, *(int(l.split()[1]) for l in f if l.startswith("VmHWM")))
        except (OSError, TypeError):
            pass # the process has just ended
        if until and time.monotonic() - start > until and (enough() or time.monotonic() - start > 10 * until):
            p.terminate()
            until = None
        time.sleep(0.05)
    return peak


def resident(docs):
    """RSS of a worker with SLOTS transfers in flight."""
    fw = fresh("rss")
    o = Origin(fw.base, docs, "--feeds", str(4 * SLOTS), "--latency", "fixed:1500")
    fw.run("import", o.url_file)
    peak = watch(fw.start("run", "--once", "--quiet", "--workers", "1", "--concurrency", str(SLOTS)))
    in_flight = o.stats()["in_flight_max"]
    o.stop()
    row("RSS of a worker, %d transfers in flight" % in_flight, "%.1f MiB" % (peak / 1024),
        "64 MiB", "%.2f" % (peak / 65536), "<1", 0 < peak < 65536 and in_flight >= SLOTS * 0.98)


def many(docs):
    """The RSS of a worker does not depend on the number of feeds: ten seconds of work with few and with many."""
    peak, work_s = {}, TURN_S / 6
    for n in (MANY // 100, MANY):
        fw = fresh("many")
        o = Origin(fw.base, docs, "--feeds", str(n), "--latency", "fixed:300", log=False)
        fw.run("import", o.url_file, timeout=300)
        enough = min(100 * work_s, n)
        peak[n] = watch(fw.start("run", "--quiet", "--workers", "1", "--concurrency", "100"), work_s,
                        lambda w=fw, least=enough: w.one("SELECT count(*) FROM visits") >= least)
        o.stop()
        if fw.json("status")["visits"] < enough:
            die("bench-collect: with %d feeds in the store too few were visited", n)
    ratio = peak[MANY] / peak[MANY // 100]
    ratio_row("RSS of a worker, %d feeds against %d" % (MANY, MANY // 100),
              "%.1f MiB" % (peak[MANY] / 1024), "%.1f MiB" % (peak[MANY // 100] / 1024), ratio, most=1.2)


def tls(docs):
    """CPU of a new verified connection: the difference, per feed, between the same feeds with TLS and without."""
    n, hosts, costs, bare = min(500, FEEDS), 50, [], []
    fw = fresh("tls")
    base = fw.base
    ca, cert, key = certificate(base, ["127.1.0.%d" % (1 + h) for h in range(hosts)])
    arguments = (docs, "--feeds", str(n), "--hosts", str(hosts), "--no-keep-alive", "--plan", "* empty,validators=none")
    plain = Origin(base, *arguments)
    secure = Origin(os.path.join(base, "secure"), *arguments, "--tls", cert, key)
    for k in range(RUNS):
        cpu = []
        for urls in (plain.url_file, secure.url_file):
            w = fresh("tls-%d" % k, "host_concurrency = 1000\nca_file = %s\n" % ca)
            w.run("import", urls)
            cpu.append(collect(w, "--workers", "1")[1])
        costs.append((cpu[1] - cpu[0]) * 1000 / n)
        if os.path.exists(REF):
            cpu = [measure([REF, urls, "300", "--ca", ca])[1] for urls in (plain.url_file, secure.url_file)]
            bare.append((cpu[1] - cpu[0]) * 1000 / n)
        kinds = dict(w.sql("SELECT kind, count(*) FROM visits GROUP BY kind"))
        if w.one("SELECT count(*) FROM visits WHERE tls_us > 0") != n:
            die("bench-collect: some TLS connections are missing: %s", kinds)
    plain.stop()
    secure.stop()
    reference = median(bare) if bare else None
    row("CPU of a new verified TLS connection, bare libcurl", "%.2f ms" % median(costs),
        "%.2f ms" % reference if bare else "-", "%.2f" % (median(costs) / reference) if bare else "-", "<1.2 ms",
        median(costs) < 1.2)


def importing(o):
    times = []
    for _ in range(RUNS):
        fw = fresh("import")
        times.append(measure(fw.command("import", o.url_file), env=fw.environment)[0])
        if fw.one("SELECT count(*) FROM feeds") != FEEDS:
            die("bench-collect: import did not subscribe all feeds")
    ratio_row("import of %d feeds" % FEEDS, seconds(median(times)), "2 s", median(times) / 2, most=1)


def cold_start(docs):
    """From exec to the arrival of the first request. Both clocks are CLOCK_MONOTONIC."""
    times = []
    fw = fresh("start", SOON)
    o = Origin(fw.base, docs, "--feeds", "1")
    fw.run("import", o.url_file)
    for _ in range(RUNS * 3):
        start = time.monotonic_ns() // 1000
        collect(fw)
        times.append((o.requests()[-1]["start_us"] - start) / 1000)
        all_due(fw, 1)
    o.stop()
    ratio_row("cold start to first request", "%.1f ms" % median(times), "50 ms", median(times) / 50, most=1)


def store_rows():
    """Claims with 10 k and 1 M feeds: rows of bench_store."""
    bench = os.path.join(BUILD, "bench", "bench_store")
    if not os.path.exists(bench):
        row("claim of 500 at 10 k and 1 M feeds", "-", "-", "-", "<20 ms", "bench/bench_store is not built")
        return
    print("# the store alone (bench-store has more):", flush=True)
    code = subprocess.run([bench, "--store", "sqlite", "--only", "schedule"], check=False).returncode
    if code > 1:
        die("bench-collect: bench_store: exit %d", code)
    if code:
        short.append("store")


def main():
    only = selection("ONLY", ("job", "node", "rss", "many", "tls", "import", "start", "store"))
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    docs, kind = documents()
    o = Origin(WORK, docs, "--feeds", str(FEEDS), log=False)
    same = Origin(os.path.join(WORK, "same"), docs, "--feeds", str(FEEDS), "--plan", "* always-304", log=False)
    head("%d feeds on as many hosts, %s, median of %d, load at the start %.1f" %
         (FEEDS, kind, RUNS, os.getloadavg()[0]))
    try:
        if "import" in only:
            importing(o)
        if "start" in only:
            cold_start(docs)
        wall = whole_job(o, same) if "job" in only else None
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


if __name__ == "__main__":
    benchmark(main)
