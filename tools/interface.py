#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What users and their programs may rely on, one line for each promise: `setting host_gap_ms`.

  tools/interface.py print [BUILD]   the list, made from the tables that exist
  tools/interface.py write [BUILD]   brings tests/interface/list.txt up to date (`make interface`)
  tools/interface.py check [BUILD]   compares them; exit 1 and a line for each difference

BUILD is the build folder, `build` by default. The tables are the program's own where it has them:
its help in JSON, openapi.json, a store that it has made, the statements and routes that
tests/interface/tables.c prints, tables in the sources. The manual's are read where it is the only
one: Redis' keys, JSON members. What stands in no table has a line `.\\" interface KIND NAME ...` in the
manual, right before the words.

No line ever leaves the list. `write` marks what is gone, `setting x (removed in Unreleased)`, and
`check` wants NEWS.md to name it under a heading "Removed" of that version, in backquotes: `setting
x`, which is its options too; `option order *` is all that begin so. A line that somebody deletes
from the list is found in the history of the file, where git knows it. A new name for an old thing
is a removal and an addition.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.environ.get("FW_SOURCE_ROOT") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = "tests/interface/list.txt"
HEAD = "# What users may rely on. Made by `make interface`; tools/interface.py says how. No line is ever deleted.\n"
NEXT = "Unreleased" # the section of NEWS.md for the next version
MARK = re.compile(r"(.*) \(removed in (\S+)\)")
ENGINES = "sqlite", "postgres", "mysql"
OF_STORE = "table", "view", "column", "row" # of an SQL store; without an engine's name: of all three
HTTP_METHODS = "get", "post", "put", "patch", "delete"


class Unreadable(Exception):
    """A table is not where this program looks for it."""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def found(pattern, text, what, flags=re.M):
    """All matches; that there are none means that the table has moved."""
    all_found = re.findall(pattern, text, flags)
    if not all_found:
        raise Unreadable("%s: no match of %s: look for the table, and change tools/interface.py" % (what, pattern))
    return all_found


def output(*words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, **more).stdout


# ---- the command line ---------------------------------------------------------------------------


def of_commands(program):
    told = json.loads(output(program, "help", "--json"))
    for s in told["settings"]:
        yield "setting " + s["name"]
        for word in s.get("choices", "").split():
            yield "choice setting %s %s" % (s["name"], word)
    for o in told["options"]:
        yield "option --" + o["name"]
    for c in told["commands"]:
        yield "command " + c["name"]
        for word in re.findall(r"[a-z][a-z-]*(?=[|\]\s]|$)", c["args"]):
            yield "command %s %s" % (c["name"], word)
        for o in c["options"]:
            for word in o.get("choices", "").split():
                yield "choice option %s --%s %s" % (c["name"], o["name"], word)
        common = {"--" + o["name"] for o in told["options"]}
        for line in output(program, "help", "--complete", c["name"]).splitlines():
            if line.split("\t")[0] not in common:
                yield "option %s %s" % (c["name"], line.split("\t")[0])


def of_process():
    """Exit codes, signals, environment, files."""
    manual = read("man/feedwheel.1")
    codes = set(found(r"^\tCLI_[A-Z]+ = (\d+),", read("src/cli/cli.h"), "src/cli/cli.h"))
    told = set(found(r"^\.It (\d+)$", section(manual, "EXIT STATUS"), "feedwheel(1), EXIT STATUS"))
    agree("exit codes", "src/cli/cli.h", codes, "feedwheel(1)", told)
    yield from ("exit " + code for code in codes)
    heard = set(re.findall(r"SIG[A-Z]+", found(
        r"^\tstatic const int NUMBER\[\] = \{(.*)\};", read("src/engine/run/master.c"), "src/engine/run/master.c")[0]))
    heard.discard("SIGCHLD")
    agree("signals", "src/engine/run/master.c", heard, "feedwheel(1)", set(re.findall(r"\bSIG[A-Z]+\b", manual)))
    yield from ("signal " + name for name in heard)
    for names in found(r"^\.It Ev (.*)", section(manual, "ENVIRONMENT"), "feedwheel(1), ENVIRONMENT"):
        yield from ("environment " + name for name in names.split(" , "))
    for names in found(r"^\.It Pa (.*)", section(manual, "FILES"), "feedwheel(1), FILES"):
        yield from ("file " + name for name in names.replace(" , Pa ", " , ").split(" , "))


