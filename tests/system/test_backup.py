#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The backups of docs/scaling.md: its commands take one while workers run and restore it, then
workers go on with it. Accounts (growing.py) are exact: entries stored since the backup are fetched
again."""
import os
import shutil
import subprocess

from growing import CONF, FEEDS, Address, check_entries, requests_of_all, drained, growing, visit_all
from harness import Feedwheel, each_engine, holds, run, wait_for
from servers import PrivateServer


def tool(server, *argv, **options):
    """Run a program of the server's package on this server."""
    stdout = options.pop("stdout", subprocess.DEVNULL)
    return subprocess.run(argv, check=True, cwd=server.home, stdout=stdout, **options)


def of_sqlite(base, w, _):
    subprocess.run(["sqlite3", w.path, "VACUUM INTO 'backup.db'"], check=True, cwd=base)
    return lambda: "sqlite:" + os.path.join(base, "backup.db")


def of_postgres(base, _, s):
    at, dump = ["-h", s.socket, "-U", "feedwheel"], os.path.join(base, "feeds.dump")
    with open(dump, "wb") as f:
        tool(s, s.postgres("pg_dump"), *at, "-Fc", "postgres", stdout=f)

    def restore():
        tool(s, s.postgres("createdb"), *at, "restored")
        tool(s, s.postgres("pg_restore"), *at, "-d", "restored", dump)
        return s.url().replace("/postgres?", "/restored?")
    return restore


def of_mysql(base, _, s):
    at, dump = ["--no-defaults", "-u", "root", "-S", s.socket], os.path.join(base, "feeds.sql")
    with open(dump, "wb") as f:
        tool(s, "mariadb-dump", *at, "--single-transaction", "t", stdout=f)

    def restore(): # under another name
        tool(s, "mariadb", *at, "-e", "DROP DATABASE t; CREATE DATABASE t2")
        with open(dump, "rb") as f:
            tool(s, "mariadb", *at, "t2", stdin=f)
        return s.url("t2")
    return restore


def of_redis(base, _, s):
    s.redis("CONFIG", "SET", "auto-aof-rewrite-percentage", "0") # no rewrite during the copy
    wait_for("a rewrite to end", lambda: "aof_rewrite_in_progress:0" in s.redis("INFO", "persistence"))
    copy = os.path.join(base, "copy", "data")
    os.makedirs(copy)
    shutil.copytree(os.path.join(s.data, "appendonlydir"), os.path.join(copy, "appendonlydir"))

    def restore():
        s.stop()
        shutil.rmtree(s.data)
        os.rename(copy, s.data)
        s.start()
        return s.url()
    return restore


@each_engine(
    "a backup taken while workers run is restored, and no entry that feeds still list is lost or stored twice",
    also=["sqlite"])
def backup(base, engine): # docs/scaling.md, Backups
    on = Address("sqlite:" + os.path.join(base, "store.db")) if engine == "sqlite" else PrivateServer(engine, base)
    with growing(base, engine, on=on, checked=False) as (o, w, s):
        p = w.start("run")
        wait_for("work", lambda: requests_of_all(o) > 2 * FEEDS)
        restore = globals()["of_" + engine](base, w, s)
        n = requests_of_all(o)
        wait_for("more work", lambda: requests_of_all(o) > n + FEEDS)
        drained(w, p)
        all_n = w.json("status")["entries"]
        again = Feedwheel(base, CONF, "again", store=restore())
        n = again.json("status")["entries"]
        holds(0 < n < all_n, "the backup has fewer entries than the store: %d of %d" % (n, all_n))
        output = again.run("doctor", code=None).stdout
        holds("broken  store" not in output, output)
        visit_all(o, again)
        check_entries(o, again)


run()
