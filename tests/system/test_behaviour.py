#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The rules of docs/behaviour.md, each tested by the requests that the origin receives. A case is
named after its rules, and the last column of the page names its function; `rules_and_cases`
compares both.

Most rules share one store and five passes over its feeds (Visits): one visit shows many rules.
"""
import atexit
import calendar
import collections
import functools
import http.server
import inspect
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from http_server import free_port
from harness import (
    FEEDWHEEL, ROOT, SHORT_TIMEOUTS, Origin, Feedwheel, case, certificate, equal, header, holds, origin, run, samples)
from names import Names

# id: (rule, function)
RULES = {}
with open(os.path.join(ROOT, "docs", "behaviour.md"), encoding="utf-8") as rules_file:
    for rules_line in rules_file:
        cells = [c.strip() for c in rules_line.strip().strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"\d{3}", cells[0]):
            RULES[cells[0]] = (cells[1], cells[3].strip("`"))
TESTED = {} # id: function's name


def rule(*ids):
    """A case that shows these rules."""
    def add(function):
        for i in ids:
            holds(i not in TESTED, "rule %s has two cases" % i)
            TESTED[i] = function.__name__
        # without a parameter: the case only reads Visits, and needs no folder
        body = function if inspect.signature(function).parameters else lambda base: function()
        named = functools.wraps(function)(lambda base: body(base))
        case("%s: %s" % (", ".join(ids), "; ".join(RULES[i][0] for i in ids if i in RULES)))(named)
        return function
    return add


# ---- names, for hosts that are not addresses -----------------------------------------------------

@functools.cache
def names():
    return Names()


# ---- documents -----------------------------------------------------------------------------------

def rss(channel, items):
    head = "<?xml version='1.0'?><rss version='2.0' xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'>" \
        "<channel><title>T</title>"
    rows = ["<item><guid isPermaLink='false'>%s</guid><title>%s</title>%s</item>" % i for i in items]
    return head + channel + "".join(rows) + "</channel></rss>"


def dated(n, gap_s):
    now = int(time.time())
    dates = [time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now - gap_s // 2 - k * gap_s)) for k in range(n)]
    return [("e%d" % k, "entry %d" % k, "<pubDate>%s</pubDate>" % date) for k, date in enumerate(dates)]


def documents(folder, port):
    """Write the documents. Returns the hour that skip.xml allows: three hours from now, in UTC."""
    hour = (time.gmtime().tm_hour + 3) % 24
    here = "http://127.1.0.1:%d" % port
    image = "<image><url>%s/logo.png</url><title>T</title><link>%s/</link></image>"
    rich = ("<link>%s/home</link>" + image) % (here, here, here)
    entry = "<link>%s/article</link><comments>%s/comments</comments>" \
        "<enclosure url='%s/sound.mp3' length='9' type='audio/mpeg'/>" \
        "<description>&lt;img src='%s/picture.png'&gt;</description>" % (here, here, here, here)
    undated = [("u1", "one", ""), ("u2", "two", "")]
    skipped = "".join("<hour>%d</hour>" % h for h in range(24) if h != hour)
    for name, text in {
            "daily.xml": rss("", dated(30, 86400)),
            "weekly.xml": rss("", dated(20, 7 * 86400)),
            "hourly.xml": rss("", dated(30, 1800)),
            "hints.xml": rss("<ttl>720</ttl>", undated),
            "sy.xml": rss("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>",
                          undated),
            "skip.xml": rss("<skipHours>%s</skipHours>" % skipped, undated),
            "rich.xml": rss(rich, [("r1", "one", entry)]),
            "undated.xml": rss("", undated),
            "other.xml": rss("", [("x1", "not the same", "")]),
            "target.xml": rss("", [("t1", "target", "")]),
            "target8.xml": rss("", [("t8", "target", "")]),
            "target2.xml": rss("", [("t2", "target", "")])}.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    return hour


# ---- the passes ----------------------------------------------------------------------------------

# Feeds by name; {same} is the feed's own document under another address.
PLANS = {"plain": "ok", "etag": "validators=etag", "lm": "validators=lm", "odd": "validators=odd",
         "weak": "validators=weak", "fresh": "validators=fresh", "busy": "after=1,first=2,429,header=ETag: \"busy\"",
         "cookie": "cookie", "html": "html", "bare": "bare-html", "turned": "after=1,bare-html,ignore-validators",
         "401": "401", "403": "403", "404": "404", "410": "410", "500": "500", "retry": "429,retry-after=7200",
         "tired": "429", "date": "503,retry-after={date}", "date850": "503,retry-after={date850}",
         "asctime": "503,retry-after={asctime}", "week": "503,retry-after=604800", "eon": "503,retry-after=99999999",
         "later": "500,retry-after=14400", "maxage": "header=Cache-Control: max-age=7200", "nxdomain": "nxdomain",
         "refuse": "refuse", "reset": "reset=start", "short": "short=5000", "back": "first=1,410",
         "moved301": "after=1,redirect=301:{same}", "moved308": "redirect=308:/doc/target8.xml",
         "merged": "redirect=301:/doc/target.xml", "strange": "after=1,redirect=301:/doc/other.xml",
         "temporary302": "redirect=302:/doc/target2.xml,cookie", "temporary307": "redirect=307:/doc/target2.xml",
         "scheme": "redirect=301:ftp://127.0.0.1/feed", "circle": "redirect=301:loop", "gzip": "coding=gzip",
         "br": "coding=br", "zstd": "coding=zstd", "deflate": "coding=deflate", "raw": "coding=raw-deflate"}
DOCS = ["daily.xml", "hourly.xml", "hints.xml", "sy.xml", "skip.xml", "rich.xml", "target.xml", "target2.xml"]
QUERY = "?b=2&a=%7Ea&a=1&x=%2F;utm_source=feed&c"
CONTACT = "https://feedwheel.example/about-the-bot"
PASSES = 5


def plan_of(i, name, n):
    """The line of the i-th plan, with the feed's number, for n documents."""
    later = time.gmtime(time.time() + 10800)
    forms = {"date": "%a%%2C %d %b %Y %H:%M:%S GMT", "date850": "%A%%2C %d-%b-%y %H:%M:%S GMT",
             "asctime": "%a %b %e %H:%M:%S %Y"}
    dates = {k: time.strftime(form, later) for k, form in forms.items()}
    return "%d %s" % (i, PLANS[name].format(same="/doc/%d" % (i % n), **dates))


