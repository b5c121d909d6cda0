#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Miniflux' API: each route on each store, newsboat and liferea as they are, and what no client does:
other accounts, other sites, wrong passwords."""
import base64
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import socket
import threading
import time
import urllib.parse

from http_server import http_server
from growing import CONF
from harness import ROOT, Skip, case, each_engine, equal, holds, run, server, store_of, wait_for
from readers import (ALL, PASSWORD, READ, SUITE_MODULE, Terminal, newsboat_files, newsboat_marks_feed, newsboat_unread,
                     raw, user_add)
from readers import client as greader_client

V1 = "/miniflux/v1/"
OPEN = "auth_failures_max = 0\nserve_discovery = yes\n"
NEVER = "0001-01-01T00:00:00Z"
MANY = 10000
EXACT = 2 ** 53
ROUTES = 44


class Client:
    """Of one account, with its password or, if it has one, its token."""

    def __init__(self, d, name="alice", password=PASSWORD, token=None):
        self.d, self.name, self.token = d, name, token
        self.basic = {"Authorization": "Basic " + base64.b64encode((name + ":" + password).encode()).decode()}

    def headers(self):
        return {"X-Auth-Token": self.token} if self.token else self.basic

    def call(self, method, path, body=None, headers=None, want=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        status, got, text = raw(self.d, method, V1 + path, {**self.headers(), **(headers or {})}, body)
        holds(want is None or status == want, "%s %s: %d, not %s: %s" % (method, path, status, want, text[:300]))
        if status >= 400:
            equal(list(json.loads(text)), ["error_message"])
        if status == 204:
            equal(text, "")
        return status, got, json.loads(text) if text and text[0] in "[{" else text

    def get(self, path, want=200):
        return self.call("GET", path, want=want)[2]

    def put(self, path, body=None, want=204):
        return self.call("PUT", path, body, want=want)[2]

    def post(self, path, body=None, want=201):
        return self.call("POST", path, body, want=want)[2]

    def delete(self, path, want=204):
        return self.call("DELETE", path, want=want)[2]

    def entries(self, query="", at="entries"):
        got = self.get("%s?%s" % (at, query))
        equal(sorted(got), ["entries", "total"])
        return got

    def ids(self, query="limit=0&order=id", at="entries"):
        return [e["id"] for e in self.entries(query, at)["entries"]]

    def feed(self, title):
        return next(f for f in self.get("feeds") if f["title"] == title)

    def mark(self, ids, status):
        self.put("entries", {"entry_ids": ids, "status": status})

    def category(self, title):
        return next((c for c in self.get("categories?counts=true") if c["title"] == title), None)


@contextlib.contextmanager
def serving(base, engine="sqlite", conf=""):
    with store_of(engine, base) as s, http_server(base, store=s, conf=CONF + (conf or OPEN)) as d:
        user_add(d, "alice")
        yield d


@contextlib.contextmanager
def with_feeds(d, c):
    """30 entries of news, 5 of blog, from a site of the suite's; its URL."""
    site = SUITE_MODULE.serve_site("127.0.0.1")
    c.post("feeds", {"feed_url": site + "/news.xml"})
    c.post("feeds", {"feed_url": site + "/blog.xml"})
    equal(c.entries()["total"], 35)
    yield site


def numbers(x):
    """All numbers in JSON."""
    if isinstance(x, (dict, list)):
        for y in x.values() if isinstance(x, dict) else x:
            yield from numbers(y)
    elif not isinstance(x, (bool, str, type(None))):
        yield x


def routes():
    """Method and path of each route, from the server's table."""
    with open(os.path.join(ROOT, "src", "http", "routes.c"), encoding="utf-8") as f:
        rows = re.findall(r'{MINIFLUX_(GET|PUT|POST|DELETE)\("([^"]+)"', f.read())
    equal(len(rows), ROUTES)
    return [(method, path.replace("{id}", "1").replace("{stream}", "alice")) for method, path in rows]


# ---- each route ------------------------------------------------------------------------------------------

