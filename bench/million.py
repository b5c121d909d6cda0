#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Part of make bench-store: the same commands and the same worker with FEEDS feeds, compared with FEW.

Servers are private, as durable as in production. All feeds are due at once, each host has four of
them, and the origin serves a short document for each. A time is the median of RUNS; it contains the
start of the program. A worker's memory is its peak RSS after as many visits as the small store has
feeds. Exit status 1: a row is short (table.py).

  RUNS=5 FEEDS=1000000 FEW=10000 STORES="sqlite postgres"
"""
import os
import shutil
import tempfile
import time

import collect
from collect import Origin, Feedwheel, measure
from harness import Server, engines, samples
from table import benchmark, die, head, median, ratio_row, row, selection, size

RUNS = size("RUNS", 5, 1)
FEEDS = size("FEEDS", 1000000, 8000)
FEW = size("FEW", 10000, 500)
GOAL_STORES = ("sqlite", "postgres")
COMMAND_S = 0.3
IMPORT_MB = 200
IMPORT_S = {"postgres": 60}
WORKER = 1.2     # times the memory
DOCUMENTS = 1000 # the origin has so many; the address of a feed is a host and one of them


def address(base_url, i):
    host = i // 4
    name = "127.%d.%d.%d" % (1 + host // 62500, host // 250 % 250, 1 + host % 250)
    return base_url("/feed/%d" % (i % DOCUMENTS), name)


def timed(fw, *arguments):
    """Median of the wall and of the CPU seconds of a command of ours."""
    ran = []
    for _ in range(RUNS):
        wall, cpu, _, out, code = measure(fw.command(*arguments), env=fw.environment)
        if code != 0:
            die("bench-store: feedwheel %s: exit %d: %s", " ".join(arguments), code, out[-300:])
        ran.append((wall, cpu))
    return median(w for w, _ in ran), median(c for _, c in ran)


def peak_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def worker_kib(fw, visits):
    """The peak RSS of one worker after so many visits."""
    p = fw.start("run", "--quiet", "--workers", "1")
    while sum(w["visits"] for w in fw.json("status")["workers"]) < visits:
        if p.poll() is not None:
            die("bench-store: feedwheel run: exit %d", p.returncode)
        time.sleep(0.5)
    with open("/proc/%d/task/%d/children" % (p.pid, p.pid), encoding="ascii") as f:
        peak = max(peak_kib(int(child)) for child in f.read().split())
    p.terminate()
    p.wait()
    return peak


class Sized:
    """A store with n feeds, imported."""

    def __init__(self, base, origin, n, url):
        os.makedirs(base)
        self.n, self.fw = n, Feedwheel(base, store=url)
        path = os.path.join(base, "list")
        with open(path, "w", encoding="ascii") as f:
            f.writelines(address(origin.url, i) + "\n" for i in range(n))
        self.wall, self.cpu, self.kib, out, code = measure(self.fw.command("import", path), env=self.fw.environment)
        if code or self.fw.json("status")["feeds"] != n:
            die("bench-store: the import of %d feeds: exit %d: %s", n, code, out)
        self.one = address(origin.url, n // 2)


def compare(name, few, many):
    most = IMPORT_S.get(name)
    row("%s: import, time" % name, "%.1f s" % many.wall, "%.1f s" % few.wall, "%.0f" % (many.wall / few.wall),
        "<=%d s" % most if most else "-", many.wall <= most if most else None)
    row("  its CPU", "%.1f s" % many.cpu, "%.1f s" % few.cpu, "%.0f" % (many.cpu / max(few.cpu, 0.001)), "-", None)
    row("%s: import, peak RSS" % name, "%.0f MB" % (many.kib / 1024), "%.0f MB" % (few.kib / 1024),
        "%.2f" % (many.kib / few.kib), "<=%d MB" % IMPORT_MB, many.kib / 1024 <= IMPORT_MB)
    for command in (("list", "--limit", "20"), ("list", "--failing"), ("status",), ("why",)):
        of = [timed(s.fw, *command, *([s.one] if command == ("why",) else [])) for s in (many, few)]
        row("%s: %s" % (name, " ".join(command)), "%.3f s" % of[0][0], "%.3f s" % of[1][0],
            "%.1f" % (of[0][0] / of[1][0]), "<=%g s" % COMMAND_S, of[0][0] <= COMMAND_S)
        row("  its CPU", "%.3f s" % of[0][1], "%.3f s" % of[1][1], "%.1f" % (of[0][1] / max(of[1][1], 0.001)), "-",
            None)
    kib = [worker_kib(s.fw, FEW) for s in (many, few)]
    ratio_row("%s: a worker, peak RSS after %d visits" % (name, FEW), "%.1f MB" % (kib[0] / 1024),
              "%.1f MB" % (kib[1] / 1024), kib[0] / kib[1], most=WORKER)


def main():
    base = collect.WORK = tempfile.mkdtemp(prefix="feedwheel-million-")
    os.chmod(base, 0o711)
    picked = selection("STORES", ("sqlite", "postgres", "mysql", "redis"))
    names = [n for n in picked if n == "sqlite" or n in engines()]
    if not os.environ.get("STORES"):
        names = [n for n in names if n in GOAL_STORES]
    servers, origin = {}, None
    try:
        origin = Origin(base, samples(base, "--copies", "1", "--entries", "3"), "--feeds", str(DOCUMENTS), log=False)
        head("%d feeds, compared with %d; median of %d" % (FEEDS, FEW, RUNS))
        for name in names:
            if name != "sqlite":
                servers[name] = Server(name, base, "durable")
            few, many = (Sized(os.path.join(base, name + "-" + what), origin, n,
                               servers[name].url(what) if name in servers else None)
                         for what, n in (("few", FEW), ("many", FEEDS)))
            compare(name, few, many)
    finally:
        if origin:
            origin.stop()
        for s in servers.values():
            s.stop()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    benchmark(main)
