#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The house's style, as far as a program sees it: long lines, static names and tags that stand in
two files, retired words, layout, wall clocks, who opens a store's file, the subjects of the last
commits.

  tools/style.py          checks every file that git knows; exit 1 and a line `file:line: problem` for each violation

Retired words are those in backquotes in the last column of HACKING.md's glossary: no name and no
text may contain one. `near (names)` is retired in names only, `ahead (src/sched)` in that folder
only. Layout is clang-format's, where it is installed. This machine's wall clock is read only where
a comment says why ("wall clock: ..."), on that line or the one before: times in the store are the
store's. The elements of Redis' replies are read by rs_elem().
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import unicodedata

CODE_MAX, PROSE_MAX, SUBJECT_MAX = 120, 100, 60
SUBJECTS = 50  # the last commits, merges aside
CODE = (".c", ".h", ".lua", ".py", ".sh", ".js", ".build")
DATA = re.compile(r"^(tests/(cases|corpus)/|tests/fuzz/(corpus|dict)/|demo/|docs/.*\.svg|.*\.gperf$)")
MADE = ("src/parse/charset/table.h", "src/parse/charset/entity_table.h")  # written by tools/gen_*.py
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\s+|.", re.S)
STATIC = re.compile(r"^static\s+(?!inline\b)[^=;({\[]*?\b(?!FW_)(\w+)\s*(?:\(|\[|=|;)", re.M)
TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
OPENS = re.compile(r"(?<![\w.>])(open|openat|creat|fopen|freopen)\s*\(([^;]*);")
STORE_PATH = re.compile(r"\bstore\b|\bstore_url|\bfw_store_url")
FUNCTION = re.compile(r"^\w[\w *]*?\b(\w+)\(", re.M)
MAY_OPEN = ("sqlite_file_create", "checkpoint_file_open")
found = []


def report(path, line, problem):
    found.append("%s:%d: %s" % (path, line, problem))


def files():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    return [f for f in listed if f and not DATA.match(f) and os.path.isfile(f) and not os.path.islink(f)]


def blank(match):
    """A comment as blanks: lines and columns stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def columns(text):
    """As a terminal shows them: marks that combine with a letter take none."""
    return sum(unicodedata.category(c) != "Mn" for c in text.expandtabs(8))


def lines_of(path, text):
    """Line lengths: 120 for code, 100 for comments and Markdown; a table, a link and a quoted
    command may not be broken."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        width = columns(line)
        if path.endswith(".md"):
            fenced ^= line.startswith("```")
            if width > PROSE_MAX and not fenced and not re.match(r"\s*\||    |\t|!?\[", line):
                report(path, number, "%d columns of prose, the limit is %d" % (width, PROSE_MAX))
        elif path.endswith(CODE):
            prose = path.endswith((".c", ".h")) and re.match(r"\s*(/\*|\* )", line) and not re.search(r"\*/.*\w", line)
            if width > (PROSE_MAX if prose else CODE_MAX):
                report(path, number, "%d columns, the limit is %d" % (width, PROSE_MAX if prose else CODE_MAX))


def statics(texts):
    """A static name stands in one file of src/: so that a search for it ends there."""
    where = collections.defaultdict(dict)
    for path, text in texts.items():
        if path.startswith("src/") and path.endswith(".c"):
            for match in STATIC.finditer(text):
                where[match.group(1)].setdefault(path, text.count("\n", 0, match.start()) + 1)
    for name, places in sorted(where.items()):
        if len(places) > 1:
            for path, line in sorted(places.items()):
                report(path, line, "static %s stands in %d files: put its file's noun before it" % (name, len(places)))


def tags(texts):
    """A tag is defined in one file: otherwise a header that declares it means the one or the other,
    by what was included before."""
    where = collections.defaultdict(dict)
    for path, text in texts.items():
        if path.startswith(("src/", "include/")) and path.endswith((".c", ".h")):
            text = COMMENT.sub(blank, text)
            for match in TAG.finditer(text):
                where[match.group(1)].setdefault(path, text.count("\n", 0, match.start()) + 1)
    for name, places in sorted(where.items()):
        if len(places) > 1:
            for path, line in sorted(places.items()):
                report(path, line, "tag %s is defined in %d files: put a noun before it" % (name, len(places)))


def retired():
    """The glossary's retired words: {word: where}; where is '', 'names' or a folder."""
    words, inside = {}, False
    with open("HACKING.md", encoding="utf-8") as page:
        for line in page:
            inside = line.startswith("## Glossary") or (inside and not line.startswith("## "))
            if inside and line.startswith("|"):
                for word, where in re.findall(
                    r"`([a-z]+)(?: \(([^)]*)\))?`", line.rstrip().rstrip("|").rsplit("|", 1)[1]):
                    words[word] = where
    return words


def letters(texts):
    """A struct of the table of short names in HACKING.md has no other letter as its name."""
    names = {}
    for row in re.findall(r"^\| `([a-z]{1,2})` \| (.*) \|$", texts["HACKING.md"], re.M):
        names.update((struct, row[0]) for struct in re.findall(r"`(\w+)`", row[1]))
    for path, text in texts.items():
        if not path.startswith("src/") or not path.endswith((".c", ".h")):
            continue
        for match in re.finditer(r"\bstruct (\w+) \*(?:const )?([a-z])\b", COMMENT.sub(blank, text)):
            struct, name = match.groups()
            if names.get(struct, name) != name:
                report(path, text.count("\n", 0, match.start()) + 1, "a struct %s is '%s', not '%s': see the names "
                       "in HACKING.md" % (struct, names[struct], name))


