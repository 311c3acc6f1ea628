"""Runs failed ctest cases of real processes once more, alone and with the seed they failed with.

A machine that stops for half a minute fails a test of deadlines; a wrong program fails it again. What passes
is told as "flaky", by name, and counts as passed; tests/run.sh fails where more than a few are. Never
looked at twice: what a sanitizer found, what a checker found (a sample that is lost, doubled or changed, a bound
that is broken), and a run in which much failed.

    second_look.py BUILD_DIR JUNIT: the rows of read_junit.py, some "failed" ones now "flaky"."""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import read_junit

FAILED_MAX = 3  # more is no accident
_SECONDS_MAX = 400
_SANITIZER = re.compile(r"Sanitizer|runtime error: ")
# What no slow machine makes: the verdict of tests/faults/checker; bounds_watch, and the one of a limit of memory; in
# gtest's words what memory_limit_test and pg_store_faults_test compare with what must be stored.
_VERDICTS = (r"checker: .*\b(?:missing|doubled|changed|never recorded) [1-9]",
             r": \d+ (?:KiB resident|descriptors|threads), bound \d",
             r'MemoryOf\(pid, "VmHWM"\)',
             r"count\(distinct s\.value\)",
             r"^  (?:Committed\(writer\)|JournalRows\(\))$",
             r"max\(deadlocks\)")
_VERDICT = re.compile("|".join(_VERDICTS), re.MULTILINE)
_SEED = re.compile(r"^STEPWELL_TEST_SEED=(\d+)$", re.MULTILINE)


def part_of(output: str, test: str) -> str:
    """What a gtest program wrote while `test` ran."""
    begin = output.find(f"[ RUN      ] {test}\n")
    if begin < 0:
        return output
    end = output.find("[ RUN      ] ", begin + 1)
    return output[begin:] if end < 0 else output[begin:end]


def may_be_an_accident(output: str, test: str) -> bool:
    return not _SANITIZER.search(output) and not _VERDICT.search(part_of(output, test))


def command(build: pathlib.Path, case: str, test: str) -> list[str]:
    """Runs `test` alone: of the program `case`, where that is one ctest case with many tests in it."""
    program = build / "bin" / case
    if program.exists():
        return [str(program), *([] if test == case else [f"--gtest_filter={test}"])]
    return ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-R", f"^{re.escape(test)}$"]


def passes(build: pathlib.Path, case: str, test: str, output: str) -> bool:
    seeds = _SEED.findall(part_of(output, test))
    env = {**os.environ, **({"STEPWELL_TEST_SEED": seeds[0]} if seeds else {})}
    try:
        again = subprocess.run(command(build, case, test), env=env, stdin=subprocess.DEVNULL, timeout=_SECONDS_MAX,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return again.returncode == 0 and not _SANITIZER.search(again.stdout.decode(errors="replace"))


def look(build: pathlib.Path, junit: str) -> tuple[int, list[tuple[str, str, str]]]:
    passed, rows = read_junit.read(junit)
    failed = [row for row in rows if row[0] == "failed"]
    if not failed or len(failed) > FAILED_MAX:
        return passed, rows
    outputs = {case.get("name", "?"): case.findtext("system-out") or ""
               for case in ElementTree.parse(junit).getroot().iter("testcase")}
    looked = []
    for kind, test, why in rows:
        case = test if test in outputs else next((name for name, said in outputs.items() if f"] {test} (" in said
                                                  or f"] {test}, where" in said), None)
        if kind == "failed" and case and may_be_an_accident(outputs[case], test) and passes(
                build, case, test, outputs[case]):
            kind = "flaky"
        looked.append((kind, test, why))
    return passed, looked


def main() -> int:
    passed, rows = look(pathlib.Path(sys.argv[1]), sys.argv[2])
    print(f"passed\t{passed}")
    for row in rows:
        print("\t".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
