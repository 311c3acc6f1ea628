"""Runs files of node's tests, AT_ONCE of them at a time; those that fail (FAILED_MAX files at most) once more, alone.

A machine that stands still for half a minute fails a test of deadlines; a wrong page fails it again. What passes then is
"flaky", by name, and tests/run.sh fails where more than a few are.

    rows.py ROWS FILE...: what node says goes to standard output, a file's as a whole once it has ended; the file ROWS gets
    lines as read_junit.py prints them."""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

# Each has a browser, a master and a database of its own. A file mostly waits: for what is to be seen, for seconds that pass.
AT_ONCE = 2
FAILED_MAX = 2
_SECONDS_MAX = 900
_FAILED = re.compile(r"^not ok \d+ - (.*)$", re.MULTILINE)
_SKIPPED = re.compile(r"^ok \d+ - (.*?) # SKIP ?(.*)$", re.MULTILINE)
_WHY = re.compile(r"^ +error: (?:[|>]-?\n +)?'?(.*)", re.MULTILINE)
_PASSED = re.compile(r"^# pass (\d+)$", re.MULTILINE)


def run(file: str) -> str:
    """What node said, as far as it came."""
    words = ["node", "--test", "--test-reporter=tap", file]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        said = subprocess.run(words, **pipes, timeout=_SECONDS_MAX, check=False).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return said.decode(errors="replace")


def tell(said: str) -> str:
    sys.stdout.write(said)
    sys.stdout.flush()
    return said


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
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        told = {file: tell(said) for file, said in zip(files, pool.map(run, files), strict=True)}
    for file, said in told.items():
        ended = _PASSED.search(said) is not None
        if ended and not failures(said):
            rows += rows_of(said)
        else:
            failed[file] = said
    for file, said in failed.items():
        label = pathlib.Path(file).stem
        found = failures(said) or {"all of it": "it ended before its tests did"}
        again = tell(run(file)) if len(failed) <= FAILED_MAX else ""
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
