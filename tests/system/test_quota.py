#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The daily limits of a feed, and too little disk space: neither loses an entry. (Limits of hubs:
test_websub.py.)"""
import contextlib
import http.server
import json
import os
import re
import signal
import socketserver
import subprocess
import threading
import time

from http_server import HttpServer, metric
from harness import Skip, Feedwheel, case, each_engine, equal, holds, let_pass, origin, run, samples, server, wait_for

RSS = '<rss version="2.0"><channel><title>flood</title><link>http://x.example/</link>%s</channel></rss>'
ITEM = "<item><guid>%d</guid><title>%s</title><pubDate>%s</pubDate></item>"


def stamp(at):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(at))


class Page:
    """A web server with one document and its ETag, which keeps the requests."""

    def __init__(self):
        page = self
        self.lock = threading.Lock()
        self.body, self.requests, self.wait = b"", [], None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with page.lock:
                    body, tag = page.body, '"%d"' % hash(page.body)
                    known = self.headers["If-None-Match"]
                    status = 304 if known == tag else 200
                    page.requests.append((self.path, known is not None, status))
                if page.wait:
                    page.wait()
                self.send_response(status)
                self.send_header("ETag", tag)
                self.send_header("Content-Type", "application/rss+xml")
                self.send_header("Content-Length", str(len(body) if status == 200 else 0))
                self.end_headers()
                if status == 200:
                    self.wfile.write(body)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 100

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/feed" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def shows(self, numbers, change=(), words="about %d"):
        """Set the document: entries with these numbers, a higher one is newer. change: entries with
        a changed title."""
        items = (ITEM % (n, words % n + (" anew" if n in change else ""), stamp(1.7e9 + 60 * n)) for n in numbers)
        with self.lock:
            self.body = (RSS % "".join(items)).encode()

    def take_requests(self):
        """The requests since the last call."""
        with self.lock:
            taken, self.requests = self.requests, []
        return taken

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def page():
    p = Page()
    try:
        yield p
    finally:
        p.stop()


def entries(w):
    """The stored entries: {number: title}."""
    found = {}
    for line in w.run("entries", "--jsonl").stdout.splitlines():
        e = json.loads(line)
        found[int(re.search("[0-9]+", e["title"])[0])] = e["title"]
    return found


def visit(w, p):
    """Poll the feed; (had the request a validator, the response's status)."""
    w.run("set", "--due", p.url)
    w.run_once()
    [request] = p.take_requests()
    return request[1:]


def next_day(w):
    equal(w.one("SELECT count(*) FROM records WHERE kind = 'quota'"), 1, "records")
    w.sql("UPDATE records SET until_ms = 1 WHERE kind = 'quota'", write=True)


def quota(w, command="why"):
    return w.json(command, "#1").get("quota")


@case("of a document above the daily limit the newest entries are stored, the rest deferred and stored later")
def entries_of_a_day(base):
    with page() as p:
        w = Feedwheel(base, "feed_daily_entries_max = 25\n")
        p.shows([*range(0, 20), *range(39, 19, -1)]) # the newest is in the middle
        w.run("add", p.url)
        equal(visit(w, p), (False, 200))
        equal(sorted(entries(w)), list(range(15, 40)), "the newest")
        q = quota(w)
        equal((q["new"], q["deferred"]), (25, 15))
        holds(q["bytes"] > 25 * 20, q)
        equal(quota(w, "show"), q)
        for command in ("why", "show"):
            output = w.run(command, "#1").stdout
            holds(re.search("25 new entries and .*: used up until .*; deferred: 15 entries", output), output)
        output = w.run("doctor", code=None).stdout
        note = "^note +quotas +1 feed has .* number 1 among them; deferred entries: 15$"
        holds(re.search(note, output, re.M), output)
        due = w.one("SELECT due_at_ms - last_visit_ms FROM schedule")
        # while entries are deferred no validator is sent; known entries may change
        p.shows(range(40), change=[39, 3])
        equal(visit(w, p), (False, 200))
        equal(visit(w, p), (False, 200))
        got = entries(w)
        equal((sorted(got), got[39]), (list(range(15, 40)), "about 39 anew"))
        equal(quota(w)["deferred"], 15)
        holds(w.one("SELECT due_at_ms - last_visit_ms FROM schedule") > due / 2 > 60000, "polls are as rare as before")
        next_day(w)
        equal(visit(w, p), (False, 200))
        got = entries(w)
        equal((sorted(got), got[3]), (list(range(40)), "about 3 anew"))
        equal(visit(w, p), (True, 304))
        equal(w.sql("SELECT revision, count(*) FROM entries GROUP BY 1 ORDER BY 1"), [(1, 39), (2, 1)])
        equal((quota(w)["new"], quota(w)["deferred"]), (15, 0))
        holds("deferred" not in w.run("why", "#1").stdout, "no entries are deferred")
        holds("quotas" not in w.run("doctor", code=None).stdout, "doctor has no note")


@case("the entries of many small documents are counted together; a feed's first document is not limited")
def entries_of_many(base):
    with page() as p:
        w = Feedwheel(base, "feed_daily_entries_max = 25\n")
        p.shows(range(10))
        w.run("add", p.url)
        visit(w, p)
        equal((len(entries(w)), quota(w)), (10, None), "the first document is not counted")
        for n in range(4):
            p.shows(range(10 * n, 10 * n + 20))
            visit(w, p)
        got = sorted(entries(w))
        equal(got, [*range(10), *range(10, 30), *range(35, 40)]) # 25 after the first; of the last document the newest
        equal(quota(w)["deferred"], 15) # of the last document


@case("bytes above the daily limit are deferred, changes too; an entry larger than the limit is stored")
def bytes_of_a_day(base):
    with page() as p:
        w = Feedwheel(base, "feed_daily_bytes_max = 10000\nfeed_daily_entries_max = 0\n")
        long = "%d " + "x" * 3000
        p.shows(range(8), words=long)
        w.run("add", p.url)
        visit(w, p)
        equal(sorted(entries(w)), [4, 5, 6, 7]) # the last one starts below the limit and exceeds it
        holds(10000 < quota(w)["bytes"] < 10000 + 3500, quota(w))
        p.shows(range(8), words=long, change=[7])
        visit(w, p)
        equal(quota(w)["deferred"], 5)
        holds("anew" not in entries(w)[7], "a change is deferred")
        for day in ([3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]):
            next_day(w)
            visit(w, p)
            equal(sorted(entries(w)), [1, 2, 3, 4, 5, 6, 7] if len(day) == 5 else day)
        holds("anew" in entries(w)[7], "the change is stored later")
        p.shows([9], words="%d " + "x" * 30000) # larger than the limit
        next_day(w)
        visit(w, p)
        holds(9 in entries(w), "a large entry is stored")
        equal(visit(w, p), (True, 304))


@each_engine("entries above the daily limit are deferred and stored later", leave_out=["sqlite"])
def each_store(base, engine):
    with server(engine, base) as s, page() as p:
        w = Feedwheel(base, "feed_daily_entries_max = 25\n", store=s.url())
        p.shows(range(40))
        w.run("add", p.url)
        visit(w, p)
        equal((len(entries(w)), quota(w)["deferred"]), (25, 15))
        p.shows(range(50))
        equal(visit(w, p), (False, 200))
        equal((len(entries(w)), quota(w)["deferred"]), (25, 25))
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("feed_daily_entries_max = 0\n")
        visit(w, p)
        equal(len(entries(w)), 50)
        equal(visit(w, p), (True, 304))


# ---- too little disk space -----------------------------------------------------------------------

HUGE = "disk_free_min_bytes = 1048576GiB\n"
STORE = 3
PUSHED = '{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1","content_text":"x"}]}'


def set_room(w, value):
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("disk_free_min_bytes = %s\n" % value)


@case("with too little disk space nothing is fetched and it is reported; a reload with a lower limit goes on")
def disk_low(base):
    with origin(base, samples(base)) as o:
        w = Feedwheel(base, HUGE)
        w.run("import", o.url_file)
        p = w.start("run", "--workers", "2")
        try:
            wait_for("two warnings", lambda: w.log().count("below disk_free_min_bytes = 1073741824") == 2)
            status = w.run("status").stdout
            line = "^disk +.*store.db: [0-9]+ MiB free .*, below disk_free_min_bytes .*; nothing is fetched meanwhile$"
            holds(re.search(line, status, re.M), status)
            equal(w.json("status")["disk_low"], True)
            wait_for("heartbeats", lambda: len(w.json("status")["workers"]) == 2)
            holds(re.search("^broken +room +.*disk_free_min_bytes", w.run("doctor", code=1).stdout, re.M), "doctor")
            equal(o.requests(), [], "requests")
            set_room(w, 1)
            p.send_signal(signal.SIGHUP)
            wait_for("all visits", lambda: w.one("SELECT count(*) FROM schedule WHERE last_kind = 0") == 0, 60)
        finally:
            p.terminate()
            code = p.wait(timeout=60)
        equal(code, 0, w.last_log())
        equal(w.json("status")["disk_low"], False)
        equal(len(o.requests()), len(o.urls), "requests")


@case("with too little disk space run --once and push fail with the setting's name, and fetch nothing")
def disk_low_once(base):
    with origin(base, samples(base)) as o:
        w = Feedwheel(base, HUGE)
        w.run("import", o.url_file)
        r = w.run("run", "--once", "--quiet", code=STORE)
        holds("disk_free_min_bytes" in r.stderr.splitlines()[-1], r.stderr)
        equal(o.requests(), [], "requests")
        r = w.run("push", "#1", "-", stdin=PUSHED, code=1)
        holds("disk_free_min_bytes" in r.stderr, r.stderr)
        set_room(w, 0)
        w.run_once()
        equal(w.one("SELECT count(*) FROM schedule WHERE last_kind = 0"), 0, "feeds without a visit")


@case("with too little disk space a server answers pushes 503, and the metrics show it", needs="server")
def disk_low_served(base):
    d = HttpServer(base, "--workers", "1", conf=HUGE, command="run")
    try:
        d.feedwheel.run("add", "http://127.0.0.1:9/feed")
        wait_for("the gauge", lambda: metric(d, "workers_disk_low") == 1)
        status, headers, answer = d.push(PUSHED, "/v1/feeds/1/entries")
        equal((status, answer["code"]), (503, "store_unavailable"))
        holds(headers["Retry-After"], headers)
        equal(d.feedwheel.json("show", "#1")["visits"], [], "visits")
    finally:
        d.stop()


@case("when the disk fills up during a visit, it is stored once there is space, and nothing is fetched twice")
def disk_fills(base):
    if os.geteuid():
        raise Skip("only root may mount a small disk")
    folder = os.path.join(base, "disk")
    os.mkdir(folder)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("mount is not permitted here")
    ballast = os.path.join(folder, "ballast")
    filled = threading.Event()
    try:
        with page() as p:
            p.shows(range(40))
            p.wait = filled.wait
            w = Feedwheel(folder, "disk_free_min_bytes = 32MiB\n")
            w.run("add", p.url)
            run_ = w.start("run", "--workers", "1")
            try:
                wait_for("the request", lambda: p.requests)
                with open(ballast, "wb") as f:
                    f.write(bytes(40 << 20))
                wait_for("the warning", lambda: "disk_free_min_bytes" in w.log())
                filled.set()
                w.run("add", p.url + "?other")
                let_pass(3, "nothing may be stored meanwhile")
                equal(w.one("SELECT count(*) FROM entries"), 0, "entries")
                equal(len(p.requests), 1, "requests")
                os.remove(ballast)
                wait_for("the end of the warning", lambda: "there is room on the store's disk again" in w.log())
                wait_for("both documents", lambda: w.one("SELECT count(*) FROM entries") == 80)
                equal(len(p.requests), 2, "requests")
            finally:
                filled.set()
                run_.terminate()
                code = run_.wait(timeout=60)
            equal(code, 0, w.last_log())
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


run()
