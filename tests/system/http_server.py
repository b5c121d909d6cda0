# SPDX-License-Identifier: ISC
"""An HTTP server with a store, for the tests of its responses."""
import contextlib
import http.client
import json
import os
import random
import signal
import socket

from harness import Feedwheel, equal, holds, wait_for

RESERVED = [] # a socket for each port, whose name reserves the port among tests


def free_port():
    """A port below those that the system gives to clients, reserved until this program ends. So it
    stays free while a server restarts, and no other test's server listens there meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        lowest = int(f.read().split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(10000, max(lowest, 20000))
            reservation = socket.socket(socket.AF_UNIX)
            reservation.bind("\0feedwheel-test-port-%d" % port)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", port))
            RESERVED.append(reservation)
            return port


def kill_group(p):
    """Kill a process and its group; returns when all have ended."""
    def gone():
        try:
            os.killpg(p.pid, 0)
        except ProcessLookupError:
            return True
        return False
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    wait_for("the end of the group", gone)


class HttpServer:
    """A `serve` (or `run`) with a store."""

    def __init__(self, base, *arguments, store=None, conf="", command="serve", inside=(), environment=()):
        os.makedirs(base, exist_ok=True)
        self.token = None # for request()
        self.port = free_port()
        if "serve_discovery" not in conf:
            conf += "serve_discovery = no\n" # a test's server fetches what its test says
        self.feedwheel = Feedwheel(base, conf + "listen = 127.0.0.1:%d\n" % self.port, store=store, inside=inside)
        self.feedwheel.environment.update(environment)
        self.arguments = (command, *arguments)
        self.start()

    def start(self):
        self.process = self.feedwheel.start(*self.arguments)
        wait_for("the server", self.responds)

    def responds(self):
        holds(self.process.poll() is None, "it has ended: " + self.feedwheel.last_log())
        try:
            return self.request("GET", "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        """Status, headers, and the body's JSON (or its text) of the response to a request."""
        c = self.connect()
        token = {"Authorization": "Bearer " + self.token} if self.token else {}
        try:
            c.request(method, path, body, {**token, **(headers or {})})
            r = c.getresponse()
            text = r.read().decode()
            try:
                return r.status, r.headers, json.loads(text)
            except ValueError:
                return r.status, r.headers, text
        finally:
            c.close()

    def push(self, events, path="/v1/events?ack=durable", **more):
        return self.request("POST", path, events if isinstance(events, (bytes, str)) else json.dumps(events), **more)

    def stop(self, code=0):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(60), code, "exit code: " + self.feedwheel.last_log())

    def kill(self):
        """Kill all its processes at once, like a power cut."""
        equal(self.process.poll(), None, "it has ended: " + self.feedwheel.last_log())
        kill_group(self.process)

    def stored(self):
        return self.feedwheel.one("SELECT count(*) FROM incoming")


def metric(d, name):
    return next(float(l.split()[1]) for l in d.request("GET", "/metrics")[2].splitlines()
                if l.startswith("feedwheel_" + name + " "))


@contextlib.contextmanager
def http_server(base, *arguments, **more):
    d = HttpServer(base, *arguments, **more)
    try:
        yield d
    finally:
        if d.process.poll() is None:
            d.stop()
