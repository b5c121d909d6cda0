# SPDX-License-Identifier: ISC
"""Shared by the system tests: TAP output, the origin, database servers, the binary, the store's tables.

A test file registers functions with @case("a fact") and ends with run(). A case fails if it raises
an exception, or leaves a process of start() running; the others still run. All files are in a
temporary folder that is removed unless KEEP is set. No process outlives its case or the test
program, however these end (test_harness.py).
"""
import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse
import urllib.request

ROOT = os.environ.get("FW_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("FW_BUILD_ROOT", os.path.join(ROOT, "build"))
FEEDWHEEL = os.path.join(BUILD, "feedwheel")
ORIGIN = os.path.join(BUILD, "tests", "origin", "origin")
CASES = []
PARTS = ["server", "seccomp", "amqp"] # what a build may lack besides stores
STARTED = [] # processes of the current case
BUSY = 6 # times as long a busy machine may take


def sanitized():
    """Is the binary built with ASan or TSan? Then its memory and time are not representative."""
    with open(FEEDWHEEL, "rb") as f:
        binary = f.read()
    return b"libasan" in binary or b"libtsan" in binary


def case(fact, needs=None):
    """needs: a store or one of PARTS; the case is skipped in a build without it. A case that needs a
    store runs if picked() says so, others run unless a run before had them (FW_STORES_DONE)."""
    def add(function):
        if not (names_in("FW_STORES_DONE") == [] if needs in [None, *PARTS] else picked(needs)):
            return function
        if needs in absent():
            @functools.wraps(function)
            def skip(base):
                raise Skip("this build has no %s (-D%s=enabled)" % (needs + " driver" * (needs not in PARTS), needs))
            CASES.append((fact, skip))
        else:
            CASES.append((fact, function))
        return function
    return add


class Skip(Exception):
    """A case cannot run here; the text is the reason."""


@functools.cache
def absent():
    """The parts that this build lacks, by `feedwheel version`: names of stores, and of PARTS."""
    output = subprocess.run([FEEDWHEEL, "version"], capture_output=True, text=True, check=True).stdout
    stores = re.search(r"^stores not built in: (.*)$", output, re.M)
    parts = re.findall(r"^(%s): not built in$" % "|".join(PARTS), output, re.M)
    return {*(stores[1].split() if stores else []), *parts}


def run():
    """Run all cases, print TAP, exit. FW_PART=2/3: every third case, from the second on, so that a
    long file runs as several tests at once."""
    only = sys.argv[1:]
    part, parts = map(int, os.environ.get("FW_PART", "1/1").split("/"))
    chosen = [c for c in CASES if not only or c[1].__name__ in only][part - 1::parts]
    print("1..%d" % len(chosen), flush=True)
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)) # runs all `finally`, as ^C does
    for i, (fact, function) in enumerate(chosen, 1):
        base = tempfile.mkdtemp(prefix="fw-")
        try:
            function(base)
            equal(left_running(), [], "left running")
            print("ok %d - %s" % (i, fact), flush=True)
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (i, fact, why), flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print("not ok %d - %s" % (i, fact))
            print("".join("# %s\n" % l for l in traceback.format_exc().splitlines()), end="", flush=True)
        finally:
            left_running()
            if "KEEP" in os.environ:
                print("# kept %s" % base)
            else:
                shutil.rmtree(base, ignore_errors=True)
    sys.exit(1 if failed else 0)


def group_lives(group):
    """Does the group have a process that is no zombie? (With the leak sanitizer init has one for a moment.)"""
    for pid in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if pid.isdigit() and os.getpgid(int(pid)) == group:
                with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as f:
                    if f.read().rpartition(")")[2].split()[0] not in "ZX":
                        return True
    return False


