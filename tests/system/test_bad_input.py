#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Bad input: one line that names the thing and the remedy, the right exit code, no partial change."""
import contextlib
import gzip
import os
import re
import resource
import sqlite3
import subprocess

from http_server import HttpServer, metric
from pushing import EVENT
from harness import SOON, Feedwheel, case, equal, holds, let_pass, origin, run, samples, wait_for, workers_of

DONE, SOME, USAGE, STORE, CONFIG = range(5) # CONFIG: also a store that can never be opened


def error_is(r, *words, lines=1):
    """stderr has 1 to `lines` lines and these words."""
    text = r.stderr.strip()
    holds(0 < len(text.splitlines()) <= lines, "%d lines: %r" % (len(text.splitlines()), text))
    for word in words:
        holds(word.lower() in text.lower(), "%r is not in %r" % (word, text))


@case("an unknown kind of store is an error that names the known kinds")
def unknown_store(base):
    w = Feedwheel(base)
    r = subprocess.run(w.command("list", "--store", "cloud:somewhere"),
                       capture_output=True, text=True, env=w.environment, check=False)
    equal(r.returncode, CONFIG, "exit code")
    error_is(r, "cloud", "sqlite")


@case("reading a missing store is an error that names the command to create it")
def no_store(base):
    w = Feedwheel(base)
    error_is(w.run("list", code=STORE), "store.db", "feedwheel add")
    error_is(w.run("run", "--once", code=STORE), "store.db")
    equal(os.path.exists(w.path), False, "no store was created")
    error_is(Feedwheel(base, name="no-such-directory.db").run("list", code=STORE), "directory.db")


@case("a file that is no database is refused and left as it is")
def not_a_database(base):
    w = Feedwheel(base)
    with open(w.path, "w", encoding="ascii") as f:
        f.write("these are not the bytes of a database, but there are enough of them to be looked at\n" * 100)
    before = os.path.getsize(w.path)
    error_is(w.run("add", "http://127.0.0.1/feed", code=STORE), "store.db", "not an SQLite database")
    equal(os.path.getsize(w.path), before, "size")


@case("a directory in the place of the store's file is refused")
def directory(base):
    w = Feedwheel(base)
    os.mkdir(w.path)
    error_is(w.run("add", "http://127.0.0.1/feed", code=CONFIG), "store.db")


@case("a store of a newer version is refused and left as it is")
def newer(base):
    w = Feedwheel(base)
    w.run("add", "http://127.0.0.1/feed")
    with contextlib.closing(sqlite3.connect(w.path)) as db:
        db.execute("UPDATE meta SET value = 99999 WHERE name = 'schema'")
        db.commit()
    for command in (["add", "http://127.0.0.1/b"], ["list"], ["run", "--once"]):
        error_is(w.run(*command, code=STORE), "store.db", "newer")
    equal(w.one("SELECT count(*) FROM feeds"), 1)


@contextlib.contextmanager
def damaged(w, table):
    """The first page of a table is overwritten, and put back at the end. Nothing else may have the
    store open at the start."""
    with contextlib.closing(sqlite3.connect(w.path)) as db:
        [(page, size)] = db.execute("SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?",
                                    (table,))
    with open(w.path, "r+b", buffering=0) as f:
        sound = os.pread(f.fileno(), size, (page - 1) * size)
        os.pwrite(f.fileno(), b"\xa5" * size, (page - 1) * size)
    try:
        yield
    finally:
        with open(w.path, "r+b", buffering=0) as f:
            os.pwrite(f.fileno(), sound, (page - 1) * size)


@case("a damaged store ends a run at once, also one that is to go on: one warning of each worker, the remedy, exit 3")
def damaged_run(base):
    w = Feedwheel(base)
    w.run("add", "http://127.0.0.1/feed")
    with damaged(w, "workers"):
        for command in (["run", "--once", "--workers", "1"], ["run", "--workers", "2"]):
            r = w.run(*command, "--quiet", code=STORE)
            error_is(r, "store.db", "the file is damaged", "restore a backup", lines=4)
            holds("the store is unavailable" not in r.stderr, r.stderr)
            for worker in ("worker 0:", "worker 1:"):
                holds(r.stderr.count(worker) <= 1, r.stderr)
            equal(len(re.findall(r"^feedwheel: ", r.stderr, re.M)), 1, r.stderr)
        holds(re.search(r"^broken +store .*damaged", w.run("doctor", code=1).stdout, re.M), "doctor")
    w.run("run", "--once", "--quiet", code=SOME) # only the feed fails


