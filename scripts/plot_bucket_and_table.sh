#!/usr/bin/env bash
# The picture of configs/sweeps/bucket_and_table.json in docs/validation.md: backward slowdown and iteration over the
# size of buckets, for a ring and for tables of the switch, a column for each model. Needs gnuplot.
#
#   scripts/plot_bucket_and_table.sh out/bucket_and_table/results.csv docs/images/bucket-and-table.svg
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,6p' "$0"; exit 2; }
results=$1

# Columns by name, since a sweep may have more of them than this one.
column() { head -1 "$results" | tr ',' '\n' | grep -nx "$1" | cut -d: -f1; }
model=$(column workload) algorithm=$(column all_reduce.algorithm) table=$(column switch_reduce.table_bytes_per_port)
bucket=$(column scheme.bucket_MiB)
rows() {  # of a model, an algorithm and a table: bucket and metric
  awk -F, -v m="$1" -v a="$2" -v t="$3" -v c="$(column "$4")" \
    "\$$model == m && \$$algorithm == a && (a == \"ring\" || \$$table == t) { print \$$bucket, \$c }" "$results" | sort -g
}
shade() {  # of table $1 of $2: the larger, the darker
  awk -v j="$1" -v n="$2" 'BEGIN { f = n > 1 ? j / (n - 1) : 1; printf "#%02x%02x%02x", 158 - 150 * f, 202 - 154 * f, 225 - 118 * f }'
}
tables=$(awk -F, "\$$algorithm == \"in_switch\" { print \$$table }" "$results" | sort -nu)

{
  echo "set terminal svg size 1200,620 font 'sans-serif,12' background 'white'; set output '$2'"
  echo "set multiplot layout 2,3; set logscale x 2; set grid ytics lc '#dddddd'; set xtics (0.0625, 0.25, 1, 4, 16, 64, 256)"
  echo "set xrange [0.05:320]; set offsets 0, 0, graph 0.05, graph 0.05"
  for metric in backward_slowdown iteration_time_s; do
    scale=1
    [ "$metric" = backward_slowdown ] || scale=1000
    for name in resnet50 vgg16 bert-large; do
      echo "\$ring << E"; rows "$name" ring 0 "$metric"; echo E
      i=0
      for t in $tables; do
        echo "\$table$i << E"; rows "$name" in_switch "$t" "$metric"; echo E
        i=$((i + 1))
      done
      [ "$metric" = backward_slowdown ] && echo "set title '$name'; set ylabel 'backward slowdown'; unset xlabel" ||
        echo "unset title; set ylabel 'iteration, ms'; set xlabel 'bucket, MiB'"
      # One legend, where the curves leave room.
      [ "$metric $name" = "iteration_time_s resnet50" ] && echo "set key at graph 0.5, 0.95 samplen 1" || echo "unset key"
      printf "plot \$ring using 1:(\$2*%s) with linespoints lw 2 pt 7 ps 0.6 lc '#d62728' title 'ring'" $scale
      j=0
      for t in $tables; do
        printf ", \$table%s using 1:(\$2*%s) with linespoints lw 2 pt 7 ps 0.4 lc rgb '%s' title 'switch, %s KiB'" \
          $j $scale "$(shade $j $i)" "$(awk -v t="$t" 'BEGIN { print t / 1024 }')"
        j=$((j + 1))
      done
      echo
    done
  done
} | gnuplot
