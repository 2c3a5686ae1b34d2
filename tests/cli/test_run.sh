#!/bin/bash
# neap run and neap record: the environment that a program gets, what is refused before it begins, and that nothing else
# of neap stays: exit code, signals, words and streams are the program's own.
. "$(dirname "$0")/fake.sh"
cd "$work" || exit 2

cat > show.sh <<'END'
#!/bin/sh
env | grep -E '^(NEAP_[A-Z_]*|LD_PRELOAD|CUDA_INJECTION64_PATH|PYTORCH_[A-Z_]*)=' | grep -v '^NEAP_HOOK_LIBRARY=' | sort
END
chmod +x show.sh
value() { sed -n "s/^$1=//p" shown; }
show() { neap "$@" -- ./show.sh > shown 2> said; }

# ---- the library is put in front
show run
is preload "$(value LD_PRELOAD)" "$NEAP_HOOK_LIBRARY"
is injection "$(value CUDA_INJECTION64_PATH)" "$NEAP_HOOK_LIBRARY"
is mode "$(value NEAP_HOOK)" run
is backend "$(value PYTORCH_CUDA_ALLOC_CONF)" backend:cudaMallocAsync
is backend-new-name "$(value PYTORCH_ALLOC_CONF)" backend:cudaMallocAsync
is nothing-else "$(cut -d= -f1 shown | tr '\n' ' ')" \
    "CUDA_INJECTION64_PATH LD_PRELOAD NEAP_HOOK NEAP_LIVE NEAP_PID PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF "
is nothing-said "$(cat said)" ""
is process "$(neap run sh -c 'test "$NEAP_PID" = $$ && echo same')" same

cp libneap_hook.so other.so
LD_PRELOAD=$work/other.so show run
is preload-kept "$(value LD_PRELOAD)" "$NEAP_HOOK_LIBRARY:$work/other.so"
neap run "$NEAP" run ./show.sh > shown
is preload-once "$(value LD_PRELOAD)" "$NEAP_HOOK_LIBRARY"
CUDA_INJECTION64_PATH=/opt/profiler.so show run
is injection-replaced "$(value CUDA_INJECTION64_PATH)" "$NEAP_HOOK_LIBRARY"
is injection-said "$(grep -c 'CUDA_INJECTION64_PATH was /opt/profiler.so' said)" 1

show run --keep-backend
is keep-backend "$(value NEAP_KEEP_BACKEND)" 1

# ---- PyTorch's settings
conf() { PYTORCH_CUDA_ALLOC_CONF=$1 show run; value PYTORCH_CUDA_ALLOC_CONF; }
is conf-kept "$(conf pinned_use_background_threads:True)" backend:cudaMallocAsync,pinned_use_background_threads:True
is conf-native "$(conf expandable_segments:True,later:1,max_split_size_mb:64)" backend:cudaMallocAsync,later:1
is conf-said "$(cat said)" "neap: PYTORCH_CUDA_ALLOC_CONF: left out, as only PyTorch's own allocator has it: expandable_segments, max_split_size_mb"
is conf-brackets "$(conf 'roundup_power2_divisions:[256:1,512:2,>:4],pinned_num_register_threads:8')" \
    backend:cudaMallocAsync,pinned_num_register_threads:8
is conf-backend "$(conf backend:native)" backend:cudaMallocAsync
is conf-backend-said "$(grep -c backend:native said)" 1
is conf-same "$(conf backend:cudaMallocAsync)$(cat said)" backend:cudaMallocAsync
is conf-blanks "$(conf ' , later:1 ,')" "backend:cudaMallocAsync,later:1"
PYTORCH_ALLOC_CONF=new:1 PYTORCH_CUDA_ALLOC_CONF=old:1 show run
is conf-new-name "$(value PYTORCH_CUDA_ALLOC_CONF) $(value PYTORCH_ALLOC_CONF)" \
    "backend:cudaMallocAsync,new:1 backend:cudaMallocAsync,new:1"
fails conf-long 2 'is too long' env PYTORCH_ALLOC_CONF="x:$(printf '%05000d' 0)" "$NEAP" run ./show.sh

# ---- options
show run --limit 8GiB --report r.json --record=t.gz --tell-limit --plan-cache /p --min-block 64KiB --margin 3 \
    --log debug --plan-seconds 2.5s --json
