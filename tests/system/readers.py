# SPDX-License-Identifier: ISC
"""Accounts for the tests of what readers use: a client, by the conformance suite's, and its feeds."""
import contextlib
import fcntl
import importlib.machinery
import importlib.util
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading

from harness import ROOT, Skip, equal, wait_for
from http_server import kill_group

SUITE = os.path.join(ROOT, "tests", "greader", "run")
PASSWORD = "secret & word"
OPEN = "auth_failures_max = 0\nserve_discovery = yes\n"


def suite():
    loader = importlib.machinery.SourceFileLoader("greader_suite", SUITE)
    spec = importlib.util.spec_from_loader("greader_suite", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


SUITE_MODULE = suite()
ALL, READ, STARRED, ITEM = (SUITE_MODULE.ALL, SUITE_MODULE.READ, SUITE_MODULE.STARRED, SUITE_MODULE.ITEM)


def user_add(d, name, password=PASSWORD):
    d.feedwheel.run("user", "add", name, stdin=password + "\n")


def client(d, name="alice", password=PASSWORD):
    c = SUITE_MODULE.Client("http://127.0.0.1:%d" % d.port, name, password)
    c.sign_in()
    return c


@contextlib.contextmanager
def with_feeds(d, c):
    """alice has the suite's two feeds with their entries."""
    c.site = SUITE_MODULE.serve_site("127.0.0.1")
    c.subscribe("news.xml")
    c.subscribe("blog.xml")
    d.feedwheel.run_once()
    equal((len(c.ids(c.feed_id("news.xml"))), len(c.ids(c.feed_id("blog.xml")))), (30, 5))
    yield


def raw(d, method, path, headers, body=None):
    c = d.connect()
    try:
        c.request(method, path, body, headers)
        r = c.getresponse()
        return r.status, r.headers, r.read().decode()
    finally:
        c.close()


# ---- programs in a terminal -------------------------------------------------------------------------------

class Terminal:
    """A program in a terminal of 80 columns and 24 lines."""

    def __init__(self, *argv, environment):
        self.output = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError): # EIO: it has ended
            while True:
                select.select([self.fd], [], [])
                self.output += os.read(self.fd, 65536).decode(errors="replace")

    def press(self, keys):
        self.output = ""
        os.write(self.fd, keys.encode())

    def shows(self, text):
        plain = re.sub("\x1b(\\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>])", "", self.output)
        return text in plain

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.reader.join(20)
        os.close(self.fd)


def newsboat_files(base, settings):
    """The command and environment of a newsboat with these lines of configuration."""
    home = os.path.join(base, "home")
    os.makedirs(home)
    with open(os.path.join(home, "config"), "w", encoding="utf-8") as f:
        f.write(settings + "reload-threads 1\nconfirm-exit no\n")
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    argv = ["newsboat", "-C", os.path.join(home, "config"), "-c", os.path.join(home, "cache.db")]
    return argv, environment


def newsboat_unread(argv, environment):
    r = subprocess.run([*argv, "-x", "reload", "print-unread"], env=environment, capture_output=True, text=True,
                       timeout=120, check=False)
    return r.stdout.strip()


def newsboat_marks_feed(t, feed, is_read):
    """Mark the feed at the cursor as read; since version 2.24 newsboat asks first."""
    t.press("A")
    wait_for("all of %s read" % feed, lambda: is_read() or (t.shows("Do you really want to mark") and t.press("y")))


# ---- programs with windows -------------------------------------------------------------------------------

def needs_programs(*program):
    missing = [p for p in (*program, "Xvfb", "xdotool", "dbus-run-session") if not shutil.which(p)]
    if missing:
        raise Skip("install %s (packages %s)" % (", ".join(missing), ", ".join((*program, "xvfb", "xdotool", "dbus"))))


class Display:
    """A display without a window manager, and the environment of programs on it."""

    def __init__(self, name, home):
        self.environment = {"PATH": os.environ["PATH"], "HOME": home, "DISPLAY": name, "LC_ALL": "C.UTF-8",
                            "GSETTINGS_BACKEND": "memory", "NO_AT_BRIDGE": "1",
                            "WEBKIT_DISABLE_COMPOSITING_MODE": "1", "QTWEBENGINE_DISABLE_SANDBOX": "1"}

    @contextlib.contextmanager
    def running(self, *argv, log=None):
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(open(log, "w", encoding="utf-8")) if log else subprocess.DEVNULL
            p = subprocess.Popen(["dbus-run-session", "--", *argv], env=self.environment, start_new_session=True,
                                 stdout=out, stderr=out)
            try:
                yield p
            finally:
                kill_group(p)

    def xdotool(self, *arguments):
        return subprocess.run(["xdotool", *arguments], env=self.environment, capture_output=True, text=True,
                              check=False).stdout.split()

    def press(self, window, key):
        windows = self.xdotool("search", "--onlyvisible", "--name", window)
        if windows: # without a window manager nothing else gives it the focus
            self.xdotool("windowfocus", "--sync", windows[0], "key", key)


@contextlib.contextmanager
def display(home):
    r, w = os.pipe()
    x = subprocess.Popen(["Xvfb", "-displayfd", str(w), "-screen", "0", "1200x800x24", "-nolisten", "tcp"],
                         pass_fds=[w], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(w)
    try:
        with open(r, encoding="ascii") as f:
            yield Display(":" + f.readline().strip(), home)
    finally:
        x.kill()
        x.wait()
