#!/bin/bash
# Builds into build/ordinary: a virtual environment with PyTorch's CUDA wheel (3 GB, once) and the libraries that stand in
# for a GPU (gpu/). Says what is missing, and leaves with 2, where that cannot be had.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
home=$PWD/build/ordinary
mkdir -p "$home/lib" "$home/src"

need() { # need WHAT COMMAND...
    what=$1
    shift
    "$@" >/dev/null 2>&1 || { echo "ordinary: needs $what" >&2; exit 2; }
}
need "gcc" command -v gcc
need "python3 with venv" python3 -c 'import ensurepip, venv'
cuda=${CUDA_HOME:-/usr/local/cuda}
need "the CUDA toolkit's headers, 13.x (CUDA_HOME; looked for in $cuda)" test -f "$cuda/include/cupti.h"

if [ ! -f "$home/venv/complete" ]; then
    echo "ordinary: installing PyTorch into build/ordinary/venv (3 GB, once)"
    pip="$home/venv/bin/pip"
    python3 -m venv "$home/venv"
    {
        $pip install -q --no-deps torch==2.11.0 torchvision==0.26.0 &&
            $pip install -q numpy filelock typing_extensions sympy networkx jinja2 fsspec setuptools pillow &&
            $pip install -q --no-deps transformers==5.23.0 accelerate==1.15.0 safetensors regex tqdm pyyaml packaging \
                psutil pytorch-lightning torchmetrics lightning-utilities &&
            $pip install -q huggingface_hub tokenizers requests httpx2 typer shellingham
    } >"$home/pip.log" 2>&1 || {
        tail -n 3 "$home/pip.log" >&2
        echo "ordinary: needs the wheels of PyTorch 2.11 and torchvision 0.26, which pip could not get" >&2
        exit 2
    }
    touch "$home/venv/complete"
fi

cp -u bench/ordinary/gpu/* "$home/src"
cd "$home/src"
if [ ../lib/complete -nt driver.c ] && [ -z "$(find . -newer ../lib/complete -name '*.[ch]' ! -name 'stub_*' | head -n 1)" ]; then
    exit 0
fi
packages=$(echo "$home"/venv/lib/python3*/site-packages)
for file in "$packages"/torch/lib/*.so "$packages"/torchvision/*.so; do
    [ -f "$file" ] && nm -D --undefined-only "$file" 2>/dev/null | awk '{ print $2 }'
done | sort -u >undefined.txt
python3 gen_names.py "$cuda" >names.inc
python3 gen_driver_stubs.py "$cuda" >driver_stubs.c
python3 gen_stubs.py undefined.txt driver.c cudart.c cupti.c blas.c dnn.c
compile="gcc -O2 -g -fPIC -shared -w -I$cuda/include -L../lib"
$compile -Wl,-soname,libcuda.so.1 -o ../lib/libcuda.so.1 driver.c fatbin.c driver_stubs.c -lpthread -ldl
ln -sf libcuda.so.1 ../lib/libcuda.so
library() { # library SONAME SOURCES...
    soname=$1
    base=${soname%%.so*}
    shift
    $compile -Wl,-soname,"$soname" -Wl,--version-script="stub_$base.map" -o "../lib/$soname" "$@" "stub_$base.c" \
        -lcuda -lpthread -ldl
}
library libcudart.so.13 cudart.c
library libcupti.so.13 cupti.c
library libcublas.so.13 blas.c
library libcublasLt.so.13 blas.c
library libcudnn.so.9 dnn.c
for soname in libcufft.so.12 libcurand.so.10 libcusparse.so.12 libcusolver.so.12 libcusparseLt.so.0 libnccl.so.2 \
    libnvrtc.so.13 libnvshmem_host.so.3 libcufile.so.0 libnvjpeg.so.13; do
    library $soname
done
$compile -o ../lib/liboracle.so oracle.c -lcuda -ldl
touch ../lib/complete
