#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Orders whose destination is a program or a file, and the recipes of docs/orders.md."""
import json
import os
import re
import signal
import time

from harness import Feedwheel, case, equal, holds, run, wait_for


def filled(w, n):
    """w has a feed with n entries, which a replay finds."""
    w.run("add", "-q", "https://a.example/feed")
    w.run("pause", "-q", "1")
    items = [{"id": "e%d" % i, "title": "wanted %d" % i, "content_html": "<p>text"} for i in range(n)]
    w.run("push", "1", "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}))
    wait_for("the index", lambda: w.run_once() and "not indexed" not in w.run("order", "test", "wanted").stderr)
    return w


def entries(w):
    """The ids of all entries, rising."""
    return sorted(e["_store"]["entry"] for e in w.json("entries")["items"])


def replay(w, *names):
    for name in names:
        w.run("order", "replay", name, "--since", "1d")


def delivery(w, name):
    return w.json("order", "show", name)["order"]["delivery"]


def program(base, name, text):
    """A script of this text; its path."""
    path = os.path.join(base, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\ncd %s\n%s\n" % (base, text))
    os.chmod(path, 0o755)
    return path


def lines(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8") as f:
            return f.read().splitlines()
    except FileNotFoundError:
        return []


def stop(p):
    p.send_signal(signal.SIGTERM)
    equal(p.wait(60), 0)


def order(base, name, to, n=3, query="wanted"):
    """A Feedwheel with n entries that wait for an order."""
    w = filled(Feedwheel(base), n)
    w.run("order", "add", name, query, "--to", to)
    replay(w, name)
    return w


@case("run --once gives a message to a program: entries, environment, arguments; its exit status accepts it")
def accepts(base):
    path = program(base, "p", "cat >message; echo $FEEDWHEEL_ORDER $FEEDWHEEL_MESSAGE_ID $# \"$1\" >ids; env >env")
    w = order(base, "notify", "command:%s  one  'two" % path)
    w.environment["SECRET"] = "x"
    w.run_once()
    with open(os.path.join(base, "message"), encoding="utf-8") as f:
        message = json.load(f)
    equal((message["type"], message["order"], [d["id"] for d in message["data"]]),
          ("feedwheel.entries", "notify", entries(w)))
    holds("content_html" in message["data"][0]["entry"], message["data"][0]["entry"])
    name, ident, n, first = lines(base, "ids")[0].split(" ", 3)
    equal((name, n, first), ("notify", "2", "one"))
    holds(ident, "an identifier")
    names = {l.partition("=")[0] for l in lines(base, "env")}
    holds("PATH" in names and not names & {"SECRET", "FEEDWHEEL_STORE"}, names)
    d = delivery(w, "notify")
    equal((d["pending_n"], d["dead_n"], d["delivered_n"]), (0, 0, 3))


@case("a program that exits with 75 gets the same message again, and its last line is shown")
def again(base):
    path = program(base, "p", "cat >>messages; echo >>messages; echo $FEEDWHEEL_MESSAGE_ID >>ids\n"
                              "[ $(wc -l <ids) -gt 1 ] || { echo first; echo 'busy: not now'; exit 75; } >&2")
    w = order(base, "notify", "command:" + path)
    p = w.start("run", "--workers", "1")
    wait_for("the second attempt", lambda: delivery(w, "notify")["delivered_n"] == 3, 60)
    ids, messages = lines(base, "ids"), [json.loads(l) for l in lines(base, "messages")]
    equal((len(ids), ids[0]), (2, ids[1]))
    equal(messages[0]["data"], messages[1]["data"])
    holds("exit status 75: busy: not now" in w.log(), w.last_log())
    stop(p)


@case("a program that is not there or fails is a failed attempt with words, and does not hold up other orders")
def fails(base):
    w = order(base, "missing", "command:/nonexistent/program")
    path = program(base, "slow", "echo $$ >slow.pid; exec sleep 1000")
    w.run("order", "add", "slow", "wanted", "--to", "command:" + path)
    w.run("order", "add", "good", "wanted", "--to", "file:" + os.path.join(base, "good"))
    w.run("order", "add", "nowhere", "wanted", "--to", "file:/nonexistent/x")
    replay(w, "slow", "good", "nowhere")
    p = w.start("run", "--workers", "1")
    wait_for("the good one", lambda: len(lines(base, "good")) == 3)
    wait_for("the reasons", lambda: all(delivery(w, n).get("error") for n in ("missing", "nowhere")))
    holds("/nonexistent/program: No such file or directory" in delivery(w, "missing")["error"], "a program")
    holds("/nonexistent/x: No such file or directory" in delivery(w, "nowhere")["error"], "a file")
    # the worker leaves; its program too
    wait_for("the slow one", lambda: lines(base, "slow.pid"))
    pid = int(lines(base, "slow.pid")[0])
    stop(p)
    holds(not os.path.exists("/proc/%d" % pid), "the program has ended")
    equal(delivery(w, "slow")["pending_n"], 3)


@case("the runner is killed while a program runs: the program ends, and its message comes again with the same identifier")
def runner_killed(base):
    path = program(base, "p", "echo $FEEDWHEEL_MESSAGE_ID >>ids; echo $PPID >runner; echo $$ >pid\n"
                              "[ $(wc -l <ids) -gt 1 ] || exec sleep 1000")
    w = order(base, "notify", "command:" + path)
    p = w.start("run", "--workers", "1")
    wait_for("the program", lambda: lines(base, "pid"))
    os.kill(int(lines(base, "runner")[0]), signal.SIGKILL)
    wait_for("its end", lambda: not os.path.exists("/proc/%s" % lines(base, "pid")[0]))
    stop(p) # the sender would wait for the time limit
    w.run_once()
    ids = lines(base, "ids")
    equal((len(ids), ids[0]), (2, ids[1]))
    equal(delivery(w, "notify")["pending_n"], 0)


@case("each entry is a line of a file whose name has the minute; a torn line is ended, and what follows is whole")
def file_a_minute(base):
    spool = os.path.join(base, "spool")
    os.mkdir(spool)
    w = order(base, "archive", "file:%s/%%Y%%m%%d-%%H%%M.ndjson" % spool)
    before = time.time()
    w.run_once()
    name, = os.listdir(spool)
    at = [time.strftime("%Y%m%d-%H%M.ndjson", time.gmtime(t)) for t in (before, time.time())]
    holds(name in at, (name, at))
    got = [json.loads(l) for l in lines(spool, name)]
    equal(([g["id"] for g in got], got[0]["type"], "entry" in got[0]), (entries(w), "new", True))
    w.run("order", "set", "archive", "--to", "file:%s/all" % spool)
    with open(os.path.join(spool, "all"), "w", encoding="utf-8") as f:
        f.write('{"id":1}\n{"id":')
    replay(w, "archive")
    w.run_once()
    got = lines(spool, "all")
    equal((got[:2], [json.loads(l)["id"] for l in got[2:]]), (['{"id":1}', '{"id":'], entries(w)))


@case("with order_commands = none what waits for a command is not delivered, and says so")
def none(base):
    w = order(base, "notify", "command:/bin/true")
    with open(w.conf, "a", encoding="utf-8") as f:
        f.write("order_commands = none\n")
    w.run_once()
    d = delivery(w, "notify")
    equal(d["pending_n"], 3)
    holds("order_commands = none" in d["error"], d)


if __name__ == "__main__":
    run()