@case("a server with a damaged store says so once, keeps what it has taken, and stores it when the store is mended")
def damaged_server(base):
    server = HttpServer(base, conf="flush_ms = 50\n")
    try:
        w = server.feedwheel
        server.stop()
        with damaged(w, "incoming"):
            server.start()
            equal(server.push([EVENT], path="/v1/events")[0], 202)
            wait_for("the error", lambda: "the file is damaged" in w.last_log())
            wait_for("more attempts", lambda: metric(server, "flush_retries_total") >= 4)
            equal(w.last_log().count("the file is damaged"), 1, w.last_log())
            equal(server.request("GET", "/healthz")[0], 200)
        w.run("add", "http://127.0.0.1/feed") # another process's commit: the server reads the pages anew
        wait_for("the row", lambda: server.stored() == 1)
        holds("pushes: the store answers again" in w.last_log(), w.last_log())
        server.stop()
    finally:
        if server.process.poll() is None:
            server.kill()


@case("a locked store is an error for writers; readers continue")
def locked(base):
    w = Feedwheel(base)
    w.run("add", "http://127.0.0.1/feed")
    with contextlib.closing(sqlite3.connect(w.path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        error_is(w.run("add", "http://127.0.0.1/b", code=STORE), "store.db", "lock")
        equal(len(w.json("list")), 1, "reading continues")
        db.execute("ROLLBACK")
    w.run("add", "http://127.0.0.1/b")


class SmallDisk:
    """A folder with little space for a store, until more_space(): a small file system, or a limit on
    the size of files."""
    KB = 640

    def __init__(self, base, conf=""):
        conf += "disk_free_min_bytes = 0\n" # full to the last byte
        self.path = os.path.join(base, "small")
        os.mkdir(self.path)
        self.mounted = not os.geteuid() and self.mount("size=%dk" % self.KB)
        self.feedwheel = Feedwheel(self.path, conf)
        self.feedwheel.log_file = os.path.join(base, "said")
        if not self.mounted:
            self.limit_files(base)

    def mount(self, options):
        return not subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.path], check=False,
                                  stderr=subprocess.DEVNULL).returncode

    def limit_files(self, base):
        binary = os.path.join(base, "limited")
        with open(binary, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexec prlimit --fsize=%d:unlimited '%s' \"$@\"\n" %
                    (self.KB * 1024, self.feedwheel.binary))
        os.chmod(binary, 0o755)
        self.feedwheel.binary, self.unlimited = binary, self.feedwheel.binary

    def more_space(self, *pids):
        if self.mounted:
            self.mount("remount,size=64m")
            return
        self.feedwheel.binary = self.unlimited
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=False)


class LimitedFiles(SmallDisk):
    """The limit on the size of files, also if a mount is permitted."""
    def mount(self, options):
        return False


BIG = ["--entries", "25", "--bytes", "61000"] # all of it together is far larger than the disk


def check_store(w, o):
    equal(w.one("SELECT count(*) FROM entries"), w.one("SELECT count(DISTINCT feed_id || '/' || url) FROM entries"),
          "duplicates")
    equal(w.one("SELECT count(*) FROM entries"), 25 * len(o.urls), "entries")
    equal(w.sql("PRAGMA integrity_check"), [("ok",)])
    equal(w.leased(), {}, "leases")
    equal(w.one("SELECT count(*) FROM schedule WHERE status <> 0 OR crash_n <> 0"), 0, "feeds with failures")


