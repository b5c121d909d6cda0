#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The page: a reader in Chromium, by its keys; what its routes refuse; contents that attack it."""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.parse

from chromium import browser
from growing import CONF
from harness import BUILD, ROOT, Skip, case, equal, holds, run, sanitized, wait_for
from http_server import http_server, metric
from page_client import PASSWORD, Visitor, user_add
from page_site import FEEDS, Site

ENTRIES = sum(len(f[2]) for f in FEEDS.values())


def greader_auth(d):
    form = urllib.parse.urlencode({"Email": "alice", "Passwd": PASSWORD})
    return re.search("Auth=(.*)", d.request("POST", "/accounts/ClientLogin", form)[2])[1]


def greader(d, path, body):
    """Prepare an account through the Google Reader API."""
    return d.request("POST", "/reader/api/0/" + path, body, {"Authorization": "GoogleLogin auth=" + greader_auth(d)})


@contextlib.contextmanager
def reading(base, extra=None, conf=""):
    """A server with an account that subscribes the site's feeds, all visited."""
    site = Site(extra)
    try:
        with http_server(base, conf=CONF + "auth_failures_max = 0\nallow_networks = 127.0.0.0/8\n" + conf) as d:
            user_add(d)
            greader(d, "subscription/import", site.opml().encode())
            d.feedwheel.run_once()
            d.site = site
            yield d
    finally:
        site.stop()


def log_in(b, d, path="/"):
    b.open("http://127.0.0.1:%d%s" % (d.port, path))
    b.there("[name=name]")
    b.fill("[name=name]", "alice")
    b.fill("[name=password]", PASSWORD)
    b.key("Enter")
    b.wait("document.readyState == 'complete' && !!document.querySelector('#column')") # the rows come after the column


def rows(b, more=""):
    return b.js("document.querySelectorAll('#river .row%s').length" % more)


def of_the_browser():
    """A case that costs much and asks the server nothing that others do not ask."""
    if sanitized():
        raise Skip("it looks at what the browser makes of the page, as in the usual build")


def picture(b, name):
    folder = os.path.join(BUILD, "pictures")
    os.makedirs(folder, exist_ok=True)
    b.picture(os.path.join(folder, name + ".png"))


VIEWS = [(width, height, phone, dark) for width, height, phone in ((1280, 800, False), (390, 844, True))
         for dark in (False, True)]


SOME = (VIEWS[3], VIEWS[0]) # where no width shows what the other does not show in the same colour


def pictures(b, name, views=SOME):
    """The page in these widths and colours, for people to look at; the last is that of a desktop, light."""
    for width, height, phone, dark in views:
        b.size(width, height, dark, phone)
        picture(b, "%s-%d-%s" % (name, width, "dark" if dark else "light"))


def title(b):
    """The current entry's."""
    return b.js("document.querySelector('.row.current .title')?.textContent")


def has(b, classes):
    return b.js("!!document.querySelector('.row.current%s')" % classes)


def states(d):
    """Unread, starred of alice, by the program's own list."""
    rows = greader_ids(d, "user/-/state/com.google/reading-list", "&xt=user/-/state/com.google/read")
    return rows, greader_ids(d, "user/-/state/com.google/starred")


def greader_ids(d, stream, more=""):
    auth = d.__dict__.setdefault("auth", None) or greader_auth(d)
    d.auth = auth
    r = d.request("GET", "/reader/api/0/stream/items/ids?n=20000&s=%s%s" % (stream, more),
                  headers={"Authorization": "GoogleLogin auth=" + auth})[2]
    return [int(i["id"]) for i in r["itemRefs"]]


@case("keys: next, previous, open, close, read, star, original, columns, help; the store holds it", needs="server")
def keys(base):
    with reading(base) as d, browser(base) as b:
        log_in(b, d)
        equal(rows(b, ".unread"), ENTRIES)
        pictures(b, "river", VIEWS[::-1])
        b.key("j")
        b.there(".open .content")
        pictures(b, "entry", VIEWS[::-1])
        first = title(b)
        holds(not has(b, ".unread"), "an open entry is read")
        b.key("j")
        b.there(".open .content")
        second = title(b)
        holds(second != first and rows(b, ".open") == 1, "the next one is open, and it alone")
        b.key("k")
        b.wait("document.querySelector('.row.current .title').textContent === %s" % json.dumps(first))
        b.key("o")
        equal(rows(b, ".open"), 0)
        b.keys("nn")
        equal((rows(b, ".open"), rows(b, ".unread")), (0, ENTRIES - 2), "n opens nothing and reads nothing")
        b.key("p")
        equal(title(b), second)
        b.key("m")
        holds(has(b, ".unread"), "m makes it unread")
        b.keys("ms")
        holds(has(b, ":not(.unread) .star[aria-pressed=true]"), "m and s")
        b.key("n")
        third = title(b)
        b.key("Enter")
        b.there(".open .content")
        equal(title(b), third)
        b.key("s")
        b.wait("[...document.querySelectorAll('.open .star')].every(s => s.getAttribute('aria-pressed') === 'true')")
        b.key("s")
        b.click(".open .keep")
        holds(has(b, ".unread.open"), "keep unread")
        b.key("Escape")
        equal(rows(b, ".open"), 0)
        wait_for("the changes to be stored", lambda: [len(x) for x in states(d)] == [ENTRIES - 2, 1])
        b.key("?")
        b.there("dialog[open]")
        pictures(b, "keys")
        printed = b.js("[...document.querySelectorAll('#keys kbd')].map(k => k.textContent)")
        b.key("Escape")
        b.wait("!document.querySelector('dialog[open]')")
        b.key("u")
        b.wait("!document.querySelector('#column').offsetParent")
        b.key("u")
        b.wait("!!document.querySelector('#column').offsetParent")
        b.key("/")
        b.wait("document.activeElement.type === 'search'")
        b.call("Input.insertText", text="lichens")
        b.key("Enter")
        b.wait("document.querySelectorAll('.row').length === 1")
        equal(b.js("document.querySelector('.row .title').textContent"), "What lichens know about air")
        b.keys("gs")
        b.wait("document.querySelector('h1').textContent === 'Starred'")
        equal(rows(b), 1)
        b.keys("ga")
        b.wait("document.querySelectorAll('.row').length === %d" % ENTRIES)
        b.keys("gu")
        b.wait("document.querySelectorAll('.row').length === %d" % (ENTRIES - 2))
        b.key("J")
        b.wait("document.querySelector('h1').textContent === 'Languages'")
        b.key("J")
        b.wait("document.querySelector('h1').textContent !== 'Languages'")
        b.key("K")
        b.wait("document.querySelector('h1').textContent === 'Languages'")
        b.keys("ga")
        b.wait("document.querySelectorAll('.row').length === %d" % ENTRIES)
        b.keys("jl")
        b.wait("document.activeElement.name === 'add'")
        b.key("Escape")
        b.js("document.querySelector('.row.open').scrollIntoView({block: 'end'})")
        here = title(b)
        b.key(" ")
        b.wait("(t => t && t !== %s)(document.querySelector('.row.open .title')?.textContent)" % json.dumps(here))
        b.keys("omv")
        wait_for("the original in a tab of its own", lambda: len(b.tabs()) == 2)
        b.wait("!document.querySelector('.row.current.unread')")
        b.key("A")
        b.there("dialog[open] .main")
        b.key("Escape")
        b.wait("!document.querySelector('dialog[open]')")
        b.js("window.before = 1")
        b.key("r")
        b.wait("!window.before")
        equal(b.js("[String(window.open).includes('native'), String(window.close).includes('native')]"), [True] * 2)
        b.keys("gf")
        b.there(".cards li")
        names = {"Space": " ", "Esc": "Escape"}
        pressed = b.pressed | {"g " + k for k in "uasf"}
        equal([k for k in printed if names.get(k, k) not in pressed], [], "keys that no one tried")
        equal(b.console(), [])


