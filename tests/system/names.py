# SPDX-License-Identifier: ISC
"""A name server, for hosts with names."""
import re
import socket
import struct
import threading


class Names(threading.Thread):
    """Names under .invalid do not exist, lookups under .broken fail, all others have the address
    127.1.0.99. The response to a name with "late300" in it takes 300 ms. `mute`: no responses."""

    def __init__(self, mute=False):
        super().__init__(daemon=True)
        self.mute, self.queries = mute, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            q, client = self.socket.recvfrom(2000)
            self.queries += 1
            if self.mute:
                continue
            at, labels = 12, []
            while q[at]:
                labels.append(q[at + 1:at + 1 + q[at]].lower())
                at += 1 + q[at]
            question, kind = q[12:at + 5], q[at + 1:at + 3]
            code = {b"invalid": 3, b"broken": 2}.get(labels[-1], 0)
            found = not code and kind == b"\0\1"
            head = q[:2] + struct.pack(">BBHHHH", 0x81, 0x80 | code, 1, found, 0, 0)
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("127.1.0.99") if found else b""
            late = re.search(rb"late(\d+)", b".".join(labels))
            threading.Timer(int(late[1]) / 1000 if late else 0, self.socket.sendto,
                            (head + question + answer, client)).start()
