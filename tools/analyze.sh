#!/bin/sh
# SPDX-License-Identifier: ISC
# Run clang's analyzer over src/; it must report 0 warnings. An optional argument names the build folder whose
# compiler commands are used (build); it must be built. Results are cached in TREE/analyze/ until a source is compiled
# again. CLANG=clang-19 selects the compiler.
set -u
cd "$(dirname "$0")/.." || exit 1
tree=${1:-build} clang=${CLANG:-clang}
# Less inlining and a smaller search than by default: a quarter of the time, and nearly the same findings.
options="--analyze -w -Xclang -analyzer-output=text -Xclang -analyzer-config"
options="$options -Xclang max-inlinable-size=20,max-nodes=20000"

env "$clang" --version >/dev/null 2>&1 || { echo "analyze: skipped: there is no $clang"; exit 0; }
[ -f "$tree/compile_commands.json" ] || { echo "analyze: skipped: $tree is not built: run make first"; exit 0; }

# Self-test: the analyzer must find a known defect.
# shellcheck disable=SC2086 # a list
printf '%s\n' '#include <stdlib.h>' 'static void drop(int **p) { free(*p); }' \
	'int f(int *n) { int *p[1] = {n}; for (int i = 0; i < 1; i++) drop(&p[i]); return *n; }' |
	"$clang" $options -o /dev/null -x c - 2>&1 | grep -q 'unix\.Malloc' ||
	{ echo "analyze: $clang does not find a use after free: see the options in tools/analyze.sh" >&2; exit 1; }

exec python3 - "$tree" "$clang" "$options" <<'END'
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

tree, clang, options = sys.argv[1:]
version = subprocess.run([clang, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
key = "%s %s\n" % (version, options)  # the first line of a result
os.chdir(tree)
os.makedirs("analyze", exist_ok=True)


def look(command):
    """The result's file; made anew if it is older than the object (ninja knows the headers) or the source."""
    source, obj = command["file"], command["output"]
    result = "analyze/%s.txt" % os.path.relpath(source, "../src").replace("/", "-")
    try:
        with open(result) as f:
            if f.readline() == key and os.path.getmtime(result) > max(os.path.getmtime(obj), os.path.getmtime(source)):
                return result
    except OSError:
        pass
    flags = [a for a in shlex.split(command["command"]) if a.startswith(("-I", "-D", "-U", "-std"))]
    done = subprocess.run([clang, *options.split(), *flags, source, "-o", os.devnull],
                          stderr=subprocess.PIPE, text=True)
    with open(result + ".new", "w") as f:
        f.write(key + done.stderr)
        if done.returncode and not done.stderr:
            f.write("%s: %s ended with %d\n" % (source, clang, done.returncode))
    os.replace(result + ".new", result)
    return result


with open("compile_commands.json") as f:
    commands = {c["file"]: c for c in reversed(json.load(f)) if c["file"].startswith("../src/")}
bad = 0
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    for result in pool.map(look, commands.values()):
        with open(result) as f:
            f.readline()
            words = f.read()
        sys.stderr.write(words)
        bad += words != ""
print("analyze: %d files, %d with warnings" % (len(commands), bad))
sys.exit(bad > 0 or not commands)
END