class Visits:
    """Five passes over one feed for each plan and document, each on its own host. Before the fourth
    pass the store's times move by two days, for redirects."""

    def __init__(self):
        base = tempfile.mkdtemp(prefix="fw-rules-")
        atexit.register(shutil.rmtree, base, True)
        docs, port = samples(base), free_port()
        self.hour = documents(docs, port)
        names_of = sorted(os.listdir(docs))
        n = len(names_of)
        numbers = {p: i for i, p in enumerate(PLANS)}
        undated = names_of.index("undated.xml") # no rhythm to learn
        numbers["maxage"] = next(i for i in range(len(PLANS), len(PLANS) + n) if i % n == undated)
        self.origin = o = Origin(base, docs, "--port", str(port), "--feeds", str(len(PLANS) + n),
                                 plans=[plan_of(i, p, n) for p, i in numbers.items()])
        atexit.register(o.stop)
        self.urls = {p: o.urls[i] for p, i in numbers.items()}
        for i, name in enumerate(DOCS):
            self.urls[name] = o.url("/doc/" + name, "127.1.1.%d" % (i + 1))
        # two feeds become one: merged is redirected to target.xml, which is subscribed
        self.urls["target.xml"] = self.urls["merged"].rsplit("/feed", 1)[0] + "/doc/target.xml"
        self.urls["beside"] = self.urls["retry"].rsplit("/feed", 1)[0] + "/doc/undated.xml"
        self.urls["expires"] = self.urls["maxage"].replace("/feed/", "/with/expires=7200/feed/")
        self.urls["query"] = o.url("/doc/rich.xml" + QUERY, "127.1.1.20")
        self.feedwheel = w = Feedwheel(base, "contact_url = %s\ndns_servers = %s\n" % (CONTACT, names().address))
        w.run("add", *[u for name, u in self.urls.items() if name != "merged"])
        w.run("add", "--title", "my title", "--folder", "mine", self.urls["merged"])
        self.seen, self.due, self.why, self.at = [], [], [], []
        for k in range(PASSES):
            if k:
                w.run("set", "--due", *[f["url"] for f in w.json("list", "--status", "active")])
                w.sql("UPDATE hosts SET next_ok_ms = 0 WHERE host_id IN "
                      "(SELECT host_id FROM schedule GROUP BY host_id HAVING count(*) = 1)", write=True)
            if k == 3:
                w.sql("UPDATE feeds SET redirect_since_ms = redirect_since_ms - 172800000 WHERE redirect_since_ms > 0",
                      write=True)
                w.sql("UPDATE schedule SET due_at_ms = 1000 WHERE status = 2", write=True)
            before = len(o.requests())
            self.at.append(time.time())
            w.run_once()
            self.seen.append(o.requests()[before:])
            if k == 1:
                w.run("pause", self.urls["retry"], self.urls["beside"]) # the cooldown of their host would delay the run
            feeds = w.json("list")
            self.due.append({f["url"]: when(f["due"]) - self.at[-1] for f in feeds})
            # none: "beside" waits for its host, if the 429 of "retry" came before its own request
            self.why.append({f["url"]: f.get("why") for f in feeds})

    def requested(self, name, k):
        """Requests of pass k (from 0) to this feed's address."""
        url = self.urls[name]
        return [r for r in self.seen[k] if address(r) == url]

    def one(self, name, k):
        [r] = self.requested(name, k)
        return r

    def feed(self, name):
        [f] = [f for f in self.feedwheel.json("list") if f["url"] == self.urls[name]]
        return f

    def delay(self, name, k=0):
        return self.due[k][self.urls[name]]


def host_of(request):
    return header(request, "Host")[0].rsplit(":", 1)[0]


def address(request):
    return "http://" + header(request, "Host")[0] + request["target"]


def when(stamp):
    return calendar.timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))


@functools.cache
def visits():
    return Visits()


