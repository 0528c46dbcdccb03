#!/bin/sh
# A short run of all targets: fuzz/short.sh [SECONDS]
# On stable Rust inputs that are always the same; with nightly Rust and cargo-fuzz new ones too, so long for each target.
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-20}"

cargo run --quiet --profile fuzz --package onnxref-fuzz -- 20000

if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "without nightly Rust and cargo-fuzz that is all: see fuzz/README.md"
    exit 0
fi
python3 fuzz/make_seeds.py
for target in load model tensor operators external graphs nodes document text; do
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=4096 -timeout=20
done
