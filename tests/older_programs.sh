#!/usr/bin/env bash
# Programs of an older commit, for tests with two builds (tests/faults/upgrade_test.cc).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'USAGE'
Usage: tests/older_programs.sh [--commit]
Builds master, agent and fault tests' producers of an older commit in build/older/COMMIT/build/release/bin, and deletes the other
folders of build/older. The commit is the newest one that lacks a migration which the working tree has, so that an upgrade from it
applies one; STEPWELL_OLDER_COMMIT names another, which must be of this history. Its ledgers must be what today's checker reads.
  --commit   only print the commit
Exit: 0 done, 64 wrong use or STEPWELL_OLDER_COMMIT is of another history, 75 there is no such history (the reason is on stdout).
USAGE
}

only_commit=no
while (($# > 0)); do
  case $1 in
    --commit) only_commit=yes ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

git_here() { git -c safe.directory='*' -C "$root" "$@"; }
skip() { echo "$1"; exit 75; }

newest_without_a_migration() {
  # What is not committed yet is newer than all commits.
  [[ -z $(git_here status --porcelain -- 'migrations/*.sql') ]] || { git_here rev-parse HEAD; return; }
  local changed
  changed=$(git_here rev-list -1 HEAD -- 'migrations/*.sql')
  git_here rev-parse --verify -q "$changed^"
}

git_here rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "no git history to take an older build from"
if [[ -n ${STEPWELL_OLDER_COMMIT:-} ]]; then
  commit=$(git_here rev-parse --verify -q "$STEPWELL_OLDER_COMMIT^{commit}") && git_here merge-base --is-ancestor "$commit" HEAD ||
    { echo "STEPWELL_OLDER_COMMIT is $STEPWELL_OLDER_COMMIT; allowed: a commit of this history"; exit 64; }
else
  commit=$(newest_without_a_migration) || skip "the history does not go back behind the last migration"
fi
[[ $only_commit == no ]] || { echo "$commit"; exit 0; }

older=$root/build/older
mkdir -p "$older/$commit"
# One is enough, for the compiler's cache has the others.
find "$older" -mindepth 1 -maxdepth 1 ! -name "$commit" -exec rm -rf {} +
# Files have the commit's time: what was built already is not built again.
git_here archive "$commit" | tar -x -C "$older/$commit"
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
cd "$older/$commit"
cmake --preset release -DSTEPWELL_BUILD_BENCH=OFF
cmake --build --preset release -j "${STEPWELL_JOBS:-2}" --target stepwell fault_trainer fault_raw_writer
