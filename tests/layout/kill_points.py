"""Where work on what is stored may be cut in two, KillPointsTest kills the master: each failpoint of storage and server is in its table, or
in the test of another kind of work, and each that it names is passed somewhere."""

import re
from collections.abc import Iterator

from tree import Finding, Tree, line_of, without_comments

_TABLE = "tests/faults/kill_points_test.cc"
# What that test's master does not do, or does not die of.
_ELSEWHERE = {
    "ack_written": "tests/e2e/drain_test.cc",
    "after_commit_before_ack": "tests/faults/crash_test.cc",
    "migration_before_commit": "tests/faults/migration_kill_test.cc",
    "migration_after_commit": "tests/faults/migration_kill_test.cc",
    "trace_part_before_commit": "tests/e2e/traces_test.cc",
    "trace_part_after_commit": "tests/e2e/traces_test.cc",
}
_PASSED = re.compile(r"""(?:STEPWELL_FAILPOINT|failpoint::Check|\bPass)\(\s*"(\w+)"\s*\)""")
_KILLED = re.compile(r"""\{\s*"([a-z]+(?:_[a-z]+)+)"\s*[,}]""")


def check_kill_points(tree: Tree) -> Iterator[Finding]:
    """A new transaction of folds, merges, rollups or sweeps is killed in the same change."""
    if not tree.has(_TABLE):
        return
    table = without_comments(tree.text(_TABLE))
    killed = {match.group(1): line_of(table, match.start()) for match in _KILLED.finditer(table)}
    passed = set()
    for name in tree.ending(".cc"):
        if not name.startswith(("storage/", "server/")):
            continue
        text = without_comments(tree.text(name))
        for match in _PASSED.finditer(text):
            point = match.group(1)
            passed.add(point)
            other = _ELSEWHERE.get(point)
            if point not in killed and not (other and tree.has(other) and point in tree.text(other)):
                yield Finding(name, line_of(text, match.start()), "kill point",
                              f"no test kills a master at {point}: add it to {other or _TABLE}")
    for point, line in killed.items():
        if point not in passed:
            yield Finding(_TABLE, line, "kill point", f"nothing passes {point}")
