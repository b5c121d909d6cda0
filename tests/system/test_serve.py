#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The server: accepted and refused requests, listening addresses, slow clients. (Its promises:
test_ingest.py.)"""
import email.utils
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

from http_server import http_server, kill_group
from harness import Feedwheel, case, equal, holds, run, wait_for
from pushing import EVENT, TWIRP, Load, items


# ---- pushes --------------------------------------------------------------------------------------


@case("every form of events is stored; a durable push is stored before its response")
def accepted(base):
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
        last = d.feedwheel.sql(
            "SELECT property, property_section, property_id, remote_ip FROM incoming ORDER BY id DESC LIMIT 1")
        equal(last, [("\u00e9t\u00e9 \U0001f600", 2**53 + 1, 2**63 - 1, "127.0.0.1")])
        ids = [r[0] for r in d.feedwheel.sql("SELECT id FROM incoming ORDER BY rowid")]
        equal(len(set(ids)), 2011)
        now = time.time() * 1000
        holds(all(abs((i >> 22) + 1704067200000 - now) < 60000 for i in ids), "an id contains its time")


@case("prepared responses have one Date header, with the current second")
def dates(base):
    def seen(path):
        """The Date of a push's response, in seconds."""
        with socket.create_connection(("127.0.0.1", d.port)) as c:
            body = json.dumps(EVENT)
            head = "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            c.sendall((head % (path, len(body)) + body).encode())
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


@case("health, readiness, rings and metrics are reported")
def health(base):
    with http_server(base) as d:
        equal(d.request("GET", "/healthz")[0], 200)
        equal(d.request("GET", "/readyz")[::2], (200, {"status": "ready"}))
        d.push([EVENT] * 7)
        ring = d.request("GET", "/v1/ring")[2]
        equal((ring["accepted"], ring["stored"], ring["fill_bytes"]), (7, 7, 0))
        text = d.request("GET", "/metrics")[2]
        holds("feedwheel_push_stored_rows_total 7\n" in text, text)
        # usually one flush, seven at most
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
    '{"property":"\\x","section":1,"id":1}', '{"property":"\\ud800","section":1,"id":1}',
    '{"property":"' + "x" * 256 + '","section":1,"id":1}', "[" * 5000, '{"a":' * 5000,
    b'{"property":"\xff\xfe","section":1,"id":1}', b'\xef\xbb\xbf{"property":"news","section":1,"id":1}', b"\0",
    b'{"property":"n\0","section":1,"id":1}', "<xml/>", "property=news&section=1&id=1"]


@case("a malformed body is refused with its place, and none of it is stored")
def malformed(base):
    holds(len(MALFORMED) >= 50, "50 kinds")
    good = json.dumps(EVENT)
    with http_server(base) as d:
        d.push(EVENT)
        for body in MALFORMED:
            for path in ("/v1/events", "/v1/events?ack=durable", TWIRP):
                status, headers, response = d.push(body, path=path)
                equal(status, 400, repr(body[:60]))
                if path == TWIRP:
                    equal(headers["Content-Type"], "application/json")
                    holds(response["code"] in ("malformed", "invalid_argument") and response["msg"], response)
                else:
                    equal(headers["Content-Type"], "application/problem+json")
                    holds(response["status"] == 400 and response["detail"] and response["code"], response)
        response = d.push('{"property":"a","section":1,\n"id":}')[2]["detail"]
        holds(response.endswith("(line 2, column 6)"), response)
        status, _, response = d.push("%s\n%s\n%s" % (good, good, '{"property":"news","section":1}'))
        equal((status, response["detail"]), (400, "event 3: id is missing (a number above 0)"))
        d.stop()
        equal(d.stored(), 1)


