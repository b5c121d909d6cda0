#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""WebSub: a mock hub verifies, sends documents, denies and lies, over real sockets. Numbers name
the rules of the public conformance suite for subscribers (websub.rocks)."""
import concurrent.futures
import contextlib
import datetime
import gzip
import hmac
import http.client
import json
import os
import threading
import time

from http_server import HttpServer, metric
from growing import LONG
from harness import Skip, Feedwheel, case, each_engine, equal, holds, run, server, wait_for
from hubs import Hub, atom, links, request

CONF = "websub_url = http://127.0.0.1:%d/\nwebsub_scan_ms = 20ms\nwebsub_lease_ms = %s\nwebsub_plain_secret = %s\n"


def seconds(text):
    """The Unix time of a time in JSON; 0 for None."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0


class Subscriber(HttpServer):
    """A server whose websub_url is its own address. It has a token, which reads need."""

    def __init__(self, base, lease="10d", secret="yes", conf="", **more):
        self.websub = (lease, secret)
        super().__init__(base, conf=conf, **more)

    def start(self):
        with open(self.feedwheel.conf, "r+", encoding="ascii") as f:
            if "websub_url" not in f.read():
                f.write(CONF % (self.port, *self.websub))
        self.token = self.token or self.feedwheel.run(
            "token", "add", "test-%d" % self.port, "--scope", "push,read").stdout.strip()
        super().start()

    def add(self, *urls):
        """Subscribe to feeds and poll them once."""
        self.feedwheel.run("add", *urls)
        self.feedwheel.run_once()

    def known(self, words="state"):
        return [w[words] for w in self.feedwheel.json("websub", "list")]

    def feed(self, word="#1"):
        return self.feedwheel.json("show", word)["feed"]

    def ahead(self, name, word="#1"):
        """The seconds until a time of the feed; None if it has none."""
        text = self.feed(word).get(name)
        return text and seconds(text) - time.time()

    def entries(self):
        return len(self.feedwheel.run("entries", "--jsonl").stdout.splitlines())

    def is_active(self, n=1):
        wait_for("%d active" % n, lambda: self.known().count("active") == n, 60)


@contextlib.contextmanager
def both(base, **more):
    hub = Hub()
    try:
        d = Subscriber(base, **more)
        try:
            yield hub, d
        finally:
            if d.process.poll() is None:
                d.stop()
    finally:
        hub.stop()


def subscribed(hub, d):
    """The active subscription of a new feed with one entry."""
    hub.feed("f", [1])
    d.add(hub.url + "/f")
    s = hub.wait_subscription()
    d.is_active()
    return s


RSS = """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>r</title>
<link>http://x.example/</link>
<description>d</description>%s<item><guid>1</guid><title>one</title></item></channel></rss>"""


def moved_topics(hub):
    for status in (301, 302):
        body = atom(str(status), [1])
        to = "/%d?redirect=complete" % status

        def page(query, status=status, body=body, to=to):
            if not query:
                return status, [("Location", hub.url + to)], ""
            return 200, [("Link", '<%s/hub>; rel="hub", <%s%s>; rel="self"' % (hub.url, hub.url, to))], body
        with hub.lock:
            hub.pages["/%d" % status] = page


@case("a hub is found in headers, Atom, RSS, JSON Feed and HTML, headers first; rel=self is the topic")
def discovery(base): # WSB-01, WSB-02; 100-104, 200-202
    with both(base) as (hub, d):
        u = hub.url
        hub.page("/header", atom("a", [1]), ("Link", '<%s/hub>; rel="hub", <%s/header?self=1>; rel="self"' % (u, u)))
        hub.page("/atom", atom("b", [1], links(("hub", u + "/hub"), ("self", u + "/atom?self=other"))), kind="text/xml")
        hub.page(
            "/rss", RSS % ('<atom:link rel="hub" href="%s/hub"/><atom:link rel="self" href="%s/rss"/>' % (u, u)),
            kind="text/xml")
        hub.page(
            "/json",
            '{"version":"https://jsonfeed.org/version/1.1","title":"j","feed_url":"%s/json?x=1&y=2",'
            '"hubs":[{"type":"WebSub","url":"%s/hub"}],"items":[]}' % (u, u),
            kind="application/feed+json")
        hub.page("/both", atom("c", [1], links(("hub", u + "/wrong?error=wrongtag"), ("self", u + "/wrong"))),
                 ("Link", '<%s/hub>; rel=hub' % u), ("Link", '<%s/both>; rel=self' % u))
        hub.page("/none", atom("n", [1]))
        hub.page(
            "/page",
            '<html><head><link rel="hub" href="/hub"><link rel="self" href="/page"></head>'
            '<body><link rel="hub" href="/no">x</body></html>',
            kind="text/html")
        # a byte that is not UTF-8
        hub.page("/latin", atom("l", [1]), ("Link", '<%s/hub>; rel="hub", <%s/latin?\xe9>; rel="self"' % (u, u)))
        moved_topics(hub)
        paths = "/header", "/atom", "/rss", "/json", "/both", "/none", "/page", "/latin", "/301", "/302"
        d.add(*(u + p for p in paths))
        d.is_active(9)
        wait_for("9 subscriptions at the hub", lambda: len(hub.subscriptions) == 9, 60)
        topics = sorted(s.topic for s in hub.subscriptions.values())
        want = ("/header?self=1", "/atom?self=other", "/rss", "/json?x=1&y=2", "/both", "/page", "/latin?%E9",
                "/301?redirect=complete", "/302?redirect=complete")
        equal(topics, sorted(u + t for t in want))
        equal(hub.posts("/wrong?error=wrongtag"), [])
        for form in hub.posts():
            equal(sorted(form), ["hub.callback", "hub.lease_seconds", "hub.mode", "hub.secret", "hub.topic"])
            equal((form["hub.mode"], form["hub.lease_seconds"]), ("subscribe", "864000"))
            holds(32 <= len(form["hub.secret"]) < 200, form)
        callbacks = [f["hub.callback"] for f in hub.posts()]
        secrets = [f["hub.secret"] for f in hub.posts()]
        equal((len(set(callbacks)), len(set(secrets))), (9, 9)) # one for each: WSB-04
        for c in callbacks:
            holds(c.startswith("http://127.0.0.1:%d/websub/" % d.port) and len(c.rpartition("/")[2]) >= 32, c)


