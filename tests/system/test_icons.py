#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Icons of feeds: what a server fetches, what it refuses, and who sees them."""
import base64
import contextlib
import json
import socket
import threading
import time

from harness import case, each_engine, equal, holds, run, store_of, wait_for
from http_server import http_server
from page_client import Visitor
from icon_site import PNG, Client, Site, has_icon, icon
from readers import user_add

DAY_MS = 86400000
CONF = "auth_failures_max = 0\nserve_discovery = yes\nhost_gap_ms = 0\nallow_networks = 127.0.0.0/24\n"
ICO = b"\0\0\1\0\1\0" + bytes(range(255, 0, -1))
GIF, JPEG, WEBP = b"GIF89a" + bytes(40), b"\xff\xd8\xff\xe0" + bytes(41), b"RIFF\x20\0\0\0WEBPVP8 " + bytes(42)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
LARGEST = 65536
TYPES = ((PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (WEBP, "image/webp"), (ICO, "image/x-icon"))


@contextlib.contextmanager
def serving(base, engine="sqlite", conf=CONF):
    site = Site()
    try:
        with store_of(engine, base) as s, http_server(base, store=s, conf=conf) as d:
            user_add(d, "alice")
            user_add(d, "bob")
            yield d, site, Client(d)
    finally:
        site.stop()


def failed_n(d):
    """Of the addresses that feeds name."""
    return d.feedwheel.one("SELECT count(*) FROM icons WHERE failed = 1 AND url NOT LIKE '%/favicon.ico'")


@each_engine("an icon is fetched once, when a client asks, and shown by all APIs and the page; to others it is 404",
             also=["sqlite"], leave_out=["redis"])
def shown(base, engine):
    with serving(base, engine) as (d, site, c):
        site.pages.update({"/i.png": ("text/html", PNG), "/favicon.ico": ("text/plain", ICO)})
        named, twin = site.add(c, "named", site.url("/i.png")), site.add(c, "twin", site.url("/i.png"))
        plain, none = site.add(c, "plain"), site.add(c, "none", host=2)
        equal(site.requests, [])
        equal([f["icon"] for f in c.get("feeds")], [None] * 4)
        has_icon(c, named)
        has_icon(c, plain)
        equal((icon(c, named), icon(c, twin)), (("image/png", PNG),) * 2)
        equal(icon(c, plain), ("image/x-icon", ICO))
        has_icon(c, none)
        feeds = {f["id"]: f["icon"] for f in c.get("feeds")}
        number = feeds[named]["icon_id"]
        equal((feeds[named], feeds[twin]), tuple({"feed_id": f, "icon_id": number} for f in (named, twin)))
        holds(number != feeds[plain]["icon_id"], feeds)
        equal(c.get("icons/%d" % number), c.get("feeds/%d/icon" % named))
        equal(c.get("entries")["entries"][0]["feed"]["icon"]["icon_id"] > 0, True)
        c.get("icons/4711", want=404)

        r = c.fever("&feeds&favicons")
        data = {i["id"]: i["data"] for i in r["favicons"]}
        of = {i["id"]: i["favicon_id"] for i in r["feeds"]}
        equal((len(data), len(r["favicons"]), set(of.values()) <= set(data)), (4, 4, True))
        equal(data[of[named]], "image/png;base64," + base64.b64encode(PNG).decode())
        equal((of[named], data[1][:10]), (of[twin], "image/gif;"))
        equal({i["id"]: i["favicon_id"] for i in c.fever("&feeds")["feeds"]}, of)
        equal(c.fever("&favicons")["favicons"], r["favicons"])

        v = Visitor(d)
        equal(v.request("GET", "/icon?feed=%d" % named)[0].status, 401)
        v.log_in()
        connection = d.connect()
        connection.request("GET", "/icon?feed=%d" % named, headers={"Cookie": v.cookie})
        response = connection.getresponse()
        equal((response.status, response.read(), response.headers["Content-Type"]), (200, PNG, "image/png"))
        equal(response.headers["X-Content-Type-Options"], "nosniff")
        holds("default-src 'none'; sandbox" in response.headers["Content-Security-Policy"], dict(response.headers))
        equal(response.headers.get_all("Cache-Control"), ["private, max-age=86400"])
        connection.close()
        for query in ("", "?feed=0", "?feed=x", "?feed=4711"):
            response, _ = v.request("GET", "/icon" + query)
            equal((response.status, response.headers.get_all("Cache-Control")), (404, ["private, no-store"]))

        # others
        bob = Client(d, "bob")
        bob.get("feeds/%d/icon" % named, want=404)
        bob.get("icons/%d" % number, want=404)
        equal(len(bob.fever("&favicons")["favicons"]), 1)
        equal(Visitor(d).log_in("bob").request("GET", "/icon?feed=%d" % named)[0].status, 404)

        # each address once, with a second between two of one host
        equal(sorted(r[1:] for r in site.requests), [("127.0.0.1", "/favicon.ico"), ("127.0.0.1", "/i.png"),
                                                     ("127.0.0.2", "/favicon.ico")])
        times = [r[0] for r in site.requests if r[1] == "127.0.0.1"]
        holds(times[1] - times[0] >= 0.99, times)


@case("PNG, GIF, JPEG, WebP and ICO are icons, by their bytes, up to 64 KiB; all else is none, once for 7 days",
      needs="server")
def kinds(base):
    with serving(base) as (d, site, c):
        good, bad = {}, {}
        for i, (body, kind) in enumerate(TYPES):
            body += bytes(LARGEST - len(body)) if i == 0 else b""
            site.pages["/good%d" % i] = ("image/svg+xml", body)
            good[site.add(c, "good%d" % i, site.url("/good%d" % i, 10 + i))] = kind, body
        site.pages.update({
            "/large": ("image/png", PNG + bytes(LARGEST)), "/html": ("image/png", b"<!doctype html><p>no"),
            "/svg": ("image/svg+xml", SVG), "/empty": ("image/png", b""), "/short": ("image/png", PNG[:8]),
            "/loop": ("to", site.url("/loop", 35)), "/missing": 404, "/busy": 503,
            "/moved": ("to", site.url("/good0", 9))})
        for i, path in enumerate(p for p in sorted(site.pages) if not p.startswith(("/good", "/moved"))):
            bad[site.add(c, path[1:], site.url(path, 30 + i))] = path
        bad[site.add(c, "nobody", "http://127.0.0.99:1/i.png")] = None
        closed = socket.socket()
        closed.bind(("127.0.0.98", 0)) # and does not listen
        bad[site.add(c, "closed", "http://127.0.0.98:%d/closed" % closed.getsockname()[1])] = None
        moved = site.add(c, "moved", site.url("/moved", 9), tag="logo")
        for feed, (kind, body) in good.items():
            equal(has_icon(c, feed), (kind, body))
        equal(has_icon(c, moved), ("image/png", site.pages["/good0"][1]))
        wait_for("the failures", lambda: c.get("feeds") and failed_n(d) == len(bad))
        for _ in range(2):
            equal([icon(c, f) for f in bad], [None] * len(bad))
            equal([f["icon"] for f in c.get("feeds") if f["id"] in bad], [None] * len(bad))
            d.stop()
            d.start()
        # a good one is in the store, so whatever was wanted before it has been looked at
        site.pages["/new"] = ("image/png", PNG)
        has_icon(c, site.add(c, "new", site.url("/new", 60)))
        for path in bad.values():
            holds(path in (None, "/loop") or len(site.asked(path)) == 1, (path, site.asked(path)))

        # after a day a site that was not reached is tried again
        asked, tried = len(site.requests), "SELECT tried_ms FROM icons WHERE url LIKE '%/closed'"
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ?", DAY_MS, write=True)
        before = d.feedwheel.one(tried)
        c.get("feeds")
        wait_for("another fetch", lambda: d.feedwheel.one(tried) > before)
        equal(len(site.requests), asked)
        closed.close()

        # after 7 days a failure is tried again, after 30 days a picture; the old one is shown until then
        site.pages["/missing"] = ("image/png", PNG)
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ?", 7 * DAY_MS, write=True)
        equal(has_icon(c, next(f for f, path in bad.items() if path == "/missing")), ("image/png", PNG))
        equal(len(site.asked("/new")), 1)
        site.pages["/new"] = ("image/png", GIF)
        feed = next(f for f in c.get("feeds") if f["title"] == "new")
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ? WHERE failed = 0", 30 * DAY_MS, write=True)
        equal(icon(c, feed["id"]), ("image/png", PNG))
        wait_for("the new picture", lambda: icon(c, feed["id"]) == ("image/gif", GIF))
        holds(c.get("feeds/%d" % feed["id"])["icon"]["icon_id"] > feed["icon"]["icon_id"], feed)
        # a failed refresh keeps it
        site.pages["/new"] = 404
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ? WHERE url LIKE '%/new'", 30 * DAY_MS, write=True)
        icon(c, feed["id"])
        wait_for("the failure", lambda: d.feedwheel.one("SELECT failed FROM icons WHERE url LIKE '%/new'") == 1)
        equal(icon(c, feed["id"]), ("image/gif", GIF))


@case("a feed whose icon is no picture has its site's favicon, until the icon is one", needs="server")
def spare(base):
    with serving(base) as (d, site, c):
        site.pages.update({"/cover": ("image/png", PNG + bytes(LARGEST)), "/favicon.ico": ("image/x-icon", ICO)})
        feeds = [site.add(c, "show%d" % i, site.url("/cover", 20 + i), tag="logo") for i in range(3)]
        equal([has_icon(c, f) for f in feeds], [("image/x-icon", ICO)] * 3)
        numbers = {f["icon"]["icon_id"] for f in c.get("feeds")}
        equal(len(numbers), 1)
        equal(c.get("icons/%d" % numbers.pop())["mime_type"], "image/x-icon")
        equal(len(c.fever("&favicons")["favicons"]), 2)
        connection = d.connect()
        connection.request("GET", "/icon?feed=%d" % feeds[0], headers={"Cookie": Visitor(d).log_in().cookie})
        equal(connection.getresponse().read(), ICO)
        connection.close()
        equal((len(site.asked("/favicon.ico")), len(site.asked("/cover"))), (1, 3))
        site.pages["/cover"] = ("image/png", PNG)
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ?", 7 * DAY_MS, write=True)
        wait_for("the cover", lambda: icon(c, feeds[0]) == ("image/png", PNG))


@case("favicons that are larger than a page leave room for an item in the same response", needs="server")
def many(base):
    with serving(base) as (d, site, c):
        site.pages["/large"] = ("image/png", PNG + bytes(LARGEST - len(PNG)))
        n = 100
        for i in range(n):
            site.add(c, "large%d" % i, site.url("/large", 10 + i))
        wait_for("the icons", lambda: c.get("feeds") and d.feedwheel.one("SELECT count(*) FROM icons") == n)
        r = c.fever("&favicons&items&since_id=0")
        equal((len(r["favicons"]), len(r["items"]) > 0), (n + 1, True))


@case("the address guard: no request to an address that is not allowed, nor by a redirect", needs="server")
def guarded(base):
    with serving(base) as (d, site, c):
        inner = "http://127.1.0.1:%d/inner" % site.server.server_address[1]
        site.pages.update({"/inner": ("image/png", PNG), "/to": ("to", inner)})
        feeds = [site.add(c, "direct", inner), site.add(c, "redirect", site.url("/to")),
                 site.add(c, "other", "file:///etc/passwd"), site.add(c, "data", "data:image/png;base64,AAAA")]
        equal([icon(c, f) for f in feeds], [None] * 4)
        wait_for("the failures", lambda: failed_n(d) == 2)
        wait_for("the spare one", lambda: icon(c, feeds[0]) or site.asked("/favicon.ico"))
        equal([icon(c, f) for f in feeds], [None] * 4)
        equal((len(site.asked("/to")), site.asked("/inner"), len(site.asked("/favicon.ico"))), (1, [], 1))


@case("a server of icons that hangs delays no stop; what a kill loses is fetched for the next client", needs="server")
def hanging(base):
    with serving(base) as (d, site, c):
        site.pages["/i.png"] = ("image/png", PNG)
        site.hanging.add("/i.png")
        feed = site.add(c, "hanging", site.url("/i.png"))

        def begun(n):
            equal(icon(c, feed), None)
            wait_for("the request", lambda: len(site.asked("/i.png")) == n)
        begun(1)
        began = time.monotonic()
        d.stop()
        holds(time.monotonic() - began < 10, "the stop took %.1f s" % (time.monotonic() - began))
        d.start()
        begun(2)
        d.kill()
        equal(d.feedwheel.one("SELECT count(*) FROM icons"), 0)
        d.start()
        begun(3)
        site.go.set()
        equal(has_icon(c, feed), ("image/png", PNG))
        equal(len(site.asked("/i.png")), 3)


@case("without serve_discovery nothing is fetched, and what the store has is shown", needs="server")
def unfetched(base):
    with serving(base) as (d, site, c):
        site.pages["/i.png"] = ("image/png", PNG)
        feed = site.add(c, "a", site.url("/i.png"))
        has_icon(c, feed)
        d.stop()
        with open(d.feedwheel.conf, "a", encoding="ascii") as f:
            f.write("serve_discovery = no\n")
        d.start()
        d.feedwheel.sql("UPDATE icons SET tried_ms = tried_ms - ?", 31 * DAY_MS, write=True)
        equal(icon(c, feed), ("image/png", PNG))
        d.feedwheel.sql("DELETE FROM icons", write=True)
        equal((icon(c, feed), len(site.asked("/i.png"))), (None, 1))


run()
