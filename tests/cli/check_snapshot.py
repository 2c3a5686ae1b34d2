"""check_snapshot.py SNAPSHOT: whether PyTorch's viewer can show it, as far as that can be told without a browser.

The viewer has a reader of its own for a part of the pickle opcodes, and goes through the entries from the last to the
first to find what there was at each: every step back must be possible.
"""
import pickle
import pickletools
import sys

VIEWER = {"APPEND", "APPENDS", "BINFLOAT", "BINGET", "BININT", "BININT1", "BININT2", "BINPUT", "BINUNICODE", "DICT",
          "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "FRAME", "LIST", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK",
          "MEMOIZE", "NEWFALSE", "NEWTRUE", "NONE", "PROTO", "SETITEM", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE",
          "TUPLE1", "TUPLE2", "TUPLE3"}


def check_opcodes(data):
    marks = []
    n = 0
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in VIEWER, opcode.name
        assert opcode.name != "PROTO" or 2 <= argument <= 4
        assert opcode.name != "LONG1" or 0 < argument < 2**63
        if opcode.name == "MARK":
            marks.append(n)
            n = 0
        elif opcode.name in ("APPENDS", "SETITEMS"):
            assert n <= 2000, n  # all of them are arguments of one call
            n = marks.pop()
        elif opcode.name not in ("BINPUT", "LONG_BINPUT", "PROTO", "FRAME", "STOP"):
            n += 1


def check_steps(snapshot, device):
    segments = [s for s in snapshot["segments"] if s["device"] == device]
    live = {}
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and 0 <= block["requested_size"] <= block["size"]
            assert isinstance(block["frames"], list)
            if block["state"] == "active_allocated":
                live[at] = block["requested_size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        taken = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
        assert taken == segment["allocated_size"] == segment["active_size"]
    waiting = set()
    last = None
    for entry in reversed(snapshot["device_traces"][device]):
        address, size, action = entry["addr"], entry["size"], entry["action"]
        assert any(s["address"] <= address and address + size <= s["address"] + s["total_size"] for s in segments)
        assert entry["frames"][0].keys() == {"filename", "line", "name"}
        assert last is None or entry["time_us"] <= last
        last = entry["time_us"]
        if action == "free_completed":
            assert address not in live
            live[address] = size
            waiting.add(address)
        elif action == "free_requested":
            waiting.remove(address)
        else:
            assert action == "alloc" and live.pop(address) == size
        spans = sorted((a, a + s) for a, s in live.items())
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "blocks overlap"
    assert not waiting


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    check_opcodes(data)
    snapshot = pickle.loads(data)
    assert len(snapshot["device_traces"]) == 1
    check_steps(snapshot, 0)


main(sys.argv[1])
