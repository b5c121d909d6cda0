#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""JSON of every command: one document with --json, one object per line with --jsonl; names and times
have one form everywhere."""
import json
import os
import re
import signal
import subprocess

from http_server import http_server, free_port
from harness import FEEDWHEEL, Feedwheel, case, equal, holds, origin, run, samples, wait_for

NAME = re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ALMOST = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d\S*)?") # a time, perhaps of another form
NUMBERS = ("run", "event") # they grow with time and may look like a time
HTTP_DATES = ("last_modified",) # a validator: the bytes of the server
COUNTS = (("status", "due"),) # a number of feeds
DURATION = re.compile(r".*_(ms|us|s)")
EPOCH = 10 ** 11 # three years in ms: longer than any duration
LIST = ("add", "export", "remove", "set", "pause", "resume", "list", "folders",
        "entries", "changes", "events", "fetch-now", "order", "token", "user", "websub", "timeline")


def objects(doc, path=""):
    """Each object of a document, with its path."""
    if isinstance(doc, dict):
        yield path, doc
    for name, v in doc.items() if isinstance(doc, dict) else enumerate(doc) if isinstance(doc, list) else ():
        yield from objects(v, "%s/%s" % (path, name))


def check(doc, what, times):
    """times: the names of all times so far; a member with such a name is always a time."""
    for path, o in objects(doc):
        for name, v in o.items():
            where = "%s: %s/%s = %r" % (what, path, name, v)
            holds(NAME.fullmatch(name), "a wrong form of a name: " + where)
            if isinstance(v, str) and name not in HTTP_DATES and ALMOST.fullmatch(v):
                holds(TIME.fullmatch(v), "a wrong form of a time: " + where)
                times.add(name)
            if isinstance(v, (int, float)) and not isinstance(v, bool) and name not in NUMBERS:
                holds(not DURATION.fullmatch(name) or abs(v) < EPOCH, "a moment as a number: " + where)
                holds(not 10 ** 12 < v < 10 ** 13 and not 10 ** 15 < v < 10 ** 16, "a moment as a number: " + where)
                holds(name not in times or (what, name) in COUNTS, "a number here, a time elsewhere: " + where)


class Walk:
    """Runs commands with --json and checks the output of each."""

    def __init__(self, w):
        self.w, self.seen, self.times = w, set(), set()

    def __call__(self, *arguments, code=0, stdin=None):
        r = self.w.run(*arguments, "--json", code=code, stdin=stdin)
        self.seen.add(arguments[0])
        return self.checked(r.stdout, " ".join(arguments))

    def checked(self, text, what):
        doc = json.loads(text)
        holds(isinstance(doc, (dict, list)), what)
        check(doc, what, self.times)
        return doc

    def lines(self, *arguments, stdin=None):
        """The same with --jsonl, for lists."""
        r = self.w.run(*arguments, "--jsonl", stdin=stdin)
        self.seen.add(arguments[0] + " --jsonl")
        holds("\n\n" not in r.stdout and r.stdout[-1:] in ("", "\n"), repr(r.stdout[-100:]))
        found = [json.loads(line) for line in r.stdout.splitlines()]
        holds(all(isinstance(f, dict) for f in found), " ".join(arguments))
        check(found, " ".join(arguments), self.times)
        return found

    def both(self, *arguments):
        """For a command that only reads: its list is the same in both forms."""
        found = self(*arguments)
        equal(self.lines(*arguments), found, " ".join(arguments))
        return found


def commands():
    reported = json.loads(subprocess.run([FEEDWHEEL, "help", "--json"], capture_output=True, check=True).stdout)
    return reported["commands"]


def subscriptions(j, o):
    a, b, c, gone = o.urls[:4]
    added = j("add", a, b)
    equal([sorted(f) for f in added], [["existed", "id", "url"]] * 2)
    equal([(f["id"], f["url"], f["existed"]) for f in added], [(1, a, False), (2, b, False)])
    equal(j.lines("add", b, "--folder", "x"), [{"id": 2, "url": b, "existed": True}])
    got = j("import", "-", stdin="%s\n%s The third\nno address at all\n" % (a, c), code=1)
    equal({k: got[k] for k in ("added", "existed", "refused", "repaired")},
          {"added": 1, "existed": 1, "refused": 1, "repaired": 0})
    equal([(f["id"], f["existed"]) for f in got["feeds"]], [(1, True), (3, False)])
    got = j("set", "--folder", "news", "--interval", "2h", a, c)
    equal([(f["id"], f["folder"], f["interval_ms"]) for f in got], [(1, "news", 7200000), (3, "news", 7200000)])
    equal([f["title"] for f in j.lines("set", "--title", "T", b)], ["T"])
    equal([(f["id"], f["status"]) for f in j("pause", c)], [(3, "paused")])
    equal([f["status"] for f in j.lines("resume", c)], ["active"])
    equal(j.lines("pause", c)[0]["status"], "paused")
    equal(j("resume", c)[0]["status"], "active")
    # POST /v1/feeds accepts it: see same_as_http()
    equal(j.both("export"), [{"url": a, "folder": "news", "interval_ms": 7200000}, {"url": b, "title": "T"},
                             {"url": c, "title": "The third", "folder": "news", "interval_ms": 7200000}])
    j("add", gone)
    equal(j("remove", gone), [{"id": 4, "url": gone, "entries": 0}])
    j("add", gone)
    equal([f["url"] for f in j.lines("remove", gone)], [gone])


def collected(j, base, o):
    equal(j("plan", "--compare")["feeds"], 3)
    summary = j("run", "--once")
    equal((summary["feeds"], summary["read"], summary["failed"], summary["failures"]), (3, 3, 0, {}))
    feeds = j.both("list")
    equal([f["folder"] for f in j.both("folders")], sorted(f["folder"] for f in j("folders")))
    equal([f["state"] for f in feeds], ["ok"] * 3)
    holds({"created", "due", "last_visit", "last_ok"} < j.times, j.times)
    shown = j("show", feeds[0]["url"])
    equal((shown["feed"], shown["visits"][0]["result"]), (feeds[0], "ok"))
    equal(j("why", feeds[0]["url"])["due"], feeds[0]["due"])
    entries = j("entries", "--content")
    equal(j.lines("entries", "--content"), entries["items"])
    holds(len(entries["items"]) > 3, entries)
    entry = str(entries["items"][0]["_store"]["entry"])
    equal(j("read", entry), entries["items"][0])
    equal([(v["revision"], v["item"]) for v in j("read", entry, "--revisions")], [(1, entries["items"][0])])
    listed = j("changes", "--content")
    *changes, place = j.lines("changes", "--content")
    equal({"changes": changes, **place}, listed)
    equal([c["item"] for c in changes], sorted(entries["items"], key=lambda i: i["_store"]["entry"]))
    equal({c["type"] for c in changes}, {"new"})
    equal(j.w.run("changes", "--follow", "--json", code=2).stdout, "")
    runs = j.both("timeline", "--list")
    equal([(r["run"], r["fetches"]) for r in runs], [(summary["run"], 3)])
    picture = os.path.join(base, "run.svg")
    for more in ([], ["-o", picture]):
        reported = j("timeline", *more)
        equal((reported["run"], reported["fetches"], reported["failed"], reported.get("file")),
              (summary["run"], 3, 0, picture if more else None))
        holds(reported["verdict"], reported)
    holds(os.path.exists(picture), "the picture")
    equal(j.w.run("timeline", "--json", "-o", "-", code=2).stdout, "")
    path = os.path.join(base, "one.jsonl")
    with open(path, "w", encoding="ascii") as f:
        f.write('{"id":"mine","content_text":"hi"}\n' * 2)
    pushed = j("push", feeds[0]["url"], path)
    equal(
        (pushed.pop("visit")["result"], pushed),
        ("pushed", {"feed": 1, "entries": 2, "new": 1, "changed": 0, "known": 0, "repeated": 1}))
    with open(os.path.join(base, "docs", sorted(os.listdir(base + "/docs"))[0]), encoding="utf-8") as f:
        document = f.read()
    equal(j("parse", "-", stdin=document), json.loads(j.w.run("parse", "-", stdin=document).stdout))
    holds(j("fetch", "--whole", o.urls[0])["items"], "a document")
    copy = os.path.join(base, "copy.db")
    equal(j("copy", j.w.store, "sqlite:" + copy)["feeds"], 3)


def events(j):
    row = {"id": 5 << 22, "property": "news", "property_section": 1, "property_id": 7, "remote_ip": "127.0.0.1",
           "stamp": 1795000000123}
    j.w.sql(
        "INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp) VALUES (?,?,?,?,?,?)",
        4 << 22, "news", 1, 2, "127.0.0.1", 1795000000123, write=True)
    for i, text in enumerate((json.dumps(row), "what is that?")):
        j.w.sql("INSERT INTO dead_letters (id, at_ms, reason, event) VALUES (?,?,?,?)",
                (5 + i) << 22, 1795000000456, "it was full", text, write=True)
    want = {"event": 4 << 22, "at": "2026-11-18T11:06:40.123Z", "property": "news", "section": 1, "id": 2,
            "remote_ip": "127.0.0.1"}
    equal(j.both("events"), [want])
    letters = j.both("events", "--dead-letters")
    equal([d["event"] >> 22 for d in letters], [5, 6])
    equal(letters[0]["row"], {**want, "event": 5 << 22, "id": 7})
    equal((letters[1]["row"], letters[1]["since"], letters[1]["reason"]),
          ("what is that?", "2026-11-18T11:06:40.456Z", "it was full"))
    equal(j("events", "--retry", code=1), {"stored": 1, "refused": 1})


def workers(j):
    equal(j("stop"), {"workers_notified": 0})
    p = j.w.start("run")
    wait_for("its worker", lambda: j("status")["workers"])
    equal(j("pause", "--all"), {"workers_notified": 1})
    equal([(f["id"], f["scheduled"]) for f in j("fetch-now", "--again", "1", "2")], [(1, True), (2, True)])
    equal(j.lines("resume", "--all"), [{"workers_notified": 1}])
    got = j.lines("fetch-now", "--again", "--wait", "1")
    equal(
        [(f["id"], f["scheduled"], f["visit"]["error"] if "error" in f["visit"] else None) for f in got],
        [(1, True, None)])
    equal([(f["id"], f["scheduled"]) for f in j("fetch-now", "1")], [(1, False)])
    equal(j("stop"), {"workers_notified": 1})
    equal(p.wait(60), 0)


def server(j):
    """serve prints its JSON when it ends, as `run` does."""
    p = subprocess.Popen(j.w.command("serve", "--json", "--listen", "127.0.0.1:%d" % free_port()),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=j.w.environment)
    try:
        while "listening on" not in p.stderr.readline():
            equal(p.poll(), None)
        p.send_signal(signal.SIGTERM)
        output = p.communicate(timeout=60)[0]
    finally:
        p.kill()
    j.seen.add("serve")
    equal(sorted(j.checked(output, "serve")), ["cpu_ms", "elapsed_ms", "max_rss_bytes", "restarts", "started"])


def orders(j):
    made = j("order", "add", "o", "word", "--to", "https://hooks.example.org/x")
    equal(sorted(made), ["order", "secret"])
    holds(made["secret"].startswith("whsec_"), made)
    equal(j("order", "show", "o"), {"order": made["order"]})
    equal(j.both("order", "list"), [made["order"]])
    equal(j("order", "set", "o", "--query", "-word")["order"]["query"], "-word")
    equal(j("order", "pause", "o")["order"]["state"], "paused")
    equal(sorted(j("order", "test", "word")), ["items", "matches", "query", "since"])
    equal(j("order", "replay", "o", "--since", "1m")["name"], "o")
    equal(j("order", "retry", "o"), {"name": "o", "matches": 0})
    equal(j.both("order", "dead", "o"), [])
    equal(j.lines("order", "remove", "o"), [{"name": "o"}])


@case(
    "every command has --json, every list --jsonl; names have one form, times are ISO 8601 in UTC, never "
    "numbers", needs="server")
def walk(base):
    table = commands()
    with origin(base, samples(base)) as o:
        j = Walk(Feedwheel(base))
        subscriptions(j, o)
        collected(j, base, o)
        events(j)
        workers(j)
        server(j)
    made = j("token", "add", "t", "--scope", "push", "--feed", "1", "--days", "2")
    equal((made["name"], made["scopes"], made["feeds"], made["properties"]), ("t", ["push"], [1], []))
    holds(made["token"].startswith("fwt_") and {"created", "until"} < j.times, made)
    listed = j.both("token", "list")
    equal(listed, [{**{k: v for k, v in made.items() if k != "token"}, "valid": True}])
    equal(j.lines("token", "remove", "t"), [{"name": "t"}])
    equal(j("token", "list"), [])
    equal(j("user", "add", "alice", stdin="correct horse\n"), {"name": "alice"})
    made = j("user", "token", "alice", "phone")
    holds(made["name"] == "alice" and made["client"] == "phone" and len(made["token"]) == 43, made)
    listed = j.both("user", "list")
    equal([(a["name"], a["admin"], a["feeds"], a["tokens"]) for a in listed], [("alice", False, 0, 1)])
    equal([(t["name"], t["kind"]) for t in j("user", "tokens", "alice")], [("phone", "client")])
    equal(j("user", "revoke", "alice", "phone"), {"name": "alice", "client": "phone"})
    equal(j("user", "passwd", "alice", stdin="another horse\n"), {"name": "alice"})
    equal(j("user", "set", "alice", "--admin"), {"name": "alice"})
    equal(j("user", "remove", "alice"), {"name": "alice"})
    orders(j)
    equal(j("websub", "off", "2"), {"feed": 2, "url": j("list")[1]["url"], "on": False})
    equal(j.both("websub"), []) # test_websub.py has some
    equal(j("doctor")["checks"][0]["check"], "configuration")
    equal(j("version")["version"] in j.w.run("version").stdout, True)
    equal([s["name"] for s in j("help", "settings")["settings"]][:2], ["store", "store_file"])
    equal(j("help", "list")["name"], "list")
    j("help")
    equal(sorted(c["name"] for c in table if c["name"] not in j.seen), [], "commands without --json")
    for c in table:
        options = {x["name"] for x in c["options"]}
        holds("json" in options, c["name"])
        equal("jsonl" in options, c["name"] in LIST, c["name"])
        equal(c["name"] + " --jsonl" in j.seen, c["name"] in LIST, c["name"])


@case("a failure with --json has the same exit code and stderr as without, and an empty stdout")
def failures(base):
    w = Feedwheel(base)
    broken = os.path.join(base, "broken.conf")
    with open(broken, "w", encoding="ascii") as f:
        f.write("wrokers = 2\n")
    def failed(code, *arguments):
        plain = w.run(*[a for a in arguments if a not in ("--json", "--jsonl")], code=code)
        r = w.run(*arguments, code=code)
        equal((r.stdout, r.stderr), ("", plain.stderr), " ".join(arguments))
        holds(r.stderr, arguments)
    failed(3, "list", "--json")
    failed(3, "status", "--json")
    w.run("add", "https://a.example/")
    failed(1, "show", "--json", "nothing")
    failed(1, "remove", "--jsonl", "nothing")
    failed(1, "set", "--json", "--due", "https://a.example/", "nothing")
    failed(1, "fetch-now", "--json", "nothing")
    failed(2, "list", "--json", "--limit", "no")
    failed(2, "entries", "--jsonl", "--since", "whenever")
    failed(1, "token", "remove", "--json", "nobody")
    failed(1, "timeline", "--json", "--run", "7", "-o", base + "/x.svg")
    failed(1, "parse", "--json", broken)
    failed(4, "list", "--json", "--config", broken)
    failed(4, "list", "--json", "--store", "what:ever")
    for name in LIST:
        r = w.run(name, "--json", "--jsonl", "x", code=2)
        equal(r.stdout, "")
        holds("--json and --jsonl exclude each other" in r.stderr or "unexpected argument" in r.stderr, r.stderr)
    # an empty list is printed as a list
    equal(w.json("entries")["items"], [])
    equal(w.json("events"), [])
    equal(w.json("changes"), {"changes": [], "next": "0", "more": False})
    equal(w.run("events", "--jsonl").stdout, "")


@case("the command line and the HTTP interface use the same names", needs="server")
def same_as_http(base):
    with http_server(base) as d:
        w = d.feedwheel
        _, _, one = d.request("POST", "/v1/feeds",
                          '{"url":"https://example.org/feed.xml","folder":"a","interval_ms":7200000}')
        reported = w.json("add", "https://example.org/feed.xml")[0]
        equal({k: one[k] for k in reported if k != "existed"}, {k: v for k, v in reported.items() if k != "existed"})
        equal(set(one) - set(reported), {"location"})
        equal(d.request("GET", "/v1/feeds")[2]["feeds"], w.json("list"))
        equal(d.request("GET", "/v1/feeds/1")[2], w.json("show", "1"))
        path = os.path.join(base, "x.jsonl")
        item = '{"id":"%s","content_text":"hi"}'
        with open(path, "w", encoding="ascii") as f:
            f.write(item % "b")
        _, _, pushed = d.request("POST", "/v1/feeds/1/entries", item % "a", {"Content-Type": "application/x-ndjson"})
        equal(set(pushed) - set(w.json("push", "1", path)), {"format"})
        equal(d.request("GET", "/v1/entries?content=yes")[2]["items"], w.json("entries", "--content")["items"])
        # HTTP accepts an export
        kept = w.json("export")
        w.run("remove", "1")
        equal(d.request("POST", "/v1/feeds", json.dumps(kept))[0], 201)
        equal(w.json("export"), kept)
        equal(d.push({"property": "news", "section": 3, "id": 9})[0], 200)
        event = w.json("events")[0]
        equal({k: event[k] for k in ("property", "section", "id")}, {"property": "news", "section": 3, "id": 9})
        times = set()
        for path in ("/v1/feeds", "/v1/feeds/2", "/v1/entries", "/v1/timings", "/v1/ring", "/healthz", "/readyz"):
            status, _, body = d.request("GET", path)
            equal(status, 200, path)
            check(body, path, times)
        holds({"created", "due"} <= times, times)


run()
