#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Access tokens: who may push, read and administrate; while the server runs, and while its store does not. (API-01, API-08)"""
import base64
import glob
import json
import os
import re
import subprocess

from door import Door, door
from harness import Wheel, case, each_engine, equal, holds, run, server, wait_for

EVENT = {"property": "news", "section": 1, "id": 1}
TWIRP = "/twirp/stats.StatsService/Push"
FAR = {"X-Forwarded-For": "203.0.113.7"}
PROXY = "trusted_proxies = 127.0.0.1\n"
AGAIN_S = 30 # a running server knows within seconds
# tokens that will run out have done so: "push 1790000000000 HASH"
LATE = ("UPDATE records SET value = CAST(substr(CAST(value AS TEXT), 1, 5) || '1000' || substr(CAST(value AS TEXT), 19) AS BLOB)"
        " WHERE kind = 'token' AND substr(CAST(value AS TEXT), 6, 2) <> '- '")


def bearer(token, **more):
    return {"Authorization": "Bearer " + token, **more}


def add(d, name, *arguments):
    token = d.wheel.run("token", "add", name, *arguments).stdout.strip()
    holds(re.fullmatch(r"fwt_[A-Za-z0-9_-]{43}", token), token)
    return token


def pushed(d, token=None, path="/v1/events", headers=None):
    """The status of a push, with this token."""
    return d.push(EVENT, path=path, headers={**(bearer(token) if token else {}), **(headers or {})})[0]


def becomes(what, status, ask):
    wait_for("%s is answered %d" % (what, status), lambda: ask() == status, AGAIN_S)


@case("a scope without tokens is this machine's; with one, everybody needs it; added and removed while the server runs")
def comes_and_goes(base):
    with door(base, conf=PROXY) as d:
        equal(pushed(d), 202)
        status, headers, said = d.push(EVENT, path="/v1/events", headers=FAR)
        equal((status, said["code"], headers["WWW-Authenticate"]), (403, "permission_denied", None))
        holds("feedwheel token add NAME --scope push" in said["detail"], said)
        one = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d))
        status, headers, said = d.push(EVENT, path="/v1/events")
        equal((status, said["code"], headers["Content-Type"]), (401, "unauthenticated", "application/problem+json"))
        holds(headers["WWW-Authenticate"].startswith("Bearer realm="), headers)
        equal(pushed(d, one), 202)
        equal(d.push(EVENT, headers=bearer(one))[::2], (200, {"stored": 1}))
        equal(pushed(d, one, headers=FAR), 202)
        wait_for("its use is noted", lambda: "used_ms" in d.wheel.json("token", "list")[0], AGAIN_S) # API-01
        status, headers, _ = d.push(EVENT, path="/v1/events", headers=bearer(one[:-1] + ("A" if one[-1] != "A" else "B")))
        equal(status, 401)
        holds("invalid_token" in headers["WWW-Authenticate"], headers)
        two = add(d, "two", "--scope", "push")
        becomes("the second token", 202, lambda: pushed(d, two))
        d.wheel.run("token", "remove", "one")
        becomes("a token that was removed", 401, lambda: pushed(d, one))
        equal(pushed(d, two), 202)
        d.wheel.run("token", "remove", "two")
        becomes("a push from here without tokens", 202, lambda: pushed(d))
        equal(pushed(d, headers=FAR), 403)
        n = d.ask("GET", "/v1/ring")[2]["accepted"]
        d.stop()
        equal(d.stored(), n)
        for secret in (one, two):
            holds(secret not in d.wheel.words(), "in what the server said") # LOG-02
            for path in glob.glob(d.wheel.path + "*"):
                with open(path, "rb") as f:
                    holds(secret.encode() not in f.read(), "in " + path)


