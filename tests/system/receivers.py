# SPDX-License-Identifier: ISC
"""For the tests of deliveries: a small server that receives webhooks, checks each message as Standard
Webhooks says, and answers as its test wants; orders with something to deliver; the recipes of docs/orders.md."""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import shlex
import socketserver
import threading
import time

from harness import ROOT, holds, wait_for
from http_server import http_server

with open(os.path.join(ROOT, "docs", "orders.md"), encoding="utf-8") as page:
    RECIPES = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page.read(), re.M | re.S)) # heading: text


def recipe(heading, **replaced):
    """A recipe's code, if it has some, and its commands, with other addresses and paths."""
    text = RECIPES[heading]
    for old, new in replaced.values():
        holds(old in text, old)
        text = text.replace(old, new)
    commands = re.findall(r"^    (feedwheel .*)$", text, re.M)
    holds(commands, heading)
    code = re.search(r"^```\w+\n(.*?)^```", text, re.M | re.S)
    return code and code[1], [shlex.split(c)[1:] for c in commands]


def is_signed(secret, headers, body):
    """Does one of the signatures fit?"""
    text = b"%s.%s.%s" % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body)
    want = base64.b64encode(hmac.new(base64.b64decode(secret.partition("_")[2]), text, hashlib.sha256).digest())
    return "v1," + want.decode() in headers["webhook-signature"].split(" ")


class Message:
    def __init__(self, path, headers, body, signed):
        self.path, self.body, self.signed = path, body, signed
        self.id, self.type = headers["webhook-id"], headers["Content-Type"]
        self.authorization, self.accept = headers["Authorization"], headers["Accept"]
        self.age = abs(time.time() - int(headers["webhook-timestamp"]))

    def json(self):
        return json.loads(self.body)

    def ids(self):
        return [d["id"] for d in self.json()["data"]]


class Receiver:
    """answers[path]: a function of the request's handler that responds; else 204. secrets[path]: the
    order's secret."""

    def __init__(self):
        receiver = self
        self.lock = threading.Lock()
        self.answers, self.secrets, self.messages = {}, {}, []
        self.end = threading.Event() # silent answers end then

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def respond(self, status, *headers, body=b""):
                self.send_response(status)
                for k, v in headers:
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    secret = receiver.secrets.get(self.path)
                    answer = receiver.answers.get(self.path)
                    receiver.messages.append(Message(
                        self.path, self.headers, body, secret and is_signed(secret, self.headers, body)))
                try:
                    (answer or (lambda h: h.respond(204)))(self)
                except OSError: # the sender went away
                    self.close_connection = True

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end.set()
        self.server.shutdown()
        self.server.server_close()

    def at(self, path):
        with self.lock:
            return [m for m in self.messages if m.path == path]

    def got(self, path):
        """The ids of all changes, in the order they came."""
        return [i for m in self.at(path) for i in m.ids()]

    def answer(self, path, function):
        with self.lock:
            self.answers[path] = function

    def status(self, path, *statuses, headers=()):
        """Answer with these statuses, one for each request; the last one stays."""
        left = list(statuses)
        self.answer(path, lambda h: h.respond(left.pop(0) if len(left) > 1 else left[0], *headers))

    def silent(self, path):
        self.answer(path, lambda _: self.end.wait(120))


# ---- orders, and what becomes of their matches ---------------------------------------------------------------

SHORT = "total_timeout_ms = 2s\nconnect_timeout_ms = 2s\nfirst_byte_timeout_ms = 2s\n"


def items(first, n, word="wanted", content=""):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [
        {"id": "e%d" % i, "url": "https://a.example/%d" % i, "title": "%s %d" % (word, i),
         "content_html": "<p>text %d%s" % (i, content)} for i in reversed(range(first, first + n))]})


def filled(w, n=12, content="", subscribe=True):
    """w has a feed with n entries, which a replay finds."""
    if subscribe:
        w.run("add", "-q", "https://a.example/feed")
        w.run("pause", "-q", "1")
    w.run("push", "1", "-", stdin=items(0, n, content=content))
    wait_for("the index", lambda: w.run_once() and "not indexed" not in w.run("order", "test", "wanted").stderr)
    return w


def entries(w):
    """The ids of all entries, rising."""
    return sorted(e["_store"]["entry"] for e in w.json("entries")["items"])


def add(w, receiver, name, query="wanted", path=None):
    """An order whose receiver is at a path, "/NAME"."""
    path = path or "/" + name
    receiver.secrets[path] = w.run("order", "add", name, query, "--to", receiver.url + path).stdout.strip()


def replay(w, *names):
    for name in names:
        w.run("order", "replay", name, "--since", "1d")


def delivery(w, name):
    return w.json("order", "show", name)["order"]["delivery"]


def is_done(w, name):
    d = delivery(w, name)
    return not d["pending_n"] and not d["dead_n"]


def fails(w, name, words):
    """The order's last attempt failed with these words."""
    wait_for("'%s' at %s" % (words, name), lambda: words in delivery(w, name).get("error", ""))
    return delivery(w, name)


@contextlib.contextmanager
def sender(base, store=None, conf="", **more):
    """A server, which delivers, with a receiver beside it."""
    with Receiver() as r, http_server(base, store=store, conf=conf, **more) as d:
        yield d, d.feedwheel, r
