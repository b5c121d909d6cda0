#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The server's promise: every accepted row is stored, once, also after kills, outages and full
disks. Rows are counted by the database's own client. FW_INGEST_KILLS=200: 200 rounds of kill -9;
FW_LONG=1: outages of 30 s."""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time

from clocks import environment
from http_server import HttpServer, http_server, metric
from growing import LONG
from harness import ROOT, Skip, case, each_engine, equal, holds, let_pass, run, server, wait_for, workers_of
from pushing import DURABLE, EVENT, TWIRP, Load, Tables, items

KILLS = int(os.environ.get("FW_INGEST_KILLS", "4"))
STOPS = KILLS if "FW_INGEST_KILLS" in os.environ else 0
AWAY_S = 30 if LONG else 0
ENGINES = {"postgres", "mysql", "redis"}


def all_but(*engines):
    """The engines to leave out without FW_LONG: our code is the same for all engines."""
    return () if LONG else ENGINES - set(engines)


@contextlib.contextmanager
def database(engine, base):
    """A server of the engine and its URL; None and None for SQLite."""
    if engine == "sqlite":
        yield None, None
        return
    with server(engine, base) as s:
        yield s, s.url()


def more(load, n=100, seconds=60):
    """Wait until n more rows are promised."""
    until = len(load.acknowledged) + n
    wait_for("load", lambda: len(load.acknowledged) >= until, seconds)


def ring(d):
    status, _, response = d.request("GET", "/v1/ring")
    equal(status, 200, response)
    return response


# ---- stopped and killed --------------------------------------------------------------------------


@each_engine(
    "accepted rows are stored when the server is stopped and started under load",
    also=["sqlite"], leave_out=all_but())
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
    wait_for("the server", d.responds)
    # 503 until the store is reached
    wait_for("the log's rows to be stored", lambda: d.request("GET", "/v1/ring")[2].get("wal_replayed"), 60)


def wal_left(base):
    return os.listdir(os.path.join(base, "wal"))


@each_engine(
    "with a write-ahead log accepted rows are stored once, also after kill -9 under load",
    also=["sqlite"], leave_out=all_but())
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
        equal(wal_left(base), [], "left in the write-ahead log")


@each_engine(
    "with a write-ahead log accepted rows are stored once when server and database are killed",
    leave_out=all_but("mysql"))
def both_killed(base, engine):
    with server(engine, base) as s:
        d = HttpServer(base, "--wal-dir", os.path.join(base, "wal"), conf="flush_ms = 30ms\n", store=s.url())
        load = Load(d, pause=0.001)
        for i in range(max(KILLS // 2, 2)):
            more(load)
            if i % 2:
                s.kill()
                kill_something(d)
                s.restart()
            else:
                kill_something(d)
                s.kill()
                let_pass(random.uniform(0, 0.2), "a kill at any moment")
                s.restart()
        wal_stored(d)
        load.stop()
        d.stop()
        load.check(Tables(engine, s.url()).items())
        equal(wal_left(base), [], "left in the write-ahead log")


@each_engine(
    "without a write-ahead log durable rows answered 200 survive kill -9 of the server",
    also=["sqlite"], leave_out=all_but())
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


@each_engine("durable rows answered 200 survive kill -9 of the database", leave_out=all_but("postgres"))
def durable_database_killed(base, engine):
    with server(engine, base) as s, http_server(base, store=s.url()) as d:
        load = Load(d, path=DURABLE)
        for _ in range(max(KILLS // 2, 2)):
            more(load)
            s.kill()
            s.restart()
        load.stop()
        d.stop()
        load.check(Tables(engine, s.url()).items())


@case("a run's server is restarted after kill -9 and SIGHUP, and loses no durable row")
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


# ---- two servers, and clocks that are set back ---------------------------------------------------


def check_both(loads, rows):
    """Two loads with ids of their own: all that was promised is there, and once."""
    for load in loads:
        equal(load.wrong, [], "responses that are neither 200 nor 503")
    equal(len(rows), len(set(rows)), "different events among the stored rows")
    equal(set().union(*(load.acknowledged for load in loads)) - set(rows), set(), "lost")


@each_engine(
    "two servers with the same configuration on one store lose no durable row",
    also=["sqlite"], leave_out=all_but("postgres"))
def two_servers(base, engine):
    with database(engine, base) as (_, url), http_server(base, store=url) as d, \
            http_server(base + "/b", store=url or d.feedwheel.store) as other:
        loads = [Load(d, path=DURABLE), Load(other, path=DURABLE, first=10**6)]
        for load in loads:
            more(load, 1500)
        for load in loads:
            load.stop()
        check_both(loads, Tables(engine, url, d).items())
        equal([metric(s, "push_clashes_total") for s in (d, other)], [0, 0], "ids that two rows had")


@case("a server that is killed, and whose clock is set back, loses no durable row")
def clock_set_back(base):
    environment("+0") # or the case is skipped
    d = HttpServer(base)
    loads = [Load(d, path=DURABLE)]
    more(loads[0], 1000)
    loads[0].stop()
    d.kill()
    # the second life pushes while its clock shows the times of the first one
    back = time.time() - d.feedwheel.one("SELECT min(stamp) FROM incoming") / 1000
    d.arguments += ("--sandbox", "off")
    d.feedwheel.environment.update(environment("-%.3f" % back))
    d.start()
    loads.append(Load(d, path=DURABLE, first=10**6))
    more(loads[1], 1000)
    loads[1].stop()
    rows = items(d)
    d.stop()
    check_both(loads, rows)


@case("with a write-ahead log a push is refused until the store has answered once; a durable one waits for it")
def wal_before_the_store(base):
    durable = []
    os.symlink("/nowhere/at/all", base + "/later") # SQLite would create a missing folder
    d = HttpServer(base, "--wal-dir", base + "/wal", "--sandbox", "off", store="sqlite:%s/later/s.db" % base)
    status, headers, response = d.push(EVENT, path=TWIRP)
    equal((status, headers["Retry-After"] is not None), (503, True), response)
    holds("the store has not answered yet" in response["msg"], response)
    waiting = threading.Thread(target=lambda: durable.append(d.push(EVENT)[0]), daemon=True)
    waiting.start()
    os.unlink(base + "/later")
    os.mkdir(base + "/later")
    wait_for("the store", lambda: d.push(EVENT, path=TWIRP)[0] == 200, 60)
    waiting.join(60)
    equal(durable, [200])
    d.stop()
    equal(d.stored(), 2)


# ---- outages and full disks ----------------------------------------------------------------------


@each_engine("while the database is down rows wait, then pushes are answered 503; nothing is lost")
def store_away(base, engine):
    conf = "ring_bytes = 64KiB\nflush_ms = 20ms\n"
    with server(engine, base) as s, http_server(base, store=s.url(), conf=conf) as d:
        load = Load(d, clients=4)
        more(load)
        s.kill()
        wait_for("503", lambda: load.refused > 10, 60)
        wait_for("readyz to fail", lambda: d.request("GET", "/readyz")[0] == 503)
        holds(ring(d)["ring_full"] > 10, "counted")
        let_pass(AWAY_S, "the outage's length")
        s.restart()
        more(load)
        load.stop()
        wait_for("all rows to be stored", lambda: ring(d)["fill_bytes"] == 0, 60)
        r = ring(d)
        equal((r["stored"], r["dead_letters"]), (r["accepted"], 0), "stored rows, dead letters")
        rows = Tables(engine, s.url()).items()
        load.check(rows)
        equal(r["stored"], len(rows), "counted as stored")


@case("without the store a stop reports the lost rows; a write-ahead log keeps them")
def never_back(base):
    d = HttpServer(base, conf="drain_timeout_ms = 300ms\n", store="sqlite:/proc/no/such/s.db")
    equal(d.push(EVENT, path=TWIRP)[0], 200)
    d.stop(3)
    holds("1 accepted rows could not be stored" in d.feedwheel.log(), d.feedwheel.last_log())
    d = HttpServer(base, "--wal-dir", base + "/wal", conf="drain_timeout_ms = 300ms\n")
    server_limit(d, 65536) # the log has room, the store has none
    equal(d.push(EVENT, path=TWIRP)[0], 200)
    d.stop()
    equal(d.stored(), 0)
    d = HttpServer(base, "--wal-dir", base + "/wal")
    wait_for("stored", lambda: ring(d)["stored"] == 1)
    d.stop()
    equal(d.stored(), 1)


def server_limit(d, bytes_max):
    """Limit the size of files that the server writes, as a full disk does."""
    for pid in workers_of(d.process):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))


@case("while the store's disk is full rows wait, then pushes are answered 503; later all are stored")
def store_disk_full(base):
    with http_server(base, conf="ring_bytes = 64KiB\nflush_ms = 20ms\n") as d:
        load = Load(d, clients=4)
        more(load)
        server_limit(d, 4096)
        wait_for("503", lambda: load.refused > 10, 60)
        wait_for("readyz to fail", lambda: d.request("GET", "/readyz")[0] == 503)
        wait_for("the warning", lambda: "the rows wait" in d.feedwheel.log())
        server_limit(d, resource.RLIM_INFINITY)
        more(load)
        load.stop()
        d.stop()
        load.check(items(d))


@each_engine(
    "while the write-ahead log's disk is full pushes are answered 503, and none is half accepted",
    leave_out=all_but("postgres"))
def wal_disk_full(base, engine):
    wal = "--wal-dir", os.path.join(base, "wal")
    with server(engine, base) as s, http_server(base, *wal, store=s.url(), conf="flush_ms = 20ms\n") as d:
        load = Load(d, clients=4)
        more(load)
        server_limit(d, 0)
        wait_for("503", lambda: load.refused > 10, 60)
        holds("wal_dir: " in d.push(EVENT, path=TWIRP)[2]["msg"], "the reason")
        equal(d.push(dict(EVENT, id=10**9))[0], 200, "a durable row needs no log")
        server_limit(d, resource.RLIM_INFINITY)
        more(load)
        load.stop()
        d.kill()
        d.start()
        wal_stored(d)
        d.stop()
        rows = Tables(engine, s.url()).items()
        holds(10**9 in rows, "the durable row is stored")
        load.check([i for i in rows if i != 10**9])


# ---- rows that the database refuses --------------------------------------------------------------


@each_engine(
    "rows that the database refuses become dead letters with the reason; the others are stored",
    also=["sqlite"], leave_out=["redis"] if LONG else all_but("postgres"))
def poison(base, engine):
    bad = range(13, 1500, 400)
    with database(engine, base) as (_, url), http_server(base, store=url, conf="flush_ms = 100ms\n") as d:
        tables = Tables(engine, url, d)
        d.push(dict(EVENT, id=10**6))
        if engine == "sqlite":
            tables.sql(
                "CREATE TRIGGER poison BEFORE INSERT ON incoming "
                "WHEN NEW.property_id < 1500 AND NEW.property_id % 400 = 13 "
                "BEGIN SELECT RAISE(ABORT, 'no such thing'); END", write=True)
        else:
            tables.sql(
                "ALTER TABLE incoming ADD CONSTRAINT poison "
                "CHECK (property_id >= 1500 OR mod(property_id, 400) <> 13)")
        for i in range(1, 1500, 100):
            equal(d.push([dict(EVENT, id=k) for k in range(i, i + 100)], path="/v1/events")[0], 202)
        status, _, response = d.push(dict(EVENT, id=13))
        equal((status, response["code"]), (422, "refused"))
        equal(d.push(dict(EVENT, id=2000))[0], 200)
        wait_for("empty rings", lambda: ring(d)["fill_bytes"] == 0)
        equal(ring(d)["dead_letters"], len(bad) + 1)
        d.stop()
        equal(sorted(tables.items()), sorted(set(range(1, 1501)) - set(bad)) + [2000, 10**6])
        dead = tables.sql("SELECT event FROM dead_letters")
        equal(sorted(json.loads(e)["property_id"] for e in dead), sorted([*bad, 13]))
        reasons = tables.sql("SELECT reason FROM dead_letters")
        holds(all("poison" in r or "no such thing" in r for r in reasons), reasons)


# ---- by wrk --------------------------------------------------------------------------------------


@case("wrk with the original service's request stores as many rows as it sends")
def by_wrk(base):
    if not shutil.which("wrk"):
        raise Skip("wrk is not installed")
    with http_server(base) as d:
        r = subprocess.run(
            ["wrk", "-t2", "-c20", "-d1s", "-s", os.path.join(ROOT, "bench", "ingest", "push.lua"),
             "http://127.0.0.1:%d%s" % (d.port, TWIRP)],
            capture_output=True, text=True, check=True)
        output = json.loads(r.stdout.splitlines()[-1])
        equal((output["refused"], output["broken"]), (0, 0), r.stdout)
        d.stop()
        n = output["requests"]
        late = d.stored() - n # answered after wrk's end
        holds(n > 100 and 0 <= late <= 20, "%d rows for %d requests" % (d.stored(), n))


if __name__ == "__main__":
    run()
