#!/usr/bin/env bash
# The picture of configs/sweeps/single_sample.json in docs/tutorial.md: throughput, exposed communication and peak memory
# over the length of the sequence, a curve for each scheme, without a reducing switch (solid) and with one (dashed).
# Needs gnuplot.
#
#   scripts/plot_single_sample.sh out/single_sample/results.csv docs/images/single-sample.svg
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,7p' "$0"; exit 2; }
results=$1

column() { head -1 "$results" | tr ',' '\n' | grep -nx "$1" | cut -d: -f1; }
scheme=$(column scheme.name) length=$(column workload.sequence) switch=$(column switch_reduce)
status=$(column status)
rows() {  # of a scheme and a switch: length and metric
  awk -F, -v s="$1" -v w="$2" -v c="$(column "$3")" -v f="$4" \
    "\$$scheme == s && \$$switch == w && \$$status == \"ok\" { print \$$length / 1024, \$c * f }" "$results" | sort -g
}
schemes=$(awk -F, "NR > 1 && !seen[\$$scheme]++ { print \$$scheme }" "$results")
switches=$(awk -F, "NR > 1 && !seen[\$$switch]++ { print \$$switch }" "$results")
colors=('#333333' '#1f77b4' '#d62728' '#2ca02c' '#9467bd' '#ff7f0e' '#8c564b' '#17becf')

{
  echo "set terminal svg size 1200,430 font 'sans-serif,12' background 'white'; set output '$2'"
  echo "set multiplot layout 1,3; set logscale x 2; set grid ytics lc '#dddddd'; set xlabel 'sequence, Ki tokens'"
  echo "set offsets 0, 0, graph 0.05, 0; set yrange [0:*]"
  for panel in "tokens_per_s:1e-6:million tokens a second" \
    "communication_exposed_s:1e3:exposed communication, ms" "peak_memory_bytes:1e-9:peak memory, GB"; do
    IFS=: read -r metric factor title <<<"$panel"
    plot="" number=0
    for name in $schemes; do
      dash=1
      for with in $switches; do
        echo "\$d${number}_$dash << E"; rows "$name" "$with" "$metric" "$factor"; echo E
        label="title '${name//_/ }'"
        [ "$dash" = 1 ] || label=notitle
        plot+="${plot:+, }\$d${number}_$dash with linespoints lw 2 pt 7 ps 0.5 dt $dash lc '${colors[$number]}' $label"
        dash=$((dash + 1))
      done
      number=$((number + 1))
    done
    [ "$metric" = peak_memory_bytes ] && echo "set key top left samplen 2" || echo "unset key"
    echo "set ylabel '$title'; plot $plot"
  done
} | gnuplot