def parts(identifier):
    return [p.lower() for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def vocabulary(path, text, words):
    """No name contains a retired word, and no text does, but for those that are retired in names only."""
    names = set()  # where names stand in C; elsewhere a name is what has an underscore
    if path.endswith((".c", ".h")):
        names = {m.start() for m in TOKEN.finditer(text) if m.group(0)[0].isalpha()}
    for match in re.finditer(r"[A-Za-z_]\w*", text):
        for part in parts(match.group(0)):
            where = words.get(part)
            if where is None or (where == "names" and match.start() not in names and "_" not in match.group(0)) or \
                    (where not in ("", "names") and not path.startswith(where)):
                continue
            report(path, text.count("\n", 0, match.start()) + 1,
                   "'%s' in %s: a retired word, see the glossary in HACKING.md" % (part, match.group(0)))


# What comments say in words that only their author reads at once, and what they say instead.
PHRASES = ((re.compile(r"FW_E[A-Z]+,? with (the )?words\b"), "with a message"),
           (re.compile(r"NULL: none has\b"), "name what none has"),
           (re.compile(r"/\* That of\b"), "name the thing: 'The feed of ...'"))


def phrases(path, text):
    if path.startswith(("src/", "include/")) and path.endswith((".c", ".h")):
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, instead in PHRASES:
                if pattern.search(line):
                    report(path, number, "'%s': %s" % (pattern.search(line).group(0).strip(), instead))


WALL_CLOCK = re.compile(r"\b(fw_now_ms\(\)|time\(NULL\)|gettimeofday\(|clock_gettime\()")


def clocks(path, text):
    """The wall clock of a machine neither goes into the store nor is compared with what came from it."""
    if not path.startswith("src/") or not path.endswith((".c", ".h")) or path.startswith("src/base/clock."):
        return
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        if WALL_CLOCK.search(re.sub(r"/\*.*?\*/", "", line)) and "wall clock:" not in before + line:
            report(path, number, "a wall clock: fw_store_now_ms() and fw_config_now_ms() give the store's time, "
                   "or a comment says 'wall clock: ' and why")
        before = line


def opens(path, text):
    """Only SQLite opens the file of a store: whoever closes another descriptor of it drops the locks
    of the whole process (src/store/sqlite/open.c). Two functions of the driver may open a file: one
    makes a new store, one opens the file of a lock. Elsewhere no argument is a store's path."""
    driver = path.startswith("src/store/sqlite/")
    if not path.startswith("src/") or not path.endswith((".c", ".h")):
        return
    text = COMMENT.sub(blank, text)
    for match in OPENS.finditer(text):
        function = FUNCTION.findall(text, 0, match.start())[-1:]
        if function[0] not in MAY_OPEN if driver else STORE_PATH.search(match.group(2)):
            report(path, text.count("\n", 0, match.start()) + 1,
                   "%s() of a store's file: close() would drop this process's locks on it" % match.group(1))


REPLIES = ("conn.c", "reply.c", "redis.h")  # of src/store/redis/: where a reply becomes one with a shape


def replies(path, text):
    """A reply comes from outside: rs_elem() knows how many elements it has."""
    if not path.startswith("src/store/redis/") or path.endswith(REPLIES):
        return
    for match in re.finditer(r"->elem\b", text):
        report(path, text.count("\n", 0, match.start()) + 1, "an element of a reply: rs_elem() reads it")


def layout(paths):
    """clang-format leaves the tree as it is. Releases from 14 to 19 agree on it."""
    if not shutil.which("clang-format"):
        return
    run = subprocess.run(["clang-format", "--dry-run", "--Werror", *[p for p in paths if p not in MADE]],
                         capture_output=True, text=True, check=False)
    for match in re.finditer(r"^(\S+?):(\d+):\d+: error:", run.stderr, re.M):
        report(match.group(1), int(match.group(2)), "layout: run clang-format -i on it")
    if run.returncode and not found:
        report(".clang-format", 1, run.stderr.strip()[:300])


def subjects():
    """`area: what it does now`, in 60 columns. The oldest commit of a shallow clone may be a merge
    whose parents are missing: it is left out."""
    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout
    shallow = git("rev-parse", "--git-path", "shallow").strip()
    cut = open(shallow, encoding="ascii").read().split() if os.path.exists(shallow) else []
    for line in git("log", "--no-merges", "-n", str(SUBJECTS), "--format=%H %s").splitlines():
        commit, subject = line.split(" ", 1)
        if commit in cut:
            continue
        width, place = columns(subject), "commit " + commit[:10]
        if width > SUBJECT_MAX:
            report(place, 1, "a subject of %d columns, the limit is %d" % (width, SUBJECT_MAX))
        if not re.match(r"[a-z][\w ,./*-]*: \S", subject):
            report(place, 1, "the subject is not 'area: what it does now'")


def main():
    texts = {}
    for path in files():
        try:
            with open(path, encoding="utf-8") as f:
                texts[path] = f.read()
        except UnicodeDecodeError:
            continue
    words = retired()
    if not words:
        report("HACKING.md", 1, "no retired words: is the glossary gone?")
    for path, text in texts.items():
        if path in MADE:
            continue
        lines_of(path, text)
        clocks(path, text)
        opens(path, text)
        replies(path, text)
        phrases(path, text)
        if path != "HACKING.md":
            vocabulary(path, text, words)
    statics(texts)
    tags(texts)
    letters(texts)
    subjects()
    layout([p for p in texts if p.endswith((".c", ".h"))])
    for line in found:
        print("style: " + line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
