#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The Google Reader API: the conformance suite on each store, newsboat as it is, and what no client
does: other accounts, other sites, wrong passwords."""
import contextlib
import html
import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
import urllib.parse

from http_server import http_server
from growing import CONF
from harness import ROOT, Skip, case, each_engine, equal, holds, let_pass, run, server, store_of, wait_for
from readers import (ALL, OPEN, PASSWORD, READ, STARRED, SUITE, SUITE_MODULE, Terminal, client, display,
                     needs_programs, newsboat_files, newsboat_marks_feed, newsboat_unread, raw, user_add, with_feeds)

LOGINS = 16 # of one program
MANY = 10000
KILLS = 8


# ---- clients ---------------------------------------------------------------------------------------------

@each_engine("the conformance suite passes", also=["sqlite"], leave_out=["redis"])
def conformance(base, engine):
    with store_of(engine, base) as s, http_server(base, store=s, conf=CONF + OPEN) as d:
        user_add(d, "alice")
        secret = os.path.join(base, "password")
        with open(secret, "w", encoding="utf-8") as f:
            f.write(PASSWORD + "\n")
        r = subprocess.run(
            [SUITE, "--url", "http://127.0.0.1:%d" % d.port, "--user", "alice", "--password-file", secret,
             "--refresh", shlex.join(d.feedwheel.command("run", "--once", "-q"))],
            capture_output=True, text=True, timeout=500, check=False)
        failed = [l for l in r.stdout.splitlines() if not l.startswith("ok ")]
        equal((r.returncode, len(failed)), (0, 1), "\n".join(failed) + r.stderr)
        equal(re.findall("# SKIP.*", r.stdout), [])


@case("newsboat lists feeds, reads, marks read and unread, stars; the store holds it afterwards", needs="server")
def newsboat(base):
    if not shutil.which("newsboat"):
        raise Skip("install the package newsboat")
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        with with_feeds(d, c):
            news, blog = c.feed_id("news.xml"), c.feed_id("blog.xml")
            argv, environment = newsboat_files(
                base, 'urls-source "feedhq"\nfeedhq-url "http://127.0.0.1:%d"\nfeedhq-login "alice"\n'
                'feedhq-password "%s"\nfeedhq-show-special-feeds no\nfeedhq-flag-star "s"\n'
                'feedhq-min-items 100\n' % (d.port, PASSWORD))
            equal(newsboat_unread(argv, environment), "35 unread articles")
            last = min(c.items(c.ids(news)), key=lambda i: i["published"])["id"] # in newsboat's list
            c.edit([last], "a=" + READ).ok() # by another client
            equal(newsboat_unread(argv, environment), "34 unread articles")
            t = Terminal(*argv, environment=environment)
            try:
                wait_for("the list of feeds", lambda: t.shows("Suite blog"))
                order = [f for f in re.findall("Suite (news|blog)", t.output)]
                feed = {"news": news, "blog": blog}[order[0]]
                other = {"news": blog, "blog": news}[order[0]]
                before = set(c.ids(feed, "&it=" + READ))
                t.press("\r")
                wait_for("the list of articles", lambda: t.shows("a & b <c>"))
                t.press("\r")
                wait_for("the article", lambda: t.shows("bold"))
                holds(not t.shows("alert(1)"), t.output)
                t.press("q") # newsboat sends the state when the article is left
                wait_for("the list of articles", lambda: t.shows("a & b <c>"))
                wait_for("one article read", lambda: len(c.ids(feed, "&it=" + READ)) == len(before) + 1)
                one = (set(c.ids(feed, "&it=" + READ)) - before).pop()
                t.press("\x05") # edit flags
                wait_for("the question", lambda: t.shows("Flags"))
                t.press("s\r")
                wait_for("a star", lambda: c.ids(STARRED) == [one])
                t.press("N")
                wait_for("unread again", lambda: one not in c.ids(feed, "&it=" + READ))
                t.press("q")
                wait_for("the list of feeds", lambda: t.shows("Suite"))
                newsboat_marks_feed(t, "a feed", lambda: not c.ids(feed, "&xt=" + READ))
                holds(c.ids(other, "&xt=" + READ), "the other feed too")
                t.press("q")
                wait_for("its end", lambda: not t.reader.is_alive())
            finally:
                t.stop()
            equal(c.ids(STARRED), [one])
            left = len(c.ids(ALL, "&xt=" + READ))
            equal(newsboat_unread(argv, environment), "%d unread articles" % left)
            equal(sum(v["count"] for k, v in c.unread().items() if k.startswith("feed/")), left)


LIFEREA = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="1.0"><head><title>Liferea Feed List Export</title></head><body>
<outline title="Reader" text="Reader" type="source" sourceType="fl_google_reader" xmlUrl="http://127.0.0.1:%d"
 username="alice" password="%s" id="reader" sortColumn="time" viewMode="0" collapsed="false"/></body></opml>
"""