@each_engine("the account, feeds, categories", also=["sqlite"], leave_out=["redis"])
def feeds(base, engine):
    with serving(base, engine) as d:
        c = Client(d)
        me = c.get("me")
        equal((me["username"], me["is_admin"], me["timezone"]), ("alice", False, "UTC"))
        equal(c.get("users/%d" % me["id"])["username"], "alice")
        equal(c.get("users/alice")["id"], me["id"])
        version = c.get("version")
        equal(version["version"], raw(d, "GET", "/miniflux/version", {})[2])
        holds(version["version"] >= "2.3.2" and all(isinstance(v, str) and v for v in version.values()), version)
        equal(raw(d, "GET", "/miniflux/healthcheck", {})[::2], (200, "OK"))
        equal(c.get("integrations/status"), {"has_integrations": False})
        equal(c.get("users/integrations/status"), {"has_integrations": False})
        equal(c.get("feeds"), [])
        equal([(x["id"], x["title"], x["user_id"]) for x in c.get("categories")], [(1, "All", me["id"])])
        with with_feeds(d, c) as site:
            news = c.feed("Suite news")
            equal((news["feed_url"], news["site_url"], news["category"]["title"], news["icon"]),
                  (site + "/news.xml", site + "/news/", "All", None))
            holds(news["checked_at"] > "2026" and news["next_check_at"] > news["checked_at"], news)
            equal((news["disabled"], news["parsing_error_message"], news["parsing_error_count"]), (False, "", 0))
            equal(c.get("feeds/%d" % news["id"]), news)
            for path in ("feeds/%d/icon" % news["id"], "icons/1", "feeds/4711", "feeds/4711/icon"):
                c.get(path, want=404)
            # categories
            tech = c.post("categories", {"title": " News/Tech "})
            equal((tech["title"], tech["user_id"]), ("News/Tech", me["id"]))
            equal([(x["title"], x["feed_count"], x["total_unread"]) for x in c.get("categories?counts=true")],
                  [("All", 2, 35), ("News/Tech", 0, 0)])
            holds("feed_count" not in c.get("categories")[0], "counts")
            equal(c.get("categories?counts=True"), c.get("categories?counts=true"))
            got = c.put("feeds/%d" % news["id"], {"category_id": tech["id"], "title": "My \u00e4 <news>"}, want=201)
            equal((got["title"], got["category"]["id"]), ("My \u00e4 <news>", tech["id"]))
            above = c.post("categories", {"title": "News"})
            blog = c.feed("Suite blog")
            c.put("feeds/%d" % blog["id"], {"category_id": above["id"]}, want=201)
            equal([(x["title"], x["feed_count"], x["total_unread"]) for x in c.get("categories?counts=true")],
                  [("All", 0, 0), ("News", 1, 5), ("News/Tech", 1, 30)])
            equal([f["id"] for f in c.get("categories/%d/feeds" % above["id"])], [blog["id"]])
            # a category is its folder alone
            equal(c.entries(at="categories/%d/entries" % above["id"])["total"], 5)
            equal(c.entries("category_id=%d" % tech["id"])["total"], 30)
            c.put("categories/%d/mark-all-as-read" % above["id"])
            equal([(x["title"], x["total_unread"]) for x in c.get("categories?counts=true")],
                  [("All", 0), ("News", 0), ("News/Tech", 30)])
            # a rename keeps the number, and leaves those below alone
            equal(c.put("categories/%d" % above["id"], {"title": "Neues"}, want=201)["title"], "Neues")
            equal([(x["id"], x["title"], x["feed_count"]) for x in c.get("categories?counts=true")],
                  [(1, "All", 0), (above["id"], "Neues", 1), (tech["id"], "News/Tech", 1)])
            equal(c.put("categories/%d" % above["id"], {"title": "Neues"}, want=201)["id"], above["id"])
            equal(c.put("categories/%d" % above["id"], {"hide_globally": True}, want=201)["title"], "Neues")
            for body, words in (({"title": "News/Tech/"}, "exists"), ({"title": "All"}, "exists"),
                                ({"title": "/"}, "empty"), ({"title": ""}, "empty"), ({"title": 1}, "text"),
                                ({"title": "x" * 201}, "text"), ({"title": "a\u0001"}, "text"), ([], "object")):
                for method, path in (("PUT", "categories/%d" % above["id"]), ("POST", "categories")):
                    holds(words in c.call(method, path, body, want=400)[2]["error_message"], (method, body))
            c.post("categories", {}, want=400)
            c.post("categories", "{", want=400)
            c.put("categories/1", {"title": "x"}, want=400)
            c.put("categories/4711", {"title": "x"}, want=404)
            c.delete("categories/1", want=400)
            # the Google Reader API renames it with its number too
            g = greader_client(d)
            g.post("rename-tag", "s=user/-/label/News%2FTech&dest=user/-/label/Technik").ok()
            equal(c.category("Technik")["id"], tech["id"])
            # a label of entries is none, until it is a folder
            g.edit(g.ids(ALL)[:2], "a=user/-/label/later").ok()
            equal(c.category("later"), None)
            later = c.post("categories", {"title": "later"})
            equal(c.category("later"), None)
            c.put("feeds/%d" % blog["id"], {"category_id": later["id"]}, want=201)
            equal(c.category("later")["feed_count"], 1)
            c.delete("categories/%d" % later["id"])
            equal((c.category("later"), len(g.ids("user/-/label/later"))), (None, 2))
            equal(c.feed("Suite blog")["category"]["id"], 1)
            # removing keeps the feeds
            c.delete("categories/%d" % tech["id"])
            c.delete("categories/%d" % tech["id"], want=404)
            equal([(x["title"], x["feed_count"]) for x in c.get("categories?counts=true")], [("All", 2), ("Neues", 0)])
            # an order by categories is one list behind the other
            other = c.post("categories", {"title": "Aa"})
            c.put("feeds/%d" % blog["id"], {"category_id": above["id"]}, want=201)
            c.put("feeds/%d" % news["id"], {"category_id": other["id"]}, want=201)
            mine, its = c.ids("order=id&limit=0&feed_id=%d" % news["id"]), c.ids("order=id&feed_id=%d" % blog["id"])
            equal(c.ids("order=category_title&limit=0"), mine + its)
            equal(c.ids("order=category_title&limit=0&direction=desc"), (mine + its)[::-1])
            equal(c.ids("order=category_id&limit=0"), its + mine)
            for offset in (0, 3, 5, 7, 40):
                got = c.entries("order=category_id&limit=4&offset=%d" % offset)
                equal(([e["id"] for e in got["entries"]], got["total"]), ((its + mine)[offset:offset + 4], 35))
            equal(c.ids("order=category_id&category_id=%d" % other["id"]), mine)
            # feeds
            for body in ({"title": ""}, {"title": 7}, {"category_id": 4711}, {"category_id": "1"},
                         {"feed_url": site + "/other.xml"}):
                c.put("feeds/%d" % news["id"], body, want=400)
            equal(c.put("feeds/%d" % news["id"], {"feed_url": news["feed_url"], "crawler": True}, want=201)["title"],
                  "My \u00e4 <news>")
            c.put("feeds/4711", {"title": "x"}, want=404)
            for x in numbers([c.get("feeds"), c.get("categories?counts=true"), c.entries("limit=0"), c.get("me")]):
                holds(isinstance(x, int) and 0 <= x < EXACT, x)
            c.delete("feeds/%d" % blog["id"])
            c.delete("feeds/%d" % blog["id"], want=404)
            equal([f["id"] for f in c.get("feeds")], [news["id"]])


