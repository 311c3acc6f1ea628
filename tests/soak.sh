#!/usr/bin/env bash
# The long run: rounds of tests/faults/soak_test.cc, one after the other, each with a seed, a master and
# trials of its own, until the time is over. A line each round; a round that fails keeps its log.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 70
minutes=60 round=150 seed=$RANDOM rate=500 bin=$root/build/release/bin write=no

usage() {
  cat <<'USAGE'
Usage: tests/soak.sh [--minutes N] [--seed N] [--round SECONDS] [--rate N] [--bin FOLDER] [--write]
  --minutes N      how long, 60; the round under way is ended
  --seed N         of the first round; each next one has the next number
  --round SECONDS  of faults in each round, 150; then all must arrive
  --rate N         steps a second of each of the two training processes, some ten samples each; 500
  --bin FOLDER     where fault_tests and stepwell lie: build/release/bin
  --write          add the result as a row to docs/reliability.md
Exit: 0 each round was exact, 1 one was not, 64 wrong use.
USAGE
}

while (($# > 0)); do
  case $1 in
    --minutes|--seed|--round|--rate|--bin)
      [[ -n ${2:-} ]] || { echo "$1 needs a value" >&2; exit 64; }
      declare "${1#--}=$2"; shift ;;
    --write) write=yes ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
[[ -x $bin/fault_tests ]] || { echo "there is no $bin/fault_tests: build the target fault_tests first" >&2; exit 64; }

logs=$root/build/test-results/soak
mkdir -p "$logs"
samples=0 faults=0 declared=0 rounds=0 failed=0 first_seed=$seed
end=$((SECONDS + minutes * 60))
while ((SECONDS < end)); do
  log=$logs/seed-$seed.log
  STEPWELL_TEST_SEED=$seed STEPWELL_SOAK_SECONDS=$round STEPWELL_SOAK_RATE=$rate \
    "$bin/fault_tests" --gtest_filter='SoakTest.*' >"$log" 2>&1
  rc=$?
  line=$(grep '^soak: ' "$log" | tail -n 1)
  read -r _ _ round_samples _ round_declared _ round_faults _ _ _ ok <<<"${line:-soak: samples 0 declared 0 faults 0 kinds 0 ok 0}"
  samples=$((samples + round_samples)) faults=$((faults + round_faults)) declared=$((declared + round_declared))
  rounds=$((rounds + 1))
  if ((rc == 0 && ok == 1)); then
    rm -f "$log"
    what=exact
  else
    failed=$((failed + 1))
    what="FAILED, see ${log#"$root"/}"
  fi
  printf '%5d s  seed %d  %s  samples %d (all %d)  faults %d (all %d)\n' \
    "$SECONDS" "$seed" "$what" "$round_samples" "$samples" "$round_faults" "$faults"
  seed=$((seed + 1))
done

commit=$(git -c safe.directory='*' rev-parse --short HEAD 2>/dev/null || echo unknown)
row="| $(date -u +%F) | $commit | $first_seed to $((seed - 1)) | $((SECONDS / 60)) | $samples | $declared | $faults | $((rounds - failed)) of $rounds rounds exact |"
echo "$row"
if [[ $write == yes ]]; then
  python3 - "$row" <<'PYTHON'
import pathlib
import sys

page = pathlib.Path("docs/reliability.md")
lines = page.read_text(encoding="utf-8").splitlines()
last = max(number for number, line in enumerate(lines) if line.startswith("|") and line.count("|") == 9)
lines.insert(last + 1, sys.argv[1])
page.write_text("\n".join(lines) + "\n", encoding="utf-8")
PYTHON
fi
((failed == 0))