is limit "$(value NEAP_LIMIT)" 8589934592
is report "$(value NEAP_REPORT)" "$work/r.json"
is record "$(value NEAP_RECORD)" "$work/t.gz"
is tell-limit "$(value NEAP_TELL_LIMIT)" 1
is plan-cache "$(value NEAP_PLAN_CACHE)" /p
is min-block "$(value NEAP_MIN_BLOCK)" 65536
is margin "$(value NEAP_MARGIN)" 3
is plan-seconds "$(value NEAP_PLAN_SECONDS)" 2.5
is log "$(value NEAP_LOG)" debug
is live "$(value NEAP_LIVE)" 1
is json "$(value NEAP_REPORT_JSON)" 1
NEAP_PLAN_SECONDS=7 show run --plan-seconds 0.00001
is plan-seconds-few "$(value NEAP_PLAN_SECONDS)" 1e-05
NEAP_PLAN_SECONDS=7 show run
is plan-seconds-stays "$(value NEAP_PLAN_SECONDS)" 7
show run --limit 70%
is limit-share "$(value NEAP_LIMIT)" 70.0000000%
understood() { # understood LIMIT NEAP_LIMIT LINE
    show run --limit "$1"
    is "limit $1" "$(value NEAP_LIMIT)" "$2"
    is "limit $1: said" "$(cat said)" "$3"
}
understood 8G 8000000000 "neap: --limit 8G is 8000.0 MB, 8,000,000,000 bytes (8GiB would be 8589934592)"
understood 8g 8000000000 "neap: --limit 8g is 8000.0 MB, 8,000,000,000 bytes (8GiB would be 8589934592)"
understood 8GB 8000000000 "neap: limit 8000.0 MB, 8,000,000,000 bytes"
understood 8GiB 8589934592 "neap: limit 8589.9 MB, 8,589,934,592 bytes"
understood 0.7 70.0000000% "neap: --limit 0.7 is 70.00 % of the peak load"
understood 70% 70.0000000% "neap: limit 70.00 % of the peak load"
understood 8 8 "neap: warning: --limit 8 is 8 bytes: a device's memory comes in larger pages, and no program fits; a size has a unit, as 8GB or 8GiB"
understood 1048576 1048576 "neap: limit 1.049 MB, 1,048,576 bytes"
show run --quiet --limit 8G
is limit-quiet "$(value NEAP_LIMIT)$(cat said)" 8000000000
show run --min-block 256k
is min-block-letter "$(value NEAP_MIN_BLOCK) $(cat said)" "256000 neap: --min-block 256k is 256,000 bytes (256KiB would be 262144)"
fails limit-fraction 2 'at most 100%' neap run --limit 100.5% -- true
NEAP_LIMIT=5 show run --overhead 1%
is overhead "$(value NEAP_OVERHEAD) $(value NEAP_LIMIT)" "0.010000000 "
NEAP_LIMIT=5 show run
is environment-stays "$(value NEAP_LIMIT)" 5
NEAP_VERIFIED=1 show run
is verified-is-not-said-by-others "$(value NEAP_VERIFIED)" ""
show run --quiet
is quiet "$(value NEAP_REPORT) $(value NEAP_LOG)" "- none"
PYTORCH_ALLOC_CONF=expandable_segments:True show run --quiet
is quiet-says-nothing "$(cat said)" ""
show run --quiet --report r --log warn
is quiet-but "$(value NEAP_REPORT) $(value NEAP_LOG)" "$work/r warn"

# ---- the program is itself
is words "$(neap run -- printf '%s|' -x --json -- 'a b' '')" '-x|--json|--|a b||'
is words-without-dashes "$(neap run --quiet printf '%s|' --quiet --help)" '--quiet|--help|'
neap run -- sh -c 'exit 7'
is exit-code $? 7
{ neap run -- sh -c 'kill -TERM $$'; code=$?; } 2> said # the shell says so too
is signal $code 143
is stdin "$(echo in | neap run cat)" in
is same-process "$(sh -c 'echo $$; exec "$0" run sh -c "echo \$\$"' "$NEAP" | uniq | wc -l)" 1
ignored='s/^SigIgn:[[:space:]]*.........//p' # but for those that the C library keeps to itself
is signals-ignored "$(neap run sed -n "$ignored" /proc/self/status)" "$(sed -n "$ignored" /proc/self/status)"
is signals-ignored-before "$(trap '' PIPE; neap run sed -n "$ignored" /proc/self/status)" \
    "$(trap '' PIPE; sed -n "$ignored" /proc/self/status)"
