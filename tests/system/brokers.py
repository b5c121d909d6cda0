# SPDX-License-Identifier: ISC
"""Brokers of AMQP 0-9-1 for the tests of deliveries: RabbitMQ, a client that reads its queues, and a
false broker that does what its test wants. They end with the test program, however it ends."""
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading

from harness import equal, wait_for
from http_server import free_port

RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server" # the one in PATH insists on root or the user rabbitmq

METHOD, HEADER, BODY, END = 1, 2, 3, 0xce
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK, CLOSE, CLOSE_OK = (
    (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41), (10, 50), (10, 51))
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
EXCHANGE_DECLARE, QUEUE_DECLARE, QUEUE_BIND = (40, 10), (50, 10), (50, 20)
PUBLISH, GET, GET_OK, ACK, NACK = (60, 40), (60, 70), (60, 71), (60, 80), (60, 120)
CONFIRM, CONFIRM_OK = (85, 10), (85, 11)
PROPERTIES = ("content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
              "expiration", "message_id", "timestamp", "type", "user_id", "app_id")
NUMBERS = {"delivery_mode": "B", "priority": "B", "timestamp": ">Q"}


def short(text):
    return struct.pack("B", len(text)) + text.encode()


def properties(payload):
    """Those of a message, by the payload of its header frame; it has no headers."""
    flags, at, found = struct.unpack_from(">H", payload, 12)[0], 14, {}
    for i, name in enumerate(PROPERTIES):
        if not flags & 1 << (15 - i):
            continue
        if name in NUMBERS:
            found[name] = struct.unpack_from(NUMBERS[name], payload, at)[0]
            at += struct.calcsize(NUMBERS[name])
        else:
            found[name] = payload[at + 1:at + 1 + payload[at]].decode()
            at += 1 + payload[at]
    return found


class Connection:
    """Either side of one."""

    def __init__(self, s):
        self.socket, self.stream = s, s.makefile("rb")

    def send(self, method, arguments=b"", channel=1, kind=METHOD):
        payload = struct.pack(">HH", *method) + arguments if kind == METHOD else arguments
        self.socket.sendall(struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([END]))

    def read(self, n):
        data = self.stream.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def receive(self):
        """The next frame: its kind, its method or None, its arguments or payload."""
        kind, _channel, n = struct.unpack(">BHI", self.read(7))
        payload = self.read(n)
        equal(self.read(1)[0], END)
        return (kind, struct.unpack_from(">HH", payload), payload[4:]) if kind == METHOD else (kind, None, payload)

    def call(self, method, arguments=b"", channel=1):
        self.send(method, arguments, channel)
        return self.receive()

    def content(self):
        """A message's properties and its body."""
        payload = self.receive()[2]
        n, body = struct.unpack_from(">Q", payload, 4)[0], b""
        while len(body) < n:
            body += self.receive()[2]
        return properties(payload), body

    def close(self):
        self.stream.close()
        self.socket.close()


class Client(Connection):
    def __init__(self, port):
        super().__init__(socket.create_connection(("127.0.0.1", port), 30))
        self.socket.sendall(b"AMQP\0\0\x09\x01")
        self.receive()
        self.call(START_OK, bytes(4) + short("PLAIN") + struct.pack(">I", 12) + b"\0guest\0guest" + short("en_US"), 0)
        self.send(TUNE_OK, struct.pack(">HIH", 1, 131072, 0), 0)
        equal(self.call(OPEN, short("/") + bytes(2), 0)[1], OPEN_OK)
        self.call(CHANNEL_OPEN, bytes(1))

    def close(self):
        with contextlib.suppress(OSError):
            self.call(CLOSE, struct.pack(">H", 200) + short("bye") + bytes(4), 0)
        super().close()

    def exchange(self, name):
        equal(self.call(EXCHANGE_DECLARE, bytes(2) + short(name) + short("direct") + b"\x02" + bytes(4))[1], (40, 11))

    def queue(self, name, exchange="", key=""):
        """Durable, and bound to an exchange."""
        equal(self.call(QUEUE_DECLARE, bytes(2) + short(name) + b"\x02" + bytes(4))[1], (50, 11))
        if exchange:
            equal(self.call(QUEUE_BIND, bytes(2) + short(name) + short(exchange) + short(key) + bytes(5))[1], (50, 21))

    def has_queue(self, name):
        """If not, the broker closes the channel."""
        return self.call(QUEUE_DECLARE, bytes(2) + short(name) + b"\x01" + bytes(4))[1] == (50, 11)

    def take(self, queue):
        """All messages of a queue, and the queue is empty then."""
        found = []
        while self.call(GET, bytes(2) + short(queue) + b"\1")[1] == GET_OK:
            found.append(self.content())
        return found


