#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""RSS Guard, by the Google Reader API. The program itself runs on a display of its own. It keeps its
accounts in a database and its keys in a file, so nothing has to be typed into its dialogs. But
version 4.0.4 crashes now and then when it updates soon after an article's state was changed; so what
it sends then is tested by its requests."""
import base64
import contextlib
import json
import os
import re
import sqlite3
import time

from growing import CONF
from harness import case, equal, holds, run, wait_for
from http_server import http_server
from readers import ALL, PASSWORD, READ, STARRED, client, display, needs_programs, user_add, with_feeds

CRYPT_KEY = 0x0102030405060708
FRESHRSS = 1
AGAIN_S = 8
STARTED = "Tray icon displayed." # the last thing that it does
KEYS = {"UpdateAllItems": "F2"}


def encrypted(text):
    """As its SimpleCrypt does it, without a checksum and without compression."""
    out, last = bytearray(), 0
    for i, byte in enumerate(b"x" + text.encode()):
        last = byte ^ CRYPT_KEY >> 8 * (i % 8) & 255 ^ last
        out.append(last)
    return base64.b64encode(b"\3\0" + bytes(out)).decode()


class RssGuard:
    def __init__(self, home, d):
        self.home, self.d = home, d
        self.data = os.path.join(home, "data")
        self.log = os.path.join(home, "log")
        self.argv = "rssguard", "--data", self.data
        os.makedirs(os.path.join(self.data, "config"))
        self.file("key.private", str(CRYPT_KEY))
        self.file("config.ini", "[main]\nfirst_run=false\nfirst_run_4.0.4=false\n[keyboard]\n" +
                  "".join("m_action%s=%s\n" % k for k in KEYS.items()))

    def file(self, name, text):
        with open(os.path.join(self.data, "config", name), "w", encoding="utf-8") as f:
            f.write(text)

    @contextlib.contextmanager
    def database(self):
        db = sqlite3.connect(os.path.join(self.data, "database", "database.db"), timeout=30)
        try:
            with db:
                yield db
        finally:
            db.close()

    def logged(self, text):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return text in f.read()

    def one(self, query):
        with self.database() as db:
            return db.execute(query).fetchone()[0]

    def account_add(self):
        account = {"service": FRESHRSS, "username": "alice", "password": encrypted(PASSWORD), "batch_size": 100,
                   "download_only_unread": False, "intelligent_synchronization": True,
                   "url": "http://127.0.0.1:%d" % self.d.port}
        with self.database() as db:
            db.execute("INSERT INTO Accounts (type, custom_data) VALUES ('greader', ?)", (json.dumps(account),))

    def items(self, where):
        """The numbers of its articles."""
        with self.database() as db:
            return {int(i.rsplit("/", 1)[1], 16) for i, in db.execute("SELECT custom_id FROM Messages WHERE " + where)}

    def press(self, screen, action, what, state):
        """Press a key, and again only after a while without its effect."""
        pressed_s = -AGAIN_S

        def has_effect():
            nonlocal pressed_s
            if state():
                return True
            equal(self.process.poll(), None, "RSS Guard has ended")
            if time.monotonic() - pressed_s >= AGAIN_S: # a window that is not ready yet ignores keys
                screen.press("RSS Guard 4", KEYS[action])
                pressed_s = time.monotonic()
            return False
        wait_for(what, has_effect, 60)


def numbers(ids):
    return {int(i) for i in ids}


@case("RSS Guard lists feeds, gets all articles, and shows what another client has read and starred", needs="server")
def rssguard(base):
    needs_programs("rssguard")
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        g = RssGuard(os.path.join(base, "home"), d)
        with with_feeds(d, c), display(g.home) as screen:
            elsewhere = c.ids(ALL)[:2]
            c.edit(elsewhere[:1], "a=" + READ).ok()
            c.edit(elsewhere[1:], "a=" + STARRED).ok()
            with screen.running(*g.argv, log=g.log):
                wait_for("its start", lambda: g.logged(STARTED), 60)
            g.account_add()
            with screen.running(*g.argv, log=g.log) as g.process:
                wait_for("its feeds", lambda: g.one("SELECT count(*) FROM Feeds") == 2, 60)
                wait_for("its start", lambda: g.logged(STARTED), 60) # earlier keys may crash it
                g.press(screen, "UpdateAllItems", "all articles", lambda: len(g.items("1")) == 35)
                wait_for("what another client has read and starred", lambda: (
                    g.items("is_read"), g.items("is_important")) == (numbers(elsewhere[:1]), numbers(elsewhere[1:])))


# ---- its requests ----------------------------------------------------------------------------------------

class Requests:
    """The requests of RSS Guard 4.0.4, byte by byte, as a proxy between it and feedwheel saw them
    while articles were opened, starred, and all marked read by its keys."""
    AGENT = {"Cookie": "JSESSIONID= ", "User-Agent": "RSS Guard/4.0.4 (github.com/martinrotter/rssguard)",
             "Connection": "Keep-Alive", "Accept-Encoding": "gzip, deflate", "Accept-Language": "en,*"}
    FORM = {"Content-Type": "application/x-www-form-urlencoded"}

    def __init__(self, d):
        self.d = d
        self.token = {}
        text = self.send("/accounts/ClientLogin", "Email=alice&Passwd=secret%20%26%20word", self.FORM)
        self.token = {"Authorization": "GoogleLogin auth=" + re.search("^Auth=(.+)$", text, re.M).group(1)}

    def send(self, path, body=None, headers=None):
        status, _, r = self.d.request("GET" if body is None else "POST", "/api/greader.php" + path, body,
                                      {**self.token, **self.AGENT, **(headers or {})})
        equal(status, 200, (path, r))
        return r

    def stream(self, state):
        r = self.send("/reader/api/0/stream/items/ids?output=json&n=200000&s=user%2F-%2Fstate%2Fcom.google%2F" +
                      state + "&ot=1764115200")
        holds(not r.get("continuation"), "it would loop")
        return [int(i["id"]) for i in r["itemRefs"]]

    def contents(self, ids):
        body = "&".join("i=tag%%3Agoogle.com%%2C2005%%3Areader%%2Fitem%%2F%016x" % i for i in ids)
        return self.send("/reader/api/0/stream/items/contents?output=json&n=200000", body, self.FORM)["items"]

    def edit(self, what, ids): # 200 at most
        text = self.send("/reader/api/0/edit-tag", what + "".join("&i=tag:google.com,2005:reader/item/%016x" % i
                                                                  for i in ids), self.FORM)
        equal(text, "OK")

    def sync(self):
        """Starred, all, unread; the articles that it lacks."""
        return (self.stream("starred"), self.stream("reading-list"),
                self.stream("reading-list&xt=user/-/state/com.google/read"))


@case("its requests list, read, star, mark unread and all read, as its keys would; the store holds it", needs="server")
def requests(base):
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        with with_feeds(d, c):
            r = Requests(d)
            tags = r.send("/reader/api/0/tag/list?output=json")["tags"]
            equal([t["id"].rsplit("/", 1)[1] for t in tags], ["starred"])
            feeds = r.send("/reader/api/0/subscription/list?output=json")["subscriptions"]
            equal({f["id"] for f in feeds}, {c.feed_id("news.xml"), c.feed_id("blog.xml")})
            holds(all({"id", "title", "htmlUrl", "iconUrl", "categories"} <= f.keys() for f in feeds), feeds)
            starred, every, unread = r.sync()
            equal((starred, len(every), unread), ([], 35, every))
            items = r.contents(every)
            equal([int(i["id"].rsplit("/", 1)[1], 16) for i in items], every)
            for i in items:
                holds({"title", "author", "published", "alternate", "enclosure", "categories"} <= i.keys(), i)
                holds(i["summary"]["content"] and i["origin"]["streamId"] in {f["id"] for f in feeds}, i)
            one = every[3]
            r.edit("a=user/-/state/com.google/read", [one])
            r.edit("a=user/-/state/com.google/starred", [one])
            equal(r.sync(), ([one], every, [i for i in every if i != one]))
            equal((numbers(c.ids(ALL, "&it=" + READ)), numbers(c.ids(STARRED))), ({one}, {one}))
            r.edit("r=user/-/state/com.google/read", [one])
            r.edit("r=user/-/state/com.google/starred", [one])
            equal(r.sync(), ([], every, every))
            r.edit("a=user/-/state/com.google/read", every)
            equal((r.sync(), c.unread().get(c.feed_id("news.xml"), {"count": 0})["count"]), (([], every, []), 0))


if __name__ == "__main__":
    run()
