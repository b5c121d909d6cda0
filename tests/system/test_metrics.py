#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""/metrics: its format, and that its numbers equal the store's, also after kills."""
import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess

from http_server import http_server
from harness import SOON, Feedwheel, case, equal, holds, origin, run, samples, wait_for, workers_of

NAME = re.compile(r"feedwheel_[a-z][a-z0-9_]*$")
SAMPLE = re.compile(r"([a-z0-9_]+)(?:\{((?:[a-z]+=\"[^\"\\\n]*\",?)+)\})? (\S+)$")
LABEL = re.compile(r"([a-z]+)=\"([^\"\\]*)\"")

KINDS = ("none", "ok", "same", "not_modified", "http", "dns", "connect", "tls", "timeout",
         "protocol", "format", "limit", "blocked", "redirect", "crash", "gone", "local")


class Metrics:
    """A scrape, read as strictly as the format allows: {name: {labels: value}}."""

    def __init__(self, text):
        self.type, self.value, current = {}, {}, None
        holds(text.endswith("\n"), "a line feed at the end")
        for line in text[:-1].split("\n"):
            word = line.split(" ", 3)
            if line.startswith("# HELP "):
                current = word[2]
                holds(NAME.match(current) and current not in self.type, "a valid new name: " + line)
                holds(not word[3][0].islower() and word[3].endswith("."), "a sentence: " + line)
                self.type[current], self.value[current] = None, {}
            elif line.startswith("# TYPE "):
                equal((word[2], self.type[current]), (current, None), line)
                self.type[current] = word[3]
                holds(word[3] in ("counter", "gauge", "histogram"), line)
                equal(current.endswith("_total"), word[3] == "counter", "a counter's name: " + line)
                holds(not re.search("_(ms|us|milli|kib|minutes)", current), "base units: " + line)
            else:
                m = SAMPLE.match(line)
                holds(m, "a sample: " + line)
                part = m[1].removeprefix(current)
                parts = ("_bucket", "_sum", "_count") if self.type[current] == "histogram" else ("",)
                holds(part in parts, "in its place: " + line)
                labels = tuple(LABEL.findall(m[2] or "")) + ((("part", part),) if part else ())
                holds(labels not in self.value[current], "no duplicate: " + line)
                self.value[current][labels] = float(m[3])
        for name, kind in self.type.items():
            if kind == "histogram":
                self.histogram(name)

    def histogram(self, name):
        v = self.value[name]
        le = [(float(k[0][1]), n) for k, n in v.items() if k[-1] == ("part", "_bucket")]
        equal(le, sorted(le), name + ": buckets in order")
        equal(sorted(n for _, n in le), [n for _, n in le], name + ": each bucket includes those below")
        equal((le[-1][0], le[-1][1]), (float("inf"), v[(("part", "_count"),)]), name + ": the last bucket includes all")

    def get(self, name, **labels):
        return self.value["feedwheel_" + name].get(tuple(labels.items()), 0)

    def count(self, name):
        return self.get(name, part="_count")

    def all(self, name):
        return {k[0][1]: v for k, v in self.value["feedwheel_" + name].items()}


def scrape(d):
    status, headers, text = d.request("GET", "/metrics")
    equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4"))
    return Metrics(text)


@contextlib.contextmanager
def run_with_server(base, conf, *arguments, plans=(), feeds=12):
    """A run with a server, and an origin with its feeds."""
    with origin(base, samples(base), "--feeds", str(feeds), *arguments, plans=plans) as o:
        w = Feedwheel(base, conf)
        w.run("import", o.url_file)
        with http_server(base, command="run", conf=conf) as d:
            yield d, o


