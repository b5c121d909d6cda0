# SPDX-License-Identifier: ISC
"""An address that moves: a proxy, and two servers of one engine behind it, the second a replica of
the first. After fail_over() the first lives on, and takes no writes."""
import os
import re
import shutil
import socket
import select
import threading

from harness import equal, let_pass, output_lines, wait_for
from http_server import free_port
from servers import PrivateServer


class Proxy:
    """A proxy from a port of its own to the server. While interrupted it forwards nothing and
    closes nothing; when restored it has forgotten all connections."""

    def __init__(self, family, address):
        self.family, self.address = family, address
        self.forwards, self.ends, self.forgets = True, False, False
        self.pairs = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ends:
            if not self.forwards:
                let_pass(0.02, "the interval of a check")
                continue
            if self.forgets:
                for s in self.pairs:
                    s.close()
                self.pairs, self.forgets = {}, False
            ready, _, _ = select.select([self.listener, *self.pairs], [], [], 0.05)
            for s in ready:
                if s is self.listener:
                    self.connect(s.accept()[0])
                else:
                    self.forward(s)

    def connect(self, near):
        far = socket.socket(self.family)
        try:
            far.connect(self.address)
            self.pairs[near], self.pairs[far] = far, near
        except OSError: # the server is down
            near.close()
            far.close()

    def forward(self, near):
        far = self.pairs.get(near)
        try:
            data = near.recv(65536)
            if data and far:
                far.sendall(data)
                return
        except OSError:
            pass
        for s in (near, far):
            if s:
                self.pairs.pop(s, None)
                s.close()

    def interrupt(self):
        self.forwards = False

    def restore(self):
        self.forgets = self.forwards = True

    def close(self):
        self.ends = True
        self.thread.join()
        for s in [self.listener, *self.pairs]:
            s.close()


class Pair:
    """Servers `one` and `two`, and a proxy whose address leads to `one` until it moves."""

    def __init__(self, engine, base):
        self.engine = engine
        self.ports = free_port(), free_port()
        self.one, self.two, self.proxy = self.server(base, 0), None, None
        try:
            self.two = self.server(base, 1)
            self.follow()
            self.proxy = Proxy(socket.AF_UNIX, self.path(self.one))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.proxy:
            self.proxy.close()
        for s in self.one, self.two:
            if s:
                s.stop()

    def path(self, server): # of its socket
        return server.socket

    def move(self):
        """The first server becomes a replica, or is made read-only; then its address leads to the other."""
        self.fail_over()
        self.proxy.address = self.path(self.two)

    def records(self, server):
        """The end of the hubs' leader's lease, in that server's records; 0: none leads."""
        rows = self.sql(server, "SELECT until_ms FROM t.records WHERE kind = 'websub' AND record_key = 'leader'")
        return int(rows[0]) if rows else 0


class RedisPair(Pair):
    def server(self, base, i):
        follows = ["--replicaof", "127.0.0.1", str(self.ports[0])] if i else []
        return PrivateServer("redis", base, "server%d" % i, options=["--port", str(self.ports[i]), *follows])

    def follow(self):
        wait_for("the replica", lambda: "master_link_status:up" in self.two.redis("INFO", "replication"))

    def url(self):
        return "redis://127.0.0.1:%d/0?prefix=t" % self.proxy.port

    def fail_over(self):
        """The old master stays a replica, but its link to the new one is down, so it learns nothing more."""
        equal(self.one.redis("FAILOVER", "TO", "127.0.0.1", str(self.ports[1])), "OK") # when the replica has all
        wait_for("the new master", lambda: "role:master" in self.two.redis("INFO", "replication"))
        wait_for("the old master", lambda: "role:slave" in self.one.redis("INFO", "replication"))
        equal(self.one.redis("REPLICAOF", "127.0.0.1", "1"), "OK")

    def connections(self, server):
        clients = server.redis("CLIENT", "LIST").splitlines()
        return sum(" flags=M " not in c and " cmd=client|list " not in c for c in clients)

    def records(self, server):
        value = server.redis("HGET", "{t/0}:records", "websub leader")
        return int(value.split()[1]) if value else 0


