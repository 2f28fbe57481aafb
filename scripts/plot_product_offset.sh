#!/usr/bin/env bash
# The picture of configs/sweeps/product_offset.json in docs/validation.md: time and peak memory of a distributed product
# over the rows that are gathered at a time. Needs gnuplot.
#
#   scripts/plot_product_offset.sh out/offset/results.csv docs/images/product-offset.svg
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,5p' "$0"; exit 2; }
results=$1

column() { head -1 "$results" | tr ',' '\n' | grep -nx "$1" | cut -d: -f1; }
rows=$(awk -F, -v o="$(column workload.offset)" -v t="$(column iteration_time_s)" -v m="$(column peak_memory_bytes)" \
  'NR > 1 { print $o, 1e3 * $t, 1e-9 * $m }' "$results" | sort -g)
gnuplot <<PLOT
set terminal svg size 640,360 font 'sans-serif,12' background 'white'; set output '$2'
set logscale x; set grid lc '#dddddd'; set key top center samplen 2
set xlabel 'offset: rows gathered at a time'; set xrange [40:32000]; set xtics (50, 250, 1000, 5000, 25000)
set ylabel 'time, ms'; set ytics nomirror; set yrange [160:190]
set y2label 'peak memory, GB'; set y2tics; set y2range [14:24]
\$rows << E
$rows
E
plot \$rows using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc '#0868ac' title 'time', \
     \$rows using 1:3 axes x1y2 with linespoints lw 2 dt 2 pt 5 ps 0.5 lc '#d95f02' title 'peak memory'
PLOT
