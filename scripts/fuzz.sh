#!/usr/bin/env bash
# fuzz.sh [SECONDS] [READER]...: builds the readers of traces (kineto, execution, chakra, nsys, trace, capture) with clang's
# libFuzzer and runs each for SECONDS (600). Inputs grow in build/fuzz/corpus/READER; put real files there to begin with,
# beside those that are made here of what weft writes itself and of Nsight Systems.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
shift || true
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=(kineto execution chakra nsys trace capture)

[ -d build/fuzz ] || cmake --preset fuzz
cmake --build --preset fuzz --target make_seeds "${readers[@]/%/_fuzzer}"
build/fuzz/tests/fuzz/make_seeds build/fuzz/corpus
for reader in "${readers[@]}"; do
  corpus=build/fuzz/corpus/$reader
  mkdir -p "$corpus"
  build/fuzz/tests/fuzz/"${reader}_fuzzer" -max_total_time="$seconds" -max_len=1048576 -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$reader-" "$corpus"
done
