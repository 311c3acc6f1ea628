#!/usr/bin/env bash
# A container at its meanest, from unshare(1) with mount, PID and IPC namespaces of its own: the root
# read-only, no home, 64 MiB of shared memory, 8 ranks of an unprivileged user with 4 forked workers
# each, nobody who starts an agent.
#
#   hard_place.sh SCRATCH SERVER STEPS SEED
# SCRATCH holds bin/stepwell, bin/fault_trainer and a directory out that all may write; there each
# rank leaves its ledgers, its output as a pipe's reader saw it, its exit code, when it ended and when
# the reader saw the pipe's end (nanoseconds).
# Exit: 0, or 77 where the root is no mount that could be made read-only.
set -eu
scratch=$1 server=$2 steps=$3 seed=$4

mount --bind "$scratch" /mnt
mount -t tmpfs -o size=64m,mode=1777 shm /dev/shm
mount -t tmpfs -o size=512m,mode=1777 tmp /tmp
mount -o remount,bind,ro / 2>/dev/null || exit 77

rank() {
  {
    code=0
    /mnt/bin/fault_trainer --trial hard --rank "$1" --world-size 8 --workers 4 --rate 50 \
      --steps "$steps" --seed "$seed" --log "/mnt/out/ledger-$1" --close-wait-ms 90000 || code=$?
    echo "$code" >"/mnt/out/code-$1"
    date +%s%N >"/mnt/out/ended-$1"
  } 2>&1 | cat >"/mnt/out/text-$1"
  date +%s%N >"/mnt/out/piped-$1"
}
export -f rank
export steps seed
export STEPWELL_SERVER=$server STEPWELL_AGENT=/mnt/bin/stepwell
unset HOME TMPDIR
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all bash -c '
  if touch /readable-only 2>/dev/null; then exit 76; fi
  for number in 0 1 2 3 4 5 6 7; do rank $number & done
  wait'
