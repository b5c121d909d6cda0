# SPDX-License-Identifier: ISC
"""A server in front of a store, for the tests of what it answers."""
import contextlib
import http.client
import json
import os
import random
import signal
import socket

from harness import Feedwheel, equal, holds, wait_for


RESERVED = [] # a socket for each port, which says to other tests that it is taken


def free_port():
    """One below those that the system gives to clients, and this test's own until it ends: it stays
    free between servers, however many connect meanwhile, and no other test's server is taken for
    one that did not come up again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        lowest = int(f.read().split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(10000, max(lowest, 20000))
            sign = socket.socket(socket.AF_UNIX)
            sign.bind("\0feedwheel-test-port-%d" % port)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", port))
            RESERVED.append(sign)
            return port


def kill_group(p):
    def gone():
        try:
            os.killpg(p.pid, 0)
        except ProcessLookupError:
            return True
        return False
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    wait_for("the end of its children", gone)


class HttpServer:
    """A `serve` in front of a store."""

    def __init__(self, base, *arguments, store=None, conf="", command="serve", inside=()):
        os.makedirs(base, exist_ok=True)
        self.token = None # what ask() presents, if anything
        self.port = free_port()
        self.feedwheel = Feedwheel(base, conf + "listen = 127.0.0.1:%d\n" % self.port, store=store, inside=inside)
        self.arguments = (command, *arguments)
        self.start()

    def start(self):
        self.process = self.feedwheel.start(*self.arguments)
        wait_for("the server", self.answers)

    def answers(self):
        holds(self.process.poll() is None, "it runs: " + self.feedwheel.last_words())
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers, the body's JSON (or its text)."""
        c = self.connect()
        try:
            c.request(
                method, path, body,
                {**({"Authorization": "Bearer " + self.token} if self.token else {}),
                 **(headers or {})})
            r = c.getresponse()
            text = r.read().decode()
            try:
                return r.status, r.headers, json.loads(text)
            except ValueError:
                return r.status, r.headers, text
        finally:
            c.close()

    def push(self, what, path="/v1/events?ack=durable", **more):
        return self.ask("POST", path, what if isinstance(what, (bytes, str)) else json.dumps(what), **more)

    def stop(self, code=0):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(60), code, "exit code: " + self.feedwheel.last_words())

    def kill(self):
        """All of it, at once, as a machine that goes down would."""
        equal(self.process.poll(), None, "it had ended: " + self.feedwheel.last_words())
        kill_group(self.process)

    def stored(self):
        return self.feedwheel.one("SELECT count(*) FROM incoming")


def metric(d, name):
    return next(float(l.split()[1]) for l in d.ask("GET", "/metrics")[2].splitlines()
                if l.startswith("feedwheel_" + name + " "))


@contextlib.contextmanager
def http_server(base, *arguments, **more):
    d = HttpServer(base, *arguments, **more)
    try:
        yield d
    finally:
        if d.process.poll() is None:
            d.stop()
