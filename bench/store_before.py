#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-store BEFORE=TREE: claim + commit, compared with the build of another tree (TREE/build).

The bench_store programs of both builds alternate on each store, each with servers and a store of its
own. A figure is the median of RUNS rounds and of the ratios within them. Exit status 1: a row is
short (table.py).

  RUNS=3 FEEDS=1000000 SECONDS=3 STORES="sqlite postgres"
"""
import os
import re
import subprocess

from table import benchmark, die, head, median, ratio_row, selection, size

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("FW_BUILD_ROOT", os.path.join(ROOT, "build"))
BEFORE = os.path.join(os.environ.get("BEFORE", ""), "build")
RUNS = size("RUNS", 3, 1)
FEEDS = size("FEEDS", 1000000, 10000)
SECONDS = size("SECONDS", 3.0, 0.1)

# Rows that both builds print: the minimum ratio on each store.
GOALS = {
    r"claim \+ commit, 100 a batch, \d+ process(es)?": {"sqlite": 1.0, "postgres": 1.0, "mysql": 1.8, "redis": 1.0},
    r"claim \+ commit, 500 a batch, \d+ process(es)?": {"sqlite": 1.2, "postgres": 1.2, "mysql": 2.0, "redis": 1.0},
    "32 processes against 4, 100 a batch": {"postgres": 1.3},
}
NAME_COLUMNS = 66 # as in bench/store/common.c


def binary(tree):
    return os.path.join(tree, "bench", "bench_store")


def part(tree):
    """The name of its part with claim + commit: the first in its usage message."""
    usage = subprocess.run([binary(tree), "--help"], stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True, check=False).stderr
    parts = re.search(r"--only ([a-z|]+)", usage)
    if not parts:
        die("bench-store: %s: --help prints no usage", binary(tree))
    return parts[1].split("|")[0]


def figures(tree, store):
    """Its rows: {name: its figure}; none if the store is skipped."""
    r = subprocess.run(
        [binary(tree), "--store", store, "--only", part(tree), "--runs", "1", "--seconds", "%g" % SECONDS,
         "--feeds", str(FEEDS), "--feeds-large", "0", "--minutes", "0"],
        stdout=subprocess.PIPE, text=True, check=False)
    if r.returncode not in (0, 1): # it may miss its own goals
        die("bench-store: %s --store %s: exit %d", binary(tree), store, r.returncode)
    rows = (line for line in r.stdout.splitlines() if line and line[0] != "#" and len(line) > NAME_COLUMNS)
    return {line[:NAME_COLUMNS].strip(): float(line[NAME_COLUMNS:].split()[0]) for line in rows}


def compare(store):
    rounds = []
    for i in range(RUNS):
        order = (BEFORE, BUILD) if i % 2 else (BUILD, BEFORE)
        rows = {tree: figures(tree, store) for tree in order}
        if not rows[BEFORE] or not rows[BUILD]:
            print("# %s is skipped" % store)
            return
        rounds.append((rows[BEFORE], rows[BUILD]))
    for name in rounds[0][1]:
        goal = next((goals.get(store) for pattern, goals in GOALS.items() if re.fullmatch(pattern, name)), None)
        if name not in rounds[0][0] or (goal is None and not name.startswith("claim + commit")):
            continue
        before, ours = [b[name] for b, _ in rounds], [o[name] for _, o in rounds]
        ratio_row("%s: %s" % (store, name), "%.0f/s" % median(ours), "%.0f/s" % median(before),
                  median(o / b for o, b in zip(ours, before)), least=goal)


def main():
    stores = selection("STORES", ("sqlite", "postgres", "mysql", "redis"))
    head("claim + commit of %d feeds, %d rounds; the reference is the build of BEFORE" % (FEEDS, RUNS))
    for store in stores:
        compare(store)


if __name__ == "__main__":
    if "BEFORE" not in os.environ or not os.access(binary(BEFORE), os.X_OK):
        die("bench-store: BEFORE is not a tree with build/bench/bench_store: check out the other version,"
            " run make there, and set BEFORE=FOLDER")
    benchmark(main)