@case("the picture of README.md is drawn", needs="server")
def readme(base):
    of_the_browser()
    with reading(base) as d, browser(base) as b:
        log_in(b, d)
        b.js("for (const s of [...document.querySelectorAll('#column summary')]) s.click()")
        b.size(1280, 760)
        b.js("[...document.querySelectorAll('.row .title')].find(t => t.textContent.includes('two pages')).focus()")
        b.keys("so")
        b.there(".row.open .content h3")
        b.js("scrollTo(0, document.querySelector('.row.open').offsetTop - 270)")
        picture(b, "readme")
        data = b.call("Page.captureScreenshot", format="webp", quality=80)["data"]
        holds(10000 < len(data) < 200000, "the size of the picture: %d" % len(data))
        with open(os.path.join(BUILD, "pictures", "readme.webp"), "wb") as f:
            f.write(base64.b64decode(data))


TALL = "<p>%s</p>" % "</p><p>".join("Paragraph %d of many." % i for i in range(120)) # above 3,000 pixels
WIDE = "<table><tr>%s</tr><tr>%s</tr></table>" % ("".join("<th>Column heading %d" % i for i in range(16)),
                                                 "".join("<td>measured" for i in range(16)))
VIDEO = "<iframe src='https://www.youtube.com/embed/dQw4w9WgXcQ'></iframe><p>after"


@case("an opened entry starts at the top, whatever closed above it; words in wide tables stay whole; a long title "
      "leaves the star where it is", needs="server")
def layout(base):
    of_the_browser()
    titles = ["short", "tall", "below", "wide", "video", "a long title of many words " * 8, "t", "t"]
    contents = {"tall": TALL, "wide": WIDE, "video": VIDEO}
    now = "2030-01-01T%02d:%02d:00Z"
    feed = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "Shapes", "items": [
        {"id": str(i), "title": t, "content_html": contents.get(t, "<p>x"), "date_published": now % (i // 60, i % 60)}
        for i, t in enumerate(titles)]})
    with reading(base, {"/shapes.json": (200, "application/feed+json", feed)}) as d, browser(base) as b:
        equal(Visitor(d).log_in().post("/subscribe", url=d.site.url + "/shapes.json")[0].status, 303)
        d.feedwheel.run_once()
        log_in(b, d, "/?view=all&q=feed:Shapes&order=old")
        def row(name):
            return "[...document.querySelectorAll('.row')].find(r => r.querySelector('.title').textContent === %s)" % (
                json.dumps(name))
        def open_row(name):
            b.js(row(name) + ".querySelector('.title').id = 'chosen', 1")
            b.click("#chosen")
            b.js("document.querySelector('#chosen').id = '', 1")
            b.wait("!!%s.querySelector('.content')" % row(name))
        for width, height, phone in ((1280, 800, False), (390, 844, True)):
            b.size(width, height, False, phone)
            b.wait("!document.querySelector('.row.open')")
            stars = b.js(b.frames + ".then(() => [...new Set([...document.querySelectorAll('.row .star')].map(s => "
                         "s.getBoundingClientRect().x + ' ' + s.getBoundingClientRect().width))])")
            equal(len(stars), 1, "the stars are in one column: %s" % stars)
            for name in ("tall", "below", "tall", "wide", "tall", "video"):
                open_row(name)
                b.wait("(y => y >= 40 && y < 60)(%s.getBoundingClientRect().top)" % row(name))
                b.js("scrollBy(0, %d)" % (2500 if name == "tall" else 0))
                if name == "wide":
                    sizes = b.js("(t => [t.scrollWidth > t.clientWidth, Math.max(...[...t.querySelectorAll('th')].map("
                                 "h => h.clientHeight)) < 90])(document.querySelector('.open table'))")
                    equal(sizes, [True, True], "a table scrolls, and its words are whole")
                    pictures(b, "wide", ((width, height, phone, True),))
                    b.size(width, height, False, phone)
                if name == "video":
                    gap = b.js("(p => p.nextElementSibling.getBoundingClientRect().top - "
                               "p.getBoundingClientRect().bottom)(document.querySelector('.open .player'))")
                    holds(gap >= 8, "below a player: %s" % gap)
                    pictures(b, "video", ((width, height, phone, False),))
                    equal(b.js("getComputedStyle(document.querySelector('.row.open')).backgroundColor"),
                          b.js("getComputedStyle(document.body).backgroundColor"), "an open entry has no tint")
            b.key("o")
        equal(b.console(), [])


@case("mark all asks, leaves what came later unread, and a click on a row does what keys do", needs="server")
def mark_all(base):
    with reading(base) as d, browser(base) as b:
        log_in(b, d)
        b.js("document.querySelector('.row .line').click()")
        b.there(".open .content")
        b.click(".rows .row:nth-child(3) .line .star")
        wait_for("read and star", lambda: [len(x) for x in states(d)] == [ENTRIES - 1, 1])
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", d.site.url + "/notes.xml", "-",
                        stdin=json.dumps({"id": "late", "title": "late", "content_text": "x"}))
        b.key("A")
        b.there("dialog[open] .main")
        b.key("Escape")
        b.wait("!document.querySelector('dialog[open]')")
        equal(len(states(d)[0]), ENTRIES)
        b.key("A")
        b.there("dialog[open] .main")
        b.key("Enter")
        b.wait("document.querySelectorAll('.row').length === 1")
        equal(b.js("document.querySelector('.row .title').textContent"), "late")
        equal([len(x) for x in states(d)], [1, 1])
        b.key("j")
        b.there(".row.open")
        b.click("[data-key=u]") # at once: the next page knows that it is read
        b.wait("document.querySelector('.empty')?.textContent.includes('All is read')")
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", d.site.url + "/notes.xml", "-",
                        stdin=json.dumps({"id": "later", "title": "later", "content_text": "x"}))
        b.key("r")
        b.there(".row")
        b.key("j") # the page is left at once: what is not sent yet is sent then
        b.there(".row.open")
        b.js("location.href = './feeds'")
        wait_for("the last one to be read", lambda: states(d)[0] == [])


@case("what the server did not get is sent again when it is back", needs="server")
def outage(base):
    with reading(base) as d, browser(base) as b:
        log_in(b, d)
        b.key("n")
        d.stop()
        b.keys("ms")
        b.wait("document.querySelector('#status').textContent === '2 changes wait for the server'")
        b.key("j") # its content cannot be loaded
        b.there(".open .trouble")
        d.start()
        wait_for("the changes to be stored", lambda: [len(x) for x in states(d)] == [ENTRIES - 2, 1])
        b.wait("document.querySelector('#status').textContent === ''")
        b.keys("oo")
        b.there(".open .content")


@case("a feed is added by a site's address with a preview, renamed, moved, and left; OPML in and out; the health "
      "of failing feeds", needs="server")
