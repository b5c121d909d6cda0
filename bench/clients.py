#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-clients: readers at a server.

Collecting while CLIENTS readers sync, each with an account and SUBSCRIPTIONS feeds of its own, one
after the other over the time of a run; the reference is the same run, and the same server, without
them. Both are run in turns; a figure is the median of RUNS rounds and of the ratios within them.

A first sync of ENTRIES entries by the requests that RSS Guard makes (tests/system/test_rssguard.py);
the reference is a server that sends the same bytes from files. Exit status 1: a row is short
(table.py).

  RUNS=7 FEEDS=10000 CLIENTS=20 SUBSCRIPTIONS=500 ENTRIES=100000 GOAL=1.03 ONLY=words  (ONLY: collect first)
"""
import contextlib
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

if "TINY" not in os.environ:
    os.environ.setdefault("RUNS", "7")
import collect # pylint: disable=wrong-import-position
from collect import BUILD, FEEDS, RUNS, Feedwheel, Origin, fresh, seconds # pylint: disable=wrong-import-position
from http_server import free_port # pylint: disable=wrong-import-position
from table import ( # pylint: disable=wrong-import-position
    benchmark, die, head, median, ratio_row, row, scratch, selection, size)

CLIENTS = size("CLIENTS", 20, 2)
SUBSCRIPTIONS = size("SUBSCRIPTIONS", 500, 10)
ENTRIES = size("ENTRIES", 100000, 300)
GOAL = size("GOAL", 1.03, 1000.0)
ONLY = selection("ONLY", ["collect", "first"])
WORK = scratch(BUILD, "bench-clients")
collect.WORK = WORK
STATE = "user%2F-%2Fstate%2Fcom.google%2F"
PASSWORD = "bench password"
PUSHED = 1000 # entries of one feed
CHUNK = 9999 # items that RSS Guard requests at once
FILES = """
import http.server, os, sys
class Files(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        with open(os.path.join(sys.argv[2], self.path.strip("/")), "rb") as f:
            self.send_response(200)
            self.send_header("Content-Length", str(os.fstat(f.fileno()).st_size))
            self.end_headers()
            self.wfile.flush()
            self.connection.sendfile(f)
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Files).serve_forever()
"""


class Reader:
    """A client with a connection."""

    def __init__(self, port, token=None):
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.headers = {"Authorization": "GoogleLogin auth=%s" % token} if token else {}
        self.bodies = None # of the responses, if they are kept

    def send(self, path, body=None):
        self.c.request("GET" if body is None else "POST", path, body, self.headers)
        r = self.c.getresponse()
        text = r.read()
        if r.status != 200:
            die("bench-clients: %s: %d %s", path, r.status, text[:300])
        if self.bodies is not None:
            self.bodies.append(text)
        return text

    def api(self, path, body=None):
        return self.send("/reader/api/0/" + path, body)

    def ids(self, state):
        """All pages, as numbers."""
        path, found, more = "stream/items/ids?output=json&n=200000&s=" + STATE + state, [], ""
        while True:
            r = json.loads(self.api(path + more))
            found += [int(i["id"]) for i in r["itemRefs"]]
            if not r.get("continuation"):
                return found
            more = "&c=" + r["continuation"]

    def contents(self, ids):
        self.api("stream/items/contents?output=json&n=200000",
                 "&".join("i=tag%%3Agoogle.com%%2C2005%%3Areader%%2Fitem%%2F%016x" % i for i in ids))

    def sync(self):
        """What is new, as on any other day."""
        self.api("subscription/list?output=json")
        self.api("unread-count?output=json")
        unread = json.loads(self.api("stream/items/ids?n=1000&xt=user/-/state/com.google/read&s=" + STATE +
                                     "reading-list"))["itemRefs"]
        if unread:
            self.contents([int(i["id"]) for i in unread[:50]])

    def first_sync(self):
        self.api("tag/list?output=json")
        self.api("subscription/list?output=json")
        self.ids("starred")
        every = self.ids("reading-list")
        self.ids("reading-list&xt=user/-/state/com.google/read")
        for i in range(0, len(every), CHUNK):
            self.contents(every[i:i + CHUNK])
        return len(every)


def account(w, name):
    """A new account's token."""
    w.run("user", "add", "-q", name, stdin=PASSWORD + "\n")
    return w.run("user", "token", "-q", name, "bench").stdout.strip()


def wait_for_server(p, port, path):
    while True:
        with contextlib.suppress(OSError):
            return Reader(port).send(path)
        if p.poll() is not None:
            die("bench-clients: a server has ended")
        time.sleep(0.05)


@contextlib.contextmanager
def serving(w, port):
    p = w.start("serve", "--listen", "127.0.0.1:%d" % port)
    try:
        wait_for_server(p, port, "/healthz")
        yield
    finally:
        p.terminate()
        p.wait()


