#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Pushed entries, over HTTP and from the command line: they are stored as fetched ones are."""
import functools
import glob
import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

from http_server import http_server, metric
from growing import LONG
from harness import ROOT, SOON, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for

KILLS = int(os.environ.get("FW_PUSH_KILLS", "3"))
FEED_JSON, NDJSON, ATOM = "application/feed+json", "application/x-ndjson", "application/atom+xml"


def item(i, text="text"):
    return {"id": "urn:x:%d" % i, "url": "https://e.example/%d" % i, "title": "entry %d" % i,
            "content_html": "<p>%s %d</p>" % (text, i)}


def feed(items, **more):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "pushed", "items": items, **more})


def lines(items):
    return "".join(json.dumps(i) + "\n" for i in items)


def push(d, number, body, kind=FEED_JSON, key=None, **headers):
    """Status, headers, JSON."""
    if kind:
        headers["Content-Type"] = kind
    if key:
        headers["Idempotency-Key"] = key
    body = body if isinstance(body, bytes) else body.encode()
    return d.request("POST", "/v1/feeds/%d/entries" % number, body, headers)


def together(calls):
    """Make all calls concurrently; returns after the last."""
    threads = [threading.Thread(target=c) for c in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def pushed(d, number, body, kind=FEED_JSON, **more):
    """(new, changed, known) of a push that succeeds."""
    status, _, response = push(d, number, body, kind, **more)
    equal(status, 200, response)
    counts = [response[k] for k in ("new", "changed", "known", "repeated")]
    equal(sum(counts), response["entries"], response)
    visit = response["visit"]
    equal((response["feed"], visit["result"], visit["new"]), (number, "pushed", response["new"]))
    return response["new"], response["changed"], response["known"]


def problem(d, number, body, kind, status, code, words):
    got, headers, response = push(d, number, body, kind)
    equal((got, headers["Content-Type"], response["code"]), (status, "application/problem+json", code), response)
    holds(words in response["detail"], response["detail"])


def entries(feedwheel):
    return len(feedwheel.run("entries", "--jsonl").stdout.splitlines())


def sound(feedwheel):
    """Doctor finds nothing broken, except that a test's server has no fsync."""
    output = feedwheel.run("doctor", "--deep", code=None).stdout
    equal([l for l in output.splitlines() if l.startswith("broken") and "fsync off" not in l], [], output)


def health(feedwheel, number=1):
    """A feed's members that a push does not change."""
    f = feedwheel.json("show", "#%d" % number)["feed"]
    return {k: v for k, v in f.items() if k not in ("entries", "last_new_at", "last_new")}


@case("in every format a pushed entry is known when it is fetched, and a fetched one when it is pushed") # REL-03
def same_as_fetched(base):
    docs = samples(base)
    kinds = "atom", "rss", "json", "rdf", "cdf", "date", "charset", "base"
    for pattern in "*.xml", "*.json":
        for f in sorted(glob.glob(os.path.join(ROOT, "tests", "cases", pattern))):
            if os.path.basename(f).startswith(kinds) and not f.endswith(".expect.json"):
                shutil.copy(f, docs)
    with origin(base, docs) as o, http_server(base, conf="host_concurrency = 64\n") as d:
        w, known, checked = d.feedwheel, {}, 0
        urls = o.urls
        holds(len(urls) > 200, len(urls))
        with open(os.path.join(base, "urls.txt"), "w", encoding="ascii") as f:
            f.write("\n".join(urls))
        w.run("add", *urls)
        for i, url in enumerate(urls, 1):
            with urllib.request.urlopen(url) as r:
                body, kind = r.read(), r.headers["Content-Type"]
            status, _, response = push(d, i, body, kind)
            if status == 200:
                known[i] = (response["new"], response["entries"])
            else: # too broken for a push
                holds(status in (400, 415, 422), (url, response))
        holds(len(known) > len(urls) * 0.8, (len(known), len(urls)))
        w.run_once()
        for i, (new, n) in known.items():
            visits = d.request("GET", "/v1/feeds/%d" % i)[2]["visits"]
            equal(visits[1]["result"], "pushed")
            if visits[0]["result"] == "ok" and visits[0]["items"] == n:
                equal((visits[0]["new"], visits[0]["changed"]), (0, 0), urls[i - 1])
                checked += new > 0
        holds(checked > 150, checked)
        with urllib.request.urlopen(urls[0]) as r: # fetched first, then pushed
            new, changed, again = pushed(d, 1, r.read(), r.headers["Content-Type"])
        equal((new, changed, again > 0), (0, 0, True))
        w.run("doctor")


@case("embeds, and the problem that no content is safe to show, are in every output")
def embeds(base):
    player = "https://www.youtube.com/embed/abc"
    items = [dict(item(0), content_html='<iframe src="%s" title="A talk"></iframe>' % player),
             dict(item(1), content_html="<script>x</script>"), item(2)]
    embed = {"url": "https://www.youtube.com/watch?v=abc", "player": player, "service": "YouTube", "title": "A talk",
             "image": "https://i.ytimg.com/vi/abc/hqdefault.jpg"}
    unsafe = {"what": "nothing in the content is safe to show", "repair": "sanitised, the content is empty"}
    want = {"urn:x:0": {"embeds": [embed]}, "urn:x:1": {"problems": [unsafe]}, "urn:x:2": None}
    with http_server(base) as d:
        d.feedwheel.run("add", "https://a.example/")
        status, _, response = push(d, 1, feed(items))
        equal((status, response["new"]), (200, 3), response)
        equal([p["what"] for p in response["problems"]], ["nothing in the content is safe to show"])
        for got in (
            d.feedwheel.json("entries")["items"],
            d.feedwheel.json("entries", "--content")["items"],
            d.request("GET", "/v1/entries?content=no")[2]["items"],
            d.request("GET", "/v1/entries")[2]["items"]):
            equal({i["id"]: i.get("_feedwheel") for i in got}, want)
        shown = {i["id"]: i["content_html"] for i in d.request("GET", "/v1/entries")[2]["items"]}
        equal((shown["urn:x:0"], shown["urn:x:1"]),
              ('<a href="https://www.youtube.com/watch?v=abc" rel="noopener noreferrer">A talk</a> ', ""))
        page = d.feedwheel.run("entries", "--content", "--limit", "10").stdout
        holds("A talk <https://www.youtube.com/watch?v=abc>" in page, page)


@each_engine(
    "entries are pushed, pushed again and changed in four formats and with a key, then fetched",
    also=["sqlite"])
def main_case(base, engine):
    s = server_of(engine, base)
    with origin(base, samples(base)) as o, s as url, http_server(base, store=url) as d:
        w = d.feedwheel
        w.run("add", "https://a.example/", o.url("/feed/0"))
        equal(pushed(d, 1, feed([item(i) for i in range(5)])), (5, 0, 0))
        equal(pushed(d, 1, lines([item(i) for i in range(7)]), NDJSON), (2, 0, 5)) # the format makes no difference
        equal(pushed(d, 1, feed([item(3, "other"), item(3, "other")])), (0, 1, 0))
        equal(pushed(d, 1, ATOM_DOC, ATOM), (1, 0, 0))
        equal(pushed(d, 1, RSS_DOC, None), (1, 0, 0))
        first = push(d, 1, lines([item(100)]), NDJSON, key="k1")
        again = push(d, 1, lines([item(100)]), NDJSON, key="k1")
        equal((first[0], again[0], again[2]), (200, 200, first[2]))
        equal((first[1]["Idempotent-Replayed"], again[1]["Idempotent-Replayed"]), (None, "true"))
        equal(push(d, 1, lines([item(101)]), NDJSON, key="k1")[0], 422)
        equal(entries(w), 10)
        equal(w.json("show", "#1")["feed"]["title"], "pushed")
        with urllib.request.urlopen(o.url("/feed/0")) as r:
            holds(pushed(d, 2, r.read(), r.headers["Content-Type"])[0] > 0, "new")
        w.run_once()
        visits = w.json("show", "#2")["visits"]
        equal([v["result"] for v in visits], ["ok", "pushed"])
        equal((visits[0]["new"], visits[0]["changed"]), (0, 0))
        equal(push(d, 4711, feed([]))[0], 404)
        if engine != "sqlite": # its server is killed: all of a push is stored, or nothing
            more, answers = lines([item(i) for i in range(1000, 1300)]), []
            t = threading.Thread(target=lambda: answers.append(push(d, 1, more, NDJSON, key="k2")))
            t.start()
            s.server.kill()
            t.join()
            holds(answers[0][0] in (200, 503), answers)
            s.server.restart()
            wait_for("the answer", lambda: push(d, 1, more, NDJSON, key="k2")[0] == 200, 100)
            stored = w.run("entries", "--jsonl", "--feed", "#1").stdout.splitlines()
            equal(sum('"%s"' % i["id"] in more for i in map(json.loads, stored)), 300)


class server_of: # pylint: disable=invalid-name
    """The URL of a store on a server of this engine; None for SQLite."""

    def __init__(self, engine, base):
        self.context, self.server = None if engine == "sqlite" else server(engine, base), None

    def __enter__(self):
        if self.context:
            self.server = self.context.__enter__()
            return self.server.url()
        return None

    def __exit__(self, *why):
        return self.context and self.context.__exit__(*why)


def minimal(n):
    """n entries with an id only, in each format."""
    ids = range(n)
    return {
        NDJSON: "".join('{"id":"%d"}\n' % i for i in ids),
        FEED_JSON: feed([{"id": str(i)} for i in ids]),
        "application/rss+xml": "<rss><channel><title>t</title>%s</channel></rss>" % "".join(
            "<item><guid>%d</guid></item>" % i for i in ids),
        ATOM: "<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>%s</feed>" % "".join(
            "<entry><id>%d</id></entry>" % i for i in ids),
    }


@case("10,000 minimal entries are taken over HTTP and from the command line; 10,001 are refused by max_entries")
def smallest(base):
    with http_server(base) as d:
        for i, (kind, body) in enumerate(minimal(10000).items()):
            d.feedwheel.run("add", "https://%d.a.example/" % i, "https://%d.b.example/" % i)
            equal(pushed(d, 2 * i + 1, body, kind), (10000, 0, 0), kind)
            output = d.feedwheel.run("push", "#%d" % (2 * i + 2), "-", "--content-type", kind, stdin=body).stdout
            equal(output.split(":")[1].strip(), "10,000 new, 0 changed, 0 known", output)
        for kind, body in minimal(10001).items():
            problem(d, 1, body, kind, 413, "too_large", "max_entries")
            errors = d.feedwheel.run("push", "#1", "-", "--content-type", kind, stdin=body, code=1).stderr
            holds("max_entries" in errors, kind)


@case("entries that exceed parse_memory_bytes are refused by its name, and none is stored")
def richest(base):
    tags = json.dumps(["t%d" % k for k in range(100)])
    body = "".join('{"id":"%d","title":"t","tags":%s}\n' % (i, tags) for i in range(9000)) # of 7 MB
    categories = "".join("<category>%d</category>" % k for k in range(30))
    wide = "<rss><channel>%s</channel></rss>" % "".join(
        "<item><guid>%d</guid>%s</item>" % (i, categories) for i in range(9000))
    with http_server(base, conf="parse_memory_bytes = 16MiB\n") as d:
        d.feedwheel.run("add", "https://a.example/", "https://b.example/")
        for kind, document in (
            (NDJSON, body),
            (FEED_JSON, feed([json.loads(l) for l in body.splitlines()])),
            ("application/rss+xml", wide)):
            problem(d, 1, document, kind, 413, "too_large", "parse_memory_bytes")
            output = d.feedwheel.run("push", "#1", "-", "--content-type", kind, stdin=document, code=1).stderr
            holds("parse_memory_bytes" in output, output)
        objects = '{"id":"1","_x":%s}\n' % ("[" + "{}," * 500000 + "{}]")
        problem(d, 1, objects, NDJSON, 413, "too_large", "parse_memory_bytes")
        equal(entries(d.feedwheel), 0)
    with http_server(base, conf="parse_memory_bytes = 512MiB\n") as d:
        equal(pushed(d, 1, body, NDJSON), (9000, 0, 0))
        equal(pushed(d, 2, wide, "application/rss+xml"), (9000, 0, 0))
    d.feedwheel.run("add", "https://c.example/")
    limit = "--max-body-bytes", "1M"
    output = d.feedwheel.run("push", "#3", "-", *limit, "--content-type", NDJSON, stdin=body, code=1).stderr
    holds("max_body_bytes" in output, output)


@case("entries pushed from the command line are indexed by a run that has nothing to fetch")
def found(base):
    with http_server(base) as d: # which creates the store
        d.feedwheel.run("add", "https://a.example/")
        d.feedwheel.run("pause", "https://a.example/")
        w = d.feedwheel
    p = w.start("run", "--workers", "1", "--listen", "")
    wait_for("the worker", lambda: len(w.json("status")["workers"]) == 1)
    w.run("push", "1", "-", "--content-type", NDJSON, stdin=lines(map(item, range(3000))))
    wait_for("the index", lambda: w.json("status")["unindexed_entries"] == 0, 60)
    equal(len(w.json("entries", "--search", "entry")["items"]), 3000)
    p.send_signal(signal.SIGTERM)
    equal(p.wait(60), 0)


@case("the memory of pushed entries is counted: a push waits for room or names serve_memory_bytes")
def room(base):
    body = minimal(3000)[NDJSON]
    with http_server(base, conf="serve_pool_threads = 8\nserve_memory_bytes = 64k\n") as d:
        d.feedwheel.run("add", *["https://%d.example/" % i for i in range(16)])
        answers = {}

        def push_to(number):
            answers[number] = push(d, number, body, NDJSON)
        together([functools.partial(push_to, i + 1) for i in range(16)])
        for number, (status, headers, response) in answers.items():
            if status == 503:
                holds("serve_memory_bytes" in response["detail"] and headers["Retry-After"], response)
                equal(pushed(d, number, body, NDJSON), (3000, 0, 0))
            else:
                equal((status, response["new"]), (200, 3000), response)
        equal(entries(d.feedwheel), 16 * 3000)
        wait_for("all memory to be released", lambda: metric(d, "push_entries_bytes") == 0)


ATOM_DOC = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>urn:f</id>
<entry><id>urn:atom:1</id><title>one</title><updated>2026-01-01T00:00:00Z</updated></entry></feed>"""
RSS_DOC = """<rss version="2.0"><channel><title>t</title>
<item><guid>rss-1</guid><title>x</title></item></channel></rss>"""


@case("a refused body is answered with the problem and its place, and none of it is stored")
def refused(base):
    with http_server(base, conf="max_entries = 50\n") as d:
        d.feedwheel.run("add", "https://a.example/")
        items = [item(i) for i in range(3)]
        problem(d, 1, "", FEED_JSON, 400, "malformed", "the body is empty")
        problem(d, 1, "  \n ", NDJSON, 400, "malformed", "the body is empty")
        problem(d, 1, feed(items)[:-40], FEED_JSON, 400, "malformed", "line 1, column ")
        problem(d, 1, feed(items).replace('"urn:x:1",', '"urn:x:1"'), FEED_JSON, 400, "malformed", "broken JSON")
        problem(d, 1, ATOM_DOC[:-20], ATOM, 400, "malformed", "line 2, column")
        problem(d, 1, ATOM_DOC.split("</entry>")[0], ATOM, 400, "malformed", "ends before its root element")
        problem(d, 1, lines(items) + "{oops}\n", NDJSON, 400, "malformed", "line 4, column 5")
        problem(d, 1, lines(items) + "\n[1]\n", NDJSON, 400, "malformed", "line 5: not a JSON object")
        problem(d, 1, "<html><title>hello</title>", "application/xml", 422, "not_a_feed", "an HTML page")
        problem(d, 1, '{"a": 1}', "application/json", 422, "not_a_feed", "JSON that is not a feed")
        form = "application/x-www-form-urlencoded"
        problem(d, 1, feed(items), form, 415, "unsupported_type", "application/feed+json")
        problem(d, 1, feed(items), "text/html", 415, "unsupported_type", "application/x-ndjson")
        many_items = feed([item(i) for i in range(51)])
        problem(d, 1, many_items, FEED_JSON, 413, "too_large", "more than max_entries = 50 entries")
        problem(d, 1, b"x" * (9 << 20), FEED_JSON, 413, "too_large", "8388608")
        problem(d, 2, feed(items), FEED_JSON, 404, "not_found", "no feed has the number 2")
        equal(push(d, 1, feed(items), key="\x01")[0], 400)
        equal(push(d, 1, feed(items), key="x" * 256)[0], 400)
        equal(d.request("GET", "/v1/feeds/1/entries")[0], 405)
        equal(entries(d.feedwheel), 0)
        equal(pushed(d, 1, feed([])), (0, 0, 0))
        holds("no entries" in push(d, 1, feed([]))[2]["note"], "the note")
        # a document that is repaired without a loss is taken, and the repairs are reported
        repaired = ATOM_DOC.replace("<title>one</title>", "<title>one &nbsp; & two</title>")
        status, _, response = push(d, 1, repaired, ATOM)
        equal((status, response["new"]), (200, 1), response)
        equal(response["problems"][0]["line"], 2, response)
        d.feedwheel.run("pause", "#1")
        for status, name in ((2, "gone"), (3, "quarantined")):
            d.feedwheel.sql("UPDATE schedule SET status = %d" % status, write=True)
            problem(d, 1, feed(items), FEED_JSON, 409, "not_active", name + ": 'feedwheel resume'")
        d.feedwheel.run("resume", "#1")
        equal(pushed(d, 1, feed(items)), (3, 0, 0))
        d.feedwheel.run("remove", "#1")
        problem(d, 1, feed(items), FEED_JSON, 404, "not_found", "no feed has the number 1")


@each_engine("a paused feed is not polled, takes pushed entries, and stays paused", also=["sqlite"])
def paused(base, engine):
    with origin(base, samples(base)) as o, server_of(engine, base) as url, http_server(base, store=url) as d:
        w = d.feedwheel
        w.run("add", o.urls[0], o.urls[1])
        w.run("pause", "#1")
        equal(pushed(d, 1, feed([item(1), item(2)])), (2, 0, 0))
        equal(pushed(d, 1, feed([item(2), item(3)])), (1, 0, 1))
        equal(w.json("show", "#1")["feed"]["status"], "paused")
        w.run_once()
        equal([v["result"] for v in w.json("show", "#1")["visits"]], ["pushed", "pushed"])
        equal(w.json("show", "#2")["visits"][0]["result"], "ok")
        w.run("resume", "#1")
        w.run_once()
        equal(w.json("show", "#1")["visits"][0]["result"], "ok")
        holds(entries(w) > 3, "fetched entries, too")
        sound(w)


def without_ages(why):
    """What `why` says, without its visits, and without how long it is until a time: minutes pass."""
    return re.sub(r"due in [^(]*", "due ", why.split("visits")[0])


@case("a push changes neither the feed's health nor its schedule")
def health_stays(base):
    plans = "0 status=503,retry-after=3600", "1 validators=both"
    with origin(base, samples(base), plans=plans) as o, http_server(base) as d:
        w = d.feedwheel
        w.run("add", o.urls[0], o.urls[1], "https://never.example/")
        w.run_once()
        for number in (1, 2, 3):
            before, why = health(w, number), w.run("why", "#%d" % number).stdout
            equal(pushed(d, number, feed([item(i) for i in range(4)])), (4, 0, 0))
            after = health(w, number)
            if number != 2: # never fetched: the title is the pushed document's
                titles = before.get("title"), after.pop("title"), after.pop("document_title")
                equal(titles, (None, "pushed", "pushed"))
            equal(after, before)
            equal(without_ages(w.run("why", "#%d" % number).stdout), without_ages(why))


@case("a feed in flight takes entries at once, even if its worker is stopped; the fetch is stored too")
def fetched(base):
    with origin(base, samples(base), plans=("* latency=3000",)) as o, http_server(base, conf=SOON) as d:
        w = d.feedwheel
        w.run("add", o.urls[0])
        run_ = w.start("run", "--workers", "1", "--listen", "")
        wait_for("the fetch", lambda: o.stats()["in_flight"])
        equal(push(d, 1, feed([item(1)]))[2]["new"], 1)

        def stopped():
            os.killpg(run_.pid, signal.SIGSTOP)
            if o.stats()["in_flight"] and not w.is_locked():
                return True
            os.killpg(run_.pid, signal.SIGCONT)
            return False
        wait_for("the worker to be stopped outside a commit", stopped)
        try:
            equal(push(d, 1, feed([item(2)]))[2]["new"], 1)
        finally:
            os.killpg(run_.pid, signal.SIGCONT)
        wait_for("the fetch to be stored", lambda: w.one("SELECT count(*) FROM visits WHERE kind = 1"))
        run_.send_signal(signal.SIGTERM)
        equal(run_.wait(60), 0)
        equal(w.one("SELECT count(*) FROM entries WHERE guid LIKE 'urn:x:%'"), 2)
        holds(w.one("SELECT count(*) FROM entries") > 2, "fetched entries, too")


@case("concurrent pushes with one key are one; the key outlives restarts and kill -9, and accepts a corrected body")
def keys(base):
    with http_server(base) as d:
        d.feedwheel.run("add", "https://a.example/", "https://b.example/")
        body = lines([item(i) for i in range(500)])

        def at_once(key, new): # a push just after the end of the first gets the same response
            got = []
            together([lambda: got.append(push(d, 1, body, NDJSON, key=key))] * 8)
            equal(sum(s == 200 and not h["Idempotent-Replayed"] for s, h, _ in got), 1, key)
            for status, headers, response in got:
                in_progress = status == 409 and response["code"] == "in_progress"
                holds(in_progress or headers["Idempotent-Replayed"] or response["new"] == new, response)
        at_once("same", 500)
        for i in range(10):
            at_once("again %d" % i, 0)
        answer = push(d, 1, body, NDJSON, key="same")
        equal((answer[0], answer[1]["Idempotent-Replayed"], answer[2]["new"]), (200, "true", 500))
        equal(push(d, 2, body, NDJSON, key="same")[2]["new"], 500) # for another feed the key is another
        d.stop()
        d.start()
        equal(push(d, 1, body, NDJSON, key="same")[2], answer[2])
        d.kill()
        d.start()
        equal(push(d, 1, body, NDJSON, key="same")[2], answer[2])
        equal(push(d, 1, body + "{", NDJSON, key="other")[0], 400)
        equal(push(d, 1, body, NDJSON, key="other")[2]["known"], 500)
        equal(d.feedwheel.one("SELECT count(*) FROM entries"), 1000)
        equal(d.feedwheel.one("SELECT count(*) FROM records WHERE kind = 'idempotency'"), 13)


@case("a key whose response could not be stored gives the same response, derived from the store")
def answer_lost(base):
    with http_server(base) as d:
        w = d.feedwheel
        w.run("add", "https://a.example/")
        pushed(d, 1, lines([item(0), item(1, "before")]), NDJSON)
        w.sql(
            "CREATE TRIGGER lost BEFORE INSERT ON records WHEN instr(CAST(NEW.value AS TEXT), '\"status\"') BEGIN "
            "SELECT raise(ABORT, 'lost'); END",
            write=True)
        body = lines([item(i) for i in range(5)] + [item(4)])
        first = push(d, 1, body, NDJSON, key="k")
        equal((first[0], *(first[2][k] for k in ("new", "changed", "known", "repeated"))), (200, 3, 1, 1, 1))
        holds("Idempotency-Key could not be stored: " in w.log(), w.last_log())
        again = None

        def answered(): # the first push may still be in progress for a moment
            nonlocal again
            again = push(d, 1, body, NDJSON, key="k")
            return again[0] != 409
        wait_for("the end of the first push", answered)
        d.kill()
        d.start()
        third = push(d, 1, body, NDJSON, key="k") # the first push's server is dead
        w.sql("DROP TRIGGER lost", write=True)
        d.kill()
        d.start()
        last = push(d, 1, body, NDJSON, key="k")
        kept = push(d, 1, body, NDJSON, key="k")
        for r in (again, third, last, kept):
            equal((r[0], r[2]), (200, first[2]))
        equal([r[1]["Idempotent-Replayed"] for r in (again, third, last, kept)], [None, None, None, "true"])
        equal(pushed(d, 1, body, NDJSON, key="another"), (0, 0, 5))
        equal(entries(w), 5)
        w.sql(
            "UPDATE records SET value = CAST(replace(CAST(value AS TEXT), '\"status\":200', '\"by\":\"else/1/1\"') AS "
            "BLOB), at_ms = ?",
            int(time.time() * 1000),
            write=True)
        # a server on another machine has the keys; when it is dead another body may use them
        other = lines([item(9)])
        equal([push(d, 1, b, NDJSON, key="k")[0] for b in (body, other)], [409, 422])
        w.sql("UPDATE records SET at_ms = at_ms - 31000", write=True)
        pushes = (other, "k"), (body, "k"), (body, "another")
        equal([push(d, 1, b, NDJSON, key=k)[0] for b, k in pushes], [200, 422, 200])
        equal(entries(w), 6)


@each_engine(
    "a key used on two servers at once is executed by one of them",
    leave_out=() if LONG else ("mysql", "redis"))
def two_servers(base, engine):
    with server(engine, base) as s, http_server(base, store=s.url()) as a:
        a.feedwheel.run("add", "https://a.example/")
        os.mkdir(os.path.join(base, "b"))
        with http_server(os.path.join(base, "b"), store=s.url()) as b:
            for i in range(8):
                body, got = lines([item(300 * i + k) for k in range(300)]), []

                def one(d, key, body=body, got=got):
                    got.append(push(d, 1, body, NDJSON, key=key))
                together([functools.partial(one, d, "round %d" % i) for d in (a, b) for _ in range(3)])
                equal(sum(status == 200 and not h["Idempotent-Replayed"] for status, h, _ in got), 1, got)
                for status, h, response in got:
                    in_progress = status == 409 and response["code"] == "in_progress"
                    holds(in_progress or (status, response["new"]) == (200, 300), (status, response))
                for d in (a, b):
                    equal((push(d, 1, body, NDJSON, key="round %d" % i)[2]["new"]), 300)
            equal(entries(a.feedwheel), 2400)
            visits = a.request("GET", "/v1/feeds/1")[2]["visits"]
            equal([v["new"] for v in visits[:8]], [300] * 8, "one push each")


@each_engine(
    "kill -9 stores all of a push or nothing, and a retry with its key completes it",
    also=["sqlite"], leave_out=() if LONG else ("postgres", "mysql", "redis")) # REL-02, invariants 2, 3
def killed(base, engine):
    with server_of(engine, base) as url, http_server(base, store=url) as d:
        d.feedwheel.run("add", "https://a.example/")
        n, before = 4000, 0

        def stored_n():
            return d.feedwheel.json("show", "#1")["feed"]["entries"]
        for i in range(KILLS):
            body, key = lines([item(i * n + k) for k in range(n)]), "round %d" % i
            began = time.monotonic()

            def once(body=body, key=key):
                try:
                    return push(d, 1, body, NDJSON, key=key)
                except (OSError, http.client.HTTPException):
                    return 0, {}, {}
            t = threading.Thread(target=once)
            t.start()
            let_pass(0.05 + 0.06 * (i % 5) + random.uniform(0, 0.05), "a kill at any moment")
            d.kill()
            t.join()
            stored = stored_n() - i * n
            holds(stored in (0, n), "all or nothing: %d" % stored)
            before += stored > 0
            d.start()
            wait_for("the answer", lambda: once()[0] == 200, 60) # the dead server's key is released
            equal(once()[2]["new"], n, "the same response again")
            equal(stored_n(), (i + 1) * n, "%.1f s" % (time.monotonic() - began))
        guids = [json.loads(l)["id"] for l in d.feedwheel.run("entries", "--jsonl").stdout.splitlines()]
        equal((len(guids), len(set(guids))), (KILLS * n, KILLS * n))
        print("# %d kills, %d of them after the commit; %d entries" % (KILLS, before, len(guids)))
        sound(d.feedwheel)


@case("many concurrent pushes to one feed and to several are all stored once")
def many(base):
    with http_server(base) as d:
        d.feedwheel.run("add", *("https://h%d.example/" % i for i in range(6)))
        got, bad = [], []

        def one(number, first):
            while True: # a push that waits too long for others is answered 503
                status, _, response = push(d, number, feed([item(first + k) for k in range(60)]))
                if status != 503 or response["code"] != "busy":
                    break
            (got if status == 200 else bad).append(response)
        together([functools.partial(one, 1 + (i % 6 if i % 2 else 0), 30 * (i // 4)) for i in range(48)])
        equal(bad, [])
        equal(sum(s["new"] for s in got), d.feedwheel.one("SELECT count(*) FROM entries"))
        equal(d.feedwheel.one("SELECT count(*) FROM (SELECT DISTINCT feed_id, guid FROM entries)"),
              d.feedwheel.one("SELECT count(*) FROM entries"))
        d.feedwheel.run("doctor")


@case("entries are pushed from the command line and with curl")
def by_hand(base):
    with http_server(base) as d:
        w = d.feedwheel
        w.run("add", "https://a.example/feed")
        files = {"f.xml": ATOM_DOC, "f.ndjson": lines([item(1), item(2)]), "f.json": feed([item(2), item(3)])}
        for name, text in files.items():
            with open(os.path.join(base, name), "w", encoding="utf-8") as f:
                f.write(text)
        output = w.run("push", "#1", os.path.join(base, "f.xml")).stdout
        equal(output, "1 entry: 1 new, 0 changed, 0 known\n")
        output = w.run("push", "a.example", os.path.join(base, "f.ndjson")).stdout
        equal(output, "2 entries: 2 new, 0 changed, 0 known\n")
        output = w.run("push", "https://a.example/feed", "-", stdin=files["f.json"]).stdout
        equal(output, "2 entries: 1 new, 0 changed, 1 known\n")
        output = w.run("push", "--content-type", NDJSON, "#1", "-", stdin=lines([item(4)])).stdout
        equal(output, "1 entry: 1 new, 0 changed, 0 known\n")
        holds("line 1" in w.run("push", "#1", "-", stdin=files["f.json"][:-9], code=1).stderr, "the place")
        holds("no entries" in w.run("push", "#1", "-", stdin=feed([])).stderr, "the note")
        w.run("push", "#7", os.path.join(base, "f.xml"), code=1)
        w.run("push", "#1", os.path.join(base, "nothing"), code=2)
        w.run("push", "#1", code=2)
        w.run("pause", "#1")
        equal(w.run("push", "#1", os.path.join(base, "f.xml")).stdout, "1 entry: 0 new, 0 changed, 1 known\n")
        w.sql("UPDATE schedule SET status = 2", write=True)
        holds("gone" in w.run("push", "#1", os.path.join(base, "f.xml"), code=1).stderr, "gone")
        w.run("resume", "#1")
        r = subprocess.run(
            ["curl", "-sS", "-H", "Content-Type: " + NDJSON, "-H", "Idempotency-Key: c1",
             "--data-binary", "@" + os.path.join(base, "f.ndjson"),
             "http://127.0.0.1:%d/v1/feeds/1/entries" % d.port],
            capture_output=True, text=True, check=True)
        output = json.loads(r.stdout)
        body = gzip.compress(files["f.ndjson"].encode())
        status, _, packed = push(d, 1, body, NDJSON, **{"Content-Encoding": "gzip"})
        equal((status, packed["known"]), (200, 2), packed)
        metrics = d.request("GET", "/metrics")[2]
        holds("feedwheel_deliveries_total 2\n" in metrics, metrics)
        holds("feedwheel_delivered_new_entries_total 0\n" in metrics, metrics)
        equal((output["format"], output["entries"], output["known"]), ("json11", 2, 2))
        equal(entries(w), 5)


if __name__ == "__main__":
    run()
