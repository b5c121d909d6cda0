#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The messages to a service manager, sd_notify(3), received on a socket of the test."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess

from http_server import HttpServer
from harness import BUILD, FEEDWHEEL, Skip, Feedwheel, case, equal, holds, run, sanitized, wait_for, workers_of

MINUTE = 60
OWN_PID = ("sh", "-c", 'WATCHDOG_PID=$$; export WATCHDOG_PID; exec "$@"', "sh") # as systemd does


class Manager:
    """Receives messages and notes the process ids of their senders."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(name.replace("@", "\0"))
        self.socket.settimeout(3 * MINUTE)
        self.name, self.senders = name, set()

    def next(self):
        """The lines of one message, as a dict."""
        text, more, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
        self.senders.add(struct.unpack("iII", more[0][2])[0])
        return dict(line.split("=", 1) for line in text.decode().split("\n"))

    def until(self, name, pattern=""):
        """The next message with such a line, and all messages before it."""
        before = []
        while True:
            m = self.next()
            if name in m and re.search(pattern, m[name]):
                return m, before
            before.append(m)


@contextlib.contextmanager
def manager(name):
    m = Manager(name)
    try:
        yield m
    finally:
        m.socket.close()


def managed(feedwheel, m, **more):
    feedwheel.environment.update(NOTIFY_SOCKET=m.name, **more)
    return feedwheel


class ManagedServer(HttpServer):
    """A server that sends messages to the manager; its start does not wait until it responds."""

    def __init__(self, base, m, command, conf="", inside=(), **more):
        self.manager, self.more = m, more
        super().__init__(base, command=command, conf=conf, inside=inside)

    def start(self):
        self.process = managed(self.feedwheel, self.manager, **self.more).start(*self.arguments)


@case("the master, and no other process, sends READY when the server responds, STATUS, RELOADING at a reload and "
      "STOPPING at SIGTERM", needs="server")
def life(base):
    for name, command in ((os.path.join(base, "notify"), "serve"), ("@feedwheel-test-%d" % os.getpid(), "run")):
        with manager(name) as m:
            d = ManagedServer(os.path.join(base, command), m, command, conf="workers = 2\ndrain_timeout_ms = 2m\n")
            _, before = m.until("READY", "^1$")
            equal(d.request("GET", "/healthz")[0], 200, "/healthz after READY")
            equal([b for b in before if set(b) - {"STATUS", "EXTEND_TIMEOUT_USEC"}], [], "messages before READY")
            equal([b["EXTEND_TIMEOUT_USEC"] for b in before if "EXTEND_TIMEOUT_USEC" in b],
                  ["3600000000"] if command == "run" else [])
            workers = 2 * (command == "run")
            m.until("STATUS", "^%d of %d workers, a server; 0 visits" % (workers, workers))
            children = workers_of(d.process)
            equal(len(children), workers + 1)
            # without a sandbox a child is a fork, with the environment of the master
            for pid in children if not sanitized() else ():
                # only root can read the file of a sandboxed child
                with contextlib.suppress(PermissionError), open("/proc/%d/environ" % pid, "rb") as f:
                    holds(b"NOTIFY_SOCKET" not in f.read(), "a child has NOTIFY_SOCKET")
            # a wrong configuration, then a correct one
            for bad in (True, False):
                with open(d.feedwheel.conf, encoding="ascii") as f:
                    conf = f.read().replace("wrokers = 3\n", "")
                with open(d.feedwheel.conf, "w", encoding="ascii") as f:
                    f.write("wrokers = 3\n" + conf if bad else
                            conf.replace("workers = 2", "workers = 2\nhost_concurrency = 3"))
                d.process.send_signal(signal.SIGHUP)
                reloading, before = m.until("RELOADING", "^1$")
                holds(int(reloading["MONOTONIC_USEC"]) > 0, reloading)
                equal([b for b in before if "READY" in b], [])
                m.until("READY", "^1$")
                if bad:
                    equal(workers_of(d.process), children, "no child is replaced")
                    m.until("STATUS", "unknown setting 'wrokers'.*the old configuration stays: %d of" % workers)
                else:
                    equal(set(workers_of(d.process)) & set(children), set(), "all children are replaced")
                    m.until("STATUS", "^%d of" % workers)
            d.process.send_signal(signal.SIGTERM)
            stopping, before = m.until("STOPPING", "^1$")
            equal(stopping["EXTEND_TIMEOUT_USEC"], "150000000") # drain_timeout_ms and half a minute
            equal(d.process.wait(3 * MINUTE), 0)
            equal(m.senders, {d.process.pid}, "senders")
            holds(not any("WATCHDOG" in b for b in before), "WATCHDOG without WATCHDOG_USEC")


@case("WATCHDOG is sent while master and children have heartbeats, not while a child is stopped", needs="server")
def watchdog(base):
    with manager(os.path.join(base, "notify")) as m:
        d = ManagedServer(base, m, "run", conf="workers = 1\n", inside=OWN_PID, WATCHDOG_USEC="300000")
        m.until("READY")
        worker, server = workers_of(d.process)
        for pid, kind in ((worker, "worker"), (server, "server")):
            m.until("WATCHDOG", "^1$")
            os.kill(pid, signal.SIGSTOP)
            m.until("STATUS", "^%s %d is unresponsive" % (kind, pid))
            _, before = m.until("STATUS", "is unresponsive") # some seconds later
            equal(before, [])
            os.kill(pid, signal.SIGCONT)
            m.until("WATCHDOG", "^1$")
            m.until("STATUS", "^1 of 1 workers, a server")
        os.kill(worker, signal.SIGKILL) # its restart is no reason to restart the service
        wait_for("a new worker", lambda: len(workers_of(d.process)) == 2 and worker not in workers_of(d.process))
        m.until("WATCHDOG", "^1$")
        d.process.send_signal(signal.SIGTERM)
        m.until("STOPPING")
        equal(d.process.wait(3 * MINUTE), 0)


@case("the STATUS of an idle run has the next due time")
def idle(base):
    with manager(os.path.join(base, "notify")) as m:
        w = managed(Feedwheel(base, "workers = 2\n"), m)
        p = w.start("run")
        m.until("STATUS", "^2 of 2 workers.* 0 in flight$") # without feeds there is no due time
        w.run("add", "--interval", "6h", "http://127.1.0.1:9/feed")
        # twice if it was refused before the first worker has compared the networks, which makes such feeds due again
        m.until("STATUS", r" [12] failed; 0 in flight; the next feed is due in \d+ (min|h)")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(3 * MINUTE), 0)


@case("a watchdog with the WATCHDOG_PID of another process is ignored")
def watchdog_of_other(base):
    with manager(os.path.join(base, "notify")) as m:
        w = managed(Feedwheel(base, "workers = 1\n"), m, WATCHDOG_USEC="300000", WATCHDOG_PID="1")
        p = w.start("run")
        _, before = m.until("STATUS", "^1 of 1 workers, no server")
        _, more = m.until("STATUS", "^1 of 1 workers, no server")
        equal([b for b in before + more if "WATCHDOG" in b], [])
        p.send_signal(signal.SIGTERM)
        equal(p.wait(MINUTE), 0)


@case("a run works without a service manager, or with an unusable NOTIFY_SOCKET, which it reports")
def unusable(base):
    w = Feedwheel(base, "workers = 1\n")
    w.run("add", "https://a.example/")
    w.run("pause", "https://a.example/")
    for name, message in (
        (None, ""),
        ("", ""),
        (os.path.join(base, "missing"), "no messages to the service manager: NOTIFY_SOCKET: No such file"),
        ("vsock:2:1", "vsock:2:1 is not the name of a Unix socket"),
        ("/" + "x" * 200, "is not the name of a Unix socket"),
    ):
        if name is not None:
            w.environment["NOTIFY_SOCKET"] = name
        with open(w.log_file, "wb"):
            pass
        p = w.start("run")
        wait_for("its worker", lambda: w.json("status")["workers"])
        wait_for("the message '%s'" % message, lambda message=message: message in w.log())
        p.send_signal(signal.SIGTERM)
        equal(p.wait(MINUTE), 0)
        holds(w.log().count("NOTIFY_SOCKET") <= 2, w.log()) # at the opening of the store, and by the master
        wait_for("the end of its row", lambda: not w.json("status")["workers"])


@case("systemd accepts the unit; its watchdog leaves the master time to restart children")
def unit(base):
    with open(os.path.join(BUILD, "contrib", "feedwheel.service"), encoding="ascii") as f:
        text = f.read()
    for line in ("Type=notify", "WatchdogSec=3min", "StartLimitBurst=20", "StartLimitIntervalSec=10min",
                 "Restart=on-failure"):
        holds("\n%s\n" % line in text, line)
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    path = os.path.join(base, "feedwheel.service")
    with open(path, "w", encoding="ascii") as f:
        f.write(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=" + FEEDWHEEL, text))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", path],
                       capture_output=True, text=True, timeout=MINUTE, check=False,
                       env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})
    equal([l for l in (r.stdout + r.stderr).splitlines() if "feedwheel.service" in l], [], "systemd-analyze verify")


run()