@contextlib.contextmanager
def liferea_running(base, d):
    """Liferea in a display of its own; a function that presses a key."""
    home = os.path.join(base, "home")
    config = os.path.join(home, ".config", "liferea")
    os.makedirs(config)
    with open(os.path.join(config, "feedlist.opml"), "w", encoding="utf-8") as f:
        f.write(LIFEREA % (d.port, html.escape(PASSWORD)))
    with display(home) as screen, screen.running("liferea"):
        yield lambda key: screen.press("Liferea", key)


@case("liferea lists feeds, reads, stars, marks unread, updates; the store holds it afterwards", needs="server")
def liferea(base):
    needs_programs("liferea")
    log = os.path.join(base, "access.log")
    with http_server(base, conf=CONF + "access_log = %s\n" % log) as d:
        user_add(d, "alice")
        c = client(d)

        def requests(path):
            with open(log, encoding="utf-8") as f:
                return sum(path in line and "Liferea" in line for line in f)

        with with_feeds(d, c), liferea_running(base, d) as press:
            wait_for("the contents of both feeds", lambda: requests("stream/items/contents") == 2, 60)

            def pressed(key, state):
                press(key)
                return state()

            # "next unread" opens an item; pressed again until the window has the focus
            wait_for("an item read", lambda: c.ids(ALL, "&it=" + READ) or pressed("ctrl+n", lambda: False))
            press("ctrl+t")
            wait_for("a star", lambda: c.ids(STARRED))
            # its edits come in their order: after the star, all items that were opened are read
            read = c.ids(ALL, "&it=" + READ)
            holds(set(c.ids(STARRED)) <= set(read), (c.ids(STARRED), read))
            press("ctrl+m")
            wait_for("unread again", lambda: len(c.ids(ALL, "&it=" + READ)) == len(read) - 1)
            # an update asks for all again, with the validators that the first responses had
            press("ctrl+u")
            wait_for("the contents again", lambda: requests("stream/items/contents") == 4, 60)
            equal((requests("/accounts/ClientLogin"), len(c.ids(STARRED))), (1, 1))


# ---- what is refused -------------------------------------------------------------------------------------

def account_routes():
    """Method, path and handler of each route of an account, from the server's table."""
    with open(os.path.join(ROOT, "src", "http", "routes.c"), encoding="utf-8") as f:
        rows = re.findall(r'READER_(GET|POST)\("([^"]+)", (\w+)', f.read())
    holds(len(rows) > 20, rows)
    return [(method, "/reader/" + path.replace("{stream}", ALL)) for method, path, _ in rows]


@case("each route needs a token of an account, and refuses pages of other sites; operators' tokens do not help",
      needs="server")
