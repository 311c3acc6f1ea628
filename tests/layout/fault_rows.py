"""The fault matrix of docs/reliability.md: each row is there, and each test that it or docs/never-harm.md names exists."""

import re
from collections.abc import Iterator

from tree import Finding, Tree

_PAGE = "docs/reliability.md"
_PAGES_BESIDE = ("docs/never-harm.md",)
_ROWS = range(1, 53)
_TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
_PYTHON_TEST = re.compile(r"^(?:class (\w+)|    def (test_\w+))", re.MULTILINE)
_NAMED = re.compile(r"`([A-Z]\w+\.(?:[A-Z]|test_)\w+)`")
_ROW = re.compile(r"^\| (\d+) \|")


def _tests(tree: Tree) -> set[str]:
    found = {f"{suite}.{test}" for name in tree.ending(".cc") if name.startswith("tests/")
             for suite, test in _TEST.findall(tree.text(name))}  # fmt: skip
    for name in tree.ending(".py"):
        suite = ""
        for kind, test in _PYTHON_TEST.findall(tree.text(name)) if name.startswith("tests/") else ():
            suite = kind or suite
            found.add(f"{suite}.{test}")
    return found


def check_fault_rows(tree: Tree) -> Iterator[Finding]:
    """Nobody need believe a table that names tests of long ago."""
    pages = [page for page in (_PAGE, *_PAGES_BESIDE) if tree.has(page)]
    if not pages:
        return
    tests = _tests(tree)
    rows = set()
    for page in pages:
        for number, line in tree.lines(page):
            if page == _PAGE and (row := _ROW.match(line)):
                rows.add(int(row.group(1)))
            for named in _NAMED.findall(line):
                if named not in tests:
                    yield Finding(page, number, "fault row", f"there is no test {named}")
    if not tree.has(_PAGE):
        return
    for missing in sorted(set(_ROWS) - rows):
        yield Finding(_PAGE, 0, "fault row", f"row {missing} of the matrix is missing")
