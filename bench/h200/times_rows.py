"""times_rows.py: from what was seen of children to the rows of the pool, swap and tight slices."""

import statistics

import pairs


def minus_one(found):
    return None if found is None else tuple(value - 1 for value in found)


def off(found, predicted):
    """How far an interval is from a prediction: (value, nearest, farthest)."""
    if found is None or predicted is None:
        return None
    value, low, high = found
    nearest = 0.0 if low <= predicted <= high else min(abs(low - predicted), abs(high - predicted))
    return abs(value - predicted), nearest, max(abs(low - predicted), abs(high - predicted))


def trace(rows, seen):
    rows.add("peak_load", seen.peak_load, "bytes")
    rows.add("load_min", seen.load_min, "bytes")
    rows.add("floor", seen.paper.get("floor"), "bytes", note="what one kernel needs at once")
    rows.add("iteration", seen.paper["iteration_ns"] / 1e6, "ms")


def note_of(run):
    if run.report["neap"] is None:
        return "no figures from neap"
    if run.stat("aside"):
        return f"neap stepped aside: {run.stat('aside')}"
    return "" if run.setup["settled"] else f"no settled plan after {run.setup['step']} steps"


def add_held(rows, run, limit=None):
    footprint = run.stat("footprint")
    rows.add("peak_load", run.stat("peak_load"), "bytes")
    if limit:
        rows.add("limit", limit, "bytes")
        rows.add("limit_held", run.stat("limit"), "bytes", note="raised" if run.stat("limit", 0) > limit else "")
    rows.add("footprint", footprint, "bytes", f"<={int(limit)}" if limit else "", note_of(run))
    rows.add("device_memory", run.device_mib, "MiB", note="nvidia-smi, with the context")
    rows.add("departures", run.stat("n_departures"), note=f"{run.stat('n_iterations', 0)} planned iterations")
    rows.add("visits", run.stat("n_visits"), note="kernels for which a block that was away came")


def pool(rows, runs, times):
    run, theirs = runs["pool"], runs["plain"].report["memory"]
    held, load = run.stat("footprint"), run.stat("peak_load")
    allocated, reserved = theirs["max_memory_allocated"], theirs["max_memory_reserved"]
    rows.add("alpha", held / load if held and load else None, "", "<=1.01", note_of(run))
    rows.add("alpha_allocated", held / allocated if held and allocated else None, note="by PyTorch's peak allocated")
    rows.add("alpha_caching", reserved / allocated if allocated else None, note="PyTorch: peak reserved by allocated")
    rows.add("caching_bytes", run.stat("caching_bytes"), "bytes", note="the caching allocator as neap imitates it")
    rows.add("reserved", reserved, "bytes", note="PyTorch's caching allocator")
    add_held(rows, run)
    rows.add("step_plain", statistics.median(times["plain"]), "ms")
    rows.add("step_neap", statistics.median(times["pool"]), "ms")
    rows.add("twin", pairs.ratio(times, pairs.PLAIN, pairs.TWIN), note="plain by plain: intervals are wider by as much")
    rows.add("step_ratio", pairs.ratio(times, "plain", "pool"), "", "<=1.02", note_of(run))


def per_iteration(run, name, factor=1.0):
    total, iterations = run.stat(name), run.stat("n_iterations", 0)
    return total * factor / iterations if total is not None and iterations else None


def add_overheads(rows, run, times, asked=""):
    against_pool = minus_one(pairs.ratio(times, "pool", run.name))
    against_plain = minus_one(pairs.ratio(times, "plain", run.name))
    rows.add("step", statistics.median(times[run.name]), "ms")
    rows.add("overhead_pool", against_pool or (None,) * 3, "", asked, "against neap without a limit")
    rows.add("overhead_plain", against_plain or (None,) * 3, "", asked, "against plain PyTorch")
    rows.add("predicted_plan", run.stat("plan_overhead"), note="by the plan that ran")
    rows.add("predicted_step", predicted_step(run), "ms", note="by the plan that ran")
    rows.add("overhead_neap", run.stat("overhead"), note="as neap measured it")
    rows.add("bytes_out", run.stat("bytes_out"), "bytes", note="since the start")
    rows.add("giving", per_iteration(run, "giving_ns", 1e-6), "ms", note="host time for copies and waits, an iteration")
    rows.add("waits", per_iteration(run, "waits"), note="of the program's work for copies, an iteration")
    return against_pool


def predicted_step(run):
    """ms, by the plan that ran; None: there was none."""
    planned, iteration_ns = run.stat("plan_overhead"), run.stat("iteration_ns")
    return iteration_ns * (1 + planned) / 1e6 if planned is not None and iteration_ns else None


def off_step(run, times):
    """How far steps are from the one that was foretold, as a share of the pool's step in the same round: how far the
    overhead is from the planned one, both of the same base. Where the host holds a program up, the base was another when
    the plan was made."""
    foretold = predicted_step(run)
    rounds = list(zip(times.get("pool", ()), times[run.name]))
    if not foretold or not rounds:
        return None
    value, low, high = pairs.interval([(ours - foretold) / base for base, ours in rounds], statistics.median)
    slack = (pairs.noise(times) - 1) * statistics.median(ours / base for base, ours in rounds)
    return off((value, low - slack, high + slack), 0.0)


def swap(rows, runs, times, seen):
    run = runs["no-overhead"]
    if seen.has_free_swaps():
        add_held(rows, run, seen.free["limit"])
        rows.add("limit_share", seen.free_share(), note="of the peak load, as neap swap --run has it")
    else:
        add_held(rows, run)
    rows.add("swaps", seen.free["swaps"], note="" if seen.has_free_swaps() else "at this cost none: no limit to hold")
    rows.add("looking", seen.free.get("looking"), note="of an iteration: what it costs that work is looked at")
    rows.add("predicted_trace", seen.free["overhead"], note="by neap swap --run on the recording")
    add_overheads(rows, run, times, "<=0.02")


def tight(rows, runs, times, seen, share):
    run = runs[f"{share}%"]
    peak_load = seen.peak_load if seen else run.stat("peak_load", 0)
    limit = max(int(peak_load * share / 100), seen.load_min if seen else 0)
    add_held(rows, run, limit)
    measured = add_overheads(rows, run, times)
    plan = seen.tight[share] if seen else {}
    predicted = plan.get("overhead")
    rows.add("predicted_trace", predicted, note=plan.get("reason", "by neap swap --run on the recording"))
    for figure, forecasted in (("off_plan", run.stat("plan_overhead")), ("off_trace", predicted)):
        distance = off(measured, forecasted)
        if distance:
            rows.add(figure, distance, "", "<=0.05", "overhead_pool from the predicted")
    distance = off_step(run, times)
    if distance:
        rows.add("off_step", distance, "", "<=0.05", "step from predicted_step, as a share of the pool's in the same round")


def save(rows, runs, times, figure, name):
    """save_on_cpu against the child of neap's that was held to as much memory, by that figure of PyTorch's."""
    rival, theirs = runs[name], runs["save_on_cpu"].report["memory"]
    rows.add("memory", theirs[figure], "bytes", note=f"save_on_cpu: {figure}")
    add_held(rows, rival, theirs[figure])
    rows.add("ratio_save", pairs.ratio(times, "plain", "save_on_cpu"), note="step time by plain's")
    rows.add("ratio_neap", pairs.ratio(times, "plain", name), note="step time by plain's")
    rows.add("added_ratio", pairs.added_ratio(times, "plain", "save_on_cpu", name), "", ">=3", note_of(rival))
