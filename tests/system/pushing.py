# SPDX-License-Identifier: ISC
"""Clients that push events, and what a store holds of them, told by the database itself."""
import http.client
import json
import subprocess
import threading

from harness import equal, holds, let_pass
from servers import REDIS

EVENT = {"property": "news", "section": 1, "id": 1}
TWIRP = "/twirp/stats.StatsService/Push"
DURABLE = "/v1/events?ack=durable"


class Load:
    """Clients that push one event after another, each with an id of its own, and note what was
    promised and what they do not know."""

    def __init__(self, d, clients=8, path=TWIRP, pause=0):
        self.http_server, self.path, self.pause = d, path, pause
        self.promised, self.unknown, self.wrong, self.refused = set(), set(), [], 0
        self.on, self.lock, self.next_id = True, threading.Lock(), 0
        self.threads = [threading.Thread(target=self.client, daemon=True) for _ in range(clients)]
        for t in self.threads:
            t.start()

    def number(self):
        with self.lock:
            self.next_id += 1
            return self.next_id

    def answered(self, i, r):
        with self.lock:
            if r.status == 200 or (r.status == 202 and self.path != DURABLE): # 202: queued
                self.promised.add(i)
            elif r.status == 503 and r.headers["Retry-After"]:
                self.refused += 1
            else:
                self.wrong.append("%d %s" % (r.status, r.headers))

    def client(self):
        c = None
        while self.on:
            i = self.number()
            try:
                c = c or self.http_server.connect(5)
                c.request("POST", self.path, json.dumps(dict(EVENT, id=i)))
                r = c.getresponse()
                r.read()
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.unknown.add(i) # it may have come through
                c = c and c.close()
                let_pass(0.05, "a client's pause after a broken connection")
                continue
            self.answered(i, r)
            let_pass(self.pause if r.status in (200, 202) else 0.05, "a client's pause")
            if r.headers.get("Connection") == "close":
                c = c.close()
        if c:
            c.close()

    def stop(self):
        self.on = False
        for t in self.threads:
            t.join()

    def check(self, rows):
        """rows: property_id of each that is stored."""
        equal(self.wrong, [], "answers that are neither a promise nor 503 with Retry-After")
        holds(self.promised, "something was promised")
        equal(len(rows), len(set(rows)), "stored once each")
        lost = self.promised - set(rows)
        equal(lost, set(), "lost, of %d promised and %d stored" % (len(self.promised), len(rows)))
        alien = set(rows) - self.promised - self.unknown
        equal(alien, set(), "stored and refused")
        print("# %d promised, %d not known, %d refused, %d stored" %
              (len(self.promised), len(self.unknown), self.refused, len(rows)))


def items(d):
    return [r[0] for r in d.feedwheel.sql("SELECT property_id FROM incoming")]


class Tables:
    """The tables of a store by the database's own client, around everything of ours."""

    def __init__(self, engine, url, d=None):
        self.engine, self.url, self.http_server = engine, url, d

    def said(self, *argv):
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]

    def sql(self, words, write=False):
        """Lines of the first column."""
        if self.engine == "sqlite":
            return [r[0] for r in self.http_server.feedwheel.sql(words, write=write)]
        if self.engine == "postgres":
            host, name = self.url.split("host=")[1].split("&schema=")
            return self.said(
                "psql", "-XAtq", "-h", host, "-U", "feedwheel", "postgres", "-c", "SET search_path = " + name, "-c",
                words)
        name, path = self.url.split("localhost/")[1].split("?socket=")
        return self.said("mariadb", "--no-defaults", "-NB", "-uroot", "-S", path, name, "-e", words)

    def items(self):
        """property_id of each row."""
        if self.engine != "redis":
            return [int(x) for x in self.sql("SELECT property_id FROM incoming")]
        path = self.url.split("redis+unix://")[1].split("?")[0]
        key = [k for k in self.said(REDIS + "-cli", "-s", path, "KEYS", "*incoming") if k]
        return [int(m.split()[2]) for k in key for m in self.said(REDIS + "-cli", "-s", path, "HVALS", k)]
