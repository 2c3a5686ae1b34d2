#!/usr/bin/env python3
"""Ordinary PyTorch programs under neap, without a GPU.

Each program of CASES runs as it is (PyTorch's caching allocator) and under `neap run`: without a limit, with one of 70 % and
with the same limit in bytes. An oracle in front of the program checks each block that its work names: contents, mapping,
overlap and order. README.md says what the columns are."""
import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = ROOT + "/build/ordinary"
MODES = ("pytorch", "pool", "share", "bytes")
MIB = 1 << 20

GPT = ["gpt.py"]
VISION = ["vision.py"]
LOOP = ["loops.py", "--kind"]
CASES = {
    "gpt": GPT + ["--log", "1000000"],
    "gpt-log10": GPT + ["--log", "10"],
    "gpt-log1": GPT + ["--log", "1"],
    "gpt-bf16": GPT + ["--amp", "bf16"],
    "gpt-fp16-scaler": GPT + ["--amp", "fp16"],
    "gpt-accumulate4": GPT + ["--accumulate", "4", "--batch", "4"],
    "gpt-eval20": GPT + ["--eval", "20"],
    "gpt-checkpoint": GPT + ["--checkpoint"],
    "gpt-dropout-save25": GPT + ["--dropout", "0.1", "--save", "25", "--pin"],
    "gpt-varied4": GPT + ["--varied", "4"],
    "gpt-varied16": GPT + ["--varied", "16"],
    "resnet50": VISION + ["--model", "resnet50", "--batch", "16"],
    "resnet50-benchmark": VISION + ["--model", "resnet50", "--batch", "16", "--benchmark"],
    "resnet50-channels-last": VISION + ["--model", "resnet50", "--batch", "16", "--last", "--amp", "fp16"],
    "resnet18-ragged": VISION + ["--model", "resnet18", "--batch", "32", "--loader", "--ragged", "--size", "128"],
    "resnet18-ragged-eval": VISION + ["--model", "resnet18", "--batch", "32", "--ragged", "--size", "96", "--eval", "20"],
    "vgg16": VISION + ["--model", "vgg16", "--batch", "16"],
    "vit-b16-bf16": VISION + ["--model", "vit_b_16", "--batch", "16", "--amp", "bf16"],
    "gan": LOOP + ["gan"],
    "ema": LOOP + ["ema"],
    "lora": LOOP + ["lora"],
    "bucket": LOOP + ["bucket"],
    "padded": LOOP + ["padded"],
    "inference": LOOP + ["inference"],
    "epochs": LOOP + ["epochs"],
    "accumulate": LOOP + ["accumulate"],
    "unet": LOOP + ["unet"],
    "trainer-gpt2": ["trainer.py", "--model", "gpt2"],
    "trainer-bert": ["trainer.py", "--model", "bert"],
    "lightning-gpt2": ["trainer.py", "--model", "gpt2", "--lightning"],
    "ddp-gpt": ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "gpt.py"]
    + ["--ddp", "--layers", "4", "--batch", "4", "--steps", "160"],
}
COLUMNS = (
    ("program", "mode", "code", "steps", "load", "reserved", "most", "end", "over", "limit", "most_late", "limit_ok")
    + ("iterations", "departures", "late_departures", "patterns", "branches", "beside", "ms", "ms_mean", "cpu_ms")
    + ("checked", "wrong", "unmapped", "overlaps", "races", "early_unmaps")
)


def environment(folder, seconds, checked, case):
    env = dict(os.environ)
    env.update(
        PYTHONPATH=HERE + "/programs",
        PYTHONDONTWRITEBYTECODE="1",
        LD_LIBRARY_PATH=WORK + "/lib",
        TORCH_CUDNN_V8_API_DISABLED="1",
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
        TOKENIZERS_PARALLELISM="false",
        FAKE_SLOW=os.environ.get("FAKE_SLOW", "3"),
        FAKE_LOG=folder + "/fake.json",
        ORDINARY_SECONDS=str(seconds),
        XDG_RUNTIME_DIR=folder,
    )
    if case.startswith("ddp"):  # ranks compare what they read, and must end together
        env.update(FAKE_READS="1", ORDINARY_SECONDS="0")
    if checked:
        env["FAKE_CHECK"] = "1"
    return env


def command(args, mode, case, limit, folder):
    program = [a if not a.endswith(".py") else f"{HERE}/programs/{a}" for a in CASES[case]]
    program = [WORK + "/venv/bin/python"] + program
    if mode == "pytorch":
        return program
    options = {"pool": [], "share": ["--limit", "70%"], "bytes": ["--limit", str(limit)]}[mode]
    oracle = ["bash", "-c", 'export LD_PRELOAD="$0:$LD_PRELOAD"; exec "$@"', WORK + "/lib/liboracle.so"]
    run = [args.neap, "run", "--json", "--no-live", "--log", args.log, "--report", folder + "/report.json"]
    return run + args.neap_options.split() + options + ["--"] + oracle + program


def load_lines(path):
    try:
        return [json.loads(line) for line in open(path) if line.strip()]
    except (OSError, ValueError):
        return []


def load_report(folder):
    for name in ("report.json", "report.json.rank0"):
        try:
            text = open(folder + "/" + name).read()
            return json.loads(text.strip().splitlines()[-1])[0]
        except (OSError, ValueError, IndexError):
            pass
    return {}