@case("unknown paths, wrong methods, and too large bodies and headers are refused")
def refused(base):
    with http_server(base) as d:
        equal(d.request("GET", "/nowhere")[0], 404)
        for path, word in (("feeds/abc", "abc"), ("entries/0", "0"), ("entries/%d" % 10**20, str(10**20)),
                           ("feeds/-1/entries", "-1")):
            status, _, response = d.request("GET", "/v1/" + path)
            equal((status, response["detail"].split(" in ")[0]), (404, "'%s'" % word), path)
        equal(d.request("GET", "/v1/feeds/1/nowhere")[2]["detail"], "unknown path (see GET /openapi.json)")
        status, headers, response = d.request("GET", "/v1/events")
        equal((status, headers["Allow"], response["code"]), (405, "POST", "method_not_allowed"))
        equal(d.request("POST", "/healthz", "x")[0], 405)
        status, _, response = d.push("[" + " " * (1 << 20) + "]")
        equal((status, response["code"]), (413, "too_large"))
        equal(d.push(b" " * (1 << 21), path=TWIRP)[2]["code"], "resource_exhausted")
        c = d.connect() # without Content-Length
        chunks = iter([b" " * 65536] * 40)
        c.request("POST", "/v1/events", chunks, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        equal(c.getresponse().status, 413)
        c.close()
        status = d.request("GET", "/healthz", headers={"X": "y" * 30000})[0]
        holds(status in (413, 431), status)
        equal(d.push(EVENT)[0], 200)


# ---- addresses and clients -----------------------------------------------------------------------


@case("a dead server's unix socket is taken over; a socket in use is an error")
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
    output = w.run("serve", code=4).stderr
    holds("listen = unix:" in output and "in use" in output and "another server listens there" in output, output)
    kill_group(p)
    p = w.start("serve")
    wait_for("the server", lambda: push() == '{"stored":1}')
    p.send_signal(signal.SIGTERM)
    equal(p.wait(30), 0)
    holds(not os.path.exists(path), "the socket is gone")


@case("listen = unix: removes sockets only, never a file, a folder or a link")
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
        was = os.lstat(path)[:7] # without the times
        output = Feedwheel(base, "listen = unix:%s\n" % path, name="other").run("serve", code=4).stderr
        want = "listen = unix:%s: a file that is not a socket exists there (choose another path" % path
        holds(want in output, output)
        equal(os.lstat(path)[:7], was, "the file")
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


@case("a server may be the first user of the default store: it makes its folder")
def first_of_all(base):
    with http_server(base, store="sqlite:%s/feedwheel/feedwheel.db" % base) as d: # XDG_DATA_HOME is base
        equal(d.push(EVENT)[0], 200)
        equal(stat.S_IMODE(os.stat(os.path.join(base, "feedwheel")).st_mode), 0o700)


@case("an unusable listen address is an error that names the setting and the reason")
def bad_listen(base):
    with http_server(base) as d:
        w = Feedwheel(base, name="other")
        for where, words in (
            ("127.0.0.1:%d" % d.port, "another server listens there"),
            ("192.0.2.1:8080", "has no such address"),
            ("nowhere", "ADDRESS:PORT"),
            ("127.0.0.1:http80", "'http80' is not a port: 1 to 65535"),
            ("127.0.0.1:80000", "'80000' is not a port: 1 to 65535"),
            ("unix:/proc/no/such/sock", "the folder does not exist"),
            ("unix:" + "x" * 200, "longer than")):
            output = w.run("serve", "--listen", where, code=4).stderr
            holds(words in output, "%s: %s" % (where, output))
        output = w.run("serve", code=4).stderr
        holds("--listen" in output, output)


@case("slow, silent and half closed clients do not delay others")
def slow_clients(base):
    with http_server(base) as d:
        idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(200)]
        for i, s in enumerate(idle):
            s.sendall(b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 38\r\n\r\n{\"prop"[:10 + i % 60])
        load = Load(d, clients=4)
        wait_for("load", lambda: len(load.acknowledged) > 200)
        for s in idle[:100]:
            s.shutdown(socket.SHUT_WR)
        n = len(load.acknowledged)
        wait_for("load", lambda: len(load.acknowledged) > n + 200)
        load.stop()
        for s in idle:
            s.close()
        d.stop()
        load.check(items(d))


@case("Expect: 100-continue is answered, and one connection carries several requests")
def curl(base):
    with http_server(base) as d:
        body = os.path.join(base, "body")
        with open(body, "w", encoding="ascii") as f:
            f.write(json.dumps([EVENT] * 1000))
        count = ["-w", "connections %{num_connects}\\n"]
        url = "http://127.0.0.1:%d/v1/events?ack=durable" % d.port
        r = subprocess.run(
            ["curl", "-sS", "-v", *count, "-H", "Expect: 100-continue", "--data-binary", "@" + body, url,
             "-d", json.dumps(EVENT), "--next", "-sS", *count, "-d", json.dumps(EVENT), url],
            capture_output=True, text=True, check=False)
        holds("100 Continue" in r.stderr, r.stderr)
        equal(re.findall("connections (.*)", r.stdout), ["1", "0"], r.stderr)


if __name__ == "__main__":
    run()
