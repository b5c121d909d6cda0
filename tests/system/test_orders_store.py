#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Orders and what is stored: polls, pushes from the command line and over HTTP, a run that goes on
while orders are added."""
import contextlib
import http.server
import itertools
import json
import os
import threading

from http_server import http_server
from harness import SOON, Feedwheel, Skip, absent, case, each_engine, equal, holds, run, server, wait_for

NOWHERE = "file:/nonexistent/x" # its matches wait
ALLOWED = "order_files = /nonexistent/\n"


class Feed:
    """A JSON feed that this program serves, and changes."""

    def __init__(self):
        feed, self.items = self, {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): # pylint: disable=invalid-name
                body = feed.body().encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/feed+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/feed" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def body(self, *numbers):
        items = [{"id": "e%d" % n, **i} for n, i in self.items.items() if not numbers or n in numbers]
        return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "changing", "items": items})

    def says(self, number, title, **more):
        self.items[number] = {"title": title, **more}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def begun(base, engine, conf=""):
    """A feed and a Feedwheel on a store of this engine."""
    with contextlib.ExitStack() as stack:
        feed = Feed()
        stack.callback(feed.stop)
        url = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        yield feed, Feedwheel(base, conf + ALLOWED, store=url)


def waiting(w):
    return {o["name"]: o["delivery"]["pending_n"] for o in w.json("order", "list") if "delivery" in o}


def titles(w):
    return sorted(e["title"] for e in map(json.loads, w.run("entries", "--jsonl").stdout.splitlines()))


def tags(w):
    found = {}
    for e in map(json.loads, w.run("entries", "--jsonl").stdout.splitlines()):
        found[e["title"]] = e.get("tags")
    return found


def order(w, name, *arguments):
    """An order whose matches wait."""
    w.run("order", "add", "-q", name, *arguments, "--to", NOWHERE)
    w.run("order", "pause", "-q", name)


def poll(w):
    w.run("set", "--due", "1")
    visit = w.run_once()
    equal((visit["feeds"], visit["failed"]), (1, 0), visit)
    return visit


@each_engine("polls and pushes deliver, drop and tag; what was dropped stays away", also=["sqlite"])
def stored(base, engine):
    with begun(base, engine) as (feed, w):
        order(w, "new", "wanted")
        order(w, "all", "wanted", "--changes")
        order(w, "german", "lang:de")
        order(w, "tagged", "tag:marked")
        w.run("order", "add", "noise", "title:noise", "--drop")
        w.run("order", "add", "mark", "title:odd", "--tag", "marked")
        feed.says(1, "wanted")
        feed.says(2, "wanted noise")
        feed.says(3, "odd", tags=["own"])
        feed.says(4, "deutsch", language="de-AT")
        w.run("add", "-q", "--check", feed.url) # which stores what it fetches
        equal(waiting(w), {"new": 1, "all": 1, "german": 1, "tagged": 1})
        equal(tags(w), {"wanted": None, "odd": ["own", "marked"], "deutsch": None})
        equal(w.json("status")["entries"], 3)

        feed.says(1, "wanted again")
        feed.says(2, "wanted, and harmless now")
        feed.says(10, "wanted, polled")
        feed.says(11, "noise, polled")
        for new in (1, 0):
            equal(poll(w)["new_entries"], new)
            equal(waiting(w), {"new": 2, "all": 3, "german": 1, "tagged": 1})
            equal(titles(w), ["deutsch", "odd", "wanted again", "wanted, polled"])

        feed.says(5, "wanted, pushed")
        feed.says(6, "noise, pushed")
        for new in (1, 0): # again: it is known
            said = json.loads(w.run("push", "--json", "1", "-", stdin=feed.body(5, 6)).stdout)
            equal(said["new"], new, said)
        equal(waiting(w), {"new": 3, "all": 4, "german": 1, "tagged": 1})

        if "server" not in absent():
            with http_server(base, store=w.store, conf=ALLOWED) as d:
                feed.says(7, "odd and wanted, over HTTP")
                feed.says(8, "noise, over HTTP")
                code, _, said = d.request("POST", "/v1/feeds/1/entries", feed.body(7, 8),
                                          {"Content-Type": "application/feed+json"})
                equal((code, said["new"]), (200, 1), said)
                order(w, "late", "later", "--changes")
                feed.says(9, "later")
                d.request("POST", "/v1/feeds/1/entries", feed.body(9), {"Content-Type": "application/feed+json"})
                equal(waiting(w)["late"], 1)
            equal(waiting(w)["new"], 4)
            holds(tags(w)["odd and wanted, over HTTP"] == ["marked"], tags(w))
        equal(w.run("doctor", "--deep", code=None).stdout.count("broken "), 0)


ROUNDS = 12


class Racers:
    """Two servers of one store, which a thread for each keeps busy with pushes of its own to feeds of its own."""

    def __init__(self, servers):
        self.servers, self.end = servers, threading.Event()
        self.threads = [threading.Thread(target=self.noise, args=(i,)) for i in range(len(servers))]
        for t in self.threads:
            t.start()

    def noise(self, i):
        for n in itertools.count():
            if self.end.is_set():
                return
            push_titles(self.servers[i], 2 + i, ["noise"] * 3, "n%d." % n)

    def push(self, title, n):
        """n entries, over all servers in turn and at once. How many were new."""
        new = [0] * n

        def one(i):
            d = self.servers[i % len(self.servers)]
            new[i] = push_titles(d, 1, ["%s %d" % (title, i)], "%s.%d." % (title, i))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(new)

    def stop(self):
        self.end.set()
        for t in self.threads:
            t.join()


def push_titles(d, feed, texts, name):
    body = "\n".join(json.dumps({"id": "%s%d" % (name, i), "title": t}) for i, t in enumerate(texts))
    code, _, said = d.request("POST", "/v1/feeds/%d/entries" % feed, body, {"Content-Type": "application/x-ndjson"})
    equal(code, 200, said)
    return said["new"]


def ask(d, code, method, path, **value):
    got, _, said = d.request(method, path, json.dumps(value) if value else None, {"Content-Type": "application/json"})
    equal(got, code, said)
    return said


@each_engine("an order holds from its answer on, in every process, while all of them store entries", also=["sqlite"])
def at_once(base, engine):
    if "server" in absent():
        raise Skip("this build has no server")
    with begun(base, engine, SOON) as (_feed, w), contextlib.ExitStack() as stack:
        for i in range(3):
            w.run("add", "-q", "https://%d.example/" % i)
            w.run("pause", "-q", str(i + 1))
        worker = w.start("run")
        servers = [stack.enter_context(http_server(os.path.join(base, "s%d" % i), store=w.store)) for i in range(2)]
        racers = Racers(servers)
        stack.callback(racers.stop)
        a, b = servers
        for k in range(ROUNDS):
            one, two, path = "first%d" % k, "second%d" % k, "/v1/orders/race%d" % k

            def pending(path=path):
                return ask(b, 200, "GET", path)["order"]["delivery"]["pending_n"]
            ask(a, 201, "POST", "/v1/orders", name="race%d" % k, query="title:" + one, to="http://127.0.0.1:9/")
            ask(a, 200, "PATCH", path, state="paused")
            equal((racers.push(one, 10), pending()), (10, 10), "round %d" % k)
            ask(b, 200, "PATCH", path, query="title:" + two)
            equal((racers.push(two, 4), pending()), (4, 14), "round %d, another query" % k)
            ask(a, 201, "POST", "/v1/orders", name="drop%d" % k, query="title:third%d" % k, drop=True)
            equal(racers.push("third%d" % k, 4), 0, "round %d, dropped" % k)
            ask(b, 204, "DELETE", "/v1/orders/drop%d" % k)
            equal(racers.push("third%d more" % k, 4), 4, "round %d, dropped no more" % k)
            ask(b, 204, "DELETE", path)
        worker.terminate()
        equal(worker.wait(60), 0, w.last_log())
        racers.stop()
        equal(w.run("doctor", "--deep", code=None).stdout.count("broken "), 0)


@each_engine("an order takes effect while run runs", also=["sqlite"])
def running(base, engine):
    with begun(base, engine, SOON + "batch_ms = 50ms\n") as (feed, w):
        feed.says(1, "first")
        w.run("add", "-q", feed.url)
        p = w.start("run")
        wait_for("the first entry", lambda: titles(w) == ["first"])
        w.run("order", "add", "-q", "noise", "noise", "--drop")
        order(w, "wanted", "wanted")

        def matched():
            n = len(feed.items)
            feed.says(n + 1, "wanted %d" % n)
            return waiting(w)["wanted"]
        wait_for("a match", matched)
        feed.says(1000, "noise")
        feed.says(1001, "quiet")
        wait_for("the poll after that", lambda: "quiet" in titles(w))
        holds("noise" not in titles(w), "the order from before is used too")
        p.terminate()
        equal(p.wait(60), 0, w.last_log())


@case("orders that cannot be read match nothing, are named in the log, and do not stop the others")
def broken(base):
    with begun(base, "sqlite") as (feed, w):
        for name in "a", "b":
            order(w, name, "wanted")
        w.sql("UPDATE records SET value = ? WHERE kind = 'order' AND record_key = ?", b"{", b"a", write=True)
        feed.says(1, "wanted")
        w.run("add", "-q", feed.url)
        r = w.run("run", "--once", "--workers", "1", code=None)
        equal(r.stderr.count("order a matches nothing: its record is invalid"), 1, r.stderr)
        equal(waiting(w).get("b"), 1)
        holds("order a" not in w.run("push", "1", "-", stdin=feed.body(), code=0).stdout, "the push is stored")


run()
