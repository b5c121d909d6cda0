#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What is stored, read over HTTP: feeds, entries, the stream of new ones; on every engine."""
from door import door
from harness import case, each_engine, equal, holds, origin, run, samples, server, wait_for

MISSING = "/v1/feeds/4711"


@case("a feed as the command line shows it; what is wrong with a question is named")
def one_feed(base):
    with origin(base, samples(base)) as o, door(base) as d:
        d.wheel.run("add", o.url("/rss2.xml"))
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
                            ("?visit=1", "visit: /v1/feeds/{id} takes visits"), ("?visits=1&x=2", "x: ")):
            status, _, said = d.ask("GET", "/v1/feeds/1" + path)
            equal((status, words in said["detail"]), (400, True), said["detail"])
        status, headers, said = d.ask("PUT", "/v1/feeds/1", "{}")
        equal((status, "GET, HEAD" in headers["Allow"]), (405, True))


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
