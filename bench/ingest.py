#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""make bench-ingest: our server compared with nginx's empty response to the same POST, in one table.

wrk, both servers and the database share the machine's cores. Ours and nginx alternate; a figure is
the median of RUNS rounds and of the ratios within them. Database servers are private, as durable as
in production. After each part the store must have each row that was acknowledged, or the benchmark
ends. Exit status 1: a row is short (table.py).

  RUNS=3 DURATION=5 STORES="sqlite postgres mysql redis" ONLY=words  (ONLY: accepted durable batches pages)
  PLOTS=FOLDER  ring fill and memory over time as SVG (default: build/bench-ingest)
"""
import contextlib
import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import collect
import table
from collect import BUILD, RUNS, Feedwheel
from harness import Server, engines, wait_for
from ingest_plot import plot
from table import benchmark, head, median, ratio_row, row, selection, size

DURATION = size("DURATION", 5, 1)
BETWEEN_MS = size("BETWEEN_MS", 0, 50) # two batches of a connection: a test needs no load
SUSTAINED = 1 if "TINY" in os.environ else 2 * DURATION
HERE = os.path.dirname(os.path.abspath(__file__))
PUSH = "/twirp/stats.StatsService/Push"
DURABLE = "/v1/events?ack=durable"
EVENTS = size("EVENTS", 100, 5) # of a batch
TICK = os.sysconf("SC_CLK_TCK")
WORK = os.path.join(BUILD, "bench-ingest")
BULK_ROWS = size("BULK_ROWS", 1000000, 1000)

NGINX = """daemon off;
pid {home}/pid;
error_log {home}/error.log;
worker_processes auto;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path {home}/body;
	proxy_temp_path {home}/proxy;
	fastcgi_temp_path {home}/fastcgi;
	uwsgi_temp_path {home}/uwsgi;
	scgi_temp_path {home}/scgi;
	server {{
		listen 127.0.0.1:{port} reuseport backlog=4096;
		location / {{ return 200; }}
	}}
}}
"""


def die(message, *arguments):
    table.die("bench-ingest: " + message, *arguments)


# ---- processes -----------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def family(pid):
    """A process and its descendants."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        children = [int(x) for x in f.read().split()]
    return [pid] + [p for c in children for p in family(c)]


def cpu_us(pid):
    """Of a process and its descendants so far."""
    sum_us = 0
    for p in family(pid):
        with open("/proc/%d/stat" % p, encoding="utf-8") as f:
            user, system = f.read().rpartition(")")[2].split()[11:13]
        sum_us += (int(user) + int(system)) * 1000000 // TICK
    return sum_us


def rss_bytes(pid):
    """Of the descendants of a process."""
    sum_kib = 0
    for p in family(pid)[1:]:
        with open("/proc/%d/status" % p, encoding="utf-8") as f:
            sum_kib += sum(int(l.split()[1]) for l in f if l.startswith("VmRSS"))
    return sum_kib * 1024


class Nginx:
    """nginx that answers each request with 200 and no body."""

    def __init__(self, base):
        home = os.path.join(base, "nginx")
        os.mkdir(home)
        self.port = free_port()
        with open(os.path.join(home, "conf"), "w", encoding="ascii") as f:
            f.write(NGINX.format(home=home, port=self.port))
        self.process = subprocess.Popen( # pylint: disable=consider-using-with
            ["setpriv", "--pdeathsig", "SIGTERM", "nginx", "-c", os.path.join(home, "conf")], stderr=subprocess.DEVNULL)
        wait_for("nginx", self.responds)

    def responds(self):
        if self.process.poll() is not None:
            die("nginx does not start")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()


