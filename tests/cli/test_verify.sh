#!/bin/bash
# neap verify, with a program that behaves as if one launch used one block unseen: what the library would do, it does
# itself, from the environment that the library would read.
. "$(dirname "$0")/fake.sh"
cd "$work" || exit 2

# LAUNCHES and BLOCKS in all; launch BAD_LAUNCH uses block BAD_BLOCK unseen (-1: none does). With TOGETHER, only where
# launch TOGETHER is poisoned too.
cat > program.sh <<'END'
#!/bin/bash
echo run >> runs
: "${LAUNCHES:=1000}" "${BLOCKS:=64}" "${BAD_LAUNCH:=-1}" "${BAD_BLOCK:=0}" "${TOGETHER:=$BAD_LAUNCH}"
in_range() { [ -z "$1" ] || { [ "$2" -ge "${1%-*}" ] && [ "$2" -lt "${1#*-}" ]; }; }
echo "epoch 0"
loss=0.5
if [ "$NEAP_HOOK" = verify ]; then
    [ -n "$NOISE" ] && echo noise
    if [ "$BAD_LAUNCH" -ge 0 ] && in_range "$NEAP_VERIFY_LAUNCHES" "$BAD_LAUNCH" &&
        in_range "$NEAP_VERIFY_LAUNCHES" "$TOGETHER" && in_range "$NEAP_VERIFY_BLOCKS" "$BAD_BLOCK"; then
        loss=nan
        [ -n "$CRASH" ] && kill -SEGV $$
    fi
    [ -n "$STUCK" ] && in_range "$NEAP_VERIFY_LAUNCHES" "$STUCK" && echo "neap-verify: failed: no room" >&2 && kill -ABRT $$
    first=${NEAP_VERIFY_LAUNCHES%-*} end=${NEAP_VERIFY_LAUNCHES#*-}
    if [ -n "$NEAP_VERIFY_TELL" ] && [ -z "$MUTE" ]; then
        echo "neap-verify: launches $LAUNCHES blocks $BLOCKS" >&2
        if [ -n "$first" ] && [ $((end - first)) = 1 ]; then
            echo "neap-verify: launch $first void gemm<float, 4>(int, block 8), block ${NEAP_VERIFY_BLOCKS%-*} (1048576 bytes)" >&2
        fi
    fi
fi
echo "loss $loss"
cat
exit "${CODE:-0}"
END
chmod +x program.sh
verify() { echo typed | neap verify --json "$@" -- ./program.sh > answer 2> said; code=$?; }
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),*\$/\1/p" answer; }
runs() { wc -l < runs; rm -f runs; }

# ---- good
verify
is good "$code $(value verdict) $(value launches) $(value blocks)" '0 "verified" 1000 64'
is good-runs "$(runs)" 3
is remembered "$(value remembered) $(ls cache/neap/verified | wc -l)" "true 1"
is run-knows "$(neap run ./program.sh 2>&1 < /dev/null | head -n 1)" "epoch 0"
cat > show.sh <<'END'
#!/bin/sh
echo "verified=$NEAP_VERIFIED"
[ "$NEAP_HOOK" = verify ] && echo "neap-verify: launches 1 blocks 1" >&2
exit 0
END
chmod +x show.sh
is before "$(neap run ./show.sh)" verified=
is in-words "$(neap verify ./show.sh)" "verified: 1 launches, 1 blocks; 1 lines of output are the same to the byte"
is after "$(neap run ./show.sh)" verified=1
is other-words "$(neap run ./show.sh x)" verified=
echo '# changed' >> show.sh
is other-contents "$(neap run ./show.sh)" verified=
XDG_CACHE_HOME=/dev/null neap verify ./show.sh > answer 2> said
is not-remembered "$? $(grep -c 'cannot make the folder' said)" "0 1"
rm -f runs

