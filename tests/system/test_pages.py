#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Contents that are slow to sanitise: a page of entries ends early, none is missing, and the
sanitised content is cached."""
import json
import threading

from http_server import http_server
from harness import case, equal, holds, run

COMMENT = "<!--" + "x" * 1900000 + "-->" # it is removed
MISNESTED = ["<dl><dd><dt>", "<a><b><i><u><s><p><div></a></b></i></u></s>", "<table><b>x</b><tr>y<td><i>z</table>",
             "<b>x<i>y</b>z</i>"]


def stored(d, contents):
    """Store a feed with an entry for each of these; their ids, in order of storing."""
    equal(d.request("POST", "/v1/feeds", '{"url":"http://a.example/"}', {"Content-Type": "application/json"})[0], 201)
    for i, content in enumerate(contents):
        body = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t",
                           "items": [{"id": "e%02d" % i, "content_html": content}]})
        status, _, response = d.request("POST", "/v1/feeds/1/entries", body, {"Content-Type": "application/feed+json"})
        equal(status // 100, 2, response)
    return ["e%02d" % i for i in range(len(contents))]


def walk(d, path):
    """The items of each page."""
    while path:
        status, _, response = d.request("GET", path)
        equal(status, 200)
        if not response["items"]:
            break
        yield response["items"]
        path = response.get("next_url")


@case("a page ends early when much HTML is sanitised for it: no entry is missing, and the result is cached") # F7
def input_bytes(base):
    with http_server(base) as d:
        ids = stored(d, [COMMENT] * 12)
        for path in "/v1/entries?limit=100&order=stored", "/v1/entries?limit=100":
            pages = list(walk(d, path))
            want = ids if "stored" in path else ids[::-1]
            equal([i["id"] for p in pages for i in p], want, path)
            equal({i["content_html"] for p in pages for i in p}, {""})
            if "stored" in path: # 8 MiB end a page, or the time
                holds(len(pages) >= 3 and max(len(p) for p in pages) <= 5, [len(p) for p in pages])
            else: # all are cached
                equal([len(p) for p in pages], [12])
        equal([len(p) for p in walk(d, "/v1/entries?limit=100&content=raw&order=stored")],
              [5, 5, 2]) # not sanitised: 8 MiB per page
        equal([len(p) for p in walk(d, "/v1/entries?limit=100&content=no")], [12])


@case("a cached content is dropped when the entry changes")
def changed(base):
    with http_server(base) as d:
        stored(d, [COMMENT + "<p>one</p>"])
        for word in "one", "one", "two", "two":
            if word == "two":
                body = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t",
                                   "items": [{"id": "e00", "content_html": COMMENT + "<p>two</p>"}]})
                status = d.request("POST", "/v1/feeds/1/entries", body, {"Content-Type": "application/feed+json"})[0]
                equal(status // 100, 2)
            [[item]] = walk(d, "/v1/entries")
            equal(item["content_html"], "<p>%s</p>" % word)
            equal(d.request("GET", "/v1/entries/%d" % item["_store"]["entry"])[2]["content_html"], "<p>%s</p>" % word)


@case("three clients that walk slowly sanitised entries get all of them, with other requests in between")
def slow(base):
    with http_server(base, conf="serve_pool_threads = 2\n") as d:
        contents = [MISNESTED[i % 4] * (n // len(MISNESTED[i % 4])) for i, n in enumerate([300000, 1900000, 20000] * 7)]
        ids = stored(d, contents)
        got = [None] * 3
        def one(n):
            got[n] = [i["id"] for p in walk(d, "/v1/entries?limit=21&order=stored") for i in p]
        walkers = [threading.Thread(target=one, args=(n,)) for n in range(len(got))]
        for t in walkers:
            t.start()
        while any(t.is_alive() for t in walkers):
            equal(d.request("GET", "/v1/feeds")[0], 200)
        for t in walkers:
            t.join()
        equal(got, [ids] * len(got))


run()
