# The cases of run.sh. Plans shown in full come from the greedy solvers, whose answer is one; the search is judged by
# what must hold of its answer.

# ---- help and version
check help 'neap help'
check help-flag 'neap --help'
check help-plan 'neap help plan'
check help-info-flag 'neap info --help'
check help-json 'neap help --json'
check help-unknown 'neap help pln'
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

# ---- the picture: whole, well formed, every buffer there, nothing left over
holds svg-complete 'tail -n 1 $OUT/p.svg | grep -qx "</svg>"'
holds svg-rectangles 'test $(grep -c "<title>block" $OUT/p.svg) -ge $(($(wc -l < $OUT/o.csv) - 1))'
holds svg-leaves-nothing 'test "$(ls $OUT | tr "\n" " ")" = "o.csv p.svg "'
holds svg-again 'neap plan --solver bestfit --svg $OUT/q.svg tiny.neap > /dev/null && cmp $OUT/p.svg $OUT/q.svg'

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
holds no-colour 'test -z "$(neap plan tiny.csv | tr -d "[:print:]\n")"'
