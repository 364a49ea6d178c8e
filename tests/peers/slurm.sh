#!/usr/bin/env bash
# Slurm of one node, this host, in the folder $1: `slurm.sh FOLDER up`, `slurm.sh FOLDER down`. Needs root.
set -euo pipefail
folder=$1
export SLURM_CONF=$folder/slurm.conf
if [ "$2" = down ]; then
    for each in "$folder"/run/*.pid; do kill "$(cat "$each")" 2>/dev/null || true; done
    exit 0
fi
host=$(hostname -s)
read -r controller node <<<"${SLURM_PORTS:-16817 16818}"
mkdir -p "$folder"/{spool,state,run}
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 400 "$folder/munge.key"
munged --force --key-file "$folder/munge.key" --socket "$folder/run/munge.socket" --pid-file "$folder/run/munge.pid" \
    --log-file "$folder/munge.log" --seed-file "$folder/munge.seed" 2>>"$folder/munge.err"
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$controller
SlurmdPort=$node
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
slurmctld
slurmd
# Until it has work done: it takes none before the node has registered.
timeout 60 srun -n 1 true
