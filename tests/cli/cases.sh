# The cases of run.sh. Plans shown in full come from the greedy solvers, whose answer is one; the search is judged by
# what must hold of its answer.

# ---- help and version
check help 'neap help'
check help-flag 'neap --help'
check help-plan 'neap help plan'
check help-info-flag 'neap info --help'
check help-json 'neap help --json'
check help-unknown 'neap help pln'
check help-topic 'neap help limit'
check help-topic-json 'neap help exit-codes --json'
check help-topic-near 'neap help departrues'
check help-topic-beginning 'neap help exit'
check help-shell 'neap help --completion bahs'
holds help-topics 'for t in limit oom footprint fragmentation doa overhead departures plan period verify limitations environment files exit-codes; do
    neap help $t | grep -q "^$t: " || echo "no $t"; done'
holds help-departures 'for d in "another size" "was not planned" "another stream" "is not there"; do
    neap help departures | grep -q "^    .*$d" || echo "no $d"; done'
check version 'neap --version'
check version-json 'neap --version --json'
check no-arguments 'neap'

# ---- bad usage: one line on stderr, exit code 2
check bad-verb 'neap plam tiny.neap'
check bad-verb-far 'neap xyzzy'
check bad-flag 'neap plan --sed 3 tiny.neap'
check bad-flag-value 'neap plan --sekonds=3 tiny.neap'
check bad-flag-far 'neap info --quux tiny.neap'
check bad-flag-short 'neap info -x tiny.neap'
check bad-flag-global 'neap --verbose'
check bad-flag-global-near 'neap --versoin'
check bad-order 'neap --json info tiny.neap'
check bad-solver 'neap plan --solver bestfti tiny.neap'
check bad-solver-far 'neap plan --solver magic tiny.neap'
check bad-seconds 'neap plan --seconds soon tiny.neap'
check bad-seconds-negative 'neap plan --seconds -1 tiny.neap'
check bad-seed 'neap plan --seed 18446744073709551616 tiny.neap'
check bad-capacity 'neap plan --capacity 8parsecs tiny.neap'
check bad-capacity-huge 'neap plan --capacity 20000000TiB tiny.neap'
check bad-align 'neap plan --align 0 tiny.neap'
check bad-threads 'neap plan --threads 0 tiny.neap'
check flag-with-value 'neap plan --json=yes tiny.neap'
check missing-value 'neap plan tiny.neap --seed'
check missing-file 'neap plan'
check two-files 'neap info tiny.neap tiny.csv'

# ---- bad input
check absent-file 'neap info no-such-file.neap'
check bad-file 'neap info bad.neap'
check bad-file-json 'neap plan --json bad.neap'
check bad-csv 'neap plan bad.csv'
check empty-file 'neap info /dev/null'

# ---- info
check info 'neap info tiny.neap'
check info-json 'neap info --json tiny.neap'
check info-csv 'neap info tiny.csv'
check info-csv-json 'neap info --json tiny.csv'
check info-never 'neap info never.neap'
check info-never-json 'neap info --json never.neap'
check info-variants 'neap info ../../data/traces/resnet18-100-log.neap.gz'
check info-variants-json 'neap info --json ../../data/traces/resnet18-100-log.neap.gz'
check info-align 'neap info --align 1KiB --json tiny.neap'

# ---- plan
check plan 'neap plan --solver bestfit tiny.neap'
check plan-json 'neap plan --solver bestfit --json tiny.neap'
check plan-csv 'neap plan --solver firstfit tiny.csv'
check plan-csv-json 'neap plan --solver=firstfit --json tiny.csv'
check plan-no-baselines 'neap plan --solver bestfit --no-baselines tiny.neap'
check plan-no-baselines-json 'neap plan --solver bestfit --no-baselines --json tiny.neap'
check plan-never 'neap plan never.neap'
check plan-never-json 'neap plan --json never.neap'
check plan-capacity 'neap plan --capacity 44 tiny.csv'
check plan-capacity-json 'neap plan --capacity 44B --json tiny.csv'
check plan-capacity-good 'neap plan --solver bestfit --no-baselines --capacity 1kB tiny.csv'
check plan-offsets 'neap plan --solver bestfit --offsets $OUT/o.csv --no-baselines --json tiny.neap && cat $OUT/o.csv'
check info-stdin 'cat tiny.csv | "$NEAP" info --json -'
check plan-svg 'neap plan --solver bestfit --no-baselines --svg $OUT/p.svg tiny.neap && head -c 38 $OUT/p.svg'
check info-after-dashes 'neap info --json -- tiny.csv'