def agree(what, here, a, there, b):
    if a != b:
        raise Unreadable("%s: only in %s: %s; only in %s: %s" %
                         (what, here, " ".join(sorted(a - b)) or "none", there, " ".join(sorted(b - a)) or "none"))


def section(manual, name, mark="Sh"):
    """The text of a manual's section (mark Ss: of a subsection)."""
    behind = manual.split("\n.%s %s\n" % (mark, name))
    if len(behind) != 2:
        raise Unreadable("the manual has not one section %s" % name)
    return re.split(r"\n\.S[hs] " if mark == "Ss" else r"\n\.Sh ", behind[1])[0]


def of_json():
    """Members that the commands print, by feedwheel(1); tests/system/test_cli.py compares it with the source."""
    table = section(read("man/feedwheel.1"), "JSON")
    for name, row in found(r"^\.It Cm ([a-z-]+)\n((?:(?!\.It |\.El).*\n)*)", table, "feedwheel(1), JSON"):
        for line in re.findall(r"^\.(?:Va|Pq Va) (.*)", row, re.M):
            yield from ("json %s.%s" % (name, word) for word in re.findall(r"\b[a-z_]+\b", line.split(" No ")[0]))


# ---- the server ---------------------------------------------------------------------------------


def shape(schema):
    """In one word: a name, [a name] of an array, a type."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for several in "oneOf", "anyOf", "allOf":
        if several in schema:
            return "|".join(shape(s) for s in schema[several])
    kind = schema.get("type", "any")
    return "[%s]" % shape(schema.get("items", {})) if kind == "array" else "|".join(
        kind) if isinstance(kind, list) else kind


def members(path, schema):
    """Members and words below a schema that is written out where it is used."""
    for word in schema.get("enum", ()):
        yield "choice %s %s" % (path, word)
    for several in "oneOf", "anyOf", "allOf":
        for s in schema.get(several, ()):
            yield from members(path, s)
    yield from members(path, schema["items"]) if "items" in schema else ()
    for name, s in schema.get("properties", {}).items():
        yield "member %s.%s: %s" % (path, name, shape(s))
        yield from members("%s.%s" % (path, name), s)


def of_api():
    doc = json.loads(read("src/http/api/openapi.json"))
    parts = doc["components"]

    def resolved(o):
        return parts[o["$ref"].split("/")[2]][o["$ref"].split("/")[3]] if "$ref" in o else o
    for name, schema in parts["schemas"].items():
        yield from members(name, schema)
        if "properties" not in schema and "enum" not in schema:
            yield "schema %s: %s" % (name, shape(schema))
    for path, methods in doc["paths"].items():
        for method in (m for m in methods if m in HTTP_METHODS):
            place = "%s %s" % (method.upper(), path)
            for p in methods[method].get("parameters", ()):
                where = "header" if p["in"] == "header" else "parameter"
                if p["in"] != "path":
                    yield "%s %s %s" % (where, place, p["name"])
                yield from members("%s %s" % (place, p["name"]), p.get("schema", {}))
            for kind, body in methods[method].get("requestBody", {}).get("content", {}).items():
                yield "body %s %s: %s" % (place, kind, shape(body["schema"]))
                yield from members(place, body["schema"])
            for status, answer in methods[method]["responses"].items():
                answer = resolved(answer)
                if "content" not in answer:
                    yield "answer %s %s" % (place, status)
                yield from ("header %s %s %s" % (place, status, h) for h in answer.get("headers", {}))
                for kind, body in answer.get("content", {}).items():
                    yield "answer %s %s %s: %s" % (place, status, kind, shape(body["schema"]))
                    yield from members(place, body["schema"])


def of_metrics():
    """docs/metrics.md, which tests/system/test_metrics.py compares with the server's output."""
    for name, labels, kind in found(r"^\| `(\w+)(?:\{(.*?)\})?` \| (\w+) \|", read("docs/metrics.md"),
                                    "docs/metrics.md"):
        yield "metric %s %s" % (name, kind)
        yield from ("metric %s{%s}" % (name, label) for label in labels.replace(",", " ").split())


