"""A headless Chromium, driven by W3C WebDriver (https://www.w3.org/TR/webdriver2/) through Debian's chromium-driver."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

kElement = "element-6066-11e4-a52e-4f735466cecf"  # the standard's key of an element


def is_here():
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


class Browser:
    """`with Browser() as browser`. Offline; width and height in CSS pixels."""

    def __init__(self, width=1360, height=900, dark=False):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        # --no-sandbox: a test machine runs as root, and the pages are the test's own.
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     # A page that still scrolls has moved away under the mouse when it gets there.
                     "--force-prefers-reduced-motion",
                     f"--window-size={width},{height}", "--force-device-scale-factor=1",
                     # No name resolves and no proxy answers: what a page asks of the network fails and is logged.
                     "--host-resolver-rules=MAP * ~NOTFOUND", "--no-proxy-server"]
        if dark:
            arguments += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self._wait_until_ready()
            session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise
        self.base += "/session/" + session["sessionId"]
        self._call("POST", "/goog/cdp/execute", {"cmd": "Performance.enable", "params": {"timeDomain": "threadTicks"}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def open(self, file):
        """Opens a file from disk; returns the seconds until its scripts have run and a frame was drawn."""
        begin = time.monotonic()
        self._call("POST", "/url", {"url": "file://" + str(file)})
        self.frames()
        return time.monotonic() - begin

    def run(self, script, *arguments):
        """The value of a script's `return`."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        return self._call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def frames(self):
        """Lets the page draw: charts put off what the mouse does until their next frame."""
        self.run_async("requestAnimationFrame(() => requestAnimationFrame(() => arguments[arguments.length - 1]()))")

    def wait_for(self, condition, *arguments):
        """Whether an expression became true within 20 s: what a page puts off comes when a busy machine lets it."""
        return self.run_async("const done = arguments[arguments.length - 1], until = performance.now() + 20000; "
                              f"(function look() {{ if ({condition}) done(true); else if (performance.now() > until) done(false); "
                              "else setTimeout(look, 20); }).apply(null, arguments);", *arguments)

    def find(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[kElement]

    def hover(self, selector, x, y):
        """Moves the mouse to (x, y) in CSS pixels from the element's upper left corner, again if that moved meanwhile."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'});", selector)
        corner = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top];"
        box = self.run(corner, selector)
        for _ in range(50):
            move = {"type": "pointerMove", "duration": 0, "x": round(box[0] + x), "y": round(box[1] + y)}
            self._act("pointer", [move])
            self.frames()
            before, box = box, self.run(corner, selector)
            if box == before:
                return
        raise RuntimeError(f"{selector} does not keep still")

    def click_here(self):
        self._act("pointer", [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])
        self.frames()

    def press(self, *keys):
        for key in keys:
            self._act("key", [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}])

    def console(self):
        """What the console has shown since the last call: [{level, message}]."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def cpu_seconds(self):
        """What the page's main thread has computed since it was opened: the same on a busy machine."""
        metrics = self._call("POST", "/goog/cdp/execute", {"cmd": "Performance.getMetrics", "params": {}})["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def screenshot(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self._call("GET", "/screenshot")))

    def resize(self, width, height):
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def _act(self, kind, actions):
        device = {"type": kind, "id": kind, "actions": actions}
        if kind == "pointer":
            device["parameters"] = {"pointerType": "mouse"}
        self._call("POST", "/actions", {"actions": [device]})

    def _wait_until_ready(self):
        for _ in range(100):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{value['error']}: {value['message']}") from None
