#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Writes sample feeds in each format from demo/samples.txt.

usage: make-samples.py OUTDIR [--now UNIX_SECONDS] [--copies N] [--entries N] [--bytes N]

The same arguments give the same bytes. Dates count back from --now (default: the current time).
--copies writes each feed N times, for N places. --entries and --bytes make the documents as large as
real ones, for benchmarks.
"""
import argparse
import copy
import datetime
import html
import json
import os
import random
import sys
import time

EXTENSIONS = {
    "content": "http://purl.org/rss/1.0/modules/content/", "dc": "http://purl.org/dc/elements/1.1/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd", "podcast": "https://podcastindex.org/namespace/1.0",
    "media": "http://search.yahoo.com/mrss/", "georss": "http://www.georss.org/georss",
    "atom": "http://www.w3.org/2005/Atom", "sy": "http://purl.org/rss/1.0/modules/syndication/",
}
DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
UNITS = {"h": 3600, "d": 86400}
PLACES = ["", "Eastmere", "Long Ferry", "Ullandale", "Sandgate Low", "Piers Hollow", "Nine Elms Bay", "Corvey",
          "Tarnholm", "Brackwater", "Old Quay", "Fennick", "Upper Lode", "Marrowby", "Saltcross", "Windle"]
AUTHORS = ["Mira Oldenfeld", "Tam Brackwater", "Ilse Quandt-Moor", "Jonah Fenwhistle", "Odile Sarrow"]


class Feed:
    """One block of samples.txt."""

    def __init__(self, line):
        name, self.format, self.lang, every, self.title, self.about = [p.strip() for p in line.split("|")]
        self.name = name
        self.every = int(every[:-1]) * UNITS[every[-1]]
        self.site = "https://%s.example/" % name.rsplit(".", 1)[0]
        self.titles, self.sentences, self.entries = [], [], []

    def copy(self, k):
        """The k-th feed of this kind; 0 is the feed itself."""
        c = copy.copy(self)
        c.entries = []
        if k:
            place = PLACES[k % len(PLACES)] or "Home"
            place += " %d" % (k // len(PLACES) + 1) if k >= len(PLACES) else ""
            slug = "%s-%s" % (self.name.rsplit(".", 1)[0], place.lower().replace(" ", "-"))
            c.name = "%s.%s" % (slug, self.name.rsplit(".", 1)[1])
            c.title = "%s, %s" % (self.title, place)
            c.site = "https://%s.example/" % slug
            c.titles = random.Random("titles of " + c.name).sample(self.titles, len(self.titles))
        return c


class Entry:
    """Number 1 is the oldest. The paragraphs are plain text."""

    def __init__(self, feed, number, title, at, paragraphs, rng):
        self.number, self.title, self.at, self.paragraphs = number, title, at, paragraphs
        self.link = "%snotes/%d" % (feed.site, number)
        self.id = "tag:%s,2026:%d" % (feed.site[8:-1], number)
        self.author = rng.choice(AUTHORS)
        self.tags = [w.strip(".,:;!?").lower() for w in title.split() if len(w) > 4][:3]
        self.size = rng.randrange(4_000_000, 40_000_000)
        self.seconds = rng.randrange(600, 4200)

    def html(self):
        return "".join("<p>%s</p>\n" % html.escape(p, quote=False) for p in self.paragraphs)


def read_feeds(path):
    feeds = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            mark, text = line[:2], line[2:].strip()
            if mark == "= ":
                feeds.append(Feed(text))
            elif mark == "- ":
                feeds[-1].titles.append(text)
            elif mark == "> ":
                feeds[-1].sentences.append(text)
    return feeds


def fill(feed, now, entry_n, want_bytes):
    """Adds the feed's entries, newest first."""
    rng = random.Random(feed.name)
    n = entry_n or len(feed.titles)
    per_entry = max(want_bytes // n - 700, 200) if want_bytes else 0
    at = now - rng.randrange(120, min(feed.every, 36 * 3600))
    for k in range(n):
        title = feed.titles[k % len(feed.titles)]
        if k >= len(feed.titles):
            title += " (%d)" % (k // len(feed.titles) + 1)
        pool = feed.sentences[:]
        rng.shuffle(pool)
        paragraphs = [" ".join(pool[:2]), " ".join(pool[2:4])]
        size = 0
        while size < per_entry:
            paragraphs.append(" ".join(rng.choice(feed.sentences) for _ in range(5)))
            size += len(paragraphs[-1].encode())
        feed.entries.append(Entry(feed, n - k, title, at, paragraphs, rng))
        at -= int(feed.every * rng.uniform(0.6, 1.4))


def rfc822(at, zone="+0000"):
    t = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    return "%s, %02d %s %d %s %s" % (
        DAYS[t.weekday()],
        t.day, MONTHS[t.month - 1],
        t.year, t.strftime("%H:%M:%S"),
        zone)


def rfc3339(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def odd_date(at, k):
    """Forms in real feeds, all of the same instant."""
    t = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    east = t + datetime.timedelta(hours=2)
    return [rfc822(at, "GMT"), rfc822(at, "UT"), t.strftime("%Y-%m-%d %H:%M:%S") + "Z",
            "%d %s %d %s Z" % (t.day, MONTHS[t.month - 1], t.year, t.strftime("%H:%M")),
            "%s, %02d %s %d %s +0200" % (DAYS[east.weekday()], east.day, MONTHS[east.month - 1], east.year,
                                         east.strftime("%H:%M:%S"))][k % 5]


def x(text):
    return html.escape(text, quote=True)


def element(name, text, attributes=""):
    return "<%s%s>%s</%s>\n" % (name, attributes, text, name)


def namespaces(names):
    return "".join(' xmlns:%s="%s"' % (n, EXTENSIONS[n]) for n in names)


# ---- RSS 0.9x and 2.0 ------------------------------------------------------------------------------

def rss_item(feed, e, k):
    kind = feed.format
    out = ["<item>\n", element("title", x(e.title)), element("link", x(e.link))]
    if kind in ("rss091", "rss092"):
        out.append(element("description", x(" ".join(e.paragraphs))))
        out.append(element("pubDate", rfc822(e.at))) # not in the specification, but in nearly every feed
        if kind == "rss092":
            out.append(element("category", x(e.tags[0] if e.tags else "notes")))
        return "".join(out) + "</item>\n"
    out.append(element("guid", x(e.id), ' isPermaLink="false"'))
    out.append(element("pubDate", odd_date(e.at, k) if kind == "rss2-dates" else rfc822(e.at)))
    if kind == "rss2-content":
        out.append(element("dc:creator", x(e.author)))
        out.append(element("description", x(e.paragraphs[0])))
        out.append(element("content:encoded", "<![CDATA[%s]]>" % e.html()))
    else:
        out.append(element("description", x(e.html())))
    out.extend(element("category", x(t)) for t in e.tags)
    if kind.startswith("podcast"):
        out.append('<enclosure url="%saudio/%d.mp3" length="%d" type="audio/mpeg"/>\n' % (feed.site, e.number, e.size))
        out.append(element("itunes:duration", "%d:%02d" % divmod(e.seconds, 60)))
        out.append(element("itunes:episode", str(e.number)))
    if kind == "podcast20":
        out.append('<podcast:transcript url="%saudio/%d.vtt" type="text/vtt"/>\n' % (feed.site, e.number))
        out.append('<podcast:chapters url="%saudio/%d.json" type="application/json+chapters"/>\n'
                   % (feed.site, e.number))
    if kind == "rss2-media":
        out.append('<media:content url="%sphotos/%d.jpg" type="image/jpeg" width="1600" height="1067">'
                   '<media:title>%s</media:title></media:content>\n' % (feed.site, e.number, x(e.title)))
    if kind == "rss2-geo":
        out.append(element("georss:point", "%.4f %.4f" % (46.2 + k / 100, 9.8 - k / 70)))
    return "".join(out) + "</item>\n"


def rss(feed):
    kind = feed.format
    version = {"rss091": "0.91", "rss092": "0.92"}.get(kind, "2.0")
    names = {"rss2-content": ["content", "dc"], "podcast": ["itunes"], "podcast20": ["itunes", "podcast"],
             "rss2-media": ["media"], "rss2-geo": ["georss"], "rss2": ["atom", "sy"]}.get(kind, [])
    out = ['<rss version="%s"%s>\n<channel>\n' % (version, namespaces(names)), element("title", x(feed.title)),
           element("link", feed.site), element("description", x(feed.about)), element("language", feed.lang)]
    if kind == "rss2":
        out.append('<atom:link rel="self" type="application/rss+xml" href="%sfeed.xml"/>\n' % feed.site)
        out.append(element("sy:updatePeriod", "hourly") + element("sy:updateFrequency", "1"))
    if kind == "rss2-content":
        out.append(element("ttl", "90"))
    if kind.startswith("podcast"):
        out.append(element("itunes:author", x(AUTHORS[0])) + '<itunes:image href="%scover.jpg"/>\n' % feed.site +
                   '<itunes:category text="Society"/>\n' + element("itunes:explicit", "false"))
    if kind == "podcast20":
        out.append(element("podcast:locked", "no"))
    out.extend(rss_item(feed, e, k) for k, e in enumerate(feed.entries))
    return "".join(out) + "</channel>\n</rss>\n"


def rdf(feed):
    out = ['<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"%s>\n'
           % namespaces(["dc", "content"]), '<channel rdf:about="%s">\n' % feed.site, element("title", x(feed.title)),
           element("link", feed.site), element("description", x(feed.about)), element("dc:language", feed.lang),
           "<items><rdf:Seq>\n"]
    out.extend('<rdf:li rdf:resource="%s"/>\n' % x(e.link) for e in feed.entries)
    out.append("</rdf:Seq></items>\n</channel>\n")
    for e in feed.entries:
        out.append('<item rdf:about="%s">\n' % x(e.link) + element("title", x(e.title)) + element("link", x(e.link)) +
                   element("description", x(e.paragraphs[0])) + element("dc:creator", x(e.author)) +
                   element("dc:date", rfc3339(e.at)) + element("content:encoded", x(e.html())) + "</item>\n")
    return "".join(out) + "</rdf:RDF>\n"


# ---- Atom --------------------------------------------------------------------------------------------

def atom_entry(feed, e):
    kind = feed.format
    old = kind == "atom03"
    out = [
        "<entry>\n", element("title", x(e.title)),
        '<link rel="alternate" type="text/html" href="%s"/>\n' % x(e.link),
        element("id", x(e.id)),
        element("issued" if old else "published", rfc3339(e.at)),
        element("modified" if old else "updated", rfc3339(e.at)),
        "<author>%s</author>\n" % element("name", x(e.author)).strip()]
    if kind == "atom-tags":
        out.extend('<category term="%s"/>\n' % x(t) for t in ["release"] + e.tags)
    if kind == "atom-links":
        out.append('<link rel="related" href="%sdrafts/%d"/>\n' % (feed.site, e.number))
        out.append('<link rel="enclosure" type="text/plain" length="%d" href="%sdrafts/%d.txt"/>\n'
                   % (e.size, feed.site, e.number))
    if kind == "atom-xhtml":
        out.append('<summary>%s</summary>\n<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">%s</div>'
                   '</content>\n' % (x(e.paragraphs[0]), e.html()))
    elif old:
        out.append('<content type="text/html" mode="escaped">%s</content>\n' % x(e.html()))
    else:
        out.append('<content type="html">%s</content>\n' % x(e.html()))
    return "".join(out) + "</entry>\n"


def atom(feed):
    old = feed.format == "atom03"
    out = ['<feed %s xml:lang="%s">\n' % ('version="0.3" xmlns="http://purl.org/atom/ns#"' if old else
                                          'xmlns="http://www.w3.org/2005/Atom"', feed.lang),
           element("title", x(feed.title)), element("tagline" if old else "subtitle", x(feed.about)),
           '<link rel="alternate" type="text/html" href="%s"/>\n' % feed.site,
           '<link rel="self" type="application/atom+xml" href="%sfeed.atom"/>\n' % feed.site, element("id", feed.site),
           element("modified" if old else "updated", rfc3339(feed.entries[0].at))]
    out.extend(atom_entry(feed, e) for e in feed.entries)
    return "".join(out) + "</feed>\n"


# ---- JSON Feed ------------------------------------------------------------------------------------------

def json_feed(feed):
    new = feed.format == "json11"
    items = []
    for e in feed.entries:
        item = {"id": e.id, "url": e.link, "title": e.title, "content_html": e.html(), "summary": e.paragraphs[0],
                "date_published": rfc3339(e.at), "tags": e.tags}
        item.update({"authors": [{"name": e.author}], "language": feed.lang} if new else {"author": {"name": e.author}})
        items.append(item)
    return json.dumps({"version": "https://jsonfeed.org/version/" + ("1.1" if new else "1"), "title": feed.title,
                       "home_page_url": feed.site, "feed_url": feed.site + "feed.json", "description": feed.about,
                       "items": items}, ensure_ascii=False, indent=1) + "\n"


# ---- documents --------------------------------------------------------------------------------------------

CHARSETS = {"rss2-cp1251": "windows-1251", "rss2-latin1": "iso-8859-1", "rss2-sjis": "shift_jis"}


def document(feed):
    kind = feed.format
    if kind.startswith("json"):
        return json_feed(feed).encode()
    charset = CHARSETS.get(kind, "utf-8")
    text = '<?xml version="1.0" encoding="%s"?>\n' % charset
    text += (atom if kind.startswith("atom") else rdf if kind == "rss10" else rss)(feed)
    if kind == "rss2-broken-amp":  # "Lamp & lens", as authors type it
        text = text.replace("&amp;amp;", "& ").replace("&amp; ", "& ").replace("flour, oil", "flour, &nbsp;oil")
    elif kind == "rss2-broken-tags":  # the end is missing
        text = text[:text.rindex("</item>")]
    elif kind == "rss2-junk":  # a warning before the document
        text = "\n\nWarning: clock not set in /srv/prices on line 12\n" + text
    return text.encode(charset, "xmlcharrefreplace")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("outdir")
    p.add_argument("--now", type=int, default=int(time.time()))
    p.add_argument("--copies", type=int, default=1)
    p.add_argument("--entries", type=int, default=0)
    p.add_argument("--bytes", type=int, default=0)
    a = p.parse_args()
    os.makedirs(a.outdir, exist_ok=True)
    for kind in read_feeds(os.path.join(here, "..", "demo", "samples.txt")):
        for k in range(a.copies):
            feed = kind.copy(k)
            fill(feed, a.now, a.entries, a.bytes)
            with open(os.path.join(a.outdir, feed.name), "wb") as f:
                f.write(document(feed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