# ---- stores -------------------------------------------------------------------------------------


def of_sqlite(program):
    """The tables of a new store. Those that begin with entries_fts_ are SQLite's own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "new.db")
        output(program, "--store", "sqlite:" + path, "--config", os.devnull, "add", "--quiet",
               "https://feed.example/")
        db = sqlite3.connect(path)
        for name, kind in db.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')"
                                     " AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
                                     " AND name NOT LIKE 'entries!_fts!_%' ESCAPE '!'").fetchall():
            yield "sqlite-%s %s" % (kind, name)
            for column in db.execute("SELECT name FROM pragma_table_info(?)", (name,)):
                yield "sqlite-column %s.%s" % (name, column[0])
        yield from ("sqlite-row meta.%s" % name for name, in db.execute("SELECT name FROM meta"))
        db.close()


def split(text, at=","):
    """The parts of an SQL text between commas (or other words) that no bracket and no quote encloses."""
    parts, depth, part = [], 0, ""
    for token in re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\w+|\s+|.", text, re.S):
        depth += (token == "(") - (token == ")")
        if depth < 0:
            break
        if depth == 0 and token.upper() == at:
            parts.append(part.strip())
            part = ""
        else:
            part += token
    return parts + [part.strip()]


def of_statements(engine, statements):
    """Tables, views and columns that these statements create."""
    name = r'["`]?(\w+)["`]?'
    for s in statements:
        if (m := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?%s \((.*)" % name, s, re.I | re.S)):
            yield "%s-table %s" % (engine, m[1])
            for part in split(m[2]):
                if not re.match(r"(PRIMARY|UNIQUE|CONSTRAINT|KEY|INDEX|CHECK|FOREIGN|FULLTEXT)\b", part, re.I):
                    yield "%s-column %s.%s" % (engine, m[1], re.match(name, part)[1])
        elif (m := re.match(r"CREATE (?:OR REPLACE )?(?:SQL SECURITY \w+ )?VIEW %s AS SELECT (.*)" % name, s,
                            re.I | re.S)):
            yield "%s-view %s" % (engine, m[1])
            for part in split(split(m[2], "FROM")[0]):
                yield "%s-column %s.%s" % (engine, m[1], re.search(r"%s$" % name, part)[1])
        elif (m := re.match(r"CREATE (?:OR REPLACE )?(PROCEDURE|FUNCTION) %s ?\((.*)" % name, s, re.I | re.S)):
            if not re.search(r"\bRETURNS trigger\b", m[3], re.I):
                yield "%s-%s %s" % (engine, m[1].lower(), m[2])
        elif (m := re.match(r"INSERT INTO meta \(name, value\) VALUES (.*)", s, re.I | re.S)):
            yield from ("%s-row meta.%s" % (engine, row) for row in re.findall(r"\('(\w+)',", m[1]))
        elif re.match(r"CREATE\b(?!( UNIQUE)? INDEX|( OR REPLACE)? TRIGGER| VIRTUAL TABLE entries_fts)", s, re.I):
            raise Unreadable("tools/interface.py does not understand: %s" % s[:200])


def words_of(path, name):
    """The texts of a table of words in a source."""
    table = found(r"\bchar \*const %s\[\w*\] = \{(.*?)\};" % name, read(path), path, re.S)[0]
    return re.findall(r'"([\w-]+)"', table)


def of_urls():
    """Schemes and options of the URLs of stores and of orders' destinations."""
    yield from ("url-option redis " + word for word in words_of("src/store/redis/open.c", "known"))
    yield from ("url-option mysql " + word for word in words_of("src/store/mysql/open.c", "OPTIONS"))
    for word in found(r'fw_dsn_option\(d, "(\w+)"\)', read("src/store/postgres/open.c"), "src/store/postgres/open.c"):
        yield "url-option postgres " + word
    driver = read("src/store/driver.h")
    for schemes in found(r"^#define FW_STORE_\w+_SCHEMES (.*)", driver, "src/store/driver.h"):
        yield from ("url-scheme store " + word for word in re.findall(r'"([\w+]+)"', schemes))
    for word in found(r'= DRIVER\("(\w+)"', read("src/store/sqlite/open.c"), "src/store/sqlite/open.c"):
        yield "url-scheme store " + word
    known = found(r'to_rest\(to, FW_STR\("(\w+)"\)\)', read("src/engine/orders/order.c"), "src/engine/orders/order.c")
    options = words_of("src/engine/orders/order_exchange.c", "OPTION")
    for url in found(r"([a-z]+:\S+)", "\n".join(re.findall(r"^\.It Li (.*)", section(
            read("man/feedwheel-orders.7"), "DESTINATIONS"), re.M)), "feedwheel-orders(7), DESTINATIONS"):
        scheme = url.split(":")[0]
        if scheme not in (*known, "http", "https"):
            raise Unreadable("feedwheel-orders(7) has %s:, which src/engine/orders/order.c does not know" % scheme)
        yield "url-scheme order " + scheme
        for option in re.findall(r"[?&](\w+)=", url):
            if scheme == "amqp" and option not in options:
                raise Unreadable("feedwheel-orders(7) has an option %s=, which no source knows" % option)
            yield "url-option order %s %s" % (scheme, option)


