#!/usr/bin/env bash
# connectrpc/conformance, the suite of those who made the Connect protocol, against the HTTP port: tests/web/conformance/run.sh
# PRESET. Go builds its runner out of modules that are fetched once, into build/conformance; what it calls is built with the
# protos that come with it. Fails where any case ends otherwise than known_failing.txt says. Exit 75, with the reason in
# the last line, where the suite cannot be had.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
preset=${1:?a preset, such as release}
module=connectrpc.com/conformance version=v1.0.7
sum=h1:9Sqx8vEeRJyKoIAiYdEuABrlPKRoNxVHSbJ0CVil7xg=
cases=584  # that its configuration has in this version: fewer would be a suite that leaves some out

skip() { echo "skipped: $1"; exit 75; }
told() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get(sys.argv[2], ""))' "$kept/module.json" "$1"; }

command -v go >/dev/null || skip "go is not on PATH"
kept=$root/build/conformance
rm -rf "$kept/run" && mkdir -p "$kept/run"
cd "$kept"
# The compiler's cache is needed once; modules that nobody may write could not be removed with build.
export GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE=$kept/modules GOCACHE=$kept/cache GOBIN=$kept/$version
timeout 120 go mod download -json "$module@$version" >module.json || { told Error; skip "Go could not fetch $module (no network?)"; }
[[ $(told Sum) == "$sum" ]] || { echo "$module $version has the checksum $(told Sum), it had $sum"; exit 1; }
if [[ ! -x $GOBIN/connectconformance ]]; then
  timeout 900 go install "$module/cmd/connectconformance@$version" || skip "Go could not build $module $version (no network, or an older Go?)"
  rm -rf "$GOCACHE"
fi

cd "$root"
cmake --preset "$preset" -DSTEPWELL_CONFORMANCE_PROTO="$(told Dir)/proto"
cmake --build --preset "$preset" -j "${STEPWELL_JOBS:-2}" --target connect_conformance

cd "$kept/run"
log=$kept/run/cases.txt
rc=0
timeout 300 "$GOBIN/connectconformance" --mode server --conf "$here/config.yaml" --known-failing "@$here/known_failing.txt" \
  -- "$root/build/$preset/bin/connect_conformance" >"$log" 2>&1 || rc=$?
cat "$log"
((rc == 0)) || exit 1
# It ends well, too, where it could not ask.
grep -q 'could not be run' "$log" && { echo "FAILED: not every case was run"; exit 1; }
grep -qx "Total cases: $cases" "$log" || { echo "FAILED: $(grep '^Total cases' "$log"), $cases were expected"; exit 1; }
