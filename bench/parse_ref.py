#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""python3-feedparser with sanitising, for bench_parse.

It reads the names of documents from stdin up to an empty line. Then, for each further line, it parses
all of them once and prints the CPU seconds."""
import sys
import time
import warnings

import feedparser


def main():
    warnings.simplefilter("ignore")
    feedparser.SANITIZE_HTML = 1
    names = iter(sys.stdin.readline, "\n")
    documents = []
    for name in names:
        with open(name.rstrip("\n"), "rb") as f:
            documents.append(f.read())
    for _ in sys.stdin:
        entries = 0
        began = time.process_time()
        for d in documents:
            try:
                entries += len(feedparser.parse(d).entries)
            except Exception as e:  # it fails on some: they count as parsed
                print("feedparser:", repr(e)[:100], file=sys.stderr)
        print("%.6f %d" % (time.process_time() - began, entries), flush=True)


main()
