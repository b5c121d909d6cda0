#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Feeds that are redirected to one address become one, on every store; a copy of a store continues
where the store was. And doctor reports what a wrong clock left in the store."""
import os
import time

from http_server import free_port
from harness import Feedwheel, case, each_engine, equal, holds, origin, run, samples, server


@each_engine("two feeds with one address become one, unless their logins differ: entries once, title and folder kept, "
             "no failure counted")
def converge(base, engine):
    with server(engine, base) as s, origin(
        base, samples(base), "--feeds", "3",
        plans=["0 after=1,redirect=301:/doc/0", "2 after=1,redirect=301:/doc/2"]) as o:
        same = o.urls[0].rsplit("/feed", 1)[0] + "/doc/0"
        closed = o.urls[2].rsplit("/feed", 1)[0] + "/doc/2" # who reads the feed that moved there may not know its login
        early = Feedwheel(base, name="early.db")
        early.run("add", "--title", "mine", "--folder", "news", o.urls[0])
        early.run("add", same, o.urls[1], closed.replace("//", "//bob:secret@"), o.urls[2])
        for _ in range(3): # its own address, then two redirects
            early.run("set", "--due", *(f["url"] for f in early.json("list")))
            equal(early.run_once()["failed"], 0)
        early.sql("UPDATE feeds SET redirect_since_ms = redirect_since_ms - 172800000 WHERE redirect_since_ms > 0",
                  write=True)
        w = Feedwheel(base, store=s.url())
        early.run("copy", early.store, w.store)
        entries = {f["url"]: f["entries"] for f in w.json("list")}
        equal(len(entries), 5)
        holds("not merged with feed 4 there, which has another login" in w.run("why", o.urls[2]).stdout, "why")
        w.run("set", "--due", o.urls[0], o.urls[2])
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"]), (2, 0))
        after = {f["url"]: f for f in w.json("list")}
        equal(sorted(after), sorted([same, o.urls[1], closed, o.urls[2]]), "feeds")
        equal([after[u]["entries"] for u in (closed, o.urls[2])], [entries[u] for u in (closed, o.urls[2])])
        f = after[same]
        equal((f["title"], f["folder"], f["failures"], f["entries"]), ("mine", "news", 0, entries[same]))
        equal(len(w.run("entries", "--jsonl", "--feed", same).stdout.splitlines()), entries[same], "entries")
        text = w.run("why", o.urls[0]).stdout
        holds("merged with %s, which redirected to it" % o.urls[0] in text, text)
        w.run("set", "--due", same, o.urls[1])
        stats = w.run_once()
        equal((stats["feeds"], stats["failed"], stats["new_entries"]), (2, 0, 0))
        output = w.run("doctor", code=None).stdout
        holds("broken  store" not in output, output)


@each_engine(
    "another self link in a document does not change a feed's URL; with a permanent redirect it does, a visit "
    "earlier")
def self_link(base, engine):
    docs, port = os.path.join(base, "docs"), free_port()
    os.mkdir(docs)
    new = "http://127.1.0.9:%d/doc/pod.xml" % port
    with open(os.path.join(docs, "pod.xml"), "w", encoding="ascii") as f:
        f.write("<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><title>T</title>"
                "<itunes:new-feed-url>%s</itunes:new-feed-url>"
                "<item><guid>1</guid><title>one</title></item></channel></rss>" % new)
    with server(engine, base) as s, origin(
        base, docs, "--port", str(port), "--feeds", "2", plans=["0 after=3,redirect=301:" + new]) as o:
        early = Feedwheel(base, name="early.db")
        early.run("add", *o.urls)
        for k in range(4): # three with the self link, two of them 304; then a redirect
            early.run("set", "--due", *o.urls)
            equal(early.run_once()["failed"], 0)
            holds(sorted(f["url"] for f in early.json("list")) == sorted(o.urls), "visit %d" % k)
            if k == 2:
                output = early.run("why", o.urls[0]).stdout
                for part in ("has had another self link since", new, "only a permanent redirect changes its URL"):
                    holds(part in output, output)
                equal(
                    (early.json("why", o.urls[0])["self_url"], "redirect_url" in early.json("why", o.urls[0])),
                    (new, False))
                early.sql(
                    "UPDATE feeds SET redirect_since_ms = redirect_since_ms - 172800000 WHERE redirect_since_ms > 0",
                    write=True)
        equal(early.json("why", o.urls[0])["redirect_url"], new,
              "the first redirect: the entries are compared")
        w = Feedwheel(base, store=s.url())
        early.run("copy", early.store, w.store)
        for _ in range(2):
            w.run("set", "--due", *(f["url"] for f in w.json("list")))
            equal(w.run_once()["failed"], 0)
        equal(sorted(f["url"] for f in w.json("list")), sorted([new, o.urls[1]]),
              "only the redirected feed has a new URL")
        holds("another self link" in w.run("why", o.urls[1]).stdout, w.run("why", o.urls[1]).stdout)


@case("doctor reports feeds that are due years from now, as after a wrong clock, and its remedy helps")
def years_ahead(base):
    with origin(base, samples(base), "--feeds", "2") as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        holds("due times" not in w.run("doctor").stdout, "nothing to report")
        w.run_once()
        w.sql("UPDATE schedule SET due_at_ms = ? WHERE position = (SELECT position FROM feeds WHERE id = 2)",
              int((time.time() + 2 * 366 * 86400) * 1000), write=True)
        output = w.run("doctor", code=None).stdout
        holds("1 feed is due in more than a year, number 2 among them" in output and "set --due" in output, output)
        w.run("set", "--due", "#2")
        holds("due times" not in w.run("doctor", code=None).stdout, "nothing to report any more")


run()
