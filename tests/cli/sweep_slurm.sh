#!/usr/bin/env bash
# sweep_slurm.sh WEFT SWEEP: a sweep under a real Slurm of two nodes on this machine, in 4 shards. The process of one
# shard is killed, then a node fails with all that runs on it and comes back. The table must be that of a sweep without
# Slurm, and no run that was done is computed again. Exits with 77 where there is no Slurm, or no root to start it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/slurm_cluster.sh"
weft=$1 sweep=$2

why=$(slurm_missing)
[ -z "$why" ] || { echo "skipped: $why"; exit 77; }
work=$(mktemp -d /tmp/weft-sweep.XXXXXX)
watcher=
finish() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  [ -z "${cluster:-}" ] || stop_cluster
  rm -rf "$work"
}
trap finish EXIT
trap 'echo "line $LINENO failed"' ERR
fail() {
  echo "failed: $1"
  cat "$work/log" "$work"/out/slurm/*.log
  "$weft" sweep status "$work/out"
  squeue
  sinfo -N
  exit 1
}

# Waits until $1 runs are done.
wait_for() {
  for ((tries = 0; tries < 6000; ++tries)); do
    [ "$( (find "$work/out/points" -mindepth 1 -maxdepth 1 2>/dev/null || true) | wc -l)" -lt "$1" ] || return 0
    sleep 0.1
  done
  fail "$1 runs were not done in time"
}
process_of_shard() {
  local process words
  for process in /proc/[0-9]*; do
    mapfile -d '' -t words 2>/dev/null <"$process/cmdline" || continue  # no process of its own: shards last seconds
    if [[ "${words[*]} " == *" sweep $work/out --shard $1/4 "* ]]; then
      echo "${process#/proc/}"
      return
    fi
  done
}
note_done() { (cd "$work/out/points" && stat -c '%n %i %Y' ./*/result.json) >>"$work/done"; }

"$weft" sweep "$sweep" -o "$work/whole" >/dev/null
points=$(find "$work/whole/points" -mindepth 1 -maxdepth 1 | wc -l)

start_cluster 2
"$weft" sweep "$sweep" -o "$work/out" --executor slurm --shards 4 --poll 1 >"$work/log" 2>&1 &
watcher=$!
wait_for 2
note_done
killed=
for shard in 1 2 3 4; do
  process=$(process_of_shard "$shard")
  if [ -n "$process" ] && kill -9 "$process"; then killed=$shard && break; fi
done
[ -n "$killed" ] || fail "no shard runs"
wait_for $((points / 2))
note_done
kill_node 1
start_node 1
code=0
wait "$watcher" || code=$?
watcher=
[ "$code" -eq 0 ] || fail "exit code $code"
cmp "$work/out/results.csv" "$work/whole/results.csv" || fail "another table"
cmp "$work/out/results.sqlite" "$work/whole/results.sqlite" || fail "another database"
while read -r name inode time; do
  [ "$(stat -c '%i %Y' "$work/out/points/$name")" = "$inode $time" ] || fail "$name was computed twice"
done <"$work/done"
submissions=$(grep -c '"[0-9]*"' "$work/out/slurm/jobs.json")
[ "$submissions" -ge 2 ] || fail "the killed shard was not submitted again"
echo "$points runs in 4 shards; submitted $submissions times; the same table"
