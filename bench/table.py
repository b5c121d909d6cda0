# SPDX-License-Identifier: ISC
"""Shared by the benchmarks: rows with a goal, sizes, and the selection of parts and stores.

A row: name, ours, reference, ratio, goal, and as its last word ok, short, - (no goal), or skipped
with the reason. TINY=1: sizes of seconds, with which tests check that the benchmarks work; the
figures are meaningless.
"""
import atexit
import os
import shutil
import statistics
import sys
import time
import traceback

short = []
median = statistics.median


def die(message, *arguments):
    print(message % arguments, file=sys.stderr)
    sys.exit(2)


def size(name, usual, tiny):
    """A number: from the environment variable, or the usual one, or with TINY=1 the tiny one. 0 only if
    that is the usual one."""
    value = os.environ.get(name)
    default = tiny if os.environ.get("TINY") else usual
    try:
        number = type(usual)(value) if value else default
    except ValueError:
        number = -1
    if number < 0 or (usual and not number):
        die("%s=%s: not a number above 0", name, value)
    return number


def selection(name, known):
    """The names in the environment variable, separated by spaces or commas; without it all known ones."""
    selected = os.environ.get(name, "").replace(",", " ").split()
    wrong = [word for word in selected if word not in known]
    if wrong:
        die("%s=%s: %s is unknown, known are: %s", name, os.environ[name], wrong[0], " ".join(known) or "none")
    return selected or list(known)


def scratch(build, name):
    """A folder for files. With TINY=1 it is removed at the end, and several runs can work at once."""
    if not os.environ.get("TINY"):
        return os.path.join(build, name)
    folder = os.path.join(build, "%s-%d" % (name, os.getpid()))
    atexit.register(shutil.rmtree, folder, True)
    return folder


def all_due(fw, n):
    """Waits until n feeds are due: on a busy machine a run may have started its next round."""
    while fw.json("status")["due"] < n:
        time.sleep(0.1)


def head(title):
    print("# %s\n%-58s %13s %13s %8s %8s" % (title, "# name", "ours", "reference", "ratio", "goal"), flush=True)


def row(name, ours, reference, ratio, goal, fine):
    """fine: True, False, None (no goal), or the reason why the row is skipped."""
    word = "skipped: " + fine if isinstance(fine, str) else "-" if fine is None else "ok" if fine else "short"
    print("%-58s %13s %13s %8s %8s  %s" % (name, ours, reference, ratio, goal, word), flush=True)
    if fine is False:
        short.append(name)


def ratio_row(name, ours, reference, ratio, most=None, least=None):
    """A ratio with an upper (most) or lower limit (least); without a limit it is only shown."""
    goal = "<=%g" % most if most is not None else ">=%g" % least if least is not None else "-"
    fine = ratio <= most if most is not None else ratio >= least if least is not None else None
    row(name, ours, reference, "%.3f" % ratio, goal, fine)


def benchmark(main):
    """Exit status 1: a row is short; 2: the benchmark failed."""
    try:
        main()
    except Exception: # pylint: disable=broad-except
        traceback.print_exc()
        sys.exit(2)
    sys.exit(1 if short else 0)