def all_requests():
    return [r for k in range(PASSES) for r in visits().seen[k]]


# ---- conditional requests ------------------------------------------------------------------------

@rule("001", "002")
def last_modified():
    v = visits()
    equal(header(v.one("lm", 0), "If-Modified-Since"), [], "the first request")
    holds(header(v.one("lm", 1), "If-Modified-Since") and not header(v.one("lm", 1), "If-None-Match"), "the second")
    equal([v.one("lm", k)["status"] for k in range(PASSES)], [200, 304, 304, 304, 304])


@rule("003", "004")
def etag():
    v = visits()
    [sent] = header(v.one("etag", 1), "If-None-Match")
    holds(sent.startswith('"') and sent.endswith('"'), "quotes are part of the ETag: %s" % sent)
    equal([v.one("etag", k)["status"] for k in range(PASSES)], [200, 304, 304, 304, 304])


def age(feedwheel, hours):
    """Make the store's knowledge of validators older."""
    for feed_id, rhythm in feedwheel.sql("SELECT id, rhythm FROM feeds"):
        checked = re.sub(r"(?<= tr=)(-?\d+),(\d+)", lambda m: "%s,%d" % (m[1], int(m[2]) - 60 * hours), rhythm or "")
        feedwheel.sql("UPDATE feeds SET rhythm = ?, validators_ms = validators_ms - ? WHERE id = ?",
                      checked or None, hours * 3600000, feed_id, write=True)


def statuses(o, url):
    return [(r["status"], bool(header(r, "If-None-Match"))) for r in o.requests() if address(r) == url]


@rule("010", "011")
def memory(base):
    """Each run is another process. An unconditional request finds the weekly feed unchanged, so the
    next one is a week later; the undated feed has no rhythm."""
    docs = samples(base)
    documents(docs, 1)
    with origin(base, docs) as o:
        w = Feedwheel(base)
        undated, weekly = urls = [o.url("/doc/undated.xml"), o.url("/doc/weekly.xml", "127.1.0.2")]
        w.run("add", *urls)
        for hours in (0, 20, 5, 140, 30):
            age(w, hours)
            w.run("set", "--due", *urls)
            equal(w.run_once()["failed"], 0)
        same, whole = (304, True), (200, False)
        equal({u: statuses(o, u) for u in urls},
              {undated: [whole, same, whole, whole, whole], weekly: [whole, same, whole, same, whole]},
              "status and validators")
        text = w.run("why", weekly).stdout
        holds("304 (not modified) is trusted: the last 2 checks found the document unchanged" in text, text)
        reported = w.json("why", weekly)["not_modified"]
        equal((reported["trust"], "contradicted" in reported, "checked" in reported), (2, False, True))


@case("a 304 is trusted for a day; then one unconditional request verifies it")
def trusted_for_a_day(base):
    """Three servers: 304 to each conditional request while the document grows, 304 to every request,
    and correct responses."""
    docs = samples(base)
    documents(docs, 1)
    with origin(base, docs, "--feeds", "2", plans=["0 grow=1,stale-304", "1 after=1,always-304"]) as o:
        w = Feedwheel(base)
        urls = o.urls + [o.url("/doc/undated.xml", "127.1.0.9")]
        w.run("add", *urls)
        w.run_once()
        first = {f["url"]: f["entries"] for f in w.json("list")}
        holds("was not checked yet" in w.run("why", urls[0]).stdout, w.run("why", urls[0]).stdout)
        for hours in (0, 23, 2, 25):
            age(w, hours)
            w.run("set", "--due", *urls)
            w.run_once()
        same = (304, True)
        equal([statuses(o, u) for u in urls], [
            [(200, False), same, same, (200, False), (200, False)],
            [(200, False), same, same, (304, False), (304, False)],
            [(200, False), same, same, (200, False), (200, False)]], "one unconditional request a day")
        reported = [w.json("why", u)["not_modified"] for u in urls]
        equal([r["trust"] for r in reported], [-7, -7, 2], "trust in 304")
        equal(["contradicted" in r for r in reported], [True, True, False])
        holds("304 (not modified) is not trusted: on 20" in w.run("why", urls[0]).stdout, w.run("why", urls[0]).stdout)
        grown = {f["url"]: f["entries"] - first[f["url"]] for f in w.json("list")}
        equal([grown[u] for u in urls], [4, 0, 0], "new entries")


@rule("012", "013")
def byte_for_byte():
    v = visits()
    equal([r for r in all_requests() if "violation" in r], [], "validators that the server did not send")
    for name in ("odd", "weak", "plain"):
        equal([v.one(name, k)["status"] for k in range(2)], [200, 304], name)
    holds(header(v.one("weak", 1), "If-None-Match")[0].startswith("W/"), "a weak ETag stays weak")
    equal([r for r in v.seen[0] if header(r, "If-None-Match") or header(r, "If-Modified-Since")], [],
          "the first request has no validator")


@rule("014")
def one_set():
    v = visits()
    sent = [
        (header(v.one("fresh", k), "If-None-Match"), header(v.one("fresh", k), "If-Modified-Since"))
        for k in range(1, 4)]
    equal(len(set(map(str, sent))), 3, "new validators each time, for the same document: %s" % sent)
    holds(all(a and b for a, b in sent), "both validators")


