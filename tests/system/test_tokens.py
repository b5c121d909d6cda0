#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Access tokens: who may push, read and administrate; while the server runs, and while its store
does not. (API-01, API-08)"""
import base64
import glob
import json
import os
import random
import re
import subprocess

from http_server import HttpServer, http_server
from harness import Feedwheel, case, each_engine, equal, holds, run, server, wait_for

EVENT = {"property": "news", "section": 1, "id": 1}
TWIRP = "/twirp/stats.StatsService/Push"
FAR = {"X-Forwarded-For": "203.0.113.7"}
PROXY = "trusted_proxies = 127.0.0.1\n"
AGAIN_S = 30 # a running server knows within seconds
PATIENT = "auth_failures_max = 0\n" # tests ask again and again until a token is known
# tokens that will run out have done so: "push 1790000000000 HASH"
LATE = (
    "UPDATE records SET value = CAST(substr(CAST(value AS TEXT), 1, 5) || '1000' || substr(CAST(value AS TEXT), 19) "
    "AS BLOB)"
    " WHERE kind = 'token' AND substr(CAST(value AS TEXT), 6, 2) <> '- '")


def bearer(token, **more):
    return {"Authorization": "Bearer " + token, **more}


def add(d, name, *arguments):
    return make(d.feedwheel, name, *arguments)


def make(feedwheel, name, *arguments):
    token = feedwheel.run("token", "add", name, *arguments).stdout.strip()
    holds(re.fullmatch(r"fwt_[A-Za-z0-9_-]{43}", token), token)
    return token


def pushed(d, token=None, path="/v1/events", headers=None):
    """The status of a push, with this token."""
    return d.push(EVENT, path=path, headers={**(bearer(token) if token else {}), **(headers or {})})[0]


def becomes(what, status, ask):
    wait_for("%s is answered %d" % (what, status), lambda: ask() == status, AGAIN_S)


def says(d, words):
    """The server has looked for tokens, and says what that means: only then all scopes are judged."""
    wait_for("the log says '%s'" % words, lambda: words in d.feedwheel.words())


@case("without tokens this machine needs none; with one, everybody does; added and removed while the server runs")
def comes_and_goes(base):
    with http_server(base, conf=PATIENT) as d:
        says(d, "requests without a token are accepted from programs on this machine")
        equal(pushed(d), 202)
        status, headers, said = d.push(EVENT, path="/v1/events", headers=FAR)
        equal((status, said["code"], headers["WWW-Authenticate"]), (403, "permission_denied", None))
        holds("feedwheel token add NAME --scope push" in said["detail"], said)
        one = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d))
        says(d, "requests without a token are refused: there is a token")
        status, headers, said = d.push(EVENT, path="/v1/events")
        equal((status, said["code"], headers["Content-Type"]), (401, "unauthenticated", "application/problem+json"))
        holds(headers["WWW-Authenticate"].startswith("Bearer realm="), headers)
        equal(pushed(d, one), 202)
        equal(d.push(EVENT, headers=bearer(one))[::2], (200, {"stored": 1}))
        equal(pushed(d, one, headers=FAR), 202)
        wait_for("its use is noted", lambda: "used" in d.feedwheel.json("token", "list")[0], AGAIN_S) # API-01
        status, headers, _ = d.push(EVENT, path="/v1/events",
                                    headers=bearer(one[: -1] + ("A" if one[-1] != "A" else "B")))
        equal(status, 401)
        holds("invalid_token" in headers["WWW-Authenticate"], headers)
        two = add(d, "two", "--scope", "push")
        becomes("the second token", 202, lambda: pushed(d, two))
        d.feedwheel.run("token", "remove", "one")
        becomes("a token that was removed", 401, lambda: pushed(d, one))
        equal(pushed(d, two), 202)
        d.feedwheel.run("token", "remove", "two")
        becomes("a push from here without tokens", 202, lambda: pushed(d))
        equal(pushed(d, headers=FAR), 403)
        n = d.ask("GET", "/v1/ring")[2]["accepted"]
        d.stop()
        equal(d.stored(), n)
        for secret in (one, two):
            holds(secret not in d.feedwheel.words(), "in what the server said") # LOG-02
            for path in glob.glob(d.feedwheel.path + "*"):
                with open(path, "rb") as f:
                    holds(secret.encode() not in f.read(), "in " + path)


@case("the first token closes the scopes that it does not have, too")
def closes_all(base):
    for scope in ("push", "read", "admin"):
        with http_server(os.path.join(base, scope), conf=PATIENT) as d:
            says(d, "requests without a token are accepted")
            asked = {"push": lambda d=d: pushed(d), "read": lambda d=d: d.ask("GET", "/metrics")[0],
                     "admin": lambda d=d: d.push({"url": "http://a.example/"}, path="/v1/feeds")[0]}
            equal([ask() for ask in asked.values()], [202, 200, 201], "before")
            token = add(d, "one", "--scope", scope)
            for other, ask in asked.items():
                becomes(other + " without a token, when there is one for " + scope, 401, ask)
            equal(d.ask("DELETE", "/v1/feeds/1")[0], 401, "no feed is removed")
            equal(d.ask("DELETE", "/v1/feeds/1", headers=bearer(token))
                  [0], 204 if scope == "admin" else 403, "by a token for " + scope)


CLOSED = {"trusted_proxies = 127.0.0.1\n": "trusted_proxies is set",
    "trusted_proxies = unix\n": "trusted_proxies is set", "websub_url = http://127.0.0.1:1/\n": "websub_url is set"}
SHAPES = ("X-Forwarded-For: 203.0.113.5", "X-Forwarded-For: 203.0.113.5, unknown",
           "X-Forwarded-For: 203.0.113.5, unix:", "X-Forwarded-For: fe80::1%eth0", "X-Forwarded-For: 127.0.0.1",
          "X-Forwarded-For;", "X-Real-IP: unix:", "Forwarded: for=203.0.113.5", "Via: 1.1 p", "X-A: none of these")


def status_of(d, header, host="127.0.0.1"):
    """The status of a subscription, by curl with this header."""
    return subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", header, "-d", '{"url":"http://a.example/"}',
         "http://%s:%d/v1/feeds" % (host, d.port)],
        capture_output=True, text=True, check=False).stdout


@case("behind a proxy nobody is this machine: no shape of its headers lets anybody in, and what makes it likely that "
      "there is one closes all")
def behind_proxies(base):
    for i, (conf, why) in enumerate(CLOSED.items()):
        with http_server(os.path.join(base, str(i)), conf=conf + PATIENT) as d:
            says(d, "requests without a token are refused: " + why)
            equal({status_of(d, shape) for shape in SHAPES}, {"403"}, conf)
            equal((pushed(d), d.ask("GET", "/metrics")[0], d.ask("GET", "/healthz")[0]), (403, 403, 200), conf)
            status, _, said = d.push({"url": "http://a.example/"}, path="/v1/feeds")
            equal((status, said["code"]), (403, "permission_denied"))
            holds(
                why in said["detail"] and "(to make a token: feedwheel token add NAME --scope admin)" in said
                ["detail"],
                said)
            token = add(d, "one", "--scope", "admin,read")
            becomes("a feed, with a token", 201, lambda d=d, token=token: d.push(
                {"url": "http://a.example/"}, path="/v1/feeds", headers=bearer(token))[0])
    with http_server(os.path.join(base, "unnamed"), conf=PATIENT) as d: # a proxy that nobody named
        says(d, "requests without a token are accepted")
        equal([status_of(d, shape) for shape in SHAPES], ["403"] * (len(SHAPES) - 1) + ["201"])
        equal(d.feedwheel.one("SELECT count(*) FROM feeds"), 1)
        d.stop()
        d.arguments = ("serve", "--listen", "127.1:%d" % d.port) # as all that is not surely loopback
        d.start()
        says(d, "refused: listen is neither a loopback address nor a unix socket")
        equal({status_of(d, shape) for shape in SHAPES}, {"403"}, "listens elsewhere")


@case("without a token: names in Host, pages of other origins, types of bodies; each refusal says what helps")
def without(base):
    with http_server(base, conf="serve_host_names = feeds.lan, feedwheel\n") as d:
        says(d, "requests without a token are accepted")
        body = json.dumps({"url": "https://a.example/"})

        def add_feed(headers, status, code=None, words=""):
            got, _, said = d.ask("POST", "/v1/feeds", body, headers)
            equal((got, said.get("code")), (status, code), headers)
            holds(words in said.get("detail", ""), "%s: %s" % (headers, said))
        mine, json_type = "http://127.0.0.1:%d" % d.port, {"Content-Type": "application/json"}
        add_feed({}, 201)
        for more in (
            json_type, {"Content-Type": "application/json; charset=utf-8"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Host": "localhost"},
            {"Host": "Feeds.LAN:1234"},
            {**json_type, "Origin": mine, "Sec-Fetch-Site": "same-origin"}):
            add_feed(more, 200)
        add_feed({"Host": "evil.example"}, 403, "permission_denied", "Host is 'evil.example'")
        add_feed({"Host": "evil.example"}, 403, "permission_denied", "one of serve_host_names")
        add_feed({"Host": ""}, 403, "permission_denied", "feedwheel token add NAME --scope admin)")
        add_feed({**json_type, "Origin": "http://evil.example"}, 403,
                 "permission_denied", "from a page of another site")
        add_feed({**json_type, "Origin": "null"}, 403, "permission_denied", "feedwheel token add NAME --scope admin)")
        add_feed({**json_type, "Sec-Fetch-Site": "cross-site"}, 403, "permission_denied", "Sec-Fetch-Site")
        for kind in (
            "text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", "application/xml",
            "application/x-ndjson"):
            add_feed({"Content-Type": kind}, 415, "unsupported_type", "'%s' (supported: application/json" % kind)
        add_feed({"Origin": mine}, 415, "unsupported_type", "application/json")
        add_feed({"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Mode": "cors"},
                 415, "unsupported_type", "application/json")
        equal(d.push(EVENT, path="/v1/events", headers={"Content-Type": "application/x-ndjson"})[0], 202)
        equal(d.push(EVENT, path="/v1/events", headers={"Content-Type": "text/plain"})[2]["detail"],
              "unsupported Content-Type 'text/plain' (supported: application/json or application/x-ndjson)")
        status, headers, said = d.push(EVENT, path=TWIRP, headers={"Content-Type": "text/plain"})
        equal((status, headers["Content-Type"], said["code"]), (415, "application/json", "invalid_argument"))
        equal(d.ask("PATCH", "/v1/feeds/1", '{"title":"x"}', {"Content-Type": "text/plain"})[0], 415)
        entry = '{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"a","content_text":"a"}]}'
        equal([d.ask("POST", "/v1/feeds/1/entries", entry, h)[0]
              for h in ({}, {"Origin": mine}, {"Content-Type": "text/plain"})], [200, 415, 415])
        equal((d.feedwheel.one("SELECT count(*) FROM feeds"), d.ask("GET", "/v1/ring")[2]["accepted"]), (1, 1))
        # with a token any name and page may, but a body's type counts: a browser may know the token (Basic)
        token = add(d, "one", "--scope", "admin,push,read")
        becomes("a look without a token", 401, lambda: d.ask("GET", "/v1/ring")[0])
        far = bearer(token, Host="feeds.example.org", Origin="https://www.example.org", **FAR)
        add_feed({**far, **json_type, "Sec-Fetch-Site": "cross-site"}, 200)
        add_feed({**far, "Content-Type": "text/plain"}, 415, "unsupported_type")
        add_feed({**far, "Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_type")
        equal(d.ask("GET", "/v1/feeds", headers={**far, "Sec-Fetch-Site": "cross-site"})[0], 200)


@case("names that are none: the setting, the item, the remedy")
def bad_names(base):
    for names, item in (
        ("http://a.example", "http://a.example"),
        ("a.example, b:8080", "b:8080"),
        ("[::1]", "[::1]"),
        ("*", "*")):
        w = Feedwheel(base, "serve_host_names = %s\n" % names)
        for command in (("serve", "--listen", "127.0.0.1:0"), ("doctor",)):
            r = w.run(*command, code=None)
            said = r.stdout + r.stderr
            holds(r.returncode != 0 and "serve_host_names: '%s' is not a host name: write feeds.lan" % item in said,
                  said)


@case("each scope by itself; what is open; forms of the header")
def scopes(base):
    with http_server(base, conf=PROXY + PATIENT) as d:
        tokens = {s: add(d, s, "--scope", s) for s in ("push", "read")}
        tokens["both"] = add(d, "both", "--scope", "read,push")
        tokens["admin"] = add(d, "admin", "--scope", "admin")
        becomes("a push without a token", 401, lambda: pushed(d))
        becomes("the last token", 403, lambda: pushed(d, tokens["admin"]))
        for name, status in (("push", 202), ("read", 403), ("admin", 403), ("both", 202)):
            equal(pushed(d, tokens[name]), status, "push by " + name)
        for name, status in (("push", 403), ("read", 200), ("admin", 403), ("both", 200)):
            equal(d.ask("GET", "/v1/ring", headers=bearer(tokens[name]))[0], status, "read by " + name)
        status, headers, said = d.push(EVENT, headers=bearer(tokens["read"]))
        equal((status, said["code"]), (403, "permission_denied"))
        holds("insufficient_scope" in headers["WWW-Authenticate"] and "push" in said["detail"], said)
        for path in ("/healthz", "/readyz"):
            equal(d.ask("GET", path, headers=FAR)[0], 200, path)
            equal(d.ask("GET", path, headers=bearer("no such token"))[0], 200, path)
        for path in ("/metrics", "/v1/ring", "/v1/feeds/1"):
            equal(d.ask("GET", path)[0], 401, path)
        token = tokens["push"]
        basic = lambda s: "Basic " + base64.b64encode(s.encode()).decode()
        for header, status in (
            ("bearer " + token, 202),
            ("BEARER   " + token + " ", 202),
            (basic("anybody:" + token),
             202),
            (basic(":" + token),
             202),
            (basic("a:b:" + token),
             401),
            (basic(token),
             401),
            (basic(token + ":"),
             401),
            ("Basic " + token, 401),
            ("Basic", 401),
            ("Bearer", 401),
            ("Bearer ", 401),
            (token, 401),
            ("Token " + token, 401),
            ("Bearer " + token + "x", 401),
            ("Bearer " + token + " x", 401),
            ("Bearer " + "x" * 5000, 401),
            ("Basic " + "x" * 5000, 401)):
            equal(d.push(EVENT, path="/v1/events", headers={"Authorization": header})[0], status, header)


@case("Twirp's words; a body is read before it is refused, unless its sender waits for leave; connections go on")
def manners(base):
    with http_server(base, conf=PATIENT) as d:
        token = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d, path=TWIRP))
        status, headers, said = d.push(EVENT, path=TWIRP)
        equal((status, headers["Content-Type"], said["code"], sorted(said)),
              (401, "application/json", "unauthenticated", ["code", "msg"]))
        other = add(d, "other", "--scope", "read")
        becomes("the other token", 403, lambda: pushed(d, other, path=TWIRP))
        equal(d.push(EVENT, path=TWIRP, headers=bearer(other))[2]["code"], "permission_denied")
        c = d.connect()
        for i in range(20): # one connection, bodies of all sizes
            body = json.dumps([EVENT] * (1 + i * 500))
            c.request("POST", "/v1/events", body, bearer(token) if i % 2 else {})
            r = c.getresponse()
            r.read()
            equal(r.status, 202 if i % 2 else 401)
            holds(r.headers.get("Connection") != "close", "goes on")
        c.close()
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write(json.dumps([EVENT] * 2000))
        curl = subprocess.run(["curl", "-sS", "-v", "-H", "Expect: 100-continue", "--data-binary", "@" + body,
                               "http://127.0.0.1:%d/v1/events" % d.port], capture_output=True, text=True, check=False)
        holds("401 Unauthorized" in curl.stderr and "100 Continue" not in curl.stderr, curl.stderr)


@case("a token runs out, and does not open the http_server by that")
def runs_out(base):
    with http_server(base, conf=PATIENT) as d:
        token = add(d, "short", "--scope", "push", "--days", "1")
        becomes("a push with a token", 401, lambda: pushed(d))
        equal(pushed(d, token), 202)
        d.feedwheel.sql(LATE, write=True)
        becomes("a token that has run out", 401, lambda: pushed(d, token))
        equal(pushed(d), 401)
        holds("expired" in d.feedwheel.run("token", "list").stdout, "in the list")
        equal(d.feedwheel.json("token", "list")[0]["valid"], False)
        d.feedwheel.sql("UPDATE records SET value = x'00ff' WHERE kind = 'token'",
                        write=True) # neither does one that nobody can read
        wait_for("unreadable", lambda: "unreadable: remove it" in d.feedwheel.run("token", "list").stdout)
        equal(pushed(d), 401)
        d.feedwheel.run("token", "remove", "short")
        becomes("a push without tokens", 202, lambda: pushed(d))


def of(address):
    return {"X-Forwarded-For": address}


def metric(d, name, token):
    return next(
        float(l.split()[1]) for l in d.ask("GET", "/metrics", headers=bearer(token))[2].splitlines()
        if l.startswith("feedwheel_" + name + " "))


@case("wrong tokens: after so many from a network nothing from there is judged for a while, but who was let in there "
      "before goes on") # API-07
def guessing(base):
    one, two = [make(Feedwheel(base), name, "--scope", "push,read") for name in ("one", "two")]
    with http_server(base, conf=PROXY + "auth_failures_max = 5\nauth_failures_ms = 1h\n") as d:
        becomes("a push without a token", 401, lambda: pushed(d))
        equal(pushed(d, two, headers=of("198.51.100.1")), 202)
        equal(pushed(d, one, headers=of("192.0.2.1")), 202)
        for i in range(5):
            equal(pushed(d, "guess", headers=of("192.0.2.%d" % (50 + i))), 401, i)
        equal(pushed(d, one, headers=of("192.0.2.1")), 202, "at home")
        equal(pushed(d, headers=of("192.0.2.1")), 401, "none")
        said = [d.push(EVENT, path="/v1/events", headers=bearer(t, **of("192.0.2.200")))
                       for t in ("guess", two, one[:-1], "")]
        for status, headers, words in said[:3]: # the second is a right one
            equal((status, words["code"], words["detail"].rpartition(" in ")[0]),
                  (429, "auth_rate_limited", said[0][2]["detail"].rpartition(" in ")[0]))
            holds(3000 < int(headers["Retry-After"]) <= 3600, headers["Retry-After"])
        equal(said[3][0], 401, "no token at all is no guess")
        status, headers, words = d.push(EVENT, path=TWIRP, headers=bearer("guess", **of("192.0.2.3")))
        equal((status, words["code"]), (429, "resource_exhausted"))
        equal(pushed(d, two, headers=of("192.0.3.1")), 202, "the next network")
        equal(pushed(d, "guess", headers=of("192.0.3.1")), 401, "counts by itself")
        for i in range(5): # one network of IPv6
            equal(pushed(d, "guess", headers=of("2001:db8::%d" % i)), 401)
        equal((pushed(d, two, headers=of("2001:db8::ffff")), pushed(d, two, headers=of("2001:db8:0:1::1"))), (429, 202))
        equal((metric(d, "auth_failures_total", one), metric(d, "auth_rate_limited_total", one)), (11, 5))
        equal(len(re.findall(r"5 wrong tokens from the network of (192\.0\.2|2001:db8)",
              d.feedwheel.words())) in (1, 2), True, d.feedwheel.words())
        add(d, "three", "--scope", "push") # homes outlive a change of the tokens
        d.feedwheel.run("token", "remove", "two")
        becomes("a token that was removed", 401, lambda: pushed(d, two, headers=of("198.51.100.1")))
        equal(pushed(d, one, headers=of("192.0.2.1")), 202)
    # not by a header that anybody may write
    with http_server(base, conf="auth_failures_max = 2\nauth_failures_ms = 2s\n") as d:
        becomes("too many", 429, lambda: pushed(d, "guess", headers=of("192.0.2.%d" % random.randrange(256))))
        becomes("the right one, later", 202, lambda: pushed(d, one))


@case("a stream ends with the token that opened it, and with the first one when it was opened without")
def streams_end(base):
    def stream(d, token=None):
        s = d.connect(120)
        s.request("GET", "/v1/stream", headers=bearer(token) if token else {})
        r = s.getresponse()
        equal(r.status, 200)
        holds(r.readline().startswith(b"retry:"), "it begins")
        return r
    with http_server(base, conf=PATIENT) as d:
        says(d, "requests without a token are accepted")
        open_to_all = stream(d)
        short = add(d, "short", "--scope", "read", "--days", "1")
        other = add(d, "other", "--scope", "read")
        open_to_all.read() # until it ends
        becomes("the last token", 200, lambda: d.ask("GET", "/v1/ring", headers=bearer(other))[0])
        ending, staying = stream(d, short), stream(d, other)
        d.feedwheel.sql(LATE, write=True)
        ending.read()
        equal(d.ask("GET", "/v1/stream", headers=bearer(short))[0], 401)
        add(d, "third", "--scope", "read")
        equal(d.ask("GET", "/v1/ring", headers=bearer(other))[0], 200)
        d.feedwheel.run("add", "https://a.example/")
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", "#1", "-", stdin='{"id":"x","title":"t"}')
        wait_for("the one that stays reads on", lambda: staying.readline().startswith(b"event: entry"))
        d.feedwheel.run("token", "remove", "other")
        staying.read()


@case("over a unix socket: this machine, until there is a token")
def unix(base):
    path = os.path.join(base, "http_server.sock")
    d = HttpServer(base)
    d.stop()

    def push(*more):
        r = subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", path, "-d", json.dumps(EVENT),
             *more, "http://localhost/v1/events"],
            capture_output=True, text=True, check=False)
        return r.stdout
    p = d.feedwheel.start("serve", "--listen", "unix:" + path)
    wait_for("the server", lambda: push() == "202")
    token = add(d, "one", "--scope", "push")
    wait_for("a token is wanted", lambda: push() == "401", AGAIN_S)
    equal(push("-H", "Authorization: Bearer " + token), "202")
    p.terminate()
    equal(p.wait(60), 0)


@each_engine("the store is away: the tokens that are known hold; a server that was started without it lets nobody in "
             "from afar",
             leave_out=() if "FW_LONG" in os.environ else ("redis", "mysql"))
def store_away(base, engine):
    with server(engine, base) as s:
        with http_server(base, store=s.url(), conf=PATIENT) as d:
            token = add(d, "one", "--scope", "push")
            becomes("a push without a token", 401, lambda: pushed(d))
            s.kill9()
            wait_for("it is noticed", lambda: "access tokens cannot be read" in d.feedwheel.words(), AGAIN_S)
            equal(d.ask("GET", "/readyz")[0], 503, "ready")
            equal((pushed(d), pushed(d, token), pushed(d, token, headers=FAR)), (401, 202, 202))
            s.again()
            wait_for("it is back", lambda: "access tokens can be read again" in d.feedwheel.words(), AGAIN_S)
            d.feedwheel.run("token", "remove", "one")
            becomes("without tokens", 202, lambda: pushed(d))
            token = add(d, "two", "--scope", "push")
            d.stop()
            s.kill9()
            d.start()
            equal(d.push(EVENT, path="/v1/events", headers=bearer(token, **FAR))[0], 503)
            equal(d.ask("GET", "/v1/ring")[0], 503)
            equal(d.ask("GET", "/readyz")[0], 503, "ready, and nothing was pushed yet")
            equal(pushed(d), 202)
            s.again()
            becomes("without a token", 401, lambda: pushed(d))
            equal(pushed(d, token, headers=FAR), 202)
            becomes("ready", 200, lambda: d.ask("GET", "/readyz")[0])


@case("a token that is bound to feeds or properties pushes into these and nowhere else, on each road")
def bound(base):
    def entries(d, token, feed, *more):
        return d.ask("POST", "/v1/feeds/%d/entries" % feed, '{"id":"x","title":"t"}',
                     {"Content-Type": "application/x-ndjson", **bearer(token), **dict(more)})

    def events(d, token, what, path="/v1/events"):
        return d.push(what, path=path, headers=bearer(token))
    w = Feedwheel(base)
    for name in ("a", "b", "c"):
        w.run("add", "https://%s.example/" % name)
    all_of_it, first, two, news, both = [make(w, "t%d" % i, "--scope", "push", *more) for i, more in enumerate((
        (), ("--feed", "1"), ("--feed=1", "--feed", "https://b.example/"), ("--property", "news", "--property", "a=b"),
        ("--property", "news", "--feed", "3")))]
    reader = make(w, "reader", "--scope", "read")
    with http_server(base, conf=PATIENT) as d:
        def taken():
            return d.ask("GET", "/v1/ring", headers=bearer(reader))[2]["accepted"]
        for feed, open_to in ((1, (all_of_it, first, two)), (2, (all_of_it, two)), (3, (all_of_it, both)), (99, ())):
            for token in (all_of_it, first, two, news, both):
                status, headers, said = entries(d, token, feed)
                if token == all_of_it and feed == 99:
                    equal(status, 404)
                elif token in open_to:
                    equal((status, said.get("feed")), (200, feed))
                else: # whether there is such a feed or not
                    equal((status, said["code"]), (403, "permission_denied"))
                    holds(
                        "push to feed %d refused" %
                        feed in said["detail"] and "insufficient_scope" in headers["WWW-Authenticate"],
                        said)
        other, mixed = {**EVENT, "property": "other"}, [EVENT, {**EVENT, "property": "other"}]
        for path, ok in (("/v1/events", 202), ("/v1/events?ack=durable", 200), (TWIRP, 200)):
            for what, open_to in (
                (EVENT, (all_of_it, news, both)),
                ({**EVENT, "property": "a=b"},
                 (all_of_it, news)),
                (other, (all_of_it,)),
                ('{"property":"n\\u0065ws","section":1,"id":1}', (all_of_it, news, both)),
                ('{"property":"n\\u0065w","section":1,"id":1}', (all_of_it,)),
                (mixed, (all_of_it,)),
                ({**EVENT, "property": "new"},
                 (all_of_it,)),
                ({**EVENT, "property": "news feed=1"},
                 (all_of_it,)),
                ({**EVENT, "property": "property=news"},
                 (all_of_it,))):
                for token in (all_of_it, first, two, news, both):
                    before = taken()
                    status, _, said = events(d, token, what, path)
                    equal(status, ok if token in open_to else 403, "%s by %d: %s" %
                          (what, (all_of_it, first, two, news, both).index(token), said))
                    if status == 403:
                        equal((said["code"], taken()), ("permission_denied", before), "none of it is taken")
        holds("event 2: push of its property refused" in events(d, news, mixed)[2]["detail"], "which event it is")
        holds("push of events refused" in events(d, first, EVENT)[2]["detail"], "bound to feeds alone")
        for path in ("/v1/feeds/1", "/v1/stream", "/metrics"):
            equal(d.ask("GET", path, headers=bearer(first))[0], 403, path)
        listed = {t["name"]: (t.get("feeds"), t.get("properties"))
                              for t in d.feedwheel.json("token", "list") if t["name"] != "reader"}
        equal(listed, {"t0": (None, None), "t1": ([1], []), "t2": (
            [1, 2], []), "t3": ([], ["news", "a=b"]), "t4": ([3], ["news"])})
        table = d.feedwheel.run("token", "list").stdout
        holds("feed=1 feed=2" in table and "feed=3 property=news" in table, table)
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write('{"id":"y","title":"t"}')
        curl = subprocess.run(["curl", "-sS", "-v", "-H", "Expect: 100-continue", "-H",
                               "Content-Type: application/x-ndjson", "--data-binary", "@" + body, "-H",
                               "Authorization: Bearer " + first, "http://127.0.0.1:%d/v1/feeds/2/entries" % d.port],
                              capture_output=True, text=True, check=False)
        holds("403 Forbidden" in curl.stderr and "100 Continue" not in curl.stderr, curl.stderr)
    for arguments, code, said in (
        (("--scope", "push", "--feed", "99"),
         1, "no feed has the number 99 ('feedwheel list' lists all)"),
        (("--scope", "push", "--feed", "x"),
         1, "x: no such feed"),
        (("--scope", "read", "--feed", "1"),
         2, "needs the scope push alone"),
        (("--scope", "push,read", "--property", "news"),
         2, "needs the scope push alone"),
        (("--scope", "push", "--property", "a b"),
         2, "the property 'a b': a property has 1 to 255 bytes without spaces"),
        (("--scope", "push", "--property", ""),
         2, "the property ''"),
        (("--scope", "push", "--property", "x" * 256),
         2, "1 to 255 bytes"),
        (("--scope", "push", *["--property=" + "x" * 200] * 20),
         1, "more than 4000 bytes of feeds and properties: make several")):
        r = w.run("token", "add", "wrong", *arguments, code=code)
        holds(said in r.stderr and r.stdout == "", "%s: %s" % (arguments, r.stderr))


@case("the words of the command")
def words(base):
    d = HttpServer(base)
    d.stop()
    w = d.feedwheel
    for arguments, code, said in (
            (("add", "one"), 2, "--scope push, read or admin"),
            (("add", "--scope", "push"), 2, "missing argument: NAME"),
            (("add", "one", "--scope", "pull"), 2, "unknown scope 'pull': the scopes are push, read and admin"),
            (("add", "one", "--scope", "push,"), 2, "unknown scope ''"),
            (("add", "one two", "--scope", "push"), 2, "token 'one two': a name is"),
            (("add", "", "--scope", "push"), 2, "a name is"),
            (("add", "x" * 65, "--scope", "push"), 2, "1 to 64"),
            (("add", "one", "--scope", "push", "--until", "2020-01-01"), 2, "a future time"),
            (("add", "one", "--scope", "push", "--days", "0"), 2, "--days"),
            (("add", "one", "--scope", "push", "--days", "99999"), 2, "--days"),
            (("add", "one", "--scope", "push", "--days", "1", "--until", "2099-01-01"), 2, "exclude each other"),
            (("remove", "one"), 1, "token 'one': no token has this name"),
            (("remove",), 2, "missing argument: NAME"),
            (("list", "one"), 2, "no arguments"),
            (("revoke", "one"), 2, "must be add, list or remove")):
        r = w.run("token", *arguments, code=code)
        holds(said in r.stderr, "%s: %s" % (arguments, r.stderr))
        equal(r.stdout, "")
    holds("no tokens" in w.run("token", "list").stderr, "nothing there")
    equal(w.json("token", "list"), [])
    said = w.run("token", "add", "one", "--scope", "push", "--until", "2099-12-31T18:00:00Z").stderr
    holds("this is the first token: from now on every client needs a token" in said, said)
    holds("token 'one': the name is taken" in w.run("token", "add", "one", "--scope", "read", code=2).stderr,
          "taken")
    holds("this is the first token" not in w.run("token", "add",
          "reader@host", "--scope", "admin, read").stderr, "the second one")
    listed = w.json("token", "list")
    equal([(t["name"], t["scopes"], t.get("until"), t["valid"]) for t in listed],
          [("one", ["push"], "2099-12-31T18:00:00Z", True), ("reader@host", ["read", "admin"], None, True)])
    table = w.run("token", "list").stdout
    holds("read,admin" in table and "2099-12-31" in table, table)


@case("doctor tells who gets in, and that tokens want TLS")
def doctor(base):
    w = Feedwheel(base)

    def says(pattern, *arguments):
        said = w.run("doctor", *arguments).stdout
        holds(re.search("^" + pattern, said, re.M), said)
        return said
    everywhere = ("--listen", "0.0.0.0:8080")
    w.run("add", "https://a.example/")
    for listen in ((), ("--listen", "127.0.0.1:8080"), ("--listen", "unix:/run/x.sock")):
        says(r"ok +tokenless +requests without a token are accepted from programs on this machine, .*; the first "
             r"token ends that\n(?! +->)", *listen)
    for more, why in (
        (everywhere, "listen is neither"),
        (("--listen", "127.0.0.1:8080", "--trusted-proxies", "127.0.0.1"),
         "trusted_proxies is set"),
        (("--listen", "127.0.0.1:8080", "--websub-url", "https://a.example/"),
         "websub_url is set")):
        says(r"note +tokenless +requests without a token are refused: %s.*\n +-> 'feedwheel token add" % why, *more)
    says(r"ok +tokenless +requests without a token are refused: websub_url is set",
         "--websub-url", "https://a.example/") # workers need no token
    w.run("token", "add", "one", "--scope", "push")
    says(r"ok +tokenless +requests without a token are refused: there is a token", "--listen", "127.0.0.1:8080")
    w.run("token", "add", "two", "--scope", "read", "--days", "1")
    says(r"ok +tokens +2, 0 of which have expired")
    says(r"note +tls +the server listens at 0.0.0.0:8080 without TLS.*\n +-> set tls_cert", *everywhere)
    w.sql(LATE, write=True)
    says(r"note +tokens +all for read have expired.*\n +-> 'feedwheel token list'")
    w.sql("UPDATE records SET value = x'00' WHERE kind = 'token' AND record_key = CAST('two' AS BLOB)", write=True)
    says(r"note +tokens +1 tokens are unreadable.*\n +-> 'feedwheel token list'")


if __name__ == "__main__":
    run()
