"""check_perfetto.py FILE: whether it is what Perfetto reads. Prints its lanes, counters and their highest values.

Slices of a lane follow each other, times of a counter never go back, and every life that begins ends.
"""
import json
import sys
from collections import defaultdict


def main(path):
    with open(path, encoding="ascii") as file:
        document = json.load(file)
    names = {}
    free = defaultdict(float)  # lane -> end of its last slice
    at = {}  # counter -> time of its last value
    highest = defaultdict(int)
    slices = defaultdict(int)
    lives = {}
    n_lives = 0
    last_life = 0
    for event in document["traceEvents"]:
        phase, process = event["ph"], event["pid"]
        if phase == "M":
            if event["name"] in ("process_name", "thread_name"):
                names[process, event.get("tid")] = event["args"]["name"]
            continue
        time = event["ts"]
        assert time >= 0
        if phase == "X":
            lane = process, event["tid"]
            assert event["dur"] >= 0 and time + 0.0005 >= free[lane], event
            free[lane] = time + event["dur"]
            slices[lane] += 1
        elif phase == "C":
            counter = process, event["name"]
            assert time >= at.get(counter, 0), event
            at[counter] = time
            highest[counter] = max(highest[counter], event["args"]["bytes"])
            assert event["args"]["bytes"] >= 0
        elif phase in "be":
            assert event["cat"] == "block" and time >= last_life
            last_life = time
            if phase == "b":
                assert event["id"] not in lives
                lives[event["id"]] = event["name"]
                n_lives += 1
            else:
                assert lives.pop(event["id"]) == event["name"]
        else:
            raise AssertionError(event)
    assert not lives, lives
    for lane, n in sorted(slices.items()):
        assert (lane[0], None) in names and lane in names
        print(f"{lane[0]} {names[lane]}: {n}")
    for (process, name), value in sorted(highest.items()):
        print(f"{process} {name} = {value}")
    print(f"lives: {n_lives}")


main(sys.argv[1])