@case("each scope by itself; what is open; forms of the header")
def scopes(base):
    with door(base, conf=PROXY) as d:
        tokens = {s: add(d, s, "--scope", s) for s in ("push", "read")}
        tokens["both"] = add(d, "both", "--scope", "read,push")
        tokens["admin"] = add(d, "admin", "--scope", "admin")
        becomes("a push without a token", 401, lambda: pushed(d))
        becomes("the last token", 202, lambda: pushed(d, tokens["both"]))
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
        for header, status in (("bearer " + token, 202), ("BEARER   " + token + " ", 202), (basic("anybody:" + token), 202),
                               (basic(":" + token), 202), (basic("a:b:" + token), 401), (basic(token), 401), (basic(token + ":"), 401),
                               ("Basic " + token, 401), ("Basic", 401), ("Bearer", 401), ("Bearer ", 401), (token, 401),
                               ("Token " + token, 401), ("Bearer " + token + "x", 401), ("Bearer " + token + " x", 401),
                               ("Bearer " + "x" * 5000, 401), ("Basic " + "x" * 5000, 401)):
            equal(d.push(EVENT, path="/v1/events", headers={"Authorization": header})[0], status, header)


@case("Twirp's words; a body is read before it is refused, unless its sender waits for leave; connections go on")
def manners(base):
    with door(base) as d:
        token = add(d, "one", "--scope", "push")
        becomes("a push without a token", 401, lambda: pushed(d, path=TWIRP))
        status, headers, said = d.push(EVENT, path=TWIRP)
        equal((status, headers["Content-Type"], said["code"], sorted(said)), (401, "application/json", "unauthenticated", ["code", "msg"]))
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


@case("a token runs out, and does not open the door by that")
def runs_out(base):
    with door(base) as d:
        token = add(d, "short", "--scope", "push", "--days", "1")
        becomes("a push with a token", 401, lambda: pushed(d))
        equal(pushed(d, token), 202)
        d.wheel.sql(LATE, write=True)
        becomes("a token that has run out", 401, lambda: pushed(d, token))
        equal(pushed(d), 401)
        holds("has run out" in d.wheel.run("token", "list").stdout, "in the list")
        equal(d.wheel.json("token", "list")[0]["good"], False)
        d.wheel.sql("UPDATE records SET value = x'00ff' WHERE kind = 'token'", write=True) # neither does one that nobody can read
        wait_for("unreadable", lambda: "unreadable: remove it" in d.wheel.run("token", "list").stdout)
        equal(pushed(d), 401)
        d.wheel.run("token", "remove", "short")
        becomes("a push without tokens", 202, lambda: pushed(d))


@case("over a unix socket: this machine, until there is a token")
def unix(base):
    path = os.path.join(base, "door.sock")
    d = Door(base)
    d.stop()

    def push(*more):
        r = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", path, "-d", json.dumps(EVENT), *more,
                            "http://x/v1/events"], capture_output=True, text=True, check=False)
        return r.stdout
    p = d.wheel.start("serve", "--listen", "unix:" + path)
    wait_for("the server", lambda: push() == "202")
    token = add(d, "one", "--scope", "push")
    wait_for("a token is wanted", lambda: push() == "401", AGAIN_S)
    equal(push("-H", "Authorization: Bearer " + token), "202")
    p.terminate()
    equal(p.wait(60), 0)


@each_engine("the store is away: the tokens that are known hold; a server that was started without it lets nobody in from afar",
             leave_out=() if "FW_LONG" in os.environ else ("redis", "mysql"))
def store_away(base, engine):
    with server(engine, base) as s:
        with door(base, store=s.url(), conf=PROXY) as d:
            token = add(d, "one", "--scope", "push")
            becomes("a push without a token", 401, lambda: pushed(d))
            s.kill9()
            wait_for("it is noticed", lambda: "access tokens cannot be read" in d.wheel.words(), AGAIN_S)
            equal((pushed(d), pushed(d, token), pushed(d, token, headers=FAR)), (401, 202, 202))
            s.again()
            wait_for("it is back", lambda: "access tokens are read again" in d.wheel.words(), AGAIN_S)
            d.wheel.run("token", "remove", "one")
            becomes("without tokens", 202, lambda: pushed(d))
            token = add(d, "two", "--scope", "push")
            d.stop()
            s.kill9()
            d.start()
            equal(d.push(EVENT, path="/v1/events", headers=bearer(token, **FAR))[0], 503)
            equal(d.ask("GET", "/v1/ring")[0], 503)
            equal(pushed(d), 202)
            s.again()
            becomes("without a token", 401, lambda: pushed(d))
            equal(pushed(d, token, headers=FAR), 202)


