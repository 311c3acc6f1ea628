#!/usr/bin/env bash
# Compares the agent's GPU sensors with nvidia-smi on this machine, and writes the outcome into
# docs/metrics.md. Exit: 0 they agree, 1 they do not, 69 this machine has no NVIDIA GPU.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=20 probe= page=$root/docs/metrics.md

usage() {
  cat <<'USAGE'
Usage: tests/device/run.sh [--seconds N] [--probe PROGRAM] [--page FILE]
  --seconds N       readings, a second apart (20)
  --probe PROGRAM   gpu_probe, built elsewhere; default: built here (release preset)
  --page FILE       where the outcome is written (docs/metrics.md)
A load beside it (any training) makes the comparison worth more.
USAGE
}

while (($# > 0)); do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --probe) probe=${2:?--probe needs a program}; shift ;;
    --page) page=${2:?--page needs a file}; shift ;;
    --help|-h) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "this machine has no NVIDIA GPU that nvidia-smi sees; $page stays as it is" >&2
  exit 69
fi
if [[ -z $probe ]]; then
  cd "$root"
  cmake --preset release >&2
  cmake --build --preset release --target gpu_probe -j "${STEPWELL_JOBS:-2}" >&2
  probe=$root/build/release/bin/gpu_probe
fi
exec python3 "$root/tests/device/compare.py" --probe "$probe" --page "$page" --seconds "$seconds"
