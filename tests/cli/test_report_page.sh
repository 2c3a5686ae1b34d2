#!/bin/bash
# The page of `neap report` in a browser without a screen: opened, zoomed, pointed at, its limit moved, and what it shows
# compared with what `neap plan` and `neap swap` say.
if ! command -v python3 > /dev/null; then
    echo "skipped: no python3"
    exit 77
fi
exec python3 "$(dirname "$0")/report_page.py"