# ---- run, record, verify, top: what they do is in test_run.sh, test_verify.sh and test_top.sh
check help-run 'neap help run'
check help-record 'neap record --help'
check help-verify 'neap help verify'
check help-top 'neap top -h'

# ---- swap
check help-swap 'neap help swap'
check swap 'neap swap --limit 80% --link 20GB/s --method doa --largest 3 swap.neap'
check swap-list 'neap swap --limit 80% --link 20GB/s --method doa --list $OUT/l.csv --json swap.neap > $OUT/j && cat $OUT/l.csv'
check swap-recorded-busy '{ cat swap.neap; echo meta link=10/8/15GB/s link_latency_us=3 link_busy_share=0.9; } > $OUT/busy.neap && neap swap --run --limit 80% $OUT/busy.neap | grep "link" && neap swap --run --limit 80% --json $OUT/busy.neap | grep busy_share'
check swap-recorded-link '{ cat swap.neap; echo meta link=10/8/15GB/s link_latency_us=3; } > $OUT/linked.neap && neap swap --limit 80% --method doa --json $OUT/linked.neap | grep -A 6 "\"link\""'
check swap-given-link '{ cat swap.neap; echo meta link=10/8/15GB/s; } > $OUT/linked.neap && neap swap --limit 80% --method doa --link 20GB/s --json $OUT/linked.neap | grep -A 6 "\"link\""'
check swap-no-times 'sed "s/ step_ms=[0-9.]*//; s/^\(exec [^ ]* [0-9]*\) [0-9]*/\1 0/" swap.neap > $OUT/z.neap && neap swap --limit 80% --method doa --link 20GB/s $OUT/z.neap | grep -v planned'
check swap-enough 'neap swap --limit 1GB --method doa swap.neap'
check swap-below 'neap swap --limit 20MB swap.neap'
check swap-below-json 'neap swap --limit 20MB --json swap.neap'
check swap-never 'neap swap never.neap'
check swap-never-json 'neap swap --json never.neap'
check swap-csv 'neap swap tiny.csv'
check swap-bad-limit 'neap swap --limit 8parsecs swap.neap'
check swap-bad-share 'neap swap --limit 170% swap.neap'
check swap-no-limit 'neap swap --limit 0 swap.neap'
check swap-bad-link 'neap swap --link carrier-pigeon swap.neap'
check swap-near-link 'neap swap --link h200-pcie swap.neap'
check swap-bad-speed 'neap swap --link 0GB/s swap.neap'
check swap-bad-slower 'neap swap --slower 0 swap.neap'
check swap-bad-overhead 'neap swap --overhead 5 swap.neap'
check swap-bad-method 'neap swap --method magic --limit 50% swap.neap'
check swap-method-alone 'neap swap --method doa swap.neap'
check swap-two-questions 'neap swap --limit 50% --zero-overhead swap.neap'
check swap-sweep-limit 'neap swap --sweep --limit 50% swap.neap'
check swap-svg-alone 'neap swap --svg $OUT/s.svg swap.neap'
check swap-bad-page 'neap swap --page 1000 swap.neap'
check swap-list-full 'neap swap --limit 80% --method doa --list /dev/full swap.neap'

# What must hold of any plan: the promise, the order, and the words that programs rely on.
swap_json() { neap swap --json --seconds 0.2 --link 20GB/s "$@" swap.neap > $OUT/j; }
value() { sed -n "s/^  \"$1\": \(.*[^,]\),*\$/\1/p" $OUT/j; }
le() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a <= b + 1e-9) }'; }
has() { for k in "$@"; do test -n "$(value $k)" || echo "no $k"; done; }
holds swap-words 'swap_json --limit 80% && has limit peak_load planned_peak load_min floor iteration_ns overhead \
    bound_overhead swaps bytes_out bytes_in footprint ratio method seconds bound_overhead_any_directions'
holds swap-zero-words 'swap_json --zero-overhead && has zero_overhead_peak zero_overhead_footprint reduction \
    footprint_reduction bound_reduction bound_reduction_any_directions overhead_allowed'
holds swap-zero 'swap_json && le $(value overhead) 0.001 && le $(value reduction) $(value bound_reduction)'
holds swap-zero-more 'swap_json --overhead 10% && le $(value overhead) 0.1 && test $(value overhead_allowed) = 0.1'
for m in search bo doa aoa wdoa swdoa; do
    holds swap-$m 'swap_json --limit 80% --method '$m' && test "$(value method)" = "\"'$m'\"" &&
        le $(value footprint) $(value limit) && le $(value planned_peak) $(value footprint) &&
        le $(value footprint_bound) $(value footprint) && le $(value bound_overhead) $(value overhead) &&
        le $(value bound_overhead_any_directions) $(value bound_overhead)'
