"""slice_ranks.py: two processes that train one network together, on one GPU. The ranks slice.

torchrun starts them, under neap or not: each has its own plan, and its own limit. They exchange gradients by gloo, over
the host. What they computed is compared as in slice_values.py, rank by rank.
"""

import json
import shutil
import sys
from concurrent import futures

import slice_values
from child import HERE, Failed
from results import Setting

MODEL = "resnet50"
N_RANKS = 2
N_PLAIN = 2
STEPS, TINY_STEPS = 250, 3  # a plan with swaps is there after half of them
LIMITS = ("none", "70%")


def train(ctx, name, model, neap=None):
    """What each rank has to tell: [report], or what went wrong as that of all."""
    folder = ctx.bench.work / f"ranks-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={N_RANKS}"]
    words += [str(HERE / "train.py"), "--model", model, "--device", ctx.bench.device, "--deterministic", "--fresh"]
    words += ["--ranks", str(folder), "--steps", str(TINY_STEPS if ctx.bench.tiny else STEPS)]
    words += ["--tiny"] if ctx.bench.tiny else []
    try:
        ctx.bench.call(f"{model}-ranks-{name}", words if neap is None else [ctx.bench.neap, *neap, "--", *words], 240)
        reports = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(N_RANKS)]
        return [{**report, "settled": True} for report in reports]
    except (Failed, OSError, ValueError) as failed:
        return [{"error": str(failed)}] * N_RANKS


def ranks_model(ctx, model):
    with futures.ThreadPoolExecutor() as pool:
        plain_runs = [pool.submit(train, ctx, f"plain{n}", model) for n in range(N_PLAIN)]
        plains = [run.result() for run in plain_runs]
    for limit in LIMITS:
        ctx.say(f"  under neap, limit {limit}")
        reports = train(ctx, limit.strip("%"), model, slice_values.under(limit)[0])
        for rank in range(N_RANKS):
            report, alike = reports[rank], [plain[rank] for plain in plains]
            fill = lambda rows, r=report, p=alike: slice_values.add_same(
                rows, r, p, slice_values.loss_distance, "loss_distance"
            )
            setting = Setting("ranks", model, f"limit {limit}, rank {rank}")
            slice_values.put(ctx, setting, report, alike, fill, ">=20")


def ranks(ctx):
    ctx.each("ranks", [MODEL], lambda model: ranks_model(ctx, model))
