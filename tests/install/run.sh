#!/usr/bin/env bash
# Installs the recorder of a build folder into an empty prefix, builds programs outside the tree
# against it and runs them: tests/install/run.sh BUILD_DIR
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build_dir=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "install: $1" >&2; exit 1; }

# Without a component: all of it, the executable too.
cmake --install "$build_dir" --prefix "$scratch/whole"
for file in bin/stepwell include/stepwell/recorder.h; do
  [[ -s $scratch/whole/$file ]] || fail "cmake --install left no $file"
done

# The prefix is moved afterwards: packages are built in one place and used in another.
cmake --install "$build_dir" --component recorder --prefix "$scratch/built"
mv "$scratch/built" "$scratch/prefix"
[[ -x $scratch/prefix/bin/stepwell ]] || fail "the component left no program that could be its agent"
[[ $("$scratch/prefix/bin/stepwell" run --print ./train) == *PYTHONPATH="$scratch/prefix/share/stepwell/python"* ]] ||
  fail "stepwell run finds nothing to put before a program in Python"
cp "$source_dir"/{CMakeLists.txt,in_c.c,in_cpp.cc} "$(mkdir "$scratch/theirs" && echo "$scratch/theirs")"
cmake -S "$scratch/theirs" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
cmake --build "$scratch/build"

# Only the C ABI is visible in a trial's process, and nothing of it comes along but the C++ runtime.
library=$(find "$scratch/prefix" -name libstepwell_recorder.so)
[[ -n $library ]] || fail "no shared library was installed"
strangers=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /^stepwell_/ {print $3}')
[[ -z $strangers ]] || fail "the library shows more than stepwell_*: $strangers"
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|libpthread|ld-linux.*)\.so' || true)
[[ -z $needed ]] || fail "the library leans on $needed"

for program in in_c in_cpp in_cpp_static; do
  spool=$scratch/spool-$program
  mkdir -m 0700 "$spool"
  STEPWELL_SPOOL_DIR=$spool STEPWELL_AGENT=off "$scratch/build/$program" || fail "$program ended with exit $?"
  writers=("$spool"/f1/*/writer.json)
  [[ -s ${writers[0]} ]] || fail "$program left no writer for an agent in its spool"
  echo "$program recorded into ${writers[0]#"$scratch"/}"
done

# The agent lies in ../bin beside the library: nobody names it, it is found and serves.
library=$(find "$scratch/prefix" -name libstepwell_recorder.so)
recorded_with_its_agent() {  # PROGRAM
  spool=$scratch/spool-agent-$(basename "$1")
  mkdir -m 0700 "$spool"
  env -u STEPWELL_AGENT PATH=/usr/bin:/bin LD_LIBRARY_PATH="$(dirname "$library")" STEPWELL_SPOOL_DIR="$spool" \
    STEPWELL_OFFLINE=1 STEPWELL_AGENT_IDLE_EXIT=0 "$1" >"$scratch/said" 2>&1 || fail "$1 ended with exit $?"
  local deadline=$((SECONDS + 20))  # it closes without waiting
  until grep -qs writer_found "$spool/f1/agent.log" || ((SECONDS >= deadline)); do sleep 0.1; done
  grep -qs writer_found "$spool/f1/agent.log" || fail "the installed library did not start the installed agent"
  echo "the installed library started the installed agent ($(basename "$1"))"
}
recorded_with_its_agent "$scratch/build/in_c"

# What README tells a newcomer to write builds and records as it stands there.
readme=$scratch/readme
mkdir "$readme"
block() { awk -v from="\`\`\`$1" '$0 == "```" { inside = 0 } inside { print } $0 == from { inside = 1 }' "$source_dir/../../README.md"; }
block cpp >"$readme/train.cc"
block cmake >"$readme/CMakeLists.txt"
cmake -S "$readme" -B "$readme/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
cmake --build "$readme/build"
recorded_with_its_agent "$readme/build/train"
grep -qF "stepwell: offline: 'stepwell upload $spool' sends it" "$scratch/said" ||
  fail "README's program said: $(cat "$scratch/said")"
