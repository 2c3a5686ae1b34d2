# A report or a trace was asked for, and there is nothing to report: one line that says so, and empty documents. Where another
# process of the program has reported, its documents stay; and where nothing was asked for, nothing is said.
set -u
. "$(dirname "$0")/in_front.sh"
cd "$work" || exit 1
bad=0
fail() { echo "$*"; cat said; bad=1; }
limit=4194304

# under VARIABLE... -- PROGRAM: as `neap run` would have it
under() {
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    rm -rf report trace.gz trace said out
    env NEAP_HOOK=run "${settings[@]}" NEAP_PRELOAD="$preload" \
        bash -c 'NEAP_PID=$$ LD_PRELOAD=$NEAP_PRELOAD CUDA_INJECTION64_PATH=$NEAP_HOOK_LIBRARY exec "$0" "$@"' "$@" >out 2>said
}
lines() { grep -c '^neap: ' said; }
never='^neap: process [0-9]* used no CUDA memory that neap can see'

under NEAP_REPORT=report NEAP_REPORT_JSON=1 -- sh -c 'echo hello'
[ "$(cat report)" = '[]' ] || fail "a program without CUDA leaves no JSON report"
[ "$(lines)" = 1 ] && grep -q "$never; the report is empty\$" said || fail "a program without CUDA: not one line"
[ "$(cat out)" = hello ] || fail "the program's own output is another"

under NEAP_REPORT=report -- sh -c 'exit 3'
[ $? = 3 ] || fail "the exit code is not the program's"
grep -q "$never" report || fail "a program without CUDA leaves no report"

under NEAP_REPORT_JSON=1 -- true
[ "$(grep -v '^neap' said)" = '[]' ] && [ "$(lines)" = 1 ] || fail "there is no document on stderr"

under NEAP_RECORD=trace NEAP_HOOK=record -- true
head -n 1 trace | grep -q '^neap-trace 1' || fail "there is no empty trace"
[ "$(lines)" = 1 ] && grep -q "$never; the trace is empty\$" said || fail "a trace of nothing: not one line"
"$NEAP_COMMAND" info trace >out 2>said
[ $? = 1 ] || fail "an empty trace is not one that never repeats"
under NEAP_RECORD=trace.gz NEAP_REPORT=report NEAP_REPORT_JSON=1 -- true
gzip -t trace.gz && [ "$(cat report)" = '[]' ] || fail "not both"
grep -q "$never; the trace is empty; the report is empty\$" said || fail "not both are named"

for quiet in NEAP_REPORT=- NEAP_LOG=warn; do
    under $quiet -- true
    [ -s said ] && fail "something is said though nothing was asked for: $quiet"
done
[ -e "$work/neap" ] && ls "$work/neap" | grep -q used && fail "a mark was left: $(ls "$work/neap")"

# Where CUDA is used by a runtime that is not seen: the document is empty, too.
under NEAP_REPORT=report NEAP_REPORT_JSON=1 -- env STANDIN_SEED=1 "$NEAP_HOOK_TRAINER_STATIC" --scale=4 --iterations=3
[ "$(cat report)" = '[]' ] && [ "$(grep -c "$never" said)" = 1 ] || fail "a program that is not seen leaves no report"

# A child reports: its document stays, and the program that neap run became keeps quiet.
trainer="STANDIN_SEED=1 $NEAP_HOOK_TRAINER --scale=4 --iterations=4"
under NEAP_REPORT=report NEAP_REPORT_JSON=1 NEAP_RECORD=trace -- sh -c "$trainer; true"
grep -q '"n_launches"' report || fail "the child's report is gone"
grep -q malloc trace || grep -q '^m' trace || fail "the child's trace is gone"
grep -q "$never" said && fail "the parent says that there was nothing"
under NEAP_REPORT=report NEAP_REPORT_JSON=1 -- sh -c "RANK=1 $trainer; true" # a launcher
[ -e report ] && fail "a launcher has a report of its own"
grep -q '"n_launches"' report.rank1 || fail "the rank's report is not there"
ls "$work/neap" | grep used && fail "a mark is left"
exit $bad
