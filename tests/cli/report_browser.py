"""A browser without a screen, spoken to over the DevTools protocol through a pair of pipes: nothing but Python's own
library is needed. Messages are JSON, each ended by a zero byte."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The browser's path, or None."""
    wanted = os.environ.get("NEAP_CHROMIUM")
    return wanted or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page of it. Whatever the page says on its console, throws or fetches is kept."""

    PATIENCE_S = 60  # for a hang, not for slowness

    def __init__(self, path, width=1400, height=1100):
        self.folder = tempfile.mkdtemp(prefix="neap-browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        arguments = [path, "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                     "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
                     "--disable-dev-shm-usage", f"--user-data-dir={self.folder}", f"--window-size={width},{height}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'  # the browser reads from 3 and writes to 4
        self.process = subprocess.Popen(["bash", "-c", script, "bash", str(to_read), str(to_write), *arguments],
                                        pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.n_sent = 0
        self.session = None
        self.faults = []  # exceptions and errors of the page
        self.requests = []  # addresses it fetched
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        """Ends the browser, and all that it left."""
        try:
            self.session = None
            self.send("Browser.close")
        except (OSError, AssertionError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the protocol

    def receive(self, deadline):
        """The next message."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self.from_browser, 1 << 16)
            assert part, "the browser is gone"
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        kind = message.get("method")
        if kind == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description") or details["text"])
        elif kind == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.faults.append(message["params"]["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def send(self, method, **parameters):
        """A call, and its answer."""
        self.n_sent += 1
        call = {"id": self.n_sent, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        data = json.dumps(call).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        deadline = time.monotonic() + self.PATIENCE_S
        while True:
            message = self.receive(deadline)
            if message.get("id") == self.n_sent:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    # ---- the page

    def open(self, path, fragment=""):
        """Loads a file, and waits until it has drawn."""
        self.send("Page.navigate", url="about:blank")
        self.faults.clear()
        self.requests.clear()
        self.send("Page.navigate", url=f"file://{os.path.abspath(path)}{'#' if fragment else ''}{fragment}")
        self.wait("window.neapReport && document.readyState === 'complete' && neapReport.state().isDrawn")

    def run(self, expression):
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer.get('exceptionDetails')}"
        return answer["result"].get("value")

    def wait(self, condition):
        """Until an expression is true."""
        deadline = time.monotonic() + self.PATIENCE_S
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def state(self):
        """What the page says of itself, once it has drawn what was asked for."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        self.wait("neapReport.state().isDrawn")
        return self.run("neapReport.state()")

    def mouse(self, kind, x, y, **more):
        """mouseMoved, mousePressed, mouseReleased or mouseWheel."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        """Down and up, with the left button."""
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def click_on(self, selector):
        """The middle of an element."""
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block:"
                       " 'center'}); const b = e.getBoundingClientRect(); return { x: b.x + b.width / 2, y: b.y +"
                       " b.height / 2 }; })()")
        self.click(box["x"], box["y"])

    def key(self, key):
        """A key of the keyboard, to whatever has the focus."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36, "Enter": 13, "Escape": 27, "ArrowUp": 38,
                 "ArrowDown": 40}
        code = codes.get(key, ord(key[0]))
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screen(self, width, height, is_phone=False):
        """Another window, with fingers where it is a telephone's; 0: as it was."""
        if width == 0:
            self.send("Emulation.clearDeviceMetricsOverride")
        else:
            self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2,
                      mobile=is_phone)
        self.send("Emulation.setTouchEmulationEnabled", enabled=is_phone, maxTouchPoints=5 if is_phone else 1)

    def touch(self, kind, *points):
        """touchStart, touchMove, touchEnd or touchCancel, with the fingers that are down then."""
        self.send("Input.dispatchTouchEvent", type=kind,
                  touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)])

    def type(self, text):
        """Text into whatever has the focus."""
        self.send("Input.insertText", text=text)

    def picture(self, path):
        """The window as PNG."""
        import base64
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
