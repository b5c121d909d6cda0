#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Add up the test cases in the trees named: meson's junit logs, and the fuzz runner's count. Prints one closing line."""
import os
import sys
import xml.etree.ElementTree as ET

passed = failed = skipped = 0
for tree in sys.argv[1:]:
    log = os.path.join(tree, "meson-logs", "testlog.junit.xml")
    fuzz = os.path.join(tree, "fuzz-count.txt")
    if os.path.exists(fuzz):
        with open(fuzz, encoding="ascii") as f:
            good, bad = (int(x) for x in f.read().split())
        passed += good
        failed += bad
        print(f"  {tree}: {good} targets passed, {bad} failed")
    if not os.path.exists(log):
        continue
    here = [0, 0, 0]
    for case in ET.parse(log).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            here[1] += 1
        elif case.find("skipped") is not None:
            here[2] += 1
        else:
            here[0] += 1
    print(f"  {tree}: {here[0]} passed, {here[1]} failed, {here[2]} skipped")
    passed, failed, skipped = passed + here[0], failed + here[1], skipped + here[2]
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
