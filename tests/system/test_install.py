#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""`make install`: the installed files, and a program that uses the installed library."""
import os
import re
import shutil
import subprocess

from harness import BUILD, FEEDWHEEL, ROOT, case, equal, holds, run, sanitized

PROGRAM = r"""
#include <feedwheel.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	const char *text = "<rss version='2.0'><channel><item><title>hi</title></item></channel></rss>";
	struct fw_document *doc;
	struct fw_err err;

	if (fw_parse(text, strlen(text), NULL, &doc, &err)) {
		puts(err.text);
		return 1;
	}
	for (const struct fw_entry *e = doc->entries; e; e = e->next)
		printf("%.*s %s\n", (int)e->title.len, e->title.p, fw_version());
	fw_document_free(doc);
	return 0;
}
"""


def command(*words, env=None):
    r = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, **(env or {})), check=False)
    equal(r.returncode, 0, "%s: %s" % (" ".join(words)[:200], r.stderr[-2000:]))
    return r.stdout


@case("the version names the commit, from a repository or an archive, unless the tree is a release")
def version(base):
    stated = command(FEEDWHEEL, "--version").split()[1]
    holds(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+(\+g[0-9a-f]{8}|\+dev)?", stated), stated)
    os.mkdir(base + "/tools")
    shutil.copy(os.path.join(ROOT, "tools", "version.sh"), base + "/tools")
    for news, commit, want in (
        ("## Unreleased\n\n## 0.1.0 (2026-11-26)\n", "$" + "Format:%H$", "0.1.0+dev"),
        ("## Unreleased\n", "0123456789" * 4, "0.1.0+g01234567"),
        ("## 0.2.0 (2027-01-01)\n", "0123456789" * 4, "0.1.0")):
        for name, text in (("NEWS.md", "# News\n\n" + news), ("tools/commit", "# a comment\n" + commit + "\n")):
            with open(os.path.join(base, name), "w", encoding="ascii") as f:
                f.write(text)
        equal(command("sh", base + "/tools/version.sh", "0.1.0"), want + "\n")
    if os.path.exists(os.path.join(ROOT, ".git")) and shutil.which("git"):
        archive = command("sh", "-c", "git -C '%s' archive HEAD tools/commit | tar -xO" % ROOT)
        holds(re.search(r"^[0-9a-f]{40}$", archive, re.M), archive)


@case("install: files are in their places; the unit names the binary; programs link shared and static")
def install(base):
    command("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", base)
    paths = [os.path.join(folder, f) for folder, _, names in os.walk(base) for f in names]
    files = {os.path.relpath(p, base): p for p in paths}
    for end in (
        "bin/feedwheel", "include/feedwheel.h", "include/feedwheel/document.h", "include/feedwheel/engine.h",
        "include/feedwheel/deliver.h", "include/feedwheel/ingest.h", "include/feedwheel/store.h",
        "include/feedwheel/types.h", "libfeedwheel.a", "libfeedwheel.so", "pkgconfig/feedwheel.pc", "man1/feedwheel.1",
        "man3/libfeedwheel.3", "man5/feedwheel.conf.5", "completions/feedwheel", "site-functions/_feedwheel",
        "vendor_completions.d/feedwheel.fish", "systemd/system/feedwheel.service", "sysusers.d/feedwheel.conf",
        "examples/feedwheel.conf"):
        equal(len([f for f in files if f.endswith(end)]), 1, end)
    binary = next(f for f in files if f.endswith("bin/feedwheel"))
    with open(next(p for f, p in files.items() if f.endswith(".service")), encoding="ascii") as f:
        holds("ExecStart=/%s run\n" % binary in f.read(), "the unit's ExecStart")
    shared, static = (next(p for f, p in files.items() if f.endswith(e)) for e in ("libfeedwheel.so", "libfeedwheel.a"))
    visible = re.findall(r"^\w* *[TDBR] (\w+)$", command("nm", "-D", "--defined-only", shared), re.M)
    holds(len(visible) > 40 and all(v.startswith("fw_") for v in visible), visible)
    inside = re.findall(r"^\w* *[TDBR] (\w+)$", command("nm", "--defined-only", static), re.M)
    equal(sorted(inside), sorted(visible), "both libraries have the same symbols")
    if sanitized():
        return # a plain program cannot load a sanitized library
    source, program = os.path.join(base, "p.c"), os.path.join(base, "p")
    with open(source, "w", encoding="ascii") as f:
        f.write(PROGRAM)
    env = {"PKG_CONFIG_PATH": os.path.dirname(next(p for f, p in files.items() if f.endswith("feedwheel.pc"))),
           "LD_LIBRARY_PATH": os.path.dirname(shared)}
    prefix = os.path.join(base, os.path.dirname(os.path.dirname(binary)))
    pc = ("pkg-config", "--define-variable=prefix=" + prefix)
    flags = command(*pc, "--cflags", "--libs", "feedwheel", env=env).split()
    command("cc", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
    output = command(program, env=env)
    holds(re.match(r"hi \d+\.\d+", output), output)
    # not --static: that needs the static libraries of libcurl too
    needed = [w.split()[0] for w in command(*pc, "--print-requires-private", "feedwheel", env=env).splitlines()]
    libraries = command("pkg-config", "--libs", *needed).split()
    command("cc", source, "-I", os.path.join(prefix, "include"), static, "-o", program, *libraries, "-lm", "-pthread")
    equal(command(program), output)
    # the installed manual describes the installed library
    manual = next(p for f, p in files.items() if f.endswith("man3/libfeedwheel.3"))
    command("python3", os.path.join(ROOT, "tests", "unit", "parse", "manual_check.py"),
            manual, os.path.join(prefix, "include"), shared, "cc")


@case("the sample configuration has every setting with its default; it is valid, also with all of them uncommented")
def sample(base):
    path = os.path.join(base, "feedwheel.conf")
    with open(os.path.join(BUILD, "contrib", "feedwheel.conf"), encoding="ascii") as f:
        text = f.read()
    equal(text, command(FEEDWHEEL, "help", "--sample-config"))
    defaults = dict(re.findall(r"^(\w+) = (.*)$", command(FEEDWHEEL, "help", "settings"), re.M))
    lines = re.findall(r"^(# e\.g\.\n)?#(\w+) = (.*)$", text, re.M)
    equal([l for l in text.splitlines() if l and not re.match(r"#( |$|\w+ = )", l)],
          [], "lines that are neither comment nor setting")
    equal([l for l in text.splitlines() if len(l) > 101], [], "long lines")
    equal([name for _, name, _ in lines], list(defaults), "each setting once, in order")
    for example, name, value in lines:
        holds(value, name + " has neither a default nor an example")
        equal(bool(example), not defaults[name], "an example: " + name)
        if not example:
            equal(value, defaults[name], "the default of " + name)
    url = os.path.join(base, "store") # the value of store_file must exist
    with open(os.open(url, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write("sqlite:%s/of_file.db\n" % base)
    text = text.replace("/etc/feedwheel.store", url)
    for what, settings in (("as it is", text), ("uncommented", re.sub(r"^#(?=\w+ = )", "", text, flags=re.M))):
        with open(path, "w", encoding="ascii") as f:
            f.write(settings)
        command(FEEDWHEEL, "--config", path, "--store", "sqlite:%s/%s.db" % (base, what), "add",
                "https://example.org/feed.xml", env={"HOME": base})
    command(FEEDWHEEL, "--config", path, "list",
            env={"HOME": base, "FEEDWHEEL_STORE": "sqlite:%s/uncommented.db" % base})


run()
