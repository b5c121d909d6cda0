# SPDX-License-Identifier: ISC
"""A site with feeds as people write them, for the tests and the picture of the page."""
import datetime
import html
import http.server
import socketserver
import threading

FEEDS = {
    "notes": ("Field Notes", "Science", [
        ("How a river decides where to go", "Water takes the easiest way, but it also makes it. A flume of sand and a "
         "fortnight of patience show how a meander begins."),
        ("The tide tables of 1831", "Before computers there were computers: a roomful of people with pencils, who "
         "predicted the sea a year ahead and were off by minutes."),
        ("What lichens know about air", "They have no roots. Everything that they are made of came with the wind, "
         "which makes them honest witnesses."),
        ("A map of all the noise in a forest", ""),
    ]),
    "letters": ("Letters from the Workshop", "Making", [
        ("Sharpening is a conversation", "The stone tells you when you are done, if you listen for the pitch."),
        ("Three hinges that outlived their doors", "On iron, oak, and the cheapest grease in the village."),
        ("Why I threw away the drill press", ""),
    ]),
    "kernel": ("Small Machines", "Making/Software", [
        ("A scheduler in two pages", "Not because two pages are enough, but because the second page is where the "
         "first idea fails."),
        ("Notes on writing files that survive", "Write, sync, rename, sync the directory. Then pull the plug and see."),
        ("The long tail of a hash table", "Percentiles of a lookup, and the one bucket that everybody meets."),
    ]),
    "ar": ("\u0645\u062c\u0644\u0629 \u0627\u0644\u0639\u0644\u0648\u0645", "Languages", [
        ("\u0643\u064a\u0641 \u062a\u062e\u062a\u0627\u0631 \u0627\u0644\u0623\u0646\u0647\u0627\u0631 \u0637"
         "\u0631\u064a\u0642\u0647\u0627\u061f",
         "\u062a\u0633\u0644\u0643 \u0627\u0644\u0645\u064a\u0627\u0647 \u0623\u0633\u0647\u0644 \u0627\u0644"
         "\u0637\u0631\u0642\u060c "
         "\u0644\u0643\u0646\u0647\u0627 \u062a\u0635\u0646\u0639\u0647\u0627 \u0623\u064a\u0636\u064b\u0627."),
    ]),
    "ja": ("\u5ddd\u306e\u4fbf\u308a", "Languages", [
        ("\u5ddd\u306f\u3069\u3053\u3078\u884c\u304f\u306e\u304b\u3001\u305d\u306e\u9053\u3092\u6c7a\u3081"
         "\u308b\u306e\u306f\u4f55\u304b",
         "\u6c34\u306f\u6613\u3057\u3044\u65b9\u3078\u6d41\u308c\u308b\u3002\u3057\u304b\u3057\u3001\u305d"
         "\u306e\u9053\u3092"
         "\u4f5c\u308b\u306e\u3082\u307e\u305f\u6c34\u3067\u3042\u308b\u3002\u7802\u306e\u6a21\u578b\u3067"
         "\u4e8c\u9031\u9593"
         "\u89b3\u5bdf\u3057\u305f\u8a18\u9332\u3002"),
    ]),
    "radio": ("Slow Radio", "", [
        ("Episode 12: the ferry", "An hour of engine, gulls and rain. <b>Bring a coat.</b>"),
        ("Episode 11: a market before it opens", ""),
    ]),
}
BODY = """<p>%s</p>
<p>I began with a tray of sand, a pump from an aquarium, and no plan. On the first day the water ran straight.
On the second it had found a <a href="/stone">stone</a>, and a bend; by the end of the week there were four, each
copied from the one above<a href="#fn1">1</a>.</p>
<h2>What moves, and what stays</h2>
<p>The outer bank loses what the inner one gains. Nothing is planned, and yet the curve that results is the one
with the least <em>variance</em> in the work that each grain has to do.</p>
<blockquote>A river is not a line on a map. It is a habit of the valley.</blockquote>
<pre><code>for step in range(10000):
    bank = erode(bank, flow(bank))
</code></pre>
<p><iframe src="https://www.youtube.com/embed/dQw4w9WgXcQ" title="The flume, ten days in a minute"></iframe></p>
<table><tr><th>day</th><th>bends</th></tr><tr><td>1</td><td>0</td></tr><tr><td>7</td><td>4</td></tr></table>
<p id="fn1" style="color: #777">1. Measured with a ruler, from a photograph.</p>"""


def rss(name, items=None):
    title, _, own = FEEDS[name]
    now = datetime.datetime.now(datetime.timezone.utc)
    out = ['<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>%s</title><link>http://%s.example/'
           "</link><description>d</description>" % (html.escape(title), name)]
    for i, (heading, words) in enumerate(items or own):
        at = now - datetime.timedelta(hours=3 + 19 * i + len(name), minutes=7 * i)
        media = "<enclosure url='http://radio.example/%d.mp3' type='audio/mpeg' length='28311552'/>" % i
        out.append("<item><guid>%s-%d</guid><title>%s</title><link>http://%s.example/%d</link><pubDate>%s</pubDate>"
                   "<description>%s</description>%s</item>" % (
                       name, i, html.escape(heading), name, i, at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
                       html.escape(BODY % (words or "It starts with a question.")), media if name == "radio" else ""))
    return "".join(out) + "</channel></rss>"


class Site:
    """Serves the feeds at /NAME.xml, a page that names one at /, and what `extra` has."""

    def __init__(self, extra=None):
        site = self
        self.pages = {"/%s.xml" % name: (200, "application/rss+xml", rss(name)) for name in FEEDS}
        self.pages["/"] = (200, "text/html", "<!doctype html><title>The site</title><link rel=alternate "
                           "type=application/rss+xml title='Field Notes' href=/notes.xml><p>Welcome")
        self.pages.update(extra or {})

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                status, kind, text = site.pages.get(self.path, (404, "text/plain", "no"))
                body = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            block_on_close = False

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def opml(self, names=FEEDS):
        """An OPML file of the feeds."""
        out = ['<opml version="2.0"><head><title>t</title></head><body>']
        for name in names:
            title, folder, _ = FEEDS[name]
            one = '<outline type="rss" text="%s" xmlUrl="%s/%s.xml"/>' % (html.escape(title), self.url, name)
            for part in reversed(folder.split("/") if folder else []):
                one = '<outline text="%s">%s</outline>' % (part, one)
            out.append(one)
        return "".join(out) + "</body></opml>"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
