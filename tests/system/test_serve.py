#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The front http_server: what it takes, what it refuses, and its manners. (What it promises: test_ingest.py.)"""
import email.utils
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

from http_server import HttpServer, http_server, kill_group
from harness import Feedwheel, case, equal, holds, run, sanitized, wait_for
from pushing import EVENT, TWIRP, Load, items



# ---- what it takes -------------------------------------------------------------------------------


@case("every form of events is taken; a durable one is stored when it is answered")
def takes(base):
    with http_server(base) as d:
        equal(d.push(EVENT)[::2], (200, {"stored": 1}))
        equal(d.stored(), 1)
        equal(d.push([EVENT, EVENT])[::2], (200, {"stored": 2}))
        equal(d.push("\n".join([json.dumps(EVENT)] * 3) + "\n")[::2], (200, {"stored": 3}))
        equal(d.push([EVENT] * 2000)[::2], (200, {"stored": 2000}))
        equal(d.push(EVENT, path="/v1/events", headers={"Prefer": "respond-sync"})[::2], (200, {"stored": 1}))
        equal(d.stored(), 2007)
        equal(d.push(EVENT, path="/v1/events")[::2], (202, {}))
        status, headers, body = d.push(EVENT, path=TWIRP, headers={"Content-Type": "application/json"})
        equal((status, headers["Content-Type"], body), (200, "application/json", {}))
        equal(d.push(EVENT, path=TWIRP + "?ack=durable")[::2], (200, {}))
        d.push({"property": "\u00e9t\u00e9 \U0001f600", "section": 2**53 + 1, "id": 2**63 - 1})
        d.stop()
        equal(d.stored(), 2011)
        equal(
            d.feedwheel.sql(
                "SELECT property, property_section, property_id, remote_ip FROM incoming ORDER BY id DESC LIMIT 1"),
            [("\u00e9t\u00e9 \U0001f600", 2 ** 53 + 1, 2 ** 63 - 1, "127.0.0.1")])
        ids = [r[0] for r in d.feedwheel.sql("SELECT id FROM incoming ORDER BY rowid")]
        equal(len(set(ids)), 2011)
        now = time.time() * 1000
        holds(all(abs((i >> 22) + 1704067200000 - now) < 60000 for i in ids), "ids tell the time")


@case("answers that are kept ready carry the time of their second, once")
def dates(base):
    def seen(path):
        """The answer's date, in seconds."""
        with socket.create_connection(("127.0.0.1", d.port)) as c:
            body = json.dumps(EVENT)
            c.sendall(
                ("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" %
                 (path, len(body),
                  body)).encode())
            lines = c.makefile("rb").read().decode().split("\r\n")
        dated = [l.partition(": ")[2] for l in lines if l.lower().startswith("date:")]
        equal(len(dated), 1, lines)
        return email.utils.parsedate_to_datetime(dated[0]).timestamp()

    with http_server(base) as d:
        for path in (TWIRP, "/v1/events", "/v1/events?ack=durable"):
            before = int(time.time())
            first = seen(path)
            holds(before - 1 <= first <= time.time(), "%s: %s" % (path, first)) # some clocks are a tick behind
            wait_for("the next second", lambda path=path, first=first: seen(path) > first)


@case("how it is: health, readiness, rings, metrics")
def how_it_is(base):
    with http_server(base) as d:
        equal(d.ask("GET", "/healthz")[0], 200)
        equal(d.ask("GET", "/readyz")[::2], (200, {"status": "ready"}))
        d.push([EVENT] * 7)
        ring = d.ask("GET", "/v1/ring")[2]
        equal((ring["accepted"], ring["stored"], ring["fill_bytes"]), (7, 7, 0))
        text = d.ask("GET", "/metrics")[2]
        holds("feedwheel_push_stored_rows_total 7\n" in text, text)
        # all at once, but for bad luck
        flushes = re.search(r'^feedwheel_flush_seconds_bucket{le="\+Inf"} (\d+)$', text, re.M)
        holds(flushes and 1 <= int(flushes[1]) <= 7, text)