@case("the workers' counters equal the store's numbers")
def as_stored(base):
    plans = ["%6=1 404", "%6=2 redirect=301:/feed/0", "%6=3 junk", "%6=4 coding=gzip", "%6=5 reset=start"]
    with run_with_server(base, "interval_min_ms = 1h\n", plans=plans, feeds=24) as (d, o):
        w = d.feedwheel
        wait_for("all visits", lambda: w.one("SELECT count(*) FROM visits") == len(o.urls))
        wait_for("their counts", lambda: sum(scrape(d).all("visits_total").values()) >= len(o.urls))
        m = scrape(d)
        equal({k: n for k, n in m.all("visits_total").items() if n},
              {KINDS[k]: n for k, n in w.sql("SELECT kind, count(*) FROM visits GROUP BY kind")})
        equal({k: n for k, n in m.all("fetch_responses_total").items() if n},
              dict(w.sql("SELECT (http_status / 100) || 'xx', count(*) FROM visits WHERE http_status > 0 GROUP BY 1")))
        [sums] = w.sql(
            "SELECT sum(item_n), sum(new_n), sum(changed_n), sum(wire_bytes), sum(body_bytes), sum(redirects) "
            "FROM visits")
        names = (
            "items", "entries_new", "entries_changed", "fetch_received_bytes", "fetch_decoded_bytes",
            "fetch_redirects")
        equal([m.get(n + "_total") for n in names], [float(n) for n in sums])
        equal(m.get("entries_new_total"), w.one("SELECT count(*) FROM entries"))
        holds(m.get("fetch_decoded_bytes_total") > m.get("fetch_received_bytes_total") > 0, "some are compressed")
        equal(m.count("visit_lateness_seconds"), len(o.urls))
        equal(m.count("fetch_duration_seconds"), w.one("SELECT count(*) FROM visits WHERE total_us > 0"))
        equal(m.count("parse_duration_seconds"), w.one("SELECT count(*) FROM visits WHERE parse_us > 0"))
        for operation in "commit", "claim":
            holds(m.count("store_%s_duration_seconds" % operation) > 0, operation)
        equal((m.get("claims_total"), m.get("leases_lost_total"), m.get("worker_restarts_total")), (len(o.urls), 0, 0))
        equal(m.get("build_info", version=w.run("--version").stdout.split()[1]), 1)
        for process in "master", "worker", "server":
            holds(m.get("process_resident_memory_bytes", process=process, index="0") > 1 << 20, process)
        equal(m.get("workers_alive"), m.get("workers"))
        want = [0, 0, w.one("SELECT count(*) FROM schedule WHERE fail_n > 0"), w.one("SELECT count(*) FROM entries")]

        def gauges(): # the first read of the store may be older than the visits
            m = scrape(d)
            names = "feeds_due", "feeds_in_flight", "feeds_failing", "entries"
            return "feedwheel_feeds" in m.value and [m.get(n) for n in names] == want
        wait_for("the store's gauges: %s" % want, gauges)
        equal(scrape(d).all("feeds"), {"active": len(o.urls), "paused": 0, "gone": 0, "quarantined": 0})


@case("counters never fall when a worker or the server is killed")
def survives(base):
    with run_with_server(base, SOON + "workers = 2\n") as (d, _):
        def visited(n):
            return lambda: sum(scrape(d).all("visits_total").values()) >= n
        wait_for("some visits", visited(20))
        before = scrape(d)
        *workers, server_pid = workers_of(d.process) # in the order of their start
        equal(len(workers), 2)
        os.kill(workers[0], signal.SIGKILL)
        wait_for("another worker", lambda: scrape(d).get("worker_restarts_total") == 1)
        wait_for("both workers", lambda: scrape(d).get("workers_alive") == 2)
        seen = sum(before.all("visits_total").values())
        wait_for("more visits", visited(seen + 24))
        after = scrape(d)
        for name, kind in before.type.items():
            if kind == "counter" and not name.endswith("process_cpu_seconds_total"):
                for labels, value in before.value[name].items():
                    holds(after.value[name][labels] >= value, "%s %s rises" % (name, labels))
        name = "visits_total"
        holds(after.all(name)["not_modified"] > before.all(name)["not_modified"], "304 are counted")
        os.kill(server_pid, signal.SIGKILL)
        wait_for("another server", lambda: restarted(d))
        again = scrape(d)
        holds(again.get("claims_total") >= after.get("claims_total"), "the engine's counters outlive the server")


def restarted(d):
    try:
        return scrape(d).get("server_restarts_total") == 1
    except (OSError, http.client.HTTPException):
        return False


@case("a server alone has no metrics of workers, and promtool finds no fault")
def alone(base):
    with http_server(base) as d:
        equal(d.push({"property": "news", "section": 1, "id": 1})[0], 200)
        m = scrape(d)
        equal((m.get("push_stored_rows_total"), m.get("workers"), m.count("flush_seconds")), (1, 0, 1))
        holds("feedwheel_visits_total" not in m.value, "no counter of visits")
        if shutil.which("promtool"):
            r = subprocess.run(
                ["promtool", "check", "metrics"],
                input=d.request("GET", "/metrics")[2], capture_output=True, text=True, check=False)
            equal((r.returncode, r.stdout + r.stderr), (0, ""), "promtool")


if __name__ == "__main__":
    run()
