# SPDX-License-Identifier: ISC
"""Chromium by its protocol, over a pipe: one page, its keys, its console, its pictures."""
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import BUSY, Skip, holds

LONG_S = 60 # a browser starts slowly on a busy machine

# The browser reads from descriptor 3 and writes to 4.
PIPES = """import fcntl, os, sys
to, of = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(to, 3)
os.dup2(of, 4)
os.execv(sys.argv[3], sys.argv[3:])"""

# For keys whose name is not their text.
NAMED = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, None), "Tab": ("Tab", 9, None), " ": ("Space", 32, " ")}


class Browser:
    def __init__(self, base):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        if not chromium:
            raise Skip("Chromium is not installed")
        to_read, self.to = os.pipe()
        self.of, from_write = os.pipe()
        self.log = os.path.join(base, "chromium.log")
        os.makedirs(base, exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "SIGKILL", "--", sys.executable, "-c", PIPES, str(to_read), str(from_write),
                 chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--force-color-profile=srgb", "--remote-debugging-pipe",
                 "--user-data-dir=" + os.path.join(base, "profile"), "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                pass_fds=(to_read, from_write),
                env={**os.environ, "HOME": base, "XDG_CONFIG_HOME": base, "XDG_CACHE_HOME": base, "LC_ALL": "C.UTF-8",
                     "LANGUAGE": "en", "TZ": "UTC"})
        os.close(to_read)
        os.close(from_write)
        self.lock, self.number = threading.Lock(), 0
        self.pressed = set()
        self.frames = "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
        self.replies, self.events, self.session = {}, [], None
        self.arrived = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            self.attach()
        except BaseException:
            self.stop()
            raise

    def read(self):
        rest = b""
        with contextlib.suppress(OSError):
            while piece := os.read(self.of, 1 << 20):
                *messages, rest = (rest + piece).split(b"\0")
                with self.arrived:
                    for m in map(json.loads, messages):
                        if "id" in m:
                            self.replies[m["id"]] = m
                        else:
                            self.events.append(m)
                    self.arrived.notify_all()
        with self.arrived:
            self.replies[None] = True
            self.arrived.notify_all()

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def call(self, method, **params):
        self.number += 1
        number = self.number
        m = {"id": number, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.to, json.dumps(m).encode() + b"\0")
        with self.arrived:
            there = self.arrived.wait_for(lambda: number in self.replies or None in self.replies, LONG_S)
            holds(there and number in self.replies, "no reply to %s: %s" % (method, self.words()))
            reply = self.replies.pop(number)
        holds("error" not in reply, "%s: %s" % (method, reply.get("error")))
        return reply["result"]

    def attach(self):
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.size(1280, 800)

    def tabs(self):
        """The addresses of the tabs that are open."""
        return [t["url"] for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]

    def size(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        """Returns when this page, and not the one before, is loaded."""
        with self.arrived:
            del self.events[:]
        r = self.call("Page.navigate", url=url)
        holds("errorText" not in r, "%s: %s" % (url, r))
        def loaded():
            return any(e["method"] == "Page.lifecycleEvent" and e["params"]["name"] == "load" and
                       e["params"]["loaderId"] == r["loaderId"] for e in self.events)
        with self.arrived:
            holds(self.arrived.wait_for(loaded, LONG_S), "%s is not loaded: %s" % (url, self.words()))

    def without_script(self):
        """From now on nothing that the page brings runs, its frames have no callbacks."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.frames = "Promise.resolve()"

    def js(self, expression):
        """The value of an expression, a promise's too."""
        r = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        holds("exceptionDetails" not in r, "%s: %s" % (expression, r.get("exceptionDetails")))
        return r["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until an expression is true; its value. A page that is left meanwhile is no error."""
        until = time.monotonic() + BUSY * seconds
        pause = 0.01
        while True:
            with contextlib.suppress(AssertionError):
                value = self.js(expression)
                if value:
                    return value
            holds(time.monotonic() < until, "not within %d s: %s\n%s" % (
                BUSY * seconds, expression, self.console()))
            time.sleep(pause)
            pause = min(0.2, 2 * pause)

    def there(self, selector, seconds=20):
        """Until there is such an element."""
        self.wait("!!document.querySelector(%s)" % json.dumps(selector), seconds)

    def key(self, key):
        """Press a key as a person does, when the page is loaded: "j", "A", "Enter"."""
        self.wait("document.readyState === 'complete'")
        self.pressed.add(key)
        name, code, text = NAMED.get(key, ("Key" + key.upper() if key.isalpha() else key, ord(key.upper()[0]), key))
        shift = 8 if len(key) == 1 and key.isupper() or key == "?" else 0
        press = {"key": key, "code": name, "windowsVirtualKeyCode": code, "modifiers": shift}
        self.call("Input.dispatchKeyEvent", type="keyDown", **press, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **press)

    def keys(self, keys):
        for k in keys:
            self.key(k)

    def middle(self, selector):
        """Of an element that stands still, when the page is loaded: elements move until then. A page moves them in
        the frames after a content arrived, and a busy machine draws those late: measured is what they left."""
        measure = """%s.then(() => {
            const e = document.querySelector(%s);
            if (!e || document.readyState !== 'complete') return null;
            e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();
            return r.width ? [r.x + r.width / 2, r.y + r.height / 2] : null; })""" % (self.frames, json.dumps(selector))
        before, at = None, self.wait(measure)
        while at != before:
            before, at = at, self.wait(measure)
        return at

    def click(self, selector, pressed=lambda: None):
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        pressed()
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)

    def fill(self, selector, text):
        self.wait("(() => { const e = document.querySelector(%s); if (!e) return false; e.focus();"
                  " if (e.select) e.select(); return document.activeElement === e; })()" % json.dumps(selector))
        self.call("Input.insertText", text=text)

    def console(self):
        """Errors so far: of scripts, of the network, of the policy (CSP)."""
        with self.arrived:
            found = []
            for e in self.events:
                p = e["params"]
                if e["method"] == "Runtime.exceptionThrown":
                    found.append(p["exceptionDetails"]["text"] + str(p["exceptionDetails"].get("exception")))
                elif e["method"] == "Log.entryAdded" and p["entry"]["level"] == "error":
                    found.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
                elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "assert"):
                    found.append(str(p["args"]))
            return found

    def picture(self, path):
        png = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(png))

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        self.reader.join(LONG_S)
        os.close(self.of)


@contextlib.contextmanager
def browser(base):
    b = Browser(os.path.join(base, "browser"))
    try:
        yield b
    finally:
        b.stop()
