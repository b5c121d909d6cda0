# SPDX-License-Identifier: ISC
"""Machines with a network of their own: network namespaces of Linux, for which one has to be root.

Each is held by a child process, and named by its number only, so all of it is gone when the test
is, however that ends. None of them touches the machine's own network. A worker's machine has a
cable to the store's, and the origin's addresses on its loopback.
"""
import ctypes
import os
import selectors
import socket
import subprocess
import threading

from harness import Skip

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def needed():
    """Raise Skip where there can be none; under CI a root who cannot is a failure."""
    if os.geteuid() != 0:
        raise Skip("only root may make network namespaces")
    for command, package in (["ip", "-V"], "iproute2"), (["unshare", "--net", "true"], "util-linux"):
        try:
            r = subprocess.run(command, capture_output=True, text=True, check=False)
            words = r.stderr.strip() if r.returncode else None
        except FileNotFoundError:
            words = "install the package " + package
        if words and "CI" in os.environ:
            raise AssertionError("%s: %s" % (" ".join(command), words))
        if words:
            raise Skip("%s: %s" % (" ".join(command), words))


class Machine:
    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", "--", "cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("there\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "there\n":
            raise RuntimeError("no network namespace could be made")
        self.inside = ["nsenter", "--target", str(self.process.pid), "--net", "--"]
        self.ip("link set lo up")

    def ip(self, words):
        subprocess.run([*self.inside, "ip", *words.split()], check=True)

    def set(self, name, value):
        """A setting of its network; files of /proc/sys/net are those of the process that opens them."""
        subprocess.run([*self.inside, "sh", "-c", 'echo %s >"/proc/sys/net/%s"' % (value, name)], check=True)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Cable:
    """Between the store's machine and the i-th of the others: 10.98.i.1 and 10.98.i.2. What is cut
    says nothing to either end."""

    def __init__(self, store, other, i):
        self.store, self.near, self.far, self.name = store, "10.98.%d.1" % i, "10.98.%d.2" % i, "to%d" % i
        store.ip("link add %s type veth peer name store netns %d" % (self.name, other.process.pid))
        store.ip("address add %s/30 dev %s" % (self.near, self.name))
        other.ip("address add %s/30 dev store" % self.far)
        store.ip("link set %s up" % self.name)
        other.ip("link set store up")

    def unplug(self):
        self.store.ip("link set %s down" % self.name)

    def plug(self):
        self.store.ip("link set %s up" % self.name)

    def drop(self, answers_only=False):
        """What the store says goes nowhere; unless answers_only, what it is told does neither:
        there is no way back to who says it."""
        self.store.set("ipv4/conf/%s/rp_filter" % self.name, 0 if answers_only else 1)
        self.store.ip("route add blackhole %s/32" % self.far)

    def carry(self):
        self.store.ip("route del blackhole %s/32" % self.far)


class Mirror:
    """The origin's addresses on another machine's loopback: what connects to one there is connected
    to the same one here."""

    def __init__(self, machine, port):
        self.pairs, self.over, self.spoken = {}, False, 0
        self.selector = selectors.DefaultSelector()
        self.http_server = None
        t = threading.Thread(target=self.open, args=(machine.process.pid, port))
        t.start()
        t.join()
        if not self.http_server:
            raise RuntimeError("no way into the namespace")
        self.selector.register(self.http_server, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def open(self, pid, port):
        """In a thread of its own, for a thread's namespace is its own; a socket stays where it was made."""
        with open("/proc/%d/ns/net" % pid, "rb") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET) == 0:
                self.http_server = socket.create_server(("0.0.0.0", port), backlog=1000)

    def run(self):
        while not self.over:
            for key, _ in self.selector.select(0.2):
                s = key.fileobj
                if s is self.http_server:
                    self.take(s.accept()[0])
                elif s in self.pairs: # its other end may have gone in the same round
                    self.carry(s)

    def take(self, near):
        far = socket.socket()
        try:
            far.connect(near.getsockname())
        except OSError:
            near.close()
            far.close()
            return
        for s, other in (near, far), (far, near):
            self.pairs[s] = other
            self.selector.register(s, selectors.EVENT_READ)

    def carry(self, s):
        try:
            data = s.recv(65536)
            if data:
                self.spoken += 1
                self.pairs[s].sendall(data)
                return
        except OSError:
            pass
        for x in (s, self.pairs[s]):
            self.selector.unregister(x)
            del self.pairs[x]
            x.close()

    def close(self):
        self.over = True
        self.thread.join()
        for s in [self.http_server, *self.pairs]:
            s.close()
        self.selector.close()