def authorization(base):
    with http_server(base, conf=CONF + "auth_failures_max = 0\n") as d:
        user_add(d, "alice")
        c = client(d)
        token = d.feedwheel.run("token", "add", "all", "--scope", "push,read,admin").stdout.split()[-1]
        for method, path in account_routes():
            for at in (path, "/api/greader.php" + path):
                body = "i=1&s=feed/1" if method == "POST" else None
                for headers in (
                    {},
                    {"Authorization": "Bearer " + token},
                    {"Authorization": "GoogleLogin auth=" + token},
                    {"Authorization": "GoogleLogin auth="},
                    {"Authorization": "GoogleLogin " + c.token},
                    {"Authorization": "Bearer " + c.token},
                    {"Authorization": "GoogleLogin auth=" + c.token[:-1]},
                    {"Authorization": "GoogleLogin auth=" + c.token + "x"},
                    {"Authorization": "GoogleLogin auth=" + "x" * 3000}):
                    status, got, _ = raw(d, method, at, headers, body)
                    equal(status, 401, (at, headers))
                    holds("GoogleLogin" in got["WWW-Authenticate"], dict(got))
                equal(raw(d, "PUT", at, {}, "x")[0], 405, at)
                good = {"Authorization": "GoogleLogin auth=" + c.token}
                for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"},
                                {"Origin": "null"}):
                    equal(raw(d, method, at, {**good, **foreign}, body)[0], 403, (at, foreign))
                if method == "GET":
                    equal(raw(d, "GET", at + "?T=" + c.token, {})[0], 401, "T in a query")
        equal(raw(d, "POST", "/accounts/ClientLogin", {"Origin": "https://evil.example"},
                  "Email=alice&Passwd=" + urllib.parse.quote(PASSWORD))[0], 403)
        # a token of an account is none of the operator's
        wait_for("the operator's token", lambda: d.request("GET", "/v1/feeds")[0] == 401)
        for path in ("/v1/feeds", "/v1/entries", "/metrics"):
            for scheme in ("Bearer ", "GoogleLogin auth="):
                equal(raw(d, "GET", path, {"Authorization": scheme + c.token})[0], 401, path)


@case("a page of serve_cors_origin may use it", needs="server")
def cors(base):
    with http_server(base, conf=CONF + "serve_cors_origin = https://reader.example\n") as d:
        user_add(d, "alice")
        c = client(d)
        for origin_header, want in (("https://reader.example", 200), ("https://evil.example", 403)):
            r = c.get("user-info", headers={"Origin": origin_header, "Sec-Fetch-Site": "cross-site"})
            equal(r.status, want, origin_header)
        equal(r.headers["Access-Control-Allow-Origin"], "https://reader.example")


@each_engine("an account sees and changes nothing of another", also=["sqlite"], leave_out=["redis"])
def two_accounts(base, engine):
    with store_of(engine, base) as s, http_server(base, store=s, conf=CONF) as d:
        user_add(d, "alice")
        user_add(d, "bob", "another word")
        a, b = client(d), client(d, "bob", "another word")
        holds(a.token != b.token, "tokens")
        with with_feeds(d, a):
            b.site = a.site
            got = a.ids(ALL)
            news = a.feed_id("news.xml")
            equal((len(got), b.ids(ALL), b.ids(news), b.subscriptions()), (35, [], [], {}))
            equal(b.items(got), [])
            equal(b.get("stream/contents/" + news).json()["items"], [])
            label = "a=" + urllib.parse.quote("user/-/label/b")
            b.edit(got, "a=" + READ, "a=" + STARRED, label).ok()
            b.mark(ALL).ok()
            b.mark(news).ok()
            equal((b.ids(STARRED), b.ids("user/-/label/b")), ([], []))
            equal(b.unsubscribe(news).status, 404)
            equal(b.post("subscription/edit", "ac=edit&s=%s&t=x" % news).status, 404)
            equal(b.post("subscription/edit", "ac=subscribe&s=%s" % news).status, 404, "by counting numbers")
            equal((a.ids(ALL, "&xt=" + READ), a.ids(STARRED)), (got, []))
            holds(not any(t["id"].endswith("/b") for t in a.get("tag/list").json()["tags"]), "labels")
            equal(a.subscriptions()[a.site + "/news.xml"]["title"], "Suite news")
            # the same feed, another state
            b.subscribe("news.xml", "&t=Mine")
            equal((b.ids(ALL), b.subscriptions()[a.site + "/news.xml"]["title"]), (a.ids(news), "Mine"))
            a.edit(got[:3], "a=" + READ, "a=" + STARRED).ok()
            equal((b.ids(ALL, "&xt=" + READ), b.ids(STARRED)), (b.ids(ALL), []))
            b.mark(ALL).ok()
            equal((len(a.ids(ALL, "&xt=" + READ)), b.ids(ALL, "&xt=" + READ)), (32, []))
            equal(b.unsubscribe(news).status, 200)
            equal(len(a.ids(news)), 30)


