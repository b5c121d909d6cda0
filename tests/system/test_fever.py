#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The Fever API, by the requests of its clients, and by those that no client sends."""
import contextlib
import hashlib
import json
import time

from http_server import http_server, metric
from growing import CONF
from harness import case, each_engine, equal, holds, run, server, store_of, wait_for
from readers import ALL, PASSWORD, STARRED, SUITE_MODULE, client, user_add, with_feeds

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PAGE = 50


class Fever:
    """A client: parameters to read are in the query, the key and marks in the body."""

    def __init__(self, d, name="alice", token_name="phone", path="/fever/"):
        token = d.feedwheel.run("user", "token", name, token_name, "--fever").stdout.strip()
        self.d, self.path = d, path
        self.key = hashlib.md5(("%s:%s" % (name, token)).encode()).hexdigest()

    def send(self, query="", body="", key=None, headers=None, method="POST"):
        c = self.d.connect()
        try:
            form = "api_key=%s%s" % (self.key if key is None else key, body) if method == "POST" else None
            c.request(method, self.path + "?api" + query, form, {**FORM, **(headers or {})})
            r = c.getresponse()
            return r.status, r.headers, json.loads(r.read().decode())
        finally:
            c.close()

    def get(self, query="", body="", **more):
        status, _, r = self.send(query, body, **more)
        equal((status, r.get("api_version"), r.get("auth")), (200, 3, 1), r)
        holds(abs(r["last_refreshed_on_time"] - time.time()) < 60, r["last_refreshed_on_time"])
        return r

    def mark(self, what, how, number, before=""):
        return self.get("", "&mark=%s&as=%s&id=%s%s" % (what, how, number, before and "&before=%s" % before))

    def numbers(self, name):
        text = self.get("&" + name)[name]
        return sorted(int(i) for i in text.split(",")) if text else []

    def unread(self):
        return self.numbers("unread_item_ids")

    def saved(self):
        return self.numbers("saved_item_ids")

    def all_items(self):
        """By since_id, as Reeder does."""
        items, since = [], 0
        while True:
            page = self.get("&items&since_id=%d" % since)["items"]
            if not page:
                return items
            holds(len(page) <= PAGE, len(page))
            items += page
            since = max(i["id"] for i in page)


def many(d, c, name, n):
    """A feed of n entries, in a folder of its own; its number."""
    c.post("subscription/edit", "ac=subscribe&s=feed/https://a.example/%s&a=user/-/label/%s" % (name, name)).ok()
    feed = next(s["id"] for s in c.get("subscription/list").json()["subscriptions"] if s["url"].endswith("/" + name))
    items = [{"id": "%s%d" % (name, i), "title": "t%d" % i, "content_html": "<p>text %d" % i} for i in range(n)]
    d.feedwheel.run("push", feed[5:], "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1",
                                                           "items": items}))
    return int(feed[5:])


@contextlib.contextmanager
def fever(base, engine="sqlite", conf=""):
    with store_of(engine, base) as s, http_server(base, store=s, conf=CONF + conf) as d:
        user_add(d, "alice")
        c = client(d)
        with with_feeds(d, c):
            yield d, c, Fever(d)


# ---- clients ---------------------------------------------------------------------------------------------

@each_engine("a client lists feeds and groups, fetches all items, and marks them; other APIs see it", also=["sqlite"],
             leave_out=["redis"])
