#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What is stored, read over HTTP: feeds, entries, the stream of new ones; on every engine."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from door import door
from growing import CONF, Address, growing
from harness import case, each_engine, equal, holds, origin, run, samples, server, wait_for

MISSING = "/v1/feeds/4711"


@case("a feed as the command line shows it; what is wrong with a question is named")
def one_feed(base):
    with origin(base, samples(base), "--feeds", "6") as o, door(base) as d:
        d.wheel.run("add", o.urls[0])
        d.wheel.run_once()
        status, headers, said = d.ask("GET", "/v1/feeds/1")
        equal((status, headers["Content-Type"]), (200, "application/json"))
        equal(said, d.wheel.json("show", "#1"))
        equal(len(d.ask("GET", "/v1/feeds/1?visits=1")[2]["visits"]), 1)
        status, headers, said = d.ask("HEAD", "/v1/feeds/1")
        equal((status, said), (200, ""))
        holds(int(headers["Content-Length"]) > 100, headers)
        status, headers, said = d.ask("GET", MISSING)
        equal((status, headers["Content-Type"], said["code"]), (404, "application/problem+json", "not_found"))
        for path, words in (("?visits=0", "visits is a number from 1 to 1000, not '0'"), ("?visits=x", "not 'x'"), ("?visits=", "not ''"),
                            ("?visit=1", "visit: GET /v1/feeds/{id} takes visits"), ("?visits=1&x=2", "x: ")):
            status, _, said = d.ask("GET", "/v1/feeds/1" + path)
            equal((status, words in said["detail"]), (400, True), said["detail"])
        status, headers, said = d.ask("PUT", "/v1/feeds/1", "{}")
        equal((status, "GET, HEAD" in headers["Allow"]), (405, True))


def store_of(engine, base):
    return contextlib.nullcontext(Address("sqlite:%s/store.db" % base)) if engine == "sqlite" else server(engine, base)


def pages(d, path, member="feeds"):
    """All pages of a list, by next_url."""
    while path:
        status, _, said = d.ask("GET", path)
        equal(status, 200, said)
        yield said[member]
        path = said.get("next_url")


@each_engine("subscriptions: added, listed page by page, changed, removed", also=["sqlite"])
def feeds(base, engine):
    with store_of(engine, base) as s, door(base, store=s.url()) as d:
        status, headers, said = d.ask("POST", "/v1/feeds", '{"url":"https://me:secret@a.example/1","folder":"x & y","interval_ms":3600000}')
        equal((status, headers["Location"], said["existed"]), (201, "/v1/feeds/1", False), said)
        first = d.ask("GET", headers["Location"])[2]["feed"]
        equal((first["url"], first["folder"], first["auth"], first["interval_ms"]), ("https://a.example/1", "x & y", True, 3600000))
        status, headers, again = d.ask("POST", "/v1/feeds", '{"url":"https://a.example/1"}')
        equal((status, headers["Location"], again["existed"], again["id"]), (200, "/v1/feeds/1", True, said["id"]))
        status, _, said = d.ask("POST", "/v1/feeds", json.dumps([{"url": "https://a.example/%d" % i, "folder": "x & y"} for i in range(1, 8)]))
        equal((status, [f["existed"] for f in said]), (201, [True] + [False] * 6))
        for body, code, words in (
                ('{"url":"ftp://a.example/"}', 422, "url: "), ("{}", 422, "url: it is missing"), ('{"url":1}', 422, "url: a string"),
                ('[{"url":"https://b.example/"},{"url":""}]', 422, "[1].url: "), ("[]", 422, "the body: "), ('"x"', 400, "line 1"), ('[1]', 422, "[0].url: "),
                ('{"url":"https://b.example/","colour":1}', 422, "colour: not known here"), ('{"url":', 400, "line 1"),
                ('{"url":"https://b.example/","interval_ms":-1}', 422, "interval_ms: a number"), ("", 400, "no JSON")):
            status, _, said = d.ask("POST", "/v1/feeds", body)
            equal((status, words in said["detail"]), (code, True), said["detail"])
        equal([[f["id"] for f in p] for p in pages(d, "/v1/feeds?limit=3&folder=x%20%26%20y")], [[1, 2, 3], [4, 5, 6], [7]])
        equal([[f["id"] for f in p] for p in pages(d, "/v1/feeds?q=example/7")], [[7]])
        equal(list(pages(d, "/v1/feeds"))[0], d.wheel.json("list"))
        status, headers, said = d.ask("PATCH", "/v1/feeds/2", '{"status":"paused","title":"T","interval_ms":0}')
        equal((status, said["state"], said["title"]), (200, "paused", "T"))
        equal([f["id"] for f in d.ask("GET", "/v1/feeds?status=paused")[2]["feeds"]], [2])
        equal([f["id"] for f in d.ask("GET", "/v1/feeds?status=failing")[2]["feeds"]], [])
        equal(d.ask("PATCH", "/v1/feeds/2", '{"status":"active"}')[2]["state"], "new")
        for body, words in (("{}", "the body: it changes nothing"), ('{"status":"gone"}', "status: "), ('{"url":"https://c.example/"}', "url: "),
                            ('{"due":false}', "due: true"), ("[]", "the body: an object")):
            status, _, said = d.ask("PATCH", "/v1/feeds/2", body)
            equal((status, words in said["detail"]), (422, True), said["detail"])
        equal(d.ask("PATCH", MISSING, '{"due":true}')[0], 404)
        status, headers, said = d.ask("DELETE", "/v1/feeds/2")
        equal((status, said), (204, ""))
        equal(d.ask("DELETE", "/v1/feeds/2")[0], 404)
        equal([f["id"] for f in d.ask("GET", "/v1/feeds")[2]["feeds"]], [1, 3, 4, 5, 6, 7])
        for path, words in (("status=dead", "one of: active paused"), ("cursor=x", "cursor is "), ("cursor=f1.2", "cursor is "), ("cursor=f", "cursor is"),
                            ("limit=1001", "limit is"), ("page=2", "page: GET /v1/feeds takes status")):
            status, _, said = d.ask("GET", "/v1/feeds?" + path)
            equal((status, words in said["detail"]), (400, True), said["detail"])


