#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The HTTP API: feeds, entries, the stream of new entries, openapi.json; on every engine."""
import contextlib
import functools
import glob
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import urllib.parse

try:
    import jsonschema
except ImportError:
    jsonschema = None

from http_server import http_server, metric
from growing import CONF, Address, growing
from harness import (
    ROOT, Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for, workers_of)
from stream_client import Stream

MISSING = "/v1/feeds/4711"
AGAIN_S = 60


@case("a feed is shown as the command line shows it; an error names the invalid parameter")
def one_feed(base):
    with origin(base, samples(base), "--feeds", "6") as o, http_server(base) as d:
        d.feedwheel.run("add", o.urls[0])
        d.feedwheel.run_once()
        status, headers, response = d.request("GET", "/v1/feeds/1")
        equal((status, headers["Content-Type"]), (200, "application/json"))
        equal(response, d.feedwheel.json("show", "#1"))
        equal(len(d.request("GET", "/v1/feeds/1?visits=1")[2]["visits"]), 1)
        status, headers, response = d.request("HEAD", "/v1/feeds/1")
        equal((status, response), (200, ""))
        holds(int(headers["Content-Length"]) > 100, headers)
        status, headers, response = d.request("GET", MISSING)
        equal((status, headers["Content-Type"], response["code"], response["detail"]),
              (404, "application/problem+json", "not_found", "no feed has the number 4711"))
        for path, words in (
            ("?visits=0", "invalid visits '0' (expected a number from 1 to 1000)"),
            ("?visits=x", "visits 'x'"),
            ("?visits=", "visits ''"),
            ("?visit=1", "visit (GET /v1/feeds/{id} takes visits"),
            ("?visits=1&x=2", "x (")):
            status, _, response = d.request("GET", "/v1/feeds/1" + path)
            equal((status, words in response["detail"]), (400, True), response["detail"])
        status, headers, response = d.request("PUT", "/v1/feeds/1", "{}")
        equal((status, "GET, HEAD" in headers["Allow"]), (405, True))


def store_of(engine, base):
    return contextlib.nullcontext(Address("sqlite:%s/store.db" % base)) if engine == "sqlite" else server(engine, base)


def pages(d, path, member="feeds"):
    """All pages of a list, by next_url."""
    while path:
        status, _, response = d.request("GET", path)
        equal(status, 200, response)
        yield response[member]
        path = response.get("next_url")


@each_engine("feeds are added, listed page by page, changed and removed", also=["sqlite"])
def feeds(base, engine):
    with store_of(engine, base) as s, http_server(base, store=s.url()) as d:
        status, headers, response = d.request(
            "POST", "/v1/feeds", '{"url":"https://me:secret@a.example/1","folder":"x & y","interval_ms":3600000}')
        equal((status, headers["Location"], response.get("existed")), (201, "/v1/feeds/1", False), response)
        first = d.request("GET", headers["Location"])[2]["feed"]
        equal((first["url"], first["folder"], first["auth"], first["interval_ms"]),
              ("https://a.example/1", "x & y", True, 3600000))
        status, headers, again = d.request("POST", "/v1/feeds", '{"url":"https://a.example/1"}')
        equal((status, headers["Location"], again["existed"], again["id"]), (200, "/v1/feeds/1", True, response["id"]))
        seven = [{"url": "https://a.example/%d" % i, "folder": "x & y"} for i in range(1, 8)]
        status, _, response = d.request("POST", "/v1/feeds", json.dumps(seven))
        equal((status, [f["existed"] for f in response]), (201, [True] + [False] * 6))
        for body, code, words in (
            ('{"url":"ftp://a.example/"}', 422, "url: "),
            ("{}", 422, "url: missing"),
            ('{"url":1}', 422, "url: must be a string"),
            ('[{"url":"https://b.example/"},{"url":""}]', 422, "[1].url: "),
            ("[]", 422, "request body: "),
            ('"x"', 400, "line 1"),
            ('[1]', 422, "[0].url: "),
            ('{"url":"https://b.example/","colour":1}', 422, "unknown field: colour"),
            ('{"url":', 400, "line 1"),
            ('{"url":"https://b.example/","interval_ms":-1}', 422, "interval_ms: must be a number"),
            ("", 400, "not valid JSON")):
            status, _, response = d.request("POST", "/v1/feeds", body)
            equal((status, words in response["detail"]), (code, True), response["detail"])
        listed = [[f["id"] for f in p] for p in pages(d, "/v1/feeds?limit=3&folder=x%20%26%20y")]
        equal(listed, [[1, 2, 3], [4, 5, 6], [7]])
        equal([[f["id"] for f in p] for p in pages(d, "/v1/feeds?q=example/7")], [[7]])
        equal(list(pages(d, "/v1/feeds"))[0], d.feedwheel.json("list"))
        status, headers, response = d.request("PATCH", "/v1/feeds/2", '{"status":"paused","title":"T","interval_ms":0}')
        equal((status, response["state"], response["title"]), (200, "paused", "T"))
        equal([f["id"] for f in d.request("GET", "/v1/feeds?status=paused")[2]["feeds"]], [2])
        equal([f["id"] for f in d.request("GET", "/v1/feeds?status=failing")[2]["feeds"]], [])
        equal(d.request("PATCH", "/v1/feeds/2", '{"status":"active"}')[2]["state"], "new")
        for body, words in (
            ("{}", "request body: no field to change"),
            ('{"status":"gone"}', "status: "),
            ('{"url":"https://c.example/"}', "field: url"),
            ('{"due":false}', "due: must be true"),
            ("[]", "request body: must be an object")):
            status, _, response = d.request("PATCH", "/v1/feeds/2", body)
            equal((status, words in response["detail"]), (422, True), response["detail"])
        equal(d.request("PATCH", MISSING, '{"due":true}')[0], 404)
        status, headers, response = d.request("DELETE", "/v1/feeds/2")
        equal((status, response), (204, ""))
        equal(d.request("DELETE", "/v1/feeds/2")[0], 404)
        equal([f["id"] for f in d.request("GET", "/v1/feeds")[2]["feeds"]], [1, 3, 4, 5, 6, 7])
        for path, words in (
            ("status=dead", "one of: active paused"),
            ("cursor=x", "invalid cursor"),
            ("cursor=f1.2", "invalid cursor"),
            ("cursor=f", "invalid cursor"),
            ("limit=1001", "invalid limit"),
            ("page=2", "page (GET /v1/feeds takes status")):
            status, _, response = d.request("GET", "/v1/feeds?" + path)
            equal((status, words in response["detail"]), (400, True), response["detail"])


