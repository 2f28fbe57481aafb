#!/usr/bin/env bash
# The pictures of configs/sweeps/single_sample*.json in docs/tutorial.md: throughput, exposed communication and peak memory
# over the length of the sequence, or over GPUs where it has one length; a curve for each scheme; a row for each system,
# where there are several, and dashed with a reducing switch, where some points have one. Needs gnuplot.
#
#   scripts/plot_single_sample.sh out/single_sample/results.csv docs/images/single-sample.svg
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,7p' "$0"; exit 2; }
results=$1

column() { head -1 "$results" | tr ',' '\n' | grep -nx "$1" | cut -d: -f1 || true; }
scheme=$(column scheme.name) length=$(column workload.sequence) status=$(column status)
values() {  # of a column, in the order of the table; without it, one that is everybody's
  awk -F, -v c="${1:-0}" 'NR > 1 { v = c ? $c : "all" } NR > 1 && !seen[v]++ { print v }' "$results"
}
system=$(column system) switch=$(column switch_reduce)
over='sequence, Ki tokens' unit=1024 keyed=communication_exposed_s
if [ "$(values "$length" | wc -l)" = 1 ]; then
  over=GPUs unit=1 length=$(column gpus) system="" keyed=tokens_per_s
fi
rows() {  # of a system, a scheme and a switch: length and metric
  awk -F, -v y="$1" -v s="$2" -v w="$3" -v c="$(column "$4")" -v f="$5" -v cy="${system:-0}" -v cw="${switch:-0}" \
    "\$$scheme == s && (!cy || \$cy == y) && (!cw || \$cw == w) && \$$status == \"ok\" { print \$$length / $unit, \$c * f }" \
    "$results" | sort -g
}
schemes=$(values "$scheme") systems=$(values "$system") switches=$(values "$switch")
declare -A colors=([data_parallel]='#333333' [megatron]='#1f77b4' [ulysses]='#d62728' [ulysses_ring]='#2ca02c'
  [context_parallel]='#9467bd' [ring_attention]='#ff7f0e' [single_sample]='#8c564b' [ring_self_attention]='#17becf')
count=$(wc -w <<<"$systems")

{
  echo "set terminal svg size 1200,$((60 + 370 * count)) font 'sans-serif,12' background 'white'; set output '$2'"
  echo "set multiplot layout $count,3; set logscale x 2; set grid ytics lc '#dddddd'; set xlabel '$over'"
  echo "set offsets 0, 0, graph 0.05, 0; set yrange [0:*]"
  row=0
  for of in $systems; do
    [ "$count" = 1 ] || echo "set title '$of' noenhanced"
    for panel in "tokens_per_s:1e-6:million tokens a second" \
      "communication_exposed_s:1e3:exposed communication, ms" "peak_memory_bytes:1e-9:peak memory, GB"; do
      IFS=: read -r metric factor title <<<"$panel"
      plot="" number=-1
      for name in $schemes; do
        dash=0 number=$((number + 1)) label="title '${name//_/ }'"
        for with in $switches; do
          dash=$((dash + 1))
          data=$(rows "$of" "$name" "$with" "$metric" "$factor")
          [ -n "$data" ] || continue
          echo "\$d${row}_${number}_$dash << E"; echo "$data"; echo E
          plot+="${plot:+, }\$d${row}_${number}_$dash with linespoints lw 2 pt 7 ps 0.5 dt $dash lc '${colors[$name]:-#7f7f7f}' $label"
          label=notitle
        done
      done
      [ "$metric" != peak_memory_bytes ] || [ "$over" != GPUs ] && echo "set logscale y; set yrange [*:*]; set offsets 0, 0, 0, 0" ||
        echo "unset logscale y; set yrange [0:*]; set offsets 0, 0, graph 0.05, 0"
      [ "$metric" = "$keyed" ] && [ "$row" = 0 ] && echo "set key top left Left reverse samplen 1.5 spacing 0.85 font ',10'" || echo "unset key"
      echo "set ylabel '$title'; plot $plot"
    done
    row=$((row + 1))
  done
} | gnuplot