def feeds(base):
    pages = {"/bad.xml": (200, "text/html", "<!doctype html><title>x</title>"), "/more": (
        200, "text/html", "<!doctype html><link rel=alternate type=application/rss+xml href=/radio.xml>"
        "<link rel=alternate type=application/rss+xml title=Second href=/notes.xml>")}
    with contextlib.ExitStack() as stack:
        site = Site(pages)
        stack.callback(site.stop)
        d = stack.enter_context(http_server(base, conf=CONF + "serve_discovery = yes\nallow_networks = 127.0.0.0/8\n"))
        user_add(d, "alice", "--admin")
        b = stack.enter_context(browser(base))
        log_in(b, d)
        holds("no feeds yet" in b.js("document.body.textContent"), "a word for an empty account")
        b.click(".empty a")
        b.fill("[name=url]", site.url)
        b.key("Enter")
        b.there(".cards li")
        equal(b.js("document.querySelector('.sheet h2').textContent"), "Field Notes")
        pictures(b, "preview")
        b.fill("[name=title]", "Notes")
        b.fill("[name=folder]", "Science/Field")
        b.key("Enter")
        b.wait("document.querySelectorAll('.row').length === %d" % len(FEEDS["notes"][2]))
        equal(b.js("document.querySelector('h1').textContent"), "Notes")
        b.open("http://127.0.0.1:%d/add?url=%s/more" % (d.port, site.url))
        b.click(".with-button button")
        b.there(".cards button[name=url]")
        equal(b.js("document.querySelector('.sheet h2').textContent"), "Slow Radio")
        b.click(".cards button[name=url]")
        b.wait("document.querySelector('.sheet h2').textContent === 'Field Notes'")
        b.open("http://127.0.0.1:%d/add?url=%s/nothing" % (d.port, site.url))
        b.click(".with-button button")
        b.there("[role=alert]")
        text = b.js("document.querySelector('[role=alert]').textContent")
        holds(site.url + "/nothing: HTTP 404" in text and "look on the site" in text, text)
        pictures(b, "not-found")
        # OPML from a file
        opml = os.path.join(base, "in.opml")
        with open(opml, "w", encoding="utf-8") as f:
            f.write(site.opml().replace("</body>", '<outline type="rss" text="Bad" xmlUrl="%s/bad.xml"/><outline '
                                        'type="rss" text="Gone" xmlUrl="%s/gone.xml"/><outline type="rss" text="More" '
                                        'xmlUrl="%s/more"/>\n<outline xmlUrl="ftp://a.example/"/>\n<outline '
                                        'xmlUrl="hhttps://b.example/"/></body>' % (site.url, site.url, site.url)))
        b.open("http://127.0.0.1:%d/account" % d.port)
        pictures(b, "account")
        node = b.call("DOM.querySelector", nodeId=b.call("DOM.getDocument")["root"]["nodeId"],
                      selector="[type=file]")["nodeId"]
        b.call("DOM.setFileInputFiles", nodeId=node, files=[opml])
        b.click("[action=import] button")
        b.wait("document.querySelector('.sheet p')?.textContent === '%d feeds added, 1 already subscribed, "
               "2 refused.'" % (len(FEEDS) + 2))
        equal(b.js("[...document.querySelectorAll('.list td')].map(t => t.textContent)"), [
            "2", "ftp://a.example/: 'ftp' is not http or https: only these are fetched",
            "3", "hhttps://b.example/: 'hhttps' is not http or https: only these are fetched"])
        pictures(b, "import")
        d.feedwheel.run_once()
        visitor = Visitor(d).log_in()
        out = visitor.request("GET", "/export")[1]
        equal(out.count("xmlUrl="), len(FEEDS) + 3)
        holds('text="Software"' in out and "Notes" in out, out)
        b.open("http://127.0.0.1:%d/feeds?failing=1" % d.port)
        b.wait("document.querySelectorAll('.cards > li').length === 3")
        pictures(b, "failing")
        text = b.js("document.querySelector('.cards').textContent")
        for words in ("HTTP 404", "There is no feed at this address.", "What is at this address is not a feed",
                      "The page there names a feed"):
            holds(words in text, "%s in %s" % (words, text))
        for command in "why", "show": # say the same
            text = " ".join(d.feedwheel.run(command, site.url + "/gone.xml").stdout.split())
            holds("There is no feed at this address. Check how it is written" in text, text)
        gone = next(f["id"] for f in d.feedwheel.json("list") if f["url"].endswith("/gone.xml"))
        b.open("http://127.0.0.1:%d/?view=all&feed=%d" % (d.port, gone))
        text = b.js("document.querySelector('#main').textContent")
        for words in ("HTTP 404", "There is no feed at this address.", "Never fetched successfully; last tried",
                      "There are no entries yet"):
            holds(words in text, "%s in %s" % (words, text))
        pictures(b, "failing-feed")
        b.open("http://127.0.0.1:%d/feeds?failing=1" % d.port)
        b.click("[action=instead] button")
        b.wait("document.querySelectorAll('.cards > li').length === %d" % (len(FEEDS) + 2))
        b.fill("[action=feeds] [name=q]", "gone")
        b.key("Enter")
        b.wait("document.querySelectorAll('.cards > li').length === 1")
        b.click(".cards summary")
        b.click("[action=poll] [value=pause]")
        b.wait("location.search === ''") # the form has led to the list: what opens a page meanwhile is aborted
        wait_for("it is paused", lambda: any(
            f["status"] == "paused" for f in d.feedwheel.json("list", "--status", "paused")))
        b.open("http://127.0.0.1:%d/feeds?q=gone" % d.port)
        b.click(".cards summary")
        b.fill(".cards [name=folder]", "Lost")
        b.click(".cards .main")
        b.wait("location.search === ''")
        b.open("http://127.0.0.1:%d/feeds?folder=Lost" % d.port)
        b.wait("document.querySelectorAll('.cards > li').length === 1")
        b.fill("[name=to]", "Found")
        b.key("Enter")
        b.wait("[...document.querySelectorAll('#column .name')].some(n => n.textContent === 'Found')")
        b.open("http://127.0.0.1:%d/feeds?q=gone" % d.port)
        b.click(".cards summary")
        b.click("[action=unsubscribe] button")
        b.there("dialog[open] .main")
        b.key("Enter")
        b.wait("document.querySelectorAll('.cards > li').length === %d" % (len(FEEDS) + 1))
        b.open("http://127.0.0.1:%d/runs" % d.port)
        b.wait("(i => i.complete && i.naturalWidth > 100)(document.querySelector('.picture'))")
        pictures(b, "runs")
        d.feedwheel.run("order", "add", "moon", "title:moon", "--tag", "moon")
        b.open("http://127.0.0.1:%d/orders" % d.port)
        b.wait("document.querySelector('.cards').textContent.includes('title:moon')")
        equal(b.console(), [])


@case("a new account gets the operator's feeds with a click; its page waits for their entries, and shows them by "
      "itself; other accounts' feeds and those with a login are not offered", needs="server")
def new_account(base):
    of_the_browser()
    with contextlib.ExitStack() as stack:
        site = Site({"/page": (200, "text/html", "<!doctype html><link rel=alternate type=application/rss+xml "
                               "href=/kernel.xml>")})
        stack.callback(site.stop)
        d = stack.enter_context(http_server(base, conf=CONF + "allow_networks = 127.0.0.0/8\n"))
        user_add(d)
        user_add(d, "bob")
        for f in ("notes", "letters"):
            d.feedwheel.run("add", "--folder", "News", "%s/%s.xml" % (site.url, f))
        d.feedwheel.run("add", "http://me:secret@127.0.0.1:1/")
        equal(Visitor(d).log_in("bob").post("/subscribe", url=site.url + "/radio.xml")[0].status, 303)
        b = stack.enter_context(browser(base))
        log_in(b, d)
        text = b.js("document.querySelector('.empty').textContent")
        holds("This server collects 2 feeds that you do not read yet" in text, text)
        pictures(b, "new-account")
        b.click(".offer button")
        b.there("[data-waiting]")
        equal(b.js("[document.querySelector('#status').textContent, document.querySelectorAll('.folder').length]"),
              ["2 feeds are added.", 1])
        pictures(b, "waiting")
        d.feedwheel.run_once()
        b.wait("document.querySelectorAll('.row').length === %d" % sum(len(FEEDS[f][2]) for f in ("notes", "letters")))
        equal(b.js("document.querySelector('#status').textContent"), "", "what was done is said once")
        visitor = Visitor(d).log_in()
        holds("offer" not in visitor.request("GET", "/add")[1], "no more feeds")
        equal(visitor.request("GET", "/?part=waiting")[1], "")
        # without serve_discovery a site's address is enough too: the first visit finds the feed, the next fetches it
        b.open("http://127.0.0.1:%d/add" % d.port)
        b.fill(".sheet [name=url]", site.url + "/page")
        b.key("Enter")
        b.there("[data-waiting]")
        d.feedwheel.run_once()
        d.feedwheel.run_once()
        b.wait("document.querySelectorAll('.row').length === %d" % len(FEEDS["kernel"][2]))
        equal(b.console(), [])


