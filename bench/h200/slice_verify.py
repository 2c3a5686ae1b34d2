"""slice_verify.py: is all memory seen that the kernels of a program touch? `neap verify`, on a few steps. The verify slice.

Networks whose plain runs agree to the bit: of the others nothing can be told. The program prints its losses and a digest
of its weights.
"""

import json
import subprocess
import time

from child import Failed
from results import Setting
from slice_values import EXACT

STEPS = 3
LATEST_S = 300
STEPS_ARGS = ("--values", "--deterministic", "--fresh", "--steps", str(STEPS))


def ask(ctx, model):
    """neap verify's JSON document, and the seconds it took."""
    command = ctx.bench.command(model, STEPS_ARGS, ["verify", "--json"])
    began = time.monotonic()
    with open(ctx.bench.log(f"{model}-verify"), "wb") as errors:
        try:
            said = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=errors, env=ctx.bench.environment(), timeout=LATEST_S, check=False
            ).stdout
            return json.loads(said), time.monotonic() - began
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as failed:
            raise Failed(f"neap verify: {failed}") from None


def verify_model(ctx, model):
    rows = Setting("verify", model, f"{STEPS} steps")
    try:
        answer, seconds = ask(ctx, model)
        rows.add("verified", answer["verified"], "", "=yes", " ".join([answer["verdict"], answer.get("kernel") or ""]).strip())
        rows.add("launches", answer.get("launches"))
        rows.add("blocks", answer.get("blocks"))
        rows.add("seconds", seconds, "s", note="three runs of the program")
    except Failed as failed:
        rows.fail(str(failed))
    ctx.put(rows)


def verify(ctx):
    ctx.each("verify", EXACT, lambda model: verify_model(ctx, model))
