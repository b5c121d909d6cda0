#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Large documents: hostile ones fail within their memory limit, honest ones are parsed completely,
and neither delays small documents."""
import json
import os
import signal

from harness import BUILD, SOON, Feedwheel, case, equal, holds, origin, run, sanitized, wait_for, workers_of

MIB = 1 << 20
SIZE = 4 * MIB if sanitized() else 15 * MIB
HEAD = '{"version":"https://jsonfeed.org/version/1.1","title":"t",'
SMALL = 30


def nested(unit, size):
    """Nested lists of at most 900 elements."""
    parts = ["[" + ",".join([unit] * 900) + "]"]
    parts *= size // (len(parts[0]) + 1)
    while len(parts) > 1:
        parts = ["[" + ",".join(parts[i:i + 900]) + "]" for i in range(0, len(parts), 900)]
    return parts[0]


def hostile():
    return [
        HEAD + '"items":[{"id":"1","_x":' + nested("{}", SIZE) + "}]}", # as a tree 100 times the size
        HEAD + '"items":[{"id":"1","_x":' + nested("[]", SIZE) + ",}]", # a syntax error at the end
        HEAD + '"_x":' + nested("{}", SIZE) + ',"items":[{"id":"1"}]}',
        b"\xff" * (15 * MIB), # each byte becomes three
    ]


def podcast(n, words=400):
    item = "<item><guid>%d</guid><title>Episode %d</title><description>" + "word " * words + "</description></item>"
    return "<rss version='2.0'><channel><title>P</title>%s</channel></rss>" % "".join(item % (i, i) for i in range(n))


def json_feed(n, words=400):
    html = "<p>" + "word " * words + "</p>"
    items = [{"id": str(i), "title": "Item %d" % i, "content_html": html, "tags": ["a", "b"],
              "authors": [{"name": "A"}]} for i in range(n)]
    return HEAD + '"items":' + json.dumps(items) + "}"


def served(base, documents, **more):
    """An origin with these documents as the first feeds, followed by SMALL small ones."""
    docs = os.path.join(base, "docs")
    os.makedirs(docs, exist_ok=True)
    small = [podcast(3, 10)] * SMALL
    for i, d in enumerate([*documents, *small]):
        with open(os.path.join(docs, "%03d" % i), "wb") as f:
            f.write(d if isinstance(d, bytes) else d.encode())
    return origin(base, docs, **more)


def feeds_of(w):
    return {f["url"]: f for f in w.json("list")}


# F4
@case("documents that need too much memory fail with an error that names the setting; the others are parsed")
def bounded(base):
    documents = hostile()
    with served(base, documents, plans=["0-%d coding=gzip" % (len(documents) - 2)]) as o:
        w = Feedwheel(base, "max_compression_ratio = 100000\n")
        w.run("import", o.url_file)
        stats = w.run_once()
        feeds = feeds_of(w)
        for u in o.urls[:len(documents)]:
            equal((feeds[u]["last_result"], feeds[u].get("crashes", 0), feeds[u]["entries"]), ("limit", 0, 0), u)
            holds("parse_memory_bytes" in feeds[u]["error"], feeds[u]["error"])
        equal([feeds[u]["entries"] for u in o.urls[len(documents):]], [3] * SMALL, "entries of small documents")
        equal((stats["failed"], stats["restarts"]), (len(documents), 0))
        holds(sanitized() or stats["max_rss_bytes"] < 100 * MIB, "memory is bounded: %d" % stats["max_rss_bytes"])
        message = w.run("fetch", o.urls[0], code=1).stderr
        holds("parse_memory_bytes" in message, message)


@case("large documents are parsed completely, also when they wait for the memory of others")
def honest(base):
    documents = [podcast(2000), json_feed(1500), podcast(1000), json_feed(1000), podcast(300), podcast(8000, 10)] * 2
    with served(base, documents, plans=["%2 coding=gzip"]) as o:
        for conf in "", "parse_memory_bytes = 12MiB\nworkers = 1\n":
            w = Feedwheel(base, conf, "store%d.db" % len(conf))
            w.run("import", o.url_file)
            stats = w.run_once()
            feeds = feeds_of(w)
            equal([feeds[u].get("error") for u in o.urls if feeds[u]["last_result"] != "ok"], [])
            equal([feeds[u]["entries"] for u in o.urls], [2000, 1500, 1000, 1000, 300, 8000] * 2 + [3] * SMALL)
            equal((stats["failed"], stats["restarts"]), (0, 0))


def test_binary(w, **environment):
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")
    w.environment.update(environment)


def stalled(base, o, conf):
    """A run that has stored the entries of its small documents, and parses no large one while the
    returned file exists."""
    stall = os.path.join(base, "stall")
    w = Feedwheel(base, SOON + "workers = 1\n" + conf)
    test_binary(w, FEEDWHEEL_TEST_STALL=stall)
    with open(stall, "w", encoding="ascii"):
        pass
    w.run("import", o.url_file)
    p = w.start("run")
    wait_for("the small documents", lambda: w.one("SELECT count(*) FROM entries") == 3 * SMALL, 60)
    return w, p, stall


@case("small documents are parsed and committed while a large one is parsed; a drain waits for the large one")
def beside(base):
    with served(base, [podcast(500)] * 3) as o:
        w, p, stall = stalled(base, o, "drain_timeout_ms = 5m\n")
        wait_for("further visits", lambda: w.one("SELECT count(*) FROM visits") > 3 * SMALL, 60)
        large = "SELECT count(*) FROM visits JOIN feeds ON feeds.id = feed_id WHERE title = 'P' AND item_n = 500"
        equal(w.one(large), 0, "visits of large documents")
        p.send_signal(signal.SIGTERM)
        holds(workers_of(p), "it waits for the large documents")
        os.unlink(stall)
        equal(p.wait(timeout=60), 0, w.last_log())
        equal(w.leased(), {}, "leases")
        equal(w.one("SELECT count(*) FROM entries"), 3 * SMALL + 3 * 500, "entries, those of large documents included")


@case("a large document that is not parsed within drain_timeout_ms is fetched again by the next run")
def cancelled(base):
    with served(base, [podcast(500)] * 3) as o:
        w, p, stall = stalled(base, o, "drain_timeout_ms = 100ms\n")
        wait_for("requests to the large documents", lambda: len([r for r in o.requests() if r["feed"] < 3]) >= 3, 60)
        p.send_signal(signal.SIGTERM)
        wait_for("the message", lambda: "cancelled at drain_timeout_ms" in w.log(), 60)
        os.unlink(stall)
        equal(p.wait(timeout=60), 0, w.last_log())
        equal(w.leased(), {}, "leases")
        w.run_once()
        equal(w.one("SELECT count(*) FROM entries"), 3 * SMALL + 3 * 500)


@case("of two documents that are parsed at the same time, only the one that crashes the worker is quarantined")
def blamed(base):
    with served(base, [podcast(2000)] * 8) as o:
        for victim in 6, 9: # a large document and a small one
            w = Feedwheel(base, "workers = 1\n", "store%d.db" % victim)
            test_binary(w, FEEDWHEEL_TEST_CRASH="/feed/%d" % victim)
            w.run("import", o.url_file)
            w.run_once()
            states = [feeds_of(w)[u] for u in o.urls]
            bad = states.pop(victim)
            equal((bad["status"], bad["crashes"], bad["entries"]), ("quarantined", 2, 0))
            equal({(f["status"], f["last_result"], f.get("crashes")) for f in states}, {("active", "ok", None)})


run()
