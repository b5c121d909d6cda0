#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Feeds that move to one address become one, on every store; the copy of a store goes on where the
store was. And what a clock that was years ahead has left behind is told."""
import os
import time

from http_server import free_port
from harness import Feedwheel, case, each_engine, equal, holds, origin, run, samples, server


@each_engine("two feeds that come to have one address become one: entries once, title and folder kept, nobody is "
             "charged")
def converge(base, engine):
    with server(engine, base) as s, origin(base, samples(base), "--feeds", "2",
                                           plans=["0 after=1,redirect=301:/doc/0"]) as o:
        same = o.urls[0].rsplit("/feed", 1)[0] + "/doc/0"
        early = Feedwheel(base, name="early.db")
        early.run("add", "--title", "mine", "--folder", "news", o.urls[0])
        early.run("add", same, o.urls[1])
        for _ in range(3): # its own address, then two sightings
            early.run("set", "--due", *(f["url"] for f in early.json("list")))
            equal(early.run_once()["failed"], 0)
        early.sql("UPDATE feeds SET redirect_since_ms = redirect_since_ms - 172800000 WHERE redirect_since_ms > 0",
                  write=True)
        w = Feedwheel(base, store=s.url())
        early.run("copy", early.store, w.store)
        entries = {f["url"]: f["entries"] for f in w.json("list")}
        equal(len(entries), 3)
        w.run("set", "--due", o.urls[0])
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"]), (1, 0))
        after = {f["url"]: f for f in w.json("list")}
        equal(sorted(after), sorted([same, o.urls[1]]), "feeds")
        f = after[same]
        equal((f["title"], f["folder"], f["failures"], f["entries"]), ("mine", "news", 0, entries[same]))
        ids = [line for line in w.run("entries", "--jsonl", "--feed", same).stdout.splitlines()]
        equal(len(ids), entries[same], "entries")
        holds("merged with %s, which redirected to it" % o.urls[0] in w.run("why", o.urls[0]).stdout, "why tells")
        w.run("set", "--due", same, o.urls[1])
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"], stats["new_entries"]), (2, 0, 0))
        said = w.run("doctor", code=None).stdout
        holds("broken  store" not in said, said)


@each_engine("a document that names another address moves no feed; with a permanent redirect there it does, a visit "
             "sooner")
def named(base, engine):
    docs, port = os.path.join(base, "docs"), free_port()
    os.mkdir(docs)
    new = "http://127.1.0.9:%d/doc/pod.xml" % port
    with open(os.path.join(docs, "pod.xml"), "w", encoding="ascii") as f:
        f.write("<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><title>T</title>"
                "<itunes:new-feed-url>%s</itunes:new-feed-url>"
                "<item><guid>1</guid><title>one</title></item></channel></rss>" % new)
    with server(engine, base) as s, origin(base, docs, "--port", str(port), "--feeds", "2",
                                           plans=["0 after=3,redirect=301:" + new]) as o:
        early = Feedwheel(base, name="early.db")
        early.run("add", *o.urls)
        for k in range(4): # three that name it, the last two of them 304; then one that is redirected
            early.run("set", "--due", *o.urls)
            equal(early.run_once()["failed"], 0)
            holds(sorted(f["url"] for f in early.json("list")) == sorted(o.urls), "visit %d" % k)
            if k == 2:
                said = early.run("why", o.urls[0]).stdout
                holds(
                    "has had another self link since"
                    in said and new in said and "only a permanent redirect changes its URL" in said, said)
                equal((early.json("why", o.urls[0])["self_url"],
                      "redirect_url" in early.json("why", o.urls[0])), (new, False))
                early.sql(
                    "UPDATE feeds SET redirect_since_ms = redirect_since_ms - 172800000 WHERE redirect_since_ms > 0",
                    write=True)
        equal(early.json("why", o.urls[0])["redirect_url"], new,
              "the first redirected visit: the entries were compared")
        w = Feedwheel(base, store=s.url())
        early.run("copy", early.store, w.store)
        for _ in range(2):
            w.run("set", "--due", *(f["url"] for f in w.json("list")))
            equal(w.run_once()["failed"], 0)
        equal(sorted(f["url"] for f in w.json("list")), sorted(
            [new, o.urls[1]]), "only the one that was redirected has moved")
        holds("another self link" in w.run("why", o.urls[1]).stdout, w.run("why", o.urls[1]).stdout)


@case("feeds that a clock put off by years are told by doctor, and its remedy helps")
def years_ahead(base):
    with origin(base, samples(base), "--feeds", "2") as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        holds("due times" not in w.run("doctor").stdout, "nothing to tell")
        w.run_once()
        w.sql("UPDATE schedule SET due_at_ms = ? WHERE position = (SELECT position FROM feeds WHERE id = 2)",
              int((time.time() + 2 * 366 * 86400) * 1000), write=True)
        said = w.run("doctor", code=None).stdout
        holds("1 feeds are due in more than a year, number 2 among them" in said and "set --due" in said, said)
        w.run("set", "--due", "#2")
        holds("due times" not in w.run("doctor", code=None).stdout, "all is well")


run()
