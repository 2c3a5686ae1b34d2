"""train.py: trains one network; the program that every row of h200.csv is about.

    train.py --model NAME [--steps N] [--departure NAME] ...   trains, prints one JSON document
    train.py --model NAME --values ...                          trains, prints what was computed, and nothing else
    train.py --model NAME --serve ...                           does what it is told, a JSON line each on stdin
    torchrun ... train.py --model NAME --ranks FOLDER ...       one of several that train together (gloo); the document is
                                                                FOLDER/RANK.json

It imports nothing of neap: the same program runs with and without it. Commands of --serve (child.py gives them):

    {"do": "setup", "settle_s": 15, "swaps": true, "pace_s": 0}    first use of the GPU; steps until neap's plan runs
    {"do": "steps", "n": 10}       one step, then n that are timed        {"do": "until", "step": 60}
    {"do": "figures"}    {"do": "report"}    {"do": "weights", "path": FILE}    {"do": "quit"}

Only the child that was told something uses the GPU, so several can be resident and be timed in turn.
"""

import argparse
import hashlib
import json
import os
import pathlib
import resource
import sys
import time

import torch

import departures
import neap_stats
import zoo
from departures import DEPARTURES

LOSSES_MAX = 1 << 16
WARMUP = 10  # steps of set-up where there is no plan to wait for
SETTLE = 16  # iterations on the plan, at least, before it counts as settled; and neap must have ended planning


class Trainer:
    def __init__(self, args):
        self.args = args
        self.step = 0
        self.rank = int(os.environ["RANK"]) if args.ranks else 0
        self.together = None  # the module of all ranks
        self.extra = []
        self.marks = {}
        self.work = zoo.build(args.model, args.batch, args.tiny)
        if args.departure:
            self.act = DEPARTURES[args.departure]()
        else:
            self.act = departures.offload if args.save_on_cpu else departures.plain

    def open(self):
        """The first use of the device."""
        torch.manual_seed(2 + self.rank)
        if self.args.cap:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(self.args.cap / total)
        self.work.to(self.args.device)
        if self.args.ranks:
            torch.distributed.init_process_group("gloo")
            self.together = torch.nn.parallel.DistributedDataParallel(self.work.module)
        self.optimizer = torch.optim.SGD(self.work.module.parameters(), lr=self.args.lr, momentum=0.9)
        # Filled in place: a loss that was kept would be a block that was never freed.
        self.losses = torch.zeros(LOSSES_MAX, device=self.args.device)
        self.opened = time.perf_counter()
        if hasattr(self.act, "start"):
            self.act.start(self)

    # ---- parts of a step, for departures

    def forward(self, batch=None, module=None):
        return self.work.loss(batch, self.together if module is None else module)

    def update(self, loss):
        loss.backward()
        self.finish(loss)

    def finish(self, loss):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.losses[self.step % LOSSES_MAX].copy_(loss.detach())

    def keep_extra(self, value):
        self.extra.append(value)

    # ---- what can be asked for

    def sync(self):
        if self.args.device != "cpu":
            torch.cuda.synchronize()

    def run(self, n):
        for _ in range(n):
            if self.args.fresh:
                self.work.refresh()
            self.act(self, self.step)
            self.step += 1

    def steps(self, n):
        """The time of a step, n of them in a row; the first one after a pause is not counted."""
        self.run(1)
        self.sync()
        begin = time.perf_counter()
        self.run(n)
        self.sync()
        return {"ms": (time.perf_counter() - begin) * 1e3 / n, "step": self.step}

    def until(self, step):
        self.run(step - self.step)
        self.sync()
        return {"step": self.step}

    def setup(self, settle_s=15, swaps=False, pace_s=0.0, together=1):
        """Steps until neap's plan is followed and has settled, or the time is over. pace_s: a step takes that long at
        least, so that planning ends within fewer steps. together: so many are given before the host waits for them,
        as a program does whose iterations neap is to measure."""
        self.open()
        end = target = None
        while True:
            begin = time.perf_counter()
            self.run(1 if self.step < WARMUP else together)
            self.sync()
            end = end or time.perf_counter() + settle_s  # the first step may compile for a minute
            stats = neap_stats.read()
            self.mark(stats)
            iterations = neap_stats.find(stats, "n_iterations", 0)
            if stats is None:
                settled = self.step >= WARMUP
            else:
                if target is None and neap_stats.is_planned(stats, swaps):
                    target = iterations + SETTLE
                settled = target is not None and iterations >= target and not neap_stats.is_planning(stats)
            if settled or (stats is not None and time.perf_counter() > end):
                break
            time.sleep(max(0.0, pace_s - (time.perf_counter() - begin)))
        if self.args.device != "cpu" and stats is None:
            torch.cuda.reset_peak_memory_stats()
            self.run(1)  # a whole one, from peak to peak
            self.sync()
        return {"step": self.step, "settled": settled, "marks": self.marks}

    def mark(self, stats):
        """When neap first followed a plan, and one with swaps: steps and seconds."""
        now = {"step": self.step, "seconds": time.perf_counter() - self.opened}
        if neap_stats.find(stats, "state") == "run":
            self.marks.setdefault("plan", now)
        if neap_stats.find(stats, "swap_seconds", 0) > 0:
            self.marks.setdefault("swaps", now)

    def weights(self, path):
        torch.save({name: tensor.cpu() for name, tensor in self.work.module.state_dict().items()}, path)
        return {"path": path}

    def figures(self):
        """What can be told without work for the device, which neap would see as a departure."""
        return {
            "model": self.args.model,
            "steps": self.step,
            "memory": memory(self.args.device),
            "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "neap": neap_stats.read(),
            "marks": self.marks,
            "machine": machine(self.args.device),
        }

    def report(self):
        self.sync()
        losses = self.losses[: min(self.step, LOSSES_MAX)]
        return {**self.figures(), "losses": losses.tolist(), "extra": self.extra, "sha256": self.digest()}

    def digest(self):
        sha = hashlib.sha256()
        for name, tensor in sorted(self.work.module.state_dict().items()):
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return sha.hexdigest()


