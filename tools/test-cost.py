#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Measures each test. As meson's wrapper it appends a line for each test to the file COST: CPU seconds,
those of the kernel, wall seconds, thousands of page faults, and the test's name. Processes that
outlive their parent, as servers do, are waited for as init would, and counted if they end within
half a second of the test. tools/check.sh prints the most expensive ones.

  COST=/tmp/cost meson test -C build --no-rebuild --wrapper "$PWD/tools/test-cost.py" && sort -rn /tmp/cost | head
"""
import contextlib
import ctypes
import os
import resource
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def reap(until):
    """Wait for processes whose parent has ended."""
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)


def ended(child):
    """Wait for the child, and meanwhile for all that it leaves behind; its exit status as the shell has it."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: None) # at a timeout the test ends first: the signal is its group's too
    began = time.monotonic()
    code = ended(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]))
    wall = time.monotonic() - began
    reap(time.monotonic() + 0.5)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = " ".join(os.path.basename(word) for word in sys.argv[1:3])
    with open(os.environ["COST"], "a", encoding="utf-8") as f:
        f.write("%7.1f %7.1f %7.1f %7d  %s %s\n" % (used.ru_utime + used.ru_stime, used.ru_stime, wall,
                used.ru_minflt // 1000, name, os.environ.get("FW_PART", "")))
    return code


if __name__ == "__main__":
    sys.exit(main())