@case("entries: JSON Feed and lines, as the command line shows them; ETag; what is wrong is named")
def entries(base):
    with origin(base, samples(base), "--feeds", "6") as o, door(base) as d:
        d.wheel.run("import", o.url_file)
        d.wheel.run_once()
        status, headers, said = d.ask("GET", "/v1/entries?limit=1000")
        want = d.wheel.json("entries", "--content")
        equal((status, headers["Content-Type"], said["version"]), (200, "application/feed+json", want["version"]))
        equal(said["items"], want["items"])
        holds(len(want["items"]) > 5 and "next_url" not in said, len(want["items"]))
        holds(headers["Last-Modified"] and headers["ETag"] and headers["Cache-Control"], headers)
        for tag, code in ((headers["ETag"], 304), ("W/" + headers["ETag"], 304), ('"x", ' + headers["ETag"], 304), ("*", 304), ('"x"', 200)):
            status, again, body = d.ask("GET", "/v1/entries?limit=1000", headers={"If-None-Match": tag})
            equal((status, again["ETag"], body == ""), (code, headers["ETag"], code == 304), tag)
        lines = [json.dumps(i) for i in want["items"]]
        for path, accept in (("&format=ndjson", "*/*"), ("", "application/x-ndjson")):
            status, headers, said = d.ask("GET", "/v1/entries?limit=1000" + path, headers={"Accept": accept})
            equal((status, headers["Content-Type"]), (200, "application/x-ndjson"))
            equal([json.dumps(json.loads(l)) for l in said.splitlines()], lines)
        equal([i for p in pages(d, "/v1/entries?limit=2", "items") for i in p], want["items"])
        stored = [i for p in pages(d, "/v1/entries?limit=3&order=stored&content=no", "items") for i in p]
        equal([i["_store"]["entry"] for i in stored], sorted(i["_store"]["entry"] for i in want["items"]))
        holds(not any("content_html" in i for i in stored), "without contents")
        one = want["items"][0]
        equal(d.ask("GET", "/v1/entries/%d" % one["_store"]["entry"])[2], one)
        equal(d.ask("GET", "/v1/entries/%d?content=raw" % one["_store"]["entry"])[0], 200)
        equal(d.ask("GET", "/v1/entries/4711")[0], 404)
        feed = one["_store"]["feed_url"]
        for name in (feed, one["_store"]["feed"]):
            status, _, said = d.ask("GET", "/v1/entries?feed=%s" % name)
            equal(said["items"], d.wheel.json("entries", "--content", "--feed", feed)["items"])
        word = one["title"].split()[0]
        equal(d.ask("GET", "/v1/entries?limit=1000&q=" + urllib.parse.quote(word))[2]["items"], d.wheel.json("entries", "--content", "--search", word)["items"])
        equal(d.ask("GET", "/v1/entries?since=1h&limit=1000")[2]["items"], want["items"])
        equal(d.ask("GET", "/v1/entries?since=2999-01-01T00:00:00Z")[2]["items"], [])
        for path, code, words in (
                ("feed=4711", 404, "4711"), ("feed=http://", 400, "feed is a feed's number or address"), ("feed=0", 400, "feed is"),
                ("since=then", 400, "since is a time"), ("q=", 400, "q is words"), ("order=random", 400, "order is one of: newest stored"),
                ("limit=0", 400, "limit is"), ("content=some", 400, "content is"), ("format=xml", 400, "format is one of: json ndjson"),
                ("cursor=s1", 400, "cursor is"), ("cursor=n1", 400, "cursor is"), ("order=stored&cursor=n1.2", 400, "cursor is"),
                ("cursor=n1.2.3", 400, "cursor is"), ("folder=x", 400, "folder: GET /v1/entries takes feed since")):
            status, _, said = d.ask("GET", "/v1/entries?" + path)
            equal((status, words in said["detail"]), (code, True), said["detail"])
        r = subprocess.run(["curl", "-sSI", "http://127.0.0.1:%d/v1/entries" % d.port], capture_output=True, text=True, check=True)
        holds(r.stdout.startswith("HTTP/1.1 200") and "ETag" in r.stdout, r.stdout)


