#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Each benchmark works in a size of seconds: it prints its rows, and an unknown name is an error.
The figures are not checked: at this size, and beside other tests, most rows are short."""
import glob
import os
import re
import shutil
import subprocess
import sys

from harness import BUILD, ROOT, Skip, case, engines, equal, holds, run, sanitized


def run_part(part, **environment):
    return subprocess.run(
        [os.path.join(ROOT, "bench", "run.sh"), "bench-" + part], env={**os.environ, "TINY": "1", **environment},
        capture_output=True, text=True, check=False)


def bench(part, *names, skipped=(), **environment):
    """Runs a part and returns its output. names: prefixes of rows that must be there; skipped: reasons
    that a row may have."""
    if sanitized():
        raise Skip("it would measure the sanitizer")
    r = run_part(part, **environment)
    lines = [line for line in r.stdout.splitlines() if line and line[0] != "#"]
    words = [re.search(r"(ok|short|-|skipped: .*)$", line) for line in lines]
    unknown_lines = [line for line, word in zip(lines, words) if not word and not line.startswith("figure ")]
    equal(unknown_lines, [], "lines that are neither row nor comment\n" + r.stderr)
    for word in words:
        holds(not word or not word[0].startswith("skipped") or word[0] in skipped, word and word[0])
    for name in names:
        holds(any(line.startswith(name) for line in lines), "%s: it is missing\n%s%s" % (name, r.stdout, r.stderr))
    equal(r.returncode, any(word and word[0] == "short" for word in words), "exit code\n%s%s" % (r.stdout, r.stderr))
    return r.stdout


def wants(*programs):
    for p in programs:
        if not shutil.which(p) and "CI" not in os.environ:
            raise Skip("%s is not installed: run tools/deps.sh bench" % p)


def tree_with_build(base):
    """A tree as BEFORE expects it, with this build."""
    tree = os.path.join(base, "before")
    os.mkdir(tree)
    os.symlink(BUILD, os.path.join(tree, "build"))
    return tree


@case("each part reads its usual sizes")
def usual_sizes(_):
    sizes = {name: value for name, value in os.environ.items() if name != "TINY"}
    for script in sorted(glob.glob(os.path.join(ROOT, "bench", "*.py"))):
        name = os.path.basename(script)[:-len(".py")]
        with open(script, encoding="utf-8") as f:
            if not re.search(r"^from table import", f.read(), re.M):
                continue
        r = subprocess.run([sys.executable, "-c", "import %s" % name], cwd=os.path.dirname(script),
                           env={**sizes, "BEFORE": ROOT}, capture_output=True, text=True, check=False)
        equal(r.returncode, 0, "%s: %s" % (name, r.stderr))


@case("bench-plan: durations known, a first run, hosts with a limit")
def bench_plan(_):
    bench("plan", "durations known, 16", "durations known, 64", "  batch-sorted", "first run", "200 hosts",
          ONLY="known first hosts")


@case("bench-plan: varying durations, lateness, the forecast, the simulator")
def bench_plan_more(_):
    bench("plan", "2 % timeouts", "forecast against measured", "p95 lateness", "simulator: ",
          ONLY="random,varied,late,simulate")


@case("bench-parse")
def bench_parse(_):
    bench("parse", "tokenizer / expat", "whole parse / expat", "64 kB / 8 kB, parse: ",
          DOCUMENTS=os.path.join(ROOT, "tests", "cases"))


@case("bench-store, on each store")
def bench_store(_):
    stores = {"sqlite", *engines()}
    output = bench("store", "claim + commit, 100 a batch", "new entries in bulk", "new events",
                   *("feeds a second on %s" % e for e in engines()), STORES=" ".join(stores))
    equal(set(re.findall(r"^## (\w+)", output, re.M)), stores, "stores")


@case("bench-store ONLY=million, on SQLite and PostgreSQL")
def bench_million(_):
    stores = ["sqlite", *(e for e in engines() if e == "postgres")]
    bench("store", *(s + ": " + r for s in stores for r in (
        "import, time", "import, peak RSS", "list --limit 20", "list --failing", "status", "why",
        "a worker, peak RSS")), ONLY="million", STORES=",".join(stores))


@case("bench-ingest", needs="server")
def bench_ingest(_):
    wants("wrk", "nginx", "sqlite3")
    bench("ingest", "sqlite: requests accepted, nginx", "sqlite: requests accepted, with --flush-rows 1",
          "sqlite: durable, 1000", "sqlite: rows/s into rings", "sqlite: rows/s stored, its bulk load",
          "sqlite: slowest request beside", STORES="sqlite")  # F7


@case("bench-ingest: compared with each store's own bulk load", needs="server")
def bench_ingest_batches(_):
    wants("wrk", "nginx")
    bench("ingest", *(e + ": rows/s stored" for e in engines()), STORES=",".join(engines()), ONLY="batches")


@case("bench-websub", needs="server")
def bench_websub(_):
    bench("websub", "pushes of hubs a second", "  time until the response, p99")


@case("bench-clients")
def bench_clients(_):
    bench("clients", "2 clients sync, each once: time", "2 clients sync, each once: CPU", "  clients that synced",
          "first sync of 300 entries", "  entries/s")


@case("bench-orders")
def bench_orders(_):
    output = bench("orders", "each entry is new: CPU", "one entry of 25 is new: time", "1 order: entries/s",
                 "2000 orders: entries/s on one core  ", "  matches of an entry",
                 "bytes of the heap for an order", "matches missing + wrong",
                 DOCUMENTS=os.path.join(ROOT, "tests", "cases"))
    holds(re.search(r"^matches missing.* 0 \+ 0 +[1-9].*ok$", output, re.M), output)


@case("bench-page", needs="server")
def bench_page(_):
    bench("page", "the page, ", "a folder's feeds", "first paint", skipped=("skipped: Chromium is not installed",))


@case("bench-read")
def bench_read(_):
    stores = ["sqlite", *(e for e in engines() if e == "postgres")]
    bench("read", *(s + ": " + r for s in stores for r in (
        "unread counts of an account", "numbers of 1 %", "numbers of 10 %", "0.1 % of the entries with contents",
        "mark all read", "edit of 1 %")), STORES=",".join(stores))


@case("bench-collect")
def bench_collect(_):
    bench("collect", "import of", "cold start", "whole job: wall", "second pass, all 304", "RSS of a worker, 20",
          "RSS of a worker, 2000", "CPU of a new", "claim + commit", "whole job: feeds/s, Node",
          skipped=("skipped: node and npm are not installed", "skipped: npm install failed"))


@case("bench-before compares two builds row by row; a row that is worse than the goal is short, exit 1")
def bench_before(base):
    tree = tree_with_build(base)
    bench("before", "collect: CPU", "collect: time", "parse: CPU", BEFORE=tree, ONLY="collect parse")
    output = bench("before", BEFORE=tree, ONLY="collect", GOAL="0.001")
    holds(output.count("short") == 2, output)
    r = run_part("before", BEFORE=base)
    holds(r.returncode == 2 and "check out the other version" in r.stderr, r.stderr)


@case("bench-store with BEFORE compares the rows that both builds have")
def bench_store_before(base):
    bench("store", "sqlite: claim + commit, 100 a batch", "sqlite: claim + commit, 500 a batch",
          BEFORE=tree_with_build(base), STORES="sqlite")
    r = run_part("store", BEFORE=base)
    holds(r.returncode == 2 and "check out the other version" in r.stderr, r.stderr)


@case("an unknown part or store and a wrong size are errors, exit 2")
def unknown(base):
    for part, environment, message in (
        ("plan", {"ONLY": "known lat"}, "ONLY=known lat: lat is unknown, known are: known first"),
        ("collect", {"ONLY": "curl"}, "ONLY=curl: curl is unknown, known are: job"),
        ("ingest", {"ONLY": "acepted"}, "acepted is unknown"),
        ("ingest", {"STORES": "sqlite,mariadb"}, "mariadb is unknown, known are: sqlite postgres"),
        ("before", {"ONLY": "x", "BEFORE": os.path.dirname(BUILD)}, "x is unknown"),
        ("websub", {"ONLY": "x"}, "x is unknown"),
        ("plan", {"FEEDS": "many"}, "FEEDS=many: not a number above 0"),
        ("store", {"STORES": "mariadb"}, "usage: bench_store"),
        ("store", {"ONLY": "schedul"}, "usage: bench_store"),
        ("store", {"ONLY": "whole", "STORES": "mariadb"}, "mariadb is unknown"),
        ("store", {"ONLY": "million", "STORES": "mariadb"}, "mariadb is unknown"),
        ("orders", {"ONLY": "x"}, "ONLY=x: x is unknown, known are: match collect"),
        ("orders", {"ORDERS": "many"}, "ORDERS=many: not a number above 0"),
        ("all", {}, "usage: bench/run.sh"),
    ):
        r = run_part(part, TMPDIR=base, **environment)
        equal(r.returncode, 2, "%s %s: %s" % (part, environment, r.stderr))
        holds(message in r.stderr, "%s %s: %s" % (part, environment, r.stderr))


run()
