#!/bin/bash
# The golden tests under CTest, on the command of this build.
# Where races are looked for, those cases in which the command has threads.
case ${NEAP_SANITIZE:-}${NEAP_SOAK:-} in thread) export NEAP_GOLDEN_ONLY='^(search|sweep|plan)' ;; esac
NEAP=$NEAP_COMMAND exec bash "$(dirname "$0")/run.sh"
