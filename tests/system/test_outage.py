#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A store's server is killed, unreachable, full or not started yet, under load. Afterwards each
entry is stored once (growing.py). Each case runs for every engine whose server is installed."""
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import time

from growing import (
    CONF, FEEDS, LEASE_S, LONG, SHORT_LEASE, Address, requests_of_all, requests_of_each, at_rest, drained, growing)
from harness import Skip, Feedwheel, each_engine, equal, holds, let_pass, run, wait_for, workers_of
from http_server import HttpServer
from icon_site import PNG, Client, Site, has_icon
from moving import PAIR, Proxy
from pushing import EVENT
from readers import user_add
from receivers import Receiver, items
from receivers import add as add_order
from servers import HELLO, PrivateServer
from stream_client import Stream

AWAY_S = 30 if LONG else 3


@each_engine("workers continue by themselves after the server was killed under load and started again")
def killed_server(base, engine):
    with growing(base, engine) as (o, w, s):
        p = w.start("run")
        for k in range(2):
            n = requests_of_all(o)
            wait_for("requests", lambda n=n: requests_of_all(o) > n + FEEDS)
            s.kill()
            workers, before = workers_of(p), requests_of_each(o)
            let_pass(AWAY_S if k else 0.5, "the outage's length")
            if k:
                wait_for("the claimed feeds", lambda: at_rest(lambda: requests_of_all(o)))
                holds(max(a - b for a, b in zip(requests_of_each(o), before)) <= 1,
                      "a feed was polled twice during the outage, when no claim is possible")
            s.restart()
            start = time.monotonic()
            wait_for("requests after the outage", lambda before=before: requests_of_all(o) > sum(before) + FEEDS, 30)
            print("# requests %.1f s after the server's start" % (time.monotonic() - start))
            equal(workers_of(p), workers, "the workers")
        wait_for("the message", lambda: "the store answers again" in w.log())
        drained(w, p)


@each_engine("a run that starts before its server waits for it; --once and other commands fail at once")
def late_server(base, engine):
    with growing(base, engine) as (o, w, s):
        output = w.run("doctor", code=None).stdout # durability is a note: the tests' servers do not sync
        for check in ("server", "durability"):
            holds(re.search(r"^(ok|note|broken) +%s " % check, output, re.M), check + ":\n" + output)
        holds(re.search(r"^ok +store .*\n(.*\n)*ok +store clock ", output, re.M), output)
        s.kill()
        output = w.run("doctor", code=1).stdout
        holds(re.search(r"^broken +store .*\n +-> check that its server runs", output, re.M), output)
        for arguments in (
            ["status"],
            ["list"],
            ["run", "--once"],
            ["fetch-now", o.urls[0]],
            ["add", "https://x.example/"],
        ):
            start = time.monotonic()
            message = w.run(*arguments, code=3, timeout=90).stderr
            holds(time.monotonic() - start < 60, "%s took %.1f s" % (arguments, time.monotonic() - start))
            holds("server" in message.lower(), "%s: %s" % (arguments, message))
        p = w.start("run")
        wait_for("both workers to wait", lambda: w.log().count("visits: the store is unavailable") >= 2)
        equal(requests_of_all(o), 0)
        equal(p.poll(), None, w.last_log())
        s.restart()
        wait_for("requests to all feeds", lambda: requests_of_all(o) >= FEEDS)
        drained(w, p)
        s.kill()
        n = w.log().count("visits: the store is unavailable")
        p = w.start("run") # SIGTERM ends it while it waits
        wait_for("both workers to wait", lambda: w.log().count("visits: the store is unavailable") >= n + 2)
        drained(w, p)
        s.restart()


@each_engine("a drain during an outage takes no longer than drain_timeout_ms; the next run repeats the visits")
def drain_in_outage(base, engine):
    with growing(base, engine, conf="drain_timeout_ms = 2s\n") as (o, w, s):
        p = w.start("run")
        wait_for("requests", lambda: requests_of_all(o) > FEEDS)
        s.kill()
        let_pass(0.3, "the outage begins before the stop")
        start = time.monotonic()
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=90)
        holds(time.monotonic() - start < 60, "it took %.1f s" % (time.monotonic() - start))
        s.restart()


@each_engine("while workers of two machines are killed repeatedly, no entry is lost or stored twice")
def two_machines(base, engine):
    rng = random.Random(2)
    with growing(base, engine) as (o, w, s):
        masters = [w.start("run"), w.start("run")]
        wait_for("all workers", lambda: len(w.json("status")["workers"]) == 4)
        for _ in range(60 if LONG else 8):
            n = requests_of_all(o)
            wait_for("requests", lambda n=n: requests_of_all(o) > n)
            let_pass(rng.uniform(0.05, 0.6), "a kill at any moment")
            workers = workers_of(rng.choice(masters))
            if workers:
                with contextlib.suppress(ProcessLookupError): # it was killed before, and reaped just now
                    os.kill(rng.choice(workers), signal.SIGKILL)
        for master in masters:
            drained(w, master)


# ---- a machine that cannot reach the store ---------------------------------------------------------------

def proxied(engine, url):
    """A proxy to the server at this URL, and the URL through it."""
    if engine == "postgres":
        folder, options = re.match(r"postgres://feedwheel@/postgres\?host=([^&]*)&(.*)", url).groups()
        [name] = [f for f in os.listdir(folder) if re.match(r"\.s\.PGSQL\.\d+$", f)]
        proxy = Proxy(socket.AF_UNIX, os.path.join(folder, name))
        return proxy, "postgres://feedwheel@127.0.0.1:%d/postgres?sslmode=disable&%s" % (proxy.port, options)
    if engine == "mysql":
        name, path = re.match(r"mysql://root@localhost/([^?]*)\?socket=(.*)", url).groups()
        proxy = Proxy(socket.AF_UNIX, path)
        return proxy, "mysql://root@127.0.0.1:%d/%s" % (proxy.port, name)
    if engine == "redis":
        path, options = re.match(r"redis\+unix://([^?]*)\??(.*)", url).groups()
        proxy = Proxy(socket.AF_UNIX, path)
        return proxy, "redis://127.0.0.1:%d/0?timeout_ms=1500&connect_timeout_ms=1500&%s" % (proxy.port, options)
    raise NotImplementedError(engine)


@each_engine("when one machine cannot reach the store, and a worker of another is stopped, longer than their lease, "
             "the remaining worker takes their feeds; their late commits store no entry twice")
def cut_off(base, engine):
    with growing(base, engine, "fixed:300", SHORT_LEASE + "concurrency = 20\n") as (o, w, s):
        proxy, url = proxied(engine, w.store)
        far = Feedwheel(base, CONF + SHORT_LEASE + "concurrency = 20\n", "far.db", store=url)
        far.log_file = os.path.join(base, "far-said")
        p, q = w.start("run"), far.start("run")
        try:
            for _ in range(5 if LONG else 1):
                n = requests_of_all(o)
                wait_for("requests", lambda n=n: requests_of_all(o) > n + FEEDS)
                proxy.interrupt()
                victim = workers_of(p)[0]
                os.kill(victim, signal.SIGSTOP)
                let_pass(LEASE_S + 2, "longer than the lease")
                n = requests_of_all(o)
                wait_for("requests of the remaining worker", lambda n=n: requests_of_all(o) > n + FEEDS // 2, 30)
                os.kill(victim, signal.SIGCONT)
                again = far.log().count("the store answers again")
                proxy.restore()
                wait_for("the message of the machine",
                         lambda again=again: far.log().count("the store answers again") > again, 30)
            drained(w, p)
            drained(far, q)
        finally:
            proxy.close()


# ---- a server that refuses -------------------------------------------------------------------------------

@each_engine("after a failover workers reconnect from the old master, now a replica, to the new one at its address",
             leave_out=("postgres", "mysql")) # theirs: failover_of_all
def failover(base, engine): # REL-08
    with PAIR[engine](engine, base) as pair, growing(base, engine, on=Address(pair.url())) as (o, w, _):
        p = w.start("run")
        wait_for("requests", lambda: requests_of_all(o) > FEEDS)
        pair.move()
        start, n = time.monotonic(), requests_of_all(o)
        wait_for("requests after the failover", lambda: requests_of_all(o) > n + 2 * FEEDS, 30)
        print("# requests %.1f s after the failover" % (time.monotonic() - start))
        wait_for("the messages", lambda: "it is a replica" in w.log() and "the store answers again" in w.log())
        drained(w, p)


class Hubs(HttpServer):
    """A server that sends requests to hubs."""

    def start(self):
        with open(self.feedwheel.conf, "a", encoding="ascii") as f:
            f.write("websub_url = http://127.0.0.1:%d/\n" % self.port)
        super().start()


class Fleet:
    """A run, which delivers; a server that is written to; one that is only read. All are at work."""

    def __init__(self, stack, base, pair):
        self.pair, self.moved_s = pair, 0
        conf = "auth_failures_max = 0\nserve_discovery = yes\nhost_gap_ms = 0\n"
        for name in ("run", "written", "read"):
            os.mkdir(os.path.join(base, name))
        self.feedwheel = w = Feedwheel(os.path.join(base, "run"), "workers = 1\nlease_ms = 3s\n", store=pair.url())
        w.run("add", "-q", "https://a.example/feed")
        w.run("pause", "-q", "1")
        self.token = {name: w.run("token", "add", name, "--scope", scope).stdout.strip() for name, scope in (
            ("writer", "admin,push,read"), ("reader", "read"), ("removed", "read"))}
        self.receiver = stack.enter_context(Receiver())
        add_order(w, self.receiver, "sec")
        self.run = w.start("run")
        wait_for("the sender", lambda: "orders: this process delivers" in w.log())
        self.written = Hubs(os.path.join(base, "written"), store=pair.url(), conf=conf)
        stack.callback(self.written.stop)
        self.read = HttpServer(os.path.join(base, "read"), store=pair.url(), conf=conf)
        stack.callback(self.read.stop)
        self.written.token, self.read.token = self.token["writer"], self.token["reader"]
        self.stream = Stream(self.read, "/v1/stream?since=0", token=self.read.token)
        stack.callback(self.stream.stop)
        self.pushed_n = self.added_n = 0
        self.site = self.reader = None
        if pair.engine != "redis": # it has no accounts
            self.site = Site()
            self.site.pages.update({"/%s.png" % name: ("image/png", PNG) for name in ("first", "second")})
            stack.callback(self.site.stop)
            user_add(self.written, "alice")
            self.reader = Client(self.written)

    def push(self):
        """One more entry, by a command, which connects anew."""
        self.feedwheel.run("push", "1", "-", stdin=items(self.pushed_n, 1))
        self.pushed_n += 1

    def add_feed(self):
        """The status of a write over HTTP."""
        self.added_n += 1
        body = json.dumps({"url": "https://b.example/%d" % self.added_n})
        return self.written.request("POST", "/v1/feeds", body, {"Content-Type": "application/json"})[0]

    def may_read(self, token):
        bearer = {"Authorization": "Bearer " + token}
        return self.read.request("GET", "/v1/feeds/1", headers=bearer)[0]

    def use(self):
        """Requests together, so that each thread of the servers gets one."""
        with concurrent.futures.ThreadPoolExecutor(16) as many:
            for d in self.written, self.read:
                list(many.map(lambda _, d=d: d.request("GET", "/v1/feeds"), range(16)))

    def has_all(self):
        return len(self.receiver.got("/sec")) >= self.pushed_n and len(self.stream.ids) >= self.pushed_n


def failover_http_write(f):
    wait_for("a feed is added over HTTP", lambda: f.add_feed() == 201, 10)
    equal([f.add_feed() for _ in range(20)], [201] * 20, "after the first success")
    equal(f.written.request("POST", "/v1/feeds/1/entries", items(1000, 1, word="other"),
                            {"Content-Type": "application/feed+json"})[0], 200, "a push of entries")
    wait_for("a push of events", lambda: f.written.push(EVENT)[0] == 200, 10)


def failover_delivery(f):
    f.push()
    wait_for("the order's message", lambda: len(f.receiver.got("/sec")) >= f.pushed_n, 15)


def failover_stream(f):
    title = "wanted %d" % (f.pushed_n - 1)
    wait_for("the entry in the stream", lambda: title in [i["title"] for i in f.stream.items], 45)


def failover_hub_record(f):
    two = f.pair.two
    until_ms = f.pair.records(two)
    wait_for("the hubs' leader renews its record", lambda: f.pair.records(two) > until_ms, 45)


def failover_token(f):
    equal(f.may_read(f.token["removed"]), 200, "before its removal")
    f.feedwheel.run("token", "remove", "removed")
    wait_for("the removed token is refused", lambda: f.may_read(f.token["removed"]) == 401, 45)


def failover_icon(f):
    if f.reader:
        feed = f.site.add(f.reader, "second", f.site.url("/second.png"))
        wait_for("the icon", lambda: f.reader.call("GET", "feeds/%d/icon" % feed)[0] == 200, 15)
        equal(f.pair.sql(f.pair.two, "SELECT count(*) FROM t.icons"), ["2"], "icons on the new server")


def failover_leaves_none(f):
    """No thread keeps a connection to the old server."""
    wait_for("no connection to the old server", lambda: f.use() or not f.pair.connections(f.pair.one), 45)


def failover_log(f):
    """One warning for each kind of work in each process; each thread that answers requests notices when it
    has the next one, which may be after the others' outage."""
    for w, some in (f.feedwheel, {"orders"}), (f.written.feedwheel, {"requests"}), (f.read.feedwheel, set()):
        said = collections.Counter(re.findall(r" warn [^:]+: ([\w ]+): the store is unavailable: ", w.log()))
        holds(some <= {*said}, "warnings in %s: %s" % (w.base, said))
        del said["requests"]
        equal({who: n for who, n in said.items() if n > 1}, {}, "warnings in " + w.base)
    holds(re.search("orders: the store is unavailable: .*; deliveries wait$", f.feedwheel.log(), re.M), "the words")


