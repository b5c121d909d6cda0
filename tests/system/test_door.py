#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The manners of the front door: who asks, limits of time and size, what bodies may look like, TLS, the access log."""
import json
import os
import subprocess

from door import door
from harness import Wheel, case, equal, holds, run, wait_for


EVENT = {"property": "news", "section": 1, "id": 1}
TWIRP = "/twirp/stats.StatsService/Push"


# ---- who asks ----------------------------------------------------------------------------------------------------------------------------------


def token(base):
    """The headers that let whoever seems to come from elsewhere push."""
    return ("Authorization", "Bearer " + Wheel(base).run("token", "add", "proxy", "--scope", "push").stdout.strip())


def address(d, *headers):
    """remote_ip of one event that is pushed with these headers (a list of pairs, so that one may come twice)."""
    c = d.connect()
    body = json.dumps(EVENT).encode()
    c.putrequest("POST", "/v1/events?ack=durable")
    for name, value in [*headers, ("Content-Length", str(len(body)))]:
        c.putheader(name, value)
    c.endheaders(body)
    equal(c.getresponse().status, 200)
    c.close()
    return d.wheel.one("SELECT remote_ip FROM incoming ORDER BY id DESC LIMIT 1")


@case("what a header says of the client's address is not believed, unless a proxy of ours says it")
def proxies(base):
    may = token(base)
    forged = [("X-Forwarded-For", "192.0.2.1"), ("X-Real-IP", "192.0.2.2"), ("Forwarded", "for=192.0.2.3")]
    with door(base) as d:
        equal(address(d, may), "127.0.0.1")
        equal(address(d, may, *forged), "127.0.0.1")
    with door(base, conf="trusted_proxies = 10.0.0.0/8, ::1\n") as d:
        equal(address(d, may, *forged), "127.0.0.1")
    with door(base, conf="trusted_proxies = 127.0.0.1, 10.0.0.0/8\n") as d:
        equal(address(d, may), "127.0.0.1")
        equal(address(d, may, *forged), "192.0.2.1")
        equal(address(d, may, *forged[1:]), "192.0.2.2")
        equal(address(d, may, *forged[2:]), "127.0.0.1")
        equal(address(d, may, ("x-forwarded-for", "203.0.113.7"), ("X-FORWARDED-FOR", "2001:db8::7, 10.1.1.1")), "2001:db8::7")
        equal(address(d, may, ("X-Forwarded-For", "unknown")), "127.0.0.1")
        equal(address(d, may, ("X-Forwarded-For", ", ".join(["192.0.2.%d" % i for i in range(200)]))), "192.0.2.199")
        equal(address(d, may, ("X-Real-IP", "nobody")), "127.0.0.1")


@case("over a unix socket there is no address, but a proxy may name one")
def proxy_unix(base):
    path, may = os.path.join(base, "door.sock"), ": ".join(token(base))
    for conf, want in (("", ""), ("trusted_proxies = unix\n", "192.0.2.1")):
        w = Wheel(base, conf + "listen = unix:%s\n" % path)
        p = w.start("serve")

        def push():
            r = subprocess.run(["curl", "-sS", "--unix-socket", path, "-H", "X-Forwarded-For: 192.0.2.1", "-H", may, "-d", json.dumps(EVENT),
                                "http://x/v1/events?ack=durable"], capture_output=True, text=True, check=False)
            return r.stdout == '{"stored":1}'
        wait_for("the server", push)
        equal(w.one("SELECT coalesce(remote_ip, '') FROM incoming ORDER BY id DESC LIMIT 1"), want)
        p.terminate()
        equal(p.wait(30), 0)


@case("proxies that are none: the setting, the item, the remedy")
def bad_proxies(base):
    with door(base) as d:
        w = Wheel(base, "trusted_proxies = 10.0.0.1, everybody\nlisten = 127.0.0.1:0\n", name="other")
        said = w.run("serve", code=4).stderr
        holds("trusted_proxies: 'everybody' is no network: write" in said, said)
        equal(d.push(EVENT, path=TWIRP)[0], 200)


if __name__ == "__main__":
    run()
