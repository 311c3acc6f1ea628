# The parts of tests/run.sh, in the order in which they run: what tells most per second comes first.
# Sourced by tests/run.sh, whose pass, fail, skip, check and count_junit they call.

parts=(packages scripts layout format proto release asan tsan install python quickstart web bench)
long_parts=(repeat upgrade clang fuzz asan_whole processes tidy benches follow readers frameworks pythons conformance)
# What the long ones are given, with room to spare, on two cores with a compiler's cache that knows most of it (CONTRIBUTING.md says how long without).
declare -A minutes_of_part=([release]=20 [asan]=17 [tsan]=11 [web]=10 [bench]=6)
# A run without them proves too little to end well: where they have no time left it fails.
parts_of_need=(release asan tsan)

# shellcheck source=tests/python/parts.sh
source "${BASH_SOURCE[0]%/*}/python/parts.sh"

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

# Scripts are checked before anything is built: a broken one costs seconds here, an hour later on.
part_scripts() {
  check "shell syntax" bash -c 'while read -r file; do bash -n "$file" || exit 1; done' < <(our_files '*.sh' '.ci/run')
  check "python syntax" python3 - < <(our_files '*.py' | python3 -c '
import sys
names = sys.stdin.read().split()
print("import ast")
print(f"for name in {names!r}: ast.parse(open(name, encoding=\"utf-8\").read(), name)")')
  check "script tests" python3 -m unittest discover -s tests/unit/tools -p 'test_*.py'
}

part_layout() {
  check "layout rules" python3 tests/layout/check.py "$root"
  check "layout rules go red" python3 -m unittest discover -s tests/layout -p 'test_*.py'
}

part_format() {
  command -v clang-format-14 >/dev/null || { fail "clang-format" "clang-format-14 is not installed"; return; }
  check "clang-format" bash -c 'xargs -r clang-format-14 --dry-run -Werror' < <(our_files '*.cc' '*.c' '*.h')
}

# buf comes from npm by a lock file with checksums; what is there already is not fetched again.
install_buf() {
  local folder=$root/tests/proto
  [[ $folder/node_modules/.package-lock.json -nt $folder/package-lock.json ]] && return 0
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) >"$results/npm.log" 2>&1
}

part_proto() {
  command -v npm >/dev/null || { skip "proto lint" "npm is not installed"; return; }
  if ! install_buf; then
    tail -n 5 "$results/npm.log" | sed 's/^/    /'
    skip "proto lint" "npm could not fetch buf (no network?)"
    return
  fi
  local buf=$root/tests/proto/node_modules/.bin/buf
  check "proto lint" "$buf" lint proto
  proto_breaking "$buf"
}

# What clients in the field rely on stays: kept.binpb.gz is the contract as they have it. A release makes it
# anew with tests/proto/keep.sh; what was added since may still change.
proto_breaking() {
  check "proto breaking" "$1" breaking proto --against tests/proto/kept.binpb.gz
}

# build PRESET [TARGET...]: configure and build. Where it fails, what the compiler said is shown, and not
# the thousand lines around it.
build() {
  local preset=$1 log=$results/build_$1.log
  shift
  start_dots
  cmake --preset "$preset" >"$results/configure_$preset.log" 2>&1
  local configured=$?
  stop_dots
  ((configured == 0)) || {
    tail -n 30 "$results/configure_$preset.log"
    fail "configure $preset" "see build/test-results/configure_$preset.log"
    return 1
  }
  start_dots
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} >"$log" 2>&1
  local built=$?
  stop_dots
  ((built == 0)) || {
    grep -v '^\[[0-9]*/[0-9]*\] ' "$log" | head -n 60 | sed 's/^/    /'
    fail "build $preset" "the compiler's words are above, all of them in ${log#"$root"/}"
    return 1
  }
  pass "build $preset"
}