def follow(d, seen, over):
    """A reader that asks again and again for what came since, as it was stored; the last time when it is over."""
    cursor = ""
    while True:
        last = over.is_set()
        while True:
            try:
                status, headers, said = d.ask("GET", "/v1/entries?order=stored&content=no&format=ndjson&limit=100" + cursor)
            except (OSError, http.client.HTTPException): # the server was killed
                continue
            equal(status, 200, said)
            seen += [e["_store"]["entry"] for e in ([said] if isinstance(said, dict) else map(json.loads, said.splitlines()))]
            cursor = "&cursor=" + headers["Feedwheel-Cursor"] if "Feedwheel-Cursor" in headers else ""
            if "Link" not in headers:
                break
        if last:
            return


class Stream:
    """A reader of the stream that comes again when its connection is gone, with the number of the last event it saw, as browsers do."""

    def __init__(self, d, path="/v1/stream", read=True):
        self.door, self.path, self.last, self.on = d, path, None, True
        self.ids, self.items, self.beats, self.connections = [], [], 0, 0
        self.begun = threading.Event()
        self.connection = None
        self.thread = threading.Thread(target=self.run, daemon=True) if read else None
        if read:
            self.thread.start()

    def run(self):
        while self.on:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.read()
            time.sleep(0.01)

    def read(self):
        self.connection = c = self.door.connect(60)
        c.request("GET", self.path, headers={"Last-Event-ID": self.last} if self.last else {})
        r = c.getresponse()
        equal((r.status, r.headers["Content-Type"]), (200, "text/event-stream"))
        self.connections += 1
        event = {}
        while self.on:
            line = r.readline()
            if not line:
                return
            if line == b"\n" and event:
                if "data" in event:
                    self.items.append(json.loads(event["data"]))
                    self.ids.append(int(event["id"]))
                    equal((event["event"], self.items[-1]["_store"]["entry"]), ("entry", self.ids[-1]))
                self.last = event.get("id", self.last)
                self.begun.set()
                event = {}
            elif line.startswith(b":"):
                self.beats += 1
            elif line != b"\n":
                name, _, value = line.decode().rstrip("\n").partition(": ")
                event[name] = value

    def stop(self):
        self.on = False
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)


def stored_ids(w):
    return sorted(json.loads(l)["_store"]["entry"] for l in w.run("entries", "--jsonl").stdout.splitlines())


