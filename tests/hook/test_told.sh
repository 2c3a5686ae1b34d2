# What the program is told of its memory (--tell-limit), and what its user is told of plans that nobody has verified.
set -u
. "$(dirname "$0")/in_front.sh"
limit=4194304
on=(NEAP_HOOK=run NEAP_REPORT=report NEAP_REPORT_JSON=1)

complain() { # complain WHAT
    echo "$1: trainer ${options[*]}"
    cat got.err report
    touch wrong
}
totals() { sed -n 's/^trainer: memory [0-9]* of \([0-9]*\)$/\1/p' got.err; }
reported() { sed -n "s/.*\"$1\": \([0-9]*\)[,}].*/\1/p" report; }

# In bytes the limit holds from the first request on, and is all that the program is told of.
told_bytes() {
    options=(--iterations=16 --info=2)
    on+=(NEAP_TELL_LIMIT=1)
    alone 1 "${options[@]}" || return
    hooked 1 $limit "${options[@]}"
    [ "$(totals | uniq -c | awk '{ print $1, $2 }')" = "16 $(reported limit)" ] || complain "not always the limit"
    [ "$(reported limit)" = $limit ] || complain "it is another limit"
    [ "$(sed -n 's/^trainer: memory \([0-9]*\) of.*/\1/p' got.err | tail -n 1)" = $((limit - $(reported held))) ] ||
        complain "what is free is not what is left of the limit"
}

# In per cent there is none before the first plan with swaps: until then it is told what the device has.
is_told_share() {
    hooked 1 60% "${options[@]}"
    [ "$(totals | uniq)" = "$STANDIN_MEMORY
$(reported limit)" ]
}
told_share() {
    options=(--iterations=180 --pause=8 --info=2)
    on+=(NEAP_TELL_LIMIT=1)
    alone 1 "${options[@]}" || return
    tries "hook/told: a limit in per cent" is_told_share && return
    complain "not the device's memory first, and the limit then"
}

# Unless it is asked for, it is told what the device has.
not_told() {
    options=(--iterations=6 --info=2)
    alone 1 "${options[@]}" || return
    hooked 1 $limit "${options[@]}"
    [ "$(totals | uniq)" = "$STANDIN_MEMORY" ] || complain "it was told something else"
}

# says N LIMIT VARIABLE...: so often, that a plan with swaps is not verified.
has_plan() {
    hooked 1 "$1" "${options[@]}"
    [ "$(reported n_iterations)" -gt 0 ]
}
says() {
    options=(--iterations=16)
    alone 1 "${options[@]}" || return
    on+=("${@:3}")
    tries "hook/told: a plan with swaps" has_plan "$2"
    [ "$(reported n_iterations)" -gt 0 ] || complain "there was no plan"
    [ "$(grep -c '^neap: cuda:0: the plan has swaps, and the program is not verified (see neap verify)$' got.err)" -eq "$1" ] ||
        complain "not $1 times (${*:3})"
}

begin told_bytes
[ -n "$runtime" ] || begin told_share
[ -n "$runtime" ] || begin not_told
begin says 1 $limit
begin says 0 $limit NEAP_VERIFIED=1
[ -n "$runtime" ] || begin says 0 $limit NEAP_LOG=none
[ -n "$runtime" ] || begin says 0 ""
wait
say_retries
echo "$(cat "$work"/*/runs 2>/dev/null | wc -l) runs"
! ls "$work"/*/wrong >/dev/null 2>&1
