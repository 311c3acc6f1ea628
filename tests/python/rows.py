"""What a run of the tests came to, as the rows of tests/read_junit.py; failed tests get a second look."""

from __future__ import annotations

import unittest
from typing import Any

FAILED_MAX = 3  # more is no accident
_WORDS_MAX = 600


def tests_in(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    return [test for part in suite for test in (tests_in(part) if isinstance(part, unittest.TestSuite) else [part])]


class Result(unittest.TextTestResult):
    """Counts what passed, which testsRun does not tell: it knows nothing of set-ups that failed."""

    def __init__(self, *arguments, **more) -> None:
        super().__init__(*arguments, **more)
        self.passed: set[str] = set()

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.passed.add(test.id())


def short_name(test_id: str) -> str:
    return test_id if "(" in test_id else ".".join(test_id.split(".")[-2:])


def last_words(traceback: str) -> str:
    """Where our own test stood, and what was said there."""
    lines = traceback.strip().splitlines()
    where = [line.strip() for line in lines if "/tests/python/" in line]
    place = where[-1].rpartition("/tests/")[2].replace('", line ', ":").split(",")[0] if where else ""
    begin = max((n for n, line in enumerate(lines) if line.startswith((" ", "Traceback"))), default=-1) + 1
    return f"{place}: {' '.join(' '.join(lines[begin:]).split())}"[:_WORDS_MAX]


def failures(result: unittest.TestResult) -> dict[str, str]:
    """Test id (of the whole test, where one of its subTests failed) -> last words of its first failure."""
    found = {test.id(): "passed, which it is expected not to" for test in result.unexpectedSuccesses}
    for test, traceback in result.failures + result.errors:
        found.setdefault(getattr(test, "test_case", test).id(), last_words(traceback))
    return found


def run(suite: unittest.TestSuite, runner: unittest.TextTestRunner) -> list[tuple[str, ...]]:
    """Runs `suite`, then up to FAILED_MAX failed tests once more alone; rows ("passed", N),
    ("failed" | "flaky" | "skipped", NAME, WHY)."""
    tests = {test.id(): type(test)(test._testMethodName) for test in tests_in(suite)
             if isinstance(test, unittest.TestCase) and hasattr(type(test), test._testMethodName)}  # fmt: skip
    runner.resultclass = Result
    result = runner.run(suite)
    failed = failures(result)
    skipped = [("skipped", short_name(test.id()), " ".join(why.split())) for test, why in result.skipped]
    rows: list[tuple[str, ...]] = [("passed", str(len(result.passed - failed.keys())))]
    for name, why in failed.items():
        # What failed before any test began (an import, a class's set-up) has no test to run again.
        again: Any = tests.get(name) if len(failed) <= FAILED_MAX else None
        if again is not None:
            again.is_second_look = True  # it has another trial
        flaky = again is not None and name in runner.run(unittest.TestSuite([again])).passed
        rows.append(("flaky" if flaky else "failed", short_name(name), why))
    return rows + skipped