def key_word(name):
    """schedule of schedule:SHARD, new of PREFIX:new."""
    return name.rpartition("PREFIX:")[2].split(":")[0]


def of_redis():
    """The keys that feedwheel-store(7) describes: all that the scripts use, and none that no source has."""
    folder = os.path.join(ROOT, "src/store/redis")
    scripts = "".join(read(os.path.join(folder, "script", n)) for n in os.listdir(os.path.join(folder, "script")))
    source = scripts + "".join(read(os.path.join(folder, n)) for n in os.listdir(folder) if n.endswith((".c", ".h")))
    told = {}
    for names in found(r"^\.It Va (.*)", section(section(read("man/feedwheel-store.7"), "REDIS"), "Keys", "Ss"),
                       "feedwheel-store(7), Keys"):
        told.update((key_word(name), name) for name in names.split(" , "))
    marked = {key_word(mark.split(" ")[1]) for mark in of_marks() if mark.startswith("redis-")}
    for word in found(r"\b(?:P|door) \.\. '(\w+)", scripts, "src/store/redis/script"):
        if word not in told and word not in marked:
            raise Unreadable("src/store/redis/script has a key %s, which feedwheel-store(7) does not name: in Keys, or"
                             " by a line .\\\" interface redis-key NAME" % word)
    for word, name in told.items():
        if not re.search(r"\b%s\b" % word, source):
            raise Unreadable("feedwheel-store(7) has a key %s, which no file of src/store/redis names" % name)
        yield "redis-key " + name


def of_words():
    """Numbers and names that stand in rows, and the words of queries."""
    manual = read("man/feedwheel-store.7")
    numbers = section(manual, "Numbers", "Ss").split("\n.Pp\n")
    for kind, text in ("feed-status", numbers[0]), ("visit-kind", numbers[1]):
        yield from ("%s %s %s" % (kind, number, word) for number, word in
                    found(r"(?:[:,]\s)(\d+) (\w+)", text, "feedwheel-store(7), Numbers"))
    for names in found(r"^\.It Li (.*)", section(manual, "records", "Ss"), "feedwheel-store(7), records"):
        yield from ("record " + name for name in names.split(" , "))
    yield from ("query-field " + word for word in words_of("src/query/query.c", "FIELD"))
    yield from ("query-has " + word for word in words_of("src/query/query.c", "HAS"))
    for names in found(r"^\.It Li (webhook-.*)", read("man/feedwheel-orders.7"), "feedwheel-orders(7), WEBHOOKS"):
        yield "webhook-header " + names


