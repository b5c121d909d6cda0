#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""list.txt is true; and what leaves it is refused until NEWS.md names it, which trials on a copy of the tree show."""
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ["FW_SOURCE_ROOT"]
BUILD = os.environ["FW_BUILD_ROOT"]
PROGRAM = os.path.join(BUILD, "feedwheel")
API = "src/http/api/openapi.json"
SOURCES = ("NEWS.md", "man", "docs/metrics.md", API, "src/cli/cli.h", "src/engine/run/master.c",
           "src/engine/orders/order.c", "src/engine/orders/order_exchange.c", "src/store/redis", "src/store/driver.h",
           "src/store/sqlite/open.c", "src/store/postgres/open.c", "src/store/mysql/open.c", "src/query/query.c",
           "tests/interface/list.txt")
NEWS = ("# News\n\n## Unreleased\n\n### Fetching\n\n- Nothing: `%s`.\n%s\n"
        "## 0.1.0 (2026-11-26)\n\n### Removed\n\n- `%s`\n")

spec = importlib.util.spec_from_file_location("interface", os.path.join(ROOT, "tools", "interface.py"))
interface = importlib.util.module_from_spec(spec)
spec.loader.exec_module(interface)
MADE, ABSENT = interface.made(BUILD)
LISTED = {p for l, version in interface.listed().items() if not version for p in interface.parted(l)}
LINES = MADE | {l for l in LISTED if interface.is_absent(l, ABSENT)}  # as a build with all parts makes it
tests = []


def case(what):
    def add(function):
        tests.append((what, function))
        return function
    return add


def same(got, want, what=""):
    assert got == want, "%s: %r and not %r" % (what, got, want)


class Copy:
    """A copy of the tables' sources, which a trial changes. interface.py looks there."""

    def __init__(self):
        self.root = tempfile.mkdtemp()
        interface.ROOT = self.root
        for path in SOURCES:
            to = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            (shutil.copytree if os.path.isdir(os.path.join(ROOT, path)) else shutil.copy)(os.path.join(ROOT, path), to)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        interface.ROOT = ROOT
        shutil.rmtree(self.root)

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            return f.read()

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as f:
            f.write(text)

    def change(self, path, old, new):
        before = self.text(path)
        assert old in before, "%s has no %r: change the trial" % (path, old)
        self.write(path, before.replace(old, new))

    def news(self, here, removed, before):
        """Other words in NEWS.md, and a list without the removals that the true ones tell of."""
        self.write("NEWS.md", NEWS % (here, removed, before))
        lines = self.text(interface.LIST).splitlines(True)
        self.write(interface.LIST, "".join(l for l in lines if not interface.MARK.fullmatch(l.strip())))

    def program(self, script):
        """A program in place of feedwheel: the script, in which $P is feedwheel."""
        self.write("program", "#!/bin/sh\nP='%s'\n%s" % (PROGRAM, script))
        os.chmod(os.path.join(self.root, "program"), 0o755)
        return os.path.join(self.root, "program")

    def git(self, *words):
        who = {"GIT_%s_%s" % (a, b): "test@example.org" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
        subprocess.run(["git", "-C", self.root, *words], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull})


def without(part, changed):
    """All lines, where one part of the tables is another one."""
    return LINES - set(part) | set(changed)


