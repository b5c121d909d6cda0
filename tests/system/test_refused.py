#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Stores that refuse a command: a wrong password, an unknown database or user, a user who may only
read, no TLS, no server. Each command prints at once one line with the store, the reason and the
remedy, and no password."""
import os
import subprocess
import time

from harness import Feedwheel, each_engine, equal, holds, run, wait_for, workers_of
from servers import PrivateServer

HOST = "127.9.%d.%d" % (os.getpid() >> 8 & 255, os.getpid() & 255) # on the loopback, of this test alone
OPTIONS = {
    "postgres": ["-h", HOST, "-c", "password_encryption=scram-sha-256"],
    "mysql": ["--skip-networking=0", "--bind-address=" + HOST, "--port=3306"],
    "redis": ["--port", "6379", "--bind", HOST],
}


def as_owner(s, statement):
    """Run a statement as the owner of the server."""
    if s.engine == "redis":
        return s.redis(*statement.split())
    client = {"postgres": ["psql", "-q", "-h", s.socket, "-U", "feedwheel", "-d", "postgres", "-c"],
              "mysql": ["mariadb", "--no-defaults", "-S", s.socket, "-u", "root", "-e"]}[s.engine]
    return subprocess.run([*client, statement], check=True, capture_output=True, text=True).stdout


def create_users(s):
    """Create the users `owner`, and `reader` who may only read; their password is r1ght."""
    if s.engine == "postgres":
        as_owner(
            s,
            "CREATE USER owner PASSWORD 'r1ght'; CREATE USER reader PASSWORD 'r1ght';"
            " CREATE SCHEMA t AUTHORIZATION owner; GRANT USAGE ON SCHEMA t TO reader")
        with open(s.data + "/pg_hba.conf", "w", encoding="ascii") as f:
            f.write("local all all trust\nhost all all 127.0.0.0/8 scram-sha-256\n")
        as_owner(s, "SELECT pg_reload_conf()")
        wait_for(
            "the new rules",
            lambda: subprocess.run(
                ["psql", "-w", "-h", HOST, "-U", "owner", "-c", "", "postgres"], check=False,
                stderr=subprocess.DEVNULL).returncode)
    elif s.engine == "mysql":
        as_owner(
            s,
            "CREATE DATABASE t; CREATE USER owner@'%' IDENTIFIED BY 'r1ght';"
            " CREATE USER reader@'%' IDENTIFIED BY 'r1ght';"
            " GRANT ALL ON t.* TO owner@'%'; GRANT SELECT ON t.* TO reader@'%'")
    else:
        as_owner(s, "ACL SETUSER owner on >r1ght ~* &* +@all")
        as_owner(s, "ACL SETUSER reader on >r1ght ~* +@read +@connection")
        as_owner(s, "ACL SETUSER default off")


URL = {"postgres": "postgres://%s@%s/postgres?schema=t%s", "mysql": "mysql://%s@%s/t%s",
       "redis": "redis://%s@%s/0?prefix=t%s"}
# user, host, parameters of the URL, exit code, part of the error
WRONG = {
    "postgres": [
        ("owner:wr0ng", HOST, "", 4, "password"),
        ("owner", HOST, "", 4, "add a password to the URL"),
        ("nobody:r1ght", HOST, "", 4, "user"),
        ("reader:r1ght", HOST, "", 3, "grant the user"),
        ("owner:r1ght", HOST, "&sslmode=require", 4, "another sslmode"),
        ("owner:r1ght", HOST, "&sslmod=require", 4, "libpq's"),
        ("owner:r1ght", HOST + ":5433", "", 3, "check the server and the address")],
    "mysql": [
        ("owner:wr0ng", HOST, "", 4, "check user and password"),
        ("owner", HOST, "", 4, "check user and password"),
        ("nobody:r1ght", HOST, "", 4, "check user and password"),
        ("owner:r1ght", HOST, "?sslmode=require", 4, "known are socket"),
        ("owner:r1ght", HOST + ":3307", "", 3, "check host, port")],
    "redis": [
        ("owner:wr0ng", HOST, "", 4, "refuses this user"),
        ("owner", HOST, "", 4, "password"),
        ("nobody:r1ght", HOST, "", 4, "refuses this user"),
        ("reader:r1ght", HOST, "", 3, "its ACL needs"),
        ("owner:r1ght", HOST, "&tls=yes", 4, "known are db"),
        ("owner:r1ght", HOST + ":6380", "", 3, "is the server running")],
}


@each_engine("each refused way to a store is reported at once: the store, the reason, the remedy, and no password")
def refusals(base, engine):
    with PrivateServer(engine, base, options=OPTIONS[engine]) as s:
        create_users(s)
        url = URL[engine]
        Feedwheel(base, store=url % ("owner:r1ght", HOST, "")).run("add", "https://a.example/")
        for user, host, parameters, code, part in WRONG[engine]:
            start = time.monotonic()
            error = Feedwheel(base, store=url % (user, host, parameters)).run("status", code=code).stderr
            print("# " + error.strip())
            holds(part in error, "%s: %s" % (part, error))
            holds(host in error or "store URL" in error, "the store is not named: " + error)
            holds("r1ght" not in error and "wr0ng" not in error, "the password is printed: " + error)
            equal(error.count("\n"), 1, error)
            holds(time.monotonic() - start < 30, "it took %.1f s" % (time.monotonic() - start))


def command_line(pid):
    with open("/proc/%d/cmdline" % pid, encoding="utf-8") as f:
        return f.read()


@each_engine("no command line of run or its workers shows the store's password; the URL may come from a file")
def passwords(base, engine):
    with PrivateServer(engine, base, options=OPTIONS[engine]) as s:
        create_users(s)
        url = URL[engine] % ("owner:r1ght", HOST, "")
        w = Feedwheel(base, store=url)
        w.run("add", "https://a.example/")
        p = w.start("run", "--quiet", "--workers", "2", "--proxy", "http://mira:r1ght@127.0.0.1:1")
        wait_for("its workers", lambda: len(workers_of(p)) == 2)
        for pid in [p.pid, *workers_of(p)]:
            holds("r1ght" not in command_line(pid), "the password is in the command line: %r" % command_line(pid))
        holds("***@" + HOST in command_line(p.pid), "the store is in the command line: %r" % command_line(p.pid))
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
              "no warning: the configuration has no password")
        os.chmod(secret, 0o644)
        error = from_file.run("status", code=4).stderr
        holds("store_file: %s: other users may read it" % secret in error and "chmod 600" in error, error)
        holds("r1ght" not in error, error)
        if engine != "postgres":
            return
        w = Feedwheel(base, store=URL[engine] % ("owner", HOST, "")) # libpq reads the password from a file
        w.environment["PGPASSFILE"] = secret
        w.run("status", code=4)
        with open(secret, "w", encoding="ascii") as f:
            f.write("%s:*:*:owner:r1ght\n" % HOST)
        os.chmod(secret, 0o600)
        equal(w.json("status")["feeds"], 1)


@each_engine(
    "a user who may only read can read where the engine permits it; a refused change names the missing right",
    leave_out=("redis",))
def reader(base, engine): # not Redis: there each read runs a script
    with PrivateServer(engine, base, options=OPTIONS[engine]) as s:
        create_users(s)
        Feedwheel(base, store=URL[engine] % ("owner:r1ght", HOST, "")).run("add", "https://a.example/")
        if engine == "postgres":
            as_owner(s, "GRANT SELECT ON ALL TABLES IN SCHEMA t TO reader")
        w = Feedwheel(base, store=URL[engine] % ("reader:r1ght", HOST, ""))
        equal([f["url"] for f in w.json("list")], ["https://a.example/"])
        equal(w.json("status")["feeds"], 1)
        error = w.run("add", "https://b.example/", code=3).stderr
        print("# " + error.strip())
        holds("grant" in error.lower(), error)


REVOKE = {"postgres": "REVOKE ALL ON ALL TABLES IN SCHEMA t FROM owner",
          "redis": "--no-auth-warning --user owner --pass r1ght ACL SETUSER owner -@all +@connection"}
PASSWORD = {"postgres": "ALTER USER owner PASSWORD '%s'", "mysql": "ALTER USER owner@'%%' IDENTIFIED BY '%s'"}


def run_of_owner(base, s):
    """A run that has its lease."""
    create_users(s)
    w = Feedwheel(base, store=URL[s.engine] % ("owner:r1ght", HOST, ""))
    w.run("add", "https://a.example/")
    p = w.start("run", "--workers", "1", "--order-commands", "none")
    wait_for("its lease", lambda: w.json("status")["workers"])
    return w, p


@each_engine("a privilege that is revoked ends a run: one warning, the right that is missing, exit 3",
             leave_out=("mysql",))
def revoked(base, engine): # not MariaDB: there a connection keeps the rights that it began with
    with PrivateServer(engine, base, options=OPTIONS[engine]) as s:
        w, p = run_of_owner(base, s)
        as_owner(s, REVOKE[engine])
        equal(p.wait(60), 3, w.last_log())
        print("# " + w.last_log().strip().splitlines()[-1])
        equal(w.log().count("visits: the store is unusable"), 1, w.log())
        holds("its ACL needs" in w.last_log() or "grant the user" in w.last_log(), w.last_log())


@each_engine("a password that is changed does not end a run: it goes on when the old one is right again",
             leave_out=("redis",))
def password_changed(base, engine): # not Redis: a restart loses its users here
    with PrivateServer(engine, base, options=OPTIONS[engine]) as s:
        w, p = run_of_owner(base, s)
        as_owner(s, PASSWORD[engine] % "other")
        s.stop()
        s.start()
        wait_for("the refusal", lambda: "check user and password" in w.log())
        equal(p.poll(), None, w.last_log())
        as_owner(s, PASSWORD[engine] % "r1ght")
        wait_for("the store", lambda: "the store answers again" in w.log())
        p.terminate()
        equal(p.wait(60), 0)


run()
