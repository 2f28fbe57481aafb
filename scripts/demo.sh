#!/usr/bin/env bash
# The main job on an example that needs no other data: ring all-reduce against reduction in the switch, under the
# backward pass of ResNet-50 on 8 GPUs. Installs what is missing and builds weft first.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install_deps.sh
./scripts/build.sh release weft
echo
./build/release/cli/weft compare configs/experiments/resnet50_overlap.json --all-reduce ring,in_switch -j "$(nproc)" \
  -o out/demo
echo "$PWD/out/demo/report.html"
