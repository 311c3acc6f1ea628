#!/usr/bin/env bash
# A container at its meanest, from unshare(1) with mount, PID and IPC namespaces of its own: the root
# read-only, no home, 64 MiB of shared memory, 8 ranks of an unprivileged user with 4 forked workers
# each, nobody who starts an agent.
#
#   hard_place.sh SCRATCH SERVER STEPS SEED
# SCRATCH holds bin/stepwell, bin/fault_trainer and a directory out that all may write; there each
# rank leaves its ledgers, its output as a pipe's reader saw it (text), its exit code, when it ended
# and when the reader saw the pipe's end (nanoseconds): first of a run that records nothing (names
# beginning with plain), then of the one that records. In the end out/agents names those that live.
# Exit: 0, or 77 where the root is no mount that could be made read-only.
set -eu
scratch=$1 server=$2 steps=$3 seed=$4

mount --bind "$scratch" /mnt
mount -t tmpfs -o size=64m,mode=1777 shm /dev/shm
mount -t tmpfs -o size=512m,mode=1777 tmp /tmp
mount -o remount,bind,ro / 2>/dev/null || exit 77

# rank PREFIX NUMBER RATE
rank() {
  {
    code=0
    /mnt/bin/fault_trainer --trial hard --rank "$2" --world-size 8 --workers 4 --rate "$3" \
      --steps "$steps" --seed "$seed" --log "/mnt/out/$1ledger-$2" --close-wait-ms 90000 \
      --leave-open $(($2 % 2)) --own-exit $((40 + $2)) || code=$?
    echo "$code" >"/mnt/out/$1code-$2"
    date +%s%N >"/mnt/out/$1ended-$2"
  } 2>&1 | cat >"/mnt/out/$1text-$2"
  date +%s%N >"/mnt/out/$1piped-$2"
}
export -f rank
export steps seed
export STEPWELL_SERVER=$server STEPWELL_AGENT=/mnt/bin/stepwell STEPWELL_EXIT_WAIT=90
unset HOME TMPDIR
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all bash -c '
  if touch /readable-only 2>/dev/null; then exit 76; fi
  for number in 0 1 2 3 4 5 6 7; do STEPWELL_DISABLED=1 rank plain- $number 1000 & done
  wait
  for number in 0 1 2 3 4 5 6 7; do rank "" $number 50 & done
  wait'
for process in /proc/[0-9]*; do
  [[ $(readlink "$process/exe") != /mnt/bin/stepwell ]] || echo "${process#/proc/}"
done >/mnt/out/agents