# run_ctest PRESET NAME CTEST-ARGUMENT...: runs a selection of a built preset and counts its cases.
run_ctest() {
  local preset=$1 name=$2
  shift 2
  local junit=$results/$preset-$name.xml
  rm -f "$junit"
  start_dots
  (cd "build/$preset" && ctest --output-on-failure --test-output-size-passed 4000000 --test-output-size-failed 4000000 \
    --output-junit "$junit" "$@") | grep --line-buffered -vE '^ +Start |^ *[0-9]+/[0-9]+ .* Passed '
  stop_dots
  # Threads that race do so once in many times: there is no second look at them, nor where failures are sought.
  local again=build/$preset
  [[ $preset == tsan || $name == repeat ]] && again=
  start_dots
  count_junit "$junit" "$preset" "$again"
  stop_dots
}

# Prometheus and promtool out of Debian's package (19 MB), unpacked beside the builds: installed it would begin to serve.
# Without them their test is skipped.
prometheus_programs() {
  local folder=$root/build/prometheus
  command -v prometheus >/dev/null && return
  [[ -x $folder/usr/bin/prometheus ]] || (mkdir -p "$folder" && cd "$folder" &&
    timeout 120 apt-get download -q prometheus && dpkg -x prometheus_*.deb .) >"$results/prometheus.log" 2>&1
  PATH=$PATH:$folder/usr/bin
}

# PgBouncer out of Debian's package (0.2 MB), likewise: it would begin to pool. What it links is in deploy/packages.txt.
pgbouncer_program() {
  local folder=$root/build/pgbouncer
  command -v pgbouncer /usr/sbin/pgbouncer >/dev/null && return
  [[ -x $folder/usr/sbin/pgbouncer ]] || (mkdir -p "$folder" && cd "$folder" &&
    timeout 120 apt-get download -q pgbouncer && dpkg -x pgbouncer_*.deb .) >"$results/pgbouncer.log" 2>&1
  PATH=$PATH:$folder/usr/sbin
}

part_release() {
  # What kills processes mostly waits for them and for times.
  local without_slow=(-LE slow) waiting='^faults$|e2e|slow'
  [[ $long == yes ]] && without_slow=()
  build release || return
  prometheus_programs
  pgbouncer_program
  run_ctest release parallel -j "$jobs" -L 'core|contract|simulation' "${without_slow[@]}"
  run_ctest release waiting -j "$waiting_jobs" -L "$waiting" "${without_slow[@]}"
  if [[ $long == yes ]]; then long_faults; fi
}

# The fault matrix alone (--faults).
part_faults() {
  build release stepwell_tests_faults || return
  pgbouncer_program
  run_ctest release faults -j "$waiting_jobs" -L '^faults$'
  if [[ $short == no ]]; then
    part_upgrade
    long_faults
  fi
}

# Most of the long ones wait for minutes that have to pass, as many at once; those of the heavy suites take a whole machine each.
long_faults() {
  local heavy='^(CrowdTest|CrashTest|MemoryLimitTest|SeriesFloodTest)\.'
  run_ctest release faults_long -j "$waiting_jobs" -L '^faults_long$' -E "$heavy|^LongUpgradeTest\\."
  run_ctest release faults_heavy -L '^faults_long$' -R "$heavy"
}

# Two builds (docs/reliability.md, row 48): the programs of an older commit beside those of this tree.
part_upgrade() {
  local commit
  commit=$(tests/older_programs.sh --commit) || { "$( (($? == 75)) && echo skip || echo fail)" "an upgrade with two builds" "$commit"; return; }
  build release fault_tests && check "programs of ${commit::12} are built" tests/older_programs.sh || return
  local -x STEPWELL_OLDER_PROGRAMS=$root/build/older/$commit/build/release/bin
  run_ctest release upgrade -R '^LongUpgradeTest\.'
}

# What others build against: `cmake --install` into an empty folder, then a program outside the tree.
part_install() {
  local script=$root/tests/install/run.sh
  [[ -x $script ]] || { fail "install" "tests/install/run.sh is missing"; return; }
  check "a program builds against the installed recorder" "$script" "$root/build/release"
}

