#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Collecting: the whole document is stored once; an unchanged feed gets our validators back, byte for
byte, and returns 304."""
import csv
import os

from harness import ROOT, Feedwheel, case, equal, header, holds, origin, run, samples


def titles_per_sample():
    """Entries per document, as demo/samples.txt lists them."""
    counts, name = {}, None
    with open(os.path.join(ROOT, "demo", "samples.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("= "):
                name = line[2:].split("|")[0].strip()
                counts[name] = 0
            elif line.startswith("- "):
                counts[name] += 1
    return counts


def entries_by_feed(feedwheel):
    return dict(
        feedwheel.sql(
            "SELECT feeds.url, count(entries.id) FROM feeds LEFT JOIN entries ON entries.feed_id = feeds.id "
            "GROUP BY feeds.id"))


@case("every entry of every sample document is stored, once")
def samples_complete(base):
    docs = samples(base)
    with origin(base, docs) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        stats = w.run_once()
        want = dict(zip(o.urls, (n for _, n in sorted(titles_per_sample().items()))))
        equal({u: (n, want[u]) for u, n in entries_by_feed(w).items() if n != want[u]}, {}, "feeds with other counts")
        equal((stats["feeds"], stats["failed"], stats["new_entries"]), (len(o.urls), 0, sum(want.values())))
        equal(len(o.requests()), len(o.urls), "requests")
        for word in ("海辺", "山间", "골목", "деревни", "Waldrand", "喫茶"): # legacy charsets too
            holds(w.one("SELECT count(*) FROM feeds WHERE title LIKE ?", "%" + word + "%") == 1, word)


@case("retention deletes visits and entries that are too old; members without a column are stored")
def retention(base):
    with origin(base, samples(base), "--feeds", "6") as o:
        w = Feedwheel(base, "visits_retention_ms = 1h\nentries_retention_ms = 1h\n")
        w.run("import", o.url_file)
        n = w.run_once()["new_entries"]
        equal((w.one("SELECT count(*) FROM entries"), w.one("SELECT count(*) FROM visits")), (n, 6),
              "new ones are kept")
        equal(w.one("SELECT count(*) FROM feeds WHERE json_extract(extra, '$._feedwheel') IS NULL"), 0,
              "feeds without extra")
        first = w.sql("SELECT id FROM visits")
        w.run("set", "--due", *o.urls)
        equal(w.run_once("--visits-retention-ms", "1ms", "--entries-retention-ms", "1ms")["unchanged"], 6)
        equal(
            (w.one("SELECT count(*) FROM entries"), set(first) & set(w.sql("SELECT id FROM visits"))), (0, set()),
            "old ones are deleted")


# POL-01, POL-02
@case("the second pass gets only 304: validators go back byte for byte, nothing is stored again")
def unchanged(base):
    kinds = ("both", "etag", "lm", "weak", "odd")
    docs = samples(base)
    plans = ["%%%d=%d validators=%s" % (len(kinds), i, k) for i, k in enumerate(kinds)]
    with origin(base, docs, plans=plans) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        n = w.run_once()["new_entries"]
        w.run("set", "--due", *o.urls)
        stats = w.run_once()
        equal([r for r in o.requests() if "violation" in r], [], "requests with altered validators")
        equal((stats["unchanged"], stats["new_entries"], stats["changed_entries"]), (len(o.urls), 0, 0))
        equal(w.one("SELECT count(*) FROM entries"), n)
        equal(len(o.requests()), 2 * len(o.urls))


@case("the same bytes are not stored twice, without validators or with validators that change")
def same_bytes(base):
    with origin(base, samples(base), "--feeds", "6", plans=["%2=0 validators=none", "%2=1 validators=fresh"]) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        n = w.run_once()["new_entries"]
        w.run("set", "--due", *o.urls)
        stats = w.run_once()
        equal((stats["failed"], stats["new_entries"], stats["changed_entries"]), (0, 0, 0))
        equal(w.one("SELECT count(*) FROM entries"), n)
        equal([r for r in o.requests() if "violation" in r], [])


@case("validators belong to the final URL and are sent to it after the redirect")
def redirected_validators(base):
    with origin(
        base, samples(base), "--feeds", "3", plans=["0 redirect=302:feed/2", "1 first=1,redirect=307:feed/2"]) as o:
        w = Feedwheel(base)
        w.run("add", o.urls[0], o.urls[1])
        w.run_once()
        w.run("set", "--due", *o.urls[:2])
        stats = w.run_once()
        later = [r for r in o.requests() if header(r, "If-None-Match")]
        equal([r for r in o.requests() if "violation" in r], [], "validators sent to another URL")
        equal([(r["feed"], r["status"]) for r in later], [(2, 304)],
              "feed 1 is redirected no more, and gets no validators of feed 2")
        equal(stats["failed"], 0)


@case("every content coding and framing gives the same entries")
def codings(base):
    words = ["coding=identity", "coding=gzip", "coding=deflate", "coding=br", "coding=zstd", "coding=gzip,chunked",
             "coding=identity,chunked", "coding=identity,until-close", "coding=gzip,until-close", "http10,coding=gzip",
             "drip=200000", "type=text/plain", "type=", "coding=br+gzip", "coding=identity,claim=gzip"]
    docs = samples(base)
    for name in sorted(os.listdir(docs))[1:]:
        os.remove(os.path.join(docs, name))
    with origin(base, docs, "--feeds", str(len(words)), plans=["%d %s" % p for p in enumerate(words)]) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        w.run_once()
        counts = [entries_by_feed(w)[u] for u in o.urls]
        equal(dict(zip(words, counts)), dict.fromkeys(words, counts[0]))
        holds(counts[0] > 5, "entries")


@case("each new entry of a growing feed is stored once; old entries are kept")
def growing(base):
    with origin(base, samples(base), "--feeds", "4", plans=["* grow=1,start=3,window=5"]) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        for _ in range(4):
            w.run_once()
            w.run("set", "--due", *o.urls)
        want = [("feed-%d-entry-%d" % (f, e), 1) for f in range(4) for e in range(1, 7)]
        equal(sorted(w.sql("SELECT guid, revision FROM entries")), sorted(want))


@case("a damaged document without entries is a failure of a feed with entries; the next request has no validators")
def damaged(base):
    docs = os.path.join(base, "docs")
    os.mkdir(docs)
    with open(os.path.join(docs, "a.xml"), "w", encoding="ascii") as f: # its first half has no entry
        f.write("<rss version='2.0'><channel><title>T</title><description>%s</description>"
                "<item><guid>1</guid></item></channel></rss>"
                % ("about this feed " * 50))
    cut = "cut=50,coding=identity,ignore-validators"
    with origin(
        base, docs, "--feeds", "3",
        plans=["0 after=1,first=2,%s" % cut, "1 %s" % cut, "2 after=1,first=2,bare-html,ignore-validators"]) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        seen = []
        for _ in range(4):
            w.run("set", "--due", *o.urls)
            w.run_once()
            seen.append([f["failures"] for f in w.json("list")])
            if len(seen) == 2:
                for i, part in (0, "malformed document: no entry could be read"), (2, "an HTML page"):
                    text = w.run("why", o.urls[i]).stdout
                    holds(part in text, text)
                holds("malformed" in w.run("list", "--failing").stdout, w.run("list", "--failing").stdout)
                equal(entries_by_feed(w), dict(zip(o.urls, (1, 0, 1))), "its entries are kept")
        equal(seen, [[0, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0]], "failures; the second feed has had no entry")
        for url in o.urls[0], o.urls[2]:
            sent = [bool(header(r, "If-None-Match")) for r in o.requests()
                    if "http://" + header(r, "Host")[0] + r["target"] == url]
            equal(sent, [False, True, False, True], "validators sent")


@case("real documents with entries give entries")
def corpus(base):
    docs = os.path.join(ROOT, "..", "shared", "corpus", "open")
    if not os.path.isdir(docs):
        print("# no ../shared/corpus here: nothing to check")
        return
    with open(os.path.join(docs, "..", "open-votes.tsv"), encoding="utf-8") as f:
        votes = {r["file"]: int(r["majority"]) for r in csv.DictReader(f, delimiter="\t") if r["majority"].isdigit()}
    names = sorted(n for n in os.listdir(docs) if not n.startswith("."))
    with origin(base, docs) as o: # all at once: on a slow machine responses are late
        w = Feedwheel(base, "first_byte_timeout_ms = 1m\n")
        w.run("import", o.url_file)
        stats = w.run_once()
        have = entries_by_feed(w)
        none = [n for n, u in zip(names, o.urls) if votes.get(n, 0) > 0 and not have[u]]
        other = sum(1 for n, u in zip(names, o.urls) if n in votes and votes[n] != have[u])
        print("# %d documents, %d entries, %d documents differ from the majority of six parsers in their count" % (
            stats["feeds"], stats["new_entries"], other))
        for f in w.json("list", "--failing"):
            print("# %s: %s" % (names[o.urls.index(f["url"])], f.get("error")))
        equal(stats["feeds"], len(names), "feeds visited")
        equal(none, [], "documents with entries, by majority, that gave none")


run()
