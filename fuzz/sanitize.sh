#!/bin/sh
# The fuzz targets under the address sanitizer: fuzz/sanitize.sh [INPUTS] [SECONDS]
# On so many inputs that are always the same, for each target; with cargo-fuzz on new ones too, so long for each target.
set -eu
cd "$(dirname "$0")/.."
inputs="${1:-20000}"
seconds="${2:-20}"

if ! cargo +nightly --version > /dev/null 2>&1; then
    echo "the address sanitizer needs nightly Rust: rustup toolchain install nightly" >&2
    exit 2
fi
host="$(rustc +nightly --print host-tuple)"
# With a target the flags don't apply to build scripts, which have no sanitizer.
CARGO_TARGET_DIR=target/sanitize RUSTFLAGS=-Zsanitizer=address \
    cargo +nightly run --quiet --target "$host" --profile fuzz --package onnxref-fuzz -- "$inputs"
echo "the address sanitizer found nothing in $inputs inputs of each target"

if ! cargo +nightly fuzz --version > /dev/null 2>&1; then
    echo "without cargo-fuzz that is all: see fuzz/README.md"
    exit 0
fi
python3 fuzz/make_seeds.py
for target in load model tensor operators external graphs; do
    cargo +nightly fuzz run --sanitizer address "$target" -- -max_total_time="$seconds" -max_len=4096 -timeout=60
done
