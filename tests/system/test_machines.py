#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Three machines with a network between them: a store's server and two that run workers. One of the
two cannot reach the store for longer than its lease, while it has feeds in flight. Afterwards each
entry is stored once (growing.py), and no feed was fetched by two workers at the same time. Some
outages drop packets without an error. FW_LONG=1: they last until TCP connections time out.

A case takes a minute, and the network is the same for every engine: without FW_STORES only
PostgreSQL is used."""
import contextlib
import os
import time

from growing import CONF, FEEDS, LEASE_S, LONG, SHORT_LEASE, requests_of_each, at_rest, drained, growing
from harness import Feedwheel, each_engine, engines, equal, holds, let_pass, run, wait_for
from machines import Cable, Machine, Mirror, needed
from servers import PrivateServer

LATE = "came after this worker's lease was over"
AWAY_S = 60 if LONG else LEASE_S + 1
ALL = LONG or "FW_STORES" in os.environ or "postgres" not in engines()
OPTIONS = { # so that the server listens on its end of the cables
    "postgres": ["-h", "*"],
    "redis": ["--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no"],
    "mysql": ["--skip-networking=0", "--bind-address=0.0.0.0", "--port=3306", "--skip-grant-tables"],
}


class Far(Feedwheel):
    """A Feedwheel on another machine; counts what passes between it and the origin."""

    def __init__(self, base, server, machine, cable, port):
        super().__init__(base, CONF + SHORT_LEASE + "concurrency = 20\n", cable.name + ".db",
                         server.url(host=cable.near), machine.inside)
        self.log_file = os.path.join(base, cable.name + "-said")
        self.cable, self.mirror = cable, Mirror(machine, port)

    def forwarded(self):
        return self.mirror.forwarded


@contextlib.contextmanager
def fleet(base, engine):
    """A store, the origin, two machines with a run; the entries are checked at the end."""
    with contextlib.ExitStack() as stack:
        machines = [Machine() for _ in range(3)]
        for m in machines:
            stack.callback(m.stop)
        s = PrivateServer(engine, base, inside=machines[0].inside, options=OPTIONS[engine])
        # the test's own commands use the server's socket, which no outage affects
        o, w, _ = stack.enter_context(growing(base, engine, "fixed:700", on=s))
        far = [Far(base, s, machines[i], Cable(machines[0], machines[i], i), o.port) for i in (1, 2)]
        for f in far:
            stack.callback(f.mirror.close)
        masters = [f.start("run") for f in far]
        for master in masters:
            stack.callback(master.kill)
        yield o, w, far
        for f, master in zip(far, masters):
            drained(f, master)
        one_at_a_time(o)
        print("# %d commits came too late and wrote nothing" % sum(f.log().count(LATE) for f in far))


def one_at_a_time(o):
    """No two requests to a feed were in flight at the same time."""
    last, n = {}, 0
    for r in o.requests():
        before = last.get(r["feed"])
        holds(not before or r["start_us"] >= before["end_us"], "in flight at the same time: %s and %s" % (before, r))
        last[r["feed"]] = r
        n += 1
    equal(len(last), FEEDS, "feeds")
    print("# %d requests to %d feeds, one at a time to each" % (n, FEEDS))


@each_engine("when one machine cannot reach the store for longer than its lease (cable unplugged, all packets dropped, "
             "responses dropped), the other takes all feeds; the first reconnects by itself, no entry is lost or "
             "stored twice, and no feed is fetched by both at the same time",
             leave_out=() if ALL else ("redis", "mysql"))
def cut_off(base, engine): # REL-05, REL-18
    needed()
    with fleet(base, engine) as (o, w, (one, other)):
        cable = one.cable
        for outage, begin, end in (
            ("cable unplugged", cable.unplug, cable.plug),
            ("all packets dropped", cable.drop, cable.restore),
            ("responses dropped", lambda: cable.drop(responses_only=True), cable.restore),
        ):
            n = [one.forwarded(), other.forwarded()]
            wait_for("requests of both",
                     lambda n=n: one.forwarded() > n[0] + FEEDS and other.forwarded() > n[1] + FEEDS, 60)
            begin()
            holds(len(w.leased()) == 4, "workers with a lease")
            let_pass(AWAY_S, "the outage's length")
            wait_for("the last responses", lambda: at_rest(one.forwarded))
            n, before = one.forwarded(), requests_of_each(o)
            try:
                wait_for("the other to fetch all feeds", lambda before=before: not not_fetched(o, before), 60)
            except AssertionError as e:
                why = "\n".join(w.run("why", u).stdout for u in not_fetched(o, before)[:3])
                raise AssertionError("%s: %s\n%s" % (outage, e, why)) from e
            equal(one.forwarded(), n, "requests of the machine without the store")
            end()
            start = time.monotonic()
            wait_for("its requests", lambda n=n: one.forwarded() > n, 60)
            print("# %s: %s; requests again %.1f s after its end" % (engine, outage, time.monotonic() - start))


def not_fetched(o, before):
    """The feeds without a request since."""
    return [u for u, a, b in zip(o.urls, requests_of_each(o), before) if a <= b]


run()