@case("a hub's redirect is followed; a loop or a 404 makes requests rare; the next hub of a list is tried")
def moved_hubs(base): # WSB-03; 203, 204
    with both(base) as (hub, d):
        u = hub.url
        for h in ("307", "308", "circle", "302"):
            hub.page("/f" + h, atom(h, [1], links(("hub", u + "/" + h), ("self", u + "/f" + h))))
        several = links(("hub", u + "/nothing"), ("hub", u + "/hub"), ("self", u + "/several"))
        hub.page("/several", atom("s", [1], several))
        d.add(u + "/several", *(u + "/f" + h for h in ("307", "308", "circle", "302")))
        d.is_active(3)
        for h in ("/307", "/308"):
            equal(len(hub.posts(h)), 1)
        equal(hub.posts("/307")[0], [f for f in hub.posts() if f["hub.topic"].endswith("307")][0])
        second = [f for f in hub.posts() if f["hub.topic"] == u + "/several"]
        equal((len(hub.posts("/nothing")), len(second)), (1, 1))
        holds(hub.posts("/nothing")[0]["hub.callback"] != second[0]["hub.callback"], "each hub has its own callback")
        wait_for("the others to be off", lambda: d.known().count("off") == 2, 60)
        listed = {w["topic"].rpartition("/")[2]: w for w in d.feedwheel.json("websub", "list")}
        holds("redirect loop" in listed["fcircle"]["why"], listed)
        holds("404" in listed["f302"]["why"], listed)
        for w in ("fcircle", "f302"):
            holds(seconds(listed[w]["next"]) > time.time() + 3500, listed)
        equal(len(hub.posts("/circle")), 1)
        holds("redirect loop" in d.feedwheel.run("why", u + "/fcircle").stdout, "why shows it")


@case("a verification of a topic that is not pending is answered 404; lease times are bounded") # WSB-05, WSB-15; 205
def verification(base):
    with both(base) as (hub, d):
        u = hub.url
        hub.feed("f", [1])
        hub.verifies = False
        d.add(u + "/f")
        wait_for("the request", hub.posts, 60)
        callback = hub.posts()[0]["hub.callback"]
        wait_for("its record", lambda: d.known() == ["requested"])
        for mode, topic, challenge in (
            ("subscribe", u + "/f?invalid", "x"),
            ("subscribe", "", "x"),
            ("subscribe", u + "/f", ""),
            ("nonsense", u + "/f", "x"),
            ("unsubscribe", u + "/f", "x"),
            ("subscribe", u + "/f", "x" * 4097),
            ("denied", u + "/g", None)):
            status, body, _ = hub.verify_intent(callback, mode, topic, challenge, "60")
            equal((status, b"xx" in body), (404, False), (mode, topic))
        unknown = callback[:-1] + ("0" if callback[-1] != "0" else "1")
        equal(hub.verify_intent(unknown, "subscribe", u + "/f", "x", "60")[0], 404)
        equal(request("GET", callback)[0], 404)
        equal(request("HEAD", callback + "?hub.mode=subscribe&hub.challenge=x&hub.topic=" + u + "/f")[0], 404)
        equal(d.known(), ["requested"])
        for i in range(2): # a second verification changes nothing
            status, body, headers = hub.verify_intent(callback, "subscribe", u + "/f", "<i>\r\n%d\0 é" % i, "86400")
            equal((status, body, headers["Content-Type"]), (200, ("<i>\r\n%d\0 é" % i).encode(), "text/plain"))
        d.is_active()
        until = seconds(d.feedwheel.json("websub", "list")[0]["until"]) - time.time()
        holds(86000 < until <= 86400, until)
        equal(len(hub.posts()), 1)
        wait_for("the schedule has the lease", lambda: (d.ahead("push_until") or 0) > 8e4, 30)
        for lease, want_s, words in (
            ("0", 86400, "no lease"),
            ("-5", 86400, "no lease"),
            (None, 86400, "no lease"),
            ("1000000000000", 90 * 86400, "90 d"),
            ("1", 300, "300 s"),
            ("99999999999999999999", 90 * 86400, "90 d")):
            equal(hub.verify_intent(callback, "subscribe", u + "/f", "x", lease)[0], 200)

            def sane(want_s=want_s, words=words):
                w = d.feedwheel.json("websub", "list")[0]
                return words in w["why"] and abs(seconds(w.get("until")) - time.time() - want_s) < 120
            wait_for("lease %s" % lease, sane, 30)