# The HTTP port as the clients of others see it, which come from npm as buf does; the page, rebuilt and opened.
part_web() {
  command -v npm >/dev/null || { skip "Connect's clients and the page" "npm is not installed"; return; }
  # Also where they are there: the page lies in the executable, and one of before an edit would show the page of before.
  build release connect_stand stepwell stepwell-demo stepwell_recorder_shared || return
  connect_clients
  page_bytes
  page_in_browser
}

connect_clients() {
  local log=$results/connect.log rc
  start_dots
  tests/web/run.sh build/release >"$log" 2>&1
  rc=$?
  stop_dots
  case $rc in
    0) pass "Connect's clients" && grep -E '^# (tests|fail) ' "$log" ;;
    75) skip "Connect's clients" "npm could not fetch them (no network?)" ;;
    *) grep -A 12 -E '^ *not ok' "$log" | head -60; fail "Connect's clients" "see ${log#"$root"/}" ;;
  esac
}

# The suite of those who made the Connect protocol, which Go builds.
part_conformance() {
  local log=$results/conformance.log rc
  start_dots
  tests/web/conformance/run.sh release >"$log" 2>&1
  rc=$?
  stop_dots
  case $rc in
    0) pass "Connect's conformance suite" && tail -n 3 "$log" ;;
    75) skip "Connect's conformance suite" "$(tail -n 1 "$log" | sed 's/^skipped: //')" ;;
    *)
      { grep -A 6 '^FAILED' "$log" || tail -n 40 "$log"; } | head -90 | sed 's/^/    /'
      fail "Connect's conformance suite" "see ${log#"$root"/}" ;;
  esac
}

# The committed page is what its sources build, and its cores hold.
page_bytes() {
  local log=$results/page.log rc
  start_dots
  client/web/check.sh >"$log" 2>&1
  rc=$?
  stop_dots
  case $rc in
    0) pass "the page is what its sources build" && grep -E '^# (tests|fail) ' "$log" ;;
    75) skip "the page is what its sources build" "npm could not fetch its tools (no network?)" ;;
    *) tail -n 40 "$log"; fail "the page is what its sources build" "see ${log#"$root"/}" ;;
  esac
}

page_in_browser() {
  local log=$results/browser.log rows=$results/browser_rows.txt rc
  rm -f "$rows"
  start_dots
  command -v chromium >/dev/null || timeout 300 deploy/install_packages.sh browser >"$log" 2>&1
  STEPWELL_TEST_ROWS=$rows tests/browser/run.sh build/release >"$log" 2>&1
  rc=$?
  stop_dots
  case $rc in
    75) skip "the page in a browser" "$(tail -n 1 "$log" | sed 's/^skipped: //')" && return ;;
    0) ;;
    *) grep -A 25 -E '^ *not ok' "$log" | head -90 ;;
  esac
  [[ -s $rows ]] || { fail "the page in a browser" "it ended before its tests did: see ${log#"$root"/}"; return; }
  count_rows "the page in a browser:" <"$rows"
}

