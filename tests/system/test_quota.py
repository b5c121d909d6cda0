#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A disk that is nearly full: a limit that loses nothing."""
import contextlib
import http.server
import os
import re
import signal
import socketserver
import subprocess
import threading
import time

from door import Door, metric
from harness import Skip, Wheel, case, equal, holds, origin, run, samples, wait_for

RSS = '<rss version="2.0"><channel><title>flood</title><link>http://x.example/</link>%s</channel></rss>'
ITEM = "<item><guid>%d</guid><title>%s</title><pubDate>%s</pubDate></item>"


def stamp(at):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(at))


class Page:
    """A web server with one document, that knows ETag, and notes what it was asked."""

    def __init__(self):
        page = self
        self.lock = threading.Lock()
        self.body, self.asked, self.wait = b"", [], None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                with page.lock:
                    body, tag = page.body, '"%d"' % hash(page.body)
                    known = self.headers["If-None-Match"]
                    status = 304 if known == tag else 200
                    page.asked.append((self.path, known is not None, status))
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

    def shows(self, numbers):
        """Entries of these numbers; the higher the newer, in any order."""
        items = (ITEM % (n, "about %d" % n, stamp(1.7e9 + 60 * n)) for n in numbers)
        with self.lock:
            self.body = (RSS % "".join(items)).encode()

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


HUGE = "disk_free_min_bytes = 1048576GiB\n"
STORE = 3
PUSHED = '{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1","content_text":"x"}]}'


def set_room(w, value):
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("disk_free_min_bytes = %s\n" % value)


@case("too little room on the disk: nothing is fetched, it is said, and a reload with less to be kept goes on")
def disk_low(base):
    with origin(base, samples(base)) as o:
        w = Wheel(base, HUGE)
        w.run("import", o.url_file)
        p = w.start("run", "--workers", "2")
        try:
            wait_for("words", lambda: w.words().count("disk_free_min_bytes keeps 1073741824") == 2)
            status = w.run("status").stdout
            holds(re.search("^disk +.*store.db: [0-9]+ MiB are free .*, disk_free_min_bytes .*; entries wait$", status, re.M), status)
            equal(w.json("status")["disk_low"], True)
            wait_for("signs of life", lambda: len(w.json("status")["workers"]) == 2)
            holds(re.search("^broken +room +.*disk_free_min_bytes", w.run("doctor", code=1).stdout, re.M), "doctor")
            equal(o.requests(), [], "requests")
            set_room(w, 1)
            p.send_signal(signal.SIGHUP)
            wait_for("work", lambda: w.one("SELECT count(*) FROM wheel WHERE last_kind = 0") == 0, 60)
        finally:
            p.terminate()
            code = p.wait(timeout=60)
        equal(code, 0, w.last_words())
        equal(w.json("status")["disk_low"], False)
        equal(len(o.requests()), len(o.urls), "each once")


@case("too little room: a run --once gives up with words, and fetches nothing; one that pushes is told to come later")
def disk_low_once(base):
    with origin(base, samples(base)) as o:
        w = Wheel(base, HUGE)
        w.run("import", o.url_file)
        r = w.run("run", "--once", "--quiet", code=STORE)
        holds("disk_free_min_bytes" in r.stderr.splitlines()[-1], r.stderr)
        equal(o.requests(), [], "requests")
        r = w.run("push", "#1", "-", stdin=PUSHED, code=1)
        holds("disk_free_min_bytes" in r.stderr, r.stderr)
        set_room(w, 0)
        w.run_once()
        equal(w.one("SELECT count(*) FROM wheel WHERE last_kind = 0"), 0, "visited")


@case("too little room for a server: pushes are answered 503, and a worker beside it says so in the metrics", needs="server")
def disk_low_served(base):
    d = Door(base, "--workers", "1", conf=HUGE, command="run")
    try:
        d.wheel.run("add", "http://127.0.0.1:9/feed")
        wait_for("the gauge", lambda: metric(d, "workers_disk_low") == 1)
        status, headers, answer = d.push(PUSHED, "/v1/feeds/1/entries")
        equal((status, answer["code"]), (503, "store_away"))
        holds(headers["Retry-After"], headers)
        equal(d.wheel.json("show", "#1")["visits"], [], "visits")
    finally:
        d.stop()


@case("a disk that fills up while a visit is under way: it is kept till there is room, and nothing is asked twice")
def disk_fills(base):
    if os.geteuid():
        raise Skip("only root may mount a small disk")
    folder = os.path.join(base, "disk")
    os.mkdir(folder)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("nothing may be mounted here")
    ballast = os.path.join(folder, "ballast")
    filled = threading.Event()
    try:
        with page() as p:
            p.shows(range(40))
            p.wait = filled.wait
            w = Wheel(folder, "disk_free_min_bytes = 32MiB\n")
            w.run("add", p.url)
            run_ = w.start("run", "--workers", "1")
            try:
                wait_for("the request", lambda: p.asked)
                with open(ballast, "wb") as f:
                    f.write(bytes(40 << 20))
                wait_for("words", lambda: "disk_free_min_bytes" in w.words())
                filled.set()
                w.run("add", p.url + "?other")
                time.sleep(3) # a wait for nothing: what is kept shows nowhere
                equal(w.one("SELECT count(*) FROM entries"), 0, "entries")
                equal(len(p.asked), 1, "requests")
                os.remove(ballast)
                wait_for("words", lambda: "there is room on the store's disk again" in w.words())
                wait_for("work", lambda: w.one("SELECT count(*) FROM entries") == 80)
                equal(len(p.asked), 2, "requests")
            finally:
                filled.set()
                run_.terminate()
                code = run_.wait(timeout=60)
            equal(code, 0, w.last_words())
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


run()
