#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Our own network is down: no feed is charged with it, it is told, and when it is back all are
fetched soon. And what is not our network's fault is charged all the same: some hosts that are dead
among others that live, and a single one."""
import os
import signal
import time

from http_server import HttpServer
from harness import SOON, SOON_S, Feedwheel, case, equal, holds, let_pass, origin, run, samples, wait_for, workers_of
from machines import Machine, Mirror, needed
from names import Names

FEEDS = 20
CONF = "connect_timeout_ms = 6s\nfirst_byte_timeout_ms = 20s\ntotal_timeout_ms = 20s\n" \
    "offline_wait_ms = 3s\nbatch_ms = 50ms\nworkers = 1\n"
DOWN = "our own network seems to be down"


def named(o, n, zone="test"):
    """n feeds, each of a host of its own name."""
    return ["http://host%d.%s:%d/feed/%d" % (i, zone, o.port, i) for i in range(n)]


def charged(w):
    return [f["url"] for f in w.json("list") if f["failures"]]


def asked(w):
    return sum("last_visit" in f for f in w.json("list"))


def fetched(w, since=""):
    """Feeds whose last visit went well, and not before then."""
    return sum(
        f.get("last_result") in ("ok", "same", "not_modified") and f["last_visit"] > since for f in w.json("list"))


@case("a run whose name servers say nothing: nobody is charged, status, why and the metric tell; when they are back "
      "all is fetched soon",
      needs="server")
def no_names(base):
    names = Names(mute=True)
    with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
        d = HttpServer(base, conf=SOON + CONF + "dns_servers = %s\n" % names.address, command="run")
        urls = named(o, FEEDS)
        d.feedwheel.run("add", *urls)
        wait_for("the verdict", lambda: DOWN in d.feedwheel.words())
        wait_for("all to be asked", lambda: asked(d.feedwheel) == FEEDS)
        equal(charged(d.feedwheel), [], "charged")
        wait_for("status", lambda: "network  seems to be down for 1 worker since 20" in
                 d.feedwheel.run("status").stdout)
        equal(d.feedwheel.json("status")["workers_offline"], 1)
        holds("feedwheel_workers_offline 1\n" in d.ask("GET", "/metrics")[2], "the metric")
        why = d.feedwheel.run("why", urls[3]).stdout
        holds(DOWN + ", the feed is not charged" in why, why)
        names.mute = False
        wait_for("all to be fetched", lambda: fetched(d.feedwheel) == FEEDS, 60)
        equal(charged(d.feedwheel), [], "charged")
        wait_for("words", lambda: "network is up again" in d.feedwheel.words())
        wait_for("status", lambda: "network" not in d.feedwheel.run("status").stdout)
        holds("feedwheel_workers_offline 0\n" in d.ask("GET", "/metrics")[2], "the metric")
        d.stop()


@case("a run whose road dies on the way, and is mended: nobody is charged")
def no_road(base):
    needed()
    there = Machine()
    try:
        with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
            mirror = Mirror(there, o.port)
            w = Feedwheel(base, SOON + CONF, inside=there.inside)
            w.run("import", o.url_file)
            p = w.start("run")
            wait_for("work", lambda: fetched(w) == FEEDS)
            for i in range(1, 3):
                there.ip("link set lo down")
                wait_for("the verdict", lambda i=i: w.words().count(DOWN) == i)
                let_pass(2, "no failure may be charged meanwhile")
                equal(charged(w), [], "charged")
                there.ip("link set lo up")
                since = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
                wait_for("all to be fetched", lambda since=since: fetched(w, since) == FEEDS)
                wait_for("words", lambda i=i: w.words().count("network is up again") == i)
                equal(charged(w), [], "charged")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(60), 0)
            mirror.close()
    finally:
        there.stop()


@case("run --once while nobody answers: it ends, nobody is charged, also of a handful; the next one fetches all")
def once(base):
    names = Names(mute=True)
    with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
        for n in 3, FEEDS:
            w = Feedwheel(base, SOON + CONF + "offline_wait_ms = 1h\ndns_servers = %s\n" % names.address, "%d.db" % n)
            w.run("add", *named(o, n))
            names.mute = True
            start = time.monotonic()
            stats = w.run_once()
            holds(time.monotonic() - start < 90, "it took %.1f s" % (time.monotonic() - start))
            equal((stats["feeds"], stats["failed"]), (n, n))
            equal(charged(w), [], "charged")
            holds("network" in w.run("status").stdout, "status tells")
            names.mute = False
            let_pass(SOON_S, "the feeds' next due time")
            stats = w.run_once()
            equal((stats["feeds"], stats["failed"], fetched(w)), (n, 0, n))


@case("three hosts that are dead among twenty that live are charged; with run and with run --once")
def dead_ones(base):
    names = Names()
    with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
        for once_only in True, False:
            w = Feedwheel(base, CONF + "dns_servers = %s\n" % names.address, "%d.db" % once_only)
            w.run("add", *named(o, 3, "broken"), *named(o, FEEDS))
            if once_only:
                equal(w.run_once()["failed"], 3)
            else:
                p = w.start("run")
                wait_for("all to be asked", lambda w=w: asked(w) == FEEDS + 3)
                p.send_signal(signal.SIGTERM)
                equal(p.wait(60), 0)
            equal((len(charged(w)), fetched(w)), (3, FEEDS))
            holds("seems to be down" not in w.run("status").stdout, "no verdict")
            holds("failure 1" in w.run("why", "host0.broken").stdout, "why")


@case("a single host that is dead is charged after a wait; a worker that dies or is stopped meanwhile charges nobody")
def lonely(base):
    names = Names()
    with origin(base, samples(base)) as o:
        w = Feedwheel(base, CONF + "offline_wait_ms = 1h\ndns_servers = %s\n" % names.address)
        w.run("add", *named(o, 1, "broken"))
        for leave in signal.SIGTERM, signal.SIGKILL:
            n = names.asked
            p = w.start("run")
            wait_for("the question", lambda n=n: names.asked > n)
            let_pass(1, "no failure may be charged meanwhile")
            equal(asked(w), 0, "it waits")
            if leave == signal.SIGKILL:
                os.kill(workers_of(p)[0], signal.SIGKILL)
                let_pass(1, "no failure may be charged meanwhile")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(60), 0)
            equal((charged(w), asked(w)), ([], 0), str(leave))
        equal(w.run_once()["failed"], 1) # nothing else is under way
        equal(len(charged(w)), 1)
        w.run("set", "--due", "host0.broken")
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("offline_wait_ms = 2s\n")
        p = w.start("run")
        wait_for("its charge", lambda: w.json("list")[0]["failures"] == 2)
        holds(DOWN not in w.words(), "no verdict")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(60), 0)


run()