done
holds swap-bytes 'swap_json --limit 50MB && test $(value limit) = 50000000'
holds swap-link 'swap_json --limit 90% --link 13.2/12.1GB/s && grep -q "\"in_gbs\": 12.1," $OUT/j'
holds swap-link-units 'swap_json --limit 90% --link 55000/50000/100000MB/s && grep -q "\"both_gbs\": 100," $OUT/j'
holds swap-slower 'swap_json --limit 90% && a=$(value iteration_ns) && swap_json --limit 90% --slower 2 &&
    awk -v a=$a -v b=$(value iteration_ns) "BEGIN { exit !(a > 0 && b / a > 1.999 && b / a < 2.001) }"'

# ---- what neap run would plan
check swap-run-enough 'neap swap --run --limit 1GB swap.neap'
check swap-run-never 'neap swap --run --limit 50% never.neap'
check swap-run-never-json 'neap swap --run --json --margin 3 --min-block 1MB never.neap'
check swap-run-csv 'neap swap --run tiny.csv'
check swap-run-sweep 'neap swap --run --sweep swap.neap'
check swap-run-method 'neap swap --run --limit 50% --method search swap.neap'
check swap-run-both 'neap swap --run --limit 50% --overhead 1% swap.neap'
check swap-run-two 'neap swap --run --limit 50% --zero-overhead swap.neap'
check swap-run-bad-margin 'neap swap --run --margin 4294967296 swap.neap'
check swap-margin-alone 'neap swap --margin 3 swap.neap'
run_json() { swap_json --run "$@"; }
holds swap-run-words 'run_json --limit 95% && has limit limit_was_raised peak_load planned_load beside load_min iteration_ns \
    overhead bound_overhead bound_overhead_any_directions swaps bytes_out bytes_in footprint footprint_reduction \
    margin min_block seconds && test "$(value method)" = "\"run\"" && test $(value margin) = 2 &&
    test $(value min_block) = 262144'
holds swap-run-limit 'run_json --limit 95% && le $(value footprint) $(value limit) &&
    le $(value bound_overhead) $(value overhead) && test $(value limit) = 56780390'
holds swap-run-bytes 'run_json --limit 58MB && test $(value limit) = 56623104'
holds swap-run-raised 'run_json --limit 30MB && test $(value limit_was_raised) = true && le 30000000 $(value limit) && le $(value footprint) $(value limit)'
holds swap-run-overhead 'run_json --overhead 5% && le $(value overhead) 0.05 && test $(value overhead_allowed) = 0.05 &&
    le $(value footprint) $(value limit) && le $(value limit) $(value peak_load)'
for o in --list=$OUT/l.csv --svg=$OUT/s.svg --steps=3 --largest=3 --slower=2 --page=2MiB --align=512; do
    holds swap-run-$o '! neap swap --run '$o' swap.neap 2> $OUT/e && grep -q "does not go with --run" $OUT/e'
done

# ---- the sweep: every row in order, and drawn
sweep() { neap swap --sweep --steps 6 --seconds 0.2 --link 20GB/s "$@" swap.neap; }
check sweep-header 'sweep --svg $OUT/s.svg | head -n 1'
holds sweep-rows 'sweep > $OUT/w && test $(wc -l < $OUT/w) = 7'
holds sweep-falls 'tail -n +2 $OUT/w | cut -d, -f1 | sort -c -n -r -u'
holds sweep-order 'awk -F, "NR > 1 { for (i = 3; i <= 10; i++) if (\$i == \"\") \$i = 1e9
    best = \$5; for (i = 6; i <= 8; i++) if (\$i < best) best = \$i
    if (\$3 > \$4 + 1e-6 || \$4 > best + 1e-6 || \$9 > \$3 + 1e-6 || \$10 > \$9 + 1e-6) print }" $OUT/w'