# WSB-09-11; 300-302
@case("a document with a valid signature is stored; one without a valid signature is not")
def documents(base):
    with both(base) as (hub, d):
        s = subscribed(hub, d)
        fetched = len(hub.gets("/f"))
        before = d.feed()
        n = 1
        for method in ("sha1", "sha256", "sha384", "sha512"):
            n += 1
            equal(hub.send(s, atom("f", [n]), method=method), 200)
            equal(d.entries(), n)
        equal(hub.send(s, atom("f", [1, 2, 3]), kind="text/html"), 200) # 300: any type; known entries are not new
        equal(d.entries(), n)
        packed = gzip.compress(atom("f", [1, 2]).encode())
        # WSB-10: the signature is of the bytes as sent, compressed or not
        equal(hub.send(s, packed, Content_Encoding="gzip"), 200)
        good = hmac.new(s.secret.encode(), gzip.decompress(packed), "sha256").hexdigest()
        equal(hub.send(s, packed, Content_Encoding="gzip", signature="sha256=" + good), 202)
        equal(hub.send(s, packed[:-9], Content_Encoding="gzip"), 202)
        good = "sha256=" + "0" * 64
        for signature in (good, good + "0000", "sha256=", "md5=00", "nonsense"):
            equal(hub.send(s, atom("f", [50]), signature=signature), 202)
        equal(hub.send(s, atom("f", [51]), sign=False), 403)
        equal(hub.send(s, "<html>thin ping</html>"), 202) # signed, but not a feed: the feed is polled
        wait_for("the feed to be due", lambda: d.ahead("due") <= 61, 30)
        equal(d.entries(), n)
        after = d.feed()
        for k in ("etag", "last_modified", "last_visit", "last_ok", "status"):
            equal(after.get(k), before.get(k), k)
        equal(len(hub.gets("/f")), fetched)

        def counts():
            return [(w["delivered"], w["new"], w["ignored"]) for w in d.feedwheel.json("websub", "list")]
        wait_for("counts", lambda: counts() == [(6, 4, 9)], 30)
        for verdict, n in ("taken", 8), ("wrong_signature", 6), ("unsigned", 1):
            equal(metric(d, 'websub_pushes_total{verdict="%s"}' % verdict), n, verdict)
        equal(metric(d, "websub_active"), 1)
        secrets = (s.secret, s.callback.rpartition("/")[2])
        for words in (
            d.feedwheel.log(),
            d.feedwheel.run("websub", "list", "--json").stdout,
            d.feedwheel.run("show", "#1", "--json").stdout):
            holds(not any(x in words for x in secrets), "secrets are never printed") # LOG-02
        equal(request("POST", s.callback, b"x" * (8 << 20) + b"y")[0], 413)


def guess_callbacks(port, n, odd):
    """Send n requests to random callbacks; {status: count}."""
    c, seen = http.client.HTTPConnection("127.0.0.1", port, timeout=30), {}
    for i in range(n):
        path = "/websub/" + os.urandom(20 if i % 5 == 4 else 32).hex()
        if odd:
            c.request("GET", path + "?hub.mode=subscribe&hub.topic=x&hub.challenge=y")
        else:
            c.request("POST", path, b"<feed/>", {"X-Hub-Signature": "sha256=" + "0" * 64})
        r = c.getresponse()
        r.read()
        seen[r.status] = seen.get(r.status, 0) + 1
    c.close()
    return seen