def memory(device):
    """PyTorch's own figures; an allocator behind it may not have them."""
    figures = {}
    for name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
        try:
            figures[name] = getattr(torch.cuda, name)() if device != "cpu" else 0
        except RuntimeError as error:
            figures[name + "_error"] = str(error)
    return figures


def machine(device):
    name = torch.cuda.get_device_name(0) if device != "cpu" else "CPU"
    return f"{name}, torch {torch.__version__}"


def make_deterministic():
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would touch every block once more


def serve(trainer, replies):
    replies.write(json.dumps({"ready": True}) + "\n")
    verbs = {name: getattr(trainer, name) for name in ("setup", "steps", "until", "figures", "report", "weights")}
    for line in sys.stdin:
        command = json.loads(line)
        verb = command.pop("do")
        if verb == "quit":
            return
        replies.write(json.dumps(verbs[verb](**command)) + "\n")


def train(trainer, replies):
    trainer.open()
    times = []
    if trainer.args.values:
        trainer.run(trainer.args.steps)
        report = trainer.report()
        replies.write("".join(f"{loss!r}\n" for loss in report["losses"]) + report["sha256"] + "\n")
        return
    if trainer.args.run_ahead:
        trainer.run(trainer.args.warmup + trainer.args.steps)
        trainer.sync()
        replies.write(json.dumps(trainer.figures()) + "\n")
        return
    for _ in range(trainer.args.warmup + trainer.args.steps):
        begin = time.perf_counter()
        trainer.run(1)
        trainer.sync()
        times.append((time.perf_counter() - begin) * 1e3)
        trainer.mark(neap_stats.read())
    document = json.dumps({"step_ms": times[trainer.args.warmup :], **trainer.report()}) + "\n"
    if trainer.args.ranks:
        (pathlib.Path(trainer.args.ranks) / f"{trainer.rank}.json").write_text(document)
        torch.distributed.destroy_process_group()
    else:
        replies.write(document)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="NAME", help="an entry of zoo.py, or one with -fp32")
    parser.add_argument("--batch", type=int, default=0, help="the entry's own unless given")
    parser.add_argument("--steps", type=int, default=20, help="that are timed")
    parser.add_argument("--warmup", type=int, default=0, help="steps before")
    parser.add_argument("--run-ahead", action="store_true", help="the host waits for the last step alone")
    parser.add_argument("--values", action="store_true", help="print losses and a digest of the weights alone")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--save-on-cpu", action="store_true", help="what backward needs waits in pinned host memory")
    parser.add_argument("--departure", choices=DEPARTURES)
    parser.add_argument("--ranks", metavar="FOLDER", help="of several that torchrun has started, on one device")
    parser.add_argument("--cap", type=int, default=0, metavar="BYTES", help="PyTorch's allocator may hold no more")
    parser.add_argument("--deterministic", action="store_true", help="where PyTorch can")
    parser.add_argument(
        "--fresh", action="store_true", help="new data in every step: what is wrong is not learned away"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small networks, for tests without a GPU")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    if args.departure and args.save_on_cpu:
        parser.error("--departure and --save-on-cpu are two programs; take one")
    return args


def main(args):
    # What libraries print goes to stderr; stdout carries the answers alone.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        if args.deterministic:
            make_deterministic()
        (serve if args.serve else train)(Trainer(args), replies)
    except Exception as error:  # the driver turns it into a row
        first_line = str(error).partition("\n")[0]
        replies.write(json.dumps({"error": f"{type(error).__name__}: {first_line}"}) + "\n")
        raise


if __name__ == "__main__":
    main(parse())