holds sweep-json 'sweep --json | grep -c "\"search\":" | grep -qx 6'
holds sweep-drawn 'tail -n 1 $OUT/s.svg | grep -qx "</svg>" && test $(grep -c "<title>search at" $OUT/s.svg) = 6'
holds sweep-on-load 'sweep --on load > $OUT/v && test $(wc -l < $OUT/v) = 7 && ! cmp -s $OUT/v $OUT/w'
holds sweep-footprints 'awk -F, "NR > 1 && \$11 > \$1 { print }" $OUT/w'
holds swap-on-load 'le 20000000 $(neap swap --limit 80% --on load --method doa --json swap.neap | sed -n "s/.*\"footprint\": \([0-9]*\).*/\1/p")'
check swap-on-alone 'neap swap --on load swap.neap'
check swap-on-what 'neap swap --sweep --on time swap.neap'
check sweep-never 'neap swap --sweep never.neap'
check sweep-svg-full 'neap swap --sweep --steps 2 --seconds 0.1 --svg /dev/full swap.neap'

# ---- figures: the numbers agree with the other verbs, and every picture is whole
check help-figures 'neap help figures'
check figures-load 'neap figures tiny.neap -o $OUT/fig --only load && cat $OUT/fig/load.csv'
check figures-no-output 'neap figures swap.neap'
check figures-no-file 'neap figures -o $OUT/fig'
check figures-csv 'neap figures tiny.csv -o $OUT/fig'
check figures-never 'neap figures never.neap -o $OUT/fig'
check figures-never-json 'neap figures never.neap -o $OUT/fig --json'
check figures-bad-only 'neap figures swap.neap -o $OUT/fig --only overhaed'
check figures-bad-link 'neap figures swap.neap -o $OUT/fig --link h200-pcie'
check figures-same-name 'neap figures tiny.neap ./tiny.neap -o $OUT/fig'
check figures-no-folder 'neap figures tiny.neap --only load -o no/such/folder'
check figures-no-room 'neap figures tiny.neap --only load -o tiny.csv'
check figures-json 'neap figures tiny.neap -o$OUT/fig --only=load --json'
figures() { neap figures --seconds 0.2 --steps 6 --link 20GB/s -o $OUT/all "$@"; }
holds figures-all 'figures swap.neap > $OUT/a && test "$(sort $OUT/a)" = "$(ls -d $OUT/all/* | sort)" &&
    test $(wc -l < $OUT/a) = 8'
