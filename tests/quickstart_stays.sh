#!/usr/bin/env bash
# deploy/quickstart.sh without --once: the master goes on, a second run uses it, and what the text says
# stops it; with --once nothing stays. Prints what is not so; exits 0 if all is. Takes about half a minute
# on a built tree.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d) && chmod 0755 "$scratch"  # PostgreSQL's own user passes through it
data=$scratch/data
master=
# Free ports: the usual ones may be a person's own master.
export STEPWELL_GRPC_LISTEN=127.0.0.1:0 STEPWELL_HTTP_LISTEN=127.0.0.1:0

# The processes that name the data directory in their command line.
of_this_data() {
  local process
  for process in /proc/[0-9]*; do
    [[ $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") != *"$data"* ]] || echo "${process#/proc/}"
  done
}

clean_up() {
  local pid
  for pid in $(of_this_data); do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap clean_up EXIT

# give_up WHAT [FILE]
give_up() {
  echo "$1"
  [[ -z ${2:-} ]] || tail -n 40 "$2"
  exit 1
}

# run_quickstart NUMBER [FLAG]: its text is in $scratch/NUMBER.
run_quickstart() {
  "$root/deploy/quickstart.sh" "${@:2}" --data-dir "$data" --seconds 3 >"$scratch/$1" 2>&1 </dev/null ||
    give_up "run $1 failed" "$scratch/$1"
  grep -q "^Where a step's time goes, rank 1" "$scratch/$1" || give_up "run $1 printed no report" "$scratch/$1"
}

# The process that the text of run NUMBER says to stop.
told_pid() { sed -n 's/^ *stop it: *kill \([0-9]*\).*/\1/p' "$scratch/$1"; }

run_quickstart 1
master=$(told_pid 1)
[[ -n $master ]] || give_up "the first run does not say how to stop the master" "$scratch/1"
kill -0 "$master" || give_up "the master (pid $master) did not stay" "$data/log/master.log"
began=$SECONDS
run_quickstart 2
grep -q "a master already runs here (pid $master)" "$scratch/2" || give_up "the second run started another" "$scratch/2"
[[ $(told_pid 2) == "$master" ]] || give_up "the second run names another master" "$scratch/2"
# 3 s of training; all else is there already.
((SECONDS - began < 40)) || give_up "the second run took $((SECONDS - began)) s"

# One that a person starts is told by what it keeps in its data directory.
[[ -s $data/ready.json ]] || give_up "the master keeps no ready.json in its data directory"

kill "$master"
for ((tenths = 0; tenths < 400; ++tenths)); do
  kill -0 "$master" 2>/dev/null || break
  sleep 0.1
done
kill -0 "$master" 2>/dev/null && give_up "the master did not stop within 40 s" "$data/log/master.log"
master=
[[ -z $(find "$data" -name postmaster.pid) ]] || give_up "its PostgreSQL did not stop with it"

run_quickstart 3 --once
left=$(of_this_data)
[[ -z $left ]] || give_up "--once left processes: $left" "$scratch/3"