def reads(base, engine):
    with fever(base, engine) as (d, c, f):
        news, blog = int(c.feed_id("news.xml")[5:]), int(c.feed_id("blog.xml")[5:])
        c.post("subscription/edit", "ac=edit&s=feed/%d&a=user/-/label/News" % news).ok()
        c.post("subscription/edit", "ac=edit&s=feed/%d&a=user/-/label/News%%2FTech&t=My+blog" % blog).ok()

        # the first sync, with flags combined as clients combine them
        r = f.get("&groups&feeds&favicons&links")
        equal(sorted(g["title"] for g in r["groups"]), ["News", "News/Tech"])
        group = {g["title"]: g["id"] for g in r["groups"]}
        holds(all(0 < i < 2 ** 31 for i in group.values()), group)
        equal({g["group_id"]: g["feed_ids"] for g in r["feeds_groups"]},
              {group["News"]: str(news), group["News/Tech"]: str(blog)})
        feed = {i["id"]: i for i in r["feeds"]}
        equal((feed[news]["title"], feed[blog]["title"], feed[blog]["is_spark"]), ("Suite news", "My blog", 0))
        equal(feed[news]["url"], c.site + "/news.xml")
        holds(abs(feed[news]["last_updated_on_time"] - time.time()) < 600, feed[news])
        equal({feed[news]["favicon_id"], feed[blog]["favicon_id"]}, {i["id"] for i in r["favicons"]})
        holds(r["favicons"][0]["data"].startswith("image/gif;base64,"), r["favicons"])
        equal(r["links"], [])
        equal(f.get("&groups")["feeds_groups"], r["feeds_groups"])

        items = f.all_items()
        equal((len(items), sorted(i["id"] for i in items)), (35, sorted(int(i) for i in c.ids(ALL))))
        one = next(i for i in items if i["title"].startswith("news 1 "))
        equal((one["feed_id"], one["title"], one["author"], one["url"], one["is_read"], one["is_saved"]),
              (news, "news 1 \u2013 a & b <c>", "Ann & Bob", c.site + "/news/1", 0, 0))
        equal(one["created_on_time"], 1767348000) # 2026-01-02T10:00:00Z
        holds("<b>bold</b>" in one["html"] and "script" not in one["html"], one["html"])
        equal(f.get("&items")["total_items"], 35)

        # backwards, as Fluent Reader
        newest = f.get("&items&max_id=9007199254740991")["items"]
        equal([i["id"] for i in newest], sorted((i["id"] for i in items), reverse=True))
        equal(f.get("&items&max_id=%d" % newest[-1]["id"])["items"], [])
        equal([i["id"] for i in f.get("&items&max_id=0")["items"]], [i["id"] for i in newest])
        # by number, and of feeds and groups
        equal([i["id"] for i in f.get("&items&with_ids=%d,%d,4711" % (one["id"], newest[0]["id"]))["items"]],
              [one["id"], newest[0]["id"]])
        equal({i["feed_id"] for i in f.get("&items&feed_ids=%d" % blog)["items"]}, {blog})
        equal({i["feed_id"] for i in f.get("&items&group_ids=%d" % group["News"])["items"]}, {news})
        equal(len(f.get("&items&feed_ids=%d&group_ids=%d" % (news, group["News/Tech"]))["items"]), 35)
        equal(f.get("&items&group_ids=4711")["items"], [])

        # read, saved, and back; the response has the list
        equal(f.unread(), sorted(i["id"] for i in items))
        r = f.mark("item", "read", one["id"])
        holds(str(one["id"]) not in r["unread_item_ids"].split(","), r)
        equal((len(f.unread()), len(c.ids("feed/%d" % news, "&xt=user/-/state/com.google/read"))), (34, 29))
        r = f.mark("item", "saved", one["id"])
        equal((r["saved_item_ids"], f.saved(), c.ids(STARRED)), (str(one["id"]), [one["id"]], [str(one["id"])]))
        equal([(i["is_read"], i["is_saved"]) for i in f.get("&items&with_ids=%d" % one["id"])["items"]], [(1, 1)])
        f.mark("item", "unread", one["id"])
        f.mark("item", "unsaved", one["id"])
        equal((len(f.unread()), f.saved()), (35, []))
        f.mark("item", "read", "%d,%d" % (one["id"], newest[0]["id"]))
        equal(len(f.unread()), 33)

        # a folder without those below it, a feed, all
        f.mark("group", "read", group["News"], int(time.time()) + 2)
        equal({i["feed_id"] for i in items if i["id"] in f.unread()}, {blog} if len(f.unread()) else set())
        f.mark("feed", "read", blog)
        equal(f.unread(), [])
        f.mark("item", "unread", ",".join(str(i["id"]) for i in items))
        f.mark("group", "read", -1) # sparks: there are none
        f.mark("group", "read", 4711)
        f.mark("feed", "read", 4711)
        equal(len(f.unread()), 35)
        f.mark("group", "read", 0)
        equal((f.unread(), sum(v["count"] for v in c.unread().values())), ([], 0))
        equal(f.get("", "&unread_recently_read=1")["unread_item_ids"], "")

        # what an entry lacks is empty, not absent
        c.subscribe("bare.xml")
        d.feedwheel.run_once()
        for at, kind in SUITE_MODULE.members(f.all_items()).items():
            equal(len(kind), 1, "members of %s: %s" % (at, kind))

        # an account sees no other's
        user_add(d, "bob")
        b = Fever(d, "bob")
        equal((b.get("&feeds&groups&items")["feeds"], b.all_items(), b.unread()), ([], [], []))
        b.mark("item", "saved", one["id"])
        equal((b.saved(), b.get("&items&with_ids=%d" % one["id"])["items"]), ([], []))


