#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The command line: every command, every error, every exit code, as a person or a script meets them."""
import contextlib
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
import fcntl
import termios
import xml.etree.ElementTree as ET
from datetime import datetime

from harness import (
    FEEDWHEEL, ROOT, Skip, Feedwheel, case, certificate, equal, holds, origin, run, samples, wait_for)

COMMANDS = (
    "add import export remove set pause resume list folders show why timeline entries changes read events fetch parse "
    "push run plan serve order token user websub fetch-now copy stop status doctor version help").split()
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><link>https://example.org/</link>
<description>d</description><item><title>Hello \x7f world</title><link>https://example.org/1</link><guid>g1</guid>
<description>&lt;p onclick="evil()"&gt;a &lt;b&gt;bold&lt;/b&gt; word&lt;/p&gt;</description>
<pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>"""


def plain(*arguments, stdin=None, code=0, env=None, base="/nonexistent"):
    """The binary without configuration."""
    e = {k: v for k, v in os.environ.items() if not k.startswith(("FEEDWHEEL", "XDG"))}
    e.update(HOME=base, NO_COLOR="1", TZ="UTC")
    e.update(env or {})
    r = subprocess.run([FEEDWHEEL, *arguments], input=stdin, capture_output=True, text=True, timeout=60, env=e,
                       check=False)
    equal(r.returncode, code, "exit of %s (%s)" % (" ".join(arguments), r.stderr[-500:]))
    return r


def stderr_line(r, *parts):
    """stderr is one line with all of these parts; stdout is empty."""
    equal(r.stderr.count("\n"), 1, "lines on stderr: " + r.stderr)
    for p in parts:
        holds(p in r.stderr, "%r is not in %r" % (p, r.stderr))
    equal(r.stdout, "", "stdout")


def on_terminal(command, env, columns=80, interrupt_at=None):
    """Run on a pseudo terminal; its output and exit code. When interrupt_at appears, ^C is typed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, close_fds=True,
                         start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    shown = b""
    while True:
        ready, _, _ = select.select([master], [], [], 60)
        if not ready:
            p.kill()
            raise AssertionError("no output for a minute")
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if interrupt_at and re.search(interrupt_at, shown.decode(errors="replace")):
            os.write(master, b"\x03")
            interrupt_at = None
    os.close(master)
    return shown.decode(), p.wait()


# ---- help -------------------------------------------------------------------------------------------------

@case("help lists every command; each has its own help with usage and examples, by help NAME and --help")
def help_texts(_):
    general = plain("help").stdout
    equal(plain("--help").stdout, general)
    equal(plain("-h").stdout, general)
    for name in COMMANDS:
        holds(re.search(r"^  %s +\S" % name, general, re.M), name + " is not in the help")
        text = plain("help", name).stdout
        equal(plain(name, "--help").stdout, text)
        holds("\n  feedwheel %s" % name in text, name + " shows no usage")
        holds("\nExamples\n  " in text, name + " shows no example")
    r = plain(code=2)
    equal(r.stdout, general)


@case("the examples in the help use options that exist")
def examples(_):
    for name in COMMANDS:
        known = {l.split("\t")[0] for l in plain("help", "--complete", name).stdout.splitlines()}
        for option in re.findall(r"(?<= )--[a-z0-9-]+", plain("help", name).stdout.split("\nExamples\n")[1]):
            if option != "--host-concurrency":
                holds(option in known, "%s: %s" % (name, option))


@case("help settings lists them; an unknown topic is an error with a suggestion; version prints versions")
def topics(_):
    text = plain("help", "settings").stdout
    holds("\nworkers = 0\n    Worker processes" in text, "workers")
    stderr_line(plain("help", "lits", code=2), "unknown command 'lits': did you mean 'list'?")
    v = plain("version").stdout
    holds(v.startswith("feedwheel "), v)
    holds("sqlite" in v and "curl" in v.lower(), v)
    equal(plain("--version").stdout, v)
    equal(plain("-V").stdout, v)


@case("feedwheel(1) and feedwheel.conf(5) describe every command, option and setting, with its default")
def manual(_):
    def text(name):
        with open(os.path.join(ROOT, "man", name), encoding="ascii") as f:
            return f.read()
    one, five = text("feedwheel.1"), text("feedwheel.conf.5")
    settings = dict(re.findall(r"^(\w+) = (.*)$", plain("help", "settings").stdout, re.M))
    holds(len(settings) > 30, "settings")
    for name, initial in settings.items():
        m = re.search(r"^\.It Cm %s .*\n((?:(?!\.It Cm [a-z_]+ Ar|\.S[hs]).*\n)*)" % name, five, re.M)
        holds(m, "setting %s is not in feedwheel.conf.5" % name)
        if initial and name not in ("batch_visits", "batch_bytes", "low_speed_bytes"):
            holds(re.search(r"(?<![\w.])%s(?![\w])" % re.escape(initial), m.group(1)),
                  "default %s of %s is not in feedwheel.conf.5" % (initial, name))
    named = set(re.findall(r"^\.It Cm ([a-z0-9_]+) Ar", five, re.M))
    equal(named - set(settings), set(), "settings that are only in the manual")
    for line in plain("help", "--complete").stdout.splitlines():
        word = line.split("\t")[0]
        if not word.startswith("-"):
            m = re.search(r"^\.It Cm %s\b(.*\n(?:(?!\.It Cm |\.S[hs]).*\n)*)" % word, one, re.M)
            holds(m, "command %s is not in feedwheel.1" % word)
            for option in plain("help", "--complete", word).stdout.splitlines():
                option = option.split("\t")[0]
                if option in ("--json", "--jsonl"):
                    continue # see manual_json()
                if option[2:].replace("-", "_") not in settings:
                    holds("Fl -" + option[2:] in one or ", -%s\n" % option[2:] in one,
                          "%s %s is not in feedwheel.1" % (word, option))
                    if option[2:] not in ("store", "config", "color", "quiet", "verbose", "help", "version"):
                        holds("Fl -" + option[2:] in m.group(1), "%s is not under %s" % (option, word))


def json_names(source):
    """The names of members that a source writes, also by tables of a name and a number."""
    names = set(re.findall(r'\bfw_json_[a-z]+\([^;"]*"(\w+)"', source))
    for table in re.findall(r"const char \*name;\s*int64_t \w+;\s*\} \w+\[\] = \{(.*?)\};", source, re.S):
        names.update(re.findall(r'\{"(\w+)"', table))
    return names


