#!/bin/bash
# Shows what neap does to a training run: VGG-16 three times, with plain allocation, with SmartPool, and with AutoSwap
# under a limit; then the plan of a recorded run, drawn into the build folder. `make demo` builds first.
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

say "VGG-16 is trained three times from the same seed, on this machine's CPU: about half a minute."
run train vgg16 --compare --iters 16
cat << END

Plain allocation is a malloc and a free for every block: it holds what is alive at once, the load, but a free waits for the
work under way. SmartPool watched a few iterations, planned, and serves every block of the later ones from one arena that
is hardly larger than the load. AutoSwap holds less than that: blocks that nothing needs for a while are on the host, and
back before they are needed. What was learned is the same to the last bit.
END

say "The same on a recording of PyTorch, VGG-16 at batch 100, every allocation and every kernel of four steps:"
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
  build/neap train resnet18 --limit 60%
      one run, with all its figures
  build/neap plan --solver bestfit $trace
      the paper's own algorithm, largest block first
  build/neap info tests/data/traces/resnet18-100-log.neap.gz
      a training loop whose steps differ
  build/neap train vgg16 --json
      the same answer for programs
END
