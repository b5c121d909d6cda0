# SPDX-License-Identifier: ISC
"""Growing feeds on a store with a server, and an exact check of their entries.

Each request to a growing feed adds one entry. A document shows the newest 60, so the next visit
brings what an outage lost. In the end feed i must have exactly the entries 1 .. 10 + requests - 1.
FW_LONG=1: outages of 30 s instead of some seconds.
"""
import contextlib
import json
import os
import signal

from harness import SOON, SOON_S, Feedwheel, equal, let_pass, origin, samples, server, wait_for

FEEDS = 60
LONG = "FW_LONG" in os.environ
CONF = SOON + "workers = 2\nbatch_ms = 50ms\n"
LEASE_S = 6
SHORT_LEASE = "lease_ms = %ds\n" % LEASE_S # for cases in which a lease ends by time
LONG_LEASE = "lease_ms = 10m\n" # for cases in which no lease may end by time
PATIENT = "--total-timeout-ms", "1m", "--connect-timeout-ms", "1m", "--first-byte-timeout-ms", "1m"


class Address(contextlib.nullcontext):
    """A store's URL in place of a server, which the caller manages."""

    def __init__(self, address):
        super().__init__(self)
        self.address = address

    def url(self, _="t"):
        return self.address


@contextlib.contextmanager
def growing(base, engine, latency="lognormal:60:0.8", conf="", on=None, checked=True):
    """Growing feeds, a server (or `on`) and a Feedwheel on it that has subscribed to them. The
    entries are checked at the end unless checked=False."""
    with on or server(engine, base) as s, \
            origin(base, samples(base), "--feeds", str(FEEDS), "--latency", latency,
                   plans=["* grow=1,start=10,window=60"]) as o:
        w = Feedwheel(base, CONF + conf, store=s.url("t"))
        w.run("import", o.url_file)
        yield o, w, s
        if checked:
            visit_all(o, w)
            check_entries(o, w)


def requests_of_each(o):
    hosts = o.stats(hosts=True)["hosts"]
    return [hosts.get(u.split("/")[2].split(":")[0], {"requests": 0})["requests"] for u in o.urls]


def requests_of_all(o):
    return sum(requests_of_each(o))


def at_rest(count):
    """Does count() stay the same for longer than any feed's interval?"""
    n = count()
    let_pass(SOON_S, "longer than any feed's interval")
    return count() == n


def visit_all(o, w):
    """A last visit of each feed, without faults."""
    def all_visited():
        w.run("set", "--due", *o.urls)
        stats = w.run_once(*PATIENT)
        equal(stats["failed"], 0, "failures in a quiet run")
        return stats["feeds"] >= FEEDS
    wait_for("a visit of each feed", all_visited)


def check_entries(o, w):
    """No entry is lost, stored twice or changed."""
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
    equal(wrong, [], "entries")
    equal(w.json("status")["in_flight"], 0, "in flight")
    equal(w.leased(), {}, "leases")
    print("# %d entries of %d requests, none lost, none twice" % (sum(map(len, have.values())), requests))


def drained(w, p):
    """SIGTERM ends the run with exit code 0."""
    p.send_signal(signal.SIGTERM)
    equal(p.wait(timeout=60), 0, w.last_log())
