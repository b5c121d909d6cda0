# SPDX-License-Identifier: ISC
"""feedwheel plan: forecasts the duration of a run --once from stored timings, without a fetch."""
import re

from harness import SOON, Feedwheel, case, equal, holds, origin, run, samples

ORDERS = ["fifo", "shortest", "longest", "host-path", "batch-unordered", "batch-sorted"]


def timed(base, o, conf=""):
    """A store with one visit of each of the origin's feeds."""
    w = Feedwheel(base, SOON + conf)
    w.run("import", o.url_file)
    w.run_once()
    return w


@case("plan forecasts bounds, totals and the order from stored timings, and fetches nothing")
def forecast(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "12", plans=["* latency=40", "3 latency=400"]) as o:
        w = timed(base, o)
        before = len(o.requests())
        p = w.json("plan", "--all", "--slots", "3")
        equal(len(o.requests()), before, "requests")
        equal((p["feeds"], p["known"], p["slots"], p["order"]), (12, 12, 3, "host-path"))
        holds(p["bound_longest_ms"] >= 400 and p["bound_slots_ms"] >= 280, "bounds: %s" % p)
        equal(p["bound_ms"], max(p["bound_slots_ms"], p["bound_longest_ms"], p["bound_host_ms"]))
        holds(p["bound_ms"] <= p["total_ms"] <= p["sum_ms"], "the total is between its bounds")
        equal(len(p["plan"]), 12)
        takes = {f["feed"]: f["expected_ms"] for f in p["plan"]}
        slow = takes[next(f["id"] for f in w.json("list") if f["url"].endswith("/feed/3"))]
        holds(slow >= 400 and p["plan"][0]["expected_ms"] == max(takes.values()), "the slow feed is first: %s" % takes)
        holds(all(f["known"] and f["expected_ms"] >= 40 and 1 <= f["slot"] <= 3 for f in p["plan"]),
              "each feed has timings")
        text = w.run("plan", "--all", "--slots", "3").stdout
        holds("12 active feeds; 3 slots" in text and "/feed/3" in text and "wait" in text, text)


@case("plan --compare forecasts every order, the batch orders with their barriers")
def compared(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "12", plans=["* latency=20", "%3 latency=200"]) as o:
        w = timed(base, o)
        p = w.json("plan", "--all", "--compare", "--slots", "3")
        equal([x["order"] for x in p["orders"]], ORDERS)
        total = {x["order"]: x["total_ms"] for x in p["orders"]}
        equal(total["host-path"], p["total_ms"])
        holds(total["longest"] <= total["batch-unordered"] and total["longest"] <= total["shortest"], "%s" % total)
        holds(all(x["ratio"] >= 0.999 and 0 <= x["idle"] < 1 for x in p["orders"]), "%s" % p["orders"])
        text = w.run("plan", "--all", "--compare", "--slots", "3").stdout
        holds(all(x in text for x in ORDERS), text)
        equal(w.json("plan", "--all", "--order", "fifo")["order"], "fifo", "plan takes settings as options")


@case("the time of a silent server is waiting time, not time of the body")
def silent(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "3", plans=["* latency=5", "1 hang=start",
            "2 latency=60,hang=body"]) as o:
        w = timed(base, o, "first_byte_timeout_ms = 6s\ntotal_timeout_ms = 8s\nconnect_timeout_ms = 8s\n")
        lines = [l for l in w.run("plan", "--all").stdout.splitlines() if "/feed/" in l and "%" in l]
        rows = {l.split()[-1].rsplit("/", 1)[1]: l for l in lines}
        holds("wait" in rows["1"] and "body" not in rows["1"], rows["1"])
        holds(re.search(r"body \d", rows["2"]), rows["2"])


@case("the bound names the host whose feeds take longest; a feed without timings takes as long as others of its host")
def chains(base):
    with origin(base, samples(base, "--copies", "1"), "--feeds", "8", "--hosts", "1", plans=["* latency=50"]) as o:
        w = timed(base, o, "host_concurrency = 1\n")
        p = w.json("plan", "--all", "--slots", "8")
        equal((p["bound_host"], p["bound_host_feeds"]), ("127.1.0.1", 8))
        equal(p["bound_ms"], p["bound_host_ms"])
        holds("8 feeds, 1 at a time" in w.run("plan", "--all", "--slots", "8").stdout, "as text")
        w.run("add", o.url("/doc/0"))
        p = w.json("plan", "--all", "--slots", "8")
        equal((p["feeds"], p["known"]), (9, 8))
        guess = next(f for f in p["plan"] if not f["known"])
        holds(guess["expected_ms"] >= 50, "as the others of its host: %s" % guess)
        holds("1 not timed yet" in w.run("plan", "--all").stdout, "and as text")
        v = Feedwheel(base, name="new.db")
        v.run("add", *[o.url("/doc/%d" % i, "127.1.1.%d" % (i + 1)) for i in range(6)])
        orders = v.json("plan", "--compare", "--slots", "3")["orders"]
        holds(all(x["total_ms"] > 0 and x["ratio"] >= 0.999 for x in orders),
              "guesses count in every order: %s" % orders)
        holds("so this is a guess" in v.run("plan").stdout, "plan reports that these are guesses")


@case("plan without due feeds names --all; wrong options are errors")
def edges(base):
    w = Feedwheel(base)
    w.run("add", "http://127.1.0.1:9/feed")
    w.run("pause", "#1")
    holds("--all" in w.run("plan").stderr, "plan names --all")
    equal(w.run("plan", "--all").stdout, "")
    equal(w.json("plan")["feeds"], 0)
    for arguments, code, part in (
        (("--slots", "0"), 2, "--slots"),
        (("--slots", "9999999"), 2, "--slots"),
        (("--order", "best"), 4, "fifo"),
        (("x",), 2, "unexpected argument")):
        r = w.run("plan", *arguments, code=code)
        holds(part in r.stderr, "%s: %s" % (arguments, r.stderr))


run()