@case("10,000 requests to unknown callbacks cause no store lookup, and a hub's documents are still stored")
def flood(base): # WSB-13
    with both(base, conf="websub_pushes_max = 0\n") as (hub, d), concurrent.futures.ThreadPoolExecutor(4) as pool:
        s = subscribed(hub, d)
        before = metric(d, "websub_lookups_total")
        floods = [pool.submit(guess_callbacks, d.port, 2500, i % 2) for i in range(4)]
        sent = 0
        while sent < 5 or not all(g.done() for g in floods):
            sent += 1
            equal(hub.send(s, atom("f", range(sent, sent + 2))), 200)
        seen = [g.result() for g in floods]
        equal(seen, [{410: 2500}, {404: 2500}] * 2)
        equal(metric(d, "websub_unknown_total"), 10000)
        equal(metric(d, "websub_lookups_total") - before, sent)
        equal(d.entries(), sent + 1)
        a = s.callback.rpartition("/")[2]
        for wrong in (
            a[: -1] + ("0" if a[-1] != "0" else "1"),
            ("0" if a[0] != "0" else "1") + a[1:],
            a[: -1],
            a.upper()):
            equal(request("POST", s.callback[:-len(a)] + wrong, b"x")[0], 410, wrong)
        equal(metric(d, "websub_lookups_total") - before, sent)
        key = d.feedwheel.one("SELECT value FROM records WHERE kind = 'websub' AND record_key = CAST('key' AS BLOB)")
        holds(len(key) == 32 and len(set(key)) > 8, "the key is random")
        holds(key.hex() not in d.feedwheel.log(), "the key is not logged")


def refused(s, body):
    """Send a signed document that is answered 429; Retry-After in seconds."""
    signature = hmac.new(s.secret.encode(), body.encode(), "sha256").hexdigest()
    status, answer, headers = request("POST", s.callback, body, {"X-Hub-Signature": "sha256=" + signature})
    equal(status, 429, answer)
    return int(headers["Retry-After"])


@case("a hub's entries above the daily limit are answered 429 until the next day; pushes with a token go on")
def daily_limit(base):
    with both(base, conf="feed_daily_entries_max = 1000\n") as (hub, d):
        s = subscribed(hub, d)
        equal([hub.send(s, atom("f", range(1000 * n, 1000 * n + 700))) for n in (1, 2)], [200, 200])
        equal(d.entries(), 1 + 1000)
        q = d.feedwheel.json("show", "#1")["quota"]
        equal((q["new"], q["deferred"]), (1000, 400))
        holds("used up until" in d.feedwheel.run("why", "#1").stdout, "why")
        for n in range(3, 12):
            retry_s = refused(s, atom("f", range(1000 * n, 1000 * n + 700)))
            holds(23 * 3600 < retry_s <= 24 * 3600, "Retry-After is the next day")
        equal(d.entries(), 1 + 1000)
        equal(metric(d, "websub_refused_pushes_total"), 9)
        status, _, answer = d.push(
            '{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"own","content_text":"x"}]}',
            "/v1/feeds/1/entries")
        equal((status, answer["new"]), (200, 1), "a push with a token")
        d.feedwheel.sql("UPDATE records SET until_ms = 1 WHERE kind = 'quota'", write=True)
        equal(hub.send(s, atom("f", [5])), 200)
        equal(d.entries(), 1 + 1000 + 1 + 1)


@case("a hub with many connections at once cannot exceed the daily limit")
def many_connections(base):
    conf = "feed_daily_entries_max = 300\nserve_pool_threads = 4\n"
    with both(base, conf=conf) as (hub, d), concurrent.futures.ThreadPoolExecutor(6) as pool:
        s = subscribed(hub, d)

        def send_8(n):
            return {hub.send(s, atom("f", range(10000 * n + 1000 * i, 10000 * n + 1000 * i + 100))) for i in range(8)}
        jobs = [pool.submit(send_8, n) for n in range(1, 7)]
        seen = set().union(*(j.result() for j in jobs))
        holds(429 in seen and seen <= {200, 202, 429}, seen)
        equal(d.entries(), 1 + 300)


@case("a hub that sends too often is answered 429 with Retry-After before its body is read; other feeds are not")
def too_often(base):
    with both(base, conf="websub_pushes_max = 3\nwebsub_pushes_ms = 1d\n") as (hub, d):
        s = subscribed(hub, d)
        hub.feed("g", [1])
        d.add(hub.url + "/g")
        d.is_active(2)
        other = hub.wait_subscription(hub.url + "/g")
        equal([hub.send(s, atom("f", [n])) for n in (2, 3, 4)], [200, 200, 200])
        lookups = metric(d, "websub_lookups_total")
        for _ in range(2):
            holds(7 * 3600 < refused(s, atom("f", [5])) <= 8 * 3600, "a third of the day")
        equal(metric(d, "websub_lookups_total"), lookups)
        equal(metric(d, "websub_refused_pushes_total"), 2)
        equal(hub.send(other, atom("g", [2])), 200)
        equal(d.entries(), 4 + 2)


