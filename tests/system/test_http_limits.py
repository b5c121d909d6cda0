#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The server's limits: clients' addresses, timeouts, sizes, encodings, TLS, the access log."""
import concurrent.futures
import contextlib
import gzip
import json
import os
import re
import resource
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import time
import zlib

from http_server import http_server, free_port, metric
from harness import Feedwheel, case, certificate, equal, holds, let_pass, run, sanitized, wait_for, workers_of
from pushing import EVENT, TWIRP


# ---- clients' addresses --------------------------------------------------------------------------


def token(base):
    """A header with a token, for pushes that seem to come from another machine."""
    return ("Authorization", "Bearer " + Feedwheel(base).run("token", "add", "proxy", "--scope", "push").stdout.strip())


def address(d, *headers):
    """The remote_ip of an event that is pushed with these headers (pairs)."""
    c = d.connect()
    body = json.dumps(EVENT).encode()
    c.putrequest("POST", "/v1/events?ack=durable")
    for name, value in [*headers, ("Content-Length", str(len(body)))]:
        c.putheader(name, value)
    c.endheaders(body)
    equal(c.getresponse().status, 200)
    c.close()
    return d.feedwheel.one("SELECT remote_ip FROM incoming ORDER BY id DESC LIMIT 1")


@case("headers set the client's address only if they come from a trusted proxy")
def proxies(base):
    may = token(base)
    forged = [("X-Forwarded-For", "192.0.2.1"), ("X-Real-IP", "192.0.2.2"), ("Forwarded", "for=192.0.2.3")]
    with http_server(base) as d:
        equal(address(d, may), "127.0.0.1")
        equal(address(d, may, *forged), "127.0.0.1")
    with http_server(base, conf="trusted_proxies = 10.0.0.0/8, ::1\n") as d:
        equal(address(d, may, *forged), "127.0.0.1")
    with http_server(base, conf="trusted_proxies = 127.0.0.1, 10.0.0.0/8\n") as d:
        equal(address(d, may), "127.0.0.1")
        equal(address(d, may, *forged), "192.0.2.1")
        equal(address(d, may, *forged[1:]), "192.0.2.2")
        equal(address(d, may, *forged[2:]), "127.0.0.1")
        two = ("x-forwarded-for", "203.0.113.7"), ("X-FORWARDED-FOR", "2001:db8::7, 10.1.1.1")
        equal(address(d, may, *two), "2001:db8::7")
        equal(address(d, may, ("X-Forwarded-For", "unknown")), "127.0.0.1")
        equal(address(d, may, ("X-Forwarded-For", ", ".join(["192.0.2.%d" % i for i in range(200)]))), "192.0.2.199")
        equal(address(d, may, ("X-Real-IP", "nobody")), "127.0.0.1")


@case("a client of a unix socket has no address, unless a trusted proxy names one")
def proxy_unix(base):
    path, may = os.path.join(base, "http_server.sock"), ": ".join(token(base))
    for conf, want in (("", ""), ("trusted_proxies = unix\n", "192.0.2.1")):
        w = Feedwheel(base, conf + "listen = unix:%s\n" % path)
        p = w.start("serve")

        def push():
            r = subprocess.run(
                ["curl", "-sS", "--unix-socket", path, "-H", "X-Forwarded-For: 192.0.2.1", "-H", may,
                 "-d", json.dumps(EVENT), "http://x/v1/events?ack=durable"],
                capture_output=True, text=True, check=False)
            return r.stdout == '{"stored":1}'
        wait_for("the server", push)
        equal(w.one("SELECT coalesce(remote_ip, '') FROM incoming ORDER BY id DESC LIMIT 1"), want)
        p.terminate()
        equal(p.wait(30), 0)


@case("an invalid trusted_proxies is an error that names the setting, the item and the remedy")
def bad_proxies(base):
    with http_server(base) as d:
        w = Feedwheel(base, "trusted_proxies = 10.0.0.1, everybody\nlisten = 127.0.0.1:0\n", name="other")
        output = w.run("serve", code=4).stderr
        holds("trusted_proxies: 'everybody' is not a network (write" in output, output)
        equal(d.push(EVENT, path=TWIRP)[0], 200)


# ---- timeouts and connections --------------------------------------------------------------------

HEAD = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 44\r\n\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
DURABLE_PUSH = HEAD.replace(b"/v1/events", b"/v1/events?ack=durable") + json.dumps(EVENT).encode().ljust(44)


