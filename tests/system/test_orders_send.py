#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The delivery of orders' matches to receivers that accept, refuse, are slow, silent or hostile; and
what is delivered when senders are killed and take over from each other."""
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from http_server import HttpServer, free_port, http_server, metric
from harness import BUILD, Feedwheel, Skip, case, each_engine, equal, holds, run, server, store_of, wait_for
from receivers import Receiver, SHORT, add, delivery, entries, fails, filled, is_done, items, recipe, replay, sender


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- what is delivered -----------------------------------------------------------------------------------

@each_engine("matches are delivered in messages that are signed, in order, each once", also=["sqlite"])
def core(base, engine):
    with store_of(engine, base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url), 250)
        add(w, r, "sec")
        w.run("order", "pause", "sec")
        replay(w, "sec")
        with http_server(base, store=url) as d:
            equal(r.at("/sec"), [], "paused")
            w.run("order", "resume", "sec")
            wait_for("the deliveries", lambda: is_done(w, "sec"))
            equal(r.got("/sec"), entries(w))
            messages = r.at("/sec")
            equal([len(m.ids()) for m in messages], [100, 100, 50])
            equal({m.signed for m in messages}, {True})
            equal(len({m.id for m in messages}), 3)
            holds(all(m.age < 60 and m.type == "application/json" for m in messages), "headers")
            equal({m.accept for m in messages}, {"*/*"}) # a message wants no feed
            one = messages[0].json()
            equal((one["type"], one["order"]), ("feedwheel.entries", "sec"))
            first = one["data"][0]
            equal((first["type"], first["feed"]), ("new", {"id": 1, "url": "https://a.example/feed"}))
            equal(first["entry"], w.json("entries", "--content")["items"][-1])
            equal(delivery(w, "sec")["delivered_n"], 250)
            replay(w, "sec") # what was delivered is delivered again, as new messages
            wait_for("the deliveries", lambda: len(r.got("/sec")) == 500)
            equal(len({m.id for m in r.at("/sec")}), 6)
            d.stop()


@case("an entry that was deleted is left out, one that changed comes as it is, one that is large comes alone")
def contents(base):
    with Receiver() as r:
        w = filled(Feedwheel(base), 4)
        filled(w, 1, subscribe=False, content="x" * 400000)
        add(w, r, "sec")
        w.run("order", "pause", "sec")
        replay(w, "sec")
        ids = entries(w)
        w.sql("DELETE FROM entries WHERE id = ?", ids[1], write=True)
        w.run("push", "1", "-", stdin=items(2, 1, word="wanted and changed"))
        with http_server(base):
            w.run("order", "resume", "sec")
            wait_for("the deliveries", lambda: is_done(w, "sec"))
        equal([m.ids() for m in r.at("/sec")], [[ids[0]], ids[2:]])
        holds("x" * 400000 in r.at("/sec")[0].json()["data"][0]["entry"]["content_html"], "the content")
        equal(r.at("/sec")[1].json()["data"][0]["entry"]["title"], "wanted and changed 2")
        equal(delivery(w, "sec")["delivered_n"], 3)


# ---- receivers that do not accept ------------------------------------------------------------------------

@each_engine("a message that failed comes again with the same id and body; what is replayed meanwhile comes after it",
             also=["sqlite"])
def repeated(base, engine):
    with store_of(engine, base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url))
        add(w, r, "sec", "wanted 3")
        add(w, r, "all")
        r.status("/sec", 500, 500, 204)
        with http_server(base, store=url):
            w.run("order", "set", "sec", "--query", "title:\"wanted 3\"")
            replay(w, "sec")
            equal(fails(w, "sec", "answered 500")["retried_n"], 1)
            w.run("order", "set", "sec", "--query", "wanted")
            replay(w, "sec", "all") # tries at once
            wait_for("the second attempt", lambda: len(r.at("/sec")) == 2)
            w.run("order", "resume", "sec")
            wait_for("the deliveries", lambda: is_done(w, "sec") and is_done(w, "all"))
        a, b, c, *rest = r.at("/sec")
        equal((a.id, a.body), (b.id, b.body))
        equal((a.id, a.body), (c.id, c.body))
        ids = entries(w)
        equal(a.ids(), [ids[3]])
        equal([i for m in rest for i in m.ids()], [i for i in ids if i != ids[3]])
        equal(len({m.id for m in r.messages if m.path == "/sec"}), 2)
        equal(r.got("/all"), ids)
        equal(delivery(w, "sec")["retried_n"], 2)


@case("an order that is resumed during an attempt is tried again at once, however that attempt ends")
def resumed(base):
    begun, resumed_at = threading.Event(), threading.Event()

    def answer(h):
        if not begun.is_set():
            begun.set()
            resumed_at.wait(60)
            h.respond(503, ("Retry-After", "86400"))
        else:
            h.respond(204)

    with sender(base) as (_d, w, r):
        filled(w)
        add(w, r, "sec")
        r.answer("/sec", answer)
        replay(w, "sec")
        wait_for("the first attempt", begun.is_set)
        w.run("order", "resume", "sec")
        resumed_at.set()
        wait_for("the deliveries", lambda: is_done(w, "sec"))
        equal(len(r.at("/sec")), 2)


@case("slow, silent, endless and redirecting receivers fail with words, and hold up nobody else")
def hostile(base):
    with sender(base, conf=SHORT) as (_d, w, r):
        filled(w)

        def endless(h):
            h.send_response(200)
            h.send_header("Content-Length", str(300 << 20))
            h.end_headers()
            for _ in range(300):
                h.wfile.write(b"x" * (1 << 20))

        def late(h):
            r.end.wait(8)
            h.respond(200)

        def half(h):
            h.send_response(200)
            h.send_header("Content-Length", "100")
            h.end_headers()
            h.wfile.write(b"x")
            r.end.wait(30)
        answers = {"silent": lambda _: r.end.wait(60), "late": late, "endless": endless, "half": half,
                   "moved": lambda h: h.respond(302, ("Location", r.url + "/good"))}
        for name, answer in answers.items():
            add(w, r, name)
            r.answer("/" + name, answer)
        for i in range(10):
            add(w, r, "silent%d" % i, path="/silent")
        replay(w, "silent", "late", *("silent%d" % i for i in range(10)))
        wait_for("silent ones", lambda: len(r.at("/silent")) >= 11)
        add(w, r, "good")
        replay(w, "good", "endless", "half", "moved")
        wait_for("the delivery", lambda: is_done(w, "good"))
        equal(r.got("/good"), entries(w))
        for name in "endless", "half": # the status decides
            wait_for(name, lambda n=name: is_done(w, n))
            equal(len(r.at("/" + name)), 1, name)
        fails(w, "moved", "answered 302 to %s/good: redirects are not followed" % r.url)
        equal(len(r.at("/good")), 1, "the redirect was not followed")
        for name in "silent", "late":
            fails(w, name, "no answer within 2.0 s")
        table = w.run("order", "show", "silent").stdout
        holds("failing" in table and "error" in table, table)


@case("429 and 503 say when to come again; no more than a day is waited")
def retry_after(base):
    with sender(base) as (_d, w, r):
        filled(w)
        far = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 7200))
        for name, status, value, least, most in (
                ("seconds", 429, "3600", 3500, 3700), ("date", 503, far, 7000, 7300), ("year", 503, "31536000", 86000,
                86500), ("other", 500, "3600", 0, 6)):
            add(w, r, name)
            r.status("/" + name, status, headers=[("Retry-After", value)])
            replay(w, name)
            d = fails(w, name, "answered %d" % status)
            pause = seconds(d["next_at"]) - time.time()
            holds(least - 10 <= pause <= most, (name, pause))


@case("410 ends an order: what waits are dead letters, until it is resumed and they are retried")
def gone(base):
    with sender(base) as (_d, w, r):
        filled(w)
        add(w, r, "sec")
        r.status("/sec", 410, 204)
        replay(w, "sec")
        wait_for("the end", lambda: w.json("order", "show", "sec")["order"]["state"] == "ended")
        wait_for("dead letters", lambda: delivery(w, "sec")["dead_n"] == 12)
        equal((len(r.at("/sec")), delivery(w, "sec")["pending_n"]), (1, 0))
        holds("has ended" in w.run("order", "replay", "sec", "--since", "1d", code=2).stderr, "refused")
        w.run("order", "resume", "sec")
        w.run("order", "retry", "sec")
        wait_for("the deliveries", lambda: is_done(w, "sec"))
        equal(r.got("/sec")[12:], entries(w))
        equal(len({m.id for m in r.at("/sec")}), 2)
        equal(delivery(w, "sec")["delivered_n"], 12)


@case("what waits for too long becomes dead letters, which are delivered when they are retried")
def dead(base):
    with sender(base, conf="delivery_timeout_ms = 1s\n") as (_d, w, r):
        filled(w)
        add(w, r, "sec")
        r.status("/sec", 500)
        replay(w, "sec")
        fails(w, "sec", "answered 500")
        w.sql("UPDATE matches SET at_ms = at_ms - 5000", write=True)
        wait_for("dead letters", lambda: delivery(w, "sec")["dead_n"] == 12 or w.run("order", "resume", "sec") is None)
        equal(delivery(w, "sec")["pending_n"], 0)
        equal(len(w.json("order", "dead", "sec")), 12)
        r.status("/sec", 200)
        n = len(r.at("/sec"))
        w.run("order", "retry", "sec")
        wait_for("the deliveries", lambda: is_done(w, "sec"))
        equal([i for m in r.at("/sec")[n:] for i in m.ids()], entries(w))


@case("doctor names a receiver that fails")
def doctor(base):
    with sender(base) as (_d, w, r):
        filled(w)
        add(w, r, "sec")
        r.status("/sec", 500)
        replay(w, "sec")
        fails(w, "sec", "answered 500")

        def age(ms):
            key, value = w.sql("SELECT record_key, value FROM records WHERE kind = 'delivery'")[0]
            value = json.loads(value)
            value["failing_since_ms"] -= ms
            w.sql("UPDATE records SET value = ? WHERE kind = 'delivery' AND record_key = ?",
                  json.dumps(value).encode(), key, write=True)

        def found():
            return [c["found"] for c in w.json("doctor")["checks"] if c["check"] == "orders"][0]
        equal(found(), "1")
        age(2 * 3600000)
        holds("that of sec among them: answered 500" in found(), found())


@case("metrics count what was matched, delivered, retried, dead and late")
def metrics(base):
    with sender(base) as (d, w, r):
        filled(w)
        add(w, r, "good")
        add(w, r, "bad")
        r.status("/bad", 500)
        replay(w, "good", "bad")
        fails(w, "bad", "answered 500")
        wait_for("the delivery", lambda: is_done(w, "good"))
        equal(metric(d, "orders_leads"), 1)

        def of(name):
            return {n: float(v) for n, v in re.findall(
                r'^feedwheel_order_(\w+)\{order="%s"\} (\S+)$' % name, d.request("GET", "/metrics")[2], re.M)}
        wait_for("the numbers", lambda: of("bad").get("pending") == 12)
        late = of("bad").pop("lag_seconds")
        holds(0 < late < 600, late)
        equal({k: v for k, v in of("bad").items() if k != "lag_seconds"},
              {"matched_total": 12, "delivered_total": 0, "retries_total": 1, "pending": 12, "dead_letters": 0})
        equal(of("good"), {"matched_total": 12, "delivered_total": 12, "retries_total": 0, "pending": 0,
                           "dead_letters": 0, "lag_seconds": 0})
        equal((metric(d, "orders_pending"), metric(d, "orders_dead_letters")), (12, 0))


# ---- addresses, destinations -----------------------------------------------------------------------------

@case("a receiver at a forbidden address gets nothing, and the order says why")
def forbidden(base):
    with sender(base, conf="allow_networks =\n") as (_d, w, r):
        filled(w)
        add(w, r, "sec")
        replay(w, "sec")
        d = fails(w, "sec", "allow_networks")
        holds("loopback" in d["error"], d)
        equal((r.messages, d["pending_n"]), ([], 12))


@case("a password in the address is sent as Basic authentication, and shown to nobody")
def password(base):
    with sender(base) as (_d, w, r):
        filled(w)
        w.run("order", "add", "sec", "wanted", "--to", r.url.replace("//", "//u:geheim@") + "/sec")
        replay(w, "sec")
        wait_for("the delivery", lambda: is_done(w, "sec"))
        equal(r.at("/sec")[0].authorization, "Basic dTpnZWhlaW0=")
        holds("geheim" not in w.run("order", "show", "sec", "--json").stdout + w.log(), "shown")


def stream(url, key):
    """The rows of a stream: their fields."""
    u = urllib.parse.urlsplit(url)
    address = ["-h", u.hostname, "-p", str(u.port)] if u.hostname else ["-s", u.path]
    text = subprocess.run(["redis-cli", *address, "--json", "XRANGE", key, "-", "+"], check=True,
                          capture_output=True, text=True).stdout
    return [dict(zip(fields[::2], fields[1::2])) if isinstance(fields, list) else fields
            for _, fields in json.loads(text)]


@each_engine("matches are appended to a stream of the store's server", leave_out=["postgres", "mysql"])
def streams(base, engine):
    with server(engine, base) as s:
        url = s.url()
        w = filled(Feedwheel(base, store=url), 150)
        w.run("order", "add", "own", "wanted", "--to", "redis:wanted")
        w.run("order", "pause", "own")
        replay(w, "own")
        with http_server(base, store=url):
            w.run("order", "resume", "own")
            wait_for("the deliveries", lambda: is_done(w, "own"))
        rows = stream(url, "wanted")
        equal([int(f["id"]) for f in rows], entries(w))
        equal({(f["type"], f["feed_id"]) for f in rows}, {("new", "1")})
        equal(len({f["message_id"] for f in rows}), 2)
        equal(json.loads(rows[0]["message"])["entry"]["title"], "wanted 0")


@each_engine("a stream keeps about as many entries as its order says", leave_out=["postgres", "mysql"])
def bounded_stream(base, engine):
    with server(engine, base) as s:
        url = s.url()
        w = filled(Feedwheel(base, store=url), 150)
        _, commands = recipe("A stream of Redis", query=("breaking", "wanted"), name=("wire", "few"), n=("5000", "20"))
        w.run(*commands[0])
        w.run("order", "add", "all", "wanted", "--to", "redis:all?maxlen=0")
        for name in "few", "all":
            w.run("order", "pause", name)
        replay(w, "few", "all")
        with http_server(base, store=url):
            for name in "few", "all":
                w.run("order", "resume", name)
            wait_for("the deliveries", lambda: is_done(w, "few") and is_done(w, "all"))
        ids = [int(f["id"]) for f in stream(url, "few")]
        holds(20 <= len(ids) < 100, len(ids))
        equal(ids, entries(w)[-len(ids):])
        equal([int(f["id"]) for f in stream(url, "all")], entries(w))


@contextlib.contextmanager
def redis_on_tcp(base):
    """The address of a Redis of this test's own."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if not binary:
        raise Skip("install redis-server")
    port = free_port()
    p = subprocess.Popen([binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", base],
                         stdout=subprocess.DEVNULL)
    try:
        def answers():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                return True
        wait_for("Redis", answers)
        yield "redis://127.0.0.1:%d/0" % port
    finally:
        p.terminate()
        p.wait()


@case("matches are appended to a stream of another server, if its address is permitted", needs="redis")
def far_stream(base):
    with redis_on_tcp(base) as url:
        w = filled(Feedwheel(base))
        w.run("order", "add", "far", "wanted", "--to", url + "?stream=x")
        w.run("order", "add", "bad", "wanted", "--to", url[:-1] + "77777?stream=x")
        replay(w, "far", "bad")
        with http_server(base):
            wait_for("the deliveries", lambda: is_done(w, "far"))
            fails(w, "bad", "no database with this number")
        equal([int(f["id"]) for f in stream(url, "x")], entries(w))
        with http_server(base, conf="allow_networks =\n"):
            replay(w, "far")
            fails(w, "far", "its address is forbidden (loopback)")
        equal(len(stream(url, "x")), 12)


@case("a stream without a server is refused with words")
def no_stream(base):
    w = Feedwheel(base)
    for to, words in (("redis:x", "redis://HOST:PORT/DB?stream=STREAM"), ("redis://127.0.0.1/0", "name of a stream")):
        holds(words in w.run("order", "add", "a", "x", "--to", to, code=2).stderr, to)


# ---- orders change while they deliver --------------------------------------------------------------------

@case("a paused order is not delivered, a removed one leaves nothing, a rotated secret signs at once")
def changes(base):
    with sender(base) as (_d, w, r):
        filled(w)
        for name in "sec", "gone":
            add(w, r, name)
            w.run("order", "pause", name)
        replay(w, "sec", "gone")
        w.run("order", "remove", "gone")
        new = w.run("order", "rotate", "sec").stdout.strip()
        old, r.secrets["/sec"] = r.secrets["/sec"], new
        add(w, r, "other")
        replay(w, "other")
        wait_for("another delivery", lambda: is_done(w, "other"))
        equal((r.at("/sec"), r.at("/gone")), ([], []))
        w.run("order", "resume", "sec")
        wait_for("the delivery", lambda: is_done(w, "sec"))
        replay(w, "sec")
        r.secrets["/sec"] = old # both sign
        # matches are removed after the receiver's answer
        wait_for("the delivery", lambda: len(r.got("/sec")) == 24 and is_done(w, "sec"))
        equal({m.signed for m in r.at("/sec")}, {True})
        equal(w.one("SELECT count(*) FROM matches"), 0)
        equal(w.one("SELECT count(*) FROM records WHERE kind = 'delivery'"), 2)


@case("old dead letters are removed, and what is stored of orders that were removed, unless an order cannot be read")
def sweep(base):
    with Receiver() as r:
        w = filled(Feedwheel(base, "changes_retention_ms = 1h\n"))
        w.binary = os.path.join(BUILD, "tests", "system", "feedwheel_test") # it sweeps each second, not each minute
        for name in "sec", "bad", "gone":
            add(w, r, name)
            replay(w, name)
        w.run("order", "pause", "bad")
        w.run("order", "pause", "gone")
        r.status("/sec", 410)
        w.run_once()
        equal(delivery(w, "sec")["dead_n"], 12)

        def record(name):
            return w.one("SELECT value FROM records WHERE kind = 'order' AND record_key = ?", name.encode())
        order = {n: json.loads(record(n))["id"] for n in ("sec", "bad", "gone")}
        rows = w.sql("SELECT * FROM matches WHERE order_id = ?", order["gone"])
        w.run("order", "remove", "gone")
        for row in rows: # a commit that had matched them before
            w.sql("INSERT INTO matches VALUES (%s)" % ",".join("?" * len(row)), *row, write=True)
        w.sql("UPDATE matches SET dead = 1 WHERE order_id = ? AND change_id % 2", order["gone"], write=True)
        value = record("bad")

        def store(text):
            w.sql("UPDATE records SET value = ? WHERE kind = 'order' AND record_key = ?", text, b"bad", write=True)

        def stored(name):
            return w.one("SELECT count(*) FROM matches WHERE order_id = ?", order[name])

        def age(n):
            w.sql("UPDATE matches SET at_ms = at_ms - 7200000 WHERE order_id = ? AND change_id IN (SELECT change_id "
                  "FROM matches WHERE order_id = ? ORDER BY change_id LIMIT ?)", order["sec"], order["sec"], n,
                  write=True)
        store(b"{")
        p = w.start("run", "--workers", "1")
        for left in 9, 6: # the second time, the whole of a sweep has passed
            age(3)
            wait_for("a sweep", lambda left=left: stored("sec") == left)
        equal((stored("bad"), stored("gone")), (12, 12), "whose are they?")
        store(value)
        wait_for("another sweep", lambda: stored("gone") == 0)
        p.terminate()
        equal(p.wait(60), 0)
        equal((stored("sec"), stored("bad")), (6, 12))
        equal(w.one("SELECT min(change_id) FROM matches WHERE order_id = ?", order["sec"]), entries(w)[6])


# ---- several senders, killed ones ------------------------------------------------------------------------

def once_each(r, path, ids):
    """Every change came, with one id of a message, in order within each message's first coming."""
    seen = {}
    first = []
    for m in r.at(path):
        if seen.setdefault(m.id, m.ids()) is not None and len(first) < len(ids) and m.id not in first:
            first.append(m.id)
        equal(seen[m.id], m.ids(), "a repeated message has the same entries")
    got = [i for mid in dict.fromkeys(m.id for m in r.at(path)) for i in seen[mid]]
    equal(got, ids)


@each_engine("a sender is killed in the middle of batches: each entry comes in one message, which may be repeated",
             also=["sqlite"])
def killed(base, engine):
    with store_of(engine, base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url), 1500)
        add(w, r, "sec")
        w.run("order", "pause", "sec")
        replay(w, "sec")
        w.run("order", "resume", "sec")
        kills = 0
        while not is_done(w, "sec"):
            n = len(r.at("/sec"))
            # the third message is not answered before the kill
            r.answer("/sec", lambda h, n=n: h.respond(204) if len(r.at("/sec")) < n + 3 else r.end.wait(60))
            d = HttpServer(base, store=url)
            wait_for("messages", lambda n=n: len(r.at("/sec")) >= n + 3 or is_done(w, "sec"))
            d.kill()
            kills += 1
        holds(kills >= 3, kills)
        once_each(r, "/sec", entries(w))