@case("entries are JSON Feed or lines, equal to the command line's, with ETag; errors name the parameter")
def entries(base):
    with origin(base, samples(base), "--feeds", "6") as o, http_server(base) as d:
        d.feedwheel.run("import", o.url_file)
        d.feedwheel.run_once()
        status, headers, response = d.request("GET", "/v1/entries?limit=1000")
        want = d.feedwheel.json("entries", "--content")
        equal((status, headers["Content-Type"], response["version"]), (200, "application/feed+json", want["version"]))
        equal(response["items"], want["items"])
        holds(len(want["items"]) > 5 and "next_url" not in response, len(want["items"]))
        holds(headers["Last-Modified"] and headers["ETag"] and headers["Cache-Control"], headers)
        for tag, code in (
            (headers["ETag"], 304),
            ("W/" + headers["ETag"], 304),
            ('"x", ' + headers["ETag"], 304),
            ("*", 304),
            ('"x"', 200)):
            status, again, body = d.request("GET", "/v1/entries?limit=1000", headers={"If-None-Match": tag})
            equal((status, again["ETag"], body == ""), (code, headers["ETag"], code == 304), tag)
        lines = [json.dumps(i) for i in want["items"]]
        for path, accept in (("&format=ndjson", "*/*"), ("", "application/x-ndjson")):
            status, headers, response = d.request("GET", "/v1/entries?limit=1000" + path, headers={"Accept": accept})
            equal((status, headers["Content-Type"]), (200, "application/x-ndjson"))
            equal([json.dumps(json.loads(l)) for l in response.splitlines()], lines)
        equal([i for p in pages(d, "/v1/entries?limit=2", "items") for i in p], want["items"])
        stored = [i for p in pages(d, "/v1/entries?limit=3&order=stored&content=no", "items") for i in p]
        equal([i["_store"]["entry"] for i in stored], sorted(i["_store"]["entry"] for i in want["items"]))
        holds(not any("content_html" in i for i in stored), "without contents")
        one = want["items"][0]
        equal(d.request("GET", "/v1/entries/%d" % one["_store"]["entry"])[2], one)
        equal(d.request("GET", "/v1/entries/%d?content=raw" % one["_store"]["entry"])[0], 200)
        status, _, response = d.request("GET", "/v1/entries/4711")
        equal((status, response["detail"]), (404, "no entry has the number 4711"))
        feed = one["_store"]["feed_url"]
        for name in (feed, one["_store"]["feed"]):
            status, _, response = d.request("GET", "/v1/entries?feed=%s" % name)
            equal(response["items"], d.feedwheel.json("entries", "--content", "--feed", feed)["items"])
        word = one["title"].split()[0]
        found = d.request("GET", "/v1/entries?limit=1000&q=" + urllib.parse.quote(word))[2]["items"]
        equal(found, d.feedwheel.json("entries", "--content", "--search", word)["items"])
        path = "/v1/entries?limit=1000&by=relevance&snippet=1&q="
        ranked = d.request("GET", path + urllib.parse.quote(word))[2]["items"]
        equal(ranked, d.feedwheel.json("entries", "--content", "--by", "relevance", "--snippet", word)["items"])
        equal(sorted(i["_store"]["entry"] for i in ranked), sorted(i["_store"]["entry"] for i in found))
        holds("<mark>" in ranked[0]["_store"]["snippet"], ranked[0])
        path = "/v1/entries?limit=1&by=relevance&snippet=1&q=%s%%20OR%%20-%s" % ((urllib.parse.quote(word),) * 2)
        equal([i for p in pages(d, path, "items") for i in p],
              d.request("GET", path.replace("limit=1&", "limit=1000&"))[2]["items"])
        ids = sorted({i["_store"]["feed"] for i in want["items"]})[:2]
        two = [i for i in want["items"] if i["_store"]["feed"] in ids]
        path = "/v1/entries?feed=%d&feed=%d&limit=" % tuple(ids)
        equal(d.request("GET", path + "1000")[2]["items"], two)
        equal([i for p in pages(d, path + "2", "items") for i in p], two)
        equal(d.feedwheel.json("entries", "--content", "--feed", str(ids[0]), "--feed", str(ids[1]))["items"], two)
        equal(d.request("GET", "/v1/folders")[2]["folders"], d.feedwheel.json("folders"))
        equal(d.request("GET", "/v1/entries?since=1h&limit=1000")[2]["items"], want["items"])
        equal(d.request("GET", "/v1/entries?since=2999-01-01T00:00:00Z")[2]["items"], [])
        equal(d.request("GET", "/v1/entries?until=2001-01-01T00:00:00Z")[2]["items"], [])
        equal(d.request("GET", "/v1/entries?folder=nowhere")[2]["items"], [])
        for path, code, words in (
            ("feed=4711", 404, "4711"),
            ("feed=1&feed=4711", 404, "4711"),
            ("by=rank&q=x", 400, "invalid by 'rank' (expected one of: date relevance)"),
            ("by=relevance", 400, "it needs q"),
            ("by=relevance&q=x&order=stored", 400, "excludes order=stored"),
            ("by=relevance&q=x&cursor=s1", 400, "invalid cursor"),
            ("snippet=yes&q=x", 400, "invalid snippet 'yes'"),
            ("feed=http://", 400, "(expected a feed's id or URL"),
            ("feed=0", 400, "invalid feed"),
            ("since=then", 400, "(expected a time"),
            ("q=", 400, "(expected words"),
            ("order=random", 400, "(expected one of: newest stored"),
            ("limit=0", 400, "invalid limit"),
            ("content=some", 400, "invalid content"),
            ("format=xml", 400, "(expected one of: json ndjson"),
            ("cursor=s1", 400, "invalid cursor"),
            ("cursor=n1", 400, "invalid cursor"),
            ("order=stored&cursor=n1.2", 400, "invalid cursor"),
            ("cursor=n1.2.3", 400, "invalid cursor"),
            ("until=then", 400, "(expected a time"),
            ("q=rain+titel:x", 400, "invalid q: at 6: there is no field"),
            ("q=rain+AND", 400, "invalid q: at 6: AND has no term"),
            ("colour=x", 400, "colour (GET /v1/entries takes feed folder since")):
            status, _, response = d.request("GET", "/v1/entries?" + path)
            equal((status, words in response["detail"]), (code, True), response["detail"])
        r = subprocess.run(
            ["curl", "-sSI", "http://127.0.0.1:%d/v1/entries" % d.port],
            capture_output=True, text=True, check=True)
        holds(r.stdout.startswith("HTTP/1.1 200") and "ETag" in r.stdout, r.stdout)