def of_marks():
    """What stands in no table: the manual says it, behind a comment that names it (of "a.b" the text says b)."""
    for page in sorted(p for p in os.listdir(os.path.join(ROOT, "man")) if re.fullmatch(r".*\.\d", p)):
        text = read(os.path.join("man", page))
        for m in re.finditer(r'^\.\\" interface\b(.*)\n', text, re.M):
            kind, *names = m[1].split()
            behind = re.split(r"^\.(?:S[hs]\b|Pp$)", text[m.end():], maxsplit=1, flags=re.M)[0]
            said = re.sub(r'^\.\\".*', "", behind, flags=re.M)
            words = [word.strip(".,:;()[]{}'\"") for word in said.split()]
            for name in names:
                if name not in words and name.rpartition(".")[2] not in words:
                    raise Unreadable("man/%s: the words behind 'interface%s' do not name %s" % (page, m[1], name))
                yield "%s %s" % (kind, name)


# ---- the list -----------------------------------------------------------------------------------


def made(build):
    """All promises, and the kinds that this build cannot tell, with the reason."""
    program = os.path.join(build, "feedwheel")
    tables = output(os.path.join(build, "tests/interface/interface_tables")).splitlines()
    statements = {e: [l.split(" ", 2)[2] for l in tables if l.startswith("sql %s " % e)] for e in ENGINES}
    routes = [l for l in tables if l.startswith("route ")]
    lines = set(routes)
    for part in (of_commands(program), of_process(), of_json(), of_api(), of_metrics(), of_sqlite(program), of_urls(),
                 of_redis(), of_words(), of_marks(),
                 *(of_statements(e, statements[e]) for e in ENGINES[1:])):
        lines.update(part)
    absent = {e: "this build has no %s driver" % e for e in ENGINES if not statements[e]}
    if not routes:
        absent["route"] = "this build has no server"
    return lines, absent


def parted(line):
    """A line as lines of one engine each."""
    return {"%s-%s" % (e, line) for e in ENGINES} if line.split(" ")[0] in OF_STORE else {line}


def joined(lines):
    """The reverse: what all engines have is one line."""
    lines = set(lines)
    for line in [l for l in lines if l.startswith("sqlite-")]:
        together = line[len("sqlite-"):]
        if parted(together) <= lines:
            lines = lines - parted(together) | {together}
    return lines


def is_absent(line, absent):
    """Does this build not tell about it?"""
    kind = line.split(" ")[0]
    return kind in absent or kind.partition("-")[0] in absent and kind.partition("-")[2] in (
        *OF_STORE, "procedure", "function")


def listed():
    """The committed list: line to the version in which it was removed, or None."""
    lines = {}
    if os.path.exists(os.path.join(ROOT, LIST)):
        for line in read(LIST).splitlines():
            m = MARK.fullmatch(line)
            if line and not line.startswith("#"):
                lines[m[1] if m else line] = m[2] if m else None
    return lines


def text_of(lines):
    return HEAD + "".join("%s (removed in %s)\n" % (l, v) if v else l + "\n" for l, v in sorted(lines.items()))


def news():
    """Version to what its section lists under "Removed"; in the order of NEWS.md, newest first."""
    versions = {}
    for part in re.split(r"^## ", read("NEWS.md"), flags=re.M)[1:]:
        told = [p.partition("\n")[2] for p in re.split(r"^### ", part, flags=re.M)[1:] if p.startswith("Removed\n")]
        versions[part.split()[0]] = [" ".join(t.split()) for t in re.findall(r"`([^`]+)`", "\n".join(told))]
    return versions