class HttpServer:
    """Our server with a store."""

    def __init__(self, base, store, *arguments, server=None):
        self.port = free_port()
        self.base = base
        self.database = server.process.pid if server else None
        os.makedirs(base, exist_ok=True)
        self.fw = Feedwheel(base, store=store)
        self.process = self.fw.start("serve", "--listen", "127.0.0.1:%d" % self.port, *arguments)
        wait_for("the server", self.responds)

    def responds(self):
        if self.process.poll() is not None:
            die("feedwheel serve: %s", self.fw.last_log())
        with contextlib.suppress(OSError):
            return self.request("/readyz")[0] == 200
        return False

    def request(self, path, body=None, content_type="application/json"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            c.request("POST" if body else "GET", path, body, {"Content-Type": content_type} if body else {})
            r = c.getresponse()
            return r.status, r.read().decode()
        finally:
            c.close()

    def ring(self):
        return json.loads(self.request("/v1/ring")[1])

    def metric(self, name):
        return next(float(l.split()[1]) for l in self.request("/metrics")[1].splitlines() if l.startswith(name + " "))

    def all_stored(self):
        """Waits until all rows are stored, also those of clients that have gone and left requests in their sockets."""
        def empty():
            alone = self.metric("feedwheel_http_connections") <= 2
            r = self.ring()
            return alone and r["stored"] == r["accepted"]
        wait_for("the rings to be empty", empty, 60)

    def stop(self):
        self.process.terminate()
        if self.process.wait(60):
            die("feedwheel serve: %s", self.fw.last_log())


class Watch(threading.Thread):
    """Records ring fill and memory at intervals while a load runs."""

    EVERY_S = 0.05

    def __init__(self, http_server):
        super().__init__()
        self.http_server, self.on, self.seen = http_server, True, []
        self.start()

    def run(self):
        start = time.monotonic()
        while self.on:
            now, ring = time.monotonic() - start, self.http_server.ring()
            self.seen.append({"s": now, "fill": 100 * ring["fill_max_bytes"] * ring["rings"] / ring["ring_bytes"],
                              "accepted": ring["accepted"], "rss": rss_bytes(self.http_server.process.pid)})
            time.sleep(self.EVERY_S)

    def end(self):
        self.on = False
        self.join()
        return self.seen


def wrk(port, path, connections=100, seconds=DURATION, events=1, patient=False):
    command = ["wrk", "-t4", "-c%d" % connections, "-d%ds" % seconds, "--timeout", "10s",
               "-s", os.path.join(HERE, "ingest", "push.lua"), "http://127.0.0.1:%d%s" % (port, path),
               "--", str(events), str(BETWEEN_MS if events > 1 else 0)]
    r = subprocess.run(command + (["patient"] if patient else []), capture_output=True, text=True, check=False)
    try:
        figures = json.loads(r.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        die("wrk: %s", r.stderr)
    if figures["broken"] or (figures["refused"] and not patient):
        die("wrk: %d requests failed, %d were refused: %s", figures["broken"], figures["refused"], figures)
    figures["rate"] = (figures["requests"] - figures["refused"]) / (figures["us"] / 1e6)
    return figures


def loaded(http_server, path, watch=True, **more):
    """A load and its cost; each acknowledged row is stored when this returns."""
    before, cpu = http_server.ring(), cpu_us(http_server.process.pid)
    flush = http_server.metric("feedwheel_flush_cpu_seconds_total")
    database = cpu_us(http_server.database) if http_server.database else 0
    watching = Watch(http_server) if watch else None
    started = time.monotonic()
    load = wrk(http_server.port, path, **more)
    load["seen"] = watching.end() if watch else []
    http_server.all_stored()
    load["stored_s"] = time.monotonic() - started
    after = http_server.ring()
    events = more.get("events", 1)
    load["rows"] = after["stored"] - before["stored"]
    load["cpu_us"] = (cpu_us(http_server.process.pid) - cpu) / load["requests"]
    load["database_us"] = (cpu_us(http_server.database) - database) / load["rows"] if http_server.database else 0
    load["flush_us"] = (http_server.metric("feedwheel_flush_cpu_seconds_total") - flush) * 1e6 / load["requests"]
    # rows of requests whose response came after wrk had stopped counting
    uncounted = load["rows"] - events * (load["requests"] - load["refused"])
    if not 0 <= uncounted <= events * more.get("connections", 100):
        die("%d rows were stored for %d requests of %d", load["rows"], load["requests"] - load["refused"], events)
    return load


def warm(http_server, path, **more):
    """Not measured; skipped with TINY=1."""
    if "TINY" not in os.environ:
        loaded(http_server, path, watch=False, seconds=1, **more)


def against_nginx(nginx, http_server, path, **more):
    """Alternating rounds of both: [(nginx's, ours)]."""
    rounds = []
    for _ in range(RUNS):
        cpu = cpu_us(nginx.process.pid)
        theirs = wrk(nginx.port, path, **{k: v for k, v in more.items() if k != "watch"})
        theirs["cpu_us"] = (cpu_us(nginx.process.pid) - cpu) / theirs["requests"]
        rounds.append((theirs, loaded(http_server, path, **more)))
    return rounds


# ---- the parts -----------------------------------------------------------------------------------


def rates(name, rounds, goal=None):
    ratio = median(a["rate"] / b["rate"] for b, a in rounds)
    ratio_row(name, "%.0f/s" % median(a["rate"] for _, a in rounds),
              "%.0f/s" % median(b["rate"] for b, _ in rounds), ratio, least=goal)


def steadiness(seen):
    """The slowest half second of a load as a part of its average."""
    step = round(0.5 / Watch.EVERY_S)
    speeds = [(b["accepted"] - a["accepted"]) / (b["s"] - a["s"]) for a, b in zip(seen, seen[step:])]
    return min(speeds) / ((seen[-1]["accepted"] - seen[0]["accepted"]) / (seen[-1]["s"] - seen[0]["s"]))


def accepted(engine, nginx, base, store, server):
    http_server = HttpServer(os.path.join(base, "accepted-" + engine), store, server=server)
    wrk(nginx.port, PUSH, seconds=1)
    warm(http_server, PUSH)
    rest = rss_bytes(http_server.process.pid)
    rounds = against_nginx(nginx, http_server, PUSH)
    rates("%s: requests accepted, nginx" % engine, rounds, 0.7)
    # SQLite runs in our process: the time in its calls is the database's, and not counted
    inside = engine == "sqlite"
    ours = [a["cpu_us"] - (a["flush_us"] if inside else 0) for _, a in rounds]
    ratio = median(o / b["cpu_us"] for o, (b, _) in zip(ours, rounds))
    ratio_row("%s: server CPU of a request, nginx" % engine,
              "%.1f us" % median(ours), "%.1f us" % median(b["cpu_us"] for b, _ in rounds), ratio, most=2)
    row("  of it in calls to the store" + (" (not counted)" if inside else ""),
        "%.1f us" % median(a["flush_us"] for _, a in rounds), "-", "-", "-", None)
    if server:
        row("%s: the database's CPU of a row" % engine,
            "%.1f us" % median(a["database_us"] for _, a in rounds), "-", "-", "-", None)
    ratio = median(a["p99"] / b["p99"] for b, a in rounds)
    ratio_row("%s: p99 latency, nginx" % engine, "%.1f ms" % (median(a["p99"] for _, a in rounds) / 1000),
              "%.1f ms" % (median(b["p99"] for b, _ in rounds) / 1000), ratio, most=1.5)
    fill = max(s["fill"] for _, a in rounds for s in a["seen"])
    ratio_row("%s: fullest ring at full load" % engine, "%.0f %%" % fill, "50 %", fill / 50, most=1)
    slow = median(steadiness(a["seen"]) for _, a in rounds)
    ratio_row("%s: slowest half second, average" % engine, "-", "-", slow, least=0.7)
    peak = max(s["rss"] for _, a in rounds for s in a["seen"])
    ratio_row("%s: memory at full load, after its first second" % engine,
              "%.1f MiB" % (peak / 1048576), "%.1f MiB" % (rest / 1048576), peak / rest, most=1.1)
    row("  of it rings", "%.0f MiB" % (http_server.ring()["ring_bytes"] / 1048576), "-", "-", "-", None)
    remember(engine, rounds[-1][1]["seen"])
    http_server.stop()
    unqueued(engine, os.path.join(base, "unqueued-" + engine), store, median(a["rate"] for _, a in rounds))


def unqueued(engine, base, store, queued):
    """The same without a queue: one insert for each request."""
    http_server = HttpServer(base, store, "--flush-rows", "1")
    warm(http_server, PUSH)
    rate = loaded(http_server, PUSH, watch=False, seconds=min(DURATION, 3))["rate"]
    ratio_row("%s: requests accepted, with --flush-rows 1" % engine,
              "%.0f/s" % queued, "%.0f/s" % rate, queued / rate, least=3)
    http_server.stop()


def durable(engine, nginx, base, store, server):
    del nginx, server
    http_server = HttpServer(os.path.join(base, "durable-" + engine), store)
    for connections, goal in ((100, 10000), (1000, 25000)):
        warm(http_server, DURABLE, connections=connections)
        rounds = [loaded(http_server, DURABLE, watch=False, connections=connections) for _ in range(RUNS)]
        rate = median(r["rate"] for r in rounds)
        ratio_row("%s: durable, %d connections" % (engine, connections), "%.0f/s" % rate, "%d/s" % goal, rate / goal,
                  least=1 if engine in ("sqlite", "postgres") else None)
        row("  p99", "%.1f ms" % (median(r["p99"] for r in rounds) / 1000), "-", "-", "-", None)
    http_server.stop()


def batches(engine, nginx, base, store, server):
    del nginx, server
    http_server = HttpServer(os.path.join(base, "rings-" + engine), store, "--ring-bytes", "1GiB")
    rounds = []
    for _ in range(RUNS):
        rounds.append(loaded(http_server, "/v1/events", watch=False, events=EVENTS, seconds=min(DURATION, 2)))
    rate = EVENTS * median(r["rate"] for r in rounds)
    ratio_row("%s: rows/s into rings, %d a request" % (engine, EVENTS),
              "%.0f/s" % rate, "500000/s", rate / 500000, least=1)
    http_server.stop()
    http_server = HttpServer(os.path.join(base, "sustained-" + engine), store, "--flush-ms", "100ms")
    ours, theirs = [], []
    for i in range(RUNS):
        theirs.append(CEILING[engine](base, store, i) if engine in CEILING else None)
        r = loaded(http_server, "/v1/events", watch=False, events=EVENTS, patient=True, seconds=SUSTAINED)
        ours.append(r["rows"] / r["stored_s"])
    if engine in CEILING:
        ratio = median(a / b for a, b in zip(ours, theirs))
        ratio_row("%s: rows/s stored, its bulk load alone" % engine,
                  "%.0f/s" % median(ours), "%.0f/s" % median(theirs), ratio, least=0.8)
    else:
        row("%s: rows/s stored" % engine, "%.0f/s" % median(ours), "-", "-", "-", None)
    http_server.stop()


# ---- the limit of each store: the same rows with its own bulk loader -----------------------------


def bulk_file(base):
    """Rows as tab-separated text."""
    path = os.path.join(base, "bulk.tsv")
    if not os.path.exists(path):
        with open(path, "w", encoding="ascii") as f:
            for i in range(BULK_ROWS):
                f.write("%d\tnews\t1\t1\t127.0.0.1\t1795266000000\n" % (7 * 10**18 + i * 1024))
        os.chmod(path, 0o644)
    return path


def client_s(argv, statements):
    """Runs statements in a client; returns the seconds it took."""
    start = time.monotonic()
    r = subprocess.run(argv, input=statements, capture_output=True, text=True, check=False)
    if r.returncode:
        die("%s: %s", argv[0], r.stderr)
    return time.monotonic() - start


def ceiling_sqlite(base, store, i):
    """Its own .import, in one transaction."""
    del store
    path = os.path.join(base, "bulk-%d.db" % i)
    client_s(
        ["sqlite3", path],
        "PRAGMA journal_mode=WAL;\nCREATE TABLE incoming (id INTEGER PRIMARY KEY, property TEXT NOT NULL,"
        " property_section INTEGER NOT NULL, property_id INTEGER NOT NULL, remote_ip TEXT NOT NULL,"
        " stamp INTEGER NOT NULL);\n")
    took = client_s(["sqlite3", path], "PRAGMA synchronous=FULL;\n.mode tabs\n.import %s incoming\n" % bulk_file(base))
    os.remove(path)
    return BULK_ROWS / took


def ceiling_postgres(base, store, i):
    host = store.split("host=")[1].split("&")[0]
    argv = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", host, "-U", "feedwheel", "postgres"]
    client_s(
        argv,
        "CREATE TABLE bulk%d (id int8 PRIMARY KEY, property text NOT NULL, property_section int8 NOT NULL,"
        " property_id int8 NOT NULL, remote_ip text NOT NULL, stamp int8 NOT NULL);\n" % i)
    return BULK_ROWS / client_s(argv, "\\copy bulk%d FROM '%s'\n" % (i, bulk_file(base)))


def ceiling_mysql(base, store, i):
    name, path = store.split("localhost/")[1].split("?socket=")
    argv = ["mariadb", "--no-defaults", "--local-infile=1", "-uroot", "-S", path, name]
    client_s(argv, "CREATE TABLE bulk%d LIKE incoming;\n" % i)
    return BULK_ROWS / client_s(argv, "LOAD DATA LOCAL INFILE '%s' INTO TABLE bulk%d;\n" % (bulk_file(base), i))


# ---- a page of entries that are slow to sanitise -------------------------------------------------

SLOW_BYTES = size("SLOW_BYTES", 1900000, 5000) # of each
SLOW = ["<dl><dd><dt>", "<a><b><i><u><s><p><div></a></b></i></u></s>", "<table><b>x</b><tr>y<td><i>z</table>",
        "<b>x<i>y</b>z</i>"]
SLOW_PAGE = "/v1/entries?limit=21&order=stored"


def beside(http_server):
    """The slowest small request, in seconds, while two clients read all pages."""
    def walk():
        path = SLOW_PAGE
        while path:
            page = json.loads(http_server.request(path)[1])
            path = page.get("next_url") if page["items"] else None
    walkers = [threading.Thread(target=walk) for _ in range(2)]
    for t in walkers:
        t.start()
    slowest = 0
    while any(t.is_alive() for t in walkers):
        start = time.monotonic()
        http_server.request("/v1/feeds")
        slowest = max(slowest, time.monotonic() - start)
    return slowest


def pages(engine, _, base, store, server):
    http_server = HttpServer(os.path.join(base, "pages-" + engine), store, server=server)
    http_server.request("/v1/feeds", '{"url":"http://a.example/"}')
    slowest = []
    for i in range(RUNS): # other contents each time: sanitised contents are cached
        items = [SLOW[n % len(SLOW)] * (SLOW_BYTES // len(SLOW[n % len(SLOW)])) + str(i) for n in range(21)]
        for n, text in enumerate(items):
            feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t",
                    "items": [{"id": str(n), "content_html": text}]}
            status, _ = http_server.request("/v1/feeds/1/entries", json.dumps(feed), "application/feed+json")
            if status not in (200, 201):
                die("%s: an entry was refused", engine)
        slowest.append(beside(http_server))
    slowest = median(slowest) * 1000
    ratio_row("%s: slowest request beside two for 21 slow entries" % engine,
              "%.1f ms" % slowest, "100 ms", slowest / 100, most=1)
    http_server.stop()


CEILING = {"sqlite": ceiling_sqlite, "postgres": ceiling_postgres, "mysql": ceiling_mysql}


# ---- plots ---------------------------------------------------------------------------------------


def remember(engine, seen):
    os.makedirs(WORK, exist_ok=True)
    with open(os.path.join(WORK, engine + ".json"), "w", encoding="ascii") as f:
        json.dump(seen, f)


def plots():
    """Plots of all stores measured in this run or an earlier one."""
    lines = {}
    for path in sorted(glob.glob(os.path.join(WORK, "*.json"))):
        with open(path, encoding="ascii") as f:
            lines[os.path.basename(path)[:-5]] = json.load(f)
    folder = os.environ.get("PLOTS", WORK)
    if not lines:
        return
    for name, title, unit, of, top in (
        ("ingest-ring", "Fullest ring at full load", "%", lambda s: s["fill"], 100),
        ("ingest-memory", "Resident memory at full load", "MiB", lambda s: s["rss"] / 1048576, None),
    ):
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as f:
            f.write(plot(title, unit, {n: [(s["s"], of(s)) for s in seen] for n, seen in lines.items()}, top))


def main():
    parts = [globals()[name] for name in selection("ONLY", ("accepted", "durable", "batches", "pages"))]
    picked = selection("STORES", ("sqlite", "postgres", "mysql", "redis"))
    compared = parts != [pages]
    for program in ("wrk", "nginx"):
        if compared and not shutil.which(program):
            die("%s is not installed: run tools/deps.sh bench", program)
    base = collect.WORK = tempfile.mkdtemp(prefix="feedwheel-ingest-")
    os.chmod(base, 0o711)
    names = [n for n in ["sqlite", *engines()] if n in picked]
    nginx = Nginx(base) if compared else None
    try:
        head("wrk -t4 -c100, %d s, median of %d, load at the start %.1f" % (DURATION, RUNS, os.getloadavg()[0]))
        for name in names:
            server = Server(name, base, "durable") if name != "sqlite" else None
            try:
                for part in parts:
                    file = os.path.join(base, part.__name__ + ".db")
                    store = server.url(part.__name__) if server else "sqlite:" + file
                    part(name, nginx, base, store, server)
            finally:
                if server:
                    server.stop()
    finally:
        if nginx:
            nginx.stop()
        shutil.rmtree(base, ignore_errors=True)
    plots()


if __name__ == "__main__":
    benchmark(main)