def left_running():
    """Kill the process groups of start() that still run; their commands."""
    left = []
    while STARTED:
        p = STARTED.pop()
        # The number of a group is not given away while it has a process, so then it is another one's.
        is_reused = p.poll() is not None and os.path.exists("/proc/%d" % p.pid)
        if not is_reused and group_lives(p.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            left.append(shlex.join(p.args))
    return left


def workers_of(p):
    """Process ids of a master's children. A master that has ended is an error, as a wait would never end."""
    equal(p.poll(), None, "the master has ended with")
    try:
        with open("/proc/%d/task/%d/children" % (p.pid, p.pid), encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def wait_for(state, condition, seconds=20):
    """seconds: enough on an idle machine; a busy one gets BUSY times as long. The interval of the
    checks grows, because most conditions start a program."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited > BUSY * seconds:
            raise AssertionError("not within %d s: %s" % (BUSY * seconds, state))
        time.sleep(min(0.25, 0.02 + waited / 20))


def let_pass(seconds, _why):
    """Time that is the test's subject: the length of an outage, a kill at any moment, a time without
    an event. For a state use wait_for()."""
    time.sleep(seconds)


def equal(got, want, name=""):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (name or "value", got, want))


def holds(condition, message):
    if not condition:
        raise AssertionError(message)


# ---- the origin ------------------------------------------------------------------------------------------

@functools.cache
def sample_files(arguments):
    """Names and contents of the sample feeds. Generated once: this takes a quarter of a second."""
    with tempfile.TemporaryDirectory(prefix="fw-") as docs:
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make-samples.py"), docs, *arguments], check=True)
        files = {}
        for name in os.listdir(docs):
            with open(os.path.join(docs, name), "rb") as f:
                files[name] = f.read()
    return files


def samples(base, *arguments):
    """Write the sample feeds into base/docs."""
    docs = os.path.join(base, "docs")
    os.makedirs(docs, exist_ok=True)
    for name, content in sample_files(arguments).items():
        with open(os.path.join(docs, name), "wb") as f:
            f.write(content)
    return docs


class Origin:
    def __init__(self, base, docs, *arguments, plans=(), log=True):
        os.makedirs(base, exist_ok=True)
        self.log_file, self.url_file = os.path.join(base, "requests.log"), os.path.join(base, "urls")
        command = [ORIGIN, "--docs", docs, "--with-parent", "--print-urls", self.url_file]
        if log:
            command += ["--log", self.log_file]
        for p in plans:
            command += ["--plan", p]
        self.process = subprocess.Popen(command + list(arguments), stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening"):
            raise RuntimeError("the origin did not start")
        self.port = int(line.split()[1])
        with open(self.url_file, encoding="ascii") as f:
            self.urls = f.read().split()

    def url(self, path, host="127.1.0.1"):
        return "%s%s:%d%s" % (self.urls[0][:self.urls[0].index("//") + 2], host, self.port, path)

    def stats(self, hosts=False):
        with urllib.request.urlopen(self.url("/_stats" + ("?hosts" if hosts else ""), "127.0.0.1"),
                                    context=ssl._create_unverified_context()) as r:
            return json.load(r)

    def requests(self):
        """All requests to feeds and documents so far, oldest first."""
        if self.process.poll() is None:
            self.stats() # the origin also flushes its log
        with open(self.log_file, encoding="utf-8") as f:
            lines = [json.loads(l) for l in f if l.endswith("\n")]
        return sorted((l for l in lines if not l["target"].startswith("/_")), key=lambda l: l["start_us"])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def certificate(base, hosts):
    """A CA and a server's certificate and key for these addresses, in base: ca.pem, cert.pem, key.pem."""
    def openssl(*a):
        subprocess.run(["openssl", *a], cwd=base, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(base, "san"), "w", encoding="ascii") as f:
        f.write("subjectAltName=" + ",".join("IP:" + h for h in hosts) + "\n")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-subj", "/CN=test CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-days", "2")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem",
            "-out", "req.pem", "-subj", "/CN=test")
    openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "san", "-out", "cert.pem")
    return [os.path.join(base, f) for f in ("ca.pem", "cert.pem", "key.pem")]


@contextlib.contextmanager
def origin(base, docs, *arguments, plans=()):
    o = Origin(base, docs, *arguments, plans=plans)
    try:
        yield o
    finally:
        o.stop()
    equal(o.process.returncode, 0, "the origin's exit code")


def header(request, name):
    """The values of a header in a logged request."""
    return [v for k, v in request["headers"] if k.lower() == name.lower()]


# ---- database servers ------------------------------------------------------------------------------------

SERVE = os.path.join(BUILD, "tests", "store", "store_serve")


