#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Orders whose destination is a program or a file, and the recipes of docs/orders.md."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from http_server import free_port
from receivers import RECIPES, recipe
from harness import BUILD, STARTED, Skip, Feedwheel, case, equal, holds, run, wait_for


def allowed(base, *commands):
    """Settings by which orders may do what these cases do."""
    return "order_programs = %s\norder_files = %s/, /nonexistent/\n" % (
        ", ".join([base + "/", "/nonexistent/program", "/bin/true", *commands]), base)


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
    command = [to.partition(":")[2]] if to.startswith("command:") else []
    w = filled(Feedwheel(base, allowed(base, *command)), n)
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


@case("the runner is killed while a program runs: the program ends, and its message comes again, with the same "
      "identifier")
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


@case("a program that does not end is killed with what it has started, and its message comes again")
def time_limit(base):
    path = program(base, "p", "echo $FEEDWHEEL_MESSAGE_ID >>ids; [ $(wc -l <ids) -gt 1 ] && exit 0\n"
                              "trap '' TERM; sleep 1000 & echo $! >child; echo 'still waiting' >&2; sleep 1000")
    w = order(base, "notify", "command:" + path)
    w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test") # its limit is 2 s, not 60 s
    p = w.start("run", "--workers", "1")
    wait_for("the second attempt", lambda: delivery(w, "notify")["delivered_n"] == 3, 60)
    holds("killed after 2.0 s: still waiting" in w.log(), w.last_log())
    holds(not os.path.exists("/proc/" + lines(base, "child")[0]), "its child has ended")
    ids = lines(base, "ids")
    equal((len(ids), ids[0]), (2, ids[1]))
    stop(p)


@case("with order_commands = none what waits for a command is not delivered, and says so")
def none(base):
    w = order(base, "notify", "command:/bin/true")
    with open(w.conf, "a", encoding="utf-8") as f:
        f.write("order_commands = none\n")
    w.run_once()
    d = delivery(w, "notify")
    equal(d["pending_n"], 3)
    holds("order_commands = none" in d["error"], d)


# ---- docs/orders.md ---------------------------------------------------------------------------------------

equal(len(RECIPES), 7, "recipes; RabbitMQ's has its case in test_orders_amqp.py, that of Redis in "
      "test_orders_send.py, the others below")


def pushed(w, **item):
    w.run("push", "1", "-", stdin=json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [item]}))


def subscribed(base, conf=""):
    w = Feedwheel(base, conf + allowed(base))
    w.run("add", "-q", "https://a.example/feed", "--folder", "News")
    w.run("pause", "-q", "1")
    return w


@case("recipe: a webhook, whose receiver checks the signature, also while the secret is rotated")
def recipe_webhook(base):
    w, port = subscribed(base, "allow_networks = 127.0.0.1/32\n"), free_port()
    code, (command,) = recipe(
        "A webhook, and a receiver that checks its signature", port=("127.0.0.1:8800", "127.0.0.1:%d" % port))
    secret, path, output = w.run(*command).stdout.strip(), os.path.join(base, "receiver.py"), os.path.join(base, "out")
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    with open(output, "wb") as out:
        STARTED.append(subprocess.Popen(["setpriv", "--pdeathsig", "SIGKILL", "--", "python3", path, str(port), secret],
                                        stdout=out, stderr=out, start_new_session=True))
    receiver = STARTED[-1]

    def listens():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    wait_for("the receiver", listens)
    pushed(w, id="1", title="CVE-2026-1", url="https://a.example/1")
    w.run_once()
    w.run("order", "rotate", "security")
    pushed(w, id="2", title="remote code, a podcast")
    pushed(w, id="3", title="remote code", url="https://a.example/3")
    w.run_once()
    equal((delivery(w, "security")["delivered_n"], delivery(w, "security")["pending_n"]), (2, 0))
    with open(output, encoding="utf-8") as f:
        equal([l for l in f.read().splitlines() if "HTTP/1" not in l],
              ["CVE-2026-1 https://a.example/1", "remote code https://a.example/3"])
    receiver.terminate()
    receiver.wait(60)


@case("recipe: a notification on the desktop")
def recipe_desktop(base):
    if not shutil.which("jq"):
        raise Skip("jq is not installed")
    w, path = subscribed(base), os.path.join(base, "fw-notify")
    code, (command,) = recipe("A notification on the desktop", path=("/usr/local/bin/fw-notify", path))
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    os.chmod(path, 0o755)
    program(base, "notify-send", "printf '%s|' \"$@\" >>shown; echo >>shown")
    w.environment["PATH"] = base + ":" + w.environment["PATH"]
    w.run(*command)
    pushed(w, id="1", title="Breaking: $(reboot) 'x'")
    pushed(w, id="2", title="quiet")
    w.run_once()
    equal(lines(base, "shown"), ["--|feedwheel|Breaking: $(reboot) 'x'|"])
    equal(delivery(w, "desktop")["pending_n"], 0)


@case("recipe: a file a minute, and a program that takes files away")
def recipe_file(base):
    w, spool, archive = subscribed(base), os.path.join(base, "spool"), os.path.join(base, "archive")
    code, (command,) = recipe("A file a minute", spool=("/var/spool/fw", spool), archive=("/srv/archive", archive))
    os.mkdir(spool)
    os.mkdir(archive)
    w.run(*command)
    pushed(w, id="1", title="Guten Tag", language="de")
    pushed(w, id="2", title="Good day", language="en")
    w.run_once()
    name, = os.listdir(spool)
    equal([json.loads(l)["entry"]["title"] for l in lines(spool, name)], ["Guten Tag"])
    os.utime(os.path.join(spool, name), (0, 0))
    subprocess.run(["sh", "-c", code], check=True)
    equal((os.listdir(spool), os.listdir(archive)), ([], [name]))


@case("recipe: drop podcasts")
def recipe_drop(base):
    w = subscribed(base)
    _, (command,) = recipe("Drop podcasts")
    w.run(*command)
    pushed(w, id="1", title="spoken", attachments=[{"url": "https://a.example/1.mp3", "mime_type": "audio/mpeg"}])
    pushed(w, id="2", title="written")
    equal([e["title"] for e in w.json("entries")["items"]], ["written"])


@case("recipe: tag, and follow the tag")
def recipe_tag(base):
    w = subscribed(base)
    _, commands = recipe("Tag, and follow the tag")
    w.run(*commands[0])
    pushed(w, id="1", title="SQLite in production")
    pushed(w, id="2", title="Postgres in production")
    pushed(w, id="3", title="Something else")
    w.run_once() # indexes
    text = w.run(*commands[1]).stdout
    holds("SQLite" in text and "Postgres" in text and "Something" not in text, text)


if __name__ == "__main__":
    run()
