"""What a page of `neap report` shows, held against the command's own answers and against the trace read here again. The
page tells its state through window.neapReport; everything is done to it with a mouse and a keyboard."""
import json
import os
import subprocess
import sys
import tempfile

import report_browser

COMMAND = os.environ["NEAP_COMMAND"]
SOURCE = os.environ["NEAP_SOURCE_DIR"]
SWAP = f"{SOURCE}/tests/cli/data/swap.neap"
VGG = f"{SOURCE}/tests/data/traces/vgg11-100-32.neap.gz"
N_MANY = 20000


def neap(*arguments):
    """The document that a verb prints."""
    done = subprocess.run([COMMAND, *arguments, "--json"], stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 1), arguments
    return json.loads(done.stdout)


def equal(got, wanted, what):
    """Says both where they differ."""
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


class Trace:
    """The first period of a small trace, read in the plainest way."""

    def __init__(self, path, n_events):
        self.bytes, self.uses = {}, {}
        live, self.peak, self.at_peak = set(), 0, []
        n = 0
        with open(path, encoding="utf-8") as file:
            for words in map(str.split, file):
                if words[0] in ("live", "malloc"):
                    self.bytes[int(words[1])] = int(words[2])
                    live.add(int(words[1]))
                elif words[0] == "free":
                    live.remove(int(words[1]))
                elif words[0] == "exec":
                    for access in words[4:]:
                        self.uses.setdefault(int(access[1:]), []).append(words[1])
                n += words[0] in ("malloc", "free", "exec")
                if n > n_events:
                    return
                load = sum((self.bytes[block] + 511) // 512 * 512 for block in live)
                if load > self.peak:
                    self.peak, self.at_peak = load, sorted(live, key=lambda block: -self.bytes[block])


class Page:
    """A page in the browser."""

    def __init__(self, browser, path, fragment=""):
        self.browser = browser
        browser.open(path, fragment)
        self.run = browser.run
        self.state = browser.state

    def pane(self, index=0):
        """What one of its panes says."""
        return self.state()["panes"][index]

    def stage(self):
        """The canvas on the screen."""
        return self.run("(() => { const e = document.querySelector('.stage'); e.scrollIntoView({ block: 'end' });"
                        " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")

    def move_slider(self, selector, key):
        """Home is the lowest limit, End none."""
        self.run(f"document.querySelector('{selector}').focus()")
        self.browser.key(key)
        return self.state()

    def is_sound(self):
        """Nothing went wrong, and nothing was fetched but the page."""
        equal(self.browser.faults, [], "errors of the page")
        equal([url for url in self.browser.requests if not url.startswith("file://")], [], "fetched")


# ---- the figures

def compare_stop(pane, stop, from_report):
    """One stop of the slider with what the report's own document says, and `neap swap`."""
    equal(pane["exists"], from_report["footprint"] is not None, f"a plan at {stop}")
    asked = neap("swap", SWAP, *([] if stop == "free" else ["--limit", f"{stop}%"]))
    if not pane["exists"]:
        return
    cards = pane["cards"]
    for key in ("limit", "footprint", "overhead", "bytes_out"):
        equal(float(cards[key]), from_report[key], f"{key} at {stop}")
    equal(int(cards["peak_load"]), asked["peak_load"], "peak load")
    assert pane["highest"] == int(cards["footprint"]) <= int(cards["limit"]), "blocks stand above the footprint"
    assert pane["load"] <= int(cards["footprint"]), "more is there than there is room for"
    assert pane["copies"]["in"] >= from_report["swaps"] >= 1
    if stop != "free":
        equal(int(cards["limit"]), asked["limit"], "limit")
        equal(from_report["bound_overhead"], asked["bound_overhead"], "bound")
        # Searches end by the clock: two of them find plans that are near each other, not the same.
        assert asked["footprint"] is None or abs(asked["footprint"] / int(cards["footprint"]) - 1) < 0.15, stop


def test_slider(browser, work):
    """Every stop from none to the lowest, by keyboard."""
    path = f"{work}/swap.html"
    made = neap("report", SWAP, "-o", path, "--limits", "5", "--seconds", "0.5")["files"][0]
    page = Page(browser, path)
    stops = page.state()["stops"]
    by_stop = {"free" if limit["percent"] is None else str(limit["percent"]): limit for limit in made["limits"]}
    equal(sorted(stops), sorted([*by_stop, "pool"]), "stops")
    state = page.move_slider("#limit", "End")
    plan = neap("plan", SWAP)
    equal(state["panes"][0]["key"], "pool", "the last stop")
    equal(int(state["panes"][0]["cards"]["footprint"]), plan["footprint"], "footprint of neap plan")
    equal(int(state["panes"][0]["cards"]["peak_load"]), plan["load"], "load of neap plan")
    equal(state["panes"][0]["nRects"], plan["buffers"], "buffers of neap plan")
    equal(state["panes"][0]["load"], plan["load"], "the curve's highest point")
    for stop in reversed(stops[:-1]):
        state = page.move_slider("#limit", "ArrowLeft")
        equal(state["panes"][0]["key"], stop, "the next stop")
        compare_stop(state["panes"][0], stop, by_stop[stop])
        if state["panes"][0]["exists"]:
            equal(page.run("neapReport.countOverlaps(0)"), 0, f"blocks in each other's way at {stop}")
        else:
            assert "No plan" in page.run("document.querySelector('.none').innerText")
    page.is_sound()
    return path


# ---- the canvas

def test_zoom(browser, path):
    """The wheel is the page's, but with a key or after a click on the chart; drag, keys, buttons, double click."""
    page = Page(browser, path, "limit=none")
    x, y, width, _ = page.stage()
    whole = page.pane()["nDrawn"]
    everything = {"from": 0, "to": 1, "low": 0, "high": 1}
    page.run("scrollTo(0, 0)")
    browser.mouse("mouseWheel", x + width / 3, y + 300, deltaX=0, deltaY=60)
    page.browser.wait("scrollY > 0")
    equal(page.state()["view"], everything, "a wheel over the chart that scrolls the page")
    x, y, width, _ = page.stage()
    for _ in range(2):
        browser.mouse("mouseWheel", x + width / 3, y + 300, deltaX=0, deltaY=-300, modifiers=2)
    view = page.state()["view"]
    assert view["to"] - view["from"] < 0.8, f"Ctrl and wheel do not zoom: {view}"
    browser.key("0")
    browser.click(x + width / 3, y + 5)
    assert page.run("document.activeElement === document.querySelector('canvas.main')"), "a click gives no focus"
    for key, is_good in (("ArrowUp", lambda v: v == everything), ("+", lambda v: v["to"] - v["from"] < 1),
                         ("*", lambda v: v["high"] - v["low"] < 1), ("ArrowUp", lambda v: v["low"] > 0.1)):
        browser.key(key)
        assert is_good(page.state()["view"]), (key, page.state()["view"])
    browser.key("0")
    for _ in range(6): # after the click
        browser.mouse("mouseWheel", x + width / 3, y + 300, deltaX=0, deltaY=-300)
    view = page.state()["view"]
    assert 0 < view["from"] < view["to"] < 1 and view["to"] - view["from"] < 0.3, view
    assert 0 < page.pane()["nDrawn"] < whole, "what is out of sight is drawn"
    browser.mouse("mouseWheel", x + width / 3, y + 300, deltaX=0, deltaY=-300, modifiers=8)
    assert page.state()["view"]["high"] - page.state()["view"]["low"] < 1
    before = page.state()["view"]
    browser.mouse("mousePressed", x + 400, y + 300, button="left", clickCount=1)
    for step in range(1, 6):
        browser.mouse("mouseMoved", x + 400 + 20 * step, y + 300, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 500, y + 300, button="left", clickCount=1)
    assert page.state()["view"]["from"] < before["from"], "dragging to the right shows what was before"
    browser.key("0")
    equal(page.state()["view"], everything, "all of it")
    browser.key("Escape")
    assert page.run("document.activeElement === document.body"), "Escape keeps the focus"
    for label, is_good in (("zoom in", lambda v: v["to"] - v["from"] < 0.9 and v["from"] > 0),
                           ("later", lambda v: v["from"] > 0.2), ("everything", lambda v: v == everything)):
        browser.click_on(f".tools [aria-label^='{label}']")
        assert is_good(page.state()["view"]), (label, page.state()["view"])
    page.run("document.querySelector('[data-axis=events]').click()")
    equal(page.state()["axis"], "events", "axis")
    equal(page.pane()["nDrawn"], whole, "drawn over events")
    page.is_sound()


def test_phone(browser, path):
    """375 pixels: nothing sideways; one finger scrolls the page, or moves in time; two zoom; the axis has its ticks."""
    browser.screen(375, 700, True)
    try:
        for fragment in ("limit=none", "beside=1", "find=forward"):
            page = Page(browser, path, fragment)
            page.state()
            assert page.run("document.documentElement.scrollWidth <= 375 && innerWidth === 375"), fragment
            wide = page.run("[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll')"
                            " && e.getBoundingClientRect().right > 376).map((e) => e.className || e.tagName)")
            equal(wide, [], f"beyond the screen's edge, {fragment}")
        page = Page(browser, path, "limit=none")
        page.run("document.querySelector('.stage').scrollIntoView({ block: 'start' })")
        x, y, width, _ = page.run("(() => { const b = document.querySelector('.stage').getBoundingClientRect();"
                                  " return [b.x, b.y, b.width, b.height]; })()")
        assert page.pane()["nTicks"] >= 2, page.pane()["nTicks"]
        left, right = x + width * 0.4, x + width * 0.5
        browser.touch("touchStart", (left, y + 200), (right, y + 200))
        for step in range(1, 9):
            browser.touch("touchMove", (left - 8 * step, y + 200), (right + 8 * step, y + 200))
        browser.touch("touchEnd")
        view = page.state()["view"]
        assert view["to"] - view["from"] < 0.6 and view["from"] > 0, f"a pinch does not zoom: {view}"
        assert page.pane()["nTicks"] >= 2, page.pane()["nTicks"]
        browser.touch("touchStart", (x + 100, y + 200))
        for step in range(1, 9):
            browser.touch("touchMove", (x + 100 + 8 * step, y + 200))
        browser.touch("touchEnd")
        moved = page.state()["view"]
        assert moved["from"] < view["from"], f"a finger does not move: {view} {moved}"
        before = page.run("scrollY")
        browser.touch("touchStart", (x + 150, y + 400))
        for step in range(1, 16):
            browser.touch("touchMove", (x + 150, y + 400 - 12 * step))
            page.state()
        browser.touch("touchEnd")
        browser.wait(f"scrollY > {before} + 50")
        equal(page.state()["view"], moved, "a finger that scrolls the page")
        equal(page.state()["tip"], "", "a tip after that")
        page.is_sound()
    finally:
        browser.screen(0, 0)


def test_pointing(browser, path):
    """Each block is named where it is drawn, with its size, its life and its kernels."""
    page = Page(browser, path, "limit=none")
    page.stage()
    trace = Trace(SWAP, neap("plan", SWAP)["period"]["length"])
    for block in trace.at_peak:
        point = page.run(f"neapReport.pointOf(0, {block})")
        browser.mouse("mouseMoved", point["x"], point["y"])
        state = page.state()
        equal(state["panes"][0]["pointed"], block, "the block pointed at")
        tip = state["tip"].replace("\u00a0", " ")
        assert f"block #{block} · {trace.bytes[block] / 1e6:.2f} MB" in tip or \
            f"block #{block} · {trace.bytes[block] / 1e6:.1f} MB" in tip, tip
        uses = trace.uses[block]
        assert f"{len(uses)} access" in tip and uses[0] in tip and uses[-1] in tip and "lives" in tip, tip
    assert page.state()["tip"], "no tip before a search"
    page.run("(() => { const e = document.querySelector('#search'); e.focus(); })()")
    browser.type("7")
    equal((page.state()["tip"], page.pane()["pointed"]), ("", None), "a tip that outlives a search")
    browser.click(point["x"], point["y"])
    equal(page.pane()["held"], trace.at_peak[-1], "the block held")
    assert f"#{trace.at_peak[-1]}" in page.run("document.querySelector('.held').innerText")
    table = page.run("[...document.querySelectorAll('.peak tbody tr')].map((row) => row.cells[0].textContent)")
    sizes = [trace.bytes[int(name[1:])] for name in table]
    equal(sizes, [trace.bytes[block] for block in trace.at_peak], "sizes in the table of the peak")
    page.is_sound()


def test_search(browser, path):
    """By kernel, by number, by size."""
    page = Page(browser, path, "limit=none")
    trace = Trace(SWAP, neap("plan", SWAP)["period"]["length"])
    lived = [block for block in trace.bytes if block in trace.uses]
    wanted = {
        "BACKWARD2": sum(any("backward2" in name for name in trace.uses[block]) for block in lived),
        "7": 1,
        ">8MB": sum(trace.bytes[block] >= 8e6 for block in lived),
        "nothing at all": 0,
    }
    for text, n in wanted.items():
        page.run("(() => { const e = document.querySelector('#search'); e.value = ''; e.focus(); })()")
        browser.type(text)
        equal(page.state()["found"].split("\u00a0")[0], str(n), f"found for {text}")
    page.run("(() => { const e = document.querySelector('#search'); e.value = ''; e.focus(); })()")
    browser.type("7")
    browser.key("Enter")
    equal(page.pane()["held"], 7, "the block found")
    assert page.state()["view"]["high"] - page.state()["view"]["low"] < 1, "not zoomed in on"
    page.is_sound()


# ---- side by side

def test_beside(browser, path, work):
    """Two plans of one trace, each with its limit; two traces with one."""
    page = Page(browser, path)
    stops = page.state()["stops"]
    assert page.state()["limitText"].endswith("· no slowdown"), page.state()["limitText"]
    browser.key("[")
    equal(page.pane()["key"], stops[stops.index("free") - 1], "one stop down")
    browser.key("]")
    browser.click_on("#beside")
    panes = page.state()["panes"]
    equal([pane["key"] for pane in panes], ["pool", "free"], "plans beside each other")
    point = page.run("neapReport.pointOf(0, 6)")
    browser.mouse("mouseMoved", point["x"], point["y"])
    equal([pane["pointed"] for pane in page.state()["panes"]], [6, 6], "pointed at on both sides")
    page.move_slider(".pane:nth-child(1) .own input", "ArrowLeft")
    equal([pane["key"] for pane in page.state()["panes"]], [stops[-2], "free"], "one of them changed")
    browser.click_on("#own")
    page.move_slider("#limit", "End")
    equal([pane["key"] for pane in page.state()["panes"]], ["pool", "pool"], "both changed")
    page.is_sound()
    two = f"{work}/two.html"
    neap("report", SWAP, VGG, "-o", two, "--limits", "2", "--seconds", "0.3")
    page = Page(browser, two)
    stop = next(stop for stop in page.state()["stops"] if stop not in ("free", "pool"))
    page.move_slider("#limit", "Home")
    panes = page.state()["panes"]
    equal([pane["name"] for pane in panes], [os.path.basename(SWAP), os.path.basename(VGG)], "names")
    equal([pane["key"] for pane in panes], [stop, stop], "one limit for both")
    assert "Link h200-pcie5: 55 GB/s out, 55 in. " in page.run("document.querySelector('#made').innerText")
    page.is_sound()
    slow = f"{work}/slow.neap"
    with open(SWAP, encoding="utf-8") as trace, open(slow, "w", encoding="utf-8") as file:
        file.write(trace.read() + "meta link=0.25/0.5GB/s\n")
    neap("report", SWAP, slow, "-o", two, "--limits", "0", "--seconds", "0.1")
    page = Page(browser, two)
    assert ("Link of swap.neap h200-pcie5: 55 GB/s out, 55 in; Link of slow.neap 0.25/0.5GB/s: 0.25 GB/s out, 0.5 in. "
            in page.run("document.querySelector('#made').innerText"))
    page.is_sound()


# ---- odd input

def test_odd_names(browser, work):
    """Names are text, whatever they look like."""
    name = "\"a'b<c>&amp;</script><script>window.hit=1</script><img/src=x/onerror=window.hit=1>"
    path, page_path = f"{work}/odd.neap", f"{work}/odd.html"
    with open(path, "w", encoding="utf-8") as file:
        file.write("neap-trace 1\nmeta model=<b>bold</b>\nlive 1 4096\n")
        for i in range(10, 50, 10):
            file.write(f"malloc {i} 8192\nexec {name} {i} 5 r1 w{i}\nexec <!--<script> {i} 5 r{i}\nfree {i}\n")
    neap("report", path, "-o", page_path, "--limits", "0", "--seconds", "0.1")
    page = Page(browser, page_path, "limit=none")
    page.stage()
    point = page.run("neapReport.pointOf(0, 1)")
    browser.mouse("mouseMoved", point["x"], point["y"])
    assert name[:59] in page.state()["tip"], page.state()["tip"]
    assert page.run("window.hit === undefined && document.images.length === 0 && !document.querySelector('main b b')")
    assert "<b>bold</b>" in page.run("document.querySelector('.about').innerText")
    page.is_sound()


def test_odd_shapes(browser, work):
    """Nothing at all, nothing that runs, nothing that takes time."""
    step = "malloc {0} 4000000\nexec a 0 0 w{0} r1\nexec b 0 0 r{0}\nfree {0}\n"
    texts = {
        "empty.csv": "id,lower,upper,size\n",
        "still.neap": "neap-trace 1\n" + "".join(f"malloc {i} 1000\nfree {i}\n" for i in range(4)),
        "instant.neap": "neap-trace 1\nlive 1 5000\n" + "".join(step.format(i) for i in range(2, 8)),
    }
    for name, text in texts.items():
        with open(f"{work}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        footprint = neap("report", f"{work}/{name}", "-o", f"{work}/odd.html", "--limits", "2", "--seconds", "0.1")[
            "files"][0]["pool"]["footprint"]
        page = Page(browser, f"{work}/odd.html", "limit=none")
        equal(int(page.pane()["cards"]["footprint"]), footprint, f"footprint of {name}")
        page.is_sound()


def test_csv(browser, work):
    """A placement problem has no time and no limits."""
    neap("report", f"{SOURCE}/tests/cli/data/tiny.csv", "-o", f"{work}/csv.html")
    page = Page(browser, f"{work}/csv.html")
    state = page.state()
    equal((state["axis"], state["stops"]), ("events", ["pool"]), "axis and stops")
    equal(int(state["panes"][0]["cards"]["footprint"]), neap("plan", f"{SOURCE}/tests/cli/data/tiny.csv")["footprint"],
          "footprint")
    assert page.run("document.querySelector('#limit-control').hidden && document.querySelector('#axis-control').hidden")
    page.is_sound()


def write_many(path):
    """A training step of N_MANY blocks, twice and a bit: activations that live long, and short ones in between."""
    n_layers = N_MANY // 4
    with open(path, "w", encoding="utf-8") as file:
        file.write("neap-trace 1\n")
        block = 0
        for _ in range(3):
            kept = []
            for layer in range(n_layers):
                kept.append(block)
                file.write(f"malloc {block} {4096 * (1 + layer % 61)}\nmalloc {block + 1} {8192 * (1 + layer % 7)}\n"
                           f"exec forward{layer % 40} 0 9000 w{block} w{block + 1}\nfree {block + 1}\n")
                block += 2
            for layer, one in enumerate(reversed(kept)):
                file.write(f"malloc {block} {8192 * (1 + layer % 11)}\n"
                           f"exec backward{layer % 40} 0 15000 r{one} w{block}\n"
                           f"free {one}\nmalloc {block + 1} 4096\nexec update 0 2000 r{block} w{block + 1}\n"
                           f"free {block}\nfree {block + 1}\n")
                block += 2


def test_many(browser, work):
    """All of them are drawn; zoomed in, only those in sight. How long that takes is said, not judged."""
    write_many(f"{work}/many.neap")
    neap("report", f"{work}/many.neap", "-o", f"{work}/many.html", "--limits", "0", "--seconds", "0.1")
    page = Page(browser, f"{work}/many.html", "limit=none")
    pane = page.pane()
    equal(int(pane["cards"]["blocks"]), N_MANY, "blocks")
    assert pane["nDrawn"] == pane["nRects"] >= N_MANY
    x, y, width, _ = page.stage()
    for _ in range(10):
        browser.mouse("mouseWheel", x + width / 2, y + 300, deltaX=0, deltaY=-400, modifiers=2)
    n_left = page.pane()["nDrawn"]
    assert 0 < n_left < N_MANY, n_left
    browser.key("0")
    equal(page.pane()["nDrawn"], pane["nDrawn"], "drawn again")
    times = page.run("neapReport.measure(40)")
    print(f"  {N_MANY} blocks: {times['median']:.1f} ms a frame, {times['most']:.1f} at most; "
          f"{os.path.getsize(f'{work}/many.html') / 1e6:.1f} MB")
    page.is_sound()


def main():
    """Every test, one after the other, in one browser."""
    path = report_browser.find()
    if not path:
        print("skipped: no chromium")
        return 77
    try:
        browser = report_browser.Browser(path)
    except (OSError, AssertionError) as why:
        print(f"skipped: {path} does not start: {why}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        try:
            page = test_slider(browser, work)
            test_zoom(browser, page)
            test_phone(browser, page)
            test_pointing(browser, page)
            test_search(browser, page)
            test_beside(browser, page, work)
            test_odd_names(browser, work)
            test_odd_shapes(browser, work)
            test_csv(browser, work)
            test_many(browser, work)
        finally:
            browser.close()
    print("the page shows what neap plan and neap swap say")
    return 0


sys.exit(main())
