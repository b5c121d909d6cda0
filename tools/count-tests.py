#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""count-tests.py FILE...: adds up the test cases in meson's logs (TREE/meson-logs/NAME.json) and the fuzz
runner's counts (TREE/fuzz-count.txt).

It prints each failed case with the last lines of what it said, and then the sum. A program that failed
without a failed case of its own (timeout, crash, leak) counts as one more failure.
"""
import json
import os
import re
import sys

CASE = re.compile(r"^(not ok|ok)\b([^#\n]*)(# *SKIP)?", re.M | re.I)
LINES = 10  # the limit of lines from a failed case


def meson_log(path):
    """A dict per test program, from meson's log."""
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            yield from map(json.loads, f)


def last_lines(text):
    lines = [line.strip() for line in text.splitlines()]
    return ["      " + line[:300] for line in lines if line and not CASE.match(line)][-LINES:]


def said(test, found):
    """What a failed case said, which follows its line; or else what its program said."""
    rest = test.get("stdout", "")[found.end():]
    following = CASE.search(rest)
    own = last_lines(rest[:following.start()] if following else rest)
    return own or last_lines(test.get("stderr", ""))


def count(path, tree):
    """passed, failed, skipped of one log, and the lines about the failures."""
    n = {"ok": 0, "not ok": 0, "skip": 0}
    words = []
    for test in meson_log(path):
        bad = []
        name = f"  {tree}: {test['name'].rpartition(' / ')[2]}: "
        cases = list(CASE.finditer(test.get("stdout", "")))
        for found in cases:
            state, title, skip = found.groups()
            n["skip" if skip else state.lower()] += 1
            if state.lower() == "not ok":
                bad += [name + title.strip(" -"), *said(test, found)]
        if test["result"] in ("OK", "EXPECTEDFAIL", "SKIP"):
            if not cases:
                n["skip" if test["result"] == "SKIP" else "ok"] += 1
        elif not bad:
            n["not ok"] += 1
            bad = [name + f"{test['result']} after {test['duration']:.0f} s, return code {test['returncode']}",
                   *last_lines(test.get("stdout", "") + "\n" + test.get("stderr", ""))]
        words += bad
    return n["ok"], n["not ok"], n["skip"], words


def main():
    passed = failed = skipped = 0
    words = []
    for path in sys.argv[1:]:
        tree = path.split(os.sep)[0]
        if path.endswith("fuzz-count.txt"):
            with open(path, encoding="ascii") as f:
                good, bad = (int(x) for x in f.read().split())
            left = 0
            print(f"  {tree}: {good} targets passed, {bad} failed")
        else:
            good, bad, left, said_here = count(path, tree)
            words += said_here
            print(f"  {tree}: {good} passed, {bad} failed, {left} skipped")
        passed, failed, skipped = passed + good, failed + bad, skipped + left
    print("\n".join(words + [f"{passed} passed, {failed} failed, {skipped} skipped"]))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