@case("each form says what it did, on the page that follows; no address makes it say so", needs="server")
def notices(base):
    with reading(base) as d:
        user_add(d, "root", "--admin")
        alice, root = Visitor(d).log_in(), Visitor(d).log_in("root")
        feed, entry = d.feedwheel.json("list")[0]["id"], states(d)[0][0]
        equal(root.post("/subscribe", url=d.site.url + "/notes.xml")[0].status, 303)
        def said(visitor, path, **form):
            r, text = visitor.post(path, **form)
            equal(r.status, 303, text)
            notice = next(c for c in r.headers.get_all("Set-Cookie") if c.startswith("fw_notice")).split(";")[0]
            login = visitor.cookie
            visitor.cookie = "%s; %s" % (login, notice)
            r, text = visitor.request("GET", r.headers["Location"][1:])
            visitor.cookie = login
            holds(any(c.startswith("fw_notice=;") for c in r.headers.get_all("Set-Cookie")), "it is said once")
            return re.search('id="status" role="status">([^<]*)<', text)[1]
        done = {}
        for visitor, path, form, words in (
                (alice, "/subscribe", {"url": d.site.url + "/notes.xml"}, "subscribed already"),
                (alice, "/subscribe", {"url": d.site.url + "/new.xml"}, "subscribed now"),
                (alice, "/subscription", {"feed": feed, "title": "x", "folder": "F"}, "saved"),
                (alice, "/folder", {"from": "F", "to": "G"}, "renamed"),
                (root, "/poll", {"feed": feed, "what": "pause"}, "paused"),
                (root, "/poll", {"feed": feed, "what": "resume"}, "fetched again"),
                (root, "/poll", {"feed": feed, "what": "now"}, "in a moment"),
                (root, "/collected", {}, "0 feeds are added"),
                (alice, "/read", {"id": entry, "read": 1}, "read"),
                (alice, "/read", {"id": entry, "read": 0}, "unread"),
                (alice, "/star", {"id": entry}, "star"), (alice, "/label", {"id": entry, "add": "x"}, "labels"),
                (alice, "/all", {"upto": 10**9}, "Marked as read"),
                (alice, "/revoke", {"name": "browser-0"}, "logged out"),
                (alice, "/unsubscribe", {"feed": feed}, "no longer"), (root, "/logout", {}, "logged out")):
            text = said(visitor, path, **form)
            holds(words in text, "%s: %s" % (path, text))
            done[path] = True
        r, _ = alice.post("/password", old=PASSWORD, new="new secret", again="new secret")
        holds(any(c.startswith("fw_notice=") for c in r.headers.get_all("Set-Cookie")), "the password")
        shown = {"/import", "/preview", "/token", "/login"} # a page of their own
        equal({p for m, p, _ in page_routes() if m == "POST"} - set(done) - shown, {"/password", "/instead"})
        alice.take(r)
        for path in ("/?fw_notice=5.1", "/?notice=<b>", "/feeds?status=x"):
            equal(re.search('role="status">([^<]*)<', alice.request("GET", path)[1])[1], "", path)
        for cookie in ("99.1", "5", "-1.1", "x.y", "<b>.1"):
            text = alice.request("GET", "/", headers={"Cookie": "%s; fw_notice=%s" % (alice.cookie, cookie)})[1]
            equal(re.search('role="status">([^<]*)<', text)[1], "", cookie)


@case("the password is changed, others are logged out; a session ends; wrong passwords are limited", needs="server")
def password(base):
    with http_server(base, conf="auth_failures_max = 3\nauth_failures_ms = 1h\n") as d:
        user_add(d)
        ours, other = Visitor(d).log_in(), Visitor(d).log_in()
        r = [ours.post("/password", old=PASSWORD, new="new secret", next="account", again=again)[0]
             for again in ("newer secret", "new secret")]
        equal(([x.status for x in r], r[1].headers["Location"]), ([400, 303], "./account"))
        equal([v.request("GET", "/feeds")[0].status for v in (ours, other)], [401, 401], "sessions of the old password")
        ours.take(r[1])
        equal(ours.request("GET", "/feeds")[0].status, 200)
        other.log_in(password="new secret")
        names = re.findall('name="name" value="(browser-[0-9a-f]+)"', ours.request("GET", "/account")[1])
        equal(len(names), 2)
        equal([ours.post("/revoke", name=n)[0].status for n in names if n not in ours.cookie], [303])
        equal(other.request("GET", "/feeds")[0].status, 401)
        r, text = ours.post("/token", name="phone")
        equal((r.status, bool(re.search("<b>[A-Za-z0-9]{43}</b>", text))), (200, True))
        r = ours.post("/logout")[0]
        holds(r.status == 303 and "Max-Age=0" in r.headers["Set-Cookie"], str(r.headers))
        equal(ours.request("GET", "/feeds")[0].status, 401, "the cookie after the end of its session")
        other.log_in(password="new secret")
        d.feedwheel.run("user", "passwd", "alice", stdin="newest secret\n")
        equal(other.request("GET", "/feeds")[0].status, 401, "the operator changed the password")
        wrong = [other.request("POST", "/login", {"name": "alice", "password": "x%d" % i})[0].status for i in range(4)]
        equal(wrong, [401, 401, 401, 429])
        equal(other.request("POST", "/login", {"name": "alice", "password": "newest secret"})[0].status, 429)
        # four logins, and the old password once
        equal((metric(d, "logins_total"), metric(d, "login_failures_total")), (5, 3))
        holds(metric(d, 'reader_requests_total{api="page"}') >= 10, "requests of the page")


# The column's next refreshes wait for letColumnIn(), which returns when they are done.
HOLD_COLUMN = """(() => {
    const request = window.fetch, open = new Promise(done => { window.openColumn = done; });
    let passed, n = 0;
    const all = new Promise(done => { passed = done; });
    window.letColumnIn = () => { openColumn(); return all; };
    window.fetch = async (...what) => {
        const response = await request(...what);
        if (String(what[0]).includes('part=column')) {
            const text = await response.text();
            n++;
            response.text = async () => { await open; setTimeout(() => --n || passed(), 0); return text; };
        }
        return response;
    };
})()"""


def labelled(d, label):
    return greader_ids(d, "user/-/label/" + label)


@case("labels: a view of each, set and removed in an open entry, by a key and by forms; not those that are folders",
      needs="server")