@each_engine("after a failover from a server that lives on and takes no writes, all goes on by itself at the new one: "
             "writes over HTTP, deliveries, the stream, hubs, tokens, icons; the old one keeps no connection")
def failover_of_all(base, engine): # REL-08
    with contextlib.ExitStack() as stack:
        pair = stack.enter_context(PAIR[engine](engine, base))
        f = Fleet(stack, base, pair)
        equal(f.add_feed(), 201)
        f.push()
        wait_for("the first entry", f.has_all)
        wait_for("the hubs' leader", lambda: pair.records(pair.one))
        if f.reader:
            has_icon(f.reader, f.site.add(f.reader, "first", f.site.url("/first.png")))
        f.use()
        pair.move()
        start, wrong = time.monotonic(), {}
        for fact in (failover_http_write, failover_delivery, failover_stream, failover_hub_record, failover_token,
                     failover_icon, failover_leaves_none, failover_log):
            try:
                fact(f)
                print("# %s: %.1f s after the move" % (fact.__name__, time.monotonic() - start), flush=True)
            except AssertionError as e:
                wrong[fact.__name__] = str(e)
        equal(wrong, {}, "after the move")
        drained(f.feedwheel, f.run)


TEN_CONNECTIONS = {
    "postgres": ["-c", "max_connections=10", "-c", "superuser_reserved_connections=0"],
    "redis": ["--maxclients", "10"],
}


