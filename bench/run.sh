#!/usr/bin/env bash
# Runs the benches of the release build and writes their numbers: how they answer is in bench/README.md.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 70
quick=() only= json= strict=no follow=()

usage() {
  cat <<'USAGE'
Usage: bench/run.sh [--quick] [--only NAME] [--strict] [--follow-minutes N] --json FILE
  --quick       seconds instead of minutes, less certain
  --only NAME   one bench (recorder) or one of its numbers (recorder.scope)
  --strict      exit 1 as well where any bar is missed, also one of our own, also with --quick
  --json FILE   where the numbers go
  --follow-minutes N
                web.memory as well: the page follows a training for so long
Exit: 0 measured, 1 a bench failed, printed what is no result or, but for --quick, missed a bar that is promised;
64 wrong use.
USAGE
}

while (($# > 0)); do
  case $1 in
    --quick) quick=(--quick) ;;
    --strict) strict=yes ;;
    --only|--json|--follow-minutes)
      [[ -n ${2:-} ]] || { echo "$1 needs a value" >&2; exit 64; }
      case $1 in
        --only) only=$2 ;;
        --json) json=$2 ;;
        *)
          [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || { echo "--follow-minutes is '$2', allowed: 1 to 9999" >&2; exit 64; }
          follow=(--follow-minutes "$2") ;;
      esac
      shift ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
[[ -n $json ]] || { echo "--json FILE is missing" >&2; usage >&2; exit 64; }

bench_of() { local name; name=$(basename "$1"); name=${name%.py}; echo "${name%_bench}"; }

# All benches by their sources, also those that are built on some machines alone.
benches() {
  local program
  {
    sed -nE 's/^ *stepwell_bench\((\w+)_bench .*/\1/p' bench/*/CMakeLists.txt
    for program in bench/*/*_bench.py; do bench_of "$program"; done
  } | sort -u
}
# Before minutes of compiling.
[[ -z $only ]] || benches | grep -xF -- "${only%%.*}" >/dev/null ||
  { echo "no bench is called '${only%%.*}'; there are: $(benches | paste -sd ' ')" >&2; exit 64; }

command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake --preset release >&2 && cmake --build --preset release -j "${STEPWELL_JOBS:-2}" >&2 || exit 1
export STEPWELL_BIN=$root/build/release/bin
# What was measured: changes that are no commit yet are told as such. Tables on stderr name it, too.
commit=$(git rev-parse --short HEAD 2>/dev/null || true)
[[ -z $commit || -z $(git status --porcelain 2>/dev/null) ]] || commit+=" and changes"
export STEPWELL_BENCH_COMMIT=${commit:-unknown}

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
status=0
for program in "$STEPWELL_BIN"/*_bench bench/*/*_bench.py; do
  [[ -x $program ]] || continue
  name=$(bench_of "$program")
  [[ -z $only || ${only%%.*} == "$name" ]] || continue
  echo "bench: $name" >&2
  more=()
  [[ $name == web ]] && more=("${follow[@]}")
  "$program" "${quick[@]}" "${more[@]}" >"$outputs/$name" || { echo "bench $name failed with exit $?" >&2; status=1; }
done

[[ -n $(ls "$outputs") ]] || { echo "bench ${only:-} is not built here: bench/README.md says what it needs" >&2; exit 1; }
python3 bench/report.py --json "$json" ${only:+--only "$only"} "${quick[@]}" --commit "$STEPWELL_BENCH_COMMIT" "$outputs"/* || status=1
if [[ $strict == yes ]] && grep -q '"holds": false' "$json"; then
  echo "a bar is missed" >&2
  status=1
fi
exit $status
