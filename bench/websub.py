#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-websub: how long a hub waits for the response to a push.

The reference is a push of the same documents to /v1/feeds/N/entries. Both are answered when they are
committed. CLIENTS, each with a feed of its own, send documents of 20 new entries; the two paths
alternate. The store is SQLite, as durable as in production; clients and server share the machine's
cores. Exit status 1: a row is short (table.py).

  RUNS=3 DURATION=5 CLIENTS=16
"""
import concurrent.futures
import hashlib
import hmac
import http.client
import os
import sys
import tempfile
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from hubs import atom  # noqa: E402  pylint: disable=wrong-import-position
from table import (  # noqa: E402  pylint: disable=wrong-import-position
    benchmark, head, median, ratio_row, selection, size)
from test_websub import both, links  # noqa: E402  pylint: disable=wrong-import-position

RUNS, DURATION, CLIENTS = size("RUNS", 3, 1), size("DURATION", 5, 1), size("CLIENTS", 16, 2)
ENTRIES = 20


def client(port, token, number, feed, sub, first, until):
    """The response times in ms. sub None: pushes to /v1/feeds/N/entries."""
    c, took = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    path = urllib.parse.urlsplit(sub.callback).path if sub else "/v1/feeds/%d/entries" % feed
    while time.monotonic() < until:
        body = atom("f%d" % number, range(first, first + ENTRIES)).encode()
        first += ENTRIES
        headers = {"Content-Type": "application/atom+xml"}
        if sub:
            headers["X-Hub-Signature"] = "sha256=" + hmac.new(sub.secret.encode(), body, hashlib.sha256).hexdigest()
        else:
            headers["Authorization"] = "Bearer " + token
        start = time.monotonic()
        c.request("POST", path, body, headers)
        r = c.getresponse()
        text = r.read()
        took.append((time.monotonic() - start) * 1000)
        if r.status not in (200, 201):
            raise AssertionError("%s: %d %s" % (path.partition("/websub/")[0] or "push", r.status, text[:200]))
    c.close()
    return took, first


def main():
    selection("ONLY", ())
    rounds = []
    conf = "host_concurrency = 16\nhost_gap_ms = 0\nwebsub_pushes_max = 0\n" \
        "feed_daily_entries_max = 0\nfeed_daily_bytes_max = 0\n"
    with tempfile.TemporaryDirectory() as base, both(base, conf=conf) as (hub, d), \
            concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for i in range(CLIENTS):
            hub.page("/%d" % i, atom("f%d" % i, [0], links(("hub", hub.url + "/hub"), ("self", hub.url + "/%d" % i))))
        d.add(*("%s/%d" % (hub.url, i) for i in range(CLIENTS)))
        d.is_active(CLIENTS)
        subs = [hub.wait_subscription("%s/%d" % (hub.url, i)) for i in range(CLIENTS)]
        feeds = {f["url"]: f["id"] for f in d.feedwheel.json("list")}
        first = [1] * CLIENTS
        for i in range(2 * RUNS):
            until = time.monotonic() + DURATION
            jobs = [pool.submit(client, d.port, d.token, n, feeds[subs[n].topic], None if i % 2 else subs[n],
                                first[n], until) for n in range(CLIENTS)]
            round_took = []
            for n, j in enumerate(jobs):
                took, first[n] = j.result()
                round_took += took
            rounds.append(sorted(round_took))
        stored = d.entries()
        if stored != sum(first): # with number 0, the first entry of each feed
            raise AssertionError("%d entries are stored, %d were sent" % (stored, sum(first)))
    head("%d clients, %d s, median of %d; the reference is /v1/feeds/N/entries" % (CLIENTS, DURATION, RUNS))
    pairs = list(zip(rounds[::2], rounds[1::2]))
    ratio_row("pushes of hubs a second", "%.0f/s" % median(len(h) / DURATION for h, _ in pairs),
              "%.0f/s" % median(len(e) / DURATION for _, e in pairs), median(len(h) / len(e) for h, e in pairs))
    for percent, most in ((50, None), (99, 1.25)):
        of = [(h[len(h) * percent // 100], e[len(e) * percent // 100]) for h, e in pairs]
        ratio_row("  time until the response, p%d" % percent, "%.1f ms" % median(h for h, _ in of),
                  "%.1f ms" % median(e for _, e in of), median(h / e for h, e in of), most=most)


if __name__ == "__main__":
    benchmark(main)
