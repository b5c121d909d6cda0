# SPDX-License-Identifier: ISC
"""A small server that is a WebSub hub, a publisher of feeds and an rssCloud server, for the tests of
subscriptions. Tests make it break the protocol."""
import hashlib
import hmac
import http.client
import http.server
import socketserver
import threading
import urllib.parse

from harness import equal, wait_for

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>%s</title><id>urn:f:%s</id>%s
<updated>2026-11-01T00:00:00Z</updated>%s</feed>"""
ENTRY = "<entry><id>urn:e:%s:%d</id><title>entry %d</title><updated>2026-11-01T00:00:%02dZ</updated>" \
    "<content>text</content></entry>"


def atom(name, numbers, links=""):
    return ATOM % (name, name, links, "".join(ENTRY % (name, n, n, n % 60) for n in numbers))


def links(*pairs):
    return "".join('<link rel="%s" href="%s"/>' % p for p in pairs)


def request(method, url, body=None, headers=None):
    """Status, body and headers of the response to a request."""
    u = urllib.parse.urlsplit(url)
    c = http.client.HTTPConnection(u.hostname, u.port, timeout=30)
    try:
        c.request(method, u.path + ("?" + u.query if u.query else ""), body, headers or {})
        r = c.getresponse()
        return r.status, r.read(), r.headers
    finally:
        c.close()


class Subscription:
    def __init__(self, form):
        self.topic, self.callback = form["hub.topic"], form["hub.callback"]
        self.secret, self.lease = form.get("hub.secret"), int(form["hub.lease_seconds"])


class Hub:
    """Pages are functions of the path's query that return (status, headers, body). The hub keeps all
    requests, verifications (verified) and cloud registrations (pings)."""

    def __init__(self):
        hub = self
        self.lock = threading.Lock()
        self.pages, self.requests, self.subscriptions, self.verified, self.pings = {}, [], {}, [], []
        self.verifies = True   # verify the subscriber's intent
        self.status = 202      # of the response to a subscription request

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, headers, body):
                body = body.encode() if isinstance(body, str) else body
                self.send_response(status)
                for k, v in headers:
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                u = urllib.parse.urlsplit(self.path)
                with hub.lock:
                    page = hub.pages.get(u.path)
                    hub.requests.append(("GET", self.path, None))
                if page is None:
                    return self.answer(404, [], "")
                return self.answer(*page(u.query))

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(urllib.parse.parse_qsl(body, keep_blank_values=True))
                with hub.lock:
                    hub.requests.append(("POST", self.path, form))
                return hub.handle_post(self, urllib.parse.urlsplit(self.path).path, form)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def page(self, path, body, *headers, kind="application/atom+xml", status=200):
        with self.lock:
            self.pages[path] = lambda _: (status, [("Content-Type", kind), *headers], body)

    def feed(self, name, numbers):
        """A feed that names this hub, with entries of these numbers."""
        hub_and_self = links(("hub", self.url + "/hub"), ("self", "%s/%s" % (self.url, name)))
        self.page("/" + name, atom(name, numbers, hub_and_self))

    def posts(self, path="/hub"):
        with self.lock:
            return [f for m, p, f in self.requests if m == "POST" and p == path]

    def gets(self, path):
        with self.lock:
            return [p for m, p, _ in self.requests if m == "GET" and p.partition("?")[0] == path]

    # ---- requests to the hub

    def handle_post(self, handler, path, form):
        if path in ("/307", "/308"):
            return handler.answer(int(path[1:]), [("Location", self.url + "/hub")], "")
        if path == "/circle":
            return handler.answer(307, [("Location", self.url + "/circle")], "")
        if path == "/cloud":
            return self.cloud(handler, form)
        if path != "/hub" or self.status != 202:
            return handler.answer(404 if path != "/hub" else self.status, [], "")
        self.verify(form)
        return handler.answer(202, [], "")

    def verify(self, form):
        """Verification of intent, WebSub 5.3: the subscriber returns the challenge."""
        if not self.verifies:
            return
        sub, mode = None, form["hub.mode"]
        if mode == "subscribe":
            sub = Subscription(form)
        try:
            status, body, headers = self.verify_intent(
                form["hub.callback"], mode, form["hub.topic"], "chal/+ %41<b>", form.get("hub.lease_seconds"))
        except ConnectionError: # the subscriber was killed
            return
        good = status == 200 and body == b"chal/+ %41<b>"
        with self.lock:
            self.verified.append((mode, status, good))
            key = (form["hub.topic"], form["hub.callback"])
            if good and sub:
                equal((headers["Content-Type"], headers["X-Content-Type-Options"]), ("text/plain", "nosniff"))
                self.subscriptions[key] = sub
            elif good:
                self.subscriptions.pop(key, None)

    def verify_intent(self, callback, mode, topic, challenge=None, lease=None, **more):
        q = {"hub.mode": mode, "hub.topic": topic}
        if challenge is not None:
            q["hub.challenge"] = challenge
        if lease is not None:
            q["hub.lease_seconds"] = lease
        q.update({"hub." + k: v for k, v in more.items()})
        return request("GET", callback + ("&" if "?" in callback else "?") + urllib.parse.urlencode(q))

    def cloud(self, handler, form):
        url = "http://%s:%s%s" % (form["domain"], form["port"], form["path"])
        status, body, _ = request("GET", url + "?" + urllib.parse.urlencode({"url": form["url1"], "challenge": "abc"}))
        good = status == 200 and body == b"abc"
        with self.lock:
            if good:
                self.pings.append((url, form["url1"]))
        return handler.answer(200, [], '<notifyResult success="%s" msg=""/>' % ("true" if good else "false"))

    # ---- requests of the hub

    def subscription(self, topic=None):
        """The only subscription, of this topic or of all."""
        with self.lock:
            found = [s for s in self.subscriptions.values() if topic in (None, s.topic)]
        equal(len(found), 1, [(s.topic, s.callback) for s in found])
        return found[0]

    def wait_subscription(self, topic=None):
        def there():
            with self.lock:
                return [s for s in self.subscriptions.values() if topic in (None, s.topic)]
        wait_for("a subscription", there, 60)
        return self.subscription(topic)

    def send(self, sub, body, method="sha256", kind="application/atom+xml", signature=None, sign=True, **more):
        """more: further headers. The signature is that of the body."""
        headers = {"Content-Type": kind, "Link": '<%s>; rel="self", <%s/hub>; rel="hub"' % (sub.topic, self.url)}
        headers.update({k.replace("_", "-"): v for k, v in more.items()})
        body = body.encode() if isinstance(body, str) else body
        if sub.secret and sign:
            headers["X-Hub-Signature"] = signature or "%s=%s" % (method, hmac.new(
                sub.secret.encode(), body, getattr(hashlib, method)).hexdigest())
        return request("POST", sub.callback, body, headers)[0]
