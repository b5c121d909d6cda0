#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The delivery of orders' matches to receivers that accept, refuse, are slow, silent or hostile; and
what is delivered when senders are killed and take over from each other."""
import contextlib
import json
import os
import time

from http_server import HttpServer, http_server, metric
from harness import Feedwheel, case, each_engine, equal, holds, run, server, wait_for
from receivers import Receiver

SHORT = "total_timeout_ms = 2s\nconnect_timeout_ms = 2s\nfirst_byte_timeout_ms = 2s\n"


@contextlib.contextmanager
def store_of(engine, base):
    """The URL of a store of this engine; None: the file that a Feedwheel has anyway."""
    if engine == "sqlite":
        yield None
        return
    with server(engine, base) as s:
        yield s.url()


def items(first, n, word="wanted", content=""):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [
        {"id": "e%d" % i, "url": "https://a.example/%d" % i, "title": "%s %d" % (word, i),
         "content_html": "<p>text %d%s" % (i, content)} for i in range(first, first + n)]})


def filled(w, n=12, content="", add=True):
    """w has a feed with n entries, which a replay finds."""
    if add:
        w.run("add", "-q", "https://a.example/feed")
        w.run("pause", "-q", "1")
    w.run("push", "1", "-", stdin=items(0, n, content=content))
    wait_for("the index", lambda: w.run_once() and "not indexed" not in w.run("order", "test", "wanted").stderr)
    return w


def entries(w):
    """The ids of all entries, rising."""
    return sorted(e["_store"]["entry"] for e in w.json("entries")["items"])


def add(w, receiver, name, query="wanted", path=None):
    """An order whose receiver is at a path, "/NAME"."""
    path = path or "/" + name
    receiver.secrets[path] = w.run("order", "add", name, query, "--to", receiver.url + path).stdout.strip()


def replay(w, *names):
    for name in names:
        w.run("order", "replay", name, "--since", "1d")


def delivery(w, name):
    return w.json("order", "show", name)["order"]["delivery"]


def is_done(w, name):
    d = delivery(w, name)
    return not d["pending_n"] and not d["dead_n"]


def fails(w, name, words):
    """The order's last attempt failed with these words."""
    wait_for("'%s' at %s" % (words, name), lambda: words in delivery(w, name).get("error", ""))
    return delivery(w, name)


@contextlib.contextmanager
def sender(base, store=None, conf="", **more):
    """A server, which delivers, with a receiver beside it."""
    with Receiver() as r, http_server(base, store=store, conf=conf, **more) as d:
        yield d, d.feedwheel, r


# ---- what is delivered -----------------------------------------------------------------------------------

@each_engine("matches are delivered in messages that are signed, in order, each once", also=["sqlite"])
def core(base, engine):
    with store_of(engine, base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url), 250)
        add(w, r, "sec")
        w.run("order", "pause", "sec")
        replay(w, "sec")
        with http_server(base, store=url) as d:
            equal(r.at("/sec"), [], "paused")
            w.run("order", "resume", "sec")
            wait_for("the deliveries", lambda: is_done(w, "sec"))
            equal(r.got("/sec"), entries(w))
            messages = r.at("/sec")
            equal([len(m.ids()) for m in messages], [100, 100, 50])
            equal({m.signed for m in messages}, {True})
            equal(len({m.id for m in messages}), 3)
            holds(all(m.age < 60 and m.type == "application/json" for m in messages), "headers")
            one = messages[0].json()
            equal((one["type"], one["order"]), ("feedwheel.entries", "sec"))
            first = one["data"][0]
            equal((first["type"], first["feed"]), ("new", {"id": 1, "url": "https://a.example/feed"}))
            equal(first["entry"], w.json("entries", "--content")["items"][-1])
            equal(delivery(w, "sec")["delivered_n"], 250)
            replay(w, "sec") # what was delivered is delivered again, as new messages
            wait_for("the deliveries", lambda: len(r.got("/sec")) == 500)
            equal(len({m.id for m in r.at("/sec")}), 6)
            d.stop()


if __name__ == "__main__":
    run()
