# SPDX-License-Identifier: ISC
"""Growing feeds on a store that has a server, and exact accounts of them.

Each request to a growing feed adds one entry, and a document shows the newest 60, so what an outage took is made good by the next
visit: in the end feed i must have exactly the entries 1 .. 10 + requests - 1. FW_LONG=1: outages of 30 s instead of some seconds.
"""
import contextlib
import json
import os
import signal

from harness import SOON, Wheel, equal, holds, origin, samples, server

FEEDS = 60
LONG = "FW_LONG" in os.environ
LEASE_S = 10
CONF = SOON + "lease_ms = %ds\ntotal_timeout_ms = 2s\nconnect_timeout_ms = 2s\nfirst_byte_timeout_ms = 2s\nworkers = 2\nbatch_ms = 50ms\n" % LEASE_S


class Address(contextlib.nullcontext):
    """A store that somebody else sees to."""

    def __init__(self, address):
        super().__init__(self)
        self.address = address

    def url(self, _="t"):
        return self.address


@contextlib.contextmanager
def growing(base, engine, latency="lognormal:60:0.8", conf="", on=None, checked=True):
    """Growing feeds, a server (on: that one) and a wheel on it that has subscribed to them; the accounts are checked at the end, if they
    are to be."""
    with on or server(engine, base) as s, origin(base, samples(base), "--feeds", str(FEEDS), "--latency", latency,
                                                plans=["* grow=1,start=10,window=60"]) as o:
        w = Wheel(base, CONF + conf, store=s.url("t"))
        w.run("import", o.url_file)
        yield o, w, s
        if checked:
            settle(o, w)
            accounted(o, w)


def asked(o):
    return sum(h["requests"] for h in o.stats(hosts=True)["hosts"].values())


def settle(o, w):
    """A last quiet visit of each."""
    w.run("set", "--due", *o.urls)
    stats = w.run_once(timeout=90)
    if stats["feeds"] < FEEDS: # some were lent just then, and their visits counted before
        w.run("set", "--due", *o.urls)
        stats = w.run_once(timeout=90)
    equal((stats["feeds"] >= FEEDS, stats["failed"]), (True, 0), "the last run visits all: %s" % stats)


def accounted(o, w):
    """No entry lost, none twice, none changed."""
    have = {u: [] for u in o.urls}
    for line in w.run("entries", "--jsonl").stdout.splitlines():
        e = json.loads(line)
        have[e["_store"]["feed_url"]].append(e["id"])
        equal(e["_store"]["revision"], 1, "revision")
    hosts = o.stats(hosts=True)["hosts"]
    wrong, requests = [], 0
    for i, url in enumerate(o.urls):
        n = hosts[url.split("/")[2].split(":")[0]]["requests"]
        requests += n
        want = sorted("feed-%d-entry-%d" % (i, k) for k in range(1, 10 + n))
        if sorted(have[url]) != want:
            wrong.append("feed %d after %d requests: %d entries, lost %s, extra %s" % (
                i, n, len(have[url]), sorted(set(want) - set(have[url]))[:5], sorted(set(have[url]) - set(want))[:5]))
    equal(wrong, [], "accounting")
    equal(w.json("status")["lent"], 0, "leases still out")
    print("# %d entries of %d requests, none lost, none twice" % (sum(map(len, have.values())), requests))


def drained(w, p):
    p.send_signal(signal.SIGTERM)
    equal(p.wait(timeout=60), 0, w.last_words())