def is_told(line, told):
    setting = re.sub(r"^option \S+ --(\S+)$", lambda m: "setting " + m[1].replace("-", "_"), line)
    return setting in told or any(
        line == t or t[-2:] in (" *", ".*") and " " in t[:-2] and line.startswith(t[:-1]) for t in told)


def ever_listed():
    """Each line that the committed list has had; None: git does not know."""
    if not os.path.exists(os.path.join(ROOT, ".git")) or not shutil.which("git"):
        return None
    r = subprocess.run(["git", "-C", ROOT, "log", "--first-parent", "-m", "--format=", "-p", "-U0", "--", LIST],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if r.returncode:
        return None
    lines = (l[1:] for l in r.stdout.splitlines() if re.match(r"\+[^+#]", l))
    return {MARK.fullmatch(l)[1] if MARK.fullmatch(l) else l for l in lines}


def where_gone(line, gone, absent):
    return "" if gone == {p for p in parted(line) if not is_absent(p, absent)} else " from some stores"


def differences(lines, absent):
    """What is wrong, a text each."""
    now, versions, problems = listed(), news(), []
    kept = [l for l, version in now.items() if version is None]
    promised = set().union(*(parted(l) for l in kept))
    back = {l for l, version in now.items() if version and parted(l) <= lines}
    for l in sorted(joined(lines - promised.union(*(parted(l) for l in back)))):
        problems.append("new: %s: run 'make interface', and commit %s" % (l, LIST))
    for l in sorted(kept):
        gone = {p for p in parted(l) if p not in lines and not is_absent(p, absent)}
        if gone:
            problems.append("gone%s: %s: users may rely on it; if it must go, name `%s` in NEWS.md under 'Removed',"
                            " and run 'make interface'" % (where_gone(l, gone, absent), l, l))
    for l, version in sorted((l, v) for l, v in now.items() if v):
        if l in back:
            problems.append("back: %s is marked as removed: run 'make interface'" % l)
        elif version not in versions:
            problems.append("%s was removed in %s, which NEWS.md does not have: run 'make interface'" % (l, version))
        elif not is_told(l, versions[version]):
            problems.append("gone: %s: NEWS.md does not name `%s` under 'Removed' of %s" % (l, l, version))
    if read(LIST) != text_of(now):
        problems.append("%s is not in order: run 'make interface'" % LIST)
    for l in sorted(l for l in (ever_listed() or set()) - set(now) if not parted(l) <= promised):
        problems.append("%s: somebody has deleted the line: %s" % (LIST, l))
    return problems


def write(lines, absent):
    if absent:
        sys.exit("the list needs a build with everything: " + "; ".join(absent.values()))
    now, versions = listed(), list(news())
    for l in ever_listed() or ():
        now.setdefault(l, None) # a merge or a hand has lost it
    out = {l: None for l in joined(lines)}
    gone = sorted(l for l, version in now.items() if version is None and not parted(l) <= lines)
    if gone and NEXT not in versions:
        sys.exit("%s is gone, and NEWS.md has no section %s: begin it" % (gone[0], NEXT))
    for l, version in now.items():
        if version and not parted(l) <= lines:
            out[l] = version if version in versions else versions[0] # which Unreleased has become
    out.update((l, NEXT) for l in gone)
    with open(os.path.join(ROOT, LIST), "w", encoding="utf-8") as f:
        f.write(text_of(out))
    for l in sorted(set(out) - set(now)):
        print("new: " + l)
    for l in gone:
        print("gone: %s: name `%s` in NEWS.md under 'Removed' of %s" % (l, l, NEXT))


def main(what="check", build=os.path.join(ROOT, "build")):
    try:
        lines, absent = made(build)
    except Unreadable as e:
        sys.exit("tools/interface.py: %s" % e)
    if what == "print":
        print("\n".join(sorted(joined(lines))))
    elif what == "write":
        write(lines, absent)
    elif what == "check":
        for reason in absent.values():
            print("not compared: " + reason)
        problems = differences(lines, absent)
        print("\n".join(problems) or "%s is true: %d lines" % (LIST, len(listed())))
        sys.exit(bool(problems))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
