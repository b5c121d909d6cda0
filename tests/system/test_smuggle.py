#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Request smuggling: ambiguous requests are refused, and nothing after them on the connection is
answered."""
import contextlib
import json
import re
import socket

from http_server import http_server
from harness import case, equal, holds, run

EVENT = json.dumps({"property": "news", "section": 1, "id": 1}).encode()
BEHIND = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ALIVE = b'{"status":"alive"}'


def exchange(d, *pieces, enough=None):
    """Send the pieces; all that the server sends until it closes, or until enough is in it."""
    got = b""
    with socket.create_connection(("127.0.0.1", d.port), timeout=120) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError): # the server does not read all of it
            for p in pieces:
                s.sendall(p)
        with contextlib.suppress(ConnectionResetError):
            while enough is None or enough not in got:
                more = s.recv(65536)
                if not more:
                    break
                got += more
    return got


def statuses(answer):
    return [int(n) for n in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]


def post(*lines, body=EVENT, path=b"/v1/events", version=b"HTTP/1.1", host=b"Host: x"):
    headers = ((host,) if host else ()) + lines
    return b"POST %s %s\r\n" % (path, version) + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def get(*lines, path=b"/healthz?first", version=b"HTTP/1.1", host=b"Host: x", end=b"\r\n"):
    headers = ((host,) if host else ()) + lines
    return b"GET %s %s" % (path, version) + end + b"".join(h + end for h in headers) + end


def chunked(*pieces, end=b"\r\n", behind=b""):
    return b"".join(b"%x%s%s%s%s" % (len(p), behind, end, p, end) for p in pieces) + b"0" + end + end


LENGTH = b"Content-Length: %d" % len(EVENT)
CHUNKED = b"Transfer-Encoding: chunked"

# Each is followed by a request that must not be answered.
BAD = {
    "a length and chunks, chunks first": post(CHUNKED, b"Content-Length: 4", body=chunked(EVENT)),
    "a length and chunks, the length first": post(
        b"Content-Length: %d" % (5 + len(BEHIND)), CHUNKED, body=b"0\r\n\r\n"),
    "two lengths": post(b"Content-Length: 0", b"Content-Length: %d" % len(BEHIND), body=b""),
    "the same length twice": post(LENGTH, LENGTH),
    "a list of lengths": post(b"Content-Length: %d, %d" % (len(EVENT), len(EVENT))),
    "a length with a plus": post(b"Content-Length: +%d" % len(EVENT)),
    "a negative length": post(b"Content-Length: -1"),
    "a length in hex": post(b"Content-Length: 0x10"),
    "no length": post(b"Content-Length: "),
    "a length with a space in it": post(b"Content-Length: 4 4"),
    "a length of 2^64 - 1": post(b"Content-Length: 18446744073709551615"),
    "a length of 2^64": post(b"Content-Length: 18446744073709551616"),
    "a space before the colon": post(b"Content-Length : %d" % len(BEHIND), body=b""),
    "a tab before the colon": post(b"Content-Length\t: %d" % len(BEHIND), body=b""),
    "a space in a name": post(LENGTH, b"X Y: z"),
    "a space before the first name": get(b"X: y", host=b" Host: x"),
    "an empty name": get(b": x"),
    "a line without a colon": get(b"X"),
    "a name with a quote": get(b'X"Y: z'),
    "a name beyond ASCII": get(b"X\xc3\xa4: z"),
    "unknown chunks": post(b"Transfer-Encoding: xchunked", body=chunked(EVENT)),
    "identity, a removed coding": post(b"Transfer-Encoding: identity", LENGTH),
    "gzip and chunks": post(b"Transfer-Encoding: gzip, chunked", body=chunked(EVENT)),
    "chunks and identity": post(b"Transfer-Encoding: chunked, identity", body=chunked(EVENT)),
    "chunks, twice": post(CHUNKED, CHUNKED, body=chunked(EVENT)),
    "chunks and identity, in two lines": post(CHUNKED, b"Transfer-Encoding: identity", body=chunked(EVENT)),
    "a vertical tab before chunks": post(b"Transfer-Encoding: \x0bchunked", body=chunked(EVENT)),
    "chunks in HTTP/1.0": post(CHUNKED, body=chunked(EVENT), version=b"HTTP/1.0"),
    "an invalid chunk size": post(CHUNKED, body=b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(EVENT), EVENT)),
    "a folded line": get(b"X: y", b" z"),
    "chunks in a folded line": post(b"Transfer-Encoding:", b" chunked", body=chunked(EVENT)),
    "line feeds for line ends": get(end=b"\n"),
    "a line feed behind the request line": get().replace(b"\r\n", b"\n", 1),
    "a line feed behind a header": get(b"X: y").replace(b"y\r\n", b"y\n"),
    "a line feed behind a space": get(b"X: y").replace(b"y\r\n", b"y \n"),
    "a line feed for the empty line": get(b"X: y")[:-2] + b"\n",
    "a line feed hides a header": get(b"X: y\nContent-Length: %d" % len(BEHIND)),
    "a carriage return in a value": get(b"X: y\rContent-Length: 5"),
    "no host": get(host=None),
    "two hosts": get(b"Host: y"),
    "the same host twice": get(b"host: x"),
    "two hosts in HTTP/1.0": get(b"Host: y", version=b"HTTP/1.0"),
    "another host in the path": get(path=b"http://evil.example/healthz"),
    "a path that does not begin": get(path=b"healthz"),
    "a zero byte in a value": get(b"X: a\0b"),
    "a zero byte at the end of a value": get(b"X: a\0"),
    "a zero byte in a name": get(b"X\0Y: z"),
    "a zero byte for the empty line": get(b"X: y", b"\0Content-Length: %d" % len(BEHIND)),
    "a zero byte in the path": get(path=b"/healthz\0/../v1/feeds"),
    "a zero byte in a parameter": get(path=b"/healthz?a=b\0c"),
    "%00 in the path": get(path=b"/healthz%00/../v1/feeds"),
    "a space in the path": get(path=b"/healthz?a= b"),
    "a tab in the path": get(path=b"/healthz?a=\tb"),
    "two spaces": get(path=b" /healthz"),
    "a space behind the version": get(version=b"HTTP/1.1 "),
    "an escape character in a value": get(b"X: \x1b[2J"),
    "a path without an end": get(path=b"/" + b"a" * 13000),
    "200 parameters": get(path=b"/v1/feeds?" + b"&".join(b"q=%d" % i for i in range(200))),
    "2000 empty parameters": get(path=b"/healthz?" + b"&" * 2000),
}
CODINGS = (
    "unknown chunks", "identity, a removed coding", "gzip and chunks", "chunks and identity", "chunks, twice",
    "chunks and identity, in two lines", "a vertical tab before chunks")
STATUSES = { # permitted instead of [400]; [] is an end without a response
    "a length of 2^64": ([400], [413]), "a length of 2^64 - 1": ([400], [413]), "a path without an end": ([414],),
    "200 parameters": ([414],), "2000 empty parameters": ([414],),
    # libmicrohttpd 1.0.10 refuses these itself (RFC 9112, 6.1: 501 is for unknown codings)
    **{name: ([400], [501]) for name in CODINGS},
    # libmicrohttpd 1.0 and later refuse these before they call us, without a response
    "a zero byte in the path": ([400], []), "a zero byte in a parameter": ([400], []), "two spaces": ([400], []),
}


@case("a malformed or ambiguous head is answered 400, and nothing after it is answered")
def heads(base):
    wrong = []
    with http_server(base, conf="serve_host_names = x\n") as d:
        for what, request in BAD.items():
            answer = exchange(d, request + BEHIND, enough=ALIVE)
            holds(ALIVE not in answer, "%s: the request after it is answered: %r" % (what, answer))
            # libmicrohttpd 0.9.75 sends its own refusals twice before the end
            seen = statuses(answer)[:1] if len(set(statuses(answer))) == 1 else statuses(answer)
            if seen not in STATUSES.get(what, ([400],)):
                wrong.append((what, answer[:60]))
        equal(wrong, [], "wrong statuses")
        for path, key, value in (
            ("/v1/events", "code", "malformed_request"),
            ("/twirp/stats.StatsService/Push", "code", "malformed")):
            body = exchange(d, post(LENGTH, b"X: \x1b[2J", path=path.encode())).partition(b"\r\n\r\n")[2]
            equal(json.loads(body)[key], value)
        answer = exchange(d, get(path=b"/healthz?" + b"&" * 2000))
        holds(b"Connection: close\r\n" in answer and b'"code":"too_long"' in answer
              and b"more than 50 parameters" in answer, answer)
        equal(d.request("GET", "/v1/ring")[2]["accepted"], 0, "accepted rows")


@case("a malformed head is refused byte by byte, and after a valid request")
def pieces(base):
    with http_server(base, conf="serve_host_names = x\n") as d:
        for what in (
            "two lengths", "a line feed behind a header", "a zero byte in a value", "a zero byte in the path",
            "no host", "a space before the colon"):
            request = BAD[what]
            in_bytes = [request[i:i + 1] for i in range(len(request))]
            for sent in in_bytes + [BEHIND], [post(LENGTH) + request + BEHIND]:
                answer = exchange(d, *sent, enough=ALIVE)
                holds(ALIVE not in answer, "%s: %r" % (what, answer))
                equal([s for s in statuses(answer) if s not in (202, 400)], [], what)
                equal(statuses(answer).count(202), int(len(sent) == 1), what)


# libmicrohttpd 0.9.75 accepts line feeds between chunks, so such a request ends its connection.
CHUNKS = {
    "line feeds": chunked(EVENT, end=b"\n"),
    "a line feed behind an extension": b"%x;\n%s\r\n0\r\n\r\n" % (len(EVENT), EVENT),
    "a line feed behind the last chunk": chunked(EVENT)[:-4] + b"\n\r\n",
    "a line feed behind a chunk": b"%x\r\n%s\n0\r\n\r\n" % (len(EVENT), EVENT),
    "a line feed in a trailer": chunked(EVENT)[:-2] + b"X: y\n\r\n",
}


@case("chunks with line feeds as line ends are refused, or end their connection")
def chunk_lines(base):
    with http_server(base, conf="serve_host_names = x\n") as d:
        for what, body in CHUNKS.items():
            for path in (b"/v1/events", b"/v1/events?ack=durable", b"/twirp/stats.StatsService/Push", b"/v1/nothing"):
                answer = exchange(d, post(CHUNKED, body=body, path=path) + BEHIND, enough=ALIVE)
                holds(ALIVE not in answer, "%s: the request after it is answered: %r" % (what, answer))
                equal(len(statuses(answer)), 1, what)
                holds(statuses(answer)[0] == 400 or b"Connection: close\r\n" in answer, "%s: %r" % (what, answer))


GOOD = {
    "plain": (post(LENGTH), 202),
    "small letters": (post(LENGTH.lower(), host=b"host: x"), 202),
    "no space behind the colon": (post(LENGTH.replace(b" ", b""), host=b"Host:x"), 202),
    "tabs and spaces": (post(LENGTH.replace(b" ", b"\t  "), b"X: y \t", b"Y:", b"Z: \t"), 202),
    "an empty line before": (b"\r\n" + post(LENGTH), 202),
    "bytes beyond ASCII": (post(LENGTH, b"User-Agent: \xe4\xc3\xa4"), 202),
    "all characters of names": (post(LENGTH, b"X!#$%&'*+-.^_`|~09: y"), 202),
    "cookies": (post(LENGTH, b"Cookie: a=b; c=d", b"Cookie: e=f"), 202),
    "a repeated header": (get(b"X-Forwarded-For: 192.0.2.1", b"X-Forwarded-For: 192.0.2.2"), 200),
    "no body": (get(), 200),
    "an empty body": (get(b"Content-Length: 0"), 200),
    "an empty host": (get(host=b"Host:"), 200),
    "a path beyond ASCII": (get(path=b"/healthz?\xc3\xa4=%C3%A4"), 200),
    "fifty parameters": (get(path=b"/healthz?" + b"&".join(b"q=%d" % i for i in range(50))), 200),
    "%00 in a parameter": (get(path=b"/healthz?a=%00"), 200),
    "a long path": (get(path=b"/healthz?q=" + b"a" * 11000), 200),
    "options of everything": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
}


@case("a valid head is answered, and so is the request after it")
def good(base):
    with http_server(base, conf="serve_host_names = x\n") as d:
        for what, (request, status) in GOOD.items():
            answer = exchange(d, request + BEHIND.replace(b"healthz", b"openapi.json"), enough=b'"openapi"')
            equal(statuses(answer), [status, 200], what)
            in_bytes = [request[i:i + 1] for i in range(min(len(request), 300))]
            enough = ALIVE if status != 200 else ALIVE + b"HTTP"
            answer = exchange(d, *in_bytes, request[300:] + BEHIND, enough=enough)
            equal(statuses(answer)[0], status, what + ", a byte at a time")
        equal(statuses(exchange(d, get(host=None, version=b"HTTP/1.0"))), [200])
        equal(statuses(exchange(d, get(version=b"HTTP/1.0"))), [200])
        for body in (chunked(EVENT), chunked(b"[", EVENT, b"]"), chunked(EVENT).upper()[:2] + chunked(EVENT)[2:]):
            for path in (b"/v1/events", b"/v1/events?ack=durable", b"/twirp/stats.StatsService/Push"):
                answer = exchange(d, post(CHUNKED, b"Connection: close", body=body, path=path))
                holds(statuses(answer) in ([200], [202]), answer)


@case("heads of all sizes are answered, large ones with 414 or 431")
def sizes(base):
    with http_server(base, conf="serve_host_names = x\n") as d:
        for size in range(0, 17000, 450):
            parameters = b"&".join([b"q=" + b"a" * (size // 50)] * 50)
            for name, request in (
                ("a header", get(b"X: " + b"a" * size)),
                ("headers", get(*[b"X: " + b"a" * 95] * (size // 100))),
                ("a path", get(path=b"/healthz?q=" + b"a" * size)),
                ("parameters", get(*[b"X: a"] * 20, path=b"/healthz?" + parameters))):
                response = statuses(exchange(d, request[:-1], request[-1:], enough=ALIVE))
                # above 15000 bytes libmicrohttpd may close without a response
                holds(response in ([200], [414], [431]) or (response == [] and size > 15000),
                      "%s of %d bytes: %s" % (name, size, response))
                holds(response == [200] or size > 6000, "%s of %d bytes: %s" % (name, size, response))


if __name__ == "__main__":
    run()
