#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Politeness, asserted from what the server saw."""
import collections
import contextlib
import signal
import time

from harness import Feedwheel, case, each_engine, equal, header, holds, origin, run, samples, server, wait_for
from names import Names


# NET-12, POL-02, POL-13
@case("plain GETs: own User-Agent, no cookies, no referrer, no cache busting, one request a feed")
def plain(base):
    with origin(base, samples(base), plans=["%2 cookie"]) as o:
        w = Feedwheel(base, "contact_url = https://feedwheel.example/bot\n")
        w.run("import", o.url_file)
        w.run_once()
        w.run("set", "--due", *o.urls)
        w.run_once()
        log = o.requests()
        equal(collections.Counter(collections.Counter(r["feed"] for r in log).values()), {2: len(o.urls)}, "two passes")
        for r in log:
            equal(r["method"], "GET")
            agent = header(r, "User-Agent")
            holds(len(agent) == 1 and agent[0].startswith("feedwheel/")
                  and "+https://feedwheel.example/bot" in agent[0], agent)
            for name in ("Cookie", "Referer", "Cache-Control", "Pragma", "Authorization", "Range", "Expect"):
                equal(header(r, name), [], name)
            holds("gzip" in header(r, "Accept-Encoding")[0], "gzip accepted")
            holds(len(header(r, "Accept")) == 1 and "?" not in r["target"], "Accept, and no query of ours")
            equal(r["target"], "/feed/%d" % r["feed"])
            equal(r["end"], "ok")


@case("per host: never more in flight than host_concurrency, over all workers") # invariant 6
def host_budget(base):
    with origin(base, samples(base), "--feeds", "60", "--hosts", "6", "--latency", "fixed:500") as o:
        w = Feedwheel(base, "host_concurrency = 2\n")
        w.run("import", o.url_file)
        w.run_once("--workers", "2")
        stats = o.stats()
        equal(stats["requests"] >= 60, True)
        holds(stats["host_in_flight_max"] <= 2, "in flight at one host: %d" % stats["host_in_flight_max"])
        holds(stats["in_flight_max"] > 6, "yet hosts are served side by side: %d" % stats["in_flight_max"])