def full_once(base, kind, *words):
    disk = kind(base, SOON)
    w = disk.feedwheel
    try:
        with origin(base, samples(base, *BIG)) as o:
            w.run("import", o.url_file)
            r = w.run("run", "--once", "--quiet", code=STORE)
            error_is(r, *words, lines=12)
            message = [l for l in r.stderr.splitlines() if not l.startswith("20")]
            holds(message[0].startswith("feedwheel: "), message)
            equal(w.sql("PRAGMA integrity_check"), [("ok",)])
            if disk.mounted:
                holds(
                    re.search(r"^broken +disk +[0-9]+ MiB free\n +-> free some", w.run("doctor", code=1).stdout, re.M),
                    "doctor reports it too")
            disk.more_space()
            for u in o.urls:
                w.run("set", "--due", u, code=None)
            equal(w.run_once()["failed"], 0)
            check_store(w, o)
    finally:
        disk.close()


def full_run(base, kind, word):
    """`run` waits for space and continues without a restart."""
    disk = kind(base)
    w = disk.feedwheel
    try:
        with origin(base, samples(base, *BIG)) as o:
            w.run("import", o.url_file)
            # the lease is longer than the disk is full: fetched documents are kept
            p = w.start("run", "--workers", "2", "--lease-ms", "2m")
            try:
                wait_for("a full disk", lambda: word in w.log())
                let_pass(12, "longer than a --once waits for space")
                disk.more_space(p.pid, *workers_of(p))
                unread = "SELECT count(*) FROM schedule WHERE last_kind = 0"
                wait_for("all feeds to be read", lambda: w.one(unread) == 0, 40)
            finally:
                p.terminate()
                code = p.wait(timeout=60)
            equal(code, 0, w.last_log())
            check_store(w, o)
            equal([r["end"] for r in o.requests() if r["end"] != "ok"], [], "transfers that did not end")
            equal(len(o.requests()), len(o.urls), "each document is fetched once: those in memory are kept")
    finally:
        disk.close()


@case("run --once on a full disk names the reason and leaves a sound store; the run can be repeated at once")
def full_disk(base):
    full_once(base, SmallDisk, "run again")


@case("run --once with a limit on the file size names the reason and leaves a sound store")
def full_file(base):
    full_once(base, LimitedFiles, "ulimit -f")


@case("run on a full disk waits for space and continues")
def full_disk_run(base):
    full_run(base, SmallDisk, "the store is unavailable")


@case("run with a limit on the file size waits and continues without the limit")
def full_file_run(base):
    full_run(base, LimitedFiles, "the store is unavailable")


@case("an invalid URL is an error that names its wrong part")
def invalid_urls(base):
    w = Feedwheel(base)
    for bad, word in (("ftp://example.org/feed", "ftp"), ("http://", "host"), ("file:///etc/passwd", "file"),
                      ("http://a b/", "http"), ("http://example.org:99999/", "port")):
        r = w.run("add", bad, code=None)
        holds(r.returncode in (SOME, USAGE), "%s: exit %d" % (bad, r.returncode))
        error_is(r, word)
    w.run("add", "http://127.0.0.1/good", "ftp://127.0.0.1/bad", code=None)


@case("import names and skips bad lines of a list and of an OPML file")
def lists(base):
    w = Feedwheel(base)
    path = os.path.join(base, "list.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("http://127.0.0.1/a\n\n# a remark\nnot an address at all\nhttp://127.0.0.1/b Title of b\n")
    r = w.run("import", path, code=SOME)
    error_is(r, "list.txt", "4")
    equal(w.one("SELECT count(*) FROM feeds"), 2)
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            '<?xml version="1.0"?><opml version="2.0"><body><outline text="x" xmlUrl="http://127.0.0.1/c"/>'
            '<outline text="bad" xmlUrl="gopher://nowhere"/><outline text="F"><outline xmlUrl="http://127.0.0.1/d"/>'
            '</outline></body></opml>')
    r = w.run("import", path, code=SOME)
    error_is(r, "gopher")
    equal(w.one("SELECT count(*) FROM feeds"), 4)
    equal(w.sql("SELECT folder FROM feeds WHERE url LIKE '%/d'"), [("F",)])
    r = w.run("import", os.path.join(base, "nowhere.opml"), code=None)
    holds(r.returncode in (SOME, USAGE), "exit %d" % r.returncode)
    error_is(r, "nowhere.opml")
    r = w.run("import", "-", stdin="", code=SOME)
    error_is(r, "no feeds")


