#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Part of make bench-store: the whole job (fetch, parse, store) by two worker processes, on each store.

Feeds, documents and the origin are those of bench/collect.py. Servers are private, as durable as in
production. The stores alternate, each round starts with empty ones. A figure is the median of RUNS
rounds and of the ratios to SQLite in the same round. Exit status 1: a row is short (table.py).

  RUNS=3 FEEDS=10000 STORES="postgres redis"
"""
import os
import shutil
import tempfile

import collect
from collect import FEEDS, RUNS, SOON, Origin, Feedwheel
from harness import Server, engines
from table import all_due, benchmark, die, head, median, ratio_row, selection

GOALS = {"postgres": 0.7, "redis": 0.7}


def passes(url_file, base, store):
    """Feeds a second of the first run, and of the next, when nothing is new."""
    os.makedirs(base)
    fw = Feedwheel(base, SOON, store=store)
    fw.run("import", url_file)
    wall, _, first = collect.collect(fw, "--workers", "2")
    all_due(fw, FEEDS)
    again, _, second = collect.collect(fw, "--workers", "2")
    if first["feeds"] != FEEDS or second["feeds"] != FEEDS or second["new_entries"] or not first["new_entries"]:
        die("bench-store: the whole job is incomplete: %s, then %s", first, second)
    shutil.rmtree(base)
    return FEEDS / wall, FEEDS / again, first["new_entries"]


def show(name, ours, sqlite, goal):
    ratio_row(name, "%.0f/s" % median(ours), "%.0f/s" % median(sqlite),
              median(a / b for a, b in zip(ours, sqlite)), least=goal)


def main():
    base = collect.WORK = tempfile.mkdtemp(prefix="feedwheel-whole-")
    os.chmod(base, 0o711)
    picked = selection("STORES", ("sqlite", "postgres", "mysql", "redis"))
    names = ["sqlite", *(n for n in engines() if n in picked)]
    rates = {n: ([], []) for n in names}
    servers = {}
    try:
        docs, kind = collect.documents()
        o = Origin(base, docs, "--feeds", str(FEEDS), log=False)
        servers = {n: Server(n, base, "durable") for n in names if n != "sqlite"}
        for i in range(RUNS):
            for n in names:
                store = servers[n].url("whole%d" % i) if n in servers else None
                first, again, entries = passes(o.url_file, os.path.join(base, "run"), store)
                rates[n][0].append(first)
                rates[n][1].append(again)
        head("the whole job by two worker processes, compared with SQLite: %d feeds on as many hosts, %s,"
             " %d entries, median of %d" % (FEEDS, kind, entries, RUNS))
        for n in servers:
            show("feeds a second on %s" % n, rates[n][0], rates["sqlite"][0], GOALS.get(n))
            show("  and when nothing is new", rates[n][1], rates["sqlite"][1], None)
        o.stop()
    finally:
        for s in servers.values():
            s.stop()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    benchmark(main)