def labels(base):
    with reading(base) as d, browser(base) as b:
        ids = states(d)[0]
        b.size(1280, 800)
        log_in(b, d)
        equal(b.js("document.querySelectorAll('.tags, datalist').length"), 0, "an account without labels")
        b.keys("jl") # at once: l waits for the content
        b.wait("document.activeElement.name === 'add'")
        b.key("Escape")
        b.wait("!document.querySelector('.labels details').open")
        b.key("l")
        b.call("Input.insertText", text="To read & keep")
        pictures(b, "label")
        b.key("Enter")
        b.wait("document.querySelector('.open .label a')?.textContent === 'To read & keep'")
        b.there("#column .tags a")
        b.key("l")
        b.call("Input.insertText", text="garden")
        b.key("Enter")
        b.wait("document.querySelectorAll('.open .label').length === 2")
        b.js("document.querySelector('.open .label a').focus()")
        pictures(b, "labels")
        equal([labelled(d, name) for name in ("To+read+%26+keep", "garden")], [ids[:1]] * 2)
        b.key("l") # the name of a folder is refused, with words
        b.call("Input.insertText", text="Science")
        b.key("Enter")
        b.wait("document.querySelector('#status').textContent.startsWith('A folder has this name')")
        b.key("Escape")
        b.keys("ooj") # closed and opened, it has them still
        b.key("k")
        b.wait("document.querySelectorAll('.open .label').length === 2")
        b.key("j")
        b.wait("document.querySelector('.open .content') && !document.querySelector('.open .label')")
        b.js(HOLD_COLUMN)
        b.key("l")
        b.call("Input.insertText", text="garden")
        b.key("Enter")
        b.there(".open .label")
        # the column is refreshed while a link in it is pressed
        b.click("#column .tags li:last-child a", pressed=lambda: b.js("letColumnIn()"))
        b.wait("document.querySelector('h1').textContent === 'garden'")
        equal((rows(b), b.js("document.querySelector('.tags [aria-current]').textContent")), (2, "garden"))
        pictures(b, "label-view")
        b.key("n")
        b.key("m")
        wait_for("one to be unread", lambda: len(states(d)[0]) == ENTRIES - 1)
        b.open("http://127.0.0.1:%d/?view=unread&label=garden" % d.port)
        equal(rows(b), 1)
        b.key("A")
        b.there("dialog[open] .main")
        equal(b.js("document.querySelector('dialog[open] h2').textContent"), "Mark 1 entry as read?")
        b.key("Enter")
        b.there(".empty")
        equal(len(states(d)[0]), ENTRIES - 2, "only those with the label are read")
        b.open("http://127.0.0.1:%d/?label=garden" % d.port)
        for n in (1, 0):
            b.key("j")
            b.click(".open .label [value=garden]")
            wait_for("the label to be removed", lambda n=n: len(labelled(d, "garden")) == n)
            b.wait("!document.querySelector('.open .label [value=garden]')")
        b.key("r")
        b.wait("document.querySelector('.empty')?.textContent.includes('No entry has this label')")
        equal(b.js("[...document.querySelectorAll('.tags li')].map(l => l.textContent)"), ["To read & keep"])
        equal([e for e in b.console() if "400" not in e], [])
        # without script
        b.without_script()
        b.open("http://127.0.0.1:%d/entry?id=%d" % (d.port, ids[0]))
        b.click(".label [name=remove]")
        wait_for("no label", lambda: labelled(d, "To+read+%26+keep") == [])
        b.wait("!!document.querySelector('.alone') && !document.querySelector('.label, .tags')")
        b.click(".labels summary")
        b.fill(".labels [name=add]", "again")
        b.key("Enter")
        b.there(".alone .label")
        equal(labelled(d, "again"), ids[:1])
        # a folder with its name: it is in the column as that only, and can still be removed
        feed = d.feedwheel.json("list")[0]["id"]
        equal(Visitor(d).log_in().post("/subscription", feed=feed, title="", folder="again")[0].status, 303)
        b.open("http://127.0.0.1:%d/entry?id=%d" % (d.port, ids[0]))
        equal(b.js("[...document.querySelectorAll('#column .name')].filter(e => e.textContent === 'again').length"), 1)
        b.click(".label [name=remove]")
        b.wait("!!document.querySelector('.alone') && !document.querySelector('.label')")
        equal(d.feedwheel.sql("SELECT count(*) FROM entry_labels")[0][0], 0)


@case("the column: folders by name, whatever their case; a count has the folders below", needs="server")
def column(base):
    with http_server(base, conf=CONF) as d:
        user_add(d)
        visitor = Visitor(d).log_in()
        for i, folder in enumerate(("news", "News", "News/b", "news", "News", "News/a", "Newsletters", "", "news/a")):
            equal(visitor.post("/subscribe", url="http://h.example/%d" % i, title="%c" % (ord("z") - i),
                               folder=folder)[0].status, 303)
        for f in d.feedwheel.json("list"):
            d.feedwheel.run("push", "--content-type", "application/x-ndjson", f["url"], "-", stdin="".join(
                json.dumps({"id": str(k), "title": "t", "content_text": "x"}) + "\n" for k in range(f["id"])))
        shown = re.findall(r'class="name" dir="auto">([^<]*)</span>(?: <span class="n">(\d+))?', visitor.column())
        folders = [(name, int(n)) for name, n in shown if len(name) > 1]
        equal(folders, [("News", 2 + 5 + 3 + 6), ("news", 1 + 4 + 9), ("News/a", 6), ("news/a", 9), ("News/b", 3),
                        ("Newsletters", 7)])
        equal([name for name, _ in shown if len(name) == 1], list("vywzurxts"))


@case("a session's cookie is its name and its text together, and lives as long as the session", needs="server")
def cookie_bound(base):
    with http_server(base, conf=CONF) as d:
        user_add(d)
        one, two = Visitor(d).log_in(), Visitor(d).log_in()
        r = Visitor(d).request("POST", "/login", {"name": "alice", "password": PASSWORD})[0]
        holds("Max-Age=%d;" % (30 * 86400) in r.headers["Set-Cookie"] + ";", r.headers["Set-Cookie"])
        sent = one.request("GET", "/")[0].headers["Set-Cookie"] # it is used, so it lives longer
        holds(sent.startswith(one.cookie + ";") and "Max-Age=%d" % (30 * 86400) in sent, sent)
        (key, name, text), other = re.match("(.*)=(.*)[.](.*)", one.cookie).groups(), two.cookie.split("=")[1]
        mixed = Visitor(d)
        mixed.cookie, mixed.csrf = "%s=%s.%s" % (key, other.split(".")[0], text), one.csrf
        mixed.post("/logout")
        holds("data-csrf" not in mixed.request("GET", "/")[1], "a mixed cookie is no session")
        for visitor in one, two:
            holds("data-csrf" in visitor.request("GET", "/")[1], "both sessions are there")
        one.post("/logout")
        holds("data-csrf" not in one.request("GET", "/")[1] and "data-csrf" in two.request("GET", "/")[1], "one ended")


@case("without script: log in, older entries, an entry of its own, stars and reading by forms", needs="server")
def no_script(base):
    with reading(base) as d, browser(base) as b:
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", d.site.url + "/notes.xml", "-",
                        stdin="".join(json.dumps({"id": str(i), "title": "n%d" % i, "content_text": "x"}) + "\n"
                                      for i in range(25)))
        b.without_script()
        log_in(b, d, "/?view=all")
        equal(rows(b), 25)
        b.click(".older a")
        b.wait("document.querySelectorAll('.row').length === %d" % ENTRIES)
        b.click(".row:last-child .title")
        b.there(".alone .content")
        equal(len(states(d)[0]), 25 + ENTRIES) # a GET changes nothing
        b.click(".alone .mark")
        wait_for("the entry to be read", lambda: len(states(d)[0]) == 25 + ENTRIES - 1)
        b.click(".alone .star")
        wait_for("the star", lambda: len(states(d)[1]) == 1)
        b.there(".alone .star[aria-pressed=true]") # the same entry again
        b.click(".alone .keep")
        b.there("#river")
        equal(len(states(d)[0]), 25 + ENTRIES)
        b.open("http://127.0.0.1:%d/?view=starred" % d.port)
        equal(rows(b), 1)
        b.click(".row .star")
        wait_for("no star", lambda: states(d)[1] == [])
        b.click("[data-key=u]")
        b.click("#mark-all button")
        wait_for("all read", lambda: states(d)[0] == [])


# ---- ten thousand ----------------------------------------------------------------------------------------

MANY = 10000


@case("10,000 entries are scrolled through, each is there once, and keys stay quick", needs="server")
def many(base):
    of_the_browser()
    with reading(base) as d, browser(base) as b:
        d.feedwheel.run("push", "--content-type", "application/x-ndjson", d.site.url + "/notes.xml", "-",
                        stdin="".join(json.dumps({"id": str(i), "title": "Entry %d" % i, "content_html": "<p>%d" % i})
                                      + "\n" for i in range(MANY)))
        log_in(b, d)
        counts = []
        def listeners():
            return next(m["value"] for m in b.call("Performance.getMetrics")["metrics"]
                        if m["name"] == "JSEventListeners")
        b.call("Performance.enable")
        counts.append(listeners())
        b.js("window.scroller = setInterval(() => scrollTo(0, document.body.scrollHeight), 20), 1")
        b.wait("!document.querySelector('.older') && document.querySelectorAll('.row').length === %d" %
               (MANY + ENTRIES),
               120)
        b.js("clearInterval(scroller), 1")
        equal(b.js("new Set([...document.querySelectorAll('.row')].map(r => r.dataset.id)).size"), MANY + ENTRIES)
        counts.append(listeners())
        holds(counts[1] - counts[0] < 20, "listeners at the start and the end: %s" % counts)
        b.js("document.querySelectorAll('.row')[9000].querySelector('.title').focus()")
        took = b.js("""(async () => { const from = performance.now();
            for (let i = 0; i < 20; i++) {
                document.dispatchEvent(new KeyboardEvent('keydown', {key: 'n', bubbles: true}));
                await new Promise(requestAnimationFrame);
            }
            return (performance.now() - from) / 20; })()""".replace("document.dispatchEvent",
                                                                    "document.activeElement.dispatchEvent"))
        print("# a key among %d rows: %.1f ms to the next frame" % (MANY + ENTRIES, took), flush=True)
        b.keys("jj")
        b.there(".open .content")
        equal(b.console(), [])