@case("callbacks signed with another key answer 410; their feeds are polled and subscribed again at once")
def another_key(base):
    with both(base) as (hub, d):
        old = subscribed(hub, d)
        d.stop()
        d.feedwheel.sql(
            "UPDATE records SET value = CAST('0123456789abcdef0123456789abcdef' AS BLOB) WHERE kind = 'websub' AND "
            "record_key = CAST('key' AS BLOB)",
            write=True)
        d.start()
        wait_for("a new subscription", lambda: len(hub.subscriptions) == 2, 60)
        new = next(s for s in hub.subscriptions.values() if s.callback != old.callback)
        equal((hub.send(old, atom("f", [2])), hub.send(new, atom("f", [3]))), (410, 200))
        d.is_active()
        callbacks = "SELECT count(*) FROM records WHERE kind = 'websub' AND CAST(record_key AS TEXT) LIKE 'cb/%'"
        wait_for("the old callback to be deleted", lambda: d.feedwheel.one(callbacks) == 1)
        equal(d.entries(), 2)


def records(d, change, key):
    """Set times in a record's JSON, in milliseconds relative to now."""
    now = int(time.time() * 1000)
    path = ", ".join("'$.%s', %d" % (k, now + v) for k, v in change.items())
    d.feedwheel.sql(
        "UPDATE records SET value = CAST(json_set(CAST(value AS TEXT), %s) AS BLOB) WHERE kind = 'websub' AND "
        "record_key = CAST(? AS BLOB)" % path,
        key, write=True)


def renewal_due(d):
    """The lease of the first feed's subscription nears its end."""
    wait_for("the schedule has the lease", lambda: d.ahead("push_until"))
    records(d, {"next_ms": 0}, "feed/%019d" % 1)
    d.feedwheel.run("websub", "on", "#1") # makes the server read the record


@case("a renewal uses a new callback and a new secret; the old callback works until the new one is verified")
def renewal(base): # WSB-04, WSB-07
    with both(base, lease="40s") as (hub, d):
        old = subscribed(hub, d)
        hub.verifies = False # the hub accepts the renewal, and verifies it later
        renewal_due(d)
        wait_for("a renewal", lambda: len(hub.posts()) == 2, 60)
        renewed = hub.posts()[1]
        holds(renewed["hub.callback"] != old.callback and renewed["hub.secret"] != old.secret, renewed)
        equal((d.known(), hub.send(old, atom("f", [2]))), (["active"], 200))
        hub.verifies = True
        hub.verify(renewed)

        def callbacks():
            return [s.callback for s in hub.subscriptions.values()]
        wait_for("the old callback to be unsubscribed", lambda: callbacks() == [renewed["hub.callback"]], 60)
        equal(hub.send(old, atom("f", [3])), 410)
        equal(hub.verify_intent(old.callback, "subscribe", old.topic, "x", "60")[0], 404)
        equal((hub.send(hub.subscription(), atom("f", [4])), d.known(), d.entries()), (200, ["active"], 3))
        hub.verifies = False # the hub accepts the next renewal, and never verifies it
        renewal_due(d)

        def requested():
            return {f["hub.callback"] for f in hub.posts() if f["hub.mode"] == "subscribe"}
        wait_for("another renewal", lambda: len(requested()) >= 3, 60)
        hub.status = 500 # the hub refuses from now on: the lease ends, and the feed is polled again
        wait_for("the end of the lease", lambda: d.known() == ["off"], 60)
        wait_for("the schedule has no lease", lambda: not d.ahead("push_until"))
        for s in [old, *hub.subscriptions.values()]:
            equal(hub.send(s, atom("f", [5])), 410)
        holds(all(v[2] for v in hub.verified), hub.verified)


@case("a crash during a renewal neither leaks nor loses a subscription")
def renewal_crash(base): # REL-01
    with both(base, lease="60s") as (hub, d):
        old = subscribed(hub, d)
        hub.verifies = False
        renewal_due(d)
        wait_for("a renewal", lambda: len(hub.posts()) == 2, 60)
        d.kill()
        d.start()
        equal(hub.send(old, atom("f", [2])), 200)
        hub.verifies = True

        def verified(): # the newest request: on a slow machine the lease may have ended meanwhile
            hub.verify(hub.posts()[-1])
            return hub.verified[-1] == ("subscribe", 200, True)
        wait_for("the renewal to be verified", verified)

        def callbacks():
            return [s.callback for s in hub.subscriptions.values()]
        wait_for("the old callback to be unsubscribed", lambda: old.callback not in callbacks(), 60)
        equal(hub.send(hub.subscription(), atom("f", [3])), 200)
        equal(d.entries(), 3)


