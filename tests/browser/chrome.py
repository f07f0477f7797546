"""Drives a headless Chromium by its DevTools protocol over two pipes. Needs only Python's own library."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


def find_browser():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One browser with one page. Collects requests to the network and messages on the console."""

    def __init__(self, width=1200, height=800):
        self.profile = tempfile.mkdtemp(prefix="profcpu-browser-")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # The protocol is on descriptors 3 and 4 of the browser.
        def place():
            os.setsid()
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(
            [find_browser(), "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
             "--user-data-dir=" + self.profile, "about:blank"],
            close_fds=False, preexec_fn=place, stdout=subprocess.DEVNULL, stderr=open(self.messages(), "wb"))
        os.close(to_read)
        os.close(from_write)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.requests, self.console = [], []
        target = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"][0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def messages(self):
        """The file with what the browser says on stderr."""
        return os.path.join(self.profile, "stderr")

    def fail_ended(self):
        with open(self.messages(), errors="replace") as f:
            raise EOFError("the browser has ended with %d: %s" % (self.process.wait(10), f.read()[-2000:]))

    def read_message(self, deadline):
        while b"\0" not in self.buffer:
            if time.monotonic() > deadline:
                raise TimeoutError("the browser does not respond")
            if not select.select([self.from_read], [], [], 1)[0]:
                continue
            piece = os.read(self.from_read, 1 << 20)
            if not piece:
                self.fail_ended()
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a)) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])

    def call(self, method, **params):
        """The response to one command; records events that come before it."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        deadline = time.monotonic() + 60
        while True:
            response = self.read_message(deadline)
            if response.get("id") == self.last_id:
                if "error" in response:
                    raise RuntimeError("%s: %s" % (method, response["error"]))
                return response["result"]
            self.note(response)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def open(self, path, fragment=""):
        """Loads a file again, also if only the fragment differs from the page before."""
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")

    def wait(self, expression, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.run(expression):
                    return
            except RuntimeError:
                pass  # the page is being replaced
            if time.monotonic() > deadline:
                raise AssertionError("still false after %d s: %s" % (seconds, expression))
            time.sleep(0.02)

    def wait_drawn(self):
        """Waits until all changes are on the screen."""
        self.run("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def cpu_ms(self):
        """CPU time of the browser's processes so far, which measures drawing also on a busy machine."""
        ticks = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    stat = f.read().rsplit(") ", 1)[1].split()
            except OSError:
                continue  # it has just ended
            if int(stat[3]) == self.process.pid:  # the session
                ticks += int(stat[11]) + int(stat[12])
        return 1000 * ticks / os.sysconf("SC_CLK_TCK")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.wait_drawn()

    def click(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.wait_drawn()

    def key(self, key, control=False, shift=False):
        """Presses a key by its KeyboardEvent.key; a single character is typed too."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37,
                 "ArrowRight": 39, "Home": 36, "Backspace": 8, " ": 32}
        code = codes.get(key) or (ord(key.upper()) if len(key) == 1 and key.isalnum() and key.isascii() else 0)
        params = {"key": key, "windowsVirtualKeyCode": code,
                  "modifiers": (2 if control else 0) | (8 if shift else 0)}
        text = "\r" if key == "Enter" else key if len(key) == 1 and not control else None
        down = dict(params, type="keyDown" if text else "rawKeyDown")
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", **dict(params, type="keyUp"))
        self.wait_drawn()

    def type(self, text):
        for c in text:
            self.key(c)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def screenshot(self, path=None):
        """PNG bytes, base64; also writes them to path if it is given."""
        import base64
        data = self.call("Page.captureScreenshot", format="png")["data"]
        if path:
            with open(path, "wb") as f:
                f.write(base64.b64decode(data))
        return data

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (EOFError, OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own process group
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
