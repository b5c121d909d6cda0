#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Entries that go out as feeds: GET /feeds/, tokens in the path, `entries --format`; read by feedparser
and newsboat."""
import contextlib
import datetime
import email.utils
import json
import os
import re
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree as ET

from http_server import http_server
from harness import Feedwheel, Skip, case, each_engine, equal, holds, run, server, wait_for

A = "{http://www.w3.org/2005/Atom}"
AGAIN_S = 30 # a running server reads changed tokens within seconds
TYPES = {"atom": "application/atom+xml", "rss": "application/rss+xml", "json": "application/feed+json"}
ITEMS = [
    {"id": "https://a.example/1", "url": "https://a.example/1", "title": "CVE-1: a < b & c",
     "content_html": "<p>One <b>two</b><script>alert(1)</script> <a href='/x'>three</a></p>",
     "date_published": "2026-01-02T03:04:05Z", "date_modified": "2026-01-03T03:04:05Z",
     "authors": [{"name": "Ann & Bob"}], "tags": ["x", "y"],
     "attachments": [{"url": "https://a.example/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 123}]},
    {"id": "no IRI", "content_text": "plain <text>\u0001\ufffe", "summary": "the summary"},
    {"id": "tag:a.example,2026:3", "title": "", "url": "rel/3", "summary": "only this"}]


def document(items):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "Feed & Co", "items": items})


def fill(w):
    """Feed 1 in News, 2 in News/Tech, 3 in none, each with entries; what to wait for is indexed."""
    for n, folder in ((1, "News"), (2, "News/Tech"), (3, None)):
        w.run("add", "-q", "https://f%d.example/feed" % n)
        w.run("pause", "-q", str(n))
        if folder:
            w.run("set", "-q", str(n), "--folder", folder)
        items = ITEMS if n == 1 else [{"id": "https://f%d.example/1" % n, "title": "of %d, remote code" % n}]
        w.run("push", str(n), "-", stdin=document(items))
    w.run_once() # indexes
    wait_for("the index", lambda: "not indexed" not in w.run("entries", "--search", "x").stderr)


@contextlib.contextmanager
def filled(base, engine="sqlite", conf=""):
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(server(engine, base)).url() if engine not in ("sqlite", "memory") else None
        d = stack.enter_context(http_server(os.path.join(base, "w"), store=url, conf=conf))
        fill(d.feedwheel)
        yield d


def get(d, path, **headers):
    return d.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})


def titles(d, name):
    """The titles of a feed; those of all formats are the same."""
    got = {}
    for extension, of in TYPES.items():
        status, headers, text = get(d, "/feeds/%s.%s" % (name, extension))
        equal((status, headers["Content-Type"].split(";")[0]), (200, of), text)
        if extension == "json":
            got[extension] = [i.get("title", "") for i in text["items"]]
        else:
            CHECK[extension](text)
            root = ET.fromstring(text)
            of = [e.findtext(A + "title") for e in root.iter(A + "entry")] if extension == "atom" else [
                {"-": ""}.get(i.findtext("title", ""), i.findtext("title", "")) for i in root.iter("item")]
            got[extension] = of
    equal(got["atom"], got["json"], name)
    equal(got["rss"], got["json"], name)
    return sorted(got["json"])


# ---- what the specifications require ------------------------------------------------------------------------

def is_iri(s):
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`\x00-\x1f]+", s or ""))


def once(e, name, least=1):
    n = len(e.findall(name))
    holds(least <= n <= 1, "%d of %s in %s" % (n, name, e.tag))
    return e.findtext(name)


def check_date(text):
    holds(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text), text)
    datetime.datetime.fromisoformat(text[:19])


def check_atom_person(e):
    holds(once(e, A + "name"), "an empty name")
    for uri in e.findall(A + "uri"):
        holds(is_iri(uri.text), uri.text)


def check_atom(text):
    """RFC 4287, sections 4.1 and 4.2."""
    feed = ET.fromstring(text)
    equal(feed.tag, A + "feed")
    ids = []
    for e in [feed, *feed.iter(A + "entry"), *feed.iter(A + "source")]:
        holds(is_iri(once(e, A + "id")), e.findtext(A + "id"))
        holds(once(e, A + "title") is not None, "no title")
        check_date(once(e, A + "updated"))
        for author in e.findall(A + "author"):
            check_atom_person(author)
        for link in e.findall(A + "link"):
            holds(is_iri(link.get("href")), ET.tostring(link))
        for category in e.findall(A + "category"):
            holds(category.get("term"), "no term")
    holds(feed.find(A + "author") is not None, "the feed has no author")
    equal(len([l for l in feed.findall(A + "link") if l.get("rel") == "self"]) <= 1, True)
    for e in feed.iter(A + "entry"):
        ids.append(e.findtext(A + "id"))
        alternate = [l for l in e.findall(A + "link") if l.get("rel") == "alternate"]
        holds(len(alternate) <= 1, "alternate links")
        content = e.find(A + "content")
        holds(alternate or content is not None or e.find(A + "summary") is not None, "neither content nor link")
        if content is not None:
            holds(content.get("type") in ("text", "html") and not list(content), ET.tostring(content))
        once(e, A + "published", 0)
        equal({c.tag.replace(A, "") for c in e} - {"id", "title", "link", "published", "updated", "author", "category",
                                                   "source", "summary", "content"}, set())
    equal(len(set(ids)), len(ids), "equal ids")


def check_rss(text):
    """RSS 2.0 as the RSS Advisory Board has it."""
    rss = ET.fromstring(text)
    equal((rss.tag, rss.get("version")), ("rss", "2.0"))
    channel = rss.find("channel")
    for name in ("title", "link", "description"):
        holds(once(channel, name), "an empty " + name)
    guids = []
    for i in channel.findall("item"):
        holds(i.findtext("title") or i.findtext("description"), "neither title nor description")
        guid = i.find("guid")
        guids.append(once(i, "guid"))
        if guid.get("isPermaLink") == "true":
            equal(guid.text, i.findtext("link"))
        holds(email.utils.parsedate_to_datetime(once(i, "pubDate")), "a date")
        for e in i.findall("enclosure"):
            holds(e.get("length").isdigit() and is_iri(e.get("url")) and "/" in e.get("type"), ET.tostring(e))
        holds(len(i.findall("enclosure")) <= 1, "enclosures")
        for name in ("title", "link", "description", "source"):
            once(i, name, 0)
    equal(len(set(guids)), len(guids), "equal guids")


CHECK = {"atom": check_atom, "rss": check_rss}


# ---- HTTP -------------------------------------------------------------------------------------------------

@each_engine("folders, queries, orders and feeds are served in three formats, with 304", also=["sqlite"])
def served(base, engine):
    with filled(base, engine) as d:
        d.feedwheel.run("order", "add", "sec", "title:CVE OR \"remote code\"", "--tag", "z")
        one, two, three = ["", "", "CVE-1: a < b & c"], "of 2, remote code", "of 3, remote code"
        equal(titles(d, "News"), [*one, two])
        equal(titles(d, "folder/News"), [*one, two])
        equal(titles(d, "News/Tech"), [two])
        equal(titles(d, "News%2FTech"), [two])
        equal(titles(d, "all"), [*one, two, three])
        equal(titles(d, "feed/1"), one)
        equal(titles(d, "title:CVE%20OR%20%22remote%20code%22"), [one[2], two, three])
        equal(titles(d, "query/folder:News%20remote"), [two])
        equal(titles(d, "order/sec"), [one[2], two, three])
        equal(titles(d, "nothingofthiskind"), [])
        status, headers, text = get(d, "/feeds/News.atom?limit=1")
        equal((status, headers["Cache-Control"], headers["Last-Modified"]), (200, "private, no-cache", None))
        equal(text.count("<entry"), 1)
        etag = headers["ETag"]
        equal(get(d, "/feeds/News.atom?limit=1", If_None_Match=etag)[0], 304)
        equal(get(d, "/feeds/News.atom?limit=1", If_None_Match='"x", W/' + etag)[::2], (304, ""))
        equal(get(d, "/feeds/News.atom", If_None_Match=etag)[0], 200)
        equal(get(d, "/feeds/News.rss?limit=1", If_None_Match=etag)[0], 200)
        status, headers, text = d.request("HEAD", "/feeds/News.atom?limit=1")
        equal((status, headers["ETag"], text), (200, etag, ""))
        etag = get(d, "/feeds/News.atom")[1]["ETag"]
        d.feedwheel.run("push", "3", "-", stdin=document([{"id": "z", "title": "elsewhere"}]))
        equal(get(d, "/feeds/News.atom", If_None_Match=etag)[0], 304, "an entry elsewhere")
        d.feedwheel.run("push", "2", "-", stdin=document([{"id": "https://f2.example/1", "title": "changed"}]))
        status, headers, text = get(d, "/feeds/News.atom", If_None_Match=etag)
        equal((status, ">changed<" in text, headers["ETag"] != etag), (200, True, True), "a changed entry")


@case("an entry goes out with all its members, safe and absolute", needs="server")
def members(base):
    with filled(base) as d:
        feed = ET.fromstring(get(d, "/feeds/feed/1.atom")[2])
        of = {e.findtext(A + "id"): e for e in feed.iter(A + "entry")}
        e = of["https://a.example/1"]
        equal([e.findtext(A + n) for n in ("title", "published", "updated")],
              ["CVE-1: a < b & c", "2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"])
        equal(e.findtext(A + "content"), '<p>One <b>two</b> <a href="https://a.example/x" rel="noopener noreferrer">'
                                         "three</a></p>")
        equal([(l.get("rel"), l.get("href"), l.get("length")) for l in e.findall(A + "link")],
              [("alternate", "https://a.example/1", None), ("enclosure", "https://a.example/a.mp3", "123")])
        equal(e.findtext("%sauthor/%sname" % (A, A)), "Ann & Bob")
        equal([c.get("term") for c in e.findall(A + "category")], ["x", "y"])
        equal([e.findtext("%ssource/%s%s" % (A, A, n)) for n in ("id", "title")],
              ["https://f1.example/feed", "Feed & Co"])
        e = of["tag:a.example,2026:3"]
        equal(e.find(A + "link").get("href"), "https://f1.example/rel/3")
        other = next(i for i in of if i.startswith("urn:uuid:"))
        equal(of[other].findtext(A + "content"), "plain <text>")
        equal(feed.findtext(A + "title"), "Feed & Co")
        equal([i["id"] for i in get(d, "/feeds/feed/1.json")[2]["items"]], list(of), "ids")
        self_url = [l.get("href") for l in feed.findall(A + "link") if l.get("rel") == "self"]
        equal(self_url, ["http://127.0.0.1:%d/feeds/feed/1.atom" % d.port])
        of_news = {ET.fromstring(get(d, path)[2]).findtext(A + "id") for path in (
            "/feeds/News.atom", "/feeds/folder/News.atom?limit=1", "/feeds//News/.atom")}
        equal(of_news, {"http://127.0.0.1:%d/feeds/folder/News.atom" % d.port}, "ids of one feed")
        # the same entries, by the command
        def entries(text):
            return [ET.tostring(e) for e in ET.fromstring(text).iter(A + "entry")]
        printed = d.feedwheel.run("entries", "--feed", "1", "--format", "atom").stdout
        check_atom(printed)
        equal(entries(printed), entries(get(d, "/feeds/feed/1.atom")[2]))
        check_rss(d.feedwheel.run("entries", "--folder", "News", "--format", "rss").stdout)
        equal(json.loads(d.feedwheel.run("entries", "--search", "CVE", "--format", "json-feed").stdout)["items"],
              [get(d, "/feeds/feed/1.json")[2]["items"][list(of).index("https://a.example/1")]])


@case("Last-Modified is sent when it is safe, and If-Modified-Since respects it", needs="server")
def modified(base):
    with filled(base) as d:
        equal(get(d, "/feeds/News.atom")[1]["Last-Modified"], None, "of entries that are new")
        d.feedwheel.sql("UPDATE entries SET changed_ms = changed_ms - 100000, seen_ms = seen_ms - 100000",
                        write=True)
        at = get(d, "/feeds/News.atom")[1]["Last-Modified"]
        equal(get(d, "/feeds/News.atom", If_Modified_Since=at)[0], 304)
        before = email.utils.format_datetime(
            email.utils.parsedate_to_datetime(at) - datetime.timedelta(seconds=1), usegmt=True)
        equal(get(d, "/feeds/News.atom", If_Modified_Since=before)[0], 200)
        equal(get(d, "/feeds/News.atom", If_Modified_Since="yesterday")[0], 200)
        equal(get(d, "/feeds/News.atom", If_Modified_Since=at, If_None_Match='"x"')[0], 200, "If-None-Match goes first")


@case("what is wrong with a name is said, with the place in a query", needs="server")
def wrong(base):
    with filled(base) as d:
        for path, status, words in (
            ("folder/Nws.atom", 404, "no feed is in the folder 'Nws'"),
            ("order/none.rss", 404, "no order 'none'"),
            ("feed/99.json", 404, "no feed has the number 99"),
            ("feed/x.json", 400, "a feed is named by its number"),
            ("News.xml", 404, "ends with .atom, .rss or .json"),
            ("News", 404, "ends with .atom, .rss or .json"),
            (".atom", 400, "the name of the feed is empty"),
            ("%20.atom", 400, "the name of the feed is empty"),
            ("folder/.atom", 400, "the name of the feed is empty"),
            ("title:(x.atom", 400, "at 7"),
            ("query/nofield:x.atom", 400, "at 1"),
            ("News.atom?limit=0", 400, "a number from 1 to 1000"),
            ("News.atom?limit=1001", 400, "a number from 1 to 1000"),
            ("/.atom", 400, "has no letter or digit"),
            ("News.atom?q=x", 400, "unknown parameter: q")):
            got, headers, response = get(d, "/feeds/" + path)
            equal((got, headers["Content-Type"]), (status, "application/problem+json"), path)
            holds(words in response["detail"], response["detail"])
        equal(d.request("POST", "/feeds/News.atom", "")[0], 405)
        for words, *arguments in (
            ("must be atom, rss or json-feed", "--format", "xml"),
            ("excludes", "--format", "atom", "--json"),
            ('there is no field "nofield"', "--format", "atom", "--search", "nofield:x")):
            holds(words in d.feedwheel.run("entries", *arguments, code=2).stderr, words)
        holds("no feed is in the folder" in
              d.feedwheel.run("entries", "--format", "rss", "--folder", "Nws", code=1).stderr, "an unknown folder")
        d.feedwheel.run("entries", "--format", "rss", "--id", "99", code=1)


# ---- tokens -----------------------------------------------------------------------------------------------

def token_url(d, name, scope, *arguments):
    """The path of the URL that `token add` prints."""
    url = d.feedwheel.run("token", "add", name, "--scope", scope, *arguments).stdout.strip()
    holds(url.startswith("http://127.0.0.1:%d/t/fwt_" % d.port), url)
    return url.partition("127.0.0.1:%d" % d.port)[2]


def becomes(what, status, ask):
    wait_for("%s is answered %d" % (what, status), lambda: ask()[0] == status, AGAIN_S)


@case("a token in the path reads its feed and nothing else; no log has it", needs="server")
def tokens(base):
    log = os.path.join(base, "access")
    with filled(base, conf="access_log = %s\nauth_failures_max = 0\n" % log) as d:
        path = token_url(d, "phone", "feed:News")
        token = path.split("/")[2]
        equal(path, "/t/%s/feeds/News.atom" % token)
        becomes("the URL", 200, lambda: get(d, path))
        self_url = [l.get("href") for l in ET.fromstring(get(d, path)[2]).findall(A + "link")]
        equal(self_url, ["http://127.0.0.1:%d%s" % (d.port, path)])
        of = "/t/%s/feeds/" % token
        bearer = {"Authorization": "Bearer " + token}
        for name, status in (("News.rss", 200), ("News.json", 200), ("folder/News.atom?limit=1", 200),
                             ("News/Tech.atom", 403), ("all.atom", 403), ("query/News.atom", 403), ("News.xml", 404)):
            equal(get(d, of + name)[0], status, name)
            equal(get(d, "/feeds/" + name, **bearer)[0], status, name)
        holds("another feed" in get(d, of + "all.atom")[2]["detail"], "the reason")
        for other in ("/v1/entries", "/v1/feeds", "/metrics", "/v1/stream"):
            equal(get(d, other, **bearer)[0], 403, other)
        equal(d.request("POST", "/v1/events", "[]", {**bearer, "Content-Type": "application/json"})[0], 403)
        equal(get(d, "/feeds/News.atom")[0], 401, "without a token")
        swapped = path.replace(token, token[:-1] + ("A" if token[-1] != "A" else "B"))
        equal(get(d, swapped)[0], 401, "a wrong token")
        read = d.feedwheel.run("token", "add", "all", "--scope", "read").stdout.strip()
        becomes("a token for reading", 200, lambda: get(d, "/feeds/News.atom", Authorization="Bearer " + read))
        status, _, response = get(d, "/t/%s/feeds/News.atom" % read)
        equal(status, 403, "a token for reading everything does not belong into a URL")
        holds("lacks the scope feed" in response["detail"], response)
        # a query has any characters; a folder stays one
        query = token_url(d, "q", "feed:title:\"CVE 1\" OR remote, 50%?#")
        becomes("the query", 200, lambda: get(d, query))
        d.feedwheel.run("set", "1", "--folder", "Other")
        d.feedwheel.run("set", "2", "--folder", "Other")
        equal((get(d, path)[0], get(d, path)[2]["detail"]),
              (404, "no feed is in the folder 'News' (to list folders: feedwheel folders)"))
        d.feedwheel.run("token", "remove", "phone")
        becomes("a removed token", 401, lambda: get(d, path))
        get(d, "/t/" + token)
        get(d, "//t/%s/feeds/x" % token)
        get(d, "/t/secretword/feeds/News.atom")
        shown = d.feedwheel.run("token", "list").stdout
        holds('query/title:"CVE 1" OR remote, 50%?#' in shown, shown)
        equal(d.feedwheel.json("token", "list")[1]["feed"], 'query/title:"CVE 1" OR remote, 50%?#')
        d.stop()
        with open(log, encoding="utf-8") as f:
            lines = f.read()
        holds("/t/***/feeds/News.atom" in lines, lines)
        for secret in (token, query.split("/")[2], "secretword", read):
            holds(secret not in lines, "in the access log")
            holds(secret not in d.feedwheel.log(), "in the log")


@case("wrong tokens in paths are limited as others; without any token none works", needs="server")
def limited(base):
    with filled(base, conf="auth_failures_max = 3\n") as d:
        equal(get(d, "/feeds/News.atom")[0], 200, "from this machine")
        equal(get(d, "/t/fwt_x/feeds/News.atom")[0], 401, "no token exists")
        path = token_url(d, "phone", "feed:News")
        becomes("the URL", 200, lambda: get(d, path))
        statuses = [get(d, "/t/fwt_%d/feeds/News.atom" % i)[0] for i in range(5)]
        equal(statuses[-1], 429, statuses)
        equal(get(d, path)[0], 200, "a token that was used here before")


@case("the scope feed needs a name, and is alone", needs="server")
def scopes(base):
    w = Feedwheel(base)
    fill(w)
    for code, words, scope, *more in (
        (2, "needs the name of the feed", "feed"),
        (2, "the name of the feed is empty", "feed:"),
        (2, "is alone", "feed,read"),
        (1, "no feed is in the folder 'x'", "feed:folder/x"),
        (1, "no order 'x'", "feed:order/x"),
        (1, "no feed has the number 9", "feed:feed/9"),
        (2, "a field takes a word", "feed:title:(x"),
        (2, "is alone", "feed:News", "--feed", "https://f1.example/feed"),
        (2, "unknown scope", "feeds:News")):
        r = w.run("token", "add", "t", "--scope", scope, *more, code=code)
        holds(words in r.stderr and not r.stdout, r.stderr)
    equal(w.json("token", "list"), [])
    t = w.json("token", "add", "t", "--scope", "feed:News/Tech", "--days", "2")
    equal((t["scopes"], t["feed"], t["url"]), (["feed"], "folder/News/Tech", "/t/%s/feeds/News/Tech.atom" % t["token"]))
    holds("the token is for the query" in w.run("token", "add", "u", "--scope", "feed:Nws").stderr, "a note")


@case("with websub_url and feeds_hub_url a feed names its public URL and its hub", needs="server")
def public(base):
    conf = "websub_url = https://out.example/below\nfeeds_hub_url = https://hub.example/?a&b\n"
    with filled(base, conf=conf) as d:
        url = d.feedwheel.run("token", "add", "phone", "--scope", "feed:News").stdout.strip()
        token = url.split("/")[-3]
        equal(url, "https://out.example/below/t/%s/feeds/News.atom" % token)
        path = "/t/%s/feeds/News" % token
        becomes("the URL", 200, lambda: get(d, path + ".atom"))
        for extension in ("atom", "rss"):
            text = get(d, "%s.%s" % (path, extension))[2]
            CHECK[extension](text)
            root = ET.fromstring(text)
            links = {l.get("rel"): l.get("href") for l in root.iter(A + "link") if l.get("rel") in ("self", "hub")}
            if extension == "atom": # a source has a link to itself too
                links["self"] = next(l.get("href") for l in root.findall(A + "link") if l.get("rel") == "self")
            equal(links, {"self": url.replace(".atom", "." + extension), "hub": "https://hub.example/?a&b"})
        feed = get(d, path + ".json")[2]
        equal((feed["feed_url"], feed["hubs"]),
              (url.replace(".atom", ".json"), [{"type": "WebSub", "url": "https://hub.example/?a&b"}]))
    w = Feedwheel(base, "feeds_hub_url = hub\n")
    holds("feeds_hub_url" in w.run("serve", "--listen", "127.0.0.1:0", code=None).stderr, "an invalid URL")


# ---- other programs -------------------------------------------------------------------------------------------

FEEDPARSER = """
import feedparser, json, sys
d = feedparser.parse(sys.stdin.buffer.read())
print(json.dumps([d.bozo, d.version, repr(d.get("bozo_exception")), d.feed.title, [
    [e.id, e.get("title", ""), e.get("link", ""), [x.value for x in e.get("content", [])], e.get("author", ""),
     [t.term for t in e.get("tags", [])], [x.href for x in e.get("enclosures", [])], e.get("published", "")]
    for e in d.entries]]))
