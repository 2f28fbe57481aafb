#!/usr/bin/env bash
# run.sh [--smoke] [NAME...]: whole runs of the simulator, those whose names contain one of NAMEs or all of them, one after
# another on one core unless the name says so; a table in Markdown of wall and CPU time, memory and what the run tells.
# --smoke: the same runs, small, to see that they work. WEFT: the program (default: build/release/cli/weft).
set -euo pipefail
cd "$(dirname "$0")/.."
weft=$(realpath "${WEFT:-build/release/cli/weft}")
smoke=false
[ "${1:-}" != --smoke ] || { smoke=true; shift; }
wanted=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$weft" "$work/weft"  # a build meanwhile would make another program of it
export WEFT_REGIMES=     # nothing is known, where a row does not say so

size() { if $smoke; then echo "$2"; else echo "$1"; fi }  # of the whole run, of the small one
is_wanted() {
  local name
  for name in ${wanted[@]+"${wanted[@]}"}; do [[ $1 != *"$name"* ]] || return 0; done
  [ ${#wanted[@]} = 0 ]
}
timed() {  # COMMAND...: its wall and CPU time as two cells
  local TIMEFORMAT='%R %U %S'
  { time "$work/weft" "$@" >"$work/said" 2>"$work/error"; } 2>"$work/time" || { cat "$work/error" >&2; return 1; }
  awk '{ printf "%.2f | %.2f", $1, $2 + $3 }' "$work/time"
}
field() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),\{0,1\}$/\1/p" "$work/run/result.json" | head -n 1; }

# NAME CONFIGURATION ARGUMENTS...: of `weft run`
row() {
  local name=$1 cells
  is_wanted "$name" || return 0
  rm -rf "$work/run"
  echo "$2" >"$work/config.json"
  shift 2
  cells=$(timed run "$work/config.json" --no-progress --keep result -o "$work/run" "$@")
  [ -n "$(field time_s)" ] && [ -n "$(field peak_rss_bytes)" ] || { echo "$name: no times in its result.json" >&2; return 1; }
  awk -v name="$name" -v cells="$cells" -v time="$(field time_s)" -v memory="$(field peak_rss_bytes)" \
    -v moved="$(field memory_transactions)" \
    'BEGIN { printf "| %s | %s | %.0f | %.3f | %.2f |\n", name, cells, memory / 1e6, time * 1e3, moved / 1e6 }'
}

# NAME: of 200 points that share what they find out through $WEFT_REGIMES
sweep_row() {
  local cells
  is_wanted "$1" || return 0
  rm -rf "$work/sweep"
  cells=$(timed sweep "$work/sweep.json" -j 2 -o "$work/sweep")
  echo "| $1 | $cells | | | |"
}

printf '%s, %s cores, load %s\n\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
echo "| run | wall, s | CPU, s | memory, MB | iteration, ms | million transactions |"
echo "|---|---|---|---|---|---|"

resnet() {  # batch, fidelity
  echo '{"system": "dgx-a100", "gpus": '"$(size 8 2)"', "fidelity": "'"$2"'",
    "workload": {"model": "resnet50", "batch": '"$1"', "precision": "amp"'"$(size '' ', "layers": 1')"'}}'
}
row "ResNet-50, sampled, nothing known" "$(resnet "$(size 16 1)" sampled)"
if is_wanted "ResNet-50, sampled, all known"; then
  export WEFT_REGIMES=$work/regimes
  resnet "$(size 16 1)" sampled >"$work/first.json"
  "$work/weft" run "$work/first.json" --no-progress --keep result -o "$work/first" >/dev/null
  row "ResNet-50, sampled, all known" "$(resnet "$(size 16 1)" sampled)"
  export WEFT_REGIMES=
fi
row "ResNet-50 of few samples, sampled" "$(resnet "$(size 4 1)" sampled)"
row "ResNet-50 of few samples, cycle" "$(resnet "$(size 4 1)" cycle)"

all_reduce() {  # bytes, algorithm, fidelity
  echo '{"system": "hgx-h100", "gpus": 8, "fidelity": "'"$3"'", "workload": {"collective": "all_reduce", "bytes": '"$1"'},
    "all_reduce": {"algorithm": "'"$2"'"}}'
}
row "all-reduce, long, rings, sampled" "$(all_reduce "$(size 1073741824 1048576)" ring sampled)"
row "all-reduce, long, in switch, sampled" "$(all_reduce "$(size 1073741824 1048576)" in_switch sampled)"
for bytes in $(size "4194304 16777216 67108864 268435456" "65536 262144"); do
  row "all-reduce of $bytes B, rings, cycle" "$(all_reduce "$bytes" ring cycle)"
done
row "all-reduce, auto, cycle" "$(all_reduce "$(size 67108864 262144)" auto cycle)"
row "all-reduce, auto, cycle, two threads" "$(all_reduce "$(size 67108864 262144)" auto cycle)" --threads 2

fat_tree=$(cat configs/experiments/scale_fat_tree.json)
few=$(size 4096 32)
row "fat tree, long, ring, sampled" "$fat_tree" --set "gpus=$few" --set fidelity=sampled --set "workload.bytes=$(size 268435456 1048576)"
row "fat tree, ring, cycle" "$fat_tree" --set "gpus=$few"
for gpus in $(size "8 64 512 4096" "8 32"); do
  row "fat tree of $gpus GPUs, halving-doubling, cycle" "$fat_tree" --set "gpus=$gpus" --set all_reduce.algorithm=halving_doubling
done
row "fully connected, direct, cycle" "$(cat configs/experiments/scale_fully_connected.json)" --set "gpus=$(size 512 16)"
row "BERT-large, cluster, sampled" '{"system": "hgx-h100-cluster", "gpus": '"$(size 1024 16)"', "fidelity": "sampled",
  "workload": {"model": "bert-large", "batch": '"$(size 4 1)"''"$(size '' ', "layers": 1')"'}}'

if ! $smoke; then
  sed '1,/"workload"/s/"workload"/"fidelity": "sampled", &/' configs/sweeps/resnet50_network.json >"$work/sweep.json"
  sweep_row "sweep of 200, nothing shared, two jobs"
  export WEFT_REGIMES=$work/regimes_of_sweep
  sweep_row "sweep of 200, shared, two jobs"
  sweep_row "sweep of 200, all known, two jobs"
fi
