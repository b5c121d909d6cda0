#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Each kind of failing server has a kind and an error message, costs bounded time and memory, and
does not affect other feeds."""

from harness import SHORT_TIMEOUTS, SOON, Feedwheel, case, equal, holds, origin, run, samples, sanitized

# plan, kind(s), a part of the error message
FAULTS = [
    ("404", "http", "404"),
    ("410", "gone", "410"),
    ("403", "http", "403"),
    ("429,retry-after=7200", "http", "429"),
    ("500", "http", "500"),
    ("503,retry-after=Wed%2C 21 Oct 2065 07:28:00 GMT", "http", "503"),
    ("reset=start", "protocol", ""),
    ("reset=body", "protocol", ""),
    ("shut=start", "protocol", ""),
    ("shut=headers", ("protocol", "format"), ""),
    ("hang=start", "timeout", ""),
    ("hang=headers", "timeout", ""),
    ("hang=body", "timeout", ""),
    ("drip=20", "timeout", ""),
    ("noaccept", ("timeout", "connect"), ""),
    ("refuse", "connect", "refused"),
    ("nxdomain", "dns", "host name"),
    ("bare-html", "format", "HTML"),
    ("junk", "format", ""),
    ("empty", "format", "empty"),
    ("short=5000", "protocol", ""),
    ("cut=50,coding=gzip", "protocol", ""),
    ("bomb=endless", "limit", ""),
    ("bomb=24", "limit", ""),
    ("bomb=24,coding=br", "limit", ""),
    ("bomb=24,coding=zstd", "limit", ""),
    ("endless", "limit", ""),
    ("endless,until-close", "limit", ""),
    ("endless-headers", "limit", "header"),
    ("header-kb=200", "limit", "header"),
    ("redirect=302:loop", "redirect", ""),
    ("redirect=302:endless", "redirect", ""),
    ("redirect=301:file:///etc/hostname", "redirect", "not http"),
    ("redirect=302:ftp://127.0.0.1/x", "redirect", "not http"),
    ("redirect=302:http://10.1.2.3/feed", "blocked", ""),
    ("redirect=307:http://[fe80::1]/feed", "blocked", ""),
    ("redirect=302:http://169.254.169.254/latest", "blocked", ""),
    ("always-304", "protocol", "304"),
]


def collected(base, plans, conf=""):
    """One run over a feed for each plan and as many healthy feeds. Returns the failing feeds in the
    order of the plans, the healthy ones, the run's summary, the origin's log and the Feedwheel."""
    n = len(plans)
    rules = ["%d %s" % p for p in enumerate(plans)]
    with origin(base, samples(base), "--feeds", str(2 * n), plans=rules) as o:
        w = Feedwheel(base, conf)
        w.run("import", o.url_file)
        stats = w.run_once()
        feeds = {f["url"]: f for f in w.json("list")}
        return [feeds[u] for u in o.urls[:n]], [feeds[u] for u in o.urls[n:]], stats, o.requests(), w


# NET-04..06, NET-09, NET-10, LIM-*, POL-03, POL-10
@case("each fault has its kind and error message; healthy feeds are fetched")
def faults(base):
    bad, good, stats, log, w = collected(base, [f[0] for f in FAULTS], SHORT_TIMEOUTS + "max_body_bytes = 4MiB\n")
    wrong = []
    for (plan, kinds, words), feed in zip(FAULTS, bad):
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        text = feed.get("error", "")
        if feed["last_result"] not in kinds or words.lower() not in text.lower() or not text or "\n" in text:
            wrong.append("%s: want %s '%s', got %s '%s'" % (plan, "/".join(kinds), words, feed["last_result"], text))
    equal(wrong, [], "faults")
    equal([f["last_result"] for f in good], ["ok"] * len(good), "healthy feeds")
    equal((stats["feeds"], stats["failed"], stats["restarts"]), (2 * len(FAULTS), len(FAULTS), 0))
    equal([f["status"] for f in bad if f["last_result"] == "gone"], ["gone"])
    loops = [r for r in log if r["feed"] == [f[0] for f in FAULTS].index("redirect=302:endless")]
    holds(len(loops) <= 6, "at most five redirects: %d requests" % len(loops))
    holds(sanitized() or stats["max_rss_bytes"] < 100 << 20, "memory is bounded: %d" % stats["max_rss_bytes"])
    holds(w.one("SELECT max(body_bytes) FROM visits") <= (4 << 20) + (1 << 20), "decoded bytes are bounded")


@case("Retry-After and errors delay the next poll; why prints the reason") # POL-07, POL-08, POL-10
def delayed(base):
    plans = ["429,retry-after=7200", "503,retry-after=3h", "404", "410"]
    bad, _, _, _, w = collected(base, plans)
    now_ms = w.one("SELECT max(at_ms) FROM visits")
    due_at_ms = "SELECT due_at_ms FROM schedule JOIN feeds USING (position) WHERE url = ?"
    due_s = [(w.one(due_at_ms, f["url"]) - now_ms) / 1000 for f in bad]
    holds(7100 <= due_s[0] <= 8000, "429 with Retry-After 7200: due in %d s" % due_s[0])
    holds(due_s[2] >= 900, "404: due in %d s" % due_s[2])
    holds("retry-after" in w.run("why", bad[0]["url"]).stdout.lower(), "why names Retry-After")
    equal([f["url"] for f in w.json("list", "--status", "gone")], [bad[3]["url"]], "gone feeds listed")


# a new feed is replaced by the feed that the page names: test_cli.py
@case("a feed that becomes a web page keeps its URL and entries; its error names the feed on the page")
def page_later(base):
    with origin(base, samples(base), "--feeds", "1", plans=["* after=1,html,validators=none"]) as o:
        w = Feedwheel(base, SOON)
        w.run("import", o.url_file)
        equal(w.run_once()["failed"], 0)
        entries = w.one("SELECT count(*) FROM entries")
        w.run("set", "--due", o.urls[0])
        equal(w.run_once()["failed"], 1)
        [feed] = w.json("list")
        equal((feed["url"], feed["last_result"]), (o.urls[0], "format"))
        holds("/doc/" in feed["error"], feed["error"])
        equal(w.one("SELECT count(*) FROM entries"), entries, "entries stay")


@case("a truncated document fails its visit; the entries are complete and stored once after the next visit")
def truncated(base):
    with origin(base, samples(base), "--feeds", "2", plans=["* first=1,short=3000,coding=identity"]) as o:
        w = Feedwheel(base, SOON)
        w.run("import", o.url_file)
        equal(w.run_once()["failed"], 2)
        for u in o.urls:
            w.run("set", "--due", u)
        stats = w.run_once()
        equal(stats["failed"], 0)
        equal(w.one("SELECT count(*) FROM entries"), w.one("SELECT count(DISTINCT feed_id || '/' || url) FROM entries"))
        holds(w.one("SELECT count(*) FROM entries") >= 14, "entries")


run()
