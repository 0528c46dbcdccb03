#!/bin/sh
# Packs what `onnxref generate --opset 28 --seed 1 -o FOLDER` wrote: sh tools/pack_generated.sh FOLDER
set -eu
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w --format=ustar \
    -C "$1" --transform 's,^\./,generated-opset28/,' -cf - $(cd "$1" && ls -d ./*) \
    | xz -9e > "$(dirname "$0")/../onnx-test-data/generated-opset28.tar.xz"
