"""slice_verify.py: is all memory seen that the kernels of a program touch? `neap verify`, on a few steps. The verify slice.

Networks whose plain runs agree to the bit: of the others nothing can be told. The program prints its losses and a digest
of its weights.
"""

import time

from child import Failed
from results import Setting
from slice_values import EXACT

STEPS = 3
LATEST_S = 300
ARGS = ("--values", "--deterministic", "--fresh", "--steps", str(STEPS))


def verify_model(ctx, model):
    rows = Setting("verify", model, f"{STEPS} steps")
    began = time.monotonic()
    try:
        answer = ctx.bench.query(*ctx.bench.command(model, ARGS, ["verify"])[1:], timeout_s=LATEST_S)
        rows.add("verified", answer["verified"], "", "=yes", " ".join([answer["verdict"], answer.get("kernel") or ""]).strip())
        rows.add("launches", answer["launches"])
        rows.add("blocks", answer["blocks"])
        rows.add("seconds", time.monotonic() - began, "s", note="three runs of the program")
    except Failed as failed:
        rows.fail(str(failed))
    ctx.put(rows)


def verify(ctx):
    ctx.each("verify", EXACT, lambda model: verify_model(ctx, model))
