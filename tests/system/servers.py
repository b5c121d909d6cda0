# SPDX-License-Identifier: ISC
"""Database servers with options of their own, on another machine, or several of one engine. (For a
server with the usual options: harness.server.) They end with the test program, however it ends."""
import glob
import os
import pwd
import shutil
import socket
import subprocess

from harness import equal, wait_for

HELLO = b"\0\0\0\x2a\0\3\0\0user\0feedwheel\0database\0postgres\0\0" # to PostgreSQL
REDIS = os.environ.get("FW_REDIS") or ("redis" if shutil.which("redis-server") else "valkey")
USERS = {"postgres": "postgres", "mysql": "mysql", "redis": None} # its user, if root runs the test


class PrivateServer:
    """A server of an engine in base/name. inside: a command in front of it, such as nsenter; options:
    for its command line; folder: for its data, instead of base/name."""

    def __init__(self, engine, base, name="server", inside=(), options=(), folder=None):
        self.engine, self.inside, self.options, self.process = engine, inside, list(options), None
        self.home = folder or os.path.join(base, name)
        self.data, self.socket = os.path.join(self.home, "data"), os.path.join(base, name + ".sock")
        self.user = USERS[engine] if os.geteuid() == 0 else None
        self.log = os.path.join(base, name + ".log")
        os.chmod(base, 0o777 if self.user else 0o711) # the server's user creates the socket there
        # a folder of its own: where it starts, a MariaDB server deletes the temporary tables of others
        self.env = dict(os.environ, TMPDIR=os.path.join(base, name + ".tmp"))
        for path in self.home, self.env["TMPDIR"]:
            os.makedirs(path, exist_ok=True)
            if self.user:
                shutil.chown(path, self.user)
        getattr(self, "make_" + engine, lambda: os.mkdir(self.data))()
        self.start()

    def command(self, *argv):
        as_user = []
        if self.user:
            group = pwd.getpwnam(self.user).pw_gid
            as_user = ["--reuid", self.user, "--regid", str(group), "--clear-groups"]
        return [*self.inside, "setpriv", "--pdeathsig", "SIGKILL", *as_user, *argv]

    def once(self, *argv):
        with open(self.log, "ab") as log:
            subprocess.run(self.command(*argv), check=True, stdin=subprocess.DEVNULL,
                           stdout=log, stderr=log, cwd=self.home, env=self.env)

    # -- PostgreSQL

    @staticmethod
    def postgres(program):
        return os.path.join(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1], program)

    def make_postgres(self):
        self.once(self.postgres("initdb"), "-D", self.data, "-X", self.socket + ".wal",
                  "-E", "UTF8", "--locale=C", "-A", "trust", "-U", "feedwheel", "-N")
        self.make_socket_folder()
        with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="ascii") as f:
            f.write("host all all 10.98.0.0/16 trust\n")

    def make_socket_folder(self):
        os.mkdir(self.socket)
        if self.user:
            shutil.chown(self.socket, self.user)

    def argv_postgres(self):
        return [self.postgres("postgres"), "-D", self.data, "-k", self.socket, "-h", "", "-c", "fsync=off",
                *self.options]

    def url_postgres(self, name, host):
        if host:
            return "postgres://feedwheel@%s/postgres?sslmode=disable&schema=%s" % (host, name)
        return "postgres://feedwheel@/postgres?host=%s&schema=%s" % (self.socket, name)

    # -- MariaDB

    def make_mysql(self):
        self.once("mariadb-install-db", "--no-defaults", "--datadir=" + self.data,
                  "--auth-root-authentication-method=normal", "--skip-test-db")

    def argv_mysql(self):
        return ["mariadbd", "--no-defaults", "--datadir=" + self.data, "--socket=" + self.socket,
                "--pid-file=" + self.data + "/pid", "--skip-networking", "--skip-name-resolve",
                "--innodb-flush-log-at-trx-commit=2", *self.options]

    def url_mysql(self, name, host):
        if host:
            return "mysql://root@%s/%s" % (host, name)
        return "mysql://root@localhost/%s?socket=%s" % (name, self.socket)

    # -- Redis

    def argv_redis(self):
        return [REDIS + "-server", "--dir", self.data, "--port", "0", "--unixsocket", self.socket, "--save", "",
                "--appendonly", "yes", "--maxmemory-policy", "noeviction", *self.options]

    def url_redis(self, name, host):
        return "redis://%s/0?prefix=%s" % (host, name) if host else "redis+unix://%s?prefix=%s" % (self.socket, name)

    def redis(self, *arguments):
        """The output of redis-cli with these arguments."""
        return subprocess.run([REDIS + "-cli", "-s", self.socket, *arguments],
                              check=True, capture_output=True, text=True).stdout.strip()

    # -- all engines

    def url(self, name="t", host=None):
        """The URL of a store, by the server's socket, or by TCP at this host."""
        return getattr(self, "url_" + self.engine)(name, host)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(*getattr(self, "argv_" + self.engine)()),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home, env=self.env)
        try:
            wait_for("the server", self.responds, 60)
        except AssertionError as e:
            self.stop()
            with open(self.log, encoding="utf-8", errors="replace") as f:
                raise AssertionError("%s: %s" % (e, f.read()[-2000:])) from e

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(os.path.join(self.socket, ".s.PGSQL.5432") if self.engine == "postgres" else self.socket)
        return s

    def responds(self):
        equal(self.process.poll(), None, "the server has ended with")
        try:
            with self.connect() as s:
                if self.engine == "postgres":
                    s.sendall(HELLO)
                    return s.recv(1) == b"R"
                if self.engine == "redis":
                    s.sendall(b"PING\r\n")
                    return s.recv(5) == b"+PONG"
                return len(s.recv(5)) == 5
        except OSError:
            return False

    def stop(self):
        """A fast shutdown, which does not wait for clients."""
        if self.process.poll() is None:
            self.process.send_signal(2 if self.engine == "postgres" else 15)
            self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
