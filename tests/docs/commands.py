"""commands.py [--accept] PAGE...: runs every command that a page shows, and compares what it prints with the page.

A command is a line of a code block that begins with "$ "; what stands below it, up to the next one or to the block's
end, is what it prints, standard error included. Where nothing stands there it must leave with 0. Of what it prints

    ...     on a line of its own stands for any number of lines,
    times   (a number, then ns, us, ms or s; the value of "seconds") are not compared,
    blanks  in a row are one: columns are as wide as their numbers.

A comment above the block says where that is not enough:

    <!-- not run: WHY -->        it is only looked at: the verb and its options must exist
    <!-- numbers vary: WHY -->   words are compared, numbers and bars are not
    <!-- run with: OPTIONS -->   these are put behind the command, to make it quicker

A line that begins with "neap " and has no "$" is an example: it is looked at in the same way, and so is `neap VERB ...`
in the text; lines that begin with "make " must name a target. With FILE as its operand an example is run on a small
trace, and `neap run ... -- python train.py` too: it must not fail.

Commands run in a folder of their own for each page, which has the traces of tests/data, the files of tests/docs/files,
and `build/neap`. There `python` is the trainer of tests/hook, on the stand-ins for CUDA. --accept puts what was printed
into the page, where a block has no "..."."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.environ.get("NEAP_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", ".."))
NEAP = os.path.abspath(os.environ.get("NEAP_COMMAND", os.path.join(ROOT, "build", "neap")))
SECONDS = 60  # a command that takes longer hangs, or has no place in a page
TRACE = "tests/cli/data/swap.neap"
TRAINER = os.environ.get("NEAP_HOOK_TRAINER", "")
HAS_STANDIN = all(os.path.exists(os.environ.get(name, "")) for name in
                  ("NEAP_HOOK_TRAINER", "NEAP_HOOK_LIBRARY", "NEAP_STANDIN_DIR"))
NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"


# ---- pages ----

class Command:
    def __init__(self, page, line, text, marks):
        self.page, self.line, self.text, self.marks = page, line, text, marks
        self.output = []  # (number of the line, text)
        self.block_end = line

    def where(self):
        return f"{os.path.relpath(self.page, ROOT)}:{self.line + 1}"


def read_page(path):
    """The page's lines, its commands, and the examples: (line, text)."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    commands, examples, marks, command = [], [], {}, None
    inside = False  # a code block
    for i, line in enumerate(lines):
        mark = re.fullmatch(r"<!-- (not run|numbers vary|run with): (.*) -->", line)
        if mark:
            marks[mark[1]] = mark[2]
        is_code = line.startswith("    ") and (inside or i == 0 or lines[i - 1] == "")
        if is_code:
            inside = True
            text = line[4:]
            if text.startswith("$ "):
                command = Command(path, i, text[2:], dict(marks))
                commands.append(command)
            elif command:
                command.output.append((i, text))
            else:
                examples.append((i, text))
        elif line == "" and inside:
            if command:
                command.output.append((i, ""))
        else:
            inside, command = False, None
            if line != "" and not mark:
                marks = {}
        if not inside:
            examples += [(i, text) for text in re.findall(r"`(neap [a-z][^`]*)`", line)]
    for command in commands:
        while command.output and command.output[-1][1] == "":
            command.output.pop()
    return lines, commands, examples


# ---- options ----

def read_verbs():
    """The options of each verb, as its help has them."""
    def say(*words):
        return subprocess.run([NEAP, *words], check=True, capture_output=True, text=True).stdout
    verbs = {}
    for verb in json.loads(say("help", "--json"))["verbs"]:
        lines = re.findall(r"^  (?:(-[a-z]), )?(--[a-z-]+)", say("help", verb["verb"]), re.M)
        verbs[verb["verb"]] = {option for pair in lines for option in pair if option}
    verbs["help"] |= {"--completion", "--man", "--markdown"}
    return verbs


def look_at(text, verbs):
    """What is wrong with an example; None: nothing is."""
    text = re.split(r" {2,}| #", text)[0]  # what it is for may follow
    try:
        words = shlex.split(text)
    except ValueError as error:
        return str(error)
    if words[0] == "make":
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
            targets = re.findall(r"^([a-z]+):", file.read(), re.M)
        wrong = [w for w in words[1:] if "=" not in w and w not in targets]
        return f"make has no target {wrong[0]}" if wrong else None
    if len(words) < 2 or words[1] in ("VERB", "--version", "--help") or words[1] not in verbs:
        unbuilt = len(words) > 1 and words[1] == "train"  # without OpenBLAS
        known = unbuilt or (len(words) > 1 and words[1] in ("VERB", "--version", "--help"))
        return None if known else f"no such verb: {text}"
    options = verbs[words[1]]
    for word in words[2:]:
        if word == "--" or (words[1] in ("run", "record", "verify") and word in ("PROGRAM", "PROGRAM...")):
            break
        name = word.split("=")[0].strip("[]")
        if name.startswith("-") and len(name) > 1 and name not in options and name[:2] not in options:
            return f"neap {words[1]} has no option {name}"
    return None


# ---- what is printed ----

def normal(line, varies):
    line = re.sub(r'("[a-z_]*seconds": )' + NUMBER, r"\1<time>", line)
    if varies:  # there may be none in the place of one
        line = re.sub(r"(?<![.\w])[0-9a-f]{16}\b", "", line)
        line = re.sub(NUMBER + r" ?(?:%|(?:ns|us|ms|s|B|kB|MB|GB)\b)?", "", line)
        line = re.sub("[▏▎▍▌▋▊▉█]+", "", line)
    line = re.sub(NUMBER + r" ?(?:ns|us|ms|s)\b", "<time>", line)
    return re.sub(r"\s+", " ", line).strip()


