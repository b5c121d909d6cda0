#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Every way a server can fail has its own name and words, costs bounded time and memory, and harms no other feed."""

from harness import SILENT, SOON, Feedwheel, case, equal, holds, origin, run, samples, sanitized

# plan, kind(s), a part of the words
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
    """One run over a feed per plan and as many healthy ones; the feeds by plan, the log, the feedwheel."""
    n = len(plans)
    rules = ["%d %s" % p for p in enumerate(plans)]
    with origin(base, samples(base), "--feeds", str(2 * n), plans=rules) as o:
        w = Feedwheel(base, conf)
        w.run("import", o.url_file)
        stats = w.run_once()
        feeds = {f["url"]: f for f in w.json("list")}
        return [feeds[u] for u in o.urls[:n]], [feeds[u] for u in o.urls[n:]], stats, o.requests(), w


# NET-04..06, NET-09, NET-10, LIM-*, POL-03, POL-10
@case("every fault has its kind and words; healthy feeds do not notice")
def faults(base):
    bad, good, stats, log, w = collected(base, [f[0] for f in FAULTS], SILENT + "max_body_bytes = 4MiB\n")
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
    holds(max(v for (v,) in w.sql("SELECT max(body_bytes) FROM visits"))
          <= (4 << 20) + (1 << 20), "decoded bytes are bounded")


@case("Retry-After and errors put a feed off; the reason is told") # POL-07, POL-08, POL-10
def deferred(base):
    plans = ["429,retry-after=7200", "503,retry-after=3h", "404", "410"]
    bad, _, _, _, w = collected(base, plans)
    now = w.one("SELECT max(at_ms) FROM visits") / 1000
    due = {
        f["url"]: w.one("SELECT due_at_ms FROM schedule JOIN feeds USING (position) WHERE url = ?", f["url"]) / 1000 -
        now for f in bad}
    holds(7100 <= due[bad[0]["url"]] <= 8000, "429 with Retry-After 7200: due in %d s" % due[bad[0]["url"]])
    holds(due[bad[2]["url"]] >= 900, "404 is put off")
    holds("retry-after" in w.run("why", bad[0]["url"]).stdout.lower(), "why names Retry-After")
    equal([f["url"] for f in w.json("list", "--status", "gone")], [bad[3]["url"]], "gone feeds listed")


# a new one is taken for what it names: test_cli.py
@case("a feed that turns into a page stays what it was, and says what the page names")
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


@case("a feed that breaks off keeps what was read and comes whole the next time")
def broken_off(base):
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