def gaps_of(requests):
    """Milliseconds from one to the next."""
    came = sorted(r["came_us"] // 1000 for r in requests)
    return [b - a for a, b in zip(came, came[1:])]


def kept(o, w, visit, least_ms, also=lambda hosts: True):
    """The requests of a round of visits, whose gaps are at least so long. A worker that stands
    still when it is about to send comes too close to the next one, whatever it has noted: then
    there is another round, as long as that can be chance."""
    for _ in range(3):
        since = len(o.requests())
        visit()
        log = o.requests()[since:]
        hosts = [[r for r in log if r["host"] == h] for h in sorted({r["host"] for r in log})]
        gaps = [gaps_of(h) for h in hosts]
        if min(map(min, gaps)) >= least_ms and also(hosts):
            return hosts
        print("# gaps %s" % gaps)
        w.run("set", "--due", *[f["url"] for f in w.json("list")])
    raise AssertionError("gaps %s" % gaps)


@case("per host: the gap between two feeds is kept")
def host_gap(base):
    with origin(base, samples(base), "--feeds", "12", "--hosts", "3") as o:
        w = Feedwheel(base, "host_gap_ms = 400ms\n")
        w.run("import", o.url_file)

        def side_by_side(hosts): # none waits for another
            came = [[r["came_us"] for r in h] for h in hosts]
            return max(map(min, came)) < min(map(max, came))
        visit = lambda: equal(w.run_once("--workers", "2")["failed"], 0)
        hosts = kept(o, w, visit, 300, side_by_side) # the first fence of a run takes a little longer to its request
        equal([len(h) for h in hosts], [4, 4, 4])


def late_names(o):
    """Names of one hoster; every other one takes long to look up."""
    return ["http://late%d-%d.blogspot.com:%d/feed/%d" % (300 * (i % 2 == 0), i, o.port, i) for i in range(8)]


@case("per host: the gap counts from when a request is sent, however late that is")
def gap_of_late(base):
    names = Names()
    with origin(base, samples(base), "--feeds", "8") as o:
        w = Feedwheel(base, "host_gap_ms = 200ms\nhost_concurrency = 4\ndns_servers = %s\n" % names.address)
        w.run("add", *late_names(o))
        [requests] = kept(o, w, lambda: equal(w.run_once("--workers", "1")["failed"], 0), 150)
        gaps = gaps_of(requests)
        equal(len(gaps), 7)
        holds(max(gaps) >= 450, "some were late: %s" % gaps)


@each_engine("per host: so also between workers and machines, when one request at a time is all that it is asked",
             also=["sqlite"])
def gap_of_others(base, engine):
    names = Names()
    with origin(base, samples(base), "--feeds", "8") as o, contextlib.ExitStack() as stack:
        store = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        w = Feedwheel(base, "host_gap_ms = 200ms\nhost_concurrency = 1\ndns_servers = %s\n" %
                      names.address, store=store)
        w.run("add", *late_names(o))

        def by_machines():
            since = len(o.requests())
            machines = [w.start("run", "--quiet", "--workers", "2") for _ in range(2)]
            wait_for("all were asked for", lambda: len(o.requests()) - since >= 8)
            for m in machines:
                m.terminate()
                equal(m.wait(60), 0)
        [requests] = kept(o, w, by_machines, 150)
        equal(len(requests), 8)


@each_engine(
    "host_key = address: names at one address share a host's limits, after their first visit, with workers of several "
    "machines",
    also=["sqlite"])
def one_address(base, engine):
    names = Names()
    with origin(base, samples(base), "--feeds", "6", "--latency", "fixed:300") as o, contextlib.ExitStack() as stack:
        store = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        w = Feedwheel(base, "host_gap_ms = 0\nhost_concurrency = 1\ndns_servers = %s\n" % names.address, store=store)
        urls = ["http://feeds.name%d.example:%d/feed/%d" % (i, o.port, i) for i in range(6)]
        w.run("add", *urls)
        equal(w.run_once("--host-key", "address")["failed"], 0)
        holds(o.stats()["in_flight_max"] > 1, "the first visit goes by the name")
        equal(w.json("why", urls[0])["host"], "[127.1.0.99]")
        holds("all feeds of [127.1.0.99]" in w.run("why", urls[1]).stdout, w.run("why", urls[1]).stdout)
        w.run("set", "--due", *urls)
        since = len(o.requests())
        equal(w.run_once("--host-key", "address", "--workers", "2")["failed"], 0)
        spans = sorted((r["start_us"], r["end_us"]) for r in o.requests()[since:])
        equal(len(spans), 6)
        holds(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "one after another: %s" % spans)
        w.run("set", "--due", *urls)
        equal(w.run_once("--hosting-domains", "name0.example example")["failed"], 0)
        equal([w.json("why", u)["host"] for u in urls[:2]], ["name0.example", "example"])
        w.run("set", "--due", *urls)
        equal(w.run_once()["failed"], 0)
        equal(w.json("why", urls[0])["host"], "feeds.name0.example")


@case("who waits too long for a place at its address is put off, not failed")
def busy_address(base):
    names = Names()
    with origin(base, samples(base), "--feeds", "10", "--latency", "fixed:700") as o:
        w = Feedwheel(base, "address_concurrency = 1\ntotal_timeout_ms = 12s\nworkers = 1\n"
                      "dns_servers = %s\n" % names.address)
        w.run("add", *["http://feeds.name%d.example:%d/feed/%d" % (i, o.port, i) for i in range(10)])
        done = w.run_once()
        equal((done["feeds"], done["failed"], len(o.requests())), (10, 0, 10), "all of them, each once: %s" % done)
        holds(done["deferred"] > 0, "some waited for more than six seconds: %s" % done)
        equal(o.stats()["in_flight_max"], 1)


@case("a host that says 429 or 503 with Retry-After is left alone, all of its feeds") # POL-07
def cooldown(base):
    with origin(base, samples(base), "--feeds", "8", "--hosts", "2", "--latency", "fixed:50",
                plans=["%2=0 429,retry-after=3600"]) as o:
        w = Feedwheel(base, "host_concurrency = 1\nhost_gap_ms = 100ms\n")
        w.run("import", o.url_file)
        w.run_once()
        asked = collections.Counter(r["host"] for r in o.requests())
        equal(asked["127.1.0.2"], 4, "the healthy host")
        holds(asked["127.1.0.1"] <= 2, "requests to the tired host: %d" % asked["127.1.0.1"])


SCHEDULED = " FROM schedule JOIN feeds USING (position) WHERE id = ?"


def customers(what, conf, key):
    """A worker that runs on, and feeds of several names of one host."""
    @case("one name of a host that several share says 429: its own feeds wait, the others go on; three say so: the "
          "host, for an hour (%s)"
          % what)
    def cooldown_of_names(base):
        names = Names()
        with origin(base, samples(base), "--feeds", "20") as o:
            w = Feedwheel(base, conf + "workers = 1\nhost_concurrency = 2\nhost_gap_ms = 0\n"
                          "dns_servers = %s\n" % names.address)
            week = "/with/429,retry-after=604800/feed/%d"

            def url(name, i, plan="/feed/%d"):
                return "http://%s.hoster.example:%d%s" % (name, o.port, plan % i)

            def asked(i):
                return sum(r["feed"] == i for r in o.requests())

            def number(u):
                return w.json("why", u)["id"]

            def visited(u):
                return w.one("SELECT last_visit_ms" + SCHEDULED, number(u)) > 0

            def due_in_hours(u):
                return (w.one("SELECT due_at_ms" + SCHEDULED, number(u)) / 1000 - time.time()) / 3600

            def cooldown_hours():
                rows = w.sql(
                    "SELECT cooldown_until_ms FROM hosts WHERE host_id = (SELECT host_id" + SCHEDULED + ")",
                    number(evil[0]))
                return (rows[0][0] / 1000 - time.time()) / 3600 if rows and rows[0][0] else 0
            evil = [url("evil", 0, week), url("evil", 1), url("evil", 2)]
            good = [url("good%d" % i, i) for i in range(3, 6)]
            w.run("add", evil[0])
            worker = w.start("run", "--quiet")
            wait_for("the first says no", lambda: visited(evil[0]))
            w.run("add", *evil[1:], *good)
            for u in good:
                wait_for("others are fetched", lambda u=u: visited(u))
            for u in evil[1:]:
                wait_for("its own wait", lambda u=u: due_in_hours(u) > 24 * 6.9)
            equal([asked(i) for i in range(6)], [1, 0, 0, 1, 1, 1])
            equal((visited(evil[1]), cooldown_hours()), (False, 0))
            w.run("set", "--due", evil[1]) # for the owner neither, as with any host
            wait_for("it is put off again", lambda: due_in_hours(evil[1]) > 24 * 6.9)
            w.run("add", url("second", 6, week))
            wait_for("a second says so", lambda: visited(url("second", 6, week)))
            equal(cooldown_hours(), 0)
            w.run("add", url("third", 7, week))
            wait_for("a third says so: it is the host", lambda: cooldown_hours() > 0)
            holds(cooldown_hours() <= 1, "for %f hours" % cooldown_hours())
            worker.terminate()
            equal(worker.wait(60), 0)
            equal((asked(1), asked(2)), (0, 0))
            equal({w.json("why", u)["host"] for u in [*evil[:1], *good]}, {key}, "they share one host")


customers("hosting_domains", "host_key = domain\nhosting_domains = hoster.example\n", "hoster.example")
customers("host_key = address", "host_key = address\n", "[127.1.0.99]")


def dripping(what, workers, *arguments):
    @case("two feeds of one name hold a hoster's places for ten minutes: not all of them, the others' feeds are "
          "fetched meanwhile (%s)" % what)
    def places_of_names(base):
        names = Names()
        with origin(base, samples(base), "--feeds", "20") as o:
            w = Feedwheel(
                base,
                "host_concurrency = 2\ntotal_timeout_ms = 10m\nfirst_byte_timeout_ms = 10m\ndrain_timeout_ms = 0\n"
                "dns_servers = %s\n" % names.address)
            evil = ["http://evil.blogspot.com:%d/with/latency=600000/feed/%d" % (o.port, i) for i in range(3)]
            good = ["http://good%d.blogspot.com:%d/feed/%d" % (i % 3, o.port, i) for i in range(3, 20)]
            w.run("add", *evil, *good)
            p = w.start("run", "--quiet", "--workers", str(workers), *arguments)
            wait_for("the others' turn", lambda: w.one(
                "SELECT count(*) FROM schedule WHERE last_visit_ms > 0") == len(good), 60)
            equal(w.sql("SELECT id FROM feeds JOIN schedule USING (position) WHERE id <= 3 AND last_visit_ms > 0"), [])
            holds(o.stats()["in_flight_max"] <= 2, "and never more than two")
            p.terminate()
            p.wait(60)


dripping("a run", 1)
dripping("workers of one machine", 2)
dripping("run --once", 1, "--once")


@case("what deny_networks names is not asked, allowed or not, also behind a redirect") # NET-08
def denied(base):
    with origin(base, samples(base), "--feeds", "3", plans=["1 redirect=302:/doc/2"]) as o:
        w = Feedwheel(base, "deny_networks = 127.1.0.1\n")
        w.run("add", o.urls[0], o.urls[1], o.url(
            "/with/redirect=302:http%%3A%%2F%%2F127.1.0.1:%d%%2Fdoc%%2F2/feed/2" % o.port, "127.1.0.3"))
        equal(w.run_once()["failed"], 2)
        holds(all(r["host"] != "127.1.0.1" for r in o.requests()), "nothing went there")
        for n in 1, 3:
            equal(w.one("SELECT error FROM feeds WHERE id = ?", n), "fetch refused: the address is in deny_networks")


@each_engine("feeds that allow_networks had blocked are due when it has got a network, or deny_networks lost one, and "
             "no others", also=("sqlite",))
def unblocked(base, engine):
    with contextlib.nullcontext() if engine == "sqlite" else server(engine, base) as s, \
            origin(base, samples(base), "--feeds", "5", plans=["2 404"]) as o:
        w = Feedwheel(base, **({} if engine == "sqlite" else {"store": s.url()}))
        port_9 = "http://127.2.0.50:9/"
        urls = [*o.urls, port_9] # blocked; denied; 404; paused; visited with success; blocked by its port
        w.run("add", *urls)
        shut, denied = urls[0].split("/")[2].split(":")[0], urls[1].split("/")[2].split(":")[0]
        allow = ["127.1.0.%d" % k for k in range(1, 6) if "127.1.0.%d" % k != shut] + ["127.2.0.50"]

        def once(deny=(denied,), extra=(), fails=None):
            stats = w.run_once("--allow-networks", ",".join([*allow, *extra]), "--deny-networks", ",".join(deny))
            equal((stats["feeds"], stats["failed"]), fails, "feeds that were due, and such as failed")
            return {f["url"]: (f.get("last_result"), f["failures"]) for f in w.json("list")}
        w.run("pause", urls[3])
        seen = once(fails=(5, 4))
        equal([seen[urls[k]] for k in (0, 1, 2, 4, 5)], [("blocked", 1),
              ("blocked", 1), ("http", 1), ("ok", 0), ("blocked", 1)])
        holds("fetch refused: port 9 (to permit it, add the address with this port to allow_networks: "
              "ADDRESS:9)" in w.run(
            "why", port_9).stdout, w.run("why", port_9).stdout)
        once(fails=(0, 0)) # nothing has changed
        allow.reverse()
        once(fails=(0, 0)) # nor has it by being written in another order
        allow.remove("127.2.0.50")
        once(fails=(0, 0)) # less is permitted
        once(deny=(denied, "127.9.9.9"), fails=(0, 0))
        seen = once(extra=(shut, "127.2.0.50"), deny=(denied, "127.9.9.9"), fails=(2, 1)) # the port is not named
        equal([seen[urls[k]] for k in (0, 1, 2, 5)], [("ok", 0), ("blocked", 1), ("http", 1), ("blocked", 2)])
        seen = once(extra=(shut, "127.2.0.50:9"), deny=(denied, "127.9.9.9"), fails=(1, 1))
        equal(seen[port_9], ("connect", 3))
        seen = once(extra=(shut, "127.2.0.50:9"), deny=(), fails=(1, 0))
        equal([seen[urls[k]] for k in (1, 2)], [("ok", 0), ("http", 1)])
        once(extra=(shut, "127.2.0.50:9"), deny=(), fails=(0, 0))


@case("a run that reads its settings again makes due what it had blocked")
def unblocked_by_reload(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base, "deny_networks = 127.1.0.1\n")
        w.run("add", o.urls[0])
        p = w.start("run")
        wait_for("it is blocked", lambda: w.json("list")[0].get("last_result") == "blocked")
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("deny_networks = 127.1.0.2\n")
        p.send_signal(signal.SIGHUP)
        wait_for("it was fetched", lambda: w.json("list")[0]["last_result"] == "ok", 60)
        p.terminate()
        equal(p.wait(timeout=60), 0)


@case("credentials stay with their origin") # NET-11, NET-19
def credentials(base):
    with origin(base, samples(base), "--feeds", "3", plans=["0 redirect=302:feed/1", "2 redirect=302:/doc/2"]) as o:
        w = Feedwheel(base)
        for i in (0, 2):
            w.run("add", o.urls[i].replace("http://", "http://mira:geheim@"))
        w.run_once()
        log = o.requests()
        told = {(r["host"], r["target"]): header(r, "Authorization") for r in log}
        equal(told["127.1.0.1", "/feed/0"], ["Basic bWlyYTpnZWhlaW0="], "sent where they belong")
        equal(told["127.1.0.2", "/feed/1"], [], "not sent to another host")
        holds(told["127.1.0.3", "/doc/2"][0].startswith("Basic "), "kept within the origin")
        shown = "".join(w.run(*c).stdout for c in (["list"], ["list", "--json"], ["export"], ["show", o.urls[0]]))
        holds("geheim" not in shown, "never shown")


run()
