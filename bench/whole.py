#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Part of make bench-store: the whole job (fetch, parse, store) by two worker processes, on each store.

Feeds, documents and the origin are those of bench/collect.py; servers are private ones, as durable as in production. Stores
take turns, each round begins with empty ones, a figure is the median of RUNS rounds and of the ratios to SQLite in the same round.
Exit 1: a goal was missed.

  RUNS=3 FEEDS=10000 FW_STORES=postgres,redis
"""
import os
import shutil
import sys
import tempfile
import time

import collect
from collect import FEEDS, RUNS, SOON, SOON_S, Origin, Wheel, median, row
from harness import Server, engines

GOALS = {"postgres": 0.7, "redis": 0.7}


def passes(url_file, base, store):
    """Feeds a second of the first collection and of the next, when nothing is new."""
    os.makedirs(base)
    wheel = Wheel(base, SOON, store=store)
    wheel.run("import", url_file)
    wall, _, first = collect.collect(wheel, "--workers", "2")
    time.sleep(SOON_S)
    again, _, second = collect.collect(wheel, "--workers", "2")
    if first["feeds"] != FEEDS or second["feeds"] != FEEDS or second["new_entries"] or not first["new_entries"]:
        sys.exit("bench-store: the whole job was not done: %s, then %s" % (first, second))
    shutil.rmtree(base)
    return FEEDS / wall, FEEDS / again, first["new_entries"]


def show(name, ours, sqlite, goal):
    ratio = median(a / b for a, b in zip(ours, sqlite))
    row(name, "%.0f/s" % median(ours), "%.0f/s" % median(sqlite), "%.2f" % ratio, ">=%.1f" % goal if goal else "-",
        ratio >= goal if goal else None)


def main():
    base = collect.WORK = tempfile.mkdtemp(prefix="feedwheel-whole-")
    os.chmod(base, 0o711)
    names = ["sqlite", *engines()]
    rates = {n: ([], []) for n in names}
    servers = {}
    try:
        docs, kind = collect.documents()
        o = Origin(base, docs, "--feeds", str(FEEDS), log=False)
        servers = {n: Server(n, base, "durable") for n in names if n != "sqlite"}
        for i in range(RUNS):
            for n in names:
                store = servers[n].url("whole%d" % i) if n in servers else None
                first, again, entries = passes(o.url_file, os.path.join(base, "wheel"), store)
                rates[n][0].append(first)
                rates[n][1].append(again)
        print("# the whole job by two worker processes: %d feeds on as many hosts, %s, %d entries, median of %d" % (
            FEEDS, kind, entries, RUNS))
        print("%-50s %13s %13s %8s %8s" % ("# name", "ours", "on SQLite", "ratio", "goal"))
        for n in servers:
            show("feeds a second on %s" % n, rates[n][0], rates["sqlite"][0], GOALS.get(n))
            show("  and when nothing is new", rates[n][1], rates["sqlite"][1], None)
        o.stop()
    finally:
        for s in servers.values():
            s.stop()
        shutil.rmtree(base, ignore_errors=True)
    return 1 if collect.short else 0


if __name__ == "__main__":
    sys.exit(main())
