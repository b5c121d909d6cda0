#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""A receiver of webhooks that misbehaves at random, as a process of its own, so that tests can kill
it: receiver.py PORT FILE [SHARE]. It appends one line of JSON to FILE for each message that it
accepts, before it answers. For SHARE of the requests (default 0.2) it answers 500 and accepts
nothing, or accepts and closes the connection without an answer.
"""
import http.server
import json
import random
import socketserver
import sys

PORT, FILE, SHARE = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 0.2


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self): # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fate = random.random() / SHARE if SHARE else 1
        if fate < 0.5:
            self.answer(500)
            return
        line = json.dumps({"order": self.path.rpartition("/")[2], "message": self.headers["webhook-id"],
                           "signature": self.headers["webhook-signature"], "body": json.loads(body)})
        with open(FILE, "ab", 0) as f:
            f.write(line.encode() + b"\n") # one write: a kill leaves all of it, or nothing
        if fate < 1:
            self.close_connection = True # pylint: disable=attribute-defined-outside-init
        else:
            self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass # a sender that was killed


Server(("127.0.0.1", PORT), Handler).serve_forever()
