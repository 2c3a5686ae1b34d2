#!/bin/bash
# The golden tests under CTest, on the command of this build.
NEAP=$NEAP_COMMAND exec bash "$(dirname "$0")/run.sh"
