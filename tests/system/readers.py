# SPDX-License-Identifier: ISC
"""Accounts for the tests of what readers use: a client, by the conformance suite's, and its feeds."""
import contextlib
import importlib.machinery
import importlib.util
import os

from growing import Address
from harness import ROOT, equal, server

SUITE = os.path.join(ROOT, "tests", "greader", "run")
PASSWORD = "secret & word"
OPEN = "auth_failures_max = 0\nserve_discovery = yes\n"


def suite():
    loader = importlib.machinery.SourceFileLoader("greader_suite", SUITE)
    spec = importlib.util.spec_from_loader("greader_suite", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


SUITE_MODULE = suite()
ALL, READ, STARRED, ITEM = (SUITE_MODULE.ALL, SUITE_MODULE.READ, SUITE_MODULE.STARRED, SUITE_MODULE.ITEM)


def store_of(engine, base):
    return contextlib.nullcontext(Address("sqlite:%s/store.db" % base)) if engine == "sqlite" else server(engine, base)


def user_add(d, name, password=PASSWORD):
    d.feedwheel.run("user", "add", name, stdin=password + "\n")


def client(d, name="alice", password=PASSWORD):
    c = SUITE_MODULE.Client("http://127.0.0.1:%d" % d.port, name, password)
    c.sign_in()
    return c


@contextlib.contextmanager
def with_feeds(d, c):
    """alice has the suite's two feeds with their entries."""
    c.site = SUITE_MODULE.serve_site("127.0.0.1")
    c.subscribe("news.xml")
    c.subscribe("blog.xml")
    d.feedwheel.run_once()
    equal((len(c.ids(c.feed_id("news.xml"))), len(c.ids(c.feed_id("blog.xml")))), (30, 5))
    yield
