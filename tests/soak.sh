#!/usr/bin/env bash
# The long run: rounds of tests/faults/soak_test.cc, one after the other, each with a seed, a master and
# trials of its own, until the time is over. A line each round, behind it the faults that this machine cannot have and why, and dots
# meanwhile; a round that fails keeps its log.
# A round that has ended is in a file before the next one begins, and all sums are made of that file: a run
# that is cut off goes on with --resume, and its rounds count. The round that was cut is run again.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 70
# shellcheck source=deploy/progress.sh
source "$root/deploy/progress.sh"
minutes='' round='' seed='' rate='' bin=$root/build/release/bin write=no begin=new

usage() {
  cat <<'USAGE'
Usage: tests/soak.sh [--minutes N] [--seed N] [--round SECONDS] [--rate N] [--bin FOLDER] [--write] [--resume | --forget]
  --minutes N      how long, 60; the round under way is ended
  --seed N         of the first round; each next one has the next number
  --round SECONDS  of faults in each round, 150; then all must arrive
  --rate N         steps a second of each of the two training processes, some ten samples each; 500
  --bin FOLDER     where fault_tests and stepwell lie: build/release/bin
  --write          add the result as a row to docs/reliability.md, at the end
  --resume         go on with the run that was cut off, as it was told; with --minutes for longer
  --forget         begin anew though one was cut off
Exit: 0 each round was exact, 1 one was not, 64 wrong use, 75 cut off: --resume goes on.
USAGE
}