# ---- attacks ---------------------------------------------------------------------------------------------

# Each would call pwned() or leave the page if it worked; all come as a content, as a title and as a feed's title.
ATTACKS = [
    "<script>pwned(1)</script>", "<img src=x onerror=pwned(2)>", "<svg onload=pwned(3)>",
    "<svg><script>pwned(4)</script>",
    "<a href='javascript:pwned(5)' id=attack5>x</a>", "<a href='jav&#x09;ascript:pwned(6)'>x</a>",
    "<iframe src='javascript:parent.pwned(7)'></iframe>", "<iframe srcdoc='<script>parent.pwned(8)</script>'></iframe>",
    "<object data='data:text/html,<script>parent.pwned(9)</script>'></object>", "<body onload=pwned(10)>",
    "<input autofocus onfocus=pwned(11)>", "<details open ontoggle=pwned(12)>x</details>",
    "<video><source onerror=pwned(13)></video>",
    "<math><mtext></p><style><img src=x onerror=pwned(14)></style></mtext></math>",
    "<svg></p><style><a id='</style><img src=x onerror=pwned(15)>'></a></style></svg>",
    "<noscript><p title='</noscript><img src=x onerror=pwned(16)>'></noscript>",
    "<template><img src=x onerror=pwned(17)></template>",
    "<form action='javascript:pwned(18)'><button>x</button></form>",
    "<base href='https://evil.test/'>", "<meta http-equiv=refresh content='0;url=https://evil.test/'>",
    "<link rel=stylesheet href='https://evil.test/x.css'>",
    "<style>@import 'https://evil.test/x.css';*{display:none}</style>",
    "<p style='position:fixed;inset:0;background:url(https://evil.test/)' class='row open current'>x</p>",
    "<div id=column name=csrf>x</div><a id=river href='#river'>x</a><img name=body id=main>",
    "<a class=player data-player='https://evil.test/' href='https://evil.test/'>x</a>",
    "<button class=star form=state formaction='https://evil.test/'>x</button>",
    "<input type=hidden name=csrf form=state value=x>", "</div></article></li></ol><script>pwned(28)</script>",
    "--><script>pwned(29)</script>", "]]><script>pwned(30)</script>", "&lt;script&gt;pwned(31)&lt;/script&gt;",
    "\"><script>pwned(32)</script>", "'><img src=x onerror=pwned(33)>", "<<script>pwned(34)//<</script>",
    "<scr<script>ipt>pwned(35)</script>", "<img src='x' srcset='javascript:pwned(36)'>",
    "<img/src=x/onerror=pwned(37)>",
    "<a href='https://www.youtube.com/watch?v=x\" onclick=\"pwned(38)'>x</a>",
    "<xmp><img src=x onerror=pwned(39)></xmp>",
    "<textarea><img src=x onerror=pwned(40)></textarea><img src=x onerror=pwned(40)>",
    "<a href='data:text/html,<script>opener.pwned(41)</script>'>x</a>", "<marquee onstart=pwned(42)>x</marquee>",
    "<isindex type=image src=1 onerror=pwned(43)>", "<plaintext><script>pwned(44)</script>",
    "<p>\u202eevil\u202c <b dir=rtl>x</b></p>", "<a href='vbscript:pwned(46)'>x</a>",
    "<embed src='https://evil.test/x.swf'>", "<audio src=x onerror=pwned(48)></audio>", "<dialog open>x</dialog>",
    "<a href='https://evil.test/' target=_top ping='https://evil.test/'>x</a>", "<use href='#i-star'>",
]


@case("contents and titles that attack the page do nothing", needs="server")
def attacks(base):
    entries = [{"id": str(i), "title": a, "content_html": "<p>before</p>%s<p>after</p>" % a, "summary": a,
                "authors": [{"name": a}]} for i, a in enumerate(ATTACKS)]
    feed = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": ATTACKS[1], "items": entries,
                       "home_page_url": "javascript:pwned(0)"})
    with reading(base, {"/evil.json": (200, "application/feed+json", feed)}) as d, browser(base) as b:
        visitor = Visitor(d).log_in()
        equal(visitor.post("/subscribe", url=d.site.url + "/evil.json", folder=ATTACKS[31])[0].status, 303)
        d.feedwheel.run_once()
        b.call("Page.addScriptToEvaluateOnNewDocument", source="""
            window.hits = []; window.pwned = n => hits.push(n);
            document.addEventListener('securitypolicyviolation',
                                      e => hits.push(e.violatedDirective + ' ' + e.blockedURI));""")
        log_in(b, d)
        b.open("http://127.0.0.1:%d/?view=unread&folder=%s" % (d.port, urllib.parse.quote(ATTACKS[31])))
        n = len(ATTACKS)
        b.wait("document.querySelectorAll('#river .row').length === %d" % n)
        here = b.js("location.href")
        for i in range(n):
            b.key("j")
            b.wait("""document.querySelector('.open .content') &&
                [...document.querySelectorAll('.row')].indexOf(document.querySelector('.row.open')) === %d""" % i)
            b.js("""(() => { const c = document.querySelector('.open .content');
                for (const e of c.querySelectorAll('a:not([href^=http]), button, details, video')) e.click(); })()""")
            equal(b.js("document.querySelectorAll('#column, #river, #main').length"), 3, "ids of the page")
            for what in ("script", "style", "iframe", "form", "input", "button", "object", "embed", "base", "meta",
                         "link",
                         "dialog", "template", "[onerror]", "[onload]", ".player", ".row", "[style]", "[form]"):
                equal(b.js("document.querySelectorAll('.open .content %s').length" % what), 0, what + " " + ATTACKS[i])
        equal((b.js("location.href.split('#')[0]"), b.js("hits")), (here, []))
        for path in ("/feeds", "/account", "/?q=" + urllib.parse.quote(ATTACKS[32]), "/add?url=" + urllib.parse.quote(
                ATTACKS[31])):
            b.open("http://127.0.0.1:%d%s" % (d.port, path))
            equal((b.js("hits"), b.js("document.querySelectorAll('script').length")), ([], 1), path)
        equal([e for e in b.console() if "evil.test" in e], [])