MALFORMED = [
    "", " ", "\n\n", "{", "}", "[", "]", "[[", "[{}", "{}", "[]", "null", "true", "1", '"news"', "nope",
    "{'property': 'news'}", '{"property"}', '{"property":}', '{"property":"news","section":1,"id":1',
    '{"property":"news","section":1,"id":1,}', '{"property":"news","section":1,"id":1}]',
    '[{"property":"news","section":1,"id":1},]', '{"property":"news" "section":1,"id":1}',
    '{"property":"news","section":1,"id":1} x', '{"property":"news","section":01,"id":1}',
    '{"property":"news","section":1,"id":+1}', '{"property":"news","section":1,"id":0x1}',
    '{"property":"news","section":1,"id":1e}', '{"property":"news","section":1,"id":NaN}',
    '{"property":"news","section":1,"id":1.5}', '{"property":"news","section":"1","id":1}',
    '{"property":"news","section":1,"id":null}', '{"property":1,"section":1,"id":1}',
    '{"property":"","section":1,"id":1}', '{"property":"news","section":0,"id":1}',
    '{"property":"news","section":-1,"id":1}', '{"property":"news","section":1,"id":-5}',
    '{"property":"news","section":1,"id":99999999999999999999}', '{"section":1,"id":1}', '{"property":"news","id":1}',
    '{"property":"news","section":1}', '{"property":"news","section":1,"id":1,"id":2}',
    '{"property":["news"],"section":1,"id":1}', '{"property":"a\tb","section":1,"id":1}',
    '{"property":"\\x","section":1,"id":1}', '{"property":"\\ud800","section":1,"id":1}', '{"property":"' + "x" * 256 +
    '","section":1,"id":1}', "[" * 5000, '{"a":' * 5000, b'{"property":"\xff\xfe","section":1,"id":1}',
    b'\xef\xbb\xbf{"property":"news","section":1,"id":1}', b"\0", b'{"property":"n\0","section":1,"id":1}', "<xml/>",
    "property=news&section=1&id=1",]


@case("what is malformed is refused with its place, and nothing of it is stored")
def malformed(base):
    holds(len(MALFORMED) >= 50, "50 kinds")
    good = json.dumps(EVENT)
    with http_server(base) as d:
        d.push(EVENT)
        for body in MALFORMED:
            for path in ("/v1/events", "/v1/events?ack=durable", TWIRP):
                status, headers, said = d.push(body, path=path)
                equal(status, 400, repr(body[:60]))
                if path == TWIRP:
                    equal(headers["Content-Type"], "application/json")
                    holds(said["code"] in ("malformed", "invalid_argument") and said["msg"], said)
                else:
                    equal(headers["Content-Type"], "application/problem+json")
                    holds(said["status"] == 400 and said["detail"] and said["code"], said)
        said = d.push('{"property":"a","section":1,\n"id":}')[2]["detail"]
        holds(said.endswith("(line 2, column 6)"), said)
        status, _, said = d.push("%s\n%s\n%s" % (good, good, '{"property":"news","section":1}'))
        equal((status, said["detail"]), (400, "event 3: id is missing (a number above 0)"))
        d.stop()
        equal(d.stored(), 1)


@case("paths and methods that are not there; bodies and headers that are too large")
def refused(base):
    with http_server(base) as d:
        equal(d.ask("GET", "/nowhere")[0], 404)
        status, headers, said = d.ask("GET", "/v1/events")
        equal((status, headers["Allow"], said["code"]), (405, "POST", "method_not_allowed"))
        equal(d.ask("POST", "/healthz", "x")[0], 405)
        status, _, said = d.push("[" + " " * (1 << 20) + "]")
        equal((status, said["code"]), (413, "too_large"))
        equal(d.push(b" " * (1 << 21), path=TWIRP)[2]["code"], "resource_exhausted")
        c = d.connect() # of a length that nobody told before
        c.request("POST", "/v1/events", iter([b" " * 65536] * 40),
                  encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        equal(c.getresponse().status, 413)
        c.close()
        status = d.ask("GET", "/healthz", headers={"X": "y" * 30000})[0]
        holds(status in (413, 431), status)
        equal(d.push(EVENT)[0], 200)


# ---- manners -------------------------------------------------------------------------------------


@case("a socket in the file system; one that a dead server left is taken over, one that is in use is not")
def unix_socket(base):
    path = os.path.join(base, "http_server.sock")

    def push():
        r = subprocess.run(
            ["curl", "-sS", "--unix-socket", path, "-d", json.dumps(EVENT),
             "http://localhost/v1/events?ack=durable"],
            capture_output=True, text=True, check=False)
        return r.stdout
    w = Feedwheel(base, "listen = unix:%s\n" % path)
    p = w.start("serve")
    wait_for("the server", lambda: push() == '{"stored":1}')
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o660, "a proxy in the server's group may connect")
    said = w.run("serve", code=4).stderr
    holds("listen = unix:" in said and "in use" in said and "another server listens there" in said, said)
    kill_group(p)
    p = w.start("serve")
    wait_for("the server", lambda: push() == '{"stored":1}')
    p.send_signal(signal.SIGTERM)
    equal(p.wait(30), 0)
    holds(not os.path.exists(path), "the socket is gone")


