#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The documents are correct: the commands of docs/api.md, its configurations of nginx and Prometheus,
the lists of requests, metrics and settings."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import types

from http_server import http_server, free_port
from page_client import PASSWORD, Visitor
from harness import ROOT, STARTED, Skip, Feedwheel, case, certificate, equal, holds, origin, run, samples, wait_for

with open(os.path.join(ROOT, "docs", "api.md"), encoding="utf-8") as page:
    PAGE = page.read()


def shown():
    """Each "$ command" of docs/api.md with the lines below it."""
    found = []
    for line in PAGE.splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif found and line.startswith("    ") and found[-1][1] is not None:
            found[-1][1].append(line[4:])
        elif found and found[-1][1] is not None:
            found.append((None, None)) # the end of the block
    return [f for f in found if f[0]]


def matches(want, got):
    """Does the output match? "..." is any text, also lines."""
    pattern = ".*".join(re.escape(part) for part in "\n".join(want).split("..."))
    return re.fullmatch(pattern + r"\s*", got.replace("\r", ""), re.S)


def output_is(base, command, enough, what):
    """Run it until its output is enough, or it ends; a stream does not end."""
    output = os.path.join(base, "output")
    with open(output, "wb") as out, subprocess.Popen(
        ["setpriv", "--pdeathsig", "SIGKILL", "--", *command], stdout=out, start_new_session=True) as p:
        def is_enough():
            over = p.poll() is not None
            with open(output, encoding="utf-8") as f:
                text = f.read()
            holds(not over or enough(text), "%s\ngot:  %s" % (what, text))
            return enough(text)
        try:
            wait_for(what, is_enough, 60)
        finally:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)


def block(language, word):
    return next(b for b in re.findall("```%s\n(.*?)```" % language, PAGE, re.S) if word in b)


@case("the steps at the top of README.md end at a page with entries; its speed is that of docs/performance.md",
      needs="server")
def readme(base):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    steps = re.findall(r"^    feedwheel (.*?)(?:\s+#.*)?$", text.split("## Why feedwheel")[0], re.M)
    equal([s.split()[0] for s in steps], ["add", "run", "entries", "user", "run"])
    with origin(base, samples(base), "--feeds", "1") as o:
        w, port = Feedwheel(base), free_port()
        for step in steps[:-1]:
            words = shlex.split(step.replace("https://example.org/feed.xml", o.urls[0]))
            output = w.run(*words, stdin=PASSWORD + "\n").stdout
            holds(output, step)
        p = w.start(*shlex.split(steps[-1].replace("127.0.0.1:8080", "127.0.0.1:%d" % port)))
        try:
            wait_for("the server", lambda: "listening on" in w.log())
            reader = Visitor(types.SimpleNamespace(port=port)).log_in()
            holds('<li class="row unread"' in reader.request("GET", "/")[1], "a page without entries")
        finally:
            p.terminate()
            p.wait()
    with open(os.path.join(ROOT, "docs", "performance.md"), encoding="utf-8") as f:
        [ratio] = re.findall(r"^\| first run: .* \| ([\d.]+) \| <= [\d.]+ \|$", f.read(), re.M)
    holds("%s times as long as `curl --parallel`" % ratio in text, ratio)


@case("each command of docs/api.md gives the response below it")
def commands(base):
    todo = shown()
    equal(len(todo), PAGE.count("\n    $ "), "commands found")
    holds(len(todo) >= 8, todo)
    with http_server(base) as d:
        wait_for("the server to know that there are no tokens",
                 lambda: "requests without a token are accepted" in d.feedwheel.log())
        for command, want in todo:
            holds("//127.0.0.1:8080/" in command, command)
            command = command.replace("127.0.0.1:8080", "127.0.0.1:%d" % d.port)
            command = command.replace("--max-time 1 ", "--max-time 60 ")
            output_is(
                base, ["sh", "-c", command], lambda got, want=want: matches(want, got),
                "%s\nwant: %s" % (command, "\n".join(want)))


@case("feedwheel.conf(5) names the ports that are refused")
def ports(base):
    with open(os.path.join(ROOT, "src", "fetch", "guard.c"), encoding="utf-8") as f:
        table = re.search(r"BAD_PORT\[\] = {([^}]*)}", f.read())[1]
    with open(os.path.join(ROOT, "man", "feedwheel.conf.5"), encoding="utf-8") as f:
        ports_text = re.search(r"those from 1024 except ([^,]*(?:,[^w]*)*), where", f.read())[1]
    named = set()
    for word in re.findall(r"\d+(?:\s+to\s+\d+)?", ports_text):
        first, _, last = word.partition(" to ")
        named.update(range(int(first), int(last or first) + 1))
    equal(sorted(named), sorted(int(n) for n in re.findall(r"\d+", table)))


