# SPDX-License-Identifier: ISC
"""feedwheel timeline: a picture with every fetch of a run, whose headline names the bottleneck; text
from outside is escaped."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

from harness import Skip, Feedwheel, case, certificate, equal, holds, origin, run, samples, wait_for

SVG = "{http://www.w3.org/2000/svg}"


def bars(root):
    """The titles of the bars; each bar is a fetch."""
    rows = root.find(".//%ssvg[@id='rows']" % SVG)
    return [g.find(SVG + "title").text for g in rows.findall(SVG + "g")]


def drawn(w, *arguments):
    return ET.fromstring(w.run("timeline", "-o", "-", *arguments).stdout)


def headline(root):
    return root.find("%stext[@class='head']" % SVG).text


@case("timeline draws every fetch of the newest run once, in its slot; --run draws an older run, --list lists all")
def whole(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "30", plans=["* latency=20", "7 reset=start"]) as o:
        w = Feedwheel(base, "concurrency = 4\n")
        w.run("import", o.url_file)
        stats = w.run_once()
        first = stats["run"]
        root = drawn(w)
        titles = bars(root)
        equal(sorted(int(re.search(r"/feed/(\d+)\n", t)[1]) for t in titles), list(range(30)), "each once")
        equal(sum("protocol" in t for t in titles), 1, "fetches that failed")
        holds(all(re.search(r"slot [1-4]: ", t) for t in titles), "four slots")
        found = re.search(r"30 fetches in .* on (\d+) slots", "".join(root.itertext()))
        # one more row if a loaded machine reads its clocks late
        holds(found and int(found[1]) >= 4, "the number of slots")
        w.run("set", "--due", o.urls[0], o.urls[1])
        second = w.run_once()["run"]
        equal(len(bars(drawn(w, "--run", str(first)))), 30)
        equal(len(bars(drawn(w))), 2, "the newest is the default")
        listed = w.json("timeline", "--list")
        equal([r["run"] for r in listed], [second, first])
        equal((listed[1]["fetches"], listed[1]["failed"]), (30, 1))
        equal(listed[1]["elapsed_ms"], stats["elapsed_ms"], "the duration is that of the run's summary")
        whole_ms = float(root.find(".//%ssvg[@id='rows']" % SVG).get("viewBox").split()[2])
        # a worker that read the store's clock late places its visits later, and the picture has them all
        holds(whole_ms > stats["elapsed_ms"] - 1, "and in the picture: %s, %s" % (whole_ms, stats["elapsed_ms"]))
        holds(str(first) in w.run("timeline", "--list").stdout, "as a table")


@case("slots without work are counted and not drawn; a picture has colours for dark mode")
def idle_slots(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "5", plans=["* latency=20"]) as o:
        w = Feedwheel(base, "concurrency = 200\n")
        w.run("import", o.url_file)
        w.run_once()
        root = drawn(w)
        text = "".join(root.itertext())
        slots = int(re.search(r" on (\d+) of 200 slots", text)[1])
        holds(slots <= 5, text)
        rows = root.find(".//%ssvg[@id='rows']" % SVG)
        holds(int(rows.get("height")) <= slots * 24, "rows of %s" % rows.get("height"))
        style = root.find(SVG + "style").text
        dark = style.index("prefers-color-scheme:dark){.back{fill:#1")
        holds(style.index(".back{fill:#fff}") < dark, "the later rule wins: " + style)


def with_headline(base, o, conf, pattern, continues=False):
    """The picture of a run over all feeds, whose headline starts with this pattern. Up to three runs:
    on a busy machine a paused process can be the bottleneck."""
    for k in range(3):
        w = Feedwheel(base, conf, "%d.db" % k)
        w.run("import", o.url_file)
        if continues:
            p = w.start("run")
            wait_for("a visit of each feed", lambda w=w: w.one("SELECT count(*) FROM visits") == len(o.urls))
            p.terminate()
            equal(p.wait(timeout=60), 0)
        else:
            w.run_once()
        root = drawn(w)
        if re.match(pattern, headline(root)):
            return root
        print("# " + headline(root))
    raise AssertionError(headline(root))


@case("the headline names the bottleneck: one silent server, many feeds of one host, or a host's gap")
def verdicts(base):
    for folder in "silent", "crowded", "gap":
        os.mkdir(os.path.join(base, folder))
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=5", "5 hang=start"]) as o:
        root = with_headline(
            base + "/silent", o, "concurrency = 24\nfirst_byte_timeout_ms = 8s\n",
            r"Bottleneck: one feed. .*/feed/5 .*\(timeout\)")
        holds("/feed/5" in root.find(".//*[@class='note']").find(SVG + "text").text, "the bar is marked")
    with origin(base, samples(base, "--copies", "1"), "--feeds", "8", "--hosts", "1", plans=["* latency=300"]) as o:
        with_headline(
            base + "/crowded", o, "concurrency = 12\nhost_concurrency = 1\n", ".* 8 fetches from one host, 1 at a time")
        with_headline(
            base + "/gap", o, "concurrency = 12\nhost_gap_ms = 400ms\nhost_concurrency = 8\n",
            r".* 8 fetches from one host, 400 ms apart, take 3\.")


@case("with all feeds due on a host each, neither a lack of due feeds nor host limits explain idle slots")
def all_due(base):
    with origin(base, samples(base), "--feeds", "300", plans=["* latency=1"]) as o:
        w = Feedwheel(base, "concurrency = 150\n")
        w.run("import", o.url_file)
        w.run_once()
        head = headline(drawn(w))
        holds("nothing was due" not in head and "limits per host" not in head, head)


@case("the headline of a --once is about its last fetches; that of a continuous run is about idle slots")
def ends(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=200", "23 latency=1500"]) as o:
        for name, pattern in ("once", "For the last "), ("going", "Slots were idle "):
            os.mkdir(os.path.join(base, name))
            conf = "concurrency = 4\nworkers = 1\norder = fifo\n"
            root = with_headline(os.path.join(base, name), o, conf, pattern, name == "going")
            equal(bool(root.findall(".//%spath[@class='half']" % SVG)), name == "once", "a dashed line")


@case("the picture of a --once shows its order and the barriers of its batches")
def batches(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=20"]) as o:
        w = Feedwheel(base, "concurrency = 4\norder = batch-unordered\norder_batch = 6\n")
        w.run("import", o.url_file)
        w.run_once()
        root = drawn(w)
        holds("order batch-unordered" in "".join(root.itertext()), "the order")
        rows = root.find(".//%ssvg[@id='rows']" % SVG)
        equal(len(rows.findall("%spath[@class='batch']" % SVG)), 3, "barriers of four batches")
        holds("next batch" in "".join(root.itertext()), "an explanation of the barriers")


@case("over TLS a bar lists connection, handshake and waiting time")
def phases(base):
    ca, cert, key = certificate(base, ["127.1.0.1"])
    with origin(base, samples(base, "--copies", "1"), "--feeds", "1", "--tls", cert, key, plans=["0 latency=30"]) as o:
        w = Feedwheel(base, "ca_file = %s\n" % ca)
        w.run("add", o.urls[0])
        w.run_once()
        title = bars(drawn(w))[0]
        for word in ("connect ", "TLS ", "wait "):
            holds(word in title, "%r is not in %r" % (word, title))


@case("hostile URLs and errors are escaped in the picture, which is XML")
def hostile(base):
    docs = samples(base, "--copies", "1")
    with open(os.path.join(docs, "zz.html"), "w", encoding="ascii") as f:
        f.write("<!DOCTYPE html><title>&lt;/title>&lt;/svg>&lt;script>x&lt;/script>"
                "&#27;]0;x&#7;&#x9b;&#x202e;&#xffff;</title><p>A page")
    with origin(base, docs, "--feeds", "2") as o:
        w = Feedwheel(base)
        w.run("add", o.url("/doc/zz.html", "127.1.0.2"))
        w.run("add", o.url("/feed/0?%22%3E%3Cscript%3Ealert(1)%3C/script%3E&x='<b>"),
              o.url("/with/reset=start/feed/1?<svg/onload=x>&amp;"))
        w.run_once()
        holds("<script>" in str([f.get("error") for f in w.json("list")]), "an error with text from the page")
        text = w.run("timeline", "-o", "-").stdout
        holds("<script" not in text and "<b>" not in text and "<svg/" not in text, "no markup from outside")
        equal([c for c in "\x1b\x07\x9b\u202e\ufffe" if c in text], [], "no control characters")
        equal(len(bars(ET.fromstring(text))), 3)
        page = os.path.join(base, "run.html")
        w.run("timeline", "-o", page)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        equal((text.count("<script"), text.count("</script"), text.count("</svg>")), (1, 1, 3), "nor in the page")


@case("wrong arguments are errors, and no file is written")
def wrong_arguments(base):
    w = Feedwheel(base)
    w.run("add", "http://127.1.0.1:9/feed")
    for arguments, code, part in (
        (("timeline",), 2, "-o run.html"),
        (("timeline", "-o", "run.png"), 2, ".html"),
        (("timeline", "-o", "-"), 1, "run --once"),
        (("timeline", "-o", "-", "--run", "7"), 1, "--list"),
        (("timeline", "-o"), 2, "needs a value"),
        (("timeline", "-o", "-", "--run", "x"), 2, "--run"),
        (("timeline", "-o", "-", "--json"), 2, "standard output"),
        (("status", "-o", "x.svg"), 2, "-o")):
        r = w.run(*arguments, code=code)
        holds(part in r.stderr, "%s: %s" % (arguments, r.stderr))
    with origin(base, samples(base, "--copies", "1"), "--feeds", "1") as o:
        w.run("add", o.urls[0])
        w.run_once()
        there = os.path.join(base, "no", "such", "run.svg")
        wrong = w.run("timeline", "-o", there, code=2).stderr
        holds(there + ": the folder does not exist (create it)" in wrong, wrong)
        holds(
            "nothing in that time" in w.run("timeline", "-o", "-", "--last", "1ms", code=1).stderr,
            "no fetch in that time")


@case("in a browser the page zooms, and describes the bar under the pointer")
def browser(base):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise Skip("chromium is not installed")
    with origin(base, samples(base, "--copies", "1"), "--feeds", "20", plans=["* latency=30"]) as o:
        w = Feedwheel(base, "concurrency = 4\n")
        w.run("import", o.url_file)
        w.run_once()
    page = os.path.join(base, "run.html")
    w.run("timeline", "-o", page)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    holds("http://www.w3.org" in text and not re.search(r"(src|href)=", text), "the page loads nothing from elsewhere")
    probe = """<script>
        const b = rows.getBoundingClientRect(), bar = rows.querySelector("g rect").getBoundingClientRect();
        const there = {clientX: b.left + b.width / 2,
            clientY: bar.top + bar.height / 2, bubbles: true, cancelable: true};
        rows.dispatchEvent(new PointerEvent("pointermove", {...there, clientX: bar.left + bar.width / 2}));
        const shown = tip.textContent;
        for (let i = 0; i < 5; i++) rows.dispatchEvent(new WheelEvent("wheel", {...there, deltaY: -100}));
        const near = rows.viewBox.baseVal.width / whole;
        dispatchEvent(new KeyboardEvent("keydown", {key: "0"}));
        document.body.dataset.found = JSON.stringify({shown, near,
            far: rows.viewBox.baseVal.width / whole, ticks: axis.querySelectorAll("text").length});
        </script>"""
    with open(page, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", probe + "</body>"))
    r = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + os.path.join(base, "profile"),
         "--window-size=1600,1000", "--dump-dom", "file://" + page],
        capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'data-found="([^"]*)"', r.stdout)
    holds(found, "the script ran: " + r.stderr[-1000:])
    found = json.loads(found[1].replace("&quot;", '"'))
    holds("/feed/" in found["shown"] and "slot" in found["shown"], "text under the pointer: %s" % found)
    holds(found["near"] < 0.5 and abs(found["far"] - 1) < 1e-6, "zoomed in, and out again: %s" % found)
    holds(3 <= found["ticks"] <= 40, "an axis: %s" % found)


run()