def is_as_shown(shown, printed, varies):
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(normal(line, varies)) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(normal(line, varies) + "\n" for line in printed)) is not None


# ---- running ----

def make_folder(folder):
    os.makedirs(os.path.join(folder, "build"))
    os.makedirs(os.path.join(folder, "bin"))
    for place in ("build/neap", "bin/neap"):
        os.symlink(NEAP, os.path.join(folder, place))
    os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
    for source in ("tests/data/traces", "tests/docs/files"):
        for name in os.listdir(os.path.join(ROOT, source)):
            os.symlink(os.path.join(ROOT, source, name), os.path.join(folder, name))
    for source, name in (("tests/cli/data/evil.pickle", "evil.pickle"),
                         ("tests/data/snapshots/cnn-side-stream.pickle.gz", "snapshot.pickle")):
        os.symlink(os.path.join(ROOT, source), os.path.join(folder, name))


    with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
        file.write("import torch\n")
    with open(os.path.join(folder, "bin/python"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec '{TRAINER}' --scale=4 --pause=5 --iterations=12\n")
    os.chmod(os.path.join(folder, "bin/python"), 0o755)


def standin():
    """What makes a program use the stand-ins; nothing where there are none."""
    folder = os.environ.get("NEAP_STANDIN_DIR", "")
    return {} if not HAS_STANDIN else {
        "LD_LIBRARY_PATH": folder,
        "NEAP_CUDA_DRIVER": folder + "/libcuda.so.1", "NEAP_CUPTI": folder + "/libcupti.so.13",
        "NEAP_HOOK_LIBRARY": os.environ["NEAP_HOOK_LIBRARY"], "NEAP_MIN_BLOCK": "16384", "NEAP_PLAN_SECONDS": "0.1",
        "STANDIN_GRANULARITY": "16384"}


def run(text, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("NEAP_")}
    env.update(standin())
    env.update(PATH=os.path.join(folder, "bin") + os.pathsep + env.get("PATH", ""), LC_ALL="C.UTF-8", TERM="dumb",
               HOME=folder, XDG_CACHE_HOME=folder, XDG_RUNTIME_DIR=folder)
    try:
        done = subprocess.run(["bash", "-c", text], cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    except subprocess.TimeoutExpired:
        return 124, [f"(nothing after {SECONDS} s)"]
    return done.returncode, done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else []


def check_command(command, folder, verbs):
    """What is wrong, and what was printed."""
    neap = re.match(r"(?:build/)?(neap .*)", command.text)
    wrong = look_at(neap[1], verbs) if neap else None
    is_unbuilt = neap and ((" train " in command.text and "train" not in verbs) or
                           (" python " in command.text and not HAS_STANDIN))
    if wrong or "not run" in command.marks or is_unbuilt:
        return wrong, None
    code, printed = run(command.text + " " + command.marks.get("run with", ""), folder)
    shown = [text for _, text in command.output]
    if not shown:
        return (f"leaves with {code}:\n" + "\n".join(printed)) if code != 0 else None, None
    if is_as_shown(shown, printed, "numbers vary" in command.marks):
        return None, None
    return "prints something else:\n" + "\n".join("    " + line for line in printed), printed


def accept(lines, changes):
    for command, printed in reversed(changes):
        if any(text.strip() == "..." for _, text in command.output):
            print(f"{command.where()}: has left-out lines; not changed")
            continue
        first, last = command.output[0][0], command.output[-1][0]
        lines[first:last + 1] = ["    " + line if line else "" for line in printed]


def check_example(text, folder, verbs, seen):
    """What is wrong; None: nothing is."""
    wrong = look_at(text, verbs)
    words = re.split(r" {2,}| #", text)[0]
    is_of_file = re.fullmatch(r"neap (?:info|plan|swap) (?:.* )?FILE(?: .*)?", words) and words.count("FILE") == 1
    is_of_python = HAS_STANDIN and re.fullmatch(r"neap (?:run|record|verify) .*-- python train.py", words)
    if wrong or not (is_of_file or is_of_python) or words in seen:
        return wrong
    seen.add(words)
    code, printed = run(words.replace("FILE", TRACE), folder)
    return f"leaves with {code}:\n" + "\n".join(printed) if code != 0 else None


def check_page(path, verbs, seen, accepting):
    lines, commands, examples = read_page(path)
    n, bad, changes = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        for command in commands:
            n += 1
            wrong, printed = check_command(command, folder, verbs)
            if wrong:
                bad += 1
                print(f"{command.where()}: {command.text}\n  {wrong}")
            if printed is not None:
                changes.append((command, printed))
        for line, text in examples:
            if not re.match(r"(neap|make) ", text):
                continue
            n += 1
            wrong = check_example(text, folder, verbs, seen)
            if wrong:
                bad += 1
                print(f"{os.path.relpath(path, ROOT)}:{line + 1}: {text}\n  {wrong}")
    if accepting and changes:
        accept(lines, changes)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    return n, bad


def main():
    pages = [page for page in sys.argv[1:] if page != "--accept"]
    verbs = read_verbs()
    seen = set()  # an example is run once, on whichever page
    total, bad = 0, 0
    for page in pages:
        n, wrong = check_page(page, verbs, seen, "--accept" in sys.argv)
        total, bad = total + n, bad + wrong
    print(f"{bad} of {total} commands are not as the pages have them" if bad else
          f"{total} commands are as the pages have them")
    sys.exit(1 if bad else 0)


main()
