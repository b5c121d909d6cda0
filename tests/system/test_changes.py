#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The log of changes: new, changed, gone, by the command, over HTTP and in the stream; the versions of
an entry and what differs between them."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import threading

from http_server import free_port, http_server, metric
from harness import Feedwheel, case, each_engine, equal, holds, origin, run, store_of, wait_for

FEED = "https://a.example/feed"


def document(*items):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1",
                       "items": [{"id": i, "title": t, "content_html": c} for i, t, c in items]})


def push(w, *items, feed="1"):
    w.run("push", feed, "-", stdin=document(*items))


def changes_and_place(w, *options):
    """The changes, and the last line: where to go on. --json says the same."""
    *lines, place = [json.loads(line) for line in w.run("changes", "--jsonl", *options).stdout.splitlines()]
    equal(w.json("changes", *options), {"changes": lines, **place})
    return lines, place


def changes(w, *options):
    return changes_and_place(w, *options)[0]


def kinds(listed):
    return [(c["type"], c["item"]["id"] if "item" in c else c["entry"]) for c in listed]


def filled(base, url=None):
    """Two entries; the first is changed once. Changes 1, 2 and 3."""
    w = Feedwheel(base, store=url)
    w.run("add", "-q", FEED)
    push(w, ("a", "The first title", "<p>one two three</p>"))
    push(w, ("b", "Other", "x"))
    push(w, ("a", "The second title", "<p>one four three</p>"))
    return w


def prune_log(w):
    """All changes so far are older than changes_retention_ms, and are pruned."""
    def pruned():
        w.run_once("--changes-retention-ms", "1ms")
        return w.run("changes", "--after", "1", code=None).returncode == 1
    wait_for("the log to be pruned", pruned)


def atom(*inside):
    return ('<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">'
            "<title>T</title>%s</feed>" % "".join(inside))


def atom_entry(entry, hour):
    return "<entry><id>%s</id><title>Entry %s</title><updated>2026-11-20T%02d:00:00Z</updated></entry>" % (
        entry, entry, hour)


# ---- the command ------------------------------------------------------------------------------------------

@each_engine("new, changed and gone entries are listed in order, each once; a reader goes on where it was",
             also=["sqlite"])
