"""child.py: train.py as a child process, plain or under neap, told what to do line by line.

A child that fails, dies or is late raises Failed, whose text says why in one line; the others go on. Its stderr is kept
in the work folder.
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# The user's own settings of PyTorch's allocator would make "plain" something else.
DROPPED = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "LD_PRELOAD",
    "NEAP_HOOK",
    "NEAP_LIMIT",
    "NEAP_PLAN_CACHE",
)
STARTED = set()  # processes that were not yet waited for


class Failed(Exception):
    pass


class Bench:
    """Where things are, and what all children have in common."""

    def __init__(self, neap, work, device="cuda", tiny=False):
        self.neap = neap
        self.work = pathlib.Path(work).resolve()
        self.device = device
        self.tiny = tiny
        self.n_started = 0
        self.work.mkdir(parents=True, exist_ok=True)

    def environment(self):
        kept = {key: value for key, value in os.environ.items() if key not in DROPPED}
        return {**kept, "TORCHINDUCTOR_CACHE_DIR": str(self.work / "inductor"), "HF_HUB_OFFLINE": "1"}

    def command(self, model, args=(), neap=None):
        """neap: None for plain PyTorch, or the words of the command that come before the program."""
        words = [sys.executable, str(HERE / "train.py"), "--model", model, "--device", self.device, *args]
        words += ["--tiny"] if self.tiny else []
        return words if neap is None else [self.neap, *neap, "--", *words]

    def log(self, name):
        self.n_started += 1
        safe = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
        return self.work / f"{self.n_started:03d}-{safe}.log"

    def call(self, name, command, timeout_s):
        """A whole process; its stdout. The last line of its stderr is the reason where it fails."""
        log = self.log(name)
        process = start(command, log, self.environment(), stdout=subprocess.PIPE)
        try:
            output = process.communicate(timeout=timeout_s)[0].decode()
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {timeout_s:.0f} s") from None
        finally:
            end(process)
        if process.returncode != 0:
            raise Failed(error_of(output) or last_line(log) or f"exit status {process.returncode}")
        return output

    def train(self, name, model, args=(), neap=None, timeout_s=120):
        """train.py from begin to end; its JSON document."""
        return json.loads(self.call(name, self.command(model, args, neap), timeout_s).splitlines()[-1])

    def query(self, *words, timeout_s=60):
        """`neap VERB --json`: one JSON document, also where there is no plan."""
        verb, *rest = words
        command = [self.neap, verb, "--json", *rest]
        try:
            process = subprocess.run(
                command, capture_output=True, timeout=timeout_s, check=False, env=self.environment()
            )
            return json.loads(process.stdout)
        except subprocess.TimeoutExpired:
            raise Failed(f"neap {verb}: not done after {timeout_s:.0f} s") from None
        except json.JSONDecodeError:
            lines = process.stderr.decode(errors="replace").strip().splitlines()
            raise Failed(lines[-1] if lines else f"exit status {process.returncode}") from None


def start(command, log, environment, **pipes):
    """A child in a process group of its own; its stderr goes to the log."""
    with open(log, "wb") as errors:
        process = subprocess.Popen(command, stderr=errors, env=environment, start_new_session=True, **pipes)
    STARTED.add(process)
    return process


def end_all():
    for process in list(STARTED):
        end(process)


def end(process):
    """The child, and what it may have started."""
    STARTED.discard(process)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def last_line(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def error_of(output):
    try:
        return json.loads(output.splitlines()[-1]).get("error", "")
    except (IndexError, json.JSONDecodeError, AttributeError):
        return ""


class Child:
    """Starts at once and loads what it needs, but does not use the GPU before setup."""

    def __init__(self, bench, name, model, args=(), neap=None, swaps=False):
        self.name = name
        self.swaps = swaps  # whether its plan is to have swaps
        self.is_plain = neap is None
        self.log = bench.log(f"{model}-{name}")
        self.is_ready = False
        self.pending = b""
        command = bench.command(model, ["--serve", *args], neap)
        self.process = start(command, self.log, bench.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, do, timeout_s=120, **arguments):
        if not self.is_ready:
            self.answer(180)
            self.is_ready = True
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failure("it ended") from None
        return self.answer(timeout_s)

    def bind(self, cores):
        """All of its threads, and those that they start, run on these cores from here on."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.sched_setaffinity(int(thread), cores)
            except OSError:  # it has ended meanwhile
                pass

    def setup(self, settle_s, pace_s=0.0, together=1):
        return self.ask(
            "setup", settle_s + 180, settle_s=settle_s, swaps=self.swaps, pace_s=pace_s, together=together
        )

    def answer(self, timeout_s):
        end_time = time.monotonic() + timeout_s
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            left = end_time - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                end(self.process)
                raise Failed(f"no answer within {timeout_s:.0f} s")
            received = os.read(pipe, 1 << 20)
            if not received:
                raise self.failure("it ended")
            self.pending += received
        line, self.pending = self.pending.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            end(self.process)
            raise Failed(answer["error"])
        return answer

    def failure(self, what):
        end(self.process)
        return Failed(f"{what} (status {self.process.returncode}): {last_line(self.log)}")

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write(b'{"do": "quit"}\n')
                self.process.stdin.close()
                self.process.wait(30)
            except (OSError, ValueError, subprocess.TimeoutExpired):
                pass
        end(self.process)
        self.process.stdout.close()

    def said(self):
        """neap's own lines on its stderr."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("neap:")]
