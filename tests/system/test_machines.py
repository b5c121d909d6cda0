#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Three machines with a network between them: a store and two that work on it. One of the two is
cut off from the store, longer than its lease lasts, while it holds work; then exact accounting
(growing.py), and no feed was fetched by two at a time. The hard forms are among them: packets
vanish and nobody is told. FW_LONG=1: it is away for so long that TCP gives up too. A case takes a
minute, and the network is the same to every engine: where FW_STORES picks none, PostgreSQL stands
for all."""
import contextlib
import os
import time

from growing import CONF, FEEDS, LEASE_S, LONG, SHORT_LEASE, asked_each, at_rest, drained, growing
from harness import Feedwheel, each_engine, engines, equal, holds, let_pass, run, wait_for
from machines import Cable, Machine, Mirror, needed
from servers import Private

LATE = "came after this worker's lease was over"
AWAY_S = 60 if LONG else LEASE_S + 1
ALL = LONG or "FW_STORES" in os.environ or "postgres" not in engines()
OPTIONS = { # so that it answers over the cables
    "postgres": ["-h", "*"],
    "redis": ["--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no"],
    "mysql": ["--skip-networking=0", "--bind-address=0.0.0.0", "--port=3306", "--skip-grant-tables"],
}


class Far(Feedwheel):
    """What runs on another machine, and how often it spoke with the origin."""

    def __init__(self, base, server, machine, cable, port):
        super().__init__(base, CONF + SHORT_LEASE + "concurrency = 20\n",
              cable.name + ".db", server.url(host=cable.near), machine.inside)
        self.said = os.path.join(base, cable.name + "-said")
        self.cable, self.mirror = cable, Mirror(machine, port)

    def spoken(self):
        return self.mirror.spoken


@contextlib.contextmanager
def fleet(base, engine):
    """A store, the origin, two machines at work; the accounts are checked at the end."""
    with contextlib.ExitStack() as stack:
        there = [Machine() for _ in range(3)]
        for m in there:
            stack.callback(m.stop)
        s = Private(engine, base, inside=there[0].inside, options=OPTIONS[engine])
        # our own commands go by the server's socket, which nobody cuts off
        o, w, _ = stack.enter_context(growing(base, engine, "fixed:700", on=s))
        far = [Far(base, s, there[i], Cable(there[0], there[i], i), o.port) for i in (1, 2)]
        for f in far:
            stack.callback(f.mirror.close)
        p = [f.start("run") for f in far]
        for x in p:
            stack.callback(x.kill)
        yield o, w, far
        for f, x in zip(far, p):
            drained(f, x)
        never_two(o)
        print("# %d times visits came too late, and nothing of them was written" %
              sum(f.words().count(LATE) for f in far))


def never_two(o):
    """No feed was asked for while another request for it was under way."""
    last, n = {}, 0
    for r in o.requests():
        before = last.get(r["feed"])
        holds(not before or r["start_us"] >= before["end_us"], "fetched by two at a time: %s and %s" % (before, r))
        last[r["feed"]] = r
        n += 1
    equal(len(last), FEEDS, "feeds")
    print("# %d requests for %d feeds, never two for one at a time" % (n, FEEDS))


@each_engine("one machine cut off from the store for longer than its lease, by a cable pulled out, by packets that "
             "vanish, by answers"
             " that vanish: the other has all feeds, the first comes back by itself, and nothing is lost or doubled, "
             "and no feed asked by both",
             leave_out=() if ALL else ("redis", "mysql"))
def cut_off(base, engine): # REL-05, REL-18
    needed()
    with fleet(base, engine) as (o, w, (one, other)):
        cable = one.cable
        for form, cut, mend in (
            ("the cable pulled out", cable.unplug, cable.plug),
            ("all packets lost", cable.drop, cable.carry),
            ("answers lost", lambda: cable.drop(answers_only=True),
             cable.carry)):
            n = [one.spoken(), other.spoken()]
            wait_for("both at work", lambda n=n: one.spoken() > n[0] + FEEDS and other.spoken() > n[1] + FEEDS, 60)
            cut()
            holds(len(w.leased()) == 4, "both held work")
            let_pass(AWAY_S, "the outage's length")
            wait_for("the last answers", lambda: at_rest(one.spoken))
            n, before = one.spoken(), asked_each(o)
            try:
                wait_for("the other to have all feeds", lambda before=before: not left(o, before), 60)
            except AssertionError as e:
                raise AssertionError("%s: %s\n%s" % (form, e, "\n".join(
                    w.run("why", u).stdout for u in left(o, before)[:3]))) from e
            equal(one.spoken(), n, "requests of the one that is cut off")
            mend()
            start = time.monotonic()
            wait_for("it to be back", lambda n=n: one.spoken() > n, 60)
            print("# %s: %s; back at work %.1f s after its end" % (engine, form, time.monotonic() - start))


def left(o, before):
    """Who has not been asked for since."""
    return [u for u, a, b in zip(o.urls, asked_each(o), before) if a <= b]


run()
