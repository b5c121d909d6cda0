#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-before BEFORE=TREE: the cost of a change, in one table.

It compares this build with the build of another tree (TREE/build). Both alternate; a figure is the
median of RUNS rounds and of the ratios within them. CPU is user and system time of all processes.
Exit status 1: a row is short (table.py).

  RUNS=7 FEEDS=3000 DURATION=4 GOAL=1.03 ONLY=words  (ONLY: collect parse ingest)
"""
import glob
import os
import shutil
import sys

if "TINY" not in os.environ:
    os.environ.setdefault("RUNS", "7")
    os.environ.setdefault("FEEDS", "3000")
    os.environ.setdefault("DURATION", "4")
import collect # pylint: disable=wrong-import-position
from collect import BUILD, FEEDS, RUNS, Origin, Feedwheel, measure # pylint: disable=wrong-import-position
from table import ( # pylint: disable=wrong-import-position
    benchmark, die, head, median, ratio_row, scratch, selection, size)

GOAL = size("GOAL", 1.03, 1000.0)
WORK = scratch(BUILD, "bench-before")
collect.WORK = WORK


# Calls fw_parse() five times on each file of its command line; prints how many succeeded.
PARSE = """import ctypes, sys
lib, doc, n = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), 0
for name in sys.argv[2:]:
    with open(name, "rb") as f:
        text = f.read()
    for _ in range(5):
        if lib.fw_parse(text, ctypes.c_size_t(len(text)), None, ctypes.byref(doc), None) == 0:
            lib.fw_document_free(doc)
            n += 1
print(n)
"""


def turns(measured):
    """Rounds of both, with the order reversed in every second round: [(before, ours)]."""
    measured(BUILD) # fills the page cache
    rounds = []
    for i in range(RUNS):
        order = (BEFORE, BUILD) if i % 2 else (BUILD, BEFORE)
        values = {tree: measured(tree) for tree in order}
        rounds.append((values[BEFORE], values[BUILD]))
    return rounds


def ratios(name, rounds, text, i=None):
    pairs = [(b, o) if i is None else (b[i], o[i]) for b, o in rounds]
    ratio = median(o / b for b, o in pairs)
    ratio_row(name, text(median(o for _, o in pairs)), text(median(b for b, _ in pairs)), ratio, GOAL)


def installed(tree, name):
    base = os.path.join(WORK, name)
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    w = Feedwheel(base)
    w.binary = os.path.join(tree, "feedwheel")
    return w


def collecting(docs):
    o = Origin(os.path.join(WORK, "origin"), docs, "--feeds", str(FEEDS), log=False)

    def one(tree):
        w = installed(tree, "collect")
        w.run("import", o.url_file)
        wall, cpu, summary = collect.collect(w)
        if summary["feeds"] != FEEDS:
            die("bench-before: %s", summary)
        return cpu, wall
    rounds = turns(one)
    o.stop()
    ratios("collect: CPU of %d visits" % FEEDS, rounds, lambda v: "%.2f s" % v, 0)
    ratios("collect: time of them", rounds, lambda v: "%.2f s" % v, 1)


def parsing(docs):
    files = sorted(glob.glob(os.path.join(docs, "*")))[:1500]

    def one(tree):
        library = os.path.join(tree, "src", "libfeedwheel.so")
        _, cpu, _, out, code = measure([sys.executable, "-c", PARSE, library, *files])
        if code or not int(out):
            die("bench-before: %s: parsing failed", tree)
        return cpu
    ratios("parse: CPU of %d documents" % len(files), turns(one), lambda v: "%.2f s" % v)


def ingesting():
    import ingest # pylint: disable=import-outside-toplevel # it needs wrk

    class HttpServer(ingest.HttpServer):
        def __init__(self, base, tree):
            self.port, self.base, self.database = ingest.free_port(), base, None
            self.fw = installed(tree, "ingest")
            # with two threads the result depends on the core that they share with wrk
            self.process = self.fw.start("serve", "--listen", "127.0.0.1:%d" % self.port, "--serve-threads", "1")
            ingest.wait_for("the server", self.responds)

    def one(tree):
        server = HttpServer(WORK, tree)
        ingest.loaded(server, ingest.PUSH, watch=False, seconds=1)
        load = ingest.loaded(server, ingest.PUSH, watch=False)
        server.stop()
        return load["cpu_us"], 1e6 / load["rate"]
    rounds = turns(one)
    ratios("ingest: CPU of a request", rounds, lambda v: "%.1f us" % v, 0)
    ratios("ingest: time of a request, 100 connections", rounds, lambda v: "%.1f us" % v, 1)


def main():
    only = selection("ONLY", ("collect", "parse", "ingest"))
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    docs, kind = collect.documents()
    head("%d rounds, %s; the reference is the build of BEFORE" % (RUNS, kind))
    if "collect" in only:
        collecting(docs)
    if "parse" in only:
        parsing(docs)
    if "ingest" in only:
        ingesting()


BEFORE = os.path.join(os.environ.get("BEFORE", ""), "build")
if __name__ == "__main__":
    if "BEFORE" not in os.environ or not os.access(os.path.join(BEFORE, "feedwheel"), os.X_OK):
        die("bench-before: BEFORE is not a tree with build/feedwheel: check out the other version,"
            " run make there, and set BEFORE=FOLDER")
    benchmark(main)