def subscribe(r, urls):
    """By OPML, in one request."""
    r.api("subscription/import", "<opml version='2.0'><body>%s</body></opml>" % "".join(
        "<outline type='rss' xmlUrl='%s'/>" % u.replace("&", "&amp;") for u in urls))


# ---- the rows --------------------------------------------------------------------------------------------

def one(tokens, port, wall=None):
    """Wall and CPU seconds of a run on a copy of the store. wall: of a run, while which clients sync."""
    base = os.path.join(WORK, "round")
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(os.path.join(WORK, "bare"), base)
    w = Feedwheel(base)
    synced, end = [], threading.Event()

    def sync_all():
        for token in tokens:
            if end.wait(wall / (len(tokens) + 1)):
                return
            Reader(port, token).sync()
            synced.append(token)

    with serving(w, port):
        t = threading.Thread(target=sync_all)
        if wall is not None:
            t.start()
        took, cpu, summary = collect.collect(w)
        end.set()
        if wall is not None:
            t.join()
    return took, cpu, summary, len(synced)


def collecting(docs):
    o = Origin(os.path.join(WORK, "origin"), docs, "--feeds", str(FEEDS), log=False)
    try:
        w, port = fresh("bare"), free_port()
        w.run("import", "-q", o.url_file)
        tokens = [account(w, "reader%d" % i) for i in range(CLIENTS)]
        with serving(w, port):
            for i, token in enumerate(tokens):
                subscribe(Reader(port, token), random.Random(i).sample(o.urls, min(SUBSCRIPTIONS, len(o.urls))))
        wall = one(tokens, port)[0] # the length of a run, and a warm cache
        rounds = []
        for i in range(RUNS):
            turn = (None, wall) if i % 2 else (wall, None)
            pair = {with_clients is not None: one(tokens, port, with_clients) for with_clients in turn}
            rounds.append((pair[True], pair[False]))
        for k, what in enumerate(("time", "CPU of the run")):
            ratio_row("%d clients sync, each once: %s" % (CLIENTS, what), seconds(median(a[k] for a, _ in rounds)),
                      seconds(median(b[k] for _, b in rounds)), median(a[k] / b[k] for a, b in rounds), GOAL)
        row("  clients that synced within a run", median(a[3] for a, _ in rounds), CLIENTS, "-", "-", None)
    finally:
        o.stop()


def first():
    w, port = fresh("first"), free_port()
    token = account(w, "alice")
    urls = ["https://f%d.example/feed" % i for i in range(-(-ENTRIES // PUSHED))]
    words = [line.split()[0] for line in open(os.path.join(collect.ROOT, "NEWS.md"), encoding="utf-8") if line.split()]
    with serving(w, port):
        subscribe(Reader(port, token), urls)
    for i, feed in enumerate(w.json("list")):
        items = [{"id": "e%d" % k, "title": "Entry %d of feed %d" % (k, i), "url": "https://a.example/%d/%d" % (i, k),
                  "content_html": "<p>%s</p>" % " ".join(random.Random(k).choices(words, k=150))}
                 for k in range(min(PUSHED, ENTRIES - i * PUSHED))]
        w.run("push", "-q", str(feed["id"]), "-",
              stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}))
    files = os.path.join(WORK, "files")
    os.makedirs(files)
    ours, cat, port_of_files = [], [], free_port()
    with serving(w, port):
        r = Reader(port, token)
        r.bodies = []
        if r.first_sync() != ENTRIES:
            die("bench-clients: the first sync was not complete")
        for i, text in enumerate(r.bodies):
            with open(os.path.join(files, str(i)), "wb") as f:
                f.write(text)
        n, size_bytes = len(r.bodies), sum(len(text) for text in r.bodies)
        r.bodies = None
        p = subprocess.Popen([sys.executable, "-c", FILES, str(port_of_files), files])
        try:
            wait_for_server(p, port_of_files, "/0")
            for _ in range(RUNS + 1): # the first one warms up
                start = time.monotonic()
                r.first_sync()
                middle = time.monotonic()
                c = Reader(port_of_files)
                for i in range(n):
                    c.send("/%d" % i)
                c.c.close()
                ours.append(middle - start)
                cat.append(time.monotonic() - middle)
        finally:
            p.kill()
            p.wait()
    ours, cat = ours[1:], cat[1:]
    print("# a first sync: %d requests, %.1f MiB" % (n, size_bytes / 1048576))
    ratio_row("first sync of %d entries, against the same bytes" % ENTRIES, seconds(median(ours)),
              seconds(median(cat)), median(a / b for a, b in zip(ours, cat)))
    row("  entries/s", "%.0f" % (ENTRIES / median(ours)), "-", "-", "-", None)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    docs, kind = collect.documents() if "collect" in ONLY else (None, "")
    head("%d feeds%s, median of %d" % (FEEDS, kind and ", " + kind, RUNS))
    if "collect" in ONLY:
        collecting(docs)
    if "first" in ONLY:
        first()


if __name__ == "__main__":
    benchmark(main)
