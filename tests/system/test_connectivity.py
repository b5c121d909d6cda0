#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""While our own network is down, no feed is charged with a failure and status shows the outage;
when the network is up again, all feeds are fetched soon. Failures of a few hosts among many, or of
a single host, are charged."""
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


def visited(w):
    return sum("last_visit" in f for f in w.json("list"))


def fetched(w, since=""):
    """The number of feeds whose last visit succeeded after this time."""
    return sum(
        f.get("last_result") in ("ok", "same", "not_modified") and f["last_visit"] > since for f in w.json("list"))


@case("a run without an answering name server charges no feed; status, why and the metric show the outage; when the "
      "server answers, all feeds are fetched soon", needs="server")
def no_names(base):
    names = Names(mute=True)
    with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
        d = HttpServer(base, conf=SOON + CONF + "dns_servers = %s\n" % names.address, command="run")
        urls = named(o, FEEDS)
        d.feedwheel.run("add", *urls)
        wait_for("the message 'network down'", lambda: DOWN in d.feedwheel.log())
        wait_for("a visit of each feed", lambda: visited(d.feedwheel) == FEEDS)
        equal(charged(d.feedwheel), [], "charged feeds")
        wait_for("the outage in status", lambda: "network  seems to be down for 1 worker since 20" in
                 d.feedwheel.run("status").stdout)
        equal(d.feedwheel.json("status")["workers_offline"], 1)
        holds("feedwheel_workers_offline 1\n" in d.request("GET", "/metrics")[2], "the metric")
        why = d.feedwheel.run("why", urls[3]).stdout
        holds(DOWN + ", the feed is not charged" in why, why)
        names.mute = False
        wait_for("all to be fetched", lambda: fetched(d.feedwheel) == FEEDS, 60)
        equal(charged(d.feedwheel), [], "charged feeds")
        wait_for("the message 'up again'", lambda: "network is up again" in d.feedwheel.log())
        wait_for("status without the outage", lambda: "network" not in d.feedwheel.run("status").stdout)
        holds("feedwheel_workers_offline 0\n" in d.request("GET", "/metrics")[2], "the metric")
        d.stop()


@case("a run whose network interface goes down and comes up again charges no feed")
def no_network(base):
    needed()
    there = Machine()
    try:
        with origin(base, samples(base), "--feeds", str(FEEDS)) as o:
            mirror = Mirror(there, o.port)
            # requests in flight at the start of an outage end with these timeouts
            w = Feedwheel(base, SOON + CONF + "first_byte_timeout_ms = 8s\ntotal_timeout_ms = 12s\n",
                          inside=there.inside)
            w.run("import", o.url_file)
            p = w.start("run")
            wait_for("all to be fetched", lambda: fetched(w) == FEEDS)
            for i in range(1, 3):
                there.ip("link set lo down")
                wait_for("the message 'network down'", lambda i=i: w.log().count(DOWN) == i)
                let_pass(2, "no failure may be charged during the outage")
                equal(charged(w), [], "charged feeds")
                there.ip("link set lo up")
                since = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
                wait_for("all to be fetched again", lambda since=since: fetched(w, since) == FEEDS)
                wait_for("the message 'up again'", lambda i=i: w.log().count("network is up again") == i)
                equal(charged(w), [], "charged feeds")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(60), 0)
            mirror.close()
    finally:
        there.stop()


@case("run --once ends during an outage and charges no feed, with 3 feeds as with 20; the next run fetches all")
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
            equal(charged(w), [], "charged feeds")
            holds("network" in w.run("status").stdout, "status shows the outage")
            names.mute = False
            let_pass(SOON_S, "the feeds' next due time")
            stats = w.run_once()
            equal((stats["feeds"], stats["failed"], fetched(w)), (n, 0, n))


@case("three failing hosts beside twenty working ones are charged, by run and by run --once")
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
                wait_for("a visit of each feed", lambda w=w: visited(w) == FEEDS + 3)
                p.send_signal(signal.SIGTERM)
                equal(p.wait(60), 0)
            equal((len(charged(w)), fetched(w)), (3, FEEDS))
            holds("seems to be down" not in w.run("status").stdout, "status shows no outage")
            holds("failure 1" in w.run("why", "host0.broken").stdout, "why")


@case("a single failing host is charged after offline_wait_ms; a worker that ends or dies before that charges no feed")
def lonely(base):
    names = Names()
    with origin(base, samples(base)) as o:
        w = Feedwheel(base, CONF + "offline_wait_ms = 1h\ndns_servers = %s\n" % names.address)
        w.run("add", *named(o, 1, "broken"))
        for leave in signal.SIGTERM, signal.SIGKILL:
            n = names.queries
            p = w.start("run")
            wait_for("the name query", lambda n=n: names.queries > n)
            wait_for("the log to say what it waits for", lambda: "it is stored within 1 h" in w.last_log())
            let_pass(1, "no failure may be charged during the wait")
            equal(visited(w), 0, "visits during the wait")
            if leave == signal.SIGKILL:
                os.kill(workers_of(p)[0], signal.SIGKILL)
                let_pass(1, "no failure may be charged after the kill")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(60), 0)
            equal((charged(w), visited(w)), ([], 0), str(leave))
        equal(w.run_once()["failed"], 1) # no other fetch is in flight
        equal(len(charged(w)), 1)
        w.run("set", "--due", "host0.broken")
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("offline_wait_ms = 2s\n")
        p = w.start("run")
        wait_for("the second failure", lambda: w.json("list")[0]["failures"] == 2)
        holds(DOWN not in w.log(), "no message 'network down'")
        p.send_signal(signal.SIGTERM)
        equal(p.wait(60), 0)


run()
