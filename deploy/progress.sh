# Shows that a long step goes on, by a dot every two seconds. Sourced by deploy/quickstart.sh and
# tests/run.sh.
#
#   start_dots; slow_command >"$log" 2>&1; rc=$?; stop_dots

dots_pid=

# The dots end with this script, however it ends.
start_dots() {
  local script=$$
  { while sleep 2 >&- 2>&- && kill -0 "$script" 2>/dev/null; do printf .; done; } 2>/dev/null &
  dots_pid=$!
  dots_since=$SECONDS
}

# Ends the line if there were any.
stop_dots() {
  [[ -n $dots_pid ]] || return 0
  kill "$dots_pid" 2>/dev/null
  wait "$dots_pid" 2>/dev/null
  dots_pid=
  ((SECONDS - dots_since < 2)) || echo
}
