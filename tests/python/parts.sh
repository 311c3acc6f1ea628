# The parts of tests/run.sh that are Python's: the package, and what others make and read of its traces. Sourced by tests/parts.sh.

# The package as pip installs it into a fresh virtual environment, beside the programs that were built.
part_python() {
  local program=$root/build/release/bin/stepwell
  # With what the package brings, whose objects are the program's: a second's work for the linker.
  build release stepwell stepwell_alone || return
  # 150 MB to fetch, for a few tests: where it cannot be, they are skipped by name.
  "$root/deploy/install_packages.sh" torch >"$results/torch.log" 2>&1 || skip "hooks of torch" "python3-torch cannot be installed"
  python_tests python "${program%/*}"
  if command -v mypy >/dev/null; then
    check "python types" mypy --cache-dir build/mypy --config-file client/python/pyproject.toml client/python/stepwell
    check "types of a training" env MYPYPATH=client/python mypy --cache-dir build/mypy --config-file client/python/pyproject.toml \
      --warn-unused-ignores tests/python/typed_training.py
  else
    skip "python types" "mypy is not installed"
  fi
}

# python_tests LABEL BIN [PATTERN...]: each test of tests/python/run.py counts by itself; by $interpreter, else by python3.
python_tests() {
  local label=$1 rows=$results/$1_rows.txt log=$results/$1_tests.log
  shift
  rm -f "$rows"
  start_dots
  "${interpreter:-python3}" tests/python/run.py --rows "$rows" "$@" >"$log" 2>&1
  stop_dots
  [[ -s $rows ]] || { tail -n 40 "$log" | sed 's/^/    /'; fail "$label" "it ended before its tests did: see ${log#"$root"/}"; return; }
  grep -E '^Ran [0-9]+ tests' "$log"
  grep -qE $'^(failed|flaky)\t' "$rows" && tail -n 60 "$log" | sed 's/^/    /'
  count_rows "$label" <"$rows"
}

# The integrations beside the real frameworks, some 5 GB of them, which stay in a folder outside of the checkout.
part_frameworks() {
  local program=$root/build/release/bin/stepwell folder=${STEPWELL_FRAMEWORKS:-${TMPDIR:-/var/tmp}/stepwell-frameworks-$UID}
  [[ -x $program ]] || build release stepwell || return
  [[ -x $folder/bin/python ]] || python3 -m venv "$folder" || { fail frameworks "no virtual environment in $folder"; return; }
  start_dots
  "$folder/bin/python" -m pip install -q -r tests/python/frameworks.txt >"$results/frameworks_pip.log" 2>&1
  local rc=$?
  stop_dots
  ((rc == 0)) || {
    tail -n 5 "$results/frameworks_pip.log" | sed 's/^/    /'
    skip frameworks "pip could not fetch them (no network?)"
    return
  }
  # Kineto's files, too: part `readers` has those of Debian's torch.
  reader_environment tensorboard "TensorBoard's reader of Kineto's files" && local -x STEPWELL_TENSORBOARD_PYTHON=$readers/tensorboard/bin/python
  reader_environment perfetto "Perfetto's descriptors of Kineto's traces" --require-hashes && local -x STEPWELL_PERFETTO_PYTHON=$readers/perfetto/bin/python
  reader_environment notebook "a notebook's kernel" && local -x STEPWELL_NOTEBOOK_PYTHON=$readers/notebook/bin/python
  "$root/deploy/install_packages.sh" python39 >"$results/python39.log" 2>&1 || skip "another Python" "pypy3 cannot be installed"
  STEPWELL_FRAMEWORKS_PYTHON=$folder/bin/python python_tests frameworks "${program%/*}" \
    test_frameworks test_torch test_native_capture test_tensorboard.TorchPluginTest test_perfetto test_notebook test_absent test_docs.TutorialTest
}

# The package beside each other CPython that there is: built for it, and all that needs no framework. Those on PATH, and what
# STEPWELL_PYTHONS names, by colons.
part_pythons() {
  local program=$root/build/release/bin/stepwell interpreter version others="" named minor
  local -A seen=([$(python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')]=python3)
  [[ -x $program ]] || build release stepwell || return
  IFS=: read -ra named <<<"${STEPWELL_PYTHONS:-}"
  for interpreter in "${named[@]}"; do
    [[ -x $(command -v "$interpreter") ]] || fail pythons "STEPWELL_PYTHONS names $interpreter, which cannot be run"
  done
  for minor in 9 10 11 12 13 14; do named+=("python3.$minor"); done
  for interpreter in "${named[@]}"; do
    version=$("$interpreter" -c 'import ensurepip, os, sys, sysconfig, venv
if sys.implementation.name == "cpython" and sys.version_info >= (3, 9) and os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"):
    print(*sys.version_info[:2], sep=".")' 2>/dev/null) && [[ -n $version ]] || continue
    [[ -z ${seen[$version]:-} ]] || { echo "CPython $version: ${seen[$version]}, and not $interpreter, too"; continue; }
    seen[$version]=$interpreter
    others+=" $version"
    echo "CPython $version: $interpreter"
    python_tests "python$version" "${program%/*}"
  done
  [[ -n $others ]] || skip pythons "no other CPython with its headers is here (STEPWELL_PYTHONS=PROGRAM:... names some)"
}

# What others read of ours, by their own readers: Perfetto's published descriptors, NVTX, TensorBoard with both plugins, over what
# torch, JAX and TensorFlow wrote. 3 GB, which stays in folders outside of the checkout, each with a protobuf of its own.
readers=${STEPWELL_READERS:-${TMPDIR:-/var/tmp}/stepwell-readers-$UID}
part_readers() {
  local program=$root/build/release/bin/stepwell
  [[ -x $program ]] || build release stepwell || return
  "$root/deploy/install_packages.sh" torch >"$results/torch.log" 2>&1 || skip "readers of torch's traces" "python3-torch cannot be installed"
  reader_environment perfetto "Perfetto's descriptors" --require-hashes && export STEPWELL_PERFETTO_PYTHON=$readers/perfetto/bin/python
  reader_environment tensorboard "TensorBoard's readers" && export STEPWELL_TENSORBOARD_PYTHON=$readers/tensorboard/bin/python
  reader_environment tensorflow "TensorFlow's profiler" && export STEPWELL_TENSORFLOW_PYTHON=$readers/tensorflow/bin/python
  reader_environment nvtx "NVTX's ranges" --require-hashes && export STEPWELL_NVTX_PYTHON=$readers/nvtx/bin/python
  # None: each has been skipped by name.
  [[ -n ${STEPWELL_PERFETTO_PYTHON:-}${STEPWELL_TENSORBOARD_PYTHON:-}${STEPWELL_NVTX_PYTHON:-} ]] &&
    python_tests readers "${program%/*}" test_perfetto test_tensorboard test_nvtx test_keras_tensorflow
}

# reader_environment NAME WHAT [OPTION...]: what tests/python/NAME.txt names, in a virtual environment of its own below $readers.
reader_environment() {
  local name=$1 what=$2 rc
  shift 2
  start_dots
  { [[ -x $readers/$name/bin/python ]] || python3 -m venv "$readers/$name"; } >"$results/${name}_pip.log" 2>&1 &&
    "$readers/$name/bin/python" -m pip install -q "$@" -r "tests/python/$name.txt" >>"$results/${name}_pip.log" 2>&1
  rc=$?
  stop_dots
  ((rc == 0)) && return
  tail -n 5 "$results/${name}_pip.log" | sed 's/^/    /'
  skip "$what" "pip could not fetch them (no network?)"
  return 1
}