def listed(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        first = changes(w)
        ids = [c["id"] for c in first]
        equal(kinds(first), [("new", "a"), ("new", "b"), ("changed", "a")])
        equal(ids, sorted(ids))
        equal((first[2]["entry"], first[2]["revision"], first[0]["entry"]), (ids[0], 2, ids[0]))
        equal(changes(w, "--after", str(ids[2])), [])
        equal(kinds(changes(w, "--after", str(ids[0]))), kinds(first)[1:])
        text = w.run("changes")
        equal([line.split()[3] for line in text.stdout.splitlines()], ["new", "new", "changed"])
        holds("--after %d)" % ids[2] in text.stderr, text.stderr)
        holds("The second title (entry %d, version 2)" % ids[0] in text.stdout, text.stdout)
        w.run("add", "-q", "https://b.example/feed")
        push(w, ("c", "third", "y"), feed="2")
        equal(kinds(changes(w, "--feed", "2")), [("new", "c")])
        w.run("push", "2", "-", stdin=atom(*[atom_entry("at%d" % hour, hour) for hour in (12, 11, 10)]))
        forward = ["at10", "at11", "at12"] # the document lists the newest first, a reader goes forward in time
        equal(kinds(changes(w, "--feed", "2"))[1:], [("new", i) for i in forward])
        listed_now = w.run("entries", "--jsonl", "--after", str(ids[2])).stdout.splitlines()
        equal([json.loads(line)["id"] for line in listed_now][1:], forward)
        w.run("remove", "-q", "1")
        gone = changes(w, "--after", str(ids[2]))
        equal(sorted(kinds(gone)[-2:]), [("gone", ids[0]), ("gone", ids[1])])
        equal(kinds(changes(w))[0], ("new", "c")) # an entry that is gone has only its gone


def tombstone(entry, hour):
    return '<at:deleted-entry ref="%s" when="2026-11-20T%02d:00:00Z"/>' % (entry, hour)


@each_engine("an entry that its feed takes back is gone and stays away; another feed's entry with its id stays",
             also=["sqlite"])
def retracted(base, engine):
    with store_of(engine, base) as url:
        w = Feedwheel(base, store=url)
        w.run("add", "-q", FEED, "https://b.example/feed")

        def push_atom(feed, *inside):
            return json.loads(w.run("push", "--json", feed, "-", *options, stdin=atom(*inside)).stdout)

        options = ["--retract-entries", "no"]
        for feed in ("1", "2"):
            push_atom(feed, atom_entry("b", 10), atom_entry("a", 10), tombstone("a", 12))
        listed_first = changes(w)
        a = [c["entry"] for c in listed_first if c["type"] == "new" and c["item"]["id"] == "a"]
        options = []
        push_atom("1", tombstone("a", 9))
        after = ("--after", str(listed_first[-1]["id"]))
        gone = changes(w, *after)
        equal([(c["type"], c["entry"], c["feed"]) for c in gone], [("gone", a[0], 1)])
        r = push_atom("1", atom_entry("a", 13))
        equal((r["new"], r["changed"], r["known"]), (0, 0, 1))
        push_atom("2", atom_entry("b", 10), atom_entry("a", 10), tombstone("a", 9)) # the entry is newer
        equal(changes(w, *after), gone)
        equal([(i["id"], i["_store"]["feed"]) for i in w.json("entries", "--oldest-first")["items"]],
              [("b", 1), ("a", 2), ("b", 2)])
        found = w.run("doctor", "--deep", code=None).stdout
        equal([line for line in found.splitlines() if line.startswith("broken") and "fsync off" not in line], [])


@case("a poll removes what the document takes back; with retract_entries=no it does not")
def retracted_by_a_poll(base):
    w = Feedwheel(base)
    docs, port = os.path.join(base, "docs"), str(free_port())
    os.mkdir(docs)

    def poll(*inside, options=()):
        with open(os.path.join(docs, "a.xml"), "w", encoding="utf-8") as f:
            f.write(atom(*inside))
        with origin(base, docs, "--port", port) as o:
            w.run("add", "-q", o.url("/doc/a.xml"), code=None)
            w.run("set", "-q", "--due", "1")
            w.run_once("--host-gap-ms", "0", *options)
        return kinds(changes(w))

    both = [("new", "a"), ("new", "b")]
    equal(poll(atom_entry("b", 10), atom_entry("a", 10)), both)
    equal(poll(atom_entry("b", 10), atom_entry("a", 10), tombstone("a", 11), options=["--retract-entries", "no"]), both)
    equal(poll(atom_entry("b", 10), tombstone("a", 11)), [("new", "b"), ("gone", 1)])
    equal(poll(atom_entry("a", 12), atom_entry("b", 10)), [("new", "b"), ("gone", 1)])


@each_engine("a reader that is behind is told which change is the first left; a first read never is",
             also=["sqlite"])
def behind(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("pause", "-q", "1")
        last = changes(w)[-1]["id"]
        page = w.run("changes", "--limit", "1")
        holds("(to go on: --after 1.%d)" % last in page.stderr, page.stderr)
        prune_log(w)
        r = w.run("changes", "--after", "1", code=1)
        holds("or go on with the first change left: --after %d" % last in r.stderr, r.stderr)
        equal(kinds(changes(w, "--after", str(last))), [])
        equal(kinds(changes(w, "--after", "1.%d" % last)), [("new", "b")]) # its first read goes on
        equal(kinds(changes(w)), [("new", "a"), ("new", "b")])


@contextlib.contextmanager
def following(w, *options):
    """The lines that `changes --follow` prints, as they come."""
    lines = []
    with subprocess.Popen(["setpriv", "--pdeathsig", "SIGKILL", "--",
                           *w.command("changes", "--follow", "--jsonl", *options)],
                          stdout=subprocess.PIPE, text=True, env=w.environment) as p:
        reader = threading.Thread(target=lambda: lines.extend(map(json.loads, p.stdout)))
        reader.start()
        yield lines, p
        p.terminate()
        reader.join()


@case("--follow prints what is stored from now on, or after a number, until it is interrupted")
def follow(base):
    w = filled(base)
    with following(w, "--after", "2") as (lines, _):
        wait_for("the changes so far", lambda: lines)
        push(w, ("c", "new", "1"))
        push(w, ("c", "newer", "2"))
        wait_for("more changes", lambda: len(lines) >= 3)
        equal(kinds(lines), [("changed", "a"), ("new", "c"), ("changed", "c")])
    with following(w, "--limit", "1") as (lines, p):
        n = 0
        while not lines:
            push(w, ("f%d" % n, "new", "1"))
            n += 1
        equal(lines[0]["type"], "new")
        holds(lines[0]["item"]["id"].startswith("f"), lines)
        equal(p.wait(60), 0)
    equal(lines[1]["next"], str(lines[0]["id"])) # the process has ended: it says where to go on


@case("wrong numbers and options are named")
def wrong(base):
    w = filled(base)
    for code, words, *arguments in (
        (2, "--after must be a number that 'changes' has printed, not 'x'", "changes", "--after", "x"),
        (2, "not '-1'", "changes", "--after", "-1"),
        (2, "not '1.2.3'", "changes", "--after", "1.2.3"),
        (2, "--limit", "changes", "--limit", "0"),
        (2, "--follow and --json exclude each other", "changes", "--follow", "--json"),
        (1, "no feed", "changes", "--feed", "9"),
        (1, "no entry has the number 77", "read", "77", "--revisions"),
        (1, "no entry has the number 77", "read", "77", "--revisions", "--json")):
        r = w.run(*arguments, code=code)
        holds(words in r.stderr, r.stderr)
        equal(r.stdout, "")


@each_engine("the versions of an entry are kept, the newest first, with what each changed", also=["sqlite"])
def versions(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        text = w.run("read", "1", "--revisions").stdout
        holds("The [-first-] {+second+} title" in text and "one [-two-] {+four+} three" in text, text)
        of = w.json("read", "1", "--revisions")
        equal([(v["revision"], v["item"]["title"]) for v in of], [(2, "The second title"), (1, "The first title")])
        equal(of[0]["difference"]["text"], [
            {"op": "same", "text": "one "}, {"op": "removed", "text": "two "}, {"op": "added", "text": "four "},
            {"op": "same", "text": "three"}])
        holds("difference" not in of[1], "the first version has none")
        for k in range(3, 9): # revisions_max is 5
            push(w, ("a", "Title %d" % k, "x" * k))
        of = w.json("read", "1", "--revisions")
        equal([v["revision"] for v in of], [8, 7, 6, 5, 4, 3])
        holds("(no earlier one is kept)" in w.run("read", "1", "--revisions").stdout, "it says so")


@case("a version that is too long is kept without its text, and that is said")
def cut(base):
    w = Feedwheel(base, "revision_max_bytes = 1k\n")
    w.run("add", "-q", FEED)
    push(w, ("a", "long", "w " * 2000))
    push(w, ("a", "short", "w"))
    text = w.run("read", "1", "--revisions").stdout
    holds("the text of version 1 was too long to be kept: revision_max_bytes" in text, text)
    of = w.json("read", "1", "--revisions")
    equal((of[1]["cut"], "text" in of[0]["difference"], "cut" in of[0]), (True, False, False))


# ---- HTTP -------------------------------------------------------------------------------------------------

@each_engine("over HTTP: page by page, each change once while others are stored; 410 with the first that is left",
             also=["sqlite"])
def pages(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("pause", "-q", "1")
        with http_server(base, store=w.store) as d:
            seen, place, n = [], "0", 0
            while True:
                status, _, page = d.request("GET", "/v1/changes?limit=2&after=%s" % place)
                equal(status, 200, page)
                seen += page["changes"]
                place = page["next"]
                n += 1
                if n < 5:
                    push(w, ("b", "Other %d" % n, "x"), ("n%d" % n, "new", "x"))
                elif not page["more"]:
                    break
            ids = [c["id"] for c in seen]
            equal(ids, sorted(set(ids)), "in order, each once")
            equal(sorted(k for k in kinds(seen) if k[0] == "new"),
                  [("new", x) for x in ("a", "b", "n1", "n2", "n3", "n4")])
            equal(len([k for k in kinds(seen) if k[0] == "changed"]), 5)
            equal(d.request("GET", "/v1/changes?after=%s" % place)[2], {"changes": [], "next": place, "more": False})
            equal(kinds(d.request("GET", "/v1/changes?feed=1&limit=1&content=yes")[2]["changes"]), [("new", "a")])
            for query, words in (("after=x", "0, the id of a change"), ("limit=0", "a number from 1 to 1000"),
                                 ("feed=0", "a number from 1"), ("content=x", "yes no raw")):
                status, _, problem = d.request("GET", "/v1/changes?" + query)
                equal(status, 400)
                holds(words in problem["detail"], problem)
            of = d.request("GET", "/v1/entries/1/revisions")[2]["revisions"]
            equal([(v["revision"], v["item"]["content_html"]) for v in of],
                  [(2, "<p>one four three</p>"), (1, "<p>one two three</p>")])
            equal(d.request("GET", "/v1/entries/99999/revisions")[0], 404)
            prune_log(w)
            status, _, problem = d.request("GET", "/v1/changes?after=1")
            equal((status, problem["code"], problem["first"]), (410, "changes_pruned", int(place) + 1))
            equal(d.request("GET", "/v1/changes?after=%s" % place)[0], 200)


@each_engine("by feed and folder: the command and HTTP list those changes, and a reader that got none can go on",
             also=["sqlite"])
def filtered(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("add", "-q", "--folder", "News/Tech", "https://b.example/feed")
        w.run("add", "-q", "--folder", "Newsletters", "https://c.example/feed")
        for feed in "2", "3":
            push(w, ("f" + feed, "of feed " + feed, "x"), feed=feed)
        last = changes(w)[-1]["id"]
        equal(kinds(changes(w, "--folder", "News")), [("new", "f2")])
        equal(kinds(changes(w, "--folder", "/News/Tech/", "--feed", "3")), [])
        holds("--after %d)" % last in w.run("changes", "--folder", "Other").stderr, "after what it did not want")
        for options in ("--folder", "Other"), ("--feed", "3", "--after", str(last)):
            equal(changes_and_place(w, *options), ([], {"next": str(last), "more": False}))
        place, seen = {"next": "0", "more": True}, []
        while place["more"]:
            listed, place = changes_and_place(w, "--limit", "1", "--folder", "News", "--after", place["next"])
            holds(len(listed) <= 1, listed)
            seen += listed
        equal((kinds(seen), place["next"]), ([("new", "f2")], str(last)))
        with http_server(base, store=w.store) as d:
            for query, of in (("folder=News", ["f2"]), ("folder=News%2FTech", ["f2"]), ("folder=Other", []),
                              ("feed=2&feed=3", ["f2", "f3"]), ("feed=2&feed=3&folder=News", ["f2"])):
                page = d.request("GET", "/v1/changes?after=3&" + query)[2]
                equal([c["item"]["id"] for c in page["changes"]], of, query)
                equal((page["next"], page["more"]), (str(last), False), query)
            page = d.request("GET", "/v1/changes?after=0&limit=1&folder=News")[2]
            equal((kinds(page["changes"]), page["more"]), ([("new", "f2")], True))
            page = d.request("GET", "/v1/changes?folder=News&after=" + page["next"])[2]
            equal((page["changes"], page["next"], page["more"]), ([], str(last), False))
            w.run("remove", "-q", "3")
            page = d.request("GET", "/v1/changes?folder=News&after=%d" % last)[2]
            equal([c["type"] for c in page["changes"]], ["gone"]) # which folder it was in is not known any more


@each_engine("over HTTP: wait= holds an empty response until a change is stored, or the time is over",
             also=["sqlite"])
def waiting(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("add", "-q", "--folder", "News", "https://b.example/feed")
        with http_server(base, store=w.store) as d:
            page = d.request("GET", "/v1/changes?after=3&wait=1ms")[2]
            equal((page["changes"], page["next"], page["more"]), ([], "3", False))
            equal(len(d.request("GET", "/v1/changes?after=0&wait=60s")[2]["changes"]), 3)
            equal(d.request("HEAD", "/v1/changes?after=3&wait=60s")[0], 200)
            for query in "wait=x", "wait=61s", "wait=-1s", "wait=":
                status, _, problem = d.request("GET", "/v1/changes?" + query)
                equal(status, 400, query)
                holds("a time of up to 60s" in problem["detail"], problem)
            got = []
            reader = threading.Thread(target=lambda: got.append(
                d.request("GET", "/v1/changes?after=3&folder=News&wait=60")[2]))
            reader.start()
            wait_for("the reader to wait", lambda: metric(d, "changes_waiting") == 1)
            push(w, ("c", "of the other feed", "x"))
            push(w, ("d", "in the folder", "x"), feed="2")
            reader.join()
            equal(kinds(got[0]["changes"]), [("new", "d")])
            stopped = []
            reader = threading.Thread(target=lambda: stopped.append(
                d.request("GET", "/v1/changes?after=%s&wait=60s" % got[0]["next"])))
            reader.start()
            wait_for("the reader to wait", lambda: metric(d, "changes_waiting") == 1)
            d.stop()
            reader.join()
            equal((stopped[0][0], stopped[0][2]["code"]), (503, "unavailable"), "at the stop it does not wait on")


class Events:
    """A client of a stream."""

    def __init__(self, d, query):
        self.events, self.begun = [], threading.Event()
        self.connection = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
        self.connection.request("GET", "/v1/stream?" + query)
        self.response = self.connection.getresponse()
        equal(self.response.status, 200)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        kind = None
        with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
            for line in self.response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "retry":
                    self.begun.set()
                elif name == "event":
                    kind = value
                elif name == "data":
                    self.events.append((kind, json.loads(value)))

    def wait(self, n):
        wait_for("%d events" % n, lambda: len(self.events) >= n)
        return [(kind, e.get("first") or e.get("entry") or e["id"]) for kind, e in self.events]

    def close(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR) # else close() waits for the reader's next heartbeat
        self.connection.close()


@each_engine("the stream sends changed and gone to those who want them, by feed and folder; entry stays as it was",
             also=["sqlite"])
def stream(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("add", "-q", "--folder", "News/Tech", "https://b.example/feed")
        with http_server(base, store=w.store) as d:
            of = [Events(d, q) for q in ("since=0", "since=0&types=new,changed,gone", "types=changed,gone",
                                         "folder=News&types=new,changed", "feed=1&feed=2")]
            for e in of:
                holds(e.begun.wait(60), "it begins")
            equal(of[0].wait(2), [("entry", "a"), ("entry", "b")])
            equal(of[1].wait(3), [("entry", "a"), ("entry", "b"), ("changed", 1)])
            holds(of[1].events[2][1]["item"]["title"] == "The second title", of[1].events)
            push(w, ("c", "third", "1"), feed="2")
            push(w, ("c", "third, newer", "2"), feed="2")
            c = w.json("entries", "--feed", "2")["items"][0]["_store"]["entry"]
            equal(of[3].wait(2), [("entry", "c"), ("changed", c)])
            w.run("remove", "-q", "2")
            equal(of[2].wait(2), [("changed", c), ("gone", c)])
            equal(of[1].wait(6)[3:], [("entry", "c"), ("changed", c), ("gone", c)])
            push(w, ("d", "fourth", "1"))
            equal(of[0].wait(4), [("entry", "a"), ("entry", "b"), ("entry", "c"), ("entry", "d")])
            equal(of[4].wait(2), [("entry", "c"), ("entry", "d")])
            for query, words in (("types=old", "new, changed and gone"), ("feed=x", "a feed's id")):
                status, _, problem = d.request("GET", "/v1/stream?" + query)
                equal(status, 400)
                holds(words in problem["detail"], problem)
            for e in of:
                e.close()
            w.run("pause", "-q", "1")
            last = changes(w)[-1]["id"]
            prune_log(w)
            late = Events(d, "since=1&types=new,changed")
            push(w, ("e", "fifth", "1"))
            equal(late.wait(3), [("behind", last), ("entry", "d"), ("entry", "e")])
            late.close()


run()
