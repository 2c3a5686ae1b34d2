"""slice_times.py: the pool alone, swapping at no cost, and tight limits: what is held, and what a step takes.

The three share their children: plain PyTorch and neap without a limit are there in every round, and what a limit costs
is said against both. Children whose memory would not fit together are measured in waves.
"""

import dataclasses
import json
import math
import subprocess
from concurrent import futures

import pairs
import times_rows
from child import Child, Failed
from neap_stats import find
from results import Setting

POOL = ["vgg16", "resnet50", "vgg16-224", "resnet50-224", "gpt2-bf16", "vit-b16", "llama-bf16", "mobilenet-v2"]
SWAP = POOL + ["vgg16-fp32", "resnet50-fp32"]
MODELS = {"pool": POOL, "swap": SWAP, "tight": SWAP}

TIGHT = (70, 60, 50)  # % of the peak load, unless others are asked for
SAVE = "save_on_cpu"
# What is its memory: the tensors that it has at once, or what PyTorch's allocator holds for them. {setting: (PyTorch's
# figure, the child of neap's that is held to it)}
RIVALS = {
    "save_on_cpu": ("max_memory_allocated", "as save_on_cpu"),
    "save_on_cpu_reserved": ("max_memory_reserved", "as save_on_cpu holds"),
}
CONTEXT_BYTES = 1 << 30  # of a process, beside what its program asks for
UNKNOWN_LOAD = 25 * 10**9
ROOM_BYTES = 138 * 10**9  # of the device, for children that are there at once


@dataclasses.dataclass
class Forecast:
    """What `neap swap` says of a recorded run: on paper, and with --run of the plans that neap run would make."""

    peak_load: int
    load_min: int
    paper: dict
    free: dict  # the lowest limit at which neap run costs at most 1 %
    tight: dict  # {share: what neap run would plan}

    def has_free_swaps(self):
        return self.free["swaps"] > 0

    def free_share(self):
        """Of the load that neap run plans for, which is what its limits in per cent are of; not a byte less."""
        return min(1.0, math.ceil(1e6 * self.free["limit"] / self.free["planned_load"]) / 1e6)


@dataclasses.dataclass
class Run:
    """One child: before, its command line; after, what was seen."""

    name: str
    neap: list  # None: plain
    swaps: bool = False
    args: tuple = ()
    share: float = 1.0  # of the peak load, about: for the waves
    setup: dict = None
    report: dict = None
    device_mib: int = None  # as nvidia-smi has it, the context included
    error: str = None

    def stat(self, name, default=None):
        return find(self.report and self.report["neap"], name, default)


def record(ctx, model, trace):
    """The trace that a run keeps: it has measured an iteration, its kernels, and what looking at them costs."""
    child = Child(ctx.bench, "record", model, (), ["run", "--overhead", "1%", "--record", str(trace)])
    try:
        child.setup(ctx.settle_s, together=8)
    finally:
        child.close()


def forecast(ctx, model):
    """Records the model and plans on the trace."""
    trace = ctx.bench.work / f"{model}.neap.gz"
    record(ctx, model, trace)
    of_run = [("--overhead", "1%"), *(("--limit", f"{share}%") for share in ctx.shares)]
    questions = [("--threads", "4", "--overhead", "1%"), *(("--run", *words) for words in of_run)]
    with futures.ThreadPoolExecutor() as pool:
        paper, free, *tight = pool.map(lambda words: ctx.bench.query("swap", str(trace), *words), questions)
    for plan in (paper, free):
        if not plan.get("limit"):
            raise Failed(plan.get("reason", "neap swap found no plan"))
    return Forecast(paper["peak_load"], paper["load_min"], paper, free, dict(zip(ctx.shares, tight)))


def planned_runs(ctx, wanted, seen):
    """Beside the two baselines, what the slices need. Limits are shares, so that neap measures an iteration first."""
    runs = []
    if "swap" in wanted and seen:
        share = seen.free_share()
        words = ["--limit", f"{100 * share:.4f}%"] if seen.has_free_swaps() else ["--overhead", "1%"]
        runs.append(Run("no-overhead", ["run", *words], seen.has_free_swaps(), share=share))
    if "tight" in wanted:
        runs += [Run(f"{share}%", ["run", "--limit", f"{share}%"], True, share=share / 100) for share in ctx.shares]
        if ctx.has_rival:
            runs.append(Run(SAVE, None, args=("--save-on-cpu",), share=0.5))
    return runs


def waves(runs, peak_load):
    """Runs that fit on the device beside the two baselines and the twin. save_on_cpu brings rivals of its own size."""
    room = ROOM_BYTES - 3.3 * peak_load - 3 * CONTEXT_BYTES
    wave, used = [], 0.0
    for run in runs:
        need = run.share * peak_load * 1.05 + CONTEXT_BYTES
        need *= 1 + len(RIVALS) if run.name == SAVE else 1
        if wave and used + need > room:
            yield wave
            wave, used = [], 0.0
        wave.append(run)
        used += need
    yield wave


def set_up(ctx, run, child):
    """One child at a time: neap plans from times that it measures."""
    ctx.say(f"  setting up {run.name}")
    try:
        run.setup = child.setup(ctx.settle_s, together=8)
        run.report = child.ask("figures")
        if not run.setup["settled"]:
            ctx.say(f"  {run.name}: no settled plan after {run.setup['step']} steps")
    except Failed as failed:
        run.error = str(failed)
        ctx.say(f"  {run.name}: {run.error}")


