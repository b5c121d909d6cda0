#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The origin, the tests' server of feeds: its plans, faults, log and counts."""
import gzip
import http.client
import os
import socket
import ssl
import time
import zlib

from harness import case, certificate, equal, header, holds, origin, run, samples


def get(o, path, headers=None, host="127.1.0.1", method="GET"):
    c = http.client.HTTPConnection(host, o.port, timeout=60)
    c.request(method, path, headers=headers or {})
    r = c.getresponse()
    body = r.read()
    c.close()
    return r, body


def raw(o, path, silent=60.0, behind=b""):
    """All bytes of a response, and its end: "eof", "reset", "endless", or "silent" for this many
    seconds after the bytes `behind`."""
    s = socket.create_connection(("127.1.0.1", o.port), timeout=60)
    s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path).encode())
    data, end = b"", "eof"
    try:
        while True:
            if behind in data:
                s.settimeout(silent)
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
            if len(data) > 4 << 20:
                end = "endless"
                break
    except ConnectionResetError:
        end = "reset"
    except socket.timeout:
        end = "silent"
    s.close()
    return data, end


@case("documents are served complete, without a coding and in every coding")
def codings(base):
    docs = samples(base)
    name = sorted(os.listdir(docs))[0]
    with open(os.path.join(docs, name), "rb") as f:
        want = f.read()
    with origin(base, docs) as o:
        equal(get(o, "/feed/0")[1], want, "identity")
        r, body = get(o, "/feed/0", {"Accept-Encoding": "gzip"})
        equal(r.getheader("Content-Encoding"), "gzip")
        equal(gzip.decompress(body), want, "gzip")
        equal(zlib.decompress(get(o, "/with/coding=deflate/feed/0")[1]), want, "deflate")
        equal(zlib.decompress(get(o, "/with/coding=raw-deflate/feed/0")[1], -15), want, "raw deflate")
        r, body = get(o, "/with/coding=deflate+gzip,chunked/doc/" + name)
        equal((r.getheader("Content-Encoding"), r.getheader("Transfer-Encoding")), ("deflate, gzip", "chunked"))
        equal(zlib.decompress(gzip.decompress(body)), want, "stacked and chunked")


@case("a request with the validators of the response gets 304; other validators are counted as violations")
def validators(base):
    with origin(base, samples(base)) as o:
        r, _ = get(o, "/feed/1")
        etag, lm = r.getheader("ETag"), r.getheader("Last-Modified")
        both = {"If-None-Match": etag, "If-Modified-Since": lm}
        equal(get(o, "/feed/1", both)[0].status, 304)
        equal(get(o, "/feed/1", {"If-None-Match": "W/" + etag, "If-Modified-Since": lm})[0].status, 200)
        equal(get(o, "/feed/2", both)[0].status, 200, "validators of another feed")
        equal(get(o, "/feed/1", {"If-None-Match": etag})[0].status, 304)
        equal(get(o, "/with/validators=none/feed/1", both)[0].status, 200)
        bad = [r.get("violation") for r in o.requests()]
        equal(bad, [None, None, "If-None-Match was never given", "If-None-Match was never given",
                    "only one of the two validators came back", "If-None-Match was never given"])
        equal(o.stats()["violations"], 4)


@case("growing feeds number their entries; the validators change with the versions")
def growth(base):
    with origin(base, samples(base), plans=["0 grow=2,start=3,window=4"]) as o:
        tops = []
        for _ in range(5):
            r, body = get(o, "/feed/0")
            tops.append(body.count(b"<item>") * 100 + int(body.split(b"entry-")[1].split(b"<")[0]))
        equal(tops, [303, 303, 404, 404, 405])
        old = {"If-None-Match": r.getheader("ETag"), "If-Modified-Since": r.getheader("Last-Modified")}
        equal([get(o, "/feed/0", old)[0].status for _ in range(2)], [304, 200])
        equal(o.stats()["violations"], 0)


@case("faults below HTTP: a reset, a short body, silence, a slow body, an endless body")
def faults(base):
    with origin(base, samples(base)) as o:
        equal(raw(o, "/with/reset=start/feed/0"), (b"", "reset"))
        data, end = raw(o, "/with/reset=body,close/feed/0")
        holds(end == "reset" or b"200 OK" in data, "reset in the body")
        data, end = raw(o, "/with/short=100/feed/0")
        equal(end, "eof")
        length = int(data.split(b"Content-Length: ")[1].split(b"\r")[0])
        equal(length - len(data.split(b"\r\n\r\n", 1)[1]), 100, "missing bytes")
        equal(raw(o, "/with/hang=start/feed/0", 0.5), (b"", "silent"))
        data, end = raw(o, "/with/hang=body/feed/0", 0.5, b"\r\n\r\n")
        holds(end == "silent" and b"\r\n\r\n" in data, "hang in the body")
        for plan in ("endless", "endless-headers", "bomb=endless"):
            equal(raw(o, "/with/%s/feed/0" % plan)[1], "endless", plan)
        start = time.monotonic()
        equal(len(get(o, "/with/drip=20000,coding=identity/feed/0")[1]) > 3000, True)
        holds(time.monotonic() - start > 0.1, "the time of a slow body")
        equal(len(zlib.decompress(get(o, "/with/bomb=3/feed/0", {"Accept-Encoding": "gzip"})[1], 31)), 3 << 20)