@case("forms lead nowhere else: next is a place of the page", needs="server")
def redirects(base):
    with http_server(base, conf="auth_failures_max = 0\n") as d:
        user_add(d)
        visitor = Visitor(d)
        for n, to in (("//evil.test/", "./"), ("https://evil.test/", "./"), ("\\\\evil.test", "./"), ("?view=all",
            "./?view=all"),
                      ("feeds", "./feeds"), ("feeds\r\nX: y", "./")):
            r = visitor.request("POST", "/login", {"name": "alice", "password": PASSWORD, "next": n})[0]
            equal((r.status, r.headers["Location"]), (303, to), n)
        r, _ = visitor.request("POST", "/login", {"name": "alice", "password": PASSWORD},
                               {"Origin": "http://127.0.0.1:%d" % d.port})
        cookie = r.headers["Set-Cookie"]
        for word in ("fw_session=browser-", "; HttpOnly", "; SameSite=Lax", "; Path=/"):
            holds(word in cookie and "Secure" not in cookie, cookie)
        # a proxy that speaks TLS for us
        r, _ = visitor.request("POST", "/login", {"name": "alice", "password": PASSWORD},
                               {"Origin": "https://127.0.0.1:%d" % d.port, "Sec-Fetch-Site": "same-origin"})
        cookie = r.headers["Set-Cookie"]
        holds(cookie.startswith("__Host-fw_session=") and cookie.endswith("; Secure"), cookie)
        tls = {"Origin": "https://127.0.0.1:%d" % d.port}
        secure = Visitor(d).take(r)
        # a host beside this one can set the other cookie only: it counts for no form
        r, text = Visitor(d).log_in().post("/star", id="1", star="1")
        equal(r.status, 303, text)
        planted = Visitor(d).log_in()
        r, text = planted.request("POST", "/star", {"csrf": planted.csrf, "id": "1", "star": "1"}, tls)
        equal(r.status, 401, text)
        for form, headers in ((planted, {}), (secure, tls)):
            r, text = form.request("POST", "/logout", {"csrf": form.csrf}, headers)
            equal(r.status, 303, text)
            equal(sorted(c.split(";")[0] for c in r.headers.get_all("Set-Cookie") if "_session" in c),
                  ["__Host-fw_session=", "fw_session="])
        for name in "js", "css":
            found = re.search('reader[.]%s[?]v=[0-9a-f]+' % name, visitor.request("GET", "/")[1])[0]
            r, text = visitor.request("GET", "/" + found)
            holds(r.status == 200 and "immutable" in r.headers["Cache-Control"], str(r.headers))
            holds(1000 < len(text) < 40000, "%s: %d bytes" % (found, len(text)))
        r, _ = visitor.request("GET", "/")
        for name, word in (("Content-Security-Policy", "script-src 'self';"), ("X-Content-Type-Options", "nosniff"),
                           ("Referrer-Policy", "same-origin"), ("Cache-Control", "no-store"),
                           ("Cross-Origin-Opener-Policy", "same-origin")):
            holds(word in r.headers[name], "%s: %s" % (name, r.headers[name]))
        holds("unsafe" not in r.headers["Content-Security-Policy"], "the policy allows nothing within the page")


# ---- who may what ----------------------------------------------------------------------------------------

def page_routes():
    """Method, path and right of each route of the page, from the server's table."""
    with open(os.path.join(ROOT, "src", "http", "routes.c"), encoding="ascii") as f:
        text = f.read()
    found = [(m, p, False) for m, p in re.findall(r'\bWEB_(GET|POST)\("(/[^"]*)"', text)]
    found += [(m, p, "web_admin" in rest) for m, p, rest in re.findall(
        r'\{"(GET|POST)", "(/[^"]*)",\s*http_web, ([^}]*)\}', text)]
    holds(len(found) >= 25, "routes in the table: %s" % found)
    return found


@case("no GET changes anything, whatever its route", needs="server")
def gets_change_nothing(base):
    with reading(base) as d:
        with open(os.path.join(ROOT, "src", "http", "routes.c"), encoding="ascii") as f:
            text = f.read()
        paths = re.findall(r'\{"GET", (?:MINIFLUX )?"(/[^"]*)"', text) + re.findall(r'WEB_GET\("([^"]*)"', text)
        paths += ["/reader/" + p for p in re.findall(r'READER_GET\("([^"]*)"', text)]
        paths += ["/miniflux/v1/" + p for p in re.findall(r'MINIFLUX_GET\("([^"]*)"', text)]
        paths += ["/fever", "/fever/?api&items"]
        holds(len(paths) >= 60, "routes in the table: %s" % paths)
        d.feedwheel.run("order", "add", "a", "x", "--tag", "x")
        token = d.feedwheel.run("user", "token", "alice", "phone").stdout.split()[-1]
        alice = Visitor(d).log_in()
        headers = {"Authorization": "GoogleLogin auth=" + token, "X-Auth-Token": token}

        def everything():
            tables = d.feedwheel.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%'")
            held = {}
            for name, in tables: # without a token's last use, and the record by which the server leads the sending
                columns = [c[1] for c in d.feedwheel.sql("PRAGMA table_info(%s)" % name)
                           if c[1] not in ("used_ms", "until_ms")]
                held[name] = [repr(row) for row in d.feedwheel.sql("SELECT %s FROM %s" % (", ".join(columns), name))
                              if row[:2] != ("sender", b"leader")]
            return held
        # a folder gets its number when a client first asks for numbers
        equal(alice.request("GET", "/miniflux/v1/categories", headers=headers)[0].status, 200)
        before, codes = everything(), set()
        for path in paths:
            for word, value in ("{id}", "1"), ("{name}", "a"), ("{feed}", "all.atom"), ("{token}", "x"), (
                    "{stream}", "user/-/state/com.google/reading-list"):
                path = path.replace(word, value)
            if path == "/v1/stream":
                continue # has no end
            query = "" if path.startswith(("/v1", "/openapi", "/healthz", "/feeds/")) else "?id=1&feed=1&read=1"
            status = alice.request("GET", path + ("" if "?" in path else query), headers=headers)[0].status
            codes.add(status)
            after = everything()
            equal([r for t in after for r in set(after[t]) ^ set(before[t])], [], "%s (%d)" % (path, status))
        holds(200 in codes and not [c for c in codes if c >= 500], codes)


@case("every route: without a session, after its end, with another's form, from another site, without the right",
      needs="server")