def run(args, case, mode, limit):
    folder = f"{WORK}/out/{case}.{mode}"
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(folder)
    seconds = args.seconds if mode == "pytorch" else args.long
    process = subprocess.Popen(
        command(args, mode, case, limit, folder),
        env=environment(folder, seconds, mode != "pytorch" and not args.unchecked, case),
        stdout=open(folder + "/output", "w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    code = "hang"
    try:
        code = process.wait(timeout=4 * seconds + 120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    text = open(folder + "/output", errors="replace").read()
    results = re.findall(r"RESULT (\{.*\})", text)
    return {
        "code": code,
        "result": json.loads(results[0]) if results else {},
        "fake": max(load_lines(folder + "/fake.json") or [{}], key=lambda x: x.get("device_high", 0)),
        "report": load_report(folder),
    }


def most_late(fake, first):
    """The most that was held from the step `first` on."""
    return max((s[0] for s in fake.get("steps", [])[first:]), default=0)


def as_row(case, mode, r, known):
    fake, result, report = r["fake"], r["result"], r["report"]
    row = dict.fromkeys(COLUMNS, "")
    row.update(program=case, mode=mode, code=r["code"], steps=result.get("steps", ""))
    row.update(ms=result.get("ms", ""), ms_mean=result.get("ms_mean", ""), cpu_ms=result.get("cpu_ms", ""))
    if mode == "pytorch":
        row.update(reserved=result.get("max_reserved", ""), most=fake.get("device_high", ""))
        return row
    row.update(
        load=fake.get("load_high", ""), most=fake.get("device_high", ""), end=fake.get("device_now", ""), over=fake.get("over", "")
    )
    for column, name in (
        ("iterations", "n_iterations"), ("departures", "n_departures"), ("late_departures", "n_late_departures"),
        ("patterns", "n_patterns"), ("branches", "n_branches"), ("beside", "n_beside"),
    ):
        row[column] = report.get(name, "")
    for column in ("checked", "wrong", "unmapped", "overlaps", "races", "early_unmaps"):
        row[column] = fake.get(column, "")
    if mode != "pool" and fake.get("steps"):
        limit = known["limit"] if mode == "bytes" else int(0.7 * (report.get("peak_live") or fake.get("load_high") or 0))
        row["limit"] = limit
        row["most_late"] = most_late(fake, 3 if mode == "share" else 0)
        row["limit_ok"] = int(row["most_late"] <= limit)
    return row


def share(value, of):
    return f"{value / of:.3f}" if value not in ("", None) and of else "-"


def say(row, known):
    load = known.get("load") or row["load"]
    print(
        f"{row['program']:22} {row['mode']:8} code {row['code']} reserved {share(known.get('reserved'), load)} most {share(row['most'], load)} "
        f"end {share(row['end'], load)} over {round((row['over'] or 0) / 1e6)} MB late {share(row['most_late'], load)} ok {row['limit_ok']} "
        f"on {row['iterations']}/{row['steps']} dep {row['departures']}({row['late_departures']}) pat {row['patterns']} br {row['branches']} ms {row['ms']} mean {row['ms_mean']} "
        f"cpu {row['cpu_ms']} checked {row['checked']} bad {[row[c] for c in ('wrong', 'unmapped', 'overlaps', 'races', 'early_unmaps')]}",
        flush=True,
    )


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default=".", help="programs whose names match")
    p.add_argument("--modes", default=",".join(MODES))
    p.add_argument("--seconds", type=float, default=6, help="of a run without neap")
    p.add_argument("--long", type=float, default=14, help="of a run with it")
    p.add_argument("--neap", default=ROOT + "/build/neap")
    p.add_argument("--neap-options", default="", help="more options of neap run")
    p.add_argument("--log", default="info")
    p.add_argument("--unchecked", action="store_true", help="without the oracle's checks, for times")
    p.add_argument("--csv", default="", help="a file for the table; rows of other programs in it stay")
    args = p.parse_args()
    rows = []
    for case in CASES:
        if not re.search(args.only, case):
            continue
        known = {}
        for mode in args.modes.split(","):
            if mode == "bytes" and not known.get("limit"):
                continue
            r = run(args, case, mode, known.get("limit", 0))
            row = as_row(case, mode, r, known)
            if mode == "pytorch":
                known["reserved"] = row["reserved"]
            elif not known.get("load"):
                known["load"] = row["load"]
                known["limit"] = int(0.7 * (r["report"].get("peak_live") or row["load"] or 0))
            row["reserved"] = known.get("reserved", "")
            say(row, known)
            rows.append(row)
    if args.csv:
        write(args.csv, rows)


def write(path, rows):
    made = {(r["program"], r["mode"]): r for r in rows}
    try:
        old = [r for r in csv.DictReader(open(path)) if (r["program"], r["mode"]) not in made]
    except OSError:
        old = []
    order = {name: i for i, name in enumerate(CASES)}
    every = sorted(old + rows, key=lambda r: (order.get(r["program"], len(order)), MODES.index(r["mode"])))
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, COLUMNS, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        out.writerows(every)


if __name__ == "__main__":
    sys.exit(main())