def look_again(runs, children):
    """After the last round: neap's figures over all of it, and nvidia-smi's."""
    used = device_memory()
    for run in runs:
        if run.error is None:
            run.device_mib = used.get(children[run.name].process.pid)
            try:
                run.report = children[run.name].ask("figures")
            except Failed as failed:
                run.error = str(failed)


def device_memory():
    """{pid: MiB}; empty where nvidia-smi cannot tell."""
    command = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(command, stdout=subprocess.PIPE, timeout=20, check=True).stdout.decode()
        return {int(pid): int(mib) for pid, mib in (line.split(",") for line in text.splitlines())}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}


def run_wave(ctx, model, runs):
    """What was seen of the runs, by name, and their times. The first one is plain PyTorch."""
    children = {run.name: Child(ctx.bench, run.name, model, run.args, run.neap, run.swaps) for run in runs}
    try:
        set_up_all(ctx, model, runs, children)
        timed = [children[run.name] for run in runs if run.error is None]
        times, failures = pairs.measure(timed, ctx.pairs, ctx.block_s, ctx.say)
        ctx.bench.log(f"{model}-rounds").with_suffix(".json").write_text(json.dumps(times))
        for run in runs:
            run.error = run.error or failures.get(run.name)
        look_again(runs, children)
    finally:
        for child in children.values():
            child.close()
    return {run.name: run for run in runs}, times


def set_up_all(ctx, model, runs, children):
    """save_on_cpu comes early: rivals that are held to its memory can load meanwhile."""
    order = sorted(runs, key=lambda run: run.name not in (pairs.PLAIN, pairs.TWIN, SAVE))
    for run in order:
        set_up(ctx, run, children[run.name])
        if run.name == SAVE and run.error is None and runs[0].error is None:
            for rival in rivals_of(run, runs[0]):
                children[rival.name] = Child(ctx.bench, rival.name, model, (), rival.neap, rival.swaps)
                runs.append(rival)
                order.append(rival)


def rivals_of(save, plain):
    """neap at the memory of save_on_cpu: as a share of plain's peak, since it is compared once on its plan."""
    peak = max(1, plain.report["memory"]["max_memory_allocated"])
    for figure, name in RIVALS.values():
        share = min(1.0, max(0.01, save.report["memory"][figure] / peak))
        yield Run(name, ["run", "--limit", f"{100 * share:.2f}%"], True, share=share)


def put(ctx, model, fill, slice_name, setting, runs, needed):
    """The setting's rows, or why there are none."""
    rows = Setting(slice_name, model, setting)
    why = [
        f"{name}: {runs[name].error if name in runs else 'did not run'}" for name in needed if not is_good(runs, name)
    ]
    if why:
        rows.fail("; ".join(why))
    else:
        fill(rows)
    ctx.put(rows, next((run.report["machine"] for run in runs.values() if run.report), ""))


def is_good(runs, name):
    return name in runs and runs[name].error is None


def put_wave(ctx, model, wanted, runs, times, seen):
    base = [pairs.PLAIN, "pool"]
    if "pool" in wanted:
        put(ctx, model, lambda rows: times_rows.pool(rows, runs, times), "pool", "pool", runs, base)
    if "no-overhead" in runs:
        needed = base + ["no-overhead"]
        put(ctx, model, lambda rows: times_rows.swap(rows, runs, times, seen), "swap", "no-overhead", runs, needed)
    for share in ctx.shares:
        needed = base + [f"{share}%"]
        if needed[-1] in runs:
            fill = lambda rows, s=share: times_rows.tight(rows, runs, times, seen, s)
            put(ctx, model, fill, "tight", needed[-1], runs, needed)
    for setting, (figure, rival) in RIVALS.items() if SAVE in runs else ():
        needed = [pairs.PLAIN, SAVE, rival]
        fill = lambda rows, f=figure, r=rival: times_rows.save(rows, runs, times, f, r)
        put(ctx, model, fill, "tight", setting, runs, needed)


def run_model(ctx, model, wanted):
    seen = None
    if "swap" in wanted or ("tight" in wanted and ctx.shares):
        ctx.say("  recording, and planning on the trace")
        rows = Setting("trace", model, "neap swap")
        try:
            seen = forecast(ctx, model)
            times_rows.trace(rows, seen)
        except Failed as failed:
            rows.fail(str(failed))
            if "swap" in wanted:
                ctx.fail("swap", model, "no-overhead", f"no forecast: {failed}")
        ctx.put(rows)
    for number, wave in enumerate(waves(planned_runs(ctx, wanted, seen), seen.peak_load if seen else UNKNOWN_LOAD)):
        runs = [Run(pairs.PLAIN, None), *wave]
        if "pool" in wanted or any(run.name != SAVE for run in wave):  # save_on_cpu is compared with plain alone
            runs[1:] = [Run("pool", ["run"]), *wave, Run(pairs.TWIN, None)]
        by_name, times = run_wave(ctx, model, runs)
        put_wave(ctx, model, wanted if number == 0 else wanted - {"pool"}, by_name, times, seen)


def run(ctx, wanted):
    """wanted: those of "pool", "swap" and "tight" that are asked for."""
    models = [model for model in SWAP if any(model in MODELS[name] for name in wanted)]
    ctx.each("times", models, lambda model: run_model(ctx, model, {name for name in wanted if model in MODELS[name]}))
