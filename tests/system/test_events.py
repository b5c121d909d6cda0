#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The events command: lists of events, dead letters and their retry, retention."""
import contextlib
import datetime
import json

from http_server import http_server
from harness import case, each_engine, equal, holds, let_pass, run, server, wait_for


def event(i, name="news"):
    return {"property": name, "section": 1, "id": i}


def ms(text):
    """A time in JSON, in milliseconds."""
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def lines(w, *arguments):
    return [json.loads(l) for l in w.run("events", "--jsonl", *arguments).stdout.splitlines()]


def made(d):
    """The server's Feedwheel, as soon as it has a store."""
    wait_for("the store", lambda: d.feedwheel.run("events", code=None).returncode == 0)
    return d.feedwheel


@case("events are listed as a table and as lines: the last ones, or those since a time or a number")
def shown(base):
    with http_server(base) as d:
        w = made(d)
        holds("no events yet" in w.run("events").stderr, "an empty table")
        holds("no dead letters" in w.run("events", "--dead-letters").stderr, "an empty table")
        equal(w.run("events", "--jsonl").stdout, "")
        for i in range(1, 31):
            equal(d.push([event(3 * i + k, "p\u001b[31m" if i == 30 else "news") for k in range(3)])[0], 200)
        every = lines(w)
        equal([e["id"] for e in every], list(range(3, 93)))
        names = "event", "property", "section", "id", "remote_ip", "at"
        rows = w.sql(
            "SELECT id, property, property_section, property_id, remote_ip, stamp FROM incoming ORDER BY id")
        equal([{**e, "at": ms(e["at"])} for e in every], [dict(zip(names, r)) for r in rows])
        equal(w.json("events"), every)
        text = w.run("events").stdout
        equal(len(text.splitlines()), 21, "lines: a head and the last 20 events")
        holds("\x1b" not in text and "127.0.0.1" in text, text)
        equal([e["id"] for e in lines(w, "--limit", "5")], list(range(88, 93)))
        equal([e["id"] for e in lines(w, "--limit", "2", "--after", str(every[4]["event"]))], [8, 9])
        equal(len(lines(w, "--since", "1h")), 90)
        equal(lines(w, "--since", "2999-01-01"), [])
        holds("no events match" in w.run("events", "--since", "2999-01-01").stderr, "the note")
        w.sql("UPDATE incoming SET id = id - (86400000 << 22) WHERE property_id < 10", write=True) # of yesterday
        equal(len(lines(w, "--since", "2h")), 83)
        equal(len(lines(w, "--limit", "85")), 85, "older events, too")
        for wrong in (
            ["--since", "soon"],
            ["--limit", "0"],
            ["--retry", "--dead-letters"],
            ["--retry", "--limit", "3"],
            ["--since", "1h", "--after", "1"]):
            w.run("events", *wrong, code=2)


@case("dead letters are listed with the reason, and a retry stores each once")
def refused(base):
    with http_server(base) as d:
        w = made(d)
        w.sql(
            "CREATE TRIGGER no BEFORE INSERT ON incoming WHEN new.property IN ('bad', 'worse') "
            "BEGIN SELECT raise(ABORT, 'it is bad'); END",
            write=True)
        equal(d.push([event(1), event(2, "bad"), event(3), event(4, "worse")])[0], 422)
        dead = lines(w, "--dead-letters")
        equal([(e["row"]["property"], e["row"]["id"]) for e in dead], [("bad", 2), ("worse", 4)])
        holds(all("it is bad" in e["reason"] and e["since"] for e in dead), dead)
        text = w.run("events", "--dead-letters").stdout
        holds("it is bad" in text and '"property":"worse"' in text, text)
        holds("2 events were refused again" in w.run("events", "--retry", code=1).stderr, "a retry in vain")
        equal(len(lines(w, "--dead-letters")), 2)
        w.sql("DROP TRIGGER no", write=True)
        w.sql(
            "CREATE TRIGGER no BEFORE INSERT ON incoming WHEN new.property = 'worse' "
            "BEGIN SELECT raise(ABORT, 'still'); END",
            write=True)
        w.sql("INSERT INTO dead_letters VALUES (7, 'no row', 'r', 1), (8, '{\"id\":8}', 'r', 1)", write=True)
        r = w.run("events", "--retry", code=1)
        holds("1 event is stored" in r.stdout and "3 events were refused" in r.stderr, r.stdout + r.stderr)
        equal(w.sql("SELECT property_id FROM incoming ORDER BY 1"), [(1,), (2,), (3,)])
        left = lines(w, "--dead-letters")
        want = [(7, "no row"), (8, '{"id":8}'), (dead[1]["event"], dead[1]["row"])]
        equal([(e["event"], e["row"]) for e in left], want)
        equal([e["reason"] for e in left[:2]], ["r", "r"])
        holds("still" in left[2]["reason"] and "it is bad" not in left[2]["reason"], left[2]) # the newest reason
        equal(left[2]["since"], dead[1]["since"])
        w.sql("DROP TRIGGER no", write=True)
        w.sql("DELETE FROM dead_letters WHERE id < 10", write=True)
        r = w.run("events", "--retry")
        equal(r.stdout, "1 event is stored\n")
        before = w.sql("SELECT * FROM incoming")
        equal(w.run("events", "--retry").stdout, "0 events are stored\n")
        equal(w.sql("SELECT * FROM incoming"), before)
        equal([e for e in lines(w) if e["property"] != "news"], [e["row"] for e in dead])


@case("a dead letter whose id an event has is stored with a new one by a retry, and doctor counts it")
def clashes(base):
    with http_server(base) as d:
        equal(d.push([event(1)])[0], 200)
        w = d.feedwheel
    holds("event ids" not in w.run("doctor", code=None).stdout, "no clash yet")
    row = json.dumps({"id": 1, "property": "other", "property_section": 1, "property_id": 2, "remote_ip": "",
                      "stamp": 7})
    w.sql("INSERT INTO dead_letters SELECT id, '%s', 'why', 1 FROM incoming" % row, write=True)
    r = w.run("events", "--retry")
    equal(r.stdout, "1 event is stored\n")
    holds("1 of the events had the id of another one" in r.stderr, r.stderr)
    equal([e["property"] for e in lines(w)], ["news", "other"])
    holds("1 of the pushed events had the id of another one" in w.run("doctor", code=None).stdout, "doctor")


@contextlib.contextmanager
def store_of(engine, base):
    if engine == "sqlite":
        yield None
    else:
        with server(engine, base) as s:
            yield s.url("kept")


@each_engine("old events are pruned by a server alone and by a worker; without the setting none is", also=["sqlite"])
def retention(base, engine):
    with store_of(engine, base) as store:
        with http_server(base, store=store) as d:
            equal(d.push([event(i) for i in range(1, 6)])[0], 200)
            w = d.feedwheel
        w.run("run", "--once")
        equal(len(lines(w)), 5, "events without the setting")
        with http_server(base, store=store, conf="events_retention_ms = 1h\n"):
            w.run("run", "--once", "--events-retention-ms", "1h")
            equal(len(lines(w)), 5, "young events")
        with http_server(base, store=store, conf="events_retention_ms = 1ms\n") as d:
            wait_for("all to be deleted", lambda: not lines(w))
        with http_server(base, store=store) as d:
            equal(d.push([event(i) for i in range(1, 4)])[0], 200)
        let_pass(0.01, "older than a millisecond")
        w.run("run", "--once", "--events-retention-ms", "1ms")
        equal(lines(w), [])


run()