class Server:
    """A private server of an engine, with its data in base. `arguments`: tests/store/serve.c."""

    def __init__(self, engine, base, *arguments):
        folder = os.path.join(base, engine)
        os.mkdir(folder)
        os.chmod(base, 0o711) # for the server's user, if root runs the test
        self.process = subprocess.Popen(
            [SERVE, engine, folder, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().strip()
        if line != "ready":
            self.stop()
            raise RuntimeError("the server of %s did not start: %s" % (engine, line))

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def url(self, name="t"):
        return self.command("url " + name)

    def kill(self):
        equal(self.command("kill9"), "killed")

    def restart(self):
        equal(self.command("again"), "ready")

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@functools.cache
def names_in(variable):
    """The engines that an environment variable names. An unknown name is an error, because a test
    without stores would pass."""
    names = [n for n in os.environ.get(variable, "").split(",") if n]
    for n in names:
        if n not in ("memory", "sqlite", "redis", "postgres", "mysql"):
            sys.exit("%s: %s is unknown, known are: memory, sqlite, redis, postgres, mysql" % (variable, n))
    return names


def picked(engine):
    """Is it one of FW_STORES (empty: all), and none of FW_STORES_DONE, which a run before had?"""
    return engine in (names_in("FW_STORES") or [engine]) and engine not in names_in("FW_STORES_DONE")


@functools.cache
def engines():
    """The engines of this build that have a server, are installed and picked(). With a sanitizer and
    without FW_STORES only the first one: the store suites test each driver."""
    found = []
    for e in subprocess.run([SERVE], capture_output=True, text=True, check=True).stdout.split():
        if not picked(e):
            continue
        r = subprocess.run([SERVE, e], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if r.returncode == 77 and "CI" not in os.environ:
            print("# %s is left out: install the package %s" % (e, r.stdout.strip()), flush=True)
        else:
            found.append(e)
        if found and not names_in("FW_STORES") and sanitized():
            break
    return found


def each_engine(fact, also=(), leave_out=()):
    """A case for each engine; the function gets its folder and the engine's name. An engine that the
    build lacks is skipped."""
    skipped = sorted(absent() - {*PARTS})
    def add(function):
        for e in [*also, *engines(), *skipped]:
            if e in leave_out:
                continue
            def one(base, e=e):
                function(base, e)
            one.__name__ = "%s_%s" % (function.__name__, e)
            case("%s: %s" % (e, fact), needs=e)(one)
        return function
    return add


@contextlib.contextmanager
def server(engine, base):
    s = Server(engine, base)
    try:
        yield s
    finally:
        s.stop()


# ---- feedwheel -------------------------------------------------------------------------------------------

CONF = "allow_networks = 127.0.0.0/8\nhost_gap_ms = 0\nstraggler_timeout_ms = 0\n"

# For cases with silent servers: short timeouts. The other cases have the default ones, so that a
# stall of the machine for some seconds fails no visit; these are long enough for healthy feeds.
SHORT_TIMEOUTS = "connect_timeout_ms = 8s\nfirst_byte_timeout_ms = 8s\ntotal_timeout_ms = 12s\nlow_speed_ms = 8s\n"

# Feeds are due again after SOON_S seconds. (With interval_ms = interval_min_ms the jitter would be up to a minute.)
SOON = "interval_min_ms = 1s\ninterval_ms = 2s\ninterval_max_ms = 2s\n"
SOON_S = 2.4

LEASES = (
    "SELECT name, (SELECT count(*) FROM shards WHERE worker = workers.id) FROM workers UNION ALL"
    " SELECT '', count(*) FROM shards WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM workers)"
    " HAVING count(*) > 0")


@contextlib.contextmanager
def store_of(engine, base):
    """The URL of a store of this engine; None: the file that a Feedwheel has anyway."""
    if engine == "sqlite":
        yield None
        return
    with server(engine, base) as s:
        yield s.url()


def output_lines(*command, **environment):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env={**os.environ, **environment}).stdout.splitlines()


def leases_of(w):
    """The names of workers with a lease and the number of their shards, from the tables of a store
    on this machine, because no command prints them."""
    engine = w.store.split(":")[0].split("+")[0]
    if engine == "sqlite":
        return w.sql(LEASES)
    url = urllib.parse.urlsplit(w.store)
    options = dict(urllib.parse.parse_qsl(url.query))
    if engine == "postgres":
        schema = options.pop("schema", "public")
        dsn = url._replace(query=urllib.parse.urlencode(options, safe="/")).geturl()
        return [line.split("|") for line in output_lines(
            "psql", "-X", "-A", "-t", "-c", LEASES, dsn, PGOPTIONS="-c search_path=" + schema)]
    if engine == "mysql":
        return [line.split("\t") for line in output_lines(
            "mariadb", "--no-defaults", "-N", "-B", "-u", "root", "-S", options["socket"], "-e", LEASES,
            url.path.lstrip("/"))]
    address = ["-h", url.hostname, "-p", str(url.port)] if url.hostname else ["-s", url.path]

    def redis(*arguments):
        return output_lines("redis-cli", *address, *arguments)
    [workers, shards] = [redis("KEYS", "*}:" + name) for name in ("workers", "shards")]
    lease = [v.split()[0] for key in shards for v in redis("HVALS", key)]
    flat = [v for key in workers for v in redis("HGETALL", key)]
    names = {i: v.split(" ", 3)[3] for i, v in zip(flat[::2], flat[1::2])}
    return [(n, lease.count(i)) for i, n in names.items()] + [("", 1) for i in lease if i != "0" and i not in names]


class Feedwheel:
    """One store and its configuration. store: the URL of a store on a server; sql() and the methods
    after it are for SQLite only. inside: a command in front of ours, such as nsenter."""

    def __init__(self, base, conf="", name="store.db", store=None, inside=()):
        self.base = base
        self.store = store or "sqlite:" + os.path.join(base, name)
        self.path = self.store.partition(":")[2] # of a file
        self.conf = os.path.join(base, name + ".conf")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(CONF + conf)
        self.binary, self.log_file, self.inside = FEEDWHEEL, os.path.join(base, "said"), inside
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("FEEDWHEEL_")}
        self.environment.update(HOME=base, XDG_DATA_HOME=base, XDG_CONFIG_HOME=base, NO_COLOR="1")

    def command(self, *arguments):
        return [*self.inside, self.binary, "--config", self.conf, "--store", self.store, *arguments]

    def run(self, *arguments, stdin=None, code=0, timeout=120):
        """Run a command to its end and check its exit code (None: any)."""
        r = subprocess.run(self.command(*arguments), input=stdin, capture_output=True, text=True, timeout=timeout,
                           env=self.environment, check=False)
        if code is not None and r.returncode != code:
            raise AssertionError("%s: exit %d, want %d\nstdout: %s\nstderr: %s" % (
                " ".join(arguments), r.returncode, code, r.stdout[-2000:], r.stderr[-2000:]))
        return r

    def run_once(self, *arguments, timeout=120):
        """`run --once`; its summary."""
        r = self.run("run", "--once", "--json", *arguments, code=None, timeout=timeout)
        if r.returncode not in (0, 1):
            raise AssertionError("run --once: exit %d\n%s" % (r.returncode, r.stderr[-2000:]))
        return json.loads(r.stdout)

    def start(self, *arguments):
        """Start a command in a process group of its own, which ends with this program. Its stderr
        goes to the file self.log_file."""
        with open(self.log_file, "ab") as log:
            STARTED.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "SIGKILL", "--", *self.command(*arguments)],
                stdout=subprocess.DEVNULL, stderr=log, env=self.environment, start_new_session=True))
        return STARTED[-1]

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def last_log(self):
        return self.log()[-1000:]

    def is_locked(self):
        """Is a write transaction open for longer than one takes?"""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None, timeout=2)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json").stdout)

    def sql(self, query, *values, write=False):
        name = "file:%s?mode=%s" % (self.path, "rw" if write else "ro")
        with contextlib.closing(sqlite3.connect(name, uri=True, timeout=10)) as db:
            rows = db.execute(query, values).fetchall()
            db.commit()
            return rows

    def one(self, query, *values):
        return self.sql(query, *values)[0][0]

    def leased(self):
        """The number of shards that each worker has leased, by its process id; on any engine. {}: there
        is no lease, and every shard is free."""
        shards = {}
        for name, n in leases_of(self):
            pid = int(name.split("/")[1]) if name else 0 # 0: shards without a worker's row
            shards[pid] = shards.get(pid, 0) + int(n)
        return shards

    def message(self, kind):
        """Send a message to all workers, as `feedwheel stop` does; 4: reload."""
        now = int(time.time() * 1000)
        self.sql("INSERT INTO records (kind, record_key, value, at_ms, until_ms) VALUES ('~control', ?, ?, ?, ?)",
                 b"%020d" % (now * 1000), b"%d" % kind, now, now + 60000, write=True)

    def hold_wal(self):
        """Keep SQLite from resetting its write-ahead log until the returned connection is closed."""
        self.sql("PRAGMA wal_checkpoint(TRUNCATE)", write=True)
        db = sqlite3.connect("file:%s?mode=ro" % self.path, uri=True, isolation_level=None)
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        return db

    def wal_size(self):
        return os.path.getsize(self.path + "-wal")
