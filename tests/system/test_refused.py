#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Commands at the wrong http_server of a server: another password, no such database or user, one
who may only read, no TLS, nobody there. Each says at once in one line which store, what is wrong
and what helps, and shows no password."""
import os
import subprocess
import time

from harness import Feedwheel, each_engine, equal, holds, run, wait_for, workers_of
from servers import Private

HOST = "127.9.%d.%d" % (os.getpid() >> 8 & 255, os.getpid() & 255) # of the loopback, and nobody else's
OPTIONS = {
    "postgres": ["-h", HOST, "-c", "password_encryption=scram-sha-256"],
    "mysql": ["--skip-networking=0", "--bind-address=" + HOST, "--port=3306"],
    "redis": ["--port", "6379", "--bind", HOST],
}


def tell(s, words):
    """Something told to the server by its owner."""
    if s.engine == "redis":
        return s.redis(*words.split())
    client = {"postgres": ["psql", "-q", "-h", s.socket, "-U", "feedwheel", "-d", "postgres", "-c"],
              "mysql": ["mariadb", "--no-defaults", "-S", s.socket, "-u", "root", "-e"]}[s.engine]
    return subprocess.run([*client, words], check=True, capture_output=True, text=True).stdout


def people(s):
    """Users `owner`, and `reader` who may look only; their password is r1ght."""
    if s.engine == "postgres":
        tell(
            s,
            "CREATE USER owner PASSWORD 'r1ght'; CREATE USER reader PASSWORD 'r1ght'; CREATE SCHEMA t AUTHORIZATION "
            "owner;"
            " GRANT USAGE ON SCHEMA t TO reader")
        with open(s.data + "/pg_hba.conf", "w", encoding="ascii") as f:
            f.write("local all all trust\nhost all all 127.0.0.0/8 scram-sha-256\n")
        tell(s, "SELECT pg_reload_conf()")
        wait_for("the new rules", lambda: subprocess.run(
                     ["psql", "-w", "-h", HOST, "-U", "owner", "-c", "", "postgres"],
                     check=False, stderr=subprocess.DEVNULL).returncode)
    elif s.engine == "mysql":
        tell(
            s,
            "CREATE DATABASE t; CREATE USER owner@'%' IDENTIFIED BY 'r1ght'; CREATE USER reader@'%' IDENTIFIED BY "
            "'r1ght';"
            " GRANT ALL ON t.* TO owner@'%'; GRANT SELECT ON t.* TO reader@'%'")
    else:
        tell(s, "ACL SETUSER owner on >r1ght ~* &* +@all")
        tell(s, "ACL SETUSER reader on >r1ght ~* +@read +@connection")
        tell(s, "ACL SETUSER default off")


URL = {"postgres": "postgres://%s@%s/postgres?schema=t%s",
    "mysql": "mysql://%s@%s/t%s", "redis": "redis://%s@%s/0?prefix=t%s"}
# who, where, more of the URL, exit, words
WRONG = {
    "postgres": [("owner:wr0ng", HOST, "", 4, "password"), ("owner", HOST, "", 4, "add a password to the URL"),
                 ("nobody:r1ght", HOST, "", 4, "user"), ("reader:r1ght", HOST, "", 4, "grant the user"),
                 ("owner:r1ght", HOST, "&sslmode=require", 4, "another sslmode"), ("owner:r1ght", HOST,
                         "&sslmod=require", 4, "libpq's"),
                 ("owner:r1ght", HOST + ":5433", "", 3, "check the server and the address")],
    "mysql": [("owner:wr0ng", HOST, "", 4, "check user and password"), ("owner", HOST, "", 4,
            "check user and password"),
              ("nobody:r1ght", HOST, "", 4, "check user and password"), ("owner:r1ght", HOST, "?sslmode=require", 4,
                      "known are socket"),
              ("owner:r1ght", HOST + ":3307", "", 3, "check host, port")],
    "redis": [("owner:wr0ng", HOST, "", 4, "refuses this user"), ("owner", HOST, "", 4, "password"),
              ("nobody:r1ght", HOST, "", 4, "refuses this user"), ("reader:r1ght", HOST, "", 4, "its ACL needs"),
              ("owner:r1ght", HOST, "&tls=yes", 4, "known are db"), ("owner:r1ght", HOST + ":6380", "", 3,
                                                                     "is the server running")],
}


@each_engine("each wrong way to a store is told at once: the store, the reason, the remedy, and no password")
def doors(base, engine):
    with Private(engine, base, options=OPTIONS[engine]) as s:
        people(s)
        url = URL[engine]
        Feedwheel(base, store=url % ("owner:r1ght", HOST, "")).run("add", "https://a.example/")
        for who, where, more, code, words in WRONG[engine]:
            start = time.monotonic()
            said = Feedwheel(base, store=url % (who, where, more)).run("status", code=code).stderr
            print("# " + said.strip())
            holds(words in said, "%s: %s" % (words, said))
            holds(where in said or "store URL" in said, "which store: " + said)
            holds("r1ght" not in said and "wr0ng" not in said, "a password: " + said)
            equal(said.count("\n"), 1, said)
            holds(time.monotonic() - start < 30, "it took %.1f s" % (time.monotonic() - start))


def line_of(pid):
    with open("/proc/%d/cmdline" % pid, encoding="utf-8") as f:
        return f.read()


@each_engine("a store's password is in no command line, of the workers neither, and may come from a file of its own")
def passwords(base, engine):
    with Private(engine, base, options=OPTIONS[engine]) as s:
        people(s)
        url = URL[engine] % ("owner:r1ght", HOST, "")
        w = Feedwheel(base, store=url)
        w.run("add", "https://a.example/")
        p = w.start("run", "--quiet", "--workers", "2", "--proxy", "http://mira:r1ght@127.0.0.1:1")
        wait_for("its workers", lambda: len(workers_of(p)) == 2)
        for pid in [p.pid, *workers_of(p)]:
            holds("r1ght" not in line_of(pid), "of everybody to see: %r" % line_of(pid))
        holds("***@" + HOST in line_of(p.pid), "what it works on: %r" % line_of(p.pid))
        p.terminate()
        equal(p.wait(60), 0)
        secret = os.path.join(base, "store-url")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(url + "\n")
        from_file = Feedwheel(base, "store_file = %s\n" % secret, name="from-file")
        from_file.command = lambda *a: [from_file.binary, "--config", from_file.conf, *a]
        equal(from_file.json("status")["feeds"], 1)
        os.chmod(from_file.conf, 0o644)
        holds("can read it" not in from_file.run("doctor", code=None).stdout,
              "others may read the configuration, which holds no password")
        os.chmod(secret, 0o644)
        said = from_file.run("status", code=4).stderr
        holds("store_file: %s: other users may read it" %
              secret in said and "chmod 600" in said and "r1ght" not in said, said)
        if engine != "postgres":
            return
        w = Feedwheel(base, store=URL[engine] % ("owner", HOST, "")) # libpq's own way
        w.environment["PGPASSFILE"] = secret
        w.run("status", code=4)
        with open(secret, "w", encoding="ascii") as f:
            f.write("%s:*:*:owner:r1ght\n" % HOST)
        os.chmod(secret, 0o600)
        equal(w.json("status")["feeds"], 1)


@each_engine("who may only read: may look where the engine lets him, and is told what a change needs",
             leave_out=("redis",))
def reader(base, engine): # Redis: there every look is a script
    with Private(engine, base, options=OPTIONS[engine]) as s:
        people(s)
        Feedwheel(base, store=URL[engine] % ("owner:r1ght", HOST, "")).run("add", "https://a.example/")
        if engine == "postgres":
            tell(s, "GRANT SELECT ON ALL TABLES IN SCHEMA t TO reader")
        w = Feedwheel(base, store=URL[engine] % ("reader:r1ght", HOST, ""))
        equal([f["url"] for f in w.json("list")], ["https://a.example/"])
        equal(w.json("status")["feeds"], 1)
        said = w.run("add", "https://b.example/", code=4).stderr
        print("# " + said.strip())
        holds("grant" in said.lower(), said)


run()
