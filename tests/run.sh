#!/usr/bin/env bash
# The one command that proves Stepwell: installs what is missing, configures, builds, tests, lints.
# The last line is "N passed, N failed" or "N passed, N failed, N skipped"; each skip has named its reason.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 70
results=$root/build/test-results
jobs=${STEPWELL_JOBS:-2}
# Tests that mostly wait for processes and for times: two on a core, four at most.
waiting_jobs=$((2 * jobs > 4 ? 4 : 2 * jobs))
long=no
faults=no
short=no
only=()
budget_minutes=${STEPWELL_TEST_MINUTES:-80}
passed=0 failed=0 skipped=0 flaky=0
flaky_max=2  # more is a machine or a change that needs a person
notes=()  # what failed or was skipped, and why; printed before the last line
times=()

# shellcheck source=deploy/progress.sh
source "$root/deploy/progress.sh"
# shellcheck source=tests/parts.sh
source "$root/tests/parts.sh"

usage() {
  cat <<USAGE
Usage: tests/run.sh [--long] [--only PART]... [--faults [--short]] [--list]
Installs what is missing, builds, tests and lints Stepwell; prints the time of each part.
  --only PART   run this part alone (repeatable); packages are installed all the same
  --long        add what a CI has no time for: ${long_parts[*]}, tests labelled slow
  --faults      the fault matrix of docs/reliability.md alone, as tests/faults does it to real processes;
                with --short without what a CI has no time for
  --list        print the parts
Parts: ${parts[*]}
Environment: STEPWELL_JOBS (parallel compilations, 2), STEPWELL_TEST_SEED (repeats a random test),
STEPWELL_OLDER_COMMIT (the older of two builds; tests/older_programs.sh says which else),
STEPWELL_TEST_MINUTES (a part that would not end within them is skipped, 80; not with --long;
one of: ${parts_of_need[*]} fails then).
Exit: 0 if something passed and nothing failed, 1 otherwise, 64 wrong use.
USAGE
}

while (($# > 0)); do
  case $1 in
    --long) long=yes ;;
    --faults) faults=yes ;;
    --short) short=yes ;;
    --only)
      [[ " ${parts[*]} ${long_parts[*]} " == *" ${2:-} "* && -n ${2:-} ]] || {
        echo "--only: no part '${2:-}'; allowed: ${parts[*]} ${long_parts[*]}" >&2; exit 64; }
      only+=("$2"); shift ;;
    --list) printf '%s\n' "${parts[@]}" "${long_parts[@]}"; exit 0 ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

[[ $short == no || $faults == yes ]] || { echo "--short is a word of --faults" >&2; exit 64; }
if [[ $faults == yes ]]; then
  ((${#only[@]} == 0)) || { echo "--faults and --only exclude each other" >&2; exit 64; }
  only=(faults)
fi

# pass NAME | fail NAME WHY | skip NAME WHY: one check that is no ctest case.
pass() { passed=$((passed + 1)); echo "  pass: $1"; }
fail() { failed=$((failed + 1)); notes+=("FAILED  $1: $2"); echo "  FAIL: $1: $2"; }
skip() { skipped=$((skipped + 1)); notes+=("skipped $1: $2"); echo "  skip: $1: $2"; }

# check NAME COMMAND...: passes if the command exits 0; its last lines are shown where it does not.
check() {
  local name=$1 log=$results/${1//[^a-zA-Z0-9]/_}.log rc
  shift
  start_dots
  "$@" >"$log" 2>&1
  rc=$?
  stop_dots
  ((rc == 0)) && { pass "$name"; return 0; }
  tail -n 40 "$log" | sed 's/^/    /'
  fail "$name" "see ${log#"$root"/}"
  return 1
}

# Adds what a JUnit file of ctest says to the counts: count_junit FILE LABEL-FOR-MESSAGES [BUILD-DIR]
# With a build directory, what failed is run once more (tests/second_look.py).
count_junit() {
  local reader=("$root/tests/read_junit.py")
  [[ -s $1 ]] || { fail "$2" "ctest wrote no result"; return; }
  [[ -n ${3:-} ]] && reader=("$root/tests/second_look.py" "$3")
  count_rows "$2" < <(python3 "${reader[@]}" "$1" || printf 'failed\tread_junit\t%s is unreadable\n' "$1")
}

# Adds the rows on standard input, as read_junit.py writes them: count_rows LABEL-FOR-MESSAGES
count_rows() {
  local before=$((passed + failed + skipped)) kind name why
  while IFS=$'\t' read -r kind name why; do
    case $kind in
      passed) passed=$((passed + name)) ;;
      failed) failed=$((failed + 1)); notes+=("FAILED  $1 $name: $why") ;;
      skipped) skipped=$((skipped + 1)); notes+=("skipped $1 $name: $why") ;;
      flaky) passed=$((passed + 1)); flaky=$((flaky + 1)); notes+=("flaky   $1 $name passed when run alone: $why") ;;
    esac
  done
  ((passed + failed + skipped > before)) || fail "$1" "no test ran"
}

# A run that a CI cuts off says nothing; one that gives up its last parts says which. --long has no limit.
out_of_time() { [[ $long == no && $faults == no ]] && ((SECONDS > (budget_minutes - ${minutes_of_part[$1]:-1}) * 60)); }

run_part() {
  local name=$1 start=$SECONDS
  printf '\n== %s\n' "$name"
  if out_of_time "$name"; then
    local without=skip
    [[ " ${parts_of_need[*]} " == *" $name "* ]] && without=fail
    "$without" "$name" "out of time: $((SECONDS / 60)) of $budget_minutes minutes are used, it takes ${minutes_of_part[$name]:-1}"
    return
  fi
  "part_$name"
  times+=("$(printf '%-11s %4d s' "$name" $((SECONDS - start)))")
  printf '== %s took %d s\n' "$name" $((SECONDS - start))
}

mkdir -p "$results"
use_ccache
chosen=("${parts[@]}")
[[ $long == yes ]] && chosen+=("${long_parts[@]}")
((${#only[@]} > 0)) && chosen=(packages "${only[@]}")
for part in $(printf '%s\n' "${chosen[@]}" | awk '!seen[$0]++'); do run_part "$part"; done

((flaky <= flaky_max)) || fail "flaky tests" "$flaky failed first and passed alone; at most $flaky_max are allowed"

printf '\nTime of each part:\n'
printf '  %s\n' "${times[@]}" "$(printf '%-11s %4d s' all "$SECONDS")"
((${#notes[@]} > 0)) && printf '\n' && printf '%s\n' "${notes[@]}"
((skipped > 0)) && tail_text=", $skipped skipped" || tail_text=
printf '\n%d passed, %d failed%s\n' "$passed" "$failed" "$tail_text"
((failed == 0 && passed > 0))
