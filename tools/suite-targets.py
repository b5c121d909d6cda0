#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""suite-targets.py TREE SUITE [-SUITE]: prints the ninja targets that the tests of that suite need ("": of all
suites), without those that are also in the second one."""
import json
import os
import subprocess
import sys


def introspect(tree, what):
    return json.loads(subprocess.run(["meson", "introspect", what, tree], check=True, stdout=subprocess.PIPE).stdout)


def main(tree, suite, without=""):
    def wanted(test):
        suites = {s.rpartition(":")[2] for s in test["suite"]}
        return (not suite or suite in suites) and without.removeprefix("-") not in suites

    files = {t["id"]: t["filename"] for t in introspect(tree, "--targets")}
    needed = {d for t in introspect(tree, "--tests") if wanted(t) for d in t["depends"]}
    if not needed:
        sys.exit("%s: there is no suite %s, or it needs no targets" % (tree, suite))
    for d in sorted(needed):
        for f in files[d]:
            print(os.path.relpath(f, os.path.realpath(tree)))


if __name__ == "__main__":
    main(*sys.argv[1:])
