#!/usr/bin/env bash
# From a bare Debian 12 to a training run whose time is accounted for: installs, builds, starts the
# master on a private PostgreSQL, trains a small model with two ranks, prints where its time went. The
# agent it leaves to the training, which starts its own.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=deploy/progress.sh
source "$root/deploy/progress.sh"
bin=$root/build/release/bin
once=no
any_port=no
data_dir=
trial=quickstart-$(date -u +%Y%m%dT%H%M%SZ)
ranks=2
ready_wait=60  # seconds; an empty data directory takes about 3
train_seconds=15
master_pid='' train_pid='' keep_master=no log_lines=0

usage() {
  cat <<'USAGE'
Usage: deploy/quickstart.sh [--once] [--data-dir DIR] [--seconds S] [--any-port]
Installs what is missing, builds Stepwell, starts the master, trains a small model that records
itself, and prints where its time went. The training starts the agent that ships what it records;
this script stops it at its end; that of a training of your own ends by itself a minute after the last.
  --once           stop everything afterwards; without it the master keeps running
  --data-dir DIR   where the master keeps its data (root: /var/lib/stepwell, else under
                   XDG_DATA_HOME or ~/.local/share)
  --any-port       where other programs have the usual ports, 7817 and 7818: the master takes free ones
  --seconds S      how long to train (15)

Examples:
  deploy/quickstart.sh                              the first time about 20 minutes on 2 cores, most of them to compile
  deploy/quickstart.sh --once --any-port            beside whatever runs here; stops everything afterwards
  deploy/quickstart.sh --data-dir /srv/tried --any-port     a master of its own beside another; it keeps running

With a master that asks for TLS and tokens on the same directory: STEPWELL_TLS_CA, and the admin's STEPWELL_TOKEN.
Exit: 0 the report was printed, 1 something failed (the message says what to do), 64 wrong use,
69 packages are missing and cannot be installed here.
USAGE
}