@case("items come 50 at a time, whole, in both directions; what is stored after `before` stays unread", needs="server")
def pages(base):
    with fever(base) as (d, c, f):
        big = many(d, c, "big", 210)
        c.edit([str(i["id"]) for i in f.all_items()], "r=user/-/state/com.google/read").ok()
        items = f.all_items()
        equal((len(items), f.get("&items&since_id=0")["total_items"]), (245, 245))
        equal([i["id"] for i in items], sorted({i["id"] for i in items}))
        back, low = [], 0
        while True:
            page = f.get("&items&max_id=%d" % low)["items"]
            if not page:
                break
            back += [i["id"] for i in page]
            low = page[-1]["id"]
        equal(back, [i["id"] for i in reversed(items)])
        equal(len(f.get("&items&with_ids=" + ",".join(str(i["id"]) for i in items))["items"]), PAGE)
        others = [i for i in items if i["feed_id"] != big]
        equal([i["id"] for i in f.get("&items&feed_ids=%s" % ",".join({str(i["feed_id"]) for i in others}))["items"]],
              [i["id"] for i in others])

        begin = int(time.time())
        wait_for("the next second", lambda: int(time.time()) > begin)
        many(d, c, "late", 3)
        late = [i["id"] for i in f.all_items()][-3:]
        f.mark("group", "read", 0, begin + 1)
        equal(f.unread(), late)
        f.mark("group", "read", 0, 0)
        equal(f.unread(), [])


@case("the URL may end with a slash or without; parameters may all be in the body", needs="server")
def paths(base):
    with fever(base) as (d, _, f):
        f.path = "/fever"
        equal(len(f.get("&items")["items"]), 35)
        equal(len(f.get("", "&items&max_id=0")["items"]), 35)
        equal(len(f.get("=&items=&since_id=0")["items"]), 35) # as Read You writes it
        equal(f.get("", headers={"Content-Type": "text/plain"})["auth"], 1)
        equal(f.get(key=f.key.upper())["auth"], 1)
        for path in ("/fever/", "/fever"):
            f.path = path
            equal(f.send(method="GET")[::2], (200, {"api_version": 3, "auth": 0}))
            equal(f.send("&api_key=%s&mark=group&as=read&id=0" % f.key, method="GET")[2]["auth"], 0)
        equal(len(f.unread()), 35)
        for path in ("/fever/x", "/feverx", "/api/greader.php/fever/", "/fever//"):
            equal(d.request("POST", path, "api_key=" + f.key)[0], 404, path)
        equal(d.request("PUT", "/fever/", "x")[0], 405)


# ---- what is refused -------------------------------------------------------------------------------------

@case("only a key of a Fever token opens it; it opens nothing else", needs="server")
def authorization(base):
    with fever(base, conf="auth_failures_max = 0\n") as (d, c, f):
        operator = d.feedwheel.run("token", "add", "all", "--scope", "push,read,admin").stdout.split()[-1]
        other = d.feedwheel.run("user", "token", "alice", "plain").stdout.strip()
        for key in ("", "x", "0" * 32, f.key[:-1], f.key + "0", operator, c.token, other, "x" * 3000, "%00" * 32,
                    "%FF" * 32, f.key[:-1] + "g", hashlib.md5(b"alice:" + PASSWORD.encode()).hexdigest(),
                    hashlib.md5(("alice:" + other).encode()).hexdigest(),
                    hashlib.md5(("bob:" + other).encode()).hexdigest()):
            for query in ("", "&items&feeds&groups&unread_item_ids&saved_item_ids&favicons"):
                status, _, r = f.send(query, "&mark=group&as=read&id=0", key=key)
                equal((status, r), (200, {"api_version": 3, "auth": 0}), key)
        equal(len(f.unread()), 35)
        for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            equal(f.send(headers=foreign)[0], 403, foreign)
        # the key and its secret are none of the other APIs
        wait_for("the operator's token", lambda: d.request("GET", "/v1/feeds")[0] == 401)
        for path in ("/v1/feeds", "/reader/api/0/user-info"):
            for scheme in ("Bearer ", "GoogleLogin auth="):
                equal(d.request("GET", path, headers={"Authorization": scheme + f.key})[0], 401, path)
        d.feedwheel.run("user", "revoke", "alice", "phone")
        equal(f.send()[2], {"api_version": 3, "auth": 0})


@case("wrong keys throttle their network; a valid key keeps working; no key counts for nothing", needs="server")
def limited(base):
    with fever(base, conf="auth_failures_max = 5\nauth_failures_ms = 60s\n") as (d, _, f):
        for _ in range(20):
            equal(f.send(key="")[2]["auth"], 0)
            equal(f.send(method="GET")[2]["auth"], 0)
        got = [f.send(key="0" * 32)[0] for _ in range(10)]
        equal((got[0], got[-1]), (200, 429), got)
        status, headers, _ = f.send(key="1" * 32)
        equal(status, 429)
        holds(0 < int(headers["Retry-After"]) <= 60, dict(headers))
        equal(len(f.unread()), 35)