def follow_list(d, seen, over):
    """Poll the list in the order of storing, by its cursor, until over is set, then once more."""
    cursor = ""
    while True:
        last = over.is_set()
        while True:
            try:
                status, headers, response = d.request(
                    "GET", "/v1/entries?order=stored&content=no&format=ndjson&limit=100" + cursor)
            except (OSError, http.client.HTTPException): # the server was killed
                continue
            if status == 503: # the new server has not reached the store yet
                continue
            equal(status, 200, response)
            items = [response] if isinstance(response, dict) else map(json.loads, response.splitlines())
            seen += [e["_store"]["entry"] for e in items]
            cursor = "&cursor=" + headers["Feedwheel-Cursor"] if "Feedwheel-Cursor" in headers else ""
            if "Link" not in headers:
                break
        if last:
            return


def stalled(d):
    """A client of the whole stream that never reads it."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", d.port))
    s.sendall(b"GET /v1/stream?since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


def stored_ids(w):
    return sorted(json.loads(l)["_store"]["entry"] for l in w.run("entries", "--jsonl").stdout.splitlines())


@case("the stream sends new entries as they are stored, resumes after an id, and sends heartbeats")
def stream(base):
    with origin(base, samples(base), "--feeds", "30", plans=["* grow=1,start=60,window=60"]) as o, \
            http_server(base, conf="serve_heartbeat_ms = 200ms\n") as d:
        equal(d.request("GET", "/v1/stream?since=x")[0], 400)
        equal(d.request("GET", "/v1/stream", headers={"Last-Event-ID": "x"})[2]["code"], "invalid_header")
        d.feedwheel.run("import", o.url_file)
        new = Stream(d)
        holds(new.begun.wait(60), "the stream begins")
        idle = [stalled(d) for _ in range(300)]
        d.feedwheel.run_once()
        want = stored_ids(d.feedwheel)
        holds(len(want) >= 1800, len(want))
        wait_for("all", lambda: len(new.ids) >= len(want), AGAIN_S)
        equal(new.ids, want)
        n = new.beats
        wait_for("heartbeats", lambda: new.beats > n + 2, AGAIN_S)
        for i in idle:
            i.close()
        equal(new.items[7], d.request("GET", "/v1/entries/%d?content=no" % want[7])[2])
        of_one = Stream(d, "/v1/stream?since=0&feed=7")
        wait_for("one feed's entries", lambda: len(of_one.ids) == 60, AGAIN_S)
        equal({i["_store"]["feed"] for i in of_one.items}, {7})
        new.stop()
        d.feedwheel.run("set", "--due", *o.urls)
        d.feedwheel.run_once()
        wait_for("one more", lambda: len(of_one.ids) == 61, AGAIN_S)
        again = Stream(d, "/v1/stream?since=%s" % new.last)
        wait_for("the entries since", lambda: len(again.ids) == 30, AGAIN_S)
        again.stop()
        d.stop() # while a client reads
        d.start()
        of_all = Stream(d, "/v1/stream?since=0")
        wait_for("all, from the store", lambda: len(of_all.ids) >= 1830, AGAIN_S)
        equal(of_all.ids, stored_ids(d.feedwheel))
        wait_for("the other to reconnect", lambda: of_one.connections > 1, AGAIN_S)
        of_one.stop()
        of_all.stop()
        equal(len(of_one.ids), 61)


@case("the stream sends a batch larger than its window, and truncates long texts") # LIM-01
def large_batch(base):
    sizes = [200_000, 400_000, 900_000, 1_800_000, 2_000_000]
    with http_server(base) as d:
        d.request("POST", "/v1/feeds", '[{"url":"https://a.example/"},{"url":"https://b.example/"}]')
        readers = [Stream(d), Stream(d, "/v1/stream?feed=1"), Stream(d, "/v1/stream?feed=2")]
        for r in readers:
            holds(r.begun.wait(60), "the stream begins")
        tags = ["%d%s" % (k, "c" * 300) for k in range(90)]
        items = [{"id": str(i), "title": "t", "summary": "A" * (n - 1) + "\u00e9", "tags": tags}
                 for i, n in enumerate(sizes)]
        body = os.path.join(base, "large.json")
        with open(body, "w", encoding="ascii") as f:
            json.dump({"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}, f)
        d.feedwheel.run("push", "#1", body) # by another process, so that the server sees all at once
        for r in readers[:2]:
            wait_for("all", lambda r=r: len(r.ids) >= len(sizes), AGAIN_S)
        d.feedwheel.run("push", "#2", os.path.join(samples(base), sorted(os.listdir(samples(base)))[0]))
        wait_for("the other feed's entries", lambda: readers[2].ids, AGAIN_S)
        for r in readers:
            r.stop()
        equal([r.connections for r in readers], [1, 1, 1])
        equal(readers[0].ids[:5], readers[1].ids)
        shown = readers[1].items[-1]
        equal((shown["summary"], "tags" in shown), ("A" * 16384, False))
        whole = d.request("GET", "/v1/entries/%d" % readers[1].ids[-1])[2]
        holds(whole["summary"].endswith("\u00e9") and len(whole["tags"]) == 90, "the whole entry")


@case("a client that does not read the stream is disconnected, and does not delay others")
def stalled_client(base):
    with http_server(base, conf="serve_send_timeout_ms = 2s\n") as d:
        d.request("POST", "/v1/feeds", '{"url":"https://a.example/"}')
        idle = [stalled(d) for _ in range(40)]
        reader = Stream(d, "/v1/stream?since=0")
        for i in range(20):
            body = "\n".join(json.dumps({"id": "%d.%d" % (i, k), "title": "t" * 2000}) for k in range(100))
            status, _, response = d.request("POST", "/v1/feeds/1/entries", body,
                                            {"Content-Type": "application/x-ndjson"})
            equal((status, response["new"]), (200, 100), response)
        wait_for("all", lambda: len(reader.ids) >= 2000, AGAIN_S)
        equal(reader.ids, list(range(1, 2001)))

        def disconnected():
            return metric(d, 'http_aborted_total{in="send"}') >= len(idle)
        wait_for("the others to be disconnected", disconnected, AGAIN_S)
        reader.stop()
        for s in idle:
            s.close()
        wait_for("the end of all", lambda: metric(d, "http_connections") < 5, AGAIN_S)


@each_engine(
    "lists and streams are complete and without duplicates while workers store and the server is killed",
    also=["sqlite"], leave_out=() if "FW_LONG" in os.environ else ("redis", "mysql"))
def while_storing(base, engine):
    with growing(base, engine, on=store_of(engine, base)) as (_, w, s), \
            http_server(base, store=s.url(), conf=CONF, command="run") as d:
        seen, over = [], threading.Event()
        first = Stream(d, "/v1/stream?since=0")
        reader = threading.Thread(target=follow_list, args=(d, seen, over), daemon=True)
        reader.start()
        for i in range(3):
            wait_for("entries", lambda i=i: len(first.ids) > 250 + 150 * i, 60)
            n = first.connections
            os.kill(workers_of(d.process)[-1], signal.SIGKILL) # the child that was started last: the server
            wait_for("the client to reconnect", lambda n=n: first.connections > n)
        for _ in range(2):
            wait_for("the server", d.responds)
            before = set(seen)
            newest = [i["_store"]["entry"] for p in pages(d, "/v1/entries?limit=37&content=no", "items") for i in p]
            equal(len(newest), len(set(newest)), "entries listed once")
            equal(before - set(newest), set(), "missing entries")
        d.feedwheel.run("pause", "--all")
        wait_for("a pause", lambda: w.json("status")["in_flight"] == 0, 40)
        wait_for("the list and the stream to have all entries", lambda: seen == stored_ids(w) == first.ids)
        over.set()
        reader.join()
        first.stop()
        d.feedwheel.run("resume", "--all")
        d.stop()


@each_engine(
    "an incomplete search is marked in each output; a server without workers fills the index and takes pushes",
    also=["sqlite"])
def unindexed(base, engine):
    lines = "".join('{"id":"%d","title":"needle"}\n' % i for i in range(3000))
    with store_of(engine, base) as s:
        w = Feedwheel(base, store=s.url())
        for i in range(2):
            w.run("add", "https://%d.example/" % i)
        w.run("push", "1", "-", "--content-type", "application/x-ndjson", stdin=lines)
        r = w.run("entries", "--search", "needle", "--json")
        output = json.loads(r.stdout)
        found = len(output["items"])
        equal((output.get("incomplete"), output.get("unindexed_entries")),
              (None, None) if engine == "redis" else (True, 3000))
        equal((found, "incomplete" in r.stderr), (3000, False) if engine == "redis" else (0, True), r.stderr)
        slow = "this store has no index: up to 3,000 entries are read"
        equal(slow in r.stderr, engine == "redis", r.stderr)
        holds(slow not in w.run("entries", "--limit", "1").stderr, "without a search nothing is said")
        output = w.run("entries", "--search", "needle").stderr
        holds(engine == "redis" or "3,000 entries are not indexed yet" in output, output)
        held = None
        if engine == "sqlite": # a lock, so that no process fills the index for a while
            held = sqlite3.connect(w.path, isolation_level=None)
            held.execute("BEGIN IMMEDIATE")
        with http_server(base, store=s.url()) as d:
            def gauge_is(n):
                return "\nfeedwheel_entries_unindexed %d\n" % n in d.request("GET", "/metrics")[2]

            def search(query=""):
                status, got, response = d.request("GET", "/v1/entries?q=needle&content=no" + query)
                equal(status, 200, response)
                return got, response
            if held:
                got, response = search()
                equal((response["items"], response["incomplete"]), ([], True))
                equal((response["unindexed_entries"], got["Feedwheel-Unindexed"]), (3000, "3000"))
                got, response = search("&format=ndjson")
                equal((response, got["Feedwheel-Unindexed"]), ("", "3000"))
                wait_for("the gauge", lambda: gauge_is(3000), AGAIN_S)
                held.rollback()
                held.close()

            def complete():
                """Has the search all entries? If not, its response says so."""
                items, path = 0, "&limit=1000"
                while path:
                    got, response = search(path)
                    unindexed = response.get("unindexed_entries")
                    want = (None, False) if unindexed is None else (str(unindexed), True)
                    equal((got["Feedwheel-Unindexed"], response.get("incomplete", False)), want)
                    note = "this store has no index: entries are read until enough match"
                    equal({got["Feedwheel-Note"], response.get("note")}, {note if engine == "redis" else None})
                    if "incomplete" in response:
                        return False
                    items += len(response["items"])
                    path = "&cursor=" + got["Feedwheel-Cursor"] + "&limit=1000" if "next_url" in response else None
                equal(items, total)
                return True
            total = 3000
            wait_for("the index", complete, AGAIN_S)
            with http_server(os.path.join(base, "another"), store=s.url()): # which fills the index, too
                ndjson = {"Content-Type": "application/x-ndjson"}
                status, _, response = d.request("POST", "/v1/feeds/2/entries", lines, ndjson)
                equal((status, response["new"]), (200, 3000), response)
                total = 6000
                wait_for("the index, again", complete, AGAIN_S)
            wait_for("the gauge", lambda: gauge_is(0), AGAIN_S)
            equal(len(w.json("entries", "--search", "needle")["items"]), total)
            output = w.run("doctor", "--deep", code=None).stdout
            equal([l for l in output.splitlines() if l.startswith("broken") and "fsync off" not in l], [], output)


def resolve(doc, o):
    """The object that o's $ref names; o if it has none."""
    path = o["$ref"].split("/")[1:] if "$ref" in o else []
    return functools.reduce(lambda v, name: v[name], path, doc) if path else o