@case("after a denial the feed is polled, and the hub gets no request for a week") # WSB-08
def denial(base):
    with both(base) as (hub, d):
        s = subscribed(hub, d)
        equal(hub.verify_intent(s.callback, "denied", s.topic + "x", None)[0], 404)
        equal(hub.verify_intent(s.callback, "denied", s.topic, None, reason="too many \x1b[31m\0")[0], 200)
        wait_for("off", lambda: d.known() == ["off"], 30)
        w = d.feedwheel.json("websub", "list")[0]
        holds("too many" in w["why"] and seconds(w["next"]) > time.time() + 6.9 * 86400, w)
        holds("\x1b" not in d.feedwheel.run("websub").stdout + d.feedwheel.run("why", "#1").stdout, "escaped")
        wait_for("the schedule to poll", lambda: not d.ahead("push_until") and d.ahead("due") < 400)
        equal(hub.send(s, atom("f", [2])), 410)
        equal(len(hub.posts()), 1)


@case("a feed whose topic changes at each fetch causes 8 requests, then one in two hours; why shows it") # liars
def changing_topic(base):
    with both(base) as (hub, d):
        u, n = hub.url, [0]

        def page(_):
            n[0] += 1
            topic = links(("hub", u + "/hub"), ("self", u + "/f?%d" % n[0]))
            return 200, [("Content-Type", "application/atom+xml")], atom("f", [1], topic)

        def requests():
            return len([f for f in hub.posts() if f["hub.mode"] == "subscribe"])

        def states():
            return [(w["state"], w["topic"]) for w in d.feedwheel.json("websub", "list")]
        with hub.lock:
            hub.pages["/f"] = page
        d.add(u + "/f")
        for i in range(1, 12):
            wait_for("a request", lambda i=i: requests() == min(i, 8), 60)
            if i >= 8:
                want = [("active" if i == 8 else "off", u + "/f?%d" % i)]
                wait_for("its state", lambda want=want: states() == want, 60)
            d.feedwheel.run("set", "--due", u + "/f")
            d.feedwheel.run_once()
        holds("rate limited" in d.feedwheel.run("why", "#1").stdout, "why shows it")
        holds("rate limited" in d.feedwheel.run("websub").stdout, "websub shows it")
        next_s = seconds(d.feedwheel.json("websub", "list")[0]["next"]) - time.time()
        holds(6000 < next_s <= 7200, next_s)
        wait_for("all to be unsubscribed", lambda: not hub.subscriptions, 60)
        equal(requests(), 8)
        d.feedwheel.run("websub", "off", u + "/f")
        d.feedwheel.run("websub", "on", u + "/f") # a person may end the wait
        d.is_active()


@case("a hub that fails for many feeds gets no requests for any of them for a while; why shows it") # liars
def broken_hub(base):
    with both(base, conf="host_concurrency = 2\n") as (hub, d):
        u = hub.url
        for i in range(16):
            hub.page("/f%d" % i, atom("f%d" % i, [1], links(("hub", u + "/broken"), ("self", u + "/f%d" % i))))
        d.feedwheel.run("add", *(u + "/f%d" % i for i in range(16)))
        for _ in range(3):
            d.feedwheel.run_once()

        def settled():
            return all("404" in w or "times in a row" in w for w in d.known("why")) and len(d.known()) == 16
        wait_for("a reason for each feed", settled, 60)
        requests = len(hub.posts("/broken"))
        waits = [w for w in d.feedwheel.json("websub", "list") if "times in a row" in w["why"]]
        equal(requests + len(waits), 16)
        holds(waits and 10 <= requests, requests)
        for w in waits:
            holds(300 < seconds(w["next"]) - time.time() < 9000, w)
        holds("times in a row" in d.feedwheel.run("why", "#%d" % waits[0]["feed"]).stdout, "why shows it")


# WSB-13, WSB-15
@case("a paused, removed, switched off or moved feed is unsubscribed, and its old callback answers 410")
def unsubscribing(base):
    with both(base, conf="host_concurrency = 16\n") as (hub, d):
        u = hub.url
        subs = {}
        for name in "abcd":
            hub.feed(name, [1])
        d.add(*(u + "/" + n for n in "abcd"))
        d.is_active(4)
        for name in "abcd":
            subs[name] = hub.wait_subscription(u + "/" + name)
        d.feedwheel.run("pause", u + "/a")
        d.feedwheel.run("remove", u + "/b")
        d.feedwheel.run("websub", "off", u + "/c")
        hub.page("/d", atom("d", [1, 2], links(("hub", u + "/hub"), ("self", u + "/d2"))))
        d.feedwheel.run("set", "--due", u + "/d")
        d.feedwheel.run_once()
        wait_for("unsubscribing", lambda: [s.topic for s in hub.subscriptions.values()] == [u + "/d2"], 60)
        for name in "abcd":
            equal(hub.send(subs[name], atom(name, [9])), 410, name)
        wait_for("one active subscription", lambda: sorted(d.known()) == ["active", "off"])
        d.feedwheel.run("resume", u + "/a")
        d.feedwheel.run("websub", "on", u + "/c")
        d.is_active(3)
        for name in "ac":
            holds(hub.wait_subscription(u + "/" + name).callback != subs[name].callback, "a new callback")
        holds([v for v in hub.verified if v[0] == "unsubscribe"] and all(v[2] for v in hub.verified), hub.verified)