@case("the stream: new entries as they are stored; resumed where it was left; signs of life; of one feed")
def stream(base):
    with origin(base, samples(base), "--feeds", "30", plans=["* grow=1,start=60,window=60"]) as o, \
            door(base, conf="serve_beat_ms = 200ms\n") as d:
        equal(d.ask("GET", "/v1/stream?since=x")[0], 400)
        equal(d.ask("GET", "/v1/stream", headers={"Last-Event-ID": "x"})[2]["code"], "invalid_header")
        d.wheel.run("import", o.url_file)
        new, idle = Stream(d), [Stream(d, read=False) for _ in range(300)]
        holds(new.begun.wait(20), "it begins")
        for i in idle: # they read nothing for now
            i.connection = d.connect(60)
            i.connection.request("GET", "/v1/stream?since=0")
        d.wheel.run_once()
        want = stored_ids(d.wheel)
        holds(len(want) >= 1800, len(want))
        wait_for("all", lambda: len(new.ids) >= len(want))
        equal(new.ids, want)
        n = new.beats
        wait_for("signs of life", lambda: new.beats > n + 2)
        for i in idle:
            i.connection.close()
        equal(new.items[7], d.ask("GET", "/v1/entries/%d?content=no" % want[7])[2])
        of_one = Stream(d, "/v1/stream?since=0&feed=7")
        wait_for("one feed's", lambda: len(of_one.ids) == 60)
        equal({i["_store"]["feed"] for i in of_one.items}, {7})
        new.stop()
        d.wheel.run("set", "--due", *o.urls)
        d.wheel.run_once()
        wait_for("one more", lambda: len(of_one.ids) == 61)
        again = Stream(d, "/v1/stream?since=%s" % new.last)
        wait_for("those that came meanwhile", lambda: len(again.ids) == 30)
        again.stop()
        d.stop() # with a reader
        d.start()
        of_all = Stream(d, "/v1/stream?since=0")
        wait_for("all, from the store", lambda: len(of_all.ids) >= 1830)
        equal(of_all.ids, stored_ids(d.wheel))
        wait_for("the other came again", lambda: of_one.connections > 1)
        of_one.stop()
        of_all.stop()
        equal(len(of_one.ids), 61)


@each_engine("read while workers store, and the server is killed: nothing is left out, nothing comes twice", also=["sqlite"])
def while_storing(base, engine):
    with growing(base, engine, on=store_of(engine, base)) as (_, w, s), door(base, store=s.url(), conf=CONF, command="run") as d:
        seen, over = [], threading.Event()
        first = Stream(d, "/v1/stream?since=0")
        reader = threading.Thread(target=follow, args=(d, seen, over), daemon=True)
        reader.start()
        for i in range(3):
            wait_for("entries", lambda i=i: len(first.ids) > 250 + 150 * i, 60)
            os.kill(d.wheel.workers(d.process)[-1], signal.SIGKILL)
        for _ in range(2):
            wait_for("the server", d.answers)
            before = set(seen)
            newest = [i["_store"]["entry"] for p in pages(d, "/v1/entries?limit=37&content=no", "items") for i in p]
            equal(len(newest), len(set(newest)), "twice")
            equal(before - set(newest), set(), "left out")
        d.wheel.run("pause", "--all")
        wait_for("a pause", lambda: w.json("status")["lent"] == 0, 40)
        over.set()
        reader.join()
        want = stored_ids(w)
        equal(seen, want, "followed")
        wait_for("the last one", lambda: len(first.ids) >= len(want))
        first.stop()
        equal(first.ids, want, "streamed")
        holds(first.connections >= 3, "killed while it read")
        d.wheel.run("resume", "--all")
        d.stop()


@each_engine("the store is away for a while: 503, then answers again")
def away(base, engine):
    with server(engine, base) as s, door(base, store=s.url()) as d:
        equal(d.ask("GET", MISSING)[0], 404)
        s.kill9()
        status, headers, said = d.ask("GET", MISSING)
        equal((status, said["code"]), (503, "store_away"))
        holds(headers["Retry-After"] and s.url() not in said["detail"], said)
        s.again()
        wait_for("answers", lambda: d.ask("GET", MISSING)[0] == 404, 60)


if __name__ == "__main__":
    run()