@case("wrong passwords throttle logins of their network, right or wrong; valid tokens keep working", needs="server")
def wrong_passwords(base):
    with http_server(base, conf=CONF + "auth_failures_max = 3\nauth_failures_ms = 1m\n") as d:
        user_add(d, "alice")
        c = client(d)
        equal([c.login("wrong").status for _ in range(3)], [401] * 3)
        for password in ("wrong", PASSWORD):
            r = c.login(password)
            equal(r.status, 429)
            holds(0 < int(r.headers["Retry-After"]) <= 60, dict(r.headers))
        equal(c.get("user-info").status, 200)
        r = c.get("user-info", headers={"Authorization": "GoogleLogin auth=nobody"})
        equal(r.status, 429)
        other = SUITE_MODULE.Client(c.url, "nobody", "x")
        equal(other.login().status, 429)
        holds("wrong tokens" in d.feedwheel.log(), d.feedwheel.last_log())


@case("an unknown name, no password, and a body that is no form are a wrong password", needs="server")
def odd_logins(base):
    with http_server(base, conf=CONF + "auth_failures_max = 0\n") as d:
        user_add(d, "alice")
        for body in ("Email=bob&Passwd=x", "Email=alice", "Email=alice&Passwd=", "Passwd=x", "", "x", "{}", "%00=%00",
                     "Email=%FF&Passwd=%00", "Email=alice%00&Passwd=" + urllib.parse.quote(PASSWORD),
                     "Email=" + "a" * 1000 + "&Passwd=x", "Email=alice&Passwd=" + "x" * 15000):
            status, _, text = raw(d, "POST", "/accounts/ClientLogin", {}, body)
            equal((status, text), (401, "Error=BadAuthentication\n"), body[:50])
        # not in the query, where logs would have it
        login = "Email=alice&Passwd=" + urllib.parse.quote(PASSWORD)
        equal(raw(d, "POST", "/accounts/ClientLogin?" + login, {}, "")[0], 401)
        equal(raw(d, "POST", "/accounts/ClientLogin", {}, "x" * 20000)[0], 413)
        equal(raw(d, "POST", "/accounts/ClientLogin", {}, "&".join(["a=b"] * 4000))[0], 401)


@case("each login has its own token; of one program the 16 used last stay, and other programs keep theirs",
      needs="server")
def logins(base):
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        phone = client(d)
        token = []
        for _ in range(LOGINS + 4):
            text = phone.login(more="&source=newsboat0.000000").text # the first "source" is the suite's
            text = raw(d, "POST", "/accounts/ClientLogin", {}, "Email=alice&Passwd=%s&source=newsboat0.000000" %
                       urllib.parse.quote(PASSWORD))[2]
            token.append(re.search("^Auth=(.*)$", text, re.M).group(1))
        equal(len(set(token)), len(token))
        valid = [raw(d, "GET", "/reader/ping", {"Authorization": "GoogleLogin auth=" + t})[0] for t in token]
        equal(valid.count(200), LOGINS, valid)
        equal(valid[-1], 200)


