#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The accounting of orders: workers, servers, whole runs, the receiver and the database are killed in
turn while feeds grow. Afterwards every subscriber has every match at least once, none twice without
the same message id, and none out of order within a feed.

FW_ORDER_KILLS=1000 kills a thousand times on each store (default 5); FW_REPLAY_ENTRIES=100000
replays so many (default 1,000).
"""
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys

from growing import Address, growing, requests_of_all, visit_all
from harness import each_engine, equal, holds, let_pass, run, server, wait_for, workers_of
from http_server import free_port, kill_group

KILLS = int(os.environ.get("FW_ORDER_KILLS", "5"))
REPLAYED = int(os.environ.get("FW_REPLAY_ENTRIES", "1000"))
PUSHED_AT_ONCE = 500
# name: the query, and which entries it matches, by the numbers of feed and entry
ORDERS = {
    "all": ("entry", lambda feed, k: True),
    "one": ('title:"of feed 7"', lambda feed, k: feed == 7),
    "some": ("title:3* -title:33", lambda feed, k: any(
        str(n).startswith("3") for n in (feed, k)) and 33 not in (feed, k)),
}


class Receiver:
    """receiver.py on a port of its own."""

    def __init__(self, base):
        self.file, self.port = os.path.join(base, "received"), free_port()
        self.start()

    def start(self, share=0.2):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "receiver.py")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "SIGKILL", sys.executable, program,
                                         str(self.port), self.file, str(share)])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def size(self):
        """It grows with each message that is accepted."""
        return os.path.getsize(self.file) if os.path.exists(self.file) else 0

    def messages(self):
        """What was accepted, in order."""
        if not os.path.exists(self.file):
            return []
        with open(self.file, encoding="utf-8") as f:
            return [json.loads(line) for line in f]


class Fleet:
    """A run with two workers and a server, both of which may send."""

    def __init__(self, w, receiver, database, rng):
        self.w, self.receiver, self.database, self.rng = w, receiver, database, rng
        self.run = self.serve = None

    def start_serve(self):
        """Without the run nothing new is stored."""
        if not self.serve or self.serve.poll() is not None:
            n = self.w.log().count("listening") if self.serve else 0
            self.serve = self.w.start("serve", "--listen", "127.0.0.1:0")
            wait_for("the server", lambda: self.serve.poll() is not None or self.w.log().count("listening") > n)

    def start(self):
        if not self.run or self.run.poll() is not None:
            self.run = self.w.start("run")
            wait_for("two workers", lambda: self.run.poll() is not None or len(workers_of(self.run)) >= 2)
        self.start_serve()

    def kill_worker(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.rng.choice(workers_of(self.run)), signal.SIGKILL)

    def kill_run(self):
        kill_group(self.run)

    def kill_serve(self):
        kill_group(self.serve)

    def kill_receiver(self):
        self.receiver.kill()
        self.receiver.start()

    def kill_database(self):
        self.database.kill()
        self.database.restart()

    def victims(self):
        all_of = [self.kill_worker, self.kill_serve, self.kill_run, self.kill_receiver]
        return all_of + [self.kill_database] * (self.database is not None)

    def stop(self):
        for p in (self.run, self.serve):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            equal(p.wait(60), 0, self.w.last_log())


def wake(w):
    """End the pauses after failed attempts."""
    for name in ORDERS:
        w.run("order", "resume", name, code=None) # the database may be starting


def pending(w):
    return {o["name"]: o["delivery"]["pending_n"] for o in w.json("order", "list")}


def check(w, messages):
    stored = {} # entries by number
    for line in w.run("entries", "--jsonl").stdout.splitlines():
        e = json.loads(line)
        _, feed, _, k = e["id"].split("-")
        stored[e["_store"]["entry"]] = int(feed), int(k)
    for name, (_, matches) in ORDERS.items():
        want = {n for n, key in stored.items() if matches(*key)}
        content, message_of, last_of_feed = {}, {}, collections.defaultdict(int)
        repeated = 0
        for m in messages:
            if m["order"] != name:
                continue
            ids = [d["id"] for d in m["body"]["data"]]
            if m["message"] in content:
                equal(ids, content[m["message"]], "entries of a repeated message")
                repeated += 1
                continue
            content[m["message"]] = ids
            for d in m["body"]["data"]:
                equal(message_of.setdefault(d["id"], m["message"]), m["message"], "the message of change %d" % d["id"])
                equal(d["type"], "new")
                feed = d["feed"]["id"]
                holds(d["id"] > last_of_feed[feed],
                      "%s: change %d of feed %d after %d" % (name, d["id"], feed, last_of_feed[feed]))
                last_of_feed[feed] = d["id"]
        have = set(message_of)
        equal((sorted(want - have)[:5], sorted(have - want)[:5]), ([], []), "lost and wrong matches of %s" % name)
        print("# %s: %d matches in %d messages, %d of them repeated" % (name, len(have), len(content), repeated))


@each_engine("no match is lost, doubled or out of order, whatever is killed", also=["sqlite"])
def accounting(base, engine):
    rng = random.Random(engine)
    with contextlib.ExitStack() as stack:
        database = None if engine == "sqlite" else stack.enter_context(server(engine, base))
        on = Address("sqlite:" + os.path.join(base, "store.db")) if engine == "sqlite" else Address(database.url("t"))
        o, w, _ = stack.enter_context(growing(base, engine, on=on, checked=False))
        receiver = Receiver(base)
        stack.callback(receiver.kill)
        for name, (query, _) in ORDERS.items():
            w.run("order", "add", name, query, "--to", "http://127.0.0.1:%d/%s" % (receiver.port, name))
        fleet = Fleet(w, receiver, database, rng)
        for k in range(KILLS):
            fleet.start()
            size = receiver.size()
            before = requests_of_all(o)
            wake(w)
            wait_for("requests", lambda: requests_of_all(o) > before)
            if k % 10 == 0:
                wait_for("a message", lambda: receiver.size() > size, 120)
            let_pass(rng.uniform(0, 0.9), "a kill at any moment")
            fleet.victims()[k % len(fleet.victims())]()
        fleet.start()
        before = requests_of_all(o)
        wait_for("requests after the last kill", lambda: requests_of_all(o) > before)
        receiver.kill()
        receiver.start(0)
        fleet.stop()
        visit_all(o, w)
        fleet.start_serve()
        wake(w)
        wait_for("the delivery of all", lambda: not any(pending(w).values()), 300)
        fleet.stop()
        holds(len(receiver.messages()) > 0, "messages")
        check(w, receiver.messages())


def push_many(w):
    """REPLAYED entries into a feed of their own."""
    feed = w.run("add", "https://pushed.example/feed").stdout.split()[0]
    w.run("pause", "-q", feed)
    for first in range(0, REPLAYED, PUSHED_AT_ONCE):
        items = [{"id": "pushed-%d" % k, "title": "pushed %d" % k, "content_text": "x"}
                 for k in range(first, min(REPLAYED, first + PUSHED_AT_ONCE))]
        w.run("push", feed, "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}))


def delivered(messages, name):
    """How often each entry was delivered, counting a repeated message once."""
    of_message = {m["message"]: [d["entry"]["id"] for d in m["body"]["data"]] for m in messages if m["order"] == name}
    return collections.Counter(i for ids in of_message.values() for i in ids)


@each_engine("a replay of many entries delivers each again, while new ones are stored and delivered", also=["sqlite"])
def replay(base, engine):
    with contextlib.ExitStack() as stack:
        database = None if engine == "sqlite" else stack.enter_context(server(engine, base))
        on = Address("sqlite:" + os.path.join(base, "store.db")) if engine == "sqlite" else Address(database.url("t"))
        o, w, _ = stack.enter_context(growing(base, engine, on=on, checked=False))
        push_many(w)
        receiver = Receiver(base)
        stack.callback(receiver.kill)
        for name, query in (("pushed", "feed:pushed.example"), ("all", "entry OR feed:pushed.example")):
            w.run("order", "add", name, query, "--to", "http://127.0.0.1:%d/%s" % (receiver.port, name))
        fleet = Fleet(w, receiver, database, random.Random(engine))
        fleet.start()
        before = requests_of_all(o)
        wait_for("new entries", lambda: requests_of_all(o) > before)
        for name in ("pushed", "all"):
            w.run("order", "replay", name, "--since", "1d", timeout=600)
        wait_for("new entries after the replay", lambda: requests_of_all(o) > before + 100)
        fleet.stop()
        visit_all(o, w)
        receiver.kill()
        receiver.start(0)
        fleet.start_serve()
        wake(w)
        wait_for("the delivery of all", lambda: not any(pending(w).values()), 600)
        fleet.stop()
        messages = receiver.messages()
        equal(delivered(messages, "pushed"), {"pushed-%d" % k: 1 for k in range(REPLAYED)})
        of_all = delivered(messages, "all")
        stored = [json.loads(line)["id"] for line in w.run("entries", "--jsonl").stdout.splitlines()]
        equal(sorted(set(stored) ^ set(of_all)), [], "lost and wrong entries")
        # what was delivered before the replay came once more with it
        holds(max(of_all.values()) <= 2, of_all.most_common(3))
        print("# %d entries replayed, %d others delivered, %d of them twice" % (
            REPLAYED, len(of_all) - REPLAYED, sum(n > 1 for n in of_all.values())))


run()