def check(schema, value, doc, where="$"):
    """Validate a value with the keywords that openapi.json uses; other keywords fail."""
    known = {
        "$ref", "type", "properties", "required", "items", "enum", "oneOf", "additionalProperties", "format",
        "minimum", "maximum", "minLength", "maxLength", "minProperties", "const", "default", "description", "examples"}
    equal(set(schema) - known, set(), where)
    if "$ref" in schema:
        check(resolve(doc, schema), value, doc, where)
    if "oneOf" in schema:
        fit = 0
        for s in schema["oneOf"]:
            with contextlib.suppress(AssertionError):
                check(s, value, doc, where)
                fit += 1
        equal(fit, 1, where + ": one of")
    kinds = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    kind = kinds.get(schema.get("type"), object)
    holds(isinstance(value, kind) and not (kind is int and isinstance(value, bool)),
          "%s: %r is not of type %s" % (where, value, schema.get("type")))
    holds("enum" not in schema or value in schema["enum"], "%s: %r" % (where, value))
    holds(schema.get("const", value) == value, "%s: %r" % (where, value))
    if isinstance(value, int):
        holds(schema.get("minimum", value) <= value <= schema.get("maximum", value), "%s: %r" % (where, value))
    if schema.get("format") == "date-time":
        holds(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value), "%s: %r is not a time" % (where, value))
    if isinstance(value, dict):
        members = schema.get("properties", {})
        equal([m for m in schema.get("required", []) if m not in value], [], where + ": missing")
        for name, v in value.items():
            holds(name in members or schema.get("additionalProperties", True), "%s.%s is not described" % (where, name))
            if name in members:
                check(members[name], v, doc, "%s.%s" % (where, name))
    if isinstance(value, list):
        for i, v in enumerate(value):
            check(schema.get("items", {}), v, doc, "%s[%d]" % (where, i))


