# SPDX-License-Identifier: ISC
"""A client of the stream of entries (/v1/stream)."""
import contextlib
import http.client
import json
import socket
import threading

from harness import equal, let_pass


class Stream:
    """A client of the stream, which reconnects with the id of the last event, as browsers do."""

    def __init__(self, d, path="/v1/stream", read=True, token=None):
        self.http_server, self.path, self.last, self.on, self.token = d, path, None, True, token
        self.ids, self.items, self.beats, self.connections = [], [], 0, 0
        self.begun = threading.Event()
        self.connection = None
        self.thread = threading.Thread(target=self.run, daemon=True) if read else None
        if read:
            self.thread.start()

    def run(self):
        while self.on:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.read()
            let_pass(0.01, "a client's pause before it connects again")

    def read(self):
        self.connection = c = self.http_server.connect(60)
        headers = {"Authorization": "Bearer " + self.token} if self.token else {}
        c.request("GET", self.path, headers={**headers, **({"Last-Event-ID": self.last} if self.last else {})})
        r = c.getresponse()
        if r.status == 503: # the new server has not reached the store yet
            return
        equal((r.status, r.headers["Content-Type"]), (200, "text/event-stream"))
        self.connections += 1
        event = {}
        while self.on:
            line = r.readline()
            if not line:
                return
            if line == b"\n" and event:
                if "data" in event:
                    self.items.append(json.loads(event["data"]))
                    self.ids.append(int(event["id"]))
                    equal((event["event"], self.items[-1]["_store"]["entry"]), ("entry", self.ids[-1]))
                self.last = event.get("id", self.last)
                self.begun.set()
                event = {}
            elif line.startswith(b":"):
                self.beats += 1
            elif line != b"\n":
                name, _, value = line.decode().rstrip("\n").partition(": ")
                event[name] = value

    def stop(self):
        self.on = False
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)