@case("with the nginx configuration of docs/api.md addresses and large bodies pass, and the stream is not buffered")
def nginx(base):
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(program):
        raise Skip("nginx is not installed")
    path, port, (ca, cert, key) = os.path.join(base, "http.sock"), free_port(), certificate(base, ["127.0.0.1"])
    conf = block("nginx", "upstream")
    for old, new in (("unix:/run/feedwheel/http.sock", "unix:" + path), ("listen 443", "listen 127.0.0.1:%d" % port),
                     ("/etc/ssl/feeds.example.org.pem", cert), ("/etc/ssl/private/feeds.example.org.key", key)):
        holds(old in conf, old)
        conf = conf.replace(old, new)
    with tempfile.NamedTemporaryFile("w", dir=base, suffix=".conf", delete=False) as f:
        f.write("daemon off;\nmaster_process off;\npid %s/nginx.pid;\nerror_log stderr;\nevents {}\nhttp "
                "{\naccess_log off;\n" % base)
        for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            f.write("%s_temp_path %s/%s;\n" % (what, base, what))
        f.write(conf + "}\n")
    w = Feedwheel(base, "listen = unix:%s\ntrusted_proxies = unix\n" % path)
    token = w.run("token", "add", "test", "--scope", "push,read,admin").stdout.strip()
    serve = w.start("serve")
    with open(os.path.join(base, "nginx.log"), "ab") as log:
        STARTED.append(
            subprocess.Popen(
                ["setpriv", "--pdeathsig", "SIGKILL", "--", program, "-p", base, "-e", "stderr", "-c", f.name],
                stdout=log, stderr=log, start_new_session=True))
    proxy = STARTED[-1]

    def curl(path, *options, header="Authorization: Bearer " + token):
        return ["curl", "-sS", "--cacert", ca, "-H", header, "https://127.0.0.1:%d%s" % (port, path), *options]

    def request(*arguments, **more):
        return subprocess.run(curl(*arguments, **more), capture_output=True, text=True, timeout=60, check=False).stdout
    def up():
        with open(os.path.join(base, "nginx.log"), encoding="utf-8", errors="replace") as f:
            holds(serve.poll() is None and proxy.poll() is None,
                  "nginx and the server run: " + w.last_log() + f.read()[-2000:])
        return request("/readyz") == '{"status":"ready"}'
    wait_for("nginx and the server", up, 60)
    holds('"code":"unauthenticated"' in request("/v1/feeds", header="X-Forwarded-For: 127.0.0.1"), "without a token")
    equal(
        request(
            "/v1/events?ack=durable", "-H", "X-Forwarded-For: 192.0.2.7", "-d",
            '{"property":"news","section":1,"id":1}'),
        '{"stored":1}')
    equal(w.one("SELECT remote_ip FROM incoming"), "127.0.0.1") # the header of the client is not passed on
    holds('"id":1' in request("/v1/feeds", "-d", '{"url":"https://example.org/feed.xml"}'), "a feed")
    big = os.path.join(base, "big.ndjson")
    with open(big, "w", encoding="ascii") as f:
        for i in range(30):
            f.write('{"id":"%d","content_text":"%s"}\n' % (i, "x" * 100000)) # 3 MB: more than the default of nginx
    holds(
        '"new":30' in request(
            "/v1/feeds/1/entries", "-H", "Content-Type: application/x-ndjson", "--data-binary", "@" + big),
        "many entries")
    output_is(
        base, curl("/v1/stream?since=29", "-N"), lambda text: "id: 30\nevent: entry\ndata: " in text,
        "the stream before its end")
    for p in (proxy, serve):
        p.terminate()
        p.wait(60)


PAGES = [
    os.path.join(f, p) for f in ("", "docs", "man") for p in os.listdir(os.path.join(ROOT, f))
    if re.search(r"\.(md|[1-7])$", p)]


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def operations():
    """{"PATCH /v1/feeds/{id}": the operation}"""
    doc = json.loads(read("src", "http", "api", "openapi.json"))
    return doc, {"%s %s" % (m.upper(), p): o for p, path in doc["paths"].items() for m, o in path.items()}