@case("import takes 10,000 lines at once")
def many(base):
    w = Feedwheel(base)
    r = w.run(
        "import", "-",
        stdin="".join("http://127.%d.%d.%d/f\n" % (1 + i // 60000, i // 250 % 240, 1 + i % 250) for i in range(10000)))
    holds("10" in r.stdout, r.stdout)
    equal(w.one("SELECT count(*) FROM feeds"), 10000)


@case("fetch of an HTML page, junk, an empty document or a 404 names the reason; nothing is stored")
def fetch(base):
    with origin(base, samples(base)) as o:
        w = Feedwheel(base)
        r = w.run("fetch", o.url("/with/html/feed/0"), code=SOME)
        error_is(r, "HTML", "/doc/0", lines=4)
        error_is(w.run("fetch", o.url("/with/bare-html/feed/0"), code=SOME), "HTML", lines=2)
        error_is(w.run("fetch", o.url("/with/junk/feed/0"), code=SOME), "feed")
        error_is(w.run("fetch", o.url("/with/empty/feed/0"), code=SOME), "empty")
        error_is(w.run("fetch", o.url("/with/404/feed/0"), code=SOME), "404", "Not Found", lines=2)
        error_is(w.run("fetch", "http://10.9.8.7/feed", code=SOME), "10.9.8.7", lines=2)
        holds('"version"' in w.run("fetch", o.urls[0]).stdout, "fetch prints JSON Feed")
        equal(os.path.exists(w.path), False, "nothing was stored")


PAGE = (b"<!doctype html><html><head><title>Example &amp; Co</title>"
        b"<link rel=alternate type='application/rss+xml' title=News href='/news.xml'></head><body><p>hi</body></html>")
NO_FEEDS = {
    "page.html": (PAGE, ["an HTML page", '"Example & Co"', "/news.xml", "feedwheel add"]),
    "wide.html": (PAGE.decode().encode("utf-16"), ["an HTML page", "/news.xml"]),
    "packed.html": (gzip.compress(PAGE), ["an HTML page", "/news.xml"]),
    "xhtml.html": (
        b'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title></head>'
        b'</html>',
        ["an HTML page", '"X"']),
    "login.html": (
        b"<html><head><title>Sign in</title></head><form action=/go><INPUT name=p TYPE='password'></form></html>",
        ["an HTML page that asks for a password", '"Sign in"']),
    "piece.html": (b"<b>Fatal error</b>: Uncaught Exception in /srv/index.php:3<br />", ["an HTML page"]),
    "a.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["an image (PNG)"]),
    "a.jpg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", ["an image (JPEG)"]),
    "a.gif": (b"GIF89a\1\0\1\0", ["an image (GIF)"]),
    "a.svg": (
        b'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x">'
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        ["an image (SVG)"]),
    "a.pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", ["a PDF document"]),
    "a.zip": (b"PK\3\4\x14\0\0\0", ["a ZIP archive"]),
    "a.bin": (bytes(range(256)) * 4, ["binary data"]),
    "error.json": (b'{"error":"rate limited"}', ["JSON that is not a feed", "rate limited"]),
    "list.json": (b'[1, 2, {"version": "x"}]', ["JSON that is not a feed"]),
    "cut.json": (b'{"a": "b', ["broken JSON", "line 1"]),
    "nothing": (b"", ["empty"]),
    "space": (b" \n\t\r\n <!-- and a remark -->\n", ["empty"]),
    "mark": (b"\xef\xbb\xbf", ["empty"]),
    "list.opml": (
        b'<?xml version="1.0"?><!DOCTYPE opml><opml version="2.0"><body><outline xmlUrl="http://a.example/"/></body>'
        b'</opml>',
        ["a list of subscriptions (OPML)", "feedwheel import"]),
    "sitemap.xml": (
        b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url/></urlset>',
        ["a sitemap"]),
    "soap.xml": (
        b'<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"/>',
        ["an XML document", "Envelope"]),
    "error.txt": (
        b"Service Temporarily Unavailable, ask again\nlater\n",
        ["plain text", "Service Temporarily Unavailable, ask again"]),
    "escape.txt": (b"\x1b[2J\x1b]0;owned\x07 oops" + b" and more" * 100, ["plain text"]),
    "bad.gz": (b"\x1f\x8b\x08\0" + b"this is no deflate stream at all", ["gzip", "cannot be unpacked"]),
    "text.gz": (gzip.compress(b"Not found\n"), ["plain text", "Not found"]),
}


@case("a document that is no feed: parse and fetch name its kind, and the feeds of an HTML page")
def no_feeds(base):
    docs = os.path.join(base, "docs")
    os.mkdir(docs)
    for name, (content, _) in NO_FEEDS.items():
        with open(os.path.join(docs, name), "wb") as f:
            f.write(content)
    w = Feedwheel(base)
    with origin(base, docs) as o:
        for name, (content, expected) in NO_FEEDS.items():
            for how in (["parse", os.path.join(docs, name)], ["parse", "-"], ["fetch", o.url("/doc/" + name)]):
                r = subprocess.run(w.command(*how), input=content, capture_output=True,
                                   env=w.environment, check=False, timeout=120)
                output = r.stderr.decode()
                equal([r.returncode, r.stdout], [SOME, b""], "%s: %s" % (how, output))
                for word in ["not a feed", *expected]:
                    holds(word in output, "%s: %r is not in %r" % (how, word, output))
                holds("\x1b" not in output and "\x07" not in output, output)
                equal(len(output.splitlines()), 4 if "/news.xml" in output else 2 if "import" in output else 1, output)
    equal(os.path.exists(w.path), False, "nothing was stored")


@case("the error of a limit names the setting, its value and the option that changes it")
def limits(base):
    w = Feedwheel(base)
    item = "<item><guid>%d</guid><title>t</title></item>"
    text = "<rss version='2.0'><channel><title>T</title>" + "".join(item % i for i in range(2000)) + "</channel></rss>"
    packed = os.path.join(base, "packed.gz")
    with open(packed, "wb") as f:
        f.write(gzip.compress(text.encode()))
    error_is(
        w.run("parse", "--max-body-bytes", "20000", packed, code=SOME), "max_bytes", "20000",
        "(to raise it, give --max-body-bytes SIZE)")
    error_is(
        w.run("parse", "--max-body-bytes", "20000", "-", stdin=text, code=None), "max_body_bytes", "20000",
        "(to raise it, give --max-body-bytes SIZE)")
    r = w.run("parse", "--max-entries", "5", "-", stdin=text)
    holds("more than 5 entries (max_entries)" in r.stdout and '"dropped": 1995' in r.stdout, r.stdout[-500:])
    with origin(base, base) as o:
        error_is(
            w.run("fetch", "--max-body-bytes", "20000", o.url("/doc/packed.gz"), code=SOME), "max_body_bytes", "20000")


@case("a store without feeds: run --once names the command to add one; list is empty")
def zero(base):
    w = Feedwheel(base)
    w.run("add", "http://127.0.0.1/x")
    w.run("remove", "http://127.0.0.1/x")
    r = w.run("run", "--once", code=DONE)
    error_is(r, "no feeds", "add", lines=2)
    equal(w.json("list"), [])
    equal(w.json("run", "--once")["feeds"], 0)


@case("unknown commands, options, settings and a missing configuration are errors with a suggestion")
def suggestions(base):
    w = Feedwheel(base)
    error_is(w.run("improt", "x", code=USAGE), "improt", "import", lines=2)
    error_is(w.run("list", "--failling", code=USAGE), "failling", "failing", lines=2)
    error_is(w.run("entries", "--limit", "many", code=USAGE), "limit", "many", lines=2)
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("connect_timout_ms = 3\n")
    error_is(w.run("list", code=CONFIG), ".conf:", "connect_timout_ms", "connect_timeout_ms")
    error_is(w.run("--config", os.path.join(base, "none.conf"), "list", code=CONFIG), "none.conf")


run()
