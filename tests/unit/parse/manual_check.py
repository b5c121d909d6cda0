# SPDX-License-Identifier: ISC
"""The example of libfeedwheel(3): taken from the manual, compiled and run. Its output must be the
output in the manual.

usage: manual_check.py MANUAL INCLUDE LIBRARY CC...
"""
import os
import re
import subprocess
import sys
import tempfile


def part(manual, name):
    """The text of the display between the comments with this name."""
    found = re.search(r'^\.\\" %s begins\n\.Bd [^\n]*\n(.*?)^\.Ed\n\.\\" %s ends$' %
                      (re.escape(name), re.escape(name)), manual, re.S | re.M)
    if not found:
        raise SystemExit(f"the manual has no {name}")
    return found[1].replace("\\e", "\\")


def main():
    path, include, library, *cc = sys.argv[1:]
    library = os.path.abspath(library)
    with open(path, encoding="utf-8") as f:
        manual = f.read()
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "example.c"), os.path.join(folder, "example")
        with open(source, "w", encoding="utf-8") as f:
            f.write(part(manual, "example.c"))
        subprocess.run([*cc, "-std=c17", "-Wall", "-Wextra", "-Werror", "-I", include, source, "-o", program, library,
                        "-Wl,-rpath," + os.path.dirname(library)], check=True)
        run = subprocess.run([program], input=part(manual, "example.xml").encode(), capture_output=True, check=False)
    want = part(manual, "example.out")
    if run.returncode or run.stdout.decode() != want:
        print(f"exit {run.returncode}, printed:\n{run.stdout.decode()}{run.stderr.decode()}\nthe manual has:\n{want}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
