#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests. Arguments go to ctest, for example: -L unit, -R Config.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install_deps.sh --test
./scripts/build.sh release
ctest --preset release -j "$(nproc)" "$@"
