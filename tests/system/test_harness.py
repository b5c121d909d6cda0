#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""No process that a test program starts outlives it, whether a case fails, leaves a process running,
or the program is killed."""
import glob
import os
import signal
import subprocess
import sys

from harness import BUILD, ROOT, case, each_engine, engines, equal, holds, run, sanitized, wait_for

BEGIN = """
import sys, time
sys.path.insert(0, %r)
from harness import Origin, Server, Feedwheel, case, run, samples, wait_for

@case("a run, an origin and a store's server")
def processes(base):
    server = Server(%r, base) if %r else None
    # the drain may have no store
    w = Feedwheel(base, "workers = 2\\ndrain_timeout_ms = 1s\\n", store=server and server.url())
    o = Origin(base, samples(base), "--feeds", "5")
    w.run("import", o.url_file)
    p = w.start("run")
    wait_for("both workers", lambda: len(w.json("status")["workers"]) == 2)
"""
END = "\n@case('another case')\ndef other(base):\n    Feedwheel(base).run('add', 'https://a.example/')\n\nrun()\n"
PARTED = """
import sys
sys.path.insert(0, %r)
from harness import case, each_engine, run

@each_engine("on each store", also=["sqlite"])
def each(base, engine):
    pass

@case("on Redis", needs="redis")
def redis(base):
    pass

@case("with the server", needs="server")
@case("on none")
def none(base):
    pass

run()
"""
SLEEP = "open(base + '/ready', 'w').close(); time.sleep(60)"


def program(base, end, engine=None):
    """A test program whose first case starts several processes and ends with this statement."""
    engine = engine or (engines() or [""])[0]
    os.chmod(base, 0o711) # for a server's user, if root runs the test
    path = os.path.join(base, "inner.py")
    with open(path, "w", encoding="ascii") as f:
        f.write(BEGIN % (os.path.dirname(os.path.abspath(__file__)), engine, engine) + "    %s\n" % end + END)
    return subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, "TMPDIR": base, "FW_STORES_DONE": ""})


def processes_of(base):
    """Processes with this folder in their arguments or their environment."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            for name in "cmdline", "environ":
                with open(os.path.join(folder, name), "rb") as f:
                    if base.encode() in f.read() and int(folder[6:]) != os.getpid():
                        found.append(int(folder[6:]))
        except OSError: # it has ended, or belongs to another user
            pass
    return sorted(set(found))


def output_of(base, p):
    """Waits for the end of the program and of all processes that it started; returns its output."""
    output = p.communicate(timeout=60)[0]
    wait_for("the end of its processes", lambda: not processes_of(base), 10)
    return output


def wait_ready(base, p):
    """Waits for the program, `run`, its two workers, the origin, and the engine's server."""
    def ready():
        equal(p.poll(), None, "it has ended")
        return glob.glob(base + "/fw-*/ready")
    wait_for("the program to be ready", ready, 60)
    n = len(processes_of(base))
    holds(n >= 5, "processes: %d" % n)


@each_engine("a case that fails leaves no process running, and the next one starts")
def fails(base, engine):
    p = program(base, "raise AssertionError('on purpose')", engine)
    output = output_of(base, p)
    equal(p.returncode, 1, output)
    holds("on purpose" in output and "not ok 1" in output and "\nok 2" in output, output)
    equal(glob.glob(base + "/fw-*"), [], "folders")


@case("a case that leaves a process running fails, and the process is ended")
def leaves_process(base):
    p = program(base, "pass")
    output = output_of(base, p)
    equal(p.returncode, 1, output)
    holds("not ok 1" in output and "left running" in output and "feedwheel" in output and "\nok 2" in output, output)


@case("at SIGTERM during a case the program ends all processes and removes its folders")
def terminated(base):
    p = program(base, SLEEP)
    wait_ready(base, p)
    p.terminate()
    output = output_of(base, p)
    equal((p.returncode, glob.glob(base + "/fw-*")), (128 + signal.SIGTERM, []), output)


@each_engine("when the program is killed during a case, its processes end")
def killed(base, engine):
    p = program(base, SLEEP, engine)
    wait_ready(base, p)
    p.kill()
    output_of(base, p)


@case("an unknown store in FW_STORES or FW_STORES_DONE is an error, because a test without stores would pass")
def unknown_store(base):
    for variable in "FW_STORES", "FW_STORES_DONE":
        for argv in (
            [os.path.join(BUILD, "tests", "store", "store_records")],
            [sys.executable, os.path.join(ROOT, "tests", "system", "test_backup.py")],
        ):
            r = subprocess.run(argv, env={**os.environ, variable: "sqlite,pg", "TMPDIR": base},
                               capture_output=True, text=True, check=False)
            holds(r.returncode and variable + ": pg is unknown" in r.stderr and "ok 1" not in r.stdout,
                  r.stdout + r.stderr)


@case("a run with FW_STORES, and then one with the same in FW_STORES_DONE, have each case once")
def two_runs(base):
    path = os.path.join(base, "inner.py")
    with open(path, "w", encoding="ascii") as f:
        f.write(PARTED % os.path.dirname(os.path.abspath(__file__)))

    def titles(**environment):
        env = {**os.environ, "FW_STORES": "", "FW_STORES_DONE": "", "FW_PART": "1/1", "TMPDIR": base, **environment}
        output = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, check=True).stdout
        return sorted(line.partition(" - ")[2].partition(" #")[0] for line in output.splitlines() if " - " in line)
    every = titles()
    holds(len(every) > 2, every)
    for names in ["sqlite"] if sanitized() else ["sqlite", "sqlite,redis", "postgres,mysql", "memory,redis,mysql"]:
        equal(sorted(titles(FW_STORES=names) + titles(FW_STORES_DONE=names)), every, names)


run()
