#!/bin/sh
# Includes point one way: base <- trace <- pool <- swap <- run, and base <- device <- memory <- run <- hook. What stands outside
# the library (cli/, nets/, examples/) sees neap.h, the headers of its own folder and the system's, nothing else; but the
# command trains networks, and sees nets/nets.h.
# check_includes.sh [ROOT] prints file:line for each include that breaks this, and leaves with 1 if there is one.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

find src cli nets examples -name '*.[ch]' -type f 2>/dev/null | sort | xargs -r awk '
    BEGIN {
        may["base"]   = " base "
        may["trace"]  = " base trace "
        may["pool"]   = " base trace pool "
        may["swap"]   = " base trace pool swap "
        may["device"] = " base device "
        may["memory"] = " base pool device memory "
        may["run"]    = " base trace pool swap device memory run "
        may["hook"]   = " base trace pool swap device memory run hook "
    }
    function bad(why) {
        printf "%s:%d: %s\n", FILENAME, FNR, why
        n_bad++
    }
    FNR == 1 {
        n = split(FILENAME, part, "/")
        inside = part[1] == "src"
        home = part[2]
        folder = FILENAME
        sub(/[^\/]*$/, "", folder)
        if (inside && !(home in may)) {
            bad("src/" home " has no place in the order of includes")
        }
    }
    !/^[ \t]*#[ \t]*include[ \t"<]/ { next }
    {
        line = $0
        sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
        mark = substr(line, 1, 1)
        name = substr(line, 2)
        sub(/[">].*$/, "", name)
        first = name
        sub(/\/.*$/, "", first)
    }
    mark == "<" {
        if (name == "neap.h" || (index(name, "/") && first in may)) {
            bad("<" name "> is one of ours: write it in quotes")
        }
        next
    }
    mark != "\"" { bad("an include that is not spelled out cannot be checked: " line); next }
    name == "neap.h" { next }
    part[1] == "cli" && name == "nets/nets.h" { next }
    inside && !(first in may && index(name, "/")) {
        bad("\"" name "\": name a header of the library by its folder, as in \"" home "/" name "\"")
        next
    }
    inside && !index(may[home], " " first " ") { bad(home " must not include " first ": \"" name "\""); next }
    !inside && (index(name, "..") || system("test -f \"" folder name "\"") != 0) {
        bad("\"" name "\": only neap.h, system headers and headers of this folder are allowed here")
    }
    END { exit n_bad > 0 }
'
[ $? -eq 0 ]