def raw(d, *pieces, end=True):
    """Send these pieces; all that the server sends until it closes."""
    with socket.create_connection(("127.0.0.1", d.port), timeout=60) as s:
        for p in pieces:
            s.sendall(p)
        if end:
            s.shutdown(socket.SHUT_WR)
        return read_all(s)


def read_all(s):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    return got


def drip(d, data, every=0.05, first=b""):
    """Send a byte at a time until the server closes; all that it sent."""
    with socket.create_connection(("127.0.0.1", d.port), timeout=60) as s:
        s.sendall(first)
        with contextlib.suppress(OSError):
            for b in data:
                s.sendall(bytes([b]))
                let_pass(every, "a slow sender's pause")
        return read_all(s)


def statuses(answer):
    return [int(n) for n in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]


def problem(answer, code):
    """The body of an error that was written past the library; it is as openapi.json has it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)
    equal((list(error), error["status"], error["code"]),
          (["title", "status", "code", "detail", "request_id"], statuses(answer)[0], code), answer)
    holds(b"Content-Length: %d\r\n" % len(body) in head + b"\r\n", answer)
    holds(b"X-Request-Id: %s\r\n" % error["request_id"].encode() in head, answer)
    return error


@case("slow or unfinished heads and bodies end with 408 at their timeout; idle connections are closed")
def slow(base):
    chunked = HEAD.replace(b"Content-Length: 44", b"Transfer-Encoding: chunked")
    requests = (
        ("nothing", 408, lambda: raw(d, b"", end=False)),
        ("half a method", 408, lambda: raw(d, b"GE", end=False)),
        ("headers", 408, lambda: drip(d, b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 10000)),
        ("a body", 408, lambda: drip(d, b" " * 44, 0.5, HEAD)),
        ("half a body, then nothing", 408, lambda: raw(d, HEAD + b'{"prop', end=False)),
        ("a body without end", 408, lambda: drip(d, b"4\r\n    \r\n" * 5000, 0.01, chunked)),
        ("idle: closed without a response", 200, lambda: raw(d, GET, end=False)),
        ("idle, half a request line", 200, lambda: raw(d, GET + GET[:9], end=False)))
    conf = "serve_header_timeout_ms = 6s\nserve_body_timeout_ms = 6s\nserve_idle_timeout_ms = 6s\n" \
        "serve_body_rate_min = 0\n"
    log = os.path.join(base, "access")
    conf += "access_log = %s\n" % log
    with http_server(base, conf=conf) as d, concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        answers = list(pool.map(lambda r: r[2](), requests))
        for (name, status, _), answer in zip(requests, answers):
            equal(statuses(answer), [status], name)
        errors = [problem(a, "timeout") for a in answers[:6]]
        ids = [e.pop("request_id") for e in errors]
        equal(errors[0], errors[1], "the responses to nothing and to half a method")
        equal(len(set(ids)), 6)
        with open(log, encoding="utf-8") as f:
            wait_for("the ids of requests with a head in the log",
                     lambda: f.seek(0) == 0 and not set(ids[3:]) - set(f.read().split()))
        equal(d.push(EVENT)[0], 200)
        for part, least in ("head", 3), ("body", 3), ("idle", 2):
            holds(metric(d, 'http_aborted_total{in="%s"}' % part) >= least, d.request("GET", "/metrics")[2])


@case("a body slower than serve_body_rate_min is ended long before its timeout")
def body_rate(base):
    with http_server(base, conf="serve_body_timeout_ms = 10m\nserve_body_rate_min = 1000000\n") as d:
        began = time.monotonic()
        equal(statuses(drip(d, b" " * 100000, 0.1, HEAD.replace(b"44", b"100000"))), [408])
        holds(time.monotonic() - began >= 4, "the first 5 s are free, by a clock that ticks four times a second")


@case("a client that does not read responses is disconnected; a push that waits for its commit is not")
def slow_reader(base):
    conf = "serve_idle_timeout_ms = 1s\nserve_send_timeout_ms = 1s\nflush_durable_ms = 3s\nflush_ms = 3s\n"
    with http_server(base, conf=conf) as d:
        equal(d.push(EVENT)[0], 200)
        with socket.create_connection(("127.0.0.1", d.port)) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setblocking(False)
            with contextlib.suppress(OSError):
                while True:
                    s.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") # the responses are never read
            wait_for("the disconnection", lambda: metric(d, 'http_aborted_total{in="send"}') >= 1)


def busy_store(d):
    """A connection that locks the store against writes until it is closed."""
    db = sqlite3.connect(d.feedwheel.path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def sent(d, data, n):
    """n connections that have sent data and read nothing."""
    connections = [socket.create_connection(("127.0.0.1", d.port), timeout=60) for _ in range(n)]
    for s in connections:
        s.sendall(data)
    return connections


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)) # closed by a reset
    s.close()


@case("a thousand clients disconnect during their pushes: others go on, connections and memory are released")
def disconnected(base):
    n = 1000
    with http_server(base, conf="serve_threads = 2\n") as d:
        equal(d.push(EVENT)[0], 200)
        db = busy_store(d)
        clients = sent(d, DURABLE_PUSH, n)
        wait_for("all to wait", lambda: d.request("GET", "/v1/ring")[2]["accepted"] >= n + 1, 60)
        for s in clients:
            reset(s)
        equal(d.push(EVENT, path=TWIRP)[0], 200)
        db.close()
        wait_for("their connections to be released", lambda: metric(d, "http_connections") < 10, 60)
        wait_for("their pushes to be stored", lambda: d.stored() == n + 2, 60)
        equal(d.push(EVENT)[0], 200)


@case("as many requests at once as libmicrohttpd reads in one round are all answered without further traffic")
def at_once(base):
    with http_server(base, conf="serve_threads = 1\n") as d:
        server = workers_of(d.process)[0]
        clients = [socket.create_connection(("127.0.0.1", d.port), timeout=60) for _ in range(128)]
        wait_for("all connections", lambda: metric(d, "http_connections") == 129) # one reads the metrics
        for _ in range(3):
            os.kill(server, signal.SIGSTOP)
            for s in clients:
                s.sendall(GET)
            os.kill(server, signal.SIGCONT)
            equal([statuses(s.recv(1000)) for s in clients], [[200]] * 128)
        for s in clients:
            s.close()


@case("consecutive clients are spread over the server threads")
def spread(base):
    def switches(server):
        count = {}
        for thread in os.listdir("/proc/%d/task" % server):
            with open("/proc/%d/task/%s/status" % (server, thread), encoding="ascii") as f:
                count[thread] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))
        return count
    with http_server(base, conf="serve_threads = 2\n") as d:
        server = workers_of(d.process)[0]
        before = switches(server)
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", d.port), timeout=60) as s:
                s.sendall(GET)
                equal(statuses(s.recv(1000)), [200])
        after = switches(server)
        busy = sorted(n - before.get(thread, 0) for thread, n in after.items())[::-1]
        # each connection wakes its thread at least once
        holds(busy[2] >= 100, "the accepting thread and two server threads: %s" % busy)


@case("requests that wait for the store, and streams, leave connections for others")
def waiting_requests(base):
    # of 80 connections 70 may wait, 60 may read the stream
    with http_server(base, conf="serve_connections_max = 80\nserve_threads = 1\n") as d:
        equal(d.push(EVENT)[0], 200)
        db = busy_store(d)
        clients = sent(d, DURABLE_PUSH, 72)
        wait_for("70 to wait", lambda: d.request("GET", "/v1/ring")[2]["accepted"] >= 71, 60)
        status, headers, response = d.push(EVENT)
        equal((status, response["code"], headers["Retry-After"]), (503, "unavailable", "1"))
        equal(d.push(EVENT, path="/v1/events")[0], 202)
        db.close()
        equal(sorted(statuses(s.recv(1000))[0] for s in clients), [200] * 70 + [503] * 2)
        for s in clients:
            s.close()
        wait_for("the end of all", lambda: metric(d, "http_connections") < 3, 60)
        readers = sent(d, GET.replace(b"/healthz", b"/v1/stream"), 60)
        equal([statuses(s.recv(20)) for s in readers], [[200]] * 60)
        status, headers, response = d.request("GET", "/v1/stream")
        equal((status, response["code"], headers["Retry-After"]), (503, "busy", "1"))
        equal(d.push(EVENT)[0], 200)
        for s in readers:
            s.close()


@case("a full blocking thread pool answers 503 with Retry-After at once; its slots are released")
def full_pool(base):
    body = b'{"url":"https://a.example/"}'
    add = b"POST /v1/feeds HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with http_server(base) as d:
        equal(d.request("POST", "/v1/feeds", body)[0], 201)
        db = busy_store(d)
        clients = sent(d, add, 520)

        def pool_is_full():
            readable = select.select(clients, [], [], 0)[0]
            answers = [s.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT) for s in readable]
            words = b'"code":"busy"', b"Retry-After: 1\r\n", b"512 requests"
            n = len([a for a in answers if all(w in a for w in words)])
            if n < 8: # a request whose wait for the store timed out has released its slot
                clients.extend(sent(d, add, 1))
            return n >= 8
        wait_for("eight to find no slot", pool_is_full, 60)
        equal(d.push(EVENT, path=TWIRP)[0], 200)
        for s in clients[1::2]:
            reset(s)
        db.close()
        for s in clients[::2]:
            holds(statuses(s.recv(1000)) in ([200], [503]), "each is answered")
            s.close()
        wait_for("slots", lambda: d.request("GET", "/v1/feeds/1")[0] == 200, 60)
        wait_for("the end of all", lambda: metric(d, "http_connections") < 10, 60)


@case("thousands of idle connections use bounded memory; at the limit idle ones are closed for new ones")
def idle_connections(base):
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200, 10000 if "FW_LONG" in os.environ else 2000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with http_server(base, conf="serve_connections_max = %d\nserve_header_timeout_ms = 10m\n" % (most * 2)) as d:
        pid = workers_of(d.process)[0]
        before = rss(pid)
        idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(most)]
        for s in idle[::2]:
            s.sendall(GET[:-2])
        wait_for("all connections", lambda: metric(d, "http_connections") >= most)
        for _ in range(50):
            equal(d.push(EVENT, path=TWIRP)[0], 200)
        grown = rss(pid) - before
        print("# %d idle connections take %.1f KiB each" % (most, grown / 1024 / most))
        holds(sanitized() or grown < most * 24 * 1024, "%d bytes for %d connections" % (grown, most))
        for s in idle:
            s.close()
        wait_for("the end of all", lambda: metric(d, "http_connections") < 10)
    with http_server(base, conf="serve_connections_max = 64\nserve_threads = 2\n") as d:
        idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(100)]
        wait_for("room", lambda: d.push(EVENT, path=TWIRP)[0] == 200)
        holds(metric(d, 'http_aborted_total{in="head"}') > 10, "connections without a request are closed")
        for s in idle:
            s.close()


def rss(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@case("one address gets a quarter of all connections, more are answered 429; a trusted proxy has no limit")
def per_address(base):
    def connect(address, n):
        source = (address, 0)
        connections = [
            socket.create_connection(("127.0.0.1", d.port), timeout=60, source_address=source) for _ in range(n)]
        for s in connections:
            with contextlib.suppress(OSError): # it may be closed already
                s.sendall(GET[:-2])
        return connections

    def refused(connections):
        answers = [read_all(s) for s in select.select(connections, [], [], 0)[0]]
        for answer in answers:
            holds(statuses(answer) == [429] and b"serve_connections_per_address_max" in answer, answer)
            problem(answer, "too_many_connections")
        return len(answers)

    def get_from(address):
        with socket.create_connection(("127.0.0.1", d.port), timeout=60, source_address=(address, 0)) as s:
            s.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return statuses(read_all(s))
    conf = "serve_connections_max = 200\nserve_threads = 1\nserve_header_timeout_ms = 10m\n" \
        "serve_idle_timeout_ms = 10m\n"
    with http_server(base, conf=conf) as d:
        slow = connect("127.0.0.2", 400)
        wait_for("all but a quarter to be refused", lambda: metric(d, "http_connections_refused_total") == 350)
        equal(refused(slow), 350)
        equal([get_from(a) for a in ("127.0.0.1", "127.0.0.3", "127.0.0.2")], [[200], [200], [429]])
        local = connect("127.0.0.1", 60)
        wait_for("all connections", lambda: metric(d, "http_connections") >= 110)
        equal(refused(local), 0, "refused of this machine")
        for s in [*slow, *local]:
            s.close()
        wait_for("the end of all", lambda: metric(d, "http_connections") < 3)
        equal(get_from("127.0.0.2"), [200])
        output = d.feedwheel.log()
        equal(output.count("127.0.0.2 has 50 open"), 1, output)
    with http_server(base, conf="serve_connections_per_address_max = 3\n") as d:
        slow = connect("127.0.0.2", 60)
        wait_for("the others to be refused", lambda: metric(d, "http_connections_refused_total") == 57)
        for s in slow:
            s.close()
    with http_server(base, conf="serve_connections_per_address_max = 3\ntrusted_proxies = 127.0.0.2\n") as d:
        slow = connect("127.0.0.2", 60)
        for s in slow:
            s.sendall(b"\r\n")
        equal([statuses(s.recv(1000)) for s in slow], [[200]] * 60)
        for s in slow:
            s.close()


@case("a limit on open files below serve_connections_max is logged with the remedy, and the server works")
def few_files(base):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with http_server(base, conf="serve_connections_max = %d\n" % min(1000000, hard + 1)) as d:
        equal(d.push(EVENT)[0], 200)
        holds("open files" in d.feedwheel.log() and "ulimit -n" in d.feedwheel.log(), d.feedwheel.log())


# ---- bodies --------------------------------------------------------------------------------------


def raw_deflate(data):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    return z.compress(data) + z.flush()


@case("gzip and deflate bodies are decoded; corrupt, unknown and oversized ones are refused")
def packed(base):
    text = json.dumps([EVENT] * 1000).encode()
    with http_server(base, conf="push_body_max_bytes = 4MiB\n") as d:
        def push(body, coding, path="/v1/events?ack=durable"):
            return d.push(body, path=path, headers={"Content-Encoding": coding})[::2]
        for body, coding in (
            (gzip.compress(text), "gzip"),
            (gzip.compress(text), "X-GZIP"),
            (zlib.compress(text), "deflate"),
            (raw_deflate(text), "deflate"),
            (text, "identity"),
            (gzip.compress(text[:50]) + gzip.compress(text[50:]), "gzip")):
            equal(push(body, coding), (200, {"stored": 1000}), coding)
        equal(push(gzip.compress(text), "gzip", TWIRP), (200, {}))
        n = d.stored()
        packed_text = gzip.compress(text)
        for body in (
            b"", b"x", text, packed_text[:-1], packed_text[:20], packed_text + b"x",
            packed_text[:100] + b"\0\0\0\0" + packed_text[104:]):
            status, response = push(body, "gzip")
            equal((status, response["code"]), (400, "malformed_encoding"), repr(body[:20]))
            equal(push(body, "gzip", TWIRP)[1]["code"], "malformed")
        equal(push(text, "deflate")[1]["code"], "malformed_encoding")
        for coding in ("br", "gzip, gzip", "zstd", "gzip;q=1", "\xff"):
            equal(push(text, coding)[0], 415, coding)
        bomb = gzip.compress(b" " * (5 << 20))
        equal(push(bomb, "gzip")[0], 413)
        equal(push(gzip.compress(b" " * (3 << 20)), "gzip")[0], 413, "the compression ratio")
        equal(push(bomb, "gzip", TWIRP)[1]["code"], "resource_exhausted")
        equal(push(gzip.compress(b"nope"), "gzip")[1]["code"], "malformed_json")
        equal(d.stored(), n, "stored")


@case("bodies above serve_memory_bytes in total are answered 503 with Retry-After")
def many_bodies(base):
    # room for twice the largest body: 16 MiB
    with http_server(base, conf="serve_memory_bytes = 64k\nserve_threads = 1\n") as d:
        held = []
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", d.port))
            s.sendall(b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b" " * 900000)
            held.append(s)
        events = 0

        def full(): # more events each time: the memory of a finished push is free again
            nonlocal events
            events = min(events + 500, 20000)
            status, headers, response = d.push(json.dumps([EVENT] * events))
            return status == 503 and "serve_memory_bytes" in response["detail"] and headers["Retry-After"]
        wait_for("no room", full)
        [server] = workers_of(d.process)
        # so that libmicrohttpd gets the last byte and the end at once, and does not see the end
        os.kill(server, signal.SIGSTOP)
        for s in held:
            s.sendall(b" ")
            s.close()
        os.kill(server, signal.SIGCONT)
        wait_for("room", lambda: d.push(json.dumps([EVENT] * 10000))[0] == 200)


@case("push_body_max_bytes, and the names and numbers permitted in pushed events, are enforced")
def rules(base):
    conf = "push_body_max_bytes = 2000\npush_properties = news, blog\npush_section_min = 0\npush_id_min = 100\n"
    with http_server(base, conf=conf) as d:
        equal(d.push(" " * 2001)[0], 413)
        equal(d.push(dict(EVENT, section=0, id=100))[0], 200)
        equal(d.push(dict(EVENT, property="blog", id=2**63 - 1))[0], 200)
        for bad, words in (
            (dict(EVENT, id=99), "id is too small (a number of at least 100)"),
            (dict(EVENT, section=-1, id=100), "section is too small"),
            ({"property": "news", "id": 100}, "section is missing (a number of at least 0)"),
            (dict(EVENT, property="ne", id=100), "property is not in push_properties"),
            (dict(EVENT, property="news, blog", id=100), "not in push_properties"),
            (dict(EVENT, section="0", id=100), "section is missing")):
            status, _, response = d.push(bad)
            equal(status, 400)
            holds(words in response["detail"], response)
        equal(d.stored(), 2)


# ---- the protocol, the access log ----------------------------------------------------------------


@case("HEAD, OPTIONS, HTTP/1.0, Connection: close, pipelining and Expect: 100-continue work")
def protocol(base):
    event = json.dumps(EVENT).encode()
    post = b"POST /v1/events?ack=durable HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(event)
    with http_server(base) as d:
        answer = raw(d, GET.replace(b"GET", b"HEAD"))
        equal(statuses(answer), [200])
        holds(answer.endswith(b"\r\n\r\n") and b"Content-Length: 18" in answer, answer)
        for path, allow in (
            ("/v1/events", "POST, OPTIONS"),
            ("/healthz", "GET, HEAD, OPTIONS"),
            ("/v1/feeds/1", "GET, HEAD, PATCH, DELETE, OPTIONS")):
            status, headers, body = d.request("OPTIONS", path)
            equal((status, sorted(headers["Allow"].split(", ")), body), (204, sorted(allow.split(", ")), ""), path)
        equal(d.request("OPTIONS", "/nowhere")[0], 404)
        answer = raw(d, b"GET /healthz HTTP/1.0\r\n\r\n", end=False)
        line = answer.partition(b"\r\n")[0]
        holds(line.startswith(b"HTTP/1.") and b" 200 " in line and answer.endswith(b'"alive"}'), answer)
        last = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        answer = raw(d, last + GET, end=False)
        equal(statuses(answer), [200], "closed after the first request")
        holds(b"Connection: close" in answer, answer)
        pipelined = (post + b"\r\n" + event) * 5 + GET + last
        equal(statuses(raw(d, pipelined, end=False)), [200] * 7, "pipelined requests")
        equal(d.stored(), 5)
        with socket.create_connection(("127.0.0.1", d.port), timeout=60) as s:
            s.sendall(post + b"Expect: 100-continue\r\n\r\n")
            holds(s.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n"), "100 Continue")
            s.sendall(event)
            equal(statuses(s.recv(1000)), [200])
        large = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n" \
            b"Expect: 100-continue\r\n\r\n"
        equal(statuses(raw(d, large, end=False)), [413], "a body that is too large gets no 100 Continue")
        c = d.connect()
        for path, status in (
            ("/nowhere", 404),
            ("/v1/feeds?x=1", 400),
            ("/v1/feeds/1", 404),
            ("/healthz", 200),
            ("/v1/events", 405)):
            c.request("GET", path)
            r = c.getresponse()
            r.read()
            equal((r.status, r.headers["Connection"]), (status, None), "the connection stays open")
        c.close()
        for request, status in (
            (GET.replace(b"/healthz", b"/nowhere"), 404),
            (HEAD + event.ljust(44), 202),
            (GET.replace(b"/healthz", b"/v1/feeds"), 200),
            (DURABLE_PUSH, 200)):
            equal(statuses(raw(d, request * 100)), [status] * 100, "all requests before the client's end are answered")
        for bad in (
            b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\0\0\0\0\r\n\r\n",
            b"GET  HTTP/9.9\r\n\r\n"):
            raw(d, bad) # any response, but the server survives
        equal(d.push(EVENT)[0], 200)


@case("a valid X-Request-Id is kept, else one is made; responses, errors and the log contain it")
def ids(base):
    with http_server(base) as d:
        status, headers, response = d.push("nope", headers={"X-Request-Id": "abc-123.DEF"})
        equal((status, headers["X-Request-Id"], response["request_id"]), (400, "abc-123.DEF", "abc-123.DEF"))
        made = set()
        for bad in (None, "", "a b", "x" * 65, "\"", "<script>", "\xe9"):
            status, headers, response = d.push("nope", headers={} if bad is None else {"X-Request-Id": bad})
            holds(re.fullmatch("[0-9a-f]{16}", headers["X-Request-Id"]), headers["X-Request-Id"])
            equal(response["request_id"], headers["X-Request-Id"])
            made.add(response["request_id"])
        equal(len(made), 7, "different ids")
        equal(d.request("GET", "/nowhere", headers={"X-Request-Id": "q"})[1]["X-Request-Id"], "q")
        equal(d.push("nope", path=TWIRP, headers={"X-Request-Id": "q"})[1]["X-Request-Id"], "q")
        for method, path in (("POST", "/twirp/stats.StatsService/Pull"), ("GET", TWIRP)):
            status, headers, response = d.request(method, path)
            equal((status, response["code"], sorted(response), headers["X-Request-Id"] != ""),
                  (404, "bad_route", ["code", "msg"], True))
        for method, path, body in (
            ("POST", "/v1/events?ack=durable", json.dumps(EVENT)),
            ("GET", "/healthz", None),
            ("GET", "/v1/feeds", None),
            ("HEAD", "/v1/feeds", None),
            ("OPTIONS", "/v1/feeds", None),
            ("GET", "/openapi.json", None)):
            status, headers, _ = d.request(method, path, body)
            made_id = re.fullmatch("[0-9a-f]{16}", headers["X-Request-Id"])
            holds(status < 300 and made_id, "%s %s: %s" % (method, path, headers))
            equal(d.request(method, path, body, {"X-Request-Id": "mine"})[1]["X-Request-Id"], "mine")


LINE = re.compile(
    r'(\S+) - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "(\S+) (\S+) HTTP/1.1" (\d+) (\d+|-) "-" "(.*)" (\S+) '
    r'\d+\.\d{6}')


@case("the access log has an escaped line per request, is reopened after SIGHUP, and reports lost lines")
def access_log(base):
    path = os.path.join(base, "access.log")

    def lines(p=path):
        with open(p, encoding="utf-8") as f:
            found = [LINE.fullmatch(l.rstrip("\n")) for l in f if l.endswith("\n")] # the last one may be half written
        holds(all(found), open(p, encoding="utf-8").read())
        return [m.groups() for m in found]
    may = Feedwheel(base).run("token", "add", "log", "--scope", "push,read").stdout.strip()
    with http_server(base, conf="access_log = %s\ntrusted_proxies = 127.0.0.1\n" % path) as d:
        agent = 'a "quoted"\tone'
        d.push(EVENT, headers={"User-Agent": agent, "X-Request-Id": "mine", "X-Forwarded-For": "2001:db8::9"})
        d.token = may
        d.push(EVENT, path=TWIRP)
        d.request("GET", "/no%0Awhere%22x", headers={"User-Agent": ""})
        d.request("GET", "/v1/feeds/77777")

        def requests():
            return [l for l in lines() if l[2] != "/healthz"]
        wait_for("the lines", lambda: len(requests()) >= 4)
        # sorted, because each thread has its own order
        got = sorted(requests(), key=lambda l: (l[2] != "/v1/events", l[2] != TWIRP, l[2]))
        equal(got[0][:4] + got[0][5:],
              ("2001:db8::9", "POST", "/v1/events", "401", "a \\x22quoted\\x22\\x09one", "mine"))
        equal(got[1][:5], ("127.0.0.1", "POST", TWIRP, "200", "2"))
        equal(got[2][2:6], ("/no\\nwhere\\x22x", "404", got[2][4], "-"))
        equal(got[3][2:4], ("/v1/feeds/77777", "404"))
        holds(int(got[3][4]) > 50, got[3])
        os.rename(path, path + ".1")
        before = workers_of(d.process)
        d.process.send_signal(signal.SIGHUP)
        wait_for("another server", lambda: workers_of(d.process) and not set(before) & set(workers_of(d.process)))
        wait_for("a new file", lambda: os.path.exists(path) and d.responds() and len(lines()) > 0)
        output = d.feedwheel.log()
        holds("configuration read again" in output and "stopped from outside" not in output, output)
        d.push(EVENT)
        n = 200
        for _ in range(n):
            d.push(EVENT, path=TWIRP)
        d.stop()
        holds(len([l for l in lines() if l[2] == TWIRP]) == n, "all lines are written before the end")
    w = Feedwheel(base, "listen = 127.0.0.1:0\naccess_log = /proc/no/such/file\n", name="other")
    output = w.run("serve", code=4).stderr
    holds("access_log = /proc/no/such/file: " in output, output)


@case("an access log on a full disk does not stop requests; the loss is logged once")
def log_full(base):
    with http_server(base, conf="access_log = /dev/full\n") as d:
        for _ in range(20):
            equal(d.push(EVENT, path=TWIRP)[0], 200)
        wait_for("the warning", lambda: "access_log = /dev/full: No space left" in d.feedwheel.log())
        wait_for("the count", lambda: "lines were dropped, because they could not be written: No space left"
                 in d.feedwheel.log())
        equal(d.feedwheel.log().count("No space left on device; lines are dropped"), 1)
        holds("came faster" not in d.feedwheel.log(), "the reason is the disk")


@case("an access log whose reader stalls does not stop requests; dropped lines are counted and logged")
def log_stalls(base):
    path, long = os.path.join(base, "log.pipe"), "/" + "x" * 900
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR) # which is not read yet
    with http_server(base, conf="access_log = %s\nserve_threads = 1\n" % path) as d:
        holds("arning" not in d.feedwheel.log(), "one thread: " + d.feedwheel.log())

        def overflows():
            equal(statuses(raw(d, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % long.encode() * 100)), [404] * 100)
            return metric(d, "access_log_dropped_total") > 0
        wait_for("an overflow", overflows, 60)
        os.set_blocking(reader, False)

        def reported():
            with contextlib.suppress(BlockingIOError):
                while os.read(reader, 65536):
                    pass
            return re.search(r"access_log = .*: \d+ lines were dropped", d.feedwheel.log())
        wait_for("the warning", reported, 60)
        wait_for("another overflow", overflows, 60)
        d.stop() # while the reader stalls
    os.close(reader)


# ---- TLS -----------------------------------------------------------------------------------------


@case("HTTPS works, old versions are refused, SIGHUP loads a new certificate; bad files are errors that name them")
def tls(base):
    ca, cert, key = certificate(base, ["127.0.0.1"])
    conf = "tls_cert = %s\ntls_key = %s\n" % (cert, key)
    w = Feedwheel(base, conf + "listen = 127.0.0.1:%d\n" % free_port())
    url = "https://" + re.search("listen = (.*)", open(w.conf, encoding="ascii").read()).group(1)

    def curl(*a, ca=ca):
        return subprocess.run(["curl", "-sS", "--cacert", ca, *a], capture_output=True, text=True, check=False)
    p = w.start("serve")
    wait_for("the server", lambda: curl(url + "/healthz").returncode == 0)
    body = os.path.join(base, "body")
    with open(body, "w", encoding="ascii") as f:
        f.write(json.dumps([EVENT] * 3000))
    for version in ("1.2", "1.3"):
        only = "--tlsv" + version, "--tls-max", version
        equal(curl(*only, "--data-binary", "@" + body, url + "/v1/events?ack=durable").stdout, '{"stored":3000}')
    equal(curl(url + "/v1/ring", "-o", "/dev/null", "-w", "%{http_code}").stdout, "200")
    r = curl("--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0", url + "/healthz")
    holds(r.returncode != 0, "TLS 1.1: " + r.stdout)
    plain = ["curl", "-sS", url.replace("https", "http") + "/healthz"]
    holds(subprocess.run(plain, capture_output=True, check=False).returncode != 0, "plain HTTP")
    holds("Error" not in w.log(), "a failed handshake is not logged: " + w.log())
    again = os.path.join(base, "again")
    os.mkdir(again)
    ca2, cert2, key2 = certificate(again, ["127.0.0.1"])
    for new, old in ((cert2, cert), (key2, key)):
        os.replace(new, old)
    p.send_signal(signal.SIGHUP)
    wait_for("the new certificate", lambda: curl(url + "/healthz", ca=ca2).returncode == 0)
    p.terminate()
    equal(p.wait(60), 0)
    equal(w.one("SELECT count(*) FROM incoming"), 6000)
    other = os.path.join(base, "other.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out", other], check=True, capture_output=True)
    sealed = os.path.join(base, "sealed.pem")
    subprocess.run(
        ["openssl", "rsa", "-aes128", "-passout", "pass:x", "-in", other, "-out", sealed],
        check=True, capture_output=True)
    empty = os.path.join(base, "empty.pem")
    with open(empty, "w", encoding="ascii"):
        pass
    for lines, words in (
        ("tls_cert = %s" % cert, "tls_key is not set (set both"),
        ("tls_key = %s" % key, "tls_cert is not set (set both"),
        ("tls_cert = /no/such\ntls_key = %s" % key, "tls_cert = /no/such: No such file"),
        ("tls_cert = %s\ntls_key = /no/such" % cert, "tls_key = /no/such: No such file"),
        ("tls_cert = %s\ntls_key = %s" % (cert, other), "tls_key = %s: " % other),
        ("tls_cert = %s\ntls_key = %s" % (key, key), "tls_cert = %s: " % key),
        ("tls_cert = %s\ntls_key = %s" % (cert, sealed), "without a pass phrase"),
        ("tls_cert = %s\ntls_key = %s" % (empty, key), "the file is empty")):
        output = Feedwheel(base, lines + "\nlisten = 127.0.0.1:0\n", name="bad").run("serve", code=4).stderr
        holds(words in output and len(output.splitlines()) == 1, "%s: %s" % (lines, output))


if __name__ == "__main__":
    run()
