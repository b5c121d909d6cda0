#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The tests' own promise: nothing they start outlives them, whether a case fails, forgets
something, or the program is killed."""
import glob
import os
import signal
import subprocess
import sys

from harness import BUILD, ROOT, case, each_engine, engines, equal, holds, run, wait_for

BEGIN = """
import sys, time
sys.path.insert(0, %r)
from harness import Origin, Server, Feedwheel, case, run, samples, wait_for

@case("a fleet at work")
def fleet(base):
    server = Server(%r, base) if %r else None
    # they drain, perhaps without a store
    w = Feedwheel(base, "workers = 2\\ndrain_timeout_ms = 1s\\n", store=server and server.url())
    o = Origin(base, samples(base), "--feeds", "5")
    w.run("import", o.url_file)
    p = w.start("run")
    wait_for("both workers", lambda: len(w.json("status")["workers"]) == 2)
"""
END = "\n@case('and another')\ndef other(base):\n    Feedwheel(base).run('add', 'https://a.example/')\n\nrun()\n"
SLEEP = "open(base + '/ready', 'w').close(); time.sleep(60)"


def program(base, end, engine=None):
    """A test program whose first case has a fleet at work and then does this."""
    engine = engine or (engines() or [""])[0]
    os.chmod(base, 0o711) # a server that root starts runs as somebody else
    path = os.path.join(base, "inner.py")
    with open(path, "w", encoding="ascii") as f:
        f.write(BEGIN % (os.path.dirname(os.path.abspath(__file__)), engine, engine) + "    %s\n" % end + END)
    return subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, "TMPDIR": base})


def of(base):
    """Processes that know this folder, by their arguments or their environment."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            for name in "cmdline", "environ":
                with open(os.path.join(folder, name), "rb") as f:
                    if base.encode() in f.read() and int(folder[6:]) != os.getpid():
                        found.append(int(folder[6:]))
        except OSError: # gone meanwhile, or somebody else's
            pass
    return sorted(set(found))


def over(base, p):
    """What it said, once it and all it started are gone."""
    said = p.communicate(timeout=60)[0]
    wait_for("all it started to be gone", lambda: not of(base), 10)
    return said


def at_work(base, p):
    """The program, `run`, its two workers, the origin; and what an engine's server is."""
    def ready():
        equal(p.poll(), None, "it left")
        return glob.glob(base + "/fw-*/ready")
    wait_for("it to be at work", ready, 60)
    n = len(of(base))
    holds(n >= 5, "processes: %d" % n)


@each_engine("a case that fails leaves nothing running, and the next one begins")
def fails(base, engine):
    p = program(base, "raise AssertionError('on purpose')", engine)
    said = over(base, p)
    equal(p.returncode, 1, said)
    holds("on purpose" in said and "not ok 1" in said and "\nok 2" in said, said)
    equal(glob.glob(base + "/fw-*"), [], "folders")


@case("a case that passes but has left something running is told")
def forgets(base):
    p = program(base, "pass")
    said = over(base, p)
    equal(p.returncode, 1, said)
    holds("not ok 1" in said and "left running" in said and "feedwheel" in said and "\nok 2" in said, said)


@case("told to end in the middle, the program ends all and takes its folders away")
def told(base):
    p = program(base, SLEEP)
    at_work(base, p)
    p.terminate()
    said = over(base, p)
    equal((p.returncode, glob.glob(base + "/fw-*")), (128 + signal.SIGTERM, []), said)


@each_engine("killed in the middle, the program takes all with it")
def killed(base, engine):
    p = program(base, SLEEP, engine)
    at_work(base, p)
    p.kill()
    over(base, p)


@case("a store in FW_STORES that nobody knows is an error: a test of nothing would pass")
def unknown_store(base):
    for argv in [
        os.path.join(BUILD, "tests", "store", "store_records")], [
        sys.executable, os.path.join(ROOT, "tests", "system", "test_backup.py")]:
        r = subprocess.run(
            argv, env={**os.environ, "FW_STORES": "sqlite,pg", "TMPDIR": base},
            capture_output=True, text=True, check=False)
        holds(r.returncode and "pg is unknown" in r.stderr and "ok 1" not in r.stdout, r.stdout + r.stderr)


run()
