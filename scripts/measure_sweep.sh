#!/usr/bin/env bash
# measure_sweep.sh [SWEEP [KILLS]]: runs a sweep on 2 cores and prints its efficiency; then once more, killed (SIGKILL) at
# KILLS random moments and resumed, and checks that the table is the same to the byte and no run was computed twice.
set -euo pipefail
cd "$(dirname "$0")/.."
sweep=${1:-configs/sweeps/resnet50_network.json} kills=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo "line $LINENO failed"' ERR
cp build/release/cli/weft "$work/weft"  # a build meanwhile would make another program of it
weft=$work/weft
costs() { cat "$work/$1"/points/*/cost.json | awk -F'[:,]' -v name="\"$2\"" '$1 ~ name { sum += $2 } END { print sum }'; }
done_runs() { { find "$work/killed/points" -mindepth 1 -maxdepth 1 2>/dev/null || true; } | wc -l; }

begin=$(date +%s.%N)
"$weft" sweep "$sweep" -o "$work/whole" -j 2 >"$work/said"
wall=$(awk -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { print end - begin }')
awk -v wall="$wall" -v cpu="$(costs whole cpu_s)" -v busy="$(costs whole wall_s)" 'BEGIN {
  printf "wall %.1f s; CPU time of the runs / (2 x wall) %.3f; both places taken %.3f of the time\n", wall, cpu / 2 / wall, busy / 2 / wall
}'

points=$(find "$work/whole/points" -mindepth 1 -maxdepth 1 | wc -l)
for ((kill = 1; kill <= kills; ++kill)); do
  # From where it is to some run of the rest, with a moment more, so that it hits any part of a run.
  before=$(done_runs)
  until=$((before + 1 + RANDOM * (points - before) / (32768 * (kills - kill + 1))))
  "$weft" sweep "$sweep" -o "$work/killed" -j 2 --resume >/dev/null 2>&1 &
  process=$!
  while [ "$(done_runs)" -lt "$until" ] && [ -d "/proc/$process" ]; do sleep 0.05; done
  sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
  kill -9 "$process" 2>/dev/null || true
  wait "$process" 2>/dev/null || true
  echo "killed with $(done_runs) of $points runs done"
  [ ! -d "$work/killed/points" ] || (cd "$work/killed/points" && stat -c '%n %i %Y' ./*/result.json 2>/dev/null || true) >>"$work/seen"
done
"$weft" sweep "$sweep" -o "$work/killed" -j 2 --resume >"$work/said"
head -n 1 "$work/said"
cmp "$work/whole/results.csv" "$work/killed/results.csv"
cmp "$work/whole/results.sqlite" "$work/killed/results.sqlite"
twice=$(sort -u "$work/seen" | while read -r name inode time; do
  [ "$(stat -c '%i %Y' "$work/killed/points/$name")" = "$inode $time" ] || echo "$name"
done)
[ -z "$twice" ] || { echo "computed twice: $twice"; exit 1; }
echo "the same table; nothing done was computed again"