@case("the words of the command")
def words(base):
    d = Door(base)
    d.stop()
    w = d.wheel
    for arguments, code, said in (
            (("add", "one"), 2, "--scope push, read or admin"), (("add", "--scope", "push"), 2, "whose token?"),
            (("add", "one", "--scope", "pull"), 2, "unknown scope 'pull': there are push, read and admin"),
            (("add", "one", "--scope", "push,"), 2, "unknown scope ''"), (("add", "one two", "--scope", "push"), 2, "token 'one two': a name is"),
            (("add", "", "--scope", "push"), 2, "a name is"), (("add", "x" * 65, "--scope", "push"), 2, "1 to 64"),
            (("add", "one", "--scope", "push", "--until", "2020-01-01"), 2, "a time to come"),
            (("add", "one", "--scope", "push", "--days", "0"), 2, "--days"), (("add", "one", "--scope", "push", "--days", "99999"), 2, "--days"),
            (("add", "one", "--scope", "push", "--days", "1", "--until", "2099-01-01"), 2, "one of the two"),
            (("remove", "one"), 1, "token 'one': there is none of that name"), (("remove",), 2, "which token?"), (("list", "one"), 2, "no arguments"),
            (("revoke", "one"), 2, "token add, list or remove")):
        r = w.run("token", *arguments, code=code)
        holds(said in r.stderr, "%s: %s" % (arguments, r.stderr))
        equal(r.stdout, "")
    holds("no tokens" in w.run("token", "list").stderr, "nothing there")
    equal(w.json("token", "list"), [])
    add(d, "one", "--scope", "push", "--until", "2099-12-31T18:00:00Z")
    holds("token 'one': there is one already" in w.run("token", "add", "one", "--scope", "read", code=2).stderr, "taken")
    add(d, "reader@host", "--scope", "admin, read")
    listed = w.json("token", "list")
    equal([(t["name"], t["scopes"], t.get("until_ms"), t["good"]) for t in listed],
          [("one", ["push"], 4102423200000, True), ("reader@host", ["read", "admin"], None, True)])
    table = w.run("token", "list").stdout
    holds("read,admin" in table and "2099-12-31" in table, table)


@case("doctor tells who gets in, and that tokens want TLS")
def doctor(base):
    w = Wheel(base)

    def says(pattern, *arguments):
        said = w.run("doctor", *arguments).stdout
        holds(re.search("^" + pattern, said, re.M), said)
        return said
    everywhere = ("--listen", "0.0.0.0:8080")
    w.run("add", "https://a.example/")
    holds("tokens" not in says("ok +store", "--listen", "127.0.0.1:8080"), "nothing to tell")
    says(r"note +tokens +the server listens at 0.0.0.0:8080, and there is no token.*\n +-> 'feedwheel token add", *everywhere)
    w.run("token", "add", "one", "--scope", "push")
    w.run("token", "add", "two", "--scope", "read", "--days", "1")
    says(r"ok +tokens +2, 0 of which have run out")
    says(r"note +tls +the server listens at 0.0.0.0:8080 without TLS.*\n +-> set tls_cert", *everywhere)
    w.sql(LATE, write=True)
    says(r"note +tokens +all for read have run out.*\n +-> 'feedwheel token list'")
    w.sql("UPDATE records SET value = x'00' WHERE kind = 'token' AND key = CAST('two' AS BLOB)", write=True)
    says(r"note +tokens +1 cannot be read.*\n +-> 'feedwheel token list'")


if __name__ == "__main__":
    run()