# The first README command as a person would run it, on a data directory of its own; then what the demo
# promises, and the first command once more as one who lets the master run.
part_quickstart() {
  local scratch text=$results/quickstart.txt rc
  scratch=$(mktemp -d) && chmod 0755 "$scratch"  # PostgreSQL's own user passes through it
  start_dots
  "$root/deploy/quickstart.sh" --once --data-dir "$scratch/data" >"$text" 2>&1
  rc=$?
  stop_dots
  if ((rc == 0)); then
    pass "quickstart exits 0"
    check "quickstart prints the report" python3 tests/check_quickstart.py "$text"
    check "the demo learns, and a slow loader shows" python3 tests/check_demo.py "$root/build/release/bin"
    check "quickstart leaves a master that a second run uses" tests/quickstart_stays.sh
  else
    tail -n 40 "$text" | sed 's/^/    /'
    for log in "$scratch"/data/log/*.log; do echo "    -- $(basename "$log")"; tail -n 15 "$log" | sed 's/^/    /'; done
    fail "quickstart exits 0" "see build/test-results/quickstart.txt"
  fi
  rm -rf "$scratch"
}

# That every bench still measures; its bars are judged by a full run on a quiet machine.
part_bench() {
  local name
  for name in recorder python codec store ingest sensors agent; do
    check "bench $name" bench/run.sh --quick --only "$name" --json "$results/bench_$name.json" &&
      tail -n 15 "$results/bench_$name.log"
  done
}

# Those that load millions of samples first, too.
part_benches() {
  check "benches measure" bench/run.sh --quick --json "$results/bench.json" && tail -n 60 "$results/benches_measure.log"
}

# Half an hour of a page that follows a training: what it keeps for good shows in its heap. Here the bar counts, for it
# goes by no clock.
part_follow() {
  local minutes=30
  command -v chromium >/dev/null || timeout 300 "$root/deploy/install_packages.sh" browser >"$results/browser.log" 2>&1
  command -v chromium >/dev/null && command -v node >/dev/null || { skip "the page's memory" "chromium or node is not installed"; return; }
  [[ -f client/web/node_modules/playwright-core/index.mjs ]] ||
    (cd client/web && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) >"$results/npm.log" 2>&1 ||
    { skip "the page's memory" "npm could not fetch playwright-core (no network?)"; return; }
  check "the page's memory is flat in $minutes minutes" bench/run.sh --quick --only web.memory --follow-minutes "$minutes" \
    --strict --json "$results/follow.json" && grep '^web.memory' "$results/the_page_s_memory_is_flat_in_${minutes}_minutes.log"
}

# A test that fails once in three runs is found here, by name.
part_repeat() {
  build release && run_ctest release repeat --repeat until-fail:3 -L 'core|contract|simulation|^faults$|e2e'
}

part_tidy() {
  cmake --preset dev >"$results/configure_dev.log" 2>&1 && check "clang-tidy" cmake --build --preset dev -j "$jobs" --target tidy
}

# gcc ignores the annotations of locks; clang holds the code to them.
part_clang() {
  command -v clang++-14 >/dev/null || { fail "clang" "clang++-14 is not installed"; return; }
  build clang stepwell stepwell_recorder
}

# A minute each of what the corpus of the same name in tests/fuzz began with; a find fails the part.
part_fuzz() {
  local finds=$results/fuzz noun bytes
  command -v clang++-14 >/dev/null || { fail "fuzz" "clang++-14 is not installed"; return; }
  build fuzz fuzzers || return
  for noun in codec http request trace chrome spool ring notes chunk json words callers kernel; do
    rm -rf "$finds/$noun" && mkdir -p "$finds/$noun/new"
    # What comes in larger messages is looked at in such; the rest goes the faster, the less there is of it.
    case $noun in
      http | request | trace | chrome | chunk | json) bytes=65536 ;;
      *) bytes=2048 ;;
    esac
    check "fuzz $noun" "build/fuzz/bin/${noun}_fuzz" -max_total_time=60 -max_len="$bytes" -timeout=10 \
      -artifact_prefix="$finds/$noun/" "$finds/$noun/new" "tests/fuzz/$noun"
  done
}

part_asan() {
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
  build asan stepwell_tests_core stepwell_tests_contract stepwell_tests_simulation &&
    run_ctest asan core_contract -j "$jobs" -L 'core|contract|simulation'
}

part_tsan() {
  # Debian's libraries are not instrumented; what happens inside them is not ours to judge. What their
  # locks and calls order is told by cmake/tsan.
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:suppressions=$root/cmake/tsan/grpc_ends.txt
  # The cores and the threads over them, sensors and rings among them. storage_tests have no threads, and the rest speaks to
  # PostgreSQL.
  build tsan recorder_tests recorder_file_tests base_tests trace_thread_tests agent_tests agent_sensor_tests server_tests || return
  # The gateway's calls go through gRPC in both directions: its hand-over of a call that ended, inlined into our
  # program from its headers, is ordered by counts inside of the library that ThreadSanitizer does not see.
  local without='^ConnectGatewayTest\.|contract_tests$'
  # What was forked beside threads may start none there: so agent_line_tests are left out as a whole, and of recorder_file_tests these.
  without+='|^ForkedWorkerTest\.|^RecorderTest\.AForkedChildMayOpenItsOwn$|^AgentStartTest\..*_AWorkerWhoseParentHasClosed'
  # They count threads, pages, mappings and calls of the system, of which it has its own.
  without+='|^RecorderTest\.(AgentRule08_ItsOneThread|AgentRule08_AForkedChild|AgentRule01_ARingIsTouched|AgentRule01_AWarmCall'
  without+='|ClosedWritersLeaveNothing)'
  # It ends with threads that go on, which is reported as leaks of threads.
  without+='|^RecorderTest\.ThreadsThatRecordDuringTheExitDoNoHarm$'
  # Its devices answer by the clock, just before a tick is over; here nothing that fails gets a second look.
  without+='|^Rows/SlowGpuTest\.'
  run_ctest tsan core -j "$jobs" -L 'core|contract' -E "$without"
}

# Everything else that ctest knows, over asan and ubsan: end to end and faults, the attacker among them, with masters within the
# tests and as processes. Any report fails, also of a process that nobody waits for. Leaks are looked for in part_asan: what is
# killed here tells none, and a process that gave up its rights may not be traced. Less of what was freed is kept than the usual
# 256 MiB, which tests take for growth. Left out are
# - agent_line_tests, which fork trials beside the agent's threads: where one of those holds a lock of the sanitizer's allocator,
#   gcc 12's gives it to the child locked, which then waits for ever (one test in ten). The agent is looked at end to end;
# - NeverHarmTest, which counts calls of the system and waits within a step, of which the sanitizer has its own;
# - HardPlaceTest and OutOfMemoryTest, whose programs have the memory that they need without one;
# - DemoTest, which is to have learned by a time, and the first sample within 100 ms of an agent's start, which alone takes 150.
part_asan_whole() {
  local suites
  suites=$(sed -nE 's/^TEST(_F|_P)?\((\w+),.*/\2/p' tests/unit/agent/line/*_test.cc | sort -u | paste -sd '|')
  local reports=$results/asan_whole
  clear_reports "$reports"
  local -x ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:log_path=$reports/asan UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/ubsan
  build asan stepwell_tests_e2e stepwell_tests_faults || return
  prometheus_programs
  pgbouncer_program
  run_ctest asan whole -j "$jobs" -L '^(e2e|faults)$' -E "^($suites|NeverHarmTest|HardPlaceTest|OutOfMemoryTest|DemoTest)\\.|IsSampledWithin100MsAtBothEnds"
  no_reports asan "$reports"
}

