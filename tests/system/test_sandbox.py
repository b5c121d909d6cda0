#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The sandbox of each process of a run: attempts from inside, by the test binary
(src/engine/run/sandbox_test.c), and the state of the processes from outside."""
import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading

from http_server import HttpServer, http_server, free_port, kill_group
from harness import (
    BUILD, ROOT, Skip, Feedwheel, absent, case, certificate, equal, holds, origin, run, samples, sanitized, wait_for,
    workers_of)

LAYERS = ["no new privileges", "no memory dumps", "files", "TCP ports", "system calls", "memory layout"]
EPERM, EACCES = "Operation not permitted", "Permission denied"


def sandboxed(*layers):
    """Skip where this build or this kernel lacks one of these layers, by the output of doctor, which
    case `layers` checks."""
    if sanitized():
        raise Skip("a sanitizer's build has no sandbox")
    if "system calls" in layers and "seccomp" in absent():
        raise Skip("this build has no libseccomp (-Dseccomp=enabled)")
    with tempfile.TemporaryDirectory() as base:
        output = Feedwheel(base).run("doctor", code=None).stdout
    present = re.search(r"^\w+ +sandbox +the server: (.*?)(; missing.*)?$", output, re.M)[1]
    for layer in layers:
        if layer not in present:
            raise Skip("this kernel cannot limit: " + layer)


@contextlib.contextmanager
def listener():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(64)
        yield s.getsockname()[1]


def trial_run(base, attempts, conf="", store=None):
    """The test binary, with a store in a folder of its own. Its processes make these attempts when
    they are in their sandbox."""
    os.makedirs(os.path.join(base, "store"), exist_ok=True)
    w = Feedwheel(base, conf, store=store or "sqlite:" + os.path.join(base, "store", "s.db"))
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test")
    w.environment["FEEDWHEEL_TEST_SANDBOX"] = " ".join("%s=%s" % attempt for attempt in attempts)
    return w


def results(w, process):
    """Waits for all attempts of this process; returns each with its result. The last attempt, if it
    succeeds, replaces the process by another program."""
    n = len(w.environment["FEEDWHEEL_TEST_SANDBOX"].split())
    def found():
        return re.findall(r"(?:%s: |^)trial: (\w+): (.*)$" % process, w.log(), re.M)[:n]
    wait_for("%d attempts of %s" % (n, process), lambda: len(found()) == n)
    return found()


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
    ("owner", EPERM),
    ("listen", EPERM),
    ("raw", "Socket type not supported"),
    ("scheduler", EPERM),
    ("capabilities", EPERM),
    ("mode", EPERM),
    ("environ", EACCES),
    ("connect", None),
    ("exec", EPERM),
]


OF_ROOT = ("capabilities", "raw")


def unlimited(attempt, error):
    """The result of an attempt without a sandbox."""
    return error if attempt in OF_ROOT and os.getuid() != 0 else "done"


def attempts(base, port, conf):
    """The value of FEEDWHEEL_TEST_SANDBOX with ATTEMPTS in this folder and at this port."""
    shadow = "/etc/shadow" if os.access("/etc/shadow", os.R_OK) else conf
    mine, made = os.path.join(base, "mine"), os.path.join(base, "made")
    with open(mine, "w", encoding="ascii") as f:
        f.write("secret\n")
    beside = os.path.join(base, "store", "beside") # what a worker may read
    with open(beside, "w", encoding="ascii") as f:
        f.write("x\n")
    values = [shadow, conf, mine, made, mine, "0", "", "", "", "", "", "", "", "", "", "", beside, "", port, ""]
    return " ".join("%s=%s" % (attempt, value) for (attempt, _), value in zip(ATTEMPTS, values))


@case("a worker cannot access other files, start programs, affect other processes or listen; with sandbox = off it can")
def worker(base):
    sandboxed(*LAYERS)
    with listener() as port:
        for sandbox in ("require", "auto", "off"):
            folder = os.path.join(base, sandbox)
            os.mkdir(folder)
            w = trial_run(folder, [], "sandbox = %s\n" % sandbox)
            w.environment["FEEDWHEEL_TEST_SANDBOX"] = attempts(folder, port, w.conf)
            p = w.start("run", "--workers", "1")
            # a worker can connect, because it fetches from any host
            want = [(a, unlimited(a, error) if sandbox == "off" else error or "done") for a, error in ATTEMPTS]
            equal(results(w, "worker 0"), want, sandbox)
            stop(p)
            equal(os.path.exists(os.path.join(folder, "made")), sandbox == "off")


@case("a worker is as limited on an older kernel, and as another user: Landlock of Linux 6.1, root and nobody")
def older_kernel(base):
    sandboxed("files", "system calls")
    os.chmod(base, 0o755)
    for user in ("root", "nobody") if os.getuid() == 0 else (None,):
        folder = os.path.join(base, user or "self")
        os.mkdir(folder)
        w = trial_run(folder, [])
        if user == "nobody":
            w.inside = ("setpriv", "--reuid=nobody", "--clear-groups")
        w.environment.update(FEEDWHEEL_TEST_SANDBOX=attempts(folder, "1", w.conf), FEEDWHEEL_TEST_LANDLOCK_ABI="2")
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
            if user:
                shutil.chown(path, user)
        p = w.start("run", "--workers", "1")
        # its Landlock has no ports; listen() is refused
        other = {"bind": "done", "connect": "Connection refused"}
        equal(results(w, "worker 0"), [(a, other.get(a, error)) for a, error in ATTEMPTS], user)
        stop(p)


@case("a worker that fills the memory it shares with anything ends no other process")
def scribbles(base):
    sandboxed("memory layout")
    for byte in ("00", "41", "ff"):
        folder = os.path.join(base, byte)
        os.mkdir(folder)
        w = trial_run(folder, [("scribble", byte)])
        p = w.start("run", "--workers", "2")
        for worker in ("worker 0", "worker 1"):
            holds(("scribble", "done") in results(w, worker), w.last_log())
        p.send_signal(signal.SIGTERM)
        # 12: workers may not have come to their store, and end as they like
        holds(p.wait(60) >= 0 and "master is gone" not in w.log(), w.last_log())


@case("the server has the limits of a worker; beside workers it connects only to its store's TCP port, alone it "
      "delivers orders and connects to all; with sandbox = off it has no limits", needs="server")
def server(base):
    sandboxed(*LAYERS)
    with listener() as port:
        for n, (sandbox, command, connect) in enumerate((("auto", "run", EACCES), ("auto", "serve", "done"),
                                                         ("off", "serve", "done"))):
            folder = os.path.join(base, str(n))
            os.mkdir(folder)
            w = trial_run(folder, [], "sandbox = %s\nserve_discovery = no\nlisten = 127.0.0.1:%d\n" % (
                sandbox, free_port()))
            w.environment["FEEDWHEEL_TEST_SANDBOX"] = attempts(folder, port, w.conf)
            p = w.start(command)
            want = [(a, unlimited(a, error) if sandbox == "off" else error or connect) for a, error in ATTEMPTS]
            equal(results(w, "serve"), want, sandbox)
            stop(p)
            equal(os.path.exists(os.path.join(folder, "made")), sandbox == "off")


@contextlib.contextmanager
def broken_store():
    """A port where connections end at once: the workers wait for their store."""
    class Ends(socketserver.BaseRequestHandler):
        pass
    with socketserver.TCPServer(("127.0.0.1", 0), Ends) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield s.server_address[1]
        s.shutdown()


@case("a server beside workers can connect to its store's TCP port; to others not without serve_discovery, but with "
      "websub_url, or with Redis, which names them", needs="server")
def ports(base):
    sandboxed(*LAYERS)
    with broken_store() as store, listener() as other:
        here = "127.0.0.1:%d" % store
        limited = "serve_discovery = no\n"
        for n, (url, conf, result) in enumerate([
            ("postgres://u@%s/x" % here, limited, EACCES),
            ("postgres://u@127.0.0.1/x?port=%d" % store, limited, EACCES),
            ("mysql://u@%s/x" % here, limited, EACCES),
            ("redis://%s" % here, limited, "done"),
            ("postgres://u@%s/x" % here, limited + "websub_url = https://feeds.example/\n", "done"),
            ("postgres://u@%s/x" % here, "", "done"),
        ]):
            if url.split(":")[0] in absent():
                continue
            folder = os.path.join(base, str(n))
            os.mkdir(folder)
            w = trial_run(folder, [("connect", store), ("connect", other)],
                          conf + "listen = 127.0.0.1:%d\n" % free_port(), store=url)
            p = w.start("run", "--workers", "1")
            equal(results(w, "serve"), [("connect", "done"), ("connect", result)], url + " " + conf)
            kill_group(p)


@case("no process of a run can gain privileges or dump core, all have a system call filter, and the environment of "
      "children is not readable")
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
        # the master's filter, and its own
        wait_for("the filters", lambda pid=pid: int(status(pid).get("Seccomp_filters", 2)) >= 2)
    for pid in [p.pid, *workers_of(p)]:
        equal((status(pid)["NoNewPrivs"], status(pid)["Seccomp"]), ("1", "2"), pid)
        equal(os.stat("/proc/%d/environ" % pid).st_uid, 0, "root owns it while the process is not dumpable")
        with open("/proc/%d/limits" % pid, encoding="ascii") as f:
            holds(re.search(r"^Max core file size +0 +0 ", f.read(), re.M), "no core")
    stop(p)


@case("each process has a memory layout of its own, a restarted worker too; the store's URL is not readable in /proc",
      needs="server")
def layout(base):
    sandboxed("memory layout")
    if os.getuid() != 0:
        raise Skip("only root can read /proc/PID/maps")
    w = Feedwheel(base)
    w.run("add", "https://a.example/")
    w.environment["FEEDWHEEL_STORE"] = w.store
    p = w.start("run", "--workers", "2", "--listen", "127.0.0.1:%d" % free_port())

    def addresses(pid):
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            lines = f.read().splitlines()
        names = "/" + os.path.basename(w.binary), "[stack]", "libc.so.6"
        return tuple(next((l.split("-")[0] for l in lines if l.endswith(name)), None) for name in names)

    def text_of(pid, name):
        with open("/proc/%d/%s" % (pid, name), encoding="utf-8") as f:
            return f.read()

    def all_differ():
        pids = [p.pid, *workers_of(p)]
        return len(pids) == 4 and len({addresses(pid) for pid in pids}) == 4
    wait_for("three children with layouts of their own", all_differ)
    first, seen = workers_of(p), {addresses(pid) for pid in [p.pid, *workers_of(p)]}
    os.kill(first[0], signal.SIGKILL)
    wait_for("a new worker", lambda: len(workers_of(p)) == 3 and first[0] not in workers_of(p))
    new = next(pid for pid in workers_of(p) if pid not in first)
    wait_for("a new layout", lambda: addresses(new) not in seen)
    for pid in workers_of(p):
        wait_for("its arguments", lambda pid=pid: text_of(pid, "cmdline")) # a new program has none for a moment
        wait_for("the process name", lambda pid=pid: text_of(pid, "comm") == "feedwheel\n") # at first it is "exe"
        arguments = text_of(pid, "cmdline").split("\0")
        holds(arguments[1] == "child" and arguments[3] in ("worker-0", "worker-1", "server"), arguments)
        holds(w.store not in text_of(pid, "cmdline") + text_of(pid, "environ"), "the URL can contain a password")
    stop(p)


@case("doctor shows the layers of each process, and for sandbox = off or a missing layer the remedy")
def layers(base):
    w = trial_run(base, [])
    del w.environment["FEEDWHEEL_TEST_SANDBOX"]

    def found(*arguments, code=0, **environment):
        w.environment.update(environment)
        output = w.run("doctor", *arguments, code=code).stdout
        for name in environment:
            del w.environment[name]
        return re.findall(r"^(ok|note|broken) +sandbox +(.*)(?:\n +-> (.*))?", output, re.M)
    equal(
        found("--sandbox", "off"),
        [("note", "off: a vulnerability in any process exposes everything its user can access", "sandbox = auto")])
    if sanitized():
        equal(found()[0], ("note", "the master: nothing; missing: no new privileges, no memory dumps, system calls",
                           "this build has no sandbox: it needs Linux, and no sanitizer"))
        return
    sandboxed(*LAYERS)
    master, child = ", ".join(LAYERS[i] for i in (0, 1, 4)), ", ".join(LAYERS)
    equal(
        found("--sandbox", "require"),
        [("ok", "the master: " + master, ""), ("ok", "workers: " + child, ""), ("ok", "the server: " + child, "")])
    for name, remedy in (("files", "lsm="), ("TCP ports", "Linux 6.7"), ("memory layout", "there is no /proc")):
        incomplete = ", ".join(l for l in LAYERS if l != name) + "; missing: " + name
        for sandbox, level in (("auto", "note"), ("require", "broken")):
            rows = found("--sandbox", sandbox, code=1 if level == "broken" else 0, FEEDWHEEL_TEST_NO_LAYER=name)
            equal(
                [r[:2] for r in rows],
                [("ok", "the master: " + master), (level, "workers: " + incomplete),
                 (level, "the server: " + incomplete)])
            holds(remedy in rows[1][2], rows)


@case("with sandbox = require and a missing layer run refuses to start, and a reload keeps the old configuration")
def required(base):
    w = trial_run(base, [])
    del w.environment["FEEDWHEEL_TEST_SANDBOX"]
    w.run("import", "-", stdin="http://127.0.0.1:9/x.xml\n")

    def refused(name, *command):
        r = w.run(*command, "--sandbox", "require", code=None)
        equal(r.returncode, 4, r.stderr)
        holds("sandbox = require: '%s' is missing: " % name in r.stderr
              and r.stderr.endswith("; or set sandbox = auto\n"), r.stderr)
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
    wait_for("the message", lambda: "SIGHUP: sandbox = require: " in w.log())
    holds("; the old configuration stays" in w.log(), w.last_log())
    stop(p)


@case("when the file of CA certificates is replaced, a new worker starts and uses the new file")
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
        wait_for("a new worker", lambda: workers_of(p) not in ([], first))
        holds("a file that worker 0 may read was replaced" in w.log(), w.last_log())
        wait_for("an entry", lambda: w.one("SELECT count(*) FROM entries") > 0)
        stop(p)


@case("the server restarts when the file of CA certificates is replaced, not when it creates its own wal_dir",
      needs="server")
def created_folder(base):
    sandboxed("files")
    bundle = os.path.join(base, "bundle.pem")
    with open(bundle, "w", encoding="ascii") as f:
        f.write("# none yet\n")
    with http_server(base, "--wal-dir", os.path.join(base, "wal"), conf="ca_file = %s\n" % bundle) as d:
        first = workers_of(d.process)
        with open(bundle + ".new", "w", encoding="ascii") as f:
            f.write("# still none\n")
        os.rename(bundle + ".new", bundle)
        wait_for("a new server", lambda: workers_of(d.process) not in ([], first))
        equal(d.feedwheel.log().count("a file that server 0 may read was replaced"), 1, d.feedwheel.last_log())
        d.stop()


@case("a sandboxed worker converts character sets, whose tables the C library reads at their first use")
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
        ("windows-1251", "\u0440\u0443\u0441"),
    ):
        titles[name] = text + " " + name
        document = '<?xml version="1.0" encoding="%s"?><rss version="2.0"><channel><title>t</title>' \
            "<item><guid>%s</guid><title>%s</title></item></channel></rss>" % (name, name, titles[name])
        with open(os.path.join(docs, name + ".xml"), "wb") as f:
            f.write(document.encode(name))
    with origin(base, docs) as o:
        w = Feedwheel(base)
        w.run("import", "-", stdin="".join(u + "\n" for u in o.urls))
        w.run_once()
        equal(sorted(t for t, in w.sql("SELECT title FROM entries")), sorted(titles.values()))


@case("the container's user is not root")
def container(_base):
    with open(os.path.join(ROOT, "Containerfile"), encoding="ascii") as f:
        last = re.split(r"^FROM ", f.read(), flags=re.M)[-1]
    equal(re.findall(r"^USER (.*)$", last, re.M), ["feedwheel"])


def runner_of(p):
    """Process id of the runner of orders' commands; None: it does not run."""
    for pid in workers_of(p):
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                if f.read() == "fw-runner\n":
                    return pid
        except OSError:
            pass
    return None


