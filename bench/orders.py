#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-orders: collecting with orders, compared with the same feeds without.

Two passes: the first one, in which each entry is new and is matched; and one as on any other day,
in which one of SHARE entries is new. In both each document is read anew. The orders are like those of
bench_orders: five words of an entry, and two that it lacks are excluded. They are paused: matches
are stored, nothing is sent. Both stores are collected in turns; a figure is the median of RUNS
rounds and of the ratios within them. CPU is user and system time of all processes. Exit status 1: a
row is short (table.py).

  RUNS=7 FEEDS=10000 STANDING=1000 GOAL=1.03
"""
import json
import os
import random
import re
import shutil
import subprocess

if "TINY" not in os.environ:
    os.environ.setdefault("RUNS", "7")
import collect # pylint: disable=wrong-import-position
from collect import BUILD, FEEDS, RUNS, Feedwheel, Origin, fresh # pylint: disable=wrong-import-position
from table import benchmark, die, head, median, ratio_row, row, scratch, size # pylint: disable=wrong-import-position

STANDING = size("STANDING", 1000, 20)
SHARE = 25 # about one entry of each document
GOAL = size("GOAL", 1.03, 1000.0)
WORK = scratch(BUILD, "bench-orders")
collect.WORK = WORK


def words_of(docs):
    """The words of each of some entries."""
    found = []
    for name in sorted(os.listdir(docs))[:200]:
        r = subprocess.run([os.path.join(BUILD, "feedwheel"), "parse", os.path.join(docs, name)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if r.returncode:
            continue
        for e in json.loads(r.stdout).get("items", []):
            text = "%s %s" % (e.get("title", ""), re.sub("<[^>]*>", " ", e.get("content_html", e.get("summary", ""))))
            words = re.findall(r"\b[a-z]{3,12}\b", text.lower())
            if len(words) > 5:
                found.append(words)
    if not found:
        die("bench-orders: the documents have no words")
    return found


def orders_add(w, docs):
    """The first one by the command, the others as copies of its record."""
    words, r = words_of(docs), random.Random(19)
    w.run("order", "add", "-q", "o0", "unlikelyword", "--to", "https://hooks.example.org/x")
    w.run("order", "pause", "-q", "o0")
    order = json.loads(w.one("SELECT value FROM records WHERE kind = 'order'"))
    for i in range(1, STANDING):
        must, other = r.choice(words), r.choice(words)
        lacks = [word for word in (r.choice(other) for _ in range(20)) if word not in must][:2]
        query = " ".join([r.choice(must) for _ in range(5)] + ["-" + word for word in lacks])
        w.sql("INSERT INTO records (kind, record_key, value, at_ms, until_ms) SELECT kind, ?, ?, at_ms, until_ms"
              " FROM records WHERE kind = 'order' AND record_key = ?", b"o%d" % i,
              json.dumps({**order, "id": order["id"] + i, "query": query}).encode(), b"o0", write=True)
    if len(w.json("order", "list")) != STANDING:
        die("bench-orders: the orders are not complete")


def make_daily(w):
    """Make the store one in which the same documents bring some new entries. Their order is that of
    the feeds, so nearly each feed has one."""
    w.sql("DELETE FROM entry_keys WHERE entry_id %% %d = 0" % SHARE, write=True)
    w.sql("DELETE FROM entries WHERE id %% %d = 0" % SHARE, write=True)
    w.sql("UPDATE feeds SET etag = NULL, last_modified = NULL, body_hash = 0", write=True)
    w.sql("UPDATE schedule SET due_at_ms = 1 WHERE status = 0", write=True)


def one(kind):
    """CPU and wall seconds of a run on a copy of the store of this kind; matches and new entries."""
    w = fresh("round")
    shutil.copytree(os.path.join(WORK, kind), os.path.join(WORK, "round"), dirs_exist_ok=True)
    wall, cpu, summary = collect.collect(w)
    if summary["feeds"] < FEEDS * 0.9:
        die("bench-orders: %s", summary)
    return cpu, wall, w.one("SELECT count(*) FROM matches"), summary["new_entries"]


def compare(name, bare, most):
    """Rows of the store `bare` and of its copy with orders."""
    shutil.copytree(os.path.join(WORK, bare), os.path.join(WORK, "ordered"))
    w = Feedwheel(os.path.join(WORK, "ordered"))
    orders_add(w, os.path.join(WORK, "docs"))
    one(bare) # fills the page cache
    rounds = []
    for i in range(RUNS):
        turn = (bare, "ordered") if i % 2 else ("ordered", bare)
        rounds.append({kind: one(kind) for kind in turn})
    for i, what in enumerate(("CPU", "time")):
        pairs = [(r[bare][i], r["ordered"][i]) for r in rounds]
        ratio_row("%s: %s" % (name, what), "%.2f s" % median(b for _, b in pairs),
                  "%.2f s" % median(a for a, _ in pairs), median(b / a for a, b in pairs), most)
    _, _, matches, entries = rounds[0]["ordered"]
    row("  matches stored (reference: new entries)", matches, entries, "-", "-", None)
    shutil.rmtree(os.path.join(WORK, "ordered"))


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    docs, kind = collect.documents()
    o = Origin(os.path.join(WORK, "origin"), docs, "--feeds", str(FEEDS), log=False)
    head("%d feeds, %s, %d orders, median of %d; the reference is the same without orders" %
         (FEEDS, kind, STANDING, RUNS))
    try:
        w = fresh("bare")
        w.run("import", o.url_file)
        compare("each entry is new", "bare", None)
        collect.collect(w)
        make_daily(w)
        compare("one entry of %d is new" % SHARE, "bare", GOAL)
    finally:
        o.stop()


if __name__ == "__main__":
    benchmark(main)
