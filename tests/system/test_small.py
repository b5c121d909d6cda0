#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Builds without some stores or without the HTTP server. The cases hold in every build."""
import os
import re
import subprocess

from harness import BUILD, FEEDWHEEL, PARTS, Skip, Feedwheel, absent, case, equal, holds, run

LIBRARY = {"postgres": "libpq", "mysql": "libmariadb", "redis": "hiredis", "server": "libmicrohttpd",
           "seccomp": "libseccomp", "amqp": "librabbitmq"}
SCHEMES = {"postgres": ["postgres", "postgresql"], "mysql": ["mysql", "mariadb"],
           "redis": ["redis", "rediss", "redis+unix"]}


def linked(path):
    """The libraries that a binary is linked with, without "lib"."""
    output = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[lib([^\]]*)\.so", output)


@case("version lists every store and the server, built in or not; only the libraries of built-in parts are linked")
def versions(base):
    output = Feedwheel(base).run("version").stdout
    stores = re.search(r"^stores: (.*)$", output, re.M)[1].split()
    equal(stores[:2], ["sqlite", "memory"], output)
    equal(sorted(stores[2:] + [e for e in absent() if e not in PARTS]), sorted(SCHEMES), output)
    holds(re.search(r"^server: (libmicrohttpd [0-9.]+|not built in)$", output, re.M), output)
    holds(re.search(r"^seccomp: (libseccomp [0-9.]+|not built in)$", output, re.M), output)
    holds(re.search(r"^amqp: (librabbitmq [0-9.]+|not built in)$", output, re.M), output)
    for path in (FEEDWHEEL, os.path.join(BUILD, "src", "libfeedwheel.so")):
        there = linked(path)
        holds("sqlite3" in there, there)
        for name, library in LIBRARY.items():
            # libfeedwheel.so has no server in any build
            wanted = name not in absent() and not (name == "server" and path != FEEDWHEEL)
            equal(library.removeprefix("lib") in there, wanted, "%s in %s" % (library, path))


@case("a store that is not built in is refused with the remedy; no other store is")
def stores(base):
    w = Feedwheel(base)
    for name, schemes in SCHEMES.items():
        remedy = "this build has no %s driver (to have it, install %s and build with -D%s=enabled)" % (
            name, LIBRARY[name], name)
        for scheme in schemes:
            url = scheme + "://u:hush@127.0.0.1:1/x"
            r = w.run("status", "--store", url, code=4 if name in absent() else None)
            equal(remedy in r.stderr, name in absent(), r.stderr)
            if name in absent():
                equal(r.stderr, 'feedwheel: store "%s://u:***@127.0.0.1:1/x": %s\n' % (scheme, remedy))
                found = w.run("doctor", "--store", url, code=1).stdout
                holds(re.search(r"^broken +store .*: this build has no %s driver" % name, found, re.M), found)


@case("without the server, serve and run with listen exit 4 with the remedy; run --once works; help lists serve")
def no_server(base):
    if "server" not in absent():
        raise Skip("this build has the server")
    w = Feedwheel(base)
    remedy = "this build has no HTTP server (to have it, install libmicrohttpd and build with -Dserver=enabled)\n"
    equal(w.run("serve", code=4).stderr, "feedwheel: serve: " + remedy)
    listen = ["--listen", "127.0.0.1:0"]
    for command in (["serve", *listen], ["run", *listen]):
        r = w.run(*command, code=4)
        holds(r.stderr.endswith("feedwheel: listen = 127.0.0.1:0: " + remedy), r.stderr)
    w.run("run", "--once", *listen)
    found = w.run("doctor", *listen, code=1).stdout
    pattern = r"^broken +listen +listen = 127.0.0.1:0: this build has no HTTP server\n +-> .*-Dserver=enabled$"
    holds(re.search(pattern, found, re.M), found)
    holds(re.search(r"^  serve +\S", w.run("help").stdout, re.M), "serve in help")
    with open(w.conf, "a", encoding="ascii") as f:
        f.write("listen = 127.0.0.1:0\n")
    holds(w.run("run", code=4).stderr.endswith(remedy), "the setting")


run()
