#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Measures each test. As meson's wrapper it appends a line for each test to the file COST: CPU seconds,
those of the kernel, wall seconds, thousands of page faults, and the test's name. Processes that
outlive their parent are not counted.

  COST=/tmp/cost meson test -C build --no-rebuild --wrapper "$PWD/tools/test-cost.py" && sort -rn /tmp/cost | head
"""
import os
import resource
import subprocess
import sys
import time


def main():
    began = time.monotonic()
    code = subprocess.run(sys.argv[1:], check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = " ".join(os.path.basename(word) for word in sys.argv[1:3])
    with open(os.environ["COST"], "a", encoding="utf-8") as f:
        f.write("%7.1f %7.1f %7.1f %7d  %s %s\n" % (used.ru_utime + used.ru_stime, used.ru_stime,
                time.monotonic() - began, used.ru_minflt // 1000, name, os.environ.get("FW_PART", "")))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
