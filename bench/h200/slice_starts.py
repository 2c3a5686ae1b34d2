"""slice_starts.py: programs that do not fit, and how soon a plan is there. The fit and startup slices."""

import shutil

from child import Child, Failed
from neap_stats import find
from results import Setting

FIT_MODEL = "gpt2"
FIT_STEPS = 12
START_MODEL = "gpt2-bf16"
START_LIMIT = "70%"


# ---- a program that does not fit


def plain_peak(ctx, model):
    """What the program needs: PyTorch's own count, without a cap."""
    report = ctx.bench.train(f"{model}-fit-free", model, ["--steps", "4", "--warmup", "2"])
    return report, report["memory"]["max_memory_allocated"] or 1 << 20


def runs_out(ctx, model, cap):
    """Whether plain PyTorch runs out of memory under the cap, and what it says."""
    try:
        ctx.bench.train(f"{model}-fit-capped", model, ["--steps", "2", "--cap", str(cap)])
        return False, "it trained under the cap"
    except Failed as failed:
        return "OutOfMemoryError" in str(failed), str(failed)[:160]


def fit_model(ctx, model):
    rows = Setting("fit", model, "half in bytes")
    machine = ""
    try:
        free, peak = plain_peak(ctx, model)
        limit, machine = peak // 2, free["machine"]
        rows.add("needed", peak, "bytes", note="peak allocated by plain PyTorch without a cap")
        rows.add("limit", limit, "bytes")
        ctx.say(f"  plain, under a cap of {limit / 1e9:.2f} GB")
        ran_out, why = runs_out(ctx, model, limit)
        rows.add("plain_out_of_memory", ran_out, "", "=yes", why)
        ctx.say("  under neap")
        add_trained(rows, ctx, model, limit, free)
    except Failed as failed:
        rows.fail(str(failed))
    ctx.put(rows, machine)


def add_trained(rows, ctx, model, limit, free):
    neap = ["run", "--limit", str(limit), "--tell-limit"]
    try:
        report = ctx.bench.train(f"{model}-fit-neap", model, ["--steps", str(FIT_STEPS)], neap, 300)
    except Failed as failed:
        rows.add("trains", False, "", "=yes", str(failed))
        return
    stats = report["neap"]
    apart = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(report["losses"], free["losses"]))
    rows.add("trains", True, "", "=yes", f"{report['steps']} steps")
    rows.add("peak_held", find(stats, "peak_held"), "bytes", f"<={limit}", "from the first malloc on")
    rows.add("limit_held", find(stats, "limit"), "bytes")
    rows.add("peak_load", find(stats, "peak_load"), "bytes")
    rows.add("loss_distance", apart, note=f"to plain's first {len(free['losses'])} losses")
    rows.add("step_first", report["step_ms"][0], "ms")
    rows.add("step_last", report["step_ms"][-1], "ms", note=f"without a cap {free['step_ms'][-1]:.4g}")
    rows.add("planned_iterations", find(stats, "n_iterations"))


# ---- how soon a plan is there


def start_once(ctx, model, setting, neap, swaps, asked_iteration):
    rows = Setting("startup", model, setting)
    child = Child(ctx.bench, f"startup-{setting}", model, (), neap, swaps)
    machine = ""
    try:
        setup = child.setup(ctx.settle_s * 2)
        report = child.ask("figures")
        machine = report["machine"]
        add_start(rows, setup["marks"], report["neap"], swaps, asked_iteration)
    except Failed as failed:
        rows.fail(str(failed))
    finally:
        child.close()
    ctx.put(rows, machine)


def add_start(rows, marks, stats, swaps, asked_iteration):
    before = find(stats, "pool_iteration")
    rows.add("iterations_before", before, "", f"<={asked_iteration}", "iterations before the first one on a plan")
    rows.add("pool_seconds", find(stats, "pool_seconds"), "s")
    if swaps:
        there = marks.get("swaps", {})
        rows.add("swap_iterations", there.get("step"), note="steps until a plan with swaps")
        rows.add("swap_seconds", find(stats, "swap_seconds"), "s")
    rows.add("plan_was_loaded", bool(find(stats, "plan_was_loaded", False)))


def startup_model(ctx, model):
    cache = ctx.bench.work / "plans"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    limited = ["run", "--limit", START_LIMIT, "--plan-cache", str(cache)]
    start_once(ctx, model, "pool", ["run"], False, 6)
    start_once(ctx, model, f"limit {START_LIMIT}", limited, True, 6)
    start_once(ctx, model, f"limit {START_LIMIT}, saved plan", limited, True, 1)


def fit(ctx):
    ctx.each("fit", [FIT_MODEL], lambda model: fit_model(ctx, model))


def startup(ctx):
    ctx.each("startup", [START_MODEL], lambda model: startup_model(ctx, model))