@each_engine("one of two servers delivers; when it stops or dies, the other one does", also=["sqlite"])
def two(base, engine):
    with store_of(engine, base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url), 900)
        a, b = (HttpServer(os.path.join(base, n), store=url or w.store) for n in "ab")
        add(w, r, "sec")
        r.silent("/sec")
        replay(w, "sec")
        wait_for("a message", lambda: r.at("/sec"))

        def leader():
            return [d for d in (a, b) if "this process delivers" in d.feedwheel.log()]
        equal(len(leader()), 1)
        first = leader()[0]
        second = b if first is a else a
        first.kill()
        wait_for("the message again", lambda: len(r.at("/sec")) == 2)
        equal(r.at("/sec")[0].id, r.at("/sec")[1].id)
        r.answer("/sec", lambda h: h.respond(204))
        first.start()
        second.stop() # its attempt is cancelled
        wait_for("the deliveries", lambda: is_done(w, "sec"))
        once_each(r, "/sec", entries(w))
        first.stop()


@case("a sender is stopped beyond its lease: another one takes over; the first one, continued, repeats nothing",
      needs="redis") # where a stopped process holds no lock
def stopped(base):
    with store_of("redis", base) as url, Receiver() as r:
        w = filled(Feedwheel(base, store=url), 900)
        a, b = (HttpServer(os.path.join(base, n), store=url) for n in "ab")
        add(w, r, "sec")
        r.silent("/sec")
        replay(w, "sec")
        wait_for("a message", lambda: r.at("/sec"))
        first, second = (a, b) if metric(a, "orders_leads") else (b, a)
        equal((metric(first, "orders_leads"), metric(second, "orders_leads")), (1, 0))
        os.killpg(first.process.pid, signal.SIGSTOP)
        r.answer("/sec", lambda h: h.respond(204))
        wait_for("the other one to deliver", lambda: is_done(w, "sec"), 120) # the lease is a minute
        equal(metric(second, "orders_leads"), 1)
        equal(r.at("/sec")[0].id, r.at("/sec")[1].id, "it begins with the message that was not answered")
        once_each(r, "/sec", entries(w))
        w.run("push", "1", "-", stdin=items(900, 50))
        wait_for("what came meanwhile", lambda: is_done(w, "sec") and len(set(r.got("/sec"))) == 950)
        os.killpg(first.process.pid, signal.SIGCONT)
        wait_for("it to notice", lambda: metric(first, "orders_leads") == 0)
        w.run("push", "1", "-", stdin=items(950, 50))
        wait_for("what came then", lambda: is_done(w, "sec") and len(set(r.got("/sec"))) == 1000)
        second.stop()
        w.run("push", "1", "-", stdin=items(1000, 50))
        wait_for("the first one to lead again", lambda: is_done(w, "sec") and len(set(r.got("/sec"))) == 1050)
        equal(metric(first, "orders_leads"), 1)
        once_each(r, "/sec", entries(w))
        equal(len(r.at("/sec")), 1 + len({m.id for m in r.at("/sec")}), "one message came twice")
        first.stop()