@case("unix: removes sockets only: a file, a folder, a link stay what they are, at the start and at the end")
def unix_only_sockets(base):
    path, other = os.path.join(base, "http_server.sock"), os.path.join(base, "data")
    with open(other, "w", encoding="ascii") as f:
        f.write("precious")
    for make in (
        lambda: os.link(other, path),
        lambda: os.symlink(other, path),
        lambda: os.symlink("nowhere", path),
        lambda: os.mkdir(path)):
        make()
        was = os.lstat(path)[:7] # all but when it was read
        said = Feedwheel(base, "listen = unix:%s\n" % path, name="other").run("serve", code=4).stderr
        holds("listen = unix:%s: a file that is not a socket exists there (choose another path" % path in said, said)
        equal(os.lstat(path)[:7], was, "what was there")
        (os.rmdir if os.path.isdir(path) else os.unlink)(path)
    w = Feedwheel(base, "listen = unix:%s\n" % path)
    p = w.start("serve")

    def answers():
        return subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/healthz"],
                              capture_output=True, check=False).returncode == 0
    wait_for("the server", answers)
    os.unlink(path)
    os.link(other, path)
    p.send_signal(signal.SIGTERM)
    equal(p.wait(30), 0)
    with open(path, encoding="ascii") as f:
        equal(f.read(), "precious")


@case("a server may be the first that the default store sees: it makes its folder")
def first_of_all(base):
    with http_server(base, store="sqlite:%s/feedwheel/feedwheel.db" % base) as d: # XDG_DATA_HOME is base
        equal(d.push(EVENT)[0], 200)
        equal(stat.S_IMODE(os.stat(os.path.join(base, "feedwheel")).st_mode), 0o700)


@case("addresses that cannot be listened on: the setting, the reason")
def bad_listen(base):
    with http_server(base) as d:
        w = Feedwheel(base, name="other")
        for where, words in (
            ("127.0.0.1:%d" % d.port, "another server listens there"),
            ("192.0.2.1:8080", "has no such address"),
            ("nowhere", "ADDRESS:PORT"),
            ("127.0.0.1:http80", "listen = 127.0.0.1:http80"),
            ("unix:/proc/no/such/sock", "the folder does not exist"),
            ("unix:" + "x" * 200, "longer than")):
            said = w.run("serve", "--listen", where, code=4).stderr
            holds(words in said, "%s: %s" % (where, said))
        said = w.run("serve", code=4).stderr
        holds("--listen" in said, said)


@case("clients that are slow, silent or half gone hold nobody up")
def slow_clients(base):
    with http_server(base) as d:
        idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(200)]
        for i, s in enumerate(idle):
            s.sendall(b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 38\r\n\r\n{\"prop"[:10 + i % 60])
        load = Load(d, clients=4)
        wait_for("load", lambda: len(load.promised) > 200)
        for s in idle[:100]:
            s.shutdown(socket.SHUT_WR)
        n = len(load.promised)
        wait_for("load", lambda: len(load.promised) > n + 200)
        load.stop()
        for s in idle:
            s.close()
        d.stop()
        load.check(items(d))


@case("a client that waits for 100-continue; one connection for many requests")
def curl(base):
    with http_server(base) as d:
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write(json.dumps([EVENT] * 1000))
        again = ["-w", "connections %{num_connects}\\n"] # that were made for it
        r = subprocess.run(
            ["curl", "-sS", "-v", *again, "-H", "Expect: 100-continue", "--data-binary", "@" + body,
             "http://127.0.0.1:%d/v1/events?ack=durable" % d.port, "-d", json.dumps(EVENT),
             "--next", "-sS", *again, "-d", json.dumps(EVENT),
             "http://127.0.0.1:%d/v1/events?ack=durable" % d.port],
            capture_output=True, text=True, check=False)
        holds("100 Continue" in r.stderr, r.stderr)
        equal(re.findall("connections (.*)", r.stdout), ["1", "0"], r.stderr)


if __name__ == "__main__":
    run()