@case("feedwheel(1) lists the JSON members of each command, all that its source has, and no others")
def manual_json(_):
    with open(os.path.join(ROOT, "man", "feedwheel.1"), encoding="ascii") as f:
        table = f.read().split("\n.Sh JSON\n")[1].split("\n.Sh ")[0]
    rows = dict(re.findall(r"^\.It Cm ([a-z-]+)\n((?:(?!\.It |\.El).*\n)*)", table, re.M))
    equal(list(rows), [c["name"] for c in json.loads(plain("help", "--json").stdout)["commands"] if c["name"] in rows])
    equal(sorted(rows), sorted(COMMANDS))
    source = ""
    for folder in ("cli", "engine", "http"):
        for path in glob.glob(os.path.join(ROOT, "src", folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as f:
                source += f.read()
    told = {name: set(re.findall(r"[a-z_]+", " ".join(re.findall(r"^\.Va (.*)", row, re.M))))
            for name, row in rows.items()}
    for name, words in told.items():
        for word in words:
            holds('"%s"' % word in source, "%s: %s is in no document" % (name, word))
    with open(os.path.join(ROOT, "src", "http", "api", "openapi.json"), encoding="utf-8") as f:
        api = set(re.findall(r'"(\w+)": \{', f.read())) # it describes entries and feeds
    for name in COMMANDS:
        path = os.path.join(ROOT, "src", "cli", "cmd_%s.c" % name.replace("-", "_"))
        if os.path.exists(path): # pause and resume are with set
            with open(path, encoding="utf-8") as f:
                written = json_names(f.read())
            equal(written - told[name] - api, set(), "%s --json has also" % name)


@case("mandoc reports no problem in the manual pages")
def manual_lint(_):
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    lint = subprocess.run(
        ["mandoc", "-Tlint", os.path.join(ROOT, "man", "feedwheel.1"),
         os.path.join(ROOT, "man", "feedwheel.conf.5"),
         os.path.join(ROOT, "man", "feedwheel-orders.7"),
         os.path.join(ROOT, "man", "feedwheel-query.7"),
         os.path.join(ROOT, "man", "feedwheel-readers.7"),
         os.path.join(ROOT, "man", "feedwheel-store.7")],
        capture_output=True, text=True, check=False)
    found = [l for l in lint.stdout.splitlines() if "referenced manual not found" not in l]
    equal(found, [], "mandoc")


BASH = os.path.join(ROOT, "completions", "feedwheel.bash")


@case("bash completes commands, options, settings, values, feeds and folders; no script has a syntax error")
def completions(base):
    w = Feedwheel(base)
    w.run("add", "-q", "--folder", "World News", "https://a.example/feed?x=1", "http://b.example/x")
    w.run("add", "-q", "--folder", "Tech", "https://c.example/12")
    w.run("add", "-q", "--folder", "Tech", "--title", "x\ty \x1b[2J", "https://d.example/feed")
    env = dict(w.environment, FEEDWHEEL_STORE=w.store)

    def complete(*line, env=env):
        """COMPREPLY for these words; readline splits words at : and =, but not in quotes."""
        split = [p for x in line for p in (re.split("([:=]+)", x) if x[:1] not in "\"'" else [x]) if p or not x]
        r = subprocess.run(["bash", "-c", "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _feedwheel; "
                            "printf '%s\\n' \"${COMPREPLY[@]}\"", BASH, FEEDWHEEL, *split], capture_output=True,
                           text=True, check=True, env=env)
        equal(r.stderr, "", line)
        return [x for x in r.stdout.split("\n") if x]
    equal(sorted(complete("")), sorted(COMMANDS))
    equal(complete("en"), ["entries"])
    equal(complete("list", "--fa"), ["--failing"])
    equal(complete("run", "--work"), ["--workers"])
    equal(complete("list", "--work"), [], "not of list")
    equal(complete("--color", "n"), ["never"])
    equal(complete("help", "sett"), ["settings"])
    equal(complete("help", "en"), ["entries"])
    equal(complete("token", "r"), ["remove"])
    w.run("user", "add", "alice", stdin="correct horse\n")
    equal(complete("user", "passwd", "a"), ["alice"])
    equal(complete("export", "--user", ""), ["alice"])
    equal(complete("order", "re"), ["resume", "replay", "remove", "retry"])
    w.run("order", "add", "-q", "loud", "word", "--tag", "x")
    equal(complete("order", "show", "l"), ["loud"])
    equal(complete("websub", "l"), ["list"])
    for command in ([], ["list"], ["run"], ["show"]):
        equal(complete(*command, "--store"), ["--store", "--store-file"])
    # values
    equal(complete("list", "--status", "q"), ["quarantined"])
    for status in complete("list", "--status", ""):
        w.run("list", "--status", status)
    equal(complete("token", "add", "name", "--scope", "p"), ["push"])
    for scope in complete("token", "add", "--scope", ""):
        w.run("token", "add", scope, "--scope", scope)
    for option, command in (
        ("order", ("plan",)), ("host-key", ("run",)), ("log-level", ("list",)), ("sandbox", ("serve",))):
        values = complete(*command, "--" + option, "")
        holds(len(values) > 2, option)
        for v in values:
            holds(w.run("doctor", "--%s=%s" % (option, v), code=None).returncode != 4,
                  "%s = %s is no setting" % (option, v))
        equal(complete(*command, "--%s=%s" % (option, values[0][0]))[0], values[0], "behind =")
    equal(complete("run", "--http2="), ["yes", "no"])
    equal(complete("run", "--no-progress", "--order", "f"), ["fifo"])
    # feeds
    equal(complete("show", ""), ["a.example/feed\\?x=1", "http://b.example/x", "c.example/12", "d.example/feed"])
    equal(complete("show", "c"), ["c.example/12"])
    equal(complete("show", "3"), ["3"], "its number")
    equal(complete("show", "http://b"), ["//b.example/x"], "readline replaces what follows the colon")
    equal(complete("show", "https://a.example/feed?x="), ["1"])
    equal(complete("show", "https:"), ["//a.example/feed\\?x=1", "//c.example/12", "//d.example/feed"])
    equal(complete("remove", "c"), [], "remove takes no part of a URL")
    equal(complete("remove", "https://c"), ["//c.example/12"])
    equal(complete("pause", "1", "d"), ["d.example/feed"], "several")
    equal(complete("show", "1", "d"), [], "one only")
    equal(complete("entries", "--feed", "d"), ["d.example/feed"])
    equal(complete("websub", "off", "d"), ["d.example/feed"])
    # folders
    equal(complete("list", "--folder", ""), ["World\\ News", "Tech"])
    equal(complete("export", "--folder", "World\\ N"), ["World\\ News"])
    equal(complete("set", "1", "--folder", '"World N'), ["World News"], "in quotes")
    equal(complete("list", "--folder=T"), ["Tech"])
    # another store, no store, an unreachable store, a broken configuration
    equal(complete("--store", w.store, "show", "c", env=w.environment), ["c.example/12"])
    equal(complete("--config=" + w.conf, "--store=" + w.store, "show", "c", env=w.environment), ["c.example/12"])
    for store in ("sqlite:/nonexistent/x.db", "nonsense", "redis://127.0.0.1:1"):
        equal(complete("show", "c", env=dict(env, FEEDWHEEL_STORE=store)), [])
    broken = os.path.join(base, "broken.conf")
    with open(broken, "w", encoding="ascii") as f:
        f.write("nonsense\n")
    equal(complete("--config", broken, "show", "c"), [])
    equal(complete("--config", broken, "sho"), ["show"])
    # files
    with open(os.path.join(base, "subs.opml"), "w", encoding="ascii"):
        pass
    for line in (("import", ), ("push", "1"), ("timeline", "-o"), ("--config",), ("run", "--tls-cert")):
        holds(os.path.join(base, "subs.opml") in complete(*line, os.path.join(base, "subs")), line)
    for shell, name in (("zsh", "_feedwheel"), ("fish", "feedwheel.fish")):
        if subprocess.run(["sh", "-c", "command -v " + shell], capture_output=True, check=False).returncode == 0:
            subprocess.run([shell, "-n", os.path.join(ROOT, "completions", name)], check=True)


@case("at a prompt the tab key completes a feed's URL, with its colons and spaces")
def tab_key(base):
    w = Feedwheel(base)
    w.run("add", "-q", "--folder", "World News", "http://b.example/x?y=1&z", "http://c.example/")
    bin = os.path.join(base, "bin")
    os.mkdir(bin)
    with open(os.path.join(bin, "feedwheel"), "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n[ \"$1\" = help ] && exec %s \"$@\"\nprintf '<%%s>' \"$@\"\n" % FEEDWHEEL)
    os.chmod(os.path.join(bin, "feedwheel"), 0o755)
    rc = os.path.join(base, "rc")
    with open(rc, "w", encoding="ascii") as f:
        f.write("PATH=%s:$PATH\nPS1='ready> '\nbind 'set enable-bracketed-paste off'\nsource %s\n" % (bin, BASH))
    master, slave = pty.openpty()
    env = dict(w.environment, FEEDWHEEL_STORE=w.store, TERM="dumb", LC_ALL="C.UTF-8")
    with subprocess.Popen(["bash", "--rcfile", rc, "-i"], stdin=slave, stdout=slave, stderr=slave, env=env,
                          close_fds=True, start_new_session=True) as p:
        os.close(slave)
        shown = b""

        def until(what):
            nonlocal shown
            while what.encode() not in shown:
                holds(select.select([master], [], [], 60)[0], "no output for a minute: %r" % shown)
                shown += os.read(master, 4096)
            shown = shown[shown.index(what.encode()) + len(what):]
        try:
            for typed, want in (("show http://b\t\n", "<show><http://b.example/x?y=1&z>"),
                                ("list --folder Wo\t\n", "<list><--folder><World News>"),
                                ("run --once --order=sh\t\n", "<run><--once><--order=shortest>"),
                                ("sho\t 'http://c\t\n", "<show><http://c.example/>")):
                until("ready> ")
                os.write(master, ("feedwheel " + typed).encode())
                until(want)
            until("ready> ")
            os.write(master, b"exit\n")
            p.wait(timeout=60)
        finally:
            if p.poll() is None:
                p.kill()
            os.close(master)


# ---- usage --------------------------------------------------------------------------------------------------

@case("a usage error is one line on stderr that names the remedy, with exit code 2")
def usage(base):
    for arguments, parts in (
            (("lst",), ("unknown command 'lst'", "did you mean 'list'?")),
            (("frobnicate",), ("unknown command 'frobnicate'", "feedwheel help")),
            (("ls",), ("unknown command 'ls': did you mean 'list'?",)),
            (("rm", "12"), ("did you mean 'remove'?",)),
            (("search", "x"), ("did you mean 'entries --search'?",)),
            (("serach", "x"), ("did you mean 'entries --search'?",)),
            (("update",), ("did you mean 'run --once' or 'fetch-now'?",)),
            (("refresh", "x"), ("did you mean 'run --once' or 'fetch-now'?",)),
            (("subscribe", "x"), ("did you mean 'add'?",)),
            (("open", "4711"), ("did you mean 'read'?",)),
            (("help", "ls"), ("did you mean 'list'?",)),
            (("--stroe", "x", "list"), ("did you mean '--store'?",)),
            (("list", "--fialing"), ("did you mean '--failing'?", "feedwheel help list")),
            (("run", "--wrokers", "2"), ("did you mean '--workers'?",)),
            (("list", "-x"), ("unknown option '-x'",)),
            (("list", "--json=yes"), ("--json takes no value",)),
            (("--quiet=1", "list"), ("--quiet takes no value",)),
            (("list", "--limit"), ("--limit needs a value",)),
            (("list", "--limit", "many"), ("whole number of at least 1", "'many'")),
            (("list", "--limit", "0"), ("whole number of at least 1",)),
            (("list", "--status", "odd"), ("active, paused, gone or quarantined",)),
            (("list", "extra"), ("unexpected argument 'extra'",)),
            (("--color", "sometimes", "list"), ("auto, always or never",)),
            (("add",), ("missing argument: URL...",)),
            (("show",),
             ("missing argument: FEED",
              "; write a number as 12, because an unquoted # starts a comment in the shell")),
            (("add", "ftp://example.org/"), ("'ftp' is not http or https",)),
            (("add", "http://exa mple.org/"), ("exa mple",)),
            (("add", "x"), ("write https://",)),
            (("add", "--interval", "soon", "https://a.example/"), ("such as 90s",)),
            (("add", "./feed.xml"), ("'./feed.xml' is a file, not a URL", "feedwheel parse")),
            (("add", "/etc/passwd"), ("'/etc/passwd' is a file, not a URL",)),
            (("add", ""), ("'': the URL is empty",)),
            (("add", "--user", "x", "--interval", "2h", "https://a.example/"), ("--user and --interval exclude",)),
            (("help", "nosuch"), ("unknown command 'nosuch' (see 'feedwheel help')",)),
            (("--json",), ("missing command: --json is an option of commands",)),
            (("add", "--title", "T", "https://a.example/", "https://b.example/"), ("--title needs exactly one URL",)),
            (("set", "https://a.example/"), ("nothing to change",)),
            (("entries", "--since", "whenever"), ("2026-11-01",)),
            (("entries", "--json", "--jsonl"), ("exclude each other",)),
            (("entries", "--search", " "), ("--search needs a word",)),
            (("entries", ""), ("the query needs a word",)),
            (("entries", "--search", "x", "y"), ("exclude each other",)),
            (("entries", "--id", "1", "y"), ("--id and a query exclude each other",)),
            (("entries", "--by", "rank", "x"), ("--by must be date or relevance, not 'rank'",)),
            (("entries", "--by", "relevance"), ("--by relevance needs a query",)),
            (("entries", "--by", "relevance", "--after", "1", "x"), ("--by relevance and --after exclude",)),
            (("entries", "--by", "relevance", "--oldest-first", "x"), ("--oldest-first exclude",)),
            (("fetch", "gopher://x/"), ("not http or https",)),
            (("import", "/nonexistent.opml"), ("/nonexistent.opml: No such file or directory: name a file",)),
            (("parse", "/nonexistent.xml"), ("No such file",)),
            (("parse", "/"), ("/: Is a directory: name a file in it",))):
        stderr_line(plain(*arguments, code=2, env={"FEEDWHEEL_STORE": "sqlite:" + base + "/s.db"}), *parts)
    holds(not os.path.exists(base + "/s.db"), "a usage error created a store")


@case(
    "a setting that a command does not use is an error that names the commands that use it; help and "
    "completions list only the others")
def unused_settings(base):
    db = {"FEEDWHEEL_STORE": "sqlite:" + base + "/s.db"}
    r = plain("add", "--user-agent", "Foo", "https://a.example/", code=2, env=db)
    stderr_line(
        r,
        "add: --user-agent has no effect here without --check: it is a setting of run, serve, fetch and add --check "
        "(to set it there, put 'user_agent = ...' into the configuration file)")
    stderr_line(
        plain("--proxy", "http://me:s3cret@p.example/", "add", "https://a.example/", code=2, env=db),
        "add: --proxy has no effect here")
    stderr_line(plain("list", "--no-http2", code=2, env=db),
                "list: --http2 has no effect here: it is a setting of run, serve, fetch and add --check (")
    stderr_line(plain("run", "--order", "fifo", code=2, env=db),
                "--order has no effect here without --once: it is a setting of run --once and plan (")
    stderr_line(plain("version", "--log-json", code=2),
                "--log-json has no effect here: it is a setting of every command")
    stderr_line(plain("list", "--oder", "x", code=2, env=db), "unknown option '--oder'") # order is no option of list
    holds(not os.path.exists(base + "/s.db"), "nothing was stored")
    conf = os.path.join(base, "x.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write("user_agent = Foo\nproxy = http://127.0.0.1:1\norder = fifo\n")
    plain("add", "--config", conf, "https://a.example/", env=db)
    plain("run", "--user-agent", "Foo", "--help")
    settings = re.findall(r"^(\w+) = ", plain("help", "settings").stdout, re.M)
    used = {}
    for name in COMMANDS:
        words_of = [l.split("\t")[0] for l in plain("help", "--complete", name).stdout.splitlines()]
        equal(len(words_of), len(set(words_of)), name + ": a word appears twice")
        used[name] = {s for s in settings if "--" + s.replace("_", "-") in words_of}
        text = re.sub(r"\s+", " ", plain("help", name).stdout)
        if name not in ("run", "doctor"):
            listed = text.split("Settings as options")[-1].split("Examples ")[0]
            equal(
                {s for s in settings if re.search(r" --%s[ ,]" % s.replace("_", "-"), listed)} - {"store"},
                used[name] - {"store"} if "Settings as options" in text else set(), name)
    equal(used["doctor"], set(settings))
    equal(used["run"], set(settings))
    equal(used["parse"], {"store", "max_body_bytes", "max_entries", "log_level", "log_json"})
    # a command takes as options the settings that its own code reads
    for name in COMMANDS:
        path = os.path.join(ROOT, "src", "cli", "cmd_%s.c" % name.replace("-", "_"))
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                equal({m for m in re.findall(r"config->(\w+)", f.read()) if m in settings} - used[name], set(), name)


@case("options stand before or after the command, with = or a space; -- ends them; --no-SETTING is no")
def option_forms(base):
    w = Feedwheel(base)
    w.run("add", "--folder=a b", "https://a.example/")
    equal(w.json("list", "--folder", "a b")[0]["folder"], "a b")
    equal(len(json.loads(w.run("list", "--json", "--page-cache-bytes=8MiB", "--log-json", "yes").stdout)), 1)
    stderr_line(w.run("show", "--", "--json", code=1), "--json: no such feed")
    w.run("remove", "--async-commit", "1")
    w.run("add", "--no-async-commit", "https://a.example/")
    equal(w.json("plan", "--host-concurrency=3", "--no-log-json")["order"], "host-path")
    stderr_line(w.run("plan", "--host-concurrency", "0", code=4),
                "command line: host_concurrency = '0' is not allowed: 1 to 1000")
    stderr_line(w.run("list", "--no-workers", code=2), "unknown option '--no-workers'")


# ---- configuration and store ----------------------------------------------------------------------------------

@case(
    "the store is that of --store, FEEDWHEEL_STORE, file, default, in this order; a new default store is its "
    "owner's only")
def precedence(base):
    conf = os.path.join(base, "feedwheel.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write("store = sqlite:%s/file.db\n" % base)
    env = {"XDG_CONFIG_HOME": base, "XDG_DATA_HOME": base + "/data"}
    plain("add", "https://a.example/", env=env)
    holds(os.path.exists(base + "/file.db"), "the file's store")
    env["FEEDWHEEL_STORE"] = "sqlite:%s/env.db" % base
    plain("add", "https://a.example/", env=env)
    holds(os.path.exists(base + "/env.db"), "the environment's store")
    plain("add", "--store", "sqlite:%s/flag.db" % base, "https://a.example/", env=env)
    holds(os.path.exists(base + "/flag.db"), "the flag's store")
    env = {"XDG_DATA_HOME": base + "/data/deep"}
    r = plain("list", code=3, env=env)
    stderr_line(r, base + "/data/deep/feedwheel/feedwheel.db", "feedwheel add")
    holds(not os.path.exists(base + "/data"), "list created a directory")
    plain("add", "https://a.example/", env=env)
    for d in ("/data", "/data/deep", "/data/deep/feedwheel"):
        equal(os.stat(base + d).st_mode & 0o777, 0o700, d)
    stderr_line(plain("list", code=4, env={"HOME": ""}), "no store: set HOME")
    stderr_line(plain("add", "https://a.example/", code=3, env={"XDG_DATA_HOME": "/dev/null/x"}),
                "/dev/null/x", "--store sqlite:PATH")


@case("a broken configuration file is exit code 4 and names its line; help and version ignore it")
def broken_configuration(base):
    conf = os.path.join(base, "x.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write("# mine\nwrokers = 2\n")
    stderr_line(plain("list", "--config", conf, code=4),
                conf + ":2: unknown setting 'wrokers': did you mean 'workers'?")
    plain("help", "--config", conf)
    plain("version", "--config", conf)
    stderr_line(plain("list", "--config", base + "/none", code=4), base + "/none: No such file")
    r = plain("doctor", "--config", conf, code=4)
    holds("broken" in r.stdout and ":2:" in r.stdout, r.stdout)
    with open(conf, "w", encoding="ascii") as f:
        f.write("interval_min_ms = 2h\n")
    stderr_line(plain("list", "--config", conf, code=4), "interval_min_ms (2 h) is larger than interval_ms (1 h)")


@case("a store that cannot be opened is one line and exit code 3, a wrong URL is 4; no store is created")
def bad_stores(base):
    def with_store(url, code):
        return plain("list", "--store", url, code=code)
    stderr_line(with_store("nonsense", 4), "nonsense")
    stderr_line(with_store("mongo://x/y", 4), "mongo:")
    stderr_line(with_store("sqlite:%s/none.db" % base, 3), base + "/none.db")
    holds(not os.path.exists(base + "/none.db"), "list created a store")
    stderr_line(plain("add", "https://a.example/", "--store", "sqlite:%s/no/dir/x.db" % base, code=3), "/no/dir/x.db")
    junk = os.path.join(base, "junk.db")
    with open(junk, "w", encoding="ascii") as f:
        f.write("this is no database, but it is long enough to be taken for one\n" * 100)
    stderr_line(with_store("sqlite:" + junk, 3), junk, "not an SQLite database")
    stderr_line(plain("run", "--once", "--store", "sqlite:%s/none.db" % base, code=3), base + "/none.db")
    newer = os.path.join(base, "newer.db")
    plain("add", "-q", "https://a.example/", "--store", "sqlite:" + newer)
    with contextlib.closing(sqlite3.connect(newer)) as db:
        db.execute("UPDATE meta SET value = 999 WHERE name = 'schema'")
        db.commit()
    for arguments in (("list",), ("add", "https://b.example/"), ("run", "--once")):
        stderr_line(plain(*arguments, "--store", "sqlite:" + newer, code=3), newer, "999", "upgrade")
    r = plain("doctor", "--store", "sqlite:" + newer, code=1)
    holds(re.search(r"^broken +store .*999.*\n +-> upgrade", r.stdout, re.M), r.stdout)
    stderr_line(with_store("", 4), "no store")


@case("an SQLite file needs no scheme; quotes in the configuration keep spaces and #")
def file_names(base):
    conf, path = os.path.join(base, "x.conf"), os.path.join(base, "a path # of mine.db")
    with open(conf, "w", encoding="ascii") as f:
        f.write('store = "sqlite:%s" # where it is\n' % path)
    plain("add", "https://a.example/", "--config", conf)
    equal(plain("status", "--json", "--config", conf).stdout, plain("status", "--json", "--store", path).stdout)
    for name in ("one.db", "two.sqlite", "three.sqlite3"):
        plain("add", "https://a.example/", "--store", os.path.join(base, name))
        equal(len(json.loads(plain("list", "--json", "--store", "sqlite:" + os.path.join(base, name)).stdout)), 1)
    plain("copy", os.path.join(base, "one.db"), os.path.join(base, "copy.db"))
    equal(len(json.loads(plain("list", "--json", env={"FEEDWHEEL_STORE": base + "/copy.db"}).stdout)), 1)
    stderr_line(plain("list", "--store", "feeds", code=4), 'store "feeds": no scheme: write sqlite:feeds')
    with open(conf, "w", encoding="ascii") as f:
        f.write('workers = 1\nstore = "sqlite:%s\n' % path)
    stderr_line(plain("list", "--config", conf, code=4), conf + ':2: store: the opening " of the value is not closed')


# ---- subscriptions ------------------------------------------------------------------------------------------------

@case("add takes all URLs or none, each once; a password in a URL is stored and never printed (NET-19)")
def add(base):
    w = Feedwheel(base)
    r = w.run("add", "https://example.org/feed.xml", "Example.NET/x", "feed://old.example/rss")
    equal(r.stdout, "1 https://example.org/feed.xml\n2 https://example.net/x\n3 http://old.example/rss\n")
    holds("run --once" in r.stderr, r.stderr)
    equal(w.run("add", "https://example.org/feed.xml").stdout, "1 https://example.org/feed.xml (already subscribed)\n")
    w.run("add", "https://good.example/", "bad", code=2)
    equal(len(w.json("list")), 3)
    w.run("add", "--folder", "n/w", "--title", "Mine", "--interval", "2h", "https://me:s3cret@private.example/feed")
    f = w.json("list")[3]
    equal((f["url"], f["folder"], f["title"], f["interval_ms"], f["auth"]),
          ("https://private.example/feed", "n/w", "Mine", 7200000, True))
    for arguments in (
        ("list",), ("list", "--json"), ("show", "4"), ("show", "4", "--json"), ("export",), ("why", "4"),
        ("status", "--json")):
        r = w.run(*arguments)
        holds("s3cret" not in r.stdout + r.stderr, "the password is in " + " ".join(arguments))
    for wrong in (
        ("add", "https://me:s3cret@exa mple/"),
        ("fetch", "https://me:s3cret@host:99999/"),
        ("show", "https://me:s3cret@unknown.example/"),
        ("add", "--store", "mongo://me:s3cret@db/x", "https://a.example/")):
        r = w.run(*wrong, code=None)
        holds(r.returncode > 0 and "s3cret" not in r.stdout + r.stderr, r.stderr)
    equal(w.run("add", "-q", "https://quiet.example/").stderr, "")


@case("an empty list says why it is empty; what has no effect says so")
def told(base):
    w = Feedwheel(base)
    w.run("add", "-q", "--folder", "news", "https://a.example/feed")
    w.run("push", "1", "-", stdin='{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1"}]}')
    for arguments, words in (
        (("list", "--folder", "nosuch"), "no feed is in folder 'nosuch' ('feedwheel folders'"),
        (("entries", "--folder", "nosuch"), "no feed is in folder 'nosuch' ('feedwheel folders'"),
        (("list", "--match", "nosuch"), "no feed matches"),
        (("entries", "--after", "99"), "no entry was stored after entry 99"),
        (("websub", "on", "1"), "the feed names no WebSub hub so far"),
        (("add", "--folder", "other", "https://a.example/feed"), "'feedwheel set 1'"),
        (("add", "--interval", "1s", "https://b.example/feed"), "--interval 1s: a feed is polled once a minute"),
        (("set", "--interval", "60d", "1"), "--interval 60d: a feed is polled")):
        holds(words in w.run(*arguments).stderr, arguments)
    holds("subscribing" not in w.run("websub", "on", "1").stdout, "there is no hub")
    r = w.run("import", FEEDWHEEL, code=1)
    stderr_line(r, FEEDWHEEL + ": neither OPML nor text: it has NUL bytes")
    equal(len(w.json("list")), 2)


@case("import reads lists with comments and titles; it names and skips bad lines, and fetches nothing")
def import_list(base):
    w = Feedwheel(base)
    text = ("# mine\nhttps://a.example/feed\n\nhttps://b.example/x  Title of B \nhttps://c.example/\tTab C\n"
            "nonsense\nhttps://a.example/feed # again\nftp://d.example/\n")
    r = w.run("import", "-", stdin=text, code=1)
    equal(r.stdout, "standard input: 3 added, 1 already subscribed, 2 refused\n")
    equal([l.split(" ")[2] for l in r.stderr.splitlines()], ["input:6:", "input:8:"])
    equal([(f["url"], f.get("title")) for f in w.json("list")],
          [("https://a.example/feed", None), ("https://b.example/x", "Title of B"), ("https://c.example/", "Tab C")])
    foreign = "\ufeffhttps://e.example/\r\nhttps://f.example/ \"~From newsboat\" tech \"two words\"\r\n"
    w.run("import", "-", stdin=foreign)
    equal(
        [(f["url"], f.get("title")) for f in w.json("list")][3:],
        [("https://e.example/", None), ("https://f.example/", "From newsboat")])
    r = w.run("import", "-", stdin="# nothing\n", code=1)
    holds("no feeds found" in r.stderr, r.stderr)
    w.run("import", "-", stdin="", code=1)
    many = "".join("x%d\n" % i for i in range(80))
    r = w.run("import", "-", stdin=many, code=1)
    equal(len(r.stderr.splitlines()), 51, "the number of errors is limited")
    holds("and 30 more" in r.stderr, r.stderr[-200:])
    equal(w.json("status")["visits"], 0)


@case("import takes 40,000 feeds, four on each host; the second time nothing changes")
def import_many(base):
    w = Feedwheel(base)
    path = os.path.join(base, "many.txt")
    with open(path, "w", encoding="ascii") as f:
        f.writelines("https://h%d.example/feed/%d\n" % (i % 10000, i) for i in range(40000))
    r = w.run("import", path)
    equal(r.stdout, path + ": 40,000 added, 0 already subscribed, 0 refused\n")
    holds("0 added, 40,000 already subscribed" in w.run("import", path).stdout, "second time")
    urls = ["https://new%d.example/feed/%d" % (i % 100, i) for i in range(25000)] + ["https://h0.example/feed/0"]
    text = "".join(u + ("\nnonsense\n" if i % 5000 == 0 else "\n") for i, u in enumerate(urls + urls[:1]))
    out = json.loads(w.run("import", "--json", "-", stdin=text, code=1).stdout)
    equal([out[k] for k in ("added", "existed", "refused")], [25000, 2, 6], "the parts together")
    equal([f["url"] for f in out["feeds"]], urls + urls[:1])
    equal([f["id"] for f in out["feeds"]], [*range(40001, 65001), 1, 40001])
    equal([f["existed"] for f in out["feeds"]], [False] * 25000 + [True] * 2)


@case("import --user subscribes for an account, and names what it refuses")
def import_user(base):
    w = Feedwheel(base)
    w.run("import", "-", stdin="https://u:p@c.example/feed\n")
    w.run("user", "add", "alice", stdin="correct horse\n")
    text = "https://a.example/feed One\nnonsense\nhttps://b.example/feed\nhttps://c.example/feed\n"
    r = w.run("import", "--user", "alice", "--folder", "mine", "--json", "-", stdin=text, code=1)
    out = json.loads(r.stdout)
    equal([out[k] for k in ("added", "existed", "refused")], [2, 0, 2])
    equal([(f["url"], f["existed"]) for f in out["feeds"]],
          [("https://a.example/feed", False), ("https://b.example/feed", False)])
    holds("input:2: " in r.stderr and "c.example/feed: the store has it with another login" in r.stderr, r.stderr)
    # the operator too hears of a login that is not used
    for args in (("add",), ("import", "-")):
        r = w.run(*args, *(["https://u:other@c.example/feed"] if args == ("add",) else []),
                  stdin="https://d.example/feed\nhttps://u:other@c.example/feed\n", code=2 if args == ("add",) else 1)
        holds("c.example/feed: feed 1 has this address with another login, which stays" in r.stderr, r.stderr)
        holds("other@" not in r.stderr, "a password is shown")
    w.run("add", "https://u:p@c.example/feed")
    r = w.run("import", "--user", "alice", "-", stdin=text, code=1)
    equal(r.stdout, "standard input: 0 added, 2 already subscribed, 2 refused\n")
    holds("no account" in w.run("import", "--user", "bob", "-", stdin=text, code=1).stderr, "no such account")
    user = ["add", "--user", "alice"]
    r = w.run(*user, "--folder", "mine", "https://d.example/feed", "https://c.example/feed", code=1)
    holds(r.stdout.endswith("https://d.example/feed\n") and "c.example/feed: the store has it with" in r.stderr, r)
    holds("the feed keeps its title" in w.run(*user, "--title", "T", "d.example/feed").stderr, "kept")
    holds("https://d.example/feed" in w.run("export", "--user", "alice", "--folder", "mine").stdout, "subscribed")
    holds("no account" in w.run("add", "--user", "bob", "https://d.example/", code=1).stderr, "no such account")


@case("a new account has the store's feeds if it is added with --all-feeds, else it is told how they come in")
def new_account(base):
    w = Feedwheel(base)
    notes = w.run("user", "add", "first", stdin="correct horse\n").stderr
    holds("first has no feeds yet" in notes and "export" not in notes, notes)
    w.run("import", "-q", "-", stdin="https://u:p@c.example/feed\nhttps://a.example/feed\nhttps://b.example/feed\n")
    notes = w.run("user", "add", "alice", stdin="correct horse\n").stderr
    holds("'feedwheel add --user alice URL'" in notes and "for all feeds that this store collects" in notes, notes)
    notes = w.run("user", "add", "bob", "--all-feeds", stdin="correct horse\n").stderr
    holds("bob has 2 feeds of this store now" in notes and "1 feed is left out with a login" in notes, notes)
    equal(json.loads(w.run("user", "add", "cora", "--all-feeds", "--json", stdin="correct horse\n").stdout),
          {"name": "cora", "feeds": 2})
    opml_text = w.run("export").stdout
    w.run("import", "--user", "alice", "-", stdin=opml_text, code=1) # as the note says; one feed has a login
    equal({u["name"]: u["feeds"] for u in w.json("user", "list")}, {"first": 0, "alice": 2, "bob": 2, "cora": 2})


@case("the right to use the operator's routes is given and taken")
def user_admin(base):
    w = Feedwheel(base)

    def admins():
        return [u["name"] for u in w.json("user", "list") if u["admin"]]
    w.run("user", "add", "alice", "--admin=no", stdin="correct horse\n")
    w.run("user", "add", "--admin", "bob", stdin="correct horse\n")
    equal(admins(), ["bob"])
    equal(w.run("user", "set", "alice", "--admin", "yes").stdout, "changed alice\n")
    equal(json.loads(w.run("user", "set", "--admin", "no", "bob", "--json").stdout), {"name": "bob"})
    equal(admins(), ["alice"])
    for arguments, code, words in (
            (("alice",), 2, "nothing to set: give --admin yes or --admin no"),
            (("alice", "--admin", "on"), 2, "--admin must be yes or no, not 'on'"),
            (("--admin=no",), 2, "the arguments are: 'feedwheel user set NAME --admin yes|no'"),
            (("alicia", "--admin=no"), 1, "account 'alicia': no account has this name (did you mean 'alice'?)")):
        holds(words in w.run("user", "set", *arguments, code=code).stderr, words)
    equal(admins(), ["alice"], "as before")
    w.run("user", "set", "alice", "--admin=no")
    equal(admins(), [], "the last one too")


@case("folders and titles of OPML are the same after import and export")
def opml(base):
    w, v = Feedwheel(base), Feedwheel(base, name="other.db")
    source = os.path.join(base, "in.opml")
    with open(source, "w", encoding="utf-8") as f:
        f.write('<?xml version="1.0"?>\n<opml version="2.0"><body>\n'
                '<outline text="Top &amp; Co" type="rss" xmlUrl="https://top.example/?a=1&amp;b=&lt;2&gt;"/>\n'
                '<outline text="News"><outline text="W&#246;rld &quot;x&quot;">\n'
                '<outline text="A" xmlUrl="https://a.example/" htmlUrl="https://a.example/home"/></outline>\n'
                '<outline title="B" text="ignored" xmlUrl="https://b.example/"/>\n'
                '<outline text="bad" xmlUrl="javascript:alert(1)"/></outline>\n'
                '<outline text="Liferea folder" type="vfolder" xmlUrl="vfolder"/></body></opml>\n')
    r = w.run("import", source, code=1)
    equal(r.stdout, source + ": 3 added, 0 already subscribed, 1 refused\n")
    holds("in.opml:7: " in r.stderr, r.stderr)
    feeds = {f["url"]: (f.get("folder"), f.get("title")) for f in w.json("list")}
    equal(feeds["https://top.example/?a=1&b=<2>"], (None, "Top & Co"))
    equal(feeds["https://a.example/"], ('News/W\u00f6rld "x"', "A"))
    equal(feeds["https://b.example/"][0], "News")
    out = w.run("export").stdout
    ET.fromstring(out)
    v.run("import", "-", stdin=out)
    equal({f["url"]: (f.get("folder"), f.get("title")) for f in v.json("list")}, feeds)
    equal(re.sub("<dateCreated>.*", "", v.run("export").stdout), re.sub("<dateCreated>.*", "", out))
    holds('htmlUrl="https://a.example/home"' in out, "home page")
    equal(out.count("<outline type"), 3)
    holds("top.example" not in w.run("export", "--folder", "News").stdout, "only the folder")
    odd = "t\ta\x7f\x9b\u202e\u2028z"
    v.run("set", "--title", odd, "https://a.example/")
    odd_out = v.run("export").stdout
    equal([c for c in "\x7f\x9b\u202e\u2028" if c in odd_out], [], "control characters of a terminal")
    holds(odd in [e.get("text") for e in ET.fromstring(odd_out).iter("outline")],
          "the title is complete: %a" % odd_out)
    v.run("import", "--folder", "From/here", "-", stdin=out)
    w2 = Feedwheel(base, name="third.db")
    w2.run("import", "--folder", "From", "-", stdin=out)
    equal({f["folder"] for f in w2.json("list")}, {"From", "From/News", 'From/News/W\u00f6rld "x"'})


@case("set --interval counts from the last visit at once; a failing feed keeps its backoff")
def intervals(base):
    with origin(
        base, samples(base), "--feeds", "2", plans=["* grow=1,start=5,window=20", "1 429,retry-after=90000"]) as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        w.run_once()
    def due_in_h(number):
        f = w.json("show", number)["feed"]
        return (datetime.fromisoformat(f["due"]) - datetime.fromisoformat(f["last_visit"])).total_seconds() / 3600
    holds(due_in_h("#1") > 10 and due_in_h("#2") > 10, "both have long intervals")
    w.run("set", "--interval", "2h", "#1", "#2")
    equal(round(due_in_h("#1"), 2), 2.0)
    holds(due_in_h("#2") > 10, "Retry-After holds")
    w.run("set", "--interval", "30d", "#1")
    equal(round(due_in_h("#1"), 2), 2.0, "a longer interval does not delay this visit")


@case("set, pause, resume and remove take URLs, numbers or unique parts; one unknown feed, and none is changed")
def changes(base):
    w = Feedwheel(base)
    w.run("add", "https://one.example/a", "https://two.example/a", "https://three.example/b")
    r = w.run("show", "example", code=1)
    holds("several feeds have this" in r.stderr and "  3 https://three.example/b" in r.stderr, r.stderr)
    stderr_line(w.run("show", "four", code=1), "four: no such feed", "feedwheel list")
    w.run("set", "two", "--title", "Second", "--folder", "x/y", "--interval", "45m")
    f = w.json("show", "#2")["feed"]
    equal((f["title"], f["folder"], f["interval_ms"]), ("Second", "x/y", 2700000))
    w.run("set", "Second", "--title", "", "--folder", "", "--interval", "0")
    f = w.json("show", "2")["feed"]
    equal([k for k in ("title", "folder", "interval_ms") if k in f], [])
    w.run("pause", "one", "four", code=1)
    equal({f["status"] for f in w.json("list")}, {"active"})
    w.run("pause", "one", "three")
    equal([f["id"] for f in w.json("list", "--status", "paused")], [1, 3])
    holds("paused" in w.run("why", "one").stdout, "why")
    w.run("resume", "one")
    equal(w.json("show", "1")["feed"]["status"], "active")
    w.run("remove", "two", code=1)  # remove takes no part of a URL
    equal(w.run("remove", "https://two.example/a", "#3", "3").stdout.count("removed"), 2)
    equal([f["id"] for f in w.json("list")], [1])
    w.run("set", "1", "--due")


@case("a feed's number is printed as 12 and accepted as 12 and #12; a part of digits needs a slash or a dot")
def feed_numbers(base):
    w = Feedwheel(base)
    w.run("add", "http://a.example/404", "http://b.example/x", "http://c.example/9/y")
    equal([l.split()[0] for l in w.run("list").stdout.splitlines()], ["FEED", "1", "2", "3"])
    for form in ("2", "#2"):
        equal(w.json("show", form)["feed"]["url"], "http://b.example/x")
    for form, id in (("/404", 1), ("9/y", 3), ("b.", 2)):
        equal(w.json("why", form)["id"], id, form)
    for form in ("404", "#404", "0", "99999999999999999999", "9"): # 9 is a part of the third's address
        digits = form.lstrip("#")
        stderr_line(
            w.run("why", form, code=1),
            "no feed has the number %s ('feedwheel list' lists all; to name a part of a URL, write '/%s')" %
            (digits, digits))
        stderr_line(w.run("remove", form, code=1), "no feed has the number %s ('feedwheel list' lists all)" % digits)
    stderr_line(w.run("entries", "--feed", "404", code=1), "no feed has the number 404")
    for command in ("show", "why", "set", "remove", "fetch-now"):
        stderr_line(w.run(command, code=2), "missing argument: FEED",
                    "as 12, because an unquoted # starts a comment in the shell")
    stderr_line(w.run("read", code=2), "missing argument: ENTRY", "as 12,")
    equal(
        subprocess.run(
            ["sh", "-c", '"$@" #2', "sh", *w.command("show")], capture_output=True, env=w.environment,
            check=False).returncode,
        2)
    for page in ["README.md", *("man/" + p for p in os.listdir(os.path.join(ROOT, "man")) if p[-1].isdigit()),
                 *("docs/" + p for p in os.listdir(os.path.join(ROOT, "docs")) if p.endswith(".md"))]:
        with open(os.path.join(ROOT, page), encoding="utf-8") as f:
            found = [l for l in f if re.search(r"(?<![\w/&(#-])#[0-9]", l) and not l.startswith("is the number too")]
        equal([l for l in found if not l.startswith(".Cm #12")], [], page)
    for name in COMMANDS:
        holds("#1" not in plain("help", name).stdout, name)


@case("list prints a table or JSON, and filters; an empty list names the next step")
def lists(base):
    w = Feedwheel(base)
    w.run("add", "https://one.example/a", "--folder", "x")
    w.run("add", "https://two.example/\u00fc", "--title", "Zw\u00f6lf \u4e2d\u6587 \x1b[31mred")
    r = w.run("list")
    lines = r.stdout.splitlines()
    equal(lines[0].split(), ["FEED", "STATE", "VISITED", "DUE", "ENTRIES", "FOLDER", "TITLE", "URL"])
    equal("FOLDER" in w.run("list", "--folder", "x").stdout, True)
    equal("FOLDER" in w.run("list", "--match", "two").stdout, False, "no feed of this list is in a folder")
    holds("\\x1b[31mred" in r.stdout and "\x1b" not in r.stdout, "controls are escaped")
    equal([f["id"] for f in w.json("list", "--match", "TWO")], [2])
    equal([f["id"] for f in w.json("list", "--folder", "x")], [1])
    w.run("add", "https://three.example/a", "--folder", "x/y")
    w.run("add", "https://four.example/a", "--folder", "xz")
    equal([f["id"] for f in w.json("list", "--folder", "x")], [1, 3])
    equal([f["id"] for f in w.json("list", "--folder", "/x/")], [1, 3])
    equal([f["id"] for f in w.json("list", "--folder", "")], [2])
    equal([(f["folder"], f["feeds"], f["feeds_here"]) for f in w.json("folders")],
          [("", 1, 1), ("x", 2, 1), ("x/y", 1, 1), ("xz", 1, 1)])
    holds(w.run("export", "--folder", "x").stdout.count("xmlUrl") == 2, "subfolders")
    for form in ([], ["--json"]):
        r = w.run("export", "--folder", "no", *form, code=1)
        holds("no feed is in folder 'no'" in r.stderr, r.stderr)
    r = w.run("entries", "--search", "rain titel:x", code=2)
    holds("did you mean title:" in r.stderr and r.stderr.splitlines()[2].index("^") ==
          r.stderr.splitlines()[1].index("titel"), r.stderr)
    w.run("remove", "3", "4")
    equal([f["id"] for f in w.json("list", "--limit", "1")], [1])
    equal(w.json("list", "--failing"), [])
    holds("no feed is failing" in w.run("list", "--failing").stderr, "failing")
    holds("no feed matches (" in w.run("list", "--match", "zzz").stderr, "nothing")
    equal(len(w.json("list", "--by-due")), 2)


# ---- one document --------------------------------------------------------------------------------

@case("parse prints JSON Feed 1.1 and exits 0, 1 without a feed, 2 without a file; the feeds of an HTML page are named")
def parse(base):
    path = os.path.join(base, "feed.xml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(RSS)
    doc = json.loads(plain("parse", path).stdout)
    equal(doc["version"], "https://jsonfeed.org/version/1.1")
    equal((doc["title"], doc["items"][0]["id"], doc["_feedwheel"]["format"]), ("T", "g1", "rss20"))
    holds("onclick" not in doc["items"][0]["content_html"], "the content is sanitised")
    holds("onclick" in json.loads(plain("parse", "--raw", path).stdout)["items"][0]["content_html"], "--raw")
    equal(json.loads(plain("parse", "-", stdin=RSS).stdout)["title"], "T")
    for title, feed in (
        ("\x7f31m\u202e", RSS.replace("Hello", "&#x7f;31m&#x202e;")),
        ("\u009d31m\u202e",
         '{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1",'
         '"title":"\\u009d31m\\u202e","content_text":"x"}]}')):
        evil = plain("parse", "-", stdin=feed).stdout
        holds(not any(c in evil for c in "\u009d\u202e\x7f"), "control characters are escaped in the JSON")
        equal(json.loads(evil)["items"][0]["title"][:5], title)
    relative = RSS.replace("https://example.org/1", "one")
    holds(json.loads(plain("parse", "--url", "https://base.example/x/", "-", stdin=relative.replace(
        "<link>https://example.org/</link>", "")).stdout)["items"][0]["url"].endswith("/one"), "--url")
    equal(json.loads(plain("parse", "--content-type", "text/xml; charset=utf-8", path).stdout)
          ["_feedwheel"]["encoding"], "utf-8")
    stderr_line(plain("parse", "-", stdin="", code=1), "standard input", "empty")
    stderr_line(plain("parse", "-", stdin="\x00\x01junk" * 50, code=1), "standard input")
    page = ('<!doctype html><html><head><title>x</title><link rel="alternate" type="application/rss+xml" '
            'title="News \x1b[2J" href="/news.xml"></head><body>hi</body></html>')
    r = plain("parse", "--url", "https://site.example/", "-", stdin=page, code=1)
    holds("HTML" in r.stderr and "https://site.example/news.xml" in r.stderr, r.stderr)
    holds("\x1b" not in r.stderr, "controls are escaped")
    big = os.path.join(base, "big.xml")
    with open(big, "w", encoding="ascii") as f:
        f.write("<rss><channel>" + "x" * 100000)
    stderr_line(plain("parse", "--max-body-bytes", "64k", big, code=1), "max_body_bytes")


@case("fetch prints a feed and stores nothing; a private address is refused; the feeds of an HTML page are named")
def fetch(base):
    docs = samples(base)
    with origin(base, docs) as o:
        w = Feedwheel(base)
        r = w.run("fetch", "--timings", o.urls[0])
        doc = json.loads(r.stdout)
        equal(doc["version"], "https://jsonfeed.org/version/1.1")
        holds("total" in r.stderr and "status 200" in r.stderr, r.stderr)
        holds(not os.path.exists(w.path), "fetch created a store")
        r = w.run("fetch", o.url("/with/404/feed/0"), code=1)
        holds("404" in r.stderr and "response of the server: Not Found" in r.stderr, r.stderr) # FRB 101
        r = w.run("fetch", o.url("/with/html/feed/0"), code=1)
        holds("HTML" in r.stderr and o.url("/doc/0") in r.stderr, r.stderr)
        holds("feedwheel add" in r.stderr.splitlines()[-1], r.stderr)
        equal(r.stdout, "")
        before = len(o.requests())
        stderr_line(plain("fetch", o.urls[0], code=1), "127.1.0.1", "allow_networks")
        equal(len(o.requests()), before, "requests")
        stderr_line(plain("fetch", "--allow-networks", "*", o.urls[0], code=4), "allow_networks")
        w.run("add", "--check", o.urls[0])
        r = w.run("add", "--check", o.url("/with/html/feed/0"))
        holds("subscribing to the feed it advertises" in r.stderr, r.stderr)
        equal([f["url"] for f in w.json("list")], [o.urls[0], o.url("/doc/0")], "the feed that the page names")
        r = w.run("add", "--check", o.url("/with/bare-html/feed/0"), code=1)
        holds("not subscribed" in r.stderr, r.stderr)
        equal(len(w.json("list")), 2)
        # a page added without --check: the first run finds and visits its feed
        w.run("add", o.url("/with/html/feed/1"))
        r = w.json("run", "--once")
        equal([r["feeds"], r["read"], r["failed"]], [1, 1, 0], r) # --check was the first visit of the others
        equal(w.json("list")[2]["url"], o.url("/doc/1"), "the feed that the page names")
        holds("replaced by the feed that it names: " + o.url("/doc/1") in w.run("show", "#3").stdout, "in its visits")
        # the feed is subscribed already: the page stays, with a remedy
        w.run("add", o.url("/with/html/feed/0"))
        w.run("run", "--once", code=1)
        for command in ("show", "why"):
            remedy = re.search(r"remedy:? +(.*)", w.run(command, "#4").stdout).group(1)
            equal(remedy, "feedwheel add '%s' && feedwheel remove 4" % o.url("/doc/0"), command)
        holds("remedy" not in w.run("why", "1").stdout, "a healthy feed has no remedy")


# ---- running and reading -------------------------------------------------------------------------

@case(
    "run --once prints a summary with failures by reason and exits 0 or 1; entries, show, why and status read "
    "what it stored")
def run_once(base):
    docs = samples(base)
    with origin(base, docs, plans=("1 404", "2 reset=start")) as o:
        w = Feedwheel(base)
        w.run("import", "-", stdin="\n".join(o.urls[:6]) + "\n")
        r = w.run("run", "--once", code=1)
        holds(re.search(r"^done     6 feeds in .*: 4 read, 0 unchanged, 2 failed$", r.stdout, re.M), r.stdout)
        holds("failed   1 http, 1 protocol; " in r.stdout, r.stdout)
        holds("list --failing" in r.stdout, r.stdout)
        failing = w.json("list", "--failing")
        equal([f["http_status"] if "http_status" in f else 0 for f in failing], [404, 0])
        holds(all(f["error"] for f in failing), "each has an error")
        holds("404" in w.run("list", "--failing").stdout, "as a table")
        shown, _ = on_terminal(w.command("list", "--failing"), dict(w.environment, TERM="xterm"), columns=60)
        holds(re.search(r"^ +2  failing  HTTP 404\r\n +%s  due in " % re.escape(o.urls[1]), shown, re.M), shown)
        holds("failed once: " in w.run("why", o.urls[1]).stdout, "why")
        shown = w.json("show", o.urls[0])
        equal((shown["visits"][0]["result"], shown["visits"][0]["http_status"]), ("ok", 200))
        equal(shown["feed"]["entries"], w.one("select count(*) from entries where feed_id = 1"))
        holds("ok" in w.run("show", o.urls[0]).stdout, "show")
        equal(w.json("why", "1")["status"], "active")
        holds("because: " in w.run("why", "1").stdout, "why")
        s = w.json("status")
        equal((s["feeds"], s["failing"], s["entries"]), (6, 2, w.one("select count(*) from entries")))
        holds(w.run("status").stdout.startswith("store    sqlite:"), "status")
        r = w.run("run", "--once")
        stderr_line(r, "nothing is due; the next feed is due in ", "; 'feedwheel list --by-due' shows the schedule")
        ahead = 10 * 365 * 86400000 # by a clock that was wrong; the run repairs it, and tells of the schedule as it is
        before = w.sql("SELECT position, due_at_ms, last_visit_ms FROM schedule")
        w.sql("UPDATE schedule SET due_at_ms = due_at_ms + ?, last_visit_ms = last_visit_ms + ?", ahead, ahead,
              write=True)
        w.sql("UPDATE visits SET at_ms = at_ms + ?", ahead, write=True)
        r = w.run("run", "--once")
        holds("a clock was ahead: 6 feeds" in r.stderr and "nothing is due" in r.stderr, r.stderr)
        holds(not re.search(r"due (in \d+ (d|y)|20)", r.stderr), r.stderr)
        w.sql("UPDATE visits SET at_ms = at_ms - ?", ahead, write=True)
        for position, due, visited in before:
            w.sql("UPDATE schedule SET due_at_ms = ?, last_visit_ms = ? WHERE position = ?", due, visited, position,
                  write=True)
        shown, code = on_terminal(
            w.command("run"), dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8"), interrupt_at=r"next in \d+ (min|h)")
        equal(code, 0, shown)
        for u in o.urls[:6:5]:
            w.run("set", u, "--due")
        done = w.json("run", "--once")
        equal((done["feeds"], done["unchanged"], done["failed"], done["failures"]), (2, 2, 0, {}))
        entries(w, base)


def entries(w, base):
    """Each way to read the stored entries."""
    n = w.one("select count(*) from entries")
    whole = w.json("entries")
    equal(whole["version"], "https://jsonfeed.org/version/1.1")
    equal(len(whole["items"]), n)
    lines = [json.loads(l) for l in w.run("entries", "--jsonl").stdout.splitlines()]
    equal(lines, whole["items"])
    for i in lines:
        holds(i["id"] and i["_store"]["entry"] > 0 and i["_store"]["feed_url"].startswith("http://127."), i)
        holds("content_html" not in i and "content_text" not in i, "contents only with --content")
    equal(w.run("entries", "--limit", "3").stdout.count("\n"), 6)
    lines = w.run("entries", "--jsonl", "--after", "2", "--limit", "4").stdout.splitlines()
    equal([json.loads(l)["_store"]["entry"] for l in lines], [3, 4, 5, 6])
    equal(len(w.json("entries", "--since", "1h")["items"]), n)
    equal(len(w.json("entries", "--since", "2037-12-31")["items"]), 0)
    equal(len(w.json("entries", "--since", "2020-01-01T00:00:00+01:00")["items"]), n)
    one = w.json("entries", "--feed", "1")["items"]
    equal(len(one), w.one("select count(*) from entries where feed_id = 1"))
    full = w.json("entries", "--content")["items"]
    raw = w.json("entries", "--raw")["items"]
    holds(any("content_html" in i for i in full) and any("content_html" in i for i in raw), "contents")
    title = next(i["title"] for i in whole["items"] if re.match(r"[A-Za-z]{4,}", i.get("title", "")))
    word = re.match(r"[A-Za-z]{4,}", title).group(0)
    wait_for("the entries' index", lambda: w.json("status")["unindexed_entries"] == 0)
    found = w.json("entries", "--search", word)["items"]
    holds(title in [i["title"] for i in found], "search finds the title")
    equal(w.json("entries", "--search", "xyzzyplugh")["items"], [])
    holds("no entries match" in w.run("entries", "--search", "xyzzyplugh").stderr, "nothing found")
    planet = os.path.join(base, "planet.json")
    with open(planet, "w", encoding="utf-8") as f:
        json.dump(w.json("entries", "--content"), f)
    equal(len(json.loads(plain("parse", planet).stdout)["items"]), n, "the output is a feed that parse reads")


def with_entries(base, *items):
    """A store with one feed and these entries, numbered from 1."""
    w = Feedwheel(base)
    w.run("add", "-q", "http://a.example/feed")
    w.run("push", "1", "-",
          stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "Things", # the newest first
                            "items": items[::-1]}))
    return w


@case("a search shows a snippet with its matches marked, best first if wanted")
def snippets(base):
    text = "<p>A long <i>walk</i> in the rain &amp; the <b>rain</b>\x1b[31m of May.</p><script>rain</script>"
    w = with_entries(
        base, {"id": "1", "title": "Walks", "content_html": text, "date_published": "2026-11-01T00:00:00Z"},
        {"id": "2", "title": "Rain", "date_published": "2026-11-02T00:00:00Z"},
        {"id": "3", "title": "Other", "content_text": "<rain> once, in a text with more words than one",
         "url": "http://x.example/"},
        {"id": "4", "title": "Sun", "content_text": "no such word"})
    query = "rain OR has:image" # not by the index, so it need not be filled
    plain_text = w.run("entries", query).stdout
    holds("\n       A long walk in the rain & the rain [31m of May.\n" in plain_text, plain_text)
    equal(plain_text.count("Rain\n"), 1, "a match in the title alone is not shown twice")
    holds("\x02" not in plain_text and "\x1b" not in plain_text, "no marks without colours")
    coloured = w.run("entries", "--color", "always", query).stdout
    holds("the \x1b[1mrain\x1b[0m & the \x1b[1mrain\x1b[0m" in coloured, coloured)
    holds("no such" not in w.run("entries", "has:content").stdout, "no snippet without a match")
    equal([i["id"] for i in w.json("entries", query)["items"]], ["3", "2", "1"])
    holds("snippet" not in w.run("entries", "--json", query).stdout, "only with --snippet")
    found = w.json("entries", "--snippet", "--by", "relevance", query)["items"]
    equal([i["id"] for i in found], ["2", "1", "3"])
    equal(found[2]["_store"]["snippet"], "&lt;<mark>rain</mark>&gt; once, in a text with more words than one")
    equal([i["id"] for i in w.json("entries", "--by", "relevance", "--limit", "1", query)["items"]], ["2"])
    equal([i["id"] for i in w.json("entries", "--by", "date", "rain", "OR", "has:image")["items"]], ["3", "2", "1"])
    w.run("add", "-q", "http://b.example/feed")
    equal(len(w.json("entries", "--feed", "1", "--feed", "2")["items"]), 4)
    equal(len(w.json("entries", "--feed", "2")["items"]), 0)


ITEMS = (
    {"id": "https://e.example/1", "url": "https://e.example/1", "title": "First",
     "content_html": "<p>Hello <a href='x'>world</a></p>",
     "authors": [{"name": "Ann"}, {"name": "Bob \x1b[2J"}], "tags": ["a", "b"],
     "date_published": "2026-11-20T10:00:00Z",
     "attachments": [{"url": "https://e.example/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 12345678,
                      "duration_in_seconds": 1870}]},
    {"id": "5",
     "content_html": "<p><img src='https://e.example/p.png' alt='a cat'></p><p>A <b>toot</b> &amp; a\n"
                     "<a href='https://l.example/'>link</a></p><p>" + "more of it " * 1000 + "</p>"},
    {"id": "6", "content_html": "<img src='https://e.example/p.png' alt='a cat'>"},
    {"id": "7"},
    {"id": "8", "content_text": "plain\n  text", "attachments": [{"url": "https://e.example/b.mp3"}]},
    {"id": "https://e.example/9", "summary": "A summary"},
)


@case("entries prints numbers and titles; without a title, the start of the text; an id that is no URL is no link")
def titles(base):
    w = with_entries(base, *ITEMS)
    lines = w.run("entries", "--oldest-first").stdout.splitlines()
    rows = [(int(a[:5]), a[7:23], a[25:49].strip(), a[51:], b[51:]) for a, b in zip(lines[::2], lines[1::2])]
    equal([r[0] for r in rows], [1, 2, 3, 4, 5, 6])
    equal({r[2] for r in rows}, {"Things"})
    equal([r[3] for r in rows if r[0] != 2],
          ["First", "[picture: a cat]", "(no title, no text)", "plain text", "A summary"])
    holds(rows[1][3].startswith("A toot & a link more of it more") and len(rows[1][3]) <= 201, rows[1][3])
    equal(
        [r[4] for r in rows],
        [
            "https://e.example/1", "no link; id 5", "no link; id 6", "no link; id 7", "https://e.example/b.mp3",
            "https://e.example/9"])
    holds("<" not in "".join(lines), "no tags")
    holds(
        all("title" not in json.loads(l) for l in w.run("entries", "--jsonl", "--after", "1").stdout.splitlines()),
        "JSON has no title where the entry has none")
    for columns in (40, 60, 80):
        shown, _ = on_terminal(
            w.command("entries"), dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8"), columns=columns)
        holds(all(len(re.sub(r"\x1b\[[0-9;]*m", "", l)) <= columns or "://" in l for l in shown.splitlines()), shown)
        holds(re.search(r"^ +2  2\d\d\d-", shown, re.M) and "A toot &" in shown, shown)


@case("entries --id prints one entry; other filters beside it and an unknown number are errors")
def one_entry(base):
    w = with_entries(base, *ITEMS)
    for id in ("1", "#1"):
        equal([i["id"] for i in w.json("entries", "--id", id)["items"]], ["https://e.example/1"])
    equal(json.loads(w.run("entries", "--id", "2", "--jsonl").stdout)["_store"]["entry"], 2)
    holds("content_html" in json.loads(w.run("entries", "--id", "3", "--jsonl", "--raw").stdout), "--raw")
    equal(w.run("entries", "--id", "5").stdout.count("\n"), 2)
    for form in ([], ["--json"], ["--jsonl"]):
        for id in ("77", "0", "99999999999999999999"):
            stderr_line(w.run("entries", "--id", id, *form, code=1), "no entry has the number ")
    stderr_line(w.run("entries", "--id", "77", code=1), "no entry has the number 77 ('feedwheel entries'")
    stderr_line(w.run("entries", "--id", "x", code=2), "--id must be an entry's number, not 'x'")
    for other in (("--feed", "1"), ("--since", "1h"), ("--search", "x"), ("--after", "1")):
        stderr_line(w.run("entries", "--id", "1", *other, code=2), "--id and %s exclude each other" % other[0])


@case(
    "read prints an entry's members and text; --json one object, --raw the stored HTML; an unknown number is "
    "an error")
def read(base):
    w = with_entries(base, *ITEMS)
    output = w.run("read", "1").stdout
    equal(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d( \((.* ago|now)\))?", "T", output).splitlines(),
          ["First", "", "  feed       Things (feed 1)", "  authors    Ann, Bob \\x1b[2J", "  published  T",
           "  stored     T", "  tags       a, b", "  link       https://e.example/1",
           "  attachment https://e.example/a.mp3 (audio/mpeg, 12 MiB, 31 min)", "",
           "Hello world <https://e.example/x>"])
    equal(w.run("read", "#1").stdout[:5], "First")
    w.sql("UPDATE entries SET published_ms = 1600000000000 WHERE id = 1", write=True) # long ago: the date alone
    output = w.run("read", "1").stdout
    holds(re.search(r"^  published  2020-09-1\d \d\d:\d\d$", output, re.M), output)
    output = w.run("read", "2").stdout
    holds(output.startswith("A toot & a link more of it") and "\n  id         5\n" in output, output)
    holds("[picture: a cat] <https://e.example/p.png>\n\n"
          "A toot & a link <https://l.example/>\n\nmore of it more" in output, output)
    equal(max(map(len, output.splitlines())), 80)
    holds(w.run("read", "4").stdout.endswith("  id         7\n"), "nothing to read")
    holds(w.run("read", "5").stdout.endswith("\nplain\ntext\n"), "plain text keeps its lines")
    holds("<img src='https://e.example/p.png'" in w.run("read", "3", "--raw").stdout, "--raw")
    one = w.json("read", "1")
    equal(
        (one["id"], one["_store"]["entry"], [a["name"] for a in one["authors"]]),
        ("https://e.example/1", 1, ["Ann", "Bob \x1b[2J"]))
    equal(one, w.json("entries", "--id", "1", "--content")["items"][0])
    holds("href='x'" in json.loads(w.run("read", "1", "--json", "--raw").stdout)["content_html"], "--raw")
    for form in ([], ["--json"]):
        stderr_line(w.run("read", "77", *form, code=1), "no entry has the number 77")
    w.sql("UPDATE entries SET extra = '{\"attachments\":[}' WHERE id = 1", write=True)
    r = w.run("read", "1", code=1)
    holds("entry 1: cannot read its stored authors, tags and attachments: " in r.stderr and "Hello world" in r.stdout,
          r)
    stderr_line(w.run("read", "First", code=2), "ENTRY must be a number that 'feedwheel entries' prints, not 'First'")


@case("on a terminal read uses PAGER, less or more, in a pipe none; a pager that exits early is no error")
def pager(base):
    w = with_entries(base, *ITEMS)
    bin = os.path.join(base, "bin")
    os.mkdir(bin)
    env = dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8")
    for name in ("PAGER", "LESS", "COLUMNS"):
        env.pop(name, None)

    def shown(*arguments, **more):
        text, code = on_terminal(w.command("read", *arguments), dict(env, **more))
        return text.replace("\r\n", "\n"), code

    def fake(name):
        with open(os.path.join(bin, name), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho \"<%s $LESS>\"\n/bin/cat\n" % name)
        os.chmod(os.path.join(bin, name), 0o755)
    text = w.run("read", "1").stdout
    times = re.compile(r"\(.*ago\)|\(now\)")
    equal(times.sub("", shown("1", PAGER="sed 's/^/P/'")[0]),
          times.sub("", re.sub("^", "P", text.rstrip("\n"), flags=re.M) + "\n"))
    for plain_one in ({"PAGER": ""}, {"PAGER": "cat"}):
        equal(times.sub("", shown("1", PATH=bin, **plain_one)[0]), times.sub("", text))
    equal(times.sub("", shown("1", "--no-pager", PATH=bin)[0]), times.sub("", text))
    output, code = shown("1", PATH=bin)
    holds(code == 1 and "cannot start a pager (set PAGER, or give --no-pager)" in output, output)
    fake("more")
    holds(shown("1", PATH=bin)[0].startswith("<more "), "more")
    fake("less")
    holds(shown("1", PATH=bin)[0].startswith("<less FRX>\nFirst\n"), "less")
    holds(shown("1", PATH=bin, LESS="-i")[0].startswith("<less -i>\n"), "LESS of the environment is kept")
    equal(shown("2", PAGER="head -c 6"), ("A toot", 0), "a pager that exits early")
    holds("cannot start a pager" in shown("1", PAGER="/nonexistent/pager")[0], "a missing pager")
    equal(shown("1", "--json", PAGER="false")[0][0], "{", "JSON has no pager")
    holds("no entry has the number 77" in shown("77", PAGER="false")[0], "an error has no pager")
    piped = subprocess.run(w.command("read", "1"), env=dict(env, PAGER="false"), capture_output=True, text=True,
                           check=True)
    equal(piped.stdout[:5], "First")
    _, code = on_terminal(w.command("read", "1"), dict(env, PAGER="cat; kill -INT 0"), columns=80)
    equal(code, 0, "^C goes to the pager")


@case("run continues until stop; status shows its workers; a store without feeds is no error")
def run_and_stop(base):
    docs = samples(base)
    with origin(base, docs) as o:
        w = Feedwheel(base)
        p = w.start("run", "--workers", "2")

        def workers():
            r = w.run("status", "--json", code=None) # not 0: the store is being created
            return {x["worker"] for x in json.loads(r.stdout)["workers"]} if r.returncode == 0 else set()
        try:
            wait_for("two workers", lambda: len(workers()) == 2)
            before = workers()
            w.run("add", o.urls[0])
            wait_for("a new feed's entries", lambda: w.one("select count(*) from entries") > 0)
            with open(w.conf, encoding="ascii") as f:
                good = f.read()
            for text, message in (
                (good + "wrokers = 1\n", "the old configuration stays"),
                (good, "configuration read again")):
                with open(w.conf, "w", encoding="ascii") as f:
                    f.write(text)
                p.send_signal(signal.SIGHUP)
                wait_for(message, lambda message=message: message in w.log())
            wait_for("new workers after SIGHUP", lambda: len(workers() - before) == len(workers()) == 2)
            equal(w.run("stop").stdout, "sent to 2 workers: finish and exit\n")
            equal(p.wait(timeout=60), 0)
            equal(w.json("status")["workers"], [])
            equal(w.run("stop").stdout, "no worker is running on this store\n")
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()


@case("the list of processes shows no login of an argument, in any form; other arguments are unchanged")
def login_in_argument(base):
    w = Feedwheel(base)
    shapes = [
        ("postgres://u:geheim@h/d", "postgres://***@h/d"), ("http://u:geheim@h:1@h/", "http://***@h/"),
        ("http://:geheim@h/", "http://***@h/"), ("http://geheim@h/feed", "http://***@h/feed"),
        ("mira:geheim@h/feed", "***@h/feed"), ("http://g@h", "http://*@h"),
        ("postgres:///d?password=geheim", "postgres://***"), ("mysql://u@h/d?ssl_PASS=geheim&a=b", "mysql://***"),
        ("mira@example.org", "mira@example.org"), ("http://h:80/a:b", "http://h:80/a:b"), ("a:@", "**@")]
    for given, shown in shapes:
        for form, want in [["--url", given], ["--url", shown]], [["--url=" + given], ["--url=" + shown]]:
            # parse waits for the document on stdin
            with subprocess.Popen(w.command("parse", *form, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=w.environment, text=True) as p:
                def line(p=p):
                    with open("/proc/%d/cmdline" % p.pid, encoding="utf-8") as f:
                        return [word for word in f.read().split("\0") if word]
                wait_for("%r as %r" % (form, want), lambda want=want: line()[6:-1] == want)
                p.communicate("<rss><channel><title>t</title></channel></rss>")
                equal(p.returncode, 0)


@case("doctor prints a line for each check; a broken one has its remedy and sets the exit code")
def doctor(base):
    w = Feedwheel(base)
    r = w.run("doctor")
    for check in ("configuration", "store", "certificates", "name servers", "open files", "memory", "clock"):
        holds(re.search(r"^(ok|note|broken) +%s " % check, r.stdout, re.M), check + ":\n" + r.stdout)
    w.run("add", "https://a.example/")
    j = w.json("doctor")
    equal(j["ok"], True)
    holds(all(set(c) >= {"check", "result", "found"} for c in j["checks"]), j)
    equal([c["result"] for c in j["checks"] if c["check"] == "store"], ["ok"])
    with open(os.path.join(base, "bad.pem"), "w", encoding="ascii") as f:
        f.write("no certificate\n")
    r = w.run("doctor", "--ca-file", os.path.join(base, "bad.pem"), code=1)
    holds(re.search(r"^broken +certificates .*\n +-> .*ca_file", r.stdout, re.M), r.stdout)
    r = w.run("doctor", "--allow-networks", "nonsense", code=1)
    holds("allow_networks" in r.stdout, r.stdout)
    r = w.run("doctor", "--deny-networks", "8.8.8.0/99", code=1)
    holds("deny_networks: '8.8.8.0/99' is not a network" in r.stdout, r.stdout)
    r = w.run("doctor", "--deny-networks", "8.8.8.0/24")
    holds(re.search(r"^ok +guard +feeds cannot connect to 8.8.8.0/24 .deny_networks.", r.stdout, re.M), r.stdout)
    found = w.run("doctor").stdout
    holds(re.search(r"^ok +engine +SQLite 3.*\n"
                    r"(note +engine .*\n +-> other programs that write must set PRAGMA .*\n)?" # up to 3.51.2
                    r"ok +durability +a stored visit is.*\n(ok|note) +disk +[0-9]+ MiB free$", found, re.M), found)
    holds("permissions" not in found, "the mode of a new store is right")
    os.chmod(w.path, 0o640)
    found = w.run("doctor").stdout
    holds(re.search(r"^note +permissions +other users can open the file .mode 0640.*\n +-> chmod 600", found, re.M),
          found)
    os.chmod(w.path, 0o600)
    holds(
        re.search(
            r"^note +durability +async_commit.*\n +-> set async_commit = no",
            w.run("doctor", "--async-commit", "yes").stdout, re.M),
        "async_commit")
    w.run("pause", "--all")
    holds(re.search(r"^note +paused .*\n +-> 'feedwheel resume --all'", w.run("doctor").stdout, re.M), "paused")


@case("doctor checks the server's certificate, access log and WAL folder where they are set", needs="server")
def doctor_server(base):
    w, (_, cert, key) = Feedwheel(base), certificate(base, ["127.0.0.1"])
    tls = ["--tls-cert", cert, "--tls-key"]
    found = w.run("doctor").stdout
    holds(not re.search("tls|access_log|wal_dir", found), "a setting without a value has no line: " + found)
    holds(
        re.search(
            r"^note +tls +tls_cert = .* is valid for [12] days\n +-> renew it", w.run("doctor", *tls, key).stdout,
            re.M),
        "it expires soon")
    old = os.path.join(base, "old.pem")
    files = {
        "index": "", "serial": "01\n",
        "cnf": "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n"
               "policy=p\n[p]\ncommonName=supplied\n"}
    for name, text in files.items():
        with open(os.path.join(base, name), "w", encoding="ascii") as f:
            f.write(text)
    over = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() - 2.5 * 86400))
    subprocess.run(
        ["openssl", "ca", "-batch", "-notext", "-config", "cnf", "-keyfile", "ca.key", "-cert", "ca.pem", "-in",
         "req.pem", "-startdate", "20200101000000Z", "-enddate", over, "-out", old],
        cwd=base, check=True, capture_output=True)
    found = w.run("doctor", "--tls-cert", old, "--tls-key", key, code=1).stdout
    holds(re.search(r"^broken +tls +tls_cert = .* expired 3 days ago\n +-> renew it", found, re.M), found)
    new = os.path.join(base, "new.pem")
    subprocess.run(
        ["openssl", "x509", "-in", cert, "-signkey", key, "-days", "90", "-out", new], check=True, capture_output=True)
    holds(
        re.search(
            r"^ok +tls +tls_cert = .* is valid for (90|89) days$",
            w.run("doctor", "--tls-cert", new, "--tls-key", key).stdout, re.M),
        "a valid certificate")
    holds(re.search(r"^broken +tls +tls_key = /no/such", w.run("doctor", *tls, "/no/such", code=1).stdout, re.M),
          "no key")
    for setting in ("access_log", "wal_dir"):
        option = "--" + setting.replace("_", "-")
        equal(
            len(
                re.findall(
                    r"^ok +%s .* can be written$" % setting, w.run("doctor", option, os.path.join(base, "x")).stdout,
                    re.M)),
            1)
        found = w.run("doctor", option, "/no/such/x", code=1).stdout
        holds(
            re.search(
                r"^broken +%s +%s = /no/such/x: No such file.*\n +-> create its folder" % (setting, setting), found,
                re.M),
            found)
    holds(not os.path.exists(os.path.join(base, "x")), "no file was created")
    wal = os.path.join(base, "wal")
    os.mkdir(wal)
    open(os.path.join(wal, "7-0.wal.damaged"), "w", encoding="utf-8").close()
    found = w.run("doctor", "--wal-dir", wal).stdout
    holds(re.search(r"^note +wal_dir .* has 1 damaged file: rows .* skipped\n +-> the server", found, re.M), found)


@case("a store's password is never printed, in any form of the URL")
def secrets(base):
    w = Feedwheel(base)
    w.run("add", "https://a.example/")
    for i, scheme in enumerate(("redis", "rediss", "postgres", "postgresql", "mysql", "mariadb", "oracle")):
        for j, rest in enumerate(("u:hush@127.0.0.1:1/x", "u:hush@127.0.0.1:x/x", ":hush@127.0.0.1:1",
                                  "u:hu%2Fsh@127.0.0.1:1/x?nonsense=1", "u:a/hush@127.0.0.1:1/x",
                                  "u:a?hush@127.0.0.1:1/x", "u:a#hush@127.0.0.1:1/x", "u:a@hush@127.0.0.1:1/x",
                                  "u:hush%@127.0.0.1:1/x", "127.0.0.1:1/x?password=hush",
                                  "127.0.0.1:1/x?password=hush&password=hush", "u:hush@/x?host=/nowhere",
                                  "u:hush@nowhere.invalid/x?connect_timeout_ms=nonsense")):
            url = "%s://%s" % (scheme, rest)
            # these open it in the same way: one of them for each URL
            others = ["copy", w.store, url], ["copy", url, w.store], ["doctor", "--store", url]
            for arguments in ["status", "--store", url], others[(i + j) % 3]:
                r = subprocess.run([w.binary, "--config", w.conf, "--log-level", "debug", *arguments],
                                   capture_output=True, text=True, timeout=60, env=w.environment, check=False)
                holds(r.returncode not in (0, -6, -11), "%s: exit %d" % (arguments, r.returncode))
                holds(not re.search("hush|hu/sh|hu%2Fsh", r.stdout + r.stderr),
                      "%s:\n%s%s" % (arguments, r.stdout, r.stderr))


# ---- the terminal --------------------------------------------------------------------------------

@case("only a terminal gets colours and progress; NO_COLOR and TERM=dumb turn colours off; lines fit the width")
def terminal(base):
    docs = samples(base)
    with origin(base, docs, "--latency", "fixed:700") as o:
        w = Feedwheel(base)
        w.run("import", "-", stdin="\n".join(o.urls[:8]) + "\n")
        env = dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8")
        del env["NO_COLOR"]
        env.pop("COLUMNS", None)
        shown, code = on_terminal(w.command("run", "--once"), env)
        equal(code, 0, shown)
        holds(re.search(r"\r[^\r]*/8 feeds[^\r]*\x1b\[K\r", shown), "no progress line: %r" % shown[:500])
        for drawn in re.findall(r"\r([^\r\n]*)\x1b\[K\r", shown):
            holds(len(re.sub(r"\x1b\[[0-9;]*m", "", drawn)) < 80, "too wide: %r" % drawn)
        holds("\x1b[" in on_terminal(w.command("list"), env)[0], "colours")
        shown, _ = on_terminal(w.command("list"), env, columns=70)
        for line in shown.splitlines():
            holds(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 70, "too wide: %r" % line)
        narrow = [
            on_terminal(w.command(*a), env, columns=40)[0].splitlines() for a in (
                ("list",), ("entries", "--limit", "5"))]
        for line in sum(narrow, []):
            bare = re.sub(r"\x1b\[[0-9;]*m", "", line)
            holds(len(bare) <= 40 or "://" in bare, "too wide: %r" % line)
        head = narrow[0][0]
        holds("VISITED" not in head and "TITLE" in head, "a narrow table leaves columns out: %r" % head)
        for change in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            holds("\x1b[3" not in on_terminal(w.command("list"), dict(env, **change))[0], change)
        holds("\x1b" not in w.run("list").stdout, "no colours in a pipe")
        holds("\x1b[" in w.run("list", "--color", "always").stdout, "--color always")
        holds("\x1b[3" not in on_terminal(w.command("list", "--color", "never"), env)[0], "never")
        for u in o.urls[:8]:
            w.run("set", u, "--due")
        r = w.run("run", "--once", "--progress")
        holds(re.search(r"feedwheel: \d+/8 feeds", r.stderr), r.stderr)


@case("text is wrapped between words at the terminal's width: help, status, list --failing, why, show, doctor, errors")
def wrapped(base):
    docs = samples(base)
    with origin(base, docs, plans=("1 404", "2 reset=start")) as o:
        w = Feedwheel(base)
        w.run("add", *o.urls[:3], "http://10.1.2.3/feed", "http://10.1.2.4/")
        w.run("run", "--once", code=1)
        w.run("pause", "5")
        w.run("pause", "--all")
        env = dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8", TZ="UTC")
        env.pop("COLUMNS", None)
        times = re.compile(r"\d[\d.]*\s+(?:s|ms|min|h|[KMG]iB)\b|now|[\d-]+T[\d:]+Z")
        for arguments in (
            ("status",),
            ("list", "--failing"),
            ("why", "4"),
            ("why", "5"),
            ("show", "4", "--visits", "1"),
            ("doctor",),
            ("show", "http://x.example/nosuch"),
            ("add", "--user-agent", "Foo", "x"),
            ("lits",),
            ("show",),
            ("remove", "404"),
            ("list", "--store", "sqlite:%s/no.db" % base),
            ("run", "--once"),
            ("help",),
            ("help", "settings"),
            *(("help", k) for k in COMMANDS)):
            whole = w.run(*arguments, code=None)
            choice = re.compile(r"\|\r?\n +") # of words, which may continue on the next line
            words_of = times.sub("", choice.sub("|", whole.stdout + whole.stderr)).split()
            for columns in (60, 80):
                shown, _ = on_terminal(w.command(*arguments), env, columns=columns)
                bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
                # narrow tables leave columns out
                if arguments[0] != "show" and arguments != ("list", "--failing"):
                    got = times.sub("", choice.sub("|", bare)).split()
                    equal([x for x in got if x != "\\"], [x for x in words_of if x != "\\"],
                          "%s at %d: words" % (arguments, columns))
                for line in bare.splitlines():
                    long = max(map(len, line.split()), default=0)
                    holds(len(line) <= columns or (long > columns / 2 and re.search("://|/fw-", line)),
                          "%s at %d: %r" % (arguments, columns, line))
        shown, _ = on_terminal(w.command("list", "--failing"), env, columns=60)
        reason = next(f["error"] for f in w.json("list", "--failing") if f["id"] == 4)
        holds("allow_networks" in reason and len(reason) > 44, "it is long enough to be wrapped: " + reason)
        holds(reason in re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", shown)), shown)
        equal(w.run("status").stdout.count("\n"), 6, "in a pipe nothing is wrapped")


@case("a terminal without UTF-8 gets ASCII, with ? for other characters; a pipe gets UTF-8")
def ascii_terminal(base):
    w = Feedwheel(base)
    title = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u00fc\u00df \u4e2d\u6587 ok"
    w.run("add", "--title", title, "https://a.example/")
    env = dict(w.environment, TERM="xterm", LC_ALL="C")
    for arguments in (("list",), ("show", "1"), ("show", "\u0645\u0631\u062d\u0628\u0627x"), ("list", "--json")):
        shown, _ = on_terminal(w.command(*arguments), env)
        holds(shown.isascii(), "%s: %r" % (arguments, shown))
        holds("????? ??????? ?? ?? ok" in shown or arguments[-1] not in ("list", "1"), shown)
    equal(json.loads(on_terminal(w.command("list", "--json"), env)[0])[0]["title"], title)
    holds(title in w.run("list").stdout, "in a pipe")
    holds(title in on_terminal(w.command("show", "1"), dict(env, LC_ALL="C.UTF-8"))[0], "UTF-8")


@case("^C at a terminal finishes and stores what is in flight, though the terminal signals the workers too")
def interrupt(base):
    with origin(base, samples(base), "--feeds", "60", "--latency", "fixed:1200") as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        env = dict(w.environment, TERM="xterm", LC_ALL="C.UTF-8")
        shown, code = on_terminal(
            w.command("run", "--once", "--concurrency", "4", "--host-concurrency", "9"),
            env, interrupt_at=r"4 in flight")
        equal(code, 0, shown)
        holds("exiting at once" not in shown, shown)
        done = w.one("SELECT count(*) FROM visits WHERE kind = 1")
        holds(4 <= done < 60, "%d of 60 visits" % done)
        equal(w.json("status")["in_flight"], 0, "in flight")
        holds("left     %d feed" % (60 - done) in shown, shown)


@case("a closed pipe is no error; a full disk is one")
def output_ends(base):
    w = Feedwheel(base)
    w.run("import", "-", stdin="".join("https://h%d.example/\n" % i for i in range(5000)))
    for arguments in (("list",), ("list", "--json"), ("export",)):
        p = subprocess.Popen(w.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=w.environment)
        p.stdout.read(100)
        p.stdout.close()
        equal((p.wait(timeout=60), p.stderr.read()), (0, b""), " ".join(arguments))
        p.stderr.close()
    with open("/dev/full", "wb") as full:
        r = subprocess.run(w.command("list"), stdout=full, stderr=subprocess.PIPE,
                           env=w.environment, text=True, check=False)
    equal((r.returncode, r.stderr), (1, "feedwheel: standard output: No space left on device\n"))


run()