@each_engine("entries: members, filters, orders, pages, states", also=["sqlite"], leave_out=["redis"])
def entries(base, engine):
    with serving(base, engine) as d:
        c = Client(d)
        with with_feeds(d, c) as site:
            news, blog = c.feed("Suite news"), c.feed("Suite blog")
            e = c.entries("feed_id=%d&order=id" % blog["id"])["entries"][0]
            equal((e["title"], e["author"], e["status"], e["starred"]),
                  ("blog 1 \u2013 a & b <c>", "Ann & Bob", "unread", False))
            equal((e["url"], e["published_at"], e["tags"]), (site + "/blog/1", "2026-01-02T10:00:00Z", []))
            equal(e["content"], "<p>text 1 <b>bold</b></p>")
            equal((e["feed"]["title"], e["feed"]["category"]["title"], e["reading_time"]), ("Suite blog", "All", 1))
            equal([(x["url"], x["mime_type"], x["size"], x["entry_id"]) for x in e["enclosures"]],
                  [(site + "/audio.mp3", "audio/mpeg", 1234, e["id"])])
            equal(c.get("entries/%d" % e["id"]), e)
            equal(c.get("feeds/%d/entries/%d" % (blog["id"], e["id"])), e)
            equal(c.get("categories/1/entries/%d" % e["id"]), e)
            equal(c.get("entries/%d/fetch-content" % e["id"]), {"content": e["content"], "reading_time": 1})
            for path in ("entries/4711", "feeds/%d/entries/%d" % (news["id"], e["id"]), "entries/4711/fetch-content",
                         "categories/4711/entries/%d" % e["id"], "feeds/4711/entries/%d" % e["id"],
                         "feeds/4711/entries", "categories/4711/entries", "categories/4711/feeds"):
                c.get(path, want=404)
            # pages and orders
            every = c.ids()
            equal((len(every), every), (35, sorted(every)))
            equal(c.ids("order=id&direction=desc&limit=0"), every[::-1])
            equal(c.ids("order=created_at&limit=0"), every)
            for limit in (1, 7, 35, 100):
                for offset in (0, 5, 34, 35, 99):
                    got = c.entries("order=id&limit=%d&offset=%d" % (limit, offset))
                    equal(([x["id"] for x in got["entries"]], got["total"]), (every[offset:offset + limit], 35))
            dated = c.entries("limit=0")["entries"]
            when = [x["published_at"] for x in dated]
            equal(when, sorted(when))
            equal([x["id"] for x in c.entries("direction=desc&limit=0")["entries"]], [x["id"] for x in dated][::-1])
            # the other orders: by what the members say
            for order, key in (("changed_at", lambda x: (x["changed_at"], x["id"])),
                               ("title", lambda x: (x["title"].lower(), x["id"])),
                               ("author", lambda x: (x["author"].lower(), x["id"]))):
                want = [x["id"] for x in sorted(dated, key=key)]
                equal(c.ids("limit=0&order=" + order), want, order)
                equal(c.ids("limit=4&offset=5&direction=desc&order=" + order), want[::-1][5:9], order)
                equal(c.entries("limit=4&status=unread&published_after=1&order=" + order)["total"], 35)
            # numbers alone
            equal(c.get("entries/ids"), {"entry_ids": every[::-1], "total": 35})
            equal(c.get("entries/ids?limit=3&offset=2&status=unread"), {"entry_ids": every[::-1][2:5], "total": 35})
            equal(c.get("entries/ids?starred=true&limit=99999"), {"entry_ids": [], "total": 0})
            c.get("entries/ids?status=new", want=400)
            # whatever is typed is a search
            for text in ('"news 7', "re: news 7", "news:7", "(news 7", "news 7 -"):
                found = {x["title"] for x in c.entries("limit=0&search=" + urllib.parse.quote(text))["entries"]}
                holds(any(x.startswith("news 7 ") for x in found) or text.startswith("re:"), (text, found))
            for text in ("'", "-", "AND", "(", "http://a.example/x?y=z", "x" * 9000, "\u0001", "%FF"):
                equal(c.entries("search=" + (text if text[0] == "%" else urllib.parse.quote(text)))["total"], 0, text)
            # filters
            cut = 1768471200 # 2026-01-15T10:00:00Z
            for query, want in (
                ("published_after=%d" % cut, [x for x in dated if x["published_at"] > "2026-01-15T10:00:00Z"]),
                ("after=%d" % cut, [x for x in dated if x["published_at"] > "2026-01-15T10:00:00Z"]),
                ("published_before=%d" % cut, [x for x in dated if x["published_at"] < "2026-01-15T10:00:00Z"]),
                ("before=%d" % cut, [x for x in dated if x["published_at"] < "2026-01-15T10:00:00Z"]),
                ("after_entry_id=%d" % every[9], [x for x in dated if x["id"] > every[9]]),
                ("before_entry_id=%d" % every[9], [x for x in dated if x["id"] < every[9]]),
                ("changed_after=1", dated),
                ("changed_after=%d" % (time.time() + 3600), []),
                ("changed_before=%d" % (time.time() + 3600), dated),
                ("changed_before=1", []),
                ("globally_visible=true&tags=&search=", dated),
                ("search=%22news+7%22", [x for x in dated if x["title"].startswith("news 7 ")]),
                ("status=removed", []),
                ("status=unread&status=read", dated),
                ("feed_id=%d" % blog["id"], [x for x in dated if x["feed_id"] == blog["id"]]),
                ("category_id=1", dated)):
                got = c.entries(query + "&limit=0")
                equal(([x["id"] for x in got["entries"]], got["total"]), ([x["id"] for x in want], len(want)), query)
            equal(c.ids("limit=0&order=id", "feeds/%d/entries" % blog["id"]),
                  [x for x in every if x in c.ids("feed_id=%d" % blog["id"])])
            # states
            c.mark(every[:10], "read")
            equal(c.entries("status=unread")["total"], 25)
            equal(c.ids("status=read&order=id"), every[:10])
            equal(c.ids("order=status&limit=0"), every[10:] + every[:10])
            equal(c.ids("order=status&limit=0&direction=desc"), (every[10:] + every[:10])[::-1])
            equal(c.ids("order=status&status=read&limit=3"), every[:3])
            equal(c.entries("order=status&limit=3&offset=24")["total"], 35)
            equal(c.ids("order=status&limit=3&offset=24"), [every[34], *every[:2]])
            c.mark(every[:3], "unread")
            equal(c.ids("status=read&order=id"), every[3:10])
            c.mark([every[0], 4711], "read") # unknown ones are skipped
            for path in ("bookmark", "star"):
                c.put("entries/%d/%s" % (every[4], path))
                equal(c.get("entries/%d" % every[4])["starred"], path == "bookmark")
            c.put("entries/%d/star" % every[4])
            for value in ("true", "1", "True", "t", "T", "TRUE"):
                equal(c.ids("starred=" + value), [every[4]])
            equal(len(c.ids("starred=maybe&limit=0")), 35) # as Miniflux
            equal(c.get("entries/ids?starred=true"), {"entry_ids": [every[4]], "total": 1})
            # stars are set and removed by many, with a status or alone
            c.put("entries", {"entry_ids": every[5:7], "starred": True})
            c.put("entries", {"entry_ids": every[5:7], "starred": True, "status": "unread"})
            equal(c.get("entries/ids?starred=true&status=unread")["entry_ids"], every[5:7][::-1])
            c.put("entries", {"entry_ids": every[5:7], "starred": False, "status": "read"})
            equal(c.ids("starred=true"), [every[4]])
            for body in ({}, {"starred": 1}, {"starred": None}, {"status": "removed"}, {"status": 1}):
                c.put("entries", {"entry_ids": every[:1], **body}, want=400)
            equal(c.ids("starred=false&limit=0&order=id"), [x for x in every if x != every[4]])
            equal(c.ids("starred=0&status=read&order=id"), [x for x in [every[0], *every[3:10]] if x != every[4]])
            c.put("entries/4711/star", want=404)
            c.post("entries/%d/save" % every[0], want=400)
            c.post("entries/4711/save", want=404)
            counters = c.get("feeds/counters")
            equal(sum(counters["reads"].values()), 8)
            equal(sum(counters["unreads"].values()), 27)
            unread = c.entries("status=unread&feed_id=%d" % news["id"])["total"]
            equal(counters["unreads"].get(str(news["id"]), 0), unread)
            c.put("feeds/%d/mark-all-as-read" % blog["id"])
            equal((c.entries("status=unread")["total"], c.entries("status=unread&feed_id=%d" % blog["id"])["total"]),
                  (unread, 0))
            c.put("feeds/4711/mark-all-as-read", want=404)
            c.put("categories/4711/mark-all-as-read", want=404)
            c.put("users/%d/mark-all-as-read" % c.get("me")["id"])
            equal(c.entries("status=unread")["total"], 0)
            c.put("users/4711/mark-all-as-read", want=403)
            # a starred entry stays when its feed goes
            c.delete("feeds/%d" % c.get("entries/%d" % every[4])["feed_id"])
            equal(c.ids("starred=true"), [every[4]])
            gone = c.get("entries/%d" % every[4])
            equal((gone["feed"]["category"]["id"], gone["feed"]["checked_at"]), (1, NEVER))
            c.put("flush-history", want=202)
            c.delete("flush-history", want=202)
            equal(len(c.ids("starred=true")), 1)


