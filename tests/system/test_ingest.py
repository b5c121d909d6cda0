#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What the front http_server promises: every row that it accepted is stored, once, whatever is
killed, away or full. Counted in the database by its own client. FW_INGEST_KILLS=200: so many rounds
of kill -9; FW_LONG=1: outages of half a minute."""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess

from http_server import HttpServer, http_server
from growing import LONG
from harness import ROOT, Skip, case, each_engine, equal, holds, let_pass, run, server, wait_for, workers_of
from pushing import DURABLE, EVENT, TWIRP, Load, Tables, items

KILLS = int(os.environ.get("FW_INGEST_KILLS", "4"))
STOPS = KILLS if "FW_INGEST_KILLS" in os.environ else 0
AWAY_S = 30 if LONG else 0
ENGINES = {"postgres", "mysql", "redis"}


def mostly(*engines):
    """What to leave out when there is little time: each promise is kept by the same code of ours
    before any database."""
    return () if LONG else ENGINES - set(engines)


@contextlib.contextmanager
def database(engine, base):
    """Its server and URL; for SQLite, which has none, None twice."""
    if engine == "sqlite":
        yield None, None
        return
    with server(engine, base) as s:
        yield s, s.url()


def more(load, n=100, seconds=60):
    """Wait until so many more were promised."""
    until = len(load.promised) + n
    wait_for("load", lambda: len(load.promised) >= until, seconds)


def ring(d):
    status, _, said = d.ask("GET", "/v1/ring")
    equal(status, 200, said)
    return said


# ---- stopped and killed --------------------------------------------------------------------------


@each_engine(
    "stopped under load, and started again: the database holds what was accepted", also=["sqlite"],
    leave_out=mostly())
def stopped(base, engine):
    with database(engine, base) as (_, url), http_server(base, store=url) as d:
        load = Load(d)
        for _ in range(STOPS):
            more(load, 500)
            d.stop()
            d.start()
        more(load)
        d.stop()
        load.stop()
        load.check(Tables(engine, url, d).items())


def kill_something(d):
    if random.random() < 0.5:
        d.kill()
        d.start()
    else: # the server alone: its master starts another
        for pid in workers_of(d.process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wal_stored(d):
    wait_for("the server", d.answers)
    wait_for("what was left is stored", lambda: d.ask("GET", "/v1/ring")
             [2].get("wal_replayed"), 60) # 503 until the store was reached


def wal_left(base):
    return [f for f in os.listdir(os.path.join(base, "wal")) if not f.endswith(".new")]


@each_engine("killed with -9 again and again under load, with a wal: all that was accepted is stored once",
             also=["sqlite"],
             leave_out=mostly())
def killed(base, engine):
    with database(engine, base) as (_, url):
        d = HttpServer(base, "--wal-dir", os.path.join(base, "wal"), conf="flush_ms = 30ms\n", store=url)
        load = Load(d, pause=0.001)
        for _ in range(KILLS):
            more(load)
            let_pass(random.uniform(0, 0.05), "a kill at any moment")
            kill_something(d)
        wal_stored(d)
        load.stop()
        d.stop()
        load.check(Tables(engine, url, d).items())
        equal(wal_left(base), [], "left in the wal")


@each_engine("killed with -9, and its database too: with a wal all that was accepted is stored once",
             leave_out=mostly("mysql"))
def both_killed(base, engine):
    with server(engine, base) as s:
        d = HttpServer(base, "--wal-dir", os.path.join(base, "wal"), conf="flush_ms = 30ms\n", store=s.url())
        load = Load(d, pause=0.001)
        for i in range(max(KILLS // 2, 2)):
            more(load)
            if i % 2:
                s.kill9()
                kill_something(d)
                s.again()
            else:
                kill_something(d)
                s.kill9()
                let_pass(random.uniform(0, 0.2), "a kill at any moment")
                s.again()
        wal_stored(d)
        load.stop()
        d.stop()
        load.check(Tables(engine, s.url()).items())
        equal(wal_left(base), [], "left in the wal")


@each_engine(
    "durable and killed with -9, without a wal: what was answered is stored", also=["sqlite"],
    leave_out=mostly())
def durable_killed(base, engine):
    with database(engine, base) as (_, url):
        d = HttpServer(base, store=url)
        load = Load(d, path=DURABLE)
        for _ in range(KILLS):
            more(load)
            d.kill()
            d.start()
        load.stop()
        d.stop()
        load.check(Tables(engine, url, d).items())


@each_engine("durable, and the database killed with -9: what was answered is there", leave_out=mostly("postgres"))
def durable_database_killed(base, engine):
    with server(engine, base) as s, http_server(base, store=s.url()) as d:
        load = Load(d, path=DURABLE)
        for _ in range(max(KILLS // 2, 2)):
            more(load)
            s.kill9()
            s.again()
        load.stop()
        d.stop()
        load.check(Tables(engine, s.url()).items())


@case("beside the workers of a run: its server killed, it goes on")
def beside_workers(base):
    with http_server(base, command="run") as d:
        load = Load(d, path=DURABLE, clients=2)
        more(load, 50)
        pids = workers_of(d.process)
        holds(len(pids) >= 2, "a worker and a server")
        os.kill(pids[-1], signal.SIGKILL)
        more(load, 50)
        d.process.send_signal(signal.SIGHUP)
        more(load, 50)
        load.stop()
        d.stop()
        load.check(items(d))


# ---- away and full -------------------------------------------------------------------------------


@each_engine("the database is away for a while under load: rows wait, then the http_server says 503; nothing is lost")
def store_away(base, engine):
    with server(engine, base) as s, http_server(base, store=s.url(), conf="ring_bytes = 64KiB\nflush_ms = 20ms\n") as d:
        load = Load(d, clients=4)
        more(load)
        s.kill9()
        wait_for("503", lambda: load.refused > 10, 60)
        wait_for("it is not ready", lambda: d.ask("GET", "/readyz")[0] == 503)
        holds(ring(d)["ring_full"] > 10, "counted")
        let_pass(AWAY_S, "the outage's length")
        s.again()
        more(load)
        load.stop()
        wait_for("all stored", lambda: ring(d)["fill_bytes"] == 0, 60)
        r = ring(d)
        equal((r["stored"], r["dead_letters"]), (r["accepted"], 0), "stored, set aside")
        rows = Tables(engine, s.url()).items()
        load.check(rows)
        equal(r["stored"], len(rows), "counted as stored")


@case("a store that does not come back: the stop says how much is lost, with a wal it is kept")
def never_back(base):
    for wal in (False, True):
        conf = "drain_timeout_ms = 300ms\nstore = sqlite:/proc/no/such/s.db\n" + \
            ("wal_dir = %s/wal\n" % base if wal else "")
        d = HttpServer(base, conf=conf, store="sqlite:/proc/no/such/s.db")
        equal(d.push(EVENT, path=TWIRP)[0], 200)
        d.stop(0 if wal else 3)
        holds(wal or "1 accepted rows could not be stored" in d.feedwheel.words(), d.feedwheel.last_words())
    d = HttpServer(base, conf="wal_dir = %s/wal\n" % base)
    wait_for("stored", lambda: ring(d)["stored"] == 1)
    d.stop()
    equal(d.stored(), 1)


def server_limit(d, bytes_max):
    """The largest file that the server may write: a disk that is full."""
    for pid in workers_of(d.process):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))


@case("the store's disk is full: rows wait, the http_server says 503; when there is room again, all are stored")
def store_disk_full(base):
    with http_server(base, conf="ring_bytes = 64KiB\nflush_ms = 20ms\n") as d:
        load = Load(d, clients=4)
        more(load)
        server_limit(d, 4096)
        wait_for("503", lambda: load.refused > 10, 60)
        wait_for("it is not ready", lambda: d.ask("GET", "/readyz")[0] == 503)
        wait_for("words", lambda: "the rows wait, next attempt" in d.feedwheel.words())
        server_limit(d, resource.RLIM_INFINITY)
        more(load)
        load.stop()
        d.stop()
        load.check(items(d))


@each_engine("the disk of the wal is full: 503, and nothing half accepted; with room again it goes on",
             leave_out=mostly("postgres"))
def wal_disk_full(base, engine):
    with server(engine, base) as s, http_server(base, "--wal-dir", os.path.join(base, "wal"), store=s.url(),
                                                conf="flush_ms = 20ms\n") as d:
        load = Load(d, clients=4)
        more(load)
        server_limit(d, 0)
        wait_for("503", lambda: load.refused > 10, 60)
        holds("wal_dir: " in d.push(EVENT, path=TWIRP)[2]["msg"], "the reason")
        equal(d.push(dict(EVENT, id=10**9))[0], 200, "durable: it is not spilled")
        server_limit(d, resource.RLIM_INFINITY)
        more(load)
        load.stop()
        d.kill() # what was accepted before and after
        d.start()
        wal_stored(d)
        d.stop()
        rows = Tables(engine, s.url()).items()
        holds(10**9 in rows, "the durable one")
        load.check([i for i in rows if i != 10**9])


# ---- rows that the database refuses --------------------------------------------------------------


@each_engine("rows that the database refuses, among many: these are set aside with the reason, the others are stored",
             also=["sqlite"],
             leave_out=["redis"] if LONG else mostly("postgres"))
def poison(base, engine):
    bad = range(13, 1500, 400)
    with database(engine, base) as (_, url), http_server(base, store=url, conf="flush_ms = 100ms\n") as d:
        tables = Tables(engine, url, d)
        d.push(dict(EVENT, id=10**6))
        if engine == "sqlite":
            tables.sql(
                "CREATE TRIGGER poison BEFORE INSERT ON incoming WHEN NEW.property_id < 1500 AND NEW.property_id % "
                "400 = 13"
                " BEGIN SELECT RAISE(ABORT, 'no such thing'); END", write=True)
        else:
            tables.sql("ALTER TABLE incoming ADD CONSTRAINT poison CHECK (property_id >= 1500 OR mod(property_id, "
                       "400) <> 13)")
        for i in range(1, 1500, 100):
            equal(d.push([dict(EVENT, id=k) for k in range(i, i + 100)], path="/v1/events")[0], 202)
        status, _, said = d.push(dict(EVENT, id=13))
        equal((status, said["code"]), (422, "refused"))
        equal(d.push(dict(EVENT, id=2000))[0], 200)
        wait_for("all dealt with", lambda: ring(d)["fill_bytes"] == 0)
        equal(ring(d)["dead_letters"], len(bad) + 1)
        d.stop()
        equal(sorted(tables.items()), sorted(set(range(1, 1501)) - set(bad)) + [2000, 10**6])
        aside = tables.sql("SELECT event FROM dead_letters")
        equal(sorted(json.loads(a)["property_id"] for a in aside), sorted([*bad, 13]))
        holds(all("poison" in r or "no such thing" in r for r in tables.sql("SELECT reason FROM dead_letters")),
              "the reasons")


# ---- by wrk --------------------------------------------------------------------------------------


@case("wrk with the original service's form of request: as many rows as requests")
def by_wrk(base):
    if not shutil.which("wrk"):
        raise Skip("wrk is not installed")
    with http_server(base) as d:
        r = subprocess.run(
            ["wrk", "-t2", "-c20", "-d1s", "-s", os.path.join(ROOT, "bench", "ingest", "push.lua"),
             "http://127.0.0.1:%d%s" % (d.port, TWIRP)],
            capture_output=True, text=True, check=True)
        said = json.loads(r.stdout.splitlines()[-1])
        equal((said["refused"], said["broken"]), (0, 0), r.stdout)
        d.stop()
        late = d.stored() - said["requests"] # answered when wrk did not look any more
        holds(said["requests"] > 100 and 0 <= late <= 20, "%d rows for %d requests" % (d.stored(), said["requests"]))


if __name__ == "__main__":
    run()
