"""Runs files of node's tests, one after the other; those that fail (FAILED_MAX files at most) once more, alone.

A machine that stands still for half a minute fails a test of deadlines; a wrong page fails it again. What passes then is
"flaky", by name, and tests/run.sh fails where more than a few are.

    rows.py ROWS FILE...: what node says goes to standard output; the file ROWS gets lines as read_junit.py prints them."""

import pathlib
import re
import subprocess
import sys

FAILED_MAX = 2
_SECONDS_MAX = 900
_FAILED = re.compile(r"^not ok \d+ - (.*)$", re.MULTILINE)
_SKIPPED = re.compile(r"^ok \d+ - (.*?) # SKIP ?(.*)$", re.MULTILINE)
_WHY = re.compile(r"^ +error: (?:[|>]-?\n +)?'?(.*)", re.MULTILINE)
_PASSED = re.compile(r"^# pass (\d+)$", re.MULTILINE)


def run(file: str) -> str:
    """What node said, also shown as it comes."""
    words = ["node", "--test", "--test-reporter=tap", file]
    lines = []
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as node:
        assert node.stdout is not None
        for line in node.stdout:
            lines.append(line.decode(errors="replace"))
            sys.stdout.write(lines[-1])
            sys.stdout.flush()
    return "".join(lines)


def failures(said: str) -> dict[str, str]:
    """Test -> the first words of why."""
    found = {}
    for match in _FAILED.finditer(said):
        why = _WHY.search(said, match.end())
        found[match[1]] = " ".join(why[1].split())[:200] if why else "no reason"
    return found


def rows_of(said: str) -> list[tuple[str, ...]]:
    passed = _PASSED.search(said)
    return [("passed", passed[1] if passed else "0"),
            *(("skipped", match[1], match[2]) for match in _SKIPPED.finditer(said))]  # fmt: skip


def main(rows_file: str, files: list[str]) -> int:
    rows: list[tuple[str, ...]] = []
    failed = {}
    for file in files:
        said = run(file)
        ended = _PASSED.search(said) is not None
        if ended and not failures(said):
            rows += rows_of(said)
        else:
            failed[file] = said
    for file, said in failed.items():
        label = pathlib.Path(file).stem
        found = failures(said) or {"all of it": "it ended before its tests did"}
        again = run(file) if len(failed) <= FAILED_MAX else ""
        if _PASSED.search(again) is not None and not failures(again):
            # Those behind one that failed stand on what it did: one accident.
            name, why = next(iter(found.items()))
            more = f" and {len(found) - 1} behind it" if len(found) > 1 else ""
            (_, passed), *skipped = rows_of(again)
            rows += [("passed", str(int(passed) - 1)), *skipped, ("flaky", f"{label}: {name}{more}", why)]
        else:
            rows += [*rows_of(said), *(("failed", f"{label}: {name}", why) for name, why in found.items())]
    pathlib.Path(rows_file).write_text("".join("\t".join(row) + "\n" for row in rows))
    return 1 if any(row[0] in ("failed", "flaky") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
