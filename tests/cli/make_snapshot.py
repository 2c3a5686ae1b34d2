"""make_snapshot.py FOLDER: memory snapshots of the structure that torch.cuda.memory._dump_snapshot writes.

A training loop on device 1: parameters from before, activations that the backward pass frees in reverse, a workspace on
a second stream whose free is completed later. Prints what must be found in it, as shell assignments.
"""
import gzip
import os
import pickle
import sys

BASE = 0x7F0000000000
LAYERS = 6
ITERATIONS = 5
CUT = 7  # entries that were dropped from the front, as a history that is full does


def rounded(size):
    return (size + 511) // 512 * 512


class Allocator:
    """The lowest free address; what it did, and what it holds."""

    def __init__(self):
        self.live = {}  # address -> requested size
        self.entries = []
        self.load = self.peak = 0
        self.time = 1794760118925924

    def note(self, action, address, size, stream=0):
        self.time += 10
        frames = [{"name": "step", "filename": "train.py", "line": 7}]
        self.entries.append({"action": action, "addr": address, "size": size, "stream": stream, "time_us": self.time,
                             "compile_context": "N/A", "user_metadata": "", "frames": frames})

    def alloc(self, size):
        address = BASE
        for other in sorted(self.live):
            if address + rounded(size) <= other:
                break
            address = other + rounded(self.live[other])
        self.live[address] = size
        self.load += rounded(size)
        self.peak = max(self.peak, self.load)
        self.note("alloc", address, size)
        return address

    def request_free(self, address):
        self.note("free_requested", address, self.live[address])
        self.load -= rounded(self.live[address])

    def complete_free(self, address):
        self.note("free_completed", address, self.live.pop(address))

    def free(self, address):
        self.request_free(address)
        self.complete_free(address)

    def segment(self, device):
        total = 1 << 24
        blocks = []
        at = BASE
        for address, size in sorted(self.live.items()) + [(BASE + total, 0)]:
            if at < address:
                blocks.append({"address": at, "size": address - at, "requested_size": 0, "state": "inactive",
                               "frames": []})
            if size:
                blocks.append({"address": address, "size": rounded(size), "requested_size": size,
                               "state": "active_allocated", "frames": []})
            at = address + rounded(size)
        return {"device": device, "address": BASE, "total_size": total, "allocated_size": self.load,
                "active_size": self.load, "requested_size": sum(self.live.values()), "stream": 0,
                "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                "blocks": blocks}


def train():
    a = Allocator()
    for layer in range(LAYERS):  # parameters
        a.alloc(1000 * (layer + 1))
    before = len(a.entries)
    period = 0
    for _ in range(ITERATIONS):
        period = len(a.entries)
        activations = [a.alloc(40000 + 3000 * layer) for layer in range(LAYERS)]
        workspace = a.alloc(70001)
        a.request_free(workspace)
        gradient = a.alloc(5000)
        a.complete_free(workspace)
        for activation in reversed(activations):
            a.free(activation)
        a.free(gradient)
    a.note("snapshot", 0, 0)
    n_events = sum(e["action"] in ("alloc", "free_requested") for e in a.entries[period:])
    # The parameters' entries are gone, and CUT of the first iteration's.
    entries = a.entries[before + CUT:]
    snapshot = {"segments": [a.segment(1)], "device_traces": [[], entries, []],
                "allocator_settings": {"garbage_collection_threshold": 0.0, "max_split_size": -1,
                                       "expandable_segments": False, "PYTORCH_CUDA_ALLOC_CONF": ""},
                "external_annotations": []}
    return snapshot, n_events, a.peak


def frames(*stack):
    return [{"name": name, "filename": file, "line": line} for name, file, line in stack]


def out_of_memory():
    """A step that never comes to its end, with stacks, as an observer of out-of-memory errors dumps it."""
    torch = "/usr/lib/python3/dist-packages/torch/"
    conv = frames(("c10::malloc", "CUDACachingAllocator.cpp", 1800), ("_conv_forward", torch + "nn/modules/conv.py", 549),
                  ("forward", torch + "nn/modules/conv.py", 554), ("forward", "/home/u/net.py", 31))
    data = frames(("make batch", "/home/u/my data.py", 7))
    native = frames(("at::native::empty_cuda", "EmptyTensor.cpp", 22))
    a = Allocator()
    batch = a.alloc(64 << 10)
    a.entries[-1]["frames"] = data
    for layer in range(LAYERS):
        a.alloc((40 << 10) + 512 * layer)
        a.entries[-1]["frames"] = conv
    a.alloc(5 << 10)
    a.entries[-1]["frames"] = native
    a.alloc(1 << 10)
    a.entries[-1]["frames"] = []
    a.free(batch)
    a.entries.append({"action": "oom", "size": 512 << 20, "device_free": 77 << 20, "stream": 0, "time_us": a.time,
                      "frames": conv})
    return {"segments": [a.segment(0)], "device_traces": [a.entries]}


class Evil:
    """Runs a command where the pickle is loaded as Python does it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def main(folder):
    snapshot, period, peak = train()
    for protocol in (2, 3, 4, 5):
        with open(f"{folder}/loop-{protocol}.pickle", "wb") as file:
            pickle.dump(snapshot, file, protocol=protocol)
    with gzip.open(f"{folder}/loop.pickle.gz", "wb") as file:
        pickle.dump(snapshot, file)
    for protocol in (2, 4):
        evil = dict(snapshot, external_annotations=[Evil(f"touch {folder}/called")])
        with open(f"{folder}/evil-{protocol}.pickle", "wb") as file:
            pickle.dump(evil, file, protocol=protocol)
    with open(f"{folder}/oom.pickle", "wb") as file:
        pickle.dump(out_of_memory(), file, protocol=4)
    with open(f"{folder}/old.pickle", "wb") as file:
        pickle.dump(snapshot, file, protocol=0)
    with open(f"{folder}/segments.pickle", "wb") as file:
        pickle.dump(snapshot["segments"], file)
    print(f"period={period} peak={peak}")


main(sys.argv[1])