"""


@case("feedparser finds nothing wrong with it", needs="server")
def feedparser(base):
    python = next((p for p in ("python3", "/usr/bin/python3") if not subprocess.run(
        [p, "-c", "import feedparser"], capture_output=True, check=False).returncode), None)
    if not python:
        raise Skip("python3-feedparser is not installed")
    with filled(base) as d:
        for extension, version in (("atom", "atom10"), ("rss", "rss20")):
            r = subprocess.run([python, "-c", FEEDPARSER], input=get(d, "/feeds/feed/1." + extension)[2].encode(),
                               capture_output=True, check=True)
            bozo, found, why, title, entries = json.loads(r.stdout)
            equal((bozo, found, title), (False, version, "Feed & Co"), why)
            equal(len(entries), 3)
            e = next(e for e in entries if e[0] == "https://a.example/1")
            equal(e[2], "https://a.example/1")
            holds(len(e[3]) == 1 and "<b>two</b>" in e[3][0], e)
            equal(e[4:7], ["Ann & Bob", ["x", "y"], ["https://a.example/a.mp3"]])


def newsboat(base, url):
    """The items that newsboat stores for a URL."""
    os.makedirs(base)
    files = {n: os.path.join(base, n) for n in ("urls", "config", "cache.db")}
    with open(files["urls"], "w", encoding="utf-8") as f:
        f.write(url + "\n")
    with open(files["config"], "w", encoding="ascii") as f:
        f.write("error-log %s\nreload-threads 1\n" % os.path.join(base, "errors"))
    command = ["newsboat", "-C", files["config"], "-u", files["urls"], "-c", files["cache.db"], "-x", "reload"]
    for _ in range(3): # it keeps the ETag from the second time on
        r = subprocess.run(command, env={"HOME": base, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        equal(r.returncode, 0, r.stdout + r.stderr)
    with contextlib.closing(sqlite3.connect(files["cache.db"])) as db:
        equal(db.execute("SELECT title FROM rss_feed").fetchall(), [("News",)])
        return {row[0]: row[1:] for row in db.execute(
            "SELECT guid, title, author, url, content, enclosure_url, pubDate FROM rss_item")}


@case("newsboat reads it with the token in the path, and gets a 304 when nothing is new", needs="server")
def in_newsboat(base):
    if not shutil.which("newsboat"):
        raise Skip("newsboat is not installed")
    log = os.path.join(base, "access")
    with filled(base, conf="access_log = %s\n" % log) as d:
        path = token_url(d, "phone", "feed:News")
        becomes("the URL", 200, lambda: get(d, path))
        for extension in ("atom", "rss"):
            url = "http://127.0.0.1:%d%s" % (d.port, path.replace(".atom", "." + extension))
            items = newsboat(os.path.join(base, extension), url)
            equal(len(items), 4)
            title, author, link, content, enclosure, at = items["https://a.example/1"]
            equal((title, author, link, enclosure, at), (
                "CVE-1: a < b & c", "Ann & Bob", "https://a.example/1", "https://a.example/a.mp3", 1767323045))
            holds("<b>two</b>" in content and "script" not in content, content)
            holds(items["https://f2.example/1"][0] == "of 2, remote code", items)
        d.stop()
        with open(log, encoding="utf-8") as f:
            lines = [l for l in f if "newsboat" in l.lower()] # newer ones say Newsboat
        for extension in (".atom", ".rss"): # in any order: each server thread has its own ring of lines
            equal(sorted(re.search(r'" (\d+) ', l)[1] for l in lines if extension in l), ["200", "200", "304"], lines)


if __name__ == "__main__":
    run()