@case("a document without a secret and an rssCloud ping make the feed due at once") # WSB-12
def hints(base):
    with both(base, secret="no", conf="host_concurrency = 16\n") as (hub, d):
        u = hub.url
        port = u.rpartition(":")[2]
        cloud = '<cloud domain="127.0.0.1" port="%s" path="/cloud" registerProcedure="" protocol="http-post"/>' % port
        hub.page("/f", RSS % cloud, kind="application/rss+xml")
        hub.page("/plain", atom("f", [1], links(("hub", u + "/hub"), ("self", u + "/plain"))))
        d.add(u + "/f", u + "/plain")
        wait_for("the registration", lambda: hub.pings, 60)
        d.is_active(2)
        form = hub.posts("/cloud")[0]
        equal((form["protocol"], form["domain"], form["port"], form["url1"]),
              ("http-post", "127.0.0.1", str(d.port), u + "/f"))
        w = d.feedwheel.json("websub", "list")[0]
        holds(abs(seconds(w["until"]) - time.time() - 25 * 3600) < 600 and w["cloud"], w)
        holds(not d.ahead("push_until"), "pings do not make polls rare")
        holds(d.ahead("due") > 120, "not due yet")
        equal(request("POST", hub.pings[0][0], b"url=http%3A%2F%2Felsewhere.example%2F")[0], 202)
        holds(d.ahead("due") > 120, "another URL's ping has no effect")
        equal(request("POST", hub.pings[0][0], ("url=" + u.replace(":", "%3A") + "/f").encode())[0], 202)
        wait_for("the feed to be due", lambda: d.ahead("due") <= 61)
        s = hub.wait_subscription()
        equal(s.secret, None)
        holds(d.ahead("due", "#2") > 120, "not due yet")
        equal(hub.send(s, atom("f", [2])), 202)
        equal(d.entries(), 2)
        wait_for("the feed to be due", lambda: d.ahead("due", "#2") <= 61, 30)


@case("a poll that finds entries missing from the hub ends trust in it for a day; a late document does not") # WSB-14
def missed_entries(base):
    with both(base, conf="websub_poll_ms = 1d\n") as (hub, d):
        u = hub.url
        s = subscribed(hub, d)
        wait_for("the schedule has the lease", lambda: (d.ahead("push_until") or 0) > 8e5, 30)
        key, feed = "ask/%019d/missed" % 1, "feed/%019d" % 1

        def misses():
            return d.feedwheel.one("SELECT count(*) FROM records WHERE record_key = CAST(? AS BLOB)", key)
        for n, sent in ((2, True), (3, False)):
            records(d, {"since_ms": -86400000}, feed) # as if the last poll came after the subscription
            hub.feed("f", range(1, n + 1))
            d.feedwheel.run("set", "--due", u + "/f")
            d.feedwheel.run_once()
            holds(d.ahead("due") > 40000, "polls are rare")
            wait_for("its record", lambda: misses() == 1, 30)
            if sent:
                equal(hub.send(s, atom("f", [n])), 200)
                wait_for("counted", lambda: d.known("delivered") == [1], 30)
            records(d, {"last_ms": -600000 if sent else -900000}, "n/%019d" % 1) # after the poll, or before it
            records(d, {"polled_ms": -601000}, key)
            wait_for("the end of the record", lambda: misses() == 0, 30)
            if not sent:
                wait_for("distrust", lambda: d.known("missed") == [1], 30)
            equal(d.known("missed"), [0 if sent else 1])
            if sent:
                holds(d.ahead("push_until") > 0, "the hub is trusted")
        wait_for("the schedule to poll", lambda: not d.ahead("push_until") and d.ahead("due") < 400)
        until = seconds(d.feedwheel.json("websub", "list")[0]["distrusted_until"])
        holds(0 < until - time.time() <= 86400, "distrusted for a day")
        holds("missed entries" in d.feedwheel.run("why", "#1").stdout, "why shows it")
        equal(hub.send(s, atom("f", [9])), 200) # its documents are still stored


@each_engine("a feed is subscribed, receives documents, and is unsubscribed", leave_out=["sqlite"])
def each_store(base, engine):
    if not LONG:
        raise Skip("FW_LONG=1 runs it")
    with server(engine, base) as db, both(base, store=db.url()) as (hub, d):
        u = hub.url
        s = subscribed(hub, d)
        wait_for("the schedule has the lease", lambda: (d.ahead("push_until") or 0) > 8e5, 60)
        equal(hub.send(s, atom("f", [2])), 200)
        equal(d.entries(), 2)
        db.kill()
        equal(hub.send(s, atom("f", [3])), 503)
        db.restart()
        wait_for("documents to be taken again", lambda: hub.send(s, atom("f", [3])) == 200, 60)
        equal(d.entries(), 3)
        d.feedwheel.run("remove", u + "/f")
        wait_for("unsubscribing", lambda: not hub.subscriptions, 60)
        equal(hub.send(s, atom("f", [4])), 410)