class MariaDBPair(Pair):
    def server(self, base, i):
        more = ["--read-only"] if i else []
        return PrivateServer("mysql", base, "server%d" % i, options=[
            "--skip-networking=0", "--bind-address=127.0.0.1", "--port=%d" % self.ports[i],
            "--server-id=%d" % (i + 1), "--log-bin=bin", "--binlog-format=ROW", "--log-slave-updates", *more])

    def sql(self, server, text):
        return output_lines("mariadb", "--no-defaults", "-N", "-B", "-u", "root", "-S", server.socket, "-e", text)

    def follow(self):
        """feedwheel's user is none that may write to a read-only server."""
        self.sql(self.one, "CREATE USER copy@127.0.0.1; GRANT REPLICATION SLAVE ON *.* TO copy@127.0.0.1;"
                 " CREATE USER fw@localhost; GRANT ALL ON t.* TO fw@localhost")
        self.sql(self.two, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'copy',"
                 " MASTER_USE_GTID = slave_pos; START SLAVE" % self.ports[0])
        self.has_all()

    def has_all(self):
        [position] = self.sql(self.one, "SELECT @@gtid_binlog_pos")
        equal(self.sql(self.two, "SELECT MASTER_GTID_WAIT('%s', 60)" % position), ["0"])

    def url(self):
        return "mysql://fw@127.0.0.1:%d/t" % self.proxy.port

    def fail_over(self):
        self.sql(self.one, "SET GLOBAL read_only = 1")
        self.has_all()
        self.sql(self.two, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0")

    def connections(self, server):
        [n] = self.sql(server, "SELECT count(*) FROM information_schema.processlist WHERE user = 'fw'")
        return int(n)


class PostgresStandby(PrivateServer):
    def __init__(self, base, name, primary):
        self.primary = primary
        super().__init__("postgres", base, name)

    def make_postgres(self):
        self.once(self.postgres("pg_basebackup"), "-D", self.data, "-h", self.primary.socket, "-U", "feedwheel", "-R",
                  "-X", "stream", "-c", "fast", "-N")
        self.make_socket_folder()


class PostgresPair(Pair):
    def server(self, base, i):
        if not i:
            return PrivateServer("postgres", base, "server0")
        return PostgresStandby(base, "server1", self.one)

    def path(self, server):
        [name] = [f for f in os.listdir(server.socket) if re.match(r"\.s\.PGSQL\.\d+$", f)]
        return os.path.join(server.socket, name)

    def sql(self, server, text):
        return output_lines(
            "psql", "-X", "-A", "-t", "-q", "-h", server.socket, "-U", "feedwheel", "-c", text, "postgres")

    def follow(self):
        wait_for("the replica", lambda: self.sql(self.one, "SELECT state FROM pg_stat_replication") == ["streaming"])

    def url(self):
        return "postgres://feedwheel@127.0.0.1:%d/postgres?sslmode=disable&schema=t" % self.proxy.port

    def fail_over(self):
        """The old primary starts again, as a standby of the new one."""
        self.one.stop() # when the standby has all
        equal(self.sql(self.two, "SELECT pg_promote()"), ["t"])
        for name, line in ("standby.signal", ""), ("postgresql.auto.conf",
                                                   "primary_conninfo = 'host=%s user=feedwheel'\n" % self.two.socket):
            with open(os.path.join(self.one.data, name), "a", encoding="ascii") as f:
                f.write(line)
            if self.one.user:
                shutil.chown(f.name, self.one.user)
        self.one.start()
        wait_for("the old primary", lambda: self.sql(self.one, "SELECT pg_is_in_recovery()") == ["t"])

    def connections(self, server):
        [n] = self.sql(server, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'feedwheel'")
        return int(n)


PAIR = {"redis": RedisPair, "mysql": MariaDBPair, "postgres": PostgresPair}
