#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What a service manager is told, by a socket of the test in systemd's place: sd_notify(3)."""
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
    """Takes what comes, and who sent it."""

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
        """The message with such a line, and all that came before it."""
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


def told(feedwheel, m, **more):
    feedwheel.environment.update(NOTIFY_SOCKET=m.name, **more)
    return feedwheel


class Served(HttpServer):
    """A server of which the manager learns; nobody else waits for it."""

    def __init__(self, base, m, command, conf="", inside=(), **more):
        self.manager, self.more = m, more
        super().__init__(base, command=command, conf=conf, inside=inside)

    def start(self):
        self.process = told(self.feedwheel, self.manager, **self.more).start(*self.arguments)


@case("READY when the server answers, STATUS, RELOADING around a reload, STOPPING at SIGTERM; from the master alone",
      needs="server")
def life(base):
    for name, command in ((os.path.join(base, "notify"), "serve"), ("@feedwheel-test-%d" % os.getpid(), "run")):
        with manager(name) as m:
            d = Served(os.path.join(base, command), m, command, conf="workers = 2\ndrain_timeout_ms = 2m\n")
            _, before = m.until("READY", "^1$")
            equal(d.ask("GET", "/healthz")[0], 200, "at once")
            equal([b for b in before if set(b) - {"STATUS", "EXTEND_TIMEOUT_USEC"}], [], "before it is ready")
            equal([b["EXTEND_TIMEOUT_USEC"] for b in before if "EXTEND_TIMEOUT_USEC" in b],
                  ["3600000000"] if command == "run" else [])
            workers = 2 * (command == "run")
            m.until("STATUS", "^%d of %d workers, a server; 0 visits" % (workers, workers))
            children = workers_of(d.process)
            equal(len(children), workers + 1)
            # without a sandbox a child is a fork, which keeps what it was started with
            for pid in children if not sanitized() else ():
                with contextlib.suppress(PermissionError), open("/proc/%d/environ" % pid,
                                                                "rb") as f: # a sandboxed one is root's to see
                    holds(b"NOTIFY_SOCKET" not in f.read(), "a child knows of it")
            # a configuration that is wrong, and one that is right
            for bad in (True, False):
                with open(d.feedwheel.conf, encoding="ascii") as f:
                    conf = f.read()
                with open(d.feedwheel.conf, "w", encoding="ascii") as f:
                    f.write("wrokers = 3\n" + conf if bad else conf.replace("wrokers = 3\n",
                            "").replace("workers = 2", "workers = 2\nhost_concurrency = 3"))
                d.process.send_signal(signal.SIGHUP)
                said, before = m.until("RELOADING", "^1$")
                holds(int(said["MONOTONIC_USEC"]) > 0, said)
                equal([b for b in before if "READY" in b], [])
                m.until("READY", "^1$")
                if bad:
                    equal(workers_of(d.process), children, "nothing was begun anew")
                    m.until("STATUS", "unknown setting 'wrokers'.*the old configuration stays: %d of" % workers)
                else:
                    equal(set(workers_of(d.process)) & set(children), set(), "all were")
                    m.until("STATUS", "^%d of" % workers)
            d.process.send_signal(signal.SIGTERM)
            said, before = m.until("STOPPING", "^1$")
            equal(said["EXTEND_TIMEOUT_USEC"], "150000000") # drain_timeout_ms and half a minute
            equal(d.process.wait(3 * MINUTE), 0)
            equal(m.senders, {d.process.pid}, "who sent")
            holds(not any("WATCHDOG" in b for b in before), "no watchdog was asked for")


@case("WATCHDOG comes while master and children are alive, not while one stands still, and again when it goes on",
      needs="server")
def watchdog(base):
    with manager(os.path.join(base, "notify")) as m:
        d = Served(base, m, "run", conf="workers = 1\n", inside=OWN_PID, WATCHDOG_USEC="300000")
        m.until("READY")
        worker, server = workers_of(d.process)
        for pid, what in ((worker, "worker"), (server, "server")):
            m.until("WATCHDOG", "^1$")
            os.kill(pid, signal.SIGSTOP)
            m.until("STATUS", "^%s %d is unresponsive" % (what, pid))
            _, before = m.until("STATUS", "is unresponsive") # some seconds later
            equal(before, [])
            os.kill(pid, signal.SIGCONT)
            m.until("WATCHDOG", "^1$")
            m.until("STATUS", "^1 of 1 workers, a server")
        os.kill(worker, signal.SIGKILL) # another takes its place: no reason to begin all anew
        wait_for("another", lambda: len(workers_of(d.process)) == 2 and worker not in workers_of(d.process))
        m.until("WATCHDOG", "^1$")
        d.process.send_signal(signal.SIGTERM)
        m.until("STOPPING")
        equal(d.process.wait(3 * MINUTE), 0)


@case("an idle run's status says when the next feed is due")
def idle(base):
    with manager(os.path.join(base, "notify")) as m:
        w = told(Feedwheel(base, "workers = 2\n"), m)
        p = w.start("run")
        m.until("STATUS", "^2 of 2 workers.* 0 in flight$") # no feeds: nothing is due ever
        w.run("add", "--interval", "6h", "http://127.1.0.1:9/feed")
        m.until("STATUS", r" 1 failed; 0 in flight; the next feed is due in \d+ (min|h)")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(3 * MINUTE), 0)


@case("a watchdog that is set for another process is none of ours")
def others(base):
    with manager(os.path.join(base, "notify")) as m:
        w = told(Feedwheel(base, "workers = 1\n"), m, WATCHDOG_USEC="300000", WATCHDOG_PID="1")
        p = w.start("run")
        _, before = m.until("STATUS", "^1 of 1 workers, no server")
        _, more = m.until("STATUS", "^1 of 1 workers, no server")
        equal([b for b in before + more if "WATCHDOG" in b], [])
        p.send_signal(signal.SIGTERM)
        equal(p.wait(MINUTE), 0)


@case("without a manager, or with one that cannot be told, it runs as ever; that is said once")
def nobody(base):
    w = Feedwheel(base, "workers = 1\n")
    w.run("add", "https://a.example/")
    w.run("pause", "https://a.example/")
    for name, words in (
        (None, ""),
        ("", ""),
        (os.path.join(base, "nobody"),
         "no messages to the service manager: NOTIFY_SOCKET: No such file"),
        ("vsock:2:1", "vsock:2:1 is not the name of a Unix socket"),
        ("/" + "x" * 200, "is not the name of a Unix socket")):
        if name is not None:
            w.environment["NOTIFY_SOCKET"] = name
        said = os.path.join(base, "said")
        with open(said, "wb"):
            pass
        p = w.start("run")
        wait_for("its worker", lambda: w.json("status")["workers"])
        wait_for(words, lambda words=words: words in w.words())
        p.send_signal(signal.SIGTERM)
        equal(p.wait(MINUTE), 0)
        holds(w.words().count("NOTIFY_SOCKET") <= 2, w.words()) # while the store is opened, and by the master
        wait_for("no worker", lambda: not w.json("status")["workers"])


@case("the unit is one that systemd understands, with a watchdog that leaves the master time to mend things itself")
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