@each_engine("10,000 entries are marked by one request, whole", also=["sqlite"], leave_out=["redis"])
def many(base, engine):
    with serving(base, engine) as d:
        c = Client(d)
        g = greader_client(d)
        g.site = "https://a.example"
        g.subscribe("feed")
        feed = c.get("feeds")[0]["id"]
        items = [{"id": "e%d" % i, "title": "t%d" % i} for i in range(MANY)]
        d.feedwheel.run("push", str(feed), "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1",
                                                                  "items": items}))
        begin = time.monotonic()
        ids = c.ids("limit=0&order=id")
        print("# %d entries in %d ms" % (MANY, (time.monotonic() - begin) * 1000))
        equal(len(ids), MANY)
        begin = time.monotonic()
        c.mark(ids, "read")
        print("# marked in %d ms" % ((time.monotonic() - begin) * 1000))
        equal((c.entries("status=unread")["total"], c.entries("status=read")["total"]), (0, MANY))
        equal(len(c.entries()["entries"]), 100)
        c.mark(ids[::2], "unread")
        equal((c.entries("status=unread&limit=1")["total"], c.get("feeds/counters")),
              (MANY // 2, {"reads": {str(feed): MANY // 2}, "unreads": {str(feed): MANY // 2}}))


@case("feeds are added by the address of a feed or a site; discover lists what an address has", needs="server")
def discovery(base):
    with serving(base) as d:
        c = Client(d)
        site = SUITE_MODULE.serve_site("127.0.0.1")
        equal(c.post("discover", {"url": site}, want=200),
              [{"url": site + "/extra.xml", "title": site + "/extra.xml", "type": "rss"}])
        equal(c.post("discover", {"url": site + "/news.xml"}, want=200),
              [{"url": site + "/news.xml", "title": "Suite news", "type": "atom"}])
        for address in (site + "/none", site + "/404", "ftp://a.example/"):
            c.post("discover", {"url": address}, want=404)
            c.post("feeds", {"feed_url": address}, want=400)
        for body in ({}, {"url": ""}, {"url": 1}):
            c.post("discover", body, want=400)
            c.post("feeds", {"feed_url" if k == "url" else k: v for k, v in body.items()}, want=400)
        equal(c.get("feeds"), [])
        category = c.post("categories", {"title": "Sites"})["id"]
        c.post("feeds", {"feed_url": site, "category_id": 4711}, want=400)
        feed = c.post("feeds", {"feed_url": site, "category_id": category, "title": "Mine"})["feed_id"]
        f = c.get("feeds/%d" % feed)
        equal((f["feed_url"], f["title"], f["category"]["id"]), (site + "/extra.xml", "Mine", category))
        equal(c.entries("feed_id=%d" % feed)["total"], 3)
        c.post("feeds", {"feed_url": site + "/extra.xml"}, want=400) # exists
        # what an entry lacks is empty, not absent
        bare = c.post("feeds", {"feed_url": site + "/bare.xml"})["feed_id"]
        whole = c.entries("limit=0")
        equal(c.entries("feed_id=%d" % bare)["total"], SUITE_MODULE.BARE)
        for at, kind in SUITE_MODULE.members(whole["entries"]).items():
            equal(len(kind), 1, "members of %s: %s" % (at, kind))
        c.delete("feeds/%d" % bare)
        # body of any type
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        c.call("POST", "feeds", {"feed_url": site + "/quick.xml"}, headers, want=201)
        # OPML
        status, _, text = raw(d, "GET", V1 + "export", c.headers())
        equal((status, text.count("xmlUrl="), 'text="Sites"' in text), (200, 2, True))
        for f in c.get("feeds"):
            c.delete("feeds/%d" % f["id"])
        equal(c.get("feeds"), [])
        holds("2 feeds" in c.post("import", text)["message"], text)
        equal({(f["feed_url"], f["category"]["id"]) for f in c.get("feeds")},
              {(site + "/extra.xml", category), (site + "/quick.xml", 1)})
        c.post("import", "no OPML", want=400)


@case("a site that answers slowly holds up only the account that asked for it", needs="server")
def discovery_fair(base):
    with serving(base) as d, socket.create_server(("127.0.0.1", 0)) as slow:
        alice = Client(d)
        user_add(d, "bob")
        bob = Client(d, "bob").headers()
        site = SUITE_MODULE.serve_site("127.0.0.1")
        body = json.dumps({"url": "http://127.0.0.1:%d/" % slow.getsockname()[1]})
        def ask():
            return raw(d, "POST", V1 + "discover", alice.headers(), body)
        with concurrent.futures.ThreadPoolExecutor(5) as many:
            first = many.submit(ask)
            held = [slow.accept()[0]] # alice's address is being fetched, and does not answer
            others = [many.submit(ask) for _ in range(4)]
            # of four more one waits, the others are refused
            wait_for("the refusals", lambda: sum(f.done() for f in others) >= 3)
            equal(sorted(f.result()[0] for f in others if f.done()), [503] * 3)
            equal(raw(d, "POST", V1 + "discover", bob, json.dumps({"url": site}))[0], 200)
            holds(not first.done(), "alice's address still does not answer")
            for connection in held:
                connection.close()
            holds(first.result()[0] not in (200, 503), first.result())
            waits = next(f for f in others if not f.done())
            held = [slow.accept()[0]] # the one that waited
            d.stop() # ends it, and does not wait for the site
            status, _, answer = waits.result()
            holds(status == 503 and "the server is stopping" in answer, (status, answer))


@case("without serve_discovery an address is taken for a feed's", needs="server")
def undiscovered(base):
    with serving(base, conf="auth_failures_max = 0\n") as d:
        c = Client(d)
        site = SUITE_MODULE.serve_site("127.0.0.1")
        equal(c.post("discover", {"url": site + "/quick.xml"}, want=200),
              [{"url": site + "/quick.xml", "title": site + "/quick.xml", "type": "rss"}])
        feed = c.post("feeds", {"feed_url": site + "/quick.xml"})["feed_id"]
        equal((c.entries()["total"], c.get("feeds/%d" % feed)["checked_at"]), (0, NEVER))
        d.feedwheel.run_once()
        equal(c.entries()["total"], 2)


@case("refresh makes feeds due that had no visit for 10 minutes and whose server did not throttle", needs="server")
def refresh(base):
    with serving(base) as d:
        c = Client(d)
        with with_feeds(d, c):
            news, blog = c.feed("Suite news")["id"], c.feed("Suite blog")["id"]

            def due():
                return {r[0] for r in d.feedwheel.sql(
                    "SELECT f.id FROM feeds f JOIN schedule t ON t.position = f.position WHERE t.due_at_ms <= ?",
                    time.time() * 1000)}

            def visited(minutes, status=200):
                d.feedwheel.sql("UPDATE schedule SET last_visit_ms = ?, http_status = ?, due_at_ms = ?",
                                int((time.time() - 60 * minutes) * 1000), status, int((time.time() + 3600) * 1000),
                                write=True)

            paths = ("feeds/refresh", "feeds/%d/refresh" % news, "categories/1/refresh")
            for path in paths:
                c.put(path)
                equal(due(), set())
            for path, want in zip(paths, ({news, blog}, {news}, {news, blog})):
                visited(11)
                c.put(path)
                equal(due(), want, path)
                visited(11, 429)
                c.put(path)
                equal(due(), set(), path)
            c.put("feeds/4711/refresh", want=404)
            c.put("categories/4711/refresh", want=404)


# ---- clients ---------------------------------------------------------------------------------------------

@case("newsboat lists feeds, reads, marks read and unread; the store holds it afterwards", needs="server")
def newsboat(base):
    if not shutil.which("newsboat"):
        raise Skip("install the package newsboat")
    with serving(base) as d:
        c = Client(d)
        with with_feeds(d, c):
            news, blog = c.feed("Suite news")["id"], c.feed("Suite blog")["id"]
            argv, environment = newsboat_files(
                base, 'urls-source "miniflux"\nminiflux-url "http://127.0.0.1:%d/miniflux"\nminiflux-login "alice"\n'
                'miniflux-password "%s"\n' % (d.port, PASSWORD))
            equal(newsboat_unread(argv, environment), "35 unread articles")
            last = c.ids("feed_id=%d&limit=1" % news)[0] # in newsboat's list
            c.mark([last], "read") # by another client
            equal(newsboat_unread(argv, environment), "34 unread articles")
            t = Terminal(*argv, environment=environment)
            try:
                wait_for("the list of feeds", lambda: t.shows("Suite blog"))
                order = re.findall("Suite (news|blog)", t.output)
                feed, other = (news, blog) if order[0] == "news" else (blog, news)
                before = set(c.ids("status=read&feed_id=%d" % feed))
                if t.shows("Starred items"): # newer versions have this feed, above all others
                    t.press("\x1bOB") # down
                t.press("\r")
                wait_for("the list of articles", lambda: t.shows("a & b <c>"))
                t.press("\r")
                wait_for("the article", lambda: t.shows("bold"))
                holds(not t.shows("alert(1)"), t.output)
                t.press("q") # newsboat sends the state when the article is left
                wait_for("the list of articles", lambda: t.shows("a & b <c>"))
                wait_for("one article read", lambda: len(c.ids("status=read&feed_id=%d" % feed)) == len(before) + 1)
                one = (set(c.ids("status=read&feed_id=%d" % feed)) - before).pop()
                t.press("N")
                wait_for("unread again", lambda: one in c.ids("status=unread&feed_id=%d" % feed))
                t.press("q")
                wait_for("the list of feeds", lambda: t.shows("Suite"))
                newsboat_marks_feed(t, "a feed", lambda: not c.ids("status=unread&feed_id=%d" % feed))
                holds(c.ids("status=unread&feed_id=%d" % other), "the other feed too")
                t.press("q")
                wait_for("its end", lambda: not t.reader.is_alive())
            finally:
                t.stop()
            equal(newsboat_unread(argv, environment), "%d unread articles" % c.entries("status=unread")["total"])


@case("the Google Reader API is below /miniflux too, where liferea looks for it", needs="server")
def greader_below(base):
    with serving(base) as d:
        c = Client(d)
        with with_feeds(d, c):
            g = SUITE_MODULE.Client("http://127.0.0.1:%d/miniflux" % d.port, "alice", PASSWORD)
            g.sign_in()
            ids = g.ids(ALL)
            equal((len(ids), len(g.items(ids[:3]))), (35, 3))
            g.edit(ids[:3], "a=" + READ).ok()
            equal(sorted(c.ids("status=read")), sorted(int(i) for i in ids[:3]))


@case("rename-tag makes one folder of two, which are categories here", needs="server")
def greader_renames(base):
    with serving(base) as d:
        c = Client(d)
        with with_feeds(d, c):
            g = greader_client(d)
            for name, feed in zip(("one", "two"), c.get("feeds")):
                category = c.post("categories", {"title": name})["id"]
                c.put("feeds/%d" % feed["id"], {"category_id": category}, want=201)
            first = c.ids("category_id=%d" % (category - 1))[0]
            g.edit([str(first)], "a=user/-/label/two").ok()
            g.post("rename-tag", "s=user/-/label/one&dest=user/-/label/two").ok()
            titles = [x["title"] for x in c.get("categories")]
            equal((titles, len(c.get("categories/%d/feeds" % category))), (["All", "two"], 2))
            g.post("rename-tag", "s=user/-/label/two&dest=user/-/label/three").ok()
            equal([x["title"] for x in c.get("categories")], ["All", "three"])


# ---- what is refused -------------------------------------------------------------------------------------

@case("each route needs an account's password or token, and refuses other sites' pages and operators' tokens",
      needs="server")
def authorization(base):
    with serving(base, conf="auth_failures_max = 0\n") as d:
        c = Client(d)
        operator = d.feedwheel.run("token", "add", "all", "--scope", "push,read,admin").stdout.split()[-1]
        token = d.feedwheel.run("user", "token", "alice", "phone").stdout.split()[-1]
        equal(Client(d, token=token).get("me")["username"], "alice")

        def basic(text):
            return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

        wrong = [{}, {"X-Auth-Token": ""}, {"X-Auth-Token": token[:-1]}, {"X-Auth-Token": token + "x"},
                 {"X-Auth-Token": operator}, {"X-Auth-Token": "x" * 3000}, {"Authorization": "Bearer " + token},
                 {"Authorization": "Basic " + token}, {"Authorization": "Basic"}, basic("alice"),
                 {"Authorization": "GoogleLogin auth=" + token}, basic("x" * 2000), basic(operator + ":")]
        slow = [basic("alice:"), basic("alice:wrong"), basic("bob:" + PASSWORD), basic(":" + PASSWORD),
                basic("Alice:" + PASSWORD), basic("alice:" + PASSWORD + " "), basic("alice\0:" + PASSWORD),
                basic("x:" + operator)]
        for i, (method, path) in enumerate(routes()):
            body = "{}" if method in ("PUT", "POST") else None
            for headers in wrong + (slow if i == 0 else slow[1:2] if i % 8 == 0 else []):
                status, got, text = raw(d, method, V1 + path, headers, body)
                equal(status, 401, (path, headers))
                holds(got["WWW-Authenticate"].startswith("Basic "), dict(got))
                equal(list(json.loads(text)), ["error_message"])
            for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
                for good in (c.basic, {"X-Auth-Token": token}):
                    equal(raw(d, method, V1 + path, {**good, **foreign}, body)[0], 403, (path, foreign))
            equal(c.call("PATCH", path, "{}")[0], 405, path)
        # a token of an account is none of the operator's, nor is its password
        wait_for("the operator's token", lambda: d.request("GET", "/v1/feeds")[0] == 401)
        for path in ("/v1/feeds", "/v1/entries", "/metrics"):
            for headers in (c.basic, {"X-Auth-Token": token}, {"Authorization": "Bearer " + token}):
                equal(raw(d, "GET", path, headers)[0], 401, path)
        # outside of it
        for path in ("me/", "meX", "categories/0", "categories/x", "entries/1/", "nothing", "feeds/1/entries/x"):
            equal(c.get(path, want=404).keys(), {"error_message"})
        d.feedwheel.run("user", "revoke", "alice", "phone")
        Client(d, token=token).get("me", want=401)


@each_engine("an account sees and changes nothing of another", also=["sqlite"], leave_out=["redis"])
def two_accounts(base, engine):
    with serving(base, engine) as d:
        user_add(d, "bob", "another word")
        a, b = Client(d), Client(d, "bob", "another word")
        with with_feeds(d, a) as site:
            folder = a.post("categories", {"title": "Mine"})["id"]
            news = a.feed("Suite news")["id"]
            a.put("feeds/%d" % news, {"category_id": folder}, want=201)
            ids, before = a.ids(), a.get("feeds")
            equal((b.ids(), b.get("feeds"), [x["id"] for x in b.get("categories")]), ([], [], [1]))
            for method, path in routes():
                if not path.startswith(("feeds/1", "entries/1", "categories/1", "users/1")):
                    continue
                path = path.replace("entries/1", "entries/%d" % ids[0]).replace("feeds/1", "feeds/%d" % news)
                path = path.replace("categories/1", "categories/%d" % folder)
                path = path.replace("users/1", "users/%d" % a.get("me")["id"])
                body = {"title": "x", "category_id": 1} if method in ("PUT", "POST") else None
                b.call(method, path, body, want=403 if path.startswith("users") else 404)
            for query in ("feed_id=%d" % news, "category_id=%d" % folder):
                b.get("entries?" + query, want=400)
            for who in ("alice", str(a.get("me")["id"]), "nobody"):
                b.get("users/" + who, want=403)
            b.mark(ids, "read")
            equal((a.entries("status=unread")["total"], a.get("feeds"), a.ids("starred=true")), (35, before, []))
            # the same feed, another state; the same number of a category is another one
            b.post("feeds", {"feed_url": site + "/news.xml", "category_id": b.post(
                "categories", {"title": "Hers"})["id"]})
            equal(b.entries()["total"], 30)
            b.mark(ids, "read")
            equal((b.entries("status=unread")["total"], a.entries("status=unread")["total"]), (0, 35))
            b.delete("feeds/%d" % news)
            equal(len(a.get("feeds")), 2)
            a.get("users", want=403)
            for method, path in (("GET", "api-keys"), ("POST", "api-keys"), ("DELETE", "api-keys/1")):
                a.call(method, path, want=403)


@case("a right password is remembered; not after a new one, nor when the account is removed", needs="server")
def remembered(base):
    with serving(base) as d:
        c, new = Client(d), Client(d, password="another word")

        def ten(client):
            begin = time.monotonic()
            for _ in range(10):
                client.get("me")
            return time.monotonic() - begin

        begin = time.monotonic()
        new.get("me", want=401)
        slow_s = time.monotonic() - begin
        c.get("me")
        fast_s = ten(c) / 10
        print("# a password is checked in %d ms; a request with a remembered one takes %.1f ms" % (
            slow_s * 1000, fast_s * 1000))
        holds(fast_s < slow_s, (fast_s, slow_s))
        d.feedwheel.run("user", "passwd", "alice", stdin="another word\n")
        c.get("me", want=401)
        new.get("me")
        c.get("me", want=401)
        d.feedwheel.run("user", "remove", "alice")
        new.get("me", want=401)
        user_add(d, "alice", "a third word")
        for x in (c, new):
            x.get("me", want=401)
        Client(d, password="a third word").get("me")


@case("wrong passwords throttle all passwords of their network; valid tokens keep working", needs="server")
def wrong_passwords(base):
    with serving(base, conf="auth_failures_max = 3\nauth_failures_ms = 1m\n") as d:
        c, wrong = Client(d), Client(d, password="wrong")
        token = d.feedwheel.run("user", "token", "alice", "phone").stdout.split()[-1]
        c.get("me")
        equal([wrong.call("GET", "me")[0] for _ in range(2)], [401] * 2)
        c.get("me")
        wrong.call("GET", "me")
        for x in (wrong, c): # a remembered one too
            status, got, _ = x.call("GET", "me")
            equal(status, 429)
            holds(0 < int(got["Retry-After"]) <= 60, dict(got))
        Client(d, token=token).get("me")
        Client(d, token="x" * 43).get("me", want=429)
        login = "Email=alice&Passwd=" + urllib.parse.quote(PASSWORD)
        equal(raw(d, "POST", "/accounts/ClientLogin", {}, login)[0], 429)
        holds("wrong tokens" in d.feedwheel.log(), d.feedwheel.last_log())


@case("many requests at once with a password that is not remembered yet: one check, and all are served", needs="server")
def many_logins(base):
    with serving(base) as d:
        got, lock = [], threading.Lock()

        def one():
            status = Client(d).call("GET", "me")[0]
            with lock:
                got.append(status)

        threads = [threading.Thread(target=one) for _ in range(60)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        equal(got, [200] * 60)


@case("a page of serve_cors_origin may use it", needs="server")
def cors(base):
    with serving(base, conf="serve_cors_origin = https://reader.example\n") as d:
        c = Client(d)
        for origin_header, want in (("https://reader.example", 200), ("https://evil.example", 403)):
            headers = {"Origin": origin_header, "Sec-Fetch-Site": "cross-site"}
            _, got, _ = c.call("GET", "me", headers=headers, want=want)
        equal(got["Access-Control-Allow-Origin"], "https://reader.example")
        status, got, _ = raw(d, "OPTIONS", V1 + "me", {"Origin": "https://reader.example"})
        equal((status, "X-Auth-Token" in got["Access-Control-Allow-Headers"]), (204, True))


@case("invalid parameters and bodies are 400 with their name", needs="server")
def invalid(base):
    with serving(base) as d:
        c = Client(d)
        with with_feeds(d, c):
            for query, name in (
                ("status=new", "status"), ("order=guid", "order"),
                ("direction=up", "direction"), ("limit=-1", "limit"), ("limit=x", "limit"), ("offset=-1", "offset"),
                ("limit=99999999999999999999", "limit"), ("before=x", "before"), ("after=1.5", "after"),
                ("published_before=x", "published_before"), ("published_after=x", "published_after"),
                ("changed_before=x", "changed_before"), ("changed_after=x", "changed_after"),
                ("before_entry_id=x", "before_entry_id"), ("after_entry_id=-1", "after_entry_id"),
                ("feed_id=4711", "feed_id"), ("category_id=4711", "category_id"),
                ("feed_id=x", "feed_id"), ("tags=a", "tags")):
                holds(name in c.get("entries?" + query, want=400)["error_message"], query)
            for body, name in (
                ("{", "JSON"), ("[]", "object"), ({}, "entry_ids"), ({"entry_ids": []}, "entry_ids"),
                ({"entry_ids": 1}, "entry_ids"), ({"entry_ids": ["1"], "status": "read"}, "entry_ids"),
                ({"entry_ids": [1.5], "status": "read"}, "entry_ids"), ({"entry_ids": [1]}, "status"),
                ({"entry_ids": [1], "status": "x"}, "status"), ({"entry_ids": [1], "status": "removed"}, "status"),
                ({"entry_ids": [1] * 50001, "status": "read"}, "entry_ids")):
                holds(name in c.put("entries", body, want=400)["error_message"], str(body)[:50])
            c.put("entries", "x" * ((2 << 20) + 1), want=413)
            equal(c.entries("status=unread")["total"], 35)
            equal(c.call("HEAD", "me")[0], 200)


@case("on Redis each request is told which stores have accounts", needs="redis")
def redis(base):
    with server("redis", base) as s, http_server(base, store=s.url(), conf=CONF) as d:
        text = Client(d).call("GET", "me", want=400)[2]["error_message"]
        holds("SQLite" in text and "PostgreSQL" in text and "MariaDB" in text, text)


if __name__ == "__main__":
    run()
