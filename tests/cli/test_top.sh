#!/bin/bash
# neap top, asking the watching thread that a program under neap has.
listener=${NEAP_HOOK_LISTENER:?}
. "$(dirname "$0")/fake.sh"
cd "$work" || exit 2

# listen WORD...: begins one; its number is in $pid, and its end is `stop`
listen() {
    mkfifo "in.$1" || exit 2
    "$listener" "$@" < "in.$1" &
    pid=$!
    exec 9> "in.$1"
    for _ in $(seq 1000); do
        [ -S "$work/neap/$pid.sock" ] && return
        sleep 0.02
    done
}
stop() { exec 9>&-; wait "$pid"; }

# Other programs of this user may run under neap at this moment, with their sockets in /tmp: what is said without a number
# is looked at only where there were none, before and after.
alone() { ! ls /tmp/neap-"$(id -u)"/*.sock > /dev/null 2>&1; }
if alone; then
    neap top --once > none.out 2> none.err
    none=$?
    alone && is none "$none $(grep -c 'no program of yours runs under neap' none.err) $(cat none.out)" "1 1 "
fi
fails not-ours 1 'process 1 is not yours, does not run under neap' neap top 1
fails nonsense 2 "PID is the number of a process, not 'python'" neap top python
fails zero 2 'PID is the number' neap top 0

listen first
neap top --once $pid > shown
is lines "$(wc -l < shown)" 2
is first "$(sed -n 1p shown)" "cuda:0: run, holds 330.0 MB of 336.8 MB, peak load 481.2 MB, 1,280 iterations, 12.1 MB out, 12.0 MB in, overhead 0.80 %, left the plan 3x"
is second "$(sed -n 2p shown)" 'cuda:1: stepped aside: a "quoted" reason'
if alone; then
    neap top --once | head -n 1 > only
    alone && is only "$(cat only)" "$(sed -n 1p shown)"
fi
is json "$(neap top --once --json $pid | cut -c 1-20)" '[{"device": "cuda:0"'
is json-lines "$(neap top --once --json $pid | wc -l)" 1
neap top $pid > shown 9>&- & # until the program ends
top=$!
for _ in $(seq 1500); do
    [ "$(wc -l < shown)" -ge 4 ] && break # it has asked twice
    sleep 0.02
done
stop
wait $top
is ends-with-it "$? $(($(wc -l < shown) >= 4))" "0 1"
is gone "$(ls neap)" ""

listen evil
neap top --once $pid > shown
is escaped "$(LC_ALL=C grep -c "$(printf '[\033\233\256]')" shown)" 0
is escaped-text "$(sed -n 2p shown | grep -c '^cuda:1: stepped aside: a.*2J')" 1
neap top --once --json $pid > shown
is escaped-json "$(LC_ALL=C grep -c "$(printf '[\033\233\256]')" shown)" 0
stop

listen none
is no-device "$(neap top --once $pid)" "no device is used yet"
stop
finish
