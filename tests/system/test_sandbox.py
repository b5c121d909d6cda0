#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The sandbox around each process of a run: what is tried from inside, of the binary with the test
http_server, and what is seen from outside."""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import tempfile

from http_server import HttpServer, http_server, free_port, kill_group
from harness import (
    BUILD, Skip, Feedwheel, absent, case, certificate, equal, holds, origin, run, samples, sanitized, wait_for,
    workers_of)

LAYERS = ["no new privileges", "no memory dumps", "files", "TCP ports", "system calls", "memory layout"]
EPERM, EACCES, FAMILY = "Operation not permitted", "Permission denied", "Address family not supported by protocol"


def sandboxed(*layers):
    """Skip where this build or this kernel has not all of these layers; doctor knows, and case
    `layers` checks what it says."""
    if sanitized():
        raise Skip("a sanitizer's build has no sandbox")
    if "system calls" in layers and "seccomp" in absent():
        raise Skip("this build has no libseccomp (-Dseccomp=enabled)")
    with tempfile.TemporaryDirectory() as base:
        said = Feedwheel(base).run("doctor", code=None).stdout
    have = re.search(r"^\w+ +sandbox +the server: (.*?)(; missing.*)?$", said, re.M)[1]
    for l in layers:
        if l not in have:
            raise Skip("this kernel cannot limit: " + l)


@contextlib.contextmanager
def listener():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(64)
        yield s.getsockname()[1]


def trial_run(base, attempts, conf="", store=None):
    """One whose store has a folder of its own, in the binary whose processes try these things when they are inside."""
    os.makedirs(os.path.join(base, "store"), exist_ok=True)
    w = Feedwheel(base, conf, store=store or "sqlite:" + os.path.join(base, "store", "s.db"))
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")
    w.environment["FEEDWHEEL_TEST_SANDBOX"] = " ".join("%s=%s" % (what, value) for what, value in attempts)
    return w


def tried(w, who):
    """How each attempt of this process went, in order, once all of them are there. The last one may
    have put another program in its place."""
    n = len(w.environment["FEEDWHEEL_TEST_SANDBOX"].split())
    def words():
        return re.findall(r"(?:%s: |^)trial: (\w+): (.*)$" % who, w.words(), re.M)[:n]
    wait_for("%d attempts of the %s" % (n, who), lambda: len(words()) == n)
    return words()


def stop(p):
    p.send_signal(signal.SIGTERM)
    p.wait(60)


ATTEMPTS = [
    ("read", EACCES),
    ("read", EACCES),
    ("read", EACCES),
    ("write", EACCES),
    ("chmod", EPERM),
    ("bind", EACCES),
    ("signal", EPERM),
    ("ptrace", EPERM),
    ("fork", EPERM),
    ("keys", EPERM),
    ("code", EPERM),
    ("connect", None),
    ("exec", EPERM)]


def attempts(base, port, conf):
    shadow = "/etc/shadow" if os.access("/etc/shadow", os.R_OK) else conf
    with open(os.path.join(base, "mine"), "w", encoding="ascii") as f:
        f.write("secret\n")
    values = [
        shadow, conf, os.path.join(base, "mine"),
        os.path.join(base, "made"),
        os.path.join(base, "mine"),
        "0", "", "", "", "", "", port, ""]
    return [(what, value) for (what, _), value in zip(ATTEMPTS, values)]


@case("from inside a worker: other files, other programs, other processes, listening: all refused; with sandbox = off "
      "all of it is done")
def worker(base):
    sandboxed(*LAYERS)
    with listener() as port:
        for sandbox in ("require", "auto", "off"):
            place = os.path.join(base, sandbox)
            os.mkdir(place)
            w = trial_run(place, [], "sandbox = %s\n" % sandbox)
            w.environment["FEEDWHEEL_TEST_SANDBOX"] = " ".join("%s=%s" % a for a in attempts(place, port, w.conf))
            p = w.start("run", "--workers", "1")
            # a worker fetches from anywhere: it may connect
            equal(tried(w, "worker 0"), [(what, "done" if sandbox == "off" or not words else words)
                  for what, words in ATTEMPTS], sandbox)
            stop(p)
            equal(os.path.exists(os.path.join(place, "made")), sandbox == "off")


@case("from inside the server: the same, and a TCP port that is not its store's; with sandbox = off all of it is done",
      needs="server")
def server(base):
    sandboxed(*LAYERS)
    with listener() as port:
        for sandbox in ("auto", "off"):
            place = os.path.join(base, sandbox)
            os.mkdir(place)
            w = trial_run(place, [], "sandbox = %s\nlisten = 127.0.0.1:%d\n" % (sandbox, free_port()))
            w.environment["FEEDWHEEL_TEST_SANDBOX"] = " ".join("%s=%s" % a for a in attempts(place, port, w.conf))
            p = w.start("serve")
            equal(tried(w, "serve"), [(what, "done" if sandbox == "off" else words or EACCES)
                  for what, words in ATTEMPTS], sandbox)
            stop(p)
            equal(os.path.exists(os.path.join(place, "made")), sandbox == "off")


@case("the server may connect to its store's TCP port, and to others only where it fetches, or where the store names "
      "them itself", needs="server")
def ports(base):
    sandboxed(*LAYERS)
    with listener() as store, listener() as other:
        here = "127.0.0.1:%d" % store
        for n, (url, conf, words) in enumerate([
                ("postgres://u@%s/x" % here, "", EACCES), ("postgres://u@127.0.0.1/x?port=%d" % store, "", EACCES),
                ("mysql://u@%s/x" % here, "", EACCES), ("redis://%s" % here, "", "done"),
                ("postgres://u@%s/x" % here, "websub_url = https://feeds.example/\n", "done")]):
            if url.split(":")[0] in absent():
                continue
            place = os.path.join(base, str(n))
            os.mkdir(place)
            w = trial_run(place, [("connect", store), ("connect", other)],
                            conf + "listen = 127.0.0.1:%d\n" % free_port(), store=url)
            p = w.start("serve")
            equal(tried(w, "serve"), [("connect", "done"), ("connect", words)], url + " " + conf)
            kill_group(p) # it waits for an answer of its store


@case("from outside: no process of a run can gain privileges, all have a filter and no core; children cannot be asked "
      "what they hold")
def outside(base):
    sandboxed("no memory dumps", "system calls")
    w = Feedwheel(base)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    p = w.start("run", "--workers", "2")
    wait_for("two workers", lambda: len(workers_of(p)) == 2)
    def status(pid):
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            return dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M))
    for pid in workers_of(p):
        wait_for("its filters", lambda pid=pid: int(status(pid).get(
            "Seccomp_filters", 2)) >= 2) # the master's, and its own
    for pid in [p.pid, *workers_of(p)]:
        equal((status(pid)["NoNewPrivs"], status(pid)["Seccomp"]), ("1", "2"), pid)
        equal(os.stat("/proc/%d/environ" % pid).st_uid, 0, "belongs to root while it cannot be dumped")
        with open("/proc/%d/limits" % pid, encoding="ascii") as f:
            holds(re.search(r"^Max core file size +0 +0 ", f.read(), re.M), "no core")
    stop(p)


@case("each process has a memory layout of its own, also one that takes another's place; what it was handed is what "
      "the master holds", needs="server")
def layout(base):
    sandboxed("memory layout")
    if os.getuid() != 0:
        raise Skip("only root may look")
    w = Feedwheel(base)
    w.run("add", "https://a.example/")
    w.environment["FEEDWHEEL_STORE"] = w.store
    p = w.start("run", "--workers", "2", "--listen", "127.0.0.1:%d" % free_port())
    def begins(pid):
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            lines = f.read().splitlines()
        return tuple(next((l.split("-")[0] for l in lines if l.endswith(name)),
                          None) for name in ("/" + os.path.basename(w.binary),
                                            "[stack]", "libc.so.6"))
    def name_of(pid):
        with open("/proc/%d/comm" % pid, encoding="utf-8") as f:
            return f.read().strip()
    def all_differ():
        pids = [p.pid, *workers_of(p)]
        return len(pids) == 4 and len({begins(pid) for pid in pids}) == 4
    wait_for("three children, each anew", all_differ)
    first, seen = workers_of(p), {begins(pid) for pid in [p.pid, *workers_of(p)]}
    os.kill(first[0], signal.SIGKILL)
    wait_for("another", lambda: len(workers_of(p)) == 3 and first[0] not in workers_of(p))
    new = next(pid for pid in workers_of(p) if pid not in first)
    wait_for("a layout that was not there before", lambda: begins(new) not in seen)
    for pid in workers_of(p):
        said = {}
        for name in "cmdline", "environ":
            with open("/proc/%d/%s" % (pid, name), encoding="utf-8") as f:
                said[name] = f.read()
        wait_for("its name among processes", lambda pid=pid: name_of(pid) == "feedwheel") # for a moment it is "exe"
        words = said["cmdline"].split("\0")
        holds(words[1] == "child" and words[3] in ("worker-0", "worker-1", "server"), words)
        holds(w.store not in said["cmdline"] + said["environ"],
              "the store's URL, which may hold a password, cannot be seen")
    stop(p)


@case("doctor: the layers of each process; off and what is missing are told, with the remedy")
def layers(base):
    w = trial_run(base, [])
    del w.environment["FEEDWHEEL_TEST_SANDBOX"]
    def found(*arguments, code=0, **environment):
        w.environment.update(environment)
        said = w.run("doctor", *arguments, code=code).stdout
        for name in environment:
            del w.environment[name]
        return re.findall(r"^(ok|note|broken) +sandbox +(.*)(?:\n +-> (.*))?", said, re.M)
    equal(
        found("--sandbox", "off"),
        [("note", "off: a vulnerability in any process exposes everything its user can access", "sandbox = auto")])
    if sanitized():
        equal(found()[0], ("note", "the master: nothing; missing: no new privileges, no memory dumps, system calls",
                           "this build has no sandbox: it needs Linux, and no sanitizer"))
        return
    sandboxed(*LAYERS)
    master, child = ", ".join(LAYERS[i] for i in (0, 1, 4)), ", ".join(LAYERS)
    equal(found("--sandbox", "require"), [("ok", "the master: " + master, ""),
          ("ok", "workers: " + child, ""), ("ok", "the server: " + child, "")])
    for name, words in (("files", "lsm="), ("TCP ports", "Linux 6.7"), ("memory layout", "there is no /proc")):
        lack = ", ".join(l for l in LAYERS if l != name) + "; missing: " + name
        for sandbox, level in (("auto", "note"), ("require", "broken")):
            said = found("--sandbox", sandbox, code=1 if level == "broken" else 0, FEEDWHEEL_TEST_NO_LAYER=name)
            equal([s[:2] for s in said], [("ok", "the master: " + master),
                  (level, "workers: " + lack), (level, "the server: " + lack)])
            holds(words in said[1][2], said)


@case("sandbox = require: where a layer is missing run refuses before anything is started, and SIGHUP keeps what was")
def required(base):
    w = trial_run(base, [])
    del w.environment["FEEDWHEEL_TEST_SANDBOX"]
    w.run("import", "-", stdin="http://127.0.0.1:9/x.xml\n")
    def refused(name, *command):
        r = w.run(*command, "--sandbox", "require", code=None)
        equal(r.returncode, 4, r.stderr)
        holds("sandbox = require: '%s' is missing: " %
              name in r.stderr and r.stderr.endswith("; or set sandbox = auto\n"), r.stderr)
    equal(w.run("run", "--once", "--sandbox", "sometimes", code=4).stderr,
          "feedwheel: command line: sandbox = 'sometimes' is not allowed: one of: auto require off\n")
    if sanitized():
        refused("no new privileges", "run", "--once")
        return
    if "seccomp" in absent():
        refused("system calls", "run", "--once")
        holds("-Dseccomp=enabled" in w.run("run", "--once", "--sandbox", "require", code=4).stderr, "the remedy")
        return
    sandboxed(*LAYERS)
    for name in LAYERS:
        w.environment["FEEDWHEEL_TEST_NO_LAYER"] = name
        refused(name, "run", "--once")
        if "server" not in absent():
            refused(name, "serve", "--listen", "127.0.0.1:0")
        w.run("run", "--once", code=None)
    p = w.start("run", "--workers", "1")
    wait_for("a worker", lambda: len(workers_of(p)) == 1)
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("sandbox = require\n")
    p.send_signal(signal.SIGHUP)
    wait_for("words", lambda: "SIGHUP: sandbox = require: " in w.words())
    holds("; the old configuration stays" in w.words(), w.last_words())
    stop(p)


@case("a bundle of certificates that is replaced by another file is read by the worker that follows")
def replaced(base):
    sandboxed("files")
    docs = samples(base)
    ca, cert, key = certificate(base, ["127.1.0.1"])
    bundle = os.path.join(base, "bundle.pem")
    with open(bundle, "w", encoding="ascii") as f:
        f.write("# none yet\n")
    with origin(base, docs, "--tls", cert, key) as o:
        w = Feedwheel(base, "ca_file = %s\ninterval_min_ms = 1s\ninterval_ms = 1s\ninterval_max_ms = 2s\n" % bundle)
        w.run("import", "-", stdin=o.urls[0] + "\n")
        p = w.start("run", "--workers", "1")
        wait_for("a worker", lambda: len(workers_of(p)) == 1)
        first = workers_of(p)
        with open(ca, "rb") as f, open(bundle + ".new", "wb") as to:
            to.write(f.read())
        os.rename(bundle + ".new", bundle)
        wait_for("another worker", lambda: workers_of(p) not in ([], first))
        holds("a file that worker 0 may read was replaced" in w.words(), w.last_words())
        wait_for("an entry", lambda: w.one("SELECT count(*) FROM entries") > 0)
        stop(p)


@case("a folder that the server made itself is not one that was replaced: it starts anew for the bundle only",
      needs="server")
def made_by_itself(base):
    sandboxed("files")
    bundle = os.path.join(base, "bundle.pem")
    with open(bundle, "w", encoding="ascii") as f:
        f.write("# none yet\n")
    with http_server(base, "--wal-dir", os.path.join(base, "wal"), conf="ca_file = %s\n" % bundle) as d:
        first = workers_of(d.process)
        with open(bundle + ".new", "w", encoding="ascii") as f:
            f.write("# nor now\n")
        os.rename(bundle + ".new", bundle)
        wait_for("another server", lambda: workers_of(d.process) not in ([], first))
        equal(d.feedwheel.words().count("a file that server 0 may read was replaced"), 1, d.feedwheel.last_words())
        d.stop()


@case("character sets, whose tables the C library reads late, are there for a sandboxed worker")
def charsets(base):
    docs, titles = os.path.join(base, "docs"), {}
    os.mkdir(docs)
    for name, text in (
        ("gb18030", "\u4e2d\u6587"),
        ("big5", "\u4e2d\u6587"),
        ("euc-kr", "\ud55c\uad6d"),
        ("shift_jis", "\u65e5\u672c"),
        ("euc-jp", "\u65e5\u672c"),
        ("iso-2022-jp", "\u65e5\u672c"),
        ("koi8-r", "\u0440\u0443\u0441"),
        ("windows-1251", "\u0440\u0443\u0441")):
        titles[name] = text + " " + name
        with open(os.path.join(docs, name + ".xml"), "wb") as f:
            f.write((
                     '<?xml version="1.0" encoding="%s"?><rss '
                     'version="2.0"><channel><title>t</title><item><guid>%s</guid><title>%s</title>'
                     '</item></channel></rss>' % (name, name, titles[name])).encode(name))
    with origin(base, docs) as o:
        w = Feedwheel(base)
        w.run("import", "-", stdin="".join(u + "\n" for u in o.urls))
        w.run_once()
        equal(sorted(t for t, in w.sql("SELECT title FROM entries")), sorted(titles.values()))


@case("the server shows what all processes take, also where /proc shows each only itself", needs="server")
def hidden(base):
    sandboxed("files")
    if os.getuid() != 0 or subprocess.run(
        ["unshare", "-m", "mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"],
        capture_output=True, check=False).returncode:
        raise Skip("only root may mount another /proc")
    d = HttpServer(base, "--workers", "1", command="run",
             inside=("unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"))
    def shown():
        return re.findall(
            r'^feedwheel_process_resident_memory_bytes\{process="(\w+)",index="0"\} ([0-9.e+]+)$', d.ask(
                "GET", "/metrics")[2],
            re.M)
    wait_for("all three", lambda: [s[0] for s in shown()] == ["master", "worker", "server"])
    holds(all(float(s[1]) > 1e6 for s in shown()), shown())
    d.stop()


run()
