# SPDX-License-Identifier: ISC
"""A site with feeds and icons, and a reader's client that asks for them."""
import base64
import contextlib
import hashlib
import http.server
import json
import threading
import time

from harness import equal, wait_for
from readers import PASSWORD, raw

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(range(256))


def atom(name, icon):
    return ("<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:%s</id><title>%s</title>%s<entry><id>urn:%s:1</id>"
            "<title>one</title></entry></feed>" % (name, name, icon or "", name)).encode()


class Site:
    """Serves `pages` at all loopback addresses: path -> (type, body) or a status, and feeds at
    /NAME.xml with the element icons[NAME]. Paths in `hanging` get no response until `go`."""

    def __init__(self):
        site = self
        self.pages, self.icons, self.hanging, self.requests, self.go = {}, {}, set(), [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                name = self.path.strip("/").removesuffix(".xml")
                if not self.path.endswith(".xml"):
                    site.requests.append((time.monotonic(), self.headers["Host"].split(":")[0], self.path))
                if self.path in site.hanging:
                    site.go.wait(60)
                page = site.pages.get(self.path, 404)
                if self.path.endswith(".xml"):
                    page = "application/atom+xml", atom(name, site.icons.get(name))
                self.send_response(page if isinstance(page, int) else 302 if page[0] == "to" else 200)
                if not isinstance(page, int):
                    self.send_header("Location" if page[0] == "to" else "Content-Type", page[page[0] == "to"])
                body = b"" if isinstance(page, int) or page[0] == "to" else page[1]
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path="", host=1):
        return "http://127.0.0.%d:%d%s" % (host, self.server.server_address[1], path)

    def asked(self, path):
        return [r for r in self.requests if r[2] == path]

    def add(self, c, name, icon=None, host=1, tag="icon"):
        """Subscribe to the feed; its number."""
        self.icons[name] = icon and ("<icon>%s</icon>" % icon if tag == "icon" else "<logo>%s</logo>" % icon)
        return c.add(self.url("/%s.xml" % name, host))

    def stop(self):
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


class Client:
    """Of Miniflux' API, and of Fever's."""

    def __init__(self, d, name="alice"):
        token = d.feedwheel.run("user", "token", name, "phone", "--fever").stdout.strip()
        self.d, self.key = d, hashlib.md5(("%s:%s" % (name, token)).encode()).hexdigest()
        self.headers = {"Authorization": "Basic " + base64.b64encode((name + ":" + PASSWORD).encode()).decode()}

    def call(self, method, path, body=None):
        status, _, text = raw(self.d, method, "/miniflux/v1/" + path, self.headers, body)
        return status, json.loads(text)

    def get(self, path, want=200):
        status, got = self.call("GET", path)
        equal(status, want, got)
        return got

    def add(self, url):
        status, got = self.call("POST", "feeds", json.dumps({"feed_url": url}))
        equal(status, 201, got)
        return got["feed_id"]

    def fever(self, query):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, text = raw(self.d, "POST", "/fever/?api" + query, headers, "api_key=" + self.key)
        equal(status, 200, text)
        return json.loads(text)


def icon(c, feed):
    """The type and bytes of a feed's icon; None: there is none."""
    status, got = c.call("GET", "feeds/%d/icon" % feed)
    if status == 404:
        return None
    equal((status, sorted(got)), (200, ["data", "id", "mime_type"]))
    kind, data = got["data"].split(";base64,")
    equal(kind, got["mime_type"])
    return kind, base64.b64decode(data, validate=True)


def has_icon(c, feed):
    wait_for("the icon of feed %d" % feed, lambda: icon(c, feed))
    return icon(c, feed)
