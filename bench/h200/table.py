"""table.py [--check] [README]: the tables of bench/h200/README.md, from bench/results/h200.csv.

They stand between the two markers, and are made anew there; with --check nothing is written, and the exit code is 1
where they are not what the CSV says.
"""

import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench/results/h200.csv"
README = ROOT / "bench/h200/README.md"
BEGIN, END = "<!-- tables: made by bench/h200/table.py -->\n", "<!-- end of tables -->\n"

TIMED = ["vgg16", "resnet50", "vgg16-224", "resnet50-224", "gpt2-bf16", "vit-b16", "llama-bf16", "mobilenet-v2"]
SWAPPED = TIMED + ["vgg16-fp32", "resnet50-fp32"]
SAME = ["vgg16", "resnet50", "mobilenet-v2", "fcn-resnet50", "gpt2-bf16", "vit-b16", "llama-bf16"]
LIMITS = ["none", "80%", "70%", "60%", "50%"]
DEPARTURES = ["eval4", "clip", "checkpoint", "twobatch", "sidestream", "benchmark", "compile", "graph"]
MARKS = {"yes": "met", "no": "**missed**", "not resolved": "not resolved"}


class Results:
    def __init__(self, path):
        with open(path, newline="") as file:
            self.rows = {(r["slice"], r["model"], r["setting"], r["figure"]): r for r in csv.DictReader(file)}

    def row(self, *key):
        return self.rows.get(key)

    def number(self, *key):
        row = self.row(*key)
        return float(row["value"]) if row and row["value"] else None

    def met(self, *key):
        row = self.row(*key)
        return row["met"] if row else ""

    def settings(self, slice_name):
        return sorted({key[1:3] for key in self.rows if key[0] == slice_name})


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def text(value, digits, unit=""):
    return "" if value is None else f"{value:.{digits}f}{unit}"


def interval(row, digits, factor=1.0, unit=""):
    """Value, and its 95 % interval where there is one."""
    if not row or not row["value"]:
        return ""
    said = f"{factor * float(row['value']):.{digits}f}{unit}"
    if row["low"]:
        said += f" [{factor * float(row['low']):.{digits}f}, {factor * float(row['high']):.{digits}f}]"
    return said


def both(*parts):
    return ", ".join(part for part in parts if part)


def pool(results):
    head = ["pool alone", "peak load, MB", "alpha <= 1.01", "PyTorch's own", "step / plain <= 1.02", ""]
    rows = []
    for model in TIMED:
        key = ("pool", model, "pool")
        rows.append(
            [
                model,
                text((results.number(*key, "peak_load") or 0) / 1e6, 0),
                text(results.number(*key, "alpha"), 4),
                text(results.number(*key, "alpha_caching"), 2),
                interval(results.row(*key, "step_ratio"), 3),
                MARKS.get(results.met(*key, "step_ratio"), "not measured"),
            ]
        )
    return table(head, rows)


def swap(results):
    head = ["no-overhead swap", "limit, of the load", "overhead against the pool <= 2 %", "", "against plain <= 2 %", ""]
    rows = []
    for model in SWAPPED:
        key = ("swap", model, "no-overhead")
        share = results.number(*key, "limit_share")
        cells = [model, text(100 * share, 1, " %") if share else "nothing is worth swapping"]
        for figure in ("overhead_pool", "overhead_plain"):
            cells += [interval(results.row(*key, figure), 1, 100, " %"), MARKS.get(results.met(*key, figure), "")]
        rows.append(cells)
    return table(head, rows)


def points_cell(row, words):
    """How far off, in points of overhead, and whether that is met."""
    if not row or not row["value"]:
        return ""
    met = f": {MARKS[row['met']]}" if row["met"] else ""
    return f"{100 * float(row['value']):.1f} {words}{met}"


