# A Slurm cluster on this machine for tests, as root and without systemd: source it. All state is in $cluster.
#
#   start_cluster NODES     munged, slurmctld, and a slurmd for each of node0, node1, ...; exports what clients need
#   start_node N, kill_node N   kill_node: the node is gone with all that runs on it, as if its power failed
#   stop_cluster

slurm_missing() {
  [ "$(id -u)" -eq 0 ] || { echo "this needs root"; return; }
  for program in munged slurmctld slurmd sbatch squeue scontrol; do
    command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || {
      echo "$program is not installed"
      return
    }
  done
}

free_port() { echo $((20000 + RANDOM % 12000)); }  # not one that the system gives to clients

start_cluster() {
  local nodes=$1 n
  PATH=$PATH:/usr/sbin
  cluster=$(mktemp -d /tmp/weft-slurm.XXXXXX)
  chmod 755 "$cluster"
  mkdir -m 755 "$cluster/munge" "$cluster/state"
  head -c 1024 /dev/urandom >"$cluster/munge/key"
  chmod 400 "$cluster/munge/key"
  munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
    --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" 2>/dev/null
  {
    echo "ClusterName=weft"
    echo "SlurmctldHost=$(hostname)(127.0.0.1)"
    echo "SlurmctldPort=$(free_port)"
    echo "SlurmUser=root"
    echo "SlurmdUser=root"
    echo "AuthType=auth/munge"
    echo "AuthInfo=socket=$cluster/munge/socket"
    echo "CryptoType=crypto/munge"
    echo "StateSaveLocation=$cluster/state"
    echo "SlurmdSpoolDir=$cluster/spool-%n"
    echo "SlurmctldPidFile=$cluster/slurmctld.pid"
    echo "SlurmdPidFile=$cluster/slurmd-%n.pid"
    echo "SlurmctldLogFile=$cluster/slurmctld.log"
    echo "SlurmdLogFile=$cluster/slurmd-%n.log"
    echo "ProctrackType=proctrack/linuxproc"
    echo "TaskPlugin=task/none"
    echo "MpiDefault=none"
    echo "SelectType=select/cons_tres"
    echo "SelectTypeParameters=CR_CPU"
    echo "SlurmdParameters=config_overrides"
    echo "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0"
    echo "ReturnToService=2"
    echo "SlurmdTimeout=10"
    echo "MinJobAge=10"
    for ((n = 0; n < nodes; ++n)); do
      echo "NodeName=node$n NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2"
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  } >"$cluster/slurm.conf"
  echo "CgroupPlugin=cgroup/v1" >"$cluster/cgroup.conf"  # none is used, but slurmd would look for one: a chroot has none
  export SLURM_CONF=$cluster/slurm.conf
  slurmctld -c
  for ((n = 0; n < nodes; ++n)); do start_node "$n"; done
  for ((n = 0; n < 100; ++n)); do
    [ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" -eq "$nodes" ] && return
    sleep 0.1
  done
  echo "the cluster did not start:"
  sinfo
  tail -n 20 "$cluster"/*.log
  return 1
}

start_node() { slurmd -N "node$1"; }

kill_node() {
  local node=$1 job jobs=()
  kill -9 "$(cat "$cluster/slurmd-node$node.pid")"
  # Step daemons and what they started have the node in their environment. All end at once: none sees another one end.
  for job in /proc/[0-9]*; do
    if cat "$job/environ" 2>/dev/null | tr '\0' '\n' | grep -cx -e "SLURMD_NODENAME=node$node" -e "SLURM_CONF=$SLURM_CONF" |
      grep -qx 2; then
      jobs+=("${job#/proc/}")
    fi
  done
  kill -STOP "${jobs[@]}" 2>/dev/null || true
  kill -9 "${jobs[@]}" 2>/dev/null || true
  scontrol update nodename="node$node" state=down reason=test
}

stop_cluster() {
  local pid
  scancel --user="$(id -un)" 2>/dev/null || true  # daemons leave jobs running when they end
  for ((pid = 0; pid < 50; ++pid)); do
    [ -n "$(squeue -h 2>/dev/null)" ] || break
    sleep 0.1
  done
  for pid in "$cluster"/slurmd-*.pid "$cluster/slurmctld.pid" "$cluster/munge/pid"; do
    [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null
  done
  sleep 0.5
  rm -rf "$cluster"
}
