#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The benchmarks work, on very little: what they print, and that a row can be short."""
import os
import subprocess
import sys

from harness import BUILD, ROOT, case, equal, holds, run, sanitized


def before(base, goal, **more):
    """This build beside itself."""
    tree = os.path.join(base, "before")
    if not os.path.exists(tree):
        os.mkdir(tree)
        os.symlink(BUILD, os.path.join(tree, "build"))
    environment = {**os.environ, "BEFORE": tree, "RUNS": "1", "FEEDS": "20", "GOAL": goal, **more}
    return subprocess.run([sys.executable, os.path.join(ROOT, "bench", "before.py")], env=environment, capture_output=True, text=True, check=False)


@case("bench-before: two builds in turns, row by row; one that is worse than the goal is short, and the exit code says so")
def bench_before(base):
    parts = "collect" if sanitized() else "collect parse" # a library with ASan in it cannot be loaded by Python
    r = before(base, "1000", ONLY=parts)
    equal(r.returncode, 0, r.stderr)
    rows = [line for line in r.stdout.splitlines() if "<=" in line]
    equal([line.split()[0] + line.split()[-1] for line in rows], ["collect:ok", "collect:ok", "parse:ok"][:len(parts.split()) + 1], r.stdout)
    r = before(base, "0", ONLY="collect")
    equal((r.returncode, r.stdout.split()[-1]), (1, "short"), r.stdout + r.stderr)
    r = before(base, "1", BEFORE=base)
    holds(r.returncode == 1 and "check the other version out" in r.stderr, r.stderr)


@case("bench-ingest: the row of pages with contents that are slow to make safe", needs="server") # F7
def bench_pages(_):
    environment = {**os.environ, "STORES": "sqlite", "ONLY": "pages", "RUNS": "1", "SLOW_BYTES": "5000"}
    r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "ingest.py")], env=environment, capture_output=True, text=True, check=False)
    holds("beside two for 21 slow entries" in r.stdout and r.stdout.split()[-1] in ("ok", "short"), r.stdout + r.stderr) # speed is no test


run()