@case("many logins at once: each is responded to, with a token or a 503", needs="server")
def many_logins(base):
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        got, lock = [], threading.Lock()

        def one():
            r = c.login()
            with lock:
                got.append(r.status)

        threads = [threading.Thread(target=one) for _ in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
        equal(len(got), 100)
        holds(set(got) <= {200, 503} and got.count(200) >= 65, got)
        equal(c.login().status, 200)


# ---- edits that break off --------------------------------------------------------------------------------

@each_engine("an edit of 10,000 items is stored whole or not at all when the server is killed", also=["sqlite"],
             leave_out=["redis"])
def killed_edit(base, engine):
    with store_of(engine, base) as s, http_server(base, store=s, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        c.site = "https://a.example"
        c.subscribe("feed")
        feed = c.feed_id("feed")
        items = [{"id": "e%d" % i, "title": "t%d" % i} for i in range(MANY)]
        d.feedwheel.run("push", feed[5:], "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1",
                                                               "items": items}))
        ids = c.ids(feed, n=2 * MANY)
        equal(len(ids), MANY)
        begin = time.monotonic()
        c.edit(ids, "a=" + READ).ok()
        whole_s = time.monotonic() - begin
        stored = {0}
        for i in range(KILLS):
            tag = "ar"[i % 2 == 0] + "=" + READ

            def edit(tag=tag):
                with contextlib.suppress(OSError, http.client.HTTPException): # the server is killed
                    c.edit(ids, tag)

            t = threading.Thread(target=edit)
            t.start()
            let_pass(whole_s * i / KILLS, "the edit is under way")
            d.kill()
            t.join(60)
            d.start()
            unread = len(c.ids(feed, "&xt=" + READ, n=2 * MANY))
            holds(unread in (0, MANY), (i, unread))
            equal(c.unread().get(feed, {"count": 0})["count"], unread)
            stored.add(unread)
            c.edit(ids, tag).ok() # so that the next one has something to change
        print("# an edit took %d ms; after %d kills %s unread" % (whole_s * 1000, KILLS, sorted(stored)))


# ---- edges -----------------------------------------------------------------------------------------------