slow_figure() { grep -h -o "Link: [^<]*" $OUT/linked/*load-under-limits.svg; }
check figures-recorded-link '{ cat swap.neap; echo meta link=0.001/0.002GB/s; } > $OUT/slow.neap &&
    neap figures --only load-under-limits --seconds 0.1 -o $OUT/linked $OUT/slow.neap swap.neap && slow_figure'
check figures-given-link 'neap figures --only load-under-limits --seconds 0.1 --link 20GB/s -o $OUT/linked $OUT/slow.neap && slow_figure'
holds figures-recorded-sweep 'neap figures --only overhead --steps 2 --seconds 0.1 -o $OUT/linked $OUT/slow.neap > $OUT/a &&
    grep -q "0.001 GB/s out, 0.002 in" $OUT/linked/overhead.svg'
holds figures-whole 'for f in $OUT/all/*.svg; do tail -n 1 $f | grep -qx "</svg>" || echo $f; done'
holds figures-five 'cut -d, -f2 $OUT/all/load.csv | sort | uniq -c | awk "\$2 != \"iteration\" { if (n && \$1 != n) print; n = \$1; k++ }
    END { if (k != 5) print k }"'
peak_of() { neap info --json swap.neap | sed -n 's/^  "peak_load": \(.*\),$/\1/p'; }
holds figures-peak 'tail -n +2 $OUT/all/load.csv | cut -d, -f3 | sort -n | tail -n 1 | grep -qx $(peak_of)'
holds figures-limits 'awk -F, -v peak=$(peak_of) "NR == 1 { for (i = 3; i <= NF; i++) { limit[i] = substr(\$i, 7); if (limit[i] > peak) print } }
    NR > 1 { for (i = 3; i <= NF; i++) { n += \$i != \"\"; if (\$i + 0 > limit[i] + 0) print } if (\$2 > top) top = \$2 }
    END { if (top != peak || n == 0) print top, n }" $OUT/all/load-under-limits.csv'
holds figures-sweep 'sweep | cut -d, -f1,2,9,10 | cmp - <(cut -d, -f1,2,9,10 $OUT/all/overhead.csv)'
holds figures-footprint 'neap plan --json swap.neap > $OUT/j && awk -F, "NR == 2 { if (\$4 > \$11 || \$12 > \$11 || \$13 > \$12 || \$13 <= 0) print
    for (i = 5; i <= 10; i++) print \$i }" $OUT/all/footprint.csv | cmp - <(sed -n "/baselines/,/}/s/^    .*: \([0-9]*\),*$/\1/p" $OUT/j)'
holds figures-many 'figures --only footprint tiny.neap swap.neap > $OUT/a && test $(wc -l < $OUT/all/footprint.csv) = 3 &&
    figures --only load tiny.neap swap.neap > $OUT/a && test -s $OUT/all/tiny-load.svg && test -s $OUT/all/swap-load.csv'

# ---- train: what is asked, what is answered, and the same numbers however memory is served
check help-train 'neap help train'
check train-no-net 'neap train'
check train-bad-net 'neap train vgg17'
check train-far-net 'neap train alexnet'
check train-bad-limit 'neap train vgg11 --limit 8parsecs'
check train-bad-share 'neap train vgg11 --limit 170%'
check train-no-limit 'neap train vgg11 --limit 0'
check train-no-batch 'neap train vgg11 --batch 0'
check train-bad-batch 'neap train vgg11 --batch 5000'
check train-bad-iters 'neap train vgg11 --iters 1000001'
check train-no-data 'neap train vgg11 --data no-such-folder'
holds train-bad-device '! neap train vgg11 --device toaster 2> $OUT/e && test $(wc -l < $OUT/e) = 1'
# A limit that was raised is said, and is no failure: how near it is depends on when the plan comes.
train_json() { neap train vgg11 --batch 1 --iters 6 --plan-seconds 0.1 --json "$@" > $OUT/j 2> $OUT/w || { cat $OUT/w; return 1; }; }
holds train-words 'train_json && has net device data batch iters seed allocation parameters peak_load limit footprint \
    planned_footprint ratio iteration_ms overhead state departures bytes_out bytes_in weights losses'
holds train-losses 'test $(grep -c "^    [0-9]*[.][0-9]*,*$" $OUT/j) = 6'
holds train-again 'a=$(value weights) && test ${#a} -gt 15 && train_json --limit 200MB && test "$(value weights)" = "$a" &&
    le $(value footprint) 200000000'
holds train-seed 'a=$(value weights) && train_json --seed 2 && test "$(value weights)" != "$a"'
holds train-compare 'neap train vgg11 --batch 1 --iters 4 --plan-seconds 0.1 --compare > $OUT/t 2> $OUT/w &&
    grep -q "losses and weights are bit-identical in all runs" $OUT/t && grep -q "SmartPool + AutoSwap" $OUT/t'
holds train-compare-json 'train_json --compare && test "$(value identical)" = true &&
    test $(grep -c "\"allocation\":" $OUT/j) = 3'

# ---- the picture: whole, well formed, every buffer there, nothing left over
holds svg-complete 'tail -n 1 $OUT/p.svg | grep -qx "</svg>"'
holds svg-rectangles 'test $(grep -c "<title>block" $OUT/p.svg) -ge $(($(wc -l < $OUT/o.csv) - 1))'
holds svg-leaves-nothing 'test "$(ls $OUT | grep "^[op][.]" | tr "\n" " ")" = "o.csv p.svg "'
holds svg-again 'neap plan --solver bestfit --svg $OUT/q.svg tiny.neap > /dev/null && cmp $OUT/p.svg $OUT/q.svg'

# ---- a plan whose round is two periods: said, numbered, drawn
check plan-one-round 'neap plan --solver bestfit --no-baselines round.neap'
plan_round() { neap plan --no-baselines --offsets $OUT/r.csv --svg $OUT/r.svg round.neap; }
holds round-said 'plan_round > $OUT/r && grep -q "^  round  *2  periods  *18 events" $OUT/r'
holds round-numbered 'test "$(cut -d, -f1 $OUT/r.csv | tr "\n" " ")" = "id 4 4.1 5 5.1 6 6.1 "'
holds round-drawn 'grep -q "a round of 2 periods" $OUT/r.svg'
holds round-json 'neap plan --no-baselines --json round.neap | tr -d "\n " | grep -q "{.periods.:2,.length.:18}"'
holds round-read-back 'neap plan --no-baselines $OUT/r.csv > $OUT/r'

# ---- writing that fails
check svg-no-folder 'neap plan --solver bestfit --no-baselines --svg no/such/folder/p.svg tiny.neap'
check svg-folder 'neap plan --solver bestfit --no-baselines --svg . tiny.neap'
check svg-full 'neap plan --solver bestfit --no-baselines --svg /dev/full tiny.neap'
check offsets-no-folder 'neap plan --solver bestfit --no-baselines --offsets no/such/folder/o.csv tiny.neap'
check full-info 'neap info --json tiny.neap > /dev/full'
check full-help 'neap help > /dev/full'
check full-version 'neap --version > /dev/full'
check full-never 'neap info never.neap > /dev/full'
check closed-stdout 'neap info tiny.neap >&-'

# ---- what must hold of any answer
field() { neap plan --json --no-baselines "$@" | sed -n "s/^  \"$f\": \(.*\),\$/\1/p"; }
holds search-optimal 'f=optimal; test "$(field tiny.csv)" = true'
holds search-footprint 'f=footprint; test "$(field tiny.csv)" = "$(f=load; field tiny.csv)"'
holds capacity-units 'neap plan --capacity 0.000055MB --no-baselines --json tiny.csv | grep -q "\"capacity\": 55,"'
# ---- names are shown as text: ESC, 0x9b, U+202E and U+009B
check escaped-names 'LC_ALL=C sed "s/forward2/f\xe2\x80\xae2/; s/backward0/b\x9b31m\xc2\x9b4/" swap.neap > $OUT/evil.neap && neap swap --limit 60% --largest 4 $OUT/evil.neap | sed -E "/method|iteration|overhead|bound/d"; neap swap --limit 10MB $OUT/evil.neap'
holds escaped-json 'neap swap --json --limit 10MB $OUT/evil.neap | LC_ALL=C grep -c "$(printf "[\\033\\233]")" | grep -qx 0'
holds escaped-title 'cp swap.neap "$OUT/$(printf "a\033[31m").neap"; for v in info plan swap "export --perfetto $OUT/e.json"; do
    neap $v "$OUT/$(printf "a\033[31m").neap" 2>&1 | grep -q "$(printf "\033")" && echo "$v"; done; true'
holds size-limit '(ulimit -f 1; neap export --perfetto $OUT/big.json ../../data/traces/vgg16-100-32.neap.gz > $OUT/so 2> $OUT/se; test $? = 2 && grep -q "File too large" $OUT/se)'
check limit-letter 'neap swap --limit 1k swap.neap'
check help-topic-oom 'neap help oom'
holds no-colour 'test -z "$(neap plan tiny.csv | tr -d "[:print:]\n")"'

# ---- import and export: what is asked and answered; test_import_export.sh looks into the files
check help-import 'neap help import'
check help-export 'neap help export'
check import 'neap import loop.pickle -o $OUT/i.neap && cat $OUT/i.neap'
check import-json 'neap import --device 1 --output $OUT/i.neap.gz --json loop.pickle'
check import-no-output 'neap import loop.pickle'
check import-no-device 'neap import loop.pickle --device 3 -o $OUT/n.neap'
check import-empty-device 'neap import loop.pickle --device 0 -o $OUT/n.neap'
check import-bad-device 'neap import loop.pickle --device 4294967295 -o $OUT/n.neap'
check import-evil 'neap import evil.pickle -o $OUT/n.neap'
check import-trace 'neap import tiny.neap -o $OUT/n.neap'
check import-no-folder 'neap import loop.pickle -o no/such/folder/n.neap'
check swap-no-execs 'neap swap --limit 50% $OUT/i.neap'
check export 'neap export tiny.neap --perfetto $OUT/t.json --pytorch $OUT/t.pickle'
check export-json 'neap export tiny.neap --perfetto $OUT/t.json --pytorch $OUT/t.pickle --min-block 64KiB --json'
check export-never 'neap export never.neap --perfetto $OUT/n.json'
check export-nothing 'neap export tiny.neap'
check export-limit-alone 'neap export tiny.neap --pytorch $OUT/t.pickle --limit 50%'
check export-link-alone 'neap export tiny.neap --perfetto $OUT/t.json --link 20GB/s'
check export-bad-limit 'neap export swap.neap --perfetto $OUT/t.json --limit 170%'
check export-bad-size 'neap export swap.neap --perfetto $OUT/t.json --limit 8parsecs'
check export-gzip 'neap export tiny.neap --perfetto $OUT/t.json.gz'
check export-never-limit 'neap export never.neap --perfetto $OUT/l.json --limit 50%'
check export-below 'neap export swap.neap --perfetto $OUT/l.json --limit 20MB'
check export-full 'neap export tiny.neap --pytorch /dev/full'
check export-perfetto-full 'neap export tiny.neap --perfetto /dev/full'
holds export-leaves-nothing 'test ! -e $OUT/n.neap && test ! -e $OUT/l.json'
