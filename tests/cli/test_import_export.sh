# neap import and neap export on snapshots made by Python's own pickle module, and the files for the viewers judged by
# Python's own readers.
set -u
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
cd "$NEAP_SOURCE_DIR/tests/cli/data" || exit 2
here=$NEAP_SOURCE_DIR/tests/cli
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LC_ALL=C TERM=dumb PYTHONDONTWRITEBYTECODE=1
n=0 bad=0

holds() { # holds NAME COMMAND...: must leave with 0; what it prints is shown where it does not
    n=$((n + 1))
    if ! "${@:2}" >"$work/said" 2>&1; then
        bad=$((bad + 1))
        echo "FAILED: $1: ${*:2}"
        cat "$work/said"
    fi
}
neap() { "$NEAP_COMMAND" "$@"; }
field() { sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p" "$1" | head -n 1; } # field JSON KEY: the first one

# refused FILE [PART]: exit code 2, one line on stderr with that part, nothing else, and no file
refused() {
    rm -f "$work/no.neap"
    neap import "$1" -o "$work/no.neap" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ ! -e "$work/no.neap" ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "${2:-}" "$work/err" || { cat "$work/err"; return 1; }
}

eval "$(python3 "$here/make_snapshot.py" "$work")" || exit 2

# ---- import: every protocol gives the same trace, and the trace what the loop is
for p in 2 3 4 5; do
    holds "import-$p" neap import "$work/loop-$p.pickle" -o "$work/loop-$p.neap" --json
    holds "same-$p" cmp "$work/loop-2.neap" "$work/loop-$p.neap"
done
holds import-gzip neap import "$work/loop.pickle.gz" -o "$work/loop.neap"
holds same-gzip cmp "$work/loop-2.neap" "$work/loop.neap"
from_pipe() { cat "$work/loop-4.pickle" | neap import - -o "$work/pipe.neap"; }
holds import-stdin from_pipe
holds same-stdin cmp "$work/loop-2.neap" "$work/pipe.neap"
info() { neap info --json "$work/loop.neap" >"$work/info"; }
holds info info
holds period [ "$(field "$work/info" length)" = "$period" ]
holds peak [ "$(field "$work/info" peak_load)" = "$peak" ]
holds plan neap plan --seconds 1 "$work/loop.neap"
no_swap() {
    neap swap --limit 70% "$work/loop.neap" 2>"$work/err"
    [ $? -eq 2 ] && grep -q "no execs.*swapping needs to know when blocks are used" "$work/err"
}
holds swap-says-why no_swap
holds device-1 neap import --device 1 "$work/loop-4.pickle" -o "$work/one.neap"
holds same-device cmp "$work/loop.neap" "$work/one.neap"

# ---- out of memory: nothing repeats, and yet it is told who holds it, and what a plan would hold
holds oom-import neap import "$work/oom.pickle" -o "$work/oom.neap"
oom_next() { neap import "$work/oom.pickle" -o "$work/oom.neap" | grep -q "next: neap info $work/oom.neap: who holds it"; }
holds oom-import-next oom_next
oom_info() { # oom_info FILE: a trace, or the snapshot itself
    neap info "$1" >"$work/info" || return
    grep -q '^  period  *10  events  *one round: the snapshot does not repeat$' "$work/info" &&
        grep -q '^  out of memory  536.9 MB  536,870,912 bytes  conv.py:549:_conv_forward@net.py:31$' "$work/info" &&
        grep -q '^    free then  *80.7 MB  *of the device$' "$work/info" &&
        grep -A 1 '^  made by  *at the peak  blocks$' "$work/info" |
            grep -q '^  conv.py:549:_conv_forward@net.py:31  *0.253 MB  *6$' &&
        grep -q '^  my_data.py:7:make_batch  *65.5 kB  *1$' "$work/info" &&
        grep -q '^  EmptyTensor.cpp:22:at::native::empty_cuda  *5.1 kB  *1$' "$work/info" &&
        grep -q '^  (no stack was recorded)  *1.0 kB  *1$' "$work/info" &&
        grep -q '^  next: neap plan ' "$work/info" || { cat "$work/info"; return 1; }
}
holds oom-info oom_info "$work/oom.neap"
holds oom-info-snapshot oom_info "$work/oom.pickle"
oom_json() {
    neap info --json "$work/oom.neap" | python3 -c '
import json, sys
info = json.load(sys.stdin)
assert info["one_round"] and info["period"]["length"] == info["events"] == 10
assert info["oom"] == {"bytes": 512 << 20, "free": 77 << 20, "at": "conv.py:549:_conv_forward@net.py:31"}
assert sum(h["bytes"] for h in info["holders"]) == info["peak_load"] and len(info["holders"]) == 4
assert [h["name"] for h in info["holders"]][3] is None'
}
holds oom-json oom_json
for file in oom.neap oom.pickle; do
    oom_plan() { neap plan --svg "$work/oom.svg" "$work/$file" | grep -q 'next: neap info .*: who holds it; neap run'; }
    holds "oom-plan-$file" oom_plan
    oom_report() { neap report -o "$work/oom.html" "$work/$file" | grep -q 'next: neap record' && [ -s "$work/oom.html" ]; }
    holds "oom-report-$file" oom_report
done
holds oom-svg grep -q '<title>conv.py:549:_conv_forward@net.py:31, block ' "$work/oom.svg"
no_names() { neap info "$NEAP_SOURCE_DIR/tests/data/snapshots/cnn-last-400.pickle.gz" | grep -q 'context=None'; }
holds oom-no-names no_names
never() { neap info never.neap; [ $? -eq 1 ] && { neap plan never.neap; [ $? -eq 1 ]; }; }
holds others-still-never never

# ---- import: nothing is called, nothing half is taken
for p in 2 4; do
    holds "evil-$p" refused "$work/evil-$p.pickle" "GLOBAL: would import or call something"
done
holds nothing-was-called [ ! -e "$work/called" ]
holds old refused "$work/old.pickle" "expected a pickle of protocol 2 to 5"
holds segments refused "$work/segments.pickle" "_record_memory_history()"
holds no-pickle refused tiny.neap "expected a pickle of protocol 2 to 5, found byte 0x6e"
holds no-file refused "$work/absent.pickle" "No such file"
size=$(wc -c <"$work/loop-4.pickle")
for k in 0 1 2 3 100 1000 $((size / 2)) $((size - 1)); do
    head -c "$k" "$work/loop-4.pickle" >"$work/cut.pickle"
    holds "cut-$k" refused "$work/cut.pickle" "byte $k: expected more of the pickle, found the end of the file"
done
head -c 300 "$work/loop.pickle.gz" >"$work/cut.pickle.gz"
holds cut-gzip refused "$work/cut.pickle.gz" "expected more gzip data"
cat >"$work/mutate.py" <<'END'
import random, sys
good = open(sys.argv[1], "rb").read()
for k in range(int(sys.argv[2])):
    random.seed(k)
    data = bytearray(good)
    for _ in range(random.randint(1, 5)):
        data[random.randrange(len(data))] = random.randrange(256)
    open(f"{sys.argv[3]}/mutated-{k}.pickle", "wb").write(data)
END
mutated() { # whatever comes of it, it is an answer
    neap import "$work/mutated-$1.pickle" -o "$work/mutated.neap" >"$work/out" 2>"$work/err"
    local code=$?
    [ $code -eq 0 ] || { [ $code -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ]; }
}
holds mutate python3 "$work/mutate.py" "$work/loop-4.pickle" 40 "$work"
for k in $(seq 0 39); do
    holds "mutated-$k" mutated "$k"
done

# ---- export to PyTorch's viewer, and back
steps() { sed -n -e 's/^malloc [0-9]* /malloc /p' -e 's/^live [0-9]* /live /p' -e 's/^free .*/free/p'; }
there_and_back() { # FILE: the same blocks and sizes in the same order
    neap export "$1" --pytorch "$work/there.pickle" && python3 "$here/check_snapshot.py" "$work/there.pickle" &&
        neap import "$work/there.pickle" -o "$work/back.neap" || return 1
    case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac | steps >"$work/before"
    steps <"$work/back.neap" | diff "$work/before" -
}
for f in tiny.neap swap.neap never.neap round.neap "$work/loop.neap" ../../data/traces/lstm-64.neap.gz; do
    holds "there-and-back-$(basename "$f")" there_and_back "$f"
done
holds export-csv neap export tiny.csv --pytorch "$work/csv.pickle"
holds csv-snapshot python3 "$here/check_snapshot.py" "$work/csv.pickle"

# ---- export to Perfetto
shows() { # FILE LINE...: the lines are among what is shown
    python3 "$here/check_perfetto.py" "$1" >"$work/shown" || return 1
    for line in "${@:2}"; do
        grep -qx -- "$line" "$work/shown" || { echo "no line $line in:"; cat "$work/shown"; return 1; }
    done
}
holds perfetto neap export tiny.neap --perfetto "$work/tiny.json" --min-block 1 --seconds 1
holds perfetto-shows shows "$work/tiny.json" "1 compute: 28" "1 load = 275968" \
    "1 held by the plan = 275968" "lives: 26"
holds perfetto-never neap export never.neap --perfetto "$work/never.json"
holds perfetto-never-shows shows "$work/never.json" "1 compute: 8" "lives: 0"
holds perfetto-csv neap export tiny.csv --perfetto "$work/csv.json" --min-block 1
holds perfetto-csv-shows shows "$work/csv.json"
holds perfetto-no-execs neap export "$work/loop.neap" --perfetto "$work/loop.json" --min-block 1 --seconds 1
holds perfetto-no-execs-shows shows "$work/loop.json" "1 load = $peak" "1 held by the plan = $peak"
limited() { neap export swap.neap --perfetto "$work/swap.json" --limit 80% --link 20GB/s --seconds 1 --json >"$work/answer"; }
holds perfetto-limit limited
holds perfetto-limit-shows shows "$work/swap.json" "2 copy out: .*" "2 copy in: .*" \
    "2 limit = $(field "$work/answer" limit)" "2 compute: 45"
held=$(sed -n 's/^2 held = //p' "$work/shown")
holds perfetto-within-limit [ "${held:-0}" -gt 0 -a "${held:-0}" -le "$(field "$work/answer" limit_footprint)" ]

if [ "$bad" -gt 0 ]; then
    echo "$bad of $n checks failed"
    exit 1
fi
echo "$n checks passed"