@case("invalid parameters are 400 with the parameter's name", needs="server")
def invalid(base):
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        for path, name in (
            ("stream/items/ids?s=nonsense", "stream"),
            ("stream/items/ids?s=feed/0", "stream"),
            ("stream/items/ids?s=feed/1&n=x", "n"),
            ("stream/items/ids?s=feed/1&n=-2", "n"),
            ("stream/items/ids?s=feed/1&c=x", "c"),
            ("stream/items/ids?s=feed/1&ot=x", "ot"),
            ("stream/items/ids?s=feed/1&nt=1.5x", "nt"),
            ("stream/items/ids?s=feed/1&xt=x", "xt"),
            ("stream/items/ids?s=feed/1&it=x", "it"),
            ("stream/items/ids?s=feed/1&n=99999999999999999999", "n"),
            ("stream/items/ids?it=%s&xt=%s" % (STARRED, "user/-/state/com.google/starred"), "combination"),
            ("stream/contents/nonsense", "stream"),
            ("stream/contents/user/-/label/", "stream"),
            ("stream/items/contents?i=x", "i"),
            ("stream/items/contents", "i")):
            r = c.get(path)
            equal(r.status, 400, path)
            holds(name in json.loads(r.text)["detail"], (path, r.text))
        for path, body in (
            ("edit-tag", "i=1&a=nonsense"), ("edit-tag", "i=1&a=feed/1"), ("edit-tag", "i=1&a=user/-/label/%01"),
            ("edit-tag", "i=1&a=user/-/label/%FF"), ("edit-tag", "i=1&a=user/-/label/" + "x" * 201),
            ("edit-tag", "i=1&" + "&".join("a=user/-/label/%d" % i for i in range(101))),
            ("edit-tag", "i=1" + "".join("&i=%d" % i for i in range(1001)) + "&a=user/-/label/x" * 100),
            ("mark-all-as-read", ""), ("mark-all-as-read", "s=x"),
            ("rename-tag", "s=user/-/label/a"), ("rename-tag", "dest=user/-/label/a"),
            ("rename-tag", "s=%s&dest=user/-/label/a" % STARRED), ("disable-tag", "s=" + STARRED), ("disable-tag", ""),
            ("subscription/quickadd", ""), ("subscription/quickadd", "quickadd=%01"),
            ("subscription/edit", "ac=edit&s=feed/1&a=x"),
            ("subscription/edit", "ac=subscribe&s=feed/ftp://a.example/"),
            ("subscription/edit", "ac=subscribe&s=feed/https://a.example/&t=" + "x" * 2001)):
            equal(c.post(path, body).status, 400, (path, body[:60]))
        equal([c.post("stream/items/ids", "s=feed/1" + "&xt=user/-/label/none" * n).status for n in (1000, 1001)],
              [200, 400])
        equal(c.post("rename-tag", "s=user/-/label/none&dest=user/-/label/a").status, 404)
        equal(c.post("mark-all-as-read", "s=feed/https://none.example/").status, 404)
        equal(c.post("subscription/edit", "ac=unsubscribe&s=feed/4711").status, 404)
        equal(c.post("edit-tag", "&".join(["i=1"] * 50001)).status, 413)
        equal(c.post("edit-tag", "x" * (2 << 20) + "x").status, 413)
        equal(c.ids("feed/4711"), [])
        equal(c.ids("feed/https://none.example/"), [])
        equal(c.ids("user/-/label/none"), [])
        equal(c.ids("user/-/state/com.google/broadcast"), [])
        equal(c.request("HEAD", "/reader/api/0/user-info").status, 200)
        r = c.post("subscription/quickadd", "quickadd=ftp://a.example/").json()
        equal((r["numResults"], "http" in r["error"]), (0, True), r)


@case("quickadd fetches only addresses that the address guard allows", needs="server")
def guarded(base):
    with http_server(base, conf=OPEN + "allow_networks = 192.0.2.0/24\n") as d:
        user_add(d, "alice")
        c = client(d)
        c.site = SUITE_MODULE.serve_site("127.0.0.1")
        for address in (c.site + "/news.xml", c.site.replace("127.0.0.1", "localhost"), "http://[::1]:1/",
                        "http://169.254.169.254/latest", "http://2130706433/"):
            r = c.post("subscription/quickadd", "quickadd=" + urllib.parse.quote(address)).json()
            equal(r["numResults"], 0, address)
            holds("allow_networks" in r["error"], r)
        equal(c.subscriptions(), {})


@case("without serve_discovery quickadd takes the address for a feed's; the workers fetch it", needs="server")
def undiscovered(base):
    with http_server(base, conf=CONF) as d:
        user_add(d, "alice")
        c = client(d)
        c.site = SUITE_MODULE.serve_site("127.0.0.1")
        r = c.post("subscription/quickadd", "quickadd=" + urllib.parse.quote(c.site + "/quick.xml")).json()
        equal((r["numResults"], r["streamId"], c.ids(ALL)), (1, c.feed_id("quick.xml"), []))
        d.feedwheel.run_once()
        equal(len(c.ids(r["streamId"])), 2)


@case("on Redis a login says which stores have accounts", needs="redis")
def redis(base):
    with server("redis", base) as s, http_server(base, store=s.url(), conf=CONF) as d:
        status, _, text = raw(d, "POST", "/accounts/ClientLogin", {}, "Email=alice&Passwd=x")
        equal(status, 400)
        holds("SQLite" in text and "PostgreSQL" in text and "MariaDB" in text, text)


if __name__ == "__main__":
    run()
