# SPDX-License-Identifier: ISC
"""A person at the page without a browser: a cookie, forms."""
import http.client
import re
import urllib.parse

from harness import equal

PASSWORD = "secret & word"


class Visitor:
    """A client with a cookie, without a browser."""

    def __init__(self, d):
        self.d, self.cookie, self.csrf = d, None, None

    def request(self, method, path, form=None, headers=None, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.d.port, timeout=60)
        h = {"Cookie": self.cookie} if self.cookie else {}
        if form is not None:
            body = urllib.parse.urlencode(form, doseq=True)
            h["Content-Type"] = "application/x-www-form-urlencoded"
        c.request(method, path, body, {**h, **(headers or {})})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r, text

    def log_in(self, name="alice", password=PASSWORD):
        r, text = self.request("POST", "/login", {"name": name, "password": password})
        equal(r.status, 303, text)
        return self.take(r)

    def take(self, response):
        """The cookie that a response sets."""
        self.cookie = response.headers["Set-Cookie"].split(";")[0]
        self.csrf = re.search('data-csrf="([0-9a-f]{32})"', self.request("GET", "/")[1])[1]
        return self

    def post(self, path, **form):
        return self.request("POST", path, {"csrf": self.csrf, **form})

    def column(self):
        return self.request("GET", "/?part=column")[1]

    def unread(self):
        found = re.search('data-key="u".*?class="n">([0-9]+)', self.column().split("</li>", maxsplit=1)[0], re.S)
        return int(found[1]) if found else 0


def user_add(d, name="alice", *arguments):
    d.feedwheel.run("user", "add", *arguments, name, stdin=PASSWORD + "\n")
