#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Access tokens for pushes, reads and administration, while the server runs and while its store is
down. (API-01, API-08)"""
import base64
import glob
import json
import os
import random
import re
import subprocess

from http_server import HttpServer, http_server
from harness import Feedwheel, case, each_engine, equal, holds, run, server, wait_for
from pushing import EVENT, TWIRP

FAR = {"X-Forwarded-For": "203.0.113.7"}
PROXY = "trusted_proxies = 127.0.0.1\n"
AGAIN_S = 30 # a running server reads changed tokens within seconds
PATIENT = "auth_failures_max = 0\n" # tests repeat requests until a token is known
# expires the tokens that have a time, as in "push 1790000000000 HASH"
LATE = (
    "UPDATE records SET value = "
    "CAST(substr(CAST(value AS TEXT), 1, 5) || '1000' || substr(CAST(value AS TEXT), 19) AS BLOB) "
    "WHERE kind = 'token' AND substr(CAST(value AS TEXT), 6, 2) <> '- '")


def bearer(token, **more):
    return {"Authorization": "Bearer " + token, **more}


def add(d, name, *arguments):
    return make(d.feedwheel, name, *arguments)


def make(feedwheel, name, *arguments):
    token = feedwheel.run("token", "add", name, *arguments).stdout.strip()
    holds(re.fullmatch(r"fwt_[A-Za-z0-9_-]{43}", token), token)
    return token


def pushed(d, token=None, path="/v1/events", headers=None):
    """The status of a push with this token."""
    return d.push(EVENT, path=path, headers={**(bearer(token) if token else {}), **(headers or {})})[0]


def becomes(what, status, ask):
    wait_for("%s is answered %d" % (what, status), lambda: ask() == status, AGAIN_S)


def logged(d, words):
    """Wait until the server has read its tokens and logged the result: then it checks scopes."""
    wait_for("the log says '%s'" % words, lambda: words in d.feedwheel.log())


@case("programs on this machine need no token until there is one; changes apply while the server runs")
def first_token(base):
    with http_server(base, conf=PATIENT) as d:
        logged(d, "requests without a token are accepted from programs on this machine")
        equal(pushed(d), 202)
        status, headers, response = d.push(EVENT, path="/v1/events", headers=FAR)
        equal((status, response["code"], headers["WWW-Authenticate"]), (403, "permission_denied", None))
        holds("feedwheel token add NAME --scope push" in response["detail"], response)
        one = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d))
        logged(d, "requests without a token are refused: there is a token")
        status, headers, response = d.push(EVENT, path="/v1/events")
        equal((status, response["code"], headers["Content-Type"]), (401, "unauthenticated", "application/problem+json"))
        holds(headers["WWW-Authenticate"].startswith("Bearer realm="), headers)
        equal(pushed(d, one), 202)
        equal(d.push(EVENT, headers=bearer(one))[::2], (200, {"stored": 1}))
        equal(pushed(d, one, headers=FAR), 202)
        wait_for("its use is noted", lambda: "used" in d.feedwheel.json("token", "list")[0], AGAIN_S) # API-01
        wrong = one[:-1] + ("A" if one[-1] != "A" else "B")
        status, headers, _ = d.push(EVENT, path="/v1/events", headers=bearer(wrong))
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
        n = d.request("GET", "/v1/ring")[2]["accepted"]
        d.stop()
        equal(d.stored(), n)
        for secret in (one, two):
            holds(secret not in d.feedwheel.log(), "in the log") # LOG-02
            for path in glob.glob(d.feedwheel.path + "*"):
                with open(path, "rb") as f:
                    holds(secret.encode() not in f.read(), "in " + path)


@case("the first token closes every scope, not only its own")
def all_scopes(base):
    for scope in ("push", "read", "admin"):
        with http_server(os.path.join(base, scope), conf=PATIENT) as d:
            logged(d, "requests without a token are accepted")
            requests = {
                "push": lambda d=d: pushed(d),
                "read": lambda d=d: d.request("GET", "/metrics")[0],
                "admin": lambda d=d: d.push({"url": "http://a.example/"}, path="/v1/feeds")[0]}
            equal([request() for request in requests.values()], [202, 200, 201], "before")
            token = add(d, "one", "--scope", scope)
            for other, request in requests.items():
                becomes(other + " without a token, when there is one for " + scope, 401, request)
            equal(d.request("DELETE", "/v1/feeds/1")[0], 401, "removal without a token")
            status = d.request("DELETE", "/v1/feeds/1", headers=bearer(token))[0]
            equal(status, 204 if scope == "admin" else 403, "removal with a token for " + scope)


CLOSED = {
    "trusted_proxies = 127.0.0.1\n": "trusted_proxies is set",
    "trusted_proxies = unix\n": "trusted_proxies is set",
    "websub_url = http://127.0.0.1:1/\n": "websub_url is set"}
HEADERS = (
    "X-Forwarded-For: 203.0.113.5", "X-Forwarded-For: 203.0.113.5, unknown", "X-Forwarded-For: 203.0.113.5, unix:",
    "X-Forwarded-For: fe80::1%eth0", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-For;", "X-Real-IP: unix:",
    "Forwarded: for=203.0.113.5", "Via: 1.1 p", "X-A: none of these")


def status_of(d, header, host="127.0.0.1"):
    """The status of a subscription, by curl with this header."""
    return subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", header, "-d", '{"url":"http://a.example/"}',
         "http://%s:%d/v1/feeds" % (host, d.port)],
        capture_output=True, text=True, check=False).stdout


@case("a request with a proxy's header is not local; settings of a proxy close all scopes")
def behind_proxies(base):
    for i, (conf, why) in enumerate(CLOSED.items()):
        with http_server(os.path.join(base, str(i)), conf=conf + PATIENT) as d:
            logged(d, "requests without a token are refused: " + why)
            equal({status_of(d, header) for header in HEADERS}, {"403"}, conf)
            equal((pushed(d), d.request("GET", "/metrics")[0], d.request("GET", "/healthz")[0]), (403, 403, 200), conf)
            status, _, response = d.push({"url": "http://a.example/"}, path="/v1/feeds")
            equal((status, response["code"]), (403, "permission_denied"))
            holds(why in response["detail"], response)
            holds("(to make a token: feedwheel token add NAME --scope admin)" in response["detail"], response)
            token = add(d, "one", "--scope", "admin,read")

            def add_feed(d=d, token=token):
                return d.push({"url": "http://a.example/"}, path="/v1/feeds", headers=bearer(token))[0]
            becomes("a feed, with a token", 201, add_feed)
    with http_server(os.path.join(base, "unnamed"), conf=PATIENT) as d: # a proxy that no setting names
        logged(d, "requests without a token are accepted")
        equal([status_of(d, header) for header in HEADERS], ["403"] * (len(HEADERS) - 1) + ["201"])
        equal(d.feedwheel.one("SELECT count(*) FROM feeds"), 1)
        d.stop()
        d.arguments = ("serve", "--listen", "127.1:%d" % d.port) # an address that is not surely loopback
        d.start()
        logged(d, "refused: listen is neither a loopback address nor a unix socket")
        equal({status_of(d, header) for header in HEADERS}, {"403"}, "not surely loopback")


@case("without a token Host, Origin and Content-Type are checked; each refusal names the remedy")
def tokenless(base):
    with http_server(base, conf="serve_host_names = feeds.lan, feedwheel\n") as d:
        logged(d, "requests without a token are accepted")
        body = json.dumps({"url": "https://a.example/"})

        def add_feed(headers, status, code=None, words=""):
            got, _, response = d.request("POST", "/v1/feeds", body, headers)
            equal((got, response.get("code")), (status, code), headers)
            holds(words in response.get("detail", ""), "%s: %s" % (headers, response))
        mine, json_type = "http://127.0.0.1:%d" % d.port, {"Content-Type": "application/json"}
        add_feed({}, 201)
        for more in (
            json_type,
            {"Content-Type": "application/json; charset=utf-8"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Host": "localhost"},
            {"Host": "Feeds.LAN:1234"},
            {**json_type, "Origin": mine, "Sec-Fetch-Site": "same-origin"}):
            add_feed(more, 200)
        add_feed({"Host": "evil.example"}, 403, "permission_denied", "Host is 'evil.example'")
        add_feed({"Host": "evil.example"}, 403, "permission_denied", "one of serve_host_names")
        add_feed({"Host": ""}, 403, "permission_denied", "feedwheel token add NAME --scope admin)")
        evil = {**json_type, "Origin": "http://evil.example"}
        add_feed(evil, 403, "permission_denied", "from a page of another site")
        add_feed({**json_type, "Origin": "null"}, 403, "permission_denied", "feedwheel token add NAME --scope admin)")
        add_feed({**json_type, "Sec-Fetch-Site": "cross-site"}, 403, "permission_denied", "Sec-Fetch-Site")
        for kind in (
            "text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", "application/xml",
            "application/x-ndjson"):
            add_feed({"Content-Type": kind}, 415, "unsupported_type", "'%s' (supported: application/json" % kind)
        add_feed({"Origin": mine}, 415, "unsupported_type", "application/json")
        form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Mode": "cors"}
        add_feed(form, 415, "unsupported_type", "application/json")
        equal(d.push(EVENT, path="/v1/events", headers={"Content-Type": "application/x-ndjson"})[0], 202)
        equal(d.push(EVENT, path="/v1/events", headers={"Content-Type": "text/plain"})[2]["detail"],
              "unsupported Content-Type 'text/plain' (supported: application/json or application/x-ndjson)")
        status, headers, response = d.push(EVENT, path=TWIRP, headers={"Content-Type": "text/plain"})
        equal((status, headers["Content-Type"], response["code"]), (415, "application/json", "invalid_argument"))
        equal(d.request("PATCH", "/v1/feeds/1", '{"title":"x"}', {"Content-Type": "text/plain"})[0], 415)
        entry = '{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"a","content_text":"a"}]}'
        for headers, status in ({}, 200), ({"Origin": mine}, 415), ({"Content-Type": "text/plain"}, 415):
            equal(d.request("POST", "/v1/feeds/1/entries", entry, headers)[0], status, headers)
        equal((d.feedwheel.one("SELECT count(*) FROM feeds"), d.request("GET", "/v1/ring")[2]["accepted"]), (1, 1))
        # with a token as Bearer only the body's type is checked
        token = add(d, "one", "--scope", "admin,push,read")
        becomes("a read without a token", 401, lambda: d.request("GET", "/v1/ring")[0])
        far = bearer(token, Host="feeds.example.org", Origin="https://www.example.org", **FAR)
        add_feed({**far, **json_type, "Sec-Fetch-Site": "cross-site"}, 200)
        add_feed({**far, "Content-Type": "text/plain"}, 415, "unsupported_type")
        add_feed({**far, "Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_type")
        equal(d.request("GET", "/v1/feeds", headers={**far, "Sec-Fetch-Site": "cross-site"})[0], 200)
        # a browser keeps a token that it sends by Basic, and sends it for any page
        basic = {"Authorization": "Basic " + base64.b64encode(("x:" + token).encode()).decode()}
        for foreign in {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}:
            status, _, got = d.request("GET", "/v1/feeds", headers={**basic, **foreign})
            equal((status, got["code"]), (403, "permission_denied"), foreign)
            holds("serve_cors_origin" in got["detail"], got)
        for ours in {}, {"Origin": mine}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}:
            equal(d.request("GET", "/v1/feeds", headers={**basic, **ours})[0], 200, ours)


@case("a slash in a path is a slash as it is written: %2f is none, but in the name of a feed or a stream")
def slashes(base):
    with http_server(base) as d:
        for path in ("/v1%2ffeeds", "/v1%2Ffeeds", "/v1%2fnothing", "/reader%2Fapi/0/token", "/%2fv1/feeds",
                     "/v1/orders/a%2freplay"):
            status, _, got = d.request("GET", path)
            equal((status, got["code"]), (400, "invalid_path"), path)
        equal(d.request("GET", "/v1/feeds?cursor=%2f")[0], 400) # of the cursor
        equal(d.request("GET", "/v1/feeds%3f")[0], 404)
        # no login, but a known path
        equal(d.request("GET", "/reader/api/0/stream/contents/feed%2Fhttp:%2F%2Fa.example%2Ff")[0], 401)
        equal(d.request("GET", "/api/greader.php/reader/api/0/stream/contents/feed%2Fx")[0], 401)


@case("an invalid serve_host_names is an error that names the setting, the item and the remedy")
def bad_names(base):
    for names, item in (
        ("http://a.example", "http://a.example"),
        ("a.example, b:8080", "b:8080"),
        ("[::1]", "[::1]"),
        ("*", "*")):
        w = Feedwheel(base, "serve_host_names = %s\n" % names)
        for command in (("serve", "--listen", "127.0.0.1:0"), ("doctor",)):
            r = w.run(*command, code=None)
            output = r.stdout + r.stderr
            holds(r.returncode != 0 and "serve_host_names: '%s' is not a host name: write feeds.lan" % item in output,
                  output)


@case("each scope permits its own requests only; health needs no token; Bearer and Basic are read")
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
            equal(d.request("GET", "/v1/ring", headers=bearer(tokens[name]))[0], status, "read by " + name)
        status, headers, response = d.push(EVENT, headers=bearer(tokens["read"]))
        equal((status, response["code"]), (403, "permission_denied"))
        holds("insufficient_scope" in headers["WWW-Authenticate"] and "push" in response["detail"], response)
        for path in ("/healthz", "/readyz"):
            equal(d.request("GET", path, headers=FAR)[0], 200, path)
            equal(d.request("GET", path, headers=bearer("no such token"))[0], 200, path)
        for path in ("/metrics", "/v1/ring", "/v1/feeds/1"):
            equal(d.request("GET", path)[0], 401, path)
        token = tokens["push"]
        basic = lambda s: "Basic " + base64.b64encode(s.encode()).decode()
        for header, status in (
            ("bearer " + token, 202),
            ("BEARER   " + token + " ", 202),
            (basic("anybody:" + token), 202),
            (basic(":" + token), 202),
            (basic("a:b:" + token), 401),
            (basic(token), 401),
            (basic(token + ":"), 401),
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


@case("a body is read before it is refused, unless its client waits for 100-continue; connections stay open")
def refused_bodies(base):
    with http_server(base, conf=PATIENT) as d:
        token = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d, path=TWIRP))
        status, headers, response = d.push(EVENT, path=TWIRP)
        equal((status, headers["Content-Type"], response["code"], sorted(response)),
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
            holds(r.headers.get("Connection") != "close", "the connection stays open")
        c.close()
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write(json.dumps([EVENT] * 2000))
        curl = subprocess.run(
            ["curl", "-sS", "-v", "-H", "Expect: 100-continue", "--data-binary", "@" + body,
             "http://127.0.0.1:%d/v1/events" % d.port],
            capture_output=True, text=True, check=False)
        holds("401 Unauthorized" in curl.stderr and "100 Continue" not in curl.stderr, curl.stderr)


@case("an expired or unreadable token is refused, and still counts as a token")
def expired(base):
    with http_server(base, conf=PATIENT) as d:
        token = add(d, "short", "--scope", "push", "--days", "1")
        becomes("a push with a token", 401, lambda: pushed(d))
        equal(pushed(d, token), 202)
        d.feedwheel.sql(LATE, write=True)
        becomes("an expired token", 401, lambda: pushed(d, token))
        equal(pushed(d), 401)
        holds("expired" in d.feedwheel.run("token", "list").stdout, "the list shows it")
        equal(d.feedwheel.json("token", "list")[0]["valid"], False)
        d.feedwheel.sql("UPDATE records SET value = x'00ff' WHERE kind = 'token'", write=True)
        wait_for("an unreadable token", lambda: "unreadable: remove it" in d.feedwheel.run("token", "list").stdout)
        equal(pushed(d), 401)
        d.feedwheel.run("token", "remove", "short")
        becomes("a push without tokens", 202, lambda: pushed(d))


def forwarded_for(address):
    return {"X-Forwarded-For": address}


def metric(d, name, token):
    return next(
        float(l.split()[1]) for l in d.request("GET", "/metrics", headers=bearer(token))[2].splitlines()
        if l.startswith("feedwheel_" + name + " "))


@case("wrong tokens close their network for a while, except for addresses that used a valid token before") # API-07
def wrong_tokens(base):
    one, two = [make(Feedwheel(base), name, "--scope", "push,read") for name in ("one", "two")]
    with http_server(base, conf=PROXY + "auth_failures_max = 5\nauth_failures_ms = 1h\n") as d:
        becomes("a push without a token", 401, lambda: pushed(d))
        equal(pushed(d, two, headers=forwarded_for("198.51.100.1")), 202)
        equal(pushed(d, one, headers=forwarded_for("192.0.2.1")), 202)
        for i in range(5):
            equal(pushed(d, "guess", headers=forwarded_for("192.0.2.%d" % (50 + i))), 401, i)
        equal(pushed(d, one, headers=forwarded_for("192.0.2.1")), 202, "an address that used a valid token")
        equal(pushed(d, headers=forwarded_for("192.0.2.1")), 401, "no token")
        far = forwarded_for("192.0.2.200")
        responses = [
            d.push(EVENT, path="/v1/events", headers=bearer(t, **far)) for t in ("guess", two, one[:-1], "")]
        detail = responses[0][2]["detail"].rpartition(" in ")[0]
        for status, headers, response in responses[:3]: # the second token is valid
            equal((status, response["code"]), (429, "auth_rate_limited"))
            equal(response["detail"].rpartition(" in ")[0], detail)
            holds(3000 < int(headers["Retry-After"]) <= 3600, headers["Retry-After"])
        equal(responses[3][0], 401, "an empty token is not counted")
        status, headers, words = d.push(EVENT, path=TWIRP, headers=bearer("guess", **forwarded_for("192.0.2.3")))
        equal((status, words["code"]), (429, "resource_exhausted"))
        equal(pushed(d, two, headers=forwarded_for("192.0.3.1")), 202, "the next network")
        equal(pushed(d, "guess", headers=forwarded_for("192.0.3.1")), 401, "which is counted by itself")
        for i in range(5): # one network of IPv6
            equal(pushed(d, "guess", headers=forwarded_for("2001:db8::%d" % i)), 401)
        equal(pushed(d, two, headers=forwarded_for("2001:db8::ffff")), 429)
        equal(pushed(d, two, headers=forwarded_for("2001:db8:0:1::1")), 202)
        equal((metric(d, "auth_failures_total", one), metric(d, "auth_rate_limited_total", one)), (11, 5))
        warnings = re.findall(r"5 wrong tokens from the network of (192\.0\.2|2001:db8)", d.feedwheel.log())
        holds(len(warnings) in (1, 2), d.feedwheel.log())
        add(d, "three", "--scope", "push") # known addresses outlive a change of the tokens
        d.feedwheel.run("token", "remove", "two")
        becomes("a token that was removed", 401, lambda: pushed(d, two, headers=forwarded_for("198.51.100.1")))
        equal(pushed(d, one, headers=forwarded_for("192.0.2.1")), 202)
    # without trusted_proxies X-Forwarded-For names no network
    with http_server(base, conf="auth_failures_max = 2\nauth_failures_ms = 2s\n") as d:
        def guess():
            return pushed(d, "guess", headers=forwarded_for("192.0.2.%d" % random.randrange(256)))
        becomes("a wrong token after too many", 429, guess)
        becomes("the valid token, later", 202, lambda: pushed(d, one))


@case("a stream ends with its token, and a stream without a token ends with the first token")
def streams_end(base):
    def stream(d, token=None):
        s = d.connect(120)
        s.request("GET", "/v1/stream", headers=bearer(token) if token else {})
        r = s.getresponse()
        equal(r.status, 200)
        holds(r.readline().startswith(b"retry:"), "the stream begins")
        return r
    with http_server(base, conf=PATIENT) as d:
        logged(d, "requests without a token are accepted")
        open_to_all = stream(d)
        short = add(d, "short", "--scope", "read", "--days", "1")
        other = add(d, "other", "--scope", "read")
        open_to_all.read() # to its end
        becomes("the last token", 200, lambda: d.request("GET", "/v1/ring", headers=bearer(other))[0])
        ending, staying = stream(d, short), stream(d, other)
        d.feedwheel.sql(LATE, write=True)
        ending.read()
        equal(d.request("GET", "/v1/stream", headers=bearer(short))[0], 401)
        add(d, "third", "--scope", "read")
        equal(d.request("GET", "/v1/ring", headers=bearer(other))[0], 200)
        d.feedwheel.run("add", "https://a.example/")
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", "#1", "-", stdin='{"id":"x","title":"t"}')
        wait_for("an entry on the other stream", lambda: staying.readline().startswith(b"event: entry"))
        d.feedwheel.run("token", "remove", "other")
        staying.read()


@case("a unix socket needs no token until there is one")
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
    wait_for("pushes without a token to be refused", lambda: push() == "401", AGAIN_S)
    equal(push("-H", "Authorization: Bearer " + token), "202")
    p.terminate()
    equal(p.wait(60), 0)


@each_engine(
    "without the store known tokens stay valid; a server started without it refuses remote clients",
    leave_out=() if "FW_LONG" in os.environ else ("redis", "mysql"))
def store_away(base, engine):
    with server(engine, base) as s:
        with http_server(base, store=s.url(), conf=PATIENT) as d:
            token = add(d, "one", "--scope", "push")
            becomes("a push without a token", 401, lambda: pushed(d))
            s.kill()
            wait_for("the warning", lambda: "access tokens: the store is unavailable" in d.feedwheel.log(), AGAIN_S)
            equal(d.request("GET", "/readyz")[0], 503, "ready")
            equal((pushed(d), pushed(d, token), pushed(d, token, headers=FAR)), (401, 202, 202))
            s.restart()
            wait_for("the end of the outage",
                     lambda: "access tokens: the store answers again" in d.feedwheel.log(), AGAIN_S)
            d.feedwheel.run("token", "remove", "one")
            becomes("without tokens", 202, lambda: pushed(d))
            token = add(d, "two", "--scope", "push")
            d.stop()
            s.kill()
            d.start()
            equal(d.push(EVENT, path="/v1/events", headers=bearer(token, **FAR))[0], 503)
            equal(d.request("GET", "/v1/ring")[0], 503)
            equal(d.request("GET", "/readyz")[0], 503, "ready, before any push")
            equal(pushed(d), 202)
            s.restart()
            becomes("without a token", 401, lambda: pushed(d))
            equal(pushed(d, token, headers=FAR), 202)
            becomes("ready", 200, lambda: d.request("GET", "/readyz")[0])


@case("a token bound to feeds or properties pushes to these only, on every path")
def bound(base):
    def entries(d, token, feed, *more):
        return d.request("POST", "/v1/feeds/%d/entries" % feed, '{"id":"x","title":"t"}',
                     {"Content-Type": "application/x-ndjson", **bearer(token), **dict(more)})

    def events(d, token, body, path="/v1/events"):
        return d.push(body, path=path, headers=bearer(token))
    w = Feedwheel(base)
    for name in ("a", "b", "c"):
        w.run("add", "https://%s.example/" % name)
    bounds = (
        (),
        ("--feed", "1"),
        ("--feed=1", "--feed", "https://b.example/"),
        ("--property", "news", "--property", "a=b"),
        ("--property", "news", "--feed", "3"))
    tokens = [make(w, "t%d" % i, "--scope", "push", *more) for i, more in enumerate(bounds)]
    unbound, first, two, news, both = tokens
    reader = make(w, "reader", "--scope", "read")
    with http_server(base, conf=PATIENT) as d:
        def accepted():
            return d.request("GET", "/v1/ring", headers=bearer(reader))[2]["accepted"]
        for feed, permitted in ((1, (unbound, first, two)), (2, (unbound, two)), (3, (unbound, both)), (99, ())):
            for token in tokens:
                status, headers, response = entries(d, token, feed)
                if token == unbound and feed == 99:
                    equal(status, 404)
                elif token in permitted:
                    equal((status, response.get("feed")), (200, feed))
                else: # also when there is no such feed
                    equal((status, response["code"]), (403, "permission_denied"))
                    holds("push to feed %d refused" % feed in response["detail"], response)
                    holds("insufficient_scope" in headers["WWW-Authenticate"], response)
        other, mixed = {**EVENT, "property": "other"}, [EVENT, {**EVENT, "property": "other"}]
        for path, ok in (("/v1/events", 202), ("/v1/events?ack=durable", 200), (TWIRP, 200)):
            for body, permitted in (
                (EVENT, (unbound, news, both)),
                ({**EVENT, "property": "a=b"}, (unbound, news)),
                (other, (unbound,)),
                ('{"property":"n\\u0065ws","section":1,"id":1}', (unbound, news, both)),
                ('{"property":"n\\u0065w","section":1,"id":1}', (unbound,)),
                (mixed, (unbound,)),
                ({**EVENT, "property": "new"}, (unbound,)),
                ({**EVENT, "property": "news feed=1"}, (unbound,)),
                ({**EVENT, "property": "property=news"}, (unbound,))):
                for i, token in enumerate(tokens):
                    before = accepted()
                    status, _, response = events(d, token, body, path)
                    equal(status, ok if token in permitted else 403, "%s by %d: %s" % (body, i, response))
                    if status == 403:
                        equal((response["code"], accepted()), ("permission_denied", before), "nothing is accepted")
        holds("event 2: push of its property refused" in events(d, news, mixed)[2]["detail"], "the event's number")
        holds("push of events refused" in events(d, first, EVENT)[2]["detail"], "a token bound to feeds only")
        for path in ("/v1/feeds/1", "/v1/stream", "/metrics"):
            equal(d.request("GET", path, headers=bearer(first))[0], 403, path)
        listed = {t["name"]: (t.get("feeds"), t.get("properties")) for t in d.feedwheel.json("token", "list")}
        del listed["reader"]
        equal(listed, {
            "t0": (None, None), "t1": ([1], []), "t2": ([1, 2], []), "t3": ([], ["news", "a=b"]),
            "t4": ([3], ["news"])})
        table = d.feedwheel.run("token", "list").stdout
        holds("feed=1 feed=2" in table and "feed=3 property=news" in table, table)
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write('{"id":"y","title":"t"}')
        curl = subprocess.run(
            ["curl", "-sS", "-v", "-H", "Expect: 100-continue", "-H", "Content-Type: application/x-ndjson",
             "-H", "Authorization: Bearer " + first, "--data-binary", "@" + body,
             "http://127.0.0.1:%d/v1/feeds/2/entries" % d.port],
            capture_output=True, text=True, check=False)
        holds("403 Forbidden" in curl.stderr and "100 Continue" not in curl.stderr, curl.stderr)
    for arguments, code, error in (
        (("--scope", "push", "--feed", "99"), 1, "no feed has the number 99 ('feedwheel list' lists all)"),
        (("--scope", "push", "--feed", "x"), 1, "x: no such feed"),
        (("--scope", "read", "--feed", "1"), 2, "needs the scope push alone"),
        (("--scope", "push,read", "--property", "news"), 2, "needs the scope push alone"),
        (("--scope", "push", "--property", "a b"),
         2, "the property 'a b': a property has 1 to 255 bytes without spaces"),
        (("--scope", "push", "--property", ""), 2, "the property ''"),
        (("--scope", "push", "--property", "x" * 256), 2, "1 to 255 bytes"),
        (("--scope", "push", *["--property=" + "x" * 200] * 20),
         1, "more than 4000 bytes of feeds and properties: make several")):
        r = w.run("token", "add", "wrong", *arguments, code=code)
        holds(error in r.stderr and r.stdout == "", "%s: %s" % (arguments, r.stderr))


@case("the token command's output and errors")
def command_output(base):
    d = HttpServer(base)
    d.stop()
    w = d.feedwheel
    for arguments, code, error in (
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
        holds(error in r.stderr, "%s: %s" % (arguments, r.stderr))
        equal(r.stdout, "")
    holds("no tokens" in w.run("token", "list").stderr, "an empty list")
    equal(w.json("token", "list"), [])
    output = w.run("token", "add", "one", "--scope", "push", "--until", "2099-12-31T18:00:00Z").stderr
    holds("this is the first token: from now on every client needs a token" in output, output)
    errors = w.run("token", "add", "one", "--scope", "read", code=2).stderr
    holds("token 'one': the name is taken" in errors, errors)
    notes = w.run("token", "add", "reader@host", "--scope", "admin, read").stderr
    holds("this is the first token" not in notes, notes)
    listed = w.json("token", "list")
    equal([(t["name"], t["scopes"], t.get("until"), t["valid"]) for t in listed],
          [("one", ["push"], "2099-12-31T18:00:00Z", True), ("reader@host", ["read", "admin"], None, True)])
    table = w.run("token", "list").stdout
    holds("read,admin" in table and "2099-12-31" in table, table)


@case("doctor reports tokenless access, expired tokens, and tokens without TLS")
def doctor(base):
    w = Feedwheel(base)

    def says(pattern, *arguments):
        output = w.run("doctor", *arguments).stdout
        holds(re.search("^" + pattern, output, re.M), output)
        return output
    everywhere = ("--listen", "0.0.0.0:8080")
    w.run("add", "https://a.example/")
    for listen in ((), ("--listen", "127.0.0.1:8080"), ("--listen", "unix:/run/x.sock")):
        says(r"ok +tokenless +requests without a token are accepted from programs on this machine, .*; the first "
             r"token ends that\n(?! +->)", *listen)
    for more, why in (
        (everywhere, "listen is neither"),
        (("--listen", "127.0.0.1:8080", "--trusted-proxies", "127.0.0.1"), "trusted_proxies is set"),
        (("--listen", "127.0.0.1:8080", "--websub-url", "https://a.example/"), "websub_url is set")):
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
    says(r"note +tokens +1 token is unreadable.*\n +-> 'feedwheel token list'")


if __name__ == "__main__":
    run()