@rule("015")
def upgrades(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base)
        w.run("add", *o.urls)
        w.run_once()
        other = Feedwheel(base, name="other.db")
        w.run("copy", w.store, other.store)
        other.run("set", "--due", *o.urls)
        other.run_once()
        equal([r["status"] for r in o.requests()], [200, 304], "validators in a copied store")


@rule("016")
def after_429():
    v = visits()
    first, refused, third = (v.one("busy", k) for k in range(3))
    equal((first["status"], refused["status"], third["status"]), (200, 429, 304))
    equal(header(third, "If-None-Match"), header(refused, "If-None-Match"), "validators of the 429 are ignored")


# ---- hints of the server -------------------------------------------------------------------------

@rule("020")
def retry_after():
    v = visits()
    holds(7100 <= v.delay("retry") <= 8000, "429, 2 h: %d s" % v.delay("retry"))
    for form in ("date", "date850", "asctime"):
        holds(10700 <= v.delay(form) <= 12000, "503, a date in 3 h, %s: %d s" % (form, v.delay(form)))
    holds(604800 <= v.delay("week") <= 1.1 * 604800, "a week is not limited: %d s" % v.delay("week"))
    holds(604800 <= v.delay("eon") <= 1.1 * 604800, "three years are limited to a week: %d s" % v.delay("eon"))
    holds(14300 <= v.delay("later") <= 16000, "500, 4 h: %d s" % v.delay("later"))
    for name in ("retry", "beside"): # all feeds of the host
        equal(len(v.requested(name, 1)), 0, "polled in its host's cooldown: " + name)


@rule("021")
def without_a_hint():
    v = visits()
    first, second = v.delay("tired", 0), v.delay("tired", 1)
    holds(first >= 3000 and second >= 1.5 * first, "429 without a hint: %d s, then %d s" % (first, second))
    first, second = v.delay("500", 0), v.delay("500", 1)
    holds(second > 1.4 * first >= 700, "500: %d s, %d s" % (first, second))


@rule("022")
def cache_control():
    v = visits()
    holds(7200 <= v.delay("maxage", 0) <= 8800, "on 200: %d s" % v.delay("maxage", 0))
    equal(v.one("maxage", 1)["status"], 304)
    for k in (0, 1):
        holds(7100 <= v.delay("expires", k) <= 8800, "Expires: %d s" % v.delay("expires", k))
    holds(7200 <= v.delay("maxage", 1) <= 8800, "on 304: %d s" % v.delay("maxage", 1))
    holds("max-age" in v.why[1][v.urls["maxage"]], v.why[1][v.urls["maxage"]])


@rule("023")
def own_rhythm():
    v = visits()
    holds(v.delay("hourly.xml") < 4000 < 2 * 3600 < v.delay("daily.xml"),
          "%d s, %d s" % (v.delay("hourly.xml"), v.delay("daily.xml")))
    for name in ("hourly.xml", "daily.xml"):
        why = v.why[0][v.urls[name]]
        holds("learned" in why or "new about every" in why, why)


@rule("024")
def hints_inside():
    v = visits()
    for k in (0, 1): # they hold after a 304 too
        for name, hint in ("hints.xml", "ttl"), ("sy.xml", "updatePeriod"):
            delay, why = v.delay(name, k), v.why[k][v.urls[name]]
            holds(43000 <= delay <= 48000 and hint in why, "%s: %d s, %s" % (hint, delay, why))
    hour = time.gmtime(v.at[0] + v.delay("skip.xml")).tm_hour
    equal(hour, v.hour, "the only hour that is not in skipHours")


# ---- own scheduling ------------------------------------------------------------------------------

@rule("030")
def not_twice():
    v = visits()
    for k in range(PASSES):
        per_feed = collections.Counter(address(r) for r in v.seen[k])
        equal(
            [u for u, n in per_feed.items() if n > 1 and u in v.urls.values() and u != v.urls["target.xml"]], [],
            "requested twice in pass %d" % k)
    for name in ("plain", "etag", "lm", "odd", "weak", "cookie", "gzip"):
        equal([v.one(name, k)["status"] for k in range(1, PASSES)], [304] * (PASSES - 1), name)


@rule("031", "032")
def no_other_resource():
    feeds = {"/" + u.split("/", 3)[3] for u in visits().urls.values()}
    also = {"/doc/other.xml", "/doc/target8.xml", "/doc/target2.xml"} # targets of redirects
    stray = {r["target"] for r in all_requests()} - feeds - also
    # the page's feed; the target of moved301; the redirect loop
    stray = {t for t in stray if not re.fullmatch(r"/doc/\d+|/feed/\d+\?hop=1", t)}
    equal(stray, set(), "requests for icons, images, articles, comments, enclosures")