class RabbitMq:
    """One with its own port, node, folder, cookie and epmd."""

    def __init__(self, base):
        self.base, self.port, self.processes = base, free_port(), []
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": base, "LC_ALL": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(free_port()),
            "RABBITMQ_NODENAME": "fw%d@localhost" % self.port, "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port), "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": os.path.join(base, "mnesia"), "RABBITMQ_LOG_BASE": os.path.join(base, "log"),
            "RABBITMQ_LOGS": "-", "RABBITMQ_PID_FILE": os.path.join(base, "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(base, "plugins"),
            "RABBITMQ_CONFIG_FILE": os.path.join(base, "none"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ALLOW_INPUT": "1", # one process, the one that was started
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput +S 2:2 -kernel inet_dist_use_interface {127,0,0,1}"}
        with open(os.path.join(base, "plugins"), "w", encoding="ascii") as f:
            f.write("[].\n")
        self.run("epmd") # else RabbitMQ starts one that outlives it
        self.start()

    def run(self, *argv):
        with open(os.path.join(self.base, "out"), "ab") as out:
            self.processes.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "SIGKILL", *argv], env=self.environment, cwd=self.base,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def responds(self):
        equal(self.processes[-1].poll(), None, "it has ended: " + self.output()[-2000:])
        with contextlib.suppress(OSError, EOFError):
            self.client().close()
            return True
        return False

    def start(self):
        self.run(RABBITMQ)
        wait_for("RabbitMQ", self.responds, 60)

    def kill(self):
        """Kill the broker, like a power cut."""
        p = self.processes.pop()
        p.kill()
        p.wait()

    def stop(self):
        while self.processes:
            self.kill()

    def output(self):
        with open(os.path.join(self.base, "out"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def client(self):
        return Client(self.port)

    def url(self, options, login="guest:guest", vhost=""):
        return "amqp://%s@127.0.0.1:%d/%s?%s" % (login, self.port, vhost, options)

    @staticmethod
    def is_installed():
        return os.path.exists(RABBITMQ) and shutil.which("epmd")


class FalseBroker:
    """act(self, connection, n): what it does with connection number n. messages: the properties of all that
    were published, a list for each connection that was greeted."""

    def __init__(self, act):
        self.act, self.messages, self.open, self.accepted_n = act, [], [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.url = "amqp://127.0.0.1:%d/?exchange=x" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError): # until it is closed
            while True:
                c = Connection(self.listener.accept()[0])
                self.open.append(c)
                self.accepted_n += 1
                threading.Thread(target=self.serve, args=(c, self.accepted_n), daemon=True).start()

    def serve(self, c, n):
        with contextlib.suppress(OSError, EOFError, ValueError): # the other side went away
            self.act(self, c, n)

    def greet(self, c):
        """Everything before the first message."""
        c.read(8)
        c.send(START, b"\0\x09" + bytes(4) + struct.pack(">I", 5) + b"PLAIN" + struct.pack(">I", 5) + b"en_US", 0)
        c.receive()
        c.send(TUNE, struct.pack(">HIH", 10, 4096, 0), 0)
        c.receive()
        c.receive()
        c.send(OPEN_OK, b"\0", 0)
        c.receive()
        c.send(CHANNEL_OPEN_OK, bytes(4))
        equal(c.receive()[1], CONFIRM)
        c.send(CONFIRM_OK)
        self.messages.append([])

    def take(self, c, n):
        """The next n messages."""
        for _ in range(n):
            equal(c.receive()[1], PUBLISH)
            self.messages[-1].append(c.content()[0])

    @staticmethod
    def answer(c, method, tag, multiple=False):
        c.send(method, struct.pack(">QB", tag, multiple))

    @staticmethod
    def leave(c):
        equal(c.receive()[1], CLOSE)
        c.send(CLOSE_OK, channel=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for c in self.open:
            with contextlib.suppress(OSError):
                c.socket.shutdown(socket.SHUT_RDWR)
            c.socket.close()
