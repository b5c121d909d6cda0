# SPDX-License-Identifier: ISC
"""For the tests of the doors: rows that other programs put into a store, by the clients of the databases."""
import contextlib
import json
import os
import re
import shlex
import subprocess
import urllib.parse

from harness import ROOT, Feedwheel, Server, equal, holds, wait_for

with open(os.path.join(ROOT, "man", "feedwheel-store.7"), encoding="utf-8") as page:
    RECIPES = { # engine and, if it is none of sh, language: script
        tuple(names.split()): text.replace("\\e", "\\") for names, text in re.findall(
            r'^\.\\" recipe ([^\n]*)\n\.Bd -unfilled\n(.*?)^\.Ed$', page.read(), re.M | re.S)}
NAME = "feedwheel" # of the database, the schema: as in the manual's recipes


class Doors:
    """The doors of w's store, through sqlite3, psql, mariadb or redis-cli."""

    def __init__(self, w, engine):
        self.w, self.engine = w, engine
        self.environment, self.client = dict(os.environ), []
        url = urllib.parse.urlsplit(w.store)
        options = dict(urllib.parse.parse_qsl(url.query))
        if engine == "sqlite":
            self.client = ["sqlite3", "-bail", "-cmd", ".timeout 20000", w.path]
        elif engine == "postgres":
            schema = options.pop("schema", "public")
            dsn = url._replace(query=urllib.parse.urlencode(options, safe="/")).geturl()
            self.environment["PGOPTIONS"] = "-c search_path=" + schema
            self.client = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", dsn]
        elif engine == "mysql":
            self.client = ["mariadb", "--no-defaults", "-N", "-B", "-u", "root", "-S", options["socket"],
                           url.path.lstrip("/")]
        else:
            self.client = ["redis-cli", *(["-h", url.hostname, "-p", str(url.port)] if url.hostname else
                                          ["-s", url.path])]
            self.prefix = options.get("prefix", "feedwheel")

    def run(self, text):
        """Run lines of SQL or of Redis commands; the lines of the output."""
        r = subprocess.run(self.client, input=text, capture_output=True, text=True, env=self.environment, check=False)
        if r.returncode or "ERR " in r.stdout:
            raise AssertionError("%s\n%s%s" % (text[:500], r.stdout[-500:], r.stderr[-500:]))
        return r.stdout.splitlines()

    def put(self, urls, **columns):
        """Addresses, all in one transaction; columns: of each row."""
        if self.engine == "redis":
            rows = [json.dumps({"url": u, **columns}) if columns else u for u in urls]
            self.push("feeds_to_fetch", rows)
            return
        names = ", ".join(["url", *columns])
        rows = ["(%s)" % ", ".join(sql_text(v) for v in [u, *columns.values()]) for u in urls]
        self.insert("feeds_to_fetch (%s)" % names, rows)

    def control(self, *commands):
        """Rows of control: "stop", or "stop WORKER"."""
        if self.engine == "redis":
            self.push("control", commands)
            return
        self.insert("control (command, worker)", [
            "(%s, %s)" % (sql_text(c.split(" ")[0]), sql_text(c.split(" ")[1]) if " " in c else "NULL")
            for c in commands])

    def insert(self, into, rows):
        text = "".join("INSERT INTO %s VALUES %s;\n" % (into, ",\n".join(rows[i:i + 1000]))
                       for i in range(0, len(rows), 1000))
        self.run("BEGIN;\n%sCOMMIT;\n" % text)

    def push(self, name, rows):
        key = "%s:%s" % (self.prefix, name)
        self.run("".join("RPUSH %s %s\n" % (key, " ".join(redis_word(r) for r in rows[i:i + 500]))
                         for i in range(0, len(rows), 500)))

    def waiting(self):
        """The number of rows in feeds_to_fetch and control."""
        if self.engine == "redis":
            return sum(int(n) for n in self.run(
                "LLEN %s:feeds_to_fetch\nLLEN %s:control\n" % (self.prefix, self.prefix)))
        return int(self.run("SELECT (SELECT count(*) FROM feeds_to_fetch) + (SELECT count(*) FROM control);")[0])

    def refused(self):
        """The refused rows: url, reason."""
        if self.engine == "redis":
            rows = [json.loads(r) for r in
                    self.run("LRANGE %s:feeds_to_fetch_refused 0 -1\n" % self.prefix) if r]
            return [(r.get("url") or r.get("row"), r["reason"]) for r in rows]
        separator = "\t" if self.engine == "mysql" else "|"
        rows = self.run("SELECT url, reason FROM feeds_to_fetch_refused ORDER BY id;")
        return [tuple(r.split(separator)) for r in rows]

    def recipe(self, url, *language):
        """Run a recipe of feedwheel-store(7), with the address of the feed and of the store."""
        text = RECIPES[(self.engine, *language)]
        places = {"sqlite": ("sqlite3 feeds.db", "sqlite3 " + shlex.quote(self.w.path)),
                  "postgres": ("psql feedwheel", "psql -X -v ON_ERROR_STOP=1 " + shlex.quote(self.client[-1])),
                  "mysql": ("mariadb feedwheel", quoted(self.client)),
                  "redis": ("redis-cli ", quoted(self.client) + " "),
                  "python3": ("socket.create_connection((\"localhost\", 6379))", "connected()"),
                  "ruby": ("TCPSocket.new(\"localhost\", 6379)", "UNIXSocket.new(%s)" % json.dumps(self.client[-1]))}
        for old, new in [("https://example.org/feed.xml", url), places[language[0] if language else self.engine]]:
            holds(old in text, old)
            text = text.replace(old, new)
        if language == ("python3",):
            text = text.replace("\ndef redis", "\ndef connected():\n    s = socket.socket(socket.AF_UNIX)\n"
                                "    s.connect(%r)\n    return s\n\ndef redis" % self.client[-1])
        r = subprocess.run([language[0] if language else "sh", *([] if language else ["-eu"])], input=text, text=True,
                           capture_output=True, env=self.environment, check=False)
        equal((r.returncode, r.stderr), (0, ""), text)
        return r.stdout

    def taken(self):
        wait_for("the rows to be taken", lambda: self.waiting() == 0, 60)


def sql_text(value):
    return str(value) if isinstance(value, int) else "'%s'" % str(value).replace("'", "''")


def redis_word(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


@contextlib.contextmanager
def doors_of(base, engine, conf):
    """A feedwheel with an empty store of this engine, and its doors."""
    with contextlib.ExitStack() as stack:
        url = None
        if engine != "sqlite":
            server = Server(engine, base)
            stack.callback(server.stop)
            url = server.url(NAME)
        w = Feedwheel(base, conf, name="feeds.db", store=url)
        w.run("token", "add", "first", "--scope", "read") # this makes the tables
        yield w, Doors(w, engine)


def workers(w):
    """The names of the running workers."""
    return [x["worker"] for x in w.json("status")["workers"]]


def wait_for_workers(w, n):
    wait_for("%d workers" % n, lambda: len(workers(w)) == n, 60)


def ends(p):
    equal(p.wait(timeout=120), 0, "the run's exit code")


def quoted(command):
    return " ".join(shlex.quote(c) for c in command)