def update(lines):
    """`make interface`, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        interface.write(lines, {})
    return out.getvalue()


def removed_setting(copy):
    program = copy.program('case $* in "help --json") "$P" "$@" | sed "s/\\"host_gap_ms\\"/\\"host_pause_ms\\"/" ;;\n'
                           '*) exec "$P" "$@" ;; esac\n')
    return without(interface.of_commands(PROGRAM), interface.of_commands(program))


def removed_option(copy):
    program = copy.program('"$P" "$@" | sed "/^--oldest-first\t/d"\n')
    return without(interface.of_commands(PROGRAM), interface.of_commands(program))


def removed_column(copy):
    program = copy.program('"$P" "$@" || exit\npython3 - "$2" <<E\nimport sqlite3, sys\n'
                           'db = sqlite3.connect(sys.argv[1].partition(":")[2])\n'
                           'db.execute("ALTER TABLE hosts RENAME COLUMN learned_delay_ms TO delay_ms")\n'
                           'db.commit()\nE\n')
    return without(interface.of_sqlite(PROGRAM), interface.of_sqlite(program))


def removed_everywhere(copy):
    return {l.replace("-column hosts.learned_delay_ms", "-column hosts.delay_ms") for l in removed_column(copy)}


def removed_route(_):
    return {l.replace("route GET /v1/timings", "route GET /v1/durations") for l in LINES}


def changed_file(path, old, new, part):
    def change(copy):
        before = list(part())
        copy.change(path, old, new)
        return without(before, part())
    return change


def renamed_key(copy):
    before = list(interface.of_redis())
    for folder, _, names in os.walk(os.path.join(copy.root, "src/store/redis")):
        for path in (os.path.relpath(os.path.join(folder, n), copy.root) for n in names):
            copy.write(path, re.sub(r"\brevoked\b", "void_ids", copy.text(path)))
    copy.change("man/feedwheel-store.7", ".It Va revoked\n", ".It Va void_ids\n")
    return without(before, interface.of_redis())


# What goes; how; what is named; what is new under another name. Without the third: tables that disagree.
TRIALS = (
    ("a setting with a new name", removed_setting, "gone: setting host_gap_ms", "new: setting host_pause_ms"),
    ("an option", removed_option, "gone: option entries --oldest-first", None),
    ("a column with a new name, on one engine", removed_column,
     "gone from some stores: column hosts.learned_delay_ms",
     "new: sqlite-column hosts.delay_ms"),
    ("the same on all engines", removed_everywhere, "gone: column hosts.learned_delay_ms",
     "new: column hosts.delay_ms"),
    ("a route", removed_route, "gone: route GET /v1/timings", "new: route GET /v1/durations"),
    ("a parameter", changed_file(API, '"name": "snippet"', '"name": "excerpt"', interface.of_api),
     "gone: parameter GET /v1/entries snippet", "new: parameter GET /v1/entries excerpt"),
    ("a member", changed_file(API, '"home_page_url": {', '"home": {', interface.of_api),
     "gone: member Feed.home_page_url: string", "new: member Feed.home: string"),
    ("a member's type", changed_file(API, '"visits": {"type": "array"', '"visits": {"type": "object"',
                                     interface.of_api),
     "gone: member FeedDetail.visits: [Visit]", "new: member FeedDetail.visits: object"),
    ("a member of a command's JSON", changed_file("man/feedwheel.1", ".Va id , url , scheduled ;",
                                                  ".Va id , url , planned ;", interface.of_json),
     "gone: json fetch-now.scheduled", "new: json fetch-now.planned"),
    ("a metric", changed_file("docs/metrics.md", "`feedwheel_entries`", "`feedwheel_entries_stored`",
                              interface.of_metrics),
     "gone: metric feedwheel_entries gauge", "new: metric feedwheel_entries_stored gauge"),
    ("a key of Redis", renamed_key, "gone: redis-key revoked", "new: redis-key void_ids"),
    ("an option of a store's URL", changed_file("src/store/redis/open.c", '"db", "prefix",', '"db", "key_prefix",',
                                                interface.of_urls),
     "gone: url-option redis prefix", "new: url-option redis key_prefix"),
    ("a channel", changed_file("man/feedwheel-store.7", '.\\" interface postgres-channel feedwheel_SCHEMA\n', "",
                               interface.of_marks), "gone: postgres-channel feedwheel_SCHEMA", None),
    ("a signal", changed_file("man/feedwheel.1", "SIGQUIT", "SIGTERM", lambda: ()), None,
     "only in src/engine/run/master.c: SIGQUIT"),
    ("an exit code", changed_file("src/cli/cli.h", "CLI_CONFIG = 4,", "CLI_CONFIG = 5,", lambda: ()), None,
     "exit codes: only in src/cli/cli.h: 5; only in feedwheel(1): 4"),
    ("a key that no source has", changed_file("man/feedwheel-store.7", ".It Va revoked\n",
                                              ".It Va revoked , withdrawn\n", lambda: ()), None, "withdrawn"),
    ("a key that no manual has", changed_file("src/store/redis/script/write.lua", "P .. 'adopting'", "P .. 'moving'",
                                              lambda: ()), None, "moving"),
    ("a mark for a word that its text only begins with", changed_file(
        "man/feedwheel-store.7", ".Li feedwheel_SCHEMA ,", ".Li feedwheel_SCHEMA_new ,", lambda: ()), None,
     "feedwheel_SCHEMA"),
    ("a mark without its words", changed_file("man/feedwheel-store.7", ".Li feedwheel_SCHEMA ,", ".Li feedwheel ,",
                                              lambda: ()), None, "feedwheel_SCHEMA"),
)


@case("list.txt and NEWS.md are true")
def true():
    for reason in ABSENT.values():
        print("# not compared: " + reason)
    problems = interface.differences(MADE, ABSENT)
    assert not problems, "\n".join(problems)
    assert len(MADE) > 1000 and len({l.split(" ")[0] for l in MADE}) > 20, "only %d lines" % len(MADE)


@case("what is removed, or gets another name, is refused and named")
def trials():
    for what, change, gone, new in TRIALS:
        with Copy() as copy:
            lines = change(copy)
            if not gone: # tables that disagree
                try:
                    for part in interface.of_process, interface.of_redis, interface.of_marks:
                        list(part())
                    raise AssertionError(what + " passes")
                except interface.Unreadable as e:
                    assert new in str(e), "%s: %s" % (what, e)
                continue
            problems = interface.differences(lines, {})
            for want in filter(None, (gone, new)):
                assert any(p.startswith(want + ": ") for p in problems), "%s: no %r in %s" % (what, want, problems[:4])


GONE = "setting host_gap_ms"


@case("the mark of a removal wants NEWS, under Removed, of the right version")
def told():
    with Copy() as copy:
        copy.news(GONE, "", GONE) # elsewhere in this version, and in an older one
        lines = {l for l in LINES if l != GONE}
        same(update(lines), "gone: %s: name `%s` in NEWS.md under 'Removed' of Unreleased\n" % (GONE, GONE))
        same(interface.listed()[GONE], "Unreleased")
        same(interface.differences(lines, {}),
             ["gone: %s: NEWS.md does not name `%s` under 'Removed' of Unreleased" % (GONE, GONE)])
        removed = "\n### Removed\n\n- `setting host_gap`, `setting *`, `set*` and\n  `%s`.\n"
        copy.write("NEWS.md", NEWS % ("", removed % GONE.replace(" ", "\n  "), ""))
        same(interface.differences(lines, {}), [])
        copy.change("NEWS.md", "host_gap_ms", "host_gap_s")
        same(len(interface.differences(lines, {})), 1)
        copy.change("NEWS.md", "host_gap_s", "host_gap_ms")
        copy.change("NEWS.md", "## Unreleased", "## 9.0.0 (2030-01-01)")
        assert "which NEWS.md does not have" in interface.differences(lines, {})[0]
        same(update(lines), "")
        same((interface.listed()[GONE], interface.differences(lines, {})), ("9.0.0", []))
        # it comes back, and goes again: the old words are not enough
        same(interface.differences(LINES, {}), ["back: %s is marked as removed: run 'make interface'" % GONE])
        update(LINES)
        same(interface.differences(LINES, {}), [])
        try:
            update(lines)
            raise AssertionError("it writes without a section for it")
        except SystemExit as e:
            same(str(e), GONE + " is gone, and NEWS.md has no section Unreleased: begin it")
        copy.change("NEWS.md", "# News\n", "# News\n\n## Unreleased\n")
        update(lines)
        same(len(interface.differences(lines, {})), 1)


@case("a star in NEWS stands for all of one thing, not for a whole kind; a setting for its options")
def star():
    told = ["option order *", "member Feed.*", "metric *", "set*", "*", "json add*", "setting concurrency_max"]
    lines = ("option order --to", "option orders --to", "member Feed.title: string", "member FeedPage.items: [Feed]",
             "metric feedwheel_entries gauge", "setting host_gap_ms", "exit 3", "json add.id",
             "option run --concurrency-max", "option run --concurrency")
    same([l for l in lines if interface.is_told(l, told)],
         ["option order --to", "member Feed.title: string", "option run --concurrency-max"])


@case("what one engine loses is gone there; the others keep it")
def engines():
    same(interface.joined(["%s-column a.b" % e for e in interface.ENGINES] + ["mysql-view v"]),
         {"column a.b", "mysql-view v"})
    with Copy() as copy:
        copy.news("", "", "")
        same(interface.differences(LINES, {}), [])
        lines = LINES - {"postgres-column hosts.learned_delay_ms"}
        assert interface.differences(lines, {})[0].startswith(
            "gone from some stores: column hosts.learned_delay_ms: "), "refused"
        same(interface.differences(lines, {"postgres": "this build has no postgres driver"}), [])
        update(lines)
        now = interface.listed()
        same([now.get(k + "hosts.learned_delay_ms", "absent") for k in
              ("column ", "sqlite-column ", "postgres-column ", "mysql-column ")], ["Unreleased", None, "absent", None])
        same(len(interface.differences(lines, {})), 1)
    with Copy() as copy: # what one engine has, and then all have, has not gone
        if not shutil.which("git"):
            return
        for words in ("init", "-q"), ("add", interface.LIST), ("commit", "-q", "-m", "a"):
            copy.git(*words)
        lines = LINES | {"sqlite-view v", "postgres-view v"}
        update(lines)
        same(interface.differences(lines, {}), [])
        copy.git("commit", "-q", "-a", "-m", "b")
        update(lines | {"mysql-view v"})
        same((interface.differences(lines | {"mysql-view v"}, {}), "view v" in interface.listed()), ([], True))


@case("statements are understood as the engine does")
def statements():
    tables = interface.output(os.path.join(BUILD, "tests/interface/interface_tables")).splitlines()
    sql = [l.split(" ", 2)[2] for l in tables if l.startswith("sql sqlite ")]
    fts = {l for l in MADE if re.match(r"sqlite-(table|column) entries_fts\b", l)}  # its own syntax
    same(set(interface.of_statements("sqlite", sql)) | fts, {l for l in MADE if l.startswith("sqlite-")})
    same(sorted(interface.of_statements("x", [
        "CREATE TABLE t (a int CHECK (a IN (1, 2)), \"b\" numeric(3, 1) DEFAULT ',', PRIMARY KEY (a, b)) FROM x",
        "CREATE OR REPLACE VIEW v AS SELECT a, extract(day FROM b) AS c, (SELECT 1 FROM t) d FROM t",
        "CREATE PROCEDURE p(IN a int) SELECT 1", "CREATE FUNCTION f() RETURNS trigger AS $$ $$",
        "INSERT INTO meta (name, value) VALUES ('n', 0)", "CREATE UNIQUE INDEX i ON t (a)"])),
         ["x-column t.a", "x-column t.b", "x-column v.a", "x-column v.c", "x-column v.d", "x-procedure p",
          "x-row meta.n", "x-table t", "x-view v"])
    try:
        list(interface.of_statements("x", ["CREATE TYPE t AS ENUM ('a')"]))
        raise AssertionError("it passes what it does not understand")
    except interface.Unreadable:
        pass


class Skip(Exception):
    pass


@case("a line that somebody deletes from the list is found in its history, and comes back")
def history():
    if not shutil.which("git"):
        raise Skip("git is not installed")
    with Copy() as copy:
        same(interface.ever_listed(), None, "without git")
        copy.news("", "\n### Removed\n\n- `%s`\n" % GONE, "")
        for words in ("init", "-q"), ("add", interface.LIST), ("commit", "-q", "-m", "a"):
            copy.git(*words)
        lines = {l for l in LINES if l != GONE}
        copy.change(interface.LIST, GONE + "\n", "") # both, and nothing else is wrong
        want = ["%s: somebody has deleted the line: %s" % (interface.LIST, GONE)]
        same(interface.differences(lines, {}), want, "in the folder")
        copy.git("commit", "-q", "-a", "-m", "b")
        same(interface.differences(lines, {}), want, "in the history")
        update(lines)
        same((interface.listed()[GONE], interface.differences(lines, {})), ("Unreleased", []))


@case("a list that two branches have put together is put in order")
def merged():
    with Copy() as copy:
        text = copy.text(interface.LIST)
        copy.write(interface.LIST, text + text.splitlines()[5] + "\n")
        same(interface.differences(LINES, {}), ["%s is not in order: run 'make interface'" % interface.LIST])
        update(LINES)
        same(copy.text(interface.LIST), text)


@case("a build without all parts does not write the list")
def partial():
    with Copy():
        before = interface.listed()
        try:
            interface.write(LINES, {"route": "this build has no server"})
            raise AssertionError("it writes")
        except SystemExit as e:
            same(str(e), "the list needs a build with everything: this build has no server")
        same(interface.listed(), before)


print("1..%d" % len(tests))
failed = False
for i, (name, test) in enumerate(tests):
    try:
        test()
        print("ok %d - %s" % (i + 1, name))
    except Skip as e:
        print("ok %d - %s # SKIP %s" % (i + 1, name, e))
    except Exception as e: # pylint: disable=broad-except
        failed = True
        print("not ok %d - %s" % (i + 1, name))
        print("# " + "\n# ".join(("%s: %s" % (type(e).__name__, e)).split("\n")))
sys.exit(failed)