# Where processes of a sanitizer's write what they find, also those that run as another user.
clear_reports() { rm -rf "$1" && mkdir -p "$1" && chmod 1777 "$1"; }

no_reports() {
  if compgen -G "$2/*" >/dev/null; then
    head -n 60 "$2"/* | sed 's/^/    /'
    fail "reports of $1" "see ${2#"$root"/}"
  else
    pass "no reports of $1"
  fi
}

# End-to-end tests once more over masters, agents, commands and trainings that ThreadSanitizer watches. The tests themselves, and a
# master within one of them, are those of the release: what is looked at are processes as people start them. Any report fails.
# What counts seconds, or has a recorder in Python, is left out.
processes_suites='SecretsTest.*:MasterSecretsTest.*:ClientSecretsTest.*:RunTest.*:RunTokenTest.*:RunTrainingsTokenTest.*:AgentTokensTest.*:BriefTokensTest.*'
processes_suites+=':LaunchersTokensTest.*:NoTokensTest.*:UploadTest.*:TokenTest.*:IngestTest.*'
part_processes() {
  local reports=$results/processes
  build release stepwell_e2e_tests && build tsan stepwell small_trial fault_trainer forking_loader || return
  clear_reports "$reports"
  check "end to end over tsan" env STEPWELL_TEST_PROGRAMS="$root/build/tsan/bin" \
    TSAN_OPTIONS="ignore_noninstrumented_modules=1:suppressions=$root/cmake/tsan/grpc_ends.txt:log_path=$reports/tsan" \
    build/release/bin/stepwell_e2e_tests --gtest_filter="$processes_suites"
  no_reports tsan "$reports"
}
