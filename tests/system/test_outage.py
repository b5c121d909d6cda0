#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A store on a server that is killed, frozen, cut off or not there yet, under load; then exact
accounting (growing.py). Each case runs for every engine whose server is installed."""
import contextlib
import os
import random
import re
import select
import signal
import socket
import subprocess
import threading
import time

from http_server import free_port
from growing import CONF, FEEDS, LEASE_S, LONG, SHORT_LEASE, Address, asked, asked_each, at_rest, drained, growing
from harness import Skip, Feedwheel, each_engine, equal, holds, let_pass, run, wait_for, workers_of
from servers import HELLO, Private

AWAY_S = 30 if LONG else 3


@each_engine("the server killed with -9 under load, away for a while, and started again: workers go on by themselves")
def killed_server(base, engine):
    with growing(base, engine) as (o, w, s):
        p = w.start("run")
        for k in range(2):
            n = asked(o)
            wait_for("work", lambda n=n: asked(o) > n + FEEDS)
            s.kill9()
            workers, before = workers_of(p), asked_each(o)
            let_pass(AWAY_S if k else 0.5, "the outage's length")
            if k:
                wait_for("what was claimed to be asked", lambda: at_rest(lambda: asked(o)))
                holds(max(a - b for a, b in zip(asked_each(o), before)) <= 1,
                      "a feed was asked twice while nothing could be claimed")
            s.again()
            start = time.monotonic()
            wait_for("work again", lambda before=before: asked(o) > sum(before) + FEEDS, 30)
            print("# work again %.1f s after the server" % (time.monotonic() - start))
            equal(workers_of(p), workers, "the same workers")
        wait_for("words", lambda: "the store answers again" in w.words())
        drained(w, p)


@each_engine("a run that starts before its server waits for it; --once and commands say at once that it is away")
def late_server(base, engine):
    with growing(base, engine) as (o, w, s):
        said = w.run("doctor", code=None).stdout # the tests' servers need not outlive a power cut, and it says so
        for check in ("server", "durability"):
            holds(re.search(r"^(ok|note|broken) +%s " % check, said, re.M), check + ":\n" + said)
        holds(re.search(r"^ok +store .*\n(.*\n)*ok +store clock ", said, re.M), said)
        s.kill9()
        said = w.run("doctor", code=1).stdout
        holds(re.search(r"^broken +store .*\n +-> check that its server runs", said, re.M), said)
        for arguments in (
            ["status"],
            ["list"],
            ["run", "--once"],
            ["fetch-now", o.urls[0]],
            ["add", "https://x.example/"]):
            start = time.monotonic()
            said = w.run(*arguments, code=3, timeout=90).stderr
            holds(time.monotonic() - start < 60, "%s took %.1f s" % (arguments, time.monotonic() - start))
            holds("server" in said.lower(), "%s: %s" % (arguments, said))
        p = w.start("run")
        wait_for("both to wait", lambda: w.words().count("next try in") >= 2)
        equal(asked(o), 0)
        equal(p.poll(), None, w.last_words())
        s.again()
        wait_for("work", lambda: asked(o) >= FEEDS)
        drained(w, p)
        s.kill9()
        n = w.words().count("next try in")
        p = w.start("run") # and it can be told to leave while it waits
        wait_for("both to wait", lambda: w.words().count("next try in") >= n + 2)
        drained(w, p)
        s.again()


@each_engine("told to leave during an outage: it waits no longer than drain_timeout_ms, and the next run makes the "
             "visits again")
def drain_in_outage(base, engine):
    with growing(base, engine, conf="drain_timeout_ms = 2s\n") as (o, w, s):
        p = w.start("run")
        wait_for("work", lambda: asked(o) > FEEDS)
        s.kill9()
        let_pass(0.3, "the store is away for a while before the stop")
        start = time.monotonic()
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=90)
        holds(time.monotonic() - start < 60, "it took %.1f s" % (time.monotonic() - start))
        s.again()


@each_engine("two machines, their workers killed with -9 again and again: nothing is lost or doubled")
def two_machines(base, engine):
    rng = random.Random(2)
    with growing(base, engine) as (o, w, s):
        p = [w.start("run"), w.start("run")]
        wait_for("all workers", lambda: len(w.json("status")["workers"]) == 4)
        for _ in range(60 if LONG else 8):
            n = asked(o)
            wait_for("work", lambda n=n: asked(o) > n)
            let_pass(rng.uniform(0.05, 0.6), "a kill at any moment")
            workers = workers_of(rng.choice(p))
            if workers:
                with contextlib.suppress(ProcessLookupError): # it was killed before, and reaped just now
                    os.kill(rng.choice(workers), signal.SIGKILL)
        for x in p:
            drained(w, x)


# ---- a machine that is cut off -----------------------------------------------------------------------------

class Wire:
    """A wire from a port of its own to the server. Cut, it carries nothing and tells nobody;
    mended, it knows of no connection."""

    def __init__(self, family, address):
        self.family, self.address, self.whole, self.over, self.forgets = family, address, True, False, False
        self.pairs = {}
        self.http_server = socket.create_server(("127.0.0.1", 0))
        self.port = self.http_server.getsockname()[1]
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        while not self.over:
            if not self.whole:
                let_pass(0.02, "a feed's turn")
                continue
            if self.forgets:
                for x in self.pairs:
                    x.close()
                self.pairs, self.forgets = {}, False
            ready, _, _ = select.select([self.http_server, *self.pairs], [], [], 0.05)
            for r in ready:
                if r is self.http_server:
                    near, far = self.http_server.accept()[0], socket.socket(self.family)
                    try:
                        far.connect(self.address)
                        self.pairs[near], self.pairs[far] = far, near
                    except OSError: # the server is away
                        near.close()
                        far.close()
                    continue
                other = self.pairs.get(r)
                try:
                    data = r.recv(65536)
                    if data and other:
                        other.sendall(data)
                        continue
                except OSError:
                    pass
                for x in (r, other):
                    if x:
                        self.pairs.pop(x, None)
                        x.close()

    def mend(self):
        self.forgets = self.whole = True

    def close(self):
        self.over = True
        self.thread.join()
        for x in [self.http_server, *self.pairs]:
            x.close()


def wired(engine, url):
    """A wire to the server at this URL, and the URL by way of it."""
    if engine == "postgres":
        folder, options = re.match(r"postgres://feedwheel@/postgres\?host=([^&]*)&(.*)", url).groups()
        wire = Wire(socket.AF_UNIX, os.path.join(
            folder, [f for f in os.listdir(folder) if re.match(r"\.s\.PGSQL\.\d+$", f)][0]))
        return wire, "postgres://feedwheel@127.0.0.1:%d/postgres?sslmode=disable&%s" % (wire.port, options)
    if engine == "mysql":
        name, path = re.match(r"mysql://root@localhost/([^?]*)\?socket=(.*)", url).groups()
        wire = Wire(socket.AF_UNIX, path)
        return wire, "mysql://root@127.0.0.1:%d/%s" % (wire.port, name)
    if engine == "redis":
        path, options = re.match(r"redis\+unix://([^?]*)\??(.*)", url).groups()
        wire = Wire(socket.AF_UNIX, path)
        return wire, "redis://127.0.0.1:%d/0?timeout_ms=1500&connect_timeout_ms=1500&%s" % (wire.port, options)
    raise NotImplementedError(engine)


@each_engine("one of two machines cut off from the store, a worker of the other stopped beyond its lease: the third "
             "takes their feeds;"
             " what they still hold when they are back is not stored twice")
def cut_off(base, engine):
    with growing(base, engine, "fixed:300", SHORT_LEASE + "concurrency = 20\n") as (o, w, s):
        wire, url = wired(engine, w.store)
        far = Feedwheel(base, CONF + SHORT_LEASE + "concurrency = 20\n", "far.db", store=url)
        far.said = os.path.join(base, "far-said")
        p, q = w.start("run"), far.start("run")
        try:
            for _ in range(5 if LONG else 1):
                n = asked(o)
                wait_for("work", lambda n=n: asked(o) > n + FEEDS)
                wire.whole = False
                victim = workers_of(p)[0]
                os.kill(victim, signal.SIGSTOP)
                let_pass(LEASE_S + 2, "longer than the lease")
                n = asked(o)
                wait_for("the other's work", lambda n=n: asked(o) > n + FEEDS // 2, 30)
                os.kill(victim, signal.SIGCONT)
                words = far.words().count("the store answers again")
                wire.mend()
                wait_for("it to be back", lambda words=words: far.words().count("the store answers again") > words, 30)
            drained(w, p)
            drained(far, q)
        finally:
            wire.close()


# ---- a server that answers, and refuses ------------------------------------------------------------------------

@each_engine("a failover: the server becomes a replica, another the master and has its address; who is connected to "
             "the old one goes over",
             leave_out=("postgres", "mysql")) # PostgreSQL's failover: tests/store/postgres_faults.c
def failover(base, engine): # REL-08
    ports = free_port(), free_port()
    with Private(engine, base, "one", options=["--port", str(ports[0])]) as one, \
            Private(engine, base, "two", options=["--port", str(ports[1]), "--replicaof", "127.0.0.1",
                                                  str(ports[0])]) as two:
        wait_for("the replica", lambda: "master_link_status:up" in two.redis("INFO", "replication"))
        wire = Wire(socket.AF_UNIX, one.socket)
        try:
            with growing(base, engine, on=Address("redis://127.0.0.1:%d/0?prefix=t" % wire.port)) as (o, w, _):
                p = w.start("run")
                wait_for("work", lambda: asked(o) > FEEDS)
                wire.address = two.socket
                # waits until the replica has all of it
                equal(one.redis("FAILOVER", "TO", "127.0.0.1", str(ports[1])), "OK")
                wait_for("the new master", lambda: "role:master" in two.redis("INFO", "replication"))
                start, n = time.monotonic(), asked(o)
                wait_for("work again", lambda: asked(o) > n + 2 * FEEDS, 30)
                print("# work again %.1f s after the failover" % (time.monotonic() - start))
                wait_for("words", lambda: "it is a replica" in w.words() and "the store answers again" in w.words())
                drained(w, p)
        finally:
            wire.close()


FEW = {"postgres": ["-c", "max_connections=10", "-c",
    "superuser_reserved_connections=0"], "redis": ["--maxclients", "10"]}


@each_engine("no connection is free: commands say so with the remedy, a run waits, and works when there is one",
             leave_out=("mysql",))
def too_many(base, engine): # REL-08
    with growing(base, engine, on=Private(engine, base, options=FEW[engine])) as (o, w,
            s), contextlib.ExitStack() as guests:
        hello = HELLO if engine == "postgres" else b"PING\r\n"
        full = False
        while not full:
            c = guests.enter_context(s.connect())
            try:
                c.sendall(hello)
                full = c.recv(1) not in (b"R", b"+")
            except OSError: # it was quick to close what it does not want
                full = True
        start = time.monotonic()
        said = w.run("status", code=3).stderr
        if engine == "postgres": # Redis may close the connection before its words are read
            holds("max_connections" in said, said)
        holds(time.monotonic() - start < 60, "it waited")
        p = w.start("run")
        wait_for("words", lambda: "next try in" in w.words())
        equal(asked(o), 0, "requests")
        equal(p.poll(), None, w.last_words())
        guests.close()
        wait_for("work", lambda: asked(o) > FEEDS, 30)
        drained(w, p)


@contextlib.contextmanager
def small_disk(base, megabytes):
    """A folder on a disk of its own; and a function that fills it, or frees it again."""
    if os.geteuid() != 0:
        raise Skip("only root may mount a small disk")
    folder = os.path.join(base, "disk")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % megabytes, "tmpfs", folder], check=True)

    def fill(full):
        ballast = os.path.join(folder, "ballast")
        if not full:
            os.remove(ballast)
            return
        with open(ballast, "wb", buffering=0) as f:
            for size in 1 << 20, 1 << 12:
                with contextlib.suppress(OSError):
                    while f.write(b"x" * size) == size:
                        pass
    try:
        yield folder, fill
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


SMALL = {"postgres": ["-c", "autovacuum=off"], "redis": [],
         "mysql": ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=8M"]}


@each_engine("the server's disk is full, under load: visits are kept, nothing is claimed, and all goes on when there "
             "is room again")
def full_disk(base, engine): # REL-09
    with small_disk(base, 250) as (folder, fill), \
            growing(base, engine, on=Private(engine, base, options=SMALL[engine], folder=folder)) as (o, w, s):
        p = w.start("run")
        wait_for("work", lambda: asked(o) > FEEDS)
        fill(True)
        wait_for("words", lambda: re.search("full|space|disk", w.words()), 60)
        let_pass(AWAY_S, "the outage's length")
        wait_for("no more requests, for nothing can be stored", lambda: at_rest(lambda: asked(o)))
        n = asked(o)
        equal(p.poll(), None, w.last_words())
        print("# " + [l for l in w.words().splitlines() if re.search("full|space|disk", l)][0].split(" ", 1)[1])
        fill(False)
        if s.process.poll() is not None:
            print("# the server gave up, and is started again")
            s.start()
        wait_for("work again", lambda: asked(o) > n + FEEDS, 40)
        wait_for("words", lambda: "the store answers again" in w.words())
        drained(w, p)


run()
