#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Politeness, by the requests in the origin's log."""
import collections
import contextlib
import os
import signal
import time

from harness import (
    SOON, Feedwheel, case, each_engine, equal, header, holds, let_pass, origin, run, samples, server, wait_for,
    workers_of)
from names import Names


# NET-12, POL-02, POL-13
@case("requests are plain GETs with our User-Agent, without cookies, referrer or cache busting, one for each feed")
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
            holds(len(header(r, "Accept")) == 1 and "?" not in r["target"], "Accept, and no added query")
            equal(r["target"], "/feed/%d" % r["feed"])
            equal(r["end"], "ok")


@case("no host has more requests in flight than host_concurrency, over all workers") # invariant 6
def host_budget(base):
    with origin(base, samples(base), "--feeds", "60", "--hosts", "6", "--latency", "fixed:500") as o:
        w = Feedwheel(base, "host_concurrency = 2\n")
        w.run("import", o.url_file)
        w.run_once("--workers", "2")
        stats = o.stats()
        equal(stats["requests"] >= 60, True)
        holds(stats["host_in_flight_max"] <= 2, "in flight at one host: %d" % stats["host_in_flight_max"])
        holds(stats["in_flight_max"] > 6, "in flight at all hosts: %d" % stats["in_flight_max"])


def gaps_of(requests):
    """Milliseconds between requests."""
    came = sorted(r["came_us"] // 1000 for r in requests)
    return [b - a for a, b in zip(came, came[1:])]


def kept(o, w, visit, least_ms, also=lambda hosts: True):
    """The requests of a round of visits, by host; all gaps are at least this long. Up to three
    rounds are made for `also`, which a stall of the machine may spoil."""
    for _ in range(3):
        since = len(o.requests())
        visit()
        log = o.requests()[since:]
        hosts = [[r for r in log if r["host"] == h] for h in sorted({r["host"] for r in log})]
        gaps = [gaps_of(h) for h in hosts]
        holds(min(map(min, gaps)) >= least_ms, "gaps %s" % gaps)
        if also(hosts):
            return hosts
        w.run("set", "--due", *[f["url"] for f in w.json("list")])
    raise AssertionError("not seen in three rounds, gaps %s" % gaps)


@case("two requests to a host are at least host_gap_ms apart")
def host_gap(base):
    with origin(base, samples(base), "--feeds", "12", "--hosts", "3") as o:
        w = Feedwheel(base, "host_gap_ms = 400ms\n")
        w.run("import", o.url_file)

        def at_the_same_time(hosts): # no host waits for another
            came = [[r["came_us"] for r in h] for h in hosts]
            return max(map(min, came)) < min(map(max, came))
        visit = lambda: equal(w.run_once("--workers", "2")["failed"], 0)
        hosts = kept(o, w, visit, 380, at_the_same_time)
        equal([len(h) for h in hosts], [4, 4, 4])


def gap_seen(base, disturb=lambda p, more: None):
    """No two requests to a host are closer than the gap, as the origin's kernel received them: many
    hosts that start at once, redirects, connections that the server closes."""
    plans = ["%7=2 redirect=302:/doc/2", "%7=3 redirect=301:/doc/3", "%29=5 shut=start"]
    with origin(base, samples(base), "--feeds", "300", "--hosts", "60", "--latency", "lognormal:60:0.9",
                plans=plans) as o:
        # without a sandbox others see what a worker does
        w = Feedwheel(base, SOON + "host_gap_ms = 300ms\nhost_concurrency = 2\nlease_ms = 3s\nsandbox = off\n")
        w.run("import", o.url_file)
        p = w.start("run", "--quiet", "--workers", "2")

        def more(n):
            until = o.stats()["requests"] + n
            wait_for("%d more requests" % n, lambda: o.stats()["requests"] >= until, 60)
        more(600)
        disturb(p, more)
        p.terminate()
        equal(p.wait(60), 0)
        log = o.requests()
        holds(sum(r["target"].startswith("/doc/") for r in log) >= 60, "redirects were followed")
        seen = collections.defaultdict(list)
        for r in log:
            seen[r["host"]].append(r)
        short = [g for rs in seen.values() for g in gaps_of(rs) if g < 285]
        equal(short, [], "gaps in ms, under 95 %% of host_gap_ms, of %d requests" % len(log))


@case("the origin sees no two requests to a host that are closer than host_gap_ms: a busy start, redirects, closed "
      "connections") # invariant 6
def gap_of_redirects(base):
    gap_seen(base)


def looks_for_events(pid):
    """Did it stop in a call of epoll? Then it is not between the last look at its lease and the request itself,
    where no program can know that it stood still."""
    def file_of_call():
        with open("/proc/%d/task/%d/syscall" % (pid, pid), encoding="ascii") as f:
            call = f.read().split()
        return os.readlink("/proc/%d/fd/%d" % (pid, int(call[1], 16))) if len(call) > 6 else ""
    wait_for("the worker to stop", lambda: state_of(pid) == "T")
    with contextlib.suppress(OSError): # another call, which has no file
        return "eventpoll" in file_of_call()
    return False


def state_of(pid):
    with open("/proc/%d/task/%d/stat" % (pid, pid), encoding="ascii", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    while not looks_for_events(pid):
        os.kill(pid, signal.SIGCONT)
        let_pass(0.001, "another moment")
        os.kill(pid, signal.SIGSTOP)


@case("the same while workers are killed, and stand still for longer than their lease")
def gap_after_kills(base):
    def disturb(p, more):
        for _ in range(2):
            os.kill(workers_of(p)[0], signal.SIGKILL)
            more(100)
            still = workers_of(p)[-1]
            stopped(still)
            more(400) # also to its hosts, by the other
            os.kill(still, signal.SIGCONT)
            more(100)
    gap_seen(base, disturb)


def late_names(o):
    """Names of one hosting domain; the lookup of every other name takes 300 ms."""
    return ["http://late%d-%d.blogspot.com:%d/feed/%d" % (300 * (i % 2 == 0), i, o.port, i) for i in range(8)]


@case("the gap counts from the moment when a request is sent, after a slow name lookup too")
def gap_of_late(base):
    names = Names()
    with origin(base, samples(base), "--feeds", "8") as o:
        w = Feedwheel(base, "host_gap_ms = 200ms\nhost_concurrency = 4\ndns_servers = %s\n" % names.address)
        w.run("add", *late_names(o))
        [requests] = kept(o, w, lambda: equal(w.run_once("--workers", "1")["failed"], 0), 190)
        gaps = gaps_of(requests)
        equal(len(gaps), 7)
        holds(max(gaps) >= 450, "gaps with a slow lookup: %s" % gaps)


@each_engine("with host_concurrency = 1 the gap also holds between workers and machines", also=["sqlite"])
def gap_between_machines(base, engine):
    names = Names()
    with origin(base, samples(base), "--feeds", "8") as o, contextlib.ExitStack() as stack:
        store = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        w = Feedwheel(base, "host_gap_ms = 200ms\nhost_concurrency = 1\ndns_servers = %s\n" %
                      names.address, store=store)
        w.run("add", *late_names(o))

        def by_machines():
            since = len(o.requests())
            machines = [w.start("run", "--quiet", "--workers", "2") for _ in range(2)]
            wait_for("requests to all feeds", lambda: len(o.requests()) - since >= 8)
            for m in machines:
                m.terminate()
                equal(m.wait(60), 0)
        [requests] = kept(o, w, by_machines, 190)
        equal(len(requests), 8)


@each_engine("with host_key = address names at one address share a host's limits after their first visit, over all "
             "workers", also=["sqlite"])
def one_address(base, engine):
    names = Names()
    with origin(base, samples(base), "--feeds", "6", "--latency", "fixed:150") as o, contextlib.ExitStack() as stack:
        store = None if engine == "sqlite" else stack.enter_context(server(engine, base)).url()
        w = Feedwheel(base, "host_gap_ms = 0\nhost_concurrency = 1\ndns_servers = %s\n" % names.address, store=store)
        urls = ["http://feeds.name%d.example:%d/feed/%d" % (i, o.port, i) for i in range(6)]
        w.run("add", *urls)
        equal(w.run_once("--host-key", "address")["failed"], 0)
        holds(o.stats()["in_flight_max"] > 1, "at the first visit each name has limits of its own")
        equal(w.json("why", urls[0])["host"], "[127.1.0.99]")
        holds("all feeds of [127.1.0.99]" in w.run("why", urls[1]).stdout, w.run("why", urls[1]).stdout)
        w.run("set", "--due", *urls)
        since = len(o.requests())
        equal(w.run_once("--host-key", "address", "--workers", "2")["failed"], 0)
        spans = sorted((r["start_us"], r["end_us"]) for r in o.requests()[since:])
        equal(len(spans), 6)
        holds(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "one at a time: %s" % spans)
        w.run("set", "--due", *urls)
        equal(w.run_once("--hosting-domains", "name0.example example")["failed"], 0)
        equal([w.json("why", u)["host"] for u in urls[:2]], ["name0.example", "example"])
        w.run("set", "--due", *urls)
        equal(w.run_once()["failed"], 0)
        equal(w.json("why", urls[0])["host"], "feeds.name0.example")


@case("a feed that waits too long for a slot of its address is deferred, and its visit does not fail")
def busy_address(base):
    names = Names()
    with origin(base, samples(base), "--feeds", "10", "--latency", "fixed:700") as o:
        w = Feedwheel(base, "address_concurrency = 1\ntotal_timeout_ms = 12s\nworkers = 1\n"
                      "dns_servers = %s\n" % names.address)
        w.run("add", *["http://feeds.name%d.example:%d/feed/%d" % (i, o.port, i) for i in range(10)])
        done = w.run_once()
        equal((done["feeds"], done["failed"], len(o.requests())), (10, 0, 10), "one request for each feed: %s" % done)
        holds(done["deferred"] > 0, "feeds that waited for more than six seconds: %s" % done)
        equal(o.stats()["in_flight_max"], 1)


@case("after a 429 or 503 with Retry-After none of the host's feeds is polled") # POL-07
def cooldown(base):
    with origin(base, samples(base), "--feeds", "8", "--hosts", "2", "--latency", "fixed:50",
                plans=["%2=0 429,retry-after=3600"]) as o:
        w = Feedwheel(base, "host_concurrency = 1\nhost_gap_ms = 100ms\n")
        w.run("import", o.url_file)
        w.run_once()
        requests = collections.Counter(r["host"] for r in o.requests())
        equal(requests["127.1.0.2"], 4, "requests to the other host")
        holds(requests["127.1.0.1"] <= 2, "requests to the host that answered 429: %d" % requests["127.1.0.1"])


SCHEDULED = " FROM schedule JOIN feeds USING (position) WHERE id = ?"


def shared_host(setting, conf, key):
    """Feeds of several names that share a host, visited by one run."""
    @case("a 429 with Retry-After of one name delays the feeds of that name only; after those of three names the whole "
          "host has a cooldown of an hour (%s)" % setting)
    def cooldown_of_names(base):
        names = Names()
        with origin(base, samples(base), "--feeds", "20") as o:
            w = Feedwheel(base, conf + "workers = 1\nhost_concurrency = 2\nhost_gap_ms = 0\n"
                          "dns_servers = %s\n" % names.address)
            week = "/with/429,retry-after=604800/feed/%d"

            def url(name, i, plan="/feed/%d"):
                return "http://%s.hoster.example:%d%s" % (name, o.port, plan % i)

            def requests_to(i):
                return sum(r["feed"] == i for r in o.requests())

            def id_of(u):
                return w.json("why", u)["id"]

            def visited(u):
                return w.one("SELECT last_visit_ms" + SCHEDULED, id_of(u)) > 0

            def due_in_hours(u):
                return (w.one("SELECT due_at_ms" + SCHEDULED, id_of(u)) / 1000 - time.time()) / 3600

            def cooldown_hours():
                rows = w.sql(
                    "SELECT cooldown_until_ms FROM hosts WHERE host_id = (SELECT host_id" + SCHEDULED + ")",
                    id_of(throttled[0]))
                return (rows[0][0] / 1000 - time.time()) / 3600 if rows and rows[0][0] else 0
            throttled = [url("throttled", 0, week), url("throttled", 1), url("throttled", 2)]
            good = [url("good%d" % i, i) for i in range(3, 6)]
            w.run("add", throttled[0])
            worker = w.start("run", "--quiet")
            wait_for("the first 429", lambda: visited(throttled[0]))
            w.run("add", *throttled[1:], *good)
            for u in good:
                wait_for("visits of the other names", lambda u=u: visited(u))
            for u in throttled[1:]:
                wait_for("the delay of the name", lambda u=u: due_in_hours(u) > 24 * 6.9)
            equal([requests_to(i) for i in range(6)], [1, 0, 0, 1, 1, 1])
            equal((visited(throttled[1]), cooldown_hours()), (False, 0))
            w.run("set", "--due", throttled[1]) # does not end the delay, as with any host
            wait_for("the delay of the name again", lambda: due_in_hours(throttled[1]) > 24 * 6.9)
            w.run("add", url("second", 6, week))
            wait_for("the second 429", lambda: visited(url("second", 6, week)))
            equal(cooldown_hours(), 0)
            w.run("add", url("third", 7, week))
            wait_for("the host's cooldown after the third 429", lambda: cooldown_hours() > 0)
            holds(cooldown_hours() <= 1, "for %f hours" % cooldown_hours())
            worker.terminate()
            equal(worker.wait(60), 0)
            equal((requests_to(1), requests_to(2)), (0, 0))
            equal({w.json("why", u)["host"] for u in [*throttled[:1], *good]}, {key}, "the host of all names")


shared_host("hosting_domains", "host_key = domain\nhosting_domains = hoster.example\n", "hoster.example")
shared_host("host_key = address", "host_key = address\n", "[127.1.0.99]")


def slow_name(command, workers, *arguments):
    @case("feeds of one name that take ten minutes do not use all slots of a hosting domain: feeds of other names are "
          "fetched beside them (%s)" % command)
    def slots_of_names(base):
        names = Names()
        with origin(base, samples(base), "--feeds", "20") as o:
            w = Feedwheel(
                base,
                "host_concurrency = 2\ntotal_timeout_ms = 10m\nfirst_byte_timeout_ms = 10m\ndrain_timeout_ms = 0\n"
                "dns_servers = %s\n" % names.address)
            slow = ["http://slow.blogspot.com:%d/with/latency=600000/feed/%d" % (o.port, i) for i in range(3)]
            good = ["http://good%d.blogspot.com:%d/feed/%d" % (i % 3, o.port, i) for i in range(3, 20)]
            w.run("add", *slow, *good)
            p = w.start("run", "--quiet", "--workers", str(workers), *arguments)
            wait_for("visits of the other names", lambda: w.one(
                "SELECT count(*) FROM schedule WHERE last_visit_ms > 0") == len(good), 60)
            equal(w.sql("SELECT id FROM feeds JOIN schedule USING (position) WHERE id <= 3 AND last_visit_ms > 0"), [])
            holds(o.stats()["in_flight_max"] <= 2, "in flight: %d" % o.stats()["in_flight_max"])
            p.terminate()
            p.wait(60)


slow_name("a run", 1)
slow_name("two workers", 2)
slow_name("run --once", 1, "--once")


@case("an address in deny_networks is not contacted, allowed or not, also after a redirect") # NET-08
def denied(base):
    with origin(base, samples(base), "--feeds", "3", plans=["1 redirect=302:/doc/2"]) as o:
        w = Feedwheel(base, "deny_networks = 127.1.0.1\n")
        w.run("add", o.urls[0], o.urls[1], o.url(
            "/with/redirect=302:http%%3A%%2F%%2F127.1.0.1:%d%%2Fdoc%%2F2/feed/2" % o.port, "127.1.0.3"))
        equal(w.run_once()["failed"], 2)
        holds(all(r["host"] != "127.1.0.1" for r in o.requests()), "no request to the denied address")
        for n in 1, 3:
            equal(w.one("SELECT error FROM feeds WHERE id = ?", n), "fetch refused: the address is in deny_networks")


@each_engine("blocked feeds become due when allow_networks gains a network or deny_networks loses one, other feeds do "
             "not", also=("sqlite",))
def unblocked(base, engine):
    with contextlib.nullcontext() if engine == "sqlite" else server(engine, base) as s, \
            origin(base, samples(base), "--feeds", "5", plans=["2 404"]) as o:
        w = Feedwheel(base, store=s.url() if s else None)
        port_9 = "http://127.2.0.50:9/"
        urls = [*o.urls, port_9] # blocked; denied; 404; paused; visited with success; blocked by its port
        w.run("add", *urls)
        blocked, denied = urls[0].split("/")[2].split(":")[0], urls[1].split("/")[2].split(":")[0]
        allow = ["127.1.0.%d" % k for k in range(1, 6) if "127.1.0.%d" % k != blocked] + ["127.2.0.50"]

        def once(visited, failed, deny=(denied,), extra=()):
            stats = w.run_once("--allow-networks", ",".join([*allow, *extra]), "--deny-networks", ",".join(deny))
            equal((stats["feeds"], stats["failed"]), (visited, failed), "visits, failures")
            return {f["url"]: (f.get("last_result"), f["failures"]) for f in w.json("list")}
        w.run("pause", urls[3])
        results = once(5, 4)
        equal([results[urls[k]] for k in (0, 1, 2, 4, 5)],
              [("blocked", 1), ("blocked", 1), ("http", 1), ("ok", 0), ("blocked", 1)])
        why = w.run("why", port_9).stdout
        holds("fetch refused: port 9 (to permit it, add the address with this port to allow_networks: ADDRESS:9)"
              in why, why)
        once(0, 0) # the same networks
        allow.reverse()
        once(0, 0) # the same networks in another order
        allow.remove("127.2.0.50")
        once(0, 0) # fewer networks are allowed
        deny = (denied, "127.9.9.9")
        once(0, 0, deny)
        results = once(2, 1, deny, extra=(blocked, "127.2.0.50")) # without the port
        equal([results[urls[k]] for k in (0, 1, 2, 5)], [("ok", 0), ("blocked", 1), ("http", 1), ("blocked", 2)])
        extra = (blocked, "127.2.0.50:9")
        results = once(1, 1, deny, extra)
        equal(results[port_9], ("connect", 3))
        results = once(1, 0, (), extra)
        equal([results[urls[k]] for k in (1, 2)], [("ok", 0), ("http", 1)])
        once(0, 0, (), extra)


@case("after a reload with other networks a run fetches the feeds that it had blocked")
def unblocked_by_reload(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base, "deny_networks = 127.1.0.1\n")
        w.run("add", o.urls[0])
        p = w.start("run")
        wait_for("the blocked visit", lambda: w.json("list")[0].get("last_result") == "blocked")
        with open(w.conf, "a", encoding="ascii") as f:
            f.write("deny_networks = 127.1.0.2\n")
        p.send_signal(signal.SIGHUP)
        wait_for("the visit after the reload", lambda: w.json("list")[0]["last_result"] == "ok", 60)
        p.terminate()
        equal(p.wait(timeout=60), 0)


@case("credentials are sent to their own origin only") # NET-11, NET-19
def credentials(base):
    with origin(base, samples(base), "--feeds", "3", plans=["0 redirect=302:feed/1", "2 redirect=302:/doc/2"]) as o:
        w = Feedwheel(base)
        for i in (0, 2):
            w.run("add", o.urls[i].replace("http://", "http://mira:geheim@"))
        w.run_once()
        sent = {(r["host"], r["target"]): header(r, "Authorization") for r in o.requests()}
        equal(sent["127.1.0.1", "/feed/0"], ["Basic bWlyYTpnZWhlaW0="], "sent to their host")
        equal(sent["127.1.0.2", "/feed/1"], [], "sent to another host")
        holds(sent["127.1.0.3", "/doc/2"][0].startswith("Basic "), "sent after a redirect within the origin")
        shown = "".join(w.run(*c).stdout for c in (["list"], ["list", "--json"], ["export"], ["show", o.urls[0]]))
        holds("geheim" not in shown, "the password is shown")


run()
