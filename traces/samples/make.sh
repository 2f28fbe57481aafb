#!/usr/bin/env bash
# make.sh [WEFT]: makes the traces of this folder again, to the byte, from the runs beside them.
set -euo pipefail
cd "$(dirname "$0")"

weft=${1:-../../build/release/cli/weft}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
for name in generated_resnet50 generated_bert_large; do
  "$weft" run "$name.json" -o "$runs/$name" --no-progress
  "$weft" export trace "$runs/$name" -o "$name.weft.json.gz"
done