def authorization(base):
    with reading(base) as d:
        user_add(d, "bob")
        user_add(d, "root", "--admin")
        alice, bob, root = (Visitor(d).log_in(name) for name in ("alice", "bob", "root"))
        ended, nobody = Visitor(d).log_in(), Visitor(d)
        ended.post("/logout")
        expired = Visitor(d).log_in()
        name = re.search("browser-[0-9a-f]+", expired.cookie)[0]
        d.feedwheel.sql("UPDATE account_tokens SET until_ms = 1 WHERE name = ?", name, write=True)
        forged = Visitor(d)
        forged.cookie = alice.cookie[:-3] + "abc"
        before = states(d)
        foreign = [{"Origin": "http://evil.test"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                   {"Origin": "null"}]
        alice.post("/label", id=before[0][0], add="hers")
        form = {"add": "x", "id": before[0][0], "feed": 1, "url": "http://x.example/", "upto": 10**9,
                "what": "pause", "name": "x", "old": "x", "new": "y", "again": "y", "from": "Science", "to": "x",
                "run": 1}
        for method, path, admin in page_routes():
            def status(visitor, csrf=None, headers=None, method=method, path=path):
                if method == "GET":
                    return visitor.request("GET", path, headers=headers)[0].status
                return visitor.request("POST", path, {"csrf": csrf or visitor.csrf or alice.csrf, **form},
                                       headers)[0].status
            if path == "/login" and method == "POST":
                equal([status(nobody, headers=h) for h in foreign], [403] * 4, path)
                continue
            refused = 200 if path == "/" else 401
            for visitor in (nobody, ended, expired, forged):
                equal(status(visitor), refused, "%s %s without a session" % (method, path))
            if path == "/":
                holds('name="password"' in expired.request("GET", "/")[1], "the login is shown")
            if method == "POST":
                equal([status(alice, headers=h) for h in foreign], [403] * 4, path + " from another site")
                equal(status(alice, csrf=bob.csrf), 403, path + " with another's form")
                equal(status(alice, csrf="0" * 32), 403, path + " with a wrong secret")
            if admin:
                equal(status(alice), 403, path + " without the right")
                holds(status(root) in (200, 303, 404), path + " with it")
        equal(states(d), before, "nothing has changed")
        # bob's requests about alice's entries and feeds
        feed = d.feedwheel.json("list")[0]["id"]
        equal(bob.request("GET", "/entry?id=%d" % before[0][0])[0].status, 404)
        for action in ({"add": "x"}, {"add": "hers"}, {"remove": "hers"}):
            equal(bob.post("/label", id=before[0][0], **action)[0].status, 404)
        equal((labelled(d, "hers"), bob.request("GET", "/?label=hers")[0].status), (before[0][:1], 404))
        for path, more in (("/read", {"id": before[0]}), ("/star", {"id": before[0], "star": 1}), ("/all",
            {"upto": 10**9}),
                           ("/all", {"upto": 10**9, "feed": feed})):
            bob.post(path, **more)
        equal([bob.post(path, feed=feed, title="x")[0].status for path in ("/unsubscribe", "/subscription",
                                                                           "/instead")],
              [404] * 3)
        equal(bob.post("/poll", feed=feed, what="pause")[0].status, 403)
        holds("Field Notes" not in bob.column() and "Field Notes" in alice.column(), "the column is the account's")
        equal(states(d), before, "nothing of alice has changed")
        equal(bob.request("GET", "/export")[1].count("xmlUrl"), 0)
        equal(d.request("GET", "/healthz")[0], 200)


@case("wrong parameters are refused with words", needs="server")
def wrong(base):
    with reading(base) as d:
        alice = Visitor(d).log_in()
        long = "x" * 300
        for path, more, words in (
                ("/read", {}, "Invalid id"), ("/read", {"id": "x"}, "Invalid id"), ("/star", {"id": "-1"},
                    "Invalid id"),
                ("/label", {"id": 1, "add": ""}, "missing"), ("/label", {"id": 1, "add": long}, "too long"),
                ("/label", {"id": 1, "remove": ""}, "missing"), ("/label", {"id": 1, "add": "Science"}, "A folder"),
                ("/label", {"id": 1, "remove": "none"}, "no such label"), ("/label", {"add": "x"}, "no such entry"),
                ("/label", {"id": 10**9, "add": "x"}, "no such entry"),
                ("/all", {}, "Invalid upto"), ("/all", {"upto": 1, "label": "none"}, "no such label"),
                ("/all", {"upto": 9, "feed": "x"}, "Invalid feed"),
                ("/all", {"upto": 9, "folder": long}, "Invalid feed"),
                ("/all", {"upto": 9, "label": long}, "Invalid feed"), ("/subscribe", {"url": ""}, "missing"),
                ("/subscribe", {"url": "ftp://x.example/"}, "http"), ("/subscribe", {"url": "http://x.example/",
                    "title": long},
                                                                    "too long"),
                ("/folder", {"from": ""}, "too long"),
                ("/preview", {"url": "http://x.example/"}, "shows no preview"),
                ("/import", {"opml": "x"}, "not an OPML"), ("/import", {"opml": "<opml><body/></opml>"}, "no feeds"),
                ("/token", {"name": ""}, "missing"), ("/token", {"name": "a b"}, "name"),
                ("/password", {"old": "x", "new": "a", "again": "b"}, "differ"),
                ("/password", {"old": "x", "new": "long enough", "again": "long enough"}, "wrong"),
                ("/password", {"old": PASSWORD, "new": "short", "again": "short"}, "8")):
            r, text = alice.post(path, **more)
            holds(400 <= r.status < 500 and words in text, "%s %s: %d %s" % (path, more, r.status, text))
        holds("its feed is found when it is fetched" in alice.request("GET", "/add")[1], "without serve_discovery")
        r, text = alice.request("GET", "/?q=%22")
        equal(r.status, 200)
        r, text = alice.request("GET", "/?q=title:")
        holds(r.status == 200 and 'class="trouble"' in text, text[-800:])
        r, _ = alice.request("POST", "/import", headers={"Content-Type": "multipart/form-data; boundary=x"}, body="y")
        equal(r.status, 400)
        equal(alice.request("GET", "/entry?id=99999999")[0].status, 404)
        for path, words in (("/?folder=nosuch", "You have no folder \u201cnosuch\u201d"),
                            ("/?feed=999999", "You are not subscribed to this feed"),
                            ("/?view=starred&feed=999999", "You are not subscribed")):
            r, text = alice.request("GET", path)
            holds(r.status == 404 and words in text, "%s: %d %s" % (path, r.status, text[-800:]))
        for path, up in (("/nosuch", ""), ("/a/b/c", "../../")):
            r, text = alice.request("GET", path, headers={"Accept": "text/html,*/*;q=0.8"})
            holds(r.status == 404 and "There is no page at this address" in text and 'href="./%s"' % up in text and
                  'href="%sreader.css' % up in text, text)
            equal(alice.request("GET", path, headers={"Accept": "*/*"})[0].headers["Content-Type"],
                  "application/problem+json", "a program gets an error for programs")
        text = alice.request("POST", "/login", {"name": "alice", "password": "wrong"})[1]
        holds(re.search('name="password"[^>]* autofocus', text), "the password is asked for again: " + text)
        r, text = alice.request("GET", "/?label=none")
        holds(r.status == 404 and "no such label" in text, text)


# ---- for everybody ---------------------------------------------------------------------------------------

AXE = "axe-core@4.10.3"
NPM = os.path.join(BUILD, "tests", "system", "npm-axe") # kept from run to run


def axe():
    """The text of axe-core, from npm's registry."""
    path = os.path.join(NPM, "node_modules", "axe-core", "axe.min.js")
    if not os.path.exists(path):
        if not shutil.which("npm"):
            raise Skip("npm is not installed")
        os.makedirs(NPM, exist_ok=True)
        r = subprocess.run(
            ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1",
             "--fetch-timeout=60000", "--prefix", NPM, AXE], capture_output=True, text=True, check=False, timeout=300)
        if r.returncode:
            raise Skip("npm cannot install %s: %s" % (AXE, r.stderr.strip()[-200:]))
    with open(path, encoding="utf-8") as f:
        return f.read()


@case("axe-core finds no violation on any page, in both widths and both colours", needs="server")
def accessible(base):
    of_the_browser()
    script = axe()
    with reading(base, conf="serve_discovery = yes\n") as d, browser(base) as b:
        d.feedwheel.run("user", "add", "--admin", "root", stdin=PASSWORD + "\n")
        def check(name):
            b.js("document.getAnimations().forEach(a => a.finish()), 1")
            b.js(script + "; 1")
            found = b.js("""axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v =>
                v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html.slice(0,
                    200) + n.failureSummary).join(' | ')))""")
            equal(found, [], name)
            holds(b.js("document.documentElement.scrollWidth <= innerWidth"), name + " fits the window's width")
        def check_all(name, views=VIEWS[::-1]):
            for width, height, phone, dark in views:
                b.size(width, height, dark, phone)
                check("%s, %d pixels, %s" % (name, width, "dark" if dark else "light"))
        b.open("http://127.0.0.1:%d/" % d.port)
        check_all("login")
        picture(b, "login-1280-light")
        log_in(b, d)
        check_all("river")
        b.keys("jjs")
        b.there(".open .content")
        check_all("entry")
        b.key("?")
        check_all("keys")
        b.key("Escape")
        b.size(390, 844, False, True)
        b.js("location.hash = '#column'")
        check("column")
        picture(b, "column-390-light")
        b.size(1280, 800)
        visitor = Visitor(d).log_in()
        for id, name in ((1, "To read"), (1, "\u0642\u0631\u0627\u0621\u0629"), (2, "x" * 60)):
            equal(visitor.post("/label", id=id, add=name)[0].status, 303)
        b.open("http://127.0.0.1:%d/?label=To%%20read" % d.port)
        b.keys("jl")
        b.there(".labels details[open]")
        check_all("labels")
        equal(visitor.post("/subscribe", url=d.site.url + "/gone.xml")[0].status, 303)
        d.feedwheel.run_once()
        gone = next(f["id"] for f in d.feedwheel.json("list") if f["url"].endswith("/gone.xml"))
        for path in ("/?view=starred", "/?view=all&feed=%d" % gone, "/?folder=nosuch", "/entry?id=2",
                     "/?q=nothing-has-this", "/feeds", "/feeds?folder=Science", "/add", "/account", "/entry?id=1"):
            b.open("http://127.0.0.1:%d%s" % (d.port, path))
            check_all(path, SOME)
        visitor.post("/logout")
        b.call("Network.clearBrowserCookies")
        b.open("http://127.0.0.1:%d/" % d.port)
        b.fill("[name=name]", "root")
        b.fill("[name=password]", PASSWORD)
        b.key("Enter")
        b.there("#column")
        for path in ("/runs", "/orders"):
            b.open("http://127.0.0.1:%d%s" % (d.port, path))
            check_all(path, SOME)


run()