@case("a worker in its sandbox can let the runner run a program and append to a file, also when the runner was killed; "
      "the runner has no descriptors and no settings, a program has the master's limits; both end with the run")
def runner(base):
    program, facts, target = (os.path.join(base, name) for name in ("program", "facts", "target"))
    with open(program, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n{ cat; grep -e NoNewPrivs -e Seccomp: /proc/self/status; } >%s\n"
                "[ -z \"$1\" ] || exec sleep 1000\n" % facts)
    os.chmod(program, 0o700)
    for sandbox in ("off",) if sanitized() or "seccomp" in absent() else ("require", "off"):
        if sandbox == "require":
            sandboxed(*LAYERS)
        folder = os.path.join(base, sandbox)
        os.mkdir(folder)
        tries = [("command", program), ("append", target), ("append", "/nonexistent/x"), ("command", "/bin/sh"),
                 ("append", os.path.join(folder, "store.db.conf")), ("append", base + "/../x")]
        w = trial_run(folder, tries, "sandbox = %s\norder_programs = %s\norder_files = %s, /nonexistent/\n" % (
            sandbox, program, target))
        p = w.start("run", "--workers", "2")
        want = [("command", "done"), ("append", "done")] + [(what, "Input/output error") for what, _ in tries[2:]]
        equal(results(w, "worker 0"), want)
        equal(results(w, "worker 1"), [(attempt, "Bad file descriptor") for attempt, _ in want], "it has no sender")
        with open(facts, encoding="ascii") as f:
            limited = "1" if sandbox == "require" else "0"
            equal(f.read().split(), ["message", "NoNewPrivs:", limited, "Seccomp:", "2" if limited == "1" else "0"])
        first = runner_of(p)
        wait_for("the last message's file is closed, after its reply",
                 lambda first=first: sorted(os.listdir("/proc/%d/fd" % first)) == ["0", "1", "2", "3"])
        with open("/proc/%d/cmdline" % first, encoding="ascii") as f:
            holds(sandbox == "off" or "\0runner\0" in f.read(), "shown in lists of processes")
        if sandbox == "require" and os.getuid() == 0:
            with open("/proc/%d/environ" % first, encoding="utf-8") as f:
                holds(w.store not in f.read(), "the store's URL")
        # killed, and its worker too, whose successor has the same to do
        os.kill(first, signal.SIGKILL)
        wait_for("the message", lambda: "the runner of orders' commands was killed by signal 9" in w.log())
        os.kill(workers_of(p)[0], signal.SIGKILL)
        wait_for("all results", lambda: len(re.findall(r"worker 0: trial: ", w.log())) == 2 * len(want))
        equal(re.findall(r"worker 0: trial: (\w+): (.*)$", w.log(), re.M), 2 * want)
        second = runner_of(p)
        holds(second not in (None, first), second)
        stop(p)
        holds(not os.path.exists("/proc/%d" % second), "the runner is gone")
        with open(target, encoding="ascii") as f:
            equal(f.read(), "message\n" * 2)
        os.remove(target)