def members(doc, schema):
    """The names of the members that a JSON body may have."""
    if "$ref" in schema:
        return members(doc, doc["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return set().union(*(members(doc, s) for s in schema["oneOf"]))
    return members(doc, schema["items"]) if "items" in schema else set(schema.get("properties", {}))


@case("docs/api.md and feedwheel(1) name the requests of openapi.json, with their parameters and members")
def requests(base):
    del base
    doc, want = operations()
    rows = dict(re.findall(r"^\| `([A-Z]+ /\S+)` \| (.*?) ?\|", PAGE, re.M))
    rows = {re.sub(r"\b(12|4711)\b", "{id}", r).replace("TOKEN", "{token}").replace(
        "/NAME", "/{name}").replace("/FEED", "/{feed}"):
            set(re.findall(r"`([^`]+)`", words)) for r, words in rows.items()}
    names = {}
    for request, o in want.items():
        body = o.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        parameters = {p["name"] for p in o.get("parameters", []) if p["in"] != "path"} - {"If-None-Match"}
        names[request] = members(doc, body) | parameters
    equal(rows, names)
    listed = set()
    for line in re.findall(r"^\.It Ic ((?:GET|POST|PATCH|DELETE) .*)$", read("man", "feedwheel.1"), re.M):
        method = ""
        line = re.sub(" Ns Ar (id|name|token|feed)", r"{\1}", line)
        for one in line.replace(" Ns Ic ", "").replace(" , Ic ", " , ").split(" , "):
            method, path = one.split(" ") if " " in one else (method, one)
            listed.add("%s %s" % (method, path))
    equal(listed, {r for r in want if "/websub/" not in r})


@case("docs/metrics.md lists the metrics of /metrics, with their descriptions")
def metrics(base):
    with origin(base, samples(base), "--feeds", "2") as o:
        w = Feedwheel(base)
        w.run("import", o.url_file)
        with http_server(base, command="run", store=w.store) as d:
            wait_for("metrics of the store", lambda: "feedwheel_store_size_bytes " in d.request("GET", "/metrics")[2])
            text = d.request("GET", "/metrics")[2]
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    shown = {n: (kinds[n], words) for n, words in re.findall(r"^# HELP (\S+) (.*)$", text, re.M)}
    table = {n: (kind, words) for n, kind, words in re.findall(
        r"^\| `(\S+?)(?:\{[a-z, ]+\})?` \| (\w+) \| (.*) \|$", read("docs", "metrics.md"), re.M)}
    holds(len(shown) > 50, shown)
    equal(
        {n: (shown.get(n), table.get(n)) for n in shown.keys() | table.keys() if shown.get(n) != table.get(n)}, {},
        "in /metrics, on the page")
    named = set(re.findall(r"\bfeedwheel_[a-z_]+\b", "".join(map(read, PAGES))))
    equal(named - set(shown), set(), "named on a page, not in /metrics")


@case("the settings in the pages exist")
def settings(base):
    known = set(re.findall(r"^(\w+) = ", Feedwheel(base).run("help", "settings").stdout, re.M))
    found = {n for page in PAGES for n in re.findall(r"(?:`|^    )([a-z][a-z_]+) = ", read(page), re.M)}
    holds(len(found) > 8, found)
    equal(found - known, {"location", "synchronous_commit"}) # of nginx and PostgreSQL


@case("Prometheus accepts the configuration and the metrics")
def prometheus(base):
    with http_server(base) as d:
        numbers = d.request("GET", "/metrics")[2]
        program = shutil.which("promtool")
        if not program:
            raise Skip("promtool is not installed")
        r = subprocess.run([program, "check", "metrics"], input=numbers,
                           capture_output=True, text=True, timeout=60, check=False)
        equal(r.returncode, 0, r.stdout + r.stderr)
    token, conf = os.path.join(base, "feedwheel.token"), os.path.join(base, "prometheus.yml")
    with open(token, "w", encoding="ascii") as f:
        f.write("fwt_x\n")
    with open(conf, "w", encoding="ascii") as f:
        f.write(block("yaml", "scrape_configs").replace("/etc/prometheus/feedwheel.token", token))
    r = subprocess.run([program, "check", "config", conf], capture_output=True, text=True, timeout=60, check=False)
    equal(r.returncode, 0, r.stdout + r.stderr)


run()
