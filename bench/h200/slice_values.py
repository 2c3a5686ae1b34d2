"""slice_values.py: does the program compute what it computes without neap? The same-numbers and departures slices.

Under neap a program steps until its plan runs, and twenty steps more; the plain runs then do as many steps, and what
was computed is compared: to the bit where two plain runs agree to the bit, else with the spread of the plain runs. Weights
are compared by the relative distance |a - b| / |b|, losses by the largest relative difference over all steps. A run is
within the spread where its median distance to the plain runs is at most the largest between two of those.
"""

import functools
import itertools
import math
import statistics
from concurrent import futures

from child import Child, Failed
from neap_stats import find
from results import Setting

EXACT = ["vgg16", "resnet50", "mobilenet-v2", "fcn-resnet50"]  # two plain runs give the same bits
OTHERS = ["gpt2-bf16", "vit-b16", "llama-bf16"]
LIMITS = ("none", "80%", "70%", "60%", "50%")
SETTLE_S = 40  # at most, or longer where it is asked for: children share the GPU, and wait for plans with swaps
PACE_S = 0.1  # a step while neap plans, at least: few steps are to pass until it has
PLANNED_STEPS = 20
N_PLAIN = 5
PLAIN_AT_ONCE = 3  # five of the largest would not fit

# What is trained, and how often plainly. cudnn.benchmark picks kernels by their times, which are never quite the same.
DEPARTURES = {
    "eval4": ("resnet50", 2),
    "clip": ("resnet50", 2),
    "checkpoint": ("resnet50", 2),
    "twobatch": ("resnet50", 2),
    "sidestream": ("resnet50", 2),
    "benchmark": ("resnet50", 5),
    "compile": ("vgg16", 3),
    "graph": ("resnet50", 2),
}
DEPARTURE_LIMIT = "70%"


def under(limit):
    """The words of `neap run`, and whether swaps are to be waited for."""
    return (["run"], False) if limit == "none" else (["run", "--limit", limit], True)


def start(ctx, model, limits, n_plain, args):
    """All load at once, none uses the GPU yet."""
    ours = {}
    for limit in limits:
        neap, swaps = under(limit)
        ours[limit] = Child(ctx.bench, f"same-{limit}", model, args, neap, swaps)
    plains = [Child(ctx.bench, f"same-plain{n}", model, args) for n in range(n_plain)]
    return ours, plains


def train_all(ctx, ours, plains, weights):
    """Reports of all, after equally many steps: {limit: report}, [report]; a failed one is {"error": why}.
    Times mean nothing here, so that children may share the GPU."""
    with futures.ThreadPoolExecutor() as pool:
        ctx.say(f"  under neap, limits {', '.join(ours)}")
        setups = list(pool.map(lambda child: set_up(child, max(ctx.settle_s, SETTLE_S), PACE_S), ours.values()))
        steps = max(setup["step"] for setup in setups) + PLANNED_STEPS
        reports = pool.map(lambda child, setup: finish(child, setup, steps, weights), ours.values(), setups)
        reports = dict(zip(ours, reports))
    ctx.say(f"  {len(plains)} times plain, {steps} steps")
    with futures.ThreadPoolExecutor(PLAIN_AT_ONCE) as pool:
        return reports, list(pool.map(lambda child: finish(child, set_up(child, 0, 0), steps, weights), plains))


def set_up(child, settle_s, pace_s):
    try:
        return child.setup(settle_s, pace_s)
    except Failed as failed:
        return {"error": str(failed), "step": 0}


def finish(child, setup, steps, weights):
    """To the last step, and away."""
    try:
        if "error" in setup:
            return setup
        child.ask("until", 300, step=steps)
        report = {**child.ask("report"), "settled": setup["settled"]}
        if weights:
            report["weights"] = str(child.log.with_suffix(".weights"))
            child.ask("weights", path=report["weights"])
        return report
    except Failed as failed:
        return {"error": str(failed)}
    finally:
        child.close()


# ---- distances


def loss_distance(a, b):
    """The largest relative difference of two runs' losses, and of what they computed beside them."""
    pairs = list(zip(a["losses"] + a["extra"], b["losses"] + b["extra"]))
    if len(a["extra"]) != len(b["extra"]) or any(math.isfinite(x) != math.isfinite(y) for x, y in pairs):
        return math.inf
    return max((abs(x - y) / max(abs(y), 1e-12) for x, y in pairs if math.isfinite(y)), default=0.0)