@case("without a program or file in the configuration no process has a socket to the runner, after a reload it may; "
      "a reload takes it away")
def no_runner(base):
    for n, none in enumerate(("", "order_commands = none\norder_programs = /bin/true\n")):
        folder = os.path.join(base, str(n))
        os.mkdir(folder)
        w = trial_run(folder, [("command", "/bin/true")], none)
        p = w.start("run", "--workers", "1")
        equal(results(w, "worker 0"), [("command", "Bad file descriptor")])
        equal(sockets(p.pid), [], "nor has the master")
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("order_commands = local\norder_programs = /bin/true\n")
        p.send_signal(signal.SIGHUP)
        wait_for("another worker", lambda w=w: "trial: command: done" in w.log())
        equal(runner_of(p) is None, False)
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("order_programs = /bin/false\n")
        p.send_signal(signal.SIGHUP)
        wait_for("a third worker", lambda w=w: "trial: command: Input/output error" in w.log())
        stop(p)


def sockets(pid):
    """The sockets of a process that are open in pairs, such as the runner's."""
    links = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
    return [l for l in links if l.startswith("socket:")]


@case("the server alone can use the runner; one beside workers cannot", needs="server")
def server_runner(base):
    allowed = "order_programs = /bin/true\n"
    w = trial_run(base, [("command", "/bin/true")], allowed + "listen = 127.0.0.1:%d\n" % free_port())
    p = w.start("serve")
    equal(results(w, "serve"), [("command", "done")])
    stop(p)
    beside = os.path.join(base, "beside")
    os.mkdir(beside)
    w = trial_run(beside, [("command", "/bin/true")], allowed + "listen = 127.0.0.1:%d\n" % free_port())
    p = w.start("run", "--workers", "1")
    equal((results(w, "worker 0"), results(w, "serve")), ([("command", "done")], [("command", "Bad file descriptor")]))
    stop(p)


@case("the metrics show the memory of all processes, also with a /proc that hides other processes", needs="server")
def hidden(base):
    sandboxed("files")
    mount = "mount -t proc -o hidepid=2 proc /proc"
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", *mount.split()],
                                          capture_output=True, check=False).returncode:
        raise Skip("only root can mount another /proc")
    d = HttpServer(base, "--workers", "1", command="run",
                   inside=("unshare", "-m", "sh", "-c", mount + ' && exec "$@"', "sh"))

    def shown():
        return re.findall(
            r'^feedwheel_process_resident_memory_bytes\{process="(\w+)",index="0"\} ([0-9.e+]+)$',
            d.request("GET", "/metrics")[2], re.M)
    wait_for("all three processes", lambda: [s[0] for s in shown()] == ["master", "worker", "server"])
    holds(all(float(s[1]) > 1e6 for s in shown()), shown())
    d.stop()


run()