@case("hostile parameters are 400 with their name, or nothing; none of them changes anything", needs="server")
def hostile(base):
    with fever(base, conf="auth_failures_max = 0\n") as (d, c, f):
        for query, body, name in (
            ("&items&since_id=x", "", "since_id"), ("&items&since_id=-1", "", "since_id"),
            ("&items&since_id=99999999999999999999", "", "since_id"), ("&items&max_id=1.5", "", "max_id"),
            ("&items&max_id=0x1", "", "max_id"), ("&items&with_ids=1,x", "", "with_ids"),
            ("&items&with_ids=1;2", "", "with_ids"), ("&items&feed_ids=x", "", "feed_ids"),
            ("&items&group_ids=1,%27", "", "group_ids"),
            ("", "&mark=nonsense&as=read&id=1", "mark"), ("", "&mark=item", "as"), ("", "&mark=item&as=x&id=1", "as"),
            ("", "&mark=feed&as=unread&id=1", "as"), ("", "&mark=group&as=saved&id=0", "as"),
            ("", "&mark=item&as=read", "id"), ("", "&mark=item&as=read&id=", "id"),
            ("", "&mark=item&as=read&id=x", "id"), ("", "&mark=item&as=read&id=1%27", "id"),
            ("", "&mark=group&as=read&id=1,2", "id"), ("", "&mark=feed&as=read&id=%00", "id"),
            ("", "&mark=group&as=read&id=0&before=x", "before"),
            ("", "&mark=group&as=read&id=0&before=-1", "before")):
            status, _, r = f.send(query, body)
            equal(status, 400, (query, body))
            holds(name in r["detail"], (query, body, r))
        for query, body in (
            ("&items&with_ids=", ""), ("&items&with_ids=,,", ""), ("&items&with_ids=-1,0,9223372036854775807", ""),
            ("&items&feed_ids=", ""), ("&items&feed_ids=0", ""), ("&items&group_ids=", ""),
            ("&items&since_id=9223372036854775807", ""), ("&items&max_id=1", ""),
            ("", "&mark=item&as=read&id=0"), ("", "&mark=item&as=read&id=-5,9223372036854775807"),
            ("", "&mark=feed&as=read&id=-1"), ("", "&mark=feed&as=read&id=0"), ("", "&mark=group&as=read&id=-1"),
            ("", "&mark=&as=read&id=0"), ("&refresh&nonsense=1", ""), ("=xml", "")):
            equal(f.get(query, body).get("items", []), [], (query, body))
        f.mark("group", "read", 0, 1) # in 1970
        equal((len(f.unread()), f.saved(), c.ids(STARRED)), (35, [], []))
        equal(f.send("", "&x=" + "y" * 70000)[0], 413)
        equal(f.send("", "&a" * 50001)[0], 413)
        for query in ("&items" * 60, "&with_ids=" + "1," * 7000):
            holds(f.send(query)[0] in (400, 414, 431), query[:20])
        f.mark("group", "read", 0, 99999999999999) # milliseconds, as a client may send them
        equal(f.unread(), [])


@case("metrics count requests by API, logins, and wrong passwords", needs="server")
def metrics(base):
    with fever(base, conf="auth_failures_max = 0\n") as (d, c, f):
        def count(name):
            return metric(d, name)

        before = count('reader_requests_total{api="greader"}')
        equal((count("logins_total"), count("login_failures_total"), count('reader_requests_total{api="fever"}')),
              (1, 0, 0))
        f.unread()
        f.send(key="0" * 32)
        c.ids(STARRED)
        equal(c.__class__(c.url, "nobody", "wrong").login().status, 401)
        equal((count('reader_requests_total{api="fever"}'), count('reader_requests_total{api="greader"}'),
               count("logins_total"), count("login_failures_total")), (2, before + 1, 1, 1))


@case("on Redis it says which stores have accounts", needs="redis")
def redis(base):
    with server("redis", base) as s, http_server(base, store=s.url(), conf=CONF) as d:
        status, _, r = d.request("POST", "/fever/?api", "api_key=" + "0" * 32)
        equal(status, 400)
        holds("SQLite" in r["detail"] and "PostgreSQL" in r["detail"] and "MariaDB" in r["detail"], r)


if __name__ == "__main__":
    run()