@each_engine("without a free connection commands fail and name the remedy, and a run waits for one",
             leave_out=("mysql",))
def too_many(base, engine): # REL-08
    private = PrivateServer(engine, base, options=TEN_CONNECTIONS[engine])
    with growing(base, engine, on=private) as (o, w, s), contextlib.ExitStack() as clients:
        hello = HELLO if engine == "postgres" else b"PING\r\n"
        full = False
        while not full:
            c = clients.enter_context(s.connect())
            try:
                c.sendall(hello)
                full = c.recv(1) not in (b"R", b"+")
            except OSError: # the server has closed the connection
                full = True
        start = time.monotonic()
        message = w.run("status", code=3).stderr
        if engine == "postgres": # Redis may close the connection before its message is read
            holds("max_connections" in message, message)
        holds(time.monotonic() - start < 60, "it took 60 s")
        p = w.start("run")
        wait_for("the message", lambda: "visits: the store is unavailable" in w.log())
        equal(requests_of_all(o), 0, "requests")
        equal(p.poll(), None, w.last_log())
        clients.close()
        wait_for("requests", lambda: requests_of_all(o) > FEEDS, 30)
        drained(w, p)


@contextlib.contextmanager
def small_disk(base, megabytes):
    """A folder on a disk of its own, and a function that fills the disk or frees it again."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small disk")
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


SMALL = {
    "postgres": ["-c", "autovacuum=off"],
    "redis": [],
    "mysql": ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=8M"],
}


@each_engine("while the server's disk is full, workers keep their visits and claim nothing; afterwards they continue")
def full_disk(base, engine): # REL-09
    with small_disk(base, 250) as (folder, fill), \
            growing(base, engine, on=PrivateServer(engine, base, options=SMALL[engine], folder=folder)) as (o, w, s):
        p = w.start("run")
        wait_for("requests", lambda: requests_of_all(o) > FEEDS)
        fill(True)
        # a server may end itself ("[FATAL] InnoDB: Error (Out of disk space) in rollback") before it has refused
        wait_for("the message", lambda: re.search("full|space|disk", w.log()) or s.process.poll() is not None, 60)
        wait_for("the outage", lambda: "visits: the store is unavailable" in w.log())
        let_pass(AWAY_S, "the outage's length")
        wait_for("the end of requests", lambda: at_rest(lambda: requests_of_all(o)))
        n = requests_of_all(o)
        equal(p.poll(), None, w.last_log())
        print("# " + [l for l in w.log().splitlines() if "the store is unavailable" in l][0].split(" ", 1)[1])
        fill(False)
        if s.process.poll() is not None:
            print("# the server has ended, and is started again")
            s.start()
        wait_for("requests after the outage", lambda: requests_of_all(o) > n + FEEDS, 40)
        wait_for("the message", lambda: "the store answers again" in w.log())
        drained(w, p)


run()
