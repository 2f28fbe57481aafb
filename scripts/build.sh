#!/usr/bin/env bash
# build.sh [PRESET [TARGET...]]: configures and builds build/PRESET (release unless told otherwise).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
[ $# -eq 0 ] || shift
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
# Ninja runs CMake again by itself when a file of CMake changed.
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" -j "$(nproc)" "${targets[@]}"