def refs(o):
    """All values of $ref in an object."""
    for name, v in o.items() if isinstance(o, dict) else enumerate(o):
        if name == "$ref":
            yield v
        elif isinstance(v, (dict, list)):
            yield from refs(v)


def objects(o):
    """All objects in an object, and itself."""
    if isinstance(o, dict):
        yield o
    for v in o.values() if isinstance(o, dict) else o if isinstance(o, list) else ():
        yield from objects(v)


TWIRP_CODES = {"bad_route", "failed_precondition", "invalid_argument", "resource_exhausted"}


@case("openapi.json has names, tags, valid examples and all error codes, and nothing unused")
def complete(base):
    del base
    with open(os.path.join(ROOT, "src", "http", "api", "openapi.json"), encoding="utf-8") as f:
        doc = json.load(f)
    operations = [o for p in doc["paths"].values() for o in p.values()]
    names = [o["operationId"] for o in operations]
    equal((len(set(names)), [n for n in names if not re.fullmatch("[a-z][A-Za-z]+", n)]), (len(operations), []))
    equal({t for o in operations for t in o["tags"]}, {t["name"] for t in doc["tags"]})
    equal([o["operationId"] for o in operations if len(o["tags"]) != 1 or not o["summary"]], [])
    holds(doc["servers"][0]["variables"]["origin"]["default"].startswith("http://"), doc["servers"])
    for o in objects(doc):
        if isinstance(o.get("required"), list):
            equal(set(o["required"]) - set(o.get("properties", {})), set(), "required, but not described")
    used = set(refs(doc))
    kinds = "schemas", "responses", "headers"
    equal({"#/components/%s/%s" % (kind, n) for kind in kinds for n in doc["components"][kind]}, used)
    for name, schema in doc["components"]["schemas"].items():
        for e in schema.get("examples", []):
            check(schema, e, doc, name)
    for name in ("Event", "Subscription", "Subscribed", "FeedChange", "Feed", "Entry", "JSONFeed", "Problem",
                 "TwirpError", "Order", "OrderDetail", "OrderNew", "OrderChange", "OrderReplay", "OrderMatched",
                 "OrderTest", "OrderMatch", "Change", "Difference"):
        holds(doc["components"]["schemas"][name]["examples"], name)
    codes, source = set(), ""
    for path in glob.glob(os.path.join(ROOT, "src", "http", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as f:
            source += f.read()
    for call in re.findall(r"http_problem(?:_number)?\(\s*r,\s*[^,;]+,\s*([^,;]+),", source):
        codes |= set(re.findall(r'"(\w+)"', call))
    codes |= set(re.findall(r'conn_send_problem\([^"]*"(\w+)"', source))
    equal(codes - TWIRP_CODES, set(doc["components"]["schemas"]["ErrorCode"]["enum"]))


@case("openapi.json: every operation responds as described")
def described(base):
    with origin(base, samples(base), "--feeds", "3", plans=["2 404"]) as o, http_server(base) as d:
        d.feedwheel.run("import", o.url_file)
        d.feedwheel.run_once()
        doc = d.request("GET", "/openapi.json")[2]
        equal(doc["openapi"], "3.1.0")
        event, seen = '{"property":"news","section":1,"id":1}', set()

        def ask(code, method, path, body=None, query="", feed="all.atom", number=1, **headers):
            url = path.replace("{id}", str(number)).replace("{token}", "a" * 40).replace("{name}", "o").replace(
                "{feed}", feed) + query
            headers = {k.replace("_", "-"): v for k, v in headers.items()}
            status, got, response = d.request(method, url, body, headers)
            equal(status, code, "%s %s: %s" % (method, path + query, response))
            answer = resolve(doc, doc["paths"][path][method.lower()]["responses"][str(code)])
            seen.add((path, method.lower(), str(code)))
            holds(("content" in answer) == (response != ""), "%s %s: a body" % (method, path))
            if response != "":
                schema = answer["content"][got["Content-Type"]]["schema"]
                check(schema, response, doc, "%s %s %d" % (method, path, code))
                if jsonschema: # as other programs validate
                    jsonschema.Draft202012Validator({**schema, "components": doc["components"]}).validate(response)

        ask(202, "POST", "/v1/events", event)
        ask(200, "POST", "/v1/events", event, "?ack=durable")
        ask(400, "POST", "/v1/events", "{")
        ask(413, "POST", "/v1/events", " " * (2 << 20))
        ask(415, "POST", "/v1/events", event, Content_Type="text/plain")
        ask(403, "POST", "/v1/events", event, Content_Type="application/json", Origin="http://evil.example")
        ask(403, "GET", "/v1/feeds", Sec_Fetch_Site="cross-site")
        ask(200, "POST", "/twirp/stats.StatsService/Push", event)
        ask(400, "POST", "/twirp/stats.StatsService/Push", "{}")
        ask(403, "POST", "/twirp/stats.StatsService/Push", event, Host="evil.example")
        ask(415, "POST", "/twirp/stats.StatsService/Push", event, Content_Type="text/plain")
        for path in ("/v1/feeds", "/v1/feeds/{id}", "/v1/folders", "/v1/entries", "/v1/entries/{id}",
                     "/v1/entries/{id}/revisions", "/v1/changes", "/v1/timings", "/openapi.json"):
            ask(200, "GET", path)
            ask(304, "GET", path, If_None_Match="*")
        for path in ("/v1/feeds", "/v1/feeds/{id}", "/v1/folders", "/v1/entries", "/v1/entries/{id}",
                     "/v1/entries/{id}/revisions", "/v1/changes", "/v1/timings", "/v1/stream", "/v1/events"):
            ask(400, "POST" if path == "/v1/events" else "GET", path, query="?nonsense=1")
        for path in ("/v1/ring", "/healthz", "/readyz", "/metrics"):
            ask(200, "GET", path)
        ask(201, "POST", "/v1/feeds", '[{"url":"https://a.example/"}]')
        ask(201, "POST", "/v1/feeds", '{"url":"https://b.example/"}')
        ask(200, "POST", "/v1/feeds", '{"url":"https://b.example/"}')
        ask(400, "POST", "/v1/feeds", "{")
        ask(422, "POST", "/v1/feeds", "{}")
        ask(415, "POST", "/v1/feeds", "{}", Content_Type="text/plain")
        ask(200, "PATCH", "/v1/feeds/{id}", '{"title":"x"}')
        ask(400, "PATCH", "/v1/feeds/{id}", "{")
        ask(422, "PATCH", "/v1/feeds/{id}", "{}")
        ask(415, "PATCH", "/v1/feeds/{id}", "{}", Content_Type="multipart/form-data; boundary=x")
        ask(200, "POST", "/v1/feeds/{id}/entries", '{"id":"x","title":"t"}',
            Content_Type="application/x-ndjson", Idempotency_Key="k")
        ask(422, "POST", "/v1/feeds/{id}/entries", '{"id":"y","title":"t"}',
            Content_Type="application/x-ndjson", Idempotency_Key="k")
        ask(415, "POST", "/v1/feeds/{id}/entries", "x", Content_Type="image/png")
        ask(200, "POST", "/v1/feeds/{id}/entries", '{"id":"x","title":"u","content_text":"a"}',
            Content_Type="application/x-ndjson")
        change = d.request("GET", "/v1/changes?limit=1000")[2]["changes"][-1]
        equal((change["type"], change["revision"], change["item"]["title"]), ("changed", 2, "u"))
        ask(200, "GET", "/v1/changes", query="?limit=1000&content=yes")
        ask(200, "GET", "/v1/entries/{id}/revisions", query="?content=raw", number=change["entry"])
        ask(404, "GET", "/v1/entries/{id}/revisions", number=4711)
        ask(404, "GET", "/v1/entries", query="?feed=4711")
        for feed in ("all.atom", "feed/1.rss", "sample.json"):
            ask(200, "GET", "/feeds/{feed}", feed=feed)
            ask(304, "GET", "/feeds/{feed}", feed=feed, If_None_Match="*")
        ask(400, "GET", "/feeds/{feed}", feed="query/(.atom")
        ask(404, "GET", "/feeds/{feed}", feed="folder/none.atom")
        ask(401, "GET", "/t/{token}/feeds/{feed}")
        ask(200, "GET", "/v1/entries", query="?q=a%20OR%20the&by=relevance&snippet=1&feed=1&feed=2")
        order = '{"name":"o","query":"word","to":"https://hooks.example.org/x"}'
        ask(201, "POST", "/v1/orders", order)
        ask(422, "POST", "/v1/orders", order)
        ask(422, "POST", "/v1/orders", '{"name":"p","query":"titel:x","drop":true}')
        ask(400, "POST", "/v1/orders", "{")
        ask(200, "POST", "/v1/orders/test", '{"query":"a OR the","since":"1d","limit":2}')
        ask(422, "POST", "/v1/orders/test", '{"query":"("}')
        for path in ("/v1/orders", "/v1/orders/{name}", "/v1/orders/{name}/dead"):
            ask(200, "GET", path)
            ask(304, "GET", path, If_None_Match="*")
            ask(400, "GET", path, query="?nonsense=1")
        ask(200, "PATCH", "/v1/orders/{name}", '{"state":"paused"}')
        ask(422, "PATCH", "/v1/orders/{name}", "{}")
        ask(200, "POST", "/v1/orders/{name}/replay", '{"since":"1d"}')
        ask(422, "POST", "/v1/orders/{name}/replay", "{}")
        ask(200, "POST", "/v1/orders/{name}/retry")
        ask(200, "POST", "/v1/orders/{name}/rotate")
        ask(200, "GET", "/v1/orders/{name}")
        ask(204, "DELETE", "/v1/orders/{name}")
        for method, path, body in (
            ("DELETE", "", None), ("GET", "", None), ("PATCH", "", '{"changes":true}'), ("GET", "/dead", None),
            ("POST", "/replay", '{"since":"1d"}'), ("POST", "/retry", None), ("POST", "/rotate", None)):
            ask(404, method, "/v1/orders/{name}" + path, body)
        ask(204, "DELETE", "/v1/feeds/{id}")
        ask(404, "DELETE", "/v1/feeds/{id}")
        equal(d.request("GET", "/v1/changes?limit=1000")[2]["changes"][-1]["type"], "gone")
        ask(200, "GET", "/v1/changes", query="?limit=1000")
        d.feedwheel.sql("INSERT OR REPLACE INTO meta (name, value) VALUES ('changes_pruned_id', 2)", write=True)
        ask(410, "GET", "/v1/changes", query="?after=1")
        ask(404, "GET", "/v1/feeds/{id}")
        ask(404, "PATCH", "/v1/feeds/{id}", '{"due":true}')
        ask(404, "POST", "/v1/feeds/{id}/entries", '{"id":"x"}', Content_Type="application/x-ndjson")
        response = d.request("GET", "/v1/entries?format=ndjson&limit=1")[2]
        check(doc["components"]["schemas"]["Entry"], response, doc)
        ask(404, "GET", "/websub/{token}")
        ask(410, "POST", "/websub/{token}", "x")
        # what the router refuses, whatever the operation
        statuses, large = set(), {"Content-Length": str(1 << 30), "Expect": "100-continue"}
        for path, method in [(p, m) for p, o in doc["paths"].items() for m in o if p != "/v1/stream"]:
            for query, headers in (
                ("?nonsense=1", {}), ("?%00", {}), ("", {"Bad(Name": "x"}), ("?" + "x" * 12001, {}), ("", large),
                ("", {"Authorization": "Bearer fwt_wrong"}), ("", {"Host": "evil.example"}),
                ("", {"Content-Encoding": "br", "Content-Type": "application/json"})):
                where = "%s %s %s %s" % (method, path, query[:20], headers)
                status, got, response = d.request(method.upper(), re.sub(r"{\w+}", "1", path) + query, None, headers)
                statuses.add(status)
                if status < 400:
                    continue
                answers = doc["paths"][path][method]["responses"]
                body = "requestBody" in doc["paths"][path][method]
                other = (414,) if body else (413, 414, 415)
                holds(str(status) in answers or status in other, "%s: %d" % (where, status))
                content = resolve(doc, answers.get(str(status), answers["default"]))["content"]
                check(content[got["Content-Type"]]["schema"], response, doc, where)
        holds(statuses >= {400, 401, 403, 404, 413, 414, 415}, statuses)
        never = {(p, m) for p, o in doc["paths"].items() for m in o} - {(p, m) for p, m, _ in seen}
        equal(never - {("/v1/stream", "get")}, set(), "operations never requested")
        equal([t["feed"] for p in pages(d, "/v1/timings?limit=1", "timings") for t in p], [2, 3, 4, 5])
        holds(any(t["expected_us"] > 0 for t in d.request("GET", "/v1/timings")[2]["timings"]), "expected durations")


@case("serve_cors_origin permits pages of other origins; without it no response does")
def cors(base):
    with http_server(base) as d:
        holds("Access-Control-Allow-Origin" not in d.request("GET", "/v1/feeds")[1], "no permission by default")
        status, headers, _ = d.request("OPTIONS", "/v1/feeds")
        equal((status, headers["Allow"], headers["Access-Control-Allow-Methods"]),
              (204, "GET, HEAD, POST, OPTIONS", None))
        d.stop()
    with http_server(base, conf="serve_cors_origin = https://a.example\n") as d:
        for method, path, body in (
            ("GET", "/v1/feeds", None),
            ("POST", "/v1/events", '{"property":"a","section":1,"id":1}'),
            ("GET", "/x", None)):
            equal(d.request(method, path, body)[1]["Access-Control-Allow-Origin"], "https://a.example")
        status, headers, _ = d.request("OPTIONS", "/v1/feeds/1")
        equal((status, headers["Access-Control-Allow-Methods"]), (204, "GET, HEAD, PATCH, DELETE, OPTIONS"))
        for name in ("Authorization", "If-None-Match", "X-Request-Id"):
            holds(name in headers["Access-Control-Allow-Headers"], headers)


@each_engine("requests are answered 503 while the store is down, and work again afterwards")
def store_down(base, engine):
    with server(engine, base) as s, http_server(base, store=s.url()) as d:
        equal(d.request("GET", MISSING)[0], 404)
        s.kill()
        status, headers, response = d.request("GET", MISSING)
        equal((status, response["code"]), (503, "store_unavailable"))
        holds(headers["Retry-After"] and s.url() not in response["detail"], response)
        s.restart()
        wait_for("answers", lambda: d.request("GET", MISSING)[0] == 404, 60)


if __name__ == "__main__":
    run()