@case("run --once delivers what is due before it ends, and each order until an attempt fails")
def at_the_end(base):
    with Receiver() as r:
        w = filled(Feedwheel(base), 250)
        add(w, r, "sec")
        add(w, r, "bad")
        r.status("/bad", 204, 503)
        w.run("order", "pause", "sec")
        w.run("order", "pause", "bad")
        replay(w, "sec", "bad")
        w.run_once()
        equal(r.messages, [])
        w.run("order", "resume", "sec")
        w.run("order", "resume", "bad")
        w.run_once()
        equal(r.got("/sec"), entries(w))
        equal(len(r.at("/bad")), 2)
        equal(delivery(w, "bad")["pending_n"], 150)


@case("the first worker of a run delivers")
def worker(base):
    with Receiver() as r:
        w = filled(Feedwheel(base))
        add(w, r, "sec")
        with http_server(base, "--workers", "2", command="run"):
            replay(w, "sec")
            wait_for("the deliveries", lambda: is_done(w, "sec"))
        equal(r.got("/sec"), entries(w))
        equal(w.log().count("this process delivers"), 1)


@each_engine("an outage of the store costs time, not deliveries", leave_out=["sqlite"])
def outage(base, engine):
    with server(engine, base) as s, Receiver() as r:
        url = s.url()
        w = filled(Feedwheel(base, store=url), 300)
        with http_server(base, store=url):
            add(w, r, "sec")
            r.silent("/sec")
            replay(w, "sec")
            wait_for("the first message", lambda: r.at("/sec"))
            s.kill()
            r.answer("/sec", lambda h: h.respond(204))
            r.end.set() # the answer to the first one comes while there is no store
            wait_for("the outage", lambda: "the store is unavailable" in w.log())
            s.restart()
            wait_for("the deliveries", lambda: is_done(w, "sec"), 60)
        once_each(r, "/sec", entries(w))


if __name__ == "__main__":
    run()
