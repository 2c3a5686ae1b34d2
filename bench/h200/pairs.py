"""pairs.py: times of several children in turn, and how sure their ratios are.

All children are resident; a round is one block of steps of each, one after another, so that a pair is two times taken
within a second. In a round all of them run on the same few cores, in the next round on others: some cores of a shared machine
are half as fast again as others, and a child would stay on its own. Ratios are medians over the rounds, with the 95 %
interval of a bootstrap over them. That knows nothing of what two processes differ by for good (where their memory lies):
a twin, a second plain child, shows it, and the intervals are wider by as much.

    pairs.py --model NAME [--pairs 20] [--neap build/neap] [--limit 70%] [...]    plain against neap, on its own
"""

import argparse
import json
import math
import os
import random
import statistics
import sys

from child import Bench, Child, Failed

RESAMPLES = 2000
# Of a block, at least: at its end the device comes to rest, and copies that would go on beside the next step end. A plain
# child has none such.
STEPS_MIN, PLAIN_STEPS_MIN = 4, 2


PLAIN, TWIN = "plain", "twin"  # names of children

CORES = 2  # of a round: a thread for the forward pass and one for the backward pass take turns


def core_groups():
    """[{core, ...}, ...]: by round, in turns. Empty where there are too few to choose from."""
    cores = sorted(os.sched_getaffinity(0))
    groups = [set(cores[i : i + CORES]) for i in range(0, len(cores) - CORES + 1, CORES)]
    return groups if len(groups) > 1 else []


def block_steps(child, block_s):
    """How many steps take about that long."""
    ms = child.ask("steps", n=3)["ms"]
    return max(PLAIN_STEPS_MIN if child.is_plain else STEPS_MIN, math.ceil(block_s * 1e3 / ms))


def measure(children, pairs, block_s, say=lambda line: None):
    """Milliseconds a step, {name: [one a round]}. A child that fails drops out; failures are {name: why}."""
    failures, steps, times = {}, {}, {child.name: [] for child in children}
    left = list(children)
    groups = core_groups()
    for n in range(-1, pairs):
        for child in list(left):
            if groups:
                child.bind(groups[n % len(groups)])
            try:
                if n < 0:
                    steps[child.name] = block_steps(child, block_s)
                else:
                    times[child.name].append(child.ask("steps", n=steps[child.name])["ms"])
            except Failed as failed:
                failures[child.name] = str(failed)
                left.remove(child)
        if n == 0:
            say("  " + "  ".join(f"{name} {ms[0]:.2f} ms" for name, ms in times.items() if ms))
    for name in failures:
        del times[name]
    return times, failures


def interval(rounds, statistic):
    """(value, low, high) of a statistic over rounds; None where there are none."""
    if not rounds:
        return None
    chance = random.Random(1)
    values = sorted(statistic(chance.choices(rounds, k=len(rounds))) for _ in range(RESAMPLES))
    return statistic(rounds), values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES) - 1]


def ratio(times, base, other):
    """How many times as long `other` takes as `base`."""
    if base not in times or other not in times:
        return None
    value, low, high = interval([b / a for a, b in zip(times[base], times[other])], statistics.median)
    return (value, low / noise(times), high * noise(times)) if TWIN not in (base, other) else (value, low, high)


def noise(times):
    """What two plain children differ by, as a factor of 1 and more; 1 where there are no two."""
    found = ratio(times, PLAIN, TWIN)
    return max(found[0], 1 / found[0]) if found else 1.0


def added_ratio(times, base, other, ours):
    """How many times as much time `other` adds to `base` as `ours` does; infinite where ours adds none."""
    if any(name not in times for name in (base, other, ours)):
        return None

    def statistic(rounds):
        theirs = statistics.median(b - a for a, b, _ in rounds)
        own = statistics.median(c - a for a, _, c in rounds)
        return theirs / own if own > 0 else math.inf

    return interval(list(zip(times[base], times[other], times[ours])), statistic)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--neap", help="the command; without it, plain against plain: what the noise is")
    parser.add_argument("--limit")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--block", type=float, default=0.25, help="seconds")
    parser.add_argument("--settle", type=float, default=15, help="seconds at most until a plan is followed")
    parser.add_argument("--work", default="build/h200")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    bench = Bench(args.neap, args.work, args.device, args.tiny)
    neap = ["run", *(["--limit", args.limit] if args.limit else [])] if args.neap else None
    children = [
        Child(bench, "a", args.model),
        Child(bench, "b", args.model, neap=neap, swaps=bool(args.neap and args.limit)),
    ]
    try:
        for child in children:
            print(child.name, json.dumps(child.setup(args.settle)), file=sys.stderr)
        times, failures = measure(children, args.pairs, args.block)
        found = ratio(times, "a", "b")
        print(json.dumps({"ratio": found, "pairs": args.pairs, "ms": times, "failures": failures}))
    except Failed as failed:
        sys.exit(f"pairs.py: {failed}")
    finally:
        for child in children:
            child.close()


if __name__ == "__main__":
    main()
