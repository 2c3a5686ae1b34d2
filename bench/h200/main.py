"""main.py: measures slices of h200.csv; bench/h200.sh calls it with the command that was built."""

import argparse
import pathlib
import signal
import sys
import time
import traceback

import slice_ranks
import slice_starts
import slice_times
import slice_values
import slice_verify
from child import Bench, end_all
from results import Setting, Table

HERE = pathlib.Path(__file__).resolve().parent
TIMES = ("pool", "swap", "tight")  # measured together, since they share children
OTHERS = {
    "same": slice_values.same,
    "fit": slice_starts.fit,
    "departures": slice_values.departures,
    "startup": slice_starts.startup,
    "ranks": slice_ranks.ranks,
    "verify": slice_verify.verify,
}


class Context:
    """What a slice needs: where to run things, where rows go, and whether there is time for one more model."""

    def __init__(self, args):
        self.bench = Bench(str(pathlib.Path(args.neap).resolve()), args.work, args.device, args.tiny)
        self.table = Table(args.csv)
        self.pairs, self.block_s, self.settle_s = args.pairs, args.block, args.settle
        self.has_rival = not args.no_rival
        self.shares = args.limits
        self.names = args.models.split(",") if args.models else None
        self.began = time.monotonic()
        self.deadline = self.began + args.seconds if args.seconds else None
        self.left_out = []

    def say(self, line):
        print(f"[{time.monotonic() - self.began:6.1f} s] {line}", flush=True)

    def each(self, slice_name, names, job):
        """The job for the names (of models, of departures) that are asked for and that there is time for. One that
        breaks in a way nobody thought of is a row too, and the others go on."""
        for name in names:
            if self.names and name not in self.names:
                continue
            if self.deadline and time.monotonic() > self.deadline:
                self.left_out.append(f"{slice_name} {name}")
                continue
            self.say(f"{slice_name}: {name}")
            try:
                job(name)
                self.table.drop(slice_name, name, "run")
            except Exception as error:
                traceback.print_exc()
                self.fail(slice_name, name, "run", f"{type(error).__name__}: {error}")

    def put(self, setting, machine=""):
        self.table.machine = machine or self.table.machine
        self.table.put(setting)
        self.say(f"  {' / '.join(setting.key.values())}")
        print("\n".join(setting.text()), flush=True)

    def fail(self, slice_name, model, setting, why):
        rows = Setting(slice_name, model, setting)
        rows.fail(why)
        self.put(rows)


def shares(text):
    """"70,50" or "none": whole per cent of the peak load."""
    try:
        found = [] if text == "none" else [int(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if not all(0 < share < 100 for share in found):
        raise argparse.ArgumentTypeError(f"'{text}' is neither none nor per cent, as in 70,60,50")
    return tuple(found)


def parse():
    parser = argparse.ArgumentParser(prog="bench/h200.sh", description="Measures neap on a GPU; bench/h200/README.md.")
    slices = [*TIMES, *OTHERS, "all"]
    parser.add_argument("slices", nargs="+", choices=slices, metavar="SLICE", help=", ".join(slices))
    parser.add_argument("--models", metavar="A,B", help="those of zoo.py alone; for departures, the departures")
    parser.add_argument(
        "--limits", type=shares, default=slice_times.TIGHT, metavar="A,B", help="of the tight slice, in %%, or none: 70,60,50"
    )
    parser.add_argument("--pairs", type=int, default=12, help="rounds of interleaved blocks of steps")
    parser.add_argument("--block", type=float, default=0.25, help="seconds a block takes, about")
    parser.add_argument("--settle", type=float, default=15, help="seconds at most until a plan is followed")
    parser.add_argument("--seconds", type=float, default=0, help="begin nothing after that long; 0: no bound")
    parser.add_argument("--no-rival", action="store_true", help="leave save_on_cpu out of the tight slice")
    parser.add_argument("--csv", default=str(HERE.parent / "results" / "h200.csv"))
    parser.add_argument("--work", default="build/h200", help="folder for logs and recordings")
    parser.add_argument("--neap", default="build/neap", help="the command")
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def stop(number, frame):
    """A run that is cut short leaves no children behind."""
    end_all()
    sys.exit(128 + number)


def main():
    args = parse()
    signal.signal(signal.SIGTERM, stop)
    chosen = [*TIMES, *OTHERS] if "all" in args.slices else args.slices
    ctx = Context(args)
    jobs = [OTHERS[name] for name in chosen if name in OTHERS]
    times = [name for name in TIMES if name in chosen]
    if times:
        jobs.insert(0, lambda c: slice_times.run(c, times))
    for job in jobs:
        job(ctx)
    if ctx.left_out:
        ctx.say("no time was left for: " + ", ".join(ctx.left_out))
    missed = [row for row in ctx.table.rows if row["met"] in ("no", "not resolved") or row["figure"] == "error"]
    ctx.say(f"{len(ctx.table.rows)} rows in {ctx.table.path}; {len(missed)} missed, not resolved or failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