@functools.cache
def shared_hosts():
    """The requests to 24 feeds on two hosts and 6 on names of one hosting service."""
    base = tempfile.mkdtemp(prefix="fw-hosts-")
    atexit.register(shutil.rmtree, base, True)
    with origin(base, samples(base), "--feeds", "24", "--hosts", "2", "--latency", "fixed:60") as o:
        w = Feedwheel(base, "host_concurrency = 2\nhost_gap_ms = 150ms\ndns_servers = %s\n" % names().address)
        w.run("import", o.url_file)
        w.run("add", *["http://blog%d.blogspot.com:%d/doc/%d" % (i, o.port, i) for i in range(6)])
        # two workers could come closer than the gap on a busy machine: test_polite.py
        w.run_once("--workers", "1")
        return o.requests()


@rule("033")
def gap():
    requests = shared_hosts()
    for host in ("127.1.0.1", "127.1.0.2"):
        starts = sorted(r["came_us"] for r in requests if r["host"] == host)
        equal(len(starts), 12)
        holds(starts[-1] - starts[0] >= 11 * 150000 * 0.9, "12 feeds in %d ms" % ((starts[-1] - starts[0]) // 1000))


@rule("034")
def few_servers(base):
    requests = shared_hosts()
    equal(len([r for r in requests if "blogspot" not in header(r, "Host")[0]]), 24)
    for most in (2, 6): # 6 shows that the origin measures more than 2
        folder = os.path.join(base, str(most))
        with origin(folder, samples(folder), "--feeds", "16", "--hosts", "2", "--latency", "fixed:400") as o:
            w = Feedwheel(folder, "host_concurrency = %d\n" % most)
            w.run("import", o.url_file)
            w.run_once("--workers", "2")
            at_once = o.stats()["host_in_flight_max"]
            holds(1 < at_once <= 2 if most == 2 else 2 < at_once <= 6,
                  "in flight at one server with host_concurrency = %d: %d" % (most, at_once))


@rule("035")
def few_addresses(base):
    requests = shared_hosts()
    hosted = [r for r in requests if "blogspot" in header(r, "Host")[0]]
    equal(len({header(r, "Host")[0] for r in hosted}), 6, "six names")
    starts = sorted(r["came_us"] for r in hosted)
    took_us = starts[-1] - starts[0]
    holds(took_us >= 5 * 150000 * 0.9, "six names of one hosting service in %d ms" % (took_us // 1000))
    for most in (3, 0):
        folder = os.path.join(base, str(most))
        with origin(folder, samples(folder), "--feeds", "20", "--latency", "fixed:500") as o:
            w = Feedwheel(folder, "address_concurrency = %d\ntotal_timeout_ms = 60s\ndns_servers = %s\n" % (
                most, names().address))
            w.run("add", *["http://feeds.name%d.example:%d/feed/%d" % (i, o.port, i) for i in range(20)])
            done = w.run_once("--workers", "1")
            equal(done["failed"], 0, done)
            equal(len({header(r, "Host")[0] for r in o.requests()}), 20, "twenty names")
            at_once = o.stats()["in_flight_max"]
            holds(1 < at_once <= 3 if most else at_once > 3,
                  "at one address with address_concurrency = %d: %d" % (most, at_once))


@rule("036")
def adding(base):
    with origin(base, samples(base), "--feeds", "2") as o:
        w = Feedwheel(base)
        w.run("add", o.urls[0])
        equal(len(o.requests()), 0, "add sends no request")
        w.run_once()
        equal(len(o.requests()), 1, "the first visit")
        w.run("add", "--check", o.urls[1])
        w.run_once()
        equal(len(o.requests()), 2, "the check is the first visit")
        [f] = [f for f in w.json("list") if f["url"] == o.urls[1]]
        holds(f["entries"] > 0 and f["last_result"] == "ok" and f.get("etag"), f)
        w.run("add", o.urls[0])
        w.run_once()
        equal(len(o.requests()), 2, "adding it again sends no request")


@rule("037")
def spread():
    v = visits()
    alike = ("gzip", "br", "zstd", "deflate", "raw", "cookie", "plain", "etag", "lm", "odd", "weak", "fresh")
    plain = [v.due[0][v.urls[n]] + v.at[0] for n in alike]
    seconds = {int(t) for t in plain}
    holds(len(seconds) >= len(plain) - 2, "due times of equal feeds differ: %s" % sorted(seconds))
    holds(len([t for t in plain if int(t) % 3600 < 5]) <= 2, "due times are not on the hour")


# ---- methods, clean requests, identity -----------------------------------------------------------

@rule("050", "051")
def methods():
    equal({r["method"] for r in all_requests()}, {"GET"})


@rule("060")
def input_checked(base):
    w = Feedwheel(base)
    for bad in ("javascript:alert(1)", "file:///etc/passwd", "ftp://127.0.0.1/feed", "http://",
                "http://exa mple/feed", "|id", "http://h:99999/"):
        r = w.run("add", bad, code=2)
        holds(r.stderr.count("\n") == 1 and r.stderr.startswith("feedwheel: "), r.stderr)
    holds(not os.path.exists(w.path), "nothing is subscribed")


@rule("061", "104", "105")
def no_guessing(base):
    with origin(base, samples(base), "--feeds", "1", plans=["0 bare-html"]) as o:
        w = Feedwheel(base)
        w.run("add", "--check", o.urls[0], code=1)
        w.run("add", o.urls[0])
        w.run_once()
        w.run_once()
        equal({r["target"] for r in o.requests()}, {"/feed/0"}, "requests for /feed, /rss, /atom.xml ...")


@rule("062", "064", "066")
def as_subscribed():
    v = visits()
    equal({r["target"] for r in all_requests() if host_of(r) == "127.1.1.20"},
          {"/doc/rich.xml" + QUERY}, "the query, byte for byte")
    queries = [r["target"] for r in all_requests() if "?" in r["target"] and "hop=" not in r["target"]]
    equal([q for q in queries if QUERY not in q], [])
    for name in ("Cache-Control", "Pragma"):
        equal([r for r in all_requests() if header(r, name)], [], name)
    equal(len(v.requested("query", 1)), 1)


@rule("063")
def no_cookies():
    equal([r for r in all_requests() if header(r, "Cookie")], [])
    equal(visits().one("cookie", 1)["status"], 304)
    v = visits() # nor within one visit, after a redirect that sets one
    hops = [r["target"] for r in v.seen[0] if host_of(r) == host_of(v.one("temporary302", 0))]
    equal(hops[1:], ["/doc/target2.xml"])


@rule("065")
def no_referrer():
    equal([r for r in all_requests() if header(r, "Referer") or header(r, "Origin")], [])


@rule("070")
def manual_refresh(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base)
        w.run("add", *o.urls)
        w.run_once()
        r = w.run("fetch-now", *o.urls)
        holds("--again" in r.stderr and "skipped: polled" in r.stderr, r.stderr)
        w.run_once()
        equal(len(o.requests()), 1, "a second refresh within a minute")
        w.run("fetch-now", "--again", *o.urls)
        w.run_once()
        equal([r["status"] for r in o.requests()], [200, 304], "with --again, with validators")


@rule("071")
def unconditional(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base)
        w.run("add", *o.urls)
        w.run_once()
        r = w.run("fetch", *o.urls, code=1)
        holds("--whole" in r.stderr and "fetch-now" in r.stderr, r.stderr)
        equal(len(o.requests()), 1)
        w.run("fetch", "--whole", *o.urls)
        equal([r["status"] for r in o.requests()], [200, 200], "with --whole")


@rule("080", "081", "082", "083", "086", "087")
def user_agent():
    agents = {tuple(header(r, "User-Agent")) for r in all_requests()}
    equal(len(agents), 1, "one User-Agent for all servers, visits and responses")
    [[agent]] = agents
    version = subprocess.run([FEEDWHEEL, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    equal(agent, "feedwheel/%s (+%s)" % (version, CONTACT))


@rule("084", "085")
def no_masquerade():
    [agent] = {header(r, "User-Agent")[0] for r in all_requests()}
    for other in ("Mozilla", "Chrome", "Safari", "Gecko", "curl", "compatible"):
        holds(other.lower() not in agent.lower(), agent)


@rule("088", "089")
def same_for_all():
    vary = {"host", "if-none-match", "if-modified-since"}
    equal(
        len({tuple(sorted((k.lower(), v) for k, v in r["headers"] if k.lower() not in vary)) for r in all_requests()}),
        1, "the headers are the same for all users and servers")


@rule("090")
def real_urls(base):
    with origin(base, samples(base), "--feeds", "1") as o:
        w = Feedwheel(base)
        w.run("add", *o.urls)
        w.run_once()
        [agent] = header(o.requests()[0], "User-Agent")
        holds("http" not in agent, "without contact_url it has no URL: %s" % agent)
        holds("contact_url" in w.run("doctor", code=None).stdout, "doctor asks for one")


# ---- addresses -----------------------------------------------------------------------------------

@rule("100")
def bad_urls():
    v = visits()
    equal(v.feed("scheme")["url"], v.urls["scheme"], "after five permanent redirects to ftp:")
    equal(v.feed("scheme")["last_result"], "redirect")
    equal([u for (u,) in v.feedwheel.sql("SELECT url FROM feeds") if not u.startswith("http://")], [])


class Refusal(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        words = b"<html><title>No</title><p>Readers are welcome again after the harvest"
        self.send_response(403)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, *_):
        pass


@rule("101")
def server_reason(base):
    with http.server.HTTPServer(("127.1.0.1", 0), Refusal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        w = Feedwheel(base)
        for command in (("add", "--check"), ("fetch",)):
            r = w.run(*command, "http://127.1.0.1:%d/feed" % server.server_port, code=1)
            holds("403" in r.stderr and "welcome again after the harvest" in r.stderr, r.stderr)
        server.shutdown()
    holds(not os.path.exists(w.path), "nothing is subscribed")


@rule("102")
def no_feed():
    f = visits().feed("bare")
    equal((f["last_result"], f["entries"]), ("format", 0))
    holds("HTML" in f["error"], f["error"])


@rule("103")
def alternate():
    v = visits()
    holds(v.urls["html"] not in v.due[0], "the page is subscribed no more")
    page = v.one("html", 0)
    named = [r for r in v.seen[0] if host_of(r) == host_of(page) and r["target"].startswith("/doc/")]
    equal(len(named), 1, "requests for the feed that the page names, in the same run")
    equal(
        len([u for u in v.due[0] if u.endswith(named[0]["target"]) and host_of(page) in u]), 1,
        "the feed replaces the page")


@rule("106")
def privacy(base):
    with origin(base, samples(base), "--feeds", "2", plans=["0 redirect=302:feed/1"]) as o:
        w = Feedwheel(base)
        w.run("add", o.urls[0].replace("http://", "http://mira:geheim@"))
        w.run_once()
        log = o.requests()
        equal([bool(header(r, "Authorization")) for r in log], [True, False], "only its own origin gets the login")
        shown = "".join(
            w.run(*c).stdout
            for c in (
                ["list"], ["list", "--json"], ["export"], ["show", o.urls[0]], ["why", o.urls[0]], ["plan", "--all"],
                ["timeline", "-o", "-"], ["status", "--json"]))
        holds("geheim" not in shown and "geheim" not in str([r["target"] for r in log]), "the password is printed")


# ---- backing off ---------------------------------------------------------------------------------

def backs_off(name, least_s, result):
    v = visits()
    holds(v.delay(name, 0) >= least_s, "%s: %d s" % (name, v.delay(name, 0)))
    delays = [v.delay(name, k) for k in range(3)]
    holds(delays[2] > 1.5 * delays[0] or delays[2] >= 0.85 * 86400, "%s: %s" % (name, delays))
    f = v.feed(name)
    equal((f["last_result"], f["failures"], f["status"]), (result, PASSES, "active"), name)
    holds(f["error"], name)


@rule("110")
def no_feed_any_more():
    v = visits()
    equal(v.feed("turned")["last_result"], "format")
    holds(v.feed("turned")["entries"] > 0, "its entries are kept")
    delays = [v.delay("turned", k) for k in range(PASSES)]
    holds(delays[1] >= 3000 and delays[4] > 1.3 * delays[1], delays)


@rule("111")
def gone_shown():
    v = visits()
    equal(v.feed("410")["state"], "gone")
    equal([f["url"] for f in v.feedwheel.json("list", "--status", "gone")], [v.urls["410"]])
    holds("gone" in v.feedwheel.run("status").stdout, "status")
    [row] = [r for r in v.feedwheel.run("list", "--failing").stdout.splitlines() if r.endswith(v.urls["410"])]
    holds(re.search(r" gone +2  (in \d+ d|20\d\d-)", row), "the time of the next visit: " + row)
    text = v.feedwheel.run("why", v.urls["410"]).stdout
    holds("410" in text and "resume" in text and "polled once more" in text, text)


@rule("112")
def forbidden():
    backs_off("403", 3 * 3600, "http")
    backs_off("401", 3 * 3600, "http")


@rule("113")
def not_found():
    backs_off("404", 3000, "http")


@rule("114")
def gone_stops():
    v = visits()
    requests = [len(v.requested("410", k)) for k in range(PASSES)]
    equal((requests[:3], sum(requests[3:])), ([1, 0, 0], 1), "one request, and one more a month later")
    holds(v.delay("410") > 25 * 86400 and v.delay("410", 4) > 25 * 86400, "the next visit is a month later")
    requests = [len(v.requested("back", k)) for k in range(PASSES)]
    holds(requests[:3] == [1, 0, 0] and sum(requests[3:]) >= 1, "a feed that is no longer gone: %s" % requests)
    equal(v.feed("back")["state"], "ok")


@rule("115")
def server_errors():
    backs_off("500", 700, "http")


@rule("116")
def resolver_errors():
    backs_off("nxdomain", 700, "dns")


@rule("117")
def connection_errors():
    backs_off("refuse", 700, "connect")


@rule("118")
def broken_responses():
    backs_off("reset", 700, "protocol")
    backs_off("short", 700, "protocol")


@rule("119")
def never_abandoned():
    v = visits()
    for name in ("403", "404", "500", "nxdomain", "refuse", "reset", "tired", "circle"):
        holds(0 < v.delay(name, PASSES - 1) <= 31 * 86400, name)
    equal(v.feed("circle")["last_result"], "redirect")


@rule("120")
def errors_shown():
    v = visits()
    failing = {f["url"]: f["error"] for f in v.feedwheel.json("list", "--failing")}
    words = {"403": "403", "nxdomain": "name", "refuse": "connection", "bare": "HTML", "circle": "loop"}
    for name, word in words.items():
        holds(word in failing[v.urls[name]], failing[v.urls[name]])
        holds(word in v.feedwheel.run("why", v.urls[name]).stdout, "why: " + name)


# ---- moves ---------------------------------------------------------------------------------------

@rule("130", "132")
def moved_301():
    v = visits()
    to = v.urls["moved301"].rsplit("/feed", 1)[0] + "/doc/"
    [now] = [u for u in v.due[4] if u.startswith(to)]
    holds(v.urls["moved301"] in v.due[2] and v.urls["moved301"] not in v.due[4], "adopted after a day, not earlier")
    equal(len(v.requested("moved301", 3)), 1, "three visits with the redirect")
    w = v.feedwheel
    before = len(v.origin.requests())
    w.run("set", "--due", now)
    w.run_once()
    equal([r["target"] for r in v.origin.requests()[before:]], ["/" + now.split("/", 3)[3]],
          "the request goes to the new URL")
    for url in (now, v.urls["moved301"]):
        text = w.run("why", url).stdout
        holds("permanently redirected from " + v.urls["moved301"] in text and now in text, text)
    equal(
        w.one("SELECT count(*) FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?", now),
        w.one("SELECT count(DISTINCT guid) FROM entries JOIN feeds ON feeds.id = feed_id WHERE feeds.url = ?", now),
        "entries are stored once")
    text = w.run("why", v.urls["strange"]).stdout
    holds("no entry of this feed was found" in text and v.feed("strange")["url"] == v.urls["strange"], text)


@rule("131")
def moved_308():
    v = visits()
    holds(v.urls["moved308"] in v.due[2], "not adopted within a day")
    holds(v.urls["moved308"] not in v.due[4] and [u for u in v.due[4] if u.endswith("/doc/target8.xml")], "adopted")


@rule("133", "135")
def temporary_302():
    v = visits()
    equal(len(v.requested("temporary302", 4)), 1, "the requests go to its own URL")
    equal(v.feed("temporary302")["last_result"], "not_modified")
    for name in ("temporary302", "temporary307"):
        text = v.feedwheel.run("why", v.urls[name]).stdout
        holds("redirected temporarily" in text, text)


@rule("134")
def temporary_307():
    v = visits()
    equal(len(v.requested("temporary307", 4)), 1)
    equal(v.feedwheel.sql("SELECT redirect_n FROM feeds WHERE url = ?", v.urls["temporary307"]), [(0,)])


@rule("136")
def tls_problems(base):
    _, cert, key = certificate(base, ["127.1.0.1"])
    with origin(base, samples(base), "--feeds", "1", "--tls", cert, key) as o:
        w = Feedwheel(base)
        w.run("add", *o.urls)
        w.run_once()
        [f] = w.json("list")
        equal(f["last_result"], "tls")
        holds("certificate" in f["error"] and "certificate" in w.run("why", o.urls[0]).stdout, f["error"])


@rule("137")
def merged():
    v = visits()
    equal([u for u in v.due[4] if u == v.urls["merged"]], [], "the merged feed is gone")
    f = v.feed("target.xml")
    equal((f["title"], f["folder"]), ("my title", "mine"), "title and folder are kept")
    equal(f["entries"], 1, "entries are stored once")
    text = v.feedwheel.run("why", v.urls["target.xml"]).stdout
    holds("merged with " + v.urls["merged"] in text, text)


# ---- encoding ------------------------------------------------------------------------------------

@rule("140")
def compression_wanted():
    equal({tuple(header(r, "Accept-Encoding")) for r in all_requests()}, {("gzip, deflate, br, zstd",)})


@rule("141")
def decompressed():
    v = visits()
    for name in ("gzip", "br", "zstd", "deflate", "raw"):
        holds(v.feed(name)["entries"] > 0, name)


# ---- no rule of the page: our own network ------------------------------------------------------------

@case("while our own network is down no feed's failures count, status says so, and polling resumes after it")
def own_network(base):
    docs = samples(base)
    port = free_port()
    with origin(base, docs, "--feeds", "30", "--port", str(port)) as o:
        w = Feedwheel(base, "dns_servers = %s\n" % names().address)
        w.run("import", o.url_file)
        w.run_once()
        o.stop() # all hosts are down, and names fail
        w.run("add", *["http://feed-%d.invalid/" % i for i in range(6)])
        w.run("set", "--due", *o.urls)
        w.run_once()
        feeds = w.json("list")
        equal([f["url"] for f in feeds if f["failures"]], [], "feeds with failures")
        holds(all("our own network" in w.run("show", f["url"]).stdout for f in feeds[:1]), "show says so")
        holds(max(when(f["due"]) for f in feeds if f["last_result"] == "local") < time.time() + 900,
              "the next visit is soon")
    with origin(os.path.join(base, "again"), docs, "--feeds", "30", "--port", str(port)) as o:
        w.run("set", "--due", *o.urls)
        equal(w.run_once()["failed"], 0)
        equal({f["last_result"] for f in w.json("list") if f["url"] in o.urls}, {"not_modified"})


@case("timeouts of slow feeds at the end of a run count as failures of the feeds, not of our own network")
def slow_tail(base):
    with origin(base, samples(base), "--feeds", "160", plans=["120-159 hang=start"]) as o:
        w = Feedwheel(base, SHORT_TIMEOUTS)
        w.run("import", o.url_file)
        w.run_once()
        kinds = collections.Counter(f["last_result"] for f in w.json("list"))
        equal(kinds, {"ok": 120, "timeout": 40})
        equal(len(w.json("list", "--failing")), 40)


@case("each rule of docs/behaviour.md has the case that its last column names, and each case a rule")
def rules_and_cases(_base):
    ranges = ((1, 4), (10, 16), (20, 24), (30, 37), (50, 51), (60, 66), (70, 71), (80, 90), (100, 106), (110, 120),
              (130, 137), (140, 141))
    equal(sorted(RULES), ["%03d" % i for a, b in ranges for i in range(a, b + 1)], "rules of the page")
    equal(TESTED, {i: function for i, (_, function) in RULES.items()}, "the last column")


run()