@case("plans with statuses, redirects, headers, web pages, first= and after=")
def statuses(base):
    plans = ["3 first=1,503,retry-after=120", "4 after=1,410", "5 redirect=301:feed/6", "7 html", "%9=8 404"]
    with origin(base, samples(base), plans=plans) as o:
        r, _ = get(o, "/feed/3")
        equal((r.status, r.getheader("Retry-After")), (503, "120"))
        equal([get(o, "/feed/3")[0].status, get(o, "/feed/4")[0].status, get(o, "/feed/4")[0].status], [200, 200, 410])
        equal(get(o, "/feed/5")[0].getheader("Location"), o.urls[6])
        holds(b'href="/doc/7"' in get(o, "/feed/7")[1], "the page links its feed")
        equal(get(o, "/doc/7")[0].status, 200)
        equal([get(o, "/feed/%d" % i)[0].status for i in (8, 17, 18)], [404, 404, 200])
        r, _ = get(o, "/with/header=Cache-Control: max-age=60%2C public,cookie,expires=-5/feed/0".replace(" ", "%20"))
        equal(r.getheader("Cache-Control"), "max-age=60, public")
        holds(r.getheader("Set-Cookie") and r.getheader("Expires"), "Set-Cookie and Expires")
        locations = [get(o, "/with/redirect=302:endless/feed/0" + q)[0].getheader("Location") for q in ("", "?hop=4")]
        equal(locations, ["/feed/0?hop=1", "/feed/0?hop=5"])
        equal(get(o, "/with/nonsense/feed/0")[0].status, 400)
        equal(get(o, "/feed/0", method="POST")[0].status, 405)


@case("hosts that refuse connections, do not accept them, or do not exist")
def connecting(base):
    with origin(base, samples(base), plans=["1 refuse", "2 noaccept", "3 nxdomain"]) as o:
        for i, kind in ((1, ConnectionRefusedError), (2, socket.timeout)):
            host, port = o.urls[i].split("/")[2].split(":")
            try:
                socket.create_connection((host, int(port)), timeout=0.5)
                raise AssertionError("feed %d connected" % i)
            except kind:
                pass
        holds(".invalid:" in o.urls[3], "a name that does not exist")


@case("the log and the counts have hosts, gaps, headers and requests in flight")
def politeness(base):
    with origin(base, samples(base), "--hosts", "2", "--latency", "fixed:60") as o:
        socks = [socket.create_connection(("127.1.0.1", o.port)) for _ in range(3)]
        for s in socks:
            s.sendall(b"GET /feed/0 HTTP/1.1\r\nHost: a\r\nX-Odd:  two  \r\n\r\n")
        for s in socks:
            s.recv(100)
            s.close()
        get(o, "/feed/1", host="127.1.0.2")
        stats = o.stats(hosts=True)
        equal(stats["hosts"]["127.1.0.1"]["in_flight_max"], 3)
        equal(stats["hosts"]["127.1.0.2"]["in_flight_max"], 1)
        equal(stats["hosts"]["127.1.0.2"]["gap_min_us"], -1)
        lines = o.requests()
        equal(len(lines), 4)
        equal(header(lines[0], "x-odd"), ["two"])
        holds(all(r["end_us"] - r["start_us"] >= 59000 for r in lines), "latency of 60 ms")


@case("documents are served over TLS, large ones too")
def over_tls(base):
    ca, cert, key = certificate(base, ["127.0.0.1", "127.1.0.1"])
    with origin(base, samples(base, "--bytes", "600000"), "--tls", cert, key) as o:
        holds(o.urls[0].startswith("https://"), o.urls[0])
        c = http.client.HTTPSConnection("127.1.0.1", o.port, timeout=60, context=ssl.create_default_context(cafile=ca))
        for _ in range(2): # the second on the same connection
            c.request("GET", "/with/coding=identity/feed/0")
            holds(len(c.getresponse().read()) > 400000, "a large body")
        c.close()
        equal(o.stats()["connections"], 2, "connections, this one included")


@case("samples with the same arguments have the same bytes; all formats are among them")
def sample_feeds(base):
    def read(docs):
        return {n: open(os.path.join(docs, n), "rb").read() for n in os.listdir(docs)}  # pylint: disable=R1732
    a = read(samples(base, "--now", "1795266000"))
    equal(read(samples(base, "--now", "1795266000")), a)
    everything = b"".join(a.values())
    for mark in (b'rss version="0.91"', b'rss version="0.92"', b'rss version="2.0"', b"<rdf:RDF", b'feed version="0.3"',
                 b"2005/Atom", b"jsonfeed.org/version/1\"", b"jsonfeed.org/version/1.1", b"windows-1251", b"shift_jis"):
        holds(mark in everything, mark)
    holds(30 <= len(a) <= 40, "30 to 40 documents")


run()