def tight_cell(results, model, setting):
    """The steps that were foretold and measured, how far the overhead is from the plan's, and what is met of it."""
    key = ("tight", model, setting)
    step = results.number(*key, "step")
    if step is None:
        return "not measured"
    foretold = results.number(*key, "predicted_step")
    steps = f"{text(foretold, 1)} / {step:.1f} ms" if foretold else f"{step:.1f} ms"
    held = "" if results.met(*key, "footprint") == "yes" else "limit **missed**"
    own, planned = results.number(*key, "overhead_neap"), results.number(*key, "predicted_plan")
    return both(
        steps,
        held,
        points_cell(results.row(*key, "off_plan"), "points off"),
        points_cell(results.row(*key, "off_step"), "of this base"),
        f"{100 * abs(own - planned):.1f} by its own" if None not in (own, planned) else "",
    )


def tight(results):
    head = ["tight limits: foretold / measured", *(limit for limit in LIMITS[2:])]
    return table(head, [[model, *(tight_cell(results, model, limit) for limit in LIMITS[2:])] for model in SWAPPED])


def save_cell(results, model, setting):
    key = ("tight", model, setting)
    row = results.row(*key, "added_ratio")
    if not row or not row["value"]:
        return "not measured"
    memory, load = results.number(*key, "memory"), results.number(*key, "peak_load")
    share = f" at {100 * memory / load:.0f} % of the load" if memory and load else ""
    times = "over 100" if float(row["low"]) > 100 else interval(row, 2)  # next to nothing is added then
    return f"{times}{share}: {MARKS[row['met']]}"


def save(results):
    head = ["times less time added than by `save_on_cpu`, >= 3", "at what it allocates", "at what it holds"]
    settings = ("save_on_cpu", "save_on_cpu_reserved")
    return table(head, [[model, *(save_cell(results, model, s) for s in settings)] for model in SWAPPED])


def sameness(results, *setting):
    """How near what was computed is to plain runs."""
    figures = (("bit_identical", "to the bit"), ("weight_distance", "within the spread"), ("loss_distance", "within the spread"))
    for figure, words in figures:
        met = results.met(*setting, figure)
        if met:
            return words if met == "yes" else "**differs**"
    return "not measured"


def same(results):
    head = ["same weights after 20 steps on the plan", *LIMITS]
    rows = [[model, *(sameness(results, "same", model, f"limit {limit}") for limit in LIMITS)] for model in SAME]
    return table(head, rows)


def departures(results):
    head = ["departures, within 70 %", "model", "as plain runs", "plan left", "by"]
    rows = []
    for name in DEPARTURES:
        for model in [model for model, setting in results.settings("departures") if setting == name]:
            key = ("departures", model, name)
            left = results.row(*key, "departures")
            rows.append([name, model, sameness(results, *key), f"{left['value']} times" if left else "", left["note"] if left else ""])
    return table(head, rows)


def others(results):
    """fit, startup, ranks, verify: all that something is asked of."""
    rows = []
    for slice_name in ("fit", "startup", "ranks", "verify"):
        for model, setting in results.settings(slice_name):
            for (kind, m, s, figure), row in results.rows.items():
                if (kind, m, s) == (slice_name, model, setting) and row["asked"]:
                    value = row["value"] if len(row["value"]) < 12 else f"{float(row['value']):.4g}"
                    rows.append([f"{slice_name}, {model}, {setting}", figure, value, row["asked"], MARKS[row["met"]]])
    return table(["others", "figure", "measured", "asked", ""], rows)


def made(results):
    parts = (pool, swap, tight, save, same, departures, others)
    return "\n" + "\n".join(part(results) for part in parts) + "\n"


def main(args):
    check = "--check" in args
    paths = [arg for arg in args if not arg.startswith("--")]
    readme = pathlib.Path(paths[0]) if paths else README
    whole = readme.read_text()
    if BEGIN not in whole or END not in whole:
        sys.exit(f"{readme}: the markers of the tables are missing")
    before, rest = whole.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    new = before + BEGIN + made(Results(RESULTS)) + END + after
    if check and new != whole:
        sys.exit(f"{readme}: the tables are not what bench/results/h200.csv says; python3 bench/h200/table.py makes them")
    if not check:
        readme.write_text(new)


if __name__ == "__main__":
    main(sys.argv[1:])
