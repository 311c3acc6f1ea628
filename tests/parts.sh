# The parts of tests/run.sh, in the order in which they run: what tells most per second comes first.
# Sourced by tests/run.sh, whose pass, fail, skip, check and count_junit they call.

parts=(packages shell format release asan tsan)
long_parts=()

git_here() { git -c safe.directory='*' -C "$root" "$@"; }

# Our files with these endings, without what a build or npm left; also where there is no git checkout.
our_files() {
  local patterns=("$@")
  if git_here rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git_here ls-files --cached --others --exclude-standard -- "${patterns[@]}" | while read -r file; do
      [[ -f $file ]] && printf '%s\n' "$file"
    done
  else
    local pattern
    for pattern in "${patterns[@]}"; do
      find . \( -name build -o -name node_modules -o -name .git \) -prune -o -name "$pattern" -type f -print
    done | sed 's,^\./,,'
  fi
}

use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
}

part_packages() {
  if "$root/deploy/install_packages.sh" build run test; then
    pass packages
    use_ccache
  else
    fail packages "some are missing (above); the parts that need them fail too"
  fi
}

part_shell() {
  local file bad=0
  while read -r file; do bash -n "$file" || bad=1; done < <(our_files '*.sh' '.ci/run')
  ((bad == 0)) && pass "shell syntax" || fail "shell syntax" "bash -n refuses a script (above)"
}

part_format() {
  command -v clang-format-14 >/dev/null || { fail "clang-format" "clang-format-14 is not installed"; return; }
  check "clang-format" bash -c 'xargs -r clang-format-14 --dry-run -Werror' < <(our_files '*.cc' '*.h')
}

# build PRESET [TARGET...]: configure and build; ninja's own progress is the progress shown.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >"$results/configure_$preset.log" 2>&1 || {
    tail -n 30 "$results/configure_$preset.log"
    fail "configure $preset" "see build/test-results/configure_$preset.log"
    return 1
  }
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} || { fail "build $preset" "the compiler's words are above"; return 1; }
  pass "build $preset"
}

# run_ctest PRESET NAME CTEST-ARGUMENT...: runs a selection of a built preset and counts its cases.
run_ctest() {
  local preset=$1 name=$2
  shift 2
  local junit=$results/$preset-$name.xml
  rm -f "$junit"
  (cd "build/$preset" && ctest --output-on-failure --output-junit "$junit" "$@") | grep -vE '^ +Start |^ *[0-9]+/[0-9]+ .* Passed '
  count_junit "$junit" "$preset"
}

part_release() {
  local without_slow=(-LE slow)
  [[ $long == yes ]] && without_slow=()
  build release || return
  run_ctest release parallel -j "$jobs" -L 'core|contract' "${without_slow[@]}"
  # What kills processes and measures time runs alone.
  run_ctest release alone -L 'faults|e2e|slow' "${without_slow[@]}"
}

part_asan() {
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
  build asan stepwell_tests_core stepwell_tests_contract && run_ctest asan core_contract -j "$jobs" -L 'core|contract'
}

part_tsan() {
  # Debian's libraries are not instrumented; what happens inside them is not ours to judge.
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1
  build tsan stepwell_tests_core && run_ctest tsan core -j "$jobs" -L core
}
