"""departures.py: what real training loops do beside the step that repeats.

Each is a function of the trainer and the step's number that does one step; a departure that must prepare something has
a function `start` too. What an extra pass computes is kept beside the losses, and compared like them.
"""

import io

import torch
from torch.autograd.graph import save_on_cpu


def is_every(step, n):
    return step % n == n - 1


def evaluate(trainer):
    trainer.work.module.eval()
    with torch.no_grad():
        loss = trainer.work.loss()
    trainer.work.module.train()
    return loss


def plain(trainer, step):
    trainer.update(trainer.forward())


def offload(trainer, step):
    """Not a departure: what users do today to hold less."""
    with save_on_cpu(pin_memory=True):
        loss = trainer.forward()
    trainer.update(loss)


def eval4(trainer, step):
    plain(trainer, step)
    if is_every(step, 4):
        trainer.keep_extra(evaluate(trainer).item())


def clip(trainer, step):
    loss = trainer.forward()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(trainer.work.module.parameters(), 1.0)
    trainer.keep_extra(norm.item())
    trainer.finish(loss)


def checkpoint(trainer, step):
    plain(trainer, step)
    if is_every(step, 8):
        file = io.BytesIO()
        torch.save({"model": trainer.work.module.state_dict(), "optimizer": trainer.optimizer.state_dict()}, file)
        trainer.keep_extra(float(file.tell()))


def twobatch(trainer, step):
    batch = trainer.work.batch
    if step % 2:
        batch = tuple(tensor[: max(1, len(tensor) * 3 // 4)] for tensor in batch)
    trainer.update(trainer.forward(batch))


class SideStream:
    """The images are prepared on a stream of their own, as a loader does."""

    def start(self, trainer):
        self.stream = torch.cuda.Stream()

    def __call__(self, trainer, step):
        current = torch.cuda.current_stream()
        images, *others = trainer.work.batch
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            images = images * (1 + 0.01 * (step % 7)) + 0.1
        current.wait_stream(self.stream)
        images.record_stream(current)
        trainer.update(trainer.forward((images, *others)))


class Benchmark:
    def start(self, trainer):
        torch.backends.cudnn.benchmark = True

    def __call__(self, trainer, step):
        plain(trainer, step)


class Compile:
    def start(self, trainer):
        self.module = torch.compile(trainer.work.module)

    def __call__(self, trainer, step):
        trainer.update(trainer.forward(module=self.module))


class Graph:
    """An evaluation pass, captured once and launched as a graph after every fourth step."""

    def start(self, trainer):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # libraries make their handles and workspaces outside of the capture
                evaluate(trainer)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        trainer.work.module.eval()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.loss = trainer.work.loss()
        trainer.work.module.train()

    def __call__(self, trainer, step):
        plain(trainer, step)
        if is_every(step, 4):
            self.graph.replay()
            trainer.keep_extra(self.loss.item())


DEPARTURES = {
    "eval4": lambda: eval4,
    "clip": lambda: clip,
    "checkpoint": lambda: checkpoint,
    "twobatch": lambda: twobatch,
    "sidestream": SideStream,
    "benchmark": Benchmark,
    "compile": Compile,
    "graph": Graph,
}
