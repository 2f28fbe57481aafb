#!/usr/bin/env bash
# largest_sequence.sh [SYSTEM...]: the longest sequence, in powers of two, that fits into the GPUs' memory with each
# scheme and number of GPUs: one layer of attention (hidden 4096, 32 heads, causal, BF16 or FP16), forward and backward.
# A table in Markdown a system; nothing is simulated.
set -euo pipefail
cd "$(dirname "$0")/.."
weft=${WEFT:-build/release/cli/weft}
[ $# -gt 0 ] || set -- dgx-a100 hgx-h100 hgx-h100-cluster
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fits() { # system gpus scheme tokens
  local config="$folder/config.json"
  cat >"$config" <<END
{"system": "$1", "gpus": $2, "scheme": {"name": "$3", "split": "striped"},
 "workload": {"model": "attention", "sequence": $4, "hidden": 4096, "heads": 32, "causal": true}}
END
  "$weft" validate "$config" 2>/dev/null | grep -q ': fits$'
}

for system in "$@"; do
  case $system in *-cluster) counts="8 16 32 64" ;; *) counts="1 2 4 8" ;; esac
  printf '| %s | %s |\n|---%s|\n' "$system" "$(sed 's/ / | /g' <<<"$counts")" "$(sed 's/[0-9]* */|---/g' <<<"$counts ")"
  for scheme in data_parallel megatron single_sample ring_self_attention context_parallel ulysses ulysses_ring ring_attention; do
    row="| \`$scheme\` |"
    for gpus in $counts; do
      tokens=1024
      fits "$system" "$gpus" "$scheme" "$tokens" || { row+=" - |"; continue; }
      while [ "$tokens" -lt $((1 << 28)) ] && fits "$system" "$gpus" "$scheme" $((2 * tokens)); do tokens=$((2 * tokens)); done
      if [ "$tokens" -ge 1048576 ]; then row+=" $((tokens / 1048576)) Mi |"; else row+=" $((tokens / 1024)) Ki |"; fi
    done
    echo "$row"
  done
  echo
done
