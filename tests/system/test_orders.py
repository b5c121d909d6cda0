#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Orders: the command and /v1/orders; errors in queries and destinations; tests, replays, dead
letters; what doctor finds and what a copy takes along."""
import json
import re
import time

from http_server import http_server
from harness import Feedwheel, case, each_engine, equal, holds, run, server, store_of, wait_for

HOOK = "https://hooks.example.org/x"
ALLOWED = "order_programs = /bin/true\norder_files = /nonexistent/, /tmp/x\n"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ENTRIES = 12 # every third one has the word
HOUR_MS = 3600000


def filled(base, store=None, n=ENTRIES):
    """A store with a feed and its entries, which are indexed."""
    w = Feedwheel(base, ALLOWED, store=store)
    w.run("add", "-q", "https://a.example/feed")
    items = [{"id": "e%d" % i, "title": "%s %d" % ("wanted" if i % 3 == 0 else "other", i)} for i in reversed(range(n))]
    w.run("push", "1", "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}))
    w.run("pause", "-q", "1")
    w.run_once() # indexes
    wait_for("the index", lambda: "not indexed" not in w.run("order", "test", "wanted").stderr)
    return w


def listed(w):
    return {o["name"]: o for o in w.json("order", "list")}


def delivery(w, name):
    return listed(w)[name]["delivery"]


def complains(w, code, words, *arguments):
    r = w.run("order", *arguments, code=code)
    holds(words in r.stderr, r.stderr)
    equal(r.stdout, "")
    return r.stderr.splitlines()


# ---- the command ------------------------------------------------------------------------------------------

@each_engine("added, shown, changed, paused, resumed, removed", also=["sqlite"])
def life(base, engine):
    with store_of(engine, base) as url:
        w = Feedwheel(base, ALLOWED, store=url)
        r = w.run("order", "add", "sec", "title:CVE -podcast", "--to", HOOK)
        secret = r.stdout.strip()
        holds(re.fullmatch(r"whsec_[A-Za-z0-9+/]{32}", secret), secret)
        holds("its receiver checks the signature" in r.stderr, r.stderr)
        holds(secret not in w.run("order", "show", "sec").stdout + w.run("order", "list", "--json").stdout, "shown")
        equal(w.json("order", "show", "sec", "--with-secret")["secret"], secret)
        equal(w.run("order", "add", "own", "x", "--to", HOOK, "--secret", SECRET).stdout, "added order own\n")
        equal(w.run("order", "add", "quiet", "has:audio", "--drop").stdout, "added order quiet\n")
        w.run("order", "add", "t", "x OR y", "--tag", "xy", "--changes")
        of = listed(w)
        equal([(n, o["action"], o["changes"]) for n, o in of.items()],
              [("own", "deliver", False), ("quiet", "drop", False), ("sec", "deliver", False), ("t", "tag", True)])
        equal(("delivery" in of["sec"], "delivery" in of["quiet"]), (True, False))
        w.run("order", "set", "sec", "--query", "y", "--changes")
        w.run("order", "pause", "sec")
        o = listed(w)["sec"]
        equal((o["query"], o["changes"], o["state"], o["created_at"]),
              ("y", True, "paused", of["sec"]["created_at"]))
        w.run("order", "resume", "sec")
        w.run("order", "set", "sec", "--no-changes")
        equal((listed(w)["sec"]["state"], listed(w)["sec"]["changes"]), ("active", False))
        new = w.run("order", "rotate", "sec").stdout.strip()
        shown = w.run("order", "show", "sec", "--with-secret").stdout
        holds(new != secret and new in shown and secret in shown, shown)
        equal(w.run("order", "set", "sec", "--to", "file:/tmp/x").stdout, "changed order sec\n")
        holds("whsec" not in w.run("order", "show", "sec", "--with-secret").stdout, "a file has no secret")
        holds(w.run("order", "set", "sec", "--to", HOOK).stdout.startswith("whsec_"), "a webhook has one again")
        table = w.run("order", "list").stdout.splitlines()
        equal(table[0].split(), "NAME STATE ACTION PENDING DEAD DELIVERED FAILING QUERY".split())
        equal(table[2].split(), ["quiet", "active", "drop", "-", "-", "-", "-", "has:audio"])
        equal(w.run("order", "remove", "t").stdout, "removed order t\n")
        holds("did you mean 'quiet'?" in complains(w, 1, "no order 'quite'", "remove", "quite")[0], "suggested")


@case("what is wrong with an order is said, with the place in its query")
def wrong(base):
    w = Feedwheel(base, ALLOWED)
    w.run("order", "add", "a", "x", "--drop")
    for words, *arguments in (
        ("missing option: --to URL, --drop or --tag TAG", "add", "b", "x"),
        ("exclude each other", "add", "b", "x", "--drop", "--tag", "y"),
        ("missing arguments: NAME QUERY", "add", "b"),
        ("an order 'a' exists already", "add", "a", "x", "--drop"),
        ("invalid name 'a b'", "add", "a b", "x", "--drop"),
        ("unknown destination 'ftp://x/'", "add", "b", "x", "--to", "ftp://x/"),
        ("absolute path", "add", "b", "x", "--to", "command:notify"),
        ("invalid secret", "add", "b", "x", "--to", HOOK, "--secret", "x"),
        ("a secret signs webhooks", "add", "b", "x", "--drop", "--secret", SECRET),
        ("the query is empty", "add", "b", " ", "--drop"),
        ("'order list' does not take --since", "list", "--since", "2d"),
        ("nothing to change", "set", "a"),
        ("delivers nothing", "set", "a", "--to", HOOK),
        ("delivers nothing", "replay", "a", "--since", "2d"),
        ("missing option: --since TIME", "replay", "a"),
        ("--since must be a time", "replay", "a", "--since", "whenever"),
        ("sends no webhooks", "rotate", "a"),
        ("takes one argument", "show"),
        ("must be add, list, show", "frobnicate")):
        complains(w, 2, words, *arguments)
    for command in (("add", "b", "WHAT", "--drop"), ("set", "a", "--query", "WHAT"), ("test", "WHAT")):
        for query, column in (("titel:x y", 0), ("caf\u00e9 \u65e5\u672c (x", 10), ("x OR", 2)):
            r = complains(w, 2, "order: query: ", *[query if c == "WHAT" else c for c in command])
            equal((r[1], r[2]), ("feedwheel:   " + query, "feedwheel:   " + " " * column + "^"), r)
    equal(list(listed(w)), ["a"])


@each_engine("tried against what is stored, and delivered again: each entry waits once", also=["sqlite"])
def again(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("order", "add", "sec", "wanted", "--to", "file:/nonexistent/x")
        r = w.run("order", "test", "sec", "--limit", "2")
        equal(len(r.stdout.splitlines()), 4, r.stdout)
        holds(r.stdout.splitlines()[-1].startswith("4 entries match since "), r.stdout)
        tried = w.json("order", "test", "wanted", "--since", "1d")
        equal((tried["matches"], len(tried["items"]), tried["query"]), (4, 4, "wanted"))
        equal(w.json("order", "test", "nothing")["matches"], 0)
        w.run("order", "pause", "sec")
        for _ in range(2):
            equal(w.run("order", "replay", "sec", "--since", "1d").stdout, "4 entries wait for order sec\n")
            equal(delivery(w, "sec")["pending_n"], 4)
        equal(w.json("order", "replay", "sec", "--since", "2100-01-01")["matches"], 0)
        w.run("order", "remove", "sec")
        w.run("order", "add", "sec", "wanted", "--to", "file:/nonexistent/x")
        equal(delivery(w, "sec")["pending_n"], 0, "another order of the same name")


def kill_matches(w, n):
    """n of the matches that wait become dead letters."""
    w.sql("UPDATE matches SET dead = 1 WHERE change_id IN (SELECT change_id FROM matches ORDER BY change_id "
          "LIMIT %d)" % n, write=True)


@case("dead letters are listed, and wait again")
def dead(base):
    w = filled(base)
    w.run("order", "add", "sec", "wanted", "--to", HOOK)
    w.run("order", "pause", "sec")
    w.run("order", "replay", "sec", "--since", "1d")
    equal(w.run("order", "dead", "sec").stdout, "")
    kill_matches(w, 3)
    r = w.run("order", "dead", "sec").stdout.splitlines()
    holds(len(r) == 4 and "wanted 0" in r[1], r)
    equal(len(w.run("order", "dead", "sec", "--limit", "2").stdout.splitlines()), 3)
    got = w.json("order", "dead", "sec")
    equal([(m["type"], m["entry"] == m["id"], m["feed"]) for m in got], [("new", True, 1)] * 3)
    equal((delivery(w, "sec")["pending_n"], delivery(w, "sec")["dead_n"]), (1, 3))
    found = [c for c in w.json("doctor")["checks"] if c["check"] == "orders"]
    equal(len(found), 1)
    holds("3 dead letters" in found[0]["found"] and "order retry" in found[0]["remedy"], found)
    equal(w.run("order", "retry", "sec").stdout, "3 entries wait for order sec\n")
    equal((delivery(w, "sec")["pending_n"], delivery(w, "sec")["dead_n"]), (4, 0))
    w.sql("DELETE FROM entries", write=True)
    kill_matches(w, 1)
    holds("(deleted meanwhile)" in w.run("order", "dead", "sec").stdout, "its entry is gone")


@each_engine("entries that wait while no process delivers are named by list, show and doctor, with the time",
             also=["sqlite"])
def unattended(base, engine):
    with store_of(engine, base) as url:
        w = filled(base, url)
        w.run("order", "add", "sec", "wanted", "--to", "file:/nonexistent/x")
        w.run("order", "add", "quiet", "wanted", "--to", "file:/nonexistent/y")
        w.run("order", "pause", "quiet")
        for name in "sec", "quiet":
            w.run("order", "replay", name, "--since", "1d")
        words = "4 entries wait, the oldest since "
        for arguments in ["list"], ["list", "--json"], ["show", "sec"]:
            said = w.run("order", *arguments).stderr
            holds(words in said and "no process delivers" in said, said)
        equal(w.run("order", "show", "quiet").stderr, "", "a paused order")
        holds("unattended_since" in delivery(w, "sec"), "JSON")
        equal([k for k in delivery(w, "quiet") if k.startswith("unattended")], [])
        (level, found, remedy), = order_checks(w)
        equal(level, "note")
        holds(words in found and "start 'feedwheel run' or 'serve'" in remedy, remedy)
        with http_server(base, store=url) as d:
            wait_for("a process that delivers", lambda: "unattended_since" not in delivery(d.feedwheel, "sec"))
            equal(d.feedwheel.run("order", "list").stderr, "")
        holds("unattended_since" in delivery(w, "sec"), "it has ended")


# ---- doctor, copy -----------------------------------------------------------------------------------------

def order_checks(w):
    """doctor's exit code says more than this: tests' servers do not sync."""
    checks = json.loads(w.run("doctor", "--json", code=None).stdout)["checks"]
    return [(c["result"], c["found"], c.get("remedy", "")) for c in checks if c["check"] == "orders"]


@case("doctor names receivers that fail for an hour, and orders that match nothing")
def doctor(base):
    w = Feedwheel(base, ALLOWED)
    w.run("order", "add", "a", "x", "--to", HOOK)
    equal(order_checks(w), [("ok", "1", "")])
    number = json.loads(w.one("SELECT value FROM records WHERE kind = 'order'"))["id"]
    now_ms = int(time.time() * 1000)

    def fails_since(ms):
        w.sql("INSERT OR REPLACE INTO records (kind, record_key, value, at_ms) VALUES ('delivery', ?, ?, 1)",
              str(number).encode(), json.dumps({"failing_since_ms": ms, "status": 500, "error": "500 oh no"}).encode(),
              write=True)
    fails_since(now_ms - HOUR_MS // 2)
    equal(order_checks(w), [("ok", "1", "")])
    fails_since(now_ms - 2 * HOUR_MS)
    (level, found, remedy), = order_checks(w)
    equal(level, "note")
    holds("1 receivers have failed" in found and "500 oh no" in found and "order show" in remedy, found)
    shown = w.run("order", "show", "a").stdout
    holds("500 oh no" in shown and "2 h ago" in shown, shown)
    holds("2 h ago" in w.run("order", "list").stdout, "list")
    w.run("order", "pause", "a")
    equal(order_checks(w)[0][0], "ok", "paused: it does not try")
    w.sql("UPDATE records SET value = ? WHERE kind = 'order'", b"{", write=True)
    (level, found, remedy), = order_checks(w)
    equal(level, "note")
    holds("1 order matches nothing, a among them" in found and "remove it" in remedy, found)
    holds("remove the order" in w.run("order", "show", "a").stderr, "show")
    equal(listed(w)["a"]["state"], "broken")
    complains(w, 2, "is invalid: remove it", "pause", "a")
    w.run("order", "remove", "a")
    equal(order_checks(w), [])


@each_engine("a copy takes orders along, with what waits for them and the dead letters", leave_out=["sqlite"])
def copied(base, engine):
    w = filled(base)
    w.run("order", "add", "sec", "wanted", "--to", HOOK)
    w.run("order", "pause", "sec")
    w.run("order", "replay", "sec", "--since", "1d")
    kill_matches(w, 1)
    with server(engine, base) as s:
        to = Feedwheel(base, store=s.url())
        w.run("copy", w.store, to.store)
        equal(listed(to), listed(w))
        equal((delivery(to, "sec")["pending_n"], delivery(to, "sec")["dead_n"]), (3, 1))
        equal(to.json("order", "show", "sec", "--with-secret"), w.json("order", "show", "sec", "--with-secret"))
        w.run("order", "retry", "sec")
        w.run("copy", "--continue", w.store, to.store)
        equal(listed(to), listed(w))
        w.run("order", "remove", "sec")
        w.run("copy", "--continue", w.store, to.store)
        equal(listed(to), {})
        to.run("order", "add", "sec", "wanted", "--to", HOOK)
        equal(delivery(to, "sec")["pending_n"], 0)


# ---- HTTP -------------------------------------------------------------------------------------------------

@case("over HTTP: the same orders, the secret only when it is made, scope admin", needs="server")
def http(base):
    w = filled(base)
    with http_server(base, store=w.store) as d:
        def ask(code, method, path, body=None, **headers):
            status, got, said = d.request(method, path, json.dumps(body) if body is not None else None,
                                      {k.replace("_", "-"): v for k, v in headers.items()})
            equal(status, code, "%s %s: %s" % (method, path, said))
            return got, said
        got, said = ask(201, "POST", "/v1/orders", {"name": "a.b", "query": "wanted", "to": HOOK})
        equal((got["Location"], got["Cache-Control"], said["secret"][:6]), ("/v1/orders/a.b", "no-store", "whsec_"))
        equal(ask(200, "GET", "/v1/orders/a.b")[1], {"order": said["order"]})
        equal(ask(200, "GET", "/v1/orders")[1], {"orders": w.json("order", "list")})
        equal(w.json("order", "show", "a.b", "--with-secret"), said)
        holds("secret" not in ask(201, "POST", "/v1/orders", {"name": "own", "query": "x", "to": HOOK,
                                                              "secret": SECRET})[1], "the client has it")
        ask(204, "DELETE", "/v1/orders/own")
        for words, body in (
            ("name: missing", {"query": "x", "drop": True}),
            ("query: missing", {"name": "x", "drop": True}),
            ("must have one of to, drop and tag", {"name": "x", "query": "x"}),
            ("must have one of", {"name": "x", "query": "x", "drop": True, "tag": "y"}),
            ("drop: must be true", {"name": "x", "query": "x", "drop": False}),
            ("unknown field: since", {"name": "x", "query": "x", "drop": True, "since": "1d"}),
            ("exists already", {"name": "a.b", "query": "x", "drop": True}),
            ("query, at 1: ", {"name": "x", "query": "titel:x", "drop": True}),
            ("unknown destination", {"name": "x", "query": "x", "to": "ftp://x/"}),
            ("request body: must be an object", [])):
            said = ask(422, "POST", "/v1/orders", body)[1]
            holds(words in said["detail"] and said["code"] == "invalid", said)
        said = ask(200, "POST", "/v1/orders/test", {"query": "wanted", "limit": 2})[1]
        equal((said["matches"], len(said["items"])), (4, 2))
        for body in ({"query": "wanted", "limit": 0}, {"query": "wanted", "since": "whenever"}, {"query": "("}, {}):
            ask(422, "POST", "/v1/orders/test", body)
        equal(ask(200, "PATCH", "/v1/orders/a.b", {"state": "paused"})[1]["order"]["state"], "paused")
        ask(422, "PATCH", "/v1/orders/a.b", {"state": "ended"})
        ask(422, "PATCH", "/v1/orders/a.b", {"query": "x ("})
        equal(ask(200, "POST", "/v1/orders/a.b/replay", {"since": "1d"})[1], {"name": "a.b", "matches": 4})
        kill_matches(w, 3)
        page = ask(200, "GET", "/v1/orders/a.b/dead?limit=2")[1]
        equal((len(page["dead"]), page["next_url"]),
              (2, "/v1/orders/a.b/dead?limit=2&cursor=d%d" % page["dead"][1]["id"]))
        page = ask(200, "GET", page["next_url"])[1]
        equal((len(page["dead"]), "next_url" in page), (1, False))
        equal(ask(200, "POST", "/v1/orders/a.b/retry")[1], {"name": "a.b", "matches": 3})
        holds(ask(200, "POST", "/v1/orders/a.b/rotate")[1]["secret"].startswith("whsec_"), "rotated")
        holds("did you mean 'a.b'?" in ask(404, "GET", "/v1/orders/a.c")[1]["detail"], "suggested")
        ask(404, "GET", "/v1/orders/a%20b")
        ask(404, "GET", "/v1/orders/" + "a" * 65)
        got = ask(405, "PUT", "/v1/orders/a.b")[0]
        equal(got["Allow"], "GET, HEAD, PATCH, DELETE")
        ask(204, "DELETE", "/v1/orders/a.b")
        tokens = {s: w.run("token", "add", s, "--scope", s).stdout.strip() for s in ("read", "admin")}
        wait_for("both tokens count", lambda: all(
            d.request("GET", "/v1/orders", headers={"Authorization": "Bearer " + t})[0] != 401 for t in tokens.values())
            and d.request("GET", "/v1/orders")[0] == 401)
        ask(403, "GET", "/v1/orders", Authorization="Bearer " + tokens["read"])
        ask(403, "POST", "/v1/orders", {"name": "x", "query": "x", "drop": True},
            Authorization="Bearer " + tokens["read"])
        ask(200, "GET", "/v1/orders", Authorization="Bearer " + tokens["admin"])


@case("over HTTP an order with a command or a file is added and changed only with order_commands = http",
      needs="server")
def http_commands(base):
    w = Feedwheel(base, ALLOWED)
    w.run("order", "add", "mine", "x", "--to", "command:/bin/true")
    added = {"name": "new", "query": "x", "to": "file:/tmp/x"}
    for conf, code in (("", 403), ("order_commands = none\n", 403), ("order_commands = http\n", 201)):
        with http_server(base, store=w.store, conf=conf + ALLOWED) as d:
            def ask(code, method, path, body=None):
                status, _, said = d.request(method, path, json.dumps(body) if body is not None else None)
                equal(status, code, "%s %s: %s" % (method, path, said))
                return said
            said = ask(code, "POST", "/v1/orders", added)
            if code == 201:
                ask(200, "PATCH", "/v1/orders/mine", {"query": "y"})
                said = ask(403, "PATCH", "/v1/orders/mine", {"to": "command:/bin/sh"})
                holds("order_programs" in said["detail"] and said["code"] == "permission_denied", said)
                continue
            holds("order_commands = " in said["detail"] and said["code"] == "permission_denied", said)
            for change in ({"query": "y"}, {"changes": True}, {"to": HOOK}):
                ask(403, "PATCH", "/v1/orders/mine", change)
            for state in ("paused", "active"):
                equal(ask(200, "PATCH", "/v1/orders/mine", {"state": state})["order"]["state"], state)
            ask(201, "POST", "/v1/orders", {"name": "hook", "query": "x", "to": HOOK})
            ask(403, "PATCH", "/v1/orders/hook", {"to": "command:/bin/true"})
            ask(404, "PATCH", "/v1/orders/nothing", {"query": "y"})
            ask(204, "DELETE", "/v1/orders/hook")
    equal({n: o["query"] for n, o in listed(w).items()}, {"mine": "y", "new": "x"})
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("order_commands = none\n")
    complains(w, 2, "order_commands = none", "add", "b", "x", "--to", "command:/bin/true")
    complains(w, 2, "order_commands = none", "set", "mine", "--to", "file:/x")
    w.run("order", "set", "mine", "--to", HOOK)


@case("an order with a program or a file that the configuration does not have is refused with the line that is missing")
def not_listed(base):
    w = Feedwheel(base)
    added = ("add", "a", "x", "--to")
    complains(w, 2, "add the line 'order_programs = /usr/bin/logger -t feeds'", *added,
              "command:/usr/bin/logger -t feeds")
    complains(w, 2, "add the line 'order_files = /var/spool/fw/'", *added, "file:/var/spool/fw/%Y%m%d.ndjson")
    complains(w, 2, "add the line 'order_files = /var/spool/all'", *added, "file:/var/spool/all")
    complains(w, 2, "put the command into a script", *added, "command:/bin/echo a,b")
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("order_programs = /usr/bin/logger -t feeds\norder_files = /var/spool/fw/\n")
    complains(w, 2, "append ', /bin/sh' to the line order_programs", *added, "command:/bin/sh")
    complains(w, 2, "append ', /usr/bin/logger -t x'", *added, "command:/usr/bin/logger -t x")
    complains(w, 2, "append ', /etc/'", *added, "file:/etc/%Y")
    complains(w, 2, "append", *added, "file:/var/spool/fw/../../../etc/x")
    w.run(*("order", *added), "command:/usr/bin/logger  -t feeds")
    w.run("order", "set", "a", "--to", "file:/var/spool/fw/%Y%m%d.ndjson")
    complains(w, 2, "append", "set", "a", "--to", "command:/bin/sh")
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("order_files = relative/\n")
    holds("order_files: 'relative/' is not an absolute path" in w.run("order", "list", code=4).stderr, "checked")


run()