while (($# > 0)); do
  case $1 in
    --minutes|--seed|--round|--rate|--bin)
      [[ -n ${2:-} ]] || { echo "$1 needs a value" >&2; exit 64; }
      declare "${1#--}=$2"; shift ;;
    --write) write=yes ;;
    --resume|--forget) begin=${1#--} ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
[[ -x $bin/fault_tests && -x $bin/stepwell ]] ||
  { echo "there is no $bin/fault_tests with its stepwell: build the target fault_tests first" >&2; exit 64; }

logs=$root/build/test-results/soak
# First "run SEED ROUND RATE MINUTES", then a line for each round that has ended:
# "round SEED COMMIT SECONDS SAMPLES DECLARED FAULTS exact|FAILED", behind "kind SEED COUNT NAME..." of each kind of its
# faults and "impossible SEED NAME (WHY)" of each that could not be had. There while a run is not over.
rounds=$logs/rounds
mkdir -p "$logs"
if [[ $begin == resume ]]; then
  [[ -z $seed$round$rate ]] || { echo "--resume goes on with the seed, the round and the rate of before" >&2; exit 64; }
  [[ -f $rounds ]] || { echo "no run was cut off: there is no ${rounds#"$root"/}" >&2; exit 64; }
  read -r _ seed round rate told_minutes <"$rounds"
  minutes=${minutes:-$told_minutes}
else
  [[ $begin == forget || ! -f $rounds ]] ||
    { echo "a run was cut off (${rounds#"$root"/}): --resume goes on with it, --forget begins anew" >&2; exit 64; }
  minutes=${minutes:-60} round=${round:-150} seed=${seed:-$RANDOM} rate=${rate:-500}
  echo "run $seed $round $rate $minutes" >"$rounds"
fi
first_seed=$seed

# Of all rounds: the sum of a column; the values of a column, each once; how many ended so.
sum() { awk -v column="$1" '$1 == "round" { sum += $column } END { print sum + 0 }' "$rounds"; }
each_of() { awk -v column="$1" -v end="$2" '$1 == "round" && $NF ~ end && !seen[$column]++ { print $column }' "$rounds" | paste -sd ' '; }
count() { grep -c "^round .*$1\$" "$rounds"; }

# Of all rounds: "COUNT x NAME" of each kind, in the order of their names; those that never happened, too.
kinds() {
  awk '$1 == "kind" { count = $3; sub(/^kind [0-9]+ [0-9]+ /, ""); sum[$0] += count }
    END { for (name in sum) print sum[name] " x " name }' "$rounds" | LC_ALL=C sort -k 3 | paste -sd ',' | sed 's/,/, /g'
}

# "NAME (WHY), ..." of the faults that could not be had, each once; of one round where it is named. Whoever reads "exact" reads
# without which. None = nothing is said.
impossible() {
  awk -v seed="${1:-}" '$1 == "impossible" && (seed == "" || $2 == seed) { sub(/^impossible [0-9]+ /, ""); if (!seen[$0]++) print }' "$rounds" |
    tr '|' '/' | paste -sd ',' | sed 's/,/, /g; s/,  /, /g'
}

# Whether a source below the folders, of those that git knows, is newer than the executable.
newer_sources() {
  local executable=$1 file
  shift
  while IFS= read -r -d '' file; do
    [[ $file -nt $executable ]] && return 0
  done < <(git -c safe.directory='*' ls-files -z -- "$@")
  return 1
}

# The commit that the executables are built of, as far as it can be told: that of the checkout, where they are newer than each
# source; with a + where a source is changed in it. Else "unknown".
commit_of_build() {
  local commit shipped=() tests=() folder
  for folder in base client/agent client/cli client/recorder client/traces migrations proto server storage; do
    shipped+=("$folder/*.cc" "$folder/*.h" "$folder/*.proto" "$folder/*.sql")
  done
  tests=('tests/faults/*.cc' 'tests/faults/*.h' 'tests/support/*.cc' 'tests/support/*.h')
  commit=$(git -c safe.directory='*' rev-parse --short HEAD 2>/dev/null) || { echo unknown; return; }
  if newer_sources "$bin/stepwell" "${shipped[@]}" || newer_sources "$bin/fault_tests" "${tests[@]}"; then
    echo unknown
  elif [[ -n $(git -c safe.directory='*' status --porcelain -- "${shipped[@]}" "${tests[@]}") ]]; then
    echo "$commit+"
  else
    echo "$commit"
  fi
}

# Told once of what is run, also where the checkout moves on meanwhile, or the run: "build STAMP COMMIT".
note_build() {
  local stamp
  stamp=$(stat -c '%Y.%s' "$bin/stepwell" "$bin/fault_tests" | paste -sd -)
  commit=$(awk -v stamp="$stamp" '$1 == "build" && $2 == stamp { print $3; exit }' "$rounds")
  [[ -n $commit ]] && return
  commit=$(commit_of_build)
  echo "build $stamp $commit" >>"$rounds"
}

child='' is_cut=no
trap 'is_cut=yes; [[ -z $child ]] || kill "$child" 2>/dev/null' INT TERM HUP
seed=$((first_seed + $(count '')))
before=''
(($(count '') == 0)) || before=", $(count '') rounds and $(sum 4) s are done"
echo "soak: seed $seed, rounds of $round s of faults and then until all has arrived, for $minutes min$before; logs in ${logs#"$root"/}"
while (($(sum 4) < minutes * 60)) && [[ $is_cut == no ]]; do
  log=$logs/seed-$seed.log
  note_build
  began=$SECONDS
  STEPWELL_TEST_SEED=$seed STEPWELL_SOAK_SECONDS=$round STEPWELL_SOAK_RATE=$rate \
    "$bin/fault_tests" --gtest_filter='SoakTest.*' >"$log" 2>&1 </dev/null &
  child=$!
  start_dots
  wait "$child"
  rc=$?
  stop_dots
  # A wait that a signal ended; what the round says then is no word of its own.
  if [[ $is_cut == yes ]]; then
    wait "$child"
    break
  fi
  child=''
  line=$(grep '^soak: ' "$log" | tail -n 1)
  value() { sed -n "s/.* $1 \([0-9]\+\).*/\1/p" <<<"$line"; }
  told=$(sed -n "s/^soak \(kind\|impossible\): /\1 $seed /p" "$log")
  what=FAILED where=", see ${log#"$root"/}"
  if ((rc == 0)) && [[ $(value ok) == 1 ]]; then
    what=exact where=''
    rm -f "$log"
  fi
  printf '%sround %d %s %d %d %d %d %s\n' "${told:+$told$'\n'}" "$seed" "$commit" "$((SECONDS - began))" "$(value samples)" \
    "$(value declared)" "$(value faults)" "$what" >>"$rounds"
  left=$((minutes * 60 - $(sum 4)))
  printf '%5d s  seed %d  %s%s  samples %d (all %d)  declared %d (all %d)  faults %d of %d (all %d)  %d s to go\n' "$(sum 4)" "$seed" \
    "$what" "$where" "$(value samples)" "$(sum 5)" "$(value declared)" "$(sum 6)" "$(value faults)" "$(value tried)" "$(sum 7)" \
    "$((left > 0 ? left : 0))"
  missing=$(impossible "$seed")
  [[ -z $missing ]] || echo "         not possible here: $missing"
  seed=$((seed + 1))
done

result="$(count exact) of $(count '') rounds exact"
(($(count FAILED) == 0)) || result+=", not $(each_of 2 FAILED)"
result+=$(kinds | sed 's/^./: &/')
result+=$(impossible | sed 's/^./; not possible here: &/')
row="| $(date -u +%F) | $(each_of 3 '') | $first_seed to $((seed - 1)) | $(($(sum 4) / 60)) | $(sum 5) | $(sum 6) | $(sum 7) | $result |"
(($(count '') == 0)) || echo "$row"
if [[ $is_cut == yes ]]; then
  echo "cut off: tests/soak.sh --resume goes on" >&2
  exit 75
fi
failed=$(count FAILED)
mv "$rounds" "$rounds.done"
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
