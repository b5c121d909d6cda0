# SPDX-License-Identifier: ISC
"""Machines with a network of their own: Linux network namespaces, which need root.

A child process keeps each namespace, which has no name, so it ends with the test program, however
that ends. The machine's own network is not changed. A machine with workers has a cable to the
store's machine, and the origin's addresses on its loopback.
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
    """Raise Skip where network namespaces are not possible; under CI, as root, this is a failure."""
    if os.geteuid() != 0:
        raise Skip("only root can create network namespaces")
    for command, package in (["ip", "-V"], "iproute2"), (["unshare", "--net", "true"], "util-linux"):
        try:
            r = subprocess.run(command, capture_output=True, text=True, check=False)
            problem = r.stderr.strip() if r.returncode else None
        except FileNotFoundError:
            problem = "install the package " + package
        if problem and "CI" in os.environ:
            raise AssertionError("%s: %s" % (" ".join(command), problem))
        if problem:
            raise Skip("%s: %s" % (" ".join(command), problem))


class Machine:
    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("ready\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("no network namespace could be created")
        self.inside = ["nsenter", "--target", str(self.process.pid), "--net", "--"]
        self.ip("link set lo up")

    def ip(self, arguments):
        subprocess.run([*self.inside, "ip", *arguments.split()], check=True)

    def set(self, name, value):
        """A setting of its network. /proc/sys/net shows the namespace of the process that opens a file."""
        subprocess.run([*self.inside, "sh", "-c", 'echo %s >"/proc/sys/net/%s"' % (value, name)], check=True)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Cable:
    """Between the store's machine (10.98.i.1) and the i-th other machine (10.98.i.2). Neither end is
    notified of an outage."""

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

    def drop(self, responses_only=False):
        """The store's packets to this machine are dropped; unless responses_only, so are those in the
        other direction, by rp_filter, because there is no route back."""
        self.store.set("ipv4/conf/%s/rp_filter" % self.name, 0 if responses_only else 1)
        self.store.ip("route add blackhole %s/32" % self.far)

    def restore(self):
        self.store.ip("route del blackhole %s/32" % self.far)


class Mirror:
    """The origin's addresses on another machine's loopback: a proxy forwards each connection there to
    the same address here."""

    def __init__(self, machine, port):
        self.pairs, self.ends, self.forwarded = {}, False, 0
        self.selector = selectors.DefaultSelector()
        self.listener = None
        t = threading.Thread(target=self.listen, args=(machine.process.pid, port))
        t.start()
        t.join()
        if not self.listener:
            raise RuntimeError("the thread could not enter the namespace")
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def listen(self, pid, port):
        """In a thread of its own, because setns() changes the thread's namespace; a socket stays in the
        namespace in which it was created."""
        with open("/proc/%d/ns/net" % pid, "rb") as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET) == 0:
                self.listener = socket.create_server(("0.0.0.0", port), backlog=1000)

    def run(self):
        while not self.ends:
            for key, _ in self.selector.select(0.2):
                s = key.fileobj
                if s is self.listener:
                    self.connect(s.accept()[0])
                elif s in self.pairs: # its other end may have been closed in the same round
                    self.forward(s)

    def connect(self, near):
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

    def forward(self, s):
        try:
            data = s.recv(65536)
            if data:
                self.forwarded += 1
                self.pairs[s].sendall(data)
                return
        except OSError:
            pass
        for x in (s, self.pairs[s]):
            self.selector.unregister(x)
            del self.pairs[x]
            x.close()

    def close(self):
        self.ends = True
        self.thread.join()
        for s in [self.listener, *self.pairs]:
            s.close()
        self.selector.close()
