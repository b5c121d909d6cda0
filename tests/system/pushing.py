# SPDX-License-Identifier: ISC
"""Clients that push events, and the stored events, read by the database's own client."""
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
    """Clients that push one event after another, each with an id of its own. They note which events
    the server has acknowledged (acknowledged), and of which they got no response (unknown)."""

    def __init__(self, d, clients=8, path=TWIRP, pause=0, first=1):
        self.http_server, self.path, self.pause = d, path, pause
        self.acknowledged, self.unknown, self.wrong, self.refused = set(), set(), [], 0
        self.on, self.lock, self.next_id = True, threading.Lock(), first - 1
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
                self.acknowledged.add(i)
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
                    self.unknown.add(i) # the server may have accepted it
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
        """rows: property_id of each stored event."""
        equal(self.wrong, [], "responses that are neither 200 or 202 nor 503 with Retry-After")
        holds(self.acknowledged, "no event was acknowledged")
        equal(len(rows), len(set(rows)), "different events among the stored rows")
        lost = self.acknowledged - set(rows)
        equal(lost, set(), "lost, of %d acknowledged and %d stored" % (len(self.acknowledged), len(rows)))
        unexpected = set(rows) - self.acknowledged - self.unknown
        equal(unexpected, set(), "refused and stored")
        print("# %d acknowledged, %d without a response, %d refused, %d stored" %
              (len(self.acknowledged), len(self.unknown), self.refused, len(rows)))


def items(d):
    return [r[0] for r in d.feedwheel.sql("SELECT property_id FROM incoming")]


class Tables:
    """The tables of a store, read by the database's own client without our code."""

    def __init__(self, engine, url, d=None):
        self.engine, self.url, self.http_server = engine, url, d

    @staticmethod
    def lines(*argv):
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]

    def sql(self, statement, write=False):
        """The first column, as lines."""
        if self.engine == "sqlite":
            return [r[0] for r in self.http_server.feedwheel.sql(statement, write=write)]
        if self.engine == "postgres":
            host, name = self.url.split("host=")[1].split("&schema=")
            return self.lines("psql", "-XAtq", "-h", host, "-U", "feedwheel", "postgres",
                              "-c", "SET search_path = " + name, "-c", statement)
        name, path = self.url.split("localhost/")[1].split("?socket=")
        return self.lines("mariadb", "--no-defaults", "-NB", "-uroot", "-S", path, name, "-e", statement)

    def items(self):
        """property_id of each row."""
        if self.engine != "redis":
            return [int(x) for x in self.sql("SELECT property_id FROM incoming")]
        path = self.url.split("redis+unix://")[1].split("?")[0]
        keys = [k for k in self.lines(REDIS + "-cli", "-s", path, "KEYS", "*incoming") if k]
        return [int(v.split()[2]) for k in keys for v in self.lines(REDIS + "-cli", "-s", path, "HVALS", k)]