while (($# > 0)); do
  case $1 in
    --once) once=yes ;;
    --any-port) any_port=yes ;;
    --data-dir)
      [[ -n ${2:-} ]] || { echo "--data-dir needs a folder" >&2; exit 64; }
      data_dir=$2; shift ;;
    --seconds)
      [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || { echo "--seconds is '${2:-}'; allowed: 1 ... 99999" >&2; exit 64; }
      train_seconds=$2; shift ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

step() { printf '\n[%3d s] %s\n' "$SECONDS" "$1"; }

# die WHAT-HAPPENED WHAT-TO-DO
die() {
  stop_dots
  printf '\nquickstart: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

# One that has ended stays a zombie where nobody waits for it, as below a container's PID 1 that reaps none.
alive() {
  local stat
  [[ -n $1 ]] && kill -0 "$1" 2>/dev/null && stat=$(cat "/proc/$1/stat" 2>/dev/null) && [[ ${stat##*) } != [ZX]* ]]
}

# wait_gone PID SECONDS: whether the process ended in time.
wait_gone() {
  local deadline=$((SECONDS + $2))
  while alive "$1"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

# Asks a process of ours to end, in its own way; forces it only when it does not.
stop_process() {
  alive "$1" || return 0
  kill -TERM "$1" 2>/dev/null
  start_dots
  wait_gone "$1" 40
  local gone=$?
  stop_dots
  ((gone == 0)) && return 0
  echo "$2 (pid $1) did not stop within 40 s and was killed" >&2
  kill -KILL "$1" 2>/dev/null
}

# The agent that serves the training's spool directory now; empty = none.
serving_agent() {
  [[ -n ${spool_dir:-} && -x $bin/stepwell ]] || return 0
  "$bin/stepwell" agent status --spool-dir "$spool_dir" --json 2>/dev/null | python3 -c '
import json, sys
print(*[spool["agent_pid"] for spool in json.load(sys.stdin)["spools"] if spool["agent_pid"]])' 2>/dev/null
}

# In the reverse order of starting: what sends, then what ships, then what keeps.
stop_all() {
  stop_dots
  stop_process "$train_pid" "the training"
  stop_process "$(serving_agent)" "the agent"
  [[ $keep_master == yes ]] || stop_process "$master_pid" "the master"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What another user built here cannot be built on.
check_build_folder() {
  local place places=("$root/build" "$root/build/release" "$root/build/release/CMakeCache.txt")
  [[ -e $root/build ]] || places=("$root")
  for place in "${places[@]}"; do
    [[ ! -e $place || -w $place ]] ||
      die "$(id -un) cannot write $place, which is $(stat -c %U "$place")'s" "build in a clone of your own, or run this as $(stat -c %U "$place")"
  done
}

choose_data_dir() {
  if [[ -z $data_dir ]]; then
    if ((EUID == 0)); then data_dir=/var/lib/stepwell; else data_dir=${XDG_DATA_HOME:-$HOME/.local/share}/stepwell; fi
  fi
  mkdir -p "$data_dir" || die "cannot make the data directory $data_dir" "choose another with --data-dir DIR"
  data_dir=$(cd "$data_dir" && pwd)
  ready_file=$data_dir/ready.json
  spool_dir=$data_dir/spool
  agent_log=$spool_dir/f1/agent.log
  log_dir=$data_dir/log
  { mkdir -p "$log_dir" "$spool_dir" && chmod 0700 "$log_dir" "$spool_dir"; } ||
    die "cannot write in $data_dir" "choose another with --data-dir DIR"
}

build() {
  command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  local only_product=(-DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_BENCH=OFF)
  configure() { (cd "$root" && cmake --preset release "$@" >"$log_dir/configure.log" 2>&1); }
  start_dots
  local configured=1
  # A folder that already builds the tests goes on doing so, if what they need is here.
  grep -qs 'STEPWELL_BUILD_TESTS:BOOL=ON' "$root/build/release/CMakeCache.txt" && configure && configured=0
  ((configured == 0)) || { configure "${only_product[@]}"; configured=$?; }
  stop_dots
  ((configured == 0)) || die "configuring failed" "the reason is at the end of $log_dir/configure.log: $(grep -m1 'CMake Error' -A3 "$log_dir/configure.log" | tr '\n' ' ')"
  (cd "$root" && cmake --build --preset release -j "${STEPWELL_JOBS:-2}" --target stepwell stepwell-demo stepwell_recorder_shared) ||
    die "building failed" "the compiler's words are above; with little memory try STEPWELL_JOBS=1"
}

ready_field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$ready_file" "$1" 2>/dev/null; }

# Where clients of this machine reach the master: one that listens on all addresses is called by none of them.
read_ready() {
  server=$(ready_field grpc) http=$(ready_field http) database_url=$(ready_field database_url)
  server=${server/#0.0.0.0:/localhost:} http=${http/#0.0.0.0:/localhost:}
  server=${server/#\[::\]:/localhost:} http=${http/#\[::\]:/localhost:}
}

# A master that runs on this data directory, left by an earlier run or started by hand, is used, not started
# again: it keeps ready.json there, and answers.
master_runs_already() {
  [[ -s $ready_file ]] || return 1
  local pid words
  pid=$(ready_field pid) && alive "$pid" && [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) == *" serve"* ]] || return 1
  read_ready
  words=$("$bin/stepwell" admin status --server "$server" 2>&1 >/dev/null) && return 0
  words=${words%%$'\n'*} words=${words#stepwell: }
  local who="a master runs on this data directory already (pid $pid, of $ready_file)" own="or have one of your own: --data-dir DIR --any-port"
  case $words in
    *"speaks no TLS"*) die "$who, in plain: $words" "unset STEPWELL_TLS_CA, $own" ;;
    *TLS* | *tls* | *token* | *certificate*)
      die "$who that asks for TLS and tokens: $words" \
        "use it: STEPWELL_TLS_CA=.../ca.pem STEPWELL_TOKEN=\$(cat $data_dir/token) deploy/quickstart.sh, $own" ;;
  esac
  return 1
}

# The last words of the master that we started, of all that its log may hold.
master_words() { tail -n +"$((log_lines + 1))" "$log_dir/master.log" | tail -n 3; }

start_master() {
  if master_runs_already; then
    keep_master=yes
    echo "a master already runs here (pid $(ready_field pid)); it is used and left running"
    return
  fi
  # That of this script speaks in plain, to this machine alone.
  unset STEPWELL_TLS_CA STEPWELL_TLS_CERT STEPWELL_TLS_KEY STEPWELL_TOKEN
  local listen=()
  # A run that ends by itself needs no fixed port and so disturbs nobody.
  [[ $once == yes || $any_port == yes ]] && listen=(--grpc-listen 127.0.0.1:0 --http-listen 127.0.0.1:0)
  [[ ! -f $log_dir/master.log ]] || log_lines=$(wc -l <"$log_dir/master.log")
  setsid "$bin/stepwell" serve --data-dir "$data_dir" "${listen[@]}" >>"$log_dir/master.log" 2>&1 </dev/null &
  master_pid=$!
  local deadline=$((SECONDS + ready_wait))
  start_dots
  # What an earlier one left there names another process.
  until grep -qs "\"pid\":${master_pid}[,}]" "$ready_file"; do
    alive "$master_pid" || die "the master did not start: $(master_words)" "--any-port takes other ports, --data-dir DIR another directory; its log is $log_dir/master.log"
    ((SECONDS < deadline)) || die "the master was not ready within $ready_wait s" "its log is $log_dir/master.log"
    sleep 0.05
  done
  stop_dots
}

# Says who ships: the training's first call starts it, and nobody else does.
show_agent() {
  local pid deadline=$((SECONDS + 10))
  until pid=$(serving_agent) && [[ -n $pid ]]; do
    alive "$train_pid" && ((SECONDS < deadline)) || return 0
    sleep 0.1
  done
  echo "the training started its agent by itself (pid $pid, log $agent_log)"
}

# That it learned is no condition: a slow machine takes few steps in this time. tests/check_demo.py counts steps.
train() {
  STEPWELL_SERVER=$server STEPWELL_SPOOL_DIR=$spool_dir STEPWELL_AGENT=$bin/stepwell \
    "$bin/stepwell-demo" --trial "$trial" --ranks "$ranks" --seconds "$train_seconds" </dev/null &
  train_pid=$!
  show_agent
  wait_gone "$train_pid" $((train_seconds + 120)) ||
    die "training did not end" "try again; if it happens twice, the agent's log is $agent_log"
  wait "$train_pid" || die "training failed with exit $?" "its words are above"
  train_pid=
}

# Complete is it with the machine's last sample, which the agent takes when it sees that the ranks have
# ended; the master looks at the states of trials once a second. A report of a running trial is as good.
await_completed() {
  local deadline=$((SECONDS + 5))
  start_dots
  until "$bin/stepwell" trials --server "$server" | grep -q "$trial.*completed" || ((SECONDS >= deadline)); do
    sleep 0.2
  done
  stop_dots
}

# The view's rows are stretches of a series, each with its values as one array.
show_rows() {
  local sql="select name, labels->>'rank' as rank, sum(cardinality(\"values\")) as samples,
       (array_agg(\"values\"[1:3]::text order by timestamps[1]))[1] as first_values
from stepwell.generic_metrics join stepwell.trials using (trial_id)
where external_id = '$trial' and metric_group in ('timing', 'training') and position('/' in name) = 0
group by 1, 2 order by 1, 2"
  printf "psql '%s'\n%s;\n\n" "$database_url" "$sql"
  psql "$database_url" -X -q -P pager=off -c "$sql" ||
    die "psql could not read the rows" "its words are above; a private PostgreSQL lets in the master's user, its own and root alone (docs/schema.md)"
}

check_build_folder
step "packages"
"$root/deploy/install_packages.sh" build run || exit $?
choose_data_dir
if [[ -x $bin/stepwell && -x $bin/stepwell-demo ]]; then step "build"; else step "build (the first time about 20 min on 2 cores)"; fi
build
step "master"
start_master
read_ready
page=http${STEPWELL_TLS_CA:+s}://$http
echo "gRPC $server, HTTP $page, data in $data_dir"
step "training: $ranks ranks, trial $trial"
train
await_completed
step "report"
"$bin/stepwell" admin flush --server "$server" >/dev/null || die "the master did not fold what it holds" "its log is $log_dir/master.log"
"$bin/stepwell" report "$trial" --server "$server" || die "there is no report" "the agent's log is $agent_log"
step "the same in SQL"
show_rows

if [[ $once == yes ]]; then
  step "stopping"
  stop_all
  master_pid=''
  echo "done in $SECONDS s; the data stays in $data_dir"
else
  keep_master=yes
  cat <<DONE

The master keeps running (pid $(ready_field pid)${master_pid:+, log $log_dir/master.log}).
  page:        $page/
  report:      $bin/stepwell report $trial --server $server
  again:       deploy/quickstart.sh
  your own:    STEPWELL_SERVER=$server STEPWELL_TRIAL=NAME ./train      (starts its agent, which ends by itself)
  waiting:     $bin/stepwell agent status --spool-dir $spool_dir      (the quickstart's own spool)
  look:        $bin/stepwell trials --server $server
  stop it:     kill $(ready_field pid)      (its PostgreSQL stops with it; the data stays)
DONE
fi