@functools.lru_cache(maxsize=None)
def weights_of(path):
    """All of a run's, in one row; on the GPU where there is one, which has nothing else to do by then."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = torch.load(path, mmap=True)
    parts = [tensors[name].to(device).flatten().float() for name in sorted(tensors) if tensors[name].is_floating_point()]
    return torch.cat(parts)


def weight_distance(a, b):
    import torch

    first, second = (weights_of(report["weights"]) for report in (a, b))
    apart, length = (torch.linalg.vector_norm(row, dtype=torch.float64).item() for row in (first - second, second))
    return apart / length if length else 0.0


def spread(plains, distance):
    return max((distance(a, b) for a, b in itertools.combinations(plains, 2)), default=0.0)


# ---- rows


def add_run(rows, report, asked, swaps):
    stats = report["neap"]
    limit = find(stats, "limit")
    rows.add("steps", report["steps"], note="" if report["settled"] else "no settled plan")
    rows.add("planned_iterations", find(stats, "n_iterations"), "", asked)
    rows.add("departures", find(stats, "n_departures"), note=reasons(stats))
    rows.add("limit_held", limit, "bytes")
    rows.add("footprint", find(stats, "footprint"), "bytes", f"<={limit}" if limit else "")
    rows.add("bytes_out", find(stats, "bytes_out", 0), "bytes", swaps)
    finite = all(math.isfinite(loss) for loss in report["losses"])
    rows.add("last_loss", report["losses"][-1], note="" if finite else "not finite")


def reasons(stats):
    kinds = ("malloc", "size", "free", "exec", "uses", "absent", "stream", "failed")
    return ", ".join(f"{kind} {n}" for kind in kinds if (n := find(stats, f"departures_{kind}")))


def add_same(rows, report, plains, distance, figure):
    """To the bit where the plain runs are; else within their spread."""
    if len({plain["sha256"] for plain in plains}) == 1 and len(plains) > 1:
        rows.add("bit_identical", report["sha256"] == plains[0]["sha256"], "", "=yes", "weights")
        rows.add(figure, statistics.median(distance(report, plain) for plain in plains))
        return
    widest = spread(plains, distance)
    rows.add(f"{figure}_spread", widest, note=f"largest between two of {len(plains)} plain runs")
    found = statistics.median(distance(report, plain) for plain in plains)
    rows.add(figure, found, "", f"<={widest!r}", "median distance to the plain runs")


def put(ctx, setting, report, plains, fill, asked="", swaps=""):
    broken = next((plain["error"] for plain in plains if "error" in plain), None)
    if "error" in report or broken:
        setting.fail(report.get("error") or f"plain: {broken}")
    else:
        add_run(setting, report, asked, swaps)
        fill(setting)
    ctx.put(setting, report.get("machine", ""))


# ---- the slices


def same_model(ctx, model):
    is_exact = model in EXACT
    ours, plains = start(ctx, model, LIMITS, 2 if is_exact else N_PLAIN, ("--deterministic", "--fresh"))
    try:
        reports, plain_reports = train_all(ctx, ours, plains, not is_exact)
        distance = loss_distance if is_exact else weight_distance
        figure = "loss_distance" if is_exact else "weight_distance"
        for limit in LIMITS:
            report = reports[limit]
            fill = lambda rows, r=report: add_same(rows, r, plain_reports, distance, figure)
            swaps = "" if limit == "none" else ">=1"
            put(ctx, Setting("same", model, f"limit {limit}"), report, plain_reports, fill, f">={PLANNED_STEPS}", swaps)
    finally:
        for child in [*ours.values(), *plains]:
            child.close()
            child.log.with_suffix(".weights").unlink(missing_ok=True)
        weights_of.cache_clear()


def same(ctx):
    ctx.each("same", EXACT + OTHERS, lambda model: same_model(ctx, model))


def departure(ctx, name):
    model, n_plain = DEPARTURES[name]
    args = ("--departure", name, "--deterministic", "--fresh")
    ours, plains = start(ctx, model, [DEPARTURE_LIMIT], n_plain, args)
    try:
        reports, plain_reports = train_all(ctx, ours, plains, False)
        report = reports[DEPARTURE_LIMIT]
        fill = lambda rows: add_same(rows, report, plain_reports, loss_distance, "loss_distance")
        put(ctx, Setting("departures", model, name), report, plain_reports, fill)
    finally:
        for child in [*ours.values(), *plains]:
            child.close()


def departures(ctx):
    ctx.each("departures", DEPARTURES, lambda name: departure(ctx, name))