# ---- bad: every place of the launch and the block
for place in '0 0' '999 63' '1 62' '500 31' '617 40' '256 0'; do
    set -- $place
    BAD_LAUNCH=$1 BAD_BLOCK=$2 verify
    is "bad at $place" "$code $(value verdict) $(value launch) $(value block) $(value alone) $(value block_bytes)" \
        "1 \"differs\" $1 $2 true 1048576"
    is "kernel at $place" "$(value kernel)" '"void gemm<float, 4>(int, block 8)"'
    count=$(runs)
    is "runs at $place: $count" "$((count <= 4 + 10 + 1 + 6 + 1))" 1
done
is bad-difference "$(value line) $(value first) $(value second)" '2 "loss 0.5" "loss nan"'
LAUNCHES=1 BLOCKS=1 BAD_LAUNCH=0 verify
is bad-only "$code $(value launch) $(value block)" "1 0 0"
BAD_LAUNCH=77 BAD_BLOCK=5 CRASH=1 verify
is bad-crash "$code $(value launch) $(value block) $(value line)" "1 77 5 null"
BAD_LAUNCH=600 TOGETHER=20 BAD_BLOCK=9 verify
is bad-together "$code $(value launch) $(value block) $(value alone)" "1 600 9 false"
BAD_LAUNCH=617 BAD_BLOCK=40 neap verify ./program.sh > answer 2> said < /dev/null
is bad-in-words "$? $(head -n 2 answer | tr '\n' ' ')" "1 not verified: launch 617 of 1000, void gemm<float, 4>(int, block 8), uses block 40 (1.049 MB) in a way that neap does not see. "
is bad-not-remembered "$(ls cache/neap/verified | wc -l)" 2
rm -f runs

# ---- what cannot be told
cat > random.sh <<'END'
#!/bin/sh
echo same
echo "time $(cat count 2> /dev/null)"
echo x >> count
END
chmod +x random.sh
neap verify ./random.sh > answer 2> said
is not-deterministic "$? $(head -n 1 answer)" "2 cannot tell: two plain runs of this program are not alike"
is not-deterministic-line "$(grep -c 'line 2 of its output, second run: time x' answer)" 1
is not-deterministic-hint "$(grep -c manual_seed answer)" 1
CODE=3 verify
is fails "$code $(value verdict)" '2 "the program fails"'
neap verify -- sh -c 'echo sorry >&2; exit 4' > answer 2> said
is fails-in-words "$? $(tr '\n' ' ' < answer)" "2 cannot tell: sh, run plainly, ends with exit code 4   sorry "
neap verify -- no-such-program > answer 2> said
is not-found "$? $(grep -c 'there is no such program' answer)" "2 1"
NOISE=1 verify
is not-poison "$code $(value verdict) $(value second)" '1 "differs without cause" "noise"'
MUTE=1 verify
is nothing-seen "$code $(value verdict)" '2 "nothing seen"'
LAUNCHES=0 verify
is nothing-launched "$code $(value verdict)" '2 "nothing seen"'
STUCK=0 verify
is stuck "$code $(value verdict)" '2 "blocks cannot be taken away"'
STUCK=0 neap verify ./program.sh > answer 2> said < /dev/null
is stuck-in-words "$? $(cat answer)" "2 cannot tell: no room"
rm -f runs
fails no-program 2 'no PROGRAM was given' neap verify
fails keep-nowhere 2 'cannot make' neap verify --keep no/such/folder -- ./program.sh

# ---- what the runs printed
verify --keep kept
is kept "$(ls kept | tr '\n' ' ')" "01-plain.err 01-plain.out 02-plain.err 02-plain.out 03-verify.err 03-verify.out "
is kept-out "$(tr '\n' ' ' < kept/03-verify.out)" "epoch 0 loss 0.5 "
is nothing-left "$(ls | grep -v -E '^(answer|said|runs|count|kept|cache|e|o|fake.c|libneap_hook.so|.*\.sh)$')" ""

finish
