#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-websub: how long a hub waits for the answer to a push, beside the same documents brought to /v1/feeds/N/entries.

Both are answered when they are committed. CLIENTS, each with a feed of its own, send documents of 20 entries, all of them new; the two roads
take turns. SQLite, as durable as in production; clients and server share the machine's cores.

  ROUNDS=3 DURATION=5 CLIENTS=16
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
from test_websub import both, links  # noqa: E402  pylint: disable=wrong-import-position

ROUNDS, DURATION, CLIENTS = (int(os.environ.get(n, d)) for n, d in (("ROUNDS", "3"), ("DURATION", "5"), ("CLIENTS", "16")))
ENTRIES = 20


def client(port, token, number, feed, sub, first, until):
    """The times of the answers in ms. sub None: the other road."""
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
    figures = {"hub": [], "entries": []}
    with tempfile.TemporaryDirectory() as base, both(base, conf="host_max = 16\nhost_gap_ms = 0\n") as (hub, d), \
            concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for i in range(CLIENTS):
            hub.page("/%d" % i, atom("f%d" % i, [0], links(("hub", hub.url + "/hub"), ("self", hub.url + "/%d" % i))))
        d.add(*("%s/%d" % (hub.url, i) for i in range(CLIENTS)))
        d.is_active(CLIENTS)
        subs = [hub.wait_one("%s/%d" % (hub.url, i)) for i in range(CLIENTS)]
        feeds = {f["url"]: f["id"] for f in d.wheel.json("list")}
        first = [1] * CLIENTS
        for i in range(2 * ROUNDS):
            road = "entries" if i % 2 else "hub"
            until = time.monotonic() + DURATION
            jobs = [pool.submit(client, d.port, d.token, n, feeds[subs[n].topic], None if i % 2 else subs[n], first[n], until) for n in range(CLIENTS)]
            for n, j in enumerate(jobs):
                took, first[n] = j.result()
                figures[road] += took
        stored = d.entries()
        if stored != sum(first): # with the first one of each feed, number 0
            raise AssertionError("%d entries are stored, %d were sent" % (stored, sum(first)))
    for road, took in figures.items():
        took.sort()
        print("%-8s %6.0f pushes/s  p50 %6.1f ms  p99 %6.1f ms" % (road, len(took) / DURATION / ROUNDS, took[len(took) // 2], took[len(took) * 99 // 100]))
    ratio = figures["hub"][len(figures["hub"]) * 99 // 100] / figures["entries"][len(figures["entries"]) * 99 // 100]
    print("p99: hub / entries %.2f" % ratio)


if __name__ == "__main__":
    main()
