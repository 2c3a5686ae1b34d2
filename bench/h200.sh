#!/usr/bin/env bash
# h200.sh SLICE... [--models A,B] [--pairs N] [--seconds S]: what neap does to PyTorch programs on a GPU, measured.
# SLICE: pool, swap, tight, same, fit, departures, startup, ranks, verify, or all. bench/h200/README.md says how each row is made.
#
# Rows go to bench/results/h200.csv, in the place of those of the same model and setting, so that the table can be
# measured a slice at a time. NEAP_BUILD_DIR: a folder with neap and libneap_hook.so; without it both are built. PYTHON: a
# python3 with PyTorch, torchvision and transformers.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
build=${NEAP_BUILD_DIR:-build}

export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
case " $* " in
"  " | *" --help "* | *" -h "*) exec "$python" bench/h200/main.py --help ;;
esac
if [ -z "${NEAP_BUILD_DIR:-}" ]; then
    scripts/build.sh release product neap_hook
fi
for file in neap libneap_hook.so; do
    if ! [ -f "$build/$file" ]; then
        echo "h200.sh: $build has no $file" >&2
        exit 2
    fi
done
exec "$python" bench/h200/main.py --neap "$build/neap" --work "$build/h200" "$@"
