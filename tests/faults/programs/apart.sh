#!/usr/bin/env bash
# Runs a program as a container would: in a PID namespace of its own, whose first process looks after
# the others and ends when all have; and, told so, with mounts of its own, in which of the directory
# HIDDEN nothing is left but the KEPT ones below it. /dev/shm stays the machine's.
#
#   apart.sh pid -- PROGRAM WORD...
#   apart.sh mounts HIDDEN KEPT... -- PROGRAM WORD...
#   apart.sh short-lived -- PROGRAM WORD...     as pid, but it ends with the program: whatever else runs
#                                               in it is killed
# Exit: the program's, 128 + N where signal N ended it, 77 where there are no namespaces.
set -eu
unshare --pid --fork --mount-proc true 2>/dev/null || exit 77

exec unshare --pid --fork --mount-proc --kill-child bash -euc '
  mode=$1
  shift
  directories=()
  while [[ $1 != -- ]]; do
    directories+=("$1")
    shift
  done
  shift
  if [[ $mode == mounts ]]; then
    mount -t tmpfs kept /mnt
    for number in "${!directories[@]}"; do
      ((number == 0)) && continue
      mkdir "/mnt/$number"
      mount --bind "${directories[number]}" "/mnt/$number"
    done
    mount -t tmpfs hidden "${directories[0]}"
    for number in "${!directories[@]}"; do
      ((number == 0)) && continue
      mkdir -p "${directories[number]}"
      mount --bind "/mnt/$number" "${directories[number]}"
    done
    umount --recursive --lazy /mnt
  fi
  code=0
  "$@" || code=$?
  [[ $mode != short-lived ]] || exit "$code"
  while processes=(/proc/[0-9]*) && ((${#processes[@]} > 1)); do sleep 0.05; done
  exit "$code"' apart "$@"
