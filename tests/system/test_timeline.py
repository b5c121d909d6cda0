# SPDX-License-Identifier: ISC
"""feedwheel timeline: every fetch of a run is in the picture, which says what held the run up;
hostile words stay words."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

from harness import SOON, Skip, Feedwheel, case, certificate, equal, holds, origin, run, samples, wait_for

SVG = "{http://www.w3.org/2000/svg}"


def bars(root):
    """The groups of the rows, each a fetch: their titles."""
    rows = root.find(".//%ssvg[@id='rows']" % SVG)
    return [g.find(SVG + "title").text for g in rows.findall(SVG + "g")]


def drawn(w, *arguments):
    return ET.fromstring(w.run("timeline", "-o", "-", *arguments).stdout)


def headline(root):
    return root.find("%stext[@class='head']" % SVG).text


@case("every fetch of the newest run is drawn once, in its slot; --run draws an older one, --list shows them all")
def whole(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "30", plans=["* latency=20", "7 reset=start"]) as o:
        w = Feedwheel(base, "concurrency = 4\n")
        w.run("import", o.url_file)
        stats = w.run_once()
        first = stats["run"]
        root = drawn(w)
        titles = bars(root)
        equal(sorted(int(re.search(r"/feed/(\d+)\n", t)[1]) for t in titles), list(range(30)), "each once")
        equal(sum("protocol" in t for t in titles), 1, "the one that failed")
        holds(all(re.search(r"slot [1-4]: ", t) for t in titles), "four slots")
        said = re.search(r"30 fetches in .* on (\d+) slots", "".join(root.itertext()))
        holds(said and int(said[1]) >= 4, "the numbers") # a row more where a loaded machine looked at its clocks late
        w.run("set", "--due", o.urls[0], o.urls[1])
        second = w.run_once()["run"]
        equal(len(bars(drawn(w, "--run", str(first)))), 30)
        equal(len(bars(drawn(w))), 2, "the newest is the default")
        listed = w.json("timeline", "--list")
        equal([r["run"] for r in listed], [second, first])
        equal((listed[1]["fetches"], listed[1]["failed"]), (30, 1))
        equal(listed[1]["elapsed_ms"], stats["elapsed_ms"], "one clock: that of the run's summary")
        whole_ms = float(root.find(".//%ssvg[@id='rows']" % SVG).get("viewBox").split()[2])
        holds(abs(whole_ms - stats["elapsed_ms"]) < 1, "in the picture too: %s, %s" % (whole_ms, stats["elapsed_ms"]))
        holds(str(first) in w.run("timeline", "--list").stdout, "as a table")


@case("slots that never had work are counted and not drawn; a picture has colours for the dark")
def few_of_many(base):
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
        holds(style.index(".back{fill:#fff}") < style.index(
            "prefers-color-scheme:dark){.back{fill:#1"), "the later rule wins: " + style)


def told(base, o, conf, words, continues=False):
    """The picture of a run over all feeds, whose headline begins with these (a pattern). There is
    another run when it does not: if a process stood still, that is what held the run up."""
    for k in range(3):
        w = Feedwheel(base, conf, "%d.db" % k)
        w.run("import", o.url_file)
        if continues:
            p = w.start("run")
            wait_for("all", lambda w=w: w.one("SELECT count(*) FROM visits") == len(o.urls))
            p.terminate()
            equal(p.wait(timeout=60), 0)
        else:
            w.run_once()
        root = drawn(w)
        if re.match(words, headline(root)):
            return root
        print("# " + headline(root))
    raise AssertionError(headline(root))


@case("what held it up is said: one silent server, one host's many feeds, or nothing but the work")
def verdicts(base):
    for folder in "silent", "crowded", "gap":
        os.mkdir(os.path.join(base, folder))
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=5", "5 hang=start"]) as o:
        root = told(base + "/silent", o, "concurrency = 24\nfirst_byte_timeout_ms = 8s\n",
                    r"Bottleneck: one feed. .*/feed/5 .*\(timeout\)")
        holds("/feed/5" in root.find(".//*[@class='note']").find(SVG + "text").text, "and it is marked")
    with origin(base, samples(base, "--copies", "1"), "--feeds", "8", "--hosts", "1", plans=["* latency=300"]) as o:
        told(base + "/crowded", o, "concurrency = 12\nhost_concurrency = 1\n", ".* 8 fetches from one host, 1 at a "
                                                                               "time")
        told(base + "/gap", o, "concurrency = 12\nhost_gap_ms = 400ms\nhost_concurrency = 8\n",
             r".* 8 fetches from one host, 400 ms apart, take 3\.")


@case("feeds that are all due, a host each: idle slots are not put down to what was due, nor to hosts")
def all_due(base):
    with origin(base, samples(base), "--feeds", "300", plans=["* latency=1"]) as o:
        w = Feedwheel(base, "concurrency = 150\n")
        w.run("import", o.url_file)
        w.run_once()
        said = headline(drawn(w))
        holds("nothing was due" not in said and "limits per host" not in said, said)


@case("a --once waits for its last; a run that keeps going has no end that held it up")
def going(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=200", "23 latency=1500"]) as o:
        for name, words in ("once", "For the last "), ("going", "Slots were idle "):
            os.mkdir(os.path.join(base, name))
            root = told(
                os.path.join(base, name),
                o, "concurrency = 4\nworkers = 1\norder = fifo\n", words, name == "going")
            equal(bool(root.findall(".//%spath[@class='half']" % SVG)), name == "once", "a dashed line")


@case("of a --once its order and what was forecast are told, and the barriers of batches are drawn")
def recalled(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "24", plans=["* latency=20"]) as o:
        w = Feedwheel(base, "concurrency = 4\norder = batch-unordered\norder_batch = 6\n")
        w.run("import", o.url_file)
        w.run_once()
        root = drawn(w)
        holds("order batch-unordered" in "".join(root.itertext()), "the order")
        rows = root.find(".//%ssvg[@id='rows']" % SVG)
        equal(len(rows.findall("%spath[@class='batch']" % SVG)), 3, "dividers of four batches")
        holds("next batch" in "".join(root.itertext()), "which are explained")


@case("phases are told apart: over TLS there are name, connection, handshake, waiting and body")
def phases(base):
    ca, cert, key = certificate(base, ["127.1.0.1"])
    with origin(base, samples(base, "--copies", "1"), "--feeds", "1", "--tls", cert, key, plans=["0 latency=30"]) as o:
        w = Feedwheel(base, "ca_file = %s\n" % ca)
        w.run("add", o.urls[0])
        w.run_once()
        title = bars(drawn(w))[0]
        for word in ("connect ", "TLS ", "wait "):
            holds(word in title, word + "in " + title)


@case("a picture survives hostile addresses and errors, and is XML")
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
        holds("<script>" in str([f.get("error") for f in w.json("list")]), "an error in a page's words")
        text = w.run("timeline", "-o", "-").stdout
        holds("<script" not in text and "<b>" not in text and "<svg/" not in text, "no markup of theirs")
        equal([c for c in "\x1b\x07\x9b\u202e\ufffe" if c in text], [], "nothing that a terminal or a reader obeys")
        equal(len(bars(ET.fromstring(text))), 3)
        page = os.path.join(base, "run.html")
        w.run("timeline", "-o", page)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        equal((text.count("<script"), text.count("</script"), text.count("</svg>")), (1, 1, 3), "in the page neither")


@case("what is asked wrongly is said, and nothing is written")
def wrong(base):
    w = Feedwheel(base)
    w.run("add", "http://127.1.0.1:9/feed")
    for arguments, code, words in ((("timeline",), 2, "-o run.html"), (("timeline", "-o", "run.png"), 2, ".html"),
                                   (("timeline", "-o", "-"), 1, "run --once"), (("timeline", "-o", "-", "--run", "7"),
                                           1, "--list"),
                                   (("timeline", "-o"), 2, "needs a value"), (("timeline", "-o", "-", "--run", "x"), 2,
                                           "--run"),
                                   (("timeline", "-o", "-", "--json"), 2, "standard output"), (("status", "-o",
                                           "x.svg"), 2, "-o")):
        r = w.run(*arguments, code=code)
        holds(words in r.stderr, "%s: %s" % (arguments, r.stderr))
    with origin(base, samples(base, "--copies", "1"), "--feeds", "1") as o:
        w.run("add", o.urls[0])
        w.run_once()
        there = os.path.join(base, "no", "such", "run.svg")
        holds(there in w.run("timeline", "-o", there, code=1).stderr, "the file is named")
        holds("nothing in that time" in w.run("timeline", "-o", "-",
              "--last", "1ms", code=1).stderr, "an empty stretch of time")


@case("in a browser the page zooms, and says under the pointer what a bar is")
def browser(base):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise Skip("no chromium here")
    with origin(base, samples(base, "--copies", "1"), "--feeds", "20", plans=["* latency=30"]) as o:
        w = Feedwheel(base, "concurrency = 4\n")
        w.run("import", o.url_file)
        w.run_once()
    page = os.path.join(base, "run.html")
    w.run("timeline", "-o", page)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    holds("http://www.w3.org" in text and not re.search(r"(src|href)=", text), "nothing is fetched from elsewhere")
    probe = """<script>
        const b = rows.getBoundingClientRect(), bar = rows.querySelector("g rect").getBoundingClientRect();
        const there = {clientX: b.left + b.width / 2,
            clientY: bar.top + bar.height / 2, bubbles: true, cancelable: true};
        rows.dispatchEvent(new PointerEvent("pointermove", {...there, clientX: bar.left + bar.width / 2}));
        const said = tip.textContent;
        for (let i = 0; i < 5; i++) rows.dispatchEvent(new WheelEvent("wheel", {...there, deltaY: -100}));
        const near = rows.viewBox.baseVal.width / whole;
        dispatchEvent(new KeyboardEvent("keydown", {key: "0"}));
        document.body.dataset.found = JSON.stringify({said, near,
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
    holds("/feed/" in found["said"] and "slot" in found["said"], "words under the pointer: %s" % found)
    holds(found["near"] < 0.5 and abs(found["far"] - 1) < 1e-6, "zoomed in, and all of it again: %s" % found)
    holds(3 <= found["ticks"] <= 40, "an axis: %s" % found)


run()
