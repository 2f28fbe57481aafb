#!/usr/bin/env bash
# install_deps.sh [--test]: installs what weft is built from (Debian 12 packages), and with --test what only its tests
# use. Does nothing when all of it is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libsystemc-dev libfmt-dev nlohmann-json3-dev libcli11-dev libsimdjson-dev zlib1g-dev libzstd-dev libboost-dev
  libsqlite3-dev libprotobuf-dev protobuf-compiler libssl-dev libeigen3-dev
  libjs-chart.js
  libgtest-dev libgmock-dev libbenchmark-dev
)
# A browser with what drives it, gnuplot, Slurm, GNU parallel, and the shells that weft completes for.
[ "${1:-}" != --test ] ||
  packages+=(chromium-driver python3 gnuplot-nox slurmctld slurmd slurm-client munge parallel zsh fish)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "weft: this is no Debian; install what these packages hold yourself: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "weft: installing ${missing[*]} needs root or sudo" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
