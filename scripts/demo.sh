#!/bin/bash
# Shows what neap does to a recorded training run: its period, its plan, and what other allocators would hold. Draws the
# plan into the build folder. `make demo` builds first.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${NEAP_BUILD_DIR:-$root/build}
neap=$build/neap
trace=$root/tests/data/traces/vgg16-100-32.neap.gz
picture=$build/neap-demo.svg
[ -x "$neap" ] || { echo "demo.sh: $neap is not there yet; run 'make' first" >&2; exit 2; }

say() { printf '\n%s\n\n' "$*"; }
run() { printf '$ neap %s\n' "$*"; (cd "$root" && "$neap" "$@"); }
trace=${trace#"$root"/}
short=${picture#"$root"/}

say "A recording of VGG-16 training on CIFAR-10 images, batch 100: every allocation and every kernel of four steps."
run info "$trace"

say "One step repeats. So where every block should stand can be worked out once, before the next step begins:"
run plan "$trace" --svg "$short"

if command -v rsvg-convert > /dev/null; then
    (cd "$root" && rsvg-convert --zoom 1.5 "$short" -o "${short%.svg}.png")
    short="$short and ${short%.svg}.png"
fi
cat << END

The picture: $short
It shows one training step. Time runs from left to right, addresses from bottom to top; each rectangle is a block, where
the plan puts it, for as long as it lives. Grey is always there: weights and momentum. Dark blocks are activations, kept
from the forward to the backward pass; bright ones live for a few kernels and fill the gaps. The orange line is all the
device memory that is held, the blue one the proven bound: where they meet, no placement of these blocks is better.

Try next:
  build/neap plan --solver bestfit $trace
      the paper's own algorithm, largest block first
  build/neap info tests/data/traces/resnet18-100-log.neap.gz
      a training loop whose steps differ
  build/neap plan --json $trace
      the same answer for programs
END