@case("of several servers one sends requests to hubs; after a kill another does") # REL-01
def several_servers(base):
    with both(base) as (hub, d):
        s = subscribed(hub, d)
        os.makedirs(base + "/second")
        other = Subscriber(base + "/second", store=d.feedwheel.store, conf=CONF % (d.port, "10d", "yes"))
        try:
            equal((metric(d, "websub_leads"), metric(other, "websub_leads")), (1, 0))
            equal(hub.send(s, atom("f", [2])), 200)
            there = s.callback.replace(":%d/" % d.port, ":%d/" % other.port)
            equal(request("POST", there, b"x")[0], 403) # every server accepts documents
            requests = len(hub.posts())
            d.kill()
            wait_for("the other server to lead", lambda: metric(other, "websub_leads") == 1, 60)
            renewal_due(d)
            wait_for("a renewal", lambda: len(hub.posts()) > requests, 60)
        finally:
            other.stop()


@case("the log, doctor and websub report servers with different websub_url; workers without it note misses")
def disagreement(base):
    with both(base, conf="websub_poll_ms = 1d\n") as (hub, d):
        u, ours = hub.url, "http://127.0.0.1:%d/" % d.port
        s = subscribed(hub, d)
        wait_for("the schedule has the lease", lambda: (d.ahead("push_until") or 0) > 8e5, 30)
        holds("callbacks start with %swebsub/" % ours in d.feedwheel.run("doctor").stdout, "doctor names the URL")
        equal(d.feedwheel.run("websub").stderr, "")
        other = ("--websub-url", "https://else.example/")
        found = d.feedwheel.run("doctor", *other).stdout
        differs = "websub_url = https://else.example/, but the server that sends requests to hubs has %s" % ours
        holds(differs in found, found)
        holds("use the same websub_url for all servers" in d.feedwheel.run("websub", *other).stderr, "websub warns")
        os.makedirs(base + "/second")
        conf = CONF.replace("http://127.0.0.1:%d/", "https://else.example:%d/") % (443, "10d", "yes")
        second = Subscriber(base + "/second", store=d.feedwheel.store, conf=conf)
        try:
            wait_for("a warning", lambda: "set the same on all servers of this store" in second.feedwheel.log(), 60)
            there = s.callback.replace(":%d/" % d.port, ":%d/" % second.port)
            equal(request("POST", there, b"x")[0], 403) # accepted there: all servers use the store's key
        finally:
            second.stop()
        records(d, {"since_ms": -86400000}, "feed/%019d" % 1)
        hub.feed("f", [1, 2])
        worker = Feedwheel(base + "/second", "", store=d.feedwheel.store) # a worker without websub_url
        worker.run("set", "--due", u + "/f")
        worker.run_once()
        equal(d.entries(), 2)
        misses = "SELECT count(*) FROM records WHERE record_key = CAST(? AS BLOB)"
        wait_for("the record of a miss", lambda: d.feedwheel.one(misses, "ask/%019d/missed" % 1) == 1, 30)
        d.stop()
        holds("no server sends requests to hubs" in d.feedwheel.run("doctor").stdout, "doctor reports it")
        d.start()


@case("after kill -9 an entry answered 200 is stored, and a feed answered 202 is due") # REL-01
def killed(base):
    with both(base, conf="interval_ms = 1h\n") as (hub, d), concurrent.futures.ThreadPoolExecutor(4) as pool:
        u, accepted, lock = hub.url, set(), threading.Lock()
        hub.feed("f", [0])
        d.add(u + "/f")
        s = hub.wait_subscription()
        d.is_active()

        def sender(first):
            for n in range(first, 100000, 4):
                try:
                    if hub.send(s, atom("f", [n])) == 200:
                        with lock:
                            accepted.add(n)
                except (OSError, http.client.HTTPException):
                    return
        for round_ in range(3):
            before = len(accepted)
            senders = [pool.submit(sender, 1000 * round_ + 1 + i) for i in range(4)]
            wait_for("pushes", lambda before=before: len(accepted) >= before + 10, 120)
            d.kill()
            for x in senders:
                x.result()
            there = {json.loads(l)["id"] for l in d.feedwheel.run("entries", "--jsonl").stdout.splitlines()}
            equal([n for n in sorted(accepted) if "urn:e:f:%d" % n not in there], [], "answered 200, and lost")
            d.start()
        before = d.ahead("due")
        holds(before > 1000, before)
        equal(hub.send(s, "<html>thin ping</html>"), 202)
        d.kill()
        holds(d.ahead("due") <= 61, d.feed())
        d.start()


if __name__ == "__main__":
    run()
