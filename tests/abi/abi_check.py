# SPDX-License-Identifier: ISC
"""The library's interface: exactly the symbols of libfeedwheel.symbols, each declared FW_API, and
headers that compile alone in each language.

usage: abi_check.py LIBRARY SOURCE_ROOT [COMPILER...]; prints TAP
"""
import os
import re
import shutil
import subprocess
import sys

FAILED = []


def tell(ok, what, *why):
    tell.n = getattr(tell, "n", 0) + 1
    print("%sok %d - %s" % ("" if ok else "not ", tell.n, what))
    for line in why if not ok else ():
        print("# " + line)
    if not ok:
        FAILED.append(what)


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def symbols(library, root):
    path = os.path.join(root, "tests", "abi", "libfeedwheel.symbols")
    with open(path, encoding="ascii") as f:
        kept = set(f.read().split())
    there = set(line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines())
    tell(not kept - there, "no symbol was dropped", "gone: " + ", ".join(sorted(kept - there)),
         "programs that use them would not start: export them again,"
         " or raise soversion in src/meson.build and remove them from " + path)
    tell(not there - kept, "no symbol was added", "new: " + ", ".join(sorted(there - kept)),
         "an exported symbol is a lasting promise: add it to " + path + ", or remove its FW_API")
    declared = set()
    folder = os.path.join(root, "include", "feedwheel")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        declared |= set(re.findall(r"^FW_API[^;{]*?\b(fw_\w+)\s*(?:\(|;)",
                        re.sub(r"\b(FW_PRINTF|FW_MUST_CHECK)(\(\d+, \d+\))?", "", text), re.M))
    tell(declared == kept, "the headers declare exactly the library's symbols as FW_API",
         "declared only: " + ", ".join(sorted(declared - kept)),
         "in the library only: " + ", ".join(sorted(kept - declared)))


def debian(root):
    """debian/libfeedwheel0.symbols has the first version of each symbol."""
    path = os.path.join(root, "debian", "libfeedwheel0.symbols")
    with open(os.path.join(root, "tests", "abi", "libfeedwheel.symbols"), encoding="ascii") as f:
        kept = set(f.read().split())
    with open(path, encoding="ascii") as f:
        packaged = set(re.findall(r"^ (\w+)@Base \d", f.read(), re.M))
    tell(packaged == kept, "the Debian package has the same symbols", "missing in %s: %s" %
         (path, ", ".join(sorted(kept - packaged))), "there only: " + ", ".join(sorted(packaged - kept)))


def version(library, root):
    soname = re.search(r"SONAME\s+(\S+)", output("objdump", "-p", library))[1]
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as f:
        project = re.search(r"version: '([\d.]+)'", f.read())[1]
    tell(soname == "libfeedwheel.so.0", "the soname is libfeedwheel.so.0", "it is " + soname)
    file = os.path.basename(os.path.realpath(library))
    tell(file == "libfeedwheel.so." + project, "the file's version is the project's",
         "it is %s, the project %s" % (file, project))


def headers(root):
    include = os.path.join(root, "include")
    names = ["feedwheel.h"] + ["feedwheel/" + n for n in sorted(os.listdir(os.path.join(include, "feedwheel")))]
    for compiler, language in (
        ("gcc", "c11"),
        ("gcc", "c17"),
        ("clang", "c11"),
        ("clang", "c17"),
        ("g++", "c++17"),
        ("clang++", "c++17")):
        if not shutil.which(compiler):
            tell(True, "headers: %s is not installed # SKIP" % compiler)
            continue
        bad = []
        for name in names:
            r = subprocess.run(
                [compiler, "-x" + language[: -2],
                 "-std=" + language, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I", include,
                 "-include", name, os.devnull],
                capture_output=True, text=True, check=False)
            if r.returncode:
                bad.append("%s: %s" % (name, next((l for l in r.stderr.splitlines() if "error" in l), r.stderr[:300])))
        tell(not bad, "headers: each compiles alone by %s as %s" % (compiler, language), *bad)


def main():
    library, root = sys.argv[1:3]
    symbols(library, root)
    debian(root)
    version(library, root)
    headers(root)
    print("1..%d" % tell.n)
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