is closed-stdout "$(neap run sh -c 'ls -l /proc/$$/fd/1 2>&1 >&2 | grep -c "No such file"' 2>&1 >&-)" "$(
    sh -c 'ls -l /proc/$$/fd/1 2>&1 >&2 | grep -c "No such file"' 2>&1 >&-)"

# ---- names are shown as text
evil=$'./no\x1b[31m\x9b\xe2\x80\xae'
fails escaped-program 127 './no\x1b[31m\x9b\xe2\x80\xae: there is no such program' neap run -- "$evil"
fails escaped-operand 2 "unknown option '--no\\x1b[31m" neap run $'--no\x1b[31m' -- true

# ---- what is refused
fails no-program 2 'no PROGRAM was given' neap run
fails no-program-dashes 2 'no PROGRAM was given' neap run --limit 1GB --
fails not-found 127 'there is no such program' neap run -- no-such-program
fails not-found-path 127 'there is no such program' neap run -- ./no/such/program
echo text > plain.txt
fails not-executable 126 'Permission denied' neap run -- ./plain.txt
fails limit-nonsense 2 "--limit takes a size such as 8GB or 8GiB" neap run --limit 8parsecs -- true
fails limit-none 2 '--limit must be above 0' neap run --limit 0 -- true
fails limit-share-nonsense 2 'at most 100%' neap run --limit 170% -- true
fails overhead-nonsense 2 '--overhead takes a share' neap run --overhead little -- true
fails overhead-none 2 '--overhead must be above 0%' neap run --overhead 0% -- true
fails limit-and-overhead 2 'one of them' neap run --limit 1GB --overhead 1% -- true
fails margin-nonsense 2 '--margin must be at most' neap run --margin 4294967296 -- true
fails plan-seconds-nonsense 2 "--plan-seconds takes seconds, not 'soon'" neap run --plan-seconds soon -- true
fails plan-seconds-none 2 '--plan-seconds must be above 0' neap run --plan-seconds 0 -- true
fails plan-seconds-many 2 'and at most 1000000' neap run --plan-seconds 1000001 -- true
fails log-nonsense 2 "did you mean 'debug'?" neap run --log debgu -- true
fails unknown-option 2 "did you mean '--limit'?" neap run --limt 1GB -- true

# ---- where the library is
mkdir -p tree/bin tree/lib/neap
cp "$NEAP" tree/bin/neap
unset NEAP_HOOK_LIBRARY
fails library-missing 2 'libneap_hook.so was not found: looked in '"$work/tree/bin, ../lib/neap" tree/bin/neap run ./show.sh
cp other.so tree/lib/neap/libneap_hook.so
tree/bin/neap run ./show.sh > shown
is library-installed "$(value LD_PRELOAD)" "$work/tree/lib/neap/libneap_hook.so"
cp other.so tree/bin/libneap_hook.so
tree/bin/neap run ./show.sh > shown
is library-beside "$(value LD_PRELOAD)" "$work/tree/bin/libneap_hook.so"
fails library-given-missing 2 'NEAP_HOOK_LIBRARY: no/such.so: No such file' env NEAP_HOOK_LIBRARY=no/such.so "$NEAP" run ./show.sh
mkdir 'a b'
cp other.so 'a b/l.so'
fails library-blank 2 'a path with a blank or colon' env NEAP_HOOK_LIBRARY='a b/l.so' "$NEAP" run ./show.sh
export NEAP_HOOK_LIBRARY=$work/libneap_hook.so

# ---- record
show record -o t.neap.gz
is record-mode "$(value NEAP_HOOK)" record
is record-file "$(value NEAP_RECORD)" "$work/t.neap.gz"
show record --output=/t --quiet --json
is record-quiet "$(value NEAP_RECORD) $(value NEAP_REPORT) $(value NEAP_REPORT_JSON)" "/t - 1"
neap record -ot sh -c 'exit 9'
is record-code $? 9
fails record-nowhere 2 'where to? -o FILE' neap record -- true
fails record-no-program 2 'no PROGRAM was given' neap record -o t

finish
