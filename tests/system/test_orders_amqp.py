#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The delivery of orders' matches to exchanges: of RabbitMQ, and of brokers that are silent, deaf,
confused or hostile."""
import atexit
import contextlib
import functools
import json
import shutil
import socket
import tempfile
import threading
import time

from brokers import ACK, NACK, START, FalseBroker, RabbitMq
from harness import Feedwheel, Skip, case, equal, holds, run, sanitized, wait_for
from http_server import http_server
from receivers import SHORT, Receiver, add, delivery, entries, fails, filled, is_done, recipe, replay

FORBIDDEN = "allow_networks =\n"


@functools.cache
def rabbitmq():
    """One for all cases, because its start takes seconds. Each case has names of its own in it."""
    if sanitized():
        raise Skip("under a sanitizer the false brokers below do what it does, and worse")
    if not RabbitMq.is_installed():
        raise Skip("install rabbitmq-server")
    base = tempfile.mkdtemp(prefix="fw-")
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    broker = RabbitMq(base)
    atexit.register(broker.stop)
    return broker


@contextlib.contextmanager
def client(broker):
    c = broker.client()
    try:
        yield c
    finally:
        c.close()


def order(w, name, url):
    w.run("order", "add", name, "wanted", "--to", url)


def ids(messages):
    return [json.loads(body)["id"] for _, body in messages]


# ---- RabbitMQ --------------------------------------------------------------------------------------------

@case("matches become persistent messages with an id of their own, in order, by an exchange or straight to a queue",
      needs="amqp")
def delivered(base):
    broker = rabbitmq()
    with client(broker) as c:
        c.exchange("feeds")
        c.queue("all", "feeds", "wanted")
        c.queue("straight")
        w = filled(Feedwheel(base), 150)
        _, commands = recipe("A queue of RabbitMQ", query=("title:CVE", "wanted"), address=(
            "amqp://USER:PASSWORD@mq.example/?exchange=feeds&routing_key=cve",
            broker.url("exchange=feeds&routing_key=wanted")))
        for command in commands:
            w.run(*command)
        order(w, "queue", broker.url("routing_key=straight", vhost="%2F"))
        replay(w, "mq", "queue")
        with http_server(base):
            wait_for("the deliveries", lambda: is_done(w, "mq") and is_done(w, "queue"))
            messages = c.take("all")
            equal(ids(messages), entries(w))
            equal(ids(c.take("straight")), entries(w))
            equal(len({p["message_id"] for p, _ in messages}), 150)
            equal(len({p["message_id"].rpartition(".")[0] for p, _ in messages}), 2, "batches")
            for p, body in messages:
                equal(p["message_id"].rpartition(".")[2], str(json.loads(body)["id"]))
                holds(abs(time.time() - p["timestamp"]) < 600, p)
                equal({k: v for k, v in p.items() if k not in ("message_id", "timestamp")}, {
                    "content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2,
                    "type": "new", "app_id": "feedwheel"})
            first = json.loads(messages[0][1])
            equal((first["type"], first["feed"]["url"]), ("new", "https://a.example/feed"))
            equal(first["entry"], w.json("entries", "--content")["items"][-1])
        holds("client unexpectedly closed" not in broker.output(), "the farewell")


@case("a broker that was killed costs time: messages that it confirmed are there, the others come when it is back",
      needs="amqp")
def killed(base):
    broker = rabbitmq()
    with http_server(base) as d:
        w = filled(d.feedwheel)
        holds(any(survived(broker, w, "kept%d" % n) for n in range(5)), "the broker loses its queues")


def survived(broker, w, name):
    """False: the broker, killed, has lost the queue itself, as RabbitMQ 3.10 does once in fifty times on a busy
    machine."""
    with client(broker) as c:
        c.queue(name)
    order(w, name, broker.url("routing_key=" + name))
    replay(w, name)
    wait_for("the deliveries", lambda: is_done(w, name))
    broker.kill()
    replay(w, name)
    fails(w, name, "Connection refused")
    broker.start()
    with client(broker) as c:
        if not c.has_queue(name):
            return False
    w.run("order", "resume", name)
    wait_for("the deliveries", lambda: is_done(w, name))
    with client(broker) as c:
        messages = c.take(name)
    equal(ids(messages), entries(w) * 2)
    equal(len({p["message_id"] for p, _ in messages}), 24)
    return True


@case("a message that no queue takes is not delivered, and the order says why, until one is bound", needs="amqp")
def not_routed(base):
    broker = rabbitmq()
    with client(broker) as c, http_server(base) as d:
        c.exchange("lonely")
        w = filled(d.feedwheel)
        order(w, "far", broker.url("exchange=lonely&routing_key=k%20k"))
        replay(w, "far")
        fails(w, "far", 'not routed: no queue is bound to the exchange "lonely" for the routing key "k k"')
        equal(delivery(w, "far")["pending_n"], 12)
        holds("not routed" in w.run("order", "show", "far").stdout, "in words")
        c.queue("friend", "lonely", "k k")
        w.run("order", "resume", "far")
        wait_for("the deliveries", lambda: is_done(w, "far"))
        equal(ids(c.take("friend")), entries(w))


@case("what a broker refuses is told in its words, and the password in no words", needs="amqp")
def refused(base):
    broker = rabbitmq()
    with http_server(base) as d:
        w = filled(d.feedwheel)
        wrong = {"password": (broker.url("exchange=x", login="guest:geheim"), "(login): 403 ACCESS_REFUSED"),
                 "vhost": (broker.url("exchange=x", vhost="nowhere"), "(login): 530 NOT_ALLOWED - vhost nowhere"),
                 "exchange": (broker.url("exchange=no"), "(publishing): 404 NOT_FOUND - no exchange 'no' in vhost '/'")}
        for name, (url, _) in wrong.items():
            order(w, name, url)
        replay(w, *wrong)
        for name, (_, words) in wrong.items():
            holds("amqp://127.0.0.1:%d: the broker refuses" % broker.port in fails(w, name, words)["error"], name)
        shown = w.run("order", "show", "password").stdout + w.run("order", "list", "--json").stdout + w.log()
        holds("***@127.0.0.1" in shown and "geheim" not in shown, shown)


# ---- other brokers ---------------------------------------------------------------------------------------

def beside(base, act, words, n=12, content=""):
    """An order whose broker does that fails with these words; a webhook beside it gets what it should meanwhile."""
    with FalseBroker(act) as b, Receiver() as r, http_server(base, conf=SHORT) as d:
        w = filled(d.feedwheel, n, content=content)
        add(w, r, "hook")
        order(w, "far", b.url)
        replay(w, "far")
        wait_for("the broker", lambda: b.accepted_n)
        replay(w, "hook")
        wait_for("the other order", lambda: is_done(w, "hook"))
        fails(w, "far", words)
        equal(delivery(w, "far")["pending_n"], n)
        equal(r.got("/hook"), entries(w))


@case("a message that is repeated has the same id, and all of its batch are repeated until all are confirmed",
      needs="amqp")
def repeated(base):
    def not_stored(b, c): # one of them
        b.answer(c, ACK, 11, multiple=True)
        b.answer(c, NACK, 12)

    def lost(b, c):
        b.answer(c, ACK, 12)
        c.socket.shutdown(socket.SHUT_RDWR)

    def all_stored(b, c): # in any order, one of them twice, and one that was never sent
        for tag in (13, 5, 5, 12):
            b.answer(c, ACK, tag)
        b.answer(c, ACK, 11, multiple=True)
        b.leave(c)
        left.set()

    def act(b, c, _n):
        b.greet(c)
        b.take(c, 12)
        answer(b, c)

    left, answer = threading.Event(), not_stored
    with FalseBroker(act) as b, http_server(base) as d:
        w = filled(d.feedwheel)
        order(w, "far", b.url)
        replay(w, "far")
        fails(w, "far", "could not store a message (nack)")
        answer = lost
        w.run("order", "resume", "far")
        fails(w, "far", "the connection broke (waiting for confirmations)")
        equal(delivery(w, "far")["pending_n"], 12)
        answer = all_stored
        w.run("order", "resume", "far")
        wait_for("the delivery", lambda: is_done(w, "far"))
        sent = [[m["message_id"] for m in one] for one in b.messages]
        equal(sent, [sent[0]] * len(sent))
        equal((len(sent) >= 3, len(set(sent[0]))), (True, 12))
        wait_for("the farewell", left.is_set)


@case("a broker that accepts and says nothing holds up nobody", needs="amqp")
def silent(base):
    beside(base, lambda *_: None, "no answer within 2.0 s (login)")


@case("a broker that never confirms is given up", needs="amqp")
def mute(base):
    def act(b, c, _n):
        b.greet(c)
        b.take(c, 12)
        b.answer(c, ACK, 11, multiple=True)
    beside(base, act, "no answer within 2.0 s (waiting for confirmations)")


@case("a broker that no longer reads is given up", needs="amqp")
def deaf(base):
    # more than the sockets' buffers hold
    beside(base, lambda b, c, _n: b.greet(c), "no answer in time (publishing)", 1, "x" * 8000000)


@case("an answer that is no AMQP, or a wrong one, is refused with words", needs="amqp")
def garbage(base):
    answers = [
        lambda b, c: c.socket.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        lambda b, c: c.socket.sendall(b"AMQP\0\0\x09\x02"), # another version
        lambda b, c: c.send(START, b"\0\x09" + b"\xff" * 40, 0), # a table that is longer than its frame
        lambda b, c: c.send((10, 77), b"", 0), # no such method
        lambda b, c: c.socket.sendall(b"\1\0\0\xff\xff\xff\xff" + bytes(100)), # a frame of 4 GiB
        lambda b, c: (b.greet(c), b.take(c, 12), c.send((60, 99))),
        lambda b, c: (b.greet(c), b.take(c, 12), c.send(ACK, b"\0"))] # cut short
    with contextlib.ExitStack() as stack, http_server(base, conf=SHORT) as d:
        w = filled(d.feedwheel)
        for i, answer in enumerate(answers):
            b = stack.enter_context(FalseBroker(lambda b, c, _n, answer=answer: answer(b, c)))
            order(w, "far%d" % i, b.url)
        replay(w, *("far%d" % i for i in range(len(answers))))
        for i in range(len(answers)):
            print("# " + fails(w, "far%d" % i, "is it a broker for AMQP 0-9-1?")["error"])


@case("a broker at a forbidden address gets no connection, and the order says why", needs="amqp")
def forbidden(base):
    with FalseBroker(lambda *_: None) as b, http_server(base, conf=FORBIDDEN) as d:
        w = filled(d.feedwheel)
        order(w, "far", b.url)
        order(w, "name", b.url.replace("127.0.0.1", "localhost"))
        replay(w, "far", "name")
        for name in "far", "name":
            fails(w, name, "its address is forbidden (loopback): see allow_networks")
        equal(b.accepted_n, 0)


@case("amqp in a build without it is refused with the remedy, and amqps in every build with words")
def absent_words(base):
    w = Feedwheel(base)
    has = "amqp: librabbitmq " in w.run("version").stdout
    remedy = "this build has no AMQP (to have it, install librabbitmq and build with -Damqp=enabled)"
    r = w.run("order", "add", "a", "x", "--to", "amqp://127.0.0.1/x?exchange=y", code=0 if has else 2)
    equal(remedy in r.stderr, not has, r.stderr)
    r = w.run("order", "add", "b", "x", "--to", "amqps://127.0.0.1/x?exchange=y", code=2)
    holds("TLS proxy" in r.stderr if has else remedy in r.stderr, r.stderr)


if __name__ == "__main__":
    run()
